/* evaluate: computes the loss and the metrics of a model on data. Each is a column of a history with one epoch. */
#include "train/internal.h"

static bw_status take_values(bwi_session *s, bw_history **result)
{
    int values = bwi_session_values(s);
    bw_history *history = bwi_history_new(s->graph.ctx, 1, values);
    if (!history) {
        return bwi_pending(s->graph.ctx);
    }
    history->epochs = 1;
    for (int k = 1; k <= values; k++) { /* the loss comes last, as in Keras's output */
        int column = bwi_history_add_column(history, "", bwi_session_value_name(s, k % values));
        history->values[column] = bwi_session_value(s, k % values);
    }
    *result = history;
    return BW_OK;
}

static bw_status evaluate(bwi_session *s, bw_dataset *dataset, bw_history **result)
{
    bw_status status = bwi_session_evaluate(s, dataset, bwi_dataset_largest_batch(dataset));
    return status == BW_OK ? take_values(s, result) : status;
}

/* A stream is read to its end first, since all samples count. Ranks evaluate together, so either all of them begin or none does. */
bw_status bwi_model_evaluate(bw_model *model, bw_dataset *dataset, bw_history **result)
{
    bw_context *ctx = bwi_run_context(model, dataset);
    bw_status status = bwi_run_begin(ctx, "evaluate", model, dataset);
    if (status == BW_OK && !result) {
        status = bwi_fail(ctx, BW_INVALID_ARGUMENT, "evaluate: there is no place for the result: the pointer to it is NULL");
    }
    bw_dataset *front = NULL;
    bwi_session s;
    bwi_session_options options = {.evaluate = true};
    bool open = false;
    if (status == BW_OK) {
        status = bwi_session_open_whole(&s, model, &dataset, &front, &options);
        open = status == BW_OK;
    }
    status = bwi_ranks_enter(ctx, status);
    if (status == BW_OK) {
        status = evaluate(&s, dataset, result);
    }
    if (open) {
        bwi_session_close(&s);
    }
    bw_dataset_free(front);
    return open ? bwi_run_end(ctx, status) : status;
}

bw_status bw_evaluate(bw_model *model, bw_dataset *dataset, bw_history **result)
{
    bw_context *ctx = bwi_run_context(model, dataset);
    if (result) {
        *result = NULL;
    }
    bw_status status = ctx ? bwi_call_begin(ctx) : BW_INVALID_ARGUMENT;
    return status == BW_OK ? bwi_call_end(ctx, bwi_model_evaluate(model, dataset, result)) : bwi_ranks_enter(ctx, status);
}
