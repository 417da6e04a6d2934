/*
 * The fullest moment of a plan: the instruction of the largest phase during which most bytes of a worker's tile region are in use,
 * and what they hold. It shows where the bytes are; nothing is decided by it.
 */
#include "plan/internal.h"

#include <string.h>

typedef struct look {
    const bwi_plan *plan;
    const bwi_plan_program *program;
    const bwi_phase *phase;
    int *first, *last; /* the instructions from and to which a value takes bytes, by its root; -1: none */
    int64_t *change;   /* of the bytes in use, from one instruction to the next */
} look;

static void touch(const look *l, int value, int when)
{
    int root = bwi_plan_root(&l->program->program, value);
    if (root >= 0) {
        l->first[root] = l->first[root] < 0 ? when : l->first[root];
        l->last[root] = when;
    }
}

static void find_lives(const look *l)
{
    const bwi_program *p = &l->program->program;
    for (int v = 0; v < p->value_count; v++) {
        l->first[v] = l->last[v] = -1;
    }
    for (int n = 0; n < l->phase->count; n++) {
        const bwi_instruction *i = &l->phase->instructions[n];
        if (i->pass == BWI_PASS_STORE || i->pass == BWI_PASS_LOAD) {
            touch(l, i->dst, n);
        }
        for (int k = 0; k < i->read_count; k++) {
            touch(l, i->reads[k], n);
        }
        for (int k = 0; k < i->write_count; k++) {
            touch(l, i->writes[k], n);
        }
    }
}

/* Where a value takes the place of another during an instruction, the bytes that they share count once. */
static void find_shared(const look *l)
{
    const bwi_program *p = &l->program->program;
    for (int n = 0; n < l->phase->count; n++) {
        const bwi_instruction *i = &l->phase->instructions[n];
        for (int k = 0; k < i->write_count; k++) {
            int to = bwi_plan_root(p, i->writes[k]);
            for (int r = 0; r < i->read_count && l->first[to] == n; r++) {
                int from = bwi_plan_root(p, i->reads[r]);
                bool taken =
                    from != to && l->last[from] == n && bwi_plan_offset(p, l->phase, from) == bwi_plan_offset(p, l->phase, to);
                l->first[to] += taken && l->last[to] > n;
            }
        }
    }
}

static size_t bytes_of(const look *l, int value)
{
    bool there = l->first[value] >= 0 && bwi_plan_offset(&l->program->program, l->phase, value) != SIZE_MAX;
    return there ? bwi_size_align(bwi_plan_value_bytes(l->plan, &l->program->program.values[value], l->plan->tile), BWI_CACHE_LINE)
                 : 0;
}

static int find_fullest(const look *l)
{
    int fullest = 0;
    int64_t bytes = 0, most = 0;
    for (int v = 0; v < l->program->program.value_count; v++) {
        int64_t own = (int64_t)bytes_of(l, v);
        if (own > 0) {
            l->change[l->first[v]] += own;
            l->change[l->last[v] + 1] -= own;
        }
    }
    for (int n = 0; n < l->phase->count; n++) {
        bytes += l->change[n];
        fullest = bytes > most ? n : fullest;
        most = bytes > most ? bytes : most;
    }
    return fullest;
}

static void add_bytes(const look *l, int moment, size_t *values, size_t *workspaces)
{
    for (int v = 0; v < l->program->program.value_count; v++) {
        const bwi_value *value = &l->program->program.values[v];
        if (l->first[v] <= moment && moment <= l->last[v]) {
            (value->kind == BWI_VALUE_WORKSPACE ? workspaces : values)[value->node->number] += bytes_of(l, v);
        }
    }
}

static void find_largest(look *l)
{
    for (int p = 0; p < l->plan->program_count; p++) {
        for (int k = 0; k < l->plan->programs[p].phase_count; k++) {
            const bwi_phase *phase = &l->plan->programs[p].phases[k];
            if (!l->phase || phase->bytes > l->phase->bytes) {
                l->program = &l->plan->programs[p];
                l->phase = phase;
            }
        }
    }
}

/* The largest phase decides how large a region is; within it, the instruction with the most bytes in use is the fullest moment. */
bw_status bwi_plan_fullest(const bwi_plan *plan, size_t *values, size_t *workspaces)
{
    bw_context *ctx = plan->ctx;
    look l = {.plan = plan};
    memset(values, 0, (size_t)plan->graph.count * sizeof *values);
    memset(workspaces, 0, (size_t)plan->graph.count * sizeof *workspaces);
    find_largest(&l);
    if (!l.phase || l.phase->count == 0) {
        return BW_OK;
    }
    size_t count = (size_t)l.program->program.value_count;
    l.first = bwi_allocate(ctx, count, sizeof *l.first);
    l.last = bwi_allocate(ctx, count, sizeof *l.last);
    l.change = bwi_allocate(ctx, (size_t)l.phase->count + 1, sizeof *l.change);
    bool ok = l.first && l.last && l.change;
    if (ok) {
        find_lives(&l);
        find_shared(&l);
        add_bytes(&l, find_fullest(&l), values, workspaces);
    }
    bwi_release(ctx, l.first);
    bwi_release(ctx, l.last);
    bwi_release(ctx, l.change);
    return ok ? BW_OK : BW_RESOURCE_EXHAUSTED;
}
