/*
 * crossentropy: sparse categorical crossentropy from logits, one number a sample:
 * loss = weight * (log sum exp x - x[label]), averaged over the sample's rows if it has several.
 * Inputs: logits, labels (int32), and optionally a weight a sample. Forward keeps (softmax - one-hot) for backward.
 */
#include "op/op.h"

static int64_t width_of(const bw_node *node)
{
    return node->input[0]->shape.extent[node->input[0]->shape.rank - 1];
}
static int64_t rows_of(const bw_node *node)
{
    return bwi_shape_count(&node->input[0]->shape) / width_of(node);
}

static bw_status shape(bwi_graph *graph, bw_node *node)
{
    const bwi_shape *logits = &node->input[0]->shape, *labels = &node->input[1]->shape;
    char a[160], b[160];
    if (logits->rank < 1 || bwi_shape_count(labels) != rows_of(node)) {
        return bwi_fail(
            graph->ctx, BW_INVALID_ARGUMENT,
            "sparse_categorical_crossentropy: expected one label for each row of the output %s, got targets of shape %s",
            bwi_format_shape(a, logits->rank, logits->extent), bwi_format_shape(b, labels->rank, labels->extent));
    }
    node->shape = (bwi_shape){.rank = 0};
    return BW_OK;
}

static bw_status prepare(bwi_prepare *p)
{
    size_t rows = (size_t)(rows_of(p->node) * p->samples);
    p->workspace_bytes = rows * (size_t)width_of(p->node) * sizeof(float);
    p->scratch_bytes = rows * sizeof(float);
    return BW_OK;
}

static bw_status check_labels(const bwi_call *call, const bwi_tile *tile)
{
    const int32_t *labels = call->src[1];
    int64_t width = width_of(call->node), rows = rows_of(call->node);
    for (int64_t i = 0; i < rows * call->samples; i++) {
        if (labels[i] < 0 || labels[i] >= width) {
            snprintf(tile->trouble, BWI_TROUBLE, "label %d of sample %lld is outside 0..%lld: the output layer has %lld classes",
                     labels[i], (long long)tile->numbers[i / rows], (long long)width - 1, (long long)width);
            return BW_INVALID_ARGUMENT;
        }
    }
    return BW_OK;
}

static bw_status forward(const bwi_call *call, const bwi_tile *tile)
{
    bw_status status = check_labels(call, tile);
    if (status != BW_OK) {
        return status;
    }
    int64_t rows = rows_of(call->node);
    float *row_loss = call->scratch, *loss = call->dst;
    const float *weight = call->node->inputs > 2 ? call->src[2] : NULL;
    call->kernels->crossentropy(rows * call->samples, width_of(call->node), call->src[0], call->src[1], NULL, row_loss,
                                call->workspace);
    for (int64_t s = 0; s < call->samples; s++) {
        float sum = 0;
        for (int64_t r = 0; r < rows; r++) {
            sum += row_loss[s * rows + r];
        }
        loss[s] = sum / (float)rows * (weight ? weight[s] : 1);
    }
    return BW_OK;
}

static bw_status backward(const bwi_call *call, const bwi_tile *tile)
{
    (void)tile;
    int64_t rows = rows_of(call->node), count = rows * width_of(call->node);
    const float *weight = call->node->inputs > 2 ? call->src[2] : NULL, *from = call->workspace, *diff_dst = call->diff_dst;
    float *to = call->diff_src[0];
    for (int64_t s = 0; s < call->samples; s++) {
        float factor = diff_dst[s] * (weight ? weight[s] : 1) / (float)rows;
        for (int64_t i = s * count; i < (s + 1) * count; i++) {
            to[i] = from[i] * factor;
        }
    }
    return BW_OK;
}

const bwi_op bwi_op_crossentropy = {.name = "crossentropy",
                                    .backward_reads = BWI_READS_WORKSPACE | BWI_READS_SRC,
                                    .layout = BWI_LAYOUT_PLAIN,
                                    .shape = shape,
                                    .prepare = prepare,
                                    .forward = forward,
                                    .backward = backward};
