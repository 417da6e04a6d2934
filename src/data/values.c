/* Values of a dataset's fields, for callers that look at the data themselves, e.g. to count classes or make a confusion matrix. */
#include "data/internal.h"

#include <string.h>

/* By role: what a field's name in bw_field begins with. */
static const char *const prefixes[] = {"x", "y", "w"};

static int find_field(const bw_dataset *dataset, const char *name)
{
    for (int f = 0; f < bwi_dataset_fields(dataset); f++) {
        const bwi_field *field = bwi_dataset_field(dataset, f);
        const char *prefix = prefixes[field->role];
        if (name[0] == prefix[0] && (field->name[0] ? name[1] == '_' && strcmp(name + 2, field->name) == 0 : name[1] == 0)) {
            return f;
        }
    }
    return -1;
}

int bw_dataset_field(const bw_dataset *dataset, const char *name, int64_t *shape)
{
    int f = dataset && name && shape ? find_field(dataset, name) : -1;
    if (f < 0) {
        return -1;
    }
    const bwi_field *field = bwi_dataset_field(dataset, f);
    memcpy(shape, field->shape, (size_t)field->ndim * sizeof *shape);
    return field->ndim;
}

bool bw_dataset_field_at(const bw_dataset *dataset, int number, bw_field_facts *facts)
{
    if (!dataset || !facts || number < 0 || number >= bwi_dataset_fields(dataset)) {
        return false;
    }
    const bwi_field *field = bwi_dataset_field(dataset, number);
    *facts = (bw_field_facts){.dtype = bwi_work_dtype(dataset, number), .ndim = field->ndim};
    snprintf(facts->name, sizeof facts->name, "%s%s%s", prefixes[field->role], field->name[0] ? "_" : "", field->name);
    memcpy(facts->shape, field->shape, (size_t)field->ndim * sizeof *field->shape);
    return true;
}

/* Samples that are chosen by their numbers or, if these are NULL, by position in the order of epoch 0. */
typedef struct wanted {
    bw_dataset *dataset;
    int field, epoch;
    const int64_t *numbers;
    int64_t first, count, each; /* each: values of a sample */
} wanted;

/* Gathers a few samples at a time, so that cancelling is noticed in between. */
static bw_status gather(const wanted *w, float *to)
{
    enum { AT_ONCE = 256 };
    bw_context *ctx = w->dataset->owned.ctx;
    int64_t numbers[AT_ONCE];
    char error[BWI_GATHER_ERROR] = "";
    for (int64_t done = 0; done < w->count; done += AT_ONCE) {
        int64_t n = w->count - done < AT_ONCE ? w->count - done : AT_ONCE;
        for (int64_t i = 0; i < n; i++) {
            numbers[i] = w->numbers ? w->numbers[done + i] : bwi_dataset_number(w->dataset, 0, w->first + done + i);
        }
        bwi_destination place = bwi_host_destination(to + done * w->each, BW_F32, w->each);
        bwi_demand demand = {.field = w->field, .epoch = w->epoch, .numbers = numbers, .n = n, .to = &place, .error = error};
        bw_status status = bwi_content_gather(w->dataset, &demand);
        if (status != BW_OK) {
            return bwi_fail(ctx, status, "%s", error[0] ? error : "the values cannot be read");
        }
        if (bwi_cancelled(ctx)) {
            return bwi_cancel_report(ctx);
        }
    }
    return BW_OK;
}

/* Finds the field, and checks that the caller's array has room for exactly its values. */
static bw_status find_wanted(wanted *w, const char *what, const char *name, const float *values, size_t capacity)
{
    bw_context *ctx = w->dataset->owned.ctx;
    if (!name) {
        return bwi_fail(ctx, BW_INVALID_ARGUMENT, "%s: the name of the field is NULL", what);
    }
    w->field = find_field(w->dataset, name);
    if (w->field < 0) {
        return bwi_fail(ctx, BW_NOT_FOUND, "the data has no field %.60s", name);
    }
    const bwi_field *field = bwi_dataset_field(w->dataset, w->field);
    w->each = 1;
    for (int i = 0; i < field->ndim; i++) {
        w->each *= field->shape[i];
    }
    size_t expected = bwi_size_multiply((size_t)w->count, (size_t)w->each);
    if (capacity != expected || (capacity > 0 && !values)) {
        return bwi_fail(ctx, BW_INVALID_ARGUMENT, "%s: expected room for %zu numbers, got %zu", name, expected,
                        values ? capacity : 0);
    }
    return BW_OK;
}

/* Range and capacity are checked before anything is prepared, because preparing may read all of the data. */
bw_status bwi_dataset_read_values(bw_dataset *dataset, const char *name, int64_t first, int64_t count, void *values,
                                  size_t capacity)
{
    bw_context *ctx = dataset->owned.ctx;
    if (name && find_field(dataset, name) >= 0 &&
        (first < 0 || count < 0 || first > dataset->count || count > dataset->count - first)) {
        return bwi_fail(ctx, BW_OUT_OF_RANGE, "%s: expected samples among %lld, got %lld from %lld on", name,
                        (long long)dataset->count, (long long)count, (long long)first);
    }
    wanted w = {.dataset = dataset, .first = first, .count = count};
    bw_status status = find_wanted(&w, "bw_dataset_values", name, values, capacity);
    if (status == BW_OK) {
        status = bwi_dataset_begin_below(dataset); /* e.g. fits statistics */
    }
    return status == BW_OK ? gather(&w, values) : status;
}

bw_status bw_dataset_values(bw_dataset *dataset, const char *name, int64_t first, int64_t count, float *values, size_t capacity)
{
    bw_context *ctx = bwi_dataset_context(dataset);
    bw_status status = ctx ? bwi_call_begin(ctx) : BW_INVALID_ARGUMENT;
    return status == BW_OK ? bwi_call_end(ctx, bwi_dataset_read_values(dataset, name, first, count, values, capacity)) : status;
}

static bw_status read_batch(const bw_batch *batch, const char *name, float *values, size_t count)
{
    wanted w = {.dataset = batch->dataset, .epoch = batch->epoch, .numbers = batch->numbers, .count = batch->count};
    bw_status status = find_wanted(&w, "bw_batch_values", name, values, count);
    if (status == BW_OK) {
        status = bwi_dataset_begin_below(batch->dataset);
    }
    return status == BW_OK ? gather(&w, values) : status;
}

bw_status bw_batch_values(bw_batch *batch, const char *name, float *values, size_t count)
{
    bw_context *ctx = batch ? batch->dataset->owned.ctx : NULL;
    bw_status status = batch ? bwi_call_begin(ctx) : BW_INVALID_ARGUMENT;
    return status == BW_OK ? bwi_call_end(ctx, read_batch(batch, name, values, count)) : status;
}
