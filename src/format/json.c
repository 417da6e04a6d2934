/*
 * JSON, read by Jansson; the only file that includes it. Before Jansson sees a text its depth and the numbers of objects, lists
 * and values are counted and bounded, since its memory grows with them and it recurses: a hostile text of a few bytes for each
 * value would otherwise take a hundred times its size.
 */
#include "format/format.h"

#include <errno.h>
#include <jansson.h>
#include <string.h>

/* These limits are far beyond what a model of thousands of layers has; together they bound the memory to some 60 MiB. */
enum { TEXT_LIMIT = 1 << 24, DEPTH_LIMIT = 64, OBJECT_LIMIT = 1 << 16, LIST_LIMIT = 1 << 17, VALUE_LIMIT = 1 << 19 };

typedef struct tally {
    int depth, deepest, objects, lists, values;
} tally;

/* Counts the structure outside strings. If the text is not JSON, the counts mean nothing, and Jansson refuses it. */
static tally count(const char *text, size_t size)
{
    tally t = {0};
    bool quoted = false;
    for (size_t i = 0; i < size; i++) {
        char c = text[i];
        if (quoted) {
            i += c == '\\';
            quoted = c != '"';
            continue;
        }
        quoted = c == '"';
        t.objects += c == '{';
        t.lists += c == '[';
        t.values += c == ',';
        t.depth += (c == '{' || c == '[') - (c == '}' || c == ']');
        t.deepest = t.depth > t.deepest ? t.depth : t.deepest;
    }
    return t;
}

static bw_status check_size(bw_context *ctx, const char *text, size_t size, const char *where)
{
    if (size > TEXT_LIMIT) {
        return bwi_fail_file(ctx, BW_DATA_LOSS, where, "%zu bytes of JSON; at most %d are read", size, TEXT_LIMIT);
    }
    tally t = count(text, size);
    if (t.deepest > DEPTH_LIMIT) {
        return bwi_fail_file(ctx, BW_DATA_LOSS, where, "JSON nested %d deep; at most %d is read", t.deepest, DEPTH_LIMIT);
    }
    if (t.objects > OBJECT_LIMIT || t.lists > LIST_LIMIT || t.values > VALUE_LIMIT) {
        return bwi_fail_file(ctx, BW_DATA_LOSS, where, "JSON of %d objects, %d lists and %d values; at most %d, %d and %d are read",
                             t.objects, t.lists, t.values, OBJECT_LIMIT, LIST_LIMIT, VALUE_LIMIT);
    }
    return BW_OK;
}

bw_status bwi_json_parse(bw_context *ctx, bwi_json **json, const void *text, size_t size, const char *where)
{
    json_error_t error;
    *json = NULL;
    bw_status status = check_size(ctx, text, size, where);
    if (status != BW_OK) {
        return status;
    }
    errno = 0; /* jansson takes most of its failures to allocate for errors of the text */
    json_t *made = json_loadb(text, size, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &error);
    if (!made && (json_error_code(&error) == json_error_out_of_memory || errno == ENOMEM)) {
        return bwi_fail_file(ctx, BW_RESOURCE_EXHAUSTED, where, "no memory for its JSON");
    }
    if (!made) {
        char quoted[BWI_QUOTE_SIZE];
        return bwi_fail_file(ctx, BW_DATA_LOSS, where, "not JSON: line %d, column %d: %s", error.line, error.column,
                             bwi_quote(quoted, error.text, strlen(error.text)));
    }
    *json = (bwi_json *)made;
    return BW_OK;
}

void bwi_json_free(bwi_json *json)
{
    json_decref((json_t *)json);
}

/* Jansson's reading functions take const pointers, except for iterators. */
static const json_t *tree(const bwi_json *json)
{
    return (const json_t *)json;
}

bwi_json_kind bwi_json_kind_of(const bwi_json *json)
{
    if (!json) {
        return BWI_JSON_MISSING;
    }
    switch (json_typeof(tree(json))) {
    case JSON_OBJECT:
        return BWI_JSON_OBJECT;
    case JSON_ARRAY:
        return BWI_JSON_LIST;
    case JSON_STRING:
        return BWI_JSON_TEXT;
    case JSON_INTEGER:
        return BWI_JSON_WHOLE;
    case JSON_REAL:
        return BWI_JSON_REAL;
    case JSON_TRUE:
    case JSON_FALSE:
        return BWI_JSON_BOOL;
    case JSON_NULL:
        break;
    }
    return BWI_JSON_NULL;
}

const bwi_json *bwi_json_get(const bwi_json *object, const char *key)
{
    return object ? (const bwi_json *)json_object_get(tree(object), key) : NULL;
}

int bwi_json_count(const bwi_json *json)
{
    if (!json) {
        return 0;
    }
    return (int)(json_is_object(tree(json)) ? json_object_size(tree(json)) : json_array_size(tree(json)));
}

const bwi_json *bwi_json_at(const bwi_json *list, int index)
{
    return list && index >= 0 ? (const bwi_json *)json_array_get(tree(list), (size_t)index) : NULL;
}

const bwi_json *bwi_json_next(const bwi_json *object, const char **key)
{
    json_t *writable = bwi_unconst(object);
    if (!object || !json_is_object(writable)) {
        return NULL;
    }
    void *at = *key ? json_object_iter_next(writable, json_object_key_to_iter(*key)) : json_object_iter(writable);
    if (!at) {
        return NULL;
    }
    *key = json_object_iter_key(at);
    return (const bwi_json *)json_object_iter_value(at);
}

const char *bwi_json_text(const bwi_json *json)
{
    return json ? json_string_value(tree(json)) : NULL;
}

bool bwi_json_true(const bwi_json *json)
{
    return json && json_is_true(tree(json));
}

bool bwi_json_whole(const bwi_json *json, int64_t *value)
{
    if (!json || !json_is_integer(tree(json))) {
        return false;
    }
    *value = json_integer_value(tree(json));
    return true;
}

bool bwi_json_number(const bwi_json *json, double *value)
{
    if (!json || !json_is_number(tree(json))) {
        return false;
    }
    *value = json_number_value(tree(json));
    return true;
}
