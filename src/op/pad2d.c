/*
 * pad2d: zeros around an image, or, where an amount is negative, rows or columns cut off. Backward is the same with the
 * amounts negated. Rows are copied as they lie, in any block.
 */
#include "op/op.h"

#include <string.h>

static bw_status shape(bwi_graph *graph, bw_node *node)
{
    const bwi_pad2d_attributes *a = node->attributes;
    const bwi_shape *in = &node->input[0]->shape;
    char text[160];
    if (in->ndim != 3) {
        return bwi_fail(graph->ctx, BW_INVALID_ARGUMENT, "layer %s: expected an image (height, width, channels), got %s",
                        node->name, bwi_format_shape(text, in->ndim, in->extent));
    }
    node->shape = *in;
    for (int i = 0; i < 2; i++) {
        node->shape.extent[i] += a->amount[i][0] + a->amount[i][1];
        if (node->shape.extent[i] < 1) {
            return bwi_fail(graph->ctx, BW_INVALID_ARGUMENT,
                            "layer %s: nothing is left of %s after cropping %lld and %lld along axis %d", node->name,
                            bwi_format_shape(text, in->ndim, in->extent), (long long)-a->amount[i][0], (long long)-a->amount[i][1],
                            i + 1);
        }
    }
    return bwi_shape_check(graph, node);
}

/* Copies what both planes have; y's pixel (h, w) is x's (h - top, w - left). The rest of y is zero. */
static void move_plane(const bwi_image *x_image, const bwi_image *y_image, int64_t top, int64_t left, const float *x, float *y)
{
    int64_t step = x_image->block, x_row = x_image->w * step, y_row = y_image->w * step;
    int64_t first = left > 0 ? left : 0, last = left + x_image->w < y_image->w ? left + x_image->w : y_image->w;
    for (int64_t h = 0; h < y_image->h; h++, y += y_row) {
        if (h < top || h >= top + x_image->h || last <= first) {
            memset(y, 0, (size_t)y_row * sizeof *y);
            continue;
        }
        memset(y, 0, (size_t)(first * step) * sizeof *y);
        memcpy(y + first * step, x + (h - top) * x_row + (first - left) * step, (size_t)((last - first) * step) * sizeof *y);
        memset(y + last * step, 0, (size_t)((y_image->w - last) * step) * sizeof *y);
    }
}

static void move(const bw_node *from, const bw_node *to, int64_t samples, int64_t top, int64_t left, const float *x, float *y)
{
    bwi_image x_image = bwi_node_image(from, samples), y_image = bwi_node_image(to, samples);
    int64_t planes = samples * bwi_image_blocks(&x_image), block = x_image.block;
    for (int64_t p = 0; p < planes; p++) {
        move_plane(&x_image, &y_image, top, left, x + p * x_image.h * x_image.w * block, y + p * y_image.h * y_image.w * block);
    }
}

static bw_status forward(const bwi_call *call, const bwi_tile *tile)
{
    (void)tile;
    const bwi_pad2d_attributes *a = call->node->attributes;
    move(call->node->input[0], call->node, call->samples, a->amount[0][0], a->amount[1][0], call->src[0], call->dst);
    return BW_OK;
}

static bw_status backward(const bwi_call *call, const bwi_tile *tile)
{
    (void)tile;
    const bwi_pad2d_attributes *a = call->node->attributes;
    move(call->node, call->node->input[0], call->samples, -a->amount[0][0], -a->amount[1][0], call->diff_dst, call->diff_src[0]);
    return BW_OK;
}

const bwi_op bwi_op_pad2d = {.name = "pad2d", .layout = BWI_LAYOUT_SAME, .shape = shape, .forward = forward, .backward = backward};

const bwi_pad2d_attributes *bwi_pad2d_of(const bw_node *node)
{
    return node->op == &bwi_op_pad2d ? node->attributes : NULL;
}
