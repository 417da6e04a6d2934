/*
 * A program of the library as mpirun starts it: two lines more than one of a single process. Its argument says what goes wrong, on
 * one rank. Prints a line for each rank.
 */
#include <batchwise.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SAMPLES = 203, EPOCHS = 2 };

typedef struct state {
    const char *what;
    int rank;
    bw_model *model;
    int counts[EPOCHS][SAMPLES];
} state;

/* One sample at a time is made by a worker, and there is one worker. */
static bool make(void *user, bw_sample *sample, void *const *values)
{
    state *s = user;
    if (sample->epoch >= 0 && sample->epoch < EPOCHS) {
        s->counts[sample->epoch][sample->number]++;
    }
    if (strcmp(s->what, "data") == 0 && sample->number == 77) {
        snprintf(sample->error, BW_ERROR_TEXT, "sample 77 is bad");
        return false;
    }
    for (int k = 0; k < 4; k++) {
        ((float *)values[0])[k] = (float)((sample->number * (k + 3)) % 17) / 17;
    }
    if (values[1]) {
        ((float *)values[1])[0] = (float)(sample->number % 5);
    }
    return true;
}

static bool on_step(void *user, const bw_progress *progress)
{
    state *s = user;
    if (strcmp(s->what, "damage") == 0 && s->rank == 2 && progress->update == 3) {
        float values[32];
        bw_variable_get(s->model, 0, values, 32);
        values[7] += 0.001F;
        bw_variable_set(s->model, 0, values, 32);
    }
    return !(strcmp(s->what, "stop") == 0 && s->rank == 1 && progress->update == 5);
}

/* Every rank writes what it made; the first adds it up. */
static void count(const state *s, int ranks)
{
    for (int epoch = 0; epoch < EPOCHS; epoch++) {
        printf("counts %d %d", epoch, ranks);
        for (int i = 0; i < SAMPLES; i++) {
            printf(" %d", s->counts[epoch][i]);
        }
        putchar('\n');
    }
}

int main(int argc, char **argv)
{
    static state s;
    bw_context_options options = BW_CONTEXT_OPTIONS_DEFAULT;
    options.workers = 1;
    bw_ranks_mpi(&options);
    bw_context *ctx = bw_open(&options);
    const int64_t inputs[] = {SAMPLES, 4}, targets[] = {SAMPLES, 1};
    bw_field fields[] = {{"x", {.dtype = BW_F32, .ndim = 2}}, {"y", {.dtype = BW_F32, .ndim = 2}}};
    memcpy(fields[0].array.shape, inputs, sizeof inputs);
    memcpy(fields[1].array.shape, targets, sizeof targets);
    s.what = argc > 1 ? argv[1] : "";
    s.rank = options.rank;
    bw_dataset *data = bw_shuffle(bw_from_function(ctx, fields, 2, make, &s), 3);
    s.model = bw_model_parse(ctx, "dense(8,relu) dense(1)");
    bw_fit_options fitting = BW_FIT_OPTIONS_DEFAULT;
    fitting.epochs = strcmp(s.what, "begin") == 0 && s.rank == 1 ? 0 : EPOCHS;
    fitting.batch = 10;
    fitting.on_step = on_step;
    fitting.user = &s;
    bw_history *history = NULL;
    bw_status status = bw_compile(s.model, "adam", "mse", NULL);
    status = status == BW_OK ? bw_fit(s.model, data, &fitting, &history) : status;
    if (strcmp(s.what, "count") == 0) {
        count(&s, bw_ranks_count(options.ranks));
    } else if (status != BW_OK) {
        printf("rank %d: %s %s\n", s.rank, bw_status_name(status), bw_message(ctx));
    } else {
        printf("rank %d: OK %lld updates, weights %016llx\n", s.rank, (long long)bw_history_facts(history).updates,
               (unsigned long long)bw_model_hash(s.model));
    }
    fflush(stdout);
    bw_close(ctx);
    bw_ranks_close(options.ranks);
    return status == BW_OK ? 0 : 1;
}
