/*
 * Makes a plan: tile, lanes and workers from the model, then everything's bytes; if they do not fit the budget, the next more
 * frugal choice. Values that are kept for a whole batch are saved first, as far as the rest leaves no room for them: computed
 * again, or spilled to a file, whichever costs less (store.c). What remains is met by no groups of tiles, smaller tiles, fewer workers, computing
 * a tile's activations again in segments (segments.c), fewer lanes, in this order. Kernels are prepared once for each number of
 * samples, whatever is tried.
 */
#include "plan/plan.h"

#include <string.h>

/* What the default tile and lanes are made for: a reference machine, so that the choice follows from the model alone. */
enum {
    REFERENCE_CACHE = 1 << 20,
    TILE_BYTES = 16 << 20,
    LARGEST_TILE = 64,
    MOST_LANES = 16,
    FEWEST_LANES = 4,
    LANES_BYTES = 16 << 20,
    RANGES_BYTES = 1 << 20, /* of weights: from there on sharing layers beats sharing tiles */
    EAGER_ROWS = 1 << 16
};

/* With less than this the most frugal plan is tried first. */
static const size_t TIGHT_BYTES = (size_t)1 << 30;
static const size_t SYSTEM_MARGIN = (size_t)2 << 20;

typedef struct choice {
    int64_t tile;
    int lanes, workers, segments;
    bool ranges;
} choice;

int64_t bwi_update_blocks(const bwi_variable *variable)
{
    return (variable->count + BWI_UPDATE_BLOCK - 1) / BWI_UPDATE_BLOCK;
}

size_t bwi_plan_value_bytes(const bwi_plan *plan, const bwi_value *value, int64_t samples)
{
    if (value->kind == BWI_VALUE_STATISTICS) {
        return 0;
    }
    if (value->kind == BWI_VALUE_WORKSPACE) {
        return plan->workspace_bytes[value->node->number];
    }
    bwi_image image = bwi_node_image(value->node, 1);
    return bwi_size_multiply((size_t)bwi_image_floats(&image), bwi_size_multiply((size_t)samples, sizeof(float)));
}

static int64_t power_of_two_below(int64_t value)
{
    int64_t power = 1;
    while (power <= value / 2) {
        power *= 2;
    }
    return power;
}

/* What lanes hold. */
static size_t trainable_bytes(const bwi_graph *graph)
{
    size_t bytes = 0;
    for (int v = 0; v < graph->variable_count; v++) {
        if (graph->variables[v]->trainable && !graph->variables[v]->sparse) {
            bytes = bwi_size_add(bytes, bwi_size_multiply((size_t)graph->variables[v]->count, sizeof(float)));
        }
    }
    return bytes;
}

/* Two wishes: a tile's activations stay in the cache, and the traffic of the weights, which every tile reads and whose
 * gradient it adds to, is at most a quarter of the activations'. The second may lead out of the cache, where more samples
 * cost little more, up to a bound. */
static int64_t default_tile(const bwi_plan_request *request)
{
    size_t bytes = 1, weights = trainable_bytes(request->graph);
    for (int n = 0; n < (request->own_nodes ? request->own_nodes : request->graph->count); n++) {
        const bw_node *node = request->graph->nodes[n];
        if (!(node->op->flags & (BWI_OP_VIEW | BWI_OP_SUMS))) {
            bytes = bwi_size_add(bytes, bwi_size_multiply((size_t)bwi_shape_count(&node->shape), sizeof(float)));
        }
    }
    int64_t tile = power_of_two_below((int64_t)(REFERENCE_CACHE / bytes));
    while (tile < LARGEST_TILE && weights / (size_t)tile > bytes / 4 && bwi_size_multiply(bytes, 2 * (size_t)tile) <= TILE_BYTES) {
        tile *= 2;
    }
    return tile > LARGEST_TILE ? LARGEST_TILE : tile;
}

/* Groups lie within a tile. */
static int64_t least_tile(const bwi_graph *graph)
{
    int64_t least = 1;
    for (int n = 0; n < graph->count; n++) {
        const bw_node *node = graph->nodes[n];
        int64_t group = node->op->group ? node->op->group(node) : 1;
        least = group > least ? group : least;
    }
    return least;
}

static int default_lanes(const bwi_plan_request *request)
{
    int lanes = MOST_LANES;
    size_t bytes = trainable_bytes(request->graph);
    while (lanes > FEWEST_LANES && bwi_size_multiply(bytes, (size_t)lanes) > LANES_BYTES) {
        lanes /= 2;
    }
    return lanes;
}

static bw_status choose(bw_context *ctx, const bwi_plan_request *request, choice *c)
{
    int ranks = request->ranks > 1 ? request->ranks : 1;
    c->tile = request->tile ? request->tile : default_tile(request);
    int64_t least = least_tile(request->graph);
    c->tile = c->tile > 0 && c->tile < least ? least : c->tile;
    c->lanes = request->lanes ? request->lanes : default_lanes(request);
    c->workers = request->workers ? request->workers : ctx->workers;
    c->segments = 1;
    c->ranges = true;
    if (c->tile < 1 || (c->tile & (c->tile - 1)) || c->tile > (1 << (BWI_MAX_SIZES - 1))) {
        return bwi_fail(ctx, BW_INVALID_ARGUMENT, "tile: expected a power of two from 1 to %d, got %lld", 1 << (BWI_MAX_SIZES - 1),
                        (long long)c->tile);
    }
    if (c->lanes < 1 || (c->lanes & (c->lanes - 1)) || c->lanes > 4096) {
        return bwi_fail(ctx, BW_INVALID_ARGUMENT, "lanes: expected a power of two from 1 to 4096, got %d", c->lanes);
    }
    if (c->lanes < ranks) {
        return bwi_fail(ctx, BW_INVALID_ARGUMENT, "lanes: %d are too few for %d ranks", c->lanes, ranks);
    }
    if (c->workers > c->lanes / ranks) {
        c->workers = c->lanes / ranks;
    }
    return BW_OK;
}

/* ---- What nodes need ---- */

static bool has_pass(const bwi_plan *plan, const bw_node *node, bwi_pass pass)
{
    for (int p = 0; p < plan->program_count; p++) {
        const bwi_program *program = &plan->programs[p].program;
        for (int n = 0; n < program->count; n++) {
            if (program->instructions[n].node == node && program->instructions[n].pass == pass) {
                return true;
            }
        }
    }
    return false;
}

static bw_status prepare_node(bwi_plan *plan, bw_node *node, int size)
{
    const bwi_op *op = node->op;
    size_t at = (size_t)node->number * BWI_MAX_SIZES + (size_t)size;
    bool training = false;
    for (int p = 0; p < plan->program_count; p++) {
        training |= plan->programs[p].program.training;
    }
    if (!op->prepare || plan->needs[at].known) {
        return BW_OK;
    }
    bwi_prepare p = {.ctx = plan->ctx,
                     .node = node,
                     .samples = (int64_t)1 << size,
                     .training = training,
                     .difference = has_pass(plan, node, BWI_PASS_BACKWARD)};
    size_t held = bwi_allocated_bytes(plan->ctx);
    bw_status status = op->prepare(&p);
    plan->prepared[at] = p.prepared;
    plan->prepared_bytes[size] += bwi_allocated_bytes(plan->ctx) - held;
    plan->needs[at] = (bwi_plan_needs){.known = status == BW_OK,
                                       .workspace = p.workspace_bytes,
                                       .scratch = p.scratch_bytes,
                                       .shared = p.shared_bytes,
                                       .bound = p.bound_bytes};
    return status;
}

/* All kernels for the tile at hand; `scratch`: the most that one of them needs. */
static bw_status prepare(bwi_plan *plan, size_t *scratch)
{
    *scratch = 0;
    for (int n = 0; n < plan->graph.count; n++) {
        const bwi_plan_needs *needs = &plan->needs[(size_t)n * BWI_MAX_SIZES], *full = &needs[plan->sizes - 1];
        for (int s = plan->sizes - 1; s >= 0; s--) {
            bw_status status = prepare_node(plan, plan->graph.nodes[n], s);
            if (status != BW_OK) {
                return status;
            }
            *scratch = needs[s].scratch > *scratch ? needs[s].scratch : *scratch;
        }
        plan->workspace_bytes[n] = full->workspace;
        plan->bound_bytes[n] = full->bound;
        plan->shared[n] = full->shared; /* bytes now, an offset later */
    }
    *scratch = bwi_size_align(*scratch, BWI_CACHE_LINE);
    return BW_OK;
}

static void unprepare(bwi_plan *plan, int from_size)
{
    for (int n = 0; plan->prepared && n < plan->graph.count; n++) {
        for (int s = from_size; s < BWI_MAX_SIZES; s++) {
            void **prepared = &plan->prepared[(size_t)n * BWI_MAX_SIZES + (size_t)s];
            if (*prepared) {
                plan->graph.nodes[n]->op->unprepare(*prepared);
                *prepared = NULL;
            }
        }
    }
}

/* ---- Bytes ---- */

static size_t take(size_t *end, size_t bytes)
{
    size_t offset = *end;
    *end = bwi_size_align(bwi_size_add(*end, bytes), BWI_CACHE_LINE);
    return offset;
}

static void lay_lane(bwi_plan *plan)
{
    size_t end = 0;
    for (int v = 0; v < plan->source->variable_count; v++) {
        const bwi_variable *variable = plan->source->variables[v];
        bool trained = variable->trainable && !variable->sparse && plan->programs[0].program.training;
        plan->gradients[v] = trained ? take(&end, bwi_size_multiply((size_t)variable->count, sizeof(float))) : SIZE_MAX;
    }
    plan->lane_sums = end;
    for (int n = 0; n < plan->graph.count; n++) {
        const bw_node *node = plan->graph.nodes[n];
        int64_t count = node->op->sum_count ? node->op->sum_count(node) : 0;
        plan->sums[n] = count ? take(&end, (size_t)count * sizeof(double)) : SIZE_MAX;
    }
    plan->lane_bytes = end;
}

static void lay_shared(bwi_plan *plan, size_t *end)
{
    for (int n = 0; n < plan->graph.count; n++) {
        const bw_node *node = plan->graph.nodes[n];
        const bwi_op *op = node->op;
        plan->shared[n] = plan->shared[n] ? take(end, plan->shared[n]) : SIZE_MAX;
        plan->statistics[n] = plan->backward_statistics[n] = SIZE_MAX;
        if (op->statistics_count && has_pass(plan, node, BWI_PASS_STATISTICS)) {
            plan->statistics[n] = take(end, (size_t)op->statistics_count(node) * sizeof(float));
        }
        if (op->backward_statistics_count && has_pass(plan, node, BWI_PASS_BACKWARD_STATISTICS)) {
            plan->backward_statistics[n] = take(end, (size_t)op->backward_statistics_count(node) * sizeof(float));
        }
    }
}

/* Of the program that makes the most of them. */
static int64_t records_of_sample(const bwi_plan *plan, const bwi_variable *variable)
{
    int64_t most = 0;
    for (int p = 0; p < plan->program_count; p++) {
        const bwi_program *program = &plan->programs[p].program;
        int64_t records = 0;
        for (int n = 0; n < program->count; n++) {
            records += bwi_instruction_records(&program->instructions[n], variable);
        }
        most = records > most ? records : most;
    }
    return most;
}

/*
 * Room for the records of a whole window, or for less: when there is no more room, records are summed to one for each touched
 * row, so one for each row of the table and those of a tile for each lane are always enough. Some more lets this be rare. If the
 * window is not known, this is what there is: about one gradient of the table.
 */
static size_t record_capacity(const bwi_plan *plan, const bwi_variable *variable)
{
    size_t records = (size_t)records_of_sample(plan, variable), rows = (size_t)variable->shape.extent[0];
    size_t tiles = bwi_size_multiply(records, (size_t)plan->tile * (size_t)plan->lanes);
    size_t more = rows < EAGER_ROWS ? rows : EAGER_ROWS;
    size_t least = bwi_size_add(rows, tiles > more ? tiles : more);
    size_t window = plan->window ? bwi_size_multiply(records, (size_t)plan->window) : SIZE_MAX;
    return window < least ? window : least;
}

static void lay_tables(bwi_plan *plan, size_t *end)
{
    size_t begin = *end;
    bool scatters = false;
    plan->table_count = 0;
    for (int v = 0; plan->programs[0].program.training && v < plan->source->variable_count; v++) {
        const bwi_variable *variable = plan->source->variables[v];
        if (!variable->trainable || !variable->sparse) {
            continue;
        }
        size_t capacity = record_capacity(plan, variable);
        capacity = capacity <= UINT32_MAX ? capacity : SIZE_MAX; /* a record's number has 32 bits */
        bwi_plan_table *table = &plan->tables[plan->table_count++];
        *table = (bwi_plan_table){.variable = variable, .capacity = (int64_t)capacity};
        table->rows = take(end, bwi_size_multiply(capacity, sizeof(double)));
        table->values = take(end, bwi_size_multiply(capacity, (size_t)bwi_variable_width(variable) * sizeof(float)));
        table->sorted = take(end, bwi_size_multiply(capacity, 2 * sizeof(uint64_t)));
        scatters = scatters || !variable->lazy;
    }
    plan->scatter_offset = take(end, scatters ? (size_t)plan->workers * BWI_UPDATE_BLOCK * sizeof(float) : 0);
    plan->items.records = *end - begin;
}

static void lay_arena(bwi_plan *plan, size_t scratch)
{
    size_t end = 0, region = 0;
    lay_lane(plan);
    lay_shared(plan, &end);
    plan->totals_offset = take(&end, plan->lane_bytes - plan->lane_sums);
    plan->items.statistics = end;
    plan->lanes_offset = take(&end, bwi_size_multiply(plan->lane_bytes, (size_t)plan->own_lanes));
    plan->items.lanes = end - plan->lanes_offset;
    for (int p = 0; p < plan->program_count; p++) {
        for (int k = 0; k < plan->programs[p].phase_count; k++) {
            size_t bytes = plan->programs[p].phases[k].bytes;
            region = bytes > region ? bytes : region;
        }
    }
    plan->scratch_offset = bwi_size_align(region, 4096);
    /* 4 KiB apart from a power of two, so that two workers' buffers do not share cache sets. */
    plan->worker_bytes = bwi_size_add(bwi_size_align(bwi_size_add(plan->scratch_offset, scratch), 4096), 4096);
    plan->workers_offset = end = bwi_size_align(end, 4096);
    take(&end, bwi_size_multiply(plan->worker_bytes, (size_t)plan->regions));
    plan->rooms_offset = take(&end, bwi_size_multiply(plan->room_bytes, (size_t)plan->group));
    plan->items.activations =
        bwi_size_add(bwi_size_multiply(region, (size_t)plan->regions), bwi_size_multiply(plan->room_bytes, (size_t)plan->group));
    plan->items.scratch = bwi_size_multiply(plan->worker_bytes - region, (size_t)plan->regions);
    plan->store_offset = take(&end, bwi_size_multiply(plan->store_slot, (size_t)plan->store_tiles));
    plan->items.store = end - plan->store_offset;
    plan->spill_bytes = bwi_size_multiply(plan->spill_slot, (size_t)plan->store_tiles);
    int64_t blocks = 0;
    for (int v = 0; v < plan->source->variable_count; v++) {
        blocks += plan->gradients[v] == SIZE_MAX ? 0 : bwi_update_blocks(plan->source->variables[v]);
    }
    plan->update_offset = take(&end, (size_t)blocks * sizeof(double));
    plan->items.update = end - plan->update_offset;
    lay_tables(plan, &end);
    plan->bytes = bwi_size_align(end, 4096);
}

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
    bool ok = plan->prepared && plan->needs && plan->workspace_bytes && plan->bound_bytes && plan->shared && plan->statistics &&
              plan->backward_statistics && plan->sums && plan->gradients && plan->tables;
    return ok ? BW_OK : BW_RESOURCE_EXHAUSTED;
}

/* By ranges: a window's tiles at once, where they are few and the weights are many. Bits are those of tile by tile. */
static int group_of(bwi_plan *plan)
{
    const bwi_program *program = &plan->programs[0].program;
    size_t weights = 0;
    plan->room_bytes = 0;
    for (int n = 0; n < program->count; n++) {
        const bwi_instruction *i = &program->instructions[n];
        if (bwi_plan_waits(plan, program, i)) {
            weights = bwi_size_add(weights, (size_t)i->node->variable[0]->count * sizeof(float));
            size_t floats = (size_t)i->node->op->wait_floats(i->node, plan->tile);
            plan->room_bytes = bwi_size_add(plan->room_bytes, bwi_size_align(floats * sizeof(float), BWI_CACHE_LINE));
        }
    }
    int64_t tiles = plan->window / plan->tile + __builtin_popcountll((unsigned long long)(plan->window % plan->tile));
    int64_t most = plan->lanes < BWI_MOST_WAITING ? plan->lanes : BWI_MOST_WAITING;
    return plan->ranks == 1 && plan->window > 0 && weights >= RANGES_BYTES && tiles <= most ? (int)tiles : 0;
}

/* What no choice changes. */
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
    }
    return status;
}

size_t bwi_plan_total(const bwi_plan *plan)
{
    return bwi_size_add(bwi_size_add(plan->bytes, plan->items.books), bwi_size_add(plan->items.data, plan->items.outside));
}

/* ---- Trying ---- */

/* A plan being made. */
typedef struct attempt {
    bwi_plan *plan;
    const bwi_plan_request *request;
    size_t held; /* by the context before */
    size_t scratch;
    size_t budget;
    bool system; /* the budget is what the system gives: less once kernels have been prepared */
} attempt;

/* What the plan itself has allocated, but for kernels of larger tiles that were tried. */
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
        lay_arena(plan, a->scratch);
        plan->items.outside = a->request->outside_bytes;
        plan->items.data = a->request->data ? a->request->data(a->request->data_user, plan) : 0;
        plan->items.books = bwi_size_add(own_bytes(a), a->request->books ? a->request->books(plan) : 0);
    }
    return status;
}

/* Programs for several lengths of a sample take turns in one store: the largest must become smaller. */
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

/* What the system gives, and what of the plan is there already. A run takes a little besides that counts for the system: page tables,
 * the depth of stacks, pages of a file that are being written. */
static void find_budget(attempt *a)
{
    if (a->system) {
        size_t there = bwi_size_add(bwi_allocated_bytes(a->plan->ctx) - a->held, a->request->held_bytes);
        size_t left = bwi_memory_available(a->plan->ctx), margin = SYSTEM_MARGIN + left / 64;
        a->budget = bwi_size_add(left > margin ? left - margin : 0, there);
    }
}

/* Lays the plan out as chosen; what is kept for a whole batch gives way to the rest. */
static bw_status try_choice(attempt *a, const choice *c)
{
    bwi_plan *plan = a->plan;
    plan->tile = c->tile;
    plan->lanes = c->lanes;
    plan->own_lanes = c->lanes / plan->ranks;
    plan->workers = c->workers;
    plan->segments = c->segments;
    plan->sizes = 64 - __builtin_clzll((unsigned long long)c->tile);
    plan->store_tiles = plan->keep ? plan->batch / plan->tile + plan->sizes : 0;
    bw_status status = prepare(plan, &a->scratch);
    find_budget(a);
    plan->group = status == BW_OK && c->ranges ? group_of(plan) : 0;
    plan->regions = plan->group > plan->workers ? plan->group : plan->workers;
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

/* Segments that are tried, each as long as fewer do not suffice. */
static const int segment_counts[] = {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64};

static int more_segments(int segments)
{
    for (size_t k = 0; k + 1 < BWI_COUNT(segment_counts); k++) {
        if (segment_counts[k] == segments) {
            return segment_counts[k + 1];
        }
    }
    return 0;
}

static bw_status refuse(const attempt *a, size_t needed)
{
    char have[32], need[32];
    return bwi_fail(a->plan->ctx, BW_RESOURCE_EXHAUSTED,
                    "memory: a budget of %s is too small: parameters, optimizer, one lane and one sample need %s (%zu bytes)",
                    bwi_format_bytes(have, a->budget), bwi_format_bytes(need, needed), needed);
}

/* One sample, one worker, as few lanes as can be, and the number of segments with which the `least` is needed. Only kernels for one
 * sample are prepared for it, so that a refusal comes soon. */
static bw_status try_frugal(attempt *a, choice *c, size_t *least)
{
    bool training = false;
    for (int p = 0; p < a->plan->program_count; p++) {
        training |= a->plan->programs[p].program.training;
    }
    choice best = *c;
    int worse = 0;
    *least = SIZE_MAX;
    for (c->segments = 1; c->segments && worse < 2; c->segments = training ? more_segments(c->segments) : 0) {
        bw_status status = try_choice(a, c);
        if (status != BW_OK) {
            return status;
        }
        size_t total = bwi_plan_total(a->plan);
        worse = total < *least ? 0 : worse + 1;
        best = total < *least ? *c : best;
        *least = total < *least ? total : *least;
    }
    *c = best;
    return BW_OK;
}

/* The next more frugal choice; false if there is none. */
static bool save(choice *c, const choice *frugal)
{
    if (c->ranges) {
        c->ranges = false;
    } else if (c->tile > frugal->tile) {
        c->tile /= 2;
    } else if (c->workers > frugal->workers) {
        c->workers /= 2;
    } else if (c->segments < frugal->segments) {
        c->segments = more_segments(c->segments);
    } else if (c->lanes > frugal->lanes) {
        c->lanes /= 2;
    } else {
        return false;
    }
    return true;
}

/* From the default choice to ever more frugal ones. */
static bw_status search(attempt *a, choice c)
{
    choice frugal = {.tile = least_tile(a->plan->source), .workers = 1, .lanes = a->plan->ranks, .segments = 1};
    size_t least = 0;
    find_budget(a);
    bool tight = !a->system || a->budget < TIGHT_BYTES;
    for (bool known = false;;) {
        if (tight && !known) {
            bw_status status = try_frugal(a, &frugal, &least);
            if (status != BW_OK || least > a->budget) {
                return status != BW_OK ? status : refuse(a, least);
            }
            known = true;
        }
        bw_status status = try_choice(a, &c);
        if (status != BW_OK || bwi_plan_total(a->plan) <= a->budget) {
            return status;
        }
        tight = true;
        if (known && !save(&c, &frugal)) {
            return refuse(a, bwi_plan_total(a->plan));
        }
    }
}

bw_status bwi_plan_make(bw_context *ctx, bwi_plan **result, const bwi_plan_request *request)
{
    choice c;
    attempt a = {.request = request, .held = bwi_allocated_bytes(ctx)};
    *result = NULL;
    bw_status status = choose(ctx, request, &c);
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
    plan->wished_tile = c.tile;
    plan->wished_lanes = c.lanes;
    plan->wished_workers = c.workers;
    plan->spill = request->spill ? bwi_copy_text(ctx, request->spill) : NULL;
    status = !plan->kernels ? ctx->status : request->spill && !plan->spill ? BW_RESOURCE_EXHAUSTED : begin(plan, request);
    a.budget = request->memory;
    a.system = !request->memory;
    if (status == BW_OK) {
        status = search(&a, c);
    }
    if (status != BW_OK) {
        bwi_plan_free(plan);
        return status;
    }
    unprepare(plan, plan->sizes);
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

void bwi_plan_free(bwi_plan *plan)
{
    if (!plan) {
        return;
    }
    bw_context *ctx = plan->ctx;
    unprepare(plan, 0);
    for (int p = 0; p < plan->program_count; p++) {
        free_program(plan, &plan->programs[p]);
    }
    bwi_release(ctx, plan->programs);
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
