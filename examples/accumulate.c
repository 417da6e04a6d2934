/*
 * Trains with a custom loop that makes one update after every four batches, and one for the remainder of the epoch.
 *
 * Usage: accumulate [FILE.npz]
 */
#include <batchwise.h>
#include <stdio.h>

enum { EPOCHS = 3, BATCHES_PER_UPDATE = 4 };

/* Makes one pass over the data; *mean is the mean loss of its batches. */
static bw_status train_epoch(bw_model *model, bw_dataset *data, bw_gradients *gradients, int epoch, double *mean)
{
    bw_iterator *batches = bw_iterate(data, epoch);
    bw_batch *batch = NULL;
    bw_status status;
    double sum = 0;
    int count = 0;
    while ((status = bw_next(batches, &batch)) == BW_OK) {
        double loss = 0;
        status = bw_gradients_add(gradients, batch, &loss);
        if (status == BW_OK && ++count % BATCHES_PER_UPDATE == 0) {
            status = bw_apply(model, gradients); /* divides once by the number of samples, updates, clears */
        }
        if (status != BW_OK) {
            break;
        }
        sum += loss;
    }
    if (status == BW_OUT_OF_RANGE) { /* the end of the data: apply the remainder */
        status = bw_gradients_samples(gradients) > 0 ? bw_apply(model, gradients) : BW_OK;
    }
    bw_iterator_free(batches);
    *mean = sum / count;
    return status;
}

int main(int argc, char **argv)
{
    bw_context *ctx = bw_open(NULL);
    bw_read_options reading = BW_READ_OPTIONS_DEFAULT;
    reading.scale = 1.0 / 16; /* grey values are from 0 to 16 */
    bw_dataset *data = bw_read(ctx, argc > 1 ? argv[1] : "data/digits.npz", &reading);
    data = bw_batches(bw_shuffle(data, 1), 16);
    bw_model *model = bw_model_parse(ctx, "flatten dense(32,relu) dense(10,softmax)");

    int64_t shape[BW_MAX_NDIM];
    int ndim = bw_dataset_shape(data, shape);
    bw_status status = bw_compile(model, "adam(lr=0.003)", "sparse_categorical_crossentropy", "accuracy");
    if (status == BW_OK) {
        status = bw_build(model, ndim, shape, 0);
    }
    bw_gradients *gradients = bw_gradients_new(model, NULL);
    for (int epoch = 0; epoch < EPOCHS && status == BW_OK; epoch++) {
        double loss = 0;
        status = train_epoch(model, data, gradients, epoch, &loss);
        if (status == BW_OK) {
            printf("epoch %d: loss %.4f\n", epoch + 1, loss);
        }
    }
    if (status != BW_OK) {
        fprintf(stderr, "%s: %s\n", bw_status_name(status), bw_message(ctx));
    }
    bw_close(ctx);
    return status != BW_OK;
}
