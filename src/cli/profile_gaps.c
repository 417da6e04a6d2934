/*
 * Finds the longest idle gaps of a trace. A worker is busy in its shares of the tiles and in parts outside of them; the time
 * between two of these within a step is a gap. The worker is assumed to have waited for the part that took the longest on another
 * worker meanwhile.
 */
#include "cli/profile.h"

#include <stdlib.h>

typedef struct events {
    bw_event *list; /* sorted by worker, then by the time at which they ended */
    int64_t count;
} events;

/* A share covers the parts within it, so these need not count; idle time is not work. */
static bool is_busy(const cli_profile *made, const bw_event *e)
{
    return e->part == BW_EVENT_SHARE || (e->part >= 0 && made->parts[e->part].kind != BW_PART_IDLE);
}

static double overlap(const bw_event *e, double begin, double end)
{
    double from = e->begin > begin ? e->begin : begin, to = e->begin + e->seconds < end ? e->begin + e->seconds : end;
    return to > from ? to - from : 0;
}

/* Finds the part of another worker that overlaps the gap most, and for at least a tenth of it. */
static void find_cause(const cli_profile *made, const events *all, cli_gap *gap, double begin)
{
    double most = 0.1 * gap->seconds;
    for (int64_t k = 0; k < all->count; k++) {
        const bw_event *e = &all->list[k];
        bool works = e->worker != gap->worker && e->part >= 0 && made->parts[e->part].kind != BW_PART_IDLE;
        double shared = works ? overlap(e, begin, begin + gap->seconds) : 0;
        if (shared > most) {
            most = shared;
            gap->other = e->worker;
            gap->part = e->part;
        }
    }
}

/* Inserts the gap among the longest ones, which are sorted from the longest down; `begins` holds where each begins. */
static void keep(cli_profile *made, double *begins, cli_gap gap, double begin)
{
    int at = CLI_GAPS;
    while (at > 0 && (made->gaps[at - 1].worker < 0 || made->gaps[at - 1].seconds < gap.seconds)) {
        at--;
    }
    for (int k = CLI_GAPS - 1; k > at; k--) {
        made->gaps[k] = made->gaps[k - 1];
        begins[k] = begins[k - 1];
    }
    if (at < CLI_GAPS) {
        made->gaps[at] = gap;
        begins[at] = begin;
    }
}

static int by_begin(const void *a, const void *b)
{
    const bw_event *x = a, *y = b;
    return x->worker != y->worker ? x->worker - y->worker : x->begin < y->begin ? -1 : x->begin > y->begin ? 1 : 0;
}

/* Finds the gaps of one worker in one step. */
static void find_in_step(cli_profile *made, double *begins, const events *all, int worker, const bw_event *step)
{
    double covered = step->begin, end = step->begin + step->seconds;
    for (int64_t k = 0; k < all->count; k++) {
        const bw_event *e = &all->list[k];
        if (e->worker != worker || !is_busy(made, e) || e->begin < step->begin || e->begin >= end) {
            continue;
        }
        if (e->begin > covered) {
            keep(made, begins, (cli_gap){.worker = worker, .seconds = e->begin - covered, .part = -1}, covered);
        }
        covered = e->begin + e->seconds > covered ? e->begin + e->seconds : covered;
    }
    if (end > covered) {
        keep(made, begins, (cli_gap){.worker = worker, .seconds = end - covered, .part = -1}, covered);
    }
}

/* Only the first steps are searched, since what repeats is there. If there is no memory, no gaps are shown. */
void cli_profile_find_gaps(cli_profile *made, const bw_history *history)
{
    enum { STEPS = 20 };
    double begins[CLI_GAPS] = {0};
    events all = {.count = bw_history_events(history)};
    for (int k = 0; k < CLI_GAPS; k++) {
        made->gaps[k] = (cli_gap){.worker = -1, .part = -1};
    }
    all.list = all.count > 0 ? calloc((size_t)all.count, sizeof *all.list) : NULL;
    if (!all.list) {
        return;
    }
    for (int64_t k = 0; k < all.count; k++) {
        (void)bw_history_event(history, k, &all.list[k]);
    }
    qsort(all.list, (size_t)all.count, sizeof *all.list, by_begin);
    int steps = 0;
    for (int64_t k = 0; k < all.count && steps < STEPS; k++) {
        if (all.list[k].part == BW_EVENT_STEP) {
            steps++;
            for (int worker = 0; worker < made->facts.workers; worker++) {
                find_in_step(made, begins, &all, worker, &all.list[k]);
            }
        }
    }
    for (int k = 0; k < CLI_GAPS && made->gaps[k].worker >= 0; k++) {
        find_cause(made, &all, &made->gaps[k], begins[k]);
    }
    free(all.list);
}
