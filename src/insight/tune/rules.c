/*
 * The rules by which a batch size is chosen, as functions of numbers alone. With the gradient noise scale S, a target takes
 * steps(B) = steps_min (1 + S / B) steps, so time(B) = steps(B) times the measured time of a step.
 */
#include "insight/tune/tune.h"

#include <math.h>

#define BEARABLE 1.3 /* the largest regret of a choice */

double bwi_tune_steps(double scale, int64_t batch, int64_t reference)
{
    double b = (double)batch, r = (double)reference;
    return isinf(scale) ? r / b : (1 + scale / b) / (1 + scale / r);
}

static double scale_of(double share, int64_t reference)
{
    return share > 0 ? (double)reference * (1 / fmin(share, 1) - 1) : (double)INFINITY;
}

void bwi_tune_scale(bw_noise_scale *scale, double share, double below, double above, int64_t reference)
{
    scale->low = scale_of(share + above, reference);
    scale->high = scale_of(share - below, reference);
    scale->determined = share > below;
    scale->scale = scale->determined ? scale_of(share, reference) : (double)NAN;
}

/* More noise makes large batches need fewer steps and small ones more, so the ends of the scale's interval give the ends of the
 * prediction's, in one order or the other. */
static bw_estimate between(double value, double one, double other)
{
    return (bw_estimate){.value = value, .low = fmin(one, other), .high = fmax(one, other)};
}

void bwi_tune_predict(bw_tune_row *row, const bw_noise_scale *noise, int64_t reference, double steps)
{
    double b = (double)row->batch;
    double low = steps * bwi_tune_steps(noise->low, row->batch, reference);
    double high = steps * bwi_tune_steps(noise->high, row->batch, reference);
    double value = noise->determined ? steps * bwi_tune_steps(noise->scale, row->batch, reference) : (double)NAN;
    row->steps = between(value, low, high);
    row->samples = between(value * b, low * b, high * b);
    row->seconds = (bw_estimate){.value = value * row->step_seconds.value,
                                 .low = row->steps.low * row->step_seconds.low,
                                 .high = row->steps.high * row->step_seconds.high};
}

int64_t bwi_tune_knee(const bw_tune_row *rows, int count)
{
    double best = 0;
    for (int i = 0; i < count; i++) {
        best = fmax(best, rows[i].samples_per_s);
    }
    for (int i = 0; i < count; i++) {
        if (rows[i].samples_per_s >= 0.9 * best) {
            return rows[i].batch;
        }
    }
    return 0;
}

static double time_of(const bw_tune_row *row, double scale, int64_t reference)
{
    return bwi_tune_steps(scale, row->batch, reference) * row->step_seconds.value;
}

static int quickest(const bw_tune_row *rows, int count, double scale, int64_t reference)
{
    int best = 0;
    for (int i = 1; i < count; i++) {
        best = time_of(&rows[i], scale, reference) < time_of(&rows[best], scale, reference) ? i : best;
    }
    return best;
}

/* By how much a row may be slower than the best one, if the scale lies anywhere in its interval. */
static double regret_of(const bw_tune_row *rows, int count, int row, const bw_noise_scale *noise, int64_t reference)
{
    double scales[3] = {noise->low, noise->determined ? noise->scale : noise->low, noise->high}, regret = 1;
    for (int k = 0; k < 3; k++) {
        double best = time_of(&rows[quickest(rows, count, scales[k], reference)], scales[k], reference);
        regret = fmax(regret, time_of(&rows[row], scales[k], reference) / best);
    }
    return regret;
}

/* The quickest row by the estimate is chosen if it would not be much slower than another anywhere in the interval. Otherwise the
 * row that is best in the worst case is, under the same condition, which also holds where the scale is only known to be large. */
bwi_tune_choice bwi_tune_choose(const bw_tune_row *rows, int count, const bw_noise_scale *noise, int64_t reference)
{
    bwi_tune_choice choice = {.row = -1, .regret = (double)INFINITY};
    if (noise->determined && count > 0) {
        choice.row = quickest(rows, count, noise->scale, reference);
        choice.regret = regret_of(rows, count, choice.row, noise, reference);
    }
    bool settled = choice.regret <= BEARABLE;
    for (int i = 0; i < count && !settled; i++) {
        double regret = regret_of(rows, count, i, noise, reference);
        if (regret < choice.regret) {
            choice = (bwi_tune_choice){.row = i, .regret = regret};
        }
    }
    choice.row = choice.regret <= BEARABLE ? choice.row : -1;
    return choice;
}
