/*
 * depthwise: every channel is convolved by itself, in whatever block the image comes. Variables: kernel (kh, kw, channels, 1) or
 * (kh, kw, 1, channels), stored as it is, and bias if there is one. Attributes are those of conv2d; filters and groups are the
 * channels. Several outputs for a channel are conv2d's.
 */
#include "op/op.h"

static bw_status shape(bwi_graph *graph, bw_node *node)
{
    const bwi_conv2d_attributes *a = node->attributes;
    const bwi_shape *in = &node->input[0]->shape;
    if (in->ndim < 1 || in->extent[in->ndim - 1] != a->filters || a->groups != a->filters) {
        return bwi_fail(graph->ctx, BW_INTERNAL, "layer %s: a depthwise convolution of one output for each channel", node->name);
    }
    return bwi_op_conv2d.shape(graph, node);
}

static bwi_depthwise kernel_of(const bw_node *node)
{
    const bwi_conv2d_attributes *a = node->attributes;
    bwi_depthwise k = {.window = {.h = a->kernel[0], .w = a->kernel[1], .stride_h = a->strides[0], .stride_w = a->strides[1]},
                       .dilation_h = a->dilation[0],
                       .dilation_w = a->dilation[1]};
    int64_t h, w, c, out, after;
    bwi_shape_image(&node->input[0]->shape, &h, &w, &c);
    bwi_conv2d_extents(a, 0, h, &out, &k.window.pad_top, &after);
    bwi_conv2d_extents(a, 1, w, &out, &k.window.pad_left, &after);
    return k;
}

static bw_status forward(const bwi_call *call, const bwi_tile *tile)
{
    (void)tile;
    bwi_image x = bwi_node_image(call->node->input[0], call->samples), y = bwi_node_image(call->node, call->samples);
    bwi_depthwise k = kernel_of(call->node);
    call->kernels->depthwise_forward(&x, &y, &k, call->src[0], call->weights[0],
                                     call->node->variables > 1 ? call->weights[1] : NULL, call->dst);
    return BW_OK;
}

static bw_status backward(const bwi_call *call, const bwi_tile *tile)
{
    (void)tile;
    bwi_image x = bwi_node_image(call->node->input[0], call->samples), y = bwi_node_image(call->node, call->samples);
    bwi_depthwise k = kernel_of(call->node);
    call->kernels->depthwise_backward_data(&x, &y, &k, call->diff_dst, call->weights[0], call->diff_src[0]);
    return BW_OK;
}

static bw_status backward_weights(const bwi_call *call, const bwi_tile *tile)
{
    bwi_image x = bwi_node_image(call->node->input[0], call->samples), y = bwi_node_image(call->node, call->samples);
    bwi_depthwise k = kernel_of(call->node);
    call->kernels->depthwise_backward_weights(&x, &y, &k, call->src[0], call->diff_dst, bwi_call_gradient(call, tile, 0),
                                              call->node->variables > 1 ? bwi_call_gradient(call, tile, 1) : NULL,
                                              bwi_call_accumulates(call, tile, 0));
    return BW_OK;
}

static double flops(const bw_node *node)
{
    const bwi_conv2d_attributes *a = node->attributes;
    return 2 * (double)bwi_shape_count(&node->shape) * (double)(a->kernel[0] * a->kernel[1]);
}

const bwi_op bwi_op_depthwise = {.name = "depthwise",
                                 .weights_reads = BWI_READS_SRC,
                                 .layout = BWI_LAYOUT_SAME,
                                 .shape = shape,
                                 .forward = forward,
                                 .backward = backward,
                                 .backward_weights = backward_weights,
                                 .flops = flops};
