/* api for oneDNN 2: memory descriptors are structs, so copies need no memory and freeing does nothing. */
#include "kernel/onednn/api.h"

#include <string.h>

#if DNNL_VERSION_MAJOR == 2

dnnl_status_t bwi_dnnl_layout_make(bwi_dnnl_layout *layout, int ndim, const int64_t *extents, dnnl_format_tag_t tag)
{
    dnnl_dims_t dims = {0};
    memcpy(dims, extents, (size_t)ndim * sizeof dims[0]);
    dnnl_status_t status = dnnl_memory_desc_init_by_tag(&layout->desc, ndim, dims, dnnl_f32, tag);
    layout->there = status == dnnl_success;
    return status;
}

dnnl_status_t bwi_dnnl_layout_copy(bwi_dnnl_layout *copy, const bwi_dnnl_layout *from)
{
    *copy = *from;
    return dnnl_success;
}

dnnl_status_t bwi_dnnl_layout_query(bwi_dnnl_layout *layout, const_dnnl_primitive_desc_t primitive, dnnl_query_t what)
{
    const dnnl_memory_desc_t *desc = dnnl_primitive_desc_query_md(primitive, what, 0);
    layout->there = desc && desc->ndims > 0;
    if (layout->there) {
        layout->desc = *desc;
    }
    return dnnl_success;
}

void bwi_dnnl_layout_free(bwi_dnnl_layout *layout)
{
    layout->there = false;
}

bool bwi_dnnl_layout_equal(const bwi_dnnl_layout *a, const bwi_dnnl_layout *b)
{
    return a->there && b->there && dnnl_memory_desc_equal(&a->desc, &b->desc);
}

size_t bwi_dnnl_layout_bytes(const bwi_dnnl_layout *layout)
{
    return layout->there ? dnnl_memory_desc_get_size(&layout->desc) : 0;
}

bool bwi_dnnl_layout_blocking(const bwi_dnnl_layout *layout, bwi_dnnl_blocking *blocking)
{
    const dnnl_memory_desc_t *desc = &layout->desc;
    if (!layout->there || desc->format_kind != dnnl_blocked || desc->offset0 != 0 ||
        desc->extra.flags != dnnl_memory_extra_flag_none) {
        return false;
    }
    blocking->ndim = desc->ndims;
    blocking->inner_count = desc->format_desc.blocking.inner_nblks;
    memcpy(blocking->strides, desc->format_desc.blocking.strides, sizeof blocking->strides);
    memcpy(blocking->inner_sizes, desc->format_desc.blocking.inner_blks, sizeof blocking->inner_sizes);
    memcpy(blocking->inner_dimensions, desc->format_desc.blocking.inner_idxs, sizeof blocking->inner_dimensions);
    return true;
}

dnnl_status_t bwi_dnnl_memory_create(dnnl_memory_t *memory, const bwi_dnnl_layout *layout, void *data)
{
    return dnnl_memory_create(memory, &layout->desc, bwi_dnnl_library_of()->engine, data);
}

/* Version 2 describes an operation first and makes the primitive from that; version 3 (api_v3.c) does both in one call. */
dnnl_status_t bwi_dnnl_convolution_describe(dnnl_primitive_desc_t *desc, bwi_conv_pass pass, const bwi_dnnl_problem *problem,
                                            const bwi_dnnl_layout *src, const bwi_dnnl_layout *weights, const bwi_dnnl_layout *bias,
                                            const bwi_dnnl_layout *dst, const_dnnl_primitive_desc_t forward)
{
    const bwi_dnnl_problem *p = problem;
    const bwi_dnnl_library *library = bwi_dnnl_library_of();
    const dnnl_memory_desc_t *bias_desc = bias ? &bias->desc : NULL;
    dnnl_convolution_desc_t operation;
    dnnl_status_t status;
    if (pass == BWI_CONV_FORWARD) {
        status =
            dnnl_dilated_convolution_forward_desc_init(&operation, dnnl_forward_training, p->algorithm, &src->desc, &weights->desc,
                                                       bias_desc, &dst->desc, p->strides, p->dilation, p->pad_before, p->pad_after);
    } else if (pass == BWI_CONV_BACKWARD_DATA) {
        status = dnnl_dilated_convolution_backward_data_desc_init(&operation, p->algorithm, &src->desc, &weights->desc, &dst->desc,
                                                                  p->strides, p->dilation, p->pad_before, p->pad_after);
    } else {
        status =
            dnnl_dilated_convolution_backward_weights_desc_init(&operation, p->algorithm, &src->desc, &weights->desc, bias_desc,
                                                                &dst->desc, p->strides, p->dilation, p->pad_before, p->pad_after);
    }
    if (status != dnnl_success) {
        return status;
    }
    return dnnl_primitive_desc_create(desc, &operation, library->attributes, library->engine, forward);
}

dnnl_status_t bwi_dnnl_reorder_describe(dnnl_primitive_desc_t *desc, const bwi_dnnl_layout *from, const bwi_dnnl_layout *to)
{
    const bwi_dnnl_library *library = bwi_dnnl_library_of();
    return dnnl_reorder_primitive_desc_create(desc, &from->desc, library->engine, &to->desc, library->engine, library->attributes);
}

#endif
