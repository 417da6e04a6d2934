/* Numbers as constants of C, in as many digits as keep every bit. */
#include "file/csource.h"

#include <math.h>
#include <string.h>

__extension__ typedef unsigned __int128 wide;

/* Finds the 9 decimal digits of a positive number and its decimal exponent, rounded as printf does: to nearest, halves to even.
 * With value = m 2^e, the digits are those of m 10^k / 2^-e for the k that leaves 9 of them, which 128 bits hold exactly; false if
 * they do not, which is so below 1e-19 and from 1e9 on. */
static bool find_digits(float value, uint32_t *digits, int *exponent)
{
    int e;
    if (!(value >= 1e-19f && value < 1e9f)) {
        return false;
    }
    wide m = (wide)ldexpf(frexpf(value, &e), 24), scaled, tens = 1;
    int k = 8 - (int)floor(log10((double)value));
    for (int i = 0; i < k; i++) {
        tens *= 10;
    }
    scaled = m * tens;
    e -= 24;
    if (e >= 0) {
        scaled <<= e;
    } else {
        wide half = (wide)1 << (-e - 1), lost = scaled & (2 * half - 1);
        scaled = scaled >> -e;
        scaled += lost > half || (lost == half && (scaled & 1));
    }
    if (scaled < 100000000 || scaled > 999999999) { /* the logarithm was rounded, or the digits up to a power of ten */
        return false;
    }
    *digits = (uint32_t)scaled;
    *exponent = 8 - k;
    return true;
}

/* Writes what "%.9g" does, many times as fast: models have millions of weights. Returns the end; NULL: it is left to printf. */
static char *put_digits(char *text, float value)
{
    uint32_t number;
    int exponent, count = 9;
    char digit[9];
    if (!find_digits(fabsf(value), &number, &exponent)) {
        return NULL;
    }
    for (int i = 8; i >= 0; i--, number /= 10) {
        digit[i] = (char)('0' + number % 10);
    }
    while (count > 1 && digit[count - 1] == '0') {
        count--;
    }
    if (signbit(value)) {
        *text++ = '-';
    }
    bool scientific = exponent < -4;
    int before = scientific ? 1 : exponent + 1; /* digits before the point */
    if (before <= 0) {
        *text++ = '0';
        *text++ = '.';
        for (int i = before; i < 0; i++) {
            *text++ = '0';
        }
    }
    for (int i = 0; i < count || i < before; i++) {
        if (i == before && i > 0) {
            *text++ = '.';
        }
        *text++ = i < count ? digit[i] : '0';
    }
    if (scientific) {
        *text++ = 'e';
        *text++ = '-';
        *text++ = (char)('0' - exponent / 10);
        *text++ = (char)('0' + -exponent % 10);
    }
    return text;
}

const char *bwi_csource_number(char text[32], float value)
{
    if (isnan(value)) {
        return "NAN";
    }
    if (isinf(value)) {
        return value > 0 ? "INFINITY" : "-INFINITY";
    }
    /* Subnormal numbers count as zero, as they do in the library; compilers would warn of such constants. */
    char *end = put_digits(text, value);
    if (end) {
        *end = 0;
    } else {
        bwi_print(text, 28, "%.9g", fpclassify(value) == FP_SUBNORMAL ? 0 : (double)value);
    }
    strcat(text, strpbrk(text, ".e") ? "f" : ".0f");
    return text;
}
