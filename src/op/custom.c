/* custom: an operator of the user's own, by callbacks (bw_operator). custom_constant: the same when nothing flows back. */
#include "op/op.h"

enum { MOST_INPUTS = 16 };

static bw_status shape(bwi_graph *graph, bw_node *node)
{
    const bw_operator *op = node->attributes;
    int ndims[MOST_INPUTS];
    const int64_t *shapes[MOST_INPUTS];
    if (node->inputs > MOST_INPUTS) {
        return bwi_fail(graph->ctx, BW_INVALID_ARGUMENT, "operator %s: at most %d inputs are possible, got %d", node->name,
                        MOST_INPUTS, node->inputs);
    }
    for (int k = 0; k < node->inputs; k++) {
        ndims[k] = node->input[k]->shape.ndim;
        shapes[k] = node->input[k]->shape.extent;
        if (node->input[k]->dtype != BW_F32) {
            return bwi_fail(graph->ctx, BW_INVALID_ARGUMENT, "operator %s: input %d is int32, expected float32", node->name, k);
        }
    }
    node->shape.ndim = op->shape(op->user, node->inputs, ndims, shapes, node->shape.extent);
    if (node->shape.ndim < 0 || node->shape.ndim >= BW_MAX_NDIM) {
        return bwi_fail(graph->ctx, BW_INVALID_ARGUMENT, "operator %s: its inputs' shapes do not fit", node->name);
    }
    for (int i = 0; i < node->shape.ndim; i++) {
        if (node->shape.extent[i] < 1) {
            return bwi_fail(graph->ctx, BW_INVALID_ARGUMENT, "operator %s: extent %d of its result is %lld", node->name, i,
                            (long long)node->shape.extent[i]);
        }
    }
    return BW_OK;
}

static bw_status report(const bwi_call *call, const bwi_tile *tile, const char *pass, bool ok)
{
    if (!ok) {
        snprintf(tile->error, BWI_ERROR_TEXT, "operator %s failed in its %s pass for sample %lld", call->node->name, pass,
                 (long long)tile->numbers[0]);
    }
    return ok ? BW_OK : BW_INVALID_ARGUMENT;
}

static bw_status forward(const bwi_call *call, const bwi_tile *tile)
{
    const bw_operator *op = call->node->attributes;
    const float *src[MOST_INPUTS];
    for (int k = 0; k < call->node->inputs; k++) {
        src[k] = call->src[k];
    }
    return report(call, tile, "forward", op->forward(op->user, call->samples, src, call->dst));
}

static bw_status backward(const bwi_call *call, const bwi_tile *tile)
{
    const bw_operator *op = call->node->attributes;
    const float *src[MOST_INPUTS];
    float *diff_src[MOST_INPUTS];
    for (int k = 0; k < call->node->inputs; k++) {
        src[k] = call->src[k];
        diff_src[k] = call->diff_src[k];
    }
    return report(call, tile, "backward", op->backward(op->user, call->samples, src, call->dst, call->diff_dst, diff_src));
}

const bwi_op bwi_op_custom = {.name = "custom",
                              .backward_reads = BWI_READS_SRC | BWI_READS_DST,
                              .layout = BWI_LAYOUT_CHANNELS_LAST,
                              .shape = shape,
                              .forward = forward,
                              .backward = backward};

const bwi_op bwi_op_custom_constant = {
    .name = "custom_constant", .flags = BWI_OP_NO_GRADIENT, .layout = BWI_LAYOUT_CHANNELS_LAST, .shape = shape, .forward = forward};
