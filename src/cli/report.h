/*
 * The report of a run: one HTML page without outside parts. Text from outside (names of classes, layers, files) is escaped.
 */
#ifndef CLI_REPORT_H
#define CLI_REPORT_H

#include "cli/cli.h"

/* Curves, the confusion matrix of the validation samples, memory for this batch and larger ones, the model. False after a
 * message. */
bool cli_report_write(const cli_result *result, const char *path);

/* chart.c: drawings as inline SVG. A line chart of a column of the history and, if it is there, of val_<column>. */
void cli_chart_lines(FILE *file, const bw_history *history, const char *column);
/* What a plan takes by item as one bar, and the bars of Batchwise and of a whole batch side by side for each plan. */
void cli_chart_items(FILE *file, const bw_memory_facts *plan);
void cli_chart_batches(FILE *file, const bw_memory_facts *plans, int count);
/* Text for HTML. */
void cli_html_text(FILE *file, const char *text);

#endif
