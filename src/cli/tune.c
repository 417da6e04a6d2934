/*
 * batchwise tune: finds a batch size and the learning rate that goes with it, by bw_tune, and shows what the choice rests on.
 * Nothing is printed before everything is measured.
 */
#include "cli/page.h"
#include "cli/report.h"

#include <stdlib.h>
#include <string.h>

typedef struct arguments {
    const char *model, *optimizer, *loss, *report;
    char **words; /* the arguments, for the report */
    cli_data data;
    double rate, budget, confirm, validation_split;
    int64_t largest;
    int epochs, workers, lanes;
    uint64_t seed;
    size_t memory;
    bool tile, standardise, normalise, exact_kernels, no_shuffle, json;
} arguments;

#define AT(member) offsetof(arguments, member)

static const cli_option options[] = {
    {CLI_MODEL_OPTION},
    CLI_DATA_OPTIONS(arguments, data),
    {"standardise", &cli_flag, AT(standardise), NULL, "bring each column or channel to mean 0 and deviation 1"},
    {"normalise", &cli_flag, AT(normalise), NULL, "likewise, to the range 0 to 1"},
    {"budget", &cli_duration, AT(budget), "TIME", "how long to measure (15s)"},
    {"confirm", &cli_some_seconds, AT(confirm), "[TIME]",
     "also train candidates from one state, each for TIME (5s) or until\nit reaches the target, and recommend the first"},
    {"tile", &cli_flag, AT(tile), NULL, "also measure tiles at the recommended batch size"},
    {"largest", &cli_extent, AT(largest), "N", "the largest batch size to try (4096)"},
    {"epochs", &cli_count, AT(epochs), "N", "the target: where N epochs with batch 32 lead (10)"},
    {CLI_OPTIMIZER_OPTION},
    {"lr", &cli_rate, AT(rate), "X", "the learning rate that is right for batch 32; default: it is\nsearched for"},
    {CLI_LOSS_OPTION},
    {"validation-split", &cli_share, AT(validation_split), "F", "share of the samples to leave out; --confirm shows their loss"},
    {"no-shuffle", &cli_flag, AT(no_shuffle), NULL, "take the samples in the order of the file"},
    {CLI_MEMORY_OPTION},
    {CLI_WORKERS_OPTION},
    {CLI_LANES_OPTION},
    {CLI_EXACT_KERNELS_OPTION},
    {"seed", &cli_seed, AT(seed), "N", "of the weights, the order and random layers (0)"},
    {"report", &cli_text, AT(report), "F", "write a page with the curves and what they rest on: F.html"},
    {CLI_JSON_OPTION},
    {.name = NULL},
};

static void print_example(void)
{
    puts("example:\n"
         "  batchwise tune --model 'flatten dense(64,relu) dense(10,softmax)' --data digits.npz --scale 1/16 --confirm 3s");
}

static const cli_usage usage = {
    .command = "tune",
    .synopsis = "--model M --data D [options]",
    .purpose = "Finds a batch size and the learning rate that goes with it, and says what they rest on.",
    .options = options,
    .required = "model",
    .print_more = print_example,
};

static bw_dataset *prepare(const arguments *given, bw_dataset *dataset)
{
    dataset = given->standardise ? bw_standardise(dataset, NULL) : dataset;
    dataset = given->normalise ? bw_normalise(dataset, NULL) : dataset;
    return given->no_shuffle ? dataset : bw_shuffle(dataset, given->seed);
}

/* ---- The report ------------------------------------------------------------------------------------------ */

/* The page is that of a run whose only part is the tuning. */
static int write_report(const arguments *given, const cli_result *result)
{
    cli_page_run page = {.name = given->report};
    FILE *memory = open_memstream(&page.texts[CLI_PAGE_RUN], &page.lengths[CLI_PAGE_RUN]);
    if (!memory) {
        return cli_fail("%s: no memory for the report", given->report);
    }
    cli_json json = {.file = memory};
    cli_run_json_tuning(&json, result);
    bool written = fclose(memory) == 0 && cli_page_write(given->report, &page, 1);
    cli_page_free(&page);
    if (written && !given->json) {
        printf("report %s\n", given->report);
    }
    return written ? CLI_SUCCESS : CLI_FAILURE;
}

static int report(const arguments *given, bw_context *ctx, bw_model *model, bw_dataset *dataset, const bw_tuning *tuning)
{
    char title[256];
    const char *path = given->data.path, *slash = strrchr(path, '/');
    bw_tune_facts facts = bw_tuning_facts(tuning);
    snprintf(title, sizeof title, "A batch size for %s", slash && slash[1] ? slash + 1 : path);
    cli_result result = {.ctx = ctx,
                         .model = model,
                         .training = dataset,
                         .batch = facts.decided ? facts.batch : facts.reference,
                         .tuning = tuning,
                         .run = {.arguments = given->words, .seed = given->seed, .data = path, .title = title}};
    return write_report(given, &result);
}

/* ---- Tuning ---------------------------------------------------------------------------------------------- */

/* Ctrl-C cancels bw_tune, whose model nobody needs any more. */
static int tune(const arguments *given, bw_context *ctx)
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
    bw_fit_options fitting = BW_FIT_OPTIONS_DEFAULT;
    bw_tune_options tuning = BW_TUNE_OPTIONS_DEFAULT;
    bw_tuning *made = NULL;
    fitting.epochs = given->epochs;
    fitting.validation_split = given->validation_split;
    fitting.seed = given->seed;
    fitting.memory = given->memory;
    fitting.lanes = given->lanes;
    tuning.fit = &fitting;
    tuning.seconds = given->budget;
    tuning.confirm = given->confirm;
    tuning.largest = given->largest;
    tuning.tiles = given->tile;
    tuning.keep_rate = given->rate > 0;
    if (given->rate > 0 && bw_set_learning_rate(model, given->rate) != BW_OK) {
        return cli_report(ctx, usage.command);
    }
    dataset = prepare(given, dataset);
    bw_status status = bw_tune(model, dataset, &tuning, &made);
    if (status == BW_CANCELLED) {
        return cli_fail("interrupted");
    }
    if (status != BW_OK) {
        return cli_report(ctx, usage.command);
    }
    if (given->json) {
        cli_json json = {.file = stdout};
        cli_tuning_json(&json, NULL, made);
        putchar('\n');
    } else {
        cli_tuning_print(made);
    }
    return given->report && cli_rank() == 0 ? report(given, ctx, model, dataset, made) : CLI_SUCCESS;
}

int cli_tune_command(int argc, char **argv)
{
    arguments given = {.data = CLI_DATA_DEFAULT, .budget = 15, .largest = 4096, .epochs = 10, .words = argv};
    int code;
    if (!cli_options_read(&code, &usage, argc, argv, &given)) {
        return code;
    }
    if (cli_data_check(usage.command, &given.data) != CLI_SUCCESS) {
        return CLI_USAGE;
    }
    if (cli_ranks_count() > 1 && given.data.path && strcmp(given.data.path, "-") == 0) {
        return cli_mistake(usage.command, "--data -: ranks cannot share standard input; store the samples in a file");
    }
    bw_context *ctx =
        cli_session_open((cli_session){.workers = given.workers, .exact_kernels = given.exact_kernels, .ranks = true});
    return !ctx ? CLI_FAILURE : cli_session_close(ctx, tune(&given, ctx));
}
