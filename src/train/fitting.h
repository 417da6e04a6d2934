/* The state of a call of bw_fit, which fit_open.c prepares and fit.c runs. */
#ifndef BWI_TRAIN_FITTING_H
#define BWI_TRAIN_FITTING_H

#include "train/checkpoint/fit_checkpoints.h"

typedef struct bwi_fitting {
    bw_context *ctx;
    bw_model *model;
    bw_fit_options options;
    bw_dataset *training, *validation;
    bw_dataset *split[2];  /* made here from one dataset; NULL: not split */
    bw_dataset *recipe;    /* of the training part; the model takes it at the first update */
    bw_dataset *windows;   /* the training part with its batches: the samples of each update */
    bw_dataset *fronts[2]; /* both parts, vectorised; NULL: the model takes numbers */
    bwi_session session;
    bool open; /* the session is open */
    bw_history *history, *logs;
    bwi_painter painter;
    bwi_watch watch;
    double begin;
    bwi_measure measure;
    bwi_fit_checkpoints checkpoints;
    double waited; /* seconds, for the last checkpoint */
    bool stopped;
    bool shows;    /* the gradients of an epoch's first update, to TensorBoard, which one of the ranks may have */
    bool differs;  /* the ranks' weights do, so that this rank's may be wrong */
    int64_t every; /* updates from one to the next that TensorBoard sees; 0: none */
    bool divides;  /* ranks have divided the optimizer's slots among them */
} bwi_fitting;

/* Does everything up to the session, which has the plan. */
bw_status bwi_fitting_prepare(bwi_fitting *f, bw_dataset *dataset);
/* What ranks must agree on, as far as it is known. */
bwi_alike bwi_fitting_alike(const bwi_fitting *f);
/* Ranks whose memory differs may have planned differently: all divide the optimizer's slots if one has to. */
bw_status bwi_fitting_divide_slots(bwi_fitting *f);
/* Opens the history and the logs, with their columns. */
bw_status bwi_fitting_open_history(bwi_fitting *f);
/* Opens the folder of checkpoints, and continues from one if that is asked for; everything that it holds must be open. */
bw_status bwi_fitting_open_checkpoints(bwi_fitting *f);

#endif
