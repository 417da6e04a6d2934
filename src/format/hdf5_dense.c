/*
 * Links and attributes of HDF5 objects that have many of them: a B-tree of version 2 lists places in a fractal heap, whose blocks
 * hold the messages. h5py makes them for more than eight of them with track_order or libver='latest'. Compressed heaps, and objects
 * that are too large for a block, are refused by name.
 */
#include "format/hdf5_bytes.h"

#include <string.h>

enum { LEVEL_LIMIT = 16, TREE_HEAD = 38, NODE_FRAME = 10, HEAP_HEAD = 146 };

static const char *const damaged_heap = "has a damaged heap of links or attributes";
static const char *const damaged_tree = "has a damaged list of links or attributes";

/* ---- The heap ---- */

typedef struct heap {
    h5_file *file;
    uint64_t address;
    int id_size, offset_size, length_size;
    int width;       /* blocks in a row */
    int start, most; /* of a block that holds objects: the logarithms of the smallest and the largest size */
    int bits;        /* of the heap's addresses */
    bool checked;    /* these blocks have a checksum, which is not needed here */
    uint64_t root;
    int rows; /* of the root; 0: it holds objects itself */
} heap;

/* The logarithm of a power of two; -1: it is none. */
static int logarithm(uint64_t value)
{
    return value && !(value & (value - 1)) ? __builtin_ctzll(value) : -1;
}

/* The bytes that numbers up to `largest`, which is not 0, need. */
static int bytes_for(uint64_t largest)
{
    return (63 - __builtin_clzll(largest)) / 8 + 1;
}

/* The head says how large ids, blocks and rows are; each is checked here, so that what follows may shift by them. */
static const char *open_heap(heap *h, h5_file *file, uint64_t address)
{
    h5_part head;
    if (!bwi_h5_look(file, address, 9, &head) || memcmp(head.data, "FRHP", 4) != 0) {
        return damaged_heap;
    }
    if (bwi_h5_number(head.data + 7, 2) != 0) {
        return "has a compressed heap of links or attributes, which is not read";
    }
    if (!bwi_h5_look_block(file, address, HEAP_HEAD, "FRHP", &head)) {
        return damaged_heap;
    }
    const unsigned char *at = head.data;
    uint64_t largest = bwi_h5_number(at + 10, 4);
    *h =
        (heap){.file = file, .address = address, .id_size = (int)bwi_h5_number(at + 5, 2), .bits = (int)bwi_h5_number(at + 128, 2)};
    h->width = logarithm(bwi_h5_number(at + 110, 2));
    h->start = logarithm(bwi_h5_number(at + 112, 8));
    h->most = logarithm(bwi_h5_number(at + 120, 8));
    h->root = bwi_h5_number(at + 132, 8);
    h->rows = (int)bwi_h5_number(at + 140, 2);
    if (h->width < 0 || h->start < 0 || h->most < h->start || h->most > 32 || h->bits < h->start || h->bits > 63 || largest == 0 ||
        h->rows > h->bits - h->start) {
        return damaged_heap;
    }
    int in_block = (h->most + 7) / 8, of_object = bytes_for(largest);
    h->offset_size = (h->bits + 7) / 8;
    h->length_size = in_block < of_object ? in_block : of_object;
    return h->id_size < 1 + h->offset_size + h->length_size || h->id_size > 64 ? damaged_heap : NULL;
}

/* Blocks stand in rows of `width` ones. Those of the first two rows have the smallest size, and each further row doubles it; from a
 * certain size on a block holds no objects, but rows of blocks in turn. */
typedef struct heap_place {
    int row;
    int size;        /* the block's, as a logarithm */
    uint64_t number; /* of the block in its row */
    uint64_t within;
} heap_place;

static heap_place find_in_rows(const heap *h, uint64_t offset)
{
    heap_place p = {.row = 0, .size = h->start};
    if (offset >> (h->start + h->width)) {
        int top = 63 - __builtin_clzll(offset);
        p.row = top - (h->start + h->width) + 1;
        p.size = h->start + p.row - 1;
        offset -= (uint64_t)1 << top;
    }
    p.number = offset >> p.size;
    p.within = offset & (((uint64_t)1 << p.size) - 1);
    return p;
}

/* Finds the address of the block that holds an offset of the heap, and the offset in it. */
static bool find_block(const heap *h, uint64_t *offset, uint64_t *address, int *size)
{
    uint64_t at = h->root;
    int rows = h->rows;
    *size = h->start;
    for (int level = 0; rows > 0; level++) {
        heap_place p = find_in_rows(h, *offset);
        uint64_t head = 13 + (uint64_t)h->offset_size, entries = (uint64_t)rows << h->width;
        h5_part block;
        if (level == LEVEL_LIMIT || p.row >= rows || !bwi_h5_look_block(h->file, at, head + 8 * entries + 4, "FHIB", &block) ||
            bwi_h5_number(block.data + 5, 8) != h->address) {
            return false;
        }
        at = bwi_h5_number(block.data + head + 8 * (((uint64_t)p.row << h->width) + p.number), 8);
        *offset = p.within;
        *size = p.size;
        rows = p.size <= h->most ? 0 : p.size - (h->start + h->width) + 1;
        if (p.size > h->most && rows < 1) {
            return false;
        }
    }
    *address = at;
    return true;
}

/* Finds an object by its id: a type, an offset in the heap and a length. */
static const char *find_object(const heap *h, const unsigned char *id, h5_part *object)
{
    enum { KIND = 0x30, HUGE = 0x10, TINY = 0x20 };
    h5_part block;
    uint64_t address;
    int size;
    if (id[0] & 0xc0) {
        return damaged_heap;
    }
    if ((id[0] & KIND) == TINY) {
        object->data = id + 1;
        object->size = (size_t)(id[0] & 15) + 1;
        return h->id_size > 1 && object->size < (size_t)h->id_size ? NULL : damaged_heap;
    }
    if (id[0] & KIND) {
        return "has a link or an attribute outside of its heap, which is not read";
    }
    uint64_t offset = bwi_h5_number(id + 1, h->offset_size), length = bwi_h5_number(id + 1 + h->offset_size, h->length_size);
    if (!find_block(h, &offset, &address, &size) || offset + length > (uint64_t)1 << size ||
        !bwi_h5_look(h->file, address, 13, &block) || memcmp(block.data, "FHDB", 4) != 0 ||
        bwi_h5_number(block.data + 5, 8) != h->address || address + offset < address ||
        !bwi_h5_look(h->file, address + offset, length, object)) {
        return damaged_heap;
    }
    return NULL;
}

/* ---- The tree that lists its objects ---- */

typedef struct tree {
    const heap *heap;
    h5_file *file;
    int kind, record_size, id_at;
    uint64_t node_size;
    int count_size;              /* of a child's number of records */
    int below_size[LEVEL_LIMIT]; /* of the number of records below a child, by the child's level */
    bwi_h5_dense_visit *visit;
    void *user;
    bool stopped;
} tree;

static const char *visit_record(tree *t, const unsigned char *record)
{
    h5_part object;
    const char *wrong = find_object(t->heap, record + t->id_at, &object);
    if (!wrong && !t->visit(t->user, &object)) {
        t->stopped = true;
    }
    return wrong;
}

/* A node has records, and around each of them a child. Levels fall by one from node to child, so there can be no cycles. */
static const char *walk_node(tree *t, uint64_t address, uint64_t count, int level)
{
    uint64_t records = count * (uint64_t)t->record_size, child = level ? 8 + (uint64_t)t->count_size : 0;
    h5_part node;
    if (level > 1) {
        child += (uint64_t)t->below_size[level - 1];
    }
    uint64_t size = NODE_FRAME + records + (level ? (count + 1) * child : 0);
    if (size > t->node_size || !bwi_h5_look_block(t->file, address, size, level ? "BTIN" : "BTLF", &node) ||
        node.data[5] != t->kind) {
        return damaged_tree;
    }
    const unsigned char *record = node.data + 6, *pointer = record + records;
    const char *wrong = NULL;
    for (uint64_t i = 0; i <= count && !wrong && !t->stopped; i++, record += t->record_size, pointer += child) {
        if (level) {
            wrong = walk_node(t, bwi_h5_number(pointer, 8), bwi_h5_number(pointer + 8, t->count_size), level - 1);
        }
        if (i < count && !wrong && !t->stopped) {
            wrong = visit_record(t, record);
        }
    }
    return wrong;
}

/* How many bytes a node's numbers have follows from how many records can be below it: those of a leaf, and for each further level
 * those of all children and one less between them. */
static bool measure(tree *t, int depth)
{
    uint64_t leaf = (t->node_size - NODE_FRAME) / (uint64_t)t->record_size, below = leaf;
    if (leaf == 0) {
        return false;
    }
    t->count_size = bytes_for(leaf);
    t->below_size[0] = t->count_size;
    for (int level = 1; level <= depth; level++) {
        uint64_t pointer = 8 + (uint64_t)t->count_size + (level > 1 ? (uint64_t)t->below_size[level - 1] : 0);
        if (t->node_size < NODE_FRAME + pointer) {
            return false;
        }
        uint64_t records = (t->node_size - NODE_FRAME - pointer) / ((uint64_t)t->record_size + pointer);
        if (__builtin_mul_overflow(records + 1, below, &below) || __builtin_add_overflow(below, records, &below)) {
            return false;
        }
        t->below_size[level] = bytes_for(below);
    }
    return true;
}

const char *bwi_h5_dense_walk(h5_file *file, uint64_t heap_address, uint64_t tree_address, int kind, bwi_h5_dense_visit *visit,
                              void *user)
{
    heap h;
    h5_part head;
    if (tree_address == H5_NOWHERE) {
        return NULL;
    }
    const char *wrong = open_heap(&h, file, heap_address);
    if (wrong) {
        return wrong;
    }
    if (!bwi_h5_look_block(file, tree_address, TREE_HEAD, "BTHD", &head) || head.data[5] != kind) {
        return damaged_tree;
    }
    /* A link's record is a hash and its id; an attribute's is its id, flags, its place in time and a hash. */
    int id_at = kind == H5_DENSE_LINKS ? 4 : 0, depth = (int)bwi_h5_number(head.data + 12, 2);
    tree t = {.heap = &h, .file = file, .kind = kind, .id_at = id_at, .visit = visit, .user = user};
    t.node_size = bwi_h5_number(head.data + 6, 4);
    t.record_size = (int)bwi_h5_number(head.data + 10, 2);
    uint64_t root = bwi_h5_number(head.data + 16, 8), count = bwi_h5_number(head.data + 24, 2);
    if (t.record_size < id_at + h.id_size || t.node_size <= NODE_FRAME || depth >= LEVEL_LIMIT || !measure(&t, depth)) {
        return damaged_tree;
    }
    return count ? walk_node(&t, root, count, depth) : NULL;
}
