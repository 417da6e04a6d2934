/* Samples from arrays in memory: what is accepted, what is refused and how it is said. */
#include "data_test.h"

static const float values[24] = {0};

static bw_array good(void)
{
    return (bw_array){.data = values, .dtype = BW_F32, .ndim = 3, .shape = {4, 3, 2}};
}

static void test_accepted(void **state)
{
    (void)state;
    world w = {0};
    bw_array x = good();
    bw_array y = {.data = values, .dtype = BW_U8, .ndim = 1, .shape = {4}};
    bw_array weights = {.data = values, .dtype = BW_F64, .ndim = 1, .shape = {4}};
    assert_true(world_begin(&w, NULL, 0));
    bw_dataset *dataset = bw_from_arrays(w.ctx, &x, &y, &weights);
    assert_non_null(dataset);
    int64_t shape[BW_MAX_NDIM];
    assert_int_equal(bw_dataset_count(dataset), 4);
    assert_int_equal(bw_dataset_shape(dataset, shape), 2);
    assert_true(shape[0] == 3 && shape[1] == 2);
    assert_int_equal(bwi_dataset_fields(dataset), 3);
    assert_int_equal(bwi_dataset_field(dataset, bwi_dataset_find(dataset, BWI_ROLE_TARGET, 0))->dtype, BW_U8);
    assert_int_equal(bwi_dataset_field(dataset, bwi_dataset_find(dataset, BWI_ROLE_TARGET, 0))->ndim, 0);
    assert_int_equal(bwi_dataset_field(dataset, bwi_dataset_find(dataset, BWI_ROLE_WEIGHT, 0))->dtype, BW_F64);
    assert_int_equal(bwi_dataset_find(dataset, BWI_ROLE_TARGET, 1), -1);
    dataset = bw_from_arrays(w.ctx, &x, NULL, &weights);
    assert_int_equal(bwi_dataset_find(dataset, BWI_ROLE_TARGET, 0), -1);
    assert_int_equal(bwi_dataset_find(dataset, BWI_ROLE_WEIGHT, 0), 1);
    assert_int_equal(bw_dataset_shape(dataset, NULL), -1);
    assert_int_equal(bw_dataset_shape(NULL, shape), -1);
    assert_int_equal(bw_dataset_count(NULL), -1);
    assert_null(bw_from_arrays(NULL, &x, NULL, NULL));
    world_end(&w);
}

static void refuse(const bw_array *x, const bw_array *y, const char *part)
{
    world w = {0};
    assert_true(world_begin(&w, NULL, 0));
    assert_failed(w.ctx, bw_from_arrays(w.ctx, x, y, NULL), BW_INVALID_ARGUMENT, part);
    assert_int_equal(w.live, 1);
    world_end(&w);
}

static void test_refused(void **state)
{
    (void)state;
    bw_array x = good();
    refuse(NULL, NULL, "array x");
    bw_array bad = x;
    bad.data = NULL;
    refuse(&bad, NULL, "x: the array has no data");
    bad = x, bad.dtype = (bw_dtype)13;
    refuse(&bad, NULL, "x: 13 is no data type");
    bad = x, bad.dtype = (bw_dtype)-1;
    refuse(&bad, NULL, "no data type");
    bad = x, bad.ndim = 0;
    refuse(&bad, NULL, "1 to 8 axes, this one 0");
    bad = x, bad.ndim = 9;
    refuse(&bad, NULL, "1 to 8 axes, this one 9");
    bad = x, bad.shape[0] = 0;
    refuse(&bad, NULL, "holds no samples");
    bad = x, bad.shape[2] = -2;
    refuse(&bad, NULL, "extent 2 of shape (4, 3, -2)");
    bad = x, bad.shape[1] = 0;
    refuse(&bad, NULL, "extent 1");
    bad = x, bad.shape[1] = INT64_MAX / 4;
    refuse(&bad, NULL, "larger than memory");
    bad = x, bad.strides[0] = INT64_MAX / 2;
    refuse(&bad, NULL, "larger than memory");
    bad = x, bad.strides[2] = INT64_MIN;
    refuse(&bad, NULL, "larger than memory");
    bad = x, bad.shape[0] = 3;
    refuse(&x, &bad, "x has 4 samples, y has 3");
    bad = x, bad.shape[0] = 0;
    refuse(&x, &bad, "y: holds no samples");
}

static void test_allocation_fails(void **state)
{
    (void)state;
    bw_array x = good();
    for (int64_t nth = 2; nth <= 3; nth++) {
        world w = {.allocation_fail = nth};
        assert_true(world_begin(&w, NULL, 0));
        assert_failed(w.ctx, bw_from_arrays(w.ctx, &x, NULL, NULL), BW_RESOURCE_EXHAUSTED, "cannot allocate");
        assert_int_equal(w.live, 1);
        world_end(&w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_accepted),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_allocation_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
