/* Opening an executor: allocates the arena, and binds every instruction of every phase to addresses, for each worker and number
 * of samples. */
#include "exec/internal.h"

static bw_status run_seed(const bwi_call *call, const bwi_tile *tile)
{
    (void)tile;
    call->kernels->memory->fill(call->floats, 1, call->dst);
    return BW_OK;
}

/* src holds the differences that the instruction adds; `bound` points to their number. */
static bw_status run_add(const bwi_call *call, const bwi_tile *tile)
{
    (void)tile;
    const int *adds = call->bound;
    call->kernels->memory->copy(call->dst, call->src[0], (size_t)call->floats * sizeof(float));
    for (int k = 1; k < *adds; k++) {
        call->kernels->add(call->floats, call->src[k], call->dst);
    }
    return BW_OK;
}

static bwi_pass_function function_of(const bwi_instruction *i, bool training)
{
    const bwi_op *op = i->node->op;
    switch (i->pass) {
    case BWI_PASS_FORWARD:
        return !training && op->inference ? op->inference : op->forward;
    case BWI_PASS_STATISTICS:
        return op->sums->statistics;
    case BWI_PASS_SEED:
        return run_seed;
    case BWI_PASS_BACKWARD:
        return op->backward;
    case BWI_PASS_BACKWARD_STATISTICS:
        return op->sums->backward_statistics;
    case BWI_PASS_BACKWARD_WEIGHTS:
        return op->backward_weights;
    case BWI_PASS_ADD:
        return run_add;
    default:
        return NULL;
    }
}

typedef struct binder {
    bwi_exec *exec;
    const bwi_plan_program *program;
    const bwi_phase *phase;
    int number;                                        /* of the phase */
    unsigned char *region;                             /* the worker's */
    unsigned char *variables, *sources, *destinations; /* where the next lists lie */
} binder;

static void *address(const binder *b, int value)
{
    size_t offset = value < 0 ? SIZE_MAX : bwi_plan_offset(&b->program->program, b->phase, value);
    return offset == SIZE_MAX ? NULL : b->region + offset;
}

static void *shared_address(const binder *b, size_t offset)
{
    return offset == SIZE_MAX ? NULL : b->exec->arena + offset;
}

/* In one phase, all nodes that write records for a variable share a sample's span of them, in the order of the instructions. */
static bwi_record_use record_use(const binder *b, const bwi_instruction *i, const bwi_variable *variable)
{
    bwi_record_use use = {.store = i->pass == BWI_PASS_BACKWARD_WEIGHTS ? bwi_records_of(b->exec, variable) : NULL};
    for (const bwi_instruction *before = b->phase->instructions; use.store && before < i; before++) {
        use.offset += bwi_instruction_records(before, variable);
    }
    return use;
}

static int inputs_of(const bwi_instruction *i)
{
    return i->pass == BWI_PASS_ADD ? i->adds : i->node->inputs;
}

/* The lists of all calls of a phase lie in one block, without copies where they are the same: records, weights and gradients by
 * variable are those of every worker and number of samples; src and diff_src belong to a worker; an input has two destinations, for
 * whole samples and for sequences of several lengths, for each pair. */
typedef struct list_sizes {
    size_t variables, sources, destinations;
} list_sizes;

static list_sizes sizes_of(const bwi_instruction *i)
{
    list_sizes s = {.variables = (size_t)i->node->variables * (sizeof(bwi_record_use) + sizeof(void *) + sizeof(size_t)),
                    .sources = 2 * (size_t)inputs_of(i) * sizeof(void *)};
    s.destinations = i->node->op->flags & BWI_OP_INPUT ? 2 * sizeof(bwi_destination) : 0;
    return s;
}

static list_sizes sizes_of_phase(const bwi_phase *phase)
{
    list_sizes all = {0};
    for (int k = 0; k < phase->count; k++) {
        list_sizes one = sizes_of(&phase->instructions[k]);
        all.variables += one.variables;
        all.sources += one.sources;
        all.destinations += one.destinations;
    }
    return all;
}

static size_t lists_bytes(const bwi_plan *plan, const bwi_phase *phase)
{
    list_sizes all = sizes_of_phase(phase);
    size_t regions = (size_t)plan->regions;
    return all.variables + regions * (all.sources + (size_t)plan->sizes * all.destinations);
}

/* Looks up, once, everything that a pass needs, so that a step only follows pointers. */
static void fill_call(binder *b, const bwi_instruction *i, int size, bwi_call *call)
{
    bwi_exec *exec = b->exec;
    const bwi_plan *plan = exec->plan;
    const bw_node *node = i->node;
    size_t n = (size_t)node->number;
    int inputs = inputs_of(i);
    bwi_image image = bwi_node_image(node, (int64_t)1 << size);
    *call = (bwi_call){.node = node,
                       .kernels = plan->kernels,
                       .prepared = plan->prepared[n * BWI_MAX_SIZES + (size_t)size],
                       .samples = (int64_t)1 << size,
                       .floats = bwi_image_floats(&image),
                       .dst = address(b, i->dst),
                       .diff_dst = address(b, i->diff_dst),
                       .workspace = address(b, i->workspace),
                       .scratch = b->region + plan->scratch_offset,
                       .sums = plan->sums[n],
                       .statistics = shared_address(b, plan->statistics[n]),
                       .backward_statistics = shared_address(b, plan->backward_statistics[n]),
                       .shared = shared_address(b, plan->shared[n]),
                       .overwrites = i->overwrites};
    call->records = (bwi_record_use *)(void *)b->variables;
    call->weights = (void **)(void *)(call->records + node->variables);
    call->gradient = (size_t *)(void *)(call->weights + node->variables);
    call->src = (void **)(void *)b->sources;
    call->diff_src = call->src + inputs;
    b->variables += sizes_of(i).variables;
    b->sources += sizes_of(i).sources;
    for (int k = 0; i->src && k < inputs; k++) {
        call->src[k] = address(b, i->src[k]);
        call->diff_src[k] = i->pass == BWI_PASS_ADD ? NULL : address(b, i->diff_src[k]);
    }
    for (int k = 0; k < node->variables; k++) {
        call->weights[k] = node->variable[k]->data;
        call->gradient[k] = plan->gradients[node->variable[k]->index];
        call->records[k] = record_use(b, i, node->variable[k]);
    }
}

static bwi_destination destination_of(const bwi_call *call)
{
    bwi_image image = bwi_node_image(call->node, call->samples);
    return (bwi_destination){.kernels = call->kernels->gather,
                             .data = call->dst,
                             .dtype = call->node->dtype,
                             .h = image.h,
                             .w = image.w,
                             .c = image.c,
                             .block = image.block};
}

/* A node's sums belong to the phase that made them. */
static void find_sums(const binder *b, const bwi_instruction *i, bwi_bound *bound)
{
    const bwi_op *op = i->node->op;
    bool backward = i->pass == BWI_PASS_BACKWARD_STATISTICS;
    if ((i->pass == BWI_PASS_STATISTICS || backward) && i->level == b->number) {
        bound->summed = op->sums->count(i->node);
        bound->finish = backward ? op->sums->backward_finish : op->sums->finish;
    }
}

static bool adds_to_lane(bwi_pass pass)
{
    return pass == BWI_PASS_STATISTICS || pass == BWI_PASS_BACKWARD_STATISTICS || pass == BWI_PASS_BACKWARD_WEIGHTS;
}

/* What a call carries besides addresses depends on its pass: the place of a stored value, the number of terms of a sum, the
 * destination of an input, or the op's own kernels. */
static bw_status bind_instruction(binder *b, const bwi_instruction *i, int size, bwi_bound *bound)
{
    bwi_exec *exec = b->exec;
    bound->instruction = i;
    bound->part = bwi_exec_part(i->node, i->pass);
    bound->adds = adds_to_lane(i->pass);
    bound->late = i->pass == BWI_PASS_BACKWARD_WEIGHTS && (i->node->op->flags & BWI_OP_ADDS_LATE);
    bound->run = function_of(i, b->program->program.training);
    find_sums(b, i, bound);
    fill_call(b, i, size, &bound->call);
    bwi_destination *to = (bwi_destination *)(void *)b->destinations;
    b->destinations += sizes_of(i).destinations;
    bw_status status = BW_OK;
    if (i->pass == BWI_PASS_STORE || i->pass == BWI_PASS_LOAD) {
        bound->stored = b->program->stored[i->dst];
        bound->spilled = b->program->fate[i->dst] == BWI_FATE_SPILL;
        const bwi_value *value = &b->program->program.values[i->dst];
        bound->bytes = bwi_plan_value_bytes(exec->plan, value, (int64_t)1 << size);
        if (exec->plan->store_by_sample) { /* also of a workspace */
            bound->bytes = bwi_plan_value_bytes(exec->plan, value, exec->plan->tile) >> (exec->plan->sizes - 1 - size);
        }
    } else if (i->pass == BWI_PASS_ADD) {
        bound->call.bound = bwi_unconst(&i->adds); /* it only reads them */
    } else if (i->node->op->flags & BWI_OP_INPUT) {
        to[0] = to[1] = destination_of(&bound->call);
        to[1].sequence = true;
        bound->call.bound = to;
    } else if (i->node->op->kernels && i->node->op->kernels->bind && i->pass != BWI_PASS_SEED) {
        exec->foreign = true;
        status = i->node->op->kernels->bind(exec->ctx, &bound->call, (int)i->pass);
    }
    return status;
}

/* Every worker runs a phase in its own region, and every number of samples has its own kernels: a list for each pair. */
static bw_status bind_phase(bwi_exec *exec, const bwi_plan_program *program, int number, bwi_bound_phase *bound)
{
    const bwi_plan *plan = exec->plan;
    const bwi_phase *phase = &program->phases[number];
    list_sizes all = sizes_of_phase(phase);
    bound->list = bwi_allocate(exec->ctx, (size_t)phase->count * (size_t)plan->regions * (size_t)plan->sizes, sizeof *bound->list);
    bound->lists = bound->list ? bwi_allocate(exec->ctx, lists_bytes(plan, phase), 1) : NULL;
    if (!bound->lists) {
        return BW_RESOURCE_EXHAUSTED;
    }
    bound->count = phase->count;
    bound->first_summed = phase->count;
    bwi_bound *next = bound->list;
    for (int w = 0; w < plan->regions; w++) {
        binder b = {.exec = exec, .program = program, .phase = phase, .number = number};
        b.region = exec->arena + plan->workers_offset + (size_t)w * plan->worker_bytes;
        b.destinations =
            bound->lists + all.variables + (size_t)plan->regions * all.sources + (size_t)w * (size_t)plan->sizes * all.destinations;
        for (int s = 0; s < plan->sizes; s++) {
            b.variables = bound->lists;
            b.sources = bound->lists + all.variables + (size_t)w * all.sources;
            for (int k = 0; k < phase->count; k++) {
                bw_status status = bind_instruction(&b, &phase->instructions[k], s, next);
                if (status != BW_OK) {
                    return status;
                }
                bound->first_summed = next->summed > 0 && k < bound->first_summed ? k : bound->first_summed;
                next++;
            }
        }
    }
    return BW_OK;
}

/* Marks, in worker 0's list for full tiles, where each node's prologue is needed first, so that it runs once. */
static bw_status find_prologues(bwi_exec *exec, int program)
{
    bool any = false, *opened = bwi_allocate(exec->ctx, (size_t)exec->plan->graph.count, sizeof *opened);
    for (int k = 0; opened && k < exec->plan->programs[program].phase_count; k++) {
        bwi_bound *list = bwi_exec_bound(exec, program, k, 0, exec->plan->sizes - 1);
        for (int n = 0; n < exec->phases[program][k].count; n++) {
            const bw_node *node = list[n].call.node;
            bool prologue = node->op->kernels && node->op->kernels->prologue;
            list[n].opens = prologue && bwi_plan_reads_shared(list[n].instruction) && !opened[node->number];
            opened[node->number] |= list[n].opens;
            exec->phases[program][k].opens |= list[n].opens;
            any |= list[n].opens;
        }
    }
    exec->unopened |= (uint64_t)!any << program;
    bwi_release(exec->ctx, opened);
    return opened ? BW_OK : BW_RESOURCE_EXHAUSTED;
}

/* After a failure, bwi_exec_unbind releases what has been bound so far. */
bw_status bwi_exec_bind(bwi_exec *exec)
{
    const bwi_plan *plan = exec->plan;
    exec->phases = bwi_allocate(exec->ctx, (size_t)plan->program_count, sizeof(bwi_bound_phase *));
    if (!exec->phases) {
        return BW_RESOURCE_EXHAUSTED;
    }
    for (int p = 0; p < plan->program_count; p++) {
        const bwi_plan_program *program = &plan->programs[p];
        exec->phases[p] = bwi_allocate(exec->ctx, (size_t)program->phase_count, sizeof(bwi_bound_phase));
        if (!exec->phases[p]) {
            return BW_RESOURCE_EXHAUSTED;
        }
        for (int k = 0; k < program->phase_count; k++) {
            bw_status status = bind_phase(exec, program, k, &exec->phases[p][k]);
            if (status != BW_OK) {
                return status;
            }
        }
        bw_status status = find_prologues(exec, p);
        if (status != BW_OK) {
            return status;
        }
    }
    return bwi_moving_open(exec);
}

static void unbind_phase(bwi_exec *exec, bwi_bound_phase *phase)
{
    size_t total = (size_t)phase->count * (size_t)exec->plan->regions * (size_t)exec->plan->sizes;
    for (size_t k = 0; phase->list && k < total; k++) {
        bwi_bound *b = &phase->list[k];
        const bwi_op_kernels *kernels = b->call.node ? b->call.node->op->kernels : NULL;
        if (kernels && kernels->unbind && b->instruction->pass != BWI_PASS_ADD && b->call.bound) {
            kernels->unbind(b->call.kernels, b->call.bound);
        }
    }
    bwi_release(exec->ctx, phase->lists);
    bwi_release(exec->ctx, phase->list);
}

void bwi_exec_unbind(bwi_exec *exec)
{
    for (int p = 0; exec->phases && p < exec->plan->program_count; p++) {
        for (int k = 0; exec->phases[p] && k < exec->plan->programs[p].phase_count; k++) {
            unbind_phase(exec, &exec->phases[p][k]);
        }
        bwi_release(exec->ctx, exec->phases[p]);
    }
    bwi_release(exec->ctx, (void *)exec->phases);
    bwi_release(exec->ctx, exec->moving);
    exec->phases = NULL;
    exec->moving = NULL;
}

/* Also closes an executor whose opening failed half-way; what is missing is NULL. */
void bwi_exec_close(bwi_exec *exec)
{
    if (!exec) {
        return;
    }
    bwi_overlap_close(exec);
    bwi_exec_close_spill(exec);
    if (exec->plan) {
        bwi_exec_unbind(exec);
        bwi_exec_memory(exec)->release(exec->ctx, exec->arena, exec->plan->bytes);
        bwi_plan_free(exec->plan);
    }
    for (int w = 0; exec->workers && w < exec->worker_count; w++) {
        bwi_release(exec->ctx, exec->workers[w].numbers);
    }
    bwi_release(exec->ctx, exec->workers);
    bwi_release(exec->ctx, exec->blocks);
    bwi_release(exec->ctx, exec->portions);
    bwi_release(exec->ctx, exec->split_tiles);
    bwi_release(exec->ctx, exec->bounds);
    bwi_release(exec->ctx, exec->factors);
    bwi_release(exec->ctx, exec->totals);
    bwi_release(exec->ctx, exec->turns);
    bwi_release(exec->ctx, exec->norms);
    bwi_release(exec->ctx, exec->tables);
    bwi_ledger_close(exec->ctx, &exec->times);
    bwi_release(exec->ctx, exec);
}

static double flops_of(const bwi_plan *plan)
{
    double flops = 0;
    for (int n = 0; n < plan->graph.count; n++) {
        const bw_node *node = plan->graph.nodes[n];
        flops += node->op->flops ? node->op->flops(node) : (double)bwi_shape_count(&node->shape);
    }
    return flops;
}

/* A worker that takes no tiles shares updates and split layers; a region without a worker belongs to one of split_tiles. */
static size_t workers_of(const bwi_plan *plan)
{
    return (size_t)(plan->workers > plan->regions ? plan->workers : plan->regions);
}

static bw_status open_workers(bwi_exec *exec)
{
    exec->workers = bwi_allocate(exec->ctx, workers_of(exec->plan), sizeof *exec->workers);
    if (!exec->workers) {
        return BW_RESOURCE_EXHAUSTED;
    }
    exec->worker_count = exec->plan->regions;
    for (int w = 0; w < exec->worker_count; w++) {
        exec->workers[w].numbers = bwi_allocate(exec->ctx, (size_t)exec->plan->tile, sizeof(int64_t));
        if (!exec->workers[w].numbers) {
            return BW_RESOURCE_EXHAUSTED;
        }
    }
    return BW_OK;
}

static size_t blocks_of(const bwi_plan *plan)
{
    size_t count = 0;
    for (int v = 0; v < plan->source->variable_count; v++) {
        count += plan->gradients[v] == SIZE_MAX ? 0 : (size_t)bwi_update_blocks(plan->source->variables[v]);
    }
    return count;
}

static size_t bounds_of(const bwi_plan *plan)
{
    return (size_t)plan->staged * (size_t)plan->programs[0].phases[0].deferred;
}

/* Which variables have gradients that may be deferred to the update, by their index. */
static bool *find_deferred(const bwi_exec *exec)
{
    const bwi_phase *phase = &exec->plan->programs[0].phases[0];
    bool *deferred = bwi_allocate(exec->ctx, (size_t)exec->plan->source->variable_count, sizeof *deferred);
    for (int n = phase->count - phase->deferred; deferred && n < phase->count; n++) {
        for (int k = 0; k < phase->instructions[n].node->variables; k++) {
            deferred[phase->instructions[n].node->variable[k]->index] = true;
        }
    }
    return deferred;
}

/* Blocks do not depend on the number of workers, because norms are summed over them in their order. */
static bw_status open_blocks(bwi_exec *exec)
{
    const bwi_plan *plan = exec->plan;
    exec->blocks = bwi_allocate(exec->ctx, blocks_of(plan), sizeof *exec->blocks);
    exec->split_tiles = bwi_allocate(exec->ctx, (size_t)plan->split_tiles, sizeof *exec->split_tiles);
    exec->bounds = bwi_allocate(exec->ctx, bounds_of(plan), sizeof *exec->bounds);
    exec->factors = bwi_allocate(exec->ctx, bounds_of(plan), sizeof *exec->factors);
    exec->staging = exec->arena + plan->staging_offset;
    exec->totals = bwi_allocate(exec->ctx, 1, plan->lane_bytes - plan->lane_sums);
    exec->turns = bwi_allocate(exec->ctx, bwi_turns_count(plan), sizeof *exec->turns);
    exec->norms = bwi_allocate(exec->ctx, blocks_of(plan), sizeof *exec->norms);
    if (!exec->blocks || !exec->split_tiles || !exec->bounds || !exec->factors || !exec->totals || !exec->norms || !exec->turns) {
        return BW_RESOURCE_EXHAUSTED;
    }
    bool *deferred = find_deferred(exec);
    if (!deferred) {
        return BW_RESOURCE_EXHAUSTED;
    }
    for (int v = 0; v < plan->source->variable_count; v++) {
        const bwi_variable *variable = plan->source->variables[v];
        for (int64_t first = 0; plan->gradients[v] != SIZE_MAX && first < variable->count; first += BWI_UPDATE_BLOCK) {
            bwi_block *block = &exec->blocks[exec->block_count++];
            *block = (bwi_block){.variable = variable, .first = first, .count = variable->count - first};
            block->count = block->count < BWI_UPDATE_BLOCK ? block->count : BWI_UPDATE_BLOCK;
            block->gradient = plan->gradients[v] + (size_t)first * sizeof(float);
            block->defers = deferred[v];
        }
    }
    bwi_release(exec->ctx, deferred);
    return BW_OK;
}

/* OpenMP allocates a thread's settings when the thread first changes one: that happens here, so that a step allocates nothing. */
static void warm_thread(void *user, int worker)
{
    (void)worker;
    const bwi_exec *exec = user;
    const bwi_convolution_kernels *convolution = exec->plan->kernels->convolution;
    convolution->end(convolution->begin());
}

/* The bytes of one phase: its table of bound instructions, and what each of them holds. */
static size_t phase_bookkeeping(const bwi_plan *plan, const bwi_phase *phase)
{
    size_t copies = (size_t)plan->regions * (size_t)plan->sizes, bytes = 0;
    for (int k = 0; k < phase->count; k++) {
        const bwi_instruction *i = &phase->instructions[k];
        bytes += plan->bound_bytes[i->node->number];
    }
    size_t table = bwi_allocation_bytes(bwi_size_multiply((size_t)phase->count * sizeof(bwi_bound), copies));
    table = bwi_size_add(table, bwi_allocation_bytes(lists_bytes(plan, phase)));
    return bwi_size_add(table, bwi_size_multiply(bytes, copies));
}

size_t bwi_exec_bookkeeping(const bwi_plan *plan)
{
    size_t regions = (size_t)plan->regions, tables = (size_t)plan->table_count;
    size_t bytes =
        bwi_allocation_bytes(sizeof(bwi_exec)) + bwi_allocation_bytes(workers_of(plan) * sizeof(bwi_worker)) +
        regions * bwi_allocation_bytes((size_t)plan->tile * sizeof(int64_t)) + bwi_allocation_bytes(tables * sizeof(bwi_table)) +
        bwi_allocation_bytes(blocks_of(plan) * sizeof(bwi_block)) +
        bwi_allocation_bytes((size_t)plan->split_tiles * sizeof(bwi_tile)) +
        bwi_allocation_bytes(bounds_of(plan) * sizeof(double)) + bwi_allocation_bytes(bounds_of(plan) * sizeof(bwi_deferred_tile)) +
        bwi_allocation_bytes(plan->lane_bytes - plan->lane_sums) + bwi_allocation_bytes(blocks_of(plan) * sizeof(double)) +
        bwi_allocation_bytes(bwi_turns_count(plan) * sizeof(atomic_llong)) +
        bwi_allocation_bytes((size_t)bwi_moving_count(plan) * sizeof(bwi_moving));
    bytes = bwi_size_add(bytes, bwi_ledger_bytes(bwi_exec_parts(plan), plan->workers));
    bytes = bwi_size_add(bytes, bwi_update_ranks_bytes(plan));
    bytes = bwi_size_add(bytes, bwi_overlap_bytes(plan));
    bytes = bwi_size_add(bytes, bwi_portion_bytes(plan));
    bytes += bwi_allocation_bytes((size_t)plan->program_count * sizeof(bwi_bound_phase *));
    for (int p = 0; p < plan->program_count; p++) {
        bytes += bwi_allocation_bytes((size_t)plan->programs[p].phase_count * sizeof(bwi_bound_phase));
        for (int k = 0; k < plan->programs[p].phase_count; k++) {
            bytes = bwi_size_add(bytes, phase_bookkeeping(plan, &plan->programs[p].phases[k]));
        }
    }
    return bytes;
}

/* Everything a run needs is allocated here, so that a step allocates nothing. */
bw_status bwi_exec_open(bw_context *ctx, bwi_exec **result, bwi_plan *plan)
{
    bwi_exec *exec = bwi_allocate(ctx, 1, sizeof *exec);
    *result = NULL;
    if (!exec) {
        bwi_plan_free(plan);
        return BW_RESOURCE_EXHAUSTED;
    }
    exec->ctx = ctx;
    exec->plan = plan;
    exec->spill = -1;
    exec->rank = bwi_rank_of(ctx);
    exec->flops = flops_of(plan);
    exec->arena = plan->kernels->memory->allocate(ctx, plan->bytes);
    bw_status status = exec->arena ? open_workers(exec) : BW_RESOURCE_EXHAUSTED;
    if (status == BW_OK) {
        status = open_blocks(exec);
    }
    if (status == BW_OK) {
        status = bwi_portion_open(exec);
    }
    if (status == BW_OK) {
        status = bwi_records_open(exec);
    }
    if (status == BW_OK) {
        status = bwi_ledger_open(ctx, &exec->times, bwi_exec_parts(plan), plan->workers);
    }
    if (status == BW_OK) {
        status = bwi_exec_open_spill(exec);
    }
    if (status == BW_OK) {
        status = bwi_exec_bind(exec);
    }
    if (status == BW_OK) {
        status = bwi_overlap_open(exec);
    }
    if (status == BW_OK) {
        status = bwi_pool_open(ctx);
    }
    if (status != BW_OK) {
        bwi_exec_close(exec);
        return status;
    }
    bwi_pool_run(ctx, plan->workers, warm_thread, exec);
    *result = exec;
    return BW_OK;
}

const bwi_plan *bwi_exec_plan(const bwi_exec *exec)
{
    return exec->plan;
}

void bwi_exec_set_hooks(bwi_exec *exec, const bwi_hooks *hooks)
{
    exec->hooks = hooks ? *hooks : (bwi_hooks){0};
}

void bwi_exec_set_data_budget(bwi_exec *exec, size_t bytes)
{
    exec->data_budget = bytes;
}

void bwi_exec_set_seed(bwi_exec *exec, uint64_t seed, uint64_t update)
{
    exec->seed = seed;
    exec->update = update;
}
