/* MaxPooling2D: strides are the window's extents unless given. */
#include "layer/rows.h"

enum { POOL_SIZE, STRIDES, PADDING, COUNT };

static const bwi_argument arguments[COUNT] = {
    [POOL_SIZE] = {"pool_size", NULL, BWI_INTS, "2", 1, 1e4, NULL},
    [STRIDES] = {"strides", NULL, BWI_INTS, "", 1, 1e4, NULL},
    [PADDING] = {"padding", NULL, BWI_TEXT, "valid", 0, 0, "valid same"},
};

static bw_node *build(const bwi_layer *layer, bwi_graph *graph, bw_node *const *inputs, int input_count)
{
    (void)input_count;
    bw_node *x = inputs[0];
    bwi_pool2d_attributes a = {.same = layer->values[PADDING].text[0] == 's'};
    if (!bwi_layer_pair(graph, layer, POOL_SIZE, NULL, a.window) || !bwi_layer_pair(graph, layer, STRIDES, a.window, a.strides)) {
        return NULL;
    }
    return bwi_graph_add(graph, &bwi_op_maxpool2d, layer->name, &a, sizeof a, &x, 1, NULL, 0);
}

const bwi_layer_row bwi_layer_maxpool2d = {"MaxPooling2D", "max_pooling2d", "maxpool2d max_pooling2d", arguments, COUNT, build,
                                           false};
