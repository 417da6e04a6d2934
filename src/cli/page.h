/*
 * The report: one HTML page without external resources, drawn in the browser from the files of one or several run directories. Its
 * style and script are in src/cli/page. What comes from a file reaches the page as JSON in a script element with every '<' escaped,
 * and the script puts it into text nodes only.
 */
#ifndef CLI_PAGE_H
#define CLI_PAGE_H

#include "cli/cli.h"

/* The files of a run directory that a page is made from. */
typedef enum cli_page_file {
    CLI_PAGE_RUN,
    CLI_PAGE_HISTORY,
    CLI_PAGE_STEPS,
    CLI_PAGE_LEDGER,
    CLI_PAGE_EVALUATION,
    CLI_PAGE_FINDINGS,
    CLI_PAGE_FILES
} cli_page_file;

typedef struct cli_page_run {
    const char *name;            /* of the run, as the page shows it; borrowed */
    char *texts[CLI_PAGE_FILES]; /* JSON that was checked; NULL: there is no such file */
    size_t lengths[CLI_PAGE_FILES];
} cli_page_run;

enum { CLI_PAGE_MOST_RUNS = 24 };

/* Reads the files of a run directory except those that `run` has already. Returns false after a message. */
bool cli_page_read(cli_page_run *run, const char *folder);
void cli_page_free(cli_page_run *run);

typedef enum cli_page_kind { CLI_PAGE_FINAL, CLI_PAGE_LIVE, CLI_PAGE_OVER } cli_page_kind;

/* Write the page before and after its data. A live one asks the server that it came from for events, until one says that the
 * training is over. */
void cli_page_open(FILE *file, cli_page_kind kind);
void cli_page_close(FILE *file);
/* Writes the data, which the page is drawn from, as one line of JSON. What is too large for a page of 1 MB is left out. */
void cli_page_put_data(FILE *file, const cli_page_run *runs, int count, cli_page_kind kind);
/* Writes the page to a file. Returns false after a message. */
bool cli_page_write(const char *path, const cli_page_run *runs, int count);

#endif
