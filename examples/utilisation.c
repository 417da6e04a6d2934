/*
 * How busy are the workers? Trains with two batch sizes, draws for each worker which share of a step it computed, moved data and waited,
 * and writes a trace of some steps that ui.perfetto.dev opens.
 *
 * Usage: utilisation [FOLDER]
 */
#include <batchwise.h>
#include <stdio.h>

/* C: computing; m: gathering, reducing, updating; .: waiting */
static char letter_of(bw_part_kind kind)
{
    switch (kind) {
    case BW_PART_FORWARD:
    case BW_PART_LOSS:
    case BW_PART_BACKWARD:
        return 'C';
    case BW_PART_IDLE:
    case BW_PART_DATA:
    case BW_PART_RANKS:
        return '.';
    default:
        return 'm';
    }
}

static void draw(const bw_history *history)
{
    enum { WIDTH = 60 };
    bw_profile_facts facts = bw_history_profile(history);
    for (int worker = 0; worker < facts.workers; worker++) {
        printf("  worker %d ", worker);
        for (const char *letter = "Cm."; *letter; letter++) {
            double seconds = 0;
            bw_part part;
            for (int i = 0; i < facts.parts && bw_history_part(history, i, &part) == BW_OK; i++) {
                seconds += letter_of(part.kind) == *letter ? bw_history_part_seconds(history, i, worker) : 0;
            }
            for (int i = 0; i < (int)(WIDTH * seconds / facts.step_seconds + 0.5); i++) {
                putchar(*letter);
            }
        }
        putchar('\n');
    }
}

static bw_status examine(bw_context *ctx, int64_t batch, const char *folder)
{
    char path[1024];
    bw_fit_options options = BW_FIT_OPTIONS_DEFAULT;
    options.epochs = 5;
    options.batch = batch;
    options.trace_steps = 20;
    bw_model *model = bw_model_parse(ctx, "Conv2D(32, 3, activation=relu) MaxPooling2D(2) Flatten() Dense(10, activation=softmax)");
    bw_dataset *images = bw_shuffle(bw_cache(bw_read(ctx, "synth:images?n=1000", NULL)), 1);
    bw_history *history = NULL;
    bw_status status = bw_fit(model, images, &options, &history);
    if (status != BW_OK) {
        return status;
    }
    printf("batch %lld: a step takes %.0f microseconds\n", (long long)batch, 1e6 * bw_history_profile(history).step_seconds);
    draw(history);
    snprintf(path, sizeof path, "%s/batch-%lld.json.gz", folder, (long long)batch);
    status = bw_history_save_trace(history, path);
    if (status == BW_OK) {
        printf("  trace: %s\n", path);
    }
    return status;
}

int main(int argc, char **argv)
{
    const char *folder = argc > 1 ? argv[1] : ".";
    bw_context *ctx = bw_open(NULL);
    bw_status status = examine(ctx, 16, folder);
    if (status == BW_OK) {
        status = examine(ctx, 128, folder);
    }
    if (status != BW_OK) {
        fprintf(stderr, "%s: %s\n", bw_status_name(status), bw_message(ctx));
    }
    bw_close(ctx);
    return status != BW_OK;
}
