/* Lets a program read and set the learning rate. */
#include "train/internal.h"

#include <math.h>

double bw_learning_rate(const bw_model *model)
{
    const bwi_training *t = model ? model->training : NULL;
    return t ? bwi_optimizer_rate(&t->optimizer) : (double)NAN;
}

bw_status bwi_training_set_rate(bw_model *model, double rate)
{
    bwi_training *t = bwi_training_of(model);
    if (!t) {
        return BW_RESOURCE_EXHAUSTED;
    }
    if (!(rate >= 0 && rate <= 1e9)) {
        return bwi_fail(model->ctx, BW_INVALID_ARGUMENT, "learning rate: expected a number from 0 to 1e9, got %g", rate);
    }
    t->optimizer.schedule = (bwi_schedule){0};
    t->optimizer.learning_rate = (float)rate;
    return BW_OK;
}

bw_status bw_set_learning_rate(bw_model *model, double rate)
{
    bw_status status = model ? bwi_call_begin(model->ctx) : BW_INVALID_ARGUMENT;
    return status == BW_OK ? bwi_call_end(model->ctx, bwi_training_set_rate(model, rate)) : status;
}
