/*
 * Chooses the table of kernels: the one that the context or $BATCHWISE_ISA asks for, or the best that this CPU runs. A table that
 * was asked for also limits oneDNN, so that the whole program computes with one instruction set.
 */
#include "kernel/internal.h"

#include <stdlib.h>
#include <string.h>

extern const bwi_kernels bwi_kernels_avx512;   /* kernels_avx512.c */
extern const bwi_kernels bwi_kernels_avx2;     /* kernels_avx2.c */
extern const bwi_kernels bwi_kernels_neon;     /* kernels_neon.c */
extern const bwi_kernels bwi_kernels_portable; /* kernels_portable.c */

#if defined(__x86_64__)
static bool has_avx512(void)
{
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("fma");
}

static bool has_avx2(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}
#endif

static bool always(void)
{
    return true;
}

/* The best table comes first, one that every CPU runs last. */
static const struct {
    const bwi_kernels *kernels;
    bool (*runs_here)(void);
} tables[] = {
#if defined(__x86_64__)
    {&bwi_kernels_avx512, has_avx512},
    {&bwi_kernels_avx2, has_avx2},
#elif defined(__aarch64__)
    {&bwi_kernels_neon, always},
#endif
    {&bwi_kernels_portable, always},
};

#if defined(__x86_64__)
#define NAMES "\"avx512\", \"avx2\" or \"portable\""
#elif defined(__aarch64__)
#define NAMES "\"neon\" or \"portable\""
#else
#define NAMES "\"portable\""
#endif

enum { MAX_ADDED = 8 };

/* Tables from outside the library. They are found by name only, and never chosen as the best. */
static const bwi_kernels *added[MAX_ADDED];
static size_t added_count;

static const bwi_kernels *best(void)
{
    size_t i = 0;
    while (!tables[i].runs_here()) {
        i++;
    }
    return tables[i].kernels;
}

const bwi_kernels *bwi_kernels_host(void)
{
    return best();
}

const bwi_kernels *bwi_kernels_by_name(const char *name)
{
    for (size_t i = 0; i < BWI_COUNT(tables); i++) {
        if (strcmp(tables[i].kernels->name, name) == 0 && tables[i].runs_here()) {
            return tables[i].kernels;
        }
    }
    for (size_t i = 0; i < added_count; i++) {
        if (strcmp(added[i]->name, name) == 0) {
            return added[i];
        }
    }
    return NULL;
}

bool bwi_kernels_add(const bwi_kernels *kernels)
{
    if (added_count == MAX_ADDED || bwi_kernels_by_name(kernels->name)) {
        return false;
    }
    added[added_count++] = kernels;
    return true;
}

const bwi_kernels *bwi_kernels_of(bw_context *ctx)
{
    if (ctx->kernels) {
        return ctx->kernels;
    }
    const char *origin = "instruction_set";
    const char *name = ctx->instruction_set;
    if (!name) {
        origin = "BATCHWISE_ISA";
        name = getenv("BATCHWISE_ISA");
    }
    if (!name || !*name) {
        ctx->kernels = best();
        return ctx->kernels;
    }
    ctx->kernels = bwi_kernels_by_name(name);
    if (!ctx->kernels) {
        bwi_fail(ctx, BW_INVALID_ARGUMENT, "%s: expected %s, of which this CPU runs up to \"%s\"; found \"%s\"", origin, NAMES,
                 best()->name, name);
        return NULL;
    }
#ifndef BW_WITHOUT_ONEDNN
    bwi_onednn_limit(ctx->kernels->name);
#endif
    return ctx->kernels;
}
