/*
 * Writes a model as ONNX (operator set 17, IR version 8): its inputs with a variable batch size, the nodes that its outputs need
 * for prediction, and its weights. The numbers below are field numbers of onnx.proto.
 */
#include "file/onnx.h"

#include <limits.h>
#include <string.h>

enum { IR_VERSION = 8, OPERATOR_SET = 17 };
enum { TYPE_FLOAT = 1, TYPE_INT32 = 6, TYPE_INT64 = 7 };
enum { MODEL_IR = 1, MODEL_PRODUCER = 2, MODEL_PRODUCER_VERSION = 3, MODEL_GRAPH = 7, MODEL_OPSET = 8, OPSET_VERSION = 2 };
enum { MODEL_PROPERTY = 14, PROPERTY_KEY = 1, PROPERTY_VALUE = 2 };
enum { GRAPH_NODE = 1, GRAPH_NAME = 2, GRAPH_CONSTANT = 5, GRAPH_INPUT = 11, GRAPH_OUTPUT = 12 };
enum { NODE_INPUT = 1, NODE_OUTPUT = 2, NODE_NAME = 3, NODE_TYPE = 4, NODE_ATTRIBUTE = 5 };
enum {
    ATTRIBUTE_NAME = 1,
    ATTRIBUTE_FLOAT = 2,
    ATTRIBUTE_INT = 3,
    ATTRIBUTE_TEXT = 4,
    ATTRIBUTE_GRAPH = 6,
    ATTRIBUTE_INTS = 8,
    ATTRIBUTE_TYPE = 20
};
enum { KIND_FLOAT = 1, KIND_INT = 2, KIND_TEXT = 3, KIND_GRAPH = 5, KIND_INTS = 7 };
enum { TENSOR_EXTENT = 1, TENSOR_TYPE = 2, TENSOR_NAME = 8, TENSOR_DATA = 9 };
enum { VALUE_NAME = 1, VALUE_TYPE = 2, TYPE_TENSOR = 1, TENSOR_ELEMENT = 1, TENSOR_SHAPE = 2, SHAPE_EXTENT = 1 };
enum { EXTENT_VALUE = 1, EXTENT_NAME = 2 };

static const char extension[] = ".onnx";

/* ---- Constants ---- */

static void begin_constant(bwi_onnx *o, const char *name, int type, int ndim, const int64_t *shape)
{
    bwi_wire *w = &o->constants;
    bwi_wire_begin(w, GRAPH_CONSTANT);
    for (int i = 0; i < ndim; i++) {
        bwi_wire_put(w, TENSOR_EXTENT, shape[i]);
    }
    bwi_wire_put(w, TENSOR_TYPE, type);
    bwi_wire_put_text(w, TENSOR_NAME, name);
}

static void put_constant(bwi_onnx *o, const char *name, int type, int ndim, const int64_t *shape, const void *data, size_t size)
{
    begin_constant(o, name, type, ndim, shape);
    bwi_wire_put_bytes(&o->constants, TENSOR_DATA, data, size);
    bwi_wire_end(&o->constants);
}

const char *bwi_onnx_new(bwi_onnx *o, bwi_onnx_name name)
{
    snprintf(name, BWI_ONNX_NAME, "between/%d", o->values++);
    return name;
}

static void name_constant(bwi_onnx *o, bwi_onnx_name name)
{
    snprintf(name, BWI_ONNX_NAME, "constant/%d", o->numbers++);
}

const char *bwi_onnx_floats(bwi_onnx *o, bwi_onnx_name name, int ndim, const int64_t *shape, const float *values)
{
    size_t count = 1;
    if (!name[0]) {
        name_constant(o, name);
    }
    if (!values) {
        o->status = BW_RESOURCE_EXHAUSTED;
        return name;
    }
    for (int i = 0; i < ndim; i++) {
        count *= (size_t)shape[i];
    }
    put_constant(o, name, TYPE_FLOAT, ndim, shape, values, count * sizeof *values);
    return name;
}

const char *bwi_onnx_float(bwi_onnx *o, bwi_onnx_name name, float value)
{
    name[0] = 0;
    return bwi_onnx_floats(o, name, 0, NULL, &value);
}

const char *bwi_onnx_wholes(bwi_onnx *o, bwi_onnx_name name, int64_t count, const int64_t *values)
{
    name_constant(o, name);
    put_constant(o, name, TYPE_INT64, 1, &count, values, (size_t)count * sizeof *values);
    return name;
}

const char *bwi_onnx_shape(bwi_onnx *o, bwi_onnx_name name, int64_t first, const bwi_shape *shape)
{
    int64_t extents[BW_MAX_NDIM + 1] = {first};
    memcpy(extents + 1, shape->extent, (size_t)shape->ndim * sizeof *extents);
    return bwi_onnx_wholes(o, name, shape->ndim + 1, extents);
}

const char *bwi_onnx_values(bwi_onnx *o, const bwi_values *values, int ndim, const int64_t *shape)
{
    const bwi_variable *variable = values->variable;
    if (!o->written[variable->index]) {
        size_t size = (size_t)bwi_shape_count(&variable->shape) * sizeof(float);
        o->late[o->late_count] = *values;
        o->written[variable->index] = true;
        begin_constant(o, variable->name, TYPE_FLOAT, ndim, shape);
        bwi_wire_put_gap(&o->constants, TENSOR_DATA, size, o->late_count++);
        bwi_wire_end(&o->constants);
    }
    return variable->name;
}

const char *bwi_onnx_variable(bwi_onnx *o, const bwi_variable *variable)
{
    return bwi_onnx_values(o, &(bwi_values){.variable = variable}, variable->shape.ndim, variable->shape.extent);
}

/* ---- Operators ---- */

void bwi_onnx_begin(bwi_onnx *o, const char *type, const char *const *inputs, const char *output)
{
    bwi_onnx_name name;
    bwi_wire_begin(&o->nodes, GRAPH_NODE);
    for (; *inputs; inputs++) {
        bwi_wire_put_text(&o->nodes, NODE_INPUT, *inputs);
    }
    snprintf(name, sizeof name, "%.100s_%s", output, type);
    bwi_wire_put_text(&o->nodes, NODE_OUTPUT, output);
    bwi_wire_put_text(&o->nodes, NODE_NAME, name);
    bwi_wire_put_text(&o->nodes, NODE_TYPE, type);
}

static void begin_attribute(bwi_onnx *o, const char *name)
{
    bwi_wire_begin(&o->nodes, NODE_ATTRIBUTE);
    bwi_wire_put_text(&o->nodes, ATTRIBUTE_NAME, name);
}

static void end_attribute(bwi_onnx *o, int kind)
{
    bwi_wire_put(&o->nodes, ATTRIBUTE_TYPE, kind);
    bwi_wire_end(&o->nodes);
}

void bwi_onnx_put_output(bwi_onnx *o, const char *name)
{
    bwi_wire_put_text(&o->nodes, NODE_OUTPUT, name);
}

static void put_float_value(bwi_wire *w, int field, const char *name)
{
    bwi_wire_begin(w, field);
    bwi_wire_put_text(w, VALUE_NAME, name);
    bwi_wire_begin(w, VALUE_TYPE);
    bwi_wire_begin(w, TYPE_TENSOR);
    bwi_wire_put(w, TENSOR_ELEMENT, TYPE_FLOAT);
    bwi_wire_end(w);
    bwi_wire_end(w);
    bwi_wire_end(w);
}

void bwi_onnx_put_graph(bwi_onnx *o, const char *name, const bwi_wire *nodes, int input_count, const char *const *inputs,
                        int output_count, const char *const *outputs)
{
    begin_attribute(o, name);
    bwi_wire_begin(&o->nodes, ATTRIBUTE_GRAPH);
    bwi_wire_add(&o->nodes, nodes);
    bwi_wire_put_text(&o->nodes, GRAPH_NAME, name);
    for (int k = 0; k < input_count; k++) {
        put_float_value(&o->nodes, GRAPH_INPUT, inputs[k]);
    }
    for (int k = 0; k < output_count; k++) {
        put_float_value(&o->nodes, GRAPH_OUTPUT, outputs[k]);
    }
    bwi_wire_end(&o->nodes);
    end_attribute(o, KIND_GRAPH);
}

void bwi_onnx_put(bwi_onnx *o, const char *name, int64_t value)
{
    begin_attribute(o, name);
    bwi_wire_put(&o->nodes, ATTRIBUTE_INT, value);
    end_attribute(o, KIND_INT);
}

void bwi_onnx_put_float(bwi_onnx *o, const char *name, float value)
{
    begin_attribute(o, name);
    bwi_wire_put_float(&o->nodes, ATTRIBUTE_FLOAT, value);
    end_attribute(o, KIND_FLOAT);
}

void bwi_onnx_put_text(bwi_onnx *o, const char *name, const char *value)
{
    begin_attribute(o, name);
    bwi_wire_put_text(&o->nodes, ATTRIBUTE_TEXT, value);
    end_attribute(o, KIND_TEXT);
}

void bwi_onnx_put_list(bwi_onnx *o, const char *name, int count, const int64_t *values)
{
    begin_attribute(o, name);
    for (int i = 0; i < count; i++) {
        bwi_wire_put(&o->nodes, ATTRIBUTE_INTS, values[i]);
    }
    end_attribute(o, KIND_INTS);
}

void bwi_onnx_end(bwi_onnx *o)
{
    bwi_wire_end(&o->nodes);
}

void bwi_onnx_add(bwi_onnx *o, const char *type, const char *output, ...)
{
    const char *inputs[BWI_MAX_POINTS + 1];
    int count = 0;
    va_list names;
    va_start(names, output);
    do {
        inputs[count] = va_arg(names, const char *);
    } while (inputs[count++] && count <= BWI_MAX_POINTS);
    va_end(names);
    bwi_onnx_begin(o, type, inputs, output);
    bwi_onnx_end(o);
}

void bwi_onnx_transpose(bwi_onnx *o, const char *from, const char *to, int ndim, const int64_t *axes)
{
    bwi_onnx_begin(o, "Transpose", (const char *[]){from, NULL}, to);
    bwi_onnx_put_list(o, "perm", ndim, axes);
    bwi_onnx_end(o);
}

void bwi_onnx_reshape(bwi_onnx *o, const char *from, const char *to, const bwi_shape *shape)
{
    bwi_onnx_name extents;
    bwi_onnx_add(o, "Reshape", to, from, bwi_onnx_shape(o, extents, -1, shape), NULL);
}

/* ---- Values ---- */

static void input_name(const bw_model *model, int k, bwi_onnx_name name)
{
    const bwi_input_attributes *a = model->inputs[k]->attributes;
    if (a->name[0]) {
        snprintf(name, BWI_ONNX_NAME, "%s", a->name);
    } else if (model->input_count > 1) {
        snprintf(name, BWI_ONNX_NAME, "input_%d", k);
    } else {
        snprintf(name, BWI_ONNX_NAME, "input");
    }
}

static bool is_taken(const bwi_onnx *o, int outputs, const char *name)
{
    bwi_onnx_name input;
    bool taken = false;
    for (int k = 0; k < o->model->input_count && !taken; k++) {
        input_name(o->model, k, input);
        taken = strcmp(input, name) == 0;
    }
    for (int k = 0; k < outputs && !taken; k++) {
        taken = strcmp(o->outputs[k], name) == 0;
    }
    for (int v = 0; v < o->model->graph.variable_count && !taken; v++) {
        taken = strcmp(o->model->graph.variables[v]->name, name) == 0;
    }
    return taken;
}

/* Names of inputs, outputs and variables must differ in a file, although they need not in a model. */
static void name_outputs(bwi_onnx *o)
{
    for (int k = 0; k < o->model->output_count; k++) {
        const char *given = o->model->output_names[k][0] ? o->model->output_names[k] : "output";
        snprintf(o->outputs[k], BWI_ONNX_NAME, "%s", given);
        for (int i = 0; is_taken(o, k, o->outputs[k]); i++) {
            snprintf(o->outputs[k], BWI_ONNX_NAME, "%s_%d", given, i);
        }
    }
}

static int output_of(const bw_model *model, const bw_node *node)
{
    for (int k = 0; k < model->output_count; k++) {
        if (model->outputs[k] == node) {
            return k;
        }
    }
    return -1;
}

const char *bwi_onnx_result(bwi_onnx *o, const bw_node *node, bwi_onnx_order order)
{
    char *name = o->names[node->number][order];
    int k = order == BWI_ONNX_LAST ? output_of(o->model, node) : -1;
    if (k >= 0) {
        snprintf(name, BWI_ONNX_NAME, "%s", o->outputs[k]);
    } else {
        snprintf(name, BWI_ONNX_NAME, "%s/%s_%d%s", node->name, node->op->name, node->number,
                 order == BWI_ONNX_FIRST ? "_channels_first" : "");
    }
    return name;
}

bwi_onnx_order bwi_onnx_order_of(const bwi_onnx *o, const bw_node *node)
{
    return o->names[node->number][BWI_ONNX_LAST][0] ? BWI_ONNX_LAST : BWI_ONNX_FIRST;
}

const char *bwi_onnx_of(bwi_onnx *o, const bw_node *node, bwi_onnx_order order)
{
    bwi_onnx_name *names = o->names[node->number];
    if (names[order][0]) {
        return names[order];
    }
    int64_t axes[BW_MAX_NDIM + 1] = {0};
    int ndim = node->shape.ndim + 1;
    for (int i = 1; i < ndim; i++) {
        axes[i] = order == BWI_ONNX_FIRST ? (i == 1 ? ndim - 1 : i - 1) : (i == ndim - 1 ? 1 : i + 1);
    }
    bwi_onnx_result(o, node, order);
    bwi_onnx_transpose(o, names[!order], names[order], ndim, axes);
    return names[order];
}

/* ---- The model ---- */

static void put_value(bwi_wire *w, int field, const char *name, const bw_node *node)
{
    bwi_wire_begin(w, field);
    bwi_wire_put_text(w, VALUE_NAME, name);
    bwi_wire_begin(w, VALUE_TYPE);
    bwi_wire_begin(w, TYPE_TENSOR);
    bwi_wire_put(w, TENSOR_ELEMENT, node->dtype == BW_I32 ? TYPE_INT32 : TYPE_FLOAT);
    bwi_wire_begin(w, TENSOR_SHAPE);
    for (int i = -1; i < node->shape.ndim; i++) {
        bwi_wire_begin(w, SHAPE_EXTENT);
        if (i < 0) {
            bwi_wire_put_text(w, EXTENT_NAME, "batch");
        } else {
            bwi_wire_put(w, EXTENT_VALUE, node->shape.extent[i]);
        }
        bwi_wire_end(w);
    }
    bwi_wire_end(w);
    bwi_wire_end(w);
    bwi_wire_end(w);
    bwi_wire_end(w);
}

/* Applies the recipe of the training data to raw values. Each operation's result gets a new name, and the last one gets the
 * node's. */
static void write_preparation(bwi_onnx *o, const bw_node *node, int input)
{
    const bw_dataset *recipe = bw_model_data(o->model);
    bwi_onnx_name from, to, number;
    bwi_preparation step;
    double scale = bwi_export_scale(o->model);
    input_name(o->model, input, from);
    if (scale < 1 || scale > 1) {
        bwi_onnx_add(o, "Mul", bwi_onnx_new(o, to), from, bwi_onnx_float(o, number, (float)scale), NULL);
        memcpy(from, to, sizeof from);
    }
    for (int k = 0; bwi_recipe_step(recipe, input, k, &step); k++) {
        bwi_onnx_name offset = "", factor = "";
        bwi_onnx_floats(o, offset, 1, &step.count, step.offset);
        bwi_onnx_floats(o, factor, 1, &step.count, step.factor);
        bwi_onnx_add(o, "Sub", bwi_onnx_new(o, to), from, offset, NULL);
        bwi_onnx_add(o, "Mul", bwi_onnx_new(o, from), to, factor, NULL);
    }
    bwi_onnx_add(o, "Identity", bwi_onnx_result(o, node, BWI_ONNX_LAST), from, NULL);
}

/* The same field may be needed as numbers and as indices. */
static void write_input(bwi_onnx *o, const bw_node *node)
{
    int k = bwi_export_input(o->model, node);
    bwi_onnx_name name;
    input_name(o->model, k, name);
    if (o->model->inputs[k] == node && bwi_export_is_prepared(o->model, k)) {
        write_preparation(o, node, k);
        return;
    }
    if (o->model->inputs[k] == node) {
        memcpy(o->names[node->number][BWI_ONNX_LAST], name, sizeof name);
        return;
    }
    bwi_onnx_begin(o, "Cast", (const char *[]){name, NULL}, bwi_onnx_result(o, node, BWI_ONNX_LAST));
    bwi_onnx_put(o, "to", node->dtype == BW_I32 ? TYPE_INT32 : TYPE_FLOAT);
    bwi_onnx_end(o);
}

static void write_node(bwi_onnx *o, const bw_node *node)
{
    const bwi_onnx_row *tables[] = {bwi_onnx_ops, bwi_onnx_spatial};
    if (node->op->flags & BWI_OP_INPUT) {
        write_input(o, node);
        return;
    }
    if (bwi_export_is_identity(node)) {
        memcpy(o->names[node->number], o->names[node->input[0]->number], sizeof o->names[0]);
        return;
    }
    for (size_t t = 0; t < BWI_COUNT(tables); t++) {
        for (const bwi_onnx_row *row = tables[t]; row->op; row++) {
            if (row->op == node->op) {
                row->write(o, node);
                return;
            }
        }
    }
    o->status = bwi_export_refuse(o->model, node, extension);
}

static bw_status write_nodes(bwi_onnx *o, const bool *needed)
{
    const bwi_graph *graph = &o->model->graph;
    name_outputs(o);
    for (int n = 0; n < graph->count && o->status == BW_OK; n++) {
        if (needed[n]) {
            write_node(o, graph->nodes[n]);
        }
    }
    for (int k = 0; k < o->model->output_count && o->status == BW_OK; k++) {
        const char *value = bwi_onnx_of(o, o->model->outputs[k], BWI_ONNX_LAST);
        if (strcmp(o->outputs[k], value) != 0) {
            bwi_onnx_add(o, "Identity", o->outputs[k], value, NULL);
        }
    }
    return o->status;
}

static void write_model(const bwi_onnx *o, bwi_wire *w)
{
    bwi_onnx_name name;
    bwi_wire_put(w, MODEL_IR, IR_VERSION);
    bwi_wire_put_text(w, MODEL_PRODUCER, "batchwise");
    bwi_wire_put_text(w, MODEL_PRODUCER_VERSION, bw_version());
    bwi_wire_begin(w, MODEL_GRAPH);
    bwi_wire_add(w, &o->nodes);
    bwi_wire_put_text(w, GRAPH_NAME, "model");
    bwi_wire_add(w, &o->constants);
    for (int k = 0; k < o->model->input_count; k++) {
        input_name(o->model, k, name);
        put_value(w, GRAPH_INPUT, name, o->model->inputs[k]);
    }
    for (int k = 0; k < o->model->output_count; k++) {
        put_value(w, GRAPH_OUTPUT, o->outputs[k], o->model->outputs[k]);
    }
    bwi_wire_end(w);
    bwi_wire_begin(w, MODEL_OPSET);
    bwi_wire_put(w, OPSET_VERSION, OPERATOR_SET);
    bwi_wire_end(w);
}

static void put_property(bwi_wire *w, const char *key, const bwi_json_writer *json)
{
    if (json->text.length) {
        bwi_wire_begin(w, MODEL_PROPERTY);
        bwi_wire_put_text(w, PROPERTY_KEY, key);
        bwi_wire_put_bytes(w, PROPERTY_VALUE, json->text.bytes, json->text.length);
        bwi_wire_end(w);
    }
}

static void list_classes(const bwi_onnx *o, bwi_json_writer *json)
{
    for (int i = 0; bw_model_class(o->model, i); i++) {
        bwi_json_put_text(json, NULL, bw_model_class(o->model, i));
    }
}

static void list_labels(const bwi_onnx *o, bwi_json_writer *json)
{
    bwi_text label = {.ctx = o->ctx};
    for (int64_t i = 0; bwi_export_label(o->model, i, &label); i++) {
        bwi_json_put_text(json, NULL, label.bytes ? label.bytes : "");
        label.length = 0;
    }
    json->text.failed = json->text.failed || label.failed;
    bwi_text_free(&label);
}

/* Writes a list of names, if there are any. */
static bw_status put_names(const bwi_onnx *o, bwi_wire *w, const char *key, void (*list)(const bwi_onnx *, bwi_json_writer *))
{
    bwi_json_writer json = {.text = {.ctx = o->ctx}};
    bwi_json_begin(&json, NULL, '[');
    size_t empty = json.text.length;
    list(o, &json);
    bool any = json.text.length > empty;
    bwi_json_end(&json);
    if (any) {
        put_property(w, key, &json);
    }
    bw_status status = json.text.failed ? BW_RESOURCE_EXHAUSTED : BW_OK;
    bwi_text_free(&json.text);
    return status;
}

/* Writes how the model's training data was prepared, the names of its classes, and what its inputs are. */
static bw_status write_properties(const bwi_onnx *o, bwi_wire *w)
{
    bwi_json_writer json;
    bw_status status = bwi_export_preparation(o->model, &json);
    if (status == BW_OK) {
        put_property(w, "batchwise_data", &json);
    }
    bwi_text_free(&json.text);
    status = status == BW_OK ? put_names(o, w, "class_names", list_classes) : status;
    return status == BW_OK ? put_names(o, w, "input_names", list_labels) : status;
}

/* Writes the message with the values of variables in its gaps. */
static bw_status put_file(const bwi_onnx *o, const bwi_wire *w, bwi_file_out *out)
{
    size_t at = 0;
    bw_status status = BW_OK;
    for (int i = 0; i < w->gap_count && status == BW_OK; i++) {
        const bwi_wire_gap *gap = &w->gaps[i];
        status = bwi_file_put(out, w->bytes + at, gap->at - at);
        status = status == BW_OK ? bwi_values_put(o->ctx, &o->late[gap->number], bwi_file_sink(out)) : status;
        at = gap->at;
    }
    return status == BW_OK ? bwi_file_put(out, w->bytes + at, w->length - at) : status;
}

static bw_status write_file(const bwi_onnx *o, const char *path, bwi_file_out *out)
{
    bwi_wire w = {.ctx = o->ctx};
    write_model(o, &w);
    bw_status status = write_properties(o, &w);
    bwi_export_warn(o->model, path);
    status = status == BW_OK && w.failed ? BW_RESOURCE_EXHAUSTED : status;
    if (status == BW_OK && bwi_wire_size(&w) > INT_MAX) {
        status = bwi_fail_file(o->ctx, BW_UNIMPLEMENTED, path, "%zu bytes; an ONNX file has at most 2 GiB", bwi_wire_size(&w));
    }
    status = status == BW_OK ? put_file(o, &w, out) : status;
    bwi_wire_free(&w);
    return status;
}

/* Nodes are written first, because they decide which constants are needed. Protobuf itself limits a file to 2 GiB. */
static bw_status save_numbers(bw_model *model, const char *path, bwi_file_out *out)
{
    bwi_onnx o = {.ctx = model->ctx, .model = model, .nodes = {.ctx = model->ctx}, .constants = {.ctx = model->ctx}};
    size_t variables = (size_t)model->graph.variable_count + 1;
    bool *needed = bwi_export_needed(model);
    o.names = needed ? bwi_allocate(model->ctx, (size_t)model->graph.count + 1, sizeof *o.names) : NULL;
    o.written = o.names ? bwi_allocate(model->ctx, variables, sizeof *o.written) : NULL;
    o.late = o.written ? bwi_allocate(model->ctx, variables, sizeof *o.late) : NULL;
    bw_status status = o.late ? write_nodes(&o, needed) : model->ctx->error.status;
    status = status == BW_OK ? write_file(&o, path, out) : status;
    bwi_wire_free(&o.nodes);
    bwi_wire_free(&o.constants);
    bwi_release(model->ctx, needed);
    bwi_release(model->ctx, (void *)o.names);
    bwi_release(model->ctx, o.written);
    bwi_release(model->ctx, o.late);
    return status;
}

static bw_status save(bw_model *model, const char *path, bwi_file_out *out)
{
    return bwi_export_behind_fronts(model, path, out, save_numbers);
}

const bwi_file_row bwi_file_onnx = {extension, "what a model predicts, by operator set 17", NULL, NULL, save, false};
