/*
 * Supports tests of kernels with the tables that this CPU runs (or the one that $BATCHWISE_ISA names), random numbers, and arrays
 * that detect writes beyond their ends. Inputs end where their memory ends, so that the address sanitizer sees reads beyond it.
 */
#ifndef BWI_TEST_KERNEL_CHECK_H
#define BWI_TEST_KERNEL_CHECK_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "kernel/internal.h"
#include "support/random.h"

#define GUARD 64 /* bytes before and behind an output */
#define GUARD_BYTE 0x7b

/* Calls `check` for each table. */
static inline void each_table(void (*check)(const bwi_kernels *k))
{
    static const char *const names[] = {"avx512", "avx2", "neon", "portable"};
    const char *only = getenv("BATCHWISE_ISA");
    int count = 0;
    for (size_t i = 0; i < BWI_COUNT(names); i++) {
        const bwi_kernels *k = bwi_kernels_by_name(names[i]);
        if (!k || (only && *only && strcmp(only, names[i]) != 0)) {
            continue;
        }
        assert_string_equal(k->name, names[i]);
        check(k);
        count++;
    }
    if (count == 0) {
        skip();
    }
}

static inline uint32_t random_word(void)
{
    return (uint32_t)(random_bits() >> 32);
}

/* In [-1, 1). */
static inline float random_float(void)
{
    return (float)(int32_t)(random_word() & 0xffffff00u) * 0x1p-31f;
}

static inline int64_t random_below(int64_t limit)
{
    return (int64_t)(random_word() % (uint32_t)limit);
}

static inline void *input_bytes(size_t bytes)
{
    unsigned char *p = NULL;
    assert_int_equal(posix_memalign((void **)&p, 64, bytes > 0 ? bytes : 1), 0);
    return p;
}

static inline float *input_floats(int64_t count)
{
    float *x = input_bytes((size_t)count * sizeof *x);
    for (int64_t i = 0; i < count; i++) {
        x[i] = random_float();
    }
    return x;
}

/* Random bytes with guards around them; for floats they are what no kernel should leave. */
static inline void *output_bytes(size_t bytes)
{
    unsigned char *p = input_bytes(bytes + 2 * GUARD);
    memset(p, GUARD_BYTE, bytes + 2 * GUARD);
    return p + GUARD;
}

static inline float *output_floats(int64_t count)
{
    return output_bytes((size_t)count * sizeof(float));
}

static inline float *output_copy(const float *x, int64_t count)
{
    float *y = output_floats(count);
    memcpy(y, x, (size_t)count * sizeof *x);
    return y;
}

/* Checks the guards and frees. */
static inline void output_free(void *output, size_t bytes)
{
    unsigned char *p = (unsigned char *)output - GUARD;
    for (size_t i = 0; i < GUARD; i++) {
        if (p[i] != GUARD_BYTE || p[GUARD + bytes + i] != GUARD_BYTE) {
            fail_msg("written outside: byte %zu of the guards", i);
        }
    }
    free(p);
}

static inline void output_floats_free(float *output, int64_t count)
{
    output_free(output, (size_t)count * sizeof *output);
}

/* NaN equals NaN here. */
static inline void assert_close(const char *what, const float *found, const float *expected, int64_t count, double tolerance)
{
    for (int64_t i = 0; i < count; i++) {
        double a = (double)found[i], b = (double)expected[i];
        if (isnan(a) && isnan(b)) {
            continue;
        }
        if (!(fabs(a - b) <= tolerance) && !(isinf(a) && isinf(b) && a == b)) {
            fail_msg("%s: element %lld of %lld: expected %.9g, found %.9g", what, (long long)i, (long long)count, b, a);
        }
    }
}

/* An image in its blocks: few different values, so that ties are frequent, or real ones; padding channels are zero. */
static inline float *random_image(const bwi_image *i, bool ties)
{
    bwi_image last = *i;
    last.block = last.c;
    float *x = input_floats(bwi_image_floats(&last)), *image = input_floats(bwi_image_floats(i));
    for (int64_t j = 0; ties && j < bwi_image_floats(&last); j++) {
        x[j] = (float)(random_below(4) - 1);
    }
    bwi_kernels_reference.reorder(&last, x, i->block, image);
    free(x);
    return image;
}

#endif
