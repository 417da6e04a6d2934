/*
 * The search for learning rates. A range test, in which the rate rises from step to step until the loss explodes, tells where to
 * begin; short trainings from the same state, with the rate going up or down as long as that helps, decide. Trainings of the
 * reference are compared by the loss after the same number of samples. What the best of them reaches is the target, and rates of
 * another batch size are compared by the number of samples to it.
 */
#include "insight/tune/tune.h"

#include <math.h>

/* A search upwards and downwards from a rate. */
typedef struct climb {
    bwi_trial first; /* what all trials have in common, with the rate to begin with */
    double factor;
    int most;     /* trials */
    double until; /* no trial begins later, by the tuner's time */
    bwi_trial best;
    int done;
} climb;

/* Near the rate at which a training diverges a lucky one is the quickest, and the next does not arrive: a larger rate must save a
 * tenth of the samples to the target. */
static bool is_better(const bwi_trial *a, double rate, const bwi_trial *b)
{
    static const double WORTH = 0.9;
    if (a->reached != b->reached) {
        return a->reached;
    }
    double most = (rate > b->rate ? WORTH : 1) * (double)b->samples;
    return a->reached ? (double)a->samples < most : a->loss < b->loss;
}

static void record(bw_tuning *made, const bwi_trial *t, double rate)
{
    if (made->facts.rates < BWI_TUNE_RATES) {
        made->rates[made->facts.rates++] =
            (bw_tune_rate){.batch = t->batch, .rate = rate, .loss = t->loss, .samples = t->reached ? t->samples : 0};
    }
}

/* Runs a trial with another rate. One that needs more samples than the best so far need not be run to its end. */
static bw_status try_rate(bwi_tuner *tuner, climb *c, double rate, bool *better)
{
    bwi_trial t = c->first;
    t.rate = bwi_rescale_round(rate, 3);
    t.most_samples = c->done > 0 && c->best.reached ? c->best.samples : t.most_samples;
    bw_status status = bwi_trial_run(tuner, &t);
    if (status != BW_OK) {
        return status;
    }
    record(tuner->made, &t, t.rate);
    *better = c->done == 0 || is_better(&t, t.rate, &c->best);
    if (*better) {
        c->best = t;
    }
    c->done++;
    return BW_OK;
}

static bool may_go_on(const bwi_tuner *tuner, const climb *c)
{
    return c->done < c->most && tuner->now < c->until;
}

/* A first rate that diverges is divided by ten until one does not. */
static bw_status begin_climb(bwi_tuner *tuner, climb *c)
{
    bool better;
    double rate = c->first.rate;
    bw_status status = try_rate(tuner, c, rate, &better);
    while (status == BW_OK && c->best.diverged && may_go_on(tuner, c)) {
        rate /= 10;
        status = try_rate(tuner, c, rate, &better);
    }
    return status;
}

static bw_status run_climb(bwi_tuner *tuner, climb *c)
{
    bw_status status = begin_climb(tuner, c);
    bool moved = false;
    for (int down = 0; down < 2 && status == BW_OK && !moved; down++) {
        bool better = true;
        while (better && status == BW_OK && may_go_on(tuner, c)) {
            status = try_rate(tuner, c, down ? c->best.rate / c->factor : c->best.rate * c->factor, &better);
            moved = moved || better;
        }
    }
    return status;
}

/* ---- The reference ---- */

static double speed_of(const bw_tuning *made, int64_t batch)
{
    for (int i = 0; i < made->facts.rows; i++) {
        if (made->rows[i].batch >= batch) {
            return made->rows[i].samples_per_s;
        }
    }
    return made->facts.rows > 0 ? made->rows[made->facts.rows - 1].samples_per_s : 1;
}

/* The rate goes through seven decades. The one to begin with is a tenth of that at which the loss was smallest: the customary rule,
 * which keeps away from the edge. */
static bw_status test_range(bwi_tuner *tuner, double base, climb *c)
{
    bw_tuning *made = tuner->made;
    double seconds = 0.1 * tuner->options.seconds;
    double steps = fmin(fmax(seconds * speed_of(made, tuner->options.reference) / (double)tuner->options.reference, 40), 150);
    bwi_trial t = {.batch = tuner->options.reference,
                   .rate = base * 1e-3,
                   .growth = pow(10, 7 / steps),
                   .most_samples = (int64_t)steps * tuner->options.reference,
                   .most_seconds = 3 * seconds,
                   .target = (double)NAN,
                   .smoothing = 8.0 * (double)tuner->options.reference,
                   .most_points = BWI_TUNE_POINTS,
                   .curve = made->points};
    bw_status status = bwi_trial_run(tuner, &t);
    made->facts.points = t.points;
    c->first.rate = t.least_rate > base * 1e-2 ? t.least_rate / 10 : base;
    return status;
}

/* The number of samples that the target takes: those of all epochs, or fewer if they would take too long. */
static int64_t target_samples(const bwi_tuner *tuner, double seconds)
{
    double wanted = (double)tuner->fit.epochs * (double)tuner->samples;
    double possible = 0.6 * seconds * speed_of(tuner->made, tuner->options.reference);
    return (int64_t)fmax(fmin(wanted, possible), 20.0 * (double)tuner->options.reference);
}

/* A rate that is kept is trained with once, for target and noise. */
bw_status bwi_tune_reference(bwi_tuner *tuner)
{
    enum { TRIALS = 5 };
    bw_tuning *made = tuner->made;
    const bwi_training *training = tuner->model->training;
    double base = bwi_optimizer_rate(&training->optimizer), slice = 0.4 * tuner->options.seconds / TRIALS;
    bool keep = tuner->options.keep_rate;
    base = base > 0 ? base : 1e-3;
    int64_t samples = target_samples(tuner, slice);
    climb c = {.first = {.batch = tuner->options.reference,
                         .rate = base,
                         .growth = 1,
                         .most_samples = samples,
                         .most_seconds = 4 * slice,
                         .target = (double)NAN,
                         .smoothing = (double)samples / 20,
                         .noise = true},
               .factor = 3,
               .most = keep ? 1 : TRIALS};
    bw_status status = keep ? BW_OK : test_range(tuner, base, &c);
    if (status != BW_OK) {
        return status;
    }
    c.until = tuner->now + slice * TRIALS;
    status = run_climb(tuner, &c);
    made->facts.reference_rate = c.best.rate;
    made->facts.target_loss = c.best.loss;
    made->facts.target_samples = c.best.samples;
    made->facts.noise = c.best.scale;
    made->facts.noise_seen = c.best.seen;
    made->facts.refusal = c.best.refusal;
    return status;
}

/* ---- The chosen batch size ---- */

/* Begins with the rate that follows by rule from the reference's. */
bw_status bwi_tune_rate_for(bwi_tuner *tuner, int64_t batch)
{
    enum { TRIALS = 6 };
    bw_tune_facts *facts = &tuner->made->facts;
    const bwi_training *training = tuner->model->training;
    double scale = facts->noise.determined ? facts->noise.scale : (double)INFINITY;
    double rate = bwi_rescale_rate(&training->optimizer, facts->reference_rate, facts->reference, batch, scale);
    double ratio = bwi_tune_steps(scale, batch, facts->reference) * (double)batch / (double)facts->reference;
    double left = fmax(bwi_tuner_left(tuner), 0.05 * tuner->options.seconds);
    climb c = {.first = {.batch = batch,
                         .rate = rate,
                         .growth = 1,
                         .most_samples = (int64_t)(3 * ratio * (double)facts->target_samples) + batch,
                         .most_seconds = left / 2,
                         .target = facts->target_loss,
                         .smoothing = (double)facts->target_samples / 20},
               .factor = 2,
               .most = TRIALS,
               .until = tuner->now + left};
    facts->rate = bwi_rescale_round(rate, 3);
    if (tuner->options.keep_rate || !isfinite(facts->target_loss)) {
        return BW_OK;
    }
    bw_status status = run_climb(tuner, &c);
    if (status == BW_OK && c.best.reached) {
        facts->rate = c.best.rate;
    }
    return status;
}
