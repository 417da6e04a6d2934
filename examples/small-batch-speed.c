/*
 * Why are small batches slow? 1,000 images of 28x28 normal numbers are trained with batch 16 and with batch 128, and the profile
 * that every training keeps says where a step's time went: what grows with the batch, and what is paid once a step.
 */
#include <batchwise.h>
#include <stdio.h>

enum { IMAGES = 1000, SIDE = 28, CLASSES = 10, KINDS = BW_PART_OVERHEAD + 1 };

static bw_dataset *make_images(bw_context *ctx)
{
    static float pixels[IMAGES][SIDE * SIDE];
    static int32_t labels[IMAGES];
    bw_random random = {.seed = 1};
    for (int i = 0; i < IMAGES; i++) {
        labels[i] = (int32_t)bw_random_below(&random, CLASSES);
        for (int k = 0; k < SIDE * SIDE; k++) {
            pixels[i][k] = bw_random_normal(&random);
        }
    }
    bw_array x = {.data = pixels, .dtype = BW_F32, .ndim = 4, .shape = {IMAGES, SIDE, SIDE, 1}};
    bw_array y = {.data = labels, .dtype = BW_I32, .ndim = 1, .shape = {IMAGES}};
    return bw_shuffle(bw_one_hot(bw_from_arrays(ctx, &x, &y, NULL), CLASSES), 1);
}

static bw_status fit(bw_context *ctx, int64_t batch, bw_history **history)
{
    bw_fit_options options = BW_FIT_OPTIONS_DEFAULT;
    options.epochs = 10;
    options.batch = batch;
    bw_model *model = bw_model_parse(ctx, "Conv2D(32, 3, activation=relu) MaxPooling2D(2) Flatten() Dense(10, activation=softmax)");
    bw_status status = bw_compile(model, "adam", "categorical_crossentropy", "accuracy");
    return status == BW_OK ? bw_fit(model, make_images(ctx), &options, history) : status;
}

/* Adds the parts of a kind, in microseconds of one worker for each sample. */
static void add_parts(const bw_history *history, double *sums)
{
    bw_profile_facts facts = bw_history_profile(history);
    bw_part part;
    for (int i = 0; i < facts.parts && bw_history_part(history, i, &part) == BW_OK; i++) {
        sums[part.kind] += 1e6 * part.seconds / (facts.workers * facts.samples);
    }
}

int main(void)
{
    static const int64_t batches[] = {16, 128};
    bw_context *ctx = bw_open(NULL);
    double sums[2][KINDS] = {{0}}, rates[2] = {0};
    bw_status status = BW_OK;
    for (int i = 0; i < 2 && status == BW_OK; i++) {
        bw_history *history = NULL;
        status = fit(ctx, batches[i], &history);
        if (status == BW_OK) {
            bw_run_facts facts = bw_history_facts(history);
            rates[i] = (double)facts.samples / facts.seconds;
            add_parts(history, sums[i]);
        }
    }
    if (status == BW_OK) {
        printf("%-22s %9s %9s\n", "batch", "16", "128");
        printf("%-22s %9.0f %9.0f\n", "samples a second", rates[0], rates[1]);
        for (int kind = 0; kind < KINDS; kind++) {
            if (sums[0][kind] >= 0.01 || sums[1][kind] >= 0.01) {
                printf("%-15s us/image %7.2f %9.2f\n", bw_part_kind_name((bw_part_kind)kind), sums[0][kind], sums[1][kind]);
            }
        }
    } else {
        fprintf(stderr, "%s: %s\n", bw_status_name(status), bw_message(ctx));
    }
    bw_close(ctx);
    return status != BW_OK;
}
