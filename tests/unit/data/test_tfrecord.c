/* TFRecord files that TensorFlow wrote (tests/data/make_tfrecord.py) against NumPy's arrays; cut, changed and ragged ones. */
#include "data_test.h"

#include "format/format.h"

#define FOLDER BW_TEST_DATA "/tfrecord/"

static void compare(const bw_dataset *dataset, const bw_dataset *right, bwi_role role)
{
    int64_t count, other;
    float *values = gather_all(dataset, bwi_dataset_find(dataset, role, 0), &count);
    float *expected = gather_all(right, bwi_dataset_find(right, role, 0), &other);
    assert_int_equal(count, other);
    assert_memory_equal(values, expected, (size_t)count * sizeof *values);
    free(values);
    free(expected);
}

static void test_numbers(void **state)
{
    (void)state;
    bw_context *ctx = bw_open(NULL);
    bw_dataset *right = bw_read(ctx, FOLDER "numbers.npz", NULL);
    bw_dataset *one = bw_read(ctx, FOLDER "numbers.tfrecord", NULL);
    bw_dataset *several = bw_read(ctx, FOLDER "first.tfrecord," FOLDER "second.tfrecord", NULL);
    for (int role = 0; role < 3; role++) {
        compare(one, right, (bwi_role)role);
        compare(several, right, (bwi_role)role);
    }
    const bwi_field *y = bwi_dataset_field(one, bwi_dataset_find(one, BWI_ROLE_TARGET, 0));
    assert_int_equal(y->ndim, 0);
    assert_int_equal(y->dtype, BW_I64);
    char place[300];
    assert_contains(bwi_dataset_location(several, 3, place, sizeof place), "second.tfrecord, record 0 at byte 0");
    assert_contains(bwi_dataset_location(several, 2, place, sizeof place), "first.tfrecord, record 2 at byte ");
    bw_close(ctx);
}

/* Packed files, shards by recipe, and both beside each other, are the same samples. */
static void test_packed_and_shards(void **state)
{
    (void)state;
    static const char *const paths[] = {
        FOLDER "numbers.tfrecord.gz",
        FOLDER "shards.tfrecord-*",
        FOLDER "shards.tfrecord-0000?-of-00002",
        FOLDER "shards.tfrecord-00000-of-00002," FOLDER "shards.tfrecord-00001-of-00002",
    };
    bw_context *ctx = bw_open(NULL);
    bw_dataset *right = bw_read(ctx, FOLDER "numbers.npz", NULL);
    for (size_t i = 0; i < BWI_COUNT(paths); i++) {
        bw_dataset *found = bw_read(ctx, paths[i], NULL);
        if (!found) {
            fail_msg("%s", bw_message(ctx));
        }
        for (int role = 0; role < 3; role++) {
            compare(found, right, (bwi_role)role);
        }
    }
    bw_read_options options = BW_READ_OPTIONS_DEFAULT;
    options.take = 4;
    assert_int_equal(bw_dataset_count(bw_read(ctx, FOLDER "shards.tfrecord-*", &options)), 4);
    options.take = -1;
    assert_failed(ctx, bw_read(ctx, FOLDER "shards.tfrecord-*", &options), BW_INVALID_ARGUMENT, "take is -1");
    assert_failed(ctx, bw_read(ctx, FOLDER "nothing-*", NULL), BW_NOT_FOUND, "nothing-*: no file has such a name");
    assert_failed(ctx, bw_read(ctx, FOLDER "shards.tfrecord-00000-of-", NULL), BW_NOT_FOUND, "not found");
    bw_close(ctx);
}

/* From standard input: a stream, read as far as it is wanted; every byte that is cut off or changed is found. */
static void test_standard_input(void **state)
{
    (void)state;
    size_t size;
    unsigned char *bytes = load(BW_TEST_DATA "/tfrecord", "numbers.tfrecord", &size);
    bw_context *ctx = bw_open(NULL);
    bw_dataset *right = bw_read(ctx, FOLDER "numbers.npz", NULL);
    world w = {0};
    assert_true(world_begin(&w, bytes, size));
    bw_dataset *stream = bw_read(w.ctx, "tfrecord:-", NULL);
    assert_int_equal(bw_dataset_count(stream), -1);
    assert_int_equal(bwi_dataset_finish(stream), BW_OK);
    assert_int_equal(bw_dataset_count(stream), 7);
    for (int role = 0; role < 3; role++) {
        compare(stream, right, (bwi_role)role);
    }
    char place[300];
    assert_contains(bwi_dataset_location(stream, 2, place, sizeof place), "standard input, record 2 at byte ");
    world_end(&w);
    size_t packed_size;
    unsigned char *packed = load(BW_TEST_DATA "/tfrecord", "numbers.tfrecord.gz", &packed_size);
    w = (world){0};
    assert_true(world_begin(&w, packed, packed_size));
    stream = bw_read(w.ctx, "tfrecord:-", NULL);
    assert_int_equal(bwi_dataset_finish(stream), BW_OK);
    for (int role = 0; role < 3; role++) {
        compare(stream, right, (bwi_role)role);
    }
    world_end(&w);
    free(packed);
    for (size_t cut = 0; cut < size; cut++) {
        w = (world){0};
        assert_true(world_begin(&w, bytes, cut));
        stream = bw_read(w.ctx, "tfrecord:-", NULL);
        bw_status status = stream ? bwi_dataset_finish(stream) : bwi_pending(w.ctx);
        if (status != BW_OK) {
            assert_contains(bw_message(w.ctx), cut ? "standard input: record" : "holds no records");
        } else {
            assert_true(bw_dataset_count(stream) < 7);
        }
        world_end(&w);
    }
    bw_close(ctx);
    free(bytes);
}

static void test_options(void **state)
{
    (void)state;
    bw_context *ctx = bw_open(NULL);
    bw_read_options options = BW_READ_OPTIONS_DEFAULT;
    bw_dataset *right = bw_read(ctx, FOLDER "images.npz", NULL);
    int64_t shape[BW_MAX_NDIM];
    options.input = "pixels";
    options.target = "class";
    options.ndim = 3;
    memcpy(options.shape, (int64_t[]){5, 6, 3}, 3 * sizeof(int64_t));
    bw_dataset *raw = bw_read(ctx, FOLDER "raw.tfrecord", &options);
    compare(raw, right, BWI_ROLE_INPUT);
    assert_int_equal(bw_dataset_shape(raw, shape), 3);
    assert_int_equal(bwi_dataset_field(raw, 1)->shape[0], 2);
    options.target = "";
    assert_int_equal(bwi_dataset_fields(bw_read(ctx, FOLDER "raw.tfrecord", &options)), 1);
    options.target = "none";
    assert_failed(ctx, bw_read(ctx, FOLDER "raw.tfrecord", &options), BW_NOT_FOUND,
                  "record 0 has no feature 'none'; found 'class', 'pixels'");
    options.target = NULL;
    options.input = NULL;
    assert_failed(ctx, bw_read(ctx, FOLDER "raw.tfrecord", &options), BW_NOT_FOUND, "no feature 'x' or 'image'; found 'class'");
    options.header = BW_HEADER_YES;
    assert_failed(ctx, bw_read(ctx, FOLDER "raw.tfrecord", &options), BW_INVALID_ARGUMENT, "'header' is not for this kind");
    bw_close(ctx);
}

static void test_images(void **state)
{
    (void)state;
    bw_context *ctx = bw_open(NULL);
    bw_read_options options = BW_READ_OPTIONS_DEFAULT;
    bw_dataset *right = bw_read(ctx, FOLDER "images.npz", NULL), *dataset = bw_read(ctx, FOLDER "images.tfrecord", NULL);
    int64_t shape[BW_MAX_NDIM];
    compare(dataset, right, BWI_ROLE_INPUT);
    compare(dataset, right, BWI_ROLE_TARGET);
    options.ndim = 3;
    memcpy(options.shape, (int64_t[]){2, 3, 1}, 3 * sizeof(int64_t));
    assert_int_equal(bw_dataset_shape(bw_read(ctx, FOLDER "images.tfrecord", &options), shape), 3);
    assert_int_equal(shape[0] * 100 + shape[1] * 10 + shape[2], 231);
    options.shape[2] = 2;
    assert_failed(ctx, bw_read(ctx, FOLDER "images.tfrecord", &options), BW_INVALID_ARGUMENT, "images cannot have the shape");
    bw_close(ctx);
}

/* Found by the scan or in the first record: the file does not open. */
static void test_refused(void **state)
{
    static const refused_file cases[] = {
        {"no_values", BW_INVALID_ARGUMENT, "record 0: 'x' has no values"},
        {"text_label", BW_INVALID_ARGUMENT, "record 0: 'y' has 1 values of bytes; expected numbers"},
        {"no_example", BW_DATA_LOSS, "record 0: the record is not a tf.train.Example"},
        {"none", BW_INVALID_ARGUMENT, "holds no records"},
        {"there_is_none", BW_NOT_FOUND, "there_is_none.tfrecord"},
    };
    (void)state;
    assert_refused(FOLDER, ".tfrecord", cases, BWI_COUNT(cases));
}

/* Found when the second record is gathered. */
static void test_second_record(void **state)
{
    static const struct {
        const char *file, *part;
        int64_t values;
    } cases[] = {
        {"ragged", "'x' has 3 floats, expected 2 floats", 2},
        {"types", "'x' has 2 int64, expected 2 floats", 2},
        {"missing", "it has no feature 'x'", 2},
        {"bad_image", "neither PNG nor JPEG", 90},
    };
    (void)state;
    bw_context *ctx = bw_open(NULL);
    for (size_t i = 0; i < BWI_COUNT(cases); i++) {
        char path[1024], error[BWI_GATHER_ERROR] = "";
        float values[90];
        int64_t one = 1, c = cases[i].values;
        bwi_destination to = bwi_host_destination(values, BW_F32, c);
        snprintf(path, sizeof path, FOLDER "%s.tfrecord", cases[i].file);
        bw_dataset *dataset = bw_read(ctx, path, NULL);
        assert_int_equal(bwi_dataset_gather(dataset, 0, 0, &one, 1, &to, error), BW_DATA_LOSS);
        assert_contains(error, cases[i].part);
        assert_contains(error, ".tfrecord, record 1 at byte ");
    }
    bw_close(ctx);
}

/* Reads all of it: whether the file is whole. */
static bool read_all(const unsigned char *bytes, size_t size)
{
    world w = {0};
    unsigned char *copy = malloc(size ? size : 1);
    memcpy(copy, bytes, size);
    assert_true(world_begin(&w, copy, size));
    bw_dataset *dataset = bw_read(w.ctx, "a.tfrecord", NULL);
    bool right = dataset;
    assert_true(right || bw_message(w.ctx)[0]);
    for (int64_t i = 0; right && i < bw_dataset_count(dataset); i++) {
        for (int field = 0; right && field < bwi_dataset_fields(dataset); field++) {
            float values[256];
            char error[BWI_GATHER_ERROR] = "";
            const bwi_field *f = bwi_dataset_field(dataset, field);
            int64_t c = 1;
            for (int k = 0; k < f->ndim; k++) {
                c *= f->shape[k];
            }
            bwi_destination to = bwi_host_destination(values, BW_F32, c);
            right = c <= 256 && bwi_dataset_gather(dataset, field, 0, &i, 1, &to, error) == BW_OK;
        }
    }
    right = right && bw_dataset_count(dataset) == (size == 868 ? 4 : 7);
    assert_true(w.largest < (size_t)1 << 20);
    bwi_pending(w.ctx);
    world_end(&w);
    free(copy);
    return right;
}

static void test_cut_and_changed(void **state)
{
    static const char *const files[] = {"numbers.tfrecord", "images.tfrecord"};
    (void)state;
    for (size_t i = 0; i < BWI_COUNT(files); i++) {
        size_t size;
        unsigned char *bytes = load(BW_TEST_DATA "/tfrecord", files[i], &size);
        assert_true(read_all(bytes, size));
        for (size_t cut = 0; cut < size; cut++) {
            assert_false(read_all(bytes, cut));
        }
        for (size_t at = 0; at < size; at++) {
            bytes[at] ^= (unsigned char)(1 << at % 8);
            assert_false(read_all(bytes, size)); /* checksums see every changed bit */
            bytes[at] ^= (unsigned char)(1 << at % 8);
        }
        free(bytes);
    }
}

/* Messages without checksums around them: any bytes at all. */
static void test_any_example(void **state)
{
    (void)state;
    size_t size;
    char error[BWI_EXAMPLE_ERROR], names[64];
    unsigned char *bytes = load(BW_TEST_DATA "/tfrecord", "numbers.tfrecord", &size);
    bwi_bytes file = {.data = bytes, .size = size};
    bwi_bytes record;
    size_t offset = 0;
    assert_int_equal(bwi_record_next(&file, &offset, &record, error), BW_OK);
    for (uint64_t i = 0; i < 20000; i++) {
        size_t length = bwi_random_at(1, 0, i).word[0] % (record.size + 1);
        unsigned char *copy = malloc(length ? length : 1);
        memcpy(copy, record.data, length);
        for (uint64_t k = 0; k < 1 + i % 4 && length; k++) {
            bwi_random random = bwi_random_at(2, k, i);
            copy[random.word[0] % length] = (unsigned char)random.word[1];
        }
        bwi_bytes message = {.data = copy, .size = length};
        bwi_list list;
        if (bwi_example_find(&message, i % 2 ? "x" : "y", &list, error) == BW_OK && list.kind != BWI_LIST_BYTES) {
            assert_true(list.count <= (int64_t)length);
            void *values = malloc((size_t)list.count * (list.kind == BWI_LIST_INT64 ? 8 : 4) + 1);
            bwi_list_read(&list, values);
            free(values);
        }
        bwi_example_names(&message, names, sizeof names);
        free(copy);
    }
    free(bytes);
}

static void test_unpacked(void **state)
{
    /* Example { 1: { 1: { 1: "x", 2: { 3: { 1: 5, 1: packed 300 -1 } } } } }, with an unknown field in the list. */
    static const unsigned char bytes[] = {
        0x0a, 0x1e, 0x0a, 0x1c, 0x0a, 0x01, 'x',  0x12, 0x17, 0x1a, 0x15, 0x08, 0x05, 0x2d, 0,    0,
        0,    0,    0x0a, 0x0c, 0xac, 0x02, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01,
    };
    (void)state;
    bwi_bytes message = {.data = bytes, .size = sizeof bytes};
    char error[BWI_EXAMPLE_ERROR];
    bwi_list list;
    message.size--; /* cut: the outermost length is too long */
    assert_int_equal(bwi_example_find(&message, "x", &list, error), BW_DATA_LOSS);
    message.size++;
    assert_int_equal(bwi_example_find(&message, "x", &list, error), BW_OK);
    int64_t values[3];
    assert_int_equal(list.count, 3);
    bwi_list_read(&list, values);
    assert_int_equal(values[0], 5);
    assert_int_equal(values[1], 300);
    assert_int_equal(values[2], -1);
    assert_int_equal(bwi_example_find(&message, "y", &list, error), BW_NOT_FOUND);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers),        cmocka_unit_test(test_options),       cmocka_unit_test(test_images),
        cmocka_unit_test(test_refused),        cmocka_unit_test(test_second_record), cmocka_unit_test(test_cut_and_changed),
        cmocka_unit_test(test_any_example),    cmocka_unit_test(test_unpacked),      cmocka_unit_test(test_packed_and_shards),
        cmocka_unit_test(test_standard_input),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
