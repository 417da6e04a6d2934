/*
 * Failure: status, message and location, and the rule that the first failure is kept until somebody has been told of it. They are
 * set together, so that they always belong to one failure. A message is one line.
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
    case BW_UNAVAILABLE:
        return "UNAVAILABLE";
    case BW_DATA_LOSS:
        return "DATA_LOSS";
    }
    return "UNKNOWN";
}

const char *bw_message(bw_context *ctx)
{
    bwi_pending(ctx);
    return ctx ? ctx->message : "";
}

const bw_error *bw_last_error(bw_context *ctx)
{
    static const bw_error none = {.message = "", .line = -1, .column = -1, .offset = -1, .sample = -1};
    bwi_pending(ctx);
    return ctx && ctx->error.status != BW_OK ? &ctx->error : &none;
}

/* Makes the text one line, since names from files may hold control characters. A text that is cut ends in "...", and not within
 * a character. */
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

/* ---- Locations ---- */

static bwi_location nowhere(void)
{
    return (bwi_location){.line = -1, .column = -1, .offset = -1, .sample = -1};
}

bwi_location bwi_in_file(const char *path)
{
    bwi_location location = nowhere();
    location.path = path;
    return location;
}

bwi_location bwi_in_layer(const char *layer)
{
    bwi_location location = nowhere();
    location.layer = layer;
    return location;
}

bwi_location bwi_in_argument(const char *argument)
{
    bwi_location location = nowhere();
    location.argument = argument;
    return location;
}

bwi_location bwi_at_sample(int64_t sample)
{
    bwi_location location = nowhere();
    location.sample = sample;
    return location;
}

/* Takes what `inner` does not know from `outer`. A line or an offset counts only within its own file or text. */
static bwi_location join(bwi_location inner, bwi_location outer)
{
    bool elsewhere = inner.path || inner.argument;
    return (bwi_location){
        .path = inner.path ? inner.path : outer.path,
        .line = inner.line >= 0 || elsewhere ? inner.line : outer.line,
        .column = inner.column >= 0 || elsewhere ? inner.column : outer.column,
        .argument = inner.argument ? inner.argument : outer.argument,
        .offset = inner.offset >= 0 || elsewhere ? inner.offset : outer.offset,
        .layer = inner.layer ? inner.layer : outer.layer,
        .sample = inner.sample >= 0 ? inner.sample : outer.sample,
    };
}

/* What a failure concerns follows from its status where that says enough, and else from the narrowest location that is known. */
static bw_error_kind kind_of(bw_status status, const bwi_location *l)
{
    switch (status) {
    case BW_OK:
        return BW_ERROR_NONE;
    case BW_CANCELLED:
        return BW_ERROR_CANCELLED;
    case BW_RESOURCE_EXHAUSTED:
    case BW_UNAVAILABLE:
        return BW_ERROR_RESOURCES;
    case BW_INTERNAL:
        return BW_ERROR_INTERNAL;
    case BW_OUT_OF_RANGE:
        return BW_ERROR_DATA;
    default:
        return l->argument                      ? BW_ERROR_USAGE
               : l->sample >= 0 || l->line >= 0 ? BW_ERROR_DATA
               : l->path                        ? BW_ERROR_FILE
               : l->layer                       ? BW_ERROR_MODEL
               : status == BW_DATA_LOSS         ? BW_ERROR_DATA
                                                : BW_ERROR_USAGE;
    }
}

/* Copies a text into the context and returns it; NULL if there is nothing to keep, or if it would have to be cut. */
static const char *keep(char *to, size_t capacity, const char *text)
{
    size_t length = text ? strlen(text) : capacity;
    return length < capacity ? memmove(to, text, length + 1) : NULL;
}

/* Keeps everything but the message, which is there already. */
static void keep_error(bw_context *ctx, bw_status status, bwi_location location)
{
    ctx->error = (bw_error){
        .status = status,
        .kind = kind_of(status, &location),
        .message = ctx->message,
        .path = keep(ctx->path, sizeof ctx->path, location.path),
        .line = location.line,
        .column = location.column,
        .argument = keep(ctx->argument, sizeof ctx->argument, location.argument),
        .offset = location.offset,
        .layer = keep(ctx->layer, sizeof ctx->layer, location.layer),
        .sample = location.sample,
    };
}

/* ---- Failing ---- */

/* The text is formatted into a buffer first, because the context's message may be among the arguments. */
static void __attribute__((format(printf, 5, 0)))
set_error(bw_context *ctx, bw_status status, bwi_location location, const char *prefix, const char *format, va_list arguments)
{
    if (!ctx || ctx->pending) {
        return;
    }
    char line[sizeof ctx->message];
    int length = snprintf(line, sizeof line, "%s", prefix);
    size_t used = (size_t)length < sizeof line ? (size_t)length : sizeof line - 1;
    int more = bwi_format(line + used, sizeof line - used, format, arguments);
    make_line(line, sizeof line, more < 0 ? more : length + more);
    memcpy(ctx->message, line, strlen(line) + 1);
    keep_error(ctx, status, location);
}

bw_status bwi_fail(bw_context *ctx, bw_status status, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    set_error(ctx, status, nowhere(), "", format, arguments);
    va_end(arguments);
    return status;
}

void *bwi_fail_build(bw_context *ctx, bw_status status, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    set_error(ctx, status, nowhere(), "", format, arguments);
    va_end(arguments);
    if (ctx) {
        ctx->pending = true;
    }
    return NULL;
}

bw_status bwi_fail_at(bw_context *ctx, bw_status status, bwi_location location, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    set_error(ctx, status, location, "", format, arguments);
    va_end(arguments);
    return status;
}

bw_status bwi_fail_file(bw_context *ctx, bw_status status, const char *path, const char *format, ...)
{
    char prefix[sizeof ctx->message];
    va_list arguments;
    snprintf(prefix, sizeof prefix, "%s: ", path);
    va_start(arguments, format);
    set_error(ctx, status, bwi_in_file(path), prefix, format, arguments);
    va_end(arguments);
    return status;
}

bw_status bwi_fail_line(bw_context *ctx, bw_status status, const char *path, int64_t line, int column, const char *format, ...)
{
    char prefix[sizeof ctx->message];
    bwi_location location = bwi_in_file(path);
    va_list arguments;
    location.line = line;
    location.column = column;
    snprintf(prefix, sizeof prefix, "%s: line %lld: ", path, (long long)line);
    va_start(arguments, format);
    set_error(ctx, status, location, prefix, format, arguments);
    va_end(arguments);
    return status;
}

bw_status bwi_fail_text(bw_context *ctx, bw_status status, const char *what, const char *argument, int column, const char *format,
                        ...)
{
    char prefix[sizeof ctx->message];
    bwi_location location = bwi_in_argument(argument);
    va_list arguments;
    location.offset = argument ? column - 1 : -1;
    snprintf(prefix, sizeof prefix, "%s: column %d: ", what, column);
    va_start(arguments, format);
    set_error(ctx, status, location, prefix, format, arguments);
    va_end(arguments);
    return status;
}

/* The location of the present failure, completed by `outer`. */
static bwi_location complete(const bw_error *e, bwi_location outer)
{
    bwi_location inner = {.path = e->path,
                          .line = e->line,
                          .column = e->column,
                          .argument = e->argument,
                          .offset = e->offset,
                          .layer = e->layer,
                          .sample = e->sample};
    return e->status == BW_OK ? outer : join(inner, outer);
}

bw_status bwi_fail_again(bw_context *ctx, bw_status status, bwi_location location, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    set_error(ctx, status, ctx ? complete(&ctx->error, location) : location, "", format, arguments);
    va_end(arguments);
    return status;
}

void bwi_locate(bw_context *ctx, bwi_location location)
{
    if (ctx && ctx->error.status != BW_OK) {
        keep_error(ctx, ctx->error.status, complete(&ctx->error, location));
    }
}

void bwi_locate_file(bw_context *ctx, const char *path)
{
    if (ctx && ctx->error.status != BW_OK) {
        bwi_location location = complete(&ctx->error, bwi_in_file(path));
        location.path = path;
        keep_error(ctx, ctx->error.status, location);
    }
}

void *bwi_pass_on(bw_context *ctx)
{
    if (ctx && ctx->error.status != BW_OK) {
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
    return ctx->error.status;
}

bw_status bwi_call_begin(bw_context *ctx)
{
    return bwi_pending(ctx);
}

bw_status bwi_call_end(bw_context *ctx, bw_status status)
{
    status = bwi_shrink_report(ctx, NULL, status);
    if (status == BW_OK) {
        return bwi_pending(ctx);
    }
    if (ctx && status != BW_CANCELLED) {
        ctx->pending = true;
    }
    return status;
}

/* Chosen by what a caller can do about it: look for the file, free something, distrust the disk, or change the path. */
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
