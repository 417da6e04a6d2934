/*
 * Gradients for custom training loops: sums over batches of any size, until they are applied. The plan holds nothing of the size of
 * a batch, so every batch may have a different size.
 */
#include "train/internal.h"

#include <float.h>
#include <math.h>

struct bw_gradients {
    bwi_owned owned;
    bw_context *ctx;
    bw_model *model;
    bw_fit_options options;
    bwi_session session; /* opened by the first batch, since the shape of the targets comes from the data */
    bool open;
    bwi_session view; /* computes predictions and the losses of each sample; opened when they are first asked for */
    bool viewing;
    bwi_field *fields; /* of the first batch; the session knows fields by their number, so all batches must have the same */
    int field_count;
    bw_dataset *recipe; /* of the first batch's dataset, until the model takes it */
};

static void destroy(bwi_owned *object)
{
    bw_gradients *g = (bw_gradients *)(void *)object;
    if (g->open) {
        bwi_session_close(&g->session);
    }
    if (g->viewing) {
        bwi_session_close(&g->view);
    }
    bwi_release(g->ctx, g->fields);
    if (!g->ctx->closing) {
        bw_dataset_free(g->recipe);
    }
}

bw_gradients *bw_gradients_new(bw_model *model, const bw_fit_options *options)
{
    if (!model) {
        return NULL;
    }
    bw_gradients *g = bwi_own(model->ctx, sizeof *g, destroy);
    if (!g) {
        return NULL;
    }
    g->ctx = model->ctx;
    g->model = model;
    g->options = (bw_fit_options)BW_FIT_OPTIONS_DEFAULT;
    if (bwi_options_copy(g->ctx, &g->options, sizeof g->options, options, "bw_fit_options") != BW_OK) {
        bwi_disown(g);
        return bwi_pass_on(model->ctx);
    }
    return g;
}

void bw_gradients_free(bw_gradients *gradients)
{
    bwi_disown(gradients);
}

/* ---- Batches with the same fields ---- */

static bw_status keep_fields(bw_gradients *g, const bw_dataset *dataset)
{
    bwi_release(g->ctx, g->fields); /* from a first batch that was refused */
    g->field_count = bwi_dataset_fields(dataset);
    g->fields = bwi_allocate(g->ctx, (size_t)g->field_count, sizeof *g->fields);
    for (int f = 0; g->fields && f < g->field_count; f++) {
        g->fields[f] = *bwi_dataset_field(dataset, f);
    }
    return g->fields ? BW_OK : BW_RESOURCE_EXHAUSTED;
}

static bw_status check_alike(const bw_gradients *g, const bw_dataset *dataset)
{
    int count = bwi_dataset_fields(dataset);
    bw_status status = BW_OK;
    for (int f = 0; status == BW_OK && (f < count || f < g->field_count); f++) {
        status = bwi_field_check(g->ctx, f < g->field_count ? &g->fields[f] : NULL,
                                 f < count ? bwi_dataset_field(dataset, f) : NULL, "gradients", "the first batch");
    }
    return status;
}

/* ---- Adding ---- */

/* The first batch decides what the others must look like: preprocessing is fitted to its dataset, and its fields are kept. */
static bw_status open_session(bw_gradients *g, bw_dataset *dataset)
{
    bwi_session_options options = {.train = true,
                                   .tile = g->options.tile,
                                   .lanes = g->options.lanes,
                                   .memory = g->options.memory,
                                   .spill = g->options.spill,
                                   .seed = g->options.seed,
                                   .class_weight = g->options.class_weight,
                                   .class_count = g->options.class_count};
    bw_status status = bwi_dataset_prepare(dataset);
    if (status == BW_OK && !g->recipe) {
        g->recipe = bwi_recipe_make(dataset);
        status = g->recipe ? BW_OK : bwi_pending(g->ctx);
    }
    if (status == BW_OK) {
        status = keep_fields(g, dataset);
    }
    if (status == BW_OK) {
        status = bwi_session_open(&g->session, g->model, dataset, &options);
    }
    g->open = status == BW_OK;
    if (g->open) {
        bwi_adapt_warn(g->model);
    }
    return status;
}

/* The batch is lent for this call only, so a sample whose loss is not finite must be named now. */
static bw_status look_at_loss(bwi_session *s, double *loss)
{
    bwi_session_reset(s);
    bwi_session_count(s);
    double value = bwi_session_value(s, 0);
    bw_status status = isfinite(value) ? BW_OK : bwi_exec_examine(s->exec);
    if (status != BW_OK) {
        bwi_session_clear(s);
    } else if (loss) {
        *loss = value;
    }
    return status;
}

/* The first batch opens the session. A model that has been compiled again since then has a different optimizer, whose slots these
 * sums do not fit. */
static bw_status begin(bw_gradients *g, bw_batch *batch)
{
    if (!batch) {
        return bwi_fail(g->ctx, BW_INVALID_ARGUMENT, "gradients: there is no batch");
    }
    bw_status status = g->open ? check_alike(g, batch->dataset) : open_session(g, batch->dataset);
    if (status == BW_OK && g->session.compiles != g->session.training->compiles) {
        status = bwi_fail(g->ctx, BW_INVALID_ARGUMENT,
                          "the model was compiled after these gradients were made: make new ones with bw_gradients_new");
    }
    return status;
}

static bwi_piece piece_of(const bw_batch *batch)
{
    return (bwi_piece){.dataset = batch->dataset,
                       .numbers = batch->numbers,
                       .epoch = batch->epoch,
                       .first = batch->first,
                       .count = batch->count,
                       .scattered = batch->scattered};
}

static bw_status add(bw_gradients *g, bw_batch *batch, double *loss)
{
    bw_status status = begin(g, batch);
    if (status != BW_OK) {
        return status;
    }
    bwi_session *s = &g->session;
    bwi_piece piece = piece_of(batch);
    bwi_exec_touch(s->exec); /* the program may have changed variables since the last piece */
    bwi_exec_set_seed(s->exec, g->options.seed, (uint64_t)s->training->optimizer.iterations);
    status = bwi_session_feed(s, BWI_PROGRAM_TRAIN, &piece, NULL);
    if (status == BW_OK) {
        status = look_at_loss(s, loss);
    }
    bwi_exec_forget(s->exec);
    return status == BW_CANCELLED ? bwi_cancel_report(g->ctx) : status;
}

bw_status bw_gradients_add(bw_gradients *g, bw_batch *batch, double *loss)
{
    bw_status status = g ? bwi_call_begin(g->ctx) : BW_INVALID_ARGUMENT;
    return status == BW_OK ? bwi_call_end(g->ctx, add(g, batch, loss)) : status;
}

int64_t bw_gradients_samples(const bw_gradients *g)
{
    return g && g->open ? bwi_exec_samples(g->session.exec) : 0;
}

/* The context knows all gradients that are alive; those of this file are told by their destructor. */
int64_t bwi_gradients_pending(const bw_model *model)
{
    int64_t samples = 0;
    for (const bwi_owned *object = model->ctx->owned; object; object = object->next) {
        const bw_gradients *g = object->destroy == destroy ? (const bw_gradients *)(const void *)object : NULL;
        samples += g && g->model == model ? bw_gradients_samples(g) : 0;
    }
    return samples;
}

void bw_gradients_clear(bw_gradients *g)
{
    if (g && g->open) {
        bwi_session_clear(&g->session);
    }
}

static bw_status find_norm(bw_gradients *g, double *norm)
{
    if (!norm) {
        return bwi_fail(g->ctx, BW_INVALID_ARGUMENT, "bw_gradients_norm: the pointer to the norm is NULL");
    }
    bw_status status = BW_OK;
    *norm = 0;
    if (bw_gradients_samples(g) > 0) {
        double squared, count = g->session.window_count;
        status = bwi_exec_norm(g->session.exec, &squared);
        g->session.window_count = status == BW_OK ? count : 0;
        *norm = status == BW_OK && count > 0 ? sqrt(squared) / count : 0;
    }
    return status;
}

bw_status bw_gradients_norm(bw_gradients *g, double *norm)
{
    bw_status status = g ? bwi_call_begin(g->ctx) : BW_INVALID_ARGUMENT;
    return status == BW_OK ? bwi_call_end(g->ctx, find_norm(g, norm)) : status;
}

static bw_status scale(bw_gradients *g, double factor)
{
    bw_status status = BW_OK;
    if (!(fabs(factor) <= (double)FLT_MAX)) {
        status = bwi_fail(g->ctx, BW_INVALID_ARGUMENT, "gradients: expected a finite factor, got %g", factor);
    }
    if (status == BW_OK && g->open) {
        bwi_exec_scale(g->session.exec, (float)factor);
    }
    return status;
}

bw_status bw_gradients_scale(bw_gradients *g, double factor)
{
    bw_status status = g ? bwi_call_begin(g->ctx) : BW_INVALID_ARGUMENT;
    return status == BW_OK ? bwi_call_end(g->ctx, scale(g, factor)) : status;
}

/* ---- One variable's gradient ---- */

static bw_status find_variable(const bw_gradients *g, int index, const float *values, size_t count, const bwi_variable **found)
{
    const bwi_graph *graph = &g->model->graph;
    if (index < 0 || index >= graph->variable_count) {
        return bwi_fail(g->ctx, BW_INVALID_ARGUMENT, "there is no variable %d: the model has %d", index, graph->variable_count);
    }
    const bwi_variable *variable = graph->variables[index];
    size_t expected = (size_t)bwi_shape_count(&variable->shape);
    if (!variable->trainable) {
        return bwi_fail(g->ctx, BW_INVALID_ARGUMENT, "%s has no gradient: it is not trained", variable->name);
    }
    if (count != expected || !values) {
        return bwi_fail(g->ctx, BW_INVALID_ARGUMENT, "the gradient of %s: expected %zu values, got %zu", variable->name, expected,
                        values ? count : 0);
    }
    if (bw_gradients_samples(g) == 0) {
        return bwi_fail(g->ctx, BW_INVALID_ARGUMENT, "the gradient of %s: no sample's gradient was added", variable->name);
    }
    *found = variable;
    return BW_OK;
}

/* The window holds sums. A program sees them as the update does, divided by what the loss counted. */
static bw_status get(bw_gradients *g, int index, float *values, size_t count)
{
    const bwi_variable *variable;
    bw_status status = find_variable(g, index, values, count, &variable);
    if (status == BW_OK) {
        status = bwi_exec_gradient(g->session.exec, variable, values, NULL);
    }
    if (status != BW_OK) {
        return status;
    }
    for (size_t i = 0; i < count; i++) {
        values[i] = g->session.window_count > 0 ? (float)((double)values[i] / g->session.window_count) : 0;
    }
    return BW_OK;
}

/* A value that is not finite is refused now, since the update would find it later and blame a sample. */
static bw_status set(bw_gradients *g, int index, const float *values, size_t count)
{
    const bwi_variable *variable;
    bw_status status = find_variable(g, index, values, count, &variable);
    if (status == BW_OK && bwi_exec_plan(g->session.exec)->gradients[variable->index] == SIZE_MAX) {
        return bwi_fail(g->ctx, BW_UNIMPLEMENTED,
                        "the gradient of %s is a list of rows, which cannot be replaced; bw_gradients_scale changes it",
                        variable->name);
    }
    float *sums = status == BW_OK ? bwi_allocate(g->ctx, count, sizeof *sums) : NULL;
    status = status == BW_OK && !sums ? BW_RESOURCE_EXHAUSTED : status;
    for (size_t i = 0; i < count && status == BW_OK; i++) {
        sums[i] = (float)((double)values[i] * g->session.window_count);
        if (!isfinite(sums[i])) {
            status = bwi_fail(g->ctx, BW_INVALID_ARGUMENT, "the gradient of %s: value %zu is not finite", variable->name, i);
        }
    }
    if (status == BW_OK) {
        status = bwi_exec_gradient(g->session.exec, variable, NULL, sums);
    }
    bwi_release(g->ctx, sums);
    return status;
}

bw_status bw_gradients_get(bw_gradients *g, int variable, float *values, size_t count)
{
    bw_status status = g ? bwi_call_begin(g->ctx) : BW_INVALID_ARGUMENT;
    return status == BW_OK ? bwi_call_end(g->ctx, get(g, variable, values, count)) : status;
}

bw_status bw_gradients_set(bw_gradients *g, int variable, const float *values, size_t count)
{
    bw_status status = g ? bwi_call_begin(g->ctx) : BW_INVALID_ARGUMENT;
    return status == BW_OK ? bwi_call_end(g->ctx, set(g, variable, values, count)) : status;
}

/* ---- Predictions and losses of a batch ---- */

static bw_status open_view(bw_gradients *g, bw_dataset *dataset)
{
    if (g->viewing && g->view.compiles == g->view.training->compiles) {
        return BW_OK;
    }
    if (g->viewing) {
        bwi_session_close(&g->view);
    }
    bwi_session_options options = {.evaluate = true,
                                   .predict = true,
                                   .losses = true,
                                   .memory = g->options.memory,
                                   .class_weight = g->options.class_weight,
                                   .class_count = g->options.class_count};
    bw_status status = bwi_session_open(&g->view, g->model, dataset, &options);
    g->viewing = status == BW_OK;
    return status;
}

/* Computes as layers do in prediction: dropout does nothing, and BatchNormalization uses its moving statistics. `targets` are those
 * of the plan. */
static bw_status view(bw_gradients *g, bw_batch *batch, float *const *targets)
{
    bwi_piece piece = piece_of(batch);
    bwi_exec_touch(g->view.exec); /* the weights have changed since the last time */
    bw_status status = bwi_session_feed(&g->view, BWI_PROGRAM_PREDICT, &piece, targets);
    bwi_exec_forget(g->view.exec);
    return status == BW_CANCELLED ? bwi_cancel_report(g->ctx) : status;
}

static bw_status begin_view(bw_gradients *g, bw_batch *batch)
{
    bw_status status = begin(g, batch);
    if (status == BW_OK && g->session.variant_count > 0) {
        status = bwi_fail(g->ctx, BW_UNIMPLEMENTED, "predictions and losses of batches are not supported for bw_bucket");
    }
    if (status == BW_OK && g->session.balanced) {
        status = bwi_fail(g->ctx, BW_UNIMPLEMENTED,
                          "predictions and losses of batches are not supported where outputs reduce their losses differently");
    }
    return status == BW_OK ? open_view(g, batch->dataset) : status;
}

static bw_status predict(bw_gradients *g, bw_batch *batch, int output, float *predictions, size_t count)
{
    float *targets[3 * BWI_MAX_HEADS] = {NULL};
    bw_status status = begin_view(g, batch);
    if (status == BW_OK && (output < 0 || output >= g->view.output_count)) {
        status = bwi_fail(g->ctx, BW_INVALID_ARGUMENT, "there is no output %d: the model has %d", output, g->view.output_count);
    }
    if (status != BW_OK) {
        return status;
    }
    size_t expected = bwi_size_multiply((size_t)batch->count, (size_t)bwi_shape_count(&g->view.outputs[output]->shape));
    if (count != expected || !predictions) {
        return bwi_fail(g->ctx, BW_INVALID_ARGUMENT, "predictions of a batch: expected an array of %zu numbers, got %zu", expected,
                        predictions ? count : 0);
    }
    targets[output] = predictions;
    return view(g, batch, targets);
}

/* With several outputs, a sample's loss is the sum over them; each output's losses are first read into a separate row. */
static bw_status find_losses(bw_gradients *g, bw_batch *batch, float *losses, size_t count)
{
    float *targets[3 * BWI_MAX_HEADS] = {NULL};
    bw_status status = begin_view(g, batch);
    if (status == BW_OK && (!losses || count != (size_t)batch->count)) {
        status = bwi_fail(g->ctx, BW_INVALID_ARGUMENT, "losses of a batch: expected an array of %lld numbers, got %zu",
                          (long long)batch->count, losses ? count : 0);
    }
    float *sums = status == BW_OK ? bwi_allocate(g->ctx, bwi_size_multiply((size_t)g->view.loss_count, count), sizeof *sums) : NULL;
    if (!sums) {
        return status == BW_OK ? BW_RESOURCE_EXHAUSTED : status;
    }
    for (int k = 0; k < g->view.loss_count; k++) {
        targets[g->view.output_count + k] = sums + (size_t)k * count;
    }
    status = view(g, batch, targets);
    for (size_t i = 0; i < count && status == BW_OK; i++) {
        losses[i] = 0;
        for (int k = 0; k < g->view.loss_count; k++) {
            losses[i] += sums[(size_t)k * count + i];
        }
    }
    bwi_release(g->ctx, sums);
    return status;
}

bw_status bw_gradients_predict(bw_gradients *g, bw_batch *batch, int output, float *predictions, size_t count)
{
    bw_status status = g ? bwi_call_begin(g->ctx) : BW_INVALID_ARGUMENT;
    return status == BW_OK ? bwi_call_end(g->ctx, predict(g, batch, output, predictions, count)) : status;
}

bw_status bw_gradients_losses(bw_gradients *g, bw_batch *batch, float *losses, size_t count)
{
    bw_status status = g ? bwi_call_begin(g->ctx) : BW_INVALID_ARGUMENT;
    return status == BW_OK ? bwi_call_end(g->ctx, find_losses(g, batch, losses, count)) : status;
}

/* ---- Applying ---- */

static bw_status apply(bw_model *model, bw_gradients *g)
{
    bw_status status = BW_OK;
    if (model != g->model) {
        status =
            bwi_fail(g->ctx, BW_INVALID_ARGUMENT, "apply: %s", model ? "the gradients are of another model" : "there is no model");
    }
    if (status == BW_OK && !g->open) {
        status = bwi_fail(g->ctx, BW_INVALID_ARGUMENT, "nothing to apply: no sample's gradient was added");
    }
    status = status == BW_OK ? bwi_session_apply(&g->session) : status;
    if (status == BW_OK && g->recipe) {
        bwi_training_set_data(g->session.training, g->recipe);
        g->recipe = NULL;
    }
    return status;
}

bw_status bw_apply(bw_model *model, bw_gradients *g)
{
    bw_status status = g ? bwi_call_begin(g->ctx) : model ? bwi_call_begin(model->ctx) : BW_INVALID_ARGUMENT;
    if (status != BW_OK) {
        return status;
    }
    return g ? bwi_call_end(g->ctx, apply(model, g))
             : bwi_call_end(model->ctx, bwi_fail(model->ctx, BW_INVALID_ARGUMENT, "apply: there are no gradients"));
}

static bw_status apply_averages(bw_model *model)
{
    bw_status status = BW_OK;
    const bwi_training *t = model->training;
    if (!(t && t->optimizer.averages)) {
        status = bwi_fail(model->ctx, BW_INVALID_ARGUMENT, "there are no averages: the optimizer was not told use_ema=true");
    }
    if (status == BW_OK) {
        bwi_training_finalize(model->training);
    }
    return status;
}

bw_status bw_apply_averages(bw_model *model)
{
    bw_status status = model ? bwi_call_begin(model->ctx) : BW_INVALID_ARGUMENT;
    return status == BW_OK ? bwi_call_end(model->ctx, apply_averages(model)) : status;
}
