/* What elementwise ops and those along axes share: shape rules, padding, broadcasting. */
#include "op/internal.h"

bw_status bwi_shape_like_input(bwi_graph *graph, bw_node *node)
{
    if (node->inputs < 1 || node->input[0]->dtype != BW_F32) {
        return bwi_fail(graph->ctx, BW_INVALID_ARGUMENT, "layer %s: %s: expected float32 values, got %s", node->name,
                        node->op->name, node->inputs < 1 ? "none" : bwi_dtype_name(node->input[0]->dtype));
    }
    node->shape = node->input[0]->shape;
    return BW_OK;
}

bw_status bwi_shape_like_inputs(bwi_graph *graph, bw_node *node)
{
    bw_status status = bwi_shape_like_input(graph, node);
    for (int k = 1; k < node->inputs && status == BW_OK; k++) {
        const bw_node *other = node->input[k];
        char a[160], b[160];
        if (other->dtype != BW_F32 || !bwi_shape_equal(&other->shape, &node->shape)) {
            status = bwi_fail(graph->ctx, BW_INVALID_ARGUMENT, "layer %s: %s: expected inputs of one shape, got %s and %s (%s)",
                              node->name, node->op->name, bwi_format_shape(a, node->shape.ndim, node->shape.extent),
                              bwi_format_shape(b, other->shape.ndim, other->shape.extent), bwi_dtype_name(other->dtype));
        }
    }
    return status;
}

void bwi_call_clear_padding(const bwi_call *call, void *values)
{
    bwi_image image = bwi_node_image(call->node, call->samples);
    call->kernels->arrange->clear_padding(&image, values);
}

void bwi_call_add_gradient(const bwi_call *call, const bwi_tile *tile, int variable, const void *sums)
{
    if (call->gradient[variable] != SIZE_MAX) {
        call->kernels->reduce->add_sums(call->node->variable[variable]->count, bwi_call_accumulates(call, tile, variable), sums,
                                        bwi_call_gradient(call, tile, variable));
    }
}

void bwi_call_add_floats(const bwi_call *call, const bwi_tile *tile, int variable, const void *gradient)
{
    int64_t count = call->node->variable[variable]->count;
    if (call->gradient[variable] == SIZE_MAX || !bwi_tile_may_add(tile)) {
        return;
    }
    if (bwi_call_accumulates(call, tile, variable)) {
        call->kernels->add(count, gradient, bwi_call_gradient(call, tile, variable));
    } else {
        call->kernels->memory->copy(bwi_call_gradient(call, tile, variable), gradient, (size_t)count * sizeof(float));
    }
}

bwi_around bwi_shape_around(const bwi_shape *shape, int axis)
{
    bwi_around around = {.outer = 1, .extent = shape->extent[axis], .inner = 1};
    for (int i = 0; i < shape->ndim; i++) {
        around.outer *= i < axis ? shape->extent[i] : 1;
        around.inner *= i > axis ? shape->extent[i] : 1;
    }
    return around;
}

/* ---- Broadcasting ---- */

bool bwi_shape_broadcast(const bwi_shape *a, const bwi_shape *b, bwi_shape *result)
{
    bwi_shape longer = a->ndim >= b->ndim ? *a : *b, shorter = a->ndim >= b->ndim ? *b : *a;
    int shift = longer.ndim - shorter.ndim;
    for (int i = 0; i < shorter.ndim; i++) {
        int64_t *to = &longer.extent[shift + i], other = shorter.extent[i];
        if (*to != other && *to != 1 && other != 1) {
            return false;
        }
        *to = *to == 1 ? other : *to;
    }
    *result = longer;
    return true;
}

bw_node *bwi_op_broadcast_to(bwi_graph *graph, const char *name, bw_node *node, const bwi_shape *shape)
{
    if (!node || bwi_shape_equal(&node->shape, shape)) {
        return node;
    }
    bwi_broadcast_attributes a = {.shape = *shape};
    return bwi_graph_add(graph, &bwi_op_broadcast, name, &a, sizeof a, &node, 1, NULL, 0);
}

/* Joins neighbouring axes that are both repeated, or both not. Axes of extent 1 vanish. */
bwi_spread bwi_spread_over(const bwi_shape *large, const bwi_shape *small)
{
    bwi_spread s = {.rows = 1, .width = 1, .count = bwi_shape_count(small)};
    int shift = large->ndim - small->ndim;
    int64_t stride = 1;
    bool there[BW_MAX_NDIM] = {false};
    for (int i = large->ndim - 1; i >= 0; i--) {
        int64_t extent = large->extent[i], own = i >= shift ? small->extent[i - shift] : 1;
        bool same = s.ndim > 0 && there[s.ndim - 1] == (own == extent);
        if (extent == 1) {
            continue;
        }
        if (same) {
            s.extent[s.ndim - 1] *= extent;
        } else {
            there[s.ndim] = own == extent;
            s.extent[s.ndim] = extent;
            s.stride[s.ndim] = own == extent ? stride : 0;
            s.ndim++;
        }
        stride *= own;
    }
    /* So far the axes are listed innermost first. */
    if (s.ndim > 0) {
        s.width = s.extent[0];
        s.step = s.stride[0];
    }
    for (int i = 1; i < s.ndim; i++) {
        s.rows *= s.extent[i];
    }
    return s;
}
