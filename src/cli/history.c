/*
 * Writes a training's history in the two forms that Keras knows: a JSON object of lists (History.history) and the table of its
 * CSVLogger ("epoch", then the names in alphabetical order, epochs from 0). Each extension has one row in a table.
 */
#include "cli/cli.h"

#include <stdlib.h>
#include <string.h>

void cli_history_json(cli_json *json, const char *key, const bw_history *history)
{
    int columns = !history ? 0 : bw_history_columns(history);
    cli_json_object(json, key);
    for (int c = 0; c < columns; c++) {
        const char *name = bw_history_column(history, c);
        cli_json_array(json, name);
        for (int epoch = 0; epoch < bw_history_epochs(history); epoch++) {
            cli_json_real(json, NULL, bw_history_value(history, name, epoch));
        }
        cli_json_array_end(json);
    }
    cli_json_object_end(json);
}

static bool write_json(FILE *file, const bw_history *history)
{
    cli_json json = {.file = file};
    cli_history_json(&json, NULL, history);
    fputc('\n', file);
    return true;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Writes the columns in the order of Keras's CSVLogger: the epoch, then the sorted names. */
static bool write_csv(FILE *file, const bw_history *history)
{
    int columns = bw_history_columns(history);
    const char **names = calloc((size_t)columns + 1, sizeof *names);
    char text[CLI_REAL_TEXT];
    if (!names) {
        return false;
    }
    for (int c = 0; c < columns; c++) {
        names[c] = bw_history_column(history, c);
    }
    qsort(names, (size_t)columns, sizeof *names, compare_names);
    fputs("epoch", file);
    for (int c = 0; c < columns; c++) {
        fprintf(file, ",%s", names[c]);
    }
    fputc('\n', file);
    for (int epoch = 0; epoch < bw_history_epochs(history); epoch++) {
        fprintf(file, "%d", epoch);
        for (int c = 0; c < columns; c++) {
            fprintf(file, ",%s", cli_real_text(text, bw_history_value(history, names[c], epoch)));
        }
        fputc('\n', file);
    }
    free(names);
    return true;
}

static const struct {
    const char *extension;
    cli_history_format write;
} formats[] = {{".json", write_json}, {".csv", write_csv}};

cli_history_format cli_history_find(const char *path)
{
    const char *dot = strrchr(path, '.');
    for (size_t i = 0; dot && i < sizeof formats / sizeof formats[0]; i++) {
        if (strcmp(dot, formats[i].extension) == 0) {
            return formats[i].write;
        }
    }
    return NULL;
}

bool cli_history_probe(const char *path)
{
    cli_output output;
    if (!cli_output_open(&output, path)) {
        return false;
    }
    cli_output_discard(&output);
    return true;
}

bool cli_history_write(const char *path, cli_history_format format, const bw_history *history)
{
    cli_output output;
    if (!cli_output_open(&output, path)) {
        return false;
    }
    if (!format(output.file, history)) {
        cli_output_discard(&output);
        cli_fail("%s: cannot write the file: no memory", path);
        return false;
    }
    return cli_output_commit(&output);
}
