/* softmax over any axis: y = exp(x - max) / sum exp(x - max); dx = y (dy - sum y dy), sums and maxima by columns. */
#include "op/op.h"

#include <string.h>

static int axis_of(const bw_node *node)
{
    return ((const bwi_axis_attributes *)node->attributes)->axis;
}

static bw_status shape(bwi_graph *graph, bw_node *node)
{
    bw_status status = bwi_shape_like_input(graph, node);
    if (status == BW_OK && (axis_of(node) < 0 || axis_of(node) >= node->shape.ndim)) {
        status = bwi_fail(graph->ctx, BW_INVALID_ARGUMENT, "layer %s: softmax: there is no axis %d among %d", node->name,
                          axis_of(node), node->shape.ndim);
    }
    return status;
}

/* Largest, then sum, of each column. */
static bw_status prepare(bwi_prepare *p)
{
    p->scratch_bytes = (size_t)bwi_shape_around(&p->node->shape, axis_of(p->node)).inner * sizeof(float);
    return BW_OK;
}

static void columns_forward(const bwi_call *call, const bwi_around *r, const float *x, float *y, float *column)
{
    static const float none[3] = {0, 0, 0};
    memcpy(column, x, (size_t)r->inner * sizeof *column);
    for (int64_t i = 1; i < r->extent; i++) {
        const float *from = x + i * r->inner;
        for (int64_t j = 0; j < r->inner; j++) {
            column[j] = from[j] > column[j] ? from[j] : column[j];
        }
    }
    for (int64_t i = 0; i < r->extent; i++) {
        for (int64_t j = 0; j < r->inner; j++) {
            y[i * r->inner + j] = x[i * r->inner + j] - column[j];
        }
    }
    call->kernels->activate(BWI_EXPONENTIAL, none, r->extent * r->inner, y, y);
    memset(column, 0, (size_t)r->inner * sizeof *column);
    for (int64_t i = 0; i < r->extent; i++) {
        call->kernels->add(r->inner, y + i * r->inner, column);
    }
    for (int64_t i = 0; i < r->extent; i++) {
        for (int64_t j = 0; j < r->inner; j++) {
            y[i * r->inner + j] /= column[j];
        }
    }
}

static bw_status forward(const bwi_call *call, const bwi_tile *tile)
{
    (void)tile;
    bwi_around r = bwi_shape_around(&call->node->shape, axis_of(call->node));
    const float *x = call->src[0];
    float *y = call->dst;
    for (int64_t o = 0; o < r.outer * call->samples; o++) {
        columns_forward(call, &r, x + o * r.extent * r.inner, y + o * r.extent * r.inner, call->scratch);
    }
    return BW_OK;
}

static void columns_backward(const bwi_around *r, const float *y, const float *dy, float *dx, float *column)
{
    memset(column, 0, (size_t)r->inner * sizeof *column);
    for (int64_t i = 0; i < r->extent; i++) {
        for (int64_t j = 0; j < r->inner; j++) {
            column[j] += y[i * r->inner + j] * dy[i * r->inner + j];
        }
    }
    for (int64_t i = 0; i < r->extent; i++) {
        for (int64_t j = 0; j < r->inner; j++) {
            dx[i * r->inner + j] = y[i * r->inner + j] * (dy[i * r->inner + j] - column[j]);
        }
    }
}

static bw_status backward(const bwi_call *call, const bwi_tile *tile)
{
    (void)tile;
    bwi_around r = bwi_shape_around(&call->node->shape, axis_of(call->node));
    const float *y = call->dst, *dy = call->diff_dst;
    float *dx = call->diff_src[0];
    int64_t count = r.extent * r.inner;
    for (int64_t o = 0; o < r.outer * call->samples; o++) {
        columns_backward(&r, y + o * count, dy + o * count, dx + o * count, call->scratch);
    }
    return BW_OK;
}

const bwi_op bwi_op_softmax_axis = {.name = "softmax_axis",
                                    .flags = BWI_OP_BACKWARD_IN_PLACE,
                                    .backward_reads = BWI_READS_DST,
                                    .layout = BWI_LAYOUT_CHANNELS_LAST,
                                    .shape = shape,
                                    .prepare = prepare,
                                    .forward = forward,
                                    .backward = backward};
