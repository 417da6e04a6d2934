/* ActivityRegularization: passes its input on, with a penalty l1 sum |x| + l2 sum x^2 that is added to each sample's loss. */
#include "layer/internal.h"

enum { L1, L2, COUNT };

static const bwi_argument arguments[COUNT] = {
    [L1] = {"l1", NULL, BWI_FLOAT, "0", 0, 1e9, NULL},
    [L2] = {"l2", NULL, BWI_FLOAT, "0", 0, 1e9, NULL},
};

static bw_node *build(const bwi_layer *layer, bwi_graph *graph, bw_node *const *inputs, int input_count)
{
    (void)input_count;
    bw_node *node = bwi_compose_scale(graph, layer->name, inputs[0], 1, -0.0F);
    if (node) {
        node->activity[0] = (float)layer->values[L1].number;
        node->activity[1] = (float)layer->values[L2].number;
    }
    return node;
}

const bwi_layer_row bwi_layer_activity_regularization = {
    "ActivityRegularization", "activity_regularization", "activity_regularization", arguments, COUNT, build, BWI_LAYER_PASSES_MASK};
