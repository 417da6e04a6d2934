/*
 * Begun in Keras, continued here, returned to Keras. The file holds a model that Keras has trained for some epochs, with the state
 * of its optimizer; training goes on with the next update as if nothing had happened, and the file that is written is one of Keras
 * again. keras-and-back.py makes the file and shows what Keras says of the one that comes back.
 *
 * Usage: keras-and-back DIGITS.npz BEGUN.keras CONTINUED.keras
 */
#include <batchwise.h>
#include <stdio.h>

static void print_loss(const char *what, const bw_history *history)
{
    printf("%-22s loss %.4f, accuracy %.4f\n", what, bw_history_last(history, "loss"), bw_history_last(history, "accuracy"));
}

/* Five more epochs in the order of the file, so that Keras can be asked to do the same. */
static bw_status go_on(bw_model *model, bw_dataset *digits)
{
    bw_history *before = NULL, *after = NULL;
    bw_fit_options options = BW_FIT_OPTIONS_DEFAULT;
    options.epochs = 5;
    bw_status status = bw_evaluate(model, digits, &before);
    if (status == BW_OK) {
        print_loss("as it came from Keras:", before);
        status = bw_fit(model, digits, &options, NULL);
    }
    if (status == BW_OK) {
        status = bw_evaluate(model, digits, &after);
    }
    if (status == BW_OK) {
        print_loss("five epochs later:", after);
    }
    return status;
}

int main(int argc, char **argv)
{
    if (argc != 4) {
        fprintf(stderr, "usage: keras-and-back DIGITS.npz BEGUN.keras CONTINUED.keras\n");
        return 2;
    }
    bw_context *ctx = bw_open(NULL);
    bw_model *model = bw_load(ctx, argv[2]); /* layers, weights, loss, metrics, Adam with its moments and its count of updates */
    bw_dataset *digits = bw_read(ctx, argv[1], NULL);
    bw_status status = go_on(model, digits);
    if (status == BW_OK) {
        status = bw_save(model, argv[3]);
    }
    bw_model *again = status == BW_OK ? bw_load(ctx, argv[3]) : NULL;
    bool same = again && bw_model_hash(again) == bw_model_hash(model);
    if (status != BW_OK || !again) {
        fprintf(stderr, "%s: %s\n", bw_status_name(bw_last_error(ctx)->status), bw_message(ctx));
    } else {
        printf("%s holds %s\n", argv[3], same ? "the same weights" : "OTHER WEIGHTS");
    }
    bw_close(ctx);
    return !same;
}
