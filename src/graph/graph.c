/*
 * Nodes, shapes and variables. A graph owns its nodes and variables; nodes are added after their inputs, so that the
 * order of the list is a topological one.
 */
#include "graph/graph.h"
#include "kernel/kernel.h"

#include <string.h>

int64_t bwi_shape_count(const bwi_shape *shape)
{
    int64_t count = 1;
    for (int i = 0; i < shape->ndim; i++) {
        if (__builtin_mul_overflow(count, shape->extent[i], &count)) {
            return INT64_MAX;
        }
    }
    return count;
}

bool bwi_shape_equal(const bwi_shape *a, const bwi_shape *b)
{
    return a->ndim == b->ndim && memcmp(a->extent, b->extent, (size_t)a->ndim * sizeof a->extent[0]) == 0;
}

void bwi_shape_image(const bwi_shape *shape, int64_t *h, int64_t *w, int64_t *c)
{
    *h = *w = *c = 1;
    if (shape->ndim == 0) {
        return;
    }
    *c = shape->extent[shape->ndim - 1];
    if (shape->ndim == 3) {
        *h = shape->extent[0];
        *w = shape->extent[1];
        return;
    }
    for (int i = 0; i < shape->ndim - 1; i++) {
        *w *= shape->extent[i];
    }
}

int64_t bwi_variable_width(const bwi_variable *variable)
{
    return bwi_shape_count(&variable->shape) / variable->shape.extent[0];
}

static size_t bytes_of(const bwi_variable *variable)
{
    return bwi_size_multiply((size_t)variable->count, sizeof(float));
}

float *bwi_variable_open(const bwi_variable *variable)
{
    return variable->kernels->memory->open(variable->data, bytes_of(variable));
}

void bwi_variable_close(const bwi_variable *variable)
{
    variable->kernels->memory->close(variable->data, bytes_of(variable));
}

void bwi_variable_read_part(const bwi_variable *variable, int64_t first, int64_t count, float *values)
{
    if (variable->packing.unpack) {
        variable->packing.unpack(&variable->packing, variable->data, first, count, values);
    } else {
        variable->kernels->memory->read(values, bwi_variable_at(variable, first), (size_t)count * sizeof *values);
    }
}

void bwi_variable_read(const bwi_variable *variable, float *values)
{
    bwi_variable_read_part(variable, 0, bwi_shape_count(&variable->shape), values);
}

void bwi_variable_write(const bwi_variable *variable, const float *values)
{
    if (variable->packing.pack) {
        variable->packing.pack(&variable->packing, values, variable->data);
    } else {
        variable->kernels->memory->write(variable->data, values, bytes_of(variable));
    }
}

bw_status bwi_graph_open_variables(bwi_graph *graph, const bwi_kernels *kernels)
{
    size_t bytes = 0;
    for (int i = 0; i < graph->variable_count; i++) {
        bytes = bwi_size_add(bytes, bwi_size_align(bytes_of(graph->variables[i]), BWI_CACHE_LINE));
    }
    unsigned char *next = kernels->memory->allocate(graph->ctx, bytes);
    if (!next) {
        return BW_RESOURCE_EXHAUSTED;
    }
    graph->arena = next;
    graph->arena_bytes = bytes;
    for (int i = 0; i < graph->variable_count; i++) {
        graph->variables[i]->kernels = kernels;
        graph->variables[i]->data = next;
        next += bwi_size_align(bytes_of(graph->variables[i]), BWI_CACHE_LINE);
    }
    return BW_OK;
}

void bwi_graph_close_variables(bwi_graph *graph)
{
    if (!graph->arena) {
        return;
    }
    graph->variables[0]->kernels->memory->release(graph->ctx, graph->arena, graph->arena_bytes);
    graph->arena = NULL;
    for (int i = 0; i < graph->variable_count; i++) {
        graph->variables[i]->data = NULL;
    }
}

void bwi_graph_free(bwi_graph *graph)
{
    for (int i = 0; i < graph->count; i++) {
        bwi_release(graph->ctx, graph->nodes[i]);
    }
    bwi_graph_close_variables(graph);
    for (int i = 0; i < graph->variable_count; i++) {
        bwi_variable *variable = graph->variables[i];
        if (variable->packing.release) {
            variable->packing.release(&variable->packing);
        }
        bwi_release(graph->ctx, variable);
    }
    bwi_release(graph->ctx, (void *)graph->nodes);
    bwi_release(graph->ctx, (void *)graph->variables);
    *graph = (bwi_graph){.ctx = graph->ctx};
}

size_t bwi_node_bytes(int inputs, int variables, size_t attribute_bytes)
{
    return sizeof(bw_node) + bwi_size_align(attribute_bytes, sizeof(int64_t)) + (size_t)(inputs + variables) * sizeof(void *);
}

/* A node, its attributes and the lists of its inputs and variables in one block: most of them are a few bytes, less than a block of
 * their own costs. */
static bw_node *allocate_node(bw_context *ctx, int inputs, int variables, size_t attribute_bytes)
{
    bw_node *node = bwi_allocate(ctx, 1, bwi_node_bytes(inputs, variables, attribute_bytes));
    if (node) {
        node->attributes = node + 1;
        node->input = (bw_node **)(void *)((char *)(node + 1) + bwi_size_align(attribute_bytes, sizeof(int64_t)));
        node->variable = (bwi_variable **)(void *)(node->input + inputs);
        node->attribute_bytes = attribute_bytes;
        node->inputs = inputs;
        node->variables = variables;
    }
    return node;
}

static bool append(bw_context *ctx, void ***list, int *count, int *capacity, void *item)
{
    if (*count == *capacity) {
        int larger = *capacity ? 2 * *capacity : 16;
        void **grown = bwi_grow(ctx, (void *)*list, (size_t)*capacity, (size_t)larger, sizeof(void *));
        if (!grown) {
            return false;
        }
        *list = grown;
        *capacity = larger;
    }
    (*list)[(*count)++] = item;
    return true;
}

/* A failure is left in the context: nobody checks what builders return, and the first function with a status reports it. */
bw_node *bwi_graph_add(bwi_graph *graph, const bwi_op *op, const char *name, const void *attributes, size_t attribute_bytes,
                       bw_node *const *inputs, int input_count, bwi_variable *const *variables, int variable_count)
{
    bw_context *ctx = graph->ctx;
    for (int i = 0; i < input_count; i++) {
        if (!inputs[i]) {
            return NULL;
        }
    }
    for (int i = 0; i < variable_count; i++) {
        if (!variables[i]) {
            return NULL;
        }
    }
    bw_node *node = allocate_node(ctx, input_count, variable_count, attribute_bytes);
    if (!node) {
        return bwi_fail_build(ctx, BW_RESOURCE_EXHAUSTED, "no memory for layer %s", name);
    }
    node->graph = graph;
    node->op = op;
    node->layer = -1;
    snprintf(node->name, sizeof node->name, "%s", name);
    node->dtype = BW_F32;
    if (attribute_bytes) {
        memcpy(node->attributes, attributes, attribute_bytes);
    }
    for (int i = 0; i < input_count; i++) {
        node->input[i] = inputs[i];
    }
    for (int i = 0; i < variable_count; i++) {
        node->variable[i] = variables[i];
    }
    bw_status status = op->shape(graph, node);
    if (status != BW_OK) {
        bwi_release(ctx, node);
        bwi_locate(ctx, bwi_in_layer(name));
        return bwi_pass_on(ctx);
    }
    if (bwi_shape_count(&node->shape) > BWI_MOST_VALUES) {
        char text[160];
        bwi_fail_build(ctx, BW_RESOURCE_EXHAUSTED, "layer %s: an output of shape %s is more than %lld values", name,
                       bwi_format_shape(text, node->shape.ndim, node->shape.extent), (long long)BWI_MOST_VALUES);
        bwi_release(ctx, node);
        return NULL;
    }
    int64_t h, w;
    bwi_shape_image(&node->shape, &h, &w, &node->block);
    node->number = graph->count;
    if (!append(ctx, (void ***)(void *)&graph->nodes, &graph->count, &graph->capacity, node)) {
        bwi_release(ctx, node);
        return bwi_fail_build(ctx, BW_RESOURCE_EXHAUSTED, "no memory for layer %s", name);
    }
    return node;
}

/* A shared layer that is built again gets its variables from the first time, in the order in which it asked for them. */
bwi_variable *bwi_graph_variable(bwi_graph *graph, const char *layer, const char *name, const bwi_shape *shape, bool trainable,
                                 const char *initializer, int64_t fan_in, int64_t fan_out)
{
    bw_context *ctx = graph->ctx;
    if (graph->reusing) {
        bwi_variable *again = graph->variables[graph->reuse++];
        return bwi_shape_equal(&again->shape, shape)
                   ? again
                   : bwi_fail_build(ctx, BW_INVALID_ARGUMENT, "layer %s: its %s does not fit this input", layer, name);
    }
    if (bwi_shape_count(shape) > BWI_MOST_VALUES) {
        char text[160];
        return bwi_fail_build(ctx, BW_RESOURCE_EXHAUSTED, "variable %s/%s: a shape of %s is more than %lld values", layer, name,
                              bwi_format_shape(text, shape->ndim, shape->extent), (long long)BWI_MOST_VALUES);
    }
    bwi_variable *variable = bwi_allocate(ctx, 1, sizeof *variable);
    if (!variable) {
        return bwi_fail_build(ctx, BW_RESOURCE_EXHAUSTED, "no memory for variable %s/%s", layer, name);
    }
    snprintf(variable->name, sizeof variable->name, "%s/%s", layer, name);
    variable->shape = *shape;
    variable->trainable = trainable;
    snprintf(variable->initializer, sizeof variable->initializer, "%s", initializer);
    variable->fan_in = fan_in;
    variable->fan_out = fan_out;
    variable->index = graph->variable_count;
    variable->count = bwi_shape_count(shape);
    if (!append(ctx, (void ***)(void *)&graph->variables, &graph->variable_count, &graph->variable_capacity, variable)) {
        bwi_release(ctx, variable);
        return bwi_fail_build(ctx, BW_RESOURCE_EXHAUSTED, "no memory for variable %s/%s", layer, name);
    }
    return variable;
}
