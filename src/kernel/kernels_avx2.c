/* The kernels for AVX2 and FMA, with vectors of 8 floats and 16 registers. */
#define ISA avx2
#define USE_AVX2
#define WIDTH 8
#define REGISTERS 16
#define TABLE bwi_kernels_avx2
#define TABLE_NAME "avx2"
#include "kernel/fast/table.inc"
