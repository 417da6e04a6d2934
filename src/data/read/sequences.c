/* Sequences of varying length that lie one after another in one array. As samples they have the length of the longest one, padded
 * with zeros; when they are gathered at a shorter length (bucket.c), the zeros beyond it are never written. */
#include "data/read/read.h"

typedef struct sequences {
    const int64_t *offsets; /* [samples + 1]: where each begins, in steps */
    int64_t width;          /* values of a step */
} sequences;

static bw_status gather_sequences(const bw_dataset *dataset, const bwi_demand *demand)
{
    const sequences *state = dataset->state;
    bwi_host_rows one = dataset->columns[demand->field].rows;
    const unsigned char *begin = one.data;
    bwi_destination to = *demand->to;
    to.sequence = true;
    for (int64_t i = 0; i < demand->n; i++) {
        int64_t number = demand->numbers[i];
        one.data = begin + state->offsets[number] * state->width * one.stride[0];
        one.values = one.extent[0] = (state->offsets[number + 1] - state->offsets[number]) * state->width;
        int64_t result = to.kernels->rows(&one, &(int64_t){0}, 1, &to);
        if (result != BWI_GATHERED) {
            return result < 0 ? BW_INVALID_ARGUMENT : bwi_gather_fail(dataset, demand->field, number, &to, demand->error);
        }
        bwi_destination_advance(&to, 1);
    }
    return BW_OK;
}

static bw_status gather(const bw_dataset *dataset, const bwi_demand *demand)
{
    return demand->field == 0 ? gather_sequences(dataset, demand) : bwi_kind_arrays.gather(dataset, demand);
}

static const bwi_dataset_kind kind = {.name = "sequences", .gather = gather};

static bw_status check(bw_context *ctx, const bw_array *values, const int64_t *offsets, int64_t samples, int64_t *longest)
{
    if (!values || !offsets || samples < 1 || values->ndim < 1 || values->ndim >= BW_MAX_NDIM || values->shape[0] < 1) {
        return bwi_fail(ctx, BW_INVALID_ARGUMENT, "sequences: expected steps, where each sequence begins, and at least 1 of them");
    }
    for (int64_t i = 0; i <= samples; i++) {
        int64_t before = i ? offsets[i - 1] : 0;
        if (offsets[i] < before || offsets[i] > values->shape[0]) {
            return bwi_fail(ctx, BW_INVALID_ARGUMENT, "sequences: offset %lld is %lld; expected %lld to the %lld steps there are",
                            (long long)i, (long long)offsets[i], (long long)before, (long long)values->shape[0]);
        }
        *longest = i && offsets[i] - before > *longest ? offsets[i] - before : *longest;
    }
    return *longest > 0 ? BW_OK : bwi_fail(ctx, BW_INVALID_ARGUMENT, "sequences: all of them are empty");
}

/* Declares samples of the longest sequence's length, whose data are the steps of all sequences. */
static bw_status add_steps(bw_dataset *root, const bw_array *values, const int64_t *offsets, int64_t longest)
{
    sequences *state = root->state;
    bwi_field field = {.role = BWI_ROLE_INPUT, .dtype = values->dtype, .ndim = values->ndim, .shape = {longest}};
    state->width = 1;
    state->offsets = offsets;
    int64_t stride = (int64_t)bwi_dtype_size(values->dtype);
    for (int k = values->ndim - 1; k >= 0; k--) {
        if (values->strides[k] != 0 && values->strides[k] != stride) {
            return bwi_fail(root->owned.ctx, BW_INVALID_ARGUMENT, "sequences: expected steps without gaps between them");
        }
        if (k > 0 && (values->shape[k] < 1 || __builtin_mul_overflow(state->width, values->shape[k], &state->width))) {
            return bwi_fail(root->owned.ctx, BW_INVALID_ARGUMENT, "sequences: extent %d of the steps is %lld", k,
                            (long long)values->shape[k]);
        }
        field.shape[k] = k > 0 ? values->shape[k] : longest;
        stride = (int64_t)bwi_dtype_size(values->dtype) * state->width;
    }
    bw_status status = bwi_dataset_declare(root, &field, "sequences");
    root->columns[0].rows.data = values->data;
    return status;
}

bw_dataset *bw_from_sequences(bw_context *ctx, const bw_array *values, const int64_t *offsets, int64_t count, const bw_array *y,
                              const bw_array *w)
{
    int64_t longest = 0;
    if (!ctx) {
        return NULL;
    }
    bw_status status = check(ctx, values, offsets, count, &longest);
    bw_dataset *root = status == BW_OK ? bwi_dataset_root(ctx, &kind, 3, sizeof(sequences)) : NULL;
    if (!root) {
        return bwi_pass_on(ctx);
    }
    root->numbers = count;
    status = add_steps(root, values, offsets, longest);
    if (status == BW_OK && y) {
        status = bwi_dataset_add(root, BWI_ROLE_TARGET, "", y, "y");
    }
    if (status == BW_OK && w) {
        status = bwi_dataset_add(root, BWI_ROLE_WEIGHT, "", w, "w");
    }
    if (status == BW_OK) {
        status = bwi_dataset_settle(root, "");
    }
    if (status == BW_OK) {
        return root;
    }
    bw_dataset_free(root);
    return bwi_pass_on(ctx);
}
