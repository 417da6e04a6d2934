/*
 * squared_error: the mean over a sample's outputs of (prediction - target)^2, times its weight; one number a sample.
 * Inputs: prediction, target, and optionally a weight a sample.
 */
#include "op/op.h"

static bw_status shape(bwi_graph *graph, bw_node *node)
{
    const bwi_shape *prediction = &node->input[0]->shape, *target = &node->input[1]->shape;
    char a[160], b[160];
    if (bwi_shape_count(prediction) != bwi_shape_count(target)) {
        return bwi_fail(graph->ctx, BW_INVALID_ARGUMENT, "mean_squared_error: expected targets of the output's shape %s, got %s",
                        bwi_format_shape(a, prediction->rank, prediction->extent),
                        bwi_format_shape(b, target->rank, target->extent));
    }
    node->shape = (bwi_shape){.rank = 0};
    return BW_OK;
}

static bw_status forward(const bwi_call *call, const bwi_tile *tile)
{
    (void)tile;
    int64_t count = bwi_shape_count(&call->node->input[0]->shape);
    const float *x = call->src[0], *y = call->src[1], *weight = call->node->inputs > 2 ? call->src[2] : NULL;
    float *loss = call->dst;
    for (int64_t s = 0; s < call->samples; s++) {
        double sum = 0;
        for (int64_t i = s * count; i < (s + 1) * count; i++) {
            double e = (double)x[i] - (double)y[i];
            sum += e * e;
        }
        loss[s] = (float)(sum / (double)count) * (weight ? weight[s] : 1);
    }
    return BW_OK;
}

static bw_status backward(const bwi_call *call, const bwi_tile *tile)
{
    (void)tile;
    int64_t count = bwi_shape_count(&call->node->input[0]->shape);
    const float *x = call->src[0], *y = call->src[1], *weight = call->node->inputs > 2 ? call->src[2] : NULL,
                *diff_dst = call->diff_dst;
    float *to = call->diff_src[0];
    for (int64_t s = 0; s < call->samples; s++) {
        float factor = 2 * diff_dst[s] * (weight ? weight[s] : 1) / (float)count;
        for (int64_t i = s * count; i < (s + 1) * count; i++) {
            to[i] = factor * (x[i] - y[i]);
        }
    }
    return BW_OK;
}

const bwi_op bwi_op_squared_error = {.name = "squared_error",
                                     .backward_reads = BWI_READS_SRC,
                                     .layout = BWI_LAYOUT_PLAIN,
                                     .shape = shape,
                                     .forward = forward,
                                     .backward = backward};
