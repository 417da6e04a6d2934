/*
 * Calls of the context's I/O table that are made again when a signal interrupts them. They allocate nothing and leave no message,
 * so any thread may make them; failures are negative error numbers.
 */
#include "base/internal.h"

#include <errno.h>

int bwi_io_open(bw_context *ctx, const char *path, int flags, int mode)
{
    int file;
    do {
        file = ctx->io.open(ctx->io.user, path, flags, mode);
    } while (file == -EINTR);
    return file;
}

int bwi_io_sync(bw_context *ctx, int file)
{
    int result;
    do {
        result = ctx->io.sync(ctx->io.user, file);
    } while (result == -EINTR);
    return result;
}

/* An interrupted close is not repeated: the number may belong to another file already. */
int bwi_io_close(bw_context *ctx, int file)
{
    int result = ctx->io.close(ctx->io.user, file);
    return result == -EINTR ? 0 : result;
}

int bwi_io_write(bw_context *ctx, int file, const void *data, size_t size, int64_t at)
{
    size_t done = 0;
    while (done < size) {
        int64_t put = ctx->io.write(ctx->io.user, file, (const char *)data + done, size - done, at + (int64_t)done);
        if (put == -EINTR) {
            continue;
        }
        if (put <= 0) {
            return put < 0 ? (int)put : -ENOSPC;
        }
        done += (size_t)put;
    }
    return 0;
}
