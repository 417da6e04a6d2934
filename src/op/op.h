/*
 * op: the operators. One operator is one file and one row; a pattern row fuses several nodes into one.
 */
#ifndef BWI_OP_H
#define BWI_OP_H

#include "graph/graph.h"
#include "kernel/kernel.h"

/* Every operator, for the gradient checker, benchmarks and documentation; ends with NULL. */
extern const bwi_op *const bwi_ops[];

extern const bwi_op bwi_op_input, bwi_op_conv2d, bwi_op_maxpool2d, bwi_op_relu, bwi_op_relu_maxpool, bwi_op_softmax, bwi_op_reshape,
    bwi_op_dense, bwi_op_batchnorm, bwi_op_reorder, bwi_op_crossentropy, bwi_op_accuracy, bwi_op_mean,
    bwi_op_custom, bwi_op_custom_constant;
extern const bwi_op bwi_op_avgpool2d, bwi_op_global_maxpool, bwi_op_pad2d, bwi_op_upsample2d, bwi_op_permute;
extern const bwi_op bwi_op_embedding, bwi_op_index_mask, bwi_op_masked_average, bwi_op_mask_any, bwi_op_mask_weights;

extern const bwi_op bwi_op_loss, bwi_op_confusion, bwi_op_variation, bwi_op_class_weight;

/* ---- Attributes, by operator ---- */

/* input: a field of the samples. */
typedef struct bwi_input_attributes {
    bwi_shape shape;
    bw_dtype dtype;
    int role;      /* 0: an input, 1: a target, 2: a weight */
    char name[64]; /* the field's; "": the only one of its role */
    int field;     /* its number in the dataset, once there is one */
} bwi_input_attributes;

typedef struct bwi_conv2d_attributes {
    int64_t filters, kernel[2], strides[2], dilation[2], groups;
    bool same;
    int64_t pad[2][2]; /* rows, columns; zeros before and after, besides those of `same` */
} bwi_conv2d_attributes;

typedef struct bwi_pool2d_attributes {
    int64_t window[2], strides[2];
    bool same;
} bwi_pool2d_attributes;

typedef struct bwi_pad2d_attributes {
    int64_t amount[2][2]; /* rows, columns; before, after; negative: cut off */
} bwi_pad2d_attributes;

typedef struct bwi_upsample2d_attributes {
    int64_t size[2];
    bool bilinear; /* else nearest */
} bwi_upsample2d_attributes;

typedef struct bwi_permute_attributes {
    int rank, axes[BW_MAX_RANK]; /* from 0; of the input, by axis of the output */
} bwi_permute_attributes;

typedef struct bwi_reshape_attributes {
    bwi_shape shape; /* rank -1: flatten */
} bwi_reshape_attributes;

typedef struct bwi_dense_attributes {
    int64_t units;
} bwi_dense_attributes;

typedef struct bwi_batchnorm_attributes {
    float momentum, epsilon;
    bool center, scale; /* variables: gamma if scale, beta if center, moving_mean, moving_variance */
} bwi_batchnorm_attributes;

/* loss: its formula (op/loss.c). */
typedef enum bwi_loss_kind {
    BWI_LOSS_SQUARE,
    BWI_LOSS_ABSOLUTE,
    BWI_LOSS_PERCENTAGE,
    BWI_LOSS_LOGARITHMIC,
    BWI_LOSS_HUBER, /* parameter: delta */
    BWI_LOSS_LOG_COSH,
    BWI_LOSS_POISSON,
    BWI_LOSS_HINGE,
    BWI_LOSS_SQUARED_HINGE,
    BWI_LOSS_BINARY_LOGITS, /* parameter: label smoothing */
    BWI_LOSS_BINARY,        /* likewise; of probabilities */
    BWI_LOSS_DIVERGENCE,
    BWI_LOSS_CATEGORICAL, /* of probabilities; parameter: label smoothing */
    BWI_LOSS_SPARSE,      /* of probabilities, for class numbers */
    BWI_LOSS_CATEGORICAL_HINGE,
    BWI_LOSS_COSINE
} bwi_loss_kind;

typedef struct bwi_loss_attributes {
    bwi_loss_kind kind;
    float parameter;
} bwi_loss_attributes;

typedef struct bwi_crossentropy_attributes {
    float smoothing;
} bwi_crossentropy_attributes;

/* What accuracy compares. */
typedef enum bwi_accuracy_kind {
    BWI_ACCURACY_SPARSE,
    BWI_ACCURACY_CATEGORICAL,
    BWI_ACCURACY_BINARY,
    BWI_ACCURACY_SPARSE_TOP,
    BWI_ACCURACY_TOP
} bwi_accuracy_kind;

typedef struct bwi_accuracy_attributes {
    bwi_accuracy_kind kind;
    float threshold; /* of binary accuracy */
    int64_t k;       /* of the two last */
} bwi_accuracy_attributes;

typedef enum bwi_curve { BWI_CURVE_ROC, BWI_CURVE_PR, BWI_CURVE_PRGAIN } bwi_curve;
typedef enum bwi_summation { BWI_SUMMATION_INTERPOLATION, BWI_SUMMATION_MINORING, BWI_SUMMATION_MAJORING } bwi_summation;

typedef struct bwi_confusion_attributes {
    int64_t buckets; /* 0: one threshold */
    float threshold;
    bool from_logits;
    bwi_curve curve; /* what is to be made of the buckets */
    bwi_summation summation;
} bwi_confusion_attributes;

/* variation: what R2 is to be made of it. */
typedef struct bwi_variation_attributes {
    bool by_variance; /* scores weighted by the targets' variance, not averaged */
    int64_t regressors;
} bwi_variation_attributes;

typedef struct bwi_class_weight_attributes {
    int64_t count;
    float weight[]; /* by class */
} bwi_class_weight_attributes;

/* A sample as losses and metrics see it: rows along the prediction's last axis. Inputs are prediction, target and optionally
 * weights: one for the sample, or one for each row. */
typedef struct bwi_rows {
    int64_t count, width;
    int64_t weights; /* of a sample; 0: none */
    const float *weight;
} bwi_rows;

bwi_rows bwi_rows_of(const bwi_call *call);
/* Of row r, counted over the tile, in sample s. */
static inline float bwi_rows_weight(const bwi_rows *rows, int64_t s, int64_t r)
{
    return rows->weights == 0 ? 1 : rows->weight[rows->weights == 1 ? s : r];
}
/* For shape rules: do target and weights fit, and the node's shape: none. `labels`: a class number for each row. */
bw_status bwi_rows_check(bwi_graph *graph, bw_node *node, bool labels);
/* Are all of the tile's class numbers below the width? */
bw_status bwi_labels_check(const bwi_call *call, const bwi_tile *tile);

/* Where a window of `size` (dilated) starts when it slides over `extent` with Keras's padding: output extent, and the
 * padding before and after. */
void bwi_window_extent(int64_t extent, int64_t size, int64_t stride, bool same, int64_t *out, int64_t *before, int64_t *after);

/* Fails if the node's shape, as its rule computed it, has too many elements to count their bytes. */
bw_status bwi_shape_check(bwi_graph *graph, const bw_node *node);

/* The output of a node as kernels see it, for n samples. */
bwi_image bwi_node_image(const bw_node *node, int64_t n);

/* ---- Patterns ---- */

/* Two nodes, the second the only user of the first, that one operator does in one pass. Its attributes are the
 * second's, its inputs and variables the first's. */
typedef struct bwi_pattern {
    const bwi_op *first, *second, *fused;
    bool (*fits)(const bw_node *first, const bw_node *second);
} bwi_pattern;

extern const bwi_pattern bwi_patterns[]; /* ends with a row of NULLs */

#endif
