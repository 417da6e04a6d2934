/*
 * accuracy: sums[0] adds the weights of predictions that are right, sums[1] all weights. Inputs: prediction (for classes any
 * order-preserving form: logits do), target, and optionally weights.
 */
#include "op/internal.h"

static bool has_labels(bwi_accuracy_kind kind)
{
    return kind == BWI_ACCURACY_SPARSE || kind == BWI_ACCURACY_SPARSE_TOP;
}

static bw_status shape(bwi_graph *graph, bw_node *node)
{
    const bwi_accuracy_attributes *a = node->attributes;
    return bwi_rows_check(graph, node, has_labels(a->kind));
}

static bw_status statistics(const bwi_call *call, const bwi_tile *tile)
{
    bwi_rows rows = bwi_rows_of(call);
    call->kernels->metric->accuracy(call->node->attributes, &rows, call->src[0], call->src[1], bwi_rows_weight(call),
                                    bwi_call_sums(call, tile));
    return BW_OK;
}

static int64_t sum_count(const bw_node *node)
{
    (void)node;
    return 2;
}

static const bwi_op_sums sums = {.count = sum_count, .statistics = statistics};

const bwi_op bwi_op_accuracy = {.name = "accuracy",
                                .flags = BWI_OP_SUMS | BWI_OP_NO_GRADIENT,
                                .layout = BWI_LAYOUT_CHANNELS_LAST,
                                .shape = shape,
                                .sums = &sums};
