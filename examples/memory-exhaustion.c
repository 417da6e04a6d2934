/*
 * 100,000 rows of 100 float64 features, with batches of 10,000 and of all rows, in 8 MiB. A system that holds the whole batch needs
 * far more. Within 64 KiB nothing can train this model: RESOURCE_EXHAUSTED comes before the first step, says what would do, and the
 * same model goes on with more memory and batch 32.
 */
#include <batchwise.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROWS = 100000, FEATURES = 100 };

static bw_dataset *make_rows(bw_context *ctx)
{
    static double features[ROWS][FEATURES];
    static int32_t labels[ROWS];
    bw_random random = {.seed = 1};
    for (int i = 0; i < ROWS; i++) {
        double sum = 0;
        for (int k = 0; k < FEATURES; k++) {
            features[i][k] = (double)bw_random_uniform(&random);
            sum += k < 10 ? features[i][k] : 0;
        }
        labels[i] = sum > 5;
    }
    bw_array x = {.data = features, .dtype = BW_F64, .ndim = 2, .shape = {ROWS, FEATURES}};
    bw_array y = {.data = labels, .dtype = BW_I32, .ndim = 1, .shape = {ROWS}};
    return bw_shuffle(bw_from_arrays(ctx, &x, &y, NULL), 1);
}

static bw_status fit(bw_model *model, bw_dataset *rows, const char *batch, size_t memory, int epochs)
{
    bw_fit_options options = BW_FIT_OPTIONS_DEFAULT;
    options.epochs = epochs;
    options.batch_sizes = batch;
    options.memory = memory;
    bw_history *history = NULL;
    bw_status status = bw_fit(model, rows, &options, &history);
    if (status == BW_OK) {
        bw_run_facts facts = bw_history_facts(history);
        printf("batch %-5s within %4zu KiB: planned %4zu KiB, accuracy %.3f after %d epochs\n", batch, memory >> 10,
               facts.planned_bytes >> 10, bw_history_last(history, "accuracy"), epochs);
    }
    return status;
}

int main(void)
{
    bw_context *ctx = bw_open(NULL);
    bw_dataset *rows = make_rows(ctx);
    bw_model *model = bw_model_parse(ctx, "Dense(32, activation=relu) Dense(1, activation=sigmoid)");
    bw_status status = fit(model, rows, "10000", 8 << 20, 5);
    if (status == BW_OK) {
        status = fit(model, rows, "full", 8 << 20, 5);
    }
    if (status == BW_OK) {
        status = fit(model, rows, "10000", 64 << 10, 5);
        if (status == BW_RESOURCE_EXHAUSTED) { /* the other error that is often caught, OUT_OF_RANGE, is the end of a dataset */
            printf("%s: %s\n", bw_status_name(status), bw_message(ctx));
            status = fit(model, rows, "32", 8 << 20, 1);
        }
    }
    if (status != BW_OK) {
        fprintf(stderr, "%s: %s\n", bw_status_name(status), bw_message(ctx));
    }
    bw_close(ctx);
    return status != BW_OK;
}
