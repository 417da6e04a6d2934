/*
 * The allocator and I/O tables of a context that was given none: the only place that calls the system for memory
 * and files. Functions return 0 or more, or a negative errno; interrupted calls and short counts are the caller's.
 */
#include "base/internal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* Large blocks are mapped by themselves: advice about huge pages then never touches the heap, and release gives all of
 * it back. The address sanitizer sees overruns and leaks only in heap memory. */
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define HEAP_ONLY 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define HEAP_ONLY 1
#endif
#ifdef HEAP_ONLY
#define MAPPED_FROM SIZE_MAX
#else
#define MAPPED_FROM ((size_t)4 << 20)
#endif

static void *map_aligned(size_t bytes, size_t alignment)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t length = bwi_size_align(bytes, page);
    size_t slack = alignment > page ? alignment - page : 0;
    size_t whole = bwi_size_add(length, slack);
    if (whole == SIZE_MAX) {
        return NULL;
    }
    unsigned char *start = mmap(NULL, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (start == MAP_FAILED) {
        return NULL;
    }
    size_t before = slack ? (size_t)(-(uintptr_t)start & (alignment - 1)) : 0;
    if (before) {
        munmap(start, before);
    }
    if (slack > before) {
        munmap(start + before + length, slack - before);
    }
    return start + before;
}

static void *system_allocate(void *user, size_t bytes, size_t alignment)
{
    (void)user;
    if (bytes >= MAPPED_FROM) {
        return map_aligned(bytes, alignment);
    }
    void *memory = NULL;
    if (alignment < sizeof(void *)) {
        alignment = sizeof(void *);
    }
    return posix_memalign(&memory, alignment, bytes ? bytes : 1) == 0 ? memory : NULL;
}

static void system_release(void *user, void *memory, size_t bytes)
{
    (void)user;
    if (memory && bytes >= MAPPED_FROM) {
        munmap(memory, bwi_size_align(bytes, (size_t)sysconf(_SC_PAGESIZE)));
    } else {
        free(memory);
    }
}

bool bwi_system_zeroes(size_t bytes)
{
    return bytes >= MAPPED_FROM;
}

bool bwi_system_has_room(size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        return false;
    }
    munmap(memory, bytes);
    return true;
}

const bw_allocator bwi_system_allocator = {.allocate = system_allocate, .release = system_release};

static int result_of(int result)
{
    return result < 0 ? -errno : result;
}

static int system_open(void *user, const char *path, int flags, int mode)
{
    (void)user;
    return result_of(open(path, flags | O_CLOEXEC, (mode_t)mode));
}

static int64_t system_read(void *user, int file, void *bytes, size_t count, int64_t offset)
{
    (void)user;
    ssize_t got = pread(file, bytes, count, (off_t)offset);
    if (got < 0 && errno == ESPIPE) { /* a pipe has no places: what comes next is meant */
        got = read(file, bytes, count);
    }
    return got < 0 ? -errno : got;
}

static int64_t system_write(void *user, int file, const void *bytes, size_t count, int64_t offset)
{
    (void)user;
    ssize_t put = pwrite(file, bytes, count, (off_t)offset);
    return put < 0 ? -errno : put;
}

static int64_t system_size(void *user, int file)
{
    (void)user;
    struct stat facts;
    if (fstat(file, &facts) < 0) {
        return -errno;
    }
    if (S_ISDIR(facts.st_mode)) {
        return -EISDIR;
    }
    return S_ISREG(facts.st_mode) ? (int64_t)facts.st_size : -ENOTSUP;
}

static int system_sync(void *user, int file)
{
    (void)user;
    return result_of(fsync(file));
}

static int system_close(void *user, int file)
{
    (void)user;
    return result_of(close(file));
}

static int system_rename(void *user, const char *from, const char *to)
{
    (void)user;
    return result_of(rename(from, to));
}

static int system_remove(void *user, const char *path)
{
    (void)user;
    return result_of(remove(path));
}

static int system_map(void *user, int file, size_t bytes, void **memory)
{
    (void)user;
    void *start = mmap(NULL, bytes, PROT_READ, MAP_PRIVATE, file, 0);
    if (start == MAP_FAILED) {
        return -errno;
    }
    *memory = start;
    return 0;
}

static int system_map_shared(void *user, int file, size_t bytes, void **memory)
{
    (void)user;
    int code = posix_fallocate(file, 0, (off_t)bytes);
    if (code != 0) {
        return -code;
    }
    void *start = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (start == MAP_FAILED) {
        return -errno;
    }
    *memory = start;
    return 0;
}

bool bwi_system_blank(void *page, size_t bytes)
{
    return mmap(page, bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED;
}

static int system_unmap(void *user, void *memory, size_t bytes)
{
    (void)user;
    return result_of(munmap(memory, bytes));
}

static int system_make_folder(void *user, const char *path, int mode)
{
    (void)user;
    return result_of(mkdir(path, (mode_t)mode));
}

/* Some file systems do not report the kind of an entry while listing. */
static bw_entry kind_of(DIR *folder, const struct dirent *entry)
{
    struct stat facts;
    unsigned char type = entry->d_type;
    if (type == DT_UNKNOWN && fstatat(dirfd(folder), entry->d_name, &facts, AT_SYMLINK_NOFOLLOW) == 0) {
        type = S_ISREG(facts.st_mode) ? DT_REG : S_ISDIR(facts.st_mode) ? DT_DIR : S_ISLNK(facts.st_mode) ? DT_LNK : DT_UNKNOWN;
    }
    return type == DT_REG ? BW_ENTRY_FILE : type == DT_DIR ? BW_ENTRY_FOLDER : type == DT_LNK ? BW_ENTRY_LINK : BW_ENTRY_OTHER;
}

static int system_list(void *user, const char *path, int (*add)(void *names, const char *name, bw_entry entry), void *names)
{
    (void)user;
    DIR *folder = opendir(path);
    if (!folder) {
        return -errno;
    }
    int result = 0;
    while (result == 0) {
        errno = 0;
        const struct dirent *entry = readdir(folder);
        if (!entry) {
            result = -errno;
            break;
        }
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) {
            result = add(names, entry->d_name, kind_of(folder, entry));
        }
    }
    closedir(folder);
    return result;
}

/* Links are followed one by one, because the file that the last one names need not exist yet. */
void bwi_system_find(const char *path, char *target, size_t size, int *mode)
{
    enum { LINKS = 40 };
    char link[PATH_MAX];
    struct stat facts;
    *mode = -1;
    if ((size_t)snprintf(target, size, "%s", path) >= size) {
        return;
    }
    for (int i = 0; i < LINKS; i++) {
        ssize_t length = readlink(target, link, sizeof link - 1);
        if (length <= 0) {
            break;
        }
        link[length] = 0;
        const char *slash = link[0] == '/' ? NULL : strrchr(target, '/');
        size_t kept = slash ? (size_t)(slash - target) + 1 : 0;
        if (kept + (size_t)length >= size) {
            break;
        }
        memcpy(target + kept, link, (size_t)length + 1);
    }
    if (stat(target, &facts) == 0 && S_ISREG(facts.st_mode)) {
        *mode = (int)(facts.st_mode & 0777);
    }
}

int bwi_system_set_mode(int file, int mode)
{
    return fchmod(file, (mode_t)mode) == 0 ? 0 : -errno;
}

/* ---- What a killed process leaves ---- */

void bwi_system_hold(int file)
{
    (void)flock(file, LOCK_EX | LOCK_NB); /* where there are no locks, nothing is swept, either */
}

/* Whether a name is `base`, the number of a process, another number and ".tmp", as open_temporary makes them. */
static bool is_temporary(const char *name, const char *base)
{
    size_t length = strlen(base);
    if (strncmp(name, base, length) != 0 || name[length] != '.') {
        return false;
    }
    name += length + 1;
    size_t process = strspn(name, "0123456789"),
           serial = process && name[process] == '-' ? strspn(name + process + 1, "0123456789") : 0;
    return serial && strcmp(name + process + 1 + serial, ".tmp") == 0;
}

/* A file that is being written is locked, which holds across containers where numbers of processes do not. Between creating and
 * locking it passes a moment, so young files are left alone. */
static void remove_abandoned(int folder, const char *name)
{
    enum { YOUNG = 60 };
    struct stat facts;
    int file = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (file < 0) {
        return;
    }
    if (fstat(file, &facts) == 0 && S_ISREG(facts.st_mode) && facts.st_mtime + YOUNG < time(NULL) &&
        flock(file, LOCK_EX | LOCK_NB) == 0) {
        (void)unlinkat(folder, name, 0);
    }
    (void)close(file);
}

void bwi_system_sweep(const char *path)
{
    char folder[PATH_MAX];
    const char *slash = strrchr(path, '/');
    int length = slash ? (int)(slash - path) + 1 : 0;
    if ((size_t)snprintf(folder, sizeof folder, "%.*s.", length, path) >= sizeof folder) {
        return;
    }
    DIR *names = opendir(folder);
    if (!names) {
        return;
    }
    for (const struct dirent *entry; (entry = readdir(names));) {
        if (is_temporary(entry->d_name, path + length)) {
            remove_abandoned(dirfd(names), entry->d_name);
        }
    }
    closedir(names);
}

const bw_io bwi_system_io = {
    .open = system_open,
    .read = system_read,
    .write = system_write,
    .size = system_size,
    .sync = system_sync,
    .close = system_close,
    .rename = system_rename,
    .remove = system_remove,
    .map = system_map,
    .unmap = system_unmap,
    .list = system_list,
    .map_shared = system_map_shared,
    .make_folder = system_make_folder,
};
