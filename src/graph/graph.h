/*
 * graph: nodes with shapes, the contract of an operator (bwi_op), and autodiff, which turns a graph into a list of
 * instructions. The batch extent is free: shapes here are those of one sample.
 *
 * An instruction is one pass of one node over one tile. It reads and writes values: tensors of the tile, or sums that
 * are gathered over all tiles of a batch (gradients, BatchNorm's statistics, loss, metrics). What a whole-batch op
 * reads from such a sum is known only when every tile has passed: that is where the plan cuts phases.
 */
#ifndef BWI_GRAPH_H
#define BWI_GRAPH_H

#include "base/base.h"

typedef struct bw_node bw_node;
typedef struct bwi_op bwi_op;
typedef struct bwi_graph bwi_graph;

/* The shape of one sample; images are height, width, channels. A scalar has rank 0. */
typedef struct bwi_shape {
    int ndim;
    int64_t extent[BW_MAX_NDIM];
} bwi_shape;

/* No node or variable has more: sizes that are computed from them cannot overflow. */
#define BWI_MOST_VALUES ((int64_t)1 << 40)

int64_t bwi_shape_count(const bwi_shape *shape); /* INT64_MAX: more than that */
bool bwi_shape_equal(const bwi_shape *a, const bwi_shape *b);
/* Height, width and channels of a shape as kernels see it: the last extent is the channels, rank 3 an image, others
 * have the extents before the last folded into the width. */
void bwi_shape_image(const bwi_shape *shape, int64_t *h, int64_t *w, int64_t *c);

/* ---- Variables ---- */

/* How a variable is stored when kernels want another order than Keras's. Values in Keras's order lie on the host, stored ones on the
 * device, so pack and unpack go through the device's table of kernels. */
typedef struct bwi_packing bwi_packing;
struct bwi_packing {
    int64_t count; /* floats stored */
    const bwi_kernels *kernels;
    void *object; /* the op's */
    void (*pack)(const bwi_packing *packing, const float *keras_order, void *stored);
    void (*unpack)(const bwi_packing *packing, const void *stored, float *keras_order);
    void (*release)(const bwi_packing *packing); /* may be NULL */
};

typedef struct bwi_variable {
    char name[96]; /* "conv2d/kernel" */
    bwi_shape shape;
    bool trainable;
    bool given;            /* its values are a file's or the user's, or were fitted: data is not to change them by itself */
    bool fitted;           /* to data, with which no update was made yet */
    bool sparse;           /* a table: its gradient is kept as records of touched rows, never dense in lanes */
    bool lazy;             /* sparse: an update leaves rows that its window did not touch, and their slots, as they are */
    char initializer[128]; /* as in an expression: "glorot_uniform", "random_normal(stddev=0.1)" */
    float l1, l2;          /* penalties: l1 sum |w| + l2 sum w^2, added once per update */
    int64_t fan_in, fan_out;
    int index; /* in the graph; also the stream of its initial random numbers */
    bwi_packing packing;
    int64_t count;              /* floats stored: packing.count, or those of the shape */
    const bwi_kernels *kernels; /* in whose memory the values lie */
    void *data;                 /* their address in the graph's arena; NULL until the model is built */
} bwi_variable;

/* Floats in a row of a table: an element of its first axis. */
int64_t bwi_variable_width(const bwi_variable *variable);
static inline void *bwi_variable_at(const bwi_variable *variable, int64_t first)
{
    return (unsigned char *)variable->data + (size_t)first * sizeof(float);
}
/* Values in Keras's order, from and to however the variable is stored. */
void bwi_variable_read(const bwi_variable *variable, float *values);
void bwi_variable_write(const bwi_variable *variable, const float *values);
/* Between the two the host may read and write the values where they are, as they are stored. */
float *bwi_variable_open(const bwi_variable *variable);
void bwi_variable_close(const bwi_variable *variable);

/* ---- Nodes ---- */

struct bw_node {
    bwi_graph *graph; /* whose node it is */
    const bwi_op *op;
    int layer;     /* the model's layer that made it its result; -1: none */
    char name[64]; /* the layer's name, for messages */
    void *attributes;
    size_t attribute_bytes;
    int inputs, variables;
    bw_node **input;
    bwi_variable **variable;
    bwi_shape shape;
    bw_dtype dtype; /* BW_F32 or BW_I32 */
    bw_node *mask;  /* 1 for each position that counts, 0 for others: its shape is this one's without the last axis; NULL: all */
    int64_t block;  /* channel block of its output (kernel.h); set by the plan's lowering */
    int number;     /* position in the graph: inputs come before their users */
    int turn;       /* among the uses of a layer: when Keras comes to it */
};

struct bwi_graph {
    bw_context *ctx;
    bw_node **nodes;
    int count, capacity;
    bwi_variable **variables;
    int variable_count, variable_capacity;
    void *arena; /* the variables' values, one after another; NULL: there are none yet */
    size_t arena_bytes;
    void *owner;  /* the model, for models made by calls */
    bool reusing; /* a shared layer is built again: bwi_graph_variable gives variables[reuse++] */
    int reuse;
};

void bwi_graph_free(bwi_graph *graph);
/* Gives every variable its place, in one arena of zeros. Taking them back leaves the variables without values. */
bw_status bwi_graph_open_variables(bwi_graph *graph, const bwi_kernels *kernels);
void bwi_graph_close_variables(bwi_graph *graph);
/* Copies the attributes, applies the op's shape rule. NULL (a builder's failure) if an input is NULL or does not fit. */
bw_node *bwi_graph_add(bwi_graph *graph, const bwi_op *op, const char *name, const void *attributes, size_t attribute_bytes,
                       bw_node *const *inputs, int input_count, bwi_variable *const *variables, int variable_count);
bwi_variable *bwi_graph_variable(bwi_graph *graph, const char *layer, const char *name, const bwi_shape *shape, bool trainable,
                                 const char *initializer, int64_t fan_in, int64_t fan_out);

/* ---- The contract of an operator ---- */

/*
 * The gradient of a sparse variable: one record (a row of the table and the difference of its values) for each index of each
 * sample, at a place that follows from the sample's position in the window alone. `rows` are doubles: exact, and ranks add
 * them as they add differences.
 */
typedef struct bwi_records {
    const bwi_variable *variable;
    void *rows;         /* double */
    void *values;       /* float [record][width] */
    int64_t width;      /* floats of a row */
    int64_t first;      /* where the records of the samples being run begin */
    int64_t base;       /* position in the window of the first of them */
    int64_t per_sample; /* records of a sample in the phase at hand */
} bwi_records;

/* The part of a sample's records that one node writes. */
typedef struct bwi_record_use {
    const bwi_records *store; /* NULL: the variable is dense, or not trained */
    int64_t offset;
} bwi_record_use;

/* What a pass gets: addresses bound once per worker and number of samples. Only kernels look behind them. */
typedef struct bwi_call {
    const bw_node *node;
    const bwi_kernels *kernels;
    void *prepared; /* the op's own, for this number of samples, shared by workers */
    void *bound;    /* the op's own, for this worker and pass */
    int64_t samples;
    int64_t floats;  /* of the output, with those that only fill a block */
    void **src;      /* one for each input */
    void **diff_src; /* NULL where no difference is wanted */
    void *dst, *diff_dst, *workspace, *scratch;
    void **weights;          /* one for each variable, as stored */
    size_t *gradient;        /* byte offset in a lane for each variable; SIZE_MAX: not trained */
    bwi_record_use *records; /* for each variable */
    bool *overwrites;        /* for each variable: this is the first instruction of a tile to touch its gradient */
    size_t sums;             /* byte offset in a lane of this node's sums (double) */
    void *statistics;        /* what `finish` made of the sums: shared by all workers */
    void *backward_statistics;
    void *shared; /* the op's own buffer that `prologue` fills once per update */
} bwi_call;

enum { BWI_ERROR_TEXT = 200 };

typedef struct bwi_tile bwi_tile;
struct bwi_tile {
    unsigned char *lane; /* this tile's lane */
    bool first;          /* the lane's first tile of the window: its gradients hold nothing yet */
    bool training;
    bool records; /* records are to be written; not in a replay */
    int64_t samples;
    const int64_t *numbers; /* sample numbers, for messages and gathering */
    int64_t position;       /* of its first sample in the window: random draws are keyed by it */
    uint64_t seed, update;
    bw_status (*gather)(const bwi_tile *tile, const bwi_call *input);
    void *user;
    char *error; /* where a failing pass leaves a message of at most BWI_ERROR_TEXT bytes; this worker's own */
};

static inline void *bwi_call_gradient(const bwi_call *call, const bwi_tile *tile, int variable)
{
    return tile->lane + call->gradient[variable];
}
static inline bool bwi_call_accumulates(const bwi_call *call, const bwi_tile *tile, int variable)
{
    return !(tile->first && call->overwrites[variable]);
}
/* The first of the records that a node writes for the i-th sample of a tile. */
static inline int64_t bwi_call_record(const bwi_call *call, const bwi_tile *tile, int variable, int64_t i)
{
    const bwi_record_use *use = &call->records[variable];
    return use->store->first + (tile->position - use->store->base + i) * use->store->per_sample + use->offset;
}
static inline void *bwi_call_sums(const bwi_call *call, const bwi_tile *tile)
{
    return tile->lane + call->sums;
}

typedef bw_status (*bwi_pass_function)(const bwi_call *call, const bwi_tile *tile);

enum { BWI_SINK_READS = 2 };

/* Who takes gradients: an optimizer, or a test. */
typedef struct bwi_sink {
    /* For a block of a variable, on a worker: its gradient. */
    void (*take)(void *user, const bwi_variable *variable, int64_t first, int64_t count, const void *gradient);
    /* Arrays like the variable that `take` reads first, so that they can be fetched before; both may be the same. May be NULL. */
    void (*reads)(void *user, const bwi_variable *variable, const void *arrays[BWI_SINK_READS]);
    void *user;
} bwi_sink;

/* A tile whose gradient is deferred to the update. */
typedef struct bwi_deferred_tile {
    const bwi_call *call;
    void *staging;
} bwi_deferred_tile;

enum { BWI_MAX_DEFERRED = 16 }; /* tiles */

/* What an op asks of the plan for one number of samples. */
typedef struct bwi_prepare {
    bw_context *ctx;
    bw_node *node;
    int64_t samples;
    bool training, difference;                           /* difference: its first input's difference is wanted */
    void *prepared;                                      /* out: the op's own */
    size_t workspace_bytes, scratch_bytes, shared_bytes; /* out */
    size_t bound_bytes;                                  /* out: what `bind` allocates, at most */
} bwi_prepare;

enum {
    BWI_OP_VIEW = 1 << 0,               /* dst is src under another shape */
    BWI_OP_IN_PLACE = 1 << 1,           /* forward may write dst over its first src */
    BWI_OP_BACKWARD_IN_PLACE = 1 << 2,  /* backward may write diff_src over diff_dst */
    BWI_OP_INPUT = 1 << 3,              /* gathered from the data */
    BWI_OP_SUMS = 1 << 4,               /* has no dst: only sums over the batch (loss, metrics) */
    BWI_OP_WHOLE_BATCH = 1 << 5,        /* its forward in training needs statistics of the whole batch */
    BWI_OP_NO_GRADIENT = 1 << 6,        /* nothing flows back through it */
    BWI_OP_INFERENCE_PROLOGUE = 1 << 7, /* its prologue must have run before inference, too */
    BWI_OP_TRAINING_ONLY = 1 << 8       /* in inference dst is src */
};

/* What backward and backward_weights read besides diff_dst. */
enum { BWI_READS_SRC = 1, BWI_READS_DST = 2, BWI_READS_WORKSPACE = 4 };

/* Layouts: how an op treats the channel blocks of images. */
typedef enum bwi_layout {
    BWI_LAYOUT_CHANNELS_LAST, /* wants and gives channels-last */
    BWI_LAYOUT_SAME,          /* any block; gives what it gets */
    BWI_LAYOUT_FREE,          /* any block in, any block out: gives what its user wants */
    BWI_LAYOUT_PREPARED       /* asks its kernel: see `blocks` */
} bwi_layout;

/* Sums over the batch, in double: statistics of an op whose forward pass needs them, losses and metrics. */
typedef struct bwi_op_sums {
    int64_t (*count)(const bw_node *node); /* doubles of a sum, the same for both passes */
    bwi_pass_function statistics;          /* adds a tile's share to the lane's sums */
    /* Once all tiles have passed: the sums become the node's statistics, floats that every worker reads. NULL: there are none. */
    int64_t (*finished)(const bw_node *node); /* floats of the statistics */
    void (*finish)(const bwi_call *call, const void *sums, int64_t samples);
    /* The same of the backward pass. NULL: it needs no sums. */
    bwi_pass_function backward_statistics;
    int64_t (*backward_finished)(const bw_node *node);
    void (*backward_finish)(const bwi_call *call, const void *sums, int64_t samples);
    /* What training changes besides trainable variables, the last of its own; both NULL: nothing. `advance` follows each piece: the
     * values that `owner` holds, the first use of the same variables, go on with the statistics of this one; `begins`: they are
     * still the variables'. `commit`, of an owner, writes them. */
    void (*advance)(const bwi_call *call, const bwi_call *owner, bool begins);
    void (*commit)(const bwi_call *call);
} bwi_op_sums;

/* Passes whose work lies in the weights, in parts that workers share; the parts have the bits of the whole. */
typedef struct bwi_op_split {
    int64_t (*parts)(const bw_node *node, int pass); /* 0: this pass is not split */
    void (*part)(const bwi_call *call, int pass, int64_t part);
} bwi_op_split;

/* A gradient that is deferred to the update and never stored: its factors are staged, and the sum over tiles (a binary tree, as of
 * lanes) goes block by block to a sink. */
typedef struct bwi_op_deferred {
    int64_t (*floats)(const bw_node *node, int64_t samples); /* of the staging for that many samples; 0: it is not deferred */
    double (*fill)(const bwi_call *call, void *staging);     /* a bound on the gradient's elements; NaN: a factor is not finite */
    int64_t (*parts)(const bw_node *node);
    size_t scratch_bytes; /* that a part needs */
    void (*part)(const bwi_deferred_tile *tiles, int count, int64_t part, void *scratch, const bwi_sink *sink);
} bwi_op_deferred;

/* Kernels that are made before the first step, and what they derive from the weights. Each member may be NULL. */
typedef struct bwi_op_kernels {
    /* BWI_LAYOUT_PREPARED: the blocks it wants and gives (0: whatever its user wants). */
    void (*blocks)(const bw_node *node, int64_t *src_block, int64_t *dst_block);
    void (*release)(const bwi_kernels *kernels, void *prepared);  /* what `prepare` made */
    bw_status (*bind)(bw_context *ctx, bwi_call *call, int pass); /* to the call's addresses: call->bound */
    void (*unbind)(const bwi_kernels *kernels, void *bound);
    bw_status (*prologue)(const bwi_call *call); /* once per update, before its tiles; in training, or as flagged */
} bwi_op_kernels;

/* An operator. Members from `pack` on may be NULL; an op has those that it needs. */
struct bwi_op {
    const char *name;
    unsigned flags;
    unsigned backward_reads, weights_reads;
    bwi_layout layout;
    bw_status (*shape)(bwi_graph *graph, bw_node *node);
    bwi_pass_function forward, backward, backward_weights;
    bwi_pass_function inference; /* forward when not training; NULL: the same */

    bw_status (*pack)(bw_context *ctx, const bw_node *node); /* how its variables are stored; when the model is built */
    bw_status (*prepare)(bwi_prepare *prepare);              /* what it needs for a number of samples */
    double (*flops)(const bw_node *node);                    /* of one forward sample; NULL: its elements */

    const bwi_op_sums *sums;
    const bwi_op_split *split;
    const bwi_op_deferred *deferred;
    const bwi_op_kernels *kernels;
    int64_t (*records)(const bw_node *node); /* that backward_weights writes for a sample, if its variable is sparse */
    int64_t (*group)(const bw_node *node);   /* samples that are computed together, a power of two: no tile is smaller */
};

/* ---- Programs ---- */

typedef enum bwi_pass {
    BWI_PASS_FORWARD,
    BWI_PASS_STATISTICS,
    BWI_PASS_SEED, /* the difference of a loss: ones */
    BWI_PASS_BACKWARD,
    BWI_PASS_BACKWARD_STATISTICS,
    BWI_PASS_BACKWARD_WEIGHTS,
    BWI_PASS_ADD,   /* the sum of several differences */
    BWI_PASS_STORE, /* a boundary value, kept for the whole batch */
    BWI_PASS_LOAD,
    BWI_PASS_COUNT
} bwi_pass;

const char *bwi_pass_name(bwi_pass pass);

typedef enum bwi_value_kind { BWI_VALUE_OUTPUT, BWI_VALUE_DIFFERENCE, BWI_VALUE_WORKSPACE, BWI_VALUE_STATISTICS } bwi_value_kind;

typedef struct bwi_value {
    bwi_value_kind kind;
    const bw_node *node; /* whose output, difference (its shape), workspace or statistics it is */
    int view_of;         /* the value whose bytes it shares, or -1 */
    int level;           /* the phase in which it can first be known */
} bwi_value;

typedef struct bwi_instruction {
    const bw_node *node;
    bwi_pass pass;
    int level;
    int *src, *diff_src; /* values; -1: none. node->inputs of each (ADD: `adds` of src) */
    int adds;
    int dst, diff_dst, workspace;
    int *reads, *writes; /* all tile values it reads and writes */
    int read_count, write_count;
    bool *overwrites; /* per variable, as in bwi_call */
} bwi_instruction;

typedef struct bwi_program {
    bw_context *ctx;
    bool training;
    bwi_value *values;
    int value_count, value_capacity;
    bwi_instruction *instructions;
    int count, capacity;
    int levels;
} bwi_program;

/* The instructions that compute `outputs` and all SUMS nodes among `targets`, and for training the gradients of the
 * sum over all samples of each of `losses` (nodes with one number a sample). */
bw_status bwi_program_make(bw_context *ctx, bwi_program *program, const bwi_graph *graph, bw_node *const *targets, int target_count,
                           bw_node *const *losses, int loss_count);
void bwi_program_free(bwi_program *program);
/* Records that an instruction writes for a sample in the gradient of a sparse variable; 0: none. */
int64_t bwi_instruction_records(const bwi_instruction *instruction, const bwi_variable *variable);

#endif
