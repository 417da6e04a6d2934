/*
 * Dense kernels of every table against the reference, over shapes around the sizes of blocks, panels and vectors.
 */
#include "support/kernel_check.h"

static const int64_t samples[] = {1, 2, 3, 4, 5, 7, 8, 9, 16, 17};
static const int64_t widths[] = {1, 2, 3, 10, 15, 16, 17, 31, 32, 33, 47, 64, 97, 131};

static double tolerance(int64_t depth)
{
    return 2e-6 + 1e-7 * (double)depth;
}

static float *packed_weights(int64_t in, int64_t out)
{
    float *weights = input_floats(in * out), *packed = input_floats(bwi_packing_host.dense_floats(in, out));
    bwi_packing_host.dense_pack(in, out, weights, packed);
    free(weights);
    return packed;
}

static void check_forward(const bwi_kernels *k, int64_t n, int64_t in, int64_t out, bool with_bias)
{
    float *x = input_floats(n * in), *w = packed_weights(in, out), *bias = with_bias ? input_floats(out) : NULL;
    float *found = output_floats(n * out), *expected = output_floats(n * out);
    k->dense_forward(n, in, out, x, w, bias, found);
    bwi_kernels_reference.dense_forward(n, in, out, x, w, bias, expected);
    assert_close("forward", found, expected, n * out, tolerance(in));
    output_floats_free(found, n * out);
    output_floats_free(expected, n * out);
    free(x);
    free(w);
    free(bias);
}

static void check_backward_data(const bwi_kernels *k, int64_t n, int64_t in, int64_t out)
{
    float *dy = input_floats(n * out), *w = packed_weights(in, out);
    float *found = output_floats(n * in), *expected = output_floats(n * in);
    k->dense_backward_data(n, in, out, dy, w, found);
    bwi_kernels_reference.dense_backward_data(n, in, out, dy, w, expected);
    assert_close("backward data", found, expected, n * in, tolerance(out));
    output_floats_free(found, n * in);
    output_floats_free(expected, n * in);
    free(dy);
    free(w);
}

static void check_backward_weights(const bwi_kernels *k, int64_t n, int64_t in, int64_t out, bool accumulate, bool with_bias)
{
    int64_t count = bwi_packing_host.dense_floats(in, out);
    float *x = input_floats(n * in), *dy = input_floats(n * out), *w = packed_weights(in, out), *bias = input_floats(out);
    float *found = accumulate ? output_copy(w, count) : output_floats(count), *expected = output_copy(w, count);
    float *found_bias = accumulate ? output_copy(bias, out) : output_floats(out), *expected_bias = output_copy(bias, out);
    k->dense_backward_weights(n, in, out, x, dy, found, with_bias ? found_bias : NULL, accumulate);
    bwi_kernels_reference.dense_backward_weights(n, in, out, x, dy, expected, with_bias ? expected_bias : NULL, accumulate);
    assert_close("backward weights", found, expected, count, tolerance(n));
    if (with_bias) {
        assert_close("backward bias", found_bias, expected_bias, out, tolerance(n));
    }
    output_floats_free(found, count);
    output_floats_free(expected, count);
    output_floats_free(found_bias, out);
    output_floats_free(expected_bias, out);
    free(x);
    free(dy);
    free(w);
    free(bias);
}

static void check_shape(const bwi_kernels *k, int64_t n, int64_t in, int64_t out)
{
    check_forward(k, n, in, out, true);
    check_forward(k, n, in, out, false);
    check_backward_data(k, n, in, out);
    check_backward_weights(k, n, in, out, false, true);
    check_backward_weights(k, n, in, out, true, true);
    check_backward_weights(k, n, in, out, true, false);
}

static void check_all_shapes(const bwi_kernels *k)
{
    for (size_t s = 0; s < BWI_COUNT(samples); s++) {
        for (size_t i = 0; i < BWI_COUNT(widths); i++) {
            for (size_t o = 0; o < BWI_COUNT(widths); o++) {
                check_shape(k, samples[s], widths[i], widths[o]);
            }
        }
    }
}

static void test_shapes(void **state)
{
    (void)state;
    each_table(check_all_shapes);
}

/* Beyond one pass along the input, one pass along the output, and the samples summed at once. */
static void check_large(const bwi_kernels *k)
{
    check_shape(k, 5, 1003, 10);
    check_shape(k, 3, 21, 1100);
    check_shape(k, 37, 21, 1100);
    check_shape(k, 67, 19, 40);
    check_shape(k, 131, 33, 3);
}

static void test_large(void **state)
{
    (void)state;
    each_table(check_large);
}

/* Parts give the bits of the whole. */
static void check_ranges(const bwi_kernels *k, int64_t n, int64_t in, int64_t out)
{
    int64_t panel = bwi_packing_host.dense_panel(out), count = bwi_packing_host.dense_floats(in, out), padded = count / in;
    float *x = input_floats(n * in), *dy = input_floats(n * out), *w = packed_weights(in, out), *bias = input_floats(out);
    float *y = output_floats(n * out), *dx = output_floats(n * in), *whole = output_floats(n * (in > out ? in : out));
    for (int64_t from = 0; from < out; from += panel) {
        k->dense_forward_part(n, in, out, from, from + panel < out ? from + panel : out, x, w, bias, y);
    }
    k->dense_forward(n, in, out, x, w, bias, whole);
    assert_memory_equal(y, whole, (size_t)(n * out) * sizeof *y);
    for (int64_t from = 0; from < in; from += 16) {
        k->dense_backward_data_part(n, in, out, from, from + 16, dy, w, dx);
    }
    k->dense_backward_data(n, in, out, dy, w, whole);
    assert_memory_equal(dx, whole, (size_t)(n * in) * sizeof *dx);
    float *staging = output_floats(bwi_packing_host.dense_staging(n, in, out));
    float *dw = output_floats(count), *db = output_floats(padded), *expected = output_floats(count), *sums = output_floats(out);
    double bound = k->dense_gradient_pack(n, in, out, x, dy, staging);
    const void *const ahead[BWI_FETCHED] = {w, w};
    for (int64_t p = 0; p < padded / panel; p++) {
        for (int64_t first = 0; first < in; first += 24) {
            k->dense_gradient_block(n, in, out, staging, p, first, in - first < 24 ? in - first : 24, dw + (p * in + first) * panel,
                                    first % 48 ? ahead : NULL);
        }
        k->dense_gradient_bias(n, in, out, staging, p, db + p * panel);
    }
    k->dense_backward_weights(n, in, out, x, dy, expected, sums, false);
    assert_memory_equal(dw, expected, (size_t)count * sizeof *dw);
    assert_memory_equal(db, sums, (size_t)out * sizeof *db);
    for (int64_t i = 0; i < count; i++) {
        assert_true(fabs((double)dw[i]) <= bound);
    }
    output_floats_free(staging, bwi_packing_host.dense_staging(n, in, out));
    x[n * in - 1] = -(float)INFINITY;
    staging = output_floats(bwi_packing_host.dense_staging(n, in, out));
    assert_true(isnan(k->dense_gradient_pack(n, in, out, x, dy, staging)));
    output_floats_free(staging, bwi_packing_host.dense_staging(n, in, out));
    output_floats_free(y, n * out);
    output_floats_free(dx, n * in);
    output_floats_free(whole, n * (in > out ? in : out));
    output_floats_free(dw, count);
    output_floats_free(db, padded);
    output_floats_free(expected, count);
    output_floats_free(sums, out);
    free(x);
    free(dy);
    free(w);
    free(bias);
}

static void check_all_ranges(const bwi_kernels *k)
{
    static const int64_t ins[] = {16, 48, 112}, outs[] = {17, 32, 64, 97};
    for (size_t s = 0; s < BWI_COUNT(samples); s++) {
        for (size_t i = 0; i < BWI_COUNT(ins); i++) {
            for (size_t o = 0; o < BWI_COUNT(outs); o++) {
                check_ranges(k, samples[s], ins[i], outs[o]);
            }
        }
    }
    check_ranges(k, 131, 32, 64);
}

static void test_ranges(void **state)
{
    (void)state;
    each_table(check_all_ranges);
}

/* y = (1*1 + 2*3, 1*2 + 2*4) + (10, 20), and so back. */
static void check_by_hand(const bwi_kernels *k)
{
    const float weights[] = {1, 2, 3, 4}, x[] = {1, 2}, bias[] = {10, 20}, dy[] = {1, -1};
    float w[4], y[2], dx[2], dw[4], db[2], gradient[4];
    bwi_packing_host.dense_pack(2, 2, weights, w);
    k->dense_forward(1, 2, 2, x, w, bias, y);
    k->dense_backward_data(1, 2, 2, dy, w, dx);
    k->dense_backward_weights(1, 2, 2, x, dy, dw, db, false);
    bwi_packing_host.dense_unpack(2, 2, dw, 0, 4, gradient);
    assert_close("y", y, (const float[]){17, 30}, 2, 0);
    assert_close("dx", dx, (const float[]){-1, -1}, 2, 0);
    assert_close("dw", gradient, (const float[]){1, -1, 2, -2}, 4, 0);
    assert_close("db", db, dy, 2, 0);
}

static void test_by_hand(void **state)
{
    (void)state;
    each_table(check_by_hand);
    check_by_hand(&bwi_kernels_reference);
}

/* A sample's prediction has the same bits whatever the samples beside it. */
static void check_independence_of(const bwi_kernels *k, int64_t n, int64_t in)
{
    static const int64_t outs[] = {1, 10, 16, 33, 100};
    for (size_t o = 0; o < BWI_COUNT(outs); o++) {
        int64_t out = outs[o];
        float *x = input_floats(n * in), *w = packed_weights(in, out), *y = output_floats(n * out), *one = output_floats(out);
        k->dense_forward(n, in, out, x, w, NULL, y);
        for (int64_t r = 0; r < n; r++) {
            k->dense_forward(1, in, out, x + r * in, w, NULL, one);
            assert_memory_equal(one, y + r * out, (size_t)out * sizeof *y);
        }
        output_floats_free(y, n * out);
        output_floats_free(one, out);
        free(x);
        free(w);
    }
}

static void check_independence(const bwi_kernels *k)
{
    static const int64_t ins[] = {1, 2, 3, 4, 5, 10, 16, 31, 401};
    for (int again = 0; again < 20; again++) {
        for (size_t i = 0; i < BWI_COUNT(ins); i++) {
            check_independence_of(k, 16 + again % 2, ins[i]);
        }
    }
}

static void test_independence(void **state)
{
    (void)state;
    each_table(check_independence);
}

static void test_packing(void **state)
{
    (void)state;
    for (size_t i = 0; i < BWI_COUNT(widths); i++) {
        for (size_t o = 0; o < BWI_COUNT(widths); o++) {
            int64_t in = widths[i], out = widths[o], count = bwi_packing_host.dense_floats(in, out);
            float *weights = input_floats(in * out), *packed = output_floats(count), *back = output_floats(in * out);
            bwi_packing_host.dense_pack(in, out, weights, packed);
            for (int64_t first = 0, size = 1; first < in * out; first += size, size = 3 * size + 1) { /* in pieces of any size */
                size = size < in * out - first ? size : in * out - first;
                bwi_packing_host.dense_unpack(in, out, packed, first, size, back + first);
            }
            assert_memory_equal(back, weights, (size_t)(in * out) * sizeof *back);
            double sum = 0, packed_sum = 0;
            for (int64_t j = 0; j < in * out; j++) {
                sum += (double)(weights[j] * weights[j]);
            }
            for (int64_t j = 0; j < count; j++) {
                packed_sum += (double)(packed[j] * packed[j]);
            }
            assert_true(fabs(sum - packed_sum) < 1e-9 * (sum + 1)); /* the padding is zero */
            output_floats_free(packed, count);
            output_floats_free(back, in * out);
            free(weights);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_by_hand), cmocka_unit_test(test_packing), cmocka_unit_test(test_shapes),
        cmocka_unit_test(test_large),   cmocka_unit_test(test_ranges),  cmocka_unit_test(test_independence),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
