/*
 * Fingerprints of samples: whether a run is resumed with the data that it began with. All samples count as far as they are not very
 * many; of more, as many as take a second to look at, spread evenly.
 */
#include "data/internal.h"

#include <string.h>

#define MOST_VALUES ((int64_t)1 << 24)
#define MOST_SAMPLES ((int64_t)1 << 16)
#define MOST_POSITIONS ((int64_t)1 << 12)

typedef struct looking {
    const bw_dataset *dataset;
    int field, epoch;
    int64_t each; /* values of a sample */
    float *values;
    uint64_t sum;
} looking;

/* Sums are commutative, so that the same samples in another order are the same data. */
static bw_status look_at(looking *l, int64_t position)
{
    char error[BWI_GATHER_ERROR] = "";
    int64_t number = bwi_dataset_number(l->dataset, 0, position);
    bwi_destination place = bwi_host_destination(l->values, BW_F32, l->each);
    bwi_demand demand = {.field = l->field, .epoch = l->epoch, .numbers = &number, .n = 1, .to = &place, .error = error};
    bw_status status = bwi_content_gather(l->dataset, &demand);
    if (status != BW_OK) {
        return bwi_fail(l->dataset->owned.ctx, status, "%s", error[0] ? error : "the values cannot be read");
    }
    uint64_t key = bwi_hash((uint64_t)l->field, &number, sizeof number);
    l->sum += bwi_hash(key, l->values, (size_t)l->each * sizeof *l->values);
    return bwi_cancelled(l->dataset->owned.ctx) ? bwi_cancel_report(l->dataset->owned.ctx) : BW_OK;
}

/* Looks at `most` samples, or fewer if they are large, but at 64 in any case. */
static bw_status look_at_field(looking *l, int64_t most)
{
    const bwi_field *field = bwi_dataset_field(l->dataset, l->field);
    bw_context *ctx = l->dataset->owned.ctx;
    size_t each = 1;
    for (int i = 0; i < field->ndim; i++) {
        each = bwi_size_multiply(each, (size_t)field->shape[i]);
    }
    l->each = (int64_t)each;
    l->values = bwi_allocate(ctx, each, sizeof *l->values);
    if (!l->values) {
        return BW_RESOURCE_EXHAUSTED;
    }
    int64_t count = l->dataset->count, fit = each > 0 ? MOST_VALUES / l->each : MOST_VALUES;
    most = most < fit ? most : fit;
    most = most < 64 ? 64 : most;
    int64_t looked = count < most ? count : most;
    bw_status status = BW_OK;
    for (int64_t i = 0; i < looked && status == BW_OK; i++) {
        status = look_at(l, looked == count ? i : i * (count / looked));
    }
    bwi_release(ctx, l->values);
    return status;
}

bw_status bwi_dataset_fingerprint(const bw_dataset *dataset, bwi_fingerprint *print)
{
    bw_status status = bwi_dataset_begin_below(dataset);
    *print = (bwi_fingerprint){0};
    for (int f = 0; f < bwi_dataset_fields(dataset) && status == BW_OK; f++) {
        const bwi_field *field = bwi_dataset_field(dataset, f);
        looking unaugmented = {.dataset = dataset, .field = f, .epoch = BWI_EPOCH_NONE}, trained = {.dataset = dataset, .field = f};
        status = look_at_field(&unaugmented, MOST_SAMPLES);
        status = status == BW_OK ? look_at_field(&trained, 0) : status;
        print->values = bwi_hash(print->values, &unaugmented.sum, sizeof unaugmented.sum);
        print->values = bwi_hash(print->values, field->name, strlen(field->name));
        print->augmented = bwi_hash(print->augmented, &trained.sum, sizeof trained.sum);
    }
    int64_t count = dataset->count < MOST_POSITIONS ? dataset->count : MOST_POSITIONS;
    for (int epoch = 0; epoch < 2; epoch++) {
        for (int64_t i = 0; i < count; i++) {
            int64_t number = bwi_dataset_number(dataset, epoch, i);
            print->order = bwi_hash(print->order, &number, sizeof number);
        }
    }
    return status;
}
