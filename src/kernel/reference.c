/*
 * Every kernel once more, slow and obvious, for tests to compare with: one loop per index, sums in double, no regard for
 * the machine. Indices of images go through at().
 */
#include "kernel/kernel.h"
#include "kernel/packing.h"

#include <math.h>
#include <string.h>

static int64_t at(const bwi_image *i, int64_t n, int64_t h, int64_t w, int64_t c)
{
    return (((n * bwi_image_blocks(i) + c / i->block) * i->h + h) * i->w + w) * i->block + c % i->block;
}

/* Weight index of input i and output o. */
static int64_t weight_at(int64_t in, int64_t out, int64_t i, int64_t o)
{
    if (out <= BWI_DENSE_NARROW)
        return o * in + i;
    return (o / BWI_DENSE_PANEL * in + i) * BWI_DENSE_PANEL + o % BWI_DENSE_PANEL;
}

static void dense_forward_range(int64_t n, int64_t in, int64_t out, int64_t from, int64_t to, const float *x, const float *w,
                                const float *bias, float *y)
{
    for (int64_t r = 0; r < n; r++)
        for (int64_t o = from; o < to; o++) {
            double sum = bias ? (double)bias[o] : 0;
            for (int64_t i = 0; i < in; i++)
                sum += (double)x[r * in + i] * (double)w[weight_at(in, out, i, o)];
            y[r * out + o] = (float)sum;
        }
}

static void dense_backward_data_range(int64_t n, int64_t in, int64_t out, int64_t from, int64_t to, const float *dy, const float *w,
                                      float *dx)
{
    for (int64_t r = 0; r < n; r++)
        for (int64_t i = from; i < to; i++) {
            double sum = 0;
            for (int64_t o = 0; o < out; o++)
                sum += (double)dy[r * out + o] * (double)w[weight_at(in, out, i, o)];
            dx[r * in + i] = (float)sum;
        }
}

static void dense_forward(int64_t n, int64_t in, int64_t out, const float *x, const float *w, const float *bias, float *y)
{
    dense_forward_range(n, in, out, 0, out, x, w, bias, y);
}

static void dense_backward_data(int64_t n, int64_t in, int64_t out, const float *dy, const float *w, float *dx)
{
    dense_backward_data_range(n, in, out, 0, in, dy, w, dx);
}

static void dense_backward_weights(int64_t n, int64_t in, int64_t out, const float *x, const float *dy, float *dw, float *db,
                                   bool accumulate)
{
    if (!accumulate)
        memset(dw, 0, (size_t)bwi_dense_packed_count(in, out) * sizeof *dw);
    for (int64_t o = 0; o < out; o++) {
        for (int64_t i = 0; i < in; i++) {
            double sum = (double)dw[weight_at(in, out, i, o)];
            for (int64_t r = 0; r < n; r++)
                sum += (double)x[r * in + i] * (double)dy[r * out + o];
            dw[weight_at(in, out, i, o)] = (float)sum;
        }
        if (!db)
            continue;
        double sum = accumulate ? (double)db[o] : 0;
        for (int64_t r = 0; r < n; r++)
            sum += (double)dy[r * out + o];
        db[o] = (float)sum;
    }
}

/* The room holds x [in][n] and dy [out][n] one after the other. */
static double dense_gradient_pack(int64_t n, int64_t in, int64_t out, const float *x, const float *dy, float *room)
{
    double most_x = 1, most_dy = 0;
    bool finite = true;
    for (int64_t r = 0; r < n; r++) {
        for (int64_t i = 0; i < in; i++) {
            room[i * n + r] = x[r * in + i];
            most_x = fmax(most_x, fabs((double)x[r * in + i]));
            finite = finite && isfinite(x[r * in + i]);
        }
        for (int64_t o = 0; o < out; o++) {
            room[(in + o) * n + r] = dy[r * out + o];
            most_dy = fmax(most_dy, fabs((double)dy[r * out + o]));
            finite = finite && isfinite(dy[r * out + o]);
        }
    }
    return finite ? (double)n * most_x * most_dy : (double)NAN;
}

static void dense_gradient_block(int64_t n, int64_t in, int64_t out, const float *room, int64_t panel, int64_t first, int64_t rows,
                                 float *block)
{
    for (int64_t i = 0; i < rows; i++)
        for (int64_t q = 0; q < BWI_DENSE_PANEL; q++) {
            const int64_t o = panel * BWI_DENSE_PANEL + q;
            double sum = 0;
            for (int64_t r = 0; r < n && o < out; r++)
                sum += (double)room[(first + i) * n + r] * (double)room[(in + o) * n + r];
            block[i * BWI_DENSE_PANEL + q] = (float)sum;
        }
}

static void dense_gradient_bias(int64_t n, int64_t in, int64_t out, const float *room, int64_t panel, float *db)
{
    for (int64_t q = 0; q < BWI_DENSE_PANEL; q++) {
        const int64_t o = panel * BWI_DENSE_PANEL + q;
        double sum = 0;
        for (int64_t r = 0; r < n && o < out; r++)
            sum += (double)room[(in + o) * n + r];
        db[q] = (float)sum;
    }
}

static float relu(float x)
{
    return x < 0 ? 0 : x;
}

static void relu_forward(int64_t count, const float *x, float *y)
{
    for (int64_t i = 0; i < count; i++)
        y[i] = relu(x[i]);
}

static void relu_backward(int64_t count, const float *y, const float *dy, float *dx)
{
    for (int64_t i = 0; i < count; i++)
        dx[i] = y[i] > 0 ? dy[i] : 0;
}

static double below_normal(double x)
{
    return 0.5 * erfc(-x * 0.70710678118654752);
}

static double activation_of(bwi_activation kind, const float *p, double x)
{
    const double a = (double)p[0], b = (double)p[1], c = (double)p[2];
    switch (kind) {
    case BWI_SIGMOID:
        return 1 / (1 + exp(-x));
    case BWI_TANH:
        return tanh(x);
    case BWI_SOFTPLUS:
        return log1p(exp(-fabs(x))) + (x > 0 ? x : 0);
    case BWI_SOFTSIGN:
        return x / (1 + fabs(x));
    case BWI_ELU:
        return x > 0 ? a * x : b * expm1(x);
    case BWI_EXPONENTIAL:
        return exp(x);
    case BWI_HARD_SIGMOID:
        return fmin(fmax(x / 6 + 0.5, 0), 1);
    case BWI_LEAKY_RELU:
        return x < 0 ? a * x : x;
    case BWI_BENT_RELU:
        return x > c ? fmin(x, b) : a * (x - c);
    case BWI_SILU:
        return x / (1 + exp(-x));
    case BWI_GELU:
        return x * below_normal(x);
    case BWI_ACTIVATIONS:
        break;
    }
    return (double)NAN;
}

static double slope_of(bwi_activation kind, const float *p, double v)
{
    const double a = (double)p[0], b = (double)p[1], s = 1 / (1 + exp(-v));
    switch (kind) {
    case BWI_SIGMOID:
        return v * (1 - v);
    case BWI_TANH:
        return 1 - v * v;
    case BWI_SOFTPLUS:
        return -expm1(-v);
    case BWI_SOFTSIGN:
        return (1 - fabs(v)) * (1 - fabs(v));
    case BWI_ELU:
        return v > 0 ? a : v + b;
    case BWI_EXPONENTIAL:
        return v;
    case BWI_HARD_SIGMOID:
        return v > 0 && v < 1 ? 1.0 / 6 : 0;
    case BWI_LEAKY_RELU:
        return v < 0 ? a : 1;
    case BWI_BENT_RELU:
        return v > 0 ? (v < b ? 1 : 0) : a;
    case BWI_SILU:
        return s * (1 + v * (1 - s));
    case BWI_GELU:
        return below_normal(v) + v * exp(-v * v / 2) * 0.39894228040143268;
    case BWI_ACTIVATIONS:
        break;
    }
    return (double)NAN;
}

static void activate(bwi_activation kind, const float *p, int64_t count, const float *x, float *y)
{
    for (int64_t i = 0; i < count; i++)
        y[i] = (float)activation_of(kind, p, (double)x[i]);
}

static void activate_backward(bwi_activation kind, const float *p, int64_t count, const float *v, const float *dy, float *dx)
{
    for (int64_t i = 0; i < count; i++)
        dx[i] = (float)((double)dy[i] * slope_of(kind, p, (double)v[i]));
}

static void dropout(int64_t count, uint64_t seed, uint64_t stream, uint64_t counter, uint32_t limit, float scale, const float *x,
                    float *y)
{
    for (int64_t i = 0; i < count; i++) {
        bwi_random r = bwi_random_at(seed, stream, counter + (uint64_t)(i / 64 * 16 + i % 16));
        y[i] = r.word[i % 64 / 16] < limit ? 0 : x[i] * scale;
    }
}

/* The number in the window of the element that wins at (n, oh, ow, c): the first of the largest, or of the NaNs. -1: the
 * window has nothing but padding. */
static int winner(const bwi_image *image, const bwi_window *k, const float *x, int64_t n, int64_t oh, int64_t ow, int64_t c)
{
    int best = -1;
    float most = -INFINITY;
    for (int64_t i = 0; i < k->h * k->w; i++) {
        int64_t h = oh * k->stride_h - k->pad_top + i / k->w, w = ow * k->stride_w - k->pad_left + i % k->w;
        if (h < 0 || h >= image->h || w < 0 || w >= image->w || isnan(most))
            continue;
        float value = x[at(image, n, h, w, c)];
        if (best < 0 || value > most || isnan(value)) {
            best = (int)i;
            most = value;
        }
    }
    return best;
}

static void maxpool_forward(const bwi_image *x_image, const bwi_image *y_image, const bwi_window *k, const float *x, float *y,
                            unsigned char *which)
{
    const bwi_image *i = y_image;
    memset(y, 0, (size_t)bwi_image_floats(i) * sizeof *y);
    if (which)
        memset(which, 0, (size_t)bwi_image_floats(i));
    for (int64_t n = 0; n < i->n; n++)
        for (int64_t h = 0; h < i->h; h++)
            for (int64_t w = 0; w < i->w; w++)
                for (int64_t c = 0; c < i->c; c++) {
                    int best = winner(x_image, k, x, n, h, w, c);
                    int64_t xh = h * k->stride_h - k->pad_top + best / k->w, xw = w * k->stride_w - k->pad_left + best % k->w;
                    y[at(i, n, h, w, c)] = best < 0 ? -INFINITY : x[at(x_image, n, xh, xw, c)];
                    if (which)
                        which[at(i, n, h, w, c)] = (unsigned char)best;
                }
}

static void maxpool_backward(const bwi_image *x_image, const bwi_image *y_image, const bwi_window *k, const float *dy,
                             const unsigned char *which, float *dx)
{
    const bwi_image *i = y_image;
    memset(dx, 0, (size_t)bwi_image_floats(x_image) * sizeof *dx);
    for (int64_t n = 0; n < i->n; n++)
        for (int64_t h = 0; h < i->h; h++)
            for (int64_t w = 0; w < i->w; w++)
                for (int64_t c = 0; c < i->c; c++) {
                    int best = which[at(i, n, h, w, c)];
                    if (best >= k->h * k->w)
                        continue;
                    int64_t xh = h * k->stride_h - k->pad_top + best / k->w, xw = w * k->stride_w - k->pad_left + best % k->w;
                    dx[at(x_image, n, xh, xw, c)] += dy[at(i, n, h, w, c)];
                }
}

/* The position in the image of element i of the window at (oh, ow); false: it is padding. */
static bool inside(const bwi_image *image, const bwi_window *k, int64_t oh, int64_t ow, int64_t i, int64_t *h, int64_t *w)
{
    *h = oh * k->stride_h - k->pad_top + i / k->w;
    *w = ow * k->stride_w - k->pad_left + i % k->w;
    return *h >= 0 && *h < image->h && *w >= 0 && *w < image->w;
}

static int64_t elements_inside(const bwi_image *image, const bwi_window *k, int64_t oh, int64_t ow)
{
    int64_t count = 0, h, w;
    for (int64_t i = 0; i < k->h * k->w; i++)
        count += inside(image, k, oh, ow, i, &h, &w);
    return count;
}

static void avgpool_forward(const bwi_image *x_image, const bwi_image *y_image, const bwi_window *k, const float *x, float *y)
{
    const bwi_image *o = y_image;
    memset(y, 0, (size_t)bwi_image_floats(o) * sizeof *y);
    for (int64_t n = 0; n < o->n; n++)
        for (int64_t oh = 0; oh < o->h; oh++)
            for (int64_t ow = 0; ow < o->w; ow++)
                for (int64_t c = 0; c < o->c; c++) {
                    double sum = 0;
                    int64_t h, w, count = elements_inside(x_image, k, oh, ow);
                    for (int64_t i = 0; i < k->h * k->w; i++)
                        if (inside(x_image, k, oh, ow, i, &h, &w))
                            sum += (double)x[at(x_image, n, h, w, c)];
                    y[at(o, n, oh, ow, c)] = count ? (float)(sum / (double)count) : 0;
                }
}

static void avgpool_backward(const bwi_image *x_image, const bwi_image *y_image, const bwi_window *k, const float *dy, float *dx)
{
    const bwi_image *o = y_image;
    memset(dx, 0, (size_t)bwi_image_floats(x_image) * sizeof *dx);
    for (int64_t n = 0; n < o->n; n++)
        for (int64_t oh = 0; oh < o->h; oh++)
            for (int64_t ow = 0; ow < o->w; ow++)
                for (int64_t c = 0; c < o->c; c++) {
                    int64_t h, w, count = elements_inside(x_image, k, oh, ow);
                    for (int64_t i = 0; i < k->h * k->w; i++)
                        if (inside(x_image, k, oh, ow, i, &h, &w))
                            dx[at(x_image, n, h, w, c)] += (float)((double)dy[at(o, n, oh, ow, c)] / (double)count);
                }
}

static void globalmax_forward(const bwi_image *x_image, const bwi_image *y_image, const float *x, float *y)
{
    const bwi_window all = {x_image->h, x_image->w, 1, 1, 0, 0};
    memset(y, 0, (size_t)bwi_image_floats(y_image) * sizeof *y);
    for (int64_t n = 0; n < x_image->n; n++)
        for (int64_t c = 0; c < x_image->c; c++) {
            int best = winner(x_image, &all, x, n, 0, 0, c);
            y[at(y_image, n, 0, 0, c)] = x[at(x_image, n, best / x_image->w, best % x_image->w, c)];
        }
}

static void globalmax_backward(const bwi_image *x_image, const bwi_image *y_image, const float *x, const float *y, const float *dy,
                               float *dx)
{
    int64_t pixels = x_image->h * x_image->w;
    memset(dx, 0, (size_t)bwi_image_floats(x_image) * sizeof *dx);
    for (int64_t n = 0; n < x_image->n; n++)
        for (int64_t c = 0; c < x_image->c; c++) {
            float most = y[at(y_image, n, 0, 0, c)], difference = dy[at(y_image, n, 0, 0, c)];
            int64_t equal = 0;
            for (int64_t i = 0; i < pixels; i++)
                equal += !(x[at(x_image, n, 0, i, c)] < most);
            for (int64_t i = 0; i < pixels; i++)
                if (!(x[at(x_image, n, 0, i, c)] < most))
                    dx[at(x_image, n, 0, i, c)] = (float)((double)difference / (double)equal);
        }
}

/* Where the factors of one product of a depthwise convolution lie; next_product goes through all of them. */
typedef struct product {
    int64_t x, y, weight;
} product;

static bool next_product(const bwi_image *x_image, const bwi_image *y_image, const bwi_depthwise *k, int64_t *number, product *p)
{
    const bwi_window *s = &k->window;
    const int64_t count = y_image->n * y_image->c * y_image->h * y_image->w * s->h * s->w;
    for (; *number < count; ++*number) {
        int64_t rest = *number, c = rest % x_image->c, j = (rest /= x_image->c) % s->w, i = (rest /= s->w) % s->h;
        int64_t ow = (rest /= s->h) % y_image->w, oh = (rest /= y_image->w) % y_image->h, n = rest / y_image->h;
        int64_t h = oh * s->stride_h - s->pad_top + i * k->dilation_h, w = ow * s->stride_w - s->pad_left + j * k->dilation_w;
        if (h >= 0 && h < x_image->h && w >= 0 && w < x_image->w) {
            *p = (product){at(x_image, n, h, w, c), at(y_image, n, oh, ow, c), (i * s->w + j) * x_image->c + c};
            ++*number;
            return true;
        }
    }
    return false;
}

static void depthwise_forward(const bwi_image *x_image, const bwi_image *y_image, const bwi_depthwise *k, const float *x,
                              const float *w, const float *bias, float *y)
{
    int64_t number = 0;
    memset(y, 0, (size_t)bwi_image_floats(y_image) * sizeof *y);
    for (int64_t n = 0; bias && n < y_image->n; n++)
        for (int64_t i = 0; i < y_image->h * y_image->w; i++)
            for (int64_t c = 0; c < y_image->c; c++)
                y[at(y_image, n, 0, i, c)] = bias[c];
    for (product p; next_product(x_image, y_image, k, &number, &p);)
        y[p.y] += x[p.x] * w[p.weight];
}

static void depthwise_backward_data(const bwi_image *x_image, const bwi_image *y_image, const bwi_depthwise *k, const float *dy,
                                    const float *w, float *dx)
{
    int64_t number = 0;
    memset(dx, 0, (size_t)bwi_image_floats(x_image) * sizeof *dx);
    for (product p; next_product(x_image, y_image, k, &number, &p);)
        dx[p.x] += dy[p.y] * w[p.weight];
}

static void depthwise_backward_weights(const bwi_image *x_image, const bwi_image *y_image, const bwi_depthwise *k, const float *x,
                                       const float *dy, float *dw, float *db, bool accumulate)
{
    int64_t number = 0;
    if (!accumulate) {
        memset(dw, 0, (size_t)(k->window.h * k->window.w * x_image->c) * sizeof *dw);
        if (db)
            memset(db, 0, (size_t)x_image->c * sizeof *db);
    }
    for (product p; next_product(x_image, y_image, k, &number, &p);)
        dw[p.weight] += x[p.x] * dy[p.y];
    for (int64_t n = 0; db && n < y_image->n; n++)
        for (int64_t i = 0; i < y_image->h * y_image->w; i++)
            for (int64_t c = 0; c < y_image->c; c++)
                db[c] += dy[at(y_image, n, 0, i, c)];
}

static const bwi_window two_by_two = {2, 2, 2, 2, 0, 0};

/* Masks: four bits for each output, two to a byte: the winner, or 4 if it is not positive. */
static void relu_maxpool_forward(const bwi_image *x_image, const bwi_image *y_image, const float *x, float *y, void *masks)
{
    const bwi_image *i = y_image;
    unsigned char *bytes = masks;
    int64_t count = 0;
    memset(y, 0, (size_t)bwi_image_floats(i) * sizeof *y);
    for (int64_t n = 0; n < i->n; n++)
        for (int64_t h = 0; h < i->h; h++)
            for (int64_t w = 0; w < i->w; w++)
                for (int64_t c = 0; c < i->c; c++, count++) {
                    int best = winner(x_image, &two_by_two, x, n, h, w, c);
                    float value = relu(x[at(x_image, n, 2 * h + best / 2, 2 * w + best % 2, c)]);
                    y[at(i, n, h, w, c)] = value;
                    int bits = value > 0 ? best : 4;
                    if (masks)
                        bytes[count / 2] = (unsigned char)(count % 2 ? bytes[count / 2] | bits << 4 : bits);
                }
}

static void relu_maxpool_backward(const bwi_image *x_image, const bwi_image *y_image, const float *dy, const void *masks, float *dx)
{
    const bwi_image *i = y_image;
    const unsigned char *bytes = masks;
    int64_t count = 0;
    memset(dx, 0, (size_t)bwi_image_floats(x_image) * sizeof *dx);
    for (int64_t n = 0; n < i->n; n++)
        for (int64_t h = 0; h < i->h; h++)
            for (int64_t w = 0; w < i->w; w++)
                for (int64_t c = 0; c < i->c; c++, count++) {
                    int best = bytes[count / 2] >> (count % 2 * 4) & 15;
                    if (best < 4)
                        dx[at(x_image, n, 2 * h + best / 2, 2 * w + best % 2, c)] = dy[at(i, n, h, w, c)];
                }
}

static double row_max(int64_t width, const float *x)
{
    double most = (double)x[0];
    for (int64_t i = 1; i < width; i++)
        most = fmax(most, (double)x[i]);
    return most;
}

static double row_exp_sum(int64_t width, const float *x, double most)
{
    double sum = 0;
    for (int64_t i = 0; i < width; i++)
        sum += exp((double)x[i] - most);
    return sum;
}

static void softmax_forward(int64_t rows, int64_t width, const float *x, float *y)
{
    for (int64_t r = 0; r < rows; r++, x += width, y += width) {
        double most = row_max(width, x), sum = row_exp_sum(width, x, most);
        for (int64_t i = 0; i < width; i++)
            y[i] = (float)(exp((double)x[i] - most) / sum);
    }
}

static void softmax_backward(int64_t rows, int64_t width, const float *y, const float *dy, float *dx)
{
    for (int64_t r = 0; r < rows; r++, y += width, dy += width, dx += width) {
        double dot = 0;
        for (int64_t i = 0; i < width; i++)
            dot += (double)y[i] * (double)dy[i];
        for (int64_t i = 0; i < width; i++)
            dx[i] = (float)((double)y[i] * ((double)dy[i] - dot));
    }
}

static void crossentropy(int64_t rows, int64_t width, const float *logits, const int32_t *labels, const float *weight, float *loss,
                         float *difference)
{
    for (int64_t r = 0; r < rows; r++, logits += width) {
        double most = row_max(width, logits), sum = row_exp_sum(width, logits, most);
        double factor = weight ? (double)weight[r] : 1;
        loss[r] = (float)(log(sum) + most - (double)logits[labels[r]]);
        for (int64_t i = 0; difference && i < width; i++)
            difference[r * width + i] = (float)(factor * (exp((double)logits[i] - most) / sum - (i == labels[r] ? 1 : 0)));
    }
}

static void binary_crossentropy(int64_t count, float smoothing, const float *x, const float *y, const float *factor, float *loss,
                                float *difference)
{
    for (int64_t i = 0; i < count; i++) {
        double z = (double)x[i], t = (double)y[i] * (1 - (double)smoothing) + 0.5 * (double)smoothing, e = exp(-fabs(z));
        if (loss)
            loss[i] = (float)((z < 0 ? 0 : z) - z * t + log1p(e));
        if (difference)
            difference[i] = (float)(((z < 0 ? e : 1) / (1 + e) - t) * (factor ? (double)factor[i] : 1));
    }
}

static void channel_sums(const bwi_image *i, const float *x, double *sums)
{
    for (int64_t c = 0; c < i->c; c++)
        for (int64_t n = 0; n < i->n; n++)
            for (int64_t p = 0; p < i->h * i->w; p++) {
                double value = (double)x[at(i, n, 0, p, c)];
                sums[c] += value;
                sums[c + i->c] += value * value;
            }
}

static void channel_affine(const bwi_image *i, const float *x, const float *mean, const float *scale, const float *shift, float *y)
{
    for (int64_t n = 0; n < i->n; n++)
        for (int64_t c = 0; c < bwi_image_blocks(i) * i->block; c++)
            for (int64_t p = 0; p < i->h * i->w; p++) {
                int64_t k = at(i, n, 0, p, c);
                y[k] = c < i->c ? (float)(((double)x[k] - (double)mean[c]) * (double)scale[c] + (double)shift[c]) : 0;
            }
}

static void channel_backward_sums(const bwi_image *i, const float *x, const float *dy, const float *mean, const float *inverse,
                                  double *sums)
{
    for (int64_t c = 0; c < i->c; c++)
        for (int64_t n = 0; n < i->n; n++)
            for (int64_t p = 0; p < i->h * i->w; p++) {
                int64_t k = at(i, n, 0, p, c);
                sums[c] += (double)dy[k];
                sums[c + i->c] += (double)dy[k] * ((double)x[k] - (double)mean[c]) * (double)inverse[c];
            }
}

static void channel_backward(const bwi_image *i, const float *x, const float *dy, const float *mean, const float *a, const float *b,
                             const float *d, float *dx)
{
    for (int64_t n = 0; n < i->n; n++)
        for (int64_t c = 0; c < bwi_image_blocks(i) * i->block; c++)
            for (int64_t p = 0; p < i->h * i->w; p++) {
                int64_t k = at(i, n, 0, p, c);
                double centred = c < i->c ? (double)dy[k] - (double)d[c] : 0, away = c < i->c ? (double)x[k] - (double)mean[c] : 0;
                dx[k] = c < i->c ? (float)((double)a[c] * centred + (double)b[c] * away) : 0;
            }
}

static void reorder(const bwi_image *from, const float *x, int64_t block, float *y)
{
    bwi_image to = *from;
    to.block = block;
    memset(y, 0, (size_t)bwi_image_floats(&to) * sizeof *y);
    for (int64_t n = 0; n < to.n; n++)
        for (int64_t p = 0; p < to.h * to.w; p++)
            for (int64_t c = 0; c < to.c; c++)
                y[at(&to, n, 0, p, c)] = x[at(from, n, 0, p, c)];
}

static void add(int64_t count, const float *x, float *sum)
{
    for (int64_t i = 0; i < count; i++)
        sum[i] += x[i];
}

static double sum_of_squares(int64_t count, const float *x)
{
    double sum = 0;
    for (int64_t i = 0; i < count; i++)
        sum += (double)x[i] * (double)x[i];
    return sum;
}

static double lanes_sum(int64_t count, int lanes, int64_t stride, float *first)
{
    for (int distance = 1; distance < lanes; distance *= 2)
        for (int lane = 0; lane + distance < lanes; lane += 2 * distance)
            add(count, first + (lane + distance) * stride, first + lane * stride);
    return sum_of_squares(count, first);
}

static bool lanes_sum_finite(int64_t count, int lanes, int64_t stride, float *first)
{
    lanes_sum(count, lanes, stride, first);
    bool finite = true;
    for (int64_t i = 0; i < count; i++)
        finite = finite && isfinite(first[i]);
    return finite;
}

static void sgd(int64_t count, float rate, float momentum, bool nesterov, float scale, const float *gradient, float *velocity,
                float *w)
{
    for (int64_t i = 0; i < count; i++) {
        double step = (double)rate * (double)scale * (double)gradient[i];
        if (!velocity) {
            w[i] = (float)((double)w[i] - step);
            continue;
        }
        double v = (double)momentum * (double)velocity[i] - step;
        velocity[i] = (float)v;
        w[i] = (float)((double)w[i] + (nesterov ? (double)momentum * v - step : v));
    }
}

static void adam(int64_t count, const bwi_adam *a, const float *gradient, float *m, float *v, float *w)
{
    for (int64_t i = 0; i < count; i++) {
        double g = (double)gradient[i] * (double)a->scale;
        double mean = (double)m[i] + (g - (double)m[i]) * (1 - a->beta1);
        double square = (double)v[i] + (g * g - (double)v[i]) * (1 - a->beta2);
        m[i] = (float)mean;
        v[i] = (float)square;
        w[i] = (float)((double)w[i] - (double)a->rate * mean / (sqrt(square) + (double)a->epsilon));
    }
}

const bwi_kernels bwi_kernels_reference = {
    .name = "reference",
    .block = 1,
    .dense_forward = dense_forward,
    .dense_backward_data = dense_backward_data,
    .dense_backward_weights = dense_backward_weights,
    .dense_forward_range = dense_forward_range,
    .dense_backward_data_range = dense_backward_data_range,
    .dense_gradient_pack = dense_gradient_pack,
    .dense_gradient_block = dense_gradient_block,
    .dense_gradient_bias = dense_gradient_bias,
    .relu_forward = relu_forward,
    .relu_backward = relu_backward,
    .activate = activate,
    .activate_backward = activate_backward,
    .dropout = dropout,
    .maxpool_forward = maxpool_forward,
    .maxpool_backward = maxpool_backward,
    .avgpool_forward = avgpool_forward,
    .avgpool_backward = avgpool_backward,
    .globalmax_forward = globalmax_forward,
    .globalmax_backward = globalmax_backward,
    .depthwise_forward = depthwise_forward,
    .depthwise_backward_data = depthwise_backward_data,
    .depthwise_backward_weights = depthwise_backward_weights,
    .relu_maxpool_forward = relu_maxpool_forward,
    .relu_maxpool_backward = relu_maxpool_backward,
    .conv_pool_forward = bwi_reference_conv_pool_forward,
    .conv_pool_backward_weights = bwi_reference_conv_pool_backward_weights,
    .conv_pool_backward_data = bwi_reference_conv_pool_backward_data,
    .thin_weights = bwi_reference_thin_weights,
    .thin_forward = bwi_reference_conv_pool_forward,
    .winograd_weights = bwi_reference_winograd_weights,
    .winograd_forward = bwi_reference_conv_pool_forward,
    .winograd_backward_weights = bwi_reference_winograd_backward_weights,
    .winograd_backward_data = bwi_reference_winograd_backward_data,
    .softmax_forward = softmax_forward,
    .softmax_backward = softmax_backward,
    .crossentropy = crossentropy,
    .binary_crossentropy = binary_crossentropy,
    .channel_sums = channel_sums,
    .channel_affine = channel_affine,
    .channel_backward_sums = channel_backward_sums,
    .channel_backward = channel_backward,
    .reorder = reorder,
    .add = add,
    .lanes_sum = lanes_sum,
    .lanes_sum_finite = lanes_sum_finite,
    .sum_of_squares = sum_of_squares,
    .sgd = sgd,
    .adam = adam,
};
