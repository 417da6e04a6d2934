/*
 * A thread beside the context's: it makes the calls of the row while the rank's own threads compute. Contexts are for one thread,
 * so it has one that stands for the rank's: the same group, number and kernels, a message of its own, and a flag of cancellation
 * that the rank's thread passes on while it waits.
 */
#include "rank/rank.h"

enum { STACK_BYTES = 1 << 18, NAP_NANOSECONDS = 1000000 };

struct bwi_beside {
    bw_context *ctx; /* the rank's */
    bw_context own;
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    bwi_beside_work work; /* NULL: there is none */
    void *user;
    bw_status status;
    bool quits;
};

size_t bwi_beside_bytes(void)
{
    return bwi_allocation_bytes(sizeof(bwi_beside));
}

static void *run(void *user)
{
    bwi_beside *b = user;
    pthread_mutex_lock(&b->mutex);
    while (!b->quits) {
        if (!b->work) {
            pthread_cond_wait(&b->changed, &b->mutex);
            continue;
        }
        pthread_mutex_unlock(&b->mutex);
        unsigned state = bwi_float_set();
        bw_status status = b->work(b->user, &b->own);
        bwi_float_restore(state);
        pthread_mutex_lock(&b->mutex);
        b->status = status;
        b->work = NULL;
        pthread_cond_broadcast(&b->changed);
    }
    pthread_mutex_unlock(&b->mutex);
    return NULL;
}

bw_status bwi_beside_open(bw_context *ctx, bwi_beside **beside)
{
    bwi_beside *b = bwi_allocate(ctx, 1, sizeof *b);
    *beside = NULL;
    if (!b) {
        return BW_RESOURCE_EXHAUSTED;
    }
    b->ctx = ctx;
    b->own.ranks = ctx->ranks;
    b->own.rank = ctx->rank;
    b->own.kernels = bwi_kernels_of(ctx);
    bool waits = bwi_condition_open(&b->mutex, &b->changed);
    if (!waits || bwi_thread_start(&b->thread, STACK_BYTES, run, b) != 0) {
        if (waits) {
            bwi_condition_close(&b->mutex, &b->changed);
        }
        bwi_release(ctx, b);
        return bwi_fail(ctx, BW_RESOURCE_EXHAUSTED, "cannot start a thread for the sums over ranks");
    }
    *beside = b;
    return BW_OK;
}

void bwi_beside_close(bwi_beside *b)
{
    if (!b) {
        return;
    }
    pthread_mutex_lock(&b->mutex);
    b->quits = true;
    pthread_cond_broadcast(&b->changed);
    pthread_mutex_unlock(&b->mutex);
    pthread_join(b->thread, NULL);
    bwi_condition_close(&b->mutex, &b->changed);
    bwi_release(b->ctx, b);
}

void bwi_beside_start(bwi_beside *b, bwi_beside_work work, void *user)
{
    pthread_mutex_lock(&b->mutex);
    b->work = work;
    b->user = user;
    pthread_cond_broadcast(&b->changed);
    pthread_mutex_unlock(&b->mutex);
}

/* bw_cancel cannot signal, so its flag is looked at now and then. */
bw_status bwi_beside_wait(bwi_beside *b)
{
    pthread_mutex_lock(&b->mutex);
    while (b->work) {
        bwi_condition_wait(&b->mutex, &b->changed, NAP_NANOSECONDS);
        if (bwi_cancelled(b->ctx)) {
            atomic_store(&b->own.cancelled, true);
        }
    }
    bw_status status = b->status;
    pthread_mutex_unlock(&b->mutex);
    return status == BW_OK ? BW_OK : bwi_fail(b->ctx, status, "%s", b->own.message);
}

void bwi_beside_await(bwi_beside *b, atomic_int *number)
{
    if (atomic_load(number) != 0) {
        pthread_mutex_lock(&b->mutex);
        while (atomic_load(number) != 0) {
            pthread_cond_wait(&b->changed, &b->mutex);
        }
        pthread_mutex_unlock(&b->mutex);
    }
}

void bwi_beside_wake(bwi_beside *b)
{
    pthread_mutex_lock(&b->mutex);
    pthread_cond_broadcast(&b->changed);
    pthread_mutex_unlock(&b->mutex);
}
