/* Trials of doctor and tune: they train as the user would, but leave out what belongs to the run itself. */
#include "insight/internal.h"

bw_fit_options bwi_trial_options(const bw_fit_options *training)
{
    bw_fit_options trial = *training;
    trial.validation = NULL;
    trial.validation_split = 0;
    trial.early_stopping = trial.reduce_lr_on_plateau = NULL;
    trial.progress = NULL;
    trial.on_step = trial.on_epoch = NULL;
    trial.trace_steps = trial.noise_every = 0;
    trial.saves = trial.resume = false;
    trial.checkpoint_dir = trial.checkpoint_every = NULL;
    trial.checkpoint_keep = 0;
    trial.tensorboard = NULL;
    trial.on_nan = BW_NAN_STOP;
    return trial;
}
