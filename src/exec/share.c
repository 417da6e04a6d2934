/* Sharing numbered work among workers: in stretches, so that caches stay warm, and with help, so that nobody is idle. */
#include "exec/internal.h"

void bwi_exec_share_out(bwi_exec *exec, int stretches, int64_t count)
{
    int64_t begin = 0;
    exec->stretches = stretches;
    for (int s = 0; s < stretches; s++) {
        atomic_store_explicit(&exec->workers[s].next, begin, memory_order_relaxed);
        begin = s + 1 == stretches ? count : count * (s + 1) / stretches;
        exec->workers[s].end = begin;
    }
}

int64_t bwi_exec_next(bwi_exec *exec, int worker, int *turn)
{
    for (; *turn < exec->stretches; ++*turn) {
        int s = worker < exec->stretches ? worker + *turn : *turn;
        bwi_worker *owner = &exec->workers[s < exec->stretches ? s : s - exec->stretches];
        if (atomic_load_explicit(&owner->next, memory_order_relaxed) < owner->end) {
            int64_t number = atomic_fetch_add_explicit(&owner->next, 1, memory_order_relaxed);
            if (number < owner->end) {
                return number;
            }
        }
    }
    return -1;
}
