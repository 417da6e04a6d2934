/*
 * Counts and shows the confusion matrix: rows are the true classes, columns the predicted ones. Each class's recall (the share of
 * its samples that was found) is beside it, its precision (the share of its predictions that was right) below it.
 */
#include "cli/cli.h"

#include <math.h>
#include <stdlib.h>

enum { MOST_SHOWN = 20, WORST = 10, NAME = 14 };

static int64_t *cell(const cli_confusion *made, int row, int column)
{
    return &made->counts[(size_t)row * (size_t)made->classes + (size_t)column];
}

int cli_class_of_target(const float *row, int64_t each, int classes)
{
    if (each == 1) {
        return row[0] >= 0 && row[0] < (float)classes && row[0] == floorf(row[0]) ? (int)row[0] : -1;
    }
    int best = 0;
    for (int i = 1; i < classes; i++) {
        best = row[i] > row[best] ? i : best;
    }
    return best;
}

static bool count_all(cli_confusion *made, bw_dataset *dataset, const cli_predictions *predictions, int64_t each)
{
    enum { AT_ONCE = 1024 };
    float *targets = malloc(AT_ONCE * (size_t)each * sizeof *targets);
    bool counted = targets;
    for (int64_t first = 0; counted && first < predictions->samples; first += AT_ONCE) {
        int64_t n = predictions->samples - first < AT_ONCE ? predictions->samples - first : AT_ONCE;
        counted = bw_dataset_values(dataset, "y", first, n, targets, (size_t)(n * each)) == BW_OK;
        for (int64_t i = 0; counted && i < n; i++) {
            int number = cli_class_of_target(targets + i * each, each, made->classes);
            counted = number >= 0;
            if (counted) {
                ++*cell(made, number, cli_predictions_class(predictions, first + i));
            }
        }
    }
    free(targets);
    return counted;
}

bool cli_confusion_count(cli_confusion *made, bw_dataset *dataset, const cli_predictions *predictions)
{
    int64_t shape[BW_MAX_NDIM], each = 1;
    int ndim = bw_dataset_field(dataset, "y", shape);
    *made = (cli_confusion){.classes = cli_predictions_classes(predictions), .model = predictions->model, .dataset = dataset};
    for (int i = 0; i < ndim; i++) {
        each *= shape[i];
    }
    if (made->classes == 0 || ndim < 0 || (each != 1 && each != made->classes)) {
        return false;
    }
    made->counts = calloc((size_t)made->classes * (size_t)made->classes, sizeof *made->counts);
    if (!made->counts || !count_all(made, dataset, predictions, each)) {
        cli_confusion_free(made);
        return false;
    }
    return true;
}

bool cli_confusion_make(cli_confusion *made, bw_context *ctx, bw_model *model, bw_dataset *dataset)
{
    bw_output_facts facts;
    cli_predictions predictions;
    *made = (cli_confusion){.counts = NULL};
    if (bw_output_count(model) != 1 || bw_output_describe(model, 0, &facts) != BW_OK || facts.kind == BW_OUTPUT_NUMBERS) {
        return true;
    }
    if (cli_predictions_make(&predictions, 1, ctx, model, dataset) < 0) {
        return false;
    }
    (void)cli_confusion_count(made, dataset, &predictions);
    cli_predictions_free(&predictions, 1);
    return true;
}

void cli_confusion_free(cli_confusion *made)
{
    free(made->counts);
    made->counts = NULL;
}

static double share(int64_t part, int64_t all)
{
    return all > 0 ? (double)part / (double)all : (double)NAN;
}

double cli_confusion_precision(const cli_confusion *made, int number)
{
    int64_t all = 0;
    for (int row = 0; row < made->classes; row++) {
        all += *cell(made, row, number);
    }
    return share(*cell(made, number, number), all);
}

double cli_confusion_recall(const cli_confusion *made, int number)
{
    int64_t all = 0;
    for (int column = 0; column < made->classes; column++) {
        all += *cell(made, number, column);
    }
    return share(*cell(made, number, number), all);
}

/* ---- Text ------------------------------------------------------------------------------------------------ */

static void print_share(FILE *file, double value, int width)
{
    if (isnan(value)) {
        fprintf(file, "%*s", width, "-");
    } else {
        fprintf(file, "%*.3f", width, value);
    }
}

static int widest(const cli_confusion *made)
{
    char text[CLI_CLASS_TEXT];
    int width = 5;
    for (int i = 0; i < made->classes; i++) {
        int name = cli_name_width(cli_class_name(text, made->model, made->dataset, i), NAME);
        width = name > width ? name : width;
        for (int j = 0; j < made->classes; j++) {
            int digits = snprintf(NULL, 0, "%lld", (long long)*cell(made, i, j));
            width = digits > width ? digits : width;
        }
    }
    return width;
}

/* Columns are as wide as the longest name or count, so that the matrix stays aligned; recall ends each row, precision each
 * column. */
static void print_matrix(FILE *file, const cli_confusion *made)
{
    char text[CLI_CLASS_TEXT];
    int width = widest(made), first = width > 9 ? width : 9;
    fputs("confusion (rows: true, columns: predicted)\n", file);
    fprintf(file, "%*s", first + 2, "");
    for (int i = 0; i < made->classes; i++) {
        fputc(' ', file);
        cli_print_name(file, cli_class_name(text, made->model, made->dataset, i), width);
    }
    fputs("  recall\n", file);
    for (int i = 0; i < made->classes; i++) {
        fputs("  ", file);
        cli_print_name(file, cli_class_name(text, made->model, made->dataset, i), -first);
        for (int j = 0; j < made->classes; j++) {
            fprintf(file, " %*lld", width, (long long)*cell(made, i, j));
        }
        print_share(file, cli_confusion_recall(made, i), 8);
        fputc('\n', file);
    }
    fprintf(file, "  %-*s", first, "precision");
    for (int i = 0; i < made->classes; i++) {
        fputc(' ', file);
        print_share(file, cli_confusion_precision(made, i), width);
    }
    fputc('\n', file);
}

/* Prints only the most frequent confusions, since a matrix of many classes would not fit on a screen. */
static void print_worst(FILE *file, const cli_confusion *made)
{
    int64_t last = INT64_MAX;
    char text[CLI_CLASS_TEXT];
    int printed = 0;
    fprintf(file, "the most frequent confusions of %d classes (all of them: --json)\n", made->classes);
    while (printed < WORST && last > 0) {
        int64_t next = 0;
        for (int i = 0; i < made->classes; i++) {
            for (int j = 0; j < made->classes; j++) {
                int64_t count = i == j ? 0 : *cell(made, i, j);
                next = count < last && count > next ? count : next;
                if (count == last && printed < WORST) {
                    printed++;
                    fprintf(file, "  %6lld  ", (long long)count);
                    cli_print_name(file, cli_class_name(text, made->model, made->dataset, i),
                                   cli_name_width(cli_class_name(text, made->model, made->dataset, i), 60));
                    fputs(" taken for ", file);
                    cli_print_name(file, cli_class_name(text, made->model, made->dataset, j),
                                   cli_name_width(cli_class_name(text, made->model, made->dataset, j), 60));
                    fputc('\n', file);
                }
            }
        }
        last = next;
    }
}

void cli_confusion_print(FILE *file, const cli_confusion *made)
{
    if (made->classes <= MOST_SHOWN) {
        print_matrix(file, made);
    } else {
        print_worst(file, made);
    }
}

/* ---- JSON ------------------------------------------------------------------------------------------------ */

/* Writes four members of the current object: classes and, in their order, the rows of the matrix, precision and recall. Precision
 * and recall are also names of metrics, so the keys here differ from these. */
void cli_confusion_json(cli_json *json, const cli_confusion *made)
{
    char text[CLI_CLASS_TEXT];
    cli_json_array(json, "classes");
    for (int i = 0; i < made->classes; i++) {
        cli_json_text(json, NULL, cli_class_name(text, made->model, made->dataset, i));
    }
    cli_json_array_end(json);
    cli_json_array(json, "confusion");
    for (int i = 0; i < made->classes; i++) {
        cli_json_array(json, NULL);
        for (int j = 0; j < made->classes; j++) {
            cli_json_whole(json, NULL, *cell(made, i, j));
        }
        cli_json_array_end(json);
    }
    cli_json_array_end(json);
    cli_json_array(json, "precision_by_class");
    for (int i = 0; i < made->classes; i++) {
        cli_json_real(json, NULL, cli_confusion_precision(made, i));
    }
    cli_json_array_end(json);
    cli_json_array(json, "recall_by_class");
    for (int i = 0; i < made->classes; i++) {
        cli_json_real(json, NULL, cli_confusion_recall(made, i));
    }
    cli_json_array_end(json);
}
