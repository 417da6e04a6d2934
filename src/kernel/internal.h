/* What the files of kernel share: parts that all tables here have in common. */
#ifndef BWI_KERNEL_INTERNAL_H
#define BWI_KERNEL_INTERNAL_H

#include "kernel/kernel.h"

extern const bwi_packing_kernels bwi_packing_host;           /* packing.c; of all tables here */
extern const bwi_convolution_kernels bwi_convolution_onednn; /* onednn/convolution.c; of all tables here */

/* Keeps oneDNN to the instruction set of the table of that name. Without effect once oneDNN has compiled anything. */
void bwi_onednn_limit(const char *instruction_set);

#endif
