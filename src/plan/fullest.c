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
    int *first, *last; /* the instructions that first and last touch a value, by its root; -1: none */
    bool *counted;     /* per value, at the present moment */
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

/* Whether a value took the place of another during the instruction: the bytes that they share count once. */
static bool shares(const look *l, int value)
{
    for (int v = 0; v < value; v++) {
        if (l->counted[v] && l->phase->offsets[v] == l->phase->offsets[value]) {
            return true;
        }
    }
    return false;
}

/* The bytes in use during instruction n, also added to `values` and `workspaces` unless these are NULL. */
static size_t bytes_at(const look *l, int n, size_t *values, size_t *workspaces)
{
    const bwi_program *p = &l->program->program;
    size_t sum = 0;
    memset(l->counted, 0, (size_t)p->value_count);
    for (int v = 0; v < p->value_count; v++) {
        if (l->first[v] < 0 || l->first[v] > n || l->last[v] < n || l->phase->offsets[v] == SIZE_MAX || shares(l, v)) {
            continue;
        }
        const bwi_value *value = &p->values[v];
        size_t bytes = bwi_size_align(bwi_plan_value_bytes(l->plan, value, l->plan->tile), BWI_CACHE_LINE);
        l->counted[v] = bytes > 0;
        sum += bytes;
        if (values) {
            size_t *list = value->kind == BWI_VALUE_WORKSPACE ? workspaces : values;
            list[value->node->number] += bytes;
        }
    }
    return sum;
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
    l.counted = bwi_allocate(ctx, count, sizeof *l.counted);
    bool ok = l.first && l.last && l.counted;
    if (ok) {
        int fullest = 0;
        size_t most = 0;
        find_lives(&l);
        for (int n = 0; n < l.phase->count; n++) {
            size_t bytes = bytes_at(&l, n, NULL, NULL);
            fullest = bytes > most ? n : fullest;
            most = bytes > most ? bytes : most;
        }
        bytes_at(&l, fullest, values, workspaces);
    }
    bwi_release(ctx, l.first);
    bwi_release(ctx, l.last);
    bwi_release(ctx, l.counted);
    return ok ? BW_OK : BW_RESOURCE_EXHAUSTED;
}
