/*
 * Makes a model from Keras's configuration: a list of layers (Sequential) or a graph (Functional). A layer is found by its class in
 * the table of layers, and its options by their names there; an option that is not in the table must have the value that has no
 * effect. Everything else is refused with the layer's name.
 */
#include "file/internal.h"

#include <string.h>

/* ---- One layer ---- */

/* These options have no argument here: they are bookkeeping, or have no effect at the value given. */
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

/* A file may state an unsupported option as long as its value is the one at which it has no effect. */
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

const bwi_layer_row *bwi_keras_layer_row(const char *class_name)
{
    for (int i = 0; class_name && bwi_layer_rows[i]; i++) {
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
    };
    const char *class_name = bwi_json_text(bwi_json_get(layer, "class_name"));
    char quoted[BWI_QUOTE_SIZE];
    for (size_t i = 0; class_name && i < BWI_COUNT(known); i++) {
        if (strcmp(known[i].class_name, class_name) == 0) {
            return bwi_fail_file(k->ctx, BW_UNIMPLEMENTED, k->path, "%s %s", k->what, known[i].why);
        }
    }
    bwi_quote(quoted, class_name ? class_name : "", class_name ? strlen(class_name) : 0);
    return bwi_fail_file(k->ctx, BW_UNIMPLEMENTED, k->path, "%s: the class %s is %s", k->what, quoted,
                         class_name && !bwi_keras_is_own(layer) ? "custom, which is not supported" : "not supported");
}

bw_status bwi_keras_check_class(const bwi_keras *k, const bwi_json *layer)
{
    const char *class_name = bwi_json_text(bwi_json_get(layer, "class_name"));
    return bwi_keras_is_own(layer) && bwi_keras_layer_row(class_name) ? BW_OK : refuse_class(k, layer);
}

bool bwi_keras_is_nested(const bwi_json *layer)
{
    static const char *const models[] = {"Sequential", "Functional", "Model"};
    const char *class_name = bwi_json_text(bwi_json_get(layer, "class_name"));
    for (size_t i = 0; class_name && i < BWI_COUNT(models); i++) {
        if (strcmp(class_name, models[i]) == 0) {
            return bwi_keras_is_own(layer);
        }
    }
    return false;
}

/* Options that only this library has are stored beside Keras's. */
static bw_status add_own_options(const bwi_keras *k, const bwi_layer_row *row, const bwi_json *own, bwi_text *text)
{
    if (bwi_json_count(own) == 0) {
        return BW_OK;
    }
    bwi_text options = {.ctx = k->ctx};
    bw_status status = bwi_keras_call_text(k, "", own, row->arguments, row->argument_count, nothing_neutral, &options);
    if (status == BW_OK) {
        text->length--; /* drops the closing parenthesis */
        bwi_text_add(text, "%s%s", text->bytes[text->length - 1] == '(' ? "" : ",", options.bytes + 1);
    }
    bwi_text_free(&options);
    return status;
}

/* Appends a layer within another one as an argument of it. */
static bw_status add_inner(const bwi_keras *k, const char *key, const bwi_json *layer, bwi_text *text)
{
    if (bwi_json_kind_of(layer) == BWI_JSON_NULL || bwi_json_kind_of(layer) == BWI_JSON_MISSING) {
        return BW_OK;
    }
    text->length--; /* drops the closing parenthesis */
    bwi_text_add(text, "%s%s=", text->bytes[text->length - 1] == '(' ? "" : ",", key);
    bw_status status = bwi_keras_layer_text(k, layer, false, text);
    bwi_text_add(text, ")");
    return status;
}

/* The cells of a stack. */
static bw_status add_cells(const bwi_keras *k, const bwi_json *cells, bwi_text *text)
{
    bw_status status = BW_OK;
    for (int i = 0; i < bwi_json_count(cells) && status == BW_OK; i++) {
        text->length--; /* drops the closing parenthesis */
        bwi_text_add(text, "%s", text->bytes[text->length - 1] == '(' ? "" : ",");
        status = bwi_keras_layer_text(k, bwi_json_at(cells, i), false, text);
        bwi_text_add(text, ")");
    }
    return status;
}

/* The layer's own arguments; null is a merge mode of its own. */
static bw_status add_wrapper(const bwi_keras *k, const bwi_layer_row *row, const bwi_json *config, bwi_text *text)
{
    const bwi_json *mode = bwi_json_get(config, "merge_mode");
    bool merges = strcmp(row->class_name, "Bidirectional") == 0;
    bool none = merges && bwi_json_kind_of(mode) == BWI_JSON_NULL;
    const char *word = none ? "none" : bwi_json_text(mode);
    bw_status status = add_inner(k, "layer", bwi_json_get(config, "layer"), text);
    if (status == BW_OK) {
        status = add_inner(k, "cell", bwi_json_get(config, "cell"), text);
    }
    if (status == BW_OK) {
        status = add_cells(k, bwi_json_get(config, "cells"), text);
    }
    if (status == BW_OK) {
        status = add_inner(k, "backward_layer", bwi_json_get(config, "backward_layer"), text);
    }
    if (status == BW_OK && merges && word) {
        text->length--;
        bwi_text_add(text, "%smerge_mode=%s)", text->bytes[text->length - 1] == '(' ? "" : ",", word);
    }
    return status;
}

static bool of_front(const char *key, const bwi_json *value)
{
    static const bwi_layer_row any = {.flags = BWI_LAYER_FRONT};
    return bwi_front_is_key(&any, key) || neutral(key, value);
}

static bool of_wrapper(const char *key, const bwi_json *value)
{
    return strcmp(key, "layer") == 0 || strcmp(key, "cell") == 0 || strcmp(key, "backward_layer") == 0 ||
           strcmp(key, "cells") == 0 || strcmp(key, "merge_mode") == 0 || neutral(key, value);
}

/* Writes the layer as it would appear in an expression. */
bw_status bwi_keras_layer_text(const bwi_keras *k, const bwi_json *layer, bool frozen, bwi_text *text)
{
    const char *class_name = bwi_json_text(bwi_json_get(layer, "class_name"));
    const bwi_json *config = bwi_json_get(layer, "config"), *trainable = bwi_json_get(config, "trainable");
    const bwi_layer_row *row = bwi_keras_is_own(layer) ? bwi_keras_layer_row(class_name) : NULL;
    if (!row) {
        return refuse_class(k, layer);
    }
    char name[64];
    snprintf(name, sizeof name, "%.*s", (int)strcspn(row->names, " "), row->names);
    bool wraps = row->flags & BWI_LAYER_WRAPS;
    bool merges = strcmp(row->class_name, "Bidirectional") == 0; /* add_wrapper reads its argument */
    bw_status status =
        wraps ? bwi_keras_call_text(k, name, config, row->arguments, merges ? 0 : row->argument_count, of_wrapper, text)
              : bwi_keras_call_text(k, name, config, row->arguments, row->argument_count,
                                    bwi_layer_front_kind(row) ? of_front : neutral, text);
    if (status == BW_OK && wraps) {
        status = add_wrapper(k, row, config, text);
    }
    if (status == BW_OK) {
        status = add_own_options(k, row, bwi_json_get(layer, "batchwise"), text);
    }
    if (status == BW_OK && (frozen || (bwi_json_kind_of(trainable) == BWI_JSON_BOOL && !bwi_json_true(trainable)))) {
        text->length--;
        bwi_text_add(text, "%strainable=false)", text->bytes[text->length - 1] == '(' ? "" : ",");
    }
    return status == BW_OK && text->failed ? BW_RESOURCE_EXHAUSTED : status;
}

const char *bwi_keras_layer_name(const bwi_json *layer)
{
    const char *name = bwi_json_text(bwi_json_get(bwi_json_get(layer, "config"), "name"));
    return name ? name : bwi_json_text(bwi_json_get(layer, "name"));
}

const bwi_json *bwi_keras_layers_of(const bwi_json *config)
{
    return bwi_json_kind_of(config) == BWI_JSON_LIST ? config : bwi_json_get(config, "layers");
}

/* Keras allows no slashes in names. */
bw_status bwi_keras_check_name(bwi_keras *k, const char *name)
{
    char quoted[BWI_QUOTE_SIZE], local[BWI_LOCAL_NAME];
    if (!name || !name[0] || strchr(name, '/')) {
        return bwi_fail_file(k->ctx, BW_DATA_LOSS, k->path, "layer %s: expected a name without slashes",
                             bwi_quote(quoted, name ? name : "", name ? strlen(name) : 0));
    }
    bwi_keras_local_name(local, "", name);
    snprintf(k->what, sizeof k->what, "layer %s", local);
    return BW_OK;
}

/* Returns the length in bytes of a character that a terminal would obey, or that changes the direction of text: controls, U+0080
 * to U+009F, U+200E, U+200F, U+202A to U+202E, U+2066 to U+2069. 0: the character is harmless. */
static int unprintable(const char *at)
{
    const unsigned char *c = (const unsigned char *)at;
    if (c[0] < 0x20 || c[0] == 0x7f || c[0] == '"') {
        return 1;
    }
    if (c[0] == 0xC2 && c[1] >= 0x80 && c[1] < 0xA0) {
        return 2;
    }
    bool general = c[0] == 0xE2 && c[1] == 0x80 && (c[2] == 0x8E || c[2] == 0x8F || (c[2] >= 0xAA && c[2] <= 0xAE));
    return general || (c[0] == 0xE2 && c[1] == 0x81 && c[2] >= 0xA6 && c[2] <= 0xA9) ? 3 : 0;
}

/* Names appear in messages, terminals, fields of data and expressions, so they are made safe here. When the model is written,
 * its file has the original names. */
void bwi_keras_local_name(char local[BWI_LOCAL_NAME], const char *prefix, const char *name)
{
    enum { CUT = BWI_LOCAL_NAME - 18 };
    size_t length = (size_t)snprintf(local, BWI_LOCAL_NAME, "%s", prefix);
    bool changed = length >= BWI_LOCAL_NAME;
    length = changed ? BWI_LOCAL_NAME - 1 : length;
    for (const char *at = name; *at;) {
        int skipped = unprintable(at);
        changed = changed || skipped || length + 1 >= BWI_LOCAL_NAME;
        if (length + 1 < BWI_LOCAL_NAME) {
            local[length++] = skipped ? '_' : *at;
        }
        at += skipped ? skipped : 1;
    }
    local[length] = 0;
    if (changed) {
        uint64_t hash = bwi_hash(bwi_hash(1, prefix, strlen(prefix)), name, strlen(name));
        length = length < CUT ? length : CUT;
        while (length > 0 && ((unsigned char)local[length] & 0xC0) == 0x80) {
            length--;
        }
        snprintf(local + length, BWI_LOCAL_NAME - length, "~%016llx", (unsigned long long)hash);
    }
}

/* ---- Shapes ---- */

/* Reads the extents that follow the batch in [null, 28, 28, 1]. */
bw_status bwi_keras_input_shape(const bwi_keras *k, const bwi_json *list, bwi_shape *shape)
{
    int count = bwi_json_count(list);
    if (bwi_json_kind_of(list) != BWI_JSON_LIST || count < 1 || count > BW_MAX_NDIM) {
        return bwi_fail_file(k->ctx, BW_DATA_LOSS, k->path, "%s: expected an input shape of 1 to %d extents", k->what, BW_MAX_NDIM);
    }
    shape->ndim = count - 1;
    for (int i = 1; i < count; i++) {
        if (bwi_json_kind_of(bwi_json_at(list, i)) == BWI_JSON_NULL) {
            return bwi_fail_file(k->ctx, BW_UNIMPLEMENTED, k->path,
                                 "%s: inputs of any length (null in the shape) are not supported", k->what);
        }
        if (!bwi_json_whole(bwi_json_at(list, i), &shape->extent[i - 1]) || shape->extent[i - 1] < 1) {
            return bwi_fail_file(k->ctx, BW_DATA_LOSS, k->path,
                                 "%s: extent %d of the input shape is not a whole number of 1 or more", k->what, i);
        }
    }
    return BW_OK;
}

bool bwi_keras_is_input(const bwi_json *layer)
{
    const char *class_name = bwi_json_text(bwi_json_get(layer, "class_name"));
    return class_name && strcmp(class_name, "InputLayer") == 0 && bwi_keras_is_own(layer);
}

const bwi_json *bwi_keras_shape_of(const bwi_json *config)
{
    const bwi_json *shape = bwi_json_get(config, "batch_shape");
    return bwi_json_kind_of(shape) == BWI_JSON_LIST ? shape : bwi_json_get(config, "batch_input_shape");
}

bool bwi_keras_is_text(const bwi_json *config)
{
    const char *dtype = bwi_json_text(bwi_json_get(config, "dtype"));
    return dtype && strcmp(dtype, "string") == 0;
}

bw_status bwi_keras_check_input(const bwi_keras *k, const bwi_json *config)
{
    static const char *const refused[] = {"sparse", "ragged", "optional"};
    for (size_t i = 0; i < BWI_COUNT(refused); i++) {
        if (bwi_json_true(bwi_json_get(config, refused[i]))) {
            return bwi_keras_refuse(k, refused[i], bwi_json_get(config, refused[i]));
        }
    }
    const char *dtype = bwi_json_text(bwi_json_get(config, "dtype"));
    if (dtype && strncmp(dtype, "complex", 7) == 0) {
        return bwi_keras_refuse(k, "dtype", bwi_json_get(config, "dtype"));
    }
    return BW_OK;
}

/* ---- Sequential ---- */

/* The layer is read from the text of an expression; lists that only a front has come from the configuration itself. */
static bw_status add_listed(bw_model *model, const bwi_keras *k, const bwi_json *json, bool frozen)
{
    bwi_text text = {.ctx = model->ctx};
    bwi_expression e;
    bwi_layer *layer = &model->layers[model->layer_count];
    bw_status status = bwi_keras_layer_text(k, json, frozen, &text);
    if (status == BW_OK) {
        status = bwi_term_parse(model->ctx, &e, "layer", text.bytes);
    }
    if (status == BW_OK) {
        status = bwi_layer_read(model, layer, &e.terms[0]);
        bwi_expression_free(&e);
    }
    bwi_text_free(&text);
    if (status == BW_OK) {
        status = bwi_front_take_config(k, layer, bwi_json_get(json, "config"));
    }
    if (status != BW_OK) {
        return status;
    }
    bwi_keras_local_name(layer->name, "", bwi_keras_layer_name(json));
    layer->inputs = 1;
    layer->input[0] = model->layer_count++ - 1;
    return BW_OK;
}

static bool name_is_taken(const bw_model *model, const char *name)
{
    char local[BWI_LOCAL_NAME];
    bwi_keras_local_name(local, "", name);
    for (int i = 0; i < model->layer_count; i++) {
        if (strcmp(model->layers[i].name, local) == 0) {
            return true;
        }
    }
    return false;
}

/* Text is for a layer that takes it. */
static bw_status check_input(const bwi_keras *k, const bwi_json *layers, const bwi_json *config)
{
    const char *next = bwi_json_text(bwi_json_get(bwi_json_at(layers, 1), "class_name"));
    const bwi_layer_row *row = bwi_keras_layer_row(next);
    bool refused = bwi_keras_is_text(config) && !(row && bwi_layer_front_kind(row));
    return refused ? bwi_keras_refuse(k, "dtype", bwi_json_get(config, "dtype")) : bwi_keras_check_input(k, config);
}

static bw_status read_list(bw_model *model, bwi_keras *k, const bwi_json *layers, bool frozen)
{
    bw_status status = BW_OK;
    for (int i = 0; i < bwi_json_count(layers) && status == BW_OK; i++) {
        const bwi_json *layer = bwi_json_at(layers, i), *config = bwi_json_get(layer, "config");
        const char *name = bwi_keras_layer_name(layer);
        status = bwi_keras_check_name(k, name);
        if (status == BW_OK && i == 0 && bwi_json_kind_of(bwi_keras_shape_of(config)) == BWI_JSON_LIST) {
            status = bwi_keras_input_shape(k, bwi_keras_shape_of(config), &model->input_shape);
        }
        if (status == BW_OK && bwi_keras_is_input(layer)) {
            model->input_text = bwi_keras_is_text(config);
            status = i == 0 ? check_input(k, layers, config)
                            : bwi_fail_file(k->ctx, BW_DATA_LOSS, k->path, "%s: an input follows other layers", k->what);
        } else if (status == BW_OK && name_is_taken(model, name)) {
            status = bwi_fail_file(k->ctx, BW_DATA_LOSS, k->path, "%s appears twice", k->what);
        } else if (status == BW_OK) {
            status = add_listed(model, k, layer, frozen);
        }
    }
    return status;
}

/* Keras's version decides where the input's shape is found: in the first layer, in the model's config, or beside it. */
static bw_status read_sequential(bw_model *model, bwi_keras *k, const bwi_json *json, bool frozen)
{
    const bwi_json *config = bwi_json_get(json, "config");
    const bwi_json *layers = bwi_keras_layers_of(config);
    const bwi_json *shape = bwi_json_get(config, "build_input_shape");
    if (bwi_json_kind_of(shape) != BWI_JSON_LIST) {
        shape = bwi_json_get(bwi_json_get(json, "build_config"), "input_shape");
    }
    model->layers = bwi_allocate(k->ctx, (size_t)bwi_json_count(layers), sizeof *model->layers);
    if (!model->layers) {
        return BW_RESOURCE_EXHAUSTED;
    }
    bw_status status = read_list(model, k, layers, frozen);
    if (status == BW_OK && model->input_shape.ndim < 0 && bwi_json_kind_of(shape) == BWI_JSON_LIST) {
        status = bwi_keras_input_shape(k, shape, &model->input_shape);
    }
    if (status == BW_OK && model->layer_count == 0) {
        status = bwi_fail_file(k->ctx, BW_DATA_LOSS, k->path, "the model has no layers");
    }
    if (status == BW_OK && model->input_shape.ndim >= 0) {
        status = bwi_model_connect(model, model->input_shape.ndim, model->input_shape.extent);
    }
    return status;
}

/* ---- Models ---- */

/* Reads the names of outputs that differ from their layers' names. */
static bw_status read_output_names(bw_model *model, const bwi_keras *k, const bwi_json *names)
{
    for (int i = 0; i < bwi_json_count(names) && i < model->output_count; i++) {
        const char *name = bwi_json_text(bwi_json_at(names, i));
        if (!name || !name[0]) {
            return bwi_fail_file(k->ctx, BW_DATA_LOSS, k->path, "batchwise: the name of output %d is not a word", i);
        }
        bwi_keras_local_name(model->output_names[i], "", name);
    }
    return BW_OK;
}

static bool any_nested(const bwi_json *layers)
{
    for (int i = 0; i < bwi_json_count(layers); i++) {
        if (bwi_keras_is_nested(bwi_json_at(layers, i))) {
            return true;
        }
    }
    return false;
}

/* Custom classes are unknown here, and types other than float32 would predict other numbers. Both are refused before anything is
 * built. */
static bw_status read_model(bw_model **model, bwi_keras *k, const bwi_json *json)
{
    const char *class_name = bwi_json_text(bwi_json_get(json, "class_name"));
    const bwi_json *config = bwi_json_get(json, "config"), *trainable = bwi_json_get(config, "trainable");
    bool sequential = class_name && strcmp(class_name, "Sequential") == 0;
    bool functional = class_name && (strcmp(class_name, "Functional") == 0 || strcmp(class_name, "Model") == 0);
    bool frozen = bwi_json_kind_of(trainable) == BWI_JSON_BOOL && !bwi_json_true(trainable);
    char quoted[BWI_QUOTE_SIZE];
    if ((!sequential && !functional) || !bwi_keras_is_own(json)) {
        return bwi_fail_file(k->ctx, class_name ? BW_UNIMPLEMENTED : BW_DATA_LOSS, k->path,
                             "expected a Sequential or Functional model, found %s",
                             class_name ? bwi_quote(quoted, class_name, strlen(class_name)) : "no class");
    }
    if (!bwi_keras_is_float32(bwi_json_get(config, "dtype"))) {
        return bwi_keras_refuse(k, "dtype", bwi_json_get(config, "dtype"));
    }
    const bwi_json *layers = bwi_keras_layers_of(config);
    bool graph = functional || any_nested(layers);
    if (bwi_json_count(layers) > BWI_MOST_LAYERS) {
        return bwi_fail_file(k->ctx, BW_UNIMPLEMENTED, k->path, "%d layers; at most %d are possible", bwi_json_count(layers),
                             BWI_MOST_LAYERS);
    }
    *model = graph ? bw_model_new(k->ctx) : bwi_model_open(k->ctx);
    if (!*model) {
        return bwi_pending(k->ctx);
    }
    const char *name = bwi_json_text(bwi_json_get(config, "name"));
    char local[BWI_LOCAL_NAME];
    bwi_keras_local_name(local, "", name ? name : "");
    (*model)->name = name ? bwi_copy_text(k->ctx, local) : NULL;
    if (name && !(*model)->name) {
        return BW_RESOURCE_EXHAUSTED;
    }
    if (!graph) {
        return read_sequential(*model, k, json, frozen);
    }
    bw_status status = bwi_keras_read_graph(*model, k, json, frozen);
    return status == BW_OK ? read_output_names(*model, k, bwi_json_get(bwi_json_get(json, "batchwise"), "outputs")) : status;
}

/* ---- The configuration as it was ---- */

/* Writes a tree of values as text again. Recursion is safe, because the depth was bounded when the tree was read. */
static void put_json(bwi_json_writer *w, const char *key, const bwi_json *value)
{
    int64_t whole = 0;
    double number = 0;
    const char *member = NULL;
    switch (bwi_json_kind_of(value)) {
    case BWI_JSON_OBJECT:
        bwi_json_begin(w, key, '{');
        for (const bwi_json *one; (one = bwi_json_next(value, &member));) {
            put_json(w, member, one);
        }
        bwi_json_end(w);
        break;
    case BWI_JSON_LIST:
        bwi_json_begin(w, key, '[');
        for (int i = 0; i < bwi_json_count(value); i++) {
            put_json(w, NULL, bwi_json_at(value, i));
        }
        bwi_json_end(w);
        break;
    case BWI_JSON_TEXT:
        bwi_json_put_text(w, key, bwi_json_text(value));
        break;
    case BWI_JSON_WHOLE:
        bwi_json_whole(value, &whole);
        bwi_json_put_whole(w, key, whole);
        break;
    case BWI_JSON_REAL:
        bwi_json_number(value, &number);
        bwi_json_put_real(w, key, number);
        break;
    case BWI_JSON_BOOL:
        bwi_json_put_bool(w, key, bwi_json_true(value));
        break;
    case BWI_JSON_NULL:
    case BWI_JSON_MISSING:
        bwi_json_put_null(w, key);
        break;
    }
}

/* Whether only the configuration knows what a file must say: nested models, or names that are too long here. */
static bool is_only_in_config(const bwi_json *layers)
{
    for (int i = 0; i < bwi_json_count(layers); i++) {
        char local[BWI_LOCAL_NAME];
        const char *name = bwi_keras_layer_name(bwi_json_at(layers, i));
        bwi_keras_local_name(local, "", name ? name : "");
        if (bwi_keras_is_nested(bwi_json_at(layers, i)) || (name && strcmp(local, name) != 0)) {
            return true;
        }
    }
    return false;
}

/* Original names, nested models and operators are kept only in this text, so it is written exactly as it was read. The older files,
 * whose objects have no modules, are written from scratch where that loses nothing, and so are lists of layers without an input
 * shape. If it would, Keras needs to know the module of the model; it finds those of the layers. */
static bw_status keep_config(bw_model *model, const bwi_json *json)
{
    bwi_json_writer w = {.text = {.ctx = model->ctx}};
    const char *key = NULL;
    bool older = !bwi_json_text(bwi_json_get(json, "module"));
    if (model->output_count == 0 || (older && !is_only_in_config(bwi_keras_layers_of(bwi_json_get(json, "config"))))) {
        return BW_OK;
    }
    bwi_json_begin(&w, NULL, '{');
    if (older) {
        const char *class_name = bwi_json_text(bwi_json_get(json, "class_name"));
        bwi_json_put_text(&w, "module", strcmp(class_name, "Functional") == 0 ? "keras.src.models.functional" : "keras");
        bwi_json_put_null(&w, "registered_name");
    }
    for (const bwi_json *value; (value = bwi_json_next(json, &key));) {
        if (strcmp(key, "compile_config") != 0) {
            put_json(&w, key, value);
        }
    }
    model->config = w.text.bytes; /* without the closing brace, since compile_config follows */
    return w.text.failed ? BW_RESOURCE_EXHAUSTED : BW_OK;
}

bw_model *bwi_keras_read_model(bw_context *ctx, const char *path, const bwi_json *json)
{
    bwi_keras k = {.ctx = ctx, .path = path, .what = "model"};
    bw_model *model = NULL;
    if (read_model(&model, &k, json) != BW_OK || keep_config(model, json) != BW_OK) {
        bwi_disown(model);
        return bwi_pass_on(ctx);
    }
    return model;
}
