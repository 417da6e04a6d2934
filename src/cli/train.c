/*
 * batchwise train: a model, a file of samples, and bw_fit. What the texts on the command line say is checked before
 * the data is read, and whether model and history can be written before the first step. A model from a file that was
 * compiled keeps its optimizer, loss and metrics, but for what options say otherwise.
 */
#include "cli/cli.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct arguments {
    cli_data data;
    const char *model, *validation, *optimizer, *loss, *metrics, *history, *save_model;
    double rate, validation_split;
    const char *batch;
    int64_t tile;
    int epochs, accumulate, workers, lanes;
    uint64_t seed;
    size_t memory;
    bool no_shuffle, drop_remainder, exact_kernels, quiet, json;
} arguments;

#define AT(member) offsetof(arguments, member)

static const cli_option options[] = {
    {"model", &cli_text, AT(model), "M",
     "an expression, a text file that holds one, or a file of\nKeras: .keras, .json, .h5 (required)"},
    CLI_DATA_OPTIONS(arguments, data),
    {"batch", &cli_batches, AT(batch), "B",
     "samples behind one update (32): N, full, 32,64 (by turns) or\n32@0,128@5 (128 from epoch 5 on)"},
    {"drop-remainder", &cli_flag, AT(drop_remainder), NULL, "leave out a last batch that is smaller than the others"},
    {"epochs", &cli_count, AT(epochs), "N", "passes over the data (10)"},
    {"optimizer", &cli_text, AT(optimizer), "O", "e.g. 'adam(lr=0.001)' (adam)"},
    {"lr", &cli_rate, AT(rate), "X", "the learning rate, in place of the optimizer's"},
    {"loss", &cli_text, AT(loss), "L", "by Keras's name; default: from the last layer and the targets"},
    {"metrics", &cli_text, AT(metrics), "A,B", "by Keras's names; default: accuracy for classes"},
    {"validation-split", &cli_share, AT(validation_split), "F",
     "share of the samples kept for validation: a random one\nby the seed; with --no-shuffle the last ones"},
    {"validation", &cli_text, AT(validation), "D", "samples for validation, a file like --data"},
    {"no-shuffle", &cli_flag, AT(no_shuffle), NULL, "take the samples in the order of the file"},
    {"accumulate", &cli_count, AT(accumulate), "K", "batches behind one update (1)"},
    {"memory", &cli_size, AT(memory), "SIZE", "the budget, e.g. 512M; default: what the machine gives"},
    {"workers", &cli_count, AT(workers), "N", "threads; default: one for each CPU"},
    {"tile", &cli_extent, AT(tile), "N", "samples a worker takes through at once; default: from the\nmodel"},
    {"lanes", &cli_power, AT(lanes), "N", "gradient sums, a power of two; default: from the model"},
    {"exact-kernels", &cli_flag, AT(exact_kernels), NULL,
     "convolutions by their definition only, not by Winograd's\nfaster algorithm"},
    {"seed", &cli_seed, AT(seed), "N", "of the weights, the order and random layers (0)"},
    {"save-model", &cli_text, AT(save_model), "F",
     "write the trained model to F: .keras, or weights only:\n.safetensors, .weights.h5"},
    {"history", &cli_text, AT(history), "F", "write loss and metrics of each epoch to F (.json or .csv)"},
    {"quiet", &cli_flag, AT(quiet), NULL, "no progress"},
    {"json", &cli_flag, AT(json), NULL, "one JSON object on standard output"},
    {.name = NULL},
};

static void print_example(void)
{
    puts("example:\n"
         "  batchwise train --model 'flatten dense(32,relu) dense(10,softmax)' --data digits.npz --scale 1/16 \\\n"
         "      --batch 32 --epochs 10 --validation-split 0.2 --history digits.csv");
}

static const cli_usage usage = {
    .command = "train",
    .synopsis = "--model M --data D [options]",
    .purpose = "Trains a model on a file of samples. The result is the same on any number of workers.",
    .options = options,
    .print_more = print_example,
};

/* ---- Results -------------------------------------------------------------------------------------------- */

static double speed(const bw_run_facts *facts)
{
    return facts->seconds > 0 ? (double)facts->samples / facts->seconds : (double)NAN;
}

static void print_json(const bw_model *model, const bw_history *history, const char *stopped)
{
    bw_run_facts facts = bw_history_facts(history);
    cli_json json = {.file = stdout};
    cli_json_object(&json, NULL);
    cli_history_json(&json, "history", history);
    cli_json_whole(&json, "steps", facts.updates);
    cli_json_whole(&json, "samples", facts.samples);
    cli_json_real(&json, "seconds", facts.seconds);
    cli_json_real(&json, "samples_per_s", speed(&facts));
    cli_json_bytes(&json, "peak_bytes", facts.peak_bytes);
    cli_json_bytes(&json, "planned_bytes", facts.planned_bytes);
    cli_json_bytes(&json, "process_bytes", facts.process_bytes);
    cli_json_bytes(&json, "code_bytes", facts.code_bytes);
    cli_json_bytes(&json, "mapped_bytes", facts.mapped_bytes);
    cli_json_bytes(&json, "kept_bytes", facts.kept_bytes);
    cli_json_bytes(&json, "spilled_bytes", facts.spilled_bytes);
    cli_json_whole(&json, "segments", facts.segments);
    cli_json_text(&json, "stopped", stopped);
    cli_json_hash(&json, "hash", bw_model_hash(model));
    cli_json_whole(&json, "tile", facts.tile);
    cli_json_whole(&json, "lanes", facts.lanes);
    cli_json_whole(&json, "workers", facts.workers);
    cli_json_flag(&json, "exact_kernels", facts.exact_kernels);
    cli_json_object_end(&json);
    putchar('\n');
}

/* The last epoch's values by name: what others were measured by first, the losses after them. */
static void print_last_epoch(const bw_history *history)
{
    const char *separator = "";
    for (int losses = 0; losses < 2; losses++) {
        for (int c = 0; c < bw_history_columns(history); c++) {
            const char *name = bw_history_column(history, c);
            bool is_loss = strcmp(name, "loss") == 0 || strcmp(name, "val_loss") == 0;
            if (is_loss == (losses == 1)) {
                printf("%s%s %.4f", separator, name, bw_history_last(history, name));
                separator = ", ";
            }
        }
    }
    putchar('\n');
}

static void print_summary(const bw_model *model, const bw_history *history)
{
    bw_run_facts facts = bw_history_facts(history);
    char peak[CLI_BYTES_TEXT], planned[CLI_BYTES_TEXT];
    if (bw_history_epochs(history) > 0) {
        print_last_epoch(history);
    }
    printf("%" PRId64 " steps in %.2f s, %.0f samples/s\n", facts.updates, facts.seconds, speed(&facts));
    printf("memory %s at the peak, %s planned\n", cli_bytes_text(peak, facts.peak_bytes),
           cli_bytes_text(planned, facts.planned_bytes));
    printf("weights %016" PRIx64 " (the same on any number of workers)\n", bw_model_hash(model));
}

/* Writes the history and the model, also when training was interrupted; the history also if it failed after some
 * epochs. Says what an interruption left. Returns the exit code. */
static int save(const arguments *given, const bw_context *ctx, bw_model *model, int code, const bw_history *history)
{
    int epochs = history == NULL ? 0 : bw_history_epochs(history);
    bool write_history = given->history != NULL && history != NULL && (epochs > 0 || code != CLI_FAILURE);
    bool history_written = write_history && cli_history_write(given->history, cli_history_find(given->history), history);
    bool write_model = given->save_model != NULL && history != NULL && code != CLI_FAILURE;
    bool model_written = write_model && bw_save(model, given->save_model) == BW_OK;
    if (write_model && !model_written) {
        cli_fail("%s", bw_message(ctx));
    }
    if (code == CLI_INTERRUPTED) {
        cli_fail("interrupted after %d of %d epochs%s%s%s%s", epochs, given->epochs,
                 history_written ? "; their history is in " : "", history_written ? given->history : "",
                 model_written ? "; the model is in " : "", model_written ? given->save_model : "");
    }
    bool failed = (write_history && !history_written) || (write_model && !model_written);
    return code == CLI_SUCCESS && failed ? CLI_FAILURE : code;
}

static int finish(const arguments *given, const bw_context *ctx, bw_model *model, bw_status status, const bw_history *history)
{
    int code = status == BW_OK ? CLI_SUCCESS : status == BW_CANCELLED ? CLI_INTERRUPTED : CLI_FAILURE;
    if (code == CLI_FAILURE) {
        cli_fail("%s", bw_message(ctx));
    }
    int after = save(given, ctx, model, code, history);
    if (history != NULL && code != CLI_FAILURE) {
        if (given->json) {
            print_json(model, history, code == CLI_INTERRUPTED ? "interrupted" : NULL);
        } else {
            print_summary(model, history);
        }
    }
    return after;
}

/* ---- Training ------------------------------------------------------------------------------------------- */

/* `loaded`: what is not given stays as the file has it. */
static int compile(const arguments *given, const bw_context *ctx, bw_model *model, bool loaded)
{
    char *rewritten = NULL;
    bool rate_alone = loaded && given->rate > 0 && given->optimizer == NULL;
    if (given->rate > 0 && !rate_alone) {
        rewritten = cli_optimizer_text(given->optimizer, given->rate);
        if (rewritten == NULL) {
            return cli_fail("no memory for the optimizer's text");
        }
    }
    const char *optimizer = rewritten != NULL ? rewritten : given->optimizer;
    bw_status status = BW_OK;
    if (!loaded) {
        status = bw_compile(model, optimizer, given->loss, given->metrics);
    } else if (optimizer != NULL || given->loss != NULL || given->metrics != NULL) {
        status = bw_recompile(model, optimizer, given->loss, given->metrics);
    }
    if (status == BW_OK && rate_alone) {
        status = bw_set_learning_rate(model, given->rate);
    }
    free(rewritten);
    if (status == BW_OK) {
        return CLI_SUCCESS;
    }
    return cli_mistake(usage.command, "%s", bw_message(ctx)); /* a text that cannot be right */
}

static int make_model(const arguments *given, bw_context *ctx, bw_model **model)
{
    bool loaded;
    int code = cli_model_open(model, &loaded, ctx, usage.command, given->model);
    return code == CLI_SUCCESS ? compile(given, ctx, *model, loaded) : code;
}

/* A model from a file goes on with data that is prepared as before; validation data is prepared as the training data. */
static int make_datasets(const arguments *given, bw_context *ctx, bw_model *model, bw_dataset **training, bw_dataset **validation)
{
    *training = cli_data_read(ctx, &given->data, given->data.path, model, NULL);
    if (*training != NULL && given->validation != NULL) {
        *validation = cli_data_read(ctx, &given->data, given->validation, NULL, *training);
    }
    if (*training == NULL || (given->validation != NULL && *validation == NULL)) {
        return CLI_FAILURE;
    }
    if (!given->no_shuffle) {
        *training = bw_shuffle(*training, given->seed);
    }
    return *training != NULL ? CLI_SUCCESS : cli_fail("%s", bw_message(ctx));
}

static int train(const arguments *given, bw_context *ctx)
{
    bw_model *model = NULL;
    bw_dataset *training = NULL;
    bw_history *history = NULL;
    bw_fit_options fitting = BW_FIT_OPTIONS_DEFAULT;
    int code = make_model(given, ctx, &model);
    if (code == CLI_SUCCESS && ((given->history != NULL && !cli_history_probe(given->history)) ||
                                (given->save_model != NULL && !cli_history_probe(given->save_model)))) {
        code = CLI_FAILURE;
    }
    if (code == CLI_SUCCESS) {
        code = make_datasets(given, ctx, model, &training, &fitting.validation);
    }
    if (cli_session_interrupted()) {
        cli_fail("interrupted before the first step");
        return CLI_INTERRUPTED;
    }
    if (code != CLI_SUCCESS) {
        return code;
    }
    fitting.epochs = given->epochs;
    fitting.batch_sizes = given->batch;
    fitting.drop_remainder = given->drop_remainder;
    fitting.validation_split = given->validation_split;
    fitting.seed = given->seed;
    fitting.memory = given->memory;
    fitting.tile = given->tile;
    fitting.lanes = given->lanes;
    fitting.accumulate = given->accumulate;
    fitting.progress = given->quiet ? NULL : stderr;
    bw_status status = bw_fit(model, training, &fitting, &history);
    return finish(given, ctx, model, status, history);
}

static int check(const arguments *given)
{
    if (given->model == NULL) {
        return cli_mistake(usage.command, "--model is required; 'batchwise train --help' lists the options");
    }
    int code = cli_data_check(usage.command, &given->data);
    if (code != CLI_SUCCESS) {
        return code;
    }
    if (given->validation != NULL && given->validation_split > 0) {
        return cli_mistake(usage.command, "--validation and --validation-split exclude each other; give one of them");
    }
    if (given->history != NULL && cli_history_find(given->history) == NULL) {
        return cli_mistake(usage.command, "--history: expected a name that ends in .json or .csv, found '%s'", given->history);
    }
    if (given->save_model != NULL && !cli_model_can_be_saved(given->save_model)) {
        return cli_mistake(
            usage.command,
            "--save-model: expected a name that ends in .keras, .safetensors, .weights.h5, .json, .onnx or .c, found '%s'",
            given->save_model);
    }
    return CLI_SUCCESS;
}

int cli_train(int argc, char **argv)
{
    arguments given = {.data = CLI_DATA_DEFAULT, .epochs = 10, .accumulate = 1};
    cli_reading reading = cli_options_read(&usage, argc, argv, &given);
    if (reading != CLI_READ) {
        return reading == CLI_HELP_SHOWN ? CLI_SUCCESS : CLI_USAGE;
    }
    int code = check(&given);
    if (code != CLI_SUCCESS) {
        return code;
    }
    cli_session_exact_kernels(given.exact_kernels);
    bw_context *ctx = cli_session_open(given.workers, given.quiet);
    if (ctx == NULL) {
        return CLI_FAILURE;
    }
    code = train(&given, ctx);
    cli_session_close(ctx);
    return code;
}
