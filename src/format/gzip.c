/*
 * gzip: unpacks mapped bytes, or those of a pipe, block by block; the only file that includes zlib. Files of several members (as
 * bgzip and concatenation make them) are one stream. zlib's own memory comes from the context.
 */
#include "format/internal.h"

#define ZLIB_CONST
#include <string.h>
#include <zlib.h>

#define GZIP_WINDOW (15 + 16)   /* zlib's code for gzip headers only */
#define PIPED ((size_t)1 << 16) /* packed bytes that are read at once */
#define LARGEST_PART ((size_t)1 << 30)

struct bwi_gzip {
    bw_context *ctx;
    const char *path;
    const unsigned char *next, *end;
    z_stream stream;
    bool open, between, ended; /* between: a member has ended */
    bwi_pipe *pipe;            /* where more comes from, or NULL */
    unsigned char *buffer;     /* of it */
    bool drained;
    uint64_t packed; /* bytes so far */
    bool any;        /* it may expand by any factor */
};

uint32_t bwi_crc32(uint32_t sum, const void *bytes, size_t size)
{
    return (uint32_t)crc32_z(sum, bytes, size);
}

static voidpf take(voidpf user, uInt count, uInt size)
{
    return bwi_allocate(user, count, size);
}

static voidpf try_take(voidpf user, uInt count, uInt size)
{
    return bwi_try_allocate(user, count, size);
}

static void give(voidpf user, voidpf memory)
{
    bwi_release(user, memory);
}

size_t bwi_inflate(bw_context *ctx, const void *from, size_t size, void *to, size_t capacity)
{
    z_stream stream = {.zalloc = try_take, .zfree = give, .opaque = ctx, .next_in = from, .next_out = to};
    if (size > UINT32_MAX || capacity > UINT32_MAX) {
        return 0;
    }
    if (inflateInit(&stream) != Z_OK) {
        return SIZE_MAX;
    }
    stream.avail_in = (uInt)size;
    stream.avail_out = (uInt)capacity;
    int result = inflate(&stream, Z_FINISH);
    size_t got = capacity - stream.avail_out;
    inflateEnd(&stream);
    return result == Z_STREAM_END ? got : result == Z_MEM_ERROR ? SIZE_MAX : 0;
}

bool bwi_gzip_is(const bwi_bytes *file)
{
    return file->size >= 2 && file->data[0] == 0x1f && file->data[1] == 0x8b;
}

static bw_status open_gzip(bw_context *ctx, bwi_gzip **gzip, const unsigned char *data, size_t size, bwi_pipe *pipe, bool any,
                           const char *path)
{
    *gzip = NULL;
    bwi_gzip *made = bwi_allocate(ctx, 1, sizeof *made);
    if (!made) {
        return BW_RESOURCE_EXHAUSTED;
    }
    *made = (bwi_gzip){.ctx = ctx, .path = path, .next = data, .end = data + size, .pipe = pipe, .any = any};
    made->stream.zalloc = take;
    made->stream.zfree = give;
    made->stream.opaque = ctx;
    made->open = inflateInit2(&made->stream, GZIP_WINDOW) == Z_OK;
    made->buffer = made->open && pipe ? bwi_allocate(ctx, PIPED, 1) : NULL;
    if (!made->open || (pipe && !made->buffer)) {
        bwi_gzip_close(made);
        return bwi_fail_file(ctx, BW_RESOURCE_EXHAUSTED, path, "no memory to unpack it");
    }
    *gzip = made;
    return BW_OK;
}

bw_status bwi_gzip_open(bw_context *ctx, bwi_gzip **gzip, const bwi_bytes *file, bool any, const char *path)
{
    return open_gzip(ctx, gzip, file->data, file->size, NULL, any, path);
}

void bwi_gzip_close(bwi_gzip *gzip)
{
    if (!gzip) {
        return;
    }
    if (gzip->open) {
        inflateEnd(&gzip->stream);
    }
    bwi_release(gzip->ctx, gzip->buffer);
    bwi_release(gzip->ctx, gzip);
}

static bw_status fail_damaged(bwi_gzip *gzip, const char *what)
{
    return bwi_fail_file(gzip->ctx, BW_DATA_LOSS, gzip->path, "the gzip file is damaged after %llu unpacked bytes: %s",
                         (unsigned long long)gzip->stream.total_out, what);
}

/* Reads more from a pipe, once everything that has arrived is unpacked. */
static bw_status refill(bwi_gzip *gzip)
{
    size_t got = 0;
    if (!gzip->pipe || gzip->drained || gzip->next < gzip->end) {
        return BW_OK;
    }
    bw_status status = bwi_pipe_read(gzip->ctx, gzip->pipe, gzip->buffer, PIPED, &got);
    gzip->next = gzip->buffer;
    gzip->end = gzip->buffer + got;
    gzip->drained = status == BW_OK && got == 0;
    return status;
}

/* After a member: zeros are padding, anything else must be another member. */
static bw_status begin_member(bwi_gzip *gzip)
{
    while (gzip->next < gzip->end && *gzip->next == 0) {
        gzip->next++;
    }
    if (gzip->next == gzip->end) {
        gzip->ended = !gzip->pipe || gzip->drained;
        return BW_OK;
    }
    uLong total = gzip->stream.total_out;
    if (inflateReset(&gzip->stream) != Z_OK) {
        return fail_damaged(gzip, "another member cannot begin");
    }
    gzip->stream.total_out = total;
    gzip->between = false;
    return BW_OK;
}

/* zlib counts in 32 bits, so large parts are cut. Data that ends within a member is damage, unless a pipe may still bring more. */
static bw_status unpack(bwi_gzip *gzip, unsigned char *to, size_t size, size_t *got)
{
    z_stream *stream = &gzip->stream;
    size_t left = (size_t)(gzip->end - gzip->next);
    stream->next_in = gzip->next;
    stream->avail_in = (uInt)(left < LARGEST_PART ? left : LARGEST_PART);
    stream->next_out = to;
    stream->avail_out = (uInt)(size < LARGEST_PART ? size : LARGEST_PART);
    uInt before = stream->avail_out;
    int result = inflate(stream, Z_NO_FLUSH);
    gzip->packed += (uint64_t)(stream->next_in - gzip->next);
    gzip->next = stream->next_in;
    *got = before - stream->avail_out;
    gzip->between = result == Z_STREAM_END;
    if (result == Z_MEM_ERROR) {
        return bwi_fail_file(gzip->ctx, BW_RESOURCE_EXHAUSTED, gzip->path, "no memory to unpack it");
    }
    if (result != Z_STREAM_END && result != Z_OK && result != Z_BUF_ERROR) {
        return fail_damaged(gzip, stream->msg ? stream->msg : "no deflated data");
    }
    if (result != Z_STREAM_END && gzip->next == gzip->end && *got == 0 && (!gzip->pipe || gzip->drained)) {
        return fail_damaged(gzip, "it ends early");
    }
    return gzip->any ? BW_OK : bwi_expansion_check(gzip->ctx, gzip->path, gzip->packed, stream->total_out);
}

bw_status bwi_gzip_read(bwi_gzip *gzip, void *to, size_t size, size_t *got)
{
    bw_status status = BW_OK;
    *got = 0;
    while (status == BW_OK && *got < size && !gzip->ended) {
        size_t more = 0;
        if (gzip->pipe && *got > 0 && gzip->next == gzip->end) {
            break; /* what has arrived is handed out at once */
        }
        status = refill(gzip);
        if (status == BW_OK && gzip->between) {
            status = begin_member(gzip);
        } else if (status == BW_OK) {
            status = unpack(gzip, (unsigned char *)to + *got, size - *got, &more);
        }
        *got += more;
    }
    return status;
}

/* ---- Standard input ---- */

bw_status bwi_input_open(bw_context *ctx, bwi_input *input, bool any)
{
    *input = (bwi_input){.any = any};
    return bwi_pipe_open(ctx, &input->pipe);
}

void bwi_input_close(bw_context *ctx, bwi_input *input)
{
    bwi_gzip_close(input->gzip);
    bwi_pipe_close(ctx, &input->pipe);
    input->gzip = NULL;
}

/* Reads the first two bytes, or fewer if there are no more. */
static bw_status begin_input(bw_context *ctx, bwi_input *input)
{
    bw_status status = BW_OK;
    size_t more = 1;
    while (status == BW_OK && more > 0 && input->ahead < sizeof input->first) {
        status = bwi_pipe_read(ctx, &input->pipe, input->first + input->ahead, sizeof input->first - input->ahead, &more);
        input->ahead += status == BW_OK ? more : 0;
    }
    if (status != BW_OK) {
        return status;
    }
    input->begun = true;
    bwi_bytes first = {.data = input->first, .size = input->ahead};
    if (!bwi_gzip_is(&first)) {
        return BW_OK;
    }
    input->ahead = 0;
    return open_gzip(ctx, &input->gzip, input->first, sizeof input->first, &input->pipe, input->any, "standard input");
}

bw_status bwi_input_read(bw_context *ctx, bwi_input *input, void *to, size_t size, size_t *got)
{
    bw_status status = input->begun ? BW_OK : begin_input(ctx, input);
    *got = 0;
    if (status != BW_OK) {
        return status;
    }
    if (input->gzip) {
        return bwi_gzip_read(input->gzip, to, size, got);
    }
    if (input->ahead == 0) {
        return bwi_pipe_read(ctx, &input->pipe, to, size, got);
    }
    *got = input->ahead < size ? input->ahead : size;
    memcpy(to, input->first, *got);
    memmove(input->first, input->first + *got, input->ahead - *got);
    input->ahead -= *got;
    return BW_OK;
}

/* ---- Packing ---- */

/* All at once, into as much memory as it may take at worst. The header has no time. */
bw_status bwi_gzip_pack(bw_context *ctx, const void *data, size_t size, void **packed, size_t *packed_size)
{
    z_stream stream = {.zalloc = try_take, .zfree = give, .opaque = ctx};
    *packed = NULL;
    if (size > LARGEST_PART) {
        return bwi_fail(ctx, BW_UNIMPLEMENTED, "gzip: %zu bytes are more than are packed at once", size);
    }
    if (deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, GZIP_WINDOW, 8, Z_DEFAULT_STRATEGY) != Z_OK) {
        return bwi_fail(ctx, BW_RESOURCE_EXHAUSTED, "no memory to pack %zu bytes", size);
    }
    size_t most = deflateBound(&stream, (uLong)size);
    void *to = bwi_allocate(ctx, 1, most);
    if (!to) {
        deflateEnd(&stream);
        return BW_RESOURCE_EXHAUSTED;
    }
    stream.next_in = data;
    stream.avail_in = (uInt)size;
    stream.next_out = to;
    stream.avail_out = (uInt)most;
    int result = deflate(&stream, Z_FINISH);
    *packed_size = most - stream.avail_out;
    deflateEnd(&stream);
    if (result != Z_STREAM_END) {
        bwi_release(ctx, to);
        return bwi_fail(ctx, BW_INTERNAL, "gzip: packing ended with %d", result);
    }
    *packed = to;
    return BW_OK;
}
