/* Learns to read handwritten digits: digits [FILE.npz] */
#include <batchwise.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    bw_context *ctx = bw_open(NULL);
    bw_dataset *digits = bw_shuffle(bw_read(ctx, argc > 1 ? argv[1] : "data/digits.npz", NULL), 1);
    bw_model *model = bw_model_parse(ctx, "conv2d(32,3,relu) maxpool2d(2) flatten dense(10,softmax)");

    bw_fit_options options = BW_FIT_OPTIONS_DEFAULT;
    options.epochs = 10;
    options.validation_split = 0.2;
    options.progress = stderr;
    bw_history *history = NULL;
    bw_status status = bw_fit(model, digits, &options, &history);
    if (status == BW_OK) {
        printf("accuracy %.3f\n", bw_history_last(history, "val_accuracy"));
    } else {
        fprintf(stderr, "%s: %s\n", bw_status_name(status), bw_message(ctx));
    }
    bw_close(ctx);
    return status != BW_OK;
}
