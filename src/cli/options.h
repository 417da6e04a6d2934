/*
 * Reads the command line by a table: a row names the option, the kind of its value and the member of the command's struct where
 * the value goes. `--name value` and `--name=value` are the same. An option that has no row, or a value that is given twice, is
 * wrong usage: nothing is accepted and then ignored.
 */
#ifndef CLI_OPTIONS_H
#define CLI_OPTIONS_H

#include <batchwise.h>

/* Exit codes of commands. */
enum { CLI_SUCCESS = 0, CLI_FAILURE = 1, CLI_USAGE = 2, CLI_INTERRUPTED = 130 };

/* A kind of value. `parse` writes to `target` and returns false if the text is not such a value. */
typedef struct cli_kind {
    const char *expected; /* completes "expected ..., found ..."; NULL: the option has no value */
    bool (*parse)(void *target, const char *text);
    const char *standard; /* the value if another option, or nothing, follows; NULL: a value is required */
} cli_kind;

extern const cli_kind cli_flag;            /* bool */
extern const cli_kind cli_text;            /* const char *: not empty, borrowed from argv */
extern const cli_kind cli_paths;           /* const char *: likewise; all words up to the next option, as a list with commas */
extern const cli_kind cli_count;           /* int from 1 */
extern const cli_kind cli_number;          /* int from 0 */
extern const cli_kind cli_port;            /* int from 0 to 65535 */
extern const cli_kind cli_extent;          /* int64_t from 1 */
extern const cli_kind cli_power;           /* int, a power of two */
extern const cli_kind cli_seed;            /* uint64_t */
extern const cli_kind cli_rate;            /* double, positive */
extern const cli_kind cli_percent;         /* double, 0 < share <= 1: 0.01, 1% */
extern const cli_kind cli_share;           /* double, 0 <= share < 1 */
extern const cli_kind cli_ratio;           /* double, finite and not zero: 0.5, 1/255 */
extern const cli_kind cli_size;            /* size_t from 1: 4096, 512M, 2G (powers of 1024) */
extern const cli_kind cli_batch;           /* int64_t from 1, or INT64_MAX for "full" */
extern const cli_kind cli_batches_or_auto; /* const char *: sizes as bw_batch_sizes reads them, or "auto" */
extern const cli_kind cli_duration;        /* double, seconds above 0: 10s, 500ms, 2m, 10 */
extern const cli_kind cli_some_seconds;    /* likewise; 5 seconds if no value follows */
extern const cli_kind cli_shape;           /* cli_extents: 28x28x1 */
extern const cli_kind cli_missing;         /* int, a bw_missing: error, mean, zero, skip */

/* The extents of one sample; ndim is 0 if none were given. */
typedef struct cli_extents {
    int ndim;
    int64_t extent[BW_MAX_NDIM];
} cli_extents;

typedef struct cli_option {
    const char *name; /* without the dashes; NULL ends the table */
    const cli_kind *kind;
    size_t offset;
    const char *value; /* the value's name in the help; NULL for a flag */
    const char *help;  /* lines separated by \n */
} cli_option;

typedef struct cli_usage {
    const char *command;
    const char *synopsis; /* what follows the command's name */
    const char *purpose;
    const cli_option *options;
    const char *required;     /* the option of kind cli_text that must be given, by name; NULL: none */
    void (*print_more)(void); /* prints the end of the help: lists, examples */
} cli_usage;

/* Reads the arguments from argv[1] on into `target`. Returns false if the command ends here with exit code *code: either --help
 * printed the help on standard output, or a mistake was reported in one line on standard error. */
bool cli_options_read(int *code, const cli_usage *usage, int argc, char **argv, void *target);

/* Takes the words that are neither options nor their values from argv, up to `capacity` of them, before the options are read.
 * Returns how many there were. */
int cli_options_words(const cli_usage *usage, int *argc, char **argv, char **words, int capacity);

/* Writes "batchwise COMMAND: ..." as one line to standard error and returns CLI_USAGE. */
int cli_mistake(const char *command, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Returns the most similar of `count` names, the ith of which is at `names` + i * `stride` bytes; NULL if none is similar
 * enough. */
const char *cli_nearest(const char *word, const char *const *names, size_t count, size_t stride);

#endif
