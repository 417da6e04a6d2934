/*
 * Chunked datasets of HDF5 files, read without the library, which trusts a damaged index. Known are the index that h5py writes (a
 * B-tree, version 1) and the filters gzip, shuffle and fletcher32. A chunk is looked at only if it lies in the file, stands on
 * the grid of chunks, and unpacks to its exact size; there are never more chunks or nodes than the shape can hold.
 */
#include "format/internal.h"
#include "format/hdf5_bytes.h"

#include <string.h>

enum { MESSAGE_LAYOUT = 0x08, MESSAGE_FILTERS = 0x0b, LAYOUT_CHUNKED = 2, NODE_CHUNKS = 1 };
enum { FILTER_DEFLATE = 1, FILTER_SHUFFLE = 2, FILTER_FLETCHER = 3 };
enum { CHUNK_LIMIT = 1 << 28, CHECKSUM = 4, DEFLATE_RATIO = 1032, LEVEL_LIMIT = 32 };

/* ---- What the header says ---- */

/* Layout message, version 3: axes, the B-tree's address, the extents of a chunk and the size of an element. NULL, or what is
 * wrong with it. */
static const char *read_layout(h5_chunks *c, const h5_part *message)
{
    /* Version 4, which h5py writes with libver='latest', by the kind of its index. */
    static const char *const newer[] = {
        "has an index of chunks of no known kind",
        "has a single chunk (libver='latest'), which is not read",
        "has an implicit index of chunks (libver='latest'), which is not read",
        "has a fixed array as index of chunks (libver='latest'), which is not read",
        "has an extensible array as index of chunks (libver='latest'), which is not read",
        "has a B-tree of version 2 as index of chunks (libver='latest'), which is not read",
    };
    const unsigned char *at = message->data;
    if (message->size >= 6 && at[0] == 4 && at[1] == LAYOUT_CHUNKED) {
        size_t index = 5 + (size_t)at[3] * at[4];
        return newer[index < message->size && at[index] < BWI_COUNT(newer) ? at[index] : 0];
    }
    if (message->size < 11 || at[0] != 3 || at[1] != LAYOUT_CHUNKED) {
        return "has a layout of no known version";
    }
    if (at[2] != c->ndim + 1 || message->size < 11 + 4 * (size_t)at[2]) {
        return "has chunks of another number of axes";
    }
    c->tree = h5_number(at + 3, 8);
    c->chunk_bytes = c->element;
    c->count = 1;
    for (int i = 0; i < c->ndim; i++) {
        c->chunk[i] = (int64_t)h5_number(at + 11 + 4 * i, 4);
        if (c->chunk[i] == 0) {
            return "has chunks of no size";
        }
        c->chunk_bytes = bwi_size_multiply(c->chunk_bytes, (size_t)c->chunk[i]);
        if (__builtin_mul_overflow(c->count, (c->shape[i] - 1) / c->chunk[i] + 1, &c->count)) {
            return "has more chunks than can be counted";
        }
    }
    if (h5_number(at + 11 + 4 * c->ndim, 4) != c->element) {
        return "has chunks of another type";
    }
    return c->chunk_bytes > CHUNK_LIMIT ? "has chunks of more than 256 MiB" : NULL;
}

static const char *filter_refused(int filter)
{
    switch (filter) {
    case FILTER_DEFLATE:
    case FILTER_SHUFFLE:
    case FILTER_FLETCHER:
        return NULL;
    case 4:
        return "is packed by szip; gzip, shuffle and fletcher32 are read";
    case 5:
        return "is packed by nbit; gzip, shuffle and fletcher32 are read";
    case 6:
        return "is packed by scaleoffset; gzip, shuffle and fletcher32 are read";
    case 32000:
        return "is packed by lzf; gzip, shuffle and fletcher32 are read";
    default:
        return "is packed by a plugin's filter; gzip, shuffle and fletcher32 are read";
    }
}

/* The list has two versions: 1 names every filter and pads its values to an even number, 2 names only those with ids from 256 on. */
static const char *read_filters(h5_chunks *c, const h5_part *message)
{
    h5_part head, rest;
    if (message->size < 2 || (message->data[0] != 1 && message->data[0] != 2) || message->data[1] > H5_FILTER_LIMIT) {
        return "has a damaged list of filters";
    }
    bool old = message->data[0] == 1;
    uint64_t at = old ? 8 : 2;
    for (c->filters = 0; c->filters < message->data[1]; c->filters++) {
        if (!h5_cut(message, at, 8, &head) && !h5_cut(message, at, 6, &head)) {
            return "has a damaged list of filters";
        }
        int id = (int)h5_number(head.data, 2);
        bool named = old || id >= 256;
        if (named && head.size < 8) {
            return "has a damaged list of filters";
        }
        uint64_t name = named ? h5_number(head.data + 2, 2) : 0, values = h5_number(head.data + (named ? 6 : 4), 2);
        uint64_t size = (named ? 8u : 6u) + name + 4 * (values + (old ? values % 2 : 0));
        if (filter_refused(id)) {
            return filter_refused(id);
        }
        if (!h5_cut(message, at, size, &rest)) {
            return "has a damaged list of filters";
        }
        at += size;
        c->filter[c->filters] = id;
    }
    return NULL;
}

/* ---- The index ---- */

typedef struct chunk_place {
    uint64_t address;
    size_t size;
    uint32_t skipped; /* filters, by bits */
    int64_t first[BW_MAX_NDIM];
} chunk_place;

typedef struct tree_walk {
    const h5_chunks *chunks;
    int64_t nodes, found;
    uint64_t bytes; /* of all chunks: they do not overlap, so they are not more than the file's */
    /* With each chunk; false stops. NULL: they are counted. */
    bool (*visit)(void *user, const chunk_place *place);
    void *user;
} tree_walk;

static bool read_place(const h5_chunks *c, const unsigned char *key, const unsigned char *child, chunk_place *place)
{
    h5_part data;
    *place = (chunk_place){.address = h5_number(child, 8), .size = h5_number(key, 4), .skipped = (uint32_t)h5_number(key + 4, 4)};
    for (int i = 0; i < c->ndim; i++) {
        uint64_t first = h5_number(key + 8 + 8 * i, 8);
        if (first >= (uint64_t)c->shape[i] || first % (uint64_t)c->chunk[i] != 0) {
            return false;
        }
        place->first[i] = (int64_t)first;
    }
    return c->chunk_bytes / DEFLATE_RATIO <= place->size && h5_cut(&c->file, place->address, place->size, &data);
}

/* Levels fall by one from node to child, so there can be no cycles. */
static bool walk_node(tree_walk *w, uint64_t address, int level)
{
    const h5_chunks *c = w->chunks;
    uint64_t key = 8 + 8 * ((uint64_t)c->ndim + 1), step = key + 8;
    h5_part head, node;
    if ((uint64_t)w->nodes++ > c->file.size / 24 || !h5_cut(&c->file, address, 24, &head) || memcmp(head.data, "TREE", 4) != 0 ||
        head.data[4] != NODE_CHUNKS || (level >= 0 && head.data[5] != level) || head.data[5] > LEVEL_LIMIT) {
        return false;
    }
    uint64_t entries = h5_number(head.data + 6, 2);
    if (!h5_cut(&c->file, address + 24, entries * step + key, &node)) {
        return false;
    }
    for (uint64_t i = 0; i < entries; i++) {
        const unsigned char *at = node.data + i * step;
        if (head.data[5] > 0) {
            if (!walk_node(w, h5_number(at + key, 8), head.data[5] - 1)) {
                return false;
            }
            continue;
        }
        chunk_place place;
        if (++w->found > c->count || (uint64_t)w->found > c->file.size / step || !read_place(c, at, at + key, &place)) {
            return false;
        }
        w->bytes += place.size;
        if (w->bytes > c->file.size || (w->visit && !w->visit(w->user, &place))) {
            return false;
        }
    }
    return true;
}

const char *h5_chunks_open(h5_chunks *chunks, const h5_part *file, uint64_t address, int ndim, const int64_t *shape, size_t element)
{
    h5_header header;
    h5_part message;
    int type;
    const char *wrong = "has no layout";
    *chunks = (h5_chunks){.file = *file, .ndim = ndim, .element = element};
    if (ndim < 1 || ndim > BW_MAX_NDIM) {
        return "has chunks without axes";
    }
    for (int i = 0; i < ndim; i++) {
        chunks->shape[i] = shape[i];
        if (shape[i] < 1) {
            return "holds nothing";
        }
    }
    if (!h5_header_open(&header, file, address)) {
        return "has a damaged header";
    }
    const char *filters = NULL;
    while (h5_header_next(&header, &type, &message)) {
        if (type == MESSAGE_LAYOUT) {
            wrong = read_layout(chunks, &message);
        } else if (type == MESSAGE_FILTERS) {
            filters = read_filters(chunks, &message);
        }
    }
    if (wrong || filters) {
        return wrong ? wrong : filters;
    }
    tree_walk walk = {.chunks = chunks};
    if (chunks->tree == UINT64_MAX) {
        return "has no chunks: nothing was written to it";
    }
    if (!walk_node(&walk, chunks->tree, -1)) {
        return "has a damaged index of chunks";
    }
    return walk.found < chunks->count ? "lacks chunks: not all of it was written" : NULL;
}

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
} unpacking;

/* Returns the chunk's values; NULL: they are damaged. */
static const unsigned char *unpack(unpacking *u, const chunk_place *place)
{
    const h5_chunks *c = u->chunks;
    const unsigned char *at = c->file.data + place->address;
    size_t size = place->size;
    for (int i = c->filters - 1, next = 0; i >= 0; i--) {
        if (place->skipped >> i & 1) {
            continue;
        }
        if (c->filter[i] == FILTER_FLETCHER) {
            if (size < CHECKSUM || !same_sum(fletcher(at, size - CHECKSUM), (uint32_t)h5_number(at + size - CHECKSUM, 4))) {
                return NULL;
            }
            size -= CHECKSUM;
            continue;
        }
        unsigned char *to = u->buffers[next];
        if (c->filter[i] == FILTER_DEFLATE) {
            size = bwi_inflate(u->ctx, at, size, to, u->capacity);
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
static void copy_chunk(const h5_chunks *c, const chunk_place *place, const unsigned char *from, unsigned char *to)
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

static bool read_chunk(void *user, const chunk_place *place)
{
    unpacking *u = user;
    const h5_chunks *c = u->chunks;
    int64_t number = 0;
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

bw_status h5_chunks_read(bw_context *ctx, const h5_chunks *chunks, const char *where, void *to)
{
    unpacking u = {.chunks = chunks, .ctx = ctx, .to = to, .capacity = chunks->chunk_bytes + CHECKSUM * (size_t)chunks->filters};
    tree_walk walk = {.chunks = chunks, .visit = read_chunk, .user = &u};
    bw_status status = BW_RESOURCE_EXHAUSTED;
    u.seen = bwi_allocate(ctx, (size_t)chunks->count, 1);
    if (u.seen && chunks->filters > 0) {
        u.buffers[0] = bwi_allocate(ctx, u.capacity, 1);
    }
    if (u.buffers[0]) {
        u.buffers[1] = bwi_allocate(ctx, u.capacity, 1);
    }
    if (u.seen && (chunks->filters == 0 || u.buffers[1])) {
        status = walk_node(&walk, chunks->tree, -1) && walk.found == chunks->count
                     ? BW_OK
                     : bwi_fail_file(ctx, BW_DATA_LOSS, where, "chunk %lld of %lld is damaged", (long long)walk.found,
                                     (long long)chunks->count);
    }
    bwi_release(ctx, u.seen);
    bwi_release(ctx, u.buffers[0]);
    bwi_release(ctx, u.buffers[1]);
    return status;
}
