/*
 * mean: over the batch, of one number a sample: sums[0] adds them, sums[1] counts samples. A second input holds weights that
 * the numbers have in them already: then sums[1] adds each sample's mean weight.
 */
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
    double *sums = bwi_call_sums(call, tile), sum = 0, count = (double)call->samples;
    for (int64_t s = 0; s < call->samples; s++) {
        sum += (double)values[s];
    }
    if (call->node->inputs > 1) {
        const float *weights = call->src[1];
        int64_t each = bwi_shape_count(&call->node->input[1]->shape);
        count = 0;
        for (int64_t i = 0; i < each * call->samples; i++) {
            count += (double)weights[i];
        }
        count /= (double)each;
    }
    sums[0] += sum;
    sums[1] += count;
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
