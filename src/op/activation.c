/*
 * activation: the formulas of kernel.h (bwi_activation). `activation` has those whose derivative follows from y, so that it
 * works in place; `activation_of_input` those that need x.
 */
#include "op/internal.h"

static bw_status forward(const bwi_call *call, const bwi_tile *tile)
{
    (void)tile;
    const bwi_activation_attributes *a = call->node->attributes;
    call->kernels->activate(a->kind, a->p, call->floats, call->src[0], call->dst);
    if (call->node->shape.ndim > 1) { /* some have f(0) != 0 */
        bwi_call_clear_padding(call, call->dst);
    }
    return BW_OK;
}

static bw_status backward(const bwi_call *call, const bwi_tile *tile)
{
    (void)tile;
    const bwi_activation_attributes *a = call->node->attributes;
    call->kernels->activate_backward(a->kind, a->p, call->floats, call->dst, call->diff_dst, call->diff_src[0]);
    return BW_OK;
}

static bw_status backward_of_input(const bwi_call *call, const bwi_tile *tile)
{
    (void)tile;
    const bwi_activation_attributes *a = call->node->attributes;
    call->kernels->activate_backward(a->kind, a->p, call->floats, call->src[0], call->diff_dst, call->diff_src[0]);
    return BW_OK;
}

const bwi_op bwi_op_activation = {.name = "activation",
                                  .flags = BWI_OP_IN_PLACE | BWI_OP_BACKWARD_IN_PLACE,
                                  .backward_reads = BWI_READS_DST,
                                  .layout = BWI_LAYOUT_SAME,
                                  .shape = bwi_shape_like_input,
                                  .forward = forward,
                                  .backward = backward};

const bwi_op bwi_op_activation_of_input = {.name = "activation_of_input",
                                           .flags = BWI_OP_IN_PLACE | BWI_OP_BACKWARD_IN_PLACE,
                                           .backward_reads = BWI_READS_SRC,
                                           .layout = BWI_LAYOUT_SAME,
                                           .shape = bwi_shape_like_input,
                                           .forward = forward,
                                           .backward = backward_of_input};
