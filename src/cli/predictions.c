/* Computes a model's predictions for samples: its outputs as numbers, as probabilities, and as named classes. */
#include "cli/cli.h"

#include <math.h>
#include <stdlib.h>

static int64_t values_of(const bw_output_facts *facts)
{
    int64_t values = 1;
    for (int i = 0; i < facts->ndim; i++) {
        values *= facts->shape[i];
    }
    return values;
}

/* Applies softmax over the last axis, or the sigmoid to each value. */
void cli_predictions_normalise(cli_predictions *made)
{
    int64_t total = made->samples * made->each;
    int64_t last = made->facts.ndim > 0 ? made->facts.shape[made->facts.ndim - 1] : 1;
    if (!made->facts.logits) {
        return;
    }
    made->facts.logits = false;
    if (made->facts.kind == BW_OUTPUT_BINARY) {
        for (int64_t i = 0; i < total; i++) {
            made->values[i] = (float)(1 / (1 + exp(-(double)made->values[i])));
        }
        return;
    }
    for (int64_t first = 0; first < total; first += last) {
        float *row = made->values + first;
        double most = (double)row[0], sum = 0;
        for (int64_t i = 1; i < last; i++) {
            most = fmax(most, (double)row[i]);
        }
        for (int64_t i = 0; i < last; i++) {
            sum += exp((double)row[i] - most);
        }
        for (int64_t i = 0; i < last; i++) {
            row[i] = (float)(exp((double)row[i] - most) / sum);
        }
    }
}

static bool make_room(cli_predictions *made, bw_model *model, int index, bw_dataset *dataset)
{
    size_t count;
    *made = (cli_predictions){.model = model, .dataset = dataset, .samples = bw_dataset_count(dataset)};
    if (bw_output_describe(model, index, &made->facts) != BW_OK) {
        return false;
    }
    made->each = values_of(&made->facts);
    if (__builtin_mul_overflow((size_t)made->samples, (size_t)made->each, &count)) {
        return false;
    }
    made->values = calloc(count, sizeof *made->values);
    return made->values;
}

int cli_predictions_make(cli_predictions *made, int capacity, bw_context *ctx, bw_model *model, bw_dataset *dataset)
{
    enum { MOST = 16 };
    float *values[MOST];
    size_t counts[MOST];
    int outputs = bw_output_count(model);
    if (outputs > capacity || outputs > MOST) {
        cli_fail("the model has %d outputs: expected at most %d", outputs, capacity);
        return -1;
    }
    for (int k = 0; k < outputs; k++) {
        if (!make_room(&made[k], model, k, dataset)) {
            cli_predictions_free(made, k + 1);
            cli_fail("no memory for the predictions of %lld samples", (long long)bw_dataset_count(dataset));
            return -1;
        }
        values[k] = made[k].values;
        counts[k] = (size_t)(made[k].samples * made[k].each);
    }
    if (bw_predict_all(model, dataset, values, counts, outputs) != BW_OK) {
        cli_predictions_free(made, outputs);
        cli_fail("%s", bw_message(ctx));
        return -1;
    }
    return outputs;
}

void cli_predictions_free(cli_predictions *made, int count)
{
    for (int k = 0; k < count; k++) {
        free(made[k].values);
        made[k].values = NULL;
    }
}

int cli_predictions_classes(const cli_predictions *made)
{
    if (made->facts.kind == BW_OUTPUT_CLASSES && made->facts.ndim == 1 && made->each > 1 && made->each < INT32_MAX) {
        return (int)made->each;
    }
    return made->facts.kind == BW_OUTPUT_BINARY && made->each == 1 ? 2 : 0;
}

/* Chooses as Keras's accuracies do: the first of the largest values or, for a single probability, whether it is above one half.
 * The sigmoid of a logit of 0 is one half. */
int cli_predictions_class(const cli_predictions *made, int64_t sample)
{
    const float *row = made->values + sample * made->each;
    if (made->facts.kind == BW_OUTPUT_BINARY) {
        return row[0] > (made->facts.logits ? 0 : 0.5f);
    }
    int64_t best = 0;
    for (int64_t i = 1; i < made->each; i++) {
        best = row[i] > row[best] ? i : best;
    }
    return (int)best;
}

const char *cli_class_name(char *text, const bw_model *model, const bw_dataset *dataset, int number)
{
    const char *name = !model ? NULL : bw_model_class(model, number);
    name = !name ? bw_dataset_class(dataset, number) : name;
    if (!name) {
        snprintf(text, CLI_CLASS_TEXT, "%d", number);
    }
    return !name ? text : name;
}

const char *cli_float_text(char *text, float value)
{
    for (int digits = 1; digits <= 9; digits++) {
        snprintf(text, CLI_REAL_TEXT, "%.*g", digits, (double)value);
        float back = strtof(text, NULL);
        if (back == value) {
            break;
        }
    }
    return text;
}
