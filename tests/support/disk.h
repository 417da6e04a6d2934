/* An I/O table whose disk is slow, full, read-only, or ends the process at a chosen call; from any thread. Otherwise it is the
 * system's. */
#ifndef BW_TEST_DISK_H
#define BW_TEST_DISK_H

#include "base/internal.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

typedef struct disk {
    atomic_int calls;  /* of all functions that change something, or open a file */
    int kill_at;       /* the call before which the process ends at once, from 1; 0: none */
    atomic_int error;  /* what every write fails with, an errno; 0: it works */
    atomic_bool stuck; /* writes wait while it is set, but for those of the main thread, which asks /proc for memory by such */
    pthread_t main;
    bool quick; /* nothing is synced: tests of what the disk holds need no waiting for it */
} disk;

static inline void disk_call(void *user)
{
    disk *d = user;
    if (atomic_fetch_add(&d->calls, 1) + 1 == d->kill_at) {
        _exit(9);
    }
}

static inline int disk_open(void *user, const char *path, int flags, int mode)
{
    disk_call(user);
    return bwi_system_io.open(NULL, path, flags, mode);
}

static inline int64_t disk_read(void *user, int file, void *bytes, size_t count, int64_t offset)
{
    (void)user;
    return bwi_system_io.read(NULL, file, bytes, count, offset);
}

/* Before it is killed in a write, a process may have written a part. */
static inline int64_t disk_write(void *user, int file, const void *bytes, size_t count, int64_t offset)
{
    disk *d = user;
    if (d->kill_at && atomic_load(&d->calls) + 1 == d->kill_at) {
        (void)bwi_system_io.write(NULL, file, bytes, count / 2, offset);
    }
    disk_call(user);
    while (atomic_load(&d->stuck) && !pthread_equal(pthread_self(), d->main)) {
        usleep(1000);
    }
    int error = atomic_load(&d->error);
    return error ? -error : bwi_system_io.write(NULL, file, bytes, count, offset);
}

static inline int64_t disk_size(void *user, int file)
{
    (void)user;
    return bwi_system_io.size(NULL, file);
}

static inline int disk_sync(void *user, int file)
{
    const disk *d = user;
    disk_call(user);
    return d->quick ? 0 : bwi_system_io.sync(NULL, file);
}

static inline int disk_close(void *user, int file)
{
    disk_call(user);
    return bwi_system_io.close(NULL, file);
}

static inline int disk_rename(void *user, const char *from, const char *to)
{
    disk_call(user);
    return bwi_system_io.rename(NULL, from, to);
}

static inline int disk_remove(void *user, const char *path)
{
    disk_call(user);
    return bwi_system_io.remove(NULL, path);
}

static inline int disk_map(void *user, int file, size_t bytes, void **memory)
{
    (void)user;
    return bwi_system_io.map(NULL, file, bytes, memory);
}

static inline int disk_unmap(void *user, void *memory, size_t bytes)
{
    (void)user;
    return bwi_system_io.unmap(NULL, memory, bytes);
}

static inline int disk_list(void *user, const char *path, int (*add)(void *names, const char *name, bw_entry entry), void *names)
{
    (void)user;
    return bwi_system_io.list(NULL, path, add, names);
}

static inline int disk_make_folder(void *user, const char *path, int mode)
{
    disk_call(user);
    return bwi_system_io.make_folder(NULL, path, mode);
}

static inline bw_io disk_io(disk *d)
{
    return (bw_io){.user = d,
                   .open = disk_open,
                   .read = disk_read,
                   .write = disk_write,
                   .size = disk_size,
                   .sync = disk_sync,
                   .close = disk_close,
                   .rename = disk_rename,
                   .remove = disk_remove,
                   .map = disk_map,
                   .unmap = disk_unmap,
                   .list = disk_list,
                   .make_folder = disk_make_folder};
}

#endif
