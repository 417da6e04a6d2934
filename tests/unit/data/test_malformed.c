/* Malformed files of each format: a message that names the file and the place, in little memory, and nothing left behind. */
#include "data_test.h"

#include "format/internal.h"

#define DICTIONARY(type, shape) "{'descr': '" type "', 'fortran_order': False, 'shape': " shape ", }"

enum { NPY_HEADER = 1 };

/* Bytes of text, or of a file below tests/data whose name begins with a slash; cut behind `cut` bytes, if it is not 0; if it is
 * NPY_HEADER, the header of an npy file is made of the text, and nothing follows it. */
static const struct malformed {
    const char *path, *bytes;
    size_t size, cut;
    bw_status status;
    const char *part;
} rows[] = {
#define TEXT(path, text, status, part)                \
    {                                                 \
        path, text, sizeof(text) - 1, 0, status, part \
    }
#define NPY(header, status, part)                                     \
    {                                                                 \
        "a.npy", header, sizeof(header) - 1, NPY_HEADER, status, part \
    }
#define FIXTURE(path, name, cut, status, part) \
    {                                          \
        path, "/" name, 0, cut, status, part   \
    }
    /* Truncated. */
    FIXTURE("a.npz", "float32_stored.npz", 100, BW_DATA_LOSS, "a.npz: "),
    FIXTURE("a.h5", "samples/plain.h5", 700, BW_DATA_LOSS, "a.h5: "),
    FIXTURE("a.h5", "samples/many.h5", 5000, BW_DATA_LOSS, "a.h5: "),
    FIXTURE("a.tfrecord", "tfrecord/numbers.tfrecord", 300, BW_DATA_LOSS, "a.tfrecord: record 3 at byte 297: the file ends within"),
    FIXTURE("a.tfrecord.gz", "tfrecord/numbers.tfrecord.gz", 200, BW_DATA_LOSS, "a.tfrecord.gz: the gzip file is damaged after"),
    FIXTURE("a.csv.gz", "numbers.csv.gz", 100, BW_DATA_LOSS, "a.csv.gz: the gzip file is damaged after"),
    TEXT("a.npy", "\x93NUM", BW_DATA_LOSS, "a.npy: "),
    NPY(DICTIONARY("<f4", "(2, 3)"), BW_DATA_LOSS, "a.npy: "),
    TEXT("a-ubyte", "\0\0\x08\x02\0\0\0\x03\0\0\0\x02xxxxx", BW_DATA_LOSS, "a-ubyte: "),
    TEXT("a-ubyte", "\0\0\x08\x03\0\0", BW_DATA_LOSS, "a-ubyte: "),
    /* Wrong magic, other versions. */
    TEXT("a.npz", "this is no zip file at all, whatever its name says", BW_DATA_LOSS, "a.npz: "),
    TEXT("a.npy", "this is no npy file at all, whatever its name says", BW_DATA_LOSS, "a.npy: "),
    TEXT("a.npy", "\x93NUMPY\x09\x00\x76\x00", BW_DATA_LOSS, "a.npy: "),
    TEXT("a.h5", "this is no HDF5 file at all, whatever its name says", BW_DATA_LOSS, "a.h5: is not an HDF5 file"),
    TEXT("a-ubyte", "\0\1\x08\x01\0\0\0\x01x", BW_DATA_LOSS, "a-ubyte: "),
    TEXT("a-ubyte", "\0\0\x07\x01\0\0\0\x01x", BW_DATA_LOSS, "a-ubyte: "),
    TEXT("a.tfrecord", "this is no TFRecord file at all, whatever its name says", BW_DATA_LOSS, "a.tfrecord: record 0 at byte 0: "),
    /* Shapes that overflow, or are larger than any file. */
    NPY(DICTIONARY("<f8", "(4294967296, 4294967296, 4294967296)"), BW_INVALID_ARGUMENT, "a.npy: shape (4294967296, "),
    NPY(DICTIONARY("|u1", "(99999999999999999999999999,)"), BW_INVALID_ARGUMENT, "a.npy: the shape has an extent beyond 64 bits"),
    NPY(DICTIONARY("<f4", "(1, 1, 1, 1, 1, 1, 1, 1, 1, 1)"), BW_INVALID_ARGUMENT, "a.npy: the shape has more than 8 axes"),
    NPY(DICTIONARY("<f4", "(-3, 2)"), BW_INVALID_ARGUMENT, "a.npy: the shape has a negative extent"),
    TEXT("a-ubyte", "\0\0\x08\x04\x7f\xff\xff\xff\x7f\xff\xff\xff\x7f\xff\xff\xff\x7f\xff\xff\xff", BW_INVALID_ARGUMENT,
         "a-ubyte: shape"),
    FIXTURE("a.h5", "samples/unwritten.h5", 0, BW_DATA_LOSS, "a.h5: dataset 'x': has no values"),
    TEXT("a.libsvm", "1 1:2 9223372036854775807:3\n", BW_INVALID_ARGUMENT, "a.libsvm: line 1"),
    TEXT("a.libsvm", "1 1:2\n0 99999999999999999999:3\n", BW_INVALID_ARGUMENT, "a.libsvm: line 2"),
    /* Values that cannot be used. */
    NPY(DICTIONARY("|O", "(2, 3)"), BW_UNIMPLEMENTED, "a.npy: "),
    NPY(DICTIONARY("<c8", "(2, 3)"), BW_UNIMPLEMENTED, "a.npy: "),
    NPY("{'descr': __import__('os').system('true'), 'shape': (1,)}", BW_DATA_LOSS, "a.npy: "),
    /* Text in numbers, ragged rows, quotes. */
    TEXT("a.csv", "a,b,c\n1,2,3\n4,5\n", BW_INVALID_ARGUMENT, "a.csv: line 3: 2 fields, expected 3"),
    TEXT("a.csv", "a,b,c\n1,2,3\n4,5,6,7\n", BW_INVALID_ARGUMENT, "a.csv: line 3: 4 fields, expected 3"),
    TEXT("a.csv", "a,b,c\n1,2,3\n4,\"5,6\n7,8,9\n", BW_INVALID_ARGUMENT, "a.csv: line 3: a quote is not closed"),
    TEXT("a.csv", "a,b,c\n1,2,3\n4,1e999,6\n", BW_INVALID_ARGUMENT, "a.csv: line 3: column 'b': '1e999' is no number"),
    TEXT("a.csv", "a,b,c\n1,2,3\n4,,6\n", BW_INVALID_ARGUMENT, "a.csv: line 3: column 'b': a value is missing"),
    TEXT("a.csv", "a,b,c\n1,2,3\n4,5\0,6\n", BW_INVALID_ARGUMENT, "a.csv: line 3: column 'b'"),
    TEXT("a.csv", "a,b,c\n", BW_INVALID_ARGUMENT, "a.csv: cannot tell whether the first line, 'a,b,c', is a header"),
    TEXT("a.csv", "", BW_INVALID_ARGUMENT, "a.csv: "),
    TEXT("a.libsvm", "1 1:2\n1 1:x\n", BW_INVALID_ARGUMENT, "a.libsvm: line 2"),
    TEXT("a.libsvm", "1 1:2 2:3\n0 3:1 2:5\n", BW_INVALID_ARGUMENT,
         "line 2: expected an index above 3, since indices rise, found '2:5'"),
    TEXT("a.libsvm", "1 qid:4 0:2 0:2\n", BW_INVALID_ARGUMENT,
         "line 1: expected an index above 0, since indices rise, found '0:2'"),
    TEXT("a.libsvm", "1 1:2\none 1:2\n", BW_INVALID_ARGUMENT, "a.libsvm: line 2"),
    TEXT("a.libsvm", "1 1:2\n1 -1:2\n", BW_INVALID_ARGUMENT, "a.libsvm: line 2"),
    TEXT("a.libsvm", "1 1:2\n1 3\n", BW_INVALID_ARGUMENT, "a.libsvm: line 2"),
    TEXT("a.libsvm", "", BW_INVALID_ARGUMENT, "a.libsvm: "),
};

static unsigned char *npy_header(const char *text, size_t *size)
{
    unsigned char *bytes = malloc(129);
    memcpy(bytes, "\x93NUMPY\x01\x00\x76\x00", 10);
    snprintf((char *)bytes + 10, 119, "%-117s\n", text);
    *size = 128;
    return bytes;
}

static void test_rows(void **state)
{
    (void)state;
    int wrong = 0;
    for (size_t i = 0; i < BWI_COUNT(rows); i++) {
        const struct malformed *row = &rows[i];
        size_t size = row->size;
        unsigned char *loaded = row->bytes[0] == '/' ? load(BW_TEST_DATA, row->bytes + 1, &size) : NULL;
        if (row->cut == NPY_HEADER) {
            loaded = npy_header(row->bytes, &size);
        }
        world w = {0};
        bool cut = row->cut && row->cut != NPY_HEADER;
        assert_true(world_begin(&w, loaded ? loaded : (const unsigned char *)row->bytes, cut ? row->cut : size));
        bw_dataset *dataset = bw_read(w.ctx, row->path, NULL);
        bw_status status = dataset ? BW_OK : bwi_pending(w.ctx);
        if (status != row->status || !strstr(bw_message(w.ctx), row->part)) {
            print_error("row %zu, %s: expected %d '%s', found %d '%s'\n", i, row->path, (int)row->status, row->part, (int)status,
                        bw_message(w.ctx));
            wrong++;
        }
        assert_true(w.largest < (size_t)64 << 20);
        world_end(&w);
        free(loaded);
    }
    assert_int_equal(wrong, 0);
}

/* A record whose length is a lie with a right checksum. */
static void test_long_record(void **state)
{
    (void)state;
    unsigned char bytes[64] = {[6] = 1}; /* 2^48 bytes */
    uint32_t crc = bwi_crc32c(bytes, 8), masked = (crc >> 15 | crc << 17) + 0xa282ead8u;
    memcpy(bytes + 8, &masked, sizeof masked);
    static const char *const paths[] = {"a.tfrecord", "tfrecord:-"};
    for (size_t i = 0; i < BWI_COUNT(paths); i++) {
        world w = {0};
        assert_true(world_begin(&w, bytes, sizeof bytes));
        assert_failed(w.ctx, bw_read(w.ctx, paths[i], NULL), BW_DATA_LOSS,
                      "record 0 at byte 0: a record of 281474976710656 bytes, but only 48 are left in the file");
        assert_true(w.largest < (size_t)1 << 20);
        world_end(&w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_long_record),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
