/*
 * A learning rate and the averages of an optimizer for another batch size. SGD's rate follows the noise, lr(B) = lr_max / (1 + S /
 * B), which is linear far below the noise scale S; an optimizer that divides by the size of its gradients has a rate that grows
 * with the root of the batch. An average of sizes, or of weights, must reach back over the same number of samples, so beta' =
 * beta^(B' / B). An average of directions (beta_1, momentum) stays as it is: with fewer steps in it, larger batches needed up to
 * twice the steps (bench/RESULTS.md).
 */
#include "insight/tune/tune.h"

#include <math.h>
#include <string.h>

/* The arguments that are averages of sizes or of weights, by Keras's names. */
static const char *const averages[] = {"beta_2", "rho", "ema_momentum"};

bool bwi_rescale_by_root(const bwi_optimizer *o)
{
    return strcmp(o->row->name, "sgd") != 0;
}

static const char *average_name(const bwi_optimizer *o, int argument)
{
    for (size_t k = 0; k < BWI_COUNT(averages); k++) {
        if (strcmp(o->row->arguments[argument].name, averages[k]) == 0) {
            return averages[k];
        }
    }
    return NULL;
}

static double adapted(double average, int64_t reference, int64_t batch)
{
    return pow(average, (double)batch / (double)reference);
}

double bwi_rescale_rate(const bwi_optimizer *o, double rate, int64_t reference, int64_t batch, double scale)
{
    double ratio = (double)batch / (double)reference;
    double factor = bwi_rescale_by_root(o) ? sqrt(ratio) : 1 / bwi_tune_steps(scale, batch, reference);
    return rate * factor;
}

double bwi_rescale_round(double number, int digits)
{
    char text[40];
    double rounded = number;
    int length = bwi_print(text, sizeof text, "%.*g", digits, number);
    return bwi_parse_double(text, text + length, &rounded) ? rounded : number;
}

void bwi_rescale_averages(bwi_optimizer *o, int64_t reference, int64_t batch)
{
    for (int k = 0; k < o->row->argument_count && batch != reference; k++) {
        const bwi_argument *argument = &o->row->arguments[k];
        bwi_argument_value *value = &o->values[k];
        bool used = k < o->row->common || o->averages;
        if (average_name(o, k) && used && value->number > 0) {
            double number = fmin(fmax(adapted(value->number, reference, batch), argument->least), argument->most);
            value->number = bwi_rescale_round(number, 6);
            value->given = true;
        }
    }
    o->average_momentum = (float)o->values[o->row->common + BWI_COMMON_EMA_MOMENTUM].number;
    o->powers.t = 0;
}

void bwi_rescale_write(const bwi_optimizer *o, double rate, char text[BWI_TUNE_TEXT])
{
    int at = bwi_print(text, BWI_TUNE_TEXT, "%s(lr=%.9g", o->row->name, rate);
    for (int k = 1; k < o->row->argument_count && at > 0 && at < BWI_TUNE_TEXT; k++) {
        const bwi_argument *argument = &o->row->arguments[k];
        const bwi_argument_value *value = &o->values[k];
        char *end = text + at;
        size_t left = (size_t)(BWI_TUNE_TEXT - at);
        if (!value->given) {
            continue;
        }
        switch (argument->kind) {
        case BWI_FLOAT:
            at += bwi_print(end, left, ",%s=%.9g", argument->name, value->number);
            break;
        case BWI_INT:
            at += bwi_print(end, left, ",%s=%lld", argument->name, (long long)value->integer);
            break;
        case BWI_BOOL:
            at += bwi_print(end, left, ",%s=%s", argument->name, value->flag ? "true" : "false");
            break;
        default:
            break; /* optimizers have no other arguments */
        }
    }
    if (at > 0 && at < BWI_TUNE_TEXT) {
        bwi_print(text + at, (size_t)(BWI_TUNE_TEXT - at), ")");
    }
}
