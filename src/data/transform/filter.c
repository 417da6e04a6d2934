/*
 * Filter: keeps the samples that a function chooses, or those that can be made at all. Which ones they are is found once, when the
 * dataset is built, by looking at each sample on all workers; so numbers, order, batches and resuming stay exact. There is a bit
 * for each position of the dataset below, and for each block of bits the count of kept samples before it: a position is found by
 * searching the blocks.
 *
 * A shuffle below would change which sample is at which position, so shuffles at the top are taken off and put on again above the
 * filter.
 */
#include "data/order/order.h"
#include "data/read/read.h"
#include "data/transform/transform.h"

#include <pthread.h>
#include <string.h>

#define BLOCK_WORDS 8 /* 512 bits */
#define LISTED 10

typedef struct filter {
    uint64_t *kept;  /* a bit for each position */
    int64_t *before; /* [block]: kept samples before it */
    int64_t blocks;
} filter;

static int64_t number(const bw_dataset *dataset, uint64_t epoch, int64_t position)
{
    const filter *state = dataset->state;
    int64_t low = 0, high = state->blocks;
    while (high - low > 1) {
        int64_t middle = (low + high) / 2;
        if (state->before[middle] <= position) {
            low = middle;
        } else {
            high = middle;
        }
    }
    int64_t left = position - state->before[low], at = low * BLOCK_WORDS;
    for (int bits; (bits = __builtin_popcountll(state->kept[at])) <= left; at++) {
        left -= bits;
    }
    uint64_t word = state->kept[at];
    for (; left > 0; left--) {
        word &= word - 1;
    }
    return bwi_number_at(dataset->upstream, epoch, at * 64 + __builtin_ctzll(word));
}

static void close_filter(bw_dataset *dataset)
{
    filter *state = dataset->state;
    bwi_release(dataset->owned.ctx, state->kept);
    bwi_release(dataset->owned.ctx, state->before);
}

static const bwi_dataset_kind kind = {.name = "filter", .close = close_filter, .order = {.number = number}};

/* ---- Looking at each sample ---- */

typedef struct mistake {
    int64_t position;
    bw_status status;
    char text[BWI_GATHER_ERROR];
} mistake;

typedef struct looking {
    bw_dataset *stage; /* samples in the types that functions see */
    filter *state;
    bw_filter_function keep; /* NULL: every sample that can be made is kept */
    void *user;
    int64_t count, words;
    atomic_llong bad;
    pthread_mutex_t mutex;
    mistake first[LISTED]; /* the bad samples with the lowest positions */
    int listed;
} looking;

/* Lists the bad samples with the lowest positions, so that the list does not depend on which worker meets them first. */
static void note(looking *l, int64_t position, bw_status status, const char *text)
{
    pthread_mutex_lock(&l->mutex);
    int at = l->listed < LISTED ? l->listed++ : LISTED;
    if (at == LISTED && position < l->first[LISTED - 1].position) {
        at = LISTED - 1;
    }
    for (; at < LISTED && at > 0 && l->first[at - 1].position > position; at--) {
        l->first[at] = l->first[at - 1];
    }
    if (at < LISTED) {
        l->first[at] = (mistake){.position = position, .status = status};
        memcpy(l->first[at].text, text, BWI_GATHER_ERROR);
    }
    pthread_mutex_unlock(&l->mutex);
    atomic_fetch_add(&l->bad, 1);
}

/* A sample that cannot be made is noted and not kept; only cancelling is a failure. */
static bw_status look_at(looking *l, int64_t position, bool *keep)
{
    void *values[BWI_FIELD_LIMIT];
    char error[BWI_GATHER_ERROR] = "", text[BW_ERROR_TEXT];
    int64_t at = bwi_number_at(l->stage, 0, position);
    bwi_scratch_slot slot = bwi_scratch_slot_take(l->stage, values);
    bw_status status = bwi_content_work(l->stage->upstream, 0, at, values, error);
    *keep = status == BW_OK;
    if (status != BW_OK && status != BW_CANCELLED) {
        note(l, position, status, error);
    } else if (status == BW_OK && l->keep) {
        bw_sample sample = bwi_sample(l->stage, 0, 0, at, text);
        *keep = l->keep(l->user, &sample, (const void *const *)values);
    }
    bwi_scratch_slot_give(slot);
    return status == BW_CANCELLED || bwi_cancelled(l->stage->owned.ctx) ? BW_CANCELLED : BW_OK;
}

/* Looks at the samples of one word of bits. */
static bw_status look(void *user, int64_t word, int worker, char *error)
{
    looking *l = user;
    uint64_t bits = 0;
    (void)worker;
    (void)error;
    for (int64_t i = word * 64; i < word * 64 + 64 && i < l->count; i++) {
        bool keep;
        bw_status status = look_at(l, i, &keep);
        if (status != BW_OK) {
            return status;
        }
        bits |= (uint64_t)keep << (i % 64);
    }
    l->state->kept[word] = bits;
    return BW_OK;
}

static int64_t count_kept(filter *state, int64_t words)
{
    int64_t sum = 0;
    for (int64_t word = 0; word < words; word++) {
        if (word % BLOCK_WORDS == 0) {
            state->before[word / BLOCK_WORDS] = sum;
        }
        sum += __builtin_popcountll(state->kept[word]);
    }
    return sum;
}

/* Bad samples make the filter fail, unless their share is within the limit. */
static bw_status judge(looking *l, double share)
{
    bw_context *ctx = l->stage->owned.ctx;
    long long bad = atomic_load(&l->bad);
    if (bad == 0) {
        return BW_OK;
    }
    const mistake *one = &l->first[0];
    if (share <= 0) {
        return bwi_fail(ctx, one->status, "%s", one->text);
    }
    if ((double)bad > share * (double)l->count) {
        return bwi_fail(ctx, one->status, "%lld of %lld samples are bad, more than the allowed %g percent; the first: %s", bad,
                        (long long)l->count, share * 100, one->text);
    }
    for (int i = 0; i < l->listed; i++) {
        bwi_log(ctx, BW_LOG_WARNING, "left out: %s", l->first[i].text);
    }
    bwi_log(ctx, BW_LOG_WARNING, "%lld of %lld samples are bad and left out", bad, (long long)l->count);
    return BW_OK;
}

/* Looks at all samples once; afterwards a position is found from the bits and counts alone. */
static bw_status find_kept(bw_dataset *made, bw_dataset *stage, bw_filter_function keep, void *user, double share)
{
    bw_context *ctx = made->owned.ctx;
    filter *state = made->state;
    looking l = {.stage = stage,
                 .state = state,
                 .keep = keep,
                 .user = user,
                 .count = made->upstream->count,
                 .mutex = PTHREAD_MUTEX_INITIALIZER};
    l.words = (l.count + 63) / 64;
    state->blocks = (l.words + BLOCK_WORDS - 1) / BLOCK_WORDS;
    state->kept = bwi_allocate(ctx, (size_t)(state->blocks * BLOCK_WORDS), sizeof *state->kept);
    state->before = state->kept ? bwi_allocate(ctx, (size_t)state->blocks, sizeof *state->before) : NULL;
    if (!state->before) {
        return BW_RESOURCE_EXHAUSTED;
    }
    atomic_init(&l.bad, 0);
    char error[BWI_ITEM_ERROR];
    bw_status status = bwi_parallel_for(ctx, l.words, look, &l, error);
    if (status == BW_OK) {
        status = judge(&l, share);
    }
    made->count = count_kept(state, state->blocks * BLOCK_WORDS);
    if (status == BW_OK && made->count == 0) {
        status = bwi_fail(ctx, BW_INVALID_ARGUMENT, "filter: none of %lld samples is left", (long long)l.count);
    }
    return status;
}

/* ---- Building ---- */

static bw_dataset *over_still(bw_dataset *dataset, bw_filter_function keep, void *user, double share)
{
    bw_context *ctx = dataset->owned.ctx;
    bw_dataset *made = bwi_dataset_over(dataset, &kind, 0, sizeof(filter));
    bw_dataset *stage = made ? bwi_dataset_stage(dataset) : NULL;
    bw_status status = stage ? BW_OK : BW_RESOURCE_EXHAUSTED;
    /* The datasets below may need preparation, such as fitting statistics. */
    if (status == BW_OK) {
        status = bwi_dataset_begin_below(dataset);
    }
    if (status == BW_OK) {
        status = find_kept(made, stage, keep, user, share);
    }
    bw_dataset_free(stage);
    if (status == BW_OK) {
        return made;
    }
    bw_dataset_free(made);
    return bwi_pass_on(ctx);
}

/* Takes shuffles off, filters, and puts them on again. */
static bw_dataset *build(bw_dataset *dataset, bw_filter_function keep, void *user, double share)
{
    if (!dataset->moving) {
        return over_still(dataset, keep, user, share);
    }
    if (!bwi_order_is_whole(dataset)) {
        return bwi_fail_build(dataset->owned.ctx, BW_INVALID_ARGUMENT,
                              "filter: a part of a shuffled dataset holds other samples in each epoch; filter before shuffling");
    }
    bw_dataset *below = build(dataset->upstream, keep, user, share);
    return below ? bwi_dataset_take(below, bwi_order_again(below, dataset)) : NULL;
}

bw_dataset *bw_filter(bw_dataset *dataset, bw_filter_function function, void *user)
{
    if (!dataset) {
        return NULL;
    }
    if (!function) {
        bwi_fail_build(dataset->owned.ctx, BW_INVALID_ARGUMENT, "filter needs a function; it is NULL");
        return bwi_dataset_take(dataset, NULL);
    }
    return bwi_dataset_take(dataset, build(dataset, function, user, 0));
}

bw_dataset *bw_allow_bad(bw_dataset *dataset, double share)
{
    if (!dataset) {
        return NULL;
    }
    if (!(share > 0 && share <= 1)) {
        bwi_fail_build(dataset->owned.ctx, BW_INVALID_ARGUMENT, "bad samples: a share of more than 0 up to 1, found %g", share);
        return bwi_dataset_take(dataset, NULL);
    }
    return bwi_dataset_take(dataset, build(dataset, NULL, NULL, share));
}
