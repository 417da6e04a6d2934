/*
 * Random ops, which do nothing in inference. dropout: y = 0 with probability `rate`, else x / (1 - rate); spatial_dropout: the
 * same for whole channels of an image; gaussian_noise: y = x + amount * normal.
 *
 * A draw is a function of the seed, the layer's stream, the update, the sample's position in its window and the element's place
 * in the sample in Keras's order: so it is the same for every tile, worker and layout, and backward draws again what forward
 * drew instead of keeping it.
 */
#include "op/internal.h"

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
