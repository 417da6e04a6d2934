/*
 * Cache: samples are made once, as in epoch 0, and kept in memory. Whoever is first to make a sample fills its place; others who
 * want it meanwhile make it for themselves. Once all are there, gathering is as from arrays.
 */
#include "data/internal.h"

#include <string.h>

enum { EMPTY, FILLING, FULL };

typedef struct cache {
    atomic_uchar *state;   /* [number] */
    unsigned char *memory; /* [number][bytes] */
    size_t bytes;
    size_t offset[BWI_FIELD_LIMIT];
    atomic_llong full;
} cache;

static size_t field_bytes(const bwi_column *column)
{
    return (size_t)column->values * bwi_dtype_size(column->field.dtype);
}

static void copy_out(const bw_dataset *dataset, int64_t number, void *const *values)
{
    const cache *own = dataset->own;
    const unsigned char *from = own->memory + (size_t)number * own->bytes;
    for (int f = 0; f < dataset->column_count; f++) {
        if (values[f]) {
            memcpy(values[f], from + own->offset[f], field_bytes(&dataset->columns[f]));
        }
    }
}

static bw_status make(const bw_dataset *dataset, int epoch, int64_t number, void *const *values, char *error)
{
    cache *own = dataset->own;
    unsigned char empty = EMPTY;
    (void)epoch;
    if (atomic_load_explicit(&own->state[number], memory_order_acquire) == FULL) {
        copy_out(dataset, number, values);
        return BW_OK;
    }
    if (!atomic_compare_exchange_strong(&own->state[number], &empty, FILLING)) {
        if (empty == FULL) {
            copy_out(dataset, number, values);
            return BW_OK;
        }
        return bwi_content_make(dataset->upstream, 0, number, values, error);
    }
    void *places[BWI_FIELD_LIMIT];
    for (int f = 0; f < dataset->column_count; f++) {
        places[f] = own->memory + (size_t)number * own->bytes + own->offset[f];
    }
    bw_status status = bwi_content_make(dataset->upstream, 0, number, places, error);
    if (status == BW_OK) {
        copy_out(dataset, number, values);
        atomic_fetch_add(&own->full, 1);
    }
    atomic_store_explicit(&own->state[number], status == BW_OK ? FULL : EMPTY, memory_order_release);
    return status;
}

static void close_cache(bw_dataset *dataset)
{
    cache *own = dataset->own;
    bwi_release(dataset->owned.ctx, own->state);
    bwi_release(dataset->owned.ctx, own->memory);
}

static const bwi_dataset_kind source = {.kind = "cache", .make = make, .close = close_cache};

static bw_status open_cache(bw_dataset *made)
{
    bw_context *ctx = made->owned.ctx;
    cache *own = made->own;
    bw_status status = BW_OK;
    char needed[32], there[32];
    for (int f = 0; f < bwi_dataset_fields(made->upstream) && status == BW_OK; f++) {
        bwi_field field = *bwi_dataset_field(made->upstream, f);
        field.dtype = bwi_make_dtype(made->upstream, f);
        status = bwi_dataset_declare(made, &field, "cache");
        own->offset[f] = own->bytes;
        own->bytes = bwi_size_add(own->bytes, bwi_size_align(field_bytes(&made->columns[f]), sizeof(float)));
    }
    size_t bytes = bwi_size_multiply((size_t)made->numbers, bwi_size_add(own->bytes, 1));
    if (status == BW_OK && bytes > (size_t)64 << 20 && bytes > bwi_memory_available(ctx)) {
        status =
            bwi_fail(ctx, BW_RESOURCE_EXHAUSTED, "cache: %lld samples need %s of memory, there are %s", (long long)made->numbers,
                     bwi_format_bytes(needed, bytes), bwi_format_bytes(there, bwi_memory_available(ctx)));
    }
    if (status != BW_OK) {
        return status;
    }
    own->state = bwi_allocate(ctx, (size_t)made->numbers, sizeof *own->state);
    own->memory = own->state ? bwi_allocate(ctx, (size_t)made->numbers, own->bytes) : NULL;
    if (!own->memory) {
        return BW_RESOURCE_EXHAUSTED;
    }
    for (int64_t i = 0; i < made->numbers; i++) {
        atomic_init(&own->state[i], EMPTY);
    }
    atomic_init(&own->full, 0);
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
    bw_dataset *made = bwi_dataset_over(dataset, &source, bwi_dataset_fields(dataset), sizeof(cache));
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
