/*
 * TFRecord files of tf.train.Example. A scan of the records' headers finds where each begins; from then on samples are reached by
 * number, in the mapped files, and their checksums are verified each time. The first record decides what a feature is: floats,
 * whole numbers, bytes, or an encoded image; every other record must have the same.
 *
 * gzip files are unpacked into a backing. Standard input, packed or not, is a stream that goes into a backing too, as far as
 * samples are needed.
 */
#include "data/read/read.h"
#include "format/format.h"

#include <stdio.h>
#include <string.h>

enum { FIELDS = 3, CANCEL_EVERY = 1 << 16 };

#define FIRST_READ ((size_t)1 << 16) /* bytes that are unpacked or read first; each later read doubles them */

/* A field of the samples, and the feature that it comes from. */
typedef struct feature {
    char *name;
    bwi_list_kind kind;
    int64_t count; /* of values, or the length of bytes */
    bool image;
} feature;

typedef struct record_file {
    char *path;
    int64_t first;   /* number of its first record */
    bwi_bytes bytes; /* mapped, or in the backing */
    size_t scanned;  /* bytes whose records are known */
    bwi_backing backing;
    bwi_gzip *gzip;
    bwi_input input;
} record_file;

typedef struct records {
    record_file *file;
    int files;
    uint64_t *offset; /* [number]: where the record begins in its file */
    int64_t count, capacity;
    feature feature[FIELDS];
    bwi_picture size;
    bwi_decode_buffers buffers;
    bool unpack_any;
} records;

/* ---- On workers ---- */

static int file_of(const records *state, int64_t number)
{
    int low = 0, high = state->files;
    while (high - low > 1) {
        int middle = low + (high - low) / 2;
        if (state->file[middle].first <= number) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return low;
}

static void locate(const bw_dataset *dataset, int64_t number, char *text, size_t size)
{
    const records *state = dataset->state;
    const record_file *file = &state->file[file_of(state, number)];
    const char *path = file->path, *slash = strrchr(path, '/');
    if (strlen(path) > size / 2 && slash) {
        path = slash + 1;
    }
    snprintf(text, size, "%s, record %lld at byte %llu", path, (long long)(number - file->first),
             (unsigned long long)state->offset[number]);
}

static const char *const kinds[] = {"nothing", "bytes", "floats", "int64"};

static bw_status put_image(const bw_dataset *dataset, int64_t number, const bwi_bytes *file, void *to, char *error)
{
    records *state = dataset->state;
    char what[BWI_IMAGE_ERROR];
    bwi_decode_buffer *buffer = bwi_decode_buffer_take(dataset->owned.ctx, &state->buffers);
    if (!buffer) {
        return bwi_sample_error(dataset, number, error, BW_RESOURCE_EXHAUSTED, "no memory to decode it");
    }
    bw_status status = bwi_picture_decode(dataset->owned.ctx, &buffer->scratch, file->data, file->size, &state->size, to, what);
    bwi_decode_buffer_give(&state->buffers, buffer);
    return status == BW_OK ? BW_OK : bwi_sample_error(dataset, number, error, status, "%s", what);
}

/* Any record may lack a feature, or have it with another kind or length, so each is compared with what the first one had. */
static bw_status put_feature(const bw_dataset *dataset, int64_t number, const bwi_bytes *record, const feature *f, void *to,
                             char *error)
{
    bwi_list list;
    char what[BWI_EXAMPLE_ERROR];
    bw_status status = bwi_example_find(record, f->name, &list, what);
    if (status == BW_NOT_FOUND) {
        return bwi_sample_error(dataset, number, error, BW_DATA_LOSS, "it has no feature '%s'", f->name);
    }
    if (status != BW_OK) {
        return bwi_sample_error(dataset, number, error, status, "%s", what);
    }
    bwi_bytes bytes = list.kind == BWI_LIST_BYTES ? bwi_list_bytes(&list) : (bwi_bytes){.size = 0};
    if (f->image && list.kind == BWI_LIST_BYTES && list.count == 1) {
        return put_image(dataset, number, &bytes, to, error);
    }
    int64_t count = list.kind == BWI_LIST_BYTES && list.count == 1 ? (int64_t)bytes.size : list.count;
    if (list.kind != f->kind || count != f->count || (f->kind == BWI_LIST_BYTES && list.count != 1)) {
        return bwi_sample_error(dataset, number, error, BW_DATA_LOSS, "'%s' has %lld %s, expected %lld %s", f->name,
                                (long long)count, kinds[list.kind], (long long)f->count, kinds[f->kind]);
    }
    if (f->kind == BWI_LIST_BYTES) {
        memcpy(to, bytes.data, bytes.size);
    } else {
        bwi_list_read(&list, to);
    }
    return BW_OK;
}

static bw_status make(const bw_dataset *dataset, int epoch, int64_t number, void *const *values, char *error)
{
    const records *state = dataset->state;
    const bwi_bytes *file = &state->file[file_of(state, number)].bytes;
    size_t offset = state->offset[number];
    bwi_bytes record;
    char what[BWI_EXAMPLE_ERROR];
    (void)epoch;
    bw_status status = bwi_record_next(file, &offset, &record, what);
    if (status != BW_OK) {
        return bwi_sample_error(dataset, number, error, BW_DATA_LOSS, "%s", what);
    }
    if (!bwi_record_intact(&record)) {
        return bwi_sample_error(dataset, number, error, BW_DATA_LOSS, "the record's checksum is wrong");
    }
    for (int f = 0; f < dataset->column_count && status == BW_OK; f++) {
        if (values[f]) {
            status = put_feature(dataset, number, &record, &state->feature[f], values[f], error);
        }
    }
    return status;
}

static void close_records(bw_dataset *dataset)
{
    records *state = dataset->state;
    bw_context *ctx = dataset->owned.ctx;
    for (int i = 0; i < state->files; i++) {
        record_file *file = &state->file[i];
        bwi_release(ctx, file->path);
        bwi_gzip_close(file->gzip);
        bwi_input_close(ctx, &file->input);
        bwi_backing_free(ctx, &file->backing);
    }
    for (int i = 0; i < FIELDS; i++) {
        bwi_release(ctx, state->feature[i].name);
    }
    bwi_release(ctx, state->file);
    bwi_release(ctx, state->offset);
    bwi_decode_buffers_close(ctx, &state->buffers);
}

/* ---- The index ---- */

static bw_status add_record(bw_context *ctx, records *state, size_t offset)
{
    if (state->count == state->capacity) {
        int64_t capacity = 2 * state->capacity + 1024;
        uint64_t *larger = bwi_grow(ctx, state->offset, (size_t)state->count, (size_t)capacity, sizeof *larger);
        if (!larger) {
            return BW_RESOURCE_EXHAUSTED;
        }
        state->offset = larger;
        state->capacity = capacity;
    }
    state->offset[state->count++] = offset;
    return BW_OK;
}

/* Unpacks or reads more from a gzip file or a pipe; *got is 0 at its end. */
static bw_status read_more(bw_context *ctx, record_file *file, size_t *got)
{
    bwi_backing *backing = &file->backing;
    size_t used = file->bytes.size;
    bw_status status = BW_OK;
    if (backing->bytes == used) {
        status = bwi_backing_grow(ctx, backing, used, bwi_size_add(bwi_size_multiply(used, 2), FIRST_READ), file->path);
    }
    if (status != BW_OK) {
        return status;
    }
    unsigned char *to = (unsigned char *)backing->memory + used;
    size_t free_bytes = backing->bytes - used;
    status = file->gzip ? bwi_gzip_read(file->gzip, to, free_bytes, got) : bwi_input_read(ctx, &file->input, to, free_bytes, got);
    file->bytes = (bwi_bytes){.data = backing->memory, .size = used + *got};
    return status;
}

/* Reads until the next record is complete, unless the file ends before. */
static bw_status read_record(bw_context *ctx, record_file *file)
{
    bw_status status = BW_OK;
    size_t got = file->gzip || file->input.pipe.open;
    while (status == BW_OK && got > 0 && file->bytes.size - file->scanned < bwi_record_size(&file->bytes, file->scanned)) {
        status = read_more(ctx, file, &got);
    }
    return status;
}

/* Finds the place of the next record; OUT_OF_RANGE at the end. */
static bw_status scan_record(bw_dataset *root, record_file *file)
{
    bw_context *ctx = root->owned.ctx;
    records *state = root->state;
    bwi_bytes record;
    char what[BWI_EXAMPLE_ERROR];
    size_t before = file->scanned;
    bw_status status = read_record(ctx, file);
    if (status != BW_OK) {
        return status;
    }
    status = bwi_record_next(&file->bytes, &file->scanned, &record, what);
    if (status == BW_OK) {
        status = add_record(ctx, state, before);
    } else if (status != BW_OUT_OF_RANGE) {
        return bwi_fail(ctx, status, "%s: record %lld at byte %zu: %s", file->path, (long long)(state->count - file->first), before,
                        what);
    }
    if (status == BW_OK && state->count % CANCEL_EVERY == 0 && bwi_cancelled(ctx)) {
        status = bwi_cancel_report(ctx);
    }
    return status;
}

static bw_status open_file(bw_dataset *root, const char *path)
{
    bw_context *ctx = root->owned.ctx;
    records *state = root->state;
    record_file *file = &state->file[state->files++];
    bool pipe = strcmp(path, "tfrecord:-") == 0;
    bwi_bytes *mapped;
    *file = (record_file){.first = state->count, .bytes = {.data = (const unsigned char *)""}};
    file->path = bwi_copy_text(ctx, pipe ? "standard input" : path);
    if (!file->path) {
        return BW_RESOURCE_EXHAUSTED;
    }
    if (pipe) {
        return bwi_input_open(ctx, &file->input, state->unpack_any);
    }
    bw_status status = bwi_dataset_map_file(root, path, &mapped);
    if (status != BW_OK || !bwi_gzip_is(mapped)) {
        file->bytes = status == BW_OK ? *mapped : file->bytes;
        return status;
    }
    return bwi_gzip_open(ctx, &file->gzip, mapped, state->unpack_any, file->path);
}

/* Files are scanned to their ends, standard input only as far as samples are needed. */
static bw_status scan_file(bw_dataset *root, const char *path)
{
    records *state = root->state;
    bw_status status = open_file(root, path);
    record_file *file = &state->file[state->files - 1];
    root->live = file->input.pipe.open;
    if (status == BW_OK && root->live) {
        return scan_record(root, file);
    }
    while (status == BW_OK) {
        status = scan_record(root, file);
    }
    bwi_gzip_close(file->gzip);
    file->gzip = NULL;
    return status;
}

static bw_status scan_all(bw_dataset *root, const char *const *paths, int count)
{
    bw_context *ctx = root->owned.ctx;
    records *state = root->state;
    bw_status status = BW_OUT_OF_RANGE;
    state->file = bwi_allocate(ctx, (size_t)count, sizeof *state->file);
    if (!state->file) {
        return BW_RESOURCE_EXHAUSTED;
    }
    for (int i = 0; i < count && status == BW_OUT_OF_RANGE; i++) {
        status = scan_file(root, paths[i]);
    }
    if (status == BW_OUT_OF_RANGE && state->count == 0) {
        return bwi_fail(ctx, BW_INVALID_ARGUMENT, "%s: holds no records", paths[0]);
    }
    root->numbers = state->count;
    root->count = root->live ? BWI_LIVE : state->count;
    return status == BW_OUT_OF_RANGE ? BW_OK : status;
}

static bw_status pull(bw_dataset *root, int64_t upto)
{
    records *state = root->state;
    record_file *file = &state->file[state->files - 1];
    bw_status status = BW_OK;
    while (status == BW_OK && state->count < upto) {
        status = scan_record(root, file);
    }
    root->numbers = state->count;
    for (int f = 0; f < root->column_count; f++) {
        root->columns[f].samples = state->count;
    }
    if (status != BW_OUT_OF_RANGE) {
        return status;
    }
    root->live = false;
    root->count = state->count;
    bwi_input_close(root->owned.ctx, &file->input);
    return BW_OK;
}

static const bwi_dataset_kind kind = {
    .name = "tfrecord", .make = make, .locate = locate, .close = close_records, .stream = {.follows = true, .pull = pull}};

/* ---- What the features are: from the first record ---- */

typedef struct reading {
    bw_context *ctx;
    bw_dataset *root;
    records *state;
    const bw_read_options *options;
    const char *path;
    bwi_bytes record;
} reading;

/* Finds the feature that was asked for, or else the first with one of the usual names. *name is NULL if there is none. */
static bw_status find_name(reading *r, const char *asked, const char *const *usual, const char **name, bwi_list *list)
{
    char what[BWI_EXAMPLE_ERROR], names[256];
    const char *const only[] = {asked, NULL};
    for (const char *const *at = asked ? only : usual; *at; at++) {
        bw_status status = bwi_example_find(&r->record, *at, list, what);
        *name = *at;
        if (status == BW_OK) {
            return BW_OK;
        }
        if (status != BW_NOT_FOUND) {
            return bwi_fail(r->ctx, status, "%s: record 0: %s", r->path, what);
        }
    }
    *name = NULL;
    if (!asked) {
        return BW_OK;
    }
    bwi_example_names(&r->record, names, sizeof names);
    return bwi_fail(r->ctx, BW_NOT_FOUND, "%s: record 0 has no feature '%s'; found %s", r->path, asked, names[0] ? names : "none");
}

static bw_status choose_size(reading *r, const bwi_bytes *file)
{
    char what[BWI_IMAGE_ERROR];
    bwi_picture *size = &r->state->size, first;
    bool asked;
    bw_status status = bwi_picture_asked(r->ctx, r->options, r->path, size, &asked);
    if (status != BW_OK) {
        return status;
    }
    status = bwi_picture_look(r->ctx, file->data, file->size, &first, what);
    if (!asked && status != BW_OK) {
        return bwi_fail(r->ctx, status, "%s: record 0: %s", r->path, what);
    }
    if (!asked) {
        *size = first;
        bwi_log(r->ctx, BW_LOG_INFO, "%s: images are brought to %lldx%lldx%d, the size of the first", r->path,
                (long long)size->height, (long long)size->width, size->channels);
    }
    r->root->decoder_bytes = bwi_decoder_bytes(0, status == BW_OK ? &first : size, size); /* the file itself is mapped */
    return BW_OK;
}

static bw_status describe_image(reading *r, feature *f, bwi_field *field, const bwi_bytes *file)
{
    bw_status status = choose_size(r, file);
    const bwi_picture *size = &r->state->size;
    f->image = true;
    field->dtype = BW_U8;
    field->ndim = 3;
    field->shape[0] = size->height;
    field->shape[1] = size->width;
    field->shape[2] = size->channels;
    r->root->slow = true;
    return status;
}

/* Describes the field of a feature. A target or weight with one value is a number, not a list of one. */
static bw_status describe(reading *r, feature *f, const bwi_list *list, bwi_field *field)
{
    bwi_bytes bytes = list->kind == BWI_LIST_BYTES ? bwi_list_bytes(list) : (bwi_bytes){.size = 0};
    bool input = field->role == BWI_ROLE_INPUT;
    if (list->kind == BWI_LIST_BYTES && (list->count != 1 || !input)) {
        return bwi_fail(r->ctx, BW_INVALID_ARGUMENT, "%s: record 0: '%s' has %lld values of bytes; expected %s", r->path, f->name,
                        (long long)list->count, input ? "one" : "numbers");
    }
    f->kind = list->kind;
    if (list->kind == BWI_LIST_BYTES && bwi_picture_is(bytes.data, bytes.size)) {
        return describe_image(r, f, field, &bytes);
    }
    f->count = list->kind == BWI_LIST_BYTES ? (int64_t)bytes.size : list->count;
    if (f->count == 0) {
        return bwi_fail(r->ctx, BW_INVALID_ARGUMENT, "%s: record 0: '%s' has no values", r->path, f->name);
    }
    field->dtype = list->kind == BWI_LIST_BYTES ? BW_U8 : list->kind == BWI_LIST_FLOAT ? BW_F32 : BW_I64;
    field->ndim = f->count == 1 && !input ? 0 : 1;
    field->shape[0] = f->count;
    return BW_OK;
}

/* Adds the field of a role, if the first record has one; an empty --target means that there is no target. */
static bw_status add_field(reading *r, bwi_role role)
{
    static const char *const usual[FIELDS][4] = {{"x", "image"}, {"y", "label"}, {"w", "weight"}};
    const char *const asked[FIELDS] = {r->options->input, r->options->target, NULL};
    const char *name;
    bwi_field field = {.role = role};
    bwi_list list;
    char names[256];
    if (role == BWI_ROLE_TARGET && asked[role] && !asked[role][0]) {
        return BW_OK;
    }
    bw_status status = find_name(r, asked[role], usual[role], &name, &list);
    if (status != BW_OK) {
        return status;
    }
    if (!name && role == BWI_ROLE_INPUT) {
        bwi_example_names(&r->record, names, sizeof names);
        return bwi_fail(r->ctx, BW_NOT_FOUND, "%s: record 0 has no feature 'x' or 'image'; found %s; the option 'input' names one",
                        r->path, names[0] ? names : "none");
    }
    if (!name) {
        return BW_OK;
    }
    feature *f = &r->state->feature[r->root->column_count];
    f->name = bwi_copy_text(r->ctx, name);
    if (!f->name) {
        return BW_RESOURCE_EXHAUSTED;
    }
    status = describe(r, f, &list, &field);
    return status == BW_OK ? bwi_dataset_declare(r->root, &field, r->path) : status;
}

static bw_status find_features(reading *r)
{
    size_t offset = 0;
    char what[BWI_EXAMPLE_ERROR];
    bw_status status = bwi_record_next(&r->state->file[file_of(r->state, 0)].bytes, &offset, &r->record, what);
    if (status != BW_OK || !bwi_record_intact(&r->record)) {
        return bwi_fail(r->ctx, BW_DATA_LOSS, "%s: record 0: %s", r->path, what[0] ? what : "the record's checksum is wrong");
    }
    for (int role = 0; role < FIELDS && status == BW_OK; role++) {
        status = add_field(r, (bwi_role)role);
    }
    return status;
}

/* TFRecord files have no index, so they are scanned once to find the records; standard input is read only as far as it is
 * needed. */
bw_status bwi_tfrecord_read(bw_context *ctx, bw_dataset **root, const char *const *paths, int count, const bw_read_options *options)
{
    *root = NULL;
    bw_status status = bwi_read_options_check(ctx, paths[0], options, BWI_READ_TARGET | BWI_READ_INPUT);
    if (status != BW_OK) {
        return status;
    }
    reading r = {.ctx = ctx, .options = options, .path = paths[0]};
    r.root = bwi_dataset_root(ctx, &kind, FIELDS, sizeof(records));
    if (!r.root) {
        return BW_RESOURCE_EXHAUSTED;
    }
    r.state = r.root->state;
    bwi_decode_buffers_open(&r.state->buffers);
    r.state->unpack_any = options->unpack_any;
    status = scan_all(r.root, paths, count);
    if (status == BW_OK) {
        status = find_features(&r);
    }
    if (status == BW_OK) {
        status = bwi_scratch_open(r.root);
    }
    if (status == BW_OK) {
        *root = r.root;
    } else {
        bw_dataset_free(r.root);
    }
    return status;
}
