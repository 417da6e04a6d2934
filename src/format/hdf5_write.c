/* HDF5 files made in memory: datasets by their paths, without time stamps, so that the same values give the same bytes. */
#include "format/format.h"
#include "format/hdf5_library.h"

struct bwi_hdf5_writer {
    bw_context *ctx;
    hid_t file, link, plan;
};

static bw_status fail_writing(bw_context *ctx, const char *what)
{
    return bwi_fail(ctx, BW_RESOURCE_EXHAUSTED, "cannot make an HDF5 file in memory: %s", what);
}

bw_status bwi_hdf5_begin(bw_context *ctx, bwi_hdf5_writer **writer)
{
    bwi_hdf5_host h;
    char name[64];
    *writer = NULL;
    bwi_hdf5_writer *w = bwi_allocate(ctx, 1, sizeof *w);
    if (!w) {
        return BW_RESOURCE_EXHAUSTED;
    }
    bwi_hdf5_enter(&h);
    hid_t access = bwi_hdf5_memory(name);
    *w = (bwi_hdf5_writer){.ctx = ctx, .file = -1, .link = H5Pcreate(H5P_LINK_CREATE), .plan = H5Pcreate(H5P_DATASET_CREATE)};
    bool made = access >= 0 && H5Pset_create_intermediate_group(w->link, 1) >= 0 && H5Pset_obj_track_times(w->plan, 0) >= 0;
    if (made) {
        w->file = H5Fcreate(name, H5F_ACC_TRUNC, H5P_DEFAULT, access);
    }
    H5Pclose(access);
    bwi_hdf5_leave(&h);
    if (w->file < 0) {
        bwi_hdf5_drop(w);
        return fail_writing(ctx, "it cannot be created");
    }
    *writer = w;
    return BW_OK;
}

static hid_t file_type(bw_dtype dtype)
{
    return dtype == BW_F32 ? H5T_IEEE_F32LE : dtype == BW_I64 ? H5T_STD_I64LE : H5T_STD_I32LE;
}

static hid_t memory_type(bw_dtype dtype)
{
    return dtype == BW_F32 ? H5T_NATIVE_FLOAT : dtype == BW_I64 ? H5T_NATIVE_INT64 : H5T_NATIVE_INT32;
}

bw_status bwi_hdf5_put(bwi_hdf5_writer *w, const bwi_hdf5_part *part)
{
    bwi_hdf5_host h;
    hsize_t extents[BW_MAX_NDIM];
    for (int i = 0; i < part->ndim; i++) {
        extents[i] = (hsize_t)part->shape[i];
    }
    bwi_hdf5_enter(&h);
    hid_t space = part->ndim ? H5Screate_simple(part->ndim, extents, NULL) : H5Screate(H5S_SCALAR);
    hid_t dataset = H5Dcreate2(w->file, part->name, file_type(part->dtype), space, w->link, w->plan, H5P_DEFAULT);
    bool written = dataset >= 0 && H5Dwrite(dataset, memory_type(part->dtype), H5S_ALL, H5S_ALL, H5P_DEFAULT, part->data) >= 0;
    H5Dclose(dataset);
    H5Sclose(space);
    bwi_hdf5_leave(&h);
    return written ? BW_OK : fail_writing(w->ctx, part->name);
}

/* The driver that keeps files in memory gives the address of its pointer to the bytes. Up to version 1 of the file's head, its byte 20
 * says that the file is open; a copy of the image would have it cleared. */
bw_status bwi_hdf5_look(bwi_hdf5_writer *w, const void **image, size_t *size)
{
    bwi_hdf5_host h;
    void *handle = NULL;
    bwi_hdf5_enter(&h);
    ssize_t bytes = H5Fflush(w->file, H5F_SCOPE_GLOBAL) < 0 ? -1 : H5Fget_file_image(w->file, NULL, 0);
    bool found = bytes > 0 && H5Fget_vfd_handle(w->file, H5P_DEFAULT, &handle) >= 0 && handle;
    bwi_hdf5_leave(&h);
    if (!found) {
        return fail_writing(w->ctx, "it cannot be finished");
    }
    enum { VERSION = 8, IS_OPEN = 20 };
    unsigned char *head = *(void *const *)handle;
    if (head[VERSION] > 1) {
        return bwi_fail(w->ctx, BW_UNIMPLEMENTED, "an HDF5 file with a head of version %d is copied", head[VERSION]);
    }
    head[IS_OPEN] = 0;
    *image = head;
    *size = (size_t)bytes;
    return BW_OK;
}

bw_status bwi_hdf5_finish(bwi_hdf5_writer *w, void **image, size_t *size)
{
    bwi_hdf5_host h;
    *image = NULL;
    *size = 0;
    bwi_hdf5_enter(&h);
    ssize_t bytes = H5Fflush(w->file, H5F_SCOPE_GLOBAL) < 0 ? -1 : H5Fget_file_image(w->file, NULL, 0);
    void *made = bytes > 0 ? bwi_allocate(w->ctx, (size_t)bytes, 1) : NULL;
    bool taken = made && H5Fget_file_image(w->file, made, (size_t)bytes) == bytes;
    bwi_hdf5_leave(&h);
    bw_context *ctx = w->ctx;
    bwi_hdf5_drop(w);
    if (!taken) {
        bwi_release(ctx, made);
        return bytes > 0 && !made ? BW_RESOURCE_EXHAUSTED : fail_writing(ctx, "it cannot be finished");
    }
    *image = made;
    *size = (size_t)bytes;
    return BW_OK;
}

void bwi_hdf5_drop(bwi_hdf5_writer *w)
{
    bwi_hdf5_host h;
    if (!w) {
        return;
    }
    bwi_hdf5_enter(&h);
    H5Pclose(w->link);
    H5Pclose(w->plan);
    if (w->file >= 0) {
        H5Fclose(w->file);
    }
    bwi_hdf5_leave(&h);
    bwi_release(w->ctx, w);
}
