/*
 * Lays out HDF5 files: superblock of version 0, groups as symbol tables, datasets without chunks, as every version of the HDF5
 * library reads them. Everything but the values comes first, so that a file can be written from its beginning to its end, however
 * large its values are. There are no time stamps: the same parts give the same bytes.
 *
 * The names in the comments are those of the HDF5 File Format Specification, version 1.
 */
#include "format/format.h"

#include <stdlib.h>
#include <string.h>

/* A node of symbols holds 2 * LEAF_K names, a node of a tree 2 * TREE_K children. */
enum { LEAF_K = 4, TREE_K = 16, SYMBOLS = 2 * LEAF_K, CHILDREN = 2 * TREE_K, SUPERBLOCK = 96, ALIGNMENT = 8, MOST_LEVELS = 8 };
enum { MESSAGE_SPACE = 1, MESSAGE_TYPE = 3, MESSAGE_FILL = 5, MESSAGE_LAYOUT = 8, MESSAGE_SYMBOLS = 17, HEADER_PREFIX = 16 };

typedef struct layout {
    bw_context *ctx;
    unsigned char *bytes;
    size_t length, capacity;
    bwi_hdf5_part **sorted;
    size_t *patches; /* of each of `sorted`: where the address of its values belongs */
    bw_status status;
} layout;

/* A link of a group. */
typedef struct link {
    const char *name;
    size_t name_length;
    uint64_t heap;                /* offset of its name */
    uint64_t header, tree, names; /* addresses; a dataset has only a header */
    bool is_group;
} link;

/* ---- Bytes ---- */

/* Makes room for `size` zeroed bytes at the end, and returns their position. */
static size_t extend(layout *l, size_t size)
{
    size_t at = l->length, needed = bwi_size_add(at, size);
    if (needed > l->capacity && l->status == BW_OK) {
        size_t capacity = needed > 2 * l->capacity ? needed : 2 * l->capacity;
        unsigned char *larger = bwi_grow(l->ctx, l->bytes, l->capacity, capacity, 1);
        l->status = larger ? BW_OK : BW_RESOURCE_EXHAUSTED;
        l->bytes = larger ? larger : l->bytes;
        l->capacity = larger ? capacity : l->capacity;
    }
    l->length = l->status == BW_OK ? needed : at;
    return at;
}

/* Writes a little-endian number at a position. */
static void put(layout *l, size_t at, int bytes, uint64_t value)
{
    for (int i = 0; i < bytes && l->status == BW_OK; i++) {
        l->bytes[at + (size_t)i] = (unsigned char)(value >> 8 * i);
    }
}

static void put_text(layout *l, size_t at, const char *text, size_t length)
{
    if (l->status == BW_OK) {
        memcpy(l->bytes + at, text, length);
    }
}

/* ---- Datasets ---- */

/* Adds a message to the object header that is being written, and returns where its data begins. */
static size_t add_message(layout *l, int type, size_t size)
{
    size_t padded = bwi_size_align(size, ALIGNMENT), at = extend(l, 8 + padded);
    put(l, at, 2, (uint64_t)type);
    put(l, at + 2, 2, padded);
    return at + 8;
}

static void end_header(layout *l, size_t header, int messages)
{
    put(l, header, 1, 1);
    put(l, header + 2, 2, (uint64_t)messages);
    put(l, header + 4, 4, 1); /* it has one link */
    put(l, header + 8, 4, l->length - header - HEADER_PREFIX);
}

/* Float32 as IEEE 754 has it, or integers with a sign, both little-endian. */
static void put_type(layout *l, bw_dtype dtype)
{
    size_t at = add_message(l, MESSAGE_TYPE, dtype == BW_F32 ? 20 : 12), bytes = bwi_dtype_size(dtype);
    put(l, at, 1, dtype == BW_F32 ? 0x11 : 0x10);
    put(l, at + 1, 1, dtype == BW_F32 ? 0x20 : 0x08); /* the leading 1 of the fraction is implied; signed */
    put(l, at + 2, 1, dtype == BW_F32 ? 31 : 0);      /* position of the sign */
    put(l, at + 4, 4, bytes);
    put(l, at + 10, 2, 8 * bytes);
    if (dtype == BW_F32) { /* position and size of exponent and fraction, bias */
        put(l, at + 12, 1, 23);
        put(l, at + 13, 1, 8);
        put(l, at + 15, 1, 23);
        put(l, at + 16, 4, 127);
    }
}

static uint64_t put_dataset(layout *l, const bwi_hdf5_part *part, size_t *patch)
{
    size_t header = extend(l, HEADER_PREFIX), at = add_message(l, MESSAGE_SPACE, 8 + 8 * (size_t)part->ndim);
    put(l, at, 1, 1);
    put(l, at + 1, 1, (uint64_t)part->ndim);
    for (int i = 0; i < part->ndim; i++) {
        put(l, at + 8 + 8 * (size_t)i, 8, (uint64_t)part->shape[i]);
    }
    put_type(l, part->dtype);
    at = add_message(l, MESSAGE_FILL, 8);
    put(l, at, 4, 0x01020202); /* version 2: space when it is needed, and the default value, written if it is set */
    at = add_message(l, MESSAGE_LAYOUT, 18);
    put(l, at, 2, 0x0103); /* version 3, contiguous */
    put(l, at + 10, 8, part->bytes);
    *patch = at + 2;
    end_header(l, header, 4);
    return header;
}

/* ---- Groups ---- */

static void put_symbol(layout *l, size_t at, const link *one)
{
    put(l, at, 8, one->heap);
    put(l, at + 8, 8, one->header);
    put(l, at + 16, 4, one->is_group);
    if (one->is_group) { /* the group's own message again, for quick readers */
        put(l, at + 24, 8, one->tree);
        put(l, at + 32, 8, one->names);
    }
}

/* The names of a group: an empty one, then each with a NUL and padding. */
static uint64_t put_names(layout *l, link *links, int count)
{
    size_t heap = extend(l, 32), begin = extend(l, 8);
    for (int i = 0; i < count; i++) {
        size_t at = extend(l, bwi_size_align(links[i].name_length + 1, ALIGNMENT));
        put_text(l, at, links[i].name, links[i].name_length);
        links[i].heap = at - begin;
    }
    put_text(l, heap, "HEAP", 4);
    put(l, heap + 8, 8, l->length - begin);
    put(l, heap + 16, 8, 1); /* no free space */
    put(l, heap + 24, 8, begin);
    return heap;
}

/* A node of the tree has up to CHILDREN children, each described by its address and by the largest name in it. */
static uint64_t put_tree_node(layout *l, int level, const uint64_t *child, const uint64_t *largest, int count, uint64_t before)
{
    size_t at = extend(l, 24 + 8 * (CHILDREN + 1 + CHILDREN));
    put_text(l, at, "TREE", 4);
    put(l, at + 5, 1, (uint64_t)level);
    put(l, at + 6, 2, (uint64_t)count);
    put(l, at + 8, 8, UINT64_MAX);  /* the left neighbour, which chain_nodes sets */
    put(l, at + 16, 8, UINT64_MAX); /* the right one */
    put(l, at + 24, 8, before);
    for (int i = 0; i < count; i++) {
        put(l, at + 32 + 16 * (size_t)i, 8, child[i]);
        put(l, at + 40 + 16 * (size_t)i, 8, largest[i]);
    }
    return at;
}

/* Nodes of one level know their neighbours. */
static void chain_nodes(layout *l, const uint64_t *node, int count)
{
    for (int i = 0; i < count; i++) {
        put(l, (size_t)node[i] + 8, 8, i > 0 ? node[i - 1] : UINT64_MAX);
        put(l, (size_t)node[i] + 16, 8, i + 1 < count ? node[i + 1] : UINT64_MAX);
    }
}

/* Writes the nodes of symbols, then level upon level of the tree until one node holds all. `node` and `largest` have space for one
 * entry for each node of symbols, and for one more. */
static uint64_t put_tree(layout *l, const link *links, int count, uint64_t *node, uint64_t *largest)
{
    int nodes = 0;
    for (int i = 0; i < count; i += SYMBOLS) {
        int own = count - i < SYMBOLS ? count - i : SYMBOLS;
        size_t at = extend(l, 8 + 40 * SYMBOLS);
        put_text(l, at, "SNOD\1", 5);
        put(l, at + 6, 2, (uint64_t)own);
        for (int k = 0; k < own; k++) {
            put_symbol(l, at + 8 + 40 * (size_t)k, &links[i + k]);
        }
        node[nodes] = at;
        largest[nodes++] = links[i + own - 1].heap;
    }
    for (int level = 0; level < MOST_LEVELS; level++) {
        int above = 0;
        uint64_t before = 0;
        for (int i = 0; i < nodes || above == 0; i += CHILDREN) {
            int own = nodes - i < CHILDREN ? nodes - i : CHILDREN;
            uint64_t last = own > 0 ? largest[i + own - 1] : 0;
            node[above] = put_tree_node(l, level, node + i, largest + i, own, before);
            largest[above++] = before = last;
        }
        chain_nodes(l, node, above);
        nodes = above;
        if (nodes == 1) {
            break;
        }
    }
    return node[0];
}

/* Names of a group are compared one after another, so the end of a name comes before any of its characters. */
static int compare_paths(const void *a, const void *b)
{
    const unsigned char *x = (const unsigned char *)(*(bwi_hdf5_part *const *)a)->name;
    const unsigned char *y = (const unsigned char *)(*(bwi_hdf5_part *const *)b)->name;
    while (*x == *y && *x) {
        x++;
        y++;
    }
    int u = *x == '/' ? 1 : *x ? *x + 1 : 0, v = *y == '/' ? 1 : *y ? *y + 1 : 0;
    return (u > v) - (u < v);
}

static void put_group(layout *l, int first, int last, size_t prefix, link *group);

/* The parts of `sorted` from `first` on that lie under the same link: returns where they end. */
static int find_link(const layout *l, int first, int last, size_t prefix, link *one)
{
    int end = first + 1;
    *one = (link){.name = l->sorted[first]->name + prefix};
    one->name_length = strcspn(one->name, "/");
    one->is_group = one->name[one->name_length] == '/';
    while (end < last && strncmp(l->sorted[end]->name + prefix, one->name, one->name_length) == 0 &&
           strchr("/", l->sorted[end]->name[prefix + one->name_length])) {
        end++;
    }
    return end;
}

/* A group's links are written before the group, which holds their addresses. */
static void put_links(layout *l, int first, int last, size_t prefix, link *links, int *count)
{
    *count = 0;
    while (first < last && l->status == BW_OK) {
        link *one = &links[(*count)++];
        int end = find_link(l, first, last, prefix, one);
        if (one->name_length == 0 || (!one->is_group && end > first + 1)) {
            l->status = bwi_fail(l->ctx, BW_INTERNAL, "cannot make an HDF5 file with two things named %s", l->sorted[first]->name);
        } else if (one->is_group) {
            put_group(l, first, end, prefix + one->name_length + 1, one);
        } else {
            one->header = put_dataset(l, l->sorted[first], &l->patches[first]);
        }
        first = end;
    }
}

static void put_group(layout *l, int first, int last, size_t prefix, link *group)
{
    int count = 0;
    size_t nodes = (size_t)(last - first) / SYMBOLS + 2;
    link *links = bwi_allocate(l->ctx, (size_t)(last - first) + 1, sizeof *links);
    uint64_t *node = links ? bwi_allocate(l->ctx, 2 * nodes, sizeof *node) : NULL;
    l->status = node ? l->status : BW_RESOURCE_EXHAUSTED;
    if (node) {
        put_links(l, first, last, prefix, links, &count);
        group->names = put_names(l, links, count);
        group->tree = put_tree(l, links, count, node, node + nodes);
        group->header = extend(l, HEADER_PREFIX);
        size_t at = add_message(l, MESSAGE_SYMBOLS, 16);
        put(l, at, 8, group->tree);
        put(l, at + 8, 8, group->names);
        end_header(l, (size_t)group->header, 1);
    }
    bwi_release(l->ctx, node);
    bwi_release(l->ctx, links);
}

/* ---- The file ---- */

static void put_superblock(layout *l, const link *root, uint64_t size)
{
    put_text(l, 0, "\x89HDF\r\n\x1a\n", 8);
    put(l, 13, 2, 0x0808); /* the bytes of an address and of a length */
    put(l, 16, 2, LEAF_K);
    put(l, 18, 2, TREE_K);
    put(l, 32, 8, UINT64_MAX); /* no list of free space */
    put(l, 40, 8, size);
    put(l, 48, 8, UINT64_MAX); /* no driver's block */
    put_symbol(l, 56, root);
}

/* Values follow in the order in which the parts were given. Addresses of values that take no space are undefined. */
static uint64_t place_values(layout *l, bwi_hdf5_part *parts, int count)
{
    uint64_t next = l->length;
    for (int i = 0; i < count; i++) {
        parts[i].offset = (size_t)next;
        next = bwi_size_align(bwi_size_add((size_t)next, parts[i].bytes), ALIGNMENT);
    }
    for (int i = 0; i < count; i++) {
        put(l, l->patches[i], 8, l->sorted[i]->bytes ? l->sorted[i]->offset : UINT64_MAX);
    }
    return next;
}

static void lay_out(layout *l, bwi_hdf5_part *parts, int count, bwi_hdf5_head *head)
{
    link root = {.is_group = true};
    for (int i = 0; i < count; i++) {
        l->sorted[i] = &parts[i];
        parts[i].bytes = bwi_dtype_size(parts[i].dtype);
        for (int k = 0; k < parts[i].ndim; k++) {
            parts[i].bytes = bwi_size_multiply(parts[i].bytes, (size_t)parts[i].shape[k]);
        }
    }
    qsort(l->sorted, (size_t)count, sizeof(bwi_hdf5_part *), compare_paths);
    extend(l, SUPERBLOCK);
    put_group(l, 0, count, 0, &root);
    extend(l, bwi_size_align(l->length, ALIGNMENT) - l->length);
    head->total = place_values(l, parts, count);
    put_superblock(l, &root, head->total);
}

bw_status bwi_hdf5_lay_out(bw_context *ctx, bwi_hdf5_part *parts, int count, bwi_hdf5_head *head)
{
    layout l = {.ctx = ctx};
    *head = (bwi_hdf5_head){0};
    l.sorted = bwi_allocate(ctx, (size_t)count + 1, sizeof *l.sorted);
    l.patches = l.sorted ? bwi_allocate(ctx, (size_t)count + 1, sizeof *l.patches) : NULL;
    l.status = l.patches ? BW_OK : BW_RESOURCE_EXHAUSTED;
    if (l.status == BW_OK) {
        lay_out(&l, parts, count, head);
    }
    bwi_release(ctx, (void *)l.sorted);
    bwi_release(ctx, l.patches);
    if (l.status != BW_OK) {
        bwi_release(ctx, l.bytes);
        return l.status;
    }
    head->bytes = l.bytes;
    head->size = l.length;
    return BW_OK;
}
