/* upsample2d: an image whose height and width are multiplied (bwi_upsampling). Pixels are `block` floats, so any layout does. */
#include "op/internal.h"

static bw_status shape(bwi_graph *graph, bw_node *node)
{
    const bwi_upsample2d_attributes *a = node->attributes;
    const bwi_shape *in = &node->input[0]->shape;
    char text[160];
    if (in->ndim != 3) {
        return bwi_fail(graph->ctx, BW_INVALID_ARGUMENT, "layer %s: expected an image (height, width, channels), got %s",
                        node->name, bwi_format_shape(text, in->ndim, in->extent));
    }
    node->shape = *in;
    for (int i = 0; i < 2; i++) {
        if (__builtin_mul_overflow(in->extent[i], a->size[i], &node->shape.extent[i])) {
            node->shape.extent[i] = INT64_MAX;
        }
    }
    return bwi_shape_check(graph, node);
}

static bw_status prepare(bwi_prepare *p)
{
    bwi_image x = bwi_node_image(p->node->input[0], 1);
    p->scratch_bytes = (size_t)(x.w * x.block) * sizeof(float); /* one row of x */
    return BW_OK;
}

static bw_status forward(const bwi_call *call, const bwi_tile *tile)
{
    (void)tile;
    bwi_image x = bwi_node_image(call->node->input[0], call->samples);
    call->kernels->arrange->upsample(&x, call->node->attributes, call->src[0], call->scratch, call->dst);
    return BW_OK;
}

static bw_status backward(const bwi_call *call, const bwi_tile *tile)
{
    (void)tile;
    bwi_image x = bwi_node_image(call->node->input[0], call->samples);
    call->kernels->arrange->upsample_backward(&x, call->node->attributes, call->diff_dst, call->scratch, call->diff_src[0]);
    return BW_OK;
}

const bwi_op bwi_op_upsample2d = {
    .name = "upsample2d", .layout = BWI_LAYOUT_SAME, .shape = shape, .prepare = prepare, .forward = forward, .backward = backward};
