/*
 * What checkpoints cost a training.
 *
 *   checkpoint DIGITS.npz FOLDER [SECONDS]
 *
 * Trains a network on the digits without checkpoints, with one a second, and with one a second on a disk whose every write takes
 * half a second, each for about that many seconds (3) and seven times by turns. The figures of a kind are the medians over the
 * rounds of its time for one step, and of the processors' time that one takes, beside those of the round's training without
 * checkpoints. Where other programs run, the second is the better one: it has the writing in it, and not what they take.
 */
#include "base/internal.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { ROUNDS = 7, KINDS = 3 };

/* As `batchwise demo` trains it. */
static const char model_text[] = "rescaling(0.0625) conv2d(32,3,relu,padding=same) maxpool2d(2) conv2d(64,3,relu,padding=same) "
                                 "maxpool2d(2) flatten dropout(0.3) dense(10,softmax)";
static const char *const names[KINDS] = {"without checkpoints", "one a second", "one a second, 500 ms a write"};

static int64_t write_slowly(void *user, int file, const void *bytes, size_t count, int64_t offset)
{
    (void)user;
    if (count > 64) { /* not what is written to /proc */
        usleep(500000);
    }
    return bwi_system_io.write(NULL, file, bytes, count, offset);
}

typedef struct clock_of_a_run {
    double end;
    int64_t steps;
    double seconds;
} clock_of_a_run;

static bool on_step(void *user, const bw_progress *progress)
{
    clock_of_a_run *c = user;
    c->steps = progress->update;
    return progress->update % 64 != 0 || bwi_now() < c->end;
}

static int remove_entry(const char *path, const struct stat *facts, int kind, struct FTW *place)
{
    (void)facts, (void)kind, (void)place;
    return remove(path);
}

static void stop(bw_context *ctx)
{
    fprintf(stderr, "bench/checkpoint: %s\n", ctx ? bw_message(ctx) : "no context");
    exit(1);
}

static double processor_seconds(void)
{
    struct timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* Seconds of one step, without the wait for the last checkpoint, and of the processors, with the last checkpoint. */
typedef struct step_time {
    double clock, processors;
} step_time;

static step_time train(int kind, const char *data, const char *folder, double seconds, bw_run_facts *facts)
{
    bw_io slow = bwi_system_io;
    slow.write = write_slowly;
    bw_context_options options = BW_CONTEXT_OPTIONS_DEFAULT;
    options.io = kind == 2 ? &slow : NULL;
    bw_context *ctx = bw_open(&options);
    bw_read_options reading = BW_READ_OPTIONS_DEFAULT;
    bw_dataset *samples = ctx ? bw_shuffle(bw_read(ctx, data, &reading), 1) : NULL;
    clock_of_a_run c = {.steps = 0};
    bw_fit_options fitting = BW_FIT_OPTIONS_DEFAULT;
    fitting.epochs = 1000000;
    fitting.on_step = on_step;
    fitting.user = &c;
    if (kind > 0) {
        fitting.checkpoint_dir = folder;
        fitting.checkpoint_every = "1s";
    }
    bw_history *history = NULL;
    double begin = processor_seconds();
    c.end = bwi_now() + seconds;
    if (!samples || bw_fit(bw_model_parse(ctx, model_text), samples, &fitting, &history) != BW_OK) {
        stop(ctx);
    }
    *facts = bw_history_facts(history);
    double updates = (double)facts->updates;
    step_time each = {facts->seconds / updates, (processor_seconds() - begin) / updates};
    bw_close(ctx);
    nftw(folder, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
    return each;
}

static int compare(const void *a, const void *b)
{
    double difference = *(const double *)a - *(const double *)b;
    return (difference > 0) - (difference < 0);
}

int main(int argc, char **argv)
{
    if (argc < 3) {
        fprintf(stderr, "usage: checkpoint DIGITS.npz FOLDER [SECONDS]\n");
        return 2;
    }
    double seconds = argc > 3 ? strtod(argv[3], NULL) : 3, ratios[KINDS][ROUNDS], processors[KINDS][ROUNDS];
    char folder[4096];
    snprintf(folder, sizeof folder, "%s/checkpoints", argv[2]);
    bw_run_facts facts[KINDS];
    for (int r = 0; r < ROUNDS; r++) {
        step_time each[KINDS];
        for (int k = 0; k < KINDS; k++) {
            each[k] = train(k, argv[1], folder, seconds, &facts[k]);
            ratios[k][r] = each[k].clock / each[0].clock;
            processors[k][r] = each[k].processors / each[0].processors;
        }
    }
    for (int k = 0; k < KINDS; k++) {
        qsort(ratios[k], ROUNDS, sizeof ratios[k][0], compare);
        qsort(processors[k], ROUNDS, sizeof processors[k][0], compare);
        bwi_print_file(stdout,
                       "%-30s %8lld steps, %3lld checkpoints, stood still for %6.2f ms; a step takes %+.2f%% of time, %+.2f%% of "
                       "processor time\n",
                       names[k], (long long)facts[k].updates, (long long)facts[k].checkpoints, 1000 * facts[k].checkpoint_seconds,
                       100 * (ratios[k][ROUNDS / 2] - 1), 100 * (processors[k][ROUNDS / 2] - 1));
    }
    return 0;
}
