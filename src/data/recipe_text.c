/*
 * Writes and reads recipes as JSON, in a model's file:
 *   {"version": 1, "scale": 1.0, "shape": [4], "missing": "mean", "na": "-,unknown", "target": "kind", "classes": ["a", "b"],
 *    "columns": 4, "target_columns": [3], "texts": true,
 *    "features": [{"name": "city", "column": 0, "categories": ["x", "y"]}, {"name": "age", "column": 2, "fill": 41.5},
 *                 {"name": "review", "column": 3, "text": true}],
 *    "fields": [{"role": "x", "name": "", "dtype": "float32", "shape": [4]}, ...],
 *    "stages": [{"kind": "standardise", "inputs": [{"offset": [...], "factor": [...]}]}, {"kind": "one_hot", "classes": 3},
 *               {"kind": "function", "fields": [...]}]}
 * The same recipe always gives the same text, and numbers are read back exactly. The text may be hostile, so everything is checked.
 */
#include "data/recipe.h"
#include "data/transform/transform.h"
#include "format/format.h"

#include <math.h>
#include <string.h>

enum { VERSION = 1, MOST_FEATURES = 20000, MOST_NAMES = 200000, MOST_STAGES = 32, MOST_COLUMNS = 1 << 20 };

static const char *const missing_names[] = {"error", "mean", "zero", "skip"};

/* ---- Writing ---- */

/* How many bytes follow a first byte `c` in UTF-8; -1: it cannot begin a character. */
static int followers(unsigned char c)
{
    return c < 0x80 ? 0 : c < 0xC2 ? -1 : c < 0xE0 ? 1 : c < 0xF0 ? 2 : c < 0xF5 ? 3 : -1;
}

static bool is_utf8(const char *text)
{
    for (const unsigned char *at = (const unsigned char *)text; *at;) {
        unsigned char first = *at++;
        int more = followers(first);
        /* Overlong forms, surrogates and code points beyond U+10FFFF are not valid. */
        if (more < 0 || (first == 0xE0 && *at < 0xA0) || (first == 0xED && *at > 0x9F) || (first == 0xF0 && *at < 0x90) ||
            (first == 0xF4 && *at > 0x8F)) {
            return false;
        }
        for (; more > 0; more--, at++) {
            if ((*at & 0xC0) != 0x80) {
                return false;
            }
        }
    }
    return true;
}

/* JSON holds only UTF-8, so a name with other bytes is written as a list of numbers. */
static void put_name(bwi_json_writer *w, const char *key, const char *name)
{
    if (is_utf8(name)) {
        bwi_json_put_text(w, key, name);
        return;
    }
    bwi_json_begin(w, key, '[');
    for (; *name; name++) {
        bwi_json_put_whole(w, NULL, (unsigned char)*name);
    }
    bwi_json_end(w);
}

static void put_names(bwi_json_writer *w, const char *key, const char *const *names, int count)
{
    bwi_json_begin(w, key, '[');
    for (int i = 0; i < count; i++) {
        put_name(w, NULL, names[i]);
    }
    bwi_json_end(w);
}

static void put_shape(bwi_json_writer *w, const char *key, int ndim, const int64_t *shape)
{
    bwi_json_begin(w, key, '[');
    for (int i = 0; i < ndim; i++) {
        bwi_json_put_whole(w, NULL, shape[i]);
    }
    bwi_json_end(w);
}

static void put_fields(bwi_json_writer *w, const bw_dataset *dataset)
{
    bwi_json_begin(w, "fields", '[');
    for (int f = 0; f < dataset->column_count; f++) {
        const bwi_field *field = &dataset->columns[f].field;
        const char role[2] = {"xyw"[field->role], 0};
        bwi_json_begin(w, NULL, '{');
        bwi_json_put_text(w, "role", role);
        put_name(w, "name", field->name);
        bwi_json_put_text(w, "dtype", bwi_dtype_name(field->dtype));
        put_shape(w, "shape", field->ndim, field->shape);
        bwi_json_end(w);
    }
    bwi_json_end(w);
}

/* What is standard is left out, so that the text is short. */
static void put_features(bwi_json_writer *w, const bwi_facts *facts)
{
    bwi_json_begin(w, "features", '[');
    for (int i = 0; i < facts->features; i++) {
        const bwi_feature *feature = &facts->feature[i];
        bwi_json_begin(w, NULL, '{');
        put_name(w, "name", feature->name ? feature->name : "");
        if (facts->columns > 0) {
            bwi_json_put_whole(w, "column", feature->column);
        }
        if (feature->text) {
            bwi_json_put_bool(w, "text", true);
        }
        if (feature->categories > 0) {
            put_names(w, "categories", feature->category, feature->categories);
        }
        if (feature->filled) {
            bwi_json_put_real(w, "fill", feature->fill);
        }
        bwi_json_end(w);
    }
    bwi_json_end(w);
}

static void put_floats(bwi_json_writer *w, const char *key, const float *values, int64_t count)
{
    bwi_json_begin(w, key, '[');
    for (int64_t i = 0; i < count; i++) {
        bwi_json_put_real(w, NULL, (double)values[i]);
    }
    bwi_json_end(w);
}

/* Writes the stages from the root upwards, in the order in which they are applied. */
static void put_stages(bwi_json_writer *w, const bw_dataset *stage)
{
    if (!stage->upstream) {
        return;
    }
    put_stages(w, stage->upstream);
    bwi_json_begin(w, NULL, '{');
    bwi_json_put_text(w, "kind", stage->kind->name);
    if (stage->kind->keeps == BWI_KEEPS_CLASSES) {
        bwi_json_put_whole(w, "classes", bwi_onehot_classes(stage));
    } else if (stage->kind->keeps == BWI_KEEPS_UNKNOWN) {
        put_fields(w, stage);
    } else {
        const float *offset, *factor;
        int64_t count;
        bwi_json_begin(w, "inputs", '[');
        for (int f = 0; f < stage->column_count; f++) {
            if (!bwi_dataset_statistics(stage, f, &offset, &factor, &count)) {
                continue;
            }
            bwi_json_begin(w, NULL, '{');
            put_floats(w, "offset", offset, count);
            put_floats(w, "factor", factor, count);
            bwi_json_end(w);
        }
        bwi_json_end(w);
    }
    bwi_json_end(w);
}

static bw_status check_size(const bw_dataset *root)
{
    const bwi_facts *facts = &root->facts;
    int64_t names = facts->classes;
    for (int i = 0; i < facts->features; i++) {
        names += facts->feature[i].categories;
    }
    if (facts->features <= MOST_FEATURES && names <= MOST_NAMES) {
        return BW_OK;
    }
    return bwi_fail(root->owned.ctx, BW_RESOURCE_EXHAUSTED,
                    "the training data has %d columns and %lld categories; a model's file keeps at most %d and %d", facts->features,
                    (long long)names, (int)MOST_FEATURES, (int)MOST_NAMES);
}

/* Writes what must be done to other data so that the model sees what it was trained on: facts of the root, its fields, and the
 * stages above it. */
bw_status bwi_recipe_write(const bw_dataset *recipe, bwi_json_writer *w)
{
    const bw_dataset *root = recipe;
    while (root->upstream) {
        root = root->upstream;
    }
    const bwi_facts *facts = &root->facts;
    bw_status status = check_size(root);
    if (status != BW_OK) {
        return status;
    }
    bwi_json_begin(w, NULL, '{');
    bwi_json_put_whole(w, "version", VERSION);
    bwi_json_put_real(w, "scale", facts->scale);
    put_shape(w, "shape", facts->ndim, facts->shape);
    bwi_json_put_text(w, "missing", missing_names[facts->missing]);
    if (facts->na) {
        put_name(w, "na", facts->na);
    }
    if (facts->texts) {
        bwi_json_put_bool(w, "texts", true);
    }
    if (facts->target) {
        put_name(w, "target", facts->target);
    }
    if (facts->columns > 0) {
        bwi_json_put_whole(w, "columns", facts->columns);
        bwi_json_begin(w, "target_columns", '[');
        for (int i = 0; i < facts->targets; i++) {
            bwi_json_put_whole(w, NULL, facts->target_column[i]);
        }
        bwi_json_end(w);
    }
    put_names(w, "classes", facts->class_name, facts->classes);
    put_features(w, facts);
    put_fields(w, root);
    bwi_json_begin(w, "stages", '[');
    put_stages(w, recipe);
    bwi_json_end(w);
    bwi_json_end(w);
    return w->text.failed ? BW_RESOURCE_EXHAUSTED : BW_OK;
}

/* A text that grows is held twice for a moment, and the new one is at most twice as large. */
size_t bwi_recipe_bytes(const bw_dataset *recipe)
{
    if (!recipe) {
        return 0;
    }
    bwi_json_writer w = {.text = {.ctx = recipe->owned.ctx}};
    size_t bytes = bwi_recipe_write(recipe, &w) == BW_OK ? bwi_size_multiply(3, w.text.length) : 0;
    bwi_text_free(&w.text);
    return bytes;
}

/* ---- Reading ---- */

typedef struct reading {
    bw_context *ctx;
    const char *where;
} reading;

static bw_status damaged(const reading *r, const char *key, const char *expected)
{
    return bwi_fail_file(r->ctx, BW_DATA_LOSS, r->where, "%s: expected %s", key, expected);
}

/* Reads a name, which put_name wrote as text or as numbers. The caller releases *name. */
static bw_status take_name(const reading *r, const char *key, const bwi_json *json, const char **name)
{
    int count = bwi_json_count(json);
    const char *text = bwi_json_text(json);
    char *made;
    if (text) {
        made = bwi_copy_text(r->ctx, text);
    } else {
        if (!json || bwi_json_kind_of(json) != BWI_JSON_LIST) {
            return damaged(r, key, "a text");
        }
        made = bwi_allocate(r->ctx, (size_t)count + 1, 1);
        for (int i = 0; made && i < count; i++) {
            int64_t byte;
            if (!bwi_json_whole(bwi_json_at(json, i), &byte) || byte < 1 || byte > 255) {
                bwi_release(r->ctx, made);
                return damaged(r, key, "bytes of 1 to 255");
            }
            made[i] = (char)byte;
        }
    }
    *name = made;
    return made ? BW_OK : BW_RESOURCE_EXHAUSTED;
}

static bw_status take_names(const reading *r, const char *key, const bwi_json *list, const char *const **names, int *count)
{
    if (!list || bwi_json_kind_of(list) != BWI_JSON_LIST || bwi_json_count(list) > MOST_NAMES) {
        return damaged(r, key, "a list of texts");
    }
    int length = bwi_json_count(list);
    const char **made = bwi_allocate(r->ctx, (size_t)length + 1, sizeof *made);
    bw_status status = made ? BW_OK : BW_RESOURCE_EXHAUSTED;
    *names = (const char *const *)made;
    for (*count = 0; status == BW_OK && *count < length; *count += status == BW_OK) {
        status = take_name(r, key, bwi_json_at(list, *count), &made[*count]);
    }
    return status;
}

static bw_status take_shape(const reading *r, const bwi_json *list, int most, int *ndim, int64_t *shape)
{
    bool right = list && bwi_json_kind_of(list) == BWI_JSON_LIST && bwi_json_count(list) <= most;
    *ndim = right ? bwi_json_count(list) : 0;
    for (int i = 0; right && i < *ndim; i++) {
        right = bwi_json_whole(bwi_json_at(list, i), &shape[i]) && shape[i] > 0;
    }
    return right ? BW_OK : damaged(r, "shape", "extents");
}

static bw_status take_feature(const reading *r, const bwi_json *json, int columns, bwi_feature *feature)
{
    const bwi_json *categories = bwi_json_get(json, "categories"), *fill = bwi_json_get(json, "fill");
    int64_t column = -1;
    bw_status status = take_name(r, "features", bwi_json_get(json, "name"), &feature->name);
    feature->text = bwi_json_true(bwi_json_get(json, "text"));
    if (status == BW_OK && categories) {
        status = take_names(r, "categories", categories, &feature->category, &feature->categories);
    }
    if (status == BW_OK && columns > 0 &&
        (!bwi_json_whole(bwi_json_get(json, "column"), &column) || column < 0 || column >= columns)) {
        status = damaged(r, "column", "the number of a column");
    }
    feature->column = (int)column;
    feature->filled = fill;
    if (status == BW_OK && fill && (!bwi_json_number(fill, &feature->fill) || !isfinite(feature->fill))) {
        status = damaged(r, "fill", "a number");
    }
    return status;
}

static bw_status take_features(const reading *r, const bwi_json *list, bwi_facts *facts)
{
    int count = bwi_json_count(list);
    if (!list || bwi_json_kind_of(list) != BWI_JSON_LIST || count > MOST_FEATURES) {
        return damaged(r, "features", "a list");
    }
    bwi_feature *features = bwi_allocate(r->ctx, (size_t)count + 1, sizeof *features);
    facts->feature = features;
    bw_status status = features ? BW_OK : BW_RESOURCE_EXHAUSTED;
    for (; status == BW_OK && facts->features < count; facts->features++) {
        status = take_feature(r, bwi_json_at(list, facts->features), facts->columns, &features[facts->features]);
    }
    return status;
}

/* Reads where the columns were, which files of earlier versions do not say. */
static bw_status take_columns(const reading *r, const bwi_json *json, bwi_facts *facts)
{
    const bwi_json *count = bwi_json_get(json, "columns"), *list = bwi_json_get(json, "target_columns");
    int64_t columns;
    if (!count) {
        return BW_OK;
    }
    if (!bwi_json_whole(count, &columns) || columns < 1 || columns > MOST_COLUMNS || !list ||
        bwi_json_kind_of(list) != BWI_JSON_LIST || bwi_json_count(list) > columns) {
        return damaged(r, "columns", "a number, and target_columns");
    }
    facts->columns = (int)columns;
    int *each = bwi_allocate(r->ctx, (size_t)bwi_json_count(list) + 1, sizeof *each);
    facts->target_column = each;
    for (; each && facts->targets < bwi_json_count(list); facts->targets++) {
        int64_t column;
        if (!bwi_json_whole(bwi_json_at(list, facts->targets), &column) || column < 0 || column >= columns) {
            return damaged(r, "target_columns", "numbers of columns");
        }
        each[facts->targets] = (int)column;
    }
    return each ? BW_OK : BW_RESOURCE_EXHAUSTED;
}

/* The text comes from a file and may say anything, so each member is checked when it is read. */
static bw_status take_facts(const reading *r, const bwi_json *json, bwi_facts *facts)
{
    const char *missing = bwi_json_text(bwi_json_get(json, "missing"));
    const bwi_json *target = bwi_json_get(json, "target"), *na = bwi_json_get(json, "na");
    size_t rule = 0;
    if (!bwi_json_number(bwi_json_get(json, "scale"), &facts->scale) || !isfinite(facts->scale)) {
        return damaged(r, "scale", "a number");
    }
    while (missing && rule < BWI_COUNT(missing_names) && strcmp(missing, missing_names[rule]) != 0) {
        rule++;
    }
    if (!missing || rule == BWI_COUNT(missing_names)) {
        return damaged(r, "missing", "error, mean, zero or skip");
    }
    facts->missing = (bw_missing)rule;
    bw_status status = take_shape(r, bwi_json_get(json, "shape"), BW_MAX_NDIM - 1, &facts->ndim, facts->shape);
    if (status == BW_OK && target) {
        status = take_name(r, "target", target, &facts->target);
    }
    if (status == BW_OK && na) {
        status = take_name(r, "na", na, &facts->na);
    }
    if (status == BW_OK) {
        status = take_columns(r, json, facts);
    }
    if (status == BW_OK) {
        status = take_names(r, "classes", bwi_json_get(json, "classes"), &facts->class_name, &facts->classes);
    }
    facts->texts = bwi_json_true(bwi_json_get(json, "texts"));
    return status == BW_OK ? take_features(r, bwi_json_get(json, "features"), facts) : status;
}

/* Reads role, type, name and shape, and checks each. A name that is too long is an error and is not shortened. */
static bw_status take_field(const reading *r, const bwi_json *json, bwi_field *field)
{
    const char *role = bwi_json_text(bwi_json_get(json, "role")), *dtype = bwi_json_text(bwi_json_get(json, "dtype"));
    const char *name = NULL;
    if (!role || !*role || role[1] || !strchr("xyw", *role)) {
        return damaged(r, "role", "x, y or w");
    }
    field->role = *role == 'x' ? BWI_ROLE_INPUT : *role == 'y' ? BWI_ROLE_TARGET : BWI_ROLE_WEIGHT;
    for (field->dtype = BW_U8; dtype && field->dtype < BW_TEXT && strcmp(dtype, bwi_dtype_name(field->dtype)) != 0;) {
        field->dtype++;
    }
    if (!dtype || strcmp(dtype, bwi_dtype_name(field->dtype)) != 0) {
        return damaged(r, "dtype", "a data type");
    }
    bw_status status = take_name(r, "name", bwi_json_get(json, "name"), &name);
    if (status == BW_OK && strlen(name) >= sizeof field->name) {
        status = damaged(r, "name", "a shorter text");
    }
    if (status == BW_OK) {
        strcpy(field->name, name);
        status = take_shape(r, bwi_json_get(json, "shape"), BW_MAX_NDIM - 1, &field->ndim, field->shape);
    }
    bwi_release(r->ctx, name);
    return status;
}

/* Reads the fields of the root with its facts, or of an unknown stage over `below`, which is taken. */
static bw_dataset *take_fields(const reading *r, const bwi_json *list, bw_dataset *below, const bwi_facts *facts)
{
    int count = bwi_json_count(list);
    bwi_field *fields = bwi_allocate(r->ctx, (size_t)count + 1, sizeof *fields);
    const bwi_field *each[BWI_FIELD_LIMIT];
    bw_status status = fields ? BW_OK : BW_RESOURCE_EXHAUSTED;
    if (status == BW_OK && (!list || bwi_json_kind_of(list) != BWI_JSON_LIST || count < 1 || count > BWI_FIELD_LIMIT)) {
        status = damaged(r, "fields", "a list of arrays");
    }
    for (int f = 0; f < count && status == BW_OK; f++) {
        status = take_field(r, bwi_json_at(list, f), &fields[f]);
        each[f] = &fields[f];
    }
    bw_dataset *made = NULL;
    if (status != BW_OK) {
        bw_dataset_free(below);
        bwi_pass_on(r->ctx);
    } else {
        made = below ? bwi_recipe_unknown(below, each, count) : bwi_recipe_root(r->ctx, each, count, facts);
    }
    bwi_release(r->ctx, fields);
    return made;
}

/* Whether there is a number for each index of the last axis; numbers that are not finite were written as null. */
static bool is_floats(const bwi_json *list, int64_t count)
{
    bool right = list && bwi_json_kind_of(list) == BWI_JSON_LIST && bwi_json_count(list) == count;
    for (int i = 0; right && i < count; i++) {
        double value;
        const bwi_json *one = bwi_json_at(list, i);
        right = bwi_json_kind_of(one) == BWI_JSON_NULL || (bwi_json_number(one, &value) && isfinite((float)value));
    }
    return right;
}

static void take_floats(const bwi_json *list, float *to, int64_t count)
{
    for (int i = 0; i < count; i++) {
        double value = (double)NAN;
        bwi_json_number(bwi_json_at(list, i), &value);
        to[i] = (float)value;
    }
}

static int64_t last_extent(const bw_dataset *dataset, int field)
{
    const bwi_field *of = bwi_dataset_field(dataset, field);
    return of->ndim > 0 ? of->shape[of->ndim - 1] : 1;
}

/* Checks the counts before memory is allocated for them. */
static bool suits(const bwi_json *list, const bw_dataset *below)
{
    int k = 0;
    for (int f; (f = bwi_dataset_find(below, BWI_ROLE_INPUT, k)) >= 0; k++) {
        const bwi_json *json = bwi_json_at(list, k);
        int64_t count = last_extent(below, f);
        if (!is_floats(bwi_json_get(json, "offset"), count) || !is_floats(bwi_json_get(json, "factor"), count)) {
            return false;
        }
    }
    return k > 0 && bwi_json_count(list) == k;
}

static bw_status take_statistics(const reading *r, const bwi_json *list, bw_dataset *stage)
{
    bw_status status = BW_OK;
    for (int k = 0, f; status == BW_OK && (f = bwi_dataset_find(stage, BWI_ROLE_INPUT, k)) >= 0; k++) {
        int64_t count = last_extent(stage, f);
        float *values = bwi_allocate(r->ctx, (size_t)count, 2 * sizeof *values);
        if (!values) {
            return BW_RESOURCE_EXHAUSTED;
        }
        take_floats(bwi_json_get(bwi_json_at(list, k), "offset"), values, count);
        take_floats(bwi_json_get(bwi_json_at(list, k), "factor"), values + count, count);
        status = bwi_affine_set(stage, f, values, values + count, count);
        bwi_release(r->ctx, values);
    }
    return status;
}

static bw_dataset *take_affine(const reading *r, const bwi_json *list, const char *kind, bw_dataset *below)
{
    if (!suits(list, below)) {
        bw_dataset_free(below);
        damaged(r, "inputs", "offset and factor for each value of an input's last axis");
        return bwi_pass_on(r->ctx);
    }
    bw_dataset *made = bwi_affine_named(below, kind);
    if (!made || take_statistics(r, list, made) == BW_OK) {
        return made;
    }
    bw_dataset_free(made);
    return bwi_pass_on(r->ctx);
}

static bw_dataset *take_stage(const reading *r, const bwi_json *json, bw_dataset *below)
{
    const char *kind = bwi_json_text(bwi_json_get(json, "kind"));
    int64_t classes;
    if (kind && strcmp(kind, bwi_kind_unknown.name) == 0) {
        return take_fields(r, bwi_json_get(json, "fields"), below, NULL);
    }
    if (kind && bwi_affine_is_kind(kind)) {
        return take_affine(r, bwi_json_get(json, "inputs"), kind, below);
    }
    if (kind && strcmp(kind, "one_hot") == 0 && bwi_json_whole(bwi_json_get(json, "classes"), &classes) && classes > 0) {
        return bw_one_hot(below, classes);
    }
    bw_dataset_free(below);
    damaged(r, "stages", "standardise, normalise, one_hot with its classes, or function");
    return bwi_pass_on(r->ctx);
}

/* Another version is refused, since it might be misunderstood. Stages are added one by one, and a failure in one frees all below
 * it. */
bw_dataset *bwi_recipe_parse(bw_context *ctx, const bwi_json *json, const char *where)
{
    reading r = {ctx, where};
    const bwi_json *stages = bwi_json_get(json, "stages");
    bwi_facts facts = {.scale = 1};
    int64_t version;
    bw_dataset *made = NULL;
    bw_status status = BW_OK;
    if (!bwi_json_whole(bwi_json_get(json, "version"), &version) || version != VERSION) {
        status = damaged(&r, "version", "1");
    } else if (!stages || bwi_json_kind_of(stages) != BWI_JSON_LIST || bwi_json_count(stages) > MOST_STAGES) {
        status = damaged(&r, "stages", "a list");
    }
    if (status == BW_OK) {
        status = take_facts(&r, json, &facts);
    }
    if (status == BW_OK) {
        made = take_fields(&r, bwi_json_get(json, "fields"), NULL, &facts);
    } else {
        bwi_pass_on(ctx);
    }
    bwi_facts_free(ctx, &facts);
    for (int i = 0; made && i < bwi_json_count(stages); i++) {
        made = take_stage(&r, bwi_json_at(stages, i), made);
    }
    return made;
}
