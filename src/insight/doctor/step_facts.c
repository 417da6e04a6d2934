/*
 * Facts from updates on trial: the model is trained as its options say, for at most some seconds, and then given back as it was.
 * Where the loss does not fall as it should, the same updates are made again from the same state with another learning rate: what
 * helps is found by trying it.
 */
#include "insight/doctor/doctor.h"

#include <math.h>
#include <string.h>

enum { LOOKED_AT = 200, MOST_UPDATES = 1000, NOISE_UPDATES = 100 };

/* ---- One trial ---- */

typedef struct trial {
    double until;
    int64_t updates, most;
    int epoch;
    double before, samples; /* of the epoch: sum of losses so far, and samples */
    double loss[LOOKED_AT];
} trial;

/* A row has the running mean of its epoch, weighted by samples, so the loss of one update is a difference of sums. */
static bool on_step(void *user, const bw_progress *progress)
{
    trial *t = user;
    if (progress->epoch != t->epoch || progress->step == 1) {
        t->epoch = progress->epoch;
        t->before = t->samples = 0;
    }
    double sum = bw_history_last(progress->logs, "loss") * (double)progress->samples,
           samples = (double)progress->samples - t->samples;
    if (t->updates < LOOKED_AT) {
        t->loss[t->updates] = samples > 0 ? (sum - t->before) / samples : 0;
    }
    t->before = sum;
    t->samples = (double)progress->samples;
    t->updates++;
    return t->updates < t->most && (t->updates < 2 || bwi_now() < t->until);
}

/* The mean of the last losses, how far chance may move it, and the mean of the losses that the first updates led to. */
static void summarise(bwi_trial_facts *facts, const trial *t)
{
    int64_t count = t->updates < LOOKED_AT ? t->updates : LOOKED_AT, part = count / 10 > 5 ? count / 10 : 5;
    double sum = 0, squares = 0, n = (double)part;
    facts->updates = count;
    facts->early = 0;
    for (int64_t i = 1; i < BWI_FEWEST_UPDATES && count >= BWI_FEWEST_UPDATES; i++) {
        facts->early += t->loss[i] / (BWI_FEWEST_UPDATES - 1);
    }
    if (count < 2 * part) {
        return;
    }
    for (int64_t i = count - part; i < count; i++) {
        sum += t->loss[i];
        squares += t->loss[i] * t->loss[i];
    }
    facts->last = sum / n;
    facts->error = sqrt(fmax(0, squares / n - facts->last * facts->last) / (n - 1));
}

static bw_fit_options options_of(const bwi_doctor *d, trial *t)
{
    bw_fit_options options = bwi_trial_options(&d->options);
    int64_t per_epoch = d->updates_per_epoch > 0 ? d->updates_per_epoch : 1;
    options.on_step = on_step;
    options.user = t;
    options.epochs = (int)(t->most / per_epoch + 1);
    return options;
}

/* A loss or gradient that is not finite is what was looked for; every other failure is passed on. */
static bw_status train(bwi_doctor *d, trial *t, const bw_fit_options *options, bwi_trial_facts *facts, bw_history **history)
{
    facts->rate = bw_learning_rate(d->model);
    bw_status status = bwi_model_fit(d->model, d->training, options, history);
    if (status == BW_INVALID_ARGUMENT && (t->updates > 0 || bwi_history_is_nonfinite(*history))) {
        facts->failed = true;
        snprintf(facts->message, sizeof facts->message, "%s", bw_message(d->ctx));
        status = BW_OK;
    }
    summarise(facts, t);
    facts->updates = facts->failed && facts->updates == 0 ? 1 : facts->updates;
    return status;
}

/* The same updates from the same state with another rate. */
static bw_status try_rate(bwi_doctor *d, const bwi_snapshot *start, double rate, double seconds, bwi_trial_facts *facts)
{
    bwi_snapshot_rewind(start);
    trial t = {.until = bwi_now() + seconds, .most = d->steps.trial.failed ? LOOKED_AT : d->steps.trial.updates};
    bw_fit_options options = options_of(d, &t);
    bw_status status = bwi_training_set_rate(d->model, rate);
    bw_history *history = NULL;
    facts->first = d->steps.trial.first;
    status = status == BW_OK ? train(d, &t, &options, facts, &history) : status;
    bw_history_free(history);
    return status;
}

/* ---- The gradient noise scale ---- */

/* A batch of one tile shows no noise; with smaller tiles it does, so some updates are made with those. */
static bw_status find_noise(bwi_doctor *d, const bwi_snapshot *start, const bw_history *history, double seconds)
{
    bw_noise_facts noise = bw_history_noise(history);
    bw_status status = BW_OK;
    bw_history *again = NULL;
    if (2 * noise.steps < d->steps.trial.updates && !noise.refusal && d->batch >= 8 && !d->steps.trial.failed) {
        bwi_snapshot_rewind(start);
        trial t = {.until = bwi_now() + seconds, .most = NOISE_UPDATES};
        bwi_trial_facts unused = {.updates = 0};
        bw_fit_options options = options_of(d, &t);
        options.noise_every = 1;
        options.tile = d->batch / 8;
        status = train(d, &t, &options, &unused, &again);
        noise = bw_history_noise(again);
    }
    d->steps.noise_steps = noise.refusal ? 0 : noise.steps;
    d->steps.noise = noise.raw;
    bw_history_free(again);
    return status;
}

/* ---- Speed ---- */

static bool on_timed_step(void *user, const bw_progress *progress)
{
    trial *t = user;
    (void)progress;
    t->updates++;
    return t->updates < 2 || bwi_now() < t->until;
}

/* Where the time of a step goes is measured by updates at which nothing else is: what the noise scale costs would be taken for a
 * part of the user's step. There are as many epochs as on trial, so the plan is the same. Where there is no time for as many
 * updates as the ledger needs, those on trial have to do. */
static bw_status find_speed(bwi_doctor *d, const bwi_snapshot *start, const bw_history *trial_history, double seconds)
{
    trial t = {.until = bwi_now() + seconds, .most = MOST_UPDATES};
    bw_fit_options options = options_of(d, &t);
    bw_history *history = NULL;
    bw_status status = BW_OK;
    if (!d->steps.trial.failed) {
        bwi_snapshot_rewind(start);
        options.on_step = on_timed_step;
        status = train(d, &t, &options, &(bwi_trial_facts){.updates = 0}, &history);
    }
    if (status == BW_OK && history && bw_history_profile(history).parts > 0) {
        bwi_speed_facts_find(&d->steps.speed, d->ctx, history);
    } else if (status == BW_OK) {
        bwi_speed_facts_find(&d->steps.speed, d->ctx, trial_history);
    }
    bw_history_free(history);
    return status;
}

/* ---- All trials ---- */

bool bwi_trial_is_thrown(const bwi_trial_facts *facts)
{
    return !facts->failed && facts->updates >= BWI_FEWEST_UPDATES && !(facts->early <= 3 * fabs(facts->first));
}

/* Whether the loss fell so little, or rose, that another rate should be tried. */
static bool is_doubtful(const bwi_trial_facts *facts)
{
    bool fell = facts->updates < BWI_FEWEST_UPDATES || facts->last < 0.95 * facts->first;
    return facts->failed || !fell || bwi_trial_is_thrown(facts);
}

bool bwi_trial_stays(const bwi_trial_facts *other, const bwi_trial_facts *given)
{
    bool comparable = !other->failed && other->updates >= BWI_FEWEST_UPDATES;
    return comparable && !bwi_trial_is_thrown(other) && other->last <= given->last + 3 * given->error;
}

/* Rates that are a tenth, a hundredth and a thousandth, until one helps; or as many times as large. */
static bw_status try_direction(bwi_doctor *d, const bwi_snapshot *start, double factor, double until, bwi_trial_facts *facts)
{
    const bwi_trial_facts *given = &d->steps.trial;
    bw_status status = BW_OK;
    double rate = given->rate;
    for (int k = 0; k < 3 && status == BW_OK && (k == 0 || bwi_now() < until); k++) {
        bwi_trial_facts other = {.updates = 0};
        rate *= factor;
        status = try_rate(d, start, rate, until - bwi_now(), &other);
        if (!other.failed && other.updates < BWI_FEWEST_UPDATES) {
            break; /* there was no time for it */
        }
        bool thrown = bwi_trial_is_thrown(facts) && !bwi_trial_is_thrown(&other);
        bool better = !other.failed && (facts->failed || thrown || other.last < facts->last);
        *facts = facts->updates == 0 || better ? other : *facts;
        bool stays = !facts->failed && !bwi_trial_is_thrown(facts);
        if (stays && facts->last < 0.8 * fmin(given->first, given->failed ? given->first : given->last)) {
            break;
        }
    }
    return status;
}

static bw_status try_rates(bwi_doctor *d, const bwi_snapshot *start, double seconds)
{
    bwi_step_facts *s = &d->steps;
    if (!is_doubtful(&s->trial) || !(s->trial.rate > 0)) {
        return BW_OK;
    }
    bw_status status = try_direction(d, start, 0.1, bwi_now() + seconds, &s->slower);
    if (status == BW_OK && !s->trial.failed && !bwi_trial_is_thrown(&s->trial)) {
        status = try_direction(d, start, 10, bwi_now() + seconds, &s->faster);
    }
    return status;
}

/* Without a budget the plan has the tile that suits the model, and keeps all that it would like to keep. */
static bw_status find_wanted(bwi_doctor *d)
{
    bw_plan_options options = BW_PLAN_OPTIONS_DEFAULT;
    options.memory = BWI_NO_BUDGET;
    options.lanes = d->options.lanes;
    options.tile = d->options.tile;
    bw_plan *plan = bw_plan_make(d->model, d->training, d->batch > 0 ? d->batch : 1, &options);
    if (!plan) {
        return bwi_pending(d->ctx);
    }
    d->steps.tile_wanted = bw_plan_facts(plan).tile;
    d->steps.wanted_bytes = bw_plan_facts(plan).peak_bytes;
    bw_plan_free(plan);
    return BW_OK;
}

/* The gradients before the first update, with layers that the trial has fitted. One that is not finite is known from the trial. */
static bw_status find_before(bwi_doctor *d, const bwi_snapshot *start, const bw_fit_options *options)
{
    bwi_snapshot_rewind(start);
    bw_status status = bwi_gradient_facts_find(&d->steps.before, d->model, d->training, options);
    d->steps.trial.first = status == BW_OK ? d->steps.before.loss : 0;
    if (status == BW_INVALID_ARGUMENT && d->steps.trial.failed) {
        (void)bwi_pending(d->ctx);
        status = BW_OK;
    }
    return status;
}

/* What depends on the state comes first, then the trials that change it again. */
static bw_status run_trials(bwi_doctor *d, const bwi_snapshot *start, double seconds)
{
    bwi_step_facts *s = &d->steps;
    trial t = {.until = bwi_now() + seconds / 2, .most = MOST_UPDATES};
    bw_fit_options options = options_of(d, &t);
    bw_history *history = NULL;
    options.noise_every = 1;
    bw_status status = train(d, &t, &options, &s->trial, &history);
    if (status == BW_OK && history) {
        s->run = bw_history_facts(history);
        s->after.updates = t.updates;
    }
    if (status == BW_OK && !s->trial.failed) {
        status = bwi_gradient_facts_find(&s->after, d->model, d->training, &options);
    }
    if (status == BW_OK) {
        status = find_before(d, start, &options);
    }
    if (status == BW_OK && history) {
        status = find_noise(d, start, history, seconds / 4);
    }
    if (status == BW_OK && history) {
        status = find_speed(d, start, history, seconds / 8);
    }
    bw_history_free(history);
    return status == BW_OK ? try_rates(d, start, seconds / 4) : status;
}

bw_status bwi_step_facts_find(bwi_doctor *d, double seconds)
{
    bwi_snapshot *start = NULL;
    bw_status status = bwi_snapshot_take(d->model, &start);
    if (status != BW_OK) {
        return status;
    }
    d->steps.ran = true;
    status = run_trials(d, start, seconds);
    bwi_snapshot_restore(start);
    bwi_snapshot_free(start);
    return status == BW_OK ? find_wanted(d) : status;
}
