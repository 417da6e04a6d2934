/* batchwise eval: computes the loss and metrics of a trained model over samples and, for a classifier, the confusion matrix. */
#include "cli/cli.h"

#include <string.h>

typedef struct arguments {
    cli_data data;
    const char *model;
    int workers;
    size_t memory;
    bool quiet, json;
} arguments;

#define AT(member) offsetof(arguments, member)

static const cli_option options[] = {
    {CLI_TRAINED_MODEL_OPTION},
    /* Options that are not given are as in the model's training. */
    CLI_DATA_OPTIONS(arguments, data),
    {CLI_MEMORY_OPTION},
    {CLI_WORKERS_OPTION},
    {"quiet", &cli_flag, AT(quiet), NULL, "no messages but warnings"},
    {CLI_JSON_OPTION},
    {.name = NULL},
};

static void print_example(void)
{
    puts("example:\n"
         "  batchwise eval --model digits.keras --data digits.npz");
}

static const cli_usage usage = {
    .command = "eval",
    .synopsis = "--model M --data D [options]",
    .purpose = "Loss and metrics of a trained model, and the confusion matrix of a classifier.",
    .options = options,
    .required = "model",
    .print_more = print_example,
};

/* Tells whether the object already has a key of this name. A metric to which a file gives such a name appears in the text output
 * only. */
static bool is_own(const char *name)
{
    static const char *const keys[] = {"samples", "classes", "confusion", "precision_by_class", "recall_by_class"};
    bool own = false;
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        own = own || strcmp(name, keys[i]) == 0;
    }
    return own;
}

static void print_json(const bw_history *result, int64_t samples, const cli_confusion *confusion)
{
    cli_json json = {.file = stdout};
    cli_json_object(&json, NULL);
    for (int c = 0; c < bw_history_columns(result); c++) {
        const char *name = bw_history_column(result, c);
        if (!is_own(name)) {
            cli_json_real(&json, name, bw_history_last(result, name));
        }
    }
    cli_json_whole(&json, "samples", samples);
    if (confusion->counts) {
        cli_confusion_json(&json, confusion);
    }
    cli_json_object_end(&json);
    putchar('\n');
}

static void print_text(const bw_history *result, int64_t samples, const cli_confusion *confusion)
{
    for (int c = 0; c < bw_history_columns(result); c++) {
        const char *name = bw_history_column(result, c);
        printf("%s%s %.4f", c > 0 ? ", " : "", name, bw_history_last(result, name));
    }
    printf(" over %lld sample%s\n", (long long)samples, cli_plural(samples));
    if (confusion->counts) {
        putchar('\n');
        cli_confusion_print(stdout, confusion);
    }
}

static int evaluate(const arguments *given, bw_context *ctx, bw_model *model, bw_dataset *dataset)
{
    bw_history *result;
    cli_confusion confusion;
    if (bw_evaluate(model, dataset, &result) != BW_OK) {
        return cli_fail("%s", bw_message(ctx));
    }
    if (!cli_confusion_make(&confusion, ctx, model, dataset)) {
        return CLI_FAILURE;
    }
    (given->json ? print_json : print_text)(result, bw_dataset_count(dataset), &confusion);
    cli_confusion_free(&confusion);
    return CLI_SUCCESS;
}

static int run(const arguments *given, bw_context *ctx)
{
    bw_model *model;
    bw_dataset *dataset;
    int code = cli_model_open_trained(&model, &dataset, ctx, usage.command, given->model, &given->data);
    return code == CLI_SUCCESS ? evaluate(given, ctx, model, dataset) : code;
}

int cli_eval(int argc, char **argv)
{
    arguments given = {.data = CLI_DATA_DEFAULT};
    given.data.part = "test"; /* a model is judged by samples that it was not trained on */
    int code;
    if (!cli_options_read(&code, &usage, argc, argv, &given)) {
        return code;
    }
    code = cli_data_check(usage.command, &given.data);
    if (code != CLI_SUCCESS) {
        return code;
    }
    bw_context *ctx = cli_session_open((cli_session){.workers = given.workers, .memory = given.memory, .quiet = given.quiet});
    return !ctx ? CLI_FAILURE : cli_session_close(ctx, run(&given, ctx));
}
