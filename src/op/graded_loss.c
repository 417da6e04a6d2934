/*
 * graded_loss: a loss with several parameters (bwi_graded in kernel/loops/loss.h), one number per sample. Inputs: prediction,
 * target (class numbers for the generalised crossentropy), and optionally weights.
 */
#include "op/internal.h"

static bool has_labels(const bw_node *node)
{
    return ((const bwi_graded_attributes *)node->attributes)->kind == BWI_GRADED_GENERALIZED;
}

static bw_status shape(bwi_graph *graph, bw_node *node)
{
    const bwi_graded_attributes *g = node->attributes;
    bw_status status = bwi_rows_check(graph, node, has_labels(node));
    if (status == BW_OK && g->samples && node->inputs > 2 && bwi_shape_count(&node->input[2]->shape) > 1) {
        char found[160];
        const bwi_shape *weight = &node->input[2]->shape;
        status = bwi_fail(graph->ctx, BW_INVALID_ARGUMENT,
                          "%s: expected one weight a sample, since the loss is one number a sample, got %s", node->name,
                          bwi_format_shape(found, weight->ndim, weight->extent));
    }
    return status;
}

static bw_status forward(const bwi_call *call, const bwi_tile *tile)
{
    const bwi_graded_attributes *g = call->node->attributes;
    bwi_rows rows = bwi_rows_of(call);
    bw_status status = has_labels(call->node)               ? bwi_labels_check(call, tile)
                       : g->kind == BWI_GRADED_BINARY_FOCAL ? bwi_shares_check(call, tile)
                                                            : BW_OK;
    if (status == BW_OK) {
        call->kernels->loss->graded_forward(g, &rows, call->src[0], call->src[1], bwi_rows_weight(call), call->dst);
    }
    return status;
}

static bw_status backward(const bwi_call *call, const bwi_tile *tile)
{
    (void)tile;
    bwi_rows rows = bwi_rows_of(call);
    call->kernels->loss->graded_backward(call->node->attributes, &rows, call->src[0], call->src[1], bwi_rows_weight(call),
                                         call->diff_dst, call->diff_src[0]);
    return BW_OK;
}

const bwi_op bwi_op_graded_loss = {.name = "graded_loss",
                                   .backward_reads = BWI_READS_SRC,
                                   .layout = BWI_LAYOUT_CHANNELS_LAST,
                                   .shape = shape,
                                   .forward = forward,
                                   .backward = backward};
