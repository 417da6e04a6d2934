/*
 * Samples from an npz file: members x.npy, y.npy, w.npy, or x_<name>.npy and so on; if it has x_train.npy, x_test.npy and the
 * like, one of these parts. Stored members are used in place in the mapped file; deflated ones, and those in the other byte order,
 * are unpacked once. Nothing is allocated before the member's declared size agrees exactly with its header.
 */
#include "data/read/read.h"
#include "format/format.h"

#include <string.h>

#define SMALL_BYTES ((size_t)32 << 20) /* for which nobody asks how much memory there is */

typedef struct reading {
    bw_context *ctx;
    const char *path;
    bwi_bytes file;
    bwi_zip *zip;
    bw_dataset *root;
    const bw_read_options *options;
    unsigned parts, part; /* the parts in the file, and the one that is read; 0: everything is */
    int fields;
    int64_t members[BWI_FIELD_LIMIT]; /* the zip's index of each field */
    bool in_place;                    /* a column uses the mapped file */
} reading;

/* Whether a member is a field; `name` points at what follows "x_" and has `length` bytes. */
static bool is_field(const char *member, bwi_role *role, const char **name, size_t *length)
{
    const char *roles = "xyw";
    size_t size = strlen(member);
    const char *found = size > 4 ? strchr(roles, member[0]) : NULL;
    if (!found || strcmp(member + size - 4, ".npy") != 0 || (size > 5 && (member[1] != '_' || size == 6))) {
        return false;
    }
    *role = (bwi_role)(found - roles);
    *name = size == 5 ? "" : member + 2;
    *length = size == 5 ? 0 : size - 6;
    return true;
}

/* Lists the members' names for a message. */
static void list_members(const bwi_zip *zip, char *text, size_t size)
{
    char quoted[BWI_QUOTE_SIZE];
    int64_t count = bwi_zip_count(zip);
    text[0] = 0;
    for (int64_t i = 0; i < count; i++) {
        const char *name = bwi_zip_name(zip, i);
        bwi_quote(quoted, name, strlen(name));
        if (strlen(text) + strlen(quoted) + 8 > size) {
            strcat(text, " ...");
            return;
        }
        strcat(text, i ? ", " : "");
        strcat(text, quoted);
    }
    if (count == 0) {
        strcat(text, "nothing");
    }
}

/* A file has parts if all of its inputs are named after parts, and one of these is for training. */
static bw_status find_parts(reading *r)
{
    unsigned found = 0;
    bool others = false;
    for (int64_t i = 0; i < bwi_zip_count(r->zip); i++) {
        bwi_role role;
        const char *name;
        size_t length;
        if (is_field(bwi_zip_name(r->zip, i), &role, &name, &length) && role == BWI_ROLE_INPUT) {
            unsigned part = bwi_part_of(name, length);
            found |= part;
            others = others || part == 0;
        }
    }
    r->parts = others || !(found & BWI_PART_TRAIN) ? 0 : found;
    return bwi_part_choose(r->ctx, r->path, r->options, r->parts, &r->part);
}

/* Finds the members that are fields. Names must differ, and a role has either one unnamed field or named ones. */
static bw_status find_members(reading *r)
{
    int64_t count = bwi_zip_count(r->zip);
    bool inputs = false;
    bwi_unread unread = {.cut = false};
    for (int64_t i = 0; i < count; i++) {
        bwi_role role;
        const char *name, *member = bwi_zip_name(r->zip, i);
        size_t length;
        char quoted[BWI_QUOTE_SIZE];
        bool field = is_field(member, &role, &name, &length);
        if (!field || (r->part && !bwi_part_of(name, length))) {
            size_t size = strlen(member);
            bwi_unread_add(&unread, member, size > 4 && strcmp(member + size - 4, ".npy") == 0 ? size - 4 : size);
            continue;
        }
        if (r->part && bwi_part_of(name, length) != r->part) {
            continue;
        }
        bwi_quote(quoted, member, strlen(member));
        if (length >= sizeof((bwi_field *)0)->name) {
            return bwi_fail(r->ctx, BW_INVALID_ARGUMENT, "%s: member %s: the name has %zu characters; at most %zu are allowed",
                            r->path, quoted, length, sizeof((bwi_field *)0)->name - 1);
        }
        for (int j = 0; j < r->fields; j++) {
            const char *other = bwi_zip_name(r->zip, r->members[j]);
            if (strcmp(other, member) == 0) {
                return bwi_fail(r->ctx, BW_DATA_LOSS, "%s: member %s appears twice", r->path, quoted);
            }
            if (other[0] == member[0] && (length == 0 || other[1] == '.')) {
                return bwi_fail(r->ctx, BW_INVALID_ARGUMENT,
                                "%s: expected either '%c.npy' or named ones such as '%c_name.npy', found both", r->path, member[0],
                                member[0]);
            }
        }
        if (r->fields == BWI_FIELD_LIMIT) {
            return bwi_fail(r->ctx, BW_INVALID_ARGUMENT, "%s: more than %d arrays of samples", r->path, BWI_FIELD_LIMIT);
        }
        inputs = inputs || role == BWI_ROLE_INPUT;
        r->members[r->fields++] = i;
    }
    if (inputs) {
        bwi_unread_report(r->ctx, r->path, &unread);
        return BW_OK;
    }
    char found[512];
    list_members(r->zip, found, sizeof found);
    return bwi_fail(r->ctx, BW_NOT_FOUND,
                    "%s: no member 'x.npy' or 'x_<name>.npy'; found %s; call inputs x and targets y when saving", r->path, found);
}

/* A file of a few bytes must not unpack to gigabytes, so the declared sizes are compared with the packed ones. */
static bw_status check_expansion(reading *r)
{
    size_t unpacked = 0, packed = 0;
    for (int i = 0; i < r->fields; i++) {
        bwi_zip_member member;
        bw_status status = bwi_zip_member_at(r->zip, r->members[i], &member);
        if (status != BW_OK) {
            return status;
        }
        if (!member.stored) {
            unpacked = bwi_size_add(unpacked, member.size);
            packed = bwi_size_add(packed, member.packed);
        }
    }
    char size[32], other[32];
    bw_status status = r->options->unpack_any ? BW_OK : bwi_expansion_check(r->ctx, r->path, packed, unpacked);
    if (status != BW_OK) {
        return status;
    }
    if (unpacked > SMALL_BYTES && unpacked > bwi_memory_available(r->ctx)) {
        return bwi_fail(r->ctx, BW_RESOURCE_EXHAUSTED,
                        "%s: unpacking needs %s of memory, there are %s; save the arrays uncompressed", r->path,
                        bwi_format_bytes(size, unpacked), bwi_format_bytes(other, bwi_memory_available(r->ctx)));
    }
    return BW_OK;
}

/* Reads the header of the member that was begun, and checks the declared size against it. */
static bw_status read_header(reading *r, const bwi_zip_member *member, bwi_npy *npy, const char *where)
{
    unsigned char prefix[BWI_NPY_PREFIX];
    if (member->size < sizeof prefix) {
        return bwi_fail(r->ctx, BW_DATA_LOSS, "%s: %zu bytes are too few for an npy array", where, member->size);
    }
    bw_status status = bwi_zip_read(r->zip, prefix, sizeof prefix);
    if (status == BW_OK) {
        status = bwi_npy_begin(r->ctx, npy, prefix, sizeof prefix, where);
    }
    if (status != BW_OK) {
        return status;
    }
    if (npy->offset > member->size || npy->offset < sizeof prefix) {
        return bwi_fail(r->ctx, BW_DATA_LOSS, "%s: an npy header of %zu bytes in a member of %zu", where, npy->offset,
                        member->size);
    }
    unsigned char *header = bwi_allocate(r->ctx, npy->offset, 1);
    if (!header) {
        return BW_RESOURCE_EXHAUSTED;
    }
    memcpy(header, prefix, sizeof prefix);
    status = bwi_zip_read(r->zip, header + sizeof prefix, npy->offset - sizeof prefix);
    if (status == BW_OK) {
        status = bwi_npy_parse(r->ctx, npy, header, where);
    }
    bwi_release(r->ctx, header);
    if (status == BW_OK && npy->bytes != member->size - npy->offset) {
        char shape[256];
        status = bwi_fail(r->ctx, BW_DATA_LOSS, "%s: shape %s of %s needs %zu bytes, the member holds %zu", where,
                          bwi_format_shape(shape, npy->ndim, npy->shape), bwi_dtype_name(npy->dtype), npy->bytes,
                          member->size - npy->offset);
    }
    return status;
}

/* Unpacks the whole member, header included. */
static bw_status unpack(reading *r, int field, const bwi_zip_member *member, const bwi_npy *npy, bwi_column *column)
{
    unsigned char *memory = bwi_allocate(r->ctx, member->size, 1);
    if (!memory) {
        return BW_RESOURCE_EXHAUSTED;
    }
    column->memory = memory; /* released with the root, even after a failure */
    column->rows.data = memory + npy->offset;
    bw_status status = bwi_zip_begin(r->zip, r->members[field]);
    if (status == BW_OK) {
        status = bwi_zip_read(r->zip, memory, member->size);
    }
    if (status == BW_OK) {
        status = bwi_zip_end(r->zip);
    }
    if (status == BW_OK && npy->swapped) {
        bwi_npy_swap(npy, memory + npy->offset);
    }
    return status;
}

static bw_status find_values(reading *r, int field, const bwi_zip_member *member, const bwi_npy *npy)
{
    const unsigned char *place = NULL;
    bwi_column *column = &r->root->columns[field];
    if (member->stored && !npy->swapped) {
        bw_status status = bwi_zip_in_place(r->zip, r->members[field], &place);
        if (status != BW_OK) {
            return status;
        }
    }
    if (!place) {
        return unpack(r, field, member, npy, column);
    }
    column->rows.data = place + npy->offset;
    r->in_place = true;
    return BW_OK;
}

/* The header is read through the zip, so that it is checked before the values are mapped or unpacked. */
static bw_status read_field(reading *r, int field)
{
    bwi_zip_member member;
    bwi_npy npy;
    bwi_role role = BWI_ROLE_INPUT;
    const char *rest = "";
    size_t length = 0;
    char name[64] = "", quoted[BWI_QUOTE_SIZE], where[1024];
    bw_status status = bwi_zip_member_at(r->zip, r->members[field], &member);
    if (status != BW_OK) {
        return status;
    }
    is_field(member.name, &role, &rest, &length);
    memcpy(name, rest, r->part ? 0 : length);
    snprintf(where, sizeof where, "%.*s: member %s", (int)(sizeof where - BWI_QUOTE_SIZE - 16), r->path,
             bwi_quote(quoted, member.name, strlen(member.name)));
    status = bwi_zip_begin(r->zip, r->members[field]);
    if (status == BW_OK) {
        status = read_header(r, &member, &npy, where);
    }
    if (status != BW_OK) {
        return status;
    }
    bw_array view = {.data = r->file.data, .dtype = npy.dtype, .ndim = npy.ndim};
    memcpy(view.shape, npy.shape, sizeof view.shape);
    bwi_npy_strides(&npy, view.strides);
    status = bwi_dataset_add(r->root, role, name, &view, where);
    return status == BW_OK ? find_values(r, field, &member, &npy) : status;
}

/* Checks all members before the first is read. */
static bw_status read_fields(reading *r)
{
    bw_status status = find_parts(r);
    if (status == BW_OK) {
        status = find_members(r);
    }
    if (status == BW_OK) {
        status = check_expansion(r);
    }
    if (status != BW_OK) {
        return status;
    }
    r->root = bwi_dataset_root(r->ctx, &bwi_kind_arrays, r->fields, 0);
    if (!r->root) {
        return BW_RESOURCE_EXHAUSTED;
    }
    for (int i = 0; status == BW_OK && i < r->fields; i++) {
        status = read_field(r, i);
    }
    if (status != BW_OK) {
        return status;
    }
    char where[768];
    r->root->parts = r->parts;
    snprintf(where, sizeof where, "%.*s: ", (int)sizeof where - 3, r->path);
    return bwi_dataset_settle(r->root, where);
}

/* Gives the mapped file to the root, which keeps it while a column uses it. */
static bw_status keep_file(reading *r)
{
    r->root->files = bwi_allocate(r->ctx, 1, sizeof *r->root->files);
    if (!r->root->files) {
        return BW_RESOURCE_EXHAUSTED;
    }
    r->root->files[r->root->file_count++] = r->file;
    r->file = (bwi_bytes){.size = 0};
    return BW_OK;
}

/* The file stays mapped only if a stored member is used in place; everything else has been copied by then. */
bw_status bwi_npz_read(bw_context *ctx, bw_dataset **root, const char *const *paths, int count, const bw_read_options *options)
{
    reading r = {.ctx = ctx, .path = paths[0], .options = options};
    (void)count;
    *root = NULL;
    bw_status status = bwi_read_options_check(ctx, r.path, options, 0);
    if (status == BW_OK) {
        status = bwi_file_map(ctx, &r.file, r.path);
    }
    if (status != BW_OK) {
        return status;
    }
    status = bwi_zip_open(ctx, &r.zip, &r.file, r.path);
    if (status == BW_OK) {
        status = read_fields(&r);
    }
    bwi_zip_close(r.zip);
    if (status == BW_OK && r.in_place) {
        status = keep_file(&r);
    }
    bwi_file_unmap(ctx, &r.file);
    if (status == BW_OK) {
        *root = r.root;
    } else {
        bw_dataset_free(r.root);
    }
    return status;
}
