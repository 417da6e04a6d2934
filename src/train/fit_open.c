/*
 * What a fit does before its first epoch: options are checked, the data is split and prepared, layers are fitted to it, and
 * session, history and checkpoints are opened. What can be refused is refused before anything large is allocated.
 */
#include "train/fitting.h"

/* Options are checked before anything is read or allocated, so that one that is wrong by itself is reported first. */
static bw_status check_options(bw_context *ctx, const bw_fit_options *o)
{
    if (o->epochs < 1) {
        return bwi_fail(ctx, BW_INVALID_ARGUMENT, "epochs: expected at least 1, got %d", o->epochs);
    }
    if (!o->batch_sizes && o->batch < 1 && o->batch != -1) {
        return bwi_fail(ctx, BW_INVALID_ARGUMENT, "batch: expected at least 1 sample, got %lld", (long long)o->batch);
    }
    if (o->trace_steps < 0 || o->trace_steps > BWI_MOST_TRACED) {
        return bwi_fail(ctx, BW_INVALID_ARGUMENT, "trace_steps: expected at most %d steps, got %d", BWI_MOST_TRACED,
                        o->trace_steps);
    }
    if (o->noise_every < 0) {
        return bwi_fail(ctx, BW_INVALID_ARGUMENT, "noise_every: expected a number of updates, or 0 for none, got %d",
                        o->noise_every);
    }
    if (o->on_nan != BW_NAN_STOP && o->on_nan != BW_NAN_SKIP) {
        return bwi_fail(ctx, BW_INVALID_ARGUMENT, "on_nan: expected BW_NAN_STOP or BW_NAN_SKIP, got %d", (int)o->on_nan);
    }
    if (!o->checkpoint_dir && (o->resume || o->checkpoint_every || o->checkpoint_keep)) {
        return bwi_fail(ctx, BW_INVALID_ARGUMENT, "%s: there is no checkpoint_dir",
                        o->resume             ? "resume"
                        : o->checkpoint_every ? "checkpoint_every"
                                              : "checkpoint_keep");
    }
    if (o->accumulate < 1) {
        return bwi_fail(ctx, BW_INVALID_ARGUMENT, "accumulate: expected at least 1, got %d", o->accumulate);
    }
    if (!(o->validation_split >= 0 && o->validation_split < 1)) {
        return bwi_fail(ctx, BW_INVALID_ARGUMENT, "validation_split: expected a share from 0 to below 1, got %g",
                        o->validation_split);
    }
    if (o->validation && o->validation_split > 0) {
        return bwi_fail(ctx, BW_INVALID_ARGUMENT, "validation: give data or a split, not both");
    }
    return BW_OK;
}

/* Makes the training part, the validation part, and the windows of the training part. Ranks agree on counts before they begin, so
 * the end of their data must be known. */
static bw_status split_data(bwi_fitting *f, bw_dataset *dataset)
{
    f->training = dataset;
    f->validation = f->options.validation;
    bw_status status = f->validation ? bwi_dataset_finish(f->validation) : BW_OK;
    if (status == BW_OK && f->ctx->ranks) {
        status = bwi_dataset_finish(dataset);
    }
    if (status == BW_OK && f->options.validation_split > 0) {
        status = bwi_dataset_split(dataset, f->options.validation_split, &f->split[0], &f->split[1]);
        f->training = f->split[0];
        f->validation = f->split[1];
    }
    if (status != BW_OK) {
        return status;
    }
    bwi_batching how = {.sizes = f->options.batch_sizes,
                        .batch = f->options.batch,
                        .accumulate = f->options.accumulate,
                        .drop = f->options.drop_remainder};
    status = bwi_dataset_windows(f->training, &how, &f->windows);
    f->training = f->windows;
    return status;
}

/* The session knows fields by their position, so validation data must have the same fields in the same places. */
static bw_status check_validation(const bwi_fitting *f)
{
    int trained = bwi_dataset_fields(f->training), count = f->validation ? bwi_dataset_fields(f->validation) : 0;
    bw_status status = BW_OK;
    for (int k = 0; f->validation && status == BW_OK && (k < trained || k < count); k++) {
        status = bwi_field_check(f->ctx, k < trained ? bwi_dataset_field(f->training, k) : NULL,
                                 k < count ? bwi_dataset_field(f->validation, k) : NULL, "validation", "the training data");
    }
    return status;
}

/* Preprocessing that is fitted to data is fitted now, to the training part alone. */
static bw_status prepare_data(bwi_fitting *f)
{
    bw_status status = bwi_dataset_prepare(f->training);
    if (status != BW_OK) {
        return status;
    }
    f->recipe = bwi_recipe_make(f->training);
    return f->recipe ? BW_OK : bwi_pending(f->ctx);
}

/* What a model's file keeps of the data is what comes before its layers for text and categories, which are the model's own. */
static bw_status vectorize(bwi_fitting *f)
{
    bw_status status = bwi_front_prepare(f->model, f->training, &f->fronts[0]);
    if (status == BW_OK && f->validation) {
        status = bwi_front_data(f->model, f->validation, &f->fronts[1]);
    }
    f->training = f->fronts[0] ? f->fronts[0] : f->training;
    f->validation = f->fronts[1] ? f->fronts[1] : f->validation;
    return status;
}

bwi_alike bwi_fitting_alike(const bwi_fitting *f)
{
    return (bwi_alike){.training = f->training,
                       .validation = f->validation,
                       .epochs = f->options.epochs,
                       .variables = f->model->graph.variable_count,
                       .from = bwi_fit_checkpoints_step_found(&f->checkpoints),
                       .session = f->open ? &f->session : NULL,
                       .options = &f->options};
}

/* Fits Normalization layers to the training part. Ranks sum over it together, so either all of them come here or none continues. */
static bw_status fit_layers(const bwi_fitting *f, bw_status status)
{
    if (f->ctx->ranks) {
        bwi_alike alike = bwi_fitting_alike(f);
        status = bwi_ranks_begin(f->ctx, &alike, status);
    }
    return status == BW_OK ? bwi_adapt(f->model, f->training, f->options.seed) : status;
}

/* Workers are started first, so that their stacks count as the process's memory and not as the plan's. */
static bw_status open_session(bwi_fitting *f)
{
    const bw_fit_options *o = &f->options;
    bwi_session_options options = {.train = true,
                                   .evaluate = f->validation,
                                   .validation = f->validation,
                                   .batch = bwi_dataset_largest_batch(f->training),
                                   .tile = o->tile,
                                   .lanes = o->lanes,
                                   .memory = o->memory,
                                   .spill = o->spill,
                                   .seed = o->seed,
                                   .class_weight = o->class_weight,
                                   .class_count = o->class_count,
                                   .epochs = o->epochs,
                                   .rates = o->reduce_lr_on_plateau,
                                   .traced = o->trace_steps,
                                   .program_bytes = o->program_bytes,
                                   .noise = o->noise_every > 0,
                                   .copies = bwi_watch_restores(f->ctx, o),
                                   .saves = o->saves || o->tensorboard,
                                   .shows_gradients = o->tensorboard,
                                   .recipe = f->recipe,
                                   .divisible = true,
                                   .divides = f->divides,
                                   .checkpoints = f->checkpoints.asked && f->ctx->rank == 0};
    bw_status status = bwi_pool_open(f->ctx);
    if (status != BW_OK) {
        return status;
    }
    bwi_measure_begin(&f->measure, f->model);
    status = bwi_session_open(&f->session, f->model, f->training, &options);
    f->open = status == BW_OK;
    bwi_measure_opened(&f->measure, f->ctx);
    return status;
}

/* Does everything up to the session, which has the plan. What can be refused is refused before anything large is allocated. */
bw_status bwi_fitting_prepare(bwi_fitting *f, bw_dataset *dataset)
{
    bw_status status = check_options(f->ctx, &f->options);
    if (status == BW_OK) {
        status = split_data(f, dataset);
    }
    if (status == BW_OK) {
        status = check_validation(f);
    }
    if (status == BW_OK) {
        status = prepare_data(f);
    }
    if (status == BW_OK) {
        status = vectorize(f);
    }
    if (status == BW_OK && f->checkpoints.asked) {
        status = bwi_fit_checkpoints_find(&f->checkpoints, &f->options, f->training, f->validation);
    }
    if (bwi_adapt_wanted(f->model)) {
        status = fit_layers(f, status);
    }
    if (status == BW_OK) {
        bwi_adapt_tell_given(f->model);
    }
    return status == BW_OK ? open_session(f) : status;
}

/* A rank that planned otherwise plans again, and all compare their plans once more. */
bw_status bwi_fitting_divide_slots(bwi_fitting *f)
{
    const bwi_plan *plan = bwi_exec_plan(f->session.exec);
    bool mine = plan->divides;
    f->divides = mine;
    bw_status status = bwi_ranks_meet(f->model, false, 0, &f->divides);
    if (status != BW_OK || !f->divides) {
        return status;
    }
    if (!mine) {
        bwi_session_close(&f->session);
        f->open = false;
        status = open_session(f);
    }
    bwi_alike alike = bwi_fitting_alike(f);
    status = bwi_ranks_begin(f->ctx, &alike, status);
    if (status == BW_OK && f->ctx->rank == 0) {
        char part[32], whole[32];
        bwi_log(f->ctx, BW_LOG_INFO, "memory: the optimizer's slots are divided over %d ranks: %s on each, in place of %s",
                bw_ranks_count(f->ctx->ranks),
                bwi_format_bytes(part, bwi_portion_slot_bytes(f->session.training, bw_ranks_count(f->ctx->ranks))),
                bwi_format_bytes(whole, bwi_optimizer_bytes(f->session.training)));
    }
    return status;
}

/* Orders columns as Keras does: metrics, the loss, both again for validation, the learning rate; then the noise scale. The values
 * of the present epoch (`logs`) have the same columns. */
bw_status bwi_fitting_open_history(bwi_fitting *f)
{
    const bwi_session *s = &f->session;
    int width = bwi_session_columns(s, f->validation);
    f->history = bwi_history_new(f->ctx, f->options.epochs, width);
    f->logs = bwi_history_new(f->ctx, 1, width);
    if (!f->history || !f->logs) {
        return bwi_pending(f->ctx);
    }
    f->history->profile = bwi_profile_new(f->ctx, bwi_exec_plan(s->exec), f->options.trace_steps);
    if (!f->history->profile) {
        return BW_RESOURCE_EXHAUSTED;
    }
    if (f->options.trace_steps > 0 && (bwi_exec_trace(s->exec, f->options.trace_steps) != BW_OK ||
                                       bwi_profile_follow(f->ctx, f->history->profile, f->training) != BW_OK)) {
        return BW_RESOURCE_EXHAUSTED;
    }
    f->history->noise = f->options.noise_every > 0 ? bwi_noise_new(f->ctx, s) : NULL;
    if (f->options.noise_every > 0 && !f->history->noise) {
        return BW_RESOURCE_EXHAUSTED;
    }
    f->history->facts.resumed_step = f->history->facts.last_checkpoint = -1;
    f->logs->epochs = 1;
    for (int part = 0; part < (f->validation ? 2 : 1); part++) {
        for (int k = 1; k <= bwi_session_values(s); k++) {
            const char *name = bwi_session_value_name(s, k % bwi_session_values(s));
            bwi_history_add_column(f->history, part ? "val_" : "", name);
            bwi_history_add_column(f->logs, part ? "val_" : "", name);
        }
    }
    if (s->rates) { /* as Keras's callback does */
        bwi_history_add_column(f->history, "", "learning_rate");
        bwi_history_add_column(f->logs, "", "learning_rate");
    }
    if (s->noise) {
        bwi_history_add_column(f->history, "", "noise_scale");
        bwi_history_add_column(f->logs, "", "noise_scale");
    }
    return BW_OK;
}

/* What a checkpoint holds is loaded when everything that it holds is open. */
bw_status bwi_fitting_open_checkpoints(bwi_fitting *f)
{
    bwi_fit_checkpoints *c = &f->checkpoints;
    bwi_session *s = &f->session;
    c->state = (bwi_fit_state){.model = f->model, .session = s, .watch = &f->watch, .history = f->history};
    bw_status status = bwi_fit_checkpoints_open(c, &f->options);
    if (status == BW_OK && c->found.step >= 0) {
        s->moderate = bwi_training_is_moderate(s->training);
        bwi_exec_touch(s->exec);
        f->stopped = c->state.cursor.stopped != 0;
        if (f->recipe && c->state.cursor.all_updates > 0) {
            bwi_training_set_data(s->training, f->recipe);
            f->recipe = NULL;
            bwi_adapted(f->model);
        }
    }
    return status;
}
