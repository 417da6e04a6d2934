/*
 * Writes zip files, each member from its first byte to its last, stored and without a time stamp: the same members give the same
 * bytes. A member's head, which stands before its bytes and has their checksum, is written again when the checksum is known.
 * Numbers beyond 32 bits go into the fields of zip64, which are written only where they are needed.
 */
#include "format/internal.h"

#include <string.h>

enum { LOCAL_HEAD = 30, CENTRAL_HEAD = 46, EXTRA_HEAD = 4, TAIL = 22, TAIL64 = 56, LOCATOR = 20 };
enum { DOS_DATE = 1 << 5 | 1 }; /* 1980-01-01, the first there is */
enum { VERSION_NEEDED = 10, VERSION_ZIP64 = 45, MADE_BY_UNIX = 3 << 8 | 63 };

static unsigned char *put(unsigned char *at, int bytes, uint64_t value)
{
    for (int i = 0; i < bytes; i++) {
        *at++ = (unsigned char)(value >> (8 * i));
    }
    return at;
}

static uint64_t in_32_bits(uint64_t value)
{
    return value < UINT32_MAX ? value : UINT32_MAX;
}

/* What the heads before a member and in the directory have in common. */
static unsigned char *put_facts(unsigned char *at, const bwi_zip_out *out, size_t extra)
{
    at = put(at, 2, extra ? VERSION_ZIP64 : VERSION_NEEDED);
    at = put(at, 2 + 2 + 2, 0); /* flags, stored, no time */
    at = put(at, 2, DOS_DATE);
    at = put(at, 4, out->sum);
    at = put(at, 4, in_32_bits(out->size));
    at = put(at, 4, in_32_bits(out->size));
    at = put(at, 2, strlen(out->name));
    return put(at, 2, extra);
}

/* The fields of zip64 are those that do not fit: size and packed size, which are one here, and, in the directory, the place. */
static size_t extra_bytes(const bwi_zip_out *out, bool central)
{
    bool size = out->size >= UINT32_MAX, place = central && out->begin >= UINT32_MAX;
    return size || place ? EXTRA_HEAD + (size ? 16u : 0u) + (place ? 8u : 0u) : 0;
}

static unsigned char *put_extra(unsigned char *at, const bwi_zip_out *out, bool central)
{
    size_t bytes = extra_bytes(out, central);
    if (bytes) {
        at = put(put(at, 2, 1), 2, bytes - EXTRA_HEAD);
    }
    if (out->size >= UINT32_MAX) {
        at = put(put(at, 8, out->size), 8, out->size);
    }
    return central && out->begin >= UINT32_MAX ? put(at, 8, out->begin) : at;
}

static unsigned char *put_name(unsigned char *at, const char *name)
{
    memcpy(at, name, strlen(name));
    return at + strlen(name);
}

static size_t local_bytes(const bwi_zip_out *out)
{
    return LOCAL_HEAD + strlen(out->name) + extra_bytes(out, false);
}

static void put_local(unsigned char *at, const bwi_zip_out *out)
{
    at = put_facts(put(at, 4, 0x04034b50), out, extra_bytes(out, false));
    put_extra(put_name(at, out->name), out, false);
}

/* Adds the member to the directory, which is written at the end. */
static bw_status add_central(bwi_zip_out *out)
{
    size_t extra = extra_bytes(out, true), bytes = CENTRAL_HEAD + strlen(out->name) + extra;
    unsigned char *larger = bwi_grow(out->file->ctx, out->central, out->central_bytes, out->central_bytes + bytes, 1);
    if (!larger) {
        return BW_RESOURCE_EXHAUSTED;
    }
    unsigned char *at = larger + out->central_bytes;
    at = put(put(at, 4, 0x02014b50), 2, MADE_BY_UNIX);
    at = put_facts(at, out, extra);
    at = put(at, 2 + 2 + 2, 0); /* no comment, the first disk, binary */
    at = put(at, 4, 0100644u << 16);
    at = put(at, 4, in_32_bits(out->begin));
    put_extra(put_name(at, out->name), out, true);
    out->central = larger;
    out->central_bytes += bytes;
    out->count++;
    return BW_OK;
}

bw_status bwi_zip_out_begin(bwi_zip_out *out, const char *name, size_t size)
{
    unsigned char head[LOCAL_HEAD + BWI_ZIP_NAME + EXTRA_HEAD + 16];
    out->name = name;
    out->size = size;
    out->put = 0;
    out->sum = 0;
    out->begin = (uint64_t)out->file->size;
    put_local(head, out);
    return bwi_file_put(out->file, head, local_bytes(out));
}

bw_status bwi_zip_out_put(bwi_zip_out *out, const void *data, size_t size)
{
    out->sum = bwi_crc32(out->sum, data, size);
    out->put += size;
    return bwi_file_put(out->file, data, size);
}

static bw_status put_to_member(void *user, const void *data, size_t size)
{
    return bwi_zip_out_put(user, data, size);
}

bwi_byte_sink bwi_zip_out_sink(bwi_zip_out *out)
{
    return (bwi_byte_sink){.put = put_to_member, .user = out};
}

bw_status bwi_zip_out_end(bwi_zip_out *out)
{
    unsigned char head[LOCAL_HEAD + BWI_ZIP_NAME + EXTRA_HEAD + 16];
    if (out->put != out->size) {
        return bwi_fail(out->file->ctx, BW_INTERNAL, "member %s got %zu bytes; %zu were announced", out->name, out->put, out->size);
    }
    put_local(head, out);
    bw_status status = bwi_file_replace(out->file, (int64_t)out->begin, head, local_bytes(out));
    return status == BW_OK ? add_central(out) : status;
}

/* The end of the directory in 64 bits, and where it is, come before the old one, whose fields are then all ones where they are too
 * small. */
bw_status bwi_zip_out_finish(bwi_zip_out *out)
{
    unsigned char tail[TAIL64 + LOCATOR + TAIL], *at = tail;
    uint64_t place = (uint64_t)out->file->size, count = (uint64_t)out->count;
    bw_status status = bwi_file_put(out->file, out->central, out->central_bytes);
    if (place >= UINT32_MAX) {
        at = put(put(put(at, 4, 0x06064b50), 8, TAIL64 - 12), 2, MADE_BY_UNIX);
        at = put(put(at, 2, VERSION_ZIP64), 8, 0); /* the first disk, twice */
        at = put(put(put(put(at, 8, count), 8, count), 8, out->central_bytes), 8, place);
        at = put(put(put(put(at, 4, 0x07064b50), 4, 0), 8, place + out->central_bytes), 4, 1);
    }
    at = put(put(at, 4, 0x06054b50), 4, 0);
    at = put(put(at, 2, count), 2, count);
    at = put(put(put(at, 4, out->central_bytes), 4, in_32_bits(place)), 2, 0);
    if (status == BW_OK) {
        status = bwi_file_put(out->file, tail, (size_t)(at - tail));
    }
    return status;
}

void bwi_zip_out_free(bwi_zip_out *out)
{
    bwi_release(out->file->ctx, out->central);
    out->central = NULL;
}
