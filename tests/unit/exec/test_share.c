/* Numbers that are shared out: a worker has its own span first, then the others'; each number comes once. */
#include "exec/internal.h"

#include "support/check.h"

enum { WORKERS = 3, COUNT = 10 };

static void takes_its_own_first(void **state)
{
    (void)state;
    static const int64_t expected[COUNT] = {3, 4, 5, 6, 7, 8, 9, 0, 1, 2};
    bwi_worker workers[WORKERS] = {0};
    bwi_exec exec = {.workers = workers};
    int turn = 0;
    bwi_exec_share_out(&exec, WORKERS, COUNT);
    for (int i = 0; i < COUNT; i++) {
        assert_int_equal(bwi_exec_next(&exec, 1, &turn), expected[i]);
    }
    assert_int_equal(bwi_exec_next(&exec, 1, &turn), -1);
}

static void gives_each_number_once(void **state)
{
    (void)state;
    for (int spans = 1; spans <= WORKERS; spans += 2) {
        bwi_worker workers[WORKERS] = {0};
        bwi_exec exec = {.workers = workers};
        int turn[WORKERS] = {0}, seen[COUNT] = {0};
        bwi_exec_share_out(&exec, spans, COUNT);
        for (int i = 0; i < COUNT; i++) {
            int64_t number = bwi_exec_next(&exec, i % WORKERS, &turn[i % WORKERS]);
            assert_in_range(number, 0, COUNT - 1);
            assert_int_equal(seen[number]++, 0);
            if (spans == 1) { /* in order, whoever asks */
                assert_int_equal(number, i);
            }
        }
        for (int worker = 0; worker < WORKERS; worker++) {
            assert_int_equal(bwi_exec_next(&exec, worker, &turn[worker]), -1);
        }
    }
}

static void has_nothing_for_most(void **state)
{
    (void)state;
    bwi_worker workers[WORKERS] = {0};
    bwi_exec exec = {.workers = workers};
    int turn[WORKERS] = {0};
    bwi_exec_share_out(&exec, WORKERS, 1);
    assert_int_equal(bwi_exec_next(&exec, 0, &turn[0]), 0);
    assert_int_equal(bwi_exec_next(&exec, 1, &turn[1]), -1);
    assert_int_equal(bwi_exec_next(&exec, 2, &turn[2]), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(takes_its_own_first),
        cmocka_unit_test(gives_each_number_once),
        cmocka_unit_test(has_nothing_for_most),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
