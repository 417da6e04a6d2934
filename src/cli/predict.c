/*
 * batchwise predict: predicts samples with a trained model and writes the predictions to a NumPy file (the numbers alone), to CSV
 * (with class names if there are any), or to standard output.
 */
#include "cli/cli.h"

#include <string.h>

enum { OUTPUTS = 16, PATH_TEXT = 4096 };

typedef struct arguments {
    cli_data data;
    const char *model, *out;
    int workers;
    size_t memory;
    bool no_target, probabilities, quiet, json;
} arguments;

#define AT(member) offsetof(arguments, member)

static const cli_option options[] = {
    {CLI_TRAINED_MODEL_OPTION},
    CLI_DATA_OPTIONS(arguments, data),
    {"no-target", &cli_flag, AT(no_target), NULL, "all columns of a CSV file are inputs"},
    {"out", &cli_text, AT(out), "F", "write the predictions to F, .npy or .csv; default: as CSV\nto standard output"},
    {"probabilities", &cli_flag, AT(probabilities), NULL, "if the model gives logits, apply softmax or sigmoid to\nthem"},
    {CLI_MEMORY_OPTION},
    {CLI_WORKERS_OPTION},
    {"quiet", &cli_flag, AT(quiet), NULL, "no messages but warnings"},
    {CLI_JSON_OPTION},
    {.name = NULL},
};

static void print_example(void)
{
    puts("example:\n"
         "  batchwise predict --model digits.keras --data x.npy --out p.csv");
}

static const cli_usage usage = {
    .command = "predict",
    .synopsis = "--model M --data D [options]",
    .purpose = "Predicts samples with a trained model: its outputs, and for a classifier the class.",
    .options = options,
    .required = "model",
    .print_more = print_example,
};

/* ---- NumPy ---------------------------------------------------------------------------------------------- */

/* Writes version 1.0 of the format: the magic, the length of the header, and a Python dictionary padded with blanks to a multiple
 * of 64 bytes. */
static void write_npy(FILE *file, const cli_predictions *made, int count)
{
    enum { HEADER = 256 };
    char header[HEADER];
    (void)count;
    int at = snprintf(header, sizeof header, "{'descr': '<f4', 'fortran_order': False, 'shape': (%lld,", (long long)made->samples);
    for (int i = 0; i < made->facts.ndim; i++) {
        at += snprintf(header + at, sizeof header - (size_t)at, " %lld,", (long long)made->facts.shape[i]);
    }
    at += snprintf(header + at, sizeof header - (size_t)at, "), }");
    int length = (10 + at + 1 + 63) / 64 * 64 - 10;
    fprintf(file, "\x93NUMPY%c%c%c%c%-*s\n", 1, 0, length & 255, length >> 8, length - 1, header);
    fwrite(made->values, sizeof *made->values, (size_t)(made->samples * made->each), file);
}

/* ---- CSV ------------------------------------------------------------------------------------------------ */

static void write_field(FILE *file, const char *before, const char *text)
{
    fputs(before, file);
    if (!strpbrk(text, ",\"\r\n")) {
        fputs(text, file);
        return;
    }
    fputc('"', file);
    for (; *text; text++) {
        if (*text == '"') {
            fputc('"', file);
        }
        fputc(*text, file);
    }
    fputc('"', file);
}

/* Writes the column names. If there are several outputs, each begins with its output's name. */
static void write_names(FILE *file, const cli_predictions *made, bool several, bool first)
{
    char text[CLI_CLASS_TEXT], name[160];
    int classes = cli_predictions_classes(made);
    const char *begin = several ? made->facts.name : "", *joint = several ? "_" : "", *separator = first ? "" : ",";
    if (classes > 0) {
        snprintf(name, sizeof name, "%s%sclass", begin, joint);
        write_field(file, separator, name);
        separator = ",";
    }
    for (int64_t i = 0; i < made->each; i++) {
        if (made->each == 1) {
            snprintf(name, sizeof name, "%s%s%s", begin, joint,
                     classes == 0         ? "prediction"
                     : made->facts.logits ? "logit"
                                          : "probability");
        } else if (classes > 0) {
            snprintf(name, sizeof name, "%s%s%s", begin, joint, cli_class_name(text, made->model, made->dataset, (int)i));
        } else {
            snprintf(name, sizeof name, "%s%sprediction_%lld", begin, joint, (long long)i);
        }
        write_field(file, separator, name);
        separator = ",";
    }
}

static void write_row(FILE *file, const cli_predictions *made, int64_t sample, bool first)
{
    char text[CLI_REAL_TEXT], name[CLI_CLASS_TEXT];
    const char *separator = first ? "" : ",";
    if (cli_predictions_classes(made) > 0) {
        write_field(file, separator, cli_class_name(name, made->model, made->dataset, cli_predictions_class(made, sample)));
        separator = ",";
    }
    for (int64_t i = 0; i < made->each; i++) {
        fprintf(file, "%s%s", separator, cli_float_text(text, made->values[sample * made->each + i]));
        separator = ",";
    }
}

/* Writes a row for each sample. If samples are files, such as images, the first column names the file. */
static void write_csv(FILE *file, const cli_predictions *made, int count)
{
    char path[PATH_TEXT];
    bool files = bw_dataset_file(made[0].dataset, 0, path, sizeof path);
    if (files) {
        fputs("file", file);
    }
    for (int k = 0; k < count; k++) {
        write_names(file, &made[k], count > 1, k == 0 && !files);
    }
    fputc('\n', file);
    for (int64_t i = 0; i < made[0].samples; i++) {
        if (files && bw_dataset_file(made[0].dataset, i, path, sizeof path)) {
            write_field(file, "", path);
        }
        for (int k = 0; k < count; k++) {
            write_row(file, &made[k], i, k == 0 && !files);
        }
        fputc('\n', file);
    }
}

/* ---- Formats -------------------------------------------------------------------------------------------- */

typedef void (*format)(FILE *file, const cli_predictions *made, int count);

static const struct {
    const char *extension;
    format write;
} formats[] = {{".npy", write_npy}, {".csv", write_csv}};

static format find_format(const char *path)
{
    const char *dot = strrchr(path, '.');
    for (size_t i = 0; dot && i < sizeof formats / sizeof formats[0]; i++) {
        if (strcmp(dot, formats[i].extension) == 0) {
            return formats[i].write;
        }
    }
    return NULL;
}

static int write_file(const char *path, const cli_predictions *made, int count)
{
    cli_output output;
    format write = find_format(path);
    if (write == write_npy && count > 1) {
        return cli_fail("%s: a .npy file holds one array, the model has %d outputs; give a name that ends in .csv", path, count);
    }
    if (!cli_output_open(&output, path)) {
        return CLI_FAILURE;
    }
    write(output.file, made, count);
    return cli_output_commit(&output) ? CLI_SUCCESS : CLI_FAILURE;
}

/* ---- JSON ----------------------------------------------------------------------------------------------- */

static void put_values(cli_json *json, const cli_predictions *made)
{
    cli_json_array(json, "predictions");
    for (int64_t i = 0; i < made->samples; i++) {
        cli_json_array(json, NULL);
        for (int64_t k = 0; k < made->each; k++) {
            cli_json_real(json, NULL, (double)made->values[i * made->each + k]);
        }
        cli_json_array_end(json);
    }
    cli_json_array_end(json);
}

static void put_classes(cli_json *json, const cli_predictions *made)
{
    char text[CLI_CLASS_TEXT];
    int classes = cli_predictions_classes(made);
    cli_json_array(json, "classes");
    for (int i = 0; i < classes; i++) {
        cli_json_text(json, NULL, cli_class_name(text, made->model, made->dataset, i));
    }
    cli_json_array_end(json);
    cli_json_array(json, "predicted");
    for (int64_t i = 0; i < made->samples; i++) {
        cli_json_text(json, NULL, cli_class_name(text, made->model, made->dataset, cli_predictions_class(made, i)));
    }
    cli_json_array_end(json);
}

static void put_files(cli_json *json, const bw_dataset *dataset)
{
    char path[PATH_TEXT];
    if (bw_dataset_file(dataset, 0, path, sizeof path)) {
        cli_json_array(json, "files");
        for (int64_t i = 0; bw_dataset_file(dataset, i, path, sizeof path); i++) {
            cli_json_text(json, NULL, path);
        }
        cli_json_array_end(json);
    }
}

/* Values are left out if --out has written them to a file: nobody needs millions of numbers as text as well. */
static void print_json(const arguments *given, const cli_predictions *made, int count)
{
    cli_json json = {.file = stdout};
    cli_json_object(&json, NULL);
    cli_json_whole(&json, "samples", made[0].samples);
    cli_json_text(&json, "out", given->out);
    put_files(&json, made[0].dataset);
    cli_json_array(&json, "outputs");
    for (int k = 0; k < count; k++) {
        cli_json_object(&json, NULL);
        cli_json_text(&json, "name", made[k].facts.name);
        cli_json_array(&json, "shape");
        for (int i = 0; i < made[k].facts.ndim; i++) {
            cli_json_whole(&json, NULL, made[k].facts.shape[i]);
        }
        cli_json_array_end(&json);
        cli_json_truth(&json, "logits", made[k].facts.logits);
        if (cli_predictions_classes(&made[k]) > 0) {
            put_classes(&json, &made[k]);
        }
        if (!given->out) {
            put_values(&json, &made[k]);
        }
        cli_json_object_end(&json);
    }
    cli_json_array_end(&json);
    cli_json_object_end(&json);
    putchar('\n');
}

/* ---- The command ---------------------------------------------------------------------------------------- */

/* Keras's predict returns logits unchanged, and so do the exported files; a message tells those who might mistake them for
 * probabilities. */
static void tell_logits(const arguments *given, cli_predictions *made, int count)
{
    for (int k = 0; k < count; k++) {
        if (made[k].facts.logits && given->probabilities) {
            cli_predictions_normalise(&made[k]);
        } else if (made[k].facts.logits && !given->quiet) {
            fprintf(stderr, "batchwise: output %s gives logits, as in Keras; --probabilities gives probabilities\n",
                    made[k].facts.name);
        }
    }
}

static int predict(const arguments *given, bw_context *ctx, bw_model *model, bw_dataset *dataset)
{
    cli_predictions made[OUTPUTS];
    int count = cli_predictions_make(made, OUTPUTS, ctx, model, dataset);
    if (count < 0) {
        return CLI_FAILURE;
    }
    tell_logits(given, made, count);
    int code = !given->out ? CLI_SUCCESS : write_file(given->out, made, count);
    if (code == CLI_SUCCESS && given->json) {
        print_json(given, made, count);
    } else if (code == CLI_SUCCESS && !given->out) {
        write_csv(stdout, made, count);
    }
    cli_predictions_free(made, count);
    return code;
}

static int run(const arguments *given, bw_context *ctx)
{
    bw_model *model;
    bw_dataset *dataset;
    int code = cli_model_open_trained(&model, &dataset, ctx, usage.command, given->model, &given->data);
    return code == CLI_SUCCESS ? predict(given, ctx, model, dataset) : code;
}

static int check(arguments *given)
{
    if (given->out && !find_format(given->out)) {
        return cli_mistake(usage.command, "--out: expected a name that ends in .npy or .csv, found '%s'", given->out);
    }
    if (given->no_target && given->data.target) {
        return cli_mistake(usage.command, "--target and --no-target exclude each other; give one of them");
    }
    given->data.target = given->no_target ? "" : given->data.target;
    return cli_data_check(usage.command, &given->data);
}

int cli_predict(int argc, char **argv)
{
    arguments given = {.data = CLI_DATA_DEFAULT};
    given.data.part = "test"; /* a model is judged by samples that it was not trained on */
    int code;
    if (!cli_options_read(&code, &usage, argc, argv, &given)) {
        return code;
    }
    code = check(&given);
    if (code != CLI_SUCCESS) {
        return code;
    }
    bw_context *ctx = cli_session_open((cli_session){.workers = given.workers, .memory = given.memory, .quiet = given.quiet});
    return !ctx ? CLI_FAILURE : cli_session_close(ctx, run(&given, ctx));
}
