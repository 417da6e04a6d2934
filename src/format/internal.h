/* What the files of format share: zlib's format and checksums. */
#ifndef BWI_FORMAT_INTERNAL_H
#define BWI_FORMAT_INTERNAL_H

#include "format/format.h"

/* Unpacks bytes of zlib's format as a whole; the number of bytes, or 0: damaged, or more than `capacity`; SIZE_MAX: no memory. For
 * workers. */
size_t bwi_inflate(bw_context *ctx, const void *from, size_t size, void *to, size_t capacity);

/* gzip's and zip's sum (gzip.c) of the bytes before, at first 0, and of these. */
uint32_t bwi_crc32(uint32_t sum, const void *bytes, size_t size);

/* ---- CRC-32C, Castagnoli's (crc32c.c) ---- */

uint32_t bwi_crc32c_tables(const void *bytes, size_t size); /* the same, whatever the processor */

/* Adds bytes to a message as they are (wire_write.c). */
void bwi_wire_raw(bwi_wire *wire, const void *bytes, size_t size);

#endif
