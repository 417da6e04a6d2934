/*
 * Samples for the trainings: made by a generator of this file, so that nothing here depends on the library.
 */
#include "bits.h"

static float values[SAMPLES * MOST_VALUES], targets[NOTHING][SAMPLES * CLASS_COUNT], weights[SAMPLES];
static int32_t tokens[SAMPLES * STEPS], classes[SAMPLES], step_classes[SAMPLES * STEPS];

/* The generator is splitmix64 at a place of its sequence. */
double bits_number(uint64_t stream, uint64_t index)
{
    uint64_t z = (stream << 40) + (index + 1) * 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (double)((z ^ (z >> 31)) >> 40) / (double)(1 << 24);
}

static float between(double low, double high, uint64_t stream, int index)
{
    return (float)(low + (high - low) * bits_number(stream, (uint64_t)index));
}

static void make_rows(int sample)
{
    float sum = 0;
    for (int k = 0; k < CLASS_COUNT; k++) {
        int i = sample * CLASS_COUNT + k;
        targets[ONE_HOT][i] = (float)(k == classes[sample]);
        targets[NUMBERS][i] = between(-1, 1, 3, i);
        targets[BITS][i] = (float)(bits_number(4, (uint64_t)i) < 0.4);
        targets[SIGNS][i] = targets[BITS][i] * 2 - 1;
        targets[SHARES][i] = between(0.1, 1, 5, i);
        targets[COUNTS][i] = (float)(int)(bits_number(6, (uint64_t)i) * 6);
        sum += targets[SHARES][i];
    }
    for (int k = 0; k < CLASS_COUNT; k++) {
        targets[SHARES][sample * CLASS_COUNT + k] /= sum;
    }
    targets[BINARY][sample] = (float)(classes[sample] < 2);
}

void bits_make_samples(void)
{
    for (int i = 0; i < SAMPLES * MOST_VALUES; i++) {
        values[i] = between(-1, 1, 1, i);
    }
    for (int s = 0; s < SAMPLES; s++) {
        int length = 1 + (int)(bits_number(7, (uint64_t)s) * STEPS);
        for (int k = 0; k < STEPS; k++) {
            int i = s * STEPS + k;
            tokens[i] = k < length ? 1 + (int)(bits_number(8, (uint64_t)i) * (WORDS - 1)) : 0;
            step_classes[i] = (int)(bits_number(9, (uint64_t)i) * CLASS_COUNT);
        }
        classes[s] = (int)(bits_number(2, (uint64_t)s) * CLASS_COUNT);
        weights[s] = between(0.25, 1.75, 10, s);
        make_rows(s);
    }
}

bw_array bits_inputs(bits_input kind)
{
    static const bw_array arrays[] = {
        [ROWS] = {values, BW_F32, 2, {SAMPLES, 12}, {0}},           [IMAGE] = {values, BW_F32, 4, {SAMPLES, 10, 10, 3}, {0}},
        [GRAY] = {values, BW_F32, 4, {SAMPLES, 12, 12, 1}, {0}},    [DEEP] = {values, BW_F32, 4, {SAMPLES, 8, 8, 16}, {0}},
        [SEQUENCE] = {values, BW_F32, 3, {SAMPLES, STEPS, 4}, {0}}, [TOKENS] = {tokens, BW_I32, 2, {SAMPLES, STEPS}, {0}},
        [WIDE] = {values, BW_F32, 2, {SAMPLES, 300}, {0}},
    };
    return arrays[kind];
}

bw_array bits_targets(bits_target kind)
{
    switch (kind) {
    case CLASSES:
        return (bw_array){classes, BW_I32, 1, {SAMPLES}, {0}};
    case STEP_CLASSES:
        return (bw_array){step_classes, BW_I32, 2, {SAMPLES, STEPS}, {0}};
    case BINARY:
        return (bw_array){targets[BINARY], BW_F32, 1, {SAMPLES}, {0}};
    default:
        return (bw_array){targets[kind], BW_F32, 2, {SAMPLES, CLASS_COUNT}, {0}};
    }
}

bw_array bits_weights(void)
{
    return (bw_array){weights, BW_F32, 1, {SAMPLES}, {0}};
}
