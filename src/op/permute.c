/* permute: the axes of a sample in another order: y's axis i is x's axis axes[i]. */
#include "op/op.h"

static bw_status shape(bwi_graph *graph, bw_node *node)
{
    const bwi_permute_attributes *a = node->attributes;
    const bwi_shape *in = &node->input[0]->shape;
    bool seen[BW_MAX_RANK] = {false};
    node->shape.rank = in->rank;
    for (int i = 0; i < in->rank; i++) {
        int axis = a->axes[i];
        if (a->rank != in->rank || axis < 0 || axis >= in->rank || seen[axis]) {
            char text[160];
            return bwi_fail(graph->ctx, BW_INVALID_ARGUMENT, "layer %s: expected each of the axes 1 to %d of %s once", node->name,
                            in->rank, bwi_format_shape(text, in->rank, in->extent));
        }
        seen[axis] = true;
        node->shape.extent[i] = in->extent[axis];
    }
    return BW_OK;
}

/* Where y's neighbours along each axis lie in x. */
static void strides_of(const bw_node *node, int64_t stride[BW_MAX_RANK])
{
    const bwi_permute_attributes *a = node->attributes;
    const bwi_shape *in = &node->input[0]->shape;
    int64_t own[BW_MAX_RANK], step = 1;
    for (int i = in->rank - 1; i >= 0; i--) {
        own[i] = step;
        step *= in->extent[i];
    }
    for (int i = 0; i < in->rank; i++) {
        stride[i] = own[a->axes[i]];
    }
}

/* Walks y in order, x beside it: copies x to y, or if `back` y to x. */
static void walk(const bw_node *node, int64_t samples, const float *from, float *to, bool back)
{
    const bwi_shape *shape_of_y = &node->shape;
    int rank = shape_of_y->rank;
    int64_t count = bwi_shape_count(shape_of_y), inner = rank ? shape_of_y->extent[rank - 1] : 1;
    int64_t stride[BW_MAX_RANK] = {0};
    strides_of(node, stride);
    int64_t step = rank ? stride[rank - 1] : 0;
    for (int64_t s = 0; s < samples; s++, from += count, to += count) {
        int64_t index[BW_MAX_RANK] = {0}, at = 0;
        for (int64_t y = 0; y < count; y += inner) {
            for (int64_t i = 0; i < inner; i++) {
                if (back) {
                    to[at + i * step] = from[y + i];
                } else {
                    to[y + i] = from[at + i * step];
                }
            }
            for (int d = rank - 2; d >= 0; d--) {
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
    .name = "permute", .layout = BWI_LAYOUT_PLAIN, .shape = shape, .forward = forward, .backward = backward};
