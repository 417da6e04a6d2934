/* Flatten, in Keras's order: height, width, channels. */
#include "layer/rows.h"

static bw_node *build(const bwi_layer *layer, bwi_graph *graph, bw_node *const *inputs, int input_count)
{
    (void)input_count;
    bw_node *x = inputs[0];
    bwi_reshape_attributes a = {.shape = {.rank = -1}};
    return bwi_graph_add(graph, &bwi_op_reshape, layer->name, &a, sizeof a, &x, 1, NULL, 0);
}

const bwi_layer_row bwi_layer_flatten = {"Flatten", "flatten", "flatten", NULL, 0, build, false};
