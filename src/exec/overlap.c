/*
 * The sum over ranks beside the backward pass. The gradients are cut into buckets of consecutive blocks. A bucket is complete on
 * this rank when each of its lanes has had the last tile's backward pass of the bucket's layers; a thread of the rank's
 * (rank/beside.c) then adds its lanes and sends it on its way, from the last bucket, whose layers come first in the backward pass,
 * to the first. What is left when the tiles are through is pipelined: the workers add the lanes of a bucket while the one before it
 * travels. The tree of sums is the same as without all this.
 *
 * All ranks must make the same calls in the same order, so which buckets are summed in which phase follows from the plan alone, and
 * a rank that fails in its tiles still takes part in the sums of that phase: the agreement after them tells the others.
 */
#include "exec/internal.h"

enum {
    BUCKET_BYTES = 1 << 20,
    WORTH_BESIDE = 1 << 20 /* of gradients: below, waking the thread takes longer than it saves */
};

struct bwi_overlap {
    bwi_beside *beside;
    int count;
    int64_t *first;     /* [count + 1]: block */
    int *phase;         /* [program][count]: in which it is complete */
    int *end;           /* [program][count]: the instructions of that phase that it waits for */
    atomic_int *lanes;  /* [count]: that have not had their last tile */
    atomic_int *taken;  /* [count]: by who adds its lanes, the thread or the workers */
    atomic_int *adding; /* [count]: 0 once the workers have */
    int64_t tiles;      /* of the window, when they will have run */
    int next;           /* buckets from this one on are summed, or are being summed */
    int from, to;       /* those being summed: to <= number < from */
};

/* ---- Opening ---- */

static bool is_worth(const bwi_plan *plan)
{
    const bwi_rank_row *row = bwi_rank_of(plan->ctx);
    return plan->ranks > 1 && plan->lane_sums >= WORTH_BESIDE && row->beside && row->beside(plan->ctx->ranks) &&
           plan->programs[0].program.training;
}

static size_t most_buckets(const bwi_plan *plan)
{
    return plan->lane_sums / BUCKET_BYTES + 1;
}

size_t bwi_overlap_bytes(const bwi_plan *plan)
{
    size_t count = most_buckets(plan), programs = (size_t)plan->program_count;
    if (!is_worth(plan)) {
        return 0;
    }
    return bwi_allocation_bytes(sizeof(bwi_overlap)) + bwi_beside_bytes() + bwi_allocation_bytes((count + 1) * sizeof(int64_t)) +
           2 * bwi_allocation_bytes(programs * count * sizeof(int)) + 3 * bwi_allocation_bytes(count * sizeof(atomic_int));
}

static void cut_buckets(const bwi_exec *exec, bwi_overlap *o)
{
    size_t begin = 0;
    for (int64_t number = 0; number < exec->block_count; number++) {
        const bwi_block *block = &exec->blocks[number];
        if (number == 0 || block->gradient - begin >= BUCKET_BYTES) {
            o->first[o->count++] = number;
            begin = block->gradient;
        }
    }
    o->first[o->count] = exec->block_count;
}

/* Finds the last instruction that adds to the gradient of a variable. */
static void find_end(const bwi_plan_program *program, const bwi_variable *variable, int *phase, int *end)
{
    *phase = *end = 0;
    for (int k = 0; k < program->phase_count; k++) {
        for (int n = 0; n < program->phases[k].count; n++) {
            const bwi_instruction *i = &program->phases[k].instructions[n];
            bool adds =
                i->pass == BWI_PASS_BACKWARD_WEIGHTS || i->pass == BWI_PASS_BACKWARD_STATISTICS || i->pass == BWI_PASS_BACKWARD;
            for (int v = 0; adds && v < i->node->variables; v++) {
                if (i->node->variable[v] == variable) {
                    *phase = k;
                    *end = n + 1;
                }
            }
        }
    }
}

/* Buckets are summed from the last to the first, so one that is complete later holds up those before it. */
static void find_ends(const bwi_exec *exec, bwi_overlap *o, int p)
{
    int *phases = &o->phase[p * o->count], *ends = &o->end[p * o->count];
    int phase = 0, end = 0;
    for (int b = o->count - 1; b >= 0; b--) {
        const bwi_variable *variable = NULL;
        for (int64_t number = o->first[b]; number < o->first[b + 1]; number++) {
            int at = 0, until = 0;
            if (exec->blocks[number].variable != variable) {
                variable = exec->blocks[number].variable;
                find_end(&exec->plan->programs[p], variable, &at, &until);
                end = at > phase || (at == phase && until > end) ? until : end;
                phase = at > phase ? at : phase;
            }
        }
        phases[b] = phase;
        ends[b] = end;
    }
}

/* Whether there is an overlap depends on the plan and the row alone, which are the same on all ranks. */
bw_status bwi_overlap_open(bwi_exec *exec)
{
    const bwi_plan *plan = exec->plan;
    bw_context *ctx = exec->ctx;
    size_t count = most_buckets(plan), programs = (size_t)plan->program_count;
    if (!is_worth(plan)) {
        return BW_OK;
    }
    bwi_overlap *o = exec->overlap = bwi_allocate(ctx, 1, sizeof *o);
    if (!o) {
        return BW_RESOURCE_EXHAUSTED;
    }
    o->first = bwi_allocate(ctx, count + 1, sizeof *o->first);
    o->phase = bwi_allocate(ctx, programs * count, sizeof *o->phase);
    o->end = bwi_allocate(ctx, programs * count, sizeof *o->end);
    o->lanes = bwi_allocate(ctx, count, sizeof *o->lanes);
    o->taken = bwi_allocate(ctx, count, sizeof *o->taken);
    o->adding = bwi_allocate(ctx, count, sizeof *o->adding);
    if (!o->first || !o->phase || !o->end || !o->lanes || !o->taken || !o->adding) {
        return BW_RESOURCE_EXHAUSTED;
    }
    cut_buckets(exec, o);
    for (int p = 0; p < plan->program_count; p++) {
        find_ends(exec, o, p);
    }
    bwi_overlap_reset(exec);
    return bwi_beside_open(ctx, &o->beside);
}

void bwi_overlap_close(bwi_exec *exec)
{
    bwi_overlap *o = exec->overlap;
    if (o) {
        bwi_beside_close(o->beside);
        bwi_release(exec->ctx, o->first);
        bwi_release(exec->ctx, o->phase);
        bwi_release(exec->ctx, o->end);
        bwi_release(exec->ctx, o->lanes);
        bwi_release(exec->ctx, o->taken);
        bwi_release(exec->ctx, o->adding);
        bwi_release(exec->ctx, o);
        exec->overlap = NULL;
    }
}

void bwi_overlap_reset(bwi_exec *exec)
{
    if (exec->overlap) {
        exec->overlap->next = exec->overlap->count;
    }
}

bool bwi_overlap_is_reset(const bwi_exec *exec)
{
    return !exec->overlap || exec->overlap->next == exec->overlap->count;
}

/* ---- Summing ---- */

static void end_adding(bwi_overlap *o, int b)
{
    atomic_store(&o->adding[b], 0);
    bwi_beside_wake(o->beside);
}

static bool take(bwi_overlap *o, int b)
{
    return atomic_exchange(&o->taken[b], 1) == 0;
}

static bw_status sum_bucket(bwi_exec *exec, bw_context *ctx, int b)
{
    const bwi_plan *plan = exec->plan;
    const bwi_overlap *o = exec->overlap;
    const bwi_block *first = &exec->blocks[o->first[b]], *last = &exec->blocks[o->first[b + 1] - 1];
    size_t bytes = last->gradient + (size_t)last->count * sizeof(float) - first->gradient;
    bwi_rank_sum sum = {.lanes = bwi_plan_division(plan),
                        .used = o->tiles < plan->lanes ? (int)o->tiles : plan->lanes,
                        .stride = plan->lane_bytes,
                        .count = (int64_t)(bytes / sizeof(float))};
    return bwi_rank_sum_lanes(ctx, bwi_exec_lane(exec, 0) + first->gradient, &sum);
}

static bw_status sum_buckets(void *user, bw_context *ctx)
{
    bwi_exec *exec = user;
    bwi_overlap *o = exec->overlap;
    bw_status status = BW_OK;
    for (int b = o->from - 1; b >= o->to && status == BW_OK; b--) {
        bwi_beside_await(o->beside, &o->lanes[b]);
        if (take(o, b)) {
            for (int64_t number = o->first[b]; number < o->first[b + 1]; number++) {
                bwi_exec_add_lanes(exec, o->tiles, number);
            }
        } else {
            bwi_beside_await(o->beside, &o->adding[b]);
        }
        status = sum_bucket(exec, ctx, b);
    }
    return status;
}

static void start(bwi_exec *exec, int to, int lanes, int64_t tiles)
{
    bwi_overlap *o = exec->overlap;
    o->from = o->next;
    o->next = o->to = to;
    o->tiles = tiles;
    for (int b = o->to; b < o->from; b++) {
        atomic_store(&o->lanes[b], lanes);
        atomic_store(&o->taken[b], 0);
        atomic_store(&o->adding[b], 1);
    }
    bwi_beside_start(o->beside, sum_buckets, exec);
}

/* The number of this rank's lanes that have a tile of the present piece. */
static int lanes_with_tiles(const bwi_exec *exec, int64_t tiles)
{
    const bwi_plan *plan = exec->plan;
    int lanes = 0;
    for (int64_t k = 0; k < tiles && k < plan->lanes; k++) {
        int64_t lane = ((exec->tiles + k) & (plan->lanes - 1)) - plan->first_lane;
        lanes += lane >= 0 && lane < plan->own_lanes;
    }
    return lanes;
}

bool bwi_overlap_begin(bwi_exec *exec)
{
    bwi_overlap *o = exec->overlap;
    int64_t tiles = bwi_tiles_of(exec->piece.count, exec->plan->tile);
    if (!o || !exec->piece.last || exec->end < tiles || exec->hooks.lane_gradient || exec->hooks.lane_norm) {
        return false;
    }
    int to = o->next;
    while (to > 0 && o->phase[exec->program * o->count + to - 1] <= exec->phase) {
        to--;
    }
    if (to == o->next) {
        return false;
    }
    start(exec, to, lanes_with_tiles(exec, tiles), exec->tiles + tiles);
    return true;
}

int bwi_overlap_pause(const bwi_exec *exec, int n, int *bucket)
{
    const bwi_overlap *o = exec->overlap;
    *bucket = o->from - 1 - n;
    return *bucket >= o->to ? o->end[exec->program * o->count + *bucket] : -1;
}

void bwi_overlap_lane_done(const bwi_exec *exec, int bucket)
{
    const bwi_overlap *o = exec->overlap;
    if (atomic_fetch_sub(&o->lanes[bucket], 1) == 1) {
        bwi_beside_wake(o->beside);
    }
}

/* If tiles failed, their lanes are complete as far as the sums go; nobody will use these. */
bw_status bwi_overlap_end(bwi_exec *exec)
{
    bwi_overlap *o = exec->overlap;
    for (int b = o->from - 1; b >= o->to; b--) {
        atomic_store(&o->lanes[b], 0);
    }
    bwi_beside_wake(o->beside);
    for (int b = o->from - 1; b >= o->to; b--) {
        if (take(o, b)) {
            bwi_update_add_lanes(exec, o->tiles, o->first[b], o->first[b + 1]);
            end_adding(o, b);
        }
    }
    uint64_t begin = bwi_exec_clock(exec);
    bw_status status = bwi_beside_wait(o->beside);
    bwi_exec_timed(exec, 0, BWI_PART_RANKS, begin);
    return status;
}

bw_status bwi_overlap_finish(bwi_exec *exec)
{
    bwi_overlap *o = exec->overlap;
    if (o->next == 0) {
        return BW_OK;
    }
    start(exec, 0, 0, exec->tiles);
    return bwi_overlap_end(exec);
}
