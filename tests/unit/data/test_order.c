/* Orders against bwi_permute and plain counting: takes, skips, shuffles and splits in any sequence. */
#include "data_test.h"

#define COUNT 97

static const float values[COUNT] = {0};
static const bw_array x = {.data = values, .dtype = BW_F32, .ndim = 1, .shape = {COUNT}};

static bw_dataset *plain(world *w)
{
    assert_true(world_begin(w, NULL, 0));
    bw_dataset *dataset = bw_from_arrays(w->ctx, &x, NULL, NULL);
    assert_non_null(dataset);
    return dataset;
}

/* Marks the samples of an epoch; each may stand in it once. */
static void mark(const bw_dataset *dataset, int epoch, int *seen)
{
    for (int64_t i = 0; i < bw_dataset_count(dataset); i++) {
        int64_t number = bwi_dataset_number(dataset, epoch, i);
        assert_in_range(number, 0, COUNT - 1);
        assert_int_equal(seen[number]++, 0);
    }
}

static void test_shuffle(void **state)
{
    (void)state;
    world w = {0};
    bw_dataset *dataset = bw_shuffle(plain(&w), 7);
    assert_int_equal(bw_dataset_count(dataset), COUNT);
    int same = 0;
    for (int epoch = 0; epoch < 20; epoch++) {
        int seen[COUNT] = {0};
        mark(dataset, epoch, seen);
        for (int64_t i = 0; i < COUNT; i++) {
            assert_int_equal(bwi_dataset_number(dataset, epoch, i), bwi_permute(7, (uint64_t)epoch, COUNT, i));
            same += bwi_dataset_number(dataset, epoch, i) == bwi_dataset_number(dataset, epoch + 1, i);
        }
    }
    assert_true(same < 100); /* 20 expected of 20 * 97 */
    world_end(&w);
}

static void test_ranges(void **state)
{
    (void)state;
    world w = {0};
    bw_dataset *dataset = bw_take(bw_skip(bw_take(plain(&w), 50), 20), 10);
    assert_int_equal(bw_dataset_count(dataset), 10);
    for (int64_t i = 0; i < 10; i++) {
        assert_int_equal(bwi_dataset_number(dataset, 3, i), 20 + i);
    }
    dataset = bw_skip(bw_take(dataset, 1000), 0); /* more than there is: all */
    assert_int_equal(bw_dataset_count(dataset), 10);
    world_end(&w);
}

static void test_shuffled(void **state)
{
    (void)state;
    world w = {0};
    bw_dataset *training, *validation, *dataset = bw_skip(plain(&w), 5);
    assert_false(bwi_dataset_shuffled(dataset));
    dataset = bw_batches(bw_take(bw_shuffle(dataset, 7), 50), 8);
    assert_true(bwi_dataset_shuffled(dataset));
    assert_int_equal(bw_split(dataset, 0.2, &training, &validation), BW_OK);
    assert_true(bwi_dataset_shuffled(training));
    dataset = bw_concatenate(training, bw_shuffle(validation, 2)); /* the second follows the first */
    assert_false(bwi_dataset_shuffled(dataset));
    assert_true(bwi_dataset_shuffled(bw_shuffle(dataset, 3)));
    world_end(&w);
}

/* shuffle after skip after shuffle after take, computed from the inside out. */
static void test_composed(void **state)
{
    (void)state;
    world w = {0};
    bw_dataset *dataset = bw_shuffle(bw_skip(bw_shuffle(bw_take(bw_skip(plain(&w), 5), 80), 11), 30), 12);
    assert_int_equal(bw_dataset_count(dataset), 50);
    for (int epoch = 0; epoch < 3; epoch++) {
        for (int64_t i = 0; i < 50; i++) {
            int64_t inner = bwi_permute(12, (uint64_t)epoch, 50, i) + 30;
            assert_int_equal(bwi_dataset_number(dataset, epoch, i), bwi_permute(11, (uint64_t)epoch, 80, inner) + 5);
        }
    }
    world_end(&w);
}

/* One dataset under two others: both live on, and the first is freed with the last of them. */
static void test_shared(void **state)
{
    (void)state;
    world w = {0};
    bw_dataset *dataset = bw_shuffle(plain(&w), 1);
    bw_dataset *front = bw_take(dataset, 60), *back = bw_skip(dataset, 60);
    bw_dataset_free(dataset); /* taken already: nothing happens */
    int seen[COUNT] = {0};
    mark(front, 4, seen);
    mark(back, 4, seen);
    bw_dataset_free(front);
    assert_int_equal(bwi_dataset_number(back, 4, 0), bwi_permute(1, 4, COUNT, 60));
    bw_dataset_free(back);
    assert_int_equal(w.live, 1); /* the context */
    world_end(&w);
}

static void test_refused(void **state)
{
    (void)state;
    world w = {0};
    plain(&w);
    assert_failed(w.ctx, bw_take(bw_from_arrays(w.ctx, &x, NULL, NULL), 0), BW_INVALID_ARGUMENT, "take(0)");
    assert_failed(w.ctx, bw_skip(bw_from_arrays(w.ctx, &x, NULL, NULL), 97), BW_INVALID_ARGUMENT, "skip(97): nothing");
    assert_failed(w.ctx, bw_skip(bw_from_arrays(w.ctx, &x, NULL, NULL), -1), BW_INVALID_ARGUMENT, "skip(-1)");
    assert_failed(w.ctx, bw_batches(bw_from_arrays(w.ctx, &x, NULL, NULL), 0), BW_INVALID_ARGUMENT, "batches(0)");
    /* The failed ones were taken: only what plain() made is left. */
    assert_int_equal(w.live, 3);
    assert_null(bw_shuffle(NULL, 1));
    assert_null(bw_take(NULL, 1));
    assert_null(bw_skip(NULL, 1));
    assert_null(bw_batches(NULL, 1));
    /* The first failure is the one that is reported. */
    assert_null(bw_take(bw_skip(bw_from_arrays(w.ctx, &x, NULL, NULL), 98), 0));
    assert_failed(w.ctx, bw_batches(bw_from_arrays(w.ctx, &x, NULL, NULL), -3), BW_INVALID_ARGUMENT, "skip(98)");
    world_end(&w);
}

/* ---- Splits ---- */

static void test_split_in_order(void **state)
{
    (void)state;
    world w = {0};
    bw_dataset *dataset = bw_batches(plain(&w), 5), *training, *validation;
    assert_int_equal(bw_split(dataset, 0.2, &training, &validation), BW_OK);
    assert_int_equal(bw_dataset_count(training), 77); /* floor(97 * 0.8) */
    assert_int_equal(bw_dataset_count(validation), 20);
    assert_int_equal(bwi_dataset_batch(training), 5);
    for (int64_t i = 0; i < 77; i++) {
        assert_int_equal(bwi_dataset_number(training, 2, i), i);
    }
    for (int64_t i = 0; i < 20; i++) {
        assert_int_equal(bwi_dataset_number(validation, 2, i), 77 + i);
    }
    bw_dataset_free(dataset);
    assert_int_equal(bwi_dataset_number(validation, 2, 0), 77);
    bw_dataset_free(training);
    bw_dataset_free(validation);
    assert_int_equal(w.live, 1);
    world_end(&w);
}

/* The parts of a shuffled dataset are the same sets in every epoch; the training part comes in another order each time. */
static void test_split_shuffled(void **state)
{
    (void)state;
    world w = {0};
    bw_dataset *dataset = bw_take(bw_shuffle(plain(&w), 5), 90), *training, *validation, *again, *rest;
    assert_int_equal(bw_split(dataset, 0.25, &training, &validation), BW_OK);
    assert_int_equal(bw_split(dataset, 0.25, &again, &rest), BW_OK);
    assert_int_equal(bw_dataset_count(training), 67); /* floor(90 * 0.75) */
    assert_int_equal(bw_dataset_count(validation), 23);
    int first[COUNT] = {0}, moved = 0, tail = 0;
    mark(training, 0, first);
    for (int epoch = 0; epoch < 10; epoch++) {
        int train[COUNT] = {0}, all[COUNT] = {0}, sum = 0;
        mark(training, epoch, train);
        assert_memory_equal(train, first, sizeof first);
        mark(training, epoch, all);
        mark(validation, epoch, all);
        for (int i = 0; i < COUNT; i++) {
            sum += all[i];
        }
        assert_int_equal(sum, 90);
        for (int64_t i = 0; i < 67; i++) {
            assert_int_equal(bwi_dataset_number(training, epoch, i), bwi_dataset_number(again, epoch, i));
            moved += bwi_dataset_number(training, epoch, i) != bwi_dataset_number(training, epoch + 1, i);
        }
        for (int64_t i = 0; i < 23; i++) {
            assert_int_equal(bwi_dataset_number(validation, epoch, i), bwi_dataset_number(rest, 0, i));
        }
    }
    for (int64_t i = 0; i < 23; i++) {
        tail += bwi_dataset_number(validation, 0, i) >= 67;
    }
    assert_true(moved > 600);
    assert_true(tail < 20); /* a random share, not the last samples */
    world_end(&w);
}

static void test_split_refused(void **state)
{
    (void)state;
    static const double shares[] = {0, 1, -0.1, 1.5, 0.999, 0x1p-60};
    world w = {0};
    bw_dataset *dataset = plain(&w), *training, *validation;
    for (size_t i = 0; i < BWI_COUNT(shares); i++) {
        assert_int_equal(bw_split(dataset, shares[i], &training, &validation), BW_INVALID_ARGUMENT);
        assert_null(training);
        assert_null(validation);
        assert_contains(bw_message(w.ctx), "validation share");
    }
    assert_int_equal(bw_split(dataset, (double)__builtin_nanf(""), &training, &validation), BW_INVALID_ARGUMENT);
    world_end(&w);
}

static void test_split_allocation_fails(void **state)
{
    (void)state;
    for (int64_t nth = 1; nth <= 3; nth++) {
        world w = {0};
        bw_dataset *dataset = bw_shuffle(plain(&w), 1), *training, *validation;
        int64_t before = w.live;
        w.allocation_fail = w.allocations + nth;
        assert_int_equal(bw_split(dataset, 0.5, &training, &validation), BW_RESOURCE_EXHAUSTED);
        assert_null(training);
        assert_null(validation);
        assert_int_equal(w.live, before);
        assert_int_equal(bwi_dataset_number(dataset, 0, 0), bwi_permute(1, 0, COUNT, 0));
        world_end(&w);
    }
}

/* Numbers found ahead are those found one by one, for small and large batches, forwards, backwards, and at an epoch's end. */
static void test_numbers_ahead(void **state)
{
    (void)state;
    world w = {0};
    bw_dataset *dataset = bw_shuffle(bw_skip(bw_shuffle(plain(&w), 3), 5), 8);
    static const int64_t firsts[] = {0, 1, 40, 41, 30, COUNT - 6, 0};
    bwi_ahead ahead = {.dataset = NULL};
    for (size_t f = 0; f < BWI_COUNT(firsts); f++) {
        for (int epoch = 0; epoch < 2; epoch++) {
            for (int64_t n = 1; n <= COUNT - 5 - firsts[f]; n = n * 2 + 1) {
                const int64_t *numbers = bwi_numbers_ahead(&ahead, dataset, epoch, firsts[f], n);
                assert_non_null(numbers);
                for (int64_t i = 0; i < n; i++) {
                    assert_int_equal(numbers[i], bwi_dataset_number(dataset, epoch, firsts[f] + i));
                }
            }
        }
    }
    assert_null(bwi_numbers_ahead(&ahead, dataset, 0, 0, COUNT)); /* beyond its end */
    assert_null(bwi_numbers_ahead(&ahead, dataset, 0, 0, BWI_AHEAD + 1));
    world_end(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shuffle),        cmocka_unit_test(test_shuffled),
        cmocka_unit_test(test_ranges),         cmocka_unit_test(test_composed),
        cmocka_unit_test(test_shared),         cmocka_unit_test(test_refused),
        cmocka_unit_test(test_split_in_order), cmocka_unit_test(test_split_shuffled),
        cmocka_unit_test(test_split_refused),  cmocka_unit_test(test_split_allocation_fails),
        cmocka_unit_test(test_numbers_ahead),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
