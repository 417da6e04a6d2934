/* Gathering against its definition: value k of a row, converted by a switch over the types, at the place that the formula gives. */
#include "support/kernel_check.h"

enum { ROWS = 7 };

/* What value k of a row is, as a double. */
static double value_of(bw_dtype dtype, const unsigned char *at)
{
    union {
        uint8_t u8;
        int8_t i8;
        uint16_t u16;
        int16_t i16;
        uint32_t u32;
        int32_t i32;
        uint64_t u64;
        int64_t i64;
        float f32;
        double f64;
    } v;
    memcpy(&v, at, bwi_dtype_size(dtype));
    switch (dtype) {
    case BW_U8:
        return v.u8;
    case BW_I8:
        return v.i8;
    case BW_U16:
        return v.u16;
    case BW_I16:
        return v.i16;
    case BW_U32:
        return v.u32;
    case BW_I32:
        return v.i32;
    case BW_U64:
        return (double)v.u64;
    case BW_I64:
        return (double)v.i64;
    case BW_F32:
        return (double)v.f32;
    case BW_F64:
        return v.f64;
    case BW_BOOL:
        return v.u8 ? 1 : 0;
    case BW_TEXT:
    case BW_F16:
        break;
    }
    int exponent = v.u16 >> 10 & 31, fraction = v.u16 & 0x3ff;
    double sign = v.u16 & 0x8000 ? -1 : 1;
    return exponent ? sign * ldexp(1024 + fraction, exponent - 25) : sign * ldexp(fraction, -24);
}

/* Small values, so that all types hold them and floats hold them exactly; they fill whole bytes of the wider types too. */
static void fill_values(bw_dtype dtype, unsigned char *to, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        int whole = (int)random_below(100);
        uint64_t bits = dtype == BW_BOOL ? (uint64_t)(whole % 2) : (uint64_t)whole;
        float single = random_float();
        double twice = (double)random_float();
        uint16_t half = (uint16_t)(random_word() & 0xbbff); /* no infinities */
        const void *from = dtype == BW_F32 ? (const void *)&single : dtype == BW_F64 ? (const void *)&twice : &bits;
        from = dtype == BW_F16 ? &half : from;
        memcpy(to + i * (int64_t)bwi_dtype_size(dtype), from, bwi_dtype_size(dtype));
    }
}

static int64_t place_of(const bwi_destination *to, int64_t k)
{
    int64_t pixel = k / to->c, channel = k % to->c;
    return (channel / to->block * to->h * to->w + pixel) * to->block + channel % to->block;
}

/* Rows with a gap behind each and, if asked for, between the values. */
static void check_one(const bwi_kernels *k, bw_dtype dtype, int64_t h, int64_t w, int64_t c, int64_t block, double scale, int gaps)
{
    int64_t size = (int64_t)bwi_dtype_size(dtype), stride = size * (1 + gaps), values = h * w * c, step = values * stride + 3;
    unsigned char *data = input_bytes((size_t)(step * ROWS));
    const int64_t rows[] = {3, 0, ROWS - 1, 3, 2};
    int64_t n = (int64_t)BWI_COUNT(rows);
    bwi_host_rows from = {.data = data, .dtype = dtype, .axes = 1, .values = values, .step = step, .scale = scale};
    bwi_destination to = {.kernels = k->gather, .dtype = BW_F32, .h = h, .w = w, .c = c, .block = block};
    int64_t sample = bwi_destination_values(&to);
    float *found = output_floats(n * sample), *expected = input_floats(n * sample);
    from.extent[0] = values;
    from.stride[0] = stride;
    to.data = found;
    for (int64_t i = 0; i < ROWS; i++) {
        fill_values(dtype, data + i * step, values * (1 + gaps));
    }
    memset(expected, 0, (size_t)(n * sample) * sizeof *expected);
    for (int64_t i = 0; i < n; i++) {
        for (int64_t v = 0; v < values; v++) {
            double value = value_of(dtype, data + rows[i] * step + v * stride);
            expected[i * sample + place_of(&to, v)] = dtype == BW_F64 ? (float)(value * scale) : (float)value * (float)scale;
        }
    }
    assert_int_equal(k->gather->rows(&from, rows, n, &to), BWI_GATHERED);
    assert_memory_equal(found, expected, (size_t)(n * sample) * sizeof *found);
    output_floats_free(found, n * sample);
    free(expected);
    free(data);
}

static void check_rows(const bwi_kernels *k)
{
    static const int64_t shapes[][4] = {{1, 1, 1, 1},   {1, 1, 2, 2},   {1, 1, 3, 3},   {1, 1, 5, 5},
                                        {1, 1, 31, 31}, {1, 1, 33, 33}, {1, 1, 33, 16}, {3, 5, 3, 16},
                                        {5, 3, 17, 16}, {4, 3, 17, 1},  {7, 7, 1, 8},   {2, 3, 9, 9}};
    for (bw_dtype dtype = BW_U8; dtype <= BW_BOOL; dtype++) {
        for (size_t s = 0; s < BWI_COUNT(shapes); s++) {
            for (int gaps = 0; gaps < 2; gaps++) {
                check_one(k, dtype, shapes[s][0], shapes[s][1], shapes[s][2], shapes[s][3], 1, gaps);
                check_one(k, dtype, shapes[s][0], shapes[s][1], shapes[s][2], shapes[s][3], 1 / 255.0, gaps);
            }
        }
    }
}

/* The first row with a value that int32 cannot hold; destinations of another size; sequences that are shorter and longer. */
static void check_results(const bwi_kernels *k)
{
    double data[] = {1, 2, 3, 4, 0.5, 6, 7, 8};
    int32_t found[4];
    float cut[3];
    bwi_host_rows from = {.data = (const unsigned char *)data,
                          .dtype = BW_F64,
                          .axes = 1,
                          .values = 2,
                          .step = 16,
                          .extent = {2},
                          .stride = {8},
                          .scale = 1};
    bwi_destination to = {.kernels = k->gather, .data = found, .dtype = BW_I32, .h = 1, .w = 1, .c = 2, .block = 2};
    assert_int_equal(k->gather->rows(&from, (const int64_t[]){3, 1}, 2, &to), BWI_GATHERED);
    assert_memory_equal(found, ((const int32_t[]){7, 8, 3, 4}), sizeof found);
    assert_int_equal(k->gather->rows(&from, (const int64_t[]){0, 2}, 2, &to), 1);
    to.c = to.block = 3;
    to.data = cut;
    to.dtype = BW_F32;
    assert_int_equal(k->gather->rows(&from, (const int64_t[]){0}, 1, &to), BWI_GATHER_MISFIT);
    to.sequence = true;
    assert_int_equal(k->gather->rows(&from, (const int64_t[]){0}, 1, &to), BWI_GATHERED);
    assert_memory_equal(cut, ((const float[]){1, 2, 0}), sizeof cut);
    to.c = to.block = 1;
    cut[1] = 9;
    assert_int_equal(k->gather->rows(&from, (const int64_t[]){1}, 1, &to), BWI_GATHERED);
    assert_true(cut[0] == 3 && cut[1] == 9);
}

static void check_one_hot(const bwi_kernels *k)
{
    const int32_t classes[] = {4, 0, 2};
    for (int64_t block = 1; block <= 8; block++) {
        bwi_destination to = {.kernels = k->gather, .dtype = BW_F32, .h = 1, .w = 1, .c = 5, .block = block};
        int64_t sample = bwi_destination_values(&to);
        float *found = output_floats(3 * sample);
        to.data = found;
        k->gather->one_hot(classes, 3, &to);
        for (int64_t i = 0; i < 3 * sample; i++) {
            assert_true(found[i] == (i % sample == place_of(&to, classes[i / sample]) ? 1 : 0));
        }
        output_floats_free(found, 3 * sample);
    }
}

static void check_affine(const bwi_kernels *k)
{
    static const int64_t shapes[][5] = {{1, 1, 19, 19, 19}, {3, 5, 3, 3, 3},   {3, 5, 3, 16, 3}, {5, 3, 17, 8, 17},
                                        {3, 5, 6, 6, 3},    {1, 1, 30, 16, 3}, {2, 2, 1, 1, 1}};
    for (size_t s = 0; s < BWI_COUNT(shapes); s++) {
        int64_t count = shapes[s][4], n = 3;
        bwi_destination to = {
            .kernels = k->gather, .dtype = BW_F32, .h = shapes[s][0], .w = shapes[s][1], .c = shapes[s][2], .block = shapes[s][3]};
        int64_t sample = bwi_destination_values(&to), values = to.h * to.w * to.c;
        float *offset = input_floats(count), *factor = input_floats(count), *x = input_floats(n * sample);
        float *found = output_copy(x, n * sample);
        to.data = found;
        k->gather->affine(offset, factor, count, n, &to);
        for (int64_t i = 0; i < n; i++) {
            for (int64_t v = 0; v < values; v++) {
                float *at = &x[i * sample + place_of(&to, v)];
                *at = (*at - offset[v % count]) * factor[v % count];
            }
        }
        assert_memory_equal(found, x, (size_t)(n * sample) * sizeof *x);
        output_floats_free(found, n * sample);
        free(x);
        free(offset);
        free(factor);
    }
}

static void test_rows(void **state)
{
    (void)state;
    each_table(check_rows);
}

static void test_results(void **state)
{
    (void)state;
    each_table(check_results);
}

static void test_one_hot(void **state)
{
    (void)state;
    each_table(check_one_hot);
}

static void test_affine(void **state)
{
    (void)state;
    each_table(check_affine);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_results),
        cmocka_unit_test(test_one_hot),
        cmocka_unit_test(test_affine),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
