/*
 * LayerNormalization normalises by statistics of the sample itself, Normalization by a mean and variance that are stored or given,
 * and Rescaling by a given scale and offset.
 */
#include "layer/internal.h"

#include <math.h>

/* ---- LayerNormalization ---- */

enum {
    AXIS,
    EPSILON,
    CENTER,
    SCALE,
    BETA_INITIALIZER,
    GAMMA_INITIALIZER,
    BETA_REGULARIZER,
    GAMMA_REGULARIZER,
    RMS_SCALING,
    LAYERNORM_COUNT
};

static const bwi_argument layernorm_arguments[LAYERNORM_COUNT] = {
    [AXIS] = {"axis", NULL, BWI_INTS, "-1", -BW_MAX_NDIM, BW_MAX_NDIM, NULL},
    [EPSILON] = {"epsilon", NULL, BWI_FLOAT, "0.001", 0, 1e9, NULL},
    [CENTER] = {"center", NULL, BWI_BOOL, "true", 0, 0, NULL},
    [SCALE] = {"scale", NULL, BWI_BOOL, "true", 0, 0, NULL},
    [BETA_INITIALIZER] = {"beta_initializer", NULL, BWI_CALL, "zeros", 0, 0, NULL},
    [GAMMA_INITIALIZER] = {"gamma_initializer", NULL, BWI_CALL, "ones", 0, 0, NULL},
    [BETA_REGULARIZER] = {"beta_regularizer", NULL, BWI_CALL, "none", 0, 0, NULL},
    [GAMMA_REGULARIZER] = {"gamma_regularizer", NULL, BWI_CALL, "none", 0, 0, NULL},
    [RMS_SCALING] = {"rms_scaling", NULL, BWI_BOOL, "false", 0, 0, NULL},
};

/* Finds which of the sample's axes are named. */
static bool read_axes(bwi_graph *graph, const bwi_layer *layer, const bwi_shape *shape, bool *named)
{
    const bwi_argument_value *v = &layer->values[AXIS];
    for (int i = 0; i < v->count; i++) {
        int axis;
        if (!bwi_layer_axis(graph, layer, AXIS, v->integers[i], shape->ndim, &axis)) {
            return false;
        }
        named[axis] = true;
    }
    return true;
}

/* Finds the named axes, which must be the last ones. */
static int last_axes(bwi_graph *graph, const bwi_layer *layer, const bwi_shape *in, bwi_shape *shape)
{
    bool named[BW_MAX_NDIM] = {false};
    if (!read_axes(graph, layer, in, named)) {
        return 0;
    }
    *shape = (bwi_shape){.ndim = 0};
    bool gap = false;
    for (int i = 0; i < in->ndim; i++) {
        gap = gap || (shape->ndim && !named[i]);
        if (named[i]) {
            shape->extent[shape->ndim++] = in->extent[i];
        }
    }
    if (!shape->ndim || gap) {
        bwi_fail_build(graph->ctx, BW_UNIMPLEMENTED, "layer %s: axis: expected the last axes of the input, without gaps",
                       layer->name);
        return 0;
    }
    return shape->ndim;
}

/* Gamma and beta have the shape of the last axes, which are normalised together. */
static bw_node *build_layernorm(const bwi_layer *layer, bwi_graph *graph, bw_node *const *inputs, int input_count)
{
    (void)input_count;
    bw_node *x = inputs[0];
    const bwi_argument_value *v = layer->values;
    bwi_shape shape;
    bwi_layernorm_attributes a = {.epsilon = (float)v[EPSILON].number, .center = v[CENTER].flag, .scale = v[SCALE].flag};
    if (v[RMS_SCALING].flag) {
        return bwi_fail_build(graph->ctx, BW_UNIMPLEMENTED, "layer %s: rms_scaling is not supported", layer->name);
    }
    a.axes = last_axes(graph, layer, &x->shape, &shape);
    if (!a.axes) {
        return NULL;
    }
    int64_t width = bwi_shape_count(&shape);
    bwi_variable *variables[2];
    int count = 0;
    if (a.scale) {
        variables[count++] = bwi_layer_variable(graph, layer, "gamma", &shape, GAMMA_INITIALIZER, GAMMA_REGULARIZER, width, width);
    }
    if (a.center) {
        variables[count++] = bwi_layer_variable(graph, layer, "beta", &shape, BETA_INITIALIZER, BETA_REGULARIZER, width, width);
    }
    return bwi_graph_add(graph, &bwi_op_layernorm, layer->name, &a, sizeof a, &x, 1, variables, count);
}

const bwi_layer_row bwi_layer_layernorm = {"LayerNormalization", "layer_normalization", "layernorm layer_normalization",
                                           layernorm_arguments,  LAYERNORM_COUNT,       build_layernorm,
                                           BWI_LAYER_PASSES_MASK};

/* ---- Rescaling ---- */

enum { RESCALING_SCALE, RESCALING_OFFSET, RESCALING_COUNT };

static const bwi_argument rescaling_arguments[RESCALING_COUNT] = {
    [RESCALING_SCALE] = {"scale", NULL, BWI_FLOAT, NULL, 0, 0, NULL},
    [RESCALING_OFFSET] = {"offset", NULL, BWI_FLOAT, "0", 0, 0, NULL},
};

static bw_node *add_scale(const bwi_layer *layer, bwi_graph *graph, bw_node *x, double scale, double offset)
{
    bwi_scale_attributes a = {.scale = (float)scale, .offset = (float)offset};
    return bwi_graph_add(graph, &bwi_op_scale, layer->name, &a, sizeof a, &x, 1, NULL, 0);
}

static bw_node *build_rescaling(const bwi_layer *layer, bwi_graph *graph, bw_node *const *inputs, int input_count)
{
    (void)input_count;
    return add_scale(layer, graph, inputs[0], layer->values[RESCALING_SCALE].number, layer->values[RESCALING_OFFSET].number);
}

const bwi_layer_row bwi_layer_rescaling = {"Rescaling",     "rescaling",     "rescaling",          rescaling_arguments,
                                           RESCALING_COUNT, build_rescaling, BWI_LAYER_PASSES_MASK};

/* ---- Normalization ---- */

enum { MEAN = AXIS + 1, VARIANCE, INVERT, NORMALIZATION_COUNT };

static const bwi_argument normalization_arguments[NORMALIZATION_COUNT] = {
    [AXIS] = {"axis", NULL, BWI_INTS, "-1", -BW_MAX_NDIM, BW_MAX_NDIM, NULL},
    [MEAN] = {"mean", NULL, BWI_FLOAT, "", 0, 0, NULL},
    [VARIANCE] = {"variance", NULL, BWI_FLOAT, "", 0, 1e300, NULL},
    [INVERT] = {"invert", NULL, BWI_BOOL, "false", 0, 0, NULL},
};

/* All values share one mean and variance; Keras's least deviation is 1e-7. */
static bw_node *normalize_by_numbers(const bwi_layer *layer, bwi_graph *graph, bw_node *x)
{
    const bwi_argument_value *v = layer->values;
    double mean = v[MEAN].number, deviation = fmax(sqrt(v[VARIANCE].number), 1e-7);
    return v[INVERT].flag ? add_scale(layer, graph, x, deviation, mean)
                          : add_scale(layer, graph, x, 1 / deviation, -mean / deviation);
}

/* The mean and the variance have the extents of the named axes; Keras stores a count beside them. None of them is trained. */
static bw_node *build_normalization(const bwi_layer *layer, bwi_graph *graph, bw_node *const *inputs, int input_count)
{
    (void)input_count;
    const bwi_argument_value *v = layer->values;
    bw_node *x = inputs[0];
    bool named[BW_MAX_NDIM] = {false};
    if (v[MEAN].given != v[VARIANCE].given) {
        return bwi_fail_build(graph->ctx, BW_INVALID_ARGUMENT, "layer %s: expected both mean and variance or neither, got %s only",
                              layer->name, v[MEAN].given ? "mean" : "variance");
    }
    if (!read_axes(graph, layer, &x->shape, named)) {
        return NULL;
    }
    if (v[MEAN].given) {
        return normalize_by_numbers(layer, graph, x);
    }
    bwi_normalization_attributes a = {.spread = x->shape, .invert = v[INVERT].flag};
    bwi_shape shape = {.ndim = 0}, single = {.ndim = 0};
    for (int i = 0; i < x->shape.ndim; i++) {
        a.spread.extent[i] = named[i] ? x->shape.extent[i] : 1;
        if (named[i]) {
            shape.extent[shape.ndim++] = x->shape.extent[i];
        }
    }
    bwi_variable *variables[] = {bwi_graph_variable(graph, layer->name, "mean", &shape, false, "zeros", 0, 0),
                                 bwi_graph_variable(graph, layer->name, "variance", &shape, false, "ones", 0, 0),
                                 bwi_graph_variable(graph, layer->name, "count", &single, false, "zeros", 0, 0)};
    return bwi_graph_add(graph, &bwi_op_normalization, layer->name, &a, sizeof a, &x, 1, variables, (int)BWI_COUNT(variables));
}

const bwi_layer_row bwi_layer_normalization = {"Normalization",         "normalization",     "normalization",
                                               normalization_arguments, NORMALIZATION_COUNT, build_normalization,
                                               BWI_LAYER_PASSES_MASK};
