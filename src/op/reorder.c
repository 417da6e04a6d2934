/* reorder: the same image in another channel block. The plan's lowering puts it between ops that disagree about the block. */
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
    bwi_image from = bwi_node_image(call->node->input[0], call->samples);
    call->kernels->reorder(&from, call->src[0], call->node->block, call->dst);
    return BW_OK;
}

static bw_status backward(const bwi_call *call, const bwi_tile *tile)
{
    (void)tile;
    bwi_image from = bwi_node_image(call->node, call->samples);
    call->kernels->reorder(&from, call->diff_dst, call->node->input[0]->block, call->diff_src[0]);
    return BW_OK;
}

const bwi_op bwi_op_reorder = {
    .name = "reorder", .layout = BWI_LAYOUT_FREE, .shape = shape, .forward = forward, .backward = backward};
