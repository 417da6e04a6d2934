/* Samples computed from their numbers: the same whenever they are asked for, with the labels and values that are promised. */
#include "data_test.h"

#include <math.h>

static void test_images(void **state)
{
    (void)state;
    bw_context *ctx = bw_open(NULL);
    bw_dataset *dataset = bw_read(ctx, "synth:images?n=300&shape=6x5x3&classes=7&seed=4", NULL);
    if (!dataset) {
        fail_msg("%s", bw_message(ctx));
    }
    int64_t n, shape[BW_MAX_NDIM];
    assert_int_equal(bw_dataset_count(dataset), 300);
    assert_int_equal(bw_dataset_shape(dataset, shape), 3);
    assert_true(shape[0] == 6 && shape[1] == 5 && shape[2] == 3);
    float *x = gather_all(dataset, 0, &n), *y = gather_all(dataset, 1, &n);
    int seen[7] = {0};
    for (int i = 0; i < 300; i++) {
        seen[(int)y[i]]++;
    }
    for (int i = 0; i < 7; i++) {
        assert_true(seen[i] > 20);
    }
    for (int i = 0; i < 300 * 90; i++) {
        assert_true(x[i] >= 0 && x[i] < 1);
    }
    float again[90];
    bwi_destination to = bwi_host_destination(again, BW_F32, 90);
    assert_int_equal(bwi_dataset_gather(dataset, 0, 3, &(int64_t){123}, 1, &to, NULL), BW_OK);
    assert_memory_equal(again, x + 123 * 90, sizeof again);
    /* Samples of a class are nearer to each other's mean than to that of others. */
    double mean[7][90] = {{0}};
    for (int i = 0; i < 300; i++) {
        for (int k = 0; k < 90; k++) {
            mean[(int)y[i]][k] += (double)x[i * 90 + k] / seen[(int)y[i]];
        }
    }
    int right = 0;
    for (int i = 0; i < 300; i++) {
        int best = 0;
        double least = (double)INFINITY;
        for (int c = 0; c < 7; c++) {
            double distance = 0;
            for (int k = 0; k < 90; k++) {
                distance += ((double)x[i * 90 + k] - mean[c][k]) * ((double)x[i * 90 + k] - mean[c][k]);
            }
            best = distance < least ? c : best;
            least = distance < least ? distance : least;
        }
        right += best == (int)y[i];
    }
    assert_true(right > 200);
    free(x);
    free(y);
    bw_close(ctx);
}

static void test_others(void **state)
{
    (void)state;
    bw_context *ctx = bw_open(NULL);
    int64_t n;
    float *y = gather_all(bw_read(ctx, "synth:ordered?n=100&classes=4&shape=2", NULL), 1, &n);
    for (int i = 0; i < 100; i++) {
        assert_true(y[i] == (float)(i / 25));
    }
    free(y);
    bw_dataset *line = bw_read(ctx, "synth:line?n=50&slope=3&intercept=-1&noise=0", NULL);
    float *x = gather_all(line, 0, &n);
    y = gather_all(line, 1, &n);
    for (int i = 0; i < 50; i++) {
        assert_true(fabsf(y[i] - (3 * x[i] - 1)) < 1e-6f && x[i] >= -1 && x[i] < 1);
    }
    free(x);
    free(y);
    x = gather_all(bw_read(ctx, "synth:range?n=10", NULL), 0, &n);
    for (int i = 0; i < 10; i++) {
        assert_true(x[i] == (float)i);
    }
    free(x);
    bw_dataset *shapes = bw_read(ctx, "synth:shapes?n=40", NULL);
    x = gather_all(shapes, 0, &n);
    y = gather_all(shapes, 1, &n);
    for (int i = 0; i < 40; i++) {
        int lit = 0;
        for (int k = 0; k < 1024; k++) {
            lit += x[i * 1024 + k] >= 0.8f;
        }
        assert_true(lit > 30 && lit < 600 && y[i] < 4);
    }
    free(x);
    free(y);
    bw_dataset *slow = bw_read(ctx, "synth:range?n=10&delay=1ms", NULL);
    bwi_gather_schedule schedule = {.count = 10, .tile = 2, .lanes = 1, .workers = 2};
    assert_true(bwi_dataset_begins(slow));
    assert_int_equal(bwi_dataset_begin(slow, &schedule), BW_OK);
    x = gather_all(slow, 0, &n);
    assert_true(x[9] == 9);
    free(x);
    bw_close(ctx);
}

static void test_refused(void **state)
{
    (void)state;
    static const struct {
        const char *path, *part;
        bw_status status;
    } cases[] = {
        {"synth:", "known are synth:images", BW_NOT_FOUND},
        {"synth:image", "known are synth:images", BW_NOT_FOUND},
        {"synth:images?n=0", "n is the number of samples", BW_INVALID_ARGUMENT},
        {"synth:images?n=x", "found 'n=x'", BW_INVALID_ARGUMENT},
        {"synth:images?size=3", "found 'size=3'", BW_INVALID_ARGUMENT},
        {"synth:images?shape=3x", "found 'shape=3x'", BW_INVALID_ARGUMENT},
        {"synth:images?shape=3x-1", "found 'shape=3x-1'", BW_INVALID_ARGUMENT},
        {"synth:images?shape=100000x100000", "too many values", BW_INVALID_ARGUMENT},
        {"synth:images?classes=0", "1 to 1000000 classes", BW_INVALID_ARGUMENT},
        {"synth:shapes?classes=5", "1 to 4 classes", BW_INVALID_ARGUMENT},
        {"synth:shapes?shape=3x3x1", "at least 4", BW_INVALID_ARGUMENT},
        {"synth:line?shape=3", "single numbers", BW_INVALID_ARGUMENT},
        {"synth:range?delay=1", "found 'delay=1'", BW_INVALID_ARGUMENT},
        {"synth:range?", "found ''", BW_INVALID_ARGUMENT},
    };
    bw_context *ctx = bw_open(NULL);
    for (size_t i = 0; i < BWI_COUNT(cases); i++) {
        assert_failed(ctx, bw_read(ctx, cases[i].path, NULL), cases[i].status, cases[i].part);
    }
    bw_close(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_images), cmocka_unit_test(test_others),
                                       cmocka_unit_test(test_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
