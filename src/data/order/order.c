/*
 * An order is a chain of index maps from a position in an epoch to a sample's number. It is evaluated anew for each position, so
 * that no order is ever stored. Each map is a bijection onto its range, hence so is the chain.
 */
#include "data/ahead/ahead.h"
#include "data/order/order.h"
#include "data/read/read.h"

#include <math.h>
#include <string.h>

void bwi_numbers_at(const bw_dataset *dataset, uint64_t epoch, int64_t *at, int64_t n)
{
    for (; dataset; dataset = dataset->upstream) {
        if (dataset->kind->order.numbers) {
            dataset->kind->order.numbers(dataset, epoch, at, n);
            return;
        }
        if (dataset->kind->order.number) {
            for (int64_t i = 0; i < n; i++) {
                at[i] = dataset->kind->order.number(dataset, epoch, at[i]);
            }
            return;
        }
    }
}

int64_t bwi_number_at(const bw_dataset *dataset, uint64_t epoch, int64_t position)
{
    bwi_numbers_at(dataset, epoch, &position, 1);
    return position;
}

int64_t bwi_dataset_number(const bw_dataset *dataset, int epoch, int64_t position)
{
    return bwi_number_at(dataset, (uint64_t)epoch, position);
}

void bwi_dataset_numbers(const bw_dataset *dataset, int epoch, int64_t first, int64_t n, int64_t *numbers)
{
    typedef int64_t pair __attribute__((vector_size(16)));
    pair next = {first, first + 1};
    for (int64_t i = 0; i + 1 < n; i += 2, next += 2) {
        memcpy(numbers + i, &next, sizeof next);
    }
    if (n % 2) {
        numbers[n - 1] = next[0];
    }
    bwi_numbers_at(dataset, (uint64_t)epoch, numbers, n);
}

const int64_t *bwi_numbers_ahead(bwi_ahead *ahead, const bw_dataset *dataset, int epoch, int64_t first, int64_t n)
{
    int64_t left = dataset->count - first;
    if (n > BWI_AHEAD || n > left || dataset->live) {
        return NULL;
    }
    if (ahead->dataset != dataset || ahead->epoch != epoch || first < ahead->first || first - ahead->first > ahead->count - n) {
        ahead->dataset = dataset;
        ahead->epoch = epoch;
        ahead->first = first;
        ahead->count = left < BWI_AHEAD ? left : BWI_AHEAD;
        bwi_dataset_numbers(dataset, epoch, first, ahead->count, ahead->numbers);
    }
    return ahead->numbers + (first - ahead->first);
}

static int64_t range_batch(const bw_dataset *dataset, int epoch, bwi_span *at)
{
    int64_t first = dataset->stride == 1 ? dataset->first : 0; /* samples that are neighbours in a shard are not neighbours below */
    bwi_span below = {.begin = at->begin + first, .position = at->position + first};
    if (__builtin_add_overflow(at->end, first, &below.end)) {
        below.end = INT64_MAX;
    }
    int64_t count = bwi_batch_within(dataset->upstream, epoch, &below);
    at->position = below.position - first;
    return count;
}

static void range_numbers(const bw_dataset *dataset, uint64_t epoch, int64_t *at, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        at[i] = dataset->first + at[i] * dataset->stride;
    }
    bwi_numbers_at(dataset->upstream, dataset->frozen ? BWI_EPOCH_FROZEN : epoch, at, n);
}

/* A stream is shuffled within blocks, each with its own seed; the last block may be smaller. */
static int64_t permute_block(const bw_dataset *dataset, uint64_t epoch, int64_t position)
{
    int64_t block = position / dataset->block, first = block * dataset->block, left = dataset->count - first;
    uint64_t seed = bwi_hash(dataset->seed, &block, sizeof block);
    return first + bwi_permute(seed, epoch, left < dataset->block ? left : dataset->block, position - first);
}

static void permuted_numbers(const bw_dataset *dataset, uint64_t epoch, int64_t *at, int64_t n)
{
    if (dataset->block > 0 && (epoch == 0 || dataset->live)) {
        for (int64_t i = 0; i < n; i++) {
            at[i] = permute_block(dataset, epoch, at[i]);
        }
    } else {
        bwi_permute_all(dataset->seed, epoch, dataset->count, at, n);
    }
    bwi_numbers_at(dataset->upstream, epoch, at, n);
}

static const bwi_dataset_kind range = {.name = "range", .order = {.numbers = range_numbers, .batch = range_batch}};
static const bwi_dataset_kind taking = {
    .name = "take", .order = {.numbers = range_numbers, .batch = range_batch}, .stream = {.follows = true}};
static const bwi_dataset_kind permutation = {
    .name = "shuffle", .order = {.numbers = permuted_numbers}, .stream = {.follows = true}};

bool bwi_order_is_whole(const bw_dataset *dataset)
{
    return dataset->upstream && (dataset->kind == &permutation || dataset->kind == &bwi_kind_prefetch);
}

bw_dataset *bwi_order_again(bw_dataset *below, const bw_dataset *model)
{
    bw_dataset *made = bwi_dataset_over(below, model->kind, 0, model->state ? sizeof(bwi_prefetch) : 0);
    if (!made) {
        return NULL;
    }
    made->seed = model->seed;
    made->moving = made->moving || model->kind == &permutation;
    if (model->state) {
        memcpy(made->state, model->state, sizeof(bwi_prefetch));
    }
    return made;
}

bw_dataset *bw_shuffle(bw_dataset *dataset, uint64_t seed)
{
    if (!dataset) {
        return NULL;
    }
    bw_dataset *made = bwi_dataset_over(dataset, &permutation, 0, 0);
    if (made) {
        made->seed = seed;
        made->moving = true;
        made->block = made->live ? bwi_stream_block(made) : 0;
    }
    return bwi_dataset_take(dataset, made);
}

static bw_dataset *take_range(bw_dataset *dataset, const bwi_dataset_kind *kind, int64_t first, int64_t count)
{
    bw_dataset *made = bwi_dataset_over(dataset, kind, 0, 0);
    if (made) {
        made->first = first;
        made->count = count;
    }
    return bwi_dataset_take(dataset, made);
}

bw_dataset *bw_take(bw_dataset *dataset, int64_t count)
{
    if (!dataset) {
        return NULL;
    }
    bw_context *ctx = dataset->owned.ctx;
    if (count < 1) {
        bw_dataset_free(dataset);
        return bwi_fail_build(ctx, BW_INVALID_ARGUMENT, "take(%lld): the count must be positive", (long long)count);
    }
    bw_dataset *made = take_range(dataset, &taking, 0, count < dataset->count ? count : dataset->count);
    if (made && made->live) {
        made->limit = count;
    }
    return made;
}

/* Reads a stream to its end, since its count is needed now; false if that failed, and the dataset is freed. */
static bool finish(bw_dataset *dataset)
{
    if (bwi_dataset_finish(dataset) == BW_OK) {
        return true;
    }
    bw_context *ctx = dataset->owned.ctx;
    bw_dataset_free(dataset);
    bwi_pass_on(ctx);
    return false;
}

bw_dataset *bw_skip(bw_dataset *dataset, int64_t count)
{
    if (!dataset || !finish(dataset)) {
        return NULL;
    }
    bw_context *ctx = dataset->owned.ctx;
    int64_t samples = dataset->count;
    if (count < 0 || count >= samples) {
        bw_dataset_free(dataset);
        return bwi_fail_build(ctx, BW_INVALID_ARGUMENT,
                              count < 0 ? "skip(%lld): the count is negative; there are %lld samples"
                                        : "skip(%lld): nothing would be left of %lld samples",
                              (long long)count, (long long)samples);
    }
    return take_range(dataset, &range, count, samples - count);
}

bw_dataset *bw_shard(bw_dataset *dataset, int64_t count, int64_t index)
{
    if (!dataset || !finish(dataset)) {
        return NULL;
    }
    bw_context *ctx = dataset->owned.ctx;
    int64_t samples = dataset->count;
    if (count < 1 || index < 0 || index >= count || index >= samples) {
        bw_dataset_free(dataset);
        return bwi_fail_build(ctx, BW_INVALID_ARGUMENT, "shard(%lld, %lld): part %lld of %lld; there are %lld samples",
                              (long long)count, (long long)index, (long long)index, (long long)count, (long long)samples);
    }
    bw_dataset *made = take_range(dataset, &range, index, (samples - index - 1) / count + 1);
    if (made) {
        made->stride = count;
    }
    return made;
}

/* What joins two datasets may put one behind the other, so only a shuffle above it counts. */
bool bwi_dataset_shuffled(const bw_dataset *dataset)
{
    while (dataset->kind != &permutation && dataset->upstream && !dataset->second) {
        dataset = dataset->upstream;
    }
    return dataset->kind == &permutation && dataset->moving && dataset->block == 0;
}

/* ---- Splits ---- */

static const bw_dataset *last_shuffle(const bw_dataset *dataset)
{
    while (dataset && dataset->kind != &permutation) {
        dataset = dataset->upstream;
    }
    return dataset;
}

static bw_dataset *part(bw_dataset *dataset, int64_t first, int64_t count, bool frozen)
{
    bw_dataset *made = bwi_dataset_over(dataset, &range, 0, 0);
    if (made) {
        made->first = first;
        made->count = count;
        made->frozen = frozen;
        made->moving = made->moving && !frozen;
    }
    return made;
}

/* If the dataset is shuffled, both parts are cut from one frozen order, because otherwise epochs would mix them; the training part
 * is then shuffled anew within itself. */
bw_status bwi_dataset_split(bw_dataset *dataset, double share, bw_dataset **training, bw_dataset **validation)
{
    *training = *validation = NULL;
    bw_context *ctx = dataset->owned.ctx;
    if (!(share > 0 && share < 1)) {
        return bwi_fail(ctx, BW_INVALID_ARGUMENT, "a validation share of %g; expected more than 0 and less than 1", share);
    }
    bw_status status = bwi_dataset_finish(dataset);
    if (status != BW_OK) {
        return status;
    }
    int64_t count = dataset->count, kept = (int64_t)floor((double)count * (1.0 - share));
    if (kept < 1 || kept >= count) {
        return bwi_fail(ctx, BW_INVALID_ARGUMENT, "a validation share of %g of %lld samples leaves no samples for %s", share,
                        (long long)count, kept < 1 ? "training" : "validation");
    }
    const bw_dataset *shuffle = last_shuffle(dataset);
    *training = part(dataset, 0, kept, shuffle);
    *validation = part(dataset, kept, count - kept, shuffle);
    if (*training && *validation && shuffle) {
        *training = bw_shuffle(*training, shuffle->seed);
    }
    if (*training && *validation) {
        return BW_OK;
    }
    bw_dataset_free(*training);
    bw_dataset_free(*validation);
    *training = *validation = NULL;
    bw_status pending = bwi_pending(ctx);
    return pending == BW_OK ? BW_RESOURCE_EXHAUSTED : pending;
}

bw_status bw_split(bw_dataset *dataset, double share, bw_dataset **training, bw_dataset **validation)
{
    bw_context *ctx = bwi_dataset_context(dataset);
    bw_status status = ctx ? bwi_call_begin(ctx) : BW_INVALID_ARGUMENT;
    if (status == BW_OK && !(training && validation)) {
        return bwi_call_end(ctx, bwi_fail(ctx, BW_INVALID_ARGUMENT, "bw_split: the pointer to a part is NULL"));
    }
    if (status != BW_OK) {
        if (training && validation) {
            *training = *validation = NULL;
        }
        return status;
    }
    return bwi_call_end(ctx, bwi_dataset_split(dataset, share, training, validation));
}
