/*
 * Data sorted by class, which does harm only when there is a batch size: each batch shows one class, and the last batches of an
 * epoch undo what the first have taught. 100 samples of class A (features from 0 to 1) are followed by 100 of class B (2 to 3),
 * then come real digits from 0 to 9. Both are trained in order, shuffled and as one batch; doctor then says what is wrong.
 *
 * Usage: ordered-classes [DIGITS.npz]
 */
#include <batchwise.h>
#include <stdio.h>

enum { EACH = 100, FEATURES = 10 };

static bw_dataset *make_two_classes(bw_context *ctx)
{
    static float features[2 * EACH][FEATURES];
    static int32_t labels[2 * EACH];
    bw_random random = {.seed = 1};
    for (int i = 0; i < 2 * EACH; i++) {
        labels[i] = i >= EACH;
        for (int k = 0; k < FEATURES; k++) {
            features[i][k] = bw_random_uniform(&random) + (float)(2 * labels[i]);
        }
    }
    bw_array x = {.data = features, .dtype = BW_F32, .ndim = 2, .shape = {2 * EACH, FEATURES}};
    bw_array y = {.data = labels, .dtype = BW_I32, .ndim = 1, .shape = {2 * EACH}};
    return bw_from_arrays(ctx, &x, &y, NULL);
}

static bool is_digit(void *digit, bw_sample *sample, const void *const *from)
{
    (void)sample;
    return *(const int32_t *)from[1] == *(const int *)digit;
}

static bw_dataset *sort_digits(bw_dataset *digits)
{
    static int numbers[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
    bw_dataset *sorted = bw_filter(digits, is_digit, &numbers[0]);
    for (int i = 1; i < 10; i++) {
        sorted = bw_concatenate(sorted, bw_filter(digits, is_digit, &numbers[i]));
    }
    return sorted;
}

static bw_status train(bw_context *ctx, const char *name, const char *expression, bw_dataset *samples, const char *batch)
{
    bw_fit_options options = BW_FIT_OPTIONS_DEFAULT;
    options.epochs = 10;
    options.batch_sizes = batch; /* NULL: 32, as in Keras */
    bw_model *model = bw_model_parse(ctx, expression);
    bw_history *history = NULL;
    bw_status status = bw_compile(model, "adam", NULL, "accuracy"); /* the crossentropy that suits the last layer */
    status = status == BW_OK ? bw_fit(model, samples, &options, NULL) : status;
    status = status == BW_OK ? bw_evaluate(model, samples, &history) : status; /* as it is at the end, not on average */
    if (status == BW_OK) {
        printf("  %-22s accuracy %.3f, loss %.3f\n", name, bw_history_last(history, "accuracy"), bw_history_last(history, "loss"));
    }
    return status;
}

static bw_status tell(bw_context *ctx, const char *title, const char *expression, bw_dataset *sorted)
{
    puts(title);
    bw_status status = train(ctx, "in order, no size:", expression, sorted, NULL);
    status = status == BW_OK ? train(ctx, "in order, batch 32:", expression, sorted, "32") : status;
    status = status == BW_OK ? train(ctx, "shuffled, batch 32:", expression, bw_shuffle(sorted, 1), "32") : status;
    status = status == BW_OK ? train(ctx, "full batch:", expression, sorted, "full") : status;
    bw_findings *findings = NULL;
    bw_finding finding;
    status = status == BW_OK ? bw_doctor(bw_model_parse(ctx, expression), sorted, NULL, &findings) : status;
    for (int i = 0; status == BW_OK && bw_findings_at(findings, i, &finding); i++) {
        printf("  doctor: %s: %s\n    fix: %s\n", finding.id, finding.evidence, finding.fix);
    }
    return status;
}

int main(int argc, char **argv)
{
    bw_context *ctx = bw_open(NULL);
    bw_read_options reading = BW_READ_OPTIONS_DEFAULT;
    reading.scale = 1.0 / 16; /* grey values are from 0 to 16 */
    bw_dataset *digits = bw_read(ctx, argc > 1 ? argv[1] : "data/digits.npz", &reading);
    bw_status status = tell(ctx, "two classes", "Dense(1, activation=sigmoid)", make_two_classes(ctx));
    status = status == BW_OK ? tell(ctx, "ten digits", "Flatten() Dense(10, activation=softmax)", sort_digits(digits)) : status;
    if (status != BW_OK) {
        fprintf(stderr, "%s: %s\n", bw_status_name(status), bw_message(ctx));
    }
    bw_close(ctx);
    return status != BW_OK;
}
