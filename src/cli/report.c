/*
 * batchwise report: makes one self-contained HTML page from the files of a run directory, or compares several runs. `train --run`
 * makes the same page at its end; this makes it again, for example after findings were added or for a comparison.
 */
#include "cli/page.h"

#include <stdlib.h>
#include <string.h>

typedef struct arguments {
    const char *out;
    bool json;
} arguments;

#define AT(member) offsetof(arguments, member)

static const cli_option options[] = {
    {"out", &cli_text, AT(out), "F",
     "the page's file; default: report.html in the run's folder, for\nseveral runs in the current one"},
    {CLI_JSON_OPTION},
    {.name = NULL},
};

static void print_example(void)
{
    puts("examples:\n"
         "  batchwise report runs/first\n"
         "  batchwise report runs/first runs/second --out compared.html");
}

static const cli_usage usage = {
    .command = "report",
    .synopsis = "DIR [DIR2 ...] [options]",
    .purpose = "Makes one HTML page of a run directory (train --run), or compares several runs.",
    .options = options,
    .print_more = print_example,
};

/* Without --out, a file that is no report must not be lost to one. */
static bool may_replace(const char *path)
{
    char head[256];
    FILE *file = fopen(path, "r");
    size_t length = !file ? 0 : fread(head, 1, sizeof head - 1, file);
    if (!file) {
        return true;
    }
    fclose(file);
    head[length] = 0;
    if (length == 0 || strstr(head, "content=\"batchwise\"") || strstr(head, "<!doctype html>\n<html lang=\"en\">")) {
        return true;
    }
    cli_fail("%s: this file is no report, and would be replaced; give --out", path);
    return false;
}

static int write_page(const arguments *given, const char *path, const cli_page_run *runs, int count)
{
    if ((!given->out && !may_replace(path)) || !cli_page_write(path, runs, count)) {
        return CLI_FAILURE;
    }
    if (given->json) {
        cli_json json = {.file = stdout};
        cli_json_object(&json, NULL);
        cli_json_text(&json, "path", path);
        cli_json_whole(&json, "runs", count);
        cli_json_object_end(&json);
        putchar('\n');
    } else {
        printf("report %s\n", path);
    }
    return CLI_SUCCESS;
}

static int make(const arguments *given, char **folders, int count)
{
    cli_page_run runs[CLI_PAGE_MOST_RUNS] = {{.name = NULL}};
    int code = CLI_SUCCESS;
    for (int k = 0; k < count && code == CLI_SUCCESS; k++) {
        runs[k].name = folders[k];
        code = cli_page_read(&runs[k], folders[k]) ? CLI_SUCCESS : CLI_FAILURE;
    }
    char *own = count == 1 && !given->out ? cli_run_path(&(cli_run){.folder = folders[0]}, "report.html") : NULL;
    const char *path = given->out ? given->out : count > 1 ? "report.html" : own;
    if (code == CLI_SUCCESS) {
        code = !path ? cli_fail("no memory for the name of the report") : write_page(given, path, runs, count);
    }
    free(own);
    for (int k = 0; k < count; k++) {
        cli_page_free(&runs[k]);
    }
    return code;
}

int cli_report_command(int argc, char **argv)
{
    arguments given = {.out = NULL};
    char *folders[CLI_PAGE_MOST_RUNS];
    int code, count = cli_options_words(&usage, &argc, argv, folders, CLI_PAGE_MOST_RUNS);
    if (!cli_options_read(&code, &usage, argc, argv, &given)) {
        return code;
    }
    if (count == 0) {
        return cli_mistake(usage.command, "expected the folder of a run, which 'batchwise train --run DIR' writes");
    }
    return make(&given, folders, count);
}
