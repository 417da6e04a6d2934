/*
 * Memory that may be larger than the machine's: up to a limit it is ordinary memory, beyond it the pages of a temporary file, which
 * the system writes out when it needs memory. The file has no name, so nothing is left behind, however the process ends. Its blocks
 * are taken from the disk before they are used: a full disk is a status here, and never a signal later.
 */
#include "base/base.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NAME_TRIES 100
#define ALWAYS ((size_t)64 << 20) /* up to this it is always ordinary memory */

static const char *folder(void)
{
    const char *chosen = getenv("TMPDIR");
    return chosen && *chosen ? chosen : "/var/tmp";
}

/* A file without a name, or one whose name goes at once where the file system knows no other way. */
static int open_nameless(bw_context *ctx)
{
    static atomic_uint serial;
    const bw_io *io = &ctx->io;
    char path[512];
    int file = io->open(io->user, folder(), O_TMPFILE | O_RDWR | O_EXCL, 0600);
    for (int i = 0; i < NAME_TRIES && (file == -EOPNOTSUPP || file == -EISDIR || file == -EEXIST || file == -EINTR); i++) {
        snprintf(path, sizeof path, "%.400s/batchwise-%ld-%u", folder(), (long)getpid(), atomic_fetch_add(&serial, 1));
        file = io->open(io->user, path, O_RDWR | O_CREAT | O_EXCL, 0600);
        if (file >= 0) {
            (void)io->remove(io->user, path);
        }
    }
    return file;
}

/* Whether that many bytes belong in a file. */
static bool beyond(bw_context *ctx, const bwi_backing *backing, size_t bytes)
{
    if (!ctx->io.map_shared) {
        return false;
    }
    if (backing->opened) {
        return true;
    }
    if (ctx->backing_limit) {
        return bytes > ctx->backing_limit;
    }
    return bytes > ALWAYS && bytes > bwi_memory_available(ctx) / 2;
}

static bw_status fail_file(bw_context *ctx, size_t bytes, int code, const char *what)
{
    char needed[32];
    return bwi_fail(ctx, bwi_errno_status(-code), "%s: cannot keep %s in a temporary file in %s: %s", what,
                    bwi_format_bytes(needed, bytes), folder(), bwi_errno_text(-code));
}

static void unmap(bw_context *ctx, bwi_backing *backing)
{
    if (backing->opened && backing->memory) {
        (void)ctx->io.unmap(ctx->io.user, backing->memory, backing->bytes);
    } else {
        bwi_release(ctx, backing->memory);
    }
    backing->memory = NULL;
}

/* The file is mapped again at its new size. Memory that has been filled so far moves into the file once, when it outgrows memory.
 */
static bw_status map_file(bw_context *ctx, bwi_backing *backing, size_t used, size_t bytes, const char *what)
{
    bool moves = !backing->opened;
    int file = moves ? open_nameless(ctx) : backing->file;
    void *memory = NULL;
    int code = file;
    while (file >= 0 && (code = ctx->io.map_shared(ctx->io.user, file, bytes, &memory)) == -EINTR)
        ;
    if (code < 0) {
        if (moves && file >= 0) {
            (void)ctx->io.close(ctx->io.user, file);
        }
        return fail_file(ctx, bytes, code, what);
    }
    if (moves && used) {
        memcpy(memory, backing->memory, used);
    }
    unmap(ctx, backing); /* what is in the file is in the new pages too */
    backing->opened = true;
    backing->file = file;
    backing->memory = memory;
    backing->bytes = bytes;
    return BW_OK;
}

bw_status bwi_backing_grow(bw_context *ctx, bwi_backing *backing, size_t used, size_t bytes, const char *what)
{
    char needed[32], there[32];
    if (bytes <= backing->bytes) {
        return BW_OK;
    }
    if (bytes >= SIZE_MAX / 2) {
        return bwi_fail(ctx, BW_RESOURCE_EXHAUSTED, "%s: too large to be stored", what);
    }
    if (beyond(ctx, backing, bytes)) {
        return map_file(ctx, backing, used, bytes, what);
    }
    if (bytes > ALWAYS && bytes > bwi_memory_available(ctx)) {
        return bwi_fail(ctx, BW_RESOURCE_EXHAUSTED, "%s: needs %s of memory, %s are available", what,
                        bwi_format_bytes(needed, bytes), bwi_format_bytes(there, bwi_memory_available(ctx)));
    }
    void *larger = bwi_try_allocate_lazily(ctx, bytes);
    if (!larger) {
        return bwi_fail(ctx, BW_RESOURCE_EXHAUSTED, "%s: cannot allocate %s", what, bwi_format_bytes(needed, bytes));
    }
    if (used) {
        memcpy(larger, backing->memory, used);
    }
    bwi_release(ctx, backing->memory);
    backing->memory = larger;
    backing->bytes = bytes;
    return BW_OK;
}

void bwi_backing_free(bw_context *ctx, bwi_backing *backing)
{
    unmap(ctx, backing);
    if (backing->opened) {
        (void)ctx->io.close(ctx->io.user, backing->file);
    }
    *backing = (bwi_backing){.bytes = 0};
}
