/*
 * One loop on all workers. Indices are handed out in rising order, so whatever index fails, all lower ones have been handed out
 * before it and are finished before the loop ends: the lowest that fails is the same one however the workers are timed, and its
 * failure is the one that is reported.
 */
#include "base/base.h"

#include <pthread.h>
#include <string.h>

typedef struct loop {
    bw_context *ctx;
    bwi_item item;
    void *user;
    int64_t count;
    atomic_llong next;
    atomic_llong failed; /* the lowest index that has failed; count: none */
    atomic_bool cancelled;
    pthread_mutex_t mutex; /* of what follows */
    bw_status status;
    char *error;
} loop;

static void note(loop *l, int64_t index, bw_status status, const char *error)
{
    pthread_mutex_lock(&l->mutex);
    if (index < atomic_load(&l->failed)) {
        atomic_store(&l->failed, index);
        l->status = status;
        memcpy(l->error, error, BWI_ITEM_ERROR);
    }
    pthread_mutex_unlock(&l->mutex);
}

static void run(void *user, int worker)
{
    loop *l = user;
    for (int64_t index; (index = atomic_fetch_add(&l->next, 1)) < l->count && index < atomic_load(&l->failed);) {
        char error[BWI_ITEM_ERROR] = "";
        bw_status status = bwi_cancelled(l->ctx) ? BW_CANCELLED : l->item(l->user, index, worker, error);
        if (status == BW_CANCELLED) {
            atomic_store(&l->cancelled, true);
            return;
        }
        if (status != BW_OK) {
            note(l, index, status, error);
        }
    }
}

bw_status bwi_parallel_for(bw_context *ctx, int64_t count, bwi_item item, void *user, char *error)
{
    loop l = {.ctx = ctx, .item = item, .user = user, .count = count, .mutex = PTHREAD_MUTEX_INITIALIZER, .error = error};
    error[0] = 0;
    bw_status status = bwi_pool_open(ctx);
    if (status != BW_OK || count < 1) {
        return status;
    }
    atomic_init(&l.next, 0);
    atomic_init(&l.failed, count);
    atomic_init(&l.cancelled, false);
    bwi_pool_run(ctx, (int)(count < ctx->workers ? count : ctx->workers), run, &l);
    pthread_mutex_destroy(&l.mutex);
    return atomic_load(&l.cancelled) ? bwi_cancel_report(ctx) : l.status;
}
