/* predict: writes a model's outputs for each sample into the caller's arrays. */
#include "train/internal.h"

static bw_status check_arrays(const bwi_session *s, int64_t samples, const size_t *counts, int outputs)
{
    bw_context *ctx = s->graph.ctx;
    if (outputs != s->output_count) {
        return bwi_fail(ctx, BW_INVALID_ARGUMENT, "predict: expected arrays for %d outputs, got %d", s->output_count, outputs);
    }
    for (int k = 0; k < outputs; k++) {
        size_t expected = bwi_size_multiply((size_t)samples, (size_t)bwi_shape_count(&s->outputs[k]->shape));
        if (counts[k] != expected) {
            return bwi_fail(ctx, BW_INVALID_ARGUMENT, "predict: expected an array of %zu numbers, got %zu", expected, counts[k]);
        }
    }
    return BW_OK;
}

/* Ranks predict together, so either all of them begin or none does. */
static bw_status run(bw_context *ctx, bw_model *model, bw_dataset *dataset, float *const *predictions, const size_t *counts,
                     int outputs)
{
    bw_status status = bwi_run_begin(ctx, "predict", model, dataset);
    bw_dataset *front = NULL;
    bwi_session s;
    bwi_session_options options = {.predict = true};
    bool open = false;
    if (status == BW_OK) {
        status = bwi_session_open_whole(&s, model, &dataset, &front, &options);
        open = status == BW_OK;
    }
    if (open) {
        status = check_arrays(&s, bw_dataset_count(dataset), counts, outputs);
    }
    status = bwi_ranks_enter(ctx, status);
    if (status == BW_OK) {
        bwi_piece piece = {.dataset = dataset, .count = bw_dataset_count(dataset), .unaugmented = true};
        status = bwi_session_feed(&s, BWI_PROGRAM_PREDICT, &piece, predictions);
    }
    if (open) {
        bwi_session_close(&s);
    }
    bw_dataset_free(front);
    return open ? bwi_run_end(ctx, status) : status;
}

bw_status bw_predict_all(bw_model *model, bw_dataset *dataset, float *const *predictions, const size_t *counts, int outputs)
{
    bw_context *ctx = bwi_run_context(model, dataset);
    bw_status status = ctx ? bwi_call_begin(ctx) : BW_INVALID_ARGUMENT;
    return status == BW_OK ? bwi_call_end(ctx, run(ctx, model, dataset, predictions, counts, outputs))
                           : bwi_ranks_enter(ctx, status);
}

bw_status bw_predict(bw_model *model, bw_dataset *dataset, float *predictions, size_t count)
{
    return bw_predict_all(model, dataset, &predictions, &count, 1);
}
