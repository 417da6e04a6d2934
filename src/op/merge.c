/*
 * Ops that combine inputs of one shape, element by element. add: (x0 + x1 + ...) scale, or (x0 - x1 - ...) scale. binary: the
 * product, quotient, larger or smaller of two; where the two are equal, each gets half of the difference, as in JAX and PyTorch.
 */
#include "op/internal.h"

/* ---- add ---- */

static bw_status add_forward(const bwi_call *call, const bwi_tile *tile)
{
    (void)tile;
    const bwi_add_attributes *a = call->node->attributes;
    call->kernels->elementwise->sum(call->floats, call->node->inputs, call->src, a->subtract ? -1 : 1, a->scale, call->dst);
    return BW_OK;
}

/* The first input comes last, because its difference may be written over the output's. */
static bw_status add_backward(const bwi_call *call, const bwi_tile *tile)
{
    (void)tile;
    const bwi_add_attributes *a = call->node->attributes;
    for (int k = call->node->inputs - 1; k >= 0; k--) {
        float factor = k > 0 && a->subtract ? -a->scale : a->scale;
        if (!call->diff_src[k]) {
            continue;
        }
        if (factor != 1) {
            call->kernels->elementwise->scale(call->floats, factor, -0.0f, call->diff_dst, call->diff_src[k]);
        } else if (call->diff_src[k] != call->diff_dst) {
            call->kernels->memory->copy(call->diff_src[k], call->diff_dst, (size_t)call->floats * sizeof(float));
        }
    }
    return BW_OK;
}

const bwi_op bwi_op_add = {.name = "add",
                           .flags = BWI_OP_IN_PLACE | BWI_OP_BACKWARD_IN_PLACE,
                           .layout = BWI_LAYOUT_SAME,
                           .shape = bwi_shape_like_inputs,
                           .forward = add_forward,
                           .backward = add_backward};

/* ---- binary ---- */

static bw_status binary_shape(bwi_graph *graph, bw_node *node)
{
    if (node->inputs != 2) {
        return bwi_fail(graph->ctx, BW_INVALID_ARGUMENT, "layer %s: %s: expected two inputs, got %d", node->name, node->op->name,
                        node->inputs);
    }
    return bwi_shape_like_inputs(graph, node);
}

static bw_status binary_forward(const bwi_call *call, const bwi_tile *tile)
{
    (void)tile;
    const bwi_binary_attributes *b = call->node->attributes;
    call->kernels->elementwise->binary(b->kind, call->floats, call->src[0], call->src[1], call->dst);
    bwi_call_clear_padding(call, call->dst); /* 0 / 0 */
    return BW_OK;
}

static bw_status binary_backward(const bwi_call *call, const bwi_tile *tile)
{
    (void)tile;
    const bwi_binary_attributes *b = call->node->attributes;
    call->kernels->elementwise->binary_backward(b->kind, call->floats, call->src[0], call->src[1], call->diff_dst,
                                                call->diff_src[0], call->diff_src[1]);
    for (int k = 0; k < 2; k++) {
        if (call->diff_src[k]) {
            bwi_call_clear_padding(call, call->diff_src[k]);
        }
    }
    return BW_OK;
}

const bwi_op bwi_op_binary = {.name = "binary",
                              .flags = BWI_OP_IN_PLACE | BWI_OP_BACKWARD_IN_PLACE,
                              .backward_reads = BWI_READS_SRC,
                              .layout = BWI_LAYOUT_SAME,
                              .shape = binary_shape,
                              .forward = binary_forward,
                              .backward = binary_backward};
