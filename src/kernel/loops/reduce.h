/*
 * reduce: extremes, normalisation to length one and products along one axis of a tensor. Sums and softmax along an axis are vector
 * kernels (sum_axis, softmax_axis_forward in kernel.h).
 */
#ifndef BWI_KERNEL_REDUCE_H
#define BWI_KERNEL_REDUCE_H

#include "kernel/loops/shapes.h"

/* dot, sample by sample: y[a][b][c][d] = sum over k of x[a][k][b] z[c][k][d]. The two axes have the same extent. */
typedef struct bwi_dot {
    int64_t samples;
    bwi_around x, z; /* of one sample */
} bwi_dot;

typedef struct bwi_reduce_kernels {
    /* Backward of a sum: every element of a column gets dy factor. */
    void (*sum_backward)(const bwi_around *around, float factor, const float *dy, float *dx);

    /* The largest or the smallest of each column, or NaN if there is one. Backward divides the difference equally among the
     * elements that equal y. */
    void (*extreme)(const bwi_around *around, bool largest, const float *x, float *y);
    void (*extreme_backward)(const bwi_around *around, const float *x, const float *y, const float *dy, float *dx);

    /* Scales columns to length one: y = x inverse, inverse = 1 / |x| but at most 1e7 (Keras's bound); dx = inverse (dy - y sum(y
     * dy)), or inverse dy where the bound applies. dx may be written over dy. */
    void (*l2_normalize)(const bwi_around *around, const float *x, float *y);
    void (*l2_normalize_backward)(const bwi_around *around, const float *x, const float *dy, float *dx);

    /* Keras's sparsemax of columns: y = max(x - tau, 0). With x sorted downwards as s and sums c[i] = s[0] + ... + s[i], the first
     * k elements for which s[i] > (c[i] - 1) / (i + 1) are the support, and tau = (c[0] + ... + c[k - 1] - 1) / k. (In the paper,
     * tau is (c[k - 1] - 1) / k, so Keras's rows need not add up to one.) */
    void (*sparsemax)(const bwi_around *around, const float *x, float *y);
    void (*sparsemax_backward)(const bwi_around *around, const float *x, const float *dy, float *dx);

    void (*dot)(const bwi_dot *dot, const float *x, const float *z, float *y);
    /* Overwrites dx and dz; either may be NULL. */
    void (*dot_backward)(const bwi_dot *dot, const float *x, const float *z, const float *dy, float *dx, float *dz);

    /* gradient = sums, or gradient += sums. */
    void (*add_sums)(int64_t count, bool accumulate, const double *sums, float *gradient);
} bwi_reduce_kernels;

#endif
