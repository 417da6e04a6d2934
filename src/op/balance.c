/*
 * balance: one loss among several that are not divided by the same number. The gradients of a window are divided once, by its N
 * samples; where this loss is to be divided by D, the sum over the batch of each sample's mean weight, it is multiplied by N / D
 * before, and where it is a sum, by N. D is known only when all tiles have passed. Inputs: the loss, and the weights unless it is a
 * sum.
 */
#include "op/internal.h"

static int64_t sum_count(const bw_node *node)
{
    (void)node;
    return 2;
}

static int64_t statistics_count(const bw_node *node)
{
    (void)node;
    return 1;
}

static bw_status statistics(const bwi_call *call, const bwi_tile *tile)
{
    bool weighted = call->node->inputs > 1;
    call->kernels->metric->mean(call->samples, weighted ? bwi_shape_count(&call->node->input[1]->shape) : 0, call->src[0],
                                weighted ? call->src[1] : NULL, bwi_call_sums(call, tile));
    return BW_OK;
}

static void finish(const bwi_call *call, const void *sums, int64_t samples)
{
    call->kernels->loss->balance((double)samples, call->node->inputs > 1 ? sums : NULL, call->statistics);
}

static bw_status forward(const bwi_call *call, const bwi_tile *tile)
{
    (void)tile;
    call->kernels->loss->scale_by(call->samples, call->statistics, call->src[0], call->dst);
    return BW_OK;
}

static bw_status inference(const bwi_call *call, const bwi_tile *tile)
{
    (void)tile;
    call->kernels->memory->copy(call->dst, call->src[0], (size_t)call->samples * sizeof(float));
    return BW_OK;
}

static bw_status backward(const bwi_call *call, const bwi_tile *tile)
{
    (void)tile;
    call->kernels->loss->scale_by(call->samples, call->statistics, call->diff_dst, call->diff_src[0]);
    return BW_OK;
}

static const bwi_op_sums sums_table = {
    .count = sum_count, .statistics = statistics, .finished = statistics_count, .finish = finish};

const bwi_op bwi_op_balance = {.name = "balance",
                               .flags = BWI_OP_WHOLE_BATCH | BWI_OP_BACKWARD_IN_PLACE,
                               .layout = BWI_LAYOUT_CHANNELS_LAST,
                               .shape = bwi_shape_like_input,
                               .forward = forward,
                               .inference = inference,
                               .backward = backward,
                               .sums = &sums_table};
