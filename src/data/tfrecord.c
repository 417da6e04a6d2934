/*
 * TFRecord files of tf.train.Example. A scan of the records' heads finds where each begins; from then on samples are reached by
 * number, in the mapped files, their checksums compared each time. What a feature is, is decided by the first record: floats, whole
 * numbers, bytes, or an encoded image; every other record must have the same.
 */
#include "data/dataset.h"
#include "format/format.h"

#include <stdio.h>
#include <string.h>

enum { FIELDS = 3, CANCEL_EVERY = 1 << 16 };

/* A field of the samples, and the feature that it comes from. */
typedef struct feature {
    char *name;
    bwi_list_kind kind;
    int64_t count; /* values, or of bytes their length */
    bool image;
} feature;

typedef struct records {
    char **paths;
    int64_t *first; /* [file]: its first record's number */
    int files;
    uint64_t *offset; /* [number]: in its file */
    int64_t count, room;
    feature feature[FIELDS];
    bwi_picture size;
    bwi_desks desks;
} records;

/* ---- On workers ---- */

static int file_of(const records *own, int64_t number)
{
    int low = 0, high = own->files;
    while (high - low > 1) {
        const int middle = low + (high - low) / 2;
        if (own->first[middle] <= number)
            low = middle;
        else
            high = middle;
    }
    return low;
}

static void place(const bw_dataset *dataset, int64_t number, char *text, size_t room)
{
    const records *own = dataset->own;
    const int file = file_of(own, number);
    const char *path = own->paths[file], *slash = strrchr(path, '/');
    if (strlen(path) > room / 2 && slash)
        path = slash + 1;
    snprintf(text, room, "%s, record %lld at byte %llu", path, (long long)(number - own->first[file]),
             (unsigned long long)own->offset[number]);
}

static const char *const kinds[] = {"nothing", "bytes", "floats", "int64"};

static bw_status put_image(const bw_dataset *dataset, int64_t number, const bwi_bytes *file, void *to, char *trouble)
{
    records *own = dataset->own;
    char what[BWI_IMAGE_TROUBLE];
    bwi_desk *desk = bwi_desk_take(dataset->owned.ctx, &own->desks);
    if (!desk)
        return bwi_trouble(dataset, number, trouble, BW_RESOURCE_EXHAUSTED, "no memory to decode it");
    const bw_status status = bwi_picture_decode(dataset->owned.ctx, &desk->scratch, file->data, file->size, &own->size, to, what);
    bwi_desk_give(&own->desks, desk);
    return status == BW_OK ? BW_OK : bwi_trouble(dataset, number, trouble, status, "%s", what);
}

static bw_status put_feature(const bw_dataset *dataset, int64_t number, const bwi_bytes *record, const feature *f, void *to,
                             char *trouble)
{
    bwi_list list;
    char what[BWI_EXAMPLE_TROUBLE];
    const bw_status status = bwi_example_find(record, f->name, &list, what);
    if (status == BW_NOT_FOUND)
        return bwi_trouble(dataset, number, trouble, BW_DATA_LOSS, "it has no feature '%s'", f->name);
    if (status != BW_OK)
        return bwi_trouble(dataset, number, trouble, status, "%s", what);
    const bwi_bytes bytes = list.kind == BWI_LIST_BYTES ? bwi_list_bytes(&list) : (bwi_bytes){.size = 0};
    if (f->image && list.kind == BWI_LIST_BYTES && list.count == 1)
        return put_image(dataset, number, &bytes, to, trouble);
    const int64_t count = list.kind == BWI_LIST_BYTES && list.count == 1 ? (int64_t)bytes.size : list.count;
    if (list.kind != f->kind || count != f->count || (f->kind == BWI_LIST_BYTES && list.count != 1))
        return bwi_trouble(dataset, number, trouble, BW_DATA_LOSS, "'%s' has %lld %s, expected %lld %s", f->name, (long long)count,
                           kinds[list.kind], (long long)f->count, kinds[f->kind]);
    if (f->kind == BWI_LIST_BYTES)
        memcpy(to, bytes.data, bytes.size);
    else
        bwi_list_read(&list, to);
    return BW_OK;
}

static bw_status make(const bw_dataset *dataset, int epoch, int64_t number, void *const *values, char *trouble)
{
    const records *own = dataset->own;
    const bwi_bytes *file = &dataset->files[file_of(own, number)];
    size_t offset = own->offset[number];
    bwi_bytes record;
    char what[BWI_EXAMPLE_TROUBLE];
    (void)epoch;
    bw_status status = bwi_record_next(file, &offset, &record, what);
    if (status != BW_OK)
        return bwi_trouble(dataset, number, trouble, BW_DATA_LOSS, "%s", what);
    if (!bwi_record_intact(&record))
        return bwi_trouble(dataset, number, trouble, BW_DATA_LOSS, "the record's checksum is wrong");
    for (int f = 0; f < dataset->column_count && status == BW_OK; f++) {
        if (values[f])
            status = put_feature(dataset, number, &record, &own->feature[f], values[f], trouble);
    }
    return status;
}

static void close_records(bw_dataset *dataset)
{
    records *own = dataset->own;
    bw_context *ctx = dataset->owned.ctx;
    for (int i = 0; own->paths && i < own->files; i++)
        bwi_release(ctx, own->paths[i]);
    for (int i = 0; i < FIELDS; i++)
        bwi_release(ctx, own->feature[i].name);
    bwi_release(ctx, own->paths);
    bwi_release(ctx, own->first);
    bwi_release(ctx, own->offset);
    bwi_desks_close(ctx, &own->desks);
}

static const bwi_source source = {.kind = "tfrecord", .make = make, .place = place, .close = close_records};

/* ---- The index ---- */

static bw_status add_record(bw_context *ctx, records *own, size_t offset)
{
    if (own->count == own->room) {
        const int64_t room = 2 * own->room + 1024;
        uint64_t *larger = bwi_grow(ctx, own->offset, (size_t)own->count, (size_t)room, sizeof *larger);
        if (!larger)
            return BW_RESOURCE_EXHAUSTED;
        own->offset = larger;
        own->room = room;
    }
    own->offset[own->count++] = offset;
    return BW_OK;
}

static bw_status scan(bw_dataset *root, const char *path)
{
    bw_context *ctx = root->owned.ctx;
    records *own = root->own;
    bwi_bytes *file, record;
    size_t offset = 0, before = 0;
    char what[BWI_EXAMPLE_TROUBLE];
    bw_status status = bwi_dataset_map_file(root, path, &file);
    if (status != BW_OK)
        return status;
    const int64_t first = own->first[own->files] = own->count;
    own->paths[own->files] = bwi_copy_text(ctx, path);
    if (!own->paths[own->files])
        return BW_RESOURCE_EXHAUSTED;
    own->files++;
    while ((status = bwi_record_next(file, &offset, &record, what)) == BW_OK) {
        status = add_record(ctx, own, before);
        if (status == BW_OK && own->count % CANCEL_EVERY == 0 && bwi_cancelled(ctx))
            status = bwi_cancel_report(ctx);
        if (status != BW_OK)
            return status;
        before = offset;
    }
    if (status == BW_OUT_OF_RANGE)
        return BW_OK;
    return bwi_fail(ctx, status, "%s: record %lld at byte %zu: %s", path, (long long)(own->count - first), before, what);
}

static bw_status scan_all(bw_dataset *root, const char *const *paths, int count)
{
    bw_context *ctx = root->owned.ctx;
    records *own = root->own;
    bw_status status = BW_OK;
    own->paths = bwi_allocate(ctx, (size_t)count, sizeof *own->paths);
    own->first = own->paths ? bwi_allocate(ctx, (size_t)count, sizeof *own->first) : NULL;
    if (!own->first)
        return BW_RESOURCE_EXHAUSTED;
    for (int i = 0; i < count && status == BW_OK; i++)
        status = scan(root, paths[i]);
    if (status == BW_OK && own->count == 0)
        return bwi_fail(ctx, BW_INVALID_ARGUMENT, "%s: holds no records", paths[0]);
    root->count = root->numbers = own->count;
    return status;
}

/* ---- What the features are: from the first record ---- */

typedef struct reading {
    bw_context *ctx;
    bw_dataset *root;
    records *own;
    const bw_read_options *options;
    const char *path;
    bwi_bytes record;
} reading;

/* The feature that was asked for, or the first of the usual names. *name is NULL if there is none. */
static bw_status find_name(reading *r, const char *asked, const char *const *usual, const char **name, bwi_list *list)
{
    char what[BWI_EXAMPLE_TROUBLE], names[256];
    const char *const only[] = {asked, NULL};
    for (const char *const *at = asked ? only : usual; *at; at++) {
        const bw_status status = bwi_example_find(&r->record, *at, list, what);
        *name = *at;
        if (status == BW_OK)
            return BW_OK;
        if (status != BW_NOT_FOUND)
            return bwi_fail(r->ctx, status, "%s: record 0: %s", r->path, what);
    }
    *name = NULL;
    if (!asked)
        return BW_OK;
    bwi_example_names(&r->record, names, sizeof names);
    return bwi_fail(r->ctx, BW_NOT_FOUND, "%s: record 0 has no feature '%s'; found %s", r->path, asked, names[0] ? names : "none");
}

static bw_status choose_size(reading *r, const bwi_bytes *file)
{
    char what[BWI_IMAGE_TROUBLE];
    bwi_picture *size = &r->own->size;
    bool asked;
    bw_status status = bwi_picture_asked(r->ctx, r->options, r->path, size, &asked);
    if (status != BW_OK || asked)
        return status;
    status = bwi_picture_look(r->ctx, file->data, file->size, size, what);
    if (status != BW_OK)
        return bwi_fail(r->ctx, status, "%s: record 0: %s", r->path, what);
    bwi_log(r->ctx, BW_LOG_INFO, "%s: images are brought to %lldx%lldx%d, the size of the first", r->path, (long long)size->height,
            (long long)size->width, size->channels);
    return BW_OK;
}

static bw_status describe_image(reading *r, feature *f, bwi_field *field, const bwi_bytes *file)
{
    const bw_status status = choose_size(r, file);
    const bwi_picture *size = &r->own->size;
    f->image = true;
    field->dtype = BW_U8;
    field->rank = 3;
    field->shape[0] = size->height;
    field->shape[1] = size->width;
    field->shape[2] = size->channels;
    r->root->slow = true;
    return status;
}

/* One value of a target or a weight is a number, not a list of one. */
static bw_status describe(reading *r, feature *f, const bwi_list *list, bwi_field *field)
{
    const bwi_bytes bytes = list->kind == BWI_LIST_BYTES ? bwi_list_bytes(list) : (bwi_bytes){.size = 0};
    const bool input = field->role == BWI_ROLE_INPUT;
    if (list->kind == BWI_LIST_BYTES && (list->count != 1 || !input))
        return bwi_fail(r->ctx, BW_INVALID_ARGUMENT, "%s: record 0: '%s' has %lld values of bytes; expected %s", r->path, f->name,
                        (long long)list->count, input ? "one" : "numbers");
    f->kind = list->kind;
    if (list->kind == BWI_LIST_BYTES && bwi_picture_is(bytes.data, bytes.size))
        return describe_image(r, f, field, &bytes);
    f->count = list->kind == BWI_LIST_BYTES ? (int64_t)bytes.size : list->count;
    if (f->count == 0)
        return bwi_fail(r->ctx, BW_INVALID_ARGUMENT, "%s: record 0: '%s' has no values", r->path, f->name);
    field->dtype = list->kind == BWI_LIST_BYTES ? BW_U8 : list->kind == BWI_LIST_FLOAT ? BW_F32 : BW_I64;
    field->rank = f->count == 1 && !input ? 0 : 1;
    field->shape[0] = f->count;
    return BW_OK;
}

static bw_status add_field(reading *r, bwi_role role)
{
    static const char *const usual[FIELDS][4] = {{"x", "image"}, {"y", "label"}, {"w", "weight"}};
    const char *const asked[FIELDS] = {r->options->input, r->options->target, NULL};
    const char *name;
    bwi_field field = {.role = role};
    bwi_list list;
    char names[256];
    if (role == BWI_ROLE_TARGET && asked[role] && !asked[role][0])
        return BW_OK;
    bw_status status = find_name(r, asked[role], usual[role], &name, &list);
    if (status != BW_OK)
        return status;
    if (!name && role == BWI_ROLE_INPUT) {
        bwi_example_names(&r->record, names, sizeof names);
        return bwi_fail(r->ctx, BW_NOT_FOUND, "%s: record 0 has no feature 'x' or 'image'; found %s; the option 'input' names one",
                        r->path, names[0] ? names : "none");
    }
    if (!name)
        return BW_OK;
    feature *f = &r->own->feature[r->root->column_count];
    f->name = bwi_copy_text(r->ctx, name);
    if (!f->name)
        return BW_RESOURCE_EXHAUSTED;
    status = describe(r, f, &list, &field);
    return status == BW_OK ? bwi_dataset_declare(r->root, &field, r->path) : status;
}

static bw_status find_features(reading *r)
{
    size_t offset = 0;
    char what[BWI_EXAMPLE_TROUBLE];
    bw_status status = bwi_record_next(&r->root->files[file_of(r->own, 0)], &offset, &r->record, what);
    if (status != BW_OK || !bwi_record_intact(&r->record))
        return bwi_fail(r->ctx, BW_DATA_LOSS, "%s: record 0: %s", r->path, what[0] ? what : "the record's checksum is wrong");
    for (int role = 0; role < FIELDS && status == BW_OK; role++)
        status = add_field(r, (bwi_role)role);
    return status;
}

bw_status bwi_tfrecord_read(bw_context *ctx, bw_dataset **root, const char *const *paths, int count, const bw_read_options *options)
{
    *root = NULL;
    bw_status status = bwi_read_options_check(ctx, paths[0], options, BWI_READ_TARGET | BWI_READ_INPUT);
    if (status != BW_OK)
        return status;
    reading r = {.ctx = ctx, .options = options, .path = paths[0]};
    r.root = bwi_dataset_root(ctx, &source, FIELDS, sizeof(records));
    if (!r.root)
        return BW_RESOURCE_EXHAUSTED;
    r.own = r.root->own;
    bwi_desks_open(&r.own->desks);
    status = scan_all(r.root, paths, count);
    if (status == BW_OK)
        status = find_features(&r);
    if (status == BW_OK)
        status = bwi_scratch_open(r.root);
    if (status == BW_OK)
        *root = r.root;
    else
        bw_dataset_free(r.root);
    return status;
}
