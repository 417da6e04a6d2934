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

/* The hash is taken in Keras's order, so that it does not depend on how kernels store the variable. False if there is no memory
 * for that. */
static bool add_hash(bw_context *ctx, const bwi_variable *variable, uint64_t *hash)
{
    size_t count = (size_t)bwi_shape_count(&variable->shape);
    if (!variable->packing.unpack) {
        *hash = bwi_hash(*hash, bwi_variable_open(variable), count * sizeof(float));
        bwi_variable_close(variable);
        return true;
    }
    float *values = bwi_allocate(ctx, count, sizeof *values);
    if (values) {
        bwi_variable_read(variable, values);
        *hash = bwi_hash(*hash, values, count * sizeof *values);
    }
    bwi_release(ctx, values);
    return values;
}

uint64_t bw_model_hash(const bw_model *model)
{
    uint64_t hash = 0;
    for (int v = 0; model && v < model->graph.variable_count; v++) {
        const bwi_variable *variable = model->graph.variables[v];
        if (!variable->data) {
            continue;
        }
        if (!add_hash(model->ctx, variable, &hash)) {
            bwi_pass_on(model->ctx); /* the next status reports it; a hash of only some variables would look valid */
            return 0;
        }
    }
    return hash;
}
