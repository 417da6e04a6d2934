/* One-hot targets: class k becomes a row of zeros with a 1 at k. */
#include "data/transform/transform.h"

#define RUN 64

typedef struct onehot {
    int64_t classes;
} onehot;

/* Classes are gathered into host memory, where they are checked; then the kernel writes their rows. */
static bw_status gather(const bw_dataset *dataset, const bwi_demand *demand)
{
    const onehot *state = dataset->state;
    bwi_destination to = *demand->to;
    if (dataset->columns[demand->field].field.role != BWI_ROLE_TARGET) {
        return bwi_content_gather(dataset->upstream, demand);
    }
    if (to.c * to.h * to.w != state->classes) {
        return BW_INVALID_ARGUMENT;
    }
    for (int64_t i = 0; i < demand->n; i += RUN) {
        int32_t classes[RUN];
        bwi_destination host = bwi_host_destination(classes, BW_I32, 1);
        bwi_demand below = *demand;
        below.numbers = demand->numbers + i;
        below.n = demand->n - i < RUN ? demand->n - i : RUN;
        below.to = &host;
        bw_status status = bwi_content_gather(dataset->upstream, &below);
        if (status != BW_OK) {
            return status;
        }
        for (int64_t k = 0; k < below.n; k++) {
            if (classes[k] < 0 || classes[k] >= state->classes) {
                return bwi_sample_error(dataset, below.numbers[k], demand->error, BW_INVALID_ARGUMENT,
                                        "class %d is outside 0..%lld", classes[k], (long long)state->classes - 1);
            }
        }
        to.kernels->one_hot(classes, below.n, &to);
        bwi_destination_advance(&to, below.n);
    }
    return BW_OK;
}

static const bwi_dataset_kind kind = {
    .name = "one_hot", .texts = true, .gather = gather, .keeps = BWI_KEEPS_CLASSES, .stream = {.follows = true}};

int64_t bwi_onehot_classes(const bw_dataset *dataset)
{
    return ((const onehot *)dataset->state)->classes;
}

/* Only targets change; each must be a single class. */
static bw_status declare(bw_dataset *made, int64_t classes)
{
    const bw_dataset *below = made->upstream;
    bw_status status = BW_OK;
    int targets = 0;
    for (int f = 0; f < bwi_dataset_fields(below) && status == BW_OK; f++) {
        bwi_field field = *bwi_dataset_field(below, f);
        field.dtype = bwi_work_dtype(below, f);
        if (field.role == BWI_ROLE_TARGET) {
            targets++;
            if (below->content->columns[f].rows.values != 1) {
                return bwi_fail(made->owned.ctx, BW_INVALID_ARGUMENT,
                                "one_hot: targets are lists of %lld values, expected one class",
                                (long long)below->content->columns[f].rows.values);
            }
            field.dtype = BW_F32;
            field.ndim = 1;
            field.shape[0] = classes;
        }
        status = bwi_dataset_declare(made, &field, "one_hot");
    }
    if (status == BW_OK && targets == 0) {
        return bwi_fail(made->owned.ctx, BW_INVALID_ARGUMENT, "one_hot: the samples have no targets");
    }
    return status;
}

bw_dataset *bw_one_hot(bw_dataset *dataset, int64_t classes)
{
    if (!dataset) {
        return NULL;
    }
    bw_context *ctx = dataset->owned.ctx;
    bw_status status = BW_OK;
    if (classes == 0) {
        classes = bwi_dataset_facts(dataset)->classes;
    }
    if (classes < 1) {
        status = bwi_fail(ctx, BW_INVALID_ARGUMENT, "one_hot(%lld): how many classes there are is not known from the data",
                          (long long)classes);
    }
    bw_dataset *made = status == BW_OK ? bwi_dataset_over(dataset, &kind, bwi_dataset_fields(dataset), sizeof(onehot)) : NULL;
    if (made) {
        ((onehot *)made->state)->classes = classes;
        status = declare(made, classes);
    }
    if (made && status == BW_OK) {
        return bwi_dataset_take(dataset, made);
    }
    bw_dataset_free(made);
    bw_dataset_free(dataset);
    return bwi_pass_on(ctx);
}
