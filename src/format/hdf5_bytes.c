/* Numbers, parts and object headers (versions 1 and 2) of HDF5 files. */
#include "format/hdf5_bytes.h"

#include <string.h>

enum { MESSAGE_CONTINUATION = 0x10 };

uint64_t h5_number(const unsigned char *at, int bytes)
{
    uint64_t value = 0;
    for (int i = 0; i < bytes; i++) {
        value |= (uint64_t)at[i] << 8 * i;
    }
    return value;
}

bool h5_cut(const h5_part *whole, uint64_t offset, uint64_t size, h5_part *cut_out)
{
    if (offset > whole->size || size > whole->size - offset) {
        return false;
    }
    *cut_out = (h5_part){whole->data + offset, (size_t)size};
    return true;
}

static void add_block(h5_header *header, uint64_t address, uint64_t size)
{
    h5_part block;
    if (header->block_count == H5_BLOCK_LIMIT || !h5_cut(&header->file, address, size, &block)) {
        return;
    }
    if (header->new_header) { /* a signature before, a checksum behind */
        if (block.size < 8 || memcmp(block.data, "OCHK", 4) != 0) {
            return;
        }
        block.data += 4;
        block.size -= 8;
    }
    header->blocks[header->block_count++] = block;
}

/* An object header has two versions: 1 is a prefix of 16 bytes, 2 begins with "OHDR" and has optional times and limits before its
 * size. */
bool h5_header_open(h5_header *header, const h5_part *file, uint64_t address)
{
    h5_part head, size;
    *header = (h5_header){.file = *file};
    if (!h5_cut(file, address, 16, &head)) {
        return false;
    }
    if (head.data[0] == 1) {
        add_block(header, address + 16, h5_number(head.data + 8, 4));
        return header->block_count > 0;
    }
    if (memcmp(head.data, "OHDR", 4) != 0 || head.data[4] != 2) {
        return false;
    }
    int flags = head.data[5], width = 1 << (flags & 3);
    uint64_t at = address + 6 + (flags & 0x20 ? 16u : 0u) + (flags & 0x10 ? 4u : 0u);
    header->creation_order = (flags & 4) != 0;
    if (!h5_cut(file, at, (uint64_t)width, &size) ||
        !h5_cut(file, at + (uint64_t)width, h5_number(size.data, width), &header->blocks[0])) {
        return false;
    }
    header->block_count = 1;
    header->new_header = true;
    return true;
}

static bool next_in_block(h5_header *header, int *type, h5_part *message)
{
    const h5_part *block = &header->blocks[header->block];
    uint64_t head_size = !header->new_header ? 8 : header->creation_order ? 6 : 4;
    h5_part head;
    if (!h5_cut(block, header->at, head_size, &head)) {
        return false;
    }
    *type = (int)h5_number(head.data, header->new_header ? 1 : 2);
    uint64_t size = h5_number(head.data + (header->new_header ? 1 : 2), 2);
    if (!h5_cut(block, header->at + head_size, size, message)) {
        return false;
    }
    header->at += head_size + size;
    return true;
}

bool h5_header_next(h5_header *header, int *type, h5_part *message)
{
    while (header->block < header->block_count) {
        if (!next_in_block(header, type, message)) {
            header->block++;
            header->at = 0;
        } else if (*type != MESSAGE_CONTINUATION) {
            return true;
        } else if (message->size >= 16) {
            add_block(header, h5_number(message->data, 8), h5_number(message->data + 8, 8));
        }
    }
    return false;
}
