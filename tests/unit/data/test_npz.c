/* npz files against what NumPy wrote (tests/data/make_npz.py), and against every kind of damage. */
#include "data_test.h"

#define SAMPLES 5
#define VALUES (SAMPLES * 3 * 4 * 2)

/* The formula of make_npz.py. */
static float expected(const char *type, int64_t k)
{
    if (strncmp(type, "bool", 4) == 0) {
        return k % 3 == 0 ? 1.0f : 0.0f;
    }
    if (type[0] == 'u') {
        return (float)(k % 101);
    }
    return (float)(k % 101 - 50) + (type[0] == 'f' ? 0.5f : 0.0f);
}

static void check_x(const bw_dataset *dataset, int field, const char *type, int64_t values)
{
    int64_t count;
    float *x = gather_all(dataset, field, &count);
    assert_int_equal(count, values);
    for (int64_t k = 0; k < count; k++) {
        assert_float_equal(x[k], expected(type, k), 0);
    }
    free(x);
}

static void check_y_and_w(const bw_dataset *dataset)
{
    int64_t count;
    float *y = gather_all(dataset, bwi_dataset_find(dataset, BWI_ROLE_TARGET, 0), &count);
    assert_int_equal(count, SAMPLES);
    float *w = gather_all(dataset, bwi_dataset_find(dataset, BWI_ROLE_WEIGHT, 0), &count);
    assert_int_equal(count, SAMPLES);
    for (int s = 0; s < SAMPLES; s++) {
        assert_float_equal(y[s], (float)(s % 7), 0);
        assert_float_equal(w[s], (float)s / 4, 0);
    }
    free(y);
    free(w);
}

static void check_file(const char *name, const char *type, bw_dtype dtype)
{
    world w = {0};
    size_t size;
    unsigned char *bytes = load(BW_TEST_DATA, name, &size);
    assert_true(world_begin(&w, bytes, size));
    bw_dataset *dataset = bw_read(w.ctx, name, NULL);
    if (!dataset) {
        fail_msg("%s", bw_message(w.ctx));
    }
    const bwi_field *x = bwi_dataset_field(dataset, 0);
    assert_int_equal(bw_dataset_count(dataset), SAMPLES);
    assert_int_equal(bwi_dataset_fields(dataset), 3);
    assert_int_equal(x->dtype, dtype);
    assert_string_equal(x->name, "");
    int64_t shape[BW_MAX_NDIM];
    assert_int_equal(bw_dataset_shape(dataset, shape), 3);
    assert_int_equal(shape[0], 3);
    assert_int_equal(shape[1], 4);
    assert_int_equal(shape[2], 2);
    check_x(dataset, 0, type, VALUES);
    check_y_and_w(dataset);
    world_end(&w);
    free(bytes);
}

static void test_types(void **state)
{
    (void)state;
    static const char *const names[] = {"uint8",  "int8",  "uint16",  "int16",   "uint32",  "int32",
                                        "uint64", "int64", "float16", "float32", "float64", "bool"};
    static const char *const forms[] = {"stored", "deflated", "big", "big_fortran"};
    for (int type = 0; type < 12; type++) {
        for (int form = 0; form < 4; form++) {
            char name[64];
            snprintf(name, sizeof name, "%s_%s.npz", names[type], forms[form]);
            check_file(name, names[type], (bw_dtype)type);
        }
    }
}

static void test_versions(void **state)
{
    (void)state;
    check_file("version1.npz", "float32", BW_F32);
    check_file("version2.npz", "float32", BW_F32);
    check_file("version3.npz", "float32", BW_F32);
}

static void test_named(void **state)
{
    (void)state;
    world w = {0};
    size_t size;
    unsigned char *bytes = load(BW_TEST_DATA, "named.npz", &size);
    assert_true(world_begin(&w, bytes, size));
    bw_dataset *dataset = bw_read(w.ctx, "named.npz", NULL);
    assert_non_null(dataset);
    assert_int_equal(bwi_dataset_fields(dataset), 5);
    int left = bwi_dataset_find(dataset, BWI_ROLE_INPUT, 0), right = bwi_dataset_find(dataset, BWI_ROLE_INPUT, 1);
    assert_string_equal(bwi_dataset_field(dataset, left)->name, "left");
    assert_string_equal(bwi_dataset_field(dataset, right)->name, "right");
    assert_int_equal(bwi_dataset_find(dataset, BWI_ROLE_INPUT, 2), -1);
    assert_string_equal(bwi_dataset_field(dataset, bwi_dataset_find(dataset, BWI_ROLE_TARGET, 1))->name, "kind");
    assert_string_equal(bwi_dataset_field(dataset, bwi_dataset_find(dataset, BWI_ROLE_WEIGHT, 0))->name, "age");
    check_x(dataset, left, "float32", VALUES);
    check_x(dataset, right, "uint8", 30);
    check_y_and_w(dataset);
    world_end(&w);
    free(bytes);
}

/* Stored arrays stay where they are: apart from the objects nothing is allocated. */
static void test_in_place(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        bool in_place;
    } cases[] = {{"float64_stored.npz", true}, {"zip64.npz", true}, {"float64_deflated.npz", false}, {"float64_big.npz", true}};
    for (size_t i = 0; i < BWI_COUNT(cases); i++) {
        world w = {0};
        size_t size;
        unsigned char *bytes = load(BW_TEST_DATA, cases[i].name, &size);
        assert_true(world_begin(&w, bytes, size));
        int64_t before = w.live;
        bw_dataset *dataset = bw_read(w.ctx, cases[i].name, NULL);
        assert_non_null(dataset);
        int64_t left = 2 + (cases[i].in_place ? 2 : 3); /* object and columns; the mapping and its record, or each array */
        left += i == 3;                                 /* x is converted, y and w are little-endian and stay */
        assert_int_equal(w.live - before, left);
        check_x(dataset, 0, i == 1 ? "float32" : "float64", VALUES);
        bw_dataset_free(dataset);
        assert_int_equal(w.live, before);
        world_end(&w);
        free(bytes);
    }
}

static void test_digits(void **state)
{
    (void)state;
    static const int classes[10] = {178, 182, 177, 183, 181, 182, 181, 179, 174, 180};
    static const float first_row[8] = {0, 0, 5, 13, 9, 1, 0, 0};
    bw_context *ctx = bw_open(NULL);
    bw_read_options options = BW_READ_OPTIONS_DEFAULT;
    options.scale = 1.0 / 16;
    bw_dataset *dataset = bw_read(ctx, BW_DATA "/digits.npz", &options);
    if (!dataset) {
        fail_msg("%s", bw_message(ctx));
    }
    assert_int_equal(bw_dataset_count(dataset), 1797);
    int64_t shape[BW_MAX_NDIM], count;
    assert_int_equal(bw_dataset_shape(dataset, shape), 3);
    assert_true(shape[0] == 8 && shape[1] == 8 && shape[2] == 1);
    float *x = gather_all(dataset, 0, &count);
    double sum = 0;
    for (int64_t k = 0; k < count; k++) {
        sum += (double)x[k];
    }
    assert_true(sum * 16 == 561718.0); /* the sum of the csv file's pixels */
    for (int k = 0; k < 8; k++) {
        assert_float_equal(x[k] * 16, first_row[k], 0);
    }
    float *y = gather_all(dataset, bwi_dataset_find(dataset, BWI_ROLE_TARGET, 0), &count);
    int found[10] = {0};
    for (int64_t k = 0; k < count; k++) {
        found[(int)y[k]]++;
    }
    assert_memory_equal(found, classes, sizeof classes);
    free(x);
    free(y);
    bw_close(ctx);
}

/* ---- Refusals ---- */

typedef struct refusal {
    const char *name;
    bw_status status;
    const char *part, *also;
} refusal;

static const refusal refusals[] = {
    {"no_x.npz", BW_NOT_FOUND, "no member 'x.npy'", "'images.npy', 'y.npy'; call inputs x and targets y when saving"},
    {"counts.npz", BW_INVALID_ARGUMENT, "x has 5 samples", "y has 4"},
    {"empty.npz", BW_INVALID_ARGUMENT, "holds no samples", "(0, 3, 4, 2)"},
    {"objects.npz", BW_UNIMPLEMENTED, "holds Python objects", "member 'x.npy'"},
    {"complex.npz", BW_UNIMPLEMENTED, "complex numbers", "'<c8'"},
    {"text.npz", BW_UNIMPLEMENTED, "holds text", "'<U1'"},
    {"records.npz", BW_UNIMPLEMENTED, "records", "x.npy"},
    {"scalar.npz", BW_INVALID_ARGUMENT, "1 to 8 axes", "x.npy"},
    {"mixed.npz", BW_INVALID_ARGUMENT, "either 'x.npy'", "found both"},
    {"twice.npz", BW_DATA_LOSS, "'x.npy'", "twice"},
    {"packed_bzip2.npz", BW_UNIMPLEMENTED, "method 12", "x.npy"},
    {"encrypted.npz", BW_UNIMPLEMENTED, "encrypted", "x.npy"},
    {"bomb_zeros.npz", BW_INVALID_ARGUMENT, "unpack to 40.0 MiB or more", "uncompressed"},
    {"bomb_shape.npz", BW_DATA_LOSS, "needs 1099511627776 bytes", "holds 10"},
    {"bomb_size.npz", BW_DATA_LOSS, "cannot hold 2147483648", "x.npy"},
    {"bomb_overlap.npz", BW_DATA_LOSS, "overlap", "packed bytes"},
    {"bomb_members.npz", BW_DATA_LOSS, "claims 1099511627776 members", "bytes hold at most"},
};

static void test_refusals(void **state)
{
    (void)state;
    for (size_t i = 0; i < BWI_COUNT(refusals); i++) {
        world w = {0};
        size_t size;
        unsigned char *bytes = load(BW_TEST_DATA, refusals[i].name, &size);
        assert_true(world_begin(&w, bytes, size));
        bw_dataset *dataset = bw_read(w.ctx, refusals[i].name, NULL);
        assert_failed(w.ctx, dataset, refusals[i].status, refusals[i].part);
        assert_contains(bw_message(w.ctx), refusals[i].name);
        assert_contains(bw_message(w.ctx), refusals[i].also);
        assert_true(w.largest < 1 << 20);
        world_end(&w);
        free(bytes);
    }
}

/* ---- Damage ---- */

/* Reads bytes; a dataset that comes out of them has the right values of x, or another shape than them. */
static bool survives(const unsigned char *bytes, size_t size, const char *type)
{
    world w = {0};
    assert_true(world_begin(&w, bytes, size));
    bw_dataset *dataset = bw_read(w.ctx, "damaged.npz", NULL);
    bool read = dataset;
    if (read) {
        check_x(dataset, 0, type, VALUES);
    } else {
        assert_int_not_equal(bwi_pending(w.ctx), BW_OK);
        assert_contains(bw_message(w.ctx), "damaged.npz");
    }
    world_end(&w);
    return read;
}

static void test_truncated(void **state)
{
    (void)state;
    static const char *const names[] = {"int8_stored.npz", "int8_deflated.npz"};
    for (size_t i = 0; i < BWI_COUNT(names); i++) {
        size_t size;
        unsigned char *bytes = load(BW_TEST_DATA, names[i], &size);
        for (size_t length = 0; length < size; length++) {
            assert_false(survives(bytes, length, "int8"));
        }
        assert_true(survives(bytes, size, "int8"));
        free(bytes);
    }
}

/* Every byte changed, in several ways: refused, or harmless. */
static void test_flipped(void **state)
{
    (void)state;
    static const char *const names[] = {"int8_stored.npz", "int8_deflated.npz", "zip64.npz"};
    static const unsigned char flips[] = {1, 0x80, 0xff};
    for (size_t i = 0; i < BWI_COUNT(names); i++) {
        size_t size, refused = 0;
        unsigned char *bytes = load(BW_TEST_DATA, names[i], &size);
        for (size_t at = 0; at < size; at++) {
            for (size_t flip = 0; flip < BWI_COUNT(flips); flip++) {
                bytes[at] ^= flips[flip];
                refused += !survives(bytes, size, i == 2 ? "float32" : "int8");
                bytes[at] ^= flips[flip];
            }
        }
        assert_true(refused > size);
        free(bytes);
    }
}

static void test_checksum(void **state)
{
    (void)state;
    static const char *const names[] = {"int8_stored.npz", "int8_big_fortran.npz"};
    for (size_t i = 0; i < BWI_COUNT(names); i++) {
        world w = {0};
        size_t size;
        unsigned char *bytes = load(BW_TEST_DATA, names[i], &size);
        bytes[i == 0 ? 200 : 0] ^= i == 0; /* a value of the stored x */
        if (i == 1) {                      /* the sum itself, in both headers of x */
            unsigned char *central = memmem(bytes, size, "PK\1\2", 4);
            bytes[14] ^= 1;
            central[16] ^= 1;
        }
        assert_true(world_begin(&w, bytes, size));
        bw_dataset *dataset = bw_read(w.ctx, "sum.npz", NULL);
        assert_failed(w.ctx, dataset, BW_DATA_LOSS, "CRC");
        assert_contains(bw_message(w.ctx), "sum.npz: member 'x.npy' is damaged");
        world_end(&w);
        free(bytes);
    }
}

static void test_no_zip(void **state)
{
    (void)state;
    static const unsigned char text[] = "x,y\n1,2\n";
    assert_false(survives(text, sizeof text, "int8"));
    assert_false(survives(text, 0, "int8"));
    world w = {0};
    assert_true(world_begin(&w, NULL, 0));
    assert_failed(w.ctx, bw_read(w.ctx, "absent.npz", NULL), BW_NOT_FOUND, "absent.npz");
    world_end(&w);
}

/* ---- Faults ---- */

static void test_io_fails(void **state)
{
    (void)state;
    size_t size;
    unsigned char *bytes = load(BW_TEST_DATA, "float32_stored.npz", &size);
    int64_t failures = 0;
    for (int64_t nth = 1;; nth++) {
        world w = {.io_fail = nth};
        assert_true(world_begin(&w, bytes, size));
        bw_dataset *dataset = bw_read(w.ctx, "a.npz", NULL);
        if (dataset) {
            check_x(dataset, 0, "float32", VALUES);
        } else {
            assert_int_not_equal(bwi_pending(w.ctx), BW_OK);
        }
        failures += !dataset;
        bool last = w.io_calls < nth;
        world_end(&w);
        if (last) {
            break;
        }
    }
    assert_int_equal(failures, 3); /* open, size and map; nothing is lost when close fails */
    free(bytes);
}

static void test_allocation_fails(void **state)
{
    (void)state;
    static const char *const names[] = {"float32_stored.npz", "float32_big_fortran.npz"};
    for (size_t i = 0; i < BWI_COUNT(names); i++) {
        size_t size;
        unsigned char *bytes = load(BW_TEST_DATA, names[i], &size);
        int64_t failures = 0;
        for (int64_t nth = 2;; nth++) { /* the first is the context's */
            world w = {.allocation_fail = nth};
            assert_true(world_begin(&w, bytes, size));
            bw_dataset *dataset = bw_batches(bw_take(bw_shuffle(bw_read(w.ctx, "a.npz", NULL), 1), 4), 2);
            bw_iterator *iterator = bw_iterate(dataset, 0);
            if (!iterator) {
                assert_int_equal(bwi_pending(w.ctx), BW_RESOURCE_EXHAUSTED);
            }
            failures += !iterator;
            bool last = w.allocations < nth;
            world_end(&w);
            if (last) {
                break;
            }
        }
        assert_true(failures >= 10);
        free(bytes);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_types),     cmocka_unit_test(test_versions), cmocka_unit_test(test_named),
        cmocka_unit_test(test_in_place),  cmocka_unit_test(test_digits),   cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_truncated), cmocka_unit_test(test_flipped),  cmocka_unit_test(test_checksum),
        cmocka_unit_test(test_no_zip),    cmocka_unit_test(test_io_fails), cmocka_unit_test(test_allocation_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
