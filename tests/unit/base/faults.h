/* An allocator and an I/O table that count their calls and fail at a chosen one. Otherwise they do what the system does. */
#ifndef BW_TEST_FAULTS_H
#define BW_TEST_FAULTS_H

#include "base/internal.h"

#include <errno.h>

typedef struct faults {
    int fail_at;    /* the call that fails, from 1; 0: none */
    bool onwards;   /* all calls after it fail too */
    int error;      /* I/O: the errno it fails with */
    size_t most;    /* I/O: bytes moved at once; 0: as asked */
    int calls;      /* so far */
    int64_t blocks; /* allocated and not released, or files open, or maps */
    size_t bytes;   /* allocated and not released */
    bool failed;    /* the chosen call has come */
} faults;

static inline bool faults_now(faults *f)
{
    f->calls++;
    bool now = f->calls == f->fail_at || (f->onwards && f->fail_at && f->calls > f->fail_at);
    f->failed |= now;
    return now;
}

static inline void *faults_allocate(void *user, size_t bytes, size_t alignment)
{
    faults *f = user;
    void *memory = faults_now(f) ? NULL : bwi_system_allocator.allocate(NULL, bytes, alignment);
    if (memory) {
        f->blocks++;
        f->bytes += bytes;
    }
    return memory;
}

static inline void faults_release(void *user, void *memory, size_t bytes)
{
    faults *f = user;
    f->blocks--;
    f->bytes -= bytes;
    bwi_system_allocator.release(NULL, memory, bytes);
}

static inline bw_allocator faults_allocator(faults *f)
{
    return (bw_allocator){.user = f, .allocate = faults_allocate, .release = faults_release};
}

static inline int faults_open(void *user, const char *path, int flags, int mode)
{
    faults *f = user;
    int file = faults_now(f) ? -f->error : bwi_system_io.open(NULL, path, flags, mode);
    f->blocks += file >= 0;
    return file;
}

static inline int64_t faults_read(void *user, int file, void *bytes, size_t count, int64_t offset)
{
    faults *f = user;
    return faults_now(f) ? -f->error : bwi_system_io.read(NULL, file, bytes, f->most && count > f->most ? f->most : count, offset);
}

static inline int64_t faults_write(void *user, int file, const void *bytes, size_t count, int64_t offset)
{
    faults *f = user;
    return faults_now(f) ? -f->error : bwi_system_io.write(NULL, file, bytes, f->most && count > f->most ? f->most : count, offset);
}

static inline int64_t faults_size(void *user, int file)
{
    return faults_now(user) ? -((faults *)user)->error : bwi_system_io.size(NULL, file);
}

static inline int faults_sync(void *user, int file)
{
    return faults_now(user) ? -((faults *)user)->error : bwi_system_io.sync(NULL, file);
}

/* The file is closed even if the call fails, as the system does. */
static inline int faults_close(void *user, int file)
{
    faults *f = user;
    f->blocks--;
    int result = bwi_system_io.close(NULL, file);
    return faults_now(f) ? -f->error : result;
}

static inline int faults_rename(void *user, const char *from, const char *to)
{
    return faults_now(user) ? -((faults *)user)->error : bwi_system_io.rename(NULL, from, to);
}

static inline int faults_remove(void *user, const char *path)
{
    return faults_now(user) ? -((faults *)user)->error : bwi_system_io.remove(NULL, path);
}

static inline int faults_map(void *user, int file, size_t bytes, void **memory)
{
    faults *f = user;
    int result = faults_now(f) ? -f->error : bwi_system_io.map(NULL, file, bytes, memory);
    f->blocks += result >= 0;
    return result;
}

static inline int faults_map_shared(void *user, int file, size_t bytes, void **memory)
{
    faults *f = user;
    int result = faults_now(f) ? -f->error : bwi_system_io.map_shared(NULL, file, bytes, memory);
    f->blocks += result >= 0;
    return result;
}

static inline int faults_unmap(void *user, void *memory, size_t bytes)
{
    ((faults *)user)->blocks--;
    return bwi_system_io.unmap(NULL, memory, bytes);
}

static inline int faults_list(void *user, const char *path, int (*add)(void *names, const char *name, bw_entry entry), void *names)
{
    return faults_now(user) ? -((faults *)user)->error : bwi_system_io.list(NULL, path, add, names);
}

static inline int faults_make_folder(void *user, const char *path, int mode)
{
    return faults_now(user) ? -((faults *)user)->error : bwi_system_io.make_folder(NULL, path, mode);
}

static inline bw_io faults_io(faults *f)
{
    return (bw_io){.user = f,
                   .open = faults_open,
                   .read = faults_read,
                   .write = faults_write,
                   .size = faults_size,
                   .sync = faults_sync,
                   .close = faults_close,
                   .rename = faults_rename,
                   .remove = faults_remove,
                   .map = faults_map,
                   .unmap = faults_unmap,
                   .list = faults_list,
                   .map_shared = faults_map_shared,
                   .make_folder = faults_make_folder};
}

/* A context of `workers` workers with these tables; NULL: the system's. */
static inline bw_context *faults_context(faults *memory, faults *files, int workers)
{
    bw_allocator allocator = memory ? faults_allocator(memory) : bwi_system_allocator;
    bw_io io = files ? faults_io(files) : bwi_system_io;
    bw_context_options options = BW_CONTEXT_OPTIONS_DEFAULT;
    options.allocator = &allocator;
    options.io = &io;
    options.workers = workers;
    return bw_open(&options);
}

#endif
