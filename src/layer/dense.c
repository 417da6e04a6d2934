/* Dense works on the last axis; it has a kernel (in, units), initialised by glorot_uniform, and a bias of zeros. */
#include "layer/internal.h"

enum { UNITS, ACTIVATION, USE_BIAS, KERNEL_INITIALIZER, BIAS_INITIALIZER, KERNEL_REGULARIZER, BIAS_REGULARIZER, COUNT };

static const bwi_argument arguments[COUNT] = {
    [UNITS] = {"units", NULL, BWI_INT, NULL, 1, 1e8, NULL},
    [ACTIVATION] = {"activation", NULL, BWI_TEXT, "linear", 0, 0, NULL},
    [USE_BIAS] = {"use_bias", NULL, BWI_BOOL, "true", 0, 0, NULL},
    [KERNEL_INITIALIZER] = {"kernel_initializer", NULL, BWI_CALL, "glorot_uniform", 0, 0, NULL},
    [BIAS_INITIALIZER] = {"bias_initializer", NULL, BWI_CALL, "zeros", 0, 0, NULL},
    [KERNEL_REGULARIZER] = {"kernel_regularizer", NULL, BWI_CALL, "none", 0, 0, NULL},
    [BIAS_REGULARIZER] = {"bias_regularizer", NULL, BWI_CALL, "none", 0, 0, NULL},
};

static bw_node *build(const bwi_layer *layer, bwi_graph *graph, bw_node *const *inputs, int input_count)
{
    (void)input_count;
    bw_node *x = inputs[0];
    if (x->shape.ndim < 1) {
        return bwi_fail_build(
            graph->ctx, BW_INVALID_ARGUMENT,
            "layer %s: expected at least one axis, got a single number per sample; one input each is shape (n, 1)", layer->name);
    }
    bwi_dense_attributes a = {.units = layer->values[UNITS].integer};
    int64_t in = x->shape.extent[x->shape.ndim - 1];
    bwi_shape kernel = {.ndim = 2, .extent = {in, a.units}}, bias = {.ndim = 1, .extent = {a.units}};
    bwi_variable *variables[2] = {
        bwi_layer_variable(graph, layer, "kernel", &kernel, KERNEL_INITIALIZER, KERNEL_REGULARIZER, in, a.units)};
    int count = 1;
    if (layer->values[USE_BIAS].flag) {
        variables[count++] = bwi_layer_variable(graph, layer, "bias", &bias, BIAS_INITIALIZER, BIAS_REGULARIZER, a.units, a.units);
    }
    bw_node *node = bwi_graph_add(graph, &bwi_op_dense, layer->name, &a, sizeof a, &x, 1, variables, count);
    return bwi_activation_add(graph, layer->name, node, layer->values[ACTIVATION].text);
}

const bwi_layer_row bwi_layer_dense = {"Dense", "dense", "dense", arguments, COUNT, build, BWI_LAYER_PASSES_MASK};
