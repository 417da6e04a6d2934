/* Samples made ahead: the right ones, in any order, whatever goes wrong, and no thread left behind. label: thread */
#include "data_test.h"

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

#include "data/ring.h"

#define SAMPLES 500
#define VALUES 3

typedef struct source {
    atomic_int calls, now, most;
    int64_t fails;  /* this sample fails; -1: none */
    int64_t stalls; /* this one waits until `go` */
    atomic_bool go;
    int microseconds;
} source;

static float value_of(int64_t number, int epoch, int k)
{
    return (float)(number * 10 + epoch * 100000 + k);
}

static bool make_sample(void *user, bw_sample *sample, void *const *values)
{
    source *s = user;
    atomic_fetch_add(&s->calls, 1);
    int now = atomic_fetch_add(&s->now, 1) + 1;
    int most = atomic_load(&s->most);
    while (now > most && !atomic_compare_exchange_weak(&s->most, &most, now))
        ;
    if (s->microseconds) {
        usleep((useconds_t)s->microseconds);
    }
    while (sample->number == s->stalls && !atomic_load(&s->go)) {
        usleep(1000);
    }
    atomic_fetch_sub(&s->now, 1);
    if (sample->number == s->fails) {
        snprintf(sample->trouble, BW_TROUBLE, "the disk is on fire");
        return false;
    }
    for (int k = 0; values[0] && k < VALUES; k++) {
        ((float *)values[0])[k] = value_of(sample->number, sample->epoch, k);
    }
    if (values[1]) {
        *(int32_t *)values[1] = (int32_t)(sample->number % 7);
    }
    return true;
}

static const bw_field fields[] = {{"x", {.dtype = BW_F32, .rank = 2, .shape = {SAMPLES, VALUES}}},
                                  {"y", {.dtype = BW_I32, .rank = 1, .shape = {SAMPLES}}}};

static bw_dataset *open_source(bw_context *ctx, source *s)
{
    if (!s->fails) { /* threads of a dataset that was opened before may be reading them */
        s->fails = -1;
    }
    if (!s->stalls) {
        s->stalls = -1;
    }
    return bw_from_function(ctx, fields, 2, make_sample, s);
}

static bw_context *open_context(void)
{
    bw_context_options options = BW_CONTEXT_OPTIONS_DEFAULT;
    options.workers = 2;
    return bw_open(&options);
}

/* ---- As exec does it: lanes are shared out among workers, inputs and targets are gathered one after the other ---- */

typedef struct piece {
    const bw_dataset *dataset;
    bwi_walk walk;
    atomic_int lane;
    atomic_int status;
    char trouble[BWI_GATHER_TROUBLE];
    pthread_mutex_t mutex;
    int64_t wrong;
} piece;

static void take_tile(piece *p, int64_t first, int64_t count)
{
    int64_t numbers[64];
    float x[64 * VALUES];
    int32_t y[64];
    char trouble[BWI_GATHER_TROUBLE] = "";
    for (int64_t i = 0; i < count; i++) {
        numbers[i] = bwi_dataset_number(p->dataset, p->walk.epoch, p->walk.first + first + i);
    }
    bwi_destination to = {.data = x, .dtype = BW_F32, .h = 1, .w = 1, .c = VALUES, .block = VALUES};
    bwi_destination to_y = {.data = y, .dtype = BW_I32, .h = 1, .w = 1, .c = 1, .block = 1};
    bw_status status = bwi_dataset_gather(p->dataset, 0, p->walk.epoch, numbers, count, &to, trouble);
    if (status == BW_OK) {
        status = bwi_dataset_gather(p->dataset, 1, p->walk.epoch, numbers, count, &to_y, trouble);
    }
    pthread_mutex_lock(&p->mutex);
    for (int64_t i = 0; i < count && status == BW_OK; i++) {
        for (int k = 0; k < VALUES; k++) {
            p->wrong += x[i * VALUES + k] != value_of(numbers[i], p->walk.epoch, k);
        }
        p->wrong += y[i] != numbers[i] % 7;
    }
    if (status != BW_OK && !p->trouble[0]) {
        memcpy(p->trouble, trouble, sizeof trouble);
    }
    pthread_mutex_unlock(&p->mutex);
    if (status != BW_OK) {
        atomic_store(&p->status, (int)status);
    }
}

static void *work(void *argument)
{
    piece *p = argument;
    int64_t tiles = (p->walk.count + p->walk.tile - 1) / p->walk.tile;
    for (int lane; (lane = atomic_fetch_add(&p->lane, 1)) < p->walk.lanes;) {
        for (int64_t t = lane; t < tiles && atomic_load(&p->status) == BW_OK; t += p->walk.lanes) {
            int64_t first = t * p->walk.tile, left = p->walk.count - first;
            take_tile(p, first, left < p->walk.tile ? left : p->walk.tile);
        }
    }
    return NULL;
}

static bw_status feed(const bw_dataset *dataset, const bwi_walk *walk, char *trouble)
{
    piece p = {.dataset = dataset, .walk = *walk, .mutex = PTHREAD_MUTEX_INITIALIZER};
    pthread_t other;
    bw_status status = bwi_dataset_begin(dataset, walk);
    if (status != BW_OK) {
        return status;
    }
    assert_int_equal(pthread_create(&other, NULL, work, &p), 0);
    work(&p);
    pthread_join(other, NULL);
    assert_int_equal(p.wrong, 0);
    if (trouble) {
        memcpy(trouble, p.trouble, sizeof p.trouble);
    }
    return (bw_status)atomic_load(&p.status);
}

static void test_values(void **state)
{
    (void)state;
    static const int64_t batches[] = {1, 32, 100, SAMPLES};
    for (size_t b = 0; b < BWI_COUNT(batches); b++) {
        for (int threads = 1; threads <= 4; threads *= 4) {
            source s = {.microseconds = 0};
            bw_context *ctx = open_context();
            bw_prefetch_options options = BW_PREFETCH_OPTIONS_DEFAULT;
            options.threads = threads;
            options.samples = threads == 1 ? 5 : 0;
            bw_dataset *dataset = bw_shuffle(bw_prefetch(open_source(ctx, &s), &options), 3);
            for (int epoch = 0; epoch < 3; epoch++) {
                for (int64_t first = 0; first < SAMPLES; first += batches[b]) {
                    int64_t left = SAMPLES - first;
                    bwi_walk walk = {.epoch = epoch,
                                     .first = first,
                                     .count = left < batches[b] ? left : batches[b],
                                     .tile = 8,
                                     .lanes = 4,
                                     .workers = 2};
                    assert_int_equal(feed(dataset, &walk, NULL), BW_OK);
                }
            }
            /* Input and target come from one call, and what is made ahead is what is asked for. */
            assert_true(atomic_load(&s.calls) <= 4 * SAMPLES + 50); /* of a fourth epoch some may be there already */
            assert_true(atomic_load(&s.most) <= threads);
            bw_close(ctx);
        }
    }
}

/* A jump, an older epoch, and a dataset that is gathered from without a beginning. */
static void test_jumps(void **state)
{
    (void)state;
    source s = {.microseconds = 0};
    bw_context *ctx = open_context();
    bw_dataset *dataset = bw_shuffle(open_source(ctx, &s), 3);
    static const struct {
        int epoch;
        int64_t first, count;
    } steps[] = {{5, 300, 50}, {5, 0, 50}, {2, 450, 50}, {0, 0, SAMPLES}, {0, 0, SAMPLES}, {7, 499, 1}};
    for (size_t i = 0; i < BWI_COUNT(steps); i++) {
        bwi_walk walk = {.epoch = steps[i].epoch,
                         .first = steps[i].first,
                         .count = steps[i].count,
                         .tile = i == 3 ? 16 : 4,
                         .lanes = 4,
                         .workers = 2};
        assert_int_equal(feed(dataset, &walk, NULL), BW_OK);
    }
    bw_dataset *again = open_source(ctx, &s);
    int64_t count;
    float *x = gather_all(again, 0, &count);
    assert_true(count == SAMPLES * VALUES && x[4 * VALUES + 1] == value_of(4, 0, 1));
    free(x);
    bwi_walk walk = {.count = 10, .tile = 4, .lanes = 4, .workers = 2};
    assert_true(bwi_dataset_bytes(again, &walk) > 10 * (VALUES + 1) * 4);
    bw_close(ctx);
}

static void test_failure(void **state)
{
    (void)state;
    source s = {.fails = 123};
    bw_context *ctx = open_context();
    bw_dataset *dataset = open_source(ctx, &s);
    char trouble[BWI_GATHER_TROUBLE];
    bwi_walk walk = {.count = SAMPLES, .tile = 8, .lanes = 4, .workers = 2};
    assert_int_equal(feed(dataset, &walk, trouble), BW_INVALID_ARGUMENT);
    assert_string_equal(trouble, "sample 123: the function that makes it failed: the disk is on fire");
    s.fails = -1; /* it is made anew: failures are not kept for ever */
    bwi_walk next = walk;
    next.epoch = 1;
    assert_int_equal(feed(dataset, &next, trouble), BW_OK);
    bw_close(ctx);
}

static void test_stall(void **state)
{
    (void)state;
    source s = {.stalls = 40};
    bw_context *ctx = open_context();
    bw_prefetch_options options = BW_PREFETCH_OPTIONS_DEFAULT;
    options.seconds = 0.1;
    bw_dataset *dataset = bw_prefetch(open_source(ctx, &s), &options);
    char trouble[BWI_GATHER_TROUBLE];
    bwi_walk walk = {.count = SAMPLES, .tile = 8, .lanes = 4, .workers = 2};
    assert_int_equal(feed(dataset, &walk, trouble), BW_RESOURCE_EXHAUSTED);
    assert_contains(trouble, "sample 40: the source stalls: no sample for ");
    assert_contains(trouble, "it has been making sample 40 for ");
    atomic_store(&s.go, true);
    assert_int_equal(feed(dataset, &walk, trouble), BW_OK);
    bw_close(ctx);
}

static void *cancel_soon(void *argument)
{
    usleep(50000);
    bw_cancel(argument);
    return NULL;
}

/* Workers come back at once, though the source does not. */
static void test_cancel(void **state)
{
    (void)state;
    source s = {.stalls = 7};
    bw_context *ctx = open_context();
    bw_dataset *dataset = open_source(ctx, &s);
    pthread_t thread;
    bwi_walk walk = {.count = SAMPLES, .tile = 8, .lanes = 4, .workers = 2};
    assert_int_equal(pthread_create(&thread, NULL, cancel_soon, ctx), 0);
    assert_int_equal(feed(dataset, &walk, NULL), BW_CANCELLED);
    pthread_join(thread, NULL);
    atomic_store(&s.go, true);
    bw_close(ctx);
}

/* Starts and stops at random moments. The sanitizers see what is left behind. */
static void test_start_stop(void **state)
{
    (void)state;
    source s = {.microseconds = 20};
    for (int run = 0; run < 1000; run++) {
        bw_context *ctx = open_context();
        bw_prefetch_options options = BW_PREFETCH_OPTIONS_DEFAULT;
        options.threads = 1 + run % 3;
        bw_dataset *dataset = bw_shuffle(bw_prefetch(open_source(ctx, &s), &options), (uint64_t)run);
        bwi_walk walk = {.epoch = run, .first = run % 300, .count = 1 + run % 17, .tile = 4, .lanes = 4, .workers = 2};
        if (run % 5 == 0) {
            assert_int_equal(bwi_dataset_begin(dataset, &walk), BW_OK);
        } else if (run % 5 < 3) {
            assert_int_equal(feed(dataset, &walk, NULL), BW_OK);
        }
        if (run % 7 == 0) {
            usleep((useconds_t)(run % 200));
        }
        if (run % 2) {
            bw_dataset_free(dataset);
        }
        bw_close(ctx);
    }
}

static void test_allocation_fails(void **state)
{
    (void)state;
    source s = {.fails = -1, .stalls = -1};
    bwi_walk walk = {.count = 8, .tile = 4, .lanes = 1, .workers = 1};
    int failures = 0;
    for (int64_t nth = 2;; nth++) {
        world w = {.allocation_fail = nth};
        assert_true(world_begin(&w, NULL, 0));
        bw_dataset *dataset = bw_shuffle(bw_from_function(w.ctx, fields, 2, make_sample, &s), 1);
        bw_status status = dataset ? bwi_dataset_begin(dataset, &walk) : bwi_pending(w.ctx);
        bool failed = w.allocations >= nth;
        assert_int_equal(status, failed ? BW_RESOURCE_EXHAUSTED : BW_OK);
        failures += failed;
        if (dataset && failed) { /* the next time it works */
            w.allocation_fail = 0;
            assert_int_equal(bwi_dataset_begin(dataset, &walk), BW_OK);
        }
        world_end(&w);
        if (!failed) {
            break;
        }
    }
    assert_true(failures > 8);
}

/* The course is what two workers do when both are equally fast. */
static void test_course(void **state)
{
    (void)state;
    static const int64_t expected[] = {0,  1,  2,  3,  8, 9, 10, 11, 4, 5, 6, 7, 12, 13, /* lanes 0 and 1 of 2, and the rest */
                                       14, 15, 16, 17, 18};                              /* the next piece */
    bwi_course course = {.count = 19, .step = -1};
    bwi_walk walk = {.epoch = 2, .count = 14, .tile = 4, .lanes = 2, .workers = 1};
    assert_false(bwi_course_begin(&course, &walk));
    for (size_t i = 0; i < BWI_COUNT(expected); i++) {
        int epoch;
        int64_t position;
        assert_true(bwi_course_peek(&course, &epoch, &position));
        assert_true(epoch == 2 && position == expected[i]);
        bwi_course_next(&course);
    }
    int epoch;
    int64_t position;
    assert_false(bwi_course_peek(&course, &epoch, &position));
    bwi_walk rest = {.epoch = 2, .first = 14, .count = 5, .tile = 4, .lanes = 2, .workers = 1};
    assert_true(bwi_course_begin(&course, &rest));
    assert_false(bwi_course_peek(&course, &epoch, &position)); /* handed out already */
    bwi_walk other = {.epoch = 2, .first = 3, .count = 5, .tile = 4, .lanes = 2, .workers = 1};
    assert_false(bwi_course_begin(&course, &other));
    assert_true(bwi_course_peek(&course, &epoch, &position) && position == 3);
    /* Of two ranks each takes its own lanes. */
    bwi_course second = {.count = 16, .step = 1};
    bwi_walk half = {.count = 16, .tile = 2, .lanes = 4, .workers = 2, .first_lane = 2, .own_lanes = 2};
    static const int64_t own[] = {4, 5, 6, 7, 12, 13, 14, 15};
    bwi_course_begin(&second, &half);
    for (int round = 0; round < 2; round++) {
        for (size_t i = 0; i < BWI_COUNT(own); i++) {
            assert_true(bwi_course_peek(&second, &epoch, &position) && position == own[i] && epoch == round);
            bwi_course_next(&second);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_course),     cmocka_unit_test(test_values),
        cmocka_unit_test(test_jumps),      cmocka_unit_test(test_failure),
        cmocka_unit_test(test_stall),      cmocka_unit_test(test_cancel),
        cmocka_unit_test(test_start_stop), cmocka_unit_test(test_allocation_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
