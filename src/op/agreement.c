/*
 * agreement: for each class, sums of true positives, false positives and false negatives, from which F-scores are computed. Inputs:
 * prediction, a number for each class as the target, and optionally weights.
 */
#include "op/internal.h"

static bw_status shape(bwi_graph *graph, bw_node *node)
{
    const bwi_shape *prediction = &node->input[0]->shape;
    if (prediction->ndim != 1) {
        char found[160];
        return bwi_fail(graph->ctx, BW_INVALID_ARGUMENT, "%s: expected an output with one axis, got %s", node->name,
                        bwi_format_shape(found, prediction->ndim, prediction->extent));
    }
    return bwi_rows_check(graph, node, false);
}

static bw_status statistics(const bwi_call *call, const bwi_tile *tile)
{
    const bwi_agreement_attributes *a = call->node->attributes;
    bwi_rows rows = bwi_rows_of(call);
    call->kernels->metric->agreement(a->threshold, &rows, call->src[0], call->src[1], bwi_rows_weight(call),
                                     bwi_call_sums(call, tile));
    return BW_OK;
}

static int64_t sum_count(const bw_node *node)
{
    return 3 * node->input[0]->shape.extent[0];
}

static const bwi_op_sums sums = {.count = sum_count, .statistics = statistics};

const bwi_op bwi_op_agreement = {.name = "agreement",
                                 .flags = BWI_OP_SUMS | BWI_OP_NO_GRADIENT,
                                 .layout = BWI_LAYOUT_CHANNELS_LAST,
                                 .shape = shape,
                                 .sums = &sums};
