/* compile: optimizer, loss and metrics by name; and what train keeps with a model. */
#include "train/train.h"

#include <string.h>

static void free_slots(bwi_training *t)
{
    if (t->optimizer.slots) {
        for (int k = 0; k < t->model->graph.variable_count * BWI_MAX_SLOTS; k++) {
            bwi_release(t->ctx, t->optimizer.slots[k]);
        }
        bwi_release(t->ctx, (void *)t->optimizer.slots);
        t->optimizer.slots = NULL;
    }
}

static void destroy(void *training)
{
    bwi_training *t = training;
    free_slots(t);
    bwi_release(t->ctx, t);
}

static bw_status read_optimizer(bw_context *ctx, bwi_optimizer *optimizer, const char *text)
{
    bwi_expression e;
    bw_status status = bwi_expression_parse(ctx, &e, "optimizer", text);
    if (status != BW_OK) {
        return status;
    }
    const bwi_optimizer_row *row = NULL;
    for (int i = 0; e.count == 1 && bwi_optimizer_rows[i]; i++) {
        if (bwi_term_is(&e.terms[0], bwi_optimizer_rows[i]->name)) {
            row = bwi_optimizer_rows[i];
        }
    }
    if (!row) {
        status = bwi_fail(ctx, BW_INVALID_ARGUMENT, "optimizer: there is no '%.60s'; there are sgd, adam", text);
    } else {
        *optimizer = (bwi_optimizer){.row = row};
        status = bwi_arguments_read(ctx, row->name, &e.terms[0], row->arguments, row->argument_count, optimizer->values);
    }
    bwi_expression_free(&e);
    return status;
}

static bw_status read_loss(bw_context *ctx, const bwi_loss_row **loss, const char *text)
{
    for (const bwi_loss_row *row = bwi_loss_rows; row->names; row++) {
        if (bwi_listed(row->names, text, strlen(text))) {
            *loss = row;
            return BW_OK;
        }
    }
    return bwi_fail(ctx, BW_INVALID_ARGUMENT, "loss: there is no '%.60s'; there are sparse_categorical_crossentropy, mean_squared_error",
                    text);
}

static bw_status read_metric(bwi_training *t, const char *name, size_t length)
{
    for (const bwi_metric_row *row = bwi_metric_rows; row->names; row++) {
        if (!bwi_listed(row->names, name, length)) {
            continue;
        }
        if (t->metric_count == BWI_MAX_METRICS) {
            return bwi_fail(t->ctx, BW_INVALID_ARGUMENT, "metrics: at most %d are possible", BWI_MAX_METRICS);
        }
        snprintf(t->metric_names[t->metric_count], sizeof t->metric_names[0], "%.*s", (int)length, name);
        t->metrics[t->metric_count++] = row;
        return BW_OK;
    }
    return bwi_fail(t->ctx, BW_INVALID_ARGUMENT, "metrics: there is no '%.*s'; there is accuracy", length > 60 ? 60 : (int)length, name);
}

static bw_status read_metrics(bwi_training *t, const char *text)
{
    t->metric_count = 0;
    while (*text) {
        size_t length = strcspn(text, ", ");
        bw_status status = length ? read_metric(t, text, length) : BW_OK;
        if (status != BW_OK) {
            return status;
        }
        text += length + strspn(text + length, ", ");
    }
    return BW_OK;
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
    if (read_optimizer(t->ctx, &t->optimizer, "adam") != BW_OK) {
        bwi_release(model->ctx, t);
        return NULL;
    }
    model->training = t;
    model->training_destroy = destroy;
    return t;
}

bw_status bw_compile(bw_model *model, const char *optimizer, const char *loss, const char *metrics)
{
    if (!model) {
        return BW_INVALID_ARGUMENT;
    }
    bw_status status = bwi_pending(model->ctx);
    if (status != BW_OK) {
        return status;
    }
    bwi_training *t = bwi_training_of(model);
    if (!t) {
        return BW_RESOURCE_EXHAUSTED;
    }
    bwi_training fresh = *t;
    fresh.loss = NULL;
    fresh.metric_count = -1;
    status = read_optimizer(t->ctx, &fresh.optimizer, optimizer ? optimizer : "adam");
    if (status == BW_OK && loss) {
        status = read_loss(t->ctx, &fresh.loss, loss);
    }
    if (status == BW_OK && metrics) {
        status = read_metrics(&fresh, metrics);
    }
    if (status == BW_OK) {
        free_slots(t);
        fresh.compiled = true;
        *t = fresh;
    }
    return status;
}

/* Slots are stored like their variable: read and written through the same packing. */
static void get_slot(void *object, void *values)
{
    const bwi_variable *variable = object;
    bwi_variable_read(variable, values);
}

static void set_variable(void *object, const void *values) { bwi_variable_write(object, values); }

void bwi_training_state(bw_model *model, bwi_state *state)
{
    for (int v = 0; v < model->graph.variable_count; v++) {
        bwi_variable *variable = model->graph.variables[v];
        bwi_state_value *value =
            bwi_state_add(state, BW_F32, variable->shape.rank, variable->shape.extent, NULL, "variables/%s", variable->name);
        if (value) {
            value->object = variable;
            value->get = get_slot;
            value->set = set_variable;
        }
    }
    bwi_training *t = model->training;
    if (!t) {
        return;
    }
    bwi_state_add(state, BW_I64, 0, NULL, &t->optimizer.iterations, "optimizer/iterations");
    for (int v = 0; t->optimizer.slots && v < model->graph.variable_count; v++) {
        for (int s = 0; model->graph.variables[v]->trainable && s < t->optimizer.slot_count; s++) {
            bwi_state_add(state, BW_F32, 1, &model->graph.variables[v]->count, t->optimizer.slots[v * BWI_MAX_SLOTS + s],
                          "optimizer/%s/%s", t->optimizer.row->slot_names[s], model->graph.variables[v]->name);
        }
    }
}
