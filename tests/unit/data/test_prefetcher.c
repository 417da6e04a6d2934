/* Samples made ahead: the right ones, in any order, whatever goes wrong, and no thread left behind. label: thread */
#include "data_test.h"

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

#include "data/ahead/ahead.h"

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
        snprintf(sample->error, BW_ERROR_TEXT, "the disk is on fire");
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

static const bw_field fields[] = {{"x", {.dtype = BW_F32, .ndim = 2, .shape = {SAMPLES, VALUES}}},
                                  {"y", {.dtype = BW_I32, .ndim = 1, .shape = {SAMPLES}}}};

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
    bw_dataset *dataset;
    bwi_gather_schedule schedule;
    atomic_int lane;
    atomic_int status;
    char error[BWI_GATHER_ERROR];
    pthread_mutex_t mutex;
    int64_t wrong;
} piece;

static void take_tile(piece *p, int64_t first, int64_t count)
{
    int64_t numbers[64];
    float x[64 * VALUES];
    int32_t y[64];
    char error[BWI_GATHER_ERROR] = "";
    for (int64_t i = 0; i < count; i++) {
        numbers[i] = bwi_dataset_number(p->dataset, p->schedule.epoch, p->schedule.first + first + i);
    }
    bwi_destination to = bwi_host_destination(x, BW_F32, VALUES);
    bwi_destination to_y = bwi_host_destination(y, BW_I32, 1);
    bw_status status = bwi_dataset_gather(p->dataset, 0, p->schedule.epoch, numbers, count, &to, error);
    if (status == BW_OK) {
        status = bwi_dataset_gather(p->dataset, 1, p->schedule.epoch, numbers, count, &to_y, error);
    }
    pthread_mutex_lock(&p->mutex);
    for (int64_t i = 0; i < count && status == BW_OK; i++) {
        for (int k = 0; k < VALUES; k++) {
            p->wrong += x[i * VALUES + k] != value_of(numbers[i], p->schedule.epoch, k);
        }
        p->wrong += y[i] != numbers[i] % 7;
    }
    if (status != BW_OK && !p->error[0]) {
        memcpy(p->error, error, sizeof error);
    }
    pthread_mutex_unlock(&p->mutex);
    if (status != BW_OK) {
        atomic_store(&p->status, (int)status);
    }
}

static void *work(void *argument)
{
    piece *p = argument;
    int64_t tiles = (p->schedule.count + p->schedule.tile - 1) / p->schedule.tile;
    for (int lane; (lane = atomic_fetch_add(&p->lane, 1)) < p->schedule.lanes;) {
        for (int64_t t = lane; t < tiles && atomic_load(&p->status) == BW_OK; t += p->schedule.lanes) {
            int64_t first = t * p->schedule.tile, left = p->schedule.count - first;
            take_tile(p, first, left < p->schedule.tile ? left : p->schedule.tile);
        }
    }
    return NULL;
}

static bw_status feed(bw_dataset *dataset, const bwi_gather_schedule *schedule, char *error)
{
    piece p = {.dataset = dataset, .schedule = *schedule, .mutex = PTHREAD_MUTEX_INITIALIZER};
    pthread_t other;
    bw_status status = bwi_dataset_begin(dataset, schedule);
    if (status != BW_OK) {
        return status;
    }
    assert_int_equal(pthread_create(&other, NULL, work, &p), 0);
    work(&p);
    pthread_join(other, NULL);
    assert_int_equal(p.wrong, 0);
    if (error) {
        memcpy(error, p.error, sizeof p.error);
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
                    bwi_gather_schedule schedule = {.epoch = epoch,
                                                    .first = first,
                                                    .count = left < batches[b] ? left : batches[b],
                                                    .tile = 8,
                                                    .lanes = 4,
                                                    .workers = 2};
                    assert_int_equal(feed(dataset, &schedule, NULL), BW_OK);
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
        bwi_gather_schedule schedule = {.epoch = steps[i].epoch,
                                        .first = steps[i].first,
                                        .count = steps[i].count,
                                        .tile = i == 3 ? 16 : 4,
                                        .lanes = 4,
                                        .workers = 2};
        assert_int_equal(feed(dataset, &schedule, NULL), BW_OK);
    }
    bw_dataset *again = open_source(ctx, &s);
    int64_t count;
    float *x = gather_all(again, 0, &count);
    assert_true(count == SAMPLES * VALUES && x[4 * VALUES + 1] == value_of(4, 0, 1));
    free(x);
    bwi_gather_schedule schedule = {.count = 10, .tile = 4, .lanes = 4, .workers = 2};
    assert_true(bwi_dataset_bytes(again, &schedule) > 10 * (VALUES + 1) * 4);
    bw_close(ctx);
}

static void test_failure(void **state)
{
    (void)state;
    source s = {.fails = 123};
    bw_context *ctx = open_context();
    bw_dataset *dataset = open_source(ctx, &s);
    char error[BWI_GATHER_ERROR];
    bwi_gather_schedule schedule = {.count = SAMPLES, .tile = 8, .lanes = 4, .workers = 2};
    assert_int_equal(feed(dataset, &schedule, error), BW_INVALID_ARGUMENT);
    assert_string_equal(error, "sample 123: the function that makes it failed: the disk is on fire");
    s.fails = -1; /* it is made anew: failures are not kept for ever */
    bwi_gather_schedule next = schedule;
    next.epoch = 1;
    assert_int_equal(feed(dataset, &next, error), BW_OK);
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
    char error[BWI_GATHER_ERROR];
    bwi_gather_schedule schedule = {.count = SAMPLES, .tile = 8, .lanes = 4, .workers = 2};
    assert_int_equal(feed(dataset, &schedule, error), BW_RESOURCE_EXHAUSTED);
    assert_contains(error, "sample 40: the source stalls: no sample for ");
    assert_contains(error, "it has been making sample 40 for ");
    atomic_store(&s.go, true);
    assert_int_equal(feed(dataset, &schedule, error), BW_OK);
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
    bwi_gather_schedule schedule = {.count = SAMPLES, .tile = 8, .lanes = 4, .workers = 2};
    assert_int_equal(pthread_create(&thread, NULL, cancel_soon, ctx), 0);
    assert_int_equal(feed(dataset, &schedule, NULL), BW_CANCELLED);
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
        bwi_gather_schedule schedule = {
            .epoch = run, .first = run % 300, .count = 1 + run % 17, .tile = 4, .lanes = 4, .workers = 2};
        if (run % 5 == 0) {
            assert_int_equal(bwi_dataset_begin(dataset, &schedule), BW_OK);
        } else if (run % 5 < 3) {
            assert_int_equal(feed(dataset, &schedule, NULL), BW_OK);
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
    bwi_gather_schedule schedule = {.count = 8, .tile = 4, .lanes = 1, .workers = 1};
    int failures = 0;
    for (int64_t nth = 2;; nth++) {
        world w = {.allocation_fail = nth};
        assert_true(world_begin(&w, NULL, 0));
        bw_dataset *dataset = bw_shuffle(bw_from_function(w.ctx, fields, 2, make_sample, &s), 1);
        bw_status status = dataset ? bwi_dataset_begin(dataset, &schedule) : bwi_pending(w.ctx);
        bool failed = w.allocations >= nth;
        assert_int_equal(status, failed ? BW_RESOURCE_EXHAUSTED : BW_OK);
        failures += failed;
        if (dataset && failed) { /* the next time it works */
            w.allocation_fail = 0;
            assert_int_equal(bwi_dataset_begin(dataset, &schedule), BW_OK);
        }
        world_end(&w);
        if (!failed) {
            break;
        }
    }
    assert_true(failures > 8);
}

/* The order is what two workers do when both are equally fast. */
static void test_course(void **state)
{
    (void)state;
    static const int64_t expected[] = {0,  1,  2,  3,  8, 9, 10, 11, 4, 5, 6, 7, 12, 13, /* lanes 0 and 1 of 2, and the rest */
                                       14, 15, 16, 17, 18};                              /* the next piece */
    bwi_prefetch_order order = {.count = 19, .step = -1};
    bwi_gather_schedule schedule = {.epoch = 2, .count = 14, .tile = 4, .lanes = 2, .workers = 1};
    assert_false(bwi_prefetch_order_begin(&order, &schedule));
    for (size_t i = 0; i < BWI_COUNT(expected); i++) {
        int epoch;
        int64_t position;
        assert_true(bwi_prefetch_order_peek(&order, &epoch, &position));
        assert_true(epoch == 2 && position == expected[i]);
        bwi_prefetch_order_next(&order);
    }
    int epoch;
    int64_t position;
    assert_false(bwi_prefetch_order_peek(&order, &epoch, &position));
    bwi_gather_schedule rest = {.epoch = 2, .first = 14, .count = 5, .tile = 4, .lanes = 2, .workers = 1};
    assert_true(bwi_prefetch_order_begin(&order, &rest));
    assert_false(bwi_prefetch_order_peek(&order, &epoch, &position)); /* handed out already */
    bwi_gather_schedule other = {.epoch = 2, .first = 3, .count = 5, .tile = 4, .lanes = 2, .workers = 1};
    assert_false(bwi_prefetch_order_begin(&order, &other));
    assert_true(bwi_prefetch_order_peek(&order, &epoch, &position) && position == 3);
    /* Of two ranks each takes its own lanes. */
    bwi_prefetch_order second = {.count = 16, .step = 1};
    bwi_gather_schedule half = {.count = 16, .tile = 2, .lanes = 4, .workers = 2, .first_lane = 2, .own_lanes = 2};
    static const int64_t own[] = {4, 5, 6, 7, 12, 13, 14, 15};
    bwi_prefetch_order_begin(&second, &half);
    for (int round = 0; round < 2; round++) {
        for (size_t i = 0; i < BWI_COUNT(own); i++) {
            assert_true(bwi_prefetch_order_peek(&second, &epoch, &position) && position == own[i] && epoch == round);
            bwi_prefetch_order_next(&second);
        }
    }
}

/* A training that is resumed may begin with the last piece of an epoch; the next epoch follows. */
static void test_begins_with_the_last_piece(void **state)
{
    (void)state;
    bwi_prefetch_order order = {.count = 10, .step = 1};
    bwi_gather_schedule schedule = {.first = 7, .count = 3, .epoch = 4, .tile = 4, .lanes = 1, .workers = 1};
    bwi_prefetch_order_begin(&order, &schedule);
    for (int64_t k = 0; k < 6; k++) {
        int epoch;
        int64_t position;
        assert_true(bwi_prefetch_order_peek(&order, &epoch, &position));
        assert_int_equal(epoch, k < 3 ? 4 : 5);
        assert_int_equal(position, k < 3 ? 7 + k : k - 3);
        bwi_prefetch_order_next(&order);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_course),
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_jumps),
        cmocka_unit_test(test_failure),
        cmocka_unit_test(test_stall),
        cmocka_unit_test(test_cancel),
        cmocka_unit_test(test_start_stop),
        cmocka_unit_test(test_allocation_fails),
        cmocka_unit_test(test_begins_with_the_last_piece),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
