/*
 * conv_pool, thin and winograd: which convolutions they can compute, how they arrange the weights, and their references.
 */
#include "kernel/kernel.h"
#include "kernel/packing.h"

#include <math.h>
#include <string.h>

/* Winograd's weights take eight times the memory of the layer's: they are four times as many, and stored in two orders. The
 * larger they are, the less they stay in the cache; at 256x256 channels a direct convolution is as fast. */
enum { MOST_CHANNELS = 4, TALLEST = 7, WINOGRAD_PAIRS = 128 * 128 };

static bool conv_pool_fits(const bwi_conv_pool *k)
{
    return k->x.c <= MOST_CHANNELS && k->kh <= TALLEST && (k->kw == 3 || k->kw == BWI_CONV_POOL_WIDEST) && k->y.h > 0 && k->y.w > 0;
}

int64_t bwi_conv_pool_floats(const bwi_conv_pool *k)
{
    return (k->x.c * k->kh * k->kw + 1) * bwi_conv_pool_filters(k);
}

static size_t conv_pool_scratch_bytes(const bwi_conv_pool *k)
{
    size_t pitch = bwi_size_add((size_t)k->x.w, (size_t)(k->pad_left + k->pad_right));
    size_t rows = bwi_size_add((size_t)k->x.h, (size_t)(k->pad_top + k->pad_bottom));
    size_t floats = bwi_size_multiply((size_t)k->x.c, bwi_size_multiply(pitch, rows));
    floats = bwi_size_add(floats, BWI_CONV_POOL_SLACK + (size_t)(k->x.c * k->kh) * BWI_CONV_POOL_PITCH);
    return bwi_size_align(bwi_size_multiply(floats, sizeof(float)), BWI_CACHE_LINE);
}

void bwi_conv_pool_arrange(const bwi_conv_pool *k, const float *weights, const float *bias, float *arranged)
{
    int64_t filters = bwi_conv_pool_filters(k), taps = k->kh * k->kw;
    memset(arranged, 0, (size_t)bwi_conv_pool_floats(k) * sizeof *arranged);
    for (int64_t t = 0; t < taps; t++) {
        for (int64_t c = 0; c < k->x.c; c++, weights += k->y.c) {
            memcpy(arranged + (c * taps + t) * filters, weights, (size_t)k->y.c * sizeof *weights);
        }
    }
    if (bias) {
        memcpy(arranged + k->x.c * taps * filters, bias, (size_t)k->y.c * sizeof *bias);
    }
}

void bwi_conv_pool_restore(const bwi_conv_pool *k, const float *arranged, float *weights, float *bias)
{
    int64_t filters = bwi_conv_pool_filters(k), taps = k->kh * k->kw;
    for (int64_t t = 0; t < taps; t++) {
        for (int64_t c = 0; c < k->x.c; c++, weights += k->y.c) {
            memcpy(weights, arranged + (c * taps + t) * filters, (size_t)k->y.c * sizeof *weights);
        }
    }
    if (bias) {
        memcpy(bias, arranged + k->x.c * taps * filters, (size_t)k->y.c * sizeof *bias);
    }
}

/* With one channel the transforms of the outputs cost more than the products that they save. */
static bool thin_fits(const bwi_conv_pool *k)
{
    return conv_pool_fits(k) && k->kh == 3 && k->kw == 3 && k->x.c > 1 && k->y.h >= 2 && k->y.w >= 2;
}

static int64_t thin_floats(const bwi_conv_pool *k)
{
    return (BWI_WINOGRAD_POINTS * k->x.c + 1) * bwi_conv_pool_filters(k);
}

/* The scratch memory holds rows in quarters, and one row as it is. */
static size_t thin_scratch_bytes(const bwi_conv_pool *k)
{
    size_t row = bwi_size_multiply((size_t)k->x.c, bwi_size_multiply((size_t)bwi_thin_quarter(k), 4 * sizeof(float)));
    size_t bytes = bwi_size_add(bwi_size_multiply(row, (size_t)bwi_thin_rows(k) + 1), BWI_THIN_SLACK * sizeof(float));
    return bwi_size_align(bytes, BWI_CACHE_LINE);
}

/* Pooling needs whole blocks. Elsewhere channels are filled up to 16 and outputs to patches of 4x4, all of which is computed: at
 * most three fifths of it for nothing, where products by the definition take two to four times as long as these. */
static bool winograd_fits(const bwi_conv_pool *k)
{
    int64_t in = bwi_winograd_channels(k->x.c), out = bwi_winograd_channels(k->y.c);
    int64_t pixels = 16 * bwi_winograd_rows(k) * bwi_winograd_columns(k);
    if (k->kh != 3 || k->kw != 3 || in * out > WINOGRAD_PAIRS || k->y.h < 2 || k->y.w < 2) {
        return false;
    }
    return k->then == BWI_THEN_POOL ? in == k->x.c && out == k->y.c
                                    : 5 * k->x.c * k->y.c * k->y.h * k->y.w >= 2 * in * out * pixels;
}

static int64_t winograd_floats(const bwi_conv_pool *k)
{
    int64_t out = bwi_winograd_channels(k->y.c);
    return 2 * BWI_WINOGRAD_POINTS * bwi_winograd_channels(k->x.c) * out + out;
}

/* Transforms of a set, and sums of the weights' gradient: of 16 by 16 channels if these are transformed back at once. */
static size_t winograd_scratch_bytes(const bwi_conv_pool *k)
{
    int64_t in = bwi_winograd_channels(k->x.c), out = bwi_winograd_channels(k->y.c);
    int64_t patches = BWI_WINOGRAD_POINTS * bwi_winograd_set(k) * (in + out) + 2 * 16 * BWI_WINOGRAD_PATCHES;
    int64_t pairs = bwi_winograd_once(k) ? BWI_WINOGRAD_BLOCK * BWI_WINOGRAD_BLOCK : in * out;
    return (size_t)(BWI_WINOGRAD_POINTS * pairs + patches) * sizeof(float);
}

const bwi_conv_pool_storage bwi_conv_pool_storage_host = {
    .fits = conv_pool_fits, .floats = bwi_conv_pool_floats, .scratch_bytes = conv_pool_scratch_bytes};
const bwi_conv_pool_storage bwi_thin_storage_host = {.fits = thin_fits, .floats = thin_floats, .scratch_bytes = thin_scratch_bytes};
const bwi_conv_pool_storage bwi_winograd_storage_host = {
    .blocked = true, .fits = winograd_fits, .floats = winograd_floats, .scratch_bytes = winograd_scratch_bytes};

/* ---- The reference ---- */

void bwi_reference_thin_weights(const bwi_conv_pool *k, const float *arranged, float *to)
{
    memcpy(to, arranged, (size_t)bwi_conv_pool_floats(k) * sizeof *to);
}

static int64_t image_at(const bwi_image *i, int64_t n, int64_t h, int64_t w, int64_t c)
{
    return (((n * bwi_image_blocks(i) + c / i->block) * i->h + h) * i->w + w) * i->block + c % i->block;
}

/* The index in x that tap t of the output at (h, w) reads; -1: it lies in the padding. */
static int64_t met(const bwi_conv_pool *k, int64_t n, int64_t h, int64_t w, int64_t t)
{
    int64_t taps = k->kh * k->kw;
    h += t % taps / k->kw - k->pad_top;
    w += t % k->kw - k->pad_left;
    return h < 0 || h >= k->x.h || w < 0 || w >= k->x.w ? -1 : image_at(&k->x, n, h, w, t / taps);
}

static float convolved(const bwi_conv_pool *k, const float *x, const float *weights, int64_t n, int64_t h, int64_t w, int64_t o)
{
    int64_t filters = bwi_conv_pool_filters(k), taps = k->x.c * k->kh * k->kw;
    double sum = (double)weights[taps * filters + o];
    for (int64_t t = 0; t < taps; t++) {
        int64_t pixel = met(k, n, h, w, t);
        sum += pixel < 0 ? 0 : (double)x[pixel] * (double)weights[t * filters + o];
    }
    return (float)sum;
}

/* Masks have the form of relu_maxpool's reference: four bits with the winner's number, or 4 if it is not positive. */
void bwi_reference_conv_pool_forward(const bwi_conv_pool *k, const float *x, const float *weights, float *y, void *masks,
                                     void *scratch)
{
    unsigned char *bytes = k->then == BWI_THEN_POOL ? masks : NULL;
    int64_t count = 0;
    int step = k->then == BWI_THEN_POOL ? 2 : 1;
    (void)scratch;
    memset(y, 0, (size_t)bwi_image_floats(&k->y) * sizeof *y);
    for (int64_t n = 0; n < k->y.n; n++) {
        for (int64_t h = 0; h < k->y.h; h++) {
            for (int64_t w = 0; w < k->y.w; w++) {
                for (int64_t o = 0; o < k->y.c; o++, count++) {
                    float most = -INFINITY;
                    int best = 0;
                    for (int e = 0; e < step * step && !isnan(most); e++) {
                        float v = convolved(k, x, weights, n, step * h + e / 2, step * w + e % 2, o);
                        best = v > most || isnan(v) ? e : best;
                        most = v > most || isnan(v) ? v : most;
                    }
                    bool passes = most > 0 || isnan(most) || k->then == BWI_THEN_NOTHING;
                    y[image_at(&k->y, n, h, w, o)] = passes ? most : 0;
                    int bits = most > 0 ? best : 4;
                    if (bytes) {
                        bytes[count / 2] = (unsigned char)(count % 2 ? bytes[count / 2] | bits << 4 : bits);
                    }
                }
            }
        }
    }
}

typedef struct visit {
    const bwi_conv_pool *k;
    int64_t n, h, w, o; /* the element of the convolution's output that won */
    float value;        /* its difference */
} visit;

/* `with` holds masks, or after ReLU the outputs. */
static void each_winner(const bwi_conv_pool *k, const float *dy, const void *with, void (*see)(const visit *v, void *user),
                        void *user)
{
    const unsigned char *bytes = with;
    const float *outputs = with;
    int64_t count = 0, step = k->then == BWI_THEN_POOL ? 2 : 1;
    for (int64_t n = 0; n < k->y.n; n++) {
        for (int64_t h = 0; h < k->y.h; h++) {
            for (int64_t w = 0; w < k->y.w; w++) {
                for (int64_t o = 0; o < k->y.c; o++, count++) {
                    int64_t at = image_at(&k->y, n, h, w, o);
                    int best = k->then == BWI_THEN_POOL ? bytes[count / 2] >> (count % 2 * 4) & 15 : 0;
                    visit v = {k, n, step * h + best / 2, step * w + best % 2, o, dy[at]};
                    if (best < 4 && (k->then != BWI_THEN_RELU || outputs[at] > 0)) {
                        see(&v, user);
                    }
                }
            }
        }
    }
}

typedef struct operands {
    const float *read;
    float *sum;
} operands;

static void add_to_gradient(const visit *v, void *user)
{
    const operands *of = user;
    int64_t filters = bwi_conv_pool_filters(v->k), taps = v->k->x.c * v->k->kh * v->k->kw;
    for (int64_t t = 0; t < taps; t++) {
        int64_t pixel = met(v->k, v->n, v->h, v->w, t);
        of->sum[t * filters + v->o] += pixel < 0 ? 0 : v->value * of->read[pixel];
    }
    of->sum[taps * filters + v->o] += v->value;
}

static void add_to_difference(const visit *v, void *user)
{
    const operands *of = user;
    int64_t filters = bwi_conv_pool_filters(v->k);
    for (int64_t t = 0; t < v->k->x.c * v->k->kh * v->k->kw; t++) {
        int64_t pixel = met(v->k, v->n, v->h, v->w, t);
        if (pixel >= 0) {
            of->sum[pixel] += v->value * of->read[t * filters + v->o];
        }
    }
}

void bwi_reference_conv_pool_backward_weights(const bwi_conv_pool *k, const float *x, const float *dy, const void *masks,
                                              float *gradient, void *scratch)
{
    (void)scratch;
    each_winner(k, dy, masks, add_to_gradient, &(operands){x, gradient});
}

void bwi_reference_conv_pool_backward_data(const bwi_conv_pool *k, const float *dy, const void *masks, const float *weights,
                                           float *dx)
{
    memset(dx, 0, (size_t)bwi_image_floats(&k->x) * sizeof *dx);
    each_winner(k, dy, masks, add_to_difference, &(operands){weights, dx});
}

void bwi_reference_winograd_weights(const bwi_conv_pool *k, const float *weights, const float *bias, float *to)
{
    bwi_conv_pool_arrange(k, weights, bias, to);
}

void bwi_reference_winograd_backward_weights(const bwi_conv_pool *k, const float *x, const float *dy, const void *masks, float *dw,
                                             float *db, void *scratch)
{
    memset(scratch, 0, (size_t)bwi_conv_pool_floats(k) * sizeof(float));
    bwi_reference_conv_pool_backward_weights(k, x, dy, masks, scratch, NULL);
    bwi_conv_pool_restore(k, scratch, dw, db);
}

void bwi_reference_winograd_backward_data(const bwi_conv_pool *k, const float *dy, const void *masks, const float *weights,
                                          float *dx, void *scratch)
{
    (void)scratch;
    bwi_reference_conv_pool_backward_data(k, dy, masks, weights, dx);
}
