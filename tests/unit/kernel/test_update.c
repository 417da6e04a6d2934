/*
 * Kernels over flat vectors: ReLU, sums and the optimizers' updates, of every table against the reference.
 */
#include "support/kernel_check.h"

static const int64_t counts[] = {1, 2, 3, 4, 5, 7, 8, 15, 16, 17, 31, 33, 63, 64, 65, 127, 130, 1000, 4099};

static void check_relu(const bwi_kernels *k)
{
    for (size_t i = 0; i < BWI_COUNT(counts); i++) {
        int64_t count = counts[i];
        float *x = input_floats(count), *dy = input_floats(count);
        x[0] = 0;
        float *y = output_floats(count), *expected = output_floats(count), *dx = output_floats(count);
        k->relu_forward(count, x, y);
        bwi_kernels_reference.relu_forward(count, x, expected);
        assert_close("relu", y, expected, count, 0);
        k->relu_backward(count, y, dy, dx);
        bwi_kernels_reference.relu_backward(count, expected, dy, expected);
        assert_close("relu backward", dx, expected, count, 0);
        k->relu_backward(count, y, dy, y);
        assert_close("relu backward in place", y, expected, count, 0);
        x[count - 1] = NAN;
        k->relu_forward(count, x, x);
        assert_true(isnan(x[count - 1]));
        output_floats_free(y, count);
        output_floats_free(expected, count);
        output_floats_free(dx, count);
        free(x);
        free(dy);
    }
}

static void test_relu(void **state)
{
    (void)state;
    each_table(check_relu);
}

static void check_add(const bwi_kernels *k)
{
    for (size_t i = 0; i < BWI_COUNT(counts); i++) {
        int64_t count = counts[i];
        float *x = input_floats(count), *start = input_floats(count);
        float *found = output_copy(start, count);
        k->add(count, x, found);
        for (int64_t j = 0; j < count; j++) {
            assert_true(found[j] == start[j] + x[j]);
        }
        output_floats_free(found, count);
        free(x);
        free(start);
    }
}

static void test_add(void **state)
{
    (void)state;
    each_table(check_add);
}

/* The tree's order is part of the contract, so the sums must agree in every bit. */
static void check_lanes(const bwi_kernels *k, int64_t count, int lanes)
{
    int64_t stride = count + 5, total = stride * (lanes - 1) + count;
    float *start = input_floats(total), *found = output_copy(start, total), *expected = output_copy(start, total);
    double squares = k->lanes_sum(count, lanes, stride, found);
    double expected_squares = bwi_kernels_reference.lanes_sum(count, lanes, stride, expected);
    assert_memory_equal(found, expected, (size_t)count * sizeof *found);
    assert_true(fabs(squares - expected_squares) <= 1e-13 * expected_squares);
    memcpy(expected, start, (size_t)total * sizeof *start);
    assert_true(k->lanes_sum(count, lanes, stride, expected) == squares);
    assert_true(k->sum_of_squares(count, found) == squares);
    memcpy(expected, start, (size_t)total * sizeof *start);
    assert_true(k->lanes_sum_moderate(count, lanes, stride, expected));
    assert_memory_equal(found, expected, (size_t)count * sizeof *found);
    memcpy(expected, start, (size_t)total * sizeof *start);
    expected[(lanes - 1) * stride + random_below(count)] = lanes % 2 ? (float)NAN : -(float)INFINITY;
    assert_false(k->lanes_sum_moderate(count, lanes, stride, expected));
    memset(expected, 0, (size_t)total * sizeof *start);
    int64_t at = (lanes - 1) * stride + random_below(count);
    expected[at] = -(float)BWI_MODERATE * 0.999F;
    assert_true(k->lanes_sum_moderate(count, lanes, stride, expected));
    memset(expected, 0, (size_t)total * sizeof *start);
    expected[at] = (float)BWI_MODERATE;
    assert_false(k->lanes_sum_moderate(count, lanes, stride, expected));
    output_floats_free(found, total);
    output_floats_free(expected, total);
    free(start);
}

static void check_all_lanes(const bwi_kernels *k)
{
    static const int lanes[] = {1, 2, 3, 4, 5, 6, 7, 8, 11, 13, 16, 31, 32, 64};
    for (size_t i = 0; i < BWI_COUNT(counts); i++) {
        for (size_t l = 0; l < BWI_COUNT(lanes); l++) {
            check_lanes(k, counts[i], lanes[l]);
        }
    }
}

static void test_lanes(void **state)
{
    (void)state;
    each_table(check_all_lanes);
}

/* (1 + 2^-24) + 2^-24 is 1 in float, 1 + (2^-24 + 2^-24) is not. */
static void check_tree_by_hand(const bwi_kernels *k)
{
    float four[] = {1, 0, 0x1p-24f, 0x1p-24f}, three[] = {1, 0x1p-24f, 0x1p-24f};
    assert_true(k->lanes_sum(1, 4, 1, four) == (double)(1 + 0x1p-23f) * (double)(1 + 0x1p-23f));
    assert_true(four[0] == 1 + 0x1p-23f);
    k->lanes_sum(1, 3, 1, three);
    assert_true(three[0] == 1);
}

static void test_tree_by_hand(void **state)
{
    (void)state;
    each_table(check_tree_by_hand);
    check_tree_by_hand(&bwi_kernels_reference);
}

/* 12 vectors whose elements are all different; three rounds are exact in float. */
static void check_multiply_adds(const bwi_kernels *k)
{
    int64_t count = BWI_LIMIT_SUMS * k->block;
    float *start = input_floats(count);
    for (int64_t i = 0; i < count; i++) {
        start[i] = (float)i;
    }
    float *sums = output_copy(start, count);
    k->multiply_adds(3, 0.5f, 1, sums);
    for (int64_t i = 0; i < count; i++) {
        assert_true(sums[i] == (float)i / 8 + 1.75f);
    }
    output_floats_free(sums, count);
    free(start);
}

static void test_multiply_adds(void **state)
{
    (void)state;
    each_table(check_multiply_adds);
    check_multiply_adds(&bwi_kernels_reference);
}

static void check_sgd(const bwi_kernels *k)
{
    for (size_t i = 0; i < BWI_COUNT(counts); i++) {
        for (int kind = 0; kind < 3; kind++) {
            int64_t count = counts[i];
            float momentum = kind > 0 ? 0.9f : 0;
            float *g = input_floats(count), *w0 = input_floats(count), *v0 = input_floats(count);
            float *w = output_copy(w0, count), *v = output_copy(v0, count);
            k->sgd(count, 0.1f, momentum, kind == 2, 0.25f, g, kind > 0 ? v : NULL, w);
            bwi_kernels_reference.sgd(count, 0.1f, momentum, kind == 2, 0.25f, g, kind > 0 ? v0 : NULL, w0);
            assert_close("w", w, w0, count, 3e-7);
            assert_close("velocity", v, v0, count, 3e-7);
            output_floats_free(w, count);
            output_floats_free(v, count);
            free(g);
            free(w0);
            free(v0);
        }
    }
}

static void test_sgd(void **state)
{
    (void)state;
    each_table(check_sgd);
}

static void check_adam(const bwi_kernels *k)
{
    bwi_adam adam = {.rate = 0.01f, .epsilon = 1e-7f, .beta1 = 0.9, .beta2 = 0.999, .scale = 0.5f};
    for (size_t i = 0; i < BWI_COUNT(counts); i++) {
        int64_t count = counts[i];
        float *w0 = input_floats(count), *m0 = input_floats(count), *v0 = input_floats(count);
        for (int64_t j = 0; j < count; j++) {
            v0[j] = fabsf(v0[j]);
        }
        float *w = output_copy(w0, count), *m = output_copy(m0, count), *v = output_copy(v0, count);
        for (int step = 0; step < 3; step++) {
            float *g = input_floats(count);
            k->adam(count, &adam, g, m, v, w);
            bwi_kernels_reference.adam(count, &adam, g, m0, v0, w0);
            free(g);
        }
        assert_close("w", w, w0, count, 1e-6);
        assert_close("m", m, m0, count, 4e-7);
        assert_close("v", v, v0, count, 4e-7);
        output_floats_free(w, count);
        output_floats_free(m, count);
        output_floats_free(v, count);
        free(w0);
        free(m0);
        free(v0);
    }
}

static void test_adam(void **state)
{
    (void)state;
    each_table(check_adam);
}

/* First step from zero: m = 0.1 g, v = 0.001 g^2; with the corrected rate lr sqrt(0.001) / 0.1, w moves by lr. And 1 - beta2
 * must be that of the double: 0.001 exactly rounded. */
static void check_first_adam_step(const bwi_kernels *k)
{
    bwi_adam adam = {
        .rate = (float)(0.001 * sqrt(1 - 0.999) / (1 - 0.9)), .epsilon = 1e-7f, .beta1 = 0.9, .beta2 = 0.999, .scale = 1};
    float g[] = {1, -1}, w[] = {0, 0}, m[] = {0, 0}, v[] = {0, 0};
    k->adam(2, &adam, g, m, v, w);
    assert_close("m", m, (const float[]){0.1f, -0.1f}, 2, 1e-8);
    assert_close("v", v, (const float[]){0.001f, 0.001f}, 2, 1e-10);
    assert_close("w", w, (const float[]){-0.001f, 0.001f}, 2, 1e-8);
}

static void test_first_adam_step(void **state)
{
    (void)state;
    each_table(check_first_adam_step);
    check_first_adam_step(&bwi_kernels_reference);
}

/* Far from 1: no square at all, one that overflows, an epsilon of next to nothing. */
static void check_extreme_adam(const bwi_kernels *k)
{
    bwi_adam adam = {.rate = 0.01f, .epsilon = 0x1p-126f, .beta1 = 0.5, .beta2 = 0.5, .scale = 1};
    const float g[] = {0, 1e30f, 1e-15f, 3e18f}; /* the reference counts in double, where the second has a square */
    float w[] = {1, 1, 1, 1}, m[] = {0, 0, 0, 0}, v[] = {0, 0, 0, 0};
    float w0[] = {1, 1, 1, 1}, m0[] = {0, 0, 0, 0}, v0[] = {0, 0, 0, 0};
    k->adam(4, &adam, g, m, v, w);
    bwi_kernels_reference.adam(4, &adam, g, m0, v0, w0);
    assert_close("w", w + 2, w0 + 2, 2, 1e-7);
    assert_true(w[0] == 1 && w[1] == 1);
}

static void test_extreme_adam(void **state)
{
    (void)state;
    each_table(check_extreme_adam);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_relu),          cmocka_unit_test(test_add),
        cmocka_unit_test(test_lanes),         cmocka_unit_test(test_tree_by_hand),
        cmocka_unit_test(test_multiply_adds), cmocka_unit_test(test_sgd),
        cmocka_unit_test(test_adam),          cmocka_unit_test(test_first_adam_step),
        cmocka_unit_test(test_extreme_adam),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
