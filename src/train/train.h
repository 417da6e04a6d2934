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

enum { BWI_MAX_OPTIONS = 8, BWI_MAX_METRICS = 16, BWI_MAX_COLUMNS = BWI_MAX_HEADS + BWI_MAX_METRICS };

/* ---- Heads: the losses and metrics of a model's outputs (heads/) ---- */

/* An output of the model, together with the target and the weight that the data has for it. */
typedef struct bwi_head bwi_head;

typedef struct bwi_loss_row bwi_loss_row;
struct bwi_loss_row {
    const char *names; /* separated by blanks; Keras's name comes first */
    const bwi_argument *arguments;
    int argument_count;
    bw_dtype target;    /* BW_I32 for class numbers */
    bool classes;       /* the targets are classes, so accuracy is the default metric */
    bwi_loss_kind kind; /* for a crossentropy: the formula for probabilities that come from neither softmax nor sigmoid */
    /* Builds a node with one number per sample. */
    bw_node *(*build)(const bwi_loss_row *row, const bwi_head *head, const bwi_argument_value *values);
};

const bwi_loss_row *bwi_loss_row_find(const char *name, size_t length);

typedef struct bwi_metric_row {
    const char *names;
    const bwi_argument *arguments;
    int argument_count;
    bw_node *(*build)(const bwi_head *head, const bwi_argument_value *values); /* returns a SUMS node */
    double (*value)(const bw_node *node, const double *sums, int index);
    int (*width)(const bw_node *node); /* how many values it has, each a column of its own; NULL: one */
} bwi_metric_row;

extern const bwi_metric_row bwi_metric_rows[]; /* accuracy comes first; ends with NULL names */

/* How the numbers of a batch become its loss. Keras has two words for the mean, which divides by the entries that are not masked;
 * WEIGHTED divides by the sum of the weights. */
typedef enum bwi_reduction { BWI_LOSS_MEAN, BWI_LOSS_SAME_MEAN, BWI_LOSS_SUM, BWI_LOSS_WEIGHTED, BWI_REDUCTIONS } bwi_reduction;

extern const char *const bwi_reduction_names[BWI_REDUCTIONS];

/* A loss or metric as the user wrote it: its row, its options, and the name of its output ("" if none was written). */
typedef struct bwi_chosen_loss {
    const bwi_loss_row *row; /* NULL: "none", so the output is not trained */
    bwi_argument_value values[BWI_MAX_OPTIONS];
    double weight; /* in the sum of all losses */
    bwi_reduction reduction;
    char output[64];
} bwi_chosen_loss;

/* Returns the loss that was chosen for an output, by the output's name or by its index; NULL if none was. */
const bwi_chosen_loss *bwi_loss_of(const bw_model *model, int output);

typedef struct bwi_chosen_metric {
    const bwi_metric_row *row; /* NULL: the metric is a loss */
    const bwi_loss_row *loss;
    bwi_argument_value values[BWI_MAX_OPTIONS];
    bool weighted; /* by sample and class weights */
    char name[48], output[64];
} bwi_chosen_metric;

/* Whether `word` is one of those in `list`, which are separated by blanks. */
bool bwi_listed(const char *list, const char *word, size_t length);
/* Finds the logits that feed a final softmax, as Keras does; NULL if there are none. */
bw_node *bwi_logits_of(bw_node *prediction);

/* ---- Schedules of the learning rate (schedule.c) ---- */

typedef struct bwi_schedule bwi_schedule;

typedef struct bwi_schedule_row {
    const char *name;       /* in expressions: "exponential_decay" */
    const char *class_name; /* Keras's: "ExponentialDecay" */
    const bwi_argument *arguments;
    int argument_count;
    float (*rate)(const bwi_schedule *schedule, float step); /* counts steps from 0 */
} bwi_schedule_row;

extern const bwi_schedule_row bwi_schedule_rows[]; /* ends with a NULL name */

enum { BWI_MAX_PIECES = 64 };

struct bwi_schedule {
    const bwi_schedule_row *row; /* NULL: the rate is a number */
    bwi_argument_value values[BWI_MAX_OPTIONS];
    /* For PiecewiseConstantDecay: the rate is rates[k] up to boundaries[k], and the last of the rates after all boundaries. */
    int boundary_count;
    double boundaries[BWI_MAX_PIECES], rates[BWI_MAX_PIECES + 1];
};

/* ---- Optimizers (optimizer.c, optimizers/) ---- */

/* The arguments that all optimizers have, in Keras's order; the first of them is argument `common` of the row. */
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

enum { BWI_MAX_SLOTS = BWI_RULE_SLOTS + 1 }; /* the slots of a rule, and the average */

typedef struct bwi_optimizer bwi_optimizer;

typedef struct bwi_optimizer_row {
    const char *name, *class_name; /* as in expressions, and as in Keras */
    const bwi_argument *arguments; /* the first is the learning rate: a number or a schedule */
    int argument_count;
    int decay, common;  /* the numbers of weight_decay and of the first common argument */
    int paired;         /* this many slots, from the first on, lie side by side for each variable in Keras's files */
    bool keeps_product; /* Nadam's product of momentums is part of its state */
    const char *slot_names[BWI_MAX_SLOTS]; /* of a trained variable; all NULL: there are none, or `slots` tells */
    /* Returns how many slots a trained variable has, and gives their names; NULL unless they depend on the arguments. */
    int (*slots)(const bwi_optimizer *optimizer, const char *names[BWI_MAX_SLOTS]);
    float (*start)(const bwi_optimizer *optimizer, int slot); /* the value that a slot begins with; NULL: 0 */
    /* The shape of a slot of a variable; ndim -1: there is none. NULL: every slot is stored like its variable. */
    bwi_shape (*slot_shape)(const bwi_optimizer *optimizer, const bwi_variable *variable, int slot);
    bool trusts; /* the ratio of two norms of each variable is part of its step (Lamb) */
    /* Whether a variable is updated as a whole: its copy in Keras's order, from the gradient g, with the slots likewise, and with
     * whole_scratch floats more (NULL: none). NULL: none is. */
    bool (*is_whole)(const bwi_optimizer *optimizer, const bwi_variable *variable);
    int64_t (*whole_scratch)(const bwi_kernels *kernels, const bwi_variable *variable);
    void (*whole)(const bwi_optimizer *optimizer, const bwi_extents *extents, float *g, float *const *slots, float *w,
                  float *scratch);
    /* Called once per update, after the reduction: sets the rule of the step and its constants, from `rate` and `iterations`. */
    void (*begin)(bwi_optimizer *optimizer);
} bwi_optimizer_row;

extern const bwi_optimizer_row *const bwi_optimizer_rows[]; /* ends with NULL */

/* A slot is stored like its variable, which is the model's, or one that has the slot's shape. */
typedef struct bwi_slot {
    const bwi_variable *variable;
    void *data;                   /* in the optimizer's arena; NULL: the variable has no such slot */
    int64_t first, count;         /* the values that this rank has: all, unless slots are divided */
    struct bwi_training *divided; /* NULL: they are not */
} bwi_slot;

struct bwi_optimizer {
    const bwi_optimizer_row *row;
    bwi_argument_value values[BWI_MAX_ARGUMENTS];
    bwi_schedule schedule;
    /* 0 stands for none. At most one of the clips is set. */
    float weight_decay, clipnorm, clipvalue, global_clipnorm;
    bool averages; /* Keras's use_ema */
    float average_momentum;
    int64_t overwrite_every; /* weights become their averages once per this many updates; 0: never during training */

    int64_t iterations;     /* updates so far */
    float learning_rate;    /* used unless there is a schedule */
    float momentum_product; /* of Nadam */
    struct {
        int64_t t; /* 0: unknown */
        double first, second;
    } powers; /* Adam's betas to the power t, from the last update */

    /* The present update. */
    double rate;
    bwi_step step;
    float whole_decay; /* that of variables which are updated as a whole */

    int slot_count; /* those of the row; the average follows them */
    const char *slot_names[BWI_MAX_SLOTS];
    const bwi_kernels *kernels; /* the slots are in their memory */
    void *arena;                /* holds all slots; NULL: there are none */
    size_t arena_bytes;
    bwi_slot *slots;       /* [variable][BWI_MAX_SLOTS]; NULL until the first training */
    float *clips;          /* [variable]: the factor that clipping by norms applies to its gradient */
    float *trusts;         /* [variable]: Lamb's ratio of norms */
    bwi_variable *shadows; /* [variable][BWI_RULE_SLOTS]: slots that have another shape than their variable; NULL: there are none */
    /* While ranks have divided the slots (portion.c): where the ranks' portions of a variable begin; who lends the memory in which
     * a whole slot is shown; and what kept a slot from being gathered. */
    size_t *begins; /* NULL: they have not */
    const bwi_exec *lender;
    bw_status gathered;
};

/* ---- What train keeps with a model ---- */

typedef struct bwi_training {
    bw_context *ctx;
    bw_model *model;
    bool compiled;
    unsigned unread;   /* the BWI_PART_... of a file's configuration that are not supported and have not been given since */
    bw_status refused; /* the status of the last compile */
    char refusal[256]; /* its message, if it failed */
    unsigned compiles; /* compilations so far; a session belongs to one of them */
    bwi_optimizer optimizer;
    bwi_chosen_loss losses[BWI_MAX_HEADS];
    int loss_count;                           /* 0: the data decides */
    const bwi_loss_row *found[BWI_MAX_HEADS]; /* what the data last decided on, for each output that was given no loss */
    bwi_chosen_metric metrics[BWI_MAX_METRICS];
    int metric_count; /* -1: the loss decides */
    bw_dataset *data; /* the recipe of the data that the model was last trained on; NULL: none */
} bwi_training;

/* The parts that a model is compiled with. */
enum { BWI_PART_OPTIMIZER = 1, BWI_PART_LOSS = 2, BWI_PART_METRICS = 4, BWI_PART_ALL = 7 };

/* Notes that these parts of the model's file are not supported. They get defaults, but training and evaluation are refused with the
 * message until the user gives others. */
void bwi_training_leave_out(bwi_training *training, unsigned parts, bw_status status, const char *message);
/* Returns the model's training part, which is made (with Adam) if there is none yet; NULL if memory ran out. */
bwi_training *bwi_training_of(bw_model *model);
/* Does what bw_compile does, for calls from within the library. */
bw_status bwi_model_compile(bw_model *model, const char *optimizer, const char *loss, const char *metrics);
/* Takes the recipe (NULL: none), which replaces the previous one. */
void bwi_training_set_data(bwi_training *training, bw_dataset *recipe);
/* Makes the slots, if there are none. UNAVAILABLE if they are divided over ranks: only bw_fit can use them then. */
bw_status bwi_optimizer_open_slots(bwi_training *training);
size_t bwi_optimizer_bytes(const bwi_training *training);
/* The bytes that slots take on any rank, if ranks divide them (portion.c). */
size_t bwi_portion_slot_bytes(const bwi_training *training, int ranks);
/* Lists an optimizer's variables in Keras's order. */
void bwi_optimizer_state(bwi_training *training, bwi_state *state);

/* ---- Ranks (ranks.c) ---- */

/* All ranks enter a call, or none does: returns this rank's status, or that of one that failed. */
bw_status bwi_ranks_enter(bw_context *ctx, bw_status status);
/* Rank 0's numbers replace those of all. */
bw_status bwi_ranks_take_first(bw_context *ctx, double *numbers, int count);

/* ---- Sessions: a model with its heads, and a running plan ---- */

/* A column of the history: sums over the batch, and the function that turns them into its value. */
enum { BWI_COLUMN_NAME = 128 };

typedef struct bwi_logged {
    char name[BWI_COLUMN_NAME];
    bw_node *node;
    double (*value)(const bw_node *node, const double *sums, int index);
    int index;      /* which of the metric's values */
    bool loss;      /* one of the losses whose weighted sum is the first column */
    bool hidden;    /* it is only part of that sum: a penalty on values */
    double weight;  /* its weight in that sum */
    double summed;  /* for a loss that is a sum over the batch: the factor of that sum; 0: the loss is a mean */
    double *totals; /* sums over the feeds since bwi_session_reset */
    double *fed;    /* sums of the last feed if it was made length by length; NULL: exec has them */
} bwi_logged;

typedef struct bwi_variant bwi_variant;

typedef struct bwi_session {
    bwi_training *training;
    bwi_graph graph; /* copies of the model's nodes, and the heads; the variables are the model's */
    bw_node *outputs[BWI_MAX_HEADS], *losses[BWI_MAX_HEADS + 1];
    int output_count, loss_count;
    bwi_logged columns[BWI_MAX_COLUMNS]; /* one for each loss, then metrics */
    int column_count;
    int own_nodes;         /* the graph's first nodes; the others are the model again, at shorter lengths */
    bwi_variant *variants; /* one for each length, the longest last; NULL: all samples have one length */
    int variant_count;
    int64_t *numbers, *indices;      /* of the samples of one length in a block */
    float *predicted[BWI_MAX_HEADS]; /* their predictions, on the host */
    bwi_exec *exec;
    int program[3];                  /* the number in the plan of each BWI_PROGRAM; -1: not planned */
    double window_count;             /* divides the window's gradient sum: the number of its samples, or of its unmasked entries */
    float *whole;                    /* bwi_whole_bytes; NULL: none are needed */
    double *totals_block;            /* holds the columns' totals */
    unsigned compiles;               /* the training's count when this session was opened */
    bool rates;                      /* the learning rate is logged */
    bool noise;                      /* the noise scale is logged */
    bool penalized;                  /* a variable has a regularizer */
    bwi_sink sink;                   /* the optimizer's; made once, since a copy waits for what has just been stored */
    bool moderate;                   /* weights and slots were far from a float's limits when this session was opened */
    bool summed;                     /* all losses are sums, so gradients are not divided */
    bool balanced;                   /* losses that are not divided by the number of samples have their divisor in their nodes */
    bool by_batches;                 /* the loss of the whole data is not the mean over its batches */
    double fed, penalty;             /* of the last feed: its samples, and what regularizers add to its loss */
    double fed_total, penalty_total; /* sums since bwi_session_reset; each penalty is multiplied by its samples */
} bwi_session;

enum { BWI_MOST_TRACED = 1000, BWI_BRIEFLY_TRACED = 4 };

typedef struct bwi_session_options {
    bool train, evaluate, predict;
    bool losses;    /* with predict and evaluate: the predictions are the outputs, then the losses of each sample */
    bool adapt;     /* instead of all these: the sums to which Normalization layers are fitted (adapt.c) */
    bool adapt_all; /* also layers whose values came from a file or from the user */
    int64_t batch;  /* 0: not known */
    int64_t tile;
    int lanes;
    size_t memory;
    const char *spill;            /* as in bw_fit_options */
    const bw_dataset *validation; /* besides the session's own; NULL: none */
    int epochs;                   /* of the history that the caller keeps, which the plan counts; 0: none */
    bool rates;                   /* the history has the learning rate, too */
    int traced;                   /* steps, at most BWI_MOST_TRACED, of which the history has a trace */
    size_t program_bytes;         /* as in bw_fit_options */
    bool noise;                   /* the history has the gradient noise scale */
    bool copies;                  /* the caller makes a copy of all variables */
    bool saves;                   /* the caller saves the model while the session is open or afterwards */
    const bw_dataset *recipe;     /* that is saved with it */
    bool shows_gradients;         /* the caller copies the gradient of one variable at a time */
    bool checkpoints;             /* the caller copies the state of the run to write it */
    bool divisible;               /* ranks may divide the optimizer's slots, which the caller makes whole again */
    bool divides;                 /* and do so */
    uint64_t seed;
    const float *class_weight; /* borrowed until the session is open */
    int class_count;           /* 0: none */
} bwi_session_options;

/* Makes the graph of a session and its plan, which the caller frees. It allocates neither an arena nor optimizer slots, and the
 * model's variables need no storage. */
bw_status bwi_session_plan(bwi_session *session, bw_model *model, bw_dataset *dataset, const bwi_session_options *options,
                           bwi_plan **plan);
void bwi_session_close(bwi_session *session);
size_t bwi_session_parameter_bytes(const bwi_session *session); /* in the layout in which they are stored */
/* The memory of a history of that many epochs and of the present epoch's values, with those of validation if `validates`. */
size_t bwi_session_history_bytes(const bwi_session *session, bool validates, int epochs);

/* ---- Runs that are made to learn about a model ---- */

/* Do what bw_fit, bw_evaluate and bw_set_learning_rate do, for calls from within the library. */
bw_status bwi_model_fit(bw_model *model, bw_dataset *dataset, const bw_fit_options *options, bw_history **history);
bw_status bwi_model_evaluate(bw_model *model, bw_dataset *dataset, bw_history **result);
bw_status bwi_training_set_rate(bw_model *model, double rate);
bool bwi_history_is_nonfinite(const bw_history *history); /* NaN or infinity ended the training; NULL: false */
/* The learning rate of the next update. */
double bwi_optimizer_rate(const bwi_optimizer *optimizer);
/* Builds the model for the dataset's first input, unless it is built. */
bw_status bwi_model_build_for(bw_model *model, const bw_dataset *dataset, uint64_t seed);
/* Fails if the model or the dataset is missing; the message begins with `what` (run.c). */
bw_status bwi_run_begin(bw_context *ctx, const char *what, const bw_model *model, const bw_dataset *dataset);
/* The context of the model or, without a model, of the dataset; NULL if both are missing. */
/* front.c: puts a stage on the dataset that turns what the model's layers for text and categories take into numbers (NULL: there is
 * none to put on), which the caller frees; `prepare` fits the layers that have nothing yet first. */
bw_status bwi_front_data(bw_model *model, bw_dataset *dataset, bw_dataset **made);
bw_status bwi_front_prepare(bw_model *model, bw_dataset *dataset, bw_dataset **made);
/* Which of these layers are not fitted, as bits; and back to that. */
uint64_t bwi_front_missing(const bw_model *model);
void bwi_front_forget(bw_model *model, uint64_t missing);
bw_context *bwi_run_context(const bw_model *model, const bw_dataset *dataset);

/* What training changes in a built model (snapshot.c). Rewinding brings everything back except what was fitted to the data since,
 * so that it need not be fitted again; restoring brings back that, too, and ends the snapshot's use. */
typedef struct bwi_snapshot bwi_snapshot;
bw_status bwi_snapshot_take(bw_model *model, bwi_snapshot **snapshot);
void bwi_snapshot_rewind(const bwi_snapshot *snapshot);
void bwi_snapshot_restore(bwi_snapshot *snapshot);
void bwi_snapshot_free(bwi_snapshot *snapshot); /* NULL is fine */

/* The share of the squared norm of a batch's gradient that is signal, |g|^2 / (|g|^2 + S / batch), over a part of the run, from one
 * share of its measurements to another (noise.c). Its denominator is never zero, so that it is known also where noise drowns the
 * signal. */
bw_estimate bwi_history_signal_share(const bw_history *history, double from, double to, bool seen, double batch);

/* ---- Who looks on while bw_fit trains (fit.c): TensorBoard, which is insight's ---- */

/* The training part, and what bw_fit was asked for. */
typedef struct bwi_observed {
    bw_model *model;
    bw_dataset *training;
    const bw_fit_options *options;
    bw_history *history;
    int64_t batch;
} bwi_observed;

typedef struct bwi_observer_calls {
    bw_status (*begin)(bw_tensorboard *board, const bwi_observed *run);
    /* Whether the gradients of this epoch's first update are wanted; if so, each is given: a sum over the window in Keras's order
     * on the host, which `divisor` makes the mean. `staging` gives memory for the largest; NULL: there is none. */
    void *(*staging)(bw_tensorboard *board, int epoch, int64_t floats);
    void (*gradient)(bw_tensorboard *board, const bwi_variable *variable, const void *sum, int64_t count, double divisor,
                     int epoch);
    int64_t (*every)(const bw_tensorboard *board); /* updates from one call of `step` to the next; 0: none */
    void (*step)(bw_tensorboard *board, const bw_progress *progress);
    void (*epoch)(bw_tensorboard *board, const bw_progress *progress);
    void (*end)(bw_tensorboard *board, bw_status status);
} bwi_observer_calls;

struct bw_tensorboard {
    bwi_owned owned;
    const bwi_observer_calls *calls;
};

/* ---- What other modules read from a history (profile.c) ---- */

bw_context *bwi_history_context(const bw_history *history);
bw_status bwi_history_refresh(bw_history *history); /* brings facts and profile of a training that runs up to date */
/* What workers share of the steps, and of one part: nothing, tiles, or blocks of weights and panels of layers, which are many. Only
 * of a profile that has parts. */
typedef enum bwi_way { BWI_WAY_ALONE, BWI_WAY_TILES, BWI_WAY_BLOCKS } bwi_way;
const bwi_sharing *bwi_history_sharing(const bw_history *history);
bwi_way bwi_history_way(const bw_history *history, int part);
bw_part bwi_history_part(const bw_history *history, int part);
/* Seconds of overhead within the shares of the tiles, which more workers share too; of all workers. */
double bwi_history_within(const bw_history *history);
/* The counters that were recorded at the end of each traced step. */
int bwi_history_marks(const bw_history *history);
void bwi_history_mark(const bw_history *history, int index, double *seconds, double *loss, size_t *bytes);

#endif
