/* Functions that layers are put together from: reductions that keep axes, products that broadcast, axes moved to the end. */
#include "layer/internal.h"

bw_node *bwi_compose_unary(bwi_graph *graph, const char *layer, bw_node *x, bwi_unary_kind kind, float a, float b)
{
    bwi_unary_attributes attributes = {.kind = kind, .a = a, .b = b};
    return bwi_graph_add(graph, &bwi_op_unary, layer, &attributes, sizeof attributes, &x, 1, NULL, 0);
}

bw_node *bwi_compose_scale(bwi_graph *graph, const char *layer, bw_node *x, float scale, float offset)
{
    bwi_scale_attributes a = {.scale = scale, .offset = offset};
    return bwi_graph_add(graph, &bwi_op_scale, layer, &a, sizeof a, &x, 1, NULL, 0);
}

/* Axes are reduced one after another; means of means are means, because all parts have the same size. */
bw_node *bwi_compose_reduce(bwi_graph *graph, const char *layer, bw_node *x, bwi_reduce_kind kind, const bool *named)
{
    const bwi_op *op = kind == BWI_REDUCE_SUM || kind == BWI_REDUCE_MEAN ? &bwi_op_reduce : &bwi_op_reduce_extreme;
    for (int i = 0; x && i < x->shape.ndim; i++) {
        bwi_reduce_attributes a = {.kind = kind, .axis = i, .keepdims = true};
        x = named[i] ? bwi_graph_add(graph, op, layer, &a, sizeof a, &x, 1, NULL, 0) : x;
    }
    return x;
}

bw_node *bwi_compose_multiply(bwi_graph *graph, const char *layer, bw_node *x, bw_node *factor)
{
    bwi_binary_attributes a = {.kind = BWI_MULTIPLY};
    if (!x || !factor) {
        return NULL;
    }
    bw_node *both[2] = {x, bwi_op_broadcast_to(graph, layer, factor, &x->shape)};
    return both[1] ? bwi_graph_add(graph, &bwi_op_binary, layer, &a, sizeof a, both, 2, NULL, 0) : NULL;
}

bw_node *bwi_compose_subtract(bwi_graph *graph, const char *layer, bw_node *x, bw_node *less)
{
    bwi_add_attributes a = {.subtract = true, .scale = 1};
    if (!x || !less) {
        return NULL;
    }
    bw_node *both[2] = {x, bwi_op_broadcast_to(graph, layer, less, &x->shape)};
    return both[1] ? bwi_graph_add(graph, &bwi_op_add, layer, &a, sizeof a, both, 2, NULL, 0) : NULL;
}

bw_node *bwi_compose_reshape(bwi_graph *graph, const char *layer, bw_node *x, const bwi_shape *shape)
{
    bwi_reshape_attributes a = {.shape = *shape};
    return x ? bwi_graph_add(graph, &bwi_op_reshape, layer, &a, sizeof a, &x, 1, NULL, 0) : NULL;
}

bw_node *bwi_compose_permute(bwi_graph *graph, const char *layer, bw_node *x, const bwi_permute_attributes *order)
{
    bool same = true;
    for (int i = 0; i < order->ndim; i++) {
        same = same && order->axes[i] == i;
    }
    return same || !x ? x : bwi_graph_add(graph, &bwi_op_permute, layer, order, sizeof *order, &x, 1, NULL, 0);
}

int bwi_compose_last(const bwi_shape *shape, const bool *named, bwi_permute_attributes *there, bwi_permute_attributes *back)
{
    int count = 0, at = 0;
    *there = *back = (bwi_permute_attributes){.ndim = shape->ndim};
    for (int pass = 0; pass < 2; pass++) {
        for (int i = 0; i < shape->ndim; i++) {
            if (named[i] == (pass == 1)) {
                back->axes[i] = at;
                there->axes[at++] = i;
                count += pass;
            }
        }
    }
    return count;
}
