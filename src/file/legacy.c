/*
 * Reads the older .h5 files, which have the configuration as JSON in the attributes model_config and training_config, and the
 * weights in model_weights/<layer>/<weight names>, and the optimizer's values in optimizer_weights. They are never written.
 */
#include "file/internal.h"

#include <string.h>

enum { OPTIMIZER_LIMIT = 1 << 16 }; /* values of an optimizer */

typedef struct legacy {
    bw_context *ctx;
    const char *path;
    bwi_hdf5 *file;
    const bwi_json *layers; /* of the configuration */
} legacy;

/* Reads an attribute that holds JSON; *json is NULL if there is no such attribute. */
static bw_status read_json(const legacy *l, const char *name, bwi_json **json)
{
    char *text;
    int count;
    *json = NULL;
    bw_status status = bwi_hdf5_attribute(l->file, "", name, &text, &count);
    if (status == BW_OK && count) {
        status = bwi_json_parse(l->ctx, json, text, strlen(text), l->path);
    }
    bwi_release(l->ctx, text);
    return status;
}

/* Reads the names of a group's weights. Long lists are split into weight_names0, weight_names1, ... */
static bw_status next_names(const legacy *l, const char *group, int chunk, char **names, int *count)
{
    char name[32];
    if (chunk < 0) {
        snprintf(name, sizeof name, "weight_names");
    } else {
        snprintf(name, sizeof name, "weight_names%d", chunk);
    }
    return bwi_hdf5_attribute(l->file, group, name, names, count);
}

/* The weights of one of the configuration's layers, which may be a model: variables of the graph, in the file's order. */
typedef struct group {
    const char *path;
    const int *variables;
    int count, taken;
} group;

/* The names of a layer's weights differ between versions, so weights are taken in their order, each checked against its
 * variable's shape. */
static bw_status add_names(const legacy *l, group *g, const char *names, int count, const bwi_graph *graph,
                           const bwi_hdf5_entry **entries)
{
    for (int i = 0; i < count; i++, names += strlen(names) + 1) {
        bwi_text path = {.ctx = l->ctx};
        bwi_text_add(&path, "%s/%s", g->path, names);
        if (path.failed) {
            bwi_text_free(&path);
            return BW_RESOURCE_EXHAUSTED;
        }
        bw_status status = g->taken < g->count ? BW_OK
                                               : bwi_fail_file(l->ctx, BW_DATA_LOSS, l->path,
                                                               "%s has more weights than the layer's %d", g->path, g->count);
        if (status == BW_OK) {
            int variable = g->variables[g->taken++];
            entries[variable] = bwi_hdf5_find(l->file, path.bytes);
            status = bwi_weights_check(l->ctx, l->path, path.bytes, entries[variable], &graph->variables[variable]->shape);
        }
        bwi_text_free(&path);
        if (status != BW_OK) {
            return status;
        }
    }
    return BW_OK;
}

/* An attribute of HDF5 holds at most 64 KiB, so Keras splits long lists of names: weight_names, or weight_names0, weight_names1
 * and so on. */
static bw_status find_group(const legacy *l, group *g, const bwi_graph *graph, const bwi_hdf5_entry **entries)
{
    bw_status status = BW_OK;
    bool more = true;
    for (int chunk = -1; more && status == BW_OK; chunk++) {
        char *names = NULL;
        int count = 0;
        status = next_names(l, g->path, chunk, &names, &count);
        if (status == BW_OK) {
            status = add_names(l, g, names, count, graph, entries);
        }
        bwi_release(l->ctx, names);
        more = !names == (chunk < 0);
    }
    if (status == BW_OK && g->taken != g->count) {
        status = bwi_fail_file(l->ctx, BW_DATA_LOSS, l->path, "%s: expected %d weights, found %d", g->path, g->count, g->taken);
    }
    return status;
}

static int list_layer(const bw_model *model, int layer, bool trainable, bool all, int *list)
{
    int first, count = 0, variables = bwi_layer_variables(model, layer, &first);
    for (int v = first; v < first + variables; v++) {
        if (all || model->graph.variables[v]->trainable == trainable) {
            list[count++] = v;
        }
    }
    return count;
}

/* Keras lists a model's trainable variables before the others, unless the model as a whole is not trainable. */
static int list_variables(const bw_model *model, const bwi_json *json, int top, int *list)
{
    const bwi_json *trainable = bwi_json_get(bwi_json_get(json, "config"), "trainable");
    bool all = bwi_json_kind_of(trainable) == BWI_JSON_BOOL && !bwi_json_true(trainable);
    int count = 0;
    for (int pass = 0; pass < (all ? 1 : 2); pass++) {
        for (int i = 0; i < model->stored_count; i++) {
            if (model->stored[i].top == top) {
                count += list_layer(model, model->stored[i].layer, pass == 0, all, list + count);
            }
        }
    }
    return count;
}

/* Finds the weights of the configuration's layers. `list` has space for all variables; `next` is the layer of a list of layers. */
static bw_status find_weights(const legacy *l, const bw_model *model, const bwi_hdf5_entry **entries, int *list)
{
    bw_status status = BW_OK;
    for (int top = 0, next = 0; top < bwi_json_count(l->layers) && status == BW_OK; top++) {
        const bwi_json *json = bwi_json_at(l->layers, top);
        if (bwi_keras_is_input(json)) {
            continue;
        }
        group g = {.variables = list};
        g.count = model->stored ? list_variables(model, json, top, list) : list_layer(model, next++, true, true, list);
        bwi_text path = {.ctx = l->ctx};
        bwi_text_add(&path, "model_weights/%s", bwi_keras_layer_name(json));
        g.path = path.bytes;
        status = path.failed ? BW_RESOURCE_EXHAUSTED : find_group(l, &g, &model->graph, entries);
        bwi_text_free(&path);
    }
    return status;
}

/* A layer that leads to no output has no weights in the file. */
static bw_status read_weights(const legacy *l, bw_model *model)
{
    if (model->use_count == 0) {
        return bwi_fail_file(l->ctx, BW_DATA_LOSS, l->path, "the model has no input shape");
    }
    int variables = model->graph.variable_count;
    const bwi_hdf5_entry **entries = bwi_allocate(l->ctx, (size_t)variables, sizeof *entries);
    int *list = bwi_allocate(l->ctx, (size_t)variables, sizeof *list);
    bw_status status = entries && list ? find_weights(l, model, entries, list) : BW_RESOURCE_EXHAUSTED;
    if (status == BW_OK) {
        status = bwi_weights_build(model);
    }
    for (int v = 0; v < variables && status == BW_OK; v++) {
        if (entries[v]) {
            status = bwi_weights_take(l->ctx, l->file, l->path, entries[v], model->graph.variables[v]);
        }
    }
    bwi_release(l->ctx, (void *)entries);
    bwi_release(l->ctx, list);
    return status;
}

static bw_status read_training(const legacy *l, bw_model *model)
{
    bwi_json *json;
    bw_status status = read_json(l, "training_config", &json);
    const bwi_json *optimizer =
        bwi_json_get(json, "optimizer_config") ? bwi_json_get(json, "optimizer_config") : bwi_json_get(json, "optimizer");
    if (status == BW_OK && json) {
        status = bwi_keras_read_training(model, l->path, json, optimizer);
    }
    bwi_json_free(json);
    return status;
}

/* Collects the names of the optimizer's values, from one attribute or several. */
static bw_status add_optimizer_names(const legacy *l, int chunk, char **texts, const char **names, int *count, bool *more)
{
    int found = 0;
    bw_status status = next_names(l, "optimizer_weights", chunk, &texts[chunk + 1], &found);
    *more = !texts[chunk + 1] == (chunk < 0);
    const char *at = texts[chunk + 1];
    for (int i = 0; i < found && status == BW_OK; i++, at += strlen(at) + 1) {
        if (*count == OPTIMIZER_LIMIT) {
            return bwi_fail_file(l->ctx, BW_DATA_LOSS, l->path, "optimizer_weights: expected at most %d values", OPTIMIZER_LIMIT);
        }
        names[(*count)++] = at;
    }
    return status;
}

static bw_status read_optimizer(const legacy *l, bw_model *model)
{
    enum { CHUNKS = 64 };
    char *texts[CHUNKS] = {NULL};
    const char **names = bwi_allocate(l->ctx, OPTIMIZER_LIMIT, sizeof *names);
    int count = 0;
    bool more = true;
    bw_status status = names ? BW_OK : BW_RESOURCE_EXHAUSTED;
    for (int chunk = -1; chunk < CHUNKS - 1 && more && status == BW_OK; chunk++) {
        status = add_optimizer_names(l, chunk, texts, names, &count, &more);
    }
    if (status == BW_OK) {
        status = bwi_weights_read_optimizer(model, l->file, l->path, names, count);
    }
    for (int i = 0; i < CHUNKS; i++) {
        bwi_release(l->ctx, texts[i]);
    }
    bwi_release(l->ctx, (void *)names);
    return status;
}

/* The configuration stays until the weights are read, since the file has them by its layers' names. */
static bw_model *load_open(legacy *l)
{
    bwi_json *json;
    bw_status status = read_json(l, "model_config", &json);
    if (status == BW_OK && !json) {
        status = bwi_fail_file(l->ctx, BW_DATA_LOSS, l->path, "does not hold a model: it has no attribute model_config");
    }
    bw_model *model = status == BW_OK ? bwi_keras_read_model(l->ctx, l->path, json) : bwi_pass_on(l->ctx);
    if (model) {
        l->layers = bwi_keras_layers_of(bwi_json_get(json, "config"));
        status = read_weights(l, model);
    }
    bwi_json_free(json);
    if (!model) {
        return NULL;
    }
    if (status == BW_OK) {
        status = read_training(l, model);
    }
    if (status == BW_OK) {
        status = read_optimizer(l, model);
    }
    if (status != BW_OK) {
        bwi_disown(model);
        return bwi_pass_on(l->ctx);
    }
    return model;
}

static bw_model *load(bw_context *ctx, const char *path, const bwi_bytes *bytes)
{
    legacy l = {.ctx = ctx, .path = path};
    if (bwi_hdf5_open(ctx, &l.file, bytes->data, bytes->size, path) != BW_OK) {
        return bwi_pass_on(ctx);
    }
    bw_model *model = load_open(&l);
    bwi_hdf5_close(l.file);
    return model;
}

const bwi_file_row bwi_file_legacy = {".h5", "a model of older versions of Keras", load, NULL, NULL, false};
