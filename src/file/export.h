/*
 * Shared by the exporters of files that other programs run (onnx.c, csource.c). Such files are made from the nodes that the model's
 * outputs need for prediction, by one writer for each operator.
 */
#ifndef BWI_EXPORT_H
#define BWI_EXPORT_H

#include "file/internal.h"

/* Finds the nodes that the outputs need, by number. The caller releases the array; NULL after a message. */
bool *bwi_export_needed(const bw_model *model);
/* Which of the model's inputs a node of the op `input` stands for; two nodes may be one field, as numbers and as indices. */
int bwi_export_input(const bw_model *model, const bw_node *node);
/* Fails with "layer NAME: OP cannot be written to EXTENSION files". */
bw_status bwi_export_refuse(const bw_model *model, const bw_node *node, const char *extension);
/* Whether the op returns its input unchanged when it predicts. */
bool bwi_export_is_identity(const bw_node *node);
/* Returns a variable's values in Keras's order, which the caller releases; NULL after a message. */
float *bwi_export_values(bw_context *ctx, const bwi_variable *variable);

/* Writes as JSON how the training data was read and prepared, since samples must be prepared in the same way. Writes nothing if
 * nothing was done. */
bw_status bwi_export_preparation(const bw_model *model, bwi_json_writer *writer);

/* The recipe of the training data is applied to an input by a factor and then by steps (see bwi_recipe_step), so that the
 * exported model accepts raw values. */
bool bwi_export_is_prepared(const bw_model *model, int input);
double bwi_export_scale(const bw_model *model);
/* Appends what input number i of the only input stands for: a column of the table that the model was trained on ("age"), or one of
 * a column's categories ("city=Rome"). False: there is no such number, or no table. */
bool bwi_export_label(const bw_model *model, int64_t i, bwi_text *text);
/* Warns of those parts of the preparation that cannot be written. */
void bwi_export_warn(const bw_model *model, const char *path);

/* A window that slides over a sequence, an image or a volume, with sizes along the height (1 for a sequence), the width and the
 * depth (0: there is none). */
typedef struct bwi_sliding {
    int64_t in[3], out[3], size[3], strides[3], dilation[3], before[3], after[3];
    int64_t channels; /* channels of the input */
} bwi_sliding;

/* The weights of a resample node, [to][from], which the caller releases; NULL if there is no memory. */
float *bwi_export_resampling(bw_context *ctx, const bw_node *node);

bwi_sliding bwi_export_convolution(const bw_node *node);
bwi_sliding bwi_export_pooling(const bw_node *node);

/* Writes the part of a model behind its layers for text and categories (fronts.c); `put` sees what they make as inputs. */
bw_status bwi_export_behind_fronts(bw_model *model, const char *path, bwi_file_out *out,
                                   bw_status (*put)(bw_model *model, const char *path, bwi_file_out *out));

#endif
