/*
 * The reference of every vector kernel, slow and obvious, for tests to compare with: one loop per index, sums in double, no regard
 * for the machine. at() computes the indices of images. reference_window.inc has the kernels with windows over images,
 * reference_axis.inc those along an axis, reference_loss.inc the losses, reference_recurrent.inc the recurrent layers,
 * reference_attention.inc attention.
 */
#define ISA portable
#include "kernel/internal.h"
#include "kernel/loops/isa.h"
#include "kernel/packing.h"

#include <math.h>
#include <string.h>

static int64_t at(const bwi_image *i, int64_t n, int64_t h, int64_t w, int64_t c)
{
    return (((n * bwi_image_blocks(i) + c / i->block) * i->h + h) * i->w + w) * i->block + c % i->block;
}

static void dense_forward_part(int64_t n, int64_t in, int64_t out, int64_t from, int64_t to, const float *x, const float *w,
                               const float *bias, float *y)
{
    for (int64_t r = 0; r < n; r++) {
        for (int64_t o = from; o < to; o++) {
            double sum = bias ? (double)bias[o] : 0;
            for (int64_t i = 0; i < in; i++) {
                sum += (double)x[r * in + i] * (double)w[bwi_dense_index(in, out, i, o)];
            }
            y[r * out + o] = (float)sum;
        }
    }
}

static void dense_backward_data_part(int64_t n, int64_t in, int64_t out, int64_t from, int64_t to, const float *dy, const float *w,
                                     float *dx)
{
    for (int64_t r = 0; r < n; r++) {
        for (int64_t i = from; i < to; i++) {
            double sum = 0;
            for (int64_t o = 0; o < out; o++) {
                sum += (double)dy[r * out + o] * (double)w[bwi_dense_index(in, out, i, o)];
            }
            dx[r * in + i] = (float)sum;
        }
    }
}

static void dense_forward(int64_t n, int64_t in, int64_t out, const float *x, const float *w, const float *bias, float *y)
{
    dense_forward_part(n, in, out, 0, out, x, w, bias, y);
}

static void dense_backward_data(int64_t n, int64_t in, int64_t out, const float *dy, const float *w, float *dx)
{
    dense_backward_data_part(n, in, out, 0, in, dy, w, dx);
}

/* dw[i][o] = sum over samples of x[i] dy[o], db[o] = sum of dy[o], in double. */
static void dense_backward_weights(int64_t n, int64_t in, int64_t out, const float *x, const float *dy, float *dw, float *db,
                                   bool accumulate)
{
    if (!accumulate) {
        memset(dw, 0, (size_t)bwi_packing_host.dense_floats(in, out) * sizeof *dw);
    }
    for (int64_t o = 0; o < out; o++) {
        for (int64_t i = 0; i < in; i++) {
            double sum = (double)dw[bwi_dense_index(in, out, i, o)];
            for (int64_t r = 0; r < n; r++) {
                sum += (double)x[r * in + i] * (double)dy[r * out + o];
            }
            dw[bwi_dense_index(in, out, i, o)] = (float)sum;
        }
        if (!db) {
            continue;
        }
        double sum = accumulate ? (double)db[o] : 0;
        for (int64_t r = 0; r < n; r++) {
            sum += (double)dy[r * out + o];
        }
        db[o] = (float)sum;
    }
}

/* The staging holds x as [in][n], then dy as [out][n]. */
static double dense_gradient_pack(int64_t n, int64_t in, int64_t out, const float *x, const float *dy, float *staging)
{
    double most_x = 1, most_dy = 0;
    bool finite = true;
    for (int64_t r = 0; r < n; r++) {
        for (int64_t i = 0; i < in; i++) {
            staging[i * n + r] = x[r * in + i];
            most_x = fmax(most_x, fabs((double)x[r * in + i]));
            finite = finite && isfinite(x[r * in + i]);
        }
        for (int64_t o = 0; o < out; o++) {
            staging[(in + o) * n + r] = dy[r * out + o];
            most_dy = fmax(most_dy, fabs((double)dy[r * out + o]));
            finite = finite && isfinite(dy[r * out + o]);
        }
    }
    return finite ? (double)n * most_x * most_dy : (double)NAN;
}

static void dense_gradient_block(int64_t n, int64_t in, int64_t out, const float *staging, int64_t panel, int64_t first,
                                 int64_t rows, float *block, const void *const ahead[BWI_FETCHED])
{
    (void)ahead;
    for (int64_t i = 0; i < rows; i++) {
        for (int64_t q = 0; q < BWI_DENSE_PANEL; q++) {
            int64_t o = panel * BWI_DENSE_PANEL + q;
            double sum = 0;
            for (int64_t r = 0; r < n && o < out; r++) {
                sum += (double)staging[(first + i) * n + r] * (double)staging[(in + o) * n + r];
            }
            block[i * BWI_DENSE_PANEL + q] = (float)sum;
        }
    }
}

static void dense_gradient_bias(int64_t n, int64_t in, int64_t out, const float *staging, int64_t panel, float *db)
{
    for (int64_t q = 0; q < BWI_DENSE_PANEL; q++) {
        int64_t o = panel * BWI_DENSE_PANEL + q;
        double sum = 0;
        for (int64_t r = 0; r < n && o < out; r++) {
            sum += (double)staging[(in + o) * n + r];
        }
        db[q] = (float)sum;
    }
}

static float relu(float x)
{
    return x < 0 ? 0 : x;
}

static void relu_forward(int64_t count, const float *x, float *y)
{
    for (int64_t i = 0; i < count; i++) {
        y[i] = relu(x[i]);
    }
}

static void relu_backward(int64_t count, const float *y, const float *dy, float *dx)
{
    for (int64_t i = 0; i < count; i++) {
        dx[i] = y[i] > 0 ? dy[i] : 0;
    }
}

static double below_normal(double x)
{
    return 0.5 * erfc(-x * 0.70710678118654752);
}

/* Computes the formulas of kernel.h in double. */
static double activation_of(bwi_activation kind, const float *p, double x)
{
    double a = (double)p[0], b = (double)p[1], c = (double)p[2];
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
    case BWI_HARD_SILU:
        return x * fmin(fmax(x / 6 + 0.5, 0), 1);
    case BWI_HARD_TANH:
        return fmin(fmax(x, -1), 1);
    case BWI_MISH:
        return x * tanh(log1p(exp(-fabs(x))) + (x > 0 ? x : 0));
    case BWI_SQUAREPLUS:
        return x < 0 ? a / 2 / (sqrt(x * x + a) - x) : (x + sqrt(x * x + a)) / 2;
    case BWI_LOG_SIGMOID:
        return -log1p(exp(-fabs(x))) + (x < 0 ? x : 0);
    case BWI_SOFT_SHRINK:
        return x > a ? x - a : x < -a ? x + a : 0;
    case BWI_HARD_SHRINK:
        return fabs(x) > a ? x : 0;
    case BWI_TANH_SHRINK:
        return x - tanh(x);
    case BWI_SPARSE_PLUS:
        return x <= -1 ? 0 : x >= 1 ? x : (x + 1) * (x + 1) / 4;
    case BWI_SPARSE_SIGMOID:
        return fmin(fmax((x + 1) / 2, 0), 1);
    case BWI_ACTIVATIONS:
        break;
    }
    return (double)NAN;
}

/* Computes their derivatives in double, from y or from x as kernel.h says. */
static double slope_of(bwi_activation kind, const float *p, double v)
{
    double a = (double)p[0], b = (double)p[1], s = 1 / (1 + exp(-v));
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
    case BWI_HARD_SILU:
        return v <= -3 ? 0 : v >= 3 ? 1 : v / 3 + 0.5;
    case BWI_HARD_TANH:
        return fabs(v) < 1 ? 1 : 0;
    case BWI_MISH:
        b = tanh(log1p(exp(-fabs(v))) + (v > 0 ? v : 0));
        return b + v * (1 - b * b) * s;
    case BWI_SQUAREPLUS:
        return (1 + v / sqrt(v * v + a)) / 2;
    case BWI_LOG_SIGMOID:
        return -expm1(v);
    case BWI_SOFT_SHRINK:
    case BWI_HARD_SHRINK:
        return fabs(v) > 0 ? 1 : 0;
    case BWI_TANH_SHRINK:
        return tanh(v) * tanh(v);
    case BWI_SPARSE_PLUS:
        return fmin(fmax((v + 1) / 2, 0), 1);
    case BWI_SPARSE_SIGMOID:
        return v > 0 && v < 1 ? 0.5 : 0;
    case BWI_ACTIVATIONS:
        break;
    }
    return (double)NAN;
}

static void activate(bwi_activation kind, const float *p, int64_t count, const float *x, float *y)
{
    for (int64_t i = 0; i < count; i++) {
        y[i] = (float)activation_of(kind, p, (double)x[i]);
    }
}

static void activate_backward(bwi_activation kind, const float *p, int64_t count, const float *v, const float *dy, float *dx)
{
    for (int64_t i = 0; i < count; i++) {
        dx[i] = (float)((double)dy[i] * slope_of(kind, p, (double)v[i]));
    }
}

static void dropout(int64_t count, uint64_t seed, uint64_t stream, uint64_t counter, uint32_t limit, float scale, const float *x,
                    float *y)
{
    for (int64_t i = 0; i < count; i++) {
        bwi_random r = bwi_random_at(seed, stream, counter + (uint64_t)(i / 64 * 16 + i % 16));
        y[i] = r.word[i % 64 / 16] < limit ? 0 : x[i] * scale;
    }
}

#include "kernel/reference_axis.inc"
#include "kernel/reference_recurrent.inc"
#include "kernel/reference_attention.inc"
#include "kernel/reference_window.inc"

static double row_max(int64_t width, const float *x)
{
    double most = (double)x[0];
    for (int64_t i = 1; i < width; i++) {
        most = fmax(most, (double)x[i]);
    }
    return most;
}

static double row_exp_sum(int64_t width, const float *x, double most)
{
    double sum = 0;
    for (int64_t i = 0; i < width; i++) {
        sum += exp((double)x[i] - most);
    }
    return sum;
}

static void softmax_forward(int64_t rows, int64_t width, const float *x, float *y)
{
    for (int64_t r = 0; r < rows; r++, x += width, y += width) {
        double most = row_max(width, x), sum = row_exp_sum(width, x, most);
        for (int64_t i = 0; i < width; i++) {
            y[i] = (float)(exp((double)x[i] - most) / sum);
        }
    }
}

static void softmax_backward(int64_t rows, int64_t width, const float *y, const float *dy, float *dx)
{
    for (int64_t r = 0; r < rows; r++, y += width, dy += width, dx += width) {
        double dot = 0;
        for (int64_t i = 0; i < width; i++) {
            dot += (double)y[i] * (double)dy[i];
        }
        for (int64_t i = 0; i < width; i++) {
            dx[i] = (float)((double)y[i] * ((double)dy[i] - dot));
        }
    }
}

static void crossentropy(int64_t rows, int64_t width, const float *logits, const int32_t *labels, const float *weight, float *loss,
                         float *difference)
{
    for (int64_t r = 0; r < rows; r++, logits += width) {
        double most = row_max(width, logits), sum = row_exp_sum(width, logits, most);
        double factor = weight ? (double)weight[r] : 1;
        loss[r] = (float)(log(sum) + most - (double)logits[labels[r]]);
        for (int64_t i = 0; difference && i < width; i++) {
            difference[r * width + i] = (float)(factor * (exp((double)logits[i] - most) / sum - (i == labels[r] ? 1 : 0)));
        }
    }
}

static void binary_crossentropy(int64_t count, float smoothing, const float *x, const float *y, const float *factor, float *loss,
                                float *difference)
{
    for (int64_t i = 0; i < count; i++) {
        double z = (double)x[i], t = (double)y[i] * (1 - (double)smoothing) + 0.5 * (double)smoothing, e = exp(-fabs(z));
        if (loss) {
            loss[i] = (float)((z < 0 ? 0 : z) - z * t + log1p(e));
        }
        if (difference) {
            difference[i] = (float)(((z < 0 ? e : 1) / (1 + e) - t) * (factor ? (double)factor[i] : 1));
        }
    }
}

#include "kernel/reference_loss.inc"

static void channel_sums(const bwi_image *i, const float *x, double *sums)
{
    for (int64_t c = 0; c < i->c; c++) {
        for (int64_t n = 0; n < i->n; n++) {
            for (int64_t p = 0; p < i->h * i->w; p++) {
                double value = (double)x[at(i, n, 0, p, c)];
                sums[c] += value;
                sums[c + i->c] += value * value;
            }
        }
    }
}

static void channel_affine(const bwi_image *i, const float *x, const float *mean, const float *scale, const float *shift, float *y)
{
    for (int64_t n = 0; n < i->n; n++) {
        for (int64_t c = 0; c < bwi_image_blocks(i) * i->block; c++) {
            for (int64_t p = 0; p < i->h * i->w; p++) {
                int64_t k = at(i, n, 0, p, c);
                y[k] = c < i->c ? (float)(((double)x[k] - (double)mean[c]) * (double)scale[c] + (double)shift[c]) : 0;
            }
        }
    }
}

static void channel_backward_sums(const bwi_image *i, const float *x, const float *dy, const float *mean, const float *inverse,
                                  double *sums)
{
    for (int64_t c = 0; c < i->c; c++) {
        for (int64_t n = 0; n < i->n; n++) {
            for (int64_t p = 0; p < i->h * i->w; p++) {
                int64_t k = at(i, n, 0, p, c);
                sums[c] += (double)dy[k];
                sums[c + i->c] += (double)dy[k] * ((double)x[k] - (double)mean[c]) * (double)inverse[c];
            }
        }
    }
}

static void channel_backward(const bwi_image *i, const float *x, const float *dy, const float *mean, const float *a, const float *b,
                             const float *d, float *dx)
{
    for (int64_t n = 0; n < i->n; n++) {
        for (int64_t c = 0; c < bwi_image_blocks(i) * i->block; c++) {
            for (int64_t p = 0; p < i->h * i->w; p++) {
                int64_t k = at(i, n, 0, p, c);
                double centred = c < i->c ? (double)dy[k] - (double)d[c] : 0, away = c < i->c ? (double)x[k] - (double)mean[c] : 0;
                dx[k] = c < i->c ? (float)((double)a[c] * centred + (double)b[c] * away) : 0;
            }
        }
    }
}

static void reorder(const bwi_image *from, const float *x, int64_t block, float *y)
{
    bwi_image to = *from;
    to.block = block;
    memset(y, 0, (size_t)bwi_image_floats(&to) * sizeof *y);
    for (int64_t n = 0; n < to.n; n++) {
        for (int64_t p = 0; p < to.h * to.w; p++) {
            for (int64_t c = 0; c < to.c; c++) {
                y[at(&to, n, 0, p, c)] = x[at(from, n, 0, p, c)];
            }
        }
    }
}

static void add(int64_t count, const float *x, float *sum)
{
    for (int64_t i = 0; i < count; i++) {
        sum[i] += x[i];
    }
}

static void multiply_adds(int64_t rounds, float factor, float term, float *sums)
{
    for (int k = 0; k < BWI_LIMIT_SUMS; k++) { /* vectors of one number */
        for (int64_t round = 0; round < rounds; round++) {
            sums[k] = sums[k] * factor + term;
        }
    }
}

static double sum_of_squares(int64_t count, const float *x)
{
    double sum = 0;
    for (int64_t i = 0; i < count; i++) {
        sum += (double)x[i] * (double)x[i];
    }
    return sum;
}

static double lanes_sum(int64_t count, int lanes, int64_t stride, float *first)
{
    for (int distance = 1; distance < lanes; distance *= 2) {
        for (int lane = 0; lane + distance < lanes; lane += 2 * distance) {
            add(count, first + (lane + distance) * stride, first + lane * stride);
        }
    }
    return sum_of_squares(count, first);
}

static bool lanes_sum_moderate(int64_t count, int lanes, int64_t stride, float *first)
{
    lanes_sum(count, lanes, stride, first);
    bool moderate = true;
    for (int64_t i = 0; i < count; i++) {
        moderate = moderate && fabs((double)first[i]) < BWI_MODERATE;
    }
    return moderate;
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
#define BWI_MEMBER(family) .family = &FAMILY(family),
    BWI_FAMILIES(BWI_MEMBER)
#undef BWI_MEMBER
        .packing = &bwi_packing_host,
    .convolution = &BWI_CONVOLUTION,
    .dense_forward = dense_forward,
    .dense_backward_data = dense_backward_data,
    .dense_backward_weights = dense_backward_weights,
    .dense_forward_part = dense_forward_part,
    .dense_backward_data_part = dense_backward_data_part,
    .dense_gradient_pack = dense_gradient_pack,
    .dense_gradient_block = dense_gradient_block,
    .dense_gradient_bias = dense_gradient_bias,
    .attention_forward = attention_forward,
    .attention_backward = attention_backward,
    .relu_forward = relu_forward,
    .relu_backward = relu_backward,
    .recurrent_forward = recurrent_forward,
    .recurrent_turn = recurrent_turn,
    .recurrent_backward = recurrent_backward,
    .recurrent_data = recurrent_data,
    .recurrent_begin = recurrent_begin,
    .recurrent_weights = recurrent_weights,
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
    .conv_weights = conv_weights,
    .conv_bias = conv_bias,
    .conv_data = conv_data,
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
    .softmax_axis_forward = softmax_axis_forward,
    .softmax_axis_backward = softmax_axis_backward,
    .crossentropy = crossentropy,
    .binary_crossentropy = binary_crossentropy,
    .sum_axis = sum_axis,
    .layernorm_forward = layernorm_forward,
    .layernorm_backward = layernorm_backward,
    .layernorm_backward_weights = layernorm_backward_weights,
    .loss_sum = loss_sum,
    .loss_slopes = loss_slopes,
    .channel_sums = channel_sums,
    .channel_affine = channel_affine,
    .channel_backward_sums = channel_backward_sums,
    .channel_backward = channel_backward,
    .reorder = reorder,
    .add = add,
    .lanes_sum = lanes_sum,
    .lanes_sum_moderate = lanes_sum_moderate,
    .sum_of_squares = sum_of_squares,
    .sgd = sgd,
    .adam = adam,
    .multiply_adds = multiply_adds,
};
