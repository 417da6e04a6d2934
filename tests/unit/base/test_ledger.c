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
    for (int worker = 0; worker < 4; worker++) {
        bwi_ledger_add(&ledger, worker, 0, 1 << worker);
        bwi_ledger_add(&ledger, worker, 2, 0.25);
        bwi_ledger_add(&ledger, worker, 2, 0.5);
    }
    assert_true(bwi_ledger_total(&ledger, 0) == 15);
    assert_true(bwi_ledger_total(&ledger, 1) == 0);
    assert_true(bwi_ledger_total(&ledger, 2) == 3);
    assert_int_equal(ledger.calls[3 * ledger.stride + 2], 2);
    assert_int_equal((uintptr_t)ledger.seconds % BWI_CACHE_LINE, 0);
    assert_int_equal(ledger.stride * sizeof(double) % BWI_CACHE_LINE, 0);
    bwi_ledger_close(ctx, &ledger);
    bwi_ledger_close(ctx, &ledger);
    bw_close(ctx);
    assert_int_equal(memory.blocks, 0);
}

static void test_refused(void **state)
{
    (void)state;
    faults memory = {0};
    bw_context *ctx = faults_context(&memory, NULL, 1);
    bwi_ledger ledger;
    assert_int_equal(bwi_ledger_open(ctx, &ledger, -1, 1), BW_INVALID_ARGUMENT);
    assert_int_equal(bwi_ledger_open(ctx, &ledger, 1, 0), BW_INVALID_ARGUMENT);
    for (int at = 1; at <= 2; at++) {
        memory.fail_at = memory.calls + at;
        assert_int_equal(bwi_ledger_open(ctx, &ledger, 3, 4), BW_RESOURCE_EXHAUSTED);
        assert_int_equal(memory.blocks, 1); /* the context */
        bwi_ledger_close(ctx, &ledger);
    }
    bw_close(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_totals),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
