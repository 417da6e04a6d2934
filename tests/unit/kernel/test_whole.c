/*
 * What looks at a variable as a whole: constraints against their definition, the orthogonal penalty against differences, Muon's
 * iteration against matrices in double, Adafactor's factors against means.
 */
#include "support/kernel_check.h"

enum { ROWS = 5, COLUMNS = 7, COUNT = ROWS * COLUMNS };

static void fill(float *w, int64_t count, float phase)
{
    for (int64_t i = 0; i < count; i++) {
        w[i] = sinf(phase + 1.7F * (float)i) * (i % 5 == 2 ? 0.1F : 1);
    }
}

static const int64_t extent[2] = {ROWS, COLUMNS};
static const bwi_extents matrix = {.ndim = 2, .extent = extent, .count = COUNT};

static void test_norms_are_held(void **state)
{
    (void)state;
    float before[COUNT], w[COUNT];
    double sums[COUNT];
    fill(before, COUNT, 0.3F);
    for (unsigned axes = 1; axes <= 3; axes++) {
        bwi_constraint c = {.norms = true, .axes = axes, .low = 1.2F, .high = 1.5F, .rate = 0.7F};
        memcpy(w, before, sizeof w);
        bwi_whole_constrain(&c, &matrix, w, sums);
        for (int i = 0; i < COUNT; i++) {
            double squared = 0;
            for (int k = 0; k < COUNT; k++) {
                bool same_row = k / COLUMNS == i / COLUMNS, same_column = k % COLUMNS == i % COLUMNS;
                bool along = axes == 1 ? same_column : axes == 2 ? same_row : true;
                squared += along ? (double)before[k] * (double)before[k] : 0;
            }
            double n = sqrt(squared), held = 0.7 * fmin(fmax(n, 1.2), 1.5) + 0.3 * n;
            assert_true(fabs((double)w[i] - (double)before[i] * held / (n + 1e-7)) < 1e-6);
        }
    }
}

static void test_negative_weights_become_zero(void **state)
{
    (void)state;
    float before[COUNT], w[COUNT];
    fill(before, COUNT, 0.3F);
    memcpy(w, before, sizeof w);
    bwi_whole_constrain(&(bwi_constraint){.nonnegative = true}, &matrix, w, NULL);
    for (int i = 0; i < COUNT; i++) {
        assert_true(w[i] == fmaxf(before[i], 0)); /* NOLINT: exact */
    }
}

static void test_orthogonal_slopes(void **state)
{
    (void)state;
    float w[COUNT], g[COUNT], scratch[2 * COUNT + ROWS + COLUMNS];
    for (int of_columns = 0; of_columns < 2; of_columns++) {
        fill(w, COUNT, 0.9F);
        memset(g, 0, sizeof g);
        bwi_whole_orthogonal(3, of_columns, ROWS, COLUMNS, w, 2, g, scratch);
        for (int i = 0; i < COUNT; i++) {
            float kept = w[i], step = 1e-2F;
            w[i] = kept + step;
            double above = bwi_whole_orthogonal(3, of_columns, ROWS, COLUMNS, w, 0, NULL, scratch);
            w[i] = kept - step;
            double below = bwi_whole_orthogonal(3, of_columns, ROWS, COLUMNS, w, 0, NULL, scratch);
            w[i] = kept;
            double slope = 2 * (above - below) / (2 * (double)step);
            assert_true(fabs((double)g[i] - slope) < 2e-2);
        }
    }
    /* Rows that are orthogonal cost nothing; equal ones cost the whole factor. */
    float units[4] = {2, 0, 0, 3}, equal[4] = {1, 2, 2, 4};
    assert_true(bwi_whole_orthogonal(5, false, 2, 2, units, 0, NULL, scratch) < 1e-9);
    assert_true(fabs(bwi_whole_orthogonal(5, false, 2, 2, equal, 0, NULL, scratch) - 5) < 1e-5);
}

/* With many steps of the cubic iteration (a, b, c) = (1.5, -0.5, 0), the moved direction is orthogonal: rows of unit length. */
static void check_muon(const bwi_kernels *k, int64_t rows, int64_t columns)
{
    float g[COUNT], m[COUNT], w[COUNT];
    float *scratch = malloc((size_t)bwi_whole_muon_scratch(k, rows, columns) * sizeof *scratch);
    bwi_muon muon = {.rate = 1, .momentum = 0.5F, .a = 1.5F, .b = -0.5F, .nesterov = true, .steps = 60};
    fill(g, COUNT, 0.2F);
    memset(m, 0, sizeof m);
    memset(w, 0, sizeof w);
    bwi_whole_muon(k, &muon, rows, columns, g, m, w, scratch);
    int64_t small = rows < columns ? rows : columns, large = rows < columns ? columns : rows;
    for (int64_t a = 0; a < small; a++) {
        for (int64_t b = 0; b < small; b++) {
            double dot = 0;
            for (int64_t i = 0; i < large; i++) {
                dot += rows < columns ? (double)w[a * columns + i] * (double)w[b * columns + i]
                                      : (double)w[i * columns + a] * (double)w[i * columns + b];
            }
            assert_true(fabs(dot - (a == b)) < 1e-3);
        }
    }
    for (int i = 0; i < COUNT; i++) {
        assert_true(fabsf(m[i] - g[i]) < 1e-6F);
    }
    free(scratch);
}

static void check_both(const bwi_kernels *k)
{
    check_muon(k, ROWS, COLUMNS);
    check_muon(k, COLUMNS, ROWS);
}

static void test_muon(void **state)
{
    (void)state;
    each_table(check_both);
}

/* At the first step nothing is kept: v = (row mean)(column mean) / mean, and u has the root mean square that clips it. */
static void test_adafactor(void **state)
{
    (void)state;
    float g[COUNT], before[COUNT], r[ROWS] = {0}, c[COLUMNS] = {0}, v[COUNT], w[COUNT] = {0};
    fill(before, COUNT, 0.4F);
    memcpy(g, before, sizeof g);
    bwi_adafactor a = {.rate = 0.5F, .keep = 0, .epsilon1 = 1e-6F, .epsilon2 = 0.1F, .clip = 0.25F};
    bwi_whole_adafactor(&a, &matrix, g, r, c, v, w);
    double rows[ROWS] = {0}, columns[COLUMNS] = {0}, mean = 0, moved = 0;
    for (int i = 0; i < COUNT; i++) {
        double square = (double)before[i] * (double)before[i] + 1e-6;
        rows[i / COLUMNS] += square / COLUMNS;
        columns[i % COLUMNS] += square / ROWS;
        mean += square / COUNT;
    }
    for (int i = 0; i < COUNT; i++) {
        assert_true(fabs((double)v[i] - rows[i / COLUMNS] * columns[i % COLUMNS] / mean) < 1e-6);
        moved += (double)w[i] * (double)w[i] / COUNT;
    }
    assert_true(fabs(sqrt(moved) - 0.5 * 0.1 * 0.25) < 1e-6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_norms_are_held),    cmocka_unit_test(test_negative_weights_become_zero),
        cmocka_unit_test(test_orthogonal_slopes), cmocka_unit_test(test_muon),
        cmocka_unit_test(test_adafactor),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
