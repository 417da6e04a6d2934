/*
 * How a model is to be trained, as options of the command line give it: for the commands that train, and for those that look at a
 * training before it starts.
 */
#ifndef CLI_TRAINING_H
#define CLI_TRAINING_H

#include "cli/cli.h"

typedef struct cli_training {
    const char *command; /* for messages */
    cli_data data;
    const char *model, *validation, *optimizer, *schedule, *loss, *metrics, *class_weight, *batch, *augment, *cache;
    double rate, validation_split, bad;
    int64_t tile, prefetch;
    int accumulate, workers, lanes, parallel;
    uint64_t seed;
    size_t memory;
    bool standardise, normalise, no_shuffle, drop_remainder, exact_kernels;
} cli_training;

#define CLI_TRAINING_DEFAULT(name)                                    \
    {                                                                 \
        .command = (name), .data = CLI_DATA_DEFAULT, .accumulate = 1, \
    }

#define CLI_TRAINING_AT(arguments, member, part) offsetof(arguments, member.part)

/* Rows for the option table of a command whose arguments have a cli_training as `member`: what the model learns from, and how. */
#define CLI_TRAINING_OPTIONS(arguments, member)                                                                                    \
    {"model", &cli_text, CLI_TRAINING_AT(arguments, member, model), "M",                                                           \
     "an expression, a text file that holds one, or a file of\nKeras: .keras, .json, .h5 (required)"},                             \
        CLI_DATA_OPTIONS(arguments, member.data),                                                                                  \
        {"batch", &cli_batches_or_auto, CLI_TRAINING_AT(arguments, member, batch), "B",                                            \
         "samples per update (32): N, full, 32,64 (alternating), 32/64 (all by\n32, next epoch all by 64), 32@0,128@5 (128 from "  \
         "epoch 5 on),\nor "                                                                                                       \
         "auto (train): what tune recommends, with its learning rate"},                                                            \
        {"drop-remainder", &cli_flag, CLI_TRAINING_AT(arguments, member, drop_remainder), NULL,                                    \
         "skip a last batch that is smaller than the others"},                                                                     \
        {"standardise", &cli_flag, CLI_TRAINING_AT(arguments, member, standardise), NULL,                                          \
         "bring each column or channel to mean 0 and deviation 1,\nfitted to the training part and kept with the model"},          \
        {"normalise", &cli_flag, CLI_TRAINING_AT(arguments, member, normalise), NULL, "likewise, to the range 0 to 1"},            \
        {"augment", &cli_text, CLI_TRAINING_AT(arguments, member, augment), "A",                                                   \
         "change images at random while training, e.g.\n'flip,shift=0.1,rotate=15'"},                                              \
        {"bad-records", &cli_percent, CLI_TRAINING_AT(arguments, member, bad), "P",                                                \
         "share of the samples that may be bad and are left out: 1%"},                                                             \
        {"cache", &cli_text, CLI_TRAINING_AT(arguments, member, cache), "WHERE",                                                   \
         "cache prepared samples in memory, or in a file that later runs reuse"},                                                  \
        {"prefetch", &cli_extent, CLI_TRAINING_AT(arguments, member, prefetch), "N", "samples prepared ahead (two batches)"},      \
        {"parallel", &cli_count, CLI_TRAINING_AT(arguments, member, parallel), "N", "threads that prepare samples (one per CPU)"}, \
        {"optimizer", &cli_text, CLI_TRAINING_AT(arguments, member, optimizer), "O", "e.g. 'adam(lr=0.001)' (adam)"},              \
        {"lr", &cli_rate, CLI_TRAINING_AT(arguments, member, rate), "X", "the learning rate, in place of the optimizer's"},        \
        {"schedule", &cli_text, CLI_TRAINING_AT(arguments, member, schedule), "S",                                                 \
         "of the learning rate, e.g. 'cosine_decay(0.01,1000)'"},                                                                  \
        {"loss", &cli_text, CLI_TRAINING_AT(arguments, member, loss), "L",                                                         \
         "by Keras's name; default: from the last layer and the targets"},                                                         \
        {"metrics", &cli_text, CLI_TRAINING_AT(arguments, member, metrics), "A,B",                                                 \
         "by Keras's names; default: accuracy for classes"},                                                                       \
        {"validation-split", &cli_share, CLI_TRAINING_AT(arguments, member, validation_split), "F",                                \
         "share of the samples kept for validation: a random one\nby the seed; with --no-shuffle the last ones"},                  \
        {"validation", &cli_paths, CLI_TRAINING_AT(arguments, member, validation), "D...",                                         \
         "samples for validation, a file like --data"},                                                                            \
        {"no-shuffle", &cli_flag, CLI_TRAINING_AT(arguments, member, no_shuffle), NULL,                                            \
         "take the samples in the order of the file"},                                                                             \
        {"accumulate", &cli_count, CLI_TRAINING_AT(arguments, member, accumulate), "K", "batches per update (1)"},                 \
        {"class-weight", &cli_text, CLI_TRAINING_AT(arguments, member, class_weight), "W",                                         \
         "auto: rare classes weigh more; or a weight for each: 1,2.5"},                                                            \
        {"memory", &cli_size, CLI_TRAINING_AT(arguments, member, memory), "SIZE",                                                  \
         "the memory budget, e.g. 512M; default: what is available"},                                                              \
        {"workers", &cli_count, CLI_TRAINING_AT(arguments, member, workers), "N", "threads; default: one per CPU"},                \
        {"tile", &cli_extent, CLI_TRAINING_AT(arguments, member, tile), "N",                                                       \
         "samples a worker processes at once; default: from the\nmodel"},                                                          \
        {"lanes", &cli_power, CLI_TRAINING_AT(arguments, member, lanes), "N",                                                      \
         "gradient sums, a power of two; default: from the model"},                                                                \
        {"exact-kernels", &cli_flag, CLI_TRAINING_AT(arguments, member, exact_kernels), NULL,                                      \
         "convolutions by their definition only, not by Winograd's\nfaster algorithm"},                                            \
    {                                                                                                                              \
        "seed", &cli_seed, CLI_TRAINING_AT(arguments, member, seed), "N", "of the weights, the order and random layers (0)"        \
    }

/* Options that contradict each other are wrong usage. Returns CLI_SUCCESS, or an exit code after a message, like those below. */
int cli_training_check(const cli_training *given);

/* What the options ask for. All zero: nothing yet. `validation` is NULL if there is none besides a split. */
typedef struct cli_prepared {
    bw_model *model;
    bw_dataset *training, *validation;
    cli_weights weights; /* of classes; the caller frees weights.weight, also after a failure */
} cli_prepared;

/* Weights that were computed from the samples are printed unless `quiet`. */
int cli_training_open(const cli_training *given, bw_context *ctx, bool quiet, cli_prepared *made);
bw_fit_options cli_training_fitting(const cli_training *given, bw_dataset *validation, const cli_weights *weights);
bool cli_training_is_auto(const cli_training *given); /* tune is to choose the batch size */
/* Returns the largest of the sizes in --batch; batches that share an update count together. */
int64_t cli_training_batch(const cli_training *given);

#endif
