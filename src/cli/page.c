/*
 * Writes the page of a report, and reads the files that it is made from. A page must stay below 1 MB whatever a run recorded, so
 * each file has a share of that: long lists are thinned out, and a file that is still too large is left out and named.
 */
#include "cli/page.h"

#include "cli/json_copy.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Made from the files in src/cli/page by cmake/embed.cmake. */
extern const unsigned char cli_page_style[], cli_page_script[];

enum { MOST_READ = 64 << 20 };

/* `most` is the size in the page of one run. Several runs share twice as much, since a comparison shows fewer files. */
static const struct {
    const char *name, *key;
    size_t most;
    bool compared; /* a page of several runs shows it too */
} files[CLI_PAGE_FILES] = {
    [CLI_PAGE_RUN] = {"run.json", "run", 120000, true},
    [CLI_PAGE_HISTORY] = {"history.json", "history", 160000, true},
    [CLI_PAGE_STEPS] = {"steps.json", "steps", 120000, true},
    [CLI_PAGE_LEDGER] = {"ledger.json", "ledger", 120000, false},
    [CLI_PAGE_EVALUATION] = {"evaluation.json", "evaluation", 280000, false},
    [CLI_PAGE_FINDINGS] = {"findings.json", "findings", 60000, false},
};

/* ---- Reading --------------------------------------------------------------------------------------------- */

static bool refuse(const char *path, const char *why)
{
    cli_fail("%s: cannot read the file: %s", path, why);
    return false;
}

/* Reads a file that need not exist. Only regular files are read: opening anything else might wait for ever. */
static bool read_text(const char *path, char **text, size_t *length)
{
    struct stat status;
    *text = NULL;
    if (stat(path, &status) != 0) {
        return errno == ENOENT || errno == ENOTDIR || refuse(path, strerror(errno));
    }
    if (!S_ISREG(status.st_mode) || status.st_size > MOST_READ) {
        return refuse(path, S_ISREG(status.st_mode) ? "expected at most 64 MiB" : "expected a regular file");
    }
    FILE *file = fopen(path, "r");
    if (!file) {
        return refuse(path, strerror(errno));
    }
    *text = malloc((size_t)status.st_size + 1);
    *length = !*text ? 0 : fread(*text, 1, (size_t)status.st_size, file);
    bool failed = !*text || ferror(file);
    fclose(file);
    if (failed) {
        bool memory = !*text;
        free(*text);
        *text = NULL;
        return refuse(path, memory ? "no memory" : "reading failed");
    }
    (*text)[*length] = 0;
    return true;
}

static int line_of(const char *text, size_t at)
{
    int line = 1;
    for (size_t k = 0; k < at; k++) {
        line += text[k] == '\n';
    }
    return line;
}

static bool read_file(cli_page_run *run, int k, const char *path)
{
    size_t at;
    if (!read_text(path, &run->texts[k], &run->lengths[k])) {
        return false;
    }
    const char *mistake = !run->texts[k] ? NULL : cli_json_mistake(run->texts[k], run->lengths[k], &at);
    if (mistake) {
        cli_fail("%s: expected JSON, found in line %d, byte %zu of the file: %s", path, line_of(run->texts[k], at), at, mistake);
    }
    return !mistake;
}

bool cli_page_read(cli_page_run *run, const char *folder)
{
    bool read = true;
    for (int k = 0; read && k < CLI_PAGE_FILES; k++) {
        if (run->texts[k]) {
            continue;
        }
        char *path = cli_run_path(&(cli_run){.folder = folder}, files[k].name);
        read = path && read_file(run, k, path);
        if (!path) {
            cli_fail("no memory for the name of %s", files[k].name);
        }
        free(path);
    }
    if (read && !run->texts[CLI_PAGE_RUN]) {
        cli_fail("%s: expected the folder of a run, which 'batchwise train --run' writes; there is no run.json in it", folder);
        read = false;
    }
    return read;
}

void cli_page_free(cli_page_run *run)
{
    for (int k = 0; k < CLI_PAGE_FILES; k++) {
        free(run->texts[k]);
        run->texts[k] = NULL;
    }
}

/* ---- Writing --------------------------------------------------------------------------------------------- */

/* Copies a file, with lists thinned out further until it fits its share. Returns false, and writes nothing, if it never does. */
static bool put_file(FILE *file, const cli_page_run *run, int k, int count)
{
    for (int most = 512; most >= 32; most /= 2) {
        char *copy = NULL;
        size_t length = 0;
        FILE *memory = open_memstream(&copy, &length);
        if (!memory) {
            return false;
        }
        cli_json_copy(memory, run->texts[k], run->lengths[k], most);
        bool fits = fclose(memory) == 0 && length <= (count > 1 ? 2 : 1) * files[k].most / (size_t)count;
        if (fits) {
            fprintf(file, ",\"%s\":", files[k].key);
            fwrite(copy, 1, length, file);
        }
        free(copy);
        if (fits) {
            return true;
        }
    }
    return false;
}

static void put_run(FILE *file, const cli_page_run *run, int count)
{
    const char *omitted[CLI_PAGE_FILES];
    int omissions = 0;
    cli_json json = {.file = file, .script = true};
    fputs("{\"name\":", file);
    cli_json_text(&json, NULL, run->name);
    for (int k = 0; k < CLI_PAGE_FILES; k++) {
        if (run->texts[k] && (count == 1 || files[k].compared) && !put_file(file, run, k, count)) {
            omitted[omissions++] = files[k].name;
        }
    }
    fputs(",\"omitted\":[", file);
    for (int k = 0; k < omissions; k++) {
        fprintf(file, "%s\"%s\"", k > 0 ? "," : "", omitted[k]);
    }
    fputs("]}", file);
}

void cli_page_put_data(FILE *file, const cli_page_run *runs, int count, cli_page_kind kind)
{
    fprintf(file, "{\"version\":\"%s\",\"live\":%s,\"over\":%s,\"runs\":[", bw_version(), kind == CLI_PAGE_FINAL ? "false" : "true",
            kind == CLI_PAGE_OVER ? "true" : "false");
    for (int k = 0; k < count; k++) {
        fputs(k > 0 ? "," : "", file);
        put_run(file, &runs[k], count);
    }
    fputs("]}", file);
}

/* Everything before the data: the policy allows inline style and script and, for a live page, events from its own server. */
void cli_page_open(FILE *file, cli_page_kind kind)
{
    fprintf(file,
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
            "<meta name=\"generator\" content=\"batchwise\">\n"
            "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n"
            "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; script-src "
            "'unsafe-inline'; %sbase-uri 'none'; form-action 'none'\">\n<title>Batchwise report</title>\n<style>\n",
            kind == CLI_PAGE_FINAL ? "" : "connect-src 'self'; ");
    fputs((const char *)cli_page_style, file);
    fputs("</style>\n</head>\n<body>\n<main>\n<noscript><p>This page draws its curves and tables with a script, which the browser "
          "does "
          "not allow. The numbers are in the files history.csv and run.json of the run.</p></noscript>\n</main>\n"
          "<script type=\"application/json\" id=\"data\">",
          file);
}

void cli_page_close(FILE *file)
{
    fputs("</script>\n<script>\n'use strict';\n{\n", file);
    fputs((const char *)cli_page_script, file);
    fputs("}\n</script>\n</body>\n</html>\n", file);
}

bool cli_page_write(const char *path, const cli_page_run *runs, int count)
{
    cli_output output;
    if (!cli_output_open(&output, path)) {
        return false;
    }
    cli_page_open(output.file, CLI_PAGE_FINAL);
    cli_page_put_data(output.file, runs, count, CLI_PAGE_FINAL);
    cli_page_close(output.file);
    return cli_output_commit(&output);
}
