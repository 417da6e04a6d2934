/*
 * What a plan's nodes need, and where everything lies in the arena: lanes, a region for each worker's tile with its scratch, the
 * store of a whole batch, records of tables. Kernels are prepared once for each number of samples, whatever choices are tried.
 */
#include "plan/internal.h"

/* A table's capacity exceeds the least that is necessary by at most this many records. */
enum { EAGER_ROWS = 1 << 16 };

enum { PAGE = 4096 };

int64_t bwi_update_blocks(const bwi_variable *variable)
{
    return (variable->count + BWI_UPDATE_BLOCK - 1) / BWI_UPDATE_BLOCK;
}

bool bwi_has_portions(const bwi_variable *variable)
{
    return variable->trainable && !variable->sparse;
}

int64_t bwi_portion_of(const bwi_graph *graph, const bwi_variable *variable, int ranks, int rank)
{
    int64_t before = 0, all = 0;
    for (int v = 0; v < graph->variable_count; v++) {
        int64_t blocks = bwi_has_portions(graph->variables[v]) ? bwi_update_blocks(graph->variables[v]) : 0;
        before += v < variable->index ? blocks : 0;
        all += blocks;
    }
    int64_t first = (bwi_portion_begin(all, ranks, rank) - before) * BWI_UPDATE_BLOCK;
    return first < 0 ? 0 : first < variable->count ? first : variable->count;
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

/* ---- What nodes need ---- */

static bool has_pass(const bwi_plan *plan, const bw_node *node, bwi_pass pass)
{
    return plan->passes[node->number] >> pass & 1;
}

/* Kernels are kept for every number of samples that was tried, with the bytes they took, since the search for a budget comes
 * back to some. */
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

bw_status bwi_plan_prepare(bwi_plan *plan, size_t *scratch)
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

void bwi_plan_unprepare(bwi_plan *plan, int from_size)
{
    for (int n = 0; plan->prepared && n < plan->graph.count; n++) {
        for (int s = from_size; s < BWI_MAX_SIZES; s++) {
            void **prepared = &plan->prepared[(size_t)n * BWI_MAX_SIZES + (size_t)s];
            if (*prepared) {
                plan->graph.nodes[n]->op->kernels->release(plan->ctx->kernels, *prepared);
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

static void take_gradient(bwi_plan *plan, const bwi_variable *variable, size_t *end)
{
    if (plan->gradients[variable->index] == SIZE_MAX) {
        plan->gradients[variable->index] = take(end, bwi_size_multiply((size_t)variable->count, sizeof(float)));
    }
}

/* A lane begins with gradients that are deferred, and returns where they end: what is staged for them lies in their place. Where
 * lanes are joined, those gradients have one buffer behind all lanes instead. */
static size_t lay_lane(bwi_plan *plan)
{
    size_t end = 0;
    bool defers = plan->split_tiles || plan->joined;
    const bwi_phase *phase = plan->programs[0].phases;
    for (int v = 0; v < plan->source->variable_count; v++) {
        plan->gradients[v] = SIZE_MAX;
    }
    for (int n = defers ? phase->count - phase->deferred : phase->count; n < phase->count; n++) {
        for (int k = 0; k < phase->instructions[n].node->variables; k++) {
            take_gradient(plan, phase->instructions[n].node->variable[k], &end);
        }
    }
    size_t deferred = end;
    plan->joined_bytes = plan->joined ? deferred : 0;
    end = plan->joined ? 0 : end;
    for (int v = 0; plan->programs[0].program.training && v < plan->source->variable_count; v++) {
        const bwi_variable *variable = plan->source->variables[v];
        if (variable->trainable && !variable->sparse) {
            take_gradient(plan, variable, &end);
        }
    }
    plan->lane_sums = end;
    for (int n = 0; n < plan->graph.count; n++) {
        const bw_node *node = plan->graph.nodes[n];
        int64_t count = node->op->sums ? node->op->sums->count(node) : 0;
        plan->sums[n] = count ? take(&end, (size_t)count * sizeof(double)) : SIZE_MAX;
    }
    plan->lane_bytes = end;
    for (int n = plan->joined ? phase->count - phase->deferred : phase->count; n < phase->count; n++) {
        for (int k = 0; k < phase->instructions[n].node->variables; k++) {
            size_t *gradient = &plan->gradients[phase->instructions[n].node->variable[k]->index];
            *gradient = bwi_size_add(*gradient, bwi_size_multiply(plan->lane_bytes, (size_t)plan->lane_slots));
        }
    }
    return deferred;
}

/* A prologue serves the backward passes and, if it is flagged so, the forward pass. */
bool bwi_plan_reads_shared(const bwi_instruction *i)
{
    bool backward = i->pass == BWI_PASS_BACKWARD || i->pass == BWI_PASS_BACKWARD_WEIGHTS;
    bool forward = i->pass == BWI_PASS_FORWARD || i->pass == BWI_PASS_STATISTICS;
    return backward || (forward && (i->node->op->flags & BWI_OP_INFERENCE_PROLOGUE));
}

/* The phases in which what a node's prologue makes is read, from the first to the last; programs count on. With one phase
 * everything lives at once, from one update to the next. */
static void find_shared_lives(const bwi_plan *plan, bwi_life *lives)
{
    for (int n = 0; n < plan->graph.count; n++) {
        lives[n] = (bwi_life){.value = n, .first = -1, .bytes = bwi_size_align(plan->shared[n], BWI_CACHE_LINE)};
    }
    for (int p = 0, when = 0; p < plan->program_count; p++) {
        for (int k = 0; k < plan->programs[p].phase_count; k++, when += plan->prologues_by_phase) {
            const bwi_phase *phase = &plan->programs[p].phases[k];
            for (int i = 0; i < phase->count; i++) {
                bwi_life *life = &lives[phase->instructions[i].node->number];
                if (bwi_plan_reads_shared(&phase->instructions[i])) {
                    life->first = life->first < 0 ? when : life->first;
                    life->last = when;
                }
            }
        }
    }
}

/* What ops derive from their variables: where a model has phases, that of one phase after another in the same place. */
static bw_status lay_shared(bwi_plan *plan, size_t *end)
{
    size_t nodes = (size_t)plan->graph.count;
    bwi_life *lives = bwi_allocate(plan->ctx, nodes, sizeof *lives), **order = bwi_allocate(plan->ctx, nodes, sizeof(bwi_life *));
    bool ok = lives && order;
    plan->prologues_by_phase = false;
    for (int p = 0; p < plan->program_count; p++) {
        plan->prologues_by_phase |= plan->programs[p].phase_count > 1;
    }
    int count = 0;
    if (ok) {
        find_shared_lives(plan, lives);
        for (int n = 0; n < plan->graph.count; n++) {
            plan->shared[n] = SIZE_MAX;
            if (lives[n].bytes && lives[n].first >= 0) {
                order[count++] = &lives[n];
            }
        }
        size_t begin = take(end, plan->prologues_by_phase ? bwi_plan_pack(order, count) : 0);
        for (int k = 0; k < count; k++) {
            plan->shared[order[k]->value] = plan->prologues_by_phase ? begin + order[k]->offset : take(end, order[k]->bytes);
        }
    }
    bwi_release(plan->ctx, lives);
    bwi_release(plan->ctx, (void *)order);
    return ok ? BW_OK : BW_RESOURCE_EXHAUSTED;
}

static void lay_statistics(bwi_plan *plan, size_t *end)
{
    for (int n = 0; n < plan->graph.count; n++) {
        const bw_node *node = plan->graph.nodes[n];
        const bwi_op *op = node->op;
        plan->statistics[n] = plan->backward_statistics[n] = SIZE_MAX;
        if (op->sums && op->sums->finished && has_pass(plan, node, BWI_PASS_STATISTICS)) {
            plan->statistics[n] = take(end, (size_t)op->sums->finished(node) * sizeof(float));
        }
        if (op->sums && op->sums->backward_finished && has_pass(plan, node, BWI_PASS_BACKWARD_STATISTICS)) {
            plan->backward_statistics[n] = take(end, (size_t)op->sums->backward_finished(node) * sizeof(float));
        }
    }
}

/* The records per sample in the program that makes the most of them. */
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
 * The records of a whole window, or fewer: when a table is full, its records are summed to one for each touched row, so one for
 * each row of the table and those of a tile for each lane always suffice. A few more make this rare. If the window is not known,
 * that is the capacity: about one gradient of the table.
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

/* Sparse variables have records in place of gradients; what updates need besides lies behind them. */
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
    size_t buffers = (size_t)plan->workers * BWI_UPDATE_BLOCK * sizeof(float);
    plan->scatter_offset = take(end, scatters ? buffers : 0);
    plan->kept_offset = take(end, plan->divides ? buffers : 0);
    plan->items.records = *end - begin;
}

/* Stages where the one buffer of gradients lies, if there is room for it. Should they have to be stored, what is staged moves to
 * the regions of tiles first, which lie at the arena's end so far and become longer if necessary. */
static void lay_joined_staging(bwi_plan *plan, size_t *end)
{
    size_t regions = bwi_size_multiply(plan->worker_bytes, (size_t)plan->regions);
    plan->overlaid = plan->staging_total <= plan->joined_bytes;
    size_t more = !plan->overlaid ? plan->staging_total : plan->staging_total > regions ? plan->staging_total - regions : 0;
    size_t at = take(end, more);
    plan->staging_offset = plan->overlaid ? plan->lanes_offset + plan->lane_bytes * (size_t)plan->lane_slots : at;
    plan->items.activations = bwi_size_add(plan->items.activations, more);
}

/* The factors of deferred gradients are staged in the place of these gradients, each tile's in its lane or, of one lane, one after
 * another; or apart, if they are larger. */
static void lay_staging(bwi_plan *plan, size_t deferred, size_t *end)
{
    if (plan->joined) {
        lay_joined_staging(plan, end);
        return;
    }
    size_t tiles = (size_t)plan->split_tiles, needed = bwi_size_multiply(plan->staging_bytes, plan->lanes == 1 ? tiles : 1);
    plan->staging_offset = plan->lanes_offset;
    plan->staging_step = plan->lanes == 1 ? plan->staging_bytes : plan->lane_bytes;
    if (needed > deferred) {
        plan->staging_offset = take(end, bwi_size_multiply(plan->staging_bytes, tiles));
        plan->staging_step = plan->staging_bytes;
        plan->items.activations = bwi_size_add(plan->items.activations, bwi_size_multiply(plan->staging_bytes, tiles));
    }
}

/* In the order of the arena: what all workers share, lanes, the workers' regions, staging, the store, records. */
bw_status bwi_plan_lay(bwi_plan *plan, size_t scratch)
{
    size_t end = 0, region = 0, deferred_gradients = lay_lane(plan);
    if (lay_shared(plan, &end) != BW_OK) {
        return BW_RESOURCE_EXHAUSTED;
    }
    lay_statistics(plan, &end);
    plan->items.statistics = end;
    plan->lanes_offset =
        take(&end, bwi_size_add(bwi_size_multiply(plan->lane_bytes, (size_t)plan->lane_slots), plan->joined_bytes));
    plan->items.lanes = end - plan->lanes_offset;
    for (int p = 0; p < plan->program_count; p++) {
        for (int k = 0; k < plan->programs[p].phase_count; k++) {
            size_t bytes = plan->programs[p].phases[k].bytes;
            region = bytes > region ? bytes : region;
        }
    }
    /* A page apart from a power of two, so that two workers' buffers do not share cache sets. Regions that fit a page compete for
     * none: they are two cache lines apart, as processors fetch lines in pairs. */
    bool small = bwi_size_add(region, scratch) <= PAGE;
    size_t alignment = small ? 2 * BWI_CACHE_LINE : PAGE;
    plan->scratch_offset = bwi_size_align(region, alignment);
    plan->worker_bytes = bwi_size_add(bwi_size_align(bwi_size_add(plan->scratch_offset, scratch), alignment), alignment);
    plan->workers_offset = end = bwi_size_align(end, alignment);
    take(&end, bwi_size_multiply(plan->worker_bytes, (size_t)plan->regions));
    plan->items.activations = bwi_size_multiply(region, (size_t)plan->regions);
    lay_staging(plan, deferred_gradients, &end);
    size_t deferred = plan->split_tiles || plan->joined ? bwi_size_multiply(plan->deferred_bytes, (size_t)plan->workers) : 0;
    plan->deferred_offset = take(&end, deferred);
    plan->items.scratch = bwi_size_add(bwi_size_multiply(plan->worker_bytes - region, (size_t)plan->regions), deferred);
    plan->store_offset = take(&end, bwi_size_multiply(plan->store_slot, (size_t)plan->store_tiles));
    plan->items.store = end - plan->store_offset;
    plan->spill_bytes = bwi_size_multiply(plan->spill_slot, (size_t)plan->store_tiles);
    lay_tables(plan, &end);
    plan->bytes = bwi_size_align(end, PAGE);
    return BW_OK;
}
