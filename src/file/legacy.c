/*
 * Reads the older .h5 files, which have the configuration as JSON in the attributes model_config and training_config, and the
 * weights in model_weights/<layer>/<weight names>. They are never written.
 */
#include "file/internal.h"

#include <string.h>

typedef struct legacy {
    bw_context *ctx;
    const char *path;
    bwi_hdf5 *file;
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

/* Reads the names of a layer's weights. Long lists are split into weight_names0, weight_names1, ... */
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

typedef struct found {
    const bwi_hdf5_entry **entries; /* one for each variable of the graph */
    int first, count, taken;        /* variables of the current layer */
} found;

/* The names of a layer's weights differ between versions, so weights are taken in their order, each checked against its
 * variable's shape. */
static bw_status add_names(const legacy *l, const char *group, const char *names, int count, const bwi_graph *graph, found *f)
{
    for (int i = 0; i < count; i++, names += strlen(names) + 1) {
        bwi_text path = {.ctx = l->ctx};
        bwi_text_add(&path, "%s/%s", group, names);
        if (path.failed) {
            bwi_text_free(&path);
            return BW_RESOURCE_EXHAUSTED;
        }
        bw_status status = f->taken < f->count ? BW_OK
                                               : bwi_fail_file(l->ctx, BW_DATA_LOSS, l->path,
                                                               "%s has more weights than the layer's %d", group, f->count);
        if (status == BW_OK) {
            const bwi_hdf5_entry *entry = bwi_hdf5_find(l->file, path.bytes);
            int variable = f->first + f->taken++;
            f->entries[variable] = entry;
            status = bwi_weights_check(l->ctx, l->path, path.bytes, entry, &graph->variables[variable]->shape);
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
static bw_status find_layer(const legacy *l, const bw_model *model, int layer, const bwi_hdf5_entry **entries)
{
    found f = {.entries = entries};
    char group[96];
    f.count = bwi_layer_variables(model, layer, &f.first);
    snprintf(group, sizeof group, "model_weights/%s", model->layers[layer].name);
    bw_status status = BW_OK;
    bool more = true;
    for (int chunk = -1; more && status == BW_OK; chunk++) {
        char *names = NULL;
        int count = 0;
        status = next_names(l, group, chunk, &names, &count);
        if (status == BW_OK) {
            status = add_names(l, group, names, count, &model->graph, &f);
        }
        bwi_release(l->ctx, names);
        more = !names == (chunk < 0);
    }
    if (status == BW_OK && f.taken != f.count) {
        status = bwi_fail_file(l->ctx, BW_DATA_LOSS, l->path, "%s: expected %d weights, found %d", group, f.count, f.taken);
    }
    return status;
}

static bw_status read_weights(const legacy *l, bw_model *model)
{
    if (model->use_count == 0) {
        return bwi_fail_file(l->ctx, BW_DATA_LOSS, l->path, "the model has no input shape");
    }
    int variables = model->graph.variable_count;
    const bwi_hdf5_entry **entries = bwi_allocate(l->ctx, (size_t)variables, sizeof *entries);
    bw_status status = entries ? BW_OK : BW_RESOURCE_EXHAUSTED;
    for (int i = 0; i < model->layer_count && status == BW_OK; i++) {
        status = find_layer(l, model, i, entries);
    }
    if (status == BW_OK) {
        status = bwi_weights_build(model);
    }
    for (int v = 0; v < variables && status == BW_OK; v++) {
        status = bwi_weights_take(l->ctx, l->file, l->path, entries[v], model->graph.variables[v]);
    }
    bwi_release(l->ctx, (void *)entries);
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

static bw_model *load_open(const legacy *l)
{
    bwi_json *json;
    bw_status status = read_json(l, "model_config", &json);
    if (status == BW_OK && !json) {
        status = bwi_fail_file(l->ctx, BW_DATA_LOSS, l->path, "does not hold a model: it has no attribute model_config");
    }
    bw_model *model = status == BW_OK ? bwi_keras_read_model(l->ctx, l->path, json) : bwi_pass_on(l->ctx);
    bwi_json_free(json);
    if (!model) {
        return NULL;
    }
    status = read_weights(l, model);
    if (status == BW_OK) {
        status = read_training(l, model);
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
