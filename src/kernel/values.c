/* What is told about values on the host, in Keras's order: their range, how they are distributed, and images of them. */
#include "kernel/kernel.h"

#include <math.h>

void bwi_values_look(const float *values, int64_t count, bwi_value_range *range)
{
    for (int64_t i = 0; i < count; i++) {
        double x = (double)values[i];
        if (isfinite(x)) {
            range->low = range->count == 0 || x < range->low ? x : range->low;
            range->high = range->count == 0 || x > range->high ? x : range->high;
            range->count++;
        }
    }
}

/* As TensorBoard divides: equal widths, and the highest value belongs to the last bucket, which also takes equal values. */
void bwi_values_count(const float *values, int64_t count, const bwi_value_range *range, int buckets, int64_t *counts)
{
    double width = (range->high - range->low) / buckets;
    for (int64_t i = 0; i < count; i++) {
        double x = (double)values[i];
        if (isfinite(x)) {
            double bucket = width > 0 ? floor((x - range->low) / width) : buckets;
            counts[bucket < buckets - 1 ? (int)bucket : buckets - 1]++;
        }
    }
}

/* Values from 0 to 1 or from 0 to 255 are shown as they are, all others from the lowest, black, to the highest. */
void bwi_values_pixels(const float *values, int64_t count, const bwi_value_range *range, unsigned char *pixels)
{
    bool unit = range->low >= 0 && range->high <= 1, bytes = range->low >= 0 && range->high <= 255;
    double low = unit || bytes ? 0 : range->low, high = unit ? 1 : bytes ? 255 : range->high;
    double scale = high > low ? 255 / (high - low) : 0;
    for (int64_t i = 0; i < count; i++) {
        double x = isfinite((double)values[i]) ? ((double)values[i] - low) * scale : 0;
        pixels[i] = (unsigned char)(x <= 0 ? 0 : x >= 255 ? 255 : x + 0.5);
    }
}
