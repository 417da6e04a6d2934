/* dense over the last axis: y = x w + b. Variables: kernel [in][units] (stored packed), and bias if there is one. */
#include "op/op.h"

static bw_status shape(bwi_graph *graph, bw_node *node)
{
    const bwi_dense_attributes *a = node->attributes;
    const bwi_shape *in = &node->input[0]->shape;
    if (in->rank < 1) {
        return bwi_fail(graph->ctx, BW_INVALID_ARGUMENT, "layer %s: expected at least one axis, got a single number a sample",
                        node->name);
    }
    node->shape = *in;
    node->shape.extent[in->rank - 1] = a->units;
    return BW_OK;
}

static void pack_weights(const void *object, const float *plain, float *stored)
{
    const bwi_variable *kernel = object;
    bwi_dense_pack(kernel->shape.extent[0], kernel->shape.extent[1], plain, stored);
}

static void unpack_weights(const void *object, const float *stored, float *plain)
{
    const bwi_variable *kernel = object;
    bwi_dense_unpack(kernel->shape.extent[0], kernel->shape.extent[1], stored, plain);
}

static bw_status pack(bw_context *ctx, const bw_node *node)
{
    (void)ctx;
    bwi_variable *kernel = node->variable[0];
    kernel->count = bwi_dense_packed_count(kernel->shape.extent[0], kernel->shape.extent[1]);
    kernel->packing = (bwi_packing){.count = kernel->count, .object = kernel, .pack = pack_weights, .unpack = unpack_weights};
    return BW_OK;
}

static int64_t in_of(const bw_node *node)
{
    return node->variable[0]->shape.extent[0];
}
static int64_t out_of(const bw_node *node)
{
    return node->variable[0]->shape.extent[1];
}
static int64_t rows_of(const bwi_call *call)
{
    const bwi_shape *made = &call->node->shape;
    return made->rank == 1 ? call->samples : call->samples * (bwi_shape_count(made) / out_of(call->node));
}

static bw_status forward(const bwi_call *call, const bwi_tile *tile)
{
    (void)tile;
    const bw_node *node = call->node;
    const float *bias = node->variables > 1 ? call->weights[1] : NULL;
    call->kernels->dense_forward(rows_of(call), in_of(node), out_of(node), call->src[0], call->weights[0], bias, call->dst);
    return BW_OK;
}

static bw_status backward(const bwi_call *call, const bwi_tile *tile)
{
    (void)tile;
    const bw_node *node = call->node;
    call->kernels->dense_backward_data(rows_of(call), in_of(node), out_of(node), call->diff_dst, call->weights[0],
                                       call->diff_src[0]);
    return BW_OK;
}

static bw_status backward_weights(const bwi_call *call, const bwi_tile *tile)
{
    const bw_node *node = call->node;
    bool bias = node->variables > 1;
    call->kernels->dense_backward_weights(rows_of(call), in_of(node), out_of(node), call->src[0], call->diff_dst,
                                          bwi_call_gradient(call, tile, 0), bias ? bwi_call_gradient(call, tile, 1) : NULL,
                                          bwi_call_accumulates(call, tile, 0));
    return BW_OK;
}

static double flops(const bw_node *node)
{
    return 2 * (double)in_of(node) * (double)bwi_shape_count(&node->shape);
}

const bwi_op bwi_op_dense = {.name = "dense",
                             .weights_reads = BWI_READS_SRC,
                             .layout = BWI_LAYOUT_PLAIN,
                             .shape = shape,
                             .pack = pack,
                             .forward = forward,
                             .backward = backward,
                             .backward_weights = backward_weights,
                             .flops = flops};
