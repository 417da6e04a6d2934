/*
 * picture: what layers that augment do to one image of a sample: look at it through a linear map, or change its contrast or
 * brightness. Images are channels-last.
 */
#ifndef BWI_KERNEL_PICTURE_H
#define BWI_KERNEL_PICTURE_H

#include "base/base.h"

/* What stands beyond the border of abcd: a value; aaaa and dddd; dcba and dcba; abcd and abcd. */
typedef enum bwi_fill { BWI_FILL_CONSTANT, BWI_FILL_NEAREST, BWI_FILL_REFLECT, BWI_FILL_WRAP } bwi_fill;

/* y's pixel in row i and column j is what x has at column m[0] j + m[1] i + m[2] and row m[3] j + m[4] i + m[5]: the mean of four
 * pixels, weighted by nearness, or the nearest one. */
typedef struct bwi_looking {
    int64_t h, w, c;
    float m[6];
    bool nearest;
    bwi_fill fill;
    float value;
} bwi_looking;

typedef struct bwi_picture_kernels {
    void (*look)(const bwi_looking *how, const float *x, float *y);
    void (*look_backward)(const bwi_looking *how, const float *dy, float *dx); /* the transpose */
    /* y = (x - mean) factor + mean + offset, between low and high, where mean is that of the channel. */
    void (*contrast)(int64_t pixels, int64_t c, float factor, float offset, const float range[2], const float *x, float *y);
    void (*contrast_backward)(int64_t pixels, int64_t c, float factor, float offset, const float range[2], const float *x,
                              const float *dy, float *dx);
} bwi_picture_kernels;

#endif
