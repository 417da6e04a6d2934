/*
 * Bidirectional and TimeDistributed, which hold other layers. An inner layer is built as part of the outer one: its nodes have the
 * outer layer's name, and its variables that name, a part's name and their own.
 */
#include "layer/internal.h"

#include <string.h>

/* Builds an inner layer. Variables that it makes belong to `part` of the outer layer, in Keras's files to the group `place`. */
static bw_node *build_inner(const bwi_layer *outer, const bwi_layer *inner, const char *part, const char *place, bwi_graph *graph,
                            bw_node *const *inputs, int count)
{
    bwi_layer named = *inner;
    int before = graph->variable_count;
    snprintf(named.name, sizeof named.name, "%s", outer->name);
    bw_node *node = bwi_layer_nodes(&named, graph, inputs, count);
    for (int v = before; v < graph->variable_count; v++) {
        bwi_variable *variable = graph->variables[v];
        char own[sizeof variable->name], group[sizeof variable->place];
        const char *rest = variable->name + strlen(outer->name);
        snprintf(group, sizeof group, "%s", variable->place);
        snprintf(own, sizeof own, "%.63s/%.20s%.27s", outer->name, part, rest);
        snprintf(variable->name, sizeof variable->name, "%s", own);
        snprintf(variable->place, sizeof variable->place, "%.15s%s%.30s", place, group[0] ? "/" : "", group);
        variable->trainable = variable->trainable && inner->trainable;
    }
    return node;
}

static int find_argument(const bwi_layer_row *row, const char *name)
{
    int i = 0;
    while (i < row->argument_count && strcmp(row->arguments[i].name, name) != 0) {
        i++;
    }
    return i;
}

static bool flag_of(const bwi_layer *layer, const char *name)
{
    int i = find_argument(layer->row, name);
    return i < layer->row->argument_count && layer->values[i].flag;
}

/* ---- Bidirectional ---- */

enum { MERGE_MODE, BIDIRECTIONAL_COUNT };

static const bwi_argument bidirectional_arguments[BIDIRECTIONAL_COUNT] = {
    [MERGE_MODE] = {"merge_mode", NULL, BWI_TEXT, "concat", 0, 0, "concat sum mul ave none"}};

static bw_node *merge(const bwi_layer *layer, bwi_graph *graph, bw_node *const *both)
{
    const char *mode = layer->values[MERGE_MODE].text;
    if (strcmp(mode, "mul") == 0) {
        return bwi_compose_multiply(graph, layer->name, both[0], both[1]);
    }
    if (strcmp(mode, "concat") == 0) {
        bwi_axis_attributes a = {.axis = both[0]->shape.ndim - 1};
        return bwi_graph_add(graph, &bwi_op_concatenate, layer->name, &a, sizeof a, both, 2, NULL, 0);
    }
    bwi_add_attributes a = {.scale = strcmp(mode, "ave") == 0 ? 0.5F : 1};
    return bwi_graph_add(graph, &bwi_op_add, layer->name, &a, sizeof a, both, 2, NULL, 0);
}

/* Fails unless both layers are recurrent, go in opposite directions and agree on what they return. */
static bool check_directions(const bwi_layer *layer, bwi_graph *graph, const bwi_layer *ahead, const bwi_layer *back)
{
    int at = find_argument(ahead->row, "go_backwards"), also = find_argument(back->row, "go_backwards");
    if (at == ahead->row->argument_count || also == back->row->argument_count) {
        bwi_fail_build(graph->ctx, BW_INVALID_ARGUMENT, "layer %s: expected a recurrent layer within it, got %s", layer->name,
                       at == ahead->row->argument_count ? ahead->row->class_name : back->row->class_name);
        return false;
    }
    if (flag_of(ahead, "go_backwards") == flag_of(back, "go_backwards") ||
        flag_of(ahead, "return_sequences") != flag_of(back, "return_sequences") ||
        flag_of(ahead, "return_state") != flag_of(back, "return_state")) {
        bwi_fail_build(graph->ctx, BW_INVALID_ARGUMENT,
                       "layer %s: backward_layer: expected the other direction, and the same return_sequences and return_state",
                       layer->name);
        return false;
    }
    return true;
}

int bwi_bidirectional_gives_two(const bwi_layer *layer)
{
    return layer->row == &bwi_layer_bidirectional && strcmp(layer->values[MERGE_MODE].text, "none") == 0;
}

/* Builds both directions on x, each with its half of the given states. The states that they return are left in the graph's parts,
 * in Keras's order. Sequences that the second one returns are reversed, so that both have the same order. */
static bool build_directions(const bwi_layer *layer, bwi_graph *graph, bw_node *const *inputs, int count,
                             const bwi_layer *const directions[2], bw_node *both[2])
{
    static const char *const places[] = {"forward_layer", "backward_layer"}, *const parts[] = {"forward", "backward"};
    int half = (count - 1) / 2;
    bw_node *given[BWI_MAX_POINTS] = {inputs[0]};
    if (count != 1 && count != 1 + bwi_layer_states(layer)) {
        bwi_fail_build(graph->ctx, BW_INVALID_ARGUMENT, "layer %s: initial_state: expected %d states, got %d", layer->name,
                       bwi_layer_states(layer), count - 1);
        return false;
    }
    for (int i = 0; i < 2; i++) {
        char part[24];
        snprintf(part, sizeof part, "%s_%.14s", parts[i], directions[i]->row->base_name);
        for (int k = 1; k <= half; k++) {
            given[k] = inputs[i * half + k];
        }
        both[i] = build_inner(layer, directions[i], part, places[i], graph, given, 1 + half);
        if (!both[i]) {
            return false;
        }
    }
    if (flag_of(directions[0], "return_sequences")) {
        both[1] = bwi_graph_add(graph, &bwi_op_reverse, layer->name, NULL, 0, &both[1], 1, NULL, 0);
    }
    return both[1];
}

/* The second of two outputs comes before the states. */
static bw_node *give_two(bwi_graph *graph, bw_node *const *both)
{
    if (!bwi_layer_part(graph, both[1])) {
        return NULL;
    }
    for (int k = graph->parts.count - 1; k > 0; k--) {
        graph->parts.node[k] = graph->parts.node[k - 1];
    }
    graph->parts.node[0] = both[1];
    return both[0];
}

/* The second layer is a copy of the first with the other direction, unless it is given. */
static bw_node *build_bidirectional(const bwi_layer *layer, bwi_graph *graph, bw_node *const *inputs, int input_count)
{
    const bwi_layer *ahead = layer->inner[0];
    bwi_layer back = layer->inner[1] ? *layer->inner[1] : *ahead;
    bw_node *both[2];
    if (!layer->inner[1] && find_argument(back.row, "go_backwards") < back.row->argument_count) {
        bwi_argument_value *direction = &back.values[find_argument(back.row, "go_backwards")];
        direction->flag = !direction->flag;
        direction->given = true;
    }
    if (!check_directions(layer, graph, ahead, &back)) {
        return NULL;
    }
    if (!build_directions(layer, graph, inputs, input_count, (const bwi_layer *const[]){ahead, &back}, both)) {
        return NULL;
    }
    bool two = bwi_bidirectional_gives_two(layer);
    bw_node *node = two ? give_two(graph, both) : merge(layer, graph, both);
    for (int i = 0; node && flag_of(ahead, "return_sequences") && i < 1 + two; i++) {
        *(i ? &both[1]->mask : &node->mask) = inputs[0]->mask;
    }
    return node;
}

/* ---- TimeDistributed ---- */

enum { MOST_POSITIONS = 512 };

/* Whether the layer treats each position alone, so that it can take all of them at once. */
static bool takes_positions(const bwi_layer *layer)
{
    static const char *const classes[] = {
        "Dense",         "Activation",      "ReLU",     "LeakyReLU",         "ELU", "Dropout", "Rescaling",
        "GaussianNoise", "GaussianDropout", "Identity", "BatchNormalization"};
    int axis = find_argument(layer->row, "axis");
    for (size_t i = 0; i < BWI_COUNT(classes); i++) {
        if (strcmp(layer->row->class_name, classes[i]) == 0) {
            return axis == layer->row->argument_count || !layer->values[axis].given || layer->values[axis].integer == -1;
        }
    }
    return false;
}

/* The layer takes one position after another, always with the variables of the first. */
static bw_node *build_positions(const bwi_layer *layer, bwi_graph *graph, bw_node *x)
{
    const bwi_layer *inner = layer->inner[0];
    bw_node *made[MOST_POSITIONS];
    bool reusing = graph->reusing;
    int first = reusing ? graph->reuse : graph->variable_count;
    int64_t count = x->shape.extent[0];
    bwi_shape one = {.ndim = x->shape.ndim - 1};
    memcpy(one.extent, x->shape.extent + 1, sizeof one.extent - sizeof one.extent[0]);
    for (int64_t t = 0; t < count; t++) {
        bwi_slice_attributes a = {.axis = 0, .start = t, .count = 1};
        bw_node *slice = bwi_graph_add(graph, &bwi_op_slice, layer->name, &a, sizeof a, &x, 1, NULL, 0);
        bw_node *position = bwi_compose_reshape(graph, layer->name, slice, &one);
        graph->reusing = reusing || t > 0;
        graph->reuse = first;
        bw_node *y = position ? build_inner(layer, inner, inner->row->base_name, "layer", graph, &position, 1) : NULL;
        graph->reusing = reusing;
        if (!y) {
            return NULL;
        }
        bwi_shape row = {.ndim = y->shape.ndim + 1, .extent = {1}};
        if (row.ndim > BW_MAX_NDIM - 1) {
            return bwi_fail_build(graph->ctx, BW_INVALID_ARGUMENT, "layer %s: its output has more than %d axes", layer->name,
                                  BW_MAX_NDIM - 1);
        }
        memcpy(row.extent + 1, y->shape.extent, (size_t)y->shape.ndim * sizeof row.extent[0]);
        made[t] = bwi_compose_reshape(graph, layer->name, y, &row);
    }
    bwi_axis_attributes a = {.axis = 0};
    return count == 1 ? made[0] : bwi_graph_add(graph, &bwi_op_concatenate, layer->name, &a, sizeof a, made, (int)count, NULL, 0);
}

/* Layers that treat each position alone take all at once, which is the same and costs less. */
static bw_node *build_distributed(const bwi_layer *layer, bwi_graph *graph, bw_node *const *inputs, int input_count)
{
    (void)input_count;
    bw_node *x = inputs[0], *node;
    const bwi_layer *inner = layer->inner[0];
    if (x->shape.ndim < 2) {
        char found[160];
        return bwi_fail_build(graph->ctx, BW_INVALID_ARGUMENT, "layer %s: expected positions of at least one axis, got %s",
                              layer->name, bwi_format_shape(found, x->shape.ndim, x->shape.extent));
    }
    if (bwi_layer_parts(inner)) {
        return bwi_fail_build(graph->ctx, BW_UNIMPLEMENTED, "layer %s: return_state of a layer within it is not supported",
                              layer->name);
    }
    if (inner->row->flags & (BWI_LAYER_MERGES | BWI_LAYER_WRAPS)) {
        return bwi_fail_build(graph->ctx, BW_UNIMPLEMENTED, "layer %s: %s within it is not supported", layer->name,
                              inner->row->class_name);
    }
    if (takes_positions(inner)) {
        node = build_inner(layer, inner, inner->row->base_name, "layer", graph, &x, 1);
    } else if (x->shape.extent[0] > MOST_POSITIONS) {
        return bwi_fail_build(graph->ctx, BW_UNIMPLEMENTED, "layer %s: %s at more than %d positions is not supported", layer->name,
                              inner->row->class_name, MOST_POSITIONS);
    } else {
        node = build_positions(layer, graph, x);
    }
    if (node && node != x) {
        node->mask = x->mask;
    }
    return node;
}

enum { WRAPPER = BWI_LAYER_TAKES_MASK | BWI_LAYER_WRAPS };

const bwi_layer_row bwi_layer_bidirectional = {"Bidirectional",           "bidirectional",     "bidirectional",
                                               bidirectional_arguments,   BIDIRECTIONAL_COUNT, build_bidirectional,
                                               WRAPPER | BWI_LAYER_STATES};
const bwi_layer_row bwi_layer_time_distributed = {
    "TimeDistributed", "time_distributed", "time_distributed", NULL, 0, build_distributed, WRAPPER};
