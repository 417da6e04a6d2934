/*
 * Trains on sequences of varying length: with buckets, each is computed at the shortest bucket length that holds it, not at the
 * longest of all. Trains the same model on the same batches with all padding and in buckets, and prints both speeds.
 *
 * Usage: sequences
 */
#include <batchwise.h>
#include <stdio.h>
#include <stdlib.h>

enum { SAMPLES = 4000, LONGEST = 256, WORDS = 5000 };

static int32_t steps[SAMPLES * LONGEST], labels[SAMPLES];
static int64_t offsets[SAMPLES + 1];

/* Most sequences are short: the mean length is a quarter of the longest. The label tells whether a rare word occurs. */
static void make_samples(void)
{
    bw_random random = {.seed = 1};
    for (int i = 0; i < SAMPLES; i++) {
        float u = bw_random_uniform(&random);
        int length = i == 0 ? LONGEST : (int)(LONGEST * u * u * u) + 1;
        offsets[i + 1] = offsets[i] + length;
        for (int64_t k = offsets[i]; k < offsets[i + 1]; k++) {
            steps[k] = (int32_t)bw_random_below(&random, WORDS - 1) + 1; /* 0 is padding */
        }
        labels[i] = (int32_t)bw_random_below(&random, 2);
        if (labels[i]) {
            steps[offsets[i] + bw_random_below(&random, length)] = 7;
        }
    }
}

static double train(bw_context *ctx, bool buckets)
{
    static const int64_t lengths[] = {16, 32, 64, 128};
    bw_array x = {.data = steps, .dtype = BW_I32, .ndim = 1, .shape = {offsets[SAMPLES]}};
    bw_array y = {.data = labels, .dtype = BW_I32, .ndim = 1, .shape = {SAMPLES}};
    bw_dataset *data = bw_from_sequences(ctx, &x, offsets, SAMPLES, &y, NULL);
    data = bw_shuffle(buckets ? bw_bucket(data, lengths, 4) : data, 1);
    bw_model *model = bw_model_parse(ctx, "embedding(5000,32) conv1d(64,5,relu,padding=same) global_maxpool1d dense(1,sigmoid)");
    bw_fit_options options = BW_FIT_OPTIONS_DEFAULT;
    options.epochs = 3;
    options.validation_split = 0.2;
    bw_history *history = NULL;
    if (bw_fit(model, data, &options, &history) != BW_OK) {
        fprintf(stderr, "%s\n", bw_message(ctx));
        exit(1);
    }
    printf("%-12s %6.0f samples/s, accuracy %.3f\n", buckets ? "buckets" : "all padding",
           (double)bw_history_facts(history).samples / bw_history_facts(history).seconds, bw_history_last(history, "val_accuracy"));
    return bw_history_facts(history).seconds;
}

int main(void)
{
    bw_context *ctx = bw_open(NULL);
    make_samples();
    double whole = train(ctx, false), cut = train(ctx, true);
    printf("%.1f times\n", whole / cut);
    bw_close(ctx);
    return 0;
}
