/*
 * What the files of data share: what a dataset is made of. Datasets form chains: at the bottom is a source, which has values;
 * above it are index maps, which only choose the order (shuffle, take, ...), and transformations, which change values. Every kind
 * is a row: a bwi_dataset_kind. Other modules see nothing of this; what a folder shares with the others is in its header
 * (read/read.h, transform/transform.h, order/order.h, ahead/ahead.h).
 *
 * Numbers. A sample's number identifies its values permanently: values are a function of (number, epoch) alone, whatever the order
 * and the thread. An order is a function from (epoch, position) to a number. A kind whose numbers are not those of the dataset
 * below it (repeat, concatenate, zip) translates them.
 */
#ifndef BWI_DATA_INTERNAL_H
#define BWI_DATA_INTERNAL_H

#include "data/data.h"

#define BWI_BATCH_DEFAULT 32
#define BWI_FIELD_LIMIT 64
#define BWI_EPOCH_FROZEN UINT64_MAX /* the order from which a split is cut, which is not that of any epoch */

/* What was found or chosen while reading and must be applied again when the model is used. It is kept in the model's files. */
typedef struct bwi_feature {
    const char *name; /* of its column; "" if it has none */
    int categories;   /* 0: a number. Otherwise the feature is that many inputs, one for each category */
    const char *const *category;
    double fill; /* replaces missing values, if `filled` */
    bool filled;
    int column; /* its number in the table, if bwi_facts.columns > 0 */
    bool text;  /* it is a text, which is an input of its own */
} bwi_feature;

typedef struct bwi_facts {
    double scale;               /* of the inputs */
    int ndim;                   /* of `shape`; 0: samples were not read from a file, or have several inputs */
    int64_t shape[BW_MAX_NDIM]; /* of an input, as it was read */
    bw_missing missing;         /* the rule for missing values */
    const char *na;             /* further texts that mean a missing value; NULL: none */
    const char *target;         /* NULL: there is none; several are separated by commas */
    int columns;                /* of the table; 0: not known */
    int targets;                /* length of `target_column` */
    const int *target_column;
    int classes; /* 0: the target is a number, or classes have no names */
    const char *const *class_name;
    bool texts;   /* samples are files or lines of text */
    int features; /* 0: unknown */
    const bwi_feature *feature;
} bwi_facts;

/* One field of the samples. If they are in memory, sample s is row s. */
typedef struct bwi_column {
    bwi_field field;
    bwi_host_rows rows;
    int64_t samples;
    void *memory;        /* released with the dataset; NULL if the values are elsewhere */
    bwi_backing backing; /* likewise released with the dataset */
} bwi_column;

/* A request for n samples of one field (see bwi_dataset_gather). */
typedef struct bwi_demand {
    int field, epoch;
    const int64_t *numbers;
    int64_t n;
    const bwi_destination *to;
    char *error; /* may be NULL */
} bwi_demand;

/* The positions from `begin` up to `end`, which are grouped into batches. */
typedef struct bwi_span {
    int64_t begin, end, position;
} bwi_span;

/* What a model's file keeps of a kind that changes values. */
typedef enum bwi_keeps {
    BWI_KEEPS_NOTHING,    /* it changes no values, or only those for training */
    BWI_KEEPS_STATISTICS, /* standardise, normalise */
    BWI_KEEPS_CLASSES,    /* one_hot */
    BWI_KEEPS_UNKNOWN     /* it is a function, which cannot be described */
} bwi_keeps;

/*
 * One kind of dataset. Functions that run on workers and on the threads of a prefetcher, several at once, only read the dataset. A
 * kind fills in what it has: a source or a transformation has values (gather, make, or both), an index map an order.
 */

/* For kinds that choose which sample is at which position. */
typedef struct bwi_kind_order {
    /* On workers: the number at a position, or those of n positions, in place. If both are NULL, it is the position itself or,
     * with an upstream, the upstream's number at the same position. */
    int64_t (*number)(const bw_dataset *dataset, uint64_t epoch, int64_t position);
    void (*numbers)(const bw_dataset *dataset, uint64_t epoch, int64_t *at, int64_t n);
    bool renumbers; /* a sample's number differs from the upstream's; `second`, if there is one, is another upstream */
    /* The size of the batch that begins at a position; 0: the end. The position moves over samples that are dropped. NULL: the
     * upstream's. */
    int64_t (*batch)(const bw_dataset *dataset, int epoch, bwi_span *at);
} bwi_kind_order;

/* For kinds that need not know how many samples there are. */
typedef struct bwi_kind_stream {
    bool follows; /* may be used over a stream that has not ended, or is one */
    /* For a stream, on the caller's thread while no thread gathers: reads until `numbers` is `upto`, or to the end, where it sets
     * `count` and is no longer live. */
    bw_status (*pull)(bw_dataset *root, int64_t upto);
} bwi_kind_stream;

typedef struct bwi_dataset_kind {
    const char *name;
    /* On workers: gathers values of a field into a tile, by the destination's kernels. */
    bw_status (*gather)(const bw_dataset *dataset, const bwi_demand *demand);
    /* On workers: makes one sample; values[f] receives field f in row-major order and in the field's type, unless it is NULL
     * (not needed). A kind without gather and make has the upstream's values, by the same numbers. */
    bw_status (*make)(const bw_dataset *dataset, int epoch, int64_t number, void *const *values, char *error);
    bool texts; /* it has values, and passes texts on or makes numbers of them; others are refused over text */
    bool whole; /* make needs memory for every field */
    /* On workers: describes where a sample comes from. NULL: the upstream does, by the same number. */
    void (*locate)(const bw_dataset *dataset, int64_t number, char *text, size_t size);
    bool files; /* a sample is a file, and its location is the path */
    /* Called on the caller's thread, any number of times, before samples of `top`, which is above this dataset, are gathered; the
     * upstream's is called first. */
    bw_status (*begin)(const bw_dataset *dataset, const bw_dataset *top);
    bwi_keeps keeps;
    void (*close)(bw_dataset *dataset); /* frees what `state` refers to; `state` itself is released after it */
    bwi_kind_order order;
    bwi_kind_stream stream;
} bwi_dataset_kind;

typedef struct bwi_scratch bwi_scratch;
typedef struct bwi_prefetcher bwi_prefetcher;

struct bw_dataset {
    bwi_owned owned;
    const bwi_dataset_kind *kind;
    int references;                /* the user's, if it was not taken, and one from each dataset and iterator that uses this one */
    bool taken;                    /* the user's reference is gone: a builder took it, or it was freed */
    bw_dataset *upstream, *second; /* each with a reference; NULL: none */
    const bw_dataset *content;     /* the nearest dataset, from this one down, that has values */
    int64_t count;
    int64_t batch, largest; /* the first size and the largest */
    int64_t numbers;        /* all sample numbers are below it */
    bool batched;           /* batch sizes were chosen */
    bool scheduled;         /* some of them depend on the epoch */
    bool moving;            /* the order differs from epoch to epoch */
    bool slow;              /* samples are worth prefetching */

    /* For index maps: position p is position first + p * stride below. */
    int64_t first, stride;
    bool frozen; /* the order below is the same in every epoch */
    uint64_t seed;

    /* For streams and the datasets above them. */
    bool live;     /* the end is not known: `count` is the most there can be, `numbers` how many have arrived */
    bool begun;    /* samples have been handed out */
    int64_t block; /* samples that are shuffled with each other; 0: all */
    int64_t limit; /* samples that are taken; 0: all */

    /* For datasets with values. */
    bwi_column *columns;
    int column_count;
    bwi_backing texts; /* the bytes of texts that columns refer to; released with the dataset */
    bwi_bytes *files;  /* mapped while columns use them */
    int file_count;
    double scale;         /* of the inputs' rows */
    bwi_scratch *scratch; /* for kinds with make; NULL: none */
    size_t decoder_bytes; /* for kinds with make: what a thread holds beside it while it makes a sample, as far as that is known */
    bwi_facts facts;      /* of a root */
    unsigned parts;       /* of a root: the parts that its file has */
    void *state;          /* of the kind */

    bwi_prefetcher *prefetcher; /* for samples that are gathered from this dataset; NULL: it is not slow */
};

/* ---- dataset.c ---- */

/* Makes a dataset without an upstream, with space for `columns`, and a zeroed state if `state_bytes` is not 0. A builder. */
bw_dataset *bwi_dataset_root(bw_context *ctx, const bwi_dataset_kind *kind, int columns, size_t state_bytes);
/* Makes a dataset over `upstream`, which gets one more reference, with its count, batch and numbers. A kind with values gets
 * space for `columns`. A builder. */
bw_dataset *bwi_dataset_over(bw_dataset *upstream, const bwi_dataset_kind *kind, int columns, size_t state_bytes);
/* Hands the user's reference on to what a builder made of the dataset, or drops it if that failed. Returns `made`. */
bw_dataset *bwi_dataset_take(bw_dataset *dataset, bw_dataset *made);
/* Adds a column from a view, whose data must outlive the root. `where` names it in messages. */
bw_status bwi_dataset_add(bw_dataset *root, bwi_role role, const char *name, const bw_array *view, const char *where);
/* Adds a column without data, for samples that are made. Checks the field. */
bw_status bwi_dataset_declare(bw_dataset *dataset, const bwi_field *field, const char *where);
/* Called after the last column: checks that every field has the same number of samples. `where` begins the message. */
bw_status bwi_dataset_settle(bw_dataset *root, const char *where);
/* Sets the factor by which inputs are multiplied while they are gathered. */
void bwi_dataset_set_scale(bw_dataset *root, double scale);
/* Gives the inputs another shape with the same number of values in a sample. */
bw_status bwi_dataset_reshape(bw_dataset *root, int ndim, const int64_t *shape, const char *where);
int64_t bwi_dataset_batch(const bw_dataset *dataset); /* the first size that bw_batches set; 32 */
void bwi_dataset_keep(bw_dataset *dataset);
void bwi_dataset_release(bw_dataset *dataset); /* drops a reference; the last one frees the dataset */
/* Maps a file that is unmapped with the dataset. */
bw_status bwi_dataset_map_file(bw_dataset *root, const char *path, bwi_bytes **bytes);

/* ---- gather.c ---- */

/* Does what bwi_dataset_gather does, without a prefetcher. */
bw_status bwi_content_gather(const bw_dataset *dataset, const bwi_demand *demand);
/* Gathers samples whose numbers are those of rows in memory. */
bw_status bwi_rows_gather(const bw_dataset *dataset, const bwi_host_rows *rows, const bwi_demand *demand);
/* Puts a sample, in row-major order as its kind made it, into a tile. */
bw_status bwi_made_put(const bw_dataset *content, int field, const void *values, int64_t number, const bwi_destination *to,
                       char *error);
/* Puts what bwi_content_make gave into a tile. */
bw_status bwi_content_put(const bw_dataset *dataset, int field, const void *values, int64_t number, const bwi_destination *to,
                          char *error);
/* A destination in host memory, for `values` values of each sample in row-major order, float32 or int32. */
bwi_destination bwi_host_destination(void *data, bw_dtype dtype, int64_t values);
/* Reports a sample with values that the destination cannot hold. */
bw_status bwi_gather_fail(const bw_dataset *dataset, int field, int64_t number, const bwi_destination *to, char *error);

/* ---- sample.c ---- */

/* Writes where a sample comes from, e.g. "digits.csv, line 17"; "" if nothing but its number is known. Returns the buffer. */
char *bwi_dataset_location(const bw_dataset *dataset, int64_t number, char *text, size_t size);
/* Makes one sample; values[f] receives field f in row-major order, of type bwi_make_dtype, unless it is NULL. */
bw_status bwi_content_make(const bw_dataset *dataset, int epoch, int64_t number, void *const *values, char *error);
bw_dtype bwi_make_dtype(const bw_dataset *dataset, int field);
/* Does the same in the types that transformations see: float32, or int32 for integers other than scaled or 8-bit inputs. */
bw_status bwi_content_work(const bw_dataset *dataset, int epoch, int64_t number, void *const *values, char *error);
bw_dtype bwi_work_dtype(const bw_dataset *dataset, int field);
/* Writes "sample 17 (digits.csv, line 19): " and the text to `error`, unless it is NULL or says something already. Returns
 * `status`. */
bw_status bwi_sample_error(const bw_dataset *dataset, int64_t number, char *error, bw_status status, const char *format, ...)
    __attribute__((format(printf, 5, 6)));
/* The last step of building a kind whose samples take work to make: adds scratch, and a prefetcher unless there is one. If that
 * fails, or if `status`, the result of the steps before, is a failure, the dataset is freed. A builder. */
bw_dataset *bwi_dataset_working(bw_dataset *made, bw_status status);

/* ---- scratch.c ---- */

/* Memory for one sample of a dataset that has scratch: values[f] for each field. It must be given back. */
typedef struct bwi_scratch_slot {
    unsigned char *at;
    atomic_bool *busy;
} bwi_scratch_slot;

bwi_scratch_slot bwi_scratch_slot_take(const bw_dataset *dataset, void **values);
void bwi_scratch_slot_give(bwi_scratch_slot slot);
/* For a kind with make, after its columns are declared: allocates slots for the context's workers. */
bw_status bwi_scratch_open(bw_dataset *dataset);
size_t bwi_scratch_bytes(const bw_dataset *dataset); /* for each thread, with decoders, in this dataset and those below it */
/* Adds slots for `threads` more threads that gather at the same time, in this dataset and those below it. */
bw_status bwi_scratch_reserve(const bw_dataset *dataset, int threads);
void bwi_scratch_free(bw_context *ctx, bwi_scratch *scratch);

/* ---- begin.c ---- */

/* Prepares a dataset that is gathered from within data, before exec uses it. */
bw_status bwi_dataset_begin_below(const bw_dataset *dataset);

/* ---- facts.c ---- */

const bwi_facts *bwi_dataset_facts(const bw_dataset *dataset); /* of the root */
void bwi_facts_free(bw_context *ctx, bwi_facts *facts);
/* Makes a deep copy. */
bw_status bwi_facts_copy(bw_context *ctx, bwi_facts *to, const bwi_facts *from);

#endif
