/*
 * safetensors: a length, a JSON header that gives each array's name, type, shape and place, and the bytes. Such a file holds only
 * weights, under the names of the model's variables. The header must account for every byte: there are no gaps, no overlaps and
 * nothing after the last array.
 */
#include "file/internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LENGTH_BYTES = 8, HEADER_LIMIT = 1 << 24 };

static uint64_t read_length(const unsigned char *at)
{
    uint64_t value = 0;
    for (int i = 0; i < LENGTH_BYTES; i++) {
        value |= (uint64_t)at[i] << 8 * i;
    }
    return value;
}

static uint32_t read_word(const unsigned char *at, int bytes)
{
    uint32_t value = 0;
    for (int i = 0; i < bytes; i++) {
        value |= (uint32_t)at[i] << 8 * i;
    }
    return value;
}

/* ---- Types: little-endian ---- */

static float from_bits(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static float read_f32(const unsigned char *at)
{
    return from_bits(read_word(at, 4));
}

static float read_bf16(const unsigned char *at)
{
    return from_bits(read_word(at, 2) << 16);
}

static float read_f16(const unsigned char *at)
{
    uint32_t bits = read_word(at, 2), exponent = bits >> 10 & 31, fraction = bits & 1023;
    float sign = bits >> 15 ? -1.0F : 1.0F;
    if (exponent == 31) {
        return fraction ? NAN : sign * INFINITY;
    }
    return exponent ? sign * ldexpf((float)(fraction + 1024), (int)exponent - 25) : sign * ldexpf((float)fraction, -24);
}

static float read_f64(const unsigned char *at)
{
    uint64_t bits = read_length(at);
    double value;
    memcpy(&value, &bits, sizeof value);
    return (float)value;
}

/* Keras has integer counters among its variables. */
static float read_i32(const unsigned char *at)
{
    return (float)(int32_t)read_word(at, 4);
}

static float read_i64(const unsigned char *at)
{
    return (float)(int64_t)read_length(at);
}

static const struct {
    const char *name;
    size_t size;
    float (*read)(const unsigned char *at);
} types[] = {{"F32", 4, read_f32}, {"F16", 2, read_f16}, {"BF16", 2, read_bf16},
             {"F64", 8, read_f64}, {"I32", 4, read_i32}, {"I64", 8, read_i64}};

/* ---- Reading ---- */

typedef struct tensor {
    int type;
    size_t begin, end; /* counted from the end of the header */
} tensor;

typedef struct reader {
    bw_model *model;
    const char *path;
    const unsigned char *data;
    size_t size;
    tensor *tensors; /* one for each variable */
} reader;

static bw_status fail_at(const reader *r, const char *name, const char *what)
{
    char quoted[BWI_QUOTE_SIZE];
    return bwi_fail_file(r->model->ctx, BW_DATA_LOSS, r->path, "%s %s", bwi_quote(quoted, name, strlen(name)), what);
}

static bw_status read_tensor(const reader *r, const char *name, const bwi_json *json, tensor *t)
{
    const char *type = bwi_json_text(bwi_json_get(json, "dtype"));
    const bwi_json *offsets = bwi_json_get(json, "data_offsets");
    int64_t begin = -1, end = -1;
    t->type = -1;
    for (size_t i = 0; type && i < BWI_COUNT(types); i++) {
        t->type = strcmp(types[i].name, type) == 0 ? (int)i : t->type;
    }
    if (t->type < 0) {
        return fail_at(r, name, "has a type other than F32, F16, BF16, F64, I32 and I64");
    }
    if (bwi_json_count(offsets) != 2 || !bwi_json_whole(bwi_json_at(offsets, 0), &begin) ||
        !bwi_json_whole(bwi_json_at(offsets, 1), &end) || begin < 0 || end < begin || (uint64_t)end > r->size) {
        return fail_at(r, name, "lies outside the file");
    }
    t->begin = (size_t)begin;
    t->end = (size_t)end;
    return BW_OK;
}

static bw_status check_shape(const reader *r, const char *name, const bwi_json *json, const tensor *t, const bwi_shape *shape)
{
    const bwi_json *list = bwi_json_get(json, "shape");
    bool same = bwi_json_kind_of(list) == BWI_JSON_LIST && bwi_json_count(list) == shape->ndim;
    for (int i = 0; same && i < shape->ndim; i++) {
        int64_t extent = -1;
        same = bwi_json_whole(bwi_json_at(list, i), &extent) && extent == shape->extent[i];
    }
    if (!same) {
        char expected[160], what[200];
        snprintf(what, sizeof what, "does not have the shape %s", bwi_format_shape(expected, shape->ndim, shape->extent));
        return fail_at(r, name, what);
    }
    size_t bytes = bwi_size_multiply((size_t)bwi_shape_count(shape), types[t->type].size);
    return bytes == t->end - t->begin ? BW_OK : fail_at(r, name, "has offsets that do not fit its shape");
}

static int find_variable(const bw_model *model, const char *name)
{
    for (int v = 0; v < model->graph.variable_count; v++) {
        if (strcmp(model->graph.variables[v]->name, name) == 0) {
            return v;
        }
    }
    return -1;
}

static int compare_begins(const void *a, const void *b)
{
    const tensor *x = a, *y = b;
    return x->begin != y->begin ? (x->begin > y->begin) - (x->begin < y->begin) : (x->end > y->end) - (x->end < y->end);
}

/* Sorted by the position of their bytes, each tensor must begin where the one before it ends. */
static bw_status check_overlaps(const reader *r)
{
    size_t count = (size_t)r->model->graph.variable_count, end = 0;
    tensor *sorted = bwi_allocate(r->model->ctx, count, sizeof *sorted);
    if (!sorted) {
        return BW_RESOURCE_EXHAUSTED;
    }
    memcpy(sorted, r->tensors, count * sizeof *sorted);
    qsort(sorted, count, sizeof *sorted, compare_begins);
    bw_status status = BW_OK;
    for (size_t i = 0; i < count && status == BW_OK; i++) {
        if (sorted[i].begin != end) {
            status = bwi_fail_file(r->model->ctx, BW_DATA_LOSS, r->path, "tensors overlap or leave a gap at byte %zu of the data",
                                   sorted[i].begin < end ? sorted[i].begin : end);
        }
        end = sorted[i].end;
    }
    bwi_release(r->model->ctx, sorted);
    return status;
}

/* Every tensor must be a variable's, and together they must cover all of the data. */
static bw_status read_header(reader *r, const bwi_json *header)
{
    const bwi_graph *graph = &r->model->graph;
    const char *name = NULL;
    size_t total = 0;
    int found = 0;
    for (const bwi_json *json; (json = bwi_json_next(header, &name));) {
        if (strcmp(name, "__metadata__") == 0) {
            continue;
        }
        int v = find_variable(r->model, name);
        if (v < 0) {
            return fail_at(r, name, "is not a variable of the model");
        }
        bw_status status = read_tensor(r, name, json, &r->tensors[v]);
        if (status == BW_OK) {
            status = check_shape(r, name, json, &r->tensors[v], &graph->variables[v]->shape);
        }
        if (status != BW_OK) {
            return status;
        }
        total = bwi_size_add(total, r->tensors[v].end - r->tensors[v].begin);
        found++;
    }
    for (int v = 0; found < graph->variable_count && v < graph->variable_count; v++) {
        if (!bwi_json_get(header, graph->variables[v]->name)) {
            return fail_at(r, graph->variables[v]->name, "is missing");
        }
    }
    return total == r->size
               ? check_overlaps(r)
               : bwi_fail_file(r->model->ctx, BW_DATA_LOSS, r->path, "%zu bytes of data, but the header names %zu", r->size, total);
}

static int64_t tensor_values(const reader *r, int v, float *values)
{
    const unsigned char *from = r->data + r->tensors[v].begin;
    int64_t count = bwi_shape_count(&r->model->graph.variables[v]->shape);
    for (int64_t i = 0; i < count; i++) {
        values[i] = types[r->tensors[v].type].read(from + (size_t)i * types[r->tensors[v].type].size);
    }
    return count;
}

/* One buffer of the largest tensor's size is used for all, so that loading needs little memory besides the model's. All values
 * are checked before the first variable changes. */
static bw_status take_values(const reader *r)
{
    const bwi_graph *graph = &r->model->graph;
    int64_t most = 0;
    for (int v = 0; v < graph->variable_count; v++) {
        int64_t count = bwi_shape_count(&graph->variables[v]->shape);
        most = count > most ? count : most;
    }
    float *values = bwi_allocate(r->model->ctx, (size_t)most, sizeof *values);
    if (!values) {
        return BW_RESOURCE_EXHAUSTED;
    }
    bw_status status = BW_OK;
    for (int v = 0; v < graph->variable_count && status == BW_OK; v++) {
        status = bwi_weights_finite(r->model->ctx, r->path, graph->variables[v], tensor_values(r, v, values), values);
    }
    for (int v = 0; v < graph->variable_count && status == BW_OK; v++) {
        tensor_values(r, v, values);
        bwi_variable_write(graph->variables[v], values);
        graph->variables[v]->given = true;
    }
    bwi_release(r->model->ctx, values);
    return status;
}

/* The whole header is checked against the model before a single value changes. */
static bw_status load_weights(bw_model *model, const char *path, const bwi_bytes *bytes)
{
    bw_context *ctx = model->ctx;
    uint64_t length = bytes->size >= LENGTH_BYTES ? read_length(bytes->data) : UINT64_MAX;
    if (length > HEADER_LIMIT || length > bytes->size - LENGTH_BYTES) {
        return bwi_fail_file(ctx, BW_DATA_LOSS, path, "not a safetensors file: its header would have %llu bytes",
                             (unsigned long long)length);
    }
    bwi_json *header = NULL;
    reader r = {.model = model, .path = path, .data = bytes->data + LENGTH_BYTES + length};
    r.size = bytes->size - LENGTH_BYTES - (size_t)length;
    bw_status status = bwi_json_parse(ctx, &header, bytes->data + LENGTH_BYTES, (size_t)length, path);
    if (status == BW_OK) {
        r.tensors = bwi_allocate(ctx, (size_t)model->graph.variable_count, sizeof *r.tensors);
        status = r.tensors ? read_header(&r, header) : BW_RESOURCE_EXHAUSTED;
    }
    if (status == BW_OK) {
        status = bwi_weights_build(model);
    }
    if (status == BW_OK) {
        status = take_values(&r);
    }
    bwi_release(ctx, r.tensors);
    bwi_json_free(header);
    return status;
}

/* ---- Writing ---- */

/* Offsets count from the end of the header, so they are known before the data is written. */
static void put_header(const bwi_graph *graph, bwi_json_writer *w, size_t *total)
{
    *total = 0;
    bwi_json_begin(w, NULL, '{');
    bwi_json_begin(w, "__metadata__", '{');
    bwi_json_put_text(w, "format", "batchwise");
    bwi_json_end(w);
    for (int v = 0; v < graph->variable_count; v++) {
        const bwi_shape *shape = &graph->variables[v]->shape;
        size_t bytes = (size_t)bwi_shape_count(shape) * sizeof(float);
        bwi_json_begin(w, graph->variables[v]->name, '{');
        bwi_json_put_text(w, "dtype", "F32");
        bwi_json_begin(w, "shape", '[');
        for (int i = 0; i < shape->ndim; i++) {
            bwi_json_put_whole(w, NULL, shape->extent[i]);
        }
        bwi_json_end(w);
        bwi_json_begin(w, "data_offsets", '[');
        bwi_json_put_whole(w, NULL, (int64_t)*total);
        *total = bwi_size_add(*total, bytes);
        bwi_json_put_whole(w, NULL, (int64_t)*total);
        bwi_json_end(w);
        bwi_json_end(w);
    }
    bwi_json_end(w);
    while (w->text.length % LENGTH_BYTES && !w->text.failed) { /* aligns the data */
        bwi_text_add(&w->text, " ");
    }
}

/* The file is eight bytes of length, the header, then all values in Keras's order. */
static bw_status save(bw_model *model, const char *path, bwi_file_out *out)
{
    (void)path;
    const bwi_graph *graph = &model->graph;
    bwi_json_writer w = {.text = {.ctx = model->ctx}};
    unsigned char length[LENGTH_BYTES];
    size_t data;
    put_header(graph, &w, &data);
    for (int i = 0; i < LENGTH_BYTES; i++) {
        length[i] = (unsigned char)((uint64_t)w.text.length >> 8 * i);
    }
    bw_status status = w.text.failed ? BW_RESOURCE_EXHAUSTED : bwi_file_put(out, length, sizeof length);
    status = status == BW_OK ? bwi_file_put(out, w.text.bytes, w.text.length) : status;
    bwi_text_free(&w.text);
    for (int v = 0; v < graph->variable_count && status == BW_OK; v++) {
        status = bwi_values_put(model->ctx, &(bwi_values){.variable = graph->variables[v]}, bwi_file_sink(out));
    }
    return status;
}

const bwi_file_row bwi_file_safetensors = {".safetensors", "weights by name", NULL, load_weights, save, false};
