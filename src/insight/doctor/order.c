/*
 * Whether the order of labels is one that chance explains. The statistic is the share of pairs within a window (about a batch) that
 * have the same label; it is compared with the same statistic of random permutations of the labels. If batches are more alike
 * within than in all but a few permutations, the order has a structure, whatever it is: sorted, in blocks, or by the day of
 * recording.
 */
#include "insight/doctor/doctor.h"

#include <stdlib.h>
#include <string.h>

enum { PERMUTATIONS = 999, ENOUGH = 10, MOST_GROUPS = 256, TENTHS = 10 };

static int compare(const void *a, const void *b)
{
    float x, y;
    memcpy(&x, a, sizeof x);
    memcpy(&y, b, sizeof y);
    return (x > y) - (x < y);
}

/* Finds the limits of groups in sorted labels: each value is a group if there are few, otherwise each tenth of the labels. Group g
 * holds labels from limits[g] on. */
static int find_groups(const float *sorted, int64_t count, float *limits, bool *classes)
{
    int groups = 0;
    for (int64_t i = 0; i < count && groups <= MOST_GROUPS; i++) {
        if (i == 0 || sorted[i] > sorted[i - 1]) {
            if (groups < MOST_GROUPS) {
                limits[groups] = sorted[i];
            }
            groups++;
        }
    }
    *classes = groups <= MOST_GROUPS && groups <= count / 4;
    if (*classes) {
        return groups;
    }
    groups = 0;
    for (int g = 0; g < TENTHS; g++) {
        float limit = sorted[count * g / TENTHS];
        if (groups == 0 || limit > limits[groups - 1]) {
            limits[groups++] = limit;
        }
    }
    return groups;
}

static uint16_t group_of(const float *limits, int groups, float label)
{
    int low = 0, high = groups - 1;
    while (low < high) {
        int middle = (low + high + 1) / 2;
        if (label < limits[middle]) {
            high = middle - 1;
        } else {
            low = middle;
        }
    }
    return (uint16_t)low;
}

/* Counts the ordered pairs of equal groups within windows. */
static int64_t count_pairs(const uint16_t *group, int64_t count, int64_t window)
{
    int32_t times[MOST_GROUPS] = {0};
    int64_t pairs = 0;
    for (int64_t first = 0; first < count; first += window) {
        int64_t end = first + window < count ? first + window : count;
        for (int64_t i = first; i < end; i++) {
            pairs += 2 * (int64_t)times[group[i]]++;
        }
        for (int64_t i = first; i < end; i++) {
            times[group[i]] = 0;
        }
    }
    return pairs;
}

static void permute(uint16_t *group, int64_t count, uint64_t *random)
{
    for (int64_t i = count - 1; i > 0; i--) {
        *random ^= *random << 13; /* xorshift64: thousands of draws for each label */
        *random ^= *random >> 7;
        *random ^= *random << 17;
        int64_t j = (int64_t)(((*random >> 32) * (uint64_t)(i + 1)) >> 32);
        uint16_t taken = group[i];
        group[i] = group[j];
        group[j] = taken;
    }
}

/* Once ENOUGH permutations are as alike, chance explains the order, and their share estimates p (Besag and Clifford, 1991): mostly
 * that takes a few permutations only. */
static void test(uint16_t *group, int64_t count, bwi_order *order)
{
    int64_t found = count_pairs(group, count, order->window), as_alike = 0, pairs = 0;
    double sum = 0;
    uint64_t random = UINT64_C(0x9E3779B97F4A7C15);
    for (int64_t first = 0; first < count; first += order->window) {
        int64_t n = first + order->window < count ? order->window : count - first;
        pairs += n * (n - 1);
    }
    int made = 0;
    for (; made < PERMUTATIONS && as_alike < ENOUGH; made++) {
        permute(group, count, &random);
        int64_t chance = count_pairs(group, count, order->window);
        as_alike += chance >= found;
        sum += (double)chance;
    }
    order->p = as_alike < ENOUGH ? (double)(1 + as_alike) / (1 + made) : (double)as_alike / made;
    order->same = pairs > 0 ? (double)found / (double)pairs : 0;
    order->by_luck = pairs > 0 ? sum / made / (double)pairs : 0;
}

bw_status bwi_order_test(bw_context *ctx, const float *labels, int64_t count, int64_t window, bwi_order *order)
{
    *order = (bwi_order){.p = 1, .labels = count, .window = window};
    if (count < 2 * window || window < 2) {
        return BW_OK;
    }
    float limits[MOST_GROUPS];
    float *sorted = bwi_allocate(ctx, (size_t)count, sizeof *sorted);
    uint16_t *group = bwi_allocate(ctx, (size_t)count, sizeof *group);
    if (sorted && group) {
        memcpy(sorted, labels, (size_t)count * sizeof *sorted);
        qsort(sorted, (size_t)count, sizeof *sorted, compare);
        int groups = find_groups(sorted, count, limits, &order->classes);
        for (int64_t i = 0; i < count; i++) {
            group[i] = group_of(limits, groups, labels[i]);
        }
        test(group, count, order);
    }
    bool made = sorted && group;
    bwi_release(ctx, sorted);
    bwi_release(ctx, group);
    return made ? BW_OK : BW_RESOURCE_EXHAUSTED;
}
