/*
 * Trains on 128x128 images with batches far larger than memory could hold, within 64 MiB. The plan says before the first step what
 * a run takes, and what a system would take that holds the whole batch.
 *
 * Usage: image-large-batch [BATCH]
 */
#include <batchwise.h>
#include <stdio.h>
#include <stdlib.h>

static const char network[] = "input(128,128,3) Conv2D(32, 3, activation=relu) MaxPooling2D(2) Conv2D(64, 3, activation=relu) "
                              "MaxPooling2D(2) Flatten() Dense(10, activation=softmax)";
static const size_t budget = 64 << 20;

static bw_status print_plans(bw_context *ctx, bw_model *model)
{
    static const int64_t batches[] = {16, 128, 1024, 8192};
    bw_plan_options options = BW_PLAN_OPTIONS_DEFAULT;
    options.memory = budget;
    printf("   batch   planned   holding the batch\n");
    for (int i = 0; i < 4; i++) {
        bw_plan *plan = bw_plan_make(model, NULL, batches[i], &options);
        if (!plan) {
            return bw_last_error(ctx)->status;
        }
        bw_memory_facts facts = bw_plan_facts(plan);
        printf("%8lld %5zu MiB %15zu MiB\n", (long long)batches[i], facts.peak_bytes >> 20, facts.whole_batch_bytes >> 20);
        bw_plan_free(plan);
    }
    return BW_OK;
}

int main(int argc, char **argv)
{
    bw_context *ctx = bw_open(NULL);
    int64_t batch = argc > 1 ? atoll(argv[1]) : 128;
    bw_dataset *images = bw_read(ctx, "synth:images?n=256&shape=128x128x3", NULL);
    bw_model *model = bw_model_parse(ctx, network);
    bw_status status = bw_compile(model, "adam", "sparse_categorical_crossentropy", "accuracy");
    if (status == BW_OK) {
        status = print_plans(ctx, model);
    }
    bw_fit_options options = BW_FIT_OPTIONS_DEFAULT;
    options.batch = batch;
    options.memory = budget;
    bw_history *history = NULL;
    if (status == BW_OK) {
        status = bw_fit(model, bw_shuffle(images, 1), &options, &history);
    }
    if (status == BW_OK) {
        bw_run_facts facts = bw_history_facts(history);
        printf("trained %lld images by %lld: planned %.1f MiB, used %.1f MiB, loss %.3f\n", (long long)facts.samples,
               (long long)batch, (double)facts.planned_bytes / 1048576, (double)facts.peak_bytes / 1048576,
               bw_history_last(history, "loss"));
    } else {
        fprintf(stderr, "%s: %s\n", bw_status_name(status), bw_message(ctx));
    }
    bw_close(ctx);
    return status != BW_OK;
}
