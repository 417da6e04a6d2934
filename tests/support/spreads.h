/*
 * Pairs of shapes, the smaller of which is repeated over the larger, for tests of kernels that take a bwi_spread. An obvious
 * formula finds where an element of the large array lies in the small one, by its index along each axis.
 */
#ifndef BWI_TEST_SPREADS_H
#define BWI_TEST_SPREADS_H

#include "support/kernel_check.h"

#include "op/op.h"

typedef struct shapes {
    bwi_shape large, small;
} shapes;

static const shapes spreads[] = {
    {{0, {0}}, {0, {0}}},
    {{1, {7}}, {1, {7}}},
    {{1, {7}}, {1, {1}}},
    {{1, {7}}, {0, {0}}},
    {{2, {3, 5}}, {1, {5}}},
    {{2, {3, 5}}, {2, {3, 1}}},
    {{3, {3, 5, 17}}, {3, {1, 1, 17}}},
    {{3, {3, 5, 17}}, {3, {3, 1, 17}}},
    {{3, {3, 5, 17}}, {3, {1, 5, 1}}},
    {{4, {3, 2, 1, 67}}, {4, {3, 1, 1, 67}}},
    {{4, {3, 2, 5, 4}}, {4, {1, 2, 1, 4}}},
    {{4, {3, 2, 5, 4}}, {4, {3, 1, 5, 1}}},
};

/* The element of the small array for element `e` of the large one. */
static inline int64_t small_at(const shapes *s, int64_t e)
{
    int shift = s->large.ndim - s->small.ndim;
    int64_t at = 0, stride = 1;
    for (int i = s->large.ndim - 1; i >= shift; i--) {
        int64_t index = e % s->large.extent[i], extent = s->small.extent[i - shift];
        at += extent == 1 ? 0 : index * stride;
        stride *= extent;
        e /= s->large.extent[i];
    }
    return at;
}

#endif
