/*
 * What layers for text and categories keep in Keras's files: a vocabulary that was fitted as
 * assets/layers/<class>[_n]/vocabulary.txt, a token on each line, the special ones first; one that was given in the configuration;
 * weights of tf-idf beside the model's. Keras breaks these lines wherever Python's splitlines does, so that a vocabulary with such
 * a character in a token goes into the configuration.
 */
#include "file/export.h"

#include <string.h>

enum { VOCABULARY_LIMIT = 1 << 28, TOKEN_LIMIT = 1 << 26 };

static bool is_text_layer(const bwi_layer *layer)
{
    return bwi_front_settings_of(layer->front)->kind == BWI_FRONT_TEXT;
}

static bool has_vocabulary(const bwi_layer *layer)
{
    return layer->front && bwi_front_settings_of(layer->front)->kind <= BWI_FRONT_INTEGERS;
}

/* ---- Places ---- */

bool bwi_front_group(const bwi_wiring *w, int layer, char path[BWI_GROUP_BYTES])
{
    const bw_model *model = w->model;
    const char *name = model->layers[layer].row->base_name;
    int same = 0;
    for (int i = 0; i < model->stored_count; i++) {
        if (model->stored[i].layer == layer) {
            snprintf(path, BWI_GROUP_BYTES, "%s", model->stored[i].path);
            return true;
        }
    }
    for (int i = 0; i < w->order_count; i++) {
        int other = w->order[i];
        if (other == layer && same) {
            snprintf(path, BWI_GROUP_BYTES, "layers/%s_%d", name, same);
        } else if (other == layer) {
            snprintf(path, BWI_GROUP_BYTES, "layers/%s", name);
        }
        if (other == layer) {
            return true;
        }
        same += other < model->layer_count && model->layers[other].row == model->layers[layer].row;
    }
    return false;
}

int bwi_front_weights(const bwi_wiring *w, bwi_front_weight weights[2 * BWI_MOST_FRONTS])
{
    const bw_model *model = w->model;
    int count = 0;
    for (int i = 0; i < model->layer_count; i++) {
        const bwi_layer *layer = &model->layers[i];
        char group[BWI_GROUP_BYTES];
        if (!layer->front || bwi_front_settings_of(layer->front)->mode != BWI_MODE_TF_IDF || !bwi_front_group(w, i, group) ||
            count + 2 > 2 * BWI_MOST_FRONTS) {
            continue;
        }
        for (int k = 0; k < 1 + is_text_layer(layer); k++) {
            bwi_front_weight *one = &weights[count++];
            one->front = layer->front;
            bwi_front_idf(layer->front, &one->shape[0]);
            snprintf(one->path, sizeof one->path, "%s%s/vars/idf_weights", group, k ? "/_lookup_layer" : "");
        }
    }
    return count;
}

bool bwi_front_is_weight(const char *name)
{
    static const char end[] = "/vars/idf_weights";
    size_t length = strlen(name);
    return length > sizeof end - 1 && strcmp(name + length - (sizeof end - 1), end) == 0;
}

/* ---- The configuration ---- */

bool bwi_front_is_key(const bwi_layer_row *row, const char *key)
{
    return bwi_layer_front_kind(row) &&
           (strcmp(key, "vocabulary") == 0 || strcmp(key, "idf_weights") == 0 || strcmp(key, "bin_boundaries") == 0 ||
            strcmp(key, "dtype") == 0 || strcmp(key, "has_input_vocabulary") == 0);
}

static bw_status read_numbers(const bwi_keras *k, const char *key, const bwi_json *list, float **numbers, int64_t *count)
{
    *count = bwi_json_count(list);
    *numbers = bwi_allocate(k->ctx, (size_t)*count + 1, sizeof **numbers);
    if (!*numbers) {
        return BW_RESOURCE_EXHAUSTED;
    }
    for (int i = 0; i < *count; i++) {
        double number;
        if (!bwi_json_number(bwi_json_at(list, i), &number)) {
            return bwi_keras_refuse(k, key, list);
        }
        (*numbers)[i] = (float)number;
    }
    return BW_OK;
}

/* Tokens of integers are written as numbers; here all are texts. */
static bw_status read_tokens(const bwi_keras *k, const bwi_json *list, bw_text **tokens, char (**digits)[24])
{
    int count = bwi_json_count(list);
    *tokens = bwi_allocate(k->ctx, (size_t)count + 1, sizeof **tokens);
    *digits = bwi_allocate(k->ctx, (size_t)count + 1, sizeof **digits);
    if (!*tokens || !*digits) {
        return BW_RESOURCE_EXHAUSTED;
    }
    for (int i = 0; i < count; i++) {
        const bwi_json *item = bwi_json_at(list, i);
        const char *text = bwi_json_text(item);
        int64_t whole;
        if (!text && bwi_json_whole(item, &whole)) {
            snprintf((*digits)[i], sizeof(*digits)[i], "%lld", (long long)whole);
            text = (*digits)[i];
        }
        if (!text) {
            return bwi_keras_refuse(k, "vocabulary", list);
        }
        (*tokens)[i] = (bw_text){.bytes = text, .size = (int64_t)strlen(text)};
    }
    return BW_OK;
}

/* Boundaries beside num_bins were fitted, and may be again; those alone were given. */
bw_status bwi_front_take_config(const bwi_keras *k, const bwi_layer *layer, const bwi_json *config)
{
    const bwi_json *vocabulary = bwi_json_get(config, "vocabulary"), *idf = bwi_json_get(config, "idf_weights"),
                   *boundaries = bwi_json_get(config, "bin_boundaries");
    bw_text *tokens = NULL;
    char(*digits)[24] = NULL;
    float *numbers = NULL;
    int64_t count = 0;
    bw_status status = BW_OK;
    if (!layer->front) {
        return BW_OK;
    }
    if (bwi_json_text(vocabulary)) {
        return bwi_keras_refuse(k, "vocabulary", vocabulary);
    }
    if (bwi_json_count(vocabulary) > 0) {
        status = read_tokens(k, vocabulary, &tokens, &digits);
        if (status == BW_OK && bwi_json_count(idf) > 0) {
            status = read_numbers(k, "idf_weights", idf, &numbers, &count);
        }
        if (status == BW_OK && numbers && count != bwi_json_count(vocabulary)) {
            status = bwi_keras_refuse(k, "idf_weights", idf);
        }
        if (status == BW_OK) {
            status = bwi_front_set_tokens(layer->front, tokens, bwi_json_count(vocabulary), numbers, k->what);
            bwi_front_set_given(layer->front);
        }
    } else if (bwi_json_count(boundaries) > 0) {
        int64_t bins;
        status = read_numbers(k, "bin_boundaries", boundaries, &numbers, &count);
        status = status == BW_OK ? bwi_front_set_boundaries(layer->front, numbers, count, k->what) : status;
        if (!bwi_json_whole(bwi_json_get(config, "num_bins"), &bins)) {
            bwi_front_set_given(layer->front);
        }
    }
    bwi_release(k->ctx, tokens);
    bwi_release(k->ctx, digits);
    bwi_release(k->ctx, numbers);
    return status;
}

/* Whether Python's splitlines breaks a text somewhere: at controls, U+0085, U+2028 and U+2029. */
static bool breaks(bw_text text)
{
    for (int64_t i = 0; i < text.size; i++) {
        unsigned char c = (unsigned char)text.bytes[i];
        unsigned char next = i + 1 < text.size ? (unsigned char)text.bytes[i + 1] : 0,
                      last = i + 2 < text.size ? (unsigned char)text.bytes[i + 2] : 0;
        if ((c >= 10 && c <= 13) || (c >= 0x1c && c <= 0x1e) || (c == 0xC2 && next == 0x85) ||
            (c == 0xE2 && next == 0x80 && (last == 0xA8 || last == 0xA9)) || c == 0) {
            return true;
        }
    }
    return false;
}

/* Whether the vocabulary is part of the configuration. */
static bool is_in_config(const bwi_layer *layer)
{
    bool inside = bwi_front_is_given(layer->front);
    for (int64_t i = 0; i < bwi_front_token_count(layer->front) && !inside && bwi_front_is_fitted(layer->front); i++) {
        inside = breaks(bwi_front_token(layer->front, i));
    }
    return inside;
}

static void put_numbers(bwi_json_writer *w, const char *key, const float *numbers, int64_t count)
{
    bwi_json_begin(w, key, '[');
    for (int64_t i = 0; i < count; i++) {
        bwi_json_put_real(w, NULL, (double)numbers[i]);
    }
    bwi_json_end(w);
}

/* vocabulary_size is stated, since Keras needs it for the length of vectors before it reads the vocabulary. */
bw_status bwi_front_put_config(bw_context *ctx, bwi_json_writer *w, const bwi_layer *layer)
{
    const bwi_front_settings *set = bwi_front_settings_of(layer->front);
    int64_t count = 0;
    const float *numbers;
    if (set->kind == BWI_FRONT_INTEGERS) {
        int64_t token = -1;
        bwi_parse_int(set->oov_token, set->oov_token + strlen(set->oov_token), &token);
        bwi_json_put_whole(w, "oov_token", token);
    } else if (set->kind == BWI_FRONT_STRINGS) {
        bwi_json_put_text(w, "oov_token", set->oov_token);
    }
    if (!bwi_front_is_fitted(layer->front)) {
        return BW_OK;
    }
    if (set->kind == BWI_FRONT_DISCRETIZATION) {
        numbers = bwi_front_boundaries(layer->front, &count);
        put_numbers(w, "bin_boundaries", numbers, count);
        return BW_OK;
    }
    if (!has_vocabulary(layer)) {
        return BW_OK;
    }
    bwi_json_put_whole(w, "vocabulary_size", bwi_front_token_count(layer->front));
    if (!is_in_config(layer)) {
        bwi_json_put_null(w, "vocabulary");
        bwi_json_put_null(w, "idf_weights");
        return BW_OK;
    }
    bwi_json_begin(w, "vocabulary", '[');
    for (int64_t i = 0; i < bwi_front_token_count(layer->front); i++) {
        bw_text text = bwi_front_token(layer->front, i);
        char *copy = bwi_allocate(ctx, (size_t)text.size + 1, 1);
        if (!copy) {
            return BW_RESOURCE_EXHAUSTED;
        }
        memcpy(copy, text.bytes, (size_t)text.size);
        if (set->kind == BWI_FRONT_INTEGERS) {
            int64_t whole = 0;
            bwi_parse_int(copy, copy + text.size, &whole);
            bwi_json_put_whole(w, NULL, whole);
        } else {
            bwi_json_put_text(w, NULL, copy);
        }
        bwi_release(ctx, copy);
    }
    bwi_json_end(w);
    numbers = bwi_front_idf(layer->front, &count);
    count = count < bwi_front_token_count(layer->front) ? count : bwi_front_token_count(layer->front);
    if (numbers) {
        put_numbers(w, "idf_weights", numbers, count);
    } else {
        bwi_json_put_null(w, "idf_weights");
    }
    return BW_OK;
}

/* ---- Assets ---- */

static bw_status put_asset(const bwi_layer *layer, const char *path, bwi_zip_out *zip)
{
    int64_t count = bwi_front_token_count(layer->front);
    size_t size = (size_t)(count > 0 ? count - 1 : 0);
    for (int64_t i = 0; i < count; i++) {
        size = bwi_size_add(size, (size_t)bwi_front_token(layer->front, i).size);
    }
    bw_status status = bwi_zip_out_begin(zip, path, size);
    for (int64_t i = 0; i < count && status == BW_OK; i++) {
        bw_text text = bwi_front_token(layer->front, i);
        status = i > 0 ? bwi_zip_out_put(zip, "\n", 1) : BW_OK;
        status = status == BW_OK && text.size > 0 ? bwi_zip_out_put(zip, text.bytes, (size_t)text.size) : status;
    }
    return status == BW_OK ? bwi_zip_out_end(zip) : status;
}

bw_status bwi_fronts_put_assets(const bwi_wiring *w, bwi_zip_out *zip)
{
    const bw_model *model = w->model;
    bw_status status = BW_OK;
    for (int i = 0; i < model->layer_count && status == BW_OK; i++) {
        const bwi_layer *layer = &model->layers[i];
        char group[BWI_GROUP_BYTES], path[BWI_GROUP_BYTES + 64];
        if (!has_vocabulary(layer) || !bwi_front_is_fitted(layer->front) || is_in_config(layer) || !bwi_front_group(w, i, group)) {
            continue;
        }
        for (int k = is_text_layer(layer); k >= 0 && status == BW_OK; k--) {
            snprintf(path, sizeof path, "assets/%s%s/vocabulary.txt", group, k ? "/_lookup_layer" : "");
            status = put_asset(layer, path, zip);
        }
    }
    return status;
}

/* The end of the line at `at`, and the length of what breaks it. */
static int64_t line_end(const char *bytes, int64_t at, int64_t size, int64_t *broken)
{
    for (; at < size; at++) {
        int64_t left = size - at;
        *broken = left > 1 && memcmp(bytes + at, "\r\n", 2) == 0                                     ? 2
                  : breaks((bw_text){bytes + at, 1})                                                 ? 1
                  : left > 1 && (unsigned char)bytes[at] == 0xC2 && breaks((bw_text){bytes + at, 2}) ? 2
                  : left > 2 && (unsigned char)bytes[at] == 0xE2 && breaks((bw_text){bytes + at, 3}) ? 3
                                                                                                     : 0;
        if (*broken) {
            return at;
        }
    }
    *broken = 0;
    return size;
}

/* Cuts the lines as Keras does; empty ones at the end do not count. */
static bw_status take_lines(const bw_model *model, const bwi_layer *layer, const char *path, const char *bytes, int64_t size)
{
    bw_context *ctx = model->ctx;
    int64_t count = 0, capacity = 0;
    bw_text *tokens = NULL;
    bw_status status = BW_OK;
    for (int64_t at = 0; at < size && status == BW_OK;) {
        int64_t broken, end = line_end(bytes, at, size, &broken);
        if (count == capacity) {
            int64_t larger = 2 * capacity + 256;
            bw_text *grown = count < TOKEN_LIMIT ? bwi_grow(ctx, tokens, (size_t)count, (size_t)larger, sizeof *grown) : NULL;
            status = grown ? BW_OK : BW_RESOURCE_EXHAUSTED;
            tokens = grown ? grown : tokens;
            capacity = larger;
        }
        if (status == BW_OK) {
            tokens[count++] = (bw_text){.bytes = bytes + at, .size = end - at};
        }
        at = end + broken;
    }
    while (count > 0 && tokens[count - 1].size == 0) {
        count--;
    }
    if (status == BW_OK) {
        status = bwi_front_set_tokens(layer->front, tokens, count, NULL, path);
    }
    bwi_release(ctx, tokens);
    return status;
}

bw_status bwi_fronts_read_assets(bw_model *model, const bwi_wiring *w, bwi_zip *zip, const char *path, bwi_member_reader *member)
{
    bw_status status = BW_OK;
    for (int i = 0; i < model->layer_count && status == BW_OK; i++) {
        const bwi_layer *layer = &model->layers[i];
        char group[BWI_GROUP_BYTES], name[BWI_GROUP_BYTES + 64];
        bwi_bytes bytes = {.size = 0};
        void *copy = NULL;
        if (!has_vocabulary(layer) || bwi_front_is_fitted(layer->front) || !bwi_front_group(w, i, group)) {
            continue;
        }
        snprintf(name, sizeof name, "assets/%s/vocabulary.txt", group);
        status = member(model->ctx, zip, path, name, VOCABULARY_LIMIT, &bytes, &copy);
        if (status == BW_OK && bytes.data) {
            char what[512];
            snprintf(what, sizeof what, "%.200s: %.300s", path, name);
            status = take_lines(model, layer, what, (const char *)bytes.data, (int64_t)bytes.size);
        }
        bwi_release(model->ctx, copy);
    }
    return status;
}

/* ---- Exports ---- */

/* Writes a vocabulary beside an exported model: a token on each line, whose number, from 0, is its index. */
static bw_status write_vocabulary(const bw_model *model, const bwi_layer *layer, const char *path)
{
    bw_context *ctx = model->ctx;
    bwi_text name = {.ctx = ctx};
    int64_t count = bwi_front_token_count(layer->front);
    size_t size = 0;
    for (int64_t i = 0; i < count; i++) {
        size = bwi_size_add(size, (size_t)bwi_front_token(layer->front, i).size + 1);
    }
    char *bytes = bwi_allocate(ctx, size, 1), *at = bytes;
    bwi_text_add(&name, "%s.%s.vocabulary.txt", path, layer->name);
    bw_status status = bytes && !name.failed ? BW_OK : BW_RESOURCE_EXHAUSTED;
    for (int64_t i = 0; i < count && status == BW_OK; i++) {
        bw_text text = bwi_front_token(layer->front, i);
        memcpy(at, text.bytes, (size_t)text.size);
        at += text.size;
        *at++ = '\n';
    }
    if (status == BW_OK) {
        status = bwi_file_write(ctx, name.bytes, bytes, size);
    }
    bwi_text_free(&name);
    bwi_release(ctx, bytes);
    return status;
}

/* What these layers make are the inputs of an exported model, which is said with every name and shape. */
bw_status bwi_export_behind_fronts(bw_model *model, const char *path, bwi_file_out *out,
                                   bw_status (*put)(bw_model *model, const char *path, bwi_file_out *out))
{
    if (!bwi_model_has_fronts(model)) {
        return put(model, path, out);
    }
    bw_model view = *model; /* the same model, with other inputs */
    bool *needed = bwi_export_needed(model);
    bw_status status = needed ? BW_OK : model->ctx->error.status;
    view.input_count = 0;
    for (int n = 0; needed && n < model->graph.count; n++) {
        bw_node *node = model->graph.nodes[n];
        const bwi_input_attributes *a = node->op->flags & BWI_OP_INPUT ? node->attributes : NULL;
        if (a && a->role == BWI_ROLE_INPUT && needed[n] && view.input_count < BWI_MAX_HEADS) {
            view.inputs[view.input_count++] = node;
        }
    }
    bwi_release(model->ctx, needed);
    for (int i = 0; i < model->layer_count && status == BW_OK; i++) {
        const bwi_layer *layer = &model->layers[i];
        bool words = has_vocabulary(layer) && bwi_front_is_fitted(layer->front);
        if (layer->front) {
            bwi_log(model->ctx, BW_LOG_WARNING,
                    "%s: layer %s is not part of the file: the program that uses it must do what the layer does, and give the "
                    "result as an "
                    "input%s%s%s%s%s",
                    path, layer->name, words ? "; the vocabulary is written to " : "", words ? path : "", words ? "." : "",
                    words ? layer->name : "", words ? ".vocabulary.txt" : "");
        }
        status = words ? write_vocabulary(model, layer, path) : BW_OK;
    }
    return status == BW_OK ? put(&view, path, out) : status;
}
