/*
 * convolution: what the files of this folder share about a bwi_conv.
 *
 * Outside, a convolution has one layout each for src, dst (blocks of channels, see kernel.h) and weights ("packed", as forward
 * prefers them), and a second layout of the weights for backward data where oneDNN prefers another. A pass whose primitive computes
 * in yet other layouts moves its operands through the scratch memory ("inner" layouts).
 *
 * oneDNN's weights are [g][oc/g][ic/g][kd][kh][kw]. A depthwise layer with Keras's kernel (kh, kw, in, multiplier) is groups = in,
 * oc = in * multiplier: its kernel (kh, kw, in/groups = 1, out) has the same order in memory.
 */
#ifndef BWI_KERNEL_ONEDNN_CONVOLUTION_H
#define BWI_KERNEL_ONEDNN_CONVOLUTION_H

#include "kernel/onednn/api.h"

enum { BWI_PASSES = 3 };

/* The operands of a pass, or their differences. */
enum { BWI_SRC, BWI_WEIGHTS, BWI_DST, BWI_OPERANDS };

typedef struct bwi_conv_primitive {
    dnnl_primitive_desc_t desc;
    dnnl_primitive_t primitive; /* NULL until compiled */
} bwi_conv_primitive;

/* What a pass runs. Layouts are large, and the primitives know theirs, so none is kept here. */
typedef struct bwi_conv_stage {
    bwi_conv_primitive convolution;
    bwi_conv_primitive move[BWI_OPERANDS]; /* outer to inner, or inner to outer for the result; unset where both are equal */
    size_t temporary[BWI_OPERANDS];        /* where in the scratch memory an operand that is moved lies */
    size_t scratch_bytes;                  /* the primitives' scratchpads share the beginning */
    int grade;                             /* of the implementations (choice.c) */
    char name[64];
} bwi_conv_stage;

typedef bwi_dnnl_layout bwi_conv_layouts[BWI_OPERANDS];

/* A complete choice of layouts and implementations. */
typedef struct bwi_conv_choice {
    bwi_dnnl_layout outer[BWI_OPERANDS], bias;
    bwi_dnnl_layout backward_weights; /* outer weights of backward data */
    dnnl_format_tag_t src_tag, dst_tag;
    int64_t src_block, dst_block;
    bwi_conv_stage stages[BWI_PASSES];
    bwi_conv_layouts inner[BWI_PASSES];
    bool squares;      /* backward weights is left to the kernels by hand, and its stage is empty */
    bool data_squares; /* and so is backward data */
    int grade;
} bwi_conv_choice;

/* Offset of a weight in a blocked layout: group[g] + out[o] + in[i] + z * plane + y * row + x * column. */
typedef struct bwi_weights_map {
    int64_t *group, *out, *in;
    int64_t plane, row, column;
    size_t floats;
} bwi_weights_map;

/* What a prototype has, and others borrow from it. */
typedef struct bwi_conv_form {
    bwi_conv_choice choice;           /* its stages are empty once they are compiled */
    bwi_weights_map packed, backward; /* backward: all zero unless it differs */
} bwi_conv_form;

struct bwi_conv {
    bw_context *ctx;
    bwi_conv_shape shape;
    bool wanted[BWI_PASSES];
    bwi_conv_stage stages[BWI_PASSES];
    bwi_conv_form *form;
    bool borrows; /* the form is a prototype's, which lives longer */
    bwi_conv_facts facts;
};

/* The bytes of the largest run of any pass. */
size_t bwi_conv_run_bytes(const bwi_conv *conv);

/* Makes a choice from shape and wanted, and from another choice unless `like` is NULL. No message. */
dnnl_status_t bwi_conv_choose(const bwi_conv *conv, bwi_conv_choice *choice, const bwi_conv_choice *like);
void bwi_conv_choice_free(bwi_conv_choice *choice);
void bwi_conv_stage_free(bwi_conv_stage *stage);
/* Copies the layout that a pass has for an operand, or that the operand has outside. */
dnnl_status_t bwi_conv_inner_layout(bwi_dnnl_layout *layout, const bwi_conv_stage *stage, bwi_conv_pass pass, int operand);
dnnl_status_t bwi_conv_outer_layout(bwi_dnnl_layout *layout, const bwi_conv_stage *stage, bwi_conv_pass pass, int operand);
int bwi_conv_result(bwi_conv_pass pass); /* the operand that the pass writes */
bool bwi_conv_is_reference(const bwi_conv_stage *stage);

bw_status bwi_weights_map_open(bw_context *ctx, bwi_weights_map *map, const bwi_conv_shape *shape, const bwi_dnnl_layout *layout);
void bwi_weights_map_close(bw_context *ctx, bwi_weights_map *map);
/* Whether the layout has squares of a block of inputs by a block of outputs, as conv_weights in kernel.h describes. */
bool bwi_weights_are_squares(const bwi_conv_shape *shape, const bwi_dnnl_layout *layout, int64_t block);
/* Whether such a map exists for the layout. */
bool bwi_weights_map_possible(const bwi_conv_shape *shape, const bwi_dnnl_layout *layout);

/* The functions of bwi_convolution_onednn that weights.c and run.c define. */
void bwi_conv_pack(const bwi_conv *conv, const float *weights, float *packed);
void bwi_conv_unpack(const bwi_conv *conv, const float *packed, int64_t first, int64_t count, float *weights);
void bwi_conv_restore(const bwi_conv *conv, const float *packed, float *weights); /* all */
void bwi_conv_reorder_backward(const bwi_conv *conv, const float *packed, float *backward);
bw_status bwi_conv_bind(bw_context *ctx, bwi_conv_run **run, const bwi_conv *conv, bwi_conv_pass pass,
                        const bwi_conv_memory *memory);
void bwi_conv_run_free(bwi_conv_run *run);
bw_status bwi_conv_execute(const bwi_conv_run *run);

/* Before oneDNN makes anything: BW_RESOURCE_EXHAUSTED if there is too little memory for it to survive. */
bw_status bwi_conv_check_room(bw_context *ctx);
/* Leaves "convolution ...: oneDNN says ..." as the context's message, and returns a status. */
bw_status bwi_conv_fail(bw_context *ctx, const bwi_conv_shape *shape, dnnl_status_t status);

#endif
