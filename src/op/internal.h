/* What the files of op share: shape rules, gradients in lanes, rows of losses and metrics. */
#ifndef BWI_OP_INTERNAL_H
#define BWI_OP_INTERNAL_H

#include "op/op.h"

/* A tile as losses and metrics see it. Inputs are prediction, target and optionally weights: one for the sample, or one for each
 * row of the prediction. */
bwi_rows bwi_rows_of(const bwi_call *call);
static inline const void *bwi_rows_weight(const bwi_call *call)
{
    return call->node->inputs > 2 ? call->src[2] : NULL;
}
/* For shape rules: do target and weights fit, and the node's shape: none. `labels`: a class number for each row. */
bw_status bwi_rows_check(bwi_graph *graph, bw_node *node, bool labels);
/* Are all of the tile's class numbers below the width? */
bw_status bwi_labels_check(const bwi_call *call, const bwi_tile *tile);
/* Are all of the tile's targets from 0 to 1, where their rows weigh anything? */
bw_status bwi_shares_check(const bwi_call *call, const bwi_tile *tile);
/* Are the sample weights that an input has gathered 0 or more? */
bw_status bwi_sample_weights_check(const bwi_call *call, const bwi_tile *tile);

/* Fails if the node's shape, as its rule computed it, has too many elements to count their bytes. */
bw_status bwi_shape_check(bwi_graph *graph, const bw_node *node);

/* Shape rules: that of the first input (numbers); the same, and all inputs alike. */
bw_status bwi_shape_like_input(bwi_graph *graph, bw_node *node);
bw_status bwi_shape_like_inputs(bwi_graph *graph, bw_node *node);
/* Zeros in those channels of values like the node's output that only fill the last block. */
void bwi_call_clear_padding(const bwi_call *call, void *values);
/* Adds a tile's gradient of a variable, as doubles or as floats, to that of its lane. Nothing happens if it is not trained. */
void bwi_call_add_gradient(const bwi_call *call, const bwi_tile *tile, int variable, const void *sums);
void bwi_call_add_floats(const bwi_call *call, const bwi_tile *tile, int variable, const void *gradient);

/* The address of the float that lies that many further on. */
static inline void *bwi_floats_at(void *base, int64_t floats)
{
    return (char *)base + (size_t)floats * sizeof(float);
}

/* Whether there is a kernel for the convolution before ReLU and pooling. */
bool bwi_conv_pool_fusion(const bw_node *convolution, const bwi_op *fused);

#endif
