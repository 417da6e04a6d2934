/*
 * Linear maps with a number for each channel. channel_affine: y = x gamma + beta, which are trained; channel_map: y = (x - mean)
 * scale + shift, with numbers that belong to the model's configuration.
 */
#include "op/internal.h"

static int64_t channels_of(const bw_node *node)
{
    return node->shape.extent[node->shape.ndim - 1];
}

static bw_status with_channels(bwi_graph *graph, bw_node *node)
{
    bw_status status = bwi_shape_like_input(graph, node);
    if (status == BW_OK && node->shape.ndim < 1) {
        status = bwi_fail(graph->ctx, BW_INVALID_ARGUMENT, "layer %s: expected channels, got a single number", node->name);
    }
    return status;
}

/* ---- channel_affine ---- */

static const bwi_channel_affine_attributes *affine_of(const bwi_call *call)
{
    return call->node->attributes;
}

static bw_status affine_shape(bwi_graph *graph, bw_node *node)
{
    bw_status status = with_channels(graph, node);
    for (int i = 0; i < node->variables && status == BW_OK; i++) {
        if (node->variable[i]->count != channels_of(node)) {
            status = bwi_fail(graph->ctx, BW_INVALID_ARGUMENT, "layer %s: expected %lld channels, got %lld", node->name,
                              (long long)node->variable[i]->count, (long long)channels_of(node));
        }
    }
    return status;
}

/* The scratch memory holds two sums for each channel, zeros and ones. */
static bw_status affine_prepare(bwi_prepare *p)
{
    p->scratch_bytes = (size_t)channels_of(p->node) * 2 * (sizeof(double) + sizeof(float));
    return BW_OK;
}

static void *zeros_of(const bwi_call *call)
{
    void *zeros = bwi_floats_at(call->scratch, 4 * channels_of(call->node));
    call->kernels->memory->fill(channels_of(call->node), 0, zeros);
    return zeros;
}

static void *ones_of(const bwi_call *call)
{
    void *ones = bwi_floats_at(call->scratch, 5 * channels_of(call->node));
    call->kernels->memory->fill(channels_of(call->node), 1, ones);
    return ones;
}

static bw_status affine_forward(const bwi_call *call, const bwi_tile *tile)
{
    (void)tile;
    const bwi_channel_affine_attributes *a = affine_of(call);
    bwi_image image = bwi_node_image(call->node, call->samples);
    void *zeros = zeros_of(call);
    call->kernels->channel_affine(&image, call->src[0], zeros, a->scale ? call->weights[0] : ones_of(call),
                                  a->center ? call->weights[a->scale] : zeros, call->dst);
    return BW_OK;
}

static bw_status affine_backward(const bwi_call *call, const bwi_tile *tile)
{
    (void)tile;
    bwi_image image = bwi_node_image(call->node, call->samples);
    void *zeros = zeros_of(call);
    call->kernels->channel_affine(&image, call->diff_dst, zeros, affine_of(call)->scale ? call->weights[0] : ones_of(call), zeros,
                                  call->diff_src[0]);
    return BW_OK;
}

/* dbeta = sum dy, dgamma = sum dy x. */
static bw_status affine_backward_weights(const bwi_call *call, const bwi_tile *tile)
{
    const bwi_channel_affine_attributes *a = affine_of(call);
    int64_t channels = channels_of(call->node);
    bwi_image image = bwi_node_image(call->node, call->samples);
    call->kernels->memory->clear(call->scratch, (size_t)channels * 2 * sizeof(double));
    call->kernels->channel_backward_sums(&image, call->src[0], call->diff_dst, zeros_of(call), ones_of(call), call->scratch);
    if (a->scale) {
        bwi_call_add_gradient(call, tile, 0, bwi_floats_at(call->scratch, 2 * channels));
    }
    if (a->center) {
        bwi_call_add_gradient(call, tile, a->scale, call->scratch);
    }
    return BW_OK;
}

const bwi_op bwi_op_channel_affine = {.name = "channel_affine",
                                      .flags = BWI_OP_IN_PLACE | BWI_OP_BACKWARD_IN_PLACE,
                                      .weights_reads = BWI_READS_SRC,
                                      .layout = BWI_LAYOUT_SAME,
                                      .shape = affine_shape,
                                      .prepare = affine_prepare,
                                      .forward = affine_forward,
                                      .backward = affine_backward,
                                      .backward_weights = affine_backward_weights};

/* ---- channel_map ---- */

static bw_status map_shape(bwi_graph *graph, bw_node *node)
{
    const bwi_channel_map_attributes *a = node->attributes;
    bw_status status = with_channels(graph, node);
    if (status == BW_OK && a->channels != channels_of(node)) {
        status = bwi_fail(graph->ctx, BW_INVALID_ARGUMENT, "layer %s: %lld numbers do not fit %lld channels", node->name,
                          (long long)a->channels, (long long)channels_of(node));
    }
    return status;
}

/* The scratch memory holds the numbers, and zeros. */
static bw_status map_prepare(bwi_prepare *p)
{
    p->scratch_bytes = (size_t)channels_of(p->node) * 4 * sizeof(float);
    return BW_OK;
}

static void *numbers_of(const bwi_call *call)
{
    const bwi_channel_map_attributes *a = call->node->attributes;
    call->kernels->memory->write(call->scratch, a->number, (size_t)a->channels * 3 * sizeof(float));
    return call->scratch;
}

static bw_status map_forward(const bwi_call *call, const bwi_tile *tile)
{
    (void)tile;
    int64_t channels = channels_of(call->node);
    bwi_image image = bwi_node_image(call->node, call->samples);
    void *numbers = numbers_of(call);
    call->kernels->channel_affine(&image, call->src[0], numbers, bwi_floats_at(numbers, channels),
                                  bwi_floats_at(numbers, 2 * channels), call->dst);
    return BW_OK;
}

static bw_status map_backward(const bwi_call *call, const bwi_tile *tile)
{
    (void)tile;
    int64_t channels = channels_of(call->node);
    bwi_image image = bwi_node_image(call->node, call->samples);
    void *numbers = numbers_of(call), *zeros = bwi_floats_at(numbers, 3 * channels);
    call->kernels->memory->fill(channels, 0, zeros);
    call->kernels->channel_affine(&image, call->diff_dst, zeros, bwi_floats_at(numbers, channels), zeros, call->diff_src[0]);
    return BW_OK;
}

const bwi_op bwi_op_channel_map = {.name = "channel_map",
                                   .flags = BWI_OP_IN_PLACE | BWI_OP_BACKWARD_IN_PLACE,
                                   .layout = BWI_LAYOUT_SAME,
                                   .shape = map_shape,
                                   .prepare = map_prepare,
                                   .forward = map_forward,
                                   .backward = map_backward};
