/*
 * Texts in attributes of HDF5 objects, read from the file's bytes without the library, which follows damaged references to texts
 * of variable length wherever they point. Only what h5py writes is known: attributes within the object's header (versions 1 and
 * 2), of fixed or variable length. Every place is checked against the file's size before it is looked at.
 */
#include "format/format.h"

#include <string.h>

enum { BLOCK_LIMIT = 64, TEXT_LIMIT = 1 << 24, MESSAGE_CONTINUATION = 0x10, MESSAGE_ATTRIBUTE = 0x0c };
enum { CLASS_TEXT = 3, CLASS_VARIABLE = 9, REFERENCE_SIZE = 16 };

/* A part of the file. */
typedef struct part {
    const unsigned char *data;
    size_t size;
} part;

typedef struct search {
    bw_context *ctx;
    const char *where, *name;
    part file;
    part blocks[BLOCK_LIMIT]; /* of messages */
    int block_count;
    bool new_header; /* version 2 */
    bool creation_order;
    bwi_text out;
    int count;
} search;

static uint64_t number(const unsigned char *at, int bytes)
{
    uint64_t value = 0;
    for (int i = 0; i < bytes; i++)
        value |= (uint64_t)at[i] << 8 * i;
    return value;
}

/* `size` bytes from `offset` on; false if they are not all there. */
static bool cut(const part *whole, uint64_t offset, uint64_t size, part *cut_out)
{
    if (offset > whole->size || size > whole->size - offset)
        return false;
    *cut_out = (part){whole->data + offset, (size_t)size};
    return true;
}

static bw_status damaged(const search *s)
{
    return bwi_fail(s->ctx, BW_DATA_LOSS, "%s: the attribute %s is damaged", s->where, s->name);
}

/* ---- Texts of variable length stand in collections ---- */

static bool find_in_collection(const part *file, uint64_t address, uint64_t index, part *found)
{
    part head, collection;
    if (!cut(file, address, 16, &head) || memcmp(head.data, "GCOL", 4) != 0 || head.data[4] != 1 ||
        !cut(file, address, number(head.data + 8, 8), &collection))
        return false;
    for (uint64_t at = 16; cut(&collection, at, 16, &head) && number(head.data, 2) != 0;) {
        const uint64_t size = number(head.data + 8, 8);
        if (number(head.data, 2) == index)
            return cut(&collection, at + 16, size, found);
        if (size > collection.size)
            return false;
        at += 16 + (size + 7) / 8 * 8;
    }
    return false;
}

static bw_status add_text(search *s, const part *text)
{
    const size_t length = strnlen((const char *)text->data, text->size);
    if (bwi_size_add(s->out.length, length) > TEXT_LIMIT)
        return bwi_fail(s->ctx, BW_DATA_LOSS, "%s: the attribute %s is longer than is read", s->where, s->name);
    bwi_text_add(&s->out, "%.*s%c", (int)length, (const char *)text->data, 0);
    s->count++;
    return s->out.failed ? BW_RESOURCE_EXHAUSTED : BW_OK;
}

static bw_status add_variable(search *s, const unsigned char *reference)
{
    static const unsigned char nothing[1];
    const uint64_t length = number(reference, 4);
    part text = {nothing, 0};
    if (length > 0 &&
        (!find_in_collection(&s->file, number(reference + 4, 8), number(reference + 12, 4), &text) || length > text.size))
        return damaged(s);
    text.size = length;
    return add_text(s, &text);
}

static bw_status add_values(search *s, const part *data, bool variable, size_t size, uint64_t count)
{
    bw_status status = BW_OK;
    for (uint64_t i = 0; i < count && status == BW_OK; i++) {
        part text = {data->data + i * size, size};
        status = variable ? add_variable(s, text.data) : add_text(s, &text);
    }
    return status;
}

/* ---- Attributes ---- */

/* The number of elements; false if it cannot be. */
static bool read_space(const part *space, uint64_t *count)
{
    if (space->size < 4)
        return false;
    const int version = space->data[0], rank = space->data[1];
    const size_t first = version == 1 ? 8 : 4;
    *count = version == 2 && space->data[3] == 2 ? 0 : 1;
    if ((version != 1 && version != 2) || rank > 32 || space->size < first + 8 * (size_t)rank)
        return false;
    for (int i = 0; i < rank; i++)
        if (__builtin_mul_overflow(*count, number(space->data + first + 8 * i, 8), count))
            return false;
    return true;
}

/* Cuts a message into name, type, space and data. Version 1 pads each to 8 bytes. */
static bool cut_attribute(const part *message, part parts[4])
{
    if (message->size < 8)
        return false;
    const int version = message->data[0];
    uint64_t at = version == 3 ? 9 : 8;
    if (version < 1 || version > 3 || (version > 1 && message->data[1] != 0)) /* shared types stand elsewhere */
        return false;
    for (int i = 0; i < 3; i++) {
        const uint64_t size = number(message->data + 2 + 2 * i, 2);
        if (!cut(message, at, size, &parts[i]))
            return false;
        at += version == 1 ? (size + 7) / 8 * 8 : size;
    }
    return at <= message->size && cut(message, at, message->size - at, &parts[3]);
}

static bw_status read_attribute(search *s, const part *message, bool *found)
{
    part parts[4];
    const size_t length = strlen(s->name);
    uint64_t count = 0;
    *found = false;
    if (!cut_attribute(message, parts))
        return BW_OK; /* of another name, perhaps */
    if (parts[0].size < length + 1 || memcmp(parts[0].data, s->name, length + 1) != 0)
        return BW_OK;
    *found = true;
    if (parts[1].size < 8 || !read_space(&parts[2], &count))
        return damaged(s);
    const int class_number = parts[1].data[0] & 15;
    const bool variable = class_number == CLASS_VARIABLE && (parts[1].data[1] & 15) == 1;
    const size_t size = (size_t)number(parts[1].data + 4, 4);
    if (count == 0) /* of any type: h5py's empty lists are of numbers */
        return BW_OK;
    if (class_number != CLASS_TEXT && !variable)
        return bwi_fail(s->ctx, BW_DATA_LOSS, "%s: the attribute %s is no text", s->where, s->name);
    if (size == 0 || (variable && size != REFERENCE_SIZE) || count > parts[3].size / size)
        return damaged(s);
    return add_values(s, &parts[3], variable, size, count);
}

/* ---- Headers ---- */

static void add_block(search *s, uint64_t address, uint64_t size)
{
    part block;
    if (s->block_count == BLOCK_LIMIT || !cut(&s->file, address, size, &block))
        return;
    if (s->new_header) { /* a signature before, a checksum behind */
        if (block.size < 8 || memcmp(block.data, "OCHK", 4) != 0)
            return;
        block.data += 4;
        block.size -= 8;
    }
    s->blocks[s->block_count++] = block;
}

static bool open_header(search *s, uint64_t address)
{
    part head;
    if (!cut(&s->file, address, 16, &head))
        return false;
    if (head.data[0] == 1) {
        add_block(s, address + 16, number(head.data + 8, 4));
        return s->block_count > 0;
    }
    if (memcmp(head.data, "OHDR", 4) != 0 || head.data[4] != 2)
        return false;
    const int flags = head.data[5], width = 1 << (flags & 3);
    uint64_t at = address + 6 + (flags & 0x20 ? 16u : 0u) + (flags & 0x10 ? 4u : 0u);
    part size;
    s->creation_order = (flags & 4) != 0;
    if (!cut(&s->file, at, (uint64_t)width, &size) || !cut(&s->file, at + (uint64_t)width, number(size.data, width), &s->blocks[0]))
        return false;
    s->block_count = 1;
    s->new_header = true;
    return true;
}

/* The next message of a block: its type and data. */
static bool next_message(const search *s, const part *block, uint64_t *at, int *type, part *message)
{
    part head;
    const uint64_t head_size = !s->new_header ? 8 : s->creation_order ? 6 : 4;
    if (!cut(block, *at, head_size, &head))
        return false;
    *type = (int)number(head.data, s->new_header ? 1 : 2);
    const uint64_t size = number(head.data + (s->new_header ? 1 : 2), 2);
    if (!cut(block, *at + head_size, size, message))
        return false;
    *at += head_size + size;
    return true;
}

bw_status bwi_hdf5_read_text(bw_context *ctx, const void *image, size_t size, uint64_t address, const char *where, const char *name,
                             char **texts, int *count)
{
    search s = {.ctx = ctx, .where = where, .name = name, .file = {image, size}, .out = {.ctx = ctx}};
    bw_status status = BW_OK;
    bool found = false;
    *texts = NULL;
    *count = 0;
    if (!open_header(&s, address))
        return damaged(&s);
    for (int b = 0; b < s.block_count && !found && status == BW_OK; b++) {
        part message;
        int type;
        for (uint64_t at = 0; !found && status == BW_OK && next_message(&s, &s.blocks[b], &at, &type, &message);) {
            if (type == MESSAGE_ATTRIBUTE)
                status = read_attribute(&s, &message, &found);
            else if (type == MESSAGE_CONTINUATION && message.size >= 16)
                add_block(&s, number(message.data, 8), number(message.data + 8, 8));
        }
    }
    if (status != BW_OK) {
        bwi_text_free(&s.out);
        return status;
    }
    *texts = s.out.bytes;
    *count = s.count;
    return BW_OK;
}
