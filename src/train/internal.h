/*
 * What the files of train share and no other module uses: heads, the updates of optimizers, sessions that run, history and
 * progress.
 */
#ifndef BWI_TRAIN_INTERNAL_H
#define BWI_TRAIN_INTERNAL_H

#include "train/train.h"

/* ---- The data's fields (fields.c) ---- */

int64_t bwi_field_values(const bwi_field *field); /* numbers per sample */
/* Finds the dataset's field for an input node, by its name or as the only one of its role; -1 if there is none. */
int bwi_fields_find(const bw_dataset *dataset, const bwi_input_attributes *input);
/* Finds the first input, whose shape a model that has none takes. INVALID_ARGUMENT: the data has no input. */
bw_status bwi_fields_input(bw_context *ctx, const bw_dataset *dataset, const bwi_field **input);
/* Writes "target", or "target NAME". */
const char *bwi_role_describe(char text[96], bwi_role role, const char *name);
/* Compares a field with the one that must be in its place (NULL: there is none): the role, the name and the count of numbers per
 * sample must agree. Messages begin with `what`, and name `like`, which has the expected field. */
bw_status bwi_field_check(bw_context *ctx, const bwi_field *expected, const bwi_field *found, const char *what, const char *like);

/* ---- Heads (heads/) ---- */

struct bwi_head {
    bwi_graph *graph;
    bw_node *prediction; /* the model's output */
    bw_node *target;
    bw_node *weight; /* NULL: none */
    bool classes;    /* the targets of the loss are classes */
};

extern const bwi_loss_row bwi_loss_rows[]; /* ends with NULL names */

/* Gives the target as float32 or as class numbers, since losses and metrics may need different types. */
bw_node *bwi_head_target(const bwi_head *head, bw_dtype dtype);
/* Removes a class that the loss ignores from the head's target and weight, and from `mask` (NULL: none), which becomes 0 there. */
bool bwi_head_ignore(const bwi_loss_row *row, const bwi_argument_value *values, bwi_head *head, bw_node **mask);
/* Finds the logits that feed a final sigmoid; NULL if there are none. */
bw_node *bwi_binary_logits_of(bw_node *prediction);
/* Makes a metric from any loss: a SUMS node whose value is bwi_metric_mean, sums[0] / sums[1]. */
bw_node *bwi_metric_of_loss(const bwi_loss_row *row, const bwi_head *head, const bwi_argument_value *values);
double bwi_metric_mean(const bw_node *node, const double *sums, int index);
/* Reads losses and metrics, separated by commas or blanks, and adds them to those that the training has. */
bw_status bwi_losses_read(bwi_training *training, const char *text);
bw_status bwi_metrics_read(bwi_training *training, const char *text);
/* Fails if targets of `values` numbers are classes with names and the output cannot tell that number of classes apart. */
bw_status bwi_class_targets_check(const bwi_session *s, const bw_dataset *dataset, bw_node *prediction, int64_t values,
                                  const bwi_loss_row *row);
/* Adds all heads to a session's graph: targets, weights, losses and metrics. */
bw_status bwi_session_add_heads(bwi_session *session, const bw_dataset *dataset, const bwi_session_options *options);

/* ---- Optimizers ---- */

bw_status bwi_schedule_read(bw_context *ctx, bwi_schedule *schedule, const char *what, const bwi_term *term);
/* Reads "adam(lr=0.01)". The optimizer starts afresh. */
bw_status bwi_optimizer_read(bw_context *ctx, bwi_optimizer *optimizer, const char *text);
void bwi_optimizer_free_slots(bwi_training *training);
/* Slots that ranks divide among them while bw_fit runs (portion.c): divides them, from those that there
 * are or from new ones; and, on all ranks together, makes them whole again, or shows what the other ranks have: the whole slot is
 * then in the lender's memory. A failure stays in `gathered`. */
bw_status bwi_portion_divide(bwi_training *training);
bw_status bwi_portion_join(bwi_training *training);
/* Gives all ranks the first one's bytes, if the slots are divided; also ranks that are cancelled take part. */
bw_status bwi_portion_tell(const bwi_training *training, void *data, size_t bytes);
void bwi_portion_show(const bwi_slot *slot);
/* Shows all slots, in the order of bwi_optimizer_state, to a rank that takes a checkpoint. */
void bwi_portion_show_all(bwi_training *training);
/* What portion.c needs of optimizer.c. */
int bwi_optimizer_all_slots(const bwi_optimizer *optimizer);
void bwi_optimizer_fill_slot(const bwi_optimizer *optimizer, const bwi_slot *slot, int number);
typedef void (*bwi_slot_visitor)(const bwi_optimizer *optimizer, bwi_slot *slot, const char *name, void *user);
void bwi_optimizer_visit(const bwi_training *training, bwi_slot_visitor visit, void *user);
/* Sets the constants of an update whose gradient sums are multiplied by `scale`; then bwi_optimizer_update takes one part of a
 * variable through all of it. */
void bwi_optimizer_begin(bwi_optimizer *optimizer, float scale);
bwi_sink bwi_optimizer_sink(bwi_optimizer *optimizer); /* gives its updates their parts */
void bwi_optimizer_update(void *optimizer, const bwi_variable *variable, int64_t first, int64_t count, const void *gradient);

/* Updates of variables as a whole (whole.c). */
size_t bwi_whole_bytes(const bwi_training *training); /* of their memory */
bool bwi_variable_is_whole(const bwi_optimizer *optimizer, const bwi_variable *variable);
/* Whether a step looks at variables as a whole, or at norms of their slots, so that ranks cannot divide these. */
bool bwi_whole_is_wanted(const bwi_training *training);
bool bwi_whole_reads_gradients(const bwi_training *training); /* so that these must not be deferred */
/* Adds the derivatives of orthogonal penalties, `count` times, to the gradient sums. */
void bwi_whole_penalize(bwi_session *session, double count);
double bwi_whole_penalty(const bwi_session *session, const bwi_variable *variable);
bw_status bwi_whole_rehearse(bwi_session *session); /* fails, and changes nothing, if an update would not be finite */
void bwi_whole_update(bwi_session *session);
bool bwi_whole_constrain_all(const bwi_session *session); /* whether a variable has a constraint */

/* Lists variables, optimizer slots and counters as named values. */
void bwi_training_state(bw_model *model, bwi_state *state);
/* Whether weights and slots are far from a float's limits. */
bool bwi_training_is_moderate(const bwi_training *training);
/* Makes the averages the weights (use_ema), once there has been an update. */
void bwi_training_finalize(bwi_training *training);

/* ---- Sessions ---- */

enum { BWI_PROGRAM_TRAIN, BWI_PROGRAM_EVALUATE, BWI_PROGRAM_PREDICT };

/* The model at one length of its sequences, with its heads and its programs in the plan. */
struct bwi_variant {
    bw_node *outputs[BWI_MAX_HEADS], *losses[BWI_MAX_HEADS + 1], *columns[BWI_MAX_COLUMNS];
    int program[3];
};

bw_status bwi_session_open(bwi_session *session, bw_model *model, bw_dataset *dataset, const bwi_session_options *options);
/* The same for all samples of a dataset, whose stream is read to its end. *dataset becomes the samples as the model takes them;
 * *front is what the caller frees for that, also after a failure. */
bw_status bwi_session_open_whole(bwi_session *session, bw_model *model, bw_dataset **dataset, bw_dataset **front,
                                 const bwi_session_options *options);

/* Samples that are made ahead may take a quarter of the budget (session_plan.c). */
typedef struct bwi_made_ahead {
    const bw_dataset *dataset, *validation;
    int64_t batch;
    size_t budget; /* 0: nothing is made ahead */
} bwi_made_ahead;

bwi_made_ahead bwi_session_made_ahead(const bwi_session *session, const bw_dataset *dataset, const bwi_session_options *options);
bw_status bwi_session_make_plan(bwi_session *session, const bwi_made_ahead *data, const bwi_session_options *options,
                                bwi_plan **plan);

/* Builds the graph once more for each length of the data's sequences, and feeds samples length by length (lengths.c). */
bw_status bwi_session_add_lengths(bwi_session *session, const bw_dataset *dataset, const bwi_session_options *options);
void bwi_session_free_lengths(bwi_session *session);
bw_status bwi_session_feed_lengths(bwi_session *session, int which, const bwi_piece *piece, float *const *predictions);

/* Calls bwi_exec_feed and keeps the window's count. `which` is one of BWI_PROGRAM. */
bw_status bwi_session_feed(bwi_session *session, int which, const bwi_piece *piece, float *const *predictions);
/* Feeds all samples of the dataset and adds them to the totals, in batches of `batch` samples where the loss depends on that. */
bw_status bwi_session_evaluate(bwi_session *session, bw_dataset *dataset, int64_t batch);
void bwi_session_clear(bwi_session *session); /* clears the window */
/* Reduces, checks and clips the gradients, updates the model and counts the iteration (apply.c). A failure leaves everything
 * unchanged. */
bw_status bwi_session_apply(bwi_session *session);

/* The values of the history are "loss" (the sum of all losses); with several losses, each of them; then the metrics
 * (session_values.c). */
bw_status bwi_session_open_totals(bwi_session *session);
void bwi_session_reset(bwi_session *session); /* clears the totals */
void bwi_session_count(bwi_session *session); /* adds the last feed's sums to the totals */
/* All totals as one list of numbers, for checkpoints. */
int64_t bwi_session_total_count(const bwi_session *session);
void bwi_session_get_totals(const bwi_session *session, double *totals);
void bwi_session_set_totals(bwi_session *session, const double *totals);
const double *bwi_session_fed_sums(const bwi_session *session, const bwi_logged *column);
int bwi_session_values(const bwi_session *session);
const char *bwi_session_value_name(const bwi_session *session, int index);
double bwi_session_value(const bwi_session *session, int index);
int bwi_session_columns(const bwi_session *session, bool validates); /* of the history */

/* ---- Fitting Normalization layers (adapt.c) ---- */

/* Fits the layers whose values came neither from a file nor from the user to the samples; `seed` initializes a model that is not
 * built yet. It is no failure if there is nothing to fit. Layers can be fitted again to other data until bwi_adapted. */
bw_status bwi_adapt(bw_model *model, bw_dataset *dataset, uint64_t seed);
bool bwi_adapt_wanted(const bw_model *model); /* whether there may be such a layer */
void bwi_adapted(bw_model *model);            /* an update has used the fitted values, so they stay */
/* Warns of layers whose values, from a file or from the user, are those of a layer that was never fitted. */
void bwi_adapt_tell_given(const bw_model *model);
/* Warns of layers that are used in training although they are not fitted. */
void bwi_adapt_warn(const bw_model *model);
/* Adds a column for each layer that can be fitted. */
bw_status bwi_session_add_moments(bwi_session *session, bool all);

/* ---- Runs: fit, evaluate, predict ---- */

/* Reports a cancellation, even one that came after the last tile, since otherwise it would stop the next run. */
bw_status bwi_run_end(bw_context *ctx, bw_status status);

/* What must be the same on all ranks that train together (ranks.c). */
typedef struct bwi_alike {
    bw_dataset *training, *validation; /* validation may be NULL */
    int epochs, variables;
    int64_t from;                  /* the step that training continues from; -1: it begins */
    const bwi_session *session;    /* once it is open; NULL: it is not, and neither model nor options are compared */
    const bw_fit_options *options; /* with the session */
} bwi_alike;

/* Makes sure that all ranks begin, or none does, and that all train alike. `status` is that of this rank's preparations. */
bw_status bwi_ranks_begin(bw_context *ctx, const bwi_alike *alike, bw_status status);
/* Between two steps: stops all ranks if one is stopped. If `compares` is set, on all ranks alike, a rank with other weights than
 * the others' is a failure on all of them, which names it. */
bw_status bwi_ranks_meet(bw_model *model, bool compares, int64_t updates, bool *stopped);

/* Samples whose gradients a custom loop has added to sums that are not applied yet (gradients.c). */
int64_t bwi_gradients_pending(const bw_model *model);

/* ---- History and progress ---- */

/* Where the time of a run's steps went (profile.c), in one allocation. */
typedef struct bwi_profile bwi_profile;
bwi_profile *bwi_profile_new(bw_context *ctx, const bwi_plan *plan, int traced);
size_t bwi_profile_bytes(const bwi_plan *plan, int traced);   /* allocated by bwi_profile_new */
void bwi_profile_free(bw_context *ctx, bwi_profile *profile); /* may be NULL */
/* Takes what the ledger has so far; `samples` is the number of samples in a mean step, `slots` what the optimizer keeps for each
 * weight. */
void bwi_profile_take(bwi_profile *profile, const bwi_exec *exec, double samples, int slots);
void bwi_profile_take_trace(bwi_profile *profile, bwi_exec *exec); /* to be called once, at the end */
/* Records the threads that make samples, too, until the last traced step has ended or bwi_profile_take_trace is called. */
bw_status bwi_profile_follow(bw_context *ctx, bwi_profile *profile, const bw_dataset *dataset);
size_t bwi_profile_follow_bytes(const bw_dataset *dataset); /* that it allocates */
/* Records the counters at the end of a traced step. */
void bwi_profile_count(bwi_profile *profile, double loss, size_t bytes);

/* The gradient noise scale (noise.c), in one allocation. */
typedef struct bwi_noise bwi_noise;
bwi_noise *bwi_noise_new(bw_context *ctx, const bwi_session *session);
size_t bwi_noise_bytes(int variables); /* allocated by bwi_noise_new */
/* To be called between feed and apply; `updates` are those of the run, with the present one. */
bw_status bwi_noise_take(bwi_noise *noise, bwi_session *session, int64_t updates);
/* Returns the scale of the epoch that ends, NaN if it is not determined, and begins the next one. */
double bwi_noise_end_epoch(bwi_noise *noise);
/* For checkpoints: its numbers, as those of a state's value. */
size_t bwi_noise_state_bytes(const bwi_noise *noise);
void bwi_noise_get(void *noise, void *values);
void bwi_noise_set(void *noise, const void *values);
/* Estimates trace and signal from the squared norms of the lanes' sums, which are followed by that of the sum of all lanes. */
void bwi_noise_estimate(int lanes, const int64_t *samples, const double *squares, double *trace, double *signal);

struct bw_history {
    bwi_owned owned;
    bw_context *ctx;
    int columns, epochs;
    int width;      /* the largest number of columns */
    double *values; /* [epoch][width] */
    bw_run_facts facts;
    bwi_profile *profile;       /* of a training; NULL: the history is of an evaluation */
    bwi_noise *noise;           /* NULL: it was not requested */
    bool nonfinite;             /* NaN or infinity ended the training */
    void (*refresh)(void *run); /* brings facts and profile up to the present; NULL: the training is over */
    void *run;
    char names[][BWI_COLUMN_NAME + 8]; /* of the columns; there is space for `width` */
};

/* Makes a history for that many epochs and columns; the pages of a long one are used only as epochs are written. */
bw_history *bwi_history_new(bw_context *ctx, int capacity, int width);
size_t bwi_history_bytes(int capacity, int width); /* allocated by bwi_history_new */
int bwi_history_add_column(bw_history *history, const char *prefix, const char *name);

/* The memory that a run takes, as measured (measure.c). */
typedef struct bwi_measure {
    size_t resident, files, allocated; /* just before the plan was made */
    size_t held;                       /* of them, variables and slots, which are in the plan */
    size_t code, swapped;
    int64_t faults;
} bwi_measure;

size_t bwi_held_bytes(const bw_model *model);                   /* of its variables and slots */
void bwi_measure_begin(bwi_measure *measure, bw_model *model);  /* to be called once workers have been started */
void bwi_measure_opened(bwi_measure *measure, bw_context *ctx); /* to be called when the session is open and nothing has run */
void bwi_measure_take(const bwi_measure *measure, bw_context *ctx, bw_run_facts *facts);
void bwi_measure_warn(bw_context *ctx, const bw_run_facts *facts); /* if the run waited for the disk */

/* Early stopping and reduction on plateaus: what fit's options ask for, and what has been seen so far. */
typedef struct bwi_watch {
    bw_model *model;
    bool stops, reduces, kept;
    bwi_argument_value stop[8], rate[8];
    double best, rate_best;
    int64_t wait, rate_wait, cooldown;
    int best_epoch;
    void *weights; /* an arena with the weights of the best epoch, as stored; NULL: they will not be restored */
    size_t weights_bytes;
} bwi_watch;

/* Whether bwi_watch_open makes a copy of all variables, to keep the best weights. */
bool bwi_watch_restores(bw_context *ctx, const bw_fit_options *options);
bw_status bwi_watch_open(bwi_watch *watch, bw_model *model, const bw_fit_options *options, const bw_history *history);
void bwi_watch_close(bwi_watch *watch);
bool bwi_watch_epoch(bwi_watch *watch, const bw_history *history, int epoch); /* true: training stops */
bool bwi_watch_end(bwi_watch *watch); /* restores the best weights if that was requested; true: the variables changed */

/* Draws progress as Keras does. */
typedef struct bwi_painter {
    FILE *file; /* NULL: silent */
    bool terminal;
    double begin, drawn;
} bwi_painter;

void bwi_painter_epoch(bwi_painter *painter, const bw_progress *progress);
void bwi_painter_step(bwi_painter *painter, const bw_progress *progress);
void bwi_painter_end(bwi_painter *painter, const bw_progress *progress);

/* ---- front.c ---- */

/* Fits the model's layers for text and categories: those that have nothing yet, or all of them again. */
bw_status bwi_front_fit(bw_model *model, bw_dataset *dataset, bool again);

#endif
