/* What the files of op share: shape rules, gradients in lanes, rows of losses and metrics. */
#ifndef BWI_OP_INTERNAL_H
#define BWI_OP_INTERNAL_H

#include "op/op.h"

/* A tile as losses and metrics see it. The inputs are prediction, target and optionally weights: one for each sample, or one for
 * each row of the prediction. */
bwi_rows bwi_rows_of(const bwi_call *call);
static inline const void *bwi_rows_weight(const bwi_call *call)
{
    return call->node->inputs > 2 ? call->src[2] : NULL;
}
/* For shape rules: checks that target and weights fit, and gives the node a shape without axes. `labels`: the target has a class
 * number for each row. */
bw_status bwi_rows_check(bwi_graph *graph, bw_node *node, bool labels);
/* Checks that all of the tile's class numbers are below the width. */
bw_status bwi_labels_check(const bwi_call *call, const bwi_tile *tile);
/* Checks that all of the tile's targets lie between 0 and 1, except in rows of weight 0. */
bw_status bwi_shares_check(const bwi_call *call, const bwi_tile *tile);
/* Checks that the sample weights that an input has gathered are 0 or more. */
bw_status bwi_sample_weights_check(const bwi_call *call, const bwi_tile *tile);

/* Fails if the node's shape has too many elements for their bytes to be counted. */
bw_status bwi_shape_check(bwi_graph *graph, const bw_node *node);

/* Shape rules: the shape of the first input, which must be numbers; the second one also requires all inputs to have that shape. */
bw_status bwi_shape_like_input(bwi_graph *graph, bw_node *node);
bw_status bwi_shape_like_inputs(bwi_graph *graph, bw_node *node);
/* Clears the channels that only fill up the last block, in values laid out like the node's output. */
void bwi_call_clear_padding(const bwi_call *call, void *values);
/* Adds a tile's gradient of a variable, given as doubles or as floats, to the gradient in its lane. Nothing happens if the
 * variable is not trained. */
void bwi_call_add_gradient(const bwi_call *call, const bwi_tile *tile, int variable, const void *sums);
void bwi_call_add_floats(const bwi_call *call, const bwi_tile *tile, int variable, const void *gradient);

/* Dropout: elements whose random word is below the limit are dropped, the others scaled. A rate of 1 drops everything. */
uint32_t bwi_dropout_limit(float rate);
float bwi_dropout_scale(float rate);

/* The address of a float, counted from `base`. */
static inline void *bwi_floats_at(void *base, int64_t floats)
{
    return (char *)base + (size_t)floats * sizeof(float);
}

/* The axis of a sample's shape along which a convolution's sizes with index i go. */
static inline int bwi_conv2d_axis(const bwi_shape *shape, int i)
{
    return i == 2 ? 0 : i + shape->ndim - 3;
}

/* The extents of a volume; images have the depth 1, sequences the height 1 as well. */
void bwi_conv_extents_of(const bwi_shape *shape, int64_t *d, int64_t *h, int64_t *w, int64_t *c);

/* What conv2d, conv3d and their transposes share (convolution.c). An input must be a volume if the kernel has a depth, and
 * otherwise an image or, with a kernel of height 1, a sequence. */
bw_status bwi_conv_op_expect(bwi_graph *graph, const bw_node *node, const int64_t kernel[3]);
/* Stores the weights, variable 0 of the node, as the device's convolution of one sample prefers them. */
bw_status bwi_conv_op_pack(bw_context *ctx, const bw_node *node, const bwi_conv_shape *one_sample);
const bwi_conv *bwi_conv_op_prototype(const bw_node *node);
const bwi_conv_facts *bwi_conv_op_packing_facts(const bw_node *node);
const bwi_conv_facts *bwi_conv_op_facts_of(const bwi_call *call);
/* Where a tile's gradient of the weights lies: after the convolution's own scratch. */
void *bwi_conv_op_tile_gradient(const bwi_call *call);
bw_status bwi_conv_op_bind(bw_context *ctx, bwi_call *call, bwi_conv_pass pass, const bwi_conv_memory *memory);
void bwi_conv_op_unbind(const bwi_kernels *kernels, void *bound);
void bwi_conv_op_release(const bwi_kernels *kernels, void *prepared);
bw_status bwi_conv_op_prologue(const bwi_call *call);
bw_status bwi_conv_op_run(const bwi_call *call, const bwi_tile *tile);
/* The difference of the device's src by conv_data, where the facts say data_squares. */
void bwi_conv_op_square_data(const bwi_call *call, const bwi_conv_shape *shape, const void *dy, void *dx);

/* Whether the kernels of `fused` can compute this convolution with the ReLU and pooling that follow it. */
bool bwi_conv_pool_fusion(const bw_node *convolution, const bwi_op *fused);

#endif
