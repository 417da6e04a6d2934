/* Files with parts for training, validation and tests (tests/data/make_parts.py), and batch sizes that alternate from epoch to
 * epoch. */
#include "csv_test.h"

static void check_part(const char *file, const char *part, int64_t samples, float first)
{
    bw_read_options options = BW_READ_OPTIONS_DEFAULT;
    bw_context *ctx = open_context(1);
    options.part = part;
    bw_dataset *dataset = read_fixture(ctx, file, &options);
    if (!dataset) {
        fail_msg("%s", bw_message(ctx));
    }
    assert_int_equal(bw_dataset_count(dataset), samples);
    assert_int_equal(bwi_dataset_fields(dataset), 2);
    assert_string_equal(bwi_dataset_field(dataset, 0)->name, "");
    int64_t n;
    float *x = gather_all(dataset, 0, &n);
    assert_int_equal(n, samples * 4);
    assert_true(x[0] == first && x[n - 1] == first + (float)(n - 1));
    free(x);
    bw_close(ctx);
}

static void test_parts(void **state)
{
    (void)state;
    static const char *const both[] = {"parts.npz", "parts.h5"};
    for (int i = 0; i < 2; i++) {
        check_part(both[i], NULL, 6, 0);
        check_part(both[i], "train", 6, 0);
        check_part(both[i], "test", 3, 100);
        check_part(both[i], "validation", 3, 100);
    }
    assert_contains(logged, "parts.h5: x_test and y_test are read");
    check_part("three_parts.npz", "test", 3, 100);
    check_part("three_parts.npz", "validation", 2, 200);
    bw_context *ctx = open_context(1);
    bw_read_options options = BW_READ_OPTIONS_DEFAULT;
    bw_dataset *dataset = bw_shuffle(read_fixture(ctx, "parts.npz", NULL), 1), *one = read_fixture(ctx, "one_part.npz", NULL);
    assert_true(bw_dataset_has_part(dataset, "validation") && bw_dataset_has_part(dataset, "test"));
    assert_true(bw_dataset_has_part(one, "train") && !bw_dataset_has_part(one, "test") && !bw_dataset_has_part(one, "other"));
    options.part = "test";
    assert_failed(ctx, read_fixture(ctx, "one_part.npz", &options), BW_NOT_FOUND, "one_part.npz: has x_train, but no x_test");
    dataset = read_fixture(ctx, "float32_stored.npz", &options); /* without parts: as a whole */
    assert_non_null(dataset);
    assert_false(bw_dataset_has_part(dataset, "train"));
    options.part = "holdout";
    assert_failed(ctx, read_fixture(ctx, "parts.npz", &options), BW_INVALID_ARGUMENT,
                  "part: expected train, validation or test, found 'holdout'");
    bw_close(ctx);
}

/* A misspelt array would otherwise go unnoticed; datasets in groups of HDF5 and those of other parts are no misspelling. */
static void test_unread(void **state)
{
    (void)state;
    static const struct {
        const char *file, *expected;
    } cases[] = {
        {"unread.npz", "unread.npz: arrays that are not read: 'sample_weight', 'classes'; samples are x, y and w (weights)"},
        {"unread.h5", "unread.h5: arrays that are not read: 'classes', 'sample_weight'; samples are x, y and w (weights)"},
        {"unread_part.npz", "unread_part.npz: arrays that are not read: 'y_extra'; samples"},
        {"parts.npz", NULL},
        {"parts.h5", NULL},
        {"float32_stored.npz", NULL}};
    for (size_t i = 0; i < BWI_COUNT(cases); i++) {
        bw_context *ctx = open_context(1);
        assert_non_null(read_fixture(ctx, cases[i].file, NULL));
        if (cases[i].expected) {
            assert_contains(logged, cases[i].expected);
        } else {
            assert_null(strstr(logged, "not read"));
        }
        bw_close(ctx);
    }
    bw_context *ctx = open_context(1);
    bw_read_options options = BW_READ_OPTIONS_DEFAULT;
    options.target = "classes"; /* chosen by name: of other lengths here, but nothing is called unread */
    (void)read_fixture(ctx, "unread.h5", &options);
    assert_null(strstr(logged, "not read"));
    bw_close(ctx);
}

/* All samples by 4 in one epoch, by 6 in the next, and by 4 again. */
static void test_passes(void **state)
{
    (void)state;
    bw_context *ctx = open_context(1);
    bw_dataset *dataset = bw_batch_sizes(bw_read(ctx, "synth:range?n=10", NULL), "4/6", false);
    assert_non_null(dataset);
    static const int64_t expected[3][3] = {{4, 4, 2}, {6, 4, 0}, {4, 4, 2}};
    for (int epoch = 0; epoch < 3; epoch++) {
        int64_t position = 0;
        for (int i = 0; i < 3; i++) {
            int64_t size = bwi_dataset_batch_at(dataset, epoch, &position);
            assert_int_equal(size, expected[epoch][i]);
            position += size;
        }
    }
    assert_int_equal(bwi_dataset_largest_batch(dataset), 6);
    assert_true(bwi_dataset_batch_varies(dataset));
    bw_dataset *other = bw_batch_sizes(bw_read(ctx, "synth:range?n=10", NULL), "4@0,6@1", false);
    assert_true(bwi_dataset_batch_hash(dataset, 2) == bwi_dataset_batch_hash(other, 2));
    assert_true(bwi_dataset_batch_hash(dataset, 3) != bwi_dataset_batch_hash(other, 3));
    static const char *const wrong[] = {"4/", "/4", "4/0", "4,6/8", "4@0/6@1", "4/6@2"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        assert_failed(ctx, bw_batch_sizes(bw_read(ctx, "synth:range?n=10", NULL), wrong[i], false), BW_INVALID_ARGUMENT,
                      "batch sizes");
    }
    bw_close(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_parts), cmocka_unit_test(test_unread), cmocka_unit_test(test_passes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
