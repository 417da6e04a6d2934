/*
 * Makes a plan: tile, lanes and workers from the model, then everything's bytes; if they do not fit the budget, the
 * next more frugal choice. Budgets are met in this order: no groups of tiles, smaller tiles, fewer workers, computing boundary
 * values again instead of keeping them, fewer lanes.
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

typedef struct choice {
    int64_t tile;
    int lanes, workers;
    bool keep, ranges;
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
    c->lanes = request->lanes ? request->lanes : default_lanes(request);
    c->workers = request->workers ? request->workers : ctx->workers;
    c->keep = request->batch > 0;
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

static bw_status prepare_node(bwi_plan *plan, bw_node *node, size_t *scratch)
{
    const bwi_op *op = node->op;
    bool training = false;
    for (int p = 0; p < plan->program_count; p++) {
        training |= plan->programs[p].program.training;
    }
    for (int s = plan->sizes - 1; op->prepare && s >= 0; s--) {
        void **slots = &plan->prepared[(size_t)node->number * BWI_MAX_SIZES];
        bwi_prepare p = {.ctx = plan->ctx,
                         .node = node,
                         .samples = (int64_t)1 << s,
                         .training = training,
                         .difference = has_pass(plan, node, BWI_PASS_BACKWARD),
                         .prepared_for_tile = slots[plan->sizes - 1]};
        bw_status status = op->prepare(&p);
        slots[s] = p.prepared;
        if (status != BW_OK) {
            return status;
        }
        if (s == plan->sizes - 1) {
            plan->workspace_bytes[node->number] = p.workspace_bytes;
            plan->bound_bytes[node->number] = p.bound_bytes;
            plan->shared[node->number] = p.shared_bytes; /* bytes now, an offset later */
        }
        *scratch = p.scratch_bytes > *scratch ? p.scratch_bytes : *scratch;
    }
    return BW_OK;
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
    plan->store_tiles = plan->keep ? (plan->batch + plan->tile - 1) / plan->tile + BWI_MAX_SIZES : 0;
    plan->store_offset = take(&end, plan->keep ? bwi_size_multiply(plan->store_slot, (size_t)plan->store_tiles) : 0);
    plan->items.store = end - plan->store_offset;
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
    plan->workspace_bytes = bwi_allocate(ctx, nodes, sizeof(size_t));
    plan->bound_bytes = bwi_allocate(ctx, nodes, sizeof(size_t));
    plan->shared = bwi_allocate(ctx, nodes, sizeof(size_t));
    plan->statistics = bwi_allocate(ctx, nodes, sizeof(size_t));
    plan->backward_statistics = bwi_allocate(ctx, nodes, sizeof(size_t));
    plan->sums = bwi_allocate(ctx, nodes, sizeof(size_t));
    plan->gradients = bwi_allocate(ctx, variables, sizeof(size_t));
    plan->tables = bwi_allocate(ctx, variables, sizeof *plan->tables);
    bool ok = plan->prepared && plan->workspace_bytes && plan->bound_bytes && plan->shared && plan->statistics &&
              plan->backward_statistics && plan->sums && plan->gradients && plan->tables;
    return ok ? BW_OK : BW_RESOURCE_EXHAUSTED;
}

/* By ranges: a window's tiles at once, where they are few and the weights are many. Bits are those of tile by tile. */
static int group_of(bwi_plan *plan)
{
    const bwi_program *program = &plan->programs[0].program;
    size_t weights = 0;
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

static bw_status fill(bwi_plan *plan, const bwi_plan_request *request)
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
    }
    size_t scratch = 0;
    for (int n = 0; n < plan->graph.count && status == BW_OK; n++) {
        status = prepare_node(plan, plan->graph.nodes[n], &scratch);
    }
    plan->group = status == BW_OK && plan->group ? group_of(plan) : 0;
    plan->regions = plan->group > plan->workers ? plan->group : plan->workers;
    for (int p = 0; p < plan->program_count && status == BW_OK; p++) {
        status = bwi_plan_cut(plan, &plan->programs[p]);
    }
    if (status == BW_OK) {
        lay_arena(plan, bwi_size_align(scratch, BWI_CACHE_LINE));
        plan->items.outside = request->outside_bytes;
    }
    return status;
}

size_t bwi_plan_total(const bwi_plan *plan)
{
    return bwi_size_add(bwi_size_add(plan->bytes, plan->items.books), plan->items.outside);
}

static bw_status try_choice(bw_context *ctx, bwi_plan **result, const bwi_plan_request *request, const choice *c)
{
    size_t held = bwi_allocated_bytes(ctx);
    bwi_plan *plan = bwi_allocate(ctx, 1, sizeof *plan);
    *result = plan;
    if (!plan) {
        return BW_RESOURCE_EXHAUSTED;
    }
    plan->ctx = ctx;
    plan->kernels = bwi_kernels_of(ctx);
    plan->source = request->graph;
    plan->tile = c->tile;
    plan->lanes = c->lanes;
    plan->ranks = request->ranks > 1 ? request->ranks : 1;
    plan->own_lanes = c->lanes / plan->ranks;
    plan->workers = c->workers;
    plan->keep = c->keep;
    plan->group = c->ranges ? 1 : 0; /* for now; see group_of */
    plan->batch = request->batch;
    plan->window = request->window;
    while (((int64_t)1 << plan->sizes) <= plan->tile) {
        plan->sizes++;
    }
    bw_status status = plan->kernels ? fill(plan, request) : ctx->status;
    if (status != BW_OK) {
        bwi_plan_free(plan);
        *result = NULL;
        return status;
    }
    plan->items.books = bwi_size_add(bwi_allocated_bytes(ctx) - held, request->books ? request->books(plan) : 0);
    return BW_OK;
}

/* The next more frugal choice; false if there is none. */
static bool save(choice *c, const bwi_plan *plan, size_t budget)
{
    if (c->ranges && plan->group) {
        c->ranges = false;
    } else if (c->keep && plan->items.store > budget / 2) {
        c->keep = false;
    } else if (c->tile > 1) {
        c->tile /= 2;
    } else if (c->workers > 1) {
        c->workers /= 2;
    } else if (c->keep) {
        c->keep = false;
    } else if (c->lanes > plan->ranks && c->lanes > 1) {
        c->lanes /= 2;
    } else {
        return false;
    }
    return true;
}

bw_status bwi_plan_make(bw_context *ctx, bwi_plan **result, const bwi_plan_request *request)
{
    choice c;
    size_t budget = request->memory ? request->memory : bwi_memory_available(ctx);
    bw_status status = choose(ctx, request, &c);
    const choice wished = c;
    while (status == BW_OK) {
        status = try_choice(ctx, result, request, &c);
        if (status != BW_OK) {
            return status;
        }
        (*result)->wished_tile = wished.tile;
        (*result)->wished_lanes = wished.lanes;
        (*result)->wished_workers = wished.workers;
        size_t needed = bwi_plan_total(*result);
        if (needed <= budget) {
            return BW_OK;
        }
        bool smaller = save(&c, *result, budget);
        bwi_plan_free(*result);
        *result = NULL;
        if (!smaller) {
            char have[32], need[32];
            return bwi_fail(ctx, BW_RESOURCE_EXHAUSTED,
                            "memory: a budget of %s is too small: parameters, optimizer, one lane and one sample need %s",
                            bwi_format_bytes(have, budget), bwi_format_bytes(need, needed));
        }
    }
    return status;
}

static void free_program(bwi_plan *plan, bwi_plan_program *program)
{
    for (int k = 0; program->phases && k < program->phase_count; k++) {
        bwi_release(plan->ctx, program->phases[k].instructions);
        bwi_release(plan->ctx, program->phases[k].offsets);
    }
    bwi_release(plan->ctx, program->phases);
    bwi_release(plan->ctx, program->stored);
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
    for (int n = 0; plan->prepared && n < plan->graph.count; n++) {
        for (int s = 0; s < BWI_MAX_SIZES; s++) {
            void *prepared = plan->prepared[(size_t)n * BWI_MAX_SIZES + (size_t)s];
            if (prepared) {
                plan->graph.nodes[n]->op->unprepare(prepared);
            }
        }
    }
    for (int p = 0; p < plan->program_count; p++) {
        free_program(plan, &plan->programs[p]);
    }
    bwi_release(ctx, plan->programs);
    bwi_release(ctx, (void *)plan->prepared);
    bwi_release(ctx, plan->workspace_bytes);
    bwi_release(ctx, plan->bound_bytes);
    bwi_release(ctx, plan->shared);
    bwi_release(ctx, plan->statistics);
    bwi_release(ctx, plan->backward_statistics);
    bwi_release(ctx, plan->sums);
    bwi_release(ctx, plan->gradients);
    bwi_release(ctx, plan->tables);
    bwi_release(ctx, (void *)plan->lowered);
    plan->graph.ctx = ctx;
    bwi_graph_free(&plan->graph);
    bwi_release(ctx, plan);
}
