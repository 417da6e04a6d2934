/*
 * packing: what all tables of kernels agree on about the storage of dense weights, of the masks of relu_maxpool and of
 * conv_pool's scratch memory.
 */
#ifndef BWI_PACKING_H
#define BWI_PACKING_H

#include "kernel/internal.h"

/* Up to this number of outputs, dense weights are stored [out][in]; beyond, in panels [ceil(out/PANEL)][in][PANEL]. */
#define BWI_DENSE_NARROW 16
#define BWI_DENSE_PANEL 32
/* Up to this number of inputs, layers in panels have special passes; they have no ranges and blocks. */
#define BWI_DENSE_FEW 4
/* Extents of a tile's x are rounded up to it where the weights' gradient is made by blocks. */
#define BWI_DENSE_ROOM 16

/* relu_maxpool keeps four bits for each element of its output; channels count in groups of this size. */
#define BWI_MASK_CHANNELS 16

/* conv_pool: pooled columns taken at a time in the weights' gradient, the most taps in a row, floats between rows of patches,
 * and floats behind a sample's planes that may be read. */
#define BWI_CONV_POOL_CHUNK 64
#define BWI_CONV_POOL_WIDEST 5
#define BWI_CONV_POOL_PITCH ((2 * BWI_CONV_POOL_CHUNK + 8) * 4)
#define BWI_CONV_POOL_SLACK 16

#define BWI_THIN_SLACK 64 /* floats behind rows in quarters that may be read */

/* thin: rows that pieces of 4x4 outputs reach, and every fourth element of one. */
static inline int64_t bwi_thin_rows(const bwi_conv_pool *k)
{
    return (k->y.h + 1) / 2 * 4 + 2;
}

static inline int64_t bwi_thin_quarter(const bwi_conv_pool *k)
{
    int64_t pieces = (k->y.w + 1) / 2 + 1, image = (k->pad_left + k->x.w + 3) / 4;
    return ((pieces > image ? pieces : image) + 3) / 4 * 4;
}

static inline int64_t bwi_conv_pool_filters(const bwi_conv_pool *k)
{
    return (k->y.c + BWI_MASK_CHANNELS - 1) / BWI_MASK_CHANNELS * BWI_MASK_CHANNELS;
}

/* conv_pool.c: what bwi_packing_host has of it. */
int64_t bwi_conv_pool_floats(const bwi_conv_pool *k);
extern const bwi_conv_pool_storage bwi_conv_pool_storage_host, bwi_thin_storage_host, bwi_winograd_storage_host;
void bwi_conv_pool_arrange(const bwi_conv_pool *k, const float *weights, const float *bias, float *arranged);
void bwi_conv_pool_restore(const bwi_conv_pool *k, const float *arranged, float *weights, float *bias);

/* Of the reference (conv_pool.c). */
void bwi_reference_conv_pool_forward(const bwi_conv_pool *k, const float *x, const float *weights, float *y, void *masks,
                                     void *scratch);
void bwi_reference_conv_pool_backward_weights(const bwi_conv_pool *k, const float *x, const float *dy, const void *masks,
                                              float *gradient, void *scratch);
void bwi_reference_conv_pool_backward_data(const bwi_conv_pool *k, const float *dy, const void *masks, const float *weights,
                                           float *dx);

/* The same convolution without transforms. */
void bwi_reference_thin_weights(const bwi_conv_pool *k, const float *arranged, float *to);

/* winograd: pieces of 4x4 outputs taken at a time. */
#define BWI_WINOGRAD_BLOCK 16 /* of the images it reads */
#define BWI_WINOGRAD_PIECES 48
#define BWI_WINOGRAD_POINTS 36

/* Floats from one piece's transforms, [channels/16][36][16], to the next: apart from a power of two. */
static inline int64_t bwi_winograd_piece(int64_t channels)
{
    return BWI_WINOGRAD_POINTS * channels + 16;
}

/* Of the reference (conv_pool.c): the same convolution without transforms. */
void bwi_reference_winograd_weights(const bwi_conv_pool *k, const float *weights, const float *bias, float *to);
void bwi_reference_winograd_backward_weights(const bwi_conv_pool *k, const float *x, const float *dy, const void *masks, float *dw,
                                             float *db, void *scratch);
void bwi_reference_winograd_backward_data(const bwi_conv_pool *k, const float *dy, const void *masks, const float *weights,
                                          float *dx, void *scratch);

#endif
