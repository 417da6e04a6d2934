/*
 * exec: runs a plan. A window is the set of samples of one update; it may be fed in pieces. Tile t of the window is added to lane t
 * mod lanes, in the order of t. One worker takes a lane through; lanes stay apart until the update and are then added as a binary
 * tree, which ranks continue. So the bits depend on the plan alone, never on workers, ranks or timing.
 *
 * Nothing here allocates after bwi_exec_open, and nothing changes the model before bwi_exec_update.
 */
#ifndef BWI_EXEC_H
#define BWI_EXEC_H

#include "data/data.h"
#include "plan/plan.h"
#include "rank/rank.h"

typedef struct bwi_exec bwi_exec;

/* ---- Where the time goes (ledger.c) ---- */

/* Parts of the ledger: one for each node and pass, then these. Those marked have others within them. */
enum {
    BWI_PART_PREPARE = 0, /* what ops derive from weights that have changed */
    BWI_PART_REDUCE,
    BWI_PART_UPDATE,
    BWI_PART_DATA,      /* waiting for samples */
    BWI_PART_CALLBACKS, /* the program's own, and the progress bar */
    BWI_PART_RANKS,     /* communication */
    BWI_PART_IDLE,      /* waiting for other workers */
    BWI_PART_SHARE,     /* a worker's share of the tiles; has others within it */
    BWI_PART_STEP,      /* a traced step as a whole; likewise */
    BWI_PART_FIXED
};

/* The steps of a training but for the first, and how many of them were timed. */
typedef struct bwi_timing_sums {
    int64_t steps, timed_steps;
    uint64_t ticks;
} bwi_timing_sums;

int bwi_exec_part(const bw_node *lowered, bwi_pass pass);
int bwi_exec_fixed_part(const bwi_plan *plan, int part);
/* Before every step of a training: decides whether it is timed. Timing costs more than a small step does, so as many steps are
 * timed as cost 0.4 percent of the run, and they are drawn at random. */
void bwi_exec_step(bwi_exec *exec);
/* Before something else happens: validation, the end of an epoch. `made`: the step that was begun last has been made. */
void bwi_exec_pause(bwi_exec *exec, bool made);
/* Times what the caller does between the parts of a step; 0: the step is not timed. */
uint64_t bwi_exec_begin_part(const bwi_exec *exec);
void bwi_exec_end_part(bwi_exec *exec, int fixed_part, uint64_t begin);
/* The first `steps` steps that are timed follow one another, and every call of a part in them is recorded. */
bw_status bwi_exec_trace(bwi_exec *exec, int64_t steps);
size_t bwi_exec_trace_bytes(const bwi_plan *plan, int64_t steps); /* that bwi_exec_trace allocates */
bool bwi_exec_tracing(const bwi_exec *exec);                      /* the step at hand is recorded */
/* Moves what was recorded into a ledger of the caller's, which has nothing else. */
void bwi_exec_take_trace(bwi_exec *exec, bwi_ledger *trace);
/* What the workers share in a training step of that many samples. */
typedef struct bwi_sharing {
    double samples;
    int64_t tile;
    int lanes, phases, ranks;
    size_t weights; /* bytes of a lane's gradient: as many as the weights that are trained */
    bool tiles;     /* by tiles: there are two or more, and enough to do */
    bool split;     /* layers instead, instruction by instruction, with their gradients deferred to the update */
    bool defers;    /* gradients are, also by tiles */
    bool update;    /* adding lanes, and the update, by blocks */
    int meetings;   /* of all workers, if there are several */
} bwi_sharing;

bwi_sharing bwi_exec_shares(const bwi_exec *exec, double samples);
/* The steps so far. The ledger is the exec's. */
const bwi_ledger *bwi_exec_times(const bwi_exec *exec, bwi_timing_sums *sums);

/* ---- Opening ---- */

/* The bytes that bwi_exec_open allocates besides the arena, for bwi_plan_request. */
size_t bwi_exec_bookkeeping(const bwi_plan *plan);
/* Allocates the arena and binds every instruction. Takes ownership of the plan. */
bw_status bwi_exec_open(bw_context *ctx, bwi_exec **exec, bwi_plan *plan);
void bwi_exec_close(bwi_exec *exec);
const bwi_plan *bwi_exec_plan(const bwi_exec *exec);
/* Limits the bytes of samples that are made ahead; 0: as many as the data asks for. */
void bwi_exec_set_data_budget(bwi_exec *exec, size_t bytes);
void bwi_exec_set_seed(bwi_exec *exec, uint64_t seed, uint64_t update);

/* ---- Lanes, for the gradient noise scale (noise.c) ---- */

enum { BWI_MAX_LANES = 64 };

/* Between a feed that is a whole window and bwi_exec_reduce: the samples of every lane that has any, and in *lanes the number of
 * those lanes; 0: the lanes are not separate any more. */
bw_status bwi_exec_lane_samples(bwi_exec *exec, int *lanes, int64_t samples[BWI_MAX_LANES]);
/* Adds the squared norms of the lanes' gradients of a variable, of all ranks. A mean of squares is like the variable. */
bw_status bwi_exec_lane_squares(bwi_exec *exec, const bwi_variable *variable, const bwi_scaling *scaling, double *squares);
/* The squared norm of the lanes' sum, in the same manner: of a dense variable after bwi_exec_norm, of a table before it. */
bool bwi_exec_is_dense(const bwi_exec *exec, const bwi_variable *variable);
double bwi_exec_sum_square(bwi_exec *exec, const bwi_variable *variable, const bwi_scaling *scaling);
/* The mean of the elements above 0 of what is like a variable; 0: there are none. */
double bwi_exec_mean_above_zero(const bwi_exec *exec, const bwi_variable *variable, const void *values);

/* The samples of a piece: a list of numbers, or the positions first, first + 1, ... of an epoch's order. */
typedef struct bwi_piece {
    bw_dataset *dataset;
    const int64_t *numbers; /* NULL: by position */
    int epoch;
    int64_t first, count;
    bool scattered;   /* the numbers follow no order that the data knows, so nothing is made ahead */
    bool unaugmented; /* samples are used without augmentation, since they are not for training */
    bool last;        /* only the update of the window follows, on all ranks, so that the sum over them may begin */
} bwi_piece;

int64_t bwi_piece_number(const bwi_piece *piece, int64_t index); /* of its index-th sample */

/* Takes samples through a program. A training program adds to the window. If it fails, the window is lost (and cleared), and the
 * model is unchanged. `predictions` receives each target's output, sample by sample; it may be NULL, and so may each of its
 * places. */
bw_status bwi_exec_feed(bwi_exec *exec, int program, const bwi_piece *piece, float *const *predictions);
/* The sums of a node (of the model's graph) over the last feed. */
const double *bwi_exec_sums(const bwi_exec *exec, const bw_node *node);

/* To be called after a piece whose loss is not finite: if its gradient is not finite either, names layer and sample
 * (INVALID_ARGUMENT) and clears the window. */
bw_status bwi_exec_examine(bwi_exec *exec);
/* The last piece's samples are about to be freed: a failure that is found later cannot name one of them. */
void bwi_exec_forget(bwi_exec *exec);

/* Whether the last failure of a feed, a reduction or a rehearsal was NaN or infinity, so that the window may be left out. To be
 * asked once, after a failure. */
bool bwi_exec_was_nonfinite(bwi_exec *exec);

/* Memory for one value of each of the variable's, in its order: free as long as no window is begun. It has a gradient. */
void *bwi_exec_room(const bwi_exec *exec, const bwi_variable *variable);

int64_t bwi_exec_samples(const bwi_exec *exec); /* of the window */
void bwi_exec_clear(bwi_exec *exec);
/* Adds the lanes, then the ranks, and gives the squared norm of the window's gradient sum (NULL: no norm is needed, neither here
 * nor of a variable). Checks that the sum is finite; if not, names the cause (INVALID_ARGUMENT) and clears the window. */
bw_status bwi_exec_reduce(bwi_exec *exec, double *squared_norm);
/* Does the same, but the window continues: it may be fed, examined again, or applied. Its lanes have become one sum, so with
 * further pieces the gradient equals the whole batch's within rounding, and no longer bit for bit. */
bw_status bwi_exec_norm(bwi_exec *exec, double *squared_norm);
/* Reduces likewise, and reads (unless it is NULL) and then replaces (likewise) the gradient sum of one variable, in Keras's order.
 * That of a table cannot be replaced. */
bw_status bwi_exec_gradient(bwi_exec *exec, const bwi_variable *variable, float *values, const float *replacement);
/* Reads and replaces likewise, between reduce (with a norm) and update, which does not continue the window. */
void bwi_exec_reduced(bwi_exec *exec, const bwi_variable *variable, float *values, const float *replacement);
/* Multiplies the window's gradient. */
void bwi_exec_scale(bwi_exec *exec, float factor);
/* Called between reduce and update, on a worker, for a part of a variable. Returns the squared norm of what it makes of the
 * gradient. */
typedef double (*bwi_visit)(void *user, const bwi_variable *variable, int64_t first, int64_t count, const void *gradient);
void bwi_exec_visit(bwi_exec *exec, bwi_visit visit, void *user);
/* After reduce (with a norm) or visit: the squared norm of a variable; NULL: of all. */
double bwi_exec_squared_norm(const bwi_exec *exec, const bwi_variable *variable);
/* Whether a sum of the window, once it is reduced, is beyond BWI_MODERATE. */
bool bwi_exec_large(const bwi_exec *exec);
/* Before the commit: `rehearse` is called for all parts that the commit will update, and returns NaN where that must not be. Then
 * it fails with the sample or the variable that is at fault, and the window is lost. */
bw_status bwi_exec_rehearse(bwi_exec *exec, bwi_visit rehearse, void *user);
/* The commit: `sink` updates every trained variable from the gradient sums of the window, in fixed blocks; then everything else
 * that a step changes is changed, and the window is cleared. It can fail only if ranks have divided the slots and one of them is
 * lost: the variables are then as before, but the slots of this rank's portion are not. */
bw_status bwi_exec_update(bwi_exec *exec, const bwi_sink *sink);
/* Does the same for an optimizer that does nothing where the gradient is zero: rows of tables that were not touched are skipped. */
bw_status bwi_exec_update_touched(bwi_exec *exec, const bwi_sink *sink);
/* To be called when variables were changed from outside, so that prologues run again. */
void bwi_exec_touch(bwi_exec *exec);

#endif
