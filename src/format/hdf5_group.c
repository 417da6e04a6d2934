/*
 * The links of HDF5 groups, in each of the three forms that files have: a table of symbols (a B-tree of version 1 over nodes, the
 * names in a heap), messages in the group's header, and a heap of messages (hdf5_dense.c).
 */
#include "format/hdf5_bytes.h"

#include <string.h>

enum { LEVEL_LIMIT = 16, TREE_HEAD = 24, NODE_SYMBOLS = 0, SYMBOL_HEAD = 8, SYMBOL = 40, SOFT = 2 };

typedef struct visitor {
    h5_file *file;
    h5_part names; /* of a table of symbols */
    bwi_h5_link_visit *visit;
    void *user;
    bool stopped;
    const char *wrong;
} visitor;

static void visit_link(visitor *w, const h5_link *link)
{
    w->stopped = w->stopped || !w->visit(w->user, link);
}

/* ---- A table of symbols ---- */

static bool open_names(visitor *w, uint64_t address)
{
    h5_part head;
    return bwi_h5_look(w->file, address, 32, &head) && memcmp(head.data, "HEAP", 4) == 0 && head.data[4] == 0 &&
           bwi_h5_cut(&w->file->bytes, bwi_h5_number(head.data + 24, 8), bwi_h5_number(head.data + 8, 8), &w->names);
}

static bool visit_symbol(visitor *w, const unsigned char *symbol)
{
    uint64_t at = bwi_h5_number(symbol, 8);
    if (at >= w->names.size) {
        return false;
    }
    const char *name = (const char *)w->names.data + at;
    size_t length = strnlen(name, w->names.size - at);
    h5_link link = {name, length, bwi_h5_number(symbol + 16, 4) != SOFT, bwi_h5_number(symbol + 8, 8)};
    w->file->looked += length;
    if (length == 0 || length == w->names.size - at) {
        return false;
    }
    visit_link(w, &link);
    return true;
}

static bool walk_symbols(visitor *w, uint64_t address)
{
    h5_part head, symbols;
    if (!bwi_h5_look(w->file, address, SYMBOL_HEAD, &head) || memcmp(head.data, "SNOD", 4) != 0 || head.data[4] != 1) {
        return false;
    }
    uint64_t count = bwi_h5_number(head.data + 6, 2);
    if (!bwi_h5_look(w->file, address + SYMBOL_HEAD, count * SYMBOL, &symbols)) {
        return false;
    }
    for (uint64_t i = 0; i < count && !w->stopped; i++) {
        if (!visit_symbol(w, symbols.data + i * SYMBOL)) {
            return false;
        }
    }
    return true;
}

/* Children and names alternate. Levels fall by one from node to child, so there can be no cycles. `level` is that of the node, or
 * -1 for any. */
static bool walk_tree(visitor *w, uint64_t address, int level)
{
    h5_part head, node;
    if (!bwi_h5_look(w->file, address, TREE_HEAD, &head) || memcmp(head.data, "TREE", 4) != 0 || head.data[4] != NODE_SYMBOLS ||
        (level >= 0 && head.data[5] != level) || head.data[5] > LEVEL_LIMIT) {
        return false;
    }
    uint64_t count = bwi_h5_number(head.data + 6, 2);
    if (!bwi_h5_look(w->file, address + TREE_HEAD, 16 * count + 8, &node)) {
        return false;
    }
    for (uint64_t i = 0; i < count && !w->stopped; i++) {
        uint64_t child = bwi_h5_number(node.data + 16 * i + 8, 8);
        if (head.data[5] ? !walk_tree(w, child, head.data[5] - 1) : !walk_symbols(w, child)) {
            return false;
        }
    }
    return true;
}

static void walk_table(visitor *w, const h5_message *message)
{
    const unsigned char *at = message->data.data;
    if (message->data.size < 16 || !open_names(w, bwi_h5_number(at + 8, 8)) || !walk_tree(w, bwi_h5_number(at, 8), -1)) {
        w->wrong = "has a damaged list of names";
    }
}

/* ---- Messages ---- */

/* Bits of the flags say which of the optional parts are there: the kind, a place in time, an encoding; the size of the name's
 * length is their lowest two. */
static bool read_link(void *user, const h5_part *message)
{
    visitor *w = user;
    const unsigned char *at = message->data;
    h5_part name, length, address;
    h5_link link = {.hard = true};
    w->wrong = "has a damaged link";
    if (message->size < 3 || at[0] != 1) {
        return false;
    }
    int flags = at[1], width = 1 << (flags & 3);
    uint64_t next = 2;
    if (flags & 8) {
        link.hard = at[next++] == 0;
    }
    next += (flags & 4 ? 8u : 0u) + (flags & 16 ? 1u : 0u);
    if (!bwi_h5_cut(message, next, (uint64_t)width, &length)) {
        return false;
    }
    next += (uint64_t)width;
    uint64_t size = bwi_h5_number(length.data, width);
    if (size == 0 || size > message->size || !bwi_h5_cut(message, next, size, &name)) {
        return false;
    }
    if (link.hard) {
        if (!bwi_h5_cut(message, next + size, 8, &address)) {
            return false;
        }
        link.address = bwi_h5_number(address.data, 8);
    }
    if (memchr(name.data, 0, name.size)) {
        return false;
    }
    link.name = (const char *)name.data;
    link.length = name.size;
    w->wrong = NULL;
    visit_link(w, &link);
    return !w->stopped;
}

static void walk_heap(visitor *w, const h5_message *message)
{
    const h5_part *data = &message->data;
    uint64_t at = 2 + (data->size > 1 && data->data[1] & 1 ? 8u : 0u);
    if (data->size < at + 16 || data->data[0] != 0) {
        w->wrong = "has a damaged list of links";
        return;
    }
    uint64_t heap = bwi_h5_number(data->data + at, 8), tree = bwi_h5_number(data->data + at + 8, 8);
    if (heap == H5_NOWHERE) { /* its links are in its header */
        return;
    }
    const char *wrong = bwi_h5_dense_walk(w->file, heap, tree, H5_DENSE_LINKS, read_link, w);
    w->wrong = wrong ? wrong : w->wrong;
}

const char *bwi_h5_links_walk(h5_file *file, uint64_t address, bwi_h5_link_visit *visit, void *user)
{
    visitor w = {.file = file, .visit = visit, .user = user};
    h5_header header;
    h5_message message;
    if (!bwi_h5_header_open(&header, file, address)) {
        return "is damaged";
    }
    while (!w.stopped && !w.wrong && bwi_h5_header_next(&header, &message)) {
        if (message.type == H5_MESSAGE_SYMBOLS) {
            walk_table(&w, &message);
        } else if (message.type == H5_MESSAGE_LINKS) {
            walk_heap(&w, &message);
        } else if (message.type == H5_MESSAGE_LINK) {
            (void)read_link(&w, &message.data);
        }
    }
    return w.wrong ? w.wrong : header.damaged ? "is damaged" : NULL;
}
