/*
 * ONNX: declarations that onnx.c (the model and its values) shares with the writers of operators (onnx_ops.c, onnx_spatial.c).
 *
 * A node's values have channels last, as in Keras, or channels first, as ONNX's convolutions and pools require. They are converted
 * only when an operator asks for the order that does not exist yet.
 */
#ifndef BWI_ONNX_H
#define BWI_ONNX_H

#include "file/export.h"

enum { BWI_ONNX_NAME = 128 };
typedef char bwi_onnx_name[BWI_ONNX_NAME];

typedef enum bwi_onnx_order { BWI_ONNX_LAST, BWI_ONNX_FIRST } bwi_onnx_order;

typedef struct bwi_onnx {
    bw_context *ctx;
    bw_model *model;
    bwi_wire nodes, constants;
    bwi_values *late; /* values of variables, which are put into the constants' gaps when the file is written */
    int late_count;
    bwi_onnx_name (*names)[2]; /* names of each node's values in both orders; "": they do not exist in that order */
    bwi_onnx_name outputs[BWI_MAX_HEADS];
    bool *written;       /* indexed by variable: whether it is among the constants */
    int values, numbers; /* counters for new names; two, as the compiler chooses the order in which arguments are evaluated */
    bw_status status;    /* first failure, apart from those of the wires */
} bwi_onnx;

/* ---- Values ---- */

/* Returns the name of an input's values in this order. */
const char *bwi_onnx_of(bwi_onnx *o, const bw_node *node, bwi_onnx_order order);
/* Returns the order in which the node's values already exist. */
bwi_onnx_order bwi_onnx_order_of(const bwi_onnx *o, const bw_node *node);
/* Returns the name under which this node's values must be written. */
const char *bwi_onnx_result(bwi_onnx *o, const bw_node *node, bwi_onnx_order order);
/* Makes a new name for intermediate values. */
const char *bwi_onnx_new(bwi_onnx *o, bwi_onnx_name name);

/* ---- Constants ---- */

const char *bwi_onnx_variable(bwi_onnx *o, const bwi_variable *variable);
/* Adds a variable under its name once, in a shape that holds its values in the order that `values` has. */
const char *bwi_onnx_values(bwi_onnx *o, const bwi_values *values, int ndim, const int64_t *shape);
/* Adds values that have a different shape than the variable, under `name`, or under a new name if that is empty. */
const char *bwi_onnx_floats(bwi_onnx *o, bwi_onnx_name name, int ndim, const int64_t *shape, const float *values);
const char *bwi_onnx_float(bwi_onnx *o, bwi_onnx_name name, float value);
const char *bwi_onnx_wholes(bwi_onnx *o, bwi_onnx_name name, int64_t count, const int64_t *values);
/* Adds a shape with the batch: -1 (or `first`), then the extents. */
const char *bwi_onnx_shape(bwi_onnx *o, bwi_onnx_name name, int64_t first, const bwi_shape *shape);

/* ---- Operators: begin, attributes, end ---- */

/* `inputs` ends with NULL. */
void bwi_onnx_begin(bwi_onnx *o, const char *type, const char *const *inputs, const char *output);
void bwi_onnx_put(bwi_onnx *o, const char *name, int64_t value);
void bwi_onnx_put_float(bwi_onnx *o, const char *name, float value);
void bwi_onnx_put_text(bwi_onnx *o, const char *name, const char *value);
void bwi_onnx_put_list(bwi_onnx *o, const char *name, int count, const int64_t *values);
/* One more output of the operator. */
void bwi_onnx_put_output(bwi_onnx *o, const char *name);
/* A graph of nodes, as an attribute: the names of its inputs and outputs are of float32 values. */
void bwi_onnx_put_graph(bwi_onnx *o, const char *name, const bwi_wire *nodes, int input_count, const char *const *inputs,
                        int output_count, const char *const *outputs);
void bwi_onnx_end(bwi_onnx *o);
/* Adds an operator without attributes. The names after `output` are its inputs, and end with NULL. */
void bwi_onnx_add(bwi_onnx *o, const char *type, const char *output, ...) __attribute__((sentinel));
/* Permutes the axes, of which the batch is one. */
void bwi_onnx_transpose(bwi_onnx *o, const char *from, const char *to, int ndim, const int64_t *axes);
void bwi_onnx_reshape(bwi_onnx *o, const char *from, const char *to, const bwi_shape *shape);

/* Writes an activation of x to y. */
void bwi_onnx_activation(bwi_onnx *o, const bwi_activation_attributes *a, const char *x, const char *y);
/* The writer of recurrent layers (onnx_recurrent.c). */
void bwi_onnx_recurrent(bwi_onnx *o, const bw_node *node);
/* The writer of attention (onnx_attention.c). */
void bwi_onnx_attention(bwi_onnx *o, const bw_node *node);

typedef struct bwi_onnx_row {
    const bwi_op *op;
    void (*write)(bwi_onnx *onnx, const bw_node *node);
} bwi_onnx_row;

extern const bwi_onnx_row bwi_onnx_ops[], bwi_onnx_spatial[]; /* each ends with NULL */

#endif
