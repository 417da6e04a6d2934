/*
 * Takes a piece of samples through a program, phase after phase. Each phase has tiles, which are shared out by lanes, and an
 * epilogue, in which lanes, then ranks, meet and whole-batch ops finish their statistics.
 */
#include "exec/internal.h"

#include <string.h>

/* Below this many floating-point operations a second worker costs more than it saves (about 12 microseconds). */
static const double WORTH_WAKING = 1e6;

static size_t sums_bytes(const bwi_plan *plan)
{
    return plan->lane_bytes - plan->lane_sums;
}

static void fail_worker(bwi_exec *exec, int worker, bw_status status)
{
    exec->workers[worker].status = status;
    atomic_store(&exec->failed, 1);
}

/* Runs tiles k, k + lanes, ..., which are those of one lane. The first `lanes` tiles of a piece are the first of their lanes. */
static void run_lane(bwi_exec *exec, int worker, int lane, int64_t k, int64_t step)
{
    const bwi_plan *plan = exec->plan;
    for (; k < exec->end; k += step) {
        if (atomic_load_explicit(&exec->failed, memory_order_relaxed)) {
            return;
        }
        if (bwi_cancelled(exec->ctx)) {
            fail_worker(exec, worker, BW_CANCELLED);
            return;
        }
        if (k < plan->lanes) {
            bwi_exec_memory(exec)->clear(bwi_exec_lane(exec, lane) + plan->lane_sums, sums_bytes(plan));
        }
        bw_status status = bwi_exec_run_tile(exec, worker, lane, k);
        if (status != BW_OK) {
            fail_worker(exec, worker, status);
            return;
        }
    }
}

/* The lane of tile k of the piece, counted from this rank's first; below 0, or own_lanes or more, it is another rank's. */
static int lane_at(const bwi_exec *exec, int64_t k)
{
    return (int)((exec->tiles + k) & (exec->plan->lanes - 1)) - exec->plan->first_lane;
}

static bool is_own(const bwi_exec *exec, int lane)
{
    return lane >= 0 && lane < exec->plan->own_lanes;
}

static void run_lanes(void *user, int worker)
{
    bwi_exec *exec = user;
    int64_t step = exec->by_turns ? exec->end : exec->plan->lanes;
    int setting = exec->foreign ? exec->plan->kernels->convolution->begin() : 0;
    uint64_t begin = bwi_exec_clock(exec);
    int tried = 0;
    exec->workers[worker].waited = 0;
    for (int64_t n; (n = bwi_exec_next(exec, worker, &tried)) >= 0;) {
        int64_t k = exec->begin + n;
        int lane = lane_at(exec, k);
        if (is_own(exec, lane)) {
            run_lane(exec, worker, lane, k, step);
        }
    }
    bwi_exec_timed(exec, worker, BWI_PART_SHARE, begin ? begin + exec->workers[worker].waited : 0);
    if (exec->foreign) {
        exec->plan->kernels->convolution->end(setting);
    }
}

/* Whether waking others costs less than they save; training takes three times the work of the forward pass. */
static bool is_worth_waking(const bwi_exec *exec, int64_t tiles, double samples, bool training)
{
    return tiles > 1 && exec->flops * samples * (training ? 3 : 1) >= WORTH_WAKING;
}

static int workers_for(const bwi_exec *exec)
{
    const bwi_plan *plan = exec->plan;
    int64_t tiles = exec->end - exec->begin;
    if (!is_worth_waking(exec, tiles, (double)exec->piece.count, plan->programs[exec->program].program.training)) {
        return 1;
    }
    return tiles < plan->tile_workers ? (int)tiles : plan->tile_workers;
}

/* Splitting, as bwi_split_fit decides it, as far as it depends on the plan: samples that are made ahead are not split. */
bwi_sharing bwi_exec_shares(const bwi_exec *exec, double samples)
{
    const bwi_plan *plan = exec->plan;
    const bwi_phase *first = &plan->programs[0].phases[0];
    int64_t tiles = bwi_tiles_of((int64_t)(samples + 0.5), plan->tile);
    bwi_sharing s = {.samples = samples,
                     .tile = plan->tile,
                     .lanes = plan->own_lanes,
                     .phases = plan->programs[0].phase_count,
                     .ranks = plan->ranks,
                     .weights = bwi_plan_gradient_bytes(plan)};
    s.split = plan->split_tiles && first->deferred && tiles <= plan->split_tiles;
    s.defers = s.split || plan->joined;
    s.tiles = s.split ? tiles > 1 : is_worth_waking(exec, tiles, samples, true);
    s.update = bwi_update_is_shared(exec, tiles);
    s.meetings = (s.split ? first->count : s.tiles ? s.phases : 0) + 2 * s.update;
    return s;
}

/* Returns the worst status of this rank's workers. The message comes from running the piece again, one sample at a time, so that
 * it names the first sample at fault, whichever worker met it. */
static bw_status collect(bwi_exec *exec)
{
    bw_status worst = BW_OK;
    int at = 0;
    if (!atomic_load_explicit(&exec->failed, memory_order_relaxed)) {
        return BW_OK;
    }
    for (int w = 0; w < exec->plan->workers; w++) {
        if (exec->workers[w].status > worst) {
            worst = exec->workers[w].status;
            at = w;
        }
        exec->workers[w].status = BW_OK;
    }
    if (worst == BW_OK || worst == BW_CANCELLED) {
        return worst;
    }
    char error[BWI_ERROR_TEXT]; /* running again writes over it */
    memcpy(error, exec->workers[at].error, sizeof error);
    bw_status again = bwi_exec_replay(exec, false);
    return again != BW_OK ? again : bwi_fail(exec->ctx, worst, "%s", error);
}

/* Adds the lanes' sums as a binary tree into the first lane, and continues over ranks; lanes without a tile in this piece are
 * cleared first. The sums of a single tile need no adding. `result` is the lane that has them. */
static bw_status sum_lanes(bwi_exec *exec, int64_t tiles, int *result)
{
    const bwi_plan *plan = exec->plan;
    int64_t count = (int64_t)(sums_bytes(plan) / sizeof(double)), stride = (int64_t)(plan->lane_bytes / sizeof(double));
    *result = tiles == 1 && plan->ranks == 1 ? lane_at(exec, 0) : 0;
    if (tiles == 1 && plan->ranks == 1) {
        return BW_OK;
    }
    for (int64_t k = tiles; k < plan->lanes; k++) {
        if (is_own(exec, lane_at(exec, k))) {
            bwi_exec_memory(exec)->clear(bwi_exec_lane(exec, lane_at(exec, k)) + plan->lane_sums, sums_bytes(plan));
        }
    }
    void *sums = bwi_exec_lane(exec, 0) + plan->lane_sums;
    int first = plan->first_lane, end = first + plan->own_lanes;
    for (int lane = first, size; lane < end; lane += size) {
        size = bwi_subtree(lane, end);
        void *own = bwi_exec_lane(exec, lane - first) + plan->lane_sums;
        plan->kernels->lanes->sum_doubles(count, size, stride, own);
    }
    if (plan->ranks == 1) {
        return BW_OK;
    }
    uint64_t begin = bwi_exec_clock(exec);
    bwi_rank_sum sum = {
        .doubles = true, .lanes = bwi_plan_division(plan), .used = plan->lanes, .stride = plan->lane_bytes, .count = count};
    bw_status status = bwi_rank_sum_lanes(exec->ctx, sums, &sum);
    bwi_exec_timed(exec, 0, BWI_PART_RANKS, begin);
    return status;
}

/* A node's sums belong to the phase that made them: there they are turned into statistics or, if only the host needs them, read. */
static void finish_phase(bwi_exec *exec, int from)
{
    const bwi_plan *plan = exec->plan;
    const bwi_bound_phase *phase = &exec->phases[exec->program][exec->phase];
    const bwi_bound *list = bwi_exec_bound(exec, exec->program, exec->phase, 0, plan->sizes - 1);
    const unsigned char *lane = bwi_exec_lane(exec, from);
    for (int n = phase->first_summed; n < phase->count; n++) {
        const bwi_call *call = &list[n].call;
        if (list[n].summed == 0) {
            continue;
        }
        if (list[n].finish) {
            list[n].finish(call, lane + call->sums, exec->piece.count);
        } else {
            double *total = exec->totals + (call->sums - plan->lane_sums) / sizeof(double);
            bwi_exec_memory(exec)->read(total, lane + call->sums, (size_t)list[n].summed * sizeof *total);
        }
    }
}

/* Runs the tiles from exec->begin to exec->end. */
static bw_status run_tiles(bwi_exec *exec)
{
    int workers = workers_for(exec);
    int64_t tiles = exec->end - exec->begin, lanes = exec->plan->lanes;
    /* Samples that are made ahead come in the order of tiles. */
    bool in_order = workers == 1 || bwi_dataset_begins(exec->piece.dataset);
    exec->by_turns = workers > exec->plan->own_lanes;
    if (exec->by_turns) {
        bwi_turns_begin(exec);
        bwi_exec_share_out(exec, 1, tiles);
    } else {
        bwi_exec_share_out(exec, in_order ? 1 : workers, tiles < lanes ? tiles : lanes);
    }
    atomic_store_explicit(&exec->failed, 0, memory_order_relaxed);
    exec->beside = exec->overlap && bwi_overlap_begin(exec);
    if (bwi_split_fit(exec)) {
        bwi_split_run(exec);
    } else {
        bwi_exec_share(exec, workers, run_lanes, exec);
        exec->deferred = bwi_split_stages(exec) ? BWI_DEFERRED_STAGED : exec->deferred;
    }
    bw_status summed = exec->beside ? bwi_overlap_end(exec) : BW_OK;
    bw_status status = collect(exec);
    if (status == BW_OK && summed != BW_OK) {
        return summed;
    }
    if (exec->plan->ranks > 1) {
        uint64_t begin = bwi_exec_clock(exec);
        bw_status all = exec->rank->agree(exec->ctx, status);
        bwi_exec_timed(exec, 0, BWI_PART_RANKS, begin);
        status = status != BW_OK ? status : all;
    }
    return status;
}

static bw_status run_phase(bwi_exec *exec)
{
    bw_status status = BW_OK;
    int64_t tiles = bwi_tiles_of(exec->piece.count, exec->plan->tile);
    for (exec->begin = 0; exec->begin < tiles && status == BW_OK; exec->begin = exec->end) {
        status = bwi_records_begin(exec, exec->begin, &exec->end);
        if (status == BW_OK) {
            status = run_tiles(exec);
        }
    }
    int lane = 0;
    if (status == BW_OK) {
        status = sum_lanes(exec, tiles, &lane);
    }
    if (status == BW_OK) {
        finish_phase(exec, lane);
    }
    return status;
}

bw_status bwi_exec_prologues(bwi_exec *exec, int phase)
{
    const bwi_bound_phase *bound = &exec->phases[exec->program][phase];
    const bwi_bound *list = bwi_exec_bound(exec, exec->program, phase, 0, exec->plan->sizes - 1);
    for (int n = 0; bound->opens && n < bound->count; n++) {
        bw_status status = list[n].opens ? list[n].call.node->op->kernels->prologue(&list[n].call) : BW_OK;
        if (status != BW_OK) {
            return bwi_fail(exec->ctx, status, "layer %s could not prepare its weights", list[n].call.node->name);
        }
    }
    return BW_OK;
}

/* Once per update, or before each phase. */
static bw_status run_prologues(bwi_exec *exec, int first, int end)
{
    bw_status status = BW_OK;
    uint64_t begin = bwi_exec_clock(exec);
    for (int phase = first; phase < end && status == BW_OK; phase++) {
        status = bwi_exec_prologues(exec, phase);
    }
    bwi_exec_timed(exec, 0, BWI_PART_PREPARE, begin);
    exec->fresh |= (uint64_t)(status == BW_OK) << exec->program;
    return status;
}

/* The sample that made a layer's statistics infinite or NaN, if one shows it. */
static bw_status name_statistics(bwi_exec *exec, const bw_node *node)
{
    exec->nonfinite = true;
    exec->phase = exec->plan->programs[exec->program].phase_count - 1;
    exec->beyond = 0x1p60;
    int setting = exec->plan->kernels->convolution->begin();
    bw_status status = bwi_exec_replay(exec, true);
    exec->plan->kernels->convolution->end(setting);
    exec->beyond = 0;
    if (status == BW_OK) {
        status = bwi_fail(exec->ctx, BW_INVALID_ARGUMENT, "layer %s: the mean or variance of the batch is not finite", node->name);
        bwi_locate(exec->ctx, bwi_in_layer(node->name));
    }
    return status;
}

static bw_status feed(bwi_exec *exec)
{
    const bwi_plan_program *program = &exec->plan->programs[exec->program];
    bool by_phase = exec->plan->prologues_by_phase, fresh = by_phase || ((exec->fresh | exec->unopened) >> exec->program & 1);
    bw_status status = fresh ? BW_OK : run_prologues(exec, 0, program->phase_count);
    for (exec->phase = 0; status == BW_OK && exec->phase < program->phase_count; exec->phase++) {
        status = by_phase ? run_prologues(exec, exec->phase, exec->phase + 1) : BW_OK;
        status = status == BW_OK ? run_phase(exec) : status;
    }
    const bw_node *bad = status == BW_OK && exec->moving_count ? bwi_moving_advance(exec) : NULL;
    return bad ? name_statistics(exec, bad) : status;
}

/* Tells the data which samples come next, so that slow ones are made ahead. */
static bw_status begin_data(bwi_exec *exec, const bwi_piece *piece)
{
    const bwi_plan *plan = exec->plan;
    if (piece->scattered || !bwi_dataset_begins(piece->dataset)) {
        return BW_OK;
    }
    bwi_gather_schedule schedule = {.epoch = piece->epoch,
                                    .unaugmented = piece->unaugmented,
                                    .again = plan->programs[exec->program].phase_count > 1,
                                    .budget = exec->data_budget,
                                    .first = piece->first,
                                    .count = piece->count,
                                    .tile = plan->tile,
                                    .lanes = plan->lanes,
                                    .workers = plan->workers,
                                    .first_lane = plan->first_lane,
                                    .own_lanes = plan->own_lanes};
    uint64_t begin = bwi_exec_clock(exec);
    bw_status status = bwi_dataset_begin(piece->dataset, &schedule);
    bwi_exec_timed(exec, 0, BWI_PART_DATA, begin);
    if (plan->ranks > 1) {
        bw_status all = exec->rank->agree(exec->ctx, status);
        status = status != BW_OK ? status : all;
    }
    return status;
}

/* Its own copy of the piece is not read at once: it is made by vectors, which wait for what the caller has just stored in parts. */
static bw_status feed_piece(bwi_exec *exec, int program, const bwi_piece *piece, float *const *predictions)
{
    exec->program = program;
    exec->piece = *piece;
    exec->predictions = predictions;
    bw_status status = begin_data(exec, piece);
    /* Numbers that were found ahead belong to the window: a feed in between leaves them alone. */
    if (status == BW_OK && exec->plan->programs[program].program.training && !piece->numbers) {
        exec->piece.numbers = bwi_numbers_ahead(&exec->ahead, piece->dataset, piece->epoch, piece->first, piece->count);
    }
    bwi_float_begin(exec->ctx);
    if (status == BW_OK) {
        status = feed(exec);
    }
    bwi_float_end(exec->ctx);
    return status;
}

/* Feeds samples that do not train, so the window stays as it is. */
static bw_status feed_aside(bwi_exec *exec, int program, const bwi_piece *piece, float *const *predictions)
{
    int64_t samples = exec->samples, tiles = exec->tiles;
    int window_program = exec->program;
    bwi_piece window_piece = exec->piece;
    exec->samples = exec->tiles = 0;
    bw_status status = feed_piece(exec, program, piece, predictions);
    exec->samples = samples;
    exec->tiles = tiles;
    exec->program = window_program;
    exec->piece = window_piece;
    return status;
}

/* Samples that do not train leave the window as it is. A failure in training loses it, since its sums are no longer those of
 * whole samples. */
bw_status bwi_exec_feed(bwi_exec *exec, int program, const bwi_piece *piece, float *const *predictions)
{
    const bwi_plan *plan = exec->plan;
    bool training = plan->programs[program].program.training;
    if (piece->count < 1) {
        return bwi_fail(exec->ctx, BW_INVALID_ARGUMENT, "batch: expected at least 1 sample, got %lld", (long long)piece->count);
    }
    int64_t tiles = bwi_tiles_of(piece->count, plan->tile);
    bool beyond = plan->store_by_sample ? piece->count > plan->store_tiles * plan->tile : tiles > plan->most_tiles;
    if (training && (plan->store_slot || plan->spill_slot) && beyond) {
        return bwi_fail(exec->ctx, BW_INVALID_ARGUMENT, "batch: the plan is for batches of at most %lld samples, got %lld",
                        (long long)plan->batch, (long long)piece->count);
    }
    if (training && plan->joined && (exec->tiles > 0 || piece->count > plan->window)) {
        return bwi_fail(exec->ctx, BW_INTERNAL, "the plan is for windows of one piece of at most %lld samples",
                        (long long)plan->window);
    }
    if (training && exec->overlap && !bwi_overlap_is_reset(exec)) {
        return bwi_fail(exec->ctx, BW_INTERNAL, "a piece follows the last one of a window");
    }
    bwi_split_settle(exec); /* its tiles' values are about to be overwritten */
    if (!training) {
        return feed_aside(exec, program, piece, predictions);
    }
    bw_status status = feed_piece(exec, program, piece, predictions);
    if (status == BW_OK) {
        exec->samples += piece->count;
        exec->tiles += tiles;
    } else {
        bwi_exec_clear(exec);
    }
    return status;
}

const double *bwi_exec_sums(const bwi_exec *exec, const bw_node *node)
{
    const bwi_plan *plan = exec->plan;
    const bw_node *lowered = plan->lowered[node->number];
    return exec->totals + (plan->sums[lowered->number] - plan->lane_sums) / sizeof(double);
}

int64_t bwi_exec_samples(const bwi_exec *exec)
{
    return exec->samples;
}

void bwi_exec_clear(bwi_exec *exec)
{
    exec->samples = exec->tiles = 0;
    exec->deferred = BWI_DEFERRED_NONE;
    exec->fresh = 0;
    if (exec->overlap) {
        bwi_overlap_reset(exec);
    }
    bwi_records_clear(exec);
}

void bwi_exec_touch(bwi_exec *exec)
{
    exec->fresh = 0;
}
