/* One tile through one phase: the inner loop of everything. */
#include "exec/internal.h"

int64_t bwi_piece_number(const bwi_piece *piece, int64_t index)
{
    return piece->numbers ? piece->numbers[index] : bwi_dataset_number(piece->dataset, piece->epoch, piece->first + index);
}

/* Returns the numbers from the list, or finds them and leaves them in `buffer`. */
static const int64_t *piece_numbers(const bwi_piece *piece, int64_t first, int64_t n, int64_t *buffer)
{
    if (piece->numbers) {
        return piece->numbers + first;
    }
    bwi_dataset_numbers(piece->dataset, piece->epoch, piece->first + first, n, buffer);
    return buffer;
}

static bw_status gather(const bwi_tile *tile, const bwi_call *call)
{
    const bwi_exec *exec = tile->user;
    const bwi_input_attributes *a = call->node->attributes;
    const bwi_destination *to = call->bound;
    to += exec->piece.scattered && a->role == BWI_ROLE_INPUT ? 1 : 0;
    int epoch = exec->piece.unaugmented ? BWI_EPOCH_NONE : exec->piece.epoch;
    tile->error[0] = 0;
    bw_status status = bwi_dataset_gather(exec->piece.dataset, a->field, epoch, tile->numbers, tile->samples, to, tile->error);
    if (status != BW_OK && !tile->error[0]) {
        snprintf(tile->error, BWI_ERROR_TEXT, "sample %lld: its %s cannot be read as %s", (long long)tile->numbers[0],
                 call->node->name, bwi_dtype_name(a->dtype));
    }
    return status;
}

/* How many of the window's first tiles are this rank's. */
static int64_t own_tiles(const bwi_plan *plan, int64_t tiles)
{
    int64_t last = (tiles & (plan->lanes - 1)) - plan->first_lane;
    last = last < 0 ? 0 : last > plan->own_lanes ? plan->own_lanes : last;
    return tiles / plan->lanes * plan->own_lanes + last;
}

/* A rank keeps the values of its own tiles, one after another. */
static int64_t slot_of(const bwi_exec *exec, int64_t k)
{
    const bwi_plan *plan = exec->plan;
    return plan->ranks == 1 ? k : own_tiles(plan, exec->tiles + k) - own_tiles(plan, exec->tiles);
}

/* Moves a kept value, which lies in a slot of the store or of the file. `place` says where in the tile's value the bytes are. */
static bw_status move_stored(const bwi_exec *exec, const bwi_bound *b, int64_t slot, size_t place, size_t bytes, char *error)
{
    const bwi_plan *plan = exec->plan;
    bool store = b->instruction->pass == BWI_PASS_STORE;
    place += b->stored;
    if (b->spilled) {
        return bwi_exec_spill(exec, store, b->call.dst, bytes, (size_t)slot * plan->spill_slot + place, error);
    }
    unsigned char *stored = exec->arena + plan->store_offset + (size_t)slot * plan->store_slot + place;
    bwi_exec_memory(exec)->copy(store ? stored : b->call.dst, store ? b->call.dst : stored, bytes);
    return BW_OK;
}

/* Moves a value of the whole tile. */
static bw_status move_tile(const bwi_exec *exec, const bwi_bound *b, const bwi_tile *tile, int64_t k)
{
    if (!exec->plan->store_by_sample) {
        return move_stored(exec, b, slot_of(exec, k), 0, b->bytes, tile->error);
    }
    int64_t first = tile->position - exec->samples;
    size_t one = b->bytes / (size_t)tile->samples, inside = (size_t)(first % exec->plan->tile);
    return move_stored(exec, b, first / exec->plan->tile, one * inside, b->bytes, tile->error);
}

/* A tile of a large model takes seconds, so being cancelled is seen between its instructions. */
static inline bw_status run_bound(const bwi_exec *exec, const bwi_bound *b, const bwi_tile *tile, int64_t k)
{
    if (atomic_load_explicit(&exec->ctx->cancelled, memory_order_relaxed)) {
        return BW_CANCELLED;
    }
    return b->run ? b->run(&b->call, tile) : move_tile(exec, b, tile, k);
}

/* One instruction begins where the one before ended, so that the clock is read once for each. */
static bw_status run_timed(bwi_exec *exec, const bwi_bound *list, int count, const bwi_tile *tile, int worker, int64_t k)
{
    int data = bwi_exec_fixed_part(exec->plan, BWI_PART_DATA);
    uint64_t begin = bwi_ticks(), waited = bwi_waited;
    bw_status status = BW_OK;
    for (const bwi_bound *b = list; b < list + count && status == BW_OK; b++) {
        uint64_t turns = exec->workers[worker].waited;
        status = run_bound(exec, b, tile, k);
        uint64_t end = bwi_ticks(), idle = exec->workers[worker].waited - turns; /* is counted already */
        bwi_ledger_add(exec->ledger, worker, b->part, begin + idle, end);
        if (bwi_waited != waited) {
            bwi_ledger_move(exec->ledger, worker, b->part, data, bwi_waited - waited);
            waited = bwi_waited;
        }
        begin = end;
    }
    return status;
}

static bw_status run_list(bwi_exec *exec, const bwi_bound *list, int count, const bwi_tile *tile, int worker, int64_t k)
{
    if (exec->ledger) {
        return run_timed(exec, list, count, tile, worker, k);
    }
    bw_status status = BW_OK;
    for (const bwi_bound *b = list; b < list + count && status == BW_OK; b++) {
        status = run_bound(exec, b, tile, k);
    }
    return status;
}

/* A tile's turn to add to its lane with one instruction. */
typedef struct turn {
    bwi_exec *exec;
    int worker, lane, instruction;
    int64_t tile;
    bool come, lost;
} turn;

static bool may_add(void *of)
{
    turn *t = of;
    if (!t->come && !t->lost) {
        t->come = bwi_turn_wait(t->exec, t->worker, t->lane, t->instruction, t->tile);
        t->lost = !t->come;
    }
    return t->come;
}

/* What tiles of one lane add to it they add in their order, though several workers take them through the model: the bits are those
 * of one worker. If another worker fails, the tile is left unfinished. */
static bw_status run_by_turns(bwi_exec *exec, const bwi_bound *list, int from, int to, const bwi_tile *tile, int worker, int lane,
                              int64_t k)
{
    bw_status status = BW_OK;
    for (int n = from; n < to && status == BW_OK; from = n) {
        while (n < to && !list[n].adds) {
            n++;
        }
        status = run_list(exec, list + from, n - from, tile, worker, k);
        if (status == BW_OK && n < to) {
            turn own = {exec, worker, lane, n, k, false, false};
            bwi_tile late = *tile;
            late.may_add = may_add;
            late.turn = &own;
            if (!list[n].late && !may_add(&own)) {
                return BW_OK;
            }
            status = run_list(exec, list + n, 1, &late, worker, k);
            if (status == BW_OK && !may_add(&own)) {
                return BW_OK;
            }
            bwi_turn_pass(exec, lane, n++);
        }
    }
    return status;
}

static bw_status run_some(bwi_exec *exec, const bwi_bound *list, int from, int to, const bwi_tile *tile, int worker, int lane,
                          int64_t k)
{
    return exec->by_turns ? run_by_turns(exec, list, from, to, tile, worker, lane, k)
                          : run_list(exec, list + from, to - from, tile, worker, k);
}

static void keep_predictions(const bwi_exec *exec, const bwi_bound *list, int count, int64_t first)
{
    const bwi_plan_program *program = &exec->plan->programs[exec->program];
    for (int n = 0; n < count; n++) {
        const bwi_call *call = &list[n].call;
        for (int t = 0; list[n].instruction->pass == BWI_PASS_FORWARD && t < program->target_count; t++) {
            int64_t floats = bwi_shape_count(&call->node->shape);
            if (call->node == program->targets[t] && exec->predictions[t]) {
                size_t bytes = (size_t)(call->samples * floats) * sizeof(float);
                bwi_exec_memory(exec)->read(exec->predictions[t] + first * floats, call->dst, bytes);
            }
        }
    }
}

static void report_lane_gradients(bwi_exec *exec, const bwi_bound *list, int count, const bwi_tile *tile, int lane)
{
    for (int n = 0; n < count; n++) {
        const bwi_bound *b = &list[n];
        bwi_pass pass = b->instruction->pass;
        if (pass != BWI_PASS_BACKWARD_WEIGHTS && pass != BWI_PASS_BACKWARD_STATISTICS) {
            continue;
        }
        for (int v = 0; v < b->call.node->variables; v++) {
            if (b->call.gradient[v] != SIZE_MAX) {
                exec->hooks.lane_gradient(exec->hooks.user, lane, b->call.node->variable[v], bwi_call_gradient(&b->call, tile, v));
            }
        }
    }
}

bwi_tile bwi_exec_tile(bwi_exec *exec, int region, int lane, int64_t k)
{
    const bwi_plan *plan = exec->plan;
    bwi_worker *own = &exec->workers[region];
    int64_t first;
    int size;
    bwi_tile_at(exec->piece.count, plan->tile, k, &first, &size);
    return (bwi_tile){.lane = bwi_exec_lane(exec, lane),
                      .first = exec->tiles + k < plan->lanes,
                      .training = plan->programs[exec->program].program.training,
                      .records = true,
                      .samples = (int64_t)1 << size,
                      .numbers = piece_numbers(&exec->piece, first, (int64_t)1 << size, own->numbers),
                      .position = exec->samples + first,
                      .seed = exec->seed,
                      .update = exec->update,
                      .gather = gather,
                      .user = exec,
                      .error = own->error};
}

/* The last tile of a lane tells which buckets of gradients are complete in it. */
static bw_status run_last(bwi_exec *exec, const bwi_bound *list, int count, const bwi_tile *tile, int worker, int lane, int64_t k)
{
    int at = 0, bucket;
    bw_status status = BW_OK;
    for (int n = 0, end; status == BW_OK && (end = bwi_overlap_pause(exec, n, &bucket)) >= 0; n++) {
        if (end > at) {
            status = run_some(exec, list, at, end, tile, worker, lane, k);
            at = end;
        }
        if (status == BW_OK && !atomic_load_explicit(&exec->failed, memory_order_relaxed)) {
            bwi_overlap_lane_done(exec, bucket);
        }
    }
    return status == BW_OK ? run_some(exec, list, at, count, tile, worker, lane, k) : status;
}

/* One tile through the present phase, on one worker. */
bw_status bwi_exec_run_tile(bwi_exec *exec, int worker, int lane, int64_t k)
{
    const bwi_plan *plan = exec->plan;
    bwi_tile tile = bwi_exec_tile(exec, worker, lane, k);
    bwi_bound *list = bwi_exec_bound(exec, exec->program, exec->phase, worker, __builtin_ctzll((unsigned long long)tile.samples));
    bool stages = bwi_split_stages(exec);
    int count = exec->phases[exec->program][exec->phase].count;
    int run = stages ? count - plan->programs[exec->program].phases[0].deferred : count;
    if (exec->hooks.tile) {
        exec->hooks.tile(exec->hooks.user, worker, lane, k);
    }
    bool tells = exec->beside && k + plan->lanes >= bwi_tiles_of(exec->piece.count, plan->tile);
    bw_status status =
        tells ? run_last(exec, list, run, &tile, worker, lane, k) : run_some(exec, list, 0, run, &tile, worker, lane, k);
    exec->workers[worker].tiles++;
    if (status != BW_OK) {
        return status;
    }
    if (stages) {
        bwi_split_stage_tile(exec, worker, k);
    }
    if (exec->predictions) {
        keep_predictions(exec, list, count, tile.position - exec->samples);
    }
    if (exec->hooks.lane_gradient && tile.training && k + plan->lanes >= bwi_tiles_of(exec->piece.count, plan->tile)) {
        report_lane_gradients(exec, list, count, &tile, lane);
    }
    return BW_OK;
}

/* ---- Replay ---- */

static const char *nonfinite(const bwi_bound *b, int value, const bwi_program *program, double beyond)
{
    const bwi_value *v = &program->values[value];
    if (v->kind == BWI_VALUE_WORKSPACE || v->node->dtype != BW_F32) {
        return NULL;
    }
    const void *x = v->kind == BWI_VALUE_OUTPUT || b->instruction->dst == value ? b->call.dst : NULL;
    for (int k = 0; k < b->call.node->inputs && !x; k++) {
        x = b->instruction->diff_src && b->instruction->diff_src[k] == value ? b->call.diff_src[k] : NULL;
    }
    static const char *const names[] = {[BWI_FINITE] = NULL, [BWI_NAN] = "NaN", [BWI_INFINITE] = "infinity"};
    bwi_image image = bwi_node_image(v->node, b->call.samples);
    const char *what = x ? names[b->call.kernels->lanes->finiteness(bwi_image_floats(&image), x)] : NULL;
    bool far = x && !what && beyond > 0 && b->call.kernels->sum_of_squares(bwi_image_floats(&image), x) > beyond * beyond;
    return far ? "numbers beyond 1e18, whose squares overflow in the update" : what;
}

static bw_status look(bwi_exec *exec, const bwi_bound *b, int64_t number)
{
    const bwi_program *program = &exec->plan->programs[exec->program].program;
    for (int k = 0; k < b->instruction->write_count; k++) {
        const char *what = nonfinite(b, b->instruction->writes[k], program, exec->beyond);
        if (!what) {
            continue;
        }
        if (b->call.node->op->flags & BWI_OP_INPUT) {
            return bwi_fail(exec->ctx, BW_INVALID_ARGUMENT, "sample %lld: its %s holds %s", (long long)number, b->call.node->name,
                            what);
        }
        return bwi_fail(exec->ctx, BW_INVALID_ARGUMENT, "layer %s gives %s in its %s pass for sample %lld", b->call.node->name,
                        what, bwi_pass_name(b->instruction->pass), (long long)number);
    }
    return BW_OK;
}

/* Names layer and sample as the location, unless a value could not be stored or loaded, which is no sample's fault, or an input
 * failed, which is not a layer. */
static void locate(bw_context *ctx, const bwi_bound *b, int64_t number)
{
    bwi_location here = bwi_at_sample(number);
    if (b->run) {
        here.layer = b->call.node->op->flags & BWI_OP_INPUT ? NULL : b->call.node->name;
        bwi_locate(ctx, here);
    }
}

/* Runs one sample of the piece through one phase on worker 0; what it adds to lane 0 is lost with the window. It stores values,
 * too, since later phases have overwritten those that were no longer needed. */
static bw_status replay_sample(bwi_exec *exec, int phase, int64_t index, int64_t slot, int64_t inside, bool find_nonfinite)
{
    const bwi_plan *plan = exec->plan;
    const bwi_program *program = &plan->programs[exec->program].program;
    bwi_bound *list = bwi_exec_bound(exec, exec->program, phase, 0, 0);
    int64_t number = bwi_piece_number(&exec->piece, index);
    bwi_tile tile = {.lane = bwi_exec_lane(exec, 0),
                     .training = program->training,
                     .samples = 1,
                     .numbers = &number,
                     .position = exec->samples + index,
                     .seed = exec->seed,
                     .update = exec->update,
                     .gather = gather,
                     .user = exec,
                     .error = exec->workers[0].error};
    for (int n = 0; n < exec->phases[exec->program][phase].count; n++) {
        bwi_bound *b = &list[n];
        bw_status status;
        if (b->run) {
            status = b->run(&b->call, &tile);
        } else {
            /* A workspace is laid out by samples, too. */
            size_t one = bwi_plan_value_bytes(plan, &program->values[b->instruction->dst], plan->tile) / (size_t)plan->tile;
            status = move_stored(exec, b, slot, one * (size_t)inside, one, tile.error);
        }
        if (status != BW_OK) {
            bwi_fail(exec->ctx, status, "%s", tile.error);
        } else if (find_nonfinite) {
            status = look(exec, b, number);
        }
        if (status != BW_OK) {
            locate(exec->ctx, b, number);
            return status;
        }
    }
    return BW_OK;
}

/* The samples of a tile through one phase. A rank has no slots for the others' tiles, so with several ranks every sample passes
 * through the phases before again, by way of the first slot. */
static bw_status replay_tile(bwi_exec *exec, int phase, int64_t k, bool find_nonfinite)
{
    bool again = exec->plan->ranks > 1, by_sample = exec->plan->store_by_sample;
    int64_t first, tile = exec->plan->tile;
    int size;
    bwi_tile_at(exec->piece.count, tile, k, &first, &size);
    int64_t slot = by_sample ? first / tile : k;
    for (int64_t i = 0; i < (int64_t)1 << size; i++) {
        if (bwi_cancelled(exec->ctx)) {
            return BW_CANCELLED;
        }
        for (int at = again ? 0 : phase; at <= phase; at++) {
            bw_status status = again ? bwi_exec_prologues(exec, at) : BW_OK;
            if (status == BW_OK) {
                status = replay_sample(exec, at, first + i, again ? 0 : slot, by_sample ? (first + i) % tile : i,
                                       find_nonfinite && at == phase);
            }
            if (status != BW_OK) {
                return status;
            }
        }
    }
    return BW_OK;
}

bw_status bwi_exec_replay(bwi_exec *exec, bool find_nonfinite)
{
    int64_t tiles = bwi_tiles_of(exec->piece.count, exec->plan->tile);
    for (int phase = 0; phase <= exec->phase; phase++) {
        bw_status status = exec->plan->prologues_by_phase ? bwi_exec_prologues(exec, phase) : BW_OK;
        for (int64_t k = 0; k < tiles && status == BW_OK; k++) {
            status = replay_tile(exec, phase, k, find_nonfinite);
        }
        if (status != BW_OK) {
            return status;
        }
    }
    return BW_OK;
}
