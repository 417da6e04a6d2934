/*
 * The metrics, by Keras's names. Each is a node that sums over the batch, and a formula that turns the sums into a number, so that
 * batches and ranks can be added before the formula is applied. Any loss can be a metric, too.
 */
#include "train/heads/metrics.h"

#include <math.h>
#include <string.h>

double bwi_metric_mean(const bw_node *node, const double *sums, int index)
{
    (void)node;
    (void)index;
    return bwi_metric_ratio(sums[0], sums[1]);
}

bw_node *bwi_metric_add(const bwi_head *head, const bwi_op *op, bw_node *prediction, bw_dtype target, const char *name,
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
    return bwi_metric_add(head, &bwi_op_accuracy, logits ? logits : head->prediction, labels ? BW_I32 : BW_F32, name, a, sizeof *a);
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

/* ---- Regression ---- */

static bw_node *root_mean_squared_error(const bwi_head *head, const bwi_argument_value *values)
{
    return of_loss("mean_squared_error", head, values);
}

static double root_value(const bw_node *node, const double *sums, int index)
{
    (void)node;
    (void)index;
    return sqrt(bwi_metric_ratio(sums[0], sums[1]));
}

/* The similarity is negated as a loss, but not as a metric. */
static bw_node *cosine_similarity(const bwi_head *head, const bwi_argument_value *values)
{
    return of_loss("cosine_similarity", head, values);
}

static double negated_value(const bw_node *node, const double *sums, int index)
{
    (void)node;
    (void)index;
    return -bwi_metric_ratio(sums[0], sums[1]);
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
    return bwi_metric_add(head, &bwi_op_variation, head->prediction, BW_F32, "r2_score", &a, sizeof a);
}

/* R2 is the mean over outputs of 1 - residual / total, where total = sum w y^2 - (sum w y)^2 / sum w; it is adjusted for the number
 * of regressors if that is given. */
static double r2_value(const bw_node *node, const double *sums, int index)
{
    (void)index;
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

/* ---- Correlations along the last axis ---- */

static bw_node *pearson(const bwi_head *head, const bwi_argument_value *values)
{
    (void)values;
    bwi_correlation_attributes a = {.kind = BWI_CORRELATION_PEARSON};
    return bwi_metric_add(head, &bwi_op_correlation, head->prediction, BW_F32, "pearson_correlation", &a, sizeof a);
}

static bw_node *concordance(const bwi_head *head, const bwi_argument_value *values)
{
    (void)values;
    bwi_correlation_attributes a = {.kind = BWI_CORRELATION_CONCORDANCE};
    return bwi_metric_add(head, &bwi_op_correlation, head->prediction, BW_F32, "concordance_correlation", &a, sizeof a);
}

/* ---- The table ---- */

static const bwi_argument axis_arguments[] = {{"axis", NULL, BWI_INT, "-1", -1, -1, NULL}};

static const bwi_argument threshold_arguments[] = {{"threshold", NULL, BWI_FLOAT, "0.5", 0, 0, NULL}};
static const bwi_argument k_arguments[] = {{"k", NULL, BWI_INT, "5", 1, 1e9, NULL}};
static const bwi_argument r2_arguments[R2_OPTIONS] = {[CLASS_AGGREGATION] = {"class_aggregation", NULL, BWI_TEXT, "uniform_average",
                                                                             0, 0, "uniform_average variance_weighted_average"},
                                                      [NUM_REGRESSORS] = {"num_regressors", NULL, BWI_INT, "0", 0, 1e9, NULL}};

const bwi_metric_row bwi_metric_rows[] = {
    {"accuracy acc Accuracy", NULL, 0, accuracy, bwi_metric_mean, NULL},
    {"binary_accuracy BinaryAccuracy", threshold_arguments, 1, binary_accuracy, bwi_metric_mean, NULL},
    {"categorical_accuracy CategoricalAccuracy", NULL, 0, categorical_accuracy, bwi_metric_mean, NULL},
    {"sparse_categorical_accuracy SparseCategoricalAccuracy", NULL, 0, sparse_categorical_accuracy, bwi_metric_mean, NULL},
    {"top_k_categorical_accuracy TopKCategoricalAccuracy", k_arguments, 1, top_k, bwi_metric_mean, NULL},
    {"sparse_top_k_categorical_accuracy SparseTopKCategoricalAccuracy", k_arguments, 1, sparse_top_k, bwi_metric_mean, NULL},
    {"precision Precision", bwi_counts_arguments, BWI_COUNTS_OPTIONS, bwi_precision, bwi_precision_value, bwi_counts_width},
    {"recall Recall", bwi_counts_arguments, BWI_COUNTS_OPTIONS, bwi_recall, bwi_recall_value, bwi_counts_width},
    {"true_positives TruePositives", bwi_counts_arguments, 1, bwi_true_positives, bwi_true_positives_value, bwi_counts_width},
    {"true_negatives TrueNegatives", bwi_counts_arguments, 1, bwi_true_negatives, bwi_true_negatives_value, bwi_counts_width},
    {"false_positives FalsePositives", bwi_counts_arguments, 1, bwi_false_positives, bwi_false_positives_value, bwi_counts_width},
    {"false_negatives FalseNegatives", bwi_counts_arguments, 1, bwi_false_negatives, bwi_false_negatives_value, bwi_counts_width},
    {"precision_at_recall PrecisionAtRecall", bwi_at_recall_arguments, BWI_AT_OPTIONS, bwi_precision_at_recall,
     bwi_precision_at_recall_value, NULL},
    {"recall_at_precision RecallAtPrecision", bwi_at_precision_arguments, BWI_AT_OPTIONS, bwi_recall_at_precision,
     bwi_recall_at_precision_value, NULL},
    {"sensitivity_at_specificity SensitivityAtSpecificity", bwi_at_specificity_arguments, BWI_AT_OPTIONS,
     bwi_sensitivity_at_specificity, bwi_sensitivity_at_specificity_value, NULL},
    {"specificity_at_sensitivity SpecificityAtSensitivity", bwi_at_sensitivity_arguments, BWI_AT_OPTIONS,
     bwi_specificity_at_sensitivity, bwi_specificity_at_sensitivity_value, NULL},
    {"auc AUC", bwi_auc_arguments, BWI_AUC_OPTIONS, bwi_auc, bwi_auc_value, NULL},
    {"f1_score F1Score", bwi_f1_arguments, 2, bwi_f1_score, bwi_fbeta_value, bwi_fbeta_width},
    {"fbeta_score FBetaScore", bwi_fbeta_arguments, 3, bwi_fbeta_score, bwi_fbeta_value, bwi_fbeta_width},
    {"iou io_u IoU", bwi_iou_arguments, BWI_IOU_OPTIONS, bwi_iou, bwi_match_value, NULL},
    {"binary_iou binary_io_u BinaryIoU", bwi_binary_iou_arguments, 2, bwi_binary_iou, bwi_match_value, NULL},
    {"mean_iou mean_io_u MeanIoU", bwi_mean_iou_arguments, BWI_IOU_OPTIONS - 1, bwi_mean_iou, bwi_match_value, NULL},
    {"one_hot_iou one_hot_io_u OneHotIoU", bwi_one_hot_iou_arguments, 5, bwi_one_hot_iou, bwi_match_value, NULL},
    {"one_hot_mean_iou one_hot_mean_io_u OneHotMeanIoU", bwi_one_hot_mean_iou_arguments, 4, bwi_one_hot_mean_iou, bwi_match_value,
     NULL},
    {"pearson_correlation PearsonCorrelation", axis_arguments, 1, pearson, bwi_metric_mean, NULL},
    {"concordance_correlation ConcordanceCorrelation", axis_arguments, 1, concordance, bwi_metric_mean, NULL},
    {"root_mean_squared_error RootMeanSquaredError", NULL, 0, root_mean_squared_error, root_value, NULL},
    {"r2_score R2Score", r2_arguments, R2_OPTIONS, r2_score, r2_value, NULL},
    {"cosine_similarity CosineSimilarity", NULL, 0, cosine_similarity, negated_value, NULL},
    {"log_cosh_error logcosh LogCoshError", NULL, 0, log_cosh_error, bwi_metric_mean, NULL},
    {NULL, NULL, 0, NULL, NULL, NULL},
};
