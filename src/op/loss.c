/*
 * loss: one number per sample: the mean over its rows (positions) of weight * f(x, y), where x is a row of the prediction and y a
 * row of the target. The formulas are kernels (kernel/loops/loss.inc).
 */
#include "op/internal.h"

static const bwi_loss_attributes *attributes_of(const bw_node *node)
{
    return node->attributes;
}

static bw_status shape(bwi_graph *graph, bw_node *node)
{
    return bwi_rows_check(graph, node, attributes_of(node)->kind == BWI_LOSS_SPARSE);
}

static bw_status check_targets(bwi_loss_kind kind, const bwi_call *call, const bwi_tile *tile)
{
    if (kind == BWI_LOSS_BINARY_LOGITS || kind == BWI_LOSS_BINARY) {
        return bwi_shares_check(call, tile);
    }
    return kind == BWI_LOSS_SPARSE ? bwi_labels_check(call, tile) : BW_OK;
}

static bw_status forward(const bwi_call *call, const bwi_tile *tile)
{
    const bwi_loss_attributes *a = attributes_of(call->node);
    bwi_rows rows = bwi_rows_of(call);
    bw_status status = check_targets(a->kind, call, tile);
    if (status != BW_OK) {
        return status;
    }
    call->kernels->loss->forward(a->kind, a->parameter, &rows, call->src[0], call->src[1], bwi_rows_weight(call), call->dst);
    return BW_OK;
}

static bw_status backward(const bwi_call *call, const bwi_tile *tile)
{
    (void)tile;
    const bwi_loss_attributes *a = attributes_of(call->node);
    bwi_rows rows = bwi_rows_of(call);
    call->kernels->loss->backward(a->kind, a->parameter, &rows, call->src[0], call->src[1], bwi_rows_weight(call), call->diff_dst,
                                  call->diff_src[0]);
    return BW_OK;
}

const bwi_op bwi_op_loss = {.name = "loss",
                            .backward_reads = BWI_READS_SRC,
                            .layout = BWI_LAYOUT_CHANNELS_LAST,
                            .shape = shape,
                            .forward = forward,
                            .backward = backward};
