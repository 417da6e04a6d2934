/*
 * Files that survive a kill at any moment, written from any thread: a reader sees the old file or the new one, and what was renamed
 * is on the disk. Nothing is allocated, and failures are numbers, because the context's message belongs to the caller's thread.
 */
#include "base/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

/* Writes, syncs and closes a file that is open; it is closed whatever happens. */
static int fill(bw_context *ctx, int file, const void *data, size_t size, const char **what)
{
    *what = "write";
    int result = bwi_io_write(ctx, file, data, size, 0);
    if (result >= 0) {
        *what = "sync";
        result = bwi_io_sync(ctx, file);
    }
    int closed = bwi_io_close(ctx, file);
    if (result >= 0 && closed < 0) {
        *what = "close";
        result = closed;
    }
    return result;
}

/* Some file systems cannot sync folders, and a folder that may not be read cannot be opened for it: neither is a failure. */
static int sync_folder_of(bw_context *ctx, const char *path)
{
    char folder[BWI_DURABLE_PATH];
    const char *slash = strrchr(path, '/');
    snprintf(folder, sizeof folder, "%.*s", slash == path ? 1 : slash ? (int)(slash - path) : 1, slash ? path : ".");
    int file = bwi_io_open(ctx, folder, O_RDONLY | O_DIRECTORY, 0);
    if (file < 0) {
        return file == -EACCES ? 0 : file;
    }
    int result = bwi_io_sync(ctx, file);
    (void)bwi_io_close(ctx, file);
    return result == -EINVAL || result == -ENOTSUP ? 0 : result;
}

int bwi_durable_write(bw_context *ctx, const char *path, const void *data, size_t size, const char **what)
{
    char name[BWI_DURABLE_PATH + 8];
    *what = "create";
    if (strlen(path) >= BWI_DURABLE_PATH - 96) {
        return -ENAMETOOLONG;
    }
    snprintf(name, sizeof name, "%s.tmp", path);
    int file = bwi_io_open(ctx, name, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    if (file < 0) {
        return file;
    }
    int result = fill(ctx, file, data, size, what);
    if (result >= 0) {
        *what = "rename a new file to";
        result = ctx->io.rename(ctx->io.user, name, path);
    }
    if (result < 0) {
        (void)ctx->io.remove(ctx->io.user, name);
        return result;
    }
    *what = "sync the folder of";
    return sync_folder_of(ctx, path);
}

int bwi_durable_folder(bw_context *ctx, const char *path, const char **what)
{
    *what = "make the folder";
    int result = -ENOTSUP;
    if (strlen(path) >= BWI_DURABLE_PATH - 96) {
        return -ENAMETOOLONG;
    }
    do {
        result = ctx->io.make_folder ? ctx->io.make_folder(ctx->io.user, path, 0777) : -ENOTSUP;
    } while (result == -EINTR);
    if (result == -EEXIST) {
        return 0;
    }
    return result < 0 ? result : sync_folder_of(ctx, path);
}
