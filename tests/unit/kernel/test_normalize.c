/*
 * Kernels per channel and the reordering of images, of every table against the reference, for all blocks; what batch normalisation
 * makes of its sums (the family normalize), against the formulas.
 */
#include "support/kernel_check.h"

static const int64_t channels[] = {1, 2, 3, 4, 5, 8, 9, 15, 16, 17, 20, 31, 32, 33, 48};
static const int64_t sides[] = {1, 2, 5, 9};
static const int64_t blocks[] = {0, 1, 4, 8, 16}; /* 0: channels-last */

static void each_image(const bwi_kernels *k, void (*check)(const bwi_kernels *k, const bwi_image *i))
{
    for (size_t c = 0; c < BWI_COUNT(channels); c++) {
        for (size_t s = 0; s < BWI_COUNT(sides); s++) {
            for (size_t b = 0; b < BWI_COUNT(blocks); b++) {
                bwi_image i = {.n = 1 + random_below(4),
                               .h = sides[s],
                               .w = sides[s] + random_below(3),
                               .c = channels[c],
                               .block = blocks[b] ? blocks[b] : channels[c]};
                check(k, &i);
            }
        }
    }
    bwi_image rows = {.n = 300, .h = 1, .w = 1, .c = 37, .block = 37}, large = {.n = 2, .h = 30, .w = 31, .c = 16, .block = 16};
    check(k, &rows);
    check(k, &large);
}

static void assert_doubles_close(const double *found, const double *expected, int64_t count, double tolerance)
{
    for (int64_t i = 0; i < count; i++) {
        if (!(fabs(found[i] - expected[i]) <= tolerance)) {
            fail_msg("sum %lld of %lld: expected %.17g, found %.17g", (long long)i, (long long)count, expected[i], found[i]);
        }
    }
}

static void check_sums_of(const bwi_kernels *k, const bwi_image *i)
{
    float *x = random_image(i, false), *dy = random_image(i, false), *mean = input_floats(i->c), *inverse = input_floats(i->c);
    double *found = output_bytes((size_t)(2 * i->c) * sizeof(double)), expected[2 * 64];
    double tolerance = 2e-7 * (double)(8 + i->n * i->h * i->w) / 4;
    for (int64_t c = 0; c < 2 * i->c; c++) {
        found[c] = expected[c] = (double)random_float();
    }
    k->channel_sums(i, x, found);
    bwi_kernels_reference.channel_sums(i, x, expected);
    assert_doubles_close(found, expected, 2 * i->c, tolerance);
    k->channel_backward_sums(i, x, dy, mean, inverse, found);
    bwi_kernels_reference.channel_backward_sums(i, x, dy, mean, inverse, expected);
    assert_doubles_close(found, expected, 2 * i->c, 4 * tolerance);
    output_free(found, (size_t)(2 * i->c) * sizeof(double));
    free(x);
    free(dy);
    free(mean);
    free(inverse);
}

static void check_sums(const bwi_kernels *k)
{
    each_image(k, check_sums_of);
}

static void test_sums(void **state)
{
    (void)state;
    each_table(check_sums);
}

static void check_affine_of(const bwi_kernels *k, const bwi_image *i)
{
    int64_t count = bwi_image_floats(i);
    float *x = random_image(i, false), *dy = random_image(i, false);
    float *a = input_floats(i->c), *b = input_floats(i->c), *d = input_floats(i->c);
    float *found = output_floats(count), *expected = output_floats(count);
    k->channel_affine(i, x, d, a, b, found);
    bwi_kernels_reference.channel_affine(i, x, d, a, b, expected);
    assert_close("affine", found, expected, count, 4e-7);
    k->channel_backward(i, x, dy, b, a, b, d, found);
    bwi_kernels_reference.channel_backward(i, x, dy, b, a, b, d, expected);
    assert_close("backward", found, expected, count, 6e-7);
    k->channel_backward(i, x, dy, b, a, b, d, dy);
    assert_memory_equal(dy, found, (size_t)count * sizeof *dy);
    bwi_kernels_reference.channel_affine(i, x, d, a, b, expected);
    k->channel_affine(i, x, d, a, b, x);
    assert_close("affine in place", x, expected, count, 4e-7);
    output_floats_free(found, count);
    output_floats_free(expected, count);
    free(x);
    free(dy);
    free(a);
    free(b);
    free(d);
}

static void check_affine(const bwi_kernels *k)
{
    each_image(k, check_affine_of);
}

static void test_affine(void **state)
{
    (void)state;
    each_table(check_affine);
}

static void check_reorder_of(const bwi_kernels *k, const bwi_image *i)
{
    float *x = random_image(i, false);
    for (size_t b = 0; b < BWI_COUNT(blocks); b++) {
        bwi_image to = *i;
        to.block = blocks[b] ? blocks[b] : i->c;
        int64_t count = bwi_image_floats(&to);
        float *found = output_floats(count), *expected = output_floats(count), *back = output_floats(bwi_image_floats(i));
        k->reorder(i, x, to.block, found);
        bwi_kernels_reference.reorder(i, x, to.block, expected);
        assert_memory_equal(found, expected, (size_t)count * sizeof *found);
        k->reorder(&to, found, i->block, back);
        assert_memory_equal(back, x, (size_t)bwi_image_floats(i) * sizeof *back);
        output_floats_free(found, count);
        output_floats_free(expected, count);
        output_floats_free(back, bwi_image_floats(i));
    }
    free(x);
}

static void check_reorder(const bwi_kernels *k)
{
    each_image(k, check_reorder_of);
}

static void test_reorder(void **state)
{
    (void)state;
    each_table(check_reorder);
}

/* Two pixels of three channels, channels-last, into blocks of 2. */
static void check_by_hand(const bwi_kernels *k)
{
    bwi_image last = {.n = 1, .h = 1, .w = 2, .c = 3, .block = 3};
    const float x[] = {1, 2, 3, 4, 5, 6}, mean[] = {1, 0, 3}, scale[] = {1, 10, 100}, shift[] = {0, 1, 0};
    float y[8], z[6];
    double sums[6] = {0};
    k->reorder(&last, x, 2, y);
    assert_close("reorder", y, (const float[]){1, 2, 4, 5, 3, 0, 6, 0}, 8, 0);
    k->channel_affine(&last, x, mean, scale, shift, z);
    assert_close("affine", z, (const float[]){0, 21, 0, 3, 51, 300}, 6, 0);
    k->channel_sums(&last, x, sums);
    assert_doubles_close(sums, (const double[]){5, 7, 9, 17, 29, 45}, 6, 0);
}

static void test_by_hand(void **state)
{
    (void)state;
    each_table(check_by_hand);
    check_by_hand(&bwi_kernels_reference);
}

static void check_statistics(const bwi_kernels *k)
{
    for (size_t s = 0; s < BWI_COUNT(channels); s++) {
        int64_t c = channels[s];
        double sums[2 * 64];
        float *gamma = input_floats(c), *beta = input_floats(c), *mean = output_floats(c), *inverse = output_floats(c);
        float *scale = output_floats(c), *shift = output_floats(c), *a = output_floats(c), *b = output_floats(c);
        float *d = output_floats(c);
        for (int64_t i = 0; i < c; i++) {
            sums[i] = 10 * (double)random_float();
            sums[c + i] = sums[i] * sums[i] / 10 + 10 * fabs((double)random_float());
        }
        k->normalize->moments(c, 10, sums, mean, inverse); /* the variance, in the inverse's place */
        for (int64_t i = 0; i < c; i++) {
            assert_true(mean[i] == (float)(sums[i] / 10));
            assert_true(fabs((double)inverse[i] - (sums[c + i] / 10 - sums[i] * sums[i] / 100)) < 1e-6);
        }
        float *variance = output_copy(inverse, c);
        k->normalize->affine(c, 0.125f, inverse, gamma, beta, inverse, scale, shift);
        k->normalize->backward_factors(c, 10, sums, inverse, scale, a, b, d);
        for (int64_t i = 0; i < c; i++) {
            double expected = 1 / sqrt((double)variance[i] + 0.125),
                   slope = (double)scale[i] * (double)inverse[i] * sums[c + i] / 10;
            assert_true(fabs((double)inverse[i] - expected) < 3e-7 && scale[i] == gamma[i] * inverse[i] && shift[i] == beta[i]);
            assert_true(a[i] == scale[i] && d[i] == (float)(sums[i] / 10) && fabs((double)b[i] + slope) <= 1e-6 * fabs(slope));
        }
        k->normalize->affine(c, 0.125f, variance, NULL, NULL, inverse, scale, shift);
        for (int64_t i = 0; i < c; i++) {
            assert_true(scale[i] == inverse[i] && shift[i] == 0);
        }
        float *outputs[] = {mean, inverse, scale, shift, a, b, d, variance};
        for (size_t i = 0; i < BWI_COUNT(outputs); i++) {
            output_floats_free(outputs[i], c);
        }
        free(gamma);
        free(beta);
    }
}

/* Squares that rounding made too small: the variance is 0, not below. */
static void check_statistics_by_hand(const bwi_kernels *k)
{
    const double sums[2] = {30, 299.999};
    float mean, variance, moving[2] = {1, 2}, quotients[2];
    double totals[2] = {1, 2};
    k->normalize->moments(1, 3, sums, &mean, &variance);
    assert_true(mean == 10 && variance == 0);
    k->normalize->blend(2, 0.75f, (const float[]){5, 10}, moving);
    assert_close("blend", moving, (const float[]){2, 4}, 2, 0);
    k->normalize->averages(2, 4, (const double[]){2, 10}, quotients);
    assert_close("averages", quotients, (const float[]){0.5f, 2.5f}, 2, 0);
    k->normalize->add_doubles(2, (const double[]){10, 20}, totals);
    k->normalize->add_weighted(2, 0.5, (const float[]){2, 4}, totals);
    assert_doubles_close(totals, (const double[]){12, 24}, 2, 0);
}

static void test_statistics(void **state)
{
    (void)state;
    each_table(check_statistics);
    each_table(check_statistics_by_hand);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_by_hand), cmocka_unit_test(test_sums),       cmocka_unit_test(test_affine),
        cmocka_unit_test(test_reorder), cmocka_unit_test(test_statistics),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
