/*
 * format: bytes in and out, without meaning: npy headers, members of zip files, gzip, numbers in text. What is read is hostile:
 * every length is checked against what is there before it is used, and nothing found in a file is ever evaluated.
 *
 * Messages begin with `where`, a text such as "digits.npz: x.npy" that the caller makes; who opened the file gives its true name to
 * bwi_locate_file.
 */
#ifndef BWI_FORMAT_H
#define BWI_FORMAT_H

#include "base/base.h"

/* ---- Text from files (quote.c) ---- */

#define BWI_QUOTE_SIZE 96
/* At most 60 characters of `bytes` for a message, in quotes; what is not printable becomes '?'. Returns the buffer. */
char *bwi_quote(char buffer[BWI_QUOTE_SIZE], const void *bytes, size_t size);

/* ---- JSON, read (json.c) ---- */

typedef struct bwi_json bwi_json;

typedef enum bwi_json_kind {
    BWI_JSON_MISSING, /* of NULL */
    BWI_JSON_NULL,
    BWI_JSON_BOOL,
    BWI_JSON_WHOLE,
    BWI_JSON_REAL,
    BWI_JSON_TEXT,
    BWI_JSON_LIST,
    BWI_JSON_OBJECT
} bwi_json_kind;

/* Parses a tree of values, to be freed. It is bounded in depth and size. Keys are unique; texts are UTF-8 without NUL. All
 * functions below take NULL for a value that is not there. */
bw_status bwi_json_parse(bw_context *ctx, bwi_json **json, const void *text, size_t size, const char *where);
void bwi_json_free(bwi_json *json); /* NULL is fine */
bwi_json_kind bwi_json_kind_of(const bwi_json *json);
const bwi_json *bwi_json_get(const bwi_json *object, const char *key); /* NULL: none */
int bwi_json_count(const bwi_json *json);                              /* of a list or an object; 0 of others */
const bwi_json *bwi_json_at(const bwi_json *list, int index);
/* Returns the members one after another, in the file's order: *key is NULL before the first. NULL: no more. */
const bwi_json *bwi_json_next(const bwi_json *object, const char **key);
const char *bwi_json_text(const bwi_json *json); /* NULL: no text */
bool bwi_json_true(const bwi_json *json);
bool bwi_json_whole(const bwi_json *json, int64_t *value);
bool bwi_json_number(const bwi_json *json, double *value); /* whole or real */

/* ---- JSON, written (json_write.c) ---- */

enum { BWI_JSON_DEPTH = 80, BWI_SHORTEST_SIZE = 40 };

typedef struct bwi_json_writer {
    bwi_text text; /* set its ctx; free it */
    int depth;
    bool filled[BWI_JSON_DEPTH];
    char brackets[BWI_JSON_DEPTH];
} bwi_json_writer;

/* `key` is NULL in lists and for the outermost value; `bracket` is { or [. */
void bwi_json_begin(bwi_json_writer *writer, const char *key, char bracket);
void bwi_json_end(bwi_json_writer *writer);
void bwi_json_put_text(bwi_json_writer *writer, const char *key, const char *value); /* NULL: null */
void bwi_json_put_whole(bwi_json_writer *writer, const char *key, int64_t value);
void bwi_json_put_real(bwi_json_writer *writer, const char *key, double value); /* NaN and infinities: null */
void bwi_json_put_bool(bwi_json_writer *writer, const char *key, bool value);
void bwi_json_put_null(bwi_json_writer *writer, const char *key);
/* Writes the fewest digits that read back as the same double, with a point or an exponent; returns the buffer. */
char *bwi_shortest(char buffer[BWI_SHORTEST_SIZE], double value);

/* ---- CRC-32C, Castagnoli's (crc32c.c) ---- */

uint32_t bwi_crc32c(const void *bytes, size_t size);

/* ---- HDF5 files in memory (hdf5*.c) ---- */

typedef struct bwi_hdf5 bwi_hdf5;

typedef struct bwi_hdf5_entry {
    const char *name; /* "layers/dense/vars/0"; lent until bwi_hdf5_close */
    bw_dtype dtype;   /* of the file; any integer or float */
    int ndim;
    int64_t shape[BW_MAX_NDIM];
    bool stored;         /* the file can hold that many values: a reader may allocate them */
    bool chunked;        /* in chunks */
    const char *refused; /* why it cannot be read, if that is known; NULL: it is stored, or damaged */
    uint64_t header;     /* where its header is (chunked) or its values, and whether they are in the other order; for this */
    bool swapped;        /* module only */
    uint64_t packed;     /* bytes of all chunks in the file */
    int64_t offset;      /* where the values lie in the image, if without gaps and in this machine's order; -1: they must be read */
} bwi_hdf5_entry;

/* Lists the datasets of an image of an HDF5 file, which is kept until bwi_hdf5_close and not copied: it may be larger than
 * memory. Refuses links that are not hard, virtual and external datasets. No file is ever opened, and the time is bounded by the
 * image's size. */
bw_status bwi_hdf5_open(bw_context *ctx, bwi_hdf5 **file, const void *image, size_t size, const char *where);
void bwi_hdf5_close(bwi_hdf5 *file); /* NULL is fine */
int bwi_hdf5_count(const bwi_hdf5 *file);
const bwi_hdf5_entry *bwi_hdf5_at(const bwi_hdf5 *file, int index);
const bwi_hdf5_entry *bwi_hdf5_find(const bwi_hdf5 *file, const char *name); /* NULL: none */
/* Reads `count` elements of the first axis from `offset` on (of a scalar: 1 from 0), converted to float32 or int64. */
bw_status bwi_hdf5_read(bwi_hdf5 *file, const bwi_hdf5_entry *entry, int64_t offset, int64_t count, bw_dtype dtype, void *to);
/* Reads all values of a chunked dataset, in its own type and this machine's byte order. */
bw_status bwi_hdf5_read_chunks(bwi_hdf5 *file, const bwi_hdf5_entry *entry, void *to);
/* Reads a text attribute of a group ("" is the root), or a list of texts, one after another, each ended by NUL. *texts is to be
 * released; if there is no such attribute, or nothing in it, *count is 0 and *texts NULL. */
bw_status bwi_hdf5_attribute(bwi_hdf5 *file, const char *group, const char *name, char **texts, int *count);

/* A dataset to be written: float32, int64 or int32, little-endian. The groups in its path are created. */
typedef struct bwi_hdf5_part {
    const char *name;
    bw_dtype dtype;
    int ndim;
    const int64_t *shape;
    size_t bytes, offset; /* of its values in the file: set by bwi_hdf5_lay_out, in the order of the parts */
} bwi_hdf5_part;

typedef struct bwi_hdf5_head {
    void *bytes; /* to be released */
    size_t size;
    size_t total; /* of the whole file */
} bwi_hdf5_head;

/* Makes all of a file but its values. It consists of the head, then of the values of each part at its offset; bytes between them
 * are 0. The same parts in the same order give the same bytes. */
bw_status bwi_hdf5_lay_out(bw_context *ctx, bwi_hdf5_part *parts, int count, bwi_hdf5_head *head);

/* ---- npy headers, versions 1 to 3 (npy.c) ---- */

#define BWI_NPY_PREFIX 12              /* bytes that bwi_npy_begin needs; no npy file is shorter */
#define BWI_NPY_HEADER_LIMIT (1 << 16) /* a longer header is refused; those of simple arrays have about 100 bytes */

typedef struct bwi_npy {
    size_t offset; /* where the values begin */
    size_t bytes;  /* of all values */
    bw_dtype dtype;
    bool swapped; /* the file has the other byte order */
    bool fortran; /* the first axis varies fastest */
    int ndim;
    int64_t shape[BW_MAX_NDIM]; /* extents of 0 or more */
} bwi_npy;

/* Checks magic and version, and sets `offset` from the first `size` bytes of a file. */
bw_status bwi_npy_begin(bw_context *ctx, bwi_npy *npy, const unsigned char *bytes, size_t size, const char *where);
/* Parses the header; `bytes` are the file's first npy->offset ones. */
bw_status bwi_npy_parse(bw_context *ctx, bwi_npy *npy, const unsigned char *bytes, const char *where);
/* Computes the strides in bytes that follow from the order of the axes. */
void bwi_npy_strides(const bwi_npy *npy, int64_t *strides);
/* Converts values of the other byte order to this machine's. */
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

/* Finds where a stored member's bytes lie in the mapped file; they are compared with what libzip reads, and with the checksum.
 * *data is NULL if they cannot be used in place. */
bw_status bwi_zip_in_place(bwi_zip *zip, int64_t index, const unsigned char **data);

/* ---- Zip files, written (zip_write.c) ---- */

enum { BWI_ZIP_NAME = 64 }; /* no name of a member is longer */

/* Set `file`; begin a member, put its bytes, end it; finish after the last one; free in any case. */
typedef struct bwi_zip_out {
    bwi_file_out *file;
    unsigned char *central;
    size_t central_bytes;
    int count;
    const char *name; /* and so on: of the member that is being written */
    size_t size, put;
    uint64_t begin;
    uint32_t sum;
} bwi_zip_out;

/* Keeps `name` until the member's end; `size` bytes must be put. */
bw_status bwi_zip_out_begin(bwi_zip_out *out, const char *name, size_t size);
bw_status bwi_zip_out_put(bwi_zip_out *out, const void *data, size_t size);
bwi_byte_sink bwi_zip_out_sink(bwi_zip_out *out);
bw_status bwi_zip_out_end(bwi_zip_out *out);
bw_status bwi_zip_out_finish(bwi_zip_out *out);
void bwi_zip_out_free(bwi_zip_out *out);

/* ---- How much larger a packed file may become (expand.c) ---- */

/* Fails if that is more than the rule allows. `where` is the file, or begins with its path. */
bw_status bwi_expansion_check(bw_context *ctx, const char *where, uint64_t packed, uint64_t unpacked);

/* ---- gzip (gzip.c) ---- */

typedef struct bwi_gzip bwi_gzip;

bool bwi_gzip_is(const bwi_bytes *file);
/* Keeps `file` (mapped) and `path` until bwi_gzip_close. `any`: it may expand by any factor. */
bw_status bwi_gzip_open(bw_context *ctx, bwi_gzip **gzip, const bwi_bytes *file, bool any, const char *path);
void bwi_gzip_close(bwi_gzip *gzip); /* NULL is fine */
/* Packs bytes into a buffer that the caller releases with bwi_release; the same bytes give the same file. */
bw_status bwi_gzip_pack(bw_context *ctx, const void *data, size_t size, void **packed, size_t *packed_size);
/* Unpacks the next bytes: fewer than `size` only at the end, once the checksum has proved right. */
bw_status bwi_gzip_read(bwi_gzip *gzip, void *to, size_t size, size_t *got);

/* Standard input, as it is or compressed by gzip, which is recognised by its first two bytes. */
typedef struct bwi_input {
    bwi_pipe pipe;
    bwi_gzip *gzip;
    unsigned char first[2];
    size_t ahead; /* bytes of `first` that were read and not handed out */
    bool begun;
    bool any; /* it may expand by any factor */
} bwi_input;

bw_status bwi_input_open(bw_context *ctx, bwi_input *input, bool any);
void bwi_input_close(bw_context *ctx, bwi_input *input);
/* Reads what has arrived, at least one byte; 0 at the end. */
bw_status bwi_input_read(bw_context *ctx, bwi_input *input, void *to, size_t size, size_t *got);

/* ---- Messages of protobuf, written (wire_write.c) ---- */

enum { BWI_WIRE_DEPTH = 8 };

typedef struct bwi_wire {
    bw_context *ctx;
    unsigned char *bytes;
    size_t length, capacity;
    struct bwi_wire_gap *gaps;
    int gap_count, gap_capacity;
    size_t begun[BWI_WIRE_DEPTH]; /* messages not ended yet, and the first gap of each */
    int begun_gap[BWI_WIRE_DEPTH];
    int depth;
    bool failed; /* an allocation failed, and nothing more is written */
} bwi_wire;

/* Bytes that are not in the message yet: whoever writes it puts them in at `at`, which counts without gaps. */
typedef struct bwi_wire_gap {
    size_t at, size;
    int number; /* the caller's */
} bwi_wire_gap;

void bwi_wire_put(bwi_wire *wire, int field, int64_t value);
void bwi_wire_put_float(bwi_wire *wire, int field, float value);
void bwi_wire_put_double(bwi_wire *wire, int field, double value);
void bwi_wire_put_bytes(bwi_wire *wire, int field, const void *bytes, size_t size);
void bwi_wire_put_text(bwi_wire *wire, int field, const char *text);
void bwi_wire_put_gap(bwi_wire *wire, int field, size_t size, int number);
/* Adds the bytes of a double as they are. */
void bwi_wire_raw_double(bwi_wire *wire, double value);
/* Adds a message without gaps as a record of TFRecord and event files: its length, the message, and a checksum of each. */
void bwi_wire_record(bwi_wire *wire, const bwi_wire *message);
/* Adds an image of 1 to 4 channels as PNG (png_write.c). */
void bwi_png_write(bwi_wire *to, int height, int width, int channels, const unsigned char *pixels);
/* Adds fields that were written elsewhere. */
void bwi_wire_add(bwi_wire *wire, const bwi_wire *fields);
/* Begins a message within the message, up to its end. At most BWI_WIRE_DEPTH deep. */
void bwi_wire_begin(bwi_wire *wire, int field);
void bwi_wire_end(bwi_wire *wire);
/* With its gaps. */
size_t bwi_wire_size(const bwi_wire *wire);
void bwi_wire_free(bwi_wire *wire);

/* ---- Numbers in text (number.c) ---- */

/* Eight characters as a little-endian word, xored with BWI_DIGIT_ZEROS: each digit becomes its value. In bwi_digits_others, a
 * character that is not a digit has its highest bit set; of these bits only the lowest is certain. */
#define BWI_DIGIT_ZEROS 0x3030303030303030u

static inline uint64_t bwi_digits_others(uint64_t digits)
{
    return ((digits + 0x7676767676767676u) | digits) & 0x8080808080808080u;
}

/* The number that eight digits form, the first of them the most significant: computed in pairs, then fours, then all of them. */
static inline uint64_t bwi_digits_value(uint64_t digits)
{
    uint64_t pairs = digits * 10 + (digits >> 8), mask = 0x000000FF000000FFu;
    return ((pairs & mask) * 0x000F424000000064u + ((pairs >> 16) & mask) * 0x0000271000000001u) >> 32;
}

/* Reads the decimal number that begins at `text`, rounded correctly to double, whatever the locale. Returns what follows it, or
 * NULL if there is none or it is too large. Before `end` there must be a character that cannot be part of a number, such as a
 * newline. */
const char *bwi_number_scan(const char *text, const char *end, double *value);

/* ---- Images: PNG and JPEG, distinguished by their first bytes (image.c, png.c, jpeg.c) ---- */

enum { BWI_IMAGE_ERROR = 128, BWI_IMAGE_SIDE = 65500, BWI_IMAGE_PIXELS = 1 << 26 };

typedef struct bwi_picture {
    int64_t height, width;
    int channels; /* 1: gray; 3: RGB */
} bwi_picture;

/* These run on workers: the context's message stays as it is; `error` (BWI_IMAGE_ERROR bytes) says what is wrong. */
bool bwi_picture_is(const void *file, size_t size);
/* Reads what the header declares, and checks it against limits and the file's size. */
bw_status bwi_picture_look(bw_context *ctx, const void *file, size_t size, bwi_picture *found, char *error);
/* Decodes the pixels, resized and converted to the requested size and channels (reduced by area, enlarged by interpolation), 8
 * bits, row by row. `scratch` belongs to the caller, for one thread at a time. */
bw_status bwi_picture_decode(bw_context *ctx, bwi_buffer *scratch, const void *file, size_t size, const bwi_picture *wanted,
                             unsigned char *to, char *error);

/* ---- TFRecord files of tf.train.Example (example.c) ---- */

enum { BWI_EXAMPLE_ERROR = 128 };

/* For workers, like the functions for images: `error` (BWI_EXAMPLE_ERROR bytes) says what is wrong. Finds the record that begins
 * at *offset, which is moved behind it; the checksum of its length was right. OUT_OF_RANGE at the end of the file. */
bw_status bwi_record_next(const bwi_bytes *file, size_t *offset, bwi_bytes *record, char *error);
/* How many bytes the record at an offset takes, if its header is there and intact; otherwise the size of a header. */
size_t bwi_record_size(const bwi_bytes *file, size_t offset);
/* Whether the checksum that follows a record is right. */
bool bwi_record_intact(const bwi_bytes *record);

typedef enum bwi_list_kind { BWI_LIST_NONE, BWI_LIST_BYTES, BWI_LIST_FLOAT, BWI_LIST_INT64 } bwi_list_kind;

/* The values of a feature, as they are encoded in the record. */
typedef struct bwi_list {
    bwi_list_kind kind; /* NONE: the feature has no values */
    int64_t count;
    bwi_bytes bytes; /* the encoded list */
} bwi_list;

/* Finds a feature by name; NOT_FOUND without a text if there is none, DATA_LOSS if the record is not an Example. */
bw_status bwi_example_find(const bwi_bytes *record, const char *name, bwi_list *list, char *error);
/* Lists the names of the record's features, for a message. */
void bwi_example_names(const bwi_bytes *record, char *text, size_t capacity);
/* Reads all values: floats as float32, integers as int64. */
void bwi_list_read(const bwi_list *list, void *to);
/* The first value of a list of bytes, which must not be empty. */
bwi_bytes bwi_list_bytes(const bwi_list *list);

#endif
