/*
 * Metrics from true and false positives and negatives: the counts themselves, precision and recall, at one threshold or at each of
 * several, and one rate at a given value of another, over many thresholds.
 */
#include "train/heads/metrics.h"

#include <math.h>

/* ---- At thresholds ---- */

const bwi_argument bwi_counts_arguments[BWI_COUNTS_OPTIONS] = {
    [BWI_COUNTS_THRESHOLDS] = {"thresholds", "threshold", BWI_FLOATS, "", 0, 1, NULL},
    [BWI_COUNTS_TOP_K] = {"top_k", NULL, BWI_INT, "", 1, 1e9, NULL},
    [BWI_COUNTS_CLASS_ID] = {"class_id", NULL, BWI_INT, "", 0, 1e9, NULL}};

static void choose_class(bwi_confusion *c, const bwi_argument_value *class_id)
{
    c->first_class = class_id->given ? class_id->integer : 0;
    c->last_class = class_id->given ? class_id->integer + 1 : 0;
}

/* Without thresholds the only one is 0.5, or with top_k one below everything that is among the largest. */
static bw_node *add_counts(const bwi_head *head, const char *name, const bwi_argument_value *thresholds,
                           const bwi_argument_value *top_k, const bwi_argument_value *class_id)
{
    bwi_confusion_attributes a = {.confusion = {.thresholds = 1, .threshold = {0.5F}}};
    if (top_k && top_k->given) {
        a.confusion.top_k = top_k->integer;
        a.confusion.threshold[0] = -1e10F;
    }
    if (class_id) {
        choose_class(&a.confusion, class_id);
    }
    for (int i = 0; thresholds->given && i < thresholds->count; i++) {
        a.confusion.threshold[i] = (float)thresholds->numbers[i];
        a.confusion.thresholds = i + 1;
    }
    return bwi_metric_add(head, &bwi_op_confusion, head->prediction, BW_F32, name, &a, sizeof a);
}

int bwi_counts_width(const bw_node *node)
{
    return (int)((const bwi_confusion_attributes *)node->attributes)->confusion.thresholds;
}

enum { TP, FP, FN, TN, COUNTS };

bw_node *bwi_precision(const bwi_head *head, const bwi_argument_value *values)
{
    return add_counts(head, "precision", &values[BWI_COUNTS_THRESHOLDS], &values[BWI_COUNTS_TOP_K], &values[BWI_COUNTS_CLASS_ID]);
}

double bwi_precision_value(const bw_node *node, const double *sums, int index)
{
    (void)node;
    sums += COUNTS * index;
    return bwi_metric_ratio(sums[TP], sums[TP] + sums[FP]);
}

bw_node *bwi_recall(const bwi_head *head, const bwi_argument_value *values)
{
    return add_counts(head, "recall", &values[BWI_COUNTS_THRESHOLDS], &values[BWI_COUNTS_TOP_K], &values[BWI_COUNTS_CLASS_ID]);
}

double bwi_recall_value(const bw_node *node, const double *sums, int index)
{
    (void)node;
    sums += COUNTS * index;
    return bwi_metric_ratio(sums[TP], sums[TP] + sums[FN]);
}

#define COUNT_METRIC(name, which)                                                   \
    bw_node *bwi_##name(const bwi_head *head, const bwi_argument_value *values)     \
    {                                                                               \
        return add_counts(head, #name, &values[BWI_COUNTS_THRESHOLDS], NULL, NULL); \
    }                                                                               \
    double bwi_##name##_value(const bw_node *node, const double *sums, int index)   \
    {                                                                               \
        (void)node;                                                                 \
        return sums[COUNTS * index + (which)];                                      \
    }

COUNT_METRIC(true_positives, TP)
COUNT_METRIC(false_positives, FP)
COUNT_METRIC(false_negatives, FN)
COUNT_METRIC(true_negatives, TN)

/* ---- One rate at a value of another ---- */

/* clang-format off */
#define AT_ARGUMENTS(name)                                                                   \
    {                                                                                        \
        [BWI_AT_VALUE] = {name, NULL, BWI_FLOAT, NULL, 0, 1, NULL},                          \
        [BWI_AT_NUM_THRESHOLDS] = {"num_thresholds", NULL, BWI_INT, "200", 1, 100000, NULL}, \
        [BWI_AT_CLASS_ID] = {"class_id", NULL, BWI_INT, "", 0, 1e9, NULL},                   \
    }
/* clang-format on */

const bwi_argument bwi_at_recall_arguments[BWI_AT_OPTIONS] = AT_ARGUMENTS("recall");
const bwi_argument bwi_at_precision_arguments[BWI_AT_OPTIONS] = AT_ARGUMENTS("precision");
const bwi_argument bwi_at_specificity_arguments[BWI_AT_OPTIONS] = AT_ARGUMENTS("specificity");
const bwi_argument bwi_at_sensitivity_arguments[BWI_AT_OPTIONS] = AT_ARGUMENTS("sensitivity");

static bw_node *add_at(const bwi_head *head, const char *name, const bwi_argument_value *values)
{
    int64_t count = values[BWI_AT_NUM_THRESHOLDS].integer;
    bwi_confusion_attributes a = {.at = values[BWI_AT_VALUE].number};
    if (count == 1) {
        a.confusion.thresholds = 1;
        a.confusion.threshold[0] = 0.5F;
    } else {
        a.confusion.buckets = count;
        a.confusion.strict = true;
    }
    choose_class(&a.confusion, &values[BWI_AT_CLASS_ID]);
    return bwi_metric_add(head, &bwi_op_confusion, head->prediction, BW_F32, name, &a, sizeof a);
}

static double precision_of(const double *counts)
{
    return bwi_metric_ratio(counts[TP], counts[TP] + counts[FP]);
}

static double recall_of(const double *counts)
{
    return bwi_metric_ratio(counts[TP], counts[TP] + counts[FN]);
}

static double specificity_of(const double *counts)
{
    return bwi_metric_ratio(counts[TN], counts[TN] + counts[FP]);
}

typedef double (*rate_of)(const double *counts);

/* Finds the largest rate among the thresholds at which the other one is at least what was asked for. What is above threshold i lies
 * in the buckets behind it. */
static double largest(const bw_node *node, const double *sums, rate_of rate, rate_of other)
{
    const bwi_confusion_attributes *a = node->attributes;
    if (!a->confusion.buckets) {
        return other(sums) >= a->at ? rate(sums) : 0;
    }
    int64_t n = a->confusion.buckets;
    double counts[COUNTS] = {0}, most = 0;
    for (int64_t i = 0; i < n; i++) {
        counts[FN] += sums[i];
        counts[TN] += sums[n + i];
    }
    for (int64_t i = n; i-- > 0;) {
        float reached = (float)other(counts), asked = (float)a->at; /* Keras compares float32 numbers */
        most = reached >= asked ? fmax(most, rate(counts)) : most;
        counts[TP] += sums[i];
        counts[FP] += sums[n + i];
        counts[FN] -= sums[i];
        counts[TN] -= sums[n + i];
    }
    return most;
}

#define AT_METRIC(name, rate, other)                                              \
    bw_node *bwi_##name(const bwi_head *head, const bwi_argument_value *values)   \
    {                                                                             \
        return add_at(head, #name, values);                                       \
    }                                                                             \
    double bwi_##name##_value(const bw_node *node, const double *sums, int index) \
    {                                                                             \
        (void)index;                                                              \
        return largest(node, sums, rate, other);                                  \
    }

AT_METRIC(precision_at_recall, precision_of, recall_of)
AT_METRIC(recall_at_precision, recall_of, precision_of)
AT_METRIC(sensitivity_at_specificity, recall_of, specificity_of)
AT_METRIC(specificity_at_sensitivity, specificity_of, recall_of)
