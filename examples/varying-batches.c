/*
 * The numbers 0 to 999 in batches of 32, followed by the same numbers in batches of 64: batches that vary in size, also at the end
 * of each part. One plan serves all of them, and nothing is compiled or allocated again. The targets are the numbers themselves.
 */
#include <batchwise.h>
#include <stdio.h>

enum { NUMBERS = 1000, EPOCHS = 10 };

static bool on_epoch(void *user, const bw_progress *progress)
{
    (void)user;
    printf("epoch %2d: %lld batches, loss %.4f\n", progress->epoch + 1, (long long)progress->step,
           bw_history_last(progress->logs, "loss"));
    return true;
}

int main(void)
{
    static float numbers[NUMBERS];
    for (int i = 0; i < NUMBERS; i++) {
        numbers[i] = (float)i;
    }
    bw_array x = {.data = numbers, .dtype = BW_F32, .ndim = 2, .shape = {NUMBERS, 1}};
    bw_context *ctx = bw_open(NULL);
    bw_dataset *by_32 = bw_batches(bw_from_arrays(ctx, &x, &x, NULL), 32);
    bw_dataset *by_64 = bw_batches(bw_from_arrays(ctx, &x, &x, NULL), 64);
    bw_model *model = bw_model_parse(ctx, "Dense(64, activation=relu) Dense(1)");
    bw_fit_options options = BW_FIT_OPTIONS_DEFAULT;
    options.epochs = EPOCHS;
    options.on_epoch = on_epoch;
    bw_history *history = NULL;
    bw_status status = bw_compile(model, "adam", "mse", NULL);
    if (status == BW_OK) {
        status = bw_fit(model, bw_concatenate(by_32, by_64), &options, &history);
    }
    if (status == BW_OK) {
        bw_run_facts facts = bw_history_facts(history);
        printf("%lld updates with one plan of %zu KiB\n", (long long)facts.updates, facts.planned_bytes >> 10);
    } else {
        fprintf(stderr, "%s: %s\n", bw_status_name(status), bw_message(ctx));
    }
    bw_close(ctx);
    return status != BW_OK;
}
