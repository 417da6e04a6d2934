/* Activations by name, and the layers Activation, ReLU and Softmax that are nothing else. */
#include "layer/rows.h"

#include <string.h>

typedef struct activation_row {
    const char *name;
    const bwi_op *op; /* NULL: nothing to do */
} activation_row;

static const activation_row activations[] = {{"linear", NULL}, {"relu", &bwi_op_relu}, {"softmax", &bwi_op_softmax}};

bw_node *bwi_activation_add(bwi_graph *graph, const char *layer, bw_node *node, const char *activation)
{
    if (!node) {
        return NULL;
    }
    for (size_t i = 0; i < BWI_COUNT(activations); i++) {
        if (strcmp(activation, activations[i].name) == 0) {
            const bwi_op *op = activations[i].op;
            return op ? bwi_graph_add(graph, op, layer, NULL, 0, &node, 1, NULL, 0) : node;
        }
    }
    char known[200] = "";
    for (size_t i = 0; i < BWI_COUNT(activations); i++) {
        size_t n = strlen(known);
        snprintf(known + n, sizeof known - n, "%s%s", i ? ", " : "", activations[i].name);
    }
    return bwi_fail_build(graph->ctx, BW_INVALID_ARGUMENT, "layer %s: there is no activation '%s'; there are %s", layer, activation,
                          known);
}

enum { ACTIVATION, COUNT };

static const bwi_argument arguments[COUNT] = {[ACTIVATION] = {"activation", NULL, BWI_TEXT, NULL, 0, 0, NULL}};

static bw_node *build(const bwi_layer *layer, bwi_graph *graph, bw_node *const *inputs, int input_count)
{
    (void)input_count;
    return bwi_activation_add(graph, layer->name, inputs[0], layer->values[ACTIVATION].text);
}

static bw_node *build_relu(const bwi_layer *layer, bwi_graph *graph, bw_node *const *inputs, int input_count)
{
    (void)input_count;
    return bwi_activation_add(graph, layer->name, inputs[0], "relu");
}

static bw_node *build_softmax(const bwi_layer *layer, bwi_graph *graph, bw_node *const *inputs, int input_count)
{
    (void)input_count;
    return bwi_activation_add(graph, layer->name, inputs[0], "softmax");
}

const bwi_layer_row bwi_layer_activation = {"Activation", "activation", "activation", arguments, COUNT, build, BWI_LAYER_PASSES_MASK};
const bwi_layer_row bwi_layer_relu = {"ReLU", "re_lu", "relu", NULL, 0, build_relu, BWI_LAYER_PASSES_MASK};
const bwi_layer_row bwi_layer_softmax = {"Softmax", "softmax", "softmax", NULL, 0, build_softmax, BWI_LAYER_REFUSES_MASK};
