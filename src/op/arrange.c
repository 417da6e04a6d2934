/*
 * Ops that move values. broadcast repeats a smaller array over a larger shape; its difference is the sum over the repeats. slice
 * takes a part along one axis. concatenate joins its inputs along one axis.
 */
#include "op/internal.h"

/* ---- broadcast ---- */

static bw_status broadcast_shape(bwi_graph *graph, bw_node *node)
{
    const bwi_broadcast_attributes *a = node->attributes;
    bwi_shape both;
    char from[160], to[160];
    bw_status status = bwi_shape_like_input(graph, node);
    if (status == BW_OK && (!bwi_shape_broadcast(&node->shape, &a->shape, &both) || !bwi_shape_equal(&both, &a->shape))) {
        status = bwi_fail(graph->ctx, BW_INVALID_ARGUMENT, "layer %s: values of shape %s cannot be repeated to shape %s",
                          node->name, bwi_format_shape(from, node->shape.ndim, node->shape.extent),
                          bwi_format_shape(to, a->shape.ndim, a->shape.extent));
    }
    node->shape = a->shape;
    return status;
}

static bw_status broadcast_prepare(bwi_prepare *p)
{
    p->scratch_bytes = (size_t)bwi_shape_count(&p->node->input[0]->shape) * sizeof(double); /* sums */
    return BW_OK;
}

static bw_status broadcast_forward(const bwi_call *call, const bwi_tile *tile)
{
    (void)tile;
    bwi_spread spread = bwi_spread_over(&call->node->shape, &call->node->input[0]->shape);
    call->kernels->arrange->broadcast(&spread, call->samples, call->src[0], call->dst);
    return BW_OK;
}

static bw_status broadcast_backward(const bwi_call *call, const bwi_tile *tile)
{
    (void)tile;
    bwi_spread spread = bwi_spread_over(&call->node->shape, &call->node->input[0]->shape);
    call->kernels->arrange->broadcast_backward(&spread, call->samples, call->diff_dst, call->scratch, call->diff_src[0]);
    return BW_OK;
}

const bwi_op bwi_op_broadcast = {.name = "broadcast",
                                 .layout = BWI_LAYOUT_CHANNELS_LAST,
                                 .shape = broadcast_shape,
                                 .prepare = broadcast_prepare,
                                 .forward = broadcast_forward,
                                 .backward = broadcast_backward};

/* ---- slice ---- */

static bw_status slice_shape(bwi_graph *graph, bw_node *node)
{
    const bwi_slice_attributes *a = node->attributes;
    bw_status status = bwi_shape_like_input(graph, node);
    if (status != BW_OK) {
        return status;
    }
    if (a->axis < 0 || a->axis >= node->shape.ndim) {
        return bwi_fail(graph->ctx, BW_INVALID_ARGUMENT, "layer %s: slice: there is no axis %d among %d", node->name, a->axis,
                        node->shape.ndim);
    }
    int64_t extent = node->shape.extent[a->axis];
    if (a->start < 0 || a->count < 1 || a->start > extent || a->count > extent - a->start) {
        return bwi_fail(graph->ctx, BW_INVALID_ARGUMENT, "layer %s: slice: %lld from %lld on do not lie within an extent of %lld",
                        node->name, (long long)a->count, (long long)a->start, (long long)extent);
    }
    node->shape.extent[a->axis] = a->count;
    return BW_OK;
}

static bw_status slice_forward(const bwi_call *call, const bwi_tile *tile)
{
    (void)tile;
    const bwi_slice_attributes *a = call->node->attributes;
    bwi_around x = bwi_shape_around(&call->node->input[0]->shape, a->axis);
    int64_t part = a->count * x.inner;
    call->kernels->arrange->runs(x.outer * call->samples, part, x.extent * x.inner, bwi_floats_at(call->src[0], a->start * x.inner),
                                 part, call->dst);
    return BW_OK;
}

static bw_status slice_backward(const bwi_call *call, const bwi_tile *tile)
{
    (void)tile;
    const bwi_slice_attributes *a = call->node->attributes;
    bwi_around x = bwi_shape_around(&call->node->input[0]->shape, a->axis);
    int64_t part = a->count * x.inner, whole = x.extent * x.inner, count = x.outer * call->samples;
    call->kernels->memory->clear(call->diff_src[0], (size_t)(count * whole) * sizeof(float));
    call->kernels->arrange->runs(count, part, part, call->diff_dst, whole, bwi_floats_at(call->diff_src[0], a->start * x.inner));
    return BW_OK;
}

const bwi_op bwi_op_slice = {.name = "slice",
                             .layout = BWI_LAYOUT_CHANNELS_LAST,
                             .shape = slice_shape,
                             .forward = slice_forward,
                             .backward = slice_backward};

/* ---- concatenate ---- */

static int axis_of(const bw_node *node)
{
    return ((const bwi_axis_attributes *)node->attributes)->axis;
}

/* Whether `other` differs along the axis only. */
static bool fits(const bwi_shape *shape, const bwi_shape *other, int axis)
{
    bwi_shape alike = *other;
    if (alike.ndim == shape->ndim) {
        alike.extent[axis] = shape->extent[axis];
    }
    return bwi_shape_equal(&alike, shape);
}

/* The shapes agree except along the axis, where the extents add up. */
static bw_status concatenate_shape(bwi_graph *graph, bw_node *node)
{
    bw_status status = bwi_shape_like_input(graph, node);
    int axis = axis_of(node);
    if (status == BW_OK && (axis < 0 || axis >= node->shape.ndim)) {
        status = bwi_fail(graph->ctx, BW_INVALID_ARGUMENT, "layer %s: concatenate: there is no axis %d among %d", node->name, axis,
                          node->shape.ndim);
    }
    for (int k = 1; k < node->inputs && status == BW_OK; k++) {
        const bw_node *other = node->input[k];
        char a[160], b[160];
        if (other->dtype != BW_F32 || !fits(&node->shape, &other->shape, axis)) {
            status = bwi_fail(
                graph->ctx, BW_INVALID_ARGUMENT,
                "layer %s: concatenate: expected shapes that differ along axis %d only (the batch is axis 0), got %s and %s",
                node->name, axis + 1, bwi_format_shape(a, node->input[0]->shape.ndim, node->input[0]->shape.extent),
                bwi_format_shape(b, other->shape.ndim, other->shape.extent));
        } else if (__builtin_add_overflow(node->shape.extent[axis], other->shape.extent[axis], &node->shape.extent[axis])) {
            status = bwi_fail(graph->ctx, BW_INVALID_ARGUMENT, "layer %s: concatenate: too many values", node->name);
        }
    }
    return status;
}

/* Copies input k's runs, which begin at `start` along the axis, from `part` into the whole or, with `back`, out of it. */
static void copy_runs(const bwi_call *call, int k, int64_t start, void *part, void *whole, bool back)
{
    bwi_around own = bwi_shape_around(&call->node->input[k]->shape, axis_of(call->node));
    int64_t run = own.extent * own.inner, step = call->node->shape.extent[axis_of(call->node)] * own.inner;
    void *first = bwi_floats_at(whole, start * own.inner);
    call->kernels->arrange->runs(own.outer * call->samples, run, back ? step : run, back ? first : part, back ? run : step,
                                 back ? part : first);
}

static bw_status concatenate_forward(const bwi_call *call, const bwi_tile *tile)
{
    (void)tile;
    int64_t start = 0;
    for (int k = 0; k < call->node->inputs; k++) {
        copy_runs(call, k, start, call->src[k], call->dst, false);
        start += call->node->input[k]->shape.extent[axis_of(call->node)];
    }
    return BW_OK;
}

static bw_status concatenate_backward(const bwi_call *call, const bwi_tile *tile)
{
    (void)tile;
    int64_t start = 0;
    for (int k = 0; k < call->node->inputs; k++) {
        if (call->diff_src[k]) {
            copy_runs(call, k, start, call->diff_src[k], call->diff_dst, true);
        }
        start += call->node->input[k]->shape.extent[axis_of(call->node)];
    }
    return BW_OK;
}

const bwi_op bwi_op_concatenate = {.name = "concatenate",
                                   .layout = BWI_LAYOUT_CHANNELS_LAST,
                                   .shape = concatenate_shape,
                                   .forward = concatenate_forward,
                                   .backward = concatenate_backward};
