/*
 * confusion: how predictions compare with binary targets, at some thresholds or by buckets of many (bwi_confusion in
 * kernel/loops/metric.h). Inputs: prediction, target, and optionally weights. The sums are true positives, false positives, false
 * negatives and true negatives for each threshold or, with buckets, the weights of yes, then of no, by bucket, for each label.
 */
#include "op/internal.h"

static bw_status shape(bwi_graph *graph, bw_node *node)
{
    const bwi_confusion *c = &((const bwi_confusion_attributes *)node->attributes)->confusion;
    const bwi_shape *prediction = &node->input[0]->shape;
    int64_t width = prediction->ndim ? prediction->extent[prediction->ndim - 1] : 1;
    if (c->last_class > width) {
        return bwi_fail(graph->ctx, BW_INVALID_ARGUMENT, "%s: class_id: expected a class from 0 to %lld, got %lld", node->name,
                        (long long)width - 1, (long long)c->first_class);
    }
    if (c->labels && (prediction->ndim != 1 || c->labels != width)) {
        char found[160];
        return bwi_fail(graph->ctx, BW_INVALID_ARGUMENT, "%s: multi_label: expected an output of one axis with %lld labels, got %s",
                        node->name, (long long)c->labels, bwi_format_shape(found, prediction->ndim, prediction->extent));
    }
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
    int64_t labels = a->confusion.labels ? a->confusion.labels : 1;
    return a->confusion.buckets ? 2 * a->confusion.buckets * labels : 4 * a->confusion.thresholds;
}

static const bwi_op_sums sums = {.count = sum_count, .statistics = statistics};

const bwi_op bwi_op_confusion = {.name = "confusion",
                                 .flags = BWI_OP_SUMS | BWI_OP_NO_GRADIENT,
                                 .layout = BWI_LAYOUT_CHANNELS_LAST,
                                 .shape = shape,
                                 .sums = &sums};
