/*
 * Layers that change the colours of images at random: RandomGrayscale, RandomColorDegeneration, RandomInvert, Solarization,
 * RandomPosterization. They are active in training only. Their random streams are those of noise.c.
 */
#include "layer/internal.h"

enum { FACTOR, RANGE, SEED, COUNT };
enum { ADDITION, THRESHOLD, SOLAR_RANGE, SOLAR_SEED, SOLAR_COUNT };
enum { GREY_SEED = 1, GREY_COUNT };

/* clang-format off */
#define RANGE_ARGUMENT {"value_range", NULL, BWI_FLOATS, "", -1e30, 1e30, NULL}
#define SEED_ARGUMENT {"seed", NULL, BWI_INT, "", 0, 1e15, NULL}
/* clang-format on */

static const bwi_argument grey_arguments[GREY_COUNT] = {
    [FACTOR] = {"factor", NULL, BWI_FLOAT, "0.5", 0, 1, NULL}, [GREY_SEED] = SEED_ARGUMENT};
static const bwi_argument degenerate_arguments[COUNT] = {
    [FACTOR] = {"factor", NULL, BWI_FLOATS, NULL, -1, 1, NULL}, [RANGE] = RANGE_ARGUMENT, [SEED] = SEED_ARGUMENT};
static const bwi_argument invert_arguments[COUNT] = {
    [FACTOR] = {"factor", NULL, BWI_FLOATS, "1", 0, 1, NULL}, [RANGE] = RANGE_ARGUMENT, [SEED] = SEED_ARGUMENT};
static const bwi_argument posterize_arguments[COUNT] = {
    [FACTOR] = {"factor", NULL, BWI_FLOATS, NULL, 1, 8, NULL}, [RANGE] = RANGE_ARGUMENT, [SEED] = SEED_ARGUMENT};
static const bwi_argument solarize_arguments[SOLAR_COUNT] = {[ADDITION] = {"addition_factor", NULL, BWI_FLOATS, "0", 0, 1, NULL},
                                                             [THRESHOLD] = {"threshold_factor", NULL, BWI_FLOATS, "0", 0, 1, NULL},
                                                             [SOLAR_RANGE] = RANGE_ARGUMENT,
                                                             [SOLAR_SEED] = SEED_ARGUMENT};

/* Two numbers in either order, or one, which is the upper limit; the lower one is then its negative, but not below `least`. */
static bool read_limits(const bwi_layer *layer, bwi_graph *graph, int argument, float least, float limits[2])
{
    const bwi_argument_value *v = &layer->values[argument];
    if (v->count != 1 && v->count != 2) {
        bwi_fail_build(graph->ctx, BW_INVALID_ARGUMENT, "layer %s: %s: expected one number or two, got %d", layer->name,
                       layer->row->arguments[argument].name, v->count);
        return false;
    }
    float a = (float)v->numbers[0], b = (float)v->numbers[v->count - 1];
    if (v->count == 1) {
        b = a < 0 ? -a : a;
        a = -b < least ? least : -b;
    }
    limits[0] = a < b ? a : b;
    limits[1] = a < b ? b : a;
    return true;
}

static bool read_range(const bwi_layer *layer, bwi_graph *graph, int argument, float range[2])
{
    const bwi_argument_value *v = &layer->values[argument];
    float a = v->count ? (float)v->numbers[0] : 0, b = v->count ? (float)v->numbers[v->count - 1] : 255;
    range[0] = a < b ? a : b;
    range[1] = a < b ? b : a;
    if ((v->count && v->count != 2) || !(range[0] < range[1])) {
        bwi_fail_build(graph->ctx, BW_INVALID_ARGUMENT, "layer %s: value_range: expected two different numbers", layer->name);
        return false;
    }
    return true;
}

static bw_node *add(const bwi_layer *layer, bwi_graph *graph, bw_node *x, bwi_random_color_attributes *a, int seed)
{
    a->stream = bwi_layer_stream(layer, graph, &bwi_op_random_color, seed);
    return bwi_graph_add(graph, &bwi_op_random_color, layer->name, a, sizeof *a, &x, 1, NULL, 0);
}

static bw_node *build_grey(const bwi_layer *layer, bwi_graph *graph, bw_node *const *inputs, int input_count)
{
    (void)input_count;
    float chance = (float)layer->values[FACTOR].number;
    bwi_random_color_attributes a = {.kind = BWI_COLOR_GREY, .chance = {chance, chance}, .first = {1, 1}};
    return add(layer, graph, inputs[0], &a, GREY_SEED);
}

/* One drawn below 2 always happens. */
static bw_node *build_degenerate(const bwi_layer *layer, bwi_graph *graph, bw_node *const *inputs, int input_count)
{
    (void)input_count;
    bwi_random_color_attributes a = {.kind = BWI_COLOR_GREY, .chance = {2, 2}, .clips = true};
    if (!read_limits(layer, graph, FACTOR, -1, a.first) || !read_range(layer, graph, RANGE, a.range)) {
        return NULL;
    }
    return add(layer, graph, inputs[0], &a, SEED);
}

static bw_node *build_invert(const bwi_layer *layer, bwi_graph *graph, bw_node *const *inputs, int input_count)
{
    (void)input_count;
    bwi_random_color_attributes a = {.kind = BWI_COLOR_INVERT};
    if (!read_limits(layer, graph, FACTOR, 0, a.chance) || !read_range(layer, graph, RANGE, a.range)) {
        return NULL;
    }
    return add(layer, graph, inputs[0], &a, SEED);
}

/* The number of bits that are kept is drawn from the lower limit up to, but not with, the upper one. */
static bw_node *build_posterize(const bwi_layer *layer, bwi_graph *graph, bw_node *const *inputs, int input_count)
{
    (void)input_count;
    bwi_random_color_attributes a = {.kind = BWI_COLOR_POSTERIZE, .chance = {2, 2}};
    if (!read_limits(layer, graph, FACTOR, 1, a.first) || !read_range(layer, graph, RANGE, a.range)) {
        return NULL;
    }
    return add(layer, graph, inputs[0], &a, SEED);
}

/* Only the upper limits are shares of 255, as in Keras; a single number is the upper limit and 0 the lower one. */
static bw_node *build_solarize(const bwi_layer *layer, bwi_graph *graph, bw_node *const *inputs, int input_count)
{
    (void)input_count;
    bwi_random_color_attributes a = {.kind = BWI_COLOR_SOLARIZE, .chance = {2, 2}};
    if (!read_limits(layer, graph, ADDITION, 0, a.first) || !read_limits(layer, graph, THRESHOLD, 0, a.second) ||
        !read_range(layer, graph, SOLAR_RANGE, a.range)) {
        return NULL;
    }
    a.first[1] *= 255;
    a.second[1] *= 255;
    return add(layer, graph, inputs[0], &a, SOLAR_SEED);
}

const bwi_layer_row bwi_layer_random_grayscale = {"RandomGrayscale", "random_grayscale", "random_grayscale", grey_arguments,
                                                  GREY_COUNT,        build_grey,         BWI_LAYER_IMAGE};
const bwi_layer_row bwi_layer_random_color_degeneration = {"RandomColorDegeneration",
                                                           "random_color_degeneration",
                                                           "random_color_degeneration",
                                                           degenerate_arguments,
                                                           COUNT,
                                                           build_degenerate,
                                                           BWI_LAYER_IMAGE};
const bwi_layer_row bwi_layer_random_invert = {"RandomInvert", "random_invert", "random_invert", invert_arguments,
                                               COUNT,          build_invert,    BWI_LAYER_IMAGE};
const bwi_layer_row bwi_layer_random_posterization = {
    "RandomPosterization", "random_posterization", "random_posterization", posterize_arguments, COUNT,
    build_posterize,       BWI_LAYER_IMAGE};
const bwi_layer_row bwi_layer_solarization = {"Solarization", "solarization", "solarization", solarize_arguments,
                                              SOLAR_COUNT,    build_solarize, BWI_LAYER_IMAGE};
