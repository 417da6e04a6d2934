/*
 * crossentropy: categorical crossentropy from logits, one number a sample: the mean over its rows of
 * weight * sum t (log sum exp x - x). Inputs: logits; class numbers (int32), or a number for each class (float32), which may be
 * smoothed: t = y (1 - p) + p / classes; and optionally weights. Forward keeps T softmax - t for backward, T = sum t.
 */
#include "op/op.h"

static bool has_labels(const bw_node *node)
{
    return node->input[1]->dtype == BW_I32;
}

/* Without attributes nothing is smoothed. */
static float smoothing_of(const bw_node *node)
{
    return node->attribute_bytes ? ((const bwi_crossentropy_attributes *)node->attributes)->smoothing : 0;
}

static bw_status shape(bwi_graph *graph, bw_node *node)
{
    if (node->input[0]->shape.ndim < 1) {
        return bwi_fail(graph->ctx, BW_INVALID_ARGUMENT, "%s: expected an output with an axis of classes, got one number a sample",
                        node->name);
    }
    return bwi_rows_check(graph, node, has_labels(node));
}

static bw_status prepare(bwi_prepare *p)
{
    const bwi_shape *logits = &p->node->input[0]->shape;
    size_t width = (size_t)logits->extent[logits->ndim - 1], all = (size_t)(bwi_shape_count(logits) * p->samples);
    p->workspace_bytes = all * sizeof(float);
    p->scratch_bytes = all / width * (sizeof(float) + sizeof(int32_t));
    return BW_OK;
}

static int32_t largest(int64_t width, const float *x)
{
    int32_t best = 0;
    for (int32_t i = 1; i < width; i++) {
        best = x[i] > x[best] ? i : best;
    }
    return best;
}

/* From what the kernel gives for the label l with the largest target, loss = T loss_l + sum t (x_l - x) and
 * difference = T difference_l + [l] T - t: exact for targets that are one-hot. */
static float spread_target(int64_t width, const float *x, const float *y, float smoothing, int32_t l, float loss, float *difference)
{
    double total = 0, sum = 0;
    for (int64_t i = 0; i < width; i++) {
        float t = y[i] * (1 - smoothing) + smoothing / (float)width;
        total += (double)t;
        sum += (double)t * ((double)x[l] - (double)x[i]);
    }
    for (int64_t i = 0; difference && i < width; i++) {
        float t = y[i] * (1 - smoothing) + smoothing / (float)width;
        difference[i] = (float)total * difference[i] + (i == l ? (float)total - t : -t);
    }
    return (float)(total * (double)loss + sum);
}

static bw_status forward(const bwi_call *call, const bwi_tile *tile)
{
    bwi_rows rows = bwi_rows_of(call);
    int64_t count = rows.count * call->samples;
    const float *x = call->src[0], *y = call->src[1];
    float *row_loss = call->scratch, *loss = call->dst, *difference = call->workspace, smoothing = smoothing_of(call->node);
    const int32_t *labels = call->src[1];
    if (has_labels(call->node)) {
        bw_status status = bwi_labels_check(call, tile);
        if (status != BW_OK) {
            return status;
        }
    } else {
        int32_t *found = (int32_t *)(void *)(row_loss + count);
        for (int64_t r = 0; r < count; r++) {
            found[r] = largest(rows.width, y + r * rows.width);
        }
        labels = found;
    }
    call->kernels->crossentropy(count, rows.width, x, labels, NULL, row_loss, difference);
    for (int64_t r = 0; !has_labels(call->node) && r < count; r++) {
        int64_t at = r * rows.width;
        row_loss[r] =
            spread_target(rows.width, x + at, y + at, smoothing, labels[r], row_loss[r], difference ? difference + at : NULL);
    }
    for (int64_t s = 0; s < call->samples; s++) {
        float sum = 0;
        for (int64_t r = s * rows.count; r < (s + 1) * rows.count; r++) {
            sum += row_loss[r] * bwi_rows_weight(&rows, s, r);
        }
        loss[s] = sum / (float)rows.count;
    }
    return BW_OK;
}

static bw_status backward(const bwi_call *call, const bwi_tile *tile)
{
    (void)tile;
    bwi_rows rows = bwi_rows_of(call);
    const float *from = call->workspace, *diff_dst = call->diff_dst;
    float *to = call->diff_src[0];
    for (int64_t s = 0; s < call->samples; s++) {
        for (int64_t r = s * rows.count; r < (s + 1) * rows.count; r++) {
            float factor = diff_dst[s] * bwi_rows_weight(&rows, s, r) / (float)rows.count;
            for (int64_t i = r * rows.width; i < (r + 1) * rows.width; i++) {
                to[i] = from[i] * factor;
            }
        }
    }
    return BW_OK;
}

const bwi_op bwi_op_crossentropy = {.name = "crossentropy",
                                    .backward_reads = BWI_READS_WORKSPACE | BWI_READS_SRC,
                                    .layout = BWI_LAYOUT_CHANNELS_LAST,
                                    .shape = shape,
                                    .prepare = prepare,
                                    .forward = forward,
                                    .backward = backward};
