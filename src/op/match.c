/*
 * match: how often each class was predicted where each was expected, from which intersections over unions are computed. Inputs:
 * prediction, target (bwi_match_kind says which), and optionally weights.
 */
#include "op/internal.h"

static const bwi_match *match_of(const bw_node *node)
{
    return &((const bwi_match_attributes *)node->attributes)->match;
}

static bw_status shape(bwi_graph *graph, bw_node *node)
{
    const bwi_match *o = match_of(node);
    const bwi_shape *prediction = &node->input[0]->shape;
    int64_t width = prediction->ndim ? prediction->extent[prediction->ndim - 1] : 1;
    if (o->kind <= BWI_MATCH_ONE_HOT && width > o->classes) {
        return bwi_fail(graph->ctx, BW_INVALID_ARGUMENT, "%s: num_classes: the output has %lld classes, got %lld", node->name,
                        (long long)width, (long long)o->classes);
    }
    return bwi_rows_check(graph, node, o->kind == BWI_MATCH_LABELS);
}

static bw_status statistics(const bwi_call *call, const bwi_tile *tile)
{
    bwi_rows rows = bwi_rows_of(call);
    call->kernels->metric->match(match_of(call->node), &rows, call->src[0], call->src[1], bwi_rows_weight(call),
                                 bwi_call_sums(call, tile));
    return BW_OK;
}

static int64_t sum_count(const bw_node *node)
{
    return match_of(node)->classes * match_of(node)->classes;
}

static const bwi_op_sums sums = {.count = sum_count, .statistics = statistics};

const bwi_op bwi_op_match = {
    .name = "match", .flags = BWI_OP_SUMS | BWI_OP_NO_GRADIENT, .layout = BWI_LAYOUT_CHANNELS_LAST, .shape = shape, .sums = &sums};
