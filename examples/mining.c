/*
 * Trains with a custom loop that learns from the hardest half of each batch and clips the gradient itself. It computes every
 * sample's loss, selects the samples with the largest losses, and scales the gradient to a norm of at most 1 before the update.
 *
 * Usage: mining [FILE.npz]
 */
#include <batchwise.h>
#include <stdio.h>
#include <stdlib.h>

enum { EPOCHS = 5, BATCH = 32, HARD = BATCH / 2 };

static float losses[BATCH]; /* of the samples of a batch */

static int compare(const void *a, const void *b)
{
    float first = losses[*(const int64_t *)a], second = losses[*(const int64_t *)b];
    return (first < second) - (first > second);
}

/* Makes one update from the hardest samples of a batch, whose numbers come first once they are sorted. */
static bw_status learn(bw_model *model, bw_gradients *gradients, bw_batch *batch, double *norm)
{
    int64_t numbers[BATCH], samples = bw_batch_count(batch);
    for (int64_t i = 0; i < samples; i++) {
        numbers[i] = i;
    }
    bw_status status = bw_gradients_losses(gradients, batch, losses, (size_t)samples);
    if (status == BW_OK) {
        qsort(numbers, (size_t)samples, sizeof *numbers, compare);
        status = bw_gradients_add(gradients, bw_batch_select(batch, numbers, samples < HARD ? samples : HARD), NULL);
    }
    status = status == BW_OK ? bw_gradients_norm(gradients, norm) : status;
    if (status == BW_OK && *norm > 1) {
        status = bw_gradients_scale(gradients, 1 / *norm);
    }
    return status == BW_OK ? bw_apply(model, gradients) : status;
}

/* Makes one pass, and says how large the gradients were before they were clipped. */
static bw_status train_epoch(bw_model *model, bw_dataset *data, bw_gradients *gradients, int epoch)
{
    bw_iterator *batches = bw_iterate(data, epoch);
    bw_batch *batch;
    bw_status status = bw_next(batches, &batch);
    double norm = 0, largest = 0;
    while (status == BW_OK) {
        status = learn(model, gradients, batch, &norm);
        largest = norm > largest ? norm : largest;
        status = status == BW_OK ? bw_next(batches, &batch) : status;
    }
    bw_iterator_free(batches);
    if (status != BW_OUT_OF_RANGE) {
        return status;
    }
    printf("epoch %d: the largest gradient had a norm of %.2f\n", epoch + 1, largest);
    return BW_OK;
}

int main(int argc, char **argv)
{
    bw_context *ctx = bw_open(NULL);
    bw_read_options reading = BW_READ_OPTIONS_DEFAULT;
    reading.scale = 1.0 / 16; /* grey values are from 0 to 16 */
    bw_dataset *data = bw_read(ctx, argc > 1 ? argv[1] : "data/digits.npz", &reading);
    data = bw_batches(bw_shuffle(data, 1), BATCH);
    bw_model *model = bw_model_parse(ctx, "input(8,8,1) flatten dense(32,relu) dense(10,softmax)");
    bw_status status = bw_compile(model, "adam(lr=0.003)", "sparse_categorical_crossentropy", "accuracy");
    status = status == BW_OK ? bw_build(model, 0, NULL, 0) : status;
    bw_gradients *gradients = bw_gradients_new(model, NULL);
    for (int epoch = 0; epoch < EPOCHS && status == BW_OK; epoch++) {
        status = train_epoch(model, data, gradients, epoch);
    }
    bw_history *result = NULL;
    status = status == BW_OK ? bw_evaluate(model, data, &result) : status;
    double accuracy = status == BW_OK ? bw_history_last(result, "accuracy") : 0;
    if (status == BW_OK) {
        printf("accuracy %.3f\n", accuracy);
    } else {
        fprintf(stderr, "%s: %s\n", bw_status_name(status), bw_message(ctx));
    }
    bw_close(ctx);
    return accuracy > 0.9 ? EXIT_SUCCESS : EXIT_FAILURE;
}
