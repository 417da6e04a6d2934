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

bwi_variable *bwi_layer_variable(bwi_graph *graph, const bwi_layer *layer, const char *name, const bwi_shape *shape,
                                 int initializer, int regularizer, int64_t fan_in, int64_t fan_out)
{
    bwi_variable *variable =
        bwi_graph_variable(graph, layer->name, name, shape, true, layer->values[initializer].text, fan_in, fan_out);
    if (variable && regularizer >= 0 && layer->values[regularizer].given &&
        bwi_regularizer_read(graph->ctx, variable, layer->values[regularizer].text) != BW_OK) {
        return bwi_pass_on(graph->ctx);
    }
    return variable;
}
