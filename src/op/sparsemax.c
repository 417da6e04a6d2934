/* sparsemax over the last axis, as Keras computes it (kernel/loops/reduce.h). */
#include "op/internal.h"

static bw_status shape(bwi_graph *graph, bw_node *node)
{
    bw_status status = bwi_shape_like_input(graph, node);
    if (status == BW_OK && node->shape.ndim < 1) {
        status = bwi_fail(graph->ctx, BW_INVALID_ARGUMENT, "layer %s: sparsemax needs at least one axis", node->name);
    }
    return status;
}

static bwi_around around_of(const bwi_call *call)
{
    bwi_around around = bwi_shape_around(&call->node->shape, call->node->shape.ndim - 1);
    around.outer *= call->samples;
    return around;
}

static bw_status forward(const bwi_call *call, const bwi_tile *tile)
{
    (void)tile;
    bwi_around around = around_of(call);
    call->kernels->reduce->sparsemax(&around, call->src[0], call->dst);
    return BW_OK;
}

static bw_status backward(const bwi_call *call, const bwi_tile *tile)
{
    (void)tile;
    bwi_around around = around_of(call);
    call->kernels->reduce->sparsemax_backward(&around, call->src[0], call->diff_dst, call->diff_src[0]);
    return BW_OK;
}

const bwi_op bwi_op_sparsemax = {.name = "sparsemax",
                                 .backward_reads = BWI_READS_SRC,
                                 .layout = BWI_LAYOUT_CHANNELS_LAST,
                                 .shape = shape,
                                 .forward = forward,
                                 .backward = backward};
