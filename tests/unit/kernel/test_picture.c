/* Images seen through a map: whole shifts and mirrors by index, means of neighbours, and the transpose; contrast by its formula.
 * With every table. */
#include "support/kernel_check.h"

enum { H = 5, W = 4, C = 3, ALL = H * W * C };

static int place(bwi_fill fill, int i, int n)
{
    static const int reflected[3][2] = {{0, 1}, {1, 2}, {2, 3}}; /* distance beyond the border: pixel from it */
    if (i >= 0 && i < n) {
        return i;
    }
    int beyond = i < 0 ? -i - 1 : i - n, low = i < 0;
    switch (fill) {
    case BWI_FILL_CONSTANT:
        return -1;
    case BWI_FILL_NEAREST:
        return low ? 0 : n - 1;
    case BWI_FILL_REFLECT:
        return low ? reflected[beyond][0] : n - reflected[beyond][1];
    default:
        return low ? n - 1 - beyond : beyond;
    }
}

/* A shift by whole pixels, down and to the right. */
static void check_shifts(const bwi_kernels *k)
{
    for (int fill = BWI_FILL_CONSTANT; fill <= BWI_FILL_WRAP; fill++) {
        for (int way = 0; way < 2; way++) {
            int down = way ? -2 : 2, right = way ? 3 : -1;
            float *x = input_floats(ALL), *y = output_floats(ALL), expected[ALL];
            bwi_looking how = {H, W, C, {1, 0, (float)-right, 0, 1, (float)-down}, way == 0, (bwi_fill)fill, 0.75F};
            k->picture->look(&how, x, y);
            for (int at = 0; at < ALL; at++) {
                int row = place((bwi_fill)fill, at / C / W - down, H), column = place((bwi_fill)fill, at / C % W - right, W);
                expected[at] = row < 0 || column < 0 ? 0.75F : x[(row * W + column) * C + at % C];
            }
            assert_close("shifted", y, expected, ALL, 0);
            output_floats_free(y, ALL);
            free(x);
        }
    }
}

/* Half a pixel to the right, and a mirror image. */
static void check_means(const bwi_kernels *k)
{
    float *x = input_floats(ALL), *y = output_floats(ALL), *z = output_floats(ALL), expected[ALL], mirrored[ALL];
    bwi_looking half = {H, W, C, {1, 0, 0.5F, 0, 1, 0}, false, BWI_FILL_NEAREST, 0};
    bwi_looking mirror = {H, W, C, {-1, 0, W - 1, 0, 1, 0}, true, BWI_FILL_CONSTANT, 0};
    k->picture->look(&half, x, y);
    k->picture->look(&mirror, x, z);
    for (int at = 0; at < ALL; at++) {
        int column = at / C % W, next = column + 1 < W ? at + C : at;
        expected[at] = 0.5F * x[at] + 0.5F * x[next];
        mirrored[at] = x[(at / C / W * W + W - 1 - column) * C + at % C];
    }
    assert_close("half a pixel", y, expected, ALL, 1e-6);
    assert_close("mirrored", z, mirrored, ALL, 0);
    output_floats_free(y, ALL);
    output_floats_free(z, ALL);
    free(x);
}

/* sum(look(x) dy) = sum(x look_backward(dy)), since the value beyond the border is 0. */
static void check_transpose(const bwi_kernels *k)
{
    for (int fill = BWI_FILL_CONSTANT; fill <= BWI_FILL_WRAP; fill++) {
        float *x = input_floats(ALL), *dy = input_floats(ALL), *y = output_floats(ALL), *dx = output_floats(ALL);
        bwi_looking how = {H, W, C, {0.8F, -0.4F, 0.7F, 0.3F, 1.1F, -0.6F}, false, (bwi_fill)fill, 0};
        double forward = 0, backward = 0;
        k->picture->look(&how, x, y);
        k->picture->look_backward(&how, dy, dx);
        for (int at = 0; at < ALL; at++) {
            forward += (double)y[at] * (double)dy[at];
            backward += (double)x[at] * (double)dx[at];
        }
        assert_true(fabs(forward - backward) < 1e-4);
        output_floats_free(y, ALL);
        output_floats_free(dx, ALL);
        free(x);
        free(dy);
    }
}

static void check_contrast(const bwi_kernels *k)
{
    const float range[2] = {-0.6F, 0.9F};
    float *x = input_floats(ALL), *y = output_floats(ALL), expected[ALL];
    k->picture->contrast(H * W, C, 1.75F, 0.125F, range, x, y);
    for (int c = 0; c < C; c++) {
        double mean = 0;
        for (int p = 0; p < H * W; p++) {
            mean += (double)x[p * C + c] / (H * W);
        }
        for (int p = 0; p < H * W; p++) {
            double value = ((double)x[p * C + c] - mean) * 1.75 + mean + 0.125;
            expected[p * C + c] = (float)fmin(fmax(value, (double)range[0]), (double)range[1]);
        }
    }
    assert_close("contrast", y, expected, ALL, 1e-5);
    output_floats_free(y, ALL);
    free(x);
}

static void test_shifts(void **state)
{
    (void)state;
    each_table(check_shifts);
}
static void test_means(void **state)
{
    (void)state;
    each_table(check_means);
}
static void test_transpose(void **state)
{
    (void)state;
    each_table(check_transpose);
}
static void test_contrast(void **state)
{
    (void)state;
    each_table(check_contrast);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_shifts), cmocka_unit_test(test_means),
                                       cmocka_unit_test(test_transpose), cmocka_unit_test(test_contrast)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
