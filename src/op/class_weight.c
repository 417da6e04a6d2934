/*
 * class_weight: a weight for each row of the target by its class, times the sample's weight if there is one. The class is a
 * label, or the largest of a row's numbers, or the one number of a row, rounded; classes that are not listed weigh 1. When not
 * training every class weighs 1, as in Keras. Inputs: target, and optionally weights.
 */
#include "op/op.h"

/* The number of numbers in a row of the target; 1 if it holds labels. */
static int64_t width_of(const bw_node *node)
{
    const bw_node *target = node->input[0];
    return target->dtype == BW_I32 || target->shape.ndim == 0 ? 1 : target->shape.extent[target->shape.ndim - 1];
}

static bw_status shape(bwi_graph *graph, bw_node *node)
{
    node->shape = node->input[0]->shape;
    if (node->input[0]->dtype != BW_I32 && node->shape.ndim > 0) {
        node->shape.ndim--;
    }
    if (node->inputs > 1) {
        int64_t rows = bwi_shape_count(&node->shape), weights = bwi_shape_count(&node->input[1]->shape);
        char found[160];
        if (weights != 1 && rows != 1 && weights != rows) {
            return bwi_fail(graph->ctx, BW_INVALID_ARGUMENT,
                            "class_weight: expected one sample weight or %lld, one for each target, got %s", (long long)rows,
                            bwi_format_shape(found, node->input[1]->shape.ndim, node->input[1]->shape.extent));
        }
        node->shape = weights > rows ? node->input[1]->shape : node->shape;
    }
    return BW_OK;
}

/* Without classes every row weighs 1. */
static void weigh(const bwi_call *call, int64_t classes)
{
    const bwi_class_weight_attributes *a = call->node->attributes;
    const bw_node *target = call->node->input[0];
    bool labels = target->dtype == BW_I32, weighted = call->node->inputs > 1;
    bwi_class_weighting c = {.samples = call->samples,
                             .each = bwi_shape_count(&call->node->shape),
                             .rows = bwi_shape_count(&target->shape) / width_of(call->node),
                             .width = width_of(call->node),
                             .weights = weighted ? bwi_shape_count(&call->node->input[1]->shape) : 0,
                             .classes = classes,
                             .by_class = a->weight};
    call->kernels->elementwise->class_weight(&c, labels ? NULL : call->src[0], labels ? call->src[0] : NULL,
                                             weighted ? call->src[1] : NULL, call->dst);
}

static bw_status forward(const bwi_call *call, const bwi_tile *tile)
{
    (void)tile;
    const bwi_class_weight_attributes *a = call->node->attributes;
    weigh(call, a->count);
    return BW_OK;
}

static bw_status inference(const bwi_call *call, const bwi_tile *tile)
{
    (void)tile;
    weigh(call, 0);
    return BW_OK;
}

const bwi_op bwi_op_class_weight = {.name = "class_weight",
                                    .flags = BWI_OP_NO_GRADIENT,
                                    .layout = BWI_LAYOUT_CHANNELS_LAST,
                                    .shape = shape,
                                    .forward = forward,
                                    .inference = inference};
