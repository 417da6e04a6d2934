/*
 * Batch sizes: a single one, several that alternate within or between epochs, others from an epoch on, or all samples. A remainder
 * is a smaller batch, or it is dropped. The batch that begins at a position is a function of (epoch, position), so resuming needs
 * nothing else. Among samples that were cut out of others (take, skip, a split) sizes count from the first sample that is left.
 * Training puts windows above the sizes: a window is the batches of one update.
 */
#include "data/order/order.h"
#include "data/read/read.h"

#include <limits.h>
#include <string.h>

#define SIZE_LIMIT 64

typedef struct sizes {
    int count;
    bool schedule; /* size[i] applies from epoch[i] on; otherwise sizes alternate */
    bool passes;   /* sizes alternate from epoch to epoch */
    int64_t size[SIZE_LIMIT], epoch[SIZE_LIMIT];
    bool drop;
} sizes;

/* Alternating sizes repeat with the period of their sum, so the size at a position needs no history: resuming anywhere gives the
 * same batches. */
static int64_t size_at(const sizes *s, int epoch, int64_t position)
{
    if (s->passes) {
        return s->size[epoch > 0 ? epoch % s->count : 0];
    }
    if (s->schedule) {
        int chosen = 0;
        for (int i = 1; i < s->count; i++) {
            chosen = epoch >= s->epoch[i] ? i : chosen;
        }
        return s->size[chosen];
    }
    int64_t sum = 0;
    for (int i = 0; i < s->count; i++) {
        if (__builtin_add_overflow(sum, s->size[i], &sum)) {
            return s->size[0];
        }
    }
    position %= sum;
    for (int i = 0; i < s->count; i++) {
        if (position < s->size[i]) {
            return s->size[i] - position; /* what remains of a batch, if training resumed within it */
        }
        position -= s->size[i];
    }
    return s->size[0];
}

static int64_t batch_at(const bw_dataset *dataset, int epoch, bwi_span *at)
{
    const sizes *s = dataset->state;
    int64_t left = at->end - at->position, size = size_at(s, epoch, at->position - at->begin);
    if (left > 0 && s->drop && left < size) {
        at->position = at->end;
    }
    return at->position >= at->end ? 0 : size < left ? size : left;
}

static const bwi_dataset_kind batches = {.name = "batches", .order = {.batch = batch_at}, .stream = {.follows = true}};

int64_t bwi_batch_within(const bw_dataset *dataset, int epoch, bwi_span *at)
{
    for (const bw_dataset *below = dataset; below; below = below->upstream) {
        if (below->kind->order.batch) {
            return below->kind->order.batch(below, epoch, at);
        }
    }
    int64_t left = at->end - at->position;
    return left < 0 ? 0 : left < BWI_BATCH_DEFAULT ? left : BWI_BATCH_DEFAULT;
}

/* The status is ignored: a stream that fails, or is cancelled, does so again when the samples of this batch are gathered, and that
 * is where it is reported. */
int64_t bwi_dataset_batch_at(bw_dataset *dataset, int epoch, int64_t *position)
{
    if (dataset->live) {
        bw_status status = bwi_stream_pull(dataset, *position + (dataset->largest < BWI_LIVE ? dataset->largest : BWI_LIVE));
        if (status == BW_CANCELLED) { /* the pull has cleared the flag by reporting it */
            bw_cancel(dataset->owned.ctx);
        }
    }
    bwi_span at = {.end = dataset->count, .position = *position};
    int64_t count = bwi_batch_within(dataset, epoch, &at);
    *position = at.position;
    return count;
}

int64_t bwi_dataset_batch_count(bw_dataset *dataset, int epoch)
{
    int64_t batch_count = 0;
    for (int64_t position = 0, size; (size = bwi_dataset_batch_at(dataset, epoch, &position)) > 0; position += size) {
        batch_count++;
    }
    return batch_count;
}

bool bwi_dataset_batch_varies(const bw_dataset *dataset)
{
    return dataset->scheduled;
}

/* The first epoch after `epoch` in which sizes may differ; INT64_MAX: none. */
static int64_t next_change(const bw_dataset *dataset, int64_t epoch)
{
    int64_t change = INT64_MAX;
    for (const bw_dataset *below = dataset; below; below = below->upstream) {
        const sizes *s = below->kind == &batches ? below->state : NULL;
        if (s && s->passes) {
            return epoch + 1;
        }
        for (int i = 0; s && s->schedule && i < s->count; i++) {
            change = s->epoch[i] > epoch && s->epoch[i] < change ? s->epoch[i] : change;
        }
        if (below->second) {
            int64_t other = next_change(below->second, epoch);
            change = other < change ? other : change;
        }
    }
    return change;
}

uint64_t bwi_dataset_batch_hash(bw_dataset *dataset, int epochs)
{
    uint64_t all = 0, before = 0;
    for (int64_t epoch = 0; epoch < epochs; epoch = next_change(dataset, epoch)) {
        uint64_t hash = 1;
        for (int64_t position = 0, size; (size = bwi_dataset_batch_at(dataset, (int)epoch, &position)) > 0; position += size) {
            hash = bwi_hash(hash, (int64_t[]){position, size}, 2 * sizeof(int64_t));
        }
        if (hash != before) {
            all = bwi_hash(all, (uint64_t[]){(uint64_t)epoch, hash}, 2 * sizeof(uint64_t));
        }
        before = hash;
    }
    return all;
}

/* ---- Windows ---- */

typedef struct window {
    int accumulate;
    bool drop; /* drops a remainder that is smaller than its batch would be */
} window;

/* A window is made of batches that follow each other; it ends where samples are dropped. */
static int64_t window_at(const bw_dataset *dataset, int epoch, bwi_span *at)
{
    const window *state = dataset->state;
    int64_t end = at->end;
    int64_t total = 0;
    for (int i = 0; i < state->accumulate; i++) {
        bwi_span next = {.begin = at->begin, .end = state->drop ? INT64_MAX : end, .position = at->position + total};
        int64_t count = bwi_batch_within(dataset->upstream, epoch, &next);
        if (count == 0 || count > end - next.position || (total > 0 && next.position != at->position + total)) {
            break;
        }
        at->position = total == 0 ? next.position : at->position;
        total += count;
    }
    if (total == 0) {
        at->position = end;
    }
    return total;
}

static const bwi_dataset_kind windows = {.name = "windows", .order = {.batch = window_at}, .stream = {.follows = true}};

/* The dataset is kept and not taken. */
static bw_dataset *build(bw_dataset *dataset, const sizes *s)
{
    bw_dataset *made = bwi_dataset_over(dataset, &batches, 0, sizeof *s);
    if (made) {
        *(sizes *)made->state = *s;
        made->batched = true;
        made->scheduled = s->schedule || s->passes;
        made->batch = s->size[0];
        made->largest = 1;
        for (int i = 0; i < s->count; i++) {
            made->largest = s->size[i] > made->largest ? s->size[i] : made->largest;
        }
    }
    return made;
}

bw_dataset *bw_batches(bw_dataset *dataset, int64_t batch)
{
    if (!dataset) {
        return NULL;
    }
    bw_context *ctx = dataset->owned.ctx;
    if (batch < 1) {
        bw_dataset_free(dataset);
        return bwi_fail_build(ctx, BW_INVALID_ARGUMENT, "batches(%lld): a batch has at least one sample", (long long)batch);
    }
    return bwi_dataset_take(dataset, build(dataset, &(sizes){.count = 1, .size = {batch}}));
}

/* Parses sizes such as "32", "full", "32,64", "32/64" and "32@0,128@5". */
static bool parse(const char *text, int64_t samples, sizes *s)
{
    bool alternates = false;
    s->passes = strchr(text, '/');
    for (s->count = 0; s->count < SIZE_LIMIT; s->count++) {
        size_t length = strcspn(text, s->passes ? "/" : ",");
        const char *end = text + length, *at = memchr(text, '@', length), *stop = at ? at : end;
        if (stop - text == 4 && memcmp(text, "full", 4) == 0) {
            s->size[s->count] = samples;
        } else if (!bwi_parse_int(text, stop, &s->size[s->count]) || s->size[s->count] < 1) {
            return false;
        }
        s->schedule = s->schedule || at;
        alternates = alternates || !at;
        if (at && (!bwi_parse_int(at + 1, end, &s->epoch[s->count]) || s->epoch[s->count] < 0 ||
                   (s->count > 0 ? s->epoch[s->count] <= s->epoch[s->count - 1] : s->epoch[0] != 0))) {
            return false;
        }
        if (!*end) {
            s->count++;
            return !(s->schedule && (alternates || s->passes));
        }
        text = end + 1;
    }
    return false;
}

/* Sets sizes by a text over a dataset, which is kept and not taken. */
static bw_dataset *build_by_text(bw_dataset *dataset, const char *text, bool drop)
{
    sizes s = {.drop = drop};
    if (text && strstr(text, "full") && bwi_dataset_finish(dataset) != BW_OK) {
        return bwi_pass_on(dataset->owned.ctx);
    }
    if (text && parse(text, dataset->count, &s)) {
        return build(dataset, &s);
    }
    return bwi_fail_build(dataset->owned.ctx, BW_INVALID_ARGUMENT,
                          "batch sizes '%s': expected a number, 'full', '32,64' (alternating), '32/64' (alternating by epoch) or "
                          "'32@0,128@5' (from epoch 5 on)",
                          text ? text : "");
}

bw_dataset *bw_batch_sizes(bw_dataset *dataset, const char *text, bool drop_remainder)
{
    return dataset ? bwi_dataset_take(dataset, build_by_text(dataset, text, drop_remainder)) : NULL;
}

static bw_dataset *build_windows(bw_dataset *dataset, const bwi_batching *how)
{
    bw_context *ctx = dataset->owned.ctx;
    if (how->drop && dataset->largest > dataset->count) {
        return bwi_fail_build(ctx, BW_INVALID_ARGUMENT, "batches of %lld: of %lld samples all would be dropped as a remainder",
                              (long long)dataset->largest, (long long)dataset->count);
    }
    bw_dataset *made = bwi_dataset_over(dataset, &windows, 0, sizeof(window));
    if (made) {
        *(window *)made->state = (window){.accumulate = how->accumulate, .drop = how->drop};
        if (__builtin_mul_overflow(made->largest, (int64_t)how->accumulate, &made->largest)) {
            made->largest = INT64_MAX;
        }
    }
    return made;
}

bw_status bwi_dataset_windows(bw_dataset *dataset, const bwi_batching *how, bw_dataset **made)
{
    bw_dataset *sized = dataset;
    if (how->sizes) {
        sized = build_by_text(dataset, how->sizes, false);
    } else if (how->batch > 0) {
        sized = build(dataset, &(sizes){.count = 1, .size = {how->batch}});
    }
    *made = sized ? build_windows(sized, how) : NULL;
    if (sized != dataset) {
        bw_dataset_free(sized);
    }
    return *made ? BW_OK : bwi_pending(dataset->owned.ctx);
}
