/*
 * packing: constants and sizes on which all tables of kernels for the host agree: the storage of dense weights, relu_maxpool's
 * masks, and the scratch memory of conv_pool, thin and winograd.
 */
#ifndef BWI_PACKING_H
#define BWI_PACKING_H

#include "kernel/internal.h"

/* Up to this number of outputs, dense weights are stored [out][in]; beyond, in panels [ceil(out/PANEL)][in][PANEL]. */
#define BWI_DENSE_NARROW 16
#define BWI_DENSE_PANEL 32
/* Up to this number of inputs, layers stored in panels have passes of their own, which are not split into parts and blocks. */
#define BWI_DENSE_FEW 4
/* Where the weights' gradient is computed by blocks, the extents of the staged x are rounded up to this. */
#define BWI_DENSE_STAGED 16

/* relu_maxpool keeps four bits for each element of its output; channels count in groups of this size. */
#define BWI_MASK_CHANNELS 16

/* conv_pool: how many pooled columns the weights' gradient takes at a time; the most taps in a row; the floats from one row of
 * patches to the next; and the floats behind a sample's planes that may be read. */
#define BWI_CONV_POOL_CHUNK 64
#define BWI_CONV_POOL_WIDEST 5
#define BWI_CONV_POOL_PITCH ((2 * BWI_CONV_POOL_CHUNK + 8) * 4)
#define BWI_CONV_POOL_SLACK 16

#define BWI_THIN_SLACK 64 /* floats behind rows in quarters that may be read */

/* thin: the number of rows that patches of 4x4 outputs reach, and the length of a quarter: every fourth element of a row. */
static inline int64_t bwi_thin_rows(const bwi_conv_pool *k)
{
    return (k->y.h + 1) / 2 * 4 + 2;
}

static inline int64_t bwi_thin_quarter(const bwi_conv_pool *k)
{
    int64_t patches = (k->y.w + 1) / 2 + 1, image = (k->pad_left + k->x.w + 3) / 4;
    return ((patches > image ? patches : image) + 3) / 4 * 4;
}

static inline int64_t bwi_conv_pool_filters(const bwi_conv_pool *k)
{
    return (k->y.c + BWI_MASK_CHANNELS - 1) / BWI_MASK_CHANNELS * BWI_MASK_CHANNELS;
}

/* The parts of bwi_packing_host that conv_pool.c defines. */
int64_t bwi_conv_pool_floats(const bwi_conv_pool *k);
extern const bwi_conv_pool_storage bwi_conv_pool_storage_host, bwi_thin_storage_host, bwi_winograd_storage_host;
void bwi_conv_pool_arrange(const bwi_conv_pool *k, const float *weights, const float *bias, float *arranged);
void bwi_conv_pool_restore(const bwi_conv_pool *k, const float *arranged, float *weights, float *bias);

/* The reference kernels for bwi_conv_pool (conv_pool.c). */
void bwi_reference_conv_pool_forward(const bwi_conv_pool *k, const float *x, const float *weights, float *y, void *masks,
                                     void *scratch);
void bwi_reference_conv_pool_backward_weights(const bwi_conv_pool *k, const float *x, const float *dy, const void *masks,
                                              float *gradient, void *scratch);
void bwi_reference_conv_pool_backward_data(const bwi_conv_pool *k, const float *dy, const void *masks, const float *weights,
                                           float *dx);

/* The references of thin and winograd compute the same convolution without transforms. */
void bwi_reference_thin_weights(const bwi_conv_pool *k, const float *arranged, float *to);

/* winograd: the channel block of the images it reads, the patches of 4x4 outputs it takes at a time, and the points of a
 * transform. */
#define BWI_WINOGRAD_BLOCK 16 /* of the images it reads */
#define BWI_WINOGRAD_PATCHES 48
#define BWI_WINOGRAD_POINTS 36

/* Floats from one patch's transforms, [channels/16][36][16], to the next. The 16 more keep it away from multiples of large
 * powers of two, at which patches would compete for the same cache lines. */
static inline int64_t bwi_winograd_patch(int64_t channels)
{
    return BWI_WINOGRAD_POINTS * channels + 16;
}

/* References (conv_pool.c). */
void bwi_reference_winograd_weights(const bwi_conv_pool *k, const float *weights, const float *bias, float *to);
void bwi_reference_winograd_backward_weights(const bwi_conv_pool *k, const float *x, const float *dy, const void *masks, float *dw,
                                             float *db, void *scratch);
void bwi_reference_winograd_backward_data(const bwi_conv_pool *k, const float *dy, const void *masks, const float *weights,
                                          float *dx, void *scratch);

#endif
