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
extern const bwi_layer_row bwi_layer_simple_rnn, bwi_layer_lstm, bwi_layer_gru, bwi_layer_masking;

/* Reads a pair given as one number or as two; `standard` (may be NULL) is used if it was not given. False, after a message, if
 * there are neither one nor two. */
bool bwi_layer_pair(bwi_graph *graph, const bwi_layer *layer, int argument, const int64_t *standard, int64_t pair[2]);
/* Reads sizes along the height and the width of an image (three axes), as bwi_layer_pair does, or the one size along the length
 * of a sequence (two axes), whose height gets 1. */
bool bwi_layer_sizes(bwi_graph *graph, const bwi_layer *layer, int ndim, int argument, const int64_t *standard, int64_t pair[2]);
/* False, after a message, unless x is a sequence (length, channels) or an image (height, width, channels). */
bool bwi_layer_expect(bwi_graph *graph, const bwi_layer *layer, const bw_node *x, int ndim);
/* Converts an axis from Keras's count (the batch is 0, negative ones count from the end) to the sample's, from 0. False, after a
 * message, if there is no such axis. */
bool bwi_layer_axis(bwi_graph *graph, const bwi_layer *layer, int argument, int64_t axis, int ndim, int *result);
/* Makes a variable whose initializer and regularizer (-1: none) are arguments of the layer. NULL as a builder. */
bwi_variable *bwi_layer_variable(bwi_graph *graph, const bwi_layer *layer, const char *name, const bwi_shape *shape,
                                 int initializer, int regularizer, int64_t fan_in, int64_t fan_out);

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

/* Fills a variable with its initial values, which depend only on the seed and on its place in the model. */
bw_status bwi_initialize(bw_context *ctx, bwi_variable *variable, uint64_t seed);

/* Reads "l1(0.01)", "l2", "l1_l2(l1=0.01,l2=0.01)" into the variable's factors. */
bw_status bwi_regularizer_read(bw_context *ctx, bwi_variable *variable, const char *text);

#endif
