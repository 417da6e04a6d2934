/* Checks of the batch: its remainder, and what BatchNormalization makes of a small one. */
#include "insight/doctor/doctor.h"

static bool has_batchnorm(const bw_model *model)
{
    return bwi_model_find(model, (const bwi_op *const[]){&bwi_op_batchnorm}, 1);
}

/* Looks for the nearest batch that leaves nothing, or at least half of a batch. */
static int64_t better_batch(int64_t samples, int64_t batch)
{
    for (int64_t away = 1; away < batch / 2; away++) {
        for (int side = 0; side < 2; side++) {
            int64_t other = side ? batch - away : batch + away, rest = samples % other;
            if (rest == 0 || 2 * rest >= other) {
                return other;
            }
        }
    }
    return batch;
}

bool bwi_check_tiny_last_batch(const bwi_doctor *d, bwi_finding *found)
{
    enum { TINY = 16 };
    if (d->last_batch == 0 || d->last_batch > d->batch / TINY || d->updates_per_epoch < 2) {
        return false;
    }
    bool few = d->updates_per_epoch < 20 || has_batchnorm(d->model); /* otherwise it is one update of many */
    bwi_fix(found, "fitting.drop_remainder = true;", "--drop-remainder, or --batch %lld",
            (long long)better_batch(d->data.samples, d->batch));
    return bwi_found(
        found, few ? BW_SEVERITY_WARNING : BW_SEVERITY_NOTE,
        "the last of %lld batches of an epoch has %lld sample%s, the others %lld, so each of these weighs %.0f times as much",
        (long long)d->updates_per_epoch, (long long)d->last_batch, d->last_batch == 1 ? "" : "s", (long long)d->batch,
        (double)d->batch / (double)d->last_batch);
}

/* What counts is the number of values that a mean is made of: samples, times places of an image. */
bool bwi_check_batchnorm_small_batch(const bwi_doctor *d, bwi_finding *found)
{
    enum { FEW_SAMPLES = 8, FEW_VALUES = 16 };
    for (int n = 0; n < d->model->graph.count; n++) {
        const bw_node *node = d->model->graph.nodes[n];
        if (node->op != &bwi_op_batchnorm || d->batch == 0) {
            continue;
        }
        int64_t channels = node->shape.ndim > 0 ? node->shape.extent[node->shape.ndim - 1] : 1;
        int64_t values = d->batch * (bwi_shape_count(&node->shape) / (channels > 0 ? channels : 1));
        if (d->batch >= FEW_SAMPLES && values >= FEW_VALUES) {
            continue;
        }
        int64_t batches = (32 + d->batch - 1) / d->batch;
        bwi_fix(found, "fitting.accumulate = 8; /* the batches of an update are normalised together */",
                "--batch 32, or --accumulate %lld, whose batches are normalised together, or layernorm in place of batchnorm",
                (long long)batches);
        bwi_print(found->code, sizeof found->code,
                  "fitting.accumulate = %lld; /* the batches of an update are normalised together */", (long long)batches);
        return bwi_found(found, BW_SEVERITY_WARNING, "layer %s normalises over updates of %lld sample%s, that is %lld values",
                         node->name, (long long)d->batch, d->batch == 1 ? "" : "s", (long long)values);
    }
    return false;
}
