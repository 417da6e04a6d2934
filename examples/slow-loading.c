/*
 * Is loading the bottleneck? Loading a batch of 16 images takes 1 ms, as if they came from a slow disk. They are loaded when they
 * are needed, ahead of training by one thread, by 16 threads in parallel, and once for all epochs. A bar shows the share of the
 * time in which the workers had something to compute.
 */
#include <batchwise.h>
#include <stdio.h>

typedef enum way { WHEN_NEEDED, PREFETCHED, PARALLEL, CACHED, WAYS } way;

static bw_dataset *open_images(bw_context *ctx, way how)
{
    bw_dataset *images = bw_read(ctx, "synth:images?n=1000&delay=62.5us", NULL);
    bw_prefetch_options options = BW_PREFETCH_OPTIONS_DEFAULT;
    options.threads = how == PARALLEL ? 16 : 1; /* they wait more than they compute, so more than there are CPUs */
    options.samples = how == WHEN_NEEDED ? 1 : 0;
    return bw_shuffle(how == CACHED ? bw_cache(images) : bw_prefetch(images, &options), 1);
}

/* The share of the steps' time in which workers did not wait for samples. */
static double busy_share(const bw_history *history)
{
    bw_profile_facts facts = bw_history_profile(history);
    double waited = 0;
    bw_part part;
    for (int i = 0; i < facts.parts && bw_history_part(history, i, &part) == BW_OK; i++) {
        waited += part.kind == BW_PART_DATA ? part.seconds : 0;
    }
    return 1 - waited / (facts.workers * facts.step_seconds);
}

int main(void)
{
    static const char *const names[WAYS] = {"when needed", "prefetched", "16 in parallel", "cached"};
    bw_context *ctx = bw_open(NULL);
    bw_status status = BW_OK;
    for (int i = 0; i < WAYS && status == BW_OK; i++) {
        bw_fit_options options = BW_FIT_OPTIONS_DEFAULT;
        options.epochs = 3;
        options.batch = 16;
        bw_model *model =
            bw_model_parse(ctx, "Conv2D(32, 3, activation=relu) MaxPooling2D(2) Flatten() Dense(10, activation=softmax)");
        bw_history *history = NULL;
        status = bw_fit(model, open_images(ctx, (way)i), &options, &history);
        if (status == BW_OK) {
            bw_run_facts facts = bw_history_facts(history);
            int bar = (int)(40 * busy_share(history) + 0.5);
            printf("%-15s %7.0f samples a second |%.*s%.*s|\n", names[i], (double)facts.samples / facts.seconds, bar,
                   "########################################", 40 - bar, "........................................");
        }
    }
    if (status != BW_OK) {
        fprintf(stderr, "%s: %s\n", bw_status_name(status), bw_message(ctx));
    }
    bw_close(ctx);
    return status != BW_OK;
}
