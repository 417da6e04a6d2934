/*
 * mean: over the batch, of one number a sample: sums[0] adds them, sums[1] counts samples. A second input holds weights that
 * the numbers have in them already: then sums[1] adds each sample's mean weight.
 */
#include "op/op.h"

static bw_status shape(bwi_graph *graph, bw_node *node)
{
    (void)graph;
    node->shape = (bwi_shape){.ndim = 0};
    return BW_OK;
}

/* Four sums at a time: they do not wait for each other. */
static double sum_of(int64_t count, const float *values)
{
    double sum[4] = {0};
    int64_t i = 0;
    for (; i + 4 <= count; i += 4) {
        for (int k = 0; k < 4; k++) {
            sum[k] += (double)values[i + k];
        }
    }
    for (; i < count; i++) {
        sum[0] += (double)values[i];
    }
    return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

static bw_status statistics(const bwi_call *call, const bwi_tile *tile)
{
    double *sums = bwi_call_sums(call, tile), count = (double)call->samples;
    if (call->node->inputs > 1) {
        int64_t each = bwi_shape_count(&call->node->input[1]->shape);
        count = sum_of(each * call->samples, call->src[1]) / (double)each;
    }
    sums[0] += sum_of(call->samples, call->src[0]);
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
                            .layout = BWI_LAYOUT_CHANNELS_LAST,
                            .shape = shape,
                            .sum_count = sum_count,
                            .statistics = statistics};
