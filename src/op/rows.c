/* How losses and metrics see a sample: rows along the last axis, a target for each, and weights. */
#include "op/internal.h"

#include <math.h>

static int64_t width_of(const bwi_shape *shape)
{
    return shape->ndim ? shape->extent[shape->ndim - 1] : 1;
}

bwi_rows bwi_rows_of(const bwi_call *call)
{
    const bwi_shape *shape = &call->node->input[0]->shape;
    bwi_rows rows = {.samples = call->samples, .count = 1, .width = width_of(shape)};
    if (shape->ndim > 1) {
        rows.count = bwi_shape_count(shape) / rows.width;
    }
    if (call->node->inputs > 2) {
        rows.weights = bwi_shape_count(&call->node->input[2]->shape);
    }
    return rows;
}

/* Extents of 1 at the end are dropped, since labels may be (n) or (n, 1). */
static bwi_shape trimmed(const bwi_shape *shape, int drop)
{
    bwi_shape result = *shape;
    result.ndim -= drop;
    while (result.ndim > 0 && result.extent[result.ndim - 1] == 1) {
        result.ndim--;
    }
    return result;
}

static bool is_categorical(const bw_node *node)
{
    const bwi_loss_attributes *a = node->op == &bwi_op_loss ? node->attributes : NULL;
    return node->op == &bwi_op_crossentropy || (a && a->kind == BWI_LOSS_CATEGORICAL);
}

/* The usual reason for targets of another shape, and the remedy; "" if it is none of these. */
static const char *remedy(const bw_node *node, bool labels)
{
    const bwi_shape *prediction = &node->input[0]->shape;
    bwi_shape given = trimmed(&node->input[1]->shape, 0), all = trimmed(prediction, 0);
    if (prediction->ndim > 1 && given.ndim < 2 && given.ndim < prediction->ndim - labels) {
        return "; if a sample has one target, flatten is missing before the last layers";
    }
    bwi_shape rows = trimmed(prediction, prediction->ndim ? 1 : 0);
    if (!labels && is_categorical(node) && bwi_shape_equal(&rows, &given)) {
        return "; for class numbers use sparse_categorical_crossentropy";
    }
    return labels && bwi_shape_equal(&all, &given) ? "; for a number for each class use categorical_crossentropy" : "";
}

static bw_status check_target(bwi_graph *graph, const bw_node *node, bool labels)
{
    const bwi_shape *prediction = &node->input[0]->shape, *target = &node->input[1]->shape;
    int drop = labels && prediction->ndim ? 1 : 0;
    bwi_shape wanted = trimmed(prediction, drop), given = trimmed(target, 0);
    if (bwi_shape_equal(&wanted, &given)) {
        return BW_OK;
    }
    char expected[160], found[160];
    return bwi_fail(graph->ctx, BW_INVALID_ARGUMENT, "%s: expected targets of shape %s, %s, got %s%s", node->name,
                    bwi_format_shape(expected, prediction->ndim - drop, prediction->extent),
                    labels ? "a class number for each row of the output" : "the output's",
                    bwi_format_shape(found, target->ndim, target->extent), remedy(node, labels));
}

static bw_status check_weight(bwi_graph *graph, const bw_node *node)
{
    const bwi_shape *prediction = &node->input[0]->shape, *weight = &node->input[2]->shape;
    int64_t rows = bwi_shape_count(prediction) / width_of(prediction), weights = bwi_shape_count(weight);
    if (weights == 1 || weights == rows) {
        return BW_OK;
    }
    char positions[80] = "", found[160];
    if (rows > 1) {
        snprintf(positions, sizeof positions, ", or one for each of the output's %lld positions", (long long)rows);
    }
    return bwi_fail(graph->ctx, BW_INVALID_ARGUMENT, "%s: expected one sample weight a sample%s, got %s", node->name, positions,
                    bwi_format_shape(found, weight->ndim, weight->extent));
}

bw_status bwi_rows_check(bwi_graph *graph, bw_node *node, bool labels)
{
    node->shape = (bwi_shape){.ndim = 0};
    bw_status status = check_target(graph, node, labels);
    return status == BW_OK && node->inputs > 2 ? check_weight(graph, node) : status;
}

bw_status bwi_labels_check(const bwi_call *call, const bwi_tile *tile)
{
    bwi_rows rows = bwi_rows_of(call);
    const unsigned char *labels = call->src[1];
    int64_t bad = call->kernels->loss->bad_label(rows.count * rows.samples, rows.width, call->src[1]);
    if (bad < 0) {
        return BW_OK;
    }
    int32_t label;
    call->kernels->memory->read(&label, labels + (size_t)bad * sizeof label, sizeof label);
    snprintf(tile->error, BWI_ERROR_TEXT, "label %d of sample %lld is outside 0..%lld: the output layer has %lld classes%s", label,
             (long long)tile->numbers[bad / rows.count], (long long)rows.width - 1, (long long)rows.width,
             label == rows.width ? "; are they numbered from 1? --categorical y numbers column y from 0" : "");
    return BW_INVALID_ARGUMENT;
}

/* Without this check the formula would still give a number: labels 0, 1 and 2 train to a loss below 0. */
bw_status bwi_shares_check(const bwi_call *call, const bwi_tile *tile)
{
    bwi_rows rows = bwi_rows_of(call);
    int64_t bad = call->kernels->loss->bad_number(&rows, 0, 1, call->src[1], bwi_rows_weight(call));
    if (bad < 0) {
        return BW_OK;
    }
    float label;
    call->kernels->memory->read(&label, (const unsigned char *)call->src[1] + (size_t)bad * sizeof label, sizeof label);
    bwi_print(tile->error, BWI_ERROR_TEXT, "label %g of sample %lld is outside 0..1, which %.40s expects; %s", (double)label,
              (long long)tile->numbers[bad / (rows.count * rows.width)], call->node->name,
              label < 0 ? "two classes are 0 and 1, or -1 and 1 for hinge"
                        : "for more classes: an output each, sparse_categorical_crossentropy");
    return BW_INVALID_ARGUMENT;
}

/* A negative weight would make the model worse at that sample without a bound. */
bw_status bwi_sample_weights_check(const bwi_call *call, const bwi_tile *tile)
{
    bwi_rows rows = {.samples = call->samples, .count = 1, .width = bwi_shape_count(&call->node->shape)};
    int64_t bad = call->kernels->loss->bad_number(&rows, 0, INFINITY, call->dst, NULL);
    if (bad < 0) {
        return BW_OK;
    }
    float weight;
    call->kernels->memory->read(&weight, (const unsigned char *)call->dst + (size_t)bad * sizeof weight, sizeof weight);
    bwi_print(tile->error, BWI_ERROR_TEXT, "sample %lld: its %s is %g; expected 0 or more",
              (long long)tile->numbers[bad / rows.width], call->node->name, (double)weight);
    return BW_INVALID_ARGUMENT;
}
