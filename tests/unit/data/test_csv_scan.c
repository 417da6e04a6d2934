/* The inner loop of CSV: ends of fields against a loop over bytes, short numbers against the C library's strtod, to the bit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "data/read/csv/csv_scan.h"
#include "support/random.h"

/* Text of every length up to some strides, in memory of exactly its size. */
static void test_marks(void **unused)
{
    (void)unused;
    for (size_t size = 1; size < 300; size++) {
        char *text = malloc(size);
        for (size_t i = 0; i < size; i++) {
            text[i] = "0123,\n\x8C\x0B"[random_bits() % 8];
        }
        text[size - 1] = '\n';
        for (size_t from = 0; from < size; from += 1 + size / 7) {
            csv_scan scan = {.end = text + size, .separator = ','};
            bwi_csv_scan_go(&scan, text + from);
            for (size_t i = from; i < size; i++) {
                if (text[i] == ',' || text[i] == '\n') {
                    assert_ptr_equal(bwi_csv_scan_next(&scan), text + i);
                }
            }
        }
        free(text);
    }
}

/* Whether it was taken as a short number; if so, it is strtod's. What stands before it must not matter. */
static bool check(const char *text)
{
    size_t size = strlen(text), space = size < 9 ? 9 : size;
    char *line = malloc(space + 1);
    line[space] = ',';
    memset(line, '0' + (int)(random_bits() % 10), space);
    memcpy(line + space - size, text, size);
    double found, expected = strtod(text, NULL);
    bool taken = bwi_csv_scan_number(line + space - size, line + space, &found);
    if (taken && memcmp(&found, &expected, sizeof found) != 0) {
        fail_msg("'%s': expected %.17g, found %.17g", text, expected, found);
    }
    free(line);
    return taken;
}

static void test_numbers(void **unused)
{
    (void)unused;
    bool little = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__;
    static const char *const given[] = {"0",   "-0",        "7",       "-1",     "1.",        ".5",       "-.5",
                                        "0.1", "12345678",  "0.00001", "007",    "-12345678", "1234.567", "-0.12345",
                                        "0.0", "-0.000000", "9999999", "99.999", "-9999999.", "255",      ".1234567"};
    for (size_t i = 0; i < BWI_COUNT(given); i++) {
        assert_true(check(given[i]) == little);
    }
    for (int i = 0; i < 300000; i++) {
        char text[64];
        int digits = (int)(random_bits() % 8) + 1;
        snprintf(text, sizeof text, "%s%0*llu", random_bits() % 2 ? "-" : "", (int)(random_bits() % 4),
                 (unsigned long long)(random_bits() % 100000000u >> random_bits() % 27));
        if (digits < 8 && strlen(text) < 8) {
            size_t at = (text[0] == '-') + random_bits() % strlen(text);
            memmove(text + at + 1, text + at, strlen(text + at) + 1);
            text[at] = '.';
        }
        assert_true(check(text) == little);
    }
}

static void test_no_numbers(void **unused)
{
    (void)unused;
    static const char *const given[] = {"",    "-",   ".",   "-.",  "--1",        "+1",     "1e5",      "1.2.3", "..",  "1-",
                                        "nan", "0x1", "1 ",  " 1",  "123456789",  "1/2",    "1:2",      "\"1\"", "1\r", "\x80",
                                        "1,2", "1;2", "1\n", "...", "-123456.78", "1\2602", "\xFF\xFF", "-"};
    for (size_t i = 0; i < BWI_COUNT(given); i++) {
        if (check(given[i])) {
            fail_msg("'%s' was taken as a number", given[i]);
        }
    }
    for (int i = 0; i < 300000; i++) { /* any bytes: nothing is a number but digits with a point among them */
        char text[9] = "";
        size_t size = random_bits() % 8 + 1;
        for (size_t k = 0; k < size; k++) {
            text[k] = random_bits() % 3 ? (char)('0' + random_bits() % 10) : (char)(random_bits() % 255 + 1);
        }
        const char *rest = text + (text[0] == '-');
        size_t whole = strspn(rest, "0123456789"), fraction = rest[whole] == '.' ? strspn(rest + whole + 1, "0123456789") : 0;
        bool number = whole + fraction > 0 && strlen(rest) == whole + fraction + (rest[whole] == '.');
        if (!number && check(text)) {
            fail_msg("'%s' was taken as a number", text);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_marks), cmocka_unit_test(test_numbers),
                                       cmocka_unit_test(test_no_numbers)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
