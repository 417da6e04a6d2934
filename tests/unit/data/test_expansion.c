/* One rule for everything that is packed: what becomes more than 960 times as large is refused, unless the program wants it. */
#include "data_test.h"

#include "format/format.h"

enum { BYTES = 40 << 20 };

/* `bytes` packed by gzip as the only file. */
static bool reads(const char *path, const void *bytes, size_t size, bool any, const char *message)
{
    world w = {0};
    void *packed;
    size_t packed_size;
    bw_read_options options = BW_READ_OPTIONS_DEFAULT;
    options.unpack_any = any;
    options.target = strstr(path, ".csv") ? "" : NULL;
    assert_true(world_begin(&w, (const unsigned char *)"", 0));
    assert_int_equal(bwi_gzip_pack(w.ctx, bytes, size, &packed, &packed_size), BW_OK);
    w.bytes = packed;
    w.size = packed_size;
    bw_dataset *dataset = bw_read(w.ctx, path, &options);
    if (!dataset) {
        assert_contains(bw_message(w.ctx), message);
    }
    bwi_release(w.ctx, packed);
    bwi_pending(w.ctx);
    world_end(&w);
    return dataset;
}

static void test_idx(void **state)
{
    static const unsigned char head[8] = {0, 0, 8, 1, BYTES >> 24, BYTES >> 16 & 255, BYTES >> 8 & 255, BYTES & 255};
    unsigned char *bytes = calloc(1, sizeof head + BYTES);
    (void)state;
    memcpy(bytes, head, sizeof head);
    assert_false(
        reads("a.idx.gz", bytes, sizeof head + BYTES, false, "over 960-fold; if that is meant, save it uncompressed or read"));
    assert_true(reads("a.idx.gz", bytes, sizeof head + BYTES, true, ""));
    free(bytes);
}

/* A table stops at the same place, long before its end. */
static void test_csv(void **state)
{
    unsigned char *bytes = malloc(BYTES);
    (void)state;
    for (size_t i = 0; i < BYTES; i++) {
        bytes[i] = (unsigned char)("0,0\n"[i % 4]);
    }
    assert_false(reads("a.csv.gz", bytes, BYTES, false, "over 960-fold"));
    for (size_t i = 0; i < BYTES; i += 4) { /* numbers that differ a little are no bomb */
        bytes[i] = (unsigned char)('0' + i / 4 % 7);
        bytes[i + 2] = (unsigned char)('0' + i / 64 % 9);
    }
    assert_true(reads("a.csv.gz", bytes, (size_t)4 << 20, false, ""));
    free(bytes);
}

static void test_hdf5(void **state)
{
    (void)state;
    bw_context *ctx = bw_open(NULL);
    bw_read_options options = BW_READ_OPTIONS_DEFAULT;
    assert_failed(ctx, bw_read(ctx, BW_TEST_DATA "/samples/bomb.h5", &options), BW_INVALID_ARGUMENT, "over 960-fold");
    options.unpack_any = true;
    bw_dataset *dataset = bw_read(ctx, BW_TEST_DATA "/samples/bomb.h5", &options);
    assert_int_equal(bw_dataset_count(dataset), 10 << 20);
    bw_close(ctx);
}

static void test_npz(void **state)
{
    (void)state;
    bw_context *ctx = bw_open(NULL);
    bw_read_options options = BW_READ_OPTIONS_DEFAULT;
    assert_failed(ctx, bw_read(ctx, BW_TEST_DATA "/bomb_zeros.npz", &options), BW_INVALID_ARGUMENT, "over 960-fold");
    options.unpack_any = true;
    assert_non_null(bw_read(ctx, BW_TEST_DATA "/bomb_zeros.npz", &options));
    bw_close(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_idx),
        cmocka_unit_test(test_csv),
        cmocka_unit_test(test_hdf5),
        cmocka_unit_test(test_npz),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
