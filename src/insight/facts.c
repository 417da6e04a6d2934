/* Facts about a built model and its layers, which are listed in Keras's order. */
#include "insight/internal.h"

#include <string.h>

static void count_variables(const bw_model *model, int first, int count, int64_t *all, int64_t *trainable)
{
    for (int v = first; v < first + count; v++) {
        const bwi_variable *variable = model->graph.variables[v];
        int64_t values = bwi_shape_count(&variable->shape);
        *all += values;
        *trainable += variable->trainable ? values : 0;
    }
}

/* The count is zero before the first training, which makes the slots. */
static int64_t count_optimizer(const bw_model *model)
{
    bwi_training *training = model->training;
    bwi_state state = {.ctx = model->ctx};
    int64_t values = 0;
    if (!training || !training->optimizer.slots) {
        return 0;
    }
    bwi_optimizer_state(training, &state);
    for (int i = 0; i < state.count; i++) {
        values += (int64_t)(bwi_state_bytes(&state.values[i]) / bwi_dtype_size(state.values[i].dtype));
    }
    bwi_state_free(&state);
    return values;
}

bw_status bwi_describe_model(const bw_model *model, bw_model_facts *facts)
{
    const bwi_wiring *w;
    if (!facts) {
        return bwi_fail(model->ctx, BW_INVALID_ARGUMENT, "bw_model_describe: the pointer to the facts is NULL");
    }
    bw_status status = bwi_wiring_of(model, &w);
    if (status != BW_OK) {
        return status;
    }
    int64_t all = 0, trainable = 0;
    count_variables(model, 0, model->graph.variable_count, &all, &trainable);
    *facts = (bw_model_facts){.name = bwi_wiring_model_name(w), .sequential = w->sequential, .layers = w->order_count};
    facts->trainable = trainable;
    facts->non_trainable = all - trainable;
    facts->optimizer = count_optimizer(model);
    return BW_OK;
}

bw_status bw_model_describe(const bw_model *model, bw_model_facts *facts)
{
    bw_status status = model ? bwi_call_begin(model->ctx) : BW_INVALID_ARGUMENT;
    return status == BW_OK ? bwi_call_end(model->ctx, bwi_describe_model(model, facts)) : status;
}

/* Finds the first use of an operation from use `from` on, in Keras's order; -1 if there is none. */
static int next_use(const bwi_wiring *w, int operation, int from)
{
    int input = operation - w->model->layer_count;
    for (int u = 0; u < w->use_count; u++) {
        bool is_input = w->uses[u].layer < 0;
        if (is_input ? input-- == 0 : w->uses[u].layer == operation) {
            if (u >= from) {
                return u;
            }
        }
    }
    return -1;
}

static bw_status find_layer(const bwi_wiring **w, const bw_model *model, int layer)
{
    bw_status status = bwi_wiring_of(model, w);
    if (status == BW_OK && (layer < 0 || layer >= (*w)->order_count)) {
        status = bwi_fail(model->ctx, BW_INVALID_ARGUMENT, "there is no layer %d: the model has %d", layer, (*w)->order_count);
    }
    return status;
}

/* A shared layer is described once, by its last use, but with the inputs of all uses. */
bw_status bwi_describe_layer(const bw_model *model, int layer, bw_layer_facts *facts)
{
    const bwi_wiring *w;
    if (!facts) {
        return bwi_fail(model->ctx, BW_INVALID_ARGUMENT, "bw_layer_describe: the pointer to the facts is NULL");
    }
    bw_status status = find_layer(&w, model, layer);
    if (status != BW_OK) {
        return status;
    }
    int operation = w->order[layer], first = 0;
    bool is_input = operation >= model->layer_count;
    *facts = (bw_layer_facts){.class_name = is_input ? "InputLayer" : model->layers[operation].row->class_name};
    bwi_wiring_name(w, operation, facts->name);
    if (!is_input) {
        int variables = bwi_layer_variables(model, operation, &first);
        count_variables(model, first, variables, &facts->parameters, &facts->trainable);
    }
    for (int u = next_use(w, operation, 0); u >= 0; u = next_use(w, operation, u + 1)) {
        facts->inputs += w->uses[u].inputs;
        facts->ndim = w->uses[u].node->shape.ndim;
        memcpy(facts->shape, w->uses[u].node->shape.extent, sizeof facts->shape);
    }
    return BW_OK;
}

bw_status bw_layer_describe(const bw_model *model, int layer, bw_layer_facts *facts)
{
    bw_status status = model ? bwi_call_begin(model->ctx) : BW_INVALID_ARGUMENT;
    return status == BW_OK ? bwi_call_end(model->ctx, bwi_describe_layer(model, layer, facts)) : status;
}

static int order_of(const bwi_wiring *w, int use)
{
    int operation = w->uses[use].layer, inputs = 0;
    for (int u = 0; operation < 0 && u < use; u++) {
        inputs += w->uses[u].layer < 0;
    }
    operation = operation < 0 ? w->model->layer_count + inputs : operation;
    int index = 0;
    while (index < w->order_count && w->order[index] != operation) {
        index++;
    }
    return index < w->order_count ? index : -1; /* the input of a list of layers is not in the order */
}

/* Inputs are counted over all uses of a layer, in their order. */
bw_status bwi_layer_input(const bw_model *model, int layer, int input, int *from, int *use)
{
    const bwi_wiring *w;
    if (!from || !use) {
        return bwi_fail(model->ctx, BW_INVALID_ARGUMENT, "bw_layer_input: the pointer to a result is NULL");
    }
    bw_status status = find_layer(&w, model, layer);
    if (status != BW_OK) {
        return status;
    }
    int operation = w->order[layer], left = input, found = -1;
    for (int u = next_use(w, operation, 0); u >= 0 && left >= 0; u = next_use(w, operation, u + 1)) {
        found = left < w->uses[u].inputs ? w->uses[u].input[left] : -1;
        left = found >= 0 ? -1 : left - w->uses[u].inputs;
    }
    if (found < 0 || input < 0) {
        char name[64];
        bwi_wiring_name(w, operation, name);
        status = bwi_fail(model->ctx, BW_INVALID_ARGUMENT, "layer %s has no input %d", name, input);
    } else {
        *from = order_of(w, found);
        *use = bwi_wiring_node(w, found);
    }
    return status;
}

bw_status bw_layer_input(const bw_model *model, int layer, int input, int *from, int *use)
{
    bw_status status = model ? bwi_call_begin(model->ctx) : BW_INVALID_ARGUMENT;
    return status == BW_OK ? bwi_call_end(model->ctx, bwi_layer_input(model, layer, input, from, use)) : status;
}
