/* mean: of one number a sample over the batch: sums[0] adds them, sums[1] counts samples. */
#include "op/op.h"

static bw_status shape(bwi_graph *graph, bw_node *node)
{
    (void)graph;
    node->shape = (bwi_shape){.rank = 0};
    return BW_OK;
}

static bw_status statistics(const bwi_call *call, const bwi_tile *tile)
{
    const float *values = call->src[0];
    double *sums = bwi_call_sums(call, tile), sum = 0;
    for (int64_t s = 0; s < call->samples; s++) {
        sum += (double)values[s];
    }
    sums[0] += sum;
    sums[1] += (double)call->samples;
    return BW_OK;
}

static int64_t sum_count(const bw_node *node)
{
    (void)node;
    return 2;
}

const bwi_op bwi_op_mean = {.name = "mean",
                            .flags = BWI_OP_SUMS | BWI_OP_NO_GRADIENT,
                            .layout = BWI_LAYOUT_PLAIN,
                            .shape = shape,
                            .sum_count = sum_count,
                            .statistics = statistics};
