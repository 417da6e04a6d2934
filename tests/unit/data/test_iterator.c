/* Batches one after another: all samples once, the rest at the end, no allocation, a place that can be saved. */
#include "data_test.h"

#define COUNT 23

static const float values[COUNT] = {0};
static const bw_array x = {.data = values, .dtype = BW_F32, .ndim = 1, .shape = {COUNT}};

static void test_batches(void **state)
{
    (void)state;
    static const int64_t sizes[] = {1, 5, 23, 1000};
    for (size_t i = 0; i < BWI_COUNT(sizes); i++) {
        world w = {0};
        assert_true(world_begin(&w, NULL, 0));
        bw_dataset *dataset = bw_batches(bw_shuffle(bw_from_arrays(w.ctx, &x, NULL, NULL), 3), sizes[i]);
        bw_iterator *iterator = bw_iterate(dataset, 2);
        assert_non_null(iterator);
        int64_t allocations = w.allocations;
        bw_batch *batch;
        int64_t seen = 0;
        while (bw_next(iterator, &batch) == BW_OK) {
            int64_t left = COUNT - seen;
            assert_int_equal(bw_batch_count(batch), left < sizes[i] ? left : sizes[i]);
            assert_ptr_equal(batch->dataset, dataset);
            for (int64_t k = 0; k < batch->count; k++) {
                assert_int_equal(batch->numbers[k], bwi_permute(3, 2, COUNT, seen + k));
            }
            seen += batch->count;
        }
        assert_int_equal(seen, COUNT);
        assert_null(batch);
        assert_string_equal(bw_message(w.ctx), "end of data");
        assert_int_equal(bw_next(iterator, &batch), BW_OUT_OF_RANGE);
        assert_int_equal(w.allocations, allocations);
        world_end(&w);
    }
}

static void test_default_batch(void **state)
{
    (void)state;
    static const float many[100] = {0};
    bw_array array = {.data = many, .dtype = BW_F32, .ndim = 1, .shape = {100}};
    world w = {0};
    assert_true(world_begin(&w, NULL, 0));
    bw_dataset *dataset = bw_from_arrays(w.ctx, &array, NULL, NULL);
    assert_int_equal(bwi_dataset_batch(dataset), 32);
    bw_iterator *iterator = bw_iterate(dataset, 0);
    bw_batch *batch;
    assert_int_equal(bw_next(iterator, &batch), BW_OK);
    assert_int_equal(bw_batch_count(batch), 32);
    world_end(&w);
}

static void test_lives(void **state)
{
    (void)state;
    world w = {0};
    assert_true(world_begin(&w, NULL, 0));
    bw_dataset *dataset = bw_from_arrays(w.ctx, &x, NULL, NULL);
    bw_iterator *one = bw_iterate(dataset, 0), *two = bw_iterate(dataset, 1);
    bw_batch *batch;
    bw_dataset_free(dataset); /* the iterators still have it */
    assert_int_equal(bw_next(one, &batch), BW_OK);
    bw_iterator_free(one);
    assert_int_equal(bw_next(two, &batch), BW_OK);
    assert_int_equal(batch->numbers[22], 22);
    bw_iterator_free(two);
    assert_int_equal(w.live, 1); /* the context */
    bw_iterator_free(NULL);
    bw_dataset_free(NULL);
    world_end(&w);
}

/* An iterator that gets the place of another goes on exactly there. */
static void test_state(void **state)
{
    (void)state;
    world w = {0};
    assert_true(world_begin(&w, NULL, 0));
    bw_dataset *dataset = bw_batches(bw_shuffle(bw_from_arrays(w.ctx, &x, NULL, NULL), 9), 4);
    bw_iterator *from = bw_iterate(dataset, 6), *to = bw_iterate(dataset, 0);
    bwi_state from_state = {.ctx = w.ctx}, to_state = {.ctx = w.ctx};
    bwi_iterator_state(from, &from_state);
    bwi_iterator_state(to, &to_state);
    assert_false(from_state.failed || to_state.failed);
    assert_int_equal(from_state.count, 2);
    bw_batch *batch;
    for (int i = 0; i < 3; i++) {
        assert_int_equal(bw_next(from, &batch), BW_OK);
    }
    int64_t number = -1;
    bwi_state_read(bwi_state_find(&from_state, "iterator/position"), &number);
    assert_int_equal(number, 12);
    for (int i = 0; i < from_state.count; i++) {
        bwi_state_read(&from_state.values[i], &number);
        bwi_state_write(bwi_state_find(&to_state, from_state.values[i].name), &number);
    }
    for (;;) {
        bw_batch *other;
        bw_status status = bw_next(from, &batch);
        assert_int_equal(bw_next(to, &other), status);
        if (status != BW_OK) {
            break;
        }
        assert_memory_equal(batch->numbers, other->numbers, (size_t)batch->count * sizeof *batch->numbers);
    }
    static const int64_t wrong[][2] = {{0, -1}, {0, COUNT + 1}, {-1, 0}, {1LL << 40, 0}};
    for (size_t i = 0; i < BWI_COUNT(wrong); i++) {
        bwi_state_write(bwi_state_find(&to_state, "iterator/epoch"), &wrong[i][0]);
        bwi_state_write(bwi_state_find(&to_state, "iterator/position"), &wrong[i][1]);
        assert_int_equal(bw_next(to, &batch), BW_INVALID_ARGUMENT);
    }
    bwi_state_free(&from_state);
    bwi_state_free(&to_state);
    world_end(&w);
}

static void test_refused(void **state)
{
    (void)state;
    world w = {0};
    bw_batch *batch = (bw_batch *)&w;
    assert_true(world_begin(&w, NULL, 0));
    bw_dataset *dataset = bw_from_arrays(w.ctx, &x, NULL, NULL);
    bw_iterator *iterator = bw_iterate(dataset, 0);
    assert_failed(w.ctx, bw_iterate(dataset, -1), BW_INVALID_ARGUMENT, "epoch -1");
    assert_null(bw_iterate(NULL, 0));
    assert_int_equal(bw_next(NULL, &batch), BW_INVALID_ARGUMENT);
    assert_null(batch);
    assert_int_equal(bw_next(iterator, NULL), BW_INVALID_ARGUMENT);
    assert_contains(bw_message(w.ctx), "needs a place for the batch");
    assert_int_equal(bw_batch_count(NULL), -1);
    /* A builder's failure is reported first, once. */
    assert_null(bw_take(bw_from_arrays(w.ctx, &x, NULL, NULL), -7));
    assert_int_equal(bw_next(iterator, &batch), BW_INVALID_ARGUMENT);
    assert_contains(bw_message(w.ctx), "take(-7)");
    assert_int_equal(bw_next(iterator, &batch), BW_OK);
    assert_int_equal(batch->numbers[0], 0);
    world_end(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_batches), cmocka_unit_test(test_default_batch), cmocka_unit_test(test_lives),
        cmocka_unit_test(test_state),   cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
