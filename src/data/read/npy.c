/* Samples from npy files: "x.npy", "x.npy,y.npy" or "x.npy,y.npy,w.npy". The files stay mapped; those in the other byte order are
 * copied once. */
#include "data/read/read.h"
#include "format/format.h"

#include <string.h>

static bw_status fail_size(bw_context *ctx, const char *path, const bwi_npy *npy, size_t found)
{
    char shape[256];
    return bwi_fail(ctx, BW_DATA_LOSS, "%s: shape %s of %s needs %zu bytes, the file holds %zu", path,
                    bwi_format_shape(shape, npy->ndim, npy->shape), bwi_dtype_name(npy->dtype), npy->bytes, found);
}

/* The size that the header declares must be exactly that of the file. */
static bw_status add_file(bw_dataset *root, const char *path, bwi_role role)
{
    bw_context *ctx = root->owned.ctx;
    bwi_bytes *file;
    bwi_npy npy;
    bw_status status = bwi_dataset_map_file(root, path, &file);
    if (status == BW_OK) {
        status = bwi_npy_begin(ctx, &npy, file->data, file->size, path);
    }
    if (status == BW_OK && npy.offset > file->size) {
        status = bwi_fail(ctx, BW_DATA_LOSS, "%s: an npy header of %zu bytes in a file of %zu", path, npy.offset, file->size);
    }
    if (status == BW_OK) {
        status = bwi_npy_parse(ctx, &npy, file->data, path);
    }
    if (status == BW_OK && npy.bytes != file->size - npy.offset) {
        status = fail_size(ctx, path, &npy, file->size - npy.offset);
    }
    if (status != BW_OK) {
        return status;
    }
    bw_array view = {.data = file->data + npy.offset, .dtype = npy.dtype, .ndim = npy.ndim};
    memcpy(view.shape, npy.shape, sizeof view.shape);
    bwi_npy_strides(&npy, view.strides);
    status = bwi_dataset_add(root, role, "", &view, path);
    if (status != BW_OK || !npy.swapped) {
        return status;
    }
    bwi_column *column = &root->columns[root->column_count - 1];
    column->memory = bwi_allocate(ctx, npy.bytes, 1);
    if (!column->memory) {
        return BW_RESOURCE_EXHAUSTED;
    }
    memcpy(column->memory, view.data, npy.bytes);
    bwi_npy_swap(&npy, column->memory);
    column->rows.data = column->memory;
    return BW_OK;
}

/* The position in the list says what a file holds: inputs, targets, weights. */
bw_status bwi_npy_read(bw_context *ctx, bw_dataset **root, const char *const *paths, int count, const bw_read_options *options)
{
    if (count > 3) {
        return bwi_fail(ctx, BW_INVALID_ARGUMENT, "%s and %d more: expected inputs, targets and weights: at most 3 npy files",
                        paths[0], count - 1);
    }
    bw_status status = bwi_read_options_check(ctx, paths[0], options, 0);
    bw_dataset *made = status == BW_OK ? bwi_dataset_root(ctx, &bwi_kind_arrays, count, 0) : NULL;
    if (status == BW_OK && !made) {
        status = BW_RESOURCE_EXHAUSTED;
    }
    for (int i = 0; i < count && status == BW_OK; i++) {
        status = add_file(made, paths[i], (bwi_role)i);
    }
    if (status == BW_OK) {
        status = bwi_dataset_settle(made, "");
    }
    if (status == BW_OK) {
        *root = made;
    } else {
        bw_dataset_free(made);
    }
    return status;
}
