/* What fit, evaluate and predict have in common: how a run of a model on data begins and ends. */
#include "train/internal.h"

bw_context *bwi_run_context(const bw_model *model, const bw_dataset *dataset)
{
    return model ? model->ctx : bwi_dataset_context(dataset);
}

bw_status bwi_run_begin(bw_context *ctx, const char *what, const bw_model *model, const bw_dataset *dataset)
{
    bool complete = model && dataset;
    return complete ? BW_OK : bwi_fail(ctx, BW_INVALID_ARGUMENT, "%s: there is no %s", what, model ? "dataset" : "model");
}

bw_status bwi_run_end(bw_context *ctx, bw_status status)
{
    return status == BW_CANCELLED || (status == BW_OK && bwi_cancelled(ctx)) ? bwi_cancel_report(ctx) : status;
}
