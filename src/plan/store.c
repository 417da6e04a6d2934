/*
 * What becomes of values that later phases need: they are computed again, kept in memory for the whole batch, or spilled to a file.
 * Each is weighed by the seconds that it costs on a reference machine, so that the choice follows from the model, the batch and the
 * budget alone; no choice changes a bit.
 *
 * For a set of fates, the flow says which phases run an instruction and which load a value, as phases.c will cut them. A phase is
 * one bit. The price of computing a value again in some phases is that of its instruction in those that do not run it yet plus, for
 * everything that it reads, the price of having that there too.
 */
#include "plan/internal.h"

#include <string.h>

/* The reference machine: one worker's arithmetic, its cache, memory, and a disk that all workers share; gathering a sample's
 * bytes may mean decoding them. */
static const double FLOPS = 4e10, CACHE = 2e10, MEMORY = 6e9, DISK = 1e9, GATHER = 5e8;
/* Computing again must be clearly cheaper than keeping to be chosen freely. */
static const double CLEARLY = 0.7;

typedef struct flow {
    bwi_plan *plan;
    bwi_plan_program *program;
    const bwi_program *p;
    int words;       /* of a set of phases */
    int *writer;     /* [value] */
    int *by_level;   /* instructions, those of a level together */
    int *level_ends; /* where each level's end */
    uint64_t *runs;  /* [instruction][words] */
    uint64_t *loads; /* [value][words] */
    int *load_count; /* [value]: in how many phases it is loaded */
    bool *stale;     /* [phase]: what it runs and loads must be found again */
    int *left;       /* values that the present phase alone had loaded, and that it might not load again */
    int left_count;
    bool *is_left;   /* [value] */
    uint64_t *asked; /* [instruction][words]: what the present price has counted already */
    int *touched;    /* instructions with anything in `asked` */
    int touched_count;
    size_t added; /* bytes of other values that the present price keeps */
    bwi_life *lives, **order;
    uint64_t *sets; /* scratch: one set for each depth of the recursion */
    int depth;
} flow;

enum { MOST_DEPTH = 64 };

static uint64_t *runs_of(const flow *f, int instruction)
{
    return f->runs + (size_t)instruction * (size_t)f->words;
}
static uint64_t *loads_of(const flow *f, int value)
{
    return f->loads + (size_t)value * (size_t)f->words;
}

static int count_of(const flow *f, const uint64_t *set)
{
    int count = 0;
    for (int w = 0; w < f->words; w++) {
        count += __builtin_popcountll(set[w]);
    }
    return count;
}

static bool has(const uint64_t *set, int phase)
{
    return set[phase / 64] >> (phase % 64) & 1;
}
static void put(uint64_t *set, int phase)
{
    set[phase / 64] |= (uint64_t)1 << (phase % 64);
}
static void take(uint64_t *set, int phase)
{
    set[phase / 64] &= ~((uint64_t)1 << (phase % 64));
}

static double bytes_of(const flow *f, int value)
{
    return (double)bwi_plan_value_bytes(f->plan, &f->p->values[value], f->plan->tile);
}

/* ---- The flow ---- */

static int level_of(const flow *f, int value)
{
    return f->p->instructions[f->writer[value]].level;
}

static void run(flow *f, int instruction, int phase);

/* A value that nothing loaded before is now stored by the phase of its level, which must run its instruction. */
static void load(flow *f, int root, int phase)
{
    if (has(loads_of(f, root), phase)) {
        return;
    }
    put(loads_of(f, root), phase);
    if (f->load_count[root]++ == 0) {
        f->stale[level_of(f, root)] |= !f->is_left[root];
        f->is_left[root] = false;
    }
}

static void want(flow *f, int value, int phase)
{
    int root = bwi_plan_root(f->p, value);
    if (level_of(f, root) < phase && f->program->fate[root] != BWI_FATE_COMPUTE) {
        load(f, root, phase);
    } else {
        run(f, f->writer[root], phase);
    }
}

static void run(flow *f, int instruction, int phase)
{
    const bwi_instruction *i = &f->p->instructions[instruction];
    if (has(runs_of(f, instruction), phase)) {
        return;
    }
    put(runs_of(f, instruction), phase);
    for (int k = 0; k < i->read_count; k++) {
        want(f, i->reads[k], phase);
    }
}

/* Undoes what `run` did, by what it did rather than by the present fates. */
static void unrun(flow *f, int instruction, int phase)
{
    const bwi_instruction *i = &f->p->instructions[instruction];
    if (!has(runs_of(f, instruction), phase)) {
        return;
    }
    take(runs_of(f, instruction), phase);
    for (int k = 0; k < i->read_count; k++) {
        int root = bwi_plan_root(f->p, i->reads[k]);
        if (!has(loads_of(f, root), phase)) {
            unrun(f, f->writer[root], phase);
            continue;
        }
        take(loads_of(f, root), phase);
        if (--f->load_count[root] == 0) {
            f->is_left[root] = true;
            f->left[f->left_count++] = root;
        }
    }
}

static bool is_loaded(const flow *f, const bwi_instruction *i)
{
    for (int k = 0; k < i->write_count; k++) {
        if (f->load_count[i->writes[k]]) {
            return true;
        }
    }
    return false;
}

static void find_phase(flow *f, int phase)
{
    int first = phase ? f->level_ends[phase - 1] : 0, end = f->level_ends[phase];
    f->left_count = 0;
    for (int k = first; k < end; k++) {
        unrun(f, f->by_level[k], phase);
    }
    for (int k = first; k < end; k++) {
        const bwi_instruction *i = &f->p->instructions[f->by_level[k]];
        if (bwi_plan_is_wanted(f->program, i) || is_loaded(f, i)) {
            run(f, f->by_level[k], phase);
        }
    }
    for (int k = 0; k < f->left_count; k++) {
        f->stale[level_of(f, f->left[k])] |= f->is_left[f->left[k]];
        f->is_left[f->left[k]] = false;
    }
    f->stale[phase] = false;
}

/* The last phase comes first, since it says what earlier ones must store. Only what has changed is found again, so that the time
 * grows with the phases and not with their square. */
static void update_flow(flow *f)
{
    for (int phase = f->p->levels - 1; phase >= 0; phase--) {
        if (f->stale[phase]) {
            find_phase(f, phase);
        }
    }
}

static void find_flow(flow *f)
{
    for (int phase = 0; phase < f->p->levels; phase++) {
        f->stale[phase] = true;
    }
    update_flow(f);
}

static void set_fate(flow *f, int value, bwi_fate fate)
{
    f->program->fate[value] = fate;
    for (int phase = 0; phase < f->p->levels; phase++) {
        f->stale[phase] |= has(loads_of(f, value), phase);
    }
    update_flow(f);
}

/* ---- Prices, in seconds of one worker for a full tile ---- */

static double seconds_of(const flow *f, const bwi_instruction *i)
{
    const bw_node *node = i->node;
    double bytes = 0, samples = (double)f->plan->tile;
    for (int k = 0; k < i->read_count; k++) {
        bytes += bytes_of(f, bwi_plan_root(f->p, i->reads[k]));
    }
    for (int k = 0; k < i->write_count; k++) {
        bytes += bytes_of(f, i->writes[k]);
    }
    if (node->op->flags & BWI_OP_INPUT) {
        return bytes / GATHER;
    }
    double flops = samples * (node->op->flops ? node->op->flops(node) : (double)bwi_shape_count(&node->shape));
    return flops / FLOPS + bytes / CACHE;
}

static double price_of_running(flow *f, int instruction, const uint64_t *phases);

/* The price of having a value in some phases. */
static double price_of_having(flow *f, int value, const uint64_t *phases)
{
    int root = bwi_plan_root(f->p, value), writer = f->writer[root];
    if (f->program->fate[root] == BWI_FATE_COMPUTE || f->depth + 2 >= MOST_DEPTH) {
        return price_of_running(f, writer, phases);
    }
    const uint64_t *loads = loads_of(f, root), *runs = runs_of(f, writer);
    int more = 0;
    for (int w = 0; w < f->words; w++) {
        more += __builtin_popcountll(phases[w] & ~loads[w] & ~runs[w]);
    }
    bool first = more && !f->load_count[root];
    f->added += first ? (size_t)bytes_of(f, root) : 0;
    return (more + (first ? 1 : 0)) * 2 * bytes_of(f, root) / MEMORY;
}

/* The price of running an instruction in phases where it does not run yet: its own seconds there, and the price of having what
 * it reads. What one question asks for several times is paid for once. */
static double price_of_running(flow *f, int instruction, const uint64_t *phases)
{
    const bwi_instruction *i = &f->p->instructions[instruction];
    uint64_t *asked = f->asked + (size_t)instruction * (size_t)f->words, *rest = f->sets + (size_t)f->depth * (size_t)f->words;
    bool any = false, before = count_of(f, asked) > 0;
    for (int w = 0; w < f->words; w++) {
        rest[w] = phases[w] & ~runs_of(f, instruction)[w] & ~asked[w];
        asked[w] |= rest[w];
        any |= rest[w] != 0;
    }
    if (!any) {
        return 0;
    }
    if (!before) {
        f->touched[f->touched_count++] = instruction;
    }
    double price = count_of(f, rest) * seconds_of(f, i);
    f->depth++;
    for (int k = 0; k < i->read_count && f->depth + 1 < MOST_DEPTH; k++) {
        price += price_of_having(f, i->reads[k], rest);
    }
    f->depth--;
    return price;
}

/* The price of computing a kept value again wherever it is loaded now; `added`: bytes of other values that are kept for it. */
static double price_of_computing(flow *f, int value, size_t *added)
{
    f->added = 0;
    double price = price_of_running(f, f->writer[value], loads_of(f, value));
    for (int k = 0; k < f->touched_count; k++) {
        memset(f->asked + (size_t)f->touched[k] * (size_t)f->words, 0, (size_t)f->words * sizeof *f->asked);
    }
    f->touched_count = 0;
    *added = f->added;
    return price;
}

static double price_of_moving(const flow *f, int value, double speed)
{
    return (1 + f->load_count[value]) * bytes_of(f, value) / speed;
}

/* ---- Choosing ---- */

static bool is_stored(const flow *f, int value)
{
    return f->program->fate[value] == BWI_FATE_KEEP && f->load_count[value] > 0;
}

static void keep_all(flow *f)
{
    for (int v = 0; v < f->p->value_count; v++) {
        int writer = f->writer[v];
        bool keep = f->plan->keep && writer >= 0 && !(f->p->instructions[writer].node->op->flags & BWI_OP_INPUT);
        f->program->fate[v] = keep ? BWI_FATE_KEEP : BWI_FATE_COMPUTE;
    }
}

/* The last resort: computing one value again may need larger ones, so that none is worth it alone. */
static void keep_nothing(flow *f)
{
    for (int v = 0; v < f->p->value_count; v++) {
        f->program->fate[v] = f->program->fate[v] == BWI_FATE_KEEP ? BWI_FATE_COMPUTE : f->program->fate[v];
    }
}

/* Values that no phase loads yet and that are cheap to compute are not stored for the sake of others either. */
static void drop_light(flow *f)
{
    for (int v = 0; v < f->p->value_count; v++) {
        bool unused = f->program->fate[v] == BWI_FATE_KEEP && !f->load_count[v];
        if (unused && seconds_of(f, &f->p->instructions[f->writer[v]]) < CLEARLY * bytes_of(f, v) / (MEMORY / 2)) {
            f->program->fate[v] = BWI_FATE_COMPUTE;
        }
    }
}

/* Drops what is faster to compute again than to keep, if no more bytes must be kept for it. */
static void drop_cheap(flow *f)
{
    bool changed = true;
    while (changed) {
        changed = false;
        for (int v = 0; v < f->p->value_count; v++) {
            size_t added;
            if (!is_stored(f, v)) {
                continue;
            }
            double again = price_of_computing(f, v, &added);
            if (again < CLEARLY * price_of_moving(f, v, MEMORY / 2) && (double)added <= bytes_of(f, v)) {
                set_fate(f, v, BWI_FATE_COMPUTE);
                changed = true;
            }
        }
    }
}

typedef struct offer {
    int value;
    bwi_fate fate;
    double rate; /* seconds for a byte */
} offer;

/* Workers compute side by side, but share the disk. */
static offer cheapest(flow *f)
{
    offer best = {.value = -1};
    for (int v = 0; v < f->p->value_count; v++) {
        size_t added;
        if (!is_stored(f, v)) {
            continue;
        }
        double bytes = bytes_of(f, v), again = price_of_computing(f, v, &added) / f->plan->workers, gain = bytes - (double)added;
        double rate = gain > 0 ? again / gain : -1, disk = price_of_moving(f, v, DISK) / bytes;
        bwi_fate fate = BWI_FATE_COMPUTE;
        if (f->plan->spill && (rate < 0 || disk < rate)) {
            rate = disk;
            fate = BWI_FATE_SPILL;
        }
        if (rate >= 0 && (best.value < 0 || rate < best.rate)) {
            best = (offer){v, fate, rate};
        }
    }
    return best;
}

static int last_of(const flow *f, const uint64_t *set)
{
    for (int phase = 64 * f->words - 1; phase >= 0; phase--) {
        if (has(set, phase)) {
            return phase;
        }
    }
    return -1;
}

/* Bytes of a tile's slot in memory, as phases.c will lay it out. */
static size_t slot_bytes(flow *f)
{
    int count = 0;
    for (int v = 0; v < f->p->value_count; v++) {
        if (is_stored(f, v)) {
            f->lives[count] = (bwi_life){.value = v,
                                         .first = 2 * f->p->instructions[f->writer[v]].level + 1,
                                         .last = 2 * last_of(f, loads_of(f, v)),
                                         .bytes = bwi_size_align((size_t)bytes_of(f, v), BWI_CACHE_LINE)};
            f->order[count] = &f->lives[count];
            count++;
        }
    }
    return bwi_plan_pack(f->order, count);
}

/* Sets of phases are bit sets, one row of words for each value or instruction; programs with more than 64 phases exist. */
static bw_status open_flow(flow *f, bwi_plan *plan, bwi_plan_program *program)
{
    bw_context *ctx = plan->ctx;
    size_t words = (size_t)(program->program.levels + 63) / 64, values = (size_t)program->program.value_count,
           count = (size_t)program->program.count;
    *f = (flow){.plan = plan, .program = program, .p = &program->program, .words = (int)words};
    f->writer = bwi_allocate(ctx, values, sizeof *f->writer);
    f->by_level = bwi_allocate(ctx, count, sizeof *f->by_level);
    f->level_ends = bwi_allocate(ctx, (size_t)program->program.levels, sizeof *f->level_ends);
    f->runs = bwi_allocate(ctx, count, words * sizeof *f->runs);
    f->loads = bwi_allocate(ctx, values, words * sizeof *f->loads);
    f->load_count = bwi_allocate(ctx, values, sizeof *f->load_count);
    f->stale = bwi_allocate(ctx, (size_t)program->program.levels, sizeof *f->stale);
    f->left = bwi_allocate(ctx, values, sizeof *f->left);
    f->is_left = bwi_allocate(ctx, values, sizeof *f->is_left);
    f->asked = bwi_allocate(ctx, count, words * sizeof *f->asked);
    f->touched = bwi_allocate(ctx, count, sizeof *f->touched);
    f->sets = bwi_allocate(ctx, MOST_DEPTH, words * sizeof *f->sets);
    f->lives = bwi_allocate(ctx, values, sizeof *f->lives);
    f->order = bwi_allocate(ctx, values, sizeof(bwi_life *));
    if (!program->fate) {
        program->fate = bwi_allocate(ctx, values, sizeof *program->fate);
    }
    bool ok = f->writer && f->by_level && f->level_ends && f->runs && f->loads && f->load_count && f->stale && f->left &&
              f->is_left && f->asked && f->touched && f->sets && f->lives && f->order && program->fate;
    if (ok) {
        bwi_plan_find_writers(f->p, f->writer);
        bwi_plan_sort_by_level(f->p, f->by_level, f->level_ends);
    }
    return ok ? BW_OK : BW_RESOURCE_EXHAUSTED;
}

static void close_flow(flow *f)
{
    bw_context *ctx = f->plan->ctx;
    bwi_release(ctx, f->writer);
    bwi_release(ctx, f->by_level);
    bwi_release(ctx, f->level_ends);
    bwi_release(ctx, f->runs);
    bwi_release(ctx, f->loads);
    bwi_release(ctx, f->load_count);
    bwi_release(ctx, f->stale);
    bwi_release(ctx, f->left);
    bwi_release(ctx, f->is_left);
    bwi_release(ctx, f->asked);
    bwi_release(ctx, f->touched);
    bwi_release(ctx, f->lives);
    bwi_release(ctx, (void *)f->order);
    bwi_release(ctx, f->sets);
}

bw_status bwi_plan_fates(bwi_plan *plan, bwi_plan_program *program)
{
    flow f;
    bwi_plan_uncut(plan, program); /* its values are the program's own again */
    bw_status status = open_flow(&f, plan, program);
    if (status == BW_OK) {
        keep_all(&f);
        if (f.p->levels > 1 && plan->keep) {
            find_flow(&f);
            drop_light(&f);
            drop_cheap(&f);
        }
    }
    close_flow(&f);
    return status;
}

/* Greedy: the value that costs the fewest seconds per byte leaves the store first, until the slot is small enough or nothing is
 * left to drop. */
bw_status bwi_plan_save_store(bwi_plan *plan, bwi_plan_program *program, size_t bytes, bool *changed)
{
    flow f;
    bwi_plan_uncut(plan, program);
    bw_status status = open_flow(&f, plan, program);
    *changed = false;
    if (status == BW_OK) {
        find_flow(&f);
        size_t slot = slot_bytes(&f), less = (bytes + (size_t)plan->store_tiles - 1) / (size_t)plan->store_tiles;
        while (slot > 0 && slot_bytes(&f) > (slot > less ? slot - less : 0)) {
            offer o = cheapest(&f);
            *changed = true;
            if (o.value < 0) {
                keep_nothing(&f);
                break;
            }
            set_fate(&f, o.value, o.fate);
        }
    }
    close_flow(&f);
    return status;
}
