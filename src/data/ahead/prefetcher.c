/*
 * The prefetcher: samples that are slow to make (decoded, mapped, loaded) are made by threads of the prefetcher, in the order in
 * which workers will ask for them. A worker never makes a sample itself, so it can be cancelled and can time out whatever the
 * source does. It requests a sample that is not ready yet, and requests are served first.
 *
 * Slots are free, making, or ready. A ready slot from which a sample was gathered is used. Used slots are reused, oldest first, as
 * long as more of them remain than workers hold in their tiles (input and target are gathered one after the other). Prefetching
 * leaves one slot for each worker's request, so a request can always be served and there is no deadlock.
 *
 * Values depend on (epoch, number) alone, never on which thread makes them or when.
 */
#include "data/ahead/ahead.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define BYTES_AHEAD ((size_t)64 << 20)
#define SAMPLES_AHEAD 4096
#define POLL_SECONDS 0.02 /* how often a waiting worker looks at the cancel flag */
#define SECONDS_DEFAULT 60
#define STACK_BYTES ((size_t)4 << 12) /* what a thread touches of its stack and of its own memory */
#define SECONDS_TO_STOP 1.0           /* how long threads may take before the dataset is left to bw_close */

typedef enum state { FREE, MAKING, READY } state;

typedef struct slot {
    state state;
    int64_t number;
    int epoch;
    int next; /* the next slot in its bucket, or in the list of free ones; -1: none */
    int pins; /* workers that copy from it */
    bool used;
    bw_status status;
    double since; /* when making it began */
    char error[BWI_GATHER_ERROR];
} slot;

typedef struct request {
    int epoch;
    int64_t number;
    bool open; /* no thread makes it yet */
} request;

struct bwi_prefetcher {
    bw_context *ctx;
    const bw_dataset *dataset;
    bwi_prefetch settings;
    bool runs, reserved;
    int forks; /* of the process that has the threads; a child of fork has none of them */
    atomic_bool stop;
    pthread_mutex_t mutex;
    pthread_cond_t work, done; /* threads wait for work, workers for samples that are done */

    int threads, running; /* running: those that have not ended yet */
    int begun;            /* threads that have begun, each of which takes the next number */
    bwi_makings *makings; /* the recording; NULL: there is none */
    pthread_t *thread;
    int slots, kept, workers; /* kept: used slots that are not reused; workers: the most that may request */
    slot *slot;
    unsigned char *memory;
    size_t bytes; /* of a sample */
    size_t offset[BWI_FIELD_LIMIT];
    int *bucket, buckets; /* their number is a power of two */
    int free, free_count;
    int *used, used_first, used_count; /* a queue */
    request *requests;

    /* What is made next. */
    bwi_prefetch_order order;
    int last_epoch;
};

/* ---- Slots ---- */

static int bucket_of(const bwi_prefetcher *prefetcher, int epoch, int64_t number)
{
    uint64_t key = (uint64_t)number * 0x9E3779B97F4A7C15u + (uint64_t)epoch * 0xC2B2AE3D27D4EB4Fu;
    return (int)((key >> 32) & (uint64_t)(prefetcher->buckets - 1));
}

static int find(const bwi_prefetcher *prefetcher, int epoch, int64_t number)
{
    int at = prefetcher->bucket[bucket_of(prefetcher, epoch, number)];
    while (at >= 0 && (prefetcher->slot[at].number != number || prefetcher->slot[at].epoch != epoch)) {
        at = prefetcher->slot[at].next;
    }
    return at;
}

static void forget(bwi_prefetcher *prefetcher, int at)
{
    int *link = &prefetcher->bucket[bucket_of(prefetcher, prefetcher->slot[at].epoch, prefetcher->slot[at].number)];
    while (*link != at) {
        link = &prefetcher->slot[*link].next;
    }
    *link = prefetcher->slot[at].next;
}

static void mark_used(bwi_prefetcher *prefetcher, int at)
{
    if (prefetcher->slot[at].used) {
        return;
    }
    prefetcher->slot[at].used = true;
    prefetcher->used[(prefetcher->used_first + prefetcher->used_count++) % prefetcher->slots] = at;
}

/* Takes the oldest used slot that no worker copies from; -1 if there is none. */
static int take_used(bwi_prefetcher *prefetcher)
{
    for (int i = prefetcher->used_count; i > 0; i--) {
        int at = prefetcher->used[prefetcher->used_first];
        prefetcher->used_first = (prefetcher->used_first + 1) % prefetcher->slots;
        if (prefetcher->slot[at].pins == 0) {
            prefetcher->used_count--;
            forget(prefetcher, at);
            return at;
        }
        prefetcher->used[(prefetcher->used_first + prefetcher->used_count - 1) % prefetcher->slots] = at;
    }
    return -1;
}

/* Claims a slot for a sample that is about to be made; -1 if there is none. Prefetching leaves one for each worker. */
static int claim(bwi_prefetcher *prefetcher, int epoch, int64_t number, bool ahead)
{
    int spare = prefetcher->used_count > prefetcher->kept ? prefetcher->used_count - prefetcher->kept : 0;
    if (ahead && prefetcher->free_count + spare <= prefetcher->workers) {
        return -1;
    }
    int at = prefetcher->free;
    if (at >= 0) {
        prefetcher->free = prefetcher->slot[at].next;
        prefetcher->free_count--;
    } else {
        at = take_used(prefetcher);
        if (at < 0) {
            return -1;
        }
    }
    int *head = &prefetcher->bucket[bucket_of(prefetcher, epoch, number)];
    prefetcher->slot[at] = (slot){.state = MAKING, .number = number, .epoch = epoch, .next = *head, .since = bwi_now()};
    *head = at;
    return at;
}

/* ---- Threads ---- */

static bool next_request(bwi_prefetcher *prefetcher, int *epoch, int64_t *number)
{
    for (int i = 0; i < prefetcher->workers; i++) {
        if (prefetcher->requests[i].open) {
            *epoch = prefetcher->requests[i].epoch;
            *number = prefetcher->requests[i].number;
            return true;
        }
    }
    return false;
}

static void grant_requests(bwi_prefetcher *prefetcher, int epoch, int64_t number)
{
    for (int i = 0; i < prefetcher->workers; i++) {
        if (prefetcher->requests[i].open && prefetcher->requests[i].epoch == epoch && prefetcher->requests[i].number == number) {
            prefetcher->requests[i].open = false;
        }
    }
}

/* Chooses the slot to fill next, for a request or for the next sample of the order; -1: there is nothing to do. */
static int choose(bwi_prefetcher *prefetcher)
{
    int epoch, at;
    int64_t number, position;
    if (next_request(prefetcher, &epoch, &number)) {
        at = claim(prefetcher, epoch, number, false);
        if (at >= 0) {
            grant_requests(prefetcher, epoch, number);
        }
        return at;
    }
    while (bwi_prefetch_order_peek(&prefetcher->order, &epoch, &position)) {
        number = bwi_dataset_number(prefetcher->dataset, epoch, position);
        epoch = prefetcher->order.schedule.unaugmented ? BWI_EPOCH_NONE : epoch;
        at = find(prefetcher, epoch, number) >= 0 ? -1 : claim(prefetcher, epoch, number, true);
        if (at < 0 && find(prefetcher, epoch, number) < 0) {
            return -1; /* all slots are taken */
        }
        bwi_prefetch_order_next(&prefetcher->order);
        if (at >= 0) {
            return at;
        }
    }
    return -1;
}

static void make(bwi_prefetcher *prefetcher, int at)
{
    slot *one = &prefetcher->slot[at];
    void *values[BWI_FIELD_LIMIT];
    unsigned char *memory = prefetcher->memory + (size_t)at * prefetcher->bytes;
    for (int f = 0; f < bwi_dataset_fields(prefetcher->dataset); f++) {
        values[f] = memory + prefetcher->offset[f];
    }
    one->error[0] = 0;
    one->status = bwi_content_make(prefetcher->dataset, one->epoch, one->number, values, one->error);
}

/* The flag of the prefetcher to which this thread belongs; NULL: none. */
static _Thread_local const atomic_bool *stopping;

bool bwi_prefetcher_stopping(void)
{
    return stopping && atomic_load_explicit(stopping, memory_order_relaxed);
}

static void note(bwi_makings *makings, int thread, const bwi_making *making)
{
    if (makings && thread < makings->threads) {
        int64_t at = makings->made[thread]++ % makings->capacity;
        makings->list[thread * makings->capacity + at] = *making;
    }
}

/* The function of the prefetcher's threads. The mutex is held except while a sample is made. */
static void *run(void *argument)
{
    bwi_prefetcher *prefetcher = argument;
    stopping = &prefetcher->stop;
    (void)bwi_float_set();
    pthread_mutex_lock(&prefetcher->mutex);
    int self = prefetcher->begun++;
    while (!atomic_load_explicit(&prefetcher->stop, memory_order_relaxed)) {
        int at = choose(prefetcher);
        if (at < 0) {
            pthread_cond_wait(&prefetcher->work, &prefetcher->mutex);
            continue;
        }
        bwi_making making = {.number = prefetcher->slot[at].number, .begin = bwi_ticks()};
        pthread_mutex_unlock(&prefetcher->mutex);
        make(prefetcher, at);
        making.end = bwi_ticks();
        pthread_mutex_lock(&prefetcher->mutex);
        note(prefetcher->makings, self, &making);
        prefetcher->slot[at].state = READY;
        if (prefetcher->slot[at].status != BW_OK) {
            mark_used(prefetcher, at); /* so a failed sample is made again when it is asked for again */
        }
        pthread_cond_broadcast(&prefetcher->done);
    }
    prefetcher->running--;
    pthread_cond_broadcast(&prefetcher->done);
    pthread_mutex_unlock(&prefetcher->mutex);
    return NULL;
}

static void wait_a_little(bwi_prefetcher *prefetcher)
{
    bwi_condition_wait(&prefetcher->mutex, &prefetcher->done, (long)(POLL_SECONDS * 1e9));
}

/* ---- Opening and closing ---- */

bw_status bwi_prefetcher_attach(bw_dataset *dataset)
{
    bwi_prefetcher *prefetcher = bwi_allocate(dataset->owned.ctx, 1, sizeof *prefetcher);
    if (!prefetcher) {
        return BW_RESOURCE_EXHAUSTED;
    }
    prefetcher->ctx = dataset->owned.ctx;
    dataset->slow = true;
    dataset->prefetcher = prefetcher;
    return BW_OK;
}

static void release(bwi_prefetcher *prefetcher)
{
    bw_context *ctx = prefetcher->ctx;
    bwi_release(ctx, prefetcher->thread);
    bwi_release(ctx, prefetcher->slot);
    bwi_release(ctx, prefetcher->memory);
    bwi_release(ctx, prefetcher->bucket);
    bwi_release(ctx, prefetcher->used);
    bwi_release(ctx, prefetcher->requests);
    prefetcher->thread = NULL;
    prefetcher->slot = NULL;
    prefetcher->memory = NULL;
    prefetcher->bucket = prefetcher->used = NULL;
    prefetcher->requests = NULL;
}

/* In a child of fork there are no threads to be told, and locks that the parent's threads may hold are not touched. */
bool bwi_prefetcher_quit(bwi_prefetcher *prefetcher)
{
    if (prefetcher->runs && prefetcher->forks != bwi_forks()) {
        release(prefetcher);
        prefetcher->runs = false;
    }
    if (!prefetcher->runs) {
        return true;
    }
    double begin = bwi_now();
    pthread_mutex_lock(&prefetcher->mutex);
    atomic_store(&prefetcher->stop, true);
    pthread_cond_broadcast(&prefetcher->work);
    while (prefetcher->running > 0 && bwi_now() - begin < SECONDS_TO_STOP) {
        wait_a_little(prefetcher);
    }
    bool all = prefetcher->running == 0;
    pthread_mutex_unlock(&prefetcher->mutex);
    return all;
}

static void stop(bwi_prefetcher *prefetcher)
{
    bwi_prefetcher_quit(prefetcher);
    if (!prefetcher->runs) {
        return;
    }
    for (int i = 0; i < prefetcher->threads; i++) {
        pthread_join(prefetcher->thread[i], NULL);
    }
    pthread_cond_destroy(&prefetcher->work);
    bwi_condition_close(&prefetcher->mutex, &prefetcher->done);
    release(prefetcher);
    prefetcher->runs = false;
    atomic_store(&prefetcher->stop, false);
}

void bwi_prefetcher_close(bwi_prefetcher *prefetcher)
{
    if (!prefetcher) {
        return;
    }
    stop(prefetcher);
    bwi_release(prefetcher->ctx, prefetcher);
}

bool bwi_prefetcher_runs(const bwi_prefetcher *prefetcher)
{
    return prefetcher->runs;
}

/* Threads look at it with the mutex held, so after this call none of them still writes to the one before. */
void bwi_dataset_record(const bw_dataset *dataset, bwi_makings *makings)
{
    bwi_prefetcher *prefetcher = dataset->prefetcher;
    if (!prefetcher) {
        return;
    }
    bool locks = prefetcher->runs && prefetcher->forks == bwi_forks();
    if (locks) {
        pthread_mutex_lock(&prefetcher->mutex);
    }
    prefetcher->makings = makings;
    if (locks) {
        pthread_mutex_unlock(&prefetcher->mutex);
    }
}

static bwi_prefetch find_settings(const bw_dataset *dataset)
{
    bwi_prefetch chosen = {.threads = 0};
    for (; dataset; dataset = dataset->upstream) {
        if (dataset->kind == &bwi_kind_prefetch) {
            chosen = *(const bwi_prefetch *)dataset->state;
            break;
        }
    }
    return chosen;
}

int bwi_dataset_threads(const bw_dataset *dataset)
{
    int chosen = find_settings(dataset).threads;
    return !dataset->prefetcher ? 0 : chosen > 0 ? chosen : bwi_cpus();
}

static size_t sample_bytes(const bw_dataset *dataset, size_t *offset)
{
    size_t bytes = 0;
    for (int f = 0; f < dataset->content->column_count; f++) {
        if (offset) {
            offset[f] = bytes;
        }
        bytes = bwi_size_add(
            bytes, bwi_size_align((size_t)dataset->content->columns[f].rows.values * bwi_dtype_size(bwi_make_dtype(dataset, f)),
                                  BWI_CACHE_LINE));
    }
    return bytes;
}

/* The bytes of a sample with its slot and its entries in the buckets and the queue. */
static size_t slot_bytes(const bw_dataset *dataset)
{
    return bwi_size_add(sample_bytes(dataset, NULL), sizeof(slot) + 5 * sizeof(int));
}

typedef struct sizes {
    int threads, slots, kept;
} sizes;

/* There are slots for prefetched samples, for samples that stay after use (two tiles for each worker, or the whole piece if it is
 * gathered again), one for each worker's request, and one more. A budget reduces the prefetched ones, but never below two for each
 * thread. */
static sizes find_sizes(const bw_dataset *dataset, const bwi_gather_schedule *schedule)
{
    bwi_prefetch settings = find_settings(dataset);
    size_t bytes = sample_bytes(dataset, NULL);
    sizes s = {.threads = bwi_dataset_threads(dataset)};
    int64_t ahead = settings.samples;
    if (ahead <= 0) {
        int64_t most = (int64_t)(BYTES_AHEAD / (bytes ? bytes : 1));
        ahead = schedule->count < SAMPLES_AHEAD / 2 ? 2 * schedule->count : SAMPLES_AHEAD;
        ahead = ahead < most ? ahead : most;
    }
    int64_t kept = 2 * (int64_t)schedule->workers * schedule->tile;
    if (schedule->again && schedule->count > kept) {
        int64_t most = (int64_t)((schedule->budget > 0 ? schedule->budget / 2 : BYTES_AHEAD) / slot_bytes(dataset));
        kept = schedule->count < most ? schedule->count : kept > most ? kept : most;
        kept = kept < INT32_MAX / 4 ? kept : INT32_MAX / 4;
    }
    s.kept = (int)(kept < dataset->count ? kept : dataset->count);
    if (schedule->budget > 0) {
        int64_t slots = (int64_t)(schedule->budget / slot_bytes(dataset)) - s.kept - schedule->workers - 1;
        ahead = ahead < slots ? ahead : slots;
    }
    ahead = ahead < 2 * (int64_t)s.threads ? 2 * (int64_t)s.threads : ahead;
    ahead = ahead < dataset->count ? ahead : dataset->count;
    s.slots = (int)(ahead < INT32_MAX / 4 ? ahead : INT32_MAX / 4) + s.kept + schedule->workers + 1;
    return s;
}

size_t bwi_dataset_bytes(const bw_dataset *dataset, const bwi_gather_schedule *schedule)
{
    if (!dataset->prefetcher) {
        return 0;
    }
    sizes s = find_sizes(dataset, schedule);
    size_t lists = 4096; /* an allowance for the lists of threads, requests and scratch */
    return bwi_size_add(bwi_size_add(bwi_size_multiply((size_t)s.slots, slot_bytes(dataset)), lists),
                        bwi_size_multiply((size_t)s.threads, bwi_size_add(bwi_scratch_bytes(dataset), STACK_BYTES)));
}

/* Everything is allocated before the threads start, and nothing while they run. */
static bw_status allocate(bwi_prefetcher *prefetcher, const bw_dataset *dataset, const bwi_gather_schedule *schedule)
{
    bw_context *ctx = prefetcher->ctx;
    sizes s = find_sizes(dataset, schedule);
    prefetcher->dataset = dataset;
    prefetcher->settings = find_settings(dataset);
    prefetcher->bytes = sample_bytes(dataset, prefetcher->offset);
    prefetcher->slots = s.slots;
    prefetcher->kept = s.kept;
    prefetcher->workers = schedule->workers;
    for (prefetcher->buckets = 16; prefetcher->buckets < 2 * s.slots; prefetcher->buckets *= 2)
        ;
    prefetcher->thread = bwi_allocate(ctx, (size_t)s.threads, sizeof *prefetcher->thread);
    prefetcher->slot = prefetcher->thread ? bwi_allocate(ctx, (size_t)s.slots, sizeof *prefetcher->slot) : NULL;
    prefetcher->memory = prefetcher->slot ? bwi_allocate(ctx, (size_t)s.slots, prefetcher->bytes) : NULL;
    prefetcher->bucket = prefetcher->memory ? bwi_allocate(ctx, (size_t)prefetcher->buckets, sizeof *prefetcher->bucket) : NULL;
    prefetcher->used = prefetcher->bucket ? bwi_allocate(ctx, (size_t)s.slots, sizeof *prefetcher->used) : NULL;
    prefetcher->requests = prefetcher->used ? bwi_allocate(ctx, (size_t)prefetcher->workers, sizeof *prefetcher->requests) : NULL;
    if (!prefetcher->requests) {
        return BW_RESOURCE_EXHAUSTED;
    }
    for (int i = 0; i < prefetcher->buckets; i++) {
        prefetcher->bucket[i] = -1;
    }
    for (int i = 0; i < prefetcher->slots; i++) {
        prefetcher->slot[i].next = i + 1 < prefetcher->slots ? i + 1 : -1;
    }
    prefetcher->free = 0;
    prefetcher->free_count = prefetcher->slots;
    prefetcher->used_first = prefetcher->used_count = 0;
    if (prefetcher->reserved) {
        return BW_OK;
    }
    bw_status status = bwi_scratch_reserve(dataset, s.threads);
    prefetcher->reserved = status == BW_OK;
    return status;
}

static bool open_locks(bwi_prefetcher *prefetcher)
{
    bool made = bwi_condition_open(&prefetcher->mutex, &prefetcher->done);
    if (made && pthread_cond_init(&prefetcher->work, NULL) != 0) {
        bwi_condition_close(&prefetcher->mutex, &prefetcher->done);
        made = false;
    }
    return made;
}

/* Starts the threads. Fewer than requested are enough, as long as there is one. */
static bw_status start(bwi_prefetcher *prefetcher, const bw_dataset *dataset, const bwi_gather_schedule *schedule)
{
    bw_status status = allocate(prefetcher, dataset, schedule);
    if (status == BW_OK && !open_locks(prefetcher)) {
        status = bwi_fail(prefetcher->ctx, BW_RESOURCE_EXHAUSTED, "cannot make the locks of a prefetcher");
    }
    if (status != BW_OK) {
        release(prefetcher);
        return status;
    }
    int wanted = find_sizes(dataset, schedule).threads;
    int result = 0;
    pthread_mutex_lock(&prefetcher->mutex); /* the threads begin when all have been created */
    for (prefetcher->threads = 0; prefetcher->threads < wanted && result == 0; prefetcher->threads += result == 0) {
        result = bwi_thread_start(&prefetcher->thread[prefetcher->threads], 0, run, prefetcher);
    }
    prefetcher->running = prefetcher->threads;
    prefetcher->begun = 0;
    pthread_mutex_unlock(&prefetcher->mutex);
    prefetcher->runs = true;
    prefetcher->forks = bwi_forks();
    if (prefetcher->threads > 0) {
        return BW_OK;
    }
    stop(prefetcher);
    return bwi_fail(prefetcher->ctx, BW_RESOURCE_EXHAUSTED, "cannot start a thread that makes samples: %s", bwi_errno_text(result));
}

/* Marks slots that were filled for another order as used, so that they can be reused. */
static void drop_unused(bwi_prefetcher *prefetcher)
{
    for (int i = 0; i < prefetcher->slots; i++) {
        if (prefetcher->slot[i].state == READY) {
            mark_used(prefetcher, i);
        }
    }
}

/* A schedule with larger tiles or more workers needs more slots, so the prefetcher starts again. An unexpected piece begins
 * another order, and slots that were filled for the old one may be reused. */
bw_status bwi_prefetcher_begin(bwi_prefetcher *prefetcher, const bw_dataset *dataset, const bwi_gather_schedule *schedule)
{
    if (prefetcher->runs &&
        (schedule->workers > prefetcher->workers || 2 * schedule->workers * schedule->tile > prefetcher->kept + 1) &&
        prefetcher->kept < dataset->count) {
        stop(prefetcher); /* this is a session with other tiles */
    }
    if (prefetcher->forks != bwi_forks()) {
        stop(prefetcher);
    }
    bool fresh = !prefetcher->runs;
    if (fresh) {
        /* A shuffled dataset is being trained with, so epochs follow each other; otherwise nothing is known yet. */
        prefetcher->order = (bwi_prefetch_order){.count = dataset->count, .step = dataset->moving ? 1 : -1};
        prefetcher->last_epoch = -1;
        bw_status status = start(prefetcher, dataset, schedule);
        if (status != BW_OK) {
            return status;
        }
    }
    pthread_mutex_lock(&prefetcher->mutex);
    if (schedule->first == 0) {
        if (prefetcher->last_epoch >= 0) {
            prefetcher->order.step = schedule->epoch - prefetcher->last_epoch;
        }
        prefetcher->last_epoch = schedule->epoch;
    }
    if (!bwi_prefetch_order_begin(&prefetcher->order, schedule) && !fresh) {
        drop_unused(prefetcher);
    }
    pthread_cond_broadcast(&prefetcher->work);
    pthread_mutex_unlock(&prefetcher->mutex);
    return BW_OK;
}

/* ---- Workers ---- */

/* Names the sample with which the source is busy: the requested one if it is being made, otherwise the one that has taken longest
 * so far. */
static bw_status fail_stalled(const bwi_prefetcher *prefetcher, const bw_dataset *dataset, const bwi_demand *demand, int64_t number,
                              double seconds)
{
    int at = find(prefetcher, demand->epoch, number);
    double now = bwi_now();
    for (int i = 0; at < 0 && i < prefetcher->slots; i++) {
        if (prefetcher->slot[i].state == MAKING && (at < 0 || prefetcher->slot[i].since < prefetcher->slot[at].since)) {
            at = i;
        }
    }
    if (at < 0) {
        return bwi_sample_error(dataset, number, demand->error, BW_RESOURCE_EXHAUSTED, "the source stalls: no sample for %.3g s",
                                seconds);
    }
    char location[BWI_GATHER_ERROR / 2];
    bwi_dataset_location(dataset, prefetcher->slot[at].number, location, sizeof location);
    return bwi_sample_error(dataset, number, demand->error, BW_RESOURCE_EXHAUSTED,
                            "the source stalls: no sample for %.3g s; it has been making sample %lld%s%s%s for %.3g s", seconds,
                            (long long)prefetcher->slot[at].number, location[0] ? " (" : "", location, location[0] ? ")" : "",
                            now - prefetcher->slot[at].since);
}

/* Requests a sample. Returns the index of the request; -1 if other waiting workers have taken all. */
static int post(bwi_prefetcher *prefetcher, int epoch, int64_t number)
{
    for (int i = 0; i < prefetcher->workers; i++) {
        if (!prefetcher->requests[i].open) {
            prefetcher->requests[i] = (request){.epoch = epoch, .number = number, .open = true};
            pthread_cond_signal(&prefetcher->work);
            return i;
        }
    }
    return -1;
}

/* Waits until the sample is ready and pins its slot. */
static bw_status await(bwi_prefetcher *prefetcher, const bw_dataset *dataset, const bwi_demand *demand, int64_t number, int *at)
{
    double limit = prefetcher->settings.seconds > 0 ? prefetcher->settings.seconds : SECONDS_DEFAULT;
    double begin = 0;
    uint64_t waiting = 0;
    int requested = -1;
    for (;;) {
        *at = find(prefetcher, demand->epoch, number);
        if (*at >= 0 && prefetcher->slot[*at].state == READY) {
            break;
        }
        if (*at < 0 && (requested < 0 || !prefetcher->requests[requested].open)) {
            requested = post(prefetcher, demand->epoch, number);
        }
        double now = bwi_now();
        begin = begin > 0 ? begin : now;
        waiting = waiting ? waiting : bwi_ticks();
        bool late = prefetcher->settings.seconds >= 0 && now - begin > limit;
        if (late || bwi_cancelled(prefetcher->ctx)) {
            if (requested >= 0 && prefetcher->requests[requested].number == number) {
                prefetcher->requests[requested].open = false;
            }
            return late ? fail_stalled(prefetcher, dataset, demand, number, now - begin) : BW_CANCELLED;
        }
        wait_a_little(prefetcher);
    }
    bwi_waited += waiting ? bwi_ticks() - waiting : 0;
    prefetcher->slot[*at].pins++;
    return BW_OK;
}

/* A slot is pinned while its sample is copied, which happens without the mutex, so that it is not reused meanwhile. */
bw_status bwi_prefetcher_gather(bwi_prefetcher *prefetcher, const bw_dataset *dataset, const bwi_demand *demand)
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
    bw_status status = BW_OK;
    for (int64_t i = 0; i < demand->n && status == BW_OK; i++) {
        int at = -1;
        pthread_mutex_lock(&prefetcher->mutex);
        status = await(prefetcher, dataset, demand, demand->numbers[i], &at);
        pthread_mutex_unlock(&prefetcher->mutex);
        if (status != BW_OK) {
            break;
        }
        const slot *one = &prefetcher->slot[at];
        status = one->status;
        if (status != BW_OK && demand->error && !demand->error[0]) {
            memcpy(demand->error, one->error, sizeof one->error);
        }
        if (status == BW_OK) {
            status = bwi_content_put(dataset, demand->field,
                                     prefetcher->memory + (size_t)at * prefetcher->bytes + prefetcher->offset[demand->field],
                                     demand->numbers[i], &to, demand->error);
        }
        bwi_destination_advance(&to, 1);
        pthread_mutex_lock(&prefetcher->mutex);
        prefetcher->slot[at].pins--;
        mark_used(prefetcher, at);
        pthread_cond_signal(&prefetcher->work);
        pthread_mutex_unlock(&prefetcher->mutex);
    }
    return status;
}
