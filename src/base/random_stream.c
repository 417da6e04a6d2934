/*
 * Random numbers for programs: streams that are functions of (seed, stream) alone. What has been drawn is a count, so a stream can
 * be copied, saved and resumed; nothing is hidden.
 */
#include "base/base.h"

static uint32_t draw(bw_random *random)
{
    bwi_random words = bwi_random_at(random->seed, random->stream, random->drawn / 4);
    return words.word[random->drawn++ % 4];
}

float bw_random_uniform(bw_random *random)
{
    return bwi_random_uniform(draw(random));
}

float bw_random_normal(bw_random *random)
{
    float x, y;
    uint32_t a = draw(random), b = draw(random);
    bwi_random_normal(a, b, &x, &y);
    return x;
}

/* Multiplies 64 random bits by the count: the bias is below count / 2^64. */
int64_t bw_random_below(bw_random *random, int64_t count)
{
    __extension__ typedef unsigned __int128 wide;
    uint64_t high = draw(random), low = draw(random);
    return count < 1 ? 0 : (int64_t)(uint64_t)(((wide)(high << 32 | low) * (uint64_t)count) >> 64);
}

int bw_random_category(bw_random *random, const float *weights, int count)
{
    double sum = 0;
    for (int i = 0; i < count; i++) {
        sum += weights[i] > 0 ? (double)weights[i] : 0;
    }
    double at = ((double)draw(random) + 0.5) * 0x1p-32 * sum;
    int last = 0;
    for (int i = 0; i < count; i++) {
        if (!(weights[i] > 0)) {
            continue;
        }
        last = i;
        at -= (double)weights[i];
        if (at < 0) {
            break;
        }
    }
    return last;
}

int64_t bw_random_permute(uint64_t seed, int64_t count, int64_t position)
{
    return position < 0 || position >= count ? -1 : bwi_permute(seed, 0, count, position);
}
