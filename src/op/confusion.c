/*
 * confusion: how predictions between 0 and 1 meet yes-or-no targets (not 0: yes). Inputs: prediction, target, and optionally
 * weights. With `buckets` predictions are sorted into them: threshold i of n lies at i / (n - 1), and bucket i holds predictions
 * above it up to the next; sums are the weights of yes, then of no, by bucket. Without, sums are true positives, false
 * positives and false negatives at the threshold.
 */
#include "op/op.h"

#include <math.h>

static bw_status shape(bwi_graph *graph, bw_node *node)
{
    return bwi_rows_check(graph, node, false);
}

static float probability(const bwi_confusion_attributes *a, float x)
{
    return a->from_logits ? 1 / (1 + expf(-x)) : x;
}

/* Keras's arithmetic: thresholds lie beside float32 products, so that rounding decides the same way. NaN spoils the sums. */
static void add_to_bucket(const bwi_confusion_attributes *a, double *sums, float x, bool yes, double weight)
{
    float p = x < 0 ? 0 : x > 1 ? 1 : x;
    float bucket = ceilf(p * (float)(a->buckets - 1)) - 1;
    sums[(yes ? 0 : a->buckets) + (bucket > 0 ? (int64_t)bucket : 0)] += p == p ? weight : (double)p;
}

static void add_to_counts(const bwi_confusion_attributes *a, double *sums, float x, bool yes, double weight)
{
    if (x > a->threshold) {
        sums[yes ? 0 : 1] += weight;
    } else if (yes) {
        sums[2] += weight;
    }
}

static bw_status statistics(const bwi_call *call, const bwi_tile *tile)
{
    const bwi_confusion_attributes *a = call->node->attributes;
    bwi_rows rows = bwi_rows_of(call);
    const float *x = call->src[0], *y = call->src[1];
    double *sums = bwi_call_sums(call, tile);
    for (int64_t s = 0; s < call->samples; s++) {
        for (int64_t r = s * rows.count; r < (s + 1) * rows.count; r++) {
            double weight = (double)bwi_rows_weight(&rows, s, r);
            for (int64_t i = r * rows.width; i < (r + 1) * rows.width; i++) {
                (a->buckets ? add_to_bucket : add_to_counts)(a, sums, probability(a, x[i]), y[i] != 0, weight);
            }
        }
    }
    return BW_OK;
}

static int64_t sum_count(const bw_node *node)
{
    const bwi_confusion_attributes *a = node->attributes;
    return a->buckets ? 2 * a->buckets : 3;
}

const bwi_op bwi_op_confusion = {.name = "confusion",
                                 .flags = BWI_OP_SUMS | BWI_OP_NO_GRADIENT,
                                 .layout = BWI_LAYOUT_CHANNELS_LAST,
                                 .shape = shape,
                                 .sum_count = sum_count,
                                 .statistics = statistics};
