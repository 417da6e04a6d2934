/*
 * pad2d: adds zeros around an image or, where an amount is negative, cuts rows or columns off. Backward is the same with the
 * amounts negated. Rows are copied as they lie, in any block.
 */
#include "op/internal.h"

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

static bw_status forward(const bwi_call *call, const bwi_tile *tile)
{
    (void)tile;
    const bwi_pad2d_attributes *a = call->node->attributes;
    bwi_image x = bwi_node_image(call->node->input[0], call->samples), y = bwi_node_image(call->node, call->samples);
    call->kernels->arrange->pad(&x, &y, a->amount[0][0], a->amount[1][0], call->src[0], call->dst);
    return BW_OK;
}

static bw_status backward(const bwi_call *call, const bwi_tile *tile)
{
    (void)tile;
    const bwi_pad2d_attributes *a = call->node->attributes;
    bwi_image x = bwi_node_image(call->node->input[0], call->samples), y = bwi_node_image(call->node, call->samples);
    call->kernels->arrange->pad(&y, &x, -a->amount[0][0], -a->amount[1][0], call->diff_dst, call->diff_src[0]);
    return BW_OK;
}

const bwi_op bwi_op_pad2d = {.name = "pad2d", .layout = BWI_LAYOUT_SAME, .shape = shape, .forward = forward, .backward = backward};

const bwi_pad2d_attributes *bwi_pad2d_of(const bw_node *node)
{
    return node->op == &bwi_op_pad2d ? node->attributes : NULL;
}
