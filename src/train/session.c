/*
 * A session: the model's graph with the ends that data gives it (targets, weights, loss, metrics), planned and running.
 * The model's own graph is never changed.
 */
#include "train/train.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- The model's nodes ---- */

/* The dataset's field for an input node: by name, or the only one of its role. -1: none. */
int bwi_session_field(const bw_dataset *dataset, const bwi_input_attributes *a)
{
    int fields = 0, last = -1;
    for (int f = 0; f < bwi_dataset_fields(dataset); f++) {
        const bwi_field *field = bwi_dataset_field(dataset, f);
        if ((int)field->role != a->role) {
            continue;
        }
        if (strcmp(field->name, a->name) == 0) {
            return f;
        }
        fields++;
        last = f;
    }
    return fields == 1 && (a->name[0] == '\0' || bwi_dataset_field(dataset, last)->name[0] == '\0') ? last : -1;
}

static const char *const roles[] = {"inputs", "targets", "sample weights"}, *const singular[] = {"input", "target",
                                                                                                 "sample weight"};

static bw_status bind_field(bw_context *ctx, const bw_dataset *dataset, bwi_input_attributes *a)
{
    a->field = bwi_session_field(dataset, a);
    if (a->field < 0) {
        return bwi_fail(ctx, BW_INVALID_ARGUMENT, "the data has no %s%s%s", roles[a->role], a->name[0] ? " named " : "", a->name);
    }
    const bwi_field *field = bwi_dataset_field(dataset, a->field);
    int64_t count = 1;
    for (int i = 0; i < field->ndim; i++) {
        count *= field->shape[i];
    }
    if (count != bwi_shape_count(&a->shape)) {
        char expected[160], found[160];
        return bwi_fail(ctx, BW_INVALID_ARGUMENT, "the model's %s%s%s is %s, the data's samples are %s", singular[a->role],
                        a->name[0] ? " " : "", a->name, bwi_format_shape(expected, a->shape.ndim, a->shape.extent),
                        bwi_format_shape(found, field->ndim, field->shape));
    }
    return BW_OK;
}

/* For predictions alone the data need not have targets: what needs them is not planned. */
static bw_status copy_node(bwi_session *s, const bw_dataset *dataset, const bw_node *node, bool predict)
{
    bw_context *ctx = s->graph.ctx;
    bwi_input_attributes input;
    const void *attributes = node->attributes;
    if (node->op->flags & BWI_OP_INPUT) {
        input = *(const bwi_input_attributes *)node->attributes;
        attributes = &input;
        bw_status status = predict && input.role ? BW_OK : bind_field(ctx, dataset, &input);
        if (status != BW_OK) {
            return status;
        }
    }
    bw_node **inputs = bwi_allocate(ctx, (size_t)node->inputs, sizeof(bw_node *));
    if (!inputs) {
        return BW_RESOURCE_EXHAUSTED;
    }
    for (int k = 0; k < node->inputs; k++) {
        inputs[k] = s->graph.nodes[node->input[k]->number];
    }
    bw_node *copy = bwi_graph_add(&s->graph, node->op, node->name, attributes, node->attribute_bytes, inputs, node->inputs,
                                  node->variable, node->variables);
    bwi_release(ctx, (void *)inputs);
    return copy ? BW_OK : bwi_pending(ctx);
}

static bw_status copy_graph(bwi_session *s, const bw_model *model, const bw_dataset *dataset, bool predict)
{
    const bwi_graph *from = &model->graph;
    s->graph = (bwi_graph){.ctx = model->ctx, .variables = from->variables, .variable_count = from->variable_count};
    for (int n = 0; n < from->count; n++) {
        bw_status status = copy_node(s, dataset, from->nodes[n], predict);
        if (status != BW_OK) {
            return status;
        }
    }
    for (int n = 0; n < from->count; n++) {
        const bw_node *mask = from->nodes[n]->mask;
        s->graph.nodes[n]->mask = mask ? s->graph.nodes[mask->number] : NULL;
    }
    s->output_count = model->output_count;
    for (int k = 0; k < s->output_count; k++) {
        s->outputs[k] = s->graph.nodes[model->outputs[k]->number];
        if (model->output_names[k][0]) {
            snprintf(s->outputs[k]->name, sizeof s->outputs[k]->name, "%s", model->output_names[k]);
        }
    }
    return BW_OK;
}

/* ---- Totals ---- */

static bw_status open_totals(bwi_session *s)
{
    size_t count = 0;
    for (int c = 0; c < s->column_count; c++) {
        count += (size_t)s->columns[c].node->op->sum_count(s->columns[c].node);
    }
    s->totals_block = bwi_allocate(s->training->ctx, s->variant_count ? 2 * count : count, sizeof(double));
    double *next = s->totals_block;
    for (int c = 0; next && c < s->column_count; c++) {
        s->columns[c].totals = next;
        s->columns[c].fed = s->variant_count ? next + count : NULL;
        next += s->columns[c].node->op->sum_count(s->columns[c].node);
    }
    return s->totals_block ? BW_OK : BW_RESOURCE_EXHAUSTED;
}

/* ---- The plan ---- */

size_t bwi_session_parameter_bytes(const bwi_session *s)
{
    size_t bytes = 0;
    for (int v = 0; v < s->graph.variable_count; v++) {
        bytes = bwi_size_add(bytes, bwi_size_multiply((size_t)s->graph.variables[v]->count, sizeof(float)));
    }
    return bytes;
}

static void add_programs(const bwi_session *s, const bwi_session_options *o, int numbers[3], bw_node *const *sums,
                         bw_node *const *losses, bw_node *const *outputs, bwi_program_request *programs, int *count)
{
    if (o->train) {
        numbers[BWI_PROGRAM_TRAIN] = *count;
        programs[(*count)++] = (bwi_program_request){sums, s->column_count, losses, s->loss_count};
    }
    if (o->evaluate) {
        numbers[BWI_PROGRAM_EVALUATE] = *count;
        programs[(*count)++] = (bwi_program_request){sums, s->column_count, NULL, 0};
    }
    if (o->predict) {
        numbers[BWI_PROGRAM_PREDICT] = *count;
        programs[(*count)++] = (bwi_program_request){outputs, s->output_count, NULL, 0};
    }
}

/* Where values may be spilled; a folder that was not asked for by name need not be fit for it. */
static bw_status spill_folder(bw_context *ctx, const char *asked, const char **folder)
{
    const char *set = getenv("TMPDIR");
    *folder = asked ? asked : set && *set ? set : "/tmp";
    bwi_disk disk = bwi_disk_of(*folder);
    if (asked && disk.error) {
        return bwi_fail(ctx, bwi_errno_status(disk.error), "spill: %s: %s", asked, bwi_errno_text(disk.error));
    }
    if (asked && disk.in_memory) {
        return bwi_fail(ctx, BW_INVALID_ARGUMENT, "spill: %s is a file system in memory", asked);
    }
    *folder = disk.error || disk.in_memory ? NULL : *folder;
    return BW_OK;
}

/* Samples that are made ahead may take a quarter of the budget. */
typedef struct made_ahead {
    const bw_dataset *dataset, *validation;
    int64_t batch;
    size_t room;
} made_ahead;

static size_t part_bytes(const made_ahead *a, const bw_dataset *dataset, int64_t count, const bwi_plan *plan)
{
    bwi_gather_schedule schedule = {
        .count = count, .tile = plan->tile, .lanes = plan->lanes, .workers = plan->workers, .budget = a->room};
    for (int p = 0; p < plan->program_count; p++) {
        schedule.again |= plan->programs[p].phase_count > 1;
    }
    return dataset ? bwi_dataset_bytes(dataset, &schedule) : 0;
}

static size_t data_bytes(const void *user, const bwi_plan *plan)
{
    const made_ahead *a = user;
    int64_t validation = a->validation ? bw_dataset_count(a->validation) : 0;
    return bwi_size_add(part_bytes(a, a->dataset, a->batch, plan), part_bytes(a, a->validation, validation, plan));
}

/* 0: what the system gives. */
static size_t find_budget(const bw_context *ctx, const bwi_session_options *o)
{
    return o->memory ? o->memory : ctx->memory;
}

static made_ahead find_data(const bwi_session *s, const bw_dataset *dataset, const bwi_session_options *o)
{
    int64_t batch = o->train ? o->batch > 0 ? o->batch : bwi_dataset_largest_batch(dataset) : bw_dataset_count(dataset);
    made_ahead a = {.dataset = dataset, .validation = o->validation, .batch = batch};
    bwi_gather_schedule one = {.count = 1, .tile = 1, .lanes = 1, .workers = 1};
    if (bwi_dataset_bytes(dataset, &one) > 0 || (a.validation && bwi_dataset_bytes(a.validation, &one) > 0)) {
        size_t budget = find_budget(s->training->ctx, o);
        a.room = (budget ? budget : bwi_memory_available(s->training->ctx)) / 4;
        a.room = a.room > 0 ? a.room : 1;
    }
    return a;
}

static bw_status make_plan(bwi_session *s, const made_ahead *data, const bwi_session_options *o, bwi_plan **plan)
{
    bw_context *ctx = s->training->ctx;
    bw_node *sums[BWI_MAX_COLUMNS];
    const char *folder = NULL;
    bw_status status = o->train ? spill_folder(ctx, o->spill, &folder) : BW_OK;
    if (status != BW_OK) {
        return status;
    }
    for (int c = 0; c < s->column_count; c++) {
        sums[c] = s->columns[c].node;
    }
    bwi_program_request programs[3 * BWI_MOST_LENGTHS];
    int count = 0;
    s->program[0] = s->program[1] = s->program[2] = -1;
    for (int k = 0; k < s->variant_count; k++) {
        bwi_variant *v = &s->variants[k];
        add_programs(s, o, v->program, v->columns, v->losses, v->outputs, programs, &count);
    }
    if (!s->variant_count) {
        add_programs(s, o, s->program, sums, s->losses, s->outputs, programs, &count);
    }
    bwi_plan_request request = {.graph = &s->graph,
                                .own_nodes = s->own_nodes,
                                .programs = programs,
                                .program_count = count,
                                .batch = o->train ? o->batch : 0,
                                .window = o->train ? o->batch : 0,
                                .tile = o->tile,
                                .lanes = o->lanes,
                                .memory = find_budget(ctx, o),
                                .spill = folder,
                                .bookkeeping = bwi_exec_bookkeeping,
                                .data = data_bytes,
                                .data_user = data,
                                .ranks = ctx->ranks ? bwi_rank_of(ctx)->count(ctx->ranks) : 1};
    request.outside_bytes = bwi_size_add(bwi_session_parameter_bytes(s), o->train ? bwi_optimizer_bytes(s->training) : 0);
    size_t history = o->epochs ? bwi_session_history_bytes(s, o->evaluate, o->epochs) : 0;
    size_t others = bwi_size_add(history, o->copies ? bwi_session_parameter_bytes(s) : 0);
    request.outside_bytes = bwi_size_add(request.outside_bytes, others);
    request.held_bytes = bwi_held_bytes(s->training->model);
    return bwi_plan_make(ctx, plan, &request);
}

/* What is as large as the model: variables that have no values yet, the optimizer's slots. */
static bw_status open_variables(const bwi_session *s, const bwi_session_options *options)
{
    bw_model *model = s->training->model;
    bw_status status = bwi_model_built(model) ? BW_OK : bw_build(model, 0, NULL, options->seed);
    return status == BW_OK && options->train ? bwi_optimizer_open_slots(s->training) : status;
}

/* The plan comes first: a budget that is too small is refused before anything large is taken. */
static bw_status open_exec(bwi_session *s, const bw_dataset *dataset, const bwi_session_options *options)
{
    made_ahead data = find_data(s, dataset, options);
    bwi_plan *plan = NULL;
    bw_status status = make_plan(s, &data, options, &plan);
    s->compiles = s->training->compiles;
    if (status == BW_OK) {
        status = open_variables(s, options);
        if (status != BW_OK) {
            bwi_plan_free(plan);
        }
    }
    if (status == BW_OK) {
        status = bwi_exec_open(s->training->ctx, &s->exec, plan);
    }
    if (status == BW_OK) {
        bwi_exec_set_data_budget(s->exec, data.room);
        bwi_exec_set_seed(s->exec, options->seed, (uint64_t)s->training->optimizer.iterations);
    }
    return status;
}

/* Nodes and sizes of a model that is not built yet; `connected`: they were made here. */
static bw_status connect_model(bw_model *model, const bw_dataset *dataset, bool *connected)
{
    int x = bwi_dataset_find(dataset, BWI_ROLE_INPUT, 0);
    *connected = false;
    if (bwi_model_built(model)) {
        return BW_OK;
    }
    if (x < 0) {
        return bwi_fail(model->ctx, BW_INVALID_ARGUMENT, "the data has no inputs (x)");
    }
    const bwi_field *field = bwi_dataset_field(dataset, x);
    return bwi_model_sketch(model, field->ndim, field->shape, connected);
}

/* The graph with its ends, for each length. */
static bw_status make_graph(bwi_session *s, bw_model *model, bw_dataset *dataset, const bwi_session_options *options)
{
    bw_status status = copy_graph(s, model, dataset, !options->train && !options->evaluate);
    s->rates = options->rates;
    for (int v = 0; status == BW_OK && v < s->graph.variable_count; v++) {
        s->penalized |= s->graph.variables[v]->l1 > 0 || s->graph.variables[v]->l2 > 0;
    }
    if (status == BW_OK && (options->train || options->evaluate)) {
        status = bwi_session_add_heads(s, dataset, options);
    }
    return status == BW_OK ? bwi_session_add_lengths(s, dataset, options) : status;
}

bw_status bwi_session_plan(bwi_session *s, bw_model *model, bw_dataset *dataset, const bwi_session_options *options,
                           bwi_plan **plan)
{
    memset(s, 0, sizeof *s);
    s->graph.ctx = model->ctx;
    s->training = bwi_training_of(model);
    bw_status status = s->training ? make_graph(s, model, dataset, options) : BW_RESOURCE_EXHAUSTED;
    if (status == BW_OK) {
        made_ahead data = find_data(s, dataset, options);
        status = make_plan(s, &data, options, plan);
    }
    if (status != BW_OK) {
        bwi_session_close(s);
    }
    return status;
}

bw_status bwi_session_open(bwi_session *s, bw_model *model, bw_dataset *dataset, const bwi_session_options *options)
{
    memset(s, 0, sizeof *s);
    s->graph.ctx = model->ctx;
    s->training = bwi_training_of(model);
    bool connected = false, declared = model->input_shape.ndim >= 0;
    bw_status status = s->training ? connect_model(model, dataset, &connected) : BW_RESOURCE_EXHAUSTED;
    if (status == BW_OK) {
        status = make_graph(s, model, dataset, options);
    }
    if (status == BW_OK) {
        status = open_totals(s);
    }
    if (status == BW_OK) {
        status = open_exec(s, dataset, options);
    }
    if (status != BW_OK) {
        bwi_session_close(s);
        if (connected && !bwi_model_built(model)) {
            bwi_model_disconnect(model, declared);
        }
    }
    return status;
}

void bwi_session_close(bwi_session *s)
{
    bwi_exec_close(s->exec);
    s->exec = NULL;
    bwi_release(s->graph.ctx, s->totals_block);
    s->totals_block = NULL;
    bwi_session_free_lengths(s);
    s->graph.variables = NULL; /* the model's */
    s->graph.variable_count = 0;
    bwi_graph_free(&s->graph);
}

/* ---- Running ---- */

/* Of the regularizers, with the variables as they are: before the update. */
static double penalty(const bwi_session *s)
{
    const bwi_kernels *kernels = bwi_exec_plan(s->exec)->kernels;
    double sum = 0;
    for (int v = 0; v < s->graph.variable_count; v++) {
        const bwi_variable *variable = s->graph.variables[v];
        if (!variable->trainable) {
            continue;
        }
        sum += variable->l1 > 0 ? (double)variable->l1 * kernels->optimize->sum_of_absolutes(variable->count, variable->data) : 0;
        sum += variable->l2 > 0 ? (double)variable->l2 * kernels->sum_of_squares(variable->count, variable->data) : 0;
    }
    return sum;
}

static const double *fed_sums(const bwi_session *s, const bwi_logged *column)
{
    return column->fed ? column->fed : bwi_exec_sums(s->exec, column->node);
}

bw_status bwi_session_feed(bwi_session *s, int which, const bwi_piece *piece, float *const *predictions)
{
    bw_status status = s->variant_count ? bwi_session_feed_lengths(s, which, piece, predictions)
                                        : bwi_exec_feed(s->exec, s->program[which], piece, predictions);
    s->fed = (double)piece->count;
    s->penalty = s->penalized && s->column_count ? penalty(s) : 0;
    if (which == BWI_PROGRAM_TRAIN) {
        s->window_count = status == BW_OK ? s->window_count + fed_sums(s, &s->columns[0])[1] : 0;
    }
    return status;
}

void bwi_session_clear(bwi_session *s)
{
    bwi_exec_clear(s->exec);
    s->window_count = 0;
}

void bwi_session_reset(bwi_session *s)
{
    s->penalty_total = s->fed_total = 0;
    for (int c = 0; c < s->column_count; c++) {
        memset(s->columns[c].totals, 0, (size_t)s->columns[c].node->op->sum_count(s->columns[c].node) * sizeof(double));
    }
}

/* An epoch's loss is the mean of its feeds' by their samples; metrics add up over all of them. */
void bwi_session_count(bwi_session *s)
{
    s->penalty_total += s->penalty * s->fed;
    s->fed_total += s->fed;
    for (int c = 0; c < s->column_count; c++) {
        const bwi_logged *column = &s->columns[c];
        const double *sums = fed_sums(s, column);
        if (column->loss) {
            column->totals[0] += column->value(column->node, sums) * s->fed;
            column->totals[1] += s->fed;
            continue;
        }
        for (int64_t i = 0; i < column->node->op->sum_count(column->node); i++) {
            column->totals[i] += sums[i];
        }
    }
}

static double column_value(const bwi_logged *column)
{
    return column->value(column->node, column->totals);
}

/* Values are the total loss, then the columns; with one loss its column is the total. */
static int skipped(const bwi_session *s)
{
    return s->loss_count > 1 ? 0 : s->loss_count;
}

int bwi_session_values(const bwi_session *s)
{
    return 1 + s->column_count - skipped(s);
}

int bwi_session_columns(const bwi_session *s, bool validates)
{
    return bwi_session_values(s) * (validates ? 2 : 1) + s->rates;
}

size_t bwi_session_history_bytes(const bwi_session *s, bool validates, int epochs)
{
    int width = bwi_session_columns(s, validates);
    return bwi_size_add(bwi_history_bytes(epochs, width), bwi_history_bytes(1, width));
}

const char *bwi_session_value_name(const bwi_session *s, int index)
{
    return index ? s->columns[index - 1 + skipped(s)].name : "loss";
}

double bwi_session_value(const bwi_session *s, int index)
{
    if (index) {
        return column_value(&s->columns[index - 1 + skipped(s)]);
    }
    double loss = s->fed_total > 0 ? s->penalty_total / s->fed_total : 0;
    for (int c = 0; c < s->column_count; c++) {
        loss += s->columns[c].loss ? column_value(&s->columns[c]) : 0;
    }
    return loss;
}
