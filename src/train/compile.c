/* compile: optimizer, loss and metrics by name; and what train keeps with a model. */
#include "train/train.h"

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

/* The first of each row's names: for messages. Losses are metrics too. */
static bw_status refuse(bw_context *ctx, const char *what, const bwi_term *term, bool metrics)
{
    bwi_text known = {.ctx = ctx};
    for (const bwi_metric_row *row = bwi_metric_rows; metrics && row->names; row++) {
        bwi_text_add(&known, "%s%.*s", known.length ? ", " : "", (int)strcspn(row->names, " "), row->names);
    }
    for (const bwi_loss_row *row = bwi_loss_rows; row->names; row++) {
        bwi_text_add(&known, "%s%.*s", known.length ? ", " : "", (int)strcspn(row->names, " "), row->names);
    }
    bw_status status = bwi_fail(ctx, BW_INVALID_ARGUMENT, "%s: there is no '%.*s'; there are %s", what, term->length, term->text,
                                known.bytes ? known.bytes : "");
    bwi_text_free(&known);
    return status;
}

static void copy_label(char *to, size_t size, const bwi_term *term)
{
    snprintf(to, size, "%.*s", term->label ? term->label_length : 0, term->label ? term->label : "");
}

static bw_status read_loss(bwi_training *t, const bwi_term *term)
{
    const bwi_loss_row *row = bwi_loss_row_find(term->text, (size_t)term->length);
    if (!row) {
        return refuse(t->ctx, "loss", term, false);
    }
    if (t->loss_count == BWI_MAX_HEADS) {
        return bwi_fail(t->ctx, BW_INVALID_ARGUMENT, "loss: at most %d are possible", BWI_MAX_HEADS);
    }
    bwi_chosen_loss *loss = &t->losses[t->loss_count++];
    loss->row = row;
    copy_label(loss->output, sizeof loss->output, term);
    return bwi_arguments_read(t->ctx, "loss", term, row->arguments, row->argument_count, loss->values);
}

/* Every metric takes these besides its own options. */
enum { WEIGHTED, NAME, COMMON_OPTIONS };

static const bwi_argument common_arguments[COMMON_OPTIONS] = {
    [WEIGHTED] = {"weighted", NULL, BWI_BOOL, "false", 0, 0, NULL}, [NAME] = {"name", NULL, BWI_TEXT, "", 0, 0, NULL}};

static bw_status read_metric_options(bwi_training *t, bwi_chosen_metric *metric, const bwi_term *term)
{
    int own = metric->row ? metric->row->argument_count : metric->loss->argument_count;
    const bwi_argument *given = metric->row ? metric->row->arguments : metric->loss->arguments;
    bwi_argument arguments[BWI_MAX_OPTIONS + COMMON_OPTIONS];
    bwi_argument_value values[BWI_MAX_OPTIONS + COMMON_OPTIONS];
    for (int k = 0; k < own; k++) {
        arguments[k] = given[k];
    }
    memcpy(arguments + own, common_arguments, sizeof common_arguments);
    bw_status status = bwi_arguments_read(t->ctx, "metrics", term, arguments, own + COMMON_OPTIONS, values);
    if (status != BW_OK) {
        return status;
    }
    memcpy(metric->values, values, (size_t)own * sizeof *values);
    metric->weighted = values[own + WEIGHTED].flag;
    if (values[own + NAME].given) {
        snprintf(metric->name, sizeof metric->name, "%.*s", (int)sizeof metric->name - 1, values[own + NAME].text);
    }
    return BW_OK;
}

static bw_status read_metric(bwi_training *t, const bwi_term *term)
{
    const bwi_metric_row *row = bwi_metric_rows;
    while (row->names && !bwi_listed(row->names, term->text, (size_t)term->length)) {
        row++;
    }
    const bwi_loss_row *loss = row->names ? NULL : bwi_loss_row_find(term->text, (size_t)term->length);
    if (!row->names && !loss) {
        return refuse(t->ctx, "metrics", term, true);
    }
    if (t->metric_count == BWI_MAX_METRICS) {
        return bwi_fail(t->ctx, BW_INVALID_ARGUMENT, "metrics: at most %d are possible", BWI_MAX_METRICS);
    }
    bwi_chosen_metric *metric = &t->metrics[t->metric_count++];
    *metric = (bwi_chosen_metric){.row = row->names ? row : NULL, .loss = loss};
    copy_label(metric->output, sizeof metric->output, term);
    snprintf(metric->name, sizeof metric->name, "%.*s", term->length, term->text);
    return read_metric_options(t, metric, term);
}

/* Terms separated by commas or blanks. */
static bw_status read_list(bwi_training *t, const char *what, const char *text, bw_status (*take)(bwi_training *, const bwi_term *))
{
    char *list = bwi_copy_text(t->ctx, text);
    if (!list) {
        return BW_RESOURCE_EXHAUSTED;
    }
    int depth = 0;
    for (char *at = list; *at; at++) {
        depth += (*at == '(') - (*at == ')');
        *at = *at == ',' && depth <= 0 ? ' ' : *at;
    }
    bwi_expression e;
    bw_status status = bwi_expression_parse(t->ctx, &e, what, list);
    bwi_release(t->ctx, list);
    for (int i = 0; status == BW_OK && i < e.count; i++) {
        status = take(t, &e.terms[i]);
    }
    bwi_expression_free(&e);
    return status;
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

/* What is NULL becomes the default, or stays as it is if `keep`. */
static bw_status compile(bw_model *model, const char *optimizer, const char *loss, const char *metrics, bool keep)
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
    if (loss || !keep) {
        fresh.loss_count = 0;
        memset((void *)fresh.found, 0, sizeof fresh.found);
    }
    if (metrics || !keep) {
        fresh.metric_count = metrics ? 0 : -1;
    }
    bool replaced = optimizer || !keep;
    if (replaced) {
        status = bwi_optimizer_read(t->ctx, &fresh.optimizer, optimizer ? optimizer : "adam");
    }
    if (status == BW_OK && loss) {
        status = read_list(&fresh, "loss", loss, read_loss);
    }
    if (status == BW_OK && metrics) {
        status = read_list(&fresh, "metrics", metrics, read_metric);
    }
    if (status == BW_OK) {
        if (replaced) {
            bwi_optimizer_free_slots(t);
        }
        fresh.compiled = true;
        fresh.compiles++;
        *t = fresh;
    }
    return status;
}

bw_status bw_compile(bw_model *model, const char *optimizer, const char *loss, const char *metrics)
{
    return compile(model, optimizer, loss, metrics, false);
}

bw_status bw_recompile(bw_model *model, const char *optimizer, const char *loss, const char *metrics)
{
    return compile(model, optimizer, loss, metrics, true);
}

static void get_variable(void *object, void *values)
{
    const bwi_variable *variable = object;
    bwi_variable_read(variable, values);
}

static void set_variable(void *object, const void *values)
{
    bwi_variable_write(object, values);
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
