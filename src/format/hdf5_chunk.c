/*
 * The values of chunked HDF5 datasets: filters undone, chunks put into rows. Known are the filters gzip, shuffle and fletcher32. A
 * chunk is used once, and only if it unpacks to its exact size.
 */
#include "format/hdf5_bytes.h"
#include "format/internal.h"

#include <string.h>

enum { CHECKSUM = 4 };

/* ---- Filters ---- */

/* As HDF5 computes it: sums of 16-bit words, the first byte of which is the high one. */
static uint32_t fletcher(const unsigned char *at, size_t size)
{
    uint64_t low = 0, high = 0;
    for (size_t i = 0; i < size; i += 2) {
        low = (low + ((uint64_t)at[i] << 8 | (i + 1 < size ? at[i + 1] : 0u))) % 65535;
        high = (high + low) % 65535;
    }
    return (uint32_t)(high << 16 | low);
}

/* Sums of ones' complement: 0 and 65535 are the same. Older versions swapped the bytes. */
static bool same_sum(uint32_t sum, uint32_t stored)
{
    for (int swapped = 0; swapped < 2; swapped++) {
        if ((stored & 0xffff) % 65535 == (sum & 0xffff) && (stored >> 16) % 65535 == sum >> 16) {
            return true;
        }
        stored = (stored & 0xff00ff00) >> 8 | (stored & 0x00ff00ff) << 8;
    }
    return false;
}

static void unshuffle(const unsigned char *from, unsigned char *to, size_t size, size_t element)
{
    size_t count = size / element;
    for (size_t k = 0; k < element; k++) {
        for (size_t i = 0; i < count; i++) {
            to[i * element + k] = from[k * count + i];
        }
    }
    memcpy(to + count * element, from + count * element, size - count * element);
}

typedef struct unpacking {
    const h5_chunks *chunks;
    bw_context *ctx;
    unsigned char *buffers[2];
    size_t capacity; /* of a buffer */
    unsigned char *to;
    unsigned char *seen; /* [chunk] */
    bool starved;        /* there was no memory to unpack it, whatever it holds */
} unpacking;

/* Returns the chunk's values; NULL: they are damaged, or there is no memory. */
static const unsigned char *unpack(unpacking *u, const h5_chunk_place *place)
{
    const h5_chunks *c = u->chunks;
    const unsigned char *at = c->file->bytes.data + place->address;
    size_t size = place->size;
    for (int i = c->filters - 1, next = 0; i >= 0; i--) {
        if (place->skipped >> i & 1) {
            continue;
        }
        if (c->filter[i] == H5_FILTER_FLETCHER) {
            if (size < CHECKSUM || !same_sum(fletcher(at, size - CHECKSUM), (uint32_t)bwi_h5_number(at + size - CHECKSUM, 4))) {
                return NULL;
            }
            size -= CHECKSUM;
            continue;
        }
        unsigned char *to = u->buffers[next];
        if (c->filter[i] == H5_FILTER_DEFLATE) {
            size = bwi_inflate(u->ctx, at, size, to, u->capacity);
            u->starved = size == SIZE_MAX;
            if (u->starved) {
                return NULL;
            }
        } else if (size <= u->capacity) {
            unshuffle(at, to, size, c->element);
        } else {
            return NULL;
        }
        at = to;
        next = !next;
    }
    return size == c->chunk_bytes ? at : NULL;
}

/* ---- Into rows ---- */

/* Rows along the last axis are copied whole; the index counts the other axes like an odometer. Chunks at the border are cut. */
static void copy_chunk(const h5_chunks *c, const h5_chunk_place *place, const unsigned char *from, unsigned char *to)
{
    int64_t index[BW_MAX_NDIM] = {0}, extent[BW_MAX_NDIM];
    int last = c->ndim - 1;
    for (int i = 0; i < c->ndim; i++) {
        int64_t left = c->shape[i] - place->first[i];
        extent[i] = left < c->chunk[i] ? left : c->chunk[i];
    }
    for (;;) {
        size_t source = 0, target = 0;
        for (int i = 0; i < c->ndim; i++) {
            source = source * (size_t)c->chunk[i] + (size_t)index[i];
            target = target * (size_t)c->shape[i] + (size_t)(place->first[i] + index[i]);
        }
        memcpy(to + target * c->element, from + source * c->element, (size_t)extent[last] * c->element);
        int axis = last - 1;
        for (; axis >= 0 && ++index[axis] == extent[axis]; axis--) {
            index[axis] = 0;
        }
        if (axis < 0) {
            return;
        }
    }
}

static bool read_chunk(void *user, const h5_chunk_place *place)
{
    unpacking *u = user;
    const h5_chunks *c = u->chunks;
    int64_t number = 0;
    if (bwi_cancelled(u->ctx)) {
        return false;
    }
    for (int i = 0; i < c->ndim; i++) {
        number = number * ((c->shape[i] - 1) / c->chunk[i] + 1) + place->first[i] / c->chunk[i];
    }
    const unsigned char *from = u->seen[number] ? NULL : unpack(u, place);
    u->seen[number] = 1;
    if (from) {
        copy_chunk(c, place, from, u->to);
    }
    return from;
}

bw_status bwi_h5_chunks_read(bw_context *ctx, const h5_chunks *chunks, const char *where, void *to)
{
    unpacking u = {.chunks = chunks, .ctx = ctx, .to = to, .capacity = chunks->chunk_bytes + CHECKSUM * (size_t)chunks->filters};
    int64_t found;
    bw_status status = BW_RESOURCE_EXHAUSTED;
    u.seen = bwi_allocate(ctx, (size_t)chunks->count, 1);
    if (u.seen && chunks->filters > 0) {
        u.buffers[0] = bwi_allocate(ctx, u.capacity, 1);
    }
    if (u.buffers[0]) {
        u.buffers[1] = bwi_allocate(ctx, u.capacity, 1);
    }
    if (u.seen && (chunks->filters == 0 || u.buffers[1])) {
        status = bwi_h5_chunks_walk(chunks, read_chunk, &u, &found) && found == chunks->count
                     ? BW_OK
                     : bwi_fail_file(ctx, BW_DATA_LOSS, where, "chunk %lld of %lld is damaged", (long long)found,
                                     (long long)chunks->count);
        status = u.starved ? bwi_fail_file(ctx, BW_RESOURCE_EXHAUSTED, where, "no memory to unpack it") : status;
        status = status != BW_OK && bwi_cancelled(ctx) ? bwi_cancel_report(ctx) : status;
    }
    bwi_release(ctx, u.seen);
    bwi_release(ctx, u.buffers[0]);
    bwi_release(ctx, u.buffers[1]);
    return status;
}
