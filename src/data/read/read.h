/*
 * read: where samples come from. There is a reader for each kind of file, which makes a root of samples; arrays, functions and
 * generators of the program are roots too.
 */
#ifndef BWI_DATA_READ_H
#define BWI_DATA_READ_H

#include "data/internal.h"

#include <pthread.h>

/* ---- Readers ---- */

/* `paths` are the parts of a list "a,b,c". A reader ignores the options `scale` and `shape`, which bw_read applies. */
typedef bw_status bwi_reader(bw_context *ctx, bw_dataset **root, const char *const *paths, int count,
                             const bw_read_options *options);
bwi_reader bwi_csv_read, bwi_hdf5_samples, bwi_idx_read, bwi_images_read, bwi_libsvm_read, bwi_npy_read, bwi_npz_read,
    bwi_synth_read, bwi_texts_read, bwi_tfrecord_read;
bool bwi_idx_is(bw_context *ctx, const char *path); /* whether it is a folder of such files */

bool bwi_texts_is(bw_context *ctx, const char *path); /* whether it is a folder of .txt files, or of folders of them */

/* Texts on their way to a dataset, one after another: their bytes, and where each begins (an offset until the end). */
typedef struct bwi_texts {
    bwi_backing bytes, places;
    size_t used;
    bw_text *cells; /* in `places` */
    int64_t count;
} bwi_texts;

bw_status bwi_texts_add(bw_context *ctx, bwi_texts *texts, const char *bytes, size_t size, const char *what);
/* Adds a column of every `each`-th text from `first` on, which is called for `first` 0 first. */
bw_status bwi_texts_end(bw_dataset *root, const char *name, bwi_texts *texts, int64_t each, int64_t first, const char *where);
void bwi_texts_free(bw_context *ctx, bwi_texts *texts);

/* Refuses options that only other kinds of files have; `known` lists the ones that this kind has as well. */
enum { BWI_READ_TARGET = 1, BWI_READ_INPUT = 2 };
bw_status bwi_read_options_check(bw_context *ctx, const char *path, const bw_read_options *options, unsigned known);

/* ---- arrays.c ---- */

/* Parts of a file: x_train, y_train, x_test and y_test, as in the data sets that come with Keras, and x_val. */
enum { BWI_PART_TRAIN = 1, BWI_PART_VALIDATION = 2, BWI_PART_TEST = 4 };
/* The part that is named by what follows "x_" in a name; 0: none. */
unsigned bwi_part_of(const char *name, size_t length);
/* Chooses which of the parts that the file's inputs have is read; 0: the inputs are not divided into parts, and everything is
 * read. */
bw_status bwi_part_choose(bw_context *ctx, const char *path, const bw_read_options *options, unsigned found, unsigned *chosen);

/* The arrays of a file that are no samples, which are named once: a misspelt one would go unnoticed. */
typedef struct bwi_unread {
    char names[256];
    bool cut; /* there are more */
} bwi_unread;

void bwi_unread_add(bwi_unread *unread, const char *name, size_t length);
void bwi_unread_report(bw_context *ctx, const char *path, const bwi_unread *unread);

/* Finds role and name of a field called x, y_<name> and so on; if it is none of them, the message says what is expected. */
bw_status bwi_field_parse(bw_context *ctx, const char *text, bwi_role *role, const char **name);

extern const bwi_dataset_kind bwi_kind_arrays; /* columns that lie in memory */

/* ---- function.c: functions of programs that make or change samples ---- */

/* Describes the sample to a function of the program; `error` has BW_ERROR_TEXT bytes. */
bw_sample bwi_sample(const bw_dataset *dataset, uint64_t seed, int epoch, int64_t number, char *error);
/* Called after a function returned false: returns the status, and writes a text that names the sample. */
bw_status bwi_sample_failed(const bw_dataset *dataset, const bw_sample *sample, const char *what, char *error);
/* Declares columns without data, inputs first. The first extent of an array counts samples and is ignored. */
bw_status bwi_dataset_declare_fields(bw_dataset *dataset, const bw_field *fields, int count);

/* ---- stream.c ---- */

#define BWI_LIVE (INT64_MAX / 4) /* the count of a stream that has not ended */

/* Pulls samples until positions below `upto` can be gathered, or the end of the stream is known. */
bw_status bwi_stream_pull(bw_dataset *dataset, int64_t upto);
int64_t bwi_stream_block(const bw_dataset *dataset); /* samples that are shuffled with each other in the first epoch */

/* ---- decode_buffer.c ---- */

struct bwi_picture;
/* The image size that the options ask for, by their shape or else by the dataset of `like`. *asked: there is such a size. */
bw_status bwi_picture_asked(bw_context *ctx, const bw_read_options *options, const char *path, struct bwi_picture *size,
                            bool *asked);

typedef struct bwi_decode_buffer {
    struct bwi_decode_buffer *next;
    bwi_buffer file, scratch;
} bwi_decode_buffer;

typedef struct bwi_decode_buffers {
    bwi_decode_buffer *idle; /* changes within bwi_moment_begin and bwi_moment_end */
} bwi_decode_buffers;

/* The bytes that a thread holds while it decodes a file of `file_bytes` with an image like `from` to one of the size `to`. */
size_t bwi_decoder_bytes(size_t file_bytes, const struct bwi_picture *from, const struct bwi_picture *to);

void bwi_decode_buffers_open(bwi_decode_buffers *buffers);
void bwi_decode_buffers_close(bw_context *ctx, bwi_decode_buffers *buffers);
bwi_decode_buffer *bwi_decode_buffer_take(bw_context *ctx, bwi_decode_buffers *buffers); /* NULL: no memory; without a message */
void bwi_decode_buffer_give(bwi_decode_buffers *buffers, bwi_decode_buffer *buffer);

#endif
