/* The kernels for AVX-512 (F, DQ, BW, VL), with vectors of 16 floats and 32 registers. */
#define ISA avx512
#define USE_AVX512
#define WIDTH 16
#define REGISTERS 32
#define TABLE bwi_kernels_avx512
#define TABLE_NAME "avx512"
#include "kernel/fast/table.inc"
