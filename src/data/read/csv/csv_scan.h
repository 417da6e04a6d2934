/*
 * The inner loop of CSV. It finds the ends of fields, 64 bytes at a time, and the value of a short decimal number between two
 * ends, without a branch that depends on its digits or sign. Everything else is left to the caller, which has a slower path for
 * all fields.
 */
#ifndef BWI_DATA_CSV_SCAN_H
#define BWI_DATA_CSV_SCAN_H

#include "format/format.h"

#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

/* ---- Where fields end ---- */

#define CSV_STRIDE 64

/* Scans text that ends with a newline; `marks` has a bit for each separator and newline among the CSV_STRIDE bytes at `base` that
 * has not been returned yet. Quotes are not recognised: a caller that meets one continues after its field with bwi_csv_scan_go. */
typedef struct csv_scan {
    const char *base, *end;
    uint64_t marks;
    char separator;
} csv_scan;

/* Returns a mask of CSV_STRIDE bits, set where the byte is one of two. */
#ifdef __SSE2__
static inline uint64_t bwi_csv_scan_sixteen(const char *text, char one, char other)
{
    __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)text);
    __m128i found = _mm_or_si128(_mm_cmpeq_epi8(bytes, _mm_set1_epi8(one)), _mm_cmpeq_epi8(bytes, _mm_set1_epi8(other)));
    return (unsigned)_mm_movemask_epi8(found);
}

static inline uint64_t bwi_csv_scan_either(const char *text, char one, char other)
{
    return bwi_csv_scan_sixteen(text, one, other) | bwi_csv_scan_sixteen(text + 16, one, other) << 16 |
           bwi_csv_scan_sixteen(text + 32, one, other) << 32 | bwi_csv_scan_sixteen(text + 48, one, other) << 48;
}
#else
static inline uint64_t bwi_csv_scan_either(const char *text, char one, char other)
{
    uint64_t found = 0;
    for (int i = 0; i < CSV_STRIDE; i++) {
        found |= (uint64_t)(text[i] == one || text[i] == other) << i;
    }
    return found;
}
#endif

/* Continues the scan at `at`. */
static inline void bwi_csv_scan_go(csv_scan *scan, const char *at)
{
    scan->base = at;
    if (scan->end - at >= CSV_STRIDE) {
        scan->marks = bwi_csv_scan_either(at, scan->separator, '\n');
        return;
    }
    char rest[CSV_STRIDE] = {0};
    memcpy(rest, at, (size_t)(scan->end - at));
    scan->marks = bwi_csv_scan_either(rest, scan->separator, '\n');
}

/* Returns the next separator or newline. There must be one. */
static inline const char *bwi_csv_scan_next(csv_scan *scan)
{
    while (!scan->marks) {
        bwi_csv_scan_go(scan, scan->base + CSV_STRIDE);
    }
    const char *found = scan->base + __builtin_ctzll(scan->marks);
    scan->marks &= scan->marks - 1;
    return found;
}

/* ---- Numbers ---- */

/*
 * Reads the number that fills the text from `at` to `end`: an optional sign, and up to eight digits with or without a point. Such
 * a number is an integer divided by a power of ten; both are exact as doubles, so the result is rounded only once. The eight bytes
 * before `end` are read and must be readable. False if the text is not such a number.
 */
static inline bool bwi_csv_scan_number(const char *at, const char *end, double *value)
{
    static const double tens[2][8] = {{1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7}, {-1e0, -1e1, -1e2, -1e3, -1e4, -1e5, -1e6, -1e7}};
    bool negative = *at == '-';
    uint64_t size = (uint64_t)(end - at) - negative;
    uint64_t text;
    if (size - 1 > 7 || __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__) {
        return false;
    }
    unsigned before = 64 - 8 * (unsigned)size; /* bits that precede the number */
    memcpy(&text, end - 8, sizeof text);
    uint64_t digits = (text ^ BWI_DIGIT_ZEROS) >> before << before;
    uint64_t others = bwi_digits_others(digits);
    unsigned fraction = 0;
    if (others) {
        unsigned point = (unsigned)__builtin_ctzll(others) & 56; /* position of the point's lowest bit */
        if ((others & (others - 1)) || (digits >> point & 255) != ('.' ^ '0') || size == 1) {
            return false;
        }
        uint64_t whole = digits & (((uint64_t)1 << point) - 1);
        digits = (digits >> point >> 8 << 8 << point) | whole << 8; /* digits before the point move into its place */
        fraction = 7 - point / 8;
    }
    *value = (double)(int64_t)bwi_digits_value(digits) / tens[negative][fraction];
    return true;
}

#endif
