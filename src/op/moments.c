/*
 * moments: what a Normalization layer is fitted by. For each of its means the sum over the batch of x - mean, and behind all of
 * these the sums of (x - mean)^2: differences from a mean that is nearly right stay exact where values are large and vary little.
 * Input: what the layer takes; variable: its mean; attributes: the layer's.
 */
#include "op/internal.h"

static bw_status shape(bwi_graph *graph, bw_node *node)
{
    (void)graph;
    node->shape.ndim = 0;
    return BW_OK;
}

static bw_status statistics(const bwi_call *call, const bwi_tile *tile)
{
    const bwi_normalization_attributes *a = call->node->attributes;
    bwi_spread spread = bwi_spread_over(&call->node->input[0]->shape, &a->spread);
    call->kernels->metric->moments(&spread, call->samples, call->weights[0], call->src[0], bwi_call_sums(call, tile));
    return BW_OK;
}

static int64_t sum_count(const bw_node *node)
{
    return 2 * bwi_shape_count(&node->variable[0]->shape);
}

static const bwi_op_sums sums = {.count = sum_count, .statistics = statistics};

const bwi_op bwi_op_moments = {.name = "moments",
                               .flags = BWI_OP_SUMS | BWI_OP_NO_GRADIENT,
                               .layout = BWI_LAYOUT_CHANNELS_LAST,
                               .shape = shape,
                               .sums = &sums};
