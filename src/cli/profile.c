/*
 * batchwise profile: shows where each microsecond of a training step goes. The model is trained for a few seconds as `train` would
 * train it. The measured times are shown as a table, as a bar for each worker and, for two batch sizes, as sentences that explain
 * why a sample takes longer with one of them.
 */
#include "cli/profile.h"

#include <stdlib.h>
#include <string.h>

typedef struct arguments {
    bw_hardware other; /* what --what-if says */
    const char *model, *optimizer, *loss, *compare, *batch, *trace, *what_if;
    cli_data data;
    int64_t tile;
    int steps, workers, lanes;
    double seconds;
    uint64_t seed;
    size_t memory;
    bool exact_kernels, no_shuffle, json;
} arguments;

#define AT(member) offsetof(arguments, member)

enum { TRACED = 50 }; /* steps; enough to show what repeats */

static const cli_option options[] = {
    {CLI_MODEL_OPTION},
    CLI_DATA_OPTIONS(arguments, data),
    {"batch", &cli_text, AT(batch), "N|full", "samples per update (32)"},
    {"compare", &cli_text, AT(compare), "A,B", "two batch sizes: why a sample takes longer with one of them"},
    {"trace", &cli_text, AT(trace), "F", "write the parts of some steps as .json or .json.gz, which\nui.perfetto.dev shows"},
    {"what-if", &cli_text, AT(what_if), "CHANGE,...",
     "predict the step on other hardware: cores=8, compute=2x,\nbandwidth=2x (of memory), data=2x (reading samples)"},
    {"seconds", &cli_rate, AT(seconds), "S", "how long to train (2)"},
    {"steps", &cli_count, AT(steps), "N", "steps in a row over the same samples, at most (64)"},
    {CLI_OPTIMIZER_OPTION},
    {CLI_LOSS_OPTION},
    {"no-shuffle", &cli_flag, AT(no_shuffle), NULL, "samples in their order"},
    {CLI_MEMORY_OPTION},
    {CLI_WORKERS_OPTION},
    {CLI_TILE_OPTION},
    {CLI_LANES_OPTION},
    {CLI_EXACT_KERNELS_OPTION},
    {"seed", &cli_seed, AT(seed), "N", "of the weights, the order and random layers (0)"},
    {CLI_JSON_OPTION},
    {.name = NULL},
};

static void print_example(void)
{
    puts("example:\n"
         "  batchwise profile --model 'conv2d(32,3,relu) maxpool2d(2) flatten dense(10,softmax)' --data digits.npz --compare "
         "16,128");
}

static const cli_usage usage = {
    .command = "profile",
    .synopsis = "--model M --data D [options]",
    .purpose = "Tells where each microsecond of a training step goes.",
    .options = options,
    .required = "model",
    .print_more = print_example,
};

/* ---- Training ------------------------------------------------------------------------------------------- */

typedef struct clock {
    double most, spent;
} clock;

static bool on_epoch(void *user, const bw_progress *progress)
{
    clock *c = user;
    c->spent += progress->seconds;
    return c->spent < c->most && !cli_session_interrupted();
}

/* Trains in epochs of a few steps, so that training can stop in time without a callback in every step, whose time would be
 * measured too. */
static int fit(cli_profile *made, const arguments *given, bw_context *ctx, int64_t batch)
{
    bw_model *model = NULL;
    int code = cli_model_make(&model, ctx, usage.command, given->model, given->optimizer, given->loss);
    if (code != CLI_SUCCESS) {
        return code;
    }
    bw_dataset *dataset = cli_data_read(ctx, &given->data, given->data.path, model, NULL);
    if (!dataset) {
        return CLI_FAILURE;
    }
    int64_t samples, count = bw_dataset_count(dataset);
    if (!__builtin_mul_overflow(batch, (int64_t)given->steps, &samples) && samples < count) {
        dataset = bw_take(dataset, samples);
    }
    dataset = given->no_shuffle ? dataset : bw_shuffle(dataset, given->seed);
    clock c = {.most = given->seconds};
    bw_fit_options fitting = BW_FIT_OPTIONS_DEFAULT;
    fitting.epochs = 1 << 20;
    fitting.batch = batch;
    fitting.seed = given->seed;
    fitting.memory = given->memory;
    fitting.tile = given->tile;
    fitting.lanes = given->lanes;
    fitting.trace_steps = TRACED;
    fitting.on_epoch = on_epoch;
    fitting.user = &c;
    bw_history *history = NULL;
    if (bw_fit(model, dataset, &fitting, &history) != BW_OK) {
        return cli_report(ctx, usage.command);
    }
    if (given->trace && bw_history_save_trace(history, given->trace) != BW_OK) {
        return cli_report(ctx, usage.command);
    }
    bw_machine machine;
    if (bw_machine_limits(ctx, &machine) != BW_OK) {
        return cli_report(ctx, usage.command);
    }
    if (!cli_profile_take(made, history, &machine)) {
        return cli_fail("no step was timed: a run of one step tells nothing");
    }
    made->batch = count >= 0 && count < batch ? count : batch < INT64_MAX ? batch : 0;
    made->other = given->other;
    if (given->what_if && (bw_history_predict(history, &machine, NULL, &made->now) != BW_OK ||
                           bw_history_predict(history, &machine, &given->other, &made->then) != BW_OK)) {
        return cli_report(ctx, usage.command);
    }
    return CLI_SUCCESS;
}

static int measure(cli_profile *made, const arguments *given, int64_t batch)
{
    bw_context *ctx = cli_session_open((cli_session){.workers = given->workers, .exact_kernels = given->exact_kernels});
    return ctx ? cli_session_close(ctx, fit(made, given, ctx, batch)) : CLI_FAILURE;
}

/* ---- Options -------------------------------------------------------------------------------------------- */

/* Reads one batch size, or the two to compare. Returns how many there are, or 0 after a message. */
static int read_batches(const arguments *given, int64_t batches[2])
{
    if (!given->compare) {
        if (!cli_batch.parse(&batches[0], given->batch ? given->batch : "32")) {
            cli_mistake(usage.command, "--batch: expected %s, found '%s'", cli_batch.expected, given->batch);
            return 0;
        }
        return 1;
    }
    const char *comma = strchr(given->compare, ',');
    char first[32];
    if (comma && (size_t)(comma - given->compare) < sizeof first) {
        snprintf(first, sizeof first, "%.*s", (int)(comma - given->compare), given->compare);
        if (cli_batch.parse(&batches[0], first) && cli_batch.parse(&batches[1], comma + 1) && batches[0] != batches[1]) {
            return 2;
        }
    }
    cli_mistake(usage.command, "--compare: expected two batch sizes such as 16,128, found '%s'", given->compare);
    return 0;
}

/* Each batch size is measured in a separate context, and nothing is printed before all are measured. */
int cli_profile_command(int argc, char **argv)
{
    arguments given = {.data = CLI_DATA_DEFAULT, .steps = 64, .seconds = 2};
    cli_profile made[2] = {{.parts = NULL}, {.parts = NULL}};
    int64_t batches[2];
    int code;
    if (!cli_options_read(&code, &usage, argc, argv, &given)) {
        return code;
    }
    if (cli_data_check(usage.command, &given.data) != CLI_SUCCESS) {
        return CLI_USAGE;
    }
    if (given.compare && given.batch) {
        return cli_mistake(usage.command, "--compare names the batch sizes: leave --batch out");
    }
    if (given.compare && given.trace) {
        return cli_mistake(usage.command, "--trace is of one batch size: leave --compare out");
    }
    if (given.what_if && !cli_what_if_parse(&given.other, given.what_if)) {
        return cli_mistake(usage.command,
                           "--what-if: expected changes such as cores=8,compute=1.5x,bandwidth=2x,data=2x, found '%s'",
                           given.what_if);
    }
    int count = read_batches(&given, batches);
    code = count > 0 ? CLI_SUCCESS : CLI_USAGE;
    for (int k = 0; k < count && code == CLI_SUCCESS; k++) {
        code = measure(&made[k], &given, batches[k]);
    }
    if (code == CLI_SUCCESS && given.json) {
        cli_profile_json(made, count);
    } else if (code == CLI_SUCCESS) {
        for (int k = 0; k < count; k++) {
            cli_profile_print(&made[k]);
        }
        if (count == 2) {
            cli_profile_compare(&made[0], &made[1]);
        }
    }
    cli_profile_free(&made[0]);
    cli_profile_free(&made[1]);
    return code;
}
