/*
 * metric: kernels that add a tile's share to sums in double. Predictions x, targets y and weights are rows (rows.h).
 */
#ifndef BWI_KERNEL_METRIC_H
#define BWI_KERNEL_METRIC_H

#include "kernel/loops/rows.h"
#include "kernel/loops/shapes.h"

/* What accuracy compares; targets are class numbers (int32) for the sparse ones. */
typedef enum bwi_accuracy_kind {
    BWI_ACCURACY_SPARSE,
    BWI_ACCURACY_CATEGORICAL,
    BWI_ACCURACY_BINARY,
    BWI_ACCURACY_SPARSE_TOP,
    BWI_ACCURACY_TOP
} bwi_accuracy_kind;

typedef struct bwi_accuracy {
    bwi_accuracy_kind kind;
    float threshold; /* of binary accuracy */
    int64_t k;       /* for top-k accuracy: how many of the largest count as right */
} bwi_accuracy;

/* How predictions between 0 and 1 compare with binary targets (0: no, anything else: yes). Threshold i of n lies at i / (n - 1),
 * and bucket i holds the predictions above it up to the next. */
typedef struct bwi_confusion {
    int64_t buckets; /* 0: one threshold */
    float threshold;
    bool from_logits;
} bwi_confusion;

typedef struct bwi_metric_kernels {
    /* sums[0] += values, one for each sample. sums[1] += the number of samples or, where each sample has `weights` weights (0:
     * none), the means of those. */
    void (*mean)(int64_t samples, int64_t weights, const float *values, const float *weight, double *sums);
    /* sums[0] += the weights of the predictions that are right, sums[1] += all weights. A label that is not a class of the row
     * is wrong, and no failure. */
    void (*accuracy)(const bwi_accuracy *a, const bwi_rows *rows, const float *x, const void *target, const float *weight,
                     double *sums);
    /* Adds, by bucket, the weights of yes, then of no; or, at one threshold, those of true positives, false positives and false
     * negatives. */
    void (*confusion)(const bwi_confusion *c, const bwi_rows *rows, const float *x, const float *y, const float *weight,
                      double *sums);
    /* For each column of the row: adds w, w y, w y^2 and w (y - x)^2, `width` of each; then the count of all numbers. A sample is one
     * row. */
    void (*variation)(const bwi_rows *rows, const float *x, const float *y, const float *weight, double *sums);
    /* For each of the means, which are spread over each sample: adds x - mean, and behind all of these (x - mean)^2. */
    void (*moments)(const bwi_spread *spread, int64_t samples, const float *mean, const float *x, double *sums);
} bwi_metric_kernels;

#endif
