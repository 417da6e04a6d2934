/* The area under a curve (ROC, precision-recall, gains), from weights of yes and no by buckets of thresholds, of all labels or of
 * each. */
#include "train/heads/metrics.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const bwi_argument bwi_auc_arguments[BWI_AUC_OPTIONS] = {
    [BWI_AUC_NUM_THRESHOLDS] = {"num_thresholds", NULL, BWI_INT, "200", 2, 100000, NULL},
    [BWI_AUC_CURVE] = {"curve", NULL, BWI_TEXT, "roc", 0, 0, "roc pr prgain ROC PR PRGAIN"},
    [BWI_AUC_SUMMATION_METHOD] = {"summation_method", NULL, BWI_TEXT, "interpolation", 0, 0, "interpolation minoring majoring"},
    [BWI_AUC_THRESHOLDS] = {"thresholds", NULL, BWI_FLOATS, "", 0, 1, NULL},
    [BWI_AUC_MULTI_LABEL] = {"multi_label", NULL, BWI_BOOL, "false", 0, 0, NULL},
    [BWI_AUC_NUM_LABELS] = {"num_labels", NULL, BWI_INT, "", 1, 1e9, NULL},
    [BWI_AUC_LABEL_WEIGHTS] = {"label_weights", NULL, BWI_FLOATS, "", 0, 1e30, NULL},
    [BWI_AUC_FROM_LOGITS] = {"from_logits", NULL, BWI_BOOL, "false", 0, 0, NULL}};

static int ascending(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

/* False as a builder. */
static bool set_labels(const bwi_head *head, const bwi_argument_value *values, bwi_confusion *c)
{
    bw_context *ctx = head->graph->ctx;
    const bwi_argument_value *number = &values[BWI_AUC_NUM_LABELS], *weights = &values[BWI_AUC_LABEL_WEIGHTS];
    const bwi_shape *output = &head->prediction->shape;
    int64_t width = output->ndim ? output->extent[output->ndim - 1] : 1;
    bool multi = values[BWI_AUC_MULTI_LABEL].flag;
    c->labels = multi ? (number->given ? number->integer : width) : 0;
    if (number->given && !multi) {
        bwi_fail_build(ctx, BW_INVALID_ARGUMENT, "auc: num_labels belongs to multi_label=true");
        return false;
    }
    if (weights->given && weights->count != width) {
        bwi_fail_build(ctx, BW_INVALID_ARGUMENT, "auc: label_weights: expected one for each of the output's %lld labels, got %d",
                       (long long)width, weights->count);
        return false;
    }
    for (int i = 0; weights->given && i < weights->count; i++) {
        c->label_weight[i] = (float)weights->numbers[i];
    }
    c->weighs_labels = weights->given && !multi; /* otherwise the areas are weighted, not the samples */
    return true;
}

/* Thresholds that are given have one below and one above them all, as those in equal steps do. */
bw_node *bwi_auc(const bwi_head *head, const bwi_argument_value *values)
{
    const char *curve = values[BWI_AUC_CURVE].text, *summation = values[BWI_AUC_SUMMATION_METHOD].text;
    const bwi_argument_value *thresholds = &values[BWI_AUC_THRESHOLDS];
    bwi_confusion_attributes a = {
        .confusion = {.buckets = values[BWI_AUC_NUM_THRESHOLDS].integer, .from_logits = values[BWI_AUC_FROM_LOGITS].flag}};
    a.curve = bwi_listed("roc ROC", curve, strlen(curve)) ? BWI_CURVE_ROC
              : bwi_listed("pr PR", curve, strlen(curve)) ? BWI_CURVE_PR
                                                          : BWI_CURVE_PRGAIN;
    a.summation = strcmp(summation, "minoring") == 0   ? BWI_SUMMATION_MINORING
                  : strcmp(summation, "majoring") == 0 ? BWI_SUMMATION_MAJORING
                                                       : BWI_SUMMATION_INTERPOLATION;
    for (int i = 0; thresholds->given && i < thresholds->count; i++) {
        a.confusion.threshold[i] = (float)thresholds->numbers[i];
        a.confusion.thresholds = i + 1;
        a.confusion.buckets = i + 3;
    }
    qsort(a.confusion.threshold, (size_t)a.confusion.thresholds, sizeof(float), ascending);
    if (!set_labels(head, values, &a.confusion)) {
        return NULL;
    }
    return bwi_metric_add(head, &bwi_op_confusion, head->prediction, BW_F32, "auc", &a, sizeof a);
}

/* The confusion matrix at one threshold: summed weights of positive (yes) and negative (no) targets, those above the threshold and
 * all of them. */
typedef struct confusion {
    double yes, no, all_yes, all_no;
} confusion;

static void curve_point(const confusion *c, bwi_curve curve, double *x, double *y)
{
    if (curve == BWI_CURVE_PRGAIN) {
        double scale = bwi_metric_ratio(c->all_yes, c->all_no);
        *x = c->yes == 0 ? 0 : 1 - scale * bwi_metric_ratio(c->all_yes - c->yes, c->yes);
        *x = *x < 0 ? 0 : *x;
        *y = c->yes == 0 ? 1 : 1 - scale * bwi_metric_ratio(c->no, c->yes);
        return;
    }
    double recall_here = bwi_metric_ratio(c->yes, c->all_yes);
    *x = curve == BWI_CURVE_ROC ? bwi_metric_ratio(c->no, c->all_no) : recall_here;
    *y = curve == BWI_CURVE_ROC ? recall_here : bwi_metric_ratio(c->yes, c->yes + c->no);
}

/* Between two thresholds, true positives are assumed to be linear in all positives p (Davis and Goadrich), so the area is slope
 * (dtp + intercept log(p_low / p_high)) / all positives. */
static double pr_area(const confusion *low, const confusion *high)
{
    double dtp = low->yes - high->yes, p_low = low->yes + low->no, p_high = high->yes + high->no, dp = p_low - p_high;
    double slope = bwi_metric_ratio(dtp, dp < 0 ? 0 : dp), intercept = high->yes - slope * p_high;
    double quotient = p_low > 0 && p_high > 0 ? p_low / p_high : 1;
    return bwi_metric_ratio(slope * (dtp + intercept * log(quotient)), low->all_yes);
}

static double area(const bwi_confusion_attributes *a, const confusion *low, const confusion *high)
{
    if (a->curve == BWI_CURVE_PR && a->summation == BWI_SUMMATION_INTERPOLATION) {
        return pr_area(low, high);
    }
    double x[2], y[2];
    curve_point(low, a->curve, &x[0], &y[0]);
    curve_point(high, a->curve, &x[1], &y[1]);
    double height = a->summation == BWI_SUMMATION_INTERPOLATION                 ? (y[0] + y[1]) / 2
                    : (a->summation == BWI_SUMMATION_MINORING) == (y[0] < y[1]) ? y[0]
                                                                                : y[1];
    return (x[0] - x[1]) * height;
}

static double area_of(const bwi_confusion_attributes *a, const double *sums)
{
    int64_t buckets = a->confusion.buckets;
    confusion high = {0}, low;
    for (int64_t i = 0; i < buckets; i++) {
        high.all_yes += sums[i];
        high.all_no += sums[buckets + i];
    }
    low = high;
    low.yes = sums[buckets - 1];
    low.no = sums[2 * buckets - 1];
    double total = 0;
    for (int64_t i = buckets - 2; i >= 0; i--) {
        high = low;
        low.yes += sums[i];
        low.no += sums[buckets + i];
        total += area(a, &low, &high);
    }
    return total;
}

double bwi_auc_value(const bw_node *node, const double *sums, int index)
{
    (void)index;
    const bwi_confusion_attributes *a = node->attributes;
    const bwi_confusion *c = &a->confusion;
    if (!c->labels) {
        return area_of(a, sums);
    }
    bool weighted = false; /* weights of zero are none: set_labels leaves them so */
    for (int64_t l = 0; l < c->labels && l < BWI_MOST_LABEL_WEIGHTS; l++) {
        weighted = weighted || c->label_weight[l] > 0;
    }
    double total = 0, weights = 0;
    for (int64_t l = 0; l < c->labels; l++) {
        double weight = weighted ? (double)c->label_weight[l] : 1;
        total += weight * area_of(a, sums + 2 * c->buckets * l);
        weights += weight;
    }
    return bwi_metric_ratio(total, weights);
}
