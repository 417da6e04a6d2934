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

static bwi_permutation permutation_of(const bw_node *node)
{
    const bwi_permute_attributes *a = node->attributes;
    const bwi_shape *in = &node->input[0]->shape;
    int64_t stride[BW_MAX_NDIM], step = 1;
    for (int i = in->ndim - 1; i >= 0; i--) {
        stride[i] = step;
        step *= in->extent[i];
    }
    bwi_permutation p = {.ndim = in->ndim};
    for (int i = 0; i < in->ndim; i++) {
        p.extent[i] = node->shape.extent[i];
        p.stride[i] = stride[a->axes[i]];
    }
    return p;
}

static bw_status forward(const bwi_call *call, const bwi_tile *tile)
{
    (void)tile;
    bwi_permutation p = permutation_of(call->node);
    call->kernels->arrange->permute(&p, call->samples, false, call->src[0], call->dst);
    return BW_OK;
}

static bw_status backward(const bwi_call *call, const bwi_tile *tile)
{
    (void)tile;
    bwi_permutation p = permutation_of(call->node);
    call->kernels->arrange->permute(&p, call->samples, true, call->diff_dst, call->diff_src[0]);
    return BW_OK;
}

const bwi_op bwi_op_permute = {
    .name = "permute", .layout = BWI_LAYOUT_CHANNELS_LAST, .shape = shape, .forward = forward, .backward = backward};
