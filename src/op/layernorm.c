/* layernorm over the last axes: their values are a row of the kernel's (kernel.h). Forward keeps mean and inverse of each row. */
#include "op/internal.h"

static const bwi_layernorm_attributes *attributes_of(const bw_node *node)
{
    return node->attributes;
}

static int64_t width_of(const bw_node *node)
{
    int64_t width = 1;
    for (int i = node->shape.ndim - attributes_of(node)->axes; i < node->shape.ndim; i++) {
        width *= node->shape.extent[i];
    }
    return width;
}

static int64_t rows_of(const bw_node *node, int64_t samples)
{
    return samples * (bwi_shape_count(&node->shape) / width_of(node));
}

static bw_status shape(bwi_graph *graph, bw_node *node)
{
    bw_status status = bwi_shape_like_input(graph, node);
    if (status == BW_OK && (attributes_of(node)->axes < 1 || attributes_of(node)->axes > node->shape.ndim)) {
        status = bwi_fail(graph->ctx, BW_INVALID_ARGUMENT, "layer %s: %d axes cannot be normalised, the input has %d", node->name,
                          attributes_of(node)->axes, node->shape.ndim);
    }
    return status;
}

static bw_status prepare(bwi_prepare *p)
{
    size_t pairs = (size_t)rows_of(p->node, p->samples) * 2 * sizeof(float);
    p->workspace_bytes = pairs;
    p->scratch_bytes = pairs;
    return BW_OK;
}

/* gamma or beta; NULL: not there. */
static void *weights_of(const bwi_call *call, bool gamma)
{
    const bwi_layernorm_attributes *a = attributes_of(call->node);
    bool there = gamma ? a->scale : a->center;
    return there ? call->weights[gamma ? 0 : a->scale] : NULL;
}

static bw_status forward(const bwi_call *call, const bwi_tile *tile)
{
    (void)tile;
    const bw_node *node = call->node;
    call->kernels->layernorm_forward(rows_of(node, call->samples), width_of(node), attributes_of(node)->epsilon, call->src[0],
                                     weights_of(call, true), weights_of(call, false),
                                     call->workspace ? call->workspace : call->scratch, call->dst);
    return BW_OK;
}

static bw_status backward(const bwi_call *call, const bwi_tile *tile)
{
    (void)tile;
    call->kernels->layernorm_backward(rows_of(call->node, call->samples), width_of(call->node), call->src[0], call->diff_dst,
                                      weights_of(call, true), call->workspace, call->diff_src[0]);
    return BW_OK;
}

/* NULL: that variable is not there, or not trained. */
static void *gradient_of(const bwi_call *call, const bwi_tile *tile, bool there, int variable)
{
    return there && call->gradient[variable] != SIZE_MAX ? bwi_call_gradient(call, tile, variable) : NULL;
}

static bw_status backward_weights(const bwi_call *call, const bwi_tile *tile)
{
    const bwi_layernorm_attributes *a = attributes_of(call->node);
    int beta = a->scale;
    bwi_row_gradients to = {.gamma = gradient_of(call, tile, a->scale, 0), .beta = gradient_of(call, tile, a->center, beta)};
    to.add_gamma = to.gamma && bwi_call_accumulates(call, tile, 0);
    to.add_beta = to.beta && bwi_call_accumulates(call, tile, beta);
    call->kernels->layernorm_backward_weights(rows_of(call->node, call->samples), width_of(call->node), call->src[0],
                                              call->diff_dst, call->workspace, &to);
    return BW_OK;
}

const bwi_op bwi_op_layernorm = {.name = "layernorm",
                                 .flags = BWI_OP_BACKWARD_IN_PLACE,
                                 .backward_reads = BWI_READS_SRC | BWI_READS_WORKSPACE,
                                 .weights_reads = BWI_READS_SRC | BWI_READS_WORKSPACE,
                                 .layout = BWI_LAYOUT_CHANNELS_LAST,
                                 .shape = shape,
                                 .prepare = prepare,
                                 .forward = forward,
                                 .backward = backward,
                                 .backward_weights = backward_weights};
