/*
 * Images: a folder of class folders, photos/cat/1.jpg, photos/dog/2.png; or, without targets, a folder of images or a list of
 * them. Names are listed once; an image is read and decoded when it is gathered, on the worker that needs it. Classes are the
 * sorted names of the folders, and files follow in the order of their names, so that numbers are the same on every machine.
 * Symbolic links are refused, so that nothing outside the folder is opened.
 */
#include "data/read/read.h"
#include "format/format.h"

#include <stdio.h>
#include <string.h>

#define FILE_BYTES ((size_t)48 << 20) /* limit for the file of one image */
enum { PATH_BYTES = 4096, CLASS_LIMIT = 1 << 20 };

typedef struct picture {
    size_t at; /* where its name "class/file" begins in `names` */
    int32_t label;
} picture;

typedef struct images {
    char *folder;
    char *names;
    size_t length, names_capacity;
    picture *pictures;
    int64_t count, capacity;
    bwi_picture size;
    bwi_decode_buffers buffers;
} images;

/* ---- On workers ---- */

/* Makes the path of an image. Names from a list are paths already. */
static void path_of(const images *state, int64_t number, char path[PATH_BYTES])
{
    bool inside = state->folder[0];
    snprintf(path, PATH_BYTES, "%s%s%s", state->folder, inside ? "/" : "", state->names + state->pictures[number].at);
}

static bw_status decode(const bw_dataset *dataset, bwi_decode_buffer *buffer, int64_t number, void *to, char *error)
{
    const images *state = dataset->state;
    bw_context *ctx = dataset->owned.ctx;
    char path[PATH_BYTES], what[BWI_IMAGE_ERROR];
    path_of(state, number, path);
    int64_t size = bwi_file_read_whole(ctx, path, FILE_BYTES, &buffer->file);
    if (size < 0) {
        return bwi_sample_error(dataset, number, error, bwi_errno_status((int)-size), "cannot read it: %s",
                                bwi_errno_text((int)-size));
    }
    bw_status status = bwi_picture_decode(ctx, &buffer->scratch, buffer->file.memory, (size_t)size, &state->size, to, what);
    return status == BW_OK ? BW_OK : bwi_sample_error(dataset, number, error, status, "%s", what);
}

static bw_status make(const bw_dataset *dataset, int epoch, int64_t number, void *const *values, char *error)
{
    images *state = dataset->state;
    (void)epoch;
    if (dataset->column_count > 1 && values[1]) {
        memcpy(values[1], &state->pictures[number].label, sizeof state->pictures[number].label);
    }
    if (!values[0]) {
        return BW_OK;
    }
    bwi_decode_buffer *buffer = bwi_decode_buffer_take(dataset->owned.ctx, &state->buffers);
    if (!buffer) {
        return bwi_sample_error(dataset, number, error, BW_RESOURCE_EXHAUSTED, "no memory to decode it");
    }
    bw_status status = decode(dataset, buffer, number, values[0], error);
    bwi_decode_buffer_give(&state->buffers, buffer);
    return status;
}

static void locate(const bw_dataset *dataset, int64_t number, char *text, size_t size)
{
    const images *state = dataset->state;
    const char *name = state->names + state->pictures[number].at;
    if (state->folder[0] && strlen(state->folder) + strlen(name) + 2 <= size) {
        snprintf(text, size, "%s/%s", state->folder, name);
    } else {
        snprintf(text, size, "%s", name);
    }
    for (; *text; text++) {
        if ((unsigned char)*text < ' ' || *text == 0x7f) {
            *text = '?';
        }
    }
}

static void close_images(bw_dataset *dataset)
{
    images *state = dataset->state;
    bw_context *ctx = dataset->owned.ctx;
    bwi_release(ctx, state->folder);
    bwi_release(ctx, state->names);
    bwi_release(ctx, state->pictures);
    bwi_decode_buffers_close(ctx, &state->buffers);
}

static const bwi_dataset_kind kind = {.name = "images", .make = make, .locate = locate, .files = true, .close = close_images};

/* ---- Listing ---- */

typedef struct listing {
    bw_context *ctx;
    const char *path;
    bw_dataset *root;
    images *state;
    const bwi_facts *like; /* NULL: classes are numbered in the order of their names */
    bwi_names classes;
    bool flat;              /* there are no targets: images in one folder, or a list of them */
    int64_t ignored, loose; /* files in class folders that are not images; images beside the class folders */
    int64_t deeper;         /* folders in class folders */
} listing;

static bool is_picture(const char *name)
{
    static const char *const kinds[] = {".png", ".jpg", ".jpeg"};
    const char *dot = strrchr(name, '.');
    for (size_t i = 0; dot && i < BWI_COUNT(kinds); i++) {
        if (strcasecmp(dot, kinds[i]) == 0) {
            return true;
        }
    }
    return false;
}

static bw_status fail_link(listing *l, const char *folder, const char *name)
{
    return bwi_fail(l->ctx, BW_INVALID_ARGUMENT, "%s%s%s/%s: is a symbolic link; links in a folder of images are not followed",
                    l->path, folder[0] ? "/" : "", folder, name);
}

/* All names share one block of text, so that a million files need two growing allocations and not a million. */
static bw_status add_picture(listing *l, const char *folder, const char *name, int label)
{
    images *state = l->state;
    size_t bytes = strlen(folder) + strlen(name) + 2;
    if (strlen(state->folder) + bytes + 1 > PATH_BYTES) {
        return bwi_fail(l->ctx, BW_INVALID_ARGUMENT, "%s/%s: a path of more than %d bytes", l->path, folder, PATH_BYTES);
    }
    if (state->length + bytes > state->names_capacity) {
        size_t capacity = 2 * state->names_capacity + bytes + 4096;
        char *larger = bwi_grow(l->ctx, state->names, state->length, capacity, 1);
        if (!larger) {
            return BW_RESOURCE_EXHAUSTED;
        }
        state->names = larger;
        state->names_capacity = capacity;
    }
    if (state->count == state->capacity) {
        int64_t capacity = 2 * state->capacity + 256;
        picture *larger = bwi_grow(l->ctx, state->pictures, (size_t)state->count, (size_t)capacity, sizeof *larger);
        if (!larger) {
            return BW_RESOURCE_EXHAUSTED;
        }
        state->pictures = larger;
        state->capacity = capacity;
    }
    snprintf(state->names + state->length, bytes, "%s%s%s", folder, folder[0] ? "/" : "", name);
    state->pictures[state->count++] = (picture){.at = state->length, .label = label};
    state->length += strlen(state->names + state->length) + 1;
    return BW_OK;
}

/* Files that are not images are counted, and left out with one warning. A link might lead out of the folder, so it is refused. */
static bw_status list_class(listing *l, const char *folder, int label)
{
    bwi_names names;
    char path[PATH_BYTES];
    int64_t before = l->state->count;
    if ((size_t)snprintf(path, sizeof path, "%s%s%s", l->state->folder, folder[0] ? "/" : "", folder) >= sizeof path) {
        return bwi_fail(l->ctx, BW_INVALID_ARGUMENT, "%s/%s: a path of more than %d bytes", l->path, folder, PATH_BYTES);
    }
    bw_status status = bwi_folder_list(l->ctx, path, &names);
    for (int64_t i = 0; status == BW_OK && i < names.count; i++) {
        const char *name = names.text + names.name[i].at;
        if (name[0] == '.') {
            continue;
        }
        if (!is_picture(name) || names.name[i].entry == BW_ENTRY_FOLDER || names.name[i].entry == BW_ENTRY_OTHER) {
            l->ignored++;
            l->deeper += names.name[i].entry == BW_ENTRY_FOLDER;
        } else if (names.name[i].entry == BW_ENTRY_LINK) {
            status = fail_link(l, folder, name);
        } else {
            status = add_picture(l, folder, name, label);
        }
    }
    bwi_names_free(&names);
    if (status == BW_OK && l->state->count == before) {
        bwi_log(l->ctx, BW_LOG_WARNING, "%s/%s: no PNG or JPEG images in this class folder", l->path, folder);
    }
    return status;
}

static int find_class(const bwi_facts *facts, const char *name)
{
    for (int i = 0; i < facts->classes; i++) {
        if (strcmp(facts->class_name[i], name) == 0) {
            return i;
        }
    }
    return -1;
}

/* Leaves only the class folders in the list. */
static bw_status find_classes(listing *l)
{
    bwi_names *names = &l->classes;
    bw_status status = bwi_folder_list(l->ctx, l->path, names);
    int64_t kept = 0;
    for (int64_t i = 0; status == BW_OK && i < names->count; i++) {
        const char *name = names->text + names->name[i].at;
        if (name[0] == '.') {
            continue;
        }
        if (names->name[i].entry == BW_ENTRY_LINK) {
            status = fail_link(l, "", name);
        } else if (names->name[i].entry == BW_ENTRY_FOLDER) {
            names->name[kept++] = names->name[i];
        } else {
            l->loose += is_picture(name);
        }
    }
    names->count = kept;
    l->flat = kept == 0 && l->loose > 0;
    if (status == BW_OK && kept == 0 && !l->flat) {
        return bwi_fail(l->ctx, BW_NOT_FOUND, "%s: no class folders in it; expected %s/<class>/<image>.png or .jpg", l->path,
                        l->path);
    }
    if (status == BW_OK && kept > CLASS_LIMIT) {
        return bwi_fail(l->ctx, BW_INVALID_ARGUMENT, "%s: %lld class folders; at most %d are read", l->path, (long long)kept,
                        CLASS_LIMIT);
    }
    return status;
}

/* Lists the folders in the order of their names, so that numbers are the same everywhere. Without folders the images are samples
 * to predict. */
static bw_status list_classes(listing *l)
{
    bw_status status = find_classes(l);
    if (status == BW_OK && l->flat) {
        l->loose = 0;
        return list_class(l, "", 0);
    }
    for (int64_t i = 0; status == BW_OK && i < l->classes.count; i++) {
        const char *name = l->classes.text + l->classes.name[i].at;
        int label = l->like ? find_class(l->like, name) : (int)i;
        if (label < 0) {
            status = bwi_fail(l->ctx, BW_INVALID_ARGUMENT, "%s: the class '%s' is none of the %d that the model was trained with",
                              l->path, name, l->like->classes);
        } else {
            status = list_class(l, name, label);
        }
        if (status == BW_OK && bwi_cancelled(l->ctx)) {
            status = bwi_cancel_report(l->ctx);
        }
    }
    if (status == BW_OK && l->state->count == 0) {
        const char *first = l->classes.text + l->classes.name[0].at;
        return bwi_fail(l->ctx, BW_NOT_FOUND, "%s: no PNG or JPEG images in its %lld class folder%s%s%s%s%s", l->path,
                        (long long)l->classes.count, l->classes.count == 1 ? "" : "s",
                        l->deeper ? ", holding folders; name the folder that holds the class folders, such as " : "",
                        l->deeper ? l->path : "", l->deeper ? "/" : "", l->deeper ? first : "");
    }
    return status;
}

/* Keeps the classes' names by number: those of the data that a model was trained on, or those of the folders. */
static bw_status keep_classes(listing *l)
{
    bwi_facts facts = {.scale = 1};
    if (l->like) {
        return bwi_facts_copy(l->ctx, &l->root->facts,
                              &(bwi_facts){.scale = 1, .classes = l->like->classes, .class_name = l->like->class_name});
    }
    if (l->classes.count == 0) {
        return BW_OK;
    }
    const char **names = bwi_allocate(l->ctx, (size_t)l->classes.count, sizeof *names);
    if (!names) {
        return BW_RESOURCE_EXHAUSTED;
    }
    for (int64_t i = 0; i < l->classes.count; i++) {
        names[i] = l->classes.text + l->classes.name[i].at;
    }
    facts.classes = (int)l->classes.count;
    facts.class_name = (const char *const *)names;
    bw_status status = bwi_facts_copy(l->ctx, &l->root->facts, &facts);
    bwi_release(l->ctx, names);
    return status;
}

/* ---- Size ---- */

/* The first image stands for all: for the size, unless one was asked for, and for the memory to decode them. A failure is described
 * in `what`. */
static bw_status look_at_first(const listing *l, const char *path, bwi_picture *found, size_t *bytes, char what[BWI_IMAGE_ERROR])
{
    bwi_buffer file = {.memory = NULL};
    int64_t size = bwi_file_read_whole(l->ctx, path, FILE_BYTES, &file);
    bw_status status = size < 0 ? bwi_errno_status((int)-size) : BW_OK;
    if (status == BW_OK) {
        *bytes = (size_t)size;
        status = bwi_picture_look(l->ctx, file.memory, *bytes, found, what);
    } else {
        snprintf(what, BWI_IMAGE_ERROR, "cannot be read: %s", bwi_errno_text((int)-size));
    }
    bwi_buffer_free(l->ctx, &file);
    return status;
}

/* Without a size that was asked for, all images get the size of the first one, which is logged. */
static bw_status choose_size(listing *l, const bw_read_options *options)
{
    images *state = l->state;
    bool asked;
    bw_status status = bwi_picture_asked(l->ctx, options, l->path, &state->size, &asked);
    if (status != BW_OK) {
        return status;
    }
    char path[PATH_BYTES], what[BWI_IMAGE_ERROR];
    bwi_picture first = state->size;
    size_t bytes = 0;
    path_of(state, 0, path);
    status = look_at_first(l, path, &first, &bytes, what);
    if (status == BW_NOT_FOUND) {
        return bwi_fail_file(l->ctx, status, path, "not found: there is no such file or folder");
    }
    if (!asked && status != BW_OK) {
        return bwi_fail(l->ctx, status, "%s: %s", path, what);
    }
    if (!asked) {
        state->size = first;
        bwi_log(l->ctx, BW_LOG_INFO, "%s: images are brought to %lldx%lldx%d, the size of %s", l->path, (long long)first.height,
                (long long)first.width, first.channels, state->names + state->pictures[0].at);
    }
    l->root->decoder_bytes = bwi_decoder_bytes(bytes, status == BW_OK ? &first : &state->size, &state->size);
    return BW_OK;
}

/* ---- The samples ---- */

static bw_status declare(listing *l, const bw_read_options *options)
{
    const images *state = l->state;
    bwi_field x = {
        .role = BWI_ROLE_INPUT, .dtype = BW_U8, .ndim = 3, .shape = {state->size.height, state->size.width, state->size.channels}};
    bwi_field y = {.role = BWI_ROLE_TARGET, .dtype = BW_I32};
    if (options->ndim == 2) {
        x.ndim = 2;
    }
    l->root->count = l->root->numbers = state->count;
    l->root->slow = true;
    bw_status status = bwi_dataset_declare(l->root, &x, l->path);
    if (status == BW_OK && !l->flat) {
        status = bwi_dataset_declare(l->root, &y, l->path);
    }
    return status == BW_OK ? bwi_scratch_open(l->root) : status;
}

static bw_status list_folder(listing *l)
{
    l->state->folder = bwi_copy_text(l->ctx, l->path);
    if (!l->state->folder) {
        return BW_RESOURCE_EXHAUSTED;
    }
    for (size_t end = strlen(l->state->folder); end > 1 && l->state->folder[end - 1] == '/';) {
        l->state->folder[--end] = 0;
    }
    return list_classes(l);
}

static bw_status list_files(listing *l, const char *const *paths, int count)
{
    l->flat = true;
    l->state->folder = bwi_copy_text(l->ctx, "");
    bw_status status = l->state->folder ? BW_OK : BW_RESOURCE_EXHAUSTED;
    for (int i = 0; i < count && status == BW_OK; i++) {
        status = add_picture(l, "", paths[i], 0);
    }
    return status;
}

/* Logs how many images there are, and whether they have targets: without them they can be predicted, but not trained on. */
static void tell_count(const listing *l)
{
    if (l->flat) {
        bwi_log(l->ctx, BW_LOG_INFO, "%s: %lld image%s without class folders, so without targets", l->path,
                (long long)l->state->count, l->state->count == 1 ? "" : "s");
    } else {
        bwi_log(l->ctx, BW_LOG_INFO, "%s: %lld image%s of %lld class%s", l->path, (long long)l->state->count,
                l->state->count == 1 ? "" : "s", (long long)l->classes.count, l->classes.count == 1 ? "" : "es");
        if (l->classes.count == 1 && !l->like) {
            bwi_log(l->ctx, BW_LOG_WARNING, "%s: there is one class folder, '%s', so that a classifier has nothing to tell apart",
                    l->path, l->classes.text + l->classes.name[0].at);
        }
    }
}

/* Names, classes and the common size are found now; pixels are decoded when a tile is gathered. */
static bw_status read_all(listing *l, const char *const *paths, int count, const bw_read_options *options)
{
    bw_status status = is_picture(paths[0]) && !bwi_folder_is(l->ctx, paths[0]) ? list_files(l, paths, count) : list_folder(l);
    if (status == BW_OK) {
        status = keep_classes(l);
    }
    if (status == BW_OK) {
        status = choose_size(l, options);
    }
    if (status == BW_OK) {
        status = declare(l, options);
    }
    if (status != BW_OK) {
        return status;
    }
    tell_count(l);
    if (l->ignored + l->loose > 0 && !l->flat) {
        bwi_log(l->ctx, BW_LOG_WARNING,
                "%s: left out: %lld name%s in class folders that are no .png, .jpg or .jpeg, %lld image%s "
                "beside the class folders",
                l->path, (long long)l->ignored, l->ignored == 1 ? "" : "s", (long long)l->loose, l->loose == 1 ? "" : "s");
    }
    return BW_OK;
}

/* Classes are numbered like those of the data that the model was trained on, if there are such data; otherwise in the order of
 * their names. */
bw_status bwi_images_read(bw_context *ctx, bw_dataset **root, const char *const *paths, int count, const bw_read_options *options)
{
    listing l = {.ctx = ctx, .path = paths[0], .classes.ctx = ctx};
    *root = NULL;
    bw_status status = bwi_read_options_check(ctx, l.path, options, 0);
    if (status != BW_OK) {
        return status;
    }
    if (options->like && bwi_dataset_facts(options->like)->classes > 0) {
        l.like = bwi_dataset_facts(options->like);
    }
    l.root = bwi_dataset_root(ctx, &kind, 2, sizeof(images));
    if (!l.root) {
        return BW_RESOURCE_EXHAUSTED;
    }
    l.state = l.root->state;
    bwi_decode_buffers_open(&l.state->buffers);
    status = read_all(&l, paths, count, options);
    bwi_names_free(&l.classes);
    if (status == BW_OK) {
        *root = l.root;
    } else {
        bw_dataset_free(l.root);
    }
    return status;
}
