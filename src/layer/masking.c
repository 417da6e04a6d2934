/* Masking: positions at which all numbers are mask_value do not count, and become zeros. */
#include "layer/internal.h"

enum { MASK_VALUE, COUNT };

static const bwi_argument arguments[COUNT] = {[MASK_VALUE] = {"mask_value", NULL, BWI_FLOAT, "0", 0, 0, NULL}};

/* As in Keras, the values are multiplied by the mask. */
static bw_node *build(const bwi_layer *layer, bwi_graph *graph, bw_node *const *inputs, int input_count)
{
    (void)input_count;
    bw_node *x = inputs[0];
    bwi_value_mask_attributes a = {.value = (float)layer->values[MASK_VALUE].number};
    bwi_binary_attributes multiply = {.kind = BWI_MULTIPLY};
    bw_node *mask = bwi_graph_add(graph, &bwi_op_value_mask, layer->name, &a, sizeof a, &x, 1, NULL, 0);
    if (!mask) {
        return NULL;
    }
    bwi_reshape_attributes column = {.shape = x->shape};
    column.shape.extent[x->shape.ndim - 1] = 1;
    bw_node *spread = bwi_graph_add(graph, &bwi_op_reshape, layer->name, &column, sizeof column, &mask, 1, NULL, 0);
    bw_node *both[2] = {x, bwi_op_broadcast_to(graph, layer->name, spread, &x->shape)};
    bw_node *node = bwi_graph_add(graph, &bwi_op_binary, layer->name, &multiply, sizeof multiply, both, 2, NULL, 0);
    if (node) {
        node->mask = mask;
    }
    return node;
}

const bwi_layer_row bwi_layer_masking = {"Masking", "masking", "masking", arguments, COUNT, build, BWI_LAYER_TAKES_MASK};
