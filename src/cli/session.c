/*
 * Manages the context of a command, its messages, and the signals that end it: Ctrl-C (SIGINT) and SIGTERM, as service managers and
 * batch systems send it. The signal handler touches only lock-free atomics, bw_cancel and calls that are safe in a signal
 * handler. It is installed even if SIGINT was ignored at the start, so that `kill -INT` also reaches a command in the background of
 * a script.
 */
#include "cli/live.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

static _Atomic(bw_context *) current;
static atomic_int interruptions;
static atomic_int ended_by;  /* the signal; 0: none */
static atomic_bool in_steps; /* the current step is finished before training stops */

/* A pager that has stopped reading must not keep the last checkpoint from being written, so from the first signal on, messages that
 * would have to wait are lost. The pipe or terminal is opened anew, since other programs share it and may want to wait. */
static void stop_waiting_for_readers(void)
{
    int error = errno;
    struct stat facts;
    if (fstat(STDERR_FILENO, &facts) == 0 && (S_ISFIFO(facts.st_mode) || S_ISCHR(facts.st_mode))) {
        int file = open("/proc/self/fd/2", O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
        if (file >= 0) {
            dup2(file, STDERR_FILENO);
            close(file);
        }
    }
    errno = error;
}

/* The step is finished before training stops, unless it takes longer than a second. The second signal ends the process at once:
 * files appear complete or not at all, so nothing is damaged. */
static void on_interrupt(int number)
{
    if (atomic_fetch_add(&interruptions, 1) > 0) {
        _exit(128 + number);
    }
    atomic_store(&ended_by, number);
    stop_waiting_for_readers();
    bw_context *ctx = atomic_load(&current);
    if (ctx && !atomic_load(&in_steps)) {
        bw_cancel(ctx);
    } else if (cli_ranks_count() > 1) { /* launchers kill a second after they ask */
        struct itimerval soon = {.it_value = {.tv_usec = 300000}};
        setitimer(ITIMER_REAL, &soon, NULL);
    } else {
        alarm(1);
    }
}

static void on_alarm(int number)
{
    (void)number;
    bw_context *ctx = atomic_load(&current);
    if (ctx) {
        bw_cancel(ctx);
    }
}

/* A file that reaches a limit of size is a failure to write it, as a full disk is, and not the end of the process. A message that
 * waits for its reader is not begun again after a signal. */
static void catch_signals(void)
{
    struct sigaction action = {.sa_handler = on_interrupt};
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    action.sa_handler = on_alarm;
    sigaction(SIGALRM, &action, NULL);
    action.sa_handler = SIG_IGN;
    sigaction(SIGXFSZ, &action, NULL);
}

void cli_session_stepping(bool stepping)
{
    atomic_store(&in_steps, stepping);
    if (!stepping) {
        alarm(0);
    }
}

static void on_log(void *user, bw_log_level level, const char *message)
{
    (void)user;
    cli_live_clear();
    fprintf(stderr, "batchwise: %s%s\n", level == BW_LOG_WARNING ? "warning: " : "", message);
}

static void on_warning(void *user, bw_log_level level, const char *message)
{
    if (level == BW_LOG_WARNING) {
        on_log(user, level, message);
    }
}

bw_context *cli_session_open(cli_session session)
{
    bw_context_options options = BW_CONTEXT_OPTIONS_DEFAULT;
    options.workers = session.workers;
    options.memory = session.memory;
    options.exact_kernels = session.exact_kernels;
    options.log = session.silent ? NULL : session.quiet ? on_warning : on_log;
    options.watchdog = session.watchdog;
    if (session.ranks) {
        cli_ranks_join(&options);
    }
    bw_context *ctx = bw_open(&options);
    if (!ctx) {
        cli_fail("no memory for a context");
        return NULL;
    }
    atomic_store(&current, ctx);
    catch_signals();
    if (cli_session_interrupted()) { /* Ctrl-C came during an earlier context of the same command */
        bw_cancel(ctx);
    }
    return ctx;
}

int cli_session_close(bw_context *ctx, int code)
{
    atomic_store(&current, NULL);
    bw_close(ctx);
    bool interrupted = cli_session_interrupted() && (code == CLI_FAILURE || code == CLI_INTERRUPTED);
    return interrupted ? 128 + atomic_load(&ended_by) : code;
}

bool cli_session_interrupted(void)
{
    return atomic_load(&interruptions) > 0;
}

int cli_report(bw_context *ctx, const char *command)
{
    const bw_error *error = bw_last_error(ctx);
    bool usage = error->kind == BW_ERROR_USAGE || error->kind == BW_ERROR_MODEL;
    return usage ? cli_mistake(command, "%s", error->message) : cli_fail("%s", error->message);
}

int cli_fail(const char *format, ...)
{
    va_list arguments;
    cli_live_clear();
    va_start(arguments, format);
    cli_ranks_keep(format, arguments);
    va_end(arguments);
    fputs("batchwise: ", stderr);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    return CLI_FAILURE;
}
