/*
 * The update where each rank keeps the optimizer's slots of a portion of the blocks only. It makes the new weights of its portion,
 * which take the place of their gradients in the first lane, while the variables stay as they are. The portions then go to all
 * ranks, and only when all have come are the variables changed: if a rank is lost meanwhile, no model is left with some of its
 * weights updated.
 */
#include "exec/internal.h"

size_t bwi_portion_bytes(const bwi_plan *plan)
{
    return plan->divides ? bwi_allocation_bytes(((size_t)plan->ranks + 1) * sizeof(size_t)) : 0;
}

static int64_t first_of(const bwi_exec *exec, int rank)
{
    return bwi_portion_begin(exec->block_count, exec->plan->ranks, rank);
}

bw_status bwi_portion_open(bwi_exec *exec)
{
    const bwi_plan *plan = exec->plan;
    if (!plan->divides) {
        return BW_OK;
    }
    exec->portions = bwi_allocate(exec->ctx, (size_t)plan->ranks + 1, sizeof *exec->portions);
    for (int rank = 0; exec->portions && rank <= plan->ranks; rank++) {
        int64_t first = first_of(exec, rank);
        exec->portions[rank] = first < exec->block_count ? exec->blocks[first].gradient : plan->lane_sums;
    }
    return exec->portions ? BW_OK : BW_RESOURCE_EXHAUSTED;
}

bool bwi_portion_has(const bwi_exec *exec, int64_t block)
{
    int rank = exec->ctx->rank;
    return !exec->portions || (block >= first_of(exec, rank) && block < first_of(exec, rank + 1));
}

/* The weights are kept while the updater changes them in their place. */
void bwi_portion_update(const bwi_exec *exec, int worker, int64_t number)
{
    const bwi_block *block = &exec->blocks[number];
    const bwi_memory_kernels *memory = bwi_exec_memory(exec);
    size_t bytes = (size_t)block->count * sizeof(float);
    void *weights = bwi_variable_at(block->variable, block->first), *gradient = bwi_exec_lane(exec, 0) + block->gradient;
    void *kept = exec->arena + exec->plan->kept_offset + (size_t)worker * BWI_UPDATE_BLOCK * sizeof(float);
    memory->copy(kept, weights, bytes);
    exec->updater.take(exec->updater.user, block->variable, block->first, block->count, gradient);
    memory->copy(gradient, weights, bytes);
    memory->copy(weights, kept, bytes);
}

bw_status bwi_portion_gather(bwi_exec *exec)
{
    uint64_t begin = bwi_exec_clock(exec);
    bw_status status = exec->rank->gather(exec->ctx, bwi_exec_lane(exec, 0), exec->portions);
    bwi_exec_timed(exec, 0, BWI_PART_RANKS, begin);
    return status;
}

void bwi_portion_commit(const bwi_exec *exec, int64_t number)
{
    const bwi_block *block = &exec->blocks[number];
    bwi_exec_memory(exec)->copy(bwi_variable_at(block->variable, block->first), bwi_exec_lane(exec, 0) + block->gradient,
                                (size_t)block->count * sizeof(float));
}

void *bwi_exec_room(const bwi_exec *exec, const bwi_variable *variable)
{
    return bwi_exec_lane(exec, 0) + exec->plan->gradients[variable->index];
}
