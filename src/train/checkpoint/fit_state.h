/* The state of a fit, which is being run, as named values (fit_state.c). */
#ifndef BWI_TRAIN_FIT_STATE_H
#define BWI_TRAIN_FIT_STATE_H

#include "train/internal.h"

#define BWI_STATE_HISTORY "fit/history"

/* How far a fit has come. */
typedef struct bwi_cursor {
    int64_t epoch, position;                       /* of the next batch, in samples */
    int64_t step, samples, skipped;                /* of this epoch so far; skipped: steps that were left out */
    int64_t all_updates, all_samples, all_skipped; /* of the run */
    int64_t stopped;                               /* 1: early stopping has ended it */
} bwi_cursor;

typedef struct bwi_fit_state {
    bw_model *model;
    bwi_session *session;
    bwi_watch *watch;
    bw_history *history;
    bwi_cursor cursor;
    double *totals; /* the epoch's sums, while validation uses the session's */
    bool validating;
    bwi_variable *best; /* the weights of the best epoch as variables; NULL: they are not kept */
} bwi_fit_state;

/* All but what is opened here is the caller's. Close it also after a failure. */
bw_status bwi_fit_state_open(bwi_fit_state *state);
void bwi_fit_state_close(bwi_fit_state *state);
/* Lists everything; the number of the history's value, which is the last one and has `rows` rows. */
int bwi_fit_state_list(bwi_fit_state *state, int64_t rows, bwi_state *values);
/* Validation uses the session's sums: those of the epoch are kept meanwhile. */
void bwi_fit_state_validating(bwi_fit_state *state, bool validating);

#endif
