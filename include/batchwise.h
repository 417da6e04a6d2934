/*
 * batchwise.h - training neural networks on mini-batches, in C.
 *
 * The batch is a statistical choice; the tile is a hardware choice. A batch of any size is cut into tiles of a
 * few samples that fit the cache and the memory budget, so that memory does not grow with the batch, small
 * batches are fast, and the result is the same on any number of workers.
 *
 * Three rules hold everywhere:
 *
 * 1. One owner. Everything is made from a context and belongs to it; bw_close frees all of it. Objects may be
 *    freed earlier, one by one; freeing NULL is fine.
 * 2. Errors do not interrupt building. A builder (a function that returns a pointer) returns NULL on failure and
 *    leaves its message in the context; every builder accepts NULL and passes it on; the first function that
 *    returns a status reports the first failure. So expressions nest, and one check suffices.
 * 3. Simple, then more. Each task has a call with defaults, an options struct for the rest, and below that the
 *    pieces for a loop of one's own.
 *
 * Pointers: a parameter is borrowed (used during the call only) unless its comment says that it is kept (must
 * outlive the object) or taken (owned by the callee, even when it fails). A pointer that is returned is lent: it
 * stays the object's.
 *
 * Sections: status; context; arrays; random numbers; data; models; training; files; history; memory before running; a loop of one's
 * own; ranks.
 *
 * A context and what is made from it is used by one thread at a time; contexts are independent of each other.
 * Only bw_cancel may be called from another thread or from a signal handler.
 */
#ifndef BATCHWISE_H
#define BATCHWISE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define BW_API __attribute__((visibility("default")))
#else
#define BW_API
#endif

#define BW_VERSION_MAJOR 0
#define BW_VERSION_MINOR 1
#define BW_VERSION_PATCH 0

/* The version of the library that is running, e.g. "0.1.0". */
BW_API const char *bw_version(void);

/* ---- Status ------------------------------------------------------------------------------------------- */

/* TensorFlow's names and numbers. */
typedef enum bw_status {
    BW_OK = 0,
    BW_CANCELLED = 1,          /* bw_cancel was called, or a callback asked to stop the step */
    BW_INVALID_ARGUMENT = 3,   /* a value, shape or text that cannot be right */
    BW_NOT_FOUND = 5,          /* no such file, member, layer or name */
    BW_RESOURCE_EXHAUSTED = 8, /* memory, disk or threads */
    BW_OUT_OF_RANGE = 11,      /* the end of the data */
    BW_UNIMPLEMENTED = 12,     /* known, and not offered here */
    BW_INTERNAL = 13,          /* a defect of the library or of a library below it */
    BW_DATA_LOSS = 15          /* a damaged file */
} bw_status;

/* "INVALID_ARGUMENT" and so on; never NULL. */
BW_API const char *bw_status_name(bw_status status);

/* ---- Context ------------------------------------------------------------------------------------------ */

typedef struct bw_context bw_context;
typedef struct bw_model bw_model;
typedef struct bw_dataset bw_dataset;
typedef struct bw_history bw_history;
typedef struct bw_plan bw_plan;
typedef struct bw_gradients bw_gradients;
typedef struct bw_iterator bw_iterator;
typedef struct bw_batch bw_batch;
typedef struct bw_ranks bw_ranks;
typedef struct bw_node bw_node;

/* Where memory comes from. `allocate` returns NULL on failure; `release` is told the same size. Both may be
 * called from several threads at once. */
typedef struct bw_allocator {
    void *user;
    void *(*allocate)(void *user, size_t bytes, size_t alignment);
    void (*release)(void *user, void *memory, size_t bytes);
} bw_allocator;

/* What a name in a folder stands for; a symbolic link is a link, whatever it leads to. */
typedef enum bw_entry { BW_ENTRY_FILE, BW_ENTRY_FOLDER, BW_ENTRY_LINK, BW_ENTRY_OTHER } bw_entry;

/* How files are reached. Each function returns a value of 0 or more, or a negative errno. */
typedef struct bw_io {
    void *user;
    int (*open)(void *user, const char *path, int flags, int mode); /* flags and mode as in open(2) */
    int64_t (*read)(void *user, int file, void *bytes, size_t count, int64_t offset);
    int64_t (*write)(void *user, int file, const void *bytes, size_t count, int64_t offset);
    int64_t (*size)(void *user, int file);
    int (*sync)(void *user, int file);
    int (*close)(void *user, int file);
    int (*rename)(void *user, const char *from, const char *to);
    int (*remove)(void *user, const char *path);
    int (*map)(void *user, int file, size_t bytes, void **memory); /* read-only */
    int (*unmap)(void *user, void *memory, size_t bytes);
    /* Tells `add` the names in a folder, in any order, without . and .., until it returns other than 0, which is returned then. */
    int (*list)(void *user, const char *path, int (*add)(void *names, const char *name, bw_entry entry), void *names);
    /* The file made `bytes` long, with blocks of its own on the disk, and mapped to be read and written. NULL: data that are
     * larger than memory are refused. */
    int (*map_shared)(void *user, int file, size_t bytes, void **memory);
} bw_io;

typedef enum bw_log_level { BW_LOG_INFO, BW_LOG_WARNING } bw_log_level;

typedef struct bw_context_options {
    size_t size;                   /* sizeof(bw_context_options) */
    const bw_allocator *allocator; /* copied; NULL: the system's */
    const bw_io *io;               /* copied; NULL: the system's */
    int workers;                   /* threads that compute, the caller's included; 0: one for each CPU */
    const char *instruction_set;   /* "avx512", "avx2", "portable"; NULL: $BATCHWISE_ISA or the best there is */
    bw_ranks *ranks;               /* kept; NULL: one rank */
    int rank;                      /* this context's number among `ranks` */
    void (*log)(void *user, bw_log_level level, const char *message);
    void *log_user; /* kept */
    /* Convolutions by their definition only: without it 3x3 convolutions between 16 and more channels, or of images with two to
     * four, before ReLU and pooling are computed by Winograd's algorithm, two to three times as fast, with errors of up to some
     * 1e-5 of the largest value. */
    bool exact_kernels;
    size_t memory; /* budget in bytes of evaluation and prediction, and of training whose options give none; 0: what the cgroup and
                      the machine give */
} bw_context_options;

#define BW_CONTEXT_OPTIONS_DEFAULT         \
    {                                      \
        .size = sizeof(bw_context_options) \
    }

/* Opens a context. NULL options: all defaults. Returns NULL only if there is no memory for it. */
BW_API bw_context *bw_open(const bw_context_options *options);

/* Frees the context and all that was made from it. */
BW_API void bw_close(bw_context *ctx);

/* The message of the last failure, one line without a newline; "" if there was none. Lent until the next call. */
BW_API const char *bw_message(const bw_context *ctx);

/* Stops what the context is doing at the next tile or wait, with BW_CANCELLED. Safe from any thread and from a
 * signal handler. The flag is cleared when the call it stopped returns. */
BW_API void bw_cancel(bw_context *ctx);

/* ---- Arrays ------------------------------------------------------------------------------------------- */

typedef enum bw_dtype { BW_U8, BW_I8, BW_U16, BW_I16, BW_U32, BW_I32, BW_U64, BW_I64, BW_F16, BW_F32, BW_F64, BW_BOOL } bw_dtype;

#define BW_MAX_NDIM 8

/* A view of an array: it owns nothing. The first extent is the number of samples. */
typedef struct bw_array {
    const void *data;
    bw_dtype dtype;
    int ndim;
    int64_t shape[BW_MAX_NDIM];
    int64_t strides[BW_MAX_NDIM]; /* in bytes; all zero: row-major without gaps */
} bw_array;

/* ---- Random numbers ----------------------------------------------------------------------------------- */

/* A stream is a function of seed and stream alone; `drawn` counts what was taken from it, so a stream can be copied
 * and resumed. A stream begins with drawn = 0. */
typedef struct bw_random {
    uint64_t seed, stream, drawn;
} bw_random;

BW_API float bw_random_uniform(bw_random *random);                /* 0 <= u < 1 */
BW_API float bw_random_normal(bw_random *random);                 /* mean 0, deviation 1 */
BW_API int64_t bw_random_below(bw_random *random, int64_t count); /* a whole number of 0 to count - 1 */
/* One of `count` categories, with probabilities that are in proportion to the weights. */
BW_API int bw_random_category(bw_random *random, const float *weights, int count);
/* What stands at a position of the permutation of 0 to count - 1 that the seed names; -1 outside of it. */
BW_API int64_t bw_random_permute(uint64_t seed, int64_t count, int64_t position);

/* ---- Data --------------------------------------------------------------------------------------------- */

/* Whether a text file's first line names the columns. Detecting says aloud (bw_context_options.log) what was found. */
typedef enum bw_header { BW_HEADER_DETECT, BW_HEADER_YES, BW_HEADER_NO } bw_header;

/* What stands for a missing value (nothing, NA, NaN, null, ?): a failure that names line and column; the mean of its column;
 * zero; or nothing, since the record is left out. */
typedef enum bw_missing { BW_MISSING_ERROR, BW_MISSING_MEAN, BW_MISSING_ZERO, BW_MISSING_SKIP } bw_missing;

typedef struct bw_read_options {
    size_t size;
    double scale;               /* inputs are multiplied by it; default 1 */
    int ndim;                   /* of `shape`; 0: inputs keep their shape */
    int64_t shape[BW_MAX_NDIM]; /* that one sample's inputs get, e.g. 28, 28, 1 for 784 columns */
    const char *target;         /* column of the target by name, or by number from 0 (negative: from the end); NULL: the last; "":
                                   there is none */
    bw_header header;
    bw_missing missing;
    const char *categorical; /* columns whose numbers are categories, "city,3"; text always is; NULL: none */
    const char *ignore;      /* columns that are left out; NULL: none */
    double bad_records;      /* share of records that may be wrong: they are left out, counted and listed in the log; default 0 */
    const bw_dataset *like;  /* columns, categories and fill values are those of this one, with which a model was trained: by the
                                columns' names, or their order if one of them has no header */
    const char *input;       /* feature or dataset of the inputs, by name, of TFRecord and HDF5 files; NULL: x or image */
    int64_t take;            /* the first so many samples, e.g. of a standard input without an end; 0: all */
} bw_read_options;

#define BW_READ_OPTIONS_DEFAULT                     \
    {                                               \
        .size = sizeof(bw_read_options), .scale = 1 \
    }

/* Opens samples, by the path's end:
 *   .npz              x, y and optionally w (or x_<input>, y_<output>, w_<output>)
 *   .npy              a list x.npy,y.npy,w.npy; mapped, whatever their size
 *   .csv, .csv.gz     numbers and categories; -: CSV from standard input, plain or packed, a stream (with categories or means of
 *                     missing values it is read to its end or `take` first)
 *   ...ubyte, .idx    IDX (also .gz): a list of images and labels, or the folder that holds them
 *   .libsvm, .svm     target index:value index:value ...
 *   .h5, .hdf5        datasets x, y and optionally w (or x_<input> and so on); `input` and `target` name others
 *   .tfrecord         tf.train.Example (also .gz): inputs x or image (`input` names another: floats, int64, bytes or an encoded
 *                     image), targets y or label (`target`), weights w or weight; tfrecord:-: from standard input (or .gz), a stream
 *   a folder          of class folders of PNG and JPEG images, brought to `shape` (height, width, 1 or 3 channels) or to the
 *                     first one's size, which is said aloud
 *   synth:NAME?n=1000 made by number: images, ordered, shapes, line, range (see docs/reference/data.md)
 * A list "a.csv,b.csv" or a pattern "train-*.tfrecord" is read as one, its files one after the other; -00001-of-00010 behind a name
 * does not count. What is larger than memory is kept in a temporary file. */
BW_API bw_dataset *bw_read(bw_context *ctx, const char *path, const bw_read_options *options);

/* Samples from arrays in memory. Keeps the arrays' data. `y` and `w` may be NULL. */
BW_API bw_dataset *bw_from_arrays(bw_context *ctx, const bw_array *x, const bw_array *y, const bw_array *w);

/* The same for models with several inputs or outputs: arrays named x_<input>, y_<output>, w_<output>, or x, y, w. */
typedef struct bw_field {
    const char *name;
    bw_array array;
} bw_field;

BW_API bw_dataset *bw_from_fields(bw_context *ctx, const bw_field *fields, int count);

/* ---- Functions that make and change samples ---- */

/* A sample that a function makes or changes. */
#define BW_ERROR_TEXT 128
typedef struct bw_sample {
    int64_t number;   /* of the sample: where it stands in its source, not in the epoch */
    int epoch;        /* -1: in none: validation, evaluation, prediction, and fitting statistics */
    bw_random random; /* the sample's own stream in this epoch: the same whatever the threads and the order */
    char *error;      /* a function that returns false may say why: BW_ERROR_TEXT bytes */
    const bw_context *context;
} bw_sample;

/* For functions that take long: whether bw_cancel was called. */
BW_API bool bw_sample_cancelled(const bw_sample *sample);

/* Makes a sample: writes values[i], the i-th field in row-major order without gaps, unless it is NULL (not wanted now). Fields
 * stand in the order inputs, targets, weights. Runs on several threads at once; the same number and epoch must give the same values.
 * Returns false to fail. */
typedef bool (*bw_sample_function)(void *user, bw_sample *sample, void *const *values);

/* Samples that a function makes by number. The fields' arrays have no data; their first extent is the number of samples. Copies the
 * fields; keeps `user`. */
BW_API bw_dataset *bw_from_function(bw_context *ctx, const bw_field *fields, int count, bw_sample_function function, void *user);

/* Changes a sample: reads from[i], writes to[i]. Whole numbers are int32, except for scaled or 8-bit inputs; all else is float32. A
 * field of the same name, type and shape is there as a copy in `to` already. Runs on several threads at once. */
typedef bool (*bw_map_function)(void *user, bw_sample *sample, const void *const *from, void *const *to);

typedef struct bw_map_options {
    size_t size;
    uint64_t seed;          /* of the samples' random streams */
    const bw_field *fields; /* that come out: float32 or int32; the first extents are not looked at; NULL: those that go in */
    int field_count;
} bw_map_options;

#define BW_MAP_OPTIONS_DEFAULT         \
    {                                  \
        .size = sizeof(bw_map_options) \
    }

/* Samples changed by a function, made ahead on threads of their own. Takes the dataset; keeps `user`. */
BW_API bw_dataset *bw_map(bw_dataset *dataset, bw_map_function function, void *user, const bw_map_options *options);

/* Whether a sample is kept. Sees values as map functions do. */
typedef bool (*bw_filter_function)(void *user, bw_sample *sample, const void *const *from);

/* The samples that the function keeps. It looks at each sample once, now, on all workers. Takes the dataset. */
BW_API bw_dataset *bw_filter(bw_dataset *dataset, bw_filter_function function, void *user);

/* The samples that can be made: looks at each once, now, and leaves out those that fail (a corrupt file, a failing function), which
 * are counted and listed in the log; more than this share of them is a failure. Takes the dataset. */
BW_API bw_dataset *bw_allow_bad(bw_dataset *dataset, double share);

/* Writes the next sample: returns 1, or 0 if there are no more, or -1 to fail. */
typedef int (*bw_generator_function)(void *user, bw_sample *sample, void *const *values);

/* A stream: samples of a function that gives one after the other, on the caller's thread, when they are wanted: bw_fit begins with
 * what has come, and the first epoch ends where the stream does. What was given is kept, in a temporary file if it is large (half
 * of the memory there is), so every later epoch is like that of other data. Map, one_hot, shuffle, take (of a stream that may have
 * no end), batches and prefetch go along with it; all others, and a validation split, read it to its end first. bw_shuffle is exact
 * within blocks of 64 MiB in the first epoch, which is told in the log, and over all samples from the second on. First extents are
 * not looked at. */
BW_API bw_dataset *bw_from_generator(bw_context *ctx, const bw_field *fields, int count, bw_generator_function function,
                                     void *user);

/* ---- Transformations ---- */

/* Images changed at random while training, another way in each epoch, a function of seed, epoch and the sample's number alone. Not in
 * validation (the part that bw_fit splits off either), evaluation and prediction. The text lists what is done, in this order, to each
 * input of shape (height, width, channels), with amounts drawn evenly:
 *   flip               left to right with probability 1/2; flip=vertical, flip=both
 *   shift=0.1          by whole pixels, up to a share of the side, or from 1 on so many pixels
 *   crop=0.8           a window of this share of the sides or more, anywhere, becomes the whole
 *   rotate=15          about the centre, by up to so many degrees either way
 *   zoom=0.1           about the centre, by a factor of 1 - 0.1 to 1 + 0.1
 *   brightness=0.2     times 1 - 0.2 to 1 + 0.2
 *   contrast=0.2       differences from the channel's mean, times 1 - 0.2 to 1 + 0.2
 *   noise=0.05         plus normal numbers of this deviation (in the inputs' own unit)
 *   cutout=8           a square of 8 x 8 pixels at a random place becomes 0
 * Between pixels values are bilinear; beyond the edge stands the nearest pixel. Results are not clipped. Takes the dataset. */
BW_API bw_dataset *bw_augment(bw_dataset *dataset, const char *text, uint64_t seed);

/* Samples kept in memory once they were made, as they were in epoch 0. Takes the dataset. */
BW_API bw_dataset *bw_cache(bw_dataset *dataset);

/* The same in a file, for later runs too: made now, on all workers, if there is none; otherwise it must hold these samples (its
 * fields, counts and a fingerprint of some of them are compared, and all its bytes checked). Takes the dataset. */
BW_API bw_dataset *bw_cache_file(bw_dataset *dataset, const char *path);

/* Inputs with mean 0 and deviation 1, or from 0 to 1, for each index of their last axis. Fitted to the samples that they are first
 * used with: by bw_fit to its training part alone. With `like`, as that dataset was (kept): for validation and use. Take the
 * dataset. */
BW_API bw_dataset *bw_standardise(bw_dataset *dataset, const bw_dataset *like);
BW_API bw_dataset *bw_normalise(bw_dataset *dataset, const bw_dataset *like);

/* Targets as rows of `classes` numbers, 1 for the class and 0 else; 0 classes: as many as have names. Takes the dataset. */
BW_API bw_dataset *bw_one_hot(bw_dataset *dataset, int64_t classes);

typedef struct bw_prefetch_options {
    size_t size;
    int threads;     /* that make samples ahead; 0: one for each CPU */
    int64_t samples; /* room for so many; 0: two batches, within 64 MiB; both within a quarter of the budget */
    double seconds;  /* without a sample for so long, a source stalls, and that is a failure; 0: 60; negative: never */
} bw_prefetch_options;

#define BW_PREFETCH_OPTIONS_DEFAULT         \
    {                                       \
        .size = sizeof(bw_prefetch_options) \
    }

/* How samples that are slow to get (functions, maps) are made ahead while training: they are in any case. Takes the dataset. */
BW_API bw_dataset *bw_prefetch(bw_dataset *dataset, const bw_prefetch_options *options);

/* ---- Order, parts and batches ---- */

/* The same samples in an exact random order over all of them, another one each epoch, a function of seed and
 * epoch alone, in constant memory. Takes the dataset. */
BW_API bw_dataset *bw_shuffle(bw_dataset *dataset, uint64_t seed);

/* The first `count` samples; all but the first `count`. Take the dataset. */
BW_API bw_dataset *bw_take(bw_dataset *dataset, int64_t count);
BW_API bw_dataset *bw_skip(bw_dataset *dataset, int64_t count);

/* The parts that bw_fit makes for a validation_split: the samples before and from floor(n * (1 - share)) on, of a shuffled dataset in
 * its order of the first epoch; the training part is then shuffled within itself. Borrows the dataset; the parts are the caller's.
 * INVALID_ARGUMENT if one would be empty. */
BW_API bw_status bw_split(bw_dataset *dataset, double share, bw_dataset **training, bw_dataset **validation);

/* Every count-th sample, from the index-th on: one of `count` parts without overlap. Takes the dataset. */
BW_API bw_dataset *bw_shard(bw_dataset *dataset, int64_t count, int64_t index);

/* One dataset after the other; blocks of one and of the other by turns; each sample of one with that of the other at the same
 * position (the inputs of the second are the targets if neither has any); the same samples several times, each time as in an epoch
 * of its own. Take the datasets. */
BW_API bw_dataset *bw_concatenate(bw_dataset *first, bw_dataset *second);
BW_API bw_dataset *bw_interleave(bw_dataset *first, bw_dataset *second, int64_t block);
BW_API bw_dataset *bw_zip(bw_dataset *first, bw_dataset *second);
BW_API bw_dataset *bw_repeat(bw_dataset *dataset, int64_t times);

/* How many samples bw_iterate hands out at a time, and bw_fit puts behind an update unless its options say otherwise. Of
 * concatenated datasets each keeps its own (batches of 32, then of 64), and a batch ends with its dataset, or with a repeated one's
 * turn. By a text: "32", "full", "32,64" (by turns) or "32@0,128@5" (128 from epoch 5 on); a last batch that is smaller than its
 * size may be dropped. Sizes chosen later count. Takes it. */
BW_API bw_dataset *bw_batches(bw_dataset *dataset, int64_t batch);
BW_API bw_dataset *bw_batch_sizes(bw_dataset *dataset, const char *text, bool drop_remainder);

/* ---- Sequences ---- */

/* Sequences of varying length: `values` holds the steps of all of them one after another (its first extent), sequence i is that from
 * offsets[i] to before offsets[i + 1]; there are count + 1 offsets. As samples they have the longest one's length, zeros behind
 * them. Keeps the arrays' data and the offsets; y and w may be NULL. */
BW_API bw_dataset *bw_from_sequences(bw_context *ctx, const bw_array *values, const int64_t *offsets, int64_t count,
                                     const bw_array *y, const bw_array *w);

/* Computes each sample at the shortest of these rising lengths that holds it: the inputs' first axis is the sequence, what is zero
 * to its end is padding. The data's own length is always the last one; at most 15 are given. A batch stays what it is: it is only
 * cut into tiles of one length each, so no padding to the longest of a batch is computed, and since a sample's length depends on
 * the sample alone, results depend on neither batch nor tile. A model whose layers heed masks (embedding with mask_zero=true) gives
 * the same as with all padding. Layers that know one length only (flatten before dense) are refused, and so is batch normalization.
 * Takes the dataset; comes after map, cache and the like. */
BW_API bw_dataset *bw_bucket(bw_dataset *dataset, const int64_t *lengths, int count);

/* ---- Facts about data ---- */

/* The number of samples; -1 for NULL, and of a stream that has not ended. */
BW_API int64_t bw_dataset_count(const bw_dataset *dataset);

/* The shape of one sample's input (without the batch); returns the rank, or -1. `shape` has BW_MAX_NDIM places. */
BW_API int bw_dataset_shape(const bw_dataset *dataset, int64_t *shape);

/* The shape of one sample's values of a field, by its name as in bw_field ("x", "y_<output>"); returns the rank, or -1 if there is
 * none. */
BW_API int bw_dataset_field(const bw_dataset *dataset, const char *name, int64_t *shape);

/* Values of a field as float32, row-major, of `count` samples from position `first` on, in the order of epoch 0, into exactly as
 * many places. */
BW_API bw_status bw_dataset_values(bw_dataset *dataset, const char *name, int64_t first, int64_t count, float *values, size_t room);

/* Names of the target's classes, by number: of text in a CSV file's target column. NULL: there is none of that number. Lent. */
BW_API const char *bw_dataset_class(const bw_dataset *dataset, int number);

BW_API void bw_dataset_free(bw_dataset *dataset);

/* ---- Models ------------------------------------------------------------------------------------------- */

/* A model from an expression such as "conv2d(32,3,relu) maxpool2d(2) flatten dense(10,softmax)". The input's
 * shape comes from the data when the model is first used, unless the text begins with input(28,28,1). */
BW_API bw_model *bw_model_parse(bw_context *ctx, const char *expression);

/* ---- Models by calls ----
 * A graph of nodes: each is one value a sample. Nodes are lent: they belong to their model. All functions that return a
 * node are builders: they accept NULL and pass it on. */

/* An empty model, to be filled by the calls below. */
BW_API bw_model *bw_model_new(bw_context *ctx);

/* An input of the given shape (of one sample, without the batch): the data's field x, or x_<name> if there are several.
 * dtype is BW_F32, or BW_I32 for an embedding's indices. */
BW_API bw_node *bw_input(bw_model *model, const char *name, bw_dtype dtype, int ndim, const int64_t *shape);

/* A layer as in an expression, e.g. "conv2d(16,3,padding=same,activation=relu)". */
BW_API bw_node *bw_layer(bw_node *input, const char *layer);

/* A layer of several inputs: "add", "concat(axis=-1)", "dot(axes=1)". */
BW_API bw_node *bw_merge(const char *layer, bw_node *const *inputs, int count);

/* The layer that gave `made`, with the same variables, applied to another input. */
BW_API bw_node *bw_layer_again(const bw_node *made, bw_node *input);

/* Makes the node an output: what bw_predict gives and losses compare with the targets y, or y_<name> if there are several. */
BW_API bw_status bw_output(bw_node *node, const char *name);

/* A field of the data for a loss of one's own: y, or y_<name>. */
BW_API bw_node *bw_target(bw_model *model, const char *name, bw_dtype dtype, int ndim, const int64_t *shape);

/* Adds a node with one number a sample to the loss, which is its mean over the batch. */
BW_API bw_status bw_add_loss(bw_node *loss, const char *name);

/* Arithmetic, element by element: shapes are equal, or one of them is a single number a sample. */
BW_API bw_node *bw_add(bw_node *a, bw_node *b);
BW_API bw_node *bw_subtract(bw_node *a, bw_node *b);
BW_API bw_node *bw_multiply(bw_node *a, bw_node *b);
BW_API bw_node *bw_divide(bw_node *a, bw_node *b);
BW_API bw_node *bw_maximum(bw_node *a, bw_node *b);
BW_API bw_node *bw_minimum(bw_node *a, bw_node *b);
BW_API bw_node *bw_negate(bw_node *x);
BW_API bw_node *bw_abs(bw_node *x);
BW_API bw_node *bw_square(bw_node *x);
BW_API bw_node *bw_sqrt(bw_node *x);
BW_API bw_node *bw_exp(bw_node *x);
BW_API bw_node *bw_log(bw_node *x);
BW_API bw_node *bw_power(bw_node *x, double exponent);
BW_API bw_node *bw_affine(bw_node *x, double scale, double offset); /* scale * x + offset */
BW_API bw_node *bw_activation(bw_node *x, const char *name);        /* "relu", "tanh", ... */

/* Over one axis of the sample (from 0; negative from the end), or over all with BW_ALL. The axis goes away. */
#define BW_ALL 1000
BW_API bw_node *bw_sum(bw_node *x, int axis);
BW_API bw_node *bw_mean(bw_node *x, int axis);
BW_API bw_node *bw_max(bw_node *x, int axis);

/* (m, k) times (k, n); `count` elements of an axis from `first` on; another shape for the same numbers. */
BW_API bw_node *bw_matmul(bw_node *a, bw_node *b);
BW_API bw_node *bw_slice(bw_node *x, int axis, int64_t first, int64_t count);
BW_API bw_node *bw_reshape(bw_node *x, int ndim, const int64_t *shape);

/* An operator of one's own. The functions run on workers, several at once, each on its own samples; arrays are float32,
 * row-major, the samples one after another. They return false to fail the step. */
typedef struct bw_operator {
    size_t size; /* sizeof(bw_operator) */
    const char *name;
    /* The shape of one output sample from those of the inputs: returns its rank, or -1 if they do not fit. */
    int (*shape)(void *user, int inputs, const int *ranks, const int64_t *const *shapes, int64_t *shape);
    bool (*forward)(void *user, int64_t samples, const float *const *src, float *dst);
    /* Writes the difference of each source that is not NULL. NULL: nothing flows back. */
    bool (*backward)(void *user, int64_t samples, const float *const *src, const float *dst, const float *diff_dst,
                     float *const *diff_src);
    void *user; /* kept */
} bw_operator;

/* The operator is copied. */
BW_API bw_node *bw_custom(const bw_operator *op, bw_node *const *inputs, int count);

/* ---- Compiling and building ---- */

/* Chooses optimizer, loss and metrics by Keras's names, e.g. "adam(lr=0.001)",
 * "sparse_categorical_crossentropy", "accuracy". NULL: bw_fit chooses (Adam; the loss from the last layer and the
 * targets; accuracy for classes). Several metrics are separated by commas; each takes weighted=true (sample and class weights
 * count, as in Keras's weighted_metrics) and name=. */
BW_API bw_status bw_compile(bw_model *model, const char *optimizer, const char *loss, const char *metrics);

/* The same for a model that is compiled already, e.g. one that was loaded: what is NULL stays as it is, with the optimizer its
 * state. */
BW_API bw_status bw_recompile(bw_model *model, const char *optimizer, const char *loss, const char *metrics);

/* Sets the shape of one input sample and creates the variables; bw_fit does it from the data. A model made by calls, or from an
 * expression that begins with input(...), knows its shapes: rank is 0 and `shape` NULL then. */
BW_API bw_status bw_build(bw_model *model, int ndim, const int64_t *shape, uint64_t seed);

BW_API void bw_model_free(bw_model *model);

/* Variables in Keras's order and layout (a Conv2D kernel is height, width, in, out), float32, row-major. */
BW_API int bw_variable_count(const bw_model *model);
BW_API const char *bw_variable_name(const bw_model *model, int index);
BW_API int bw_variable_shape(const bw_model *model, int index, int64_t *shape); /* returns the rank */
BW_API bw_status bw_variable_get(const bw_model *model, int index, float *values, size_t count);
BW_API bw_status bw_variable_set(bw_model *model, int index, const float *values, size_t count);

/* What an output of a built model means: numbers, one probability for each class, or one of the second of two classes. */
typedef enum bw_output_kind { BW_OUTPUT_NUMBERS, BW_OUTPUT_CLASSES, BW_OUTPUT_BINARY } bw_output_kind;

typedef struct bw_output_facts {
    char name[64];
    int ndim; /* of one sample */
    int64_t shape[BW_MAX_NDIM];
    bw_output_kind kind; /* from the last layer, or from the loss */
    bool logits;         /* of classes: not probabilities, but what softmax or sigmoid makes them of */
} bw_output_facts;

BW_API int bw_output_count(const bw_model *model);
BW_API bw_status bw_output_describe(const bw_model *model, int index, bw_output_facts *facts);

/* What a built model consists of, in Keras's order: layers, and, unless it is a mere list of them, its inputs as "InputLayer". */
typedef struct bw_model_facts {
    const char *name; /* that a file gave it, or Keras's: "sequential", "functional"; lent */
    bool sequential;  /* a list of layers behind one input */
    int layers;
    int64_t trainable, non_trainable; /* parameters */
    int64_t optimizer;                /* numbers that the optimizer keeps; 0 before the first training */
} bw_model_facts;

typedef struct bw_layer_facts {
    char name[64];
    const char *class_name; /* Keras's: "Conv2D" */
    int ndim;               /* of one output sample, as its next is; of its last use */
    int64_t shape[BW_MAX_NDIM];
    int64_t parameters, trainable; /* all, and those that are trained */
    int inputs;                    /* of all its uses together: bw_layer_input tells them */
} bw_layer_facts;

BW_API bw_status bw_model_describe(const bw_model *model, bw_model_facts *facts);
BW_API bw_status bw_layer_describe(const bw_model *model, int layer, bw_layer_facts *facts);
/* The layer, and which of its uses (from 0), that a layer's input comes from. */
BW_API bw_status bw_layer_input(const bw_model *model, int layer, int input, int *from, int *use);

/* The model as an expression that bw_model_parse reads: the same layers, without weights. NULL, as of a builder, if it cannot be
 * written as one: several inputs or outputs, shared layers, operators. */
BW_API const char *bw_model_expression(bw_model *model);

/* A hash of all variables in their plain order: equal for equal bits; 0 if there is no memory to make it. */
BW_API uint64_t bw_model_hash(const bw_model *model);

/* ---- Training ----------------------------------------------------------------------------------------- */

/* What a callback sees, and may change by its return value. */
typedef struct bw_progress {
    int epoch, epochs;      /* from 0 */
    int64_t step, steps;    /* of this epoch; step counts finished ones; steps is 0 while a stream has not ended */
    int64_t update;         /* updates of the model so far */
    int64_t samples;        /* seen in this epoch */
    double seconds;         /* of this epoch */
    const bw_history *logs; /* running means of this epoch at its last row; lent */
} bw_progress;

/* Return true to go on, false to stop training after this step. Runs on the calling thread. */
typedef bool (*bw_callback)(void *user, const bw_progress *progress);

typedef struct bw_fit_options {
    size_t size;
    int epochs;              /* default 1 */
    int64_t batch;           /* samples behind one update; larger than the data is the whole data; -1 (default): the sizes
                                that bw_batches or bw_batch_sizes set, or 32 */
    double validation_split; /* share of the samples kept for validation: the last ones, before shuffling */
    bw_dataset *validation;  /* kept during the call; NULL: none */
    uint64_t seed;           /* initial weights and random layers; default 0 */
    size_t memory;           /* budget in bytes; 0: the context's */
    int64_t tile;            /* samples a worker takes through at once; 0: from the model */
    int lanes;               /* a power of two; 0: from the model */
    int accumulate;          /* batches behind one update; default 1 */
    FILE *progress;          /* Keras's progress is written here; NULL: none; kept during the call */
    bw_callback on_step;     /* after each update; NULL: none */
    bw_callback on_epoch;    /* after each epoch; NULL: none */
    void *user;              /* kept during the call; given to the callbacks */
    /* Keras's callbacks by their arguments, e.g. "patience=3,restore_best_weights=true"; NULL: not used. */
    const char *early_stopping;
    const char *reduce_lr_on_plateau; /* the history has a column learning_rate then */
    /* Weights by class, like sample weights but in training only; classes from class_count on weigh 1. Kept during the call
     * (bw_gradients_new: while the gradients live); NULL: none. */
    const float *class_weight;
    int class_count;
    const char *batch_sizes; /* by text, as bw_batch_sizes: "full", "32,64", "32@0,128@5"; NULL: `batch` */
    bool drop_remainder;     /* a last batch that is smaller than its size is left out */
    const char *spill;       /* folder for a file of what BatchNormalization must keep of a batch, where the budget leaves no room
                                for it; not in memory; kept during the call; NULL: TMPDIR, or /tmp */
} bw_fit_options;

#define BW_FIT_OPTIONS_DEFAULT                                                    \
    {                                                                             \
        .size = sizeof(bw_fit_options), .epochs = 1, .batch = -1, .accumulate = 1 \
    }

/* Trains the model. NULL options: all defaults. `history` may be NULL; otherwise it gets a history that belongs
 * to the context, also when training was stopped or failed after some epochs. */
BW_API bw_status bw_fit(bw_model *model, bw_dataset *dataset, const bw_fit_options *options, bw_history **history);

/* The optimizer's learning rate (of the next update, if it is a schedule). Setting it replaces a schedule. A callback may do so. */
BW_API double bw_learning_rate(const bw_model *model);
BW_API bw_status bw_set_learning_rate(bw_model *model, double rate);

/* Loss and metrics over the dataset, one row named as in bw_fit. */
BW_API bw_status bw_evaluate(bw_model *model, bw_dataset *dataset, bw_history **result);

/* The model's output for each sample, in the dataset's order, into count floats (samples times outputs). */
BW_API bw_status bw_predict(bw_model *model, bw_dataset *dataset, float *predictions, size_t count);
/* The same for all outputs of a model that has several: an array and its count for each, in the order of bw_output. */
BW_API bw_status bw_predict_all(bw_model *model, bw_dataset *dataset, float *const *predictions, const size_t *counts, int outputs);

/* What was found, chosen or fitted while the training data was read and prepared belongs to the model: scale and shape of the inputs,
 * columns, categories and fill values, classes and their names, the size of images, what bw_standardise and bw_normalise fitted,
 * bw_one_hot. bw_fit keeps it (from its first update on; so does the first bw_apply), .keras files hold it, and bw_read_for reads
 * samples in the same way. Options say what training did not: a target's column, a header, bad records; a scale or shape other than
 * training's is refused. A file without the target's column gives samples to predict. Columns are found by their names, those that
 * training did not have are left out; an input's category that training did not have is a failure or, where missing values
 * are allowed, a missing one. Samples for a model that was trained on arrays are read as bw_read does. A builder. */
BW_API bw_dataset *bw_read_for(bw_model *model, const char *path, const bw_read_options *options);
/* The same in pieces, for programs that change samples by functions (bw_map), which no file keeps: a dataset without samples that can
 * stand for `like` in bw_read_options, bw_standardise and bw_normalise. NULL: there is nothing to keep. Lent until the model is
 * trained again. */
BW_API const bw_dataset *bw_model_data(const bw_model *model);
/* The name of a class that the model tells apart; NULL: there is none of that number. Lent likewise. */
BW_API const char *bw_model_class(const bw_model *model, int number);

/* ---- Files -------------------------------------------------------------------------------------------- */

/* A model from a file, by its extension: .keras (Keras 3: Sequential or Functional, with weights; if it was compiled, with
 * optimizer, loss, metrics and the optimizer's state: training goes on where Keras stopped), .json (Keras's to_json: without
 * weights), .h5 (older Keras). Layers and options that are not offered are refused by name; nothing in a file is ever run. */
BW_API bw_model *bw_load(bw_context *ctx, const char *path);

/* Writes the model, by the extension: .keras (what Keras 3 loads and trains on), .weights.h5, .safetensors (weights only), .json
 * (without weights: the model need not be built); and what it predicts: .onnx (operator set 17), .c (one C file without
 * dependencies, whose function is named after the file: void digits_predict(const float *input, float *output)). The file is
 * replaced as a whole or not at all; the same model gives the same bytes. */
BW_API bw_status bw_save(bw_model *model, const char *path);

/* Weights for a model that has the same layers: .keras, .weights.h5 (by the layers' order), .safetensors (by names). A
 * model from an expression that begins with input(...) need not be built. After a failure the model is as before. */
BW_API bw_status bw_load_weights(bw_model *model, const char *path);

/* ---- History ------------------------------------------------------------------------------------------ */

/* Named columns ("loss", "accuracy", "val_loss", ...) with one value an epoch. */
BW_API int bw_history_epochs(const bw_history *history);
BW_API int bw_history_columns(const bw_history *history);
BW_API const char *bw_history_column(const bw_history *history, int column);
BW_API double bw_history_value(const bw_history *history, const char *column, int epoch); /* NaN if there is none */
BW_API double bw_history_last(const bw_history *history, const char *column);
BW_API void bw_history_free(bw_history *history);

/* What a run took. */
typedef struct bw_run_facts {
    int64_t updates, samples;
    double seconds;
    int64_t tile;
    int lanes, workers;
    size_t planned_bytes; /* what the plan said: variables, optimizer slots, arena, bookkeeping */
    size_t peak_bytes;    /* the same measured: the largest resident size from the plan on, less the three below */
    size_t process_bytes; /* resident just before the plan was made, but for the model's variables and slots: program, libraries,
                             data in memory, stacks of the workers */
    size_t code_bytes;    /* what oneDNN took: machine code made for the model, its objects */
    size_t mapped_bytes;  /* pages of files that came in: mapped data, parts of libraries */
    bool exact_kernels;   /* the context's */
    int segments;         /* in which activations were computed again; 1: they were not */
    size_t kept_bytes;    /* of the planned ones, what is kept of a whole batch */
    size_t spilled_bytes; /* of a file that held what found no room */
    size_t swapped_bytes; /* by which what is swapped out grew */
    int64_t major_faults; /* pages that a thread had to wait for from a disk: mapped data that memory does not hold, or swapping */
} bw_run_facts;

BW_API bw_run_facts bw_history_facts(const bw_history *history);

/* ---- Memory before running ---------------------------------------------------------------------------- */

typedef struct bw_plan_options {
    size_t size;
    size_t memory;     /* budget in bytes; 0: the context's */
    int64_t tile;      /* samples a worker takes through at once; 0: from the model */
    int lanes;         /* a power of two; 0: from the model */
    int accumulate;    /* batches behind one update; default 1 */
    int epochs;        /* rows of the history; default 1 */
    bool validation;   /* the run evaluates as well, as bw_fit does after each epoch if it has validation samples */
    const char *spill; /* as in bw_fit_options */
} bw_plan_options;

#define BW_PLAN_OPTIONS_DEFAULT                                       \
    {                                                                 \
        .size = sizeof(bw_plan_options), .accumulate = 1, .epochs = 1 \
    }

/* What a run's bytes are for. */
typedef enum bw_plan_item {
    BW_PLAN_PARAMETERS,  /* the model's variables */
    BW_PLAN_GRADIENTS,   /* one sum of gradients */
    BW_PLAN_LANES,       /* the other lanes' sums */
    BW_PLAN_OPTIMIZER,   /* its slots */
    BW_PLAN_ACTIVATIONS, /* outputs and differences of a tile at the fullest moment, for each that runs at the same time */
    BW_PLAN_WORKSPACE,   /* what forward passes leave for backward ones besides; weights in a kernel's order; statistics */
    BW_PLAN_SCRATCH,     /* what kernels need while they run */
    BW_PLAN_INPUT,       /* the gathered samples of a tile, for each that runs at the same time */
    BW_PLAN_DATA,        /* samples made ahead */
    BW_PLAN_STORE,       /* what whole-batch layers (BatchNormalization) keep for the whole batch */
    BW_PLAN_BOOKKEEPING, /* the run's own tables: plan, bound instructions, history */
    BW_PLAN_ITEMS
} bw_plan_item;

/* "parameters" and so on; NULL if there is no such item. */
BW_API const char *bw_plan_item_name(bw_plan_item item);

typedef struct bw_memory_facts {
    int64_t batch, tile;
    int lanes, workers;
    int phases; /* times that all tiles of a batch pass in a step; 1 without whole-batch layers */
    size_t peak_bytes;
    size_t items[BW_PLAN_ITEMS]; /* their sum is peak_bytes, exactly */
    size_t budget;
    int segments;       /* in which activations are computed again; 1: they are not */
    size_t spill_bytes; /* of a file for what whole-batch layers find no room for; no memory */
    /* What a system needs that takes the whole batch through a layer before the next: its input, outputs kept for backward,
     * differences, parameters, gradients and optimizer slots; not its process. */
    size_t whole_batch_bytes;
    int64_t whole_batch_largest; /* the largest batch for which that fits the budget; 0: none */
} bw_memory_facts;

/* The same by layer; the last row, without a layer, is what loss and metrics take. */
typedef struct bw_layer_memory {
    const char *name; /* lent; NULL: there is no such row */
    int ndim;         /* of one sample's output */
    int64_t shape[BW_MAX_NDIM];
    size_t parameters;
    size_t gradients;              /* in all lanes */
    size_t activations, workspace; /* in use at the fullest moment; 0 if the layer is computed together with the next one */
    size_t whole_batch;            /* of whole_batch_bytes: its outputs and differences */
} bw_layer_memory;

/* Every byte that bw_fit would take with these samples and this batch, before anything is allocated or trained; the model is
 * left as it is. Without a dataset (NULL) the model must know its input: input(28,28,1); targets are then what the loss or, if
 * none was chosen, the last layer asks for. A budget that is too small is a failure (BW_RESOURCE_EXHAUSTED) that names the smallest
 * one that would do. NULL options: all defaults. */
BW_API bw_plan *bw_plan_make(bw_model *model, bw_dataset *dataset, int64_t batch, const bw_plan_options *options);
BW_API bw_memory_facts bw_plan_facts(const bw_plan *plan);
BW_API const char *bw_plan_reason(const bw_plan *plan); /* why this tile, one line; lent */
BW_API int bw_plan_layers(const bw_plan *plan);
BW_API bw_layer_memory bw_plan_layer(const bw_plan *plan, int index);
/* Tables with small bars. */
BW_API bw_status bw_plan_print(const bw_plan *plan, FILE *file);
BW_API void bw_plan_free(bw_plan *plan);

/* ---- A loop of one's own ------------------------------------------------------------------------------ */

/* Batches of a dataset, one after another; the next epoch begins with a new iterator. Keeps the dataset. */
BW_API bw_iterator *bw_iterate(bw_dataset *dataset, int epoch);
BW_API bw_status bw_next(bw_iterator *iterator, bw_batch **batch); /* lent until the next call; BW_OUT_OF_RANGE: the end */
BW_API int64_t bw_batch_count(const bw_batch *batch);
BW_API void bw_iterator_free(bw_iterator *iterator);

/* Sums of per-sample gradients over batches of any size; NULL options: defaults. The model must be compiled and built. Batches may
 * come from several datasets, whose fields have the same names and sizes. */
BW_API bw_gradients *bw_gradients_new(bw_model *model, const bw_fit_options *options);
/* Fails, naming sample and layer, if a gradient is NaN or infinite; what was added since the last update is lost then. */
BW_API bw_status bw_gradients_add(bw_gradients *gradients, bw_batch *batch, double *loss);
BW_API int64_t bw_gradients_samples(const bw_gradients *gradients);
BW_API void bw_gradients_clear(bw_gradients *gradients);
/* The norm of the gradient so far, divided by the number of samples, before penalties and clipping; 0 without samples. What
 * is added afterwards gives the whole batch's gradient within rounding, no longer in bits. */
BW_API bw_status bw_gradients_norm(bw_gradients *gradients, double *norm);
/* Multiplies the gradient so far; the number of samples stays. */
BW_API bw_status bw_gradients_scale(bw_gradients *gradients, double factor);
/* Divides once by the number of samples, updates the model, clears. */
BW_API bw_status bw_apply(bw_model *model, bw_gradients *gradients);
/* With use_ema: the averages become the weights. bw_fit does it at its end. */
BW_API bw_status bw_apply_averages(bw_model *model);
BW_API void bw_gradients_free(bw_gradients *gradients);

/* ---- Ranks -------------------------------------------------------------------------------------------- */

/* Several ranks in one process, each a thread with a context of its own, that train one model together: give each
 * context the same group and its own number, and all the same model, samples and options; callbacks must decide alike. `count`
 * is a power of two. A group serves once: when a context of it closes, fails or is cancelled alone, the others' calls return
 * BW_CANCELLED. Outlives the contexts. */
BW_API bw_ranks *bw_ranks_open(int count);
BW_API void bw_ranks_close(bw_ranks *ranks);

#ifdef __cplusplus
}
#endif

#endif
