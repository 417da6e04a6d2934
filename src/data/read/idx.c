/*
 * Samples from IDX files, the format of MNIST: images and labels, uncompressed or packed by gzip, given as a list of two files in
 * either order or as the folder that holds them under their usual names. Images of two axes get a third, the channel. The bytes of
 * uncompressed files stay mapped; packed values, and those wider than a byte (IDX is big-endian), are copied once.
 */
#include "data/read/read.h"
#include "format/format.h"

#include <stdio.h>
#include <string.h>

#define PREFIX 4

typedef struct idx {
    bw_dtype dtype;
    int ndim;
    int64_t shape[BW_MAX_NDIM];
    size_t offset, bytes;
    const unsigned char *data; /* of an uncompressed file */
    void *memory;              /* values that were unpacked or swapped */
} idx;

/* IDX begins with two zero bytes, a code of the type and the number of axes. */
static bw_status parse_type(bw_context *ctx, idx *x, const unsigned char *prefix, const char *path)
{
    static const struct {
        unsigned char code;
        bw_dtype dtype;
    } types[] = {{0x08, BW_U8}, {0x09, BW_I8}, {0x0B, BW_I16}, {0x0C, BW_I32}, {0x0D, BW_F32}, {0x0E, BW_F64}};
    char quoted[BWI_QUOTE_SIZE];
    if (prefix[0] != 0 || prefix[1] != 0) {
        return bwi_fail(ctx, BW_DATA_LOSS, "%s: is no IDX file: it begins with %s", path, bwi_quote(quoted, prefix, PREFIX));
    }
    for (size_t i = 0; i < BWI_COUNT(types); i++) {
        if (types[i].code != prefix[2]) {
            continue;
        }
        x->dtype = types[i].dtype;
        x->ndim = prefix[3];
        if (x->ndim < 1 || x->ndim >= BW_MAX_NDIM) {
            return bwi_fail(ctx, BW_INVALID_ARGUMENT, "%s: %d axes; expected 1 to %d", path, x->ndim, BW_MAX_NDIM - 1);
        }
        x->offset = PREFIX + 4 * (size_t)x->ndim;
        return BW_OK;
    }
    return bwi_fail(ctx, BW_DATA_LOSS, "%s: 0x%02x is no type of IDX values", path, prefix[2]);
}

static bw_status parse_shape(bw_context *ctx, idx *x, const unsigned char *at, const char *path)
{
    size_t bytes = bwi_dtype_size(x->dtype);
    char shape[256];
    for (int i = 0; i < x->ndim; i++, at += 4) {
        x->shape[i] = (int64_t)at[0] << 24 | at[1] << 16 | at[2] << 8 | at[3];
        bytes = bwi_size_multiply(bytes, (size_t)x->shape[i]);
    }
    x->bytes = bytes;
    if (bytes > SIZE_MAX / 4) {
        return bwi_fail(ctx, BW_INVALID_ARGUMENT, "%s: shape %s is larger than memory can be", path,
                        bwi_format_shape(shape, x->ndim, x->shape));
    }
    return BW_OK;
}

static bw_status fail_size(bw_context *ctx, const idx *x, const char *path, const char *found)
{
    char shape[256];
    return bwi_fail(ctx, BW_DATA_LOSS, "%s: shape %s of %s needs %zu bytes, the file holds %s", path,
                    bwi_format_shape(shape, x->ndim, x->shape), bwi_dtype_name(x->dtype), x->bytes, found);
}

/* Unpacks into memory whose size doubles, because the size that the header claims is trusted only as far as bytes arrive. */
static bw_status unpack(bw_context *ctx, idx *x, bwi_gzip *gzip, const char *path)
{
    size_t capacity = (size_t)1 << 20, filled = 0;
    bw_status status = BW_OK;
    char more;
    while (status == BW_OK && filled < x->bytes) {
        size_t got;
        capacity = capacity < x->bytes ? capacity : x->bytes;
        void *larger = bwi_grow(ctx, x->memory, filled, capacity, 1);
        if (!larger) {
            return BW_RESOURCE_EXHAUSTED;
        }
        x->memory = larger;
        status = bwi_gzip_read(gzip, (char *)x->memory + filled, capacity - filled, &got);
        filled += got;
        if (status == BW_OK && filled < capacity) {
            return fail_size(ctx, x, path, "fewer");
        }
        capacity *= 2;
    }
    size_t got = 0;
    if (status == BW_OK) {
        status = bwi_gzip_read(gzip, &more, 1, &got);
    }
    return status == BW_OK && got ? fail_size(ctx, x, path, "more") : status;
}

/* The header is unpacked first, because the size of the values can be checked while they are unpacked only if the shape is
 * known. */
static bw_status read_packed(bw_context *ctx, idx *x, const bwi_bytes *file, bool any, const char *path)
{
    unsigned char head[PREFIX + 4 * BW_MAX_NDIM];
    bwi_gzip *gzip;
    size_t got;
    bw_status status = bwi_gzip_open(ctx, &gzip, file, any, path);
    if (status == BW_OK) {
        status = bwi_gzip_read(gzip, head, PREFIX, &got);
    }
    if (status == BW_OK && got < PREFIX) {
        status = bwi_fail(ctx, BW_DATA_LOSS, "%s: %zu bytes are too few for an IDX file", path, got);
    }
    if (status == BW_OK) {
        status = parse_type(ctx, x, head, path);
    }
    if (status == BW_OK) {
        status = bwi_gzip_read(gzip, head + PREFIX, x->offset - PREFIX, &got);
    }
    if (status == BW_OK && got < x->offset - PREFIX) {
        status = bwi_fail(ctx, BW_DATA_LOSS, "%s: ends within its header", path);
    }
    if (status == BW_OK) {
        status = parse_shape(ctx, x, head + PREFIX, path);
    }
    if (status == BW_OK) {
        status = unpack(ctx, x, gzip, path);
    }
    bwi_gzip_close(gzip);
    x->data = x->memory;
    return status;
}

/* Bytes are used in place; wider values are copied, since their bytes must be swapped. */
static bw_status read_unpacked(bw_context *ctx, idx *x, const bwi_bytes *file, const char *path)
{
    char found[32];
    if (file->size == 0) {
        return bwi_fail(ctx, BW_DATA_LOSS, "%s: is empty; expected an IDX file", path);
    }
    if (file->size < PREFIX) {
        return bwi_fail(ctx, BW_DATA_LOSS, "%s: %zu bytes are too few for an IDX file", path, file->size);
    }
    bw_status status = parse_type(ctx, x, file->data, path);
    if (status == BW_OK && file->size < x->offset) {
        status = bwi_fail(ctx, BW_DATA_LOSS, "%s: ends within its header", path);
    }
    if (status == BW_OK) {
        status = parse_shape(ctx, x, file->data + PREFIX, path);
    }
    if (status != BW_OK) {
        return status;
    }
    snprintf(found, sizeof found, "%zu", file->size - x->offset);
    if (file->size - x->offset != x->bytes) {
        return fail_size(ctx, x, path, found);
    }
    x->data = file->data + x->offset;
    if (bwi_dtype_size(x->dtype) == 1) {
        return BW_OK;
    }
    x->memory = bwi_allocate(ctx, x->bytes, 1);
    if (!x->memory) {
        return BW_RESOURCE_EXHAUSTED;
    }
    memcpy(x->memory, x->data, x->bytes);
    x->data = x->memory;
    return BW_OK;
}

/* The file with a single axis holds the labels, in whatever order the two files were given. */
static bw_status add_file(bw_dataset *root, const char *path, int count, bool any)
{
    bw_context *ctx = root->owned.ctx;
    bwi_bytes *file;
    idx x = {.ndim = 0};
    bw_status status = bwi_dataset_map_file(root, path, &file);
    if (status == BW_OK) {
        status = bwi_gzip_is(file) ? read_packed(ctx, &x, file, any, path) : read_unpacked(ctx, &x, file, path);
    }
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    if (status == BW_OK && bwi_dtype_size(x.dtype) > 1) {
        bwi_npy_swap(&(bwi_npy){.dtype = x.dtype, .bytes = x.bytes}, x.memory);
    }
#endif
    if (status == BW_OK && x.ndim == 3) {
        x.shape[x.ndim++] = 1;
    }
    bw_array view = {.data = x.data, .dtype = x.dtype, .ndim = x.ndim};
    memcpy(view.shape, x.shape, sizeof view.shape);
    bwi_role role = count > 1 && x.ndim == 1 ? BWI_ROLE_TARGET : BWI_ROLE_INPUT;
    if (status == BW_OK) {
        status = bwi_dataset_add(root, role, "", &view, path);
    }
    if (status == BW_OK) {
        root->columns[root->column_count - 1].memory = x.memory;
    } else {
        bwi_release(ctx, x.memory);
    }
    return status;
}

/* Checks that there are images and labels, and puts the images first. */
static bw_status settle(bw_dataset *root, const char *const *paths)
{
    if (root->column_count == 2 && root->columns[0].field.role == root->columns[1].field.role) {
        return bwi_fail(root->owned.ctx, BW_INVALID_ARGUMENT, "%s and %s: expected images and labels, both are %s", paths[0],
                        paths[1], root->columns[0].field.role == BWI_ROLE_INPUT ? "images" : "labels");
    }
    if (root->columns[0].field.role == BWI_ROLE_TARGET) {
        bwi_column labels = root->columns[0];
        root->columns[0] = root->columns[1];
        root->columns[1] = labels;
    }
    return bwi_dataset_settle(root, "");
}

static bw_status read_files(bw_context *ctx, bw_dataset **root, const char *const *paths, int count, bool any)
{
    if (count > 2) {
        return bwi_fail(ctx, BW_INVALID_ARGUMENT, "%s and %d more: expected a file of images and one of labels", paths[0],
                        count - 1);
    }
    bw_dataset *made = bwi_dataset_root(ctx, &bwi_kind_arrays, count, 0);
    bw_status status = made ? BW_OK : BW_RESOURCE_EXHAUSTED;
    for (int i = 0; i < count && status == BW_OK; i++) {
        status = add_file(made, paths[i], count, any);
    }
    if (status == BW_OK) {
        status = settle(made, paths);
    }
    if (status == BW_OK) {
        *root = made;
    } else {
        bw_dataset_free(made);
    }
    return status;
}

/* ---- Folders ---- */

static const char *const names[][2] = {
    {"train-images-idx3-ubyte", "train-labels-idx1-ubyte"},
    {"train-images.idx3-ubyte", "train-labels.idx1-ubyte"},
    {"t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"},
    {"t10k-images.idx3-ubyte", "t10k-labels.idx1-ubyte"},
    {"images-idx3-ubyte", "labels-idx1-ubyte"},
    {"images.idx", "labels.idx"},
};

static bool is_file(bw_context *ctx, const char *path)
{
    char byte;
    return bwi_file_read_small(ctx, path, &byte, 1) >= 0;
}

/* Finds the two files in a folder, each uncompressed or packed; false if they are not there. */
static bool find_pair(bw_context *ctx, const char *folder, char paths[2][4096])
{
    for (size_t i = 0; i < BWI_COUNT(names); i++) {
        int found = 0;
        for (int k = 0; k < 2; k++) {
            for (int packed = 0; packed < 2 && found == k; packed++) {
                int length = snprintf(paths[k], sizeof paths[k], "%s/%s%s", folder, names[i][k], packed ? ".gz" : "");
                found += length < (int)sizeof paths[k] && is_file(ctx, paths[k]);
            }
        }
        if (found == 2) {
            return true;
        }
    }
    return false;
}

bool bwi_idx_is(bw_context *ctx, const char *path)
{
    char pair[2][4096];
    return bwi_folder_is(ctx, path) && find_pair(ctx, path, pair);
}

bw_status bwi_idx_read(bw_context *ctx, bw_dataset **root, const char *const *paths, int count, const bw_read_options *options)
{
    char pair[2][4096];
    bw_status status = bwi_read_options_check(ctx, paths[0], options, 0);
    if (status != BW_OK) {
        return status;
    }
    if (count == 1 && bwi_folder_is(ctx, paths[0]) && find_pair(ctx, paths[0], pair)) {
        return read_files(ctx, root, (const char *const[]){pair[0], pair[1]}, 2, options->unpack_any);
    }
    return read_files(ctx, root, paths, count, options->unpack_any);
}
