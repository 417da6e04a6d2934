/*
 * dot: the sum over one axis of each of two inputs, sample by sample. With the first as [a][K][b] around its axis and the second as
 * [c][K][d], y[a][b][c][d] = sum over k of x[a][k][b] z[c][k][d]. The matrix product is a special case.
 */
#include "op/op.h"

static const bwi_dot_attributes *attributes_of(const bw_node *node)
{
    return node->attributes;
}

static void left_over(const bwi_shape *in, int axis, bwi_shape *out)
{
    for (int i = 0; i < in->ndim; i++) {
        if (i != axis) {
            out->extent[out->ndim++] = in->extent[i];
        }
    }
}

/* Both axes vanish, and the remaining ones of x come before those of z. Two vectors give one number, which keeps an axis of
 * extent 1, as in Keras. */
static bw_status shape(bwi_graph *graph, bw_node *node)
{
    const bwi_dot_attributes *a = attributes_of(node);
    const bw_node *x = node->input[0], *z = node->inputs == 2 ? node->input[1] : NULL;
    char first[160], second[160];
    if (!z || x->dtype != BW_F32 || z->dtype != BW_F32) {
        return bwi_fail(graph->ctx, BW_INVALID_ARGUMENT, "layer %s: dot: expected two float32 inputs, got %d inputs", node->name,
                        node->inputs);
    }
    bwi_format_shape(first, x->shape.ndim, x->shape.extent);
    bwi_format_shape(second, z->shape.ndim, z->shape.extent);
    if (a->axis[0] < 0 || a->axis[0] >= x->shape.ndim || a->axis[1] < 0 || a->axis[1] >= z->shape.ndim) {
        return bwi_fail(graph->ctx, BW_INVALID_ARGUMENT,
                        "layer %s: dot: shapes %s and %s have no axes %d and %d (the batch is axis 0)", node->name, first, second,
                        a->axis[0] + 1, a->axis[1] + 1);
    }
    if (x->shape.extent[a->axis[0]] != z->shape.extent[a->axis[1]]) {
        return bwi_fail(graph->ctx, BW_INVALID_ARGUMENT,
                        "layer %s: dot: axis %d of %s and axis %d of %s (the batch is axis 0) have %lld and %lld values",
                        node->name, a->axis[0] + 1, first, a->axis[1] + 1, second, (long long)x->shape.extent[a->axis[0]],
                        (long long)z->shape.extent[a->axis[1]]);
    }
    if (x->shape.ndim + z->shape.ndim - 2 >= BW_MAX_NDIM) {
        return bwi_fail(graph->ctx, BW_INVALID_ARGUMENT, "layer %s: dot: shapes %s and %s leave more than %d axes", node->name,
                        first, second, BW_MAX_NDIM - 1);
    }
    node->shape = (bwi_shape){.ndim = 0};
    left_over(&x->shape, a->axis[0], &node->shape);
    left_over(&z->shape, a->axis[1], &node->shape);
    if (node->shape.ndim == 0) {
        node->shape = (bwi_shape){.ndim = 1, .extent = {1}};
    }
    return BW_OK;
}

static bwi_dot dot_of(const bw_node *node, int64_t samples)
{
    const bwi_dot_attributes *a = attributes_of(node);
    return (bwi_dot){.samples = samples,
                     .x = bwi_shape_around(&node->input[0]->shape, a->axis[0]),
                     .z = bwi_shape_around(&node->input[1]->shape, a->axis[1])};
}

static bw_status forward(const bwi_call *call, const bwi_tile *tile)
{
    (void)tile;
    bwi_dot dot = dot_of(call->node, call->samples);
    call->kernels->reduce->dot(&dot, call->src[0], call->src[1], call->dst);
    return BW_OK;
}

static bw_status backward(const bwi_call *call, const bwi_tile *tile)
{
    (void)tile;
    bwi_dot dot = dot_of(call->node, call->samples);
    call->kernels->reduce->dot_backward(&dot, call->src[0], call->src[1], call->diff_dst, call->diff_src[0], call->diff_src[1]);
    return BW_OK;
}

static double flops(const bw_node *node)
{
    bwi_dot dot = dot_of(node, 1);
    double rows = (double)(dot.x.outer * dot.x.inner), columns = (double)(dot.z.outer * dot.z.inner);
    return 2 * rows * columns * (double)dot.x.extent;
}

const bwi_op bwi_op_dot = {.name = "dot",
                           .backward_reads = BWI_READS_SRC,
                           .layout = BWI_LAYOUT_CHANNELS_LAST,
                           .shape = shape,
                           .forward = forward,
                           .backward = backward,
                           .flops = flops};
