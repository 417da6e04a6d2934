/*
 * Records the course of a training for its run directory (steps.json). A run may have any number of steps, so points are kept at
 * distances that double whenever there are CLI_RECORD_POINTS of them: neighbours are merged, their losses averaged over the
 * samples. A step that is not kept costs one comparison.
 */
#include "cli/cli.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct cli_point {
    int64_t step;
    int epoch;
    double samples, seconds, loss;                 /* since the previous point, or since the epoch began */
    double noise_steps, noise_trace, noise_signal; /* sums since the previous point */
    double rate;
    double values[CLI_RECORD_COLUMNS]; /* metrics: means of the epoch so far */
};

/* The columns are those of the first step that have a value: validation has none yet, and the loss is kept apart. */
static void open_columns(cli_record *r, const bw_history *logs)
{
    for (int c = 0; c < bw_history_columns(logs) && r->columns < CLI_RECORD_COLUMNS; c++) {
        const char *name = bw_history_column(logs, c);
        if (!isnan(bw_history_last(logs, name)) && strcmp(name, "loss") != 0 && strcmp(name, "learning_rate") != 0) {
            snprintf(r->names[r->columns++], sizeof r->names[0], "%s", name);
        }
    }
}

/* The pages are touched now, so that they do not count as memory of the plan. */
void cli_record_open(cli_record *record)
{
    size_t bytes = CLI_RECORD_POINTS * sizeof *record->points;
    *record = (cli_record){.every = 1, .next = 1, .epoch = -1, .points = malloc(bytes)};
    if (record->points) {
        memset(record->points, 0xFF, bytes);
    }
}

/* Merges each point with the one after it. */
static void halve(cli_record *r)
{
    for (int k = 0; k < CLI_RECORD_POINTS / 2; k++) {
        struct cli_point a = r->points[2 * k], b = r->points[2 * k + 1];
        double samples = a.samples + b.samples;
        b.loss = samples > 0 ? (a.loss * a.samples + b.loss * b.samples) / samples : b.loss;
        b.samples = samples;
        b.seconds += a.seconds;
        b.noise_steps += a.noise_steps;
        b.noise_trace += a.noise_trace;
        b.noise_signal += a.noise_signal;
        r->points[k] = b;
    }
    r->count = CLI_RECORD_POINTS / 2;
    r->every *= 2;
}

/* The history has means over the run so far; the difference to the last point's sums belongs to this point. */
static void take_noise(cli_record *r, struct cli_point *p, const bw_history *history)
{
    bw_noise_facts facts = bw_history_noise(history);
    double n = (double)facts.steps;
    if (facts.steps < 2) {
        return;
    }
    p->noise_steps = n - r->noise_steps;
    p->noise_trace = facts.raw.trace * n - r->noise_trace;
    p->noise_signal = facts.raw.signal * n - r->noise_signal;
    r->noise_steps = n;
    r->noise_trace = facts.raw.trace * n;
    r->noise_signal = facts.raw.signal * n;
}

/* Adds a point. The means of an epoch begin anew with it, so their differences do as well. */
static void take(cli_record *r, const bw_model *model, const bw_progress *progress)
{
    struct cli_point *p = &r->points[r->count++];
    if (progress->epoch != r->epoch) {
        r->epoch = progress->epoch;
        r->samples = r->loss = r->seconds = 0;
    }
    double samples = (double)progress->samples, loss = bw_history_last(progress->logs, "loss") * samples;
    *p = (struct cli_point){.step = r->updates,
                            .epoch = progress->epoch,
                            .samples = samples - r->samples,
                            .seconds = progress->seconds - r->seconds,
                            .rate = bw_learning_rate(model)};
    p->loss = p->samples > 0 ? (loss - r->loss) / p->samples : (double)NAN;
    for (int c = 0; c < r->columns; c++) {
        p->values[c] = bw_history_last(progress->logs, r->names[c]);
    }
    take_noise(r, p, progress->history);
    r->samples = samples;
    r->loss = loss;
    r->seconds = progress->seconds;
    if (r->count == CLI_RECORD_POINTS) {
        halve(r);
    }
    r->next = r->updates + r->every;
}

void cli_record_step(cli_record *record, const bw_model *model, const bw_progress *progress)
{
    if (++record->updates < record->next) {
        return;
    }
    if (record->updates == 1) {
        open_columns(record, progress->logs);
    }
    if (record->points) {
        take(record, model, progress);
    }
}

void cli_record_epoch(cli_record *record, const bw_progress *progress)
{
    (void)progress;
    if (record->epochs == record->epoch_capacity) {
        int capacity = record->epoch_capacity > 0 ? 2 * record->epoch_capacity : 64;
        int64_t *ends = realloc(record->epoch_ends, (size_t)capacity * sizeof *ends);
        if (!ends) {
            return;
        }
        record->epoch_ends = ends;
        record->epoch_capacity = capacity;
    }
    record->epoch_ends[record->epochs++] = record->updates;
}

void cli_record_free(cli_record *record)
{
    free(record->points);
    free(record->epoch_ends);
    *record = (cli_record){0};
}

int cli_record_losses(const cli_record *record, double *losses, int most)
{
    int count = record->count < most ? record->count : most;
    for (int k = 0; k < count; k++) {
        int first = (int)((int64_t)k * record->count / count), end = (int)(((int64_t)k + 1) * record->count / count);
        double sum = 0, samples = 0;
        for (int j = first; j < end; j++) {
            sum += record->points[j].loss * record->points[j].samples;
            samples += record->points[j].samples;
        }
        losses[k] = samples > 0 ? sum / samples : (double)NAN;
    }
    return count;
}

/* ---- JSON ------------------------------------------------------------------------------------------------ */

/* The noise scale of one point would be a ratio of two rough estimates, so sums over a window of points before it are divided. */
static double noise_at(const cli_record *r, int k)
{
    int window = r->count / 16 > 8 ? r->count / 16 : 8;
    double steps = 0, trace = 0, signal = 0;
    for (int j = k; j >= 0 && j > k - window; j--) {
        steps += r->points[j].noise_steps;
        trace += r->points[j].noise_trace;
        signal += r->points[j].noise_signal;
    }
    return steps >= 4 && signal > 0 && trace > 0 ? trace / signal : (double)NAN;
}

/* One step of microseconds is at the mercy of the machine, so the speed is that of a few points together. */
static double speed_at(const cli_record *r, int k)
{
    int window = r->count / 64 > 4 ? r->count / 64 : 4;
    double samples = 0, seconds = 0;
    for (int j = k; j >= 0 && j > k - window; j--) {
        samples += r->points[j].samples;
        seconds += r->points[j].seconds;
    }
    return seconds > 0 ? samples / seconds : (double)NAN;
}

enum { STEP, EPOCH, LOSS, SPEED, RATE, NOISE, FIXED };

static double value_at(const cli_record *r, int k, int column)
{
    const struct cli_point *p = &r->points[k];
    switch (column) {
    case STEP:
        return (double)p->step;
    case EPOCH:
        return p->epoch;
    case LOSS:
        return p->loss;
    case SPEED:
        return speed_at(r, k);
    case RATE:
        return p->rate;
    case NOISE:
        return noise_at(r, k);
    default:
        return p->values[column - FIXED];
    }
}

void cli_record_json(cli_json *json, const char *key, const cli_record *record)
{
    static const char *const names[FIXED] = {"step", "epoch", "loss", "samples_per_s", "learning_rate", "noise_scale"};
    cli_json_object(json, key);
    for (int c = 0; c < FIXED + record->columns; c++) {
        if (c == NOISE && record->noise_steps == 0) {
            continue;
        }
        cli_json_array(json, c < FIXED ? names[c] : record->names[c - FIXED]);
        for (int k = 0; k < record->count; k++) {
            cli_json_rounded(json, NULL, value_at(record, k, c));
        }
        cli_json_array_end(json);
    }
    cli_json_spread_array(json, "epoch_end", record->epochs, CLI_RECORD_POINTS);
    for (int k = 0; k < record->epochs && k < CLI_RECORD_POINTS; k++) {
        cli_json_whole(json, NULL, record->epoch_ends[cli_json_spread(k, record->epochs, CLI_RECORD_POINTS)]);
    }
    cli_json_spread_array_end(json, record->epochs, CLI_RECORD_POINTS);
    cli_json_object_end(json);
}
