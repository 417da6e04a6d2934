/*
 * Checkpoints of a fit (fit_checkpoints.c): when they are taken, and how a fit continues from one. A fit without them has `asked`
 * false, and calls nothing else of this.
 */
#ifndef BWI_TRAIN_FIT_CHECKPOINTS_H
#define BWI_TRAIN_FIT_CHECKPOINTS_H

#include "train/checkpoint/checkpoint.h"
#include "train/checkpoint/fit_state.h"

typedef struct bwi_fit_checkpoints {
    bool asked;
    bw_context *ctx;
    bwi_checkpoint_times times;
    bwi_identity identity;
    bwi_found_checkpoint found;
    bwi_fit_state state;
    bwi_writer *writer; /* NULL: another rank writes */
    bool waiting;       /* one is due, and the writer was busy */
    double next;        /* when the next one is due, if that goes by time */
    double begin;       /* of this process's part of the run, and the seconds of all parts before it */
    double seconds_before;
    int64_t taken; /* the step of the last one; -1: none */
    bool taken_between;
    double stood; /* seconds for which training waited */
} bwi_fit_checkpoints;

/* Before the plan is made: reads the options, looks for a checkpoint and compares samples and options with it. A plan's tile and
 * lanes become the recorded ones. */
bw_status bwi_fit_checkpoints_find(bwi_fit_checkpoints *checkpoints, bw_fit_options *options, bw_dataset *training,
                                   const bw_dataset *validation);
/* When everything else of the fit is open (the members of `state` point to it): compares the model, loads, and starts the
 * writer. */
bw_status bwi_fit_checkpoints_open(bwi_fit_checkpoints *checkpoints, const bw_fit_options *options);
/* Then, on all ranks: a new run begins with a checkpoint of its first state. */
void bwi_fit_checkpoints_begin(bwi_fit_checkpoints *checkpoints, bw_run_facts *facts);
/* The step that the fit continues from; -1: it begins anew. */
int64_t bwi_fit_checkpoints_step_found(const bwi_fit_checkpoints *checkpoints);
/* After each step, after each epoch, and at the end, when the last one is waited for. The cursor is up to date. Where ranks have
 * divided the optimizer's slots, all of them call; otherwise only the one that writes needs to. */
void bwi_fit_checkpoints_step(bwi_fit_checkpoints *checkpoints, bw_run_facts *facts);
void bwi_fit_checkpoints_epoch(bwi_fit_checkpoints *checkpoints, bw_run_facts *facts);
void bwi_fit_checkpoints_end(bwi_fit_checkpoints *checkpoints, bw_run_facts *facts);
void bwi_fit_checkpoints_close(bwi_fit_checkpoints *checkpoints);

#endif
