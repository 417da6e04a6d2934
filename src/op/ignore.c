/*
 * A class of the targets that does not count (ignore_class): ignored_mask is 1 for each label that counts, 0 for others;
 * ignored_labels has class 0 in the place of those, which may lie outside the output's classes.
 */
#include "op/op.h"

static bw_status mask_shape(bwi_graph *graph, bw_node *node)
{
    (void)graph;
    node->shape = node->input[0]->shape;
    return BW_OK;
}

static int64_t count_of(const bwi_call *call)
{
    return call->samples * bwi_shape_count(&call->node->shape);
}

static int32_t class_of(const bwi_call *call)
{
    return ((const bwi_ignore_attributes *)call->node->attributes)->class_number;
}

static bw_status mask_forward(const bwi_call *call, const bwi_tile *tile)
{
    (void)tile;
    call->kernels->loss->ignored_mask(count_of(call), class_of(call), call->src[0], call->dst);
    return BW_OK;
}

const bwi_op bwi_op_ignored_mask = {.name = "ignored_mask",
                                    .flags = BWI_OP_NO_GRADIENT,
                                    .layout = BWI_LAYOUT_CHANNELS_LAST,
                                    .shape = mask_shape,
                                    .forward = mask_forward};

static bw_status labels_shape(bwi_graph *graph, bw_node *node)
{
    node->dtype = BW_I32;
    return mask_shape(graph, node);
}

static bw_status labels_forward(const bwi_call *call, const bwi_tile *tile)
{
    (void)tile;
    call->kernels->loss->ignored_labels(count_of(call), class_of(call), call->src[0], call->dst);
    return BW_OK;
}

const bwi_op bwi_op_ignored_labels = {.name = "ignored_labels",
                                      .flags = BWI_OP_NO_GRADIENT,
                                      .layout = BWI_LAYOUT_CHANNELS_LAST,
                                      .shape = labels_shape,
                                      .forward = labels_forward};
