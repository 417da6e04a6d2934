/*
 * Where the time of a run's steps went: the ledger's ticks as seconds of a mean step, by part and worker. The parts of every worker
 * add up to the step. What a worker does between the parts that are timed is overhead; when it does nothing, it is idle.
 */
#include "train/internal.h"

#include <string.h>

struct bwi_profile {
    bw_profile_facts facts;
    int capacity; /* of parts; facts.parts of them are used once there is something to report */
    bw_part *parts;
    int *numbers; /* in the ledger; -1 for overhead */
    int *ways;    /* how workers share each part: a bwi_way */
    int *places;  /* by number in the ledger: the part's, from 1; 0: it has none yet */
    bool *losses; /* by node: it computes with targets or sample weights, and is thus a loss or a metric */
    bwi_sharing sharing;
    double within;   /* seconds of overhead within the workers' shares of the tiles */
    double *seconds; /* [part][worker] */

    bwi_ledger trace;           /* its events; none if no trace was requested */
    const bw_dataset *followed; /* whose threads are being recorded; NULL: none are */
    bwi_makings makings;        /* what they made */
    int64_t *shown;             /* [thread]: how many of these, the last ones, were begun in the traced steps */
    int64_t events;             /* of the workers and of these threads */
    uint64_t origin;            /* ticks of the first event */
    double tick;                /* in seconds */
    int marked, most;           /* the number of traced steps with counters, and its maximum */
    struct mark {
        uint64_t at; /* in ticks */
        double loss;
        size_t bytes;
    } *marks;
};

static const struct {
    int part;
    bw_part_kind kind;
} FIXED[] = {
    {BWI_PART_PREPARE, BW_PART_PREPARE}, {BWI_PART_REDUCE, BW_PART_REDUCE},       {BWI_PART_UPDATE, BW_PART_UPDATE},
    {BWI_PART_DATA, BW_PART_DATA},       {BWI_PART_CALLBACKS, BW_PART_CALLBACKS}, {BWI_PART_RANKS, BW_PART_RANKS},
    {BWI_PART_IDLE, BW_PART_IDLE},
};
enum { FIXED_COUNT = sizeof FIXED / sizeof FIXED[0] };

/* ---- Which parts there are ---- */

/* Every node comes after its inputs. */
static void find_losses(const bwi_profile *profile, const bwi_graph *graph)
{
    for (int n = 0; n < graph->count; n++) {
        const bw_node *node = graph->nodes[n];
        bool input = node->op->flags & BWI_OP_INPUT;
        bool found =
            input ? ((const bwi_input_attributes *)node->attributes)->role != BWI_ROLE_INPUT : node->op->flags & BWI_OP_SUMS;
        for (int k = 0; k < node->inputs && !found; k++) {
            found = profile->losses[node->input[k]->number];
        }
        profile->losses[n] = found;
    }
}

static bw_part_kind kind_of(const bwi_profile *profile, const bwi_instruction *i)
{
    if (i->node->op->flags & BWI_OP_INPUT) {
        return BW_PART_GATHER;
    }
    if (profile->losses[i->node->number]) {
        return BW_PART_LOSS;
    }
    switch (i->pass) {
    case BWI_PASS_FORWARD:
    case BWI_PASS_STATISTICS:
    case BWI_PASS_STORE:
        return BW_PART_FORWARD;
    default:
        return BW_PART_BACKWARD;
    }
}

static int most_parts(const bwi_plan *plan)
{
    int count = FIXED_COUNT + 1;
    for (int p = 0; p < plan->program_count; p++) {
        for (int k = 0; plan->programs[p].program.training && k < plan->programs[p].phase_count; k++) {
            count += plan->programs[p].phases[k].count;
        }
    }
    return count;
}

static bw_part *add(bwi_profile *profile, int number, bw_part_kind kind)
{
    int at = profile->facts.parts++;
    profile->numbers[at] = number;
    if (number >= 0) {
        profile->places[number] = at + 1;
    }
    profile->parts[at] = (bw_part){.kind = kind, .op = "", .pass = ""};
    return &profile->parts[at];
}

/* An instruction that occurs in several phases or programs (an input, a layer at several lengths) is one part. */
static void add_instruction(bwi_profile *profile, const bwi_instruction *i)
{
    int number = bwi_exec_part(i->node, i->pass);
    if (!profile->places[number]) {
        bw_part *part = add(profile, number, kind_of(profile, i));
        snprintf(part->name, sizeof part->name, "%s", i->node->name);
        part->op = i->node->op->name;
        part->pass = bwi_pass_name(i->pass);
    }
}

static size_t bytes_of(const bwi_plan *plan, int parts, int traced)
{
    size_t workers = (size_t)plan->workers,
           tables = (size_t)bwi_exec_fixed_part(plan, BWI_PART_FIXED) * sizeof(int) + (size_t)plan->graph.count;
    size_t part = sizeof(bw_part) + 2 * sizeof(int) + workers * sizeof(double);
    size_t marks = bwi_size_multiply((size_t)traced, sizeof(struct mark));
    return bwi_size_add(sizeof(bwi_profile) + tables, bwi_size_add(marks, bwi_size_multiply((size_t)parts, part)));
}

size_t bwi_profile_bytes(const bwi_plan *plan, int traced)
{
    size_t events = traced > 0 ? bwi_exec_trace_bytes(plan, traced) : 0;
    return bwi_size_add(events, bwi_allocation_bytes(bytes_of(plan, most_parts(plan), traced)));
}

bwi_profile *bwi_profile_new(bw_context *ctx, const bwi_plan *plan, int traced)
{
    int capacity = most_parts(plan);
    bwi_profile *profile = bwi_allocate(ctx, 1, bytes_of(plan, capacity, traced));
    if (!profile) {
        return NULL;
    }
    profile->facts.workers = plan->workers;
    profile->capacity = capacity;
    profile->most = traced;
    profile->marks = (struct mark *)(void *)(profile + 1);
    profile->parts = (bw_part *)(void *)(profile->marks + traced);
    profile->seconds = (double *)(void *)(profile->parts + capacity);
    profile->numbers = (int *)(void *)(profile->seconds + (size_t)capacity * (size_t)plan->workers);
    profile->ways = profile->numbers + capacity;
    profile->places = profile->ways + capacity;
    profile->losses = (bool *)(void *)(profile->places + bwi_exec_fixed_part(plan, BWI_PART_FIXED));
    return profile;
}

void bwi_profile_free(bw_context *ctx, bwi_profile *profile)
{
    if (profile) {
        bwi_ledger_close(ctx, &profile->trace);
        bwi_release(ctx, profile->makings.list);
        bwi_release(ctx, profile->makings.made);
        bwi_release(ctx, profile->shown);
    }
    bwi_release(ctx, profile);
}

/* ---- Threads that make samples ---- */

enum { MOST_MADE = 1 << 13 }; /* samples of one thread in a trace */

size_t bwi_profile_follow_bytes(const bw_dataset *dataset)
{
    size_t threads = (size_t)bwi_dataset_threads(dataset);
    return threads == 0 ? 0
                        : bwi_size_add(bwi_allocation_bytes(bwi_size_multiply(threads, MOST_MADE * sizeof(bwi_making))),
                                       2 * bwi_allocation_bytes(threads * sizeof(int64_t)));
}

bw_status bwi_profile_follow(bw_context *ctx, bwi_profile *profile, const bw_dataset *dataset)
{
    bwi_makings *m = &profile->makings;
    int threads = bwi_dataset_threads(dataset);
    if (threads == 0) {
        return BW_OK;
    }
    *m = (bwi_makings){.threads = threads, .capacity = MOST_MADE};
    m->list = bwi_allocate(ctx, (size_t)threads * MOST_MADE, sizeof *m->list);
    m->made = m->list ? bwi_allocate(ctx, (size_t)threads, sizeof *m->made) : NULL;
    profile->shown = m->made ? bwi_allocate(ctx, (size_t)threads, sizeof *profile->shown) : NULL;
    if (!profile->shown) {
        return BW_RESOURCE_EXHAUSTED;
    }
    bwi_dataset_record(dataset, m);
    profile->followed = dataset;
    return BW_OK;
}

static void follow_no_longer(bwi_profile *profile)
{
    if (profile->followed) {
        bwi_dataset_record(profile->followed, NULL);
        profile->followed = NULL;
    }
}

/* A sample that a thread made, counted backwards from its last one. */
static const bwi_making *made_before(const bwi_makings *m, int thread, int64_t before)
{
    return &m->list[thread * m->capacity + (m->made[thread] - 1 - before) % m->capacity];
}

/* A thread makes one sample after the other, so those of the traced steps are its last ones. */
static int64_t made_in_trace(const bwi_profile *profile, int thread)
{
    const bwi_makings *m = &profile->makings;
    int64_t kept = m->made[thread] < m->capacity ? m->made[thread] : m->capacity, count = 0;
    while (count < kept && made_before(m, thread, count)->begin >= profile->origin) {
        count++;
    }
    return count;
}

void bwi_profile_count(bwi_profile *profile, double loss, size_t bytes)
{
    if (profile->marked < profile->most) {
        profile->marks[profile->marked++] = (struct mark){.at = bwi_ticks(), .loss = loss, .bytes = bytes};
    }
    if (profile->marked == profile->most) {
        follow_no_longer(profile);
    }
}

static void add_parts(bwi_profile *profile, const bwi_plan *plan)
{
    find_losses(profile, &plan->graph);
    memset(profile->places, 0, (size_t)bwi_exec_fixed_part(plan, BWI_PART_FIXED) * sizeof *profile->places);
    for (int p = 0; p < plan->program_count; p++) {
        for (int k = 0; plan->programs[p].program.training && k < plan->programs[p].phase_count; k++) {
            const bwi_phase *phase = &plan->programs[p].phases[k];
            for (int n = 0; n < phase->count; n++) {
                add_instruction(profile, &phase->instructions[n]);
            }
        }
    }
    for (int k = 0; k < FIXED_COUNT; k++) {
        add(profile, bwi_exec_fixed_part(plan, FIXED[k].part), FIXED[k].kind);
    }
    add(profile, -1, BW_PART_OVERHEAD);
}

/* ---- What they took ---- */

static double *seconds_at(const bwi_profile *profile, int part, int worker)
{
    return &profile->seconds[(size_t)part * (size_t)profile->facts.workers + (size_t)worker];
}

/* The caller's parts are all timed, so the time that is missing is overhead. Any other worker is idle outside its shares, and its
 * overhead is the time of its share of the tiles that no instruction accounts for. If the timed steps happened to be slower than
 * the mean, all parts are scaled down in proportion; nothing is missing then, whatever rounding makes of the difference. */
static void settle_worker(bwi_profile *profile, int worker, double share, double step)
{
    int overhead = profile->facts.parts - 1, idle = overhead - 1;
    double tiles = 0, others = 0;
    for (int k = 0; k < overhead; k++) {
        bool in_tiles = k < overhead - FIXED_COUNT;
        *(in_tiles ? &tiles : &others) += *seconds_at(profile, k, worker);
    }
    double busy = share > tiles ? share : tiles;
    double scale = worker == 0 ? tiles + others : busy + others;
    scale = scale > step ? step / scale : 1;
    for (int k = 0; k < overhead; k++) {
        *seconds_at(profile, k, worker) *= scale;
    }
    profile->within += scale * (busy - tiles);
    double missing = step - scale * (worker == 0 ? tiles + others : busy + others);
    missing = missing > 0 ? missing : 0;
    *seconds_at(profile, overhead, worker) = worker == 0 ? missing : scale * (busy - tiles);
    if (worker > 0) {
        *seconds_at(profile, idle, worker) += missing;
    }
}

/* What a step has to do, for the counts of its parts. */
typedef struct step_work {
    const bwi_plan *plan;
    const bwi_sharing *sharing;
    int slots;       /* of the optimizer, for each weight */
    double deferred; /* operations of gradients that are deferred to the update */
} step_work;

/* Counts as the definition does: a pass over a layer's weights or inputs costs as much as the forward pass. Bytes are the least
 * that must move: inputs and outputs of each sample, and the weights for each call. The operations of a gradient that is deferred
 * to the update belong to the optimizer's part. */
static void take_work(bw_part *part, step_work *work, int number)
{
    const bw_node *node = work->plan->graph.nodes[number / BWI_PASS_COUNT];
    double floats = (double)bwi_shape_count(&node->shape), weights = 0;
    double samples = work->sharing->samples, flops = node->op->flops ? samples * node->op->flops(node) : 0;
    if (work->sharing->defers && node->op->deferred && number % BWI_PASS_COUNT == BWI_PASS_BACKWARD_WEIGHTS) {
        work->deferred += flops;
        return;
    }
    for (int k = 0; k < node->inputs; k++) {
        floats += (double)bwi_shape_count(&node->input[k]->shape);
    }
    for (int k = 0; k < node->variables; k++) {
        weights += (double)node->variable[k]->count;
    }
    part->flops = flops;
    part->bytes = sizeof(float) * (samples * floats + part->calls * weights);
}

/* The lanes of a step are read and the first one written; an update reads the gradient, and reads and writes weights and slots.
 * With deferred gradients there is nothing to add up, and none to read. A rank sends all of its gradient but one rank's share, so
 * that each share is summed somewhere, and its own share of the sum to all others. */
static void take_fixed(bw_part *part, const step_work *work)
{
    const bwi_sharing *s = work->sharing;
    double weights = (double)bwi_plan_gradient_bytes(work->plan);
    int64_t tiles = ((int64_t)(s->samples + 0.5) + s->tile - 1) / s->tile, lanes = tiles < s->lanes ? tiles : s->lanes;
    if (part->kind == BW_PART_UPDATE) {
        part->flops = work->deferred;
        part->bytes = weights * (2 * (1 + work->slots) + !s->defers);
    } else if (part->kind == BW_PART_REDUCE && !s->defers && lanes > 1) {
        part->bytes = weights * (double)(lanes + 1);
    } else if (part->kind == BW_PART_RANKS) {
        part->bytes = 2 * weights * (s->ranks - 1) / s->ranks;
    }
}

/* Layers that are split, and blocks of weights, are divided evenly; everything else of a layer goes tile by tile. */
static bwi_way way_of(const bwi_profile *profile, const bwi_plan *plan, int part)
{
    bw_part_kind kind = profile->parts[part].kind;
    if (part < profile->facts.parts - 1 - FIXED_COUNT) {
        const bwi_op *op = plan->graph.nodes[profile->numbers[part] / BWI_PASS_COUNT]->op;
        return profile->sharing.split && (op->split || op->deferred) ? BWI_WAY_BLOCKS : BWI_WAY_TILES;
    }
    return profile->sharing.update && (kind == BW_PART_UPDATE || kind == BW_PART_REDUCE) ? BWI_WAY_BLOCKS : BWI_WAY_ALONE;
}

/* Ends the trace. Events that did not fit are lost, so a trace may be cut off at its end, but has no gaps. */
void bwi_profile_take_trace(bwi_profile *profile, bwi_exec *exec)
{
    bwi_ledger *trace = &profile->trace;
    follow_no_longer(profile);
    if (profile->facts.parts == 0) {
        return;
    }
    bwi_exec_take_trace(exec, trace);
    profile->origin = UINT64_MAX;
    for (int worker = 0; trace->events && worker < trace->workers; worker++) {
        int64_t *recorded = &trace->recorded[(size_t)worker * trace->stride];
        *recorded = *recorded < trace->capacity ? *recorded : trace->capacity;
        profile->events += *recorded;
        for (int64_t k = 0; k < *recorded; k++) {
            uint64_t begin = trace->events[worker * trace->capacity + k].begin;
            profile->origin = begin < profile->origin ? begin : profile->origin;
        }
    }
    for (int thread = 0; thread < profile->makings.threads && profile->events > 0; thread++) {
        profile->shown[thread] = made_in_trace(profile, thread);
        profile->events += profile->shown[thread];
    }
}

/* Turns ticks into seconds of a mean step, and the time that is missing into idle time and overhead. */
void bwi_profile_take(bwi_profile *profile, const bwi_exec *exec, double samples, int slots)
{
    const bwi_plan *plan = bwi_exec_plan(exec);
    bwi_timing_sums sums;
    const bwi_ledger *ledger = bwi_exec_times(exec, &sums);
    profile->facts.parts = 0;
    profile->facts.steps = sums.steps;
    profile->facts.timed_steps = sums.timed_steps;
    if (sums.timed_steps == 0) {
        return;
    }
    add_parts(profile, plan);
    double tick = bwi_ledger_tick_seconds(ledger), unit = tick / (double)sums.timed_steps;
    profile->tick = tick;
    profile->facts.step_seconds = tick * (double)sums.ticks / (double)sums.steps;
    profile->facts.samples = samples;
    profile->within = 0;
    for (int worker = 0; worker < profile->facts.workers; worker++) {
        for (int k = 0; k < profile->facts.parts - 1; k++) {
            *seconds_at(profile, k, worker) = unit * (double)bwi_ledger_ticks(ledger, worker, profile->numbers[k]);
        }
        double share = unit * (double)bwi_ledger_ticks(ledger, worker, bwi_exec_fixed_part(plan, BWI_PART_SHARE));
        settle_worker(profile, worker, share, profile->facts.step_seconds);
    }
    profile->sharing = bwi_exec_shares(exec, samples);
    step_work work = {.plan = plan, .sharing = &profile->sharing, .slots = slots};
    for (int k = 0; k < profile->facts.parts; k++) {
        bw_part *part = &profile->parts[k];
        for (int worker = 0; worker < profile->facts.workers; worker++) {
            part->seconds += *seconds_at(profile, k, worker);
        }
        part->calls =
            k < profile->facts.parts - 1 ? (double)bwi_ledger_calls(ledger, -1, profile->numbers[k]) / (double)sums.timed_steps : 0;
        if (k < profile->facts.parts - 1 - FIXED_COUNT) {
            take_work(part, &work, profile->numbers[k]);
        } else {
            take_fixed(part, &work);
        }
        profile->ways[k] = (int)way_of(profile, plan, k);
    }
}

/* ---- Public functions ---- */

bw_profile_facts bw_history_profile(const bw_history *history)
{
    return history && history->profile ? history->profile->facts : (bw_profile_facts){0};
}

static bw_status find_part(const bw_history *history, int index, bw_part *part)
{
    if (!part) {
        return bwi_fail(history->ctx, BW_INVALID_ARGUMENT, "bw_history_part: the pointer to the part is NULL");
    }
    *part = (bw_part){.op = "", .pass = ""};
    if (!history->profile || index < 0 || index >= history->profile->facts.parts) {
        return bwi_fail(history->ctx, BW_OUT_OF_RANGE, "the profile has %d parts, and no part %d",
                        history->profile ? history->profile->facts.parts : 0, index);
    }
    *part = history->profile->parts[index];
    return BW_OK;
}

bw_status bw_history_part(const bw_history *history, int index, bw_part *part)
{
    bw_status status = history ? bwi_call_begin(history->ctx) : BW_INVALID_ARGUMENT;
    return status == BW_OK ? bwi_call_end(history->ctx, find_part(history, index, part)) : status;
}

double bw_history_part_seconds(const bw_history *history, int index, int worker)
{
    const bwi_profile *profile = history ? history->profile : NULL;
    bool known = profile && index >= 0 && index < profile->facts.parts && worker >= 0 && worker < profile->facts.workers;
    return known ? *seconds_at(profile, index, worker) : 0;
}

int64_t bw_history_events(const bw_history *history)
{
    return history && history->profile ? history->profile->events : 0;
}

static int part_of(const bwi_profile *profile, int number)
{
    int at = profile->places[number] - 1;
    int step = profile->numbers[profile->facts.parts - 1 - FIXED_COUNT] - BWI_PART_PREPARE + BWI_PART_STEP;
    return at >= 0 ? at : number == step ? BW_EVENT_STEP : BW_EVENT_SHARE;
}

/* Events of the workers come first, then those of the threads that make samples. */
static bw_status find_event(const bw_history *history, int64_t index, bw_event *event)
{
    const bwi_profile *profile = history->profile;
    if (!event) {
        return bwi_fail(history->ctx, BW_INVALID_ARGUMENT, "bw_history_event: the pointer to the event is NULL");
    }
    *event = (bw_event){0};
    for (int worker = 0; profile && index >= 0 && worker < profile->trace.workers; worker++) {
        int64_t count = profile->events > 0 ? profile->trace.recorded[(size_t)worker * profile->trace.stride] : 0;
        if (index < count) {
            const bwi_event *found = &profile->trace.events[worker * profile->trace.capacity + index];
            *event = (bw_event){.worker = worker,
                                .part = part_of(profile, found->part),
                                .begin = (double)(found->begin - profile->origin) * profile->tick,
                                .seconds = (double)(found->end - found->begin) * profile->tick,
                                .sample = -1};
            return BW_OK;
        }
        index -= count;
    }
    for (int thread = 0; profile && profile->events > 0 && index >= 0 && thread < profile->makings.threads; thread++) {
        int64_t count = profile->shown[thread];
        if (index < count) {
            const bwi_making *found = made_before(&profile->makings, thread, count - 1 - index);
            *event = (bw_event){.worker = thread,
                                .part = BW_EVENT_SAMPLE,
                                .begin = (double)(found->begin - profile->origin) * profile->tick,
                                .seconds = (double)(found->end - found->begin) * profile->tick,
                                .sample = found->number};
            return BW_OK;
        }
        index -= count;
    }
    return bwi_fail(history->ctx, BW_OUT_OF_RANGE, "the trace has %lld events, and none of that number",
                    (long long)bw_history_events(history));
}

bw_status bw_history_event(const bw_history *history, int64_t index, bw_event *event)
{
    bw_status status = history ? bwi_call_begin(history->ctx) : BW_INVALID_ARGUMENT;
    return status == BW_OK ? bwi_call_end(history->ctx, find_event(history, index, event)) : status;
}

int bwi_history_marks(const bw_history *history)
{
    return history->profile ? history->profile->marked : 0;
}

void bwi_history_mark(const bw_history *history, int index, double *seconds, double *loss, size_t *bytes)
{
    const struct mark *mark = &history->profile->marks[index];
    *seconds = mark->at > history->profile->origin ? (double)(mark->at - history->profile->origin) * history->profile->tick : 0;
    *loss = mark->loss;
    *bytes = mark->bytes;
}

double bwi_history_within(const bw_history *history)
{
    return history->profile->within;
}

const bwi_sharing *bwi_history_sharing(const bw_history *history)
{
    return &history->profile->sharing;
}

bw_part bwi_history_part(const bw_history *history, int part)
{
    return history->profile->parts[part];
}

bwi_way bwi_history_way(const bw_history *history, int part)
{
    return (bwi_way)history->profile->ways[part];
}

bw_context *bwi_history_context(const bw_history *history)
{
    return history->ctx;
}

const char *bw_part_kind_name(bw_part_kind kind)
{
    static const char *const NAMES[] = {
        [BW_PART_DATA] = "data wait",      [BW_PART_GATHER] = "gather",     [BW_PART_FORWARD] = "forward",
        [BW_PART_LOSS] = "loss",           [BW_PART_BACKWARD] = "backward", [BW_PART_PREPARE] = "prepare",
        [BW_PART_REDUCE] = "reduce",       [BW_PART_UPDATE] = "optimizer",  [BW_PART_CALLBACKS] = "callbacks",
        [BW_PART_RANKS] = "communication", [BW_PART_IDLE] = "idle",         [BW_PART_OVERHEAD] = "overhead",
    };
    return kind >= 0 && kind < sizeof NAMES / sizeof NAMES[0] ? NAMES[kind] : "unknown";
}
