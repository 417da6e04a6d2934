/*
 * Fuzzing: each target takes any bytes as a file, lets the library read it, and uses what it got. A target fails by crashing, by a
 * sanitizer's report, by something that is left, or by taking more memory or time than the limits.
 */
#ifndef BW_FUZZ_H
#define BW_FUZZ_H

#include <stddef.h>
#include <stdint.h>

/* What one file of at most FUZZ_LARGEST bytes may make the library take from its allocator at a time. */
#define FUZZ_MEMORY ((size_t)64 << 20)
#define FUZZ_LARGEST ((size_t)1 << 20)
/* Seconds of the processor's time for one file, with sanitizers, too. It is not the clock's, so that a machine that does other things
 * is no failure. */
#define FUZZ_SECONDS 1.0

typedef struct fuzz_target fuzz_target;

/* NULL: there is no such target. */
const fuzz_target *fuzz_find(const char *name);
const char *fuzz_name(int index); /* NULL: no more */
void fuzz_run(const fuzz_target *target, const uint8_t *bytes, size_t size);

#endif
