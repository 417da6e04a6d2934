/* What the files of kernel share: the parts that the tables for all instruction sets have in common. */
#ifndef BWI_KERNEL_INTERNAL_H
#define BWI_KERNEL_INTERNAL_H

#include "kernel/kernel.h"

extern const bwi_packing_kernels bwi_packing_host;           /* packing.c; of all tables here */
extern const bwi_convolution_kernels bwi_convolution_onednn; /* onednn/convolution.c */
extern const bwi_convolution_kernels bwi_convolution_direct; /* direct.c */

/* The convolution of all tables here. */
#ifdef BW_WITHOUT_ONEDNN
#define BWI_CONVOLUTION bwi_convolution_direct
#else
#define BWI_CONVOLUTION bwi_convolution_onednn
#endif

/* Limits oneDNN to the instruction set of the table with that name. It has no effect once oneDNN has compiled anything. */
void bwi_onednn_limit(const char *instruction_set);
/* oneDNN computes with OpenMP, which is limited to the calling thread from `begin` to `end`. `begin` returns the setting that
 * `end` restores. */
int bwi_onednn_begin(void);
void bwi_onednn_end(int setting);

/* How many places a kernel has. */
static inline int64_t bwi_conv_places(const bwi_conv_shape *s)
{
    return (s->kd ? s->kd : 1) * s->kh * s->kw;
}

/* Says how many times as much as one core several do, from what some turns gave, which are put in order (limits.c). */
double bwi_growth_of_repeats(double *ratios, int repeats, int cores, bool *unsteady);

#endif
