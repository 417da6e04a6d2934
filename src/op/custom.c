/*
 * custom: an operator that the user defines by callbacks (bw_operator). They work on the host, so their tensors are open while they
 * run. custom_constant: the same when nothing flows back.
 */
#include "op/op.h"

enum { MOST_INPUTS = 16 };

/* A user's rule may return anything: its result is checked before sizes are computed from it. */
static bw_status shape(bwi_graph *graph, bw_node *node)
{
    const bw_operator *op = node->attributes;
    int ndims[MOST_INPUTS];
    const int64_t *shapes[MOST_INPUTS];
    if (node->inputs > MOST_INPUTS) {
        return bwi_fail(graph->ctx, BW_INVALID_ARGUMENT, "operator %s: at most %d inputs are possible, got %d", node->name,
                        MOST_INPUTS, node->inputs);
    }
    for (int k = 0; k < node->inputs; k++) {
        ndims[k] = node->input[k]->shape.ndim;
        shapes[k] = node->input[k]->shape.extent;
        if (node->input[k]->dtype != BW_F32) {
            return bwi_fail(graph->ctx, BW_INVALID_ARGUMENT, "operator %s: input %d is int32, expected float32", node->name, k);
        }
    }
    node->shape.ndim = op->shape(op->user, node->inputs, ndims, shapes, node->shape.extent);
    if (node->shape.ndim < 0 || node->shape.ndim >= BW_MAX_NDIM) {
        return bwi_fail(graph->ctx, BW_INVALID_ARGUMENT, "operator %s: its inputs' shapes do not fit", node->name);
    }
    for (int i = 0; i < node->shape.ndim; i++) {
        if (node->shape.extent[i] < 1) {
            return bwi_fail(graph->ctx, BW_INVALID_ARGUMENT, "operator %s: extent %d of its result is %lld", node->name, i,
                            (long long)node->shape.extent[i]);
        }
    }
    return BW_OK;
}

static bw_status report(const bwi_call *call, const bwi_tile *tile, const char *pass, bool ok)
{
    if (!ok) {
        snprintf(tile->error, BWI_ERROR_TEXT, "operator %s failed in its %s pass for sample %lld", call->node->name, pass,
                 (long long)tile->numbers[0]);
    }
    return ok ? BW_OK : BW_INVALID_ARGUMENT;
}

static size_t bytes_of(const bwi_call *call, const bw_node *node)
{
    return (size_t)(call->samples * bwi_shape_count(&node->shape)) * sizeof(float);
}

/* Opens a tensor that is laid out like the node's output; it may be NULL. */
static void *open_tensor(const bwi_call *call, const bw_node *node, void *tensor)
{
    return tensor ? call->kernels->memory->open(tensor, bytes_of(call, node)) : NULL;
}

static void close_tensor(const bwi_call *call, const bw_node *node, void *tensor)
{
    if (tensor) {
        call->kernels->memory->close(tensor, bytes_of(call, node));
    }
}

static bw_status forward(const bwi_call *call, const bwi_tile *tile)
{
    const bw_operator *op = call->node->attributes;
    const float *src[MOST_INPUTS];
    for (int k = 0; k < call->node->inputs; k++) {
        src[k] = open_tensor(call, call->node->input[k], call->src[k]);
    }
    bool ok = op->forward(op->user, call->samples, src, open_tensor(call, call->node, call->dst));
    for (int k = 0; k < call->node->inputs; k++) {
        close_tensor(call, call->node->input[k], call->src[k]);
    }
    close_tensor(call, call->node, call->dst);
    return report(call, tile, "forward", ok);
}

static bw_status backward(const bwi_call *call, const bwi_tile *tile)
{
    const bw_node *node = call->node;
    const bw_operator *op = node->attributes;
    const float *src[MOST_INPUTS];
    float *diff_src[MOST_INPUTS];
    for (int k = 0; k < node->inputs; k++) {
        src[k] = open_tensor(call, node->input[k], call->src[k]);
        diff_src[k] = open_tensor(call, node->input[k], call->diff_src[k]);
    }
    bool ok = op->backward(op->user, call->samples, src, open_tensor(call, node, call->dst),
                           open_tensor(call, node, call->diff_dst), diff_src);
    for (int k = 0; k < node->inputs; k++) {
        close_tensor(call, node->input[k], call->src[k]);
        close_tensor(call, node->input[k], call->diff_src[k]);
    }
    close_tensor(call, node, call->dst);
    close_tensor(call, node, call->diff_dst);
    return report(call, tile, "backward", ok);
}

const bwi_op bwi_op_custom = {.name = "custom",
                              .backward_reads = BWI_READS_SRC | BWI_READS_DST,
                              .layout = BWI_LAYOUT_CHANNELS_LAST,
                              .shape = shape,
                              .forward = forward,
                              .backward = backward};

const bwi_op bwi_op_custom_constant = {
    .name = "custom_constant", .flags = BWI_OP_NO_GRADIENT, .layout = BWI_LAYOUT_CHANNELS_LAST, .shape = shape, .forward = forward};
