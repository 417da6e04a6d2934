/*
 * Along one axis or all. reduce: sum or mean; reduce_extreme: largest or smallest, where equal ones share the difference
 * evenly. l2_normalize: y = x inverse, inverse = 1 / |x| but at most 1e7 (Keras); dx = inverse (dy - y sum(y dy)) where it is
 * not at that bound.
 */
#include "op/op.h"

#include <math.h>

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

static bwi_around around_of(const bw_node *node)
{
    const bwi_shape *in = &node->input[0]->shape;
    int axis = attributes_of(node)->axis;
    return axis < 0 ? (bwi_around){1, bwi_shape_count(in), 1} : bwi_shape_around(in, axis);
}

/* ---- Sum and mean ---- */

static double divisor_of(const bw_node *node, const bwi_around *r)
{
    return attributes_of(node)->kind == BWI_REDUCE_MEAN ? (double)r->extent : 1;
}

static bw_status sum_forward(const bwi_call *call, const bwi_tile *tile)
{
    (void)tile;
    bwi_around r = around_of(call->node);
    double divisor = divisor_of(call->node, &r);
    const float *x = call->src[0];
    float *y = call->dst;
    for (int64_t o = 0; o < r.outer * call->samples; o++, x += r.extent * r.inner, y += r.inner) {
        for (int64_t j = 0; j < r.inner; j++) {
            double sum = 0;
            for (int64_t i = 0; i < r.extent; i++) {
                sum += (double)x[i * r.inner + j];
            }
            y[j] = (float)(sum / divisor);
        }
    }
    return BW_OK;
}

static bw_status sum_backward(const bwi_call *call, const bwi_tile *tile)
{
    (void)tile;
    bwi_around r = around_of(call->node);
    const float factor = (float)(1 / divisor_of(call->node, &r)), *dy = call->diff_dst;
    float *dx = call->diff_src[0];
    for (int64_t o = 0; o < r.outer * call->samples; o++, dx += r.extent * r.inner, dy += r.inner) {
        for (int64_t i = 0; i < r.extent; i++) {
            for (int64_t j = 0; j < r.inner; j++) {
                dx[i * r.inner + j] = dy[j] * factor;
            }
        }
    }
    return BW_OK;
}

const bwi_op bwi_op_reduce = {
    .name = "reduce", .layout = BWI_LAYOUT_CHANNELS_LAST, .shape = shape, .forward = sum_forward, .backward = sum_backward};

/* ---- Largest and smallest ---- */

/* NaN wins. */
static bool beats(bwi_reduce_kind kind, float x, float than)
{
    return than == than && (x != x || (kind == BWI_REDUCE_MAX ? x > than : x < than));
}

static bw_status extreme_forward(const bwi_call *call, const bwi_tile *tile)
{
    (void)tile;
    bwi_reduce_kind kind = attributes_of(call->node)->kind;
    bwi_around r = around_of(call->node);
    const float *x = call->src[0];
    float *y = call->dst;
    for (int64_t o = 0; o < r.outer * call->samples; o++, x += r.extent * r.inner, y += r.inner) {
        for (int64_t j = 0; j < r.inner; j++) {
            float best = x[j];
            for (int64_t i = 1; i < r.extent; i++) {
                best = beats(kind, x[i * r.inner + j], best) ? x[i * r.inner + j] : best;
            }
            y[j] = best;
        }
    }
    return BW_OK;
}

static bw_status extreme_backward(const bwi_call *call, const bwi_tile *tile)
{
    (void)tile;
    bwi_around r = around_of(call->node);
    const float *x = call->src[0], *y = call->dst, *dy = call->diff_dst;
    float *dx = call->diff_src[0];
    for (int64_t o = 0; o < r.outer * call->samples; o++) {
        for (int64_t j = 0; j < r.inner; j++) {
            int64_t equal = 0;
            for (int64_t i = 0; i < r.extent; i++) {
                equal += x[i * r.inner + j] == y[j];
            }
            float share = equal ? dy[j] / (float)equal : 0;
            for (int64_t i = 0; i < r.extent; i++) {
                dx[i * r.inner + j] = x[i * r.inner + j] == y[j] ? share : 0;
            }
        }
        x += r.extent * r.inner;
        dx += r.extent * r.inner;
        y += r.inner;
        dy += r.inner;
    }
    return BW_OK;
}

const bwi_op bwi_op_reduce_extreme = {.name = "reduce_extreme",
                                      .backward_reads = BWI_READS_SRC | BWI_READS_DST,
                                      .layout = BWI_LAYOUT_CHANNELS_LAST,
                                      .shape = shape,
                                      .forward = extreme_forward,
                                      .backward = extreme_backward};

/* ---- Length one ---- */

static const double LARGEST_INVERSE = 1e7;

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

/* The inverse length of a column. */
static double inverse_of(const bwi_around *r, const float *x)
{
    double squares = 0;
    for (int64_t i = 0; i < r->extent; i++) {
        squares += (double)x[i * r->inner] * (double)x[i * r->inner];
    }
    return fmin(1 / sqrt(squares), LARGEST_INVERSE);
}

static bw_status normalize_forward(const bwi_call *call, const bwi_tile *tile)
{
    (void)tile;
    const bwi_axis_attributes *a = call->node->attributes;
    bwi_around r = bwi_shape_around(&call->node->shape, a->axis);
    const float *x = call->src[0];
    float *y = call->dst;
    for (int64_t o = 0; o < r.outer * call->samples; o++, x += r.extent * r.inner, y += r.extent * r.inner) {
        for (int64_t j = 0; j < r.inner; j++) {
            float inverse = (float)inverse_of(&r, x + j);
            for (int64_t i = 0; i < r.extent; i++) {
                y[i * r.inner + j] = x[i * r.inner + j] * inverse;
            }
        }
    }
    return BW_OK;
}

static void normalize_column(const bwi_around *r, const float *x, const float *dy, float *dx)
{
    double inverse = inverse_of(r, x), dot = 0;
    for (int64_t i = 0; i < r->extent; i++) {
        dot += (double)x[i * r->inner] * (double)dy[i * r->inner];
    }
    double along = inverse < LARGEST_INVERSE ? dot * inverse * inverse : 0;
    for (int64_t i = 0; i < r->extent; i++) {
        dx[i * r->inner] = (float)(inverse * ((double)dy[i * r->inner] - (double)x[i * r->inner] * along));
    }
}

static bw_status normalize_backward(const bwi_call *call, const bwi_tile *tile)
{
    (void)tile;
    const bwi_axis_attributes *a = call->node->attributes;
    bwi_around r = bwi_shape_around(&call->node->shape, a->axis);
    int64_t step = r.extent * r.inner;
    const float *x = call->src[0], *dy = call->diff_dst;
    float *dx = call->diff_src[0];
    for (int64_t o = 0; o < r.outer * call->samples; o++) {
        for (int64_t j = 0; j < r.inner; j++) {
            normalize_column(&r, x + o * step + j, dy + o * step + j, dx + o * step + j);
        }
    }
    return BW_OK;
}

const bwi_op bwi_op_l2_normalize = {.name = "l2_normalize",
                                    .flags = BWI_OP_BACKWARD_IN_PLACE,
                                    .backward_reads = BWI_READS_SRC,
                                    .layout = BWI_LAYOUT_CHANNELS_LAST,
                                    .shape = normalize_shape,
                                    .forward = normalize_forward,
                                    .backward = normalize_backward};
