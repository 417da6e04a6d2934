/*
 * records: the gradient of a sparse variable, as records of a row (a double, which ranks add like a difference) and the `width`
 * floats of its difference, in the order of their places. A list of them has, for each, a pair: the row in the upper 32 bits, the
 * place in the lower ones. Sorted, a row's records stand together, in the order of places; the first of them is the row's head.
 */
#ifndef BWI_KERNEL_RECORDS_H
#define BWI_KERNEL_RECORDS_H

#include "base/base.h"

static inline int64_t bwi_record_row(uint64_t pair)
{
    return (int64_t)(pair >> 32);
}
static inline int64_t bwi_record_place(uint64_t pair)
{
    return (int64_t)(pair & UINT32_MAX);
}

enum { BWI_RECORD_TILES = 16 };

/* Whose lane a record belongs to, from its place: those of a piece's samples begin at `first`, `per_sample` for each, the first of
 * them for sample `offset` of the piece. The piece has `full` tiles of `tile` samples and then `last` smaller ones, which begin at
 * the samples `begins`; its first tile belongs to lane `lane` of `lanes`. */
typedef struct bwi_record_lanes {
    int64_t first, per_sample, offset;
    int64_t tile, full, last, begins[BWI_RECORD_TILES];
    int64_t lane, lanes;
} bwi_record_lanes;

typedef struct bwi_records_kernels {
    /* Pairs of `count` records whose rows lie below `table_rows`, sorted, stably. True: they are in `spare`, not in `list`. */
    bool (*sort)(int64_t count, int64_t table_rows, const double *rows, uint64_t *list, uint64_t *spare);
    /* For heads among the sorted pairs from ... to - 1: the values of the row's records are added, in order, to the head's;
     * squared[i] gets the squared norm of the sum. */
    void (*sum)(int64_t from, int64_t to, int64_t count, int64_t width, const uint64_t *sorted, float *values, double *squared);
    /* After `sum` of all: leaves only heads in the list, and -1 as the row of every other record. How many there are; their squared
     * norms, added in order, go to *total, which lies in the host's memory. */
    int64_t (*heads)(int64_t count, uint64_t *sorted, double *rows, const double *squared, double *total);
    /* Moves records whose row is not -1 to the front, in their order. How many there are. */
    int64_t (*compact)(int64_t count, int64_t width, double *rows, float *values);
    /* Of the rows' sums over records of one lane only: the squared norm. Before `sum`. */
    double (*lane_norm)(const bwi_record_lanes *lanes, int64_t lane, int64_t count, int64_t width, const uint64_t *sorted,
                        const float *values);
    /* Elements first ... first + count - 1 of the whole gradient, of which `block` holds zeros: puts those of touched rows, or with
     * `clear` zeros in their place again. The list has `touched` heads. */
    void (*scatter)(int64_t first, int64_t count, int64_t width, int64_t touched, const uint64_t *heads, const float *values,
                    float *block, bool clear);
} bwi_records_kernels;

#endif
