/*
 * Files through the context's I/O table. Short counts are completed. A file is replaced as a whole or not at all.
 */
#include "base/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#define NAME_TRIES 100

static bw_status fail_file(bw_context *ctx, int64_t code, const char *what, const char *path)
{
    return bwi_fail_at(ctx, bwi_errno_status((int)-code), bwi_in_file(path), "cannot %s %s: %s", what, path,
                       bwi_errno_text((int)-code));
}

/* ---- Reading ---- */

/* An empty file cannot be mapped, and is no failure. The map outlives the descriptor, which is closed at once. */
bw_status bwi_file_map(bw_context *ctx, bwi_bytes *bytes, const char *path)
{
    bytes->data = (const unsigned char *)"";
    bytes->size = 0;
    /* Without O_NONBLOCK, opening a named pipe would wait for a writer. */
    int file = bwi_io_open(ctx, path, O_RDONLY | O_NONBLOCK, 0);
    if (file < 0) {
        return fail_file(ctx, file, "open", path);
    }
    bw_status status = BW_OK;
    int64_t size = ctx->io.size(ctx->io.user, file);
    if (size < 0) {
        status = fail_file(ctx, size, "read", path);
    } else if ((uint64_t)size >= SIZE_MAX) {
        status = fail_file(ctx, -EFBIG, "map", path);
    } else if (size > 0) {
        void *memory = NULL;
        int result = ctx->io.map(ctx->io.user, file, (size_t)size, &memory);
        if (result < 0) {
            status = fail_file(ctx, result, "map", path);
        } else {
            bytes->data = memory;
            bytes->size = (size_t)size;
            if (ctx->io.map == bwi_system_io.map) {
                bwi_shrink_watch(ctx, bytes, path);
            }
        }
    }
    (void)bwi_io_close(ctx, file);
    return status;
}

void bwi_file_unmap(bw_context *ctx, bwi_bytes *bytes)
{
    if (bytes->size) {
        bwi_shrink_forget(bytes);
        (void)ctx->io.unmap(ctx->io.user, bwi_unconst(bytes->data), bytes->size);
    }
    bytes->data = NULL;
    bytes->size = 0;
}

int64_t bwi_file_read_small(bw_context *ctx, const char *path, char *text, size_t capacity)
{
    int file = bwi_io_open(ctx, path, O_RDONLY | O_NONBLOCK, 0);
    if (file < 0) {
        return -1;
    }
    size_t done = 0;
    int64_t got = 0;
    while (done < capacity) {
        got = ctx->io.read(ctx->io.user, file, text + done, capacity - done, (int64_t)done);
        if (got == 0 || (got < 0 && got != -EINTR)) {
            break;
        }
        done += got > 0 ? (size_t)got : 0;
    }
    (void)bwi_io_close(ctx, file);
    return got < 0 ? -1 : (int64_t)done;
}

/* Asks for the size first, so that a file beyond the limit costs no memory; it may shrink while it is read. */
static int64_t read_opened(bw_context *ctx, int file, size_t limit, bwi_buffer *to)
{
    int64_t size = ctx->io.size(ctx->io.user, file);
    size_t done = 0;
    if (size < 0) {
        return size;
    }
    if ((uint64_t)size > limit) {
        return -EFBIG;
    }
    if (!bwi_buffer_reserve(ctx, to, size ? (size_t)size : 1)) {
        return -ENOMEM;
    }
    while (done < (size_t)size) {
        int64_t got = ctx->io.read(ctx->io.user, file, to->memory + done, (size_t)size - done, (int64_t)done);
        if (got == 0) {
            break; /* it has become shorter */
        }
        if (got < 0 && got != -EINTR) {
            return got;
        }
        done += got > 0 ? (size_t)got : 0;
    }
    return (int64_t)done;
}

int64_t bwi_file_read_whole(bw_context *ctx, const char *path, size_t limit, bwi_buffer *to)
{
    int file = bwi_io_open(ctx, path, O_RDONLY | O_NONBLOCK | O_NOFOLLOW, 0);
    if (file < 0) {
        return file;
    }
    int64_t size = read_opened(ctx, file, limit, to);
    (void)bwi_io_close(ctx, file);
    return size;
}

/* ---- Writing ---- */

/* The name of the file that is replaced: that of the temporary one without what open_temporary has added. */
static const char *final_name(const bwi_file_out *out, char target[PATH_MAX])
{
    size_t length = out->name ? strlen(out->name) : 0;
    for (int dots = 0; length > 0 && dots < 2;) {
        dots += out->name[--length] == '.';
    }
    if (length == 0 || length >= PATH_MAX) {
        return out->path;
    }
    memcpy(target, out->name, length);
    target[length] = 0;
    return target;
}

/* A name beside `path` that no other process or thread uses. `name` keeps it, to be freed by the caller. */
static int open_temporary(bw_context *ctx, const char *path, bwi_text *name)
{
    static atomic_uint serial;
    int file = -EEXIST;
    for (int i = 0; i < NAME_TRIES && file == -EEXIST; i++) {
        name->length = 0;
        bwi_text_add(name, "%s.%ld-%u.tmp", path, (long)getpid(), atomic_fetch_add(&serial, 1));
        if (name->failed) {
            return -ENOMEM;
        }
        file = bwi_io_open(ctx, name->bytes, O_WRONLY | O_CREAT | O_EXCL, 0666);
    }
    return file;
}

static int open_folder(bw_context *ctx, const char *path)
{
    const char *slash = strrchr(path, '/');
    bwi_text folder = {.ctx = ctx};
    if (slash) {
        bwi_text_add(&folder, "%.*s", slash == path ? 1 : (int)(slash - path), path);
    } else {
        bwi_text_add(&folder, ".");
    }
    int file = folder.failed ? -ENOMEM : bwi_io_open(ctx, folder.bytes, O_RDONLY | O_DIRECTORY, 0);
    bwi_text_free(&folder);
    return file;
}

/* The folder is opened first, so that what can fail does so while the old file is still there. A folder that may be written but
 * not read cannot be synced. A file that is replaced gives the new one its permissions; a symbolic link stays, and the file that it
 * names is replaced. What a killed process has left beside it is removed. */
bw_status bwi_file_begin(bw_context *ctx, bwi_file_out *out, const char *path)
{
    *out = (bwi_file_out){.ctx = ctx, .path = path, .file = -1, .folder = -1};
    if (strlen(path) > INT32_MAX / 2) {
        return fail_file(ctx, -ENAMETOOLONG, "write", "a file");
    }
    char target[PATH_MAX];
    const char *replaced = path;
    int mode = -1;
    if (ctx->io.open == bwi_system_io.open && strlen(path) < sizeof target) {
        bwi_system_find(path, target, sizeof target, &mode);
        bwi_system_sweep(target);
        replaced = target;
    }
    out->folder = open_folder(ctx, replaced);
    if (out->folder < 0 && out->folder != -EACCES) {
        return fail_file(ctx, out->folder, "open the folder of", path);
    }
    bwi_text name = {.ctx = ctx};
    out->file = open_temporary(ctx, replaced, &name);
    out->name = name.bytes;
    if (out->file >= 0 && replaced == target) {
        bwi_system_hold(out->file);
    }
    if (out->file >= 0 && mode >= 0) {
        (void)bwi_system_set_mode(out->file, mode); /* some file systems have no permissions */
    }
    return out->file < 0 ? fail_file(ctx, out->file, "create a file beside", path) : BW_OK;
}

bw_status bwi_file_replace(bwi_file_out *out, int64_t at, const void *data, size_t size)
{
    int result = bwi_io_write(out->ctx, out->file, data, size, at);
    return result < 0 ? fail_file(out->ctx, result, "write", out->path) : BW_OK;
}

bw_status bwi_file_put(bwi_file_out *out, const void *data, size_t size)
{
    bw_status status = bwi_file_replace(out, out->size, data, size);
    out->size += status == BW_OK ? (int64_t)size : 0;
    return status;
}

static bw_status put_to_file(void *user, const void *data, size_t size)
{
    return bwi_file_put(user, data, size);
}

bwi_byte_sink bwi_file_sink(bwi_file_out *out)
{
    return (bwi_byte_sink){.put = put_to_file, .user = out};
}

/* Syncs and renames the file: a reader sees the old file or the new one, never a part of either. The file is closed in any case. */
static bw_status make_file(bwi_file_out *out)
{
    bw_context *ctx = out->ctx;
    const char *what = "sync";
    int result = bwi_io_sync(ctx, out->file), closed = bwi_io_close(ctx, out->file);
    if (result >= 0 && closed < 0) {
        what = "close";
        result = closed;
    }
    if (result >= 0) {
        char target[PATH_MAX];
        what = "rename a new file to";
        result = ctx->io.rename(ctx->io.user, out->name, final_name(out, target));
    }
    if (result >= 0) {
        return BW_OK;
    }
    bw_status status = fail_file(ctx, result, what, out->path);
    (void)ctx->io.remove(ctx->io.user, out->name);
    return status;
}

/* Some file systems cannot sync folders at all, which is no reason to fail. */
bw_status bwi_file_end(bwi_file_out *out, bw_status status)
{
    bw_context *ctx = out->ctx;
    bool opened = out->file >= 0;
    if (opened && status == BW_OK) {
        status = make_file(out);
    } else if (opened) {
        (void)bwi_io_close(ctx, out->file);
        (void)ctx->io.remove(ctx->io.user, out->name);
    }
    if (opened && status == BW_OK && out->folder >= 0) {
        int result = bwi_io_sync(ctx, out->folder);
        if (result < 0 && result != -EINVAL && result != -ENOTSUP) {
            status = fail_file(ctx, result, "sync the folder of", out->path);
        }
    }
    if (out->folder >= 0) {
        (void)bwi_io_close(ctx, out->folder);
    }
    bwi_release(ctx, out->name);
    *out = (bwi_file_out){.file = -1, .folder = -1};
    return status;
}

bw_status bwi_file_write(bw_context *ctx, const char *path, const void *data, size_t size)
{
    bwi_file_out out;
    bw_status status = bwi_file_begin(ctx, &out, path);
    if (status == BW_OK) {
        status = bwi_file_put(&out, data, size);
    }
    return bwi_file_end(&out, status);
}

/* What was added is in the system's hands when this returns, so it outlives the process, if not the machine. */
bw_status bwi_file_append(bw_context *ctx, const char *path, int64_t *at, const void *data, size_t size)
{
    int file = bwi_io_open(ctx, path, O_WRONLY | O_CREAT, 0666);
    if (file < 0) {
        return fail_file(ctx, file, "open", path);
    }
    int result = bwi_io_write(ctx, file, data, size, *at), closed = bwi_io_close(ctx, file);
    result = result < 0 ? result : closed;
    if (result < 0) {
        return fail_file(ctx, result, "write", path);
    }
    *at += (int64_t)size;
    return BW_OK;
}
