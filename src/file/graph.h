/*
 * Shared by the files that read functional graphs: levels, which are models nested in models (graph_levels.c), the
 * order of their layers and calls (graph_order.c), the calls (graph_read.c), and the places of their weights (graph_places.c).
 */
#ifndef BWI_FILE_GRAPH_H
#define BWI_FILE_GRAPH_H

#include "file/internal.h"

/* Keras writes most layers before those that take their outputs, shared layers excepted, so a few passes suffice. */
enum { MOST_NODES = 64, PASS_LIMIT = 64, MOST_LEVELS = 8, MOST_CALLS = 1 << 14, MOST_TENSORS = 64 };

typedef enum entry_kind { INPUT, LAYER, OPERATOR, MASK, NESTED } entry_kind;

typedef struct level level;

/* A layer of the file, its index in the model, and the uses that its nodes became. */
typedef struct entry {
    const bwi_json *json, *nodes; /* no nodes in a list of layers, where each layer takes the output of the one before it */
    const char *name;
    entry_kind kind;
    int layer;    /* -1: not made yet, or no layer */
    level *inner; /* of a nested model */
    int node_count, done;
    int width, *use; /* values (bwi_result) of all nodes, `width` for each: one per output */
    int *run_at;     /* of each node: how many calls of layers Keras runs before it at this level; -1: Keras does not run it */
} entry;

/* The tensor that an input or an output of a model refers to. */
typedef struct end {
    const char *key; /* its key in an object, or the layer's name */
    entry *from;
    int node, tensor;
} end;

struct level {
    char prefix[BWI_LOCAL_NAME]; /* prefix of its layers' names */
    const bwi_json *config;
    bool list; /* a Sequential model */
    entry *entries, **sorted;
    int count;
    end inputs[BWI_MAX_HEADS], outputs[BWI_MAX_HEADS];
    int input_count, output_count;
    int *order, order_count; /* entries, as Keras numbers them */
    int size;                /* calls of layers that one call of this level runs */
    int run_at;              /* of the current call: how many calls of layers Keras runs before it; -1: Keras does not run it */
};

typedef struct graph_reader {
    bwi_keras k;
    bw_model *model;
    bool frozen;
    int depth, calls, layers;
    entry first; /* the input of a list without an input layer */
} graph_reader;

typedef struct tensors {
    const bwi_json *at[MOST_TENSORS];
    const char *key[MOST_TENSORS]; /* keys of tensors in an object */
    int count;
    bool more;
} tensors;

/* Reads a model and those nested in it. `opened` must be closed even after a failure; NULL is fine. `prefix` begins the names of
 * its layers. */
bw_status bwi_graph_open(graph_reader *r, level **opened, const bwi_json *json, const char *prefix);
void bwi_graph_close(graph_reader *r, level *l);
entry *bwi_graph_find(const level *l, const char *name); /* NULL: there is no such layer */
/* Messages name this layer from now on. */
void bwi_graph_begin_messages(graph_reader *r, const level *l, const entry *e);
/* Computes the order of the layers and calls of a level and of those nested in it. */
bw_status bwi_graph_order(const graph_reader *r, level *l);
/* Finds what ["layer", node, tensor], or an object that holds it, refers to. */
bool bwi_graph_find_end(const level *l, const bwi_json *json, end *found);
/* Does the same, and refuses what refers to nothing. */
bw_status bwi_graph_end(const graph_reader *r, const level *l, const bwi_json *json, end *found);
/* Adds all tensors in a value, those of objects in the order of their keys, as Keras flattens them. */
void bwi_graph_collect(const bwi_json *value, const char *key, tensors *found);
/* Returns the arguments of a call: {"args": [...], "kwargs": {}}, or [T, ...] in older files. */
const bwi_json *bwi_graph_arguments(const bwi_json *node);
/* Adds to the model where Keras's files, below `path`, have the variables of a level's layers, in Keras's order. `top` is the entry
 * of the outermost level that holds this one; -1: this is the outermost. */
bw_status bwi_graph_places(graph_reader *r, const level *l, const char *path, int top);

#endif
