/*
 * Buckets of sequences by length: inputs whose first axis is padded with zeros at the end. A sample's bucket is the shortest of
 * the given lengths that holds all of it; it is found once, when the dataset is built, by looking at each sample on all workers.
 * Values and order are those of the dataset below; code that computes with the samples asks for their bucket by number.
 */
#include "data/order/order.h"

#include <string.h>

typedef struct bucket {
    int64_t lengths[BWI_MOST_LENGTHS];
    int count;
    unsigned char *of; /* [number] */
} bucket;

static void close_bucket(bw_dataset *dataset)
{
    bucket *state = dataset->state;
    bwi_release(dataset->owned.ctx, state->of);
}

static const bwi_dataset_kind kind = {.name = "bucket", .close = close_bucket};

/* The search ends at a transformation, because one above the buckets may give samples other lengths. */
static const bucket *find(const bw_dataset *dataset)
{
    while (dataset && dataset->kind != &kind) {
        dataset = dataset == dataset->content ? NULL : dataset->upstream;
    }
    return dataset ? dataset->state : NULL;
}

int bwi_dataset_lengths(const bw_dataset *dataset, const int64_t **lengths)
{
    const bucket *state = find(dataset);
    *lengths = state ? state->lengths : NULL;
    return state ? state->count : 0;
}

int bwi_dataset_bucket(const bw_dataset *dataset, int64_t number)
{
    return find(dataset)->of[number];
}

/* ---- Looking at each sample ---- */

typedef struct looking {
    bw_dataset *dataset;
    bucket *state;
    float *buffer;    /* [worker][capacity] */
    int64_t capacity; /* values of the largest field */
} looking;

static bool is_sequence(const bwi_column *column, int64_t length)
{
    return column->field.role == BWI_ROLE_INPUT && column->field.ndim > 0 && column->field.shape[0] == length;
}

static int64_t length_of(const float *values, int64_t count, int64_t width)
{
    while (count > 0 && values[count - 1] == 0) {
        count--;
    }
    return (count + width - 1) / width;
}

/* Finds the bucket of one sample, which its longest sequence decides. */
static bw_status look(void *user, int64_t position, int worker, char *error)
{
    const looking *l = user;
    int64_t number = bwi_number_at(l->dataset, 0, position);
    float *values = l->buffer + worker * l->capacity;
    const bw_dataset *content = l->dataset->content;
    int64_t longest = l->state->lengths[l->state->count - 1];
    int64_t length = 1;
    for (int f = 0; f < content->column_count; f++) {
        const bwi_column *column = &content->columns[f];
        if (!is_sequence(column, longest)) {
            continue;
        }
        bwi_destination to = bwi_host_destination(values, BW_F32, column->rows.values);
        bwi_demand demand = {.field = f, .numbers = &number, .n = 1, .to = &to, .error = error};
        bw_status status = bwi_content_gather(l->dataset, &demand);
        if (status != BW_OK) {
            return status;
        }
        int64_t here = length_of(values, column->rows.values, column->rows.values / longest);
        length = here > length ? here : length;
    }
    int at = 0;
    while (l->state->lengths[at] < length) {
        at++;
    }
    l->state->of[number] = (unsigned char)at;
    return BW_OK;
}

static bw_status look_at_all(bw_dataset *dataset)
{
    bw_context *ctx = dataset->owned.ctx;
    looking l = {.dataset = dataset, .state = dataset->state};
    for (int f = 0; f < bwi_dataset_fields(dataset); f++) {
        int64_t values = dataset->content->columns[f].rows.values;
        l.capacity = values > l.capacity ? values : l.capacity;
    }
    l.state->of = bwi_allocate(ctx, (size_t)dataset->numbers, 1);
    l.buffer = l.state->of ? bwi_allocate(ctx, (size_t)ctx->workers, bwi_size_multiply((size_t)l.capacity, sizeof(float))) : NULL;
    if (!l.buffer) {
        return BW_RESOURCE_EXHAUSTED;
    }
    char error[BWI_ITEM_ERROR];
    bw_status status = bwi_parallel_for(ctx, dataset->count, look, &l, error);
    bwi_release(ctx, l.buffer);
    return error[0] ? bwi_fail(ctx, status, "bucket: %s", error) : status;
}

/* ---- Building ---- */

/* The longest length must be the first extent of the inputs. Statistics are refused, because they would turn the padding into
 * other values. */
static bw_status check(const bw_dataset *dataset, const int64_t *lengths, int count)
{
    bw_context *ctx = dataset->owned.ctx;
    int x = bwi_dataset_find(dataset, BWI_ROLE_INPUT, 0);
    const bwi_field *field = x < 0 ? NULL : bwi_dataset_field(dataset, x);
    if (!field || field->ndim < 1) {
        return bwi_fail(ctx, BW_INVALID_ARGUMENT, "bucket: the samples' inputs are no sequences");
    }
    if (!lengths || count < 1 || count >= BWI_MOST_LENGTHS) {
        return bwi_fail(ctx, BW_INVALID_ARGUMENT, "bucket: expected 1 to %d lengths, got %d", BWI_MOST_LENGTHS - 1, count);
    }
    for (int k = 0; k < count; k++) {
        if (lengths[k] < 1 || (k > 0 && lengths[k] <= lengths[k - 1]) || lengths[k] > field->shape[0]) {
            return bwi_fail(ctx, BW_INVALID_ARGUMENT,
                            "bucket: expected rising lengths from 1 to the data's own, %lld; the %dth is %lld",
                            (long long)field->shape[0], k + 1, (long long)lengths[k]);
        }
    }
    for (const bw_dataset *below = dataset; below; below = below->upstream) {
        if (below->kind->begin) {
            return bwi_fail(ctx, BW_INVALID_ARGUMENT, "bucket: after %s zeros are no padding any more", below->kind->name);
        }
    }
    return BW_OK;
}

bw_dataset *bw_bucket(bw_dataset *dataset, const int64_t *lengths, int count)
{
    if (!dataset) {
        return NULL;
    }
    bw_context *ctx = dataset->owned.ctx;
    bw_dataset *made = check(dataset, lengths, count) == BW_OK ? bwi_dataset_over(dataset, &kind, 0, sizeof(bucket)) : NULL;
    if (made) {
        int64_t longest = bwi_dataset_field(dataset, bwi_dataset_find(dataset, BWI_ROLE_INPUT, 0))->shape[0];
        bucket *state = made->state;
        memcpy(state->lengths, lengths, (size_t)count * sizeof *lengths);
        state->count = count;
        if (lengths[count - 1] < longest) {
            state->lengths[state->count++] = longest;
        }
        if (look_at_all(made) == BW_OK) {
            return bwi_dataset_take(dataset, made);
        }
    }
    bw_dataset_free(made);
    bw_dataset_free(dataset);
    return bwi_pass_on(ctx);
}
