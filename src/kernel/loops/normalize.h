/*
 * normalize: what batch normalisation computes from its sums, channel by channel. The sums themselves and the affine maps over
 * images are vector kernels (channel_sums, channel_affine in kernel.h).
 */
#ifndef BWI_KERNEL_NORMALIZE_H
#define BWI_KERNEL_NORMALIZE_H

#include "base/base.h"

typedef struct bwi_normalize_kernels {
    /* From the sums of x and x*x over `count` values: mean = sums[c] / count, variance = sums[channels + c] / count - mean^2, which
     * rounding must not make negative. */
    void (*moments)(int64_t channels, double count, const double *sums, float *mean, float *variance);

    /* The factors of y = (x - mean) scale + shift: inverse = 1 / sqrt(variance + epsilon), scale = gamma inverse, shift = beta.
     * gamma and beta may be NULL, which means 1 and 0; `inverse` may be written over `variance`. */
    void (*affine)(int64_t channels, float epsilon, const float *variance, const float *gamma, const float *beta, float *inverse,
                   float *scale, float *shift);

    /* The factors of dx = a (dy - d) + b (x - mean), from the sums of dy and dy x_hat over `count` values: a = scale, b = -scale
     * inverse sums[channels + c] / count, d = sums[c] / count. */
    void (*backward_factors)(int64_t channels, double count, const double *sums, const float *inverse, const float *scale, float *a,
                             float *b, float *d);

    /* moving = moving momentum + value (1 - momentum). */
    void (*blend)(int64_t count, float momentum, const float *value, float *moving);

    void (*averages)(int64_t count, double divisor, const double *sums, float *y);    /* y = sums / divisor */
    void (*add_doubles)(int64_t count, const double *x, double *sums);                /* sums += x */
    void (*add_weighted)(int64_t count, double weight, const float *x, double *sums); /* sums += weight x */
} bwi_normalize_kernels;

#endif
