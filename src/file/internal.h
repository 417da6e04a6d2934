/*
 * file: models in files, which are Keras's formats (.keras, to_json, .weights.h5, the older .h5) and safetensors. Files are
 * hostile: a model's shapes come from its configuration, and the contents of a file must match them exactly before memory is
 * allocated; names become layers, options and numbers only through the tables of layer and train; nothing found in a file is ever
 * run or opened.
 *
 * A configuration becomes a model by way of expressions: an object of Keras is written as a text
 * ("dense(units=3,activation=relu)"), which the code that reads users' expressions reads.
 */
#ifndef BWI_FILE_INTERNAL_H
#define BWI_FILE_INTERNAL_H

#include "format/format.h"
#include "train/train.h"

/* ---- Keras's objects and texts (objects.c) ---- */

/* The file, and the part of it that messages name. */
typedef struct bwi_keras {
    bw_context *ctx;
    const char *path;
    char what[256]; /* "layer conv2d" */
} bwi_keras;

/* Fails with "path: what: key=value is not supported". */
bw_status bwi_keras_refuse(const bwi_keras *keras, const char *key, const bwi_json *value);
/* Appends a number, a word, a list of them or an object with a class ("l2(l2=0.01)") as text; UNIMPLEMENTED, with a message,
 * for anything else. */
bw_status bwi_keras_value_text(const bwi_keras *keras, const char *key, const bwi_json *value, bwi_text *text);
/* Appends "name(key=value,...)" for the members of `config` that are arguments of a table. All others must have no effect, which
 * `neutral` decides. */
typedef bool (*bwi_keras_neutral)(const char *key, const bwi_json *value);
bw_status bwi_keras_call_text(const bwi_keras *keras, const char *name, const bwi_json *config, const bwi_argument *arguments,
                              int count, bwi_keras_neutral neutral, bwi_text *text);
/* Whether the type is float32, the only one that is supported. */
bool bwi_keras_is_float32(const bwi_json *dtype);
/* False if the object's class is not one of Keras's own. */
bool bwi_keras_is_own(const bwi_json *object);

/* Writes an argument's value as Keras does; writes nothing if it has none. */
/* Writes a word, or a call as an object with its class and configuration. */
bw_status bwi_keras_put_object(bw_context *ctx, bwi_json_writer *w, const char *key, const char *text);
bw_status bwi_keras_put_argument(bw_context *ctx, bwi_json_writer *writer, const char *class_name, const bwi_argument *argument,
                                 const bwi_argument_value *value);
/* Whether the value is the argument's default. */
bool bwi_argument_is_standard(bw_context *ctx, const bwi_argument *argument, const bwi_argument_value *value);

/* ---- Configurations (config_read.c, graph_read.c, config_write.c, compile_read.c, compile_write.c) ---- */

/* These read one layer of a configuration. */
const bwi_layer_row *bwi_keras_layer_row(const char *class_name); /* NULL: none, as for a name that is NULL */
const char *bwi_keras_layer_name(const bwi_json *layer);
/* Returns a model's list of layers; old configurations of Sequential models are that list. */
const bwi_json *bwi_keras_layers_of(const bwi_json *config);
/* Fails unless the layer's class is supported. */
bw_status bwi_keras_check_class(const bwi_keras *keras, const bwi_json *layer);
/* Checks that the name is a valid layer's name, and makes messages begin with it. */
bw_status bwi_keras_check_name(bwi_keras *keras, const char *name);
/* Writes the layer as it would appear in an expression. If `frozen`, it is not trainable whatever the file says. */
bw_status bwi_keras_layer_text(const bwi_keras *keras, const bwi_json *layer, bool frozen, bwi_text *text);
bool bwi_keras_is_input(const bwi_json *layer);
bool bwi_keras_is_text(const bwi_json *config); /* of an input */
bw_status bwi_keras_check_input(const bwi_keras *keras, const bwi_json *config);
/* Finds a shape such as [null, 28, 28, 1], and reads the extents that follow the batch. */
const bwi_json *bwi_keras_shape_of(const bwi_json *config);
bw_status bwi_keras_input_shape(const bwi_keras *keras, const bwi_json *list, bwi_shape *shape);
/* Reads a functional model, or a list of layers that contains models. */
bw_status bwi_keras_read_graph(bw_model *model, const bwi_keras *keras, const bwi_json *json, bool frozen);

/* Operators of functional models (operator_read.c). */
bool bwi_keras_is_operator(const bwi_json *json);
bw_status bwi_keras_read_operator(const bwi_keras *keras, const bwi_json *json, const bwi_json *node, const bwi_shape *shape,
                                  bwi_layer *layer);

/* A name as it is used here: printable, and short enough. A name that had to be changed ends in a hash of the original. */
enum { BWI_LOCAL_NAME = 64 };
void bwi_keras_local_name(char local[BWI_LOCAL_NAME], const char *prefix, const char *name);
bool bwi_keras_is_nested(const bwi_json *layer);

/* Makes a model from a Keras configuration. If its input's shape is known, it has nodes, and variables without values. NULL as a
 * builder. */
bw_model *bwi_keras_read_model(bw_context *ctx, const char *path, const bwi_json *json);
/* Reads optimizer, loss and metrics, if `config` has any. */
bw_status bwi_keras_read_compile(bw_model *model, const char *path, const bwi_json *config);
/* Does the same for older files, which have the optimizer under a different key. */
bw_status bwi_keras_read_training(bw_model *model, const char *path, const bwi_json *config, const bwi_json *optimizer);
/* Writes the whole of config.json. */
bw_status bwi_keras_write_model(bw_model *model, const bwi_wiring *wiring, bwi_json_writer *writer);
void bwi_keras_put_compile(bw_model *model, bwi_json_writer *writer);

/* ---- Weights in HDF5 (weights.c) ---- */

/* Checks all shapes, allocates the model's variables and reads their values. Reads the optimizer's variables, too, if
 * `optimizer` is set and the model is compiled. */
bw_status bwi_weights_read(bw_model *model, bwi_hdf5 *file, const char *path, bool optimizer);
/* Reads the optimizer's state of an older file, whose values have names, in the order of the list. A state that does not suit the
 * optimizer is left out with a warning. */
bw_status bwi_weights_read_optimizer(bw_model *model, bwi_hdf5 *file, const char *path, const char *const *names, int count);
/* A file of weights that is about to be written: open, put, and close in any case. */
typedef struct bwi_weights_out bwi_weights_out;
bw_status bwi_weights_open(bw_model *model, const bwi_wiring *wiring, bwi_weights_out **out);
size_t bwi_weights_size(const bwi_weights_out *out);
bw_status bwi_weights_put(const bwi_weights_out *out, bwi_byte_sink sink);
void bwi_weights_close(bwi_weights_out *out); /* NULL is fine */
/* Fails with DATA_LOSS unless the dataset has the variable's shape. */
bw_status bwi_weights_check(bw_context *ctx, const char *path, const char *name, const bwi_hdf5_entry *entry,
                            const bwi_shape *shape);
/* Build whatever is not built yet, and read one variable's values. */
bw_status bwi_weights_build(bw_model *model);
bw_status bwi_weights_take(bw_context *ctx, bwi_hdf5 *file, const char *path, const bwi_hdf5_entry *entry, bwi_variable *variable);
/* Fails with DATA_LOSS, naming layer and variable, if one of the values in the file is NaN or infinite. */
bw_status bwi_weights_finite(bw_context *ctx, const char *path, const bwi_variable *variable, int64_t count, const float *values);

/* ---- Values of variables (values.c) ---- */

enum { BWI_VALUES_BLOCK = 1 << 14 }; /* floats that are held at a time */

/* A variable's values in Keras's order; or, if `filters` is set, those of a convolution's kernel with the filters first, then the
 * channels, then the positions. */
typedef struct bwi_values {
    const bwi_variable *variable;
    int64_t filters, channels;
} bwi_values;

/* Reads at most `most` values from the one at `first` on; returns their number. */
int64_t bwi_values_read(const bwi_values *values, int64_t first, int64_t most, float *to);
bw_status bwi_values_put(bw_context *ctx, const bwi_values *values, bwi_byte_sink sink);

/* ---- Kinds of files (keras.c, legacy.c, safetensors.c) ---- */

/* A kind of file. A function is NULL if this kind does not support it; `bytes` is the mapped file. */
typedef struct bwi_file_row {
    const char *extension;
    const char *holds; /* for messages */
    bw_model *(*load)(bw_context *ctx, const char *path, const bwi_bytes *bytes);
    bw_status (*load_weights)(bw_model *model, const char *path, const bwi_bytes *bytes);
    bw_status (*save)(bw_model *model, const char *path, bwi_file_out *out);
    bool bare; /* saved without the variables' values, which need not exist */
} bwi_file_row;

extern const bwi_file_row bwi_file_keras, bwi_file_json, bwi_file_weights, bwi_file_legacy, bwi_file_safetensors, bwi_file_onnx,
    bwi_file_csource;

/* ---- fronts.c: layers for text and categories ---- */

enum { BWI_GROUP_BYTES = 320 };

/* The group of a layer in a file, "layers/text_vectorization_1". False: the model's outputs do not need it. */
bool bwi_front_group(const bwi_wiring *wiring, int layer, char path[BWI_GROUP_BYTES]);

/* Weights of tf-idf, in each of the places where Keras has them. */
typedef struct bwi_front_weight {
    char path[BWI_GROUP_BYTES + 64];
    bwi_front *front;
    int64_t shape[1];
} bwi_front_weight;

int bwi_front_weights(const bwi_wiring *wiring, bwi_front_weight weights[2 * BWI_MOST_FRONTS]);
bool bwi_front_is_weight(const char *name); /* whether a value of a file is such */
/* Whether a key of a configuration is read by bwi_front_take_config, or has no meaning here. */
bool bwi_front_is_key(const bwi_layer_row *row, const char *key);
bw_status bwi_front_take_config(const bwi_keras *keras, const bwi_layer *layer, const bwi_json *config);
bw_status bwi_front_put_config(bw_context *ctx, bwi_json_writer *writer, const bwi_layer *layer);
bw_status bwi_fronts_put_assets(const bwi_wiring *wiring, bwi_zip_out *zip);
typedef bw_status bwi_member_reader(bw_context *ctx, bwi_zip *zip, const char *path, const char *name, size_t limit,
                                    bwi_bytes *bytes, void **copy);
bw_status bwi_fronts_read_assets(bw_model *model, const bwi_wiring *wiring, bwi_zip *zip, const char *path,
                                 bwi_member_reader *member);

#endif
