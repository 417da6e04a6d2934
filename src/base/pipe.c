/*
 * Standard input, which may be a pipe that has no end or stops for a while: it is never waited for in one long call, so that
 * waiting can be cancelled, and a stall is logged.
 */
#include "base/base.h"

#include <errno.h>
#include <fcntl.h>
#include <time.h>

#define STALL_SECONDS 60
#define SHORTEST_WAIT 50000 /* nanoseconds; each is twice the one before */
#define LONGEST_WAIT 10000000

static bw_status fail_read(bw_context *ctx, int64_t code)
{
    return bwi_fail(ctx, bwi_errno_status((int)-code), "cannot read standard input: %s", bwi_errno_text((int)-code));
}

bw_status bwi_pipe_open(bw_context *ctx, bwi_pipe *pipe)
{
    *pipe = (bwi_pipe){.file = ctx->io.open(ctx->io.user, "/dev/stdin", O_RDONLY | O_NONBLOCK, 0)};
    pipe->open = pipe->file >= 0;
    return pipe->open ? BW_OK : fail_read(ctx, pipe->file);
}

void bwi_pipe_close(bw_context *ctx, bwi_pipe *pipe)
{
    if (pipe->open) {
        (void)ctx->io.close(ctx->io.user, pipe->file);
    }
    pipe->open = false;
}

static void wait(bw_context *ctx, const bwi_pipe *pipe, double since, long *nanoseconds, bool *logged)
{
    nanosleep(&(struct timespec){.tv_nsec = *nanoseconds}, NULL);
    *nanoseconds = *nanoseconds < LONGEST_WAIT ? 2 * *nanoseconds : LONGEST_WAIT;
    if (!*logged && bwi_now() - since > STALL_SECONDS) {
        *logged = true;
        bwi_log(ctx, BW_LOG_WARNING, "standard input: nothing has come for %d seconds, after %lld bytes; waiting", STALL_SECONDS,
                (long long)pipe->read);
    }
}

bw_status bwi_pipe_read(bw_context *ctx, bwi_pipe *pipe, void *to, size_t size, size_t *got)
{
    double since = bwi_now();
    long nanoseconds = SHORTEST_WAIT;
    bool logged = false;
    *got = 0;
    for (;;) {
        int64_t count = ctx->io.read(ctx->io.user, pipe->file, to, size, pipe->read);
        if (bwi_cancelled(ctx)) {
            return bwi_cancel_report(ctx);
        }
        if (count == -EAGAIN) {
            wait(ctx, pipe, since, &nanoseconds, &logged);
        } else if (count < 0 && count != -EINTR) {
            return fail_read(ctx, count);
        }
        if (count < 0) {
            continue;
        }
        *got = (size_t)count;
        pipe->read += count;
        return BW_OK;
    }
}
