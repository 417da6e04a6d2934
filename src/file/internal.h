/*
 * file: models in files. Keras's own (.keras, to_json, .weights.h5, the older .h5) and safetensors. What is read is hostile: a
 * model's shapes come from its configuration, and what a file holds must match them exactly before memory is allocated for it; names
 * become layers, options and numbers only through the tables of layer and train; nothing found in a file is ever run or opened.
 *
 * Between a configuration and a model stand the texts of expressions: an object of Keras's is written as such a text
 * ("dense(units=3,activation=relu)") and read by the same code that reads what users write.
 */
#ifndef BWI_FILE_INTERNAL_H
#define BWI_FILE_INTERNAL_H

#include "format/format.h"
#include "train/train.h"

/* ---- Keras's objects and texts (objects.c) ---- */

/* The file and the thing in it that messages begin with. */
typedef struct bwi_keras {
    bw_context *ctx;
    const char *path;
    char what[256]; /* "layer conv2d" */
} bwi_keras;

/* "path: what: key=value is not supported" */
bw_status bwi_keras_refuse(const bwi_keras *keras, const char *key, const bwi_json *value);
/* Appends a number, a word, a list of them or an object with a class ("l2(l2=0.01)") as text; UNIMPLEMENTED, with a message,
 * for anything else. */
bw_status bwi_keras_value_text(const bwi_keras *keras, const char *key, const bwi_json *value, bwi_text *text);
/* Appends "name(key=value,...)" for the members of `config` that are arguments of a table; others must be neutral, which
 * `neutral` decides. */
typedef bool (*bwi_keras_neutral)(const char *key, const bwi_json *value);
bw_status bwi_keras_call_text(const bwi_keras *keras, const char *name, const bwi_json *config, const bwi_argument *arguments,
                              int count, bwi_keras_neutral neutral, bwi_text *text);
/* float32 is the only type that is supported. */
bool bwi_keras_is_float32(const bwi_json *dtype);
/* False: an object that is not of Keras's own making. */
bool bwi_keras_is_own(const bwi_json *object);

/* An argument's value as Keras writes it; nothing if it has none. */
bw_status bwi_keras_put_argument(bw_context *ctx, bwi_json_writer *writer, const char *class_name, const bwi_argument *argument,
                                 const bwi_argument_value *value);
/* Is it the argument's default? */
bool bwi_argument_is_standard(bw_context *ctx, const bwi_argument *argument, const bwi_argument_value *value);

/* ---- Configurations (config_read.c, graph_read.c, config_write.c, compile_read.c, compile_write.c) ---- */

/* Of one layer in a configuration. */
const bwi_layer_row *bwi_keras_layer_row(const char *class_name); /* NULL: none */
const char *bwi_keras_layer_name(const bwi_json *layer);
/* Is its class offered? */
bw_status bwi_keras_check_class(const bwi_keras *keras, const bwi_json *layer);
/* Checks that it can be a layer's, and begins messages with it. */
bw_status bwi_keras_check_name(bwi_keras *keras, const char *name);
/* The layer as in an expression; `frozen`: not trainable whatever it says. */
bw_status bwi_keras_layer_text(const bwi_keras *keras, const bwi_json *layer, bool frozen, bwi_text *text);
bool bwi_keras_is_input(const bwi_json *layer);
bw_status bwi_keras_check_input(const bwi_keras *keras, const bwi_json *config);
/* [null, 28, 28, 1]: where it stands, and what stands in it behind the batch. */
const bwi_json *bwi_keras_shape_of(const bwi_json *config);
bw_status bwi_keras_input_shape(const bwi_keras *keras, const bwi_json *list, bwi_shape *shape);
/* Of a functional model, or of a list of layers with models among them. */
bw_status bwi_keras_read_graph(bw_model *model, const bwi_keras *keras, const bwi_json *json, bool frozen);

/* Operators of functional models (operator_read.c). */
bool bwi_keras_is_operator(const bwi_json *json);
bw_status bwi_keras_read_operator(const bwi_keras *keras, const bwi_json *json, const bwi_json *node, const bwi_shape *shape,
                                  bwi_layer *layer);

/* A graph of uses of operations, for Keras's order of these (order.c). Inputs of use u: input[begin[u]] to input[begin[u + 1] - 1]. */
typedef struct bwi_order {
    int uses, operations;
    const int *operation; /* of each use */
    const int *begin, *input;
    const int *outputs; /* uses */
    int output_count;
} bwi_order;
/* order[]: operations that lead to an output; it has room for all. */
bw_status bwi_keras_order(bw_context *ctx, const bwi_order *graph, int *order, int *count);

/* A name as it is used here: printable, and short enough; one that had to be changed ends in a hash of what it was. */
enum { BWI_LOCAL_NAME = 64 };
void bwi_keras_local_name(char local[BWI_LOCAL_NAME], const char *prefix, const char *name);
bool bwi_keras_is_nested(const bwi_json *layer);

/* A model from a Keras configuration: nodes and variables without values if its input's shape is known. NULL as a builder. */
bw_model *bwi_keras_read_model(bw_context *ctx, const char *path, const bwi_json *json);
/* Optimizer, loss and metrics, if `config` has any. */
bw_status bwi_keras_read_compile(bw_model *model, const char *path, const bwi_json *config);
/* The same of older files, which have the optimizer under another key. */
bw_status bwi_keras_read_training(bw_model *model, const char *path, const bwi_json *config, const bwi_json *optimizer);
/* The whole of config.json. */
bw_status bwi_keras_write_model(bw_model *model, const bwi_wiring *wiring, bwi_json_writer *writer);
void bwi_keras_put_compile(bw_model *model, bwi_json_writer *writer);

/* ---- Weights in HDF5 (weights.c) ---- */

/* Checks all shapes, gives the model's variables their storage, reads them; and the optimizer's, if the model is compiled and
 * they are wanted. */
bw_status bwi_weights_read(bw_model *model, bwi_hdf5 *file, const char *path, bool optimizer);
/* The writer is to be dropped. */
bw_status bwi_weights_put(bw_model *model, const bwi_wiring *wiring, bwi_hdf5_writer **writer);
/* *image is to be released. */
bw_status bwi_weights_write(bw_model *model, const bwi_wiring *wiring, void **image, size_t *size);
/* Of a dataset: does it have the variable's shape? DATA_LOSS if not. */
bw_status bwi_weights_check(bw_context *ctx, const char *path, const char *name, const bwi_hdf5_entry *entry,
                            const bwi_shape *shape);
/* Builds what is not built yet, and reads one variable's values. */
bw_status bwi_weights_build(bw_model *model);
bw_status bwi_weights_take(bw_context *ctx, bwi_hdf5 *file, const char *path, const bwi_hdf5_entry *entry, bwi_variable *variable);
/* DATA_LOSS, with layer and variable, if a value that the file has for it is NaN or infinite. */
bw_status bwi_weights_finite(bw_context *ctx, const char *path, const bwi_variable *variable, int64_t count, const float *values);

/* ---- Kinds of files (keras.c, legacy.c, safetensors.c) ---- */

/* A kind of file: what it can do is not NULL. `bytes` is the mapped file. */
typedef struct bwi_file_row {
    const char *extension;
    const char *holds; /* for messages */
    bw_model *(*load)(bw_context *ctx, const char *path, const bwi_bytes *bytes);
    bw_status (*load_weights)(bw_model *model, const char *path, const bwi_bytes *bytes);
    /* *file is to be released. */
    bw_status (*save)(bw_model *model, const char *path, void **file, size_t *size);
    bool bare; /* saved without the variables' values: they need not have any */
    /* Saves in pieces, as a large file should; UNIMPLEMENTED: it is too large for that, so `save` is tried. May be NULL. */
    bw_status (*write)(bw_model *model, const char *path);
} bwi_file_row;

extern const bwi_file_row bwi_file_keras, bwi_file_json, bwi_file_weights, bwi_file_legacy, bwi_file_safetensors, bwi_file_onnx,
    bwi_file_csource;

#endif
