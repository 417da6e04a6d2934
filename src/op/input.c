/* input: gathers a field of the tile's samples, straight into the layout its users want. */
#include "op/internal.h"

static bw_status shape(bwi_graph *graph, bw_node *node)
{
    (void)graph;
    const bwi_input_attributes *a = node->attributes;
    node->shape = a->shape;
    node->dtype = a->dtype;
    return BW_OK;
}

static bw_status forward(const bwi_call *call, const bwi_tile *tile)
{
    const bwi_input_attributes *a = call->node->attributes;
    bw_status status = tile->gather(tile, call);
    return status == BW_OK && a->role == BWI_ROLE_WEIGHT ? bwi_sample_weights_check(call, tile) : status;
}

const bwi_op bwi_op_input = {
    .name = "input", .flags = BWI_OP_INPUT | BWI_OP_NO_GRADIENT, .layout = BWI_LAYOUT_FREE, .shape = shape, .forward = forward};
