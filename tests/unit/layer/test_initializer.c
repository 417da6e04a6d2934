/*
 * Initialisers: bounds, means and variances of the draws against those of the distributions, orthogonality, and that a value
 * depends on seed, variable and element alone.
 */
#include "support/check.h"

#include "layer/internal.h"

#include <math.h>
#include <stdlib.h>

#define assert_near(found, expected, most) assert_true(fabs((double)(found) - (double)(expected)) <= (most))

enum { ROWS = 150, COLUMNS = 200, COUNT = ROWS * COLUMNS };

static float values[COUNT];

static bw_status initialize(bw_context *ctx, const char *text, int index, uint64_t seed, int64_t rows, int64_t columns)
{
    bwi_variable variable = {.name = "layer/kernel", .trainable = true, .index = index, .data = values};
    variable.shape = (bwi_shape){.ndim = 2, .extent = {rows, columns}};
    variable.count = rows * columns;
    variable.kernels = bwi_kernels_of(ctx);
    snprintf(variable.initializer, sizeof variable.initializer, "%s", text);
    return bwi_initialize(ctx, &variable, seed);
}

typedef struct moments {
    double mean, deviation, low, high, fourth; /* fourth: of the distance from the mean in deviations */
} moments;

static moments measure(void)
{
    moments m = {.low = 1e300, .high = -1e300};
    for (int i = 0; i < COUNT; i++) {
        m.mean += (double)values[i] / COUNT;
        m.low = fmin(m.low, (double)values[i]);
        m.high = fmax(m.high, (double)values[i]);
    }
    double second = 0, fourth = 0;
    for (int i = 0; i < COUNT; i++) {
        double off = (double)values[i] - m.mean;
        second += off * off / COUNT;
        fourth += off * off * off * off / COUNT;
    }
    m.deviation = sqrt(second);
    m.fourth = fourth / (second * second);
    return m;
}

typedef enum curve { UNIFORM, NORMAL, TRUNCATED } curve;

/* Fourth moments: 9/5 of a uniform, 3 of a normal, 2.3655 of one cut off at two deviations. */
static const double fourths[] = {[UNIFORM] = 1.8, [NORMAL] = 3, [TRUNCATED] = 2.3655};

static void check_draws(bw_context *ctx, const char *text, double mean, double deviation, curve kind)
{
    check_ok(ctx, initialize(ctx, text, 3, 11, ROWS, COLUMNS));
    moments m = measure();
    double error = deviation / sqrt(COUNT), limit = kind == UNIFORM ? sqrt(3) * deviation : 2 * deviation / 0.87962566103423978;
    if (!(fabs(m.mean - mean) < 4.5 * error && fabs(m.deviation / deviation - 1) < 0.02 && fabs(m.fourth - fourths[kind]) < 0.15)) {
        fail_msg("%s: expected %g, %g, %g, got %g, %g, %g", text, mean, deviation, fourths[kind], m.mean, m.deviation, m.fourth);
    }
    if (kind != NORMAL) {
        assert_true(m.low >= mean - limit * 1.000001 && m.low < mean - limit * 0.99);
        assert_true(m.high <= mean + limit * 1.000001 && m.high > mean + limit * 0.99);
    } else {
        assert_true(m.high > mean + 3.3 * deviation && m.low < mean - 3.3 * deviation);
    }
}

static void test_distributions(void **state)
{
    (void)state;
    bw_context *ctx = bw_open(NULL);
    double in = ROWS, out = COLUMNS, cut = 0.87962566103423978;
    check_draws(ctx, "glorot_uniform", 0, sqrt(2 / (in + out)), UNIFORM);
    check_draws(ctx, "glorot_normal", 0, sqrt(2 / (in + out)), TRUNCATED);
    check_draws(ctx, "he_uniform", 0, sqrt(2 / in), UNIFORM);
    check_draws(ctx, "he_normal", 0, sqrt(2 / in), TRUNCATED);
    check_draws(ctx, "lecun_uniform", 0, sqrt(1 / in), UNIFORM);
    check_draws(ctx, "lecun_normal", 0, sqrt(1 / in), TRUNCATED);
    check_draws(ctx, "random_uniform", 0, 0.05 / sqrt(3), UNIFORM);
    check_draws(ctx, "uniform(-0.1,0.3)", 0.1, 0.2 / sqrt(3), UNIFORM);
    check_draws(ctx, "random_normal", 0, 0.05, NORMAL);
    check_draws(ctx, "normal(mean=0.1,stddev=0.2)", 0.1, 0.2, NORMAL);
    check_draws(ctx, "truncated_normal", 0, 0.05 * cut, TRUNCATED);
    check_draws(ctx, "truncated_normal(1,0.2)", 1, 0.2 * cut, TRUNCATED);
    check_draws(ctx, "variance_scaling", 0, sqrt(1 / in), TRUNCATED);
    check_draws(ctx, "variance_scaling(scale=3,mode=fan_out,distribution=untruncated_normal)", 0, sqrt(3 / out), NORMAL);
    check_draws(ctx, "variance_scaling(2,fan_avg,uniform)", 0, sqrt(4 / (in + out)), UNIFORM);
    check_draws(ctx, "variance_scaling(2,fan_in,normal)", 0, sqrt(2 / in), TRUNCATED);
    bw_close(ctx);
}

/* Neighbours, and elements a row apart, are not correlated. */
static void test_independence(void **state)
{
    (void)state;
    static const char *const texts[] = {"glorot_uniform", "random_normal", "truncated_normal"};
    static const int distances[] = {1, 2, 3, 4, COLUMNS};
    bw_context *ctx = bw_open(NULL);
    for (size_t t = 0; t < BWI_COUNT(texts); t++) {
        check_ok(ctx, initialize(ctx, texts[t], 0, 5, ROWS, COLUMNS));
        moments m = measure();
        for (size_t k = 0; k < BWI_COUNT(distances); k++) {
            double sum = 0;
            for (int i = 0; i + distances[k] < COUNT; i++) {
                sum += (double)values[i] * (double)values[i + distances[k]];
            }
            assert_true(fabs(sum / (m.deviation * m.deviation)) < 4.5 * sqrt(COUNT));
        }
    }
    bw_close(ctx);
}

static void test_keys(void **state)
{
    (void)state;
    static const char *const texts[] = {"he_uniform", "he_normal", "random_normal(stddev=1)", "orthogonal"};
    bw_context *ctx = bw_open(NULL);
    static float first[COUNT], other[COUNT];
    for (size_t t = 0; t < BWI_COUNT(texts); t++) {
        check_ok(ctx, initialize(ctx, texts[t], 2, 9, 20, 30));
        memcpy(first, values, sizeof first);
        check_ok(ctx, initialize(ctx, texts[t], 2, 9, 20, 30));
        assert_memory_equal(first, values, 600 * sizeof(float));
        check_ok(ctx, initialize(ctx, texts[t], 3, 9, 20, 30));
        assert_memory_not_equal(first, values, 600 * sizeof(float));
        check_ok(ctx, initialize(ctx, texts[t], 2, 10, 20, 30));
        assert_memory_not_equal(first, values, 600 * sizeof(float));
    }
    /* A larger variable of the same fans begins alike; a seed of its own takes the model's place. */
    check_ok(ctx, initialize(ctx, "random_normal", 2, 9, 4, 5));
    memcpy(first, values, sizeof first);
    check_ok(ctx, initialize(ctx, "random_normal", 2, 9, 8, 5));
    assert_memory_equal(first, values, 20 * sizeof(float));
    check_ok(ctx, initialize(ctx, "random_normal(seed=4)", 2, 9, 8, 5));
    memcpy(other, values, sizeof other);
    assert_memory_not_equal(first, other, 20 * sizeof(float));
    check_ok(ctx, initialize(ctx, "random_normal", 2, 4, 8, 5));
    assert_memory_equal(other, values, 40 * sizeof(float));
    bw_close(ctx);
}

static void test_constants(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        float value;
    } constants[] = {{"zeros", 0}, {"zero", 0}, {"ones", 1}, {"one", 1}, {"constant", 0}, {"constant(-2.5)", -2.5F}};
    bw_context *ctx = bw_open(NULL);
    for (size_t t = 0; t < BWI_COUNT(constants); t++) {
        values[0] = 7;
        check_ok(ctx, initialize(ctx, constants[t].text, 0, 0, 3, 5));
        for (int i = 0; i < 15; i++) {
            assert_true(values[i] == constants[t].value);
        }
    }
    for (int tall = 0; tall < 2; tall++) {
        int rows = tall ? 5 : 3, columns = 8 - rows;
        check_ok(ctx, initialize(ctx, "identity(0.5)", 0, 0, rows, columns));
        for (int i = 0; i < 15; i++) {
            assert_true(values[i] == (i / columns == i % columns ? 0.5F : 0));
        }
    }
    bw_close(ctx);
}

/* The shorter side's vectors are orthonormal, times the gain. */
static void check_orthogonal(bw_context *ctx, int rows, int columns)
{
    check_ok(ctx, initialize(ctx, "orthogonal(gain=3)", 1, 2, rows, columns));
    int vectors = rows < columns ? rows : columns, length = rows < columns ? columns : rows;
    for (int a = 0; a < vectors; a++) {
        for (int b = 0; b <= a; b++) {
            double sum = 0;
            for (int i = 0; i < length; i++) {
                int x = rows < columns ? a * columns + i : i * columns + a, y = rows < columns ? b * columns + i : i * columns + b;
                sum += (double)values[x] * (double)values[y];
            }
            assert_near(sum, a == b ? 9 : 0, 2e-6);
        }
    }
}

static void test_orthogonal(void **state)
{
    (void)state;
    bw_context *ctx = bw_open(NULL);
    check_orthogonal(ctx, 150, 40);
    check_orthogonal(ctx, 40, 150);
    check_orthogonal(ctx, 64, 64);
    check_orthogonal(ctx, 1, 5);
    /* Uniform among orthogonal matrices: a 1 by 1 matrix is as often -1 as 1. */
    int positive = 0;
    for (uint64_t seed = 0; seed < 400; seed++) {
        check_ok(ctx, initialize(ctx, "orthogonal", 0, seed, 1, 1));
        assert_near(fabs((double)values[0]), 1, 1e-6);
        positive += values[0] > 0;
    }
    assert_true(positive > 150 && positive < 250);
    bw_close(ctx);
}

/* Fans of a kernel with a receptive field, when the layer gives none: (3, 3, 8, 20). */
static void test_fans(void **state)
{
    (void)state;
    bw_context *ctx = bw_open(NULL);
    bwi_variable variable = {.name = "conv/kernel", .data = values, .count = 3 * 3 * 8 * 20, .kernels = bwi_kernels_of(ctx)};
    variable.shape = (bwi_shape){.ndim = 4, .extent = {3, 3, 8, 20}};
    for (int given = 0; given < 2; given++) {
        variable.fan_in = given ? 1000 : 0;
        variable.fan_out = given ? 500 : 0;
        snprintf(variable.initializer, sizeof variable.initializer, "%s", "variance_scaling(1,fan_in,uniform)");
        check_ok(ctx, bwi_initialize(ctx, &variable, 1));
        double largest = 0, limit = sqrt(3.0 / (given ? 1000 : 72));
        for (int i = 0; i < variable.count; i++) {
            largest = fmax(largest, fabs((double)values[i]));
        }
        assert_true(largest <= limit && largest > 0.99 * limit);
    }
    bw_close(ctx);
}

static void test_refused(void **state)
{
    (void)state;
    static const char *const refused[][2] = {
        {"he", "layer/kernel: there is no initializer 'he'|zeros, ones, constant"},
        {"random_normal(sd=1)", "layer/kernel: initializer|there is no argument 'sd'"},
        {"random_normal(stddev=-1)", "stddev"},
        {"random_uniform(1,0)", "layer/kernel: random_uniform: minval is 1, above maxval, 0"},
        {"variance_scaling(0)", "scale"},
        {"variance_scaling(mode=fan)", "mode: expected one of: fan_in fan_out fan_avg"},
        {"ones(2)", "too many arguments"},
        {"zeros ones", "expected one name"},
    };
    bw_context *ctx = bw_open(NULL);
    for (size_t i = 0; i < BWI_COUNT(refused); i++) {
        check_fails(ctx, initialize(ctx, refused[i][0], 0, 0, 2, 3), BW_INVALID_ARGUMENT, refused[i][1]);
    }
    bwi_variable bias = {.name = "layer/bias", .data = values, .count = 6, .shape = {.ndim = 1, .extent = {6}}};
    bias.kernels = bwi_kernels_of(ctx);
    snprintf(bias.initializer, sizeof bias.initializer, "orthogonal");
    check_fails(ctx, bwi_initialize(ctx, &bias, 0), BW_INVALID_ARGUMENT, "layer/bias: orthogonal|at least two axes|(6,)");
    snprintf(bias.initializer, sizeof bias.initializer, "identity");
    check_fails(ctx, bwi_initialize(ctx, &bias, 0), BW_INVALID_ARGUMENT, "layer/bias: identity: expected a matrix|(6,)");
    assert_int_equal(bwi_allocated_bytes(ctx), 0);
    bw_close(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_distributions), cmocka_unit_test(test_independence), cmocka_unit_test(test_keys),
        cmocka_unit_test(test_constants),     cmocka_unit_test(test_orthogonal),   cmocka_unit_test(test_fans),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
