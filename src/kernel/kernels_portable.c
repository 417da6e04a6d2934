/* The kernels for any CPU, with vectors of 4 floats, which every x86-64 and most other processors have. */
#define ISA portable
#define WIDTH 4
#define REGISTERS 16
#define TABLE bwi_kernels_portable
#define TABLE_NAME "portable"
#include "kernel/fast/table.inc"
