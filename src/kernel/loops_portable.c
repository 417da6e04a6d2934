/* The families of plain loops, compiled for any processor. */
#define ISA portable
#include "kernel/loops/all.inc"
