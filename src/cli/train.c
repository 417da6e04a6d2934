/*
 * batchwise train: trains a model on a file of samples with bw_fit. The paths of model and history are checked before the first
 * step.
 */
#include "cli/live.h"
#include "cli/profile.h"
#include "cli/training.h"
#include "cli/watch.h"

#include <stdlib.h>
#include <string.h>

typedef struct arguments {
    cli_training training;
    const char *early_stop, *plateau, *history, *save_model, *save_best, *run, *tensorboard, *checkpoint_every, *on_nan;
    int64_t log_steps;
    double budget, watchdog;
    int epochs, keep, watch; /* watch: a port; -1: not given */
    char **words;            /* the command line */
    bool resume, live, profile, quiet, json;
    bool reports; /* a run or a browser shows the training, on whichever rank */
} arguments;

#define AT(member) offsetof(arguments, member)

static const cli_option options[] = {
    CLI_TRAINING_OPTIONS(arguments, training),
    {"budget", &cli_duration, AT(budget), "TIME", "how long --batch auto measures (5s)"},
    {"epochs", &cli_count, AT(epochs), "N", "passes over the data (10)"},
    {"early-stop", &cli_text, AT(early_stop), "E", "e.g. 'patience=3,restore_best_weights=true'"},
    {"plateau", &cli_text, AT(plateau), "P", "lower the rate when learning stops, e.g. 'factor=0.2,patience=5'"},
    {"save-model", &cli_text, AT(save_model), "F",
     "write the trained model to F: .keras; weights only:\n.safetensors, .weights.h5; without weights: .json; for\nprediction: "
     ".onnx, .c"},
    {"save-best", &cli_text, AT(save_best), "F", "after each epoch that is the best so far, write the model to F"},
    {"history", &cli_text, AT(history), "F", "write loss and metrics of each epoch to F (.json or .csv)"},
    {"run", &cli_text, AT(run), "DIR",
     "write the run to a new folder DIR: history, model, where the time\nwent, and report.html, a page that shows all of it"},
    {"checkpoint-every", &cli_text, AT(checkpoint_every), "N",
     "with --run: write a checkpoint every N updates, each epoch\n(epoch) or each time (30s, 5m), while training goes on"},
    {"keep", &cli_count, AT(keep), "K", "checkpoints that stay, the newest (3)"},
    {"resume", &cli_flag, AT(resume), NULL, "go on from the newest checkpoint in --run, as if never stopped"},
    {"on-nan", &cli_text, AT(on_nan), "DO", "a step that gives NaN or infinity: stop, or skip it (stop)"},
    {"tensorboard", &cli_text, AT(tensorboard), "DIR",
     "write event files for TensorBoard to DIR/train, DIR/validation\n(--run DIR does that too, into its folder)"},
    {"profile", &cli_flag, AT(profile), NULL, "at the end, where the time of a step went"},
    {"log-steps", &cli_extent, AT(log_steps), "N", "every N updates, a line with the epoch's loss and metrics so far"},
    {"live", &cli_flag, AT(live), NULL,
     "in place of the progress bar, a panel with loss, speed, memory and\nthe utilisation of each worker"},
    {"watch", &cli_port, AT(watch), "PORT", "show the training in a browser, at this port of 127.0.0.1 only; 0\nchooses one"},
    {"watchdog", &cli_duration, AT(watchdog), "TIME",
     "under mpirun: if a rank gives no sign of life for this long, the\ntraining ends (60s)"},
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

static const cli_usage usage = {
    .command = "train",
    .synopsis = "--model M --data D [options]",
    .purpose = "Trains a model on a file of samples. The result is the same on any number of workers.",
    .options = options,
    .required = "model",
    .print_more = print_example,
};

/* ---- Epochs --------------------------------------------------------------------------------------------- */

typedef struct watch {
    const arguments *given;
    cli_result *result;
    bool validates;
    bool records, live; /* points are recorded; a panel is shown */
    bool failed;        /* saving the best model failed */
} watch;

static bool on_step(void *user, const bw_progress *progress)
{
    const watch *w = user;
    if (w->records) {
        cli_record_step(&w->result->record, w->result->model, progress);
    }
    if (w->given->log_steps > 0 && progress->update % w->given->log_steps == 0) {
        cli_steps_add(&w->result->steps, progress);
    }
    if (w->live) {
        cli_live_step(progress);
    }
    if (w->given->watch >= 0) {
        cli_watch_step(progress);
    }
    cli_session_stepping(progress->steps == 0 || progress->step < progress->steps || !w->validates);
    if (cli_session_interrupted()) {
        bw_cancel(w->result->ctx);
    }
    return true;
}

/* The best model has the smallest loss, on the validation data if there is any. A run that was resumed has its earlier epochs in
 * the history, too. */
static bool is_best(const watch *w, const bw_progress *progress)
{
    const char *column = w->validates ? "val_loss" : "loss";
    double loss = bw_history_last(progress->logs, column);
    bool best = true;
    for (int e = 0; e < progress->epoch; e++) {
        best = best && loss < bw_history_value(progress->history, column, e);
    }
    return best;
}

static bool on_epoch(void *user, const bw_progress *progress)
{
    watch *w = user;
    cli_session_stepping(true);
    cli_record_epoch(&w->result->record, progress);
    if (w->live) {
        cli_live_epoch(progress);
    }
    if (cli_session_interrupted()) {
        bw_cancel(w->result->ctx);
    }
    if (w->given->save_best && is_best(w, progress)) {
        w->failed = !cli_result_save(w->result, w->given->save_best, w->result->failure);
    }
    return !w->failed;
}

/* ---- The command ---------------------------------------------------------------------------------------- */

/* A rate that the user or the model's file gives belongs to batch 32, and is adapted by rule; otherwise one is searched for. */
static bool has_rate(const cli_training *how)
{
    bw_file_kind kind;
    bool loaded = bw_file_kind_of(how->model, &kind) && kind.loads;
    return how->rate > 0 || cli_optimizer_has_rate(how->optimizer) || (loaded && !how->optimizer);
}

enum { BATCH_TEXT = 24 };

/* Tunes from the state in which training will begin, and sets the optimizer as recommended. Where the data do not decide, the batch
 * size is that to which the optimizer's rate belongs. `batch` holds BATCH_TEXT characters. */
static int choose_batch(const arguments *given, bw_context *ctx, bw_model *model, bw_dataset *training, bw_fit_options fitting,
                        char *batch, bw_tuning **tuning)
{
    bw_tune_options how = BW_TUNE_OPTIONS_DEFAULT;
    fitting.epochs = given->epochs;
    how.fit = &fitting;
    how.seconds = given->budget > 0 ? given->budget : 5;
    how.keep_rate = has_rate(&given->training);
    bw_status status = bw_tune(model, training, &how, tuning);
    if (status == BW_CANCELLED) {
        cli_fail("interrupted before the first step");
        return CLI_INTERRUPTED;
    }
    bw_tune_facts facts = bw_tuning_facts(*tuning);
    if (status == BW_OK && facts.decided) {
        status = bw_tuning_apply(*tuning, model);
    }
    if (status != BW_OK) {
        return cli_report(ctx, usage.command);
    }
    snprintf(batch, BATCH_TEXT, "%lld", (long long)(facts.decided ? facts.batch : facts.reference));
    if (!given->quiet) {
        cli_tuning_tell(*tuning, how.keep_rate);
    }
    return CLI_SUCCESS;
}

/* ---- Several ranks ---- */

/* Whether training ended because another rank did: that one's reason is told. */
static bool is_of_other(bw_context *ctx, bw_status status)
{
    return status == BW_CANCELLED && !cli_session_interrupted() && strstr(bw_message(ctx), "has left the group");
}

/* The end of a rank that writes nothing. */
static int end_other(bw_context *ctx, bw_status status)
{
    if (status == BW_OK || status == BW_CANCELLED) {
        return status == BW_OK ? CLI_SUCCESS : CLI_INTERRUPTED;
    }
    return cli_fail("%s", bw_message(ctx));
}

static void print_word(const char *word)
{
    bool plain =
        word[0] && strspn(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=:,./%@") == strlen(word);
    fputs(plain ? " " : " '", stderr);
    for (const char *c = word; *c; c++) {
        fputs(*c == '\'' ? "'\\''" : (char[]){*c, 0}, stderr);
    }
    fputs(plain ? "" : "'", stderr);
}

/* How to go on after a rank was lost, or the ranks were told to end. */
static void tell_resume(const arguments *given, const bw_history *history)
{
    int64_t step = history ? bw_history_facts(history).last_checkpoint : -1;
    if (step < 0) {
        fprintf(stderr, "batchwise: there is no checkpoint to go on from; --run DIR --checkpoint-every epoch writes them\n");
        return;
    }
    fprintf(stderr, "batchwise: to go on from the checkpoint of step %lld: mpirun -n %d batchwise", (long long)step,
            cli_ranks_count());
    for (char **word = given->words; *word; word++) {
        print_word(*word);
    }
    fprintf(stderr, "%s\n", given->resume ? "" : " --resume");
}

/* What bw_fit is told by the command line. */
static bw_fit_options fitting_of(const arguments *given, bw_context *ctx, bw_dataset *validation, const cli_weights *weights,
                                 watch *watched)
{
    bw_fit_options fitting = cli_training_fitting(&given->training, validation, weights);
    fitting.epochs = given->epochs;
    fitting.early_stopping = given->early_stop;
    fitting.reduce_lr_on_plateau = given->plateau;
    fitting.saves = given->save_best || given->save_model || given->run;
    fitting.trace_steps = given->reports ? CLI_RUN_TRACED : 0;
    fitting.program_bytes = given->watch >= 0 ? CLI_WATCH_BYTES : 0;
    fitting.noise_every = given->reports ? CLI_RUN_NOISE : 0;
    fitting.progress = given->quiet || watched->live ? NULL : stderr;
    fitting.checkpoint_every = given->checkpoint_every;
    fitting.checkpoint_keep = given->keep;
    fitting.resume = given->resume;
    fitting.on_nan = given->on_nan && strcmp(given->on_nan, "skip") == 0 ? BW_NAN_SKIP : BW_NAN_STOP;
    fitting.on_step = on_step;
    fitting.on_epoch = on_epoch;
    fitting.user = watched;
    if ((given->tensorboard || given->run) && cli_rank() == 0) { /* if it fails, bw_fit tells */
        bw_tensorboard_options board = BW_TENSORBOARD_OPTIONS_DEFAULT;
        board.log_steps = given->log_steps;
        fitting.tensorboard = bw_tensorboard_new(ctx, given->tensorboard ? given->tensorboard : given->run, &board);
    }
    return fitting;
}

/* Opens what is shown while the training runs. Returns false after a message. */
static bool open_views(const arguments *given, const watch *watched)
{
    cli_result *result = watched->result;
    if (watched->records) {
        cli_record_open(&result->record);
    }
    if (given->watch >= 0 && !cli_watch_open(result, given->watch)) {
        return false;
    }
    if (watched->live) {
        cli_live_open(result, watched->validates);
    } else if (given->live) {
        fputs("batchwise: --live needs a terminal; plain lines instead\n", stderr);
    }
    return true;
}

/* Checkpoints belong to the call of bw_fit alone: what looks at the training later does not go on with it. */
static bw_status run_fit(const arguments *given, cli_result *result, bw_fit_options *fitting)
{
    char *checkpoints = given->checkpoint_every || given->resume ? cli_run_path(&result->run, "checkpoints") : NULL;
    fitting->checkpoint_dir = checkpoints;
    cli_session_stepping(true);
    bw_status status = bw_fit(result->model, result->training, fitting, &result->history);
    cli_session_stepping(false);
    fitting->checkpoint_dir = fitting->checkpoint_every = NULL;
    fitting->checkpoint_keep = 0;
    fitting->resume = false;
    free(checkpoints);
    cli_live_close();
    return status;
}

/* Writes the files that were asked for, and prints what came of the training. */
static int tell(const arguments *given, cli_result *result, bw_status status, const bw_fit_options *fitting)
{
    if (status == BW_OK && bw_review(result->model, result->training, fitting, result->history, &result->findings) != BW_OK) {
        (void)bw_message(result->ctx); /* not a failure of the training */
    }
    int code = cli_result_finish(result, status);
    if (cli_ranks_count() > 1 && (status == BW_UNAVAILABLE || status == BW_CANCELLED)) {
        tell_resume(given, result->history);
    }
    if (result->history && code != CLI_FAILURE) {
        (given->json ? cli_result_json : cli_result_print)(result);
    }
    if (given->profile && result->history && !given->json) {
        cli_profile_print_short(result->history);
    }
    if (code == CLI_SUCCESS && !given->json) {
        cli_findings_line(stdout, result->findings);
    }
    return code;
}

/* Trains, and tells what came of it; of several ranks, the first one tells, alone. Ctrl-C ends training after the current step, and
 * the result so far is saved and reported like any other. */
static int train_and_tell(const arguments *given, const watch *watched, bw_fit_options *fitting)
{
    cli_result *result = watched->result;
    bw_context *ctx = result->ctx;
    if (!open_views(given, watched)) {
        return CLI_FAILURE;
    }
    bw_status status = run_fit(given, result, fitting);
    if (cli_ranks_count() > 1) {
        bw_ranks_part(ctx);
        if (status != BW_OK && is_of_other(ctx, status)) {
            cli_ranks_follow();
        }
        if (cli_rank() > 0) {
            return end_other(ctx, status);
        }
    }
    int code = status != BW_OK && bw_last_error(ctx)->argument /* bw_fit checks --early-stop and --plateau */
                   ? cli_report(ctx, usage.command)
                   : tell(given, result, status, fitting);
    cli_watch_close();
    return watched->failed && code == CLI_SUCCESS ? CLI_FAILURE : code;
}

/* The result refers to the model and its data, which the caller releases. */
static int fit(const arguments *given, bw_context *ctx, bw_model *model, bw_dataset *training, bw_dataset *validation,
               const cli_weights *weights, const bw_tuning *tuning)
{
    const cli_training *how = &given->training;
    cli_result result = {.ctx = ctx,
                         .model = model,
                         .training = training,
                         .validation = validation,
                         .epochs = given->epochs,
                         .batch = cli_training_batch(how),
                         .batch_text = how->batch,
                         .tuning = tuning,
                         .profile = given->profile,
                         .validation_split = how->validation_split,
                         .history_path = given->history,
                         .model_path = given->save_model,
                         .planning = BW_PLAN_OPTIONS_DEFAULT,
                         .run = {.folder = given->run, .arguments = given->words, .seed = how->seed, .data = how->data.path}};
    watch watched = {.given = given,
                     .result = &result,
                     .validates = validation || how->validation_split > 0,
                     .records = given->run || given->live || given->watch >= 0,
                     .live = given->live && cli_live_possible()};
    result.planning.memory = how->memory;
    result.planning.tile = how->tile;
    result.planning.lanes = how->lanes;
    result.planning.epochs = given->epochs;
    result.planning.validation = watched.validates;
    bw_fit_options fitting = fitting_of(given, ctx, validation, weights, &watched);
    int code = train_and_tell(given, &watched, &fitting);
    cli_steps_free(&result.steps);
    cli_record_free(&result.record);
    return code;
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
    return !given->run || cli_run_open(given->run, given->resume);
}

/* Everything that can be refused is refused before the first step: hours of training must not end at a path that cannot be
 * written. */
static int train(const arguments *given, bw_context *ctx)
{
    cli_prepared made = {.model = NULL};
    int code = cli_training_open(&given->training, ctx, given->quiet, &made);
    if (code == CLI_SUCCESS && cli_rank() == 0 && !can_write(given)) {
        code = CLI_FAILURE;
    }
    if (cli_session_interrupted()) {
        cli_fail("interrupted before the first step");
        code = CLI_INTERRUPTED;
    }
    arguments chosen = *given;
    char batch[BATCH_TEXT];
    bw_tuning *tuning = NULL;
    if (code == CLI_SUCCESS && cli_training_is_auto(&given->training)) {
        bw_fit_options fitting = cli_training_fitting(&given->training, made.validation, &made.weights);
        code = choose_batch(given, ctx, made.model, made.training, fitting, batch, &tuning);
        chosen.training.batch = batch;
    }
    if (code == CLI_SUCCESS) {
        code = fit(&chosen, ctx, made.model, made.training, made.validation, &made.weights, tuning);
    }
    cli_run_close();
    free(made.weights.weight);
    return code;
}

/* Options that contradict each other are wrong usage: neither is silently preferred. */
static int check(const arguments *given)
{
    int code = cli_training_check(&given->training);
    if (code != CLI_SUCCESS) {
        return code;
    }
    if (cli_ranks_count() > 1 && given->training.data.path && strcmp(given->training.data.path, "-") == 0) {
        return cli_mistake(usage.command, "--data -: ranks cannot share standard input; store the samples in a file");
    }
    if (given->live && given->quiet) {
        return cli_mistake(usage.command, "--live and --quiet exclude each other; give one of them");
    }
    if (given->budget > 0 && !cli_training_is_auto(&given->training)) {
        return cli_mistake(usage.command, "--budget belongs to --batch auto");
    }
    if (given->history && !cli_history_find(given->history)) {
        return cli_mistake(usage.command, "--history: expected a name that ends in .json or .csv, found '%s'", given->history);
    }
    if (!given->run && (given->checkpoint_every || given->resume)) {
        return cli_mistake(usage.command, "--%s: checkpoints are in the folder of a run; give --run, too",
                           given->resume ? "resume" : "checkpoint-every");
    }
    if (given->resume && cli_training_is_auto(&given->training)) {
        return cli_mistake(usage.command,
                           "--resume and --batch auto exclude each other: give the batch and the learning rate that the "
                           "run has chosen (\"batch\" in its checkpoints' manifest.json)");
    }
    if (given->keep > 0 && !given->checkpoint_every && !given->resume) {
        return cli_mistake(usage.command, "--keep: there are no checkpoints; give --checkpoint-every, too");
    }
    if (given->on_nan && strcmp(given->on_nan, "stop") != 0 && strcmp(given->on_nan, "skip") != 0) {
        return cli_mistake(usage.command, "--on-nan: expected stop or skip, found '%s'", given->on_nan);
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
    arguments given = {.training = CLI_TRAINING_DEFAULT("train"), .epochs = 10, .watch = -1, .words = argv};
    int code;
    if (!cli_options_read(&code, &usage, argc, argv, &given)) {
        return code;
    }
    code = check(&given);
    if (code != CLI_SUCCESS) {
        return code;
    }
    given.reports = given.run || given.watch >= 0;
    if (cli_rank() > 0) {
        given.watch = -1;
        given.live = false;
        given.save_best = given.tensorboard = NULL;
    }
    bw_context *ctx = cli_session_open((cli_session){.workers = given.training.workers,
                                                     .quiet = given.quiet, /* a checkpoint that fails is told even then */
                                                     .exact_kernels = given.training.exact_kernels,
                                                     .ranks = true,
                                                     .watchdog = given.watchdog});
    return !ctx ? CLI_FAILURE : cli_session_close(ctx, train(&given, ctx));
}
