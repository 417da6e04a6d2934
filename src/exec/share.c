/* Sharing numbered work among workers: in spans, so that caches stay warm, and with help, so that nobody is idle. */
#include "exec/internal.h"

void bwi_exec_share_out(bwi_exec *exec, int spans, int64_t count)
{
    int64_t begin = 0;
    exec->spans = spans;
    for (int s = 0; s < spans; s++) {
        atomic_store_explicit(&exec->workers[s].next, begin, memory_order_relaxed);
        begin = s + 1 == spans ? count : count * (s + 1) / spans;
        exec->workers[s].end = begin;
    }
}

int64_t bwi_exec_next(bwi_exec *exec, int worker, int *tried)
{
    for (; *tried < exec->spans; ++*tried) {
        int s = worker < exec->spans ? worker + *tried : *tried;
        bwi_worker *owner = &exec->workers[s < exec->spans ? s : s - exec->spans];
        if (atomic_load_explicit(&owner->next, memory_order_relaxed) < owner->end) {
            int64_t number = atomic_fetch_add_explicit(&owner->next, 1, memory_order_relaxed);
            if (number < owner->end) {
                return number;
            }
        }
    }
    return -1;
}
