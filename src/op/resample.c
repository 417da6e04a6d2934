/* resample: one axis gets another extent; each new place is a weighted sum of old ones (kernel/loops/picture.h). */
#include "op/internal.h"

static bw_status shape(bwi_graph *graph, bw_node *node)
{
    const bwi_resample_attributes *a = node->attributes;
    bw_status status = bwi_shape_like_input(graph, node);
    if (status == BW_OK && (a->axis < 0 || a->axis >= node->shape.ndim || a->extent < 1)) {
        status = bwi_fail(graph->ctx, BW_INVALID_ARGUMENT, "layer %s: resample: there is no axis %d among %d", node->name, a->axis,
                          node->shape.ndim);
    }
    if (status == BW_OK) {
        node->shape.extent[a->axis] = a->extent;
    }
    return status == BW_OK ? bwi_shape_check(graph, node) : status;
}

static bwi_resampling resampling_of(const bwi_call *call)
{
    const bwi_resample_attributes *a = call->node->attributes;
    bwi_resampling r = {
        .around = bwi_shape_around(&call->node->input[0]->shape, a->axis), .to = a->extent, .kind = a->kind, .smooth = a->smooth};
    r.around.outer *= call->samples;
    return r;
}

static bw_status forward(const bwi_call *call, const bwi_tile *tile)
{
    (void)tile;
    bwi_resampling r = resampling_of(call);
    call->kernels->picture->resample(&r, call->src[0], call->dst);
    return BW_OK;
}

static bw_status backward(const bwi_call *call, const bwi_tile *tile)
{
    (void)tile;
    bwi_resampling r = resampling_of(call);
    call->kernels->picture->resample_backward(&r, call->diff_dst, call->diff_src[0]);
    return BW_OK;
}

const bwi_op bwi_op_resample = {
    .name = "resample", .layout = BWI_LAYOUT_CHANNELS_LAST, .shape = shape, .forward = forward, .backward = backward};
