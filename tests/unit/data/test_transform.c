/* Filters, statistics, one-hot targets, caches and generators against plain loops. label: thread */
#include "data_test.h"
#include "support/folder.h"

#include <math.h>
#include <stdatomic.h>
#include <unistd.h>

#define COUNT 200

static float rows[COUNT * 3];
static int32_t labels[COUNT];

static bw_dataset *table(bw_context *ctx)
{
    for (int i = 0; i < COUNT; i++) {
        for (int k = 0; k < 3; k++) {
            rows[i * 3 + k] = (float)((i * 37 + k * 11) % 101) * (float)(k + 1) + (k == 2 ? 1000.0f : 0);
        }
        labels[i] = i % 4;
    }
    bw_array x = {.data = rows, .dtype = BW_F32, .ndim = 2, .shape = {COUNT, 3}};
    bw_array y = {.data = labels, .dtype = BW_I32, .ndim = 1, .shape = {COUNT}};
    return bw_from_arrays(ctx, &x, &y, NULL);
}

static bw_status gather(const bw_dataset *dataset, int field, int epoch, int64_t position, float *to, int64_t values, char *error)
{
    int64_t number = bwi_dataset_number(dataset, epoch, position);
    bwi_destination place = bwi_host_destination(to, BW_F32, values);
    return bwi_dataset_gather(dataset, field, epoch, &number, 1, &place, error);
}

/* ---- Filters ---- */

static bool odd(void *user, bw_sample *sample, const void *const *from)
{
    (void)user, (void)sample;
    return *(const int32_t *)from[1] % 2 == 1;
}

static bool none(void *user, bw_sample *sample, const void *const *from)
{
    (void)user, (void)sample, (void)from;
    return false;
}

static void test_filter(void **state)
{
    (void)state;
    for (int workers = 1; workers <= 4; workers *= 2) {
        bw_context_options options = BW_CONTEXT_OPTIONS_DEFAULT;
        options.workers = workers;
        bw_context *ctx = bw_open(&options);
        bw_dataset *dataset = bw_filter(bw_skip(table(ctx), 10), odd, NULL);
        assert_int_equal(bw_dataset_count(dataset), 95);
        for (int64_t i = 0; i < 95; i++) {
            assert_int_equal(bwi_dataset_number(dataset, 3, i), 11 + 2 * i);
        }
        /* A shuffle below is put on again above: every kept sample once, another order each epoch. */
        dataset = bw_filter(bw_shuffle(table(ctx), 8), odd, NULL);
        assert_int_equal(bw_dataset_count(dataset), 100);
        int seen[COUNT] = {0}, moved = 0;
        for (int64_t i = 0; i < 100; i++) {
            seen[bwi_dataset_number(dataset, 0, i)]++;
            moved += bwi_dataset_number(dataset, 0, i) != bwi_dataset_number(dataset, 1, i);
        }
        for (int i = 0; i < COUNT; i++) {
            assert_int_equal(seen[i], i % 2);
        }
        assert_true(moved > 50);
        assert_failed(ctx, bw_filter(bw_take(bw_shuffle(table(ctx), 8), 50), odd, NULL), BW_INVALID_ARGUMENT,
                      "filter before shuffling");
        assert_failed(ctx, bw_filter(table(ctx), none, NULL), BW_INVALID_ARGUMENT, "none of 200 samples is left");
        assert_failed(ctx, bw_filter(table(ctx), NULL, NULL), BW_INVALID_ARGUMENT, "filter needs a function");
        bw_close(ctx);
    }
}

/* ---- Bad samples ---- */

static bool fragile(void *user, bw_sample *sample, const void *const *from, void *const *to)
{
    (void)user, (void)from, (void)to;
    snprintf(sample->error, BW_ERROR_TEXT, "broken");
    return sample->number % 50 != 7;
}

static char logged[4096];

static void keep_log(void *user, bw_log_level level, const char *message)
{
    (void)user, (void)level;
    strncat(logged, message, sizeof logged - strlen(logged) - 2);
    strcat(logged, "\n");
}

static void test_bad(void **state)
{
    (void)state;
    for (int workers = 1; workers <= 4; workers *= 2) {
        bw_context_options options = BW_CONTEXT_OPTIONS_DEFAULT;
        options.workers = workers;
        options.log = keep_log;
        logged[0] = 0;
        bw_context *ctx = bw_open(&options);
        bw_dataset *dataset = bw_allow_bad(bw_map(table(ctx), fragile, NULL, NULL), 0.02);
        assert_int_equal(bw_dataset_count(dataset), COUNT - 4);
        assert_string_equal(logged, "left out: sample 7: the map function failed: broken\n"
                                    "left out: sample 57: the map function failed: broken\n"
                                    "left out: sample 107: the map function failed: broken\n"
                                    "left out: sample 157: the map function failed: broken\n"
                                    "4 of 200 samples are bad and left out\n");
        float x[3];
        for (int64_t i = 0; i < COUNT - 4; i++) {
            assert_int_equal(gather(dataset, 0, 0, i, x, 3, NULL), BW_OK);
        }
        assert_failed(ctx, bw_allow_bad(bw_map(table(ctx), fragile, NULL, NULL), 0.01), BW_INVALID_ARGUMENT,
                      "4 of 200 samples are bad, more than the allowed 1 percent; the first: sample 7: the map function failed");
        assert_failed(ctx, bw_allow_bad(table(ctx), 0), BW_INVALID_ARGUMENT, "a share of more than 0");
        bw_close(ctx);
    }
}

/* ---- Statistics ---- */

static void statistics(int first, int count, int k, double *mean, double *deviation, double *least, double *largest)
{
    double sum = 0, square = 0;
    *least = (double)INFINITY;
    *largest = -(double)INFINITY;
    for (int i = first; i < first + count; i++) {
        double x = (double)rows[i * 3 + k];
        sum += x;
        *least = x < *least ? x : *least;
        *largest = x > *largest ? x : *largest;
    }
    *mean = sum / count;
    for (int i = first; i < first + count; i++) {
        square += ((double)rows[i * 3 + k] - *mean) * ((double)rows[i * 3 + k] - *mean);
    }
    *deviation = sqrt(square / count);
}

/* Only the part that training sees counts, also for the other part. */
static void test_statistics(void **state)
{
    (void)state;
    float seen[2][3];
    for (int workers = 1; workers <= 4; workers *= 4) {
        bw_context_options options = BW_CONTEXT_OPTIONS_DEFAULT;
        options.workers = workers;
        bw_context *ctx = bw_open(&options);
        bw_dataset *dataset = bw_standardise(table(ctx), NULL), *training, *validation;
        char error[BWI_GATHER_ERROR] = "";
        float x[3];
        assert_int_equal(gather(dataset, 0, 0, 0, x, 3, error), BW_INVALID_ARGUMENT);
        assert_contains(error, "sample 0: standardise is not fitted yet");
        assert_int_equal(bw_split(dataset, 0.25, &training, &validation), BW_OK);
        bwi_gather_schedule schedule = {.count = 150, .tile = 8, .lanes = 1, .workers = 1};
        assert_true(bwi_dataset_begins(training));
        assert_int_equal(bwi_dataset_begin(training, &schedule), BW_OK);
        assert_int_equal(bwi_dataset_begin(validation, &schedule), BW_OK);
        assert_int_equal(gather(validation, 0, 0, 20, x, 3, NULL), BW_OK);
        for (int k = 0; k < 3; k++) {
            double mean, deviation, least, largest;
            statistics(0, 150, k, &mean, &deviation, &least, &largest);
            assert_true(fabs((double)x[k] - ((double)rows[170 * 3 + k] - mean) / deviation) < 1e-5);
        }
        memcpy(seen[workers > 1], x, sizeof x);
        bw_dataset *other = bw_standardise(bw_take(table(ctx), 20), training);
        assert_int_equal(gather(other, 0, 0, 3, x, 3, NULL), BW_OK);
        float again[3];
        assert_int_equal(gather(training, 0, 0, 3, again, 3, NULL), BW_OK);
        assert_memory_equal(x, again, sizeof x);
        float y;
        assert_int_equal(gather(training, 1, 0, 3, &y, 1, NULL), BW_OK);
        assert_true(y == 3);
        const float *offset, *factor;
        int64_t count;
        assert_true(bwi_dataset_statistics(validation, 0, &offset, &factor, &count) && count == 3);
        assert_failed(ctx, bw_standardise(table(ctx), table(ctx)), BW_INVALID_ARGUMENT,
                      "the dataset given as `like` has no such stage");
        bw_close(ctx);
    }
    assert_memory_equal(seen[0], seen[1], sizeof seen[0]); /* whatever the workers */
}

static void test_range(void **state)
{
    (void)state;
    bw_context *ctx = bw_open(NULL);
    bw_dataset *dataset = bw_normalise(table(ctx), NULL);
    bwi_gather_schedule schedule = {.count = COUNT, .tile = 8, .lanes = 1, .workers = 1};
    assert_int_equal(bwi_dataset_begin(dataset, &schedule), BW_OK);
    int64_t n;
    float *x = gather_all(dataset, 0, &n);
    for (int k = 0; k < 3; k++) {
        double mean, deviation, least, largest;
        statistics(0, COUNT, k, &mean, &deviation, &least, &largest);
        for (int i = 0; i < COUNT; i++) {
            assert_true(fabs((double)x[i * 3 + k] - ((double)rows[i * 3 + k] - least) / (largest - least)) < 1e-6);
        }
    }
    free(x);
    bw_close(ctx);
}

/* By channels, in blocks of them, as a convolution wants its tile. */
static void test_channels(void **state)
{
    (void)state;
    bw_context *ctx = bw_open(NULL);
    bw_array images = {.data = rows, .dtype = BW_F32, .ndim = 4, .shape = {50, 2, 2, 3}};
    table(ctx);
    bw_dataset *dataset = bw_standardise(bw_from_arrays(ctx, &images, NULL, NULL), NULL);
    bwi_gather_schedule schedule = {.count = 50, .tile = 8, .lanes = 1, .workers = 1};
    assert_int_equal(bwi_dataset_begin(dataset, &schedule), BW_OK);
    float flat[12], blocks[2 * 4 * 2], pixels[4 * 3];
    assert_int_equal(gather(dataset, 0, 0, 7, flat, 12, NULL), BW_OK);
    int64_t seven = 7;
    bwi_destination wide = {
        .kernels = bwi_kernels_host()->gather, .data = blocks, .dtype = BW_F32, .h = 2, .w = 2, .c = 3, .block = 2};
    bwi_destination last = {
        .kernels = bwi_kernels_host()->gather, .data = pixels, .dtype = BW_F32, .h = 2, .w = 2, .c = 3, .block = 3};
    assert_int_equal(bwi_dataset_gather(dataset, 0, 0, &seven, 1, &wide, NULL), BW_OK);
    assert_int_equal(bwi_dataset_gather(dataset, 0, 0, &seven, 1, &last, NULL), BW_OK);
    for (int p = 0; p < 4; p++) {
        for (int c = 0; c < 3; c++) {
            double mean, deviation, least, largest;
            statistics(0, COUNT, c, &mean, &deviation, &least, &largest);
            double expected = ((double)rows[7 * 12 + p * 3 + c] - mean) / deviation;
            assert_true(fabs((double)flat[p * 3 + c] - expected) < 1e-5);
            assert_true(flat[p * 3 + c] == blocks[(c / 2 * 4 + p) * 2 + c % 2]);
            assert_true(flat[p * 3 + c] == pixels[p * 3 + c]);
        }
    }
    bw_close(ctx);
}

/* ---- One-hot ---- */

static void test_one_hot(void **state)
{
    (void)state;
    bw_context *ctx = bw_open(NULL);
    bw_dataset *dataset = bw_one_hot(table(ctx), 4);
    int64_t n;
    float *y = gather_all(dataset, 1, &n), *x = gather_all(dataset, 0, &n);
    for (int i = 0; i < COUNT * 4; i++) {
        assert_true(y[i] == (i % 4 == labels[i / 4] ? 1.0f : 0.0f));
    }
    assert_memory_equal(x, rows, sizeof rows);
    free(x);
    free(y);
    dataset = bw_one_hot(table(ctx), 3);
    char error[BWI_GATHER_ERROR] = "";
    float row[3];
    assert_int_equal(gather(dataset, 1, 0, 3, row, 3, error), BW_INVALID_ARGUMENT);
    assert_string_equal(error, "sample 3: class 3 is outside 0..2");
    assert_failed(ctx, bw_one_hot(table(ctx), 0), BW_INVALID_ARGUMENT, "how many classes there are is not known");
    assert_failed(ctx, bw_one_hot(bw_one_hot(table(ctx), 4), 4), BW_INVALID_ARGUMENT, "lists of 4 values");
    bw_close(ctx);
}

/* ---- Caches and generators ---- */

static atomic_int calls;

static bool count_calls(void *user, bw_sample *sample, const void *const *from, void *const *to)
{
    (void)user, (void)from;
    atomic_fetch_add(&calls, 1);
    ((float *)to[0])[0] = (float)sample->epoch;
    return true;
}

static void test_cache(void **state)
{
    (void)state;
    bw_context *ctx = bw_open(NULL);
    bw_dataset *dataset = bw_cache(bw_map(table(ctx), count_calls, NULL, NULL));
    atomic_store(&calls, 0);
    float x[3], y;
    for (int epoch = 0; epoch < 3; epoch++) {
        for (int64_t i = 0; i < COUNT; i++) {
            assert_int_equal(gather(dataset, 0, epoch, i, x, 3, NULL), BW_OK);
            assert_int_equal(gather(dataset, 1, epoch, i, &y, 1, NULL), BW_OK);
            assert_true(x[0] == 0 && x[1] == rows[i * 3 + 1] && y == (float)labels[i]);
        }
    }
    assert_int_equal(atomic_load(&calls), COUNT);
    bw_close(ctx);
}

/* Once for all contexts; by number, with types and scale as they are; refused if it is another's or damaged. */
static void test_cache_file(void **state)
{
    (void)state;
    assert_int_equal(make_folder(NULL), 0);
    const char *path = inside("cache");
    for (int round = 0; round < 2; round++) {
        bw_context *ctx = bw_open(NULL);
        atomic_store(&calls, 0);
        bw_dataset *dataset = bw_cache_file(bw_map(table(ctx), count_calls, NULL, NULL), path);
        assert_non_null(dataset);
        int looked = atomic_load(&calls);
        assert_true(round ? looked < COUNT : looked >= COUNT);
        float x[3], y;
        for (int64_t i = 0; i < COUNT; i++) {
            assert_int_equal(gather(dataset, 0, 2, i, x, 3, NULL), BW_OK);
            assert_int_equal(gather(dataset, 1, 2, i, &y, 1, NULL), BW_OK);
            assert_true(x[0] == 0 && x[1] == rows[i * 3 + 1] && y == (float)labels[i]);
        }
        assert_int_equal(atomic_load(&calls), looked);
        bw_close(ctx);
    }
    bw_context *ctx = bw_open(NULL);
    assert_null(bw_cache_file(table(ctx), path));
    assert_non_null(strstr(bw_message(ctx), "a cache of other samples"));
    bw_close(ctx);
    FILE *file = fopen(path, "r+b");
    assert_non_null(file);
    fseek(file, -3, SEEK_END);
    fputc('!', file);
    fclose(file);
    ctx = bw_open(NULL);
    assert_null(bw_cache_file(bw_map(table(ctx), count_calls, NULL, NULL), path));
    assert_non_null(strstr(bw_message(ctx), "damaged"));
    bw_close(ctx);
    assert_int_equal(truncate(path, 100), 0);
    ctx = bw_open(NULL);
    assert_null(bw_cache_file(bw_map(table(ctx), count_calls, NULL, NULL), path));
    assert_non_null(strstr(bw_message(ctx), "no cache of samples"));
    bw_close(ctx);
    ctx = bw_open(NULL);
    assert_null(bw_cache_file(bw_standardise(table(ctx), NULL), path));
    assert_non_null(strstr(bw_message(ctx), "comes after it"));
    bw_close(ctx);
    assert_int_equal(remove_folder(NULL), 0);
}

static int count_to(void *user, bw_sample *sample, void *const *values)
{
    int64_t last = *(const int64_t *)user;
    if (sample->number == 400) {
        snprintf(sample->error, BW_ERROR_TEXT, "out of ideas");
    }
    if (sample->number >= last) {
        return last == 400 ? -1 : 0;
    }
    *(uint16_t *)values[0] = (uint16_t)sample->number;
    *(uint8_t *)values[1] = (uint8_t)(sample->number % 3);
    return 1;
}

static void test_generator(void **state)
{
    (void)state;
    static const bw_field fields[] = {{"x", {.dtype = BW_U16, .ndim = 2, .shape = {0, 1}}}, {"y", {.dtype = BW_U8, .ndim = 1}}};
    bw_context *ctx = bw_open(NULL);
    int64_t last = 1000, n;
    bw_dataset *dataset = bw_from_generator(ctx, fields, 2, count_to, &last);
    assert_int_equal(bw_dataset_count(dataset), -1); /* nobody has looked */
    assert_int_equal(bwi_dataset_finish(dataset), BW_OK);
    assert_int_equal(bw_dataset_count(dataset), 1000);
    float *x = gather_all(dataset, 0, &n), *y = gather_all(dataset, 1, &n);
    for (int i = 0; i < 1000; i++) {
        assert_true(x[i] == (float)i && y[i] == (float)(i % 3));
    }
    free(x);
    free(y);
    last = 400;
    assert_failed(ctx, bw_skip(bw_from_generator(ctx, fields, 2, count_to, &last), 1), BW_INVALID_ARGUMENT,
                  "sample 400: the generator failed: out of ideas");
    last = 0;
    assert_failed(ctx, bw_skip(bw_from_generator(ctx, fields, 2, count_to, &last), 1), BW_INVALID_ARGUMENT, "gave no samples");
    bw_close(ctx);
}

static void test_allocation_fails(void **state)
{
    (void)state;
    static const bw_field fields[] = {{"x", {.dtype = BW_U16, .ndim = 2, .shape = {0, 1}}}, {"y", {.dtype = BW_U8, .ndim = 1}}};
    int64_t last = 100;
    for (int64_t nth = 1;; nth++) {
        world w = {0};
        assert_true(world_begin(&w, NULL, 0));
        w.allocation_fail = w.allocations + nth;
        bw_dataset *dataset = bw_from_generator(w.ctx, fields, 2, count_to, &last);
        dataset = bw_one_hot(bw_standardise(bw_cache(bw_filter(dataset, odd, NULL)), NULL), 3);
        bwi_gather_schedule schedule = {.count = 10, .tile = 8, .lanes = 1, .workers = 1};
        bw_status status = dataset ? bwi_dataset_begin(dataset, &schedule) : bwi_pending(w.ctx);
        bool failed = w.allocations >= w.allocation_fail;
        assert_int_equal(status, failed ? BW_RESOURCE_EXHAUSTED : BW_OK);
        if (!dataset) {
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
        cmocka_unit_test(test_filter),     cmocka_unit_test(test_bad),
        cmocka_unit_test(test_statistics), cmocka_unit_test(test_range),
        cmocka_unit_test(test_channels),   cmocka_unit_test(test_one_hot),
        cmocka_unit_test(test_cache),      cmocka_unit_test(test_cache_file),
        cmocka_unit_test(test_generator),  cmocka_unit_test(test_allocation_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
