/*
 * Reductions along one axis or all. reduce: sum or mean; reduce_extreme: largest or smallest, where equal ones share the difference
 * evenly. l2_normalize: scales columns to length one.
 */
#include "op/internal.h"

static const bwi_reduce_attributes *attributes_of(const bw_node *node)
{
    return node->attributes;
}

static bw_status shape(bwi_graph *graph, bw_node *node)
{
    const bwi_reduce_attributes *a = attributes_of(node);
    bw_status status = bwi_shape_like_input(graph, node);
    if (status != BW_OK) {
        return status;
    }
    if (a->axis < -1 || a->axis >= node->shape.ndim) {
        return bwi_fail(graph->ctx, BW_INVALID_ARGUMENT, "layer %s: %s: there is no axis %d among %d", node->name, node->op->name,
                        a->axis, node->shape.ndim);
    }
    int kept = 0;
    for (int i = 0; i < node->shape.ndim; i++) {
        bool reduced = a->axis < 0 || a->axis == i;
        if (!reduced || a->keepdims) {
            node->shape.extent[kept++] = reduced ? 1 : node->shape.extent[i];
        }
    }
    node->shape.ndim = kept;
    return BW_OK;
}

/* The axis, seen over all samples of a tile. */
static bwi_around around_of(const bwi_call *call)
{
    const bwi_shape *in = &call->node->input[0]->shape;
    int axis = attributes_of(call->node)->axis;
    bwi_around around = axis < 0 ? (bwi_around){1, bwi_shape_count(in), 1} : bwi_shape_around(in, axis);
    around.outer *= call->samples;
    return around;
}

/* ---- Sum and mean ---- */

static double divisor_of(const bw_node *node, const bwi_around *around)
{
    return attributes_of(node)->kind == BWI_REDUCE_MEAN ? (double)around->extent : 1;
}

static bw_status sum_forward(const bwi_call *call, const bwi_tile *tile)
{
    (void)tile;
    bwi_around around = around_of(call);
    call->kernels->sum_axis(&around, divisor_of(call->node, &around), call->src[0], call->dst);
    return BW_OK;
}

static bw_status sum_backward(const bwi_call *call, const bwi_tile *tile)
{
    (void)tile;
    bwi_around around = around_of(call);
    float factor = (float)(1 / divisor_of(call->node, &around));
    call->kernels->reduce->sum_backward(&around, factor, call->diff_dst, call->diff_src[0]);
    return BW_OK;
}

const bwi_op bwi_op_reduce = {
    .name = "reduce", .layout = BWI_LAYOUT_CHANNELS_LAST, .shape = shape, .forward = sum_forward, .backward = sum_backward};

/* ---- Largest and smallest ---- */

static bw_status extreme_forward(const bwi_call *call, const bwi_tile *tile)
{
    (void)tile;
    bwi_around around = around_of(call);
    call->kernels->reduce->extreme(&around, attributes_of(call->node)->kind == BWI_REDUCE_MAX, call->src[0], call->dst);
    return BW_OK;
}

static bw_status extreme_backward(const bwi_call *call, const bwi_tile *tile)
{
    (void)tile;
    bwi_around around = around_of(call);
    call->kernels->reduce->extreme_backward(&around, call->src[0], call->dst, call->diff_dst, call->diff_src[0]);
    return BW_OK;
}

const bwi_op bwi_op_reduce_extreme = {.name = "reduce_extreme",
                                      .backward_reads = BWI_READS_SRC | BWI_READS_DST,
                                      .layout = BWI_LAYOUT_CHANNELS_LAST,
                                      .shape = shape,
                                      .forward = extreme_forward,
                                      .backward = extreme_backward};

/* ---- Length one ---- */

static bw_status normalize_shape(bwi_graph *graph, bw_node *node)
{
    const bwi_axis_attributes *a = node->attributes;
    bw_status status = bwi_shape_like_input(graph, node);
    if (status == BW_OK && (a->axis < 0 || a->axis >= node->shape.ndim)) {
        status = bwi_fail(graph->ctx, BW_INVALID_ARGUMENT, "layer %s: normalize: there is no axis %d among %d", node->name, a->axis,
                          node->shape.ndim);
    }
    return status;
}

static bwi_around normalized(const bwi_call *call)
{
    const bwi_axis_attributes *a = call->node->attributes;
    bwi_around around = bwi_shape_around(&call->node->shape, a->axis);
    around.outer *= call->samples;
    return around;
}

static bw_status normalize_forward(const bwi_call *call, const bwi_tile *tile)
{
    (void)tile;
    bwi_around around = normalized(call);
    call->kernels->reduce->l2_normalize(&around, call->src[0], call->dst);
    return BW_OK;
}

static bw_status normalize_backward(const bwi_call *call, const bwi_tile *tile)
{
    (void)tile;
    bwi_around around = normalized(call);
    call->kernels->reduce->l2_normalize_backward(&around, call->src[0], call->diff_dst, call->diff_src[0]);
    return BW_OK;
}

const bwi_op bwi_op_l2_normalize = {.name = "l2_normalize",
                                    .flags = BWI_OP_BACKWARD_IN_PLACE,
                                    .backward_reads = BWI_READS_SRC,
                                    .layout = BWI_LAYOUT_CHANNELS_LAST,
                                    .shape = normalize_shape,
                                    .forward = normalize_forward,
                                    .backward = normalize_backward};
