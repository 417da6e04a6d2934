/*
 * Addresses: each value of a phase lives from the first instruction that writes it to the last that reads it; values that do not
 * live at the same time may share bytes. Where an op allows it, its result is written over its source, if that dies. Placing is
 * greedy: the largest first, each at the lowest offset that is free for its whole life.
 */
#include "plan/internal.h"

#include <stdlib.h>

typedef bwi_life life;

typedef struct placer {
    bwi_plan *plan;
    const bwi_program *program;
    bwi_phase *phase;
    int *home;   /* per value: the value whose place it has, often its own */
    life *lives; /* per value; `first` is negative if it is not in this phase */
    int *used;   /* the values of this phase */
    int used_count;
    const bool *ends;
} placer;

static int home_of(const placer *p, int value)
{
    value = bwi_plan_root(p->program, value);
    while (p->home[value] != value) {
        value = p->home[value];
    }
    return value;
}

static void touch(placer *p, int value, int when)
{
    if (value < 0) {
        return;
    }
    int root = bwi_plan_root(p->program, value);
    life *l = &p->lives[root];
    if (l->first < 0) {
        l->first = when;
        p->used[p->used_count++] = root;
    }
    l->last = when;
}

static int compare_values(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

/* A value lives from the first instruction that touches it to the last; one that the phase hands on lives to the end. A view
 * counts as the value that it shows. */
static void find_lives(placer *p)
{
    for (int n = 0; n < p->phase->count; n++) {
        const bwi_instruction *i = &p->phase->instructions[n];
        if (i->pass == BWI_PASS_STORE || i->pass == BWI_PASS_LOAD) {
            touch(p, i->dst, n);
        }
        for (int k = 0; k < i->read_count; k++) {
            touch(p, i->reads[k], n);
        }
        for (int k = 0; k < i->write_count; k++) {
            touch(p, i->writes[k], n);
        }
    }
    qsort(p->used, (size_t)p->used_count, sizeof *p->used, compare_values);
    for (int k = 0; k < p->used_count; k++) {
        int v = p->used[k];
        life *l = &p->lives[v];
        l->bytes = bwi_size_align(bwi_plan_value_bytes(p->plan, &p->program->values[v], p->plan->tile), BWI_CACHE_LINE);
        l->last = p->ends[v] ? p->phase->count : l->last;
    }
}

/* Puts `result` in the place of `source`, which dies at instruction n. */
static void take_place(placer *p, int result, int source, int n)
{
    if (result < 0 || source < 0) {
        return;
    }
    int from = home_of(p, source), to = bwi_plan_root(p->program, result);
    if (from == to || p->lives[from].last != n || p->lives[to].bytes != p->lives[from].bytes || p->lives[to].first != n) {
        return;
    }
    p->home[to] = from;
    p->lives[from].last = p->lives[to].last;
}

static void share_in_place(placer *p)
{
    for (int n = 0; n < p->phase->count; n++) {
        const bwi_instruction *i = &p->phase->instructions[n];
        unsigned flags = i->node->op->flags;
        if (i->pass == BWI_PASS_FORWARD && (flags & BWI_OP_IN_PLACE)) {
            take_place(p, i->dst, i->src[0], n);
        } else if (i->pass == BWI_PASS_BACKWARD && (flags & BWI_OP_BACKWARD_IN_PLACE)) {
            take_place(p, i->diff_src[0], i->diff_dst, n);
        }
    }
}

static int larger_first(const void *a, const void *b)
{
    const life *x = *(life *const *)a, *y = *(life *const *)b;
    if (x->bytes != y->bytes) {
        return x->bytes < y->bytes ? 1 : -1;
    }
    return x->value - y->value;
}

/* The lowest offset that is free of everything that lives at the same time. */
static size_t lowest_free(life *const *order, int placed, const life *l)
{
    size_t offset = 0;
    bool moved = true;
    while (moved) {
        moved = false;
        for (int k = 0; k < placed; k++) {
            const life *o = order[k];
            bool together = o->first <= l->last && l->first <= o->last;
            if (together && offset < o->offset + o->bytes && o->offset < offset + l->bytes) {
                offset = o->offset + o->bytes;
                moved = true;
            }
        }
    }
    return offset;
}

size_t bwi_plan_pack(bwi_life **lives, int count)
{
    size_t most = 0;
    qsort((void *)lives, (size_t)count, sizeof *lives, larger_first);
    for (int k = 0; k < count; k++) {
        lives[k]->offset = lowest_free(lives, k, lives[k]);
        size_t end = bwi_size_add(lives[k]->offset, lives[k]->bytes);
        most = end > most ? end : most;
    }
    return most;
}

static void place(placer *p, life **order)
{
    int count = 0;
    for (int k = 0; k < p->used_count; k++) {
        if (p->home[p->used[k]] == p->used[k]) {
            order[count++] = &p->lives[p->used[k]];
        }
    }
    p->phase->bytes = bwi_plan_pack(order, count);
}

/* A model has many phases, and each of them few of its values: only these are listed. */
static bool list_places(placer *p)
{
    p->phase->places = bwi_allocate(p->plan->ctx, (size_t)p->used_count, sizeof *p->phase->places);
    for (int k = 0; p->phase->places && k < p->used_count; k++) {
        p->phase->places[p->phase->place_count++] = (bwi_place){p->used[k], p->lives[home_of(p, p->used[k])].offset};
    }
    return p->phase->places;
}

size_t bwi_plan_offset(const bwi_program *program, const bwi_phase *phase, int value)
{
    int root = bwi_plan_root(program, value), low = 0, high = phase->place_count;
    while (low < high) {
        int middle = low + (high - low) / 2;
        if (phase->places[middle].value < root) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < phase->place_count && phase->places[low].value == root ? phase->places[low].offset : SIZE_MAX;
}

static bool place_phase(placer *p, bwi_phase *phase, life **order)
{
    p->phase = phase;
    find_lives(p);
    share_in_place(p);
    place(p, order);
    bool ok = list_places(p);
    for (int k = 0; k < p->used_count; k++) {
        p->home[p->used[k]] = p->used[k];
        p->lives[p->used[k]] = (life){.value = p->used[k], .first = -1, .last = -1};
    }
    p->used_count = 0;
    return ok;
}

bw_status bwi_plan_place(bwi_plan *plan, const bwi_plan_program *program, const bool *ends)
{
    bw_context *ctx = plan->ctx;
    size_t values = (size_t)program->program.value_count;
    placer p = {.plan = plan, .program = &program->program, .ends = ends};
    p.home = bwi_allocate(ctx, values, sizeof *p.home);
    p.lives = bwi_allocate(ctx, values, sizeof *p.lives);
    p.used = bwi_allocate(ctx, values, sizeof *p.used);
    life **order = bwi_allocate(ctx, values, sizeof(life *));
    bool ok = p.home && p.lives && p.used && order;
    for (int v = 0; ok && v < program->program.value_count; v++) {
        p.home[v] = v;
        p.lives[v] = (life){.value = v, .first = -1, .last = -1};
    }
    for (int k = 0; ok && k < program->phase_count; k++) {
        ok = place_phase(&p, &program->phases[k], order);
    }
    bwi_release(ctx, p.home);
    bwi_release(ctx, p.lives);
    bwi_release(ctx, p.used);
    bwi_release(ctx, (void *)order);
    return ok ? BW_OK : BW_RESOURCE_EXHAUSTED;
}
