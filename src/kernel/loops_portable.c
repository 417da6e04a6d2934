/* The families of kernels that are loops, compiled for any processor. */
#define ISA portable
#include "kernel/loops/all.inc"
