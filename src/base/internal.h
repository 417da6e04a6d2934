/* What the files of base share: the system's tables, calls of the I/O table, and the end of the workers. */
#ifndef BWI_BASE_INTERNAL_H
#define BWI_BASE_INTERNAL_H

#include "base/base.h"

/* Whether a block of that many bytes comes zeroed from the system's allocator. */
bool bwi_system_zeroes(size_t bytes);
/* Files of the system, for a context that was given no table. */
extern const bw_io bwi_system_io;

/* Calls of the I/O table that survive signals; bwi_io_write writes all of the data. Negative: an error number (calls.c). */
int bwi_io_open(bw_context *ctx, const char *path, int flags, int mode);
int bwi_io_sync(bw_context *ctx, int file);
int bwi_io_close(bw_context *ctx, int file);
int bwi_io_write(bw_context *ctx, int file, const void *data, size_t size, int64_t at);

/* The file that is to be replaced: `path`, or what it is a symbolic link to (at most `size` bytes), and its permissions; *mode is
 * -1 if there is no such file yet. */
void bwi_system_find(const char *path, char *target, size_t size, int *mode);
int bwi_system_set_mode(int file, int mode);

/* Marks a temporary file as one that is being written, until it is closed or the process ends. */
void bwi_system_hold(int file);
/* Removes the temporary files beside `path` that nobody writes any more, as a process leaves them that is killed. */
void bwi_system_sweep(const char *path);

/* Puts zeros in the place of a mapped page; may be called by a signal handler. */
bool bwi_system_blank(void *page, size_t bytes);
/* Mapped files that become shorter (shrink.c): from the mapping on, and before its end. */
void bwi_shrink_watch(bw_context *ctx, const bwi_bytes *bytes, const char *path);
void bwi_shrink_forget(const bwi_bytes *bytes);

void bwi_pool_close(bw_context *ctx); /* ends the threads; without effect if there are none */

#endif
