/*
 * Images written by Pillow (tests/data/make_images.py) against what Pillow and TensorFlow make of them; files that lie, are cut or
 * are damaged, without a crash and in little memory.
 */
#include "../data/data_test.h"
#include "format/format.h"

static const char folder[] = BW_TEST_DATA "/images";

static bw_dataset *open_expected(world *w, unsigned char **bytes)
{
    size_t size;
    *bytes = load(folder, "expected.npz", &size);
    assert_true(world_begin(w, *bytes, size));
    bw_dataset *expected = bw_read(w->ctx, "expected.npz", NULL);
    assert_non_null(expected);
    return expected;
}

static int find(const bw_dataset *expected, const char *name)
{
    for (int i = 0; i < bwi_dataset_fields(expected); i++) {
        if (strcmp(bwi_dataset_field(expected, i)->name, name) == 0) {
            return i;
        }
    }
    fail_msg("no %s in expected.npz", name);
    return -1;
}

/* Decodes at the expected size; no value may differ by more than `most`, and all together by no more than `mean` on average. */
static void compare(world *w, const bw_dataset *expected, const char *file, const char *name, int most, double mean)
{
    int number = find(expected, name);
    const bwi_field *field = bwi_dataset_field(expected, number);
    bwi_picture wanted = {.height = field->shape[0], .width = field->shape[1], .channels = (int)field->shape[2]};
    char error[BWI_IMAGE_ERROR];
    bwi_buffer scratch = {.memory = NULL};
    size_t size;
    int64_t count;
    double sum = 0;
    float *right = gather_all(expected, number, &count);
    unsigned char *bytes = load(folder, file, &size), *values = malloc((size_t)count);
    if (bwi_picture_decode(w->ctx, &scratch, bytes, size, &wanted, values, error) != BW_OK) {
        fail_msg("%s: %s", file, error);
    }
    for (int64_t i = 0; i < count; i++) {
        int difference = abs(values[i] - (int)right[i]);
        sum += difference;
        if (difference > most) {
            fail_msg("%s as %s: value %lld is %d, expected %d", file, name, (long long)i, values[i], (int)right[i]);
        }
    }
    if (sum > mean * (double)count) {
        fail_msg("%s as %s: differs by %g on average", file, name, sum / (double)count);
    }
    bwi_buffer_free(w->ctx, &scratch);
    free(values);
    free(bytes);
    free(right);
}

/* FILE.EXTENSION in colours and in gray, which may differ by so much at most, and on average. */
static void compare_both(world *w, const bw_dataset *expected, const char *file, const char *extension, int most, double rgb,
                         double gray)
{
    char path[64], name[64];
    snprintf(path, sizeof path, "%s.%s", file, extension);
    snprintf(name, sizeof name, "%s_%s_rgb", file, extension);
    compare(w, expected, path, name, most, rgb);
    snprintf(name, sizeof name, "%s_%s_gray", file, extension);
    compare(w, expected, path, name, most, gray);
}

static void test_png(void **state)
{
    static const char *const files[] = {"rgb", "gray", "bits", "palette", "rgba", "gray_alpha", "deep", "interlaced"};
    (void)state;
    world w = {0};
    unsigned char *bytes;
    const bw_dataset *expected = open_expected(&w, &bytes);
    for (size_t i = 0; i < BWI_COUNT(files); i++) {
        compare_both(&w, expected, files[i], "png", 0, 0, 0);
    }
    world_end(&w);
    free(bytes);
}

/* Versions of the library differ in rounding; gray is taken from the file's luma there and from RGB here. */
static void test_jpeg(void **state)
{
    static const char *const files[] = {"photo", "full", "progressive", "photo_gray", "inks"};
    (void)state;
    world w = {0};
    unsigned char *bytes;
    const bw_dataset *expected = open_expected(&w, &bytes);
    for (size_t i = 0; i < BWI_COUNT(files); i++) {
        compare_both(&w, expected, files[i], "jpg", 3, 0.2, 0.6);
    }
    compare(&w, expected, "photo.jpg", "draft2", 3, 0.2);
    compare(&w, expected, "photo.jpg", "draft4", 3, 0.2);
    compare(&w, expected, "photo.jpg", "draft8", 3, 0.2);
    world_end(&w);
    free(bytes);
}

static void test_resize(void **state)
{
    static const char *const names[] = {"resize_7_5", "resize_30_40", "resize_5_40", "resize_29_6",
                                        "resize_1_1", "resize_13_18", "resize_12_17"};
    (void)state;
    world w = {0};
    unsigned char *bytes;
    const bw_dataset *expected = open_expected(&w, &bytes);
    for (size_t i = 0; i < BWI_COUNT(names); i++) {
        compare(&w, expected, "rgb.png", names[i], 1, 0.02); /* sums of floats in another order: a half may fall to either side */
    }
    world_end(&w);
    free(bytes);
}

static void test_look(void **state)
{
    static const struct {
        const char *file;
        int64_t height, width;
        int channels;
    } cases[] = {{"rgb.png", 13, 17, 3},   {"gray.png", 13, 17, 1},       {"palette.png", 13, 17, 3}, {"gray_alpha.png", 13, 17, 1},
                 {"photo.jpg", 61, 83, 3}, {"photo_gray.jpg", 61, 83, 1}, {"inks.jpg", 61, 83, 3}};
    (void)state;
    world w = {0};
    assert_true(world_begin(&w, NULL, 0));
    for (size_t i = 0; i < BWI_COUNT(cases); i++) {
        char error[BWI_IMAGE_ERROR];
        bwi_picture found;
        size_t size;
        unsigned char *bytes = load(folder, cases[i].file, &size);
        assert_int_equal(bwi_picture_look(w.ctx, bytes, size, &found, error), BW_OK);
        assert_int_equal(found.height, cases[i].height);
        assert_int_equal(found.width, cases[i].width);
        assert_int_equal(found.channels, cases[i].channels);
        free(bytes);
    }
    world_end(&w);
}

static bw_status decode(world *w, const unsigned char *bytes, size_t size, char *error)
{
    static unsigned char values[20 * 24 * 3];
    bwi_picture wanted = {.height = 20, .width = 24, .channels = 3};
    bwi_buffer scratch = {.memory = NULL};
    /* Memory of exactly the file's size, for the address sanitizer. */
    unsigned char *copy = malloc(size ? size : 1);
    memcpy(copy, bytes, size);
    bw_status status = bwi_picture_decode(w->ctx, &scratch, copy, size, &wanted, values, error);
    free(copy);
    bwi_buffer_free(w->ctx, &scratch);
    return status;
}

static void test_malformed(void **state)
{
    static const struct {
        const char *file;
        bw_status status;
        const char *part;
    } cases[] = {
        {"huge.png", BW_INVALID_ARGUMENT, "60000 x 60000 pixels"},
        {"widest.png", BW_INVALID_ARGUMENT, "2147483647 x 2147483647"},
        {"empty_claim.png", BW_DATA_LOSS, "a file of 69 bytes cannot hold the 8000 x 8000 pixels"},
        {"short_rows.png", BW_DATA_LOSS, "PNG"},
        {"no_width.png", BW_DATA_LOSS, "PNG"},
        {"huge.jpg", BW_INVALID_ARGUMENT, "60000 x 60000 pixels"},
        {"empty_claim.jpg", BW_DATA_LOSS, "cannot hold the 4000 x 4000 pixels"},
        {"large_progressive.jpg", BW_INVALID_ARGUMENT, "more than 48 MiB"},
        {"scans.jpg", BW_DATA_LOSS, "progression"},
        {"damaged.jpg", BW_DATA_LOSS, "JPEG"},
        {"text.png", BW_DATA_LOSS, "neither PNG nor JPEG: it begins with 'this is '"},
        {"nothing.png", BW_DATA_LOSS, "the file is empty"},
    };
    (void)state;
    world w = {0};
    assert_true(world_begin(&w, NULL, 0));
    for (size_t i = 0; i < BWI_COUNT(cases); i++) {
        char error[BWI_IMAGE_ERROR] = "";
        size_t size;
        unsigned char *bytes = load(folder, cases[i].file, &size);
        bw_status status = decode(&w, bytes, size, error);
        if (status != cases[i].status) {
            fail_msg("%s: %s, \"%s\"", cases[i].file, bw_status_name(status), error);
        }
        assert_contains(error, cases[i].part);
        free(bytes);
    }
    assert_string_equal(bw_message(w.ctx), "");
    assert_true(w.largest < (size_t)64 << 20);
    world_end(&w);
}

/* Every beginning of a file fails; a changed byte fails or gives some image. */
static void test_cut_and_changed(void **state)
{
    static const char *const files[] = {"rgb.png", "interlaced.png", "palette.png", "photo.jpg", "progressive.jpg", "inks.jpg"};
    (void)state;
    world w = {0};
    assert_true(world_begin(&w, NULL, 0));
    for (size_t i = 0; i < BWI_COUNT(files); i++) {
        char error[BWI_IMAGE_ERROR];
        size_t size;
        unsigned char *bytes = load(folder, files[i], &size);
        assert_int_equal(decode(&w, bytes, size, error), BW_OK);
        for (size_t cut = 0; cut < size; cut++) {
            if (decode(&w, bytes, cut, error) == BW_OK) {
                fail_msg("%s: read, cut at %zu of %zu", files[i], cut, size);
            }
            assert_true(error[0]);
        }
        for (size_t at = 0; at < size; at++) {
            unsigned char byte = bytes[at];
            bytes[at] = (unsigned char)(byte ^ (1 << at % 8) ^ (at % 3 ? 0 : 255));
            (void)decode(&w, bytes, size, error);
            bytes[at] = byte;
        }
        free(bytes);
    }
    assert_true(w.largest < (size_t)64 << 20);
    world_end(&w);
}

static void test_no_memory(void **state)
{
    static const char *const files[] = {"rgb.png", "interlaced.png", "photo.jpg"};
    (void)state;
    for (size_t i = 0; i < BWI_COUNT(files); i++) {
        char error[BWI_IMAGE_ERROR];
        size_t size;
        unsigned char *bytes = load(folder, files[i], &size);
        bw_status status = BW_RESOURCE_EXHAUSTED;
        for (int64_t n = 1; status != BW_OK; n++) {
            world w = {0};
            assert_true(world_begin(&w, NULL, 0));
            w.allocation_fail = w.allocations + n;
            status = decode(&w, bytes, size, error);
            assert_true(status == BW_OK || status == BW_RESOURCE_EXHAUSTED || status == BW_DATA_LOSS);
            assert_true(status == BW_OK || error[0]);
            assert_true(n < 100);
            world_end(&w);
        }
        free(bytes);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_png),       cmocka_unit_test(test_jpeg),      cmocka_unit_test(test_resize),
        cmocka_unit_test(test_look),      cmocka_unit_test(test_malformed), cmocka_unit_test(test_cut_and_changed),
        cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
