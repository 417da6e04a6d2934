/* What the layers' files share. */
#include "layer/rows.h"

bool bwi_layer_pair(bwi_graph *graph, const bwi_layer *layer, int argument, const int64_t *standard, int64_t pair[2])
{
    const bwi_argument_value *v = &layer->values[argument];
    if (!v->count && standard) {
        pair[0] = standard[0];
        pair[1] = standard[1];
        return true;
    }
    if (v->count != 1 && v->count != 2) {
        bwi_fail_build(graph->ctx, BW_INVALID_ARGUMENT, "layer %s: %s: expected one number or two, got %d", layer->name,
                       layer->row->arguments[argument].name, v->count);
        return false;
    }
    pair[0] = v->integers[0];
    pair[1] = v->integers[v->count - 1];
    return true;
}

bw_node *bwi_layer_input(bwi_graph *graph, const bwi_layer *layer, bw_node *const *inputs, int input_count)
{
    if (input_count != 1) {
        return bwi_fail_build(graph->ctx, BW_INVALID_ARGUMENT, "layer %s: expected one input, got %d", layer->name, input_count);
    }
    return inputs[0];
}
