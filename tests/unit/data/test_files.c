/* npy, IDX and LibSVM files against what was written (tests/data/make_files.py), and against damage of every kind. */
#include "data_test.h"

#define FILES BW_TEST_DATA "/files/"

static void expect_x(const bw_dataset *dataset, int64_t values, float first, float step)
{
    int64_t n;
    float *x = gather_all(dataset, 0, &n);
    assert_int_equal(n, values);
    for (int64_t k = 0; k < n; k++) {
        if (x[k] != (float)(k % 101) * step + first) {
            fail_msg("value %d is %g", (int)k, (double)x[k]);
        }
    }
    free(x);
}

static void expect_y(const bw_dataset *dataset, int field, float step)
{
    int64_t n;
    float *y = gather_all(dataset, field, &n);
    assert_int_equal(n, 5);
    for (int64_t i = 0; i < n; i++) {
        assert_true(y[i] == (float)i * step);
    }
    free(y);
}

static void test_npy(void **state)
{
    (void)state;
    bw_context *ctx = bw_open(NULL);
    bw_dataset *dataset = bw_read(ctx, FILES "x.npy," FILES "y.npy," FILES "w.npy", NULL);
    assert_non_null(dataset);
    int64_t shape[BW_MAX_NDIM];
    assert_int_equal(bw_dataset_shape(dataset, shape), 3);
    assert_true(shape[0] == 3 && shape[1] == 4 && shape[2] == 2);
    expect_x(dataset, 120, -49.5f, 1);
    expect_y(dataset, 1, 1);
    expect_y(dataset, 2, 0.25f);
    dataset = bw_read(ctx, FILES "x_fortran.npy", NULL);
    assert_int_equal(bwi_dataset_fields(dataset), 1);
    assert_int_equal(bwi_dataset_field(dataset, 0)->dtype, BW_F64);
    expect_x(dataset, 120, -49.5f, 1);
    bw_read_options options = BW_READ_OPTIONS_DEFAULT;
    options.scale = 2;
    options.ndim = 1;
    options.shape[0] = 24;
    dataset = bw_read(ctx, FILES "x.npy", &options);
    assert_int_equal(bw_dataset_shape(dataset, shape), 1);
    expect_x(dataset, 120, -99, 2);
    options.target = "y";
    assert_failed(ctx, bw_read(ctx, FILES "x.npy", &options), BW_INVALID_ARGUMENT,
                  "the option 'target' is not for this kind of file");
    assert_failed(ctx, bw_read(ctx, FILES "x.npy," FILES "y_short.npy", NULL), BW_INVALID_ARGUMENT, "x has 5 samples, y has 4");
    assert_failed(ctx, bw_read(ctx, FILES "x.npy," FILES "none.npy", NULL), BW_NOT_FOUND, "none.npy");
    assert_failed(ctx, bw_read(ctx, FILES "y.npy," FILES "y.npy," FILES "y.npy," FILES "y.npy", NULL), BW_INVALID_ARGUMENT,
                  "at most 3 npy files");
    bw_close(ctx);
}

static void test_idx(void **state)
{
    (void)state;
    static const char *const paths[] = {FILES "mnist", FILES "mnist/",
                                        FILES "mnist/train-images-idx3-ubyte," FILES "mnist/train-labels-idx1-ubyte",
                                        FILES "t10k-labels-idx1-ubyte.gz," FILES "t10k-images-idx3-ubyte.gz"};
    bw_context *ctx = bw_open(NULL);
    for (size_t i = 0; i < BWI_COUNT(paths); i++) {
        bw_dataset *dataset = bw_read(ctx, paths[i], NULL);
        if (!dataset) {
            fail_msg("%s", bw_message(ctx));
        }
        int64_t shape[BW_MAX_NDIM];
        assert_int_equal(bw_dataset_shape(dataset, shape), 3);
        assert_true(shape[0] == 4 && shape[1] == 3 && shape[2] == 1);
        expect_x(dataset, 60, 0, 1);
        expect_y(dataset, 1, 1);
    }
    static const char *const types[] = {"u1", "i1", "i2", "i4", "f4", "f8"};
    for (size_t i = 0; i < BWI_COUNT(types); i++) {
        char path[4096];
        snprintf(path, sizeof path, FILES "%s.idx", types[i]);
        expect_x(bw_read(ctx, path, NULL), 20, i ? -50 : 0, 1);
    }
    assert_failed(ctx, bw_read(ctx, FILES "u1.idx," FILES "i1.idx", NULL), BW_INVALID_ARGUMENT,
                  "expected images and labels, both are");
    bw_close(ctx);
}

static void refuse(const char *path, const void *bytes, size_t size, bw_status status, const char *part)
{
    world w = {0};
    unsigned char *exact = malloc(size);
    memcpy(exact, bytes, size);
    assert_true(world_begin(&w, exact, size));
    assert_failed(w.ctx, bw_read(w.ctx, path, NULL), status, part);
    assert_true(w.largest < (size_t)8 << 20);
    world_end(&w);
    free(exact);
}

#define REFUSE(path, text, status, part) refuse(path, text, sizeof text - 1, status, part)

static void test_damaged_idx(void **state)
{
    (void)state;
    REFUSE("a.idx", "\0\0", BW_DATA_LOSS, "a.idx: 2 bytes are too few");
    REFUSE("a.idx", "PK\3\4....", BW_DATA_LOSS, "a.idx: is no IDX file: it begins with 'PK");
    REFUSE("a.idx", "\0\0\x0a\1\0\0\0\1x", BW_DATA_LOSS, "0x0a is no type");
    REFUSE("a.idx", "\0\0\x08\x09\0\0\0\1x", BW_INVALID_ARGUMENT, "9 axes");
    REFUSE("a.idx", "\0\0\x08\2\0\0\0\1", BW_DATA_LOSS, "ends within its header");
    REFUSE("a.idx", "\0\0\x08\1\0\0\0\2x", BW_DATA_LOSS, "shape (2,) of uint8 needs 2 bytes, the file holds 1");
    REFUSE("a.idx", "\0\0\x08\1\0\0\0\2xyz", BW_DATA_LOSS, "holds 3");
    REFUSE("a.idx", "\0\0\x08\1\0\0\0\0", BW_INVALID_ARGUMENT, "holds no samples");
    REFUSE("a.idx", "\0\0\x0e\3\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", BW_INVALID_ARGUMENT, "larger than memory");
    size_t size;
    unsigned char *bytes = load(FILES, "t10k-images-idx3-ubyte.gz", &size);
    for (size_t cut = 0; cut < size; cut++) {
        world w = {0};
        unsigned char *part = malloc(cut + 1);
        memcpy(part, bytes, cut);
        assert_true(world_begin(&w, part, cut));
        assert_null(bw_read(w.ctx, "a.idx.gz", NULL));
        assert_int_equal(bwi_pending(w.ctx), BW_DATA_LOSS);
        world_end(&w);
        free(part);
    }
    free(bytes);
}

static void test_damaged_npy(void **state)
{
    (void)state;
    size_t size;
    unsigned char *bytes = load(FILES, "x.npy", &size);
    for (size_t cut = 0; cut < size; cut += 3) {
        refuse("a.npy", bytes, cut, BW_DATA_LOSS, "a.npy");
    }
    free(bytes);
}

static void test_libsvm(void **state)
{
    (void)state;
    bw_context *ctx = bw_open(NULL);
    bw_dataset *dataset = bw_read(ctx, FILES "rows.libsvm", NULL);
    if (!dataset) {
        fail_msg("%s", bw_message(ctx));
    }
    static const float x[] = {0.5f, 0, -20, 0, 0, 7, 0, 0, 9, 0, 0, 1, 0, 0, 0, 0}, y[] = {1, -1, 1.5f, -1};
    int64_t n;
    float *found = gather_all(dataset, 0, &n);
    assert_int_equal(n, 16);
    assert_memory_equal(found, x, sizeof x);
    free(found);
    found = gather_all(dataset, 1, &n);
    assert_memory_equal(found, y, sizeof y);
    free(found);
    char place[4200];
    assert_string_equal(bwi_dataset_location(dataset, 1, place, sizeof place), FILES "rows.libsvm, line 4");
    dataset = bw_read(ctx, FILES "rows.libsvm," FILES "rows.libsvm", NULL);
    assert_int_equal(bw_dataset_count(dataset), 8);
    assert_string_equal(bwi_dataset_location(dataset, 5, place, sizeof place), FILES "rows.libsvm, line 4");
    bw_close(ctx);
    REFUSE("a.svm", "", BW_INVALID_ARGUMENT, "a.svm: holds no samples");
    REFUSE("a.svm", "1 1:2\nx 1:3\n", BW_INVALID_ARGUMENT, "a.svm: line 2: expected a number as the target, found 'x'");
    REFUSE("a.svm", "1 1:2\n\n2 3:x 4:1\n", BW_INVALID_ARGUMENT, "a.svm: line 3: expected index:value, found '3:x'");
    REFUSE("a.svm", "1 1\n", BW_INVALID_ARGUMENT, "expected index:value, found '1'");
    REFUSE("a.svm", "1 99999999999:1\n", BW_INVALID_ARGUMENT, "expected index:value");
    REFUSE("a.svm", "1 2000000000:1\n", BW_RESOURCE_EXHAUSTED, "1 rows of 2000000000 inputs need 7.5 GiB of memory");
    REFUSE("a.svm", "1 0:1 1:", BW_INVALID_ARGUMENT, "line 1: expected index:value");
}

static void test_allocation_fails(void **state)
{
    (void)state;
    static const struct {
        const char *path, *file;
    } cases[] = {
        {"a.npy", "x_fortran.npy"}, {"a.idx", "f8.idx"}, {"a.idx.gz", "t10k-images-idx3-ubyte.gz"}, {"a.svm", "rows.libsvm"}};
    for (size_t i = 0; i < BWI_COUNT(cases); i++) {
        size_t size;
        unsigned char *bytes = load(FILES, cases[i].file, &size);
        for (int64_t nth = 2;; nth++) {
            world w = {.allocation_fail = nth};
            assert_true(world_begin(&w, bytes, size));
            bw_dataset *dataset = bw_read(w.ctx, cases[i].path, NULL);
            bool failed = w.allocations >= nth;
            if (failed) {
                assert_failed(w.ctx, dataset, BW_RESOURCE_EXHAUSTED, i == 2 ? "n" : "cannot allocate"); /* zlib: no memory */
            } else {
                assert_non_null(dataset);
            }
            world_end(&w);
            if (!failed) {
                break;
            }
        }
        for (int64_t nth = 1; nth <= 3; nth++) {
            world w = {.io_fail = nth};
            assert_true(world_begin(&w, bytes, size));
            if (!bw_read(w.ctx, cases[i].path, NULL)) {
                assert_true(bwi_pending(w.ctx) != BW_OK);
            }
            world_end(&w);
        }
        free(bytes);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_npy),         cmocka_unit_test(test_idx),    cmocka_unit_test(test_damaged_idx),
        cmocka_unit_test(test_damaged_npy), cmocka_unit_test(test_libsvm), cmocka_unit_test(test_allocation_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
