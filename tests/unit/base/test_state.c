/* Named values, and the table of types. */
#include "faults.h"

#include <setjmp.h>
#include <string.h>
#include <cmocka.h>

static void test_types(void **state)
{
    (void)state;
    static const struct {
        bw_dtype dtype;
        const char *name;
        size_t size;
    } types[] = {{BW_U8, "uint8", sizeof(uint8_t)},    {BW_I8, "int8", sizeof(int8_t)},      {BW_U16, "uint16", sizeof(uint16_t)},
                 {BW_I16, "int16", sizeof(int16_t)},   {BW_U32, "uint32", sizeof(uint32_t)}, {BW_I32, "int32", sizeof(int32_t)},
                 {BW_U64, "uint64", sizeof(uint64_t)}, {BW_I64, "int64", sizeof(int64_t)},   {BW_F16, "float16", 2},
                 {BW_F32, "float32", sizeof(float)},   {BW_F64, "float64", sizeof(double)},  {BW_BOOL, "bool", 1}};
    for (size_t i = 0; i < BWI_COUNT(types); i++) {
        assert_string_equal(bwi_dtype_name(types[i].dtype), types[i].name);
        assert_int_equal(bwi_dtype_size(types[i].dtype), types[i].size);
    }
    assert_int_equal(bwi_dtype_size((bw_dtype)99), 0);
    assert_string_equal(bwi_dtype_name((bw_dtype)99), "unknown");
}

/* A value that is kept as another type. */
static void get_step(void *object, void *values)
{
    *(int64_t *)values = *(int *)object;
}

static void set_step(void *object, const void *values)
{
    *(int *)object = (int)*(const int64_t *)values;
}

static void test_values(void **state)
{
    (void)state;
    faults memory = {0};
    bw_context *ctx = faults_context(&memory, NULL, 1);
    bwi_state values = {.ctx = ctx};
    float weights[6] = {1, 2, 3, 4, 5, 6};
    int step = 7, rows[100];
    for (int i = 0; i < 100; i++) {
        rows[i] = i;
        assert_non_null(bwi_state_add(&values, BW_I32, 0, NULL, &rows[i], "row/%d", i));
    }
    assert_non_null(bwi_state_add(&values, BW_F32, 2, (const int64_t[]){2, 3}, weights, "weights"));
    bwi_state_value *added = bwi_state_add(&values, BW_I64, 1, (const int64_t[]){1}, NULL, "step");
    added->object = &step;
    added->get = get_step;
    added->set = set_step;
    assert_non_null(bwi_state_add(&values, BW_U8, 1, (const int64_t[]){0}, NULL, "nothing"));
    assert_int_equal(values.count, 103);
    assert_false(values.failed);

    const bwi_state_value *found = bwi_state_find(&values, "weights");
    assert_int_equal(bwi_state_bytes(found), 24);
    float copy[6] = {0}, other[6] = {6, 5, 4, 3, 2, 1};
    bwi_state_read(found, copy);
    assert_memory_equal(copy, weights, sizeof copy);
    bwi_state_write(found, other);
    assert_memory_equal(weights, other, sizeof other);

    int64_t number = 0;
    found = bwi_state_find(&values, "step");
    bwi_state_read(found, &number);
    assert_int_equal(number, 7);
    number = 9;
    bwi_state_write(found, &number);
    assert_int_equal(step, 9);

    int row = 0;
    bwi_state_read(bwi_state_find(&values, "row/42"), &row);
    assert_int_equal(row, 42);
    bwi_state_read(bwi_state_find(&values, "nothing"), NULL);
    assert_int_equal(bwi_state_bytes(bwi_state_find(&values, "nothing")), 0);
    assert_null(bwi_state_find(&values, "row/100"));
    bwi_state_free(&values);
    assert_int_equal(values.count, 0);
    bw_close(ctx);
    assert_int_equal(memory.blocks, 0);
}

static void test_refused(void **state)
{
    (void)state;
    bw_context *ctx = bw_open(NULL);
    float x = 0;
    char name[97];
    memset(name, 'n', 96);
    name[96] = 0;
    const int64_t huge[] = {INT64_MAX, INT64_MAX}, negative[] = {-1};
    for (int i = 0; i < 7; i++) {
        bwi_state values = {.ctx = ctx};
        assert_non_null(bwi_state_add(&values, BW_F32, 0, NULL, &x, "x"));
        bwi_state_value *got = i == 0   ? bwi_state_add(&values, BW_F32, 0, NULL, &x, "%s", name)
                               : i == 1 ? bwi_state_add(&values, BW_F32, 0, NULL, &x, "%s", "")
                               : i == 2 ? bwi_state_add(&values, BW_F32, 0, NULL, &x, "%s", "x")
                               : i == 3 ? bwi_state_add(&values, BW_F32, 2, huge, &x, "y")
                               : i == 4 ? bwi_state_add(&values, BW_F32, 1, negative, &x, "y")
                               : i == 5 ? bwi_state_add(&values, BW_F32, BW_MAX_NDIM + 1, huge, &x, "y")
                                        : bwi_state_add(&values, (bw_dtype)50, 0, NULL, &x, "y");
        assert_null(got);
        assert_true(values.failed);
        assert_int_equal(values.count, 1);
        bwi_state_free(&values);
    }
    bwi_state values = {.ctx = ctx};
    assert_non_null(bwi_state_add(&values, BW_F32, 0, NULL, &x, "%s", name + 1)); /* 95 is the longest */
    bwi_state_free(&values);
    bw_close(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_types),
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
