/* relu: y = max(x, 0); dx = dy where y > 0. */
#include "op/op.h"

static bw_status shape(bwi_graph *graph, bw_node *node)
{
    (void)graph;
    node->shape = node->input[0]->shape;
    return BW_OK;
}

static bw_status forward(const bwi_call *call, const bwi_tile *tile)
{
    (void)tile;
    call->kernels->relu_forward(call->floats, call->src[0], call->dst);
    return BW_OK;
}

static bw_status backward(const bwi_call *call, const bwi_tile *tile)
{
    (void)tile;
    call->kernels->relu_backward(call->floats, call->dst, call->diff_dst, call->diff_src[0]);
    return BW_OK;
}

const bwi_op bwi_op_relu = {.name = "relu",
                            .flags = BWI_OP_IN_PLACE | BWI_OP_BACKWARD_IN_PLACE,
                            .backward_reads = BWI_READS_DST,
                            .layout = BWI_LAYOUT_SAME,
                            .shape = shape,
                            .forward = forward,
                            .backward = backward};
