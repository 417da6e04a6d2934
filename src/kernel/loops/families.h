/*
 * The families of kernels that are written as loops over elements, which compilers vectorise. Each has a header with its struct,
 * bwi_<family>_kernels, and a file <family>.inc with the functions. loops_<isa>.c compiles all of them for one instruction set, and
 * never contracts a product and a sum into one rounding, so that every set gives the same bits.
 */
#ifndef BWI_KERNEL_FAMILIES_H
#define BWI_KERNEL_FAMILIES_H

#include "kernel/loops/arrange.h"
#include "kernel/loops/elementwise.h"
#include "kernel/loops/embedding.h"
#include "kernel/loops/gather.h"
#include "kernel/loops/lanes.h"
#include "kernel/loops/loss.h"
#include "kernel/loops/memory.h"
#include "kernel/loops/metric.h"
#include "kernel/loops/normalize.h"
#include "kernel/loops/optimize.h"
#include "kernel/loops/picture.h"
#include "kernel/loops/records.h"
#include "kernel/loops/reduce.h"
#include "kernel/loops/shapes.h"

/* One line for each family. */
#define BWI_FAMILIES(F) \
    F(arrange)          \
    F(elementwise)      \
    F(embedding)        \
    F(gather)           \
    F(lanes)            \
    F(loss)             \
    F(memory)           \
    F(metric)           \
    F(normalize)        \
    F(optimize)         \
    F(picture)          \
    F(records)          \
    F(reduce)

#endif
