/* unary: functions of each element by formula (bwi_unary_kind), for custom losses and layers; derivatives from x. */
#include "op/internal.h"

static bw_status forward(const bwi_call *call, const bwi_tile *tile)
{
    (void)tile;
    const bwi_unary_attributes *u = call->node->attributes;
    call->kernels->elementwise->unary(u->kind, u->a, u->b, call->floats, call->src[0], call->dst);
    return BW_OK;
}

static bw_status backward(const bwi_call *call, const bwi_tile *tile)
{
    (void)tile;
    const bwi_unary_attributes *u = call->node->attributes;
    call->kernels->elementwise->unary_backward(u->kind, u->a, u->b, call->floats, call->src[0], call->diff_dst, call->diff_src[0]);
    return BW_OK;
}

const bwi_op bwi_op_unary = {.name = "unary",
                             .flags = BWI_OP_IN_PLACE | BWI_OP_BACKWARD_IN_PLACE,
                             .backward_reads = BWI_READS_SRC,
                             .layout = BWI_LAYOUT_CHANNELS_LAST,
                             .shape = bwi_shape_like_input,
                             .forward = forward,
                             .backward = backward};
