/*
 * Boundaries of equally frequent intervals, as Keras's Discretization fits them: a summary of quantiles, of values and the weights
 * they stand for, which is merged with that of every further block and compressed to 1 / epsilon points.
 */
#include "front/internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void bwi_summary_free(bw_context *ctx, bwi_summary *summary)
{
    bwi_release(ctx, summary->values);
    bwi_release(ctx, summary->weights);
    *summary = (bwi_summary){.count = 0};
}

static bw_status make(bw_context *ctx, bwi_summary *summary, int64_t count)
{
    *summary = (bwi_summary){.values = bwi_allocate(ctx, (size_t)count + 1, sizeof(float)),
                             .weights = bwi_allocate(ctx, (size_t)count + 1, sizeof(float)),
                             .count = count};
    return summary->values && summary->weights ? BW_OK : BW_RESOURCE_EXHAUSTED;
}

static int compare(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;
    return x < y ? -1 : x > y;
}

/* NumPy's interp: linear between the points (x, y), constant outside of them. */
static double between(double at, const double *x, const double *y, int64_t count)
{
    if (at <= x[0]) {
        return y[0];
    }
    if (at >= x[count - 1]) {
        return y[count - 1];
    }
    int64_t low = 0, high = count - 1;
    while (high - low > 1) {
        int64_t middle = (low + high) / 2;
        if (x[middle] <= at) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return (y[low + 1] - y[low]) / (x[low + 1] - x[low]) * (at - x[low]) + y[low];
}

/* A summary with fewer than 1 / epsilon points stays as it is. */
static bw_status compress(bw_context *ctx, bwi_summary *summary, double epsilon)
{
    if ((double)summary->count * epsilon < 1) {
        return BW_OK;
    }
    int64_t count = summary->count, points = (int64_t)ceil(1.0 / epsilon);
    double *memory = bwi_allocate(ctx, (size_t)count, 3 * sizeof *memory);
    double *share = memory, *value = memory + count, *total = memory + 2 * count;
    bwi_summary made;
    if (!memory) {
        return BW_RESOURCE_EXHAUSTED;
    }
    bw_status status = make(ctx, &made, points);
    float sum = 0;
    for (int64_t i = 0; i < count; i++) {
        sum += summary->weights[i];
        total[i] = (double)sum;
        value[i] = (double)summary->values[i];
    }
    for (int64_t i = 0; i < count; i++) {
        share[i] = (double)((float)total[i] / sum);
    }
    double before = 0;
    for (int64_t i = 0; i < points && status == BW_OK; i++) {
        double at = epsilon + (double)i * epsilon, weight = between(at, share, total, count);
        made.values[i] = (float)between(at, share, value, count);
        made.weights[i] = (float)(weight - before);
        before = weight;
    }
    bwi_release(ctx, memory);
    bwi_summary_free(ctx, status == BW_OK ? summary : &made);
    if (status == BW_OK) {
        *summary = made;
    }
    return status;
}

/* Merges two summaries in the order of their values. */
static bw_status merge(bw_context *ctx, bwi_summary *summary, const bwi_summary *other)
{
    bwi_summary made;
    int64_t i = 0, k = 0;
    bw_status status = make(ctx, &made, summary->count + other->count);
    for (int64_t n = 0; n < made.count && status == BW_OK; n++) {
        bool first = k == other->count || (i < summary->count && summary->values[i] < other->values[k]);
        const bwi_summary *from = first ? summary : other;
        int64_t *at = first ? &i : &k;
        made.values[n] = from->values[*at];
        made.weights[n] = from->weights[(*at)++];
    }
    bwi_summary_free(ctx, status == BW_OK ? summary : &made);
    if (status == BW_OK) {
        *summary = made;
    }
    return status;
}

bw_status bwi_summary_add(bw_context *ctx, bwi_summary *summary, float *values, int64_t count, double epsilon)
{
    double step = fmax((double)count / (1.0 / epsilon), 1);
    int64_t start = (int64_t)(step - 1), stride = (int64_t)step;
    bwi_summary block;
    qsort(values, (size_t)count, sizeof *values, compare);
    bw_status status = make(ctx, &block, count > start ? (count - start + stride - 1) / stride : 0);
    for (int64_t i = 0; i < block.count && status == BW_OK; i++) {
        block.values[i] = values[start + i * stride];
        block.weights[i] = (float)step;
    }
    if (status == BW_OK) {
        status = merge(ctx, summary, &block);
    }
    bwi_summary_free(ctx, &block);
    return status == BW_OK ? compress(ctx, summary, epsilon) : status;
}

bw_status bwi_summary_boundaries(bw_context *ctx, const bwi_summary *summary, int64_t bins, float **boundaries, int64_t *count)
{
    bwi_summary copy;
    bw_status status = make(ctx, &copy, summary->count);
    if (status == BW_OK) {
        memcpy(copy.values, summary->values, (size_t)summary->count * sizeof(float));
        memcpy(copy.weights, summary->weights, (size_t)summary->count * sizeof(float));
        status = compress(ctx, &copy, 1.0 / (double)bins);
    }
    if (status != BW_OK) {
        bwi_summary_free(ctx, &copy);
        return status;
    }
    *boundaries = copy.values;
    *count = copy.count > 0 ? copy.count - 1 : 0;
    bwi_release(ctx, copy.weights);
    return BW_OK;
}
