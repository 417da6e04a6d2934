/*
 * prelu: y = x > 0 ? x : alpha x; dx = dy or alpha dy, at 0 nothing as in Keras; dalpha = sum of dy x where x < 0. alpha has as
 * many axes as a sample, with extent 1 along those that share it.
 */
#include "op/internal.h"

static bw_status shape(bwi_graph *graph, bw_node *node)
{
    bwi_shape both;
    char a[160], b[160];
    bw_status status = bwi_shape_like_input(graph, node);
    const bwi_shape *alpha = &node->variable[0]->shape;
    if (status == BW_OK && (!bwi_shape_broadcast(&node->shape, alpha, &both) || !bwi_shape_equal(&both, &node->shape))) {
        status =
            bwi_fail(graph->ctx, BW_INVALID_ARGUMENT, "layer %s: alpha of shape %s does not fit values of shape %s", node->name,
                     bwi_format_shape(a, alpha->ndim, alpha->extent), bwi_format_shape(b, node->shape.ndim, node->shape.extent));
    }
    return status;
}

static bw_status prepare(bwi_prepare *p)
{
    p->scratch_bytes = (size_t)p->node->variable[0]->count * sizeof(double);
    return BW_OK;
}

static bwi_spread spread_of(const bwi_call *call)
{
    return bwi_spread_over(&call->node->shape, &call->node->variable[0]->shape);
}

static bw_status forward(const bwi_call *call, const bwi_tile *tile)
{
    (void)tile;
    bwi_spread spread = spread_of(call);
    call->kernels->elementwise->prelu(&spread, call->samples, call->weights[0], call->src[0], call->dst);
    return BW_OK;
}

static bw_status backward(const bwi_call *call, const bwi_tile *tile)
{
    (void)tile;
    bwi_spread spread = spread_of(call);
    call->kernels->elementwise->prelu_backward(&spread, call->samples, call->weights[0], call->src[0], call->diff_dst,
                                               call->diff_src[0]);
    return BW_OK;
}

static bw_status backward_weights(const bwi_call *call, const bwi_tile *tile)
{
    bwi_spread spread = spread_of(call);
    call->kernels->elementwise->prelu_sums(&spread, call->samples, call->src[0], call->diff_dst, call->scratch);
    bwi_call_add_gradient(call, tile, 0, call->scratch);
    return BW_OK;
}

const bwi_op bwi_op_prelu = {.name = "prelu",
                             .flags = BWI_OP_IN_PLACE | BWI_OP_BACKWARD_IN_PLACE,
                             .backward_reads = BWI_READS_SRC,
                             .weights_reads = BWI_READS_SRC,
                             .layout = BWI_LAYOUT_CHANNELS_LAST,
                             .shape = shape,
                             .prepare = prepare,
                             .forward = forward,
                             .backward = backward,
                             .backward_weights = backward_weights};
