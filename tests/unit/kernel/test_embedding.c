/* Rows by index, records of them, masks: with indices of both types, and those that no row has. */
#include "support/kernel_check.h"

enum { ROWS = 11 };

static const int64_t widths[] = {1, 3, 8, 17}, counts[] = {1, 2, 7, 8, 9, 31};

static void *indices_of(bw_dtype dtype, const int64_t *index, int64_t count)
{
    int32_t *whole = input_bytes((size_t)count * sizeof *whole);
    float *real = input_bytes((size_t)count * sizeof *real);
    for (int64_t i = 0; i < count; i++) {
        whole[i] = (int32_t)index[i];
        real[i] = (float)index[i];
    }
    free(dtype == BW_I32 ? (void *)real : (void *)whole);
    return dtype == BW_I32 ? (void *)whole : (void *)real;
}

static void check_rows(const bwi_kernels *k, bw_dtype dtype, int64_t count, int64_t width)
{
    int64_t index[31];
    for (int64_t i = 0; i < count; i++) {
        index[i] = random_below(ROWS);
    }
    void *indices = indices_of(dtype, index, count);
    float *table = input_floats(ROWS * width), *to = output_floats(count * width), *mask = output_floats(count);
    float *values = output_floats(count * width);
    double *rows = output_bytes((size_t)count * sizeof *rows);
    assert_int_equal(k->embedding->lookup(dtype, count, ROWS, width, indices, table, to), -1);
    k->embedding->record(dtype, count, width, indices, to, rows, values);
    k->embedding->mask(dtype, count, indices, mask);
    for (int64_t i = 0; i < count; i++) {
        for (int64_t j = 0; j < width; j++) {
            assert_true(to[i * width + j] == table[index[i] * width + j]);
            assert_true(values[i * width + j] == to[i * width + j]);
        }
        assert_true(rows[i] == (double)index[i]);
        assert_true(mask[i] == (index[i] == 0 ? 0.0F : 1.0F));
    }
    free(indices);
    free(table);
    output_floats_free(to, count * width);
    output_floats_free(mask, count);
    output_floats_free(values, count * width);
    output_free(rows, (size_t)count * sizeof *rows);
}

static void check_table(const bwi_kernels *k)
{
    for (size_t c = 0; c < BWI_COUNT(counts); c++) {
        for (size_t w = 0; w < BWI_COUNT(widths); w++) {
            check_rows(k, BW_I32, counts[c], widths[w]);
            check_rows(k, BW_F32, counts[c], widths[w]);
        }
    }
}

static void test_rows(void **state)
{
    (void)state;
    each_table(check_table);
}

static void check_refused(const bwi_kernels *k)
{
    float table[ROWS * 2] = {0}, to[5 * 2];
    static const int32_t wholes[] = {-1, ROWS, INT32_MAX, INT32_MIN};
    const float reals[] = {-1, ROWS, 0.5F, 16777216, (float)NAN, INFINITY, -INFINITY};
    for (size_t i = 0; i < BWI_COUNT(wholes); i++) {
        for (int at = 0; at < 5; at++) {
            int32_t indices[5] = {0, 3, 10, 1, 2};
            indices[at] = wholes[i];
            assert_int_equal(k->embedding->lookup(BW_I32, 5, ROWS, 2, indices, table, to), at);
        }
    }
    for (size_t i = 0; i < BWI_COUNT(reals); i++) {
        for (int at = 0; at < 5; at++) {
            float indices[5] = {0, 3, 10, 1, 2};
            indices[at] = reals[i];
            assert_int_equal(k->embedding->lookup(BW_F32, 5, ROWS, 2, indices, table, to), at);
        }
    }
}

static void test_refused(void **state)
{
    (void)state;
    each_table(check_refused);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
