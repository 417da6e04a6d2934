/*
 * Embedding has the variable embeddings (input_dim, output_dim), initialised uniformly in +-0.05. Its gradient is sparse, but its
 * update is dense, as in Keras, unless it is lazy. With mask_zero, index 0 is padding, and positions that hold it do not count
 * (mask.c).
 */
#include "layer/internal.h"

enum { INPUT_DIM, OUTPUT_DIM, INITIALIZER, REGULARIZER, MASK_ZERO, LAZY, COUNT };

static const bwi_argument arguments[COUNT] = {
    [INPUT_DIM] = {"input_dim", NULL, BWI_INT, NULL, 1, INT32_MAX, NULL},
    [OUTPUT_DIM] = {"output_dim", NULL, BWI_INT, NULL, 1, 1e8, NULL},
    [INITIALIZER] = {"embeddings_initializer", NULL, BWI_CALL, "uniform", 0, 0, NULL},
    [REGULARIZER] = {"embeddings_regularizer", NULL, BWI_CALL, "none", 0, 0, NULL},
    [MASK_ZERO] = {"mask_zero", NULL, BWI_BOOL, "false", 0, 0, NULL},
    [LAZY] = {"lazy", NULL, BWI_BOOL, "false", 0, 0, NULL},
};

static bw_node *build(const bwi_layer *layer, bwi_graph *graph, bw_node *const *inputs, int input_count)
{
    (void)input_count;
    bw_node *x = inputs[0];
    const bwi_argument_value *v = layer->values;
    int64_t rows = v[INPUT_DIM].integer, width = v[OUTPUT_DIM].integer;
    bwi_shape shape = {.ndim = 2, .extent = {rows, width}};
    bwi_variable *table = bwi_layer_variable(graph, layer, "embeddings", &shape, INITIALIZER, REGULARIZER, rows, width);
    bw_node *mask = v[MASK_ZERO].flag ? bwi_graph_add(graph, &bwi_op_index_mask, layer->name, NULL, 0, &x, 1, NULL, 0) : NULL;
    bw_node *node = bwi_graph_add(graph, &bwi_op_embedding, layer->name, NULL, 0, &x, 1, &table, 1);
    if (!node || (v[MASK_ZERO].flag && !mask)) {
        return NULL;
    }
    table->sparse = table->orthogonal <= 0; /* which needs a dense gradient */
    table->lazy = v[LAZY].flag;
    node->mask = mask;
    return node;
}

const bwi_layer_row bwi_layer_embedding = {
    "Embedding", "embedding", "embedding", arguments, COUNT, build, BWI_LAYER_TAKES_MASK | BWI_LAYER_INDICES};
