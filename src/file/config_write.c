/*
 * Writes a model as Keras's config.json. Only keys that Keras has had for a long time are written, and every default of the tables
 * is stated, so that older and newer versions read the same model. Options that only this library has are stored beside Keras's
 * configuration, where Keras does not look.
 */
#include "file/internal.h"

#include <string.h>

/* Whether Keras does not have the argument. */
static bool is_private(const bwi_layer_row *row, const bwi_argument *argument)
{
    return (strcmp(row->class_name, "Embedding") == 0 && strcmp(argument->name, "lazy") == 0) ||
           (strcmp(row->class_name, "BatchNormalization") == 0 && strcmp(argument->name, "ghost") == 0);
}

/* Whether Keras has the argument in calls, not in the layer's configuration. */
static bool is_of_calls(const bwi_argument *argument)
{
    return strcmp(argument->name, "use_causal_mask") == 0;
}

/* Whether an argument is written with what was fitted. */
static bool is_of_front(const bwi_layer_row *row, const bwi_argument *argument)
{
    return bwi_layer_front_kind(row) &&
           (strcmp(argument->name, "vocabulary_size") == 0 || strcmp(argument->name, "oov_token") == 0);
}

/* Whether a token of integers is meant, which Keras has as a number. */
static bool is_number(const bwi_layer_row *row, const bwi_argument *argument, const bwi_argument_value *value)
{
    return strcmp(argument->name, "mask_token") == 0 && value->given && strcmp(row->class_name, "IntegerLookup") == 0;
}

/* Some versions of Keras do not have these arguments, or take no None, so they are written only if they differ from their
 * defaults. */
static bool is_recent(const bwi_argument *argument)
{
    return strcmp(argument->name, "rms_scaling") == 0 || strcmp(argument->name, "zero_output_for_mask") == 0 ||
           strcmp(argument->name, "sliding_window") == 0 || strcmp(argument->name, "use_gate") == 0 ||
           strcmp(argument->name, "value_range") == 0 || strcmp(argument->name, "oov_method") == 0 ||
           strcmp(argument->name, "encoding") == 0;
}

/* Whether the layer's order of axes would otherwise depend on the settings of whoever reads the file. */
static bool has_data_format(const bwi_layer_row *row)
{
    static const char *const starts[] = {"Conv",          "DepthwiseConv", "MaxPooling",   "AveragePooling", "Global",
                                         "ZeroPadding2D", "Cropping2D",    "UpSampling2D", "Flatten",        "SpatialDropout2D",
                                         "SeparableConv", "ZeroPadding3D", "Cropping3D",   "UpSampling3D",   "SpatialDropout3D",
                                         "Adaptive",      "CenterCrop",    "Random",       "Resizing"};
    for (size_t i = 0; i < BWI_COUNT(starts); i++) {
        if (strncmp(row->class_name, starts[i], strlen(starts[i])) == 0 && strcmp(row->class_name, "Concatenate") != 0) {
            return true;
        }
    }
    return false;
}

static bw_status put_config(bw_context *ctx, bwi_json_writer *w, const bwi_layer *layer, int variables);

static bw_status put_object(bw_context *ctx, bwi_json_writer *w, const char *key, const bwi_layer *layer, int variables)
{
    bwi_json_begin(w, key, '{');
    bwi_json_put_text(w, "module", "keras.layers");
    bwi_json_put_text(w, "class_name", layer->row->class_name);
    bw_status status = put_config(ctx, w, layer, variables);
    bwi_json_put_null(w, "registered_name");
    bwi_json_end(w);
    return status;
}

/* The layers that a layer holds: one or two by their names, or a list of cells. */
static bw_status put_inner(bw_context *ctx, bwi_json_writer *w, const bwi_layer *layer, int variables)
{
    bool cell = strcmp(layer->row->class_name, "RNN") == 0, stack = strcmp(layer->row->class_name, "StackedRNNCells") == 0;
    const char *const keys[] = {cell ? "cell" : "layer", "backward_layer"};
    bw_status status = BW_OK;
    if (stack) {
        bwi_json_begin(w, "cells", '[');
    }
    for (const bwi_layer *one = layer->inner[0]; stack && one && status == BW_OK; one = one->above) {
        status = put_object(ctx, w, NULL, one, variables);
    }
    if (stack) {
        bwi_json_end(w);
    }
    for (int i = 0; i < 2 && !stack && status == BW_OK; i++) {
        status = layer->inner[i] ? put_object(ctx, w, keys[i], layer->inner[i], variables) : BW_OK;
    }
    return status;
}

/* `trainable` only matters for layers with variables, and not every layer of Keras accepts it. */
static bw_status put_config(bw_context *ctx, bwi_json_writer *w, const bwi_layer *layer, int variables)
{
    const bwi_layer_row *row = layer->row;
    bw_status status = BW_OK;
    bwi_json_begin(w, "config", '{');
    bwi_json_put_text(w, "name", layer->name);
    if (variables) {
        bwi_json_put_bool(w, "trainable", layer->trainable);
    }
    bool whole = bwi_layer_front_kind(row) && strncmp(row->class_name, "Hash", 4) == 0 &&
                 bwi_front_settings_of(layer->front)->mode == BWI_MODE_INT;
    bwi_json_put_text(w, "dtype", whole ? "int64" : "float32");
    status = put_inner(ctx, w, layer, variables);
    for (int i = 0; i < row->argument_count && status == BW_OK; i++) {
        const bwi_argument *a = &row->arguments[i];
        bool skipped = is_private(row, a) || is_of_calls(a) || is_of_front(row, a) ||
                       (is_recent(a) && bwi_argument_is_standard(ctx, a, &layer->values[i]));
        if (!skipped && is_number(row, a, &layer->values[i])) {
            int64_t number = 0;
            bwi_parse_int(layer->values[i].text, layer->values[i].text + strlen(layer->values[i].text), &number);
            bwi_json_put_whole(w, a->name, number);
            continue;
        }
        status = skipped ? BW_OK : bwi_keras_put_argument(ctx, w, row->class_name, a, &layer->values[i]);
    }
    if (layer->front && status == BW_OK) {
        status = bwi_front_put_config(ctx, w, layer);
    }
    for (int i = 0; i < layer->constraint_count && status == BW_OK; i++) {
        status = bwi_keras_put_object(ctx, w, layer->constraints[i].name, layer->constraints[i].text);
    }
    if (layer->activity[0] && status == BW_OK) {
        status = bwi_keras_put_object(ctx, w, "activity_regularizer", layer->activity);
    }
    if (has_data_format(row)) {
        bwi_json_put_text(w, "data_format", "channels_last");
    }
    bwi_json_end(w);
    return status;
}

static bw_status put_private(bw_context *ctx, bwi_json_writer *w, const bwi_layer *layer)
{
    const bwi_layer_row *row = layer->row;
    bw_status status = BW_OK;
    bool begun = false;
    for (int i = 0; i < row->argument_count && status == BW_OK; i++) {
        const bwi_argument *a = &row->arguments[i];
        if (!is_private(row, a) || bwi_argument_is_standard(ctx, a, &layer->values[i])) {
            continue;
        }
        if (!begun) {
            bwi_json_begin(w, "batchwise", '{');
        }
        begun = true;
        status = bwi_keras_put_argument(ctx, w, row->class_name, a, &layer->values[i]);
    }
    if (begun) {
        bwi_json_end(w);
    }
    return status;
}

static void put_shape(bwi_json_writer *w, const char *key, const bwi_shape *shape)
{
    bwi_json_begin(w, key, '[');
    bwi_json_put_null(w, NULL);
    for (int i = 0; i < shape->ndim; i++) {
        bwi_json_put_whole(w, NULL, shape->extent[i]);
    }
    bwi_json_end(w);
}

static const char *dtype_of(const bw_node *node)
{
    return node && node->dtype == BW_TEXT ? "string" : node && node->dtype == BW_I32 ? "int32" : "float32";
}

static void begin_object(bwi_json_writer *w, const char *module, const char *class_name)
{
    bwi_json_begin(w, NULL, '{');
    bwi_json_put_text(w, "module", module);
    bwi_json_put_text(w, "class_name", class_name);
}

static void put_input(bwi_json_writer *w, const char *name, const bw_node *node)
{
    begin_object(w, "keras.layers", "InputLayer");
    bwi_json_begin(w, "config", '{');
    put_shape(w, "batch_shape", &node->shape);
    bwi_json_put_text(w, "dtype", dtype_of(node));
    bwi_json_put_text(w, "name", name);
    bwi_json_end(w);
    bwi_json_put_null(w, "registered_name");
}

/* ---- Calls ---- */

static void put_tensor(bwi_json_writer *w, const char *key, const bwi_wiring *wiring, const int *operations, const bwi_use *taker,
                       int input)
{
    int use = taker->input[input], part = taker->part[input];
    const bw_node *node = bwi_use_value(&wiring->uses[use], part);
    char name[64];
    bwi_wiring_name(wiring, operations[use], name);
    bwi_json_begin(w, key, '{');
    bwi_json_put_text(w, "class_name", "__keras_tensor__");
    bwi_json_begin(w, "config", '{');
    put_shape(w, "shape", &node->shape);
    bwi_json_put_text(w, "dtype", dtype_of(node));
    bwi_json_begin(w, "keras_history", '[');
    bwi_json_put_text(w, NULL, name);
    bwi_json_put_whole(w, NULL, bwi_wiring_node(wiring, use));
    bwi_json_put_whole(w, NULL, part);
    bwi_json_end(w);
    bwi_json_end(w);
    bwi_json_end(w);
}

static bool is_causal(const bwi_layer *layer)
{
    for (int i = 0; i < layer->row->argument_count; i++) {
        if (is_of_calls(&layer->row->arguments[i])) {
            return layer->values[i].flag;
        }
    }
    return false;
}

/* The states of a stack of cells are a list with a list for each cell that has two. */
static void put_states(bwi_json_writer *w, const bwi_wiring *wiring, const int *operations, const bwi_use *use)
{
    const bwi_layer *cells = wiring->model->layers[use->layer].inner[0];
    const bwi_layer *cell = cells && strcmp(cells->row->class_name, "StackedRNNCells") == 0 ? cells->inner[0] : NULL;
    bwi_json_begin(w, "initial_state", '[');
    for (int i = 1; i < use->inputs; i++) {
        bool two = cell && bwi_layer_states(cell) == 2;
        if (two) {
            bwi_json_begin(w, NULL, '[');
            put_tensor(w, NULL, wiring, operations, use, i++);
        }
        put_tensor(w, NULL, wiring, operations, use, i);
        if (two) {
            bwi_json_end(w);
        }
        cell = cell ? cell->above : NULL;
    }
    bwi_json_end(w);
}

/* Merging layers take a list. Attention requires a value beside the query, even if it is the same, and where query, value and key
 * are not a list, the key and the mask have names. */
static void put_call(bwi_json_writer *w, const bwi_wiring *wiring, const int *operations, const bwi_use *use)
{
    const bwi_layer *layer = &wiring->model->layers[use->layer];
    bool attends = layer->row->flags & BWI_LAYER_ATTENDS, attention = attends || bwi_layer_is_attention(layer->row);
    bool list = (layer->row->flags & BWI_LAYER_MERGES) && !attends, states = layer->row->flags & BWI_LAYER_STATES;
    int by_position = states ? 1 : attends && use->inputs > 2 ? 2 : use->inputs;
    static const char *const names[] = {"key", "attention_mask"};
    bwi_json_begin(w, NULL, '{');
    bwi_json_begin(w, "args", '[');
    if (list) {
        bwi_json_begin(w, NULL, '[');
    }
    for (int i = 0; i < by_position; i++) {
        put_tensor(w, NULL, wiring, operations, use, i);
    }
    if (attention && use->inputs == 1) {
        put_tensor(w, NULL, wiring, operations, use, 0);
    }
    if (list) {
        bwi_json_end(w);
    }
    bwi_json_end(w);
    bwi_json_begin(w, "kwargs", '{');
    for (int i = 2; attends && i < use->inputs; i++) {
        put_tensor(w, names[i - 2], wiring, operations, use, i);
    }
    if (states && use->inputs > 1) {
        put_states(w, wiring, operations, use);
    }
    if (is_causal(layer)) {
        bwi_json_put_bool(w, "use_causal_mask", true);
    }
    bwi_json_end(w);
    bwi_json_end(w);
}

static void put_calls(bwi_json_writer *w, const bwi_wiring *wiring, const int *operations, int layer)
{
    bwi_json_begin(w, "inbound_nodes", '[');
    for (int u = 0; layer >= 0 && u < wiring->use_count; u++) {
        if (wiring->uses[u].layer == layer && wiring->reached[u]) {
            put_call(w, wiring, operations, &wiring->uses[u]);
        }
    }
    bwi_json_end(w);
}

static void put_ends(bwi_json_writer *w, const bwi_wiring *wiring, const int *operations, const char *key, const int *uses,
                     const int *parts, int count)
{
    if (count > 1) {
        bwi_json_begin(w, key, '[');
    }
    for (int k = 0; k < count; k++) {
        char name[64];
        bwi_wiring_name(wiring, operations[uses[k]], name);
        bwi_json_begin(w, count > 1 ? NULL : key, '[');
        bwi_json_put_text(w, NULL, name);
        bwi_json_put_whole(w, NULL, bwi_wiring_node(wiring, uses[k]));
        bwi_json_put_whole(w, NULL, parts ? parts[k] : 0);
        bwi_json_end(w);
    }
    if (count > 1) {
        bwi_json_end(w);
    }
}

/* ---- Models ---- */

/* Layers that belong to a model of keras.applications are found there by Keras. */
static const char *module_of(const char *class_name)
{
    static const struct {
        const char *class_name, *module;
    } others[] = {{"LayerScale", "keras.src.applications.convnext"},
                  {"StochasticDepth", "keras.src.applications.convnext"},
                  {"CustomScaleLayer", "keras.src.applications.inception_resnet_v2"}};
    for (size_t i = 0; i < BWI_COUNT(others); i++) {
        if (strcmp(class_name, others[i].class_name) == 0) {
            return others[i].module;
        }
    }
    return NULL;
}

static bw_status put_layer(const bw_model *model, bwi_json_writer *w, int number)
{
    const bwi_layer *layer = &model->layers[number];
    int first;
    const char *class_name = layer->row->class_name, *module = module_of(class_name);
    begin_object(w, module ? module : "keras.layers", class_name);
    bw_status status = put_config(model->ctx, w, layer, bwi_layer_variables(model, number, &first));
    bwi_json_put_text(w, "registered_name", module ? class_name : NULL);
    return status == BW_OK ? put_private(model->ctx, w, layer) : status;
}

static bw_status put_sequential(bwi_json_writer *w, const bw_model *model, const bwi_wiring *wiring)
{
    char name[64];
    bw_status status = BW_OK;
    bwi_wiring_name(wiring, model->layer_count, name);
    bwi_json_begin(w, "layers", '[');
    put_input(w, name, model->inputs[0]);
    bwi_json_end(w);
    for (int i = 0; i < model->layer_count && status == BW_OK; i++) {
        status = put_layer(model, w, i);
        bwi_json_end(w);
    }
    bwi_json_end(w);
    return status;
}

/* Keras numbers layers by their order in its own list, so inputs and layers are written in that order, and calls refer to them
 * by name. */
static bw_status put_functional(bwi_json_writer *w, const bw_model *model, const bwi_wiring *wiring)
{
    int inputs[BWI_MAX_HEADS], input_count = 0;
    int *operations = bwi_allocate(model->ctx, (size_t)wiring->use_count, sizeof *operations);
    if (!operations) {
        return BW_RESOURCE_EXHAUSTED;
    }
    for (int u = 0; u < wiring->use_count; u++) {
        operations[u] = wiring->uses[u].layer >= 0 ? wiring->uses[u].layer : model->layer_count + input_count;
        if (wiring->uses[u].layer < 0) {
            inputs[input_count++] = u;
        }
    }
    bw_status status = BW_OK;
    bwi_json_begin(w, "layers", '[');
    for (int i = 0; i < wiring->order_count && status == BW_OK; i++) {
        int operation = wiring->order[i], input = operation - model->layer_count;
        char name[64];
        bwi_wiring_name(wiring, operation, name);
        if (input >= 0) {
            put_input(w, name, wiring->uses[inputs[input]].node);
        } else {
            status = put_layer(model, w, operation);
        }
        bwi_json_put_text(w, "name", name);
        put_calls(w, wiring, operations, input < 0 ? operation : -1);
        bwi_json_end(w);
    }
    bwi_json_end(w);
    put_ends(w, wiring, operations, "input_layers", inputs, NULL, input_count);
    put_ends(w, wiring, operations, "output_layers", wiring->outputs, wiring->output_parts, wiring->output_count);
    bwi_release(model->ctx, operations);
    return status;
}

/* Keras names outputs after their layers; names that the user gave are stored beside them, where Keras does not look. */
static void put_output_names(bwi_json_writer *w, const bw_model *model, const bwi_wiring *wiring)
{
    bool own = false, words = true;
    for (int k = 0; k < model->output_count && !wiring->sequential; k++) {
        int layer = wiring->uses[wiring->outputs[k]].layer;
        const char *name = bwi_output_name(model, k);
        own = own || layer < 0 || strcmp(name, model->layers[layer].name) != 0;
        words = words && strspn(name, BWI_OUTPUT_LETTERS) == strlen(name);
    }
    if (!own || !words) {
        return;
    }
    bwi_json_begin(w, "batchwise", '{');
    bwi_json_begin(w, "outputs", '[');
    for (int k = 0; k < model->output_count; k++) {
        bwi_json_put_text(w, NULL, bwi_output_name(model, k));
    }
    bwi_json_end(w);
    bwi_json_end(w);
}

static bool has_operator(const bw_model *model)
{
    for (int i = 0; i < model->layer_count; i++) {
        if (model->layers[i].row->flags & BWI_LAYER_OPERATOR) {
            return true;
        }
    }
    return false;
}

/* A configuration that was read from a file is written back unchanged. */
static bw_status write_again(bw_model *model, bwi_json_writer *w)
{
    bwi_json_begin(w, NULL, '{');
    bwi_text_add(&w->text, "%s", model->config + 1);
    w->filled[0] = true;
    bwi_keras_put_compile(model, w);
    bwi_json_end(w);
    return w->text.failed ? BW_RESOURCE_EXHAUSTED : BW_OK;
}

bw_status bwi_keras_write_model(bw_model *model, const bwi_wiring *wiring, bwi_json_writer *w)
{
    if (model->config) {
        return write_again(model, w);
    }
    if (has_operator(model)) {
        return bwi_fail(model->ctx, BW_UNIMPLEMENTED, "operators of older files cannot be written");
    }
    begin_object(w, "keras", wiring->sequential ? "Sequential" : "Model");
    bwi_json_begin(w, "config", '{');
    bwi_json_put_text(w, "name", bwi_wiring_model_name(wiring));
    bwi_json_put_bool(w, "trainable", true);
    bw_status status = wiring->sequential ? put_sequential(w, model, wiring) : put_functional(w, model, wiring);
    bwi_json_end(w);
    bwi_json_put_null(w, "registered_name");
    put_output_names(w, model, wiring);
    if (status == BW_OK) {
        bwi_keras_put_compile(model, w);
    }
    bwi_json_end(w);
    return status == BW_OK && w->text.failed ? BW_RESOURCE_EXHAUSTED : status;
}
