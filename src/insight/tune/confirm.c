/*
 * Confirms a choice by training: from the same state, each candidate with its own rate goes on for the same time or until it
 * reaches the target, and the first to reach it is the one that is recommended, whatever was predicted. Where the noise scale
 * cannot be measured, nothing is predicted, and this alone makes the choice.
 */
#include "insight/tune/tune.h"

#include <math.h>

typedef struct candidates {
    int64_t batch[BWI_TUNE_BRANCHES];
    int count;
} candidates;

static void add_candidate(candidates *c, const bw_tuning *made, int64_t batch)
{
    bool known = false;
    for (int i = 0; i < c->count; i++) {
        known = known || c->batch[i] == batch;
    }
    bool measured = false;
    for (int i = 0; i < made->facts.rows; i++) {
        measured = measured || made->rows[i].batch == batch;
    }
    if (measured && !known && c->count < BWI_TUNE_BRANCHES) {
        c->batch[c->count++] = batch;
    }
}

/* The choice and its neighbours, the reference and the knee; without a choice, sizes around the reference. */
static candidates find_candidates(const bw_tuning *made)
{
    const bw_tune_facts *f = &made->facts;
    candidates c = {.count = 0};
    int64_t middle = f->batch > 0 ? f->batch : f->reference;
    add_candidate(&c, made, middle);
    add_candidate(&c, made, f->reference);
    add_candidate(&c, made, f->knee);
    for (int64_t factor = 2; factor <= 64; factor *= 2) {
        if (factor == 2 || f->batch == 0) {
            add_candidate(&c, made, middle * factor);
            add_candidate(&c, made, middle / factor);
        }
    }
    return c;
}

/* The loss on the validation samples, NaN without any. The model has the weights of the branch at this moment. */
static bw_status run_branch(bwi_tuner *tuner, int64_t batch, double seconds)
{
    bw_tuning *made = tuner->made;
    bw_tune_facts *f = &made->facts;
    const bwi_training *training = tuner->model->training;
    double scale = f->noise.determined ? f->noise.scale : (double)INFINITY;
    int64_t from = f->batch > 0 ? f->batch : f->reference;
    double rate = from == f->batch ? f->rate : f->reference_rate;
    bwi_tune_curve *branch = &made->branches[f->branches];
    bwi_trial t = {.batch = batch,
                   .rate = bwi_rescale_round(bwi_rescale_rate(&training->optimizer, rate, from, batch, scale), 3),
                   .growth = 1,
                   .most_seconds = seconds,
                   .target = f->target_loss,
                   .smoothing = (double)f->target_samples / 20,
                   .evaluates = tuner->validation,
                   .most_points = BWI_TUNE_CURVE,
                   .curve = branch->points};
    bw_status status = bwi_trial_run(tuner, &t);
    branch->facts = (bw_tune_branch){.batch = batch,
                                     .rate = t.rate,
                                     .seconds = t.reached ? t.seconds : (double)NAN,
                                     .loss = t.loss,
                                     .validation_loss = t.validation_loss,
                                     .points = t.points};
    f->branches += status == BW_OK;
    return status;
}

/* A candidate that takes longer than the best one so far has lost, so where nobody asked for curves it gets no more than that, and
 * the first one half of the time that is left. */
static double seconds_for(const bwi_tuner *tuner, const bw_tune_branch *best)
{
    double left = bwi_tuner_left(tuner);
    return tuner->options.confirm > 0 ? tuner->options.confirm : best ? fmin(best->seconds, left) : left / 2;
}

bw_status bwi_tune_confirm(bwi_tuner *tuner)
{
    bw_tuning *made = tuner->made;
    bw_tune_facts *f = &made->facts;
    candidates c = find_candidates(made);
    const bw_tune_branch *best = NULL;
    bw_status status = BW_OK;
    for (int i = 0; i < c.count && status == BW_OK && seconds_for(tuner, best) > 0; i++) {
        status = run_branch(tuner, c.batch[i], seconds_for(tuner, best));
        const bw_tune_branch *b = &made->branches[i].facts;
        best = status == BW_OK && !isnan(b->seconds) && (!best || b->seconds < best->seconds) ? b : best;
    }
    if (best) {
        f->confirmed = true;
        f->batch = best->batch;
        f->rate = best->rate;
    }
    return status;
}
