/*
 * Finds how a model's layers are connected, whether it comes from an expression or from calls, and the order in which Keras has
 * them once it has rebuilt the model.
 */
#include "layer/internal.h"

#include <string.h>

/* Keras's attention takes a query and a value, which no list of layers gives it; nor may a layer in a list give states. */
static bool is_list(const bw_model *model)
{
    for (int i = 0; i < model->layer_count; i++) {
        const bwi_layer *layer = &model->layers[i];
        if (model->by_calls || layer->inputs != 1 || layer->input[0] != i - 1 || bwi_layer_is_attention(layer->row) ||
            bwi_layer_parts(layer)) {
            return false;
        }
    }
    return true;
}

/* Finds the use that made the node, and which of its values that is; -1: no layer did. */
static int find_use(const bwi_wiring *w, const bw_node *node, int *part)
{
    for (int use = w->use_count - 1; use >= 0; use--) {
        for (*part = 0; *part <= w->uses[use].parts.count; ++*part) {
            if (bwi_use_value(&w->uses[use], *part) == node) {
                return use;
            }
        }
    }
    return -1;
}

/* Keras's files contain only layers, so each output must come from a layer. */
static bw_status copy_uses(bwi_wiring *w)
{
    const bw_model *model = w->model;
    if (model->use_count == 0 || model->output_count == 0) {
        return bwi_fail(w->ctx, BW_INVALID_ARGUMENT, "the model has no %s yet: build or train it first",
                        model->by_calls ? "output" : "input shape");
    }
    w->sequential = is_list(model);
    w->use_count = model->use_count;
    w->uses = bwi_allocate(w->ctx, (size_t)w->use_count, sizeof *w->uses);
    if (!w->uses) {
        return BW_RESOURCE_EXHAUSTED;
    }
    memcpy(w->uses, model->uses, (size_t)w->use_count * sizeof *w->uses);
    w->output_count = model->output_count;
    for (int k = 0; k < w->output_count; k++) {
        w->outputs[k] = find_use(w, model->outputs[k], &w->output_parts[k]);
        if (w->outputs[k] < 0) {
            return bwi_fail(w->ctx, BW_INVALID_ARGUMENT,
                            "output %s is made by an operator, not by a layer: Keras's files cannot hold it",
                            model->output_names[k]);
        }
    }
    return BW_OK;
}

/* ---- Keras's order ---- */

/* Describes the uses for order.c; operations are layers, and layer_count + k for input k. The caller releases *block. */
static bw_status open_calls(const bwi_wiring *w, bwi_calls *calls, int **block)
{
    size_t uses = (size_t)w->use_count, inputs = 0;
    for (int u = 0; u < w->use_count; u++) {
        inputs += (size_t)w->uses[u].inputs;
    }
    *block = bwi_allocate(w->ctx, 2 * uses + 1 + inputs, sizeof **block);
    if (!*block) {
        return BW_RESOURCE_EXHAUSTED;
    }
    int *operation = *block, *begin = operation + uses, *input = begin + uses + 1, operations = w->model->layer_count;
    for (int u = 0; u < w->use_count; u++) {
        const bwi_use *use = &w->uses[u];
        operation[u] = use->layer >= 0 ? use->layer : operations++;
        begin[u + 1] = begin[u] + use->inputs;
        memcpy(input + begin[u], use->input, (size_t)use->inputs * sizeof *input);
    }
    *calls = (bwi_calls){.uses = w->use_count, .operations = operations, .operation = operation, .begin = begin, .input = input};
    calls->outputs = w->outputs;
    calls->output_count = w->output_count;
    return BW_OK;
}

static bw_status order_calls(const bwi_wiring *w, bwi_call_order *order)
{
    bwi_calls calls;
    int *block = NULL;
    bw_status status = open_calls(w, &calls, &block);
    if (status == BW_OK) {
        status = bwi_call_order_open(w->ctx, &calls, order);
    }
    bwi_release(w->ctx, block);
    return status;
}

static bw_status check_made_by_layers(const bwi_wiring *w)
{
    for (int u = 0; u < w->use_count; u++) {
        for (int n = 0; w->reached[u] && n < w->uses[u].inputs; n++) {
            if (w->uses[u].input[n] < 0) {
                return bwi_fail(w->ctx, BW_INVALID_ARGUMENT,
                                "layer %s takes the output of an operator, not of a layer: Keras's files cannot hold it",
                                w->model->layers[w->uses[u].layer].name);
            }
        }
    }
    return BW_OK;
}

static bw_status order_functional(bwi_wiring *w)
{
    bwi_call_order order;
    bw_status status = order_calls(w, &order);
    if (status != BW_OK) {
        return status;
    }
    w->order_count = order.count;
    memcpy(w->order, order.operations, (size_t)order.count * sizeof *w->order);
    for (int u = 0; u < w->use_count; u++) {
        w->reached[u] = order.run_at[u] >= 0;
    }
    bwi_call_order_close(w->ctx, &order);
    return check_made_by_layers(w);
}

/* A file knows more than the uses show: where nested models begin and end, and the operations that make masks. */
static bool copy_run_order(const bw_model *model, int *run_at)
{
    for (int u = 0; u < model->use_count; u++) {
        run_at[u] = model->uses[u].run_at > 0 ? model->uses[u].run_at - 1 : -1;
        if (model->uses[u].layer >= 0 && !model->uses[u].run_at) {
            return false;
        }
    }
    return true;
}

bw_status bwi_wiring_run_order(const bw_model *model, int *run_at)
{
    if (copy_run_order(model, run_at)) {
        return BW_OK;
    }
    bwi_wiring w = {.ctx = model->ctx, .model = model, .uses = model->uses, .use_count = model->use_count};
    for (; w.output_count < model->output_count; w.output_count++) {
        w.outputs[w.output_count] = find_use(&w, model->outputs[w.output_count], &w.output_parts[w.output_count]);
    }
    bwi_call_order order;
    bw_status status = order_calls(&w, &order);
    if (status == BW_OK) {
        memcpy(run_at, order.run_at, (size_t)model->use_count * sizeof *run_at);
        bwi_call_order_close(w.ctx, &order);
    }
    return status;
}

bw_status bwi_wiring_open(bwi_wiring *w, const bw_model *model)
{
    *w = (bwi_wiring){.ctx = model->ctx, .model = model, .layer_count = model->layer_count};
    bw_status status = copy_uses(w);
    if (status == BW_OK) {
        w->order = bwi_allocate(w->ctx, (size_t)w->use_count + (size_t)model->layer_count, sizeof *w->order);
        w->reached = bwi_allocate(w->ctx, (size_t)w->use_count, sizeof *w->reached);
        status = w->order && w->reached ? BW_OK : BW_RESOURCE_EXHAUSTED;
    }
    if (status == BW_OK && w->sequential) {
        for (; w->order_count < model->layer_count; w->order_count++) {
            w->order[w->order_count] = w->order_count;
        }
    } else if (status == BW_OK) {
        status = order_functional(w);
    }
    if (status != BW_OK) {
        bwi_wiring_close(w);
    }
    return status;
}

void bwi_wiring_close(bwi_wiring *w)
{
    bwi_release(w->ctx, w->uses);
    bwi_release(w->ctx, w->order);
    bwi_release(w->ctx, w->reached);
    w->uses = NULL;
    w->order = NULL;
    w->reached = NULL;
}

bw_status bwi_wiring_of(const bw_model *model, const bwi_wiring **wiring)
{
    bwi_wiring *w = model->wiring;
    bool same = w->use_count == model->use_count && w->layer_count == model->layer_count && w->output_count == model->output_count;
    *wiring = w;
    if (w->uses && same) {
        return BW_OK;
    }
    bwi_wiring_forget(model);
    return bwi_wiring_open(w, model);
}

void bwi_wiring_forget(const bw_model *model)
{
    if (model->wiring && model->wiring->uses) {
        bwi_wiring_close(model->wiring);
    }
}

int bwi_wiring_node(const bwi_wiring *w, int use)
{
    int node = 0;
    for (int u = 0; u < use; u++) {
        node += w->uses[u].layer == w->uses[use].layer && w->reached[u];
    }
    return w->uses[use].layer >= 0 ? node : 0;
}

/* ---- Names ---- */

static bool is_layer(const bw_model *model, const char *name)
{
    for (int i = 0; i < model->layer_count; i++) {
        if (strcmp(model->layers[i].name, name) == 0) {
            return true;
        }
    }
    return false;
}

static const bwi_input_attributes *input_at(const bwi_wiring *w, int input)
{
    for (int u = 0; u < w->use_count; u++) {
        if (w->uses[u].layer < 0 && input-- == 0) {
            return w->uses[u].node->attributes;
        }
    }
    return NULL;
}

const char *bwi_wiring_model_name(const bwi_wiring *w)
{
    return w->model->name ? w->model->name : w->sequential ? "sequential" : "functional";
}

/* Keras allows no slashes in names, and a layer and an input must have different names. */
void bwi_wiring_name(const bwi_wiring *w, int operation, char name[64])
{
    int input = operation - w->model->layer_count;
    if (input < 0) {
        snprintf(name, 64, "%s", w->model->layers[operation].name);
        return;
    }
    const char *given = input_at(w, input)->name;
    if (given[0]) {
        snprintf(name, 64, "%.48s", given);
    } else if (input) {
        snprintf(name, 64, "input_layer_%d", input);
    } else {
        snprintf(name, 64, "input_layer");
    }
    for (char *at = name; *at; at++) {
        *at = *at == '/' ? '_' : *at;
    }
    while (is_layer(w->model, name) && strlen(name) < 60) {
        strcat(name, "_in");
    }
}

const char *bwi_output_name(const bw_model *model, int output)
{
    return model->output_names[output][0] ? model->output_names[output] : model->outputs[output]->name;
}

int bwi_layer_variables(const bw_model *model, int layer, int *first)
{
    *first = model->layers[layer].first_variable;
    int end = layer + 1 < model->layer_count ? model->layers[layer + 1].first_variable : model->graph.variable_count;
    return end - *first;
}
