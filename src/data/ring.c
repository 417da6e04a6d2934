/*
 * The ring: samples that are slow to make (decoded, mapped, loaded) are made ahead by threads of their own, in the order in which
 * workers will ask for them. A worker never makes a sample itself, so it can be cancelled and can time out whatever the source
 * does; one that is not there yet is wished for, and wishes come first.
 *
 * Slots. Free, making, or ready; a ready one that was gathered from is used, and used slots are taken again, oldest first, once
 * more of them are left than workers hold in their tiles (input and target are gathered one after the other). Threads leave
 * one slot for each worker's wish. So a wish can always be served: nothing waits in a circle.
 *
 * Values depend on (epoch, number) alone, never on which thread makes them or when.
 */
#include "data/ring.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define BYTES_AHEAD ((size_t)64 << 20)
#define SAMPLES_AHEAD 4096
#define POLL_SECONDS 0.02 /* how often a waiting worker looks at the cancel flag */
#define SECONDS_DEFAULT 60

typedef enum state { FREE, MAKING, READY } state;

typedef struct slot {
    state state;
    int64_t number;
    int epoch;
    int next; /* in its bucket, or in the list of free ones; -1: the last */
    int pins; /* workers that copy from it */
    bool used;
    bw_status status;
    double since; /* MAKING */
    char trouble[BWI_GATHER_TROUBLE];
} slot;

typedef struct wish {
    int epoch;
    int64_t number;
    bool open; /* nobody makes it yet */
} wish;

struct bwi_ring {
    bw_context *ctx;
    const bw_dataset *dataset;
    bwi_prefetch settings;
    bool runs, stop, reserved;
    pthread_mutex_t mutex;
    pthread_cond_t work, done; /* for threads: something to make; for workers: something was made */

    int threads;
    pthread_t *thread;
    int slots, kept, workers; /* kept: used ones that stay; workers: that may wish */
    slot *slot;
    unsigned char *memory;
    size_t bytes; /* of a sample */
    size_t offset[BWI_FIELD_LIMIT];
    int *bucket, buckets; /* a power of two */
    int free, free_count;
    int *used, used_first, used_count; /* a queue */
    wish *wishes;

    /* What comes next. */
    bwi_course course;
    int last_epoch;
};

/* ---- Slots ---- */

static int bucket_of(const bwi_ring *ring, int epoch, int64_t number)
{
    uint64_t key = (uint64_t)number * 0x9E3779B97F4A7C15u + (uint64_t)epoch * 0xC2B2AE3D27D4EB4Fu;
    return (int)((key >> 32) & (uint64_t)(ring->buckets - 1));
}

static int find(const bwi_ring *ring, int epoch, int64_t number)
{
    int at = ring->bucket[bucket_of(ring, epoch, number)];
    while (at >= 0 && (ring->slot[at].number != number || ring->slot[at].epoch != epoch)) {
        at = ring->slot[at].next;
    }
    return at;
}

static void forget(bwi_ring *ring, int at)
{
    int *link = &ring->bucket[bucket_of(ring, ring->slot[at].epoch, ring->slot[at].number)];
    while (*link != at) {
        link = &ring->slot[*link].next;
    }
    *link = ring->slot[at].next;
}

static void mark_used(bwi_ring *ring, int at)
{
    if (ring->slot[at].used) {
        return;
    }
    ring->slot[at].used = true;
    ring->used[(ring->used_first + ring->used_count++) % ring->slots] = at;
}

/* The oldest used slot that nobody copies from; -1 if there is none. */
static int take_used(bwi_ring *ring)
{
    for (int i = ring->used_count; i > 0; i--) {
        int at = ring->used[ring->used_first];
        ring->used_first = (ring->used_first + 1) % ring->slots;
        if (ring->slot[at].pins == 0) {
            ring->used_count--;
            forget(ring, at);
            return at;
        }
        ring->used[(ring->used_first + ring->used_count - 1) % ring->slots] = at;
    }
    return -1;
}

/* A slot for a sample, which is in the making from now on; -1 if there is none. Making ahead leaves one for each worker. */
static int claim(bwi_ring *ring, int epoch, int64_t number, bool ahead)
{
    int spare = ring->used_count > ring->kept ? ring->used_count - ring->kept : 0;
    if (ahead && ring->free_count + spare <= ring->workers) {
        return -1;
    }
    int at = ring->free;
    if (at >= 0) {
        ring->free = ring->slot[at].next;
        ring->free_count--;
    } else {
        at = take_used(ring);
        if (at < 0) {
            return -1;
        }
    }
    int *head = &ring->bucket[bucket_of(ring, epoch, number)];
    ring->slot[at] = (slot){.state = MAKING, .number = number, .epoch = epoch, .next = *head, .since = bwi_now()};
    *head = at;
    return at;
}

/* ---- Threads ---- */

static bool next_wish(bwi_ring *ring, int *epoch, int64_t *number)
{
    for (int i = 0; i < ring->workers; i++) {
        if (ring->wishes[i].open) {
            *epoch = ring->wishes[i].epoch;
            *number = ring->wishes[i].number;
            return true;
        }
    }
    return false;
}

static void grant_wishes(bwi_ring *ring, int epoch, int64_t number)
{
    for (int i = 0; i < ring->workers; i++) {
        if (ring->wishes[i].open && ring->wishes[i].epoch == epoch && ring->wishes[i].number == number) {
            ring->wishes[i].open = false;
        }
    }
}

/* The slot to make next: a wish, or the next on the course; -1: there is nothing to do. */
static int choose(bwi_ring *ring)
{
    int epoch, at;
    int64_t number, position;
    if (next_wish(ring, &epoch, &number)) {
        at = claim(ring, epoch, number, false);
        if (at >= 0) {
            grant_wishes(ring, epoch, number);
        }
        return at;
    }
    while (bwi_course_peek(&ring->course, &epoch, &position)) {
        number = bwi_dataset_number(ring->dataset, epoch, position);
        epoch = ring->course.walk.plain ? BWI_EPOCH_NONE : epoch;
        at = find(ring, epoch, number) >= 0 ? -1 : claim(ring, epoch, number, true);
        if (at < 0 && find(ring, epoch, number) < 0) {
            return -1; /* no room */
        }
        bwi_course_next(&ring->course);
        if (at >= 0) {
            return at;
        }
    }
    return -1;
}

static void make(bwi_ring *ring, int at)
{
    slot *one = &ring->slot[at];
    void *values[BWI_FIELD_LIMIT];
    unsigned char *memory = ring->memory + (size_t)at * ring->bytes;
    for (int f = 0; f < bwi_dataset_fields(ring->dataset); f++) {
        values[f] = memory + ring->offset[f];
    }
    one->trouble[0] = 0;
    one->status = bwi_content_make(ring->dataset, one->epoch, one->number, values, one->trouble);
}

static void *run(void *argument)
{
    bwi_ring *ring = argument;
    bwi_float_begin();
    pthread_mutex_lock(&ring->mutex);
    while (!ring->stop) {
        int at = choose(ring);
        if (at < 0) {
            pthread_cond_wait(&ring->work, &ring->mutex);
            continue;
        }
        pthread_mutex_unlock(&ring->mutex);
        make(ring, at);
        pthread_mutex_lock(&ring->mutex);
        ring->slot[at].state = READY;
        if (ring->slot[at].status != BW_OK) {
            mark_used(ring, at); /* made anew if it is asked for later again */
        }
        pthread_cond_broadcast(&ring->done);
    }
    pthread_mutex_unlock(&ring->mutex);
    return NULL;
}

/* ---- Opening and closing ---- */

bw_status bwi_ring_attach(bw_dataset *dataset)
{
    bwi_ring *ring = bwi_allocate(dataset->owned.ctx, 1, sizeof *ring);
    if (!ring) {
        return BW_RESOURCE_EXHAUSTED;
    }
    ring->ctx = dataset->owned.ctx;
    dataset->slow = true;
    dataset->ring = ring;
    return BW_OK;
}

static void release(bwi_ring *ring)
{
    bw_context *ctx = ring->ctx;
    bwi_release(ctx, ring->thread);
    bwi_release(ctx, ring->slot);
    bwi_release(ctx, ring->memory);
    bwi_release(ctx, ring->bucket);
    bwi_release(ctx, ring->used);
    bwi_release(ctx, ring->wishes);
    ring->thread = NULL;
    ring->slot = NULL;
    ring->memory = NULL;
    ring->bucket = ring->used = NULL;
    ring->wishes = NULL;
}

static void stop(bwi_ring *ring)
{
    if (!ring->runs) {
        return;
    }
    pthread_mutex_lock(&ring->mutex);
    ring->stop = true;
    pthread_cond_broadcast(&ring->work);
    pthread_mutex_unlock(&ring->mutex);
    for (int i = 0; i < ring->threads; i++) {
        pthread_join(ring->thread[i], NULL);
    }
    pthread_cond_destroy(&ring->work);
    pthread_cond_destroy(&ring->done);
    pthread_mutex_destroy(&ring->mutex);
    release(ring);
    ring->runs = ring->stop = false;
}

void bwi_ring_close(bwi_ring *ring)
{
    if (!ring) {
        return;
    }
    stop(ring);
    bwi_release(ring->ctx, ring);
}

bool bwi_ring_runs(const bwi_ring *ring)
{
    return ring->runs;
}

static bwi_prefetch find_settings(const bw_dataset *dataset)
{
    bwi_prefetch chosen = {.threads = 0};
    for (; dataset; dataset = dataset->upstream) {
        if (dataset->source == &bwi_source_prefetch) {
            chosen = *(const bwi_prefetch *)dataset->own;
            break;
        }
    }
    return chosen;
}

static size_t sample_bytes(const bw_dataset *dataset, size_t *offset)
{
    size_t bytes = 0;
    for (int f = 0; f < dataset->content->column_count; f++) {
        if (offset) {
            offset[f] = bytes;
        }
        bytes = bwi_size_add(
            bytes, bwi_size_align((size_t)dataset->content->columns[f].values * bwi_dtype_size(bwi_make_dtype(dataset, f)),
                                  BWI_CACHE_LINE));
    }
    return bytes;
}

/* Of a sample with its slot, its places in the buckets and in the queue. */
static size_t slot_bytes(const bw_dataset *dataset)
{
    return bwi_size_add(sample_bytes(dataset, NULL), sizeof(slot) + 5 * sizeof(int));
}

typedef struct sizes {
    int threads, slots, kept;
} sizes;

static sizes find_sizes(const bw_dataset *dataset, const bwi_walk *walk)
{
    bwi_prefetch settings = find_settings(dataset);
    size_t bytes = sample_bytes(dataset, NULL);
    sizes s = {.threads = settings.threads > 0 ? settings.threads : bwi_cpus()};
    int64_t ahead = settings.samples;
    if (ahead <= 0) {
        int64_t most = (int64_t)(BYTES_AHEAD / (bytes ? bytes : 1));
        ahead = walk->count < SAMPLES_AHEAD / 2 ? 2 * walk->count : SAMPLES_AHEAD;
        ahead = ahead < most ? ahead : most;
    }
    int64_t kept = 2 * (int64_t)walk->workers * walk->tile;
    if (walk->again && walk->count > kept) {
        int64_t most = (int64_t)((walk->room > 0 ? walk->room / 2 : BYTES_AHEAD) / slot_bytes(dataset));
        kept = walk->count < most ? walk->count : kept > most ? kept : most;
        kept = kept < INT32_MAX / 4 ? kept : INT32_MAX / 4;
    }
    s.kept = (int)(kept < dataset->count ? kept : dataset->count);
    if (walk->room > 0) {
        int64_t slots = (int64_t)(walk->room / slot_bytes(dataset)) - s.kept - walk->workers - 1;
        ahead = ahead < slots ? ahead : slots;
    }
    ahead = ahead < 2 * (int64_t)s.threads ? 2 * (int64_t)s.threads : ahead;
    ahead = ahead < dataset->count ? ahead : dataset->count;
    s.slots = (int)(ahead < INT32_MAX / 4 ? ahead : INT32_MAX / 4) + s.kept + walk->workers + 1;
    return s;
}

size_t bwi_dataset_bytes(const bw_dataset *dataset, const bwi_walk *walk)
{
    if (!dataset->ring) {
        return 0;
    }
    sizes s = find_sizes(dataset, walk);
    size_t lists = 4096; /* of threads, wishes and scratch */
    return bwi_size_add(bwi_size_add(bwi_size_multiply((size_t)s.slots, slot_bytes(dataset)), lists),
                        bwi_size_multiply((size_t)s.threads, bwi_scratch_bytes(dataset)));
}

static bw_status allocate(bwi_ring *ring, const bw_dataset *dataset, const bwi_walk *walk)
{
    bw_context *ctx = ring->ctx;
    sizes s = find_sizes(dataset, walk);
    ring->dataset = dataset;
    ring->settings = find_settings(dataset);
    ring->bytes = sample_bytes(dataset, ring->offset);
    ring->slots = s.slots;
    ring->kept = s.kept;
    ring->workers = walk->workers;
    for (ring->buckets = 16; ring->buckets < 2 * s.slots; ring->buckets *= 2)
        ;
    ring->thread = bwi_allocate(ctx, (size_t)s.threads, sizeof *ring->thread);
    ring->slot = ring->thread ? bwi_allocate(ctx, (size_t)s.slots, sizeof *ring->slot) : NULL;
    ring->memory = ring->slot ? bwi_allocate(ctx, (size_t)s.slots, ring->bytes) : NULL;
    ring->bucket = ring->memory ? bwi_allocate(ctx, (size_t)ring->buckets, sizeof *ring->bucket) : NULL;
    ring->used = ring->bucket ? bwi_allocate(ctx, (size_t)s.slots, sizeof *ring->used) : NULL;
    ring->wishes = ring->used ? bwi_allocate(ctx, (size_t)ring->workers, sizeof *ring->wishes) : NULL;
    if (!ring->wishes) {
        return BW_RESOURCE_EXHAUSTED;
    }
    for (int i = 0; i < ring->buckets; i++) {
        ring->bucket[i] = -1;
    }
    for (int i = 0; i < ring->slots; i++) {
        ring->slot[i].next = i + 1 < ring->slots ? i + 1 : -1;
    }
    ring->free = 0;
    ring->free_count = ring->slots;
    ring->used_first = ring->used_count = 0;
    if (ring->reserved) {
        return BW_OK;
    }
    bw_status status = bwi_scratch_reserve(dataset, s.threads);
    ring->reserved = status == BW_OK;
    return status;
}

static bool open_locks(bwi_ring *ring)
{
    pthread_condattr_t attributes;
    if (pthread_condattr_init(&attributes) != 0) {
        return false;
    }
    bool made = pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC) == 0 && pthread_mutex_init(&ring->mutex, NULL) == 0;
    if (made && pthread_cond_init(&ring->work, NULL) != 0) {
        pthread_mutex_destroy(&ring->mutex);
        made = false;
    }
    if (made && pthread_cond_init(&ring->done, &attributes) != 0) {
        pthread_cond_destroy(&ring->work);
        pthread_mutex_destroy(&ring->mutex);
        made = false;
    }
    pthread_condattr_destroy(&attributes);
    return made;
}

/* Fewer threads than wanted will do, none will not. */
static bw_status start(bwi_ring *ring, const bw_dataset *dataset, const bwi_walk *walk)
{
    bw_status status = allocate(ring, dataset, walk);
    if (status == BW_OK && !open_locks(ring)) {
        status = bwi_fail(ring->ctx, BW_RESOURCE_EXHAUSTED, "cannot make the locks of a prefetch ring");
    }
    if (status != BW_OK) {
        release(ring);
        return status;
    }
    int wanted = find_sizes(dataset, walk).threads;
    int result = 0;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    for (ring->threads = 0; ring->threads < wanted && result == 0; ring->threads += result == 0) {
        result = pthread_create(&ring->thread[ring->threads], NULL, run, ring);
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    ring->runs = true;
    if (ring->threads > 0) {
        return BW_OK;
    }
    stop(ring);
    return bwi_fail(ring->ctx, BW_RESOURCE_EXHAUSTED, "cannot start a thread that makes samples: %s", bwi_errno_text(result));
}

/* What was made for another course may be taken again. */
static void drop_unused(bwi_ring *ring)
{
    for (int i = 0; i < ring->slots; i++) {
        if (ring->slot[i].state == READY) {
            mark_used(ring, i);
        }
    }
}

bw_status bwi_ring_begin(bwi_ring *ring, const bw_dataset *dataset, const bwi_walk *walk)
{
    if (ring->runs && (walk->workers > ring->workers || 2 * walk->workers * walk->tile > ring->kept + 1) &&
        ring->kept < dataset->count) {
        stop(ring); /* a session with other tiles */
    }
    bool fresh = !ring->runs;
    if (fresh) {
        /* Epochs follow each other while training, which shuffles; otherwise nothing is known yet. */
        ring->course = (bwi_course){.count = dataset->count, .step = dataset->moving ? 1 : -1};
        ring->last_epoch = -1;
        bw_status status = start(ring, dataset, walk);
        if (status != BW_OK) {
            return status;
        }
    }
    pthread_mutex_lock(&ring->mutex);
    if (walk->first == 0) {
        if (ring->last_epoch >= 0) {
            ring->course.step = walk->epoch - ring->last_epoch;
        }
        ring->last_epoch = walk->epoch;
    }
    if (!bwi_course_begin(&ring->course, walk) && !fresh) {
        drop_unused(ring);
    }
    pthread_cond_broadcast(&ring->work);
    pthread_mutex_unlock(&ring->mutex);
    return BW_OK;
}

/* ---- Workers ---- */

static void wait_a_little(bwi_ring *ring)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += (long)(POLL_SECONDS * 1e9);
    if (until.tv_nsec >= 1000000000) {
        until.tv_nsec -= 1000000000;
        until.tv_sec++;
    }
    pthread_cond_timedwait(&ring->done, &ring->mutex, &until);
}

/* What the source is doing instead: the sample itself if it is in the making, or the one that has been for longest. */
static bw_status fail_stalled(const bwi_ring *ring, const bw_dataset *dataset, const bwi_demand *demand, int64_t number,
                              double seconds)
{
    int at = find(ring, demand->epoch, number);
    double now = bwi_now();
    for (int i = 0; at < 0 && i < ring->slots; i++) {
        if (ring->slot[i].state == MAKING && (at < 0 || ring->slot[i].since < ring->slot[at].since)) {
            at = i;
        }
    }
    if (at < 0) {
        return bwi_trouble(dataset, number, demand->trouble, BW_RESOURCE_EXHAUSTED, "the source stalls: no sample for %.3g s",
                           seconds);
    }
    char place[BWI_GATHER_TROUBLE / 2];
    bwi_dataset_place(dataset, ring->slot[at].number, place, sizeof place);
    return bwi_trouble(dataset, number, demand->trouble, BW_RESOURCE_EXHAUSTED,
                       "the source stalls: no sample for %.3g s; it has been making sample %lld%s%s%s for %.3g s", seconds,
                       (long long)ring->slot[at].number, place[0] ? " (" : "", place, place[0] ? ")" : "",
                       now - ring->slot[at].since);
}

/* Wishes for a sample; false if all places are taken by others, who are waiting too. */
static int post(bwi_ring *ring, int epoch, int64_t number)
{
    for (int i = 0; i < ring->workers; i++) {
        if (!ring->wishes[i].open) {
            ring->wishes[i] = (wish){.epoch = epoch, .number = number, .open = true};
            pthread_cond_signal(&ring->work);
            return i;
        }
    }
    return -1;
}

/* Waits until the sample is ready and pins its slot. */
static bw_status await(bwi_ring *ring, const bw_dataset *dataset, const bwi_demand *demand, int64_t number, int *at)
{
    double limit = ring->settings.seconds > 0 ? ring->settings.seconds : SECONDS_DEFAULT;
    double begin = 0;
    int wished = -1;
    for (;;) {
        *at = find(ring, demand->epoch, number);
        if (*at >= 0 && ring->slot[*at].state == READY) {
            break;
        }
        if (*at < 0 && (wished < 0 || !ring->wishes[wished].open)) {
            wished = post(ring, demand->epoch, number);
        }
        double now = bwi_now();
        begin = begin > 0 ? begin : now;
        bool late = ring->settings.seconds >= 0 && now - begin > limit;
        if (late || bwi_cancelled(ring->ctx)) {
            if (wished >= 0 && ring->wishes[wished].number == number) {
                ring->wishes[wished].open = false;
            }
            return late ? fail_stalled(ring, dataset, demand, number, now - begin) : BW_CANCELLED;
        }
        wait_a_little(ring);
    }
    ring->slot[*at].pins++;
    return BW_OK;
}

bw_status bwi_ring_gather(bwi_ring *ring, const bw_dataset *dataset, const bwi_demand *demand)
{
    if (demand->field < 0 || demand->field >= dataset->content->column_count) {
        return BW_INVALID_ARGUMENT;
    }
    for (int64_t i = 0; i < demand->n; i++) {
        if (demand->numbers[i] < 0 || demand->numbers[i] >= dataset->numbers) {
            return BW_INVALID_ARGUMENT;
        }
    }
    bwi_destination to = *demand->to;
    size_t step = (size_t)bwi_destination_values(&to) * 4;
    bw_status status = BW_OK;
    for (int64_t i = 0; i < demand->n && status == BW_OK; i++) {
        int at = -1;
        pthread_mutex_lock(&ring->mutex);
        status = await(ring, dataset, demand, demand->numbers[i], &at);
        pthread_mutex_unlock(&ring->mutex);
        if (status != BW_OK) {
            break;
        }
        const slot *one = &ring->slot[at];
        status = one->status;
        if (status != BW_OK && demand->trouble && !demand->trouble[0]) {
            memcpy(demand->trouble, one->trouble, sizeof one->trouble);
        }
        if (status == BW_OK) {
            status = bwi_content_put(dataset, demand->field, ring->memory + (size_t)at * ring->bytes + ring->offset[demand->field],
                                     demand->numbers[i], &to, demand->trouble);
        }
        to.data = (unsigned char *)to.data + step;
        pthread_mutex_lock(&ring->mutex);
        ring->slot[at].pins--;
        mark_used(ring, at);
        pthread_cond_signal(&ring->work);
        pthread_mutex_unlock(&ring->mutex);
    }
    return status;
}
