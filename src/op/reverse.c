/* reverse: the positions of a sequence, which are its first axis, from the last to the first. */
#include "op/internal.h"

static bw_status shape(bwi_graph *graph, bw_node *node)
{
    bw_status status = bwi_shape_like_input(graph, node);
    if (status == BW_OK && node->shape.ndim < 1) {
        status =
            bwi_fail(graph->ctx, BW_INVALID_ARGUMENT, "layer %s: expected positions, got a single number a sample", node->name);
    }
    return status;
}

static void reverse(const bwi_call *call, void *from, void *to)
{
    int64_t positions = call->node->shape.extent[0], width = bwi_shape_count(&call->node->shape) / positions;
    for (int64_t i = 0; i < call->samples * positions; i++) {
        int64_t other = i / positions * positions + positions - 1 - i % positions;
        call->kernels->memory->copy(bwi_floats_at(to, i * width), bwi_floats_at(from, other * width),
                                    (size_t)width * sizeof(float));
    }
}

static bw_status forward(const bwi_call *call, const bwi_tile *tile)
{
    (void)tile;
    reverse(call, call->src[0], call->dst);
    return BW_OK;
}

static bw_status backward(const bwi_call *call, const bwi_tile *tile)
{
    (void)tile;
    reverse(call, call->diff_dst, call->diff_src[0]);
    return BW_OK;
}

const bwi_op bwi_op_reverse = {
    .name = "reverse", .layout = BWI_LAYOUT_CHANNELS_LAST, .shape = shape, .forward = forward, .backward = backward};
