/*
 * Failure: status, message, and the rule that the first unreported failure of a builder is kept until a status
 * reports it. The status and the message of a context always belong together. A message is one line.
 */
#include "base/base.h"

#include <errno.h>
#include <string.h>

#define TEXT(x) #x
#define NUMBER(x) TEXT(x)

const char *bw_version(void)
{
    return NUMBER(BW_VERSION_MAJOR) "." NUMBER(BW_VERSION_MINOR) "." NUMBER(BW_VERSION_PATCH);
}

const char *bw_status_name(bw_status status)
{
    switch (status) {
    case BW_OK:
        return "OK";
    case BW_CANCELLED:
        return "CANCELLED";
    case BW_INVALID_ARGUMENT:
        return "INVALID_ARGUMENT";
    case BW_NOT_FOUND:
        return "NOT_FOUND";
    case BW_RESOURCE_EXHAUSTED:
        return "RESOURCE_EXHAUSTED";
    case BW_OUT_OF_RANGE:
        return "OUT_OF_RANGE";
    case BW_UNIMPLEMENTED:
        return "UNIMPLEMENTED";
    case BW_INTERNAL:
        return "INTERNAL";
    case BW_DATA_LOSS:
        return "DATA_LOSS";
    }
    return "UNKNOWN";
}

const char *bw_message(const bw_context *ctx)
{
    return ctx ? ctx->message : "";
}

/* One line: names out of files may hold control characters. A cut text ends in "..." and not within a character. */
static void make_line(char *line, size_t capacity, int length)
{
    if (length < 0) {
        line[0] = 0;
    } else if ((size_t)length >= capacity) {
        size_t end = capacity - 4;
        while (end > 0 && ((unsigned char)line[end] & 0xC0) == 0x80) {
            end--;
        }
        memcpy(line + end, "...", 4);
    }
    for (char *c = line; *c; c++) {
        if ((unsigned char)*c < 0x20 || *c == 0x7F) {
            *c = ' ';
        }
    }
}

/* The text is made apart first: the context's own message may be among the arguments. */
static void __attribute__((format(printf, 3, 0)))
set_message(bw_context *ctx, bw_status status, const char *format, va_list arguments)
{
    if (!ctx || ctx->pending) {
        return;
    }
    char line[sizeof ctx->message];
    make_line(line, sizeof line, bwi_format(line, sizeof line, format, arguments));
    memcpy(ctx->message, line, strlen(line) + 1);
    ctx->status = status;
}

bw_status bwi_fail(bw_context *ctx, bw_status status, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    set_message(ctx, status, format, arguments);
    va_end(arguments);
    return status;
}

void *bwi_fail_build(bw_context *ctx, bw_status status, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    set_message(ctx, status, format, arguments);
    va_end(arguments);
    if (ctx) {
        ctx->pending = true;
    }
    return NULL;
}

void *bwi_pass_on(bw_context *ctx)
{
    if (ctx && ctx->status != BW_OK) {
        ctx->pending = true;
    }
    return NULL;
}

bw_status bwi_pending(bw_context *ctx)
{
    if (!ctx || !ctx->pending) {
        return BW_OK;
    }
    ctx->pending = false;
    return ctx->status;
}

bw_status bwi_errno_status(int code)
{
    switch (code) {
    case ENOENT:
    case ENOTDIR:
        return BW_NOT_FOUND;
    case ENOMEM:
    case ENOSPC:
    case EDQUOT:
    case EMFILE:
    case ENFILE:
    case EAGAIN:
    case EFBIG:
        return BW_RESOURCE_EXHAUSTED;
    case EIO:
        return BW_DATA_LOSS;
    case EACCES:
    case EPERM:
    case EISDIR:
    case EINVAL:
    case ENAMETOOLONG:
    case ELOOP:
    case EROFS:
    case EEXIST:
    case ENODEV:
    case ENXIO:
    case ENOTSUP:
        return BW_INVALID_ARGUMENT;
    default:
        return BW_INTERNAL;
    }
}

void bwi_log(bw_context *ctx, bw_log_level level, const char *format, ...)
{
    if (!ctx || !ctx->log) {
        return;
    }
    char line[sizeof ctx->message];
    va_list arguments;
    va_start(arguments, format);
    make_line(line, sizeof line, bwi_format(line, sizeof line, format, arguments));
    va_end(arguments);
    ctx->log(ctx->log_user, level, line);
}
