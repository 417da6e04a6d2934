/*
 * rank: the ranks that train one model together: a single one, or several in one process (threads.c). MPI would be one more row. A
 * rank owns an aligned block of lanes and continues the binary tree of sums over ranks. Every sum here is a butterfly of
 * commutative additions, so that all ranks get the same bits.
 */
#ifndef BWI_RANK_H
#define BWI_RANK_H

#include "kernel/kernel.h"

typedef struct bwi_rank_row {
    const char *name;
    int (*count)(bw_ranks *ranks);
    /* Replace values, in the memory of the context's kernels, by their sum over all ranks, a binary tree in the order of ranks.
     * BW_CANCELLED if another rank has left. */
    bw_status (*sum_floats)(bw_context *ctx, void *values, int64_t count);
    bw_status (*sum_doubles)(bw_context *ctx, void *values, int64_t count);
    /* Returns the worst status of all ranks, so that either all commit a step or none does. */
    bw_status (*agree)(bw_context *ctx, bw_status mine);
    /* Ends this rank's part: the others' calls return BW_CANCELLED instead of waiting for ever. */
    void (*leave)(bw_context *ctx);
} bwi_rank_row;

/* The row for this context (one rank if it has no group). */
const bwi_rank_row *bwi_rank_of(const bw_context *ctx);

#endif
