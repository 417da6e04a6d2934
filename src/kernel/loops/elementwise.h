/*
 * elementwise: each result is computed from the elements at the same place of one or more arrays. Where a smaller array is repeated
 * over a larger one, a bwi_spread says how. "In place" means at the same address; arrays never overlap in part.
 */
#ifndef BWI_KERNEL_ELEMENTWISE_H
#define BWI_KERNEL_ELEMENTWISE_H

#include "kernel/loops/shapes.h"

/* Functions with up to two parameters, and their derivatives. e^x is an activation; -x, x + a, a x are scale; a / x is a x^-1. */
typedef enum bwi_unary_kind {
    BWI_ABS,       /* |x|;              the sign of x, 0 at 0 */
    BWI_SQUARE,    /* x^2;              2 x */
    BWI_SQRT,      /* sqrt x;           1 / (2 sqrt x) */
    BWI_LOG,       /* ln x;             1 / x */
    BWI_POW,       /* x^a;              a x^(a - 1), 0 if a is 0 */
    BWI_CLIP,      /* x between a, b;   1, also at the bounds as in JAX and TensorFlow; 0 outside. NaN passes through. */
    BWI_THRESHOLD, /* x > a: x, else b;  1 where x > a, else 0 */
    BWI_UNARIES
} bwi_unary_kind;

/* Functions of two arguments, and their derivatives by each. Where the two are equal, each gets half of the difference of a
 * maximum or minimum, as in JAX and PyTorch. */
typedef enum bwi_binary_kind {
    BWI_MULTIPLY, /* x z;            z and x */
    BWI_DIVIDE,   /* x / z;          1 / z and -x / z^2 */
    BWI_MAXIMUM,  /* a NaN in x wins; 1 for the larger, 0 for the other */
    BWI_MINIMUM,
    BWI_BINARIES
} bwi_binary_kind;

/* Weights by class. A sample has `each` results, 1 or `each` target rows of `width` numbers, and 0, 1 or `each` sample weights
 * (`weights` says which). The class of a row is its label, the index of its largest number, or its only number, rounded. */
typedef struct bwi_class_weighting {
    int64_t samples, each, rows, width, weights;
    int64_t classes;       /* classes beyond these weigh 1 */
    const float *by_class; /* parameters, in the host's memory */
} bwi_class_weighting;

typedef struct bwi_elementwise_kernels {
    /* y = f(x); dx = dy f'(x). y may be written over x, and dx over dy. */
    void (*unary)(bwi_unary_kind kind, float a, float b, int64_t count, const float *x, float *y);
    void (*unary_backward)(bwi_unary_kind kind, float a, float b, int64_t count, const float *x, const float *dy, float *dx);
    /* y = f(x, z), which may be written over either; dx and dz may be NULL, and one of them may be written over dy. */
    void (*binary)(bwi_binary_kind kind, int64_t count, const float *x, const float *z, float *y);
    void (*binary_backward)(bwi_binary_kind kind, int64_t count, const float *x, const float *z, const float *dy, float *dx,
                            float *dz);

    /* y = x scale + offset, possibly in place. An offset of -0 changes no product, not even -0. */
    void (*scale)(int64_t count, float scale, float offset, const float *x, float *y);
    /* y = (x[0] + sign x[1] + sign x[2] ...) scale, in this order. y may be written over any of them. */
    void (*sum)(int64_t count, int inputs, void *const *x, float sign, float scale, float *y);

    /* factor = 1 / max(sqrt(variance), 1e-7), or if `invert` its inverse. */
    void (*deviation_factors)(int64_t count, bool invert, const float *variance, float *factor);
    /* y = (x - mean) factor, or if `invert` mean + x factor; dx = dy factor. Mean and factor are repeated over each sample. May
     * work in place. */
    void (*normalize)(const bwi_spread *spread, int64_t samples, bool invert, const float *mean, const float *factor,
                      const float *x, float *y);
    void (*normalize_backward)(const bwi_spread *spread, int64_t samples, const float *factor, const float *dy, float *dx);

    /* y = x < 0 ? alpha x : x; dx = dy alpha where x < 0, dy where x > 0, and 0 at 0, as in Keras. alpha is repeated over each
     * sample. May work in place. sums[alpha] = the sum over all samples of x dy where x < 0, with each product rounded to float. */
    void (*prelu)(const bwi_spread *spread, int64_t samples, const float *alpha, const float *x, float *y);
    void (*prelu_backward)(const bwi_spread *spread, int64_t samples, const float *alpha, const float *x, const float *dy,
                           float *dx);
    void (*prelu_sums)(const bwi_spread *spread, int64_t samples, const float *x, const float *dy, double *sums);

    /* y[i] = x[i] + deviation n, where n is a standard normal number: number i % 4 of the four that the two pairs of words of
     * bwi_random_at(seed, stream, counter + i / 4) give. May work in place. */
    void (*gaussian)(int64_t count, uint64_t seed, uint64_t stream, uint64_t counter, float deviation, const float *x, float *y);

    /* A position counts where its mask is above 0. y = 1 where it counts in any of the masks x[k], else 0. */
    /* mask[r] = 1 where one of a row's numbers is not `value`, else 0. */
    void (*mask_values)(int64_t rows, int64_t width, float value, const float *x, float *mask);
    void (*mask_any)(int64_t count, int inputs, void *const *x, float *y);
    /* y = mask > 0 ? w : 0. A sample has `weights` weights w: none (w is 1), one, or one for each position. */
    void (*mask_weights)(int64_t samples, int64_t positions, int64_t weights, const float *mask, const float *weight, float *y);
    /* The mean over the n positions of x, [samples][positions][channels], that count: y[c] = sum_t x[t][c] / n; 0 if none
     * counts. */
    void (*masked_average)(int64_t samples, int64_t positions, int64_t channels, const float *x, const float *mask, float *y);
    void (*masked_average_backward)(int64_t samples, int64_t positions, int64_t channels, const float *mask, const float *dy,
                                    float *dx);
    /* y = the sample weight, or 1, times the weight of the class. The target is numbers or labels; the other one is NULL. */
    void (*class_weight)(const bwi_class_weighting *c, const float *numbers, const int32_t *labels, const float *weight, float *y);
} bwi_elementwise_kernels;

#endif
