/*
 * Models by calls: inputs, layers, operators and outputs as nodes. Every builder passes NULL on; a node knows its graph,
 * and the graph its model.
 */
#include "layer/layer.h"

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

/* ---- Ends ---- */

static bw_node *add_field(bw_model *model, int role, const char *name, bw_dtype dtype, int rank, const int64_t *shape)
{
    static const char *const kinds[] = {"input", "target"};
    bwi_input_attributes a = {.role = role, .dtype = dtype, .shape = {.rank = rank}};
    if (!model->by_calls || model->initialized) {
        return bwi_fail_build(model->ctx, BW_INVALID_ARGUMENT, "%s %s: the model %s", kinds[role], name,
                              model->by_calls ? "is in use already" : "was made from an expression");
    }
    if ((dtype != BW_F32 && dtype != BW_I32) || rank < 0 || rank >= BW_MAX_RANK || (rank > 0 && !shape)) {
        return bwi_fail_build(model->ctx, BW_INVALID_ARGUMENT, "%s %s: expected float32 or int32 and a rank from 0 to %d",
                              kinds[role], name, BW_MAX_RANK - 1);
    }
    for (int i = 0; i < rank; i++) {
        a.shape.extent[i] = shape[i];
        if (shape[i] < 1) {
            return bwi_fail_build(model->ctx, BW_INVALID_ARGUMENT, "%s %s: extent %d is %lld", kinds[role], name, i,
                                  (long long)shape[i]);
        }
    }
    snprintf(a.name, sizeof a.name, "%s", name);
    return bwi_graph_add(&model->graph, &bwi_op_input, name[0] ? name : kinds[role], &a, sizeof a, NULL, 0, NULL, 0);
}

bw_node *bw_input(bw_model *model, const char *name, bw_dtype dtype, int rank, const int64_t *shape)
{
    if (!model) {
        return NULL;
    }
    if (model->input_count == BWI_MAX_ENDS) {
        return bwi_fail_build(model->ctx, BW_INVALID_ARGUMENT, "input %s: a model has at most %d inputs", name, BWI_MAX_ENDS);
    }
    bw_node *node = add_field(model, 0, name ? name : "", dtype, rank, shape);
    if (node) {
        model->inputs[model->input_count++] = node;
    }
    return node;
}

bw_node *bw_target(bw_model *model, const char *name, bw_dtype dtype, int rank, const int64_t *shape)
{
    return model ? add_field(model, 1, name ? name : "", dtype, rank, shape) : NULL;
}

/* What bw_output and bw_add_loss ask of a node. */
static bw_status begin_end(bw_node *node, const char *kind, int count)
{
    bw_model *model = model_of(node);
    bw_status status = bwi_pending(model->ctx);
    if (status == BW_OK && model->initialized) {
        status = bwi_fail(model->ctx, BW_INVALID_ARGUMENT, "%s: the model is in use already", kind);
    }
    if (status == BW_OK && count == BWI_MAX_ENDS) {
        status = bwi_fail(model->ctx, BW_INVALID_ARGUMENT, "%s: a model has at most %d", kind, BWI_MAX_ENDS);
    }
    return status;
}

bw_status bw_output(bw_node *node, const char *name)
{
    if (!node) {
        return BW_INVALID_ARGUMENT;
    }
    bw_model *model = model_of(node);
    bw_status status = begin_end(node, "output", model->output_count);
    if (status == BW_OK) {
        snprintf(model->output_names[model->output_count], sizeof model->output_names[0], "%s",
                 name && name[0] ? name : node->name);
        model->outputs[model->output_count++] = node;
    }
    return status;
}

bw_status bw_add_loss(bw_node *loss, const char *name)
{
    if (!loss) {
        return BW_INVALID_ARGUMENT;
    }
    bw_model *model = model_of(loss);
    bw_status status = begin_end(loss, "loss", model->loss_count);
    if (status == BW_OK && bwi_shape_count(&loss->shape) != 1) {
        char shape[160];
        status = bwi_fail(model->ctx, BW_INVALID_ARGUMENT, "loss %s: expected one number a sample, got %s",
                          name ? name : loss->name, bwi_format_shape(shape, loss->shape.rank, loss->shape.extent));
    }
    if (status == BW_OK) {
        snprintf(model->loss_names[model->loss_count], sizeof model->loss_names[0], "%s", name && name[0] ? name : loss->name);
        model->losses[model->loss_count++] = loss;
    }
    return status;
}

/* ---- Layers ---- */

static bwi_layer *append_layer(bw_model *model)
{
    if (model->layer_count == model->layer_capacity) {
        int larger = model->layer_capacity ? 2 * model->layer_capacity : 8;
        bwi_layer *grown = bwi_grow(model->ctx, model->layers, (size_t)model->layer_capacity, (size_t)larger, sizeof *grown);
        if (!grown) {
            return bwi_pass_on(model->ctx);
        }
        model->layers = grown;
        model->layer_capacity = larger;
    }
    return &model->layers[model->layer_count];
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
            return bwi_fail_build(inputs[0]->graph->ctx, BW_INVALID_ARGUMENT, "nodes of two models cannot meet in one");
        }
    }
    return inputs[0];
}

bw_node *bw_merge(const char *text, bw_node *const *inputs, int count)
{
    const bw_node *first = check_inputs(inputs, count);
    if (!first || !text) {
        return NULL;
    }
    bw_model *model = model_of(first);
    bwi_layer *layer = append_layer(model);
    bwi_expression e;
    if (!layer) {
        return NULL;
    }
    if (bwi_term_parse(model->ctx, &e, "layer", text) != BW_OK) {
        return bwi_pass_on(model->ctx);
    }
    bw_status status = bwi_layer_read(model, layer, &e.terms[0]);
    bwi_expression_free(&e);
    if (status != BW_OK) {
        return bwi_pass_on(model->ctx);
    }
    bw_node *node = bwi_layer_build(layer, &model->graph, inputs, count);
    if (node) {
        node->layer = model->layer_count++;
    }
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
    bwi_layer *layer = &model->layers[made->layer];
    model->graph.reusing = true;
    model->graph.reuse = layer->first_variable;
    bw_node *node = bwi_layer_build(layer, &model->graph, both, 1);
    model->graph.reusing = false;
    if (node) {
        node->layer = made->layer;
    }
    return node;
}

bw_node *bw_activation(bw_node *x, const char *name)
{
    return x && name ? bwi_activation_add(x->graph, name, x, name) : NULL;
}

bw_node *bw_reshape(bw_node *x, int rank, const int64_t *shape)
{
    if (!x) {
        return NULL;
    }
    if (rank < 0 || rank >= BW_MAX_RANK || (rank > 0 && !shape)) {
        return bwi_fail_build(x->graph->ctx, BW_INVALID_ARGUMENT, "reshape: expected a rank from 0 to %d, got %d", BW_MAX_RANK - 1,
                              rank);
    }
    bwi_reshape_attributes a = {.shape = {.rank = rank}};
    if (rank) {
        memcpy(a.shape.extent, shape, (size_t)rank * sizeof *shape);
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
