/*
 * Synthetic samples, which are computed from their number and not stored: synth:NAME?key=value&key=value.
 *
 *   images   noise over a pattern of dots that depends on the class: n, shape, classes, seed
 *   ordered  as images, but sorted by class
 *   shapes   a disc, a square, a triangle or a cross at a random place and size: n, shape, classes (at most 4), seed
 *   line     x from -1 to 1, y = slope * x + intercept + noise * normal: n, slope, intercept, noise, seed
 *   range    x = y = the number: n
 *
 * With delay=1ms the thread that makes a sample sleeps for that long, which simulates slow storage.
 */
#include "data/ahead/ahead.h"
#include "data/read/read.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define PATTERN UINT64_C(0x70617474) /* these are keys of random streams */
#define LABEL UINT64_C(0x6c616265)
#define NOISE UINT64_C(0x6e6f6973)
#define STEP_SECONDS 0.02 /* how often a sleeping thread looks at the cancel flag */

typedef struct settings {
    int64_t n, classes, seed;
    int ndim;
    int64_t shape[BW_MAX_NDIM];
    double slope, intercept, noise, delay;
    int64_t values;
} settings;

typedef struct synth {
    const char *name;
    settings defaults;
    bool integers; /* the target is a class */
    void (*make)(const settings *s, int64_t number, float *x, void *y);
} synth;

/* ---- Samples ---- */

static int64_t random_class(const settings *s, int64_t number)
{
    bwi_random draw = bwi_random_at((uint64_t)s->seed, LABEL, (uint64_t)number);
    return (int64_t)(((uint64_t)draw.word[0] * (uint64_t)s->classes) >> 32);
}

static void paint(const settings *s, int64_t number, int64_t label, float *x)
{
    for (int64_t k = 0; k < s->values; k += 4) {
        bwi_random noise = bwi_random_at((uint64_t)s->seed, NOISE + (uint64_t)number, (uint64_t)k);
        bwi_random dots = bwi_random_at((uint64_t)s->seed, PATTERN + (uint64_t)label, (uint64_t)k);
        for (int64_t i = 0; i < 4 && k + i < s->values; i++) {
            x[k + i] = 0.75f * bwi_random_uniform(noise.word[i]) + ((dots.word[i] & 7) == 0 ? 0.25f : 0);
        }
    }
}

static void make_images(const settings *s, int64_t number, float *x, void *y)
{
    int64_t label = random_class(s, number);
    if (x) {
        paint(s, number, label, x);
    }
    if (y) {
        *(int32_t *)y = (int32_t)label;
    }
}

static void make_ordered(const settings *s, int64_t number, float *x, void *y)
{
    int64_t label = (int64_t)((double)number / (double)s->n * (double)s->classes);
    if (x) {
        paint(s, number, label, x);
    }
    if (y) {
        *(int32_t *)y = (int32_t)label;
    }
}

/* Whether a point lies in the figure. Coordinates are relative to its middle, in units of half its width. */
static bool inside(int64_t figure, float u, float v)
{
    float a = u < 0 ? -u : u, b = v < 0 ? -v : v;
    switch (figure) {
    case 0:
        return u * u + v * v <= 1;
    case 1:
        return a <= 0.85f && b <= 0.85f;
    case 2:
        return v >= -0.9f && v <= 0.9f && a <= (v + 0.9f) / 1.8f;
    default:
        return a <= 1 && b <= 1 && (a <= 0.3f || b <= 0.3f);
    }
}

static void make_shapes(const settings *s, int64_t number, float *x, void *y)
{
    int64_t label = random_class(s, number), h = s->shape[0], w = s->shape[1], c = s->shape[2];
    bwi_random draw = bwi_random_at((uint64_t)s->seed, NOISE, (uint64_t)number);
    float least = (float)(h < w ? h : w), half = least * (0.2f + 0.2f * bwi_random_uniform(draw.word[0]));
    float row = half + ((float)h - 2 * half) * bwi_random_uniform(draw.word[1]);
    float column = half + ((float)w - 2 * half) * bwi_random_uniform(draw.word[2]);
    if (y) {
        *(int32_t *)y = (int32_t)label;
    }
    for (int64_t i = 0; x && i < h; i++) {
        for (int64_t j = 0; j < w; j++) {
            bwi_random noise = bwi_random_at((uint64_t)s->seed, NOISE + 1 + (uint64_t)number, (uint64_t)(i * w + j));
            bool lit = inside(label, ((float)j + 0.5f - column) / half, ((float)i + 0.5f - row) / half);
            for (int64_t k = 0; k < c; k++) {
                x[(i * w + j) * c + k] = (lit ? 0.8f : 0) + 0.2f * bwi_random_uniform(noise.word[k % 4]);
            }
        }
    }
}

static void make_line(const settings *s, int64_t number, float *x, void *y)
{
    bwi_random draw = bwi_random_at((uint64_t)s->seed, NOISE, (uint64_t)number);
    double at = 2 * (double)bwi_random_uniform(draw.word[0]) - 1;
    float normal, other;
    bwi_random_normal(draw.word[1], draw.word[2], &normal, &other);
    if (x) {
        *x = (float)at;
    }
    if (y) {
        *(float *)y = (float)(s->slope * at + s->intercept + s->noise * (double)normal);
    }
}

static void make_range(const settings *s, int64_t number, float *x, void *y)
{
    (void)s;
    if (x) {
        *x = (float)number;
    }
    if (y) {
        *(float *)y = (float)number;
    }
}

#define IMAGES                                                      \
    {                                                               \
        .n = 1000, .classes = 10, .ndim = 3, .shape = { 28, 28, 1 } \
    }

static const synth synths[] = {
    {"images", IMAGES, true, make_images},
    {"ordered", IMAGES, true, make_ordered},
    {"shapes", {.n = 1000, .classes = 4, .ndim = 3, .shape = {32, 32, 1}}, true, make_shapes},
    {"line", {.n = 1000, .ndim = 1, .shape = {1}, .slope = 2, .intercept = 1, .noise = 0.1}, false, make_line},
    {"range", {.n = 1000, .ndim = 1, .shape = {1}}, false, make_range},
};

typedef struct state {
    const synth *row;
    settings s;
} state;

static bw_status make(const bw_dataset *dataset, int epoch, int64_t number, void *const *values, char *error)
{
    const state *o = dataset->state;
    (void)epoch, (void)error;
    for (double left = o->s.delay; left > 0; left -= STEP_SECONDS) {
        double seconds = left < STEP_SECONDS ? left : STEP_SECONDS;
        if (bwi_cancelled(dataset->owned.ctx) || bwi_prefetcher_stopping()) {
            return BW_CANCELLED;
        }
        nanosleep(&(struct timespec){.tv_nsec = (long)(seconds * 1e9)}, NULL);
    }
    o->row->make(&o->s, number, values[0], values[1]);
    return BW_OK;
}

static void locate(const bw_dataset *dataset, int64_t number, char *text, size_t size)
{
    const state *o = dataset->state;
    (void)number;
    snprintf(text, size, "synth:%s", o->row->name);
}

static const bwi_dataset_kind kind = {.name = "synth", .make = make, .locate = locate};

/* ---- Settings ---- */

static bool parse_shape(const char *text, const char *end, settings *s)
{
    for (s->ndim = 0; text <= end && s->ndim < BW_MAX_NDIM - 1; s->ndim++) {
        const char *stop = memchr(text, 'x', (size_t)(end - text));
        stop = stop ? stop : end;
        if (!bwi_parse_int(text, stop, &s->shape[s->ndim]) || s->shape[s->ndim] < 1) {
            return false;
        }
        text = stop + 1;
        if (stop == end) {
            s->ndim++;
            return true;
        }
    }
    return false;
}

/* Reads a time such as 1ms, 0.5s or 20us. */
static bool parse_seconds(const char *text, const char *end, double *seconds)
{
    static const struct {
        const char *unit;
        double seconds;
    } units[] = {{"ms", 1e-3}, {"us", 1e-6}, {"s", 1}};
    for (size_t i = 0; i < BWI_COUNT(units); i++) {
        size_t size = strlen(units[i].unit);
        double value;
        if ((size_t)(end - text) > size && memcmp(end - size, units[i].unit, size) == 0 &&
            bwi_parse_double(text, end - size, &value) && value >= 0 && value <= 3600) {
            *seconds = value * units[i].seconds;
            return true;
        }
    }
    return false;
}

static bool parse_setting(const char *key, size_t size, const char *text, const char *end, settings *s)
{
    const struct {
        const char *name;
        int64_t *whole;
        double *real;
    } keys[] = {{"n", &s->n, NULL},         {"classes", &s->classes, NULL},     {"seed", &s->seed, NULL},
                {"slope", NULL, &s->slope}, {"intercept", NULL, &s->intercept}, {"noise", NULL, &s->noise}};
    if (size == 5 && memcmp(key, "shape", 5) == 0) {
        return parse_shape(text, end, s);
    }
    if (size == 5 && memcmp(key, "delay", 5) == 0) {
        return parse_seconds(text, end, &s->delay);
    }
    for (size_t i = 0; i < BWI_COUNT(keys); i++) {
        if (strlen(keys[i].name) == size && memcmp(key, keys[i].name, size) == 0) {
            return keys[i].whole ? bwi_parse_int(text, end, keys[i].whole) : bwi_parse_double(text, end, keys[i].real);
        }
    }
    return false;
}

/* Parses synth:name?key=value&key=value, which is written like a URL. */
static bw_status parse(bw_context *ctx, const char *path, const synth **row, settings *s)
{
    const char *name = path + strlen("synth:");
    size_t size = strcspn(name, "?");
    *row = NULL;
    for (size_t i = 0; i < BWI_COUNT(synths); i++) {
        if (strlen(synths[i].name) == size && memcmp(name, synths[i].name, size) == 0) {
            *row = &synths[i];
        }
    }
    if (!*row) {
        return bwi_fail(ctx, BW_NOT_FOUND, "%s: known are synth:images, shapes, line, ordered and range", path);
    }
    *s = (*row)->defaults;
    for (const char *at = name + size; *at;) {
        const char *key = at + 1, *end = key + strcspn(key, "&"), *equal = memchr(key, '=', (size_t)(end - key));
        if (!equal || !parse_setting(key, (size_t)(equal - key), equal + 1, end, s)) {
            return bwi_fail(ctx, BW_INVALID_ARGUMENT,
                            "%s: expected n, shape=28x28x1, classes, seed, slope, intercept, noise or delay=1ms, found '%.*s'",
                            path, (int)(end - key), key);
        }
        at = end;
    }
    return BW_OK;
}

/* Sizes come from a user's text, so products are checked; and figures need at least 4 pixels to be told apart. */
static bw_status check(bw_context *ctx, const char *path, const synth *row, settings *s)
{
    bool figures = row->make == make_shapes;
    s->values = 1;
    for (int i = 0; i < s->ndim; i++) {
        if (__builtin_mul_overflow(s->values, s->shape[i], &s->values) || s->values > INT32_MAX) {
            return bwi_fail(ctx, BW_INVALID_ARGUMENT, "%s: the shape has too many values", path);
        }
    }
    if (s->n < 1) {
        return bwi_fail(ctx, BW_INVALID_ARGUMENT, "%s: n is the number of samples, at least 1; found %lld", path, (long long)s->n);
    }
    if (row->integers && (s->classes < 1 || s->classes > (figures ? 4 : 1000000))) {
        return bwi_fail(ctx, BW_INVALID_ARGUMENT, "%s: 1 to %d classes, found %lld", path, figures ? 4 : 1000000,
                        (long long)s->classes);
    }
    if (figures && (s->ndim != 3 || s->shape[0] < 4 || s->shape[1] < 4)) {
        return bwi_fail(ctx, BW_INVALID_ARGUMENT, "%s: shapes have height, width (at least 4) and channels", path);
    }
    if (!row->integers && s->values != 1) {
        return bwi_fail(ctx, BW_INVALID_ARGUMENT, "%s: its samples are single numbers", path);
    }
    return BW_OK;
}

/* Samples are computed from seed and number when they are gathered. A delay simulates slow storage and makes a prefetcher
 * worthwhile. */
bw_status bwi_synth_read(bw_context *ctx, bw_dataset **root, const char *const *paths, int count, const bw_read_options *options)
{
    const synth *row;
    settings s;
    (void)count;
    bw_status status = bwi_read_options_check(ctx, paths[0], options, 0);
    if (status == BW_OK) {
        status = parse(ctx, paths[0], &row, &s);
    }
    if (status == BW_OK) {
        status = check(ctx, paths[0], row, &s);
    }
    if (status != BW_OK) {
        return status;
    }
    bw_dataset *made = bwi_dataset_root(ctx, &kind, 2, sizeof(state));
    if (!made) {
        return BW_RESOURCE_EXHAUSTED;
    }
    *(state *)made->state = (state){.row = row, .s = s};
    made->count = made->numbers = s.n;
    bwi_field x = {.role = BWI_ROLE_INPUT, .dtype = BW_F32, .ndim = s.ndim};
    memcpy(x.shape, s.shape, sizeof x.shape);
    bwi_field y = {.role = BWI_ROLE_TARGET, .dtype = row->integers ? BW_I32 : BW_F32};
    status = bwi_dataset_declare(made, &x, paths[0]);
    if (status == BW_OK) {
        status = bwi_dataset_declare(made, &y, paths[0]);
    }
    if (status == BW_OK) {
        status = bwi_scratch_open(made);
    }
    if (status == BW_OK && s.delay > 0) {
        status = bwi_prefetcher_attach(made);
    }
    if (status == BW_OK) {
        *root = made;
    } else {
        bw_dataset_free(made);
    }
    return status;
}
