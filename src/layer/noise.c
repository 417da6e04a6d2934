/*
 * Dropout, SpatialDropout1D, SpatialDropout2D, AlphaDropout, GaussianDropout and GaussianNoise are active in training only. Their
 * random stream is the hash of the layer's name and of its seed, if it has one; a layer that is used again draws other numbers.
 */
#include "layer/internal.h"

#include <math.h>
#include <string.h>

enum { AMOUNT, SEED, COUNT, NOISE_SHAPE = COUNT, SHAPED_COUNT };

#define RATE [AMOUNT] = {"rate", NULL, BWI_FLOAT, NULL, 0, 1, NULL}, [SEED] = {"seed", NULL, BWI_INT, "", 0, 1e15, NULL}

static const bwi_argument dropout_arguments[SHAPED_COUNT] = {
    RATE, [NOISE_SHAPE] = {"noise_shape", NULL, BWI_INTS, "", -1, 1e9, NULL}};
static const bwi_argument rate_arguments[COUNT] = {RATE};
static const bwi_argument noise_arguments[COUNT] = {
    [AMOUNT] = {"stddev", NULL, BWI_FLOAT, NULL, 0, 1, NULL},
    [SEED] = {"seed", NULL, BWI_INT, "", 0, 1e15, NULL},
};

uint64_t bwi_layer_stream(const bwi_layer *layer, const bwi_graph *graph, const bwi_op *op, int seed)
{
    uint64_t times = 0, own = seed >= 0 && layer->values[seed].given ? (uint64_t)layer->values[seed].integer + 1 : 0;
    for (int n = 0; n < graph->count; n++) {
        times += graph->nodes[n]->op == op && strcmp(graph->nodes[n]->name, layer->name) == 0;
    }
    return bwi_hash(own, layer->name, strlen(layer->name)) + times;
}

/* A layer that draws nothing does nothing. */
static bw_node *add_with(const bwi_layer *layer, bwi_graph *graph, bw_node *x, const bwi_op *op, bwi_noise_attributes *a)
{
    a->stream = bwi_layer_stream(layer, graph, op, SEED);
    return a->amount > 0 ? bwi_graph_add(graph, op, layer->name, a, sizeof *a, &x, 1, NULL, 0) : x;
}

static bw_node *add(const bwi_layer *layer, bwi_graph *graph, bw_node *x, const bwi_op *op)
{
    bwi_noise_attributes a = {.amount = (float)layer->values[AMOUNT].number};
    return add_with(layer, graph, x, op, &a);
}

/* Reads which elements share a draw: (batch, ...), with None where an axis keeps its extent. The batch is None, or 1 if all samples
 * share the draws. False, after a message, if it does not fit. */
static bool read_noise_shape(const bwi_layer *layer, bwi_graph *graph, const bwi_shape *shape, bwi_noise_attributes *a)
{
    const bwi_argument_value *v = &layer->values[NOISE_SHAPE];
    bool fits = v->count == shape->ndim + 1 && (v->integers[0] == -1 || v->integers[0] == 1);
    a->shared = *shape;
    a->same = v->count > 0 && v->integers[0] == 1;
    for (int i = 0; i < shape->ndim && fits && v->count; i++) {
        int64_t extent = v->integers[i + 1];
        a->shared.extent[i] = extent == 1 ? 1 : shape->extent[i];
        fits = extent == -1 || extent == 1 || extent == shape->extent[i];
    }
    if (v->count && !fits) {
        char text[160];
        bwi_fail_build(graph->ctx, BW_INVALID_ARGUMENT,
                       "layer %s: noise_shape: expected None or 1 for the batch, then 1, None or the extent for each axis of %s",
                       layer->name, bwi_format_shape(text, shape->ndim, shape->extent));
    }
    return !v->count || fits;
}

static bw_node *build_dropout(const bwi_layer *layer, bwi_graph *graph, bw_node *const *inputs, int input_count)
{
    (void)input_count;
    bw_node *x = inputs[0];
    bwi_noise_attributes a = {.amount = (float)layer->values[AMOUNT].number};
    if (!read_noise_shape(layer, graph, &x->shape, &a)) {
        return NULL;
    }
    if (a.same || !bwi_shape_equal(&a.shared, &x->shape)) {
        return add_with(layer, graph, x, &bwi_op_shared_dropout, &a);
    }
    return add(layer, graph, x, &bwi_op_dropout);
}

static bw_node *build_alpha(const bwi_layer *layer, bwi_graph *graph, bw_node *const *inputs, int input_count)
{
    (void)input_count;
    bwi_noise_attributes a = {.amount = (float)layer->values[AMOUNT].number};
    if (a.amount >= 1) {
        return bwi_fail_build(graph->ctx, BW_INVALID_ARGUMENT, "layer %s: rate: expected a number below 1", layer->name);
    }
    return read_noise_shape(layer, graph, &inputs[0]->shape, &a) ? add_with(layer, graph, inputs[0], &bwi_op_alpha_dropout, &a)
                                                                 : NULL;
}

/* The factors are normal numbers around 1 with the variance rate / (1 - rate). */
static bw_node *build_gaussian_dropout(const bwi_layer *layer, bwi_graph *graph, bw_node *const *inputs, int input_count)
{
    (void)input_count;
    double rate = layer->values[AMOUNT].number;
    bwi_noise_attributes a = {.amount = (float)sqrt(rate / (1 - rate))};
    if (rate >= 1) {
        return bwi_fail_build(graph->ctx, BW_INVALID_ARGUMENT, "layer %s: rate: expected a number below 1", layer->name);
    }
    return add_with(layer, graph, inputs[0], &bwi_op_gaussian_dropout, &a);
}

static bw_node *build_spatial(const bwi_layer *layer, bwi_graph *graph, bw_node *const *inputs, int input_count)
{
    (void)input_count;
    return add(layer, graph, inputs[0], &bwi_op_spatial_dropout);
}

static bw_node *build_gaussian(const bwi_layer *layer, bwi_graph *graph, bw_node *const *inputs, int input_count)
{
    (void)input_count;
    return add(layer, graph, inputs[0], &bwi_op_gaussian_noise);
}

const bwi_layer_row bwi_layer_dropout = {
    "Dropout", "dropout", "dropout", dropout_arguments, SHAPED_COUNT, build_dropout, BWI_LAYER_PASSES_MASK};
const bwi_layer_row bwi_layer_spatial_dropout2d = {"SpatialDropout2D",
                                                   "spatial_dropout2d",
                                                   "spatial_dropout2d",
                                                   rate_arguments,
                                                   COUNT,
                                                   build_spatial,
                                                   BWI_LAYER_PASSES_MASK | BWI_LAYER_IMAGE};
const bwi_layer_row bwi_layer_gaussian_noise = {"GaussianNoise", "gaussian_noise", "gaussian_noise",     noise_arguments,
                                                COUNT,           build_gaussian,   BWI_LAYER_PASSES_MASK};
const bwi_layer_row bwi_layer_spatial_dropout1d = {"SpatialDropout1D",
                                                   "spatial_dropout1d",
                                                   "spatial_dropout1d",
                                                   rate_arguments,
                                                   COUNT,
                                                   build_spatial,
                                                   BWI_LAYER_PASSES_MASK | BWI_LAYER_LINE};
const bwi_layer_row bwi_layer_spatial_dropout3d = {"SpatialDropout3D",
                                                   "spatial_dropout3d",
                                                   "spatial_dropout3d",
                                                   rate_arguments,
                                                   COUNT,
                                                   build_spatial,
                                                   BWI_LAYER_PASSES_MASK | BWI_LAYER_VOLUME};
const bwi_layer_row bwi_layer_alpha_dropout = {"AlphaDropout", "alpha_dropout", "alpha_dropout",      dropout_arguments,
                                               SHAPED_COUNT,   build_alpha,     BWI_LAYER_PASSES_MASK};
const bwi_layer_row bwi_layer_gaussian_dropout = {
    "GaussianDropout",      "gaussian_dropout",   "gaussian_dropout", rate_arguments, COUNT,
    build_gaussian_dropout, BWI_LAYER_PASSES_MASK};
