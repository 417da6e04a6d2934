/*
 * What the files that other programs run (onnx.c, csource.c) have in common: they are made from the nodes that the model's
 * outputs need, as they predict, one writer for each operator.
 */
#ifndef BWI_EXPORT_H
#define BWI_EXPORT_H

#include "file/internal.h"

/* Which nodes the outputs need, by number; to be released. NULL after a message. */
bool *bwi_export_needed(const bw_model *model);
/* Which of the model's inputs a node of the op `input` is: two nodes may be one field, as numbers and as indices. */
int bwi_export_input(const bw_model *model, const bw_node *node);
/* "layer NAME: OP cannot be written to EXTENSION files" */
bw_status bwi_export_refuse(const bw_model *model, const bw_node *node, const char *extension);
/* Does the op, when it predicts, give its input as it is? */
bool bwi_export_is_identity(const bw_node *node);
/* A variable's values in Keras's order; to be released. NULL after a message. */
float *bwi_export_values(bw_context *ctx, const bwi_variable *variable);

/* How the training data was read and prepared, as JSON: the samples must come in the same way. Nothing if nothing was done. */
bw_status bwi_export_preparation(const bw_model *model, bwi_json_writer *writer);

/* What the recipe of the training data does to an input, so that the exported model takes raw values: a factor, then steps as of
 * bwi_recipe_step. */
bool bwi_export_is_prepared(const bw_model *model, int input);
double bwi_export_scale(const bw_model *model);
/* Tells what of the preparation cannot be written. */
void bwi_export_warn(const bw_model *model, const char *path);

/* A window that slides over a sequence or an image: sizes along the height (1 of a sequence) and the width. */
typedef struct bwi_sliding {
    int64_t in[2], out[2], size[2], strides[2], dilation[2], before[2], after[2];
    int64_t channels; /* of the input */
} bwi_sliding;

bwi_sliding bwi_export_convolution(const bw_node *node);
bwi_sliding bwi_export_pooling(const bw_node *node);

#endif
