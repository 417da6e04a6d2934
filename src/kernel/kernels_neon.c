/* The kernels for NEON, with vectors of 4 floats and 32 registers. Every AArch64 has it, so the loops are those of any processor. */
#define ISA portable
#define USE_NEON
#define WIDTH 4
#define REGISTERS 32
#define TABLE bwi_kernels_neon
#define TABLE_NAME "neon"
#include "kernel/fast/table.inc"
