/* Computes class weights from the frequency of the classes in the data. */
#include "cli/cli.h"

#include <math.h>
#include <stdlib.h>

enum { AT_ONCE = 4096 };

static int refuse(const char *found)
{
    return cli_fail("--class-weight auto: expected targets that are class numbers below %d, found %s", CLI_MAX_CLASSES, found);
}

/* Returns one sample's class: its number, or the index of the largest of several values; -1: it is not a class. */
static int class_of(const float *row, int64_t each)
{
    int64_t best = 0;
    for (int64_t i = 1; i < each; i++) {
        best = row[i] > row[best] ? i : best;
    }
    if (each > 1) {
        return (int)best;
    }
    return row[0] >= 0 && row[0] < CLI_MAX_CLASSES && row[0] == floorf(row[0]) ? (int)row[0] : -1;
}

/* Targets are read a few thousand at a time, so that memory does not grow with the dataset. */
static int count_classes(int64_t *counts, bw_context *ctx, bw_dataset *dataset, int64_t each)
{
    int64_t samples = bw_dataset_count(dataset);
    float *rows = calloc(AT_ONCE * (size_t)each, sizeof *rows);
    int code = !rows ? cli_fail("no memory for the targets") : CLI_SUCCESS;
    for (int64_t first = 0; first < samples && code == CLI_SUCCESS; first += AT_ONCE) {
        int64_t n = samples - first < AT_ONCE ? samples - first : AT_ONCE;
        if (bw_dataset_values(dataset, "y", first, n, rows, (size_t)(n * each)) != BW_OK) {
            code = cli_fail("%s", bw_message(ctx));
        }
        for (int64_t i = 0; i < n && code == CLI_SUCCESS; i++) {
            int number = class_of(rows + i * each, each);
            char text[CLI_REAL_TEXT];
            if (number < 0) {
                code = refuse(cli_float_text(text, rows[i]));
            } else {
                counts[number]++;
            }
        }
    }
    free(rows);
    return code;
}

int cli_weights_balance(cli_weights *weights, bw_context *ctx, bw_dataset *dataset)
{
    int64_t shape[BW_MAX_NDIM], each = 1;
    int ndim = bw_dataset_field(dataset, "y", shape), found = 0;
    for (int i = 0; i < ndim; i++) {
        each *= shape[i];
    }
    if (ndim < 0 || each > CLI_MAX_CLASSES) {
        return refuse(ndim < 0 ? "none" : "more numbers per sample");
    }
    int64_t *counts = calloc(CLI_MAX_CLASSES, sizeof *counts);
    int code = !counts ? cli_fail("no memory for the counts of classes") : count_classes(counts, ctx, dataset, each);
    for (int i = 0; i < CLI_MAX_CLASSES && code == CLI_SUCCESS; i++) {
        found += counts[i] > 0;
        weights->count = counts[i] > 0 ? i + 1 : weights->count;
    }
    for (int i = 0; i < weights->count; i++) {
        double share = (double)found * (double)counts[i] / (double)bw_dataset_count(dataset);
        weights->weight[i] = counts[i] > 0 ? (float)(1 / share) : 1;
    }
    free(counts);
    return code;
}

void cli_weights_print(FILE *file, const cli_weights *weights, const bw_dataset *dataset)
{
    enum { SHOWN = 12 };
    char text[CLI_CLASS_TEXT];
    fputs("batchwise: class weights: ", file);
    for (int i = 0; i < weights->count && i < SHOWN; i++) {
        const char *name = cli_class_name(text, NULL, dataset, i);
        fputs(i > 0 ? ", " : "", file);
        cli_print_name(file, name, cli_name_width(name, 24));
        fprintf(file, " %.4g", (double)weights->weight[i]);
    }
    fputs(weights->count > SHOWN ? ", ...\n" : "\n", file);
}
