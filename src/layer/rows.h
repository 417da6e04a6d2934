/* Declarations of the layers' rows, and what their files share. */
#ifndef BWI_LAYER_ROWS_H
#define BWI_LAYER_ROWS_H

#include "layer/layer.h"

extern const bwi_layer_row bwi_layer_conv2d, bwi_layer_maxpool2d, bwi_layer_flatten, bwi_layer_dense, bwi_layer_batchnorm,
    bwi_layer_activation, bwi_layer_relu, bwi_layer_softmax;

/* A pair given as one number or as two; `standard` (may be NULL) if it was not given. False: neither one nor two. */
bool bwi_layer_pair(bwi_graph *graph, const bwi_layer *layer, int argument, const int64_t *standard, int64_t pair[2]);
/* A variable whose initializer and regularizer (may be -1: none) are arguments of the layer. NULL as a builder. */
bwi_variable *bwi_layer_variable(bwi_graph *graph, const bwi_layer *layer, const char *name, const bwi_shape *shape,
                                 int initializer, int regularizer, int64_t fan_in, int64_t fan_out);

#endif
