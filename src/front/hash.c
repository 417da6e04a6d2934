/*
 * The hashes that TensorFlow's string operators have, of which Keras's Hashing, HashedCrossing and lookups take remainders:
 * Fingerprint64 of FarmHash (Geoff Pike, 2014), and SipHash-2-4 (Aumasson and Bernstein, 2012) where there is a salt. Values are
 * little-endian on every machine.
 */
#include "front/internal.h"

#include <string.h>

static const uint64_t k0 = 0xc3a5c85c97cb3127U, k1 = 0xb492b66fbe98f273U, k2 = 0x9ae16a3b2f90404fU;

typedef struct pair {
    uint64_t first, second;
} pair;

static uint64_t word(const char *at)
{
    uint64_t value;
    memcpy(&value, at, sizeof value);
    return __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? value : __builtin_bswap64(value);
}

static uint64_t half(const char *at)
{
    uint32_t value;
    memcpy(&value, at, sizeof value);
    return __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? value : __builtin_bswap32(value);
}

static uint64_t rotate(uint64_t value, int right)
{
    return (value >> right) | (value << (64 - right));
}

static uint64_t mix(uint64_t value)
{
    return value ^ (value >> 47);
}

static uint64_t join(uint64_t u, uint64_t v, uint64_t factor)
{
    uint64_t a = mix((u ^ v) * factor);
    return mix((v ^ a) * factor) * factor;
}

/* ---- FarmHash ---- */

static uint64_t up_to_16(const char *s, size_t size)
{
    uint64_t factor = k2 + size * 2;
    if (size >= 8) {
        uint64_t a = word(s) + k2, b = word(s + size - 8);
        return join(rotate(b, 37) * factor + a, (rotate(a, 25) + b) * factor, factor);
    }
    if (size >= 4) {
        return join(size + (half(s) << 3), half(s + size - 4), factor);
    }
    if (size == 0) {
        return k2;
    }
    uint64_t a = (unsigned char)s[0], b = (unsigned char)s[size / 2], c = (unsigned char)s[size - 1];
    return mix(((a + (b << 8)) * k2) ^ ((size + (c << 2)) * k0)) * k2;
}

static uint64_t up_to_32(const char *s, size_t size)
{
    uint64_t factor = k2 + size * 2, a = word(s) * k1, b = word(s + 8), c = word(s + size - 8) * factor,
             d = word(s + size - 16) * k2;
    return join(rotate(a + b, 43) + rotate(c, 30) + d, a + rotate(b + k2, 18) + c, factor);
}

static uint64_t up_to_64(const char *s, size_t size)
{
    uint64_t factor = k2 + size * 2, a = word(s) * k2, b = word(s + 8), c = word(s + size - 8) * factor,
             d = word(s + size - 16) * k2;
    uint64_t y = rotate(a + b, 43) + rotate(c, 30) + d, z = join(y, a + rotate(b + k2, 18) + c, factor);
    uint64_t e = word(s + 16) * factor, f = word(s + 24), g = (y + word(s + size - 32)) * factor,
             h = (z + word(s + size - 24)) * factor;
    return join(rotate(e + f, 43) + rotate(g, 30) + h, e + rotate(f + a, 18) + g, factor);
}

static pair weak(const char *s, uint64_t a, uint64_t b)
{
    uint64_t w = word(s), x = word(s + 8), y = word(s + 16), z = word(s + 24);
    a += w;
    b = rotate(b + a + z, 21);
    uint64_t c = a;
    a += x + y;
    b += rotate(a, 44);
    return (pair){a + z, b + c};
}

/* The state of a long text, which takes 64 bytes at a time. */
typedef struct state {
    uint64_t x, y, z;
    pair v, w;
} state;

static void take_64(state *t, const char *s, uint64_t factor, bool last)
{
    uint64_t scale = last ? 9 : 1;
    t->x = rotate(t->x + t->y + t->v.first + word(s + 8), 37) * factor;
    t->y = rotate(t->y + t->v.second + word(s + 48), 42) * factor;
    t->x ^= t->w.second * scale;
    t->y += t->v.first * scale + word(s + 40);
    t->z = rotate(t->z + t->w.first, 33) * factor;
    t->v = weak(s, t->v.second * factor, t->x + t->w.first);
    t->w = weak(s + 32, t->z + t->w.second, t->y + word(s + 16));
    uint64_t z = t->z;
    t->z = t->x;
    t->x = z;
}

uint64_t bwi_farmhash(const char *bytes, size_t size)
{
    if (size <= 64) {
        return size <= 16 ? up_to_16(bytes, size) : size <= 32 ? up_to_32(bytes, size) : up_to_64(bytes, size);
    }
    uint64_t seed = 81;
    state t = {.x = seed, .y = seed * k1 + 113};
    t.z = mix(t.y * k2 + 113) * k2;
    t.x = t.x * k2 + word(bytes);
    size_t whole = (size - 1) / 64 * 64, rest = (size - 1) & 63;
    for (size_t i = 0; i < whole; i += 64) {
        take_64(&t, bytes + i, k1, false);
    }
    uint64_t factor = k1 + ((t.z & 0xff) << 1);
    t.w.first += rest;
    t.v.first += t.w.first;
    t.w.first += t.v.first;
    take_64(&t, bytes + whole + rest - 63, factor, true);
    return join(join(t.v.first, t.w.first, factor) + mix(t.y) * k0 + t.z, join(t.v.second, t.w.second, factor) + t.x, factor);
}

uint64_t bwi_hash_join(uint64_t hash, uint64_t other)
{
    uint64_t factor = 0xc6a4a7935bd1e995U;
    uint64_t result = ((hash ^ factor) ^ (mix(other * factor) * factor)) * factor;
    return mix(mix(result) * factor);
}

/* ---- SipHash ---- */

static void sip_round(uint64_t v[4])
{
    v[0] += v[1];
    v[1] = rotate(v[1], 51) ^ v[0];
    v[0] = rotate(v[0], 32);
    v[2] += v[3];
    v[3] = rotate(v[3], 48) ^ v[2];
    v[0] += v[3];
    v[3] = rotate(v[3], 43) ^ v[0];
    v[2] += v[1];
    v[1] = rotate(v[1], 47) ^ v[2];
    v[2] = rotate(v[2], 32);
}

static void sip_take(uint64_t v[4], uint64_t block)
{
    v[3] ^= block;
    sip_round(v);
    sip_round(v);
    v[0] ^= block;
}

uint64_t bwi_siphash(const uint64_t key[2], const char *bytes, size_t size)
{
    uint64_t v[4] = {key[0] ^ 0x736f6d6570736575U, key[1] ^ 0x646f72616e646f6dU, key[0] ^ 0x6c7967656e657261U,
                     key[1] ^ 0x7465646279746573U};
    uint64_t last = (uint64_t)size << 56;
    size_t whole = size / 8 * 8;
    for (size_t i = 0; i < whole; i += 8) {
        sip_take(v, word(bytes + i));
    }
    for (size_t i = whole; i < size; i++) {
        last |= (uint64_t)(unsigned char)bytes[i] << (8 * (i - whole));
    }
    sip_take(v, last);
    v[2] ^= 0xff;
    for (int i = 0; i < 4; i++) {
        sip_round(v);
    }
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}
