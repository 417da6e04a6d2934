/*
 * HDF5 files with datasets x, y and optionally w, or x_<input> and so on. Contiguous datasets are used in place in the mapped
 * file, whatever its size. Chunked ones and those in the other byte order are read once, into a backing, which may be larger than
 * memory.
 */
#include "data/read/read.h"
#include "format/format.h"

#include <stdio.h>
#include <string.h>

typedef struct reading {
    bw_context *ctx;
    bw_dataset *root;
    bwi_hdf5 *file;
    bwi_bytes *bytes;
    const bw_read_options *options;
    const char *path;
    unsigned part; /* the part that is read; 0: everything is */
} reading;

static bw_status fail_names(reading *r, const char *wanted)
{
    char names[400] = "", quoted[BWI_QUOTE_SIZE];
    size_t used = 0;
    for (int i = 0; i < bwi_hdf5_count(r->file) && used + BWI_QUOTE_SIZE + 8 < sizeof names; i++) {
        const char *name = bwi_hdf5_at(r->file, i)->name;
        used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", i ? ", " : "", bwi_quote(quoted, name, strlen(name)));
    }
    return bwi_fail(r->ctx, BW_NOT_FOUND, "%s: no dataset %s; found %s", r->path, wanted, used ? names : "none");
}

/* Reads values that cannot be used in place. Chunks keep their type; otherwise whole numbers become int64 and others float32. */
static bw_status read_values(reading *r, const bwi_hdf5_entry *entry, bwi_column *column, bw_dtype dtype, const char *where)
{
    size_t bytes =
        bwi_size_multiply(bwi_size_multiply((size_t)column->rows.values, (size_t)column->samples), bwi_dtype_size(dtype));
    bool checked = entry->chunked && !r->options->unpack_any;
    bw_status status = checked ? bwi_expansion_check(r->ctx, where, entry->packed, bytes) : BW_OK;
    status = status == BW_OK ? bwi_backing_grow(r->ctx, &column->backing, 0, bytes, where) : status;
    if (status != BW_OK) {
        return status;
    }
    column->rows.data = column->backing.memory;
    if (entry->chunked) {
        return bwi_hdf5_read_chunks(r->file, entry, column->backing.memory);
    }
    return bwi_hdf5_read(r->file, entry, 0, column->samples, dtype, column->backing.memory);
}

/* Contiguous values stay in the mapped file; others are read into a backing. */
static bw_status add(reading *r, bwi_role role, const char *name, const bwi_hdf5_entry *entry)
{
    char where[1024], quoted[BWI_QUOTE_SIZE];
    bool whole = entry->dtype != BW_F16 && entry->dtype != BW_F32 && entry->dtype != BW_F64;
    bw_array view = {.data = r->bytes->data, .dtype = entry->dtype, .ndim = entry->ndim};
    memcpy(view.shape, entry->shape, sizeof view.shape);
    snprintf(where, sizeof where, "%.*s: dataset %s", (int)(sizeof where - BWI_QUOTE_SIZE - 16), r->path,
             bwi_quote(quoted, entry->name, strlen(entry->name)));
    if (!entry->stored) {
        return bwi_fail(r->ctx, BW_DATA_LOSS, "%s: %s", where,
                        entry->refused ? entry->refused : "is not stored as plain numbers, or not all of it is there");
    }
    if (strlen(name) >= sizeof((bwi_field *)0)->name || r->root->column_count == BWI_FIELD_LIMIT) {
        return bwi_fail(r->ctx, BW_INVALID_ARGUMENT, "%s: the name is too long, or there are more than %d datasets", where,
                        BWI_FIELD_LIMIT);
    }
    if (entry->offset >= 0) {
        view.data = r->bytes->data + entry->offset;
    } else if (!entry->chunked) {
        view.dtype = whole ? BW_I64 : BW_F32;
    }
    bw_status status = bwi_dataset_add(r->root, role, name, &view, where);
    if (status != BW_OK || entry->offset >= 0) {
        return status;
    }
    return read_values(r, entry, &r->root->columns[r->root->column_count - 1], view.dtype, where);
}

static bw_status add_asked(reading *r, bwi_role role, const char *asked)
{
    char quoted[BWI_QUOTE_SIZE];
    const bwi_hdf5_entry *entry = bwi_hdf5_find(r->file, asked);
    return entry ? add(r, role, "", entry) : fail_names(r, bwi_quote(quoted, asked, strlen(asked)));
}

/* Adds "x" alone, or else every "x_<name>". */
static bw_status add_role(reading *r, bwi_role role)
{
    char letter = "xyw"[role], alone[2] = {letter, 0};
    const bwi_hdf5_entry *only = bwi_hdf5_find(r->file, alone);
    bw_status status = only ? add(r, role, "", only) : BW_OK;
    for (int i = 0; i < bwi_hdf5_count(r->file) && status == BW_OK; i++) {
        const bwi_hdf5_entry *entry = bwi_hdf5_at(r->file, i);
        const char *name = entry->name;
        if (name[0] != letter || name[1] != '_' || !name[2] || strchr(name, '/') ||
            (r->part && bwi_part_of(name + 2, strlen(name + 2)) != r->part)) {
            continue;
        }
        if (only) {
            return bwi_fail(r->ctx, BW_INVALID_ARGUMENT, "%s: expected either '%c' or named ones such as '%c_name', found both",
                            r->path, letter, letter);
        }
        status = add(r, role, r->part ? "" : name + 2, entry);
    }
    if (status == BW_OK && role == BWI_ROLE_INPUT && r->root->column_count == 0) {
        return fail_names(r, "'x' or 'x_<name>'");
    }
    return status;
}

/* As in an npz file, x_train, x_test and the like are parts, unless there are inputs with other names. */
static bw_status find_parts(reading *r)
{
    unsigned found = 0;
    bool others = bwi_hdf5_find(r->file, "x");
    for (int i = 0; i < bwi_hdf5_count(r->file); i++) {
        const char *name = bwi_hdf5_at(r->file, i)->name;
        if (name[0] == 'x' && name[1] == '_' && !strchr(name, '/')) {
            unsigned part = bwi_part_of(name + 2, strlen(name + 2));
            found |= part;
            others = others || part == 0;
        }
    }
    r->root->parts = others || !(found & BWI_PART_TRAIN) || r->options->input ? 0 : found;
    return bwi_part_choose(r->ctx, r->path, r->options, r->root->parts, &r->part);
}

/* Names the datasets that are no samples, unless the caller has chosen some by name; those in groups belong to something else. */
static void report_unread(const reading *r)
{
    bwi_unread unread = {.cut = false};
    for (int i = 0; i < bwi_hdf5_count(r->file); i++) {
        const char *name = bwi_hdf5_at(r->file, i)->name;
        bool field = strchr("xyw", name[0]) && (!name[1] || (name[1] == '_' && name[2]));
        if (!strchr(name, '/') && (!field || (r->part && !bwi_part_of(name + 2, strlen(name + 2))))) {
            bwi_unread_add(&unread, name, strlen(name));
        }
    }
    bwi_unread_report(r->ctx, r->path, &unread);
}

/* Datasets that the caller names take the place of x and y; an empty name for the target means that there is none. */
static bw_status read_fields(reading *r)
{
    const char *const asked[] = {r->options->input, r->options->target, NULL};
    char where[768];
    bw_status status = bwi_dataset_map_file(r->root, r->path, &r->bytes);
    if (status == BW_OK) {
        status = bwi_hdf5_open(r->ctx, &r->file, r->bytes->data, r->bytes->size, r->path);
    }
    if (status == BW_OK) {
        status = find_parts(r);
    }
    for (int role = 0; role < 3 && status == BW_OK; role++) {
        if (!asked[role]) {
            status = add_role(r, (bwi_role)role);
        } else if (asked[role][0]) {
            status = add_asked(r, (bwi_role)role, asked[role]);
        }
    }
    if (status == BW_OK && !asked[BWI_ROLE_INPUT] && !asked[BWI_ROLE_TARGET]) {
        report_unread(r);
    }
    snprintf(where, sizeof where, "%.*s: ", (int)sizeof where - 3, r->path);
    return status == BW_OK ? bwi_dataset_settle(r->root, where) : status;
}

bw_status bwi_hdf5_samples(bw_context *ctx, bw_dataset **root, const char *const *paths, int count, const bw_read_options *options)
{
    reading r = {.ctx = ctx, .options = options, .path = paths[0]};
    (void)count;
    *root = NULL;
    bw_status status = bwi_read_options_check(ctx, r.path, options, BWI_READ_TARGET | BWI_READ_INPUT);
    if (status != BW_OK) {
        return status;
    }
    r.root = bwi_dataset_root(ctx, &bwi_kind_arrays, BWI_FIELD_LIMIT, 0);
    if (!r.root) {
        return BW_RESOURCE_EXHAUSTED;
    }
    status = read_fields(&r);
    bwi_hdf5_close(r.file);
    if (status == BW_OK) {
        *root = r.root;
    } else {
        bw_dataset_free(r.root);
    }
    return status;
}
