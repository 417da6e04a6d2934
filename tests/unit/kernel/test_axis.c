/*
 * What goes along an axis, of every table against the reference: sums, softmax and layer normalisation. By hand: values that are
 * known, NaN, and rows whose mean is far from zero.
 */
#include "support/kernel_check.h"

static const bwi_around shapes[] = {
    {1, 1, 1},    {3, 2, 1},  {5, 7, 1},   {4, 16, 1}, {4, 31, 1}, {3, 32, 1}, {2, 33, 1},  {2, 100, 1},
    {1, 1000, 1}, {1, 1, 2},  {2, 3, 2},   {3, 5, 3},  {2, 4, 4},  {2, 9, 7},  {3, 10, 8},  {2, 6, 15},
    {2, 6, 16},   {2, 6, 17}, {1, 11, 33}, {2, 5, 64}, {1, 5, 67}, {1, 3, 97}, {2, 2, 128}, {1, 40, 130},
};

static int64_t count_of(const bwi_around *r)
{
    return r->outer * r->extent * r->inner;
}

static void check_sums(const bwi_kernels *k)
{
    for (size_t s = 0; s < BWI_COUNT(shapes); s++) {
        const bwi_around *r = &shapes[s];
        float *x = input_floats(count_of(r));
        int64_t made = r->outer * r->inner;
        float *y = output_floats(made), *expected = output_floats(made);
        k->sum_axis(r, 1, x, y);
        bwi_kernels_reference.sum_axis(r, 1, x, expected);
        assert_close("sum", y, expected, made, 1e-5 * (double)r->extent / 100);
        k->sum_axis(r, (double)r->extent, x, y);
        bwi_kernels_reference.sum_axis(r, (double)r->extent, x, expected);
        assert_close("mean", y, expected, made, 6e-8);
        output_floats_free(y, made);
        output_floats_free(expected, made);
        free(x);
    }
}

/* Columns are summed in their order, so every table gives the bits of the reference. */
static void check_column_bits(const bwi_kernels *k)
{
    for (size_t s = 0; s < BWI_COUNT(shapes); s++) {
        const bwi_around *r = &shapes[s];
        int64_t made = r->outer * r->inner;
        float *x = input_floats(count_of(r)), *y = output_floats(made), *expected = output_floats(made);
        k->sum_axis(r, 3, x, y);
        bwi_kernels_reference.sum_axis(r, 3, x, expected);
        if (r->inner > 1) {
            assert_memory_equal(y, expected, (size_t)made * sizeof *y);
        }
        output_floats_free(y, made);
        output_floats_free(expected, made);
        free(x);
    }
}

static void test_sums(void **state)
{
    (void)state;
    each_table(check_sums);
    each_table(check_column_bits);
}

static void check_softmax(const bwi_kernels *k)
{
    for (size_t s = 0; s < BWI_COUNT(shapes); s++) {
        const bwi_around *r = &shapes[s];
        int64_t count = count_of(r);
        float *x = input_floats(count), *dy = input_floats(count);
        float *y = output_floats(count), *dx = output_floats(count), *expected = output_floats(count);
        for (int64_t i = 0; i < count; i++) {
            x[i] *= 12;
        }
        k->softmax_axis_forward(r, x, y);
        bwi_kernels_reference.softmax_axis_forward(r, x, expected);
        assert_close("softmax", y, expected, count, 4e-7);
        k->softmax_axis_backward(r, y, dy, dx);
        bwi_kernels_reference.softmax_axis_backward(r, y, dy, expected);
        assert_close("softmax backward", dx, expected, count, 5e-7);
        k->softmax_axis_backward(r, y, dy, dy);
        assert_memory_equal(dy, dx, (size_t)count * sizeof *dx);
        k->softmax_axis_forward(r, x, x);
        assert_memory_equal(x, y, (size_t)count * sizeof *x);
        output_floats_free(y, count);
        output_floats_free(dx, count);
        output_floats_free(expected, count);
        free(x);
        free(dy);
    }
}

/* A NaN spoils its own column only; minus infinity has the probability 0. */
static void check_softmax_nan(const bwi_kernels *k)
{
    bwi_around r = {1, 3, 21};
    for (int64_t bad = 0; bad < 63; bad += 5) {
        float *x = input_floats(63), *y = output_floats(63);
        x[bad] = NAN;
        k->softmax_axis_forward(&r, x, y);
        for (int64_t i = 0; i < 63; i++) {
            assert_true(isnan(y[i]) == (i % 21 == bad % 21));
        }
        x[bad] = -INFINITY;
        k->softmax_axis_forward(&r, x, y);
        for (int64_t i = 0; i < 63; i++) {
            assert_true(i == bad ? y[i] == 0 : y[i] > 0);
        }
        output_floats_free(y, 63);
        free(x);
    }
}

static void test_softmax(void **state)
{
    (void)state;
    each_table(check_softmax);
    each_table(check_softmax_nan);
}

static void check_layernorm_of(const bwi_kernels *k, int64_t rows, int64_t width, bool scale, bool center)
{
    int64_t count = rows * width;
    float *x = input_floats(count), *dy = input_floats(count);
    float *gamma = scale ? input_floats(width) : NULL, *beta = center ? input_floats(width) : NULL;
    float *y = output_floats(count), *kept = output_floats(2 * rows);
    float *expected = output_floats(count), *expected_kept = output_floats(2 * rows);
    k->layernorm_forward(rows, width, 1e-3f, x, gamma, beta, kept, y);
    bwi_kernels_reference.layernorm_forward(rows, width, 1e-3f, x, gamma, beta, expected_kept, expected);
    assert_close("mean and inverse", kept, expected_kept, 2 * rows, 4e-6); /* the inverse is up to 32 */
    assert_close("layernorm", y, expected, count, 2e-6);
    float *dx = output_floats(count);
    k->layernorm_backward(rows, width, x, dy, gamma, kept, dx);
    bwi_kernels_reference.layernorm_backward(rows, width, x, dy, gamma, kept, expected);
    assert_close("layernorm backward", dx, expected, count, 2e-5);
    k->layernorm_backward(rows, width, x, dy, gamma, kept, dy);
    assert_memory_equal(dy, dx, (size_t)count * sizeof *dx);
    output_floats_free(dx, count);
    output_floats_free(y, count);
    output_floats_free(kept, 2 * rows);
    output_floats_free(expected, count);
    output_floats_free(expected_kept, 2 * rows);
    free(x);
    free(dy);
    free(gamma);
    free(beta);
}

static const int64_t widths[] = {1, 2, 3, 4, 5, 8, 15, 16, 17, 31, 32, 33, 64, 100, 129, 1000};
static const int64_t heights[] = {1, 2, 5, 16};

static void check_layernorm(const bwi_kernels *k)
{
    for (size_t w = 0; w < BWI_COUNT(widths); w++) {
        for (size_t h = 0; h < BWI_COUNT(heights); h++) {
            for (int with = 0; with < 4; with++) {
                check_layernorm_of(k, heights[h], widths[w], with & 1, with & 2);
            }
        }
    }
}

static void check_layernorm_weights_of(const bwi_kernels *k, int64_t rows, int64_t width, bool scale, bool center, bool adds)
{
    int64_t count = rows * width;
    float *x = input_floats(count), *dy = input_floats(count), *kept = input_floats(2 * rows);
    float *before = input_floats(width), *found[2], *expected[2];
    for (int i = 0; i < 2; i++) {
        found[i] = output_copy(before, width);
        expected[i] = output_copy(before, width);
    }
    bwi_row_gradients ours = {scale ? found[0] : NULL, center ? found[1] : NULL, adds, adds};
    bwi_row_gradients slow = {scale ? expected[0] : NULL, center ? expected[1] : NULL, adds, adds};
    k->layernorm_backward_weights(rows, width, x, dy, kept, &ours);
    bwi_kernels_reference.layernorm_backward_weights(rows, width, x, dy, kept, &slow);
    for (int i = 0; i < 2; i++) {
        assert_close("gradient", found[i], expected[i], width, 4e-6);
        output_floats_free(found[i], width);
        output_floats_free(expected[i], width);
    }
    free(x);
    free(dy);
    free(kept);
    free(before);
}

static void check_layernorm_weights(const bwi_kernels *k)
{
    for (size_t w = 0; w < BWI_COUNT(widths); w++) {
        for (size_t h = 0; h < BWI_COUNT(heights); h++) {
            for (int with = 0; with < 8; with++) {
                check_layernorm_weights_of(k, heights[h], widths[w], with & 1, with & 2, with & 4);
            }
        }
    }
}

/* The row (1001, 1003) has the mean 1002 and the variance 1; far from zero its digits must not be lost. */
static void check_layernorm_by_hand(const bwi_kernels *k)
{
    const float x[] = {1001, 1003}, gamma[] = {2, 3}, beta[] = {10, 20};
    float y[2], kept[2];
    k->layernorm_forward(1, 2, 0, x, gamma, beta, kept, y);
    assert_close("mean and inverse", kept, (const float[]){1002, 1}, 2, 0);
    assert_close("layernorm", y, (const float[]){8, 23}, 2, 0);
    float far[100], expected[100];
    for (int i = 0; i < 100; i++) {
        far[i] = 30000 + (float)(i % 2);
        expected[i] = i % 2 ? 1 : -1;
    }
    float made[100];
    k->layernorm_forward(1, 100, 0, far, NULL, NULL, kept, made);
    assert_close("far from zero", made, expected, 100, 1e-5);
}

static void test_layernorm(void **state)
{
    (void)state;
    each_table(check_layernorm);
    each_table(check_layernorm_weights);
    each_table(check_layernorm_by_hand);
    check_layernorm_by_hand(&bwi_kernels_reference);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sums),
        cmocka_unit_test(test_softmax),
        cmocka_unit_test(test_layernorm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
