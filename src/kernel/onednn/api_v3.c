/* api for oneDNN 3, whose memory descriptors are opaque objects with functions to query them. */
#include "kernel/onednn/api.h"

#include <string.h>

#if DNNL_VERSION_MAJOR >= 3

dnnl_status_t bwi_dnnl_layout_make(bwi_dnnl_layout *layout, int ndim, const int64_t *extents, dnnl_format_tag_t tag)
{
    dnnl_dims_t dims = {0};
    memcpy(dims, extents, (size_t)ndim * sizeof dims[0]);
    dnnl_status_t status = dnnl_memory_desc_create_with_tag(&layout->desc, ndim, dims, dnnl_f32, tag);
    layout->there = status == dnnl_success;
    return status;
}

dnnl_status_t bwi_dnnl_layout_copy(bwi_dnnl_layout *copy, const bwi_dnnl_layout *from)
{
    *copy = (bwi_dnnl_layout){0};
    if (!from->there) {
        return dnnl_success;
    }
    dnnl_status_t status = dnnl_memory_desc_clone(&copy->desc, from->desc);
    copy->there = status == dnnl_success;
    return status;
}

dnnl_status_t bwi_dnnl_layout_query(bwi_dnnl_layout *layout, const_dnnl_primitive_desc_t primitive, dnnl_query_t what)
{
    const_dnnl_memory_desc_t desc = dnnl_primitive_desc_query_md(primitive, what, 0);
    *layout = (bwi_dnnl_layout){0};
    if (!desc || dnnl_memory_desc_get_size(desc) == 0) {
        return dnnl_success;
    }
    dnnl_status_t status = dnnl_memory_desc_clone(&layout->desc, desc);
    layout->there = status == dnnl_success;
    return status;
}

void bwi_dnnl_layout_free(bwi_dnnl_layout *layout)
{
    if (layout->there) {
        dnnl_memory_desc_destroy(layout->desc);
    }
    *layout = (bwi_dnnl_layout){0};
}

bool bwi_dnnl_layout_equal(const bwi_dnnl_layout *a, const bwi_dnnl_layout *b)
{
    return a->there && b->there && dnnl_memory_desc_equal(a->desc, b->desc);
}

size_t bwi_dnnl_layout_bytes(const bwi_dnnl_layout *layout)
{
    return layout->there ? dnnl_memory_desc_get_size(layout->desc) : 0;
}

bool bwi_dnnl_layout_blocking(const bwi_dnnl_layout *layout, bwi_dnnl_blocking *blocking)
{
    dnnl_format_kind_t kind;
    dnnl_dims_t *strides, *sizes, *dimensions;
    dnnl_dim_t start;
    if (!layout->there || dnnl_memory_desc_query(layout->desc, dnnl_query_format_kind, &kind) != dnnl_success ||
        kind != dnnl_blocked || dnnl_memory_desc_query(layout->desc, dnnl_query_submemory_offset_s64, &start) != dnnl_success ||
        start != 0 || dnnl_memory_desc_query(layout->desc, dnnl_query_ndims_s32, &blocking->ndim) != dnnl_success ||
        dnnl_memory_desc_query(layout->desc, dnnl_query_inner_nblks_s32, &blocking->inner_count) != dnnl_success ||
        dnnl_memory_desc_query(layout->desc, dnnl_query_strides, &strides) != dnnl_success) {
        return false;
    }
    memcpy(blocking->strides, *strides, (size_t)blocking->ndim * sizeof blocking->strides[0]);
    if (blocking->inner_count == 0) {
        return true;
    }
    if (dnnl_memory_desc_query(layout->desc, dnnl_query_inner_blks, &sizes) != dnnl_success ||
        dnnl_memory_desc_query(layout->desc, dnnl_query_inner_idxs, &dimensions) != dnnl_success) {
        return false;
    }
    size_t bytes = (size_t)blocking->inner_count * sizeof blocking->inner_sizes[0];
    memcpy(blocking->inner_sizes, *sizes, bytes);
    memcpy(blocking->inner_dimensions, *dimensions, bytes);
    return true;
}

dnnl_status_t bwi_dnnl_memory_create(dnnl_memory_t *memory, const bwi_dnnl_layout *layout, void *data)
{
    return dnnl_memory_create(memory, layout->desc, bwi_dnnl_library_of()->engine, data);
}

dnnl_status_t bwi_dnnl_convolution_describe(dnnl_primitive_desc_t *desc, bwi_conv_pass pass, const bwi_dnnl_problem *problem,
                                            const bwi_dnnl_layout *src, const bwi_dnnl_layout *weights, const bwi_dnnl_layout *bias,
                                            const bwi_dnnl_layout *dst, const_dnnl_primitive_desc_t forward)
{
    const bwi_dnnl_problem *p = problem;
    const bwi_dnnl_library *library = bwi_dnnl_library_of();
    const_dnnl_memory_desc_t bias_desc = bias ? bias->desc : NULL;
    if (pass == BWI_CONV_FORWARD) {
        return dnnl_convolution_forward_primitive_desc_create(desc, library->engine, dnnl_forward_training, p->algorithm, src->desc,
                                                              weights->desc, bias_desc, dst->desc, p->strides, p->dilation,
                                                              p->pad_before, p->pad_after, library->attributes);
    }
    if (pass == BWI_CONV_BACKWARD_DATA) {
        return dnnl_convolution_backward_data_primitive_desc_create(desc, library->engine, p->algorithm, src->desc, weights->desc,
                                                                    dst->desc, p->strides, p->dilation, p->pad_before, p->pad_after,
                                                                    forward, library->attributes);
    }
    return dnnl_convolution_backward_weights_primitive_desc_create(desc, library->engine, p->algorithm, src->desc, weights->desc,
                                                                   bias_desc, dst->desc, p->strides, p->dilation, p->pad_before,
                                                                   p->pad_after, forward, library->attributes);
}

dnnl_status_t bwi_dnnl_reorder_describe(dnnl_primitive_desc_t *desc, const bwi_dnnl_layout *from, const bwi_dnnl_layout *to)
{
    const bwi_dnnl_library *library = bwi_dnnl_library_of();
    return dnnl_reorder_primitive_desc_create(desc, from->desc, library->engine, to->desc, library->engine, library->attributes);
}

#endif
