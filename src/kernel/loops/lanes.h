/*
 * lanes: sums over lanes and ranks, and the checks that an update makes. The vector kernels lanes_sum and add (kernel.h) sum
 * floats; these are the others.
 */
#ifndef BWI_KERNEL_LANES_H
#define BWI_KERNEL_LANES_H

#include "base/base.h"

/* Each rank owns a run of the window's lanes. Those that a window usually fills are divided evenly, and the last rank owns the
 * others. */
typedef struct bwi_lane_division {
    int lanes;   /* of all ranks */
    int divided; /* at least one for each rank */
} bwi_lane_division;

/* The first lane of a rank's run; for the number of ranks: the number of lanes. */
static inline int bwi_rank_lane(bwi_lane_division all, int ranks, int rank)
{
    return rank == ranks ? all.lanes : (int)((int64_t)all.divided * rank / ranks);
}

/* A run of lanes consists of a few whole subtrees of the lanes' tree. The lanes of the largest one that begins with `first` and
 * lies before `end`. */
static inline int bwi_subtree(int first, int end)
{
    int size = 1;
    while (first % (2 * size) == 0 && end - first >= 2 * size) {
        size *= 2;
    }
    return size;
}

typedef enum bwi_finiteness { BWI_FINITE, BWI_NAN, BWI_INFINITE } bwi_finiteness;

/* How an optimizer such as Adam scales a gradient: it divides it by sqrt(correction v + floor) + epsilon. */
typedef struct bwi_scaling {
    const void *v; /* the mean of squared gradients, an element for each; NULL: nothing is scaled */
    double correction, floor, epsilon;
} bwi_scaling;

typedef struct bwi_lanes_kernels {
    /* Adds `lanes` vectors, a power of two, `stride` doubles apart, as a binary tree over their numbers into the first. */
    void (*sum_doubles)(int64_t count, int lanes, int64_t stride, double *first);
    /* values += host, where `host` lies in host memory and is what another rank has; `values` may lie there, too. */
    void (*add_floats)(int64_t count, const float *host, float *values);
    void (*add_doubles)(int64_t count, const double *host, double *values);
    void (*scale)(int64_t count, float factor, float *values);   /* values *= factor */
    bwi_finiteness (*finiteness)(int64_t count, const float *x); /* the kind of the first element that is not finite */
    /* For the gradient noise scale: adds to squares[l] the squared norm of the l-th of `lanes` scaled vectors, `stride` floats
     * apart, and to squares[lanes] that of their sum. */
    void (*squares)(int64_t count, int lanes, int64_t stride, const float *first, const bwi_scaling *scaling, double *squares);
    double (*mean_above_zero)(int64_t count, const float *x); /* of the elements above 0; 0: there are none */
} bwi_lanes_kernels;

#endif
