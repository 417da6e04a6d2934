/*
 * Merging layers: Add, Subtract, Multiply, Average, Maximum, Minimum, Concatenate, Dot. Inputs of the first six broadcast: axes are
 * aligned at the last one, and extents of 1 and missing axes are repeated. Products and extremes of several inputs are computed
 * pairwise from the first one on, as Keras does.
 */
#include "layer/internal.h"

static bool expect(const bwi_layer *layer, bwi_graph *graph, int count, int least, int most)
{
    if (count >= least && count <= most) {
        return true;
    }
    bwi_fail_build(graph->ctx, BW_INVALID_ARGUMENT, "layer %s: expected %s%d inputs, got %d", layer->name,
                   least == most ? "" : "at least ", least, count);
    return false;
}

/* Repeats each input to the shape that all have in common. */
static bool align(const bwi_layer *layer, bwi_graph *graph, bw_node *const *inputs, int count, bw_node **aligned)
{
    bwi_shape shape = inputs[0]->shape;
    for (int k = 1; k < count; k++) {
        bwi_shape both;
        char a[160], b[160];
        if (!bwi_shape_broadcast(&shape, &inputs[k]->shape, &both)) {
            bwi_fail_build(graph->ctx, BW_INVALID_ARGUMENT, "layer %s: shapes %s and %s do not broadcast", layer->name,
                           bwi_format_shape(a, shape.ndim, shape.extent),
                           bwi_format_shape(b, inputs[k]->shape.ndim, inputs[k]->shape.extent));
            return false;
        }
        shape = both;
    }
    for (int k = 0; k < count; k++) {
        aligned[k] = bwi_op_broadcast_to(graph, layer->name, inputs[k], &shape);
        if (!aligned[k]) {
            return false;
        }
    }
    return true;
}

/* ---- Sums ---- */

static bw_node *add(const bwi_layer *layer, bwi_graph *graph, bw_node *const *inputs, int count, bool subtract, float scale)
{
    bwi_add_attributes a = {.subtract = subtract, .scale = scale};
    bw_node *aligned[BWI_MAX_POINTS];
    return align(layer, graph, inputs, count, aligned)
               ? bwi_graph_add(graph, &bwi_op_add, layer->name, &a, sizeof a, aligned, count, NULL, 0)
               : NULL;
}

static bw_node *build_add(const bwi_layer *layer, bwi_graph *graph, bw_node *const *inputs, int count)
{
    return expect(layer, graph, count, 2, BWI_MAX_POINTS) ? add(layer, graph, inputs, count, false, 1) : NULL;
}

static bw_node *build_subtract(const bwi_layer *layer, bwi_graph *graph, bw_node *const *inputs, int count)
{
    return expect(layer, graph, count, 2, 2) ? add(layer, graph, inputs, count, true, 1) : NULL;
}

static bw_node *build_average(const bwi_layer *layer, bwi_graph *graph, bw_node *const *inputs, int count)
{
    return expect(layer, graph, count, 2, BWI_MAX_POINTS) ? add(layer, graph, inputs, count, false, 1 / (float)count) : NULL;
}

const bwi_layer_row bwi_layer_add = {"Add", "add", "add", NULL, 0, build_add, BWI_LAYER_MERGES | BWI_LAYER_PASSES_MASK};
const bwi_layer_row bwi_layer_subtract = {
    "Subtract", "subtract", "subtract", NULL, 0, build_subtract, BWI_LAYER_MERGES | BWI_LAYER_PASSES_MASK};
const bwi_layer_row bwi_layer_average = {
    "Average", "average", "average", NULL, 0, build_average, BWI_LAYER_MERGES | BWI_LAYER_PASSES_MASK};

/* ---- Two by two ---- */

static bw_node *fold(const bwi_layer *layer, bwi_graph *graph, bw_node *const *inputs, int count, bwi_binary_kind kind)
{
    bwi_binary_attributes a = {.kind = kind};
    bw_node *aligned[BWI_MAX_POINTS];
    if (!expect(layer, graph, count, 2, BWI_MAX_POINTS) || !align(layer, graph, inputs, count, aligned)) {
        return NULL;
    }
    bw_node *result = aligned[0];
    for (int k = 1; k < count; k++) {
        bw_node *both[2] = {result, aligned[k]};
        result = bwi_graph_add(graph, &bwi_op_binary, layer->name, &a, sizeof a, both, 2, NULL, 0);
    }
    return result;
}

static bw_node *build_multiply(const bwi_layer *layer, bwi_graph *graph, bw_node *const *inputs, int count)
{
    return fold(layer, graph, inputs, count, BWI_MULTIPLY);
}

static bw_node *build_maximum(const bwi_layer *layer, bwi_graph *graph, bw_node *const *inputs, int count)
{
    return fold(layer, graph, inputs, count, BWI_MAXIMUM);
}

static bw_node *build_minimum(const bwi_layer *layer, bwi_graph *graph, bw_node *const *inputs, int count)
{
    return fold(layer, graph, inputs, count, BWI_MINIMUM);
}

const bwi_layer_row bwi_layer_multiply = {
    "Multiply", "multiply", "multiply", NULL, 0, build_multiply, BWI_LAYER_MERGES | BWI_LAYER_REFUSES_MASK};
const bwi_layer_row bwi_layer_maximum = {
    "Maximum", "maximum", "maximum", NULL, 0, build_maximum, BWI_LAYER_MERGES | BWI_LAYER_REFUSES_MASK};
const bwi_layer_row bwi_layer_minimum = {
    "Minimum", "minimum", "minimum", NULL, 0, build_minimum, BWI_LAYER_MERGES | BWI_LAYER_REFUSES_MASK};

/* ---- Concatenate ---- */

enum { AXIS, CONCATENATE_COUNT };

static const bwi_argument concatenate_arguments[CONCATENATE_COUNT] = {
    [AXIS] = {"axis", NULL, BWI_INT, "-1", -BW_MAX_NDIM, BW_MAX_NDIM, NULL}};

static bw_node *build_concatenate(const bwi_layer *layer, bwi_graph *graph, bw_node *const *inputs, int count)
{
    bwi_axis_attributes a;
    if (!expect(layer, graph, count, 2, BWI_MAX_POINTS) ||
        !bwi_layer_axis(graph, layer, AXIS, layer->values[AXIS].integer, inputs[0]->shape.ndim, &a.axis)) {
        return NULL;
    }
    return bwi_graph_add(graph, &bwi_op_concatenate, layer->name, &a, sizeof a, inputs, count, NULL, 0);
}

const bwi_layer_row bwi_layer_concatenate = {"Concatenate",
                                             "concatenate",
                                             "concat concatenate",
                                             concatenate_arguments,
                                             CONCATENATE_COUNT,
                                             build_concatenate,
                                             BWI_LAYER_MERGES | BWI_LAYER_PASSES_MASK};

/* ---- Dot ---- */

enum { AXES, NORMALIZE, DOT_COUNT };

static const bwi_argument dot_arguments[DOT_COUNT] = {
    [AXES] = {"axes", NULL, BWI_INTS, NULL, -BW_MAX_NDIM, BW_MAX_NDIM, NULL},
    [NORMALIZE] = {"normalize", NULL, BWI_BOOL, "false", 0, 0, NULL},
};

/* A single axis applies to both inputs. Normalising first makes the product a cosine. */
static bw_node *build_dot(const bwi_layer *layer, bwi_graph *graph, bw_node *const *inputs, int count)
{
    const bwi_argument_value *axes = &layer->values[AXES];
    bwi_dot_attributes a;
    if (!expect(layer, graph, count, 2, 2)) {
        return NULL;
    }
    if (axes->count != 1 && axes->count != 2) {
        return bwi_fail_build(graph->ctx, BW_INVALID_ARGUMENT, "layer %s: axes: expected one number or two, got %d", layer->name,
                              axes->count);
    }
    bw_node *sides[2];
    for (int k = 0; k < 2; k++) {
        sides[k] = inputs[k];
        if (!bwi_layer_axis(graph, layer, AXES, axes->integers[k % axes->count], sides[k]->shape.ndim, &a.axis[k])) {
            return NULL;
        }
        if (layer->values[NORMALIZE].flag) {
            bwi_axis_attributes along = {.axis = a.axis[k]};
            sides[k] = bwi_graph_add(graph, &bwi_op_l2_normalize, layer->name, &along, sizeof along, &sides[k], 1, NULL, 0);
        }
    }
    return bwi_graph_add(graph, &bwi_op_dot, layer->name, &a, sizeof a, sides, 2, NULL, 0);
}

const bwi_layer_row bwi_layer_dot = {"Dot", "dot", "dot", dot_arguments, DOT_COUNT, build_dot, BWI_LAYER_MERGES};
