/* The files that a run directory holds for its report, besides history and model. */
#ifndef CLI_REPORT_H
#define CLI_REPORT_H

#include "cli/cli.h"

/* Writes the object of run.json (run_json.c). */
void cli_run_json(cli_json *json, const cli_result *result);
/* Write members of it for a training that runs: what does not change any more once it runs, and the state of now as far as it is
 * cheap. Nothing of it reads samples or weights. */
void cli_run_json_before(cli_json *json, const cli_result *result);
void cli_run_json_so_far(cli_json *json, const cli_result *result);
/* Writes the object for a tuning without a training: there is no result, and nothing but model, data and tuning. */
void cli_run_json_tuning(cli_json *json, const cli_result *result);

/* Writes ledger.json (ledger.c). A run of which no step was timed has none. Returns false after a message. */
bool cli_ledger_write(const cli_result *result, const char *path);
/* Writes the same object as a member. Returns false, and writes nothing, if no step was timed or there is no memory. */
bool cli_ledger_put(cli_json *json, const char *key, const bw_history *history);

/* Writes evaluation.json (evaluation.c): the confusion matrix and the worst of the validation samples. A run without any, or one
 * that did not end by itself, has none. Returns false after a message. */
bool cli_evaluation_write(const cli_result *result, const char *path);

#endif
