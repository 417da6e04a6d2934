/*
 * Mapped files that another process makes shorter, or whose disk fails: reading what is gone raises SIGBUS, which would end the
 * process, and with it a run of days. While files are mapped, and only if nobody else handles that signal, it has a handler here: a
 * page of such a file that is gone is replaced by one of zeros, and counted in the context, so that whoever has read it fails with
 * a status. Any other SIGBUS ends the process as before. The handler goes with the last mapped file, or when the program installs
 * its own, which then stays.
 *
 * A handler may take no lock, so that files are entries of an array: one is complete before its address is set, and its address is
 * cleared before anything else changes.
 */
#include "base/internal.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { MOST_FILES = 512, NAME_BYTES = 232 };

typedef struct guarded {
    atomic_uintptr_t data; /* 0: the entry is free */
    atomic_size_t size;
    bw_context *ctx;
    atomic_bool shrunk;
    char name[NAME_BYTES]; /* the end of its path */
} guarded;

const char bwi_shrunk_text[] = "the file has become shorter, or its disk has failed, since it was opened";

/* What follows changes within bwi_moment_begin and bwi_moment_end. */
static guarded files[MOST_FILES];
static int file_count;
static bool installed;
static struct sigaction before; /* what was there, if ours is installed */

static guarded *find(uintptr_t address)
{
    for (int i = 0; i < MOST_FILES; i++) {
        uintptr_t data = atomic_load(&files[i].data);
        if (data && address >= data && address - data < atomic_load(&files[i].size)) {
            return &files[i];
        }
    }
    return NULL;
}

/* A signal that somebody sent has no address. What is none of ours comes again, now without a handler. */
static void on_bus_error(int number, siginfo_t *info, void *machine)
{
    int error = errno;
    (void)machine;
    uintptr_t address = (uintptr_t)info->si_addr;
    guarded *file = info->si_code > 0 ? find(address) : NULL;
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    void *start = (unsigned char *)info->si_addr - address % page; /* of no meaning without a file */
    if (file && bwi_system_blank(start, page)) {
        atomic_store(&file->shrunk, true);
        atomic_fetch_add(&file->ctx->shrunk, 1);
    } else {
        signal(number, SIG_DFL);
        if (info->si_code <= 0) {
            raise(number);
        }
    }
    errno = error;
}

static void install(void)
{
    struct sigaction ours = {.sa_sigaction = on_bus_error, .sa_flags = SA_SIGINFO};
    sigemptyset(&ours.sa_mask);
    installed = sigaction(SIGBUS, NULL, &before) == 0 && !(before.sa_flags & SA_SIGINFO) && before.sa_handler == SIG_DFL &&
                sigaction(SIGBUS, &ours, NULL) == 0;
}

static void uninstall(void)
{
    struct sigaction now;
    if (installed && sigaction(SIGBUS, NULL, &now) == 0 && (now.sa_flags & SA_SIGINFO) && now.sa_sigaction == on_bus_error) {
        sigaction(SIGBUS, &before, NULL); /* with its flags, as the program set them */
    }
    installed = false;
}

void bwi_shrink_watch(bw_context *ctx, const bwi_bytes *bytes, const char *path)
{
    size_t length = strlen(path);
    bwi_moment_begin();
    for (int i = 0; i < MOST_FILES && file_count < MOST_FILES; i++) {
        if (!atomic_load(&files[i].data)) {
            files[i].ctx = ctx;
            snprintf(files[i].name, NAME_BYTES, "%s", path + (length < NAME_BYTES ? 0 : length - NAME_BYTES + 1));
            atomic_store(&files[i].shrunk, false);
            atomic_store(&files[i].size, bytes->size);
            atomic_store(&files[i].data, (uintptr_t)bytes->data);
            if (file_count++ == 0) {
                install();
            }
            break;
        }
    }
    bwi_moment_end();
}

void bwi_shrink_forget(const bwi_bytes *bytes)
{
    bwi_moment_begin();
    guarded *file = find((uintptr_t)bytes->data);
    if (file) {
        atomic_store(&file->data, 0);
        if (--file_count == 0) {
            uninstall();
        }
    }
    bwi_moment_end();
}

bool bwi_file_has_shrunk(const bwi_bytes *bytes)
{
    const guarded *file = bytes->size ? find((uintptr_t)bytes->data) : NULL;
    return file && atomic_load(&file->shrunk);
}

/* If the file is not known, one that lost a page is named: of several that are gone one is enough to look for the reason. */
bw_status bwi_shrink_report(bw_context *ctx, const char *path, bw_status status)
{
    unsigned shrunk = ctx ? atomic_load_explicit(&ctx->shrunk, memory_order_relaxed) : 0;
    if (!ctx || shrunk == ctx->shrunk_told) {
        return status;
    }
    char name[NAME_BYTES] = "a file";
    ctx->shrunk_told = shrunk;
    bwi_moment_begin();
    for (int i = 0; i < MOST_FILES; i++) {
        if (atomic_load(&files[i].data) && files[i].ctx == ctx && atomic_load(&files[i].shrunk)) {
            memcpy(name, files[i].name, NAME_BYTES);
        }
    }
    bwi_moment_end();
    ctx->pending = false; /* whatever else failed did so for this reason */
    return bwi_fail_file(ctx, BW_DATA_LOSS, path ? path : name, "%s", bwi_shrunk_text);
}
