/*
 * Scratch: host memory for samples that are being made, with one slot for each thread. All slots are allocated before the first
 * sample is asked for, so that nothing is allocated while samples are gathered.
 */
#include "data/internal.h"

#include <sched.h>

/* Slots come in slabs; a slab is added without touching the others, since threads may be using them. */
typedef struct slab {
    _Atomic(struct slab *) next;
    int slots;
    unsigned char *memory;
    atomic_bool *busy; /* [slot] */
} slab;

struct bwi_scratch {
    size_t bytes; /* of a slot, which holds one sample */
    _Atomic(slab *) first;
};

static size_t column_bytes(const bwi_column *column)
{
    return bwi_size_align((size_t)column->rows.values * bwi_dtype_size(column->field.dtype), BWI_CACHE_LINE);
}

static bw_status add_slab(bw_context *ctx, bwi_scratch *scratch, int slots)
{
    slab *made = bwi_allocate(ctx, 1, sizeof *made);
    unsigned char *memory = made ? bwi_allocate(ctx, (size_t)slots, scratch->bytes) : NULL;
    atomic_bool *busy = memory ? bwi_allocate(ctx, (size_t)slots, sizeof *busy) : NULL;
    if (!busy) {
        bwi_release(ctx, memory);
        bwi_release(ctx, made);
        return BW_RESOURCE_EXHAUSTED;
    }
    for (int i = 0; i < slots; i++) {
        atomic_init(&busy[i], false);
    }
    made->slots = slots;
    made->memory = memory;
    made->busy = busy;
    atomic_init(&made->next, atomic_load(&scratch->first));
    atomic_store(&scratch->first, made);
    return BW_OK;
}

bw_status bwi_scratch_open(bw_dataset *dataset)
{
    bw_context *ctx = dataset->owned.ctx;
    bwi_scratch *scratch = bwi_allocate(ctx, 1, sizeof *scratch);
    if (!scratch) {
        return BW_RESOURCE_EXHAUSTED;
    }
    dataset->scratch = scratch;
    atomic_init(&scratch->first, NULL);
    for (int i = 0; i < dataset->column_count; i++) {
        scratch->bytes = bwi_size_add(scratch->bytes, column_bytes(&dataset->columns[i]));
    }
    return add_slab(ctx, scratch, ctx->workers);
}

size_t bwi_scratch_bytes(const bw_dataset *dataset)
{
    size_t bytes = 0;
    for (; dataset; dataset = dataset->upstream) {
        bytes = bwi_size_add(bytes, dataset->scratch ? dataset->scratch->bytes : 0);
        bytes = bwi_size_add(bytes, dataset->decoder_bytes);
        bytes = bwi_size_add(bytes, dataset->second ? bwi_scratch_bytes(dataset->second) : 0);
    }
    return bytes;
}

bw_status bwi_scratch_reserve(const bw_dataset *dataset, int threads)
{
    bw_status status = BW_OK;
    for (; dataset && status == BW_OK; dataset = dataset->upstream) {
        if (dataset->scratch) {
            status = add_slab(dataset->owned.ctx, dataset->scratch, threads);
        }
        if (dataset->second && status == BW_OK) {
            status = bwi_scratch_reserve(dataset->second, threads);
        }
    }
    return status;
}

void bwi_scratch_free(bw_context *ctx, bwi_scratch *scratch)
{
    if (!scratch) {
        return;
    }
    for (slab *at = atomic_load(&scratch->first), *next; at; at = next) {
        next = atomic_load(&at->next);
        bwi_release(ctx, at->memory);
        bwi_release(ctx, at->busy);
        bwi_release(ctx, at);
    }
    bwi_release(ctx, scratch);
}

/* There are as many slots as the library has threads, so waiting is needed only if a program gathers on more threads. */
static bwi_scratch_slot take_slot(bwi_scratch *scratch)
{
    for (;; sched_yield()) {
        for (slab *at = atomic_load(&scratch->first); at; at = atomic_load(&at->next)) {
            for (int i = 0; i < at->slots; i++) {
                if (!atomic_exchange_explicit(&at->busy[i], true, memory_order_acquire)) {
                    return (bwi_scratch_slot){at->memory + (size_t)i * scratch->bytes, &at->busy[i]};
                }
            }
        }
    }
}

bwi_scratch_slot bwi_scratch_slot_take(const bw_dataset *dataset, void **values)
{
    bwi_scratch_slot slot = take_slot(dataset->scratch);
    unsigned char *at = slot.at;
    for (int i = 0; i < dataset->column_count; i++) {
        values[i] = at;
        at += column_bytes(&dataset->columns[i]);
    }
    return slot;
}

void bwi_scratch_slot_give(bwi_scratch_slot slot)
{
    if (slot.busy) {
        atomic_store_explicit(slot.busy, false, memory_order_release);
    }
}
