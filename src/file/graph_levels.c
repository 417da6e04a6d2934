/*
 * Reads the levels of a Functional model: a model and the models nested in it, each with its layers, inputs and outputs as the file
 * lists them. Nothing is built here, so that a file that is damaged or not supported is refused before the model changes.
 */
#include "file/graph.h"

#include <stdlib.h>
#include <string.h>

/* ---- Names ---- */

static int compare_names(const void *a, const void *b)
{
    return strcmp((*(entry *const *)a)->name, (*(entry *const *)b)->name);
}

entry *bwi_graph_find(const level *l, const char *name)
{
    entry wanted = {.name = name}, *key = &wanted;
    entry **found = name ? bsearch(&key, (void *)l->sorted, (size_t)l->count, sizeof *l->sorted, compare_names) : NULL;
    return found ? *found : NULL;
}

static bw_status sort_entries(const graph_reader *r, level *l)
{
    l->sorted = bwi_allocate(r->k.ctx, (size_t)l->count, sizeof *l->sorted);
    if (!l->sorted) {
        return BW_RESOURCE_EXHAUSTED;
    }
    for (int i = 0; i < l->count; i++) {
        l->sorted[i] = &l->entries[i];
    }
    qsort((void *)l->sorted, (size_t)l->count, sizeof *l->sorted, compare_names);
    for (int i = 1; i < l->count; i++) {
        if (strcmp(l->sorted[i]->name, l->sorted[i - 1]->name) == 0) {
            return bwi_fail_file(r->k.ctx, BW_DATA_LOSS, r->k.path, "layer %s appears twice", l->sorted[i]->name);
        }
    }
    return BW_OK;
}

void bwi_graph_begin_messages(graph_reader *r, const level *l, const entry *e)
{
    char local[BWI_LOCAL_NAME];
    bwi_keras_local_name(local, l->prefix, e->name);
    snprintf(r->k.what, sizeof r->k.what, "layer %s", local);
}

/* ---- Layers ---- */

/* Embeddings and merging layers make masks by these operations, which work on truth values. Nothing else here does. */
static bool is_mask_operation(const bwi_json *json)
{
    static const char *const always[] = {"LogicalOr", "LogicalAnd", "All", "Any", "OnesLike", "ZerosLike"};
    static const char *const maybe[] = {"Concatenate", "ExpandDims", "BroadcastTo"};
    const char *module = bwi_json_text(bwi_json_get(json, "module")), *name = bwi_json_text(bwi_json_get(json, "class_name"));
    double other = 1;
    /* Older files have no modules; there, Concatenate is the layer. */
    if (!name || (module ? !bwi_keras_is_operator(json) : strcmp(name, "Concatenate") == 0)) {
        return false;
    }
    const bwi_json *args = bwi_json_get(bwi_json_at(bwi_json_get(json, "inbound_nodes"), 0), "args");
    if (strcmp(name, "NotEqual") == 0) {
        return bwi_json_number(bwi_json_at(args, 1), &other) && other == 0;
    }
    for (size_t i = 0; i < BWI_COUNT(always); i++) {
        if (strcmp(name, always[i]) == 0) {
            return true;
        }
    }
    tensors found = {.count = 0};
    bwi_graph_collect(args, NULL, &found);
    const char *dtype = found.count ? bwi_json_text(bwi_json_get(bwi_json_get(found.at[0], "config"), "dtype")) : NULL;
    for (size_t i = 0; i < BWI_COUNT(maybe); i++) {
        if (strcmp(name, maybe[i]) == 0) {
            return !dtype || strcmp(dtype, "bool") == 0;
        }
    }
    return false;
}

static entry_kind kind_of(const bwi_json *json)
{
    return bwi_keras_is_input(json)      ? INPUT
           : is_mask_operation(json)     ? MASK
           : bwi_keras_is_operator(json) ? OPERATOR
           : bwi_keras_is_nested(json)   ? NESTED
                                         : LAYER;
}

/* ---- Levels ---- */

void bwi_graph_close(graph_reader *r, level *l)
{
    for (int i = 0; l && i < l->count; i++) {
        bwi_graph_close(r, l->entries[i].inner);
        bwi_release(r->k.ctx, l->entries[i].use);
        bwi_release(r->k.ctx, l->entries[i].run_at);
    }
    if (l) {
        bwi_release(r->k.ctx, (void *)l->sorted);
        bwi_release(r->k.ctx, l->entries);
        bwi_release(r->k.ctx, l->order);
    }
    bwi_release(r->k.ctx, l);
}

/* The class is checked before the calls, so that an unsupported layer is refused by its name whatever it is called with. */
static bw_status read_entry(graph_reader *r, level *l, const bwi_json *json)
{
    const char *name = bwi_json_text(bwi_json_get(json, "name"));
    entry *e = &l->entries[l->count++];
    *e = (entry){.json = json, .nodes = bwi_json_get(json, "inbound_nodes"), .layer = -1, .width = 1, .kind = kind_of(json)};
    e->name = name && !l->list ? name : bwi_keras_layer_name(json);
    e->node_count = l->list ? 1 : bwi_json_count(e->nodes);
    bw_status status = bwi_keras_check_name(&r->k, e->name);
    if (status == BW_OK) {
        bwi_graph_begin_messages(r, l, e);
    }
    if (status == BW_OK && e->node_count > MOST_NODES) {
        status = bwi_fail_file(r->k.ctx, BW_UNIMPLEMENTED, r->k.path, "%s is used %d times; at most %d are possible", r->k.what,
                               e->node_count, MOST_NODES);
    }
    if (status == BW_OK && e->kind != INPUT && e->node_count == 0) {
        status = bwi_fail_file(r->k.ctx, BW_DATA_LOSS, r->k.path, "%s is never used", r->k.what);
    }
    if (status == BW_OK && e->kind == LAYER) {
        const char *class_name = bwi_json_text(bwi_json_get(json, "class_name"));
        status = bwi_keras_check_class(&r->k, json);
        if (status == BW_OK && (bwi_keras_layer_row(class_name)->flags & BWI_LAYER_STATES)) {
            e->width = 1 + BWI_MAX_PARTS;
        }
    }
    if (status == BW_OK && e->kind == NESTED) {
        char inner[BWI_LOCAL_NAME];
        bwi_keras_local_name(inner, l->prefix, e->name);
        status = bwi_graph_open(r, &e->inner, json, inner);
        e->width = BWI_MAX_HEADS;
    }
    if (status == BW_OK) {
        e->use = bwi_allocate(r->k.ctx, (size_t)(e->node_count + 1) * (size_t)e->width, sizeof *e->use);
        e->run_at = bwi_allocate(r->k.ctx, (size_t)e->node_count + 1, sizeof *e->run_at);
        status = e->use && e->run_at ? BW_OK : BW_RESOURCE_EXHAUSTED;
    }
    return status;
}

/* Reads ["x", 0, 0], a list of these, or an object of them, which Keras takes in the order of its keys. */
static bw_status read_ends(graph_reader *r, const level *l, const char *what, const char *key, end *ends, int *count)
{
    tensors found = {.count = 0};
    bwi_graph_collect(bwi_json_get(l->config, key), NULL, &found);
    bw_status status = BW_OK;
    if (found.count < 1 || found.count > BWI_MAX_HEADS || found.more) {
        return bwi_fail_file(r->k.ctx, found.count < 1 ? BW_DATA_LOSS : BW_UNIMPLEMENTED, r->k.path,
                             "expected a list of the model's %s, 1 to %d", what, BWI_MAX_HEADS);
    }
    for (int i = 0; i < found.count && status == BW_OK; i++) {
        snprintf(r->k.what, sizeof r->k.what, "an %.*s of the model", (int)strlen(what) - 1, what);
        status = bwi_graph_end(r, l, found.at[i], &ends[i]);
        ends[i].key = status == BW_OK && found.key[i] ? found.key[i] : ends[i].key;
    }
    *count = found.count;
    return status;
}

static bw_status check_inputs(const graph_reader *r, const level *l)
{
    for (int i = 0; i < l->input_count; i++) {
        bool right = l->inputs[i].from->kind == INPUT;
        for (int k = 0; k < i; k++) {
            right = right && l->inputs[k].from != l->inputs[i].from;
        }
        if (!right) {
            return bwi_fail_file(r->k.ctx, BW_DATA_LOSS, r->k.path,
                                 "an input of the model is not an input layer, or appears twice");
        }
    }
    return BW_OK;
}

/* The input of a list is what its first layer takes, whether or not that is an input layer. */
static bw_status end_list(graph_reader *r, level *l)
{
    entry *first = l->count ? &l->entries[0] : NULL, *last = l->count ? &l->entries[l->count - 1] : NULL;
    if (!last || last->kind == INPUT || (last->kind == NESTED && last->inner->output_count != 1)) {
        return bwi_fail_file(r->k.ctx, BW_DATA_LOSS, r->k.path, "%s: the model has no layers, or its last one no single output",
                             r->k.what);
    }
    for (int i = 0; i < l->count; i++) {
        if (i > 0 && l->entries[i].kind == INPUT) {
            bwi_graph_begin_messages(r, l, &l->entries[i]);
            return bwi_fail_file(r->k.ctx, BW_DATA_LOSS, r->k.path, "%s: an input follows other layers", r->k.what);
        }
    }
    l->inputs[0] = (end){.key = first->name, .from = first->kind == INPUT ? first : &r->first};
    l->outputs[0] = (end){.key = last->name, .from = last};
    l->input_count = l->output_count = 1;
    return BW_OK;
}

static bw_status read_level(graph_reader *r, level *l, const bwi_json *layers)
{
    int count = bwi_json_count(layers);
    l->entries = bwi_allocate(r->k.ctx, (size_t)count, sizeof *l->entries);
    bw_status status = l->entries ? BW_OK : BW_RESOURCE_EXHAUSTED;
    for (int i = 0; i < count && status == BW_OK; i++) {
        status = read_entry(r, l, bwi_json_at(layers, i));
    }
    if (status == BW_OK) {
        status = sort_entries(r, l);
    }
    if (status == BW_OK && l->list) {
        return end_list(r, l);
    }
    if (status == BW_OK) {
        status = read_ends(r, l, "inputs", "input_layers", l->inputs, &l->input_count);
    }
    if (status == BW_OK) {
        status = check_inputs(r, l);
    }
    return status == BW_OK ? read_ends(r, l, "outputs", "output_layers", l->outputs, &l->output_count) : status;
}

/* The limit on layers applies to all levels together. */
bw_status bwi_graph_open(graph_reader *r, level **opened, const bwi_json *json, const char *prefix)
{
    const bwi_json *config = bwi_json_get(json, "config");
    const bwi_json *layers = bwi_keras_layers_of(config);
    const char *class_name = bwi_json_text(bwi_json_get(json, "class_name"));
    r->layers += bwi_json_count(layers);
    if (r->depth == MOST_LEVELS || r->layers > BWI_MOST_LAYERS) {
        return bwi_fail_file(r->k.ctx, BW_UNIMPLEMENTED, r->k.path, "%s: %s %d are possible", r->k.what,
                             r->depth == MOST_LEVELS ? "of models within models at most" : "of layers at most",
                             r->depth == MOST_LEVELS ? MOST_LEVELS : BWI_MOST_LAYERS);
    }
    if (!bwi_keras_is_float32(bwi_json_get(config, "dtype"))) {
        return bwi_keras_refuse(&r->k, "dtype", bwi_json_get(config, "dtype"));
    }
    *opened = bwi_allocate(r->k.ctx, 1, sizeof **opened);
    if (!*opened) {
        return BW_RESOURCE_EXHAUSTED;
    }
    (*opened)->config = config;
    (*opened)->list = class_name && strcmp(class_name, "Sequential") == 0;
    if (prefix[0]) {
        snprintf((*opened)->prefix, BWI_LOCAL_NAME, "%.*s/", BWI_LOCAL_NAME - 2, prefix);
    }
    r->depth++;
    bw_status status = read_level(r, *opened, layers);
    r->depth--;
    return status;
}
