/* batchwise doctor: looks at data, model and some updates on trial, and names what is wrong, with evidence and what helps. */
#include "cli/training.h"

#include <stdlib.h>

typedef struct arguments {
    cli_training training;
    double seconds;
    bool json;
} arguments;

#define AT(member) offsetof(arguments, member)

static const cli_option options[] = {
    CLI_TRAINING_OPTIONS(arguments, training),
    {"seconds", &cli_rate, AT(seconds), "S", "the longest time of the trial training (2)"},
    {CLI_JSON_OPTION},
    {.name = NULL},
};

static void print_more(void)
{
    enum { WIDTH = 96 };
    puts("example:\n"
         "  batchwise doctor --model 'dense(32,relu) dense(3,softmax)' --data iris.csv --no-shuffle --batch 16\n\n"
         "findings:");
    int column = 0;
    for (int i = 0; bw_finding_id(i); i++) {
        column += printf("%s%s", column == 0 ? "  " : " ", bw_finding_id(i));
        if (column > WIDTH || !bw_finding_id(i + 1)) {
            putchar('\n');
            column = 0;
        }
    }
}

static const cli_usage usage = {
    .command = "doctor",
    .synopsis = "--model M --data D [options]",
    .purpose = "Looks at data, model and some updates, and names what is wrong. The options are those of train.",
    .options = options,
    .required = "model",
    .print_more = print_more,
};

static int examine(const arguments *given, bw_context *ctx, bw_model *model, bw_dataset *training, bw_dataset *validation,
                   const cli_weights *weights)
{
    bw_fit_options fitting = cli_training_fitting(&given->training, validation, weights);
    bw_doctor_options how = BW_DOCTOR_OPTIONS_DEFAULT;
    bw_findings *findings = NULL;
    how.training = &fitting;
    how.seconds = given->seconds;
    if (bw_doctor(model, training, &how, &findings) != BW_OK) {
        return cli_report(ctx, usage.command);
    }
    if (given->json) {
        cli_json json = {.file = stdout};
        cli_json_object(&json, NULL);
        cli_findings_json(&json, "findings", findings);
        cli_json_object_end(&json);
        putchar('\n');
    } else {
        cli_findings_print(stdout, findings);
    }
    return CLI_SUCCESS;
}

static int run(const arguments *given, bw_context *ctx)
{
    cli_prepared made = {.model = NULL};
    int code = cli_training_open(&given->training, ctx, true, &made);
    if (code == CLI_SUCCESS) {
        code = examine(given, ctx, made.model, made.training, made.validation, &made.weights);
    }
    free(made.weights.weight);
    return code;
}

int cli_doctor(int argc, char **argv)
{
    arguments given = {.training = CLI_TRAINING_DEFAULT("doctor"), .seconds = 2};
    int code;
    if (!cli_options_read(&code, &usage, argc, argv, &given)) {
        return code;
    }
    code = cli_training_check(&given.training);
    if (code == CLI_SUCCESS && cli_training_is_auto(&given.training)) {
        code = cli_mistake(usage.command, "--batch auto is for train; give the size that 'batchwise tune' recommends");
    }
    if (code != CLI_SUCCESS) {
        return code;
    }
    bw_context *ctx = cli_session_open((cli_session){.workers = given.training.workers,
                                                     .memory = given.training.memory,
                                                     .exact_kernels = given.training.exact_kernels,
                                                     .quiet = true});
    return !ctx ? CLI_FAILURE : cli_session_close(ctx, run(&given, ctx));
}
