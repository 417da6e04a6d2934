/*
 * Reads operators of Keras's functional models: entries of the module keras.src.ops, whose options are in their configuration, and
 * whose numbers and slices are among the arguments of the call. An unsupported operator is refused by its name.
 */
#include "file/internal.h"

#include <float.h>
#include <string.h>

static bw_status refuse(const bwi_keras *k, const bwi_json *json, const char *what)
{
    char quoted[BWI_QUOTE_SIZE];
    const char *name = bwi_json_text(bwi_json_get(json, "class_name"));
    return bwi_fail_file(k->ctx, BW_UNIMPLEMENTED, k->path, "%s: %s of the operator %s is not supported", k->what, what,
                         bwi_quote(quoted, name ? name : "", name ? strlen(name) : 0));
}

bool bwi_keras_is_operator(const bwi_json *json)
{
    const char *module = bwi_json_text(bwi_json_get(json, "module"));
    return module && strncmp(module, "keras.src.ops.", 14) == 0;
}

/* ---- Options ---- */

static bool read_wholes(const bwi_json *json, bwi_argument_value *value)
{
    int count = bwi_json_kind_of(json) == BWI_JSON_LIST ? bwi_json_count(json) : 1;
    if (count > BWI_MAX_INTS) {
        return false;
    }
    for (int i = 0; i < count; i++) {
        const bwi_json *one = bwi_json_kind_of(json) == BWI_JSON_LIST ? bwi_json_at(json, i) : json;
        if (!bwi_json_whole(one, &value->integers[i])) {
            return false;
        }
    }
    value->count = count;
    value->integer = value->integers[0];
    value->given = true;
    return true;
}

/* Reads one member of an operator's configuration; false if it changes something that is not supported. */
static bool read_option(const char *key, const bwi_json *json, bwi_layer *layer)
{
    static const struct {
        const char *key;
        int value;
    } numbers[] = {{"alpha", BWI_OPERATOR_NUMBER}, {"negative_slope", BWI_OPERATOR_NUMBER}, {"threshold", BWI_OPERATOR_NUMBER},
                   {"b", BWI_OPERATOR_NUMBER},     {"default_value", BWI_OPERATOR_OTHER},   {"x_min", BWI_OPERATOR_NUMBER},
                   {"x_max", BWI_OPERATOR_OTHER}};
    static const char *const lists[] = {"axis", "axes", "newshape"};
    if (bwi_json_kind_of(json) == BWI_JSON_NULL || strcmp(key, "name") == 0) {
        return true;
    }
    for (size_t i = 0; i < BWI_COUNT(numbers); i++) {
        if (strcmp(key, numbers[i].key) == 0) {
            layer->values[numbers[i].value].given = true;
            return bwi_json_number(json, &layer->values[numbers[i].value].number);
        }
    }
    for (size_t i = 0; i < BWI_COUNT(lists); i++) {
        if (strcmp(key, lists[i]) == 0) {
            return read_wholes(json, &layer->values[BWI_OPERATOR_AXES]);
        }
    }
    if (strcmp(key, "keepdims") == 0) {
        layer->values[BWI_OPERATOR_KEEP].flag = bwi_json_true(json);
        return bwi_json_kind_of(json) == BWI_JSON_BOOL;
    }
    return strcmp(key, "dtype") == 0 ? bwi_keras_is_float32(json) : bwi_json_kind_of(json) == BWI_JSON_BOOL && !bwi_json_true(json);
}

/* ---- x[...] ---- */

static bool is_class(const bwi_json *json, const char *name)
{
    const char *class_name = bwi_json_text(bwi_json_get(json, "class_name"));
    return class_name && strcmp(class_name, name) == 0;
}

static int64_t bounded(int64_t index, int64_t extent)
{
    index += index < 0 ? extent : 0;
    return index < 0 ? 0 : index > extent ? extent : index;
}

/* Reads a slice as Python does: a negative bound counts from the end, and bounds are clamped to the extent. The step must be 1. */
static bool read_slice(const bwi_json *json, int64_t extent, int64_t *start, int64_t *count)
{
    const bwi_json *config = bwi_json_get(json, "config");
    int64_t first = 0, stop = extent, step = 1;
    bool right = true;
    right =
        bwi_json_kind_of(bwi_json_get(config, "start")) <= BWI_JSON_NULL || bwi_json_whole(bwi_json_get(config, "start"), &first);
    right = right && (bwi_json_kind_of(bwi_json_get(config, "stop")) <= BWI_JSON_NULL ||
                      bwi_json_whole(bwi_json_get(config, "stop"), &stop));
    right = right && (bwi_json_kind_of(bwi_json_get(config, "step")) <= BWI_JSON_NULL ||
                      bwi_json_whole(bwi_json_get(config, "step"), &step));
    *start = bounded(first, extent);
    *count = bounded(stop, extent) - *start;
    return right && step == 1;
}

static bool is_whole_slice(const bwi_json *json)
{
    int64_t start, count;
    return is_class(json, "__slice__") && read_slice(json, 7, &start, &count) && start == 0 && count == 7;
}

/* The first index belongs to the batch, and must take all of it. An ellipsis stands for all indices that are missing. */
static bw_status read_items(const bwi_keras *k, const bwi_json *json, const bwi_json *items, const bwi_shape *shape,
                            bwi_layer *layer)
{
    bwi_argument_value *v = layer->values;
    bool list = bwi_json_kind_of(items) == BWI_JSON_LIST;
    int count = list ? bwi_json_count(items) : 1, given = 0, axis = -1;
    for (int i = 0; i < count; i++) {
        given += !is_class(list ? bwi_json_at(items, i) : items, "__ellipsis__");
    }
    if (given > shape->ndim + 1) {
        return refuse(k, json, "a new axis, or the number of indices");
    }
    for (int i = 0; i < count || axis < shape->ndim; i++) {
        const bwi_json *item = i >= count ? NULL : list ? bwi_json_at(items, i) : items;
        int taken = is_class(item, "__ellipsis__") ? shape->ndim + 1 - given : 1;
        for (; taken > 0 && axis < shape->ndim; taken--, axis++) {
            int64_t extent = axis < 0 ? 1 : shape->extent[axis], start = 0, length = extent, index = 0;
            bool whole = bwi_json_whole(item, &index), slice = is_class(item, "__slice__");
            if (axis < 0 ? !is_whole_slice(item) && !is_class(item, "__ellipsis__")
                         : slice && !read_slice(item, extent, &start, &length)) {
                return refuse(k, json, axis < 0 ? "an index of the batch" : "a step");
            }
            if (!whole && !slice && item && !is_class(item, "__ellipsis__")) {
                return refuse(k, json, "an index that is neither a number nor a slice");
            }
            if (axis >= 0) {
                v[BWI_OPERATOR_AXES].integers[axis] = whole ? index + (index < 0 ? extent : 0) : start;
                v[BWI_OPERATOR_COUNTS].integers[axis] = whole ? 1 : length;
                v[BWI_OPERATOR_DROPS].integers[axis] = whole;
            }
        }
    }
    v[BWI_OPERATOR_AXES].count = shape->ndim;
    return BW_OK;
}

/* ---- All of it ---- */

/* Numbers are among the arguments, before or after the tensor. */
static bw_status read_numbers(const bwi_keras *k, const bwi_json *json, const bwi_json *args, bwi_layer *layer)
{
    bwi_argument_value *number = &layer->values[BWI_OPERATOR_NUMBER];
    for (int i = 0; i < bwi_json_count(args); i++) {
        const bwi_json *one = bwi_json_at(args, i);
        bwi_json_kind kind = bwi_json_kind_of(one);
        if (kind == BWI_JSON_OBJECT || kind == BWI_JSON_LIST || kind == BWI_JSON_NULL) {
            continue;
        }
        if (number->given || !bwi_json_number(one, &number->number)) {
            return refuse(k, json, "an argument");
        }
        number->given = true;
        number->flag = i == 0;
    }
    return BW_OK;
}

/* Reads an operator but not its inputs; `shape` is the first input's. */
bw_status bwi_keras_read_operator(const bwi_keras *k, const bwi_json *json, const bwi_json *node, const bwi_shape *shape,
                                  bwi_layer *layer)
{
    const char *class_name = bwi_json_text(bwi_json_get(json, "class_name")), *key = NULL;
    const bwi_json *args = bwi_json_get(node, "args");
    *layer = (bwi_layer){.row = class_name ? bwi_operator_find(class_name) : NULL, .trainable = true};
    if (!layer->row) {
        char quoted[BWI_QUOTE_SIZE];
        return bwi_fail_file(k->ctx, BW_UNIMPLEMENTED, k->path, "%s: the operator %s is not supported", k->what,
                             bwi_quote(quoted, class_name ? class_name : "", class_name ? strlen(class_name) : 0));
    }
    if (strcmp(class_name, "Clip") == 0) { /* None means no bound there */
        layer->values[BWI_OPERATOR_NUMBER].number = (double)-FLT_MAX;
        layer->values[BWI_OPERATOR_OTHER].number = (double)FLT_MAX;
    }
    for (const bwi_json *value; (value = bwi_json_next(bwi_json_get(json, "config"), &key));) {
        if (!read_option(key, value, layer)) {
            return bwi_keras_refuse(k, key, value);
        }
    }
    key = NULL;
    for (const bwi_json *value; (value = bwi_json_next(bwi_json_get(node, "kwargs"), &key));) {
        if (bwi_json_kind_of(value) != BWI_JSON_NULL) {
            return bwi_keras_refuse(k, key, value);
        }
    }
    if (strcmp(class_name, "GetItem") == 0) {
        return read_items(k, json, bwi_json_at(args, 1), shape, layer);
    }
    return read_numbers(k, json, args, layer);
}
