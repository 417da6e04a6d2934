/*
 * Trains an image classifier by a step of the program's own: forward, loss, gradients, Adam's update, and the loss of every batch
 * printed. The images are uniform noise and their labels random, so there is nothing to learn but the shape of a loop.
 */
#include <batchwise.h>
#include <stdio.h>

enum { IMAGES = 1000, SIDE = 64, CHANNELS = 3, CLASSES = 10, BATCH = 32 };

/* Makes an image from its own stream of random numbers: the same one in every epoch and on every thread. */
static bool make_image(void *user, bw_sample *sample, void *const *values)
{
    (void)user;
    float *pixels = values[0];
    int32_t *label = values[1];
    bw_random random = {.seed = 1, .stream = (uint64_t)sample->number};
    for (int i = 0; pixels && i < SIDE * SIDE * CHANNELS; i++) {
        pixels[i] = bw_random_uniform(&random);
    }
    if (label) {
        bw_random labels = {.seed = 2, .stream = (uint64_t)sample->number};
        *label = (int32_t)bw_random_below(&labels, CLASSES);
    }
    return true;
}

int main(void)
{
    bw_context *ctx = bw_open(NULL);
    const bw_field fields[] = {
        {"x", {.dtype = BW_F32, .ndim = 4, .shape = {IMAGES, SIDE, SIDE, CHANNELS}}},
        {"y", {.dtype = BW_I32, .ndim = 1, .shape = {IMAGES}}},
    };
    bw_dataset *images = bw_batches(bw_shuffle(bw_from_function(ctx, fields, 2, make_image, NULL), 3), BATCH);
    bw_model *model = bw_model_parse(ctx, "input(64,64,3) Conv2D(32, 3, activation=relu) MaxPooling2D(2) Flatten() "
                                          "Dense(10, activation=softmax)");
    bw_status status = bw_compile(model, "adam", "sparse_categorical_crossentropy", NULL);
    if (status == BW_OK) {
        status = bw_build(model, 0, NULL, 0);
    }
    bw_gradients *gradients = bw_gradients_new(model, NULL);
    bw_iterator *batches = bw_iterate(images, 0);
    bw_batch *batch = NULL;
    for (int step = 1; status == BW_OK; step++) {
        double loss = 0;
        status = bw_next(batches, &batch);
        if (status == BW_OK) {
            status = bw_gradients_add(gradients, batch, &loss);
        }
        if (status == BW_OK) {
            status = bw_apply(model, gradients);
        }
        if (status == BW_OK) {
            printf("batch %2d of %2lld images: loss %.4f\n", step, (long long)bw_batch_count(batch), loss);
        }
    }
    bool ended = status == BW_OUT_OF_RANGE; /* the end of the epoch */
    if (!ended) {
        fprintf(stderr, "%s: %s\n", bw_status_name(status), bw_message(ctx));
    }
    bw_close(ctx);
    return !ended;
}
