/*
 * How much larger a packed file may become. deflate expands at most 1,032-fold, and a few megabytes of that fill a machine's
 * memory, so one rule holds for zip, gzip and HDF5: what unpacks to more than FREE_BYTES must not expand by more than EXPANSION.
 * One-hot targets of 1,000 classes reach 605, of 10,000 classes 936, an array of zeros 1,028.
 */
#include "format/format.h"

enum { EXPANSION = 960, FREE_BYTES = 32 << 20 };

bw_status bwi_expansion_check(bw_context *ctx, const char *where, uint64_t packed, uint64_t unpacked)
{
    char from[32], to[32];
    if (unpacked <= FREE_BYTES || unpacked / EXPANSION <= packed) {
        return BW_OK;
    }
    return bwi_fail_file(ctx, BW_INVALID_ARGUMENT, where,
                         "%s unpack to %s or more, over %d-fold; if that is meant, save it uncompressed or read it with unpack_any "
                         "(--unpack-any)",
                         bwi_format_bytes(from, (size_t)packed), bwi_format_bytes(to, (size_t)unpacked), EXPANSION);
}
