/* Numbers in text against the C library's strtod: the same double for every text, to the bit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "format/format.h"
#include "support/random.h"

static void check(const char *text)
{
    char line[512];
    size_t size = strlen(text);
    snprintf(line, sizeof line, "%s\n", text);
    double expected = strtod(text, NULL);
    double found = 0;
    const char *end = bwi_number_scan(line, line + size + 1, &found);
    if (!(expected - expected == 0)) { /* infinity */
        assert_null(end);
        return;
    }
    if (end != line + size || memcmp(&found, &expected, sizeof found) != 0) {
        fail_msg("%s: expected %.17g, found %.17g", text, expected, found);
    }
}

static void test_given(void **unused)
{
    (void)unused;
    static const char *const texts[] = {"0",
                                        "-0",
                                        "1",
                                        "+1",
                                        "007",
                                        "1.",
                                        ".5",
                                        "0.1",
                                        "1e22",
                                        "1e23",
                                        "9007199254740993",
                                        "9007199254740992.5",
                                        "1e-5",
                                        "123456789012345678",
                                        "18446744073709551615",
                                        "18446744073709551616",
                                        "0.000000000000000000000000000001",
                                        "4.9e-324",
                                        "2.2250738585072011e-308",
                                        "1.7976931348623157e308",
                                        "1e400",
                                        "1E+2",
                                        "1e-400",
                                        "8.5e27",
                                        "12345678",
                                        "1234567.8",
                                        "0.12345678",
                                        "0.1234567812345678",
                                        "0.12345678123456781234567812345678",
                                        "99999999999999999999e-20"};
    for (size_t i = 0; i < BWI_COUNT(texts); i++) {
        check(texts[i]);
    }
}

static void test_random(void **unused)
{
    (void)unused;
    for (int i = 0; i < 200000; i++) {
        char text[400];
        double value;
        uint64_t bits = random_bits();
        memcpy(&value, &bits, sizeof value);
        switch (random_bits() % 5) {
        case 0: /* any double, as it is printed */
            if (value - value != 0) {
                continue;
            }
            snprintf(text, sizeof text, "%.17g", value);
            break;
        case 1:
            snprintf(text, sizeof text, "%.*g", (int)(random_bits() % 20) + 1, (double)(int64_t)random_bits() * 1e-18);
            break;
        case 2:
            snprintf(text, sizeof text, "%llu.%llue%d", (unsigned long long)(random_bits() >> random_bits() % 64),
                     (unsigned long long)(random_bits() >> random_bits() % 64), (int)(random_bits() % 60) - 30);
            break;
        case 3: /* in the middle between two doubles, or nearly */
            snprintf(text, sizeof text, "%llue-%d", (unsigned long long)((random_bits() >> 11 | 1) << random_bits() % 11),
                     (int)(random_bits() % 28));
            break;
        default:
            snprintf(text, sizeof text, "%.*f", (int)(random_bits() % 15),
                     (double)(float)((double)(int64_t)random_bits() / (double)(1ull << random_bits() % 64)));
        }
        check(text);
    }
}

static void test_no_numbers(void **unused)
{
    (void)unused;
    static const char *const texts[] = {"\n", "-\n", ".\n", "e5\n", "1e\n", "1e+\n", "abc\n", "--1\n", " 1\n", "nan\n", "inf\n"};
    double value = 7;
    for (size_t i = 0; i < BWI_COUNT(texts); i++) {
        assert_null(bwi_number_scan(texts[i], texts[i] + strlen(texts[i]), &value));
        assert_true(value == 7);
    }
    static const char *const followed = "12,34\n";
    assert_ptr_equal(bwi_number_scan(followed, followed + 6, &value), followed + 2);
    assert_true(value == 12);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_given), cmocka_unit_test(test_random),
                                       cmocka_unit_test(test_no_numbers)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
