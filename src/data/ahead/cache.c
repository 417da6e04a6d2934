/*
 * Cache: samples are made once, as in epoch 0, and kept in memory. The first thread that asks for a sample fills its place;
 * threads that need it meanwhile make it for themselves, so that nobody waits. Cached samples are gathered like arrays.
 */
#include "data/transform/transform.h"

#include <string.h>

enum { EMPTY, FILLING, FULL };

typedef struct cache {
    atomic_uchar *filled;  /* [number] */
    unsigned char *memory; /* [number][bytes] */
    size_t bytes;
    size_t offset[BWI_FIELD_LIMIT];
} cache;

static size_t field_bytes(const bwi_column *column)
{
    return (size_t)column->rows.values * bwi_dtype_size(column->field.dtype);
}

static void copy_out(const bw_dataset *dataset, int64_t number, void *const *values)
{
    const cache *state = dataset->state;
    const unsigned char *from = state->memory + (size_t)number * state->bytes;
    for (int f = 0; f < dataset->column_count; f++) {
        if (values[f]) {
            memcpy(values[f], from + state->offset[f], field_bytes(&dataset->columns[f]));
        }
    }
}

/* Fills the place of a sample unless another thread has done so or is doing it. Returns FULL or FILLING, or EMPTY if it failed. */
static int fill(const bw_dataset *dataset, int64_t number, char *error, bw_status *status)
{
    cache *state = dataset->state;
    unsigned char found = EMPTY;
    if (atomic_load_explicit(&state->filled[number], memory_order_acquire) == FULL) {
        return FULL;
    }
    if (!atomic_compare_exchange_strong(&state->filled[number], &found, FILLING)) {
        return found;
    }
    void *places[BWI_FIELD_LIMIT];
    for (int f = 0; f < dataset->column_count; f++) {
        places[f] = state->memory + (size_t)number * state->bytes + state->offset[f];
    }
    *status = bwi_content_make(dataset->upstream, 0, number, places, error);
    found = *status == BW_OK ? FULL : EMPTY;
    atomic_store_explicit(&state->filled[number], found, memory_order_release);
    return found;
}

static bw_status make(const bw_dataset *dataset, int epoch, int64_t number, void *const *values, char *error)
{
    bw_status status = BW_OK;
    int found = fill(dataset, number, error, &status);
    (void)epoch;
    if (found == FULL) {
        copy_out(dataset, number, values);
    } else if (found == FILLING) {
        status = bwi_content_make(dataset->upstream, 0, number, values, error);
    }
    return status;
}

/* A sample that another thread is just filling is made a second time, in scratch. */
static bw_status gather_one(const bw_dataset *dataset, const bwi_demand *one)
{
    void *places[BWI_FIELD_LIMIT];
    bwi_scratch_slot slot = bwi_scratch_slot_take(dataset, places);
    bw_status status = make(dataset, one->epoch, *one->numbers, places, one->error);
    if (status == BW_OK) {
        status = bwi_made_put(dataset, one->field, places[one->field], *one->numbers, one->to, one->error);
    }
    bwi_scratch_slot_give(slot);
    return status;
}

/* Runs of samples that are cached are gathered as rows of the cache's memory. */
static bw_status gather(const bw_dataset *dataset, const bwi_demand *demand)
{
    const cache *state = dataset->state;
    bwi_host_rows rows = dataset->columns[demand->field].rows;
    bwi_destination to = *demand->to;
    bwi_demand part = {.field = demand->field, .numbers = demand->numbers, .to = &to, .error = demand->error};
    rows.data = state->memory + state->offset[demand->field];
    rows.step = (int64_t)state->bytes;
    for (int64_t left = demand->n; left > 0; left -= part.n) {
        bw_status status = BW_OK;
        for (part.n = 0; part.n < left && fill(dataset, part.numbers[part.n], demand->error, &status) == FULL; part.n++) {
        }
        if (status == BW_OK) {
            status = part.n > 0 ? bwi_rows_gather(dataset, &rows, &part) : gather_one(dataset, &part);
        }
        if (status != BW_OK) {
            return status;
        }
        part.n += part.n == 0;
        part.numbers += part.n;
        bwi_destination_advance(&to, part.n);
    }
    return BW_OK;
}

static void close_cache(bw_dataset *dataset)
{
    cache *state = dataset->state;
    bwi_release(dataset->owned.ctx, state->filled);
    bwi_release(dataset->owned.ctx, state->memory);
}

static const bwi_dataset_kind kind = {.name = "cache", .texts = true, .gather = gather, .make = make, .close = close_cache};

/* All memory is allocated now, so that a cache that does not fit is refused before the first sample is made. */
static bw_status open_cache(bw_dataset *made)
{
    bw_context *ctx = made->owned.ctx;
    cache *state = made->state;
    bw_status status = BW_OK;
    char needed[32], there[32];
    for (int f = 0; f < bwi_dataset_fields(made->upstream) && status == BW_OK; f++) {
        bwi_field field = *bwi_dataset_field(made->upstream, f);
        field.dtype = bwi_make_dtype(made->upstream, f);
        status = bwi_dataset_declare(made, &field, "cache");
        state->offset[f] = state->bytes;
        state->bytes = bwi_size_add(state->bytes, bwi_size_align(field_bytes(&made->columns[f]), sizeof(float)));
    }
    size_t bytes = bwi_size_multiply((size_t)made->numbers, bwi_size_add(state->bytes, 1));
    if (status == BW_OK && bytes > (size_t)64 << 20 && bytes > bwi_memory_available(ctx)) {
        status =
            bwi_fail(ctx, BW_RESOURCE_EXHAUSTED, "cache: %lld samples need %s of memory, there are %s", (long long)made->numbers,
                     bwi_format_bytes(needed, bytes), bwi_format_bytes(there, bwi_memory_available(ctx)));
    }
    if (status != BW_OK) {
        return status;
    }
    state->filled = bwi_allocate(ctx, (size_t)made->numbers, sizeof *state->filled);
    state->memory = state->filled ? bwi_allocate(ctx, (size_t)made->numbers, state->bytes) : NULL;
    if (!state->memory) {
        return BW_RESOURCE_EXHAUSTED;
    }
    for (int64_t i = 0; i < made->numbers; i++) {
        atomic_init(&state->filled[i], EMPTY);
    }
    return bwi_scratch_open(made);
}

bw_dataset *bw_cache(bw_dataset *dataset)
{
    if (!dataset) {
        return NULL;
    }
    bw_context *ctx = dataset->owned.ctx;
    if (bwi_dataset_augments(dataset)) {
        bw_dataset_free(dataset);
        return bwi_fail_build(ctx, BW_INVALID_ARGUMENT,
                              "cache: augmented samples would stay as they are in the first epoch; cache first, then augment");
    }
    bw_dataset *made = bwi_dataset_over(dataset, &kind, bwi_dataset_fields(dataset), sizeof(cache));
    if (!made) {
        return bwi_dataset_take(dataset, NULL);
    }
    if (open_cache(made) == BW_OK) {
        return bwi_dataset_take(dataset, made);
    }
    bw_dataset_free(made);
    bw_dataset_free(dataset);
    return bwi_pass_on(ctx);
}
