/* Values of a dataset's fields, for those who look at the data itself: class counts, a confusion matrix. */
#include "data/internal.h"

#include <string.h>

static int find_field(const bw_dataset *dataset, const char *name)
{
    static const char *const prefixes[] = {"x", "y", "w"};
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

/* Gathers a few samples at a time, so that cancelling is noticed in between. */
static bw_status gather(bw_dataset *dataset, int field, int64_t first, int64_t count, int64_t values, float *to)
{
    enum { AT_ONCE = 256 };
    bw_context *ctx = dataset->owned.ctx;
    int64_t numbers[AT_ONCE];
    char error[BWI_GATHER_ERROR] = "";
    for (int64_t done = 0; done < count; done += AT_ONCE) {
        int64_t n = count - done < AT_ONCE ? count - done : AT_ONCE;
        for (int64_t i = 0; i < n; i++) {
            numbers[i] = bwi_dataset_number(dataset, 0, first + done + i);
        }
        bwi_destination place = bwi_host_destination(to + done * values, BW_F32, values);
        bwi_demand demand = {.field = field, .numbers = numbers, .n = n, .to = &place, .error = error};
        bw_status status = bwi_content_gather(dataset, &demand);
        if (status != BW_OK) {
            return bwi_fail(ctx, status, "%s", error[0] ? error : "the values cannot be read");
        }
        if (bwi_cancelled(ctx)) {
            return bwi_cancel_report(ctx);
        }
    }
    return BW_OK;
}

/* Range and capacity are checked before anything is prepared, which may read all of the data. */
static bw_status read_values(bw_dataset *dataset, const char *name, int64_t first, int64_t count, float *values, size_t capacity)
{
    bw_context *ctx = dataset->owned.ctx;
    if (!name) {
        return bwi_fail(ctx, BW_INVALID_ARGUMENT, "bw_dataset_values: the name of the field is NULL");
    }
    int f = find_field(dataset, name);
    if (f < 0) {
        return bwi_fail(ctx, BW_NOT_FOUND, "the data has no field %.60s", name);
    }
    if (first < 0 || count < 0 || first > dataset->count || count > dataset->count - first) {
        return bwi_fail(ctx, BW_OUT_OF_RANGE, "%s: expected samples among %lld, got %lld from %lld on", name,
                        (long long)dataset->count, (long long)count, (long long)first);
    }
    const bwi_field *field = bwi_dataset_field(dataset, f);
    int64_t each = 1;
    for (int i = 0; i < field->ndim; i++) {
        each *= field->shape[i];
    }
    if (capacity != bwi_size_multiply((size_t)count, (size_t)each) || (capacity > 0 && !values)) {
        return bwi_fail(ctx, BW_INVALID_ARGUMENT, "%s: expected room for %zu numbers, got %zu", name,
                        bwi_size_multiply((size_t)count, (size_t)each), capacity);
    }
    bw_status status = bwi_dataset_begin_below(dataset); /* such as statistics that are fitted first */
    return status == BW_OK ? gather(dataset, f, first, count, each, values) : status;
}

bw_status bw_dataset_values(bw_dataset *dataset, const char *name, int64_t first, int64_t count, float *values, size_t capacity)
{
    bw_context *ctx = bwi_dataset_context(dataset);
    bw_status status = ctx ? bwi_call_begin(ctx) : BW_INVALID_ARGUMENT;
    return status == BW_OK ? bwi_call_end(ctx, read_values(dataset, name, first, count, values, capacity)) : status;
}
