/*
 * A session: the model's graph with the ends that data gives it (targets, weights, loss, metrics), planned and running.
 * The model's own graph is never changed.
 */
#include "train/train.h"

#include <math.h>
#include <string.h>

/* ---- The model's nodes ---- */

/* The dataset's field for an input node: by name, or the only one of its role. -1: none. */
static int field_of(const bw_dataset *dataset, const bwi_input_attributes *a)
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
    a->field = field_of(dataset, a);
    if (a->field < 0) {
        return bwi_fail(ctx, BW_INVALID_ARGUMENT, "the data has no %s%s%s", roles[a->role], a->name[0] ? " named " : "", a->name);
    }
    const bwi_field *field = bwi_dataset_field(dataset, a->field);
    int64_t count = 1;
    for (int i = 0; i < field->rank; i++) {
        count *= field->shape[i];
    }
    if (count != bwi_shape_count(&a->shape)) {
        char expected[160], found[160];
        return bwi_fail(ctx, BW_INVALID_ARGUMENT, "the model's %s%s%s is %s, the data's samples are %s", singular[a->role],
                        a->name[0] ? " " : "", a->name, bwi_format_shape(expected, a->shape.rank, a->shape.extent),
                        bwi_format_shape(found, field->rank, field->shape));
    }
    return BW_OK;
}

static bw_status copy_node(bwi_session *s, const bw_dataset *dataset, const bw_node *node)
{
    bw_context *ctx = s->graph.ctx;
    bwi_input_attributes input;
    const void *attributes = node->attributes;
    if (node->op->flags & BWI_OP_INPUT) {
        input = *(const bwi_input_attributes *)node->attributes;
        attributes = &input;
        bw_status status = bind_field(ctx, dataset, &input);
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

static bw_status copy_graph(bwi_session *s, const bw_model *model, const bw_dataset *dataset)
{
    const bwi_graph *from = &model->graph;
    s->graph = (bwi_graph){.ctx = model->ctx, .variables = from->variables, .variable_count = from->variable_count};
    for (int n = 0; n < from->count; n++) {
        bw_status status = copy_node(s, dataset, from->nodes[n]);
        if (status != BW_OK) {
            return status;
        }
    }
    s->output_count = model->output_count;
    for (int k = 0; k < s->output_count; k++) {
        s->outputs[k] = s->graph.nodes[model->outputs[k]->number];
    }
    return BW_OK;
}

/* ---- Targets, losses, metrics ---- */

/* A target or weight for an output; NULL without a failure if the data has none. */
static bw_node *add_field(bwi_session *s, const bw_dataset *dataset, int role, const char *output, bw_dtype dtype)
{
    bwi_input_attributes a = {.dtype = dtype, .role = role};
    snprintf(a.name, sizeof a.name, "%s", s->output_count > 1 ? output : "");
    a.field = field_of(dataset, &a);
    if (a.field < 0) {
        return NULL;
    }
    const bwi_field *f = bwi_dataset_field(dataset, a.field);
    a.shape.rank = f->rank;
    memcpy(a.shape.extent, f->shape, sizeof a.shape.extent);
    return bwi_graph_add(&s->graph, &bwi_op_input, role == 1 ? "target" : "sample weight", &a, sizeof a, NULL, 0, NULL, 0);
}

static const bwi_chosen_loss *find_loss(const bwi_training *t, const bwi_session *s, int output)
{
    for (int k = 0; k < t->loss_count; k++) {
        if (t->losses[k].output[0] && strcmp(t->losses[k].output, s->outputs[output]->name) == 0) {
            return &t->losses[k];
        }
    }
    if (t->loss_count == 1 && !t->losses[0].output[0]) {
        return &t->losses[0];
    }
    return output < t->loss_count && !t->losses[output].output[0] ? &t->losses[output] : NULL;
}

/* Keras's choice for the last layer and the targets, said aloud. */
static const bwi_loss_row *choose_loss(bwi_session *s, const bw_dataset *dataset, int output)
{
    bw_context *ctx = s->training->ctx;
    bool classes = bwi_logits_of(s->outputs[output]) != NULL;
    bwi_input_attributes a = {.role = 1};
    snprintf(a.name, sizeof a.name, "%s", s->output_count > 1 ? s->outputs[output]->name : "");
    int field = field_of(dataset, &a);
    int64_t count = 1;
    for (int i = 0; field >= 0 && i < bwi_dataset_field(dataset, field)->rank; i++) {
        count *= bwi_dataset_field(dataset, field)->shape[i];
    }
    bool one_hot = classes && count > 1 && count == bwi_shape_count(&s->outputs[output]->shape);
    const char *name = one_hot ? "categorical_crossentropy" : classes ? "sparse_categorical_crossentropy" : "mean_squared_error";
    for (const bwi_loss_row *row = bwi_loss_rows; row->names; row++) {
        if (bwi_listed(row->names, name, strlen(name))) {
            bwi_log(ctx, BW_LOG_INFO, "loss: %s, as the last layer is %s", name, classes ? "a softmax" : "no softmax");
            return row;
        }
    }
    bwi_fail(ctx, BW_UNIMPLEMENTED, "loss: %s is not there", name);
    return NULL;
}

static bwi_logged *add_column(bwi_session *s, bw_node *node, bool loss, const char *output, const char *name)
{
    bwi_logged *column = &s->columns[s->column_count++];
    *column = (bwi_logged){.node = node, .loss = loss};
    if (s->output_count > 1) {
        snprintf(column->name, sizeof column->name, "%.30s_%.32s", output, name);
    } else {
        snprintf(column->name, sizeof column->name, "%s", name);
    }
    return column;
}

static bw_status add_metric(bwi_session *s, const bwi_ends *ends, const bwi_chosen_metric *metric)
{
    bw_node *node = metric->row->build(ends, metric->values);
    if (!node) {
        return bwi_pending(s->training->ctx);
    }
    add_column(s, node, false, ends->prediction->name, metric->name)->value = metric->row->value;
    return BW_OK;
}

static bw_status add_metrics(bwi_session *s, const bwi_ends *ends)
{
    const bwi_training *t = s->training;
    if (t->metric_count < 0 && ends->target->dtype == BW_I32) {
        const bwi_chosen_metric accuracy = {.row = &bwi_metric_rows[0], .name = "accuracy"};
        return add_metric(s, ends, &accuracy);
    }
    for (int k = 0; k < t->metric_count; k++) {
        if (!t->metrics[k].output[0] || strcmp(t->metrics[k].output, ends->prediction->name) == 0) {
            bw_status status = add_metric(s, ends, &t->metrics[k]);
            if (status != BW_OK) {
                return status;
            }
        }
    }
    return BW_OK;
}

static bw_status add_loss(bwi_session *s, const bw_dataset *dataset, int output, bwi_ends *ends)
{
    bw_context *ctx = s->training->ctx;
    const char *name = s->outputs[output]->name;
    static const bwi_argument_value none[BWI_MAX_OPTIONS];
    const bwi_chosen_loss *chosen = find_loss(s->training, s, output);
    const bwi_loss_row *row = chosen ? chosen->row : choose_loss(s, dataset, output);
    if (!row) {
        return BW_UNIMPLEMENTED;
    }
    ends->target = add_field(s, dataset, 1, name, row->target);
    if (!ends->target) {
        bw_status failed = bwi_pending(ctx);
        return failed != BW_OK ? failed : bwi_fail(ctx, BW_INVALID_ARGUMENT, "the data has no targets (y) for %s", name);
    }
    ends->weight = add_field(s, dataset, 2, name, BW_F32);
    bw_status status = ends->weight ? BW_OK : bwi_pending(ctx);
    if (status != BW_OK) {
        return status;
    }
    bw_node *loss = row->build(ends, chosen ? chosen->values : none);
    bw_node *mean = loss ? bwi_graph_add(&s->graph, &bwi_op_mean, "loss", NULL, 0, &loss, 1, NULL, 0) : NULL;
    if (!mean) {
        return bwi_pending(ctx);
    }
    s->losses[s->loss_count++] = loss;
    add_column(s, mean, true, name, "loss");
    return BW_OK;
}

static bool has_output(const bwi_session *s, const char *name)
{
    for (int k = 0; name[0] && k < s->output_count; k++) {
        if (strcmp(s->outputs[k]->name, name) == 0) {
            return true;
        }
    }
    return !name[0];
}

/* Losses and metrics are for outputs that the model has: nothing is left out silently. */
static bw_status check_outputs(const bwi_session *s)
{
    const bwi_training *t = s->training;
    int unnamed = 0;
    for (int k = 0; k < t->loss_count; k++) {
        unnamed += !t->losses[k].output[0];
        if (!has_output(s, t->losses[k].output)) {
            return bwi_fail(t->ctx, BW_INVALID_ARGUMENT, "loss: the model has no output '%s'", t->losses[k].output);
        }
    }
    if (unnamed > 1 && unnamed != s->output_count) {
        return bwi_fail(t->ctx, BW_INVALID_ARGUMENT, "loss: expected one for each of the model's %d outputs, got %d",
                        s->output_count, unnamed);
    }
    for (int k = 0; k < t->metric_count; k++) {
        if (!has_output(s, t->metrics[k].output)) {
            return bwi_fail(t->ctx, BW_INVALID_ARGUMENT, "metrics: the model has no output '%s'", t->metrics[k].output);
        }
    }
    return BW_OK;
}

static bw_status add_ends(bwi_session *s, const bw_dataset *dataset)
{
    bwi_ends ends[BWI_MAX_ENDS];
    bw_status status = check_outputs(s);
    for (int k = 0; k < s->output_count && status == BW_OK; k++) {
        ends[k] = (bwi_ends){.graph = &s->graph, .prediction = s->outputs[k]};
        status = add_loss(s, dataset, k, &ends[k]);
    }
    for (int k = 0; k < s->output_count && status == BW_OK; k++) {
        status = add_metrics(s, &ends[k]);
    }
    return status;
}

static bw_status open_totals(bwi_session *s)
{
    size_t count = 0;
    for (int c = 0; c < s->column_count; c++) {
        count += (size_t)s->columns[c].node->op->sum_count(s->columns[c].node);
    }
    s->totals_block = bwi_allocate(s->training->ctx, count, sizeof(double));
    double *next = s->totals_block;
    for (int c = 0; next && c < s->column_count; c++) {
        s->columns[c].totals = next;
        next += s->columns[c].node->op->sum_count(s->columns[c].node);
    }
    return s->totals_block ? BW_OK : BW_RESOURCE_EXHAUSTED;
}

/* ---- The plan ---- */

static size_t parameter_bytes(const bw_model *model)
{
    size_t bytes = 0;
    for (int v = 0; v < model->graph.variable_count; v++) {
        bytes = bwi_size_add(bytes, bwi_size_multiply((size_t)model->graph.variables[v]->count, sizeof(float)));
    }
    return bytes;
}

static bw_status make_plan(bwi_session *s, const bwi_session_options *o, bwi_plan **plan)
{
    bw_context *ctx = s->training->ctx;
    bw_node *sums[BWI_MAX_COLUMNS];
    for (int c = 0; c < s->column_count; c++) {
        sums[c] = s->columns[c].node;
    }
    bwi_program_request programs[3];
    int count = 0;
    s->program[0] = s->program[1] = s->program[2] = -1;
    if (o->train) {
        s->program[BWI_PROGRAM_TRAIN] = count;
        programs[count++] = (bwi_program_request){sums, s->column_count, s->losses, s->loss_count};
    }
    if (o->evaluate) {
        s->program[BWI_PROGRAM_EVALUATE] = count;
        programs[count++] = (bwi_program_request){sums, s->column_count, NULL, 0};
    }
    if (o->predict) {
        s->program[BWI_PROGRAM_PREDICT] = count;
        programs[count++] = (bwi_program_request){s->outputs, 1, NULL, 0};
    }
    bwi_plan_request request = {.graph = &s->graph,
                                .programs = programs,
                                .program_count = count,
                                .batch = o->train ? o->batch : 0,
                                .tile = o->tile,
                                .lanes = o->lanes,
                                .memory = o->memory,
                                .ranks = ctx->ranks ? bwi_rank_of(ctx)->count(ctx->ranks) : 1};
    request.outside_bytes = bwi_size_add(parameter_bytes(s->training->model), o->train ? bwi_optimizer_bytes(s->training) : 0);
    return bwi_plan_make(ctx, plan, &request);
}

static bw_status open_exec(bwi_session *s, const bwi_session_options *options)
{
    bwi_plan *plan = NULL;
    bw_status status = options->train ? bwi_optimizer_open_slots(s->training) : BW_OK;
    if (status == BW_OK) {
        status = make_plan(s, options, &plan);
    }
    if (status == BW_OK) {
        s->training->optimizer.kernels = plan->kernels;
        status = bwi_exec_open(s->training->ctx, &s->exec, plan);
    }
    if (status == BW_OK) {
        bwi_exec_set_seed(s->exec, options->seed, (uint64_t)s->training->optimizer.iterations);
    }
    return status;
}

static bw_status build_model(bw_model *model, const bw_dataset *dataset, uint64_t seed)
{
    int x = bwi_dataset_find(dataset, BWI_ROLE_INPUT, 0);
    const bwi_field *field = bwi_dataset_field(dataset, x);
    return bwi_model_built(model) ? BW_OK : bw_build(model, field->rank, field->shape, seed);
}

bw_status bwi_session_open(bwi_session *s, bw_model *model, bw_dataset *dataset, const bwi_session_options *options)
{
    memset(s, 0, sizeof *s);
    s->graph.ctx = model->ctx;
    s->training = bwi_training_of(model);
    bw_status status = s->training ? build_model(model, dataset, options->seed) : BW_RESOURCE_EXHAUSTED;
    if (status == BW_OK) {
        status = copy_graph(s, model, dataset);
    }
    if (status == BW_OK && (options->train || options->evaluate)) {
        status = add_ends(s, dataset);
    }
    if (status == BW_OK) {
        status = open_totals(s);
    }
    if (status == BW_OK) {
        status = open_exec(s, options);
    }
    if (status != BW_OK) {
        bwi_session_close(s);
    }
    return status;
}

void bwi_session_close(bwi_session *s)
{
    bwi_exec_close(s->exec);
    s->exec = NULL;
    bwi_release(s->graph.ctx, s->totals_block);
    s->totals_block = NULL;
    s->graph.variables = NULL; /* the model's */
    s->graph.variable_count = 0;
    bwi_graph_free(&s->graph);
}

/* ---- Running ---- */

bw_status bwi_session_feed(bwi_session *s, int which, const bwi_piece *piece, float *predictions)
{
    bw_status status = bwi_exec_feed(s->exec, s->program[which], piece, predictions);
    if (which == BWI_PROGRAM_TRAIN) {
        s->window_count = status == BW_OK ? s->window_count + bwi_exec_sums(s->exec, s->columns[0].node)[1] : 0;
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
    for (int c = 0; c < s->column_count; c++) {
        memset(s->columns[c].totals, 0, (size_t)s->columns[c].node->op->sum_count(s->columns[c].node) * sizeof(double));
    }
}

void bwi_session_count(bwi_session *s)
{
    for (int c = 0; c < s->column_count; c++) {
        const bwi_logged *column = &s->columns[c];
        const double *sums = bwi_exec_sums(s->exec, column->node);
        for (int64_t i = 0; i < column->node->op->sum_count(column->node); i++) {
            column->totals[i] += sums[i];
        }
    }
}

static double column_value(const bwi_logged *column)
{
    return column->value ? column->value(column->node, column->totals) : column->totals[0] / column->totals[1];
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

const char *bwi_session_value_name(const bwi_session *s, int index)
{
    return index ? s->columns[index - 1 + skipped(s)].name : "loss";
}

double bwi_session_value(const bwi_session *s, int index)
{
    if (index) {
        return column_value(&s->columns[index - 1 + skipped(s)]);
    }
    double loss = 0;
    for (int c = 0; c < s->column_count; c++) {
        loss += s->columns[c].loss ? column_value(&s->columns[c]) : 0;
    }
    return loss;
}

static void update_part(void *user, const bwi_variable *variable, int64_t first, int64_t count, const float *gradient)
{
    const bwi_optimizer *o = user;
    float *slots[BWI_MAX_SLOTS];
    for (int k = 0; k < o->slot_count; k++) {
        slots[k] = o->slots[variable->index * BWI_MAX_SLOTS + k] + first;
    }
    o->row->update(o, count, gradient, slots, variable->data + first);
}

bw_status bwi_session_apply(bwi_session *s)
{
    bwi_optimizer *o = &s->training->optimizer;
    double squared_norm, count = s->window_count;
    s->window_count = 0;
    bw_status status = bwi_exec_reduce(s->exec, &squared_norm);
    if (status != BW_OK) {
        return status;
    }
    o->rate = o->values[0].number;
    o->scale = (float)(1 / count);
    bwi_exec_update(s->exec, update_part, o);
    o->iterations++;
    return BW_OK;
}
