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

/* Gamma and beta have the shape of the named axes, which are normalised together. The op takes the last axes, so others are moved
 * there, and back. */
static bw_node *build_layernorm(const bwi_layer *layer, bwi_graph *graph, bw_node *const *inputs, int input_count)
{
    (void)input_count;
    bw_node *x = inputs[0];
    const bwi_argument_value *v = layer->values;
    bool named[BW_MAX_NDIM] = {false};
    bwi_permute_attributes there, back;
    bwi_shape shape = {.ndim = 0};
    bwi_layernorm_attributes a = {.epsilon = (float)v[EPSILON].number, .center = v[CENTER].flag, .scale = v[SCALE].flag};
    if (v[RMS_SCALING].flag) {
        return bwi_fail_build(graph->ctx, BW_UNIMPLEMENTED, "layer %s: rms_scaling is not supported", layer->name);
    }
    if (!read_axes(graph, layer, &x->shape, named)) {
        return NULL;
    }
    a.axes = bwi_compose_last(&x->shape, named, &there, &back);
    if (!a.axes) {
        return bwi_fail_build(graph->ctx, BW_INVALID_ARGUMENT, "layer %s: axis: expected at least one axis", layer->name);
    }
    for (int i = there.ndim - a.axes; i < there.ndim; i++) {
        shape.extent[shape.ndim++] = x->shape.extent[there.axes[i]];
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
    x = bwi_compose_permute(graph, layer->name, x, &there);
    x = bwi_graph_add(graph, &bwi_op_layernorm, layer->name, &a, sizeof a, &x, 1, variables, count);
    return bwi_compose_permute(graph, layer->name, x, &back);
}

const bwi_layer_row bwi_layer_layernorm = {"LayerNormalization", "layer_normalization", "layernorm layer_normalization",
                                           layernorm_arguments,  LAYERNORM_COUNT,       build_layernorm,
                                           BWI_LAYER_PASSES_MASK};

/* ---- Rescaling ---- */

enum { RESCALING_SCALE, RESCALING_OFFSET, RESCALING_COUNT };

static const bwi_argument rescaling_arguments[RESCALING_COUNT] = {
    [RESCALING_SCALE] = {"scale", NULL, BWI_FLOATS, NULL, 0, 0, NULL},
    [RESCALING_OFFSET] = {"offset", NULL, BWI_FLOATS, "0", 0, 0, NULL},
};

static bw_node *add_scale(const bwi_layer *layer, bwi_graph *graph, bw_node *x, double scale, double offset)
{
    bwi_scale_attributes a = {.scale = (float)scale, .offset = (float)offset};
    return bwi_graph_add(graph, &bwi_op_scale, layer->name, &a, sizeof a, &x, 1, NULL, 0);
}

/* (x - mean) scale + shift by channel; what holds one number gives it to every channel. */
static bw_node *add_map(const bwi_layer *layer, bwi_graph *graph, bw_node *x, const bwi_argument_value *mean,
                        const bwi_argument_value *scale, const bwi_argument_value *shift)
{
    const bwi_argument_value *parts[3] = {mean, scale, shift};
    int64_t channels = x->shape.ndim ? x->shape.extent[x->shape.ndim - 1] : 0;
    char room[sizeof(bwi_channel_map_attributes) + 3 * BWI_MAX_INTS * sizeof(float)] __attribute__((aligned(8)));
    bwi_channel_map_attributes *a = (bwi_channel_map_attributes *)(void *)room;
    for (int k = 0; k < 3; k++) {
        if (parts[k]->count > 1 && parts[k]->count != channels) {
            char text[160];
            return bwi_fail_build(graph->ctx, BW_INVALID_ARGUMENT, "layer %s: %d numbers do not fit the last axis of %s",
                                  layer->name, parts[k]->count, bwi_format_shape(text, x->shape.ndim, x->shape.extent));
        }
    }
    for (int64_t i = 0; i < 3 * channels; i++) {
        const bwi_argument_value *part = parts[i / channels];
        a->number[i] = (float)part->numbers[part->count > 1 ? i % channels : 0];
    }
    a->channels = channels;
    return bwi_graph_add(graph, &bwi_op_channel_map, layer->name, a, sizeof *a + (size_t)channels * 3 * sizeof(float), &x, 1, NULL,
                         0);
}

static bw_node *build_rescaling(const bwi_layer *layer, bwi_graph *graph, bw_node *const *inputs, int input_count)
{
    (void)input_count;
    const bwi_argument_value *scale = &layer->values[RESCALING_SCALE], *offset = &layer->values[RESCALING_OFFSET];
    bwi_argument_value zero = {.count = 1};
    return scale->count > 1 || offset->count > 1 ? add_map(layer, graph, inputs[0], &zero, scale, offset)
                                                 : add_scale(layer, graph, inputs[0], scale->number, offset->number);
}

const bwi_layer_row bwi_layer_rescaling = {"Rescaling",     "rescaling",     "rescaling",          rescaling_arguments,
                                           RESCALING_COUNT, build_rescaling, BWI_LAYER_PASSES_MASK};

/* ---- Normalization ---- */

enum { MEAN = AXIS + 1, VARIANCE, INVERT, NORMALIZATION_COUNT };

static const bwi_argument normalization_arguments[NORMALIZATION_COUNT] = {
    [AXIS] = {"axis", NULL, BWI_INTS, "-1", -BW_MAX_NDIM, BW_MAX_NDIM, NULL},
    [MEAN] = {"mean", NULL, BWI_FLOATS, "", 0, 0, NULL},
    [VARIANCE] = {"variance", NULL, BWI_FLOATS, "", 0, 1e300, NULL},
    [INVERT] = {"invert", NULL, BWI_BOOL, "false", 0, 0, NULL},
};

/* Keras's least deviation is 1e-7. Lists have a number for each channel. */
static bw_node *normalize_by_numbers(const bwi_layer *layer, bwi_graph *graph, bw_node *x, bool last)
{
    const bwi_argument_value *v = layer->values, *mean = &v[MEAN];
    bwi_argument_value factors = v[VARIANCE], zero = {.count = 1};
    for (int i = 0; i < factors.count; i++) {
        double deviation = fmax(sqrt(factors.numbers[i]), 1e-7);
        factors.numbers[i] = v[INVERT].flag ? deviation : 1 / deviation;
    }
    if (mean->count == 1 && factors.count == 1) {
        double factor = factors.numbers[0];
        return add_scale(layer, graph, x, factor, v[INVERT].flag ? mean->number : -mean->number * factor);
    }
    if (!last) {
        return bwi_fail_build(graph->ctx, BW_UNIMPLEMENTED, "layer %s: lists in mean and variance go along the last axis only",
                              layer->name);
    }
    return v[INVERT].flag ? add_map(layer, graph, x, &zero, &factors, mean) : add_map(layer, graph, x, mean, &factors, &zero);
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
        bool last = v[AXIS].count == 1 && x->shape.ndim > 0 && named[x->shape.ndim - 1];
        return normalize_by_numbers(layer, graph, x, last);
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
