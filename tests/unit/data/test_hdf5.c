/* HDF5 files that h5py wrote (tests/data/make_hdf5.py) against NumPy's arrays; cut, changed and unsuitable ones. */
#include "data_test.h"

#define FOLDER BW_TEST_DATA "/samples/"

static void compare(const bw_dataset *dataset, int field, const bw_dataset *right, int other, float scale)
{
    int64_t count, expected_count;
    float *values = gather_all(dataset, field, &count), *expected = gather_all(right, other, &expected_count);
    assert_int_equal(count, expected_count);
    for (int64_t i = 0; i < count; i++) {
        assert_true(values[i] == (scale == 1.0f ? expected[i] : (float)(int)(expected[i] * scale)));
    }
    free(values);
    free(expected);
}

static void test_values(void **state)
{
    static const char *const files[] = {"plain.h5", "big.h5", "block.h5", "chunks.h5", "filters.h5", "packed.h5"};
    (void)state;
    bw_context *ctx = bw_open(NULL);
    bw_dataset *right = bw_read(ctx, FOLDER "samples.npz", NULL);
    for (size_t i = 0; i < BWI_COUNT(files); i++) {
        char path[1024];
        snprintf(path, sizeof path, FOLDER "%s", files[i]);
        bw_dataset *dataset = bw_read(ctx, path, NULL);
        if (!dataset) {
            fail_msg("%s", bw_message(ctx));
        }
        assert_int_equal(bw_dataset_count(dataset), 6);
        assert_int_equal(bwi_dataset_fields(dataset), 3);
        for (int field = 0; field < 3; field++) {
            compare(dataset, field, right, field, 1);
        }
    }
    bw_dataset *bytes = bw_read(ctx, FOLDER "bytes.h5", NULL);
    assert_int_equal(bwi_dataset_field(bytes, 0)->dtype, BW_I8);
    compare(bytes, 0, right, 0, 30);
    compare(bytes, 1, right, 1, 1);
    for (int backings = 0; backings < 2; backings++, ctx->backing_limit = 16) { /* at last as if it were larger than memory */
        bw_dataset *many = bw_read(ctx, FOLDER "many.h5", NULL), *expected = bw_read(ctx, FOLDER "many.npz", NULL);
        assert_int_equal(bwi_dataset_field(many, 0)->dtype, BW_U8);
        compare(many, 0, expected, 0, 1);
        compare(many, 1, expected, 1, 1);
        compare(bw_read(ctx, FOLDER "odd.h5", NULL), 0, bw_read(ctx, FOLDER "odd.npz", NULL), 0, 1);
    }
    bw_close(ctx);
}

static void test_names(void **state)
{
    (void)state;
    bw_context *ctx = bw_open(NULL);
    bw_read_options options = BW_READ_OPTIONS_DEFAULT;
    bw_dataset *right = bw_read(ctx, FOLDER "samples.npz", NULL), *named = bw_read(ctx, FOLDER "named.h5", NULL);
    assert_int_equal(bwi_dataset_fields(named), 3);
    assert_string_equal(bwi_dataset_field(named, 1)->name, "right");
    assert_int_equal(bwi_dataset_field(named, 1)->ndim, 1);
    assert_string_equal(bwi_dataset_field(named, 2)->name, "out");
    assert_failed(ctx, bw_read(ctx, FOLDER "others.h5", NULL), BW_NOT_FOUND,
                  "others.h5: no dataset 'x' or 'x_<name>'; found 'deep/x', 'label', 'pixels'");
    options.input = "deep/x";
    options.target = "label";
    bw_dataset *others = bw_read(ctx, FOLDER "others.h5", &options);
    compare(others, 0, right, 0, 1);
    compare(others, 1, right, 1, 1);
    options.target = "";
    assert_int_equal(bwi_dataset_fields(bw_read(ctx, FOLDER "others.h5", &options)), 1);
    options.target = "none";
    assert_failed(ctx, bw_read(ctx, FOLDER "others.h5", &options), BW_NOT_FOUND, "no dataset 'none'");
    options = (bw_read_options)BW_READ_OPTIONS_DEFAULT;
    options.ndim = 1;
    options.shape[0] = 6;
    bw_dataset *flat = bw_read(ctx, FOLDER "plain.h5", &options);
    assert_int_equal(bwi_dataset_field(flat, 0)->ndim, 1);
    bw_close(ctx);
}

static void test_refused(void **state)
{
    static const refused_file cases[] = {
        {"lzf.h5", BW_DATA_LOSS, "'x': is packed by lzf; gzip, shuffle and fletcher32 are read"},
        {"scaleoffset.h5", BW_DATA_LOSS, "'x': is packed by scaleoffset"},
        {"latest.h5", BW_DATA_LOSS, "'x': has an extensible array as index of chunks (libver='latest'), which is not read"},
        {"partly.h5", BW_DATA_LOSS, "'x': lacks chunks: not all of it was written"},
        {"counts.h5", BW_INVALID_ARGUMENT, "x has 6 samples, y has 5"},
        {"both.h5", BW_INVALID_ARGUMENT, "found both"},
        {"scalar.h5", BW_INVALID_ARGUMENT, "'x': an array of samples has 1 to 8 axes"},
        {"text.h5", BW_DATA_LOSS, "'x': is not stored as plain numbers"},
        {"unwritten.h5", BW_DATA_LOSS, "'x': has no values: nothing was written to it"},
        {"link.h5", BW_DATA_LOSS, "'x' is a link to elsewhere"},
        {"there_is_none.h5", BW_NOT_FOUND, "cannot open"},
        {"samples.npz.h5", BW_NOT_FOUND, "cannot open"},
    };
    (void)state;
    assert_refused(FOLDER, "", cases, BWI_COUNT(cases));
}

/* Whatever the bytes are: a dataset whose values can be gathered, or a message. */
static bool read_all(const unsigned char *bytes, size_t size)
{
    world w = {0};
    assert_true(world_begin(&w, bytes, size));
    bw_dataset *dataset = bw_read(w.ctx, "a.h5", NULL);
    int64_t count;
    assert_true(dataset || bw_message(w.ctx)[0]);
    for (int field = 0; dataset && field < bwi_dataset_fields(dataset); field++) {
        free(gather_all(dataset, field, &count));
    }
    bwi_pending(w.ctx);
    assert_true(w.largest < (size_t)8 << 20);
    world_end(&w);
    return dataset;
}

static void test_cut_and_changed(void **state)
{
    static const char *const files[] = {"plain.h5", "big.h5", "chunks.h5", "filters.h5", "packed.h5", "many.h5"};
    (void)state;
    for (size_t i = 0; i < BWI_COUNT(files); i++) {
        size_t size;
        unsigned char *bytes = load(BW_TEST_DATA "/samples", files[i], &size);
        assert_true(read_all(bytes, size));
        size_t step = size < 10000 ? 1 : 7;
        for (size_t cut = 0; cut < size; cut += 37 * step) {
            assert_false(read_all(bytes, cut));
        }
        for (size_t at = 0; at < size; at += 3 * step) {
            unsigned char byte = bytes[at];
            bytes[at] = (unsigned char)(at % 2 ? byte ^ 1 << at % 8 : 255);
            (void)read_all(bytes, size);
            bytes[at] = byte;
        }
        free(bytes);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_cut_and_changed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
