/* Functions that make and change samples: what they see, what comes out, and how failures are told. label: thread */
#include "data_test.h"

#include <math.h>

static const uint8_t pixels[4 * 2] = {0, 255, 10, 20, 30, 40, 50, 60};
static const int64_t labels[4] = {5, 6, 7, 8};

static bw_dataset *images(bw_context *ctx)
{
    bw_array x = {.data = pixels, .dtype = BW_U8, .ndim = 2, .shape = {4, 2}};
    bw_array y = {.data = labels, .dtype = BW_I64, .ndim = 1, .shape = {4}};
    return bw_from_arrays(ctx, &x, &y, NULL);
}

static bool halve(void *user, bw_sample *sample, const void *const *from, void *const *to)
{
    const float *x = from[0];
    (void)user;
    for (int k = 0; k < 2; k++) {
        ((float *)to[0])[k] = x[k] / 2;
    }
    return *(const int32_t *)from[1] == 5 + (int)sample->number && *(const int32_t *)to[1] == *(const int32_t *)from[1];
}

static bool noisy(void *user, bw_sample *sample, const void *const *from, void *const *to)
{
    (void)user, (void)from;
    ((float *)to[0])[0] = bw_random_uniform(&sample->random);
    ((float *)to[0])[1] = bw_random_normal(&sample->random);
    return true;
}

static bool widen(void *user, bw_sample *sample, const void *const *from, void *const *to)
{
    const float *x = from[0];
    (void)user, (void)sample;
    for (int k = 0; k < 4; k++) {
        ((float *)to[0])[k] = x[k % 2] + (float)k;
    }
    ((float *)to[1])[*(const int32_t *)from[1]] = 1; /* zero otherwise */
    return true;
}

static bool refuse_two(void *user, bw_sample *sample, const void *const *from, void *const *to)
{
    (void)user, (void)from, (void)to;
    if (sample->number == 2) {
        snprintf(sample->error, BW_ERROR_TEXT, "too dark");
    }
    return sample->number != 2;
}

static void test_same_fields(void **state)
{
    (void)state;
    bw_context *ctx = bw_open(NULL);
    bw_dataset *dataset = bw_map(bw_map(images(ctx), halve, NULL, NULL), halve, NULL, NULL);
    assert_non_null(dataset);
    assert_int_equal(bwi_dataset_field(dataset, 0)->dtype, BW_F32);
    assert_int_equal(bwi_dataset_field(dataset, 1)->dtype, BW_I32);
    int64_t n;
    float *x = gather_all(dataset, 0, &n);
    for (int64_t i = 0; i < n; i++) {
        assert_true(x[i] == (float)pixels[i] / 4);
    }
    free(x);
    float *y = gather_all(dataset, 1, &n);
    for (int64_t i = 0; i < n; i++) {
        assert_true(y[i] == (float)labels[i]);
    }
    free(y);
    bw_close(ctx);
}

static void test_other_fields(void **state)
{
    (void)state;
    static const bw_field fields[] = {{"y", {.dtype = BW_F32, .ndim = 2, .shape = {0, 10}}},
                                      {"x", {.dtype = BW_F32, .ndim = 3, .shape = {0, 2, 2}}}};
    bw_context *ctx = bw_open(NULL);
    bw_map_options options = BW_MAP_OPTIONS_DEFAULT;
    options.fields = fields;
    options.field_count = 2;
    bw_dataset *dataset = bw_map(images(ctx), widen, NULL, &options);
    int64_t n, shape[BW_MAX_NDIM];
    assert_int_equal(bw_dataset_shape(dataset, shape), 2);
    float *x = gather_all(dataset, 0, &n), *y;
    assert_int_equal(n, 16);
    assert_true(x[4] == 10 && x[5] == 21 && x[6] == 12 && x[7] == 23);
    free(x);
    y = gather_all(dataset, 1, &n);
    for (int64_t i = 0; i < n; i++) {
        assert_true(y[i] == (i % 10 == labels[i / 10] ? 1.0f : 0.0f));
    }
    free(y);
    /* In blocks of channels, as a layer wants them. */
    float tile[2 * 8];
    bwi_destination to = {.kernels = bwi_kernels_host()->gather, .data = tile, .dtype = BW_F32, .h = 2, .w = 1, .c = 2, .block = 4};
    assert_int_equal(bwi_dataset_gather(dataset, 0, 0, (const int64_t[]){1, 0}, 2, &to, NULL), BW_OK);
    assert_true(tile[0] == 10 && tile[1] == 21 && tile[2] == 0 && tile[4] == 12 && tile[5] == 23 && tile[8] == 0);
    bw_close(ctx);
}

/* The same draws for a sample and an epoch, whatever the order; others for other samples, epochs and seeds. */
static void test_random_streams(void **state)
{
    (void)state;
    bw_context *ctx = bw_open(NULL);
    bw_map_options options = BW_MAP_OPTIONS_DEFAULT;
    options.seed = 9;
    bw_dataset *one = bw_map(images(ctx), noisy, NULL, &options), *two = bw_map(bw_shuffle(images(ctx), 4), noisy, NULL, &options);
    float seen[2][4][2];
    for (int epoch = 0; epoch < 2; epoch++) {
        for (int64_t k = 0; k < 4; k++) {
            float again[2];
            bwi_destination to = bwi_host_destination(seen[epoch][k], BW_F32, 2);
            assert_int_equal(bwi_dataset_gather(one, 0, epoch, &k, 1, &to, NULL), BW_OK);
            to.data = again;
            assert_int_equal(bwi_dataset_gather(two, 0, epoch, &k, 1, &to, NULL), BW_OK);
            assert_memory_equal(again, seen[epoch][k], sizeof again);
            for (int64_t other = 0; other < k; other++) {
                assert_true(seen[epoch][other][0] != seen[epoch][k][0]);
            }
        }
    }
    assert_true(seen[0][0][0] != seen[1][0][0]);
    bw_close(ctx);
}

static void test_failures(void **state)
{
    (void)state;
    bw_context *ctx = bw_open(NULL);
    bw_dataset *dataset = bw_map(images(ctx), refuse_two, NULL, NULL);
    float x[8];
    char error[BWI_GATHER_ERROR] = "";
    bwi_destination to = bwi_host_destination(x, BW_F32, 2);
    assert_int_equal(bwi_dataset_gather(dataset, 0, 0, (const int64_t[]){0, 1, 2, 3}, 4, &to, error), BW_INVALID_ARGUMENT);
    assert_string_equal(error, "sample 2: the map function failed: too dark");
    assert_failed(ctx, bw_map(images(ctx), NULL, NULL, NULL), BW_INVALID_ARGUMENT, "map needs a function");
    static const bw_field bad[] = {{"x", {.dtype = BW_F64, .ndim = 2, .shape = {0, 2}}},
                                   {"z", {.dtype = BW_F32, .ndim = 2, .shape = {0, 2}}},
                                   {"x", {.dtype = BW_F32, .ndim = 2, .shape = {0, -1}}},
                                   {"x", {.dtype = BW_F32, .ndim = 0}}};
    static const char *const parts[] = {"float32 or int32, found float64", "expected x, y or w", "extents must be positive",
                                        "1 to 8 axes"};
    for (size_t i = 0; i < BWI_COUNT(bad); i++) {
        bw_map_options options = BW_MAP_OPTIONS_DEFAULT;
        options.fields = &bad[i];
        options.field_count = 1;
        assert_failed(ctx, bw_map(images(ctx), halve, NULL, &options), BW_INVALID_ARGUMENT, parts[i]);
    }
    assert_null(bw_map(NULL, halve, NULL, NULL));
    assert_failed(ctx, bw_from_function(ctx, bad, 0, NULL, NULL), BW_INVALID_ARGUMENT, "need the function");
    bw_close(ctx);
}

static void test_allocation_fails(void **state)
{
    (void)state;
    for (int64_t nth = 2;; nth++) {
        world w = {0};
        assert_true(world_begin(&w, NULL, 0));
        w.allocation_fail = nth;
        bw_dataset *dataset = bw_map(images(w.ctx), halve, NULL, NULL);
        bool failed = w.allocations >= nth;
        if (failed) {
            assert_failed(w.ctx, dataset, BW_RESOURCE_EXHAUSTED, "cannot allocate");
        }
        assert_int_equal(failed ? w.live : 1, 1);
        world_end(&w);
        if (!failed) {
            break;
        }
        assert_true(nth < 50);
    }
}

static void test_random(void **state)
{
    (void)state;
    bw_random random = {.seed = 1, .stream = 2}, copy;
    double sum = 0, square = 0, normal = 0, normal_square = 0;
    int count = 20000;
    for (int i = 0; i < count; i++) {
        double u = (double)bw_random_uniform(&random);
        assert_true(u >= 0 && u < 1);
        sum += u;
        square += u * u;
    }
    for (int i = 0; i < count; i++) {
        double z = (double)bw_random_normal(&random);
        normal += z;
        normal_square += z * z;
    }
    assert_true(fabs(sum / count - 0.5) < 0.01 && fabs(square / count - 1.0 / 3) < 0.01);
    assert_true(fabs(normal / count) < 0.03 && fabs(normal_square / count - 1) < 0.05);
    copy = random;
    assert_true(bw_random_uniform(&copy) == bw_random_uniform(&random));
    static const float weights[] = {1, 0, 3, -1};
    int seen[4] = {0}, below[5] = {0};
    for (int i = 0; i < count; i++) {
        seen[bw_random_category(&random, weights, 4)]++;
        below[bw_random_below(&random, 5)]++;
    }
    assert_true(seen[1] == 0 && seen[3] == 0 && abs(seen[0] - count / 4) < 300);
    for (int i = 0; i < 5; i++) {
        assert_true(abs(below[i] - count / 5) < 300);
    }
    bool at[50] = {false};
    for (int64_t i = 0; i < 50; i++) {
        at[bw_random_permute(3, 50, i)] = true;
    }
    for (int i = 0; i < 50; i++) {
        assert_true(at[i]);
    }
    assert_true(bw_random_permute(3, 50, 50) == -1 && bw_random_permute(3, 50, -1) == -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_fields), cmocka_unit_test(test_other_fields),     cmocka_unit_test(test_random_streams),
        cmocka_unit_test(test_failures),    cmocka_unit_test(test_allocation_fails), cmocka_unit_test(test_random),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
