/*
 * arrange: kernels that move values: repeat them, cut them out, permute them, or mix them with their neighbours. A result never
 * overlaps an argument.
 */
#ifndef BWI_KERNEL_ARRANGE_H
#define BWI_KERNEL_ARRANGE_H

#include "kernel/loops/shapes.h"

/* The axes of y, outermost first: their extents, and the distance in x between neighbours along each. */
typedef struct bwi_permutation {
    int ndim;
    int64_t extent[BW_MAX_NDIM], stride[BW_MAX_NDIM];
} bwi_permutation;

/* An image whose height and width are multiplied. Pixels are repeated or, if `bilinear`, interpolated: along an axis of n
 * pixels, output o lies at s = (o + 1/2) / factor - 1/2, and y[o] = (1 - part) x[low] + part x[high], where low = floor(s), high
 * = low + 1 and part = s - low; low and high are clamped to the border. */
typedef struct bwi_upsampling {
    int64_t size[2]; /* the factors of height and width */
    bool bilinear;
} bwi_upsampling;

typedef struct bwi_arrange_kernels {
    /* Repeats x over each sample of y. Backward sums the repeats, in `sums`, which has as many elements as a sample of x. */
    void (*broadcast)(const bwi_spread *spread, int64_t samples, const float *x, float *y);
    void (*broadcast_backward)(const bwi_spread *spread, int64_t samples, const float *dy, double *sums, float *dx);
    /* Copies `count` runs of `run` floats. From one run to the next, the source advances by `from_step` floats, the destination
     * by `to_step`. */
    void (*runs)(int64_t count, int64_t run, int64_t from_step, const float *from, int64_t to_step, float *to);
    /* Copies from x to y, whose axes are x's in another order, or with `back` from y to x. */
    void (*permute)(const bwi_permutation *permutation, int64_t samples, bool back, const float *from, float *to);
    /* y's pixel (h, w) is x's pixel (h - top, w - left), or zero where x has none. Both have the same block; top and left may be
     * negative. */
    void (*pad)(const bwi_image *x_image, const bwi_image *y_image, int64_t top, int64_t left, const float *x, float *y);
    /* Backward is the transpose. `row` has as many floats as a row of x's pixels. */
    void (*upsample)(const bwi_image *x_image, const bwi_upsampling *up, const float *x, float *row, float *y);
    void (*upsample_backward)(const bwi_image *x_image, const bwi_upsampling *up, const float *dy, float *row, float *dx);
    /* Writes zeros to the channels that only fill up the last block. */
    void (*clear_padding)(const bwi_image *image, float *values);
} bwi_arrange_kernels;

#endif
