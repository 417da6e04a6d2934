/*
 * Inputs of one shape, element by element. add: (x0 + x1 + ...) scale, or (x0 - x1 - ...) scale. binary: the product, quotient,
 * larger or smaller of two; where two are equal, each gets half of the difference, as in JAX and PyTorch.
 */
#include "op/op.h"

#include <string.h>

/* ---- add ---- */

static void scale_by(int64_t count, float factor, const float *x, float *y)
{
    for (int64_t i = 0; i < count; i++) {
        y[i] = x[i] * factor;
    }
}

/* Element by element, as y may lie in the place of several of the inputs if they are the same. */
static void add_many(const bwi_call *call, int64_t count, float sign, float scale, float *y)
{
    for (int64_t i = 0; i < count; i++) {
        float sum = ((const float *)call->src[0])[i];
        for (int k = 1; k < call->node->inputs; k++) {
            sum += sign * ((const float *)call->src[k])[i];
        }
        y[i] = sum * scale;
    }
}

static bw_status add_forward(const bwi_call *call, const bwi_tile *tile)
{
    (void)tile;
    const bwi_add_attributes *a = call->node->attributes;
    int64_t count = call->floats;
    float *y = call->dst;
    if (call->node->inputs != 2 || a->subtract || a->scale != 1) {
        add_many(call, count, a->subtract ? -1 : 1, a->scale, y);
        return BW_OK;
    }
    if (call->src[0] != call->dst) {
        memcpy(y, call->src[0], (size_t)count * sizeof *y);
    }
    call->kernels->add(count, call->src[1], y);
    return BW_OK;
}

/* The first last: it may take the difference's place. */
static bw_status add_backward(const bwi_call *call, const bwi_tile *tile)
{
    (void)tile;
    const bwi_add_attributes *a = call->node->attributes;
    int64_t count = call->floats;
    for (int k = call->node->inputs - 1; k >= 0; k--) {
        float factor = k > 0 && a->subtract ? -a->scale : a->scale;
        if (!call->diff_src[k]) {
            continue;
        }
        if (factor != 1) {
            scale_by(count, factor, call->diff_dst, call->diff_src[k]);
        } else if (call->diff_src[k] != call->diff_dst) {
            memcpy(call->diff_src[k], call->diff_dst, (size_t)count * sizeof(float));
        }
    }
    return BW_OK;
}

const bwi_op bwi_op_add = {.name = "add",
                           .flags = BWI_OP_IN_PLACE | BWI_OP_BACKWARD_IN_PLACE,
                           .layout = BWI_LAYOUT_SAME,
                           .shape = bwi_shape_like_inputs,
                           .forward = add_forward,
                           .backward = add_backward};

/* ---- binary ---- */

static bw_status binary_shape(bwi_graph *graph, bw_node *node)
{
    if (node->inputs != 2) {
        return bwi_fail(graph->ctx, BW_INVALID_ARGUMENT, "layer %s: %s: expected two inputs, got %d", node->name, node->op->name,
                        node->inputs);
    }
    return bwi_shape_like_inputs(graph, node);
}

static bw_status binary_forward(const bwi_call *call, const bwi_tile *tile)
{
    (void)tile;
    const bwi_binary_attributes *b = call->node->attributes;
    int64_t count = call->floats;
    const float *x = call->src[0], *z = call->src[1];
    float *y = call->dst;
    switch (b->kind) {
    case BWI_MULTIPLY:
        for (int64_t i = 0; i < count; i++) {
            y[i] = x[i] * z[i];
        }
        break;
    case BWI_DIVIDE:
        for (int64_t i = 0; i < count; i++) {
            y[i] = x[i] / z[i];
        }
        break;
    case BWI_MAXIMUM:
        for (int64_t i = 0; i < count; i++) {
            y[i] = x[i] != x[i] || x[i] > z[i] ? x[i] : z[i];
        }
        break;
    default:
        for (int64_t i = 0; i < count; i++) {
            y[i] = x[i] != x[i] || x[i] < z[i] ? x[i] : z[i];
        }
        break;
    }
    bwi_image image = bwi_node_image(call->node, call->samples);
    bwi_image_clear_padding(&image, y); /* 0 / 0 */
    return BW_OK;
}

/* The share of the difference that the first gets: 1, 1/2 or 0. */
static float share(bwi_binary_kind kind, float x, float z)
{
    if (x == z) {
        return 0.5f;
    }
    return (kind == BWI_MAXIMUM ? x > z : x < z) ? 1 : 0;
}

static void binary_differences(bwi_binary_kind kind, float x, float z, float dy, float *dx, float *dz)
{
    switch (kind) {
    case BWI_MULTIPLY:
        *dx = dy * z;
        *dz = dy * x;
        break;
    case BWI_DIVIDE:
        *dx = dy / z;
        *dz = -dy * x / z / z;
        break;
    default:
        *dx = dy * share(kind, x, z);
        *dz = dy - *dx;
        break;
    }
}

static bw_status binary_backward(const bwi_call *call, const bwi_tile *tile)
{
    (void)tile;
    const bwi_binary_attributes *b = call->node->attributes;
    int64_t count = call->floats;
    const float *x = call->src[0], *z = call->src[1], *dy = call->diff_dst;
    float *dx = call->diff_src[0], *dz = call->diff_src[1];
    for (int64_t i = 0; i < count; i++) {
        float first, second;
        binary_differences(b->kind, x[i], z[i], dy[i], &first, &second);
        if (dx) {
            dx[i] = first;
        }
        if (dz) {
            dz[i] = second;
        }
    }
    bwi_image image = bwi_node_image(call->node, call->samples);
    for (int k = 0; k < 2; k++) {
        if (call->diff_src[k]) {
            bwi_image_clear_padding(&image, call->diff_src[k]);
        }
    }
    return BW_OK;
}

const bwi_op bwi_op_binary = {.name = "binary",
                              .flags = BWI_OP_IN_PLACE | BWI_OP_BACKWARD_IN_PLACE,
                              .backward_reads = BWI_READS_SRC,
                              .layout = BWI_LAYOUT_SAME,
                              .shape = binary_shape,
                              .forward = binary_forward,
                              .backward = binary_backward};
