/* Inside of the prefetcher: its settings, and the order that it follows. */
#ifndef BWI_DATA_RING_H
#define BWI_DATA_RING_H

#include "data/internal.h"

#include <pthread.h>

/* As bw_prefetch was told; 0: the default. */
typedef struct bwi_prefetch {
    int threads;
    int64_t samples;
    double seconds; /* negative: for ever */
} bwi_prefetch;

extern const bwi_dataset_kind bwi_source_prefetch; /* changes nothing; `own` is a bwi_prefetch */

/*
 * The order: the positions that workers will ask for, in their order. Within a piece the tiles are shared out by lanes, and as
 * many lanes as there are workers are taken at the same time; pieces follow each other to the end of the epoch.
 */
typedef struct bwi_prefetch_order {
    int64_t count;                /* samples of an epoch */
    int step;                     /* from one epoch to the next; -1: not known, so the order ends with the epoch */
    bwi_gather_schedule schedule; /* the piece at hand */
    bool open;                    /* there is one */
    int expected_epoch;
    int64_t expected_first;           /* of the piece after the one that was begun last */
    int64_t group, round, lane, tile; /* tile: samples of it that were handed out */
    int64_t ahead;                    /* epochs begun without having been told */
} bwi_prefetch_order;

/* A piece begins. True if it was expected: the order goes on; otherwise it begins with the piece. */
bool bwi_prefetch_order_begin(bwi_prefetch_order *order, const bwi_gather_schedule *schedule);
/* The position to come; false if none is known. */
bool bwi_prefetch_order_peek(bwi_prefetch_order *order, int *epoch, int64_t *position);
void bwi_prefetch_order_next(bwi_prefetch_order *order);

#endif
