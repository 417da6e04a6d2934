/*
 * Messages in protobuf's wire format: a field is a key (number and type), then a number of 7 bits a byte, four bytes, or a length
 * and that many bytes. A message within a message is written in place, and moved by its length's bytes at its end.
 */
#include "format/format.h"

#include <string.h>

enum { WIRE_VARINT = 0, WIRE_BYTES = 2, WIRE_32 = 5, VARINT_BYTES = 10 };

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

void bwi_wire_add(bwi_wire *w, const bwi_wire *fields)
{
    put_raw(w, fields->bytes, fields->length);
    w->failed = w->failed || fields->failed;
}

void bwi_wire_begin(bwi_wire *w, int field)
{
    put_key(w, field, WIRE_BYTES);
    w->begun[w->depth++] = w->length;
}

void bwi_wire_end(bwi_wire *w)
{
    unsigned char bytes[VARINT_BYTES];
    size_t begun = w->begun[--w->depth], size = w->length - begun, n = encode(bytes, size);
    if (!reserve(w, n)) {
        return;
    }
    memmove(w->bytes + begun + n, w->bytes + begun, size);
    memcpy(w->bytes + begun, bytes, n);
    w->length += n;
}

void bwi_wire_free(bwi_wire *w)
{
    bwi_release(w->ctx, w->bytes);
    *w = (bwi_wire){.ctx = w->ctx};
}
