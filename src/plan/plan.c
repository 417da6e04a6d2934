/*
 * Makes a plan: chooses tile, lanes and workers from the model (choice.c), then counts everything's bytes (layout.c); if they do
 * not fit the budget, tries the next more frugal choice. Values kept for a whole batch go first, as far as everything else leaves
 * no space for them: they are computed again or spilled to a file, whichever costs less (store.c). If this does not suffice, ranks
 * divide the optimizer's slots among them, which changes no bits; then the plan gives up splitting layers, then takes smaller
 * tiles, fewer workers, segments, which compute a tile's activations again (segments.c), and last fewer lanes.
 */
#include "plan/internal.h"

enum { MOST_SPLIT_TILES = 8 }; /* tiles that run together, at most, where they share a lane */

/* With a smaller budget the most frugal plan is tried first. */
static const size_t TIGHT_BYTES = (size_t)1 << 30;
static const size_t SYSTEM_MARGIN = (size_t)2 << 20;
static const size_t SPARE_MARGIN = (size_t)2 << 20; /* less is not worth the time that splitting saves, */
static const size_t TINY_BYTES = (size_t)32 << 20;  /* nor, of models of which the whole batch takes less, any other */

/* ---- Making ---- */

static bw_status lowered_nodes(const bwi_plan *plan, bw_node *const *nodes, int count, bw_node ***result)
{
    *result = bwi_allocate(plan->ctx, (size_t)count, sizeof(bw_node *));
    if (!*result) {
        return BW_RESOURCE_EXHAUSTED;
    }
    for (int k = 0; k < count; k++) {
        (*result)[k] = plan->lowered[nodes[k]->number];
    }
    return BW_OK;
}

static bw_status make_program(bwi_plan *plan, bwi_plan_program *program, const bwi_program_request *request)
{
    bw_node **losses = NULL;
    bw_status status = lowered_nodes(plan, request->targets, request->target_count, &program->targets);
    program->target_count = request->target_count;
    if (status == BW_OK) {
        status = lowered_nodes(plan, request->losses, request->loss_count, &losses);
    }
    if (status == BW_OK) {
        status = bwi_program_make(plan->ctx, &program->program, &plan->graph, program->targets, program->target_count, losses,
                                  request->loss_count);
    }
    bwi_release(plan->ctx, (void *)losses);
    return status;
}

static bw_status allocate_tables(bwi_plan *plan)
{
    bw_context *ctx = plan->ctx;
    size_t nodes = (size_t)plan->graph.count, variables = (size_t)plan->source->variable_count;
    plan->passes = bwi_allocate(ctx, nodes, sizeof *plan->passes);
    plan->prepared = bwi_allocate(ctx, nodes * BWI_MAX_SIZES, sizeof(void *));
    plan->needs = bwi_allocate(ctx, nodes * BWI_MAX_SIZES, sizeof *plan->needs);
    plan->workspace_bytes = bwi_allocate(ctx, nodes, sizeof(size_t));
    plan->bound_bytes = bwi_allocate(ctx, nodes, sizeof(size_t));
    plan->shared = bwi_allocate(ctx, nodes, sizeof(size_t));
    plan->statistics = bwi_allocate(ctx, nodes, sizeof(size_t));
    plan->backward_statistics = bwi_allocate(ctx, nodes, sizeof(size_t));
    plan->sums = bwi_allocate(ctx, nodes, sizeof(size_t));
    plan->gradients = bwi_allocate(ctx, variables, sizeof(size_t));
    plan->tables = bwi_allocate(ctx, variables, sizeof *plan->tables);
    bool ok = plan->passes && plan->prepared && plan->needs && plan->workspace_bytes && plan->bound_bytes && plan->shared &&
              plan->statistics && plan->backward_statistics && plan->sums && plan->gradients && plan->tables;
    return ok ? BW_OK : BW_RESOURCE_EXHAUSTED;
}

static int64_t tiles_of(int64_t count, int64_t tile)
{
    return count / tile + __builtin_popcountll((unsigned long long)(count % tile));
}

/* How many workers take tiles of a batch: from a usual one on no more than there are full tiles, so that their regions hold no more
 * samples than the batch. */
static int64_t busy_workers(int64_t count, int64_t tile)
{
    return count <= BWI_SMALL_BATCH ? tiles_of(count, tile) : count > tile ? count / tile : 1;
}

/* Counts what deferring needs, and returns the bytes of the weights whose gradients may be deferred. */
static size_t deferred_weights(bwi_plan *plan)
{
    const bwi_program *program = &plan->programs[0].program;
    size_t weights = 0;
    plan->staging_bytes = plan->deferred_bytes = 0;
    for (int s = 0; s < BWI_MAX_SIZES; s++) {
        plan->staging_sizes[s] = 0;
    }
    for (int n = 0; n < program->count; n++) {
        const bwi_instruction *i = &program->instructions[n];
        if (bwi_plan_defers(plan, program, i)) {
            weights = bwi_size_add(weights, (size_t)i->node->variable[0]->count * sizeof(float));
            for (int s = 0; s < plan->sizes; s++) {
                size_t floats = (size_t)i->node->op->deferred->floats(i->node, (int64_t)1 << s);
                size_t bytes = bwi_size_align(bwi_size_multiply(floats, sizeof(float)), BWI_CACHE_LINE);
                plan->staging_sizes[s] = bwi_size_add(plan->staging_sizes[s], bytes);
            }
            size_t scratch = bwi_size_align(i->node->op->deferred->scratch_bytes, BWI_CACHE_LINE);
            plan->deferred_bytes = scratch > plan->deferred_bytes ? scratch : plan->deferred_bytes;
        }
    }
    plan->staging_bytes = plan->staging_sizes[plan->sizes - 1];
    return weights;
}

/* How many tiles of a window run together, where tiles are few and weights many. The bits are those of tile by tile. Tiles of one
 * lane add to it in turn, which is for models whose gradients are nearly all deferred. */
static int split_tiles_of(const bwi_plan *plan, size_t weights)
{
    size_t trained = 0;
    for (int v = 0; v < plan->source->variable_count; v++) {
        const bwi_variable *variable = plan->source->variables[v];
        trained = bwi_size_add(trained, variable->trainable && !variable->sparse ? (size_t)variable->count * sizeof(float) : 0);
    }
    int64_t tiles = tiles_of(plan->window, plan->tile);
    int64_t most = plan->lanes < BWI_MAX_DEFERRED ? plan->lanes : BWI_MAX_DEFERRED;
    if (plan->lanes == 1 && weights >= trained - trained / 8) {
        most = MOST_SPLIT_TILES;
    }
    return plan->ranks == 1 && plan->window > 0 && weights >= BWI_SPLIT_BYTES && tiles <= most ? (int)tiles : 0;
}

/* Lanes share one buffer of deferred gradients if the factors of every window can be staged until the update, and need less than
 * the other lanes would. A window that is smaller than the largest may have more tiles: fewer full ones, and one for each bit of
 * the remainder. */
static bool joins(bwi_plan *plan, size_t weights)
{
    size_t rest = 0;
    int64_t whole = plan->window / plan->tile, fixed = plan->window % plan->tile ? whole : whole - 1;
    for (int s = 0; s < plan->sizes - 1; s++) {
        rest = bwi_size_add(rest, plan->staging_sizes[s]);
    }
    bool alone = plan->ranks == 1 && plan->window > 0 && plan->lanes > 1 && plan->lanes <= BWI_MAX_DEFERRED && weights > 0 &&
                 plan->segments == 1;
    for (int p = 1; p < plan->program_count; p++) {
        alone = alone && !plan->programs[p].program.training;
    }
    if (!alone) {
        return false;
    }
    fixed = fixed < 0 ? 0 : fixed;
    size_t last = fixed < whole && plan->staging_bytes > rest ? plan->staging_bytes : rest;
    plan->staging_rest = bwi_size_multiply(plan->staging_bytes, (size_t)fixed);
    plan->staging_total = bwi_size_add(plan->staging_rest, last);
    return plan->staging_total <= bwi_size_multiply(weights, (size_t)plan->lanes - 1);
}

/* Makes what no choice changes. */
static bw_status begin(bwi_plan *plan, const bwi_plan_request *request)
{
    bw_status status = bwi_plan_lower(plan, request);
    if (status == BW_OK) {
        status = allocate_tables(plan);
    }
    plan->programs = bwi_allocate(plan->ctx, (size_t)request->program_count, sizeof *plan->programs);
    if (status != BW_OK || !plan->programs) {
        return status != BW_OK ? status : BW_RESOURCE_EXHAUSTED;
    }
    plan->program_count = request->program_count;
    for (int p = 0; p < plan->program_count && status == BW_OK; p++) {
        status = make_program(plan, &plan->programs[p], &request->programs[p]);
        plan->programs[p].own_values = plan->programs[p].program.value_count;
        for (int n = 0; status == BW_OK && n < plan->programs[p].program.count; n++) {
            const bwi_instruction *i = &plan->programs[p].program.instructions[n];
            plan->passes[i->node->number] |= 1U << i->pass;
        }
    }
    return status;
}

size_t bwi_plan_gradient_bytes(const bwi_plan *plan)
{
    return plan->lane_sums + plan->joined_bytes;
}

size_t bwi_plan_total(const bwi_plan *plan)
{
    return bwi_size_add(bwi_size_add(plan->bytes, plan->items.bookkeeping), bwi_size_add(plan->items.data, plan->items.outside));
}

/* ---- Trying ---- */

/* A plan being made. */
typedef struct attempt {
    bwi_plan *plan;
    const bwi_plan_request *request;
    size_t held; /* by the context before */
    size_t scratch;
    size_t budget;
    bool system;  /* the budget is what the system gives: less once kernels have been prepared */
    size_t whole; /* what holding the whole batch takes; 0: not known */
} attempt;

/* What the plan itself has allocated, except for kernels of larger tiles that were tried. */
static size_t own_bytes(const attempt *a)
{
    size_t bytes = bwi_allocated_bytes(a->plan->ctx) - a->held;
    for (int s = a->plan->sizes; s < BWI_MAX_SIZES; s++) {
        bytes -= a->plan->prepared_bytes[s];
    }
    return bytes;
}

static bw_status lay(attempt *a)
{
    bwi_plan *plan = a->plan;
    bw_status status = BW_OK;
    for (int n = 0; n < plan->graph.count; n++) {
        plan->shared[n] = plan->needs[(size_t)n * BWI_MAX_SIZES + (size_t)plan->sizes - 1].shared;
    }
    plan->store_slot = plan->spill_slot = 0;
    for (int p = 0; p < plan->program_count && status == BW_OK; p++) {
        status = bwi_plan_cut(plan, &plan->programs[p]);
    }
    if (status == BW_OK) {
        status = bwi_plan_lay(plan, a->scratch);
        plan->items.outside = plan->divides ? a->request->divided_bytes : a->request->outside_bytes;
        plan->items.data = a->request->data ? a->request->data(a->request->data_user, plan) : 0;
        plan->items.bookkeeping = bwi_size_add(own_bytes(a), a->request->bookkeeping ? a->request->bookkeeping(plan) : 0);
    }
    return status;
}

/* Programs for several lengths of a sample share one store in turn, so the largest must become smaller. */
static bw_status save_store(attempt *a, bool *changed)
{
    bwi_plan *plan = a->plan;
    size_t excess = bwi_plan_total(plan) - a->budget;
    bw_status status = BW_OK;
    *changed = false;
    for (int p = 0; p < plan->program_count && status == BW_OK; p++) {
        bool less = false;
        if (plan->programs[p].program.levels > 1 && plan->programs[p].program.training) {
            status = bwi_plan_save_store(plan, &plan->programs[p], excess, &less);
        }
        *changed |= less;
    }
    return status == BW_OK ? lay(a) : status;
}

/* The last value that had to go may have been larger than what was missing: others come back into its place. */
static bw_status refill_store(attempt *a, bwi_plan_program *program)
{
    bw_status status = BW_OK;
    for (int v = 0; v < program->own_values && status == BW_OK; v++) {
        if (program->fate[v] != BWI_FATE_SPILL || program->stored[v] == SIZE_MAX) {
            continue;
        }
        program->fate[v] = BWI_FATE_KEEP;
        status = lay(a);
        if (status == BW_OK && bwi_plan_total(a->plan) > a->budget) {
            program->fate[v] = BWI_FATE_SPILL;
            status = lay(a);
        }
    }
    return status;
}

/* Adds what the system can give to what of the plan is allocated already. A run takes a little more that the system counts: page
 * tables, the depth of stacks, pages of a file that are being written. */
static void find_budget(attempt *a)
{
    if (a->system) {
        size_t there = bwi_size_add(bwi_allocated_bytes(a->plan->ctx) - a->held, a->request->held_bytes);
        size_t left = bwi_memory_available(a->plan->ctx), margin = SYSTEM_MARGIN + left / 64;
        a->budget = bwi_size_add(left > margin ? left - margin : 0, there);
    }
}

static bool only_trains(const bwi_plan *plan)
{
    bool only = true;
    for (int p = 0; p < plan->program_count; p++) {
        only = only && plan->programs[p].program.training;
    }
    return only;
}

/* Whether a tile's workspaces take no more bytes for a sample than those of a full tile, so that they fit their samples' place. */
static bool is_by_sample(const bwi_plan *plan)
{
    for (int n = 0; n < plan->graph.count; n++) {
        const bwi_plan_needs *needs = &plan->needs[(size_t)n * BWI_MAX_SIZES], *full = &needs[plan->sizes - 1];
        for (int s = 0; s < plan->sizes; s++) {
            if (needs[s].workspace > full->workspace >> (plan->sizes - 1 - s) || full->workspace % (size_t)plan->tile > 0) {
                return false;
            }
        }
    }
    return plan->ranks == 1;
}

/* The slots of a store. A remainder has a tile for each of its bits, and with several ranks these belong to some of them, so that
 * each tile has a slot of its own; one rank keeps samples in their order. */
static void count_slots(bwi_plan *plan)
{
    int64_t last = plan->most_tiles % plan->lanes; /* in a round of all lanes that is not complete */
    plan->store_by_sample = is_by_sample(plan);
    plan->store_tiles = plan->most_tiles / plan->lanes * plan->lane_slots + (last < plan->lane_slots ? last : plan->lane_slots);
    if (plan->keep && plan->store_by_sample) {
        plan->store_tiles = plan->batch / plan->tile + (plan->batch % plan->tile > 0);
    }
}

/* A window's first tiles go to the first lanes, one each. Where it has fewer tiles than there are lanes, ranks share those that it
 * fills, or some would have no work; the lanes after them have tiles only in windows that end with a remainder. */
static void divide_lanes(bwi_plan *plan)
{
    int64_t tiles = plan->window > 0 ? tiles_of(plan->window, plan->tile) : plan->lanes;
    int divided = plan->lanes, rank = plan->ranks > 1 ? plan->ctx->rank : 0;
    while (divided / 2 >= tiles && divided / 2 >= plan->ranks) {
        divided /= 2;
    }
    plan->divided_lanes = divided;
    bwi_lane_division division = bwi_plan_division(plan);
    plan->first_lane = bwi_rank_lane(division, plan->ranks, rank);
    plan->own_lanes = bwi_rank_lane(division, plan->ranks, rank + 1) - plan->first_lane;
    plan->lane_slots = 0;
    for (int k = 0; k < plan->ranks; k++) {
        int own = bwi_rank_lane(division, plan->ranks, k + 1) - bwi_rank_lane(division, plan->ranks, k);
        plan->lane_slots = own > plan->lane_slots ? own : plan->lane_slots;
    }
}

/* Lays the plan out as chosen; what is kept for a whole batch gives way to everything else. */
static bw_status try_choice(attempt *a, const bwi_choice *c)
{
    bwi_plan *plan = a->plan;
    plan->tile = c->tile;
    plan->lanes = c->lanes;
    divide_lanes(plan);
    plan->workers = c->workers;
    plan->segments = c->segments;
    plan->sizes = 64 - __builtin_clzll((unsigned long long)c->tile);
    plan->most_tiles = plan->keep ? bwi_most_tiles(plan->batch, plan->tile) : 0;
    bw_status status = bwi_plan_prepare(plan, &a->scratch);
    if (status == BW_OK) {
        count_slots(plan);
    }
    find_budget(a);
    size_t weights = status == BW_OK ? deferred_weights(plan) : 0;
    plan->split_tiles = c->split ? split_tiles_of(plan, weights) : 0;
    plan->joined = c->joins && joins(plan, weights);
    plan->staged = plan->joined ? bwi_most_tiles(plan->window, plan->tile) : plan->split_tiles;
    int64_t tiles = plan->keep && only_trains(plan) ? busy_workers(plan->batch, plan->tile) : plan->workers;
    plan->tile_workers = tiles < plan->workers ? (int)tiles : plan->workers;
    plan->tile_workers = c->tile_workers && c->tile_workers < plan->tile_workers ? c->tile_workers : plan->tile_workers;
    plan->regions = plan->split_tiles > plan->tile_workers ? plan->split_tiles : plan->tile_workers;
    for (int p = 0; p < plan->program_count && status == BW_OK; p++) {
        status = bwi_plan_fates(plan, &plan->programs[p]);
    }
    if (status == BW_OK) {
        status = lay(a);
    }
    bool changed = true;
    while (status == BW_OK && changed && plan->items.store && bwi_plan_total(plan) > a->budget) {
        status = save_store(a, &changed);
    }
    for (int p = 0; p < plan->program_count && status == BW_OK && bwi_plan_total(plan) <= a->budget; p++) {
        status = refill_store(a, &plan->programs[p]);
    }
    return status;
}

/* Slots that were divided are whole again at the end, when everything else of the run is gone. */
static size_t needed_bytes(const attempt *a)
{
    size_t total = bwi_plan_total(a->plan);
    return a->plan->divides && total < a->request->outside_bytes ? a->request->outside_bytes : total;
}

/* The bytes of a run that a system that holds the whole batch has no less than we: without samples, copies and files. */
static size_t compared_bytes(const attempt *a)
{
    return bwi_plan_total(a->plan) - a->plan->items.data - (a->request->outside_bytes - a->request->model_bytes);
}

/* Keeps less of the batch between phases, if that brings the plan down to what the whole batch takes. */
static bw_status spare_store(attempt *a, const bwi_choice *c)
{
    size_t budget = a->budget, more = bwi_plan_total(a->plan) - compared_bytes(a);
    char *spill = a->plan->spill;
    bool changed = true;
    bw_status status = BW_OK;
    if (compared_bytes(a) - a->plan->items.store > a->whole) {
        return BW_OK;
    }
    a->budget = bwi_size_add(a->whole, more);
    a->plan->spill = NULL; /* nothing is written to a file for this */
    while (status == BW_OK && changed && bwi_plan_total(a->plan) > a->budget) {
        status = save_store(a, &changed);
    }
    bool suffices = bwi_plan_total(a->plan) <= a->budget;
    a->plan->spill = spill;
    a->budget = budget;
    return status != BW_OK || suffices ? status : try_choice(a, c);
}

static bool is_over(const attempt *a)
{
    return compared_bytes(a) > a->whole + (a->whole < TINY_BYTES ? SPARE_MARGIN : 0);
}

static bw_status try_spare(attempt *a, const bwi_choice *c)
{
    bw_status status = try_choice(a, c);
    return status == BW_OK && a->plan->items.store && is_over(a) ? spare_store(a, c) : status;
}

/* A plan should not need more than holding the whole batch does. For that it runs tile by tile where layers would be split,
 * computes values again, and lets fewer workers take tiles, two at least; nothing that changes a bit. Splitting is so much faster
 * where it matters that it may cost a little. */
static bw_status spare(attempt *a, bwi_choice *c)
{
    bw_status status = BW_OK;
    if (a->plan->split_tiles > 1 && compared_bytes(a) > a->whole + SPARE_MARGIN + a->whole / 64) {
        c->split = false;
        status = try_choice(a, c);
    }
    if (status == BW_OK && a->plan->items.store && is_over(a)) {
        status = spare_store(a, c);
    }
    if (status != BW_OK || !is_over(a) || a->plan->split_tiles || a->plan->tile_workers <= 2) {
        return status;
    }
    for (c->tile_workers = a->plan->tile_workers / 2; status == BW_OK && is_over(a) && c->tile_workers >= 2; c->tile_workers /= 2) {
        status = try_spare(a, c);
    }
    if (status == BW_OK && is_over(a)) {
        c->tile_workers = 0;
        status = try_spare(a, c);
    }
    return status;
}

static bw_status refuse(const attempt *a, size_t needed)
{
    char have[32], need[32];
    return bwi_fail(a->plan->ctx, BW_RESOURCE_EXHAUSTED,
                    "memory: a budget of %s is too small: parameters, optimizer, one lane and one sample need %s (%zu bytes)",
                    bwi_format_bytes(have, a->budget), bwi_format_bytes(need, needed), needed);
}

/* Tries one sample, one worker and as few lanes as possible, with the number of segments that needs the `least`. Only kernels
 * for one sample are prepared for it, so that a refusal comes soon. */
static bw_status try_frugal(attempt *a, bwi_choice *c, size_t *least)
{
    bool training = false;
    for (int p = 0; p < a->plan->program_count; p++) {
        training |= a->plan->programs[p].program.training;
    }
    bwi_choice best = *c;
    int worse = 0;
    *least = SIZE_MAX;
    for (c->segments = 1; c->segments && worse < 2; c->segments = training ? bwi_choice_more_segments(c->segments) : 0) {
        bw_status status = try_choice(a, c);
        if (status != BW_OK) {
            return status;
        }
        size_t total = needed_bytes(a);
        worse = total < *least ? 0 : worse + 1;
        best = total < *least ? *c : best;
        *least = total < *least ? total : *least;
    }
    *c = best;
    return BW_OK;
}

/* Whether dividing the optimizer's slots saves more than it takes: a buffer for each worker. */
static bool may_divide(const attempt *a, const bwi_choice *c)
{
    const bwi_plan_request *r = a->request;
    size_t buffers = (size_t)c->workers * BWI_UPDATE_BLOCK * sizeof(float);
    return r->divided_bytes > 0 && (r->divides || bwi_size_add(r->divided_bytes, buffers) < r->outside_bytes);
}

/* From the default choice to ever more frugal ones. */
static bw_status search(attempt *a, bwi_choice c)
{
    bwi_choice frugal = {.tile = bwi_choice_least_tile(a->plan->source), .workers = 1, .lanes = 1, .segments = 1};
    size_t least = 0;
    while (frugal.lanes < a->plan->ranks) {
        frugal.lanes *= 2;
    }
    find_budget(a);
    bool tight = !a->system || a->budget<TIGHT_BYTES, divides = a->request->divided_bytes> 0 && a->request->divides;
    a->plan->divides = divides;
    for (bool known = false;;) {
        if (tight && !known) {
            a->plan->divides = may_divide(a, &frugal);
            bw_status status = try_frugal(a, &frugal, &least);
            a->plan->divides = divides;
            if (status != BW_OK || least > a->budget) {
                return status != BW_OK ? status : refuse(a, least);
            }
            known = true;
        }
        bw_status status = try_choice(a, &c);
        if (status != BW_OK || needed_bytes(a) <= a->budget) {
            return status == BW_OK && a->whole ? spare(a, &c) : status;
        }
        tight = true;
        if (!divides && may_divide(a, &c)) {
            a->plan->divides = divides = true;
        } else if (known && !bwi_choice_save(&c, &frugal)) {
            return refuse(a, needed_bytes(a));
        }
    }
}

/* Models that are computed at several lengths are not compared. */
static bw_status measure_whole(bw_context *ctx, const bwi_plan_request *request, size_t *sample)
{
    int own = request->own_nodes ? request->own_nodes : request->graph->count;
    bool trains = request->programs[0].loss_count > 0 && own == request->graph->count;
    return trains ? bwi_whole_batch_measure(ctx, request->graph, &request->programs[0], sample, NULL) : BW_OK;
}

static size_t fixed_bytes(const bwi_plan_request *request)
{
    return bwi_size_add(request->model_bytes, bwi_choice_gradient_bytes(request->graph));
}

/* Remembers what the request or the model asks for beside what the budget leaves of it, so that a user can be told. */
bw_status bwi_plan_make(bw_context *ctx, bwi_plan **result, const bwi_plan_request *request)
{
    bwi_choice c;
    attempt a = {.request = request, .held = bwi_allocated_bytes(ctx)};
    size_t sample = 0;
    *result = NULL;
    bw_status status = measure_whole(ctx, request, &sample);
    if (status == BW_OK) {
        status = bwi_choice_make(ctx, request, sample, &c);
    }
    if (status != BW_OK) {
        return status;
    }
    bwi_plan *plan = a.plan = bwi_allocate(ctx, 1, sizeof *plan);
    if (!plan) {
        return BW_RESOURCE_EXHAUSTED;
    }
    plan->ctx = ctx;
    plan->kernels = bwi_kernels_of(ctx);
    plan->source = request->graph;
    plan->ranks = request->ranks > 1 ? request->ranks : 1;
    plan->batch = request->batch;
    plan->window = request->window;
    plan->keep = request->batch > 0;
    plan->requested_tile = c.tile;
    plan->requested_lanes = c.lanes;
    plan->requested_workers = c.workers;
    plan->spill = request->spill ? bwi_copy_text(ctx, request->spill) : NULL;
    status = !plan->kernels ? ctx->error.status : request->spill && !plan->spill ? BW_RESOURCE_EXHAUSTED : begin(plan, request);
    a.budget = request->memory;
    a.system = !request->memory;
    a.whole =
        sample && request->batch > 0 ? bwi_size_add(bwi_size_multiply(sample, (size_t)request->batch), fixed_bytes(request)) : 0;
    if (status == BW_OK) {
        status = search(&a, c);
    }
    if (status != BW_OK) {
        bwi_plan_free(plan);
        return status;
    }
    bwi_plan_unprepare(plan, plan->sizes);
    *result = plan;
    return BW_OK;
}

static void free_program(bwi_plan *plan, bwi_plan_program *program)
{
    bwi_plan_uncut(plan, program);
    bwi_release(plan->ctx, program->fate);
    bwi_release(plan->ctx, (void *)program->targets);
    program->program.ctx = plan->ctx;
    bwi_program_free(&program->program);
}

/* Also frees a plan that could be made only in part; what is missing is NULL. */
void bwi_plan_free(bwi_plan *plan)
{
    if (!plan) {
        return;
    }
    bw_context *ctx = plan->ctx;
    bwi_plan_unprepare(plan, 0);
    for (int p = 0; p < plan->program_count; p++) {
        free_program(plan, &plan->programs[p]);
    }
    bwi_release(ctx, plan->programs);
    bwi_release(ctx, plan->passes);
    bwi_release(ctx, (void *)plan->prepared);
    bwi_release(ctx, plan->needs);
    bwi_release(ctx, plan->workspace_bytes);
    bwi_release(ctx, plan->bound_bytes);
    bwi_release(ctx, plan->shared);
    bwi_release(ctx, plan->statistics);
    bwi_release(ctx, plan->backward_statistics);
    bwi_release(ctx, plan->sums);
    bwi_release(ctx, plan->gradients);
    bwi_release(ctx, plan->tables);
    bwi_release(ctx, (void *)plan->lowered);
    bwi_release(ctx, plan->spill);
    plan->graph.ctx = ctx;
    bwi_graph_free(&plan->graph);
    bwi_release(ctx, plan);
}
