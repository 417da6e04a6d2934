/*
 * Gathers samples into a tile, whatever the kind of dataset. Kinds that hold their values hand rows of host memory to the
 * destination's kernels; kinds that make one sample at a time make it in scratch, from which the kernels take it. Nothing else
 * writes a tile. This runs on several threads at once.
 */
#include "data/ahead/ahead.h"

#include <math.h>
#include <string.h>

bwi_destination bwi_host_destination(void *data, bw_dtype dtype, int64_t values)
{
    return (bwi_destination){
        .kernels = bwi_kernels_host()->gather, .data = data, .dtype = dtype, .h = 1, .w = 1, .c = values, .block = values};
}

bw_status bwi_gather_fail(const bw_dataset *dataset, int field, int64_t number, const bwi_destination *to, char *error)
{
    static const char *const roles[] = {"input", "target", "weight"};
    return bwi_sample_error(dataset, number, error, BW_INVALID_ARGUMENT, "its %s cannot be read as %s",
                            roles[dataset->columns[field].field.role], bwi_dtype_name(to->dtype));
}

/* A target that is no class number is shown, as far as the first few values of its sample tell. `row` is its place in `rows`. */
static bw_status fail_number(const bw_dataset *dataset, const bwi_host_rows *rows, int64_t row, int field, int64_t number,
                             const bwi_destination *to, char *error)
{
    enum { SHOWN = 16 };
    float values[SHOWN];
    bool target = to->dtype == BW_I32 && dataset->columns[field].field.role == BWI_ROLE_TARGET && rows->values <= SHOWN;
    bwi_destination host = bwi_host_destination(values, BW_F32, rows->values);
    if (!target || host.kernels->rows(rows, &row, 1, &host) != BWI_GATHERED) {
        return bwi_gather_fail(dataset, field, number, to, error);
    }
    int64_t at = 0;
    while (at + 1 < rows->values && values[at] == rintf(values[at]) && fabsf(values[at]) < 0x1p31F) {
        at++;
    }
    bool whole = values[at] == rintf(values[at]) && fabsf(values[at]) < INFINITY;
    return bwi_sample_error(dataset, number, error, BW_INVALID_ARGUMENT,
                            "its target cannot be read as int32: it is %.9g, and class numbers are %s; for other numbers use a "
                            "loss such as mean_squared_error",
                            (double)values[at], whole ? "integers of 32 bits" : "whole");
}

/* Texts are no numbers, and never get into a tile: their addresses and sizes are copied, as int32, to host memory. */
static bw_status gather_texts(const bw_dataset *dataset, const bwi_host_rows *rows, const bwi_demand *demand)
{
    int64_t words = (int64_t)(sizeof(bw_text) / sizeof(int32_t));
    bwi_host_rows as_words = *rows;
    bwi_destination to = *demand->to;
    if (to.dtype != BW_TEXT || rows->axes != 1 || rows->stride[0] != (int64_t)sizeof(bw_text)) {
        return bwi_gather_fail(dataset, demand->field, demand->numbers[0], demand->to, demand->error);
    }
    as_words.dtype = to.dtype = BW_I32;
    as_words.scale = 1;
    as_words.values = as_words.extent[0] = rows->values * words;
    as_words.stride[0] = (int64_t)sizeof(int32_t);
    to.c = to.block = to.c * words;
    return to.kernels->rows(&as_words, demand->numbers, demand->n, &to) == BWI_GATHERED ? BW_OK : BW_INVALID_ARGUMENT;
}

bw_status bwi_rows_gather(const bw_dataset *dataset, const bwi_host_rows *rows, const bwi_demand *demand)
{
    if (rows->dtype == BW_TEXT) {
        return gather_texts(dataset, rows, demand);
    }
    int64_t result = demand->to->kernels->rows(rows, demand->numbers, demand->n, demand->to);
    if (result == BWI_GATHERED) {
        return BW_OK;
    }
    if (result < 0) {
        return BW_INVALID_ARGUMENT;
    }
    int64_t number = demand->numbers[result];
    return fail_number(dataset, rows, number, demand->field, number, demand->to, demand->error);
}

/* ---- Samples that are made ---- */

/* Puts one sample, in row-major order, as the only row of its array. */
static bw_status put(const bw_dataset *content, int field, bw_dtype dtype, double scale, const void *values, int64_t number,
                     const bwi_destination *to, char *error)
{
    int64_t count = content->columns[field].rows.values, size = (int64_t)bwi_dtype_size(dtype);
    bwi_host_rows rows = {
        .data = values, .dtype = dtype, .axes = 1, .values = count, .scale = scale, .extent = {count}, .stride = {size}};
    if (dtype == BW_TEXT) {
        bwi_demand demand = {.field = field, .numbers = &(int64_t){0}, .n = 1, .to = to, .error = error};
        return gather_texts(content, &rows, &demand);
    }
    int64_t result = to->kernels->rows(&rows, &(int64_t){0}, 1, to);
    if (result == BWI_GATHERED) {
        return BW_OK;
    }
    return result < 0 ? BW_INVALID_ARGUMENT : fail_number(content, &rows, 0, field, number, to, error);
}

bw_status bwi_made_put(const bw_dataset *content, int field, const void *values, int64_t number, const bwi_destination *to,
                       char *error)
{
    const bwi_host_rows *rows = &content->columns[field].rows;
    return put(content, field, rows->dtype, rows->scale, values, number, to, error);
}

bw_status bwi_content_put(const bw_dataset *dataset, int field, const void *values, int64_t number, const bwi_destination *to,
                          char *error)
{
    return put(dataset->content, field, bwi_make_dtype(dataset, field), 1, values, number, to, error);
}

static bw_status gather_made(const bw_dataset *content, const bwi_demand *demand)
{
    int field = demand->field;
    void *places[BWI_FIELD_LIMIT] = {NULL}, *values[BWI_FIELD_LIMIT] = {NULL};
    bwi_scratch_slot slot = bwi_scratch_slot_take(content, places);
    bwi_destination to = *demand->to;
    bw_status status = BW_OK;
    if (content->kind->whole) {
        memcpy(values, places, sizeof values);
    }
    values[field] = places[field];
    for (int64_t i = 0; i < demand->n && status == BW_OK; i++) {
        status = content->kind->make(content, demand->epoch, demand->numbers[i], values, demand->error);
        if (status == BW_OK) {
            status = bwi_made_put(content, field, values[field], demand->numbers[i], &to, demand->error);
        }
        bwi_destination_advance(&to, 1);
    }
    bwi_scratch_slot_give(slot);
    return status;
}

/* ---- Any kind ---- */

/* Whether 0 <= number < limit for all numbers. If not, the sign of number or of limit - 1 - number is set, so two numbers are
 * tested at a time without a branch. */
static bool all_below(int64_t limit, const int64_t *numbers, int64_t n)
{
    typedef int64_t pair __attribute__((vector_size(16)));
    int64_t last = limit - 1;
    pair signs = {0}, v;
    for (int64_t i = 0; i + 1 < n; i += 2) {
        memcpy(&v, numbers + i, sizeof v);
        signs |= v | (last - v);
    }
    int64_t odd = n % 2 ? numbers[n - 1] : 0;
    return (signs[0] | signs[1] | odd | (last - odd)) >= 0;
}

/* What is gone reads as zeros, so that samples that were just gathered may be wrong. */
static bool has_shrunk(const bw_dataset *content)
{
    bool shrunk = false;
    if (atomic_load_explicit(&content->owned.ctx->shrunk, memory_order_relaxed)) {
        for (int i = 0; i < content->file_count; i++) {
            shrunk = shrunk || bwi_file_has_shrunk(&content->files[i]);
        }
    }
    return shrunk;
}

bw_status bwi_content_gather(const bw_dataset *dataset, const bwi_demand *demand)
{
    const bw_dataset *content = dataset->content;
    if (demand->field < 0 || demand->field >= content->column_count) {
        return BW_INVALID_ARGUMENT;
    }
    if (!all_below(content->numbers, demand->numbers, demand->n)) {
        return BW_INVALID_ARGUMENT;
    }
    bw_status status = content->kind->gather ? content->kind->gather(content, demand) : gather_made(content, demand);
    return has_shrunk(content) ? bwi_sample_error(content, demand->numbers[0], demand->error, BW_DATA_LOSS, "%s", bwi_shrunk_text)
                               : status;
}

bw_status bwi_dataset_gather(const bw_dataset *dataset, int field, int epoch, const int64_t *numbers, int64_t n,
                             const bwi_destination *to, char *error)
{
    bwi_demand demand = {.field = field, .epoch = epoch, .numbers = numbers, .n = n, .to = to, .error = error};
    if (dataset->prefetcher && bwi_prefetcher_runs(dataset->prefetcher)) {
        return bwi_prefetcher_gather(dataset->prefetcher, dataset, &demand);
    }
    return bwi_content_gather(dataset, &demand);
}
