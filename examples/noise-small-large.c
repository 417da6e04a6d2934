/*
 * Do small batches follow the noise? 500 samples of y = 2*x0 + x1 + 0.5*noise are fitted with batch 16 and with batch 128: by the
 * second fit continuing the first one's model, as is often shown, and from fresh starts; at equal epochs and at equal updates; at
 * Adam's usual rate, which does not get there in 50 epochs, and at ten times as much. The gradient noise scale then says which of
 * the two sizes is too small or too large, and when.
 */
#include <batchwise.h>
#include <stdio.h>

enum { SAMPLES = 500, EPOCHS = 50 };

static float inputs[SAMPLES][2], targets[SAMPLES];

static void make_samples(void)
{
    bw_random random = {.seed = 1};
    for (int i = 0; i < SAMPLES; i++) {
        inputs[i][0] = bw_random_normal(&random);
        inputs[i][1] = bw_random_normal(&random);
        targets[i] = 2 * inputs[i][0] + inputs[i][1] + 0.5F * bw_random_normal(&random);
    }
}

static bw_dataset *open_samples(bw_context *ctx)
{
    bw_array x = {.data = inputs, .dtype = BW_F32, .ndim = 2, .shape = {SAMPLES, 2}};
    bw_array y = {.data = targets, .dtype = BW_F32, .ndim = 1, .shape = {SAMPLES}};
    return bw_shuffle(bw_from_arrays(ctx, &x, &y, NULL), 1);
}

static bw_model *make_model(bw_context *ctx, const char *optimizer)
{
    bw_model *model = bw_model_parse(ctx, "Dense(1)");
    (void)bw_compile(model, optimizer, "mse", NULL); /* a failure would stay, and be returned by bw_fit */
    return model;
}

/* Trains on, and prints the loss over all samples. */
static bw_status fit(bw_context *ctx, bw_model *model, const char *name, int64_t batch, int epochs)
{
    bw_fit_options options = BW_FIT_OPTIONS_DEFAULT;
    options.batch = batch;
    options.epochs = epochs;
    options.lanes = 4; /* the noise is measured from the differences between lanes */
    options.tile = 8;
    options.noise_every = batch > 16 ? 1 : 0;
    bw_history *history = NULL, *result = NULL;
    bw_dataset *samples = open_samples(ctx);
    bw_status status = bw_fit(model, samples, &options, &history);
    if (status == BW_OK) {
        status = bw_evaluate(model, samples, &result);
    }
    if (status != BW_OK) {
        return status;
    }
    printf("%-40s %4lld updates, loss %.4f\n", name, (long long)bw_history_facts(history).updates, bw_history_last(result, "loss"));
    for (int i = 0; i < bw_history_noise_points(history); i += 16) {
        bw_noise_point point = bw_history_noise_point(history, i);
        if (point.raw.determined) {
            printf("    after %4lld updates the noise scale is %.0f (%.0f to %.0f)\n", (long long)point.updates, point.raw.scale,
                   point.raw.low, point.raw.high);
        } else {
            printf("    after %4lld updates noise is all that is left\n", (long long)point.updates);
        }
    }
    return status;
}

static bw_status compare(bw_context *ctx, const char *optimizer)
{
    puts(optimizer);
    bw_model *model = make_model(ctx, optimizer);
    bw_status status = fit(ctx, model, "batch 16", 16, EPOCHS);
    status = status == BW_OK ? fit(ctx, model, "batch 128, continuing that model", 128, EPOCHS) : status;
    status = status == BW_OK ? fit(ctx, make_model(ctx, optimizer), "batch 128, as many epochs", 128, EPOCHS) : status;
    return status == BW_OK ? fit(ctx, make_model(ctx, optimizer), "batch 128, as many updates", 128, EPOCHS * 32 / 4) : status;
}

int main(void)
{
    bw_context *ctx = bw_open(NULL);
    make_samples();
    bw_status status = compare(ctx, "adam");
    status = status == BW_OK ? compare(ctx, "adam(lr=0.01)") : status;
    if (status != BW_OK) {
        fprintf(stderr, "%s: %s\n", bw_status_name(status), bw_message(ctx));
    }
    bw_close(ctx);
    return status != BW_OK;
}
