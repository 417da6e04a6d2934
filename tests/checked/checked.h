/*
 * checked: a table of kernels whose arenas cannot be touched except while one of its kernels runs, so that a test faults where
 * anything above `kernel` reads or writes an element. It wraps the best table of this CPU and gives its bits; the wrappers are
 * made from the headers by make_wrappers, so that none can be missing. A test's program has it once it is linked with it;
 * BATCHWISE_ISA=checked chooses it.
 */
#ifndef BW_TEST_CHECKED_H
#define BW_TEST_CHECKED_H

#include "kernel/kernel.h"

/* Between the two all arenas can be read and written. They nest, and count over threads: with one worker nothing else runs
 * meanwhile, with several a touch from outside can go unseen while another worker's kernel runs. */
void checked_enter(void);
void checked_leave(void);

/* memory's own, which the wrappers leave to us. */
void *checked_memory_allocate(bw_context *ctx, size_t bytes);
void checked_memory_release(bw_context *ctx, void *arena, size_t bytes);
void *checked_memory_open(void *memory, size_t bytes);
void checked_memory_close(void *memory, size_t bytes);

extern const bwi_kernels *checked_base; /* what is wrapped */
extern bwi_kernels checked_kernels;

/* Made by make_wrappers: checked_kernels, over checked_base. */
void checked_wrap(void);

#endif
