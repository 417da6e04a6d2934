/*
 * batchwise.h - training neural networks on mini-batches, in C.
 *
 * The batch is a statistical choice; the tile is a hardware choice. A batch of any size is cut into tiles of a few samples that
 * fit the cache and the memory budget. Memory therefore does not grow with the batch, small batches are fast, and the result is
 * the same, bit for bit, on any number of workers.
 *
 * Three rules hold everywhere:
 *
 * 1. One owner. Every object is made from a context and belongs to it; bw_close frees them all. An object may be freed earlier
 *    by its own function, which accepts NULL.
 * 2. No failure is lost. A builder (a function that returns a pointer) returns NULL on failure; every builder accepts NULL and
 *    passes it on, so calls can be nested. The first failure, of a builder or of a function that returns a status, stays in the
 *    context until somebody has been told of it: the next function that returns a status does nothing but return it, with its
 *    message, or the program asks (bw_message, bw_last_error). So after bw_load_weights failed unnoticed, bw_fit does not train: it
 *    returns that failure. One check, of the call after which the others do not matter, suffices. A program that goes on
 *    after a failure on purpose asks for it first. BW_CANCELLED and the end of the data (bw_next) are no failures and do not stay;
 *    a failure within a callback is returned by the call that runs it.
 * 3. Simple, then more. Each task has a call with defaults, an options struct for everything else, and below that the pieces for
 *    a custom loop.
 *
 * Pointers. A parameter is borrowed, that is used only during the call, unless its comment says that it is kept (it must outlive
 * the object) or taken (the callee owns it from then on, even if the call fails). A pointer that is returned is lent: it remains
 * the object's, and its comment says for how long it is valid if that is shorter than the object's life.
 *
 * Options. An options struct begins with its size, so that a program compiled against an older header keeps working: members that
 * it does not know have their defaults. Initialise it with the macro beside it and change what you need. NULL options are all
 * defaults.
 *
 * Threads. A context, and everything made from it, is used by one thread at a time; contexts are independent of each other. Only
 * bw_cancel may be called from another thread or from a signal handler. A child of fork may use its copy of a context unless
 * another thread was using it; it starts threads of its own.
 *
 * Contents: status, context, arrays, random numbers, data, models, training, files, history, memory before running, diagnosis,
 * custom loops, ranks. Longer explanations are in docs/reference.
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

/* Returns the version of the library that is running, for example "0.1.0", which may differ from that of the header. */
BW_API const char *bw_version(void);

/* ---- Status ------------------------------------------------------------------------------------------- */

/* What a call returns: TensorFlow's names and numbers. */
typedef enum bw_status {
    BW_OK = 0,
    BW_CANCELLED = 1,          /* bw_cancel was called, or another rank left the group */
    BW_INVALID_ARGUMENT = 3,   /* a value, shape or text that cannot be right */
    BW_NOT_FOUND = 5,          /* there is no such file, member, layer or name */
    BW_RESOURCE_EXHAUSTED = 8, /* there is not enough memory, disk space or threads */
    BW_OUT_OF_RANGE = 11,      /* the end of the data was reached */
    BW_UNIMPLEMENTED = 12,     /* the request is understood, and not supported */
    BW_INTERNAL = 13,          /* a defect of this library or of one that it uses */
    BW_UNAVAILABLE = 14,       /* another rank is gone, or gives no sign of life */
    BW_DATA_LOSS = 15          /* a file is damaged */
} bw_status;

/* Returns "INVALID_ARGUMENT" and so on; never NULL. */
BW_API const char *bw_status_name(bw_status status);

/* ---- Context ------------------------------------------------------------------------------------------ */

typedef struct bw_context bw_context;
typedef struct bw_model bw_model;
typedef struct bw_dataset bw_dataset;
typedef struct bw_history bw_history;
typedef struct bw_plan bw_plan;
typedef struct bw_findings bw_findings;
typedef struct bw_gradients bw_gradients;
typedef struct bw_iterator bw_iterator;
typedef struct bw_batch bw_batch;
typedef struct bw_ranks bw_ranks;
typedef struct bw_node bw_node;
typedef struct bw_tensorboard bw_tensorboard;

/* Where memory comes from. `allocate` returns NULL on failure; `release` is given the size that was allocated. Both may be
 * called from several threads at once. */
typedef struct bw_allocator {
    void *user;
    void *(*allocate)(void *user, size_t bytes, size_t alignment);
    void (*release)(void *user, void *memory, size_t bytes);
} bw_allocator;

/* What a name in a folder stands for. A symbolic link is a link, whatever it points to. */
typedef enum bw_entry { BW_ENTRY_FILE, BW_ENTRY_FOLDER, BW_ENTRY_LINK, BW_ENTRY_OTHER } bw_entry;

/* How files are reached. Each function returns a value of 0 or more on success and a negative errno on failure. */
typedef struct bw_io {
    void *user;
    int (*open)(void *user, const char *path, int flags, int mode); /* flags and mode are those of open(2) */
    int64_t (*read)(void *user, int file, void *bytes, size_t count, int64_t offset);
    int64_t (*write)(void *user, int file, const void *bytes, size_t count, int64_t offset);
    int64_t (*size)(void *user, int file);
    int (*sync)(void *user, int file);
    int (*close)(void *user, int file);
    int (*rename)(void *user, const char *from, const char *to);
    int (*remove)(void *user, const char *path);                   /* a file, or an empty folder */
    int (*map)(void *user, int file, size_t bytes, void **memory); /* for reading only */
    int (*unmap)(void *user, void *memory, size_t bytes);
    /* Calls `add` for each name in a folder, in any order, without . and .. . If `add` returns something other than 0, listing
     * stops and that value is returned. */
    int (*list)(void *user, const char *path, int (*add)(void *names, const char *name, bw_entry entry), void *names);
    /* Makes the file `bytes` long, with its blocks reserved on the disk, and maps it for reading and writing. If this is NULL,
     * data larger than memory is refused. */
    int (*map_shared)(void *user, int file, size_t bytes, void **memory);
    /* Makes a folder in one that exists, with a mode as in mkdir(2). If this is NULL, folders must exist. */
    int (*make_folder)(void *user, const char *path, int mode);
} bw_io;

typedef enum bw_log_level { BW_LOG_INFO, BW_LOG_WARNING } bw_log_level;

typedef struct bw_context_options {
    size_t size;                   /* sizeof(bw_context_options) */
    const bw_allocator *allocator; /* copied; NULL: the system's */
    const bw_io *io;               /* copied; NULL: the system's */
    int workers;                   /* threads that compute, including the caller's; 0: one for each CPU */
    const char *instruction_set;   /* "avx512", "avx2", "neon" or "portable"; NULL: $BATCHWISE_ISA, or the best that the CPU has */
    bw_ranks *ranks;               /* kept; NULL: a single rank */
    int rank;                      /* this context's number in `ranks` */
    void (*log)(void *user, bw_log_level level, const char *message); /* receives what is worth knowing; NULL: nobody does */
    void *log_user;                                                   /* kept */
    /* Computes convolutions by their definition only. Without it, 3x3 convolutions of stride 1, unless they have few channels or
     * very many weights, and those of images with two to four channels that are followed by ReLU and max pooling use Winograd's
     * algorithm: two to three times as fast, with errors of up to about 1e-5 of the largest value. */
    bool exact_kernels;
    /* The budget in bytes of evaluation and prediction, and of training whose own options give none; 0: what the cgroup and the
     * machine allow. */
    size_t memory;
    /* Seconds without a sign of life after which a rank of MPI is given up; 0: 60. */
    double watchdog;
} bw_context_options;

#define BW_CONTEXT_OPTIONS_DEFAULT         \
    {                                      \
        .size = sizeof(bw_context_options) \
    }

/* Opens a context. Returns NULL only if there is no memory for it; an option that cannot be right is reported by the first call
 * that returns a status. */
BW_API bw_context *bw_open(const bw_context_options *options);

/* Frees the context and everything that was made from it. Waits for functions that still make a sample (bw_sample_cancelled). */
BW_API void bw_close(bw_context *ctx);

/* Returns the message of the last failure, one line without a newline, or "" if there was none. It names the thing that is wrong,
 * what was expected and what was found. Whoever asks has been told: the next call goes on as if nothing had failed. Lent until the
 * next call. */
BW_API const char *bw_message(bw_context *ctx);

/* What a failure concerns. */
typedef enum bw_error_kind {
    BW_ERROR_NONE,
    BW_ERROR_USAGE,     /* an argument, an option or a text such as an expression */
    BW_ERROR_FILE,      /* a file: missing, unreadable, damaged or of another kind */
    BW_ERROR_DATA,      /* a sample, or a record in a file */
    BW_ERROR_MODEL,     /* a layer, whatever the samples: shapes that do not fit */
    BW_ERROR_RESOURCES, /* memory, disk or threads */
    BW_ERROR_CANCELLED,
    BW_ERROR_INTERNAL
} bw_error_kind;

/* A failure as data, so that no program needs to parse its message. What is not known is NULL or -1. */
typedef struct bw_error {
    bw_status status; /* BW_OK: nothing has failed */
    bw_error_kind kind;
    const char *message;  /* as bw_message gives it; never NULL */
    const char *path;     /* the file */
    int64_t line;         /* of that file, from 1 */
    int column;           /* of a table (CSV), from 0 as in bw_read_options.target */
    const char *argument; /* the text that is wrong: "model", "optimizer", "early_stopping" */
    int64_t offset;       /* byte within that text, or else within the file */
    const char *layer;    /* its name */
    int64_t sample;       /* its number in its source */
} bw_error;

/* Returns the last failure; never NULL. Whoever asks has been told, as with bw_message. Lent until the next call. */
BW_API const bw_error *bw_last_error(bw_context *ctx);

/* Stops what the context is doing at the next tile or wait; the call that is stopped returns BW_CANCELLED and clears the flag. The
 * model keeps the last complete update. Safe from any thread and from a signal handler. */
BW_API void bw_cancel(bw_context *ctx);

/* ---- Arrays ------------------------------------------------------------------------------------------- */

/* BW_TEXT is for inputs that only the layers for text and categories take, such as text_vectorization: elements are of type
 * bw_text. */
typedef enum bw_dtype {
    BW_U8,
    BW_I8,
    BW_U16,
    BW_I16,
    BW_U32,
    BW_I32,
    BW_U64,
    BW_I64,
    BW_F16,
    BW_F32,
    BW_F64,
    BW_BOOL,
    BW_TEXT
} bw_dtype;

/* A text, which owns nothing: UTF-8, any bytes in it, no NUL at its end. */
typedef struct bw_text {
    const char *bytes;
    int64_t size;
} bw_text;

/* The largest number of axes. */
#define BW_MAX_NDIM 8

/* A view of an array, which owns nothing. The first axis counts the samples. */
typedef struct bw_array {
    const void *data;
    bw_dtype dtype;
    int ndim; /* number of axes */
    int64_t shape[BW_MAX_NDIM];
    int64_t strides[BW_MAX_NDIM]; /* in bytes; all zero: row-major without gaps */
} bw_array;

/* ---- Random numbers ----------------------------------------------------------------------------------- */

/* A stream of random numbers is a function of seed and stream alone. `drawn` counts the numbers taken from it, so a stream can be
 * copied and resumed; it begins at 0. */
typedef struct bw_random {
    uint64_t seed, stream, drawn;
} bw_random;

BW_API float bw_random_uniform(bw_random *random);                /* uniform in [0, 1) */
BW_API float bw_random_normal(bw_random *random);                 /* normal with mean 0 and standard deviation 1 */
BW_API int64_t bw_random_below(bw_random *random, int64_t count); /* an integer from 0 to count - 1 */
/* Returns one of `count` categories, each with a probability in proportion to its weight. */
BW_API int bw_random_category(bw_random *random, const float *weights, int count);
/* Returns the element at a position of the permutation of 0 to count - 1 that the seed selects, or -1 outside of it. */
BW_API int64_t bw_random_permute(uint64_t seed, int64_t count, int64_t position);

/* ---- Data --------------------------------------------------------------------------------------------- */

/* Whether the first line of a text file names the columns. If it is detected, the result is logged. */
typedef enum bw_header { BW_HEADER_DETECT, BW_HEADER_YES, BW_HEADER_NO } bw_header;

/* What happens to a missing value (an empty field, NA, NaN, null or ?): it is a failure that names line and column, it becomes the
 * mean of its column, it becomes zero, or its record is skipped. */
typedef enum bw_missing { BW_MISSING_ERROR, BW_MISSING_MEAN, BW_MISSING_ZERO, BW_MISSING_SKIP } bw_missing;

typedef struct bw_read_options {
    size_t size;
    double scale;               /* the inputs are multiplied by it; default 1 */
    int ndim;                   /* number of axes in `shape`; 0: the inputs keep their shape */
    int64_t shape[BW_MAX_NDIM]; /* the shape that each sample's input gets, for example 28, 28, 1 for 784 columns */
    const char *target;         /* the target's column, by name or by number from 0 (negative: from the end). Several columns,
                                   "y1,y2", are one target with that many numbers, for an output such as dense(2); a model with
                                   several outputs (bw_output, or a file of Keras) takes for each the column of its name. Also
                                   the name of the target in HDF5 and TFRecord files. NULL: the last column, or y or label; "":
                                   there is none */
    bw_header header;
    bw_missing missing;
    const char *categorical; /* columns whose numbers are categories, "city,3"; text columns always are; NULL: none */
    const char *ignore;      /* columns to leave out; NULL: none. A name that no column has is a failure, here and above */
    double bad_records;      /* the share of records that may be malformed: they are skipped, counted and logged; default 0. In
                                formats whose records are checked only when a sample is made, such as images, it acts as
                                bw_allow_bad */
    const bw_dataset *like;  /* take columns, categories and fill values from this dataset, with which a model was trained. Columns
                                are matched by name, or by order if one of the two files has no header */
    const char *input;       /* name of the inputs' feature (TFRecord) or dataset (HDF5); NULL: x or image */
    int64_t take;            /* read only the first `take` samples, for example of an endless standard input; 0: all */
    const char *na;          /* further texts that stand for missing values, "-,unknown,-999"; NULL: none */
    const char *separator;   /* of a table's fields: a character, "tab" or "space" (any number of blanks); NULL: found and logged */
    int64_t skip_rows;       /* lines before a table's header or first record, such as a title */
    const char *part;        /* of a file with parts: "train", "validation" or "test"; of the last two, one stands for the other if
                                that is not there; NULL: "train". A file without parts is read as a whole */
    bool unpack_any;         /* packed files (npz, gzip, chunks of HDF5) may unpack to more than 32 MiB and 960 times their size,
                                which is otherwise refused */
    const char *text; /* columns of a table that are text, "title,review": each is an input by its name, which a layer such as
                                text_vectorization takes. "": .txt files, and lines of standard input, are texts as a whole */
    bool scale_given; /* of bw_read_for: the scale is meant although it is the default of 1, so that a model that was trained
                                with another one refuses it */
} bw_read_options;

#define BW_READ_OPTIONS_DEFAULT                     \
    {                                               \
        .size = sizeof(bw_read_options), .scale = 1 \
    }

/* Opens the samples in a file, a list of files "a.csv,b.csv", a glob "train-*.tfrecord" or a folder. The kind is chosen by the
 * name's ending; docs/reference/data.md describes each:
 *   .npz              arrays x, y and optionally w (or x_<input>, y_<output>, w_<output>); x_train, y_train, x_test, y_test, as
 *                     Keras's own data sets have, are parts
 *   .npy              a list x.npy,y.npy,w.npy
 *   .csv, .tsv, .data, .txt, also .gz
 *                     a table of numbers and categories; "-" is CSV on standard input, read as a stream
 *   ...ubyte, .idx    IDX, also .gz: a list of images and labels, or the folder that holds them
 *   .libsvm, .svm     target index:value index:value ...
 *   .h5, .hdf5        datasets x, y and optionally w, or parts as above
 *   .tfrecord         records of tf.train.Example, also .gz; "tfrecord:-" is standard input, read as a stream
 *   a folder          of class folders of PNG and JPEG images, or of .txt files, each of which is a text
 *   synth:NAME?n=1000 synthetic samples: images, ordered, shapes, line, range
 * A file larger than memory is mapped, or converted once into a temporary file. A builder: NULL if the file is missing, damaged or
 * of another kind, with a message that names the place. */
BW_API bw_dataset *bw_read(bw_context *ctx, const char *path, const bw_read_options *options);

/* Makes a dataset from arrays in memory, whose data it keeps. `y` and `w` (sample weights) may be NULL. Fails if the arrays differ
 * in their number of samples. A builder. */
BW_API bw_dataset *bw_from_arrays(bw_context *ctx, const bw_array *x, const bw_array *y, const bw_array *w);

/* An array with a name: x, y or w, or x_<input>, y_<output>, w_<output> for models with several inputs or outputs. */
typedef struct bw_field {
    const char *name;
    bw_array array;
} bw_field;

/* Makes a dataset from named arrays, whose data it keeps. A builder. */
BW_API bw_dataset *bw_from_fields(bw_context *ctx, const bw_field *fields, int count);

/* ---- Functions that make and change samples ---- */

/* The size of the buffer for a function's error message. */
#define BW_ERROR_TEXT 128

/* What a function is told about the sample that it makes or changes. */
typedef struct bw_sample {
    int64_t number;   /* identifies the sample: its place in the source, not in the epoch */
    int epoch;        /* -1 in validation, evaluation, prediction and while statistics are fitted */
    bw_random random; /* the sample's own stream in this epoch, whatever the threads and the order */
    char *error;      /* a function that returns false may write the reason here, in BW_ERROR_TEXT bytes */
    const bw_context *context;
} bw_sample;

/* Returns whether the sample is not wanted any more, for functions that take long: bw_cancel was called, or the call that wanted it
 * has ended, for example because a sample took longer than bw_prefetch_options.seconds. */
BW_API bool bw_sample_cancelled(const bw_sample *sample);

/* Makes a sample: writes values[i], field i in row-major order without gaps, unless it is NULL, which means that the field is not
 * needed now. The fields are in the order inputs, targets, weights. Returns false to fail. The function runs on several threads at
 * once, and must give the same values for the same number and epoch. */
typedef bool (*bw_sample_function)(void *user, bw_sample *sample, void *const *values);

/* Makes a dataset of samples that a function makes by number. The fields' arrays have no data; their first extent is the number of
 * samples. The fields are copied, `user` is kept. A builder. */
BW_API bw_dataset *bw_from_function(bw_context *ctx, const bw_field *fields, int count, bw_sample_function function, void *user);

/* Changes a sample: reads from[i] and writes to[i]. Integers are int32, except for inputs that are scaled or have 8 bits;
 * everything else is float32. A field whose name, type and shape do not change has already been copied to `to`. Returns false to
 * fail. Runs on several threads at once. */
typedef bool (*bw_map_function)(void *user, bw_sample *sample, const void *const *from, void *const *to);

typedef struct bw_map_options {
    size_t size;
    uint64_t seed; /* of the samples' random streams */
    const bw_field
        *fields; /* the fields that come out, float32 or int32, whose first extents are ignored; NULL: those that go in */
    int field_count;
} bw_map_options;

#define BW_MAP_OPTIONS_DEFAULT         \
    {                                  \
        .size = sizeof(bw_map_options) \
    }

/* Applies a function to every sample, ahead of training and on separate threads. Takes the dataset; keeps `user`. A builder. */
BW_API bw_dataset *bw_map(bw_dataset *dataset, bw_map_function function, void *user, const bw_map_options *options);

/* Returns whether a sample is kept. It sees values as map functions do. */
typedef bool (*bw_filter_function)(void *user, bw_sample *sample, const void *const *from);

/* Keeps the samples for which the function returns true. It is called once for each sample, during this call, on all workers. Takes
 * the dataset. A builder. */
BW_API bw_dataset *bw_filter(bw_dataset *dataset, bw_filter_function function, void *user);

/* Drops the samples that cannot be made because a file is corrupt or a function fails. Each sample is tried once, during this call;
 * those that fail are counted and logged. Fails if their share is larger than `share`. Takes the dataset. A builder. */
BW_API bw_dataset *bw_allow_bad(bw_dataset *dataset, double share);

/* Writes the next sample. Returns 1, or 0 if there are no more, or -1 to fail. */
typedef int (*bw_generator_function)(void *user, bw_sample *sample, void *const *values);

/* Makes a stream of the samples that a function gives one after another. It is called on the caller's thread when samples are
 * needed; bw_fit begins with the first of them, and the first epoch ends where the stream does. Samples are kept, beyond half of
 * the available memory in a temporary file, so that later epochs are like those of other data. Mapping, one_hot, shuffling, take,
 * batches and prefetching work on the stream; everything else reads it to its end first. In the first epoch bw_shuffle is exact
 * within blocks of 64 MiB, which is logged. The fields' first extents are ignored; `user` is kept. A builder. */
BW_API bw_dataset *bw_from_generator(bw_context *ctx, const bw_field *fields, int count, bw_generator_function function,
                                     void *user);

/* ---- Transformations ---- */

/* Changes images at random during training, differently in each epoch, as a function of seed, epoch and the sample's number.
 * Validation, evaluation and prediction see the images unchanged. The text lists the changes in their order, for example
 * "flip,shift=0.1,rotate=15": flip, shift, crop, rotate, zoom, brightness, contrast, noise and cutout, which
 * docs/reference/pipeline.md describes. Inputs must have the shape (height, width, channels). Takes the dataset. A builder. */
BW_API bw_dataset *bw_augment(bw_dataset *dataset, const char *text, uint64_t seed);

/* Keeps samples in memory once they have been made, as they were in epoch 0. Takes the dataset. A builder. */
BW_API bw_dataset *bw_cache(bw_dataset *dataset);

/* Keeps samples in a file that later runs use again. If there is no such file, it is written during this call, on all workers. An
 * existing file must hold the same samples: fields, counts and a fingerprint are compared and all bytes are checked. Takes the
 * dataset. A builder. */
BW_API bw_dataset *bw_cache_file(bw_dataset *dataset, const char *path);

/* Scales the inputs to mean 0 and standard deviation 1 (standardise), or to the range 0 to 1 (normalise), for each index of their
 * last axis. The statistics are fitted to the samples that are used first; bw_fit fits them to the training part only. With
 * `like`, which is kept, they are those of that dataset: for validation and prediction. Take the dataset. Builders. */
BW_API bw_dataset *bw_standardise(bw_dataset *dataset, const bw_dataset *like);
BW_API bw_dataset *bw_normalise(bw_dataset *dataset, const bw_dataset *like);

/* Turns class numbers in the targets into rows of `classes` numbers, 1 for the class and 0 elsewhere. 0 classes: as many as have
 * names. Takes the dataset. A builder. */
BW_API bw_dataset *bw_one_hot(bw_dataset *dataset, int64_t classes);

typedef struct bw_prefetch_options {
    size_t size;
    int threads;     /* that make samples ahead of time; 0: one for each CPU */
    int64_t samples; /* how many are held; 0: two batches, within 64 MiB. Either is limited to a quarter of the budget */
    double seconds;  /* a source that gives no sample for this long has stalled, which is a failure; 0: 60; negative: never */
} bw_prefetch_options;

#define BW_PREFETCH_OPTIONS_DEFAULT         \
    {                                       \
        .size = sizeof(bw_prefetch_options) \
    }

/* Chooses how samples that are slow to make (from functions, maps, images) are prefetched; they are in any case. Takes the dataset.
 * A builder. */
BW_API bw_dataset *bw_prefetch(bw_dataset *dataset, const bw_prefetch_options *options);

/* ---- Order, parts and batches ---- */

/* Puts the samples into an exact random order over all of them, a new one in each epoch, as a function of seed and epoch, in
 * constant memory. Takes the dataset. A builder. */
BW_API bw_dataset *bw_shuffle(bw_dataset *dataset, uint64_t seed);

/* Keeps the first `count` samples, or all but the first `count`. Take the dataset. Builders. */
BW_API bw_dataset *bw_take(bw_dataset *dataset, int64_t count);
BW_API bw_dataset *bw_skip(bw_dataset *dataset, int64_t count);

/* Splits a dataset as bw_fit does for its validation_split: into the samples before floor(n * (1 - share)) and those from there on,
 * in the order of the first epoch if the dataset is shuffled; the training part is then shuffled within itself. The dataset is
 * borrowed; the caller owns the parts. INVALID_ARGUMENT if a part would be empty. */
BW_API bw_status bw_split(bw_dataset *dataset, double share, bw_dataset **training, bw_dataset **validation);

/* Keeps every count-th sample from the index-th on: one of `count` parts without overlap. Takes the dataset. A builder. */
BW_API bw_dataset *bw_shard(bw_dataset *dataset, int64_t count, int64_t index);

/* Combines two datasets: one after the other; alternating blocks of the two; or sample by sample, where the second's inputs become
 * the targets if neither has any. Their fields must fit each other. bw_repeat gives the same samples several times, each time as in
 * an epoch of its own. Take the datasets. Builders. */
BW_API bw_dataset *bw_concatenate(bw_dataset *first, bw_dataset *second);
BW_API bw_dataset *bw_interleave(bw_dataset *first, bw_dataset *second, int64_t block);
BW_API bw_dataset *bw_zip(bw_dataset *first, bw_dataset *second);
BW_API bw_dataset *bw_repeat(bw_dataset *dataset, int64_t times);

/* Sets the batch size of bw_iterate, and of bw_fit unless its options give one. Concatenated datasets keep their own sizes (batches
 * of 32, then of 64); no batch crosses from one to the other, nor from one repetition to the next. bw_batch_sizes takes a text:
 * "32", "full", "32,64" (alternating within an epoch), "32/64" (all samples by 32, in the next epoch all by 64, and so on) or
 * "32@0,128@5" (128 from epoch 5 on); with drop_remainder a last batch that is smaller than its size is dropped. The size that is
 * set last counts. Take the dataset. Builders. */
BW_API bw_dataset *bw_batches(bw_dataset *dataset, int64_t batch);
BW_API bw_dataset *bw_batch_sizes(bw_dataset *dataset, const char *text, bool drop_remainder);

/* ---- Sequences ---- */

/* Makes a dataset of sequences of varying length. `values` holds the steps of all sequences one after another along its first axis;
 * sequence i goes from offsets[i] to just before offsets[i + 1], so there are count + 1 offsets. As samples they are padded with
 * zeros to the longest. Keeps the arrays' data and the offsets; `y` and `w` may be NULL. A builder. */
BW_API bw_dataset *bw_from_sequences(bw_context *ctx, const bw_array *values, const int64_t *offsets, int64_t count,
                                     const bw_array *y, const bw_array *w);

/* Computes each sample at the shortest of these ascending lengths that holds it. The first axis of the inputs is the sequence, and
 * zeros up to its end are padding. The data's own length is always the last; at most 15 others are given. A batch remains the same
 * set of samples; only its tiles have one length each. A sample's length depends on the sample alone, so results depend on neither
 * the batch nor the tile. A model whose layers respect masks (embedding with mask_zero=true) gives the same results as with all the
 * padding. Layers that need a fixed length (flatten before dense) and batch normalization are refused. Takes the dataset; call it
 * after map, cache and the like. A builder. */
BW_API bw_dataset *bw_bucket(bw_dataset *dataset, const int64_t *lengths, int count);

/* ---- Facts about data ---- */

/* Returns the number of samples, or -1 for NULL and for a stream whose end is not known. */
BW_API int64_t bw_dataset_count(const bw_dataset *dataset);

/* Returns the number of axes of one sample's input, without the batch, or -1. `shape`, with BW_MAX_NDIM places, gets the
 * extents. */
BW_API int bw_dataset_shape(const bw_dataset *dataset, int64_t *shape);

/* The same for a field by its name as in bw_field ("x", "y_<output>"); -1 if there is no such field. */
BW_API int bw_dataset_field(const bw_dataset *dataset, const char *name, int64_t *shape);

/* A field of a dataset. */
typedef struct bw_field_facts {
    char name[72];              /* as in bw_field: "x", "y_<output>" */
    bw_dtype dtype;             /* in which functions of bw_map and bw_filter see it: BW_F32 or BW_I32 */
    int ndim;                   /* of one sample */
    int64_t shape[BW_MAX_NDIM]; /* likewise */
} bw_field_facts;

/* Describes the fields by number, from 0, in the order inputs, targets, weights; returns false after the last. */
BW_API bool bw_dataset_field_at(const bw_dataset *dataset, int number, bw_field_facts *facts);

/* Writes a field's values of `count` samples from position `first` on, in the order of epoch 0, as float32 and row-major.
 * `capacity` is the number of floats, and must be exactly what these samples have. */
BW_API bw_status bw_dataset_values(bw_dataset *dataset, const char *name, int64_t first, int64_t count, float *values,
                                   size_t capacity);

/* Returns the name of a class by its number, where the targets are text in a CSV file or class folders; NULL if it has none.
 * Lent. */
BW_API const char *bw_dataset_class(const bw_dataset *dataset, int number);
/* Columns of a table that are inputs, from 0 on: the column's name ("" if the table has no header), and the number of its
 * categories, each of which is an input of 0 or 1; 0: the column is one number. False: there are fewer. A category by its number;
 * NULL: there are fewer. Lent. */
BW_API bool bw_dataset_column(const bw_dataset *dataset, int column, const char **name, int *categories);
BW_API const char *bw_dataset_category(const bw_dataset *dataset, int column, int number);
/* Writes the path of the file that a sample is, the one at this position in the dataset's order, to `text`, for images. Returns
 * false if samples are not files, or there are fewer. */
BW_API bool bw_dataset_file(const bw_dataset *dataset, int64_t position, char *text, size_t size);

/* Returns whether the file that the dataset was read from has a part, "train", "validation" or "test", as in bw_read_options. */
BW_API bool bw_dataset_has_part(const bw_dataset *dataset, const char *part);

BW_API void bw_dataset_free(bw_dataset *dataset);

/* ---- Models ------------------------------------------------------------------------------------------- */

/* Makes a model from an expression such as "conv2d(32,3,relu) maxpool2d(2) flatten dense(10,softmax)" (docs/model-expression.md).
 * The input's shape comes from the data when the model is first used, unless the text begins with input(28,28,1). A builder: NULL
 * if the text cannot be read, with a message that names the column. */
BW_API bw_model *bw_model_parse(bw_context *ctx, const char *expression);

/* ---- Models by calls ----
 * A model is a graph of nodes, each of which is one value per sample. Nodes are lent: they belong to their model. Every function
 * that returns a node is a builder: it accepts NULL and passes it on. */

/* Makes an empty model, to be filled by the calls below. */
BW_API bw_model *bw_model_new(bw_context *ctx);

/* Adds an input of the given shape (of one sample, without the batch). Its values are the data's field x, or x_<name> if there are
 * several inputs. dtype is BW_F32, or BW_I32 for the indices of an embedding. */
BW_API bw_node *bw_input(bw_model *model, const char *name, bw_dtype dtype, int ndim, const int64_t *shape);

/* Applies a layer written as in an expression, for example "conv2d(16,3,padding=same,activation=relu)". */
BW_API bw_node *bw_layer(bw_node *input, const char *layer);

/* Applies a layer that has several inputs: "add", "concat(axis=-1)", "dot(axes=1)". */
BW_API bw_node *bw_merge(const char *layer, bw_node *const *inputs, int count);

/* Applies the layer that made `made` to another input, with the same variables. */
BW_API bw_node *bw_layer_again(const bw_node *made, bw_node *input);

/* What the layer that made `made` gives beside it, from 1: the states of "lstm(64,return_state=true)", h and then c, or the second
 * output of a Bidirectional whose directions are not merged. bw_merge gives a recurrent layer the states that it begins with, after
 * its input. */
BW_API bw_node *bw_layer_part(const bw_node *made, int number);

/* Makes the node an output: bw_predict returns it, and losses compare it with the targets y, or y_<name> if there are several. */
BW_API bw_status bw_output(bw_node *node, const char *name);

/* Gives access to the targets y, or y_<name>, for a custom loss. */
BW_API bw_node *bw_target(bw_model *model, const char *name, bw_dtype dtype, int ndim, const int64_t *shape);

/* Adds a node that has one number per sample to the loss; its mean over the batch counts. */
BW_API bw_status bw_add_loss(bw_node *loss, const char *name);

/* Elementwise arithmetic. The shapes are equal, or one of the two is a single number per sample. */
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
BW_API bw_node *bw_activation(bw_node *x, const char *name);        /* "relu", "tanh" and so on */

/* Reductions over one axis of the sample (from 0; negative: from the end), or over all of them with BW_ALL. The axis is removed. */
#define BW_ALL 1000
BW_API bw_node *bw_sum(bw_node *x, int axis);
BW_API bw_node *bw_mean(bw_node *x, int axis);
BW_API bw_node *bw_max(bw_node *x, int axis);

/* The product of matrices (m, k) and (k, n); `count` elements of an axis from `first` on; the same numbers in another shape. */
BW_API bw_node *bw_matmul(bw_node *a, bw_node *b);
BW_API bw_node *bw_slice(bw_node *x, int axis, int64_t first, int64_t count);
BW_API bw_node *bw_reshape(bw_node *x, int ndim, const int64_t *shape);

/* A custom operator. Its functions run on workers, several at once, each on its own samples. Arrays are float32 and row-major, one
 * sample after another. A function returns false to fail the step. */
typedef struct bw_operator {
    size_t size; /* sizeof(bw_operator) */
    const char *name;
    /* Computes the shape of one output sample from the inputs' shapes. Returns its number of axes, or -1 if the inputs do not
     * fit. */
    int (*shape)(void *user, int inputs, const int *ndims, const int64_t *const *shapes, int64_t *shape);
    bool (*forward)(void *user, int64_t samples, const float *const *src, float *dst);
    /* Writes the gradient with respect to each source whose diff_src is not NULL. NULL: nothing flows back. */
    bool (*backward)(void *user, int64_t samples, const float *const *src, const float *dst, const float *diff_dst,
                     float *const *diff_src);
    void *user; /* kept */
} bw_operator;

/* Applies a custom operator, which is copied. */
BW_API bw_node *bw_custom(const bw_operator *op, bw_node *const *inputs, int count);

/* ---- Compiling and building ---- */

/* Chooses the optimizer, loss and metrics by Keras's names, for example "adam(lr=0.001)", "sparse_categorical_crossentropy" and
 * "accuracy". What is NULL is chosen by bw_fit: Adam, a loss that suits the last layer and the targets, and accuracy for classes.
 * Several outputs have losses in their order or by name, "a=mse(weight=0.3),b=none": weight= is Keras's loss_weights, reduction=
 * its word ("sum"), and an output with none is not trained. Several metrics are separated by commas; each takes weighted=true
 * (sample and class weights count, as in Keras's weighted_metrics) and name=. Compiling again begins with a fresh optimizer.
 * INVALID_ARGUMENT names what is not known: the model stays as it was compiled before, and one that never was cannot be trained,
 * evaluated or planned, which fails with the same message, until compiling succeeds (with NULLs for the defaults). */
BW_API bw_status bw_compile(bw_model *model, const char *optimizer, const char *loss, const char *metrics);

/* Changes a model that is compiled already, for example one that was loaded. What is NULL stays as it is, including the
 * optimizer's state. */
BW_API bw_status bw_recompile(bw_model *model, const char *optimizer, const char *loss, const char *metrics);

/* Returns the optimizer's name as bw_compile takes it, for example "adam"; NULL before compiling. Lent, valid for the life of the
 * process. */
BW_API const char *bw_optimizer_name(const bw_model *model);
/* Copies the name of an output's loss likewise. Returns false, and makes `text` empty, if there is none or the data is yet to
 * decide. */
BW_API bool bw_loss_name(const bw_model *model, int output, char *text, size_t size);

/* Sets the shape of one input sample and creates the variables with their initial values. bw_fit does both from the data. A model
 * made by calls, or from an expression that begins with input(...), knows its shapes: pass ndim 0 and a NULL shape. */
BW_API bw_status bw_build(bw_model *model, int ndim, const int64_t *shape, uint64_t seed);

BW_API void bw_model_free(bw_model *model);

/* The variables in Keras's order and layout (a Conv2D kernel is height, width, in, out), as float32 in row-major order.
 * bw_variable_shape returns the number of axes. `count` is the number of floats and must be exactly the variable's. */
BW_API int bw_variable_count(const bw_model *model);
BW_API const char *bw_variable_name(const bw_model *model, int index);
BW_API int bw_variable_shape(const bw_model *model, int index, int64_t *shape);
BW_API bool bw_variable_trainable(const bw_model *model, int index); /* false also if there is no such variable */
BW_API bw_status bw_variable_get(const bw_model *model, int index, float *values, size_t count);
BW_API bw_status bw_variable_set(bw_model *model, int index, const float *values, size_t count);

/* What an output means: numbers, one probability for each class, or the probability of the second of two classes. */
typedef enum bw_output_kind { BW_OUTPUT_NUMBERS, BW_OUTPUT_CLASSES, BW_OUTPUT_BINARY } bw_output_kind;

typedef struct bw_output_facts {
    char name[64];
    int ndim; /* of one sample */
    int64_t shape[BW_MAX_NDIM];
    bw_output_kind kind; /* from the last layer, or from the loss */
    bool logits;         /* of classes: the output is what softmax or sigmoid turns into probabilities */
} bw_output_facts;

BW_API int bw_output_count(const bw_model *model);
BW_API bw_status bw_output_describe(const bw_model *model, int index, bw_output_facts *facts);

/* What a built model consists of. Layers are in Keras's order; unless the model is sequential, its inputs are among them as
 * "InputLayer". */
typedef struct bw_model_facts {
    const char *name; /* from its file, or Keras's "sequential" or "functional"; lent */
    bool sequential;  /* a list of layers after one input */
    int layers;
    int64_t trainable, non_trainable; /* parameters */
    int64_t optimizer;                /* numbers that the optimizer keeps; 0 before the first training */
} bw_model_facts;

typedef struct bw_layer_facts {
    char name[64];
    const char *class_name;        /* Keras's: "Conv2D" */
    int ndim;                      /* of one output sample of its last use */
    int64_t shape[BW_MAX_NDIM];    /* likewise */
    int64_t parameters, trainable; /* all of them, and those that are trained */
    int inputs;                    /* of all its uses together; bw_layer_input tells where they come from */
} bw_layer_facts;

BW_API bw_status bw_model_describe(const bw_model *model, bw_model_facts *facts);
BW_API bw_status bw_layer_describe(const bw_model *model, int layer, bw_layer_facts *facts);
/* Tells which layer, and which of its uses (from 0), an input of a layer comes from. */
BW_API bw_status bw_layer_input(const bw_model *model, int layer, int input, int *from, int *use);

/* Returns the model as an expression that bw_model_parse reads: the same layers, without weights. A builder: NULL if the model
 * cannot be written that way because it has several inputs or outputs, shared layers or custom operators. Lent. */
BW_API const char *bw_model_expression(bw_model *model);

/* Returns a hash of all variables in Keras's order, which is equal for equal bits. */
BW_API uint64_t bw_model_hash(const bw_model *model);

/* ---- Training ----------------------------------------------------------------------------------------- */

/* What a callback sees. */
typedef struct bw_progress {
    int epoch, epochs;      /* the epoch counts from 0 */
    int64_t step, steps;    /* finished steps of this epoch, and all of them; 0 while the end of a stream is not known */
    int64_t update;         /* updates of the model so far */
    int64_t samples;        /* seen in this epoch */
    double seconds;         /* since the epoch began */
    const bw_history *logs; /* its last row has the running means of this epoch; lent */
    bw_history *history;    /* the run so far: its complete epochs and, after bw_history_refresh, its facts and profile; lent */
} bw_progress;

/* Returns true to go on, or false to stop training after this step. Runs on the calling thread. */
typedef bool (*bw_callback)(void *user, const bw_progress *progress);

/* What happens to a step whose gradient, statistics or update would hold NaN or infinity. Nothing of it reaches the model either
 * way. */
typedef enum bw_on_nan {
    BW_NAN_STOP, /* training stops with INVALID_ARGUMENT, which names layer and sample */
    BW_NAN_SKIP  /* the step is skipped, logged and counted; an epoch whose steps are all skipped stops training */
} bw_on_nan;

typedef struct bw_fit_options {
    size_t size;
    int epochs;              /* default 1 */
    int64_t batch;           /* the batch size; more than there are samples is all of them; -1 (default): the sizes that bw_batches
                                or bw_batch_sizes set, or 32 */
    double validation_split; /* the share of samples held out for validation as by bw_split: the last ones, in the order of the
                                first epoch if the dataset is shuffled */
    bw_dataset *validation;  /* kept during the call; NULL: none */
    uint64_t seed;           /* of initial weights and random layers; default 0 */
    size_t memory;           /* budget in bytes; 0: the context's */
    int64_t tile;            /* samples that a worker takes through the model at once; 0: chosen from the model */
    int lanes;               /* sums of gradients that are kept apart, a power of two; 0: chosen from the model */
    int accumulate;          /* batches whose gradients are accumulated into one update; default 1 */
    FILE *progress;          /* Keras's progress bar is written here; NULL: it is not; kept during the call */
    bw_callback on_step;     /* after each update; NULL: none */
    bw_callback on_epoch;    /* after each epoch; NULL: none */
    void *user;              /* passed to the callbacks; kept during the call */
    /* Keras's callbacks by their arguments, for example "patience=3,restore_best_weights=true"; NULL: not used. */
    const char *early_stopping;
    const char *reduce_lr_on_plateau; /* the history then has a column learning_rate */
    /* Weights by class, which multiply the sample weights in training; classes from class_count on weigh 1. Kept during the call
     * (by bw_gradients_new: while the gradients live). NULL: none. */
    const float *class_weight;
    int class_count;
    const char *batch_sizes; /* as in bw_batch_sizes: "full", "32,64", "32/64", "32@0,128@5"; NULL: `batch` counts */
    int trace_steps;         /* steps, 1000 at most, of which every part is recorded with its time; default 0: none */
    int noise_every;         /* updates from one measurement of the gradient noise scale to the next; the history then has a
                                column noise_scale; default 0: none */
    bool drop_remainder;     /* drop a last batch that is smaller than its size */
    const char *spill;    /* folder for a file with what BatchNormalization must keep of a batch and the budget does not hold; not
                                a file system in memory; kept during the call; NULL: $TMPDIR or /tmp */
    bool saves;           /* a callback saves the model, or the program does so afterwards: what that takes is part of the plan */
    size_t program_bytes; /* what the program's callbacks take, such as a page that they serve: part of the plan; default 0 */
    /* Checkpoints, from which a run that was killed continues as if nothing had happened (docs/reference/run-directory.md). The
     * folder is made if need be; NULL: none are written. Data whose end is not known (a stream) cannot be resumed and is refused.
     * Kept during the call, like the next one. */
    const char *checkpoint_dir;
    const char *checkpoint_every; /* "100" (updates), "epoch" or "30s"; NULL: "epoch". One more is written when training ends */
    int checkpoint_keep;          /* the newest checkpoints that stay; 0: 3 */
    /* Continues from the newest complete checkpoint in checkpoint_dir, or starts a new run if there is none. The model, the samples
     * and the options must be those of the run that wrote it, except for epochs, memory, callbacks, workers and ranks; otherwise it
     * is refused, naming what differs. */
    bool resume;
    bw_on_nan on_nan;
    bw_tensorboard *tensorboard; /* writes what happens for TensorBoard; kept during the call; NULL: nothing is written */
} bw_fit_options;

#define BW_FIT_OPTIONS_DEFAULT                                                    \
    {                                                                             \
        .size = sizeof(bw_fit_options), .epochs = 1, .batch = -1, .accumulate = 1 \
    }

/* Trains the model, building and compiling it first if that was not done. `history` may be NULL; otherwise it gets a history, which
 * belongs to the context, even if training was stopped or failed after some epochs. After a failure the model is as after the last
 * complete update. RESOURCE_EXHAUSTED comes before the first step, with the smallest budget that would suffice; INVALID_ARGUMENT
 * names the sample or layer that is at fault. */
BW_API bw_status bw_fit(bw_model *model, bw_dataset *dataset, const bw_fit_options *options, bw_history **history);

/* A value of the program itself that a checkpoint keeps for a custom loop. */
typedef struct bw_checkpoint_value {
    const char *name; /* unique, at most 63 bytes */
    void *data;
    size_t bytes;
} bw_checkpoint_value;

typedef struct bw_checkpoint_options {
    size_t size;
    int keep; /* the newest checkpoints that stay; 0: 3 */
    const bw_checkpoint_value *values;
    int value_count;
} bw_checkpoint_options;

#define BW_CHECKPOINT_OPTIONS_DEFAULT         \
    {                                         \
        .size = sizeof(bw_checkpoint_options) \
    }

/* For custom loops: writes a checkpoint of a model that is built: its variables, the optimizer's state and the program's own
 * values, such as the epoch and the iterator's position. It is on the disk as a whole when the call returns, and its name in the
 * folder, which is made if need be, is the number `step`. Gradients that were added and not applied yet are no part of it, so with
 * them it is refused (INVALID_ARGUMENT): write checkpoints after bw_apply or bw_gradients_clear. */
BW_API bw_status bw_checkpoint(bw_model *model, const char *folder, int64_t step, const bw_checkpoint_options *options);
/* Loads the newest complete checkpoint of the folder into a model like the one it was written from, built and compiled alike,
 * and into the program's values, which must have the same names and sizes. *step is its number, or -1 if there is none, and then
 * nothing changes. A model that differs is refused, naming what differs. After a failure everything is as before. */
BW_API bw_status bw_resume(bw_model *model, const char *folder, int64_t *step, const bw_checkpoint_options *options);

/* Fits all layers that are fitted to samples, as Keras's adapt: the vocabularies and boundaries of layers for text and categories,
 * and Normalization layers, mean and variance of what each takes, over all axes but its own. bw_fit does it by itself, with its
 * training part, for layers without values: those that no file, no bw_variable_set and no earlier training gave any. It is meant
 * for custom loops, and for fitting a layer again. A layer behind one that is trained is not fitted. Builds the model (with seed
 * 0) if need be; a stream is read to its end. After a failure the model is as before. */
BW_API bw_status bw_adapt(bw_model *model, bw_dataset *dataset);

/* Makes a dataset in which the model's layers for text and categories (text_vectorization, string_lookup, ...), which must be
 * fitted, have turned their inputs into numbers. bw_fit, bw_evaluate and bw_predict do it by themselves; iterators and custom loops
 * need it. The model must outlive the dataset, and may not be fitted again meanwhile. The dataset is taken. A builder. */
BW_API bw_dataset *bw_vectorize(bw_dataset *dataset, bw_model *model);

/* Where the time of a run's steps went. bw_fit always measures it: it times as many steps, drawn at random, as cost less than a
 * hundredth of the run. Seconds are those of a mean step; each worker's parts sum up to the step. */
typedef enum bw_part_kind {
    BW_PART_DATA,      /* waiting for samples that are read or made while training runs */
    BW_PART_GATHER,    /* bringing the samples of a tile together */
    BW_PART_FORWARD,   /* a layer's forward pass */
    BW_PART_LOSS,      /* losses and metrics, both passes */
    BW_PART_BACKWARD,  /* a layer's backward pass */
    BW_PART_PREPARE,   /* what layers derive from weights that have changed */
    BW_PART_REDUCE,    /* adding the lanes' gradients */
    BW_PART_UPDATE,    /* the optimizer, with the gradients that are deferred to it */
    BW_PART_CALLBACKS, /* the program's callbacks and the progress bar */
    BW_PART_RANKS,     /* communication between ranks */
    BW_PART_IDLE,      /* a worker that has nothing to do, or waits for the others */
    BW_PART_OVERHEAD   /* everything else */
} bw_part_kind;

typedef struct bw_part {
    bw_part_kind kind;
    char name[64];    /* of the layer or input; empty: no layer's */
    const char *op;   /* the operator that computes it; "" likewise */
    const char *pass; /* "forward", "backward", "backward_weights", ...; "" likewise */
    double seconds;   /* of all workers together */
    double calls;     /* in a step */
    double flops;     /* floating-point operations in a step, by the definition of the layer; 0: not counted */
    double bytes;     /* that must move in a step at least; 0: not counted */
} bw_part;

typedef struct bw_profile_facts {
    int parts; /* 0: no step was timed, since there was only one */
    int workers;
    int64_t steps, timed_steps; /* all of them but the first, and those that were timed */
    double step_seconds;
    double samples; /* of a mean step */
} bw_profile_facts;

BW_API bw_profile_facts bw_history_profile(const bw_history *history);
/* Gets a part of the profile; the last one is overhead, the one before it idle time. OUT_OF_RANGE: there is no such part. */
BW_API bw_status bw_history_part(const bw_history *history, int index, bw_part *part);
/* Returns the seconds of a part on one worker. */
BW_API double bw_history_part_seconds(const bw_history *history, int index, int worker);
/* For callbacks: brings the facts and the profile of a running training up to the present, for programs that show them while it
 * runs. Costs some microseconds, mostly for asking the system about memory. A trace is there only at the end. Does nothing if the
 * training is over. */
BW_API bw_status bw_history_refresh(bw_history *history);
/* A call of a part in a traced step (`trace_steps` of bw_fit_options). The parts of a worker's share of the tiles lie within it,
 * and everything within the step. Samples that are made ahead of the workers are events of the threads that make them. A trace has
 * at most 32,768 events of a worker and 8,192 of such a thread, and is cut off there. */
enum { BW_EVENT_STEP = -1, BW_EVENT_SHARE = -2, BW_EVENT_SAMPLE = -3 };

typedef struct bw_event {
    int worker;            /* of BW_EVENT_SAMPLE: the data thread, from 0 */
    int part;              /* of the profile, or one of BW_EVENT */
    double begin, seconds; /* since the first event */
    int64_t sample;        /* of BW_EVENT_SAMPLE: the number of the sample; otherwise -1 */
} bw_event;

BW_API int64_t bw_history_events(const bw_history *history);
/* Gets an event: worker by worker, then data thread by data thread, in the order in which they ended. OUT_OF_RANGE: there is no
 * such event. */
BW_API bw_status bw_history_event(const bw_history *history, int64_t index, bw_event *event);
/* Writes the trace as JSON that Perfetto (ui.perfetto.dev) and Chrome open, packed by gzip if the path ends in .gz. Workers and
 * data threads are rows; loss and memory are counters. INVALID_ARGUMENT: nothing was traced. */
BW_API bw_status bw_history_save_trace(const bw_history *history, const char *path);
/* Returns the name of a kind of part: "forward", "data wait". */
BW_API const char *bw_part_kind_name(bw_part_kind kind);

/* What several cores do together when they all work for a while, in multiples of what one does alone: cores share caches, power
 * and, in a virtual machine, their time with others, so twice the cores are less than twice as fast. */
typedef struct bw_growth {
    int cores;
    double compute;   /* arithmetic on data in the nearest caches */
    double bandwidth; /* to and from memory */
} bw_growth;

enum { BW_MOST_GROWTHS = 16 };

/* What this machine can do at best: what the parts of a profile are compared with. */
typedef struct bw_machine {
    char cpu[64];             /* the processor's name */
    char instruction_set[16]; /* of the kernels: "avx512", "avx2", "neon", "portable" */
    int cores;                /* that this process may use */
    /* Floating-point operations a second of one core and of all, two for each multiply-add; bytes a second to and from memory. */
    double core_flops, flops;
    double core_bandwidth, bandwidth;
    double cache_bandwidth;    /* bytes a second of one core to and from its nearest caches */
    int64_t cache_bytes;       /* of the last cache before memory; 0: not known */
    double exchange_bandwidth; /* bytes a second that each core fetches from another one's caches, beyond what its own take */
    double meeting_seconds;    /* that all cores take to begin work together and to end it */
    int growths;               /* of the next; 0: not known, and cores are taken to be as fast together as `flops` says */
    bw_growth growth[BW_MOST_GROWTHS]; /* of 1, 2, 4, ... cores, and last of all */
    bool busy;                         /* other programs took the cores meanwhile: all of this may be too low, and was not kept */
} bw_machine;

/* Measures what the machine can do, which takes about a second, with the kernels of this context and all cores that the process
 * may use. The result is kept for the next time, also of other programs, in $XDG_CACHE_HOME/batchwise or ~/.cache/batchwise, for
 * this processor, number of cores, instruction set and version of the library. If that folder cannot be written, it is measured
 * each time. */
BW_API bw_status bw_machine_limits(bw_context *ctx, bw_machine *machine);

/* Other hardware, compared with the machine of a run: how many times as fast it computes (also from caches), moves data to and from
 * memory, and reads and makes samples. */
typedef struct bw_hardware {
    size_t size;
    int cores; /* that train, each with a worker; 0: as many as in the run */
    double compute, bandwidth, data;
} bw_hardware;

#define BW_HARDWARE_DEFAULT                                                  \
    {                                                                        \
        .size = sizeof(bw_hardware), .compute = 1, .bandwidth = 1, .data = 1 \
    }

/* The seconds of a mean step, by what bounds them. */
typedef struct bw_prediction {
    double step_seconds; /* the sum of the next four */
    double compute;      /* arithmetic, and data in caches */
    double bandwidth;    /* memory */
    double serial;       /* what one worker does while the others wait: callbacks, overhead, unequal shares, exchanging weights */
    double data;         /* waiting for samples */
} bw_prediction;

/* Predicts how long a step of this run would take on other hardware. It is a prediction from the profile: work that workers share
 * is divided among them as far as there are tiles, what is bound by memory shares the memory, and everything else stays. Cores slow
 * each other as they were measured to (`growth`); each of more cores than the machine has, as each of all that it has. With
 * BW_HARDWARE_DEFAULT the result is what was measured, by what bounds it. A plan with 8 lanes or more has at most as many workers;
 * with fewer lanes, workers share them. INVALID_ARGUMENT: no step was timed. */
BW_API bw_status bw_history_predict(const bw_history *history, const bw_machine *machine, const bw_hardware *hardware,
                                    bw_prediction *prediction);

/* The gradient noise scale: the batch size at which the noise of a step's gradient is as large as the gradient itself. Far below it
 * a larger batch saves steps, far above it costs samples. It belongs to a moment of training, and mostly rises. bw_fit measures it
 * from the lanes of a batch if `noise_every` asks for it, which needs batches of two tiles and more. */
typedef struct bw_noise_scale {
    bool determined;  /* false: the noise drowns the gradient, and all that can be said is that the scale is large */
    double scale;     /* trace / signal, in samples; NaN if it is not determined */
    double low, high; /* where it lies with a probability of 95 percent */
    double trace,
        signal; /* estimates of the trace of the covariance of samples' gradients, and of the squared norm of their mean */
} bw_noise_scale;

typedef struct bw_noise_facts {
    int64_t steps;       /* at which it was measured */
    int variables;       /* for bw_history_noise_of */
    bw_noise_scale raw;  /* of the gradient */
    bw_noise_scale seen; /* of the gradient as an optimizer such as Adam scales it, from the second update on */
    const char *refusal; /* why it cannot be measured for this model; NULL: it can. Lent for ever */
} bw_noise_facts;

BW_API bw_noise_facts bw_history_noise(const bw_history *history);
/* Returns the noise scale of one variable, by its number in the model. */
BW_API bw_noise_scale bw_history_noise_of(const bw_history *history, int variable);

/* The noise scale over training: each point is the estimate of an interval of it. There are at most 64 points, which join in pairs
 * as training goes on, so that a long run has no more of them than a short one. */
typedef struct bw_noise_point {
    int64_t updates; /* of the run, up to the end of the interval; 0: there is no such point */
    int64_t steps;   /* at which it was measured */
    bw_noise_scale raw, seen;
} bw_noise_point;

BW_API int bw_history_noise_points(const bw_history *history);
BW_API bw_noise_point bw_history_noise_point(const bw_history *history, int index);

/* Gets and sets the optimizer's learning rate; with a schedule, it is that of the next update. Setting it replaces the schedule.
 * Callbacks may call both. */
BW_API double bw_learning_rate(const bw_model *model);
BW_API bw_status bw_set_learning_rate(bw_model *model, double rate);

/* ---- Choosing a batch size ----
 * The time to a target is the number of steps times the time of a step. A step's time is measured; the number of steps follows
 * from the gradient noise scale: steps(B) is proportional to 1 + scale / B. A rate belongs to a batch, so the two are chosen
 * together. */

typedef struct bw_tuning bw_tuning;

typedef struct bw_tune_options {
    size_t size;
    double seconds;            /* how long to measure, about; default 15; what `confirm` takes comes on top */
    const bw_fit_options *fit; /* how the model will be trained: epochs, validation, seed, memory, tile, lanes, class weights; batch
                                  sizes, accumulation, callbacks and progress are ignored; NULL: defaults, and 10 epochs */
    int64_t reference;         /* the batch size to which the optimizer's rate and averages belong; default 32 */
    int64_t largest;           /* the largest batch size that is tried; default 4096 */
    bool keep_rate;            /* the optimizer's rate is right for the reference; otherwise it is searched for */
    bool tiles;                /* also measure tiles, at the batch size that was chosen */
    double confirm; /* seconds of training for each candidate; default 0: none, or what is left where noise cannot be measured */
} bw_tune_options;

#define BW_TUNE_OPTIONS_DEFAULT                                                          \
    {                                                                                    \
        .size = sizeof(bw_tune_options), .seconds = 15, .reference = 32, .largest = 4096 \
    }

/* Finds a batch size and the learning rate that goes with it. Trains the model for a while, with several batch sizes and rates, and
 * then gives it back as it was, bit for bit: variables, optimizer, counters. Builds and compiles it first if that was not done. The
 * result belongs to the context. Data that does not decide is no failure (`decided`). Several ranks tune together, with the
 * same options and by the first one's clock, and all get the same result. */
BW_API bw_status bw_tune(bw_model *model, bw_dataset *dataset, const bw_tune_options *options, bw_tuning **tuning);

/* A number with the interval in which it lies with a probability of 95 percent. */
typedef struct bw_estimate {
    double value, low, high;
} bw_estimate;

typedef struct bw_tune_facts {
    bool decided;  /* false: the data do not decide */
    int64_t batch; /* what is recommended; 0: nothing is */
    double rate;   /* the learning rate for that batch; NaN: nothing is recommended */
    const char
        *optimizer; /* the optimizer with that rate and with its averages adapted, as bw_compile reads it; NULL likewise; lent */
    const char *reason;   /* why, in a sentence; lent */
    int64_t knee;         /* the smallest batch size with 90 percent of the best throughput */
    bw_noise_scale noise; /* as the optimizer sees it if it scales gradients (Adam) */
    bool noise_seen;      /* it does */
    const char *refusal;  /* why the noise cannot be measured; NULL: it can. Lent for ever */
    int64_t reference;    /* the batch size with which noise and rate were measured, and its rate */
    double reference_rate;
    double target_loss; /* what the reference reaches in the samples below: the target of all predictions */
    int64_t target_samples;
    int rows, rates, points, tiles, branches; /* for the functions below */
    int64_t tile;                             /* the quickest of the tiles; 0: they were not measured */
    int64_t default_tile;                     /* the one that is used otherwise */
    bool confirmed;                           /* the batch is the one whose branch was the first to reach the target */
    double seconds;                           /* that tuning took */
} bw_tune_facts;

BW_API bw_tune_facts bw_tuning_facts(const bw_tuning *tuning);

/* A batch size that was measured, and what it needs to reach the target. */
typedef struct bw_tune_row {
    int64_t batch; /* 0: there is no such row */
    double samples_per_s;
    bw_estimate step_seconds;            /* the median of several rounds, and the range of the middle half of them */
    size_t peak_bytes;                   /* planned, or measured if that is more, as in bw_run_facts */
    double rate;                         /* by rule, from the reference or from the recommended batch */
    bw_estimate steps, samples, seconds; /* predicted; NaN if the noise scale was not measured */
} bw_tune_row;

BW_API bw_tune_row bw_tuning_row(const bw_tuning *tuning, int index);

/* A learning rate that was tried, from the same state, and what came of it. */
typedef struct bw_tune_rate {
    int64_t batch; /* 0: there is no such rate */
    double rate;
    double loss;     /* the running mean at the end; infinite: it diverged */
    int64_t samples; /* until it reached the target; 0: it did not */
} bw_tune_rate;

BW_API bw_tune_rate bw_tuning_rate(const bw_tuning *tuning, int index);

/* A point of the range test, in which the rate rises from step to step: the rate, and the running mean of the loss. */
typedef struct bw_tune_point {
    double x, loss;
} bw_tune_point;

BW_API bw_tune_point bw_tuning_point(const bw_tuning *tuning, int index);

typedef struct bw_tune_tile {
    int64_t tile; /* 0: there is no such tile */
    double samples_per_s;
    size_t peak_bytes;
} bw_tune_tile;

BW_API bw_tune_tile bw_tuning_tile(const bw_tuning *tuning, int index);

/* A candidate that was trained to confirm the choice. */
typedef struct bw_tune_branch {
    int64_t batch; /* 0: there is no such branch */
    double rate;
    double seconds;         /* until it reached the target; NaN: it did not in its time */
    double loss;            /* the running mean at the end */
    double validation_loss; /* at the end; NaN without validation samples */
    int points;             /* of its curve: x is seconds of training */
} bw_tune_branch;

BW_API bw_tune_branch bw_tuning_branch(const bw_tuning *tuning, int index);
BW_API bw_tune_point bw_tuning_branch_point(const bw_tuning *tuning, int branch, int index);

/* Sets the model's learning rate and its optimizer's averages as recommended; its state stays. INVALID_ARGUMENT if nothing is. */
BW_API bw_status bw_tuning_apply(const bw_tuning *tuning, bw_model *model);
BW_API void bw_tuning_free(bw_tuning *tuning);

/* Computes loss and metrics over a dataset: a history of one row, with the names that bw_fit uses. */
BW_API bw_status bw_evaluate(bw_model *model, bw_dataset *dataset, bw_history **result);

/* Computes the model's output for each sample, in the dataset's order. `count` is the number of floats: samples times outputs. */
BW_API bw_status bw_predict(bw_model *model, bw_dataset *dataset, float *predictions, size_t count);
/* The same for a model with several outputs: an array and its count for each, in the order of bw_output. */
BW_API bw_status bw_predict_all(bw_model *model, bw_dataset *dataset, float *const *predictions, const size_t *counts, int outputs);

/* Reads samples for a trained model in the way its training data was read. bw_fit and bw_apply keep with the model how that was
 * done (scale and shape, columns, categories, fill values, class names, the size of images, what was fitted by bw_standardise and
 * bw_normalise, one_hot), and .keras files hold it. Options add what training did not need: a target's column, a header, a share of
 * bad records; a scale or shape that differs from training's is refused. Columns are matched by name; a file without the target's
 * column gives samples to predict. Samples for a model that was trained on arrays are read as bw_read reads them.
 * docs/reference/pipeline.md has the details. A builder. */
BW_API bw_dataset *bw_read_for(bw_model *model, const char *path, const bw_read_options *options);
/* Returns the recipe of the training data, a dataset without samples that can be passed as `like` in bw_read_options,
 * bw_standardise and bw_normalise. Programs that change samples by functions (bw_map) need it, since no file keeps functions. NULL:
 * there is nothing to keep. Lent until the model is trained again. */
BW_API const bw_dataset *bw_model_data(const bw_model *model);
/* Returns the name of a class that the model predicts, or NULL if there is none of that number. Lent likewise. */
BW_API const char *bw_model_class(const bw_model *model, int number);

/* ---- Files -------------------------------------------------------------------------------------------- */

/* Loads a model, by the file's ending: .keras (Keras 3, Sequential or Functional, with weights; if it was compiled, with optimizer,
 * loss, metrics and the optimizer's state, so that training continues where Keras stopped), .json (Keras's to_json, without
 * weights) or .h5 (older Keras). Layers and options that are not supported are refused by name, and nothing in a file is ever
 * executed. A builder. */
BW_API bw_model *bw_load(bw_context *ctx, const char *path);

/* Saves the model, by the file's ending: .keras (which Keras 3 loads and continues to train), .weights.h5 and .safetensors (weights
 * only), .json (without weights; the model need not be built), .onnx (operator set 17, for prediction) or .c (one C file without
 * dependencies that predicts: void digits_predict(const float *input, float *output), named after the file). The file is replaced
 * as a whole or not at all, and the same model gives the same bytes. */
BW_API bw_status bw_save(bw_model *model, const char *path);

/* Loads weights into a model that has the same layers, from .keras or .weights.h5 (matched by the layers' order) or .safetensors
 * (matched by name). A model from an expression that begins with input(...) need not be built. After a failure the model is as
 * before. */
BW_API bw_status bw_load_weights(bw_model *model, const char *path);

/* A kind of file that holds a model or a part of one. */
typedef struct bw_file_kind {
    const char *extension; /* ".keras" */
    const char *holds;     /* in words */
    bool loads;            /* by bw_load */
    bool loads_weights;    /* by bw_load_weights */
    bool saves;            /* by bw_save */
    bool has_weights;
} bw_file_kind;

/* Describes the kinds by number, from 0; returns false after the last. */
BW_API bool bw_file_kind_at(int number, bw_file_kind *kind);
/* Describes the kind of a path, by its extension; returns false if there is none. */
BW_API bool bw_file_kind_of(const char *path, bw_file_kind *kind);

/* ---- History ------------------------------------------------------------------------------------------ */

/* Named columns ("loss", "accuracy", "val_loss" and so on) with one value per epoch. bw_history_value and bw_history_last return
 * NaN if there is no such value. */
BW_API int bw_history_epochs(const bw_history *history);
BW_API int bw_history_columns(const bw_history *history);
BW_API const char *bw_history_column(const bw_history *history, int column);
BW_API double bw_history_value(const bw_history *history, const char *column, int epoch);
BW_API double bw_history_last(const bw_history *history, const char *column);
BW_API void bw_history_free(bw_history *history);

/* What a run took. */
typedef struct bw_run_facts {
    int64_t updates, samples;
    double seconds;
    int64_t tile;
    int lanes, workers;
    size_t planned_bytes; /* what the plan said: variables, optimizer slots, arena, bookkeeping */
    size_t peak_bytes;    /* the same, measured: the largest resident size since the plan was made, less the next three */
    size_t process_bytes; /* resident just before the plan was made, without the model's variables and slots: program, libraries,
                             data in memory, stacks of the workers */
    size_t code_bytes;    /* what oneDNN took: machine code generated for the model, and its objects */
    size_t mapped_bytes;  /* pages of files that were read: mapped data, parts of libraries */
    bool exact_kernels;   /* the context's option */
    int segments;         /* in which activations were computed again; 1: they were not */
    size_t kept_bytes;    /* the part of planned_bytes that is kept for a whole batch */
    size_t spilled_bytes; /* of the file that held what the budget did not */
    size_t swapped_bytes; /* by how much the swapped-out memory grew */
    int64_t major_faults; /* pages that a thread had to wait for from a disk, because of mapped data or swapping */

    int64_t skipped_steps;      /* left out because of NaN or infinity (`on_nan` of bw_fit_options) */
    int64_t resumed_step;       /* the checkpoint that the run continued from; -1: none */
    int64_t checkpoints;        /* that were written; those of before are not counted */
    int64_t failed_checkpoints; /* that could not be written; each was logged as a warning */
    int64_t last_checkpoint;    /* the step of the last one that is whole on the disk; -1: none */
    double checkpoint_seconds;  /* for which training stood still: copying the state, and waiting for the last one */
} bw_run_facts;

BW_API bw_run_facts bw_history_facts(const bw_history *history);

/* ---- TensorBoard -------------------------------------------------------------------------------------- */

/* Writes event files that TensorBoard reads, with the names and folders that Keras's callback of that name has: train/ and
 * validation/ with epoch_loss, epoch_accuracy and so on, epoch_learning_rate, histograms of the weights, the graph. Besides:
 * histograms of the gradients, images of some inputs, hyperparameters, and what the run takes: memory, utilisation, samples a
 * second, waiting for data, the noise scale if it is measured. Files are complete after each epoch, whatever happens next.
 * docs/reference/tensorboard.md lists all tags. */
typedef struct bw_tensorboard_options {
    size_t size;
    int histograms;    /* epochs from one histogram of each variable and its gradient to the next; default 1; 0: none */
    int64_t log_steps; /* updates from one point of batch_loss and so on to the next; default 0: none */
    int images;        /* inputs to show, if they are images; default 4 */
    bool graph;        /* the model as a graph; default true */
} bw_tensorboard_options;

#define BW_TENSORBOARD_OPTIONS_DEFAULT                                                      \
    {                                                                                       \
        .size = sizeof(bw_tensorboard_options), .histograms = 1, .images = 4, .graph = true \
    }

/* Makes the folder, if it is not there, and what is to be given to bw_fit in its options. A write that fails later (a full disk) is
 * logged as a warning, nothing more is written, and training goes on. A builder. */
BW_API bw_tensorboard *bw_tensorboard_new(bw_context *ctx, const char *folder, const bw_tensorboard_options *options);
/* Adds a hyperparameter, or replaces it, before training: a number, or a text. bw_fit adds optimizer, learning rate, batch and the
 * like by itself. */
BW_API bw_status bw_tensorboard_number(bw_tensorboard *board, const char *name, double value);
BW_API bw_status bw_tensorboard_text(bw_tensorboard *board, const char *name, const char *text);
/* Writes a point of a curve at once, for programs with a loop of their own: into DIR/`run`, "train" for example. */
BW_API bw_status bw_tensorboard_scalar(bw_tensorboard *board, const char *run, const char *tag, int64_t step, double value);
BW_API void bw_tensorboard_free(bw_tensorboard *board);

/* ---- Memory before running ---------------------------------------------------------------------------- */

typedef struct bw_plan_options {
    size_t size;
    size_t memory;     /* budget in bytes; 0: the context's */
    int64_t tile;      /* samples that a worker takes through the model at once; 0: chosen from the model */
    int lanes;         /* a power of two; 0: chosen from the model */
    int accumulate;    /* batches that are accumulated into one update; default 1 */
    int epochs;        /* rows of the history; default 1 */
    bool validation;   /* the run also evaluates, as bw_fit does after each epoch if it has validation samples */
    const char *spill; /* as in bw_fit_options */
} bw_plan_options;

#define BW_PLAN_OPTIONS_DEFAULT                                       \
    {                                                                 \
        .size = sizeof(bw_plan_options), .accumulate = 1, .epochs = 1 \
    }

/* What the bytes of a run are for. */
typedef enum bw_plan_item {
    BW_PLAN_PARAMETERS,  /* the model's variables */
    BW_PLAN_GRADIENTS,   /* one sum of gradients */
    BW_PLAN_LANES,       /* the sums of the other lanes */
    BW_PLAN_OPTIMIZER,   /* the optimizer's slots */
    BW_PLAN_ACTIVATIONS, /* outputs and differences of a tile at the fullest moment, for each tile that runs at the same time */
    BW_PLAN_WORKSPACE,   /* what forward passes also leave for backward passes; weights in a kernel's order; statistics */
    BW_PLAN_SCRATCH,     /* what kernels need while they run */
    BW_PLAN_INPUT,       /* the gathered samples of a tile, for each tile that runs at the same time */
    BW_PLAN_DATA,        /* prefetched samples */
    BW_PLAN_STORE,       /* what whole-batch layers (BatchNormalization) keep for the whole batch */
    BW_PLAN_BOOKKEEPING, /* the run's own tables: plan, bound instructions, history */
    BW_PLAN_ITEMS
} bw_plan_item;

/* Returns "parameters" and so on; NULL if there is no such item. */
BW_API const char *bw_plan_item_name(bw_plan_item item);

typedef struct bw_memory_facts {
    int64_t batch, tile;
    int lanes, workers;
    int phases; /* how often all tiles of a batch are run in one step; 1 without whole-batch layers */
    size_t peak_bytes;
    size_t items[BW_PLAN_ITEMS]; /* their sum is exactly peak_bytes */
    size_t budget;
    int segments;       /* in which activations are computed again; 1: they are not */
    size_t spill_bytes; /* of a file, on disk, for what whole-batch layers keep and the budget does not hold */
    /* What a system needs that holds the whole batch in memory: inputs, outputs kept for the backward pass, differences,
     * parameters, gradients and optimizer slots, without the process itself. */
    size_t whole_batch_bytes;
    int64_t whole_batch_largest; /* the largest batch for which that fits the budget; 0: none */
} bw_memory_facts;

/* The same by layer. The last row, which belongs to no layer, is for loss and metrics. */
typedef struct bw_layer_memory {
    const char *name; /* lent; NULL: there is no such row */
    int ndim;         /* of one sample's output */
    int64_t shape[BW_MAX_NDIM];
    size_t parameters;
    size_t gradients;              /* in all lanes */
    size_t activations, workspace; /* in use at the fullest moment; 0 if the layer is fused with the next one */
    size_t whole_batch;            /* its part of whole_batch_bytes: outputs and differences */
} bw_layer_memory;

/* Computes every byte that bw_fit would take with these samples and this batch size, before anything is allocated or trained. The
 * model stays as it is. Without a dataset the model must know its input: input(28,28,1); the targets are then what the loss or, if
 * none was chosen, the last layer asks for. A builder: a budget that is too small is RESOURCE_EXHAUSTED, with the smallest one that
 * would do. */
BW_API bw_plan *bw_plan_make(bw_model *model, bw_dataset *dataset, int64_t batch, const bw_plan_options *options);
BW_API bw_memory_facts bw_plan_facts(const bw_plan *plan);
BW_API const char *bw_plan_reason(const bw_plan *plan); /* why this tile was chosen, in one line; lent */
BW_API int bw_plan_layers(const bw_plan *plan);
BW_API bw_layer_memory bw_plan_layer(const bw_plan *plan, int index);
/* Writes the plan as tables with small bars. */
BW_API bw_status bw_plan_print(const bw_plan *plan, FILE *file);
BW_API void bw_plan_free(bw_plan *plan);

/* ---- Diagnosis ---------------------------------------------------------------------------------------- */

/* How much a finding matters. */
typedef enum bw_severity {
    BW_SEVERITY_NOTE,    /* it costs time or memory, but the result is not worse for it */
    BW_SEVERITY_WARNING, /* the result is probably worse than it could be, or better than it should be */
    BW_SEVERITY_ERROR    /* training fails, or its result means nothing */
} bw_severity;

/* Something that is wrong with data, model or training. Texts are lent by the findings. */
typedef struct bw_finding {
    const char *id; /* "unshuffled-labels"; docs/reference/doctor.md lists all of them */
    bw_severity severity;
    const char *evidence; /* what was found, in numbers */
    const char *reason;   /* why it matters, in one sentence */
    const char *fix;      /* what helps, with the option of the command */
    const char *code;     /* the same in C; "": nothing to write */
} bw_finding;

typedef struct bw_doctor_options {
    size_t size;
    const bw_fit_options *training; /* how the model would be trained, with its validation data; NULL: all defaults */
    double seconds;                 /* for training on trial; default 2; 0: only data and model are looked at */
} bw_doctor_options;

#define BW_DOCTOR_OPTIONS_DEFAULT                       \
    {                                                   \
        .size = sizeof(bw_doctor_options), .seconds = 2 \
    }

/* Looks for what is wrong: in the samples, which are read once and never held, in the model, and in some updates on trial.
 * Afterwards the model is as before, except that it is built. Findings come with the most severe first, and each id at most once. A
 * failure is one to look at all, for example a file that cannot be read; that training would fail is a finding. The context owns
 * the findings. */
BW_API bw_status bw_doctor(bw_model *model, bw_dataset *dataset, const bw_doctor_options *options, bw_findings **findings);

/* Tells what a training showed by itself, without a pass over the data: from its history, from a few samples, which are read only
 * if they lie in memory, and from the model's output for them. `training` are the options that bw_fit was given. */
BW_API bw_status bw_review(bw_model *model, bw_dataset *dataset, const bw_fit_options *training, const bw_history *history,
                           bw_findings **findings);

BW_API int bw_findings_count(const bw_findings *findings);
/* Gets a finding by its number, from 0; returns false after the last. */
BW_API bool bw_findings_at(const bw_findings *findings, int number, bw_finding *finding);
BW_API void bw_findings_free(bw_findings *findings);

/* Returns the id of each kind of finding by number, from 0; NULL after the last. */
BW_API const char *bw_finding_id(int number);
/* Returns "note", "warning" or "error". */
BW_API const char *bw_severity_name(bw_severity severity);

/* ---- Custom loops ------------------------------------------------------------------------------------- */

/* Iterates over the batches of one epoch of a dataset, which is kept. bw_next lends a batch until the next call and returns
 * BW_OUT_OF_RANGE at the end. */
BW_API bw_iterator *bw_iterate(bw_dataset *dataset, int epoch);
BW_API bw_status bw_next(bw_iterator *iterator, bw_batch **batch);
BW_API int64_t bw_batch_count(const bw_batch *batch);
BW_API void bw_iterator_free(bw_iterator *iterator);
/* The position in the epoch, in samples, of the next batch; and going on from such a position, for example that of a checkpoint. */
BW_API int64_t bw_iterator_position(const bw_iterator *iterator);
BW_API bw_status bw_iterator_seek(bw_iterator *iterator, int64_t position);

/* Returns the numbers of the batch's samples, each one's place in its source. Lent with the batch. */
BW_API const int64_t *bw_batch_numbers(const bw_batch *batch);
/* Gets a field's values by its name as in bw_field ("x", "y", "w", "y_<output>"): float32, row-major, one sample after another,
 * augmented as training sees them. `count` is the number of floats and must be exactly what the batch has. */
BW_API bw_status bw_batch_values(bw_batch *batch, const char *name, float *values, size_t count);
/* Lends a batch of some of its samples, by their indices in it (from 0; one may come several times), for example of a single one.
 * Valid until samples are selected from the same batch again, or until the next bw_next. A builder. */
BW_API bw_batch *bw_batch_select(bw_batch *batch, const int64_t *indices, int64_t count);

/* Makes a sum of per-sample gradients over batches of any size. The model must be compiled and built. The batches may come from
 * several datasets whose fields have the same names and sizes. A builder. */
BW_API bw_gradients *bw_gradients_new(bw_model *model, const bw_fit_options *options);
/* Adds a batch, and gives its mean loss (`loss` may be NULL). INVALID_ARGUMENT, naming sample and layer, if a gradient is NaN or
 * infinite; everything added since the last update is then lost. */
BW_API bw_status bw_gradients_add(bw_gradients *gradients, bw_batch *batch, double *loss);
BW_API int64_t bw_gradients_samples(const bw_gradients *gradients);
BW_API void bw_gradients_clear(bw_gradients *gradients);
/* Computes the norm of the gradient so far, divided by the number of samples, before penalties and clipping; 0 without samples. A
 * batch that is added later still gives the gradient of the whole, but within rounding and no longer bit for bit. */
BW_API bw_status bw_gradients_norm(bw_gradients *gradients, double *norm);
/* Multiplies the gradient so far by a factor; the number of samples stays. */
BW_API bw_status bw_gradients_scale(bw_gradients *gradients, double factor);
/* Gets the gradient so far of a variable, by its index as in bw_variable_get and in the same order: the mean over the samples that
 * were added, before penalties and clipping. Setting replaces it, for example by a clipped one, and bw_apply uses what was set;
 * samples that are added later add to it. Only trainable variables have a gradient; that of an embedding's table can be read and
 * scaled, not set. As with bw_gradients_norm, what is added later is no longer summed bit for bit as without. */
BW_API bw_status bw_gradients_get(bw_gradients *gradients, int variable, float *values, size_t count);
BW_API bw_status bw_gradients_set(bw_gradients *gradients, int variable, const float *values, size_t count);
/* Computes an output (by number, from 0) for each sample of a batch, and each sample's loss, with its weight and without penalties.
 * The layers behave as in prediction, and neither the model nor the gradient so far changes. A sample's gradient is that of a batch
 * of one (bw_batch_select), added to gradients that were cleared. Batches of bw_bucket, and losses that are reduced differently,
 * are refused. */
BW_API bw_status bw_gradients_predict(bw_gradients *gradients, bw_batch *batch, int output, float *predictions, size_t count);
BW_API bw_status bw_gradients_losses(bw_gradients *gradients, bw_batch *batch, float *losses, size_t count);
/* Divides the sum once by the number of samples, updates the model, and clears the sum. */
BW_API bw_status bw_apply(bw_model *model, bw_gradients *gradients);
/* With use_ema, makes the averaged weights the model's weights. bw_fit does this at its end. */
BW_API bw_status bw_apply_averages(bw_model *model);
BW_API void bw_gradients_free(bw_gradients *gradients);

/* ---- Ranks -------------------------------------------------------------------------------------------- */

/* Makes a group of ranks within one process, each of them a thread with its own context, that train one model together. `count` is
 * 1 to 64, and at most the number of lanes, which the ranks share. Give each context the group and its own number, and all of them
 * the same model, samples and options; their callbacks must decide alike. bw_predict gives each rank the predictions of its own
 * share of the tiles, and leaves the places of the others as they are. A group serves once: when one of its contexts closes, fails
 * or is cancelled alone, the calls of the others return BW_CANCELLED. The group must outlive the contexts. */
BW_API bw_ranks *bw_ranks_open(int count);

/* Takes this process's place among those that an MPI launcher (mpirun, mpiexec, srun) started, each with the same program, before
 * bw_open: sets `ranks` and `rank`, and `workers` if it is 0, to this rank's share of its machine's CPUs. Without a launcher
 * nothing changes, and the program trains alone. So these are the two lines that make a program train on many machines:
 *
 *     bw_ranks_mpi(&options);         before bw_open(&options)
 *     bw_ranks_close(options.ranks);  after bw_close
 *
 * The library knows no MPI; it loads libbatchwise_mpi, which is installed beside it for each MPI. $BATCHWISE_MPI names another
 * file, or one of "openmpi" and "mpich"; "none" lets every process train alone. What goes wrong here, the first call that uses the
 * context returns. To be called once in a process. */
BW_API void bw_ranks_mpi(bw_context_options *options);

BW_API int bw_ranks_count(const bw_ranks *ranks); /* 1 of NULL */

/* Ends a context's part in its group: what it does from here on, it does alone. The others should do the same before they do
 * anything together again. */
BW_API void bw_ranks_part(bw_context *ctx);

/* For ranks of MPI, at the end: tells the others why this one failed (NULL: it did not), waits for them, and returns the first rank
 * that failed, with its reason, or -1. The reason lives as long as the group. */
BW_API int bw_ranks_end(bw_ranks *ranks, const char *failure, const char **reason);

/* Waits for the other processes of MPI to come here. If a rank of the group was lost, whoever comes here ends the job by MPI_Abort,
 * since nothing else ends a process that does not answer. NULL is fine. */
BW_API void bw_ranks_close(bw_ranks *ranks);

#ifdef __cplusplus
}
#endif

#endif
