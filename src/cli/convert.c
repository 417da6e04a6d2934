/*
 * batchwise convert: copies a model or its weights from one file format to another, chosen by the extensions. A file of weights
 * alone needs a model that they belong to.
 */
#include "cli/cli.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

typedef struct arguments {
    const char *model;
    bool quiet, json;
} arguments;

#define AT(member) offsetof(arguments, member)

static const cli_option options[] = {
    {"model", &cli_text, AT(model), "M",
     "whose weights IN has, if it has nothing else: a file, or an\nexpression that begins with input(...)"},
    {"quiet", &cli_flag, AT(quiet), NULL, "no summary"},
    {CLI_JSON_OPTION},
    {.name = NULL},
};

/* With --model, IN may hold weights alone. */
static bool is_read(const bw_file_kind *kind)
{
    return kind->loads || kind->loads_weights;
}

static void print_formats(void)
{
    bw_file_kind kind;
    puts("files:");
    for (int i = 0; bw_file_kind_at(i, &kind); i++) {
        const char *in = is_read(&kind) ? "in" : "", *comma = is_read(&kind) && kind.saves ? ", " : "";
        printf("  %-14s %-2s%-2s%-4s %s\n", kind.extension, in, comma, kind.saves ? "out" : "", kind.holds);
    }
}

static const cli_usage usage = {
    .command = "convert",
    .synopsis = "IN OUT [options]",
    .purpose = "Converts a model from one file to another, by their extensions.",
    .options = options,
    .print_more = print_formats,
};

static int64_t parameters_of(const bw_model *model)
{
    int64_t sum = 0;
    for (int v = 0; v < bw_variable_count(model); v++) {
        int64_t shape[BW_MAX_NDIM], count = 1;
        int ndim = bw_variable_shape(model, v, shape);
        for (int i = 0; i < ndim; i++) {
            count *= shape[i];
        }
        sum += count;
    }
    return sum;
}

static void report(const arguments *a, const bw_model *model, char *const *words)
{
    struct stat status;
    int64_t parameters = parameters_of(model), bytes = stat(words[1], &status) == 0 ? (int64_t)status.st_size : 0;
    if (a->json) {
        cli_json json = {.file = stdout};
        cli_json_object(&json, NULL);
        cli_json_text(&json, "input", words[0]);
        cli_json_text(&json, "output", words[1]);
        cli_json_whole(&json, "parameters", parameters);
        cli_json_whole(&json, "bytes", bytes);
        cli_json_object_end(&json);
    } else if (!a->quiet) {
        char text[CLI_BYTES_TEXT];
        printf("%s: %lld parameters, %s\n", words[1], (long long)parameters, cli_bytes_text(text, (size_t)bytes));
    }
}

static int convert(const arguments *a, char *const *words)
{
    bw_context *ctx = cli_session_open((cli_session){.workers = 1, .quiet = a->quiet || a->json});
    if (!ctx) {
        return CLI_FAILURE;
    }
    bw_model *model;
    bool loaded;
    int code = cli_model_open(&model, &loaded, ctx, usage.command, a->model ? a->model : words[0]);
    if (code == CLI_SUCCESS && a->model && bw_load_weights(model, words[0]) != BW_OK) {
        code = cli_fail("%s", bw_message(ctx));
    }
    if (code == CLI_SUCCESS && bw_save(model, words[1]) != BW_OK) {
        code = cli_fail("%s", bw_message(ctx));
    }
    if (code == CLI_SUCCESS) {
        report(a, model, words);
    }
    return cli_session_close(ctx, code);
}

/* Both names are checked before anything is read: a misspelt extension of OUT must not cost the time of reading IN. */
int cli_convert(int argc, char **argv)
{
    arguments a = {.model = NULL};
    char *words[2] = {NULL, NULL};
    int code, found = cli_options_words(&usage, &argc, argv, words, 2);
    if (!cli_options_read(&code, &usage, argc, argv, &a)) {
        return code;
    }
    if (found < 2) {
        return cli_mistake(usage.command, "expected two files, IN and OUT, found %s", found == 1 ? "one" : "none");
    }
    char endings[CLI_ENDINGS_TEXT];
    bw_file_kind kind;
    bool known = bw_file_kind_of(words[0], &kind);
    if (!a.model && known && kind.loads_weights && !kind.loads) {
        return cli_mistake(usage.command, "%s holds weights only: --model must say whose they are", words[0]);
    }
    if (!a.model && (!known || !kind.loads)) {
        return cli_mistake(usage.command, "%s: expected a name that ends in %s", words[0], cli_model_endings(endings, is_read));
    }
    if (!bw_file_kind_of(words[1], &kind) || !kind.saves) {
        return cli_mistake(usage.command, "%s: expected a name that ends in %s", words[1],
                           cli_model_endings(endings, cli_model_is_saved));
    }
    return convert(&a, words);
}
