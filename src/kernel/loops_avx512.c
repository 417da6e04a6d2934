/* The families of kernels that are loops, compiled for AVX-512. */
#define ISA avx512
#include "kernel/loops/all.inc"
