/*
 * Random ops, which do nothing in inference. dropout: y = 0 with probability `rate`, else x / (1 - rate); shared_dropout: the same
 * with one draw for several elements; spatial_dropout: for whole channels of an image; alpha_dropout: the form that suits selu;
 * gaussian_dropout: y = x (1 + amount * normal); gaussian_noise: y = x + amount * normal.
 *
 * A draw is a function of the seed, the layer's stream, the update, the sample's position in its window and the element's place
 * in the sample in Keras's order: so it is the same for every tile, worker and layout, and backward draws again what forward
 * drew instead of keeping it.
 */
#include "op/internal.h"

#include <math.h>

static const bwi_noise_attributes *attributes_of(const bwi_call *call)
{
    return call->node->attributes;
}

static uint64_t stream_of(const bwi_call *call, const bwi_tile *tile)
{
    return attributes_of(call)->stream + tile->update * 0x9E3779B97F4A7C15u;
}

uint32_t bwi_dropout_limit(float rate)
{
    double limit = (double)rate * 0x1p32;
    return limit >= 0x1p32 ? UINT32_MAX : (uint32_t)limit;
}

float bwi_dropout_scale(float rate)
{
    return rate < 1 ? (float)(1 / (1 - (double)rate)) : 0;
}

static void copy(const bwi_call *call, const void *from, void *to)
{
    if (from != to) {
        call->kernels->memory->copy(to, from, (size_t)call->floats * sizeof(float));
    }
}

static bw_status inference(const bwi_call *call, const bwi_tile *tile)
{
    (void)tile;
    copy(call, call->src[0], call->dst);
    return BW_OK;
}

/* ---- Dropout ---- */

static void drop(const bwi_call *call, const bwi_tile *tile, void *x, void *y)
{
    float rate = attributes_of(call)->amount;
    int64_t count = bwi_shape_count(&call->node->shape), counters = (count + 63) / 64 * 16;
    for (int64_t s = 0; s < call->samples; s++) {
        call->kernels->dropout(count, tile->seed, stream_of(call, tile), (uint64_t)((tile->position + s) * counters),
                               bwi_dropout_limit(rate), bwi_dropout_scale(rate), bwi_floats_at(x, s * count),
                               bwi_floats_at(y, s * count));
    }
}

static bw_status dropout_forward(const bwi_call *call, const bwi_tile *tile)
{
    drop(call, tile, call->src[0], call->dst);
    return BW_OK;
}

static bw_status dropout_backward(const bwi_call *call, const bwi_tile *tile)
{
    drop(call, tile, call->diff_dst, call->diff_src[0]);
    return BW_OK;
}

const bwi_op bwi_op_dropout = {.name = "dropout",
                               .flags = BWI_OP_IN_PLACE | BWI_OP_BACKWARD_IN_PLACE | BWI_OP_TRAINING_ONLY,
                               .layout = BWI_LAYOUT_CHANNELS_LAST,
                               .shape = bwi_shape_like_input,
                               .forward = dropout_forward,
                               .inference = inference,
                               .backward = dropout_backward};

/* ---- Spatial dropout ---- */

static bw_status spatial_shape(bwi_graph *graph, bw_node *node)
{
    bw_status status = bwi_shape_like_input(graph, node);
    if (status == BW_OK && node->shape.ndim < 2) {
        char text[160];
        status = bwi_fail(graph->ctx, BW_INVALID_ARGUMENT, "layer %s: expected channels over some positions, got %s", node->name,
                          bwi_format_shape(text, node->shape.ndim, node->shape.extent));
    }
    return status;
}

/* The scratch memory holds the channels' factors, zeros, and ones. */
static bw_status spatial_prepare(bwi_prepare *p)
{
    int64_t channels = p->node->shape.extent[p->node->shape.ndim - 1];
    p->scratch_bytes = (size_t)channels * 3 * sizeof(float);
    return BW_OK;
}

static void drop_channels(const bwi_call *call, const bwi_tile *tile, void *x, void *y)
{
    float rate = attributes_of(call)->amount;
    bwi_image image = bwi_node_image(call->node, 1);
    int64_t floats = bwi_image_floats(&image), counters = (image.c + 63) / 64 * 16;
    void *factors = call->scratch, *zeros = bwi_floats_at(factors, image.c), *ones = bwi_floats_at(zeros, image.c);
    call->kernels->memory->fill(image.c, 0, zeros);
    call->kernels->memory->fill(image.c, 1, ones);
    for (int64_t s = 0; s < call->samples; s++) {
        call->kernels->dropout(image.c, tile->seed, stream_of(call, tile), (uint64_t)((tile->position + s) * counters),
                               bwi_dropout_limit(rate), bwi_dropout_scale(rate), ones, factors);
        call->kernels->channel_affine(&image, bwi_floats_at(x, s * floats), zeros, factors, zeros, bwi_floats_at(y, s * floats));
    }
}

static bw_status spatial_forward(const bwi_call *call, const bwi_tile *tile)
{
    drop_channels(call, tile, call->src[0], call->dst);
    return BW_OK;
}

static bw_status spatial_backward(const bwi_call *call, const bwi_tile *tile)
{
    drop_channels(call, tile, call->diff_dst, call->diff_src[0]);
    return BW_OK;
}

const bwi_op bwi_op_spatial_dropout = {.name = "spatial_dropout",
                                       .flags = BWI_OP_IN_PLACE | BWI_OP_BACKWARD_IN_PLACE | BWI_OP_TRAINING_ONLY,
                                       .layout = BWI_LAYOUT_SAME,
                                       .shape = spatial_shape,
                                       .prepare = spatial_prepare,
                                       .forward = spatial_forward,
                                       .inference = inference,
                                       .backward = spatial_backward};

/* ---- Dropout whose draws several elements share ---- */

static int64_t draws_of(const bw_node *node)
{
    const bwi_noise_attributes *a = node->attributes;
    return bwi_shape_count(&a->shared);
}

static bw_status shared_shape(bwi_graph *graph, bw_node *node)
{
    const bwi_noise_attributes *a = node->attributes;
    bw_status status = bwi_shape_like_input(graph, node);
    bwi_shape both;
    char expected[160], found[160];
    if (status == BW_OK && (a->shared.ndim != node->shape.ndim || !bwi_shape_broadcast(&node->shape, &a->shared, &both) ||
                            !bwi_shape_equal(&both, &node->shape))) {
        status = bwi_fail(graph->ctx, BW_INVALID_ARGUMENT, "layer %s: noise_shape %s does not fit values of shape %s", node->name,
                          bwi_format_shape(found, a->shared.ndim, a->shared.extent),
                          bwi_format_shape(expected, node->shape.ndim, node->shape.extent));
    }
    return status;
}

/* The scratch memory holds ones, and the factor of each draw. */
static bw_status shared_prepare(bwi_prepare *p)
{
    p->scratch_bytes = (size_t)draws_of(p->node) * 2 * sizeof(float);
    return BW_OK;
}

static uint64_t counter_of(const bwi_call *call, const bwi_tile *tile, int64_t sample, int64_t draws)
{
    return attributes_of(call)->same ? 0 : (uint64_t)((tile->position + sample) * ((draws + 63) / 64 * 16));
}

static void drop_shared(const bwi_call *call, const bwi_tile *tile, void *x, void *y)
{
    const bwi_noise_attributes *a = attributes_of(call);
    bwi_spread spread = bwi_spread_over(&call->node->shape, &a->shared);
    int64_t count = bwi_shape_count(&call->node->shape), draws = draws_of(call->node);
    void *ones = call->scratch, *factors = bwi_floats_at(ones, draws);
    call->kernels->memory->fill(draws, 1, ones);
    for (int64_t s = 0; s < call->samples; s++) {
        call->kernels->dropout(draws, tile->seed, stream_of(call, tile), counter_of(call, tile, s, draws),
                               bwi_dropout_limit(a->amount), bwi_dropout_scale(a->amount), ones, factors);
        call->kernels->elementwise->normalize_backward(&spread, 1, factors, bwi_floats_at(x, s * count),
                                                       bwi_floats_at(y, s * count));
    }
}

static bw_status shared_forward(const bwi_call *call, const bwi_tile *tile)
{
    drop_shared(call, tile, call->src[0], call->dst);
    return BW_OK;
}

static bw_status shared_backward(const bwi_call *call, const bwi_tile *tile)
{
    drop_shared(call, tile, call->diff_dst, call->diff_src[0]);
    return BW_OK;
}

const bwi_op bwi_op_shared_dropout = {.name = "shared_dropout",
                                      .flags = BWI_OP_IN_PLACE | BWI_OP_BACKWARD_IN_PLACE | BWI_OP_TRAINING_ONLY,
                                      .layout = BWI_LAYOUT_CHANNELS_LAST,
                                      .shape = shared_shape,
                                      .prepare = shared_prepare,
                                      .forward = shared_forward,
                                      .inference = inference,
                                      .backward = shared_backward};

/* ---- Alpha dropout ---- */

/* What is dropped becomes -1.758..., where selu is flat; then a y + b restores mean 0 and variance 1. */
typedef struct alpha_form {
    float a, b, low;
} alpha_form;

static alpha_form alpha_form_of(float rate)
{
    double low = -1.7580993408473766, keep = 1 - (double)rate, a = 1 / sqrt(keep * (1 + (double)rate * low * low));
    return (alpha_form){.a = (float)a, .b = (float)(-a * low * (double)rate), .low = (float)low};
}

static bw_status alpha_prepare(bwi_prepare *p)
{
    p->scratch_bytes = (size_t)(draws_of(p->node) * 2 + bwi_shape_count(&p->node->shape)) * sizeof(float);
    return BW_OK;
}

/* Draws the factors of one sample: 1 where it is kept, else 0. */
static void *alpha_factors(const bwi_call *call, const bwi_tile *tile, int64_t s)
{
    const bwi_noise_attributes *a = attributes_of(call);
    int64_t draws = draws_of(call->node);
    void *ones = call->scratch, *factors = bwi_floats_at(ones, draws);
    call->kernels->memory->fill(draws, 1, ones);
    call->kernels->dropout(draws, tile->seed, stream_of(call, tile), counter_of(call, tile, s, draws), bwi_dropout_limit(a->amount),
                           1, ones, factors);
    return factors;
}

static bw_status alpha_forward(const bwi_call *call, const bwi_tile *tile)
{
    bwi_spread spread = bwi_spread_over(&call->node->shape, &attributes_of(call)->shared);
    int64_t count = bwi_shape_count(&call->node->shape), draws = draws_of(call->node);
    alpha_form form = alpha_form_of(attributes_of(call)->amount);
    for (int64_t s = 0; s < call->samples; s++) {
        void *factors = alpha_factors(call, tile, s), *part = bwi_floats_at(call->scratch, 2 * draws);
        void *x = bwi_floats_at(call->src[0], s * count), *y = bwi_floats_at(call->dst, s * count);
        /* (x - low) f + low, then a y + b. */
        call->kernels->elementwise->scale(count, 1, -form.low, x, part);
        call->kernels->elementwise->normalize_backward(&spread, 1, factors, part, part);
        call->kernels->elementwise->scale(count, form.a, form.a * form.low + form.b, part, y);
    }
    return BW_OK;
}

static bw_status alpha_backward(const bwi_call *call, const bwi_tile *tile)
{
    bwi_spread spread = bwi_spread_over(&call->node->shape, &attributes_of(call)->shared);
    int64_t count = bwi_shape_count(&call->node->shape);
    alpha_form form = alpha_form_of(attributes_of(call)->amount);
    for (int64_t s = 0; s < call->samples; s++) {
        void *factors = alpha_factors(call, tile, s), *dx = bwi_floats_at(call->diff_src[0], s * count);
        call->kernels->elementwise->normalize_backward(&spread, 1, factors, bwi_floats_at(call->diff_dst, s * count), dx);
        call->kernels->elementwise->scale(count, form.a, -0.0F, dx, dx);
    }
    return BW_OK;
}

const bwi_op bwi_op_alpha_dropout = {.name = "alpha_dropout",
                                     .flags = BWI_OP_IN_PLACE | BWI_OP_BACKWARD_IN_PLACE | BWI_OP_TRAINING_ONLY,
                                     .layout = BWI_LAYOUT_CHANNELS_LAST,
                                     .shape = shared_shape,
                                     .prepare = alpha_prepare,
                                     .forward = alpha_forward,
                                     .inference = inference,
                                     .backward = alpha_backward};

/* ---- Gaussian dropout ---- */

/* The factors 1 + deviation n of one sample are drawn into the scratch memory. */
static bw_status factors_prepare(bwi_prepare *p)
{
    p->scratch_bytes = (size_t)bwi_shape_count(&p->node->shape) * sizeof(float);
    return BW_OK;
}

static void multiply_gaussian(const bwi_call *call, const bwi_tile *tile, void *x, void *y)
{
    int64_t count = bwi_shape_count(&call->node->shape), counters = (count + 3) / 4;
    for (int64_t s = 0; s < call->samples; s++) {
        call->kernels->memory->fill(count, 1, call->scratch);
        call->kernels->elementwise->gaussian(count, tile->seed, stream_of(call, tile), (uint64_t)((tile->position + s) * counters),
                                             attributes_of(call)->amount, call->scratch, call->scratch);
        call->kernels->elementwise->binary(BWI_MULTIPLY, count, bwi_floats_at(x, s * count), call->scratch,
                                           bwi_floats_at(y, s * count));
    }
}

static bw_status gaussian_dropout_forward(const bwi_call *call, const bwi_tile *tile)
{
    multiply_gaussian(call, tile, call->src[0], call->dst);
    return BW_OK;
}

static bw_status gaussian_dropout_backward(const bwi_call *call, const bwi_tile *tile)
{
    multiply_gaussian(call, tile, call->diff_dst, call->diff_src[0]);
    return BW_OK;
}

const bwi_op bwi_op_gaussian_dropout = {.name = "gaussian_dropout",
                                        .flags = BWI_OP_IN_PLACE | BWI_OP_BACKWARD_IN_PLACE | BWI_OP_TRAINING_ONLY,
                                        .layout = BWI_LAYOUT_CHANNELS_LAST,
                                        .shape = bwi_shape_like_input,
                                        .prepare = factors_prepare,
                                        .forward = gaussian_dropout_forward,
                                        .inference = inference,
                                        .backward = gaussian_dropout_backward};

/* ---- Gaussian noise ---- */

static bw_status gaussian_forward(const bwi_call *call, const bwi_tile *tile)
{
    int64_t count = bwi_shape_count(&call->node->shape), counters = (count + 3) / 4;
    for (int64_t s = 0; s < call->samples; s++) {
        call->kernels->elementwise->gaussian(count, tile->seed, stream_of(call, tile), (uint64_t)((tile->position + s) * counters),
                                             attributes_of(call)->amount, bwi_floats_at(call->src[0], s * count),
                                             bwi_floats_at(call->dst, s * count));
    }
    return BW_OK;
}

static bw_status gaussian_backward(const bwi_call *call, const bwi_tile *tile)
{
    (void)tile;
    copy(call, call->diff_dst, call->diff_src[0]);
    return BW_OK;
}

const bwi_op bwi_op_gaussian_noise = {.name = "gaussian_noise",
                                      .flags = BWI_OP_IN_PLACE | BWI_OP_BACKWARD_IN_PLACE | BWI_OP_TRAINING_ONLY,
                                      .layout = BWI_LAYOUT_CHANNELS_LAST,
                                      .shape = bwi_shape_like_input,
                                      .forward = gaussian_forward,
                                      .inference = inference,
                                      .backward = gaussian_backward};
