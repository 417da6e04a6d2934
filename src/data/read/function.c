/* Samples that a function of the program makes, given their number. The function runs on several threads at once. */
#include "data/ahead/ahead.h"
#include "data/read/read.h"

#include <string.h>

bool bw_sample_cancelled(const bw_sample *sample)
{
    return bwi_cancelled(sample->context) || bwi_prefetcher_stopping();
}

bw_sample bwi_sample(const bw_dataset *dataset, uint64_t seed, int epoch, int64_t number, char *error)
{
    const uint64_t key[2] = {(uint64_t)epoch, (uint64_t)number};
    error[0] = 0;
    return (bw_sample){.number = number,
                       .epoch = epoch,
                       .random = {.seed = seed, .stream = bwi_hash(seed, key, sizeof key)},
                       .error = error,
                       .context = dataset->owned.ctx};
}

bw_status bwi_sample_failed(const bw_dataset *dataset, const bw_sample *sample, const char *what, char *error)
{
    if (bwi_cancelled(dataset->owned.ctx)) {
        return BW_CANCELLED;
    }
    sample->error[BW_ERROR_TEXT - 1] = 0;
    return bwi_sample_error(dataset, sample->number, error, BW_INVALID_ARGUMENT, "%s%s%s", what, sample->error[0] ? ": " : "",
                            sample->error);
}

typedef struct function {
    bw_sample_function make;
    void *user;
} function;

static bw_status make(const bw_dataset *dataset, int epoch, int64_t number, void *const *values, char *error)
{
    const function *state = dataset->state;
    char text[BW_ERROR_TEXT];
    bw_sample sample = bwi_sample(dataset, 0, epoch, number, text);
    if (state->make(state->user, &sample, values)) {
        return BW_OK;
    }
    return bwi_sample_failed(dataset, &sample, "the function that makes it failed", error);
}

static const bwi_dataset_kind functions = {.name = "function", .make = make};

bw_status bwi_dataset_declare_fields(bw_dataset *dataset, const bw_field *fields, int count)
{
    bw_context *ctx = dataset->owned.ctx;
    bw_status status = BW_OK;
    for (bwi_role role = BWI_ROLE_INPUT; role <= BWI_ROLE_WEIGHT && status == BW_OK; role++) {
        for (int i = 0; i < count && status == BW_OK; i++) {
            const bw_array *array = &fields[i].array;
            bwi_field field = {.dtype = array->dtype, .ndim = array->ndim - 1};
            const char *name = "";
            status = bwi_field_parse(ctx, fields[i].name, &field.role, &name);
            if (status == BW_OK && field.role != role) {
                continue;
            }
            if (status == BW_OK && field.dtype == BW_TEXT) {
                status = bwi_fail(ctx, BW_INVALID_ARGUMENT, "array '%s': functions and generators make numbers, no text",
                                  fields[i].name);
            }
            if (status == BW_OK && (array->ndim < 1 || array->ndim > BW_MAX_NDIM)) {
                status =
                    bwi_fail(ctx, BW_INVALID_ARGUMENT, "array '%s': 1 to %d axes, the first of which counts the samples; found %d",
                             fields[i].name, BW_MAX_NDIM, array->ndim);
            }
            if (status != BW_OK) {
                break;
            }
            strcpy(field.name, name);
            memcpy(field.shape, array->shape + 1, (size_t)field.ndim * sizeof *array->shape);
            status = bwi_dataset_declare(dataset, &field, fields[i].name);
        }
    }
    return status;
}

static bw_status check(bw_context *ctx, const bw_field *fields, int count, bw_sample_function function_)
{
    if (!fields || count < 1 || count > BWI_FIELD_LIMIT || !function_) {
        return bwi_fail(ctx, BW_INVALID_ARGUMENT, "samples from a function need the function and 1 to %d fields; there are %d",
                        BWI_FIELD_LIMIT, fields ? count : 0);
    }
    for (int i = 0; i < count; i++) {
        int64_t samples = fields[i].array.ndim > 0 ? fields[i].array.shape[0] : 0;
        if (samples < 1 || samples != fields[0].array.shape[0]) {
            return bwi_fail(ctx, BW_INVALID_ARGUMENT, "array '%s': the first extent is the number of samples; found %lld%s",
                            fields[i].name ? fields[i].name : "", (long long)samples, i ? ", unlike the first array" : "");
        }
    }
    return BW_OK;
}

bw_dataset *bw_from_function(bw_context *ctx, const bw_field *fields, int count, bw_sample_function function_, void *user)
{
    if (!ctx) {
        return NULL;
    }
    if (check(ctx, fields, count, function_) != BW_OK) {
        return bwi_pass_on(ctx);
    }
    bw_dataset *root = bwi_dataset_root(ctx, &functions, count, sizeof(function));
    if (!root) {
        return NULL;
    }
    *(function *)root->state = (function){.make = function_, .user = user};
    root->count = root->numbers = fields[0].array.shape[0];
    return bwi_dataset_working(root, bwi_dataset_declare_fields(root, fields, count));
}
