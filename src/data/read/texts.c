/*
 * Texts: a folder of class folders of .txt files, reviews/pos/1.txt, reviews/neg/2.txt, as Keras's text_dataset_from_directory
 * reads it; and, without targets, a folder of .txt files, a list of them, or the lines of standard input. Classes are the sorted
 * names of the folders. All texts are read at once into memory that becomes a temporary file if it is large. Symbolic links are
 * refused, so that nothing outside the folder is opened.
 */
#include "data/read/read.h"
#include "format/format.h"

#include <stdio.h>
#include <string.h>

#define FILE_BYTES ((size_t)256 << 20) /* limit for the file of one text */
enum { PATH_BYTES = 4096, CLASS_LIMIT = 1 << 20, PIECE = 1 << 16 };

/* Where the samples come from, for messages. */
typedef struct origins {
    char *names; /* one after another, each ended by NUL; "": lines */
    size_t used;
    size_t *name_at;
    int64_t count;
} origins;

typedef struct reading {
    bw_context *ctx;
    const char *path;
    bwi_texts all;
    const bwi_facts *like; /* NULL: classes are numbered in the order of their names */
    bwi_names classes;
    int32_t *labels;
    origins origin;
    int64_t capacity;
    size_t names_capacity;
    bool flat; /* there are no targets */
    bwi_buffer file;
} reading;

/* ---- Rows of text ---- */

bw_status bwi_texts_add(bw_context *ctx, bwi_texts *texts, const char *bytes, size_t size, const char *what)
{
    size_t needed = bwi_size_add(texts->used, size), cells = (size_t)texts->count * sizeof *texts->cells;
    bw_status status = BW_OK;
    if (needed > texts->bytes.bytes) {
        status = bwi_backing_grow(ctx, &texts->bytes, texts->used, bwi_size_add(needed, texts->bytes.bytes + PIECE), what);
    }
    if (status == BW_OK && cells + sizeof *texts->cells > texts->places.bytes) {
        status = bwi_backing_grow(ctx, &texts->places, cells, 2 * texts->places.bytes + PIECE, what);
        texts->cells = texts->places.memory;
    }
    if (status != BW_OK) {
        return status;
    }
    if (size > 0) {
        memcpy((char *)texts->bytes.memory + texts->used, bytes, size);
    }
    texts->cells[texts->count++] = (bw_text){.bytes = (const char *)(uintptr_t)texts->used, .size = (int64_t)size};
    texts->used = needed;
    return BW_OK;
}

/* Memory moves while it grows, so that cells hold offsets until now. */
bw_status bwi_texts_end(bw_dataset *root, const char *name, bwi_texts *texts, int64_t each, int64_t first, const char *where)
{
    int64_t rows = texts->count / each;
    bw_array x = {.data = texts->cells + first, .dtype = BW_TEXT, .ndim = 2, .shape = {rows, 1}};
    x.strides[0] = each * (int64_t)sizeof *texts->cells;
    x.strides[1] = (int64_t)sizeof *texts->cells;
    for (int64_t i = 0; i < texts->count && first == 0; i++) {
        texts->cells[i].bytes = (const char *)texts->bytes.memory + (uintptr_t)texts->cells[i].bytes;
    }
    return bwi_dataset_add(root, BWI_ROLE_INPUT, name, &x, where);
}

void bwi_texts_free(bw_context *ctx, bwi_texts *texts)
{
    bwi_backing_free(ctx, &texts->bytes);
    bwi_backing_free(ctx, &texts->places);
    *texts = (bwi_texts){.count = 0};
}

/* ---- Files ---- */

static bool is_text_file(const char *name)
{
    const char *dot = strrchr(name, '.');
    return dot && strcasecmp(dot, ".txt") == 0;
}

/* Names share one block of text, so that a million files need a few growing allocations. */
static bw_status keep_name(reading *r, const char *path, int32_t label)
{
    origins *origin = &r->origin;
    size_t size = strlen(path) + 1;
    if (origin->count == r->capacity) {
        int64_t larger = 2 * r->capacity + 256;
        size_t *at = bwi_grow(r->ctx, origin->name_at, (size_t)origin->count, (size_t)larger, sizeof *at);
        origin->name_at = at ? at : origin->name_at;
        int32_t *labels = at ? bwi_grow(r->ctx, r->labels, (size_t)origin->count, (size_t)larger, sizeof *labels) : NULL;
        if (!labels) {
            return BW_RESOURCE_EXHAUSTED;
        }
        r->labels = labels;
        r->capacity = larger;
    }
    if (origin->used + size > r->names_capacity) {
        size_t larger = 2 * r->names_capacity + size + PIECE;
        char *names = bwi_grow(r->ctx, origin->names, origin->used, larger, 1);
        if (!names) {
            return BW_RESOURCE_EXHAUSTED;
        }
        origin->names = names;
        r->names_capacity = larger;
    }
    memcpy(origin->names + origin->used, path, size);
    r->labels[origin->count] = label;
    origin->name_at[origin->count++] = origin->used;
    origin->used += size;
    return BW_OK;
}

static bw_status add_file(reading *r, const char *path, int32_t label)
{
    int64_t size = bwi_file_read_whole(r->ctx, path, FILE_BYTES, &r->file);
    if (size < 0) {
        return bwi_fail_file(r->ctx, bwi_errno_status((int)-size), path, "cannot be read: %s", bwi_errno_text((int)-size));
    }
    bw_status status = bwi_texts_add(r->ctx, &r->all, (const char *)r->file.memory, (size_t)size, r->path);
    if (status == BW_OK) {
        status = keep_name(r, path, label);
    }
    return status == BW_OK && bwi_cancelled(r->ctx) ? bwi_cancel_report(r->ctx) : status;
}

/* Files that are no texts are passed over; a link might lead out of the folder, so it is refused. */
static bw_status add_folder(reading *r, const char *name, int32_t label)
{
    bwi_names names;
    char path[PATH_BYTES], file[PATH_BYTES];
    int64_t before = r->all.count;
    bool fits = (size_t)snprintf(path, sizeof path, "%s%s%s", r->path, name[0] ? "/" : "", name) < sizeof path;
    if (!fits) {
        return bwi_fail(r->ctx, BW_INVALID_ARGUMENT, "%s/%s: a path of more than %d bytes", r->path, name, PATH_BYTES);
    }
    bw_status status = bwi_folder_list(r->ctx, path, &names);
    for (int64_t i = 0; status == BW_OK && i < names.count; i++) {
        const char *one = names.text + names.name[i].at;
        if (one[0] == '.' || !is_text_file(one) || names.name[i].entry == BW_ENTRY_FOLDER) {
            continue;
        }
        if ((size_t)snprintf(file, sizeof file, "%s/%s", path, one) >= sizeof file) {
            status = bwi_fail(r->ctx, BW_INVALID_ARGUMENT, "%s/%s: a path of more than %d bytes", path, one, PATH_BYTES);
        } else if (names.name[i].entry == BW_ENTRY_LINK) {
            status =
                bwi_fail(r->ctx, BW_INVALID_ARGUMENT, "%s: is a symbolic link; links in a folder of texts are not followed", file);
        } else {
            status = add_file(r, file, label);
        }
    }
    bwi_names_free(&names);
    if (status == BW_OK && r->all.count == before) {
        bwi_log(r->ctx, BW_LOG_WARNING, "%s: no .txt files in it", path);
    }
    return status;
}

/* ---- Classes ---- */

static int find_class(const bwi_facts *facts, const char *name)
{
    for (int i = 0; i < facts->classes; i++) {
        if (strcmp(facts->class_name[i], name) == 0) {
            return i;
        }
    }
    return -1;
}

/* Without class folders the files of the folder itself are texts to predict. */
static bw_status add_classes(reading *r)
{
    bw_status status = bwi_folder_list(r->ctx, r->path, &r->classes);
    int64_t kept = 0;
    for (int64_t i = 0; status == BW_OK && i < r->classes.count; i++) {
        const char *name = r->classes.text + r->classes.name[i].at;
        if (name[0] != '.' && r->classes.name[i].entry == BW_ENTRY_FOLDER) {
            r->classes.name[kept++] = r->classes.name[i];
        }
    }
    r->classes.count = kept;
    if (status == BW_OK && kept > CLASS_LIMIT) {
        return bwi_fail(r->ctx, BW_INVALID_ARGUMENT, "%s: %lld class folders; at most %d are read", r->path, (long long)kept,
                        CLASS_LIMIT);
    }
    r->flat = kept == 0;
    if (status == BW_OK && r->flat) {
        status = add_folder(r, "", 0);
    }
    for (int64_t i = 0; status == BW_OK && i < kept; i++) {
        const char *name = r->classes.text + r->classes.name[i].at;
        int label = r->like ? find_class(r->like, name) : (int)i;
        status = label < 0
                     ? bwi_fail(r->ctx, BW_INVALID_ARGUMENT, "%s: the class '%s' is none of the %d that the model was trained with",
                                r->path, name, r->like->classes)
                     : add_folder(r, name, label);
    }
    return status;
}

static bw_status keep_classes(reading *r, bw_dataset *root)
{
    bwi_facts facts = {.scale = 1, .texts = true};
    if (r->like) {
        facts.classes = r->like->classes;
        facts.class_name = r->like->class_name;
        return bwi_facts_copy(r->ctx, &root->facts, &facts);
    }
    const char **names = bwi_allocate(r->ctx, (size_t)r->classes.count + 1, sizeof *names);
    if (!names) {
        return BW_RESOURCE_EXHAUSTED;
    }
    for (int64_t i = 0; i < r->classes.count; i++) {
        names[i] = r->classes.text + r->classes.name[i].at;
    }
    facts.classes = (int)r->classes.count;
    facts.class_name = (const char *const *)names;
    bw_status status = bwi_facts_copy(r->ctx, &root->facts, &facts);
    bwi_release(r->ctx, names);
    return status;
}

/* ---- Lines ---- */

/* A line that is being read, of any bytes. */
typedef struct line {
    char *bytes;
    size_t size, capacity;
} line;

static bw_status extend(reading *r, line *l, const char *bytes, size_t size)
{
    if (l->size + size > FILE_BYTES) {
        return bwi_fail(r->ctx, BW_INVALID_ARGUMENT, "standard input: a line of more than %zu bytes", FILE_BYTES);
    }
    if (l->size + size > l->capacity) {
        char *larger = bwi_grow(r->ctx, l->bytes, l->size, 2 * l->capacity + size + PIECE, 1);
        if (!larger) {
            return BW_RESOURCE_EXHAUSTED;
        }
        l->bytes = larger;
        l->capacity = 2 * l->capacity + size + PIECE;
    }
    if (size > 0) {
        memcpy(l->bytes + l->size, bytes, size);
    }
    l->size += size;
    return BW_OK;
}

static bw_status end_line(reading *r, line *l)
{
    size_t size = l->size > 0 && l->bytes[l->size - 1] == '\r' ? l->size - 1 : l->size;
    bw_status status = bwi_texts_add(r->ctx, &r->all, l->bytes, size, "standard input");
    l->size = 0;
    return status;
}

/* Every line of standard input is a text, up to `take` of them. */
static bw_status add_lines(reading *r, int64_t take)
{
    bwi_input input;
    line l = {.size = 0};
    char piece[PIECE];
    size_t got = 1;
    r->flat = true;
    bw_status status = bwi_input_open(r->ctx, &input, false);
    while (status == BW_OK && got > 0 && (take == 0 || r->all.count < take)) {
        status = bwi_input_read(r->ctx, &input, piece, sizeof piece, &got);
        for (size_t from = 0; status == BW_OK && from < got && (take == 0 || r->all.count < take);) {
            const char *end = memchr(piece + from, '\n', got - from);
            size_t size = end ? (size_t)(end - piece) - from : got - from;
            status = extend(r, &l, piece + from, size);
            status = status == BW_OK && end ? end_line(r, &l) : status;
            from += size + (end ? 1 : 0);
        }
        if (status == BW_OK && bwi_cancelled(r->ctx)) {
            status = bwi_cancel_report(r->ctx);
        }
    }
    if (status == BW_OK && l.size > 0) {
        status = end_line(r, &l);
    }
    bwi_input_close(r->ctx, &input);
    bwi_release(r->ctx, l.bytes);
    return status;
}

/* ---- The samples ---- */

static void locate(const bw_dataset *dataset, int64_t number, char *text, size_t size)
{
    const origins *origin = dataset->state;
    if (origin->count > 0) {
        snprintf(text, size, "%s", origin->names + origin->name_at[number]);
    } else {
        snprintf(text, size, "standard input, line %lld", (long long)number + 1);
    }
}

static void close_texts(bw_dataset *dataset)
{
    origins *origin = dataset->state;
    bwi_release(dataset->owned.ctx, origin->names);
    bwi_release(dataset->owned.ctx, origin->name_at);
}

static bw_status gather(const bw_dataset *dataset, const bwi_demand *demand)
{
    return bwi_kind_arrays.gather(dataset, demand);
}

static const bwi_dataset_kind kind = {.name = "texts", .gather = gather, .locate = locate, .files = true, .close = close_texts};
static const bwi_dataset_kind lines_kind = {.name = "lines", .gather = gather, .locate = locate, .close = close_texts};

static bw_status fill(reading *r, bw_dataset *root)
{
    bw_status status = keep_classes(r, root);
    if (status == BW_OK) {
        status = bwi_texts_end(root, "", &r->all, 1, 0, r->path);
    }
    if (status != BW_OK) {
        return status;
    }
    root->columns[0].backing = r->all.places;
    root->texts = r->all.bytes;
    r->all = (bwi_texts){.count = 0};
    *(origins *)root->state = r->origin;
    r->origin = (origins){.count = 0};
    if (!r->flat) {
        bw_array y = {.data = r->labels, .dtype = BW_I32, .ndim = 1, .shape = {root->columns[0].samples}};
        status = bwi_dataset_add(root, BWI_ROLE_TARGET, "", &y, r->path);
        root->columns[1].memory = status == BW_OK ? r->labels : NULL;
        r->labels = status == BW_OK ? NULL : r->labels;
    }
    return status == BW_OK ? bwi_dataset_settle(root, "") : status;
}

static bw_status read_all(reading *r, const char *const *paths, int count, const bw_read_options *options)
{
    bool lines = strcmp(paths[0], "-") == 0, folder = !lines && bwi_folder_is(r->ctx, paths[0]);
    bw_status status = lines ? add_lines(r, options->take) : folder ? add_classes(r) : BW_OK;
    r->flat = r->flat || !folder;
    for (int i = 0; i < count && status == BW_OK && !lines && !folder; i++) {
        status = add_file(r, paths[i], 0);
    }
    if (status == BW_OK && r->all.count == 0) {
        return bwi_fail(r->ctx, BW_NOT_FOUND, "%s: no texts; expected %s/<class>/<text>.txt", r->path, r->path);
    }
    if (status == BW_OK && r->flat) {
        bwi_log(r->ctx, BW_LOG_INFO, "%s: %lld text%s without targets", lines ? "standard input" : r->path, (long long)r->all.count,
                r->all.count == 1 ? "" : "s");
    } else if (status == BW_OK) {
        bwi_log(r->ctx, BW_LOG_INFO, "%s: %lld texts of %lld classes", r->path, (long long)r->all.count,
                (long long)r->classes.count);
    }
    return status;
}

/* The option `text` chose this reader, so it is not refused with those of tables. */
bw_status bwi_texts_read(bw_context *ctx, bw_dataset **root, const char *const *paths, int count, const bw_read_options *options)
{
    reading r = {.ctx = ctx, .path = paths[0], .classes.ctx = ctx};
    bool lines = strcmp(paths[0], "-") == 0;
    *root = NULL;
    bw_read_options known = *options;
    known.text = NULL;
    bw_status status = bwi_read_options_check(ctx, r.path, &known, 0);
    if (status != BW_OK) {
        return status;
    }
    r.like = options->like && bwi_dataset_facts(options->like)->classes > 0 ? bwi_dataset_facts(options->like) : NULL;
    status = read_all(&r, paths, count, options);
    bw_dataset *made = status == BW_OK ? bwi_dataset_root(ctx, lines ? &lines_kind : &kind, 2, sizeof(origins)) : NULL;
    if (status == BW_OK && !made) {
        status = BW_RESOURCE_EXHAUSTED;
    }
    if (status == BW_OK) {
        status = fill(&r, made);
    }
    if (status == BW_OK) {
        *root = made;
    } else if (made) {
        bw_dataset_free(made);
    }
    bwi_names_free(&r.classes);
    bwi_texts_free(ctx, &r.all);
    bwi_buffer_free(ctx, &r.file);
    bwi_release(ctx, r.labels);
    bwi_release(ctx, r.origin.names);
    bwi_release(ctx, r.origin.name_at);
    return status;
}

static bool is_picture(const char *name)
{
    const char *dot = strrchr(name, '.');
    return dot && (strcasecmp(dot, ".png") == 0 || strcasecmp(dot, ".jpg") == 0 || strcasecmp(dot, ".jpeg") == 0);
}

/* Counts the texts and images of a folder. */
static void count_files(const bwi_names *names, int64_t *found, int64_t *pictures)
{
    for (int64_t i = 0; i < names->count; i++) {
        const char *name = names->text + names->name[i].at;
        *found += is_text_file(name) && names->name[i].entry == BW_ENTRY_FILE;
        *pictures += is_picture(name);
    }
}

/* A folder with .txt files, in it or in one of its folders, and without images. */
bool bwi_texts_is(bw_context *ctx, const char *path)
{
    bwi_names names = {.count = 0};
    int64_t found = 0, pictures = 0;
    if (!bwi_folder_is(ctx, path) || bwi_folder_list(ctx, path, &names) != BW_OK) {
        bwi_names_free(&names);
        return false;
    }
    count_files(&names, &found, &pictures);
    for (int64_t i = 0; i < names.count && pictures == 0; i++) {
        char inner[PATH_BYTES];
        bwi_names files = {.count = 0};
        bool fits = (size_t)snprintf(inner, sizeof inner, "%s/%s", path, names.text + names.name[i].at) < sizeof inner;
        if (names.name[i].entry == BW_ENTRY_FOLDER && fits && bwi_folder_list(ctx, inner, &files) == BW_OK) {
            count_files(&files, &found, &pictures);
        }
        bwi_names_free(&files);
    }
    bwi_names_free(&names);
    return found > 0 && pictures == 0;
}
