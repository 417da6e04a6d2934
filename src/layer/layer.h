/*
 * layer: Keras's layers. One layer is one file and one row, which has its names, its arguments (Keras's names and defaults), and
 * how it becomes nodes and variables. Models are built from an expression such as
 *   conv2d(32,3,relu) maxpool2d(2) flatten dense(10,softmax)
 * whose grammar (expression.c) also serves optimizers, losses and metrics.
 */
#ifndef BWI_LAYER_H
#define BWI_LAYER_H

#include "front/front.h"
#include "op/op.h"

/* ---- Expressions ---- */

/* A parsed term: a number, a word, a call word(...), or a list (...). It points into the text that was parsed. */
typedef struct bwi_term {
    const char *label; /* of label=term, or an argument's name; NULL: none */
    int label_length, label_column;
    const char *text; /* the word or number; NULL for a list */
    int length;
    const char *end;      /* end of the whole term, before a closing quote */
    const char *argument; /* the caller's argument that holds the text: "model", "optimizer"; NULL: none */
    int column;           /* in that argument, from 1 */
    bool called, quoted;
    struct bwi_term *items; /* arguments of a call, elements of a list */
    int count;
} bwi_term;

typedef struct bwi_expression {
    bw_context *ctx;
    char *source;
    bwi_term *terms;
    int count;
} bwi_expression;

/* Parses a sequence of terms; every message begins with `what` ("model", "optimizer"). */
bw_status bwi_expression_parse(bw_context *ctx, bwi_expression *expression, const char *what, const char *text);
void bwi_expression_free(bwi_expression *expression);
bool bwi_term_is(const bwi_term *term, const char *word);
/* Whether the term is this word, apart from capitals and underscores, so that HeNormal is he_normal. */
bool bwi_term_resembles(const bwi_term *term, const char *word);

/* ---- Arguments ---- */

/* BWI_INTS is one number, or a list (of lists) of them, flattened; None in a list is -1. BWI_FLOATS is one number or a list of
 * them. BWI_CALL is a word or a call, kept as text. */
typedef enum bwi_kind { BWI_INT, BWI_FLOAT, BWI_BOOL, BWI_TEXT, BWI_INTS, BWI_FLOATS, BWI_CALL } bwi_kind;

typedef struct bwi_argument {
    const char *name; /* Keras's name */
    const char *also; /* another name, or NULL */
    bwi_kind kind;
    const char *standard; /* default, as text; NULL: required; "": none */
    double least, most;   /* bounds of numbers; both 0: none */
    const char *choices;  /* allowed words, separated by blanks; NULL: any */
} bwi_argument;

enum { BWI_TEXT_BYTES = 128, BWI_MAX_INTS = BW_MAX_NDIM };

typedef struct bwi_argument_value {
    bool given;
    bool flag;
    int64_t integer; /* also the first of the integers */
    double number;   /* also the first of the numbers */
    int count;       /* of the integers or numbers */
    union {
        int64_t integers[BWI_MAX_INTS];
        double numbers[BWI_MAX_INTS]; /* BWI_FLOATS */
    };
    char text[BWI_TEXT_BYTES];
} bwi_argument_value;

/* Fills values[] from a call's arguments, by position or name, and then from the defaults. Messages call it `what`. */
bw_status bwi_arguments_read(bw_context *ctx, const char *what, const bwi_term *term, const bwi_argument *arguments, int count,
                             bwi_argument_value *values);
/* Parses `text` as one term with nothing after it. The caller frees the expression. */
bw_status bwi_term_parse(bw_context *ctx, bwi_expression *expression, const char *what, const char *text);
/* Parses `text` as the arguments of a call by this name, which becomes the one term. Columns are those of the text. */
bw_status bwi_arguments_parse(bw_context *ctx, bwi_expression *expression, const char *name, const char *text);

/* ---- Layers ---- */

typedef struct bwi_layer bwi_layer;

enum { BWI_MAX_ARGUMENTS = 24 };

typedef struct bwi_layer_row {
    const char *class_name; /* Keras's class: "Conv2D" */
    const char *base_name;  /* Keras's automatic name: "conv2d" */
    const char *names;      /* in expressions, separated by blanks; the first one is preferred */
    const bwi_argument *arguments;
    int argument_count;
    bw_node *(*build)(const bwi_layer *layer, bwi_graph *graph, bw_node *const *inputs, int input_count);
    unsigned flags; /* BWI_LAYER_... */
} bwi_layer_row;

enum {
    BWI_LAYER_MERGES = 1,            /* takes several inputs: in expressions the current value, then the points named by position */
    BWI_LAYER_INDICES = 1 << 1,      /* its input holds integers, which are gathered as int32 */
    BWI_LAYER_PASSES_MASK = 1 << 2,  /* its output has its input's mask; without any of these three flags the mask is dropped */
    BWI_LAYER_TAKES_MASK = 1 << 3,   /* handles its input's mask itself, and gives its output one if necessary */
    BWI_LAYER_REFUSES_MASK = 1 << 4, /* Keras computes something else under a mask, which is not supported */
    BWI_LAYER_ATTENDS = 1 << 6,      /* Keras calls it with query, value, key and attention_mask, each by itself */
    BWI_LAYER_WRAPS = 1 << 7,        /* holds another layer, its first argument */
    BWI_LAYER_OPERATOR = 1 << 5,     /* one of Keras's operators, which only its files have */
    BWI_LAYER_LINE = 1 << 8,         /* its input is a sequence (length, channels), */
    BWI_LAYER_IMAGE = 1 << 9,        /* an image (height, width, channels), */
    BWI_LAYER_VOLUME = 1 << 10, /* or a volume (depth, height, width, channels); without any of these three `build` checks it */
    BWI_LAYER_STATES = 1 << 11, /* recurrent: its inputs after the first are the states that it begins with */
    BWI_LAYER_FRONT = 1 << 16,  /* times (bwi_front_kind + 1): a layer for text or categories, which works on the host */
};

/* bwi_front_kind + 1 of a layer for text or categories; 0: it is none. */
static inline int bwi_layer_front_kind(const bwi_layer_row *row)
{
    return (int)(row->flags / BWI_LAYER_FRONT);
}

extern const bwi_layer_row *const bwi_layer_rows[]; /* ends with NULL */

/* Places of the values of operators (operators.c), which have no arguments in expressions. For GetItem, AXES are the first
 * indices, COUNTS the numbers of elements, and DROPS says whether the axis is removed. */
enum { BWI_OPERATOR_NUMBER, BWI_OPERATOR_OTHER, BWI_OPERATOR_AXES, BWI_OPERATOR_KEEP, BWI_OPERATOR_COUNTS, BWI_OPERATOR_DROPS };
/* Whether Keras's layer requires a value beside the query, which here is the query if there is no other. */
bool bwi_layer_is_attention(const bwi_layer_row *row);
const bwi_layer_row *bwi_operator_find(const char *class_name); /* NULL: none */

enum { BWI_MAX_POINTS = 8, BWI_FROM_INPUT = -1 };

/* Of a model that is read from text or from a file. */
enum { BWI_MOST_LAYERS = 4096 };

enum { BWI_MAX_CONSTRAINTS = 3, BWI_PENALTY_TEXT = 128 };

struct bwi_layer {
    const bwi_layer_row *row;
    char name[64]; /* unique in the model */
    bool trainable;
    int first_variable;                /* in the graph, once it is built */
    int inputs, input[BWI_MAX_POINTS]; /* layers whose outputs it takes; BWI_FROM_INPUT: the model's input */
    int part[BWI_MAX_POINTS];          /* 0: that output; k: the k-th of the other values that the layer gives */
    bwi_argument_value values[BWI_MAX_ARGUMENTS];
    struct {
        char name[32], text[BWI_PENALTY_TEXT]; /* "kernel_constraint", "max_norm(2)" */
    } constraints[BWI_MAX_CONSTRAINTS];
    int constraint_count;
    char activity[BWI_PENALTY_TEXT]; /* Keras's activity_regularizer: "l2(0.01)"; "": none */
    bwi_layer *inner[2];             /* the layers that it holds, which belong to the model: `layer`, `backward_layer` */
    bwi_layer *above;                /* of a cell in a stack: the next one of the stack */
    bwi_layer *next;                 /* of an inner layer: the next one of the model */
    bwi_front *front;                /* of a layer for text or categories; it belongs to the model */
};

/* Whether the name is that of a constraint on one of the layer's variables, which are those that have an initializer. */
bool bwi_constraint_is_argument(const bwi_argument *arguments, int count, const char *name);

/* ---- Models ---- */

enum { BWI_MAX_HEADS = 16 };

/* One use of a layer, or an input of the model. Nodes do not show this, since a layer may do nothing or be folded into another
 * one. */
typedef struct bwi_use {
    int layer; /* -1: an input of the model */
    bw_node *node;
    bwi_parts parts;                   /* what the layer gives beside its output, such as states */
    int inputs, input[BWI_MAX_POINTS]; /* uses whose nodes it takes; -1: no layer made the node */
    int part[BWI_MAX_POINTS];          /* 0: the use's node; k: parts[k - 1] */
    int run_at; /* if a file says when Keras runs it: a number from 1; -1: it does not. 0: it follows from the uses */
} bwi_use;

/* A use and one of its values, 0 for its node, as one number. */
static inline int bwi_result(int use, int part)
{
    return use * (BWI_MAX_PARTS + 1) + part;
}
static inline int bwi_result_use(int value)
{
    return value / (BWI_MAX_PARTS + 1);
}
static inline int bwi_result_part(int value)
{
    return value % (BWI_MAX_PARTS + 1);
}
static inline bw_node *bwi_use_value(const bwi_use *use, int part)
{
    return part ? use->parts.node[part - 1] : use->node;
}

/* A layer's group in Keras's files: "layers/functional/layers/dense". */
typedef struct bwi_stored {
    int layer;
    int top; /* which of the configuration's layers holds it: itself, or the model in which it is nested */
    char path[232];
} bwi_stored;

/* A model is a list of layers from an expression, which becomes nodes when the input's shape is known, or a graph made by calls,
 * whose nodes exist at once. */
struct bw_model {
    bwi_owned owned;
    bw_context *ctx;
    char *name;         /* given by a file; NULL: Keras's default */
    char *config;       /* JSON of the file that it was read from, to be written back; NULL: none */
    bwi_stored *stored; /* where a file has its variables, in Keras's order, if it has nested models or operators */
    int stored_count;
    bwi_layer *layers;
    int layer_count, layer_capacity;
    bwi_layer *inner; /* layers within layers */
    bwi_use *uses;    /* in the order of calls, or of the expression once it is connected */
    int use_count, use_capacity;
    bool by_calls;
    bool initialized;      /* variables have values */
    bwi_shape input_shape; /* ndim -1: from the data */
    bool input_text;       /* the input of an expression is text */
    bwi_graph graph;
    struct bwi_wiring *wiring; /* what bwi_wiring_of found last */
    bw_node *inputs[BWI_MAX_HEADS], *outputs[BWI_MAX_HEADS];
    int input_count, output_count;
    bw_node *losses[BWI_MAX_HEADS]; /* the user's losses, made by calls */
    char output_names[BWI_MAX_HEADS][64], loss_names[BWI_MAX_HEADS][64];
    int loss_count;
    char *expression; /* lent by bw_model_expression; NULL: none yet */
    void *training;   /* state that train keeps with the model */
    void (*training_destroy)(void *training);
};

bool bwi_model_built(const bw_model *model);
bw_model *bwi_model_open(bw_context *ctx); /* an empty model; NULL as a builder */
/* Reads one layer of an expression into `layer`: its row, name and arguments, but not its inputs. */
bw_status bwi_layer_read(bw_model *model, bwi_layer *layer, const bwi_term *term);
/* Makes the layer's nodes and variables. NULL as a builder. */
bw_node *bwi_layer_build(bwi_layer *layer, bwi_graph *graph, bw_node *const *inputs, int input_count);
/* Appends a layer, written as in an expression, to a model made by calls, without using it yet. If `name` is NULL, Keras's name
 * is used. -1 as a builder. */
int bwi_model_add_layer(bw_model *model, const char *text, const char *name);
/* Appends a layer that has been read already; its name must be unique. */
int bwi_model_append_layer(bw_model *model, const bwi_layer *layer);
/* Uses a layer, once more if it was used before, on values (bwi_result) of other uses. Returns the new use, or -1 as a builder. */
int bwi_model_use(bw_model *model, int layer, const int *values, int count);
/* The number of states of a recurrent layer, which may be a wrapper; 0: it is none. */
int bwi_layer_states(const bwi_layer *layer);
/* How many values the layer gives beside its output; the states are the last of them. */
int bwi_layer_parts(const bwi_layer *layer);
/* Makes the nodes, and the variables without values, of a model from an expression. bw_build continues from there. */
bw_status bwi_model_connect(bw_model *model, int ndim, const int64_t *shape);
/* The same as bw_build and bw_output, for calls from within the library. */
bw_status bwi_model_build(bw_model *model, int ndim, const int64_t *shape, uint64_t seed);
bw_status bwi_model_output(bw_node *node, const char *name);
/* Makes the model a list of layers again; `declared`: the input's shape is part of the expression. */
void bwi_model_disconnect(bw_model *model, bool declared);
/* Makes the nodes and packed variables of a model that may not be built yet, so that its sizes are known. If `connected` is set,
 * this call made the nodes, and bwi_model_disconnect removes them. */
bw_status bwi_model_sketch(bw_model *model, int ndim, const int64_t *shape, bool *connected);

/* ---- Layers for text and categories (front.c, fronts.c) ---- */

/* What such a layer takes: inputs of the model by number, or, as -1 - k, what the front k makes. */
typedef struct bwi_front_use {
    int layer;
    int inputs, input[BWI_MAX_POINTS];
} bwi_front_use;

enum { BWI_MOST_FRONTS = 48 };

bool bwi_model_has_fronts(const bw_model *model);
/* Lists the uses of such layers, each after those it takes. */
bw_status bwi_model_fronts(const bw_model *model, bwi_front_use uses[BWI_MOST_FRONTS], int *count);
/* The shape of what a front makes of inputs of this shape. False, with a message, if it cannot make anything of them. */
bool bwi_front_shape(bw_context *ctx, const bwi_layer *layer, const bwi_shape *in, bwi_shape *out);

/* ---- Keras's order (order.c) ---- */

/* A model as Keras orders it: operations, which are layers, inputs or whole models, and their uses. The uses whose values use u
 * takes are input[begin[u]] to input[begin[u + 1] - 1]; -1: no operation made the value. */
typedef struct bwi_calls {
    int uses, operations;
    const int *operation; /* of each use */
    const int *begin, *input;
    const int *outputs; /* uses; -1: no operation made it */
    int output_count;
} bwi_calls;

/* Keras numbers the groups of weights and the optimizer's variables in the order of operations. */
typedef struct bwi_call_order {
    int *operations, count; /* those that lead to an output, and the inputs that do not */
    int *run_at;            /* of each use: its number in the order in which Keras runs them; -1: Keras does not run it */
} bwi_call_order;

bw_status bwi_call_order_open(bw_context *ctx, const bwi_calls *calls, bwi_call_order *order);
void bwi_call_order_close(bw_context *ctx, bwi_call_order *order);

/* ---- Wiring (wiring.c): how layers are connected ---- */

typedef struct bwi_wiring {
    bw_context *ctx;
    const bw_model *model;
    bool sequential; /* a list of layers after one input */
    bwi_use *uses;   /* as in a model made by calls; inputs come before their users */
    int use_count, layer_count;
    int outputs[BWI_MAX_HEADS], output_count; /* uses */
    int output_parts[BWI_MAX_HEADS];          /* which of their values */
    int *order, order_count;                  /* layers, and inputs as layer_count + k */
    bool *reached;                            /* uses that lead to an output */
} bwi_wiring;

/* Fails with INVALID_ARGUMENT if the model has operators that are no layers. */
bw_status bwi_wiring_open(bwi_wiring *wiring, const bw_model *model);
void bwi_wiring_close(bwi_wiring *wiring);
/* Lends the model's wiring, which is found once and kept until the model grows: layers are asked for one by one. */
bw_status bwi_wiring_of(const bw_model *model, const bwi_wiring **wiring);
/* For whoever takes the model's nodes away. */
void bwi_wiring_forget(const bw_model *model);
/* Finds the number of each of the model's uses in the order in which Keras runs them; -1: Keras does not run it. */
bw_status bwi_wiring_run_order(const bw_model *model, int *run_at);
/* Returns which of its layer's uses this is, as Keras counts them. */
int bwi_wiring_node(const bwi_wiring *wiring, int use);
/* Returns the model's own name, or the one that Keras gives the first model of its kind. */
const char *bwi_wiring_model_name(const bwi_wiring *wiring);
/* Finds the name of a layer or input in `order`. */
void bwi_wiring_name(const bwi_wiring *wiring, int operation, char name[64]);
/* The name by which losses, metrics and targets refer to an output. As a label, it consists of these characters only. */
#define BWI_OUTPUT_LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-"
const char *bwi_output_name(const bw_model *model, int output);
/* Counts a layer's variables, and finds the number of the first one in the graph. */
int bwi_layer_variables(const bw_model *model, int layer, int *first);

#endif
