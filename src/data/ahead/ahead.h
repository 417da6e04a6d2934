/* ahead: samples that are prefetched in the order in which workers will ask for them, and samples that are cached once they were
 * made. */
#ifndef BWI_DATA_AHEAD_H
#define BWI_DATA_AHEAD_H

#include "data/internal.h"

/* ---- prefetcher.c ---- */

/* Marks the dataset as slow, so that its samples are prefetched. */
bw_status bwi_prefetcher_attach(bw_dataset *dataset);
void bwi_prefetcher_close(bwi_prefetcher *prefetcher); /* ends its threads; NULL is fine */
bw_status bwi_prefetcher_begin(bwi_prefetcher *prefetcher, const bw_dataset *dataset, const bwi_gather_schedule *schedule);
/* On a thread of a prefetcher: whether the thread is to end, so that the sample it is making is no longer needed. */
bool bwi_prefetcher_stopping(void);
/* Tells the threads to end. False if one is still making a sample after a second; it may never end, so what it works with must
 * stay. */
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
 * The positions that workers will ask for, in their order. Within a piece the tiles are distributed over lanes, and workers
 * process as many lanes at the same time as there are workers; pieces follow each other to the end of the epoch.
 */
typedef struct bwi_prefetch_order {
    int64_t count;                /* samples of an epoch */
    int step;                     /* from one epoch to the next; -1: not known, so the order ends with the epoch */
    bwi_gather_schedule schedule; /* the present piece */
    int64_t size;                 /* samples of a whole piece, as opposed to the last of an epoch */
    bool open;                    /* there is a present piece */
    int expected_epoch;
    int64_t expected_first;          /* of the piece after the one that was begun last */
    int64_t wave, round, lane, tile; /* indices of the next tile, where a wave is the lanes processed at the same time; `tile`
                                       * counts the samples of it that were handed out */
    int64_t ahead;                   /* epochs that the order has begun before the schedule says so */
} bwi_prefetch_order;

/* Begins a piece. True if it was expected and the order continues; otherwise the order starts anew with the piece. */
bool bwi_prefetch_order_begin(bwi_prefetch_order *order, const bwi_gather_schedule *schedule);
/* The next position; false if none is known. */
bool bwi_prefetch_order_peek(bwi_prefetch_order *order, int *epoch, int64_t *position);
void bwi_prefetch_order_next(bwi_prefetch_order *order);

#endif
