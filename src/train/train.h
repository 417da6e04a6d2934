/*
 * train: losses, metrics and optimizers (rows of tables, with Keras's names, defaults and formulas), compile, fit, evaluate,
 * predict, and gradients for custom training loops.
 *
 * This header is for other modules, which write a model's training part to files and show plans of runs; what the files of this
 * module share is in internal.h.
 */
#ifndef BWI_TRAIN_H
#define BWI_TRAIN_H

#include "exec/exec.h"
#include "layer/layer.h"

enum { BWI_MAX_OPTIONS = 6, BWI_MAX_METRICS = 16, BWI_MAX_COLUMNS = BWI_MAX_HEADS + BWI_MAX_METRICS };

/* ---- Heads: the losses and metrics of a model's outputs (heads/) ---- */

/* An output of the model, and what the data gives it. */
typedef struct bwi_head bwi_head;

typedef struct bwi_loss_row bwi_loss_row;
struct bwi_loss_row {
    const char *names; /* separated by blanks; the first is Keras's */
    const bwi_argument *arguments;
    int argument_count;
    bw_dtype target;    /* BW_I32: class numbers */
    bool classes;       /* of classes: accuracy is its default metric */
    bwi_loss_kind kind; /* of crossentropies: the one for probabilities that come from neither softmax nor sigmoid */
    /* A node with one number per sample. */
    bw_node *(*build)(const bwi_loss_row *row, const bwi_head *head, const bwi_argument_value *values);
};

const bwi_loss_row *bwi_loss_row_find(const char *name, size_t length);

typedef struct bwi_metric_row {
    const char *names;
    const bwi_argument *arguments;
    int argument_count;
    bw_node *(*build)(const bwi_head *head, const bwi_argument_value *values); /* a SUMS node */
    double (*value)(const bw_node *node, const double *sums);
} bwi_metric_row;

extern const bwi_metric_row bwi_metric_rows[]; /* accuracy comes first; ends with NULL names */

/* How the numbers of a batch become its loss: Keras's words. MEAN has two, and divides by what is not masked. WEIGHTED divides by the
 * sum of the weights. */
typedef enum bwi_reduction { BWI_LOSS_MEAN, BWI_LOSS_SAME_MEAN, BWI_LOSS_SUM, BWI_LOSS_WEIGHTED, BWI_REDUCTIONS } bwi_reduction;

extern const char *const bwi_reduction_names[BWI_REDUCTIONS];

/* A loss or metric as the user wrote it: its row, options, and the output it is for ("": the only one). */
typedef struct bwi_chosen_loss {
    const bwi_loss_row *row; /* NULL: "none", the output is not trained */
    bwi_argument_value values[BWI_MAX_OPTIONS];
    double weight; /* in the sum of all losses */
    bwi_reduction reduction;
    char output[64];
} bwi_chosen_loss;

/* The loss that was chosen for an output, by its name or place; NULL: none was. */
const bwi_chosen_loss *bwi_loss_of(const bw_model *model, int output);

typedef struct bwi_chosen_metric {
    const bwi_metric_row *row; /* NULL: a loss */
    const bwi_loss_row *loss;
    bwi_argument_value values[BWI_MAX_OPTIONS];
    bool weighted; /* by sample and class weights */
    char name[48], output[64];
} bwi_chosen_metric;

/* Is the word one of those listed, separated by blanks? */
bool bwi_listed(const char *list, const char *word, size_t length);
/* The logits that feed a final softmax, or NULL: Keras traces them too. */
bw_node *bwi_logits_of(bw_node *prediction);

/* ---- Schedules of the learning rate (schedule.c) ---- */

typedef struct bwi_schedule bwi_schedule;

typedef struct bwi_schedule_row {
    const char *name;       /* in expressions: "exponential_decay" */
    const char *class_name; /* Keras's: "ExponentialDecay" */
    const bwi_argument *arguments;
    int argument_count;
    float (*rate)(const bwi_schedule *schedule, float step); /* steps count from 0 */
} bwi_schedule_row;

extern const bwi_schedule_row bwi_schedule_rows[]; /* ends with a NULL name */

enum { BWI_MAX_PIECES = 64 };

struct bwi_schedule {
    const bwi_schedule_row *row; /* NULL: the rate is a number */
    bwi_argument_value values[BWI_MAX_OPTIONS];
    /* PiecewiseConstantDecay: rates[k] up to boundaries[k], the last one after all of them. */
    int boundary_count;
    double boundaries[BWI_MAX_PIECES], rates[BWI_MAX_PIECES + 1];
};

/* ---- Optimizers (optimizer.c, optimizers/) ---- */

/* Arguments that all optimizers have, in Keras's order, counted from the row's `common`. */
enum {
    BWI_COMMON_CLIPNORM,
    BWI_COMMON_CLIPVALUE,
    BWI_COMMON_GLOBAL_CLIPNORM,
    BWI_COMMON_USE_EMA,
    BWI_COMMON_EMA_MOMENTUM,
    BWI_COMMON_EMA_OVERWRITE,
    BWI_COMMON_LOSS_SCALE,
    BWI_COMMON_ACCUMULATION,
    BWI_COMMON_COUNT
};

enum { BWI_MAX_SLOTS = BWI_RULE_SLOTS + 1 }; /* those of an optimizer's rule, and the average */

typedef struct bwi_optimizer bwi_optimizer;

typedef struct bwi_optimizer_row {
    const char *name, *class_name; /* in expressions, and Keras's */
    const bwi_argument *arguments; /* the first is the learning rate: a number or a schedule */
    int argument_count;
    int decay, common;  /* which arguments weight_decay and the first of the common ones are */
    int paired;         /* that many slots, the first, lie side by side for each variable in Keras's files */
    bool keeps_product; /* Nadam's product of momentums is part of its state */
    /* How many slots a trained variable has, and their names. */
    int (*slots)(const bwi_optimizer *optimizer, const char *names[BWI_MAX_SLOTS]);
    float (*start)(const bwi_optimizer *optimizer, int slot); /* what a slot begins with; NULL: 0 */
    /* Once per update, when it can fail no more: the rule of the step and its constants, from `rate` and `iterations`. */
    void (*begin)(bwi_optimizer *optimizer);
} bwi_optimizer_row;

extern const bwi_optimizer_row *const bwi_optimizer_rows[]; /* ends with NULL */

/* A slot is stored like its variable. */
typedef struct bwi_slot {
    const bwi_variable *variable;
    void *data; /* in the optimizer's arena; NULL: there is none */
} bwi_slot;

struct bwi_optimizer {
    const bwi_optimizer_row *row;
    bwi_argument_value values[BWI_MAX_ARGUMENTS];
    bwi_schedule schedule;
    /* 0: none. At most one of the clips is set. */
    float weight_decay, clipnorm, clipvalue, global_clipnorm;
    bool averages; /* use_ema */
    float average_momentum;
    int64_t overwrite_every; /* updates after which weights become their averages; 0: never while training */

    int64_t iterations;     /* updates so far */
    float learning_rate;    /* unless there is a schedule */
    float momentum_product; /* Nadam's */
    struct {
        int64_t t; /* 0: not known */
        double first, second;
    } powers; /* Adam's betas to the power t, as of the last update */

    /* The update at hand. */
    double rate;
    bwi_step step;

    int slot_count; /* the row's own; the average follows them */
    const char *slot_names[BWI_MAX_SLOTS];
    const bwi_kernels *kernels; /* in whose memory the slots are */
    void *arena;                /* of all slots; NULL: none */
    size_t arena_bytes;
    bwi_slot *slots; /* [variable][BWI_MAX_SLOTS]; NULL until the first training */
    float *clips;    /* [variable]: what clipping by norms leaves */
};

/* ---- What train keeps with a model ---- */

typedef struct bwi_training {
    bw_context *ctx;
    bw_model *model;
    bool compiled;
    unsigned unread;   /* BWI_PART_... of a file's configuration that are not offered, and were not given since */
    bw_status refused; /* what the last compile returned */
    char refusal[256]; /* its message, if it failed */
    unsigned compiles; /* so far: a session belongs to one of them */
    bwi_optimizer optimizer;
    bwi_chosen_loss losses[BWI_MAX_HEADS];
    int loss_count;                           /* 0: from the data */
    const bwi_loss_row *found[BWI_MAX_HEADS]; /* what the data last chose for each output that has no other */
    bwi_chosen_metric metrics[BWI_MAX_METRICS];
    int metric_count; /* -1: from the loss */
    bw_dataset *data; /* the recipe of the data that the model was last trained on; NULL: none */
} bwi_training;

/* What a model is compiled with. */
enum { BWI_PART_OPTIMIZER = 1, BWI_PART_LOSS = 2, BWI_PART_METRICS = 4, BWI_PART_ALL = 7 };

/* These parts of the model's file are not offered, and have defaults; training and evaluation are refused with the message until
 * others are given. */
void bwi_training_leave_out(bwi_training *training, unsigned parts, bw_status status, const char *message);
/* The model's training part, made (with Adam) if it is not there yet; NULL: no memory. */
bwi_training *bwi_training_of(bw_model *model);
/* As bw_compile, for calls from inside. */
bw_status bwi_model_compile(bw_model *model, const char *optimizer, const char *loss, const char *metrics);
/* Takes the recipe (NULL: none) in place of the one before. */
void bwi_training_set_data(bwi_training *training, bw_dataset *recipe);
bw_status bwi_optimizer_open_slots(bwi_training *training);
size_t bwi_optimizer_bytes(const bwi_training *training);
/* In Keras's order of an optimizer's variables. */
void bwi_optimizer_state(bwi_training *training, bwi_state *state);

/* ---- Sessions: a model with its heads, and a running plan ---- */

/* A column of the history: sums over the batch and what they mean. */
enum { BWI_COLUMN_NAME = 128 };

typedef struct bwi_logged {
    char name[BWI_COLUMN_NAME];
    bw_node *node;
    double (*value)(const bw_node *node, const double *sums);
    bool loss;      /* one of the losses whose weighted sum is the first column */
    double weight;  /* in that sum */
    double summed;  /* of a loss: its value is the sum of the batch times this; 0: it is the mean */
    double *totals; /* over the feeds since bwi_session_reset */
    double *fed;    /* of the last feed, where that is one for each length; NULL: exec has them */
} bwi_logged;

typedef struct bwi_variant bwi_variant;

typedef struct bwi_session {
    bwi_training *training;
    bwi_graph graph; /* the model's nodes again, and the heads; variables are the model's */
    bw_node *outputs[BWI_MAX_HEADS], *losses[BWI_MAX_HEADS];
    int output_count, loss_count;
    bwi_logged columns[BWI_MAX_COLUMNS]; /* losses, one for each, then metrics */
    int column_count;
    int own_nodes;         /* of the graph: the others are the model again, at shorter lengths */
    bwi_variant *variants; /* by length, the data's own last; NULL: samples have one length */
    int variant_count;
    int64_t *numbers, *places;       /* of the samples of one length in a block */
    float *predicted[BWI_MAX_HEADS]; /* theirs, on the host */
    bwi_exec *exec;
    int program[3];                  /* number in the plan of each BWI_PROGRAM; -1: not planned */
    double window_count;             /* what the window's gradient sum is to be divided by: its samples, or its unmasked entries */
    double *totals_block;            /* holds the columns' totals */
    unsigned compiles;               /* the training's when this was opened */
    bool rates;                      /* the learning rate is logged */
    bool penalized;                  /* a variable has a regularizer */
    bool moderate;                   /* weights and slots were far from a float's limits when this was opened */
    bool summed;                     /* all losses are sums: gradients are not divided */
    bool balanced;                   /* losses that are divided by something else than samples have that in their nodes */
    bool by_batches;                 /* a loss of the whole data is not the mean of its batches' */
    double fed, penalty;             /* of the last feed: samples, and what regularizers add to its loss */
    double fed_total, penalty_total; /* since bwi_session_reset; penalties times samples */
} bwi_session;

enum { BWI_MOST_TRACED = 1000 };

typedef struct bwi_session_options {
    bool train, evaluate, predict;
    bool losses;    /* with predict and evaluate: the predictions are those of the outputs, then each sample's losses */
    bool adapt;     /* sums that Normalization layers are fitted by (adapt.c), in the place of all of these */
    bool adapt_all; /* also those whose values are a file's or the user's */
    int64_t batch;  /* 0: not known */
    int64_t tile;
    int lanes;
    size_t memory;
    const char *spill;            /* as in bw_fit_options */
    const bw_dataset *validation; /* besides the session's own; NULL: none */
    int epochs;                   /* of the history that the caller keeps besides: it is in the plan; 0: none */
    bool rates;                   /* that has the learning rate too */
    bool trace;                   /* the history has a trace of at most BWI_MOST_TRACED steps */
    bool noise;                   /* the history has the gradient noise scale */
    bool copies;                  /* the caller makes a copy of all variables */
    bool saves;                   /* the caller saves the model while the session is open */
    uint64_t seed;
    const float *class_weight; /* borrowed while the session is opened */
    int class_count;           /* 0: none */
} bwi_session_options;

/* The graph and the plan of a session, which the caller frees: no arena, no optimizer slots; the model's variables need no
 * storage. */
bw_status bwi_session_plan(bwi_session *session, bw_model *model, bw_dataset *dataset, const bwi_session_options *options,
                           bwi_plan **plan);
void bwi_session_close(bwi_session *session);
size_t bwi_session_parameter_bytes(const bwi_session *session); /* as stored */
/* The memory of a history of that many epochs and of the present epoch's values; with those of a validation, if there is one. */
size_t bwi_session_history_bytes(const bwi_session *session, bool validates, int epochs);

/* ---- Histories, for what is told about them (profile.c) ---- */

bw_context *bwi_history_context(const bw_history *history);
/* Counters at the end of traced steps. */
int bwi_history_marks(const bw_history *history);
void bwi_history_mark(const bw_history *history, int index, double *seconds, double *loss, size_t *bytes);

#endif
