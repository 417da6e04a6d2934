/* accuracy: sums[0] counts rows whose prediction is right, sums[1] all rows. Inputs: prediction (any order-preserving
 * form: logits do), target. */
#include "op/op.h"

static int64_t width_of(const bw_node *node)
{
    const bwi_shape *s = &node->input[0]->shape;
    return s->rank ? s->extent[s->rank - 1] : 1;
}

static bw_status shape(bwi_graph *graph, bw_node *node)
{
    const bwi_accuracy_attributes *a = node->attributes;
    const bwi_shape *prediction = &node->input[0]->shape, *target = &node->input[1]->shape;
    int64_t expected = bwi_shape_count(prediction) / (a->kind == BWI_ACCURACY_SPARSE ? width_of(node) : 1);
    if (bwi_shape_count(target) != expected) {
        char p[160], t[160];
        return bwi_fail(graph->ctx, BW_INVALID_ARGUMENT, "accuracy: targets of shape %s do not fit the output %s",
                        bwi_format_shape(t, target->rank, target->extent),
                        bwi_format_shape(p, prediction->rank, prediction->extent));
    }
    node->shape = (bwi_shape){.rank = 0};
    return BW_OK;
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

static bool hit(const bwi_call *call, bwi_accuracy_kind kind, int64_t row, int64_t width)
{
    const float *prediction = (const float *)call->src[0] + row * width;
    switch (kind) {
    case BWI_ACCURACY_SPARSE:
        return largest(prediction, width) == ((const int32_t *)call->src[1])[row];
    case BWI_ACCURACY_CATEGORICAL:
        return largest(prediction, width) == largest((const float *)call->src[1] + row * width, width);
    case BWI_ACCURACY_BINARY:
        break;
    }
    return (prediction[0] > 0.5F) == (((const float *)call->src[1])[row] > 0.5F);
}

static bw_status statistics(const bwi_call *call, const bwi_tile *tile)
{
    const bwi_accuracy_attributes *a = call->node->attributes;
    int64_t width = a->kind == BWI_ACCURACY_BINARY ? 1 : width_of(call->node);
    int64_t rows = call->samples * (bwi_shape_count(&call->node->input[0]->shape) / width);
    double *sums = bwi_call_sums(call, tile);
    for (int64_t r = 0; r < rows; r++) {
        sums[0] += hit(call, a->kind, r, width);
    }
    sums[1] += (double)rows;
    return BW_OK;
}

static int64_t sum_count(const bw_node *node)
{
    (void)node;
    return 2;
}

const bwi_op bwi_op_accuracy = {.name = "accuracy",
                                .flags = BWI_OP_SUMS | BWI_OP_NO_GRADIENT,
                                .layout = BWI_LAYOUT_PLAIN,
                                .shape = shape,
                                .sum_count = sum_count,
                                .statistics = statistics};
