/*
 * Which reader opens a path: by its beginning, or by the end of its name. A new kind of file is its own file and a row here.
 */
#include "data/dataset.h"

#include <math.h>
#include <string.h>

static const struct {
    const char *prefix, *extension; /* one of them */
    bwi_reader read;
} readers[] = {{NULL, ".npz", bwi_npz_read}};

static char lower(char letter)
{
    return letter >= 'A' && letter <= 'Z' ? (char)(letter - 'A' + 'a') : letter;
}

static bool ends_with(const char *path, const char *extension)
{
    const size_t length = strlen(path), tail = strlen(extension);
    for (size_t i = 0; i < tail; i++) {
        if (length < tail || lower(path[length - tail + i]) != extension[i])
            return false;
    }
    return true;
}

static bw_status find_options(bw_context *ctx, bw_read_options *options, const bw_read_options *given)
{
    *options = (bw_read_options)BW_READ_OPTIONS_DEFAULT;
    const bw_status status = bwi_options_copy(ctx, options, sizeof *options, given, "bw_read_options");
    if (status != BW_OK)
        return status;
    if (!isfinite(options->scale))
        return bwi_fail(ctx, BW_INVALID_ARGUMENT, "inputs cannot be scaled by %g", options->scale);
    return BW_OK;
}

static int find_reader(const char *path)
{
    for (size_t i = 0; i < BWI_COUNT(readers); i++) {
        const char *prefix = readers[i].prefix, *extension = readers[i].extension;
        if ((prefix && strncmp(path, prefix, strlen(prefix)) == 0) || (extension && ends_with(path, extension)))
            return (int)i;
    }
    return -1;
}

static bw_status fail_kind(bw_context *ctx, const char *path)
{
    char known[256] = "";
    for (size_t i = 0; i < BWI_COUNT(readers); i++) {
        strncat(known, " ", sizeof known - strlen(known) - 1);
        strncat(known, readers[i].prefix ? readers[i].prefix : readers[i].extension, sizeof known - strlen(known) - 1);
    }
    return bwi_fail(ctx, BW_UNIMPLEMENTED, "%s: no reader for this kind of file; known are%s", path, known);
}

static bw_status read_any(bw_context *ctx, bw_dataset **root, const char *path, const bw_read_options *options)
{
    const int reader = find_reader(path);
    return reader < 0 ? fail_kind(ctx, path) : readers[reader].read(ctx, root, &path, 1, options);
}

bw_dataset *bw_read(bw_context *ctx, const char *path, const bw_read_options *options)
{
    bw_read_options chosen;
    bw_dataset *root = NULL;
    if (!ctx)
        return NULL;
    if (!path)
        return bwi_fail_build(ctx, BW_INVALID_ARGUMENT, "bw_read needs a path; it is NULL");
    bw_status status = find_options(ctx, &chosen, options);
    if (status == BW_OK)
        status = read_any(ctx, &root, path, &chosen);
    if (status != BW_OK)
        return bwi_pass_on(ctx);
    root->scale = root->facts.scale = chosen.scale;
    return root;
}
