/*
 * Iterates over the batches of a dataset, as lists of sample numbers. The list is allocated with the iterator, so going to the
 * next batch allocates nothing. Epoch and position are its complete state.
 */
#include "data/order/order.h"

#include <limits.h>
#include <string.h>

struct bw_iterator {
    bwi_owned owned;
    bw_dataset *dataset; /* holds a reference */
    int64_t epoch, position;
    bw_batch batch;
    bwi_ahead ahead;
};

static void destroy(bwi_owned *object)
{
    bw_iterator *iterator = (bw_iterator *)object;
    bwi_release(object->ctx, iterator->batch.numbers);
    for (bw_batch *batch = iterator->batch.chosen, *next; batch; batch = next) {
        next = batch->chosen;
        bwi_release(object->ctx, batch->numbers);
        bwi_release(object->ctx, batch);
    }
}

bw_iterator *bw_iterate(bw_dataset *dataset, int epoch)
{
    if (!dataset) {
        return NULL;
    }
    bw_context *ctx = dataset->owned.ctx;
    if (epoch < 0) {
        return bwi_fail_build(ctx, BW_INVALID_ARGUMENT, "epoch %d: epochs count from 0", epoch);
    }
    bw_iterator *iterator = bwi_own(ctx, sizeof *iterator, destroy);
    if (!iterator) {
        return NULL;
    }
    int64_t capacity = bwi_dataset_largest_batch(dataset);
    iterator->batch = (bw_batch){.dataset = dataset, .capacity = capacity};
    iterator->batch.numbers = bwi_allocate(ctx, (size_t)capacity, sizeof *iterator->batch.numbers);
    if (!iterator->batch.numbers) {
        bwi_disown(iterator);
        return bwi_pass_on(ctx);
    }
    iterator->epoch = epoch;
    iterator->dataset = dataset;
    bwi_dataset_keep(dataset);
    return iterator;
}

/* The state may have come from a file, so epoch and position are checked. Numbers that were found ahead, for several small batches
 * at once, are only copied. */
static bw_status next(bw_iterator *iterator, bw_batch **batch)
{
    bw_context *ctx = iterator->owned.ctx;
    bw_dataset *dataset = iterator->dataset;
    if (!batch) {
        return bwi_fail(ctx, BW_INVALID_ARGUMENT, "bw_next needs a place for the batch; it is NULL");
    }
    if (iterator->epoch < 0 || iterator->epoch > INT_MAX || iterator->position < 0 || iterator->position > dataset->count) {
        return bwi_fail(ctx, BW_INVALID_ARGUMENT, "an iterator at epoch %lld and position %lld of %lld samples",
                        (long long)iterator->epoch, (long long)iterator->position, (long long)dataset->count);
    }
    int64_t count = bwi_dataset_batch_at(dataset, (int)iterator->epoch, &iterator->position);
    if (count == 0) {
        return bwi_fail(ctx, BW_OUT_OF_RANGE, "end of data");
    }
    iterator->batch.count = count < iterator->batch.capacity ? count : iterator->batch.capacity;
    const int64_t *ahead =
        bwi_numbers_ahead(&iterator->ahead, dataset, (int)iterator->epoch, iterator->position, iterator->batch.count);
    if (ahead) {
        memcpy(iterator->batch.numbers, ahead, (size_t)iterator->batch.count * sizeof *ahead);
    } else {
        bwi_dataset_numbers(dataset, (int)iterator->epoch, iterator->position, iterator->batch.count, iterator->batch.numbers);
    }
    iterator->batch.epoch = (int)iterator->epoch;
    iterator->batch.first = iterator->position;
    iterator->position += iterator->batch.count;
    *batch = &iterator->batch;
    return BW_OK;
}

/* The end of the data is not treated as a failure, since every loop reaches it. */
bw_status bw_next(bw_iterator *iterator, bw_batch **batch)
{
    if (batch) {
        *batch = NULL;
    }
    if (!iterator) {
        return BW_INVALID_ARGUMENT;
    }
    bw_context *ctx = iterator->owned.ctx;
    bw_status status = bwi_call_begin(ctx);
    if (status != BW_OK) {
        return status;
    }
    status = next(iterator, batch);
    return status == BW_OUT_OF_RANGE ? status : bwi_call_end(ctx, status);
}

int64_t bw_batch_count(const bw_batch *batch)
{
    return batch ? batch->count : -1;
}

const int64_t *bw_batch_numbers(const bw_batch *batch)
{
    return batch ? batch->numbers : NULL;
}

/* A batch has one place for a selection of its samples, which is made when it is first needed. */
static bw_batch *place_to_choose(bw_context *ctx, bw_batch *batch)
{
    if (!batch->chosen) {
        bw_batch *made = bwi_allocate(ctx, 1, sizeof *made);
        int64_t *numbers = made ? bwi_allocate(ctx, (size_t)batch->capacity, sizeof *numbers) : NULL;
        if (!numbers) {
            bwi_release(ctx, made);
            return NULL;
        }
        *made = (bw_batch){.dataset = batch->dataset, .capacity = batch->capacity, .numbers = numbers, .scattered = true};
        batch->chosen = made;
    }
    return batch->chosen;
}

bw_batch *bw_batch_select(bw_batch *batch, const int64_t *indices, int64_t count)
{
    if (!batch) {
        return NULL;
    }
    bw_context *ctx = batch->dataset->owned.ctx;
    if (!indices || count < 1 || count > batch->capacity) {
        return bwi_fail_build(ctx, BW_INVALID_ARGUMENT, "bw_batch_select: expected 1 to %lld indices, got %lld",
                              (long long)batch->capacity, (long long)(indices ? count : 0));
    }
    for (int64_t i = 0; i < count; i++) {
        if (indices[i] < 0 || indices[i] >= batch->count) {
            return bwi_fail_build(ctx, BW_INVALID_ARGUMENT, "bw_batch_select: index %lld of a batch of %lld samples",
                                  (long long)indices[i], (long long)batch->count);
        }
    }
    bw_batch *chosen = place_to_choose(ctx, batch);
    if (!chosen) {
        return bwi_pass_on(ctx);
    }
    for (int64_t i = 0; i < count; i++) {
        chosen->numbers[i] = batch->numbers[indices[i]];
    }
    chosen->epoch = batch->epoch;
    chosen->first = batch->first;
    chosen->count = count;
    return chosen;
}

void bw_iterator_free(bw_iterator *iterator)
{
    if (!iterator) {
        return;
    }
    bw_dataset *dataset = iterator->dataset;
    bwi_disown(iterator);
    bwi_dataset_release(dataset);
}

int64_t bw_iterator_position(const bw_iterator *iterator)
{
    return iterator ? iterator->position : -1;
}

static bw_status seek(bw_iterator *iterator, int64_t position)
{
    bw_dataset *dataset = iterator->dataset;
    if (position < 0 || (!dataset->live && position > dataset->count)) {
        return bwi_fail(iterator->owned.ctx, BW_OUT_OF_RANGE, "position: expected 0 to %lld, got %lld", (long long)dataset->count,
                        (long long)position);
    }
    iterator->position = position;
    return BW_OK;
}

bw_status bw_iterator_seek(bw_iterator *iterator, int64_t position)
{
    bw_context *ctx = iterator ? iterator->owned.ctx : NULL;
    bw_status status = iterator ? bwi_call_begin(ctx) : BW_INVALID_ARGUMENT;
    return status == BW_OK ? bwi_call_end(ctx, seek(iterator, position)) : status;
}

void bwi_iterator_state(bw_iterator *iterator, bwi_state *state)
{
    bwi_state_add(state, BW_I64, 0, NULL, &iterator->epoch, "iterator/epoch");
    bwi_state_add(state, BW_I64, 0, NULL, &iterator->position, "iterator/position");
}
