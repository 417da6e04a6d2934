/* Values of fields: by name, in the dataset's order, converted to float32; what is refused. */
#include "support/check.h"

#include <string.h>

enum { COUNT = 700 };

static void fill(int16_t *x, uint8_t *y)
{
    for (int i = 0; i < COUNT; i++) {
        x[2 * i] = (int16_t)i;
        x[2 * i + 1] = (int16_t)-i;
        y[i] = (uint8_t)(i % 7);
    }
}

static bw_dataset *open_data(bw_context *ctx, const int16_t *x, const uint8_t *y)
{
    bw_array inputs = {.data = x, .dtype = BW_I16, .ndim = 2, .shape = {COUNT, 2}};
    bw_array targets = {.data = y, .dtype = BW_U8, .ndim = 1, .shape = {COUNT}};
    return bw_from_arrays(ctx, &inputs, &targets, NULL);
}

static void test_values(void **state)
{
    (void)state;
    int16_t x[2 * COUNT];
    uint8_t y[COUNT];
    float values[2 * COUNT];
    int64_t shape[BW_MAX_NDIM];
    fill(x, y);
    bw_context *ctx = bw_open(NULL);
    bw_dataset *data = open_data(ctx, x, y);
    assert_int_equal(bw_dataset_field(data, "x", shape), 1);
    assert_int_equal(shape[0], 2);
    assert_int_equal(bw_dataset_field(data, "y", shape), 0);
    assert_int_equal(bw_dataset_field(data, "w", shape), -1);
    assert_int_equal(bw_dataset_field(data, "x_a", shape), -1);
    assert_int_equal(bw_dataset_field(NULL, "x", shape), -1);
    bw_field_facts facts;
    assert_true(bw_dataset_field_at(data, 0, &facts));
    assert_string_equal(facts.name, "x");
    assert_true(facts.dtype == BW_I32 && facts.ndim == 1 && facts.shape[0] == 2); /* of int16 */
    assert_true(bw_dataset_field_at(data, 1, &facts));
    assert_string_equal(facts.name, "y");
    assert_true(facts.dtype == BW_I32 && facts.ndim == 0); /* of uint8: only inputs of 8 bits become float32 */
    assert_false(bw_dataset_field_at(data, 2, &facts));
    assert_false(bw_dataset_field_at(NULL, 0, &facts));
    check_ok(ctx, bw_dataset_values(data, "x", 0, COUNT, values, 2 * COUNT));
    for (int i = 0; i < COUNT; i++) {
        assert_true(values[2 * i] == (float)i && values[2 * i + 1] == (float)-i);
    }
    check_ok(ctx, bw_dataset_values(data, "y", 300, 400, values, 400));
    for (int i = 0; i < 400; i++) {
        assert_true(values[i] == (float)((300 + i) % 7));
    }
    check_ok(ctx, bw_dataset_values(data, "y", COUNT, 0, NULL, 0));
    bw_close(ctx);
}

/* Inputs and targets of a shuffled dataset stand in the same order, which is a permutation. */
static void test_order(void **state)
{
    (void)state;
    int16_t x[2 * COUNT];
    uint8_t y[COUNT];
    float inputs[2 * COUNT], targets[COUNT];
    bool seen[COUNT] = {false}, moved = false;
    fill(x, y);
    bw_context *ctx = bw_open(NULL);
    bw_dataset *data = bw_shuffle(open_data(ctx, x, y), 3);
    check_ok(ctx, bw_dataset_values(data, "x", 0, COUNT, inputs, 2 * COUNT));
    check_ok(ctx, bw_dataset_values(data, "y", 0, COUNT, targets, COUNT));
    for (int i = 0; i < COUNT; i++) {
        int number = (int)inputs[2 * i];
        assert_false(seen[number]);
        seen[number] = true;
        moved = moved || number != i;
        assert_true(targets[i] == (float)(number % 7));
    }
    assert_true(moved);
    bw_close(ctx);
}

static void test_refusals(void **state)
{
    (void)state;
    int16_t x[2 * COUNT];
    uint8_t y[COUNT];
    float values[2 * COUNT];
    fill(x, y);
    bw_context *ctx = bw_open(NULL);
    bw_dataset *data = open_data(ctx, x, y);
    check_fails(ctx, bw_dataset_values(data, "z", 0, 1, values, 1), BW_NOT_FOUND, "no field z");
    check_fails(ctx, bw_dataset_values(data, "y", 0, COUNT + 1, values, COUNT + 1), BW_OUT_OF_RANGE, "700|701");
    check_fails(ctx, bw_dataset_values(data, "y", -1, 1, values, 1), BW_OUT_OF_RANGE, "-1");
    check_fails(ctx, bw_dataset_values(data, "y", 1, -1, values, 1), BW_OUT_OF_RANGE, "-1");
    check_fails(ctx, bw_dataset_values(data, "x", 0, 3, values, 3), BW_INVALID_ARGUMENT, "6|3");
    check_fails(ctx, bw_dataset_values(data, "x", 0, 3, NULL, 6), BW_INVALID_ARGUMENT, "x");
    assert_int_equal(bw_dataset_values(NULL, "x", 0, 0, NULL, 0), BW_INVALID_ARGUMENT);
    bw_close(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_order),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
