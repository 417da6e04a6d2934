/* What the files of train share and no other module uses: heads, optimizers at work, sessions that run, history and progress. */
#ifndef BWI_TRAIN_INTERNAL_H
#define BWI_TRAIN_INTERNAL_H

#include "train/train.h"

/* ---- The data's fields (fields.c) ---- */

int64_t bwi_field_values(const bwi_field *field); /* numbers per sample */
/* The dataset's field for an input node: by name, or the only one of its role. -1: none. */
int bwi_fields_find(const bw_dataset *dataset, const bwi_input_attributes *input);
/* "target", or "target NAME". */
const char *bwi_role_describe(char text[96], bwi_role role, const char *name);
/* Compares a field with the one that must be in its place (NULL: there is none): the role, the name and the count of numbers per
 * sample.
 * Messages begin with `what`, and name `like`, whose field is the expected one. */
bw_status bwi_field_check(bw_context *ctx, const bwi_field *expected, const bwi_field *found, const char *what, const char *like);

/* ---- Heads (heads/) ---- */

struct bwi_head {
    bwi_graph *graph;
    bw_node *prediction; /* the model's output */
    bw_node *target;
    bw_node *weight; /* NULL: none */
    bool classes;    /* the loss is of classes */
};

extern const bwi_loss_row bwi_loss_rows[]; /* ends with NULL names */

/* The target as float32 or as class numbers: losses and metrics may differ in what they want. */
bw_node *bwi_head_target(const bwi_head *head, bw_dtype dtype);
/* A class that the loss ignores leaves the head's target and weight, and `mask` (NULL: none), which becomes 0 there. */
bool bwi_head_ignore(const bwi_loss_row *row, const bwi_argument_value *values, bwi_head *head, bw_node **mask);
/* The logits that feed a final sigmoid, or NULL. */
bw_node *bwi_binary_logits_of(bw_node *prediction);
/* Any loss is a metric too: a SUMS node whose value is bwi_metric_mean, sums[0] / sums[1]. */
bw_node *bwi_metric_of_loss(const bwi_loss_row *row, const bwi_head *head, const bwi_argument_value *values);
double bwi_metric_mean(const bw_node *node, const double *sums);
/* Losses and metrics as text, separated by commas or blanks, are added to those that the training has. */
bw_status bwi_losses_read(bwi_training *training, const char *text);
bw_status bwi_metrics_read(bwi_training *training, const char *text);
/* Fails if targets of `values` numbers are classes with names, and the output cannot tell as many apart. */
bw_status bwi_class_targets_check(const bwi_session *s, const bw_dataset *dataset, bw_node *prediction, int64_t values,
                                  const bwi_loss_row *row);
/* Adds all heads to a session's graph: targets, weights, losses and metrics. */
bw_status bwi_session_add_heads(bwi_session *session, const bw_dataset *dataset, const bwi_session_options *options);

/* ---- Optimizers ---- */

bw_status bwi_schedule_read(bw_context *ctx, bwi_schedule *schedule, const char *what, const bwi_term *term);
/* Reads "adam(lr=0.01)"; the optimizer begins anew. */
bw_status bwi_optimizer_read(bw_context *ctx, bwi_optimizer *optimizer, const char *text);
/* The rate of the next update. */
double bwi_optimizer_rate(const bwi_optimizer *optimizer);
void bwi_optimizer_free_slots(bwi_training *training);
/* The constants of an update whose gradient sums are multiplied by `scale`; then, one part of a variable through all of it. */
void bwi_optimizer_begin(bwi_optimizer *optimizer, float scale);
void bwi_optimizer_update(void *optimizer, const bwi_variable *variable, int64_t first, int64_t count, const void *gradient);
/* Variables, optimizer slots and counters as named values. */
void bwi_training_state(bw_model *model, bwi_state *state);
/* Whether weights and slots are far from a float's limits. */
bool bwi_training_is_moderate(const bwi_training *training);
/* Averages become weights (use_ema, once there was an update). */
void bwi_training_finalize(bwi_training *training);

/* ---- Sessions ---- */

enum { BWI_PROGRAM_TRAIN, BWI_PROGRAM_EVALUATE, BWI_PROGRAM_PREDICT };

/* The model at one length of its sequences: its heads and its programs in the plan. */
struct bwi_variant {
    bw_node *outputs[BWI_MAX_HEADS], *losses[BWI_MAX_HEADS], *columns[BWI_MAX_COLUMNS];
    int program[3];
};

bw_status bwi_session_open(bwi_session *session, bw_model *model, bw_dataset *dataset, const bwi_session_options *options);

/* session_plan.c: samples that are made ahead may take a quarter of the budget. */
typedef struct bwi_made_ahead {
    const bw_dataset *dataset, *validation;
    int64_t batch;
    size_t budget; /* 0: nothing is made ahead */
} bwi_made_ahead;

bwi_made_ahead bwi_session_made_ahead(const bwi_session *session, const bw_dataset *dataset, const bwi_session_options *options);
bw_status bwi_session_make_plan(bwi_session *session, const bwi_made_ahead *data, const bwi_session_options *options,
                                bwi_plan **plan);

/* lengths.c: the graph once more for each length of the data's sequences; feeding by length. */
bw_status bwi_session_add_lengths(bwi_session *session, const bw_dataset *dataset, const bwi_session_options *options);
void bwi_session_free_lengths(bwi_session *session);
bw_status bwi_session_feed_lengths(bwi_session *session, int which, const bwi_piece *piece, float *const *predictions);

/* bwi_exec_feed, and the window's count. `which` is one of BWI_PROGRAM. */
bw_status bwi_session_feed(bwi_session *session, int which, const bwi_piece *piece, float *const *predictions);
/* All samples of the dataset, counted in the totals; those of a loss by batches of `batch`, where that matters. */
bw_status bwi_session_evaluate(bwi_session *session, const bw_dataset *dataset, int64_t batch);
void bwi_session_clear(bwi_session *session); /* the window */
/* apply.c: reduces, checks, clips, updates the model, counts the iteration. After a failure all is as before. */
bw_status bwi_session_apply(bwi_session *session);

/* session_values.c: the history's values are "loss" (the sum of all), then, with several losses, each; then metrics. */
bw_status bwi_session_open_totals(bwi_session *session);
void bwi_session_reset(bwi_session *session); /* totals */
void bwi_session_count(bwi_session *session); /* adds the last feed's sums to the totals */
const double *bwi_session_fed_sums(const bwi_session *session, const bwi_logged *column);
int bwi_session_values(const bwi_session *session);
const char *bwi_session_value_name(const bwi_session *session, int index);
double bwi_session_value(const bwi_session *session, int index);
int bwi_session_columns(const bwi_session *session, bool validates); /* of the history */

/* ---- Fitting Normalization layers (adapt.c) ---- */

/* Fits those whose values are neither a file's nor the user's to the samples; `seed` is of a model that is not built yet. Nothing
 * to fit is no failure. What is fitted stays open to other data until bwi_adapted. */
bw_status bwi_adapt(bw_model *model, bw_dataset *dataset, uint64_t seed);
bool bwi_adapt_wanted(const bw_model *model); /* there may be such a layer */
void bwi_adapted(bw_model *model);            /* an update was made with what was fitted: it stays */
/* Tells of layers to which a file or the user gave the values of one that was never fitted. */
void bwi_adapt_tell_given(const bw_model *model);
/* Tells of layers that are trained with while they are not fitted. */
void bwi_adapt_warn(const bw_model *model);
/* A column for each layer that can be fitted. */
bw_status bwi_session_add_moments(bwi_session *session, bool all);

/* ---- Runs: fit, evaluate, predict ---- */

/* That of the model or, without one, of the dataset; NULL without both (run.c). */
bw_context *bwi_run_context(const bw_model *model, const bw_dataset *dataset);
/* Fails if one of them is missing. `what` begins the message. */
bw_status bwi_run_begin(bw_context *ctx, const char *what, const bw_model *model, const bw_dataset *dataset);
/* Reports a cancellation, also one that came after the last tile: or it would stop the next run instead. */
bw_status bwi_run_end(bw_context *ctx, bw_status status);

/* What ranks that train together must have alike (ranks.c). */
typedef struct bwi_alike {
    const bw_dataset *training, *validation; /* validation may be NULL */
    int epochs, variables;
} bwi_alike;

/* All ranks begin or none does, and all train alike. `status` is what this rank's preparations gave. */
bw_status bwi_ranks_begin(bw_context *ctx, const bwi_alike *alike, bw_status status);

/* ---- History and progress ---- */

enum { BWI_MAX_VALUES = 2 * (BWI_MAX_COLUMNS + 1) + 1 };

/* Where the time of a run's steps went (profile.c): one allocation. */
typedef struct bwi_profile bwi_profile;
bwi_profile *bwi_profile_new(bw_context *ctx, const bwi_plan *plan, int traced);
size_t bwi_profile_bytes(const bwi_plan *plan, int traced);   /* that bwi_profile_new allocates */
void bwi_profile_free(bw_context *ctx, bwi_profile *profile); /* NULL is fine */
/* `samples`: of a mean step. */
void bwi_profile_take(bwi_profile *profile, bwi_exec *exec, double samples);
/* At the end of a traced step: what its counters are. */
void bwi_profile_count(bwi_profile *profile, double loss, size_t bytes);

/* The gradient noise scale (noise.c): one allocation. */
typedef struct bwi_noise bwi_noise;
bwi_noise *bwi_noise_new(bw_context *ctx, const bwi_session *session);
size_t bwi_noise_bytes(int variables);                       /* that bwi_noise_new allocates */
void bwi_noise_take(bwi_noise *noise, bwi_session *session); /* between feed and apply */
/* From the squared norms of the lanes' sums and, after them, of their sum. */
void bwi_noise_estimate(int lanes, const int64_t *samples, const double *squares, double *trace, double *signal);

struct bw_history {
    bwi_owned owned;
    bw_context *ctx;
    char names[BWI_MAX_VALUES][BWI_COLUMN_NAME + 8];
    int columns, epochs;
    int width;      /* the most columns there can be */
    double *values; /* [epoch][width] */
    bw_run_facts facts;
    bwi_profile *profile; /* of training; NULL: of an evaluation */
    bwi_noise *noise;     /* NULL: it was not asked for */
};

/* For that many epochs and columns; pages of a long one are taken as epochs are written. */
bw_history *bwi_history_new(bw_context *ctx, int capacity, int width);
size_t bwi_history_bytes(int capacity, int width); /* that bwi_history_new allocates */
int bwi_history_add_column(bw_history *history, const char *prefix, const char *name);

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
/* As bw_set_learning_rate, for calls from inside. */
bw_status bwi_training_set_rate(bw_model *model, double rate);
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

#endif
