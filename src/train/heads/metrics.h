/*
 * metrics: what the files that compute metrics share: how a node is added, and the parts of the table's rows that lie in other
 * files. A value gets the sums over an epoch; `index` chooses one of a metric's numbers if it has several (thresholds, classes).
 */
#ifndef BWI_TRAIN_METRICS_H
#define BWI_TRAIN_METRICS_H

#include "train/internal.h"

/* Divides as Keras's divide_no_nan does. */
static inline double bwi_metric_ratio(double a, double b)
{
    return b == 0 ? 0 : a / b;
}

bw_node *bwi_metric_add(const bwi_head *head, const bwi_op *op, bw_node *prediction, bw_dtype target, const char *name,
                        const void *attributes, size_t bytes);

/* A function that builds a metric's node, and one that computes its value. */
#define BWI_METRIC(name)                                                         \
    bw_node *bwi_##name(const bwi_head *head, const bwi_argument_value *values); \
    double bwi_##name##_value(const bw_node *node, const double *sums, int index)

/* ---- Counts at thresholds (counts.c) ---- */

enum { BWI_COUNTS_THRESHOLDS, BWI_COUNTS_TOP_K, BWI_COUNTS_CLASS_ID, BWI_COUNTS_OPTIONS };
extern const bwi_argument bwi_counts_arguments[BWI_COUNTS_OPTIONS];
int bwi_counts_width(const bw_node *node);
BWI_METRIC(precision);
BWI_METRIC(recall);
BWI_METRIC(true_positives);
BWI_METRIC(true_negatives);
BWI_METRIC(false_positives);
BWI_METRIC(false_negatives);

enum { BWI_AT_VALUE, BWI_AT_NUM_THRESHOLDS, BWI_AT_CLASS_ID, BWI_AT_OPTIONS };
extern const bwi_argument bwi_at_recall_arguments[BWI_AT_OPTIONS], bwi_at_precision_arguments[BWI_AT_OPTIONS],
    bwi_at_specificity_arguments[BWI_AT_OPTIONS], bwi_at_sensitivity_arguments[BWI_AT_OPTIONS];
BWI_METRIC(precision_at_recall);
BWI_METRIC(recall_at_precision);
BWI_METRIC(sensitivity_at_specificity);
BWI_METRIC(specificity_at_sensitivity);

/* ---- The area under a curve (auc.c) ---- */

enum {
    BWI_AUC_NUM_THRESHOLDS,
    BWI_AUC_CURVE,
    BWI_AUC_SUMMATION_METHOD,
    BWI_AUC_THRESHOLDS,
    BWI_AUC_MULTI_LABEL,
    BWI_AUC_NUM_LABELS,
    BWI_AUC_LABEL_WEIGHTS,
    BWI_AUC_FROM_LOGITS,
    BWI_AUC_OPTIONS
};
extern const bwi_argument bwi_auc_arguments[BWI_AUC_OPTIONS];
BWI_METRIC(auc);

/* ---- F-scores and intersections over unions (class_scores.c) ---- */

extern const bwi_argument bwi_f1_arguments[2], bwi_fbeta_arguments[3];
int bwi_fbeta_width(const bw_node *node);
bw_node *bwi_f1_score(const bwi_head *head, const bwi_argument_value *values);
bw_node *bwi_fbeta_score(const bwi_head *head, const bwi_argument_value *values);
double bwi_fbeta_value(const bw_node *node, const double *sums, int index);

enum { BWI_IOU_OPTIONS = 6 };
extern const bwi_argument bwi_iou_arguments[BWI_IOU_OPTIONS], bwi_mean_iou_arguments[BWI_IOU_OPTIONS - 1],
    bwi_binary_iou_arguments[2], bwi_one_hot_iou_arguments[5], bwi_one_hot_mean_iou_arguments[4];
bw_node *bwi_iou(const bwi_head *head, const bwi_argument_value *values);
bw_node *bwi_mean_iou(const bwi_head *head, const bwi_argument_value *values);
bw_node *bwi_binary_iou(const bwi_head *head, const bwi_argument_value *values);
bw_node *bwi_one_hot_iou(const bwi_head *head, const bwi_argument_value *values);
bw_node *bwi_one_hot_mean_iou(const bwi_head *head, const bwi_argument_value *values);
double bwi_match_value(const bw_node *node, const double *sums, int index);

#endif
