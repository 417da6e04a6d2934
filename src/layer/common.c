/* Functions that several layers share: pairs, triples and sizes, axes, checks of input shapes, and variables. */
#include "layer/internal.h"

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

/* Height, width, depth of one number or of three, whose first is the depth. */
static bool triple(bwi_graph *graph, const bwi_layer *layer, int argument, const int64_t *standard, int64_t sizes[3])
{
    const bwi_argument_value *v = &layer->values[argument];
    if (v->count != 1 && v->count != 3 && (v->count || !standard)) {
        bwi_fail_build(graph->ctx, BW_INVALID_ARGUMENT, "layer %s: %s: expected one number or three, got %d", layer->name,
                       layer->row->arguments[argument].name, v->count);
        return false;
    }
    for (int i = 0; i < 3; i++) {
        sizes[i] = !v->count ? standard[i] : v->count == 1 ? v->integer : v->integers[(i + 1) % 3];
    }
    return true;
}

bool bwi_layer_sizes(bwi_graph *graph, const bwi_layer *layer, int ndim, int argument, const int64_t *standard, int64_t *sizes)
{
    const bwi_argument_value *v = &layer->values[argument];
    if (ndim == 4) {
        return triple(graph, layer, argument, standard, sizes);
    }
    if (ndim == 3) {
        return bwi_layer_pair(graph, layer, argument, standard, sizes);
    }
    if (v->count != 1 && (v->count || !standard)) {
        bwi_fail_build(graph->ctx, BW_INVALID_ARGUMENT, "layer %s: %s: expected one number, got %d", layer->name,
                       layer->row->arguments[argument].name, v->count);
        return false;
    }
    sizes[0] = 1;
    sizes[1] = v->count ? v->integer : standard[1];
    return true;
}

bool bwi_layer_expect(bwi_graph *graph, const bwi_layer *layer, const bw_node *x, int ndim)
{
    char text[160];
    if (x->shape.ndim != ndim) {
        bwi_fail_build(graph->ctx, BW_INVALID_ARGUMENT, "layer %s: expected %s, got %s", layer->name,
                       ndim == 2   ? "a sequence (length, channels)"
                       : ndim == 3 ? "an image (height, width, channels)"
                                   : "a volume (depth, height, width, channels)",
                       bwi_format_shape(text, x->shape.ndim, x->shape.extent));
    }
    return x->shape.ndim == ndim;
}

bool bwi_layer_part(bwi_graph *graph, bw_node *node)
{
    if (node && graph->parts.count == BWI_MAX_PARTS) {
        bwi_fail_build(graph->ctx, BW_UNIMPLEMENTED, "layer %s: more than %d values beside its output", node->name, BWI_MAX_PARTS);
        return false;
    }
    if (node) {
        graph->parts.node[graph->parts.count++] = node;
    }
    return node;
}

bw_node *bwi_layer_nodes(const bwi_layer *layer, bwi_graph *graph, bw_node *const *inputs, int input_count)
{
    static const struct {
        unsigned flag;
        int ndim;
    } rules[] = {{BWI_LAYER_LINE, 2}, {BWI_LAYER_IMAGE, 3}, {BWI_LAYER_VOLUME, 4}};
    for (size_t i = 0; i < BWI_COUNT(rules); i++) {
        if (layer->row->flags & rules[i].flag && !bwi_layer_expect(graph, layer, inputs[0], rules[i].ndim)) {
            return NULL;
        }
    }
    return layer->row->build(layer, graph, inputs, input_count);
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
    if (variable && layer->constraint_count && bwi_constraint_read(graph->ctx, layer, initializer, variable) != BW_OK) {
        return bwi_pass_on(graph->ctx);
    }
    return variable;
}

void bwi_variable_place(bwi_variable *variable, const char *group)
{
    if (variable && !variable->place[0]) { /* a layer that is used again has it already, and one within another a longer one */
        snprintf(variable->place, sizeof variable->place, "%s", group);
    }
}

bool bwi_layer_axis(bwi_graph *graph, const bwi_layer *layer, int argument, int64_t axis, int ndim, int *result)
{
    int64_t own = axis < 0 ? axis + ndim : axis - 1;
    if (own < 0 || own >= ndim) {
        bwi_fail_build(graph->ctx, BW_INVALID_ARGUMENT, "layer %s: %s: expected an axis from 1 to %d or from -%d to -1, got %lld",
                       layer->name, layer->row->arguments[argument].name, ndim, ndim, (long long)axis);
        return false;
    }
    *result = (int)own;
    return true;
}
