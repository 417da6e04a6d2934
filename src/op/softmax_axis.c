/* softmax over any axis: y = exp(x - max) / sum exp(x - max); dx = y (dy - sum y dy), sums and maxima by columns. */
#include "op/internal.h"

static int axis_of(const bw_node *node)
{
    return ((const bwi_axis_attributes *)node->attributes)->axis;
}

static bw_status shape(bwi_graph *graph, bw_node *node)
{
    bw_status status = bwi_shape_like_input(graph, node);
    if (status == BW_OK && (axis_of(node) < 0 || axis_of(node) >= node->shape.ndim)) {
        status = bwi_fail(graph->ctx, BW_INVALID_ARGUMENT, "layer %s: softmax: there is no axis %d among %d", node->name,
                          axis_of(node), node->shape.ndim);
    }
    return status;
}

static bwi_around around_of(const bwi_call *call)
{
    bwi_around around = bwi_shape_around(&call->node->shape, axis_of(call->node));
    around.outer *= call->samples;
    return around;
}

static bw_status forward(const bwi_call *call, const bwi_tile *tile)
{
    (void)tile;
    bwi_around around = around_of(call);
    call->kernels->softmax_axis_forward(&around, call->src[0], call->dst);
    return BW_OK;
}

static bw_status backward(const bwi_call *call, const bwi_tile *tile)
{
    (void)tile;
    bwi_around around = around_of(call);
    call->kernels->softmax_axis_backward(&around, call->dst, call->diff_dst, call->diff_src[0]);
    return BW_OK;
}

const bwi_op bwi_op_softmax_axis = {.name = "softmax_axis",
                                    .flags = BWI_OP_BACKWARD_IN_PLACE,
                                    .backward_reads = BWI_READS_DST,
                                    .layout = BWI_LAYOUT_CHANNELS_LAST,
                                    .shape = shape,
                                    .forward = forward,
                                    .backward = backward};
