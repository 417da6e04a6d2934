/*
 * correlation: sums[0] adds the correlations of the rows of prediction and target, sums[1] the weights. Inputs: prediction, target,
 * and optionally weights.
 */
#include "op/internal.h"

static bw_status shape(bwi_graph *graph, bw_node *node)
{
    return bwi_rows_check(graph, node, false);
}

static bw_status statistics(const bwi_call *call, const bwi_tile *tile)
{
    const bwi_correlation_attributes *a = call->node->attributes;
    bwi_rows rows = bwi_rows_of(call);
    call->kernels->metric->correlation(a->kind, &rows, call->src[0], call->src[1], bwi_rows_weight(call),
                                       bwi_call_sums(call, tile));
    return BW_OK;
}

static int64_t sum_count(const bw_node *node)
{
    (void)node;
    return 2;
}

static const bwi_op_sums sums = {.count = sum_count, .statistics = statistics};

const bwi_op bwi_op_correlation = {.name = "correlation",
                                   .flags = BWI_OP_SUMS | BWI_OP_NO_GRADIENT,
                                   .layout = BWI_LAYOUT_CHANNELS_LAST,
                                   .shape = shape,
                                   .sums = &sums};
