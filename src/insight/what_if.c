/*
 * Predicts how long a step would take on other hardware, from what was measured. Every part of the profile is bound by computing or
 * by memory, and is shared by the workers as tiles, as blocks, or not at all. With w workers a part of s seconds takes s / w where
 * it is shared evenly; tiles cannot be cut, so the worker with the most of them decides; everything else waits for one worker. A
 * part that computes while its bytes are fetched is never quicker than the memory of the other hardware moves them. What the rule
 * does not explain of the measured step stays as it is, so that the same hardware gives what was measured.
 */
#include "insight/internal.h"

#include <math.h>

/* A part that moves at least this share of what memory can move is bound by memory. If it is more than memory can move, by the
 * second factor, the bytes are in the caches. */
static const double BOUND = 0.8, CACHED = 1.25;
/* With as many lanes, a plan has no more workers than these; with fewer, workers share them (src/plan/choice.c). */
enum { MANY_LANES = 8 };
/* A step that waits for data less than this share of its time is not held up by it. */
static const double HELD_UP = 0.01;

/* The largest share of the samples that one of the workers gets, if each takes the next lane when it is done. Tile t belongs to
 * lane t mod lanes, and only the last tile has fewer samples. */
static double largest_share(const bwi_sharing *s, int workers)
{
    int64_t samples = (int64_t)(s->samples + 0.5), tiles = (samples + s->tile - 1) / s->tile;
    int64_t lanes = tiles < s->lanes ? tiles : s->lanes;
    if (!s->tiles || workers < 2 || tiles < 2) {
        return 1;
    }
    if (workers > s->lanes) { /* they take tiles of the same lane, one after the other */
        int64_t most = (tiles + workers - 1) / workers * s->tile;
        return most < samples ? (double)most / (double)samples : 1;
    }
    if (lanes >= 64 * (int64_t)workers) { /* nearly even, and too many to go through */
        return 1 / (double)workers;
    }
    double load[64] = {0}, most = 0;
    int counted = workers < 64 ? workers : 64;
    for (int64_t lane = 0; lane < lanes; lane++) {
        int64_t own = (tiles - lane + lanes - 1) / lanes * s->tile;
        own -= (tiles - 1) % lanes == lane ? tiles * s->tile - samples : 0;
        int least = 0;
        for (int w = 1; w < counted; w++) {
            least = load[w] < load[least] ? w : least;
        }
        load[least] += (double)own;
        most = load[least] > most ? load[least] : most;
    }
    return most / (double)samples;
}

/* How many times as much as one core that many do together, as measured and, between the measured numbers of cores, along a line.
 * Beyond the machine's own cores each further one computes as much as each of these, but all share one memory. */
static bw_growth growth_of(const bw_machine *m, int workers)
{
    const bw_growth *last = &m->growth[m->growths - 1];
    if (workers > last->cores) {
        return (bw_growth){.cores = workers, .compute = last->compute * workers / last->cores, .bandwidth = last->bandwidth};
    }
    int k = 0;
    while (m->growth[k].cores < workers) {
        k++;
    }
    bw_growth to = m->growth[k], from = k > 0 ? m->growth[k - 1] : to;
    double part = to.cores > from.cores ? (double)(workers - from.cores) / (to.cores - from.cores) : 1;
    return (bw_growth){.cores = workers,
                       .compute = from.compute + part * (to.compute - from.compute),
                       .bandwidth = from.bandwidth + part * (to.bandwidth - from.bandwidth)};
}

/* What one of the workers can do. Where growth is not known since other programs took the cores, the limits of all of them say more
 * about these programs. */
static double compute_rate(const bw_machine *m, int workers)
{
    if (m->growths > 0) {
        return m->core_flops * growth_of(m, workers).compute / workers;
    }
    return workers == 1 || m->busy ? m->core_flops : fmin(m->core_flops, m->flops / m->cores);
}

static double memory_rate(const bw_machine *m, int workers)
{
    if (m->growths > 0) {
        return m->core_bandwidth * growth_of(m, workers).bandwidth / workers;
    }
    return fmin(m->core_bandwidth, m->bandwidth / workers);
}

/* The share of accesses that miss the last cache, if a step touches all of its bytes in turn and lines are replaced at random: of r
 * times as many bytes as it holds, a line is gone with probability m when m r lines were replaced since, so m = 1 - exp(-m r).
 * Newton's method goes down to that root from 1. */
static double misses(const bwi_measured_step *step, const bw_machine *m)
{
    double ratio = m->cache_bytes > 0 ? (double)step->bytes / (double)m->cache_bytes : (double)INFINITY, share = 1;
    if (ratio <= 1 || isinf(ratio)) {
        return isinf(ratio) ? 1 : 0;
    }
    for (int k = 0; k < 40; k++) {
        double rest = exp(-share * ratio);
        share -= (share - 1 + rest) / (1 - ratio * rest);
    }
    return share;
}

/* What the part moves, relative to what memory could meanwhile. */
static double moved_share(const bwi_measured_step *step, const bwi_measured_part *part, const bw_machine *m)
{
    double rate = part->seconds > 0 ? misses(step, m) * part->bytes / part->seconds : 0;
    double moved = rate / memory_rate(m, step->workers);
    return moved > CACHED ? 0 : moved >= BOUND ? 1 : moved;
}

/* The part of the work that the busiest worker has. */
static double share_of(const bwi_measured_step *step, const bwi_measured_part *part, int workers)
{
    return part->way == BWI_WAY_TILES ? largest_share(&step->sharing, workers) : part->way == BWI_WAY_BLOCKS ? 1.0 / workers : 1;
}

/* Adds what a part takes with that many workers to what bounds it; the time in which others wait for one is serial, and that one is
 * not slowed by them. */
static void add_part(bw_prediction *sum, const bwi_measured_step *step, const bwi_measured_part *part, const bw_machine *m,
                     const bw_hardware *to, int workers)
{
    double moved = moved_share(step, part, m), share = share_of(step, part, workers);
    int before = share_of(step, part, step->workers) < 1 ? step->workers : 1, after = share < 1 ? workers : 1;
    double memory = moved * memory_rate(m, before) / memory_rate(m, after) / to->bandwidth;
    double computing = moved < 1 ? compute_rate(m, before) / compute_rate(m, after) / to->compute : 0;
    double seconds = part->seconds * fmax(memory, computing) / (part->kind == BW_PART_GATHER ? to->data : 1);
    double even = part->way == BWI_WAY_ALONE || (workers > 1 && share >= 1) ? 0 : seconds / workers;
    *(memory > computing ? &sum->bandwidth : &sum->compute) += even;
    sum->serial += seconds * share - even;
}

/* A worker fetches the weights that others have updated and the lanes that others have filled, as far as it adds them up; and its
 * own weights and lanes again, since others have read them. */
static double exchange(const bwi_sharing *s, const bw_machine *m, int workers)
{
    int64_t tiles = ((int64_t)(s->samples + 0.5) + s->tile - 1) / s->tile, lanes = tiles < s->lanes ? tiles : s->lanes;
    double others = (double)s->weights * (1 - 1.0 / workers);
    double fetched =
        (double)s->weights * (s->split || s->tiles) + (s->tiles && !s->defers ? others * 2 * (double)lanes / workers : 0);
    return fetched / m->exchange_bandwidth;
}

static bw_prediction add_up(const bwi_measured_step *step, const bw_machine *m, const bw_hardware *to, int workers)
{
    bw_prediction sum = {0};
    for (int k = 0; k < step->parts; k++) {
        const bwi_measured_part *part = &step->list[k];
        if (part->kind != BW_PART_IDLE && part->kind != BW_PART_DATA) {
            add_part(&sum, step, part, m, to, workers);
        }
    }
    if (workers > 1) {
        sum.serial += step->sharing.meetings * m->meeting_seconds + exchange(&step->sharing, m, workers) / to->compute;
    }
    sum.step_seconds = sum.compute + sum.bandwidth + sum.serial;
    return sum;
}

static void scale(bw_prediction *sum, double factor)
{
    sum->compute *= factor;
    sum->bandwidth *= factor;
    sum->serial *= factor;
    sum->step_seconds *= factor;
}

/* A step that waits for data takes as long as its samples take to be made, whatever else it does. */
bw_prediction bwi_predict(const bwi_measured_step *step, const bw_machine *machine, const bw_hardware *to)
{
    bw_hardware same = BW_HARDWARE_DEFAULT;
    int workers = to->cores > 0 ? to->cores : step->workers;
    workers = step->sharing.lanes >= MANY_LANES && workers > step->sharing.lanes ? step->sharing.lanes : workers;
    double waited = 0;
    for (int k = 0; k < step->parts; k++) {
        waited += step->list[k].kind == BW_PART_DATA ? step->list[k].seconds / step->workers : 0;
    }
    waited = waited > HELD_UP * step->step_seconds ? waited : 0;
    bw_prediction now = add_up(step, machine, &same, step->workers), then = add_up(step, machine, to, workers);
    double left = step->step_seconds - waited - now.step_seconds;
    if (left < 0) {
        scale(&then, (step->step_seconds - waited) / now.step_seconds);
    } else if (workers > 1 || step->workers == 1) {
        then.serial += left;
        then.step_seconds += left;
    }
    double making = waited > 0 ? step->step_seconds / to->data : 0;
    then.data = making > then.step_seconds ? making - then.step_seconds : 0;
    then.step_seconds += then.data;
    return then;
}

/* ---- Public function ---- */

/* Numbers that are no rates would give a prediction that is no time. */
static bw_status check(bw_context *ctx, const bw_machine *machine, const bw_hardware *to, const bw_prediction *prediction)
{
    if (!machine || !prediction) {
        return bwi_fail(ctx, BW_INVALID_ARGUMENT, "bw_history_predict: the pointer to the %s is NULL",
                        machine ? "prediction" : "machine");
    }
    const double numbers[] = {machine->core_flops,
                              machine->flops,
                              machine->core_bandwidth,
                              machine->bandwidth,
                              machine->exchange_bandwidth,
                              machine->meeting_seconds,
                              to->compute,
                              to->bandwidth,
                              to->data};
    bool fine = machine->cores > 0 && to->cores >= 0 && machine->growths >= 0 && machine->growths <= BW_MOST_GROWTHS;
    for (int k = 0; k < machine->growths && fine; k++) {
        const bw_growth *g = &machine->growth[k];
        fine = g->cores > (k > 0 ? g[-1].cores : 0) && isfinite(g->compute) && g->compute > 0 && isfinite(g->bandwidth) &&
               g->bandwidth > 0;
    }
    for (size_t k = 0; k < BWI_COUNT(numbers); k++) {
        fine = fine && isfinite(numbers[k]) && numbers[k] > 0;
    }
    return fine ? BW_OK
                : bwi_fail(ctx, BW_INVALID_ARGUMENT,
                           "bw_history_predict: expected what bw_machine_limits gives, and factors above 0 for other hardware");
}

/* Overhead within the shares of the tiles is shared like them; what is left of it is the caller's alone. */
static bw_status predict(const bw_history *history, const bw_machine *machine, const bw_hardware *given, bw_prediction *prediction)
{
    bw_context *ctx = bwi_history_context(history);
    bw_hardware to = BW_HARDWARE_DEFAULT;
    bw_profile_facts facts = bw_history_profile(history);
    bw_status status = bwi_options_copy(ctx, &to, sizeof to, given, "bw_hardware");
    status = status == BW_OK ? check(ctx, machine, &to, prediction) : status;
    if (status == BW_OK && facts.parts == 0) {
        status = bwi_fail(ctx, BW_INVALID_ARGUMENT, "bw_history_predict: no step was timed, so there is nothing to predict from");
    }
    bwi_measured_part *list = status == BW_OK ? bwi_allocate(ctx, (size_t)facts.parts + 1, sizeof *list) : NULL;
    if (!list) {
        return status == BW_OK ? BW_RESOURCE_EXHAUSTED : status;
    }
    for (int k = 0; k < facts.parts; k++) {
        bw_part part = bwi_history_part(history, k);
        list[k] = (bwi_measured_part){.kind = part.kind,
                                      .way = bwi_history_way(history, k),
                                      .seconds = part.seconds,
                                      .flops = part.flops,
                                      .bytes = part.bytes};
    }
    double within = fmin(bwi_history_within(history), list[facts.parts - 1].seconds);
    list[facts.parts - 1].seconds -= within; /* the last part is overhead */
    list[facts.parts] = (bwi_measured_part){.kind = BW_PART_OVERHEAD, .way = BWI_WAY_TILES, .seconds = within};
    bwi_measured_step step = {.step_seconds = facts.step_seconds,
                              .workers = facts.workers,
                              .sharing = *bwi_history_sharing(history),
                              .bytes = bw_history_facts(history).planned_bytes,
                              .parts = facts.parts + 1,
                              .list = list};
    *prediction = bwi_predict(&step, machine, &to);
    bwi_release(ctx, list);
    return BW_OK;
}

bw_status bw_history_predict(const bw_history *history, const bw_machine *machine, const bw_hardware *hardware,
                             bw_prediction *prediction)
{
    bw_context *ctx = history ? bwi_history_context(history) : NULL;
    bw_status status = history ? bwi_call_begin(ctx) : BW_INVALID_ARGUMENT;
    return status == BW_OK ? bwi_call_end(ctx, predict(history, machine, hardware, prediction)) : status;
}
