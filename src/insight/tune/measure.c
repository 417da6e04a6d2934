/*
 * The throughput and the memory of batch sizes and tiles. All are measured in rounds, one after another, so that what disturbs the
 * machine for a while disturbs all of them, and the median of the rounds counts. The learning rate is zero meanwhile, since a model
 * that diverges would stop.
 */
#include "insight/tune/tune.h"

#include <math.h>
#include <stdlib.h>

enum { ROUNDS = 5, LEAST_STEPS = 3, MOST_EPOCHS = 1 << 14 };

/* What is measured: samples of a batch size with a tile (0: the plan's own), and the times of a sample in each round. */
typedef struct subject {
    int64_t batch, tile;
    double sample_seconds[ROUNDS];
    int rounds;
    size_t peak_bytes;
    int64_t tile_used;
} subject;

typedef struct stopwatch {
    const bwi_tuner *tuner;
    double begin, seconds, limit;
    int64_t steps, samples, epoch_samples;
    bool by_epochs;
} stopwatch;

/* The first step prepares much that the others find, so the clock begins after it. */
static bool on_step(void *user, const bw_progress *p)
{
    stopwatch *w = user;
    double now = bwi_now();
    int64_t samples = p->step == 1 ? p->samples : p->samples - w->epoch_samples;
    w->epoch_samples = p->samples;
    if (w->steps++ == 0) {
        w->begin = now;
        return true;
    }
    w->samples += samples;
    w->seconds = now - w->begin;
    return w->steps < LEAST_STEPS || !bwi_tuner_ends(w->tuner, w->seconds, w->limit);
}

/* Where epochs are short, whole epochs are timed: a callback in every step would take as long as the step of a tiny model. */
static bool on_epoch(void *user, const bw_progress *p)
{
    stopwatch *w = user;
    if (p->epoch > 0) {
        w->samples += p->samples;
        w->seconds += p->seconds;
    }
    return p->epoch < 2 || !bwi_tuner_ends(w->tuner, w->seconds, w->limit);
}

/* One round of one subject. Memory that is too small to be measured counts as planned. */
static bw_status time_subject(bwi_tuner *tuner, subject *s, double seconds)
{
    double last = s->rounds > 0 ? s->sample_seconds[s->rounds - 1] : (double)INFINITY;
    stopwatch w = {.tuner = tuner, .limit = seconds};
    bw_fit_options options = tuner->fit;
    bw_history *history = NULL;
    w.by_epochs = last * (double)tuner->samples < seconds / 3;
    options.batch = s->batch;
    options.tile = s->tile > 0 ? s->tile : options.tile;
    options.epochs = MOST_EPOCHS;
    options.on_step = w.by_epochs ? NULL : on_step;
    options.on_epoch = w.by_epochs ? on_epoch : NULL;
    options.user = &w;
    bwi_snapshot_rewind(tuner->snapshot);
    bw_status status = bwi_training_set_rate(tuner->model, 0);
    if (status == BW_OK) {
        status = bwi_model_fit(tuner->model, tuner->training, &options, &history);
    }
    bwi_snapshot_rewind(tuner->snapshot);
    status = bwi_tuner_meet(tuner, status, &w.seconds, 1);
    if (status == BW_OK && w.samples > 0) {
        bw_run_facts facts = bw_history_facts(history);
        /* What was freed by the sizes before is used again, so that the process may grow by less than a training takes. */
        size_t peak = facts.peak_bytes > facts.planned_bytes ? facts.peak_bytes : facts.planned_bytes;
        s->sample_seconds[s->rounds++] = w.seconds / (double)w.samples;
        s->peak_bytes = peak > s->peak_bytes ? peak : s->peak_bytes;
        s->tile_used = facts.tile;
    }
    bwi_disown(history);
    return status;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The first round is left out if there are others: it warmed the machine up, and timed every step. */
static bw_estimate median_of(const subject *s)
{
    double sorted[ROUNDS];
    int count = 0;
    for (int r = s->rounds > 2 ? 1 : 0; r < s->rounds; r++) {
        sorted[count++] = s->sample_seconds[r];
    }
    qsort(sorted, (size_t)count, sizeof sorted[0], compare);
    int middle = count / 2;
    double median = count % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
    return (bw_estimate){.value = median, .low = sorted[count / 4], .high = sorted[count - 1 - count / 4]};
}

/* Measures all subjects round by round. In the first round a batch of which even a few steps would take too long ends the list. */
static bw_status run_rounds(bwi_tuner *tuner, subject *subjects, int *count, double budget)
{
    double begin = tuner->now, slice = budget / ROUNDS / *count;
    bw_status status = BW_OK;
    for (int round = 0; round < ROUNDS && status == BW_OK; round++) {
        for (int i = 0; i < *count && status == BW_OK; i++) {
            subject *before = i > 0 ? &subjects[i - 1] : NULL;
            double step = before && before->rounds > 0 ? before->sample_seconds[0] * (double)subjects[i].batch : 0;
            if (round == 0 && i > 0 && step * (LEAST_STEPS + 1) > fmax(budget / 4, slice)) {
                *count = i;
                break;
            }
            status = time_subject(tuner, &subjects[i], slice);
        }
        double each = (tuner->now - begin) / (round + 1);
        if (round >= 1 && tuner->now - begin + each > budget * 1.2) {
            break;
        }
    }
    return status;
}

bw_status bwi_tune_measure(bwi_tuner *tuner)
{
    subject subjects[BWI_TUNE_ROWS] = {{.batch = 0}};
    bw_tuning *made = tuner->made;
    int count = 0;
    for (int64_t b = 1; count < BWI_TUNE_ROWS && b <= tuner->samples && b <= tuner->options.largest; b *= 2) {
        subjects[count++].batch = b;
    }
    bw_status status = run_rounds(tuner, subjects, &count, 0.25 * tuner->options.seconds);
    for (int i = 0; i < count && status == BW_OK; i++) {
        bw_estimate sample = median_of(&subjects[i]);
        double b = (double)subjects[i].batch;
        made->rows[i] = (bw_tune_row){.batch = subjects[i].batch,
                                      .samples_per_s = 1 / sample.value,
                                      .step_seconds = {sample.value * b, sample.low * b, sample.high * b},
                                      .peak_bytes = subjects[i].peak_bytes};
        made->facts.default_tile = subjects[i].tile_used;
    }
    made->facts.rows = status == BW_OK ? count : 0;
    made->facts.knee = bwi_tune_knee(made->rows, made->facts.rows);
    return status;
}

bw_status bwi_tune_measure_tiles(bwi_tuner *tuner, int64_t batch)
{
    subject subjects[BWI_TUNE_TILES] = {{.batch = 0}};
    bw_tuning *made = tuner->made;
    int count = 0;
    for (int64_t tile = 1; count < BWI_TUNE_TILES && tile <= batch; tile *= 2) {
        subjects[count].batch = batch;
        subjects[count++].tile = tile;
    }
    bw_status status = run_rounds(tuner, subjects, &count, 0.15 * tuner->options.seconds);
    double best = 0;
    for (int i = 0; i < count && status == BW_OK; i++) {
        double speed = 1 / median_of(&subjects[i]).value;
        made->tiles[i] = (bw_tune_tile){.tile = subjects[i].tile, .samples_per_s = speed, .peak_bytes = subjects[i].peak_bytes};
        made->facts.tile = speed > best ? subjects[i].tile : made->facts.tile;
        best = fmax(best, speed);
    }
    made->facts.tiles = status == BW_OK ? count : 0;
    return status;
}
