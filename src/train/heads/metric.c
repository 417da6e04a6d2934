/*
 * The metrics, by Keras's names. Each is a node that sums over the batch, and a formula that turns the sums into a number, so that
 * batches and ranks can be added before the formula is applied. Any loss can be a metric, too.
 */
#include "train/internal.h"

#include <math.h>
#include <string.h>

/* Divides as Keras's divide_no_nan does. */
static double ratio(double a, double b)
{
    return b == 0 ? 0 : a / b;
}

double bwi_metric_mean(const bw_node *node, const double *sums)
{
    (void)node;
    return ratio(sums[0], sums[1]);
}

static bw_node *add(const bwi_head *head, const bwi_op *op, bw_node *prediction, bw_dtype target, const char *name,
                    const void *attributes, size_t bytes)
{
    bw_node *inputs[3] = {prediction, bwi_head_target(head, target), head->weight};
    return bwi_graph_add(head->graph, op, name, attributes, bytes, inputs, head->weight ? 3 : 2, NULL, 0);
}

bw_node *bwi_metric_of_loss(const bwi_loss_row *row, const bwi_head *head, const bwi_argument_value *values)
{
    bwi_head own = *head;
    bw_node *mask = NULL;
    if (!bwi_head_ignore(row, values, &own, &mask)) {
        return NULL;
    }
    bw_node *inputs[2] = {row->build(row, &own, values), own.weight};
    return bwi_graph_add(own.graph, &bwi_op_mean, "metric", NULL, 0, inputs, own.weight ? 2 : 1, NULL, 0);
}

static bw_node *of_loss(const char *name, const bwi_head *head, const bwi_argument_value *values)
{
    return bwi_metric_of_loss(bwi_loss_row_find(name, strlen(name)), head, values);
}

/* ---- Accuracies: after a final softmax its logits serve as well, since they have the same order ---- */

static bw_node *add_accuracy(const bwi_head *head, const char *name, const bwi_accuracy_attributes *a)
{
    bool labels = a->kind == BWI_ACCURACY_SPARSE || a->kind == BWI_ACCURACY_SPARSE_TOP;
    bw_node *logits = a->kind == BWI_ACCURACY_BINARY ? NULL : bwi_logits_of(head->prediction);
    return add(head, &bwi_op_accuracy, logits ? logits : head->prediction, labels ? BW_I32 : BW_F32, name, a, sizeof *a);
}

/* As in Keras, the shapes decide which accuracy the word means. */
static bw_node *accuracy(const bwi_head *head, const bwi_argument_value *values)
{
    (void)values;
    const bwi_shape *output = &head->prediction->shape, *target = &head->target->shape;
    int64_t width = output->ndim ? output->extent[output->ndim - 1] : 1,
            given = target->ndim ? target->extent[target->ndim - 1] : 1;
    bool sparse = target->ndim < output->ndim || given == 1;
    bwi_accuracy_attributes a = {.kind = width == 1 ? BWI_ACCURACY_BINARY
                                         : sparse   ? BWI_ACCURACY_SPARSE
                                                    : BWI_ACCURACY_CATEGORICAL,
                                 .threshold = 0.5F};
    return add_accuracy(head, "accuracy", &a);
}

static bw_node *binary_accuracy(const bwi_head *head, const bwi_argument_value *values)
{
    bwi_accuracy_attributes a = {.kind = BWI_ACCURACY_BINARY, .threshold = (float)values[0].number};
    return add_accuracy(head, "binary_accuracy", &a);
}

static bw_node *categorical_accuracy(const bwi_head *head, const bwi_argument_value *values)
{
    (void)values;
    return add_accuracy(head, "categorical_accuracy", &(bwi_accuracy_attributes){.kind = BWI_ACCURACY_CATEGORICAL});
}

static bw_node *sparse_categorical_accuracy(const bwi_head *head, const bwi_argument_value *values)
{
    (void)values;
    return add_accuracy(head, "sparse_categorical_accuracy", &(bwi_accuracy_attributes){.kind = BWI_ACCURACY_SPARSE});
}

static bw_node *top_k(const bwi_head *head, const bwi_argument_value *values)
{
    bwi_accuracy_attributes a = {.kind = BWI_ACCURACY_TOP, .k = values[0].integer};
    return add_accuracy(head, "top_k_categorical_accuracy", &a);
}

static bw_node *sparse_top_k(const bwi_head *head, const bwi_argument_value *values)
{
    bwi_accuracy_attributes a = {.kind = BWI_ACCURACY_SPARSE_TOP, .k = values[0].integer};
    return add_accuracy(head, "sparse_top_k_categorical_accuracy", &a);
}

/* ---- Precision and recall, from sums of true positives, false positives and false negatives ---- */

static bw_node *add_counts(const bwi_head *head, const char *name, const bwi_argument_value *values)
{
    bwi_confusion_attributes a = {.confusion = {.threshold = (float)values[0].number}};
    return add(head, &bwi_op_confusion, head->prediction, BW_F32, name, &a, sizeof a);
}

static bw_node *precision(const bwi_head *head, const bwi_argument_value *values)
{
    return add_counts(head, "precision", values);
}

static double precision_value(const bw_node *node, const double *sums)
{
    (void)node;
    return ratio(sums[0], sums[0] + sums[1]);
}

static bw_node *recall(const bwi_head *head, const bwi_argument_value *values)
{
    return add_counts(head, "recall", values);
}

static double recall_value(const bw_node *node, const double *sums)
{
    (void)node;
    return ratio(sums[0], sums[0] + sums[2]);
}

/* ---- The area under a curve ---- */

enum { NUM_THRESHOLDS, CURVE, SUMMATION_METHOD, AUC_FROM_LOGITS, AUC_OPTIONS };

static bw_node *auc(const bwi_head *head, const bwi_argument_value *values)
{
    const char *curve = values[CURVE].text, *summation = values[SUMMATION_METHOD].text;
    bwi_confusion_attributes a = {
        .confusion = {.buckets = values[NUM_THRESHOLDS].integer, .from_logits = values[AUC_FROM_LOGITS].flag}};
    a.curve = bwi_listed("roc ROC", curve, strlen(curve)) ? BWI_CURVE_ROC
              : bwi_listed("pr PR", curve, strlen(curve)) ? BWI_CURVE_PR
                                                          : BWI_CURVE_PRGAIN;
    a.summation = strcmp(summation, "minoring") == 0   ? BWI_SUMMATION_MINORING
                  : strcmp(summation, "majoring") == 0 ? BWI_SUMMATION_MAJORING
                                                       : BWI_SUMMATION_INTERPOLATION;
    return add(head, &bwi_op_confusion, head->prediction, BW_F32, "auc", &a, sizeof a);
}

/* The confusion matrix at one threshold: summed weights of positive (yes) and negative (no) targets, those above the threshold and
 * all of them. */
typedef struct confusion {
    double yes, no, all_yes, all_no;
} confusion;

static void curve_point(const confusion *c, bwi_curve curve, double *x, double *y)
{
    if (curve == BWI_CURVE_PRGAIN) {
        double scale = ratio(c->all_yes, c->all_no);
        *x = c->yes == 0 ? 0 : 1 - scale * ratio(c->all_yes - c->yes, c->yes);
        *x = *x < 0 ? 0 : *x;
        *y = c->yes == 0 ? 1 : 1 - scale * ratio(c->no, c->yes);
        return;
    }
    double recall_here = ratio(c->yes, c->all_yes);
    *x = curve == BWI_CURVE_ROC ? ratio(c->no, c->all_no) : recall_here;
    *y = curve == BWI_CURVE_ROC ? recall_here : ratio(c->yes, c->yes + c->no);
}

/* Between two thresholds, true positives are assumed to be linear in all positives p (Davis and Goadrich), so the area is slope
 * (dtp + intercept log(p_low / p_high)) / all positives. */
static double pr_area(const confusion *low, const confusion *high)
{
    double dtp = low->yes - high->yes, p_low = low->yes + low->no, p_high = high->yes + high->no, dp = p_low - p_high;
    double slope = ratio(dtp, dp < 0 ? 0 : dp), intercept = high->yes - slope * p_high;
    double quotient = p_low > 0 && p_high > 0 ? p_low / p_high : 1;
    return ratio(slope * (dtp + intercept * log(quotient)), low->all_yes);
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

static double auc_value(const bw_node *node, const double *sums)
{
    const bwi_confusion_attributes *a = node->attributes;
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

/* ---- Regression ---- */

static bw_node *root_mean_squared_error(const bwi_head *head, const bwi_argument_value *values)
{
    return of_loss("mean_squared_error", head, values);
}

static double root_value(const bw_node *node, const double *sums)
{
    (void)node;
    return sqrt(ratio(sums[0], sums[1]));
}

/* The similarity is negated as a loss, but not as a metric. */
static bw_node *cosine_similarity(const bwi_head *head, const bwi_argument_value *values)
{
    return of_loss("cosine_similarity", head, values);
}

static double negated_value(const bw_node *node, const double *sums)
{
    (void)node;
    return -ratio(sums[0], sums[1]);
}

static bw_node *log_cosh_error(const bwi_head *head, const bwi_argument_value *values)
{
    return of_loss("log_cosh", head, values);
}

enum { CLASS_AGGREGATION, NUM_REGRESSORS, R2_OPTIONS };

static bw_node *r2_score(const bwi_head *head, const bwi_argument_value *values)
{
    bwi_variation_attributes a = {.by_variance = strcmp(values[CLASS_AGGREGATION].text, "variance_weighted_average") == 0,
                                  .regressors = values[NUM_REGRESSORS].integer};
    return add(head, &bwi_op_variation, head->prediction, BW_F32, "r2_score", &a, sizeof a);
}

/* R2 is the mean over outputs of 1 - residual / total, where total = sum w y^2 - (sum w y)^2 / sum w; it is adjusted for the number
 * of regressors if that is given. */
static double r2_value(const bw_node *node, const double *sums)
{
    const bwi_variation_attributes *a = node->attributes;
    int64_t width = node->input[0]->shape.extent[0];
    double scores = 0, weights = 0, count = sums[4 * width], regressors = (double)a->regressors;
    for (int64_t c = 0; c < width; c++) {
        double total = sums[2 * width + c] - sums[width + c] * sums[width + c] / sums[c], score = 1 - sums[3 * width + c] / total;
        score = isinf(score) ? 0 : score;
        scores += a->by_variance ? total * score : score;
        weights += a->by_variance ? total : 1;
    }
    double r2 = scores / weights;
    return a->regressors && regressors < count - 1 ? 1 - (1 - r2) * (count - 1) / (count - regressors - 1) : r2;
}

/* ---- The table ---- */

static const bwi_argument threshold_arguments[] = {{"threshold", NULL, BWI_FLOAT, "0.5", 0, 0, NULL}};
static const bwi_argument thresholds_arguments[] = {{"thresholds", "threshold", BWI_FLOAT, "0.5", 0, 1, NULL}};
static const bwi_argument k_arguments[] = {{"k", NULL, BWI_INT, "5", 1, 1e9, NULL}};
static const bwi_argument auc_arguments[AUC_OPTIONS] = {
    [NUM_THRESHOLDS] = {"num_thresholds", NULL, BWI_INT, "200", 2, 100000, NULL},
    [CURVE] = {"curve", NULL, BWI_TEXT, "roc", 0, 0, "roc pr prgain ROC PR PRGAIN"},
    [SUMMATION_METHOD] = {"summation_method", NULL, BWI_TEXT, "interpolation", 0, 0, "interpolation minoring majoring"},
    [AUC_FROM_LOGITS] = {"from_logits", NULL, BWI_BOOL, "false", 0, 0, NULL}};
static const bwi_argument r2_arguments[R2_OPTIONS] = {[CLASS_AGGREGATION] = {"class_aggregation", NULL, BWI_TEXT, "uniform_average",
                                                                             0, 0, "uniform_average variance_weighted_average"},
                                                      [NUM_REGRESSORS] = {"num_regressors", NULL, BWI_INT, "0", 0, 1e9, NULL}};

const bwi_metric_row bwi_metric_rows[] = {
    {"accuracy acc Accuracy", NULL, 0, accuracy, bwi_metric_mean},
    {"binary_accuracy BinaryAccuracy", threshold_arguments, 1, binary_accuracy, bwi_metric_mean},
    {"categorical_accuracy CategoricalAccuracy", NULL, 0, categorical_accuracy, bwi_metric_mean},
    {"sparse_categorical_accuracy SparseCategoricalAccuracy", NULL, 0, sparse_categorical_accuracy, bwi_metric_mean},
    {"top_k_categorical_accuracy TopKCategoricalAccuracy", k_arguments, 1, top_k, bwi_metric_mean},
    {"sparse_top_k_categorical_accuracy SparseTopKCategoricalAccuracy", k_arguments, 1, sparse_top_k, bwi_metric_mean},
    {"precision Precision", thresholds_arguments, 1, precision, precision_value},
    {"recall Recall", thresholds_arguments, 1, recall, recall_value},
    {"auc AUC", auc_arguments, AUC_OPTIONS, auc, auc_value},
    {"root_mean_squared_error RootMeanSquaredError", NULL, 0, root_mean_squared_error, root_value},
    {"r2_score R2Score", r2_arguments, R2_OPTIONS, r2_score, r2_value},
    {"cosine_similarity CosineSimilarity", NULL, 0, cosine_similarity, negated_value},
    {"log_cosh_error logcosh LogCoshError", NULL, 0, log_cosh_error, bwi_metric_mean},
    {NULL, NULL, 0, NULL, NULL},
};
