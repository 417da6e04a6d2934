/*
 * random_color: changes the colours of a sample's image at random, in training only (kernel/loops/picture.h): towards grey,
 * inverted, solarized, with fewer shades. What is drawn is a function of the seed, the layer's stream, the update and the sample's
 * position in its window, so backward draws it again.
 */
#include "op/internal.h"

static bw_status shape(bwi_graph *graph, bw_node *node)
{
    const bwi_random_color_attributes *a = node->attributes;
    bw_status status = bwi_shape_like_input(graph, node);
    int64_t channels = status == BW_OK && node->shape.ndim == 3 ? node->shape.extent[2] : 0;
    if (status == BW_OK && (channels == 0 || (a->kind == BWI_COLOR_GREY && channels != 1 && channels != 3))) {
        char text[160];
        status = bwi_fail(graph->ctx, BW_INVALID_ARGUMENT, "layer %s: expected an image (height, width, %s), got %s", node->name,
                          a->kind == BWI_COLOR_GREY ? "1 or 3 channels" : "channels",
                          bwi_format_shape(text, node->shape.ndim, node->shape.extent));
    }
    return status;
}

static float between(const float limits[2], float drawn)
{
    return limits[0] + (limits[1] - limits[0]) * drawn;
}

/* What becomes of one sample; one that is left as it is has the kind BWI_COLOR_SAME. */
static bwi_color color_of(const bwi_call *call, const bwi_tile *tile, int64_t sample)
{
    const bwi_random_color_attributes *a = call->node->attributes;
    bwi_random random =
        bwi_random_at(tile->seed, a->stream + tile->update * 0x9E3779B97F4A7C15u, (uint64_t)(tile->position + sample));
    float drawn[4];
    for (int k = 0; k < 4; k++) {
        drawn[k] = bwi_random_uniform(random.word[k]);
    }
    bwi_color color = {.kind = drawn[1] < between(a->chance, drawn[0]) ? a->kind : BWI_COLOR_SAME,
                       .first = between(a->first, drawn[2]),
                       .second = between(a->second, drawn[3]),
                       .range = {a->range[0], a->range[1]},
                       .clips = a->clips};
    return color;
}

static bw_status forward(const bwi_call *call, const bwi_tile *tile)
{
    const int64_t *extent = call->node->shape.extent;
    int64_t count = bwi_shape_count(&call->node->shape);
    for (int64_t s = 0; s < call->samples; s++) {
        bwi_color color = color_of(call, tile, s);
        call->kernels->picture->recolor(&color, extent[0] * extent[1], extent[2], bwi_floats_at(call->src[0], s * count),
                                        bwi_floats_at(call->dst, s * count));
    }
    return BW_OK;
}

static bw_status backward(const bwi_call *call, const bwi_tile *tile)
{
    const int64_t *extent = call->node->shape.extent;
    int64_t count = bwi_shape_count(&call->node->shape);
    for (int64_t s = 0; s < call->samples; s++) {
        bwi_color color = color_of(call, tile, s);
        call->kernels->picture->recolor_backward(&color, extent[0] * extent[1], extent[2], bwi_floats_at(call->src[0], s * count),
                                                 bwi_floats_at(call->diff_dst, s * count),
                                                 bwi_floats_at(call->diff_src[0], s * count));
    }
    return BW_OK;
}

static bw_status inference(const bwi_call *call, const bwi_tile *tile)
{
    (void)tile;
    call->kernels->memory->copy(call->dst, call->src[0], (size_t)call->floats * sizeof(float));
    return BW_OK;
}

const bwi_op bwi_op_random_color = {.name = "random_color",
                                    .flags = BWI_OP_TRAINING_ONLY,
                                    .backward_reads = BWI_READS_SRC,
                                    .layout = BWI_LAYOUT_CHANNELS_LAST,
                                    .shape = shape,
                                    .forward = forward,
                                    .inference = inference,
                                    .backward = backward};
