/*
 * base: what every other module stands on. Status and messages, the context and what it owns, checked sizes,
 * allocation and I/O through the context's tables, the worker pool, cancellation, random numbers, text, state
 * (named values to save) and the ledger.
 *
 * Between modules names begin with bwi_. Nothing here knows about tensors or models.
 */
#ifndef BWI_BASE_H
#define BWI_BASE_H

#include <batchwise.h>

#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>

#define BWI_COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define BWI_CACHE_LINE 64

/* The one way to cast const away: where an outside library's parameter lacks it, where one struct describes memory to read as
 * well as to write, and where an object's life ends. Nothing is ever written through the result. */
static inline void *bwi_unconst(const void *pointer)
{
    return (void *)(uintptr_t)pointer;
}

/* ---- Failure (error.c) ---- */

/* Leaves the message (printf's format) in the context and returns `status`. A builder's failure that nobody has
 * reported yet is kept: the first failure is the one users need. */
bw_status bwi_fail(bw_context *ctx, bw_status status, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* The same for builders: marks the failure as not yet reported, and returns NULL. */
void *bwi_fail_build(bw_context *ctx, bw_status status, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* The first failure that nobody has been told of, or BW_OK; clears it. Inside the library: why a builder returned NULL. */
bw_status bwi_pending(bw_context *ctx);
/* Every public function that returns a status works between these two, and the library itself calls none of them, so that the rule
 * about failures is kept here and nowhere else. The first gives a failure that nobody has been told of: the function then returns
 * it and does nothing. The second keeps a failure until the next such function, or bw_message or bw_last_error, has told of it; an
 * OK that follows a failure in a callback becomes that failure. Being cancelled is no failure: the program wanted it. */
bw_status bwi_call_begin(bw_context *ctx);
bw_status bwi_call_end(bw_context *ctx, bw_status status);
/* For a builder whose inner call has failed and left its message: marks that failure as not yet reported; NULL. */
void *bwi_pass_on(bw_context *ctx);

/* Where a failure lies; the members mean what bw_error's do. Made by the functions below, which leave all others unknown. */
typedef struct bwi_location {
    const char *path;
    int64_t line;
    int column;
    const char *argument;
    int64_t offset;
    const char *layer;
    int64_t sample;
} bwi_location;

bwi_location bwi_in_file(const char *path);
bwi_location bwi_in_layer(const char *layer);
bwi_location bwi_in_argument(const char *argument);
bwi_location bwi_at_sample(int64_t sample);

bw_status bwi_fail_at(bw_context *ctx, bw_status status, bwi_location location, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* The location stands in front of the message: "PATH: ...", "PATH: line 3: ..." (a table's column, or -1, is not part of it) and
 * "WHAT: column 3: ...", where `what` names the thing in the text `argument` (NULL: not a caller's text) and the column counts its
 * bytes from 1. */
bw_status bwi_fail_file(bw_context *ctx, bw_status status, const char *path, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
bw_status bwi_fail_line(bw_context *ctx, bw_status status, const char *path, int64_t line, int column, const char *format, ...)
    __attribute__((format(printf, 6, 7)));
bw_status bwi_fail_text(bw_context *ctx, bw_status status, const char *what, const char *argument, int column, const char *format,
                        ...) __attribute__((format(printf, 6, 7)));
/* For a caller who knows more of a failure than the function that left it: what that function knew of its location stays, and
 * `location` completes it. The message stays, or is replaced by one that usually contains it. */
void bwi_locate(bw_context *ctx, bwi_location location);
/* The failure lies in this file, whichever part of it ("model.keras: config.json") was named as the file so far. */
void bwi_locate_file(bw_context *ctx, const char *path);
bw_status bwi_fail_again(bw_context *ctx, bw_status status, bwi_location location, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* The system's words for an errno, in English whatever the locale; and the status that suits it. */
const char *bwi_errno_text(int code);
bw_status bwi_errno_status(int code);
void bwi_log(bw_context *ctx, bw_log_level level, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* ---- Allocation (memory.c) ---- */

/* Memory from the context's allocator, zeroed, aligned to a cache line. NULL and a RESOURCE_EXHAUSTED message if
 * there is none, or if count * size overflows. A size of zero gives a pointer that may be released. */
void *bwi_allocate(bw_context *ctx, size_t count, size_t size);
/* Does the same without a message, for workers, which must leave the context's message alone. */
void *bwi_try_allocate(bw_context *ctx, size_t count, size_t size);
/* Also without a message; large memory gets its pages when they are first written, by whoever writes them. */
void *bwi_try_allocate_lazily(bw_context *ctx, size_t bytes);
/* Needs no size, which is kept in front of the memory. NULL is fine. Memory that is const may be released: that ends its life. */
void bwi_release(bw_context *ctx, const void *memory);
/* Grows to `count` elements, keeping what is there; NULL (and the old memory still valid) on failure. */
void *bwi_grow(bw_context *ctx, void *memory, size_t old_count, size_t count, size_t size);
char *bwi_copy_text(bw_context *ctx, const char *text);

/* Memory that is reused and only grows; it begins zeroed. */
typedef struct bwi_buffer {
    unsigned char *memory;
    size_t capacity;
} bwi_buffer;

/* Makes it at least `bytes` large; the old content is lost if it grows. False without a message: for workers. */
bool bwi_buffer_reserve(bw_context *ctx, bwi_buffer *buffer, size_t bytes);
void bwi_buffer_free(bw_context *ctx, bwi_buffer *buffer);
/* The bytes now taken from the allocator, without the context itself; and what one allocation of `bytes` adds to them. */
size_t bwi_allocated_bytes(const bw_context *ctx);
size_t bwi_allocation_bytes(size_t bytes);

/* Memory for data that may be larger than the machine's (backing.c). Beyond a limit it is a mapped temporary file without a name
 * in $TMPDIR or /var/tmp. It begins zeroed. */
typedef struct bwi_backing {
    void *memory;
    size_t bytes;
    bool opened; /* there is a file */
    int file;
} bwi_backing;

/* Grows to `bytes`; the first `used` bytes stay, the memory may move; new bytes are zero. `what` names the data in messages. */
bw_status bwi_backing_grow(bw_context *ctx, bwi_backing *backing, size_t used, size_t bytes, const char *what);
void bwi_backing_free(bw_context *ctx, bwi_backing *backing);

/* Page-aligned memory for an arena (2 MiB-aligned if large), zeroed, every page touched so that failure shows now and
 * not in a step. */
void *bwi_arena_allocate(bw_context *ctx, size_t bytes);
void bwi_arena_release(bw_context *ctx, void *arena, size_t bytes);

/* Sums and products of sizes that cannot overflow unnoticed: SIZE_MAX means "too large", and sticks. */
size_t bwi_size_add(size_t a, size_t b);
size_t bwi_size_multiply(size_t a, size_t b);
size_t bwi_size_align(size_t bytes, size_t alignment);

/* The resident bytes of the process now, and the most since bwi_memory_reset_peak (0 where the system does not tell). */
size_t bwi_memory_resident(bw_context *ctx);
size_t bwi_memory_peak(bw_context *ctx);
/* Bytes of the process that are swapped out now; pages that it had to wait for from a disk so far. */
size_t bwi_memory_swapped(bw_context *ctx);
int64_t bwi_memory_faults(void);
/* Of the resident bytes now, those of files: code, libraries, mapped data. */
size_t bwi_memory_of_files(bw_context *ctx);
void bwi_memory_reset_peak(bw_context *ctx);
/* How much memory this process may still take: the least of what the machine has and what its cgroup (v1, v2) allows. */
size_t bwi_memory_available(bw_context *ctx);

/* The file system of a folder. */
typedef struct bwi_disk {
    int error; /* an errno; 0: the other members are known */
    bool in_memory;
    size_t free; /* bytes that this user may still write */
} bwi_disk;

bwi_disk bwi_disk_of(const char *folder);

/* The allocator of a context that was given none (system.c). */
extern const bw_allocator bwi_system_allocator;
/* Whether the system would give that many bytes now; none are taken. For libraries that do not survive a lack of memory. */
bool bwi_system_has_room(size_t bytes);

/* ---- What a context owns (context.c) ---- */

/* An object that the context frees when it closes. Embed as the first member. */
typedef struct bwi_owned {
    bw_context *ctx;
    struct bwi_owned *next, *previous;
    void (*destroy)(struct bwi_owned *object); /* frees the object's parts, not the object */
} bwi_owned;

/* Allocates a zeroed object of `size` bytes whose first member is a bwi_owned. NULL on failure (as a builder). */
void *bwi_own(bw_context *ctx, size_t size, void (*destroy)(bwi_owned *object));
/* Destroys and releases one object at once. NULL is fine. */
void bwi_disown(void *object);

typedef struct bwi_pool bwi_pool;
typedef struct bwi_kernels bwi_kernels;

/* What a field of the samples is for. */
typedef enum bwi_role { BWI_ROLE_INPUT, BWI_ROLE_TARGET, BWI_ROLE_WEIGHT } bwi_role;

/* What base knows of a group of ranks; rank's own struct begins with it. A context joins when it opens (false: the
 * number is taken) and parts when it closes. */
struct bw_ranks {
    const struct bwi_rank_row *row;
    int count;
    const char *failure; /* why no context can join; NULL: they can */
    double watchdog;     /* seconds, as in bw_context_options */
    bool (*join)(bw_ranks *ranks, int rank);
    void (*part)(bw_ranks *ranks, int rank);
    int (*end)(bw_ranks *ranks, const char *failure, const char **reason); /* NULL: ranks of one process */
    void (*close)(bw_ranks *ranks);
};

struct bw_context {
    bw_allocator allocator;
    bw_io io;
    bwi_owned *owned;
    bwi_pool *pool;
    int workers;
    char *instruction_set; /* as asked for, or NULL */
    bool exact_kernels;
    size_t memory;              /* the budget of plans that are given none; 0: what the system has left */
    const bwi_kernels *kernels; /* set by bwi_kernels_of when first asked */
    bw_ranks *ranks;
    int rank;
    void (*log)(void *user, bw_log_level level, const char *message);
    void *log_user;
    atomic_bool cancelled;
    atomic_uint shrunk;   /* pages of mapped files that are gone (shrink.c) */
    unsigned shrunk_told; /* those of them that a failure has told of */
    atomic_size_t allocated;
    size_t backing_limit; /* bytes of a backing that are ordinary memory; 0: half of what is available. For tests */
    bool closing;         /* what is destroyed now must not look at other objects: they may be gone */
    unsigned floats;      /* calls of bwi_float_begin that bwi_float_end has not met */
    unsigned float_state; /* what the outermost of them found */
    bool pending;         /* a failure that nobody has been told of yet */
    bw_error error;       /* its texts are the next ones, or NULL */
    char message[1024], path[4096], layer[64], argument[64];
};

/* Copies the options that a program gave (NULL: none) over the defaults in `options`. Both begin with their size, so
 * that a program made for an older header gets the defaults for what it does not know; one made for a newer header is
 * refused only if it sets what is not known here. `name` is the type's. */
bw_status bwi_options_copy(bw_context *ctx, void *options, size_t size, const void *given, const char *name);

bool bwi_cancelled(const bw_context *ctx);
/* For the outermost call when it returns: reports BW_CANCELLED with a message, and clears the flag. */
bw_status bwi_cancel_report(bw_context *ctx);

/* ---- Files (file.c) ---- */

/* A whole file, read-only: mapped. */
typedef struct bwi_bytes {
    const unsigned char *data;
    size_t size;
} bwi_bytes;

bw_status bwi_file_map(bw_context *ctx, bwi_bytes *bytes, const char *path);
void bwi_file_unmap(bw_context *ctx, bwi_bytes *bytes);
/* Parts of a mapped file that another process cuts off, or that its disk does not give, read as zeros and are counted in the
 * context (shrink.c). Whoever may have read them asks afterwards: of one file; or fails with DATA_LOSS if there are some that
 * nobody was told of yet, and returns `status` otherwise (`path` may be NULL: then one that has shrunk is named). */
bool bwi_file_has_shrunk(const bwi_bytes *bytes);
bw_status bwi_shrink_report(bw_context *ctx, const char *path, bw_status status);
extern const char bwi_shrunk_text[]; /* of a failure's message */
/* Reads at most `capacity` bytes of a small file such as those below /proc; the count, or -1 without a message. */
int64_t bwi_file_read_small(bw_context *ctx, const char *path, char *text, size_t capacity);
/* For workers: a whole file of at most `limit` bytes into a buffer. A path that is a symbolic link is refused. The number of
 * bytes, or a negative errno (-EFBIG: it is larger) without a message. */
int64_t bwi_file_read_whole(bw_context *ctx, const char *path, size_t limit, bwi_buffer *to);
/* Adds bytes to a file that only this program writes, at *at, which moves on; makes the file if it is not there. */
bw_status bwi_file_append(bw_context *ctx, const char *path, int64_t *at, const void *data, size_t size);
/* Writes to a temporary name beside `path`, syncs, renames, syncs the folder: the old file or the new, never a part. */
bw_status bwi_file_write(bw_context *ctx, const char *path, const void *data, size_t size);
/* Takes bytes, one block after another. */
typedef struct bwi_byte_sink {
    bw_status (*put)(void *user, const void *data, size_t size);
    void *user;
} bwi_byte_sink;

/* The same of a file that is too large to be put together in memory: begin, put any number of times, and end, also after a failure.
 * `path` is kept until the end, which makes the file only if `status` is OK, and otherwise gives it back. */
typedef struct bwi_file_out {
    bw_context *ctx;
    const char *path;
    char *name; /* the temporary one */
    int file, folder;
    int64_t size; /* so far */
} bwi_file_out;
bw_status bwi_file_begin(bw_context *ctx, bwi_file_out *out, const char *path);
bw_status bwi_file_put(bwi_file_out *out, const void *data, size_t size);
/* Replaces bytes that were put before. */
bw_status bwi_file_replace(bwi_file_out *out, int64_t at, const void *data, size_t size);
bw_status bwi_file_end(bwi_file_out *out, bw_status status);
bwi_byte_sink bwi_file_sink(bwi_file_out *out);

/* Standard input, read forwards (pipe.c). */
typedef struct bwi_pipe {
    int file;
    bool open;
    int64_t read; /* bytes so far */
} bwi_pipe;

bw_status bwi_pipe_open(bw_context *ctx, bwi_pipe *pipe);
void bwi_pipe_close(bw_context *ctx, bwi_pipe *pipe);
/* What has come, at least one byte; 0 at the end. */
bw_status bwi_pipe_read(bw_context *ctx, bwi_pipe *pipe, void *to, size_t size, size_t *got);

/* ---- Folders (folder.c) ---- */

typedef struct bwi_name {
    size_t at; /* in `text` */
    bw_entry entry;
} bwi_name;

/* The names in a folder, in the order of their bytes. */
typedef struct bwi_names {
    bw_context *ctx;
    char *text; /* each ended by NUL */
    size_t length, capacity;
    bwi_name *name;
    int64_t count, name_capacity;
} bwi_names;

bool bwi_folder_is(bw_context *ctx, const char *path);
/* Makes the folder and its parents, as far as they are not there. */
bw_status bwi_folder_make(bw_context *ctx, const char *path);
/* Free it also after a failure. */
bw_status bwi_folder_list(bw_context *ctx, const char *path, bwi_names *names);
void bwi_names_free(bwi_names *names);

/* ---- Files that survive a kill, from any thread (durable.c) ---- */

/* They allocate nothing and leave the context's message alone: 0, or a negative errno, and *what then says what could not be done
 * ("write"). Paths of up to 4,000 bytes; one thread at a time in a folder. */
enum { BWI_DURABLE_PATH = 4096 };
/* Writes to PATH.tmp, syncs, renames it to PATH, syncs the folder. What a killed process left as PATH.tmp is replaced. */
int bwi_durable_write(bw_context *ctx, const char *path, const void *data, size_t size, const char **what);
/* Makes one folder, which may be there already, and syncs the one that holds it. */
int bwi_durable_folder(bw_context *ctx, const char *path, const char **what);

/* ---- Threads (thread.c) ---- */

/* Starts a thread, in which all signals are blocked, and waits until it runs: 0, or an error number. A stack of 0 bytes is one of
 * the system's usual size. */
int bwi_thread_start(pthread_t *thread, size_t stack_bytes, void *(*run)(void *user), void *user);
/* How often this process is a child of the one that first started a thread. */
int bwi_forks(void);
/* A lock of the whole process, for what takes no time and no other lock: a child of fork never finds it held. */
void bwi_moment_begin(void);
void bwi_moment_end(void);
/* A mutex with a condition, whose waits of a limited time keep to the monotonic clock. False: there is neither. */
bool bwi_condition_open(pthread_mutex_t *mutex, pthread_cond_t *changed);
void bwi_condition_close(pthread_mutex_t *mutex, pthread_cond_t *changed);
/* With the mutex held: returns after a signal or that time, or for no reason. */
void bwi_condition_wait(pthread_mutex_t *mutex, pthread_cond_t *changed, long nanoseconds);

/* ---- Workers (pool.c) ---- */

/* Worker 0 is the caller. */
typedef void (*bwi_work)(void *user, int worker);

#define BWI_MAX_WORKERS 1024

/* Starts the threads if they are not there yet. RESOURCE_EXHAUSTED if the system gives none. */
bw_status bwi_pool_open(bw_context *ctx);
/* Runs `work` once on each of `workers` workers (at most ctx->workers) and waits for all of them. Waits spin for a few tens of
 * microseconds, then sleep. With one worker this is a function call. All workers, including the caller, run with flush-to-zero.
 * Allocates nothing. Without bwi_pool_open the caller does everybody's work in order. Not to be called from within work. */
void bwi_pool_run(bw_context *ctx, int workers, bwi_work work, void *user);

/* For tests: called by each worker before its work, if it is not NULL. Change it only between runs. */
extern void (*bwi_pool_delay)(int worker);

int bwi_cpus(void); /* that this process may use */

/* Sets flush-to-zero, denormals-are-zero, rounding to nearest and no traps for this thread, so that bits do not depend
 * on who computes; returns what to give back to bwi_float_restore. For threads of the library's own. Does nothing on machines other
 * than x86. */
unsigned bwi_float_set(void);
void bwi_float_restore(unsigned state);

/* The same on the thread that uses the context, until the matching end. Only the outermost of nested calls touches the register:
 * reading it eight times was a tenth of the step of a small model. A loop of steps begins once, outside, and ends around callbacks,
 * which run with the caller's state. */
static inline void bwi_float_begin(bw_context *ctx)
{
    if (ctx->floats++ == 0) {
        ctx->float_state = bwi_float_set();
    }
}
static inline void bwi_float_end(bw_context *ctx)
{
    if (--ctx->floats == 0) {
        bwi_float_restore(ctx->float_state);
    }
}

double bwi_now(void); /* seconds, monotonic */

/* ---- A loop on all workers (parallel.c) ---- */

enum { BWI_ITEM_ERROR = 200 };

/* The work of one index. A failure puts its text, if it has one, in `error` (BWI_ITEM_ERROR bytes, empty before). */
typedef bw_status (*bwi_item)(void *user, int64_t index, int worker, char *error);

/* Calls `item` for each index below `count` on the context's workers, which it starts if they are not there yet. After a failure no
 * higher index begins, every lower one is finished, and the lowest index that failed gives the status and the text in `error`
 * (BWI_ITEM_ERROR bytes), so neither depends on timing. The context's message is left to the caller; only being cancelled, which is
 * noticed before each index, is reported at once, with an empty text. */
bw_status bwi_parallel_for(bw_context *ctx, int64_t count, bwi_item item, void *user, char *error);

/* ---- Random numbers (random.c, permute.c): Philox 4x32-10, no state ---- */

/* Four random 32-bit words, a function of key and counter alone. */
typedef struct bwi_random {
    uint32_t word[4];
} bwi_random;

bwi_random bwi_random_at(uint64_t seed, uint64_t stream, uint64_t counter);
float bwi_random_uniform(uint32_t word);                            /* [0,1), 24 bits */
void bwi_random_normal(uint32_t a, uint32_t b, float *x, float *y); /* two standard normals, the same bits everywhere */
/* The element at position i of the exact permutation of 0 ... count - 1 that (seed, epoch) selects, in constant memory (cycle
 * walking). */
int64_t bwi_permute(uint64_t seed, uint64_t epoch, int64_t count, int64_t i);
/* The same for n positions in place; from 64 on, each costs a tenth where the processor has the vectors for it. */
void bwi_permute_all(uint64_t seed, uint64_t epoch, int64_t count, int64_t *positions, int64_t n);
/* A 64-bit hash of bytes, the same across versions and machines. */
uint64_t bwi_hash(uint64_t seed, const void *bytes, size_t size);
/* The same of `size` bytes that come in blocks, each but the last a multiple of 8 bytes. */
uint64_t bwi_hash_begin(uint64_t seed, size_t size);
uint64_t bwi_hash_add(uint64_t hash, const void *bytes, size_t size);
uint64_t bwi_hash_end(uint64_t hash);

/* ---- Text (text.c): the locale never matters ---- */

typedef struct bwi_text {
    bw_context *ctx;
    char *bytes; /* NUL-terminated once something was added; NULL before */
    size_t length, capacity;
    bool failed;
} bwi_text;

/* vsnprintf in the C locale. */
int bwi_format(char *buffer, size_t size, const char *format, va_list arguments) __attribute__((format(printf, 3, 0)));
/* snprintf and fprintf in the C locale, for whatever has a decimal point. */
int bwi_print(char *buffer, size_t size, const char *format, ...) __attribute__((format(printf, 3, 4)));
int bwi_print_file(FILE *file, const char *format, ...) __attribute__((format(printf, 2, 3)));
void bwi_text_add(bwi_text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
void bwi_text_free(bwi_text *text);
/* Strict decimal numbers with '.', whatever the locale. False (and *value unchanged) if `text` up to `end` is anything
 * else, or too large for the type. Doubles are rounded correctly, however many digits there are. */
bool bwi_parse_double(const char *text, const char *end, double *value);
bool bwi_parse_int(const char *text, const char *end, int64_t *value);
/* "12.3 MiB" into a buffer of at least 32 bytes; returns it. */
char *bwi_format_bytes(char *buffer, size_t bytes);
/* A shape such as "(28, 28, 1)" into a buffer of at least 160 bytes; returns it. */
char *bwi_format_shape(char *buffer, int ndim, const int64_t *shape);
/* Whether `name` is similar to the word of `size` bytes, and nearer to it than *least edits, which is then lowered (it begins as
 * SIZE_MAX): the last name of a list for which this is true is the one that was probably meant (nearest.c). */
bool bwi_nearer(size_t *least, const char *word, size_t size, const char *name);

/* For messages that refuse a word: the names that there are, and the one that is nearest to it. */
typedef struct bwi_known {
    const char *word;
    size_t size, least;
    char nearest[64]; /* empty: none is similar */
    bwi_text list;
} bwi_known;

bwi_known bwi_known_begin(bw_context *ctx, const char *word, size_t size);
/* Adds a thing with one or several names, which blanks separate: the first is listed, any may be the one that was meant. */
void bwi_known_add(bwi_known *known, const char *names);
/* "did you mean 'adam'?" or "there are sgd, adam"; lives until the list is freed. */
const char *bwi_known_hint(bwi_known *known);

/* ---- State (state.c): every value that must survive a kill, by name ---- */

/* A value lives where `data` points, or behind get and set when it is stored in another form. */
typedef struct bwi_state_value {
    char name[96];
    bw_dtype dtype;
    int ndim;
    int64_t shape[BW_MAX_NDIM];
    void *data;
    void *object; /* for get and set */
    void (*get)(void *object, void *values);
    void (*set)(void *object, const void *values);
} bwi_state_value;

typedef struct bwi_state {
    bw_context *ctx;
    bwi_state_value *values;
    int count, capacity;
    bool failed; /* an allocation failed while adding */
} bwi_state;

/* Adds a value that lives at `data`; the name is made by printf. Returns it for changes until the
 * next one is added, or NULL on failure: no memory, a name too long or there already, a shape that cannot be. */
bwi_state_value *bwi_state_add(bwi_state *state, bw_dtype dtype, int ndim, const int64_t *shape, void *data, const char *name, ...)
    __attribute__((format(printf, 6, 7)));
const bwi_state_value *bwi_state_find(const bwi_state *state, const char *name);
size_t bwi_state_bytes(const bwi_state_value *value);
void bwi_state_read(const bwi_state_value *value, void *values);
void bwi_state_write(const bwi_state_value *value, const void *values);
void bwi_state_free(bwi_state *state);

size_t bwi_dtype_size(bw_dtype dtype);
const char *bwi_dtype_name(bw_dtype dtype); /* "float32" */

/* ---- Ledger (ledger.c): where the time of a step went ---- */

/* Time in ticks of the fastest clock there is: reading it must cost little beside the parts of a small step. */
static inline uint64_t bwi_ticks(void)
{
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#else
    return (uint64_t)(bwi_now() * 1e9);
#endif
}

/* Ticks that this thread has waited for data so far. */
extern _Thread_local uint64_t bwi_waited;

/* One call of a part on a worker. */
typedef struct bwi_event {
    uint64_t begin, end; /* ticks */
    int part;
} bwi_event;

/* Each worker adds to its own slots, so that nothing is shared while a step runs. */
typedef struct bwi_ledger {
    int parts, workers;
    size_t stride;   /* slots of one worker: whole cache lines */
    uint64_t *ticks; /* [worker][stride] */
    int64_t *calls;  /* [worker][stride] */
    uint64_t clock;  /* ticks that reading the clock takes, which are no part's */
    uint64_t opened; /* ticks and seconds at which it was opened: from them, how long a tick is */
    double opened_seconds;
    bool records;      /* events are recorded */
    int64_t capacity;  /* events of one worker */
    bwi_event *events; /* [worker][capacity] */
    int64_t *recorded; /* [worker * stride]: events of each; those beyond the capacity are lost */
} bwi_ledger;

size_t bwi_ledger_bytes(int parts, int workers); /* that bwi_ledger_open allocates */
bw_status bwi_ledger_open(bw_context *ctx, bwi_ledger *ledger, int parts, int workers);
/* From now on events are recorded, that many of each worker. */
size_t bwi_ledger_record_bytes(int parts, int workers, int64_t events);
bw_status bwi_ledger_record(bw_context *ctx, bwi_ledger *ledger, int64_t events);
void bwi_ledger_close(bw_context *ctx, bwi_ledger *ledger);
void bwi_ledger_add(bwi_ledger *ledger, int worker, int part, uint64_t begin, uint64_t end);
/* Takes ticks from a part that were counted in it and belong to another. */
void bwi_ledger_move(bwi_ledger *ledger, int worker, int from, int to, uint64_t ticks);
/* Of one worker; -1: of all. */
uint64_t bwi_ledger_ticks(const bwi_ledger *ledger, int worker, int part);
int64_t bwi_ledger_calls(const bwi_ledger *ledger, int worker, int part);
double bwi_ledger_tick_seconds(const bwi_ledger *ledger);

#endif
