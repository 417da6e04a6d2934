/*
 * bits: small trainings, and a hash of the bits of all that comes of each. What its files share: cases, samples, hashes.
 */
#ifndef BW_BITS_H
#define BW_BITS_H

#include <batchwise.h>

enum { SAMPLES = 45, BATCH = 13, CLASS_COUNT = 5, STEPS = 12, WORDS = 20, MOST_VALUES = 1024 };

#define COUNT_OF(array) ((int)(sizeof(array) / sizeof *(array)))

/* Inputs of a sample: 12 numbers; images of 10x10x3, 12x12x1 and 8x8x16; 12 steps of 4 numbers; 12 words, padded with zeros; 300
 * numbers, for layers with many weights. */
typedef enum bits_input { ROWS, IMAGE, GRAY, DEEP, SEQUENCE, TOKENS, WIDE } bits_input;

/* Targets of a sample: a class; 5 numbers that are zeros and a one, any, 0 or 1, -1 or 1, shares of 1, or counts; one that is 0
 * or 1; a class for each step; none. */
typedef enum bits_target { CLASSES, ONE_HOT, NUMBERS, BITS, SIGNS, SHARES, COUNTS, BINARY, STEP_CLASSES, NOTHING } bits_target;

/* The least budget that leaves tile and lanes as they are. */
#define TIGHTEST (-1)

typedef struct bits_case bits_case;

/* A case under way on one rank. */
typedef struct bits_run {
    const bits_case *row;
    bw_context *ctx;
    bw_dataset *data;
    bw_model *model;
    bw_fit_options options;
    bw_history *history;
    uint64_t hash; /* of all so far */
    int workers, rank;
    bw_ranks *ranks;
    bw_status status;
    char message[256];
    bw_run_facts facts;
    double loss;
} bits_run;

/* What is zero or NULL is the default: Adam, two epochs of batches of 13 in tiles of 4, workers as the command line says. */
struct bits_case {
    const char *name, *model;
    bits_input input;
    bits_target target;
    bool weighted; /* a weight for each sample */
    const char *optimizer, *loss, *metrics;
    int workers, ranks, epochs, accumulate, lanes;
    int64_t batch, tile; /* a tile of -1: from the model */
    double validation;   /* share of the samples */
    double budget;       /* share of the bytes that the plan has without one, or TIGHTEST */
    const char *batch_sizes, *early_stopping, *plateau;
    bool exact, class_weights, drop_remainder;
    bw_dataset *(*read)(bw_context *ctx);            /* samples of its own */
    bw_dataset *(*change)(bw_dataset *dataset);      /* what becomes of the samples */
    bw_model *(*build)(bw_context *ctx);             /* a model by calls */
    bw_status (*train)(bits_run *run);               /* in place of bw_fit */
    bool (*on_step)(void *run, const bw_progress *); /* a callback; `user` is the run */
};

/* ---- bits.c ---- */

void bits_add(bits_run *run, const void *bytes, size_t count);
bw_status bits_fit(bits_run *run);

/* ---- samples.c ---- */

void bits_make_samples(void);
bw_array bits_inputs(bits_input kind);
bw_array bits_targets(bits_target kind);
bw_array bits_weights(void);
/* Numbers of 0 to below 1 that depend on the two alone. */
double bits_number(uint64_t stream, uint64_t index);

/* ---- cases.c, programs.c ---- */

/* Calls `visit` with each case of the tables; names last as long as the call. */
typedef void (*bits_visitor)(void *user, const bits_case *row);
void bits_table_cases(bits_visitor visit, void *user);
void bits_data_cases(bits_visitor visit, void *user);
void bits_program_cases(bits_visitor visit, void *user);

#endif
