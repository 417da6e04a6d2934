/* How every run of a model on data begins and ends: fit, evaluate, predict. */
#include "train/internal.h"

bw_status bwi_run_begin(const char *what, bw_model *model, bw_dataset *dataset, bw_context **ctx)
{
    *ctx = model ? model->ctx : bwi_dataset_context(dataset);
    if (!*ctx) {
        return BW_INVALID_ARGUMENT;
    }
    bw_status status = bwi_pending(*ctx);
    if (status == BW_OK && (!model || !dataset)) {
        status = bwi_fail(*ctx, BW_INVALID_ARGUMENT, "%s: there is no %s", what, model ? "dataset" : "model");
    }
    return status;
}

bw_status bwi_run_end(bw_context *ctx, bw_status status)
{
    return status == BW_CANCELLED || (status == BW_OK && bwi_cancelled(ctx)) ? bwi_cancel_report(ctx) : status;
}
