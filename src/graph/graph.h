/*
 * graph: nodes with shapes, the contract of an operator (bwi_op), and autodiff, which turns a graph into a list of instructions.
 * The number of samples is left open: shapes here are those of one sample.
 *
 * An instruction is one pass of one node over one tile. It reads and writes values: tensors of the tile, or sums over all tiles of
 * a batch (gradients, BatchNorm's statistics, losses, metrics). What a whole-batch op reads from such a sum is known only when
 * every tile has passed; this is where the plan cuts phases.
 */
#ifndef BWI_GRAPH_H
#define BWI_GRAPH_H

#include "kernel/kernel.h"

typedef struct bw_node bw_node;
typedef struct bwi_op bwi_op;
typedef struct bwi_graph bwi_graph;

/* The shape of one sample; images are height, width, channels. A scalar has no axes. */
typedef struct bwi_shape {
    int ndim;
    int64_t extent[BW_MAX_NDIM];
} bwi_shape;

/* No node or variable has more values, so that sizes computed from their number cannot overflow. */
#define BWI_MOST_VALUES ((int64_t)1 << 40)

int64_t bwi_shape_count(const bwi_shape *shape); /* INT64_MAX: it does not fit */
bool bwi_shape_equal(const bwi_shape *a, const bwi_shape *b);
/* Height, width and channels of a shape as kernels see it. The last extent is the channels. A shape with three axes is an image;
 * in others the extents before the last are folded into the width. */
void bwi_shape_image(const bwi_shape *shape, int64_t *h, int64_t *w, int64_t *c);

/* ---- Variables ---- */

/* How a variable is stored if its kernels need another order than Keras's. Values in Keras's order lie on the host and stored
 * ones on the device, so pack and unpack use the device's table of kernels. */
typedef struct bwi_packing bwi_packing;
struct bwi_packing {
    int64_t count; /* floats stored */
    const bwi_kernels *kernels;
    void *object; /* private to the op */
    void (*pack)(const bwi_packing *packing, const float *keras_order, void *stored);
    /* Gives `count` values from the one at `first` on, so that a large variable can be read in blocks. */
    void (*unpack)(const bwi_packing *packing, const void *stored, int64_t first, int64_t count, float *keras_order);
    void (*release)(const bwi_packing *packing); /* may be NULL */
};

typedef struct bwi_variable {
    char name[112]; /* "conv2d/kernel" */
    bwi_shape shape;
    bool trainable;
    bool given;  /* its values are a file's or the user's, or were fitted: data is not to change them by itself */
    bool fitted; /* to data, with which no update was made yet */
    bool sparse; /* a table: its gradient is kept as records of touched rows, and is never dense in a lane */
    bool lazy;   /* of a sparse variable: an update leaves the rows that its window did not touch, and their slots, unchanged */
    char initializer[128];          /* as in an expression: "glorot_uniform", "random_normal(stddev=0.1)" */
    int64_t ones_first, ones_count; /* these initial values are ones, whatever the initializer says (LSTM's unit_forget_bias) */
    float l1, l2;                   /* penalties: l1 sum |w| + l2 sum w^2, added once per update */
    float orthogonal;               /* the factor of the penalty on rows that are not orthogonal, or on columns; 0: none */
    bool orthogonal_columns;
    bwi_constraint constraint; /* applied after each update */
    int64_t fan_in, fan_out;
    int input_axes; /* of a dense kernel: how many of its first axes are inputs; 0: one */
    char place[48]; /* the group within its layer's in which Keras's files have it: "cell", "query_dense"; "": none */
    int index;      /* in the graph; also the stream of its initial random numbers */
    bwi_packing packing;
    int64_t count;              /* floats stored: packing.count, or those of the shape */
    const bwi_kernels *kernels; /* of the device that holds the values */
    void *data;                 /* their address in the graph's arena; NULL until the model is built */
} bwi_variable;

/* The number of floats in a row of a table, that is in an element of its first axis. */
int64_t bwi_variable_width(const bwi_variable *variable);
static inline void *bwi_variable_at(const bwi_variable *variable, int64_t first)
{
    return (unsigned char *)variable->data + (size_t)first * sizeof(float);
}
/* Read and write values in Keras's order, however the variable is stored. */
void bwi_variable_read(const bwi_variable *variable, float *values);
void bwi_variable_write(const bwi_variable *variable, const float *values);
/* Reads `count` values from the one at `first` on. */
void bwi_variable_read_part(const bwi_variable *variable, int64_t first, int64_t count, float *values);
/* Between open and close the host may read and write the stored values in place. */
float *bwi_variable_open(const bwi_variable *variable);
void bwi_variable_close(const bwi_variable *variable);

/* ---- Nodes ---- */

struct bw_node {
    bwi_graph *graph; /* whose node it is */
    const bwi_op *op;
    int layer;     /* the model's layer whose output it is; -1: none */
    char name[64]; /* the layer's name, for messages */
    void *attributes;
    size_t attribute_bytes;
    int inputs, variables;
    bw_node **input;
    bwi_variable **variable;
    bwi_shape shape;
    bw_dtype dtype;    /* BW_F32 or BW_I32 */
    bw_node *mask;     /* this shape without the last axis: 1 for positions that count, 0 for others. NULL: all count */
    bool mask_taken;   /* attention took the mask away: only layers that Keras tells masks before it runs them see it */
    float activity[2]; /* penalties l1 sum |y| + l2 sum y^2 of a sample's values, which are added to its loss */
    int64_t block;     /* channel block of its output (kernel.h); set by the plan's lowering */
    int number;        /* position in the graph: inputs come before their users */
    int run_at;        /* its number in the order in which Keras runs the uses of layers */
};

enum { BWI_MAX_PARTS = 8 };

typedef struct bwi_parts {
    bw_node *node[BWI_MAX_PARTS];
    int count;
} bwi_parts;

struct bwi_graph {
    bw_context *ctx;
    bw_node **nodes;
    int count, capacity;
    bwi_variable **variables;
    int variable_count, variable_capacity;
    void *arena; /* holds the variables' values, one after another; NULL: there are none yet */
    size_t arena_bytes;
    void *owner;  /* the model, for models made by calls */
    bool reusing; /* a shared layer is built again: bwi_graph_variable gives variables[reuse++] */
    int reuse;
    bwi_parts parts; /* what the layer that was built last gives beside its output, such as states */
};

void bwi_graph_free(bwi_graph *graph);
/* Gives every variable its place in one arena of zeros. Closing leaves the variables without values. */
bw_status bwi_graph_open_variables(bwi_graph *graph, const bwi_kernels *kernels);
void bwi_graph_close_variables(bwi_graph *graph);
/* Adds a node, with a copy of its attributes, and applies the op's shape rule. NULL (a builder's failure) if an input is NULL or
 * does not fit. */
bw_node *bwi_graph_add(bwi_graph *graph, const bwi_op *op, const char *name, const void *attributes, size_t attribute_bytes,
                       bw_node *const *inputs, int input_count, bwi_variable *const *variables, int variable_count);
size_t bwi_node_bytes(int inputs, int variables, size_t attribute_bytes); /* of the block that it allocates */
bwi_variable *bwi_graph_variable(bwi_graph *graph, const char *layer, const char *name, const bwi_shape *shape, bool trainable,
                                 const char *initializer, int64_t fan_in, int64_t fan_out);

/* ---- The contract of an operator ---- */

/*
 * The gradient of a sparse variable: one record (a row of the table, and the difference of its values) for each index of each
 * sample, at a place that follows from the sample's position in the window alone. `rows` are doubles: these are exact, and ranks
 * can add them as they add differences.
 */
typedef struct bwi_records {
    const bwi_variable *variable;
    void *rows;         /* double */
    void *values;       /* float [record][width] */
    int64_t width;      /* floats of a row */
    int64_t first;      /* where the records of the present samples begin */
    int64_t base;       /* position in the window of the first of these samples */
    int64_t per_sample; /* records per sample in the present phase */
} bwi_records;

/* The part of a sample's records that one node writes. */
typedef struct bwi_record_use {
    const bwi_records *store; /* NULL: the variable is dense, or not trained */
    int64_t offset;
} bwi_record_use;

/* What a pass is given: addresses that are bound once for each worker and number of samples. Only kernels dereference them. */
typedef struct bwi_call {
    const bw_node *node;
    const bwi_kernels *kernels;
    void *prepared; /* private to the op, for this number of samples; shared by the workers */
    void *bound;    /* private to the op, for this worker and pass */
    int64_t samples;
    int64_t floats;  /* of the output, including those that only fill up a block */
    void **src;      /* one for each input */
    void **diff_src; /* NULL where no difference is wanted */
    void *dst, *diff_dst, *workspace, *scratch;
    void **weights;          /* one for each variable, as stored */
    size_t *gradient;        /* byte offset in a lane for each variable; SIZE_MAX: not trained */
    bwi_record_use *records; /* for each variable */
    bool *overwrites;        /* for each variable: no instruction before this one touches its gradient in a tile */
    size_t sums;             /* byte offset in a lane of this node's sums (double) */
    void *statistics;        /* what `finish` made of the sums; shared by the workers */
    void *backward_statistics;
    void *shared; /* private to the op */
} bwi_call;

enum { BWI_ERROR_TEXT = 200 };

typedef struct bwi_tile bwi_tile;
struct bwi_tile {
    unsigned char *lane; /* this tile's lane */
    bool first;          /* the lane's first tile of the window: its gradients hold nothing yet */
    bool training;
    bool records; /* records are written; false in a replay */
    int64_t samples;
    const int64_t *numbers; /* sample numbers, for messages and gathering */
    int64_t position;       /* of its first sample in the window: random draws are keyed by it */
    uint64_t seed, update;
    bw_status (*gather)(const bwi_tile *tile, const bwi_call *input);
    void *user;
    char *error; /* where a pass that fails leaves a message of at most BWI_ERROR_TEXT bytes; each worker has its own */
    bool (*may_add)(void *turn); /* waits until the lane's tiles before have added; NULL: they have */
    void *turn;
};

/* What an op with BWI_OP_ADDS_LATE asks, once or more often, before it adds. What it computes before, workers compute at the same
 * time. If the answer is no, another worker has failed, and nothing must be added. */
static inline bool bwi_tile_may_add(const bwi_tile *tile)
{
    return !tile->may_add || tile->may_add(tile->turn);
}

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

/* The receiver of gradients: an optimizer, or a test. */
typedef struct bwi_sink {
    /* Receives, on a worker, the gradient of a block of a variable. */
    void (*take)(void *user, const bwi_variable *variable, int64_t first, int64_t count, const void *gradient);
    /* Names the arrays, shaped like the variable, that `take` reads first, so that they can be fetched in advance. They may be
     * one and the same. May be NULL. */
    void (*reads)(void *user, const bwi_variable *variable, const void *arrays[BWI_SINK_READS]);
    void *user;
} bwi_sink;

/* A tile whose gradient is deferred to the update. */
typedef struct bwi_deferred_tile {
    const bwi_call *call;
    void *staging;
} bwi_deferred_tile;

enum { BWI_MAX_DEFERRED = 16 }; /* lanes */

/* What an op needs from the plan for one number of samples. */
typedef struct bwi_prepare {
    bw_context *ctx;
    bw_node *node;
    int64_t samples;
    bool training, difference;                           /* difference: that of its first input is needed */
    void *prepared;                                      /* out: private to the op */
    size_t workspace_bytes, scratch_bytes, shared_bytes; /* out */
    size_t bound_bytes;                                  /* out: what `bind` allocates, at most */
} bwi_prepare;

enum {
    BWI_OP_VIEW = 1 << 0,               /* dst is src under another shape */
    BWI_OP_IN_PLACE = 1 << 1,           /* forward may write dst over its first src */
    BWI_OP_BACKWARD_IN_PLACE = 1 << 2,  /* backward may write diff_src over diff_dst */
    BWI_OP_INPUT = 1 << 3,              /* gathered from the data */
    BWI_OP_SUMS = 1 << 4,               /* has no dst, only sums over the batch (losses, metrics) */
    BWI_OP_WHOLE_BATCH = 1 << 5,        /* its forward in training needs statistics of the whole batch */
    BWI_OP_NO_GRADIENT = 1 << 6,        /* nothing flows back through it */
    BWI_OP_INFERENCE_PROLOGUE = 1 << 7, /* its prologue is needed for inference, too */
    BWI_OP_TRAINING_ONLY = 1 << 8,      /* in inference dst is src */
    BWI_OP_ADDS_LATE = 1 << 9           /* backward_weights asks bwi_tile_may_add before it touches the lane */
};

_Static_assert((BWI_OP_VIEW | BWI_OP_IN_PLACE | BWI_OP_BACKWARD_IN_PLACE | BWI_OP_INPUT | BWI_OP_SUMS | BWI_OP_WHOLE_BATCH |
                BWI_OP_NO_GRADIENT | BWI_OP_INFERENCE_PROLOGUE | BWI_OP_TRAINING_ONLY | BWI_OP_ADDS_LATE) == (1 << 10) - 1,
               "each property has a bit of its own");

/* What backward and backward_weights read besides diff_dst. */
enum { BWI_READS_SRC = 1, BWI_READS_DST = 2, BWI_READS_WORKSPACE = 4 };

/* Layouts: how an op treats the channel blocks of images. */
typedef enum bwi_layout {
    BWI_LAYOUT_CHANNELS_LAST, /* takes and gives channels-last */
    BWI_LAYOUT_SAME,          /* takes any block and gives the same */
    BWI_LAYOUT_FREE,          /* takes any block, and gives the one that its user prefers */
    BWI_LAYOUT_PREPARED       /* its kernel decides: see `blocks` */
} bwi_layout;

/* Sums over the batch, in double: the statistics that a forward pass needs, losses and metrics. */
typedef struct bwi_op_sums {
    int64_t (*count)(const bw_node *node); /* of the doubles in a sum, the same for both passes */
    bwi_pass_function statistics;          /* adds a tile's share to the lane's sums */
    /* Once all tiles have passed, turns the sums into the node's statistics, floats that every worker reads. NULL: there are
     * none. */
    int64_t (*finished)(const bw_node *node); /* floats of the statistics */
    void (*finish)(const bwi_call *call, const void *sums, int64_t samples);
    /* The same for the backward pass. NULL: it needs no sums. */
    bwi_pass_function backward_statistics;
    int64_t (*backward_finished)(const bw_node *node);
    void (*backward_finish)(const bwi_call *call, const void *sums, int64_t samples);
    /* What training changes besides trainable variables, the last of its own; both NULL: nothing. `advance` follows each piece: the
     * values that `owner` holds, the first use of the same variables, go on with the statistics of this one; `begins`: they are
     * still the variables'. `commit`, of an owner, writes them. */
    bool (*advance)(const bwi_call *call, const bwi_call *owner, bool begins); /* false: they are not finite */
    void (*commit)(const bwi_call *call);
} bwi_op_sums;

/* Passes that several workers share in parts, because most of their work lies in the weights. The parts give the same bits as
 * the whole. */
typedef struct bwi_op_split {
    int64_t (*parts)(const bw_node *node, int pass); /* 0: this pass is not split */
    void (*part)(const bwi_call *call, int pass, int64_t part);
} bwi_op_split;

/* A gradient that is deferred to the update and never stored: its factors are staged, and its sum over the tiles, in the order that
 * lanes give it, goes block by block to a sink. */
typedef struct bwi_op_deferred {
    int64_t (*floats)(const bw_node *node, int64_t samples); /* of the staging for this many samples; 0: it is not deferred */
    double (*fill)(const bwi_call *call,
                   void *staging); /* returns a bound on the gradient's elements; NaN: a factor is not finite */
    int64_t (*parts)(const bw_node *node);
    size_t scratch_bytes; /* that a part needs */
    /* Tile t is in lane t mod lanes: those of a lane are added one after another, then the lanes as a binary tree. */
    void (*part)(const bwi_deferred_tile *tiles, int count, int lanes, int64_t part, void *scratch, const bwi_sink *sink);
} bwi_op_deferred;

/* Kernels that are prepared before the first step, and what they derive from the weights. Each member may be NULL. */
typedef struct bwi_op_kernels {
    /* For BWI_LAYOUT_PREPARED: the blocks that it takes and gives (0: whichever its user prefers). */
    void (*blocks)(const bw_node *node, int64_t *src_block, int64_t *dst_block);
    void (*release)(const bwi_kernels *kernels, void *prepared);  /* what `prepare` made */
    bw_status (*bind)(bw_context *ctx, bwi_call *call, int pass); /* to the call's addresses: call->bound */
    void (*unbind)(const bwi_kernels *kernels, void *bound);
    bw_status (*prologue)(const bwi_call *call); /* once per update, before its tiles; in training, or as flagged */
} bwi_op_kernels;

/* An operator. Members from `pack` on are optional: NULL if the op does not need them. */
struct bwi_op {
    const char *name;
    unsigned flags;
    unsigned backward_reads, weights_reads;
    bwi_layout layout;
    bw_status (*shape)(bwi_graph *graph, bw_node *node);
    bwi_pass_function forward, backward, backward_weights;
    bwi_pass_function inference; /* forward when not training; NULL: the same */

    bw_status (*pack)(bw_context *ctx, const bw_node *node); /* chooses how its variables are stored, when the model is built */
    bw_status (*prepare)(bwi_prepare *prepare);              /* says what it needs for a number of samples */
    double (*flops)(const bw_node *node);                    /* of the forward pass of one sample; NULL: one for each element */

    const bwi_op_sums *sums;
    const bwi_op_split *split;
    const bwi_op_deferred *deferred;
    const bwi_op_kernels *kernels;
    int64_t (*records)(const bw_node *node); /* how many backward_weights writes for a sample, if its variable is sparse */
    int64_t (*group)(const bw_node *node);   /* how many samples are computed together, a power of two; no tile is smaller */
};

/* ---- Programs ---- */

typedef enum bwi_pass {
    BWI_PASS_FORWARD,
    BWI_PASS_STATISTICS,
    BWI_PASS_SEED, /* sets the difference of a loss to ones */
    BWI_PASS_BACKWARD,
    BWI_PASS_BACKWARD_STATISTICS,
    BWI_PASS_BACKWARD_WEIGHTS,
    BWI_PASS_ADD,   /* the sum of several differences */
    BWI_PASS_STORE, /* keeps a value for a later phase */
    BWI_PASS_LOAD,
    BWI_PASS_COUNT
} bwi_pass;

const char *bwi_pass_name(bwi_pass pass);

typedef enum bwi_value_kind { BWI_VALUE_OUTPUT, BWI_VALUE_DIFFERENCE, BWI_VALUE_WORKSPACE, BWI_VALUE_STATISTICS } bwi_value_kind;

typedef struct bwi_value {
    bwi_value_kind kind;
    const bw_node *node; /* whose output, difference (its shape), workspace or statistics it is */
    int view_of;         /* the value whose bytes it shares, or -1 */
    int level;           /* the first phase in which it can be known */
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

/* Makes the instructions that compute `targets` (outputs, and nodes with sums) and, for training, the gradients of the sum over
 * all samples of each of `losses` (nodes with one number per sample). */
bw_status bwi_program_make(bw_context *ctx, bwi_program *program, const bwi_graph *graph, bw_node *const *targets, int target_count,
                           bw_node *const *losses, int loss_count);
void bwi_program_free(bwi_program *program);
/* How many records an instruction writes for a sample in the gradient of a sparse variable. */
int64_t bwi_instruction_records(const bwi_instruction *instruction, const bwi_variable *variable);

#endif
