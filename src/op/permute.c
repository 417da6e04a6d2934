/* permute: the axes of a sample in another order: y's axis i is x's axis axes[i]. */
#include "op/op.h"

static bw_status shape(bwi_graph *graph, bw_node *node)
{
    const bwi_permute_attributes *a = node->attributes;
    const bwi_shape *in = &node->input[0]->shape;
    bool seen[BW_MAX_NDIM] = {false};
    node->shape.ndim = in->ndim;
    for (int i = 0; i < in->ndim; i++) {
        int axis = a->axes[i];
        if (a->ndim != in->ndim || axis < 0 || axis >= in->ndim || seen[axis]) {
            char text[160];
            return bwi_fail(graph->ctx, BW_INVALID_ARGUMENT, "layer %s: expected each of the axes 1 to %d of %s once", node->name,
                            in->ndim, bwi_format_shape(text, in->ndim, in->extent));
        }
        seen[axis] = true;
        node->shape.extent[i] = in->extent[axis];
    }
    return BW_OK;
}

/* Where y's neighbours along each axis lie in x. */
static void strides_of(const bw_node *node, int64_t stride[BW_MAX_NDIM])
{
    const bwi_permute_attributes *a = node->attributes;
    const bwi_shape *in = &node->input[0]->shape;
    int64_t own[BW_MAX_NDIM], step = 1;
    for (int i = in->ndim - 1; i >= 0; i--) {
        own[i] = step;
        step *= in->extent[i];
    }
    for (int i = 0; i < in->ndim; i++) {
        stride[i] = own[a->axes[i]];
    }
}

/* Walks y in order, x beside it: copies x to y, or if `back` y to x. */
static void walk(const bw_node *node, int64_t samples, const float *from, float *to, bool back)
{
    const bwi_shape *shape_of_y = &node->shape;
    int ndim = shape_of_y->ndim;
    int64_t count = bwi_shape_count(shape_of_y), inner = ndim ? shape_of_y->extent[ndim - 1] : 1;
    int64_t stride[BW_MAX_NDIM] = {0};
    strides_of(node, stride);
    int64_t step = ndim ? stride[ndim - 1] : 0;
    for (int64_t s = 0; s < samples; s++, from += count, to += count) {
        int64_t index[BW_MAX_NDIM] = {0}, at = 0;
        for (int64_t y = 0; y < count; y += inner) {
            for (int64_t i = 0; i < inner; i++) {
                if (back) {
                    to[at + i * step] = from[y + i];
                } else {
                    to[y + i] = from[at + i * step];
                }
            }
            for (int d = ndim - 2; d >= 0; d--) {
                at += stride[d];
                if (++index[d] < shape_of_y->extent[d]) {
                    break;
                }
                at -= stride[d] * index[d];
                index[d] = 0;
            }
        }
    }
}

static bw_status forward(const bwi_call *call, const bwi_tile *tile)
{
    (void)tile;
    walk(call->node, call->samples, call->src[0], call->dst, false);
    return BW_OK;
}

static bw_status backward(const bwi_call *call, const bwi_tile *tile)
{
    (void)tile;
    walk(call->node, call->samples, call->diff_dst, call->diff_src[0], true);
    return BW_OK;
}

const bwi_op bwi_op_permute = {
    .name = "permute", .layout = BWI_LAYOUT_CHANNELS_LAST, .shape = shape, .forward = forward, .backward = backward};
