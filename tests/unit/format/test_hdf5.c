/* HDF5 in memory: files that h5py wrote, what leads outside, damage, and files written here. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "format/format.h"
#include "support/written.h"
#include "unit/base/faults.h"

static unsigned char *load(const char *name, size_t *size)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/hdf5/%s", BW_TEST_DATA, name);
    FILE *file = fopen(path, "rb");
    if (!file) {
        fail_msg("cannot open %s", path);
    }
    fseek(file, 0, SEEK_END);
    *size = (size_t)ftell(file);
    rewind(file);
    unsigned char *data = malloc(*size);
    assert_int_equal(fread(data, 1, *size, file), *size);
    fclose(file);
    return data;
}

/* Images must outlive the files made of them. */
static unsigned char *kept[8];
static int kept_count;

static int free_kept(void **state)
{
    (void)state;
    while (kept_count > 0) {
        free(kept[--kept_count]);
    }
    return 0;
}

static bwi_hdf5 *open_file(bw_context *ctx, const char *name)
{
    size_t size;
    unsigned char *image = load(name, &size);
    bwi_hdf5 *file;
    if (bwi_hdf5_open(ctx, &file, image, size, name) != BW_OK) {
        fail_msg("%s", bw_message(ctx));
    }
    kept[kept_count++] = image;
    return file;
}

static void test_types(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        bw_dtype dtype;
    } rows[] = {{"types/f2", BW_F16}, {"types/f4", BW_F32}, {"types/f8", BW_F64},     {"types/big_f4", BW_F32}, {"types/i1", BW_I8},
                {"types/u2", BW_U16}, {"types/i4", BW_I32}, {"types/big_i8", BW_I64}, {"types/u8", BW_U64}};
    static const float expected[] = {1, 2, 3, 4, 5, 100};
    bw_context *ctx = bw_open(NULL);
    bwi_hdf5 *file = open_file(ctx, "plain.h5");
    for (size_t i = 0; i < BWI_COUNT(rows); i++) {
        const bwi_hdf5_entry *entry = bwi_hdf5_find(file, rows[i].name);
        assert_non_null(entry);
        assert_int_equal(entry->dtype, rows[i].dtype);
        assert_int_equal(entry->ndim, 2);
        assert_int_equal(entry->shape[0], 2);
        assert_int_equal(entry->shape[1], 3);
        assert_true(entry->stored);
        float values[6];
        int64_t wholes[6];
        assert_int_equal(bwi_hdf5_read(file, entry, 0, 2, BW_F32, values), BW_OK);
        assert_memory_equal(values, expected, sizeof values);
        assert_int_equal(bwi_hdf5_read(file, entry, 1, 1, BW_I64, wholes), BW_OK);
        assert_int_equal(wholes[0], 4);
        assert_int_equal(wholes[2], 100);
    }
    bwi_hdf5_close(file);
    bw_close(ctx);
}

static void test_places(void **state)
{
    (void)state;
    bw_context *ctx = bw_open(NULL);
    size_t before = bwi_allocated_bytes(ctx);
    bwi_hdf5 *file = open_file(ctx, "plain.h5");
    float values[100];
    const bwi_hdf5_entry *deep = bwi_hdf5_find(file, "deep/a/b/c"), *scalar = bwi_hdf5_find(file, "scalar");
    assert_int_equal(bwi_hdf5_read(file, deep, 1, 1, BW_F32, values), BW_OK);
    assert_float_equal(values[0], 12, 0);
    assert_float_equal(values[11], 23, 0);
    assert_int_equal(bwi_hdf5_read(file, deep, 1, 2, BW_F32, values), BW_INTERNAL);
    assert_int_equal(bwi_hdf5_read(file, deep, 0, 2, BW_F64, values), BW_INTERNAL);
    assert_int_equal(scalar->ndim, 0);
    assert_int_equal(bwi_hdf5_read(file, scalar, 0, 1, BW_F32, values), BW_OK);
    assert_float_equal(values[0], 7.5, 0);
    const bwi_hdf5_entry *chunks = bwi_hdf5_find(file, "chunks");
    assert_int_equal(bwi_hdf5_read(file, chunks, 0, 10, BW_F32, values), BW_OK);
    for (int i = 0; i < 100; i++) {
        assert_float_equal(values[i], (float)i, 0);
    }
    const bwi_hdf5_entry *empty = bwi_hdf5_find(file, "empty");
    assert_int_equal(empty->shape[0], 0);
    assert_int_equal(bwi_hdf5_read(file, empty, 0, 0, BW_F32, values), BW_OK);
    assert_false(bwi_hdf5_find(file, "text")->stored);
    const bwi_hdf5_entry *flags = bwi_hdf5_find(file, "flags");
    assert_int_equal(flags->dtype, BW_BOOL);
    assert_int_equal(bwi_hdf5_read(file, flags, 0, 2, BW_F32, values), BW_OK);
    assert_float_equal(values[0], 1, 0);
    assert_float_equal(values[1], 0, 0);
    assert_int_equal(bwi_hdf5_read(file, bwi_hdf5_find(file, "text"), 0, 1, BW_F32, values), BW_DATA_LOSS);
    assert_null(bwi_hdf5_find(file, "deep"));
    assert_int_equal(bwi_hdf5_count(file), 15);
    assert_null(bwi_hdf5_at(file, 15));
    assert_string_equal(bwi_hdf5_at(file, 0)->name, "chunks");
    bwi_hdf5_close(file);
    assert_int_equal(bwi_allocated_bytes(ctx), before);
    bw_close(ctx);
}

static void test_attributes(void **state)
{
    (void)state;
    bw_context *ctx = bw_open(NULL);
    bwi_hdf5 *file = open_file(ctx, "plain.h5");
    char *texts;
    int count;
    assert_int_equal(bwi_hdf5_attribute(file, "", "model_config", &texts, &count), BW_OK);
    assert_int_equal(count, 1);
    assert_string_equal(texts, "{\"class_name\": \"Sequential\"}");
    bwi_release(ctx, texts);
    assert_int_equal(bwi_hdf5_attribute(file, "", "layer_names", &texts, &count), BW_OK);
    assert_int_equal(count, 2);
    assert_memory_equal(texts, "dense\0dense_1", 14);
    bwi_release(ctx, texts);
    assert_int_equal(bwi_hdf5_attribute(file, "", "variable", &texts, &count), BW_OK);
    assert_int_equal(count, 3);
    assert_memory_equal(texts, "a\0long text\0", 13);
    bwi_release(ctx, texts);
    assert_int_equal(bwi_hdf5_attribute(file, "deep", "name", &texts, &count), BW_OK);
    assert_string_equal(texts, "of a group");
    bwi_release(ctx, texts);
    assert_int_equal(bwi_hdf5_attribute(file, "", "missing", &texts, &count), BW_OK);
    assert_null(texts);
    assert_int_equal(bwi_hdf5_attribute(file, "missing", "name", &texts, &count), BW_OK);
    assert_null(texts);
    assert_int_equal(bwi_hdf5_attribute(file, "", "empty", &texts, &count), BW_OK);
    assert_null(texts);
    assert_int_equal(bwi_hdf5_attribute(file, "", "number", &texts, &count), BW_DATA_LOSS);
    bwi_hdf5_close(file);
    bw_close(ctx);
}

/* Every dataset of these files counts 0, 1, 2, ... */
static void compare_counts(bwi_hdf5 *file, const char *name, size_t count)
{
    float values[2100];
    const bwi_hdf5_entry *entry = bwi_hdf5_find(file, name);
    assert_non_null(entry);
    if (!entry->stored) {
        fail_msg("%s %s", name, entry->refused);
    }
    assert_int_equal(bwi_hdf5_read(file, entry, 0, entry->shape[0], BW_F32, values), BW_OK);
    for (size_t i = 0; i < count; i++) {
        assert_true(values[i] == (float)i);
    }
}

/* With libver='latest' and track_order, h5py keeps many links and attributes in heaps, and chunks in other indexes. */
static void test_latest(void **state)
{
    static const struct {
        const char *name;
        size_t count;
    } rows[] = {{"single", 2100},      {"single_packed", 2100}, {"array", 99}, {"array_packed", 99},
                {"array_pages", 2100}, {"implicit", 99},        {"compact", 7}};
    (void)state;
    bw_context *ctx = bw_open(NULL);
    bwi_hdf5 *file = open_file(ctx, "dense.h5");
    assert_int_equal(bwi_hdf5_count(file), 301);
    for (int i = 0; i < 300; i++) {
        char name[32];
        snprintf(name, sizeof name, "layers/v%d", i);
        compare_counts(file, name, (size_t)i % 3 + 1);
    }
    compare_counts(file, "few/a", 3);
    for (int i = 0; i < 40; i++) {
        char name[32], *texts;
        int count;
        snprintf(name, sizeof name, "text%d", i);
        assert_int_equal(bwi_hdf5_attribute(file, "layers", name, &texts, &count), BW_OK);
        assert_int_equal(count, 1);
        assert_int_equal(strlen(texts), i);
        bwi_release(ctx, texts);
    }
    bwi_hdf5_close(file);
    file = open_file(ctx, "latest.h5");
    for (size_t i = 0; i < BWI_COUNT(rows); i++) {
        compare_counts(file, rows[i].name, rows[i].count);
    }
    assert_false(bwi_hdf5_find(file, "tree")->stored);
    assert_non_null(strstr(bwi_hdf5_find(file, "tree")->refused, "B-tree of version 2"));
    bwi_hdf5_close(file);
    bw_close(ctx);
}

/* Newer files have checksums: a byte of the heap, of its index or of a header that differs is noticed, unless nothing is kept
 * there. */
static void test_checksums(void **state)
{
    (void)state;
    bw_context *ctx = bw_open(NULL);
    size_t size;
    unsigned char *image = load("dense.h5", &size);
    int refused = 0, changed = 0;
    for (size_t at = 0; at < size; at += 211) {
        bwi_hdf5 *file;
        image[at] ^= 4;
        bw_status status = bwi_hdf5_open(ctx, &file, image, size, "f.h5");
        refused += status != BW_OK;
        changed++;
        bwi_hdf5_close(file);
        image[at] ^= 4;
    }
    assert_true(4 * refused > changed);
    free(image);
    bw_close(ctx);
}

/* A cancelled listing ends with this status, and the next one works. */
static void test_cancelled(void **state)
{
    (void)state;
    bw_context *ctx = bw_open(NULL);
    size_t size;
    unsigned char *image = load("dense.h5", &size);
    bwi_hdf5 *file;
    bw_cancel(ctx);
    assert_int_equal(bwi_hdf5_open(ctx, &file, image, size, "f.h5"), BW_CANCELLED);
    assert_int_equal(bwi_hdf5_open(ctx, &file, image, size, "f.h5"), BW_OK);
    bwi_hdf5_close(file);
    free(image);
    bw_close(ctx);
}

static void test_refused(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {"soft.h5", "'b' is a link to elsewhere"},      {"external_link.h5", "'a' is a link to elsewhere"},
        {"external_data.h5", "values in another file"}, {"virtual.h5", "virtual dataset"},
        {"circle.h5", "is a group with several names"}, {"datatype.h5", "neither group nor dataset"},
        {"make_hdf5.py", "not an HDF5 file"},
    };
    bw_context *ctx = bw_open(NULL);
    size_t before = bwi_allocated_bytes(ctx);
    for (size_t i = 0; i < BWI_COUNT(rows); i++) {
        size_t size;
        unsigned char *image = load(rows[i][0], &size);
        bwi_hdf5 *file;
        assert_int_equal(bwi_hdf5_open(ctx, &file, image, size, "f.h5"), BW_DATA_LOSS);
        assert_null(file);
        if (!strstr(bw_message(ctx), rows[i][1])) {
            fail_msg("%s: %s", rows[i][0], bw_message(ctx));
        }
        free(image);
    }
    bwi_hdf5 *file;
    assert_int_equal(bwi_hdf5_open(ctx, &file, "", 0, "f.h5"), BW_DATA_LOSS);
    assert_int_equal(bwi_allocated_bytes(ctx), before);
    /* 4 TiB that nobody wrote are listed, but no room may be made for them. */
    file = open_file(ctx, "claims.h5");
    assert_int_equal(bwi_hdf5_at(file, 0)->shape[0], (int64_t)1 << 40);
    assert_false(bwi_hdf5_at(file, 0)->stored);
    bwi_hdf5_close(file);
    bw_close(ctx);
}

/* Cut short anywhere, the file is refused or read as far as it says; nothing else happens. */
static void test_truncated(void **state)
{
    (void)state;
    bw_context *ctx = bw_open(NULL);
    size_t before = bwi_allocated_bytes(ctx);
    size_t size;
    unsigned char *image = load("plain.h5", &size);
    int refused = 0;
    for (size_t length = 0; length < size; length += 97) {
        bwi_hdf5 *file;
        unsigned char *part = malloc(length ? length : 1);
        memcpy(part, image, length);
        refused += bwi_hdf5_open(ctx, &file, part, length, "f.h5") != BW_OK;
        bwi_hdf5_close(file);
        free(part);
    }
    assert_true(refused > 10);
    free(image);
    assert_int_equal(bwi_allocated_bytes(ctx), before);
    bw_close(ctx);
}

static bw_status write_file(bw_context *ctx, void **image, size_t *size)
{
    static const float values[] = {1, 2, 3, 4, 5, 6};
    static const int64_t shape[] = {2, 3}, count = 41;
    const hdf5_values parts[] = {{"layers/dense/vars/0", BW_F32, 2, shape, values},
                                 {"layers/dense/vars/1", BW_F32, 1, shape, values},
                                 {"optimizer/vars/0", BW_I64, 0, NULL, &count}};
    return make_hdf5(ctx, parts, (int)BWI_COUNT(parts), image, size);
}

static void test_written(void **state)
{
    (void)state;
    bw_context *ctx = bw_open(NULL);
    void *image[2];
    size_t size[2];
    for (int i = 0; i < 2; i++) {
        assert_int_equal(write_file(ctx, &image[i], &size[i]), BW_OK);
    }
    assert_int_equal(size[0], size[1]);
    assert_memory_equal(image[0], image[1], size[0]);
    bwi_hdf5 *file[2];
    for (int i = 0; i < 2; i++) { /* both open at once are two files */
        assert_int_equal(bwi_hdf5_open(ctx, &file[i], image[i], size[i], "f.h5"), BW_OK);
    }
    float values[6];
    int64_t count;
    assert_int_equal(bwi_hdf5_read(file[1], bwi_hdf5_find(file[1], "layers/dense/vars/0"), 0, 2, BW_F32, values), BW_OK);
    for (int i = 0; i < 6; i++) {
        assert_float_equal(values[i], (float)i + 1, 0);
    }
    assert_int_equal(bwi_hdf5_find(file[0], "layers/dense/vars/1")->shape[0], 2);
    assert_int_equal(bwi_hdf5_read(file[0], bwi_hdf5_find(file[0], "optimizer/vars/0"), 0, 1, BW_I64, &count), BW_OK);
    assert_int_equal(count, 41);
    for (int i = 0; i < 2; i++) {
        bwi_hdf5_close(file[i]);
        bwi_release(ctx, image[i]);
    }
    /* A name that is there already, as a dataset and as a group. */
    const hdf5_values twice[] = {{"a", BW_F32, 0, NULL, values}, {"a", BW_F32, 0, NULL, values}};
    const hdf5_values both[] = {{"b/a", BW_F32, 0, NULL, values}, {"b/a/c", BW_F32, 0, NULL, values}};
    assert_int_equal(make_hdf5(ctx, twice, 2, &image[0], &size[0]), BW_INTERNAL);
    assert_int_equal(make_hdf5(ctx, both, 2, &image[0], &size[0]), BW_INTERNAL);
    assert_non_null(strstr(bw_message(ctx), "b/a"));
    bw_close(ctx);
}

/* Groups of so many links that their trees have one, two and three levels; names whose order is not that of their bytes. */
static void test_many_written(void **state)
{
    (void)state;
    enum { MOST = 9000 };
    static const int counts[] = {1, 8, 9, 256, 257, MOST};
    static char names[MOST][32];
    static bwi_hdf5_part parts[MOST];
    static const int64_t two[] = {2};
    bw_context *ctx = bw_open(NULL);
    for (size_t c = 0; c < BWI_COUNT(counts); c++) {
        bwi_hdf5_head head;
        for (int i = 0; i < counts[c]; i++) {
            snprintf(names[i], sizeof names[i], i % 3 ? "vars/%d" : i % 2 ? "vars-%d/x" : "vars/%d_/x", i);
            parts[i] = (bwi_hdf5_part){.name = names[i], .dtype = BW_F32, .ndim = i % 2, .shape = two};
        }
        assert_int_equal(bwi_hdf5_lay_out(ctx, parts, counts[c], &head), BW_OK);
        unsigned char *image = bwi_allocate(ctx, head.total, 1);
        memcpy(image, head.bytes, head.size);
        for (int i = 0; i < counts[c]; i++) {
            float values[] = {(float)i, (float)-i};
            memcpy(image + parts[i].offset, values, parts[i].bytes);
        }
        bwi_hdf5 *file;
        assert_int_equal(bwi_hdf5_open(ctx, &file, image, head.total, "f.h5"), BW_OK);
        assert_int_equal(bwi_hdf5_count(file), counts[c]);
        for (int i = 0; i < counts[c]; i += 1 + i / 50) {
            float values[2] = {0, (float)-i};
            const bwi_hdf5_entry *entry = bwi_hdf5_find(file, names[i]);
            assert_non_null(entry);
            assert_int_equal(entry->ndim, i % 2);
            assert_int_equal(bwi_hdf5_read(file, entry, 0, 1 + i % 2, BW_F32, values), BW_OK);
            assert_true(values[0] == (float)i && values[1] == (float)-i);
        }
        bwi_hdf5_close(file);
        bwi_release(ctx, image);
        bwi_release(ctx, head.bytes);
    }
    assert_int_equal(bwi_allocated_bytes(ctx), 0);
    bw_close(ctx);
}

static void test_allocations(void **state)
{
    (void)state;
    faults f = {0};
    size_t size;
    unsigned char *image = load("plain.h5", &size);
    bw_context_options options = BW_CONTEXT_OPTIONS_DEFAULT;
    bw_allocator allocator = faults_allocator(&f);
    options.allocator = &allocator;
    int failures = 0;
    for (int at = 1;; at++) {
        f = (faults){0};
        bw_context *ctx = bw_open(&options);
        f.calls = 0;
        f.fail_at = at;
        bwi_hdf5 *file = NULL;
        char *texts = NULL;
        int count;
        void *written = NULL;
        size_t bytes;
        bw_status status = bwi_hdf5_open(ctx, &file, image, size, "f.h5");
        if (status == BW_OK) {
            status = bwi_hdf5_attribute(file, "", "variable", &texts, &count);
        }
        if (status == BW_OK) {
            status = write_file(ctx, &written, &bytes);
        }
        bwi_release(ctx, written);
        bwi_release(ctx, texts);
        bwi_hdf5_close(file);
        assert_int_equal(bwi_allocated_bytes(ctx), 0);
        bw_close(ctx);
        assert_int_equal(f.blocks, 0);
        assert_int_equal(status, f.failed ? BW_RESOURCE_EXHAUSTED : BW_OK);
        failures += f.failed;
        if (!f.failed) {
            break;
        }
    }
    assert_true(failures > 20);
    free(image);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_types),       cmocka_unit_test(test_places),       cmocka_unit_test(test_attributes),
        cmocka_unit_test(test_refused),     cmocka_unit_test(test_truncated),    cmocka_unit_test(test_written),
        cmocka_unit_test(test_allocations), cmocka_unit_test(test_latest),       cmocka_unit_test(test_checksums),
        cmocka_unit_test(test_cancelled),   cmocka_unit_test(test_many_written),
    };
    return cmocka_run_group_tests(tests, NULL, free_kept);
}
