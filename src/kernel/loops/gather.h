/*
 * gather: how samples enter the device. Rows of host memory, chosen by number and in any order, are converted in type and layout
 * into a tensor; there is no other way from a dataset into a tile.
 *
 * Value k of a sample, counted in row-major order, is channel k mod c of pixel k div c. It goes to ((channel div block) * pixels +
 * pixel) * block + channel mod block.
 */
#ifndef BWI_KERNEL_GATHER_H
#define BWI_KERNEL_GATHER_H

#include "base/base.h"

/* Rows in host memory, not necessarily aligned. Row r begins at data + r * step, and its values follow the axes, the last of
 * which varies fastest. Neighbouring axes without a gap between them are joined into one, so a row without gaps has one axis. */
typedef struct bwi_host_rows {
    const unsigned char *data; /* NULL: samples are made or passed on, not stored */
    bw_dtype dtype;
    int axes; /* 1 or more */
    int64_t values, step;
    int64_t extent[BW_MAX_NDIM], stride[BW_MAX_NDIM];
    double scale; /* multiplies the values */
} bwi_host_rows;

/* Where gathered samples go: device memory, and the kernels that can write it. Samples lie one after another, each as
 * [ceil(c/block)][h][w][block] (see kernel.h), float32 or int32. A sample that is not an image has h = w = 1 and block = c. */
typedef struct bwi_destination {
    const struct bwi_gather_kernels *kernels;
    void *data;
    bw_dtype dtype; /* BW_F32 or BW_I32 */
    int64_t h, w, c, block;
    bool sequence; /* rows that are too long are cut off, those that are too short are padded with zeros */
} bwi_destination;

enum { BWI_GATHERED = -1, BWI_GATHER_MISFIT = -2 };

typedef struct bwi_gather_kernels {
    /* Gathers rows[0] to rows[n - 1]. Returns BWI_GATHERED; or the index of the first row with a value that int32 cannot hold; or
     * BWI_GATHER_MISFIT, if the destination does not have exactly the values of a row. */
    int64_t (*rows)(const bwi_host_rows *from, const int64_t *rows, int64_t n, const bwi_destination *to);
    /* Writes zeros, and a 1 as value class[i] of sample i. The caller has checked the classes. */
    void (*one_hot)(const int32_t *classes, int64_t n, const bwi_destination *to);
    /* x = (x - offset[k mod count]) * factor[k mod count] for value k of each of n float32 samples that have been gathered. */
    void (*affine)(const float *offset, const float *factor, int64_t count, int64_t n, const bwi_destination *to);
} bwi_gather_kernels;

/* The number of values of one sample in the destination, padding included. */
static inline int64_t bwi_destination_values(const bwi_destination *to)
{
    return ((to->c - 1) / to->block + 1) * to->block * to->h * to->w;
}

/* Moves the destination `samples` samples further on. */
static inline void bwi_destination_advance(bwi_destination *to, int64_t samples)
{
    to->data = (unsigned char *)to->data + samples * bwi_destination_values(to) * 4;
}

#endif
