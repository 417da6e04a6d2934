/* What the files of exec share. */
#ifndef BWI_EXEC_INTERNAL_H
#define BWI_EXEC_INTERNAL_H

#include "exec/exec.h"

/* Functions that are called during a run, if they are set. */
typedef struct bwi_hooks {
    void *user;
    /* On the worker's thread, when a lane has all of this piece's gradient of a variable. */
    void (*lane_gradient)(void *user, int lane, const bwi_variable *variable, const void *gradient);
    /* On the caller's thread, from the reduction: the squared norm of a lane's gradient, and how many samples it sums. For
     * sparse variables the records of the last piece count, if the plan had the capacity for them. They have no lane_gradient. */
    void (*lane_norm)(void *user, int lane, double squared, int64_t samples);
    /* On the worker's thread: a tile begins. */
    void (*tile)(void *user, int worker, int lane, int64_t tile);
} bwi_hooks;

void bwi_exec_set_hooks(bwi_exec *exec, const bwi_hooks *hooks); /* copied; NULL: none */

int bwi_exec_parts(const bwi_plan *plan);

/* Which steps are timed (ledger.c). An interval is a run of steps that are all timed, or all not. */
typedef struct bwi_timing {
    bool warm;       /* the first steps have passed */
    bool timed;      /* the present interval is */
    int64_t begun;   /* its steps so far, the present one among them; 0: training pauses */
    int64_t length;  /* of the present interval: this many steps begin before another is chosen */
    int64_t left;    /* steps that are not to be timed before the next that is */
    uint64_t begin;  /* ticks at its beginning */
    uint64_t epoch;  /* and at that of the epoch */
    int64_t skipped; /* epochs that are left out before the next that is not, the present one among them */
    int64_t traced;  /* steps that are to be traced */
    uint64_t random;
    bwi_timing_sums sums;
} bwi_timing;

/* Times one of the fixed parts on a worker: `begin` is 0 in a step that is not timed. */
static inline uint64_t bwi_exec_clock(const bwi_exec *exec);
static inline void bwi_exec_timed(bwi_exec *exec, int worker, int part, uint64_t begin);

/* One bound instruction. */
typedef struct bwi_bound {
    bwi_call call;
    bwi_pass_function run;
    const bwi_instruction *instruction;
    size_t stored;                                                           /* STORE and LOAD: offset in the tile's slot */
    size_t bytes;                                                            /* STORE and LOAD */
    bool spilled;                                                            /* STORE and LOAD: in the file */
    int64_t summed;                                                          /* sums that this phase completes */
    void (*finish)(const bwi_call *call, const void *sums, int64_t samples); /* turns them into statistics; NULL: nothing to do */
    int part;
    bool opens; /* the first in its program to read what its node's prologue makes, which runs with this call */
    bool adds;  /* to the tile's lane: gradients or sums */
    bool late;  /* it waits for its turn itself */
} bwi_bound;

typedef struct bwi_bound_phase {
    bwi_bound *list;      /* [worker][size][instruction] */
    unsigned char *lists; /* what their calls point to (bind.c) */
    int count;
    int first_summed; /* the first that completes sums; `count`: none does */
    bool opens;       /* one of them has a prologue to run */
} bwi_bound_phase;

/* A node that moves statistics, and the first use of the same variables, which holds the moving values (moving.c). */
typedef struct bwi_moving {
    int program;
    const bwi_call *call, *owner;
} bwi_moving;

/* A fixed part of a trained dense variable. */
typedef struct bwi_block {
    const bwi_variable *variable;
    int64_t first, count;
    size_t gradient; /* offset in a lane */
    bool defers;     /* its gradient may be deferred to the update */
} bwi_block;

/* Deferred gradients (split.c): none; there are some; and their factors are staged. */
enum { BWI_DEFERRED_NONE, BWI_DEFERRED, BWI_DEFERRED_STAGED };

typedef struct bwi_worker {
    int64_t *numbers; /* of the samples of its tile */
    char error[BWI_ERROR_TEXT];
    bw_status status;
    int64_t tiles;     /* run so far; tests check that more than one worker took part */
    uint64_t ended;    /* ticks at which its share was done; of a timed step */
    uint64_t waited;   /* ticks of its present share in which it waited for its turns; of a timed step */
    atomic_llong next; /* the next number of its span (share.c) */
    int64_t end;
    unsigned char pad[BWI_CACHE_LINE];
} bwi_worker;

/* The gradient of a sparse variable (records.c). */
typedef struct bwi_table {
    bwi_records records;
    int64_t capacity, count;
    int64_t settled;      /* of them, those that the ranks have added */
    void *sorted, *spare; /* lists of pairs (kernel/loops/records.h); the spare one holds squared norms while rows are summed */
    int64_t touched;      /* rows; heads in the sorted list, once it is summed */
    double squared;       /* norm of the sum */
} bwi_table;

typedef struct bwi_overlap bwi_overlap;

struct bwi_exec {
    bw_context *ctx;
    bwi_plan *plan;
    const bwi_rank_row *rank;
    unsigned char *arena;
    int spill;                /* the file of spilled values; -1: none */
    bwi_bound_phase **phases; /* [program][phase] */
    bwi_moving *moving;       /* in the order in which they move */
    int moving_count;
    bool foreign;      /* some op runs kernels of `convolution`: they run between its begin and end */
    bwi_block *blocks; /* of all trained dense variables, in their order */
    int64_t block_count;
    bwi_worker *workers;
    int worker_count;
    bwi_hooks hooks;
    bwi_ledger *ledger; /* of the step at hand, if it is timed; NULL: it is not */
    bwi_ledger times;
    bwi_timing timing;
    uint64_t seed;
    size_t data_budget; /* bytes for samples that are made ahead; 0: as many as the data wants */
    double flops;       /* of one sample, forward */
    uint64_t update;    /* not beside the seed: each step stores it, and a tile would copy both at once, which waits for that */

    /* The window. */
    int64_t samples, tiles;
    int deferred;      /* one of BWI_DEFERRED */
    uint64_t fresh;    /* a bit for each program whose prologues have run since the variables last changed */
    uint64_t unopened; /* a bit for each program that has no prologues */

    /* The present feed. */
    int program, phase;
    bwi_piece piece;
    bwi_ahead ahead;
    float *const *predictions;
    atomic_int failed;
    int spans; /* into which the present work is divided (share.c) */
    /* [own lane][instruction]: whose turn it is to add to the lane (turns.c). */
    atomic_llong *turns;
    bool by_turns; /* the present tiles are shared out one by one */
    bwi_sink updater;
    bwi_visit visitor;
    void *visit_user;
    bool norms_wanted;          /* by the present reduction */
    float factor;               /* by which the window is being multiplied */
    int64_t begin, end;         /* the tiles being run */
    bool beside;                /* their buckets are summed over ranks as they are complete */
    bwi_tile *split_tiles;      /* the tiles that run together */
    double *bounds;             /* of deferred gradients: [instruction][tile] */
    unsigned char *staging;     /* their factors */
    bwi_deferred_tile *factors; /* [instruction][tile], for the sums of their parts */
    double *totals;             /* the sums of the last feed, laid out as in a lane */
    double *norms;              /* [block]: its squared norm, or zero if no norms are wanted; not finite if an element is not */
    bwi_overlap *overlap;       /* the sum over ranks beside the backward pass; NULL: it comes afterwards */
    size_t *portions;           /* [rank + 1]: where the portions begin, in the first lane; NULL: slots are not divided */
    int64_t added_tiles;        /* of the window whose lanes are being added, and the first of the blocks */
    int64_t added_first;
    bwi_table *tables; /* one for each of the plan's */
    int table;         /* the one being summed */
    bool large;        /* the reduced sums are not moderate */
    double beyond;     /* a replay names numbers beyond it too; 0: only what is not finite */
    bool nonfinite;    /* the last failure was NaN or infinity */
    bool portion_only; /* the present visit is of this rank's portion */
    bool touched_only; /* the present update skips rows that were not touched, in all tables */
};

static inline uint64_t bwi_exec_clock(const bwi_exec *exec)
{
    return exec->ledger ? bwi_ticks() : 0;
}
static inline void bwi_exec_timed(bwi_exec *exec, int worker, int part, uint64_t begin)
{
    if (begin) {
        exec->workers[worker].ended = bwi_ticks();
        bwi_ledger_add(exec->ledger, worker, bwi_exec_fixed_part(exec->plan, part), begin, exec->workers[worker].ended);
    }
}
/* Runs work on several workers; what the caller waits for the others once its own share is done is idle time. */
void bwi_exec_share(bwi_exec *exec, int workers, bwi_work work, void *user);
bw_status bwi_exec_bind(bwi_exec *exec);
void bwi_exec_unbind(bwi_exec *exec);
static inline bwi_bound *bwi_exec_bound(const bwi_exec *exec, int program, int phase, int worker, int size)
{
    const bwi_bound_phase *p = &exec->phases[program][phase];
    return &p->list[((size_t)worker * (size_t)exec->plan->sizes + (size_t)size) * (size_t)p->count];
}
static inline const bwi_memory_kernels *bwi_exec_memory(const bwi_exec *exec)
{
    return exec->plan->kernels->memory;
}
static inline unsigned char *bwi_exec_lane(const bwi_exec *exec, int lane)
{
    return exec->arena + exec->plan->lanes_offset + (size_t)lane * exec->plan->lane_bytes;
}
/* Turns (turns.c), where workers outnumber lanes: their number; begins the tiles at hand; waits until it is the turn of tile k to
 * run an instruction that adds to the lane, false if another worker has failed meanwhile; and passes the turn on. */
size_t bwi_turns_count(const bwi_plan *plan);
void bwi_turns_begin(bwi_exec *exec);
bool bwi_turn_wait(bwi_exec *exec, int worker, int lane, int instruction, int64_t k);
void bwi_turn_pass(bwi_exec *exec, int lane, int instruction);
bw_status bwi_exec_run_tile(bwi_exec *exec, int worker, int lane, int64_t k);
/* Describes tile k of the piece; the numbers of its samples go to a region's list. */
bwi_tile bwi_exec_tile(bwi_exec *exec, int region, int lane, int64_t k);
/* Shares the numbers below `count` out (share.c). With as many spans as workers, each worker begins with its own span,
 * the same in every step, so that what it touches stays in its cache, and then helps the others; with one span, all begin
 * with the lowest number. `next` returns a worker's next number, or -1 if there is none left; `tried`, from 0, counts the spans
 * that are used up. */
void bwi_exec_share_out(bwi_exec *exec, int spans, int64_t count);
int64_t bwi_exec_next(bwi_exec *exec, int worker, int *tried);
/* Whether workers share the update of a window of that many tiles (update.c). */
bool bwi_update_is_shared(const bwi_exec *exec, int64_t tiles);
/* Adds the lanes of a window of that many tiles, of one block, as far as this rank's subtrees reach; and of the blocks from `first`
 * to before `end`, shared by the workers. */
void bwi_exec_add_lanes(const bwi_exec *exec, int64_t tiles, int64_t block);
size_t bwi_update_ranks_bytes(const bwi_plan *plan); /* that the sum over ranks needs besides the lanes */
void bwi_update_add_lanes(bwi_exec *exec, int64_t tiles, int64_t first, int64_t end);
/* The sum over ranks beside the backward pass (overlap.c). */
size_t bwi_overlap_bytes(const bwi_plan *plan);
bw_status bwi_overlap_open(bwi_exec *exec);
void bwi_overlap_close(bwi_exec *exec);
void bwi_overlap_reset(bwi_exec *exec); /* nothing of the window is summed over ranks */
bool bwi_overlap_is_reset(const bwi_exec *exec);
/* Before the last tiles of a phase: whether buckets are complete in it, and wait for their lanes. Then the tiles tell so, and after
 * them `end` waits for the sums. */
bool bwi_overlap_begin(bwi_exec *exec);
bw_status bwi_overlap_end(bwi_exec *exec);
/* The last tile of a lane: after how many instructions the nth bucket is complete in it (-1: there are no more), which one it is;
 * and that it is. */
int bwi_overlap_pause(const bwi_exec *exec, int n, int *bucket);
void bwi_overlap_lane_done(const bwi_exec *exec, int bucket);
/* At the update: sums what has not been. */
bw_status bwi_overlap_finish(bwi_exec *exec);
/* The update where ranks have divided the optimizer's slots (portion.c): the tables' bytes; whether a block is in this rank's
 * portion; makes such a block's new weights, which take the gradient's place; gives all ranks those of all; and makes them the
 * variable's. */
size_t bwi_portion_bytes(const bwi_plan *plan);
bw_status bwi_portion_open(bwi_exec *exec);
bool bwi_portion_has(const bwi_exec *exec, int64_t block);
void bwi_portion_update(const bwi_exec *exec, int worker, int64_t block);
bw_status bwi_portion_gather(bwi_exec *exec);
void bwi_portion_commit(const bwi_exec *exec, int64_t block);
/* Layers split over workers (split.c): whether the present piece runs that way; and runs it, with failures reported as by
 * run_lanes. */
bool bwi_split_fit(const bwi_exec *exec);
void bwi_split_run(bwi_exec *exec);
/* Deferred gradients: whether all of them are known to be finite; the number of their parts; one part, a sum over the tiles; and
 * storing them in the lanes, after which none is deferred. */
bool bwi_split_bounded(bwi_exec *exec);
/* Of joined lanes: whether the present program defers; and stages a tile's factors when it has run, by the worker that ran it. */
bool bwi_split_stages(const bwi_exec *exec);
void bwi_split_stage_tile(bwi_exec *exec, int worker, int64_t k);
int64_t bwi_split_parts(const bwi_exec *exec);
void bwi_split_part(bwi_exec *exec, int worker, int64_t number, const bwi_sink *sink);
void bwi_split_settle(bwi_exec *exec);
/* Runs the piece again, one sample at a time, through the phases up to the present one, and names what is wrong. */
bw_status bwi_exec_replay(bwi_exec *exec, bool find_nonfinite);
/* Computes what the ops of a phase derive from their variables. */
bw_status bwi_exec_prologues(bwi_exec *exec, int phase);
/* The file of spilled values (spill.c): creates it in the plan's folder and unlinks it at once; moves a value to or from it, on
 * a worker. */
bw_status bwi_exec_open_spill(bwi_exec *exec);
void bwi_exec_close_spill(bwi_exec *exec);
bw_status bwi_exec_spill(const bwi_exec *exec, bool store, void *value, size_t bytes, size_t offset, char *error);
/* Moving statistics (moving.c): how many nodes have them; after a piece; at the commit. */
int bwi_moving_count(const bwi_plan *plan);
bw_status bwi_moving_open(bwi_exec *exec);
const bw_node *bwi_moving_advance(const bwi_exec *exec); /* NULL, or a node whose statistics are not finite */
void bwi_moving_commit(const bwi_exec *exec);
/* The records of a variable (records.c), or NULL if it has none. */
const bwi_records *bwi_records_of(const bwi_exec *exec, const bwi_variable *variable);
bw_status bwi_records_open(bwi_exec *exec);
void bwi_records_clear(bwi_exec *exec);
/* Makes space for the records of the present phase, from tile `begin` up to tile `end`, as far as the capacity reaches. */
bw_status bwi_records_begin(bwi_exec *exec, int64_t begin, int64_t *end);
/* At the update: adds the ranks' records and sorts them; computes a lane's share, before they are summed; sums them and gives
 * the squared norm. */
bw_status bwi_records_sort(bwi_exec *exec);
double bwi_records_lane_norm(const bwi_exec *exec, int lane);
/* The squared norm of one lane's share of a table's gradient, once records are sorted; lane -1: of the sum of all lanes. */
double bwi_records_square(const bwi_exec *exec, const bwi_table *table, int lane, const bwi_scaling *scaling);
/* Whether the records of all samples of the window are there, none of them summed yet. */
bool bwi_records_are_whole(const bwi_exec *exec);
bool bwi_records_are_finite(const bwi_exec *exec);
double bwi_records_sum(bwi_exec *exec);
void bwi_records_resume(bwi_exec *exec); /* after they were summed: the window goes on */
void bwi_records_scale(bwi_exec *exec, float factor);
int64_t bwi_records_blocks(const bwi_exec *exec);
void bwi_records_update(const bwi_exec *exec, int worker, int64_t block);

#endif
