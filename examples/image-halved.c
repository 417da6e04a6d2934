/*
 * When memory runs out, the usual advice is to halve the batch and the filters. Here neither is needed: the full network takes the
 * same bytes at batch 1,024 as at batch 16. This prints the plans for images of 128x128x3, and trains both networks on real digits
 * to show what the halving costs in accuracy.
 *
 * Usage: image-halved [DIGITS.npz]
 */
#include <batchwise.h>
#include <stdio.h>

enum { TEXT = 256, SEEDS = 3 };

/* The digits have only 8x8 pixels, so their borders are padded. */
static const char *write_network(char *text, const char *input, int filters, const char *padding)
{
    snprintf(
        text, TEXT,
        "%s Conv2D(%d, 3, activation=relu, padding=%s) MaxPooling2D(2) Conv2D(%d, 3, activation=relu, padding=%s) MaxPooling2D(2) "
        "Flatten() Dense(10, activation=softmax)",
        input, filters, padding, 2 * filters, padding);
    return text;
}

static bw_status print_plan(bw_context *ctx, int filters, int64_t batch)
{
    char text[TEXT];
    bw_plan *plan = bw_plan_make(bw_model_parse(ctx, write_network(text, "input(128,128,3)", filters, "valid")), NULL, batch, NULL);
    if (!plan) {
        return bw_last_error(ctx)->status;
    }
    bw_memory_facts facts = bw_plan_facts(plan);
    printf("%d and %d filters, batch %4lld: %5.1f MiB; holding the batch would take %.0f MiB\n", filters, 2 * filters,
           (long long)batch, (double)facts.peak_bytes / 1048576, (double)facts.whole_batch_bytes / 1048576);
    return BW_OK;
}

/* Prints the mean of a few trainings, since single ones differ by a percent or two. */
static bw_status print_accuracy(bw_context *ctx, const char *path, int filters)
{
    char text[TEXT];
    double sum = 0;
    bw_status status = BW_OK;
    for (int seed = 1; seed <= SEEDS && status == BW_OK; seed++) {
        bw_read_options reading = BW_READ_OPTIONS_DEFAULT;
        reading.scale = 1.0 / 16; /* grey values are from 0 to 16 */
        bw_fit_options options = BW_FIT_OPTIONS_DEFAULT;
        options.batch = 16;
        options.epochs = 3;
        options.validation_split = 0.25;
        options.seed = (uint64_t)seed;
        bw_history *history = NULL;
        bw_dataset *digits = bw_shuffle(bw_read(ctx, path, &reading), (uint64_t)seed);
        status = bw_fit(bw_model_parse(ctx, write_network(text, "", filters, "same")), digits, &options, &history);
        sum += status == BW_OK ? bw_history_last(history, "val_accuracy") : 0;
    }
    if (status == BW_OK) {
        printf("%d and %d filters, batch   16: accuracy %.3f on digits that it has not seen\n", filters, 2 * filters, sum / SEEDS);
    }
    return status;
}

int main(int argc, char **argv)
{
    const char *path = argc > 1 ? argv[1] : "data/digits.npz";
    bw_context *ctx = bw_open(NULL);
    bw_status status = BW_OK;
    for (int filters = 32; filters >= 16 && status == BW_OK; filters /= 2) {
        status = print_plan(ctx, filters, 16);
        status = status == BW_OK ? print_plan(ctx, filters, 1024) : status;
        status = status == BW_OK ? print_accuracy(ctx, path, filters) : status;
    }
    if (status != BW_OK) {
        fprintf(stderr, "%s: %s\n", bw_status_name(status), bw_message(ctx));
    }
    bw_close(ctx);
    return status != BW_OK;
}
