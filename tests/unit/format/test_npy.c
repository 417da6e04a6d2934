/* npy headers made by hand: what is read, what is refused, and that no prefix of one is read beyond its end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "format/format.h"

/* Parses a header of version 1 whose bytes stand in memory of exactly their size. */
static bw_status parse(bw_context *ctx, bwi_npy *npy, const char *text)
{
    size_t length = strlen(text), size = 10 + length;
    unsigned char *bytes = malloc(size);
    memcpy(bytes, "\x93NUMPY\1", 8);
    bytes[8] = (unsigned char)(length & 255);
    bytes[9] = (unsigned char)(length >> 8);
    memcpy(bytes + 10, text, length);
    bw_status status = bwi_npy_begin(ctx, npy, bytes, size, "file: x");
    if (status == BW_OK) {
        assert_int_equal(npy->offset, size);
        status = bwi_npy_parse(ctx, npy, bytes, "file: x");
    }
    free(bytes);
    return status;
}

static void test_good(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bw_dtype dtype;
        bool swapped, fortran;
        int ndim;
        int64_t shape[3];
        size_t bytes;
    } cases[] = {
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }     \n", BW_F32, false, false, 2, {2, 3}, 24},
        {"{'shape': (5,), 'descr': '>i2', 'fortran_order': True}", BW_I16, true, true, 1, {5}, 10},
        {"{\"descr\":\"|b1\",\"fortran_order\":False,\"shape\":()}", BW_BOOL, false, false, 0, {0}, 1},
        {"{'descr': '>u1', 'fortran_order': False, 'shape': (7L, 2L), }", BW_U8, false, false, 2, {7, 2}, 14},
        {"{'descr': '=f8', 'fortran_order': False, 'shape': (0, 4), }", BW_F64, false, false, 2, {0, 4}, 0},
        {"{'descr': '<f2', 'fortran_order': False, 'shape': (1, 1, 9), }", BW_F16, false, false, 3, {1, 1, 9}, 18},
    };
    bw_context *ctx = bw_open(NULL);
    for (size_t i = 0; i < BWI_COUNT(cases); i++) {
        bwi_npy npy;
        if (parse(ctx, &npy, cases[i].text) != BW_OK) {
            fail_msg("%s: %s", cases[i].text, bw_message(ctx));
        }
        assert_int_equal(npy.dtype, cases[i].dtype);
        assert_int_equal(npy.swapped, cases[i].swapped);
        assert_int_equal(npy.fortran, cases[i].fortran);
        assert_int_equal(npy.ndim, cases[i].ndim);
        assert_memory_equal(npy.shape, cases[i].shape, (size_t)npy.ndim * sizeof(int64_t));
        assert_int_equal(npy.bytes, cases[i].bytes);
    }
    bw_close(ctx);
}

#define HEAD "{'descr': '<f4', 'fortran_order': False, 'shape': "

static const struct {
    const char *text;
    bw_status status;
    const char *part;
} bad[] = {
    {"", BW_DATA_LOSS, "10 bytes are too few"},
    {"   \n", BW_DATA_LOSS, "expected '{', found the end"},
    {"hello world, no header", BW_DATA_LOSS, "found 'hello world"},
    {"{ ", BW_DATA_LOSS, "expected a key"},
    {"{}", BW_DATA_LOSS, "'descr' is missing"},
    {HEAD "(2, 3)", BW_DATA_LOSS, "expected ',' or '}'"},
    {HEAD "(2, 3), } import os", BW_DATA_LOSS, "expected nothing after '}', found 'import os'"},
    {HEAD "(2, 3), 'shape': (1,)}", BW_DATA_LOSS, "it has 'shape' twice"},
    {HEAD "(2, 3), 'extra': 1}", BW_DATA_LOSS, "found ''extra'"},
    {HEAD "(-2, 3)}", BW_INVALID_ARGUMENT, "negative"},
    {HEAD "(99999999999999999999,)}", BW_INVALID_ARGUMENT, "beyond 64 bits"},
    {HEAD "(4294967296, 4294967296)}", BW_INVALID_ARGUMENT, "(4294967296, 4294967296) is larger than memory"},
    {HEAD "(0, 4294967296, 4294967296)}", BW_INVALID_ARGUMENT, "larger than memory"},
    {HEAD "(4611686018427387904, 4)}", BW_INVALID_ARGUMENT, "larger than memory"},
    {HEAD "(1,1,1,1,1,1,1,1,1)}", BW_INVALID_ARGUMENT, "more than 8 axes"},
    {HEAD "(2.5,)}", BW_DATA_LOSS, "',' or ')'"},
    {HEAD "(5)}", BW_DATA_LOSS, "',' or ')'"},
    {HEAD "(2, 3}", BW_DATA_LOSS, "',' or ')'"},
    {HEAD "[2, 3]}", BW_DATA_LOSS, "a shape such as"},
    {HEAD "(,)}", BW_DATA_LOSS, "an extent"},
    {HEAD "(0x10,)}", BW_DATA_LOSS, "',' or ')'"},
    {HEAD "(", BW_DATA_LOSS, "an extent"},
    {"{'descr': '<f4', 'fortran_order': 0, 'shape': (1,)}", BW_DATA_LOSS, "True or False"},
    {"{'descr' '<f4', 'fortran_order': False, 'shape': (1,)}", BW_DATA_LOSS, "':'"},
    {"{'descr': <f4, 'fortran_order': False, 'shape': (1,)}", BW_DATA_LOSS, "a type such as '<f4'"},
    {"{'descr': '<f4, 'fortran_order: False, shape: (1,)}", BW_UNIMPLEMENTED, "'<f4, '"},
    {"{'descr': '<f4", BW_DATA_LOSS, "a type such as '<f4'"},
    {"{'descr': '\\x3cf4', 'fortran_order': False, 'shape': (1,)}", BW_DATA_LOSS, "a type such as '<f4'"},
    {"{'descr': '', 'fortran_order': False, 'shape': (1,)}", BW_DATA_LOSS, "the type is ''"},
    {"{'descr': '<', 'fortran_order': False, 'shape': (1,)}", BW_DATA_LOSS, "the type is '<'"},
    {"{'descr': '|O', 'fortran_order': False, 'shape': (1,)}", BW_UNIMPLEMENTED, "holds Python objects"},
    {"{'descr': 'O', 'fortran_order': False, 'shape': (1,)}", BW_UNIMPLEMENTED, "holds Python objects"},
    {"{'descr': '<U7', 'fortran_order': False, 'shape': (1,)}", BW_UNIMPLEMENTED, "holds text"},
    {"{'descr': '<M8[ns]', 'fortran_order': False, 'shape': (1,)}", BW_UNIMPLEMENTED, "dates or times, not numbers ('<M8[ns]')"},
    {"{'descr': '<f16', 'fortran_order': False, 'shape': (1,)}", BW_UNIMPLEMENTED, "'<f16'"},
    {"{'descr': '<i3', 'fortran_order': False, 'shape': (1,)}", BW_UNIMPLEMENTED, "not supported ('<i3')"},
    {"{'descr': '|i4', 'fortran_order': False, 'shape': (1,)}", BW_UNIMPLEMENTED, "'|i4'"},
    {"{'descr': '<V8', 'fortran_order': False, 'shape': (1,)}", BW_UNIMPLEMENTED, "raw records"},
    {"{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,)}", BW_UNIMPLEMENTED, "several fields"},
};

static void test_bad(void **state)
{
    (void)state;
    bw_context *ctx = bw_open(NULL);
    for (size_t i = 0; i < BWI_COUNT(bad); i++) {
        bwi_npy npy;
        bw_status status = parse(ctx, &npy, bad[i].text);
        const char *message = bw_message(ctx);
        if (status != bad[i].status || !strstr(message, bad[i].part) || strncmp(message, "file: x: ", 9) != 0) {
            fail_msg("%s: %s, \"%s\"", bad[i].text, bw_status_name(status), message);
        }
    }
    bw_close(ctx);
}

static void test_cut(void **state)
{
    (void)state;
    static const char good[] = HEAD "(2, 3)}";
    bw_context *ctx = bw_open(NULL);
    for (size_t length = 0; length + 1 < sizeof good; length++) {
        char text[sizeof good];
        bwi_npy npy;
        memcpy(text, good, length);
        text[length] = 0;
        assert_int_not_equal(parse(ctx, &npy, text), BW_OK);
    }
    bw_close(ctx);
}

static void test_begin(void **state)
{
    (void)state;
    static const struct {
        unsigned char bytes[BWI_NPY_PREFIX];
        size_t size;
        bw_status status;
        const char *part;
        size_t offset;
    } cases[] = {
        {"\x93NUMPY\1\0\x76\0{'", 12, BW_OK, "", 128},
        {"\x93NUMPY\2\0\x74\0\0\0", 12, BW_OK, "", 128},
        {"\x93NUMPY\3\0\0\0\1\0", 12, BW_OK, "", 65548},
        {"\x93NUMPY\1\0\x76\0{'", 11, BW_DATA_LOSS, "11 bytes", 0},
        {"\x93NUMPY\4\0\x76\0{'", 12, BW_UNIMPLEMENTED, "version 4.0", 0},
        {"\x93NUMPY\0\0\x76\0{'", 12, BW_UNIMPLEMENTED, "version 0.0", 0},
        {"\x93NUMPY\1\7\x76\0{'", 12, BW_UNIMPLEMENTED, "version 1.7", 0},
        {"\x93NUMPY\2\0\xff\xff\xff\xff", 12, BW_INVALID_ARGUMENT, "4294967295", 0},
        {"PK\3\4 and mor", 12, BW_DATA_LOSS,
         "found 'PK?"
         "? a'",
         0},
    };
    bw_context *ctx = bw_open(NULL);
    for (size_t i = 0; i < BWI_COUNT(cases); i++) {
        bwi_npy npy;
        assert_int_equal(bwi_npy_begin(ctx, &npy, cases[i].bytes, cases[i].size, "w"), cases[i].status);
        if (cases[i].status == BW_OK) {
            assert_int_equal(npy.offset, cases[i].offset);
        } else {
            assert_non_null(strstr(bw_message(ctx), cases[i].part));
        }
    }
    bw_close(ctx);
}

static void test_strides_and_swap(void **state)
{
    (void)state;
    bwi_npy npy = {.dtype = BW_I32, .ndim = 3, .shape = {2, 3, 4}, .bytes = 8};
    int64_t strides[BW_MAX_NDIM];
    bwi_npy_strides(&npy, strides);
    assert_true(strides[0] == 48 && strides[1] == 16 && strides[2] == 4);
    npy.fortran = true;
    bwi_npy_strides(&npy, strides);
    assert_true(strides[0] == 4 && strides[1] == 8 && strides[2] == 24);
    unsigned char bytes[9] = {1, 2, 3, 4, 5, 6, 7, 8, 9};
    bwi_npy_swap(&npy, bytes);
    assert_memory_equal(bytes, ((const unsigned char[]){4, 3, 2, 1, 8, 7, 6, 5, 9}), 9);
}

static void test_quote(void **state)
{
    (void)state;
    char buffer[BWI_QUOTE_SIZE], many[200];
    memset(many, 'a', sizeof many);
    assert_string_equal(bwi_quote(buffer, "a\n\x80\x7f'", 5), "'a?"
                                                              "?"
                                                              "?''");
    assert_string_equal(bwi_quote(buffer, "", 0), "''");
    /* Letters of other languages; a C1 control character, one that turns the direction of text, a surrogate, an overlong form. */
    assert_string_equal(bwi_quote(buffer,
                                  "gr\xc3\xb6\xc3\x9f"
                                  "e \xe6\x97\xa5",
                                  11),
                        "'gr\xc3\xb6\xc3\x9f"
                        "e \xe6\x97\xa5'");
    assert_string_equal(bwi_quote(buffer,
                                  "a\xc2\x9b"
                                  "b\xe2\x80\xae"
                                  "c",
                                  8),
                        "'a?b?c'");
    assert_string_equal(bwi_quote(buffer,
                                  "\xed\xa0\x80"
                                  "x\xc0\xaf",
                                  6),
                        "'?x?"
                        "?'");
    bwi_quote(buffer, many, sizeof many);
    assert_int_equal(strlen(buffer), 65);
    assert_string_equal(buffer + 60, "a'...");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good),  cmocka_unit_test(test_bad),   cmocka_unit_test(test_cut),
        cmocka_unit_test(test_begin), cmocka_unit_test(test_quote), cmocka_unit_test(test_strides_and_swap),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
