/*
 * Vectorised samples: what the layers for text and categories (src/front) make of inputs, as further inputs, while samples are
 * gathered. Inputs that are numbers and all targets and weights stay; texts go no further than this stage. The fronts are the
 * model's; whoever makes such a dataset keeps the model.
 */
#include "data/transform/transform.h"

#include <string.h>

/* Bytes of the values that one sample has for a front; they lie on the stack. */
enum { RAW_BYTES = 8192 };

typedef struct vectorize {
    int passed[BWI_FIELD_LIMIT]; /* of each column: the field below it; -1: made here */
    int first, fronts;           /* the columns that are made here */
    bwi_front_field front[BWI_FIELD_LIMIT];
} vectorize;

static bw_status make_front(const bw_dataset *dataset, const vectorize *state, int front, int epoch, int64_t number, void *to,
                            char *error);

static int64_t values_of(const bwi_front_field *field)
{
    int64_t count = 1;
    for (int i = 0; i < field->ndim; i++) {
        count *= field->shape[i];
    }
    return count;
}

/* Reads one input of a front: a field below, or what another front makes of one. */
static bw_status read_raw(const bw_dataset *dataset, const vectorize *state, int input, int epoch, int64_t number, void *room,
                          bwi_front_value *value, char *error)
{
    if (input < 0) {
        const bwi_front_field *other = &state->front[-1 - input];
        *value = (bwi_front_value){.dtype = other->dtype, .count = values_of(other), .values = room};
        return make_front(dataset, state, -1 - input, epoch, number, room, error);
    }
    const bw_dataset *below = dataset->upstream;
    bw_dtype dtype = bwi_work_dtype(below, input);
    int64_t count = below->content->columns[input].rows.values;
    bwi_destination host = bwi_host_destination(room, dtype, count);
    bwi_demand demand = {.field = input, .epoch = epoch, .numbers = &number, .n = 1, .to = &host, .error = error};
    *value = (bwi_front_value){.dtype = dtype, .count = count, .values = room};
    return bwi_content_gather(below, &demand);
}

/* Recursion is as deep as fronts follow each other; one takes earlier ones only. */
static bw_status make_front(const bw_dataset *dataset, const vectorize *state, int front, int epoch, int64_t number, void *to,
                            char *error)
{
    const bwi_front_field *field = &state->front[front];
    char room[RAW_BYTES] __attribute__((aligned(16))), what[BWI_ITEM_ERROR] = "";
    bwi_front_value value[BWI_FRONT_INPUTS];
    size_t used = 0;
    bw_status status = BW_OK;
    for (int k = 0; k < field->inputs && status == BW_OK; k++) {
        status = read_raw(dataset, state, field->input[k], epoch, number, room + used, &value[k], error);
        used += ((size_t)value[k].count * bwi_dtype_size(value[k].dtype) + 15) / 16 * 16;
    }
    if (status != BW_OK) {
        return status;
    }
    status = bwi_front_apply(field->front, value, field->inputs, to, what);
    return status == BW_OK ? BW_OK : bwi_sample_error(dataset, number, error, status, "layer %s: %s", field->name, what);
}

static bw_status make(const bw_dataset *dataset, int epoch, int64_t number, void *const *values, char *error)
{
    const vectorize *state = dataset->state;
    bw_status status = BW_OK;
    for (int f = 0; f < dataset->column_count && status == BW_OK; f++) {
        if (!values[f]) {
            continue;
        }
        if (state->passed[f] < 0) {
            status = make_front(dataset, state, f - state->first, epoch, number, values[f], error);
            continue;
        }
        bwi_destination host = bwi_host_destination(values[f], dataset->columns[f].field.dtype, dataset->columns[f].rows.values);
        bwi_demand demand = {.field = state->passed[f], .epoch = epoch, .numbers = &number, .n = 1, .to = &host, .error = error};
        status = bwi_content_gather(dataset->upstream, &demand);
    }
    return status;
}

/* What is only passed on is gathered directly. */
static bw_status gather(const bw_dataset *dataset, const bwi_demand *demand)
{
    const vectorize *state = dataset->state;
    int field = demand->field;
    if (state->passed[field] >= 0) {
        bwi_demand below = *demand;
        below.field = state->passed[field];
        return bwi_content_gather(dataset->upstream, &below);
    }
    void *places[BWI_FIELD_LIMIT] = {NULL};
    bwi_scratch_slot slot = bwi_scratch_slot_take(dataset, places);
    bwi_destination to = *demand->to;
    bw_status status = BW_OK;
    for (int64_t i = 0; i < demand->n && status == BW_OK; i++) {
        status = make_front(dataset, state, field - state->first, demand->epoch, demand->numbers[i], places[field], demand->error);
        if (status == BW_OK) {
            status = bwi_made_put(dataset, field, places[field], demand->numbers[i], &to, demand->error);
        }
        bwi_destination_advance(&to, 1);
    }
    bwi_scratch_slot_give(slot);
    return status;
}

static const bwi_dataset_kind kind = {
    .name = "vectorize", .texts = true, .gather = gather, .make = make, .stream = {.follows = true}};

static bw_status check_raw(const bw_dataset *made, const bwi_front_field *fronts, const bwi_front_field *front)
{
    const bw_dataset *below = made->upstream;
    size_t bytes = 0;
    for (int k = 0; k < front->inputs; k++) {
        int input = front->input[k];
        size_t one = input < 0 ? sizeof(float) : bwi_dtype_size(bwi_work_dtype(below, input));
        int64_t count = input < 0 ? values_of(&fronts[-1 - input]) : below->content->columns[input].rows.values;
        bytes = bwi_size_add(bytes, bwi_size_add(bwi_size_multiply((size_t)count, one), 16));
    }
    return bytes <= RAW_BYTES
               ? BW_OK
               : bwi_fail(made->owned.ctx, BW_INVALID_ARGUMENT, "layer %s: a sample has %zu bytes for it; at most %d are supported",
                          front->name, bytes, RAW_BYTES);
}

static bw_status pass(bw_dataset *made, bwi_role from, bwi_role to)
{
    const bw_dataset *below = made->upstream;
    vectorize *state = made->state;
    bw_status status = BW_OK;
    for (int f = 0; f < bwi_dataset_fields(below) && status == BW_OK; f++) {
        bwi_field field = *bwi_dataset_field(below, f);
        field.dtype = bwi_work_dtype(below, f);
        if (field.role >= from && field.role <= to && field.dtype != BW_TEXT) {
            state->passed[made->column_count] = f;
            status = bwi_dataset_declare(made, &field, "vectorize");
        }
    }
    return status;
}

/* The made inputs come first, so that they are the model's first input, then the others, in the order of roles. */
static bw_status declare(bw_dataset *made, const bwi_front_field *fronts, int count)
{
    vectorize *state = made->state;
    bw_status status = BW_OK;
    for (int k = 0; k < count && status == BW_OK; k++) {
        bwi_field field = {.role = BWI_ROLE_INPUT, .dtype = fronts[k].dtype, .ndim = fronts[k].ndim};
        memcpy(field.name, fronts[k].name, sizeof field.name);
        memcpy(field.shape, fronts[k].shape, sizeof field.shape);
        state->front[k] = fronts[k];
        state->passed[made->column_count] = -1;
        status = check_raw(made, fronts, &fronts[k]);
        status = status == BW_OK ? bwi_dataset_declare(made, &field, "vectorize") : status;
    }
    state->fronts = count;
    return status == BW_OK ? pass(made, BWI_ROLE_INPUT, BWI_ROLE_WEIGHT) : status;
}

bw_dataset *bwi_dataset_vectorized(bw_dataset *dataset, const bwi_front_field *fronts, int count)
{
    int columns = bwi_dataset_fields(dataset) + count;
    bw_context *ctx = dataset->owned.ctx;
    if (columns > BWI_FIELD_LIMIT) {
        return bwi_fail_build(ctx, BW_INVALID_ARGUMENT, "%d inputs and targets; samples have at most %d", columns, BWI_FIELD_LIMIT);
    }
    bw_dataset *made = bwi_dataset_over(dataset, &kind, columns, sizeof(vectorize));
    return made ? bwi_dataset_working(made, declare(made, fronts, count)) : NULL;
}

bool bwi_dataset_find_named(const bw_dataset *dataset, const char *name)
{
    bool found = false;
    for (int f = 0; f < bwi_dataset_fields(dataset) && !found; f++) {
        const bwi_field *field = bwi_dataset_field(dataset, f);
        found = field->role == BWI_ROLE_INPUT && field->dtype != BW_TEXT && strcmp(field->name, name) == 0;
    }
    return found;
}

/* One pass over all samples, in the order of an epoch. */
static bw_status fit_all(bw_dataset *dataset, int field, bwi_front_fitting *fitting)
{
    bw_context *ctx = dataset->owned.ctx;
    char room[RAW_BYTES] __attribute__((aligned(16))), error[BWI_GATHER_ERROR] = "";
    bw_dtype dtype = bwi_work_dtype(dataset, field);
    int64_t count = dataset->content->columns[field].rows.values;
    if (bwi_size_multiply((size_t)count, bwi_dtype_size(dtype)) > sizeof room) {
        return bwi_fail(ctx, BW_INVALID_ARGUMENT,
                        "a sample has %lld values for a layer that is fitted; at most %zu bytes are supported", (long long)count,
                        sizeof room);
    }
    bw_status status = BW_OK;
    for (int64_t i = 0; i < dataset->count && status == BW_OK; i++) {
        int64_t number = bwi_dataset_number(dataset, 0, i);
        bwi_destination host = bwi_host_destination(room, dtype, count);
        bwi_demand demand = {.field = field, .epoch = BWI_EPOCH_NONE, .numbers = &number, .n = 1, .to = &host, .error = error};
        status = bwi_content_gather(dataset, &demand);
        if (status != BW_OK) {
            return bwi_fail(ctx, status, "%s", error[0] ? error : "the values cannot be read");
        }
        status = bwi_front_fitting_add(fitting, &(bwi_front_value){.dtype = dtype, .count = count, .values = room});
        if (status == BW_OK && bwi_cancelled(ctx)) {
            status = bwi_cancel_report(ctx);
        }
    }
    return status;
}

bw_status bwi_dataset_fit_front(bw_dataset *dataset, int field, bwi_front *front, const char *name)
{
    bwi_front_fitting *fitting = NULL;
    bw_status status = bwi_dataset_finish(dataset);
    status = status == BW_OK ? bwi_dataset_begin_below(dataset) : status;
    status = status == BW_OK ? bwi_front_fitting_open(front, &fitting) : status;
    if (status == BW_OK) {
        status = fit_all(dataset, field, fitting);
    }
    if (status == BW_OK) {
        status = bwi_front_fitting_end(fitting, name);
    }
    bwi_front_fitting_free(fitting);
    return status;
}
