/*
 * HDF5 files in memory, listed and read. This is a reader of what Keras and h5py write, not of all that the format allows, and no
 * library is behind it: an image of a file is looked at with every place, size and count checked first, no file is ever opened, and
 * the bytes that are looked at are bounded (hdf5_bytes.c). Whatever could lead outside (soft, external and user-defined links,
 * virtual and external datasets) is refused when the datasets are listed.
 */
#include "format/hdf5_bytes.h"

#include <stdlib.h>
#include <string.h>

enum { DEPTH_LIMIT = 16, OBJECT_LIMIT = 1 << 16, NAME_LIMIT = 512 };

typedef struct group {
    const char *name; /* "" is the root */
    uint64_t header;
    int depth;
} group;

struct bwi_hdf5 {
    bw_context *ctx;
    char *where;
    h5_file file;
    size_t before; /* bytes of the image before the file's signature */
    uint64_t root;
    bwi_hdf5_entry *entries;
    int count, capacity;
    group *groups;
    int group_count, group_capacity;
    uint64_t *seen; /* the groups' headers, by their hash; 0: none */
    size_t seen_capacity;
};

/* ---- The file's head ---- */

/* Finds the signature, which may stand behind 512, 1024, ... bytes of something else. */
static bool find_signature(bwi_hdf5 *file, const h5_part *image)
{
    static const unsigned char signature[] = {0x89, 'H', 'D', 'F', '\r', '\n', 0x1a, '\n'};
    for (size_t at = 0; at < image->size; at = at ? 2 * at : 512) {
        if (image->size - at > 96 && memcmp(image->data + at, signature, sizeof signature) == 0) {
            file->before = at;
            file->file.bytes = (h5_part){image->data + at, image->size - at};
            return true;
        }
    }
    return false;
}

/* Reads the superblock: sizes of numbers, where the file ends and where its root is. NULL, or what is wrong. */
static const char *read_head(bwi_hdf5 *file)
{
    enum { HEAD = 48 };
    const unsigned char *at = file->file.bytes.data;
    bool newer = at[8] >= 2;
    h5_part head = {at, HEAD};
    if (at[8] > 3) {
        return "has a head of no known version";
    }
    if (newer ? at[9] != 8 || at[10] != 8 : at[13] != 8 || at[14] != 8) {
        return "has numbers of another size than 8 bytes, which is not read";
    }
    if (newer && !bwi_h5_intact(&head)) {
        return "has a damaged head";
    }
    size_t more = at[8] == 1 ? 4 : 0;
    uint64_t end = bwi_h5_number(newer ? at + 28 : at + 40 + more, 8);
    file->root = bwi_h5_number(newer ? at + 36 : at + 64 + more, 8);
    return end > file->file.bytes.size + file->before ? "is cut short" : NULL;
}

/* ---- Datasets ---- */

static bw_status fail_at(const bwi_hdf5 *file, bw_status status, const char *path, const char *what)
{
    char quoted[BWI_QUOTE_SIZE];
    if (bwi_cancelled(file->ctx)) {
        return bwi_cancel_report(file->ctx);
    }
    return bwi_fail_file(file->ctx, status, file->where, "%s %s", bwi_quote(quoted, path, strlen(path)), what);
}

static size_t entry_bytes(const bwi_hdf5_entry *entry)
{
    size_t bytes = bwi_dtype_size(entry->dtype);
    for (int i = 0; i < entry->ndim; i++) {
        bytes = bwi_size_multiply(bytes, (size_t)entry->shape[i]);
    }
    return bytes;
}

/* What the messages of an object's header say. */
typedef struct object {
    bool is_group, is_dataset;
    bool external, shared, typed, shaped;
    h5_part layout;
} object;

/* An object says by its messages what it is: a group has links, a dataset a layout, and a type alone is neither. */
static bool read_object(bwi_hdf5 *file, uint64_t address, object *found, bwi_hdf5_entry *entry)
{
    h5_header header;
    h5_message message;
    *found = (object){0};
    if (!bwi_h5_header_open(&header, &file->file, address)) {
        return false;
    }
    while (bwi_h5_header_next(&header, &message)) {
        switch (message.type) {
        case H5_MESSAGE_SYMBOLS:
        case H5_MESSAGE_LINKS:
            found->is_group = true;
            break;
        case H5_MESSAGE_TYPE:
            found->shared = found->shared || message.shared;
            found->typed = bwi_h5_type_read(&message.data, &entry->dtype, &entry->swapped);
            break;
        case H5_MESSAGE_SPACE:
            found->shared = found->shared || message.shared;
            found->shaped = bwi_h5_space_read(&message.data, &entry->ndim, entry->shape);
            break;
        case H5_MESSAGE_LAYOUT:
            found->is_dataset = true;
            found->layout = message.data;
            break;
        case H5_MESSAGE_EXTERNAL:
            found->external = true;
            break;
        default:
            break;
        }
    }
    return !header.damaged;
}

/* Values without gaps: in the header itself, or elsewhere in the file. All versions of the layout that are read agree on these. */
static void describe_contiguous(const bwi_hdf5 *file, const h5_part *layout, bool compact, bwi_hdf5_entry *entry)
{
    const h5_part *bytes = &file->file.bytes;
    h5_part values = {0};
    size_t size = entry_bytes(entry), element = bwi_dtype_size(entry->dtype);
    if (layout->size < (compact ? 4u : 18u)) {
        entry->refused = "has a damaged layout";
        return;
    }
    uint64_t address = compact ? 0 : bwi_h5_number(layout->data + 2, 8);
    if (size == 0) { /* nothing has no place */
        entry->stored = true;
        return;
    }
    if (!compact && address == H5_NOWHERE) {
        entry->refused = "has no values: nothing was written to it";
        return;
    }
    bool found = compact ? bwi_h5_cut(layout, 4, bwi_h5_number(layout->data + 2, 2), &values)
                         : bwi_h5_cut(bytes, address, bwi_h5_number(layout->data + 10, 8), &values);
    if (!found || values.size < size) {
        entry->refused = "is not all in the file";
        return;
    }
    entry->stored = true;
    entry->header = (uint64_t)(values.data - bytes->data);
    entry->offset = entry->swapped || (uintptr_t)values.data % element ? -1 : (int64_t)(entry->header + file->before);
}

static void describe_chunks(bwi_hdf5 *file, uint64_t address, bwi_hdf5_entry *entry)
{
    h5_chunks chunks;
    entry->chunked = true;
    entry->refused = bwi_h5_chunks_open(&chunks, &file->file, address, entry->ndim, entry->shape, bwi_dtype_size(entry->dtype));
    entry->header = entry->refused ? 0 : address;
    entry->packed = chunks.packed;
    entry->stored = !entry->refused;
}

/* Returns what would lead outside; NULL: nothing does. What cannot be read is only noted: nobody may want it. */
static const char *describe(bwi_hdf5 *file, uint64_t address, const object *found, bwi_hdf5_entry *entry)
{
    enum { COMPACT, CONTIGUOUS, CHUNKED, VIRTUAL };
    int version = found->layout.size >= 2 ? found->layout.data[0] : 0, kind = version ? found->layout.data[1] : 0;
    if (found->external) {
        return "has its values in another file: refused";
    }
    if (version >= 4 && kind == VIRTUAL) {
        return "is a virtual dataset, which refers to other files: refused";
    }
    if (found->shared) {
        entry->refused = "has a type that is described elsewhere, which is not read";
    } else if (!found->typed || !found->shaped) {
        entry->refused = "is not stored as plain numbers";
    } else if (version < 3 || version > 5) {
        entry->refused = "has a layout of no known version";
    } else if (kind == CHUNKED) {
        describe_chunks(file, address, entry);
    } else {
        describe_contiguous(file, &found->layout, kind == COMPACT, entry);
    }
    return NULL;
}

/* ---- Listing: groups are listed one after another, and put those that they hold at the end of the list ---- */

typedef struct listing {
    bwi_hdf5 *file;
    int group; /* whose links are visited */
    bw_status status;
} listing;

static size_t bucket_of(const bwi_hdf5 *file, uint64_t address)
{
    size_t at = (size_t)(address * 0x9e3779b97f4a7c15u >> 20) & (file->seen_capacity - 1);
    while (file->seen[at] && file->seen[at] != address) {
        at = (at + 1) & (file->seen_capacity - 1);
    }
    return at;
}

/* Grows the table of groups, which is never more than half full. */
static bool grow_seen(bwi_hdf5 *file)
{
    uint64_t *old = file->seen;
    size_t capacity = file->seen_capacity;
    if (2 * ((size_t)file->group_count + 1) <= capacity) {
        return true;
    }
    file->seen = bwi_allocate(file->ctx, capacity ? 2 * capacity : 64, sizeof *file->seen);
    if (!file->seen) {
        file->seen = old;
        return false;
    }
    file->seen_capacity = capacity ? 2 * capacity : 64;
    for (size_t i = 0; i < capacity; i++) {
        if (old[i]) {
            file->seen[bucket_of(file, old[i])] = old[i];
        }
    }
    bwi_release(file->ctx, old);
    return true;
}

/* Grows a list so that it holds one more. */
static bool grow_list(bw_context *ctx, void **list, int count, int *capacity, size_t size)
{
    if (count < *capacity) {
        return true;
    }
    int larger = *capacity ? 2 * *capacity : 64;
    void *grown = bwi_grow(ctx, *list, (size_t)count, (size_t)larger, size);
    if (!grown) {
        return false;
    }
    *list = grown;
    *capacity = larger;
    return true;
}

/* A few groups that hold each other several times over would be more ways than can be gone. */
static bw_status add_group(bwi_hdf5 *file, const char *name, uint64_t address, int depth)
{
    void *groups = file->groups;
    if (depth > DEPTH_LIMIT) {
        return fail_at(file, BW_DATA_LOSS, name, "is nested too deeply");
    }
    if (file->group_count == OBJECT_LIMIT) {
        return fail_at(file, BW_DATA_LOSS, name, "and others: more groups than are supported");
    }
    if (!grow_seen(file) || !grow_list(file->ctx, &groups, file->group_count, &file->group_capacity, sizeof *file->groups)) {
        return BW_RESOURCE_EXHAUSTED;
    }
    file->groups = groups;
    uint64_t *seen = &file->seen[bucket_of(file, address + 1)];
    if (*seen) {
        return fail_at(file, BW_DATA_LOSS, name, "is a group with several names: refused");
    }
    *seen = address + 1;
    file->groups[file->group_count] = (group){bwi_copy_text(file->ctx, name), address, depth};
    return file->groups[file->group_count++].name ? BW_OK : BW_RESOURCE_EXHAUSTED;
}

static bw_status add_dataset(bwi_hdf5 *file, const char *name, uint64_t address, const object *found, bwi_hdf5_entry *entry)
{
    void *entries = file->entries;
    const char *refused = describe(file, address, found, entry);
    if (refused) {
        return fail_at(file, BW_DATA_LOSS, name, refused);
    }
    if (file->count == OBJECT_LIMIT) {
        return fail_at(file, BW_DATA_LOSS, name, "and others: more datasets than are supported");
    }
    if (!grow_list(file->ctx, &entries, file->count, &file->capacity, sizeof *file->entries)) {
        return BW_RESOURCE_EXHAUSTED;
    }
    file->entries = entries;
    entry->name = bwi_copy_text(file->ctx, name);
    file->entries[file->count++] = *entry;
    return entry->name ? BW_OK : BW_RESOURCE_EXHAUSTED;
}

/* A link of the group that is being listed. Its name counts as bytes that are looked at: long paths are not for free. */
static bool visit(void *user, const h5_link *link)
{
    listing *l = user;
    bwi_hdf5 *file = l->file;
    const char *parent = file->groups[l->group].name;
    size_t before = strlen(parent);
    char name[NAME_LIMIT];
    object found;
    bwi_hdf5_entry entry = {.offset = -1};
    if (before + link->length + 2 > sizeof name) {
        l->status = fail_at(file, BW_DATA_LOSS, parent, "holds a name that is too long");
        return false;
    }
    snprintf(name, sizeof name, "%s%s%.*s", parent, before ? "/" : "", (int)link->length, link->name);
    file->file.looked += before;
    if (!link->hard) {
        l->status = fail_at(file, BW_DATA_LOSS, name, "is a link to elsewhere: refused");
    } else if (!read_object(file, link->address, &found, &entry) || found.is_group == found.is_dataset) {
        l->status = fail_at(file, BW_DATA_LOSS, name, "is damaged, or neither group nor dataset");
    } else if (found.is_group) {
        l->status = add_group(file, name, link->address, file->groups[l->group].depth + 1);
    } else {
        l->status = add_dataset(file, name, link->address, &found, &entry);
    }
    return l->status == BW_OK;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(((const bwi_hdf5_entry *)a)->name, ((const bwi_hdf5_entry *)b)->name);
}

static int compare_groups(const void *a, const void *b)
{
    return strcmp(((const group *)a)->name, ((const group *)b)->name);
}

/* Lists all groups once, and sorts what was found by name. */
static bw_status list(bwi_hdf5 *file)
{
    listing l = {.file = file};
    l.status = add_group(file, "", file->root, 0);
    for (; l.group < file->group_count && l.status == BW_OK; l.group++) {
        const char *wrong = bwi_h5_links_walk(&file->file, file->groups[l.group].header, visit, &l);
        if (wrong && l.status == BW_OK) {
            l.status =
                l.group ? fail_at(file, BW_DATA_LOSS, file->groups[l.group].name, wrong) : fail_at(file, BW_DATA_LOSS, "/", wrong);
        }
    }
    if (l.status == BW_OK && file->count) {
        qsort(file->entries, (size_t)file->count, sizeof *file->entries, compare_names);
    }
    if (l.status == BW_OK) {
        qsort(file->groups, (size_t)file->group_count, sizeof *file->groups, compare_groups);
    }
    bwi_release(file->ctx, file->seen);
    file->seen = NULL;
    return l.status;
}

static bw_status open_image(bwi_hdf5 *file, const h5_part *image)
{
    if (image->size == 0) {
        return bwi_fail_file(file->ctx, BW_DATA_LOSS, file->where, "is empty");
    }
    if (!find_signature(file, image)) {
        return bwi_fail_file(file->ctx, BW_DATA_LOSS, file->where, "is not an HDF5 file, or is damaged");
    }
    const char *wrong = read_head(file);
    return wrong ? bwi_fail_file(file->ctx, BW_DATA_LOSS, file->where, "%s", wrong) : list(file);
}

bw_status bwi_hdf5_open(bw_context *ctx, bwi_hdf5 **file, const void *image, size_t size, const char *where)
{
    *file = NULL;
    bwi_hdf5 *made = bwi_allocate(ctx, 1, sizeof *made);
    char *copy = made ? bwi_copy_text(ctx, where) : NULL;
    if (!copy) {
        bwi_release(ctx, made);
        return BW_RESOURCE_EXHAUSTED;
    }
    *made = (bwi_hdf5){.ctx = ctx, .where = copy, .file = {.ctx = ctx}};
    bw_status status = open_image(made, &(h5_part){image, size});
    if (status == BW_OK) {
        *file = made;
    } else {
        bwi_hdf5_close(made);
    }
    return status;
}

void bwi_hdf5_close(bwi_hdf5 *file)
{
    if (!file) {
        return;
    }
    for (int i = 0; i < file->count; i++) {
        bwi_release(file->ctx, file->entries[i].name);
    }
    for (int i = 0; i < file->group_count; i++) {
        bwi_release(file->ctx, file->groups[i].name);
    }
    bwi_release(file->ctx, file->entries);
    bwi_release(file->ctx, file->groups);
    bwi_release(file->ctx, file->seen);
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

bw_status bwi_hdf5_read_chunks(bwi_hdf5 *file, const bwi_hdf5_entry *entry, void *to)
{
    h5_chunks chunks;
    char where[NAME_LIMIT + 256], quoted[BWI_QUOTE_SIZE];
    size_t size = bwi_dtype_size(entry->dtype);
    file->file.looked = 0;
    if (!entry->chunked || !entry->stored ||
        bwi_h5_chunks_open(&chunks, &file->file, entry->header, entry->ndim, entry->shape, size)) {
        return fail_at(file, BW_DATA_LOSS, entry->name, "is not stored in chunks");
    }
    snprintf(where, sizeof where, "%.240s: %s", file->where, bwi_quote(quoted, entry->name, strlen(entry->name)));
    bw_status status = bwi_h5_chunks_read(file->ctx, &chunks, where, to);
    if (status == BW_OK && entry->swapped) {
        bwi_h5_swap(to, size, entry_bytes(entry) / size);
    }
    return status;
}

/* Unpacks everything, then converts what was asked for. */
static bw_status read_chunked(bwi_hdf5 *file, const bwi_hdf5_entry *entry, size_t first, size_t count, bw_dtype dtype, void *to)
{
    size_t size = bwi_dtype_size(entry->dtype);
    bw_status status = bwi_expansion_check(file->ctx, file->where, entry->packed, entry_bytes(entry));
    if (status != BW_OK) {
        return status;
    }
    unsigned char *memory = bwi_allocate(file->ctx, entry_bytes(entry), 1);
    if (!memory) {
        return BW_RESOURCE_EXHAUSTED;
    }
    status = bwi_hdf5_read_chunks(file, entry, memory);
    if (status == BW_OK) {
        bwi_h5_convert(memory + first * size, entry->dtype, false, count, dtype, to);
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
    size_t bytes = entry_bytes(entry), size = bwi_dtype_size(entry->dtype);
    if (count == 0 || bytes == 0) {
        return BW_OK;
    }
    size_t in_row = bytes / size / (size_t)rows, first = in_row * (size_t)offset, values = in_row * (size_t)count;
    if (entry->chunked) {
        return read_chunked(file, entry, first, values, dtype, to);
    }
    bwi_h5_convert(file->file.bytes.data + entry->header + first * size, entry->dtype, entry->swapped, values, dtype, to);
    return BW_OK;
}

/* ---- Attributes ---- */

bw_status bwi_hdf5_attribute(bwi_hdf5 *file, const char *name_of_group, const char *name, char **texts, int *count)
{
    group wanted = {.name = name_of_group};
    const group *found = bsearch(&wanted, file->groups, (size_t)file->group_count, sizeof wanted, compare_groups);
    *texts = NULL;
    *count = 0;
    file->file.looked = 0;
    bw_status status = found ? bwi_h5_text_read(&file->file, found->header, file->where, name, texts, count) : BW_OK;
    return status == BW_DATA_LOSS && bwi_cancelled(file->ctx) ? bwi_cancel_report(file->ctx) : status;
}
