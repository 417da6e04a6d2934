/*
 * Messages in protobuf's wire format: a field is a key (number and type), then a number of 7 bits a byte, four bytes, or a length
 * and that many bytes. A message within a message is written in place, and moved by its length's bytes at its end. Large fields can
 * be left out as gaps, which count in the lengths.
 */
#include "format/internal.h"

#include <string.h>

enum { WIRE_VARINT = 0, WIRE_64 = 1, WIRE_BYTES = 2, WIRE_32 = 5, VARINT_BYTES = 10 };

static bool reserve(bwi_wire *w, size_t more)
{
    size_t needed = bwi_size_add(w->length, more);
    if (w->failed || needed <= w->capacity) {
        return !w->failed;
    }
    size_t capacity = bwi_size_multiply(w->capacity, 2);
    if (capacity < needed || capacity == SIZE_MAX) {
        capacity = needed < 256 ? 256 : needed;
    }
    unsigned char *larger = bwi_grow(w->ctx, w->bytes, w->length, capacity, 1);
    if (!larger) {
        w->failed = true;
        return false;
    }
    w->bytes = larger;
    w->capacity = capacity;
    return true;
}

static size_t encode(unsigned char bytes[VARINT_BYTES], uint64_t value)
{
    size_t n = 0;
    for (; value >= 128; value >>= 7) {
        bytes[n++] = (unsigned char)(value | 128);
    }
    bytes[n++] = (unsigned char)value;
    return n;
}

static void put_raw(bwi_wire *w, const void *bytes, size_t size)
{
    if (size > 0 && reserve(w, size)) {
        memcpy(w->bytes + w->length, bytes, size);
        w->length += size;
    }
}

static void put_varint(bwi_wire *w, uint64_t value)
{
    unsigned char bytes[VARINT_BYTES];
    put_raw(w, bytes, encode(bytes, value));
}

static void put_key(bwi_wire *w, int field, int type)
{
    put_varint(w, (uint64_t)field << 3 | (uint64_t)type);
}

void bwi_wire_put(bwi_wire *w, int field, int64_t value)
{
    put_key(w, field, WIRE_VARINT);
    put_varint(w, (uint64_t)value);
}

void bwi_wire_put_float(bwi_wire *w, int field, float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    const unsigned char bytes[4] = {(unsigned char)bits, (unsigned char)(bits >> 8), (unsigned char)(bits >> 16),
                                    (unsigned char)(bits >> 24)};
    put_key(w, field, WIRE_32);
    put_raw(w, bytes, sizeof bytes);
}

static void put_little_endian(bwi_wire *w, uint64_t bits, int size)
{
    unsigned char bytes[8];
    for (int i = 0; i < size; i++) {
        bytes[i] = (unsigned char)(bits >> 8 * i);
    }
    put_raw(w, bytes, (size_t)size);
}

void bwi_wire_raw_double(bwi_wire *w, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    put_little_endian(w, bits, 8);
}

void bwi_wire_put_double(bwi_wire *w, int field, double value)
{
    put_key(w, field, WIRE_64);
    bwi_wire_raw_double(w, value);
}

void bwi_wire_raw(bwi_wire *w, const void *bytes, size_t size)
{
    put_raw(w, bytes, size);
}

/* Checksums are masked, since that of bytes which contain a checksum would be weak. */
static uint32_t masked(const void *bytes, size_t size)
{
    uint32_t crc = bwi_crc32c(bytes, size);
    return (crc >> 15 | crc << 17) + UINT32_C(0xA282EAD8);
}

void bwi_wire_record(bwi_wire *w, const bwi_wire *message)
{
    size_t at = w->length;
    put_little_endian(w, message->length, 8);
    if (!w->failed) {
        put_little_endian(w, masked(w->bytes + at, 8), 4);
    }
    put_raw(w, message->bytes, message->length);
    put_little_endian(w, masked(message->bytes, message->length), 4);
    w->failed = w->failed || message->failed;
}

void bwi_wire_put_bytes(bwi_wire *w, int field, const void *bytes, size_t size)
{
    put_key(w, field, WIRE_BYTES);
    put_varint(w, size);
    put_raw(w, bytes, size);
}

void bwi_wire_put_text(bwi_wire *w, int field, const char *text)
{
    bwi_wire_put_bytes(w, field, text, strlen(text));
}

static void add_gap(bwi_wire *w, bwi_wire_gap gap)
{
    if (w->gap_count == w->gap_capacity && !w->failed) {
        int capacity = w->gap_capacity ? 2 * w->gap_capacity : 16;
        bwi_wire_gap *larger = bwi_grow(w->ctx, w->gaps, (size_t)w->gap_count, (size_t)capacity, sizeof *larger);
        w->failed = !larger;
        w->gaps = larger ? larger : w->gaps;
        w->gap_capacity = larger ? capacity : w->gap_capacity;
    }
    if (!w->failed) {
        w->gaps[w->gap_count++] = gap;
    }
}

void bwi_wire_put_gap(bwi_wire *w, int field, size_t size, int number)
{
    put_key(w, field, WIRE_BYTES);
    put_varint(w, size);
    add_gap(w, (bwi_wire_gap){.at = w->length, .size = size, .number = number});
}

void bwi_wire_add(bwi_wire *w, const bwi_wire *fields)
{
    for (int i = 0; i < fields->gap_count; i++) {
        bwi_wire_gap gap = fields->gaps[i];
        gap.at += w->length;
        add_gap(w, gap);
    }
    put_raw(w, fields->bytes, fields->length);
    w->failed = w->failed || fields->failed;
}

static size_t gap_bytes(const bwi_wire *w, int first)
{
    size_t bytes = 0;
    for (int i = first; i < w->gap_count; i++) {
        bytes = bwi_size_add(bytes, w->gaps[i].size);
    }
    return bytes;
}

size_t bwi_wire_size(const bwi_wire *w)
{
    return bwi_size_add(w->length, gap_bytes(w, 0));
}

void bwi_wire_begin(bwi_wire *w, int field)
{
    put_key(w, field, WIRE_BYTES);
    w->begun_gap[w->depth] = w->gap_count;
    w->begun[w->depth++] = w->length;
}

void bwi_wire_end(bwi_wire *w)
{
    unsigned char bytes[VARINT_BYTES];
    size_t begun = w->begun[--w->depth], size = w->length - begun;
    int gap = w->begun_gap[w->depth];
    size_t n = encode(bytes, bwi_size_add(size, gap_bytes(w, gap)));
    if (!reserve(w, n)) {
        return;
    }
    for (; gap < w->gap_count; gap++) {
        w->gaps[gap].at += n;
    }
    memmove(w->bytes + begun + n, w->bytes + begun, size);
    memcpy(w->bytes + begun, bytes, n);
    w->length += n;
}

void bwi_wire_free(bwi_wire *w)
{
    bwi_release(w->ctx, w->bytes);
    bwi_release(w->ctx, w->gaps);
    *w = (bwi_wire){.ctx = w->ctx};
}
