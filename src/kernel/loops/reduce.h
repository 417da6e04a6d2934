/*
 * reduce: extremes, normalised lengths and products along one axis of a tensor. Sums and softmax along an axis are written with
 * vectors (sum_axis, softmax_axis_forward in kernel.h).
 */
#ifndef BWI_KERNEL_REDUCE_H
#define BWI_KERNEL_REDUCE_H

#include "kernel/loops/shapes.h"

/* dot, sample by sample: y[a][b][c][d] = sum over k of x[a][k][b] z[c][k][d], both around their axis of the same extent. */
typedef struct bwi_dot {
    int64_t samples;
    bwi_around x, z; /* of one sample */
} bwi_dot;

typedef struct bwi_reduce_kernels {
    /* The difference of a sum: every element of a column gets dy factor. */
    void (*sum_backward)(const bwi_around *around, float factor, const float *dy, float *dx);

    /* The largest or the smallest of each column; NaN before all. Backward shares the difference evenly among those equal to y. */
    void (*extreme)(const bwi_around *around, bool largest, const float *x, float *y);
    void (*extreme_backward)(const bwi_around *around, const float *x, const float *y, const float *dy, float *dx);

    /* Columns of length one: y = x inverse, inverse = 1 / |x| but at most 1e7 (Keras's bound);
     * dx = inverse (dy - y sum(y dy)) where it is not at that bound, else inverse dy. In place (dx == dy) allowed. */
    void (*l2_normalize)(const bwi_around *around, const float *x, float *y);
    void (*l2_normalize_backward)(const bwi_around *around, const float *x, const float *dy, float *dx);

    void (*dot)(const bwi_dot *dot, const float *x, const float *z, float *y);
    /* dx and dz are overwritten; either may be NULL. */
    void (*dot_backward)(const bwi_dot *dot, const float *x, const float *z, const float *dy, float *dx, float *dz);

    /* gradient = sums, or gradient += sums. */
    void (*add_sums)(int64_t count, bool accumulate, const double *sums, float *gradient);
} bwi_reduce_kernels;

#endif
