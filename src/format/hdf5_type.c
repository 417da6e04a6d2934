/* Types and shapes of HDF5 datasets, and their values as float32 or int64. */
#include "format/hdf5_bytes.h"

#include <math.h>
#include <string.h>

enum { CLASS_WHOLE = 0, CLASS_REAL = 1, CLASS_ENUM = 8, HEAD = 8 };

/* ---- Types ---- */

static bool big_endian(void)
{
    uint16_t one = 1;
    return *(const unsigned char *)&one == 0;
}

/* The parts of a floating-point number, as bits. */
typedef struct real_row {
    bw_dtype dtype;
    size_t size;
    int sign, exponent, exponent_bits, mantissa_bits;
    uint32_t bias;
} real_row;

static bool read_real(const unsigned char *at, size_t size, bw_dtype *dtype)
{
    static const real_row rows[] = {
        {BW_F16, 2, 15, 10, 5, 10, 15}, {BW_F32, 4, 31, 23, 8, 23, 127}, {BW_F64, 8, 63, 52, 11, 52, 1023}};
    enum { IMPLIED_ONE = 2 };
    for (size_t i = 0; i < BWI_COUNT(rows); i++) {
        const real_row *row = &rows[i];
        const unsigned char *more = at + HEAD;
        if (size == row->size && (at[1] >> 4 & 3) == IMPLIED_ONE && at[2] == row->sign && bwi_h5_number(more, 2) == 0 &&
            bwi_h5_number(more + 2, 2) == 8 * size && more[4] == row->exponent && more[5] == row->exponent_bits && more[6] == 0 &&
            more[7] == row->mantissa_bits && bwi_h5_number(more + 8, 4) == row->bias) {
            *dtype = row->dtype;
            return true;
        }
    }
    return false;
}

static bool read_whole(const unsigned char *at, size_t size, bw_dtype *dtype)
{
    static const bw_dtype types[2][4] = {{BW_U8, BW_U16, BW_U32, BW_U64}, {BW_I8, BW_I16, BW_I32, BW_I64}};
    if ((size != 1 && size != 2 && size != 4 && size != 8) || bwi_h5_number(at + HEAD, 2) != 0 ||
        bwi_h5_number(at + HEAD + 2, 2) != 8 * size) {
        return false;
    }
    *dtype = types[at[1] >> 3 & 1][__builtin_ctz((unsigned)size)];
    return true;
}

/* h5py's booleans are numbers of 8 bits with the names FALSE and TRUE, in this order. Up to version 2 names are padded to 8
 * bytes. */
static bool read_flag(const h5_part *message, bw_dtype *dtype)
{
    static const char names[] = "FALSE\0\0\0TRUE\0\0\0", newer[] = "FALSE\0TRUE";
    const unsigned char *at = message->data;
    size_t base = HEAD + HEAD + 4; /* a whole number's type */
    bool padded = at[0] >> 4 < 3;
    const char *expected = padded ? names : newer;
    size_t size = padded ? sizeof names : sizeof newer;
    bw_dtype of_number;
    if (message->size < base + size + 2 || bwi_h5_number(at + 1, 2) != 2 || (at[HEAD] & 15) != CLASS_WHOLE ||
        bwi_h5_number(at + HEAD + 4, 4) != 1 || !read_whole(at + HEAD, 1, &of_number)) {
        return false;
    }
    at += base;
    *dtype = BW_BOOL;
    return memcmp(at, expected, size) == 0 && at[size] == 0 && at[size + 1] == 1;
}

bool bwi_h5_type_read(const h5_part *message, bw_dtype *dtype, bool *swapped)
{
    const unsigned char *at = message->data;
    *swapped = false;
    if (message->size < HEAD + 4) {
        return false;
    }
    size_t size = (size_t)bwi_h5_number(at + 4, 4);
    int kind = at[0] & 15;
    if (kind == CLASS_ENUM) {
        return size == 1 && read_flag(message, dtype);
    }
    *swapped = size > 1 && (at[1] & 1) != big_endian();
    if (kind == CLASS_REAL) {
        enum { VAX = 0x40 };
        return message->size >= HEAD + 12 && !(at[1] & VAX) && read_real(at, size, dtype);
    }
    return kind == CLASS_WHOLE && read_whole(at, size, dtype);
}

/* ---- Shapes ---- */

bool bwi_h5_space_read(const h5_part *message, int *ndim, int64_t *shape)
{
    enum { NOTHING = 2 };
    const unsigned char *at = message->data;
    *ndim = 0;
    if (message->size < 4 || (at[0] != 1 && at[0] != 2) || at[1] > BW_MAX_NDIM || (at[0] == 2 && at[3] == NOTHING)) {
        return false;
    }
    size_t first = at[0] == 1 ? 8 : 4;
    if (message->size < first + 8 * (size_t)at[1]) {
        return false;
    }
    for (int i = 0; i < at[1]; i++) {
        uint64_t extent = bwi_h5_number(at + first + 8 * i, 8);
        if (extent > INT64_MAX) {
            return false;
        }
        shape[i] = (int64_t)extent;
    }
    *ndim = at[1];
    return true;
}

/* ---- Values ---- */

void bwi_h5_swap(unsigned char *values, size_t size, size_t count)
{
    for (; count > 0; count--, values += size) {
        for (size_t i = 0; i < size / 2; i++) {
            unsigned char byte = values[i];
            values[i] = values[size - 1 - i];
            values[size - 1 - i] = byte;
        }
    }
}

/* Half precision has 5 bits of exponent and 10 of mantissa; an exponent of 0 means a number without the implied one. */
static double from_half(uint16_t bits)
{
    int exponent = bits >> 10 & 31, mantissa = bits & 1023;
    double value = exponent == 0    ? ldexp(mantissa, -24)
                   : exponent == 31 ? (mantissa ? (double)NAN : (double)INFINITY)
                                    : ldexp(1024 + mantissa, exponent - 25);
    return bits >> 15 ? -value : value;
}

static int64_t whole_from(double value)
{
    if (isnan(value)) {
        return 0;
    }
    return value >= 0x1p63 ? INT64_MAX : value < -0x1p63 ? INT64_MIN : (int64_t)value;
}

typedef struct number {
    bool real;
    double value;
    bool negative;
    uint64_t magnitude; /* of a whole number */
} number;

/* `at` holds the value in this machine's byte order. */
static number number_at(const unsigned char *at, bw_dtype dtype)
{
    uint64_t bits = 0;
    float single;
    double value;
    size_t size = bwi_dtype_size(dtype);
    memcpy((unsigned char *)&bits + (big_endian() ? 8 - size : 0), at, size);
    switch (dtype) {
    case BW_F16:
        return (number){.real = true, .value = from_half((uint16_t)bits)};
    case BW_F32:
        memcpy(&single, at, sizeof single);
        return (number){.real = true, .value = (double)single};
    case BW_F64:
        memcpy(&value, at, sizeof value);
        return (number){.real = true, .value = value};
    case BW_I8:
    case BW_I16:
    case BW_I32:
    case BW_I64:
        if (bits >> (8 * size - 1) & 1) {
            uint64_t extended = size < 8 ? bits | ~(uint64_t)0 << 8 * size : bits;
            return (number){.negative = true, .magnitude = ~extended + 1};
        }
        return (number){.magnitude = bits};
    default:
        return (number){.magnitude = bits};
    }
}

static float float_of(const number *n)
{
    return n->real ? (float)n->value : n->negative ? -(float)n->magnitude : (float)n->magnitude;
}

static int64_t whole_of(const number *n)
{
    if (n->real) {
        return whole_from(n->value);
    }
    if (n->negative) {
        return (int64_t)(~n->magnitude + 1);
    }
    return n->magnitude > INT64_MAX ? INT64_MAX : (int64_t)n->magnitude;
}

void bwi_h5_convert(const unsigned char *from, bw_dtype dtype, bool swapped, size_t count, bw_dtype wanted, void *to)
{
    size_t size = bwi_dtype_size(dtype);
    unsigned char one[8];
    if (dtype == wanted && !swapped) {
        memcpy(to, from, count * size);
        return;
    }
    for (size_t i = 0; i < count; i++, from += size) {
        memcpy(one, from, size);
        if (swapped) {
            bwi_h5_swap(one, size, 1);
        }
        number n = number_at(one, dtype);
        if (wanted == BW_F32) {
            ((float *)to)[i] = float_of(&n);
        } else {
            ((int64_t *)to)[i] = whole_of(&n);
        }
    }
}
