/*
 * mean: the mean over the batch of one number per sample: sums[0] adds the numbers, sums[1] counts samples. If a second input holds
 * the weights that the numbers already contain, sums[1] adds each sample's mean weight instead.
 */
#include "op/op.h"

static bw_status shape(bwi_graph *graph, bw_node *node)
{
    (void)graph;
    node->shape = (bwi_shape){.ndim = 0};
    return BW_OK;
}

static bw_status statistics(const bwi_call *call, const bwi_tile *tile)
{
    bool weighted = call->node->inputs > 1;
    call->kernels->metric->mean(call->samples, weighted ? bwi_shape_count(&call->node->input[1]->shape) : 0, call->src[0],
                                weighted ? call->src[1] : NULL, bwi_call_sums(call, tile));
    return BW_OK;
}

static int64_t sum_count(const bw_node *node)
{
    (void)node;
    return 2;
}

static const bwi_op_sums sums = {.count = sum_count, .statistics = statistics};

const bwi_op bwi_op_mean = {
    .name = "mean", .flags = BWI_OP_SUMS | BWI_OP_NO_GRADIENT, .layout = BWI_LAYOUT_CHANNELS_LAST, .shape = shape, .sums = &sums};
