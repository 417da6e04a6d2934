/*
 * The command as one of several ranks that an MPI launcher started. Every rank runs the command; the first alone prints and writes
 * files. What another fails with is told by the first at the end, once: mostly all fail alike. A command that does not train runs
 * on the first rank, and the others wait for it.
 */
#include "cli/cli.h"

#include <stdarg.h>
#include <string.h>

static bw_context_options joined = BW_CONTEXT_OPTIONS_DEFAULT;
static char failure[CLI_FAILURE_TEXT]; /* the first one of this rank */
static bool followed;                  /* it came from another rank */

void cli_ranks_open(void)
{
    bw_ranks_mpi(&joined);
    if (joined.rank > 0) { /* the streams only: what MPI itself or a crash has to say is seen */
        FILE *results = fopen("/dev/null", "w"), *messages = fopen("/dev/null", "w");
        stdout = results ? results : stdout;
        stderr = messages ? messages : stderr;
    }
}

int cli_rank(void)
{
    return joined.rank;
}

int cli_ranks_count(void)
{
    return bw_ranks_count(joined.ranks);
}

void cli_ranks_join(bw_context_options *options)
{
    options->ranks = joined.ranks;
    options->rank = joined.rank;
    options->workers = options->workers > 0 ? options->workers : joined.workers;
}

void cli_ranks_keep(const char *format, va_list arguments)
{
    if (joined.ranks && !failure[0]) {
        vsnprintf(failure, sizeof failure, format, arguments);
    }
}

void cli_ranks_follow(void)
{
    followed = true;
}

int cli_ranks_close(int code)
{
    const char *reason = NULL;
    bool own = (code == CLI_FAILURE || code == CLI_USAGE) && !followed; /* an interruption is no failure */
    int first = bw_ranks_end(joined.ranks, own ? failure[0] ? failure : "it failed" : NULL, &reason);
    if (first > 0 && joined.rank == 0 && !own) {
        cli_fail("rank %d: %s", first, reason);
    }
    code = first >= 0 && code == CLI_SUCCESS ? CLI_FAILURE : code;
    fflush(stderr);
    bw_ranks_close(joined.ranks);
    return code;
}
