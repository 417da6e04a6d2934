/*
 * Makes what the options of a training ask for: the model with its optimizer and loss, the data of both parts, the weights of
 * classes. Texts on the command line are checked before the data is read. A compiled model from a file keeps its optimizer, loss
 * and metrics, except where options replace them.
 */
#include "cli/training.h"

#include <stdlib.h>
#include <string.h>

/* ---- The model ------------------------------------------------------------------------------------------ */

/* Compiles the model. If it is `loaded`, everything that is not given stays as the file has it. */
static int compile(const cli_training *given, bw_context *ctx, bw_model *model, bool loaded)
{
    char *rewritten = NULL;
    char number[CLI_REAL_TEXT];
    const char *rate = given->rate > 0 ? cli_real_text(number, given->rate) : given->schedule;
    bool rate_alone = loaded && given->rate > 0 && !given->optimizer;
    if (loaded && given->schedule && !given->optimizer) {
        return cli_mistake(given->command,
                           "--schedule: the model has an optimizer with its state; give --optimizer to start with a new one");
    }
    if (rate && !rate_alone) {
        rewritten = cli_optimizer_text(given->optimizer, rate);
        if (!rewritten) {
            return cli_fail("no memory for the optimizer's text");
        }
    }
    const char *optimizer = rewritten ? rewritten : given->optimizer;
    bw_status status = BW_OK;
    if (!loaded) {
        status = bw_compile(model, optimizer, given->loss, given->metrics);
    } else if (optimizer || given->loss || given->metrics) {
        status = bw_recompile(model, optimizer, given->loss, given->metrics);
    }
    if (status == BW_OK && rate_alone) {
        status = bw_set_learning_rate(model, given->rate);
    }
    free(rewritten);
    if (status == BW_OK) {
        return CLI_SUCCESS;
    }
    return cli_report(ctx, given->command);
}

static int make_model(const cli_training *given, bw_context *ctx, bw_model **model)
{
    bool loaded;
    int code = cli_model_open(model, &loaded, ctx, given->command, given->model);
    return code == CLI_SUCCESS ? compile(given, ctx, *model, loaded) : code;
}

/* ---- Data ----------------------------------------------------------------------------------------------- */

/* Scales inputs by statistics of the training part, which bw_fit fits, or by those of `like`. */
static bw_dataset *standardise(const cli_training *given, bw_dataset *dataset, const bw_dataset *like)
{
    dataset = given->standardise ? bw_standardise(dataset, like) : dataset;
    return given->normalise ? bw_normalise(dataset, like) : dataset;
}

/* Adds the stages between reading and batches. */
static bw_dataset *prepare(const cli_training *given, bw_dataset *dataset)
{
    if (given->cache) {
        dataset = strcmp(given->cache, "memory") == 0 ? bw_cache(dataset) : bw_cache_file(dataset, given->cache);
    }
    if (given->augment) {
        dataset = bw_augment(dataset, given->augment, given->seed);
    }
    dataset = standardise(given, dataset, NULL);
    if (!given->no_shuffle) {
        dataset = bw_shuffle(dataset, given->seed);
    }
    if (given->prefetch > 0 || given->parallel > 0) {
        bw_prefetch_options ahead = BW_PREFETCH_OPTIONS_DEFAULT;
        ahead.samples = given->prefetch;
        ahead.threads = given->parallel;
        dataset = bw_prefetch(dataset, &ahead);
    }
    return dataset;
}

/* A model from a file continues with data that is prepared as before; validation data is prepared like the training data. */
static int make_data(const cli_training *given, bw_context *ctx, bw_model *model, bw_dataset **training, bw_dataset **validation)
{
    cli_data data = given->data;
    data.bad = given->bad;
    bool again = bw_model_data(model);
    if (again && (given->standardise || given->normalise)) {
        return cli_mistake(given->command, "--%s: the model's file says how its data is prepared; leave the option out",
                           given->standardise ? "standardise" : "normalise");
    }
    *training = cli_data_read(ctx, &data, data.path, model, NULL);
    const char *path = given->validation;
    if (*training && !path && !(given->validation_split > 0) && bw_dataset_has_part(*training, "validation")) {
        path = data.path; /* in files such as Keras's mnist.npz, the test part is used for validation */
    }
    if (*training && path) {
        data.part = "validation";
        data.bad = 0;
        *validation = cli_data_read(ctx, &data, path, again ? model : NULL, again ? NULL : *training);
    }
    if (!*training || (path && !*validation)) {
        return CLI_FAILURE;
    }
    *training = prepare(given, *training);
    if (*validation) {
        *validation = standardise(given, *validation, *training);
    }
    return *training && (*validation || !path) ? CLI_SUCCESS : cli_fail("%s", bw_message(ctx));
}

/* ---- Class weights -------------------------------------------------------------------------------------- */

static bool read_weights(cli_weights *weights, const char *text)
{
    for (const char *item = text; *item != 0; item += *item == ',') {
        char *end;
        float weight = strtof(item, &end);
        if (end == item || (*end != ',' && *end != 0) || !(weight >= 0 && weight <= 1e30f) || weights->count == CLI_MAX_CLASSES) {
            return false;
        }
        weights->weight[weights->count++] = weight;
        item = end;
    }
    return weights->count > 0;
}

/* "auto" counts the classes of the training part alone, as validation samples must not influence training. */
static int make_weights(const cli_training *given, bw_context *ctx, bw_dataset *training, cli_weights *weights, bool quiet)
{
    if (!given->class_weight) {
        return CLI_SUCCESS;
    }
    weights->weight = calloc(CLI_MAX_CLASSES, sizeof *weights->weight);
    if (!weights->weight) {
        return cli_fail("no memory for the weights of classes");
    }
    if (strcmp(given->class_weight, "auto") == 0) {
        bw_dataset *part = NULL, *rest = NULL; /* samples kept for validation do not count */
        if (given->validation_split > 0 && bw_split(training, given->validation_split, &part, &rest) != BW_OK) {
            return cli_fail("%s", bw_message(ctx));
        }
        int code = cli_weights_balance(weights, ctx, part ? part : training);
        bw_dataset_free(part);
        bw_dataset_free(rest);
        if (code == CLI_SUCCESS && !quiet) {
            cli_weights_print(stderr, weights, training);
        }
        return code;
    }
    if (!read_weights(weights, given->class_weight)) {
        return cli_mistake(given->command, "--class-weight: expected auto, or weights such as 1,2.5, found '%s'",
                           given->class_weight);
    }
    return CLI_SUCCESS;
}

/* ---- Fitting -------------------------------------------------------------------------------------------- */

bool cli_training_is_auto(const cli_training *given)
{
    return given->batch && strcmp(given->batch, "auto") == 0;
}

bw_fit_options cli_training_fitting(const cli_training *given, bw_dataset *validation, const cli_weights *weights)
{
    bw_fit_options fitting = BW_FIT_OPTIONS_DEFAULT;
    fitting.batch_sizes = cli_training_is_auto(given) ? NULL : given->batch;
    fitting.drop_remainder = given->drop_remainder;
    fitting.validation = validation;
    fitting.validation_split = given->validation_split;
    fitting.class_weight = weights->weight;
    fitting.class_count = weights->count;
    fitting.seed = given->seed;
    fitting.memory = given->memory;
    fitting.tile = given->tile;
    fitting.lanes = given->lanes;
    fitting.accumulate = given->accumulate;
    return fitting;
}

/* The syntax of --batch was checked before. */
int64_t cli_training_batch(const cli_training *given)
{
    int64_t largest = 0, window;
    for (const char *item = !given->batch ? "32" : given->batch; item; item = strpbrk(item, ",/")) {
        item += *item == ',' || *item == '/';
        int64_t size = strncmp(item, "full", 4) == 0 ? INT64_MAX : strtoll(item, NULL, 10);
        largest = size > largest ? size : largest;
    }
    return __builtin_mul_overflow(largest, (int64_t)given->accumulate, &window) ? INT64_MAX : window;
}

int cli_training_open(const cli_training *given, bw_context *ctx, bool quiet, cli_prepared *made)
{
    int code = make_model(given, ctx, &made->model);
    if (code == CLI_SUCCESS) {
        code = make_data(given, ctx, made->model, &made->training, &made->validation);
    }
    return code == CLI_SUCCESS ? make_weights(given, ctx, made->training, &made->weights, quiet) : code;
}

int cli_training_check(const cli_training *given)
{
    int code = cli_data_check(given->command, &given->data);
    if (code != CLI_SUCCESS) {
        return code;
    }
    if (given->validation && given->validation_split > 0) {
        return cli_mistake(given->command, "--validation and --validation-split exclude each other; give one of them");
    }
    if (given->rate > 0 && given->schedule) {
        return cli_mistake(given->command, "--lr and --schedule exclude each other; give one of them");
    }
    if (cli_training_is_auto(given) && (given->accumulate > 1 || given->schedule)) {
        bool schedule = given->schedule;
        return cli_mistake(given->command, "--batch auto and --%s exclude each other: %s", schedule ? "schedule" : "accumulate",
                           schedule ? "a schedule counts steps of a batch size; choose one with 'batchwise tune' first"
                                    : "it chooses the samples of an update");
    }
    return CLI_SUCCESS;
}
