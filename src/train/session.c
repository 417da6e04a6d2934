/*
 * A session: the model's graph with the ends that data gives it (targets, weights, loss, metrics), planned and running.
 * The model's own graph is never changed.
 */
#include "train/train.h"

#include <math.h>
#include <string.h>

static bw_status copy_graph(bwi_session *s, const bw_model *model, bw_node **output)
{
    bw_context *ctx = model->ctx;
    const bwi_graph *from = &model->graph;
    s->graph = (bwi_graph){.ctx = ctx, .variables = from->variables, .variable_count = from->variable_count};
    for (int n = 0; n < from->count; n++) {
        const bw_node *node = from->nodes[n];
        bw_node **inputs = bwi_allocate(ctx, (size_t)node->inputs, sizeof(bw_node *));
        if (!inputs) {
            return BW_RESOURCE_EXHAUSTED;
        }
        for (int k = 0; k < node->inputs; k++) {
            inputs[k] = s->graph.nodes[node->input[k]->number];
        }
        bw_node *copy = bwi_graph_add(&s->graph, node->op, node->name, node->attributes, node->attribute_bytes, inputs, node->inputs,
                                      node->variable, node->variables);
        bwi_release(ctx, (void *)inputs);
        if (!copy) {
            return bwi_pending(ctx);
        }
    }
    *output = s->graph.nodes[model->output->number];
    return BW_OK;
}

static bw_node *add_input(bwi_session *s, const bw_dataset *dataset, int field, const char *name, bw_dtype dtype)
{
    const bwi_field *f = bwi_dataset_field(dataset, field);
    bwi_input_attributes a = {.shape = {.rank = f->rank}, .dtype = dtype, .field = field};
    memcpy(a.shape.extent, f->shape, sizeof a.shape.extent);
    return bwi_graph_add(&s->graph, &bwi_op_input, name, &a, sizeof a, NULL, 0, NULL, 0);
}

/* Keras's choice for the last layer and the targets, said aloud. */
static const bwi_loss_row *choose_loss(bwi_session *s, const bwi_field *target)
{
    bw_context *ctx = s->training->ctx;
    bool classes = bwi_logits_of(s->output) != NULL;
    const bwi_loss_row *row = &bwi_loss_rows[classes ? 0 : 1];
    int64_t count = 1;
    for (int i = 0; i < target->rank; i++) {
        count *= target->shape[i];
    }
    if (classes && count == bwi_shape_count(&s->output->shape) && count > 1) {
        bwi_fail(ctx, BW_UNIMPLEMENTED, "loss: one-hot targets need categorical_crossentropy, which is not there yet");
        return NULL;
    }
    bwi_log(ctx, BW_LOG_INFO, "loss: %.*s, as the last layer is %s", (int)strcspn(row->names, " "), row->names,
            classes ? "a softmax" : "no softmax");
    return row;
}

static bw_status add_metrics(bwi_session *s, const bwi_ends *ends)
{
    const bwi_training *t = s->training;
    bool chosen = t->metric_count < 0 && ends->target->dtype == BW_I32;
    s->metric_count = chosen ? 1 : t->metric_count < 0 ? 0 : t->metric_count;
    for (int i = 0; i < s->metric_count; i++) {
        const bwi_metric_row *row = chosen ? &bwi_metric_rows[0] : t->metrics[i];
        snprintf(s->metric_names[i], sizeof s->metric_names[i], "%s", chosen ? "accuracy" : t->metric_names[i]);
        s->metrics[i] = row->build(ends);
        if (!s->metrics[i]) {
            return bwi_pending(t->ctx);
        }
    }
    return BW_OK;
}

static bw_status add_ends(bwi_session *s, const bw_dataset *dataset)
{
    bw_context *ctx = s->training->ctx;
    int y = bwi_dataset_find(dataset, BWI_ROLE_TARGET, 0), w = bwi_dataset_find(dataset, BWI_ROLE_WEIGHT, 0);
    if (y < 0) {
        return bwi_fail(ctx, BW_INVALID_ARGUMENT, "the data has no targets (y)");
    }
    const bwi_loss_row *loss = s->training->loss ? s->training->loss : choose_loss(s, bwi_dataset_field(dataset, y));
    if (!loss) {
        return BW_UNIMPLEMENTED;
    }
    bwi_ends ends = {.graph = &s->graph, .prediction = s->output};
    ends.target = add_input(s, dataset, y, "target", loss->target);
    ends.weight = w >= 0 ? add_input(s, dataset, w, "sample weight", BW_F32) : NULL;
    if (!ends.target || (w >= 0 && !ends.weight)) {
        return bwi_pending(ctx);
    }
    if (ends.weight && bwi_shape_count(&ends.weight->shape) != 1) {
        return bwi_fail(ctx, BW_INVALID_ARGUMENT, "sample weights: expected one number a sample, got %lld",
                        (long long)bwi_shape_count(&ends.weight->shape));
    }
    s->loss = loss->build(&ends);
    s->loss_mean = s->loss ? bwi_graph_add(&s->graph, &bwi_op_mean, "loss", NULL, 0, &s->loss, 1, NULL, 0) : NULL;
    return s->loss_mean ? add_metrics(s, &ends) : bwi_pending(ctx);
}

static bw_status check_inputs(const bwi_session *s, const bw_model *model, const bw_dataset *dataset)
{
    const bwi_field *x = bwi_dataset_field(dataset, bwi_dataset_find(dataset, BWI_ROLE_INPUT, 0));
    int64_t count = 1;
    for (int i = 0; i < x->rank; i++) {
        count *= x->shape[i];
    }
    if (count != bwi_shape_count(&model->input_shape)) {
        char expected[160], found[160];
        return bwi_fail(s->training->ctx, BW_INVALID_ARGUMENT, "the model's input is %s, the data's samples are %s",
                        bwi_format_shape(expected, model->input_shape.rank, model->input_shape.extent),
                        bwi_format_shape(found, x->rank, x->shape));
    }
    return BW_OK;
}

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
    bw_node *sums[BWI_MAX_METRICS + 1] = {s->loss_mean};
    memcpy(sums + 1, s->metrics, sizeof s->metrics);
    bwi_program_request programs[3];
    int count = 0;
    s->program[0] = s->program[1] = s->program[2] = -1;
    if (o->train) {
        s->program[BWI_PROGRAM_TRAIN] = count;
        programs[count++] = (bwi_program_request){sums, s->metric_count + 1, &s->loss, 1};
    }
    if (o->evaluate) {
        s->program[BWI_PROGRAM_EVALUATE] = count;
        programs[count++] = (bwi_program_request){sums, s->metric_count + 1, NULL, 0};
    }
    if (o->predict) {
        s->program[BWI_PROGRAM_PREDICT] = count;
        programs[count++] = (bwi_program_request){&s->output, 1, NULL, 0};
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

bw_status bwi_session_open(bwi_session *s, bw_model *model, bw_dataset *dataset, const bwi_session_options *options)
{
    memset(s, 0, sizeof *s);
    s->graph.ctx = model->ctx;
    s->training = bwi_training_of(model);
    bw_status status = s->training ? BW_OK : BW_RESOURCE_EXHAUSTED;
    if (status == BW_OK && !bwi_model_built(model)) {
        const bwi_field *x = bwi_dataset_field(dataset, bwi_dataset_find(dataset, BWI_ROLE_INPUT, 0));
        status = bw_build(model, x->rank, x->shape, options->seed);
    }
    if (status == BW_OK) {
        status = check_inputs(s, model, dataset);
    }
    if (status == BW_OK) {
        status = copy_graph(s, model, &s->output);
    }
    if (status == BW_OK && (options->train || options->evaluate)) {
        status = add_ends(s, dataset);
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
    s->graph.variables = NULL; /* the model's */
    s->graph.variable_count = 0;
    bwi_graph_free(&s->graph);
}

void bwi_session_reset(bwi_session *s) { memset(s->totals, 0, sizeof s->totals); }

void bwi_session_count(bwi_session *s)
{
    for (int c = 0; c <= s->metric_count; c++) {
        const double *sums = bwi_exec_sums(s->exec, c ? s->metrics[c - 1] : s->loss_mean);
        s->totals[2 * c] += sums[0];
        s->totals[2 * c + 1] += sums[1];
    }
}

double bwi_session_value(const bwi_session *s, int column) { return s->totals[2 * column] / s->totals[2 * column + 1]; }

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
    double squared_norm;
    int64_t samples = bwi_exec_samples(s->exec);
    bw_status status = bwi_exec_reduce(s->exec, &squared_norm);
    if (status != BW_OK) {
        return status;
    }
    o->rate = o->values[0].number;
    o->scale = (float)(1.0 / (double)samples);
    bwi_exec_update(s->exec, update_part, o);
    o->iterations++;
    return BW_OK;
}
