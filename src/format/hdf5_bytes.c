/* Numbers, parts, checksums and object headers (versions 1 and 2) of HDF5 files. */
#include "format/hdf5_bytes.h"

#include <string.h>

uint64_t bwi_h5_number(const unsigned char *at, int bytes)
{
    uint64_t value = 0;
    for (int i = 0; i < bytes; i++) {
        value |= (uint64_t)at[i] << 8 * i;
    }
    return value;
}

bool bwi_h5_cut(const h5_part *whole, uint64_t offset, uint64_t size, h5_part *cut_out)
{
    if (offset > whole->size || size > whole->size - offset) {
        return false;
    }
    *cut_out = (h5_part){whole->data + offset, (size_t)size};
    return true;
}

/* An intact file is looked at twice or so: once when it is listed, once when it is read. */
bool bwi_h5_look(h5_file *file, uint64_t address, uint64_t size, h5_part *found)
{
    enum { TIMES = 16, SPARE = 1 << 20 };
    if (!bwi_h5_cut(&file->bytes, address, size, found) || bwi_cancelled(file->ctx)) {
        return false;
    }
    file->looked += size + 1;
    return file->looked / TIMES <= (uint64_t)file->bytes.size + SPARE;
}

/* ---- Checksums ---- */

static uint32_t rotated(uint32_t value, int bits)
{
    return value << bits | value >> (32 - bits);
}

static void mix(uint32_t s[3])
{
    static const int bits[6] = {4, 6, 8, 16, 19, 4};
    for (int i = 0; i < 6; i++) {
        uint32_t *a = &s[i % 3], *b = &s[(i + 1) % 3], *c = &s[(i + 2) % 3];
        *a -= *c;
        *a ^= rotated(*c, bits[i]);
        *c += *b;
    }
}

static void finish(uint32_t s[3])
{
    static const int bits[7] = {14, 11, 25, 16, 4, 14, 24};
    for (int i = 0; i < 7; i++) {
        uint32_t *to = &s[(i + 2) % 3], *from = &s[(i + 1) % 3];
        *to ^= *from;
        *to -= rotated(*from, bits[i]);
    }
}

/* Twelve bytes at a time are added to three words, which are mixed; the last ones are mixed more thoroughly. */
uint32_t bwi_h5_checksum(const unsigned char *at, size_t size)
{
    uint32_t start = 0xdeadbeefu + (uint32_t)size, s[3] = {start, start, start};
    for (; size > 12; size -= 12, at += 12) {
        for (int i = 0; i < 3; i++) {
            s[i] += (uint32_t)bwi_h5_number(at + 4 * i, 4);
        }
        mix(s);
    }
    if (size == 0) {
        return s[2];
    }
    for (size_t i = 0; i < size; i++) {
        s[i / 4] += (uint32_t)at[i] << 8 * (i % 4);
    }
    finish(s);
    return s[2];
}

/* A fuzzer would never get past it. */
bool bwi_h5_intact(const h5_part *block)
{
#ifdef FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION
    return block->size >= 4;
#else
    return block->size >= 4 && bwi_h5_checksum(block->data, block->size - 4) == bwi_h5_number(block->data + block->size - 4, 4);
#endif
}

bool bwi_h5_look_block(h5_file *file, uint64_t address, uint64_t size, const char *signature, h5_part *found)
{
    return size >= 9 && bwi_h5_look(file, address, size, found) && memcmp(found->data, signature, 4) == 0 && found->data[4] == 0 &&
           bwi_h5_intact(found);
}

/* ---- Object headers ---- */

static bool add_block(h5_header *header, uint64_t address, uint64_t size)
{
    h5_part block;
    if (header->block_count == H5_BLOCK_LIMIT || !bwi_h5_look(header->file, address, size, &block)) {
        return false;
    }
    if (header->new_header) { /* a signature before, a checksum behind */
        if (block.size < 8 || memcmp(block.data, "OCHK", 4) != 0 || !bwi_h5_intact(&block)) {
            return false;
        }
        block.data += 4;
        block.size -= 8;
    }
    header->blocks[header->block_count++] = block;
    return true;
}

/* Version 2 begins with "OHDR" and has optional times and limits before the size of its first block. */
static bool open_new(h5_header *header, uint64_t address, int flags)
{
    h5_part head, whole;
    uint64_t width = 1u << (flags & 3), before = 6 + (flags & 0x20 ? 16u : 0u) + (flags & 0x10 ? 4u : 0u) + width;
    if (!bwi_h5_look(header->file, address, before, &head)) {
        return false;
    }
    uint64_t size = bwi_h5_number(head.data + before - width, (int)width);
    if (size > header->file->bytes.size || !bwi_h5_look(header->file, address, before + size + 4, &whole) ||
        !bwi_h5_intact(&whole)) {
        return false;
    }
    header->creation_order = (flags & 4) != 0;
    header->new_header = true;
    header->blocks[header->block_count++] = (h5_part){whole.data + before, (size_t)size};
    return true;
}

bool bwi_h5_header_open(h5_header *header, h5_file *file, uint64_t address)
{
    h5_part head;
    *header = (h5_header){.file = file};
    if (!bwi_h5_look(file, address, 16, &head)) {
        return false;
    }
    if (head.data[0] == 1) { /* a prefix of 16 bytes */
        return add_block(header, address + 16, bwi_h5_number(head.data + 8, 4));
    }
    return memcmp(head.data, "OHDR", 4) == 0 && head.data[4] == 2 && open_new(header, address, head.data[5]);
}

/* Newer blocks may end with a gap that is too small for a message. */
static bool next_in_block(h5_header *header, h5_message *message)
{
    const h5_part *block = &header->blocks[header->block];
    uint64_t head_size = !header->new_header ? 8 : header->creation_order ? 6 : 4;
    int type_size = header->new_header ? 1 : 2;
    h5_part head;
    if (!bwi_h5_cut(block, header->at, head_size, &head)) {
        return false;
    }
    uint64_t size = bwi_h5_number(head.data + type_size, 2);
    message->type = (int)bwi_h5_number(head.data, type_size);
    message->shared = (head.data[type_size + 2] & 2) != 0;
    if (!bwi_h5_cut(block, header->at + head_size, size, &message->data)) {
        header->damaged = true;
        return false;
    }
    header->at += head_size + size;
    return true;
}

bool bwi_h5_header_next(h5_header *header, h5_message *message)
{
    while (header->block < header->block_count && !header->damaged) {
        if (!next_in_block(header, message)) {
            header->block++;
            header->at = 0;
        } else if (message->type != H5_MESSAGE_CONTINUATION) {
            return true;
        } else if (message->data.size < 16 ||
                   !add_block(header, bwi_h5_number(message->data.data, 8), bwi_h5_number(message->data.data + 8, 8))) {
            header->damaged = true;
        }
    }
    return false;
}
