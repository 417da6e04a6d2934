/* Inside of the ring: its settings, and the course that it follows. */
#ifndef BWI_DATA_RING_H
#define BWI_DATA_RING_H

#include "data/dataset.h"

#include <pthread.h>

/* As bw_prefetch was told; 0: the default. */
typedef struct bwi_prefetch {
    int threads;
    int64_t samples;
    double seconds; /* negative: for ever */
} bwi_prefetch;

extern const bwi_source bwi_source_prefetch; /* changes nothing; `own` is a bwi_prefetch */

/*
 * The course: the positions that workers will ask for, in their order. Within a piece the tiles are shared out by lanes, and as
 * many lanes as there are workers are taken at the same time; pieces follow each other to the end of the epoch.
 */
typedef struct bwi_course {
    int64_t count; /* samples of an epoch */
    int step;      /* from one epoch to the next; -1: not known, so the course ends with the epoch */
    bwi_walk walk; /* the piece at hand */
    bool open;     /* there is one */
    int expected_epoch;
    int64_t expected_first;           /* of the piece after the one that was begun last */
    int64_t group, round, lane, tile; /* tile: samples of it that were handed out */
    int64_t ahead;                    /* epochs begun without having been told */
} bwi_course;

/* A piece begins. True if it was expected: the course goes on; otherwise it begins with the piece. */
bool bwi_course_begin(bwi_course *course, const bwi_walk *walk);
/* The position to come; false if none is known. */
bool bwi_course_peek(bwi_course *course, int *epoch, int64_t *position);
void bwi_course_next(bwi_course *course);

#endif
