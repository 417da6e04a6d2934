/*
 * Where the chunks of HDF5 datasets are. Known are the index of earlier files (a B-tree, version 1), and of those that h5py writes
 * with libver='latest' a single chunk, the implicit index and the fixed array; the others, which datasets that can grow have, are
 * refused by name. A chunk counts only if it lies in the file, stands on the grid of chunks and is not smaller than gzip can make
 * it; all chunks together are not larger than the file.
 */
#include "format/hdf5_bytes.h"

#include <string.h>

enum { LAYOUT_CHUNKED = 2, NODE_CHUNKS = 1, LEVEL_LIMIT = 32 };
enum { CHUNK_LIMIT = 1 << 28, DEFLATE_RATIO = 1032 };

/* ---- What the header says ---- */

/* Sets the chunks' extents, each a number of `width` bytes, followed by the size of an element. NULL, or what is wrong. */
static const char *read_extents(h5_chunks *c, const unsigned char *at, int width)
{
    c->chunk_bytes = c->element;
    c->count = 1;
    for (int i = 0; i < c->ndim; i++) {
        uint64_t extent = bwi_h5_number(at + width * i, width);
        if (extent == 0 || extent > INT64_MAX) {
            return "has chunks of no size";
        }
        c->chunk[i] = (int64_t)extent;
        c->chunk_bytes = bwi_size_multiply(c->chunk_bytes, (size_t)c->chunk[i]);
        if (__builtin_mul_overflow(c->count, (c->shape[i] - 1) / c->chunk[i] + 1, &c->count)) {
            return "has more chunks than can be counted";
        }
    }
    if (bwi_h5_number(at + width * c->ndim, width) != c->element) {
        return "has chunks of another type";
    }
    return c->chunk_bytes > CHUNK_LIMIT ? "has chunks of more than 256 MiB" : NULL;
}

/* Versions 4 and 5, which h5py writes with libver='latest': flags, axes, the extents, the kind of the index, what it needs, its
 * address. */
static const char *read_new_layout(h5_chunks *c, const h5_part *message)
{
    static const char *const others[] = {
        "has an index of chunks of no known kind",
        NULL,
        NULL,
        NULL,
        "has an extensible array as index of chunks (libver='latest'), which is not read",
        "has a B-tree of version 2 as index of chunks (libver='latest'), which is not read",
    };
    enum { PARTIAL_NOT_FILTERED = 1, SINGLE_FILTERED = 2 };
    const unsigned char *at = message->data;
    h5_part rest;
    int flags = at[2], width = at[4];
    if (at[3] != c->ndim + 1 || width < 1 || width > 8 || !bwi_h5_cut(message, 5 + (uint64_t)at[3] * (uint64_t)width, 1, &rest)) {
        return "has chunks of another number of axes";
    }
    int kind = rest.data[0];
    size_t used = (size_t)(rest.data - at) + 1;
    const char *wrong = kind < (int)BWI_COUNT(others) ? others[kind] : others[0];
    wrong = wrong ? wrong : read_extents(c, at + 5, width);
    if (wrong) {
        return wrong;
    }
    if (flags & PARTIAL_NOT_FILTERED) {
        return "has chunks at its border that are not packed (libver='latest'), which is not read";
    }
    bool packed = kind == H5_INDEX_SINGLE && flags & SINGLE_FILTERED;
    uint64_t more = packed ? 12 : kind == H5_INDEX_ARRAY ? 1 : 0;
    if (!bwi_h5_cut(message, used, more + 8, &rest)) {
        return "has a damaged layout";
    }
    c->index = (h5_index)kind;
    c->single_size = packed ? bwi_h5_number(rest.data, 8) : c->chunk_bytes;
    c->single_skipped = packed ? (uint32_t)bwi_h5_number(rest.data + 8, 4) : ~(uint32_t)0;
    c->address = bwi_h5_number(rest.data + more, 8);
    return NULL;
}

/* Version 3: axes, the B-tree's address, the extents of a chunk and the size of an element. NULL, or what is wrong with it. */
static const char *read_layout(h5_chunks *c, const h5_part *message)
{
    const unsigned char *at = message->data;
    if (message->size >= 6 && (at[0] == 4 || at[0] == 5) && at[1] == LAYOUT_CHUNKED) {
        return read_new_layout(c, message);
    }
    if (message->size < 11 || at[0] != 3 || at[1] != LAYOUT_CHUNKED) {
        return "has a layout of no known version";
    }
    if (at[2] != c->ndim + 1 || message->size < 11 + 4 * (size_t)at[2]) {
        return "has chunks of another number of axes";
    }
    c->index = H5_INDEX_TREE;
    c->address = bwi_h5_number(at + 3, 8);
    return read_extents(c, at + 11, 4);
}

static const char *filter_refused(int filter)
{
    switch (filter) {
    case H5_FILTER_DEFLATE:
    case H5_FILTER_SHUFFLE:
    case H5_FILTER_FLETCHER:
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

/* The list has two versions: 1 names every filter and pads its values to an even number, 2 names only those with ids from 256
 * on. */
static const char *read_filters(h5_chunks *c, const h5_part *message)
{
    h5_part head, rest;
    if (message->size < 2 || (message->data[0] != 1 && message->data[0] != 2) || message->data[1] > H5_FILTER_LIMIT) {
        return "has a damaged list of filters";
    }
    bool old = message->data[0] == 1;
    uint64_t at = old ? 8 : 2;
    for (c->filters = 0; c->filters < message->data[1]; c->filters++) {
        if (!bwi_h5_cut(message, at, 8, &head) && !bwi_h5_cut(message, at, 6, &head)) {
            return "has a damaged list of filters";
        }
        int id = (int)bwi_h5_number(head.data, 2);
        bool named = old || id >= 256;
        if (named && head.size < 8) {
            return "has a damaged list of filters";
        }
        uint64_t name = named ? bwi_h5_number(head.data + 2, 2) : 0, values = bwi_h5_number(head.data + (named ? 6 : 4), 2);
        uint64_t size = (named ? 8u : 6u) + name + 4 * (values + (old ? values % 2 : 0));
        if (filter_refused(id)) {
            return filter_refused(id);
        }
        if (!bwi_h5_cut(message, at, size, &rest)) {
            return "has a damaged list of filters";
        }
        at += size;
        c->filter[c->filters] = id;
    }
    return NULL;
}

/* ---- The index ---- */

typedef struct index_walk {
    const h5_chunks *chunks;
    int64_t found;
    uint64_t bytes; /* of all chunks: they do not overlap, so they are not more than the file's */
    bwi_h5_chunk_visit *visit;
    void *user;
} index_walk;

static bool visit_chunk(index_walk *w, const h5_chunk_place *place)
{
    const h5_chunks *c = w->chunks;
    h5_part data;
    if (++w->found > c->count || c->chunk_bytes / DEFLATE_RATIO > place->size ||
        !bwi_h5_cut(&c->file->bytes, place->address, place->size, &data)) {
        return false;
    }
    w->bytes += place->size;
    return w->bytes <= c->file->bytes.size && (!w->visit || w->visit(w->user, place));
}

static bool visit_key(index_walk *w, const unsigned char *key, const unsigned char *child)
{
    const h5_chunks *c = w->chunks;
    h5_chunk_place place = {
        .address = bwi_h5_number(child, 8), .size = bwi_h5_number(key, 4), .skipped = (uint32_t)bwi_h5_number(key + 4, 4)};
    for (int i = 0; i < c->ndim; i++) {
        uint64_t first = bwi_h5_number(key + 8 + 8 * i, 8);
        if (first >= (uint64_t)c->shape[i] || first % (uint64_t)c->chunk[i] != 0) {
            return false;
        }
        place.first[i] = (int64_t)first;
    }
    return visit_chunk(w, &place);
}

/* Levels fall by one from node to child, so there can be no cycles. */
static bool walk_node(index_walk *w, uint64_t address, int level)
{
    const h5_chunks *c = w->chunks;
    uint64_t key = 8 + 8 * ((uint64_t)c->ndim + 1), step = key + 8;
    h5_part head, node;
    if (!bwi_h5_look(c->file, address, 24, &head) || memcmp(head.data, "TREE", 4) != 0 || head.data[4] != NODE_CHUNKS ||
        (level >= 0 && head.data[5] != level) || head.data[5] > LEVEL_LIMIT) {
        return false;
    }
    uint64_t entries = bwi_h5_number(head.data + 6, 2);
    if (!bwi_h5_look(c->file, address + 24, entries * step + key, &node)) {
        return false;
    }
    for (uint64_t i = 0; i < entries; i++) {
        const unsigned char *at = node.data + i * step;
        if (head.data[5] > 0 ? !walk_node(w, bwi_h5_number(at + key, 8), head.data[5] - 1) : !visit_key(w, at, at + key)) {
            return false;
        }
    }
    return true;
}

/* The chunk of a number: they are counted in row-major order. */
static bool visit_number(index_walk *w, int64_t number, h5_chunk_place *place)
{
    const h5_chunks *c = w->chunks;
    for (int i = c->ndim - 1; i >= 0; i--) {
        int64_t along = (c->shape[i] - 1) / c->chunk[i] + 1;
        place->first[i] = number % along * c->chunk[i];
        number /= along;
    }
    return visit_chunk(w, place);
}

static bool walk_implicit(index_walk *w)
{
    const h5_chunks *c = w->chunks;
    bool good = (uint64_t)c->count <= c->file->bytes.size / c->chunk_bytes;
    for (int64_t i = 0; i < c->count && good; i++) {
        h5_chunk_place place = {c->address + (uint64_t)i * c->chunk_bytes, c->chunk_bytes, ~(uint32_t)0, {0}};
        good = visit_number(w, i, &place);
    }
    return good;
}

/* Elements are addresses; those of packed chunks are followed by the size, in as many bytes as are left, and the skipped
 * filters. */
static bool walk_elements(index_walk *w, const unsigned char *at, int64_t first, int64_t count, int size)
{
    const h5_chunks *c = w->chunks;
    bool good = true;
    for (int64_t i = 0; i < count && good; i++, at += size) {
        h5_chunk_place place = {bwi_h5_number(at, 8), c->chunk_bytes, ~(uint32_t)0, {0}};
        if (c->filters) {
            place.size = bwi_h5_number(at + 8, size - 12);
            place.skipped = (uint32_t)bwi_h5_number(at + size - 4, 4);
        }
        good = place.address == H5_NOWHERE || visit_number(w, first + i, &place);
    }
    return good;
}

/* A fixed array: its head, and a block of elements, one for each chunk. Many elements stand in pages behind the block, each with a
 * checksum; bits in the block say which of them were written. */
static bool walk_array(index_walk *w)
{
    enum { HEAD = 28, BLOCK_HEAD = 14 };
    const h5_chunks *c = w->chunks;
    h5_part head, block, page;
    if (!bwi_h5_look_block(c->file, c->address, HEAD, "FAHD", &head) || head.data[5] != (c->filters > 0)) {
        return false;
    }
    int size = head.data[6], bits = head.data[7];
    uint64_t count = bwi_h5_number(head.data + 8, 8), at = bwi_h5_number(head.data + 16, 8);
    if (count != (uint64_t)c->count || count > c->file->bytes.size / 8 || bits > 31 || at == H5_NOWHERE ||
        (c->filters ? size < 13 || size > 20 : size != 8)) {
        return false;
    }
    uint64_t in_page = (uint64_t)1 << bits, pages = count > in_page ? (count + in_page - 1) / in_page : 0;
    uint64_t block_size = BLOCK_HEAD + (pages ? (pages + 7) / 8 : count * (uint64_t)size) + 4;
    if (!bwi_h5_look_block(c->file, at, block_size, "FADB", &block)) {
        return false;
    }
    if (!pages) {
        return walk_elements(w, block.data + BLOCK_HEAD, 0, (int64_t)count, size);
    }
    bool good = true;
    at += block_size;
    for (uint64_t i = 0; i < pages && good; i++) {
        uint64_t first = i * in_page, elements = count - first < in_page ? count - first : in_page;
        good = bwi_h5_look(c->file, at, elements * (uint64_t)size + 4, &page);
        if (good && block.data[BLOCK_HEAD + i / 8] >> (7 - i % 8) & 1) {
            good = bwi_h5_intact(&page) && walk_elements(w, page.data, (int64_t)first, (int64_t)elements, size);
        }
        at += in_page * (uint64_t)size + 4;
    }
    return good;
}

static bool walk_index(index_walk *walk)
{
    const h5_chunks *c = walk->chunks;
    h5_chunk_place single = {c->address, c->single_size, c->single_skipped, {0}};
    switch (c->index) {
    case H5_INDEX_SINGLE:
        return c->count == 1 && visit_chunk(walk, &single);
    case H5_INDEX_IMPLICIT:
        return c->filters == 0 && walk_implicit(walk);
    case H5_INDEX_ARRAY:
        return walk_array(walk);
    case H5_INDEX_TREE:
        return walk_node(walk, c->address, -1);
    }
    return false;
}

bool bwi_h5_chunks_walk(const h5_chunks *chunks, bwi_h5_chunk_visit *visit, void *user, int64_t *found)
{
    index_walk walk = {.chunks = chunks, .visit = visit, .user = user};
    bool good = walk_index(&walk);
    *found = walk.found;
    return good;
}

static const char *read_messages(h5_chunks *chunks, uint64_t address)
{
    h5_header header;
    h5_message message;
    const char *wrong = "has no layout", *filters = NULL;
    if (!bwi_h5_header_open(&header, chunks->file, address)) {
        return "has a damaged header";
    }
    while (bwi_h5_header_next(&header, &message)) {
        if (message.type == H5_MESSAGE_LAYOUT) {
            wrong = read_layout(chunks, &message.data);
        } else if (message.type == H5_MESSAGE_FILTERS) {
            filters = message.shared ? "has filters that are described elsewhere, which is not read"
                                     : read_filters(chunks, &message.data);
        }
    }
    return wrong ? wrong : header.damaged ? "has a damaged header" : filters;
}

const char *bwi_h5_chunks_open(h5_chunks *chunks, h5_file *file, uint64_t address, int ndim, const int64_t *shape, size_t element)
{
    *chunks = (h5_chunks){.file = file, .ndim = ndim, .element = element};
    if (ndim < 1 || ndim > BW_MAX_NDIM) {
        return "has chunks without axes";
    }
    for (int i = 0; i < ndim; i++) {
        chunks->shape[i] = shape[i];
        if (shape[i] < 1) {
            return "holds nothing";
        }
    }
    const char *wrong = read_messages(chunks, address);
    if (wrong) {
        return wrong;
    }
    index_walk walk = {.chunks = chunks};
    if (chunks->address == H5_NOWHERE) {
        return "has no chunks: nothing was written to it";
    }
    if (!walk_index(&walk)) {
        return "has a damaged index of chunks";
    }
    chunks->packed = walk.bytes;
    return walk.found < chunks->count ? "lacks chunks: not all of it was written" : NULL;
}
