/*
 * Metrics' sums of every table, added to what is there, by hand and against plain definitions. Most sums are of small whole numbers
 * and eighths, which are exact.
 */
#include "support/kernel_check.h"

#include "op/op.h"

static void assert_sums(const char *what, const double *found, const double *expected, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        if (!(found[i] == expected[i] || (isnan(found[i]) && isnan(expected[i])))) {
            fail_msg("%s: sum %lld: expected %.17g, found %.17g", what, (long long)i, expected[i], found[i]);
        }
    }
}

static float eighth(void)
{
    return (float)random_below(64) / 8 - 4;
}

static void check_mean(const bwi_kernels *k)
{
    for (int64_t samples = 0; samples < 40; samples++) {
        float values[40], weight[120];
        double expected[2] = {1, 2}, sums[2] = {1, 2};
        for (int64_t i = 0; i < samples; i++) {
            values[i] = eighth();
            expected[0] += (double)values[i];
        }
        k->metric->mean(samples, 0, values, NULL, sums);
        expected[1] += (double)samples;
        assert_sums("mean", sums, expected, 2);
        for (int64_t i = 0; i < 2 * samples; i++) {
            weight[i] = eighth();
            expected[1] += (double)weight[i] / 2;
        }
        for (int64_t i = 0; i < samples; i++) {
            expected[0] += (double)values[i];
        }
        k->metric->mean(samples, 2, values, weight, sums);
        assert_sums("mean of weights", sums, expected, 2);
    }
}

static void test_mean(void **state)
{
    (void)state;
    each_table(check_mean);
}

static void check_accuracy(const bwi_kernels *k)
{
    bwi_rows rows = {.samples = 2, .count = 2, .width = 3, .weights = 2};
    const float x[] = {0, 2, 1, 5, 4, 3, 1, 1, 0, -3, -2, NAN}, weight[] = {1, 2, 4, 8};
    const float y[] = {0, 1, 0, 0, 0, 1, 1, 0, 0, 0, 1, 0};
    const int32_t labels[] = {1, 2, 0, 7};
    double sums[2] = {100, 200};
    k->metric->accuracy(&(bwi_accuracy){.kind = BWI_ACCURACY_SPARSE}, &rows, x, labels, weight, sums);
    assert_sums("sparse", sums, (const double[]){105, 215}, 2);
    k->metric->accuracy(&(bwi_accuracy){.kind = BWI_ACCURACY_CATEGORICAL}, &rows, x, y, weight, sums);
    assert_sums("categorical", sums, (const double[]){118, 230}, 2);
    double top[2] = {0, 0};
    k->metric->accuracy(&(bwi_accuracy){.kind = BWI_ACCURACY_SPARSE_TOP, .k = 3}, &rows, x, labels, weight, top);
    assert_sums("sparse top", top, (const double[]){7, 15}, 2);
    k->metric->accuracy(&(bwi_accuracy){.kind = BWI_ACCURACY_TOP, .k = 1}, &rows, x, y, weight, top);
    assert_sums("top", top, (const double[]){20, 30}, 2);
}

static void check_binary_accuracy(const bwi_kernels *k)
{
    for (int64_t width = 1; width < 40; width++) {
        float x[120], y[120];
        const float weight[3] = {2, 0, 1};
        double expected[2] = {0, 3.0 * (double)width}, weighted[2] = {0, 3.0 * (double)width}, sums[2] = {0, 0};
        for (int64_t i = 0; i < 3 * width; i++) {
            x[i] = eighth();
            y[i] = (float)random_below(2);
            bool right = (x[i] > 0.5f) == (y[i] == 1);
            expected[0] += right;
            weighted[0] += right ? (double)weight[i / width] : 0;
        }
        bwi_accuracy a = {.kind = BWI_ACCURACY_BINARY, .threshold = 0.5f};
        bwi_rows rows = {.samples = 3, .count = 1, .width = width};
        k->metric->accuracy(&a, &rows, x, y, NULL, sums);
        assert_sums("binary", sums, expected, 2);
        rows.weights = 1;
        memset(sums, 0, sizeof sums);
        k->metric->accuracy(&a, &rows, x, y, weight, sums);
        assert_sums("weighted binary", sums, weighted, 2);
    }
}

static void test_accuracy(void **state)
{
    (void)state;
    each_table(check_accuracy);
    each_table(check_binary_accuracy);
}

/* Buckets of 5 thresholds: 0, 1/4, 1/2, 3/4, 1; a prediction at a threshold belongs below it. */
static void check_confusion(const bwi_kernels *k)
{
    bwi_rows rows = {.samples = 7, .count = 1, .width = 1, .weights = 1};
    const float x[] = {0, 0.25f, 0.3f, 0.5f, 0.75f, 0.9f, 2}, y[] = {0, 1, 0, 1, 0, 1, 1}, weight[] = {1, 2, 4, 8, 16, 32, 64};
    double buckets[10] = {0}, counts[4] = {1, 1, 1, 1};
    k->metric->confusion(&(bwi_confusion){.buckets = 5}, &rows, x, y, weight, buckets);
    assert_sums("buckets", buckets, (const double[]){2, 8, 0, 96, 0, 1, 4, 16, 0, 0}, 10);
    k->metric->confusion(&(bwi_confusion){.thresholds = 1, .threshold = {0.5f}}, &rows, x, y, weight, counts);
    assert_sums("counts", counts, (const double[]){97, 17, 11, 6}, 4);
    double listed[8] = {0}, lists[6] = {0}, strict[10] = {0};
    k->metric->confusion(&(bwi_confusion){.thresholds = 2, .threshold = {0.25f, 0.8f}}, &rows, x, y, weight, listed);
    assert_sums("two thresholds", listed, (const double[]){104, 20, 2, 1, 96, 0, 10, 21}, 8);
    k->metric->confusion(&(bwi_confusion){.buckets = 3, .thresholds = 1, .threshold = {0.3f}}, &rows, x, y, weight, lists);
    assert_sums("buckets of a list", lists, (const double[]){2, 104, 0, 5, 16, 0}, 6);
    k->metric->confusion(&(bwi_confusion){.buckets = 5, .strict = true}, &rows, x, y, weight, strict);
    assert_sums("strict buckets", strict, (const double[]){0, 2, 8, 0, 96, 1, 0, 4, 16, 0}, 10);
    const float logits[] = {-1, 1, 0.5f, -0.5f, 3, -3, 0};
    double of_logits[4] = {0};
    k->metric->confusion(&(bwi_confusion){.thresholds = 1, .threshold = {0.5f}, .from_logits = true}, &rows, logits, y, weight,
                         of_logits);
    assert_sums("of logits", of_logits, (const double[]){2, 20, 104, 1}, 4);
    double spoilt[10] = {0};
    k->metric->confusion(&(bwi_confusion){.buckets = 5}, &(bwi_rows){.samples = 1, .count = 1, .width = 1}, (const float[]){NAN},
                         (const float[]){1}, NULL, spoilt);
    assert_true(isnan(spoilt[0]));
}

static void test_confusion(void **state)
{
    (void)state;
    each_table(check_confusion);
}

static void check_variation(const bwi_kernels *k)
{
    for (int64_t width = 1; width < 20; width++) {
        bwi_rows rows = {.samples = 3, .count = 1, .width = width, .weights = 1};
        float x[60], y[60];
        const float weight[] = {1, 0.5f, 2};
        double sums[81] = {0}, expected[81] = {0};
        for (int64_t i = 0; i < 3 * width; i++) {
            x[i] = eighth();
            y[i] = eighth();
            double w = (double)weight[i / width], error = (double)x[i] - (double)y[i];
            expected[i % width] += w;
            expected[width + i % width] += w * (double)y[i];
            expected[2 * width + i % width] += w * (double)y[i] * (double)y[i];
            expected[3 * width + i % width] += w * error * error;
        }
        expected[4 * width] = 3.0 * (double)width;
        k->metric->variation(&rows, x, y, weight, sums);
        assert_sums("variation", sums, expected, 4 * width + 1);
    }
}

static void test_variation(void **state)
{
    (void)state;
    each_table(check_variation);
}

/* Means along one axis of two, of samples of 3 x width: as a plain sum over everything that shares a mean. */
static void check_moments(const bwi_kernels *k)
{
    enum { SAMPLES = 4 };
    for (int64_t width = 1; width < 20; width++) {
        float x[SAMPLES * 3 * 20], mean[20];
        double sums[40] = {0}, expected[40] = {0};
        bwi_shape sample = {.ndim = 2, .extent = {3, width}}, over = {.ndim = 2, .extent = {1, width}};
        bwi_spread spread = bwi_spread_over(&sample, &over);
        for (int64_t i = 0; i < width; i++) {
            mean[i] = eighth();
        }
        for (int64_t i = 0; i < SAMPLES * 3 * width; i++) {
            x[i] = eighth();
            double difference = (double)x[i] - (double)mean[i % width];
            expected[i % width] += difference;
            expected[width + i % width] += difference * difference;
        }
        k->metric->moments(&spread, SAMPLES, mean, x, sums);
        assert_sums("moments", sums, expected, 2 * width);
    }
}

static void test_moments(void **state)
{
    (void)state;
    each_table(check_moments);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mean),      cmocka_unit_test(test_accuracy), cmocka_unit_test(test_confusion),
        cmocka_unit_test(test_variation), cmocka_unit_test(test_moments),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
