/*
 * What the files of tune share. A tuner trains one model again and again from the same snapshot; the rules (rules.c, rescale.c) are
 * functions of numbers alone.
 */
#ifndef BWI_INSIGHT_TUNE_H
#define BWI_INSIGHT_TUNE_H

#include "insight/internal.h"

enum {
    BWI_TUNE_ROWS = 32,
    BWI_TUNE_RATES = 32,
    BWI_TUNE_POINTS = 200,
    BWI_TUNE_TILES = 12,
    BWI_TUNE_BRANCHES = 6,
    BWI_TUNE_CURVE = 48,
    BWI_TUNE_TEXT = 512
};

typedef struct bwi_tune_curve {
    bw_tune_branch facts;
    bw_tune_point points[BWI_TUNE_CURVE];
} bwi_tune_curve;

struct bw_tuning {
    bwi_owned owned;
    bw_context *ctx;
    bw_tune_facts facts;
    bw_tune_row rows[BWI_TUNE_ROWS];
    bw_tune_rate rates[BWI_TUNE_RATES];
    bw_tune_point points[BWI_TUNE_POINTS];
    bw_tune_tile tiles[BWI_TUNE_TILES];
    bwi_tune_curve branches[BWI_TUNE_BRANCHES];
    char reason[BWI_TUNE_TEXT], optimizer[BWI_TUNE_TEXT];
    bwi_argument_value values[BWI_MAX_ARGUMENTS]; /* of the optimizer that is recommended */
    const bwi_optimizer_row *row;
};

typedef struct bwi_tuner {
    bw_context *ctx;
    bw_model *model;
    bw_dataset *training, *validation; /* validation may be NULL */
    bw_tune_options options;
    bw_fit_options fit; /* of every run; each sets its own batch and callbacks */
    bwi_snapshot *snapshot;
    bw_tuning *made;
    int64_t samples; /* of the training part */
    double begin;    /* by this rank's clock */
    double now;      /* seconds since the first rank began, when the last run ended */
} bwi_tuner;

double bwi_tuner_left(const bwi_tuner *tuner); /* seconds of the budget */
/* Ends a run: the first rank's time and numbers become those of all, so that whatever follows from them is decided alike, and all
 * go on or none does. */
bw_status bwi_tuner_meet(bwi_tuner *tuner, bw_status status, double *numbers, int count);
/* Whether a run lasts too long is for the first rank to say. */
bool bwi_tuner_ends(const bwi_tuner *tuner, double seconds, double most);

/* ---- Rules (rules.c) ---- */

/* The number of steps that `batch` needs, as a multiple of what `reference` needs: (1 + scale / batch) / (1 + scale /
 * reference). */
double bwi_tune_steps(double scale, int64_t batch, int64_t reference);
/* Sets the noise scale whose share of signal in steps of the reference is `share`, from `below` less to `above` more than that. */
void bwi_tune_scale(bw_noise_scale *scale, double share, double below, double above, int64_t reference);
/* Fills the predictions of a row; `steps` are those of the reference. */
void bwi_tune_predict(bw_tune_row *row, const bw_noise_scale *noise, int64_t reference, double steps);
/* The smallest batch size with 90 percent of the best throughput. */
int64_t bwi_tune_knee(const bw_tune_row *rows, int count);

typedef struct bwi_tune_choice {
    int row;       /* -1: the data do not decide */
    double regret; /* how much longer than the best it may take, over the interval of the noise scale: 1.2 is 20 percent */
} bwi_tune_choice;

bwi_tune_choice bwi_tune_choose(const bw_tune_row *rows, int count, const bw_noise_scale *noise, int64_t reference);

/* ---- A rate and averages for another batch size (rescale.c) ---- */

/* Whether the optimizer divides by the size of the gradients it has seen, so that its rate grows with the root of the batch. */
bool bwi_rescale_by_root(const bwi_optimizer *optimizer);
/* The learning rate for `batch`, given the one for `reference`. */
double bwi_rescale_rate(const bwi_optimizer *optimizer, double rate, int64_t reference, int64_t batch, double scale);
/* Adapts the averages of an optimizer whose arguments belong to `reference`. */
void bwi_rescale_averages(bwi_optimizer *optimizer, int64_t reference, int64_t batch);
/* Writes the optimizer as bw_compile reads it. */
void bwi_rescale_write(const bwi_optimizer *optimizer, double rate, char text[BWI_TUNE_TEXT]);
/* Returns a number as it is after being written with that many digits. */
double bwi_rescale_round(double number, int digits);

/* ---- Runs (trial.c) ---- */

/* One training from the snapshot. It stops at a number of samples, a time, the target, or when it diverges. */
typedef struct bwi_trial {
    int64_t batch;
    double rate;
    double growth;        /* the rate's factor from step to step; 1: it stays */
    int64_t most_samples; /* 0: no limit */
    double most_seconds;
    double target;    /* the loss to reach; NaN: none */
    double smoothing; /* samples over which the running mean of the loss goes back */
    bool noise;
    bool evaluates; /* the loss on the validation samples is wanted at the end */

    bool reached, diverged;
    double loss;       /* the running mean at the end */
    double least;      /* the smallest running mean */
    double least_rate; /* the rate at that moment */
    int64_t steps, samples;
    double seconds;
    double validation_loss;
    bw_noise_scale scale;
    bool seen;
    const char *refusal;
    int points; /* rate and loss of each step if the rate grows, otherwise seconds and loss at even times */
    int most_points;
    bw_tune_point *curve; /* NULL: not wanted */
} bwi_trial;

bw_status bwi_trial_run(bwi_tuner *tuner, bwi_trial *trial);

/* ---- Stages ---- */

/* Measures batch sizes (measure.c); later, tiles at one of them. */
bw_status bwi_tune_measure(bwi_tuner *tuner);
bw_status bwi_tune_measure_tiles(bwi_tuner *tuner, int64_t batch);
/* Finds the reference's rate, target and noise (search.c); then the rate of the chosen batch. */
bw_status bwi_tune_reference(bwi_tuner *tuner);
bw_status bwi_tune_rate_for(bwi_tuner *tuner, int64_t batch);
/* Trains candidates (confirm.c). */
bw_status bwi_tune_confirm(bwi_tuner *tuner);

#endif
