/* The loop on all workers: every index once; of several failures the lowest index's, however workers are timed; cancelling.
 * label: thread */
#include "support/check.h"

#include "base/base.h"

#include <stdlib.h>
#include <unistd.h>

enum { COUNT = 1000, WORKERS = 4 };

typedef struct counted {
    int64_t bad[2]; /* indices that fail; the first one waits, so that the second fails earlier */
    int64_t cancel; /* index at which somebody cancels; -1: none */
    bw_context *ctx;
    atomic_int runs[COUNT];
} counted;

static bw_status count(void *user, int64_t index, int worker, char *error)
{
    counted *c = user;
    assert_in_range(worker, 0, WORKERS - 1);
    atomic_fetch_add(&c->runs[index], 1);
    if (index == c->cancel) {
        bw_cancel(c->ctx);
    }
    if (index != c->bad[0] && index != c->bad[1]) {
        return BW_OK;
    }
    if (index == c->bad[0]) {
        usleep(2000);
    }
    snprintf(error, BWI_ITEM_ERROR, "index %lld", (long long)index);
    return index == c->bad[0] ? BW_DATA_LOSS : BW_INVALID_ARGUMENT;
}

static bw_status run(int workers, int64_t items, counted *c, char *error)
{
    bw_context_options options = BW_CONTEXT_OPTIONS_DEFAULT;
    options.workers = workers;
    c->ctx = bw_open(&options);
    assert_non_null(c->ctx);
    bw_status status = bwi_parallel_for(c->ctx, items, count, c, error);
    bw_close(c->ctx);
    return status;
}

static void test_every_index(void **state)
{
    static const int64_t counts[] = {0, 1, 3, COUNT};
    (void)state;
    for (int workers = 1; workers <= WORKERS; workers++) {
        for (size_t k = 0; k < BWI_COUNT(counts); k++) {
            counted *c = calloc(1, sizeof *c);
            char error[BWI_ITEM_ERROR] = "left";
            c->bad[0] = c->bad[1] = c->cancel = -1;
            assert_int_equal(run(workers, counts[k], c, error), BW_OK);
            assert_string_equal(error, "");
            for (int64_t i = 0; i < COUNT; i++) {
                assert_int_equal(atomic_load(&c->runs[i]), i < counts[k]);
            }
            free(c);
        }
    }
}

static void test_lowest_failure(void **state)
{
    (void)state;
    for (int round = 0; round < 20; round++) {
        counted *c = calloc(1, sizeof *c);
        char error[BWI_ITEM_ERROR];
        c->bad[0] = 10 + round;
        c->bad[1] = 12 + round;
        c->cancel = -1;
        assert_int_equal(run(1 + round % WORKERS, COUNT, c, error), BW_DATA_LOSS);
        char expected[32];
        snprintf(expected, sizeof expected, "index %d", 10 + round);
        assert_string_equal(error, expected);
        for (int64_t i = 0; i <= c->bad[0]; i++) {
            assert_int_equal(atomic_load(&c->runs[i]), 1);
        }
        assert_int_equal(atomic_load(&c->runs[COUNT - 1]), 0);
        free(c);
    }
}

static void test_cancelled(void **state)
{
    (void)state;
    for (int workers = 1; workers <= WORKERS; workers++) {
        counted *c = calloc(1, sizeof *c);
        char error[BWI_ITEM_ERROR];
        c->bad[0] = c->bad[1] = -1;
        c->cancel = 100;
        assert_int_equal(run(workers, COUNT, c, error), BW_CANCELLED);
        assert_int_equal(atomic_load(&c->runs[COUNT - 1]), 0);
        free(c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_index),
        cmocka_unit_test(test_lowest_failure),
        cmocka_unit_test(test_cancelled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
