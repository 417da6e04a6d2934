/* Writes the results of a training: as files, as a JSON object, or as a few lines of text. */
#include "cli/live.h"
#include "cli/report.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

double cli_result_speed(const cli_result *result)
{
    bw_run_facts facts = bw_history_facts(result->history);
    return facts.seconds > 0 ? (double)facts.samples / facts.seconds : (double)NAN;
}

size_t cli_tables_bytes(const bw_memory_facts *memory)
{
    return memory->items[BW_PLAN_BOOKKEEPING] + memory->items[BW_PLAN_SCRATCH];
}

/* Returns the bytes needed by a system that takes the whole batch through each layer, not counting its tables; 0: not known.
 * *growing are the bytes of Batchwise's plan that grow with the batch or the model, unlike tables and buffers. A failure here must
 * not fail the training: bw_model_describe clears the pending one. */
static size_t whole_batch(const cli_result *result, int64_t *batch, size_t *growing)
{
    int64_t samples = bw_dataset_count(result->training);
    *batch = result->batch > 0 && result->batch < samples ? result->batch : samples;
    bw_plan *plan = bw_plan_make(result->model, result->training, *batch, NULL);
    bw_model_facts facts;
    if (!plan) {
        (void)bw_model_describe(result->model, &facts);
        return 0;
    }
    bw_memory_facts memory = bw_plan_facts(plan);
    *growing = memory.peak_bytes - cli_tables_bytes(&memory);
    bw_plan_free(plan);
    return memory.whole_batch_bytes;
}

/* ---- Single steps ---- */

static void print_step(const bw_progress *progress)
{
    const bw_history *logs = progress->logs;
    bool terminal = isatty(STDERR_FILENO); /* the progress bar is in this line */
    cli_live_clear();
    fprintf(stderr, "%sstep %" PRId64 ", epoch %d/%d:", terminal ? "\r\033[K" : "", progress->update, progress->epoch + 1,
            progress->epochs);
    for (int c = 0, shown = 0; c < bw_history_columns(logs); c++) {
        double value = bw_history_last(logs, bw_history_column(logs, c));
        if (!isnan(value)) { /* columns of validation have no values yet */
            fprintf(stderr, "%s %s %.6g", shown++ ? "," : "", bw_history_column(logs, c), value);
        }
    }
    fputc('\n', stderr);
}

/* The columns are fixed by the first step; those of validation are left out, since they have no values yet. */
static bool grow_steps(cli_steps *steps, const bw_history *logs)
{
    if (steps->count == 0) {
        for (int c = 0; c < bw_history_columns(logs) && steps->columns < (int)(sizeof steps->names / sizeof steps->names[0]); c++) {
            if (!isnan(bw_history_last(logs, bw_history_column(logs, c)))) {
                snprintf(steps->names[steps->columns++], sizeof steps->names[0], "%s", bw_history_column(logs, c));
            }
        }
    }
    if (steps->count < steps->capacity) {
        return true;
    }
    int64_t capacity = steps->capacity > 0 ? 2 * steps->capacity : 64;
    double *rows = realloc(steps->rows, (size_t)capacity * (size_t)(2 + steps->columns) * sizeof *rows);
    if (rows) {
        steps->rows = rows;
        steps->capacity = capacity;
    }
    return rows;
}

void cli_steps_add(cli_steps *steps, const bw_progress *progress)
{
    print_step(progress);
    if (!grow_steps(steps, progress->logs)) {
        return;
    }
    double *row = steps->rows + steps->count++ * (2 + steps->columns);
    row[0] = (double)progress->update;
    row[1] = progress->epoch;
    for (int c = 0; c < steps->columns; c++) {
        row[2 + c] = bw_history_last(progress->logs, steps->names[c]);
    }
}

void cli_steps_json(cli_json *json, const char *key, const cli_steps *steps)
{
    cli_json_array(json, key);
    for (int64_t i = 0; i < steps->count; i++) {
        const double *row = steps->rows + i * (2 + steps->columns);
        cli_json_object(json, NULL);
        cli_json_whole(json, "step", (int64_t)row[0]);
        cli_json_whole(json, "epoch", (int64_t)row[1]);
        for (int c = 0; c < steps->columns; c++) {
            cli_json_real(json, steps->names[c], row[2 + c]);
        }
        cli_json_object_end(json);
    }
    cli_json_array_end(json);
}

void cli_steps_free(cli_steps *steps)
{
    free(steps->rows);
}

/* Null if there is none. */
static void put_step(cli_json *json, const char *key, int64_t step)
{
    if (step < 0) {
        cli_json_text(json, key, NULL);
    } else {
        cli_json_whole(json, key, step);
    }
}

static void put_checkpoints(cli_json *json, const bw_run_facts *facts)
{
    cli_json_object(json, "checkpoints");
    cli_json_whole(json, "written", facts->checkpoints);
    cli_json_whole(json, "failed", facts->failed_checkpoints);
    put_step(json, "last", facts->last_checkpoint);
    put_step(json, "resumed_from", facts->resumed_step);
    cli_json_real(json, "waited_seconds", facts->checkpoint_seconds);
    cli_json_object_end(json);
}

void cli_result_text_columns(cli_json *json, const bw_dataset *dataset)
{
    const char *name;
    cli_json_array(json, "text_columns");
    for (int c = 0, categories; bw_dataset_column(dataset, c, &name, &categories); c++) {
        if (categories == 0) {
            continue;
        }
        cli_json_object(json, NULL);
        cli_json_text(json, "name", name);
        cli_json_array(json, "categories");
        for (int k = 0; k < categories; k++) {
            cli_json_text(json, NULL, bw_dataset_category(dataset, c, k));
        }
        cli_json_array_end(json);
        cli_json_object_end(json);
    }
    cli_json_array_end(json);
}

/* Scripts rely on these names, so they must not change. */
void cli_result_json(const cli_result *result)
{
    int64_t batch;
    size_t growing;
    bw_run_facts facts = bw_history_facts(result->history);
    cli_json json = {.file = stdout};
    cli_json_object(&json, NULL);
    cli_history_json(&json, "history", result->history);
    cli_json_whole(&json, "steps", facts.updates);
    cli_json_whole(&json, "samples", facts.samples);
    cli_json_real(&json, "seconds", facts.seconds);
    cli_json_real(&json, "samples_per_s", cli_result_speed(result));
    cli_json_bytes(&json, "peak_bytes", facts.peak_bytes);
    cli_json_bytes(&json, "planned_bytes", facts.planned_bytes);
    cli_json_bytes(&json, "whole_batch_bytes", whole_batch(result, &batch, &growing));
    cli_json_bytes(&json, "process_bytes", facts.process_bytes);
    cli_json_bytes(&json, "code_bytes", facts.code_bytes);
    cli_json_bytes(&json, "mapped_bytes", facts.mapped_bytes);
    cli_json_bytes(&json, "kept_bytes", facts.kept_bytes);
    cli_json_bytes(&json, "spilled_bytes", facts.spilled_bytes);
    cli_json_whole(&json, "segments", facts.segments);
    cli_json_whole(&json, "skipped_steps", facts.skipped_steps);
    put_checkpoints(&json, &facts);
    cli_json_text(&json, "stopped", result->stopped);
    cli_json_text(&json, "failure", result->failure[0] ? result->failure : NULL);
    cli_finding_json(&json, "finding", result->findings);
    cli_json_hash(&json, "hash", bw_model_hash(result->model));
    cli_json_whole(&json, "tile", facts.tile);
    cli_json_whole(&json, "lanes", facts.lanes);
    cli_json_whole(&json, "workers", facts.workers);
    cli_json_flag(&json, "exact_kernels", facts.exact_kernels);
    cli_json_text(&json, "run", result->run.folder);
    cli_json_object(&json, "data");
    cli_result_text_columns(&json, result->training);
    cli_json_object_end(&json);
    if (result->tuning) {
        cli_tuning_json(&json, "tuning", result->tuning);
    }
    if (result->profile && !cli_ledger_put(&json, "profile", result->history)) {
        cli_json_text(&json, "profile", NULL);
    }
    if (result->steps.columns > 0) {
        cli_steps_json(&json, "log", &result->steps);
    }
    cli_json_object_end(&json);
    putchar('\n');
}

/* Prints the last epoch's values by name: the metrics first, since a user asks for them, then the losses. */
static void print_last_epoch(const bw_history *history)
{
    const char *separator = "";
    for (int losses = 0; losses < 2; losses++) {
        for (int c = 0; c < bw_history_columns(history); c++) {
            const char *name = bw_history_column(history, c);
            bool is_loss = strcmp(name, "loss") == 0 || strcmp(name, "val_loss") == 0;
            if (is_loss == (losses == 1) && strcmp(name, "noise_scale") != 0) {
                printf("%s%s %.4f", separator, name, bw_history_last(history, name));
                separator = ", ";
            }
        }
    }
    putchar('\n');
}

/* Prints first what a user asks first: the result, its time, its memory beside what a whole batch takes, and a hash to compare
 * runs by. */
void cli_result_print(const cli_result *result)
{
    const bw_history *history = result->history;
    bw_run_facts facts = bw_history_facts(history);
    char peak[CLI_BYTES_TEXT], planned[CLI_BYTES_TEXT], whole[CLI_BYTES_TEXT], seconds[CLI_SECONDS_TEXT];
    int64_t batch;
    size_t growing = 0, bytes = whole_batch(result, &batch, &growing);
    if (bw_history_epochs(history) > 0) {
        print_last_epoch(history);
    }
    printf("%" PRId64 " step%s in %s, %.0f samples/s\n", facts.updates, facts.updates == 1 ? "" : "s",
           cli_seconds_text(seconds, facts.seconds), cli_result_speed(result));
    printf("peak memory %s, planned %s", facts.peak_bytes > 0 ? cli_bytes_text(peak, facts.peak_bytes) : "too small to be measured",
           cli_bytes_text(planned, facts.planned_bytes));
    if (bytes > 0) {
        printf("; a system that holds a whole batch of %" PRId64 " needs %s", batch, cli_bytes_text(whole, bytes));
    }
    if (bytes > 0 && bytes < facts.planned_bytes && growing < facts.planned_bytes / 2) { /* the comparison would be unfair */
        printf(" without its tables and buffers, which are %s of the plan here and do not grow with the batch",
               cli_bytes_text(whole, facts.planned_bytes - growing));
    }
    putchar('\n');
    printf("weights %016" PRIx64 " (the same on any number of workers)\n", bw_model_hash(result->model));
    if (result->stopped && strcmp(result->stopped, "early stopping") == 0) {
        printf("stopped early after %d of %d epoch%s\n", bw_history_epochs(history), result->epochs, cli_plural(result->epochs));
    }
    if (result->run.folder) {
        printf("run %s\n", result->run.folder);
    }
}

bool cli_result_save(const cli_result *result, const char *path, char *failure)
{
    if (bw_save(result->model, path) == BW_OK) {
        return true;
    }
    const char *message = bw_message(result->ctx);
    if (failure) {
        snprintf(failure, CLI_FAILURE_TEXT, "%s", message);
    }
    cli_fail("%s", message);
    return false;
}

static void report_interruption(const cli_result *result, bool history_written, bool model_written)
{
    int epochs = !result->history ? 0 : bw_history_epochs(result->history);
    int64_t steps = !result->history ? 0 : bw_history_facts(result->history).updates;
    cli_fail("interrupted after %" PRId64 " step%s, %d of %d epoch%s%s%s%s%s%s%s", steps, cli_plural(steps), epochs, result->epochs,
             cli_plural(result->epochs), history_written ? "; their history is in " : "",
             history_written ? result->history_path : "", model_written ? "; the model is in " : "",
             model_written ? result->model_path : "", result->run.folder && result->history ? "; the run is in " : "",
             result->run.folder && result->history ? result->run.folder : "");
}

/* Saves the run last, since it records what failed in saving the other files. */
static int save(cli_result *result, int code)
{
    const bw_history *history = result->history;
    int epochs = !history ? 0 : bw_history_epochs(history);
    bool failed = code == CLI_FAILURE;
    bool write_history = result->history_path && history && (epochs > 0 || !failed);
    bool history_written =
        write_history && cli_history_write(result->history_path, cli_history_find(result->history_path), history);
    bool write_model = result->model_path && history && !failed;
    bool model_written = write_model && cli_result_save(result, result->model_path, result->failure);
    if (history_written != write_history && !result->failure[0]) {
        snprintf(result->failure, sizeof result->failure, "%s: the history cannot be written", result->history_path);
    }
    if (result->failure[0] && code != CLI_INTERRUPTED) {
        result->stopped = "failed";
    }
    bool run_written = !result->run.folder || !history || cli_run_write(result);
    if (code == CLI_INTERRUPTED) {
        report_interruption(result, history_written, model_written);
    }
    bool all = history_written == write_history && model_written == write_model && run_written;
    return code == CLI_SUCCESS && !all ? CLI_FAILURE : code;
}

int cli_result_finish(cli_result *result, bw_status status)
{
    int code = status == BW_OK ? CLI_SUCCESS : status == BW_CANCELLED ? CLI_INTERRUPTED : CLI_FAILURE;
    if (code == CLI_FAILURE) {
        snprintf(result->failure, sizeof result->failure, "%s", bw_message(result->ctx));
        cli_fail("%s", result->failure);
    }
    bool early = result->history && bw_history_epochs(result->history) < result->epochs;
    result->stopped = code == CLI_INTERRUPTED ? "interrupted" : code == CLI_FAILURE ? "failed" : early ? "early stopping" : NULL;
    return save(result, code);
}
