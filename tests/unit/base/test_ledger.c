/* The ledger: sums over workers, and slots that no two workers share a cache line of. */
#include "faults.h"

#include <setjmp.h>
#include <cmocka.h>

static void test_totals(void **state)
{
    (void)state;
    faults memory = {0};
    bw_context *ctx = faults_context(&memory, NULL, 1);
    bwi_ledger ledger;
    assert_int_equal(bwi_ledger_open(ctx, &ledger, 3, 4), BW_OK);
    ledger.clock = 10;
    for (int worker = 0; worker < 4; worker++) {
        bwi_ledger_add(&ledger, worker, 0, 100, 110 + (1ull << worker));
        bwi_ledger_add(&ledger, worker, 2, 7, 7 + 10 + 25);
        bwi_ledger_add(&ledger, worker, 2, 7, 7 + 10 + 50);
    }
    assert_int_equal(bwi_ledger_ticks(&ledger, -1, 0), 15);
    assert_int_equal(bwi_ledger_ticks(&ledger, -1, 1), 0);
    assert_int_equal(bwi_ledger_ticks(&ledger, -1, 2), 300);
    assert_int_equal(bwi_ledger_ticks(&ledger, 3, 0), 8);
    assert_int_equal(bwi_ledger_calls(&ledger, 3, 2), 2);
    assert_int_equal(bwi_ledger_calls(&ledger, -1, 2), 8);
    assert_int_equal((uintptr_t)ledger.ticks % BWI_CACHE_LINE, 0);
    assert_int_equal(ledger.stride * sizeof(double) % BWI_CACHE_LINE, 0);

    bwi_ledger_add(&ledger, 1, 0, 50, 53); /* shorter than reading the clock takes: nothing */
    assert_int_equal(bwi_ledger_ticks(&ledger, 1, 0), 2);
    bwi_ledger_move(&ledger, 1, 2, 1, 60);
    assert_int_equal(bwi_ledger_ticks(&ledger, 1, 1), 60);
    assert_int_equal(bwi_ledger_ticks(&ledger, 1, 2), 15);
    bwi_ledger_move(&ledger, 1, 2, 1, 60); /* no more than there is */
    assert_int_equal(bwi_ledger_ticks(&ledger, 1, 1), 75);
    assert_int_equal(bwi_ledger_ticks(&ledger, 1, 2), 0);
    bwi_ledger_close(ctx, &ledger);
    bwi_ledger_close(ctx, &ledger);
    bw_close(ctx);
    assert_int_equal(memory.blocks, 0);
}

static void test_events(void **state)
{
    (void)state;
    faults memory = {0};
    bw_context *ctx = faults_context(&memory, NULL, 1);
    bwi_ledger ledger;
    assert_int_equal(bwi_ledger_open(ctx, &ledger, 3, 2), BW_OK);
    bwi_ledger_add(&ledger, 1, 0, 0, 50); /* not yet */
    assert_int_equal(bwi_ledger_record(ctx, &ledger, 2), BW_OK);
    for (uint64_t k = 0; k < 3; k++) {
        bwi_ledger_add(&ledger, 1, (int)k, 100 * k, 100 * k + 50);
    }
    assert_int_equal(ledger.recorded[0], 0);
    assert_int_equal(ledger.recorded[ledger.stride], 3); /* one of which did not fit */
    assert_int_equal(ledger.events[2].begin, 0);
    assert_int_equal(ledger.events[3].begin, 100);
    assert_int_equal(ledger.events[3].end, 150);
    assert_int_equal(ledger.events[3].part, 1);
    bwi_ledger_close(ctx, &ledger);
    bw_close(ctx);
    assert_int_equal(memory.blocks, 0);
}

/* A tick is as long as the clock of the system says. */
static void test_seconds(void **state)
{
    (void)state;
    faults memory = {0};
    bw_context *ctx = faults_context(&memory, NULL, 1);
    bwi_ledger ledger;
    assert_int_equal(bwi_ledger_open(ctx, &ledger, 1, 1), BW_OK);
    double begin = bwi_now();
    uint64_t ticks = bwi_ticks();
    while (bwi_now() - begin < 0.05) {
    }
    double seconds = (double)(bwi_ticks() - ticks) * bwi_ledger_tick_seconds(&ledger);
    assert_true(seconds > 0.045 && seconds < 0.055 + (bwi_now() - begin - 0.05));
    bwi_ledger_close(ctx, &ledger);
    bw_close(ctx);
}

static void test_refused(void **state)
{
    (void)state;
    faults memory = {0};
    bw_context *ctx = faults_context(&memory, NULL, 1);
    bwi_ledger ledger;
    assert_int_equal(bwi_ledger_open(ctx, &ledger, -1, 1), BW_INVALID_ARGUMENT);
    assert_int_equal(bwi_ledger_open(ctx, &ledger, 1, 0), BW_INVALID_ARGUMENT);
    for (int at = 1; at <= 4; at++) {
        memory.fail_at = memory.calls + at;
        bw_status status = bwi_ledger_open(ctx, &ledger, 3, 4);
        status = status == BW_OK ? bwi_ledger_record(ctx, &ledger, 5) : status;
        assert_int_equal(status, BW_RESOURCE_EXHAUSTED);
        bwi_ledger_close(ctx, &ledger);
        assert_int_equal(memory.blocks, 1); /* the context */
        bwi_ledger_close(ctx, &ledger);
    }
    bw_close(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_totals),
        cmocka_unit_test(test_events),
        cmocka_unit_test(test_seconds),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
