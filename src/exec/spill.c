/*
 * Values of whole-batch ops for which the budget leaves no memory lie in a file, tile after tile. Its name is removed as soon as it
 * is open, so that nothing is left behind whatever happens; each worker reads and writes the places of its own tiles.
 */
#include "exec/internal.h"

#include <errno.h>
#include <fcntl.h>

enum { NAMES = 100 };

static bw_status fail(const bwi_exec *exec, const char *what, int code)
{
    return bwi_fail(exec->ctx, bwi_errno_status(code), "spill: %s in %s: %s", what, exec->plan->spill, bwi_errno_text(code));
}

static bw_status check_folder(const bwi_exec *exec)
{
    bwi_disk disk = bwi_disk_of(exec->plan->spill);
    if (disk.error) {
        return fail(exec, "cannot look at the file system", disk.error);
    }
    if (disk.in_memory) {
        return bwi_fail(exec->ctx, BW_INVALID_ARGUMENT, "spill: %s is a file system in memory", exec->plan->spill);
    }
    if (disk.free < exec->plan->spill_bytes) {
        char need[32], have[32];
        return bwi_fail(exec->ctx, BW_RESOURCE_EXHAUSTED, "spill: %s has %s left, the plan needs %s", exec->plan->spill,
                        bwi_format_bytes(have, disk.free), bwi_format_bytes(need, exec->plan->spill_bytes));
    }
    return BW_OK;
}

bw_status bwi_exec_open_spill(bwi_exec *exec)
{
    const bw_io *io = &exec->ctx->io;
    char path[4096];
    if (!exec->plan->spill_bytes) {
        return BW_OK;
    }
    bw_status status = check_folder(exec);
    int file = -EEXIST;
    for (int k = 0; status == BW_OK && file == -EEXIST && k < NAMES; k++) {
        uint64_t key = bwi_hash((uint64_t)k, &exec, sizeof exec) ^ (uint64_t)(bwi_now() * 1e9);
        int length = snprintf(path, sizeof path, "%s/batchwise-%016llx.spill", exec->plan->spill, (unsigned long long)key);
        file = length < (int)sizeof path ? io->open(io->user, path, O_RDWR | O_CREAT | O_EXCL, 0600) : -ENAMETOOLONG;
    }
    if (status != BW_OK || file < 0) {
        return status != BW_OK ? status : fail(exec, "cannot make a file", -file);
    }
    exec->spill = file;
    int removed = io->remove(io->user, path);
    return removed < 0 ? fail(exec, "cannot unlink the file", -removed) : BW_OK;
}

void bwi_exec_close_spill(bwi_exec *exec)
{
    if (exec->spill >= 0) {
        (void)exec->ctx->io.close(exec->ctx->io.user, exec->spill);
        exec->spill = -1;
    }
}

/* Writes or reads all bytes, in as many calls as the system needs. */
static bw_status transfer(const bwi_exec *exec, bool store, unsigned char *next, size_t bytes, size_t offset, char *error)
{
    const bw_io *io = &exec->ctx->io;
    while (bytes > 0) {
        int64_t done = store ? io->write(io->user, exec->spill, next, bytes, (int64_t)offset)
                             : io->read(io->user, exec->spill, next, bytes, (int64_t)offset);
        if (done == -EINTR) {
            continue;
        }
        if (done <= 0) {
            int code = done < 0 ? (int)-done : store ? ENOSPC : EIO;
            snprintf(error, BWI_ERROR_TEXT, "spill: cannot %s in %.100s: %s", store ? "write" : "read", exec->plan->spill,
                     bwi_errno_text(code));
            return bwi_errno_status(code);
        }
        next += done;
        bytes -= (size_t)done;
        offset += (size_t)done;
    }
    return BW_OK;
}

bw_status bwi_exec_spill(const bwi_exec *exec, bool store, void *value, size_t bytes, size_t offset, char *error)
{
    void *host = bwi_exec_memory(exec)->open(value, bytes);
    bw_status status = transfer(exec, store, host, bytes, offset, error);
    bwi_exec_memory(exec)->close(value, bytes);
    return status;
}
