/*
 * Inside of format: the bytes of an HDF5 file, read without the library. Every place is checked against the file's size before it
 * is looked at.
 */
#ifndef BWI_FORMAT_HDF5_BYTES_H
#define BWI_FORMAT_HDF5_BYTES_H

#include "base/base.h"

/* A part of the file. */
typedef struct h5_part {
    const unsigned char *data;
    size_t size;
} h5_part;

uint64_t h5_number(const unsigned char *at, int bytes);
/* `size` bytes from `offset` on; false if they are not all there. */
bool h5_cut(const h5_part *whole, uint64_t offset, uint64_t size, h5_part *cut_out);

enum { H5_BLOCK_LIMIT = 64 };

/* An object's header: messages, in several blocks. */
typedef struct h5_header {
    h5_part file;
    h5_part blocks[H5_BLOCK_LIMIT];
    int block_count;
    bool new_header; /* version 2 */
    bool creation_order;
    int block; /* of the next message */
    uint64_t at;
} h5_header;

bool h5_header_open(h5_header *header, const h5_part *file, uint64_t address);
/* The next message: its type and data; blocks that continue the header are followed. False: no more. */
bool h5_header_next(h5_header *header, int *type, h5_part *message);

/* ---- Chunks (hdf5_chunk.c) ---- */

enum { H5_FILTER_LIMIT = 8 };

typedef struct h5_chunks {
    h5_part file;
    uint64_t tree; /* where the index begins */
    int ndim;
    int64_t shape[BW_MAX_NDIM], chunk[BW_MAX_NDIM];
    size_t element, chunk_bytes;
    int64_t count; /* of chunks */
    int filters;
    int filter[H5_FILTER_LIMIT];
} h5_chunks;

/* What the header at `address` says of a dataset of this shape, and whether all chunks are there. NULL, or what is wrong. */
const char *h5_chunks_open(h5_chunks *chunks, const h5_part *file, uint64_t address, int ndim, const int64_t *shape,
                           size_t element);
/* All values in row-major order, as the file has them. */
bw_status h5_chunks_read(bw_context *ctx, const h5_chunks *chunks, const char *where, void *to);

#endif
