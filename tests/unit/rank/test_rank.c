/* A context without a group is one rank, which changes nothing and waits for nobody. */
#include "rank/rank.h"

#include <setjmp.h>
#include <cmocka.h>

static void test_one(void **state)
{
    (void)state;
    bw_context *ctx = bw_open(NULL);
    const bwi_rank_row *row = bwi_rank_of(ctx);
    float x[2] = {1, 2};
    double y[2] = {3, 4};
    assert_string_equal(row->name, "one");
    assert_int_equal(row->count(NULL), 1);
    assert_int_equal(row->sum_floats(ctx, x, 2), BW_OK);
    assert_int_equal(row->sum_doubles(ctx, y, 2), BW_OK);
    assert_true(x[0] == 1 && x[1] == 2 && y[0] == 3 && y[1] == 4);
    assert_int_equal(row->agree(ctx, BW_OK), BW_OK);
    assert_int_equal(row->agree(ctx, BW_DATA_LOSS), BW_DATA_LOSS);
    row->leave(ctx);
    assert_int_equal(row->agree(ctx, BW_OK), BW_OK);
    bw_close(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
