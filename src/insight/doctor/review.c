/*
 * bw_review: what a training showed by itself. It costs next to nothing beside the training: a few hundred samples are read, and
 * only if nothing has to be made or fetched for them; the model predicts only if its loss went nowhere.
 */
#include "insight/doctor/doctor.h"

#include <math.h>
#include <string.h>

enum { SAMPLES = 256, PREDICTED = 32 };

/* Whether samples have to be made or fetched, which takes time. */
static bool is_slow(const bw_dataset *dataset)
{
    bwi_gather_schedule schedule = {.count = 1, .tile = 1, .lanes = 1, .workers = 1};
    return bwi_dataset_live(dataset) || bwi_dataset_bytes(dataset, &schedule) > 0;
}

/* Whether the loss fell by less than a tenth in two or more epochs, or is about that of a guess among the classes. */
static bool went_nowhere(const bwi_doctor *d)
{
    int epochs = bw_history_epochs(d->history);
    double first = epochs > 1 ? bw_history_value(d->history, "loss", 0) : 0, last = bw_history_last(d->history, "loss");
    const bwi_shape *shape = &d->model->outputs[0]->shape;
    double classes = shape->ndim > 0 ? (double)shape->extent[shape->ndim - 1] : 1;
    bool guess = bwi_model_ending(d->model, 0) == BWI_ENDS_SOFTMAX && last > 0.95 * log(classes);
    return guess || (epochs > 1 && !(last < first - 0.1 * fabs(first)));
}

/* Compares the outputs of all samples with those of the first. */
static void compare_outputs(bwi_doctor *d, const float *predictions, int64_t samples, int64_t each)
{
    bool same = true;
    for (int64_t i = each; i < samples * each && same; i++) {
        float first = predictions[i % each];
        same = fabsf(predictions[i] - first) <= 1e-6F * fmaxf(1, fabsf(first));
    }
    d->constant_output = same;
    d->looked_at = samples;
}

/* bw_predict takes a whole dataset, so the first samples are split off. */
static bw_status look_at_outputs(bwi_doctor *d)
{
    int64_t count = bw_dataset_count(d->training), each = bwi_shape_count(&d->model->outputs[0]->shape);
    bw_dataset *some = NULL, *others = NULL;
    if (count <= PREDICTED || each > 4096) {
        return BW_OK;
    }
    bw_status status = bwi_dataset_split(d->training, 1 - (PREDICTED + 0.5) / (double)count, &some, &others);
    int64_t samples = status == BW_OK ? bw_dataset_count(some) : 0;
    float *predictions = status == BW_OK ? bwi_allocate(d->ctx, (size_t)(samples * each), sizeof *predictions) : NULL;
    if (status == BW_OK && !predictions) {
        status = BW_RESOURCE_EXHAUSTED;
    }
    if (status == BW_OK) {
        status = bw_predict(d->model, some, predictions, (size_t)(samples * each));
    }
    if (status == BW_OK && samples > 1) {
        compare_outputs(d, predictions, samples, each);
    }
    bwi_release(d->ctx, predictions);
    bw_dataset_free(some);
    bw_dataset_free(others);
    return status;
}

/* Fewer large samples, so that looking at them takes no time. */
static int64_t samples_of(const bw_dataset *dataset)
{
    enum { VALUES = 1 << 16 };
    int64_t shape[BW_MAX_NDIM], each = 1;
    int ndim = bw_dataset_shape(dataset, shape);
    for (int i = 0; i < ndim; i++) {
        each *= shape[i];
    }
    return each > VALUES ? 1 : VALUES / (each > 0 ? each : 1) < SAMPLES ? VALUES / (each > 0 ? each : 1) : SAMPLES;
}

static bw_status look(bwi_doctor *d)
{
    bw_status status = BW_OK;
    bwi_batching how = {.sizes = d->options.batch_sizes, .batch = d->options.batch, .accumulate = d->options.accumulate};
    bw_dataset *windows = NULL;
    if (is_slow(d->training) || !bwi_model_built(d->model)) {
        return BW_OK;
    }
    status = bwi_dataset_windows(d->training, &how, &windows);
    d->batch = status == BW_OK ? bwi_dataset_largest_batch(windows) : 0;
    bw_dataset_free(windows);
    if (status == BW_OK) {
        status = bwi_doctor_read(d, samples_of(d->training));
    }
    return status == BW_OK && d->model->output_count == 1 && went_nowhere(d) ? look_at_outputs(d) : status;
}

static bw_status review(bw_model *model, bw_dataset *dataset, const bw_fit_options *training, const bw_history *history,
                        bw_findings **findings)
{
    bwi_doctor d = {.ctx = model->ctx, .model = model, .history = history};
    bw_dataset *split[4] = {NULL, NULL, NULL, NULL};
    if (!dataset || !history || !findings) {
        return bwi_fail(d.ctx, BW_INVALID_ARGUMENT, "review: there is no %s",
                        !dataset   ? "dataset"
                        : !history ? "history"
                                   : "place for the findings");
    }
    *findings = NULL;
    bw_status status = bwi_doctor_open(&d, dataset, training, split);
    if (status == BW_OK) {
        status = look(&d);
    }
    *findings = status == BW_OK ? bwi_doctor_check(&d, true) : NULL;
    if (status == BW_OK && !*findings) {
        status = bwi_pending(d.ctx);
    }
    bwi_doctor_close(&d, split);
    return status;
}

bw_status bw_review(bw_model *model, bw_dataset *dataset, const bw_fit_options *training, const bw_history *history,
                    bw_findings **findings)
{
    bw_status status = model ? bwi_call_begin(model->ctx) : BW_INVALID_ARGUMENT;
    return status == BW_OK ? bwi_call_end(model->ctx, review(model, dataset, training, history, findings)) : status;
}
