/*
 * Dropout, SpatialDropout2D and GaussianNoise are active in training only. Their random stream is the hash of the layer's name and
 * of its seed, if it has one; a layer that is used again draws other numbers.
 */
#include "layer/internal.h"

#include <string.h>

enum { AMOUNT, SEED, COUNT };

static const bwi_argument dropout_arguments[COUNT] = {
    [AMOUNT] = {"rate", NULL, BWI_FLOAT, NULL, 0, 1, NULL},
    [SEED] = {"seed", NULL, BWI_INT, "", 0, 1e15, NULL},
};
static const bwi_argument noise_arguments[COUNT] = {
    [AMOUNT] = {"stddev", NULL, BWI_FLOAT, NULL, 0, 1, NULL},
    [SEED] = {"seed", NULL, BWI_INT, "", 0, 1e15, NULL},
};

static uint64_t stream_of(const bwi_layer *layer, const bwi_graph *graph, const bwi_op *op)
{
    uint64_t times = 0, seed = layer->values[SEED].given ? (uint64_t)layer->values[SEED].integer + 1 : 0;
    for (int n = 0; n < graph->count; n++) {
        times += graph->nodes[n]->op == op && strcmp(graph->nodes[n]->name, layer->name) == 0;
    }
    return bwi_hash(seed, layer->name, strlen(layer->name)) + times;
}

/* A layer that draws nothing does nothing. */
static bw_node *add(const bwi_layer *layer, bwi_graph *graph, bw_node *x, const bwi_op *op)
{
    bwi_noise_attributes a = {.amount = (float)layer->values[AMOUNT].number, .stream = stream_of(layer, graph, op)};
    return a.amount > 0 ? bwi_graph_add(graph, op, layer->name, &a, sizeof a, &x, 1, NULL, 0) : x;
}

static bw_node *build_dropout(const bwi_layer *layer, bwi_graph *graph, bw_node *const *inputs, int input_count)
{
    (void)input_count;
    return add(layer, graph, inputs[0], &bwi_op_dropout);
}

static bw_node *build_spatial(const bwi_layer *layer, bwi_graph *graph, bw_node *const *inputs, int input_count)
{
    (void)input_count;
    return bwi_layer_expect(graph, layer, inputs[0], 3) ? add(layer, graph, inputs[0], &bwi_op_spatial_dropout) : NULL;
}

static bw_node *build_gaussian(const bwi_layer *layer, bwi_graph *graph, bw_node *const *inputs, int input_count)
{
    (void)input_count;
    return add(layer, graph, inputs[0], &bwi_op_gaussian_noise);
}

const bwi_layer_row bwi_layer_dropout = {
    "Dropout", "dropout", "dropout", dropout_arguments, COUNT, build_dropout, BWI_LAYER_PASSES_MASK};
const bwi_layer_row bwi_layer_spatial_dropout2d = {
    "SpatialDropout2D", "spatial_dropout2d", "spatial_dropout2d", dropout_arguments, COUNT, build_spatial, BWI_LAYER_PASSES_MASK};
const bwi_layer_row bwi_layer_gaussian_noise = {"GaussianNoise", "gaussian_noise", "gaussian_noise",     noise_arguments,
                                                COUNT,           build_gaussian,   BWI_LAYER_PASSES_MASK};
