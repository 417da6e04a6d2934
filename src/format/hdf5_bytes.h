/*
 * Inside of format: the bytes of an HDF5 file. Every place is checked against the file's size before it is looked at, and the bytes
 * that are looked at are counted: a file whose parts refer to each other in circles, or many times over, comes to an end.
 */
#ifndef BWI_FORMAT_HDF5_BYTES_H
#define BWI_FORMAT_HDF5_BYTES_H

#include "format/format.h"

/* A part of the file. */
typedef struct h5_part {
    const unsigned char *data;
    size_t size;
} h5_part;

/* A file, without what may stand before its signature. */
typedef struct h5_file {
    bw_context *ctx;
    h5_part bytes;
    uint64_t looked; /* bytes so far, of those that describe others */
} h5_file;

/* An address that refers to nothing. */
#define H5_NOWHERE UINT64_MAX

uint64_t bwi_h5_number(const unsigned char *at, int bytes); /* at most 8 */
/* `size` bytes from `offset` on; false if they are not all there. */
bool bwi_h5_cut(const h5_part *whole, uint64_t offset, uint64_t size, h5_part *cut_out);
/* The same of a file, counted. False also if the file was looked at too often, or the context is cancelled. */
bool bwi_h5_look(h5_file *file, uint64_t address, uint64_t size, h5_part *found);
/* The same of a block that begins with a signature of four letters and a version of 0 and ends with a checksum. */
bool bwi_h5_look_block(h5_file *file, uint64_t address, uint64_t size, const char *signature, h5_part *found);
/* Bob Jenkins's lookup3, which newer parts of files end with. */
uint32_t bwi_h5_checksum(const unsigned char *at, size_t size);
bool bwi_h5_intact(const h5_part *block); /* whether its last four bytes are the checksum of all others */

/* ---- Object headers: messages, in several blocks ---- */

enum { H5_BLOCK_LIMIT = 64 };

typedef enum h5_message_type {
    H5_MESSAGE_SPACE = 0x01,
    H5_MESSAGE_LINKS = 0x02, /* where a group's links are, if not in its header */
    H5_MESSAGE_TYPE = 0x03,
    H5_MESSAGE_LINK = 0x06,
    H5_MESSAGE_EXTERNAL = 0x07,
    H5_MESSAGE_LAYOUT = 0x08,
    H5_MESSAGE_FILTERS = 0x0b,
    H5_MESSAGE_ATTRIBUTE = 0x0c,
    H5_MESSAGE_CONTINUATION = 0x10,
    H5_MESSAGE_SYMBOLS = 0x11, /* the same for older groups */
    H5_MESSAGE_ATTRIBUTES = 0x15
} h5_message_type;

typedef struct h5_message {
    int type;
    bool shared; /* its data is a reference to elsewhere */
    h5_part data;
} h5_message;

typedef struct h5_header {
    h5_file *file;
    h5_part blocks[H5_BLOCK_LIMIT];
    int block_count;
    bool new_header; /* version 2 */
    bool creation_order;
    bool damaged; /* there may have been more messages */
    int block;    /* of the next message */
    uint64_t at;
} h5_header;

bool bwi_h5_header_open(h5_header *header, h5_file *file, uint64_t address);
/* The next message; blocks that continue the header are followed. False: no more, or what follows is damaged. */
bool bwi_h5_header_next(h5_header *header, h5_message *message);

/* ---- Many links or attributes of one object (hdf5_dense.c) ---- */

enum { H5_DENSE_LINKS = 5, H5_DENSE_ATTRIBUTES = 8 };

/* With each object of the heap, in the order of the tree that lists them; false stops. */
typedef bool bwi_h5_dense_visit(void *user, const h5_part *object);

/* NULL, or what is wrong. A visit that stops is nothing wrong. */
const char *bwi_h5_dense_walk(h5_file *file, uint64_t heap, uint64_t tree, int kind, bwi_h5_dense_visit *visit, void *user);

/* ---- Groups (hdf5_group.c) ---- */

typedef struct h5_link {
    const char *name; /* not ended by NUL */
    size_t length;
    bool hard;
    uint64_t address; /* of the object's header, of a hard link */
} h5_link;

typedef bool bwi_h5_link_visit(void *user, const h5_link *link); /* false stops */

/* NULL, or what is wrong with the group whose header is at `address`. A visit that stops is nothing wrong. */
const char *bwi_h5_links_walk(h5_file *file, uint64_t address, bwi_h5_link_visit *visit, void *user);

/* ---- What a dataset holds (hdf5_type.c) ---- */

/* Recognises the usual numbers and h5py's booleans, in either byte order; false: it is another type. */
bool bwi_h5_type_read(const h5_part *message, bw_dtype *dtype, bool *swapped);
/* False: it has more axes than arrays do, or is damaged. */
bool bwi_h5_space_read(const h5_part *message, int *ndim, int64_t *shape);
/* Converts `count` values to float32 or int64, those that are out of range to the nearest. */
void bwi_h5_convert(const unsigned char *from, bw_dtype dtype, bool swapped, size_t count, bw_dtype wanted, void *to);
void bwi_h5_swap(unsigned char *values, size_t size, size_t count);

/* ---- Chunks (hdf5_index.c, hdf5_chunk.c) ---- */

enum { H5_FILTER_LIMIT = 8, H5_FILTER_DEFLATE = 1, H5_FILTER_SHUFFLE = 2, H5_FILTER_FLETCHER = 3 };

typedef enum h5_index { H5_INDEX_SINGLE = 1, H5_INDEX_IMPLICIT, H5_INDEX_ARRAY, H5_INDEX_TREE = 16 } h5_index;

typedef struct h5_chunks {
    h5_file *file;
    h5_index index;
    uint64_t address; /* where the index begins, or the values */
    int ndim;
    int64_t shape[BW_MAX_NDIM], chunk[BW_MAX_NDIM];
    size_t element, chunk_bytes;
    int64_t count;   /* of chunks */
    uint64_t packed; /* bytes of all of them in the file */
    int filters;
    int filter[H5_FILTER_LIMIT];
    uint64_t single_size; /* of a single chunk, packed */
    uint32_t single_skipped;
} h5_chunks;

typedef struct h5_chunk_place {
    uint64_t address;
    size_t size;
    uint32_t skipped; /* filters, by bits */
    int64_t first[BW_MAX_NDIM];
} h5_chunk_place;

typedef bool bwi_h5_chunk_visit(void *user, const h5_chunk_place *place); /* false: it is damaged */

/* What the header at `address` says of a dataset of this shape, and whether all chunks are there. NULL, or what is wrong. */
const char *bwi_h5_chunks_open(h5_chunks *chunks, h5_file *file, uint64_t address, int ndim, const int64_t *shape, size_t element);
/* Calls `visit` with each chunk, if it is not NULL. False: the index is damaged, or a visit returned false. */
bool bwi_h5_chunks_walk(const h5_chunks *chunks, bwi_h5_chunk_visit *visit, void *user, int64_t *found);
/* All values in row-major order, as the file has them. */
bw_status bwi_h5_chunks_read(bw_context *ctx, const h5_chunks *chunks, const char *where, void *to);

/* ---- Texts in attributes (hdf5_text.c) ---- */

/* A text attribute of the object whose header is at `address`, as bwi_hdf5_attribute. */
bw_status bwi_h5_text_read(h5_file *file, uint64_t address, const char *where, const char *name, char **texts, int *count);

#endif
