/*
 * elementwise: each kernel against its formula in double, for odd sizes, in place and not, with ties, zeros and NaN where the
 * formula decides them.
 */
#include "support/spreads.h"

#define TOLERANCE 4e-6

static const int64_t counts[] = {1, 3, 7, 16, 33, 257, 1001};

/* ---- Functions of one ---- */

static double unary_value(bwi_unary_kind kind, double x, double a, double b)
{
    switch (kind) {
    case BWI_ABS:
        return fabs(x);
    case BWI_SQUARE:
        return x * x;
    case BWI_SQRT:
        return sqrt(x);
    case BWI_LOG:
        return log(x);
    case BWI_POW:
        return pow(x, a);
    case BWI_THRESHOLD:
        return x > a ? x : b;
    default:
        return fmin(fmax(x, a), b);
    }
}

/* Unlike the value it is not smooth: a difference quotient would be wrong at the corners. */
static double unary_slope(bwi_unary_kind kind, double x, double a, double b)
{
    switch (kind) {
    case BWI_ABS:
        return x > 0 ? 1 : x < 0 ? -1 : 0;
    case BWI_SQUARE:
        return 2 * x;
    case BWI_SQRT:
        return 0.5 / sqrt(x);
    case BWI_LOG:
        return 1 / x;
    case BWI_POW:
        return a * pow(x, a - 1);
    case BWI_THRESHOLD:
        return x > a ? 1 : 0;
    default:
        return x >= a && x <= b ? 1 : 0;
    }
}

static void check_unary_kind(const bwi_kernels *k, bwi_unary_kind kind, int64_t count, float a, float b)
{
    float *x = input_floats(count), *dy = input_floats(count), *y = output_floats(count), *dx = output_floats(count);
    float *value = input_floats(count), *slope = input_floats(count);
    for (int64_t i = 0; i < count; i++) {
        x[i] = kind == BWI_SQRT || kind == BWI_LOG || kind == BWI_POW ? x[i] + 1.25f : i % 5 == 0 ? 0 : x[i];
        value[i] = (float)unary_value(kind, (double)x[i], (double)a, (double)b);
        slope[i] = (float)((double)dy[i] * unary_slope(kind, (double)x[i], (double)a, (double)b));
    }
    k->elementwise->unary(kind, a, b, count, x, y);
    k->elementwise->unary_backward(kind, a, b, count, x, dy, dx);
    assert_close("values", y, value, count, TOLERANCE);
    assert_close("slopes", dx, slope, count, TOLERANCE);

    k->elementwise->unary_backward(kind, a, b, count, x, dy, dy);
    k->elementwise->unary(kind, a, b, count, x, x);
    assert_memory_equal(x, y, (size_t)count * sizeof *x);
    assert_memory_equal(dy, dx, (size_t)count * sizeof *x);
    output_floats_free(y, count);
    output_floats_free(dx, count);
    free(x);
    free(dy);
    free(value);
    free(slope);
}

static void check_unary(const bwi_kernels *k)
{
    for (size_t i = 0; i < BWI_COUNT(counts); i++) {
        for (int kind = 0; kind < BWI_UNARIES; kind++) {
            check_unary_kind(k, (bwi_unary_kind)kind, counts[i], kind == BWI_CLIP ? -0.25f : -1.5f, 0.5f);
        }
        check_unary_kind(k, BWI_POW, counts[i], 0, 0);
        check_unary_kind(k, BWI_CLIP, counts[i], 0, 0.5f); /* a fifth of the values lies at a bound */
    }
    float nan = NAN, y;
    k->elementwise->unary(BWI_CLIP, 0, 1, 1, &nan, &y);
    assert_true(isnan(y));
}

static void test_unary(void **state)
{
    (void)state;
    each_table(check_unary);
}

/* ---- Functions of two ---- */

static double binary_value(bwi_binary_kind kind, double x, double z)
{
    return kind == BWI_MULTIPLY ? x * z : kind == BWI_DIVIDE ? x / z : kind == BWI_MAXIMUM ? fmax(x, z) : fmin(x, z);
}

static void binary_slopes(bwi_binary_kind kind, double x, double z, double *by_x, double *by_z)
{
    if (kind == BWI_MULTIPLY) {
        *by_x = z;
        *by_z = x;
    } else if (kind == BWI_DIVIDE) {
        *by_x = 1 / z;
        *by_z = -x / (z * z);
    } else {
        double winner = binary_value(kind, x, z);
        *by_x = x == z ? 0.5 : x == winner ? 1 : 0;
        *by_z = 1 - *by_x;
    }
}

static void check_binary_kind(const bwi_kernels *k, bwi_binary_kind kind, int64_t count)
{
    float *x = input_floats(count), *z = input_floats(count), *dy = input_floats(count), *value = input_floats(count);
    float *expected_x = input_floats(count), *expected_z = input_floats(count);
    float *y = output_floats(count), *dx = output_floats(count), *dz = output_floats(count);
    for (int64_t i = 0; i < count; i++) {
        double by_x, by_z;
        z[i] = i % 3 == 0 ? 1.5f : z[i] + 1.5f;
        x[i] = i % 6 == 0 ? 1.5f : x[i] + 1.5f;
        binary_slopes(kind, (double)x[i], (double)z[i], &by_x, &by_z);
        value[i] = (float)binary_value(kind, (double)x[i], (double)z[i]);
        expected_x[i] = (float)((double)dy[i] * by_x);
        expected_z[i] = (float)((double)dy[i] * by_z);
    }
    size_t bytes = (size_t)count * sizeof *x;
    k->elementwise->binary(kind, count, x, z, y);
    assert_close("values", y, value, count, TOLERANCE);
    k->elementwise->binary_backward(kind, count, x, z, dy, dx, dz);
    assert_close("differences of x", dx, expected_x, count, TOLERANCE);
    assert_close("differences of z", dz, expected_z, count, TOLERANCE);

    /* One at a time, and in place. */
    k->elementwise->binary_backward(kind, count, x, z, dy, NULL, expected_z);
    assert_memory_equal(expected_z, dz, bytes);
    k->elementwise->binary_backward(kind, count, x, z, dy, expected_x, NULL);
    assert_memory_equal(expected_x, dx, bytes);
    k->elementwise->binary_backward(kind, count, x, z, dy, dy, expected_z);
    assert_memory_equal(dy, dx, bytes);
    assert_memory_equal(expected_z, dz, bytes);
    memcpy(value, z, bytes);
    k->elementwise->binary(kind, count, x, value, value);
    assert_memory_equal(value, y, bytes);
    k->elementwise->binary(kind, count, x, z, x);
    assert_memory_equal(x, y, bytes);

    float *outputs[] = {y, dx, dz}, *inputs[] = {x, z, dy, value, expected_x, expected_z};
    for (size_t i = 0; i < BWI_COUNT(outputs); i++) {
        output_floats_free(outputs[i], count);
    }
    for (size_t i = 0; i < BWI_COUNT(inputs); i++) {
        free(inputs[i]);
    }
}

static void check_binary(const bwi_kernels *k)
{
    for (size_t i = 0; i < BWI_COUNT(counts); i++) {
        for (int kind = 0; kind < BWI_BINARIES; kind++) {
            check_binary_kind(k, (bwi_binary_kind)kind, counts[i]);
        }
    }
    float nan = NAN, one = 1, y;
    k->elementwise->binary(BWI_MAXIMUM, 1, &nan, &one, &y);
    assert_true(isnan(y));
    k->elementwise->binary(BWI_MINIMUM, 1, &nan, &one, &y);
    assert_true(isnan(y));
}

static void test_binary(void **state)
{
    (void)state;
    each_table(check_binary);
}

/* ---- Sums ---- */

static void check_scale(const bwi_kernels *k)
{
    for (size_t j = 0; j < BWI_COUNT(counts); j++) {
        int64_t count = counts[j];
        float *x = input_floats(count), *expected = input_floats(count), *y = output_floats(count);
        for (int64_t i = 0; i < count; i++) {
            expected[i] = (float)((double)x[i] * -1.5 + 0.25);
        }
        k->elementwise->scale(count, -1.5f, 0.25f, x, y);
        assert_close("scale", y, expected, count, TOLERANCE);
        k->elementwise->scale(count, -1.5f, 0.25f, x, x);
        assert_memory_equal(x, y, (size_t)count * sizeof *x);
        output_floats_free(y, count);
        free(x);
        free(expected);
    }
    float zero = 0, y;
    k->elementwise->scale(1, -2, -0.0f, &zero, &y);
    assert_true(signbit(y) && y == 0);
}

static void test_scale(void **state)
{
    (void)state;
    each_table(check_scale);
}

enum { MOST_ADDED = 5 };

static void check_sum_of(const bwi_kernels *k, int64_t count, int inputs, float sign, float scale)
{
    void *x[MOST_ADDED];
    float *expected = input_floats(count), *y = output_floats(count);
    for (int j = 0; j < inputs; j++) {
        x[j] = j == 3 ? x[1] : input_floats(count); /* one of them twice */
    }
    for (int64_t i = 0; i < count; i++) {
        double sum = (double)((float *)x[0])[i];
        for (int j = 1; j < inputs; j++) {
            sum += (double)sign * (double)((float *)x[j])[i];
        }
        expected[i] = (float)(sum * (double)scale);
    }
    k->elementwise->sum(count, inputs, x, sign, scale, y);
    assert_close("sum", y, expected, count, TOLERANCE);
    float *over = x[inputs > 1 ? 1 : 0];
    k->elementwise->sum(count, inputs, x, sign, scale, over);
    assert_memory_equal(over, y, (size_t)count * sizeof *y);
    output_floats_free(y, count);
    free(expected);
    for (int j = 0; j < inputs; j++) {
        if (j != 3) {
            free(x[j]);
        }
    }
}

static void check_sum(const bwi_kernels *k)
{
    for (size_t i = 0; i < BWI_COUNT(counts); i++) {
        for (int inputs = 1; inputs <= MOST_ADDED; inputs++) {
            check_sum_of(k, counts[i], inputs, 1, 1);
            check_sum_of(k, counts[i], inputs, -1, 1.0f / 3);
        }
    }
}

static void test_sum(void **state)
{
    (void)state;
    each_table(check_sum);
}

/* ---- Smaller arrays, spread ---- */

enum { SAMPLES = 3 };

static void check_deviations(const bwi_kernels *k)
{
    float variance[] = {4, 0.25f, 0, 1e-20f, 9}, factor[5], inverse[5];
    float expected[] = {0.5f, 2, 1e7f, 1e7f, 1.0f / 3};
    k->elementwise->deviation_factors(5, false, variance, factor);
    k->elementwise->deviation_factors(5, true, variance, inverse);
    for (int i = 0; i < 5; i++) {
        assert_true(fabs((double)factor[i] / (double)expected[i] - 1) < 1e-6);
        assert_true(fabs((double)inverse[i] * (double)expected[i] - 1) < 1e-6);
    }
}

static void check_normalize_over(const bwi_kernels *k, const shapes *s, bool invert)
{
    bwi_spread spread = bwi_spread_over(&s->large, &s->small);
    int64_t each = bwi_shape_count(&s->large), count = SAMPLES * each, small = bwi_shape_count(&s->small);
    float *mean = input_floats(small), *factor = input_floats(small), *x = input_floats(count), *dy = input_floats(count);
    float *value = input_floats(count), *difference = input_floats(count), *y = output_floats(count), *dx = output_floats(count);
    for (int64_t i = 0; i < count; i++) {
        double m = (double)mean[small_at(s, i % each)], f = (double)factor[small_at(s, i % each)];
        value[i] = (float)(invert ? (double)x[i] * f + m : ((double)x[i] - m) * f);
        difference[i] = (float)((double)dy[i] * f);
    }
    k->elementwise->normalize(&spread, SAMPLES, invert, mean, factor, x, y);
    k->elementwise->normalize_backward(&spread, SAMPLES, factor, dy, dx);
    assert_close("values", y, value, count, TOLERANCE);
    assert_close("differences", dx, difference, count, TOLERANCE);
    k->elementwise->normalize(&spread, SAMPLES, invert, mean, factor, x, x);
    k->elementwise->normalize_backward(&spread, SAMPLES, factor, dy, dy);
    assert_memory_equal(x, y, (size_t)count * sizeof *x);
    assert_memory_equal(dy, dx, (size_t)count * sizeof *x);
    output_floats_free(y, count);
    output_floats_free(dx, count);
    float *inputs[] = {mean, factor, x, dy, value, difference};
    for (size_t i = 0; i < BWI_COUNT(inputs); i++) {
        free(inputs[i]);
    }
}

static void check_normalize(const bwi_kernels *k)
{
    check_deviations(k);
    for (size_t i = 0; i < BWI_COUNT(spreads); i++) {
        check_normalize_over(k, &spreads[i], false);
        check_normalize_over(k, &spreads[i], true);
    }
}

static void test_normalize(void **state)
{
    (void)state;
    each_table(check_normalize);
}

static void check_prelu_over(const bwi_kernels *k, const shapes *s)
{
    bwi_spread spread = bwi_spread_over(&s->large, &s->small);
    int64_t each = bwi_shape_count(&s->large), count = SAMPLES * each, small = bwi_shape_count(&s->small);
    float *alpha = input_floats(small), *x = input_floats(count), *dy = input_floats(count), *value = input_floats(count);
    float *difference = input_floats(count), *y = output_floats(count), *dx = output_floats(count);
    double *sums = output_bytes((size_t)small * sizeof *sums), *expected = calloc((size_t)small, sizeof *expected);
    for (int64_t i = 0; i < count; i++) {
        int64_t at = small_at(s, i % each);
        x[i] = i % 7 == 3 ? 0 : x[i];
        value[i] = x[i] > 0 ? x[i] : alpha[at] * x[i];
        difference[i] = x[i] == 0 ? 0 : x[i] > 0 ? dy[i] : alpha[at] * dy[i];
        expected[at] += x[i] < 0 ? (double)x[i] * (double)dy[i] : 0;
    }
    k->elementwise->prelu(&spread, SAMPLES, alpha, x, y);
    k->elementwise->prelu_backward(&spread, SAMPLES, alpha, x, dy, dx);
    k->elementwise->prelu_sums(&spread, SAMPLES, x, dy, sums);
    assert_close("values", y, value, count, 0);
    assert_close("differences", dx, difference, count, 0);
    for (int64_t i = 0; i < small; i++) {
        assert_true(fabs(sums[i] - expected[i]) < 1e-4);
    }
    k->elementwise->prelu_backward(&spread, SAMPLES, alpha, x, dy, dy);
    k->elementwise->prelu(&spread, SAMPLES, alpha, x, x);
    assert_memory_equal(x, y, (size_t)count * sizeof *x);
    assert_memory_equal(dy, dx, (size_t)count * sizeof *x);
    output_floats_free(y, count);
    output_floats_free(dx, count);
    output_free(sums, (size_t)small * sizeof *sums);
    free(expected);
    float *inputs[] = {alpha, x, dy, value, difference};
    for (size_t i = 0; i < BWI_COUNT(inputs); i++) {
        free(inputs[i]);
    }
}

static void check_prelu(const bwi_kernels *k)
{
    for (size_t i = 0; i < BWI_COUNT(spreads); i++) {
        check_prelu_over(k, &spreads[i]);
    }
}

static void test_prelu(void **state)
{
    (void)state;
    each_table(check_prelu);
}

/* ---- Noise ---- */

static void check_gaussian(const bwi_kernels *k)
{
    for (size_t j = 0; j < BWI_COUNT(counts); j++) {
        int64_t count = counts[j];
        float *x = input_floats(count), *y = output_floats(count);
        k->elementwise->gaussian(count, 5, 77, 1000, 0.5f, x, y);
        for (int64_t i = 0; i < count; i++) {
            bwi_random r = bwi_random_at(5, 77, 1000 + (uint64_t)i / 4);
            float pair[2];
            bwi_random_normal(r.word[i % 4 / 2 * 2], r.word[i % 4 / 2 * 2 + 1], &pair[0], &pair[1]);
            assert_true(y[i] == x[i] + 0.5f * pair[i % 2]);
        }
        k->elementwise->gaussian(count, 5, 77, 1000, 0.5f, x, x);
        assert_memory_equal(x, y, (size_t)count * sizeof *x);
        output_floats_free(y, count);
        free(x);
    }
}

static void test_gaussian(void **state)
{
    (void)state;
    each_table(check_gaussian);
}

/* ---- Masks and weights ---- */

enum { POSITIONS = 5, CHANNELS = 19, CELLS = SAMPLES * POSITIONS };

/* The last sample has no position that counts. */
static void make_mask(float *mask)
{
    for (int i = 0; i < CELLS; i++) {
        mask[i] = i < CELLS - POSITIONS && random_below(2) ? 1 : 0;
    }
}

static void check_masks(const bwi_kernels *k)
{
    float a[CELLS], b[CELLS], any[CELLS], weighted[CELLS], *weight = input_floats(CELLS);
    make_mask(a);
    make_mask(b);
    k->elementwise->mask_any(CELLS, 2, (void *[]){a, b}, any);
    const float rows[] = {2, 2, 2, 3, 1, 2, NAN, 2};
    float made[4];
    k->elementwise->mask_values(4, 2, 2, rows, made);
    for (int i = 0; i < 4; i++) {
        assert_true(made[i] > 0 ? i > 0 : i == 0);
    }
    for (int i = 0; i < CELLS; i++) {
        assert_true(any[i] == (a[i] == 1 || b[i] == 1 ? 1 : 0));
    }
    k->elementwise->mask_weights(SAMPLES, POSITIONS, 0, a, NULL, weighted);
    for (int i = 0; i < CELLS; i++) {
        assert_true(weighted[i] == a[i]);
    }
    k->elementwise->mask_weights(SAMPLES, POSITIONS, 1, a, weight, weighted);
    for (int i = 0; i < CELLS; i++) {
        assert_true(weighted[i] == a[i] * weight[i / POSITIONS]);
    }
    k->elementwise->mask_weights(SAMPLES, POSITIONS, POSITIONS, a, weight, weighted);
    for (int i = 0; i < CELLS; i++) {
        assert_true(weighted[i] == a[i] * weight[i]);
    }
    free(weight);
}

static void check_masked_average(const bwi_kernels *k)
{
    float mask[CELLS], *x = input_floats(CELLS * CHANNELS), *dy = input_floats(SAMPLES * CHANNELS);
    float *y = output_floats(SAMPLES * CHANNELS), *dx = output_floats(CELLS * CHANNELS);
    make_mask(mask);
    k->elementwise->masked_average(SAMPLES, POSITIONS, CHANNELS, x, mask, y);
    k->elementwise->masked_average_backward(SAMPLES, POSITIONS, CHANNELS, mask, dy, dx);
    for (int s = 0; s < SAMPLES; s++) {
        for (int c = 0; c < CHANNELS; c++) {
            double sum = 0, count = 0, difference = (double)dy[s * CHANNELS + c];
            for (int t = 0; t < POSITIONS; t++) {
                double m = (double)mask[s * POSITIONS + t];
                sum += m * (double)x[(s * POSITIONS + t) * CHANNELS + c];
                count += m;
            }
            assert_true(fabs((double)y[s * CHANNELS + c] - (count > 0 ? sum / count : 0)) < TOLERANCE);
            for (int t = 0; t < POSITIONS; t++) {
                double expected = mask[s * POSITIONS + t] > 0 ? difference / count : 0;
                assert_true(fabs((double)dx[(s * POSITIONS + t) * CHANNELS + c] - expected) < TOLERANCE);
            }
        }
    }
    output_floats_free(y, SAMPLES * CHANNELS);
    output_floats_free(dx, CELLS * CHANNELS);
    free(x);
    free(dy);
}

static void test_masks(void **state)
{
    (void)state;
    each_table(check_masks);
    each_table(check_masked_average);
}

static const float by_class[] = {2, 3, 5};

static float weight_of(int64_t class)
{
    return class >= 0 && class < 3 ? by_class[class] : 1;
}

/* Labels, one number, and a row of numbers; with one weight for a sample, one for each row, and none. */
static void check_class_weight(const bwi_kernels *k)
{
    static const int32_t labels[] = {0, 2, 3, -1, 1, 2};
    static const float numbers[] = {0.2f, 1.9f, 3, -1, 1.4f, NAN};
    static const int64_t rounded[] = {0, 2, 3, -1, 1, -1};
    static const float rows[6][4] = {{1, 0, 0, 0}, {0, 0, 1, 0}, {0, 0, 0, 1}, {0, 1, 1, 0}, {0, 0, 2, 1}, {1, 1, 1, 1}};
    static const int64_t largest[] = {0, 2, 3, 1, 2, 0};
    static const float weight[] = {1, 10, 100, 1000, 10000, 100000};
    bwi_class_weighting c = {.samples = 2, .each = 3, .rows = 3, .width = 1, .weights = 0, .classes = 3, .by_class = by_class};
    float y[6];
    k->elementwise->class_weight(&c, NULL, labels, NULL, y);
    for (int i = 0; i < 6; i++) {
        assert_true(y[i] == weight_of(labels[i]));
    }
    c.weights = 1;
    k->elementwise->class_weight(&c, numbers, NULL, weight, y);
    for (int i = 0; i < 6; i++) {
        assert_true(y[i] == weight[i / 3] * weight_of(rounded[i]));
    }
    c.weights = 3;
    c.width = 4;
    k->elementwise->class_weight(&c, rows[0], NULL, weight, y);
    for (int i = 0; i < 6; i++) {
        assert_true(y[i] == weight[i] * weight_of(largest[i]));
    }
    c.width = c.rows = 1; /* a label for all three results of a sample */
    k->elementwise->class_weight(&c, NULL, labels, weight, y);
    for (int i = 0; i < 6; i++) {
        assert_true(y[i] == weight[i] * weight_of(labels[i / 3]));
    }
    c.classes = 0;
    k->elementwise->class_weight(&c, NULL, labels, weight, y);
    assert_memory_equal(y, weight, sizeof y);
}

static void test_class_weight(void **state)
{
    (void)state;
    each_table(check_class_weight);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_unary),    cmocka_unit_test(test_binary),    cmocka_unit_test(test_scale),
        cmocka_unit_test(test_sum),      cmocka_unit_test(test_normalize), cmocka_unit_test(test_prelu),
        cmocka_unit_test(test_gaussian), cmocka_unit_test(test_masks),     cmocka_unit_test(test_class_weight),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
