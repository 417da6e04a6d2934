/*
 * The kernels for NEON, with vectors of 4 floats. Every AArch64 has it, so the loops are those of any processor. There are 32
 * registers, but the blocks that use them all are laid out for vectors of 16 floats (thin.inc), so these are the blocks for 16.
 */
#define ISA portable
#define USE_NEON
#define WIDTH 4
#define REGISTERS 16
#define TABLE bwi_kernels_neon
#define TABLE_NAME "neon"
#include "kernel/fast/table.inc"
