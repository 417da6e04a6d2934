/*
 * arrange: values that go to other places, repeated, cut, or mixed with their neighbours. Results never lie in an argument's
 * place.
 */
#ifndef BWI_KERNEL_ARRANGE_H
#define BWI_KERNEL_ARRANGE_H

#include "kernel/loops/shapes.h"

/* The axes of y in order, outermost first: extents, and how far y's neighbours along each lie apart in x. */
typedef struct bwi_permutation {
    int ndim;
    int64_t extent[BW_MAX_NDIM], stride[BW_MAX_NDIM];
} bwi_permutation;

/* Height and width multiplied: every pixel repeated, or if `bilinear` mixed. Along an axis of n pixels, output o lies at
 * s = (o + 1/2) / factor - 1/2: y[o] = (1 - part) x[low] + part x[high], where low = floor(s), high = low + 1 and part = s - low;
 * low and high end at the border. */
typedef struct bwi_upsampling {
    int64_t size[2]; /* the factors of height and width */
    bool bilinear;
} bwi_upsampling;

typedef struct bwi_arrange_kernels {
    /* x, spread over each sample of y; dx = the sums over the repeats, made in `sums`: as many as a sample of x has. */
    void (*broadcast)(const bwi_spread *spread, int64_t samples, const float *x, float *y);
    void (*broadcast_backward)(const bwi_spread *spread, int64_t samples, const float *dy, double *sums, float *dx);
    /* `count` runs of `run` floats; the next one begins `from_step` further on there, and `to_step` here. */
    void (*runs)(int64_t count, int64_t run, int64_t from_step, const float *from, int64_t to_step, float *to);
    /* y's axes are x's in another order: from x to y, or `back` from y to x. */
    void (*permute)(const bwi_permutation *permutation, int64_t samples, bool back, const float *from, float *to);
    /* y's pixel (h, w) is x's (h - top, w - left), or zero where x has none. Both have the same block; top and left may be
     * negative. */
    void (*pad)(const bwi_image *x_image, const bwi_image *y_image, int64_t top, int64_t left, const float *x, float *y);
    /* Backward is the transpose. `row` has as many floats as a row of x's pixels. */
    void (*upsample)(const bwi_image *x_image, const bwi_upsampling *up, const float *x, float *row, float *y);
    void (*upsample_backward)(const bwi_image *x_image, const bwi_upsampling *up, const float *dy, float *row, float *dx);
    /* Zeros in the channels that only fill the last block. */
    void (*clear_padding)(const bwi_image *image, float *values);
} bwi_arrange_kernels;

#endif
