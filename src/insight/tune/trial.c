/*
 * One training from the snapshot, watched step by step. The loss is a running mean that goes back over a number of samples, the
 * same for all batch sizes, so that trials can be compared. A trial that fails after its first step has diverged, since bw_fit
 * refuses gradients that are not finite; one that fails before is the user's to know.
 */
#include "insight/tune/tune.h"

#include <math.h>

enum { LANES = 8, MEASUREMENTS = 400, MOST_EPOCHS = 1 << 14 };

typedef struct watch {
    bwi_tuner *tuner;
    bwi_trial *trial;
    double begin, paused; /* when the first step began, and the time spent here */
    int64_t before;       /* samples of earlier epochs */
    double sum;           /* of the epoch's losses so far */
    int64_t epoch_samples;
    double mean, weight; /* the running mean, which `weight` corrects for its beginning */
    double first;        /* the loss of the first step */
} watch;

/* The history has the mean of the epoch; its growth is the loss of the step. */
static double step_loss(watch *w, const bw_progress *p, int64_t *samples)
{
    if (p->step == 1) {
        w->before += w->epoch_samples;
        w->sum = 0;
        w->epoch_samples = 0;
    }
    double sum = bw_history_last(p->logs, "loss") * (double)p->samples;
    *samples = p->samples - w->epoch_samples;
    double loss = *samples > 0 ? (sum - w->sum) / (double)*samples : (double)NAN;
    w->sum = sum;
    w->epoch_samples = p->samples;
    return loss;
}

static void add_loss(watch *w, double loss, int64_t samples)
{
    double share = -expm1(-(double)samples / w->trial->smoothing);
    w->mean += share * (loss - w->mean);
    w->weight += share * (1 - w->weight);
    w->trial->loss = w->mean / w->weight;
}

static void add_point(bwi_trial *t)
{
    if (!t->curve || t->points >= t->most_points) {
        return;
    }
    if (t->growth > 1) {
        t->curve[t->points++] = (bw_tune_point){.x = t->rate, .loss = t->loss};
    } else if (t->seconds >= t->most_seconds * t->points / t->most_points) {
        t->curve[t->points++] = (bw_tune_point){.x = t->seconds, .loss = t->loss};
    }
}

/* A range test has seen enough when the loss is four times the smallest; another run, when it is far above its beginning. */
static bool has_diverged(const watch *w)
{
    const bwi_trial *t = w->trial;
    return !isfinite(t->loss) || t->loss > (t->growth > 1 ? 4 * t->least : 10 * fabs(w->first) + 1);
}

/* The running mean must have gone back over its samples once before it can reach the target: single losses of the beginning do
 * not. */
static bool on_step(void *user, const bw_progress *p)
{
    watch *w = user;
    bwi_trial *t = w->trial;
    int64_t samples;
    double loss = step_loss(w, p, &samples);
    w->first = t->steps == 0 ? loss : w->first;
    t->steps++;
    t->samples = w->before + p->samples;
    t->seconds = bwi_now() - w->begin;
    add_loss(w, loss, samples);
    if (t->steps >= 8 && t->loss < t->least) {
        t->least = t->loss;
        t->least_rate = t->rate;
    }
    add_point(t);
    t->diverged = (t->steps >= 8 || !isfinite(loss)) && has_diverged(w);
    t->reached = !t->diverged && t->loss <= t->target && (double)t->samples >= t->smoothing;
    if (t->growth > 1) {
        t->rate *= t->growth;
        bwi_training_set_rate(w->tuner->model, t->rate);
    }
    bool enough = (t->most_samples > 0 && t->samples >= t->most_samples) || bwi_tuner_ends(w->tuner, t->seconds, t->most_seconds);
    return !t->diverged && !t->reached && !enough;
}

/* Chooses small tiles and several lanes for the noise scale, which is estimated from the differences between lanes. */
static void ask_for_noise(const bwi_tuner *tuner, bw_fit_options *fit, const bwi_trial *t)
{
    int64_t samples = t->most_samples > 0 ? t->most_samples : tuner->samples;
    int64_t every = samples / t->batch / MEASUREMENTS;
    int lanes = LANES;
    while (lanes > 2 && lanes > t->batch) {
        lanes /= 2;
    }
    while (lanes < bw_ranks_count(tuner->ctx->ranks)) {
        lanes *= 2;
    }
    fit->noise_every = every > 1 ? (int)every : 1;
    fit->lanes = lanes;
    fit->tile = t->batch / lanes > 0 ? t->batch / lanes : 1;
}

/* The scale belongs to a moment of training. With u = 1 / (1 + S / R), the share of signal in steps of the reference R, the steps
 * of a batch B relative to it are u + (1 - u) R / B at that moment, and so they are over all moments with the mean of u. The scale
 * that belongs to this mean is what predictions need: R (1 / u - 1). The very beginning is left out, and errors of intervals are
 * independent. */
static void take_noise(bwi_trial *t, const bw_history *history)
{
    enum { INTERVALS = 6 };
    bw_noise_facts facts = bw_history_noise(history);
    double share = 0, below = 0, above = 0, r = (double)t->batch;
    t->refusal = facts.refusal;
    t->seen = !isnan(facts.seen.signal);
    t->scale = t->seen ? facts.seen : facts.raw;
    for (int k = 0; k < INTERVALS; k++) {
        double from = 0.1 + 0.9 * k / INTERVALS;
        bw_estimate u = bwi_history_signal_share(history, from, from + 0.9 / INTERVALS, t->seen, r);
        share += u.value / INTERVALS;
        below += (u.value - u.low) * (u.value - u.low);
        above += (u.high - u.value) * (u.high - u.value);
    }
    if (!isnan(share)) {
        bwi_tune_scale(&t->scale, share, sqrt(below) / INTERVALS, sqrt(above) / INTERVALS, t->batch);
    }
}

static bw_status fit(bwi_tuner *tuner, bwi_trial *t, bw_fit_options *options, bw_history **history)
{
    bw_status status = bwi_training_set_rate(tuner->model, t->rate);
    if (status == BW_OK) {
        bwi_optimizer *o = &((bwi_training *)tuner->model->training)->optimizer;
        bwi_rescale_averages(o, tuner->options.reference, t->batch);
        status = bwi_model_fit(tuner->model, tuner->training, options, history);
    }
    return status;
}

static bw_status evaluate(bwi_tuner *tuner, bwi_trial *t)
{
    bw_history *result = NULL;
    bw_status status = bwi_model_evaluate(tuner->model, tuner->validation, &result);
    t->validation_loss = bw_history_last(result, "loss");
    bwi_disown(result);
    return status;
}

/* The curve of a run without growth is one over time, which only the first rank's clock tells. */
static bw_status meet(bwi_tuner *tuner, bwi_trial *t, bw_status status)
{
    double numbers[2 + 2 * BWI_TUNE_CURVE] = {t->seconds, t->points};
    bool over_time = t->curve && !(t->growth > 1);
    for (int k = 0; k < t->points && over_time; k++) {
        numbers[2 + 2 * k] = t->curve[k].x;
        numbers[3 + 2 * k] = t->curve[k].loss;
    }
    status = bwi_tuner_meet(tuner, status, numbers, over_time ? (int)BWI_COUNT(numbers) : 1);
    t->seconds = numbers[0];
    t->points = (int)numbers[1];
    for (int k = 0; k < t->points && over_time; k++) {
        t->curve[k] = (bw_tune_point){.x = numbers[2 + 2 * k], .loss = numbers[3 + 2 * k]};
    }
    return status;
}

/* Trains from the snapshot and returns to it. Without memory for separate lanes the trial runs with the plan's own. */
bw_status bwi_trial_run(bwi_tuner *tuner, bwi_trial *t)
{
    watch w = {.tuner = tuner, .trial = t, .begin = bwi_now()};
    bw_fit_options options = tuner->fit;
    bw_history *history = NULL;
    options.batch = t->batch;
    options.epochs = MOST_EPOCHS;
    options.on_step = on_step;
    options.user = &w;
    t->least = (double)INFINITY;
    t->least_rate = t->rate;
    t->loss = (double)NAN;
    t->validation_loss = (double)NAN;
    if (t->noise) {
        ask_for_noise(tuner, &options, t);
    }
    bwi_snapshot_rewind(tuner->snapshot);
    bw_status status = fit(tuner, t, &options, &history);
    if (t->noise && status == BW_RESOURCE_EXHAUSTED && t->steps == 0) { /* a budget that has no place for more lanes */
        options.lanes = tuner->fit.lanes;
        options.tile = tuner->fit.tile;
        bwi_snapshot_rewind(tuner->snapshot);
        status = fit(tuner, t, &options, &history);
    }
    if (t->noise && history) {
        take_noise(t, history);
    }
    if (status == BW_INVALID_ARGUMENT && t->steps > 0) {
        t->diverged = true;
        status = BW_OK;
    }
    if (status == BW_OK && t->evaluates && !t->diverged) {
        status = evaluate(tuner, t);
    }
    if (t->diverged) {
        t->loss = (double)INFINITY;
    }
    bwi_disown(history);
    bwi_snapshot_rewind(tuner->snapshot);
    return meet(tuner, t, status);
}
