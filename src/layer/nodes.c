/*
 * Models by calls: inputs, layers, operators and outputs as nodes. Every builder passes NULL on. A node knows its graph, and the
 * graph knows its model.
 */
#include "layer/internal.h"

#include <string.h>

static bw_model *model_of(const bw_node *node)
{
    return node->graph->owner;
}

bw_model *bw_model_new(bw_context *ctx)
{
    bw_model *model = ctx ? bwi_model_open(ctx) : NULL;
    if (model) {
        model->by_calls = true;
        model->graph.owner = model;
    }
    return model;
}

static bool grow_uses(bw_model *model)
{
    if (model->use_count < model->use_capacity) {
        return true;
    }
    int larger = model->use_capacity ? 2 * model->use_capacity : 8;
    bwi_use *grown = bwi_grow(model->ctx, model->uses, (size_t)model->use_capacity, (size_t)larger, sizeof *grown);
    if (!grown) {
        bwi_pass_on(model->ctx);
        return false;
    }
    model->uses = grown;
    model->use_capacity = larger;
    return true;
}

/* ---- Ends ---- */

/* Only inputs may be text. */
static bw_node *add_field(bw_model *model, bwi_role role, const char *name, bw_dtype dtype, int ndim, const int64_t *shape)
{
    static const char *const kinds[] = {"input", "target"};
    bwi_input_attributes a = {.role = role, .dtype = dtype, .shape = {.ndim = ndim}};
    if (!model->by_calls || model->initialized) {
        return bwi_fail_build(model->ctx, BW_INVALID_ARGUMENT, "%s %s: the model %s", kinds[role], name,
                              model->by_calls ? "is in use already" : "was made from an expression");
    }
    if ((dtype != BW_F32 && dtype != BW_I32 && !(dtype == BW_TEXT && role == BWI_ROLE_INPUT)) || ndim < 0 || ndim >= BW_MAX_NDIM ||
        (ndim > 0 && !shape)) {
        return bwi_fail_build(model->ctx, BW_INVALID_ARGUMENT, "%s %s: expected float32 or int32 and 0 to %d axes", kinds[role],
                              name, BW_MAX_NDIM - 1);
    }
    for (int i = 0; i < ndim; i++) {
        a.shape.extent[i] = shape[i];
        if (shape[i] < 1) {
            return bwi_fail_build(model->ctx, BW_INVALID_ARGUMENT, "%s %s: extent %d is %lld", kinds[role], name, i,
                                  (long long)shape[i]);
        }
    }
    snprintf(a.name, sizeof a.name, "%s", name);
    return bwi_graph_add(&model->graph, &bwi_op_input, name[0] ? name : kinds[role], &a, sizeof a, NULL, 0, NULL, 0);
}

bw_node *bw_input(bw_model *model, const char *name, bw_dtype dtype, int ndim, const int64_t *shape)
{
    if (!model) {
        return NULL;
    }
    if (model->input_count == BWI_MAX_HEADS) {
        return bwi_fail_build(model->ctx, BW_INVALID_ARGUMENT, "input %s: a model has at most %d inputs", name, BWI_MAX_HEADS);
    }
    bw_node *node = grow_uses(model) ? add_field(model, BWI_ROLE_INPUT, name ? name : "", dtype, ndim, shape) : NULL;
    if (node) {
        model->inputs[model->input_count++] = node;
        model->uses[model->use_count++] = (bwi_use){.layer = -1, .node = node};
    }
    return node;
}

bw_node *bw_target(bw_model *model, const char *name, bw_dtype dtype, int ndim, const int64_t *shape)
{
    return model ? add_field(model, BWI_ROLE_TARGET, name ? name : "", dtype, ndim, shape) : NULL;
}

/* Checks what bw_output and bw_add_loss both require of a node's model. */
static bw_status begin_end(bw_node *node, const char *kind, int count)
{
    bw_model *model = model_of(node);
    bw_status status = BW_OK;
    if (model->initialized) {
        status = bwi_fail(model->ctx, BW_INVALID_ARGUMENT, "%s: the model is in use already", kind);
    }
    if (status == BW_OK && count == BWI_MAX_HEADS) {
        status = bwi_fail(model->ctx, BW_INVALID_ARGUMENT, "%s: a model has at most %d", kind, BWI_MAX_HEADS);
    }
    return status;
}

static bool is_output(const bw_model *model, const char *name)
{
    for (int k = 0; k < model->output_count; k++) {
        if (strcmp(model->output_names[k], name) == 0) {
            return true;
        }
    }
    return false;
}

/* Losses, metrics and targets refer to outputs by name, so if two outputs, from a shared layer or the same node, have one name,
 * the second is numbered: "d", "d_1". */
static void name_output(bw_model *model, const char *name)
{
    char *own = model->output_names[model->output_count];
    snprintf(own, sizeof model->output_names[0], "%s", name);
    for (int k = 1; is_output(model, own); k++) {
        snprintf(own, sizeof model->output_names[0], "%.48s_%d", name, k);
    }
}

bw_status bwi_model_output(bw_node *node, const char *name)
{
    bw_model *model = model_of(node);
    bw_status status = begin_end(node, "output", model->output_count);
    if (status == BW_OK) {
        name_output(model, name && name[0] ? name : node->name);
        model->outputs[model->output_count++] = node;
    }
    return status;
}

bw_status bw_output(bw_node *node, const char *name)
{
    bw_context *ctx = node ? model_of(node)->ctx : NULL;
    bw_status status = node ? bwi_call_begin(ctx) : BW_INVALID_ARGUMENT;
    return status == BW_OK ? bwi_call_end(ctx, bwi_model_output(node, name)) : status;
}

static bw_status add_loss(bw_node *loss, const char *name)
{
    bw_model *model = model_of(loss);
    bw_status status = begin_end(loss, "loss", model->loss_count);
    if (status == BW_OK && bwi_shape_count(&loss->shape) != 1) {
        char shape[160];
        status = bwi_fail(model->ctx, BW_INVALID_ARGUMENT, "loss %s: expected one number per sample, got %s",
                          name ? name : loss->name, bwi_format_shape(shape, loss->shape.ndim, loss->shape.extent));
    }
    if (status == BW_OK) {
        snprintf(model->loss_names[model->loss_count], sizeof model->loss_names[0], "%s", name && name[0] ? name : loss->name);
        model->losses[model->loss_count++] = loss;
    }
    return status;
}

bw_status bw_add_loss(bw_node *loss, const char *name)
{
    bw_context *ctx = loss ? model_of(loss)->ctx : NULL;
    bw_status status = loss ? bwi_call_begin(ctx) : BW_INVALID_ARGUMENT;
    return status == BW_OK ? bwi_call_end(ctx, add_loss(loss, name)) : status;
}

/* ---- Layers ---- */

static bool grow_layers(bw_model *model)
{
    if (model->layer_count < model->layer_capacity) {
        return true;
    }
    int larger = model->layer_capacity ? 2 * model->layer_capacity : 8;
    bwi_layer *grown = bwi_grow(model->ctx, model->layers, (size_t)model->layer_capacity, (size_t)larger, sizeof *grown);
    if (!grown) {
        bwi_pass_on(model->ctx);
        return false;
    }
    model->layers = grown;
    model->layer_capacity = larger;
    return true;
}

/* Finds the last value (bwi_result) that is the node, because a layer that does nothing gives its input's node. -1: no layer's. */
static int find_value(const bw_model *model, const bw_node *node)
{
    for (int use = model->use_count - 1; use >= 0; use--) {
        for (int part = 0; part <= model->uses[use].parts.count; part++) {
            if (bwi_use_value(&model->uses[use], part) == node) {
                return bwi_result(use, part);
            }
        }
    }
    return -1;
}

static bw_node *check_inputs(bw_node *const *inputs, int count)
{
    if (count < 1 || !inputs) {
        return NULL;
    }
    for (int k = 0; k < count; k++) {
        if (!inputs[k]) {
            return NULL;
        }
        if (inputs[k]->graph != inputs[0]->graph) {
            return bwi_fail_build(inputs[0]->graph->ctx, BW_INVALID_ARGUMENT, "the nodes belong to different models");
        }
    }
    if (count > BWI_MAX_POINTS) {
        return bwi_fail_build(inputs[0]->graph->ctx, BW_INVALID_ARGUMENT, "a layer takes at most %d inputs, got %d", BWI_MAX_POINTS,
                              count);
    }
    return inputs[0];
}

static bool is_used(const bw_model *model, int layer)
{
    for (int use = 0; use < model->use_count; use++) {
        if (model->uses[use].layer == layer) {
            return true;
        }
    }
    return false;
}

/* `values` says where the inputs come from. Variables get values and optimizer slots once the model is in use, so no layer may be
 * added after that. */
static bw_node *call_layer(bw_model *model, int number, bw_node *const *inputs, const int *values, int count)
{
    if (!grow_uses(model)) {
        return NULL;
    }
    bwi_layer *layer = &model->layers[number];
    if (model->initialized) {
        return bwi_fail_build(model->ctx, BW_INVALID_ARGUMENT, "layer %s: the model is in use already", layer->name);
    }
    model->graph.reusing = is_used(model, number);
    model->graph.reuse = layer->first_variable;
    bw_node *node = bwi_layer_build(layer, &model->graph, inputs, count);
    model->graph.reusing = false;
    if (node) {
        bwi_use *use = &model->uses[model->use_count++];
        *use = (bwi_use){.layer = number, .node = node, .parts = model->graph.parts, .inputs = count};
        for (int k = 0; k < count; k++) {
            use->input[k] = values[k] < 0 ? -1 : bwi_result_use(values[k]);
            use->part[k] = values[k] < 0 ? 0 : bwi_result_part(values[k]);
        }
        node->layer = number;
    }
    return node;
}

int bwi_model_add_layer(bw_model *model, const char *text, const char *name)
{
    bwi_expression e;
    if (!grow_layers(model)) {
        return -1;
    }
    if (bwi_term_parse(model->ctx, &e, "layer", text) != BW_OK) {
        bwi_pass_on(model->ctx);
        return -1;
    }
    bwi_layer *layer = &model->layers[model->layer_count];
    bw_status status = bwi_layer_read(model, layer, &e.terms[0]);
    bwi_expression_free(&e);
    if (status != BW_OK) {
        bwi_pass_on(model->ctx);
        return -1;
    }
    if (name) {
        snprintf(layer->name, sizeof layer->name, "%s", name);
    }
    return model->layer_count++;
}

int bwi_model_append_layer(bw_model *model, const bwi_layer *layer)
{
    if (!grow_layers(model)) {
        return -1;
    }
    model->layers[model->layer_count] = *layer;
    return model->layer_count++;
}

int bwi_model_use(bw_model *model, int layer, const int *values, int count)
{
    bw_node *inputs[BWI_MAX_POINTS];
    for (int k = 0; k < count && k < BWI_MAX_POINTS; k++) {
        inputs[k] = bwi_use_value(&model->uses[bwi_result_use(values[k])], bwi_result_part(values[k]));
    }
    if (count < 1 || count > BWI_MAX_POINTS) {
        bwi_fail_build(model->ctx, BW_INVALID_ARGUMENT, "layer %s: expected 1 to %d inputs, got %d", model->layers[layer].name,
                       BWI_MAX_POINTS, count);
        return -1;
    }
    return call_layer(model, layer, inputs, values, count) ? model->use_count - 1 : -1;
}

bw_node *bw_merge(const char *text, bw_node *const *inputs, int count)
{
    const bw_node *first = check_inputs(inputs, count);
    if (!first || !text) {
        return NULL;
    }
    bw_model *model = model_of(first);
    int values[BWI_MAX_POINTS], layer = bwi_model_add_layer(model, text, NULL);
    if (layer < 0) {
        return NULL;
    }
    for (int k = 0; k < count; k++) {
        values[k] = find_value(model, inputs[k]);
    }
    bw_node *node = call_layer(model, layer, inputs, values, count);
    model->layer_count -= !node;
    return node;
}

bw_node *bw_layer(bw_node *input, const char *layer)
{
    return bw_merge(layer, &input, 1);
}

bw_node *bw_layer_again(const bw_node *made, bw_node *input)
{
    bw_node *const both[] = {input};
    if (!made || !check_inputs(both, 1)) {
        return NULL;
    }
    bw_model *model = model_of(made);
    if (made->layer < 0 || input->graph != made->graph) {
        return bwi_fail_build(model->ctx, BW_INVALID_ARGUMENT, "%s was not made by a layer of this model", made->name);
    }
    int value = find_value(model, input);
    return call_layer(model, made->layer, both, &value, 1);
}

bw_node *bw_layer_part(const bw_node *made, int number)
{
    if (!made) {
        return NULL;
    }
    const bw_model *model = model_of(made);
    for (int use = 0; use < model->use_count; use++) {
        const bwi_use *u = &model->uses[use];
        if (u->layer >= 0 && u->node == made && number >= 1 && number <= u->parts.count) {
            return u->parts.node[number - 1];
        }
    }
    return bwi_fail_build(model->ctx, BW_INVALID_ARGUMENT, "%s: the layer gives no value %d beside its output", made->name, number);
}

bw_node *bw_activation(bw_node *x, const char *name)
{
    return x && name ? bwi_activation_add(x->graph, name, x, name) : NULL;
}

bw_node *bw_reshape(bw_node *x, int ndim, const int64_t *shape)
{
    if (!x) {
        return NULL;
    }
    if (ndim < 0 || ndim >= BW_MAX_NDIM || (ndim > 0 && !shape)) {
        return bwi_fail_build(x->graph->ctx, BW_INVALID_ARGUMENT, "reshape: expected 0 to %d axes, got %d", BW_MAX_NDIM - 1, ndim);
    }
    bwi_reshape_attributes a = {.shape = {.ndim = ndim}};
    if (ndim) {
        memcpy(a.shape.extent, shape, (size_t)ndim * sizeof *shape);
    }
    return bwi_graph_add(x->graph, &bwi_op_reshape, "reshape", &a, sizeof a, &x, 1, NULL, 0);
}

/* ---- Operators of the user's own ---- */

bw_node *bw_custom(const bw_operator *op, bw_node *const *inputs, int count)
{
    const bw_node *first = check_inputs(inputs, count);
    if (!first || !op) {
        return NULL;
    }
    if (op->size < sizeof *op || !op->shape || !op->forward || !op->name) {
        return bwi_fail_build(first->graph->ctx, BW_INVALID_ARGUMENT, "operator: its size, name, shape and forward must be given");
    }
    return bwi_graph_add(first->graph, op->backward ? &bwi_op_custom : &bwi_op_custom_constant, op->name, op, sizeof *op, inputs,
                         count, NULL, 0);
}
