/*
 * op: the operators. Each is a file and a row in bwi_ops; a row in bwi_fusions replaces several nodes by one operator.
 */
#ifndef BWI_OP_H
#define BWI_OP_H

#include "graph/graph.h"
#include "kernel/kernel.h"

/* Every operator, for tests and benchmarks; ends with NULL. */
extern const bwi_op *const bwi_ops[];

extern const bwi_op bwi_op_input, bwi_op_conv2d, bwi_op_maxpool2d, bwi_op_relu, bwi_op_relu_maxpool, bwi_op_conv_relu_maxpool,
    bwi_op_thin_relu_maxpool, bwi_op_winograd_relu_maxpool, bwi_op_winograd_relu, bwi_op_winograd, bwi_op_softmax, bwi_op_reshape,
    bwi_op_dense, bwi_op_batchnorm, bwi_op_reorder, bwi_op_crossentropy, bwi_op_accuracy, bwi_op_mean, bwi_op_custom,
    bwi_op_custom_constant;
extern const bwi_op bwi_op_avgpool2d, bwi_op_global_maxpool, bwi_op_pad2d, bwi_op_upsample2d, bwi_op_permute, bwi_op_depthwise;
extern const bwi_op bwi_op_recurrent, bwi_op_attention, bwi_op_reverse;
extern const bwi_op bwi_op_embedding, bwi_op_index_mask, bwi_op_masked_average, bwi_op_mask_any, bwi_op_mask_weights,
    bwi_op_value_mask;

extern const bwi_op bwi_op_loss, bwi_op_confusion, bwi_op_variation, bwi_op_moments, bwi_op_class_weight;
extern const bwi_op bwi_op_agreement, bwi_op_match, bwi_op_correlation;
extern const bwi_op bwi_op_ignored_mask, bwi_op_ignored_labels, bwi_op_balance;
extern const bwi_op bwi_op_graded_loss, bwi_op_ctc, bwi_op_sparsemax;
extern const bwi_op bwi_op_conv2d_transpose, bwi_op_conv3d, bwi_op_conv3d_transpose;
extern const bwi_op bwi_op_random_view, bwi_op_random_contrast, bwi_op_random_color, bwi_op_resample;

/* ---- Attributes, by operator ---- */

/* input: a field of the samples. */
typedef struct bwi_input_attributes {
    bwi_shape shape;
    bw_dtype dtype;
    bwi_role role;
    char name[64]; /* the field's; "": the only one of its role */
    int field;     /* its number in the dataset, once there is one */
} bwi_input_attributes;

/* conv2d, conv3d: along the height, the width and, for volumes, the depth; a kernel of depth 0: images. */
typedef struct bwi_conv2d_attributes {
    int64_t filters, kernel[3], strides[3], dilation[3], groups;
    bool same;
    int64_t pad[3][2]; /* zeros before and after, besides those of `same` */
} bwi_conv2d_attributes;

/* conv2d_transpose, conv3d_transpose: the backward pass of a convolution. Variable: kernel (kd, kh, kw, filters, in). */
typedef struct bwi_conv2d_transpose_attributes {
    int64_t filters, kernel[3], strides[3], dilation[3];
    bool same;
    int64_t output_padding[3]; /* -1: the output's extent is the one that Keras infers */
} bwi_conv2d_transpose_attributes;

typedef struct bwi_pool2d_attributes {
    int64_t window[2], strides[2];
    bool same;
} bwi_pool2d_attributes;

typedef struct bwi_pad2d_attributes {
    int64_t amount[2][2]; /* of rows, of columns: before and after; negative: cut off */
} bwi_pad2d_attributes;

/* The node's attributes if it pads; NULL: it is another op. */
const bwi_pad2d_attributes *bwi_pad2d_of(const bw_node *node);

typedef bwi_upsampling bwi_upsample2d_attributes;

typedef struct bwi_permute_attributes {
    int ndim, axes[BW_MAX_NDIM]; /* of the input, from 0, by axis of the output */
} bwi_permute_attributes;

typedef struct bwi_reshape_attributes {
    bwi_shape shape; /* ndim -1: flatten */
} bwi_reshape_attributes;

typedef struct bwi_dense_attributes {
    int64_t units;
} bwi_dense_attributes;

typedef struct bwi_recurrent_attributes {
    bwi_cell cell;
    int64_t units;
    bwi_cell_function activation, recurrent_activation;
    bool sequences, backwards, zero_masked, begins, ends; /* as in bwi_recurrent */
    float dropout;                                        /* of states, in training; draws are keyed as those of noise */
    uint64_t stream;
} bwi_recurrent_attributes;

int64_t bwi_cell_gates(bwi_cell cell);
int bwi_cell_states(bwi_cell cell); /* 2 if it carries a second state, else 1 */
/* Which of a recurrent node's inputs is its mask; 0: it has none. */
int bwi_recurrent_mask(const bw_node *node);

/* attention: inputs are q (queries, heads * width), k (keys, groups * width), v (keys, groups * value width), then the masks that
 * there are, in this order. Variables: the scores' factor and weight, as far as there are any. */
typedef struct bwi_attention_attributes {
    int64_t heads, groups;
    bwi_attention_scores scores;
    bwi_attention_masking masking;
    float scale;
    bool causal;
    int64_t window;
    float dropout; /* of the shares, in training; draws are keyed as those of noise */
    uint64_t stream;
    bool query_mask, key_mask, pair_mask, factor, weight;
} bwi_attention_attributes;

/* The inputs and outputs of a dense kernel, which may have more than two axes. */
int64_t bwi_dense_in(const bwi_variable *kernel);
int64_t bwi_dense_out(const bwi_variable *kernel);

/* What kernels get to know of an attention node. */
bwi_attention bwi_attention_of(const bw_node *node, int64_t samples);

typedef struct bwi_batchnorm_attributes {
    float momentum, epsilon;
    bool center, scale; /* variables: gamma if scale, beta if center, moving_mean, moving_variance */
    int64_t ghost;      /* batchnorm_ghost: samples of a group, a power of two */
} bwi_batchnorm_attributes;

/* loss: its formula (kernel/loops/loss.h). */
typedef struct bwi_loss_attributes {
    bwi_loss_kind kind;
    float parameter;
} bwi_loss_attributes;

typedef bwi_graded bwi_graded_attributes; /* graded_loss: a formula of kernel/loops/loss.h */

typedef struct bwi_crossentropy_attributes {
    float smoothing;
} bwi_crossentropy_attributes;

typedef bwi_accuracy bwi_accuracy_attributes; /* what the kernel compares */

typedef enum bwi_curve { BWI_CURVE_ROC, BWI_CURVE_PR, BWI_CURVE_PRGAIN } bwi_curve;
typedef enum bwi_summation { BWI_SUMMATION_INTERPOLATION, BWI_SUMMATION_MINORING, BWI_SUMMATION_MAJORING } bwi_summation;

typedef struct bwi_confusion_attributes {
    bwi_confusion confusion;
    bwi_curve curve; /* what is computed from the buckets */
    bwi_summation summation;
    double at; /* for a metric at a given value of another one: that value */
} bwi_confusion_attributes;

/* agreement: how F-scores are computed from it. */
typedef enum bwi_average { BWI_AVERAGE_NONE, BWI_AVERAGE_MICRO, BWI_AVERAGE_MACRO, BWI_AVERAGE_WEIGHTED } bwi_average;

typedef struct bwi_agreement_attributes {
    float threshold; /* 0: the largest of a row is positive */
    double beta;
    bwi_average average;
} bwi_agreement_attributes;

/* match: the classes whose intersection over union is averaged; none: all. */
typedef struct bwi_match_attributes {
    bwi_match match;
    int class_count;
    int64_t class_ids[BW_MAX_NDIM];
} bwi_match_attributes;

typedef struct bwi_correlation_attributes {
    bwi_correlation_kind kind;
} bwi_correlation_attributes;

/* variation: how R2 is computed from it. */
typedef struct bwi_variation_attributes {
    bool by_variance; /* scores are weighted by the targets' variance instead of averaged */
    int64_t regressors;
} bwi_variation_attributes;

typedef struct bwi_class_weight_attributes {
    int64_t count;
    float weight[]; /* by class */
} bwi_class_weight_attributes;

typedef struct bwi_ignore_attributes {
    int32_t class_number;
} bwi_ignore_attributes;

/* How a window of `size` (dilated) slides over `extent` with Keras's padding: the output's extent, and the padding before and
 * after. */
void bwi_pool_extent(int64_t extent, int64_t size, int64_t stride, bool same, int64_t *out, int64_t *before, int64_t *after);

/* The same for a convolution, along the height (0), the width (1) or the depth (2), over an extent of `in`. */
void bwi_conv2d_extents(const bwi_conv2d_attributes *a, int i, int64_t in, int64_t *out, int64_t *before, int64_t *after);

/* The output of a node as an image of n samples, as kernels see it. */
bwi_image bwi_node_image(const bw_node *node, int64_t n);

/* ---- Elementwise ops, merging, reducing ---- */

extern const bwi_op bwi_op_activation, bwi_op_activation_of_input, bwi_op_softmax_axis, bwi_op_prelu;
extern const bwi_op bwi_op_dropout, bwi_op_shared_dropout, bwi_op_spatial_dropout, bwi_op_gaussian_noise, bwi_op_gaussian_dropout,
    bwi_op_alpha_dropout;
extern const bwi_op bwi_op_channel_affine, bwi_op_channel_map;
extern const bwi_op bwi_op_layernorm, bwi_op_batchnorm_frozen, bwi_op_batchnorm_ghost, bwi_op_normalization, bwi_op_l2_normalize;
extern const bwi_op bwi_op_scale, bwi_op_unary, bwi_op_add, bwi_op_binary, bwi_op_broadcast;
extern const bwi_op bwi_op_reduce, bwi_op_reduce_extreme, bwi_op_dot, bwi_op_slice, bwi_op_concatenate;

/* activation: a formula of kernel.h. activation_of_input is for those whose derivative is computed from x (silu, gelu). */
typedef struct bwi_activation_attributes {
    bwi_activation kind;
    float p[3];
} bwi_activation_attributes;

typedef struct bwi_value_mask_attributes {
    float value;
} bwi_value_mask_attributes;

/* softmax_axis, l2_normalize, concatenate: an axis of the sample's shape, from 0. */
typedef struct bwi_axis_attributes {
    int axis;
} bwi_axis_attributes;

/* dropout, shared_dropout (elements that share a draw), spatial_dropout (whole channels of an image), alpha_dropout (amount: the
 * rate); gaussian_noise, gaussian_dropout (amount: the standard deviation).
 * Draws are keyed by seed, stream, update and the sample's position. */
typedef struct bwi_noise_attributes {
    float amount;
    uint64_t stream;
    bwi_shape shared; /* shared_dropout, alpha_dropout: the shape of what is drawn, with 1 along axes that share a draw */
    bool same;        /* every sample shares the draw */
} bwi_noise_attributes;

/* random_view: the limits of what is drawn, of rows and of columns. */
typedef struct bwi_random_view_attributes {
    float shift[2][2];     /* shares of the height and the width */
    float zoom[2][2];      /* 1: as it is; above: more than the image is seen */
    bool one_zoom;         /* columns are magnified as rows are */
    float turn[2];         /* shares of a full turn */
    bool flip[2], nearest; /* mirrored half of the time */
    bwi_fill fill;
    float value;
    uint64_t stream;
} bwi_random_view_attributes;

/* random_contrast: y = (x - mean) factor + mean + offset, held within the range. */
typedef struct bwi_random_contrast_attributes {
    float factor[2], offset[2], range[2];
    uint64_t stream;
} bwi_random_contrast_attributes;

/* random_color: the limits of what is drawn (kernel/loops/picture.h). A sample is changed if a number of [0, 1) is below its
 * chance. */
typedef struct bwi_random_color_attributes {
    bwi_color_kind kind;
    float chance[2], first[2], second[2], range[2];
    bool clips;
    uint64_t stream;
} bwi_random_color_attributes;

typedef struct bwi_resample_attributes {
    int axis; /* of the sample's shape, from 0 */
    int64_t extent;
    bwi_interpolation kind;
    bool smooth;
} bwi_resample_attributes;

/* channel_affine: x gamma + beta, by channel; variables: gamma if scale, beta if center. */
typedef struct bwi_channel_affine_attributes {
    bool center, scale;
} bwi_channel_affine_attributes;

/* channel_map: (x - mean) scale + shift with numbers that are no variables, one of each for each channel. */
typedef struct bwi_channel_map_attributes {
    int64_t channels;
    float number[]; /* means, scales, shifts */
} bwi_channel_map_attributes;

typedef struct bwi_layernorm_attributes {
    int axes; /* how many of the last axes are normalised together */
    float epsilon;
    bool center, scale; /* variables: gamma if scale, beta if center */
} bwi_layernorm_attributes;

/* normalization: (x - mean) / max(sqrt(variance), 1e-7), or its inverse. Variables: mean, variance, and any others that only
 * belong to the layer. */
typedef struct bwi_normalization_attributes {
    bwi_shape spread; /* the shape of mean and variance by x's axes: 1 along those that share them */
    bool invert;
} bwi_normalization_attributes;

/* scale: x scale + offset. */
typedef struct bwi_scale_attributes {
    float scale, offset;
} bwi_scale_attributes;

/* unary: a formula of kernel/loops/elementwise.h. */
typedef struct bwi_unary_attributes {
    bwi_unary_kind kind;
    float a, b;
} bwi_unary_attributes;

/* add: (x0 + x1 + ...) scale, or (x0 - x1 - ...) scale; inputs of one shape. */
typedef struct bwi_add_attributes {
    bool subtract;
    float scale;
} bwi_add_attributes;

/* binary: a formula of kernel/loops/elementwise.h for two inputs of one shape. */
typedef struct bwi_binary_attributes {
    bwi_binary_kind kind;
} bwi_binary_attributes;

/* broadcast: to a shape, by the usual rule: axes are aligned at the last, an extent of 1 or a missing one is repeated. */
typedef struct bwi_broadcast_attributes {
    bwi_shape shape;
} bwi_broadcast_attributes;

/* reduce: sum and mean; reduce_extreme: maximum and minimum (equal ones share the difference). */
typedef enum bwi_reduce_kind { BWI_REDUCE_SUM, BWI_REDUCE_MEAN, BWI_REDUCE_MAX, BWI_REDUCE_MIN } bwi_reduce_kind;

typedef struct bwi_reduce_attributes {
    bwi_reduce_kind kind;
    int axis;      /* of the sample's shape, from 0; -1: all */
    bool keepdims; /* reduced axes stay, with extent 1 */
} bwi_reduce_attributes;

/* dot: sums over one axis of each input. The output has the remaining axes of the first input, then those of the second. Two
 * vectors give one number, of shape (1). The product of two matrices has axis {1, 0}. */
typedef struct bwi_dot_attributes {
    int axis[2];
} bwi_dot_attributes;

typedef struct bwi_slice_attributes {
    int axis;
    int64_t start, count;
} bwi_slice_attributes;

/* A node with the shape to which both broadcast, or the node itself if it has that shape already. A builder. */
bw_node *bwi_op_broadcast_to(bwi_graph *graph, const char *name, bw_node *node, const bwi_shape *shape);
/* The shape to which both broadcast; false if there is none. */
bool bwi_shape_broadcast(const bwi_shape *a, const bwi_shape *b, bwi_shape *result);

/* Descriptions for kernels (kernel/loops/shapes.h): of a shape around an axis, and of a smaller array repeated over a larger
 * one. */
bwi_around bwi_shape_around(const bwi_shape *shape, int axis);
bwi_spread bwi_spread_over(const bwi_shape *large, const bwi_shape *small);

/* ---- Fusions ---- */

/* A chain of nodes, each the only user of the one before, that one operator computes in one pass. Its inputs and variables are
 * those of the first node. */
enum { BWI_CHAIN = 3 };

typedef struct bwi_fusion {
    const bwi_op *chain[BWI_CHAIN];
    int length;
    int attributes; /* which of the nodes gives it attributes and name */
    const bwi_op *fused;
    bool (*fits)(const bw_node *const *chain);
    bool inexact; /* it rounds more than the separate nodes do: not used with exact kernels */
} bwi_fusion;

extern const bwi_fusion bwi_fusions[]; /* the first that fits is used; ends with a row of NULLs */

#endif
