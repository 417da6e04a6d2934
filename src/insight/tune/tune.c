/*
 * bw_tune: measures batch sizes, finds the reference's rate, target and noise, chooses a batch size, finds its rate, and says what
 * the choice rests on. Whatever happens, the model is given back as it was.
 */
#include "insight/tune/tune.h"

#include <math.h>
#include <string.h>

double bwi_tuner_left(const bwi_tuner *t)
{
    return t->options.seconds - t->now;
}

bw_status bwi_tuner_meet(bwi_tuner *t, bw_status status, double *numbers, int count)
{
    t->now = bwi_now() - t->begin;
    if (!t->ctx->ranks) {
        return status;
    }
    status = bwi_ranks_enter(t->ctx, status);
    status = status == BW_OK ? bwi_ranks_take_first(t->ctx, &t->now, 1) : status;
    return status == BW_OK && count > 0 ? bwi_ranks_take_first(t->ctx, numbers, count) : status;
}

bool bwi_tuner_ends(const bwi_tuner *t, double seconds, double most)
{
    return t->ctx->rank == 0 && seconds >= most;
}

/* ---- Words ---- */

/* Says why nothing is recommended. */
static void explain_doubt(bw_tuning *made)
{
    const bw_noise_scale *n = &made->facts.noise;
    if (made->facts.refusal) {
        bwi_print(
            made->reason, sizeof made->reason,
            "the data do not decide: the noise scale cannot be measured, since %s, and no candidate reached the target in the time "
            "that was left",
            made->facts.refusal);
    } else if (isnan(n->trace)) {
        bwi_print(made->reason, sizeof made->reason,
                  "the data do not decide: too few steps were made to measure the noise scale; more time would help");
    } else if (!n->determined) {
        bwi_print(made->reason, sizeof made->reason,
                  "the data do not decide: noise drowns the gradient, and all that is known of its scale is that it is above %.3g",
                  n->low);
    } else {
        bwi_print(made->reason, sizeof made->reason,
                  "the data do not decide: the noise scale lies between %.3g and %.3g samples, and no batch size suits all of that",
                  n->low, n->high);
    }
}

static const bw_tune_row *row_of(const bw_tuning *made, int64_t batch)
{
    for (int i = 0; i < made->facts.rows; i++) {
        if (made->rows[i].batch == batch) {
            return &made->rows[i];
        }
    }
    return NULL;
}

/* Says what the choice rests on: the branches that were trained, or the noise scale and the time of a step. */
static void explain_choice(bw_tuning *made)
{
    const bw_tune_facts *f = &made->facts;
    const bw_tune_row *chosen = row_of(made, f->batch), *reference = row_of(made, f->reference);
    if (f->confirmed) {
        bwi_print(made->reason, sizeof made->reason,
                  "trained from the same state, batch %lld was the first of %d to reach the target", (long long)f->batch,
                  f->branches);
    } else if (!f->noise.determined) {
        bwi_print(made->reason, sizeof made->reason,
                  "the noise scale is above %.3g samples, so up to batch %lld larger batches need fewer steps in proportion",
                  f->noise.low, (long long)f->batch);
    } else if (chosen && reference && chosen != reference) {
        bwi_print(
            made->reason, sizeof made->reason,
            "with a noise scale of %.3g samples, batch %lld needs %.3g times the steps of batch %lld, each of %.3g times the time",
            f->noise.scale, (long long)f->batch, chosen->steps.value / reference->steps.value, (long long)f->reference,
            chosen->step_seconds.value / reference->step_seconds.value);
    } else {
        bwi_print(
            made->reason, sizeof made->reason,
            "with a noise scale of %.3g samples, larger batches save fewer steps than they cost in time, and smaller ones more",
            f->noise.scale);
    }
}

/* ---- The result ---- */

/* Rates of all rows follow by rule from the one that was found. */
static void fill_rows(bwi_tuner *t)
{
    bw_tuning *made = t->made;
    bw_tune_facts *f = &made->facts;
    const bwi_training *training = t->model->training;
    double steps = (double)f->target_samples / (double)f->reference;
    double scale = f->noise.determined ? f->noise.scale : (double)INFINITY;
    for (int i = 0; i < f->rows; i++) {
        bw_tune_row *row = &made->rows[i];
        double rate = f->decided ? f->rate : f->reference_rate;
        bwi_tune_predict(row, &f->noise, f->reference, steps);
        row->rate = bwi_rescale_round(
            bwi_rescale_rate(&training->optimizer, rate, f->decided ? f->batch : f->reference, row->batch, scale), 3);
    }
}

static void settle(bwi_tuner *t)
{
    bw_tuning *made = t->made;
    bw_tune_facts *f = &made->facts;
    f->decided = f->batch > 0;
    fill_rows(t);
    if (!f->decided) {
        f->rate = (double)NAN;
        explain_doubt(made);
        return;
    }
    bwi_optimizer optimizer = ((const bwi_training *)t->model->training)->optimizer;
    bwi_rescale_averages(&optimizer, f->reference, f->batch);
    bwi_rescale_write(&optimizer, f->rate, made->optimizer);
    memcpy(made->values, optimizer.values, sizeof made->values);
    made->row = optimizer.row;
    explain_choice(made);
}

/* ---- Stages ---- */

static bw_status choose(bwi_tuner *t)
{
    bw_tuning *made = t->made;
    bw_tune_facts *f = &made->facts;
    f->rate = (double)NAN;
    bool known = !f->refusal && !isnan(f->noise.trace) && isfinite(f->target_loss);
    bwi_tune_choice choice = {.row = -1};
    if (known) {
        choice = bwi_tune_choose(made->rows, f->rows, &f->noise, f->reference);
    }
    if (choice.row < 0) {
        return BW_OK;
    }
    f->batch = made->rows[choice.row].batch;
    return bwi_tune_rate_for(t, f->batch);
}

static bool stop_at_once(void *user, const bw_progress *progress)
{
    (void)user;
    (void)progress;
    return false;
}

/* One step tells whether the model and the data fit each other, fits layers that are fitted to data, and logs what is worth
 * knowing. Later runs would log the same again, so they are silent. */
static bw_status try_step(bwi_tuner *t)
{
    bw_fit_options options = t->fit;
    options.batch = t->options.reference;
    options.on_step = stop_at_once;
    bw_status status = bwi_training_set_rate(t->model, 0);
    if (status == BW_OK) {
        status = bwi_model_fit(t->model, t->training, &options, NULL);
    }
    bwi_snapshot_rewind(t->snapshot);
    return bwi_tuner_meet(t, status, NULL, 0);
}

static bw_status run(bwi_tuner *t)
{
    bw_status status = try_step(t);
    t->ctx->log = NULL;
    if (status == BW_OK) {
        status = bwi_tune_measure(t);
    }
    if (status == BW_OK) {
        status = bwi_tune_reference(t);
    }
    if (status == BW_OK) {
        status = choose(t);
    }
    if (status == BW_OK && (t->options.confirm > 0 || t->made->facts.refusal)) {
        status = bwi_tune_confirm(t);
    }
    bw_tune_facts *f = &t->made->facts;
    if (status == BW_OK && t->options.tiles) {
        status = bwi_tune_measure_tiles(t, f->batch > 0 ? f->batch : f->reference);
    }
    return status;
}

/* ---- Beginning and end ---- */

static bw_status check_options(bw_context *ctx, const bw_tune_options *o)
{
    if (!(o->seconds > 0 && o->seconds <= 1e6)) {
        return bwi_fail(ctx, BW_INVALID_ARGUMENT, "seconds: expected a time above 0, got %g", o->seconds);
    }
    if (!(o->confirm >= 0 && o->confirm <= 1e6)) {
        return bwi_fail(ctx, BW_INVALID_ARGUMENT, "confirm: expected a time, or 0 for none, got %g", o->confirm);
    }
    if (o->reference < 1 || o->largest < 1) {
        return bwi_fail(ctx, BW_INVALID_ARGUMENT, "%s: expected at least 1 sample, got %lld",
                        o->reference < 1 ? "reference" : "largest", (long long)(o->reference < 1 ? o->reference : o->largest));
    }
    return BW_OK;
}

static bw_status read_options(bwi_tuner *t, const bw_tune_options *options)
{
    t->options = (bw_tune_options)BW_TUNE_OPTIONS_DEFAULT;
    t->fit = (bw_fit_options)BW_FIT_OPTIONS_DEFAULT;
    t->fit.epochs = 10;
    bw_status status = bwi_options_copy(t->ctx, &t->options, sizeof t->options, options, "bw_tune_options");
    if (status == BW_OK) {
        status = bwi_options_copy(t->ctx, &t->fit, sizeof t->fit, t->options.fit, "bw_fit_options");
    }
    return status == BW_OK ? check_options(t->ctx, &t->options) : status;
}

/* Both parts are vectorised, by layers that are fitted to the training part. */
static bw_status open_data(bwi_tuner *t, bw_dataset *dataset, bw_dataset *parts[4])
{
    bw_status status = bwi_dataset_finish(dataset);
    t->training = dataset;
    t->validation = t->fit.validation;
    if (status == BW_OK && t->fit.validation_split > 0) {
        status = bwi_dataset_split(dataset, t->fit.validation_split, &parts[0], &parts[1]);
        t->training = parts[0];
        t->validation = parts[1];
    }
    if (status == BW_OK) {
        status = bwi_front_prepare(t->model, t->training, &parts[2]);
        t->training = parts[2] ? parts[2] : t->training;
    }
    if (status == BW_OK && t->validation) {
        status = bwi_front_data(t->model, t->validation, &parts[3]);
        t->validation = parts[3] ? parts[3] : t->validation;
    }
    if (status == BW_OK) {
        t->samples = bw_dataset_count(t->training);
        t->options.reference = t->options.reference < t->samples ? t->options.reference : t->samples;
        t->made->facts.reference = t->options.reference;
    }
    return status;
}

/* The snapshot is restored after every ending, and so is the log. */
static bw_status tune(bwi_tuner *t, bw_dataset *dataset)
{
    bw_dataset *parts[4] = {NULL, NULL, NULL, NULL};
    void (*log)(void *user, bw_log_level level, const char *message) = t->ctx->log;
    bw_status status = open_data(t, dataset, parts);
    t->fit = bwi_trial_options(&t->fit);
    t->fit.batch_sizes = NULL;
    t->fit.accumulate = 1;
    if (status == BW_OK) {
        status = bwi_model_build_for(t->model, t->training, t->fit.seed);
    }
    if (status == BW_OK) {
        status = bwi_snapshot_take(t->model, &t->snapshot);
    }
    status = bwi_ranks_enter(t->ctx, status);
    if (status == BW_OK) {
        status = run(t);
        t->ctx->log = log;
        bwi_snapshot_restore(t->snapshot);
    }
    if (status == BW_OK) {
        settle(t);
        t->made->facts.seconds = t->now;
    }
    bwi_snapshot_free(t->snapshot);
    for (int i = 3; i >= 0; i--) {
        bw_dataset_free(parts[i]);
    }
    return status;
}

/* A result is given only if everything succeeded. */
static bw_status tune_model(bw_context *ctx, bw_model *model, bw_dataset *dataset, const bw_tune_options *options,
                            bw_tuning **tuning)
{
    bwi_tuner t = {.ctx = ctx, .model = model, .begin = bwi_now()};
    bw_status status = bwi_run_begin(ctx, "tune", model, dataset);
    if (status == BW_OK && !tuning) {
        status = bwi_fail(ctx, BW_INVALID_ARGUMENT, "tune: there is no place for the result: the pointer to it is NULL");
    }
    if (status == BW_OK) {
        status = read_options(&t, options);
    }
    if (status == BW_OK) {
        t.made = bwi_own(ctx, sizeof *t.made, NULL);
        status = t.made ? BW_OK : BW_RESOURCE_EXHAUSTED;
    }
    if (status != BW_OK) {
        return bwi_ranks_enter(ctx, status);
    }
    t.made->ctx = ctx;
    status = tune(&t, dataset);
    if (status == BW_OK) {
        *tuning = t.made;
    } else {
        bwi_disown(t.made);
    }
    return status;
}

bw_status bw_tune(bw_model *model, bw_dataset *dataset, const bw_tune_options *options, bw_tuning **tuning)
{
    bw_context *ctx = bwi_run_context(model, dataset);
    if (tuning) {
        *tuning = NULL;
    }
    bw_status status = ctx ? bwi_call_begin(ctx) : BW_INVALID_ARGUMENT;
    return status == BW_OK ? bwi_call_end(ctx, tune_model(ctx, model, dataset, options, tuning)) : bwi_ranks_enter(ctx, status);
}

static bw_status apply(const bw_tuning *tuning, bw_model *model)
{
    bwi_training *t = model ? bwi_training_of(model) : NULL;
    if (!model || !tuning->facts.decided) {
        return bwi_fail(tuning->ctx, BW_INVALID_ARGUMENT, "bw_tuning_apply: %s",
                        !model ? "there is no model" : "nothing is recommended, since the data do not decide");
    }
    if (!t) {
        return BW_RESOURCE_EXHAUSTED;
    }
    if (t->optimizer.row != tuning->row) {
        return bwi_fail(tuning->ctx, BW_INVALID_ARGUMENT, "bw_tuning_apply: expected a model with the optimizer %s, found %s",
                        tuning->row->name, t->optimizer.row->name);
    }
    memcpy(t->optimizer.values, tuning->values, sizeof t->optimizer.values);
    t->optimizer.average_momentum = (float)t->optimizer.values[t->optimizer.row->common + BWI_COMMON_EMA_MOMENTUM].number;
    t->optimizer.powers.t = 0;
    return bwi_training_set_rate(model, tuning->facts.rate);
}

bw_status bw_tuning_apply(const bw_tuning *tuning, bw_model *model)
{
    bw_context *ctx = tuning ? tuning->ctx : model ? model->ctx : NULL;
    bw_status status = ctx ? bwi_call_begin(ctx) : BW_INVALID_ARGUMENT;
    if (status == BW_OK && !tuning) {
        return bwi_call_end(ctx, bwi_fail(ctx, BW_INVALID_ARGUMENT, "bw_tuning_apply: there is no tuning"));
    }
    return status == BW_OK ? bwi_call_end(ctx, apply(tuning, model)) : status;
}
