/*
 * Turns. Where a lane's sum of gradients is large beside a tile's values, the plan has fewer lanes than workers, and several
 * workers take tiles of the same lane through the model. Each lane has a turn for every instruction that adds to it: a tile waits
 * until the lane's tile before it has passed that instruction, so that the order of sums is that of the tiles, whoever runs them.
 * Tiles are taken in their order, so the lowest of those under way never waits, and the others follow at the distance of an
 * instruction.
 */
#include "exec/internal.h"

#include <sched.h>

enum { PAUSES = 2000 /* before the processor is offered to others */ };

static void pause_cpu(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

size_t bwi_turns_count(const bwi_plan *plan)
{
    int most = 0;
    for (int p = 0; p < plan->program_count; p++) {
        for (int k = 0; k < plan->programs[p].phase_count; k++) {
            most = plan->programs[p].phases[k].count > most ? plan->programs[p].phases[k].count : most;
        }
    }
    return plan->tile_workers > plan->own_lanes ? (size_t)plan->own_lanes * (size_t)most : 0;
}

static atomic_llong *turn_of(const bwi_exec *exec, int lane, int instruction)
{
    return &exec->turns[lane * exec->phases[exec->program][exec->phase].count + instruction];
}

void bwi_turns_begin(bwi_exec *exec)
{
    int count = exec->phases[exec->program][exec->phase].count * exec->plan->own_lanes;
    for (int n = 0; n < count; n++) {
        atomic_store_explicit(&exec->turns[n], 0, memory_order_relaxed);
    }
}

/* Time in which a worker waits is idle time, and none of its share. */
bool bwi_turn_wait(bwi_exec *exec, int worker, int lane, int instruction, int64_t k)
{
    const atomic_llong *turn = turn_of(exec, lane, instruction);
    int64_t number = (k - exec->begin) / exec->plan->lanes;
    if (atomic_load_explicit(turn, memory_order_acquire) == number) {
        return true;
    }
    uint64_t begin = bwi_exec_clock(exec);
    for (int64_t n = 0; atomic_load_explicit(turn, memory_order_acquire) != number; n++) {
        if (atomic_load_explicit(&exec->failed, memory_order_relaxed)) {
            return false;
        }
        if (n < PAUSES) {
            pause_cpu();
        } else {
            sched_yield();
        }
    }
    if (begin) {
        uint64_t end = bwi_ticks();
        bwi_ledger_add(exec->ledger, worker, bwi_exec_fixed_part(exec->plan, BWI_PART_IDLE), begin, end);
        exec->workers[worker].waited += end - begin;
    }
    return true;
}

void bwi_turn_pass(bwi_exec *exec, int lane, int instruction)
{
    atomic_fetch_add_explicit(turn_of(exec, lane, instruction), 1, memory_order_release);
}
