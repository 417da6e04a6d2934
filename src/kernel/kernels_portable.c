/* The kernels for any CPU: 4 floats at once, which is what x86-64 and most others have from the start. */
#define ISA portable
#define WIDTH 4
#define REGISTERS 16
#define TABLE bwi_kernels_portable
#define TABLE_NAME "portable"
#include "kernel/fast/table.inc"
