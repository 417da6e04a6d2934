/*
 * train: losses, metrics and optimizers (rows of tables, Keras's names, defaults and formulas), compile, fit, evaluate,
 * predict, and gradients for loops of one's own.
 */
#ifndef BWI_TRAIN_H
#define BWI_TRAIN_H

#include "exec/exec.h"
#include "layer/layer.h"

/* ---- Losses and metrics ---- */

/* Nodes a loss or metric is made from. */
typedef struct bwi_heads {
    bwi_graph *graph;
    bw_node *prediction; /* the model's output */
    bw_node *target;
    bw_node *weight; /* NULL: none */
    bool classes;    /* the loss is of classes */
} bwi_heads;

/* The target as float32 or as class numbers: losses and metrics may differ in what they want. */
bw_node *bwi_heads_target(const bwi_heads *heads, bw_dtype dtype);

enum { BWI_MAX_OPTIONS = 6, BWI_MAX_METRICS = 16 };

typedef struct bwi_loss_row bwi_loss_row;
struct bwi_loss_row {
    const char *names; /* separated by blanks; the first is Keras's */
    const bwi_argument *arguments;
    int argument_count;
    bw_dtype target;    /* BW_I32: class numbers */
    bool classes;       /* accuracy goes with it */
    bwi_loss_kind kind; /* of crossentropies: for probabilities that no softmax or sigmoid gave */
    /* One number a sample. */
    bw_node *(*build)(const bwi_loss_row *row, const bwi_heads *heads, const bwi_argument_value *values);
};

extern const bwi_loss_row bwi_loss_rows[]; /* ends with NULL names */
const bwi_loss_row *bwi_loss_row_find(const char *name, size_t length);

typedef struct bwi_metric_row {
    const char *names;
    const bwi_argument *arguments;
    int argument_count;
    bw_node *(*build)(const bwi_heads *heads, const bwi_argument_value *values); /* a SUMS node */
    double (*value)(const bw_node *node, const double *sums);
} bwi_metric_row;

extern const bwi_metric_row bwi_metric_rows[]; /* accuracy comes first; ends with NULL names */
/* Any loss is a metric too: a SUMS node whose value is bwi_metric_mean, sums[0] / sums[1]. */
bw_node *bwi_metric_of_loss(const bwi_loss_row *row, const bwi_heads *heads, const bwi_argument_value *values);
double bwi_metric_mean(const bw_node *node, const double *sums);

/* A loss or metric as the user wrote it: its row, options, and the output it is for ("": the only one). */
typedef struct bwi_chosen_loss {
    const bwi_loss_row *row;
    bwi_argument_value values[BWI_MAX_OPTIONS];
    char output[64];
} bwi_chosen_loss;

typedef struct bwi_chosen_metric {
    const bwi_metric_row *row; /* NULL: a loss */
    const bwi_loss_row *loss;
    bwi_argument_value values[BWI_MAX_OPTIONS];
    bool weighted; /* by sample and class weights */
    char name[48], output[64];
} bwi_chosen_metric;

/* The logits that feed a final softmax (sigmoid), or NULL: Keras traces them too. */
bw_node *bwi_logits_of(bw_node *prediction);
bw_node *bwi_binary_logits_of(bw_node *prediction);

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
    /* PiecewiseConstantDecay: rates[k] up to boundaries[k], the last one behind all. */
    int boundary_count;
    double boundaries[BWI_MAX_PIECES], rates[BWI_MAX_PIECES + 1];
};

bw_status bwi_schedule_read(bw_context *ctx, bwi_schedule *schedule, const char *what, const bwi_term *term);

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
    int paired;         /* the first so many slots lie side by side for each variable in Keras's files */
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
    const bwi_kernels *kernels;
    double rate;
    bwi_step step;

    int slot_count; /* the row's own; the average follows them */
    const char *slot_names[BWI_MAX_SLOTS];
    void *arena; /* of all slots; NULL: none */
    size_t arena_bytes;
    bwi_slot *slots; /* [variable][BWI_MAX_SLOTS]; NULL until the first training */
    float *clips;    /* [variable]: what clipping by norms leaves */
};

/* Reads "adam(lr=0.01)"; the optimizer begins anew. */
bw_status bwi_optimizer_read(bw_context *ctx, bwi_optimizer *optimizer, const char *text);
/* The rate of the next update. */
double bwi_optimizer_rate(const bwi_optimizer *optimizer);

/* ---- What train keeps with a model ---- */

typedef struct bwi_training {
    bw_context *ctx;
    bw_model *model;
    bool compiled;
    unsigned compiles; /* so far: a session belongs to one of them */
    bwi_optimizer optimizer;
    bwi_chosen_loss losses[BWI_MAX_HEADS];
    int loss_count;                           /* 0: from the data */
    const bwi_loss_row *found[BWI_MAX_HEADS]; /* what the data last chose for each output that has no other */
    bwi_chosen_metric metrics[BWI_MAX_METRICS];
    int metric_count; /* -1: from the loss */
    bw_dataset *data; /* the recipe of the data that the model was last trained on; NULL: none */
} bwi_training;

/* The model's training part, made (with Adam) if it is not there yet; NULL: no memory. */
bwi_training *bwi_training_of(bw_model *model);
/* Takes the recipe (NULL: none) in place of the one before. */
void bwi_training_set_data(bwi_training *training, bw_dataset *recipe);
/* Variables, optimizer slots and counters as named values. */
void bwi_training_state(bw_model *model, bwi_state *state);
bw_status bwi_optimizer_open_slots(bwi_training *training);
void bwi_optimizer_free_slots(bwi_training *training);
size_t bwi_optimizer_bytes(const bwi_training *training);
/* In Keras's order of an optimizer's variables. */
void bwi_optimizer_state(bwi_training *training, bwi_state *state);

/* ---- Sessions: a model, the ends that data gives it, and a running plan ---- */

enum { BWI_PROGRAM_TRAIN, BWI_PROGRAM_EVALUATE, BWI_PROGRAM_PREDICT };

/* A column of the history: sums over the batch and what they mean. */
enum { BWI_COLUMN_NAME = 128 };

typedef struct bwi_logged {
    char name[BWI_COLUMN_NAME];
    bw_node *node;
    double (*value)(const bw_node *node, const double *sums);
    bool loss;      /* one of the losses whose sum is the first column */
    double *totals; /* over the feeds since bwi_session_reset */
    double *fed;    /* of the last feed, where that is one for each length; NULL: exec has them */
} bwi_logged;

enum { BWI_MAX_COLUMNS = BWI_MAX_HEADS + BWI_MAX_METRICS };

/* The model at one length of its sequences (lengths.c): its ends and its programs in the plan. */
typedef struct bwi_variant {
    bw_node *outputs[BWI_MAX_HEADS], *losses[BWI_MAX_HEADS], *columns[BWI_MAX_COLUMNS];
    int program[3];
} bwi_variant;

typedef struct bwi_session {
    bwi_training *training;
    bwi_graph graph; /* the model's nodes again, and the ends; variables are the model's */
    bw_node *outputs[BWI_MAX_HEADS], *losses[BWI_MAX_HEADS];
    int output_count, loss_count;
    bwi_logged columns[BWI_MAX_COLUMNS]; /* losses, one for each, then metrics */
    int column_count;
    int own_nodes;         /* of the graph: the others are the model again, at shorter lengths */
    bwi_variant *variants; /* by length, the data's own last; NULL: samples have one length */
    int variant_count;
    int64_t *numbers, *places;       /* of the samples of one length in a block */
    float *predicted[BWI_MAX_HEADS]; /* theirs */
    bwi_exec *exec;
    int program[3];                  /* number in the plan of each BWI_PROGRAM; -1: not planned */
    double window_count;             /* what the window's gradient sum is to be divided by: its samples, or its unmasked entries */
    double *totals_block;            /* behind the columns' totals */
    unsigned compiles;               /* the training's when this was opened */
    bool rates;                      /* the learning rate is logged */
    bool penalized;                  /* a variable has a regularizer */
    double fed, penalty;             /* of the last feed: samples, and what regularizers add to its loss */
    double fed_total, penalty_total; /* since bwi_session_reset; penalties times samples */
} bwi_session;

typedef struct bwi_session_options {
    bool train, evaluate, predict;
    int64_t batch; /* 0: not known */
    int64_t tile;
    int lanes;
    size_t memory;
    const char *spill;            /* as in bw_fit_options */
    const bw_dataset *validation; /* besides the session's own; NULL: none */
    int epochs;                   /* of the history that the caller keeps besides: it is in the plan; 0: none */
    bool rates;                   /* that has the learning rate too */
    bool copies;                  /* the caller makes a copy of all variables */
    uint64_t seed;
    const float *class_weight; /* borrowed while the session is opened */
    int class_count;           /* 0: none */
} bwi_session_options;

bw_status bwi_session_open(bwi_session *session, bw_model *model, bw_dataset *dataset, const bwi_session_options *options);
/* The graph and the plan of such a session, which the caller frees: no arena, no optimizer slots; the model's variables need no
 * storage. */
bw_status bwi_session_plan(bwi_session *session, bw_model *model, bw_dataset *dataset, const bwi_session_options *options,
                           bwi_plan **plan);
size_t bwi_session_parameter_bytes(const bwi_session *session); /* as stored */
void bwi_session_close(bwi_session *session);
/* Within the module: the dataset's field for an input node, by name or the only one of its role (-1: none); targets, weights,
 * losses and metrics. */
int bwi_session_field(const bw_dataset *dataset, const bwi_input_attributes *a);
bw_status bwi_session_add_heads(bwi_session *session, const bw_dataset *dataset, const bwi_session_options *options);
/* lengths.c: the same for each length of the data's sequences. */
bw_status bwi_session_add_lengths(bwi_session *session, const bw_dataset *dataset, const bwi_session_options *options);
void bwi_session_free_lengths(bwi_session *session);
bw_status bwi_session_feed_lengths(bwi_session *session, int which, const bwi_piece *piece, float *const *predictions);
/* bwi_exec_feed, and the window's count. `which` is one of BWI_PROGRAM. */
bw_status bwi_session_feed(bwi_session *session, int which, const bwi_piece *piece, float *const *predictions);
void bwi_session_clear(bwi_session *session); /* the window */
void bwi_session_reset(bwi_session *session); /* totals */
void bwi_session_count(bwi_session *session); /* adds the last feed's sums to the totals */
/* The history's values: "loss" (the sum of all), then, with several losses, each; then metrics. */
int bwi_session_values(const bwi_session *session);
const char *bwi_session_value_name(const bwi_session *session, int index);
double bwi_session_value(const bwi_session *session, int index);
/* apply.c: reduces, checks, clips, updates the model, counts the iteration. After a failure all is as before. */
bw_status bwi_session_apply(bwi_session *session);
/* The constants of an update whose gradient sums are multiplied by `scale`; then, one part of a variable through all of it. */
void bwi_optimizer_begin(bwi_optimizer *optimizer, float scale);
void bwi_optimizer_update(void *optimizer, const bwi_variable *variable, int64_t first, int64_t count, const float *gradient);
/* Averages become weights (use_ema, once there was an update). */
void bwi_training_finalize(bwi_training *training);

/* A program may be older than the library: what its options lack keeps the default. NULL: all defaults. */
bw_status bwi_fit_options_read(bw_context *ctx, bw_fit_options *to, const bw_fit_options *from);

/* ---- History and progress ---- */

enum { BWI_MAX_VALUES = 2 * (BWI_MAX_COLUMNS + 1) + 1 };

struct bw_history {
    bwi_owned owned;
    bw_context *ctx;
    char names[BWI_MAX_VALUES][BWI_COLUMN_NAME + 8];
    int columns, epochs;
    int width;      /* the most columns there can be */
    double *values; /* [epoch][width] */
    bw_run_facts facts;
};

/* Of so many epochs and columns; pages of a long one are taken as epochs are written. */
bw_history *bwi_history_new(bw_context *ctx, int capacity, int width);
size_t bwi_history_bytes(int capacity, int width); /* that bwi_history_new allocates */
int bwi_history_add_column(bw_history *history, const char *prefix, const char *name);

/* What the history of so many epochs, and the values of the present one, take: with those of a validation, if there is one, and of
 * the learning rate, if it is logged. */
int bwi_session_columns(const bwi_session *s, bool validates);
size_t bwi_session_history_bytes(const bwi_session *s, bool validates, int epochs);

/* What a run takes of memory, measured (measure.c). */
typedef struct bwi_measure {
    size_t resident, files, allocated; /* just before the plan was made */
    size_t held;                       /* of them, variables and slots: they are in the plan */
    size_t code, swapped;
    int64_t faults;
} bwi_measure;

size_t bwi_held_bytes(const bw_model *model);                   /* of its variables and slots */
void bwi_measure_begin(bwi_measure *measure, bw_model *model);  /* workers have been started */
void bwi_measure_opened(bwi_measure *measure, bw_context *ctx); /* the session is open, nothing has run */
void bwi_measure_end(const bwi_measure *measure, bw_context *ctx, bw_run_facts *facts);

/* Early stopping and plateaus: what fit's options ask for, and what they have seen. */
typedef struct bwi_watch {
    bw_model *model;
    bool stops, reduces, kept;
    bwi_argument_value stop[8], rate[8];
    double best, rate_best;
    int64_t wait, rate_wait, cooldown;
    int best_epoch;
    void *weights; /* an arena: those of the best epoch, as stored; NULL: not to be restored */
    size_t weights_bytes;
} bwi_watch;

/* Whether bwi_watch_open makes a copy of all variables: the best weights. */
bool bwi_watch_restores(bw_context *ctx, const bw_fit_options *options);
bw_status bwi_watch_open(bwi_watch *watch, bw_model *model, const bw_fit_options *options, const bw_history *history);
void bwi_watch_close(bwi_watch *watch);
bool bwi_watch_epoch(bwi_watch *watch, const bw_history *history, int epoch); /* true: stop */
bool bwi_watch_end(bwi_watch *watch); /* restores the best weights if asked; true: the variables changed */

/* Draws Keras's progress. */
typedef struct bwi_painter {
    FILE *file; /* NULL: silent */
    bool terminal;
    double begin, drawn;
} bwi_painter;

void bwi_painter_epoch(bwi_painter *painter, const bw_progress *progress);
void bwi_painter_step(bwi_painter *painter, const bw_progress *progress);
void bwi_painter_end(bwi_painter *painter, const bw_progress *progress);

/* Is the word one of those listed, separated by blanks? */
bool bwi_listed(const char *list, const char *word, size_t length);

#endif
