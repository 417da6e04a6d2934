/*
 * picture: what layers that augment do to one image of a sample: look at it through a linear map, or change its contrast,
 * brightness or colours; and resampling along one axis. Images are channels-last.
 */
#ifndef BWI_KERNEL_PICTURE_H
#define BWI_KERNEL_PICTURE_H

#include "kernel/loops/shapes.h"

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

/* z is x as a share of the range, from 0 to 255; y is brought back from it. */
typedef enum bwi_color_kind {
    BWI_COLOR_SAME,
    BWI_COLOR_GREY, /* x + first (0.2989 red + 0.587 green + 0.114 blue - x), held within the range if `clips`; one channel stays */
    BWI_COLOR_INVERT,   /* range[1] - x */
    BWI_COLOR_SOLARIZE, /* v = z + first between 0 and 255; v < second: v, else 255 - v */
    BWI_COLOR_POSTERIZE /* z as a whole number, of whose 8 bits the first whole number of `first` are kept; nothing flows back */
} bwi_color_kind;

typedef struct bwi_color {
    bwi_color_kind kind;
    float first, second, range[2];
    bool clips;
} bwi_color;

/* How a value between places is found: that of the nearest place; or the sum of values weighted by f(distance), where f is 1 - |d|,
 * Keys' cubic with a = -1/2, or sinc(d) sinc(d / r) with a radius r of 3 or 5. Weights are divided by their sum, so that places
 * beyond the ends do not count. */
typedef enum bwi_interpolation {
    BWI_INTERPOLATE_NEAREST,
    BWI_INTERPOLATE_LINEAR,
    BWI_INTERPOLATE_CUBIC,
    BWI_INTERPOLATE_LANCZOS3,
    BWI_INTERPOLATE_LANCZOS5
} bwi_interpolation;

/* An axis gets `to` places. `smooth`: where there are fewer than before, f is stretched, so that every old place counts. */
typedef struct bwi_resampling {
    bwi_around around;
    int64_t to;
    bwi_interpolation kind;
    bool smooth;
} bwi_resampling;

typedef struct bwi_picture_kernels {
    void (*look)(const bwi_looking *how, const float *x, float *y);
    void (*look_backward)(const bwi_looking *how, const float *dy, float *dx); /* the transpose */
    /* y = (x - mean) factor + mean + offset, between low and high, where mean is that of the channel. */
    void (*contrast)(int64_t pixels, int64_t c, float factor, float offset, const float range[2], const float *x, float *y);
    void (*contrast_backward)(int64_t pixels, int64_t c, float factor, float offset, const float range[2], const float *x,
                              const float *dy, float *dx);
    void (*recolor)(const bwi_color *color, int64_t pixels, int64_t c, const float *x, float *y);
    void (*recolor_backward)(const bwi_color *color, int64_t pixels, int64_t c, const float *x, const float *dy, float *dx);
    void (*resample)(const bwi_resampling *r, const float *x, float *y);
    void (*resample_backward)(const bwi_resampling *r, const float *dy, float *dx); /* the transpose */
} bwi_picture_kernels;

#endif
