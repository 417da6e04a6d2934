/*
 * Batch sizes: one, several by turns, others from an epoch on, or all samples; a rest is a smaller batch, or dropped. The batch that
 * begins at a position is a function of (epoch, position), so resuming needs nothing else.
 */
#include "data/dataset.h"

#include <string.h>

#define SIZE_LIMIT 64

typedef struct sizes {
    int count;
    bool schedule; /* size[i] from epoch[i] on; otherwise by turns */
    int64_t size[SIZE_LIMIT], epoch[SIZE_LIMIT];
    bool drop;
} sizes;

static int64_t size_at(const sizes *s, int epoch, int64_t position)
{
    if (s->schedule) {
        int chosen = 0;
        for (int i = 1; i < s->count; i++)
            chosen = epoch >= s->epoch[i] ? i : chosen;
        return s->size[chosen];
    }
    int64_t sum = 0;
    for (int i = 0; i < s->count; i++) {
        if (__builtin_add_overflow(sum, s->size[i], &sum))
            return s->size[0];
    }
    position %= sum;
    for (int i = 0; i < s->count; i++) {
        if (position < s->size[i])
            return s->size[i] - position; /* less than the size: within a batch, after resuming */
        position -= s->size[i];
    }
    return s->size[0];
}

static int64_t batch_at(const bw_dataset *dataset, int epoch, int64_t position)
{
    const sizes *s = dataset->own;
    const int64_t left = dataset->count - position, size = size_at(s, epoch, position);
    if (left <= 0 || (s->drop && left < size))
        return 0;
    return size < left ? size : left;
}

static const bwi_source batches = {.kind = "batches", .batch = batch_at};

int64_t bwi_dataset_batch_at(const bw_dataset *dataset, int epoch, int64_t position)
{
    const int64_t left = dataset->count - position;
    for (const bw_dataset *at = dataset; at; at = at->upstream) {
        if (!at->source->batch)
            continue;
        if (at != dataset && at->count != dataset->count)
            break; /* chosen for other samples: only its first size is taken over */
        return at->source->batch(at, epoch, position);
    }
    return left < dataset->batch ? left : dataset->batch;
}

static bw_dataset *build(bw_dataset *dataset, const sizes *s)
{
    bw_dataset *made = bwi_dataset_over(dataset, &batches, 0, sizeof *s);
    if (made) {
        *(sizes *)made->own = *s;
        made->batch = s->size[0];
        made->largest = 1;
        for (int i = 0; i < s->count; i++)
            made->largest = s->size[i] > made->largest ? s->size[i] : made->largest;
    }
    return bwi_dataset_take(dataset, made);
}

bw_dataset *bw_batches(bw_dataset *dataset, int64_t batch)
{
    if (!dataset)
        return NULL;
    bw_context *ctx = dataset->owned.ctx;
    if (batch < 1) {
        bw_dataset_free(dataset);
        return bwi_fail_build(ctx, BW_INVALID_ARGUMENT, "batches(%lld): a batch has at least one sample", (long long)batch);
    }
    return build(dataset, &(sizes){.count = 1, .size = {batch}});
}

/* "32", "full", "32,64", "32@0,128@5". */
static bool parse(const char *text, int64_t samples, sizes *s)
{
    bool turns = false;
    for (s->count = 0; s->count < SIZE_LIMIT; s->count++) {
        const size_t length = strcspn(text, ",");
        const char *end = text + length, *at = memchr(text, '@', length), *stop = at ? at : end;
        if (stop - text == 4 && memcmp(text, "full", 4) == 0)
            s->size[s->count] = samples;
        else if (!bwi_parse_int(text, stop, &s->size[s->count]) || s->size[s->count] < 1)
            return false;
        s->schedule = s->schedule || at;
        turns = turns || !at;
        if (at && (!bwi_parse_int(at + 1, end, &s->epoch[s->count]) || s->epoch[s->count] < 0 ||
                   (s->count > 0 ? s->epoch[s->count] <= s->epoch[s->count - 1] : s->epoch[0] != 0)))
            return false;
        if (!*end) {
            s->count++;
            return !(s->schedule && turns);
        }
        text = end + 1;
    }
    return false;
}

bw_dataset *bw_batch_sizes(bw_dataset *dataset, const char *text, bool drop_remainder)
{
    if (!dataset)
        return NULL;
    bw_context *ctx = dataset->owned.ctx;
    sizes s = {.drop = drop_remainder};
    if (text && parse(text, dataset->count, &s))
        return build(dataset, &s);
    bw_dataset_free(dataset);
    return bwi_fail_build(ctx, BW_INVALID_ARGUMENT,
                          "batch sizes '%s': expected a number, 'full', '32,64' (by turns) or '32@0,128@5' (from epoch 5 on)",
                          text ? text : "");
}
