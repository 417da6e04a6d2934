/*
 * Trains with a custom loop that learns from the hardest half of each batch and clips the gradients itself. It computes every
 * sample's loss, selects the samples with the largest losses, and scales each variable's gradient to a norm of at most 1 before
 * the update.
 *
 * Usage: mining [FILE.npz]
 */
#include <batchwise.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { EPOCHS = 5, BATCH = 32, HARD = BATCH / 2, MOST_VALUES = 64 * 32 };

static const double most_norm = 1;

/* Sorts the indices so that those of the `count` largest losses come first. */
static void find_hardest(const float *losses, int64_t samples, int64_t *indices, int64_t count)
{
    for (int64_t i = 0; i < samples; i++) {
        indices[i] = i;
    }
    for (int64_t i = 0; i < count; i++) {
        for (int64_t k = i + 1; k < samples; k++) {
            if (losses[indices[k]] > losses[indices[i]]) {
                int64_t other = indices[i];
                indices[i] = indices[k];
                indices[k] = other;
            }
        }
    }
}

/* Does by hand what Keras's clipnorm does. */
static bw_status clip(bw_model *model, bw_gradients *gradients)
{
    static float values[MOST_VALUES];
    bw_status status = BW_OK;
    for (int v = 0; v < bw_variable_count(model) && status == BW_OK; v++) {
        int64_t shape[BW_MAX_NDIM];
        int ndim = bw_variable_shape(model, v, shape);
        size_t count = 1;
        for (int i = 0; i < ndim; i++) {
            count *= (size_t)shape[i];
        }
        if (!bw_variable_trainable(model, v)) {
            continue;
        }
        status = bw_gradients_get(gradients, v, values, count);
        double squared = 0;
        for (size_t i = 0; i < count; i++) {
            squared += (double)values[i] * (double)values[i];
        }
        double norm = sqrt(squared);
        for (size_t i = 0; i < count && norm > most_norm; i++) {
            values[i] = (float)((double)values[i] * most_norm / norm);
        }
        if (status == BW_OK && norm > most_norm) {
            status = bw_gradients_set(gradients, v, values, count);
        }
    }
    return status;
}

/* Makes one update from the hardest samples of a batch; *easy and *hard are the smallest and the largest loss in it. */
static bw_status learn(bw_model *model, bw_gradients *gradients, bw_batch *batch, float *easy, float *hard)
{
    float losses[BATCH];
    int64_t indices[BATCH], samples = bw_batch_count(batch), count = samples < HARD ? samples : HARD;
    bw_status status = bw_gradients_losses(gradients, batch, losses, (size_t)samples);
    if (status != BW_OK) {
        return status;
    }
    find_hardest(losses, samples, indices, samples);
    *hard = losses[indices[0]];
    *easy = losses[indices[samples - 1]];
    status = bw_gradients_add(gradients, bw_batch_select(batch, indices, count), NULL);
    if (status == BW_OK) {
        status = clip(model, gradients);
    }
    return status == BW_OK ? bw_apply(model, gradients) : status;
}

static bw_status train_epoch(bw_model *model, bw_dataset *data, bw_gradients *gradients, int epoch)
{
    bw_iterator *batches = bw_iterate(data, epoch);
    bw_batch *batch;
    bw_status status;
    float easy = 0, hard = 0;
    while ((status = bw_next(batches, &batch)) == BW_OK) {
        status = learn(model, gradients, batch, &easy, &hard);
        if (status != BW_OK) {
            break;
        }
    }
    bw_iterator_free(batches);
    if (status != BW_OUT_OF_RANGE) {
        return status;
    }
    printf("epoch %d: losses in the last batch from %.4f to %.4f\n", epoch + 1, (double)easy, (double)hard);
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
    if (status == BW_OK) {
        status = bw_build(model, 0, NULL, 0);
    }
    bw_gradients *gradients = bw_gradients_new(model, NULL);
    for (int epoch = 0; epoch < EPOCHS && status == BW_OK; epoch++) {
        status = train_epoch(model, data, gradients, epoch);
    }
    bw_history *result = NULL;
    if (status == BW_OK) {
        status = bw_evaluate(model, data, &result);
    }
    double accuracy = status == BW_OK ? bw_history_last(result, "accuracy") : 0;
    if (status == BW_OK) {
        printf("accuracy %.3f\n", accuracy);
    } else {
        fprintf(stderr, "%s: %s\n", bw_status_name(status), bw_message(ctx));
    }
    bw_close(ctx);
    return accuracy > 0.9 ? EXIT_SUCCESS : EXIT_FAILURE;
}
