/*
 * Fixed linear maps. scale: y = x scale + offset. normalization: y = (x - mean) / deviation, or x deviation + mean, where mean
 * and deviation = max(sqrt(variance), 1e-7) come from variables that are never trained.
 */
#include "op/op.h"

#include <math.h>

/* ---- scale ---- */

static void scale_by(const bwi_call *call, const float *x, float *y, float scale, float offset)
{
    int64_t count = call->floats;
    for (int64_t i = 0; i < count; i++) {
        y[i] = x[i] * scale + offset;
    }
}

static bw_status scale_forward(const bwi_call *call, const bwi_tile *tile)
{
    (void)tile;
    const bwi_scale_attributes *a = call->node->attributes;
    scale_by(call, call->src[0], call->dst, a->scale, a->offset);
    bwi_image image = bwi_node_image(call->node, call->samples);
    bwi_image_clear_padding(&image, call->dst);
    return BW_OK;
}

static bw_status scale_backward(const bwi_call *call, const bwi_tile *tile)
{
    (void)tile;
    const bwi_scale_attributes *a = call->node->attributes;
    scale_by(call, call->diff_dst, call->diff_src[0], a->scale, 0);
    return BW_OK;
}

const bwi_op bwi_op_scale = {.name = "scale",
                             .flags = BWI_OP_IN_PLACE | BWI_OP_BACKWARD_IN_PLACE,
                             .layout = BWI_LAYOUT_SAME,
                             .shape = bwi_shape_like_input,
                             .forward = scale_forward,
                             .backward = scale_backward};

/* ---- normalization ---- */

static const float LEAST_DEVIATION = 1e-7f;

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

static bw_status normalization_prepare(bwi_prepare *p)
{
    p->scratch_bytes = (size_t)p->node->variable[0]->count * sizeof(float);
    return BW_OK;
}

/* What x is multiplied by, for each mean. */
static float *factors_of(const bwi_call *call)
{
    const bwi_normalization_attributes *a = call->node->attributes;
    float *factors = call->scratch;
    for (int64_t i = 0; i < call->node->variable[0]->count; i++) {
        float deviation = fmaxf(sqrtf(((const float *)call->weights[1])[i]), LEAST_DEVIATION);
        factors[i] = a->invert ? deviation : 1 / deviation;
    }
    return factors;
}

static bw_status normalization_forward(const bwi_call *call, const bwi_tile *tile)
{
    (void)tile;
    const bwi_normalization_attributes *a = call->node->attributes;
    bwi_spread s = bwi_spread_over(&call->node->shape, &a->spread);
    const float *x = call->src[0], *factors = factors_of(call);
    float *y = call->dst;
    for (int64_t r = 0; r < s.rows * call->samples; r++, x += s.width, y += s.width) {
        int64_t at = bwi_spread_at(&s, r % s.rows);
        const float *mean = (const float *)call->weights[0] + at, *factor = factors + at;
        for (int64_t i = 0; i < s.width; i++) {
            float m = mean[i * s.step], f = factor[i * s.step];
            y[i] = a->invert ? m + x[i] * f : (x[i] - m) * f;
        }
    }
    return BW_OK;
}

static bw_status normalization_backward(const bwi_call *call, const bwi_tile *tile)
{
    (void)tile;
    const bwi_normalization_attributes *a = call->node->attributes;
    bwi_spread s = bwi_spread_over(&call->node->shape, &a->spread);
    const float *dy = call->diff_dst, *factors = factors_of(call);
    float *dx = call->diff_src[0];
    for (int64_t r = 0; r < s.rows * call->samples; r++, dy += s.width, dx += s.width) {
        const float *factor = factors + bwi_spread_at(&s, r % s.rows);
        for (int64_t i = 0; i < s.width; i++) {
            dx[i] = dy[i] * factor[i * s.step];
        }
    }
    return BW_OK;
}

const bwi_op bwi_op_normalization = {.name = "normalization",
                                     .flags = BWI_OP_IN_PLACE | BWI_OP_BACKWARD_IN_PLACE,
                                     .layout = BWI_LAYOUT_CHANNELS_LAST,
                                     .shape = normalization_shape,
                                     .prepare = normalization_prepare,
                                     .forward = normalization_forward,
                                     .backward = normalization_backward};
