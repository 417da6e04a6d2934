/*
 * api: the few calls of oneDNN that differ between its versions 2 and 3, under one name each (api_v2.c, api_v3.c),
 * and the process-wide engine (library.c). Version 2 has memory descriptors as structs and operation descriptors;
 * version 3 has opaque memory descriptors and none for operations. Everything else is oneDNN's own.
 */
#ifndef BWI_KERNEL_ONEDNN_API_H
#define BWI_KERNEL_ONEDNN_API_H

#include "kernel/internal.h"

#include <oneapi/dnnl/dnnl.h>
#include <oneapi/dnnl/dnnl_debug.h>

/* What is made once for the process and never freed, because oneDNN itself has global state. */
typedef struct bwi_dnnl_library {
    dnnl_status_t status; /* of making it; nothing else is valid unless dnnl_success */
    dnnl_engine_t engine;
    dnnl_primitive_attr_t attributes; /* the caller provides scratchpads; float32 stays float32 */
} bwi_dnnl_library;

const bwi_dnnl_library *bwi_dnnl_library_of(void);

/* A memory descriptor. All zero: none. Copies are deep; free each. */
typedef struct bwi_dnnl_layout {
    bool there;
    dnnl_memory_desc_t desc;
} bwi_dnnl_layout;

/* Where element (x0, x1, ...) of a blocked layout lies: the sum over dimensions d of xd's outer part times strides[d]
 * and its inner parts, the inner blocks being dense, the last one contiguous. */
typedef struct bwi_dnnl_blocking {
    int ndim, inner_count;
    int64_t strides[DNNL_MAX_NDIMS], inner_sizes[DNNL_MAX_NDIMS], inner_dimensions[DNNL_MAX_NDIMS];
} bwi_dnnl_blocking;

dnnl_status_t bwi_dnnl_layout_make(bwi_dnnl_layout *layout, int ndim, const int64_t *extents, dnnl_format_tag_t tag);
dnnl_status_t bwi_dnnl_layout_copy(bwi_dnnl_layout *copy, const bwi_dnnl_layout *from);
/* Copies the layout of a primitive's operand; if it has no such operand, the copy is a layout of nothing. */
dnnl_status_t bwi_dnnl_layout_query(bwi_dnnl_layout *layout, const_dnnl_primitive_desc_t primitive, dnnl_query_t what);
void bwi_dnnl_layout_free(bwi_dnnl_layout *layout);
bool bwi_dnnl_layout_equal(const bwi_dnnl_layout *a, const bwi_dnnl_layout *b);
size_t bwi_dnnl_layout_bytes(const bwi_dnnl_layout *layout); /* 0 for a layout of nothing */
/* False if the layout is not a blocked one. */
bool bwi_dnnl_layout_blocking(const bwi_dnnl_layout *layout, bwi_dnnl_blocking *blocking);

dnnl_status_t bwi_dnnl_memory_create(dnnl_memory_t *memory, const bwi_dnnl_layout *layout, void *data);

/* One pass of a convolution over these layouts (or their differences); bias may be NULL. `forward` is the hint that backward
 * passes need. */
typedef struct bwi_dnnl_problem {
    dnnl_alg_kind_t algorithm;
    dnnl_dims_t strides, dilation, pad_before, pad_after; /* dilation 0: none */
} bwi_dnnl_problem;

dnnl_status_t bwi_dnnl_convolution_describe(dnnl_primitive_desc_t *desc, bwi_conv_pass pass, const bwi_dnnl_problem *problem,
                                            const bwi_dnnl_layout *src, const bwi_dnnl_layout *weights, const bwi_dnnl_layout *bias,
                                            const bwi_dnnl_layout *dst, const_dnnl_primitive_desc_t forward);
dnnl_status_t bwi_dnnl_reorder_describe(dnnl_primitive_desc_t *desc, const bwi_dnnl_layout *from, const bwi_dnnl_layout *to);

#endif
