/* Streams: endless ones, failing ones, blocks of a shuffle, samples in a temporary file, against plain counting. */
#include "data_test.h"

#include "data/internal.h"

typedef struct count_up {
    int64_t last, asked; /* last: -1: none; it fails at `wrong` */
    int64_t wrong;
} count_up;

static int count(void *user, bw_sample *sample, void *const *values)
{
    count_up *c = user;
    c->asked++;
    if (sample->number == c->wrong) {
        snprintf(sample->error, BW_ERROR_TEXT, "out of ideas");
        return -1;
    }
    if (sample->number == c->last) {
        return 0;
    }
    ((int64_t *)values[0])[0] = sample->number;
    ((int64_t *)values[0])[1] = -sample->number;
    *(uint8_t *)values[1] = (uint8_t)(sample->number % 3);
    return 1;
}

static const bw_field fields[] = {{"x", {.dtype = BW_I64, .ndim = 2, .shape = {0, 2}}}, {"y", {.dtype = BW_U8, .ndim = 1}}};

static void expect(const bw_dataset *dataset, const int64_t *numbers, int64_t n)
{
    float *x = malloc((size_t)n * 2 * sizeof *x), *y = malloc((size_t)n * sizeof *y);
    bwi_destination to = bwi_host_destination(x, BW_F32, 2);
    bwi_destination target = bwi_host_destination(y, BW_F32, 1);
    assert_int_equal(bwi_dataset_gather(dataset, 0, 0, numbers, n, &to, NULL), BW_OK);
    assert_int_equal(bwi_dataset_gather(dataset, 1, 0, numbers, n, &target, NULL), BW_OK);
    for (int64_t i = 0; i < n; i++) {
        assert_true(x[2 * i] == (float)numbers[i] && x[2 * i + 1] == -(float)numbers[i] && y[i] == (float)(numbers[i] % 3));
    }
    free(x);
    free(y);
}

/* Walks through an epoch by batches; marks what was seen; the number of samples. */
static int64_t schedule(bw_dataset *dataset, int epoch, int *seen, int64_t room, int64_t *numbers)
{
    bw_iterator *iterator = bw_iterate(dataset, epoch);
    bw_batch *batch;
    bw_status status;
    int64_t all = 0;
    memset(seen, 0, (size_t)room * sizeof *seen);
    while ((status = bw_next(iterator, &batch)) == BW_OK) {
        bwi_gather_schedule piece = {
            .epoch = epoch, .first = batch->first, .count = batch->count, .tile = 8, .lanes = 1, .workers = 1};
        assert_int_equal(bwi_dataset_begin(dataset, &piece), BW_OK);
        expect(dataset, batch->numbers, batch->count);
        for (int64_t i = 0; i < batch->count; i++, all++) {
            assert_in_range(batch->numbers[i], 0, room - 1);
            seen[batch->numbers[i]]++;
            numbers[all] = batch->numbers[i];
        }
    }
    assert_int_equal(status, BW_OUT_OF_RANGE);
    bw_iterator_free(iterator);
    return all;
}

enum { MOST = 1000 };

/* A take of an endless stream asks for no more than it needs, epoch after epoch. */
static void test_endless(void **state)
{
    (void)state;
    int seen[MOST];
    int64_t numbers[MOST];
    for (int shuffles = 0; shuffles < 3; shuffles++) {
        bw_context *ctx = bw_open(NULL);
        count_up c = {.last = -1, .wrong = -1};
        bw_dataset *dataset = bw_from_generator(ctx, fields, 2, count, &c);
        if (shuffles == 2) {
            dataset = bw_shuffle(dataset, 5);
            dataset->block = 64;
        }
        dataset = bw_take(dataset, 300);
        if (shuffles == 1) {
            dataset = bw_shuffle(dataset, 5);
        }
        dataset = bw_batches(dataset, 32);
        assert_int_equal(bw_dataset_count(dataset), -1);
        assert_int_equal(c.asked, 0);
        for (int epoch = 0; epoch < 3; epoch++) {
            assert_int_equal(schedule(dataset, epoch, seen, shuffles == 2 ? 320 : 300, numbers), 300);
            for (int i = 0; i < (shuffles == 2 ? 256 : 300); i++) {
                assert_int_equal(seen[i], 1);
            }
            assert_int_equal(bw_dataset_count(dataset), 300);
        }
        assert_int_equal(c.asked, shuffles == 2 ? 320 : 300);
        bw_close(ctx);
    }
}

/* The first epoch is shuffled within blocks, the second over all; both are functions of the seed alone. */
static void test_blocks(void **state)
{
    (void)state;
    int seen[MOST];
    int64_t numbers[2][MOST], again[MOST];
    for (int turn = 0; turn < 2; turn++) {
        bw_context *ctx = bw_open(NULL);
        count_up c = {.last = 970, .wrong = -1};
        bw_dataset *dataset = bw_shuffle(bw_from_generator(ctx, fields, 2, count, &c), 9);
        dataset->block = 100;
        dataset = bw_batches(dataset, turn ? 7 : 64); /* the order does not depend on batches */
        for (int epoch = 0; epoch < 2; epoch++) {
            assert_int_equal(schedule(dataset, epoch, seen, MOST, turn ? again : numbers[epoch]), 970);
            for (int i = 0; i < 970; i++) {
                assert_int_equal(seen[i], 1);
            }
            if (turn) {
                assert_memory_equal(again, numbers[epoch], 970 * sizeof *again);
            }
        }
        bw_close(ctx);
    }
    int moved = 0, far = 0;
    for (int i = 0; i < 970; i++) {
        assert_int_equal(numbers[0][i] / 100, i / 100);
        moved += numbers[0][i] != i;
        far += numbers[1][i] / 100 != i / 100;
        assert_int_equal(numbers[1][i], bwi_permute(9, 1, 970, i));
    }
    assert_true(moved > 940 && far > 800);
}

/* Finished before anything was handed out, the first epoch is exact too. */
static void test_finished(void **state)
{
    (void)state;
    bw_context *ctx = bw_open(NULL);
    count_up c = {.last = 200, .wrong = -1};
    bw_dataset *dataset = bw_shuffle(bw_from_generator(ctx, fields, 2, count, &c), 9);
    dataset->block = 10;
    assert_int_equal(bwi_dataset_finish(dataset), BW_OK);
    assert_int_equal(bw_dataset_count(dataset), 200);
    for (int i = 0; i < 200; i++) {
        assert_int_equal(bwi_dataset_number(dataset, 0, i), bwi_permute(9, 0, 200, i));
    }
    bw_close(ctx);
}

/* Builders that need all samples read the stream to its end; a failure is theirs. */
static void test_failures(void **state)
{
    (void)state;
    bw_context *ctx = bw_open(NULL);
    count_up c = {.last = 100, .wrong = 40};
    assert_null(bw_repeat(bw_from_generator(ctx, fields, 2, count, &c), 2));
    assert_int_equal(bwi_pending(ctx), BW_INVALID_ARGUMENT);
    assert_non_null(strstr(bw_message(ctx), "sample 40: the generator failed: out of ideas"));
    bw_dataset *dataset = bw_batches(bw_from_generator(ctx, fields, 2, count, &c), 16);
    bwi_gather_schedule first = {.count = 16, .tile = 8, .lanes = 1, .workers = 1};
    bwi_gather_schedule third = {.first = 32, .count = 16, .tile = 8, .lanes = 1, .workers = 1};
    assert_int_equal(bwi_dataset_begin(dataset, &first), BW_OK);
    for (int again = 0; again < 2; again++) {
        assert_int_equal(bwi_dataset_begin(dataset, &third), BW_INVALID_ARGUMENT);
        assert_non_null(strstr(bw_message(ctx), "sample 40: the generator failed: out of ideas"));
    }
    c = (count_up){.last = 0, .wrong = -1};
    assert_null(bw_zip(bw_from_generator(ctx, fields, 2, count, &c), bw_from_generator(ctx, fields, 2, count, &c)));
    assert_int_equal(bwi_pending(ctx), BW_INVALID_ARGUMENT);
    assert_non_null(strstr(bw_message(ctx), "the generator gave no samples"));
    bw_close(ctx);
}

/* The process grows by much less than the samples take. */
static void test_larger_than_memory(void **state)
{
    (void)state;
    enum { SAMPLES = 400000 };
    bw_context *ctx = bw_open(NULL);
    ctx->backing_limit = 1 << 20;
    count_up c = {.last = SAMPLES, .wrong = -1};
    bw_dataset *dataset = bw_shuffle(bw_from_generator(ctx, fields, 2, count, &c), 1);
    assert_int_equal(bwi_dataset_finish(dataset), BW_OK);
    assert_int_equal(bw_dataset_count(dataset), SAMPLES);
    assert_true(bwi_allocated_bytes(ctx) < (size_t)2 << 20);
    int64_t numbers[100];
    for (int64_t first = 0; first < SAMPLES; first += 10000) {
        bwi_dataset_numbers(dataset, 3, first, 100, numbers);
        expect(dataset, numbers, 100);
    }
    bw_close(ctx);
}

static void test_allocation_fails(void **state)
{
    (void)state;
    for (int64_t nth = 1;; nth++) {
        world w = {0};
        count_up c = {.last = 200, .wrong = -1};
        assert_true(world_begin(&w, NULL, 0));
        w.allocation_fail = w.allocations + nth;
        bw_dataset *dataset = bw_batches(bw_take(bw_shuffle(bw_from_generator(w.ctx, fields, 2, count, &c), 3), 150), 150);
        bwi_gather_schedule piece = {.count = 150, .tile = 8, .lanes = 1, .workers = 1};
        bw_status status = dataset ? bwi_dataset_begin(dataset, &piece) : bwi_pending(w.ctx);
        bool failed = w.allocations >= w.allocation_fail;
        assert_int_equal(status, failed ? BW_RESOURCE_EXHAUSTED : BW_OK);
        if (dataset && failed) { /* there may be room later */
            assert_int_equal(bwi_dataset_begin(dataset, &piece), BW_OK);
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
        cmocka_unit_test(test_endless),
        cmocka_unit_test(test_blocks),
        cmocka_unit_test(test_finished),
        cmocka_unit_test(test_failures),
        cmocka_unit_test(test_larger_than_memory),
        cmocka_unit_test(test_allocation_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
