/*
 * elementwise: a result for each element, from the elements at the same place of one or more arrays. Where a smaller array is
 * repeated over a larger one, a bwi_spread says how. In place means at the same address, never half over it.
 */
#ifndef BWI_KERNEL_ELEMENTWISE_H
#define BWI_KERNEL_ELEMENTWISE_H

#include "kernel/loops/shapes.h"

/* Functions with up to two parameters, and their derivatives. e^x is an activation; -x, x + a, a x are scale; a / x is a x^-1. */
typedef enum bwi_unary_kind {
    BWI_ABS,    /* |x|;              the sign of x, 0 at 0 */
    BWI_SQUARE, /* x^2;              2 x */
    BWI_SQRT,   /* sqrt x;           1 / (2 sqrt x) */
    BWI_LOG,    /* ln x;             1 / x */
    BWI_POW,    /* x^a;              a x^(a - 1), 0 if a is 0 */
    BWI_CLIP,   /* x between a, b;   1, also at the bounds as in JAX and TensorFlow; 0 outside. NaN passes through. */
    BWI_UNARIES
} bwi_unary_kind;

/* Functions of two, and their derivatives by either. Equal ones share the difference of a maximum or minimum in halves, as in JAX
 * and PyTorch. */
typedef enum bwi_binary_kind {
    BWI_MULTIPLY, /* x z;            z and x */
    BWI_DIVIDE,   /* x / z;          1 / z and -x / z^2 */
    BWI_MAXIMUM,  /* a NaN of x before all; 1 for the larger, 0 for the other */
    BWI_MINIMUM,
    BWI_BINARIES
} bwi_binary_kind;

/* Weights by class. A sample has `each` results, and 1 or `each` rows of a target with `width` numbers, and `weights` weights: 0,
 * 1 or `each`. A row's class is its label, the largest of its numbers, or its only number, rounded. */
typedef struct bwi_class_weighting {
    int64_t samples, each, rows, width, weights;
    int64_t classes;       /* those not listed weigh 1 */
    const float *by_class; /* parameters, in the host's memory */
} bwi_class_weighting;

typedef struct bwi_elementwise_kernels {
    /* y = f(x); dx = dy f'(x). In place allowed: y in x, dx in dy. */
    void (*unary)(bwi_unary_kind kind, float a, float b, int64_t count, const float *x, float *y);
    void (*unary_backward)(bwi_unary_kind kind, float a, float b, int64_t count, const float *x, const float *dy, float *dx);
    /* y = f(x, z), which may lie in either's place; dx and dz: NULL where not wanted; one of them may lie in dy's place. */
    void (*binary)(bwi_binary_kind kind, int64_t count, const float *x, const float *z, float *y);
    void (*binary_backward)(bwi_binary_kind kind, int64_t count, const float *x, const float *z, const float *dy, float *dx,
                            float *dz);

    /* y = x scale + offset. In place allowed. An offset of -0 leaves every product as it is, also -0. */
    void (*scale)(int64_t count, float scale, float offset, const float *x, float *y);
    /* y = (x[0] + sign x[1] + sign x[2] ...) scale, in this order; y may lie in the place of any of them. */
    void (*sum)(int64_t count, int inputs, void *const *x, float sign, float scale, float *y);

    /* factor = 1 / max(sqrt(variance), 1e-7), or if `invert` its inverse. */
    void (*deviation_factors)(int64_t count, bool invert, const float *variance, float *factor);
    /* y = (x - mean) factor, or if `invert` mean + x factor; dx = dy factor. Mean and factor are spread over each sample. In place
     * allowed. */
    void (*normalize)(const bwi_spread *spread, int64_t samples, bool invert, const float *mean, const float *factor,
                      const float *x, float *y);
    void (*normalize_backward)(const bwi_spread *spread, int64_t samples, const float *factor, const float *dy, float *dx);

    /* y = x < 0 ? alpha x : x; dx = dy alpha where x < 0, dy where x > 0, and 0 at 0, as in Keras. alpha is spread over each
     * sample. In place allowed. sums[alpha] = sum over all samples of x dy where x < 0, each product rounded to float. */
    void (*prelu)(const bwi_spread *spread, int64_t samples, const float *alpha, const float *x, float *y);
    void (*prelu_backward)(const bwi_spread *spread, int64_t samples, const float *alpha, const float *x, const float *dy,
                           float *dx);
    void (*prelu_sums)(const bwi_spread *spread, int64_t samples, const float *x, const float *dy, double *sums);

    /* y[i] = x[i] + deviation n, a standard normal: the (i % 4)-th of those that the two pairs of words of
     * bwi_random_at(seed, stream, counter + i / 4) give. In place allowed. */
    void (*gaussian)(int64_t count, uint64_t seed, uint64_t stream, uint64_t counter, float deviation, const float *x, float *y);

    /* Masks count where they are above 0. y = 1 where one of the masks x[k] counts, else 0. */
    void (*mask_any)(int64_t count, int inputs, void *const *x, float *y);
    /* y = mask > 0 ? w : 0, where a sample has `weights` of w: 0 (w is 1), 1, or one for each position. */
    void (*mask_weights)(int64_t samples, int64_t positions, int64_t weights, const float *mask, const float *weight, float *y);
    /* The mean over those positions of x, [samples][positions][channels], that count: y[c] = sum_t x[t][c] / n; 0 if none does. */
    void (*masked_average)(int64_t samples, int64_t positions, int64_t channels, const float *x, const float *mask, float *y);
    void (*masked_average_backward)(int64_t samples, int64_t positions, int64_t channels, const float *mask, const float *dy,
                                    float *dx);
    /* y = the weight, or 1, times that of its class. The target is either numbers or labels; the other one is NULL. */
    void (*class_weight)(const bwi_class_weighting *c, const float *numbers, const int32_t *labels, const float *weight, float *y);
} bwi_elementwise_kernels;

#endif
