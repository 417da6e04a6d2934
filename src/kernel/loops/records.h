/*
 * records: the gradient of a sparse variable. A record has a row (a double, which ranks add like a difference) and the `width`
 * floats of that row's difference; records are kept in the order of their places. A list of records has a pair for each: the row in
 * the upper 32 bits, the place in the lower ones. Once the list is sorted, a row's records stand together, in the order of places;
 * the first of them is the row's head.
 */
#ifndef BWI_KERNEL_RECORDS_H
#define BWI_KERNEL_RECORDS_H

#include "kernel/loops/lanes.h"

static inline int64_t bwi_record_row(uint64_t pair)
{
    return (int64_t)(pair >> 32);
}
static inline int64_t bwi_record_place(uint64_t pair)
{
    return (int64_t)(pair & UINT32_MAX);
}

enum { BWI_RECORD_TILES = 16 };

/* Which lane a record belongs to, from its place. The records of a piece's samples begin at `first`, `per_sample` for each, and
 * the first of them belongs to sample `offset` of the piece. The piece has `full` tiles of `tile` samples and then `last`
 * smaller ones, which begin at the samples `begins`; its first tile belongs to lane `lane` of `lanes`. */
typedef struct bwi_record_lanes {
    int64_t first, per_sample, offset;
    int64_t tile, full, last, begins[BWI_RECORD_TILES];
    int64_t lane, lanes;
} bwi_record_lanes;

typedef struct bwi_records_kernels {
    /* Sorts the pairs of `count` records, whose rows lie below `table_rows`, stably. True: the result is in `spare`, not in
     * `list`. */
    bool (*sort)(int64_t count, int64_t table_rows, const double *rows, uint64_t *list, uint64_t *spare);
    /* For each head among the sorted pairs from ... to - 1: adds the values of the row's records, in order, to the head's;
     * squared[i] receives the squared norm of the sum. */
    void (*sum)(int64_t from, int64_t to, int64_t count, int64_t width, const uint64_t *sorted, float *values, double *squared);
    /* After `sum` of all pairs: leaves only heads in the list, and sets the row of every other record to -1. Returns the number
     * of heads; their squared norms, added in order, go to *total, which lies in host memory. */
    int64_t (*heads)(int64_t count, uint64_t *sorted, double *rows, const double *squared, double *total);
    /* Moves the records whose row is not -1 to the front, in their order, and returns how many there are. */
    int64_t (*compact)(int64_t count, int64_t width, double *rows, float *values);
    /* Returns the squared norm of one lane's share of the gradient: of the rows' sums over that lane's records. To be called
     * before `sum`. The mean of squared gradients, if there is one, has the table's shape. */
    double (*lane_norm)(const bwi_record_lanes *lanes, int64_t lane, int64_t count, int64_t width, const uint64_t *sorted,
                        const float *values, const bwi_scaling *scaling);
    /* Puts the touched rows' part of elements first ... first + count - 1 of the whole gradient into `block`, which holds zeros;
     * with `clear`, makes it zero again. The list has `touched` heads. */
    void (*scatter)(int64_t first, int64_t count, int64_t width, int64_t touched, const uint64_t *heads, const float *values,
                    float *block, bool clear);
} bwi_records_kernels;

#endif
