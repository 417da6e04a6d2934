/*
 * Writes small images as PNG: 8 bits a channel, not packed (stored blocks of deflate), since they are few and small. A chunk is its
 * length, its name, its bytes and a checksum of the last two.
 */
#include "format/internal.h"

#include <string.h>

enum { MOST_STORED = 65535 };

static uint32_t crc_of(uint32_t crc, const unsigned char *bytes, size_t size)
{
    crc = ~crc;
    for (size_t i = 0; i < size; i++) {
        crc ^= bytes[i];
        for (int bit = 0; bit < 8; bit++) {
            crc = crc >> 1 ^ (crc & 1 ? UINT32_C(0xEDB88320) : 0);
        }
    }
    return ~crc;
}

static uint32_t adler_of(const unsigned char *bytes, size_t size)
{
    uint32_t a = 1, b = 0;
    for (size_t i = 0; i < size; i++) {
        a = (a + bytes[i]) % 65521;
        b = (b + a) % 65521;
    }
    return b << 16 | a;
}

static void put_big_endian(unsigned char *to, uint32_t value)
{
    for (int i = 0; i < 4; i++) {
        to[i] = (unsigned char)(value >> (24 - 8 * i));
    }
}

static void put_chunk(bwi_wire *to, const char *name, const unsigned char *bytes, size_t size)
{
    unsigned char ends[12];
    put_big_endian(ends, (uint32_t)size);
    memcpy(ends + 4, name, 4);
    put_big_endian(ends + 8, crc_of(crc_of(0, ends + 4, 4), bytes, size));
    bwi_wire_raw(to, ends, 8);
    bwi_wire_raw(to, bytes, size);
    bwi_wire_raw(to, ends + 8, 4);
}

/* zlib's wrapping of blocks that are stored as they are: a header, for each block its length twice, a checksum. */
static size_t store(unsigned char *to, const unsigned char *bytes, size_t size)
{
    size_t at = 2, done = 0;
    to[0] = 0x78;
    to[1] = 0x01;
    while (done < size || size == 0) {
        size_t part = size - done < MOST_STORED ? size - done : MOST_STORED;
        to[at++] = done + part == size;
        to[at++] = (unsigned char)part;
        to[at++] = (unsigned char)(part >> 8);
        to[at++] = (unsigned char)~part;
        to[at++] = (unsigned char)(~part >> 8);
        memcpy(to + at, bytes + done, part);
        at += part;
        done += part;
        if (size == 0) {
            break;
        }
    }
    put_big_endian(to + at, adler_of(bytes, size));
    return at + 4;
}

/* Each row begins with a byte that says how it is filtered: not at all. The caller has checked that the sizes are moderate. */
void bwi_png_write(bwi_wire *to, int height, int width, int channels, const unsigned char *pixels)
{
    static const unsigned char signature[8] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1A, '\n'};
    static const unsigned char color[5] = {0, 0, 4, 2, 6}; /* by the number of channels: gray, with alpha, RGB, with alpha */
    size_t row = (size_t)width * (size_t)channels, size = (row + 1) * (size_t)height;
    unsigned char *rows = bwi_try_allocate(to->ctx, 1, size), *stored = NULL;
    stored = rows ? bwi_try_allocate(to->ctx, 1, size + size / MOST_STORED * 5 + 16) : NULL;
    if (!stored) {
        to->failed = true;
        bwi_release(to->ctx, rows);
        return;
    }
    for (size_t y = 0; y < (size_t)height; y++) {
        memcpy(rows + y * (row + 1) + 1, pixels + y * row, row);
    }
    unsigned char header[13] = {[8] = 8, [9] = color[channels]};
    put_big_endian(header, (uint32_t)width);
    put_big_endian(header + 4, (uint32_t)height);
    bwi_wire_raw(to, signature, sizeof signature);
    put_chunk(to, "IHDR", header, sizeof header);
    put_chunk(to, "IDAT", stored, store(stored, rows, size));
    put_chunk(to, "IEND", header, 0);
    bwi_release(to->ctx, rows);
    bwi_release(to->ctx, stored);
}
