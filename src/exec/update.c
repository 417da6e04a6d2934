/*
 * The update: the lanes are added as a binary tree, in fixed blocks that the workers share; ranks continue the same tree; the
 * result is checked for NaN and infinity; then comes the commit, which cannot fail.
 */
#include "exec/internal.h"

#include <math.h>
#include <string.h>

/* Below this many floats the caller's thread is faster alone. The larger number is for a gradient that it computed alone: as
 * long as the weights and two slots stay in its second-level cache, nothing has to come from another's. */
enum { WORTH_SHARING = 4 * BWI_UPDATE_BLOCK, WORTH_MOVING = 16 * BWI_UPDATE_BLOCK };

/* The number of this rank's lanes that hold anything in a window of `tiles` tiles. */
static int lanes_of(const bwi_exec *exec, int64_t tiles)
{
    int64_t used = tiles - exec->plan->first_lane;
    return used < 0 ? 0 : used > exec->plan->own_lanes ? exec->plan->own_lanes : (int)used;
}

static int used_lanes(const bwi_exec *exec)
{
    return lanes_of(exec, exec->tiles);
}

static void *gradient_at(const bwi_exec *exec, int lane, size_t gradient)
{
    return bwi_exec_lane(exec, lane) + gradient;
}

static void *variable_gradient(const bwi_exec *exec, int lane, const bwi_variable *variable)
{
    return gradient_at(exec, lane, exec->plan->gradients[variable->index]);
}

/* Whether a lane has a gradient of the variable: joined lanes have but one, at the first. */
static bool has_gradient(const bwi_exec *exec, int lane, int variable)
{
    size_t at = exec->plan->gradients[variable];
    return at != SIZE_MAX && (lane == 0 || at < exec->plan->lane_bytes);
}

static double sum_block(const bwi_exec *exec, int64_t count, int lanes, void *gradient)
{
    const bwi_plan *plan = exec->plan;
    int64_t stride = (int64_t)(plan->lane_bytes / sizeof(float));
    if (exec->norms_wanted) {
        return plan->kernels->lanes_sum(count, lanes, stride, gradient);
    }
    bool moderate = plan->kernels->lanes_sum_moderate(count, lanes, stride, gradient);
    return moderate ? 0 : plan->kernels->sum_of_squares(count, gradient);
}

/* Each subtree of this rank's run of lanes is summed into its first lane; what is beyond the used lanes is passed over. A rank
 * without tiles adds nothing: x + -0.0 is x for every x. */
void bwi_exec_add_lanes(const bwi_exec *exec, int64_t tiles, int64_t number)
{
    const bwi_plan *plan = exec->plan;
    const bwi_block *block = &exec->blocks[number];
    int begin = plan->first_lane, end = begin + plan->own_lanes, used = lanes_of(exec, tiles);
    int64_t stride = (int64_t)(plan->lane_bytes / sizeof(float));
    if (used == 0) {
        bwi_exec_memory(exec)->fill(block->count, -0.0F, gradient_at(exec, 0, block->gradient));
    }
    for (int lane = begin, size; lane < begin + used; lane += size) {
        size = bwi_subtree(lane, end);
        int left = begin + used - lane, lanes = size < left ? size : left;
        if (lanes > 1) {
            (void)plan->kernels->lanes_sum_moderate(block->count, lanes, stride, gradient_at(exec, lane - begin, block->gradient));
        }
    }
}

static void reduce_block(bwi_exec *exec, int worker, int64_t number)
{
    (void)worker;
    const bwi_block *block = &exec->blocks[number];
    if (exec->deferred && block->defers) {
        exec->norms[number] = 0; /* known to be finite */
        return;
    }
    void *gradient = gradient_at(exec, 0, block->gradient);
    int lanes = exec->plan->joined && block->defers ? 1 : used_lanes(exec);
    if (lanes == 0) {
        bwi_exec_memory(exec)->fill(block->count, -0.0F, gradient);
    }
    exec->norms[number] = sum_block(exec, block->count, lanes ? lanes : 1, gradient);
}

static void add_block(bwi_exec *exec, int worker, int64_t number)
{
    (void)worker;
    bwi_exec_add_lanes(exec, exec->added_tiles, exec->added_first + number);
}

/* Once the lanes are added, finds the norm of their sum, or whether it is finite. */
static void check_block(bwi_exec *exec, int worker, int64_t number)
{
    (void)worker;
    const bwi_block *block = &exec->blocks[number];
    exec->norms[number] = sum_block(exec, block->count, 1, gradient_at(exec, 0, block->gradient));
}

/* Whether all gradients may be added at once: few, and nothing but that they are moderate has to be known. */
static bool is_whole(const bwi_exec *exec)
{
    const bwi_plan *plan = exec->plan;
    return plan->lane_sums <= BWI_UPDATE_BLOCK * sizeof(float) && plan->ranks == 1 && plan->table_count == 0 &&
           !exec->norms_wanted && !exec->deferred && !plan->joined;
}

static bool reduce_whole(bwi_exec *exec)
{
    const bwi_plan *plan = exec->plan;
    int64_t floats = (int64_t)(plan->lane_sums / sizeof(float)), stride = (int64_t)(plan->lane_bytes / sizeof(float));
    uint64_t begin = bwi_exec_clock(exec);
    bool moderate = plan->kernels->lanes_sum_moderate(floats, used_lanes(exec), stride, gradient_at(exec, 0, 0));
    bwi_exec_timed(exec, 0, BWI_PART_REDUCE, begin);
    return moderate;
}

static void update_block(bwi_exec *exec, int worker, int64_t number)
{
    if (number < exec->block_count) {
        const bwi_block *block = &exec->blocks[number];
        if (exec->portions) {
            bwi_portion_commit(exec, number);
        } else if (!exec->deferred || !block->defers) {
            exec->updater.take(exec->updater.user, block->variable, block->first, block->count,
                               gradient_at(exec, 0, block->gradient));
        }
        return;
    }
    int64_t record = number - exec->block_count, records = bwi_records_blocks(exec);
    if (record < records) {
        bwi_records_update(exec, worker, record);
    } else {
        bwi_split_part(exec, worker, record - records, &exec->updater);
    }
}

static void portion_block(bwi_exec *exec, int worker, int64_t number)
{
    if (bwi_portion_has(exec, number)) {
        bwi_portion_update(exec, worker, number);
    }
}

static void visit_block(bwi_exec *exec, int worker, int64_t number)
{
    (void)worker;
    const bwi_block *block = &exec->blocks[number];
    if (exec->portion_only && !bwi_portion_has(exec, number)) {
        exec->norms[number] = 0;
        return;
    }
    exec->norms[number] =
        exec->visitor(exec->visit_user, block->variable, block->first, block->count, gradient_at(exec, 0, block->gradient));
}

static void scale_block(bwi_exec *exec, int worker, int64_t number)
{
    (void)worker;
    const bwi_block *block = &exec->blocks[number];
    int lanes = exec->plan->joined && block->defers ? 1 : used_lanes(exec);
    for (int lane = 0; lane < lanes; lane++) {
        exec->plan->kernels->lanes->scale(block->count, exec->factor, gradient_at(exec, lane, block->gradient));
    }
}

typedef struct sharing {
    bwi_exec *exec;
    void (*work)(bwi_exec *exec, int worker, int64_t number);
    int64_t count;
    int part; /* of the ledger */
} sharing;

static void share(void *user, int worker)
{
    const sharing *s = user;
    bwi_exec *exec = s->exec;
    uint64_t begin = bwi_exec_clock(exec);
    int tried = 0;
    for (int64_t number; (number = bwi_exec_next(exec, worker, &tried)) >= 0;) {
        s->work(exec, worker, number);
    }
    bwi_exec_timed(exec, worker, s->part, begin);
}

static bool is_shared(int64_t tiles, int64_t floats)
{
    return floats >= (tiles == 1 ? WORTH_MOVING : WORTH_SHARING);
}

bool bwi_update_is_shared(const bwi_exec *exec, int64_t tiles)
{
    return is_shared(tiles, (int64_t)(bwi_plan_gradient_bytes(exec->plan) / sizeof(float)));
}

static void share_work(bwi_exec *exec, sharing *s, bool shared)
{
    if (!shared) {
        uint64_t begin = bwi_exec_clock(exec);
        for (int64_t number = 0; number < s->count; number++) {
            s->work(exec, 0, number);
        }
        bwi_exec_timed(exec, 0, s->part, begin);
        return;
    }
    bwi_exec_share_out(exec, exec->plan->workers, s->count);
    bwi_exec_share(exec, exec->plan->workers, share, s);
}

/* Shares out all blocks of dense variables, then `more`. */
static void share_blocks(bwi_exec *exec, void (*work)(bwi_exec *exec, int worker, int64_t number), int64_t more, int part)
{
    int64_t floats = (int64_t)(bwi_plan_gradient_bytes(exec->plan) / sizeof(float)) + more * BWI_UPDATE_BLOCK;
    sharing s = {.exec = exec, .work = work, .count = exec->block_count + more, .part = part};
    share_work(exec, &s, is_shared(exec->tiles, floats));
}

void bwi_update_add_lanes(bwi_exec *exec, int64_t tiles, int64_t first, int64_t end)
{
    sharing s = {.exec = exec, .work = add_block, .count = end - first, .part = BWI_PART_REDUCE};
    exec->added_tiles = tiles;
    exec->added_first = first;
    share_work(exec, &s, is_shared(tiles, (end - first) * BWI_UPDATE_BLOCK));
}

/* Tile t of the window has its samples in lane t mod lanes. Only whole pieces are known here: the last one may have
 * smaller tiles at its end. */
static void report_lane_norms(bwi_exec *exec)
{
    const bwi_plan *plan = exec->plan;
    for (int lane = 0; lane < used_lanes(exec); lane++) {
        double squared = bwi_records_lane_norm(exec, lane);
        for (int v = 0; v < plan->source->variable_count; v++) {
            if (has_gradient(exec, lane, v)) {
                const bwi_variable *variable = plan->source->variables[v];
                squared += plan->kernels->sum_of_squares(variable->count, variable_gradient(exec, lane, variable));
            }
        }
        int64_t samples = 0, tiles = bwi_tiles_of(exec->piece.count, plan->tile);
        for (int64_t k = 0; k < tiles; k++) {
            int64_t first;
            int size;
            bwi_tile_at(exec->piece.count, plan->tile, k, &first, &size);
            samples += k % plan->lanes == plan->first_lane + lane ? (int64_t)1 << size : 0;
        }
        exec->hooks.lane_norm(exec->hooks.user, lane, squared, samples);
    }
}

static bwi_rank_sum rank_sum(const bwi_plan *plan, int64_t tiles)
{
    return (bwi_rank_sum){.lanes = bwi_plan_division(plan),
                          .used = tiles < plan->lanes ? (int)tiles : plan->lanes,
                          .stride = plan->lane_bytes,
                          .count = (int64_t)(plan->lane_sums / sizeof(float))};
}

size_t bwi_update_ranks_bytes(const bwi_plan *plan)
{
    bwi_rank_sum sum = rank_sum(plan, plan->lanes);
    return plan->ranks > 1 && plan->programs[0].program.training ? bwi_rank_sum_bytes(plan->ctx, &sum) : 0;
}

/* Adds the lanes, then the ranks, as far as that has not been done beside the backward pass. */
static bw_status sum_ranks(bwi_exec *exec)
{
    const bwi_plan *plan = exec->plan;
    bw_status status;
    if (exec->overlap) {
        status = bwi_overlap_finish(exec);
    } else {
        bwi_update_add_lanes(exec, exec->tiles, 0, exec->block_count);
        uint64_t begin = bwi_exec_clock(exec);
        bwi_rank_sum sum = rank_sum(plan, exec->tiles);
        status = bwi_rank_sum_lanes(exec->ctx, bwi_exec_lane(exec, 0), &sum);
        bwi_exec_timed(exec, 0, BWI_PART_RANKS, begin);
    }
    if (status == BW_OK) {
        share_blocks(exec, check_block, 0, BWI_PART_REDUCE);
    }
    return status;
}

static bw_status replay_last(bwi_exec *exec)
{
    exec->phase = exec->plan->programs[exec->program].phase_count - 1;
    int64_t samples = exec->samples;
    exec->samples -= exec->piece.count;
    const bwi_convolution_kernels *convolution = exec->plan->kernels->convolution;
    int setting = convolution->begin();
    bw_status status = bwi_exec_replay(exec, true);
    convolution->end(setting);
    exec->samples = samples;
    return status;
}

static bool lanes_are_finite(const bwi_exec *exec)
{
    const bwi_plan *plan = exec->plan;
    double squared = 0;
    for (int lane = 0; lane < used_lanes(exec); lane++) {
        for (int v = 0; v < plan->source->variable_count; v++) {
            const bwi_variable *variable = plan->source->variables[v];
            squared += has_gradient(exec, lane, v)
                           ? plan->kernels->sum_of_squares(variable->count, variable_gradient(exec, lane, variable))
                           : 0;
        }
    }
    return isfinite(squared) && bwi_records_are_finite(exec);
}

bw_status bwi_exec_examine(bwi_exec *exec)
{
    bwi_float_begin(exec->ctx);
    bwi_split_settle(exec);
    bw_status status = lanes_are_finite(exec) ? BW_OK : BW_INVALID_ARGUMENT;
    if (exec->plan->ranks > 1) {
        status = exec->rank->agree(exec->ctx, status);
    }
    if (status == BW_INVALID_ARGUMENT) {
        status = replay_last(exec);
        status = status != BW_OK ? status : bwi_fail(exec->ctx, BW_INVALID_ARGUMENT, "a gradient is not finite");
    }
    bwi_float_end(exec->ctx);
    if (status != BW_OK) {
        bwi_exec_clear(exec);
    }
    return status;
}

void bwi_exec_forget(bwi_exec *exec)
{
    exec->piece.dataset = NULL;
    exec->piece.numbers = NULL;
    exec->ahead.dataset = NULL;
}

/* Runs the last piece again, if its samples are still there. If no tensor is at fault, the sum of finite gradients overflowed. */
static bw_status name_nonfinite(bwi_exec *exec)
{
    exec->nonfinite = true;
    bw_status status = exec->piece.dataset ? replay_last(exec) : BW_OK;
    if (status != BW_OK) {
        return status;
    }
    for (int64_t number = 0; number < exec->block_count; number++) {
        if (!isfinite(exec->norms[number])) {
            return bwi_fail(exec->ctx, BW_INVALID_ARGUMENT, "the gradient of %s is not finite",
                            exec->blocks[number].variable->name);
        }
    }
    for (int t = 0; t < exec->plan->table_count; t++) {
        if (!isfinite(exec->tables[t].squared)) {
            return bwi_fail(exec->ctx, BW_INVALID_ARGUMENT, "the gradient of %s is not finite",
                            exec->tables[t].records.variable->name);
        }
    }
    return bwi_fail(exec->ctx, BW_INTERNAL, "a gradient is not finite");
}

static bw_status fail_overflow(const bwi_exec *exec, const bwi_variable *variable)
{
    return bwi_fail(exec->ctx, BW_INVALID_ARGUMENT,
                    "the update of %s would not be finite; nothing was changed: lower the learning rate, clip the "
                    "gradients or scale the inputs",
                    variable->name);
}

/* A sample whose numbers are far beyond what squares of floats can hold is at fault, if there is one; otherwise it is the step.
 * Without a variable, another rank has found it, and its message is there already. */
static bw_status name_overflow(bwi_exec *exec, const bwi_variable *variable)
{
    exec->nonfinite = true;
    exec->beyond = 0x1p60;
    bw_status status = exec->piece.dataset ? replay_last(exec) : BW_OK;
    exec->beyond = 0;
    return status != BW_OK ? status : variable ? fail_overflow(exec, variable) : BW_INVALID_ARGUMENT;
}

bool bwi_exec_was_nonfinite(bwi_exec *exec)
{
    bool was = exec->nonfinite;
    exec->nonfinite = false;
    return was;
}

double bwi_exec_squared_norm(const bwi_exec *exec, const bwi_variable *variable)
{
    double squared = 0;
    for (int t = 0; t < exec->plan->table_count; t++) {
        squared += !variable || variable == exec->tables[t].records.variable ? exec->tables[t].squared : 0;
    }
    for (int64_t number = 0; number < exec->block_count; number++) {
        squared += !variable || variable == exec->blocks[number].variable ? exec->norms[number] : 0;
    }
    return squared;
}

static bw_status reduce_blocks(bwi_exec *exec, bool added, double *squared_norm)
{
    bw_status status = BW_OK;
    if (exec->plan->ranks > 1) {
        status = sum_ranks(exec);
    } else {
        share_blocks(exec, added ? check_block : reduce_block, 0, BWI_PART_REDUCE);
    }
    if (status == BW_OK) {
        bwi_records_sum(exec);
    }
    double squared = bwi_exec_squared_norm(exec, NULL);
    if (status == BW_OK && !isfinite(squared)) {
        status = name_nonfinite(exec);
    }
    exec->large = !(squared <= BWI_MODERATE * BWI_MODERATE);
    if (squared_norm) {
        *squared_norm = squared;
    }
    return status;
}

/* Deferred gradients stay deferred only if nothing but the update asks for them and they are known to be finite. */
static bw_status reduce(bwi_exec *exec, double *squared_norm, bool report)
{
    if (exec->samples == 0) {
        return bwi_fail(exec->ctx, BW_INVALID_ARGUMENT, "nothing to apply: no sample's gradient was added");
    }
    bwi_float_begin(exec->ctx);
    exec->norms_wanted = squared_norm;
    if (exec->deferred && (exec->norms_wanted || exec->hooks.lane_norm || !bwi_split_bounded(exec))) {
        bwi_split_settle(exec);
    }
    bw_status status = bwi_records_sort(exec);
    if (report && exec->hooks.lane_norm && status == BW_OK) {
        report_lane_norms(exec);
    }
    bool whole = is_whole(exec);
    exec->large = false;
    if (status == BW_OK && !(whole && reduce_whole(exec))) {
        status = reduce_blocks(exec, whole, squared_norm); /* if the whole is not finite, the blocks show where */
    }
    bwi_float_end(exec->ctx);
    if (status != BW_OK) {
        bwi_exec_clear(exec);
    }
    return status;
}

bw_status bwi_exec_reduce(bwi_exec *exec, double *squared_norm)
{
    return reduce(exec, squared_norm, true);
}

/* The sum stays in the first lane of the first rank. All others become -0.0, which changes no sum, so that nothing is counted
 * twice. */
static void resume(bwi_exec *exec)
{
    for (int lane = exec->ctx->rank == 0 ? 1 : 0; lane < used_lanes(exec); lane++) {
        void *gradients = bwi_exec_lane(exec, lane);
        bwi_exec_memory(exec)->fill((int64_t)(exec->plan->lane_sums / sizeof(float)), -0.0F, gradients);
    }
    bwi_overlap_reset(exec);
    bwi_records_resume(exec);
}

bw_status bwi_exec_norm(bwi_exec *exec, double *squared_norm)
{
    bw_status status = reduce(exec, squared_norm, false);
    if (status == BW_OK) {
        resume(exec);
    }
    return status;
}

typedef struct table_reading {
    const bwi_exec *exec;
    const bwi_variable *variable;
    float *values;
} table_reading;

static void read_rows(void *user, const bwi_variable *variable, int64_t first, int64_t count, const void *gradient)
{
    const table_reading *r = user;
    if (variable == r->variable) {
        bwi_exec_memory(r->exec)->read(r->values + first, gradient, (size_t)count * sizeof(float));
    }
}

static void read_table(bwi_exec *exec, const bwi_variable *variable, float *values)
{
    table_reading r = {.exec = exec, .variable = variable, .values = values};
    exec->updater = (bwi_sink){.take = read_rows, .user = &r};
    for (int64_t block = 0; block < bwi_records_blocks(exec); block++) {
        bwi_records_update(exec, 0, block);
    }
}

/* A gradient is stored as its variable is, so what brings that into Keras's order does so with it. */
void bwi_exec_reduced(bwi_exec *exec, const bwi_variable *variable, float *values, const float *replacement)
{
    if (exec->plan->gradients[variable->index] != SIZE_MAX) {
        bwi_variable view = *variable;
        view.data = variable_gradient(exec, 0, variable);
        if (values) {
            bwi_variable_read(&view, values);
        }
        if (replacement) {
            bwi_variable_write(&view, replacement);
        }
    } else if (values) {
        memset(values, 0, (size_t)bwi_shape_count(&variable->shape) * sizeof *values);
        read_table(exec, variable, values);
    }
}

bw_status bwi_exec_gradient(bwi_exec *exec, const bwi_variable *variable, float *values, const float *replacement)
{
    double squared;
    bw_status status = reduce(exec, &squared, false);
    if (status != BW_OK) {
        return status;
    }
    bwi_float_begin(exec->ctx);
    bwi_exec_reduced(exec, variable, values, replacement);
    resume(exec);
    bwi_float_end(exec->ctx);
    return BW_OK;
}

void bwi_exec_scale(bwi_exec *exec, float factor)
{
    bwi_float_begin(exec->ctx);
    bwi_split_settle(exec);
    exec->factor = factor;
    share_blocks(exec, scale_block, 0, BWI_PART_REDUCE);
    bwi_records_scale(exec, factor);
    bwi_float_end(exec->ctx);
}

static void visit_table(void *user, const bwi_variable *variable, int64_t first, int64_t count, const void *gradient)
{
    bwi_exec *exec = user;
    for (int t = 0; t < exec->plan->table_count; t++) {
        if (exec->tables[t].records.variable == variable) {
            exec->tables[t].squared += exec->visitor(exec->visit_user, variable, first, count, gradient);
        }
    }
}

void bwi_exec_visit(bwi_exec *exec, bwi_visit visit, void *user)
{
    bwi_float_begin(exec->ctx);
    exec->visitor = visit;
    exec->visit_user = user;
    share_blocks(exec, visit_block, 0, BWI_PART_REDUCE);
    for (int t = 0; t < exec->plan->table_count; t++) {
        exec->tables[t].squared = 0;
    }
    exec->updater = (bwi_sink){.take = visit_table, .user = exec};
    for (int64_t block = 0; block < bwi_records_blocks(exec); block++) {
        bwi_records_update(exec, 0, block);
    }
    bwi_float_end(exec->ctx);
}

bool bwi_exec_large(const bwi_exec *exec)
{
    return exec->large;
}

static const bwi_variable *find_bad(const bwi_exec *exec)
{
    const bwi_variable *bad = NULL;
    for (int64_t number = 0; number < exec->block_count && !bad; number++) {
        bad = isfinite(exec->norms[number]) ? NULL : exec->blocks[number].variable;
    }
    for (int t = 0; t < exec->plan->table_count && !bad; t++) {
        bad = isfinite(exec->tables[t].squared) ? NULL : exec->tables[t].records.variable;
    }
    return bad;
}

/* Deferred gradients are stored first, and their blocks reduced as the others were. */
bw_status bwi_exec_rehearse(bwi_exec *exec, bwi_visit rehearse, void *user)
{
    bool deferred = exec->deferred;
    bwi_float_begin(exec->ctx);
    bwi_split_settle(exec);
    for (int64_t number = 0; deferred && number < exec->block_count; number++) {
        if (exec->blocks[number].defers) {
            reduce_block(exec, 0, number);
        }
    }
    bwi_float_end(exec->ctx);
    exec->portion_only = true;
    bwi_exec_visit(exec, rehearse, user);
    exec->portion_only = false;
    const bwi_variable *bad = find_bad(exec);
    bw_status status = bad ? fail_overflow(exec, bad) : BW_OK;
    if (exec->portions) { /* another rank may have found one that is bad */
        status = exec->rank->agree(exec->ctx, status);
    }
    if (status == BW_INVALID_ARGUMENT) {
        status = name_overflow(exec, bad);
    }
    if (status != BW_OK) {
        bwi_exec_clear(exec);
    }
    return status;
}

bw_status bwi_exec_update_touched(bwi_exec *exec, const bwi_sink *sink)
{
    exec->touched_only = true;
    bw_status status = bwi_exec_update(exec, sink);
    exec->touched_only = false;
    return status;
}

bw_status bwi_exec_update(bwi_exec *exec, const bwi_sink *sink)
{
    bwi_float_begin(exec->ctx);
    bw_status status = BW_OK;
    exec->updater = *sink;
    if (exec->portions) {
        share_blocks(exec, portion_block, 0, BWI_PART_UPDATE);
        status = bwi_portion_gather(exec);
    }
    if (status == BW_OK) {
        share_blocks(exec, update_block, bwi_records_blocks(exec) + bwi_split_parts(exec), BWI_PART_UPDATE);
        bwi_moving_commit(exec);
    }
    bwi_float_end(exec->ctx);
    bwi_exec_clear(exec);
    return status;
}
