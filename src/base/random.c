/*
 * Random numbers without state: Philox 4x32-10 (Salmon, Moraes, Dror, Shaw 2011), normals, hashing.
 * Everything here gives the same bits on every machine: integers, and doubles with only + - * / and sqrt.
 */
#include "base/base.h"

#include <math.h>
#include <string.h>

bwi_random bwi_random_at(uint64_t seed, uint64_t stream, uint64_t counter)
{
    uint32_t k0 = (uint32_t)seed, k1 = (uint32_t)(seed >> 32);
    uint32_t c0 = (uint32_t)counter, c1 = (uint32_t)(counter >> 32), c2 = (uint32_t)stream, c3 = (uint32_t)(stream >> 32);
    for (int round = 0; round < 10; round++) {
        uint64_t p0 = (uint64_t)0xD2511F53u * c0, p1 = (uint64_t)0xCD9E8D57u * c2;
        c0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
        c1 = (uint32_t)p1;
        c2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
        c3 = (uint32_t)p0;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    return (bwi_random){{c0, c1, c2, c3}};
}

float bwi_random_uniform(uint32_t word)
{
    return (float)(word >> 8) * 0x1p-24f;
}

/* ln u = e ln 2 + 2 atanh(s), s = (m - 1) / (m + 1), u = m 2^e, m in [sqrt(1/2), sqrt(2)): s*s < 0.03. */
static double logarithm(double u)
{
    int e;
    double m = frexp(u, &e);
    if (m < 0.70710678118654752) {
        m *= 2;
        e--;
    }
    double s = (m - 1) / (m + 1), square = s * s, sum = 0;
    for (int k = 21; k >= 1; k -= 2) {
        sum = sum * square + 1.0 / k;
    }
    return e * 0.69314718055994531 + 2 * s * sum;
}

/* Sine and cosine of 2 pi b / 2^32: the nearest quarter of a turn is taken off exactly, Taylor's series do the remainder. */
static void sine_cosine(uint32_t b, double *sine, double *cosine)
{
    uint32_t quarter = (b + 0x20000000u) >> 30;
    double t = (double)(int32_t)(b - (quarter << 30)) * 1.4629180792671596e-09, square = t * t;
    double s = 1, c = 1;
    for (int k = 16; k >= 2; k -= 2) {
        s = 1 - s * square / (k * (k + 1));
        c = 1 - c * square / (k * (k - 1));
    }
    s *= t;
    bool odd = quarter & 1;
    double a = odd ? c : s, d = odd ? s : c;
    *sine = quarter & 2 ? -a : a;
    *cosine = (quarter + 1) & 2 ? -d : d;
}

/* Box and Muller: sqrt(-2 ln u) (cos, sin) of a random angle; u is never 0. */
void bwi_random_normal(uint32_t a, uint32_t b, float *x, float *y)
{
    double sine, cosine, radius = sqrt(-2 * logarithm(((double)a + 0.5) * 0x1p-32));
    sine_cosine(b, &sine, &cosine);
    *x = (float)(radius * cosine);
    *y = (float)(radius * sine);
}

/* A bijection of 64 bits in which each bit depends on every other. */
static uint64_t mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    return x ^ (x >> 31);
}

#define GOLDEN 0x9E3779B97F4A7C15u

static uint64_t little_endian(const unsigned char *bytes, size_t count)
{
    uint64_t word = 0;
    memcpy(&word, bytes, count);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    word = __builtin_bswap64(word);
#endif
    return word;
}

/* Mixes each word before it joins the hash: otherwise a few flipped bits in neighbouring words (signs of weights) could cancel,
 * because a product carries bits only upwards. */
static uint64_t join_word(uint64_t hash, uint64_t word)
{
    hash = (hash ^ mix(word)) * 0x9FB21C651E98DF25u;
    return hash ^ (hash >> 32);
}

uint64_t bwi_hash_begin(uint64_t seed, size_t size)
{
    return mix(mix(seed + GOLDEN) + (uint64_t)size);
}

uint64_t bwi_hash_add(uint64_t hash, const void *bytes, size_t size)
{
    const unsigned char *next = bytes;
    size_t rest = size;
    for (; rest >= 8; rest -= 8, next += 8) {
        hash = join_word(hash, little_endian(next, 8));
    }
    return rest ? join_word(hash, little_endian(next, rest)) : hash;
}

uint64_t bwi_hash_end(uint64_t hash)
{
    return mix(hash);
}

uint64_t bwi_hash(uint64_t seed, const void *bytes, size_t size)
{
    return bwi_hash_end(bwi_hash_add(bwi_hash_begin(seed, size), bytes, size));
}
