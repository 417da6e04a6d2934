/*
 * rank: the ranks that train one model together: a single one, several in one process (threads.c), or processes of MPI (mpi.c). A
 * rank owns a run of the window's lanes and continues their binary tree of sums over ranks. A run that is no subtree of that tree
 * consists of a few, whose sums stay apart until their siblings arrive from other ranks (tree.c), so every number of ranks gives
 * the same bits.
 */
#ifndef BWI_RANK_H
#define BWI_RANK_H

#include "kernel/kernel.h"

/* A sum over lanes and ranks. */
typedef struct bwi_rank_sum {
    bool doubles; /* or floats */
    bwi_lane_division lanes;
    int used;      /* lanes from this one on hold nothing, and the tree passes over them */
    size_t stride; /* bytes from one lane of this rank to its next */
    int64_t count; /* values of a lane */
} bwi_rank_sum;

typedef struct bwi_rank_row {
    const char *name;
    int (*count)(bw_ranks *ranks);
    /* Replace values, in the memory of the context's kernels, by their sum over all ranks, a binary tree in the order of ranks.
     * BW_CANCELLED if another rank has left, BW_UNAVAILABLE if one is lost. */
    bw_status (*sum_floats)(bw_context *ctx, void *values, int64_t count);
    bw_status (*sum_doubles)(bw_context *ctx, void *values, int64_t count);
    /* Adds lanes: `first` is this rank's first lane, and those of its lanes with which a subtree of its run begins hold the sum of
     * that subtree. The sum of all lanes of all ranks replaces the first lane; that of a rank without used lanes holds -0.0 before.
     * NULL: the row takes one subtree of the same size from each rank only. */
    bw_status (*sum_lanes)(bw_context *ctx, void *first, const bwi_rank_sum *sum);
    /* Gives all ranks what each of them has: of the values, rank r has the bytes from begins[r] to begins[r + 1], the last one to
     * the end. All ranks name the same places. A rank that is cancelled takes part all the same, since the others have begun to
     * change their model. */
    bw_status (*gather)(bw_context *ctx, void *values, const size_t *begins);
    /* Returns the worst status of all ranks, so that either all commit a step or none does; its message is that rank's. */
    bw_status (*agree)(bw_context *ctx, bw_status mine);
    /* Ends this rank's part: the others' calls return BW_CANCELLED instead of waiting for ever. */
    void (*leave)(bw_context *ctx);
    /* Whether a thread beside the context's may make the calls, one at a time, and is likely to gain anything by it; the same on
     * all ranks. NULL: it may not. */
    bool (*beside)(bw_ranks *ranks);
    /* The bytes of the row's own that a sum needs, and nobody has used before the first one. NULL: none. */
    size_t (*bytes)(bw_ranks *ranks, const bwi_rank_sum *sum);
} bwi_rank_row;

/* The row for this context (one rank if it has no group). */
const bwi_rank_row *bwi_rank_of(const bw_context *ctx);
/* As sum_lanes and bytes, for every row. */
size_t bwi_rank_sum_bytes(const bw_context *ctx, const bwi_rank_sum *sum);
bw_status bwi_rank_sum_lanes(bw_context *ctx, void *first, const bwi_rank_sum *sum);

/* ---- A thread beside the context's (beside.c) ---- */

typedef struct bwi_beside bwi_beside;

/* Work that makes calls of the row, with a context of its own that stands for the rank's. */
typedef bw_status (*bwi_beside_work)(void *user, bw_context *ctx);

size_t bwi_beside_bytes(void); /* that it allocates */
bw_status bwi_beside_open(bw_context *ctx, bwi_beside **beside);
void bwi_beside_close(bwi_beside *beside); /* NULL is fine */
/* Starts work, one at a time. The rank's thread makes no calls of the row until it has waited for the end; a failure's message is
 * then its context's. */
void bwi_beside_start(bwi_beside *beside, bwi_beside_work work, void *user);
bw_status bwi_beside_wait(bwi_beside *beside);
/* The work waits until a number is zero; whoever makes it zero wakes it. */
void bwi_beside_await(bwi_beside *beside, atomic_int *number);
void bwi_beside_wake(bwi_beside *beside);

#endif
