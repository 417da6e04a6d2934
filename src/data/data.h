/*
 * data: datasets. A dataset yields samples by number; an order (a chain of index maps: range, permutation) says which sample is at
 * which position of an epoch. The batch is never assembled: a worker gathers the rows of its own tile, converted into the layout
 * that the first layer needs.
 */
#ifndef BWI_DATA_H
#define BWI_DATA_H

#include "front/front.h"
#include "kernel/kernel.h"

/* One named array of the samples: "x", "y" or "w", or "x_<input>" and so on; the name here has no prefix. */
typedef struct bwi_field {
    char name[64]; /* the input's or output's name; "" if there is only one */
    bwi_role role;
    bw_dtype dtype;
    int ndim; /* of one sample */
    int64_t shape[BW_MAX_NDIM];
} bwi_field;

bw_context *bwi_dataset_context(const bw_dataset *dataset); /* NULL for NULL */
int bwi_dataset_fields(const bw_dataset *dataset);
/* What bw_dataset_values does, for other modules. */
bw_status bwi_dataset_read_values(bw_dataset *dataset, const char *name, int64_t first, int64_t count, void *values,
                                  size_t capacity);
const bwi_field *bwi_dataset_field(const bw_dataset *dataset, int field);
/* Returns the field that is number `index` among those with this role; -1 if there is none. */
int bwi_dataset_find(const bw_dataset *dataset, bwi_role role, int index);

/* The number of the sample at `position` (0 <= position < count) in `epoch`. */
int64_t bwi_dataset_number(const bw_dataset *dataset, int epoch, int64_t position);
/* The numbers at positions first to first + n - 1. In a shuffled dataset, finding 64 or more at once costs a tenth per number of
 * finding single ones. */
void bwi_dataset_numbers(const bw_dataset *dataset, int epoch, int64_t first, int64_t n, int64_t *numbers);

/* Whether the samples come in a random order, which is drawn anew in every epoch. False for a stream, whose samples are shuffled by
 * blocks. */
bool bwi_dataset_shuffled(const bw_dataset *dataset);

/* A stream that has not ended has no count: bw_dataset_count is -1. bwi_dataset_finish reads it to its end, into a temporary file
 * if it is large. */
bool bwi_dataset_live(const bw_dataset *dataset);
bw_status bwi_dataset_finish(bw_dataset *dataset);
/* Does what bw_split does, for calls from within the library. */
bw_status bwi_dataset_split(bw_dataset *dataset, double share, bw_dataset **training, bw_dataset **validation);

/* Sample numbers that were found for many small batches at once. Zeroed at first; for the caller's thread only. */
enum { BWI_AHEAD = 256 };
typedef struct bwi_ahead {
    const bw_dataset *dataset;
    int epoch;
    int64_t first, count;
    int64_t numbers[BWI_AHEAD];
} bwi_ahead;

/* The numbers at positions first to first + n - 1, valid until the next call; NULL if they are too many, or a stream has not
 * ended. */
const int64_t *bwi_numbers_ahead(bwi_ahead *ahead, const bw_dataset *dataset, int epoch, int64_t first, int64_t n);

enum { BWI_GATHER_ERROR = BWI_ITEM_ERROR };

/* The epoch of samples for a model that is used, not trained. Such samples are not augmented. */
#define BWI_EPOCH_NONE (-1)

/* What a front makes of inputs, as an input: for bwi_dataset_vectorized. */
enum { BWI_FRONT_INPUTS = 8 };
typedef struct bwi_front_field {
    const bwi_front *front;
    char name[64];
    bw_dtype dtype;
    int ndim;
    int64_t shape[BW_MAX_NDIM];
    int inputs, input[BWI_FRONT_INPUTS]; /* fields of the dataset; -1 - k: what the front k makes, an earlier one */
} bwi_front_field;

/* Makes a dataset in which fronts have turned text and categories into numbers (vectorize.c). Its first inputs are theirs, in their
 * order; text is no longer among the fields. The fronts must outlive it; the dataset is not taken. A builder. */
bw_dataset *bwi_dataset_vectorized(bw_dataset *dataset, const bwi_front_field *fronts, int count);

/* Fits a front to all samples of an input, in one pass; `name` is the layer's. A stream is read to its end. */
bw_status bwi_dataset_fit_front(bw_dataset *dataset, int field, bwi_front *front, const char *name);
/* Whether an input that is no text has this name. */
bool bwi_dataset_find_named(const bw_dataset *dataset, const char *name);

/* Gathers n samples of a field by number, with their values in `epoch`. Converts the type; inputs are scaled as bw_read_options
 * says. Several workers may call this at once, so the context's message is left alone; `error` (NULL, or BWI_GATHER_ERROR bytes)
 * receives a text that names the sample, where it comes from and what is wrong. Values that int32 cannot hold are
 * INVALID_ARGUMENT. */
bw_status bwi_dataset_gather(const bw_dataset *dataset, int field, int epoch, const int64_t *numbers, int64_t n,
                             const bwi_destination *to, char *error);

/* The number of tiles of `count` samples; and where tile k of them begins, and its size, as the exponent of two (tiles.c). */
static inline int64_t bwi_tiles_of(int64_t count, int64_t tile) /* a power of two: no division */
{
    int64_t tiles = count >> __builtin_ctzll((unsigned long long)tile);
    for (int64_t last = count & (tile - 1); last; last &= last - 1) {
        tiles++;
    }
    return tiles;
}
void bwi_tile_at(int64_t count, int64_t tile, int64_t k, int64_t *first, int *size);

/* A gather schedule says what is gathered next: the positions first to first + count - 1 of an epoch, in tiles, and the order in
 * which workers will take them (tile t belongs to lane t mod lanes; a worker takes a lane's tiles one after another). Datasets
 * whose samples are slow to make use it for prefetching; others ignore it. For the caller's thread only. */
typedef struct bwi_gather_schedule {
    int epoch;
    bool unaugmented; /* values are those of BWI_EPOCH_NONE, in the order of the epoch */
    int64_t first, count;
    int64_t tile;
    int lanes, workers;
    int first_lane, own_lanes; /* lanes of this rank; own_lanes 0: all lanes */
    bool again;                /* the piece is gathered more than once, so its samples are kept as far as the budget allows */
    size_t budget;             /* bytes that prefetching should not exceed; 0: no limit */
} bwi_gather_schedule;

bw_status bwi_dataset_begin(bw_dataset *dataset, const bwi_gather_schedule *schedule);
bool bwi_dataset_begins(const bw_dataset *dataset); /* whether the call above does anything */

enum { BWI_MOST_LENGTHS = 16 };

/* For sequences (bw_bucket): the lengths at which samples are computed, from the shortest to that of the data's inputs; 0: all
 * samples have one length. A sample's bucket is the index of its length in that list. */
int bwi_dataset_lengths(const bw_dataset *dataset, const int64_t **lengths);
int bwi_dataset_bucket(const bw_dataset *dataset, int64_t number);

/* The bytes that prefetching needs for such pieces, for the plan; 0 if nothing is prefetched. They exceed the schedule's budget
 * only if one sample for each thread and two tiles for each worker do not fit it. */
size_t bwi_dataset_bytes(const bw_dataset *dataset, const bwi_gather_schedule *schedule);

/* What the threads that make samples ahead do while it is recorded: each keeps its newest samples, as many as `capacity`. */
typedef struct bwi_making {
    uint64_t begin, end; /* ticks */
    int64_t number;
} bwi_making;

typedef struct bwi_makings {
    int threads;
    int64_t capacity;
    bwi_making *list; /* [thread][capacity], each a ring */
    int64_t *made;    /* by each thread, also those that are no longer in its ring */
} bwi_makings;

int bwi_dataset_threads(const bw_dataset *dataset); /* that make its samples ahead; 0: none do */
/* From now on they are recorded, or, with NULL, no longer. The recording is kept. */
void bwi_dataset_record(const bw_dataset *dataset, bwi_makings *makings);

/* A recipe is a dataset without samples that keeps what was found, chosen or fitted while the given one was read and prepared.
 * It can be used wherever an option asks for a dataset to be `like`. A builder. */
bw_dataset *bwi_recipe_make(const bw_dataset *dataset);
bool bwi_recipe_is_empty(const bw_dataset *recipe); /* whether there is nothing to keep */
/* Reads samples in the same way as those of the recipe were read. A builder. */
bw_dataset *bwi_recipe_read(const bw_dataset *recipe, const char *path, const bw_read_options *options);
/* Whether a path is read as images, judging by its name or because it is a folder. */
bool bwi_path_has_images(bw_context *ctx, const char *path);
/* Write and parse a recipe as JSON, for a model's file. What is read is checked; `where` begins messages. */
struct bwi_json;
struct bwi_json_writer;
bw_status bwi_recipe_write(const bw_dataset *recipe, struct bwi_json_writer *writer);
/* The most bytes that this takes while it is done; NULL: 0. */
size_t bwi_recipe_bytes(const bw_dataset *recipe);
bw_dataset *bwi_recipe_parse(bw_context *ctx, const struct bwi_json *json, const char *where);
/* What a recipe does to an input's values, one step after another: x becomes (x - offset) * factor, each by the index of its last
 * axis; `count` 1: the same for all. False: there are no more steps. */
typedef struct bwi_preparation {
    const float *offset, *factor;
    int64_t count;
} bwi_preparation;
bool bwi_recipe_step(const bw_dataset *recipe, int input, int step, bwi_preparation *preparation);
double bwi_recipe_scale(const bw_dataset *recipe); /* what the inputs are multiplied by before the first step */
/* Whether a function of the program is among the steps, so that only the program can prepare samples. */
bool bwi_recipe_has_function(const bw_dataset *recipe);
/* The name of the table's column that an input of a dataset or recipe comes from, and its category if the column has some
 * (otherwise NULL); NULL: nothing is known of it. */
const char *bwi_recipe_column(const bw_dataset *recipe, int64_t input, const char **category);
int bwi_recipe_categorical(const bw_dataset *recipe); /* columns with categories, each of which became several inputs */
int bwi_recipe_filled(const bw_dataset *recipe);      /* columns whose missing values are replaced */
/* Fits statistics to the samples that the dataset is used with; needed before a recipe is made. */
bw_status bwi_dataset_prepare(const bw_dataset *dataset);

/* Hashes by which data is recognised when a run is resumed (fingerprint.c): of the samples' values, of the order of the first two
 * epochs, and of what augmentation makes of a few samples. The count of samples must be known. */
typedef struct bwi_fingerprint {
    uint64_t values, order, augmented;
} bwi_fingerprint;
bw_status bwi_dataset_fingerprint(const bw_dataset *dataset, bwi_fingerprint *print);

/* The number of samples in the batch that begins at a position of an epoch; 0: the end. The position moves over samples that are
 * dropped. A stream is read that far; if that fails, bwi_dataset_begin reports it. For the caller's thread only. */
int64_t bwi_dataset_batch_at(bw_dataset *dataset, int epoch, int64_t *position);
int64_t bwi_dataset_batch_count(bw_dataset *dataset, int epoch);
/* A hash of the batches of the first `epochs` epochs. It is equal for equal batches, however they were specified. */
uint64_t bwi_dataset_batch_hash(bw_dataset *dataset, int epochs);
bool bwi_dataset_batch_varies(const bw_dataset *dataset); /* whether sizes differ between epochs */
int64_t bwi_dataset_largest_batch(const bw_dataset *dataset);

/* How samples are grouped into updates. Each update is a batch of *made, which keeps the dataset. */
typedef struct bwi_batching {
    const char *sizes; /* as bw_batch_sizes takes them; NULL: `batch` */
    int64_t batch;     /* -1: the sizes that the dataset has */
    int accumulate;    /* batches per update */
    bool drop;         /* drops a remainder that is smaller than its batch would be */
} bwi_batching;

bw_status bwi_dataset_windows(bw_dataset *dataset, const bwi_batching *how, bw_dataset **made);

/* A batch of an iterator: a list of sample numbers. */
struct bw_batch {
    bw_dataset *dataset;
    int epoch;
    int64_t first; /* position of the first sample */
    int64_t count, capacity;
    int64_t *numbers;
    bool scattered;   /* chosen by the program, so the numbers follow no order of the dataset */
    bw_batch *chosen; /* the selection that bw_batch_select lends; NULL: none was made yet */
};

#endif
