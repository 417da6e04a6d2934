/* The losses, by Keras's names. Each becomes a node with one number per sample, so that all of them are reduced in the same way. */
#include "train/heads/metrics.h"

#include <string.h>

bool bwi_listed(const char *list, const char *word, size_t length)
{
    for (const char *at = list; *at;) {
        size_t n = strcspn(at, " ");
        if (n == length && memcmp(at, word, n) == 0) {
            return true;
        }
        at += n + strspn(at + n, " ");
    }
    return false;
}

bw_node *bwi_logits_of(bw_node *prediction)
{
    return prediction->op == &bwi_op_softmax ? prediction->input[0] : NULL;
}

bw_node *bwi_binary_logits_of(bw_node *prediction)
{
    bool sigmoid =
        prediction->op == &bwi_op_activation && ((const bwi_activation_attributes *)prediction->attributes)->kind == BWI_SIGMOID;
    return sigmoid ? prediction->input[0] : NULL;
}

bw_node *bwi_head_target(const bwi_head *head, bw_dtype dtype)
{
    if (head->target->dtype == dtype) {
        return head->target;
    }
    bwi_input_attributes a = *(const bwi_input_attributes *)head->target->attributes;
    for (int n = 0; n < head->graph->count; n++) {
        bw_node *node = head->graph->nodes[n];
        const bwi_input_attributes *other = node->attributes;
        if (node->op == &bwi_op_input && other->role == a.role && other->field == a.field && other->dtype == dtype) {
            return node;
        }
    }
    a.dtype = dtype;
    return bwi_graph_add(head->graph, &bwi_op_input, head->target->name, &a, sizeof a, NULL, 0, NULL, 0);
}

static bw_node *add(const bwi_loss_row *row, const bwi_head *head, const bwi_op *op, bw_node *prediction, const void *attributes,
                    size_t bytes)
{
    char name[64];
    snprintf(name, sizeof name, "%.*s", (int)strcspn(row->names, " "), row->names);
    bw_node *inputs[3] = {prediction, bwi_head_target(head, row->target), head->weight};
    return bwi_graph_add(head->graph, op, name, attributes, bytes, inputs, head->weight ? 3 : 2, NULL, 0);
}

static bw_node *add_formula(const bwi_loss_row *row, const bwi_head *head, bwi_loss_kind kind, double parameter,
                            bw_node *prediction)
{
    bwi_loss_attributes a = {.kind = kind, .parameter = (float)parameter};
    return add(row, head, &bwi_op_loss, prediction, &a, sizeof a);
}

/* Builds a loss that is a formula. Its only option, if it has one, is the formula's parameter. */
static bw_node *formula(const bwi_loss_row *row, const bwi_head *head, const bwi_argument_value *values)
{
    return add_formula(row, head, row->kind, row->argument_count ? values[0].number : 0, head->prediction);
}

enum { FROM_LOGITS, LABEL_SMOOTHING, IGNORE_CLASS = 1, CROSSENTROPY_OPTIONS };

static const bwi_argument crossentropy_arguments[CROSSENTROPY_OPTIONS] = {
    [FROM_LOGITS] = {"from_logits", NULL, BWI_BOOL, "false", 0, 0, NULL},
    [LABEL_SMOOTHING] = {"label_smoothing", NULL, BWI_FLOAT, "0", 0, 1, NULL}};
static const bwi_argument sparse_arguments[CROSSENTROPY_OPTIONS] = {
    [FROM_LOGITS] = {"from_logits", NULL, BWI_BOOL, "false", 0, 0, NULL},
    [IGNORE_CLASS] = {"ignore_class", NULL, BWI_INT, "", INT32_MIN, INT32_MAX, NULL}};
static const bwi_argument huber_arguments[] = {{"delta", NULL, BWI_FLOAT, "1", 0, 1e30, NULL}};

static bw_node *binary_crossentropy(const bwi_loss_row *row, const bwi_head *head, const bwi_argument_value *values)
{
    bw_node *logits = values[FROM_LOGITS].flag ? head->prediction : bwi_binary_logits_of(head->prediction);
    return add_formula(row, head, logits ? BWI_LOSS_BINARY_LOGITS : BWI_LOSS_BINARY, values[LABEL_SMOOTHING].number,
                       logits ? logits : head->prediction);
}

/* As in Keras, a softmax is traced back to its logits, and other outputs are divided by their sum and clipped. */
static bw_node *categorical_crossentropy(const bwi_loss_row *row, const bwi_head *head, const bwi_argument_value *values)
{
    bwi_crossentropy_attributes a = {.smoothing = row->target == BW_I32 ? 0 : (float)values[LABEL_SMOOTHING].number};
    bw_node *logits = values[FROM_LOGITS].flag ? head->prediction : bwi_logits_of(head->prediction);
    return logits ? add(row, head, &bwi_op_crossentropy, logits, &a, sizeof a)
                  : add_formula(row, head, row->kind, (double)a.smoothing, head->prediction);
}

bool bwi_head_ignore(const bwi_loss_row *row, const bwi_argument_value *values, bwi_head *head, bw_node **mask)
{
    if (row->arguments != sparse_arguments || !values[IGNORE_CLASS].given) {
        return true;
    }
    bwi_ignore_attributes a = {.class_number = (int32_t)values[IGNORE_CLASS].integer};
    bw_node *labels = bwi_head_target(head, BW_I32);
    head->target = bwi_graph_add(head->graph, &bwi_op_ignored_labels, "labels", &a, sizeof a, &labels, 1, NULL, 0);
    bw_node *counts = bwi_graph_add(head->graph, &bwi_op_ignored_mask, "ignore_class", &a, sizeof a, &labels, 1, NULL, 0);
    bw_node *with_mask[2] = {*mask, counts}, *with_weight[2] = {counts, head->weight};
    *mask = *mask ? bwi_graph_add(head->graph, &bwi_op_mask_weights, "mask", NULL, 0, with_mask, 2, NULL, 0) : counts;
    head->weight =
        head->weight ? bwi_graph_add(head->graph, &bwi_op_mask_weights, "mask", NULL, 0, with_weight, 2, NULL, 0) : counts;
    return head->target && *mask && head->weight;
}

/* ---- Losses with several parameters ---- */

static bw_node *add_activation(const bwi_head *head, bwi_activation kind)
{
    bwi_activation_attributes a = {.kind = kind};
    bw_node *x = head->prediction;
    return bwi_graph_add(head->graph, &bwi_op_activation, "probabilities", &a, sizeof a, &x, 1, NULL, 0);
}

enum { ALPHA, GAMMA, FOCAL_FROM_LOGITS, FOCAL_SMOOTHING, FOCAL_SHARED };
enum { BALANCED, BINARY_ALPHA, FOCAL_OPTIONS = 5 };

/* clang-format off */
#define FOCAL_ARGUMENTS                                   \
    {"alpha", NULL, BWI_FLOAT, "0.25", 0, 1e30, NULL},    \
    {"gamma", NULL, BWI_FLOAT, "2", 0, 1e30, NULL},       \
    {"from_logits", NULL, BWI_BOOL, "false", 0, 0, NULL}, \
    {"label_smoothing", NULL, BWI_FLOAT, "0", 0, 1, NULL}
/* clang-format on */

static const bwi_argument binary_focal_arguments[FOCAL_OPTIONS] = {{"apply_class_balancing", NULL, BWI_BOOL, "false", 0, 0, NULL},
                                                                   FOCAL_ARGUMENTS};
static const bwi_argument categorical_focal_arguments[FOCAL_SHARED] = {FOCAL_ARGUMENTS};
static const bwi_argument generalized_arguments[] = {{"q", NULL, BWI_FLOAT, "0.5", 1e-6, 1 - 1e-6, NULL}};
static const bwi_argument dice_arguments[] = {{"axis", NULL, BWI_INTS, "", 0, 0, NULL}};
static const bwi_argument tversky_arguments[] = {{"alpha", NULL, BWI_FLOAT, "0.5", 0, 1e30, NULL},
                                                 {"beta", NULL, BWI_FLOAT, "0.5", 0, 1e30, NULL},
                                                 {"axis", NULL, BWI_INTS, "", 0, 0, NULL}};

static bwi_graded focal_of(bwi_graded_kind kind, const bwi_argument_value *values)
{
    return (bwi_graded){.kind = kind,
                        .alpha = (float)values[ALPHA].number,
                        .gamma = (float)values[GAMMA].number,
                        .smoothing = (float)values[FOCAL_SMOOTHING].number};
}

static bw_node *binary_focal(const bwi_loss_row *row, const bwi_head *head, const bwi_argument_value *values)
{
    bwi_graded g = focal_of(BWI_GRADED_BINARY_FOCAL, values + BINARY_ALPHA);
    g.balanced = values[BALANCED].flag;
    bool logits = values[BINARY_ALPHA + FOCAL_FROM_LOGITS].flag;
    return add(row, head, &bwi_op_graded_loss, logits ? add_activation(head, BWI_SIGMOID) : head->prediction, &g, sizeof g);
}

static bw_node *categorical_focal(const bwi_loss_row *row, const bwi_head *head, const bwi_argument_value *values)
{
    bwi_graded g = focal_of(BWI_GRADED_CATEGORICAL_FOCAL, values);
    bw_node *x = head->prediction;
    if (values[FOCAL_FROM_LOGITS].flag) {
        x = bwi_graph_add(head->graph, &bwi_op_softmax, "probabilities", NULL, 0, &x, 1, NULL, 0);
    }
    return add(row, head, &bwi_op_graded_loss, x, &g, sizeof g);
}

static bw_node *generalized(const bwi_loss_row *row, const bwi_head *head, const bwi_argument_value *values)
{
    bwi_graded g = {.kind = BWI_GRADED_GENERALIZED, .gamma = (float)values[0].number};
    return add(row, head, &bwi_op_graded_loss, head->prediction, &g, sizeof g);
}

static bw_node *ctc(const bwi_loss_row *row, const bwi_head *head, const bwi_argument_value *values)
{
    (void)values;
    return add(row, head, &bwi_op_ctc, head->prediction, NULL, 0);
}

/* Dice and Tversky are sums over the axes that are given, counted from the batch's: the last one, or all except the batch's.
 * Keras's default is all, that of the batch, too. */
static bool is_last_axis(const bwi_shape *shape, const bwi_argument_value *axis)
{
    return axis->count == 1 && (axis->integer == -1 || axis->integer == shape->ndim);
}

static bool is_every_axis(const bwi_shape *shape, const bwi_argument_value *axis)
{
    unsigned seen = 0;
    for (int i = 0; i < axis->count; i++) {
        int64_t at = axis->integers[i] < 0 ? axis->integers[i] + shape->ndim + 1 : axis->integers[i];
        seen |= at >= 1 && at <= shape->ndim ? 1U << (at - 1) : 1U << 31;
    }
    return seen == (1U << shape->ndim) - 1;
}

static bw_node *add_region(const bwi_loss_row *row, const bwi_head *head, bwi_graded *g, const bwi_argument_value *axis)
{
    const bwi_shape *shape = &head->prediction->shape;
    if (axis->count == 0) {
        return bwi_fail_build(
            head->graph->ctx, BW_UNIMPLEMENTED,
            "loss: %.*s: axis: without it the loss is one number for the whole batch, which is not supported; -1 is "
            "one for each row, and all axes of a sample, from 1 to %d, one for each sample",
            (int)strcspn(row->names, " "), row->names, shape->ndim);
    }
    g->samples = is_every_axis(shape, axis) && shape->ndim > 1;
    if (!g->samples && !is_last_axis(shape, axis) && !is_every_axis(shape, axis)) {
        return bwi_fail_build(head->graph->ctx, BW_UNIMPLEMENTED,
                              "loss: %.*s: axis: expected the last axis, or all axes of a sample, which has %d",
                              (int)strcspn(row->names, " "), row->names, shape->ndim);
    }
    return add(row, head, &bwi_op_graded_loss, head->prediction, g, sizeof *g);
}

/* 1 - 2 I / (sum y + sum x + epsilon) */
static const bwi_graded dice_formula = {.kind = BWI_GRADED_TVERSKY, .alpha = 0.5F, .beta = 0.5F, .epsilon = 0.5e-7F};

static bw_node *dice(const bwi_loss_row *row, const bwi_head *head, const bwi_argument_value *values)
{
    bwi_graded g = dice_formula;
    return add_region(row, head, &g, &values[0]);
}

static bwi_graded tversky_of(const bwi_argument_value *values)
{
    return (bwi_graded){
        .kind = BWI_GRADED_TVERSKY, .alpha = (float)values[0].number, .beta = (float)values[1].number, .epsilon = 1e-7F};
}

static bw_node *tversky(const bwi_loss_row *row, const bwi_head *head, const bwi_argument_value *values)
{
    bwi_graded g = tversky_of(values);
    return add_region(row, head, &g, &values[2]);
}

const bwi_loss_row bwi_loss_rows[] = {
    {"mean_squared_error mse MSE MeanSquaredError", NULL, 0, BW_F32, false, BWI_LOSS_SQUARE, formula},
    {"mean_absolute_error mae MAE MeanAbsoluteError", NULL, 0, BW_F32, false, BWI_LOSS_ABSOLUTE, formula},
    {"mean_absolute_percentage_error mape MAPE MeanAbsolutePercentageError", NULL, 0, BW_F32, false, BWI_LOSS_PERCENTAGE, formula},
    {"mean_squared_logarithmic_error msle MSLE MeanSquaredLogarithmicError", NULL, 0, BW_F32, false, BWI_LOSS_LOGARITHMIC, formula},
    {"huber Huber", huber_arguments, 1, BW_F32, false, BWI_LOSS_HUBER, formula},
    {"log_cosh logcosh LogCosh", NULL, 0, BW_F32, false, BWI_LOSS_LOG_COSH, formula},
    {"binary_crossentropy bce BCE BinaryCrossentropy", crossentropy_arguments, 2, BW_F32, true, BWI_LOSS_BINARY,
     binary_crossentropy},
    {"categorical_crossentropy CategoricalCrossentropy", crossentropy_arguments, 2, BW_F32, true, BWI_LOSS_CATEGORICAL,
     categorical_crossentropy},
    {"sparse_categorical_crossentropy SparseCategoricalCrossentropy", sparse_arguments, 2, BW_I32, true, BWI_LOSS_SPARSE,
     categorical_crossentropy},
    {"hinge Hinge", NULL, 0, BW_F32, false, BWI_LOSS_HINGE, formula},
    {"squared_hinge SquaredHinge", NULL, 0, BW_F32, false, BWI_LOSS_SQUARED_HINGE, formula},
    {"categorical_hinge CategoricalHinge", NULL, 0, BW_F32, false, BWI_LOSS_CATEGORICAL_HINGE, formula},
    {"kl_divergence kld KLD kullback_leibler_divergence KLDivergence", NULL, 0, BW_F32, false, BWI_LOSS_DIVERGENCE, formula},
    {"poisson Poisson", NULL, 0, BW_F32, false, BWI_LOSS_POISSON, formula},
    {"cosine_similarity CosineSimilarity", NULL, 0, BW_F32, false, BWI_LOSS_COSINE, formula},
    {"binary_focal_crossentropy BinaryFocalCrossentropy", binary_focal_arguments, FOCAL_OPTIONS, BW_F32, true, BWI_LOSS_BINARY,
     binary_focal},
    {"categorical_focal_crossentropy CategoricalFocalCrossentropy", categorical_focal_arguments, FOCAL_OPTIONS - 1, BW_F32, true,
     BWI_LOSS_CATEGORICAL, categorical_focal},
    {"categorical_generalized_cross_entropy CategoricalGeneralizedCrossEntropy", generalized_arguments, 1, BW_I32, true,
     BWI_LOSS_SPARSE, generalized},
    {"dice Dice", dice_arguments, 1, BW_F32, false, BWI_LOSS_SQUARE, dice},
    {"tversky Tversky", tversky_arguments, 3, BW_F32, false, BWI_LOSS_SQUARE, tversky},
    {"ctc CTC", NULL, 0, BW_I32, false, BWI_LOSS_SQUARE, ctc},
    {NULL, NULL, 0, BW_F32, false, BWI_LOSS_SQUARE, NULL},
};

const bwi_loss_row *bwi_loss_row_find(const char *name, size_t length)
{
    for (const bwi_loss_row *row = bwi_loss_rows; row->names; row++) {
        if (bwi_listed(row->names, name, length)) {
            return row;
        }
    }
    return NULL;
}
