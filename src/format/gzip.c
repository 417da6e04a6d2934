/*
 * gzip: unpacks mapped bytes piece by piece; the only file that includes zlib. Files of several members (as bgzip and
 * concatenation make them) are one stream. zlib's own memory comes from the context.
 */
#include "format/format.h"

#define ZLIB_CONST
#include <zlib.h>

#define GZIP_WINDOW (15 + 16) /* zlib's code for gzip headers only */
#define LARGEST_PIECE ((size_t)1 << 30)

struct bwi_gzip {
    bw_context *ctx;
    const char *path;
    const unsigned char *next, *end;
    z_stream stream;
    bool open, ended;
};

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

size_t bwi_inflate(bw_context *ctx, const void *from, size_t size, void *to, size_t room)
{
    z_stream stream = {.zalloc = try_take, .zfree = give, .opaque = ctx, .next_in = from, .next_out = to};
    if (size > UINT32_MAX || room > UINT32_MAX || inflateInit(&stream) != Z_OK)
        return 0;
    stream.avail_in = (uInt)size;
    stream.avail_out = (uInt)room;
    const int result = inflate(&stream, Z_FINISH);
    const size_t got = room - stream.avail_out;
    inflateEnd(&stream);
    return result == Z_STREAM_END ? got : 0;
}

bool bwi_gzip_is(const bwi_bytes *file)
{
    return file->size >= 2 && file->data[0] == 0x1f && file->data[1] == 0x8b;
}

bw_status bwi_gzip_open(bw_context *ctx, bwi_gzip **gzip, const bwi_bytes *file, const char *path)
{
    *gzip = NULL;
    bwi_gzip *made = bwi_allocate(ctx, 1, sizeof *made);
    if (!made)
        return BW_RESOURCE_EXHAUSTED;
    *made = (bwi_gzip){.ctx = ctx, .path = path, .next = file->data, .end = file->data + file->size};
    made->stream.zalloc = take;
    made->stream.zfree = give;
    made->stream.opaque = ctx;
    if (inflateInit2(&made->stream, GZIP_WINDOW) != Z_OK) {
        bwi_release(ctx, made);
        return bwi_fail(ctx, BW_RESOURCE_EXHAUSTED, "%s: no memory to unpack it", path);
    }
    made->open = true;
    *gzip = made;
    return BW_OK;
}

void bwi_gzip_close(bwi_gzip *gzip)
{
    if (!gzip)
        return;
    if (gzip->open)
        inflateEnd(&gzip->stream);
    bwi_release(gzip->ctx, gzip);
}

static bw_status fail_damaged(bwi_gzip *gzip, const char *what)
{
    return bwi_fail(gzip->ctx, BW_DATA_LOSS, "%s: the gzip file is damaged after %llu unpacked bytes: %s", gzip->path,
                    (unsigned long long)gzip->stream.total_out, what);
}

/* After a member: zeros are padding, anything else must be another member. */
static bw_status begin_member(bwi_gzip *gzip)
{
    while (gzip->next < gzip->end && *gzip->next == 0)
        gzip->next++;
    gzip->ended = gzip->next == gzip->end;
    if (gzip->ended)
        return BW_OK;
    const uLong total = gzip->stream.total_out;
    if (inflateReset(&gzip->stream) != Z_OK)
        return fail_damaged(gzip, "another member cannot begin");
    gzip->stream.total_out = total;
    return BW_OK;
}

bw_status bwi_gzip_read(bwi_gzip *gzip, void *to, size_t size, size_t *got)
{
    z_stream *stream = &gzip->stream;
    *got = 0;
    while (*got < size && !gzip->ended) {
        const size_t left = (size_t)(gzip->end - gzip->next), room = size - *got;
        stream->next_in = gzip->next;
        stream->avail_in = (uInt)(left < LARGEST_PIECE ? left : LARGEST_PIECE);
        stream->next_out = (Bytef *)to + *got;
        stream->avail_out = (uInt)(room < LARGEST_PIECE ? room : LARGEST_PIECE);
        const uInt before = stream->avail_out;
        const int result = inflate(stream, Z_NO_FLUSH);
        gzip->next = stream->next_in;
        *got += before - stream->avail_out;
        if (result == Z_STREAM_END) {
            const bw_status status = begin_member(gzip);
            if (status != BW_OK)
                return status;
        } else if (result == Z_MEM_ERROR) {
            return bwi_fail(gzip->ctx, BW_RESOURCE_EXHAUSTED, "%s: no memory to unpack it", gzip->path);
        } else if (result != Z_OK && result != Z_BUF_ERROR) {
            return fail_damaged(gzip, stream->msg ? stream->msg : "no deflated data");
        } else if (gzip->next == gzip->end && before == stream->avail_out) {
            return fail_damaged(gzip, "it ends early");
        }
    }
    return BW_OK;
}
