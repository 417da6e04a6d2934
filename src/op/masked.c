/*
 * masked_average: the mean over those positions (first axis) that a mask counts: y[c] = sum_t m[t] x[t][c] / sum_t m[t]; zero if it
 * counts none. Inputs: x (positions, channels), mask (positions).
 *
 * value_mask: 1 for positions at which one of the numbers along the last axis is not a given one.
 *
 * mask_any: 1 where one of several masks is 1.
 *
 * mask_weights: a weight for each position: the mask, times the sample weight if there is one (one for the sample, or one for each
 * position).
 */
#include "op/op.h"

/* ---- masked_average ---- */

static bw_status average_shape(bwi_graph *graph, bw_node *node)
{
    const bwi_shape *x = &node->input[0]->shape, *mask = &node->input[1]->shape;
    if (x->ndim != 2 || bwi_shape_count(mask) != x->extent[0]) {
        char a[160], b[160];
        return bwi_fail(graph->ctx, BW_INVALID_ARGUMENT,
                        "layer %s: expected positions and channels, and a mask for each position, got %s and %s", node->name,
                        bwi_format_shape(a, x->ndim, x->extent), bwi_format_shape(b, mask->ndim, mask->extent));
    }
    node->shape = (bwi_shape){.ndim = 1, .extent = {x->extent[1]}};
    return BW_OK;
}

static bw_status average_forward(const bwi_call *call, const bwi_tile *tile)
{
    (void)tile;
    const int64_t *extent = call->node->input[0]->shape.extent;
    call->kernels->elementwise->masked_average(call->samples, extent[0], extent[1], call->src[0], call->src[1], call->dst);
    return BW_OK;
}

static bw_status average_backward(const bwi_call *call, const bwi_tile *tile)
{
    (void)tile;
    const int64_t *extent = call->node->input[0]->shape.extent;
    call->kernels->elementwise->masked_average_backward(call->samples, extent[0], extent[1], call->src[1], call->diff_dst,
                                                        call->diff_src[0]);
    return BW_OK;
}

const bwi_op bwi_op_masked_average = {.name = "masked_average",
                                      .backward_reads = BWI_READS_SRC,
                                      .layout = BWI_LAYOUT_CHANNELS_LAST,
                                      .shape = average_shape,
                                      .forward = average_forward,
                                      .backward = average_backward};

/* ---- mask_weights ---- */

static bw_status weights_shape(bwi_graph *graph, bw_node *node)
{
    node->shape = node->input[0]->shape;
    int64_t positions = bwi_shape_count(&node->shape), weights = node->inputs > 1 ? bwi_shape_count(&node->input[1]->shape) : 1;
    if (weights != 1 && weights != positions) {
        char found[160];
        return bwi_fail(graph->ctx, BW_INVALID_ARGUMENT,
                        "%s: expected one sample weight or one for each of the output's %lld positions, got %s", node->name,
                        (long long)positions, bwi_format_shape(found, node->input[1]->shape.ndim, node->input[1]->shape.extent));
    }
    return BW_OK;
}

static bw_status weights_forward(const bwi_call *call, const bwi_tile *tile)
{
    (void)tile;
    const bw_node *node = call->node;
    int64_t weights = node->inputs > 1 ? bwi_shape_count(&node->input[1]->shape) : 0;
    call->kernels->elementwise->mask_weights(call->samples, bwi_shape_count(&node->shape), weights, call->src[0],
                                             weights ? call->src[1] : NULL, call->dst);
    return BW_OK;
}

const bwi_op bwi_op_mask_weights = {.name = "mask_weights",
                                    .flags = BWI_OP_NO_GRADIENT,
                                    .layout = BWI_LAYOUT_CHANNELS_LAST,
                                    .shape = weights_shape,
                                    .forward = weights_forward};

/* ---- value_mask ---- */

static bw_status value_shape(bwi_graph *graph, bw_node *node)
{
    node->shape = node->input[0]->shape;
    if (node->shape.ndim < 2 || node->input[0]->dtype != BW_F32) {
        char found[160];
        return bwi_fail(graph->ctx, BW_INVALID_ARGUMENT, "layer %s: expected positions and channels, got %s (%s)", node->name,
                        bwi_format_shape(found, node->shape.ndim, node->shape.extent), bwi_dtype_name(node->input[0]->dtype));
    }
    node->shape.ndim--;
    return BW_OK;
}

static bw_status value_forward(const bwi_call *call, const bwi_tile *tile)
{
    (void)tile;
    const bw_node *node = call->node;
    const bwi_value_mask_attributes *a = node->attributes;
    int64_t width = node->input[0]->shape.extent[node->shape.ndim];
    call->kernels->elementwise->mask_values(call->samples * bwi_shape_count(&node->shape), width, a->value, call->src[0],
                                            call->dst);
    return BW_OK;
}

const bwi_op bwi_op_value_mask = {.name = "value_mask",
                                  .flags = BWI_OP_NO_GRADIENT,
                                  .layout = BWI_LAYOUT_CHANNELS_LAST,
                                  .shape = value_shape,
                                  .forward = value_forward};

/* ---- mask_any ---- */

static bw_status any_shape(bwi_graph *graph, bw_node *node)
{
    node->shape = node->input[0]->shape;
    for (int k = 1; k < node->inputs; k++) {
        if (!bwi_shape_equal(&node->shape, &node->input[k]->shape)) {
            return bwi_fail(graph->ctx, BW_INVALID_ARGUMENT, "layer %s: the masks of its inputs differ in shape", node->name);
        }
    }
    return BW_OK;
}

static bw_status any_forward(const bwi_call *call, const bwi_tile *tile)
{
    (void)tile;
    call->kernels->elementwise->mask_any(call->samples * bwi_shape_count(&call->node->shape), call->node->inputs, call->src,
                                         call->dst);
    return BW_OK;
}

const bwi_op bwi_op_mask_any = {.name = "mask_any",
                                .flags = BWI_OP_NO_GRADIENT,
                                .layout = BWI_LAYOUT_CHANNELS_LAST,
                                .shape = any_shape,
                                .forward = any_forward};
