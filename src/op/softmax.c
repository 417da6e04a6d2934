/* softmax over the last axis: y = exp(x) / sum exp(x); dx = y (dy - sum y dy). */
#include "op/op.h"

static bw_status shape(bwi_graph *graph, bw_node *node)
{
    node->shape = node->input[0]->shape;
    if (node->shape.ndim < 1) {
        return bwi_fail(graph->ctx, BW_INVALID_ARGUMENT, "layer %s: softmax needs at least one axis, got a single number a sample",
                        node->name);
    }
    return BW_OK;
}

static int64_t width(const bwi_call *call)
{
    return call->node->shape.extent[call->node->shape.ndim - 1];
}

static int64_t rows(const bwi_call *call)
{
    return call->samples * (bwi_shape_count(&call->node->shape) / width(call));
}

static bw_status forward(const bwi_call *call, const bwi_tile *tile)
{
    (void)tile;
    call->kernels->softmax_forward(rows(call), width(call), call->src[0], call->dst);
    return BW_OK;
}

static bw_status backward(const bwi_call *call, const bwi_tile *tile)
{
    (void)tile;
    call->kernels->softmax_backward(rows(call), width(call), call->dst, call->diff_dst, call->diff_src[0]);
    return BW_OK;
}

const bwi_op bwi_op_softmax = {.name = "softmax",
                               .backward_reads = BWI_READS_DST,
                               .layout = BWI_LAYOUT_CHANNELS_LAST,
                               .shape = shape,
                               .forward = forward,
                               .backward = backward};
