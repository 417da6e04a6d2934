/* One-hot targets: class k becomes a row of zeros with a 1 at k. */
#include "data/internal.h"

#define RUN 64

typedef struct onehot {
    int64_t classes;
} onehot;

static bw_status gather(const bw_dataset *dataset, const bwi_demand *demand)
{
    const onehot *own = dataset->own;
    int64_t values = bwi_destination_values(demand->to);
    if (dataset->columns[demand->field].field.role != BWI_ROLE_TARGET) {
        return bwi_content_gather(dataset->upstream, demand);
    }
    if (demand->to->c * demand->to->h * demand->to->w != own->classes) {
        return BW_INVALID_ARGUMENT;
    }
    for (int64_t i = 0; i < demand->n; i += RUN) {
        int32_t label[RUN];
        bwi_destination to = {.data = label, .dtype = BW_I32, .h = 1, .w = 1, .c = 1, .block = 1};
        bwi_demand below = *demand;
        below.numbers = demand->numbers + i;
        below.n = demand->n - i < RUN ? demand->n - i : RUN;
        below.to = &to;
        bw_status status = bwi_content_gather(dataset->upstream, &below);
        if (status != BW_OK) {
            return status;
        }
        for (int64_t k = 0; k < below.n; k++) {
            unsigned char *row = (unsigned char *)demand->to->data + (i + k) * values * 4;
            if (label[k] < 0 || label[k] >= own->classes) {
                return bwi_sample_error(dataset, below.numbers[k], demand->error, BW_INVALID_ARGUMENT,
                                        "class %d is outside 0..%lld", label[k], (long long)own->classes - 1);
            }
            for (int64_t v = 0; v < values; v++) {
                ((float *)(void *)row)[v] = 0; /* an int32 zero too */
            }
            int64_t at = bwi_destination_place(demand->to, label[k]);
            if (demand->to->dtype == BW_F32) {
                ((float *)(void *)row)[at] = 1;
            } else {
                ((int32_t *)(void *)row)[at] = 1;
            }
        }
    }
    return BW_OK;
}

static const bwi_dataset_kind source = {.kind = "one_hot", .gather = gather, .keeps = BWI_KEEPS_CLASSES, .streams = true};

int64_t bwi_onehot_classes(const bw_dataset *dataset)
{
    return ((const onehot *)dataset->own)->classes;
}

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
            if (below->content->columns[f].values != 1) {
                return bwi_fail(made->owned.ctx, BW_INVALID_ARGUMENT,
                                "one_hot: targets are lists of %lld values, expected one class",
                                (long long)below->content->columns[f].values);
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
    bw_dataset *made = status == BW_OK ? bwi_dataset_over(dataset, &source, bwi_dataset_fields(dataset), sizeof(onehot)) : NULL;
    if (made) {
        ((onehot *)made->own)->classes = classes;
        status = declare(made, classes);
    }
    if (made && status == BW_OK) {
        return bwi_dataset_take(dataset, made);
    }
    bw_dataset_free(made);
    bw_dataset_free(dataset);
    return bwi_pass_on(ctx);
}
