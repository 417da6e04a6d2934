/*
 * Data that is sorted by class, which makes fitting fail only when a batch size is given: each batch shows one class, and the last
 * batches of an epoch undo what the first have taught. 100 samples of class A (features from 0 to 1) are followed by 100 of class B
 * (2 to 3). They are trained in order, shuffled, and as one batch; doctor then says what is wrong.
 */
#include <batchwise.h>
#include <stdio.h>

enum { EACH = 100, FEATURES = 10 };

static float features[2 * EACH][FEATURES];
static int32_t labels[2 * EACH];

static void make_samples(void)
{
    bw_random random = {.seed = 1};
    for (int i = 0; i < 2 * EACH; i++) {
        labels[i] = i >= EACH;
        for (int k = 0; k < FEATURES; k++) {
            features[i][k] = bw_random_uniform(&random) + (float)(2 * labels[i]);
        }
    }
}

static bw_dataset *open_samples(bw_context *ctx, bool shuffled)
{
    bw_array x = {.data = features, .dtype = BW_F32, .ndim = 2, .shape = {2 * EACH, FEATURES}};
    bw_array y = {.data = labels, .dtype = BW_I32, .ndim = 1, .shape = {2 * EACH}};
    bw_dataset *samples = bw_from_arrays(ctx, &x, &y, NULL);
    return shuffled ? bw_shuffle(samples, 1) : samples;
}

static bw_status train(bw_context *ctx, const char *name, bool shuffled, const char *batch)
{
    bw_fit_options options = BW_FIT_OPTIONS_DEFAULT;
    options.epochs = 10;
    options.batch_sizes = batch;
    bw_model *model = bw_model_parse(ctx, "Dense(1, activation=sigmoid)");
    bw_dataset *samples = open_samples(ctx, shuffled);
    bw_history *history = NULL;
    bw_status status = bw_compile(model, "adam", "binary_crossentropy", "accuracy");
    if (status == BW_OK) {
        status = bw_fit(model, samples, &options, NULL);
    }
    if (status == BW_OK) {
        status = bw_evaluate(model, samples, &history); /* the model as it is at the end; an epoch's figures are means over it */
    }
    if (status == BW_OK) {
        printf("%-22s accuracy %.3f, loss %.3f\n", name, bw_history_last(history, "accuracy"), bw_history_last(history, "loss"));
    }
    return status;
}

/* Doctor compares the order of the labels with permutations of them, and names the option that helps. */
static bw_status examine(bw_context *ctx)
{
    bw_findings *findings = NULL;
    bw_finding finding;
    bw_status status = bw_doctor(bw_model_parse(ctx, "Dense(1, activation=sigmoid)"), open_samples(ctx, false), NULL, &findings);
    for (int i = 0; status == BW_OK && bw_findings_at(findings, i, &finding); i++) {
        printf("doctor: %s: %s\n  fix: %s\n", finding.id, finding.evidence, finding.fix);
    }
    return status;
}

int main(void)
{
    bw_context *ctx = bw_open(NULL);
    make_samples();
    bw_status status = train(ctx, "in order, batch 32:", false, "32"); /* also what Keras takes if no size is given */
    if (status == BW_OK) {
        status = train(ctx, "shuffled, batch 32:", true, "32");
    }
    if (status == BW_OK) {
        status = train(ctx, "full batch:", false, "full");
    }
    if (status == BW_OK) {
        status = examine(ctx);
    }
    if (status != BW_OK) {
        fprintf(stderr, "%s: %s\n", bw_status_name(status), bw_message(ctx));
    }
    bw_close(ctx);
    return status != BW_OK;
}
