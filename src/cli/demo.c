/*
 * batchwise demo: trains on the built-in handwritten digits and shows everything from the plan and the doctor to the report, in
 * seconds. Every fifth digit is kept for validation.
 */
#include "cli/cli.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { EPOCHS = 20, BATCH = 32, EVERY = 5, LOOKED = 1 /* second */ };

static const char model_text[] = "rescaling(0.0625) conv2d(32,3,relu,padding=same) maxpool2d(2) conv2d(64,3,relu,padding=same) "
                                 "maxpool2d(2) flatten dropout(0.3) dense(10,softmax)";
static const char optimizer[] = "adam(cosine_decay(0.004,900))"; /* 20 epochs of 45 updates */

typedef struct arguments {
    const char *run;
    int workers;
    uint64_t seed;
    char **words;
    bool quiet, json;
} arguments;

#define AT(member) offsetof(arguments, member)

static const cli_option options[] = {
    {"run", &cli_text, AT(run), "DIR", "the folder of the run (batchwise-demo); an earlier run in it\nis replaced"},
    {CLI_WORKERS_OPTION},
    {"seed", &cli_seed, AT(seed), "N", "of the weights, the order and dropout (0)"},
    {"quiet", &cli_flag, AT(quiet), NULL, "no progress"},
    {CLI_JSON_OPTION},
    {.name = NULL},
};

static void print_more(void)
{
    printf("model:\n  %s\n", model_text);
}

static const cli_usage usage = {
    .command = "demo",
    .synopsis = "[options]",
    .purpose = "Learns to read handwritten digits: plan, training, doctor, and a report as an HTML page.",
    .options = options,
    .print_more = print_more,
};

/* ---- The digits ----------------------------------------------------------------------------------------- */

/* Looks beside the program in the tree where it was built (build/ or build/PRESET/), or where it was installed. The caller frees
 * the path; NULL after a message. */
static char *find_digits(void)
{
    static const char *const places[] = {"../share/batchwise/digits.npz", "../data/digits.npz", "../../data/digits.npz"};
    enum { LONGEST = 4096 };
    char *path = malloc(LONGEST);
    ssize_t length = !path ? -1 : readlink("/proc/self/exe", path, LONGEST - 64);
    while (length > 0 && path[length - 1] != '/') {
        length--;
    }
    for (size_t i = 0; length > 0 && i < sizeof places / sizeof places[0]; i++) {
        snprintf(path + length, (size_t)(LONGEST - length), "%s", places[i]);
        if (access(path, R_OK) == 0) {
            return path;
        }
    }
    cli_fail("the digits were not found: expected %.*s%s, or %s beside it", length > 0 ? (int)length : 0, !path ? "" : path,
             places[0], places[1]);
    free(path);
    return NULL;
}

static bool is_validation(void *user, bw_sample *sample, const void *const *from)
{
    (void)from;
    return (sample->number % EVERY == 0) == *(const bool *)user;
}

static bw_dataset *read_part(bw_context *ctx, const char *path, bool validation)
{
    return bw_filter(bw_read(ctx, path, NULL), is_validation, &validation);
}

/* ---- The plan ------------------------------------------------------------------------------------------- */

static int print_plan(bw_context *ctx, bw_model *model, bw_dataset *training, const bw_plan_options *planning)
{
    bw_plan *plan = bw_plan_make(model, training, BATCH, planning);
    if (!plan || bw_plan_print(plan, stdout) != BW_OK) {
        return cli_fail("%s", bw_message(ctx));
    }
    bw_plan_free(plan);
    putchar('\n');
    fflush(stdout);
    return CLI_SUCCESS;
}

/* ---- Results -------------------------------------------------------------------------------------------- */

static void print_json(const cli_result *result, const char *report)
{
    bw_run_facts facts = bw_history_facts(result->history);
    cli_json json = {.file = stdout};
    cli_json_object(&json, NULL);
    cli_json_real(&json, "accuracy", bw_history_last(result->history, "val_accuracy"));
    cli_json_text(&json, "report", report);
    cli_json_text(&json, "run", result->run.folder);
    cli_findings_json(&json, "findings", result->findings);
    cli_json_real(&json, "seconds", facts.seconds);
    cli_json_real(&json, "samples_per_s", cli_result_speed(result));
    cli_json_bytes(&json, "peak_bytes", facts.peak_bytes);
    cli_json_bytes(&json, "planned_bytes", facts.planned_bytes);
    cli_json_hash(&json, "hash", bw_model_hash(result->model));
    cli_json_object_end(&json);
    putchar('\n');
}

static int print_text(const cli_result *result, const char *report)
{
    cli_confusion confusion;
    if (!cli_confusion_make(&confusion, result->ctx, result->model, result->validation)) {
        return CLI_FAILURE;
    }
    cli_confusion_print(stdout, &confusion);
    putchar('\n');
    cli_result_print(result);
    fputs("doctor: ", stdout);
    cli_findings_print(stdout, result->findings);
    printf("report %s\n", report);
    cli_confusion_free(&confusion);
    return CLI_SUCCESS;
}

/* ---- The command ---------------------------------------------------------------------------------------- */

static bool on_step(void *user, const bw_progress *progress)
{
    cli_result *result = user;
    cli_record_step(&result->record, result->model, progress);
    return true;
}

static bool on_epoch(void *user, const bw_progress *progress)
{
    cli_result *result = user;
    cli_record_epoch(&result->record, progress);
    return true;
}

/* Whatever came of the training, its record is released here; the context owns all else. */
static int train(const arguments *given, cli_result *result)
{
    bw_fit_options fitting = BW_FIT_OPTIONS_DEFAULT;
    fitting.epochs = EPOCHS;
    fitting.batch = BATCH;
    fitting.validation = result->validation;
    fitting.seed = given->seed;
    fitting.trace_steps = CLI_RUN_TRACED;
    fitting.noise_every = CLI_RUN_NOISE;
    fitting.on_step = on_step;
    fitting.on_epoch = on_epoch;
    fitting.user = result;
    fitting.progress = given->quiet ? NULL : stderr;
    bw_doctor_options looking = BW_DOCTOR_OPTIONS_DEFAULT;
    looking.training = &fitting;
    looking.seconds = LOOKED;
    if (bw_doctor(result->model, result->training, &looking, &result->findings) != BW_OK) {
        return cli_fail("%s", bw_message(result->ctx));
    }
    cli_record_open(&result->record);
    bw_status status = bw_fit(result->model, result->training, &fitting, &result->history);
    int code = cli_result_finish(result, status);
    char *report = cli_run_path(&result->run, "report.html");
    if (code == CLI_SUCCESS && !report) {
        code = cli_fail("no memory for the name of the report");
    } else if (code == CLI_SUCCESS && given->json) {
        print_json(result, report);
    } else if (code == CLI_SUCCESS) {
        code = print_text(result, report);
    }
    free(report);
    cli_record_free(&result->record);
    return code;
}

/* The run directory is opened after everything that can be refused and before the first epoch, so that no demo trains and then
 * cannot write its report. */
static int run(const arguments *given, bw_context *ctx, const char *digits)
{
    cli_result result = {.ctx = ctx,
                         .epochs = EPOCHS,
                         .batch = BATCH,
                         .planning = BW_PLAN_OPTIONS_DEFAULT,
                         .run = {.folder = given->run, .arguments = given->words, .seed = given->seed, .data = digits}};
    result.planning.epochs = EPOCHS;
    result.planning.validation = true;
    result.run.title = "Handwritten digits";
    result.run.about = "1,797 digits of 8 x 8 pixels, every fifth kept for validation; trained by batchwise demo";
    result.model = bw_model_parse(ctx, model_text);
    result.training = bw_shuffle(read_part(ctx, digits, false), given->seed);
    result.validation = read_part(ctx, digits, true);
    bw_status status = bw_compile(result.model, optimizer, "sparse_categorical_crossentropy", "accuracy");
    if (status != BW_OK || !result.training || !result.validation) {
        return cli_fail("%s", bw_message(ctx));
    }
    if (!cli_run_open(given->run, true)) {
        return CLI_FAILURE;
    }
    int code = given->json ? CLI_SUCCESS : print_plan(ctx, result.model, result.training, &result.planning);
    return code == CLI_SUCCESS ? train(given, &result) : code;
}

int cli_demo(int argc, char **argv)
{
    arguments given = {.run = "batchwise-demo", .words = argv};
    int code;
    if (!cli_options_read(&code, &usage, argc, argv, &given)) {
        return code;
    }
    char *digits = find_digits();
    bw_context *ctx = !digits ? NULL : cli_session_open((cli_session){.workers = given.workers, .quiet = given.quiet});
    if (!ctx) {
        free(digits);
        return CLI_FAILURE;
    }
    code = run(&given, ctx, digits);
    cli_run_close();
    code = cli_session_close(ctx, code);
    free(digits);
    return code;
}
