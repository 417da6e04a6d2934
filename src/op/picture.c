/*
 * Ops that change the images of a sample at random, in training only. random_view looks at an image through a linear map: shifted,
 * turned, magnified, mirrored; random_contrast changes contrast and brightness. What is drawn is a function of the seed, the
 * layer's stream, the update and the sample's position in its window, as in noise.c, so backward draws it again.
 */
#include "op/internal.h"

#include <math.h>

enum { DRAWS = 4 };

/* Draws numbers of [0, 1) for a sample. */
static void draw(const bwi_tile *tile, uint64_t stream, int64_t sample, float drawn[DRAWS])
{
    bwi_random random = bwi_random_at(tile->seed, stream + tile->update * 0x9E3779B97F4A7C15u, (uint64_t)(tile->position + sample));
    for (int k = 0; k < DRAWS; k++) {
        drawn[k] = bwi_random_uniform(random.word[k]);
    }
}

static float between(const float limits[2], float drawn)
{
    return limits[0] + (limits[1] - limits[0]) * drawn;
}

static bw_status image_shape(bwi_graph *graph, bw_node *node)
{
    bw_status status = bwi_shape_like_input(graph, node);
    if (status == BW_OK && node->shape.ndim != 3) {
        char text[160];
        status = bwi_fail(graph->ctx, BW_INVALID_ARGUMENT, "layer %s: expected an image (height, width, channels), got %s",
                          node->name, bwi_format_shape(text, node->shape.ndim, node->shape.extent));
    }
    return status;
}

static bw_status inference(const bwi_call *call, const bwi_tile *tile)
{
    (void)tile;
    call->kernels->memory->copy(call->dst, call->src[0], (size_t)call->floats * sizeof(float));
    return BW_OK;
}

/* ---- random_view ---- */

/* The map is about the image's centre; its parameters follow from the sample's draws. */
static bwi_looking looking_of(const bwi_call *call, const bwi_tile *tile, int64_t sample)
{
    const bwi_random_view_attributes *a = call->node->attributes;
    const int64_t *extent = call->node->shape.extent;
    bwi_looking how = {.h = extent[0], .w = extent[1], .c = extent[2], .nearest = a->nearest, .fill = a->fill, .value = a->value};
    float drawn[DRAWS];
    draw(tile, a->stream, sample, drawn);
    double cx = ((double)how.w - 1) / 2, cy = ((double)how.h - 1) / 2;
    double angle = (double)between(a->turn, drawn[0]) * 6.283185307179586;
    double down = (double)between(a->zoom[0], drawn[0]), across = a->one_zoom ? down : (double)between(a->zoom[1], drawn[1]);
    double flip = drawn[0] <= 0.5F ? -1 : 1;
    double sx = across * (a->flip[1] ? flip : 1), sy = down * (a->flip[0] ? flip : 1);
    double m[6] = {sx * cos(angle), -sx * sin(angle), 0, sy * sin(angle), sy * cos(angle), 0};
    m[2] = cx - cx * m[0] - cy * m[1] - (double)between(a->shift[1], drawn[1]) * (double)how.w;
    m[5] = cy - cx * m[3] - cy * m[4] - (double)between(a->shift[0], drawn[0]) * (double)how.h;
    for (int k = 0; k < 6; k++) {
        how.m[k] = (float)m[k];
    }
    return how;
}

static bw_status view_forward(const bwi_call *call, const bwi_tile *tile)
{
    int64_t count = bwi_shape_count(&call->node->shape);
    for (int64_t s = 0; s < call->samples; s++) {
        bwi_looking how = looking_of(call, tile, s);
        call->kernels->picture->look(&how, bwi_floats_at(call->src[0], s * count), bwi_floats_at(call->dst, s * count));
    }
    return BW_OK;
}

static bw_status view_backward(const bwi_call *call, const bwi_tile *tile)
{
    int64_t count = bwi_shape_count(&call->node->shape);
    for (int64_t s = 0; s < call->samples; s++) {
        bwi_looking how = looking_of(call, tile, s);
        call->kernels->picture->look_backward(&how, bwi_floats_at(call->diff_dst, s * count),
                                              bwi_floats_at(call->diff_src[0], s * count));
    }
    return BW_OK;
}

const bwi_op bwi_op_random_view = {.name = "random_view",
                                   .flags = BWI_OP_TRAINING_ONLY,
                                   .layout = BWI_LAYOUT_CHANNELS_LAST,
                                   .shape = image_shape,
                                   .forward = view_forward,
                                   .inference = inference,
                                   .backward = view_backward};

/* ---- random_contrast ---- */

static bw_status contrast_forward(const bwi_call *call, const bwi_tile *tile)
{
    const bwi_random_contrast_attributes *a = call->node->attributes;
    const int64_t *extent = call->node->shape.extent;
    int64_t count = bwi_shape_count(&call->node->shape);
    for (int64_t s = 0; s < call->samples; s++) {
        float drawn[DRAWS];
        draw(tile, a->stream, s, drawn);
        call->kernels->picture->contrast(extent[0] * extent[1], extent[2], between(a->factor, drawn[0]),
                                         between(a->offset, drawn[0]), a->range, bwi_floats_at(call->src[0], s * count),
                                         bwi_floats_at(call->dst, s * count));
    }
    return BW_OK;
}

static bw_status contrast_backward(const bwi_call *call, const bwi_tile *tile)
{
    const bwi_random_contrast_attributes *a = call->node->attributes;
    const int64_t *extent = call->node->shape.extent;
    int64_t count = bwi_shape_count(&call->node->shape);
    for (int64_t s = 0; s < call->samples; s++) {
        float drawn[DRAWS];
        draw(tile, a->stream, s, drawn);
        call->kernels->picture->contrast_backward(extent[0] * extent[1], extent[2], between(a->factor, drawn[0]),
                                                  between(a->offset, drawn[0]), a->range, bwi_floats_at(call->src[0], s * count),
                                                  bwi_floats_at(call->diff_dst, s * count),
                                                  bwi_floats_at(call->diff_src[0], s * count));
    }
    return BW_OK;
}

const bwi_op bwi_op_random_contrast = {.name = "random_contrast",
                                       .flags = BWI_OP_TRAINING_ONLY,
                                       .backward_reads = BWI_READS_SRC,
                                       .layout = BWI_LAYOUT_CHANNELS_LAST,
                                       .shape = image_shape,
                                       .forward = contrast_forward,
                                       .inference = inference,
                                       .backward = contrast_backward};
