/*
 * Map: a program's function changes samples, one at a time, on several threads. It sees float32 and int32 in row-major order,
 * whatever types the source has. A stage below the map holds the original sample; the function writes the fields of the map, which
 * begin as copies of the stage's fields where they agree.
 */
#include "data/read/read.h"
#include "data/transform/transform.h"

#include <string.h>

typedef struct mapping {
    bw_map_function run;
    void *user;
    uint64_t seed;
    int same[BWI_FIELD_LIMIT]; /* [field]: the stage's field of which it begins as a copy; -1: none */
} mapping;

/* ---- The stage ---- */

static bw_status stage_make(const bw_dataset *dataset, int epoch, int64_t number, void *const *values, char *error)
{
    return bwi_content_work(dataset->upstream, epoch, number, values, error);
}

static const bwi_dataset_kind stage = {.name = "stage", .make = stage_make, .stream = {.follows = true}};

bw_dataset *bwi_dataset_stage(bw_dataset *dataset)
{
    int count = bwi_dataset_fields(dataset);
    bw_dataset *made = bwi_dataset_over(dataset, &stage, count, 0);
    bw_status status = made ? BW_OK : BW_RESOURCE_EXHAUSTED;
    for (int f = 0; f < count && status == BW_OK; f++) {
        bwi_field field = *bwi_dataset_field(dataset, f);
        field.dtype = bwi_work_dtype(dataset, f);
        status = bwi_dataset_declare(made, &field, "map");
    }
    if (status == BW_OK) {
        status = bwi_scratch_open(made);
    }
    if (status == BW_OK) {
        return made;
    }
    bw_dataset_free(made);
    return NULL;
}

/* ---- The map ---- */

/* Fields begin as copies of those below, or as zeros, so that a function need only write what it changes. */
static bw_status make(const bw_dataset *dataset, int epoch, int64_t number, void *const *values, char *error)
{
    const mapping *state = dataset->state;
    const bw_dataset *below = dataset->upstream;
    void *from[BWI_FIELD_LIMIT];
    char text[BW_ERROR_TEXT];
    bwi_scratch_slot slot = bwi_scratch_slot_take(below, from);
    bw_status status = bwi_content_work(below->upstream, epoch, number, from, error);
    for (int f = 0; f < dataset->column_count && status == BW_OK; f++) {
        const bwi_column *column = &dataset->columns[f];
        size_t bytes = (size_t)column->rows.values * bwi_dtype_size(column->field.dtype);
        if (state->same[f] >= 0) {
            memcpy(values[f], from[state->same[f]], bytes);
        } else {
            memset(values[f], 0, bytes);
        }
    }
    if (status == BW_OK) {
        bw_sample sample = bwi_sample(dataset, state->seed, epoch, number, text);
        if (!state->run(state->user, &sample, (const void *const *)from, values)) {
            status = bwi_sample_failed(dataset, &sample, "the map function failed", error);
        }
    }
    bwi_scratch_slot_give(slot);
    return status;
}

static const bwi_dataset_kind maps = {
    .name = "map", .make = make, .whole = true, .keeps = BWI_KEEPS_UNKNOWN, .stream = {.follows = true}};

static bw_status declare(bw_dataset *made, const bw_map_options *options)
{
    const bw_dataset *below = made->upstream;
    bw_status status = BW_OK;
    if (options->fields) {
        return bwi_dataset_declare_fields(made, options->fields, options->field_count);
    }
    for (int f = 0; f < below->column_count && status == BW_OK; f++) {
        status = bwi_dataset_declare(made, &below->columns[f].field, "map");
    }
    return status;
}

/* Finds the stage's field that each field agrees with and is copied from. */
static bw_status match(bw_dataset *made)
{
    mapping *state = made->state;
    for (int f = 0; f < made->column_count; f++) {
        const bwi_field *field = &made->columns[f].field;
        state->same[f] = -1;
        if (field->dtype != BW_F32 && field->dtype != BW_I32) {
            return bwi_fail(made->owned.ctx, BW_INVALID_ARGUMENT, "map: its fields are float32 or int32, found %s",
                            bwi_dtype_name(field->dtype));
        }
        for (int g = 0; g < made->upstream->column_count; g++) {
            const bwi_field *other = &made->upstream->columns[g].field;
            if (other->role == field->role && other->dtype == field->dtype && other->ndim == field->ndim &&
                strcmp(other->name, field->name) == 0 &&
                memcmp(other->shape, field->shape, (size_t)field->ndim * sizeof *field->shape) == 0) {
                state->same[f] = g;
            }
        }
    }
    return BW_OK;
}

static bw_status find_options(bw_context *ctx, bw_map_options *options, const bw_map_options *given)
{
    *options = (bw_map_options)BW_MAP_OPTIONS_DEFAULT;
    bw_status status = bwi_options_copy(ctx, options, sizeof *options, given, "bw_map_options");
    if (status == BW_OK && options->fields && (options->field_count < 1 || options->field_count > BWI_FIELD_LIMIT)) {
        return bwi_fail(ctx, BW_INVALID_ARGUMENT, "map: 1 to %d fields, found %d", BWI_FIELD_LIMIT, options->field_count);
    }
    return status;
}

/* The stage below holds the sample in the types that functions see. */
static bw_dataset *build(bw_dataset *dataset, bw_map_function function, void *user, const bw_map_options *given)
{
    bw_context *ctx = dataset->owned.ctx;
    bw_map_options options;
    bw_status status = find_options(ctx, &options, given);
    if (status == BW_OK && !function) {
        status = bwi_fail(ctx, BW_INVALID_ARGUMENT, "map needs a function; it is NULL");
    }
    bw_dataset *below = status == BW_OK ? bwi_dataset_stage(dataset) : NULL;
    if (!below) {
        return bwi_pass_on(ctx);
    }
    int count = options.fields ? options.field_count : below->column_count;
    bw_dataset *made = bwi_dataset_take(below, bwi_dataset_over(below, &maps, count, sizeof(mapping)));
    if (!made) {
        return NULL;
    }
    *(mapping *)made->state = (mapping){.run = function, .user = user, .seed = options.seed};
    status = declare(made, &options);
    if (status == BW_OK) {
        status = match(made);
    }
    return bwi_dataset_working(made, status);
}

bw_dataset *bw_map(bw_dataset *dataset, bw_map_function function, void *user, const bw_map_options *options)
{
    return dataset ? bwi_dataset_take(dataset, build(dataset, function, user, options)) : NULL;
}
