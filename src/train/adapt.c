/*
 * Fits Normalization layers, as Keras's adapt does: mean and variance over all samples of the layer's input, for each index of the
 * axes that have separate statistics. The sums are a program like that of an evaluation, so they stream through tiles and have the
 * same bits on any number of workers and ranks.
 *
 * A layer can be fitted if nothing before it is trained: it follows an input, or layers that only prepare one. Layers that follow
 * each other are fitted one after the other, since a later one sees the output of an earlier one.
 */
#include "train/internal.h"

#include <math.h>
#include <string.h>

static bool is_normalization(const bw_node *node)
{
    return node->op == &bwi_op_normalization;
}

static bool is_inverse(const bw_node *node)
{
    return ((const bwi_normalization_attributes *)node->attributes)->invert;
}

static bool has_given(const bw_node *node)
{
    return node->variable[0]->given || node->variable[1]->given;
}

/* What comes before each node of a graph. A node's inputs have lower numbers than the node, so one pass finds it. */
typedef struct survey {
    const bw_node **trained; /* a trained layer before the node; NULL: there is none */
    int *depth;              /* the number of Normalization layers before the node, on the path that has most of them */
} survey;

static bw_status survey_open(survey *v, const bwi_graph *graph)
{
    v->trained = bwi_allocate(graph->ctx, (size_t)graph->count + 1, sizeof *v->trained);
    v->depth = bwi_allocate(graph->ctx, (size_t)graph->count + 1, sizeof *v->depth);
    for (int n = 0; v->trained && v->depth && n < graph->count; n++) {
        const bw_node *node = graph->nodes[n];
        v->trained[n] = NULL;
        v->depth[n] = 0;
        for (int k = 0; k < node->inputs; k++) {
            const bw_node *input = node->input[k];
            int depth = v->depth[input->number] + is_normalization(input);
            bool trained = (input->op->flags & BWI_OP_WHOLE_BATCH) || (input->variables > 0 && input->variable[0]->trainable);
            v->depth[n] = depth > v->depth[n] ? depth : v->depth[n];
            v->trained[n] = trained ? input : v->trained[input->number] ? v->trained[input->number] : v->trained[n];
        }
    }
    return v->trained && v->depth ? BW_OK : BW_RESOURCE_EXHAUSTED;
}

static void survey_close(survey *v, bw_context *ctx)
{
    bwi_release(ctx, (void *)v->trained);
    bwi_release(ctx, v->depth);
}

static bool can_fit(const survey *v, const bw_node *node)
{
    return is_normalization(node) && !is_inverse(node) && !v->trained[node->number];
}

/* ---- Which layers ---- */

static bool may_be_fitted(const bwi_layer *layer)
{
    const bwi_layer_row *row = layer->row;
    bool wanted = strcmp(row->class_name, "Normalization") == 0;
    for (int a = 0; wanted && a < row->argument_count; a++) {
        wanted = strcmp(row->arguments[a].name, "mean") != 0 || !layer->values[a].given;
    }
    return wanted;
}

bool bwi_adapt_wanted(const bw_model *model)
{
    bool wanted = false;
    for (int n = 0; n < model->graph.count && !wanted; n++) {
        const bw_node *node = model->graph.nodes[n];
        wanted = is_normalization(node) && !has_given(node);
    }
    for (int k = 0; model->graph.count == 0 && k < model->layer_count && !wanted; k++) {
        wanted = may_be_fitted(&model->layers[k]);
    }
    return wanted;
}

void bwi_adapted(bw_model *model)
{
    for (int v = 0; v < model->graph.variable_count; v++) {
        bwi_variable *variable = model->graph.variables[v];
        variable->given |= variable->fitted;
    }
}

void bwi_adapt_warn(const bw_model *model)
{
    for (int n = 0; n < model->graph.count; n++) {
        const bw_node *node = model->graph.nodes[n];
        if (is_normalization(node) && !has_given(node)) {
            bwi_log(model->ctx, BW_LOG_WARNING, "layer %s is not fitted, so it leaves its input as it is: bw_adapt fits it",
                    node->name);
        }
    }
}

/* Whether mean is 0 and variance 1, as before Keras's adapt. A layer whose values cannot be read, for lack of memory, counts as
 * fitted. */
static bool is_identity(const bw_node *node)
{
    int64_t count = bwi_shape_count(&node->variable[0]->shape);
    float *mean = bwi_allocate(node->graph->ctx, (size_t)count, 2 * sizeof *mean), *variance = mean + count;
    bool same = mean;
    if (mean) {
        bwi_variable_read(node->variable[0], mean);
        bwi_variable_read(node->variable[1], variance);
    }
    for (int64_t i = 0; i < count && same; i++) {
        same = !(mean[i] < 0 || mean[i] > 0) && !(variance[i] < 1 || variance[i] > 1);
    }
    bwi_release(node->graph->ctx, mean);
    return same;
}

void bwi_adapt_tell_given(const bw_model *model)
{
    for (int n = 0; n < model->graph.count && bwi_model_built(model); n++) {
        const bw_node *node = model->graph.nodes[n];
        if (is_normalization(node) && has_given(node) && is_identity(node)) {
            bwi_log(model->ctx, BW_LOG_WARNING,
                    "layer %s has mean 0 and variance 1, as if it had never been fitted, and is left so since they were given: "
                    "bw_adapt, or "
                    "adapt in Keras, fits it",
                    node->name);
        }
    }
}

/* Warns of a layer that is not fitted although it was given no values. */
static void tell_unfitted(const survey *v, const bw_node *node)
{
    const bw_node *before = v->trained[node->number];
    if (before) {
        bwi_log(
            node->graph->ctx, BW_LOG_WARNING,
            "layer %s leaves its input as it is: it cannot be fitted behind %s, which is trained; put it first, give it mean and "
            "variance, or use batchnorm",
            node->name, before->name);
    } else {
        bwi_log(node->graph->ctx, BW_LOG_WARNING,
                "layer %s leaves its input as it is: with invert=true it is not fitted to its input; give it mean and variance",
                node->name);
    }
}

/* Sets `found` if there is a layer to fit, and warns of layers that cannot be fitted. */
static bw_status find_layers(const bwi_graph *graph, bool all, bool *found)
{
    survey v;
    bw_status status = survey_open(&v, graph);
    *found = false;
    for (int n = 0; n < graph->count && status == BW_OK; n++) {
        const bw_node *node = graph->nodes[n];
        if (can_fit(&v, node)) {
            *found |= all || !has_given(node);
        } else if (is_normalization(node) && !has_given(node)) {
            tell_unfitted(&v, node);
        }
    }
    survey_close(&v, graph->ctx);
    return status;
}

/* Adds a column of sums for each layer. Its node takes the layer's input, and the mean that the layer has so far. */
static bw_status add_moments(bwi_session *s, const survey *v, bool all)
{
    int count = s->graph.count;
    for (int n = 0; n < count; n++) {
        bw_node *node = s->graph.nodes[n];
        if (!can_fit(v, node) || (!all && has_given(node))) {
            continue;
        }
        if (s->column_count == BWI_MAX_COLUMNS) {
            return bwi_fail(s->graph.ctx, BW_UNIMPLEMENTED, "layer %s: at most %d Normalization layers are fitted", node->name,
                            (int)BWI_MAX_COLUMNS);
        }
        bwi_logged *column = &s->columns[s->column_count];
        snprintf(column->name, sizeof column->name, "%s", node->name);
        column->node = bwi_graph_add(&s->graph, &bwi_op_moments, node->name, node->attributes, node->attribute_bytes,
                                     &node->input[0], 1, node->variable, 1);
        if (!column->node) {
            return bwi_pending(s->graph.ctx);
        }
        s->column_count++;
    }
    return BW_OK;
}

bw_status bwi_session_add_moments(bwi_session *s, bool all)
{
    survey v;
    bw_status status = survey_open(&v, &s->graph);
    status = status == BW_OK ? add_moments(s, &v, all) : status;
    survey_close(&v, s->graph.ctx);
    return status;
}

/* ---- Fitting ---- */

typedef struct adapting {
    bw_context *ctx;
    bw_dataset *dataset;
    bwi_session session;
    int64_t samples;
    survey survey; /* of the session's graph */
    float *old;    /* all means and variances from before, which are restored after a failure */
} adapting;

/* Returns the mean (0) or the variance (1) of a column's layer; the variance follows the mean among the variables. */
static bwi_variable *variable_of(const adapting *a, int column, int which)
{
    const bwi_graph *graph = &a->session.graph;
    return graph->variables[a->session.columns[column].node->variable[0]->index + which];
}

static bw_status feed(adapting *a, int64_t first, int64_t count)
{
    bwi_piece piece = {.dataset = a->dataset, .first = first, .count = count, .unaugmented = true};
    return bwi_session_feed(&a->session, BWI_PROGRAM_EVALUATE, &piece, NULL);
}

static bool is_finite(const adapting *a, int column)
{
    const bwi_logged *of = &a->session.columns[column];
    const double *sums = bwi_session_fed_sums(&a->session, of);
    bool finite = true;
    for (int64_t i = 0; i < of->node->op->sums->count(of->node) && finite; i++) {
        finite = isfinite(sums[i]);
    }
    return finite;
}

/* Finds the sample at fault by bisection. */
static bw_status name_sample(adapting *a, int column)
{
    int64_t first = 0, count = a->samples;
    while (count > 1) {
        int64_t half = count / 2;
        bw_status status = feed(a, first, half);
        if (status != BW_OK) {
            return status;
        }
        bool left = !is_finite(a, column);
        first += left ? 0 : half;
        count = left ? half : count - half;
    }
    return bwi_fail(a->ctx, BW_INVALID_ARGUMENT,
                    "layer %s cannot be fitted: sample %lld has a value that is not finite; leave the sample out or mend it",
                    a->session.columns[column].name, (long long)bwi_dataset_number(a->dataset, 0, first));
}

/* mean = m + S1 / n and variance = S2 / n - (S1 / n)^2, where S1 and S2 are the sums of differences from m and of their squares. */
static bw_status settle(const adapting *a, int column, int64_t samples)
{
    const bwi_logged *of = &a->session.columns[column];
    const double *sums = bwi_session_fed_sums(&a->session, of);
    bwi_variable *to = variable_of(a, column, 0);
    int64_t count = bwi_shape_count(&to->shape);
    double n = (double)samples * (double)(bwi_shape_count(&of->node->input[0]->shape) / count);
    float *mean = bwi_allocate(a->ctx, (size_t)count, 2 * sizeof *mean), *variance = mean + count;
    if (!mean) {
        return BW_RESOURCE_EXHAUSTED;
    }
    bwi_variable_read(to, mean);
    for (int64_t i = 0; i < count; i++) {
        double shift = sums[i] / n;
        mean[i] = (float)((double)mean[i] + shift);
        variance[i] = (float)fmax(sums[count + i] / n - shift * shift, 0);
    }
    bwi_variable_write(to, mean);
    bwi_variable_write(variable_of(a, column, 1), variance);
    bwi_release(a->ctx, mean);
    return BW_OK;
}

/* Fits the layers of one depth. The first samples give a mean that is nearly right, which keeps differences from it small; all
 * samples give the final one. */
static bw_status fit_depth(adapting *a, int depth)
{
    enum { SOME = 64 };
    bw_status status = BW_OK;
    for (int pass = 0; pass < 2 && status == BW_OK; pass++) {
        int64_t samples = pass > 0 || a->samples < SOME ? a->samples : SOME;
        status = feed(a, 0, samples);
        for (int c = 0; c < a->session.column_count && status == BW_OK; c++) {
            if (a->survey.depth[a->session.columns[c].node->number] == depth) {
                status = is_finite(a, c) ? settle(a, c, samples) : name_sample(a, c);
            }
        }
    }
    return status;
}

static int64_t values_of(const adapting *a)
{
    int64_t values = 0;
    for (int c = 0; c < a->session.column_count; c++) {
        values += 2 * bwi_shape_count(&variable_of(a, c, 0)->shape);
    }
    return values;
}

static void each_value(const adapting *a, void (*move)(bwi_variable *variable, float *values))
{
    float *next = a->old;
    for (int c = 0; c < a->session.column_count; c++) {
        for (int which = 0; which < 2; which++) {
            move(variable_of(a, c, which), next);
            next += bwi_shape_count(&variable_of(a, c, which)->shape);
        }
    }
}

static void keep(bwi_variable *variable, float *values)
{
    bwi_variable_read(variable, values);
}

static void put_back(bwi_variable *variable, float *values)
{
    bwi_variable_write(variable, values);
}

static void mark(bwi_variable *variable, float *values)
{
    (void)values;
    variable->fitted = true;
}

static bw_status fit_depths(adapting *a)
{
    int deepest = 0;
    bw_status status = BW_OK;
    for (int c = 0; c < a->session.column_count; c++) {
        int depth = a->survey.depth[a->session.columns[c].node->number];
        deepest = depth > deepest ? depth : deepest;
    }
    for (int depth = 0; depth <= deepest && status == BW_OK; depth++) {
        status = fit_depth(a, depth);
    }
    return status;
}

static bw_status fit_all(adapting *a)
{
    bw_status status = survey_open(&a->survey, &a->session.graph);
    a->old = status == BW_OK ? bwi_allocate(a->ctx, (size_t)values_of(a), sizeof *a->old) : NULL;
    if (a->old) {
        each_value(a, keep);
        status = fit_depths(a);
        each_value(a, status == BW_OK ? mark : put_back);
    }
    bool lacking = !a->old;
    bwi_release(a->ctx, a->old);
    survey_close(&a->survey, a->ctx);
    return lacking ? BW_RESOURCE_EXHAUSTED : status;
}

/* A stream is first read to its end, because mean and variance are those of all samples. */
static bw_status adapt(bw_model *model, bw_dataset *dataset, bool all, uint64_t seed)
{
    adapting a = {.ctx = model->ctx, .dataset = dataset};
    bwi_session_options options = {.adapt = true, .adapt_all = all, .seed = seed};
    if (bwi_dataset_live(dataset)) {
        bwi_log(a.ctx, BW_LOG_INFO, "a Normalization layer is fitted to all samples: the stream is read to its end first");
    }
    bw_status status = bwi_dataset_finish(dataset);
    if (status == BW_OK) {
        status = bwi_session_open(&a.session, model, dataset, &options);
    }
    if (status != BW_OK) {
        return status;
    }
    a.samples = bw_dataset_count(dataset);
    status = fit_all(&a);
    for (int c = 0; c < a.session.column_count && status == BW_OK; c++) {
        bwi_log(a.ctx, BW_LOG_INFO, "layer %s: mean and variance are those of %lld samples", a.session.columns[c].name,
                (long long)a.samples);
    }
    bwi_session_close(&a.session);
    return status;
}

/* The nodes show which layers there are, so a model that has no nodes yet is built. */
bw_status bwi_model_build_for(bw_model *model, const bw_dataset *dataset, uint64_t seed)
{
    const bwi_field *field;
    if (bwi_model_built(model)) {
        return BW_OK;
    }
    bw_status status = bwi_fields_input(model->ctx, dataset, &field);
    return status == BW_OK ? bwi_model_build(model, field->ndim, field->shape, seed) : status;
}

bw_status bwi_adapt(bw_model *model, bw_dataset *dataset, uint64_t seed)
{
    bool found = false;
    bw_status status = bwi_model_build_for(model, dataset, seed);
    if (status == BW_OK) {
        status = find_layers(&model->graph, false, &found);
    }
    return status == BW_OK && found ? adapt(model, dataset, false, seed) : status;
}

/* A caller who asks for fitting and has nothing to fit made a mistake, which is reported; bw_fit ignores such a model. */
static bw_status adapt_model(bw_context *ctx, bw_model *model, bw_dataset *dataset)
{
    bool found = false, fronts = bwi_model_has_fronts(model);
    bw_dataset *front = NULL;
    bw_status status = bwi_run_begin(ctx, "adapt", model, dataset);
    if (status == BW_OK) {
        status = bwi_front_fit(model, dataset, true);
    }
    if (status == BW_OK) {
        status = bwi_front_data(model, dataset, &front);
        dataset = front ? front : dataset;
    }
    if (status == BW_OK) {
        status = bwi_model_build_for(model, dataset, 0);
    }
    if (status == BW_OK) {
        status = find_layers(&model->graph, true, &found);
    }
    if (status == BW_OK && !found && fronts) {
        bw_dataset_free(front);
        return bwi_run_end(ctx, bwi_ranks_enter(ctx, BW_OK));
    }
    if (status == BW_OK && !found) {
        status =
            bwi_fail(ctx, BW_INVALID_ARGUMENT,
                     "adapt: the model has no Normalization layer that can be fitted: one without mean and variance, in front of "
                     "all layers that are trained");
    }
    status = bwi_ranks_enter(ctx, status);
    if (status == BW_OK) {
        status = adapt(model, dataset, true, 0);
    }
    if (status == BW_OK) {
        bwi_adapted(model);
    }
    bw_dataset_free(front);
    return bwi_run_end(ctx, status);
}

bw_status bw_adapt(bw_model *model, bw_dataset *dataset)
{
    bw_context *ctx = bwi_run_context(model, dataset);
    bw_status status = ctx ? bwi_call_begin(ctx) : BW_INVALID_ARGUMENT;
    return status == BW_OK ? bwi_call_end(ctx, adapt_model(ctx, model, dataset)) : bwi_ranks_enter(ctx, status);
}
