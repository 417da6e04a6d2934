/*
 * The shapes that kernels are given: descriptions that an op computes from its node and passes with the addresses. All counts are
 * of floats.
 */
#ifndef BWI_KERNEL_SHAPES_H
#define BWI_KERNEL_SHAPES_H

#include "base/base.h"

/* Images of n samples, [n][ceil(c/block)][h][w][block]: see kernel.h. */
typedef struct bwi_image {
    int64_t n, h, w, c;
    int64_t block;
} bwi_image;

static inline int64_t bwi_image_blocks(const bwi_image *i)
{
    return (i->c + i->block - 1) / i->block;
}
static inline int64_t bwi_image_floats(const bwi_image *i)
{
    return i->n * bwi_image_blocks(i) * i->block * i->h * i->w;
}

/* A tensor as [outer][extent][inner] around an axis. A column runs along the axis, so its elements are `inner` apart. */
typedef struct bwi_around {
    int64_t outer, extent, inner;
} bwi_around;

/* How a smaller array is repeated over a larger shape. The large one has rows of `width` elements; a row begins at bwi_spread_at
 * in the small array, and advances in it by `step` (0 or 1). Axes are listed innermost first, and neighbouring axes of one kind
 * are joined. */
typedef struct bwi_spread {
    int ndim;
    int64_t extent[BW_MAX_NDIM], stride[BW_MAX_NDIM];
    int64_t rows, width, step;
    int64_t count; /* of the small array */
} bwi_spread;

static inline int64_t bwi_spread_at(const bwi_spread *spread, int64_t row)
{
    int64_t at = 0;
    for (int i = 1; i < spread->ndim; i++) {
        at += row % spread->extent[i] * spread->stride[i];
        row /= spread->extent[i];
    }
    return at;
}

#endif
