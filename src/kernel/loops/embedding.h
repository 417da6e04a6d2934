/*
 * embedding: rows of a table by index. Indices are int32, or whole numbers in float32; a float that is not a whole number from 0 to
 * 2^24 is not the index of any row.
 */
#ifndef BWI_KERNEL_EMBEDDING_H
#define BWI_KERNEL_EMBEDDING_H

#include "base/base.h"

typedef struct bwi_embedding_kernels {
    /* to[i] = table[indices[i]], rows of `width` floats. Returns the first i whose index is not one of the table's `rows`, or -1
     * if all are. */
    int64_t (*lookup)(bw_dtype dtype, int64_t count, int64_t rows, int64_t width, const void *indices, const float *table,
                      float *to);
    /* Writes a record for each index: its row, and the difference of the row that was looked up. */
    void (*record)(bw_dtype dtype, int64_t count, int64_t width, const void *indices, const float *difference, double *rows,
                   float *values);
    void (*mask)(bw_dtype dtype, int64_t count, const void *indices, float *to); /* 0 where the index is 0, 1 elsewhere */
} bwi_embedding_kernels;

#endif
