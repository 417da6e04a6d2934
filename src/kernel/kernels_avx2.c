/* The kernels for AVX2 and FMA: 8 floats at once, 16 registers. */
#define ISA avx2
#define USE_AVX2
#define WIDTH 8
#define REGISTERS 16
#define TABLE bwi_kernels_avx2
#define TABLE_NAME "avx2"
#include "kernel/fast/table.inc"
