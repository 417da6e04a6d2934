/*
 * Texts in attributes of HDF5 objects, of fixed or variable length. Attributes stand in the object's header or, if there are many,
 * in a heap (hdf5_dense.c).
 */
#include "format/hdf5_bytes.h"

#include <string.h>

enum { TEXT_LIMIT = 1 << 24 };
enum { CLASS_TEXT = 3, CLASS_VARIABLE = 9, REFERENCE_SIZE = 16 };

typedef struct search {
    bw_context *ctx;
    const char *where, *name;
    h5_file *file;
    bwi_text out;
    int count;
    bool found;
    bw_status status;
    /* Texts are mostly referred to in their order: the collection that was used last, and where its search ended. */
    uint64_t collection, next_at;
} search;

static bw_status damaged(const search *s)
{
    return bwi_fail_file(s->ctx, BW_DATA_LOSS, s->where, "the attribute %s is damaged", s->name);
}

/* ---- Texts of variable length stand in collections ---- */

/* Finds an object of a collection from the byte `at` on. */
static bool find_from(search *s, const h5_part *collection, uint64_t at, uint64_t index, h5_part *found)
{
    h5_part head;
    while (bwi_h5_cut(collection, at, 16, &head) && bwi_h5_number(head.data, 2) != 0) {
        uint64_t size = bwi_h5_number(head.data + 8, 8), next = at + 16 + (size + 7) / 8 * 8;
        s->file->looked += 16;
        if (size > collection->size) {
            return false;
        }
        if (bwi_h5_number(head.data, 2) == index) {
            s->next_at = next;
            return bwi_h5_cut(collection, at + 16, size, found);
        }
        at = next;
    }
    return false;
}

static bool find_in_collection(search *s, uint64_t address, uint64_t index, h5_part *found)
{
    h5_part head, collection;
    if (!bwi_h5_look(s->file, address, 16, &head) || memcmp(head.data, "GCOL", 4) != 0 || head.data[4] != 1 ||
        !bwi_h5_cut(&s->file->bytes, address, bwi_h5_number(head.data + 8, 8), &collection)) {
        return false;
    }
    bool again = s->next_at && s->collection == address;
    s->collection = address;
    return (again && find_from(s, &collection, s->next_at, index, found)) || find_from(s, &collection, 16, index, found);
}

static bw_status add_text(search *s, const h5_part *text)
{
    size_t length = strnlen((const char *)text->data, text->size);
    if (bwi_size_add(s->out.length, length) > TEXT_LIMIT) {
        return bwi_fail_file(s->ctx, BW_DATA_LOSS, s->where, "the attribute %s is too long", s->name);
    }
    bwi_text_add(&s->out, "%.*s%c", (int)length, (const char *)text->data, 0);
    s->count++;
    return s->out.failed ? BW_RESOURCE_EXHAUSTED : BW_OK;
}

static bw_status add_variable(search *s, const unsigned char *reference)
{
    static const unsigned char nothing[1];
    uint64_t length = bwi_h5_number(reference, 4);
    h5_part text = {nothing, 0};
    if (length > 0 &&
        (!find_in_collection(s, bwi_h5_number(reference + 4, 8), bwi_h5_number(reference + 12, 4), &text) || length > text.size)) {
        return damaged(s);
    }
    text.size = length;
    return add_text(s, &text);
}

static bw_status add_values(search *s, const h5_part *data, bool variable, size_t size, uint64_t count)
{
    bw_status status = BW_OK;
    for (uint64_t i = 0; i < count && status == BW_OK; i++) {
        h5_part text = {data->data + i * size, size};
        status = variable ? add_variable(s, text.data) : add_text(s, &text);
    }
    return status;
}

/* ---- Attributes ---- */

/* Reads the number of elements; false if it is impossible. */
static bool read_space(const h5_part *space, uint64_t *count)
{
    if (space->size < 4) {
        return false;
    }
    int version = space->data[0], ndim = space->data[1];
    size_t first = version == 1 ? 8 : 4;
    *count = version == 2 && space->data[3] == 2 ? 0 : 1;
    if ((version != 1 && version != 2) || ndim > 32 || space->size < first + 8 * (size_t)ndim) {
        return false;
    }
    for (int i = 0; i < ndim; i++) {
        if (__builtin_mul_overflow(*count, bwi_h5_number(space->data + first + 8 * i, 8), count)) {
            return false;
        }
    }
    return true;
}

/* Cuts a message into name, type, space and data. Version 1 pads each to 8 bytes. */
static bool cut_attribute(const h5_part *message, h5_part parts[4])
{
    if (message->size < 8) {
        return false;
    }
    int version = message->data[0];
    uint64_t at = version == 3 ? 9 : 8;
    if (version < 1 || version > 3 || (version > 1 && message->data[1] != 0)) { /* shared types are stored elsewhere */
        return false;
    }
    for (int i = 0; i < 3; i++) {
        uint64_t size = bwi_h5_number(message->data + 2 + 2 * i, 2);
        if (!bwi_h5_cut(message, at, size, &parts[i])) {
            return false;
        }
        at += version == 1 ? (size + 7) / 8 * 8 : size;
    }
    return at <= message->size && bwi_h5_cut(message, at, message->size - at, &parts[3]);
}

/* An attribute of another name is no error. Texts have a fixed size, or are references into a heap; empty lists may have any
 * type. */
static bw_status read_attribute(search *s, const h5_part *message, bool *found)
{
    h5_part parts[4];
    size_t length = strlen(s->name);
    uint64_t count = 0;
    *found = false;
    if (!cut_attribute(message, parts)) {
        return BW_OK; /* it may be another attribute */
    }
    if (parts[0].size < length + 1 || memcmp(parts[0].data, s->name, length + 1) != 0) {
        return BW_OK;
    }
    *found = true;
    if (parts[1].size < 8 || !read_space(&parts[2], &count)) {
        return damaged(s);
    }
    int class_number = parts[1].data[0] & 15;
    bool variable = class_number == CLASS_VARIABLE && (parts[1].data[1] & 15) == 1;
    size_t size = (size_t)bwi_h5_number(parts[1].data + 4, 4);
    if (count == 0) { /* of any type: h5py's empty lists are of numbers */
        return BW_OK;
    }
    if (class_number != CLASS_TEXT && !variable) {
        return bwi_fail_file(s->ctx, BW_DATA_LOSS, s->where, "the attribute %s is not text", s->name);
    }
    if (size == 0 || (variable && size != REFERENCE_SIZE) || count > parts[3].size / size) {
        return damaged(s);
    }
    return add_values(s, &parts[3], variable, size, count);
}

/* As the visit of a heap: false stops, when it was found or something failed. */
static bool visit(void *user, const h5_part *message)
{
    search *s = user;
    s->status = read_attribute(s, message, &s->found);
    return !s->found && s->status == BW_OK;
}

static void search_heap(search *s, const h5_part *message)
{
    uint64_t at = 2 + (message->size > 1 && message->data[1] & 1 ? 2u : 0u);
    if (message->size < at + 16 || message->data[0] != 0) {
        s->status = damaged(s);
        return;
    }
    uint64_t heap = bwi_h5_number(message->data + at, 8), tree = bwi_h5_number(message->data + at + 8, 8);
    const char *wrong = heap == H5_NOWHERE ? NULL : bwi_h5_dense_walk(s->file, heap, tree, H5_DENSE_ATTRIBUTES, visit, s);
    if (wrong && s->status == BW_OK) {
        s->status = bwi_fail_file(s->ctx, BW_DATA_LOSS, s->where, "what holds the attribute %s %s", s->name, wrong);
    }
}

bw_status bwi_h5_text_read(h5_file *file, uint64_t address, const char *where, const char *name, char **texts, int *count)
{
    search s = {.ctx = file->ctx, .where = where, .name = name, .file = file, .out = {.ctx = file->ctx}};
    *texts = NULL;
    *count = 0;
    h5_header header;
    h5_message message;
    if (!bwi_h5_header_open(&header, file, address)) {
        return damaged(&s);
    }
    while (!s.found && s.status == BW_OK && bwi_h5_header_next(&header, &message)) {
        if (message.type == H5_MESSAGE_ATTRIBUTE && !message.shared) {
            (void)visit(&s, &message.data);
        } else if (message.type == H5_MESSAGE_ATTRIBUTES) {
            search_heap(&s, &message.data);
        }
    }
    if (s.status == BW_OK && !s.found && header.damaged) {
        s.status = damaged(&s);
    }
    if (s.status != BW_OK) {
        bwi_text_free(&s.out);
        return s.status;
    }
    *texts = s.out.bytes;
    *count = s.count;
    return BW_OK;
}
