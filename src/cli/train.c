/*
 * batchwise train: trains a model on a file of samples with bw_fit. Texts on the command line are checked before the data is read,
 * and the paths of model and history before the first step. A compiled model from a file keeps its optimizer, loss and metrics,
 * except where options replace them.
 */
#include "cli/cli.h"

#include <stdlib.h>
#include <string.h>

typedef struct arguments {
    cli_data data;
    const char *model, *validation, *optimizer, *schedule, *loss, *metrics, *early_stop, *plateau, *class_weight;
    const char *history, *save_model, *save_best, *run;
    double rate, validation_split;
    const char *batch, *augment, *cache;
    int64_t tile, prefetch, log_steps;
    double bad;
    int epochs, accumulate, workers, lanes, parallel;
    uint64_t seed;
    size_t memory;
    char **words; /* the command line */
    bool standardise, normalise, no_shuffle, drop_remainder, exact_kernels, quiet, json;
} arguments;

#define AT(member) offsetof(arguments, member)

static const cli_option options[] = {
    {CLI_MODEL_OPTION},
    CLI_DATA_OPTIONS(arguments, data),
    {"batch", &cli_batches, AT(batch), "B",
     "samples per update (32): N, full, 32,64 (by turns), 32/64 (all by\n32, next epoch all by 64) or 32@0,128@5 (128 from epoch 5 "
     "on)"},
    {"drop-remainder", &cli_flag, AT(drop_remainder), NULL, "skip a last batch that is smaller than the others"},
    {"standardise", &cli_flag, AT(standardise), NULL,
     "bring each column or channel to mean 0 and deviation 1,\nfitted to the training part and kept with the model"},
    {"normalise", &cli_flag, AT(normalise), NULL, "likewise, to the range 0 to 1"},
    {"augment", &cli_text, AT(augment), "A", "change images at random while training, e.g.\n'flip,shift=0.1,rotate=15'"},
    {"bad-records", &cli_percent, AT(bad), "P", "share of the samples that may be bad and are left out: 1%"},
    {"cache", &cli_text, AT(cache), "WHERE", "cache prepared samples in memory, or in a file that later runs reuse"},
    {"prefetch", &cli_extent, AT(prefetch), "N", "samples prepared ahead (two batches)"},
    {"parallel", &cli_count, AT(parallel), "N", "threads that prepare samples (one per CPU)"},
    {"epochs", &cli_count, AT(epochs), "N", "passes over the data (10)"},
    {CLI_OPTIMIZER_OPTION},
    {"lr", &cli_rate, AT(rate), "X", "the learning rate, in place of the optimizer's"},
    {"schedule", &cli_text, AT(schedule), "S", "of the learning rate, e.g. 'cosine_decay(0.01,1000)'"},
    {CLI_LOSS_OPTION},
    {"metrics", &cli_text, AT(metrics), "A,B", "by Keras's names; default: accuracy for classes"},
    {"validation-split", &cli_share, AT(validation_split), "F",
     "share of the samples kept for validation: a random one\nby the seed; with --no-shuffle the last ones"},
    {"validation", &cli_text, AT(validation), "D", "samples for validation, a file like --data"},
    {"no-shuffle", &cli_flag, AT(no_shuffle), NULL, "take the samples in the order of the file"},
    {"accumulate", &cli_count, AT(accumulate), "K", "batches per update (1)"},
    {"class-weight", &cli_text, AT(class_weight), "W", "auto: rare classes weigh more; or a weight for each: 1,2.5"},
    {"early-stop", &cli_text, AT(early_stop), "E", "e.g. 'patience=3,restore_best_weights=true'"},
    {"plateau", &cli_text, AT(plateau), "P", "lower the rate when learning stops, e.g. 'factor=0.2,patience=5'"},
    {CLI_MEMORY_OPTION},
    {CLI_WORKERS_OPTION},
    {CLI_TILE_OPTION},
    {CLI_LANES_OPTION},
    {CLI_EXACT_KERNELS_OPTION},
    {"seed", &cli_seed, AT(seed), "N", "of the weights, the order and random layers (0)"},
    {"save-model", &cli_text, AT(save_model), "F",
     "write the trained model to F: .keras; weights only:\n.safetensors, .weights.h5; without weights: .json; for\nprediction: "
     ".onnx, .c"},
    {"save-best", &cli_text, AT(save_best), "F", "after each epoch that is the best so far, write the model to F"},
    {"history", &cli_text, AT(history), "F", "write loss and metrics of each epoch to F (.json or .csv)"},
    {"run", &cli_text, AT(run), "DIR",
     "write run.json, history.json, history.csv, model.keras and\nreport.html to a new folder DIR"},
    {"log-steps", &cli_extent, AT(log_steps), "N", "every N updates, a line with the epoch's loss and metrics so far"},
    {"quiet", &cli_flag, AT(quiet), NULL, "no progress"},
    {CLI_JSON_OPTION},
    {.name = NULL},
};

static void print_example(void)
{
    puts("example:\n"
         "  batchwise train --model 'flatten dense(32,relu) dense(10,softmax)' --data digits.npz --scale 1/16 \\\n"
         "      --batch 32 --epochs 10 --validation-split 0.2 --history digits.csv");
}

/* Options that are known but not supported in this version. */
static const char *const absent[] = {"tensorboard", "live", "watch", "resume", "checkpoint-every", "profile", NULL};

static const cli_usage usage = {
    .command = "train",
    .synopsis = "--model M --data D [options]",
    .purpose = "Trains a model on a file of samples. The result is the same on any number of workers.",
    .options = options,
    .required = "model",
    .absent = absent,
    .print_more = print_example,
};

/* ---- Training ------------------------------------------------------------------------------------------- */

/* Compiles the model. If it is `loaded`, everything that is not given stays as the file has it. */
static int compile(const arguments *given, bw_context *ctx, bw_model *model, bool loaded)
{
    char *rewritten = NULL;
    char number[CLI_REAL_TEXT];
    const char *rate = given->rate > 0 ? cli_real_text(number, given->rate) : given->schedule;
    bool rate_alone = loaded && given->rate > 0 && !given->optimizer;
    if (loaded && given->schedule && !given->optimizer) {
        return cli_mistake(usage.command, "--schedule: the model has an optimizer with its state; give --optimizer to begin anew");
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
    return cli_report(ctx, usage.command);
}

static int make_model(const arguments *given, bw_context *ctx, bw_model **model)
{
    bool loaded;
    int code = cli_model_open(model, &loaded, ctx, usage.command, given->model);
    return code == CLI_SUCCESS ? compile(given, ctx, *model, loaded) : code;
}

/* Scales inputs by statistics of the training part, which bw_fit fits, or by those of `like`. */
static bw_dataset *standardise(const arguments *given, bw_dataset *dataset, const bw_dataset *like)
{
    dataset = given->standardise ? bw_standardise(dataset, like) : dataset;
    return given->normalise ? bw_normalise(dataset, like) : dataset;
}

/* Adds the stages between reading and batches. */
static bw_dataset *prepare(const arguments *given, bw_dataset *dataset)
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
static int make_datasets(const arguments *given, bw_context *ctx, bw_model *model, bw_dataset **training, bw_dataset **validation)
{
    cli_data data = given->data;
    data.bad = given->bad;
    bool again = bw_model_data(model);
    if (again && (given->standardise || given->normalise)) {
        return cli_mistake(usage.command, "--%s: the model's file says how its data is prepared; leave the option out",
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
static int make_weights(const arguments *given, bw_context *ctx, bw_dataset *training, cli_weights *weights)
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
        if (code == CLI_SUCCESS && !given->quiet) {
            cli_weights_print(stderr, weights, training);
        }
        return code;
    }
    if (!read_weights(weights, given->class_weight)) {
        return cli_mistake(usage.command, "--class-weight: expected auto, or weights such as 1,2.5, found '%s'",
                           given->class_weight);
    }
    return CLI_SUCCESS;
}

/* ---- Epochs --------------------------------------------------------------------------------------------- */

typedef struct watch {
    const arguments *given;
    cli_result *result;
    bool validates;
    double best;
    bool failed; /* saving the best model failed */
} watch;

static bool on_step(void *user, const bw_progress *progress)
{
    const watch *w = user;
    if (w->given->log_steps > 0 && progress->update % w->given->log_steps == 0) {
        cli_steps_add(&w->result->steps, progress);
    }
    cli_session_stepping(progress->steps == 0 || progress->step < progress->steps || !w->validates);
    if (cli_session_interrupted()) {
        bw_cancel(w->result->ctx);
    }
    return true;
}

/* The best model has the smallest loss, on the validation data if there is any. */
static bool on_epoch(void *user, const bw_progress *progress)
{
    watch *w = user;
    double loss = bw_history_last(progress->logs, w->validates ? "val_loss" : "loss");
    cli_session_stepping(true);
    if (cli_session_interrupted()) {
        bw_cancel(w->result->ctx);
    }
    if (w->given->save_best && (progress->epoch == 0 || loss < w->best)) {
        w->best = loss;
        w->failed = !cli_result_save(w->result, w->given->save_best, w->result->failure);
    }
    return !w->failed;
}

/* ---- The command ---------------------------------------------------------------------------------------- */

static bw_fit_options make_options(const arguments *given)
{
    bw_fit_options fitting = BW_FIT_OPTIONS_DEFAULT;
    fitting.epochs = given->epochs;
    fitting.batch_sizes = given->batch;
    fitting.drop_remainder = given->drop_remainder;
    fitting.validation_split = given->validation_split;
    fitting.seed = given->seed;
    fitting.memory = given->memory;
    fitting.tile = given->tile;
    fitting.lanes = given->lanes;
    fitting.accumulate = given->accumulate;
    fitting.early_stopping = given->early_stop;
    fitting.reduce_lr_on_plateau = given->plateau;
    fitting.saves = given->save_best;
    fitting.trace_steps = given->run ? CLI_RUN_TRACED : 0;
    fitting.progress = given->quiet ? NULL : stderr;
    return fitting;
}

/* Returns the largest of the sizes in --batch, whose syntax was checked; batches that share an update count together. */
static int64_t largest_batch(const arguments *given)
{
    int64_t largest = 0, window;
    for (const char *item = !given->batch ? "32" : given->batch; item; item = strpbrk(item, ",/")) {
        item += *item == ',' || *item == '/';
        int64_t size = strncmp(item, "full", 4) == 0 ? INT64_MAX : strtoll(item, NULL, 10);
        largest = size > largest ? size : largest;
    }
    return __builtin_mul_overflow(largest, (int64_t)given->accumulate, &window) ? INT64_MAX : window;
}

/* Ctrl-C ends training after the current step, and the result so far is saved and reported like any other. */
static int fit(const arguments *given, bw_context *ctx, bw_model *model, bw_dataset *training, bw_dataset *validation,
               const cli_weights *weights)
{
    bw_fit_options fitting = make_options(given);
    watch watched = {.given = given, .validates = validation || given->validation_split > 0};
    fitting.validation = validation;
    fitting.class_weight = weights->weight;
    fitting.class_count = weights->count;
    fitting.on_step = on_step;
    fitting.on_epoch = on_epoch;
    fitting.user = &watched;
    cli_result result = {.ctx = ctx,
                         .model = model,
                         .training = training,
                         .validation = validation,
                         .epochs = given->epochs,
                         .batch = largest_batch(given),
                         .history_path = given->history,
                         .model_path = given->save_model,
                         .planning = BW_PLAN_OPTIONS_DEFAULT,
                         .run = {.folder = given->run, .arguments = given->words, .seed = given->seed, .data = given->data.path}};
    watched.result = &result;
    result.planning.memory = given->memory;
    result.planning.tile = given->tile;
    result.planning.lanes = given->lanes;
    result.planning.epochs = given->epochs;
    result.planning.validation = watched.validates;
    cli_session_stepping(true);
    bw_status status = bw_fit(model, training, &fitting, &result.history);
    cli_session_stepping(false);
    if (status != BW_OK && bw_last_error(ctx)->argument) { /* bw_fit checks --early-stop and --plateau */
        cli_steps_free(&result.steps);
        return cli_report(ctx, usage.command);
    }
    int code = cli_result_finish(&result, status);
    if (result.history && code != CLI_FAILURE) {
        (given->json ? cli_result_json : cli_result_print)(&result);
    }
    cli_steps_free(&result.steps);
    return watched.failed && code == CLI_SUCCESS ? CLI_FAILURE : code;
}

/* Checks the paths before hours of training rather than after. */
static bool can_write(const arguments *given)
{
    const char *const files[] = {given->history, given->save_model, given->save_best};
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        if (files[i] && !cli_history_probe(files[i])) {
            return false;
        }
    }
    return !given->run || cli_run_open(given->run, false);
}

/* Everything that can be refused is refused before the first step: hours of training must not end at a path that cannot be
 * written. */
static int train(const arguments *given, bw_context *ctx)
{
    bw_model *model = NULL;
    bw_dataset *training = NULL, *validation = NULL;
    cli_weights weights = {.weight = NULL};
    int code = make_model(given, ctx, &model);
    if (code == CLI_SUCCESS) {
        code = make_datasets(given, ctx, model, &training, &validation);
    }
    if (code == CLI_SUCCESS) {
        code = make_weights(given, ctx, training, &weights);
    }
    if (code == CLI_SUCCESS && !can_write(given)) {
        code = CLI_FAILURE;
    }
    if (cli_session_interrupted()) {
        cli_fail("interrupted before the first step");
        code = CLI_INTERRUPTED;
    }
    if (code == CLI_SUCCESS) {
        code = fit(given, ctx, model, training, validation, &weights);
    }
    cli_run_close();
    free(weights.weight);
    return code;
}

/* Options that contradict each other are wrong usage: neither is silently preferred. */
static int check(const arguments *given)
{
    int code = cli_data_check(usage.command, &given->data);
    if (code != CLI_SUCCESS) {
        return code;
    }
    if (given->validation && given->validation_split > 0) {
        return cli_mistake(usage.command, "--validation and --validation-split exclude each other; give one of them");
    }
    if (given->rate > 0 && given->schedule) {
        return cli_mistake(usage.command, "--lr and --schedule exclude each other; give one of them");
    }
    if (given->history && !cli_history_find(given->history)) {
        return cli_mistake(usage.command, "--history: expected a name that ends in .json or .csv, found '%s'", given->history);
    }
    const char *const models[] = {given->save_model, given->save_best}, *const names[] = {"save-model", "save-best"};
    for (size_t i = 0; i < 2; i++) {
        bw_file_kind kind;
        if (models[i] && (!bw_file_kind_of(models[i], &kind) || !kind.saves)) {
            char endings[CLI_ENDINGS_TEXT];
            return cli_mistake(usage.command, "--%s: expected a name that ends in %s, found '%s'", names[i],
                               cli_model_endings(endings, cli_model_is_saved), models[i]);
        }
    }
    return CLI_SUCCESS;
}

int cli_train(int argc, char **argv)
{
    arguments given = {.data = CLI_DATA_DEFAULT, .epochs = 10, .accumulate = 1, .words = argv};
    int code;
    if (!cli_options_read(&code, &usage, argc, argv, &given)) {
        return code;
    }
    code = check(&given);
    if (code != CLI_SUCCESS) {
        return code;
    }
    bw_context *ctx =
        cli_session_open((cli_session){.workers = given.workers, .quiet = given.quiet, .exact_kernels = given.exact_kernels});
    return !ctx ? CLI_FAILURE : cli_session_close(ctx, train(&given, ctx));
}
