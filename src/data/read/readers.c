/*
 * Chooses the reader that opens a path. A new kind of file is one source file and one row here.
 */
#include "data/ahead/ahead.h"
#include "data/read/read.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define LIST_LIMIT (1 << 20)

/* Rows that recognise a path by its beginning or its end come first; the others look at the file or folder itself. */
static const struct {
    const char *prefix, *extension;
    bool (*is)(bw_context *ctx, const char *path);
    bool lists; /* takes a list "a,b,c" as a whole; otherwise the files are read one by one and concatenated */
    bool skips; /* skips bad records itself; with other kinds they are found when their samples are made */
    bwi_reader *read;
} readers[] = {
    {.extension = ".npz", .read = bwi_npz_read},
    {.extension = ".npy", .lists = true, .read = bwi_npy_read},
    {.extension = ".csv", .lists = true, .skips = true, .read = bwi_csv_read},
    {.extension = ".csv.gz", .lists = true, .skips = true, .read = bwi_csv_read},
    {.extension = ".tsv", .lists = true, .skips = true, .read = bwi_csv_read},
    {.extension = ".tsv.gz", .lists = true, .skips = true, .read = bwi_csv_read},
    {.extension = ".data", .lists = true, .skips = true, .read = bwi_csv_read},
    {.extension = ".data.gz", .lists = true, .skips = true, .read = bwi_csv_read},
    {.extension = ".txt", .lists = true, .skips = true, .read = bwi_csv_read},
    {.extension = ".txt.gz", .lists = true, .skips = true, .read = bwi_csv_read},
    {.extension = "ubyte", .lists = true, .read = bwi_idx_read},
    {.extension = "ubyte.gz", .lists = true, .read = bwi_idx_read},
    {.extension = ".idx", .lists = true, .read = bwi_idx_read},
    {.extension = ".idx.gz", .lists = true, .read = bwi_idx_read},
    {.extension = ".libsvm", .read = bwi_libsvm_read},
    {.extension = ".svm", .read = bwi_libsvm_read},
    {.extension = ".tfrecord", .lists = true, .read = bwi_tfrecord_read},
    {.extension = ".tfrecords", .lists = true, .read = bwi_tfrecord_read},
    {.extension = ".tfrecord.gz", .lists = true, .read = bwi_tfrecord_read},
    {.prefix = "tfrecord:-", .read = bwi_tfrecord_read},
    {.extension = ".h5", .read = bwi_hdf5_samples},
    {.extension = ".hdf5", .read = bwi_hdf5_samples},
    {.prefix = "synth:", .read = bwi_synth_read},
    {.is = bwi_idx_is, .lists = true, .read = bwi_idx_read},
    {.extension = ".png", .lists = true, .read = bwi_images_read},
    {.extension = ".jpg", .lists = true, .read = bwi_images_read},
    {.extension = ".jpeg", .lists = true, .read = bwi_images_read},
    {.is = bwi_texts_is, .read = bwi_texts_read},
    {.extension = "/", .read = bwi_images_read},
    {.is = bwi_folder_is, .read = bwi_images_read},
};

static char lower(char letter)
{
    return letter >= 'A' && letter <= 'Z' ? (char)(letter - 'A' + 'a') : letter;
}

/* Returns the length without the number of a shard: train.tfrecord-00001-of-00010. */
static size_t name_length(const char *path)
{
    size_t length = strlen(path);
    static const char digits[] = "0123456789";
    const char *of = strstr(path, "-of-"), *next;
    while (of && (next = strstr(of + 1, "-of-"))) {
        of = next;
    }
    if (!of || !of[4] || of[4 + strspn(of + 4, digits)]) {
        return length;
    }
    size_t at = (size_t)(of - path);
    while (at > 0 && strchr(digits, path[at - 1])) {
        at--;
    }
    return at > 0 && path + at < of && path[at - 1] == '-' ? at - 1 : length;
}

static bool ends_with(const char *path, const char *extension)
{
    size_t length = name_length(path), tail = strlen(extension);
    for (size_t i = 0; i < tail; i++) {
        if (length < tail || lower(path[length - tail + i]) != extension[i]) {
            return false;
        }
    }
    return true;
}

static bw_status find_options(bw_context *ctx, bw_read_options *options, const bw_read_options *given)
{
    *options = (bw_read_options)BW_READ_OPTIONS_DEFAULT;
    bw_status status = bwi_options_copy(ctx, options, sizeof *options, given, "bw_read_options");
    if (status != BW_OK) {
        return status;
    }
    if (options->take < 0) {
        return bwi_fail(ctx, BW_INVALID_ARGUMENT, "bw_read_options.take is %lld; expected 0 or more", (long long)options->take);
    }
    if (!isfinite(options->scale)) {
        return bwi_fail(ctx, BW_INVALID_ARGUMENT, "inputs cannot be scaled by %g", options->scale);
    }
    return BW_OK;
}

/* An option that a kind of file does not have is refused, because it would be ignored silently. */
bw_status bwi_read_options_check(bw_context *ctx, const char *path, const bw_read_options *options, unsigned known)
{
    const bwi_facts *like =
        options->like ? bwi_dataset_facts(options->like) : NULL; /* facts about a table say nothing about other kinds of files */
    const struct {
        bool set;
        const char *name;
    } asked[] = {
        {options->header != BW_HEADER_DETECT, "header"},
        {options->missing != BW_MISSING_ERROR && !(like && like->missing == options->missing), "missing"},
        {options->na && !(like && like->na == options->na), "na"},
        {options->separator, "separator"},
        {options->skip_rows != 0, "skip_rows"},
        {options->categorical, "categorical"},
        {options->text, "text"},
        {options->ignore, "ignore"},
        {options->target && !(known & BWI_READ_TARGET), "target"},
        {options->input && !(known & BWI_READ_INPUT), "input"},
    };
    for (size_t i = 0; i < BWI_COUNT(asked); i++) {
        if (asked[i].set) {
            return bwi_fail(ctx, BW_INVALID_ARGUMENT, "%s: the option '%s' is not for this kind of file", path, asked[i].name);
        }
    }
    return BW_OK;
}

static int find_reader(bw_context *ctx, const char *path)
{
    for (size_t i = 0; i < BWI_COUNT(readers); i++) {
        const char *prefix = readers[i].prefix, *extension = readers[i].extension;
        if ((prefix && strncmp(path, prefix, strlen(prefix)) == 0) || (extension && ends_with(path, extension)) ||
            (readers[i].is && readers[i].is(ctx, path))) {
            return (int)i;
        }
    }
    return -1;
}

bool bwi_path_has_images(bw_context *ctx, const char *path)
{
    int reader = find_reader(ctx, path);
    return reader >= 0 && readers[reader].read == bwi_images_read;
}

/* Splits a list of files at its commas, in place. (A path that is itself the name of a file is not split.) The caller releases
 * *paths. */
static bw_status split(bw_context *ctx, char *text, const char ***paths, int *count)
{
    int64_t commas = 0;
    for (const char *at = text; *at; at++) {
        commas += *at == ',';
    }
    if (commas >= LIST_LIMIT) {
        return bwi_fail(ctx, BW_INVALID_ARGUMENT, "a list of %lld files; expected at most %d, or a folder", (long long)commas + 1,
                        LIST_LIMIT);
    }
    const char **list = bwi_allocate(ctx, (size_t)commas + 1, sizeof *list);
    if (!list) {
        return BW_RESOURCE_EXHAUSTED;
    }
    *count = 0;
    for (char *at = text, *comma; at; at = comma ? comma + 1 : NULL) {
        list[(*count)++] = at;
        comma = strchr(at, ',');
        if (comma) {
            *comma = 0;
        }
    }
    *paths = list;
    return BW_OK;
}

static bool is_file(bw_context *ctx, const char *path)
{
    char byte;
    return bwi_file_read_small(ctx, path, &byte, 1) >= 0;
}

/* Reports a path that does not exist as not found before its kind is questioned, so that a mistyped folder gets the right
 * message. There is a reader for every folder, unless the system could not open it then. */
static bw_status fail_kind(bw_context *ctx, const char *path)
{
    bwi_names names = {.count = 0};
    bool file = is_file(ctx, path);
    bw_status status = file ? BW_OK : bwi_folder_list(ctx, path, &names);
    bwi_names_free(&names);
    if (status != BW_OK) {
        return status == BW_NOT_FOUND ? bwi_fail_file(ctx, status, path, "not found: there is no such file or folder") : status;
    }
    if (!file) {
        return bwi_fail_file(ctx, BW_RESOURCE_EXHAUSTED, path, "no memory or no free file descriptor to list the folder");
    }
    char known[256] = "";
    for (size_t i = 0; i < BWI_COUNT(readers); i++) {
        const char *name = readers[i].prefix ? readers[i].prefix : readers[i].extension;
        if (!name) {
            continue;
        }
        strncat(known, " ", sizeof known - strlen(known) - 1);
        strncat(known, strcmp(name, "/") == 0 ? "folders" : name, sizeof known - strlen(known) - 1);
    }
    return bwi_fail(ctx, BW_UNIMPLEMENTED, "%s: no reader for this kind of file; known are%s", path, known);
}

/* Reads each file separately and concatenates their samples. */
static bw_status read_each(bw_context *ctx, bw_dataset **root, const char *const *paths, int count, const bw_read_options *options,
                           bwi_reader *reader)
{
    bw_dataset *all = NULL;
    for (int i = 0; i < count; i++) {
        bw_dataset *one = NULL;
        bw_status status = reader(ctx, &one, &paths[i], 1, options);
        if (status != BW_OK) {
            bwi_locate_file(ctx, paths[i]);
            bw_dataset_free(all);
            return status;
        }
        bwi_dataset_set_scale(one, options->scale);
        all = all ? bw_concatenate(all, one) : one;
        if (!all) {
            return bwi_pending(ctx);
        }
    }
    *root = all;
    return BW_OK;
}

/* Whether .txt files and the lines of standard input are texts rather than tables: if the option `text` names no column, or the
 * model was trained on such, or on a table's column of text alone. */
static bool is_of_texts(bw_context *ctx, const char *path, const bw_read_options *options)
{
    const bwi_facts *like = options->like ? bwi_dataset_facts(options->like) : NULL;
    bool single = like && like->features == 1 && like->feature[0].text;
    bool asked = options->text ? !options->text[0] : like && (like->texts || single);
    return asked && (strcmp(path, "-") == 0 || ends_with(path, ".txt") || bwi_folder_is(ctx, path));
}

/* *skips: the reader has skipped bad records itself. */
static bw_status read_list(bw_context *ctx, bw_dataset **root, bool *skips, const char *const *paths, int count,
                           const bw_read_options *options)
{
    int reader = strcmp(paths[0], "-") == 0 ? find_reader(ctx, ".csv") : find_reader(ctx, paths[0]);
    if (is_of_texts(ctx, paths[0], options)) {
        return bwi_texts_read(ctx, root, paths, count, options);
    }
    if (reader < 0) {
        return fail_kind(ctx, paths[0]);
    }
    *skips = readers[reader].skips;
    for (int i = 1; i < count; i++) {
        int other = find_reader(ctx, paths[i]);
        if (other < 0) {
            return fail_kind(ctx, paths[i]);
        }
        if (readers[other].read != readers[reader].read) {
            return bwi_fail(ctx, BW_INVALID_ARGUMENT, "%s: is no file of the same kind as %s", paths[i], paths[0]);
        }
    }
    if (!readers[reader].lists) {
        return read_each(ctx, root, paths, count, options, readers[reader].read);
    }
    bw_status status = readers[reader].read(ctx, root, paths, count, options);
    if (status == BW_OK) {
        bwi_dataset_set_scale(*root, options->scale);
    }
    return status;
}

/* ---- Patterns ---- */

/* In a glob, * matches any text and ? any byte. As in a shell, neither matches the dot at the beginning of a hidden name. */
static bool matches(const char *glob, const char *name)
{
    const char *star = NULL, *from = name;
    if (*name == '.' && *glob != '.') {
        return false;
    }
    while (*name) {
        if (*glob == '*') {
            star = ++glob;
            from = name;
        } else if (*glob == '?' || *glob == *name) {
            glob++;
            name++;
        } else if (star) {
            glob = star;
            name = ++from;
        } else {
            return false;
        }
    }
    return !glob[strspn(glob, "*")];
}

/* Appends the files of a folder whose names match, each after a comma. */
static bw_status match(bw_context *ctx, const char *path, bwi_text *list)
{
    const char *slash = strrchr(path, '/'), *glob = slash ? slash + 1 : path;
    int folder = slash ? (int)(slash - path) + 1 : 0;
    char where[4096];
    bwi_names names;
    snprintf(where, sizeof where, "%.*s", folder ? folder : 1, folder ? path : ".");
    bw_status status = bwi_folder_list(ctx, where, &names);
    for (int64_t i = 0; i < names.count && status == BW_OK; i++) {
        const char *name = names.text + names.name[i].at;
        if (!matches(glob, name) || names.name[i].entry == BW_ENTRY_FOLDER) {
            continue;
        }
        if (strchr(name, ',')) {
            status = bwi_fail(ctx, BW_INVALID_ARGUMENT, "%s%s: a name with a comma cannot be in a list", where, name);
        } else {
            bwi_text_add(list, "%s%.*s%s", list->length ? "," : "", folder, path, name);
        }
    }
    bwi_names_free(&names);
    if (status == BW_OK && list->failed) {
        return BW_RESOURCE_EXHAUSTED;
    }
    if (status == BW_OK && !list->length) {
        return bwi_fail(ctx, BW_NOT_FOUND, "%s: no file has such a name", path);
    }
    return status;
}

/* A glob stands for the list of files that match it. A file whose name contains a comma or a star is opened under that name. */
static bw_status read_any(bw_context *ctx, bw_dataset **root, bool *skips, const char *path, const bw_read_options *options)
{
    bool made = strncmp(path, "synth:", 6) == 0;
    if (!made && strpbrk(path, "*?") && !strchr(path, ',') && !is_file(ctx, path)) {
        bwi_text list = {.ctx = ctx};
        bw_status matched = match(ctx, path, &list);
        if (matched == BW_OK) {
            matched = read_any(ctx, root, skips, list.bytes, options);
        }
        bwi_text_free(&list);
        return matched;
    }
    if (!strchr(path, ',') || made || is_file(ctx, path)) {
        return read_list(ctx, root, skips, &path, 1, options);
    }
    const char **paths = NULL;
    int count = 0;
    char *text = bwi_copy_text(ctx, path);
    if (!text) {
        return BW_RESOURCE_EXHAUSTED;
    }
    bw_status status = split(ctx, text, &paths, &count);
    if (status == BW_OK) {
        status = read_list(ctx, root, skips, paths, count, options);
    }
    bwi_release(ctx, (void *)paths);
    bwi_release(ctx, text);
    return status;
}

static bw_status reshape(bw_dataset *root, const char *path, const bw_read_options *options)
{
    char where[512];
    snprintf(where, sizeof where, "%.*s: ", (int)sizeof where - 3, path);
    return bwi_dataset_reshape(root, options->ndim, options->shape, where);
}

/* Keeps the choices that are applied again when the model is used. */
static void keep_choices(bw_dataset *root, const bw_read_options *options)
{
    bw_dataset *base = root;
    while (base->upstream) {
        base = base->upstream;
    }
    bwi_facts *facts = &base->facts;
    facts->missing = options->missing;
    if (bwi_dataset_find(root, BWI_ROLE_INPUT, 1) >= 0) {
        return;
    }
    facts->ndim = bw_dataset_shape(root, facts->shape);
    facts->ndim = facts->ndim < 0 ? 0 : facts->ndim;
}

bw_dataset *bw_read(bw_context *ctx, const char *path, const bw_read_options *options)
{
    bw_read_options chosen;
    bw_dataset *root = NULL;
    bool skips = false;
    if (!ctx) {
        return NULL;
    }
    if (!path) {
        return bwi_fail_build(ctx, BW_INVALID_ARGUMENT, "bw_read needs a path; it is NULL");
    }
    bw_status status = find_options(ctx, &chosen, options);
    if (status == BW_OK) {
        status = read_any(ctx, &root, &skips, path, &chosen);
    }
    if (status == BW_OK) {
        status = reshape(root, path, &chosen);
    }
    status = bwi_shrink_report(ctx, path, status);
    if (status == BW_OK && root->slow && !root->prefetcher) {
        status = bwi_prefetcher_attach(root);
    }
    if (status == BW_OK) {
        keep_choices(root, &chosen);
        root = chosen.take > 0 ? bw_take(root, chosen.take) : root;
        return chosen.bad_records != 0 && !skips ? bw_allow_bad(root, chosen.bad_records) : root;
    }
    bw_dataset_free(root);
    return bwi_pass_on(ctx);
}
