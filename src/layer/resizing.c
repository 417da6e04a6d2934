/*
 * Resizing: images of another height and width, and UpSampling2D where its interpolation is not one of the plain ones. Rows are
 * resampled first, then columns.
 */
#include "layer/internal.h"

#include <string.h>

enum { HEIGHT, WIDTH, INTERPOLATION, CROP, PAD, FILL_MODE, FILL_VALUE, ANTIALIAS, COUNT };

static const bwi_argument arguments[COUNT] = {
    [HEIGHT] = {"height", NULL, BWI_INT, NULL, 1, 1e6, NULL},
    [WIDTH] = {"width", NULL, BWI_INT, NULL, 1, 1e6, NULL},
    [INTERPOLATION] = {"interpolation", NULL, BWI_TEXT, "bilinear", 0, 0, BWI_INTERPOLATIONS},
    [CROP] = {"crop_to_aspect_ratio", NULL, BWI_BOOL, "false", 0, 0, NULL},
    [PAD] = {"pad_to_aspect_ratio", NULL, BWI_BOOL, "false", 0, 0, NULL},
    [FILL_MODE] = {"fill_mode", NULL, BWI_TEXT, "constant", 0, 0, "constant"},
    [FILL_VALUE] = {"fill_value", NULL, BWI_FLOAT, "0", -1e30, 1e30, NULL},
    [ANTIALIAS] = {"antialias", NULL, BWI_BOOL, "false", 0, 0, NULL},
};

bw_node *bwi_layer_resample(bwi_graph *graph, const char *layer, bw_node *x, const int64_t size[2], const char *interpolation,
                            bool smooth)
{
    static const char *const words[] = {"nearest", "bilinear", "bicubic", "lanczos3", "lanczos5"};
    bwi_resample_attributes a = {.smooth = smooth};
    while (strcmp(words[a.kind], interpolation) != 0) {
        a.kind++;
    }
    for (a.axis = 0; a.axis < 2 && x; a.axis++) {
        a.extent = size[a.axis];
        x = x->shape.extent[a.axis] == a.extent ? x : bwi_graph_add(graph, &bwi_op_resample, layer, &a, sizeof a, &x, 1, NULL, 0);
    }
    return x;
}

/* Cuts off or adds as much as makes the image's shape that of the target, before and after. Keras adds the same on both sides. */
static bw_node *to_aspect(const bwi_layer *layer, bwi_graph *graph, bw_node *x, bool crops)
{
    const bwi_argument_value *v = layer->values;
    int64_t target[2] = {v[HEIGHT].integer, v[WIDTH].integer}, have[2] = {x->shape.extent[0], x->shape.extent[1]};
    bwi_pad2d_attributes a;
    for (int i = 0; i < 2; i++) {
        int64_t fitting = (int64_t)((double)(have[1 - i] * target[i]) / (double)target[1 - i]);
        fitting = crops ? (fitting > have[i] ? have[i] : fitting < 1 ? 1 : fitting) : fitting < have[i] ? have[i] : fitting;
        int64_t before = (crops ? have[i] - fitting : fitting - have[i]) / 2;
        a.amount[i][0] = crops ? -before : before;
        a.amount[i][1] = crops ? fitting + before - have[i] : before;
    }
    if (!crops && a.amount[0][0] > 0) { /* Keras fills only one of the two, rows before columns */
        a.amount[1][0] = a.amount[1][1] = 0;
    }
    float value = crops ? 0 : (float)v[FILL_VALUE].number;
    bool filled = value > 0 || value < 0;
    x = filled ? bwi_compose_scale(graph, layer->name, x, 1, -value) : x; /* only zeros can be added around an image */
    x = x ? bwi_graph_add(graph, &bwi_op_pad2d, layer->name, &a, sizeof a, &x, 1, NULL, 0) : NULL;
    return filled && x ? bwi_compose_scale(graph, layer->name, x, 1, value) : x;
}

static bw_node *build(const bwi_layer *layer, bwi_graph *graph, bw_node *const *inputs, int input_count)
{
    (void)input_count;
    const bwi_argument_value *v = layer->values;
    bw_node *x = inputs[0];
    int64_t size[2] = {v[HEIGHT].integer, v[WIDTH].integer};
    if (v[CROP].flag && v[PAD].flag) {
        return bwi_fail_build(graph->ctx, BW_INVALID_ARGUMENT,
                              "layer %s: only one of crop_to_aspect_ratio and pad_to_aspect_ratio may be true", layer->name);
    }
    x = v[CROP].flag || v[PAD].flag ? to_aspect(layer, graph, x, v[CROP].flag) : x;
    return bwi_layer_resample(graph, layer->name, x, size, v[INTERPOLATION].text, v[ANTIALIAS].flag);
}

const bwi_layer_row bwi_layer_resizing = {"Resizing", "resizing", "resizing", arguments, COUNT, build, BWI_LAYER_IMAGE};
