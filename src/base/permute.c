/*
 * Exact permutations in constant memory: one position, or many at once. Vectors give the same numbers as scalars.
 *
 * A Feistel network on pairs (l, r), l < a, r < b, with a*b just above count: each round adds a keyed function of one half to the
 * other, modulo its extent, which can be undone; so the whole is a bijection of a*b numbers. Walking its cycle until the number is
 * below count makes it a bijection of count numbers; as a*b < count + a, this rarely takes a second pass. a and b are below 2^32
 * for every count.
 */
#include "base/base.h"

#include <math.h>
#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#define GOLDEN 0x9E3779B97F4A7C15u
#define ROUNDS 12
#define MIX_1 0xBF58476D1CE4E5B9u
#define MIX_2 0x94D049BB133111EBu

/* A bijection of 64 bits in which each bit depends on every other, for numbers and for vectors. */
#define MIX(x) ((x) = ((x) ^ ((x) >> 30)) * MIX_1, (x) = ((x) ^ ((x) >> 27)) * MIX_2, (x) ^ ((x) >> 31))

typedef struct network {
    uint64_t count, a, b, key;
} network;

static uint64_t mix(uint64_t x)
{
    return MIX(x);
}

static network open_network(uint64_t seed, uint64_t epoch, int64_t count)
{
    network w = {.count = (uint64_t)count, .a = (uint64_t)sqrt((double)count)};
    while (w.a * w.a < w.count) {
        w.a++;
    }
    w.b = (w.count + w.a - 1) / w.a;
    w.key = mix(mix(seed + GOLDEN) + mix(epoch ^ 0x6A09E667F3BCC909u));
    return w;
}

/* Subtracts the extent from the half, unless that is negative. */
static uint64_t wrap(uint64_t half, uint64_t extent)
{
    return half - (half >= extent ? extent : 0);
}

static int64_t walk(const network *w, int64_t i)
{
    uint64_t l = (uint64_t)i / w->b, r = (uint64_t)i % w->b;
    do {
        uint64_t key = w->key;
        for (int round = 0; round < ROUNDS; round += 2) {
            key += GOLDEN;
            l = wrap(l + (((mix(r ^ key) >> 32) * w->a) >> 32), w->a);
            key += GOLDEN;
            r = wrap(r + (((mix(l ^ key) >> 32) * w->b) >> 32), w->b);
        }
    } while (l * w->b + r >= w->count);
    return (int64_t)(l * w->b + r);
}

int64_t bwi_permute(uint64_t seed, uint64_t epoch, int64_t count, int64_t i)
{
    if (count < 2) {
        return 0;
    }
    network w = open_network(seed, epoch, count);
    return walk(&w, i);
}

#if defined(__x86_64__)

#define AVX512 __attribute__((target("avx512f,avx512dq,avx512vl")))
#define WIDTH 8
#define SMALL 2 /* vectors side by side: each round waits for the one before, so one alone would be idle most of the time */
#define LARGE 8

typedef uint64_t vector __attribute__((vector_size(8 * WIDTH)));

/* x / b: the estimate in doubles is at most one off, as x / b is below 2^32. */
AVX512 static inline vector divide(vector x, vector b, __m512d inverse, vector *rest)
{
    __m512i one = _mm512_set1_epi64(1);
    __m512i q = _mm512_cvttpd_epu64(_mm512_mul_pd(_mm512_cvtepu64_pd((__m512i)x), inverse));
    __m512i r = (__m512i)(x - (vector)q * b);
    __mmask8 above = _mm512_movepi64_mask(r);
    q = _mm512_mask_sub_epi64(q, above, q, one);
    r = _mm512_mask_add_epi64(r, above, r, (__m512i)b);
    __mmask8 below = _mm512_cmpge_epu64_mask(r, (__m512i)b);
    q = _mm512_mask_add_epi64(q, below, q, one);
    *rest = (vector)_mm512_mask_sub_epi64(r, below, r, (__m512i)b);
    return (vector)q;
}

AVX512 static inline vector add_modulo(vector half, vector other, vector extent)
{
    __m512i high = (__m512i)(MIX(other) >> 32);
    half += (vector)_mm512_mul_epu32(high, (__m512i)extent) >> 32;
    return (vector)_mm512_min_epu64((__m512i)half, (__m512i)(half - extent));
}

/* Applies the network once to `vectors` * WIDTH positions. */
AVX512 static inline __attribute__((always_inline)) void permute_block(const network *w, int vectors, int64_t *positions)
{
    vector a = (vector){0} + w->a, b = (vector){0} + w->b;
    __m512d inverse = _mm512_set1_pd(1 / (double)w->b);
    vector l[LARGE], r[LARGE];
#pragma GCC unroll 8
    for (int k = 0; k < vectors; k++) {
        vector x;
        memcpy(&x, positions + k * WIDTH, sizeof x);
        l[k] = divide(x, b, inverse, &r[k]);
    }
    uint64_t key = w->key;
    for (int round = 0; round < ROUNDS; round += 2) {
        key += GOLDEN;
#pragma GCC unroll 8
        for (int k = 0; k < vectors; k++) {
            l[k] = add_modulo(l[k], r[k] ^ key, a);
        }
        key += GOLDEN;
#pragma GCC unroll 8
        for (int k = 0; k < vectors; k++) {
            r[k] = add_modulo(r[k], l[k] ^ key, b);
        }
    }
#pragma GCC unroll 8
    for (int k = 0; k < vectors; k++) {
        vector x = l[k] * b + r[k];
        memcpy(positions + k * WIDTH, &x, sizeof x);
    }
}

AVX512 static void permute_large(const network *w, int64_t *positions)
{
    permute_block(w, LARGE, positions);
}

AVX512 static void permute_small(const network *w, int64_t *positions)
{
    permute_block(w, SMALL, positions);
}

/* Permutes as many positions as fill vectors, and returns their number. */
static int64_t permute_vectors(const network *w, int64_t *positions, int64_t n)
{
    int64_t done = 0;
    for (; n - done >= LARGE * WIDTH; done += LARGE * WIDTH) {
        permute_large(w, positions + done);
    }
    for (; n - done >= SMALL * WIDTH; done += SMALL * WIDTH) {
        permute_small(w, positions + done);
    }
    for (int64_t i = 0; i < done; i++) {
        if ((uint64_t)positions[i] >= w->count) {
            positions[i] = walk(w, positions[i]);
        }
    }
    return done;
}
#endif

void bwi_permute_all(uint64_t seed, uint64_t epoch, int64_t count, int64_t *positions, int64_t n)
{
    int64_t done = 0;
    if (count < 2) {
        return;
    }
    network w = open_network(seed, epoch, count);
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")) {
        done = permute_vectors(&w, positions, n);
    }
#endif
    for (; done < n; done++) {
        positions[done] = walk(&w, positions[done]);
    }
}
