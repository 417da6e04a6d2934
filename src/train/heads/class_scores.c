/* Metrics that compare classes: F-scores, and intersections over unions in Keras's forms. */
#include "train/heads/metrics.h"

#include <string.h>

/* Keras's backend.epsilon(), which keeps its quotients finite. */
static const double epsilon = 1e-7;

/* ---- F-scores ---- */

/* clang-format off */
#define AVERAGE {"average", NULL, BWI_TEXT, "none", 0, 0, "none micro macro weighted"}
#define THRESHOLD {"threshold", NULL, BWI_FLOAT, "", 1e-30, 1, NULL}
/* clang-format on */
const bwi_argument bwi_f1_arguments[2] = {AVERAGE, THRESHOLD};
const bwi_argument bwi_fbeta_arguments[3] = {AVERAGE, {"beta", NULL, BWI_FLOAT, "1", 1e-30, 1e30, NULL}, THRESHOLD};

static bw_node *add_score(const bwi_head *head, const char *name, const char *average, double beta,
                          const bwi_argument_value *threshold)
{
    bwi_agreement_attributes a = {.beta = beta, .threshold = threshold->given ? (float)threshold->number : 0};
    a.average = strcmp(average, "micro") == 0      ? BWI_AVERAGE_MICRO
                : strcmp(average, "macro") == 0    ? BWI_AVERAGE_MACRO
                : strcmp(average, "weighted") == 0 ? BWI_AVERAGE_WEIGHTED
                                                   : BWI_AVERAGE_NONE;
    return bwi_metric_add(head, &bwi_op_agreement, head->prediction, BW_F32, name, &a, sizeof a);
}

bw_node *bwi_f1_score(const bwi_head *head, const bwi_argument_value *values)
{
    return add_score(head, "f1_score", values[0].text, 1, &values[1]);
}

bw_node *bwi_fbeta_score(const bwi_head *head, const bwi_argument_value *values)
{
    return add_score(head, "fbeta_score", values[0].text, values[1].number, &values[2]);
}

int bwi_fbeta_width(const bw_node *node)
{
    const bwi_agreement_attributes *a = node->attributes;
    return a->average == BWI_AVERAGE_NONE ? (int)node->input[0]->shape.extent[0] : 1;
}

/* (1 + b^2) P R / (b^2 P + R) */
static double score_of(const double *counts, double beta)
{
    double precision = counts[0] / (counts[0] + counts[1] + epsilon), recall = counts[0] / (counts[0] + counts[2] + epsilon);
    return precision * recall / (beta * beta * precision + recall + epsilon) * (1 + beta * beta);
}

double bwi_fbeta_value(const bw_node *node, const double *sums, int index)
{
    const bwi_agreement_attributes *a = node->attributes;
    int64_t width = node->input[0]->shape.extent[0];
    double all[3] = {0}, scores = 0, weighted = 0, weights = epsilon;
    for (int64_t c = 0; c < width; c++) {
        double counts[3] = {sums[c], sums[width + c], sums[2 * width + c]}, score = score_of(counts, a->beta);
        if (a->average == BWI_AVERAGE_NONE && c == index) {
            return score;
        }
        for (int k = 0; k < 3; k++) {
            all[k] += counts[k];
        }
        scores += score / (double)width;
        weighted += score * (counts[0] + counts[2]);
        weights += counts[0] + counts[2];
    }
    return a->average == BWI_AVERAGE_MICRO ? score_of(all, a->beta) : a->average == BWI_AVERAGE_MACRO ? scores : weighted / weights;
}

/* ---- Intersections over unions ---- */

enum { MOST_CLASSES = 4096 }; /* their square is summed in every lane */

/* clang-format off */
#define CLASSES {"num_classes", NULL, BWI_INT, NULL, 1, MOST_CLASSES, NULL}
#define CLASS_IDS {"target_class_ids", NULL, BWI_INTS, NULL, 0, MOST_CLASSES, NULL}
#define IGNORE {"ignore_class", NULL, BWI_INT, "", INT32_MIN, INT32_MAX, NULL}
#define SPARSE_TARGET(standard) {"sparse_y_true", NULL, BWI_BOOL, standard, 0, 0, NULL}
#define SPARSE_PREDICTION(standard) {"sparse_y_pred", NULL, BWI_BOOL, standard, 0, 0, NULL}
#define AXIS {"axis", NULL, BWI_INT, "-1", -1, -1, NULL}
/* clang-format on */

const bwi_argument bwi_iou_arguments[BWI_IOU_OPTIONS] = {
    CLASSES, CLASS_IDS, IGNORE, SPARSE_TARGET("true"), SPARSE_PREDICTION("true"), AXIS};
const bwi_argument bwi_mean_iou_arguments[BWI_IOU_OPTIONS - 1] = {CLASSES, IGNORE, SPARSE_TARGET("true"), SPARSE_PREDICTION("true"),
                                                                  AXIS};
const bwi_argument bwi_binary_iou_arguments[2] = {{"target_class_ids", NULL, BWI_INTS, "", 0, 1, NULL},
                                                  {"threshold", NULL, BWI_FLOAT, "0.5", 0, 0, NULL}};
const bwi_argument bwi_one_hot_iou_arguments[5] = {CLASSES, CLASS_IDS, IGNORE, SPARSE_PREDICTION("false"), AXIS};
const bwi_argument bwi_one_hot_mean_iou_arguments[4] = {CLASSES, IGNORE, SPARSE_PREDICTION("false"), AXIS};

/* NULL stands for an argument that the form does not have. */
typedef struct match_options {
    const bwi_argument_value *classes, *class_ids, *ignore;
    bool sparse_target, sparse_prediction;
} match_options;

/* What is compared follows from whether the target and the prediction are class numbers. */
static bw_node *add_match(const bwi_head *head, const char *name, const match_options *o, bwi_match_attributes *a)
{
    bw_context *ctx = head->graph->ctx;
    if (o->classes) {
        a->match.classes = o->classes->integer;
        a->match.ignores = o->ignore->given;
        a->match.ignored = o->ignore->integer;
        a->match.kind = o->sparse_prediction ? BWI_MATCH_NUMBERS : o->sparse_target ? BWI_MATCH_LABELS : BWI_MATCH_ONE_HOT;
        if (o->sparse_prediction && !o->sparse_target) {
            return bwi_fail_build(ctx, BW_UNIMPLEMENTED,
                                  "%s: sparse_y_pred=true with targets that have a number for each class is not supported", name);
        }
    }
    for (int i = 0; o->class_ids && i < o->class_ids->count; i++) {
        a->class_ids[a->class_count++] = o->class_ids->integers[i];
        if (o->class_ids->integers[i] >= a->match.classes) {
            return bwi_fail_build(ctx, BW_INVALID_ARGUMENT, "%s: target_class_ids: expected classes below %lld, got %lld", name,
                                  (long long)a->match.classes, (long long)o->class_ids->integers[i]);
        }
    }
    bool labels = a->match.kind == BWI_MATCH_LABELS;
    return bwi_metric_add(head, &bwi_op_match, head->prediction, labels ? BW_I32 : BW_F32, name, a, sizeof *a);
}

bw_node *bwi_iou(const bwi_head *head, const bwi_argument_value *values)
{
    match_options o = {&values[0], &values[1], &values[2], values[3].flag, values[4].flag};
    return add_match(head, "iou", &o, &(bwi_match_attributes){0});
}

bw_node *bwi_mean_iou(const bwi_head *head, const bwi_argument_value *values)
{
    match_options o = {&values[0], NULL, &values[1], values[2].flag, values[3].flag};
    return add_match(head, "mean_iou", &o, &(bwi_match_attributes){0});
}

bw_node *bwi_one_hot_iou(const bwi_head *head, const bwi_argument_value *values)
{
    match_options o = {&values[0], &values[1], &values[2], false, values[3].flag};
    return add_match(head, "one_hot_iou", &o, &(bwi_match_attributes){0});
}

bw_node *bwi_one_hot_mean_iou(const bwi_head *head, const bwi_argument_value *values)
{
    match_options o = {&values[0], NULL, &values[1], false, values[2].flag};
    return add_match(head, "one_hot_mean_iou", &o, &(bwi_match_attributes){0});
}

bw_node *bwi_binary_iou(const bwi_head *head, const bwi_argument_value *values)
{
    bwi_match_attributes a = {.match = {.kind = BWI_MATCH_BINARY, .classes = 2, .threshold = (float)values[1].number}};
    match_options o = {.class_ids = values[0].given ? &values[0] : NULL};
    return add_match(head, "binary_iou", &o, &a);
}

/* Of a class: the samples both predicted and expected to be of it, over those that are either. A class without any of these is left
 * out of the mean. */
double bwi_match_value(const bw_node *node, const double *sums, int index)
{
    (void)index;
    const bwi_match_attributes *a = node->attributes;
    int64_t n = a->match.classes, count = a->class_count ? a->class_count : n;
    double total = 0, valid = 0;
    for (int64_t k = 0; k < count; k++) {
        int64_t c = a->class_count ? a->class_ids[k] : k;
        double either = -sums[c * n + c];
        for (int64_t i = 0; i < n; i++) {
            either += sums[c * n + i] + sums[i * n + c];
        }
        total += either > 1e-9 ? sums[c * n + c] / (either + epsilon) : 0;
        valid += either > 1e-9;
    }
    return total / (valid + epsilon);
}
