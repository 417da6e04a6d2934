/* The family reduce, of every table: extremes, lengths and products against their formulas, one column at a time. */
#include "support/kernel_check.h"

static const bwi_around shapes[] = {{1, 1, 1}, {3, 7, 1}, {2, 33, 1}, {1, 1, 5}, {2, 3, 2}, {3, 4, 17}, {2, 9, 33}};

static void check_sum_backward(const bwi_kernels *k)
{
    for (size_t s = 0; s < BWI_COUNT(shapes); s++) {
        bwi_around r = shapes[s];
        int64_t made = r.outer * r.inner, count = made * r.extent;
        float *dy = input_floats(made), *dx = output_floats(count);
        k->reduce->sum_backward(&r, 0.25f, dy, dx);
        for (int64_t i = 0; i < count; i++) {
            assert_true(dx[i] == dy[i / (r.extent * r.inner) * r.inner + i % r.inner] / 4);
        }
        output_floats_free(dx, count);
        free(dy);
    }
}

/* Few different values, so that several are equal. */
static float *ties(int64_t count)
{
    float *x = input_floats(count);
    for (int64_t i = 0; i < count; i++) {
        x[i] = (float)random_below(4);
    }
    return x;
}

static void check_extreme_of(const bwi_kernels *k, const bwi_around *r, bool largest)
{
    int64_t made = r->outer * r->inner, count = made * r->extent;
    float *x = ties(count), *dy = input_floats(made), *y = output_floats(made), *dx = output_floats(count);
    k->reduce->extreme(r, largest, x, y);
    k->reduce->extreme_backward(r, x, y, dy, dx);
    for (int64_t m = 0; m < made; m++) {
        int64_t first = m / r->inner * r->extent * r->inner + m % r->inner, end = first + r->extent * r->inner;
        float best = x[first], equal = 0;
        for (int64_t i = first; i < end; i += r->inner) {
            best = largest ? fmaxf(best, x[i]) : fminf(best, x[i]);
        }
        for (int64_t i = first; i < end; i += r->inner) {
            equal += x[i] == best;
        }
        assert_true(y[m] == best);
        for (int64_t i = first; i < end; i += r->inner) {
            assert_true(dx[i] == (x[i] == best ? dy[m] / equal : 0));
        }
    }
    x[count / 2] = NAN;
    k->reduce->extreme(r, largest, x, y);
    int64_t spoiled = count / 2 / (r->extent * r->inner) * r->inner + count / 2 % r->inner;
    for (int64_t m = 0; m < made; m++) {
        assert_true(isnan(y[m]) == (m == spoiled));
    }
    output_floats_free(y, made);
    output_floats_free(dx, count);
    free(x);
    free(dy);
}

static void check_extremes(const bwi_kernels *k)
{
    for (size_t s = 0; s < BWI_COUNT(shapes); s++) {
        check_extreme_of(k, &shapes[s], true);
        check_extreme_of(k, &shapes[s], false);
    }
}

static void check_lengths(const bwi_kernels *k)
{
    for (size_t s = 0; s < BWI_COUNT(shapes); s++) {
        bwi_around r = shapes[s];
        int64_t step = r.extent * r.inner, count = r.outer * step;
        float *x = input_floats(count), *dy = input_floats(count), *y = output_floats(count), *dx = output_floats(count);
        k->reduce->l2_normalize(&r, x, y);
        k->reduce->l2_normalize_backward(&r, x, dy, dx);
        for (int64_t i = 0; i < count; i++) {
            double squares = 0, dot = 0;
            for (int64_t j = i / step * step + i % r.inner; j < (i / step + 1) * step; j += r.inner) {
                squares += (double)x[j] * (double)x[j];
                dot += (double)x[j] * (double)dy[j];
            }
            double length = sqrt(squares), expected = ((double)dy[i] - (double)x[i] * dot / squares) / length;
            assert_true(fabs((double)y[i] - (double)x[i] / length) < 2e-7);
            assert_true(fabs((double)dx[i] - expected) <= 2e-7 * (fabs(expected) + fabs((double)dy[i]) / length));
        }
        output_floats_free(y, count);
        output_floats_free(dx, count);
        free(x);
        free(dy);
    }
}

/* A column of zeros has no direction: the inverse length is at Keras's bound of 1e7. */
static void check_zero_length(const bwi_kernels *k)
{
    bwi_around r = {1, 3, 1};
    const float x[3] = {0, 0, 0}, dy[3] = {1, -2, 3};
    float y[3], dx[3];
    k->reduce->l2_normalize(&r, x, y);
    k->reduce->l2_normalize_backward(&r, x, dy, dx);
    assert_close("y", y, x, 3, 0);
    assert_close("dx", dx, (const float[]){1e7f, -2e7f, 3e7f}, 3, 0);
}

static void test_along_axes(void **state)
{
    (void)state;
    each_table(check_sum_backward);
    each_table(check_extremes);
    each_table(check_lengths);
    each_table(check_zero_length);
}

/* x[n][a][k][b] and z[n][c][k][d]. */
static int64_t place(const bwi_around *r, int64_t n, int64_t outer, int64_t at, int64_t inner)
{
    return ((n * r->outer + outer) * r->extent + at) * r->inner + inner;
}

static void check_dot_of(const bwi_kernels *k, const bwi_dot *d)
{
    int64_t rows = d->x.outer * d->x.inner, columns = d->z.outer * d->z.inner, extent = d->x.extent;
    int64_t xs = d->samples * rows * extent, zs = d->samples * columns * extent, ys = d->samples * rows * columns;
    float *x = input_floats(xs), *z = input_floats(zs), *dy = input_floats(ys);
    float *y = output_floats(ys), *dx = output_floats(xs), *dz = output_floats(zs);
    double *expected_x = calloc((size_t)xs, sizeof *expected_x), *expected_z = calloc((size_t)zs, sizeof *expected_z);
    k->reduce->dot(d, x, z, y);
    k->reduce->dot_backward(d, x, z, dy, dx, NULL);
    k->reduce->dot_backward(d, x, z, dy, NULL, dz);
    for (int64_t i = 0; i < ys; i++) {
        int64_t n = i / (rows * columns), row = i / columns % rows, column = i % columns;
        double sum = 0;
        for (int64_t at = 0; at < extent; at++) {
            int64_t p = place(&d->x, n, row / d->x.inner, at, row % d->x.inner);
            int64_t q = place(&d->z, n, column / d->z.inner, at, column % d->z.inner);
            sum += (double)x[p] * (double)z[q];
            expected_x[p] += (double)dy[i] * (double)z[q];
            expected_z[q] += (double)dy[i] * (double)x[p];
        }
        assert_true(fabs((double)y[i] - sum) < 1e-5);
    }
    for (int64_t i = 0; i < xs; i++) {
        assert_true(fabs((double)dx[i] - expected_x[i]) < 1e-5);
    }
    for (int64_t i = 0; i < zs; i++) {
        assert_true(fabs((double)dz[i] - expected_z[i]) < 1e-5);
    }
    output_floats_free(y, ys);
    output_floats_free(dx, xs);
    output_floats_free(dz, zs);
    free(x);
    free(z);
    free(dy);
    free(expected_x);
    free(expected_z);
}

static void check_dot(const bwi_kernels *k)
{
    static const bwi_dot dots[] = {{1, {1, 1, 1}, {1, 1, 1}},
                                   {3, {1, 5, 1}, {1, 5, 1}},
                                   {2, {7, 4, 1}, {1, 4, 9}},
                                   {2, {3, 17, 2}, {2, 17, 1}},
                                   {1, {1, 6, 5}, {3, 6, 19}}};
    for (size_t i = 0; i < BWI_COUNT(dots); i++) {
        check_dot_of(k, &dots[i]);
    }
}

static void check_add_sums(const bwi_kernels *k)
{
    const double sums[] = {1, -2.5, 1e-3};
    float gradient[] = {10, 20, 30};
    k->reduce->add_sums(3, true, sums, gradient);
    assert_close("added", gradient, (const float[]){11, 17.5f, 30.001f}, 3, 0);
    k->reduce->add_sums(3, false, sums, gradient);
    assert_close("written", gradient, (const float[]){1, -2.5f, 1e-3f}, 3, 0);
}

static void test_dot(void **state)
{
    (void)state;
    each_table(check_dot);
    each_table(check_add_sums);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_along_axes), cmocka_unit_test(test_dot)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
