/* Text and numbers, under a locale with a decimal comma too. */
#include "faults.h"
#include "support/folder.h"

#include <float.h>
#include <locale.h>
#include <math.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

static void test_add(void **state)
{
    (void)state;
    faults memory = {0};
    bw_context *ctx = faults_context(&memory, NULL, 1);
    bwi_text text = {.ctx = ctx};
    char expected[4000] = "";
    for (int i = 0; i < 500; i++) {
        bwi_text_add(&text, "%d:%s ", i, i % 2 ? "odd" : "");
        snprintf(expected + strlen(expected), sizeof expected - strlen(expected), "%d:%s ", i, i % 2 ? "odd" : "");
    }
    bwi_text_add(&text, "%s", "");
    assert_string_equal(text.bytes, expected);
    assert_int_equal(text.length, strlen(expected));
    memory.fail_at = memory.calls + 1;
    bwi_text_add(&text, "%10000d", 1);
    assert_true(text.failed);
    assert_string_equal(text.bytes, expected);
    bwi_text_add(&text, "more");
    assert_string_equal(text.bytes, expected);
    bwi_text_free(&text);
    assert_null(text.bytes);
    bwi_text_add(&text, "%.2f", 1.5);
    assert_string_equal(text.bytes, "1.50");
    bwi_text_free(&text);
    bw_close(ctx);
    assert_int_equal(memory.blocks, 0);
}

static void test_parse_int(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t value;
    } right[] = {
        {"0", 0}, {"-0", 0}, {"+7", 7}, {"007", 7}, {"9223372036854775807", INT64_MAX}, {"-9223372036854775808", INT64_MIN}};
    static const char *const wrong[] = {"",
                                        "-",
                                        "+",
                                        "+-1",
                                        " 1",
                                        "1 ",
                                        "1.",
                                        "0x10",
                                        "1e3",
                                        "9223372036854775808",
                                        "-9223372036854775809",
                                        "99999999999999999999"};
    for (size_t i = 0; i < BWI_COUNT(right); i++) {
        int64_t value = 123;
        assert_true(bwi_parse_int(right[i].text, right[i].text + strlen(right[i].text), &value));
        assert_int_equal(value, right[i].value);
    }
    for (size_t i = 0; i < BWI_COUNT(wrong); i++) {
        int64_t value = 123;
        assert_false(bwi_parse_int(wrong[i], wrong[i] + strlen(wrong[i]), &value));
        assert_int_equal(value, 123);
    }
    int64_t value;
    const char *text = "12345";
    assert_true(bwi_parse_int(text + 1, text + 3, &value));
    assert_int_equal(value, 23);
}

static void expect_double(const char *text, double expected)
{
    double value = 123;
    assert_true(bwi_parse_double(text, text + strlen(text), &value));
    assert_memory_equal(&value, &expected, sizeof value); /* signs of zeros too */
}

static void test_parse_double(void **state)
{
    (void)state;
    expect_double("0", 0.0);
    expect_double("-0.0", -0.0);
    expect_double("1", 1);
    expect_double("+1.5", 1.5);
    expect_double(".5", 0.5);
    expect_double("5.", 5);
    expect_double("-12.5e-1", -1.25);
    expect_double("1E+3", 1000);
    expect_double("0.1", 0.1);
    expect_double("000000123.4500000", 123.45);
    expect_double("1.7976931348623157e308", DBL_MAX);
    expect_double("2.2250738585072014e-308", DBL_MIN);
    expect_double("4.9406564584124654e-324", 0x1p-1074);
    expect_double("1e-400", 0.0);
    expect_double("1e-99999999999999999999999", 0.0);
    expect_double("0e99999999999999999999999", 0.0);
    expect_double("9007199254740993", 9007199254740992.0); /* halfway: to even */
    expect_double("9007199254740995", 9007199254740996.0);
    static const char *const wrong[] = {"",
                                        "-",
                                        ".",
                                        "e5",
                                        "1e",
                                        "1e+",
                                        "1,5",
                                        "1.5.2",
                                        " 1",
                                        "1 ",
                                        "0x10",
                                        "0x1p3",
                                        "inf",
                                        "-inf",
                                        "nan",
                                        "infinity",
                                        "1e309",
                                        "1.8e308",
                                        "1e9999999999999999999",
                                        "1f",
                                        "--1",
                                        "1_0"};
    for (size_t i = 0; i < BWI_COUNT(wrong); i++) {
        double value = 123;
        assert_false(bwi_parse_double(wrong[i], wrong[i] + strlen(wrong[i]), &value));
        assert_true(value == 123);
    }
    double value;
    const char *text = "1.25e25";
    assert_true(bwi_parse_double(text, text + 4, &value));
    assert_true(value == 1.25);
}

/* Numbers with thousands of digits: a digit far behind a halfway case decides; exponents that digits outweigh. */
static void test_parse_long_double(void **state)
{
    (void)state;
    static char text[6000];
    strcpy(text, "9007199254740993.");
    memset(text + 17, '0', 3000);
    strcpy(text + 3017, "1");
    expect_double(text, 9007199254740994.0);
    text[3017] = '0';
    expect_double(text, 9007199254740992.0);
    strcpy(text, "0.");
    memset(text + 2, '0', 5000);
    strcpy(text + 5002, "25e5001");
    expect_double(text, 2.5);
    strcpy(text, "25");
    memset(text + 2, '0', 5000);
    strcpy(text + 5002, "e-5001");
    expect_double(text, 2.5);
}

/* What was printed with 17 digits comes back, and agrees with the system's own parser at any number of digits. */
static void test_parse_random_doubles(void **state)
{
    (void)state;
    for (uint64_t i = 0; i < 20000; i++) {
        bwi_random random = bwi_random_at(3, 0, i);
        double value;
        memcpy(&value, random.word, sizeof value);
        if (!isfinite(value)) {
            continue;
        }
        char text[64];
        snprintf(text, sizeof text, "%.*e", (int)(random.word[2] % 30), value);
        double expected = strtod(text, NULL);
        if (isfinite(expected)) {
            expect_double(text, expected);
        }
        snprintf(text, sizeof text, "%.17g", value);
        expect_double(text, value);
    }
}

static void expect_bytes(size_t bytes, const char *expected)
{
    char text[32];
    assert_ptr_equal(bwi_format_bytes(text, bytes), text);
    assert_string_equal(text, expected);
}

static void test_format_bytes(void **state)
{
    (void)state;
    expect_bytes(0, "0 B");
    expect_bytes(1023, "1023 B");
    expect_bytes(1024, "1.0 KiB");
    expect_bytes(12897485, "12.3 MiB");
    expect_bytes(1048575, "1.0 MiB"); /* not 1024.0 KiB */
    expect_bytes((size_t)3 << 30, "3.0 GiB");
    expect_bytes(SIZE_MAX, "16.0 EiB");
}

static void expect_shape(int ndim, const int64_t *shape, const char *expected)
{
    char text[160];
    assert_ptr_equal(bwi_format_shape(text, ndim, shape), text);
    assert_string_equal(text, expected);
}

static void test_format_shape(void **state)
{
    (void)state;
    expect_shape(0, NULL, "()");
    expect_shape(1, (const int64_t[]){3}, "(3,)");
    expect_shape(3, (const int64_t[]){28, 28, 1}, "(28, 28, 1)");
    char text[160];
    int64_t large[BW_MAX_NDIM];
    for (int i = 0; i < BW_MAX_NDIM; i++) {
        large[i] = INT64_MIN;
    }
    bwi_format_shape(text, BW_MAX_NDIM, large);
    assert_true(strlen(text) < sizeof text);
    assert_string_equal(text + strlen(text) - 4, "...)");
}

/* ---- A locale with a decimal comma ---- */

static bool make_locale(void)
{
    char command[2048];
    if (make_folder(NULL) != 0) {
        return false;
    }
    snprintf(command, sizeof command, "localedef -i de_DE -f UTF-8 %s/de_DE.UTF-8 >/dev/null 2>&1", folder);
    setenv("LOCPATH", folder, 1);
    bool made = system(command) == 0 && setlocale(LC_ALL, "de_DE.UTF-8");
    return remove_folder(NULL) == 0 && made;
}

static void test_locale(void **state)
{
    (void)state;
    if (!setlocale(LC_ALL, "de_DE.UTF-8") && !make_locale()) {
        skip();
    }
    char text[32];
    snprintf(text, sizeof text, "%.1f", 1.5);
    assert_string_equal(text, "1,5");
    expect_double("2.5", 2.5);
    double value;
    assert_false(bwi_parse_double("2,5", (const char *)"2,5" + 3, &value));
    bw_context *ctx = bw_open(NULL);
    bwi_fail(ctx, BW_NOT_FOUND, "%.2f %s", 0.25, bwi_errno_text(ENOENT));
    assert_string_equal(bw_message(ctx), "0.25 No such file or directory");
    bwi_text added = {.ctx = ctx};
    bwi_text_add(&added, "%g", 0.5);
    assert_string_equal(added.bytes, "0.5");
    bwi_text_free(&added);
    assert_string_equal(bwi_format_bytes(text, 1536), "1.5 KiB");
    snprintf(text, sizeof text, "%.1f", 1.5); /* the caller's locale is back */
    assert_string_equal(text, "1,5");
    bw_close(ctx);
    setlocale(LC_ALL, "C");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_add),
        cmocka_unit_test(test_parse_int),
        cmocka_unit_test(test_parse_double),
        cmocka_unit_test(test_parse_long_double),
        cmocka_unit_test(test_parse_random_doubles),
        cmocka_unit_test(test_format_bytes),
        cmocka_unit_test(test_format_shape),
        cmocka_unit_test(test_locale),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
