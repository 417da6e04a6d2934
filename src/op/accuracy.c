/*
 * accuracy: sums[0] adds the weights of predictions that are right, sums[1] all weights. Inputs: prediction (for classes any
 * order-preserving form: logits do), target, and optionally weights.
 */
#include "op/op.h"

static bool has_labels(bwi_accuracy_kind kind)
{
    return kind == BWI_ACCURACY_SPARSE || kind == BWI_ACCURACY_SPARSE_TOP;
}

static bw_status shape(bwi_graph *graph, bw_node *node)
{
    const bwi_accuracy_attributes *a = node->attributes;
    return bwi_rows_check(graph, node, has_labels(a->kind));
}

static int64_t largest(const float *x, int64_t width)
{
    int64_t best = 0;
    for (int64_t i = 1; i < width; i++) {
        if (x[i] > x[best]) {
            best = i;
        }
    }
    return best;
}

static bool among_largest(const float *x, int64_t width, int64_t which, int64_t k)
{
    if (which < 0 || which >= width) {
        return false;
    }
    int64_t larger = 0;
    for (int64_t i = 0; i < width; i++) {
        larger += x[i] > x[which];
    }
    return larger < k && x[which] == x[which];
}

static int64_t binary_hits(float threshold, int64_t count, const float *x, const float *y)
{
    int64_t right = 0;
    for (int64_t i = 0; i < count; i++) {
        right += y[i] == (x[i] > threshold ? 1.0F : 0.0F);
    }
    return right;
}

/* How many numbers of row r are right: one at most, but for binary accuracy. */
static int64_t hits(const bwi_call *call, const bwi_rows *rows, int64_t r)
{
    const bwi_accuracy_attributes *a = call->node->attributes;
    int64_t width = rows->width;
    const float *x = (const float *)call->src[0] + r * width, *y = (const float *)call->src[1] + r * width;
    const int32_t *labels = call->src[1];
    switch (a->kind) {
    case BWI_ACCURACY_SPARSE:
        return largest(x, width) == labels[r];
    case BWI_ACCURACY_CATEGORICAL:
        return largest(x, width) == largest(y, width);
    case BWI_ACCURACY_SPARSE_TOP:
        return among_largest(x, width, labels[r], a->k);
    case BWI_ACCURACY_TOP:
        return among_largest(x, width, largest(y, width), a->k);
    case BWI_ACCURACY_BINARY:
        break;
    }
    return binary_hits(a->threshold, width, x, y);
}

static bw_status statistics(const bwi_call *call, const bwi_tile *tile)
{
    const bwi_accuracy_attributes *a = call->node->attributes;
    bwi_rows rows = bwi_rows_of(call);
    int64_t numbers = a->kind == BWI_ACCURACY_BINARY ? rows.width : 1;
    double *sums = bwi_call_sums(call, tile);
    if (a->kind == BWI_ACCURACY_BINARY && rows.weights == 0) {
        int64_t count = call->samples * rows.count * rows.width;
        sums[0] += (double)binary_hits(a->threshold, count, call->src[0], call->src[1]);
        sums[1] += (double)count;
        return BW_OK;
    }
    for (int64_t s = 0; s < call->samples; s++) {
        for (int64_t r = s * rows.count; r < (s + 1) * rows.count; r++) {
            double weight = (double)bwi_rows_weight(&rows, s, r);
            sums[0] += weight * (double)hits(call, &rows, r);
            sums[1] += weight * (double)numbers;
        }
    }
    return BW_OK;
}

static int64_t sum_count(const bw_node *node)
{
    (void)node;
    return 2;
}

const bwi_op bwi_op_accuracy = {.name = "accuracy",
                                .flags = BWI_OP_SUMS | BWI_OP_NO_GRADIENT,
                                .layout = BWI_LAYOUT_CHANNELS_LAST,
                                .shape = shape,
                                .sum_count = sum_count,
                                .statistics = statistics};
