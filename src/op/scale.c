/*
 * Fixed linear maps. scale: y = x scale + offset. normalization: y = (x - mean) / deviation, or x deviation + mean, where mean
 * and deviation = max(sqrt(variance), 1e-7) come from variables that are never trained.
 */
#include "op/internal.h"

/* ---- scale ---- */

static bw_status scale_forward(const bwi_call *call, const bwi_tile *tile)
{
    (void)tile;
    const bwi_scale_attributes *a = call->node->attributes;
    call->kernels->elementwise->scale(call->floats, a->scale, a->offset, call->src[0], call->dst);
    bwi_call_clear_padding(call, call->dst);
    return BW_OK;
}

static bw_status scale_backward(const bwi_call *call, const bwi_tile *tile)
{
    (void)tile;
    const bwi_scale_attributes *a = call->node->attributes;
    call->kernels->elementwise->scale(call->floats, a->scale, 0, call->diff_dst, call->diff_src[0]);
    return BW_OK;
}

const bwi_op bwi_op_scale = {.name = "scale",
                             .flags = BWI_OP_IN_PLACE | BWI_OP_BACKWARD_IN_PLACE,
                             .layout = BWI_LAYOUT_SAME,
                             .shape = bwi_shape_like_input,
                             .forward = scale_forward,
                             .backward = scale_backward};

/* ---- normalization ---- */

static bw_status normalization_shape(bwi_graph *graph, bw_node *node)
{
    const bwi_normalization_attributes *a = node->attributes;
    bw_status status = bwi_shape_like_input(graph, node);
    bwi_shape both;
    char expected[160], found[160];
    if (status == BW_OK && (!bwi_shape_broadcast(&node->shape, &a->spread, &both) || !bwi_shape_equal(&both, &node->shape))) {
        status = bwi_fail(graph->ctx, BW_INVALID_ARGUMENT, "layer %s: mean and variance over %s do not fit values of shape %s",
                          node->name, bwi_format_shape(found, a->spread.ndim, a->spread.extent),
                          bwi_format_shape(expected, node->shape.ndim, node->shape.extent));
    }
    return status;
}

/* The scratch memory holds the factor that belongs to each mean. */
static bw_status normalization_prepare(bwi_prepare *p)
{
    p->scratch_bytes = (size_t)p->node->variable[0]->count * sizeof(float);
    return BW_OK;
}

static void make_factors(const bwi_call *call, const bwi_normalization_attributes *a)
{
    call->kernels->elementwise->deviation_factors(call->node->variable[0]->count, a->invert, call->weights[1], call->scratch);
}

static bw_status normalization_forward(const bwi_call *call, const bwi_tile *tile)
{
    (void)tile;
    const bwi_normalization_attributes *a = call->node->attributes;
    bwi_spread spread = bwi_spread_over(&call->node->shape, &a->spread);
    make_factors(call, a);
    call->kernels->elementwise->normalize(&spread, call->samples, a->invert, call->weights[0], call->scratch, call->src[0],
                                          call->dst);
    return BW_OK;
}

static bw_status normalization_backward(const bwi_call *call, const bwi_tile *tile)
{
    (void)tile;
    const bwi_normalization_attributes *a = call->node->attributes;
    bwi_spread spread = bwi_spread_over(&call->node->shape, &a->spread);
    make_factors(call, a);
    call->kernels->elementwise->normalize_backward(&spread, call->samples, call->scratch, call->diff_dst, call->diff_src[0]);
    return BW_OK;
}

const bwi_op bwi_op_normalization = {.name = "normalization",
                                     .flags = BWI_OP_IN_PLACE | BWI_OP_BACKWARD_IN_PLACE,
                                     .layout = BWI_LAYOUT_CHANNELS_LAST,
                                     .shape = normalization_shape,
                                     .prepare = normalization_prepare,
                                     .forward = normalization_forward,
                                     .backward = normalization_backward};
