/*
 * When memory runs out, the usual advice is to halve the batch and the filters. Here neither is needed: the full network at batch 1,024
 * takes what it takes at batch 16. This prints both plans, and trains both networks on pictures of shapes to show what the halving
 * costs in accuracy.
 */
#include <batchwise.h>
#include <stdio.h>

static const char *const networks[] = {
    "Conv2D(32, 3, activation=relu) MaxPooling2D(2) Conv2D(64, 3, activation=relu) MaxPooling2D(2) Flatten() Dense(4, "
    "activation=softmax)",
    "Conv2D(16, 3, activation=relu) MaxPooling2D(2) Conv2D(32, 3, activation=relu) MaxPooling2D(2) Flatten() Dense(4, "
    "activation=softmax)",
};
static const char *const names[] = {"32 and 64 filters", "16 and 32 filters"};

/* Prints the planned bytes of a network for a batch of 128x128x3 images. */
static bw_status print_plan(bw_context *ctx, const char *network, const char *name, int64_t batch)
{
    char text[512];
    snprintf(text, sizeof text, "input(128,128,3) %s", network);
    bw_plan *plan = bw_plan_make(bw_model_parse(ctx, text), NULL, batch, NULL);
    if (!plan) {
        return bw_last_error(ctx)->status;
    }
    bw_memory_facts facts = bw_plan_facts(plan);
    printf("%s, batch %4lld: %5.1f MiB; holding the batch would take %.0f MiB\n", name, (long long)batch,
           (double)facts.peak_bytes / 1048576, (double)facts.whole_batch_bytes / 1048576);
    return BW_OK;
}

static bw_status print_accuracy(bw_context *ctx, const char *network, const char *name, int64_t batch)
{
    bw_fit_options options = BW_FIT_OPTIONS_DEFAULT;
    options.batch = batch;
    options.epochs = 3;
    options.validation_split = 0.25;
    bw_history *history = NULL;
    bw_dataset *shapes = bw_shuffle(bw_read(ctx, "synth:shapes?n=2000", NULL), 1);
    bw_status status = bw_fit(bw_model_parse(ctx, network), shapes, &options, &history);
    if (status == BW_OK) {
        printf("%s, batch %4lld: accuracy %.3f on images it has not seen\n", name, (long long)batch,
               bw_history_last(history, "val_accuracy"));
    }
    return status;
}

int main(void)
{
    bw_context *ctx = bw_open(NULL);
    bw_status status = BW_OK;
    for (int i = 0; i < 2 && status == BW_OK; i++) {
        status = print_plan(ctx, networks[i], names[i], 16);
        if (status == BW_OK) {
            status = print_plan(ctx, networks[i], names[i], 1024);
        }
    }
    for (int i = 0; i < 2 && status == BW_OK; i++) {
        status = print_accuracy(ctx, networks[i], names[i], 16);
    }
    if (status != BW_OK) {
        fprintf(stderr, "%s: %s\n", bw_status_name(status), bw_message(ctx));
    }
    bw_close(ctx);
    return status != BW_OK;
}
