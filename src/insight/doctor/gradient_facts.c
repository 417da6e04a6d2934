/*
 * Facts about gradients by layer, from one sum over some hundred samples. A unit whose every gradient is exactly zero got none from
 * any of them: behind a ReLU that is dead for all samples, or a sigmoid that is saturated beyond what a float resolves.
 */
#include "insight/doctor/doctor.h"

#include <math.h>
#include <string.h>

enum { SAMPLES = 512, BATCH = 32 };
static const double most_seconds = 0.3;

/* Marks the layers behind which nothing is trained, going back from a node. */
static void mark_outputs(bwi_gradient_facts *facts, const bw_node *node)
{
    for (int v = 0; v < node->variables; v++) {
        for (int k = 0; k < facts->count; k++) {
            size_t length = strlen(facts->layer[k].name);
            if (node->variable[v]->trainable && strncmp(node->variable[v]->name, facts->layer[k].name, length) == 0 &&
                node->variable[v]->name[length] == '/') {
                facts->layer[k].output = true;
                return;
            }
        }
    }
    for (int k = 0; k < node->inputs; k++) {
        mark_outputs(facts, node->input[k]);
    }
}

static bwi_layer_gradient *layer_of(bwi_gradient_facts *facts, const bwi_variable *variable)
{
    char name[sizeof facts->layer->name];
    snprintf(name, sizeof name, "%.*s", (int)strcspn(variable->name, "/"), variable->name);
    for (int k = 0; k < facts->count; k++) {
        if (strcmp(facts->layer[k].name, name) == 0) {
            return &facts->layer[k];
        }
    }
    bwi_layer_gradient *layer = &facts->layer[facts->count++];
    *layer = (bwi_layer_gradient){.units = -1};
    memcpy(layer->name, name, sizeof name);
    return layer;
}

static double size_of(const float *values, int64_t count)
{
    double sum = 0;
    for (int64_t i = 0; i < count; i++) {
        sum += (double)values[i] * (double)values[i];
    }
    return count > 0 ? sqrt(sum / (double)count) : 0;
}

/* Units are indices of the last axis. `alive` is about all variables of a layer: one gradient suffices. */
static void find_alive(const float *values, int64_t count, int64_t units, bool *alive)
{
    for (int64_t i = 0; i < count; i++) {
        alive[i % units] = alive[i % units] || values[i] < 0 || values[i] > 0;
    }
}

/* A gradient and its variable, on the host. */
typedef struct holder {
    float *values;
    bool *alive;
} holder;

/* Flags of units are kept over the variables of a layer that have the same last axis, and begin anew with the next layer. */
static bw_status look_at_variable(bwi_gradient_facts *facts, const bw_model *model, bw_gradients *gradients, int v, const holder *h,
                                  const char **last)
{
    const bwi_variable *variable = model->graph.variables[v];
    const bwi_shape *shape = &variable->shape;
    int64_t count = bwi_shape_count(shape), units = shape->ndim > 0 ? shape->extent[shape->ndim - 1] : 1;
    bw_status status = bw_gradients_get(gradients, v, h->values, (size_t)count);
    if (status != BW_OK) {
        return status;
    }
    bwi_layer_gradient *layer = layer_of(facts, variable);
    if (!*last || strcmp(*last, layer->name) != 0) {
        memset(h->alive, 0, (size_t)units * sizeof *h->alive);
        *last = layer->name;
        layer->units = units;
    }
    bool counts = layer->units == units;
    if (counts) {
        find_alive(h->values, count, units, h->alive);
        layer->silent = 0;
        for (int64_t u = 0; u < units; u++) {
            layer->silent += !h->alive[u];
        }
    }
    double size = size_of(h->values, count);
    if (shape->ndim < 2) {
        layer->bias = size > layer->bias ? size : layer->bias;
    } else if (!(layer->size > 0)) {
        layer->size = size;
        bwi_variable_read(variable, h->values);
        layer->weights = size_of(h->values, count);
    }
    return BW_OK;
}

static bool is_looked_at(const bwi_variable *variable)
{
    return variable->trainable && !variable->sparse;
}

/* The variables of a layer follow each other. */
static bw_status look_at_variables(bwi_gradient_facts *facts, bw_model *model, bw_gradients *gradients)
{
    bw_context *ctx = model->ctx;
    const bwi_graph *graph = &model->graph;
    int64_t most = 1;
    const char *last = NULL;
    bw_status status = BW_OK;
    for (int v = 0; v < graph->variable_count; v++) {
        int64_t count = bwi_shape_count(&graph->variables[v]->shape);
        most = count > most ? count : most;
    }
    holder h = {.values = bwi_allocate(ctx, (size_t)most, sizeof *h.values),
                .alive = bwi_allocate(ctx, (size_t)most, sizeof *h.alive)};
    facts->layer = bwi_allocate(ctx, (size_t)graph->variable_count + 1, sizeof *facts->layer);
    if (!h.values || !h.alive || !facts->layer) {
        status = BW_RESOURCE_EXHAUSTED;
    }
    for (int v = 0; v < graph->variable_count && status == BW_OK; v++) {
        if (is_looked_at(graph->variables[v])) {
            status = look_at_variable(facts, model, gradients, v, &h, &last);
        }
    }
    for (int k = 0; k < model->output_count && status == BW_OK; k++) {
        mark_outputs(facts, model->outputs[k]);
    }
    bwi_release(ctx, h.values);
    bwi_release(ctx, h.alive);
    return status;
}

static bw_status add_batches(bwi_gradient_facts *facts, bw_gradients *gradients, bw_dataset *windows)
{
    double begin = bwi_now(), sum = 0, loss = 0;
    bw_iterator *iterator = bw_iterate(windows, 0);
    bw_batch *batch = NULL;
    bw_status status = iterator ? bw_next(iterator, &batch) : bwi_pending(bwi_dataset_context(windows));
    while (status == BW_OK) {
        status = bw_gradients_add(gradients, batch, &loss);
        sum += status == BW_OK ? loss * (double)bw_batch_count(batch) : 0;
        bool enough = bw_gradients_samples(gradients) >= SAMPLES || bwi_now() - begin > most_seconds;
        if (status != BW_OK || enough) {
            break;
        }
        status = bw_next(iterator, &batch);
    }
    facts->samples = bw_gradients_samples(gradients);
    facts->loss = facts->samples > 0 ? sum / (double)facts->samples : 0;
    bw_iterator_free(iterator);
    return status == BW_OUT_OF_RANGE ? BW_OK : status;
}

bw_status bwi_gradient_facts_find(bwi_gradient_facts *facts, bw_model *model, bw_dataset *dataset, const bw_fit_options *options)
{
    bwi_batching how = {.batch = BATCH, .accumulate = 1};
    bw_dataset *windows = NULL;
    bw_status status = bwi_dataset_windows(dataset, &how, &windows);
    bw_gradients *gradients = status == BW_OK ? bw_gradients_new(model, options) : NULL;
    if (status == BW_OK) {
        status = gradients ? add_batches(facts, gradients, windows) : bwi_pending(model->ctx);
    }
    if (status == BW_OK) {
        status = look_at_variables(facts, model, gradients);
    }
    bw_gradients_free(gradients);
    bw_dataset_free(windows);
    return status;
}

void bwi_gradient_facts_free(bw_context *ctx, bwi_gradient_facts *facts)
{
    bwi_release(ctx, facts->layer);
    facts->layer = NULL;
}
