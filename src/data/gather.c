/*
 * Gathering: rows of samples, in any order, converted in type and layout into a tile. Runs on workers: reads the dataset, writes
 * the destination, nothing else. Sources have no alignment, so values are loaded by memcpy.
 *
 * Value k of a sample in row-major order is channel k mod c of pixel k div c. It goes to
 *     ((channel div block) * pixels + pixel) * block + channel mod block.
 */
#include "data/internal.h"

#include <string.h>

#define VALUE_SIZE 4   /* of float32 and int32 */
#define FEW_CHANNELS 8 /* below it, running along pixels beats running along channels */
#define FEW_VALUES 32  /* up to it, a sample is copied in place */
#define PREFETCH_BYTES 1024
#define PREFETCH_AHEAD 2048 /* bytes that are copied while memory answers */
#define PIECE 16

/* Converts `count` values: from_step in bytes, to_step in values. False if one does not fit. */
typedef bool (*converter)(const unsigned char *from, int64_t from_step, void *to, int64_t to_step, int64_t count, double scale);

/* ---- Conversions ---- */

static float half_to_float(uint16_t half)
{
    uint32_t sign = (uint32_t)(half & 0x8000) << 16, exponent = half >> 10 & 31, fraction = half & 0x3ff;
    uint32_t bits;
    float value;
    if (exponent == 0) { /* zero or subnormal: fraction * 2^-24 is exact */
        value = (float)fraction * 0x1p-24f;
        memcpy(&bits, &value, sizeof bits);
        bits |= sign;
    } else {
        bits = sign | (exponent == 31 ? 0x7f800000 : (exponent + 112) << 23) | fraction << 13;
    }
    memcpy(&value, &bits, sizeof value);
    return value;
}

static bool to_whole(double value, int32_t *to)
{
    if (!(value >= INT32_MIN && value <= INT32_MAX)) { /* NaN too */
        return false;
    }
    *to = (int32_t)value;
    return (double)*to == value;
}

/* Dense values go in pieces of a fixed length and through an array of their own, so that the compiler makes vectors of them. */
#define CONVERTERS(name, type, as_float, as_double)                                                                   \
    static inline float name##_float(type v, float s, double scale)                                                   \
    {                                                                                                                 \
        (void)s, (void)scale;                                                                                         \
        return as_float;                                                                                              \
    }                                                                                                                 \
    static bool name##_to_f32(const unsigned char *from, int64_t from_step, void *to, int64_t to_step, int64_t count, \
                              double scale)                                                                           \
    {                                                                                                                 \
        float *y = to;                                                                                                \
        float s = (float)scale;                                                                                       \
        int64_t i = 0;                                                                                                \
        if (from_step == (int64_t)sizeof(type) && to_step == 1) {                                                     \
            for (; i + PIECE <= count; i += PIECE) {                                                                  \
                type v[PIECE];                                                                                        \
                memcpy(v, from + i * (int64_t)sizeof(type), sizeof v);                                                \
                for (int k = 0; k < PIECE; k++)                                                                       \
                    y[i + k] = name##_float(v[k], s, scale);                                                          \
            }                                                                                                         \
        }                                                                                                             \
        for (; i < count; i++) {                                                                                      \
            type v;                                                                                                   \
            memcpy(&v, from + i * from_step, sizeof v);                                                               \
            y[i * to_step] = name##_float(v, s, scale);                                                               \
        }                                                                                                             \
        return true;                                                                                                  \
    }                                                                                                                 \
    static bool name##_to_i32(const unsigned char *from, int64_t from_step, void *to, int64_t to_step, int64_t count, \
                              double scale)                                                                           \
    {                                                                                                                 \
        int32_t *y = to;                                                                                              \
        bool fits = true;                                                                                             \
        for (int64_t i = 0; i < count; i++) {                                                                         \
            type v;                                                                                                   \
            memcpy(&v, from + i * from_step, sizeof v);                                                               \
            fits = to_whole((as_double)*scale, &y[i * to_step]) && fits;                                              \
        }                                                                                                             \
        return fits;                                                                                                  \
    }

CONVERTERS(u8, uint8_t, (float)v *s, (double)v)
CONVERTERS(i8, int8_t, (float)v *s, (double)v)
CONVERTERS(u16, uint16_t, (float)v *s, (double)v)
CONVERTERS(i16, int16_t, (float)v *s, (double)v)
CONVERTERS(u32, uint32_t, (float)v *s, (double)v)
CONVERTERS(i32, int32_t, (float)v *s, (double)v)
CONVERTERS(u64, uint64_t, (float)v *s, (double)v)
CONVERTERS(i64, int64_t, (float)v *s, (double)v)
CONVERTERS(f16, uint16_t, half_to_float(v) * s, (double)half_to_float(v))
CONVERTERS(f32, float, v *s, (double)v)
CONVERTERS(f64, double, (float)(v *scale), v)
CONVERTERS(bool, uint8_t, (v ? 1.0f : 0.0f) * s, (v ? 1.0 : 0.0))

static const converter converters[][2] = {
    [BW_U8] = {u8_to_f32, u8_to_i32},    [BW_I8] = {i8_to_f32, i8_to_i32},    [BW_U16] = {u16_to_f32, u16_to_i32},
    [BW_I16] = {i16_to_f32, i16_to_i32}, [BW_U32] = {u32_to_f32, u32_to_i32}, [BW_I32] = {i32_to_f32, i32_to_i32},
    [BW_U64] = {u64_to_f32, u64_to_i32}, [BW_I64] = {i64_to_f32, i64_to_i32}, [BW_F16] = {f16_to_f32, f16_to_i32},
    [BW_F32] = {f32_to_f32, f32_to_i32}, [BW_F64] = {f64_to_f32, f64_to_i32}, [BW_BOOL] = {bool_to_f32, bool_to_i32},
};

/* ---- Places ---- */

typedef struct job {
    const bwi_column *column;
    converter convert;
    double scale;
    int64_t size; /* of a value in the source */
    int64_t pixels, c, block;
    int64_t values; /* of one sample that are put */
    int64_t sample; /* values of one sample in the destination, padding included */
    bool dense;     /* the source's values follow each other */
    bool same;      /* the order of the values stays */
    bool copy;      /* nothing changes at all */
    bool whole;     /* every place in the destination gets a value */
} job;

static unsigned char *place(unsigned char *to, int64_t value)
{
    return to + value * VALUE_SIZE;
}

/* Channels beyond c in the last block are zero. */
static void clear_padding(const job *j, unsigned char *to)
{
    int64_t plane = j->pixels * j->block;
    if (j->c % j->block != 0) {
        memset(place(to, j->sample - plane), 0, (size_t)(plane * VALUE_SIZE));
    }
}

/* A run of values that begins with value k of the sample. */
static bool put_run(const job *j, const unsigned char *from, int64_t step, int64_t k, int64_t count, unsigned char *to)
{
    if (j->same) {
        return j->convert(from, step, place(to, k), 1, count, j->scale);
    }
    if (j->c == 1) {
        return j->convert(from, step, place(to, k * j->block), j->block, count, j->scale);
    }
    bool fits = true;
    while (count > 0) {
        int64_t pixel = k / j->c, channel = k % j->c, inner = channel % j->block;
        int64_t in_block = j->block - inner, in_pixel = j->c - channel;
        int64_t n = in_block < in_pixel ? in_block : in_pixel;
        n = n < count ? n : count;
        unsigned char *at = place(to, (channel / j->block * j->pixels + pixel) * j->block + inner);
        fits = j->convert(from, step, at, 1, n, j->scale) && fits;
        from += n * step;
        k += n;
        count -= n;
    }
    return fits;
}

/* A dense sample channel by channel, along the pixels. */
static bool put_channels(const job *j, const unsigned char *from, unsigned char *to)
{
    bool fits = true;
    for (int64_t channel = 0; channel < j->c; channel++) {
        unsigned char *at = place(to, channel / j->block * j->pixels * j->block + channel % j->block);
        fits = j->convert(from + channel * j->size, j->c * j->size, at, j->block, j->pixels, j->scale) && fits;
    }
    return fits;
}

/* A dense sample block by block, along the channels of each pixel. */
static bool put_blocks(const job *j, const unsigned char *from, unsigned char *to)
{
    bool fits = true;
    for (int64_t first = 0; first < j->c; first += j->block) {
        int64_t n = j->c - first < j->block ? j->c - first : j->block;
        unsigned char *at = place(to, first * j->pixels);
        for (int64_t pixel = 0; pixel < j->pixels; pixel++) {
            fits = j->convert(from + (pixel * j->c + first) * j->size, j->size, at, 1, n, j->scale) && fits;
            at = place(at, j->block);
        }
    }
    return fits;
}

/* A sample with gaps, or with another order of axes: a run along the last axis for each index of the others. */
static bool put_strided(const job *j, const unsigned char *from, unsigned char *to)
{
    const bwi_column *column = j->column;
    int last = column->axes - 1;
    int64_t index[BW_MAX_NDIM] = {0};
    bool fits = true;
    for (int64_t k = 0; k < j->values; k += column->extent[last]) {
        int64_t left = j->values - k, run = column->extent[last] < left ? column->extent[last] : left;
        fits = put_run(j, from, column->stride[last], k, run, to) && fits;
        for (int axis = last - 1; axis >= 0; axis--) {
            from += column->stride[axis];
            if (++index[axis] < column->extent[axis]) {
                break;
            }
            from -= column->stride[axis] * column->extent[axis];
            index[axis] = 0;
        }
    }
    return fits;
}

static bool put_sample(const job *j, const unsigned char *from, unsigned char *to)
{
    if (j->copy) {
        memcpy(to, from, (size_t)(j->values * VALUE_SIZE));
        return true;
    }
    if (j->whole) {
        clear_padding(j, to);
    } else {
        memset(to, 0, (size_t)(j->sample * VALUE_SIZE));
    }
    if (!j->dense) {
        return put_strided(j, from, to);
    }
    if (j->same || !j->whole) {
        return put_run(j, from, j->size, 0, j->values, to);
    }
    return j->c < FEW_CHANNELS || j->block == 1 ? put_channels(j, from, to) : put_blocks(j, from, to);
}

/* False if the destination has no room for exactly one sample after the other; a sequence may be longer or shorter. */
static bool make_job(job *j, const bwi_column *column, double scale, const bwi_destination *to)
{
    int64_t values, plane, blocks;
    if (!to->data || to->h < 1 || to->w < 1 || to->c < 1 || to->block < 1 || (to->dtype != BW_F32 && to->dtype != BW_I32)) {
        return false;
    }
    j->column = column;
    j->c = to->c;
    j->block = to->block;
    if (__builtin_mul_overflow(to->h, to->w, &j->pixels) || __builtin_mul_overflow(j->pixels, to->c, &values) ||
        (values != column->values && !to->sequence)) {
        return false;
    }
    j->values = values < column->values ? values : column->values;
    j->whole = j->values == values;
    blocks = to->block == to->c ? 1 : (to->c - 1) / to->block + 1;
    if (__builtin_mul_overflow(j->pixels, to->block, &plane) || __builtin_mul_overflow(plane, blocks, &j->sample)) {
        return false;
    }
    j->convert = converters[column->field.dtype][to->dtype == BW_I32];
    j->scale = scale;
    j->size = (int64_t)bwi_dtype_size(column->field.dtype);
    j->dense = column->axes == 1 && column->stride[0] == j->size;
    j->same = to->block == to->c || j->pixels == 1;
    j->copy = j->whole && j->dense && j->same && (to->block == to->c || to->c % to->block == 0) &&
              column->field.dtype == to->dtype && j->scale == 1.0;
    return true;
}

static void prefetch(const job *j, const unsigned char *from)
{
    int64_t bytes = j->values * j->size;
    bytes = bytes < PREFETCH_BYTES ? bytes : PREFETCH_BYTES;
    for (int64_t at = 0; at < bytes; at += BWI_CACHE_LINE) {
        __builtin_prefetch(from + at);
    }
}

/* Rows of one size, which is a constant wherever this is called. */
static inline __attribute__((always_inline)) void copy_rows(int64_t bytes, int64_t step, const unsigned char *from,
                                                            const int64_t *numbers, int64_t n, unsigned char *to)
{
#pragma GCC unroll 4
    for (int64_t i = 0; i < n; i++) {
        memcpy(to + i * bytes, from + numbers[i] * step, (size_t)bytes);
    }
}

/* Samples of a few values: calls of memcpy would cost more than the copying. Pieces of four values overlap at the end. */
static __attribute__((noinline)) void copy_short(const bwi_column *column, const int64_t *numbers, int64_t n, unsigned char *to)
{
    enum { LONG = 4 * VALUE_SIZE };
    const unsigned char *from = column->data;
    int64_t bytes = column->values * VALUE_SIZE, step = column->step;
    if (bytes == VALUE_SIZE && step == bytes) {
        copy_rows(VALUE_SIZE, VALUE_SIZE, from, numbers, n, to);
    } else if (bytes == VALUE_SIZE) {
        copy_rows(VALUE_SIZE, step, from, numbers, n, to);
    } else if (bytes == 2 * VALUE_SIZE) {
        copy_rows(2 * VALUE_SIZE, step, from, numbers, n, to);
    } else if (bytes < LONG) {
        for (int64_t i = 0; i < n; i++, to += bytes) {
            memcpy(to, from + numbers[i] * step, 2 * VALUE_SIZE);
            memcpy(to + 2 * VALUE_SIZE, from + numbers[i] * step + 2 * VALUE_SIZE, VALUE_SIZE);
        }
    } else {
        for (int64_t i = 0; i < n; i++, to += bytes) {
            const unsigned char *row = from + numbers[i] * step;
            for (int64_t at = 0; at < bytes - LONG; at += LONG) {
                memcpy(to + at, row + at, LONG);
            }
            memcpy(to + bytes - LONG, row + bytes - LONG, LONG);
        }
    }
}

/* Whether samples are a few values that stand as the destination wants them. */
static bool is_short(const bwi_column *column, double scale, const bwi_destination *to)
{
    return column->values <= FEW_VALUES && column->values == to->c && to->block == to->c && to->h == 1 && to->w == 1 &&
           column->field.dtype == to->dtype && (to->dtype == BW_F32 || to->dtype == BW_I32) && column->axes == 1 &&
           column->stride[0] == VALUE_SIZE && scale == 1.0 && to->data;
}

static __attribute__((noinline)) bw_status gather_long(const bwi_column *column, double scale, const int64_t *numbers, int64_t n,
                                                       const bwi_destination *to, int64_t *bad)
{
    unsigned char *at = to->data;
    job j;
    if (!make_job(&j, column, scale, to)) {
        return BW_INVALID_ARGUMENT;
    }
    int64_t ahead = 1 + PREFETCH_AHEAD / (j.values * j.size + 1);
    for (int64_t i = 0; i < n; i++) {
        if (j.dense && i + ahead < n) {
            prefetch(&j, column->data + numbers[i + ahead] * column->step);
        }
        if (!put_sample(&j, column->data + numbers[i] * column->step, at)) {
            *bad = i;
            return BW_INVALID_ARGUMENT;
        }
        at = place(at, j.sample);
    }
    return BW_OK;
}

bw_status bwi_column_gather(const bwi_column *column, double scale, const int64_t *numbers, int64_t n, const bwi_destination *to,
                            int64_t *bad)
{
    *bad = -1;
    if (!is_short(column, scale, to)) {
        return gather_long(column, scale, numbers, n, to, bad);
    }
    copy_short(column, numbers, n, to->data);
    return BW_OK;
}

int64_t bwi_destination_values(const bwi_destination *to)
{
    return ((to->c - 1) / to->block + 1) * to->block * to->h * to->w;
}

int64_t bwi_destination_place(const bwi_destination *to, int64_t k)
{
    int64_t pixel = k / to->c, channel = k % to->c;
    return (channel / to->block * to->h * to->w + pixel) * to->block + channel % to->block;
}
