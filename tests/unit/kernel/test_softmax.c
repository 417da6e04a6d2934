/*
 * Softmax and crossentropy of every table against the reference in double, and the accuracy of their exponential and
 * logarithm against the C library's.
 */
#include "support/kernel_check.h"

static const int64_t widths[] = {1, 2, 3, 4, 5, 8, 10, 15, 16, 17, 31, 32, 33, 100, 1000};
static const int64_t rows_of[] = {1, 2, 3, 8, 16, 17};

static float *random_logits(int64_t count, float range)
{
    float *x = input_floats(count);
    for (int64_t i = 0; i < count; i++) {
        x[i] *= range;
    }
    return x;
}

static void check_softmax(const bwi_kernels *k)
{
    for (size_t r = 0; r < BWI_COUNT(rows_of); r++) {
        for (size_t w = 0; w < BWI_COUNT(widths); w++) {
            int64_t rows = rows_of[r], width = widths[w], count = rows * width;
            float *x = random_logits(count, 12), *dy = input_floats(count);
            float *y = output_floats(count), *dx = output_floats(count), *expected = output_floats(count);
            k->softmax_forward(rows, width, x, y);
            bwi_kernels_reference.softmax_forward(rows, width, x, expected);
            assert_close("softmax", y, expected, count, 3e-7);
            k->softmax_backward(rows, width, y, dy, dx);
            bwi_kernels_reference.softmax_backward(rows, width, y, dy, expected);
            assert_close("softmax backward", dx, expected, count, 4e-7);
            k->softmax_forward(rows, width, x, x);
            assert_memory_equal(x, y, (size_t)count * sizeof *x);
            output_floats_free(y, count);
            output_floats_free(dx, count);
            output_floats_free(expected, count);
            free(x);
            free(dy);
        }
    }
}

static void test_softmax(void **state)
{
    (void)state;
    each_table(check_softmax);
}

static void check_crossentropy_of(const bwi_kernels *k, int64_t rows, int64_t width, bool weighted)
{
    int64_t count = rows * width;
    float *x = random_logits(count, 12), *weight = weighted ? input_floats(rows) : NULL;
    int32_t *labels = input_bytes((size_t)rows * sizeof *labels);
    for (int64_t i = 0; i < rows; i++) {
        labels[i] = (int32_t)random_below(width);
    }
    float *loss = output_floats(rows), *expected_loss = output_floats(rows);
    float *d = output_floats(count), *expected = output_floats(count);
    k->crossentropy(rows, width, x, labels, weight, loss, d);
    bwi_kernels_reference.crossentropy(rows, width, x, labels, weight, expected_loss, expected);
    assert_close("loss", loss, expected_loss, rows, 4e-6);
    assert_close("difference", d, expected, count, 4e-7);
    k->crossentropy(rows, width, x, labels, weight, expected_loss, NULL);
    assert_memory_equal(loss, expected_loss, (size_t)rows * sizeof *loss);
    k->crossentropy(rows, width, x, labels, weight, expected_loss, x);
    assert_memory_equal(x, d, (size_t)count * sizeof *x);
    output_floats_free(loss, rows);
    output_floats_free(expected_loss, rows);
    output_floats_free(d, count);
    output_floats_free(expected, count);
    free(x);
    free(weight);
    free(labels);
}

static void check_crossentropy(const bwi_kernels *k)
{
    for (size_t r = 0; r < BWI_COUNT(rows_of); r++) {
        for (size_t w = 0; w < BWI_COUNT(widths); w++) {
            check_crossentropy_of(k, rows_of[r], widths[w], false);
            check_crossentropy_of(k, rows_of[r], widths[w], true);
        }
    }
}

static void test_crossentropy(void **state)
{
    (void)state;
    each_table(check_crossentropy);
}

static void check_binary_of(const bwi_kernels *k, int64_t count, float smoothing, bool weighted)
{
    float *x = random_logits(count, 12), *y = input_floats(count), *factor = weighted ? input_floats(count) : NULL;
    float *loss = output_floats(count), *expected_loss = output_floats(count);
    float *d = output_floats(count), *expected = output_floats(count);
    for (int64_t i = 0; i < count; i++) {
        y[i] = y[i] < 0 ? 0 : 1;
    }
    k->binary_crossentropy(count, smoothing, x, y, factor, loss, d);
    bwi_kernels_reference.binary_crossentropy(count, smoothing, x, y, factor, expected_loss, expected);
    assert_close("loss", loss, expected_loss, count, 2e-6);
    assert_close("difference", d, expected, count, 4e-7);
    k->binary_crossentropy(count, smoothing, x, y, NULL, expected_loss, NULL);
    assert_memory_equal(loss, expected_loss, (size_t)count * sizeof *loss);
    k->binary_crossentropy(count, smoothing, x, y, factor, NULL, expected);
    assert_memory_equal(d, expected, (size_t)count * sizeof *d);
    output_floats_free(loss, count);
    output_floats_free(expected_loss, count);
    output_floats_free(d, count);
    output_floats_free(expected, count);
    free(x);
    free(y);
    free(factor);
}

static void check_binary(const bwi_kernels *k)
{
    for (size_t w = 0; w < BWI_COUNT(widths); w++) {
        check_binary_of(k, widths[w], 0, false);
        check_binary_of(k, widths[w], 0.25f, true);
    }
}

/* At zero the loss is ln 2 and the slope 1/2 - t; far out the loss is the distance to the right side, or zero. */
static void check_binary_by_hand(const bwi_kernels *k)
{
    const float x[] = {0, 200, -200, 200, (float)NAN}, y[] = {1, 1, 1, 0, 1}, factor[] = {2, 1, 1, 1, 1};
    float loss[5], d[5];
    k->binary_crossentropy(5, 0, x, y, factor, loss, d);
    assert_close("loss", loss, (const float[]){0.693147182f, 0, 200, 200}, 4, 6e-8);
    assert_close("difference", d, (const float[]){-1, 0, -1, 1}, 4, 1e-37);
    assert_true(isnan(loss[4]) && isnan(d[4]));
}

static void test_binary(void **state)
{
    (void)state;
    each_table(check_binary);
    each_table(check_binary_by_hand);
    check_binary_by_hand(&bwi_kernels_reference);
}

/* Two equal logits: loss ln 2, difference -1/2 and 1/2. Far apart: the loss is the distance, or zero. */
static void check_by_hand(const bwi_kernels *k)
{
    const float logits[] = {3, 3, 0, 500, 500, 0}, weight[] = {2, 1, 1};
    const int32_t labels[] = {1, 0, 0};
    float loss[3], d[6];
    k->crossentropy(3, 2, logits, labels, weight, loss, d);
    assert_close("loss", loss, (const float[]){0.693147182f, 500, 0}, 3, 6e-8);
    assert_close("difference", d, (const float[]){1, -1, -1, 1, 0, 0}, 6, 1e-37);
}

static void test_by_hand(void **state)
{
    (void)state;
    each_table(check_by_hand);
    check_by_hand(&bwi_kernels_reference);
}

/* Units in the last place of `exact`, a normal number. */
static double ulps(float found, double exact)
{
    int exponent;
    (void)frexp(exact, &exponent);
    return fabs((double)found - exact) / ldexp(1, exponent - 24);
}

/* With logits (0, -t, -t, ...) where e^-t is small beside 1, softmax of the rest is e^-t but for the sum; with a single row of
 * many equal logits, the loss is ln(width). */
static void check_accuracy(const bwi_kernels *k)
{
    double worst = 0;
    for (float t = 17; t < 87.3f; t += 0.00137f) {
        const float x[2] = {0, -t};
        float y[2];
        k->softmax_forward(1, 2, x, y);
        worst = fmax(worst, ulps(y[1], exp(-(double)t)));
    }
    assert_true(worst < 1.6);
    worst = 0;
    for (int64_t width = 2; width < 3000; width += width < 600 ? 1 : 37) {
        float *x = input_floats(width), loss;
        int32_t label = 0;
        for (int64_t i = 0; i < width; i++) {
            x[i] = 2;
        }
        k->crossentropy(1, width, x, &label, NULL, &loss, NULL);
        worst = fmax(worst, ulps(loss, log((double)width)));
        free(x);
    }
    assert_true(worst < 1.1);
}

static void test_accuracy(void **state)
{
    (void)state;
    each_table(check_accuracy);
}

static void check_nan(const bwi_kernels *k)
{
    for (size_t w = 1; w < BWI_COUNT(widths); w++) {
        for (int64_t bad = 0; bad < widths[w]; bad += 1 + widths[w] / 7) {
            int64_t width = widths[w];
            const int32_t labels[2] = {0, 0};
            float *x = input_floats(2 * width), *y = output_floats(2 * width), loss[2];
            x[bad] = NAN;
            k->softmax_forward(2, width, x, y);
            for (int64_t i = 0; i < width; i++) {
                assert_true(isnan(y[i]) && !isnan(y[width + i]));
            }
            k->crossentropy(2, width, x, labels, NULL, loss, y);
            assert_true(isnan(loss[0]) && !isnan(loss[1]));
            for (int64_t i = 0; i < width; i++) {
                assert_true(isnan(y[i]) && !isnan(y[width + i]));
            }
            x[bad] = -INFINITY;
            k->softmax_forward(2, width, x, y);
            for (int64_t i = 0; i < width; i++) {
                assert_true(i == bad ? y[i] == 0 : y[i] > 0);
            }
            output_floats_free(y, 2 * width);
            free(x);
        }
    }
}

static void test_nan(void **state)
{
    (void)state;
    each_table(check_nan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_softmax), cmocka_unit_test(test_crossentropy), cmocka_unit_test(test_binary),
        cmocka_unit_test(test_by_hand), cmocka_unit_test(test_accuracy),     cmocka_unit_test(test_nan),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
