/* ahead: samples that are prefetched, in the order in which workers will ask for them, or kept after they were made once. */
#ifndef BWI_DATA_AHEAD_H
#define BWI_DATA_AHEAD_H

#include "data/internal.h"

/* ---- prefetcher.c ---- */

/* Marks the dataset as slow: its samples are prefetched. */
bw_status bwi_prefetcher_attach(bw_dataset *dataset);
void bwi_prefetcher_close(bwi_prefetcher *prefetcher); /* ends its threads; NULL is fine */
bw_status bwi_prefetcher_begin(bwi_prefetcher *prefetcher, const bw_dataset *dataset, const bwi_gather_schedule *schedule);
/* On a thread of a prefetcher: whether it is to end, so that the sample which is being made is not wanted any more. */
bool bwi_prefetcher_stopping(void);
/* Tells the threads to end; false if one is still making a sample after a second, and may be for ever: what it works with must stay. */
bool bwi_prefetcher_quit(bwi_prefetcher *prefetcher);
bool bwi_prefetcher_runs(const bwi_prefetcher *prefetcher);
bw_status bwi_prefetcher_gather(bwi_prefetcher *prefetcher, const bw_dataset *dataset, const bwi_demand *demand);

/* ---- prefetch.c ---- */

/* The options of bw_prefetch; 0: the default. */
typedef struct bwi_prefetch {
    int threads;
    int64_t samples;
    double seconds; /* negative: no limit */
} bwi_prefetch;

extern const bwi_dataset_kind bwi_kind_prefetch; /* changes nothing; `state` is a bwi_prefetch */

/*
 * The order: the positions that workers will ask for, in their order. Within a piece the tiles are shared out by lanes, and as
 * many lanes as there are workers are taken at the same time; pieces follow each other to the end of the epoch.
 */
typedef struct bwi_prefetch_order {
    int64_t count;                /* samples of an epoch */
    int step;                     /* from one epoch to the next; -1: not known, so the order ends with the epoch */
    bwi_gather_schedule schedule; /* the present piece */
    bool open;                    /* there is one */
    int expected_epoch;
    int64_t expected_first;           /* of the piece after the one that was begun last */
    int64_t group, round, lane, tile; /* tile: samples of it that were handed out */
    int64_t ahead;                    /* epochs begun before the schedule says so */
} bwi_prefetch_order;

/* A piece begins. True if it was expected: the order goes on; otherwise it begins with the piece. */
bool bwi_prefetch_order_begin(bwi_prefetch_order *order, const bwi_gather_schedule *schedule);
/* The next position; false if none is known. */
bool bwi_prefetch_order_peek(bwi_prefetch_order *order, int *epoch, int64_t *position);
void bwi_prefetch_order_next(bwi_prefetch_order *order);

#endif
