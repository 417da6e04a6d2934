/*
 * fit: epochs of updates over a dataset, in the order and the batches that its options ask for, with validation, callbacks, a
 * history and progress. A failure leaves the model as it was after the last update. fit_open.c prepares what is here run.
 */
#include "train/fitting.h"

#include <math.h>
#include <string.h>

/* The loss comes last, as in Keras's output. */
static void take_values(bwi_fitting *f, int first)
{
    const bwi_session *s = &f->session;
    for (int k = 1; k <= bwi_session_values(s); k++) {
        f->logs->values[first + k - 1] = bwi_session_value(s, k % bwi_session_values(s));
    }
}

static void forget_values(bwi_fitting *f)
{
    for (int c = 0; c < f->logs->columns; c++) {
        f->logs->values[c] = (double)NAN;
    }
}

/* Counts an update. The first one makes the data's recipe the model's. */
static void count_update(bwi_fitting *f, bw_progress *p, int64_t samples)
{
    bwi_training *training = f->session.training;
    bwi_session_count(&f->session);
    p->step++;
    p->update = training->optimizer.iterations;
    p->samples += samples;
    f->history->facts.updates++;
    f->history->facts.samples += samples;
    if (f->recipe) {
        bwi_training_set_data(training, f->recipe);
        f->recipe = NULL;
        bwi_adapted(f->model);
    }
}

static void report_step(bwi_fitting *f, bw_progress *p, double begin)
{
    p->seconds = bwi_now() - begin;
    take_values(f, 0);
    bwi_painter_step(&f->painter, p);
    if (f->every > 0 && p->update % f->every == 0) {
        f->options.tensorboard->calls->step(f->options.tensorboard, p);
    }
    f->stopped = f->options.on_step && !f->options.on_step(f->options.user, p);
}

/* The state that a checkpoint holds is that between two steps. */
static void move_cursor(bwi_fitting *f, const bw_progress *p, int64_t position)
{
    const bw_run_facts *facts = &f->history->facts;
    bwi_cursor *cursor = &f->checkpoints.state.cursor;
    cursor->epoch = p->epoch;
    cursor->position = position;
    cursor->step = p->step;
    cursor->samples = p->samples;
    cursor->all_updates = facts->updates;
    cursor->all_samples = facts->samples;
    cursor->all_skipped = facts->skipped_steps;
}

/* The first rank writes checkpoints; the others show it their slots. */
static bool takes_checkpoints(const bwi_fitting *f)
{
    return f->checkpoints.writer || (f->checkpoints.asked && f->divides);
}

static void end_step(bwi_fitting *f, const bw_progress *p, int64_t position)
{
    if (takes_checkpoints(f)) {
        move_cursor(f, p, position);
        bwi_fit_checkpoints_step(&f->checkpoints, &f->history->facts);
    }
}

/* Leaves out a step that NaN or infinity would have made. The model is as before it, and the random draws of the next step are
 * those that this one would have had. */
static bw_status skip_step(bwi_fitting *f, bw_progress *p, int64_t samples, bw_status status)
{
    bool chosen = f->options.on_nan == BW_NAN_SKIP, nonfinite = bwi_exec_was_nonfinite(f->session.exec);
    f->history->nonfinite = nonfinite && !chosen;
    if (!chosen || !nonfinite || (status != BW_INVALID_ARGUMENT && status != BW_INTERNAL)) {
        return status;
    }
    bwi_session_clear(&f->session);
    f->history->facts.skipped_steps++;
    f->checkpoints.state.cursor.skipped++;
    p->step++;
    p->samples += samples;
    bwi_log(f->ctx, BW_LOG_WARNING, "epoch %d, step %lld is left out: %s", p->epoch + 1, (long long)p->step, f->ctx->message);
    return BW_OK;
}

/* The gradients of an epoch's first update go to who looks on, which adds up the lanes as the update would. All ranks add them,
 * also those where nobody looks on. */
static bw_status show_gradients(bwi_fitting *f, int epoch)
{
    bw_tensorboard *board = f->options.tensorboard;
    int64_t most = 0;
    for (int v = 0; v < f->model->graph.variable_count; v++) {
        const bwi_variable *variable = f->model->graph.variables[v];
        int64_t count = variable->trainable && !variable->sparse ? bwi_shape_count(&variable->shape) : 0;
        most = count > most ? count : most;
    }
    void *staging = board ? board->calls->staging(board, epoch, most) : NULL;
    bw_status status = BW_OK;
    for (int v = 0; (staging || f->ctx->ranks) && v < f->model->graph.variable_count && status == BW_OK; v++) {
        const bwi_variable *variable = f->model->graph.variables[v];
        if (variable->trainable && !variable->sparse) {
            status = bwi_exec_gradient(f->session.exec, variable, staging, NULL);
            if (status == BW_OK && staging) {
                board->calls->gradient(board, variable, staging, bwi_shape_count(&variable->shape), f->session.window_count, epoch);
            }
        }
    }
    return status;
}

/* Finds the next batch of the epoch, which may have to wait for a stream; false if there is none. */
static bool find_batch(bwi_fitting *f, int epoch, bwi_piece *piece)
{
    bwi_exec_step(f->session.exec);
    uint64_t part = bwi_exec_begin_part(f->session.exec);
    piece->count = bwi_dataset_batch_at(f->training, epoch, &piece->first);
    bwi_exec_end_part(f->session.exec, BWI_PART_DATA, part);
    return piece->count > 0;
}

/* Weights are compared every COMPARED updates, before checkpoints whose steps all ranks know, and after epochs. */
static bw_status meet_ranks(bwi_fitting *f, bool epoch)
{
    enum { COMPARED = 64 };
    int64_t updates = f->history->facts.updates, steps = f->checkpoints.asked ? f->checkpoints.times.steps : 0;
    bool compares = epoch || updates % COMPARED == 0 || (steps > 0 && (updates + f->history->facts.skipped_steps) % steps == 0);
    bw_status status = bwi_ranks_meet(f->model, compares, updates, &f->stopped);
    f->differs = status == BW_DATA_LOSS;
    return status;
}

/* The floating-point state is set once here instead of in every call below; callbacks run with the caller's state. */
static bw_status run_steps(bwi_fitting *f, bw_progress *p, double begin)
{
    bwi_session *s = &f->session;
    bwi_piece piece = {.dataset = f->training, .epoch = p->epoch, .first = f->checkpoints.state.cursor.position};
    bwi_float_begin(f->ctx);
    bw_status status = BW_OK;
    while (!f->stopped && find_batch(f, p->epoch, &piece)) {
        bwi_exec_set_seed(s->exec, f->options.seed, (uint64_t)s->training->optimizer.iterations);
        bool measures = f->history->noise && f->history->facts.updates % f->options.noise_every == 0;
        piece.last = !measures && !(f->options.tensorboard && p->step == 0);
        status = bwi_session_feed(s, BWI_PROGRAM_TRAIN, &piece, NULL);
        if (status == BW_OK && measures) {
            status = bwi_noise_take(f->history->noise, s, f->history->facts.updates + 1);
        }
        if (status == BW_OK && f->shows && p->step == 0) {
            status = show_gradients(f, p->epoch);
        }
        if (status == BW_OK) {
            status = bwi_session_apply(s);
        }
        if (status != BW_OK) {
            status = skip_step(f, p, piece.count, status);
            if (status != BW_OK) {
                break;
            }
            piece.first += piece.count;
            end_step(f, p, piece.first);
            continue;
        }
        count_update(f, p, piece.count);
        if (bwi_exec_tracing(s->exec)) {
            bwi_profile_count(f->history->profile, bwi_session_value(s, 0), bwi_memory_resident(f->ctx));
        }
        piece.first += piece.count;
        if (f->painter.file || f->options.on_step || f->every > 0) {
            uint64_t part = bwi_exec_begin_part(s->exec);
            bwi_float_end(f->ctx);
            report_step(f, p, begin);
            bwi_float_begin(f->ctx);
            bwi_exec_end_part(s->exec, BWI_PART_CALLBACKS, part);
        }
        if (f->ctx->ranks) {
            move_cursor(f, p, piece.first); /* the step is done, whatever becomes of the meeting */
            uint64_t part = bwi_exec_begin_part(s->exec);
            status = meet_ranks(f, false);
            bwi_exec_end_part(s->exec, BWI_PART_RANKS, part);
            if (status != BW_OK) {
                break;
            }
        }
        end_step(f, p, piece.first);
    }
    bwi_exec_pause(s->exec, f->stopped);
    bwi_float_end(f->ctx);
    return status;
}

static bw_status run_training(bwi_fitting *f, bw_progress *p)
{
    if (p->step == 0) { /* otherwise a checkpoint had the sums */
        bwi_session_reset(&f->session);
    }
    double begin = bwi_now();
    bw_status status = run_steps(f, p, begin);
    if (status == BW_OK && p->step > 0 && f->checkpoints.state.cursor.skipped == p->step) {
        char last[sizeof f->ctx->message];
        memcpy(last, f->ctx->message, sizeof last);
        status = bwi_fail(f->ctx, BW_INVALID_ARGUMENT, "epoch %d: all of its %lld steps were left out; the last one: %s",
                          p->epoch + 1, (long long)p->step, last);
    }
    if (status == BW_OK) {
        p->seconds = bwi_now() - begin;
        take_values(f, 0);
    }
    return status;
}

static bw_status run_validation(bwi_fitting *f)
{
    bwi_session *s = &f->session;
    int64_t batch = f->options.batch > 0 ? f->options.batch : bwi_dataset_largest_batch(f->training) / f->options.accumulate;
    if (f->checkpoints.writer) {
        bwi_fit_state_validating(&f->checkpoints.state, true);
    }
    bw_status status = bwi_session_evaluate(s, f->validation, batch > 0 ? batch : 1);
    if (status == BW_OK) {
        take_values(f, bwi_session_values(s));
    }
    return status;
}

/* Counts the updates of an epoch. Those of a stream are not known (0), since its epoch ends when the stream does. */
static bw_status count_steps(const bwi_fitting *f, int epoch, int64_t *steps)
{
    bool live = bwi_dataset_live(f->training);
    if (!live && (*steps == 0 || bwi_dataset_batch_varies(f->training))) {
        *steps = bwi_dataset_batch_count(f->training, epoch);
    }
    if (*steps == 0 && !live) {
        return bwi_fail(f->ctx, BW_INVALID_ARGUMENT, "epoch %d: %lld samples do not fill a batch, so all would be dropped", epoch,
                        (long long)bw_dataset_count(f->training));
    }
    return BW_OK;
}

/* The onlookers come before the program's own callback, which may want what they wrote. */
static void record_epoch(bwi_fitting *f, const bw_progress *p)
{
    int noise = f->logs->columns - 1, rate = noise - f->session.noise;
    if (f->session.rates) {
        f->logs->values[rate] = bw_learning_rate(f->model);
    }
    size_t width = (size_t)f->history->width;
    double *values = f->history->values + (size_t)p->epoch * width;
    memcpy(values, f->logs->values, width * sizeof(double));
    if (f->session.noise) { /* no metric, so the progress bar does not show it */
        values[noise] = bwi_noise_end_epoch(f->history->noise);
    }
    f->history->epochs = p->epoch + 1;
    bwi_painter_end(&f->painter, p);
    if (f->options.tensorboard) {
        f->options.tensorboard->calls->epoch(f->options.tensorboard, p);
    }
    bool stops = bwi_watch_epoch(&f->watch, f->history, p->epoch);
    f->checkpoints.state.cursor.stopped = stops;
    f->stopped = stops || f->stopped;
    if (f->options.on_epoch && !f->options.on_epoch(f->options.user, p)) {
        f->stopped = true;
    }
}

/* The next epoch begins with nothing seen of it. */
static void end_epoch(bwi_fitting *f, bw_progress *p)
{
    bwi_cursor *cursor = &f->checkpoints.state.cursor;
    p->epoch++;
    p->step = p->samples = 0;
    move_cursor(f, p, 0);
    cursor->skipped = 0;
    if (takes_checkpoints(f)) {
        bwi_session_reset(&f->session);
        bwi_fit_state_validating(&f->checkpoints.state, false);
        bwi_fit_checkpoints_epoch(&f->checkpoints, &f->history->facts);
    }
}

/* An epoch begins where the cursor stands: at its first sample, or, in the epoch of a checkpoint, after the steps that were
 * made. */
static bw_status run_epoch(bwi_fitting *f, int epoch, int64_t *steps)
{
    bw_status status = count_steps(f, epoch, steps);
    if (status != BW_OK) {
        return status;
    }
    const bwi_cursor *cursor = &f->checkpoints.state.cursor;
    bw_progress p = {.epoch = epoch,
                     .epochs = f->options.epochs,
                     .step = cursor->step,
                     .steps = *steps,
                     .samples = cursor->samples,
                     .logs = f->logs,
                     .history = f->history};
    forget_values(f);
    bwi_painter_epoch(&f->painter, &p);
    status = run_training(f, &p);
    p.steps = bwi_dataset_live(f->training) ? p.step : *steps;
    if (status == BW_OK && f->validation) {
        status = run_validation(f);
    }
    if (status == BW_OK) {
        record_epoch(f, &p);
        status = f->ctx->ranks ? meet_ranks(f, true) : BW_OK;
        if (!f->differs) { /* the epoch is done, whatever became of the meeting */
            end_epoch(f, &p);
        }
    }
    return status;
}

static void take_facts(void *run)
{
    bwi_fitting *f = run;
    bw_run_facts *facts = &f->history->facts;
    const bwi_plan *plan = bwi_exec_plan(f->session.exec);
    facts->seconds = f->checkpoints.seconds_before + bwi_now() - f->begin - f->waited;
    facts->tile = plan->tile;
    facts->lanes = plan->lanes;
    facts->workers = plan->workers;
    facts->exact_kernels = plan->ctx->exact_kernels;
    facts->planned_bytes = bwi_plan_total(plan);
    facts->segments = plan->segments;
    facts->kept_bytes = plan->items.store;
    facts->spilled_bytes = plan->spill_bytes;
    const bwi_optimizer *optimizer = &f->session.training->optimizer;
    bwi_profile_take(f->history->profile, f->session.exec, facts->updates ? (double)facts->samples / (double)facts->updates : 0,
                     optimizer->slot_count + optimizer->averages);
    bwi_measure_take(&f->measure, f->ctx, facts);
}

/* The last checkpoint holds the weights that training changes, so it is taken before averages or those of the best epoch replace
 * them; not if they may be wrong. */
static bw_status run(bwi_fitting *f)
{
    bw_status status = BW_OK;
    int64_t steps = 0;
    f->begin = bwi_now();
    f->history->refresh = take_facts;
    f->history->run = f;
    for (int epoch = (int)f->checkpoints.state.cursor.epoch; epoch < f->options.epochs && !f->stopped && status == BW_OK; epoch++) {
        status = run_epoch(f, epoch, &steps);
    }
    if (takes_checkpoints(f) && !f->differs) {
        double begin = bwi_now();
        bwi_fit_checkpoints_end(&f->checkpoints, &f->history->facts);
        f->waited = bwi_now() - begin;
    }
    if (status == BW_OK) {
        bwi_training_finalize(f->session.training);
        status = f->session.training->optimizer.gathered;
    }
    take_facts(f);
    bwi_profile_take_trace(f->history->profile, f->session.exec);
    bwi_measure_warn(f->ctx, &f->history->facts);
    f->history->refresh = NULL;
    if (status == BW_OK && bwi_watch_end(&f->watch)) {
        bwi_exec_touch(f->session.exec);
    }
    return status;
}

/* Whether the weights and all slots, those of other ranks too, are moderate. */
static bw_status compare_moderate(bwi_fitting *f)
{
    bool large = !f->session.moderate;
    bw_status status = bwi_ranks_meet(f->model, false, 0, &large);
    f->session.moderate = !large;
    return status;
}

/* Ranks begin together, or none does; whoever looks on is told of the beginning and of the end. */
static bw_status fit(bwi_fitting *f, bw_dataset *dataset)
{
    bw_status status = bwi_fitting_prepare(f, dataset);
    bwi_alike alike = bwi_fitting_alike(f);
    status = bwi_ranks_begin(f->ctx, &alike, status);
    if (status == BW_OK && f->ctx->ranks) {
        status = bwi_fitting_divide_slots(f);
    }
    if (status == BW_OK) {
        status = bwi_fitting_open_history(f);
    }
    if (status == BW_OK) {
        status = bwi_watch_open(&f->watch, f->model, &f->options, f->history);
    }
    if (f->checkpoints.asked) {
        status = status == BW_OK ? bwi_fitting_open_checkpoints(f) : status;
        alike = bwi_fitting_alike(f);
        status = bwi_ranks_begin(f->ctx, &alike, status);
        if (status == BW_OK) {
            bwi_fit_checkpoints_begin(&f->checkpoints, &f->history->facts);
        }
    }
    if (status == BW_OK && f->divides) {
        status = compare_moderate(f);
    }
    bw_tensorboard *board = f->options.tensorboard;
    f->shows = board;
    if (f->ctx->ranks && status == BW_OK) {
        status = bwi_ranks_meet(f->model, false, 0, &f->shows);
    }
    if (status == BW_OK && board) {
        bwi_observed observed = {.model = f->model,
                                 .training = f->training,
                                 .options = &f->options,
                                 .history = f->history,
                                 .batch = bwi_dataset_largest_batch(f->training)};
        f->every = board->calls->every(board);
        status = board->calls->begin(board, &observed);
    }
    if (status == BW_OK) {
        status = run(f);
        if (board) {
            board->calls->end(board, status);
        }
    }
    return status;
}

/* What the ranks divided becomes whole once the arena is gone. */
static bw_status release(bwi_fitting *f, bw_status status)
{
    bwi_fit_checkpoints_close(&f->checkpoints);
    bwi_watch_close(&f->watch);
    if (f->open) {
        bwi_session_close(&f->session);
    }
    if (f->divides) {
        char last[sizeof f->ctx->message];
        memcpy(last, f->ctx->message, sizeof last);
        bw_status joined = bwi_portion_join(bwi_training_of(f->model));
        status = status == BW_OK ? joined : bwi_fail(f->ctx, status, "%s", last);
    }
    bwi_disown(f->history);
    bwi_disown(f->logs);
    bw_dataset_free(f->recipe);
    bw_dataset_free(f->fronts[0]);
    bw_dataset_free(f->fronts[1]);
    bw_dataset_free(f->windows);
    bw_dataset_free(f->split[0]);
    bw_dataset_free(f->split[1]);
    return status;
}

bw_status bwi_model_fit(bw_model *model, bw_dataset *dataset, const bw_fit_options *options, bw_history **history)
{
    bw_context *ctx = bwi_run_context(model, dataset);
    bw_status status = bwi_run_begin(ctx, "fit", model, dataset);
    bwi_fitting f = {.ctx = ctx, .model = model, .options = BW_FIT_OPTIONS_DEFAULT};
    if (status == BW_OK) {
        status = bwi_options_copy(ctx, &f.options, sizeof f.options, options, "bw_fit_options");
    }
    if (status != BW_OK) {
        return bwi_ranks_enter(ctx, status);
    }
    if (ctx->rank > 0) { /* the first rank tells and writes */
        f.options.progress = NULL;
        f.options.tensorboard = NULL;
    }
    f.painter.file = f.options.progress;
    f.checkpoints.ctx = ctx;
    f.checkpoints.asked = f.options.checkpoint_dir;
    status = fit(&f, dataset);
    if (history) { /* a run that failed has one, too, with the epochs before the failure */
        *history = f.history;
        f.history = NULL;
    }
    status = release(&f, status);
    return bwi_run_end(ctx, status);
}

bw_status bw_fit(bw_model *model, bw_dataset *dataset, const bw_fit_options *options, bw_history **history)
{
    bw_context *ctx = bwi_run_context(model, dataset);
    if (history) {
        *history = NULL;
    }
    bw_status status = ctx ? bwi_call_begin(ctx) : BW_INVALID_ARGUMENT;
    return status == BW_OK ? bwi_call_end(ctx, bwi_model_fit(model, dataset, options, history)) : bwi_ranks_enter(ctx, status);
}
