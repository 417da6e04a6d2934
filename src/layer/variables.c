/* Access to a model's variables, in Keras's order and layout. */
#include "layer/layer.h"

#include <string.h>

int bw_variable_count(const bw_model *model)
{
    return model ? model->graph.variable_count : 0;
}

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
    memcpy(shape, variable->shape.extent, (size_t)variable->shape.ndim * sizeof *shape);
    return variable->shape.ndim;
}

bool bw_variable_trainable(const bw_model *model, int index)
{
    const bwi_variable *variable = variable_at(model, index);
    return variable && variable->trainable;
}

static bw_status check_variable(const bw_model *model, int index, size_t count)
{
    const bwi_variable *variable = variable_at(model, index);
    if (!variable) {
        return bwi_fail(model->ctx, BW_INVALID_ARGUMENT, "there is no variable %d: the model has %d", index,
                        model->graph.variable_count);
    }
    if (!variable->data) {
        return bwi_fail(model->ctx, BW_INVALID_ARGUMENT, "%s has no values before the model is built", variable->name);
    }
    if (count != (size_t)bwi_shape_count(&variable->shape)) {
        return bwi_fail(model->ctx, BW_INVALID_ARGUMENT, "%s: expected %lld values, got %zu", variable->name,
                        (long long)bwi_shape_count(&variable->shape), count);
    }
    return BW_OK;
}

static bw_status check_values(const bw_model *model, int index, const float *values, size_t count)
{
    bw_status status = check_variable(model, index, count);
    return status == BW_OK && !values ? bwi_fail(model->ctx, BW_INVALID_ARGUMENT, "%s: the pointer to its values is NULL",
                                                 model->graph.variables[index]->name)
                                      : status;
}

bw_status bw_variable_get(const bw_model *model, int index, float *values, size_t count)
{
    bw_status status = model ? bwi_call_begin(model->ctx) : BW_INVALID_ARGUMENT;
    if (status != BW_OK) {
        return status;
    }
    status = check_values(model, index, values, count);
    if (status == BW_OK) {
        bwi_variable_read(model->graph.variables[index], values);
    }
    return bwi_call_end(model->ctx, status);
}

bw_status bw_variable_set(bw_model *model, int index, const float *values, size_t count)
{
    bw_status status = model ? bwi_call_begin(model->ctx) : BW_INVALID_ARGUMENT;
    if (status != BW_OK) {
        return status;
    }
    status = check_values(model, index, values, count);
    if (status == BW_OK) {
        bwi_variable_write(model->graph.variables[index], values);
        model->graph.variables[index]->given = true;
    }
    return bwi_call_end(model->ctx, status);
}

/* The hash is taken in Keras's order, so that it does not depend on how kernels store the variable, and in blocks, so that it needs
 * no copy of it. */
static uint64_t add_hash(const bwi_variable *variable, uint64_t seed)
{
    float values[1024];
    int64_t total = bwi_shape_count(&variable->shape);
    uint64_t hash = bwi_hash_begin(seed, (size_t)total * sizeof *values);
    for (int64_t first = 0; first < total; first += (int64_t)BWI_COUNT(values)) {
        int64_t count = total - first < (int64_t)BWI_COUNT(values) ? total - first : (int64_t)BWI_COUNT(values);
        bwi_variable_read_part(variable, first, count, values);
        hash = bwi_hash_add(hash, values, (size_t)count * sizeof *values);
    }
    return bwi_hash_end(hash);
}

uint64_t bw_model_hash(const bw_model *model)
{
    uint64_t hash = 0;
    for (int v = 0; model && v < model->graph.variable_count; v++) {
        const bwi_variable *variable = model->graph.variables[v];
        hash = variable->data ? add_hash(variable, hash) : hash;
    }
    return hash;
}
