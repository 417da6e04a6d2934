/*
 * confusion: how predictions compare with binary targets, at one threshold or by buckets of thresholds (bwi_confusion in
 * kernel/loops/metric.h). Inputs: prediction, target, and optionally weights. The sums are true positives, false positives and
 * false negatives or, with buckets, the weights of yes, then of no, by bucket.
 */
#include "op/internal.h"

static bw_status shape(bwi_graph *graph, bw_node *node)
{
    return bwi_rows_check(graph, node, false);
}

static bw_status statistics(const bwi_call *call, const bwi_tile *tile)
{
    const bwi_confusion_attributes *a = call->node->attributes;
    bwi_rows rows = bwi_rows_of(call);
    call->kernels->metric->confusion(&a->confusion, &rows, call->src[0], call->src[1], bwi_rows_weight(call),
                                     bwi_call_sums(call, tile));
    return BW_OK;
}

static int64_t sum_count(const bw_node *node)
{
    const bwi_confusion_attributes *a = node->attributes;
    return a->confusion.buckets ? 2 * a->confusion.buckets : 3;
}

static const bwi_op_sums sums = {.count = sum_count, .statistics = statistics};

const bwi_op bwi_op_confusion = {.name = "confusion",
                                 .flags = BWI_OP_SUMS | BWI_OP_NO_GRADIENT,
                                 .layout = BWI_LAYOUT_CHANNELS_LAST,
                                 .shape = shape,
                                 .sums = &sums};
