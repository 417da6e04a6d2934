/*
 * Writes evaluation.json of a run directory: how the trained model does on the validation samples. There is the confusion matrix of
 * a classifier, and the samples that it is most wrong about, with small pictures where the inputs are images. All of it is bounded:
 * a page is made from it.
 */
#include "cli/report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { WORST = 24, MOST_SIDE = 48, MOST_CLASSES = 40, MOST_PAIRS = 20 };

typedef struct wrong {
    int64_t sample;
    double error;        /* of a classifier: the loss -ln p of the true class; otherwise the mean squared error */
    double truth, guess; /* classes, or the first value of each */
    double probability;  /* of the true class */
} wrong;

typedef struct evaluation {
    const cli_result *result;
    bw_dataset *dataset;
    cli_predictions predictions;
    cli_confusion confusion;
    int classes;  /* 0: the output is numbers */
    int64_t each; /* targets of one sample */
    wrong worst[WORST];
    int count;
} evaluation;

/* ---- The worst samples ----------------------------------------------------------------------------------- */

/* Keeps a sample if it is among the worst so far, which are sorted from the worst on. Equal ones stay in the order of the data. */
static void keep(evaluation *e, wrong w)
{
    int at = e->count;
    while (at > 0 && e->worst[at - 1].error < w.error) {
        at--;
    }
    if (at == WORST) {
        return;
    }
    e->count += e->count < WORST;
    memmove(&e->worst[at + 1], &e->worst[at], (size_t)(e->count - 1 - at) * sizeof w);
    e->worst[at] = w;
}

static wrong judge_class(const evaluation *e, int64_t sample, const float *targets)
{
    const float *row = e->predictions.values + sample * e->predictions.each;
    int truth = cli_class_of_target(targets, e->each, e->classes);
    double p = truth < 0                 ? (double)NAN
               : e->predictions.each > 1 ? (double)row[truth]
               : truth == 1              ? (double)row[0]
                                         : 1 - (double)row[0];
    return (wrong){.sample = sample,
                   .error = -log(fmax(p, 1e-12)),
                   .truth = truth,
                   .guess = cli_predictions_class(&e->predictions, sample),
                   .probability = p};
}

static wrong judge_numbers(const evaluation *e, int64_t sample, const float *targets)
{
    const float *row = e->predictions.values + sample * e->predictions.each;
    double sum = 0;
    for (int64_t k = 0; k < e->each; k++) {
        sum += ((double)row[k] - (double)targets[k]) * ((double)row[k] - (double)targets[k]);
    }
    return (wrong){.sample = sample, .error = sum / (double)e->each, .truth = (double)targets[0], .guess = (double)row[0]};
}

/* Goes over all samples. Returns false if the targets cannot be read or compared with the output. */
static bool find_worst(evaluation *e)
{
    enum { AT_ONCE = 1024 };
    float *targets = malloc(AT_ONCE * (size_t)e->each * sizeof *targets);
    bool read = targets;
    for (int64_t first = 0; read && first < e->predictions.samples; first += AT_ONCE) {
        int64_t n = e->predictions.samples - first < AT_ONCE ? e->predictions.samples - first : AT_ONCE;
        read = bw_dataset_values(e->dataset, "y", first, n, targets, (size_t)(n * e->each)) == BW_OK;
        for (int64_t i = 0; read && i < n; i++) {
            wrong w = (e->classes > 0 ? judge_class : judge_numbers)(e, first + i, targets + i * e->each);
            if (!isnan(w.error) && w.truth >= (e->classes > 0 ? 0 : -HUGE_VAL)) {
                keep(e, w);
            }
        }
    }
    free(targets);
    return read;
}

/* ---- Pictures -------------------------------------------------------------------------------------------- */

typedef struct picture {
    int64_t height, width, channels; /* of the samples; height 0: they are no images */
    int64_t factor;                  /* by which a picture is reduced */
    float *values;                   /* of one sample; NULL: there are no pictures */
    double low, high;                /* of all of them */
} picture;

/* Images have one, three or four channels; without channels, both sides are at least 8, to tell them from short sequences. */
static void find_shape(picture *p, const bw_dataset *dataset)
{
    int64_t shape[BW_MAX_NDIM];
    int ndim = bw_dataset_field(dataset, "x", shape);
    bool colours = ndim == 3 && (shape[2] == 1 || shape[2] == 3 || shape[2] == 4);
    *p = (picture){.low = 0, .high = -HUGE_VAL};
    if (colours || (ndim == 2 && shape[0] >= 8 && shape[1] >= 8)) {
        int64_t longer = shape[0] > shape[1] ? shape[0] : shape[1];
        p->height = shape[0];
        p->width = shape[1];
        p->channels = colours ? shape[2] : 1;
        p->factor = (longer + MOST_SIDE - 1) / MOST_SIDE;
    }
}

static bool read_picture(const picture *p, const evaluation *e, int k)
{
    size_t each = (size_t)(p->height * p->width * p->channels);
    return bw_dataset_values(e->dataset, "x", e->worst[k].sample, 1, p->values, each) == BW_OK;
}

/* All pictures share one range, so that a dark one looks dark; it needs one pass over them before they are drawn. */
static void find_range(picture *p, const evaluation *e)
{
    enum { MOST_VALUES = 1 << 24 };
    int64_t each = p->height * p->width * p->channels;
    p->values = each > 0 && each <= MOST_VALUES ? malloc((size_t)each * sizeof *p->values) : NULL;
    for (int k = 0; p->values && k < e->count; k++) {
        if (!read_picture(p, e, k)) {
            free(p->values);
            p->values = NULL;
        }
        for (int64_t i = 0; p->values && i < each; i++) {
            p->low = fmin(p->low, (double)p->values[i]);
            p->high = fmax(p->high, (double)p->values[i]);
        }
    }
}

/* Returns the mean of a square of values, as a byte. */
static unsigned char pixel(const picture *p, int64_t y, int64_t x, int64_t channel)
{
    double sum = 0;
    int64_t n = 0;
    for (int64_t i = y * p->factor; i < (y + 1) * p->factor && i < p->height; i++) {
        for (int64_t j = x * p->factor; j < (x + 1) * p->factor && j < p->width; j++, n++) {
            sum += (double)p->values[(i * p->width + j) * p->channels + channel];
        }
    }
    double share = p->high > p->low ? (sum / (double)n - p->low) / (p->high - p->low) : 0;
    return (unsigned char)lrint(255 * fmin(fmax(isnan(share) ? 0 : share, 0), 1));
}

static void encode(char *text, const unsigned char *bytes, size_t count)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t k = 0; k < count; k += 3) {
        unsigned value =
            (unsigned)bytes[k] << 16 | (k + 1 < count ? (unsigned)bytes[k + 1] << 8 : 0) | (k + 2 < count ? bytes[k + 2] : 0U);
        *text++ = digits[value >> 18 & 63];
        *text++ = digits[value >> 12 & 63];
        *text++ = k + 1 < count ? digits[value >> 6 & 63] : '=';
        *text++ = k + 2 < count ? digits[value & 63] : '=';
    }
    *text = 0;
}

static void put_picture(cli_json *json, const picture *p)
{
    unsigned char bytes[MOST_SIDE * MOST_SIDE * 4];
    char text[(sizeof bytes + 2) / 3 * 4 + 1];
    int64_t height = (p->height + p->factor - 1) / p->factor, width = (p->width + p->factor - 1) / p->factor;
    size_t count = 0;
    for (int64_t y = 0; y < height; y++) {
        for (int64_t x = 0; x < width; x++) {
            for (int64_t c = 0; c < p->channels; c++) {
                bytes[count++] = pixel(p, y, x, c);
            }
        }
    }
    encode(text, bytes, count);
    cli_json_object(json, "image");
    cli_json_whole(json, "width", width);
    cli_json_whole(json, "height", height);
    cli_json_whole(json, "channels", p->channels);
    cli_json_text(json, "bytes", text);
    cli_json_object_end(json);
}

/* ---- JSON ------------------------------------------------------------------------------------------------ */

static void put_class(cli_json *json, const evaluation *e, const char *key, int number)
{
    char text[CLI_CLASS_TEXT];
    cli_json_text(json, key, cli_class_name(text, e->result->model, e->dataset, number));
}

static void put_sample(cli_json *json, const evaluation *e, const wrong *w)
{
    char file[512];
    cli_json_whole(json, "sample", w->sample);
    if (bw_dataset_file(e->dataset, w->sample, file, sizeof file)) {
        cli_json_text(json, "file", file);
    }
    if (e->classes > 0) {
        put_class(json, e, "true_class", (int)w->truth);
        put_class(json, e, "predicted_class", (int)w->guess);
        cli_json_rounded(json, "probability", w->probability);
        cli_json_rounded(json, "loss", w->error);
    } else {
        cli_json_rounded(json, "true", w->truth);
        cli_json_rounded(json, "predicted", w->guess);
        cli_json_rounded(json, "error", w->error);
    }
}

static void put_worst(cli_json *json, const evaluation *e)
{
    picture p;
    find_shape(&p, e->dataset);
    find_range(&p, e);
    cli_json_array(json, "worst");
    for (int k = 0; k < e->count; k++) {
        cli_json_object(json, NULL);
        put_sample(json, e, &e->worst[k]);
        if (p.values && read_picture(&p, e, k)) {
            put_picture(json, &p);
        }
        cli_json_object_end(json);
    }
    cli_json_array_end(json);
    free(p.values);
}

/* Of many classes only the most frequent confusions are written, largest first. */
static void put_pairs(cli_json *json, const evaluation *e)
{
    int64_t last = INT64_MAX;
    int written = 0;
    cli_json_array(json, "confusions");
    while (last > 0 && written < MOST_PAIRS) {
        int64_t below = 0;
        for (int k = 0; k < e->classes * e->classes; k++) {
            int64_t count = k / e->classes == k % e->classes ? 0 : e->confusion.counts[k];
            below = count < last && count > below ? count : below;
            if (count == last && written < MOST_PAIRS) {
                written++;
                cli_json_object(json, NULL);
                put_class(json, e, "true_class", k / e->classes);
                put_class(json, e, "predicted_class", k % e->classes);
                cli_json_whole(json, "samples", count);
                cli_json_object_end(json);
            }
        }
        last = below;
    }
    cli_json_array_end(json);
}

static void put_evaluation(cli_json *json, const evaluation *e)
{
    cli_json_object(json, NULL);
    cli_json_whole(json, "samples", e->predictions.samples);
    if (e->confusion.counts && e->classes <= MOST_CLASSES) {
        cli_confusion_json(json, &e->confusion);
    } else if (e->confusion.counts) {
        put_pairs(json, e);
    }
    put_worst(json, e);
    cli_json_object_end(json);
}

/* ---- The file -------------------------------------------------------------------------------------------- */

static bool write_file(const evaluation *e, const char *path)
{
    cli_output output;
    if (!cli_output_open(&output, path)) {
        return false;
    }
    cli_json json = {.file = output.file};
    put_evaluation(&json, e);
    fputc('\n', output.file);
    return cli_output_commit(&output);
}

/* Predicts the samples and compares them with their targets. A model with several outputs, and targets that are not the output's,
 * have no evaluation; neither is a failure of the run. */
static bool evaluate(evaluation *e, const char *path)
{
    int64_t shape[BW_MAX_NDIM];
    int ndim = bw_dataset_field(e->dataset, "y", shape);
    if (bw_output_count(e->result->model) != 1 || ndim < 0) {
        return true;
    }
    e->each = 1;
    for (int i = 0; i < ndim; i++) {
        e->each *= shape[i];
    }
    if (cli_predictions_make(&e->predictions, 1, e->result->ctx, e->result->model, e->dataset) < 0) {
        return false;
    }
    e->classes = cli_predictions_classes(&e->predictions);
    bool fits = e->classes > 0 ? cli_confusion_count(&e->confusion, e->dataset, &e->predictions)
                               : e->predictions.facts.kind == BW_OUTPUT_NUMBERS && e->each == e->predictions.each;
    cli_predictions_normalise(&e->predictions);
    bool written = !fits || !find_worst(e) || write_file(e, path);
    cli_confusion_free(&e->confusion);
    cli_predictions_free(&e->predictions, 1);
    return written;
}

bool cli_evaluation_write(const cli_result *result, const char *path)
{
    evaluation e = {.result = result, .dataset = result->validation};
    bw_dataset *training = NULL, *validation = NULL;
    bool ended = !result->stopped || strcmp(result->stopped, "early stopping") == 0;
    if (ended && !e.dataset && result->validation_split > 0 &&
        bw_split(result->training, result->validation_split, &training, &validation) == BW_OK) {
        e.dataset = validation;
    }
    bool written = !ended || !e.dataset || evaluate(&e, path);
    bw_dataset_free(training);
    bw_dataset_free(validation);
    return written;
}
