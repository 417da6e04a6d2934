/* A generator is a function of the program that returns one sample after another: the source of a stream. It is called only when
 * samples are needed. */
#include "data/read/read.h"

#include <string.h>

#define FIRST_SAMPLES 64

typedef struct generator {
    bw_generator_function next;
    void *user;
    int64_t capacity;
    bw_status status; /* the function's failure, which is reported again */
    char error[BWI_GATHER_ERROR];
} generator;

static size_t column_bytes(const bwi_column *column)
{
    return (size_t)column->rows.values * bwi_dtype_size(column->field.dtype);
}

/* The capacity doubles; beyond a limit the backing is a temporary file, which is logged once. */
static bw_status grow(bw_dataset *root)
{
    generator *state = root->state;
    int64_t capacity = state->capacity ? state->capacity * 2 : FIRST_SAMPLES;
    char what[64];
    snprintf(what, sizeof what, "generator, after %lld samples", (long long)root->numbers);
    for (int f = 0; f < root->column_count; f++) {
        bwi_column *column = &root->columns[f];
        size_t bytes = column_bytes(column);
        bool in_memory = !column->backing.opened;
        bw_status status = bwi_backing_grow(root->owned.ctx, &column->backing, bwi_size_multiply((size_t)root->numbers, bytes),
                                            bwi_size_multiply((size_t)capacity, bytes), what);
        if (status != BW_OK) {
            return status;
        }
        if (in_memory && column->backing.opened) {
            bwi_log(root->owned.ctx, BW_LOG_INFO, "%s: samples go on in a temporary file; bw_take limits a stream without an end",
                    what);
        }
        column->rows.data = column->backing.memory;
    }
    state->capacity = capacity;
    return BW_OK;
}

static bw_status end(bw_dataset *root)
{
    if (root->numbers == 0) {
        return bwi_fail(root->owned.ctx, BW_INVALID_ARGUMENT, "the generator gave no samples");
    }
    root->live = false;
    root->count = root->numbers;
    return BW_OK;
}

static bw_status next(bw_dataset *root, bool *ended)
{
    generator *state = root->state;
    void *values[BWI_FIELD_LIMIT];
    char text[BW_ERROR_TEXT];
    bw_status status = root->numbers == state->capacity ? grow(root) : BW_OK;
    if (status != BW_OK) {
        return status;
    }
    for (int f = 0; f < root->column_count; f++) {
        values[f] = (unsigned char *)root->columns[f].backing.memory + (size_t)root->numbers * column_bytes(&root->columns[f]);
    }
    bw_sample sample = bwi_sample(root, 0, 0, root->numbers, text);
    int result = state->next(state->user, &sample, values);
    *ended = result == 0;
    root->numbers += result > 0;
    return result < 0 ? bwi_sample_failed(root, &sample, "the generator failed", state->error) : BW_OK;
}

/* A failure of the function is final and reported again by each later call; cancelling and a lack of memory are not. */
static bw_status pull(bw_dataset *root, int64_t upto)
{
    bw_context *ctx = root->owned.ctx;
    generator *state = root->state;
    bool ended = false;
    while (state->status == BW_OK && !ended && root->numbers < upto) {
        if (bwi_cancelled(ctx)) {
            return bwi_cancel_report(ctx);
        }
        state->status = next(root, &ended);
    }
    for (int f = 0; f < root->column_count; f++) {
        root->columns[f].samples = root->numbers;
    }
    if (state->status == BW_CANCELLED) { /* the next call may ask again */
        state->status = BW_OK;
        return bwi_cancel_report(ctx);
    }
    if (state->error[0]) {
        return bwi_fail(ctx, state->status, "%s", state->error);
    }
    if (state->status != BW_OK) { /* there may be memory later */
        bw_status status = state->status;
        state->status = BW_OK;
        return status;
    }
    return ended ? end(root) : BW_OK;
}

static bw_status gather(const bw_dataset *dataset, const bwi_demand *demand)
{
    return bwi_kind_arrays.gather(dataset, demand);
}

static const bwi_dataset_kind kind = {.name = "generator", .gather = gather, .stream = {.pull = pull, .follows = true}};

bw_dataset *bw_from_generator(bw_context *ctx, const bw_field *fields, int count, bw_generator_function function, void *user)
{
    if (!ctx) {
        return NULL;
    }
    if (!fields || count < 1 || count > BWI_FIELD_LIMIT || !function) {
        return bwi_fail_build(ctx, BW_INVALID_ARGUMENT,
                              "samples from a generator need the function and 1 to %d fields; there are %d", BWI_FIELD_LIMIT,
                              fields ? count : 0);
    }
    bw_dataset *root = bwi_dataset_root(ctx, &kind, count, sizeof(generator));
    if (!root) {
        return NULL;
    }
    *(generator *)root->state = (generator){.next = function, .user = user};
    root->live = true;
    root->count = BWI_LIVE;
    if (bwi_dataset_declare_fields(root, fields, count) == BW_OK) {
        return root;
    }
    bw_dataset_free(root);
    return bwi_pass_on(ctx);
}
