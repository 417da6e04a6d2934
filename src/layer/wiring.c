/*
 * Finds how a model's layers are connected, whether it comes from an expression or from calls, and the order in which Keras has
 * them once it has rebuilt the model. Searches use an explicit stack, because a model may be as deep as it has layers.
 */
#include "layer/internal.h"

#include <stdlib.h>
#include <string.h>

static bool is_list(const bw_model *model)
{
    for (int i = 0; i < model->layer_count; i++) {
        if (model->by_calls || model->layers[i].inputs != 1 || model->layers[i].input[0] != i - 1) {
            return false;
        }
    }
    return true;
}

/* Finds the use that made the node; -1: no layer did. */
static int find_use(const bwi_wiring *w, const bw_node *node)
{
    int use = w->use_count - 1;
    while (use >= 0 && w->uses[use].node != node) {
        use--;
    }
    return use;
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
        w->outputs[k] = find_use(w, model->outputs[k]);
        if (w->outputs[k] < 0) {
            return bwi_fail(w->ctx, BW_INVALID_ARGUMENT,
                            "output %s is made by an operator, not by a layer: Keras's files cannot hold it",
                            model->output_names[k]);
        }
    }
    return BW_OK;
}

/* ---- Keras's order ---- */

typedef struct walk {
    bwi_wiring *w;
    int *operation;            /* of each use: its layer, or layer_count + k for input k */
    int *first, seen;          /* of each operation: when the search first met it; -1: not yet */
    int *depth, *deepest;      /* of each use; of each operation */
    int *mention, mentioned;   /* of each use: when measuring depths reached it, from 1; 0: not yet */
    int *finished, done;       /* uses, inputs before their users */
    int *stack, *next, height; /* uses on the current path, and which of their inputs comes next */
    bool only_layers;          /* a node that no layer made is refused; otherwise the search ends there */
} walk;

static bw_status push(walk *k, int use)
{
    if (k->w->reached[use]) {
        return BW_OK;
    }
    k->w->reached[use] = true;
    int operation = k->operation[use];
    if (k->first[operation] < 0) {
        k->first[operation] = k->seen++;
    }
    k->next[k->height] = 0;
    k->stack[k->height++] = use;
    return BW_OK;
}

static bw_status visit(walk *k, int output)
{
    bwi_wiring *w = k->w;
    bw_status status = push(k, output);
    while (status == BW_OK && k->height > 0) {
        int use = k->stack[k->height - 1];
        if (k->next[k->height - 1] == w->uses[use].inputs) {
            k->finished[k->done++] = use;
            k->height--;
            continue;
        }
        int input = w->uses[use].input[k->next[k->height - 1]++];
        if (input >= 0) {
            status = push(k, input);
        } else if (k->only_layers) {
            status = bwi_fail(w->ctx, BW_INVALID_ARGUMENT,
                              "layer %s takes the output of an operator, not of a layer: Keras's files cannot hold it",
                              w->model->layers[w->uses[use].layer].name);
        }
    }
    return status;
}

static int larger(int a, int b)
{
    return a > b ? a : b;
}

static void mention(walk *k, int use)
{
    k->mention[use] = k->mention[use] ? k->mention[use] : ++k->mentioned;
}

static void measure_depths(walk *k)
{
    for (int i = k->done - 1; i >= 0; i--) {
        int use = k->finished[i], operation = k->operation[use];
        const bwi_use *u = &k->w->uses[use];
        k->deepest[operation] = k->depth[use] = larger(k->depth[use], k->deepest[operation]);
        mention(k, use);
        for (int n = 0; n < u->inputs; n++) {
            if (u->input[n] >= 0) {
                k->depth[u->input[n]] = larger(k->depth[use] + 1, k->depth[u->input[n]]);
                mention(k, u->input[n]);
            }
        }
    }
}

typedef struct turn {
    int depth, first, operation;
} turn;

static int compare(const void *a, const void *b)
{
    const turn *x = a, *y = b;
    return x->depth != y->depth ? (x->depth < y->depth) - (x->depth > y->depth) : (x->first > y->first) - (x->first < y->first);
}

/* Inputs that lead to no output come at the end, just before the outputs, whose depth is 0. */
static bw_status sort_operations(walk *k, int operations)
{
    bwi_wiring *w = k->w;
    turn *turns = bwi_allocate(w->ctx, (size_t)operations, sizeof *turns);
    if (!turns) {
        return BW_RESOURCE_EXHAUSTED;
    }
    for (int i = 0; i < operations; i++) {
        if (k->first[i] >= 0 || i >= w->model->layer_count) {
            turns[w->order_count++] = (turn){.depth = k->deepest[i], .first = k->first[i], .operation = i};
        }
    }
    qsort(turns, (size_t)w->order_count, sizeof *turns, compare);
    for (int i = 0; i < w->order_count; i++) {
        w->order[i] = turns[i].operation;
    }
    bwi_release(w->ctx, turns);
    return BW_OK;
}

static int number_operations(walk *k)
{
    int operations = k->w->model->layer_count;
    for (int u = 0; u < k->w->use_count; u++) {
        k->operation[u] = k->w->uses[u].layer >= 0 ? k->w->uses[u].layer : operations++;
    }
    for (int i = 0; i < operations; i++) {
        k->first[i] = -1;
    }
    return operations;
}

/* Searches from the outputs and measures depths. `k` has one block of memory, `operation`, which the caller releases. */
static bw_status walk_outputs(walk *k, bwi_wiring *w, bool only_layers, int *operations)
{
    size_t uses = (size_t)w->use_count, most = uses + (size_t)w->model->layer_count;
    int *block = bwi_allocate(w->ctx, 6 * uses + 2 * most, sizeof *block);
    *k = (walk){.w = w, .operation = block, .only_layers = only_layers};
    if (!block) {
        return BW_RESOURCE_EXHAUSTED;
    }
    k->depth = block + uses;
    k->finished = block + 2 * uses;
    k->stack = block + 3 * uses;
    k->next = block + 4 * uses;
    k->mention = block + 5 * uses;
    k->first = block + 6 * uses;
    k->deepest = k->first + most;
    *operations = number_operations(k);
    bw_status status = BW_OK;
    for (int i = 0; i < w->output_count && status == BW_OK; i++) {
        status = w->outputs[i] >= 0 ? visit(k, w->outputs[i]) : BW_OK;
    }
    if (status == BW_OK) {
        measure_depths(k);
    }
    return status;
}

/* Keras orders layers by their depth, the longest path to an output, and among equals by when a search from the outputs meets
 * them. Weights are stored in that order. */
static bw_status order_functional(bwi_wiring *w)
{
    walk k;
    int operations;
    bw_status status = walk_outputs(&k, w, true, &operations);
    if (status == BW_OK) {
        status = sort_operations(&k, operations);
    }
    bwi_release(w->ctx, k.operation);
    return status;
}

/* Keras runs uses by their depth, and among equals in the order in which it reached them when it measured depths. */
bw_status bwi_wiring_turns(const bw_model *model, int *turns)
{
    bwi_wiring w = {.ctx = model->ctx, .model = model, .uses = model->uses, .use_count = model->use_count};
    for (; w.output_count < model->output_count; w.output_count++) {
        w.outputs[w.output_count] = find_use(&w, model->outputs[w.output_count]);
    }
    w.reached = bwi_allocate(w.ctx, (size_t)w.use_count, sizeof *w.reached);
    turn *order = bwi_allocate(w.ctx, (size_t)w.use_count, sizeof *order);
    walk k = {.operation = NULL};
    int operations;
    bw_status status = w.reached && order ? walk_outputs(&k, &w, false, &operations) : BW_RESOURCE_EXHAUSTED;
    for (int u = 0; status == BW_OK && u < w.use_count; u++) {
        order[u] = (turn){.depth = k.depth[u], .first = k.mention[u], .operation = u};
    }
    if (status == BW_OK && w.use_count) {
        qsort(order, (size_t)w.use_count, sizeof *order, compare);
    }
    for (int u = 0; status == BW_OK && u < w.use_count; u++) {
        turns[order[u].operation] = u;
    }
    bwi_release(w.ctx, k.operation);
    bwi_release(w.ctx, order);
    bwi_release(w.ctx, w.reached);
    return status;
}

bw_status bwi_wiring_open(bwi_wiring *w, const bw_model *model)
{
    *w = (bwi_wiring){.ctx = model->ctx, .model = model};
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
