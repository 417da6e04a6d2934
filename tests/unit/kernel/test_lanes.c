/* Sums over lanes and ranks, scaling, and finding what is not finite: each against its definition, with every table. */
#include "support/kernel_check.h"

static const int64_t counts[] = {1, 2, 3, 7, 16, 17, 33, 100};

/* The tree by its definition: the sum over an aligned block of lanes is that of its halves. */
static double tree(const double *x, int lanes, int64_t stride)
{
    return lanes == 1 ? x[0] : tree(x, lanes / 2, stride) + tree(x + lanes / 2 * stride, lanes / 2, stride);
}

static void check_tree(const bwi_kernels *k)
{
    for (int lanes = 1; lanes <= 16; lanes *= 2) {
        for (size_t c = 0; c < BWI_COUNT(counts); c++) {
            int64_t count = counts[c], stride = count + 5, total = lanes * stride;
            double *x = input_bytes((size_t)total * sizeof *x), *y = output_bytes((size_t)total * sizeof *y);
            for (int64_t i = 0; i < total; i++) {
                y[i] = x[i] = (double)random_float() * pow(10, (double)random_below(9));
            }
            k->lanes->sum_doubles(count, lanes, stride, y);
            for (int64_t i = 0; i < count; i++) {
                assert_true(y[i] == tree(x + i, lanes, stride));
            }
            for (int64_t i = count; i < stride; i++) {
                assert_true(y[i] == x[i]); /* what lies between lanes */
            }
            free(x);
            output_free(y, (size_t)total * sizeof *y);
        }
    }
}

static void test_tree(void **state)
{
    (void)state;
    each_table(check_tree);
}

static void check_elementwise(const bwi_kernels *k)
{
    for (size_t c = 0; c < BWI_COUNT(counts); c++) {
        int64_t count = counts[c];
        float *a = input_floats(count), *b = input_floats(count), *sum = output_copy(b, count), *scaled = output_copy(a, count);
        double *p = input_bytes((size_t)count * sizeof *p), *q = output_bytes((size_t)count * sizeof *q);
        for (int64_t i = 0; i < count; i++) {
            p[i] = (double)a[i] / 3;
            q[i] = (double)b[i] / 7;
        }
        k->lanes->add_floats(count, a, sum);
        k->lanes->add_doubles(count, p, q);
        k->lanes->scale(count, 0.3F, scaled);
        for (int64_t i = 0; i < count; i++) {
            float product = a[i] * 0.3F, both = b[i] + a[i];
            assert_true(sum[i] == both);
            assert_true(q[i] == (double)b[i] / 7 + (double)a[i] / 3);
            assert_true(scaled[i] == product);
        }
        free(a);
        free(b);
        free(p);
        output_floats_free(sum, count);
        output_floats_free(scaled, count);
        output_free(q, (size_t)count * sizeof *q);
    }
}

static void test_elementwise(void **state)
{
    (void)state;
    each_table(check_elementwise);
}

static void check_finiteness(const bwi_kernels *k)
{
    for (size_t c = 0; c < BWI_COUNT(counts); c++) {
        int64_t count = counts[c];
        float *x = input_floats(count);
        x[count / 2] = 3e38F;
        assert_int_equal(k->lanes->finiteness(count, x), BWI_FINITE);
        for (int64_t at = 0; at < count; at++) {
            float kept = x[at];
            x[at] = (float)NAN;
            assert_int_equal(k->lanes->finiteness(count, x), BWI_NAN);
            x[at] = at % 2 ? INFINITY : -INFINITY;
            assert_int_equal(k->lanes->finiteness(count, x), BWI_INFINITE);
            float last = x[count - 1];
            x[count - 1] = at < count - 1 ? (float)NAN : last; /* the first one counts */
            assert_int_equal(k->lanes->finiteness(count, x), BWI_INFINITE);
            x[count - 1] = last;
            x[at] = kept;
        }
        free(x);
    }
    assert_int_equal(k->lanes->finiteness(0, NULL), BWI_FINITE);
}

static void test_finiteness(void **state)
{
    (void)state;
    each_table(check_finiteness);
}

/* Squared norms of the lanes and of their sum, as they are and as Adam scales them. */
static void check_squares(const bwi_kernels *k, int64_t count, int lanes)
{
    int64_t stride = count + 3;
    float *x = calloc((size_t)(lanes * stride), sizeof *x), *v = calloc((size_t)count + 1, sizeof *v);
    for (int64_t i = 0; i < lanes * stride; i++) {
        x[i] = (float)((i * 37 + 11) % 101) / 50 - 1;
    }
    for (int64_t i = 0; i < count; i++) {
        v[i] = (float)((i * 7) % 13) / 13;
    }
    for (int scaled = 0; scaled < 2; scaled++) {
        double squares[18], expected[18];
        for (int l = 0; l <= lanes; l++) {
            squares[l] = expected[l] = 5;
        }
        for (int64_t i = 0; i < count; i++) {
            double sum = 0, by = scaled ? sqrt(1.25 * (double)v[i] + 0.125) + 0.01 : 1;
            for (int l = 0; l < lanes; l++) {
                double value = (double)x[l * stride + i] / by;
                expected[l] += value * value;
                sum += value;
            }
            expected[lanes] += sum * sum;
        }
        k->lanes->squares(count, lanes, stride, x, &(bwi_scaling){scaled ? v : NULL, 1.25, 0.125, 0.01}, squares);
        for (int l = 0; l <= lanes; l++) {
            assert_true(fabs(squares[l] - expected[l]) <= 1e-12 * fabs(expected[l]));
        }
    }
    free(x);
    free(v);
}

static void check_all_squares(const bwi_kernels *k)
{
    static const int64_t sizes[] = {0, 1, 7, 8, 9, 127, 128, 129, 1000};
    for (size_t c = 0; c < BWI_COUNT(sizes); c++) {
        check_squares(k, sizes[c], 1);
        check_squares(k, sizes[c], 4);
        check_squares(k, sizes[c], 16);
    }
}

static void check_mean_above_zero(const bwi_kernels *k)
{
    static const float x[] = {0, 2, -5, 0, 4, 0, 0, 6, -1};
    assert_true(k->lanes->mean_above_zero(9, x) == 4);
    assert_true(k->lanes->mean_above_zero(1, x) == 0);
    assert_true(k->lanes->mean_above_zero(0, x) == 0);
}

static void test_mean_above_zero(void **state)
{
    (void)state;
    each_table(check_mean_above_zero);
}

static void test_squares(void **state)
{
    (void)state;
    each_table(check_all_squares);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tree),    cmocka_unit_test(test_elementwise),     cmocka_unit_test(test_finiteness),
        cmocka_unit_test(test_squares), cmocka_unit_test(test_mean_above_zero),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
