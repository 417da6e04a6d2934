/* The families of kernels that are loops, compiled for AVX2. */
#define ISA avx2
#include "kernel/loops/all.inc"
