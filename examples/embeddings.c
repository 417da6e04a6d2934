/*
 * A text classifier with a large table of words and texts of varying length. A batch touches a few hundred of 200,000 rows, so the
 * gradient is a list of these rows and not a table; each text is computed at about its own length, not at that of the longest.
 */
#include <batchwise.h>
#include <stdio.h>

enum { TEXTS = 2000, LONGEST = 128, WORDS = 200000, WIDTH = 16 };

static int32_t words[TEXTS * LONGEST], labels[TEXTS];
static int64_t begins[TEXTS + 1];

/* Word k is about k times as rare as the first, as in real texts. Among the first hundred words, ten are friendly, in the texts
 * of class 1 only, and ten are not. */
static void write_texts(void)
{
    bw_random random = {.seed = 1};
    for (int i = 0; i < TEXTS; i++) {
        labels[i] = (int32_t)bw_random_below(&random, 2);
        float share = bw_random_uniform(&random);
        begins[i + 1] = begins[i] + 8 + (int64_t)((LONGEST - 8) * share * share);
        for (int64_t k = begins[i]; k < begins[i + 1]; k++) {
            float u = bw_random_uniform(&random);
            words[k] = 1 + (int32_t)((WORDS - 1) * u * u * u * u); /* 0 is padding */
            if (bw_random_below(&random, 10) == 0) {
                words[k] = (labels[i] ? 50 : 60) + (int32_t)bw_random_below(&random, 10);
            }
        }
    }
}

int main(void)
{
    static const int64_t lengths[] = {16, 32, 64};
    write_texts();
    bw_context *ctx = bw_open(NULL);
    bw_array x = {.data = words, .dtype = BW_I32, .ndim = 1, .shape = {begins[TEXTS]}};
    bw_array y = {.data = labels, .dtype = BW_I32, .ndim = 1, .shape = {TEXTS}};
    bw_dataset *texts = bw_bucket(bw_from_sequences(ctx, &x, begins, TEXTS, &y, NULL), lengths, 3);
    bw_model *model = bw_model_parse(ctx, "embedding(200000,16,mask_zero=true) global_avgpool1d dense(1,sigmoid)");
    bw_status status = bw_compile(model, "adam(lr=0.01)", "binary_crossentropy", "accuracy");

    bw_fit_options options = BW_FIT_OPTIONS_DEFAULT;
    options.epochs = 5;
    options.validation_split = 0.25;
    bw_history *history = NULL;
    if (status == BW_OK) {
        status = bw_fit(model, bw_shuffle(texts, 1), &options, &history);
    }
    if (status == BW_OK) {
        bw_run_facts facts = bw_history_facts(history);
        double table = 4.0 * WORDS * WIDTH / 1048576;
        printf("%d texts of %.0f words on average; a table of %.1f MiB\n", TEXTS, (double)begins[TEXTS] / TEXTS, table);
        printf("planned %.1f MiB: the table and Adam's two of that size are %.1f\n", (double)facts.planned_bytes / 1048576,
               3 * table);
        printf("accuracy %.3f on texts that were not seen\n", bw_history_last(history, "val_accuracy"));
    } else {
        fprintf(stderr, "%s: %s\n", bw_status_name(status), bw_message(ctx));
    }
    bw_close(ctx);
    return status != BW_OK;
}
