/*
 * format: bytes in and out, without meaning: npy headers and members of zip files. What is read is hostile: every
 * length is checked against what is there before it is used, and nothing found in a file is ever evaluated.
 *
 * Messages begin with `where`, a text such as "digits.npz: x.npy" that the caller makes.
 */
#ifndef BWI_FORMAT_H
#define BWI_FORMAT_H

#include "base/base.h"

/* ---- Text from files (quote.c) ---- */

#define BWI_QUOTE_SIZE 96
/* At most 60 characters of `bytes` for a message, in quotes; what is not printable becomes '?'. Returns the buffer. */
char *bwi_quote(char buffer[BWI_QUOTE_SIZE], const void *bytes, size_t size);

/* ---- npy headers, versions 1 to 3 (npy.c) ---- */

#define BWI_NPY_PREFIX 12              /* bytes that bwi_npy_begin needs; no npy file is shorter */
#define BWI_NPY_HEADER_LIMIT (1 << 16) /* a longer header is refused: those of plain arrays have about 100 bytes */

typedef struct bwi_npy {
    size_t offset; /* where the values begin */
    size_t bytes;  /* of all values */
    bw_dtype dtype;
    bool swapped; /* the file has the other byte order */
    bool fortran; /* the first axis runs fastest */
    int rank;
    int64_t shape[BW_MAX_RANK]; /* extents of 0 or more */
} bwi_npy;

/* Checks magic and version, and sets `offset` from the first `size` bytes of a file. */
bw_status bwi_npy_begin(bw_context *ctx, bwi_npy *npy, const unsigned char *bytes, size_t size, const char *where);
/* Parses the header; `bytes` are the file's first npy->offset ones. */
bw_status bwi_npy_parse(bw_context *ctx, bwi_npy *npy, const unsigned char *bytes, const char *where);
/* The strides in bytes that go with the order of the axes. */
void bwi_npy_strides(const bwi_npy *npy, int64_t *strides);
/* Turns values of the other byte order into this machine's. */
void bwi_npy_swap(const bwi_npy *npy, void *values);

/* ---- Members of a zip file (zip.c) ---- */

typedef struct bwi_zip bwi_zip;

typedef struct bwi_zip_member {
    const char *name; /* lent until bwi_zip_close; any bytes */
    size_t size;      /* unpacked, as declared */
    size_t packed;
    bool stored; /* not deflated */
} bwi_zip_member;

/* Keeps `file` (mapped) and `path` until bwi_zip_close. Refuses members that overlap. */
bw_status bwi_zip_open(bw_context *ctx, bwi_zip **zip, const bwi_bytes *file, const char *path);
void bwi_zip_close(bwi_zip *zip); /* NULL is fine */
int64_t bwi_zip_count(const bwi_zip *zip);
/* Fails for a member that is encrypted, is packed by another method, or declares more than deflate can expand to. */
bw_status bwi_zip_member_at(bwi_zip *zip, int64_t index, bwi_zip_member *member);
const char *bwi_zip_name(const bwi_zip *zip, int64_t index); /* "" if there is none */

/* Reads a member from its beginning: begin, read any number of times, end. One at a time. `end` fails if bytes are
 * left or the checksum is wrong; without it, the next begin or the close drops the member. */
bw_status bwi_zip_begin(bwi_zip *zip, int64_t index);
bw_status bwi_zip_read(bwi_zip *zip, void *to, size_t size);
bw_status bwi_zip_end(bwi_zip *zip);

/* Where a stored member's bytes stand in the mapped file, compared with what libzip reads and checked by its checksum;
 * *data is NULL if they cannot be used in place. */
bw_status bwi_zip_in_place(bwi_zip *zip, int64_t index, const unsigned char **data);

#endif
