/* compile: reads optimizer, loss and metrics by name, and manages what train keeps with a model. */
#include "train/internal.h"

#include <stdio.h>
#include <string.h>

static void destroy(void *training)
{
    bwi_training *t = training;
    bwi_optimizer_free_slots(t);
    if (!t->ctx->closing) {
        bw_dataset_free(t->data);
    }
    bwi_release(t->ctx, t);
}

bwi_training *bwi_training_of(bw_model *model)
{
    if (model->training) {
        return model->training;
    }
    bwi_training *t = bwi_allocate(model->ctx, 1, sizeof *t);
    if (!t) {
        return NULL;
    }
    t->ctx = model->ctx;
    t->model = model;
    t->metric_count = -1;
    if (bwi_optimizer_read(t->ctx, &t->optimizer, "adam") != BW_OK) {
        bwi_release(model->ctx, t);
        return NULL;
    }
    model->training = t;
    model->training_destroy = destroy;
    return t;
}

/* Reads into `fresh`, a copy of the training part. */
static bw_status read_into(bwi_training *fresh, const char *optimizer, const char *loss, const char *metrics, bool keep)
{
    bw_status status = BW_OK;
    if (loss || !keep) {
        fresh->loss_count = 0;
        memset((void *)fresh->found, 0, sizeof fresh->found);
    }
    if (metrics || !keep) {
        fresh->metric_count = metrics ? 0 : -1;
    }
    if (optimizer || !keep) {
        status = bwi_optimizer_read(fresh->ctx, &fresh->optimizer, optimizer ? optimizer : "adam");
    }
    if (status == BW_OK && loss) {
        status = bwi_losses_read(fresh, loss);
    }
    if (status == BW_OK && metrics) {
        status = bwi_metrics_read(fresh, metrics);
    }
    return status;
}

/* A NULL argument stands for the default or, if `keep`, for what the model has already. The training part changes only after
 * everything has been read; its copy is too large for small stacks. */
static bw_status compile(bw_model *model, const char *optimizer, const char *loss, const char *metrics, bool keep)
{
    bwi_training *t = bwi_training_of(model);
    bwi_training *fresh = t ? bwi_allocate(t->ctx, 1, sizeof *fresh) : NULL;
    if (!fresh) {
        return BW_RESOURCE_EXHAUSTED;
    }
    *fresh = *t;
    bw_status status = read_into(fresh, optimizer, loss, metrics, keep);
    unsigned given = (optimizer ? BWI_PART_OPTIMIZER : 0U) | (loss ? BWI_PART_LOSS : 0U) | (metrics ? BWI_PART_METRICS : 0U);
    if (status == BW_OK) {
        if (optimizer || !keep) {
            bwi_optimizer_free_slots(t);
        }
        fresh->compiled = true;
        fresh->unread = keep ? fresh->unread & ~given : 0;
        fresh->compiles++;
        *t = *fresh;
    } else {
        snprintf(t->refusal, sizeof t->refusal, "%.255s", t->ctx->message);
    }
    t->refused = status == BW_OK && t->unread ? t->refused : status;
    bwi_release(t->ctx, fresh);
    return status;
}

void bwi_training_leave_out(bwi_training *t, unsigned parts, bw_status status, const char *message)
{
    t->unread = parts;
    t->refused = status;
    snprintf(t->refusal, sizeof t->refusal, "%s", message);
}

bw_status bwi_model_compile(bw_model *model, const char *optimizer, const char *loss, const char *metrics)
{
    return compile(model, optimizer, loss, metrics, false);
}

bw_status bw_compile(bw_model *model, const char *optimizer, const char *loss, const char *metrics)
{
    bw_status status = model ? bwi_call_begin(model->ctx) : BW_INVALID_ARGUMENT;
    return status == BW_OK ? bwi_call_end(model->ctx, compile(model, optimizer, loss, metrics, false)) : status;
}

bw_status bw_recompile(bw_model *model, const char *optimizer, const char *loss, const char *metrics)
{
    bw_status status = model ? bwi_call_begin(model->ctx) : BW_INVALID_ARGUMENT;
    return status == BW_OK ? bwi_call_end(model->ctx, compile(model, optimizer, loss, metrics, true)) : status;
}

const char *bw_optimizer_name(const bw_model *model)
{
    const bwi_training *training = model ? model->training : NULL;
    return training && training->optimizer.row ? training->optimizer.row->name : NULL;
}

static void get_variable(void *object, void *values)
{
    const bwi_variable *variable = object;
    bwi_variable_read(variable, values);
}

static void set_variable(void *object, const void *values)
{
    bwi_variable *variable = object;
    bwi_variable_write(variable, values);
    variable->given = true;
}

void bwi_training_state(bw_model *model, bwi_state *state)
{
    for (int v = 0; v < model->graph.variable_count; v++) {
        bwi_variable *variable = model->graph.variables[v];
        bwi_state_value *value =
            bwi_state_add(state, BW_F32, variable->shape.ndim, variable->shape.extent, NULL, "variables/%s", variable->name);
        if (value) {
            value->object = variable;
            value->get = get_variable;
            value->set = set_variable;
        }
    }
    if (model->training) {
        bwi_optimizer_state(model->training, state);
    }
}
