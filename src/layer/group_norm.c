/*
 * Normalisations that are put together from others: GroupNormalization (channels in groups, each with the statistics of a sample),
 * RMSNormalization (divides by the root of the mean square), UnitNormalization (divides by the length).
 */
#include "layer/internal.h"

static void name_axes(const bwi_argument_value *axes, const bwi_shape *shape, bool *named)
{
    for (int i = 0; i < axes->count; i++) {
        int64_t axis = axes->integers[i] < 0 ? axes->integers[i] + shape->ndim : axes->integers[i] - 1;
        named[axis] = true;
    }
}

static bool check_axes(bwi_graph *graph, const bwi_layer *layer, int argument, const bwi_shape *shape)
{
    const bwi_argument_value *axes = &layer->values[argument];
    int own;
    for (int i = 0; i < axes->count; i++) {
        if (!bwi_layer_axis(graph, layer, argument, axes->integers[i], shape->ndim, &own)) {
            return false;
        }
    }
    return true;
}

/* ---- GroupNormalization ---- */

enum {
    GROUPS,
    AXIS,
    EPSILON,
    CENTER,
    SCALE,
    BETA_INITIALIZER,
    GAMMA_INITIALIZER,
    BETA_REGULARIZER,
    GAMMA_REGULARIZER,
    GROUP_COUNT
};

static const bwi_argument group_arguments[GROUP_COUNT] = {
    [GROUPS] = {"groups", NULL, BWI_INT, "32", -1, 1e6, NULL},
    [AXIS] = {"axis", NULL, BWI_INT, "-1", -BW_MAX_NDIM, BW_MAX_NDIM, NULL},
    [EPSILON] = {"epsilon", NULL, BWI_FLOAT, "0.001", 0, 1e9, NULL},
    [CENTER] = {"center", NULL, BWI_BOOL, "true", 0, 0, NULL},
    [SCALE] = {"scale", NULL, BWI_BOOL, "true", 0, 0, NULL},
    [BETA_INITIALIZER] = {"beta_initializer", NULL, BWI_CALL, "zeros", 0, 0, NULL},
    [GAMMA_INITIALIZER] = {"gamma_initializer", NULL, BWI_CALL, "ones", 0, 0, NULL},
    [BETA_REGULARIZER] = {"beta_regularizer", NULL, BWI_CALL, "none", 0, 0, NULL},
    [GAMMA_REGULARIZER] = {"gamma_regularizer", NULL, BWI_CALL, "none", 0, 0, NULL},
};

/* (positions, groups, channels) becomes (groups, positions, channels), whose last two axes are normalised together. */
static bw_node *normalize_groups(const bwi_layer *layer, bwi_graph *graph, bw_node *x, int64_t groups, int64_t channels)
{
    bwi_layernorm_attributes a = {.axes = 2, .epsilon = (float)layer->values[EPSILON].number};
    bwi_permute_attributes swap = {.ndim = 3, .axes = {1, 0, 2}};
    bwi_shape whole = x->shape;
    bwi_shape split = {.ndim = 3, .extent = {bwi_shape_count(&whole) / channels, groups, channels / groups}};
    bw_node *node = bwi_compose_reshape(graph, layer->name, x, &split);
    node = node ? bwi_compose_permute(graph, layer->name, node, &swap) : NULL;
    node = node ? bwi_graph_add(graph, &bwi_op_layernorm, layer->name, &a, sizeof a, &node, 1, NULL, 0) : NULL;
    node = node ? bwi_compose_permute(graph, layer->name, node, &swap) : NULL;
    return bwi_compose_reshape(graph, layer->name, node, &whole);
}

/* Gamma and beta belong to channels, not to groups. */
static bw_node *build_group(const bwi_layer *layer, bwi_graph *graph, bw_node *const *inputs, int input_count)
{
    (void)input_count;
    const bwi_argument_value *v = layer->values;
    bw_node *x = inputs[0];
    bwi_channel_affine_attributes a = {.center = v[CENTER].flag, .scale = v[SCALE].flag};
    int axis;
    if (!bwi_layer_axis(graph, layer, AXIS, v[AXIS].integer, x->shape.ndim, &axis)) {
        return NULL;
    }
    int64_t channels = x->shape.extent[axis], groups = v[GROUPS].integer == -1 ? channels : v[GROUPS].integer;
    if (axis != x->shape.ndim - 1) {
        return bwi_fail_build(graph->ctx, BW_UNIMPLEMENTED, "layer %s: axis: only the last axis is supported", layer->name);
    }
    if (groups < 1 || channels % groups) {
        return bwi_fail_build(graph->ctx, BW_INVALID_ARGUMENT, "layer %s: %lld channels do not divide into %lld groups",
                              layer->name, (long long)channels, (long long)groups);
    }
    bwi_shape shape = {.ndim = 1, .extent = {channels}};
    bwi_variable *variables[2];
    int count = 0;
    if (a.scale) {
        variables[count++] =
            bwi_layer_variable(graph, layer, "gamma", &shape, GAMMA_INITIALIZER, GAMMA_REGULARIZER, channels, channels);
    }
    if (a.center) {
        variables[count++] =
            bwi_layer_variable(graph, layer, "beta", &shape, BETA_INITIALIZER, BETA_REGULARIZER, channels, channels);
    }
    bw_node *node = normalize_groups(layer, graph, x, groups, channels);
    return count && node ? bwi_graph_add(graph, &bwi_op_channel_affine, layer->name, &a, sizeof a, &node, 1, variables, count)
                         : node;
}

const bwi_layer_row bwi_layer_group_norm = {"GroupNormalization", "group_normalization", "groupnorm group_normalization",
                                            group_arguments,      GROUP_COUNT,           build_group,
                                            BWI_LAYER_PASSES_MASK};

/* ---- RMSNormalization ---- */

enum { RMS_AXIS, RMS_EPSILON, RMS_COUNT };

static const bwi_argument rms_arguments[RMS_COUNT] = {
    [RMS_AXIS] = {"axis", NULL, BWI_INTS, "-1", -BW_MAX_NDIM, BW_MAX_NDIM, NULL},
    [RMS_EPSILON] = {"epsilon", NULL, BWI_FLOAT, "0.000001", 0, 1e9, NULL},
};

/* x scale / sqrt(mean(x^2) + epsilon) */
static bw_node *build_rms(const bwi_layer *layer, bwi_graph *graph, bw_node *const *inputs, int input_count)
{
    (void)input_count;
    bw_node *x = inputs[0];
    bool named[BW_MAX_NDIM] = {false};
    bwi_channel_affine_attributes a = {.scale = true};
    if (!check_axes(graph, layer, RMS_AXIS, &x->shape)) {
        return NULL;
    }
    name_axes(&layer->values[RMS_AXIS], &x->shape, named);
    for (int i = 0; i < x->shape.ndim; i++) {
        if (named[i] != (i == x->shape.ndim - 1)) {
            return bwi_fail_build(graph->ctx, BW_UNIMPLEMENTED, "layer %s: axis: only the last axis is supported", layer->name);
        }
    }
    bwi_shape shape = {.ndim = 1, .extent = {x->shape.extent[x->shape.ndim - 1]}};
    bwi_variable *scale = bwi_graph_variable(graph, layer->name, "scale", &shape, true, "ones", 0, 0);
    bw_node *node = bwi_compose_unary(graph, layer->name, x, BWI_SQUARE, 0, 0);
    node = bwi_compose_reduce(graph, layer->name, node, BWI_REDUCE_MEAN, named);
    node = bwi_compose_scale(graph, layer->name, node, 1, (float)layer->values[RMS_EPSILON].number);
    node = bwi_compose_unary(graph, layer->name, node, BWI_POW, -0.5F, 0);
    node = bwi_compose_multiply(graph, layer->name, x, node);
    return bwi_graph_add(graph, &bwi_op_channel_affine, layer->name, &a, sizeof a, &node, 1, &scale, 1);
}

const bwi_layer_row bwi_layer_rms_norm = {"RMSNormalization", "rms_normalization", "rmsnorm rms_normalization", rms_arguments,
                                          RMS_COUNT,          build_rms,           BWI_LAYER_PASSES_MASK};

/* ---- UnitNormalization ---- */

enum { UNIT_AXIS, UNIT_COUNT };

static const bwi_argument unit_arguments[UNIT_COUNT] = {
    [UNIT_AXIS] = {"axis", NULL, BWI_INTS, "-1", -BW_MAX_NDIM, BW_MAX_NDIM, NULL}};

/* x / max(|x|, 1e-12); the bound is put on the square, so that a vector of zeros has a derivative. */
static bw_node *build_unit(const bwi_layer *layer, bwi_graph *graph, bw_node *const *inputs, int input_count)
{
    (void)input_count;
    bw_node *x = inputs[0];
    bool named[BW_MAX_NDIM] = {false};
    if (!check_axes(graph, layer, UNIT_AXIS, &x->shape)) {
        return NULL;
    }
    name_axes(&layer->values[UNIT_AXIS], &x->shape, named);
    bw_node *node = bwi_compose_unary(graph, layer->name, x, BWI_SQUARE, 0, 0);
    node = bwi_compose_reduce(graph, layer->name, node, BWI_REDUCE_SUM, named);
    node = bwi_compose_unary(graph, layer->name, node, BWI_CLIP, 1e-24F, 3e38F);
    node = bwi_compose_unary(graph, layer->name, node, BWI_POW, -0.5F, 0);
    return bwi_compose_multiply(graph, layer->name, x, node);
}

const bwi_layer_row bwi_layer_unit_norm = {"UnitNormalization", "unit_normalization", "unitnorm unit_normalization", unit_arguments,
                                           UNIT_COUNT,          build_unit,           BWI_LAYER_PASSES_MASK};
