/*
 * Accumulates the gradients of several batches into one update: of every four batches, and of as many as hold 16 KiB of images. The
 * remainder of the epoch makes an update of its own. The result is that of the large batch, bit for bit, and so is the memory: a
 * sum of gradients takes the same bytes however many batches it holds, so the threshold is a choice, not a limit.
 *
 * Usage: accumulate [FILE.npz]
 */
#include <batchwise.h>
#include <inttypes.h>
#include <stdio.h>

enum { EPOCHS = 3, SMALL = 16, IMAGE_BYTES = 8 * 8 * 4 };

/* Makes one pass over the data, with an update whenever the gradients hold at least `enough` samples. */
static bw_status train_epoch(bw_model *model, bw_dataset *data, bw_gradients *gradients, int epoch, int64_t enough)
{
    bw_iterator *batches = bw_iterate(data, epoch);
    bw_batch *batch = NULL;
    bw_status status;
    while ((status = bw_next(batches, &batch)) == BW_OK) {
        status = bw_gradients_add(gradients, batch, NULL);
        if (status == BW_OK && bw_gradients_samples(gradients) >= enough) {
            status = bw_apply(model, gradients); /* divides once by the number of samples, updates, clears */
        }
        if (status != BW_OK) {
            break;
        }
    }
    if (status == BW_OUT_OF_RANGE) { /* the end of the data: apply the remainder */
        status = bw_gradients_samples(gradients) > 0 ? bw_apply(model, gradients) : BW_OK;
    }
    bw_iterator_free(batches);
    return status;
}

/* Trains a fresh model by batches of a size, and prints its loss and the hash of its weights. */
static bw_status train(bw_context *ctx, const char *path, const char *name, int64_t batch, int64_t enough, uint64_t *hash)
{
    bw_read_options reading = BW_READ_OPTIONS_DEFAULT;
    reading.scale = 1.0 / 16; /* grey values are from 0 to 16 */
    bw_dataset *data = bw_batches(bw_shuffle(bw_read(ctx, path, &reading), 1), batch);
    bw_model *model = bw_model_parse(ctx, "input(8,8,1) flatten dense(32,relu) dense(10,softmax)");
    bw_status status = bw_compile(model, "adam(lr=0.003)", "sparse_categorical_crossentropy", "accuracy");
    if (status == BW_OK) {
        status = bw_build(model, 0, NULL, 0);
    }
    bw_fit_options options = BW_FIT_OPTIONS_DEFAULT;
    options.tile = SMALL; /* otherwise chosen for the batch; with the same tile the order of summation is the same */
    bw_gradients *gradients = bw_gradients_new(model, &options);
    for (int epoch = 0; epoch < EPOCHS && status == BW_OK; epoch++) {
        status = train_epoch(model, data, gradients, epoch, enough);
    }
    bw_history *result = NULL;
    if (status == BW_OK) {
        status = bw_evaluate(model, data, &result);
    }
    if (status == BW_OK) {
        *hash = bw_model_hash(model);
        printf("%-32s loss %.4f, weights %016" PRIx64 "\n", name, bw_history_last(result, "loss"), *hash);
    }
    return status;
}

int main(int argc, char **argv)
{
    const char *path = argc > 1 ? argv[1] : "data/digits.npz";
    int64_t threshold = (16 << 10) / IMAGE_BYTES;
    uint64_t whole = 0, four = 1, bytes = 2;
    bw_context *ctx = bw_open(NULL);
    bw_status status = train(ctx, path, "batches of 64", 64, 1, &whole);
    if (status == BW_OK) {
        status = train(ctx, path, "4 batches of 16 for each update", SMALL, 4 * SMALL, &four);
    }
    if (status == BW_OK) {
        status = train(ctx, path, "batches of 16 until 16 KiB", SMALL, threshold, &bytes);
    }
    if (status != BW_OK) {
        fprintf(stderr, "%s: %s\n", bw_status_name(status), bw_message(ctx));
    }
    bw_close(ctx);
    return status != BW_OK || whole != four || whole != bytes;
}
