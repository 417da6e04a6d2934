/*
 * Text in which the locale never matters: formatting and parsing use the C locale, which glibc and musl hold
 * ready without allocating.
 */
#include "base/base.h"

#include <locale.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static pthread_once_t locale_once = PTHREAD_ONCE_INIT;
static locale_t plain_locale;

static void make_locale(void)
{
    plain_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
}

static locale_t c_locale(void)
{
    pthread_once(&locale_once, make_locale);
    return plain_locale;
}

int bwi_format(char *buffer, size_t size, const char *format, va_list arguments)
{
    locale_t before = uselocale(c_locale());
    int length = vsnprintf(buffer, size, format, arguments);
    uselocale(before);
    return length;
}

int bwi_print(char *buffer, size_t size, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int length = bwi_format(buffer, size, format, arguments);
    va_end(arguments);
    return length;
}

int bwi_print_file(FILE *file, const char *format, ...)
{
    va_list arguments;
    locale_t before = uselocale(c_locale());
    va_start(arguments, format);
    int length = vfprintf(file, format, arguments);
    va_end(arguments);
    uselocale(before);
    return length;
}

const char *bwi_errno_text(int code)
{
    return strerror_l(code, c_locale());
}

/* ---- Growing text ---- */

static bool reserve(bwi_text *text, size_t length)
{
    size_t needed = bwi_size_add(bwi_size_add(text->length, length), 1);
    if (needed <= text->capacity) {
        return true;
    }
    size_t capacity = bwi_size_multiply(text->capacity, 2);
    if (capacity < needed || capacity == SIZE_MAX) {
        capacity = needed;
    }
    if (capacity < 128) {
        capacity = 128;
    }
    char *larger = bwi_grow(text->ctx, text->bytes, text->bytes ? text->length + 1 : 0, capacity, 1);
    if (!larger) {
        return false;
    }
    text->bytes = larger;
    text->capacity = capacity;
    return true;
}

void bwi_text_add(bwi_text *text, const char *format, ...)
{
    if (text->failed) {
        return;
    }
    va_list arguments, again;
    va_start(arguments, format);
    va_copy(again, arguments);
    int length = bwi_format(NULL, 0, format, arguments);
    if (length < 0 || !reserve(text, (size_t)length)) {
        text->failed = true;
    } else {
        bwi_format(text->bytes + text->length, (size_t)length + 1, format, again);
        text->length += (size_t)length;
    }
    va_end(again);
    va_end(arguments);
}

void bwi_text_free(bwi_text *text)
{
    bwi_release(text->ctx, text->bytes);
    text->bytes = NULL;
    text->length = text->capacity = 0;
    text->failed = false;
}

/* ---- Numbers ---- */

static bool is_digit(const char *c, const char *end)
{
    return c < end && *c >= '0' && *c <= '9';
}

bool bwi_parse_int(const char *text, const char *end, int64_t *value)
{
    bool negative = text < end && *text == '-';
    if (text < end && (*text == '-' || *text == '+')) {
        text++;
    }
    if (text == end) {
        return false;
    }
    int64_t result = 0;
    for (; is_digit(text, end); text++) {
        int digit = *text - '0';
        if (__builtin_mul_overflow(result, 10, &result) || __builtin_add_overflow(result, negative ? -digit : digit, &result)) {
            return false;
        }
    }
    if (text != end) {
        return false;
    }
    *value = result;
    return true;
}

/* No double and no midpoint between two has more than 768 significant digits: of what follows it only matters whether
 * it is zero. */
#define DIGITS 800

typedef struct decimal {
    char digits[DIGITS + 32]; /* 0.d1d2d3... times 10^exponent */
    int count;
    int64_t exponent;
    bool any, more; /* some digit; a digit other than 0 beyond those kept */
} decimal;

static const char *read_digits(decimal *number, const char *text, const char *end, bool fraction)
{
    for (; is_digit(text, end); text++) {
        number->any = true;
        if (number->count == 0 && *text == '0') {
            number->exponent -= fraction;
            continue;
        }
        number->exponent += !fraction;
        if (number->count < DIGITS) {
            number->digits[number->count++] = *text;
        } else if (*text != '0') {
            number->more = true;
        }
    }
    return text;
}

static bool read_exponent(decimal *number, const char *text, const char *end)
{
    bool negative = text < end && *text == '-';
    if (text < end && (*text == '-' || *text == '+')) {
        text++;
    }
    if (text == end) {
        return false;
    }
    int64_t most = (int64_t)1 << 60;
    int64_t exponent = 0;
    for (; is_digit(text, end); text++) {
        exponent = exponent < most / 10 ? exponent * 10 + (*text - '0') : most;
    }
    number->exponent += negative ? -exponent : exponent;
    return text == end;
}

bool bwi_parse_double(const char *text, const char *end, double *value)
{
    decimal number = {.count = 0};
    bool negative = text < end && *text == '-';
    if (text < end && (*text == '-' || *text == '+')) {
        text++;
    }
    text = read_digits(&number, text, end, false);
    if (text < end && *text == '.') {
        text = read_digits(&number, text + 1, end, true);
    }
    if (!number.any) {
        return false;
    }
    if (text < end && (*text == 'e' || *text == 'E')) {
        if (!read_exponent(&number, text + 1, end)) {
            return false;
        }
    } else if (text != end) {
        return false;
    }
    double result = 0;
    if (number.count > 0) {
        if (number.more) {
            number.digits[number.count++] = '1';
        }
        int64_t exponent = number.exponent - number.count;
        exponent = exponent > 99999 ? 99999 : exponent < -99999 ? -99999 : exponent;
        bwi_print(number.digits + number.count, sizeof number.digits - (size_t)number.count, "e%d", (int)exponent);
        result = strtod_l(number.digits, NULL, c_locale());
    }
    if (isinf(result)) {
        return false;
    }
    *value = negative ? -result : result;
    return true;
}

/* ---- Forms ---- */

char *bwi_format_bytes(char *buffer, size_t bytes)
{
    static const char *const units[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    if (bytes < 1024) {
        bwi_print(buffer, 32, "%zu B", bytes);
        return buffer;
    }
    double value = (double)bytes / 1024;
    size_t unit = 0;
    for (; value >= 1023.95 && unit + 1 < BWI_COUNT(units); unit++) {
        value /= 1024;
    }
    bwi_print(buffer, 32, "%.1f %s", value, units[unit]);
    return buffer;
}

/* As Python writes tuples: (), (3,), (28, 28, 1). What does not fit is cut. */
char *bwi_format_shape(char *buffer, int ndim, const int64_t *shape)
{
    size_t capacity = 160;
    size_t length = 0;
    buffer[length++] = '(';
    for (int i = 0; i < ndim; i++) {
        char extent[32];
        size_t bytes = (size_t)bwi_print(extent, sizeof extent, "%s%lld%s", i ? " " : "", (long long)shape[i],
                                         ndim == 1 || i + 1 < ndim ? "," : "");
        if (length + bytes + 5 > capacity) {
            memcpy(buffer + length, "...", 3);
            length += 3;
            break;
        }
        memcpy(buffer + length, extent, bytes);
        length += bytes;
    }
    buffer[length] = ')';
    buffer[length + 1] = 0;
    return buffer;
}
