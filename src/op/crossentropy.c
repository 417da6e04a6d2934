/*
 * crossentropy: categorical crossentropy from logits, one number per sample: the mean over its rows of weight * sum t (log sum exp
 * x - x). Inputs: logits; class numbers (int32), or a number for each class (float32), which may be smoothed, t = y (1 - p) + p /
 * classes; and optionally weights. Forward keeps T softmax - t for backward, where T = sum t.
 */
#include "op/internal.h"

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

static bw_status forward(const bwi_call *call, const bwi_tile *tile)
{
    const bwi_loss_kernels *loss = call->kernels->loss;
    bwi_rows rows = bwi_rows_of(call);
    int64_t count = rows.count * rows.samples;
    void *x = call->src[0], *y = call->src[1], *row_loss = call->scratch, *difference = call->workspace;
    if (has_labels(call->node)) {
        bw_status status = bwi_labels_check(call, tile);
        if (status != BW_OK) {
            return status;
        }
        call->kernels->crossentropy(count, rows.width, x, y, NULL, row_loss, difference);
    } else {
        void *labels = (unsigned char *)row_loss + (size_t)count * sizeof(float);
        loss->labels_of(count, rows.width, y, labels);
        call->kernels->crossentropy(count, rows.width, x, labels, NULL, row_loss, difference);
        loss->spread_target(count, rows.width, smoothing_of(call->node), x, y, labels, row_loss, difference);
    }
    loss->mean_of_rows(&rows, row_loss, bwi_rows_weight(call), call->dst);
    return BW_OK;
}

static bw_status backward(const bwi_call *call, const bwi_tile *tile)
{
    (void)tile;
    bwi_rows rows = bwi_rows_of(call);
    call->kernels->loss->scale_rows(&rows, call->workspace, bwi_rows_weight(call), call->diff_dst, call->diff_src[0]);
    return BW_OK;
}

const bwi_op bwi_op_crossentropy = {.name = "crossentropy",
                                    .backward_reads = BWI_READS_WORKSPACE | BWI_READS_SRC,
                                    .layout = BWI_LAYOUT_CHANNELS_LAST,
                                    .shape = shape,
                                    .prepare = prepare,
                                    .forward = forward,
                                    .backward = backward};
