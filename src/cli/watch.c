/*
 * Publishes a training while it runs, as the files that its run directory would have now, so that the live page is the report's. A
 * state is made on the training's thread, from what the library measures anyway; it is made only while somebody listens, and so
 * seldom that it takes less than a hundredth of the time.
 */
#include "cli/watch.h"

#include "cli/page.h"
#include "cli/report.h"
#include "cli/server.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

static struct {
    const cli_result *result; /* NULL: nothing is served */
    double next;
    char *head; /* the members of run.json that do not change; NULL: not made yet */
} watched;

static double now(clockid_t clock)
{
    struct timespec time;
    clock_gettime(clock, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* ---- The files of now ------------------------------------------------------------------------------------ */

/* Makes a text by writing into memory; NULL if there is none. */
typedef void (*writer)(cli_json *json, const cli_result *result);

static char *make_text(writer write, const cli_result *result, size_t *length)
{
    char *text = NULL;
    FILE *memory = open_memstream(&text, length);
    if (!memory) {
        return NULL;
    }
    cli_json json = {.file = memory};
    write(&json, result);
    if (fclose(memory) != 0) {
        free(text);
        return NULL;
    }
    return text;
}

/* The layers do not change, and the model cannot be written as an expression for free, so this is made once. */
static void write_run(cli_json *json, const cli_result *result)
{
    cli_json_object(json, NULL);
    if (!watched.head) {
        size_t length;
        watched.head = make_text(cli_run_json_before, result, &length);
    }
    if (watched.head && watched.head[0]) {
        fputs(watched.head, json->file);
        json->filled[json->depth] = true;
    }
    cli_run_json_so_far(json, result);
    cli_json_object_end(json);
}

/* Some epochs of many, as in the report, so that a long training does not cost more and more. */
static void write_history(cli_json *json, const cli_result *result)
{
    const bw_history *history = result->history;
    int epochs = bw_history_epochs(history);
    cli_json_object(json, NULL);
    for (int c = 0; c < bw_history_columns(history); c++) {
        const char *name = bw_history_column(history, c);
        cli_json_spread_array(json, name, epochs, CLI_RECORD_POINTS);
        for (int k = 0; k < epochs && k < CLI_RECORD_POINTS; k++) {
            int epoch = (int)cli_json_spread(k, epochs, CLI_RECORD_POINTS);
            cli_json_rounded(json, NULL, bw_history_value(history, name, epoch));
        }
        cli_json_spread_array_end(json, epochs, CLI_RECORD_POINTS);
    }
    cli_json_object_end(json);
}

static void write_steps(cli_json *json, const cli_result *result)
{
    cli_record_json(json, NULL, &result->record);
}

static void write_ledger(cli_json *json, const cli_result *result)
{
    if (!cli_ledger_put(json, NULL, result->history)) {
        cli_json_text(json, NULL, NULL);
    }
}

static void publish(const cli_page_run *run, bool last)
{
    char *text = NULL;
    size_t length = 0;
    FILE *memory = open_memstream(&text, &length);
    if (!memory) {
        return;
    }
    cli_page_put_data(memory, run, 1, last ? CLI_PAGE_OVER : CLI_PAGE_LIVE);
    if (fclose(memory) == 0) {
        cli_server_publish(text, length, last);
    } else {
        free(text);
    }
}

static void publish_now(const cli_result *result, bool last)
{
    static const writer writers[CLI_PAGE_FILES] = {[CLI_PAGE_RUN] = write_run,
                                                   [CLI_PAGE_HISTORY] = write_history,
                                                   [CLI_PAGE_STEPS] = write_steps,
                                                   [CLI_PAGE_LEDGER] = write_ledger};
    cli_page_run run = {.name = "training"};
    for (int k = 0; k < CLI_PAGE_FILES; k++) {
        run.texts[k] = writers[k] ? make_text(writers[k], result, &run.lengths[k]) : NULL;
    }
    publish(&run, last);
    cli_page_free(&run);
}

/* ---- Its life -------------------------------------------------------------------------------------------- */

bool cli_watch_open(const cli_result *result, int port)
{
    int chosen = cli_server_start(port);
    if (chosen == 0) {
        return false;
    }
    watched.result = result;
    watched.next = 0;
    fprintf(stderr, "batchwise: the training is at http://127.0.0.1:%d/\n", chosen);
    return true;
}

void cli_watch_step(const bw_progress *progress)
{
    static const double INTERVAL = 1, COST = 0.01, LOOK = 0.1;
    double begin = now(CLOCK_MONOTONIC);
    if (begin < watched.next) {
        return;
    }
    if (watched.head && !cli_server_has_listeners()) {
        watched.next = begin + LOOK;
        return;
    }
    double spent = now(CLOCK_THREAD_CPUTIME_ID);
    cli_result result = *watched.result;
    result.history = progress->history;
    (void)bw_history_refresh(progress->history);
    publish_now(&result, false);
    double took = now(CLOCK_THREAD_CPUTIME_ID) - spent;
    watched.next = begin + (took / COST > INTERVAL ? took / COST : INTERVAL);
}

/* A run directory has more than the training knew while it ran: predictions and plans. */
void cli_watch_close(void)
{
    const cli_result *result = watched.result;
    if (!result) {
        return;
    }
    cli_page_run run = {.name = result->run.folder};
    if (result->history && result->run.folder && !result->failure[0] && cli_page_read(&run, result->run.folder)) {
        publish(&run, true);
    } else if (result->history) {
        publish_now(result, true);
    }
    cli_page_free(&run);
    cli_server_stop();
    free(watched.head);
    watched.head = NULL;
    watched.result = NULL;
}
