/* Datasets made of others, and batch sizes, against plain loops. */
#include "data_test.h"

static const float ten[10] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, four[4] = {100, 101, 102, 103};
static const int32_t labels[10] = {0, 1, 0, 1, 0, 1, 0, 1, 0, 1};

static bw_dataset *of_ten(bw_context *ctx)
{
    bw_array x = {.data = ten, .dtype = BW_F32, .ndim = 2, .shape = {10, 1}};
    return bw_from_arrays(ctx, &x, NULL, NULL);
}

static bw_dataset *of_four(bw_context *ctx)
{
    bw_array x = {.data = four, .dtype = BW_F32, .ndim = 2, .shape = {4, 1}};
    return bw_from_arrays(ctx, &x, NULL, NULL);
}

static void expect(const bw_dataset *dataset, int epoch, int field, const float *values, int64_t count)
{
    assert_non_null(dataset);
    assert_int_equal(bw_dataset_count(dataset), count);
    int64_t numbers[64];
    float found[64];
    for (int64_t i = 0; i < count; i++) {
        numbers[i] = bwi_dataset_number(dataset, epoch, i);
    }
    bwi_destination to = bwi_host_destination(found, BW_F32, 1);
    assert_int_equal(bwi_dataset_gather(dataset, field, epoch, numbers, count, &to, NULL), BW_OK);
    for (int64_t i = 0; i < count; i++) {
        if (found[i] != values[i]) {
            fail_msg("position %d: %g, expected %g", (int)i, (double)found[i], (double)values[i]);
        }
    }
}

static void test_joins(void **state)
{
    (void)state;
    bw_context *ctx = bw_open(NULL);
    expect(bw_concatenate(of_four(ctx), bw_take(of_ten(ctx), 3)), 0, 0, (const float[]){100, 101, 102, 103, 0, 1, 2}, 7);
    expect(bw_interleave(bw_take(of_ten(ctx), 7), of_four(ctx), 2), 0, 0, (const float[]){0, 1, 100, 101, 2, 3, 102, 103, 4, 5, 6},
           11);
    expect(bw_interleave(of_four(ctx), bw_take(of_ten(ctx), 7), 1), 0, 0, (const float[]){100, 0, 101, 1, 102, 2, 103, 3, 4, 5, 6},
           11);
    expect(bw_shard(of_ten(ctx), 3, 1), 0, 0, (const float[]){1, 4, 7}, 3);
    expect(bw_shard(of_ten(ctx), 3, 0), 0, 0, (const float[]){0, 3, 6, 9}, 4);
    expect(bw_repeat(bw_skip(of_four(ctx), 2), 3), 0, 0, (const float[]){102, 103, 102, 103, 102, 103}, 6);
    bw_dataset *zipped = bw_zip(of_ten(ctx), of_four(ctx));
    expect(zipped, 0, 0, ten, 4);
    expect(zipped, 0, 1, four, 4);
    assert_int_equal(bwi_dataset_field(zipped, 1)->role, BWI_ROLE_TARGET);
    bw_close(ctx);
}

/* Shuffled parts: every sample once, another order in each turn. */
static void test_shuffled(void **state)
{
    (void)state;
    bw_context *ctx = bw_open(NULL);
    bw_dataset *joined = bw_shuffle(bw_concatenate(bw_shuffle(of_ten(ctx), 1), of_four(ctx)), 2);
    bw_dataset *repeated = bw_repeat(bw_shuffle(of_ten(ctx), 5), 2);
    for (int epoch = 0; epoch < 5; epoch++) {
        int seen[14] = {0}, turns[20] = {0}, moved = 0;
        for (int64_t i = 0; i < 14; i++) {
            seen[bwi_dataset_number(joined, epoch, i)]++;
        }
        for (int64_t i = 0; i < 20; i++) {
            turns[bwi_dataset_number(repeated, epoch, i)]++;
        }
        for (int i = 0; i < 20; i++) {
            assert_int_equal(i < 14 ? seen[i] : turns[i], 1);
        }
        for (int64_t i = 0; i < 10; i++) {
            assert_int_equal(bwi_dataset_number(repeated, epoch, i), bwi_permute(5, 2 * (uint64_t)epoch, 10, i));
            assert_int_equal(bwi_dataset_number(repeated, epoch, i + 10), 10 + bwi_permute(5, 2 * (uint64_t)epoch + 1, 10, i));
            moved += bwi_dataset_number(repeated, epoch, i) + 10 != bwi_dataset_number(repeated, epoch, i + 10);
        }
        assert_true(moved > 0);
    }
    bw_close(ctx);
}

static void test_refused(void **state)
{
    (void)state;
    bw_context *ctx = bw_open(NULL), *other = bw_open(NULL);
    bw_array x = {.data = ten, .dtype = BW_F32, .ndim = 2, .shape = {5, 2}};
    bw_array y = {.data = labels, .dtype = BW_I32, .ndim = 1, .shape = {10}};
    bw_array z = {.data = ten, .dtype = BW_F32, .ndim = 2, .shape = {10, 1}};
    assert_failed(ctx, bw_concatenate(of_ten(ctx), bw_from_arrays(ctx, &x, NULL, NULL)), BW_INVALID_ARGUMENT,
                  "concatenate: array x of one has shape (1,), array x of the other (2,)");
    assert_failed(ctx, bw_concatenate(of_ten(ctx), bw_from_arrays(ctx, &z, &y, NULL)), BW_INVALID_ARGUMENT,
                  "samples of 1 arrays and of 2");
    assert_failed(ctx, bw_concatenate(of_ten(ctx), of_ten(other)), BW_INVALID_ARGUMENT, "different contexts");
    assert_failed(ctx, bw_interleave(of_ten(ctx), of_four(ctx), 0), BW_INVALID_ARGUMENT, "at least one sample");
    assert_failed(ctx, bw_zip(bw_from_arrays(ctx, &z, &y, NULL), of_four(ctx)), BW_INVALID_ARGUMENT,
                  "both datasets have an array x");
    assert_failed(ctx, bw_repeat(of_ten(ctx), 0), BW_INVALID_ARGUMENT, "repeat(0)");
    assert_failed(ctx, bw_repeat(bw_repeat(bw_repeat(of_ten(ctx), INT32_MAX), INT32_MAX), 10), BW_INVALID_ARGUMENT, "repeat(");
    assert_failed(ctx, bw_shard(of_ten(ctx), 3, 3), BW_INVALID_ARGUMENT, "shard(3, 3)");
    assert_failed(ctx, bw_shard(of_ten(ctx), 20, 15), BW_INVALID_ARGUMENT, "there are 10 samples");
    assert_null(bw_concatenate(NULL, of_ten(ctx)));
    assert_null(bw_zip(of_ten(ctx), NULL));
    bw_close(other);
    bw_close(ctx);
}

static void expect_batches(bw_dataset *dataset, int epoch, const int64_t *sizes, int count)
{
    assert_non_null(dataset);
    bw_iterator *iterator = bw_iterate(dataset, epoch);
    bw_batch *batch;
    for (int i = 0; i < count; i++) {
        assert_int_equal(bw_next(iterator, &batch), BW_OK);
        assert_int_equal(bw_batch_count(batch), sizes[i]);
    }
    assert_int_equal(bw_next(iterator, &batch), BW_OUT_OF_RANGE);
    bw_iterator_free(iterator);
}

static void test_batches(void **state)
{
    (void)state;
    bw_context *ctx = bw_open(NULL);
    expect_batches(bw_batch_sizes(of_ten(ctx), "4", false), 0, (const int64_t[]){4, 4, 2}, 3);
    expect_batches(bw_batch_sizes(of_ten(ctx), "4", true), 0, (const int64_t[]){4, 4}, 2);
    expect_batches(bw_batch_sizes(of_ten(ctx), "full", true), 0, (const int64_t[]){10}, 1);
    expect_batches(bw_batch_sizes(of_ten(ctx), "1,3", false), 7, (const int64_t[]){1, 3, 1, 3, 1, 1}, 6);
    bw_dataset *schedule = bw_batch_sizes(of_ten(ctx), "2@0,5@3,full@4", false);
    expect_batches(schedule, 2, (const int64_t[]){2, 2, 2, 2, 2}, 5);
    expect_batches(schedule, 3, (const int64_t[]){5, 5}, 2);
    expect_batches(schedule, 9, (const int64_t[]){10}, 1);
    /* Batches of 3, then of 2; a rest stays a rest. */
    bw_dataset *both = bw_concatenate(bw_batches(of_ten(ctx), 3), bw_batches(of_four(ctx), 2));
    expect_batches(both, 0, (const int64_t[]){3, 3, 3, 1, 2, 2}, 6);
    expect_batches(bw_batches(both, 6), 0, (const int64_t[]){6, 6, 2}, 3);
    /* A rest is dropped where it was chosen to be; turns end batches; take and skip count from their first sample. */
    expect_batches(bw_concatenate(bw_batch_sizes(of_ten(ctx), "4", true), bw_batches(of_four(ctx), 3)), 0,
                   (const int64_t[]){4, 4, 3, 1}, 4);
    expect_batches(bw_concatenate(of_ten(ctx), of_four(ctx)), 0, (const int64_t[]){14}, 1);
    expect_batches(bw_concatenate(of_ten(ctx), bw_batches(of_four(ctx), 3)), 0, (const int64_t[]){10, 3, 1}, 3);
    expect_batches(bw_repeat(bw_batches(of_four(ctx), 3), 2), 0, (const int64_t[]){3, 1, 3, 1}, 4);
    expect_batches(bw_repeat(bw_batch_sizes(of_four(ctx), "3", true), 2), 0, (const int64_t[]){3, 3}, 2);
    expect_batches(bw_batches(bw_repeat(of_four(ctx), 2), 3), 0, (const int64_t[]){3, 3, 2}, 3);
    expect_batches(bw_repeat(of_four(ctx), 2), 0, (const int64_t[]){8}, 1);
    expect_batches(bw_take(bw_batch_sizes(of_ten(ctx), "1,3", false), 7), 0, (const int64_t[]){1, 3, 1, 2}, 4);
    expect_batches(bw_skip(bw_batch_sizes(of_ten(ctx), "1,3", false), 3), 0, (const int64_t[]){1, 3, 1, 2}, 4);
    both = bw_concatenate(bw_batches(of_ten(ctx), 3), bw_batches(of_four(ctx), 2));
    expect_batches(bw_skip(both, 8), 0, (const int64_t[]){2, 2, 2}, 3);
    expect_batches(bw_shard(bw_batches(of_ten(ctx), 3), 2, 1), 0, (const int64_t[]){3, 2}, 2);
    static const char *const bad[] = {"", "0", "-1", "x", "3,", "3@1", "3@0,4@0", "3@0,4", "3@0,4@-1", "4,5@2"};
    for (size_t i = 0; i < BWI_COUNT(bad); i++) {
        assert_failed(ctx, bw_batch_sizes(of_ten(ctx), bad[i], false), BW_INVALID_ARGUMENT, "batch sizes '");
    }
    bw_close(ctx);
}

/* The batches behind each update. */
static void expect_windows(bw_dataset *dataset, bwi_batching how, const int64_t *sizes, int count)
{
    bw_dataset *made = NULL;
    assert_int_equal(bwi_dataset_windows(dataset, &how, &made), BW_OK);
    assert_int_equal(bwi_dataset_batch_count(made, 0), count);
    int64_t largest = 0;
    for (int i = 0; i < count; i++) {
        largest = sizes[i] > largest ? sizes[i] : largest;
    }
    assert_true(bwi_dataset_largest_batch(made) >= largest);
    expect_batches(made, 0, sizes, count);
    bw_dataset_free(dataset);
}

static void test_windows(void **state)
{
    (void)state;
    bw_context *ctx = bw_open(NULL);
    expect_windows(of_ten(ctx), (bwi_batching){.batch = 3, .accumulate = 1}, (const int64_t[]){3, 3, 3, 1}, 4);
    expect_windows(of_ten(ctx), (bwi_batching){.batch = 3, .accumulate = 1, .drop = true}, (const int64_t[]){3, 3, 3}, 3);
    expect_windows(of_ten(ctx), (bwi_batching){.batch = 3, .accumulate = 2}, (const int64_t[]){6, 4}, 2);
    expect_windows(of_ten(ctx), (bwi_batching){.batch = 3, .accumulate = 2, .drop = true}, (const int64_t[]){6, 3}, 2);
    expect_windows(of_ten(ctx), (bwi_batching){.batch = INT64_MAX, .accumulate = INT32_MAX}, (const int64_t[]){10}, 1);
    expect_windows(of_ten(ctx), (bwi_batching){.sizes = "1,3", .batch = 7, .accumulate = 2}, (const int64_t[]){4, 4, 2}, 3);
    expect_windows(of_ten(ctx), (bwi_batching){.sizes = "full", .accumulate = 1, .drop = true}, (const int64_t[]){10}, 1);
    /* Sizes of its own, with and without others in their place. */
    expect_windows(bw_batches(of_ten(ctx), 4), (bwi_batching){.batch = -1, .accumulate = 1}, (const int64_t[]){4, 4, 2}, 3);
    expect_windows(bw_batches(of_ten(ctx), 4), (bwi_batching){.batch = -1, .accumulate = 1, .drop = true}, (const int64_t[]){4, 4},
                   2);
    expect_windows(bw_batches(of_ten(ctx), 4), (bwi_batching){.batch = 6, .accumulate = 1}, (const int64_t[]){6, 4}, 2);
    bw_dataset *both = bw_concatenate(bw_batches(of_ten(ctx), 3), bw_batches(of_four(ctx), 2));
    expect_windows(both, (bwi_batching){.batch = -1, .accumulate = 3}, (const int64_t[]){9, 5}, 2);
    both = bw_concatenate(bw_batch_sizes(of_ten(ctx), "4", true), bw_batches(of_four(ctx), 3));
    expect_windows(both, (bwi_batching){.batch = -1, .accumulate = 3}, (const int64_t[]){8, 4}, 2);
    both = bw_repeat(bw_batch_sizes(of_four(ctx), "3", true), 3);
    expect_windows(both, (bwi_batching){.batch = -1, .accumulate = 2, .drop = true}, (const int64_t[]){3, 3, 3}, 3);

    bw_dataset *made = NULL, *samples = of_ten(ctx);
    assert_int_equal(bwi_dataset_windows(samples, &(bwi_batching){.batch = 11, .accumulate = 1, .drop = true}, &made),
                     BW_INVALID_ARGUMENT);
    assert_null(made);
    assert_non_null(strstr(bw_message(ctx), "batches of 11: of 10 samples all would be dropped"));
    assert_int_equal(bwi_dataset_windows(samples, &(bwi_batching){.sizes = "4@1", .accumulate = 1}, &made), BW_INVALID_ARGUMENT);
    assert_non_null(strstr(bw_message(ctx), "batch sizes '4@1'"));
    bw_close(ctx);
}

static void test_allocation_fails(void **state)
{
    (void)state;
    for (int64_t nth = 1;; nth++) {
        world w = {0};
        assert_true(world_begin(&w, NULL, 0));
        w.allocation_fail = w.allocations + nth;
        bw_dataset *dataset =
            bw_batch_sizes(bw_repeat(bw_zip(bw_concatenate(of_ten(w.ctx), of_four(w.ctx)), of_ten(w.ctx)), 2), "3", 0);
        bool failed = w.allocations >= w.allocation_fail;
        if (failed) {
            assert_failed(w.ctx, dataset, BW_RESOURCE_EXHAUSTED, "cannot allocate");
        }
        if (failed) {
            assert_int_equal(w.live, 1);
        }
        world_end(&w);
        if (!failed) {
            break;
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_joins),   cmocka_unit_test(test_shuffled), cmocka_unit_test(test_refused),
        cmocka_unit_test(test_batches), cmocka_unit_test(test_windows),  cmocka_unit_test(test_allocation_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
