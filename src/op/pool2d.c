/*
 * maxpool2d: the largest of each window; backward sends the difference to the element that won, the first of equals.
 * relu_maxpool: ReLU and 2x2 pooling in one pass that keeps bit masks.
 * avgpool2d: the mean of those elements of each window that lie inside the image; backward shares the difference among them.
 * All may give another block than they get. A sequence (length, channels) is an image of height 1.
 */
#include "op/op.h"

static bw_status shape(bwi_graph *graph, bw_node *node)
{
    const bwi_pool2d_attributes *a = node->attributes;
    const bwi_shape *in = &node->input[0]->shape;
    char text[160];
    if (in->ndim != 3 && (in->ndim != 2 || a->window[0] != 1)) {
        return bwi_fail(graph->ctx, BW_INVALID_ARGUMENT, "layer %s: expected an image (height, width, channels), got %s",
                        node->name, bwi_format_shape(text, in->ndim, in->extent));
    }
    node->shape = *in;
    for (int i = 3 - in->ndim; i < 2; i++) {
        int64_t before, after, *out = &node->shape.extent[i + in->ndim - 3];
        bwi_pool_extent(in->extent[i + in->ndim - 3], a->window[i], a->strides[i], a->same, out, &before, &after);
        if (*out < 1) {
            return bwi_fail(graph->ctx, BW_INVALID_ARGUMENT, "layer %s: a window of %dx%d does not fit into %s", node->name,
                            (int)a->window[0], (int)a->window[1], bwi_format_shape(text, in->ndim, in->extent));
        }
    }
    return BW_OK;
}

/* The number of the element that won is kept in a byte. */
static bw_status max_shape(bwi_graph *graph, bw_node *node)
{
    const bwi_pool2d_attributes *a = node->attributes;
    if (a->window[0] * a->window[1] > 255) {
        return bwi_fail(graph->ctx, BW_UNIMPLEMENTED, "layer %s: max pooling windows have at most 255 elements, got %dx%d",
                        node->name, (int)a->window[0], (int)a->window[1]);
    }
    return shape(graph, node);
}

static bwi_pool_window window_of(const bw_node *node)
{
    const bwi_pool2d_attributes *a = node->attributes;
    bwi_pool_window window = {.h = a->window[0], .w = a->window[1], .stride_h = a->strides[0], .stride_w = a->strides[1]};
    int64_t h, w, c, out, after;
    bwi_shape_image(&node->input[0]->shape, &h, &w, &c);
    bwi_pool_extent(h, a->window[0], a->strides[0], a->same, &out, &window.pad_top, &after);
    bwi_pool_extent(w, a->window[1], a->strides[1], a->same, &out, &window.pad_left, &after);
    return window;
}

static bw_status prepare(bwi_prepare *p)
{
    bwi_image y = bwi_node_image(p->node, p->samples);
    p->workspace_bytes = (size_t)bwi_image_floats(&y);
    return BW_OK;
}

static bw_status forward(const bwi_call *call, const bwi_tile *tile)
{
    (void)tile;
    bwi_image x = bwi_node_image(call->node->input[0], call->samples), y = bwi_node_image(call->node, call->samples);
    bwi_pool_window window = window_of(call->node);
    call->kernels->maxpool_forward(&x, &y, &window, call->src[0], call->dst, call->workspace);
    return BW_OK;
}

static bw_status backward(const bwi_call *call, const bwi_tile *tile)
{
    (void)tile;
    bwi_image x = bwi_node_image(call->node->input[0], call->samples), y = bwi_node_image(call->node, call->samples);
    bwi_pool_window window = window_of(call->node);
    call->kernels->maxpool_backward(&x, &y, &window, call->diff_dst, call->workspace, call->diff_src[0]);
    return BW_OK;
}

const bwi_op bwi_op_maxpool2d = {.name = "maxpool2d",
                                 .backward_reads = BWI_READS_WORKSPACE,
                                 .layout = BWI_LAYOUT_FREE,
                                 .shape = max_shape,
                                 .prepare = prepare,
                                 .forward = forward,
                                 .backward = backward};

static bw_status fused_prepare(bwi_prepare *p)
{
    bwi_image y = bwi_node_image(p->node, p->samples);
    p->workspace_bytes = bwi_kernels_of(p->ctx)->packing->relu_maxpool_mask_bytes(&y);
    return BW_OK;
}

static bw_status fused_forward(const bwi_call *call, const bwi_tile *tile)
{
    (void)tile;
    bwi_image x = bwi_node_image(call->node->input[0], call->samples), y = bwi_node_image(call->node, call->samples);
    call->kernels->relu_maxpool_forward(&x, &y, call->src[0], call->dst, call->workspace);
    return BW_OK;
}

static bw_status fused_backward(const bwi_call *call, const bwi_tile *tile)
{
    (void)tile;
    bwi_image x = bwi_node_image(call->node->input[0], call->samples), y = bwi_node_image(call->node, call->samples);
    call->kernels->relu_maxpool_backward(&x, &y, call->diff_dst, call->workspace, call->diff_src[0]);
    return BW_OK;
}

const bwi_op bwi_op_relu_maxpool = {.name = "relu_maxpool",
                                    .backward_reads = BWI_READS_WORKSPACE,
                                    .layout = BWI_LAYOUT_FREE,
                                    .shape = max_shape,
                                    .prepare = fused_prepare,
                                    .forward = fused_forward,
                                    .backward = fused_backward};

static bw_status average_forward(const bwi_call *call, const bwi_tile *tile)
{
    (void)tile;
    bwi_image x = bwi_node_image(call->node->input[0], call->samples), y = bwi_node_image(call->node, call->samples);
    bwi_pool_window window = window_of(call->node);
    call->kernels->avgpool_forward(&x, &y, &window, call->src[0], call->dst);
    return BW_OK;
}

static bw_status average_backward(const bwi_call *call, const bwi_tile *tile)
{
    (void)tile;
    bwi_image x = bwi_node_image(call->node->input[0], call->samples), y = bwi_node_image(call->node, call->samples);
    bwi_pool_window window = window_of(call->node);
    call->kernels->avgpool_backward(&x, &y, &window, call->diff_dst, call->diff_src[0]);
    return BW_OK;
}

const bwi_op bwi_op_avgpool2d = {
    .name = "avgpool2d", .layout = BWI_LAYOUT_FREE, .shape = shape, .forward = average_forward, .backward = average_backward};
