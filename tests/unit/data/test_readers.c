/* Which files are read at all, and the options of reading. */
#include "data_test.h"

static void test_kinds(void **state)
{
    (void)state;
    world w = {0};
    size_t size;
    unsigned char *bytes = load(BW_TEST_DATA, "only_x.npz", &size);
    assert_true(world_begin(&w, bytes, size));
    assert_failed(w.ctx, bw_read(w.ctx, "a/b.xls", NULL), BW_UNIMPLEMENTED,
                  "a/b.xls: no reader for this kind of file; known are .npz");
    assert_failed(w.ctx, bw_read(w.ctx, "", NULL), BW_UNIMPLEMENTED, "no reader");
    assert_failed(w.ctx, bw_read(w.ctx, "npz", NULL), BW_UNIMPLEMENTED, "npz: no reader");
    assert_failed(w.ctx, bw_read(w.ctx, NULL, NULL), BW_INVALID_ARGUMENT, "path");
    assert_null(bw_read(NULL, "a.npz", NULL));
    assert_int_equal(bw_dataset_count(bw_read(w.ctx, "A.NpZ", NULL)), 3);
    world_end(&w);
    free(bytes);
}

static void test_options(void **state)
{
    (void)state;
    world w = {0};
    size_t size;
    int64_t count;
    unsigned char *bytes = load(BW_TEST_DATA, "only_x.npz", &size);
    assert_true(world_begin(&w, bytes, size));
    bw_read_options options = BW_READ_OPTIONS_DEFAULT;
    options.scale = (double)__builtin_inff();
    assert_failed(w.ctx, bw_read(w.ctx, "a.npz", &options), BW_INVALID_ARGUMENT, "scaled by inf");
    options.scale = 0; /* a real zero stays a zero */
    float *x = gather_all(bw_read(w.ctx, "a.npz", &options), 0, &count);
    for (int64_t i = 0; i < count; i++) {
        assert_true(x[i] == 0.0f);
    }
    free(x);
    options.size = 0;
    assert_failed(w.ctx, bw_read(w.ctx, "a.npz", &options), BW_INVALID_ARGUMENT, "bw_read_options");
    options.size = sizeof options.size; /* an older program's: the scale is not in it */
    x = gather_all(bw_read(w.ctx, "a.npz", &options), 0, &count);
    assert_true(x[0] == -49.5f);
    free(x);
    world_end(&w);
    free(bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_kinds), cmocka_unit_test(test_options)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
