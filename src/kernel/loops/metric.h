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

enum { BWI_MOST_THRESHOLDS = 8, BWI_MOST_LABEL_WEIGHTS = 8 };

/* How predictions between 0 and 1 compare with binary targets (0: no, anything else: yes): at each threshold of a list, or by
 * buckets of n thresholds, where threshold i lies at i / (n - 1), or is number i - 1 of the list if there is one. Bucket i holds
 * the predictions above threshold i up to the next. */
typedef struct bwi_confusion {
    int64_t buckets; /* n; 0: the thresholds of the list */
    bool strict;     /* of buckets: only predictions above 0 are above threshold 0, so that bucket i is that of threshold i - 1 */
    int64_t thresholds;
    float threshold[BWI_MOST_THRESHOLDS]; /* ascending if there are buckets */
    int64_t labels;                       /* each column of a row has its own sums; 0: all share them */
    int64_t top_k;                        /* only this many of the largest of a row can be positive; 0: all */
    int64_t first_class, last_class;      /* the columns that count; last_class 0: all */
    bool from_logits;
    bool weighs_labels;
    float label_weight[BWI_MOST_LABEL_WEIGHTS]; /* of each column */
} bwi_confusion;

/* The row's prediction of a class against its target, for intersections over unions. Class numbers outside 0 ... classes - 1 and
 * those of `ignored` do not count. */
typedef enum bwi_match_kind {
    BWI_MATCH_LABELS,  /* the largest of a row against a class number (int32) */
    BWI_MATCH_ONE_HOT, /* the largest of a row against the largest of the target's */
    BWI_MATCH_NUMBERS, /* every number, cut to a whole one, against its target, likewise */
    BWI_MATCH_BINARY   /* every number is class 1 from the threshold on, else 0; the target is cut to a whole number */
} bwi_match_kind;

typedef struct bwi_match {
    bwi_match_kind kind;
    int64_t classes;
    float threshold;
    bool ignores;
    int64_t ignored;
} bwi_match;

typedef enum bwi_correlation_kind { BWI_CORRELATION_PEARSON, BWI_CORRELATION_CONCORDANCE } bwi_correlation_kind;

typedef struct bwi_metric_kernels {
    /* sums[0] += values, one for each sample. sums[1] += the number of samples or, where each sample has `weights` weights (0:
     * none), the means of those. */
    void (*mean)(int64_t samples, int64_t weights, const float *values, const float *weight, double *sums);
    /* sums[0] += the weights of the predictions that are right, sums[1] += all weights. A label that is not a class of the row
     * is wrong, and no failure. */
    void (*accuracy)(const bwi_accuracy *a, const bwi_rows *rows, const float *x, const void *target, const float *weight,
                     double *sums);
    /* Adds, by bucket, the weights of yes, then of no, for each label; or, for each threshold, those of true positives, false
     * positives, false negatives and true negatives. */
    void (*confusion)(const bwi_confusion *c, const bwi_rows *rows, const float *x, const float *y, const float *weight,
                      double *sums);
    /* For each column of the row: adds w, w y, w y^2 and w (y - x)^2, `width` of each; then the count of all numbers. A sample is
     * one row. */
    void (*variation)(const bwi_rows *rows, const float *x, const float *y, const float *weight, double *sums);
    /* For each column: adds w p y, w p (1 - y) and w (1 - p) y, `width` of each, where p is 1 for a prediction above the threshold,
     * or without one (0) for the largest of its row unless that is 0, and 0 for the others. */
    void (*agreement)(float threshold, const bwi_rows *rows, const float *x, const float *y, const float *weight, double *sums);
    /* Adds the weight, cut to a whole number as Keras does, to the sum [target class][predicted class]. */
    void (*match)(const bwi_match *o, const bwi_rows *rows, const float *x, const void *target, const float *weight, double *sums);
    /* sums[0] += the rows' correlations times their weights, sums[1] += all weights. */
    void (*correlation)(bwi_correlation_kind kind, const bwi_rows *rows, const float *x, const float *y, const float *weight,
                        double *sums);
    /* For each of the means, which are spread over each sample: adds x - mean, and behind all of these (x - mean)^2. */
    void (*moments)(const bwi_spread *spread, int64_t samples, const float *mean, const float *x, double *sums);
} bwi_metric_kernels;

#endif
