/*
 * rows: a tile as losses and metrics see it. The last axis of a prediction is a row; a sample has one row, or one for each of its
 * positions. A target has the same rows, or a class number for each, and there may be weights.
 */
#ifndef BWI_KERNEL_ROWS_H
#define BWI_KERNEL_ROWS_H

#include "base/base.h"

typedef struct bwi_rows {
    int64_t samples;
    int64_t count;   /* rows of a sample */
    int64_t width;   /* numbers of a row */
    int64_t weights; /* of a sample: none (0), one, or one for each row */
} bwi_rows;

#endif
