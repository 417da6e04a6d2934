/*
 * Layers that only the models of keras.applications have, and that files know by the module of that model: LayerScale and
 * StochasticDepth of ConvNeXt, CustomScaleLayer of InceptionResNetV2.
 */
#include "layer/internal.h"

/* ---- LayerScale: a factor for each channel ---- */

enum { INIT_VALUES, PROJECTION_DIM, SCALE_COUNT };

static const bwi_argument scale_arguments[SCALE_COUNT] = {
    [INIT_VALUES] = {"init_values", NULL, BWI_FLOAT, NULL, 0, 0, NULL},
    [PROJECTION_DIM] = {"projection_dim", NULL, BWI_INT, NULL, 1, 1e6, NULL},
};

static bw_node *build_scale(const bwi_layer *layer, bwi_graph *graph, bw_node *const *inputs, int input_count)
{
    (void)input_count;
    bw_node *x = inputs[0];
    const bwi_argument_value *v = layer->values;
    bwi_channel_affine_attributes a = {.scale = true};
    bwi_shape shape = {.ndim = 1, .extent = {v[PROJECTION_DIM].integer}};
    char initializer[64];
    if (x->shape.ndim < 1 || x->shape.extent[x->shape.ndim - 1] != shape.extent[0]) {
        char text[160];
        return bwi_fail_build(graph->ctx, BW_INVALID_ARGUMENT, "layer %s: expected %lld channels, got values of shape %s",
                              layer->name, (long long)shape.extent[0], bwi_format_shape(text, x->shape.ndim, x->shape.extent));
    }
    bwi_print(initializer, sizeof initializer, "constant(%.17g)", v[INIT_VALUES].number);
    bwi_variable *gamma = bwi_graph_variable(graph, layer->name, "gamma", &shape, true, initializer, 0, 0);
    return bwi_graph_add(graph, &bwi_op_channel_affine, layer->name, &a, sizeof a, &x, 1, &gamma, 1);
}

const bwi_layer_row bwi_layer_layer_scale = {
    "LayerScale", "layer_scale", "layer_scale", scale_arguments, SCALE_COUNT, build_scale, 0};

/* ---- StochasticDepth: a sample is dropped as a whole ---- */

enum { DROP_PATH_RATE, DEPTH_COUNT };

static const bwi_argument depth_arguments[DEPTH_COUNT] = {[DROP_PATH_RATE] = {"drop_path_rate", NULL, BWI_FLOAT, NULL, 0, 1, NULL}};

static bw_node *build_depth(const bwi_layer *layer, bwi_graph *graph, bw_node *const *inputs, int input_count)
{
    (void)input_count;
    bw_node *x = inputs[0];
    bwi_noise_attributes a = {.amount = (float)layer->values[DROP_PATH_RATE].number,
                              .stream = bwi_layer_stream(layer, graph, &bwi_op_shared_dropout, -1),
                              .shared = {.ndim = x->shape.ndim}};
    for (int i = 0; i < a.shared.ndim; i++) {
        a.shared.extent[i] = 1;
    }
    return a.amount > 0 ? bwi_graph_add(graph, &bwi_op_shared_dropout, layer->name, &a, sizeof a, &x, 1, NULL, 0) : x;
}

const bwi_layer_row bwi_layer_stochastic_depth = {
    "StochasticDepth", "stochastic_depth", "stochastic_depth", depth_arguments, DEPTH_COUNT, build_depth, 0};

/* ---- CustomScaleLayer: x0 + scale x1 ---- */

enum { SCALE, CUSTOM_COUNT };

static const bwi_argument custom_arguments[CUSTOM_COUNT] = {[SCALE] = {"scale", NULL, BWI_FLOAT, NULL, 0, 0, NULL}};

static bw_node *build_custom(const bwi_layer *layer, bwi_graph *graph, bw_node *const *inputs, int count)
{
    bwi_add_attributes a = {.scale = 1};
    if (count != 2) {
        return bwi_fail_build(graph->ctx, BW_INVALID_ARGUMENT, "layer %s: expected 2 inputs, got %d", layer->name, count);
    }
    bw_node *both[2] = {inputs[0], bwi_compose_scale(graph, layer->name, inputs[1], (float)layer->values[SCALE].number, 0)};
    return both[1] ? bwi_graph_add(graph, &bwi_op_add, layer->name, &a, sizeof a, both, 2, NULL, 0) : NULL;
}

const bwi_layer_row bwi_layer_custom_scale = {"CustomScaleLayer", "custom_scale_layer", "custom_scale",  custom_arguments,
                                              CUSTOM_COUNT,       build_custom,         BWI_LAYER_MERGES};
