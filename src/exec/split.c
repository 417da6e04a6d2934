/*
 * Layers split over workers. Where a window has few tiles and the model's layers many weights, the workers do not take tiles
 * through but share each layer, instruction by instruction over all tiles: parts of its outputs forward, of its inputs backward.
 * The gradients of such layers are deferred to the update, where a worker sums a block over the tiles, as lanes would be summed,
 * and updates the weights while the block is in the nearest cache: it is never stored.
 *
 * The bits are those of running tile by tile. A deferred gradient is stored in the lanes after all when more than the update needs
 * it: a norm, or another piece. Until then its factors are staged there. Since an update must not fail, a bound on the gradient,
 * computed from its factors, has to exclude NaN and infinity beforehand; otherwise the gradient is stored and examined.
 */
#include "exec/internal.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* As the plan has it: only programs of one phase are split or deferred. */
static const bwi_phase *phase_of(const bwi_exec *exec)
{
    return &exec->plan->programs[exec->program].phases[0];
}

static int first_deferred(const bwi_exec *exec)
{
    return phase_of(exec)->count - phase_of(exec)->deferred;
}

static int tiles_of(const bwi_exec *exec)
{
    return (int)bwi_tiles_of(exec->piece.count, exec->plan->tile);
}

static bwi_bound *bound_at(const bwi_exec *exec, int tile, int instruction)
{
    int64_t first;
    int size;
    bwi_tile_at(exec->piece.count, exec->plan->tile, tile, &first, &size);
    return &bwi_exec_bound(exec, exec->program, 0, tile, size)[instruction];
}

/* Data that is made ahead comes in the order of tiles, so it is not split. */
bool bwi_split_fit(const bwi_exec *exec)
{
    const bwi_plan *plan = exec->plan;
    const bwi_hooks *hooks = &exec->hooks;
    return plan->split_tiles && exec->tiles == 0 && phase_of(exec)->deferred &&
           bwi_tiles_of(exec->piece.count, plan->tile) <= plan->split_tiles && !exec->predictions && !hooks->lane_gradient &&
           !hooks->lane_norm && !hooks->tile && !bwi_dataset_begins(exec->piece.dataset);
}

/* ---- Sharing ---- */

typedef void (*unit_function)(bwi_exec *exec, int worker, int instruction, int64_t unit);

typedef struct units {
    bwi_exec *exec;
    unit_function run;
    int instruction;
    int64_t count;
} units;

static void run_units(void *user, int worker)
{
    const units *u = user;
    bwi_exec *exec = u->exec;
    int setting = exec->foreign ? exec->plan->kernels->convolution->begin() : 0;
    uint64_t begin = bwi_exec_clock(exec);
    int tried = 0;
    for (int64_t unit; (unit = bwi_exec_next(exec, worker, &tried)) >= 0;) {
        if (atomic_load_explicit(&exec->failed, memory_order_relaxed)) {
            break;
        }
        u->run(exec, worker, u->instruction, unit);
    }
    if (begin) {
        bwi_ledger_add(exec->ledger, worker, bound_at(exec, 0, u->instruction)->part, begin, bwi_ticks());
        bwi_exec_timed(exec, worker, BWI_PART_SHARE, begin);
    }
    if (exec->foreign) {
        exec->plan->kernels->convolution->end(setting);
    }
}

static void share_units(bwi_exec *exec, unit_function run, int instruction, int64_t count)
{
    units u = {.exec = exec, .run = run, .instruction = instruction, .count = count};
    int workers = count < exec->plan->workers ? (int)count : exec->plan->workers;
    bwi_exec_share_out(exec, workers, count);
    bwi_exec_share(exec, workers, run_units, &u);
}

/* ---- Forward and backward ---- */

static void run_whole(bwi_exec *exec, int worker, int instruction, int64_t tile)
{
    const bwi_bound *b = bound_at(exec, (int)tile, instruction);
    bw_status status = b->run(&b->call, &exec->split_tiles[tile]);
    if (status != BW_OK) {
        memmove(exec->workers[worker].error, exec->split_tiles[tile].error, BWI_ERROR_TEXT);
        exec->workers[worker].status = status;
        atomic_store(&exec->failed, 1);
    }
}

/* Runs an instruction for all tiles in their order, as it adds to their one lane. */
static void run_in_order(bwi_exec *exec, int worker, int instruction, int64_t unit)
{
    (void)unit;
    for (int tile = 0; tile < tiles_of(exec) && !atomic_load(&exec->failed); tile++) {
        run_whole(exec, worker, instruction, tile);
    }
}

static void run_part(bwi_exec *exec, int worker, int instruction, int64_t part)
{
    (void)worker;
    for (int tile = 0; tile < tiles_of(exec); tile++) {
        const bwi_bound *b = bound_at(exec, tile, instruction);
        b->call.node->op->split->part(&b->call, (int)b->instruction->pass, part);
    }
}

static void open_tiles(bwi_exec *exec)
{
    const bwi_plan *plan = exec->plan;
    for (int t = 0; t < tiles_of(exec); t++) {
        int lane = (int)(t % plan->lanes);
        exec->split_tiles[t] = bwi_exec_tile(exec, t, lane, t);
        bwi_exec_memory(exec)->clear(bwi_exec_lane(exec, lane) + plan->lane_sums, plan->lane_bytes - plan->lane_sums);
    }
}

void bwi_split_run(bwi_exec *exec)
{
    int tiles = tiles_of(exec);
    open_tiles(exec);
    for (int n = 0; n < first_deferred(exec) && !atomic_load(&exec->failed); n++) {
        const bwi_bound *b = bound_at(exec, 0, n);
        const bwi_op *op = b->call.node->op;
        int64_t parts = op->split ? op->split->parts(b->call.node, (int)b->instruction->pass) : 0;
        if (bwi_cancelled(exec->ctx)) {
            exec->workers[0].status = BW_CANCELLED;
            atomic_store(&exec->failed, 1);
            return;
        }
        if (!parts && b->adds && tiles > exec->plan->lanes) {
            run_in_order(exec, 0, n, 0);
        } else {
            share_units(exec, parts ? run_part : run_whole, n, parts ? parts : tiles);
        }
    }
    exec->workers[0].tiles += tiles;
    exec->deferred = BWI_DEFERRED;
}

/* ---- Deferred gradients ---- */

/* Where lanes are joined, tiles that are not full have their staging behind the others', the larger before the smaller. */
static size_t staging_offset(const bwi_plan *plan, int64_t tile, int size)
{
    if (!plan->joined || size == plan->sizes - 1) {
        return (size_t)tile * (plan->joined ? plan->staging_bytes : plan->staging_step);
    }
    size_t offset = plan->staging_rest;
    for (int larger = plan->sizes - 2; larger > size; larger--) {
        offset += plan->staging_sizes[larger];
    }
    return offset;
}

static void *staging_of(const bwi_exec *exec, int64_t tile, int instruction)
{
    const bwi_plan *plan = exec->plan;
    int64_t first, samples;
    int size;
    bwi_tile_at(exec->piece.count, plan->tile, tile, &first, &size);
    samples = plan->joined ? (int64_t)1 << size : plan->tile;
    size_t offset = staging_offset(plan, tile, size);
    for (int n = first_deferred(exec); n < instruction; n++) {
        const bw_node *node = phase_of(exec)->instructions[n].node;
        offset += bwi_size_align((size_t)node->op->deferred->floats(node, samples) * sizeof(float), BWI_CACHE_LINE);
    }
    return exec->staging + offset;
}

bool bwi_split_stages(const bwi_exec *exec)
{
    return exec->plan->joined && phase_of(exec)->deferred > 0;
}

void bwi_split_stage_tile(bwi_exec *exec, int worker, int64_t k)
{
    int tiles = tiles_of(exec), begin = first_deferred(exec), size;
    int64_t first;
    bwi_tile_at(exec->piece.count, exec->plan->tile, k, &first, &size);
    const bwi_bound *list = bwi_exec_bound(exec, exec->program, 0, worker, size);
    uint64_t time = bwi_exec_clock(exec);
    for (int n = begin; n < phase_of(exec)->count; n++) {
        const bwi_bound *b = &list[n];
        exec->bounds[(n - begin) * tiles + k] = b->call.node->op->deferred->fill(&b->call, staging_of(exec, k, n));
        if (time) {
            uint64_t end = bwi_ticks();
            bwi_ledger_add(exec->ledger, worker, b->part, time, end);
            time = end;
        }
    }
}

/* The worker's scratch memory for the sums of a block over tiles. */
static void *scratch_of(const bwi_exec *exec, int worker)
{
    return exec->arena + exec->plan->deferred_offset + (size_t)worker * exec->plan->deferred_bytes;
}

static void fill_staging(bwi_exec *exec, int worker, int first, int64_t unit)
{
    (void)worker;
    int tiles = tiles_of(exec), tile = (int)(unit % tiles), instruction = first + (int)(unit / tiles);
    const bwi_bound *b = bound_at(exec, tile, instruction);
    exec->bounds[unit] = b->call.node->op->deferred->fill(&b->call, staging_of(exec, tile, instruction));
}

/* Stages what is not yet, and lists it. */
static void stage(bwi_exec *exec)
{
    int tiles = tiles_of(exec), deferred = phase_of(exec)->deferred, begin = first_deferred(exec);
    if (exec->deferred == BWI_DEFERRED) {
        atomic_store(&exec->failed, 0);
        share_units(exec, fill_staging, begin, (int64_t)deferred * tiles);
        exec->deferred = BWI_DEFERRED_STAGED;
    }
    for (int t = 0; t < tiles; t++) {
        int64_t first;
        int size;
        bwi_tile_at(exec->piece.count, exec->plan->tile, t, &first, &size);
        const bwi_bound *list = bwi_exec_bound(exec, exec->program, 0, 0, size);
        for (int n = 0; n < deferred; n++) {
            exec->factors[n * tiles + t] = (bwi_deferred_tile){&list[begin + n].call, staging_of(exec, t, begin + n)};
        }
    }
}

bool bwi_split_bounded(bwi_exec *exec)
{
    int tiles = tiles_of(exec), deferred = phase_of(exec)->deferred;
    bool bounded = true;
    stage(exec);
    for (int n = 0; n < deferred; n++) {
        double sum = 0;
        for (int t = 0; t < tiles; t++) {
            sum += exec->bounds[n * tiles + t];
        }
        bounded = bounded && sum < BWI_MODERATE; /* not if it is NaN */
    }
    return bounded;
}

/* Finds the instruction, and which of its parts, for a number that counts the parts of all instructions; false: it is beyond the
 * last. */
static bool part_at(const bwi_exec *exec, int64_t *number, int *instruction)
{
    const bwi_phase *phase = phase_of(exec);
    for (int n = first_deferred(exec); n < phase->count; n++) {
        const bw_node *node = phase->instructions[n].node;
        int64_t parts = node->op->deferred->parts(node);
        if (*number < parts) {
            *instruction = n;
            return true;
        }
        *number -= parts;
    }
    return false;
}

int64_t bwi_split_parts(const bwi_exec *exec)
{
    const bwi_phase *phase = phase_of(exec);
    int64_t parts = 0;
    for (int n = first_deferred(exec); exec->deferred && n < phase->count; n++) {
        parts += phase->instructions[n].node->op->deferred->parts(phase->instructions[n].node);
    }
    return parts;
}

void bwi_split_part(bwi_exec *exec, int worker, int64_t number, const bwi_sink *sink)
{
    int instruction = 0, tiles = tiles_of(exec);
    if (part_at(exec, &number, &instruction)) {
        const bwi_deferred_tile *factors = &exec->factors[(instruction - first_deferred(exec)) * tiles];
        factors->call->node->op->deferred->part(factors, tiles, exec->plan->lanes, number, scratch_of(exec, worker), sink);
    }
}

/* ---- Stored in the lanes ---- */

/* Runs what was deferred as it would have run by tiles: the tiles of a lane in their order. What is staged lies where the lanes'
 * sums go, and is lost. */
static void settle(bwi_exec *exec, int worker, int first, int64_t unit)
{
    (void)worker;
    int lanes = exec->plan->lanes, lane = (int)(unit % lanes), instruction = first + (int)(unit / lanes);
    for (int t = lane; t < tiles_of(exec); t += lanes) {
        const bwi_bound *b = bound_at(exec, t, instruction);
        b->run(&b->call, &exec->split_tiles[t]);
    }
}

static void store_part(void *user, const bwi_variable *variable, int64_t first, int64_t count, const void *gradient)
{
    const bwi_exec *exec = user;
    size_t at = exec->plan->gradients[variable->index] + (size_t)first * sizeof(float);
    bwi_exec_memory(exec)->copy(bwi_exec_lane(exec, 0) + at, gradient, (size_t)count * sizeof(float));
}

static void settle_part(bwi_exec *exec, int worker, int first, int64_t unit)
{
    (void)first;
    bwi_split_part(exec, worker, unit, &(bwi_sink){.take = store_part, .user = exec});
}

/* Joined lanes have one buffer, for their sum. What is staged in it moves into the regions of tiles, which have run. */
static void settle_joined(bwi_exec *exec)
{
    const bwi_plan *plan = exec->plan;
    bwi_float_begin(exec->ctx);
    stage(exec);
    if (plan->overlaid) {
        unsigned char *regions = exec->arena + plan->workers_offset;
        bwi_exec_memory(exec)->copy(regions, exec->staging, plan->staging_total);
        exec->staging = regions;
        stage(exec);
    }
    atomic_store(&exec->failed, 0);
    share_units(exec, settle_part, phase_of(exec)->count - 1, bwi_split_parts(exec));
    exec->staging = exec->arena + plan->staging_offset;
    exec->deferred = BWI_DEFERRED_NONE;
    bwi_float_end(exec->ctx);
}

void bwi_split_settle(bwi_exec *exec)
{
    if (exec->deferred && exec->plan->joined) {
        settle_joined(exec);
    } else if (exec->deferred) {
        bwi_float_begin(exec->ctx);
        atomic_store(&exec->failed, 0);
        share_units(exec, settle, first_deferred(exec), (int64_t)phase_of(exec)->deferred * exec->plan->lanes);
        exec->deferred = BWI_DEFERRED_NONE;
        bwi_float_end(exec->ctx);
    }
}
