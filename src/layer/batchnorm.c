/* BatchNormalization over the last axis, with the statistics of the whole batch. */
#include "layer/rows.h"

enum { MOMENTUM, EPSILON, CENTER, SCALE, COUNT };

static const bwi_argument arguments[COUNT] = {
    [MOMENTUM] = {"momentum", NULL, BWI_FLOAT, "0.99", 0, 1, NULL},
    [EPSILON] = {"epsilon", NULL, BWI_FLOAT, "0.001", 0, 1e9, NULL},
    [CENTER] = {"center", NULL, BWI_BOOL, "true", 0, 0, NULL},
    [SCALE] = {"scale", NULL, BWI_BOOL, "true", 0, 0, NULL},
};

static bw_node *build(const bwi_layer *layer, bwi_graph *graph, bw_node *const *inputs, int input_count)
{
    (void)input_count;
    bw_node *x = inputs[0];
    const bwi_argument_value *v = layer->values;
    bwi_batchnorm_attributes a = {.momentum = (float)v[MOMENTUM].number,
                                  .epsilon = (float)v[EPSILON].number,
                                  .center = v[CENTER].flag,
                                  .scale = v[SCALE].flag};
    if (x->shape.rank < 1) {
        return bwi_fail_build(graph->ctx, BW_INVALID_ARGUMENT, "layer %s: expected at least one axis, got a single number a sample",
                              layer->name);
    }
    bwi_shape shape = {.rank = 1, .extent = {x->shape.extent[x->shape.rank - 1]}};
    bwi_variable *variables[4];
    int count = 0;
    if (a.scale) {
        variables[count++] = bwi_graph_variable(graph, layer->name, "gamma", &shape, true, "ones", 0, 0);
    }
    if (a.center) {
        variables[count++] = bwi_graph_variable(graph, layer->name, "beta", &shape, true, "zeros", 0, 0);
    }
    variables[count++] = bwi_graph_variable(graph, layer->name, "moving_mean", &shape, false, "zeros", 0, 0);
    variables[count++] = bwi_graph_variable(graph, layer->name, "moving_variance", &shape, false, "ones", 0, 0);
    return bwi_graph_add(graph, &bwi_op_batchnorm, layer->name, &a, sizeof a, &x, 1, variables, count);
}

const bwi_layer_row bwi_layer_batchnorm = {
    "BatchNormalization", "batch_normalization", "batchnorm batch_normalization", arguments, COUNT, build, BWI_LAYER_REFUSES_MASK};
