/*
 * Decimal numbers in text, rounded correctly to double and fast: at most 19 digits and a power of ten up to 10^27 either way are
 * settled with integers here; what is left (long fractions, large exponents) goes to bwi_parse_double.
 *
 * m * 10^e with m < 2^64: for |e| <= 22 and m <= 2^53 both factors are doubles, so one operation rounds once. Otherwise 5^|e| fits
 * 64 bits. The product is exact in 128 bits. For the quotient m is multiplied by 1/5^|e|, cut to 64 bits; that decides the rounding
 * unless the result lies within one unit of its 64 bits of the middle between two doubles, and then it is divided: the quotient has
 * at least 62 bits, and its remainder says whether it is exact.
 */
#include "format/format.h"

#include <string.h>

__extension__ typedef unsigned __int128 wide;

#define EXACT_POWER 22
#define LARGEST_POWER 27
#define MOST_DIGITS 19
#define FRACTION 53

static const double tens[EXACT_POWER + 1] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                             1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

/* 2^inverse_shift[k] / 5^k, cut to 64 bits. */
static const uint64_t inverse[LARGEST_POWER + 1] = {
    0x8000000000000000, 0xcccccccccccccccc, 0xa3d70a3d70a3d70a, 0x83126e978d4fdf3b, 0xd1b71758e219652b, 0xa7c5ac471b478423,
    0x8637bd05af6c69b5, 0xd6bf94d5e57a42bc, 0xabcc77118461cefc, 0x89705f4136b4a597, 0xdbe6fecebdedd5be, 0xafebff0bcb24aafe,
    0x8cbccc096f5088cb, 0xe12e13424bb40e13, 0xb424dc35095cd80f, 0x901d7cf73ab0acd9, 0xe69594bec44de15b, 0xb877aa3236a4b449,
    0x9392ee8e921d5d07, 0xec1e4a7db69561a5, 0xbce5086492111aea, 0x971da05074da7bee, 0xf1c90080baf72cb1, 0xc16d9a0095928a27,
    0x9abe14cd44753b52, 0xf79687aed3eec551, 0xc612062576589dda, 0x9e74d1b791e07e48};
static const int inverse_shift[LARGEST_POWER + 1] = {63, 66, 68,  70,  73,  75,  77,  80,  82,  84,  87,  89,  91,  94,
                                                     96, 98, 101, 103, 105, 108, 110, 112, 115, 117, 119, 122, 124, 126};

static uint64_t power_of_five(int exponent)
{
    uint64_t power = 1;
    while (exponent-- > 0) {
        power *= 5;
    }
    return power;
}

/* value * 2^exponent, without overflow or underflow. */
static double times_power_of_two(uint64_t value, int exponent)
{
    uint64_t bits = (uint64_t)(exponent + 1023) << 52;
    double power;
    memcpy(&power, &bits, sizeof power);
    return (double)value * power;
}

/* value * 2^exponent; `more`: the true value lies above, by less than 1. */
static double rounded(wide value, bool more, int exponent)
{
    uint64_t high = (uint64_t)(value >> 64), low = (uint64_t)value;
    int bits = high ? 128 - __builtin_clzll(high) : 64 - __builtin_clzll(low);
    if (bits <= FRACTION) {
        return times_power_of_two(low, exponent);
    }
    int shift = bits - FRACTION;
    wide half = (wide)1 << (shift - 1), rest = value & (((wide)1 << shift) - 1);
    uint64_t kept = (uint64_t)(value >> shift);
    if (rest > half || (rest == half && (more || (kept & 1)))) {
        kept++;
    }
    return times_power_of_two(kept, exponent + shift);
}

static double divide(uint64_t m, int power)
{
    int up = __builtin_clzll(m);
    uint64_t product = (uint64_t)(((wide)(m << up) * inverse[power]) >> 64); /* or one more */
    int shift = 64 - __builtin_clzll(product) - FRACTION;
    uint64_t half = (uint64_t)1 << (shift - 1), rest = product & (2 * half - 1);
    if (rest != half && rest != half - 1) {
        return times_power_of_two((product >> shift) + (rest > half), shift + 64 - up - inverse_shift[power] - power);
    }
    uint64_t divisor = power_of_five(power);
    int over = __builtin_clzll(divisor);
    wide number = (wide)(m << up) << 63;
    uint64_t quotient = (uint64_t)(number / (divisor << over));
    bool more = (wide)quotient * (divisor << over) != number;
    return rounded(quotient, more, over - up - 63 - power);
}

static double scale_exactly(uint64_t m, int exponent)
{
    return exponent < 0 ? divide(m, -exponent) : rounded((wide)m * power_of_five(exponent), false, exponent);
}

/* Scans eight digits at a time, with three multiplications instead of eight. */
static const char *scan_digits(const char *at, const char *end, uint64_t *m)
{
    static const uint64_t powers[] = {1, 10, 100, 1000, 10000, 100000, 1000000, 10000000};
    unsigned digit;
    while (end - at >= 8) {
        uint64_t digits;
        memcpy(&digits, at, sizeof digits);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
        digits = __builtin_bswap64(digits);
#endif
        digits ^= BWI_DIGIT_ZEROS;
        uint64_t others = bwi_digits_others(digits);
        if (others) {
            int count = __builtin_ctzll(others) / 8;
            *m = count ? *m * powers[count] + bwi_digits_value(digits << (64 - 8 * count)) : *m;
            return at + count;
        }
        *m = *m * 100000000u + bwi_digits_value(digits);
        at += 8;
    }
    for (; (digit = (unsigned)(unsigned char)*at - '0') <= 9; at++) {
        *m = *m * 10 + digit;
    }
    return at;
}

/* Scans the digits of an exponent; NULL if there are none. */
static const char *scan_exponent(const char *at, int64_t *exponent)
{
    bool negative = *at == '-';
    if (*at == '-' || *at == '+') {
        at++;
    }
    if (*at < '0' || *at > '9') {
        return NULL;
    }
    int64_t value = 0;
    for (; *at >= '0' && *at <= '9'; at++) {
        value = value < 100000 ? value * 10 + (*at - '0') : value;
    }
    *exponent += negative ? -value : value;
    return at;
}

static const double signs[] = {1, -1};

const char *bwi_number_scan(const char *text, const char *end, double *value)
{
    const char *at = text;
    bool negative = *at == '-';
    at += negative | (*at == '+'); /* no branch: signs are as good as random */
    const char *first = at;
    uint64_t m = 0;
    unsigned digit;
    for (; (digit = (unsigned)(unsigned char)*at - '0') <= 9; at++) { /* mostly few */
        m = m * 10 + digit;
    }
    int64_t digits = at - first, exponent = 0;
    if (*at == '.') {
        const char *point = ++at;
        at = scan_digits(at, end, &m);
        exponent = point - at;
        digits -= exponent;
    }
    if (digits == 0) {
        return NULL;
    }
    if (*at == 'e' || *at == 'E') {
        at = scan_exponent(at + 1, &exponent);
        if (!at) {
            return NULL;
        }
    }
    double result;
    if (digits <= MOST_DIGITS && m <= (uint64_t)1 << FRACTION && exponent >= -EXACT_POWER && exponent <= EXACT_POWER) {
        result = exponent < 0 ? (double)m / tens[-exponent] : (double)m * tens[exponent];
    } else if (digits <= MOST_DIGITS && m == 0) {
        result = 0;
    } else if (digits <= MOST_DIGITS && exponent >= -LARGEST_POWER && exponent <= LARGEST_POWER) {
        result = scale_exactly(m, (int)exponent);
    } else if (!bwi_parse_double(first, at, &result)) {
        return NULL;
    }
    *value = result * signs[negative];
    return at;
}
