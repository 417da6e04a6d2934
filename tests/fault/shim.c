/*
 * Loaded before the C library (LD_PRELOAD), this makes the nth allocation or the nth call that touches files and sockets fail,
 * whoever makes it: the program, the libraries below it, or theirs. A test in the process calls the functions of shim.h; a command
 * is told by the environment, and counts from the beginning of main:
 *
 *   BW_FAULT=memory:17   the 17th allocation fails; memory:17+ and all after it
 *   BW_FAULT=files:17    the 17th call fails with EIO
 *   BW_FAULT=kill:17     the process is killed before the 17th call; of a write, half is done
 *   BW_FAULT_MARK=PATH   a file that is made when it happens
 */
#include "fault/shim.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The C library's own allocator, which needs no looking up: looking up allocates. */
extern void *__libc_malloc(size_t bytes);
extern void *__libc_calloc(size_t count, size_t bytes);
extern void *__libc_realloc(void *memory, size_t bytes);
extern void *__libc_memalign(size_t alignment, size_t bytes);
extern void __libc_free(void *memory);

static atomic_int armed; /* a shim_kind; 0: nothing fails */
static atomic_bool onwards, happened;
static atomic_llong calls, chosen, blocks;
static const char *mark;

/* ---- Which call ---- */

static void happens(void)
{
    atomic_store(&happened, true);
    if (mark) {
        long file = syscall(SYS_openat, AT_FDCWD, mark, O_CREAT | O_WRONLY, 0600);
        syscall(SYS_close, file);
    }
}

static bool is_chosen(shim_kind kind)
{
    if (atomic_load(&armed) != (int)kind) {
        return false;
    }
    long long call = atomic_fetch_add(&calls, 1) + 1, wanted = atomic_load(&chosen);
    bool now = call == wanted || (atomic_load(&onwards) && call > wanted);
    if (now) {
        happens();
    }
    return now;
}

static bool no_memory(void)
{
    bool now = is_chosen(SHIM_MEMORY);
    if (now) {
        errno = ENOMEM;
    }
    return now;
}

static void end_process(void)
{
    syscall(SYS_kill, getpid(), SIGKILL);
}

static bool no_file(void)
{
    if (is_chosen(SHIM_KILL)) {
        end_process();
    }
    bool now = is_chosen(SHIM_FILES);
    if (now) {
        errno = EIO;
    }
    return now;
}

void shim_arm(shim_kind kind, int64_t at, bool all)
{
    atomic_store(&calls, 0);
    atomic_store(&chosen, at);
    atomic_store(&onwards, all);
    atomic_store(&happened, false);
    atomic_store(&armed, (int)kind);
}

bool shim_disarm(void)
{
    atomic_store(&armed, 0);
    return atomic_load(&happened);
}

int64_t shim_blocks(void)
{
    return atomic_load(&blocks);
}

static void arm_by_environment(void)
{
    static const struct {
        const char *name;
        shim_kind kind;
    } kinds[] = {{"memory:", SHIM_MEMORY}, {"files:", SHIM_FILES}, {"kill:", SHIM_KILL}};
    const char *wanted = getenv("BW_FAULT");
    mark = getenv("BW_FAULT_MARK");
    for (size_t k = 0; wanted && k < sizeof kinds / sizeof kinds[0]; k++) {
        size_t length = strlen(kinds[k].name);
        if (strncmp(wanted, kinds[k].name, length) == 0) {
            shim_arm(kinds[k].kind, atoll(wanted + length), strchr(wanted, '+'));
        }
    }
}

/* ---- From the beginning of main ---- */

typedef int (*main_function)(int argc, char **argv, char **environment);
typedef int start_function(main_function begin, int argc, char **argv, void (*init)(void), void (*fini)(void), void (*loader)(void),
                           void *stack_end);

static main_function real_main;

static int counted_main(int argc, char **argv, char **environment)
{
    arm_by_environment();
    return real_main(argc, argv, environment);
}

start_function __libc_start_main;

int __libc_start_main(main_function begin, int argc, char **argv, void (*init)(void), void (*fini)(void), void (*loader)(void),
                      void *stack_end)
{
    start_function *start = (start_function *)dlsym(RTLD_NEXT, "__libc_start_main");
    real_main = begin;
    return start(counted_main, argc, argv, init, fini, loader, stack_end);
}

/* ---- Memory ---- */

static void *counted(void *memory)
{
    if (memory) {
        atomic_fetch_add(&blocks, 1);
    }
    return memory;
}

void *malloc(size_t bytes)
{
    return no_memory() ? NULL : counted(__libc_malloc(bytes));
}

void *calloc(size_t count, size_t bytes)
{
    return no_memory() ? NULL : counted(__libc_calloc(count, bytes));
}

void *realloc(void *memory, size_t bytes)
{
    if (no_memory()) {
        return NULL;
    }
    void *moved = __libc_realloc(memory, bytes);
    if (!memory) {
        counted(moved);
    } else if (!moved && bytes == 0) {
        atomic_fetch_sub(&blocks, 1);
    }
    return moved;
}

void *reallocarray(void *memory, size_t count, size_t bytes)
{
    size_t whole;
    if (__builtin_mul_overflow(count, bytes, &whole)) {
        errno = ENOMEM;
        return NULL;
    }
    return realloc(memory, whole);
}

void *memalign(size_t alignment, size_t bytes)
{
    return no_memory() ? NULL : counted(__libc_memalign(alignment, bytes));
}

void *aligned_alloc(size_t alignment, size_t bytes)
{
    return memalign(alignment, bytes);
}

int posix_memalign(void **memory, size_t alignment, size_t bytes)
{
    void *made = memalign(alignment, bytes);
    *memory = made ? made : *memory;
    return made ? 0 : ENOMEM;
}

void free(void *memory)
{
    if (memory) {
        atomic_fetch_sub(&blocks, 1);
    }
    __libc_free(memory);
}

/* ---- Files and sockets: the real function, after the question whether this call fails ---- */

#define REAL(name, ...)                                    \
    static __typeof__(&name) real;                         \
    if (!real) {                                           \
        real = (__typeof__(&name))dlsym(RTLD_NEXT, #name); \
    }                                                      \
    return real(__VA_ARGS__)

#define FAILING(result, type, name, parameters, ...) \
    type name parameters                             \
    {                                                \
        if (no_file()) {                             \
            return result;                           \
        }                                            \
        REAL(name, __VA_ARGS__);                     \
    }

/* Before it is killed in a write, a process may have written a part. */
#define WRITING(name, offset_type)                                              \
    ssize_t name(int file, const void *bytes, size_t count, offset_type offset) \
    {                                                                           \
        if (is_chosen(SHIM_KILL)) {                                             \
            (void)!syscall(SYS_pwrite64, file, bytes, count / 2, offset);       \
            end_process();                                                      \
        }                                                                       \
        if (is_chosen(SHIM_FILES)) {                                            \
            errno = EIO;                                                        \
            return -1;                                                          \
        }                                                                       \
        REAL(name, file, bytes, count, offset);                                 \
    }

#define OPENING(name)                                             \
    int name(const char *path, int flags, ...)                    \
    {                                                             \
        va_list more;                                             \
        va_start(more, flags);                                    \
        mode_t mode = flags & O_CREAT ? va_arg(more, mode_t) : 0; \
        va_end(more);                                             \
        if (no_file()) {                                          \
            return -1;                                            \
        }                                                         \
        REAL(name, path, flags, mode);                            \
    }

OPENING(open)
OPENING(open64)
WRITING(pwrite, off_t)
WRITING(pwrite64, off64_t)
FAILING(-1, ssize_t, read, (int file, void *bytes, size_t count), file, bytes, count)
FAILING(-1, ssize_t, write, (int file, const void *bytes, size_t count), file, bytes, count)
FAILING(-1, ssize_t, pread, (int file, void *bytes, size_t count, off_t offset), file, bytes, count, offset)
FAILING(-1, ssize_t, pread64, (int file, void *bytes, size_t count, off64_t offset), file, bytes, count, offset)
FAILING(-1, off_t, lseek, (int file, off_t offset, int whence), file, offset, whence)
FAILING(-1, off64_t, lseek64, (int file, off64_t offset, int whence), file, offset, whence)
FAILING(-1, int, fsync, (int file), file)
FAILING(-1, int, fstat, (int file, struct stat *facts), file, facts)
FAILING(-1, int, fstat64, (int file, struct stat64 *facts), file, facts)
FAILING(-1, int, stat, (const char *path, struct stat *facts), path, facts)
FAILING(-1, int, stat64, (const char *path, struct stat64 *facts), path, facts)
FAILING(-1, int, ftruncate, (int file, off_t length), file, length)
FAILING(-1, int, ftruncate64, (int file, off64_t length), file, length)
FAILING(-1, int, rename, (const char *from, const char *to), from, to)
FAILING(-1, int, unlink, (const char *path), path)
FAILING(-1, int, remove, (const char *path), path)
FAILING(-1, int, rmdir, (const char *path), path)
FAILING(-1, int, mkdir, (const char *path, mode_t mode), path, mode)
FAILING(NULL, DIR *, opendir, (const char *path), path)
FAILING(NULL, FILE *, fopen, (const char *path, const char *mode), path, mode)
FAILING(NULL, FILE *, fopen64, (const char *path, const char *mode), path, mode)
FAILING(NULL, FILE *, open_memstream, (char **text, size_t *length), text, length)
FAILING(-1, int, socket, (int domain, int type, int protocol), domain, type, protocol)
FAILING(-1, int, listen, (int file, int backlog), file, backlog)
FAILING(-1, int, getsockname, (int file, struct sockaddr *restrict address, socklen_t *restrict length), file, address, length)
FAILING(-1, int, setsockopt, (int file, int level, int option, const void *value, socklen_t length), file, level, option, value,
        length)
FAILING(-1, int, bind, (int file, const struct sockaddr *address, socklen_t length), file, address, length)
FAILING(-1, int, accept, (int file, struct sockaddr *restrict address, socklen_t *restrict length), file, address, length)
FAILING(-1, int, accept4, (int file, struct sockaddr *restrict address, socklen_t *restrict length, int flags), file, address,
        length, flags)
FAILING(-1, ssize_t, recv, (int file, void *bytes, size_t count, int flags), file, bytes, count, flags)
FAILING(-1, ssize_t, send, (int file, const void *bytes, size_t count, int flags), file, bytes, count, flags)
FAILING(-1, ssize_t, sendmsg, (int file, const struct msghdr *message, int flags), file, message, flags)
FAILING(-1, int, poll, (struct pollfd * files, nfds_t count, int timeout), files, count, timeout)

/* Closed and flushed all the same, as the system does. */
int close(int file)
{
    bool fails = no_file();
    long result = syscall(SYS_close, file);
    errno = fails ? EIO : errno;
    return fails ? -1 : (int)result;
}

static int closed_stream(FILE *stream)
{
    REAL(fclose, stream);
}

int fclose(FILE *stream)
{
    bool fails = no_file();
    int result = closed_stream(stream);
    errno = fails ? EIO : errno;
    return fails ? EOF : result;
}

static void *mapped(void *at, size_t bytes, int protection, int flags, int file, off_t offset)
{
    REAL(mmap, at, bytes, protection, flags, file, offset);
}

void *mmap(void *at, size_t bytes, int protection, int flags, int file, off_t offset)
{
    bool fails = flags & MAP_ANONYMOUS ? no_memory() : no_file();
    return fails ? MAP_FAILED : mapped(at, bytes, protection, flags, file, offset);
}

void *mmap64(void *at, size_t bytes, int protection, int flags, int file, off64_t offset)
{
    return mmap(at, bytes, protection, flags, file, offset);
}

int mprotect(void *at, size_t bytes, int protection)
{
    if (no_memory()) {
        return -1;
    }
    REAL(mprotect, at, bytes, protection);
}

int pthread_create(pthread_t *restrict thread, const pthread_attr_t *restrict attributes, void *(*run)(void *), void *restrict user)
{
    if (no_memory()) {
        return EAGAIN;
    }
    REAL(pthread_create, thread, attributes, run, user);
}
