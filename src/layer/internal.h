/* Shared by the files of layer: the layers' rows, and the functions by which they become nodes and variables. */
#ifndef BWI_LAYER_INTERNAL_H
#define BWI_LAYER_INTERNAL_H

#include "layer/layer.h"

extern const bwi_layer_row bwi_layer_conv2d, bwi_layer_maxpool2d, bwi_layer_flatten, bwi_layer_dense, bwi_layer_batchnorm,
    bwi_layer_activation, bwi_layer_relu, bwi_layer_softmax;
extern const bwi_layer_row bwi_layer_leaky_relu, bwi_layer_elu, bwi_layer_prelu, bwi_layer_dropout, bwi_layer_spatial_dropout2d,
    bwi_layer_gaussian_noise, bwi_layer_layernorm, bwi_layer_normalization, bwi_layer_rescaling, bwi_layer_add, bwi_layer_subtract,
    bwi_layer_multiply, bwi_layer_average, bwi_layer_maximum, bwi_layer_minimum, bwi_layer_concatenate, bwi_layer_dot;
extern const bwi_layer_row bwi_layer_conv1d, bwi_layer_depthwise_conv2d, bwi_layer_maxpool1d, bwi_layer_avgpool1d,
    bwi_layer_avgpool2d, bwi_layer_global_maxpool1d, bwi_layer_global_maxpool2d, bwi_layer_global_avgpool1d,
    bwi_layer_global_avgpool2d, bwi_layer_reshape, bwi_layer_permute, bwi_layer_zero_padding2d, bwi_layer_cropping2d,
    bwi_layer_upsampling2d;
extern const bwi_layer_row bwi_layer_embedding;
extern const bwi_layer_row bwi_layer_activity_regularization, bwi_layer_resizing, bwi_layer_random_grayscale,
    bwi_layer_random_color_degeneration, bwi_layer_random_invert, bwi_layer_random_posterization, bwi_layer_solarization;
extern const bwi_layer_row bwi_layer_text_vectorization, bwi_layer_string_lookup, bwi_layer_integer_lookup, bwi_layer_hashing,
    bwi_layer_hashed_crossing, bwi_layer_discretization, bwi_layer_category_encoding;

/* ---- Layers for text and categories ---- */

/* Whether an argument is a list that a front keeps (vocabulary, idf_weights, bin_boundaries), and no argument of the row. */
bool bwi_front_is_list(const bwi_layer_row *row, const bwi_term *item);
/* Makes the front of a layer whose arguments were read; the term has its lists. */
bw_status bwi_layer_open_front(bw_context *ctx, bwi_layer *layer, const bwi_term *term);

extern const bwi_layer_row bwi_layer_conv1d_transpose, bwi_layer_conv2d_transpose, bwi_layer_conv3d_transpose;
extern const bwi_layer_row bwi_layer_conv3d, bwi_layer_maxpool3d, bwi_layer_avgpool3d, bwi_layer_global_maxpool3d,
    bwi_layer_global_avgpool3d, bwi_layer_zero_padding3d, bwi_layer_cropping3d, bwi_layer_upsampling3d, bwi_layer_spatial_dropout3d;
extern const bwi_layer_row bwi_layer_random_flip, bwi_layer_random_translation, bwi_layer_random_rotation, bwi_layer_random_zoom,
    bwi_layer_random_brightness, bwi_layer_random_contrast, bwi_layer_adaptive_avgpool1d, bwi_layer_adaptive_avgpool2d,
    bwi_layer_adaptive_avgpool3d, bwi_layer_adaptive_maxpool1d, bwi_layer_adaptive_maxpool2d, bwi_layer_adaptive_maxpool3d,
    bwi_layer_center_crop;
extern const bwi_layer_row bwi_layer_simple_rnn, bwi_layer_lstm, bwi_layer_gru, bwi_layer_masking;
extern const bwi_layer_row bwi_layer_rnn, bwi_layer_simple_rnn_cell, bwi_layer_lstm_cell, bwi_layer_gru_cell,
    bwi_layer_stacked_rnn_cells;
extern const bwi_layer_row bwi_layer_multi_head_attention, bwi_layer_group_query_attention, bwi_layer_attention,
    bwi_layer_additive_attention;
extern const bwi_layer_row bwi_layer_bidirectional, bwi_layer_time_distributed, bwi_layer_einsum_dense;
extern const bwi_layer_row bwi_layer_separable_conv1d, bwi_layer_separable_conv2d, bwi_layer_depthwise_conv1d;
extern const bwi_layer_row bwi_layer_layer_scale, bwi_layer_stochastic_depth, bwi_layer_custom_scale;
extern const bwi_layer_row bwi_layer_group_norm, bwi_layer_rms_norm, bwi_layer_unit_norm;
extern const bwi_layer_row bwi_layer_spatial_dropout1d, bwi_layer_gaussian_dropout, bwi_layer_alpha_dropout;
extern const bwi_layer_row bwi_layer_identity, bwi_layer_repeat_vector, bwi_layer_zero_padding1d, bwi_layer_cropping1d,
    bwi_layer_upsampling1d;

/* ---- What layers are put together from (compose.c): builders, which pass NULL on ---- */

bw_node *bwi_compose_unary(bwi_graph *graph, const char *layer, bw_node *x, bwi_unary_kind kind, float a, float b);
bw_node *bwi_compose_scale(bwi_graph *graph, const char *layer, bw_node *x, float scale, float offset);
/* Reduces the named axes, which stay with extent 1. */
bw_node *bwi_compose_reduce(bwi_graph *graph, const char *layer, bw_node *x, bwi_reduce_kind kind, const bool *named);
/* The second one is repeated to the shape of x. */
bw_node *bwi_compose_multiply(bwi_graph *graph, const char *layer, bw_node *x, bw_node *factor);
bw_node *bwi_compose_subtract(bwi_graph *graph, const char *layer, bw_node *x, bw_node *less);
bw_node *bwi_compose_reshape(bwi_graph *graph, const char *layer, bw_node *x, const bwi_shape *shape);
bw_node *bwi_compose_permute(bwi_graph *graph, const char *layer, bw_node *x, const bwi_permute_attributes *order);
/* Finds the permutation that moves the named axes behind the others, and its inverse. Returns the number of the named ones. */
int bwi_compose_last(const bwi_shape *shape, const bool *named, bwi_permute_attributes *there, bwi_permute_attributes *back);

/* ---- Convolutions (convolution.c) ---- */

/* The shape of a kernel for inputs of that many axes: sizes are those along the height, the width and the depth. */
bwi_shape bwi_convolution_kernel(const int64_t *size, int ndim, int64_t in, int64_t out);

/* The indices of arguments that all convolutions have; nothing else about them differs. */
typedef struct bwi_convolution_indices {
    int activation, strides, padding, dilation, use_bias, kernel_initializer, bias_initializer, kernel_regularizer,
        bias_regularizer;
} bwi_convolution_indices;

bool bwi_convolution_sizes(bwi_graph *graph, const bwi_layer *layer, int ndim, int kernel_size, const bwi_convolution_indices *at,
                           bwi_conv2d_attributes *a);
/* Zeros that the layer before puts around the image can become the convolution's own padding, which costs nothing. That layer's
 * node is then computed only if something else takes it, too. */
bw_node *bwi_convolution_take_padding(bw_node *x, bwi_conv2d_attributes *a);
/* Chooses the op of a convolution of each channel into `multiplier` others. */
const bwi_op *bwi_convolution_depthwise_op(const bw_node *x, const bwi_conv2d_attributes *a, int64_t multiplier);

/* The stream of a layer's random numbers; `seed` is the index of that argument, or -1. */
uint64_t bwi_layer_stream(const bwi_layer *layer, const bwi_graph *graph, const bwi_op *op, int seed);

/* Reads a pair given as one number or as two; `standard` (may be NULL) is used if it was not given. False, after a message, if
 * there are neither one nor two. */
bool bwi_layer_pair(bwi_graph *graph, const bwi_layer *layer, int argument, const int64_t *standard, int64_t pair[2]);
/* Reads sizes along the height and the width of an image (three axes), as bwi_layer_pair does, or the one size along the length
 * of a sequence (two axes), whose height gets 1; of a volume (four axes) there is a third size, the depth, which files have
 * first. */
bool bwi_layer_sizes(bwi_graph *graph, const bwi_layer *layer, int ndim, int argument, const int64_t *standard, int64_t *sizes);
/* False, after a message, unless x is a sequence (length, channels), an image (height, width, channels) or a volume. */
bool bwi_layer_expect(bwi_graph *graph, const bwi_layer *layer, const bw_node *x, int ndim);
/* Adds the layer's nodes, once the first input is found to have the axes that its row demands. A builder. */
bw_node *bwi_layer_nodes(const bwi_layer *layer, bwi_graph *graph, bw_node *const *inputs, int input_count);
/* Converts an axis from Keras's count (the batch is 0, negative ones count from the end) to the sample's, from 0. False, after a
 * message, if there is no such axis. */
bool bwi_layer_axis(bwi_graph *graph, const bwi_layer *layer, int argument, int64_t axis, int ndim, int *result);
/* Makes a variable whose initializer and regularizer (-1: none) are arguments of the layer. NULL as a builder. */
bwi_variable *bwi_layer_variable(bwi_graph *graph, const bwi_layer *layer, const char *name, const bwi_shape *shape,
                                 int initializer, int regularizer, int64_t fan_in, int64_t fan_out);

/* Says in which group of its layer's Keras's files have a variable, unless that is known; NULL is fine. */
void bwi_variable_place(bwi_variable *variable, const char *group);

/* 1 if it is a Bidirectional whose directions are not merged; else 0. */
int bwi_bidirectional_gives_two(const bwi_layer *layer);

/* Adds what a layer gives beside its output. False, as a builder, if it is NULL. */
bool bwi_layer_part(bwi_graph *graph, bw_node *node);

/* Gives an image another height and width, by one of Keras's interpolations. */
#define BWI_INTERPOLATIONS "nearest bilinear bicubic lanczos3 lanczos5"
bw_node *bwi_layer_resample(bwi_graph *graph, const char *layer, bw_node *x, const int64_t size[2], const char *interpolation,
                            bool smooth);

/* ---- Terms ---- */

bool bwi_term_resembles_any(const bwi_term *term, const char *words); /* separated by blanks */
/* Whether the term is Keras's None, or none. */
bool bwi_term_is_none(const bwi_term *term);

/* ---- Tables and variables ---- */

const bwi_layer_row *bwi_layer_row_find(const bwi_term *term);
/* Whether the word is written with capitals, as Keras's classes are. */
bool bwi_layer_is_class(const bwi_term *term);
/* Keras's order of arguments, separated by blanks; NULL if the row has the same order. */
const char *bwi_layer_order(const bwi_layer_row *row);
/* Says why there is no such layer: it is unknown, or known and not supported. */
bw_status bwi_layer_row_refuse(bw_context *ctx, const bwi_term *term);

/* Decides what becomes of the inputs' masks at a layer's output `node`. Returns that node, or one that replaces it. NULL as a
 * builder. */
bw_node *bwi_layer_mask(const bwi_layer *layer, bwi_graph *graph, bw_node *const *inputs, int count, bw_node *node);

/* Adds an activation by Keras's name; "" or "linear" adds none. */
bw_node *bwi_activation_add(bwi_graph *graph, const char *layer, bw_node *node, const char *activation);

/* Finds an activation for the gates of a recurrent layer. False, after a message, if there is none, or if it does not look at each
 * element alone. */
bool bwi_activation_of_cell(bwi_graph *graph, const char *layer, const char *activation, bwi_cell_function *function);

/* Names in the tables, for documentation and tests; NULL after the last. */
const char *bwi_activation_name(int index);
const char *bwi_initializer_names(int index);
const char *bwi_regularizer_name(int index);
const char *bwi_constraint_name(int index);

/* Fills a variable with its initial values, which depend only on the seed and on its place in the model. */
bw_status bwi_initialize(bw_context *ctx, bwi_variable *variable, uint64_t seed);

/* Reads "l1(0.01)", "l2", "l1_l2(l1=0.01,l2=0.01)" into the variable's factors. */
bw_status bwi_regularizer_read(bw_context *ctx, bwi_variable *variable, const char *text);
/* Reads the constraint that a layer has for the variable with this initializer, if there is one. */
bw_status bwi_constraint_read(bw_context *ctx, const bwi_layer *layer, int initializer, bwi_variable *variable);
/* Reads a penalty on the values of a node; only l1, l2 and l1_l2 are possible. */
bw_status bwi_activity_read(bw_context *ctx, const bwi_layer *layer, bw_node *node);

#endif
