/* Models: a list of layers from an expression, made into a graph with variables when the input's shape is known. */
#include "layer/layer.h"

#include <string.h>

static void destroy(bwi_owned *object)
{
    bw_model *model = (bw_model *)(void *)object;
    if (model->training_destroy) {
        model->training_destroy(model->training);
    }
    bwi_graph_free(&model->graph);
    bwi_release(model->ctx, model->layers);
}

void bw_model_free(bw_model *model) { bwi_disown(model); }

bool bwi_model_built(const bw_model *model) { return model->output != NULL; }

static bw_status read_input(bw_model *model, const bwi_term *term)
{
    static const bwi_argument extent = {"shape", NULL, BWI_INT, NULL, 1, 1e9, NULL};
    if (term->count < 1 || term->count > BW_MAX_RANK - 1) {
        return bwi_fail(model->ctx, BW_INVALID_ARGUMENT, "model: column %d: input: expected 1 to %d extents, got %d", term->column,
                        BW_MAX_RANK - 1, term->count);
    }
    model->input_shape.rank = term->count;
    for (int i = 0; i < term->count; i++) {
        bwi_argument_value value;
        bwi_term one = {.items = &term->items[i], .count = 1, .column = term->column};
        bw_status status = bwi_arguments_read(model->ctx, "model: input", &one, &extent, 1, &value);
        if (status != BW_OK) {
            return status;
        }
        model->input_shape.extent[i] = value.integer;
    }
    return BW_OK;
}

/* Keras numbers layers of one kind: conv2d, conv2d_1, ... */
static void name_layer(const bw_model *model, bwi_layer *layer)
{
    int same = 0;
    for (int i = 0; i < model->layer_count; i++) {
        same += strcmp(model->layers[i].row->base_name, layer->row->base_name) == 0;
    }
    if (same) {
        snprintf(layer->name, sizeof layer->name, "%s_%d", layer->row->base_name, same);
    } else {
        snprintf(layer->name, sizeof layer->name, "%s", layer->row->base_name);
    }
}

static bw_status read_layer(bw_model *model, const bwi_term *term)
{
    bw_context *ctx = model->ctx;
    const bwi_layer_row *row = bwi_layer_row_find(term->text, term->length);
    if (!row) {
        return bwi_fail(ctx, BW_INVALID_ARGUMENT, "model: column %d: there is no layer '%.*s'", term->column, term->length, term->text);
    }
    if (term->label) {
        return bwi_fail(ctx, BW_UNIMPLEMENTED, "model: column %d: named points ('%.*s=') are not there yet", term->column,
                        term->label_length, term->label);
    }
    bwi_layer *layer = &model->layers[model->layer_count];
    layer->row = row;
    name_layer(model, layer);
    char what[96];
    snprintf(what, sizeof what, "model: %s", row->base_name);
    bw_status status = bwi_arguments_read(ctx, what, term, row->arguments, row->argument_count, layer->values);
    model->layer_count += status == BW_OK;
    return status;
}

static bw_status read_model(bw_model *model, const char *text)
{
    bwi_expression e;
    bw_status status = bwi_expression_parse(model->ctx, &e, "model", text);
    if (status != BW_OK) {
        return status;
    }
    int first = e.count && bwi_term_is(&e.terms[0], "input") ? 1 : 0;
    if (first) {
        status = read_input(model, &e.terms[0]);
    }
    if (status == BW_OK && e.count == first) {
        status = bwi_fail(model->ctx, BW_INVALID_ARGUMENT, "model: expected at least one layer, found none");
    }
    model->layers = bwi_allocate(model->ctx, (size_t)e.count, sizeof *model->layers);
    if (status == BW_OK && !model->layers) {
        status = BW_RESOURCE_EXHAUSTED;
    }
    for (int i = first; i < e.count && status == BW_OK; i++) {
        status = read_layer(model, &e.terms[i]);
    }
    bwi_expression_free(&e);
    return status;
}

bw_model *bw_model_parse(bw_context *ctx, const char *expression)
{
    if (!ctx || !expression) {
        return NULL;
    }
    bw_model *model = bwi_own(ctx, sizeof *model, destroy);
    if (!model) {
        return NULL;
    }
    model->ctx = model->graph.ctx = ctx;
    model->input_shape.rank = -1;
    bw_status status = read_model(model, expression);
    if (status != BW_OK) {
        char message[sizeof ctx->message];
        snprintf(message, sizeof message, "%s", ctx->message);
        bwi_disown(model);
        return bwi_fail_build(ctx, status, "%s", message);
    }
    return model;
}

/* ---- Building ---- */

static bw_status build_nodes(bw_model *model)
{
    bwi_graph *graph = &model->graph;
    bwi_input_attributes a = {.shape = model->input_shape, .dtype = BW_F32};
    bw_node *x = bwi_graph_add(graph, &bwi_op_input, "input", &a, sizeof a, NULL, 0, NULL, 0);
    model->input = x;
    for (int i = 0; i < model->layer_count; i++) {
        const bwi_layer *layer = &model->layers[i];
        x = x ? layer->row->build(layer, graph, &x, 1) : NULL;
    }
    if (!x) {
        return bwi_pending(model->ctx);
    }
    model->output = x;
    return BW_OK;
}

static bw_status build_variables(bw_model *model, uint64_t seed)
{
    bwi_graph *graph = &model->graph;
    bw_status status = BW_OK;
    for (int n = 0; n < graph->count && status == BW_OK; n++) {
        const bw_node *node = graph->nodes[n];
        bool shared = node->variables > 0 && node->variable[0]->packing.pack;
        status = node->op->pack && !shared ? node->op->pack(model->ctx, node) : BW_OK;
    }
    for (int v = 0; v < graph->variable_count && status == BW_OK; v++) {
        bwi_variable *variable = graph->variables[v];
        variable->data = bwi_allocate(model->ctx, (size_t)variable->count, sizeof(float));
        status = variable->data ? bwi_initialize(model->ctx, variable, seed) : BW_RESOURCE_EXHAUSTED;
    }
    return status;
}

bw_status bw_build(bw_model *model, int rank, const int64_t *shape, uint64_t seed)
{
    if (!model) {
        return BW_INVALID_ARGUMENT;
    }
    bw_context *ctx = model->ctx;
    bw_status status = bwi_pending(ctx);
    if (status != BW_OK) {
        return status;
    }
    if (bwi_model_built(model)) {
        return bwi_fail(ctx, BW_INVALID_ARGUMENT, "the model is built already");
    }
    if (rank < 0 || rank >= BW_MAX_RANK || (!shape && rank > 0)) {
        return bwi_fail(ctx, BW_INVALID_ARGUMENT, "input shape: expected a rank from 0 to %d, got %d", BW_MAX_RANK - 1, rank);
    }
    bwi_shape given = {.rank = rank};
    int64_t total = 1;
    for (int i = 0; i < rank; i++) {
        given.extent[i] = shape[i];
        if (shape[i] < 1 || __builtin_mul_overflow(total, shape[i], &total) || total > INT64_MAX / 4096) {
            return bwi_fail(ctx, BW_INVALID_ARGUMENT, "input shape: extent %d is %lld", i, (long long)shape[i]);
        }
    }
    bool declared = model->input_shape.rank >= 0;
    if (declared && bwi_shape_count(&given) != bwi_shape_count(&model->input_shape)) {
        char expected[160], found[160];
        return bwi_fail(ctx, BW_INVALID_ARGUMENT, "the model's input is %s, the data's samples are %s",
                        bwi_format_shape(expected, model->input_shape.rank, model->input_shape.extent),
                        bwi_format_shape(found, rank, shape));
    }
    if (!declared) {
        model->input_shape = given;
    }
    if (!bwi_kernels_of(ctx)) {
        return bwi_pending(ctx);
    }
    status = build_nodes(model);
    if (status == BW_OK) {
        status = build_variables(model, seed);
    }
    if (status != BW_OK) {
        /* As before the call: unbuilt. */
        bwi_graph_free(&model->graph);
        model->input = model->output = NULL;
        model->input_shape.rank = declared ? model->input_shape.rank : -1;
    }
    return status;
}

/* ---- Variables ---- */

int bw_variable_count(const bw_model *model) { return model ? model->graph.variable_count : 0; }

static const bwi_variable *variable_at(const bw_model *model, int index)
{
    return model && index >= 0 && index < model->graph.variable_count ? model->graph.variables[index] : NULL;
}

const char *bw_variable_name(const bw_model *model, int index)
{
    const bwi_variable *variable = variable_at(model, index);
    return variable ? variable->name : NULL;
}

int bw_variable_shape(const bw_model *model, int index, int64_t *shape)
{
    const bwi_variable *variable = variable_at(model, index);
    if (!variable) {
        return -1;
    }
    memcpy(shape, variable->shape.extent, (size_t)variable->shape.rank * sizeof *shape);
    return variable->shape.rank;
}

static bw_status check_variable(const bw_model *model, int index, size_t count)
{
    const bwi_variable *variable = variable_at(model, index);
    if (!model) {
        return BW_INVALID_ARGUMENT;
    }
    if (!variable) {
        return bwi_fail(model->ctx, BW_INVALID_ARGUMENT, "there is no variable %d: the model has %d", index, model->graph.variable_count);
    }
    if (count != (size_t)bwi_shape_count(&variable->shape)) {
        return bwi_fail(model->ctx, BW_INVALID_ARGUMENT, "%s: expected %lld values, got %zu", variable->name,
                        (long long)bwi_shape_count(&variable->shape), count);
    }
    return BW_OK;
}

bw_status bw_variable_get(const bw_model *model, int index, float *values, size_t count)
{
    bw_status status = check_variable(model, index, count);
    if (status == BW_OK) {
        bwi_variable_read(model->graph.variables[index], values);
    }
    return status;
}

bw_status bw_variable_set(bw_model *model, int index, const float *values, size_t count)
{
    bw_status status = check_variable(model, index, count);
    if (status == BW_OK) {
        bwi_variable_write(model->graph.variables[index], values);
    }
    return status;
}

uint64_t bw_model_hash(const bw_model *model)
{
    uint64_t hash = 0;
    for (int v = 0; model && v < model->graph.variable_count; v++) {
        const bwi_variable *variable = model->graph.variables[v];
        hash = bwi_hash(hash, variable->data, (size_t)variable->count * sizeof(float));
    }
    return hash;
}
