/*
 * rank: the ranks that train one model together. One; several in one process (threads.c); MPI is a row to come.
 * A rank owns an aligned block of lanes and continues the binary tree of sums over ranks: every sum here is a
 * butterfly of commutative additions, so that all ranks get the same bits.
 */
#ifndef BWI_RANK_H
#define BWI_RANK_H

#include "kernel/kernel.h"

typedef struct bwi_rank_row {
    const char *name;
    int (*count)(bw_ranks *ranks);
    /* Replaces values, in memory of the context's kernels, by their sum over all ranks: a binary tree in order of rank. BW_CANCELLED
     * if another rank has left. */
    bw_status (*sum_floats)(bw_context *ctx, void *values, int64_t count);
    bw_status (*sum_doubles)(bw_context *ctx, void *values, int64_t count);
    /* The worst status of all ranks, so that all commit a step or none does. */
    bw_status (*agree)(bw_context *ctx, bw_status mine);
    /* This rank takes no further part: the others' calls return BW_CANCELLED instead of waiting for ever. */
    void (*leave)(bw_context *ctx);
} bwi_rank_row;

/* The row for this context (one rank if it has no group). */
const bwi_rank_row *bwi_rank_of(const bw_context *ctx);

#endif
