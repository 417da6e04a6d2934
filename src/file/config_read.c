/*
 * Keras's configuration of a model becomes one made here: a list of layers (Sequential) or a graph (Functional). A layer is
 * known by its class in the table of layers, its options by their names there; an option that has no name there must have the
 * value that changes nothing. Everything else is refused with the layer's name.
 */
#include "file/file.h"

#include <stdlib.h>
#include <string.h>

/* Keras writes layers before those that take them, but for shared ones: a few turns suffice. */
enum { LAYER_LIMIT = 1 << 12, TURN_LIMIT = 64, NAME_LIMIT = 63 };

/* ---- One layer ---- */

/* Options without an argument here: bookkeeping, or the value that is as if they were not there. */
static const struct {
    const char *key, *value; /* NULL: any */
} neutral_options[] = {
    {"name", NULL},
    {"trainable", NULL},
    {"dtype", "float32"},
    {"batch_shape", NULL},
    {"batch_input_shape", NULL},
    {"input_length", NULL},
    {"build_config", NULL},
    {"autocast", "true"},
    {"data_format", "channels_last"},
    {"synchronized", "false"},
    {"renorm", "false"},
    {"renorm_momentum", NULL},
    {"fused", NULL},
    {"sparse", "false"},
    {"ragged", "false"},
    {"optional", "false"},
    {"groups", "1"},
    {"implementation", NULL},
    {"seed", NULL},
};

static bool neutral(const char *key, const bwi_json *value)
{
    int64_t whole = 0;
    const char *text = bwi_json_text(value);
    if (bwi_json_kind_of(value) == BWI_JSON_NULL) {
        return true;
    }
    if (strcmp(key, "dtype") == 0) {
        return bwi_keras_is_float32(value);
    }
    for (size_t i = 0; i < BWI_COUNT(neutral_options); i++) {
        const char *wanted = neutral_options[i].value;
        if (strcmp(key, neutral_options[i].key) != 0) {
            continue;
        }
        if (bwi_json_kind_of(value) == BWI_JSON_BOOL) {
            text = bwi_json_true(value) ? "true" : "false";
        } else if (bwi_json_whole(value, &whole) && whole == 1) {
            text = "1";
        }
        return !wanted || (text && strcmp(text, wanted) == 0);
    }
    return false;
}

static bool nothing_neutral(const char *key, const bwi_json *value)
{
    (void)key;
    (void)value;
    return false;
}

static const bwi_layer_row *find_row(const char *class_name)
{
    for (int i = 0; bwi_layer_rows[i]; i++) {
        if (strcmp(bwi_layer_rows[i]->class_name, class_name) == 0) {
            return bwi_layer_rows[i];
        }
    }
    return NULL;
}

static bw_status refuse_class(const bwi_keras *k, const bwi_json *layer)
{
    static const struct {
        const char *class_name, *why;
    } known[] = {
        {"Lambda", "is a Lambda, which carries code: it is never run"},
        {"Sequential", "is a model within the model, which is not offered"},
        {"Functional", "is a model within the model, which is not offered"},
        {"Model", "is a model within the model, which is not offered"},
    };
    const char *class_name = bwi_json_text(bwi_json_get(layer, "class_name"));
    char quoted[BWI_QUOTE_SIZE];
    for (size_t i = 0; class_name && i < BWI_COUNT(known); i++) {
        if (strcmp(known[i].class_name, class_name) == 0) {
            return bwi_fail(k->ctx, BW_UNIMPLEMENTED, "%s: %s %s", k->path, k->what, known[i].why);
        }
    }
    bwi_quote(quoted, class_name ? class_name : "", class_name ? strlen(class_name) : 0);
    return bwi_fail(k->ctx, BW_UNIMPLEMENTED, "%s: %s: the class %s is %s", k->path, k->what, quoted,
                    class_name && !bwi_keras_is_own(layer) ? "of somebody's own, which is not offered" : "not offered");
}

/* Options of ours that Keras does not know stand beside its own. */
static bw_status add_own_options(const bwi_keras *k, const bwi_layer_row *row, const bwi_json *own, bwi_text *text)
{
    if (bwi_json_count(own) == 0) {
        return BW_OK;
    }
    bwi_text options = {.ctx = k->ctx};
    bw_status status = bwi_keras_call_text(k, "", own, row->arguments, row->argument_count, nothing_neutral, &options);
    if (status == BW_OK) {
        text->length--; /* the closing parenthesis */
        bwi_text_add(text, "%s%s", text->bytes[text->length - 1] == '(' ? "" : ",", options.bytes + 1);
    }
    bwi_text_free(&options);
    return status;
}

/* The layer as in an expression. */
static bw_status layer_text(const bwi_keras *k, const bwi_json *layer, bool frozen, bwi_text *text)
{
    const char *class_name = bwi_json_text(bwi_json_get(layer, "class_name"));
    const bwi_json *config = bwi_json_get(layer, "config"), *trainable = bwi_json_get(config, "trainable");
    const bwi_layer_row *row = class_name && bwi_keras_is_own(layer) ? find_row(class_name) : NULL;
    if (!row) {
        return refuse_class(k, layer);
    }
    char name[64];
    snprintf(name, sizeof name, "%.*s", (int)strcspn(row->names, " "), row->names);
    bw_status status = bwi_keras_call_text(k, name, config, row->arguments, row->argument_count, neutral, text);
    if (status == BW_OK) {
        status = add_own_options(k, row, bwi_json_get(layer, "batchwise"), text);
    }
    if (status == BW_OK && (frozen || (bwi_json_kind_of(trainable) == BWI_JSON_BOOL && !bwi_json_true(trainable)))) {
        text->length--;
        bwi_text_add(text, "%strainable=false)", text->bytes[text->length - 1] == '(' ? "" : ",");
    }
    return status == BW_OK && text->failed ? BW_RESOURCE_EXHAUSTED : status;
}

static const char *layer_name(const bwi_json *layer)
{
    const char *name = bwi_json_text(bwi_json_get(bwi_json_get(layer, "config"), "name"));
    return name ? name : bwi_json_text(bwi_json_get(layer, "name"));
}

/* Names go into messages, files and paths: short, printable, without slashes. */
static bw_status check_name(bwi_keras *k, const char *name)
{
    char quoted[BWI_QUOTE_SIZE];
    bool right = name && name[0] && strlen(name) <= NAME_LIMIT && !strchr(name, '/');
    for (const char *at = name; right && *at; at++) {
        right = (unsigned char)*at >= 0x20 && *at != 0x7f;
    }
    if (!right) {
        return bwi_fail(k->ctx, BW_DATA_LOSS, "%s: layer %s: expected a name of 1 to %d characters without slashes", k->path,
                        bwi_quote(quoted, name ? name : "", name ? strlen(name) : 0), NAME_LIMIT);
    }
    snprintf(k->what, sizeof k->what, "layer %s", name);
    return BW_OK;
}

/* ---- Shapes ---- */

/* [null, 28, 28, 1]: what stands behind the batch. */
static bw_status read_shape(const bwi_keras *k, const bwi_json *list, bwi_shape *shape)
{
    int count = bwi_json_count(list);
    if (bwi_json_kind_of(list) != BWI_JSON_LIST || count < 1 || count > BW_MAX_RANK) {
        return bwi_fail(k->ctx, BW_DATA_LOSS, "%s: %s: expected an input shape of 1 to %d extents", k->path, k->what, BW_MAX_RANK);
    }
    shape->rank = count - 1;
    for (int i = 1; i < count; i++) {
        if (bwi_json_kind_of(bwi_json_at(list, i)) == BWI_JSON_NULL) {
            return bwi_fail(k->ctx, BW_UNIMPLEMENTED, "%s: %s: inputs of any length (null in the shape) are not offered", k->path,
                            k->what);
        }
        if (!bwi_json_whole(bwi_json_at(list, i), &shape->extent[i - 1]) || shape->extent[i - 1] < 1) {
            return bwi_fail(k->ctx, BW_DATA_LOSS, "%s: %s: extent %d of the input shape is no whole number of at least 1", k->path,
                            k->what, i);
        }
    }
    return BW_OK;
}

static bool is_input(const bwi_json *layer)
{
    const char *class_name = bwi_json_text(bwi_json_get(layer, "class_name"));
    return class_name && strcmp(class_name, "InputLayer") == 0 && bwi_keras_is_own(layer);
}

static const bwi_json *shape_of(const bwi_json *config)
{
    const bwi_json *shape = bwi_json_get(config, "batch_shape");
    return bwi_json_kind_of(shape) == BWI_JSON_LIST ? shape : bwi_json_get(config, "batch_input_shape");
}

static bw_status check_input_options(const bwi_keras *k, const bwi_json *config)
{
    static const char *const refused[] = {"sparse", "ragged", "optional"};
    for (size_t i = 0; i < BWI_COUNT(refused); i++) {
        if (bwi_json_true(bwi_json_get(config, refused[i]))) {
            return bwi_keras_refuse(k, refused[i], bwi_json_get(config, refused[i]));
        }
    }
    const char *dtype = bwi_json_text(bwi_json_get(config, "dtype"));
    if (dtype && (strcmp(dtype, "string") == 0 || strncmp(dtype, "complex", 7) == 0)) {
        return bwi_keras_refuse(k, "dtype", bwi_json_get(config, "dtype"));
    }
    return BW_OK;
}

/* ---- Sequential ---- */

static bw_status add_listed(bw_model *model, const bwi_keras *k, const bwi_json *json, bool frozen)
{
    bwi_text text = {.ctx = model->ctx};
    bwi_expression e;
    bwi_layer *layer = &model->layers[model->layer_count];
    bw_status status = layer_text(k, json, frozen, &text);
    if (status == BW_OK) {
        status = bwi_term_parse(model->ctx, &e, "layer", text.bytes);
    }
    if (status == BW_OK) {
        status = bwi_layer_read(model, layer, &e.terms[0]);
        bwi_expression_free(&e);
    }
    bwi_text_free(&text);
    if (status != BW_OK) {
        return status;
    }
    snprintf(layer->name, sizeof layer->name, "%s", layer_name(json));
    layer->inputs = 1;
    layer->input[0] = model->layer_count++ - 1;
    return BW_OK;
}

static bool name_is_taken(const bw_model *model, const char *name)
{
    for (int i = 0; i < model->layer_count; i++) {
        if (strcmp(model->layers[i].name, name) == 0) {
            return true;
        }
    }
    return false;
}

static bw_status read_list(bw_model *model, bwi_keras *k, const bwi_json *layers, bool frozen)
{
    bw_status status = BW_OK;
    for (int i = 0; i < bwi_json_count(layers) && status == BW_OK; i++) {
        const bwi_json *layer = bwi_json_at(layers, i), *config = bwi_json_get(layer, "config");
        const char *name = layer_name(layer);
        status = check_name(k, name);
        if (status == BW_OK && i == 0 && bwi_json_kind_of(shape_of(config)) == BWI_JSON_LIST) {
            status = read_shape(k, shape_of(config), &model->input_shape);
        }
        if (status == BW_OK && is_input(layer)) {
            status = i == 0 ? check_input_options(k, config)
                            : bwi_fail(k->ctx, BW_DATA_LOSS, "%s: %s: an input stands behind other layers", k->path, k->what);
        } else if (status == BW_OK && name_is_taken(model, name)) {
            status = bwi_fail(k->ctx, BW_DATA_LOSS, "%s: %s is there twice", k->path, k->what);
        } else if (status == BW_OK) {
            status = add_listed(model, k, layer, frozen);
        }
    }
    return status;
}

static bw_status read_sequential(bw_model *model, bwi_keras *k, const bwi_json *json, bool frozen)
{
    const bwi_json *config = bwi_json_get(json, "config");
    const bwi_json *layers = bwi_json_kind_of(config) == BWI_JSON_LIST ? config : bwi_json_get(config, "layers");
    const bwi_json *shape = bwi_json_get(config, "build_input_shape");
    if (bwi_json_kind_of(shape) != BWI_JSON_LIST) {
        shape = bwi_json_get(bwi_json_get(json, "build_config"), "input_shape");
    }
    model->layers = bwi_allocate(k->ctx, (size_t)bwi_json_count(layers), sizeof *model->layers);
    if (!model->layers) {
        return BW_RESOURCE_EXHAUSTED;
    }
    bw_status status = read_list(model, k, layers, frozen);
    if (status == BW_OK && model->input_shape.rank < 0 && bwi_json_kind_of(shape) == BWI_JSON_LIST) {
        status = read_shape(k, shape, &model->input_shape);
    }
    if (status == BW_OK && model->layer_count == 0) {
        status = bwi_fail(k->ctx, BW_DATA_LOSS, "%s: the model has no layers", k->path);
    }
    if (status == BW_OK && model->input_shape.rank >= 0) {
        status = bwi_model_connect(model, model->input_shape.rank, model->input_shape.extent);
    }
    return status;
}

/* ---- Functional ---- */

enum { MOST_NODES = 64 };

/* A layer of the file: where it is here, and which uses its nodes became. */
typedef struct entry {
    const bwi_json *json, *nodes;
    const char *name;
    int layer, input; /* -1: not made yet, or none */
    int done, use[MOST_NODES];
} entry;

typedef struct graph_reader {
    bwi_keras k;
    bw_model *model;
    entry *entries; /* as in the file */
    entry **sorted; /* by name */
    int count;
    bool frozen;
} graph_reader;

static int compare_names(const void *a, const void *b)
{
    return strcmp((*(entry *const *)a)->name, (*(entry *const *)b)->name);
}

static entry *find_entry(const graph_reader *r, const char *name)
{
    entry wanted = {.name = name}, *key = &wanted;
    entry **found = name ? bsearch(&key, (void *)r->sorted, (size_t)r->count, sizeof *r->sorted, compare_names) : NULL;
    return found ? *found : NULL;
}

static bw_status sort_entries(graph_reader *r)
{
    r->sorted = bwi_allocate(r->k.ctx, (size_t)r->count, sizeof *r->sorted);
    if (!r->sorted) {
        return BW_RESOURCE_EXHAUSTED;
    }
    for (int i = 0; i < r->count; i++) {
        r->sorted[i] = &r->entries[i];
    }
    qsort((void *)r->sorted, (size_t)r->count, sizeof *r->sorted, compare_names);
    for (int i = 1; i < r->count; i++) {
        if (strcmp(r->sorted[i]->name, r->sorted[i - 1]->name) == 0) {
            return bwi_fail(r->k.ctx, BW_DATA_LOSS, "%s: layer %s is there twice", r->k.path, r->sorted[i]->name);
        }
    }
    return BW_OK;
}

static bw_status fail_tensor(const graph_reader *r)
{
    return bwi_fail(r->k.ctx, BW_DATA_LOSS, "%s: %s: an input of it is no output of another layer", r->k.path, r->k.what);
}

/* ["layer", node, tensor] or an object that holds it. *use is -1 if that node is not made yet. */
static bw_status read_tensor(const graph_reader *r, const bwi_json *json, int *use)
{
    const bwi_json *history = bwi_json_get(bwi_json_get(json, "config"), "keras_history");
    int64_t node = 0, tensor = 0;
    history = history ? history : json;
    const entry *e = find_entry(r, bwi_json_text(bwi_json_at(history, 0)));
    if (!e || !bwi_json_whole(bwi_json_at(history, 1), &node) || !bwi_json_whole(bwi_json_at(history, 2), &tensor) || tensor != 0 ||
        node < 0 || node >= (e->input >= 0 ? 1 : bwi_json_count(e->nodes)) || node >= MOST_NODES) {
        return fail_tensor(r);
    }
    *use = e->input >= 0 ? e->use[0] : node < e->done ? e->use[node] : -1;
    return BW_OK;
}

static bool is_tensor(const bwi_json *json)
{
    return bwi_json_kind_of(json) == BWI_JSON_OBJECT || bwi_json_text(bwi_json_at(json, 0));
}

/* The tensors of a call: {"args": [T or [T, ...]], "kwargs": {}}, or [T, ...] in older files. Other arguments that are not null
 * change what the layer does. */
static bw_status find_tensors(const graph_reader *r, const bwi_json *node, const bwi_json **tensors)
{
    const bwi_json *args = bwi_json_get(node, "args"), *kwargs = bwi_json_get(node, "kwargs");
    const char *key = NULL;
    for (const bwi_json *value; (value = bwi_json_next(kwargs, &key));) {
        /* Keras 3 replaces `training` by whether it trains at all. */
        if (bwi_json_kind_of(value) != BWI_JSON_NULL && strcmp(key, "training") != 0) {
            return bwi_keras_refuse(&r->k, key, value);
        }
    }
    if (bwi_json_kind_of(node) == BWI_JSON_LIST) {
        for (int i = 0; i < bwi_json_count(node); i++) {
            if (bwi_json_count(bwi_json_at(bwi_json_at(node, i), 3))) {
                return bwi_keras_refuse(&r->k, "call", bwi_json_at(bwi_json_at(node, i), 3));
            }
        }
        *tensors = node;
        return BW_OK;
    }
    for (int i = 1; i < bwi_json_count(args); i++) {
        if (bwi_json_kind_of(bwi_json_at(args, i)) != BWI_JSON_NULL) {
            return bwi_keras_refuse(&r->k, "second argument", bwi_json_at(args, i));
        }
    }
    *tensors = bwi_json_count(args) == 0 ? NULL : is_tensor(bwi_json_at(args, 0)) ? args : bwi_json_at(args, 0);
    return BW_OK;
}

/* *ready is false if an input is still to come. */
static bw_status find_inputs(const graph_reader *r, const bwi_json *node, int uses[BWI_MAX_POINTS], int *count, bool *ready)
{
    const bwi_json *tensors = NULL;
    bw_status status = find_tensors(r, node, &tensors);
    if (status != BW_OK) {
        return status;
    }
    *count = bwi_json_get(node, "args") && tensors == bwi_json_get(node, "args") ? 1 : bwi_json_count(tensors);
    *ready = true;
    if (*count < 1 || *count > BWI_MAX_POINTS) {
        return bwi_fail(r->k.ctx, *count < 1 ? BW_DATA_LOSS : BW_UNIMPLEMENTED, "%s: %s: %d inputs; from 1 to %d are possible",
                        r->k.path, r->k.what, *count, BWI_MAX_POINTS);
    }
    for (int i = 0; i < *count && status == BW_OK; i++) {
        status = read_tensor(r, bwi_json_at(tensors, i), &uses[i]);
        *ready = *ready && status == BW_OK && uses[i] >= 0;
    }
    return status;
}

static bw_status make_layer(graph_reader *r, entry *e)
{
    bwi_text text = {.ctx = r->k.ctx};
    bw_status status = layer_text(&r->k, e->json, r->frozen, &text);
    if (status == BW_OK) {
        e->layer = bwi_model_add_layer(r->model, text.bytes, e->name);
        status = e->layer >= 0 ? BW_OK : bwi_pending(r->k.ctx);
    }
    bwi_text_free(&text);
    return status;
}

/* Makes as many of a layer's nodes, in their order, as have their inputs. */
static bw_status advance(graph_reader *r, entry *e, bool *moved)
{
    while (e->done < bwi_json_count(e->nodes)) {
        int uses[BWI_MAX_POINTS], count;
        bool ready;
        snprintf(r->k.what, sizeof r->k.what, "layer %s", e->name);
        bw_status status = find_inputs(r, bwi_json_at(e->nodes, e->done), uses, &count, &ready);
        if (status == BW_OK && !ready) {
            return BW_OK;
        }
        if (status == BW_OK && e->layer < 0) {
            status = make_layer(r, e);
        }
        if (status == BW_OK) {
            e->use[e->done] = bwi_model_use(r->model, e->layer, uses, count);
            status = e->use[e->done] >= 0 ? BW_OK : bwi_pending(r->k.ctx);
        }
        if (status != BW_OK) {
            return status;
        }
        e->done++;
        *moved = true;
    }
    return BW_OK;
}

static bw_status make_uses(graph_reader *r)
{
    bool moved = true;
    for (int turn = 0; turn < TURN_LIMIT && moved; turn++) {
        moved = false;
        for (int i = 0; i < r->count; i++) {
            entry *e = &r->entries[i];
            bw_status status = e->input >= 0 ? BW_OK : advance(r, e, &moved);
            if (status != BW_OK) {
                return status;
            }
        }
    }
    for (int i = 0; i < r->count; i++) {
        const entry *e = &r->entries[i];
        if (e->input < 0 && e->done < bwi_json_count(e->nodes)) {
            return bwi_fail(r->k.ctx, BW_DATA_LOSS, "%s: layer %s: its inputs do not stand before it, or form a circle", r->k.path,
                            e->name);
        }
    }
    return BW_OK;
}

static bw_status read_entry(graph_reader *r, const bwi_json *json)
{
    const char *name = bwi_json_text(bwi_json_get(json, "name"));
    entry e = {.json = json, .nodes = bwi_json_get(json, "inbound_nodes"), .layer = -1, .input = -1};
    e.name = name ? name : layer_name(json);
    bw_status status = check_name(&r->k, e.name);
    if (status == BW_OK && bwi_json_count(e.nodes) > MOST_NODES) {
        status = bwi_fail(r->k.ctx, BW_UNIMPLEMENTED, "%s: %s is used %d times; at most %d are possible", r->k.path, r->k.what,
                          bwi_json_count(e.nodes), MOST_NODES);
    }
    if (status == BW_OK && !is_input(json) && bwi_json_count(e.nodes) == 0) {
        status = bwi_fail(r->k.ctx, BW_DATA_LOSS, "%s: %s is never used", r->k.path, r->k.what);
    }
    r->entries[r->count] = e;
    r->count += status == BW_OK;
    return status;
}

/* Does a layer that takes whole numbers take this input? All that take it must. */
static bw_status find_dtype(const graph_reader *r, const entry *input, bw_dtype *dtype)
{
    int indices = 0, others = 0;
    for (int i = 0; i < r->count; i++) {
        const char *class_name = bwi_json_text(bwi_json_get(r->entries[i].json, "class_name"));
        const bwi_layer_row *row = class_name ? find_row(class_name) : NULL;
        for (int n = 0; n < bwi_json_count(r->entries[i].nodes); n++) {
            const bwi_json *tensors = NULL, *node = bwi_json_at(r->entries[i].nodes, n);
            if (find_tensors(r, node, &tensors) != BW_OK) {
                return r->k.ctx->status;
            }
            for (int t = 0; t < bwi_json_count(tensors); t++) {
                const bwi_json *json = bwi_json_at(tensors, t);
                const bwi_json *history = bwi_json_get(bwi_json_get(json, "config"), "keras_history");
                const char *name = bwi_json_text(bwi_json_at(history ? history : json, 0));
                bool takes = name && strcmp(name, input->name) == 0;
                indices += takes && row && (row->flags & BWI_LAYER_INDICES);
                others += takes && !(row && (row->flags & BWI_LAYER_INDICES));
            }
        }
    }
    *dtype = indices ? BW_I32 : BW_F32;
    return indices && others ? bwi_fail(r->k.ctx, BW_UNIMPLEMENTED,
                                        "%s: input %s: both indices of an embedding and numbers of other layers are not offered",
                                        r->k.path, input->name)
                             : BW_OK;
}

static bw_status make_input(graph_reader *r, const bwi_json *reference)
{
    entry *e = find_entry(r, bwi_json_text(bwi_json_at(reference, 0)));
    if (!e || !is_input(e->json) || e->input >= 0) {
        return bwi_fail(r->k.ctx, BW_DATA_LOSS, "%s: an input of the model is no input layer, or is there twice", r->k.path);
    }
    const bwi_json *config = bwi_json_get(e->json, "config");
    bwi_shape shape;
    bw_dtype dtype = BW_F32;
    snprintf(r->k.what, sizeof r->k.what, "layer %s", e->name);
    bw_status status = check_input_options(&r->k, config);
    if (status == BW_OK) {
        status = read_shape(&r->k, shape_of(config), &shape);
    }
    if (status == BW_OK) {
        status = find_dtype(r, e, &dtype);
    }
    if (status == BW_OK) {
        bw_node *node = bw_input(r->model, e->name, dtype, shape.rank, shape.extent);
        status = node ? BW_OK : bwi_pending(r->k.ctx);
        e->input = r->model->input_count - 1;
        e->use[0] = r->model->use_count - 1;
    }
    return status;
}

static bw_status make_output(graph_reader *r, const bwi_json *reference)
{
    int use = -1;
    const char *name = bwi_json_text(bwi_json_at(reference, 0));
    snprintf(r->k.what, sizeof r->k.what, "an output of the model");
    bw_status status = read_tensor(r, reference, &use);
    if (status == BW_OK) {
        status = use >= 0 ? bw_output(r->model->uses[use].node, name) : fail_tensor(r);
    }
    return status;
}

/* ["x", 0, 0], a list of them, or an object of them. */
static bw_status for_each(graph_reader *r, const bwi_json *json, const char *what,
                          bw_status (*make)(graph_reader *, const bwi_json *))
{
    bw_status status = BW_OK;
    if (bwi_json_kind_of(json) != BWI_JSON_LIST || bwi_json_count(json) == 0) {
        return bwi_fail(r->k.ctx, bwi_json_kind_of(json) == BWI_JSON_OBJECT ? BW_UNIMPLEMENTED : BW_DATA_LOSS,
                        "%s: expected a list of the model's %s", r->k.path, what);
    }
    if (bwi_json_text(bwi_json_at(json, 0))) {
        return make(r, json);
    }
    for (int i = 0; i < bwi_json_count(json) && status == BW_OK; i++) {
        status = make(r, bwi_json_at(json, i));
    }
    return status;
}

static bw_status read_functional(graph_reader *r, const bwi_json *config)
{
    const bwi_json *layers = bwi_json_get(config, "layers");
    int count = bwi_json_count(layers);
    r->entries = bwi_allocate(r->k.ctx, (size_t)count, sizeof *r->entries);
    bw_status status = r->entries ? BW_OK : BW_RESOURCE_EXHAUSTED;
    for (int i = 0; i < count && status == BW_OK; i++) {
        status = read_entry(r, bwi_json_at(layers, i));
    }
    if (status == BW_OK) {
        status = sort_entries(r);
    }
    if (status == BW_OK) {
        status = for_each(r, bwi_json_get(config, "input_layers"), "inputs", make_input);
    }
    if (status == BW_OK) {
        status = make_uses(r);
    }
    if (status == BW_OK) {
        status = for_each(r, bwi_json_get(config, "output_layers"), "outputs", make_output);
    }
    bwi_release(r->k.ctx, (void *)r->sorted);
    bwi_release(r->k.ctx, r->entries);
    return status;
}

/* ---- Models ---- */

static bw_status read_model(bw_model **model, bwi_keras *k, const bwi_json *json)
{
    const char *class_name = bwi_json_text(bwi_json_get(json, "class_name"));
    const bwi_json *config = bwi_json_get(json, "config"), *trainable = bwi_json_get(config, "trainable");
    bool sequential = class_name && strcmp(class_name, "Sequential") == 0;
    bool functional = class_name && (strcmp(class_name, "Functional") == 0 || strcmp(class_name, "Model") == 0);
    bool frozen = bwi_json_kind_of(trainable) == BWI_JSON_BOOL && !bwi_json_true(trainable);
    char quoted[BWI_QUOTE_SIZE];
    if ((!sequential && !functional) || !bwi_keras_is_own(json)) {
        return bwi_fail(k->ctx, class_name ? BW_UNIMPLEMENTED : BW_DATA_LOSS,
                        "%s: expected a Sequential or Functional model, found %s", k->path,
                        class_name ? bwi_quote(quoted, class_name, strlen(class_name)) : "no class");
    }
    if (!bwi_keras_is_float32(bwi_json_get(config, "dtype"))) {
        return bwi_keras_refuse(k, "dtype", bwi_json_get(config, "dtype"));
    }
    if (bwi_json_count(bwi_json_get(config, "layers")) > LAYER_LIMIT) {
        return bwi_fail(k->ctx, BW_UNIMPLEMENTED, "%s: %d layers; at most %d are possible", k->path,
                        bwi_json_count(bwi_json_get(config, "layers")), LAYER_LIMIT);
    }
    *model = functional ? bw_model_new(k->ctx) : bwi_model_open(k->ctx);
    if (!*model) {
        return bwi_pending(k->ctx);
    }
    if (sequential) {
        return read_sequential(*model, k, json, frozen);
    }
    graph_reader r = {.k = *k, .model = *model, .frozen = frozen};
    return read_functional(&r, config);
}

bw_model *bwi_keras_read_model(bw_context *ctx, const char *path, const bwi_json *json)
{
    bwi_keras k = {.ctx = ctx, .path = path, .what = "model"};
    bw_model *model = NULL;
    if (read_model(&model, &k, json) != BW_OK) {
        bwi_disown(model);
        return bwi_pass_on(ctx);
    }
    return model;
}
