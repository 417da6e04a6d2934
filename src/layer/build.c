/* Builds models: layers become nodes and variables, and variables get storage and initial values. */
#include "layer/internal.h"

bw_node *bwi_layer_build(bwi_layer *layer, bwi_graph *graph, bw_node *const *inputs, int input_count)
{
    for (int k = 0; k < input_count; k++) {
        if (!inputs[k]) {
            return NULL;
        }
    }
    bool taken = false, same = false;
    for (int k = 0; k < input_count; k++) {
        taken = taken || inputs[k]->mask_taken;
    }
    int before = graph->variable_count;
    if (!graph->reusing) {
        layer->first_variable = before;
    }
    graph->parts.count = 0;
    if (!(layer->row->flags & (BWI_LAYER_MERGES | BWI_LAYER_STATES)) && input_count != 1) {
        return bwi_fail_build(graph->ctx, BW_INVALID_ARGUMENT, "layer %s: expected one input, got %d", layer->name, input_count);
    }
    bwi_float_begin(graph->ctx); /* arguments are rounded to floats in the same way whatever the caller's rounding mode */
    bw_node *node = bwi_layer_nodes(layer, graph, inputs, input_count);
    bwi_float_end(graph->ctx);
    for (int v = before; !layer->trainable && v < graph->variable_count; v++) {
        graph->variables[v]->trainable = false;
    }
    node = bwi_layer_mask(layer, graph, inputs, input_count, node);
    for (int k = 0; k < input_count; k++) {
        same = same || inputs[k] == node;
    }
    if (node && !same) {
        node->mask_taken = taken;
    }
    if (node && layer->activity[0] && graph->parts.count) {
        node = bwi_fail_build(graph->ctx, BW_UNIMPLEMENTED, "layer %s: activity_regularizer with return_state is not supported",
                              layer->name);
    }
    if (node && layer->activity[0]) { /* an identity, since others may read the node, too */
        bwi_scale_attributes identity = {.scale = 1, .offset = -0.0F};
        bw_node *own = bwi_graph_add(graph, &bwi_op_scale, layer->name, &identity, sizeof identity, &node, 1, NULL, 0);
        if (own) {
            own->mask = node->mask;
            own->mask_taken = node->mask_taken;
        }
        node = own && bwi_activity_read(graph->ctx, layer, own) == BW_OK ? own : bwi_pass_on(graph->ctx);
    }
    if (!node) {
        bwi_locate(graph->ctx, bwi_in_layer(layer->name));
    }
    return node;
}

/* What a layer takes the model's input for: numbers, indices, or text. */
static bw_dtype dtype_of(const bw_model *model, const bwi_layer *layer)
{
    if (!bwi_layer_front_kind(layer->row)) {
        return layer->row->flags & BWI_LAYER_INDICES ? BW_I32 : BW_F32;
    }
    bwi_front_kind kind = bwi_front_settings_of(layer->front)->kind;
    if (bwi_front_takes_text(layer->front)) {
        bool either = kind == BWI_FRONT_HASHING || kind == BWI_FRONT_CROSSING;
        return either && model->input_shape.ndim >= 0 && !model->input_text ? BW_I32 : BW_TEXT;
    }
    return kind == BWI_FRONT_DISCRETIZATION ? BW_F32 : BW_I32;
}

/* Returns the model's input as float32 or, for indices, as int32, or as text. One field gets several nodes if all are needed. */
static bw_node *input_of(const bw_model *model, bwi_graph *graph, bw_dtype dtype, bw_node *made[3])
{
    bw_node **node = &made[dtype == BW_TEXT ? 2 : dtype == BW_I32];
    bwi_input_attributes a = {.shape = model->input_shape, .dtype = dtype};
    *node = *node ? *node : bwi_graph_add(graph, &bwi_op_input, "input", &a, sizeof a, NULL, 0, NULL, 0);
    return *node;
}

/* What a layer gives. */
typedef struct made {
    bw_node *node;
    bwi_parts parts;
} made;

/* Records the uses of layers; a model made by calls has recorded them already. */
static bw_status record_uses(bw_model *model, const made *outputs)
{
    bwi_use *uses = bwi_allocate(model->ctx, (size_t)model->layer_count + 1, sizeof *uses);
    if (!uses) {
        return BW_RESOURCE_EXHAUSTED;
    }
    uses[0] = (bwi_use){.layer = -1, .node = model->inputs[0]};
    for (int i = 0; i < model->layer_count; i++) {
        const bwi_layer *layer = &model->layers[i];
        bwi_use *use = &uses[i + 1];
        *use = (bwi_use){.layer = i, .node = outputs[i].node, .parts = outputs[i].parts, .inputs = layer->inputs};
        for (int k = 0; k < layer->inputs; k++) {
            use->input[k] = layer->input[k] + 1; /* BWI_FROM_INPUT is -1 */
            use->part[k] = layer->part[k];
        }
    }
    bwi_release(model->ctx, model->uses);
    model->uses = uses;
    model->use_count = model->use_capacity = model->layer_count + 1;
    return BW_OK;
}

/* One layer may read an input as numbers and another as indices, so one field has up to two nodes. */
static bw_status build_nodes(bw_model *model)
{
    bw_context *ctx = model->ctx;
    bwi_graph *graph = &model->graph;
    bw_node *fields[3] = {NULL, NULL, NULL};
    made *outputs = bwi_allocate(ctx, (size_t)model->layer_count, sizeof *outputs);
    if (!outputs) {
        return BW_RESOURCE_EXHAUSTED;
    }
    for (int i = 0; i < model->layer_count; i++) {
        bwi_layer *layer = &model->layers[i];
        bw_node *inputs[BWI_MAX_POINTS];
        for (int k = 0; k < layer->inputs; k++) {
            bw_dtype dtype = dtype_of(model, layer);
            const made *from = layer->input[k] == BWI_FROM_INPUT ? NULL : &outputs[layer->input[k]];
            inputs[k] = !from            ? input_of(model, graph, dtype, fields)
                        : layer->part[k] ? from->parts.node[layer->part[k] - 1]
                                         : from->node;
        }
        outputs[i].node = bwi_layer_build(layer, graph, inputs, layer->inputs);
        outputs[i].parts = graph->parts;
    }
    model->inputs[0] = fields[2] ? fields[2] : fields[0] ? fields[0] : fields[1];
    model->outputs[0] = outputs[model->layer_count - 1].node;
    bw_status status = model->outputs[0] ? record_uses(model, outputs) : bwi_pending(ctx);
    bwi_release(ctx, outputs);
    if (status == BW_OK) {
        model->input_count = model->output_count = 1;
    }
    return status;
}

/* Variables are as large as the model demands, so a size that the system cannot provide is refused before any of it is
 * allocated. */
static bw_status check_memory(const bw_model *model)
{
    size_t needed = 0, left = bwi_memory_available(model->ctx);
    for (int v = 0; v < model->graph.variable_count; v++) {
        const bwi_variable *variable = model->graph.variables[v];
        size_t bytes = bwi_size_multiply((size_t)variable->count, sizeof(float));
        needed = bwi_size_add(needed, bytes);
    }
    char need[32], have[32];
    return needed <= left ? BW_OK
                          : bwi_fail(model->ctx, BW_RESOURCE_EXHAUSTED, "memory: the model's variables need %s, %s are left",
                                     bwi_format_bytes(need, needed), bwi_format_bytes(have, left));
}

/* Decides how variables are stored: their packings and counts, but no storage yet. */
static bw_status pack(bw_model *model)
{
    const bwi_graph *graph = &model->graph;
    bw_status status = bwi_kernels_of(model->ctx) ? BW_OK : model->ctx->error.status;
    for (int n = 0; n < graph->count && status == BW_OK; n++) {
        const bw_node *node = graph->nodes[n];
        bool shared = node->variables > 0 && node->variable[0]->packing.pack;
        status = node->op->pack && !shared ? node->op->pack(model->ctx, node) : BW_OK;
    }
    return status;
}

/* Gives all variables storage and initial values. A failure leaves none, so that it can be tried again. */
static bw_status initialize(bw_model *model, uint64_t seed)
{
    bwi_graph *graph = &model->graph;
    bwi_float_begin(model->ctx); /* initial values do not depend on the caller's rounding mode */
    bw_status status = pack(model);
    status = status == BW_OK ? check_memory(model) : status;
    status = status == BW_OK && graph->variable_count ? bwi_graph_open_variables(graph, bwi_kernels_of(model->ctx)) : status;
    for (int v = 0; v < graph->variable_count && status == BW_OK; v++) {
        status = bwi_initialize(model->ctx, graph->variables[v], seed);
    }
    if (status != BW_OK) {
        bwi_graph_close_variables(graph);
    }
    bwi_float_end(model->ctx);
    return status;
}

/* The data may have a different shape than the model declares if the number of values is equal, such as rows of 784 columns for
 * images of 28x28. */
static bw_status read_shape(bw_model *model, int ndim, const int64_t *shape)
{
    bw_context *ctx = model->ctx;
    if (ndim == 0 && !shape) {
        return bwi_fail(ctx, BW_INVALID_ARGUMENT, "the shape of the input is not known: begin the expression with input(...)");
    }
    if (ndim < 0 || ndim >= BW_MAX_NDIM || (!shape && ndim > 0)) {
        return bwi_fail(ctx, BW_INVALID_ARGUMENT, "input shape: expected 0 to %d axes, got %d", BW_MAX_NDIM - 1, ndim);
    }
    bwi_shape given = {.ndim = ndim};
    int64_t total = 1;
    for (int i = 0; i < ndim; i++) {
        given.extent[i] = shape[i];
        if (shape[i] < 1 || __builtin_mul_overflow(total, shape[i], &total) || total > BWI_MOST_VALUES) {
            return bwi_fail(ctx, BW_INVALID_ARGUMENT, "input shape: extent %d is %lld", i, (long long)shape[i]);
        }
    }
    if (model->input_shape.ndim < 0) {
        model->input_shape = given;
    } else if (bwi_shape_count(&given) != bwi_shape_count(&model->input_shape)) {
        char expected[160], found[160];
        return bwi_fail(ctx, BW_INVALID_ARGUMENT, "the model's input is %s, the data's samples are %s",
                        bwi_format_shape(expected, model->input_shape.ndim, model->input_shape.extent),
                        bwi_format_shape(found, ndim, shape));
    }
    return BW_OK;
}

/* A model made by calls has its nodes already, so only its inputs and outputs are checked. */
static bw_status check_ends(const bw_model *model)
{
    if (model->output_count + model->loss_count == 0) {
        return bwi_fail(model->ctx, BW_INVALID_ARGUMENT, "the model has no output: name one with bw_output");
    }
    if (model->input_count == 0) {
        return bwi_fail(model->ctx, BW_INVALID_ARGUMENT, "the model has no input");
    }
    return BW_OK;
}

void bwi_model_disconnect(bw_model *model, bool declared)
{
    bwi_wiring_forget(model);
    bwi_graph_free(&model->graph);
    model->input_count = model->output_count = 0;
    model->input_shape.ndim = declared ? model->input_shape.ndim : -1;
}

bw_status bwi_model_connect(bw_model *model, int ndim, const int64_t *shape)
{
    bool declared = model->input_shape.ndim >= 0, fronts = bwi_model_has_fronts(model);
    if (fronts && !declared) { /* one text or category in a sample */
        model->input_shape = (bwi_shape){.ndim = 1, .extent = {1}};
        model->input_text = true;
    }
    bw_status status = fronts || (declared && !shape && ndim == 0) ? BW_OK : read_shape(model, ndim, shape);
    if (status == BW_OK) {
        status = build_nodes(model);
    }
    if (status != BW_OK) {
        bwi_model_disconnect(model, declared);
    }
    return status;
}

bw_status bwi_model_sketch(bw_model *model, int ndim, const int64_t *shape, bool *connected)
{
    bw_status status = model->by_calls ? check_ends(model) : BW_OK;
    *connected = !model->by_calls && model->output_count == 0;
    if (status == BW_OK && *connected) {
        status = bwi_model_connect(model, ndim, shape);
        *connected = status == BW_OK;
    }
    return status == BW_OK ? pack(model) : status;
}

bw_status bwi_model_build(bw_model *model, int ndim, const int64_t *shape, uint64_t seed)
{
    if (bwi_model_built(model)) {
        return bwi_fail(model->ctx, BW_INVALID_ARGUMENT, "the model is built already");
    }
    bw_status status = model->by_calls ? check_ends(model) : model->output_count ? BW_OK : bwi_model_connect(model, ndim, shape);
    if (status == BW_OK) {
        status = initialize(model, seed);
    }
    model->initialized = status == BW_OK;
    return status;
}

bw_status bw_build(bw_model *model, int ndim, const int64_t *shape, uint64_t seed)
{
    bw_status status = model ? bwi_call_begin(model->ctx) : BW_INVALID_ARGUMENT;
    return status == BW_OK ? bwi_call_end(model->ctx, bwi_model_build(model, ndim, shape, seed)) : status;
}
