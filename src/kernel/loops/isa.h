/* Names the families' tables of the instruction set ISA, which the including file defines: FAMILY(loss) is bwi_loss_avx2. */
#ifndef BWI_KERNEL_ISA_H
#define BWI_KERNEL_ISA_H

#include "kernel/loops/families.h"

#define BWI_PASTE(family, isa) bwi_##family##_##isa
#define BWI_FAMILY(family, isa) BWI_PASTE(family, isa)
#define FAMILY(family) BWI_FAMILY(family, ISA)

#define BWI_DECLARE(family) extern const bwi_##family##_kernels FAMILY(family);
BWI_FAMILIES(BWI_DECLARE)
#undef BWI_DECLARE

#endif
