/*
 * ONNX: what onnx.c (the model and its values) and the writers of operators (onnx_ops.c, onnx_spatial.c) share.
 *
 * A node's values have channels last, as in Keras, or channels first, as ONNX's convolutions and pools have them; they are
 * moved from one order to the other only when an operator asks for the other.
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
    bwi_onnx_name (*names)[2]; /* of each node's values, in both orders; "": not there */
    bwi_onnx_name outputs[BWI_MAX_HEADS];
    bool *written;       /* variables, by index: they are among the constants */
    int values, numbers; /* that are no node's; counted apart: which is made first within a call is the compiler's choice */
    bw_status status;    /* the first failure, besides those of the wires */
} bwi_onnx;

/* ---- Values ---- */

/* The name of an input's values in an order. */
const char *bwi_onnx_of(bwi_onnx *o, const bw_node *node, bwi_onnx_order order);
/* The order in which the node's values are at hand. */
bwi_onnx_order bwi_onnx_at_hand(const bwi_onnx *o, const bw_node *node);
/* The name under which this node's values are to be written. */
const char *bwi_onnx_result(bwi_onnx *o, const bw_node *node, bwi_onnx_order order);
/* A new name for values in between. */
const char *bwi_onnx_new(bwi_onnx *o, bwi_onnx_name name);

/* ---- Constants ---- */

const char *bwi_onnx_variable(bwi_onnx *o, const bwi_variable *variable);
/* Values in another shape than the variable's, under its name if it has one, else a new one. */
const char *bwi_onnx_floats(bwi_onnx *o, bwi_onnx_name name, int ndim, const int64_t *shape, const float *values);
const char *bwi_onnx_float(bwi_onnx *o, bwi_onnx_name name, float value);
const char *bwi_onnx_wholes(bwi_onnx *o, bwi_onnx_name name, int64_t count, const int64_t *values);
/* A shape behind the batch: -1 (or `first`), then the extents. */
const char *bwi_onnx_shape(bwi_onnx *o, bwi_onnx_name name, int64_t first, const bwi_shape *shape);

/* ---- Operators: begin, attributes, end ---- */

/* `inputs` ends with NULL. */
void bwi_onnx_begin(bwi_onnx *o, const char *type, const char *const *inputs, const char *output);
void bwi_onnx_put(bwi_onnx *o, const char *name, int64_t value);
void bwi_onnx_put_float(bwi_onnx *o, const char *name, float value);
void bwi_onnx_put_text(bwi_onnx *o, const char *name, const char *value);
void bwi_onnx_put_list(bwi_onnx *o, const char *name, int count, const int64_t *values);
void bwi_onnx_end(bwi_onnx *o);
/* One without attributes; the names after `output` are its inputs, and end with NULL. */
void bwi_onnx_add(bwi_onnx *o, const char *type, const char *output, ...) __attribute__((sentinel));
/* Values in another order of axes, the batch among them. */
void bwi_onnx_transpose(bwi_onnx *o, const char *from, const char *to, int ndim, const int64_t *axes);
void bwi_onnx_reshape(bwi_onnx *o, const char *from, const char *to, const bwi_shape *shape);

typedef struct bwi_onnx_row {
    const bwi_op *op;
    void (*write)(bwi_onnx *onnx, const bw_node *node);
} bwi_onnx_row;

extern const bwi_onnx_row bwi_onnx_ops[], bwi_onnx_spatial[]; /* end with NULL */

#endif
