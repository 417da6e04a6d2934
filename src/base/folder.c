/*
 * Folders through the context's I/O table. Names come in any order from the system; here they are sorted by bytes, so that what
 * is made of a folder is the same on every machine.
 */
#include "base/base.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define NAMES_LIMIT ((int64_t)1 << 31)

/* All names share one block of text, and are found by offsets, since the block moves when it grows. */
static int add_name(void *user, const char *name, bw_entry entry)
{
    bwi_names *names = user;
    size_t bytes = strlen(name) + 1;
    if (names->count == NAMES_LIMIT) {
        return -EOVERFLOW;
    }
    if (names->length + bytes > names->capacity) {
        size_t capacity = 2 * names->capacity + bytes + 1024;
        char *larger = bwi_grow(names->ctx, names->text, names->length, capacity, 1);
        if (!larger) {
            return -ENOMEM;
        }
        names->text = larger;
        names->capacity = capacity;
    }
    if (names->count == names->name_capacity) {
        int64_t capacity = 2 * names->name_capacity + 64;
        bwi_name *larger = bwi_grow(names->ctx, names->name, (size_t)names->count, (size_t)capacity, sizeof *larger);
        if (!larger) {
            return -ENOMEM;
        }
        names->name = larger;
        names->name_capacity = capacity;
    }
    memcpy(names->text + names->length, name, bytes);
    names->name[names->count++] = (bwi_name){.at = names->length, .entry = entry};
    names->length += bytes;
    return 0;
}

static int compare(const void *a, const void *b, void *text)
{
    const char *names = text;
    return strcmp(names + ((const bwi_name *)a)->at, names + ((const bwi_name *)b)->at);
}

bw_status bwi_folder_list(bw_context *ctx, const char *path, bwi_names *names)
{
    int result;
    *names = (bwi_names){.ctx = ctx};
    do {
        names->count = 0;
        names->length = 0;
        result = ctx->io.list(ctx->io.user, path, add_name, names);
    } while (result == -EINTR);
    if (result < 0) {
        return bwi_fail_at(ctx, bwi_errno_status(-result), bwi_in_file(path), "cannot list the folder %s: %s", path,
                           bwi_errno_text(-result));
    }
    if (names->count > 0) {
        qsort_r(names->name, (size_t)names->count, sizeof *names->name, compare, names->text);
    }
    return BW_OK;
}

void bwi_names_free(bwi_names *names)
{
    bwi_release(names->ctx, names->text);
    bwi_release(names->ctx, names->name);
    *names = (bwi_names){.ctx = names->ctx};
}

static int stop_at_first(void *user, const char *name, bw_entry entry)
{
    (void)user, (void)name, (void)entry;
    return 1;
}

/* Negative: an error number, -ENOTDIR if it is something else than a folder. */
static int look_into(bw_context *ctx, const char *path)
{
    int result;
    do {
        result = ctx->io.list(ctx->io.user, path, stop_at_first, NULL);
    } while (result == -EINTR);
    return result;
}

bool bwi_folder_is(bw_context *ctx, const char *path)
{
    return look_into(ctx, path) >= 0;
}

/* A parent that exists is no failure, whoever made it; whether the last one is a folder shows when it is listed. */
static int make_each(bw_context *ctx, char *path)
{
    int result = 0;
    for (char *at = path; at && result >= 0;) {
        at = strchr(at + 1, '/');
        if (at) {
            *at = 0;
        }
        do {
            result = ctx->io.make_folder(ctx->io.user, path, 0777);
        } while (result == -EINTR);
        result = result == -EEXIST ? 0 : result;
        if (at) {
            *at = '/';
        }
    }
    return result;
}

bw_status bwi_folder_make(bw_context *ctx, const char *path)
{
    if (bwi_folder_is(ctx, path)) {
        return BW_OK;
    }
    char *copy = bwi_copy_text(ctx, path);
    if (!copy) {
        return BW_RESOURCE_EXHAUSTED;
    }
    int result = ctx->io.make_folder ? make_each(ctx, copy) : -ENOENT;
    bwi_release(ctx, copy);
    result = result >= 0 ? look_into(ctx, path) : result;
    return result >= 0 ? BW_OK
                       : bwi_fail_at(ctx, bwi_errno_status(-result), bwi_in_file(path), "cannot make the folder %s: %s", path,
                                     bwi_errno_text(-result));
}
