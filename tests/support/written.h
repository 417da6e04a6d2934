/* HDF5 files in memory and zip files on the disk, made by the library's writers from values that a test has. */
#ifndef BW_TEST_WRITTEN_H
#define BW_TEST_WRITTEN_H

#include "format/format.h"

#include <string.h>

typedef struct hdf5_values {
    const char *name;
    bw_dtype dtype;
    int ndim;
    const int64_t *shape;
    const void *data;
} hdf5_values;

/* *image is to be released. */
static inline bw_status make_hdf5(bw_context *ctx, const hdf5_values *values, int count, void **image, size_t *size)
{
    bwi_hdf5_part parts[16];
    bwi_hdf5_head head;
    *image = NULL;
    for (int i = 0; i < count; i++) {
        parts[i] =
            (bwi_hdf5_part){.name = values[i].name, .dtype = values[i].dtype, .ndim = values[i].ndim, .shape = values[i].shape};
    }
    bw_status status = bwi_hdf5_lay_out(ctx, parts, count, &head);
    unsigned char *made = status == BW_OK ? bwi_allocate(ctx, head.total, 1) : NULL;
    if (made) {
        memcpy(made, head.bytes, head.size);
        for (int i = 0; i < count; i++) {
            memcpy(made + parts[i].offset, values[i].data, parts[i].bytes);
        }
        *image = made;
        *size = head.total;
    }
    bwi_release(ctx, head.bytes);
    return made ? BW_OK : status == BW_OK ? BW_RESOURCE_EXHAUSTED : status;
}

typedef struct zip_values {
    const char *name;
    const void *data;
    size_t size;
} zip_values;

static inline bw_status put_members(bwi_zip_out *zip, const zip_values *members, int count)
{
    bw_status status = BW_OK;
    for (int i = 0; i < count && status == BW_OK; i++) {
        size_t half = members[i].size / 2; /* in two pieces */
        status = bwi_zip_out_begin(zip, members[i].name, members[i].size);
        status = status == BW_OK ? bwi_zip_out_put(zip, members[i].data, half) : status;
        status = status == BW_OK ? bwi_zip_out_put(zip, (const char *)members[i].data + half, members[i].size - half) : status;
        status = status == BW_OK ? bwi_zip_out_end(zip) : status;
    }
    return status == BW_OK ? bwi_zip_out_finish(zip) : status;
}

static inline bw_status write_zip(bw_context *ctx, const char *path, const zip_values *members, int count)
{
    bwi_file_out out;
    bw_status status = bwi_file_begin(ctx, &out, path);
    if (status == BW_OK) {
        bwi_zip_out zip = {.file = &out};
        status = put_members(&zip, members, count);
        bwi_zip_out_free(&zip);
    }
    return bwi_file_end(&out, status);
}

#endif
