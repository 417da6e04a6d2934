/*
 * Layers that change images at random: RandomFlip, RandomTranslation, RandomRotation, RandomZoom, RandomBrightness, RandomContrast.
 * They are active in training only, and a layer that would change nothing does nothing. Their random streams are those of noise.c.
 */
#include "layer/internal.h"

#include <string.h>

enum { FACTOR, WIDTH_FACTOR, FILL_MODE, INTERPOLATION, FILL_VALUE, SEED, VIEW_COUNT };
enum { RANGE = WIDTH_FACTOR, SHADE_SEED, SHADE_COUNT };
enum { MODE, FLIP_SEED, FLIP_COUNT };
enum { TURN_FILL_MODE = 1, TURN_INTERPOLATION, TURN_FILL_VALUE, TURN_SEED, TURN_COUNT };

/* clang-format off */
#define SEED_ARGUMENT {"seed", NULL, BWI_INT, "", 0, 1e15, NULL}
/* clang-format on */
#define FILLS "reflect wrap constant nearest"
/* clang-format off */
#define VIEW_ARGUMENTS(second)                                                                     \
    {                                                                                              \
        [FACTOR] = {"height_factor", NULL, BWI_FLOATS, NULL, -1, 10, NULL},                        \
        [WIDTH_FACTOR] = {"width_factor", NULL, BWI_FLOATS, second, -1, 10, NULL},                 \
        [FILL_MODE] = {"fill_mode", NULL, BWI_TEXT, "reflect", 0, 0, FILLS},                       \
        [INTERPOLATION] = {"interpolation", NULL, BWI_TEXT, "bilinear", 0, 0, "bilinear nearest"}, \
        [FILL_VALUE] = {"fill_value", NULL, BWI_FLOAT, "0", -1e30, 1e30, NULL},                    \
        [SEED] = SEED_ARGUMENT,                                                                    \
    }
/* clang-format on */

static const bwi_argument shift_arguments[VIEW_COUNT] = VIEW_ARGUMENTS(NULL);
static const bwi_argument zoom_arguments[VIEW_COUNT] = VIEW_ARGUMENTS("");
static const bwi_argument turn_arguments[TURN_COUNT] = {
    [FACTOR] = {"factor", NULL, BWI_FLOATS, NULL, -1, 1, NULL},
    [TURN_FILL_MODE] = {"fill_mode", NULL, BWI_TEXT, "reflect", 0, 0, FILLS},
    [TURN_INTERPOLATION] = {"interpolation", NULL, BWI_TEXT, "bilinear", 0, 0, "bilinear nearest"},
    [TURN_FILL_VALUE] = {"fill_value", NULL, BWI_FLOAT, "0", -1e30, 1e30, NULL},
    [TURN_SEED] = SEED_ARGUMENT,
};
static const bwi_argument flip_arguments[FLIP_COUNT] = {
    [MODE] = {"mode", NULL, BWI_TEXT, "horizontal_and_vertical", 0, 0, "horizontal vertical horizontal_and_vertical"},
    [FLIP_SEED] = SEED_ARGUMENT,
};
/* clang-format off */
#define SHADE_ARGUMENTS(least)                                              \
    {                                                                       \
        [FACTOR] = {"factor", NULL, BWI_FLOATS, NULL, least, 1, NULL},      \
        [RANGE] = {"value_range", NULL, BWI_FLOATS, "", -1e30, 1e30, NULL}, \
        [SHADE_SEED] = SEED_ARGUMENT,                                       \
    }
/* clang-format on */
static const bwi_argument brightness_arguments[SHADE_COUNT] = SHADE_ARGUMENTS(-1);
static const bwi_argument contrast_arguments[SHADE_COUNT] = SHADE_ARGUMENTS(0);

/* Reads the limits of what is drawn: two numbers in either order, or one for both signs, of which none is below `least`. */
static bool read_limits(const bwi_layer *layer, bwi_graph *graph, int argument, float least, float limits[2])
{
    const bwi_argument_value *v = &layer->values[argument];
    if (v->count != 1 && v->count != 2) {
        bwi_fail_build(graph->ctx, BW_INVALID_ARGUMENT, "layer %s: %s: expected one number or two, got %d", layer->name,
                       layer->row->arguments[argument].name, v->count);
        return false;
    }
    float a = (float)v->numbers[0], b = (float)v->numbers[v->count - 1];
    float size = a < 0 ? -a : a;
    if (v->count == 1) {
        a = -size < least ? least : -size;
        b = size;
    }
    limits[0] = a < b ? a : b;
    limits[1] = a < b ? b : a;
    return true;
}

static bool is_still(const float limits[2])
{
    return limits[0] >= 0 && limits[0] <= 0 && limits[1] <= 0;
}

static bwi_fill fill_of(const char *word)
{
    static const char *const words[] = {"constant", "nearest", "reflect", "wrap"};
    int fill = 0;
    while (strcmp(words[fill], word) != 0) {
        fill++;
    }
    return (bwi_fill)fill;
}

static bw_node *add_view(const bwi_layer *layer, bwi_graph *graph, bw_node *x, bwi_random_view_attributes *a, int seed)
{
    a->stream = bwi_layer_stream(layer, graph, &bwi_op_random_view, seed);
    return bwi_graph_add(graph, &bwi_op_random_view, layer->name, a, sizeof *a, &x, 1, NULL, 0);
}

static bwi_random_view_attributes view_of(const bwi_layer *layer, int mode, int interpolation, int value)
{
    return (bwi_random_view_attributes){.zoom = {{1, 1}, {1, 1}},
                                        .fill = fill_of(layer->values[mode].text),
                                        .nearest = layer->values[interpolation].text[0] == 'n',
                                        .value = (float)layer->values[value].number};
}

static bw_node *build_flip(const bwi_layer *layer, bwi_graph *graph, bw_node *const *inputs, int input_count)
{
    (void)input_count;
    const char *mode = layer->values[MODE].text;
    bwi_random_view_attributes a = {
        .zoom = {{1, 1}, {1, 1}}, .nearest = true, .flip = {strcmp(mode, "horizontal") != 0, mode[0] == 'h'}};
    return add_view(layer, graph, inputs[0], &a, FLIP_SEED);
}

static bw_node *build_shift(const bwi_layer *layer, bwi_graph *graph, bw_node *const *inputs, int input_count)
{
    (void)input_count;
    bwi_random_view_attributes a = view_of(layer, FILL_MODE, INTERPOLATION, FILL_VALUE);
    if (!read_limits(layer, graph, FACTOR, -1, a.shift[0]) || !read_limits(layer, graph, WIDTH_FACTOR, -1, a.shift[1])) {
        return NULL;
    }
    return is_still(a.shift[0]) && is_still(a.shift[1]) ? inputs[0] : add_view(layer, graph, inputs[0], &a, SEED);
}

static bw_node *build_turn(const bwi_layer *layer, bwi_graph *graph, bw_node *const *inputs, int input_count)
{
    (void)input_count;
    bwi_random_view_attributes a = view_of(layer, TURN_FILL_MODE, TURN_INTERPOLATION, TURN_FILL_VALUE);
    if (!read_limits(layer, graph, FACTOR, -1, a.turn)) {
        return NULL;
    }
    return is_still(a.turn) ? inputs[0] : add_view(layer, graph, inputs[0], &a, TURN_SEED);
}

/* A factor above 0 shows more than the image, so it is a magnification of less than 1. */
static bw_node *build_zoom(const bwi_layer *layer, bwi_graph *graph, bw_node *const *inputs, int input_count)
{
    (void)input_count;
    bwi_random_view_attributes a = view_of(layer, FILL_MODE, INTERPOLATION, FILL_VALUE);
    a.one_zoom = !layer->values[WIDTH_FACTOR].count;
    if (!read_limits(layer, graph, FACTOR, -1, a.zoom[0]) ||
        (!a.one_zoom && !read_limits(layer, graph, WIDTH_FACTOR, -1, a.zoom[1]))) {
        return NULL;
    }
    if (is_still(a.zoom[0]) && (a.one_zoom || is_still(a.zoom[1]))) {
        return inputs[0];
    }
    for (int k = 0; k < 4; k++) {
        a.zoom[k / 2][k % 2] += k < 2 || !a.one_zoom ? 1 : 0;
    }
    return add_view(layer, graph, inputs[0], &a, SEED);
}

/* ---- Brightness and contrast ---- */

static bool read_range(const bwi_layer *layer, bwi_graph *graph, float range[2])
{
    const bwi_argument_value *v = &layer->values[RANGE];
    range[0] = v->count ? (float)v->numbers[0] : 0;
    range[1] = v->count ? (float)v->numbers[v->count - 1] : 255;
    if ((v->count && v->count != 2) || range[0] >= range[1]) {
        bwi_fail_build(graph->ctx, BW_INVALID_ARGUMENT, "layer %s: value_range: expected two numbers, the smaller one first",
                       layer->name);
        return false;
    }
    return true;
}

static bw_node *add_contrast(const bwi_layer *layer, bwi_graph *graph, bw_node *x, bwi_random_contrast_attributes *a)
{
    a->stream = bwi_layer_stream(layer, graph, &bwi_op_random_contrast, SHADE_SEED);
    return bwi_graph_add(graph, &bwi_op_random_contrast, layer->name, a, sizeof *a, &x, 1, NULL, 0);
}

/* The share of the range that is added. */
static bw_node *build_brightness(const bwi_layer *layer, bwi_graph *graph, bw_node *const *inputs, int input_count)
{
    (void)input_count;
    bwi_random_contrast_attributes a = {.factor = {1, 1}};
    if (!read_limits(layer, graph, FACTOR, -1, a.offset) || !read_range(layer, graph, a.range)) {
        return NULL;
    }
    a.offset[0] *= a.range[1] - a.range[0];
    a.offset[1] *= a.range[1] - a.range[0];
    return add_contrast(layer, graph, inputs[0], &a);
}

/* Factors lie between 1 - lower and 1 + upper; a single number is the upper one, as Keras reads it. */
static bw_node *build_contrast(const bwi_layer *layer, bwi_graph *graph, bw_node *const *inputs, int input_count)
{
    (void)input_count;
    bwi_random_contrast_attributes a = {.offset = {0, 0}};
    if (!read_limits(layer, graph, FACTOR, 0, a.factor) || !read_range(layer, graph, a.range)) {
        return NULL;
    }
    a.factor[0] = 1 - a.factor[0];
    a.factor[1] = 1 + a.factor[1];
    return add_contrast(layer, graph, inputs[0], &a);
}

const bwi_layer_row bwi_layer_random_flip = {"RandomFlip", "random_flip", "random_flip",  flip_arguments,
                                             FLIP_COUNT,   build_flip,    BWI_LAYER_IMAGE};
const bwi_layer_row bwi_layer_random_translation = {
    "RandomTranslation", "random_translation", "random_translation", shift_arguments, VIEW_COUNT, build_shift, BWI_LAYER_IMAGE};
const bwi_layer_row bwi_layer_random_rotation = {"RandomRotation", "random_rotation", "random_rotation", turn_arguments,
                                                 TURN_COUNT,       build_turn,        BWI_LAYER_IMAGE};
const bwi_layer_row bwi_layer_random_zoom = {"RandomZoom", "random_zoom", "random_zoom",  zoom_arguments,
                                             VIEW_COUNT,   build_zoom,    BWI_LAYER_IMAGE};
const bwi_layer_row bwi_layer_random_brightness = {"RandomBrightness",   "random_brightness", "random_brightness",
                                                   brightness_arguments, SHADE_COUNT,         build_brightness,
                                                   BWI_LAYER_IMAGE};
const bwi_layer_row bwi_layer_random_contrast = {"RandomContrast", "random_contrast", "random_contrast", contrast_arguments,
                                                 SHADE_COUNT,      build_contrast,    BWI_LAYER_IMAGE};
