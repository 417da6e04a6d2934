/*
 * How busy are the workers? Trains with two batch sizes, draws for each worker the share of a step in which it computed, moved
 * data, talked to other ranks and waited, and writes a trace of some steps that ui.perfetto.dev opens.
 *
 * Usage: utilisation [FOLDER], or over two processes: mpirun -n 2 utilisation [FOLDER]
 */
#include <batchwise.h>
#include <stdio.h>

/* C: computing; m: gathering, reducing, updating; r: sums over ranks; .: waiting */
static char letter_of(bw_part_kind kind)
{
    switch (kind) {
    case BW_PART_FORWARD:
    case BW_PART_LOSS:
    case BW_PART_BACKWARD:
        return 'C';
    case BW_PART_IDLE:
    case BW_PART_DATA:
        return '.';
    case BW_PART_RANKS:
        return 'r';
    default:
        return 'm';
    }
}

static void draw(const bw_history *history, int rank)
{
    enum { WIDTH = 60 };
    char line[2 * WIDTH];
    bw_profile_facts facts = bw_history_profile(history);
    for (int worker = 0; worker < facts.workers; worker++) {
        int length = 0;
        double seconds = 0;
        for (const char *letter = "Cmr."; *letter; letter++) {
            bw_part part;
            for (int i = 0; i < facts.parts && bw_history_part(history, i, &part) == BW_OK; i++) {
                seconds += letter_of(part.kind) == *letter ? bw_history_part_seconds(history, i, worker) : 0;
            }
            while (length < WIDTH && length < (int)(WIDTH * seconds / facts.step_seconds + 0.5)) {
                line[length++] = *letter;
            }
        }
        printf("  rank %d, worker %d |%.*s|\n", rank, worker, length, line);
    }
}

static bw_status examine(bw_context *ctx, int rank, int64_t batch, const char *folder)
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
    draw(history, rank);
    snprintf(path, sizeof path, "%s/batch-%lld-rank-%d.json.gz", folder, (long long)batch, rank);
    status = bw_history_save_trace(history, path);
    if (status == BW_OK) {
        printf("  trace: %s\n", path);
    }
    return status;
}

int main(int argc, char **argv)
{
    const char *folder = argc > 1 ? argv[1] : ".";
    bw_context_options options = BW_CONTEXT_OPTIONS_DEFAULT;
    bw_ranks_mpi(&options); /* sets the rank if mpirun started this program, and does nothing otherwise */
    bw_context *ctx = bw_open(&options);
    bw_status status = examine(ctx, options.rank, 16, folder);
    if (status == BW_OK) {
        status = examine(ctx, options.rank, 128, folder);
    }
    if (status != BW_OK) {
        fprintf(stderr, "%s: %s\n", bw_status_name(status), bw_message(ctx));
    }
    bw_close(ctx);
    bw_ranks_close(options.ranks);
    return status != BW_OK;
}
