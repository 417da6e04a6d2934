/*
 * BatchNormalization over one axis. Training uses the statistics of the whole batch, or of groups of samples (`ghost`); a
 * frozen layer, and every prediction, uses the moving statistics.
 */
#include "layer/internal.h"

enum {
    AXIS,
    MOMENTUM,
    EPSILON,
    CENTER,
    SCALE,
    BETA_INITIALIZER,
    GAMMA_INITIALIZER,
    MOVING_MEAN_INITIALIZER,
    MOVING_VARIANCE_INITIALIZER,
    BETA_REGULARIZER,
    GAMMA_REGULARIZER,
    GHOST,
    COUNT
};

static const bwi_argument arguments[COUNT] = {
    [AXIS] = {"axis", NULL, BWI_INT, "-1", -BW_MAX_NDIM, BW_MAX_NDIM, NULL},
    [MOMENTUM] = {"momentum", NULL, BWI_FLOAT, "0.99", 0, 1, NULL},
    [EPSILON] = {"epsilon", NULL, BWI_FLOAT, "0.001", 0, 1e9, NULL},
    [CENTER] = {"center", NULL, BWI_BOOL, "true", 0, 0, NULL},
    [SCALE] = {"scale", NULL, BWI_BOOL, "true", 0, 0, NULL},
    [BETA_INITIALIZER] = {"beta_initializer", NULL, BWI_CALL, "zeros", 0, 0, NULL},
    [GAMMA_INITIALIZER] = {"gamma_initializer", NULL, BWI_CALL, "ones", 0, 0, NULL},
    [MOVING_MEAN_INITIALIZER] = {"moving_mean_initializer", NULL, BWI_CALL, "zeros", 0, 0, NULL},
    [MOVING_VARIANCE_INITIALIZER] = {"moving_variance_initializer", NULL, BWI_CALL, "ones", 0, 0, NULL},
    [BETA_REGULARIZER] = {"beta_regularizer", NULL, BWI_CALL, "none", 0, 0, NULL},
    [GAMMA_REGULARIZER] = {"gamma_regularizer", NULL, BWI_CALL, "none", 0, 0, NULL},
    [GHOST] = {"ghost", NULL, BWI_INT, "0", 0, 1024, NULL},
};

static bwi_variable *moving(bwi_graph *graph, const bwi_layer *layer, const char *name, const bwi_shape *shape, int initializer)
{
    return bwi_graph_variable(graph, layer->name, name, shape, false, layer->values[initializer].text, shape->extent[0],
                              shape->extent[0]);
}

/* The variables are in Keras's order: gamma, beta, moving mean, moving variance. The op takes the last axis, so another one is
 * moved there, and back. A frozen layer normalises by its moving statistics even in training. */
static bw_node *build(const bwi_layer *layer, bwi_graph *graph, bw_node *const *inputs, int input_count)
{
    (void)input_count;
    bw_node *x = inputs[0];
    const bwi_argument_value *v = layer->values;
    bwi_batchnorm_attributes a = {.momentum = (float)v[MOMENTUM].number,
                                  .epsilon = (float)v[EPSILON].number,
                                  .center = v[CENTER].flag,
                                  .scale = v[SCALE].flag,
                                  .ghost = v[GHOST].integer};
    int axis;
    if (a.ghost & (a.ghost - 1)) {
        return bwi_fail_build(graph->ctx, BW_INVALID_ARGUMENT, "layer %s: ghost: expected a power of two, got %lld", layer->name,
                              (long long)a.ghost);
    }
    if (x->shape.ndim < 1) {
        return bwi_fail_build(
            graph->ctx, BW_INVALID_ARGUMENT,
            "layer %s: expected at least one axis, got a single number per sample; one input each is shape (n, 1)", layer->name);
    }
    if (!bwi_layer_axis(graph, layer, AXIS, v[AXIS].integer, x->shape.ndim, &axis)) {
        return NULL;
    }
    bool named[BW_MAX_NDIM] = {false};
    bwi_permute_attributes there, back;
    named[axis] = true;
    (void)bwi_compose_last(&x->shape, named, &there, &back);
    int64_t channels = x->shape.extent[axis];
    bwi_shape shape = {.ndim = 1, .extent = {channels}};
    bwi_variable *variables[4];
    int count = 0;
    if (a.scale) {
        variables[count++] =
            bwi_layer_variable(graph, layer, "gamma", &shape, GAMMA_INITIALIZER, GAMMA_REGULARIZER, channels, channels);
    }
    if (a.center) {
        variables[count++] =
            bwi_layer_variable(graph, layer, "beta", &shape, BETA_INITIALIZER, BETA_REGULARIZER, channels, channels);
    }
    variables[count++] = moving(graph, layer, "moving_mean", &shape, MOVING_MEAN_INITIALIZER);
    variables[count++] = moving(graph, layer, "moving_variance", &shape, MOVING_VARIANCE_INITIALIZER);
    const bwi_op *training = a.ghost ? &bwi_op_batchnorm_ghost : &bwi_op_batchnorm;
    const bwi_op *op = layer->trainable ? training : &bwi_op_batchnorm_frozen;
    x = bwi_compose_permute(graph, layer->name, x, &there);
    x = bwi_graph_add(graph, op, layer->name, &a, sizeof a, &x, 1, variables, count);
    return bwi_compose_permute(graph, layer->name, x, &back);
}

const bwi_layer_row bwi_layer_batchnorm = {
    "BatchNormalization", "batch_normalization", "batchnorm batch_normalization", arguments, COUNT, build, BWI_LAYER_REFUSES_MASK};
