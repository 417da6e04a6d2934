/*
 * Moving statistics, which training changes besides trained variables. Each use of a layer moves them once for each piece, and a
 * layer that is used twice moves them twice, in Keras's order of its uses (a node's `run_at`), no matter in which phases their
 * statistics became known. The first use holds the moving values of the window; the commit writes them to the variables.
 */
#include "exec/internal.h"

#include <stdlib.h>

static bool moves(const bwi_instruction *i, int phase)
{
    return i->pass == BWI_PASS_STATISTICS && i->level == phase && i->node->op->sums->commit;
}

int bwi_moving_count(const bwi_plan *plan)
{
    int count = 0;
    for (int p = 0; p < plan->program_count; p++) {
        for (int k = 0; k < plan->programs[p].phase_count; k++) {
            const bwi_phase *phase = &plan->programs[p].phases[k];
            for (int n = 0; n < phase->count; n++) {
                count += moves(&phase->instructions[n], k);
            }
        }
    }
    return count;
}

static int compare(const void *a, const void *b)
{
    const bwi_moving *x = a, *y = b;
    const bw_node *m = x->call->node, *n = y->call->node;
    if (x->program != y->program) {
        return x->program < y->program ? -1 : 1;
    }
    return m->run_at != n->run_at ? (m->run_at > n->run_at) - (m->run_at < n->run_at)
                                  : (m->number > n->number) - (m->number < n->number);
}

/* A node's moving variables are its last ones; nodes with the same variables share the values of the first. */
static const bwi_call *owner_of(const bwi_exec *exec, int which)
{
    const bwi_moving *own = &exec->moving[which];
    for (int m = 0; m < which; m++) {
        const bw_node *a = exec->moving[m].call->node, *b = own->call->node;
        if (exec->moving[m].program == own->program && a->variable[a->variables - 1] == b->variable[b->variables - 1]) {
            return exec->moving[m].owner;
        }
    }
    return own->call;
}

/* Statistics are shared by all workers and tiles, so the calls of worker 0's full tiles stand for their nodes. */
bw_status bwi_moving_open(bwi_exec *exec)
{
    int count = bwi_moving_count(exec->plan);
    exec->moving = bwi_allocate(exec->ctx, (size_t)count, sizeof *exec->moving);
    if (!exec->moving) {
        return BW_RESOURCE_EXHAUSTED;
    }
    for (int p = 0; count && p < exec->plan->program_count; p++) {
        for (int k = 0; k < exec->plan->programs[p].phase_count; k++) {
            const bwi_bound *list = bwi_exec_bound(exec, p, k, 0, exec->plan->sizes - 1);
            for (int n = 0; n < exec->phases[p][k].count; n++) {
                if (moves(list[n].instruction, k)) {
                    exec->moving[exec->moving_count++] = (bwi_moving){.program = p, .call = &list[n].call};
                }
            }
        }
    }
    if (count) {
        qsort(exec->moving, (size_t)count, sizeof *exec->moving, compare);
    }
    for (int m = 0; m < count; m++) {
        exec->moving[m].owner = owner_of(exec, m);
    }
    return BW_OK;
}

const bw_node *bwi_moving_advance(const bwi_exec *exec)
{
    for (int m = 0; m < exec->moving_count; m++) {
        const bwi_moving *own = &exec->moving[m];
        const bwi_op_sums *sums = own->call->node->op->sums;
        if (own->program == exec->program && !sums->advance(own->call, own->owner, own->call == own->owner && exec->samples == 0)) {
            return own->call->node;
        }
    }
    return NULL;
}

void bwi_moving_commit(const bwi_exec *exec)
{
    for (int m = 0; m < exec->moving_count; m++) {
        const bwi_moving *own = &exec->moving[m];
        if (own->program == exec->program && own->call == own->owner) {
            own->call->node->op->sums->commit(own->call);
        }
    }
}
