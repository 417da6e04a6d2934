/* Gathering against plain loops over the formula of the layout: types, layouts, strides, alignment, scale, whole numbers. */
#include "data_test.h"

#include <math.h>

#define SAMPLES 7
#define CANARY 1234567.0f

static const int64_t order[] = {3, 0, 6, 6, 1, 5, 2, 4, 0};
#define ROWS ((int64_t)BWI_COUNT(order))

/* Puts a small whole number at `to` as a value of the type. */
static void put(unsigned char *to, bw_dtype dtype, int value)
{
    uint8_t u8 = (uint8_t)value;
    int8_t i8 = (int8_t)value;
    uint16_t u16 = (uint16_t)value;
    int16_t i16 = (int16_t)value;
    uint32_t u32 = (uint32_t)value;
    int32_t i32 = value;
    uint64_t u64 = (uint64_t)value;
    int64_t i64 = value;
    float f32 = (float)value;
    double f64 = value;
    uint8_t truth = value & 1;
    uint16_t f16 = 0;
    for (int exponent = 0; value != 0 && exponent < 10; exponent++) { /* value = 2^exponent * (1 + rest / 2^exponent) */
        int size = value < 0 ? -value : value;
        if (size >> exponent == 1) {
            f16 = (uint16_t)((value < 0 ? 0x8000 : 0) | (exponent + 15) << 10 | (size - (1 << exponent)) << (10 - exponent));
        }
    }
    const void *const values[] = {&u8, &i8, &u16, &i16, &u32, &i32, &u64, &i64, &f16, &f32, &f64, &truth};
    memcpy(to, values[dtype], bwi_dtype_size(dtype));
}

static int value_of(bw_dtype dtype, int64_t k)
{
    int value = (int)(k * 7 % 101);
    if (dtype == BW_BOOL) {
        return value & 1;
    }
    return dtype == BW_U8 || dtype == BW_U16 || dtype == BW_U32 || dtype == BW_U64 ? value : value - 50;
}

/* How the axes of (sample, h, w, c) lie in memory, the slowest first, and the gap after each innermost run. */
typedef struct form {
    int axes[4];
    int64_t gap;
    bool backward; /* the second axis has a negative stride */
    int64_t shift; /* of the first byte: no alignment */
} form;

static const form forms[] = {
    {{0, 1, 2, 3}, 0, false, 0}, /* row-major */
    {{0, 1, 2, 3}, 0, false, 1}, /* without alignment */
    {{3, 2, 1, 0}, 0, false, 0}, /* Fortran */
    {{0, 3, 1, 2}, 0, false, 0}, /* channels first */
    {{0, 1, 2, 3}, 5, false, 3}, /* a slice */
    {{0, 1, 2, 3}, 0, true, 0},  /* reversed */
};

static unsigned char *make(bw_array *array, bw_dtype dtype, const int64_t *shape, const form *f)
{
    int64_t bytes = (int64_t)bwi_dtype_size(dtype), start = f->shift;
    *array = (bw_array){.dtype = dtype, .ndim = 4};
    memcpy(array->shape, shape, 4 * sizeof *shape);
    for (int i = 3; i >= 0; i--) {
        array->strides[f->axes[i]] = bytes;
        bytes = bytes * shape[f->axes[i]] + (i == 3 ? f->gap : 0);
    }
    if (f->backward) {
        start += array->strides[1] * (shape[1] - 1);
        array->strides[1] = -array->strides[1];
    }
    unsigned char *memory = malloc((size_t)(bytes + f->shift));
    memset(memory, 0xa5, (size_t)(bytes + f->shift));
    array->data = memory + start;
    for (int64_t k = 0; k < shape[0] * shape[1] * shape[2] * shape[3]; k++) {
        int64_t c = k % shape[3], w = k / shape[3] % shape[2], h = k / shape[3] / shape[2] % shape[1];
        int64_t s = k / shape[3] / shape[2] / shape[1];
        put(memory + start + s * array->strides[0] + h * array->strides[1] + w * array->strides[2] + c * array->strides[3], dtype,
            value_of(dtype, k));
    }
    return memory;
}

/* Value k of the sample at `row` in the destination, or 0 for padding, by the formula alone. */
static void check(const float *to, const int32_t *whole, bw_dtype dtype, const int64_t *shape, int64_t block, double scale)
{
    int64_t pixels = shape[1] * shape[2], c = shape[3], blocks = (c + block - 1) / block;
    for (int64_t at = 0; at < ROWS * blocks * pixels * block; at++) {
        int64_t inner = at % block, pixel = at / block % pixels, outer = at / block / pixels % blocks;
        int64_t row = at / block / pixels / blocks, channel = outer * block + inner;
        float expected = 0;
        if (channel < c) {
            expected = (float)value_of(dtype, (order[row] * pixels + pixel) * c + channel) * (float)scale;
        }
        if (to && to[at] != expected) {
            fail_msg("%s, block %lld: %g at %lld, expected %g", bwi_dtype_name(dtype), (long long)block, (double)to[at],
                     (long long)at, (double)expected);
        }
        if (whole && whole[at] != (int32_t)expected) {
            fail_msg("%s, block %lld: %d at %lld, expected %g", bwi_dtype_name(dtype), (long long)block, whole[at], (long long)at,
                     (double)expected);
        }
    }
}

static void check_gather(const bw_array *array, double scale)
{
    static const int64_t blocks[] = {0, 1, 4, 8, 16};
    const int64_t *shape = array->shape;
    world w = {0};
    assert_true(world_begin(&w, NULL, 0));
    bw_dataset *dataset = bw_from_arrays(w.ctx, array, array, NULL);
    if (!dataset) {
        fail_msg("%s", bw_message(w.ctx));
    }
    for (size_t i = 0; i < BWI_COUNT(blocks); i++) {
        int64_t block = blocks[i] ? blocks[i] : shape[3];
        int64_t size = ROWS * shape[1] * shape[2] * ((shape[3] + block - 1) / block) * block;
        float *to = malloc((size_t)(size + 1) * sizeof *to);
        for (int64_t k = 0; k <= size; k++) {
            to[k] = CANARY;
        }
        bwi_destination d = {.kernels = bwi_kernels_host()->gather,
                             .data = to,
                             .dtype = BW_F32,
                             .h = shape[1],
                             .w = shape[2],
                             .c = shape[3],
                             .block = block};
        assert_int_equal(bwi_dataset_gather(dataset, 0, 0, order, ROWS, &d, NULL), BW_OK);
        check(to, NULL, array->dtype, shape, block, scale);
        assert_true(to[size] == CANARY);
        int32_t *whole = malloc((size_t)size * sizeof *whole);
        d.data = whole;
        d.dtype = BW_I32;
        assert_int_equal(bwi_dataset_gather(dataset, 1, 0, order, ROWS, &d, NULL), BW_OK);
        check(NULL, whole, array->dtype, shape, block, 1);
        free(to);
        free(whole);
    }
    world_end(&w);
}

static void test_layouts(void **state)
{
    (void)state;
    static const int64_t shapes[][4] = {
        {SAMPLES, 3, 5, 1}, {SAMPLES, 4, 2, 3}, {SAMPLES, 2, 3, 8}, {SAMPLES, 1, 1, 19}, {SAMPLES, 2, 2, 21}};
    for (int dtype = BW_U8; dtype <= BW_BOOL; dtype++) {
        for (size_t shape = 0; shape < BWI_COUNT(shapes); shape++) {
            for (size_t i = 0; i < BWI_COUNT(forms); i++) {
                bw_array array;
                unsigned char *memory = make(&array, (bw_dtype)dtype, shapes[shape], &forms[i]);
                check_gather(&array, 1);
                free(memory);
            }
        }
    }
}

/* A sample of any rank fits a destination of as many values; one more or less is refused. */
static void test_ranks(void **state)
{
    (void)state;
    float values[SAMPLES * 12], to[ROWS * 12];
    for (int i = 0; i < SAMPLES * 12; i++) {
        values[i] = (float)i;
    }
    bw_array x = {.data = values, .dtype = BW_F32, .ndim = 3, .shape = {SAMPLES, 3, 4}};
    bw_array y = {.data = values, .dtype = BW_F32, .ndim = 1, .shape = {SAMPLES}};
    world w = {0};
    assert_true(world_begin(&w, NULL, 0));
    bw_dataset *dataset = bw_from_arrays(w.ctx, &x, &y, NULL);
    bwi_destination d = {.kernels = bwi_kernels_host()->gather, .data = to, .dtype = BW_F32, .h = 3, .w = 4, .c = 1, .block = 1};
    assert_int_equal(bwi_dataset_gather(dataset, 0, 0, order, ROWS, &d, NULL), BW_OK);
    for (int64_t i = 0; i < ROWS * 12; i++) {
        assert_true(to[i] == (float)(order[i / 12] * 12 + i % 12));
    }
    d = bwi_host_destination(to, BW_F32, 12);
    assert_int_equal(bwi_dataset_gather(dataset, 0, 0, order, ROWS, &d, NULL), BW_OK);
    assert_true(to[13] == (float)(order[1] * 12 + 1));
    d.c = 1, d.block = 1;
    assert_int_equal(bwi_dataset_gather(dataset, 1, 0, order, ROWS, &d, NULL), BW_OK);
    for (int64_t i = 0; i < ROWS; i++) {
        assert_true(to[i] == (float)order[i]);
    }
    const bwi_gather_kernels *k = bwi_kernels_host()->gather;
    const bwi_destination bad[] = {
        {k, to, BW_F32, 1, 1, 11, 11, false}, {k, to, BW_F32, 1, 1, 13, 13, false},   {k, to, BW_F64, 1, 1, 12, 12, false},
        {k, to, BW_F32, 1, 1, 12, 0, false},  {k, NULL, BW_F32, 1, 1, 12, 12, false}, {k, to, BW_F32, INT64_MAX, 3, 4, 4, false},
        {k, to, BW_F32, -3, -4, 1, 1, false},
    };
    for (size_t i = 0; i < BWI_COUNT(bad); i++) {
        assert_int_equal(bwi_dataset_gather(dataset, 0, 0, order, ROWS, &bad[i], NULL), BW_INVALID_ARGUMENT);
    }
    const int64_t outside[] = {-1, SAMPLES};
    for (int i = 0; i < 2; i++) {
        assert_int_equal(bwi_dataset_gather(dataset, 1, 0, &outside[i], 1, &d, NULL), BW_INVALID_ARGUMENT);
    }
    assert_int_equal(bwi_dataset_gather(dataset, 2, 0, order, 1, &d, NULL), BW_INVALID_ARGUMENT);
    assert_int_equal(bwi_dataset_gather(dataset, -1, 0, order, 1, &d, NULL), BW_INVALID_ARGUMENT);
    world_end(&w);
}

/* Every half there is, against its definition. */
static void test_halves(void **state)
{
    (void)state;
    uint16_t *halves = malloc(65536 * sizeof *halves);
    float *to = malloc(65536 * sizeof *to);
    for (int i = 0; i < 65536; i++) {
        halves[i] = (uint16_t)i;
    }
    bw_array x = {.data = halves, .dtype = BW_F16, .ndim = 2, .shape = {1, 65536}};
    world w = {0};
    assert_true(world_begin(&w, NULL, 0));
    bw_dataset *dataset = bw_from_arrays(w.ctx, &x, NULL, NULL);
    bwi_destination d = bwi_host_destination(to, BW_F32, 65536);
    assert_int_equal(bwi_dataset_gather(dataset, 0, 0, &(int64_t){0}, 1, &d, NULL), BW_OK);
    for (int i = 0; i < 65536; i++) {
        int exponent = i >> 10 & 31, fraction = i & 1023;
        double expected = exponent == 0 ? ldexp(fraction, -24) : ldexp(1024 + fraction, exponent - 25);
        if (exponent == 31) {
            expected = fraction ? (double)NAN : (double)INFINITY;
        }
        if (i & 0x8000) {
            expected = -expected;
        }
        if (isnan(expected)) {
            assert_true(isnan(to[i]));
        } else {
            assert_true((double)to[i] == expected && !signbit(to[i]) == !signbit(expected));
        }
    }
    free(halves);
    free(to);
    world_end(&w);
}

static void test_whole_numbers(void **state)
{
    (void)state;
    const double values[] = {0,   -2147483648.0, 2147483647.0,     2147483648.0, -2147483649.0,
                             0.5, (double)NAN,   (double)INFINITY, 1e300,        -0.0};
    const bool fits[] = {true, true, true, false, false, false, false, false, false, true};
    const int64_t wide[] = {INT64_MIN, INT64_MAX, 2147483648LL, 2147483647LL, (1LL << 32) + 5};
    const bool wide_fits[] = {false, false, false, true, false};
    const uint32_t unsigned_values[] = {2147483647u, 2147483648u, 4294967295u};
    const bw_array arrays[] = {{.data = values, .dtype = BW_F64, .ndim = 1, .shape = {10}},
                               {.data = wide, .dtype = BW_I64, .ndim = 1, .shape = {5}},
                               {.data = unsigned_values, .dtype = BW_U32, .ndim = 1, .shape = {3}}};
    for (size_t i = 0; i < BWI_COUNT(arrays); i++) {
        world w = {0};
        assert_true(world_begin(&w, NULL, 0));
        bw_dataset *dataset = bw_from_arrays(w.ctx, &arrays[i], NULL, NULL);
        for (int64_t k = 0; k < arrays[i].shape[0]; k++) {
            int32_t to = 77;
            bwi_destination d = bwi_host_destination(&to, BW_I32, 1);
            bool fit = i == 0 ? fits[k] : i == 1 ? wide_fits[k] : k == 0;
            assert_int_equal(bwi_dataset_gather(dataset, 0, 0, &k, 1, &d, NULL), fit ? BW_OK : BW_INVALID_ARGUMENT);
            if (fit && i == 0) {
                assert_true((double)to == values[k]);
            }
            if (fit && i > 0) {
                assert_int_equal(to, 2147483647);
            }
        }
        world_end(&w);
    }
}

/* NaN, infinity and the sign of zero stay as they are, bit by bit. */
static void test_floats_pass(void **state)
{
    (void)state;
    const uint32_t bits[] = {0x7fc01234, 0x7f800000, 0xff800000, 0x80000000, 0x00000001, 0x3f800000};
    uint32_t to[6];
    bw_array x = {.data = bits, .dtype = BW_F32, .ndim = 2, .shape = {1, 6}};
    world w = {0};
    assert_true(world_begin(&w, NULL, 0));
    bw_dataset *dataset = bw_from_arrays(w.ctx, &x, NULL, NULL);
    bwi_destination d = bwi_host_destination(to, BW_F32, 6);
    assert_int_equal(bwi_dataset_gather(dataset, 0, 0, &(int64_t){0}, 1, &d, NULL), BW_OK);
    assert_memory_equal(to, bits, sizeof bits);
    world_end(&w);
}

/* Inputs are scaled, targets and weights are not. */
static void test_scale(void **state)
{
    (void)state;
    static const char *const names[] = {"uint8_stored.npz", "float32_stored.npz", "float64_deflated.npz"};
    static const float firsts[] = {0.0f, -49.5f, -49.5f};
    for (size_t i = 0; i < BWI_COUNT(names); i++) {
        world w = {0};
        size_t size;
        int64_t count;
        unsigned char *bytes = load(BW_TEST_DATA, names[i], &size);
        bw_read_options options = BW_READ_OPTIONS_DEFAULT;
        options.scale = 0.25;
        assert_true(world_begin(&w, bytes, size));
        bw_dataset *dataset = bw_read(w.ctx, names[i], &options);
        float *x = gather_all(dataset, 0, &count);
        for (int64_t k = 0; k < count; k++) {
            assert_true(x[k] == (firsts[i] + (float)(k % 101)) / 4);
        }
        float *y = gather_all(dataset, 1, &count);
        assert_true(y[4] == 4.0f);
        float *weights = gather_all(dataset, 2, &count);
        assert_true(weights[3] == 0.75f);
        free(x);
        free(y);
        free(weights);
        free(bytes);
        world_end(&w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_layouts),       cmocka_unit_test(test_ranks),       cmocka_unit_test(test_halves),
        cmocka_unit_test(test_whole_numbers), cmocka_unit_test(test_floats_pass), cmocka_unit_test(test_scale),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
