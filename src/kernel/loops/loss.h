/*
 * loss: formulas that compare a prediction x with a target y and give one number for each sample, and their gradients with respect
 * to x.
 */
#ifndef BWI_KERNEL_LOSS_H
#define BWI_KERNEL_LOSS_H

#include "kernel/loops/rows.h"

/* The formulas are in loss.inc, where p is the parameter. Those up to BWI_LOSS_BINARY are means over the numbers of a row. */
typedef enum bwi_loss_kind {
    BWI_LOSS_SQUARE,
    BWI_LOSS_ABSOLUTE,
    BWI_LOSS_PERCENTAGE,
    BWI_LOSS_LOGARITHMIC,
    BWI_LOSS_HUBER, /* p: delta */
    BWI_LOSS_LOG_COSH,
    BWI_LOSS_POISSON,
    BWI_LOSS_HINGE,
    BWI_LOSS_SQUARED_HINGE,
    BWI_LOSS_BINARY_LOGITS, /* p: label smoothing */
    BWI_LOSS_BINARY,        /* likewise; of probabilities */
    BWI_LOSS_DIVERGENCE,
    BWI_LOSS_CATEGORICAL, /* of probabilities; p: label smoothing */
    BWI_LOSS_SPARSE,      /* of probabilities, for class numbers */
    BWI_LOSS_CATEGORICAL_HINGE,
    BWI_LOSS_COSINE,
    BWI_LOSSES
} bwi_loss_kind;

/* Losses with several parameters. */
typedef enum bwi_graded_kind {
    BWI_GRADED_BINARY_FOCAL, /* w (1 - p)^gamma crossentropy, p = t x + (1 - t)(1 - x), w = 1 or alpha t + (1 - alpha)(1 - t) */
    BWI_GRADED_CATEGORICAL_FOCAL, /* -alpha sum t (1 - c)^gamma log c, c = x / sum x clipped */
    BWI_GRADED_TVERSKY,           /* 1 - I / (I + alpha sum (1 - x) y + beta sum x (1 - y) + epsilon), I = sum x y */
    BWI_GRADED_GENERALIZED        /* (1 - x[y]^gamma) / gamma, for class numbers (int32) */
} bwi_graded_kind;

typedef struct bwi_graded {
    bwi_graded_kind kind;
    float alpha, beta, gamma, epsilon;
    float smoothing; /* of labels */
    bool balanced;   /* of binary focal: with w */
    bool samples;    /* a sample is one row, whatever its axes */
} bwi_graded;

typedef struct bwi_loss_kernels {
    /* loss[s] = the mean over the rows of sample s of weight * f(x, y, p). Targets are floats, or for BWI_LOSS_SPARSE class numbers
     * (int32), which the caller has checked. */
    void (*forward)(bwi_loss_kind kind, float p, const bwi_rows *rows, const float *x, const void *target, const float *weight,
                    float *loss);
    /* dx = diff[s] times the gradient of loss[s]. */
    void (*backward)(bwi_loss_kind kind, float p, const bwi_rows *rows, const float *x, const void *target, const float *weight,
                     const float *diff, float *dx);

    /* The same for losses with several parameters. */
    void (*graded_forward)(const bwi_graded *g, const bwi_rows *rows, const float *x, const void *target, const float *weight,
                           float *loss);
    void (*graded_backward)(const bwi_graded *g, const bwi_rows *rows, const float *x, const void *target, const float *weight,
                            const float *diff, float *dx);
    /* Connectionist temporal classification of each sample: loss = -log of the probability that the output's rows (logits of
     * `classes` classes at `times` times; class 0 is the blank) spell the labels, of which the first ones count, as many as are not
     * 0. dx is the gradient. `scratch` has room for ctc_scratch doubles. Returns the first sample whose labels cannot be spelled,
     * or -1. */
    int64_t (*ctc)(int64_t samples, int64_t times, int64_t classes, int64_t length, const float *x, const int32_t *labels,
                   double *scratch, float *loss, float *dx);
    int64_t (*ctc_scratch)(int64_t times, int64_t classes, int64_t length);

    /* Returns the index of the first class number outside 0 ... classes - 1, or -1 if there is none. */
    int64_t (*bad_label)(int64_t count, int64_t classes, const int32_t *labels);
    /* Returns the index of the first number of the rows that is below `low` or above `high`, or -1 if there is none. Rows of
     * weight 0 may hold anything, such as the -1 that pads sequences; NaN is not looked for. */
    int64_t (*bad_number)(const bwi_rows *rows, float low, float high, const float *y, const float *weight);

    /* Categorical crossentropy from logits, built on the kernel `crossentropy`, which knows class numbers only. labels_of finds
     * where row r of the target is largest. The loss and the difference (softmax - one-hot, or NULL) of that label l then become
     * those of the whole target: with t = y (1 - smoothing) + smoothing / width and T = sum t, loss = T loss_l + sum t (x_l - x)
     * and difference = T difference_l + [l] T - t. This is exact for one-hot targets. */
    void (*labels_of)(int64_t rows, int64_t width, const float *y, int32_t *labels);
    void (*spread_target)(int64_t rows, int64_t width, float smoothing, const float *x, const float *y, const int32_t *labels,
                          float *loss, float *difference);
    /* loss[s] = the mean over the rows of sample s of weight * row_loss. */
    void (*mean_of_rows)(const bwi_rows *rows, const float *row_loss, const float *weight, float *loss);
    /* dx = difference * diff[s] * weight / rows of a sample. */
    void (*scale_rows)(const bwi_rows *rows, const float *difference, const float *weight, const float *diff, float *dx);

    /* mask = 1 where the label is another, else 0; kept = the label where it is another, else 0. */
    void (*ignored_mask)(int64_t count, int32_t ignored, const int32_t *labels, float *mask);
    void (*ignored_labels)(int64_t count, int32_t ignored, const int32_t *labels, int32_t *kept);
    /* factor[0] = samples / sums[1], 0 where that is 0; samples if sums is NULL. */
    void (*balance)(double samples, const double *sums, float *factor);
    /* y = x * factor[0]; both may be the same. */
    void (*scale_by)(int64_t count, const float *factor, const float *x, float *y);
} bwi_loss_kernels;

#endif
