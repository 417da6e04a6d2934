/* The command as one of several ranks of MPI (ranks.c). */
#ifndef CLI_RANKS_H
#define CLI_RANKS_H

#include <batchwise.h>

#include <stdarg.h>

/* At the very beginning and the very end; the end returns the exit code. */
void cli_ranks_open(void);
int cli_ranks_close(int code);
int cli_rank(void); /* 0: the one that prints and writes */
int cli_ranks_count(void);
void cli_ranks_join(bw_context_options *options);
/* Keeps a failure for the others; that what follows failed because another rank did. */
void cli_ranks_keep(const char *format, va_list arguments) __attribute__((format(printf, 1, 0)));
void cli_ranks_follow(void);

#endif
