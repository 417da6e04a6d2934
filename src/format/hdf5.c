/*
 * HDF5 files in memory, listed and read. An image of a file is opened by the core driver, which has no file behind it; whatever could
 * lead outside (soft, external and user-defined links, virtual and external datasets, filters that are plugins) is refused when the
 * datasets are listed, before one is opened for its values.
 *
 * The library is never let near what it follows without looking: texts of attributes are read by hdf5_text.c, chunks and their
 * index by hdf5_chunk.c.
 */
#include "format/internal.h"
#include "format/hdf5_bytes.h"
#include "format/hdf5_library.h"

#include <stdlib.h>
#include <string.h>

enum { DEPTH_LIMIT = 16, ENTRY_LIMIT = 1 << 16, NAME_LIMIT = 512 };

struct bwi_hdf5 {
    bw_context *ctx;
    char *where;
    const unsigned char *image; /* used where it stands */
    size_t size;
    hid_t file;
    bwi_hdf5_entry *entries;
    int count, capacity;
};

/* ---- Listing ---- */

typedef struct walk {
    bwi_hdf5 *file;
    char path[NAME_LIMIT];
    int depth;
    bw_status status;
} walk;

static bw_status fail_at(const bwi_hdf5 *file, bw_status status, const char *path, const char *what)
{
    char quoted[BWI_QUOTE_SIZE];
    return bwi_fail_file(file->ctx, status, file->where, "%s %s", bwi_quote(quoted, path, strlen(path)), what);
}

static bool is_half(hid_t type)
{
    size_t sign, exponent, exponent_bits, mantissa, mantissa_bits;
    return H5Tget_size(type) == 2 && H5Tget_fields(type, &sign, &exponent, &exponent_bits, &mantissa, &mantissa_bits) >= 0 &&
           sign == 15 && exponent == 10 && exponent_bits == 5 && mantissa == 0 && mantissa_bits == 10;
}

/* Recognises the usual types, in either byte order; false: it is another. */
static bool plain_type(hid_t type, bw_dtype *dtype)
{
    static const bw_dtype whole[2][4] = {{BW_U8, BW_U16, BW_U32, BW_U64}, {BW_I8, BW_I16, BW_I32, BW_I64}};
    size_t size = H5Tget_size(type);
    if (H5Tget_class(type) == H5T_FLOAT) {
        *dtype = size == 2 ? BW_F16 : size == 4 ? BW_F32 : BW_F64;
        return is_half(type) || H5Tequal(type, H5T_IEEE_F32LE) > 0 || H5Tequal(type, H5T_IEEE_F32BE) > 0 ||
               H5Tequal(type, H5T_IEEE_F64LE) > 0 || H5Tequal(type, H5T_IEEE_F64BE) > 0;
    }
    if (H5Tget_class(type) != H5T_INTEGER || (size != 1 && size != 2 && size != 4 && size != 8) ||
        H5Tget_precision(type) != 8 * size || H5Tget_offset(type) != 0) {
        return false;
    }
    *dtype = whole[H5Tget_sign(type) == H5T_SGN_2][size == 1 ? 0 : size == 2 ? 1 : size == 4 ? 2 : 3];
    return true;
}

static bool read_shape(hid_t space, bwi_hdf5_entry *entry)
{
    hsize_t extents[H5S_MAX_RANK];
    if (H5Sget_simple_extent_type(space) == H5S_SCALAR) {
        entry->ndim = 0;
        return true;
    }
    if (H5Sget_simple_extent_type(space) != H5S_SIMPLE) {
        return false;
    }
    entry->ndim = H5Sget_simple_extent_dims(space, extents, NULL);
    for (int i = 0; i < entry->ndim && i < BW_MAX_NDIM; i++) {
        entry->shape[i] = (int64_t)extents[i];
        if (extents[i] > INT64_MAX) {
            return false;
        }
    }
    return entry->ndim >= 0 && entry->ndim <= BW_MAX_NDIM;
}

static size_t entry_bytes(const bwi_hdf5_entry *entry)
{
    size_t bytes = bwi_dtype_size(entry->dtype);
    for (int i = 0; i < entry->ndim; i++) {
        bytes = bwi_size_multiply(bytes, (size_t)entry->shape[i]);
    }
    return bytes;
}

/* Returns what would lead outside or expand, and is refused; NULL: nothing does. */
static const char *outside(hid_t plan)
{
    if (H5Pget_layout(plan) == H5D_VIRTUAL) {
        return "is a virtual dataset, which refers to other files: refused";
    }
    if (H5Pget_external_count(plan) != 0) {
        return "has its values in another file: refused";
    }
    return NULL;
}

/* Returns where the values lie in the image, if they are contiguous and in this machine's byte order; -1: nowhere. */
static int64_t find_place(const bwi_hdf5 *file, const bwi_hdf5_entry *entry, hid_t dataset, hid_t type, hid_t plan)
{
    if (!entry->stored || H5Pget_layout(plan) != H5D_CONTIGUOUS || H5Tget_order(type) != H5Tget_order(H5T_NATIVE_INT)) {
        return -1;
    }
    haddr_t place = H5Dget_offset(dataset);
    size_t bytes = entry_bytes(entry);
    return place == HADDR_UNDEF || place > file->size || bytes > file->size - place ? -1 : (int64_t)place;
}

/* Finds the file's bytes after a user block; false if its numbers are short, as in files older than the library. */
static bool find_bytes(const bwi_hdf5 *file, h5_part *bytes)
{
    static const unsigned char signature[] = {0x89, 'H', 'D', 'F', '\r', '\n', 0x1a, '\n'};
    for (size_t at = 0; at < file->size; at = at ? 2 * at : 512) {
        *bytes = (h5_part){file->image + at, file->size - at};
        if (bytes->size > 16 && memcmp(bytes->data, signature, sizeof signature) == 0) {
            return bytes->data[8] < 2 ? bytes->data[13] == 8 && bytes->data[14] == 8 : bytes->data[9] == 8 && bytes->data[10] == 8;
        }
    }
    return false;
}

static void describe_chunks(const bwi_hdf5 *file, hid_t dataset, bwi_hdf5_entry *entry)
{
    H5O_info_t facts;
    h5_part bytes;
    h5_chunks chunks;
    entry->chunked = true;
    if (H5Oget_info(dataset, &facts) < 0 || !find_bytes(file, &bytes)) {
        entry->refused = "is damaged, or its numbers are too short";
    } else {
        entry->refused = h5_chunks_open(&chunks, &bytes, facts.addr, entry->ndim, entry->shape, bwi_dtype_size(entry->dtype));
    }
    entry->header = entry->refused ? 0 : facts.addr;
    entry->stored = !entry->refused;
}

static void describe(walk *w, hid_t dataset, bwi_hdf5_entry *entry)
{
    hid_t type = H5Dget_type(dataset), space = H5Dget_space(dataset), plan = H5Dget_create_plist(dataset);
    const char *refused = plan < 0 ? "is damaged" : outside(plan);
    if (refused) {
        w->status = fail_at(w->file, BW_DATA_LOSS, w->path, refused);
    } else if (type < 0 || space < 0 || !plain_type(type, &entry->dtype) || !read_shape(space, entry)) {
        entry->refused = "is not stored as plain numbers";
    } else if (H5Pget_layout(plan) == H5D_CHUNKED) {
        entry->swapped = H5Tget_order(type) != H5Tget_order(H5T_NATIVE_INT) && bwi_dtype_size(entry->dtype) > 1;
        describe_chunks(w->file, dataset, entry);
    } else if (H5Pget_nfilters(plan) != 0) {
        entry->refused = "has filters without chunks";
    } else {
        size_t storage = H5Dget_storage_size(dataset), bytes = entry_bytes(entry);
        entry->stored = bytes <= storage && bytes <= w->file->size;
        entry->place = find_place(w->file, entry, dataset, type, plan);
    }
    H5Pclose(plan);
    H5Sclose(space);
    H5Tclose(type);
}

static bool grow(bwi_hdf5 *file)
{
    if (file->count < file->capacity) {
        return true;
    }
    int capacity = file->capacity ? 2 * file->capacity : 64;
    bwi_hdf5_entry *larger = bwi_grow(file->ctx, file->entries, (size_t)file->count, (size_t)capacity, sizeof *larger);
    if (!larger) {
        return false;
    }
    file->entries = larger;
    file->capacity = capacity;
    return true;
}

static void add_dataset(walk *w, hid_t dataset)
{
    bwi_hdf5 *file = w->file;
    bwi_hdf5_entry entry = {.place = -1};
    describe(w, dataset, &entry);
    if (w->status != BW_OK) {
        return;
    }
    if (file->count == ENTRY_LIMIT) {
        w->status = fail_at(file, BW_DATA_LOSS, w->path, "and others: more datasets than are supported");
        return;
    }
    entry.name = bwi_copy_text(file->ctx, w->path);
    if (!entry.name || !grow(file)) {
        bwi_release(file->ctx, entry.name);
        w->status = BW_RESOURCE_EXHAUSTED;
        return;
    }
    file->entries[file->count++] = entry;
}

static herr_t visit(hid_t group, const char *name, const H5L_info_t *info, void *user);

static void visit_group(walk *w, hid_t group)
{
    if (group < 0) {
        w->status = fail_at(w->file, BW_DATA_LOSS, w->path, "is damaged");
    } else if (++w->depth > DEPTH_LIMIT) {
        w->status = fail_at(w->file, BW_DATA_LOSS, w->path, "is nested too deeply");
    } else if (H5Literate(group, H5_INDEX_NAME, H5_ITER_INC, NULL, visit, w) < 0 && w->status == BW_OK) {
        w->status = fail_at(w->file, BW_DATA_LOSS, w->path, "is damaged");
    }
    w->depth--;
    if (group >= 0) {
        H5Gclose(group);
    }
}

/* An object is asked for its type first, because the library loses track of objects that it fails to open. */
static void visit_object(walk *w, hid_t group, const char *name)
{
    H5O_info_t facts;
    if (H5Oget_info_by_name(group, name, &facts, H5P_DEFAULT) < 0 ||
        (facts.type != H5O_TYPE_GROUP && facts.type != H5O_TYPE_DATASET)) {
        w->status = fail_at(w->file, BW_DATA_LOSS, w->path, "is damaged, or neither group nor dataset");
        return;
    }
    /* A few groups that hold each other several times over are more ways than can be gone. */
    if (facts.type == H5O_TYPE_GROUP && facts.rc > 1) {
        w->status = fail_at(w->file, BW_DATA_LOSS, w->path, "is a group with several names: refused");
        return;
    }
    if (facts.type == H5O_TYPE_GROUP) {
        visit_group(w, H5Gopen2(group, name, H5P_DEFAULT));
        return;
    }
    hid_t dataset = H5Dopen2(group, name, H5P_DEFAULT);
    if (dataset < 0) {
        w->status = fail_at(w->file, BW_DATA_LOSS, w->path, "is damaged");
        return;
    }
    add_dataset(w, dataset);
    H5Dclose(dataset);
}

static herr_t visit(hid_t group, const char *name, const H5L_info_t *info, void *user)
{
    walk *w = user;
    size_t before = strlen(w->path), length = strlen(name);
    if (before + length + 2 > sizeof w->path) {
        w->status = fail_at(w->file, BW_DATA_LOSS, name, "has a name that is too long");
        return -1;
    }
    snprintf(w->path + before, sizeof w->path - before, "%s%s", before ? "/" : "", name);
    if (info->type != H5L_TYPE_HARD) {
        w->status = fail_at(w->file, BW_DATA_LOSS, w->path, "is a link to elsewhere: refused");
    } else {
        visit_object(w, group, name);
    }
    w->path[before] = 0;
    return w->status == BW_OK ? 0 : -1;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(((const bwi_hdf5_entry *)a)->name, ((const bwi_hdf5_entry *)b)->name);
}

/* An image that is used where it stands: what the library takes for its copies is always the image itself. Read-only: it
 * neither writes to it nor makes it longer. */
static void *lend_image(size_t size, H5FD_file_image_op_t op, void *image)
{
    (void)size, (void)op;
    return image;
}

static void *copy_image(void *to, const void *from, size_t size, H5FD_file_image_op_t op, void *image)
{
    (void)from, (void)size, (void)op, (void)image;
    return to;
}

static void *grow_image(void *at, size_t size, H5FD_file_image_op_t op, void *image)
{
    (void)at, (void)size, (void)op, (void)image;
    return NULL;
}

static herr_t free_image(void *at, H5FD_file_image_op_t op, void *image)
{
    (void)at, (void)op, (void)image;
    return 0;
}

static void *copy_user(void *image)
{
    return image;
}

static herr_t free_user(void *image)
{
    (void)image;
    return 0;
}

static bool give_image(const bwi_hdf5 *file, hid_t access, void *image)
{
    H5FD_file_image_callbacks_t callbacks = {lend_image, copy_image, grow_image, free_image, copy_user, free_user, image};
    return H5Pset_file_image_callbacks(access, &callbacks) >= 0 && H5Pset_file_image(access, image, file->size) >= 0;
}

/* The whole file lies in memory, so the library gets an image and never opens a path; all groups are listed once, sorted by name.
 */
static bw_status open_image(bwi_hdf5 *file)
{
    char name[64];
    hid_t access = bwi_hdf5_memory(name);
    /* The library promises not to write to the image. */
    if (access >= 0 && give_image(file, access, bwi_unconst(file->image))) {
        file->file = H5Fopen(name, H5F_ACC_RDONLY, access);
    }
    if (access >= 0) {
        H5Pclose(access);
    }
    if (file->file < 0) {
        return bwi_fail_file(file->ctx, BW_DATA_LOSS, file->where, "is not an HDF5 file, or is damaged");
    }
    walk w = {.file = file};
    if (H5Literate(file->file, H5_INDEX_NAME, H5_ITER_INC, NULL, visit, &w) < 0 && w.status == BW_OK) {
        w.status = bwi_fail_file(file->ctx, BW_DATA_LOSS, file->where, "its list of groups is damaged");
    }
    if (file->count) {
        qsort(file->entries, (size_t)file->count, sizeof *file->entries, compare_names);
    }
    return w.status;
}

bw_status bwi_hdf5_open(bw_context *ctx, bwi_hdf5 **file, const void *image, size_t size, const char *where)
{
    bwi_hdf5_host h;
    *file = NULL;
    bwi_hdf5 *made = bwi_allocate(ctx, 1, sizeof *made);
    char *copy = made ? bwi_copy_text(ctx, where) : NULL;
    if (!copy) {
        bwi_release(ctx, made);
        return BW_RESOURCE_EXHAUSTED;
    }
    *made = (bwi_hdf5){.ctx = ctx, .where = copy, .image = image, .size = size, .file = -1};
    bwi_hdf5_enter(&h);
    bw_status status = size ? open_image(made) : bwi_fail_file(ctx, BW_DATA_LOSS, where, "is empty");
    bwi_hdf5_leave(&h);
    if (status == BW_OK) {
        *file = made;
    } else {
        bwi_hdf5_close(made);
    }
    return status;
}

void bwi_hdf5_close(bwi_hdf5 *file)
{
    bwi_hdf5_host h;
    if (!file) {
        return;
    }
    if (file->file >= 0) {
        bwi_hdf5_enter(&h);
        H5Fclose(file->file);
        bwi_hdf5_leave(&h);
    }
    for (int i = 0; i < file->count; i++) {
        bwi_release(file->ctx, file->entries[i].name);
    }
    bwi_release(file->ctx, file->entries);
    bwi_release(file->ctx, file->where);
    bwi_release(file->ctx, file);
}

int bwi_hdf5_count(const bwi_hdf5 *file)
{
    return file->count;
}

const bwi_hdf5_entry *bwi_hdf5_at(const bwi_hdf5 *file, int index)
{
    return index >= 0 && index < file->count ? &file->entries[index] : NULL;
}

const bwi_hdf5_entry *bwi_hdf5_find(const bwi_hdf5 *file, const char *name)
{
    bwi_hdf5_entry wanted = {.name = name};
    return file->count ? bsearch(&wanted, file->entries, (size_t)file->count, sizeof wanted, compare_names) : NULL;
}

/* ---- Reading ---- */

static void swap_bytes(unsigned char *at, size_t size, size_t count)
{
    for (; count > 0; count--, at += size) {
        for (size_t i = 0; i < size / 2; i++) {
            unsigned char byte = at[i];
            at[i] = at[size - 1 - i];
            at[size - 1 - i] = byte;
        }
    }
}

/* Selects the requested part of the dataset's space, and a space of that size in memory. */
static bool select_part(const bwi_hdf5_entry *entry, int64_t offset, int64_t count, hid_t space, hid_t *memory)
{
    hsize_t first[BW_MAX_NDIM] = {0}, extents[BW_MAX_NDIM];
    if (entry->ndim == 0) {
        *memory = H5Screate(H5S_SCALAR);
        return *memory >= 0;
    }
    for (int i = 0; i < entry->ndim; i++) {
        extents[i] = (hsize_t)(i ? entry->shape[i] : count);
    }
    first[0] = (hsize_t)offset;
    *memory = H5Screate_simple(entry->ndim, extents, NULL);
    return *memory >= 0 && H5Sselect_hyperslab(space, H5S_SELECT_SET, first, NULL, extents, NULL) >= 0;
}

bw_status bwi_hdf5_read_chunks(bwi_hdf5 *file, const bwi_hdf5_entry *entry, void *to)
{
    h5_part bytes;
    h5_chunks chunks;
    char where[NAME_LIMIT + 256], quoted[BWI_QUOTE_SIZE];
    size_t size = bwi_dtype_size(entry->dtype);
    if (!entry->header || !find_bytes(file, &bytes) ||
        h5_chunks_open(&chunks, &bytes, entry->header, entry->ndim, entry->shape, size)) {
        return fail_at(file, BW_DATA_LOSS, entry->name, "is not stored in chunks");
    }
    snprintf(where, sizeof where, "%.240s: %s", file->where, bwi_quote(quoted, entry->name, strlen(entry->name)));
    bw_status status = h5_chunks_read(file->ctx, &chunks, where, to);
    if (status == BW_OK && entry->swapped) {
        swap_bytes(to, size, entry_bytes(entry) / size);
    }
    return status;
}

/* Converts to float32 or int64 by the library's conversions, which see nothing else of the file. */
static bw_status read_chunked(bwi_hdf5 *file, const bwi_hdf5_entry *entry, int64_t offset, int64_t count, bw_dtype dtype, void *to)
{
    const hid_t types[] = {H5T_NATIVE_UINT8,  H5T_NATIVE_INT8,   H5T_NATIVE_UINT16,
                           H5T_NATIVE_INT16,  H5T_NATIVE_UINT32, H5T_NATIVE_INT32,
                           H5T_NATIVE_UINT64, H5T_NATIVE_INT64,  -1,
                           H5T_NATIVE_FLOAT,  H5T_NATIVE_DOUBLE};
    hid_t type = (size_t)entry->dtype < BWI_COUNT(types) ? types[entry->dtype] : -1;
    size_t all = entry_bytes(entry), row = all / (size_t)entry->shape[0], size = bwi_dtype_size(entry->dtype);
    size_t target = bwi_dtype_size(dtype), values = row / size * (size_t)count;
    if (type < 0) {
        return fail_at(file, BW_UNIMPLEMENTED, entry->name, "is half precision in chunks; only contiguous storage is supported");
    }
    unsigned char *memory = bwi_allocate(file->ctx, bwi_size_add(all, bwi_size_multiply(values, 8)), 1);
    if (!memory) {
        return BW_RESOURCE_EXHAUSTED;
    }
    bw_status status = bwi_hdf5_read_chunks(file, entry, memory);
    if (status == BW_OK) {
        unsigned char *first = memory + (size_t)offset * row;
        memmove(memory, first, values * size);
        bwi_hdf5_host h;
        bwi_hdf5_enter(&h);
        bool made = H5Tconvert(type, dtype == BW_F32 ? H5T_NATIVE_FLOAT : H5T_NATIVE_INT64, values, memory, NULL, H5P_DEFAULT) >= 0;
        bwi_hdf5_leave(&h);
        status = made ? BW_OK : fail_at(file, BW_DATA_LOSS, entry->name, "is damaged");
        memcpy(to, memory, values * target);
    }
    bwi_release(file->ctx, memory);
    return status;
}

bw_status bwi_hdf5_read(bwi_hdf5 *file, const bwi_hdf5_entry *entry, int64_t offset, int64_t count, bw_dtype dtype, void *to)
{
    int64_t rows = entry->ndim ? entry->shape[0] : 1;
    if (!entry->stored) {
        return fail_at(file, BW_DATA_LOSS, entry->name, entry->refused ? entry->refused : "is not stored as plain numbers");
    }
    if (offset < 0 || count < 0 || offset > rows || count > rows - offset || (dtype != BW_F32 && dtype != BW_I64)) {
        return fail_at(file, BW_INTERNAL, entry->name, "was asked for values that it does not have");
    }
    if (count == 0) {
        return BW_OK;
    }
    if (entry->chunked) {
        return read_chunked(file, entry, offset, count, dtype, to);
    }
    bwi_hdf5_host h;
    bwi_hdf5_enter(&h);
    hid_t dataset = H5Dopen2(file->file, entry->name, H5P_DEFAULT), space = H5Dget_space(dataset), memory = -1;
    bool read = dataset >= 0 && space >= 0 && select_part(entry, offset, count, space, &memory) &&
                H5Dread(dataset, dtype == BW_F32 ? H5T_NATIVE_FLOAT : H5T_NATIVE_INT64, memory, space, H5P_DEFAULT, to) >= 0;
    H5Sclose(memory);
    H5Sclose(space);
    H5Dclose(dataset);
    bwi_hdf5_leave(&h);
    return read ? BW_OK : fail_at(file, BW_DATA_LOSS, entry->name, "is damaged");
}

/* ---- Attributes ---- */

bw_status bwi_hdf5_attribute(bwi_hdf5 *file, const char *group, const char *name, char **texts, int *count)
{
    bwi_hdf5_host h;
    H5O_info_t facts;
    *texts = NULL;
    *count = 0;
    bwi_hdf5_enter(&h);
    bool found = H5Oget_info_by_name(file->file, group[0] ? group : "/", &facts, H5P_DEFAULT) >= 0;
    bwi_hdf5_leave(&h);
    if (!found) {
        return BW_OK;
    }
    h5_part bytes;
    if (!find_bytes(file, &bytes)) {
        return fail_at(file, BW_DATA_LOSS, name, "cannot be read: the file's numbers are too short");
    }
    return bwi_hdf5_read_text(file->ctx, bytes.data, bytes.size, facts.addr, file->where, name, texts, count);
}
