/*
 * memory: where a device keeps tensors, and the only ways in and out. An address from `allocate`, or one within its arena, is for
 * kernels alone: the host may add an offset to it, but must not dereference it except between open and close.
 */
#ifndef BWI_KERNEL_MEMORY_H
#define BWI_KERNEL_MEMORY_H

#include "base/base.h"

typedef struct bwi_memory_kernels {
    /* Allocates an arena: zeroed, aligned to BWI_CACHE_LINE, all its pages touched. NULL and a message if there is no memory. */
    void *(*allocate)(bw_context *ctx, size_t bytes);
    void (*release)(bw_context *ctx, void *arena, size_t bytes); /* NULL is fine */

    void (*write)(void *to, const void *host, size_t bytes);
    void (*read)(void *host, const void *from, size_t bytes);
    void (*copy)(void *to, const void *from, size_t bytes); /* within the device; the two do not overlap */
    void (*clear)(void *to, size_t bytes);                  /* all bits zero */
    void (*fill)(int64_t count, float value, float *to);

    /* Between open and close the host may use the bytes, at the address that open returns. This is for functions of the user. */
    void *(*open)(void *memory, size_t bytes);
    void (*close)(void *memory, size_t bytes);
} bwi_memory_kernels;

#endif
