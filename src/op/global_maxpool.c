/* global_maxpool: the largest of each channel over all positions; backward divides the difference equally among the equal ones. */
#include "op/op.h"

static bw_status shape(bwi_graph *graph, bw_node *node)
{
    const bwi_shape *in = &node->input[0]->shape;
    char text[160];
    if (in->ndim != 2 && in->ndim != 3) {
        return bwi_fail(graph->ctx, BW_INVALID_ARGUMENT, "layer %s: expected an image or a sequence, channels last, got %s",
                        node->name, bwi_format_shape(text, in->ndim, in->extent));
    }
    node->shape = *in;
    for (int i = 0; i < in->ndim - 1; i++) {
        node->shape.extent[i] = 1;
    }
    return BW_OK;
}

static bw_status forward(const bwi_call *call, const bwi_tile *tile)
{
    (void)tile;
    bwi_image x = bwi_node_image(call->node->input[0], call->samples), y = bwi_node_image(call->node, call->samples);
    call->kernels->globalmax_forward(&x, &y, call->src[0], call->dst);
    return BW_OK;
}

static bw_status backward(const bwi_call *call, const bwi_tile *tile)
{
    (void)tile;
    bwi_image x = bwi_node_image(call->node->input[0], call->samples), y = bwi_node_image(call->node, call->samples);
    call->kernels->globalmax_backward(&x, &y, call->src[0], call->dst, call->diff_dst, call->diff_src[0]);
    return BW_OK;
}

const bwi_op bwi_op_global_maxpool = {.name = "global_maxpool",
                                      .backward_reads = BWI_READS_SRC | BWI_READS_DST,
                                      .layout = BWI_LAYOUT_FREE,
                                      .shape = shape,
                                      .forward = forward,
                                      .backward = backward};
