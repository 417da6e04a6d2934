/*
 * Decides which steps are timed, and what their parts are. Reading the clock twice for each part takes longer than the whole step
 * of a small model, so steps are sampled: after each timed step the next one is drawn at random, at a mean distance at which the
 * readings cost a share of COST of the run. A step that is not timed costs one comparison. The first steps are left out, since they
 * meet cold caches and fresh pages. The time between epochs is no step's, so the clock is also read where one begins and ends;
 * of epochs that are too short for that, most are left out, drawn at random likewise.
 */
#include "exec/internal.h"

static const double COST = 0.004;

enum {
    WARM_UP = 1, /* steps that are left out */
    MOST_APART = 1 << 13,
    MOST_EVENTS = 1 << 15, /* of one worker in a trace */
    READING = 30,          /* ticks to add a part to the ledger, besides those to read the clock */
    STEP_TICKS = 400,      /* ticks to begin and end a timed step */
    EPOCH_TICKS = 150      /* ticks to begin and end an epoch, besides those to read the clock */
};

int bwi_exec_part(const bw_node *lowered, bwi_pass pass)
{
    return lowered->number * BWI_PASS_COUNT + (int)pass;
}

int bwi_exec_fixed_part(const bwi_plan *plan, int part)
{
    return plan->graph.count * BWI_PASS_COUNT + part;
}

int bwi_exec_parts(const bwi_plan *plan)
{
    return bwi_exec_fixed_part(plan, BWI_PART_FIXED);
}

uint64_t bwi_exec_begin_part(const bwi_exec *exec)
{
    return bwi_exec_clock(exec);
}

void bwi_exec_end_part(bwi_exec *exec, int fixed_part, uint64_t begin)
{
    bwi_exec_timed(exec, 0, fixed_part, begin);
}

void bwi_exec_share(bwi_exec *exec, int workers, bwi_work work, void *user)
{
    if (workers < 2) {
        work(user, 0);
        return;
    }
    bwi_pool_run(exec->ctx, workers, work, user);
    if (exec->ledger) {
        int idle = bwi_exec_fixed_part(exec->plan, BWI_PART_IDLE);
        bwi_ledger_add(exec->ledger, 0, idle, exec->workers[0].ended, bwi_ticks());
    }
}

/* A random number around `mean`. */
static int64_t draw(bwi_timing *t, double mean)
{
    int64_t most = mean < MOST_APART ? (int64_t)mean : MOST_APART;
    t->random = t->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return most / 2 + (most > 0 ? (int64_t)((t->random >> 33) % (uint64_t)(most + 1)) : 0);
}

/* How many steps pass before the next timed one: enough of them that timing costs a share of COST of all. */
static int64_t distance(bwi_exec *exec)
{
    bwi_timing *t = &exec->timing;
    const bwi_timing_sums *s = &t->sums;
    int64_t calls = 0;
    if (exec->times.records) {
        exec->times.records = s->timed_steps < t->traced;
        return 0;
    }
    for (int part = 0; part < exec->times.parts; part++) {
        calls += bwi_ledger_calls(&exec->times, 0, part);
    }
    double cost = (double)calls / (double)s->timed_steps * (double)(2 * exec->times.clock + READING) + STEP_TICKS;
    double step = (double)s->ticks / (double)s->steps;
    return draw(t, cost / (COST * (step > 1 ? step : 1)));
}

static void end_interval(bwi_exec *exec, int64_t steps, uint64_t now)
{
    bwi_timing *t = &exec->timing;
    exec->ledger = NULL;
    if (steps == 0) {
        return;
    }
    if (t->timed && exec->times.records) {
        bwi_ledger_add(&exec->times, 0, bwi_exec_fixed_part(exec->plan, BWI_PART_STEP), t->begin, now);
    }
    if (t->warm) {
        t->sums.steps += steps;
        t->sums.ticks += now - t->begin;
        t->sums.timed_steps += t->timed ? steps : 0;
    }
    t->left = t->timed ? distance(exec) : t->left - steps;
    t->warm = t->warm || t->left <= 0;
}

static void begin_interval(bwi_exec *exec)
{
    bwi_timing *t = &exec->timing;
    t->timed = t->left <= 0;
    t->begun = 1;
    t->length = t->timed ? 2 : t->left + 1;
    exec->ledger = t->timed ? &exec->times : NULL;
    t->begin = bwi_ticks();
}

void bwi_exec_step(bwi_exec *exec)
{
    bwi_timing *t = &exec->timing;
    if (++t->begun < t->length) {
        return;
    }
    if (t->length > 0) {
        end_interval(exec, t->begun - 1, bwi_ticks());
        begin_interval(exec);
    } else if (t->skipped > 0) {
        t->length = INT64_MAX;
    } else {
        t->left = !t->warm && t->left == 0 ? WARM_UP : t->left;
        begin_interval(exec);
        t->epoch = t->begin;
    }
}

void bwi_exec_pause(bwi_exec *exec, bool made)
{
    bwi_timing *t = &exec->timing;
    if (t->skipped > 0) {
        t->skipped--;
    } else if (t->length > 0) {
        uint64_t now = bwi_ticks();
        end_interval(exec, t->begun - !made, now);
        double cost = (double)(2 * exec->times.clock + EPOCH_TICKS), lasted = (double)(now - t->epoch);
        t->skipped = t->warm && !exec->times.records ? draw(t, cost / (COST * (lasted > 1 ? lasted : 1))) : 0;
    }
    t->begun = t->length = 0;
}

/* One worker may run all tiles of a step, each with all instructions. Where the batch is not known, many tiles are assumed: what
 * does not fit is only missing in the trace. */
static int64_t most_events(const bwi_plan *plan, int64_t steps)
{
    enum { MANY_TILES = 64 };
    int64_t each = BWI_PART_FIXED, tiles = plan->batch > 0 ? (plan->batch + plan->tile - 1) / plan->tile : MANY_TILES;
    for (int p = 0; p < plan->program_count; p++) {
        for (int k = 0; plan->programs[p].program.training && k < plan->programs[p].phase_count; k++) {
            each += plan->programs[p].phases[k].count + 1;
        }
    }
    tiles = tiles < MOST_EVENTS ? tiles : MOST_EVENTS;
    return steps * tiles < MOST_EVENTS / each ? steps * tiles * each : MOST_EVENTS;
}

bw_status bwi_exec_trace(bwi_exec *exec, int64_t steps)
{
    exec->timing.traced = steps;
    return bwi_ledger_record(exec->ctx, &exec->times, most_events(exec->plan, steps));
}

size_t bwi_exec_trace_bytes(const bwi_plan *plan, int64_t steps)
{
    return bwi_ledger_record_bytes(bwi_exec_parts(plan), plan->workers, most_events(plan, steps));
}

bool bwi_exec_tracing(const bwi_exec *exec)
{
    return exec->ledger && exec->times.records;
}

void bwi_exec_take_trace(bwi_exec *exec, bwi_ledger *trace)
{
    bwi_ledger *times = &exec->times;
    *trace = (bwi_ledger){.workers = times->workers,
                          .stride = times->stride,
                          .opened = times->opened,
                          .capacity = times->capacity,
                          .events = times->events,
                          .recorded = times->recorded};
    times->records = false;
    times->capacity = 0;
    times->events = NULL;
    times->recorded = NULL;
}

const bwi_ledger *bwi_exec_times(const bwi_exec *exec, bwi_timing_sums *sums)
{
    *sums = exec->timing.sums;
    return &exec->times;
}
