/*
 * Writes the report of a run: one HTML page without external resources. Text from outside (names of classes, layers, files) is
 * escaped.
 */
#ifndef CLI_REPORT_H
#define CLI_REPORT_H

#include "cli/cli.h"

/* Writes the page: curves, the confusion matrix of the validation samples, memory for this batch size and larger ones, and the
 * model. Returns false after a message. */
bool cli_report_write(const cli_result *result, const char *path);

/* Writes ledger.json (ledger.c). A run of which no step was timed has none. Returns false after a message. */
bool cli_ledger_write(const cli_result *result, const char *path);
/* Writes the same object as a member. Returns false, and writes nothing, if no step was timed or there is no memory. */
bool cli_ledger_put(cli_json *json, const char *key, const bw_history *history);

/* chart.c draws inline SVG. This is a line chart of a column of the history and, if it exists, of val_<column>. */
void cli_chart_lines(FILE *file, const bw_history *history, const char *column);
/* Draws a plan's memory by item as one bar, and, for each of several plans, the memory of Batchwise beside that of a whole
 * batch. */
void cli_chart_items(FILE *file, const bw_memory_facts *plan);
void cli_chart_batches(FILE *file, const bw_memory_facts *plans, int count);
/* Writes text, escaped for HTML. */
void cli_html_text(FILE *file, const char *text);

#endif
