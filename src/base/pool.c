/*
 * Workers. The caller is worker 0; each helper has its own slot with the number of the run that it is to do and the
 * one it has done. Waiting spins for a short time, since waking a sleeping thread costs 25 to 65 microseconds and a
 * spinning one less than one, and then sleeps on a condition variable. There is no spinning while the process has
 * more workers than CPUs: it would take time from those that work.
 *
 * The kernel may wake a helper on the CPU where another worker runs, and leave it there, since its caches are warm, though another
 * CPU is idle: steps of some 100 microseconds then take several times as long. So each worker notes on which CPU it begins a run,
 * and a helper that finds another one there moves to any other CPU that it may use.
 *
 * No wake-up is lost: the waiter sets `asleep` and then looks at the number, the other side sets the number and then
 * looks at `asleep`, all in the one order of sequentially consistent atomics; so one of them sees the other. Signals
 * are sent under the mutex that the waiter holds until it sleeps.
 *
 * A child of fork has its parent's pools without their threads. There the caller does everybody's work, which gives the same bits,
 * until a pool is opened again.
 */
#include "base/internal.h"

#include <sched.h>
#include <time.h>
#include <unistd.h>
#if defined(__x86_64__) || defined(__i386__)
#include <xmmintrin.h>
#endif

#define SPIN_SECONDS 50e-6
#define SPIN_PAUSES 32

typedef struct sleeper {
    pthread_mutex_t mutex;
    pthread_cond_t wake;
    atomic_bool asleep;
} sleeper;

typedef struct helper {
    _Alignas(BWI_CACHE_LINE) atomic_uint asked; /* written by the caller; the work of the run stands in the pool */
    sleeper rest;
    _Alignas(BWI_CACHE_LINE) atomic_uint done; /* written by the helper */
    bwi_pool *pool;
    pthread_t thread;
    int worker;
} helper;

/* The latest run that a worker began on a CPU. */
typedef struct cpu_note {
    _Alignas(BWI_CACHE_LINE) atomic_uint run;
} cpu_note;

struct bwi_pool {
    bwi_work work; /* NULL: end */
    void *user;
    int workers, cpus;
    int forks; /* of the process that has the threads */
    unsigned runs;
    cpu_note *notes; /* of each CPU */
    int noted;
    sleeper caller;
    helper *helpers; /* of workers 1 to workers - 1 */
};

void (*bwi_pool_delay)(int worker);

/* The workers of all pools in the process: each rank in a thread has a pool. */
static atomic_int all_workers;

double bwi_now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

int bwi_cpus(void)
{
    cpu_set_t set;
    long count = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : sysconf(_SC_NPROCESSORS_ONLN);
    return count < 1 ? 1 : count > BWI_MAX_WORKERS ? BWI_MAX_WORKERS : (int)count;
}

/* ---- Floating point ---- */

/* Masked exceptions, rounding to nearest, flush-to-zero and denormals-are-zero. The lowest six bits record which exceptions have
 * occurred; among nested calls only the outermost restores them. Writing the register costs much more than reading it. */
#define FLOAT_STATE 0x9FC0u
#define FLOAT_FLAGS 0x3Fu

unsigned bwi_float_set(void)
{
#ifdef __SSE__
    unsigned before = _mm_getcsr();
    if ((before & ~FLOAT_FLAGS) != FLOAT_STATE) {
        _mm_setcsr(FLOAT_STATE);
    }
    return before;
#else
    return 0;
#endif
}

void bwi_float_restore(unsigned state)
{
#ifdef __SSE__
    if ((state & ~FLOAT_FLAGS) != FLOAT_STATE || (_mm_getcsr() & ~FLOAT_FLAGS) != FLOAT_STATE) {
        _mm_setcsr(state);
    }
#else
    (void)state;
#endif
}

/* ---- Waiting ---- */

static void pause_cpu(void)
{
#if defined(__x86_64__) || defined(__i386__)
    _mm_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

static bool spin(const bwi_pool *pool, const atomic_uint *number, unsigned wanted)
{
    if (atomic_load(number) == wanted) {
        return true;
    }
    if (atomic_load_explicit(&all_workers, memory_order_relaxed) > pool->cpus) {
        return false;
    }
    double end = bwi_now() + SPIN_SECONDS;
    do {
        for (int i = 0; i < SPIN_PAUSES; i++) {
            if (atomic_load_explicit(number, memory_order_acquire) == wanted) {
                return true;
            }
            pause_cpu();
        }
    } while (bwi_now() < end);
    return false;
}

static void wait_for(const bwi_pool *pool, sleeper *rest, const atomic_uint *number, unsigned wanted)
{
    if (spin(pool, number, wanted)) {
        return;
    }
    pthread_mutex_lock(&rest->mutex);
    atomic_store(&rest->asleep, true);
    while (atomic_load(number) != wanted) {
        pthread_cond_wait(&rest->wake, &rest->mutex);
    }
    atomic_store(&rest->asleep, false);
    pthread_mutex_unlock(&rest->mutex);
}

static void announce(sleeper *rest, atomic_uint *number, unsigned value)
{
    atomic_store(number, value);
    if (!atomic_load(&rest->asleep)) {
        return;
    }
    pthread_mutex_lock(&rest->mutex);
    pthread_cond_signal(&rest->wake);
    pthread_mutex_unlock(&rest->mutex);
}

static bool sleeper_open(sleeper *rest)
{
    atomic_init(&rest->asleep, false);
    return bwi_condition_open(&rest->mutex, &rest->wake);
}

static void sleeper_close(sleeper *rest)
{
    bwi_condition_close(&rest->mutex, &rest->wake);
}

/* ---- Places ---- */

/* Takes the calling thread off its CPU, and lets it come back later. */
static void leave_cpu(int cpu)
{
    cpu_set_t allowed, others;
    if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) {
        return;
    }
    others = allowed;
    CPU_CLR((size_t)cpu, &others);
    if (CPU_COUNT(&others) > 0 && sched_setaffinity(0, sizeof others, &others) == 0) {
        sched_setaffinity(0, sizeof allowed, &allowed);
    }
}

/* Notes that a worker begins a run here; a helper leaves if it is not the first one. */
static void take_cpu(bwi_pool *pool, int worker)
{
    int cpu = sched_getcpu();
    if (cpu < 0 || cpu >= pool->noted) {
        return;
    }
    unsigned before = atomic_exchange_explicit(&pool->notes[cpu].run, pool->runs, memory_order_relaxed);
    if (worker > 0 && before == pool->runs && atomic_load_explicit(&all_workers, memory_order_relaxed) <= pool->cpus) {
        leave_cpu(cpu);
    }
}

/* ---- Threads ---- */

static void do_work(bwi_pool *pool, int worker)
{
    take_cpu(pool, worker);
    if (bwi_pool_delay) {
        bwi_pool_delay(worker);
    }
    pool->work(pool->user, worker);
}

/* Each helper counts its own runs, since a run may leave it out. */
static void *helper_main(void *argument)
{
    helper *self = argument;
    bwi_pool *pool = self->pool;
    (void)bwi_float_set();
    for (unsigned run = 1;; run++) {
        wait_for(pool, &self->rest, &self->asked, run);
        if (!pool->work) {
            return NULL;
        }
        do_work(pool, self->worker);
        announce(&pool->caller, &self->done, run);
    }
}

static void ask(helper *one)
{
    announce(&one->rest, &one->asked, atomic_load_explicit(&one->asked, memory_order_relaxed) + 1);
}

static int start_helper(helper *one)
{
    if (!sleeper_open(&one->rest)) {
        return -1;
    }
    int result = bwi_thread_start(&one->thread, 0, helper_main, one);
    if (result != 0) {
        sleeper_close(&one->rest);
    }
    return result;
}

static void free_pool(bw_context *ctx, bwi_pool *pool)
{
    bwi_release(ctx, pool->notes);
    bwi_release(ctx, pool->helpers);
    bwi_release(ctx, pool);
}

/* The pool without its threads; NULL: no memory. */
static bwi_pool *make_pool(bw_context *ctx)
{
    long cpus = sysconf(_SC_NPROCESSORS_CONF);
    bwi_pool *pool = bwi_allocate(ctx, 1, sizeof *pool);
    if (!pool) {
        return NULL;
    }
    pool->workers = ctx->workers;
    pool->cpus = bwi_cpus();
    pool->forks = bwi_forks();
    pool->noted = cpus < 1 ? 1 : (int)cpus;
    pool->helpers = bwi_allocate(ctx, (size_t)ctx->workers - 1, sizeof *pool->helpers);
    pool->notes = bwi_allocate(ctx, (size_t)pool->noted, sizeof *pool->notes);
    if (!pool->helpers || !pool->notes || !sleeper_open(&pool->caller)) {
        free_pool(ctx, pool);
        return NULL;
    }
    return pool;
}

/* Ends the first `count` helpers and frees the pool. */
static void end_pool(bw_context *ctx, bwi_pool *pool, int count)
{
    pool->work = NULL;
    for (int i = 0; i < count; i++) {
        ask(&pool->helpers[i]);
    }
    for (int i = 0; i < count; i++) {
        pthread_join(pool->helpers[i].thread, NULL);
        sleeper_close(&pool->helpers[i].rest);
    }
    atomic_fetch_sub(&all_workers, pool->workers);
    sleeper_close(&pool->caller);
    free_pool(ctx, pool);
}

/* In a child: what the parent's threads may hold is not touched. */
static void abandon_pool(bw_context *ctx)
{
    atomic_fetch_sub(&all_workers, ctx->pool->workers);
    free_pool(ctx, ctx->pool);
    ctx->pool = NULL;
}

/* Takes the pages of a worker's stack that kernels will use: they are the process's, and a plan does not count them. */
static __attribute__((noinline)) void take_stack(void)
{
    enum { DEPTH = 1 << 15, STEP = 1 << 10 };
    volatile unsigned char stack[DEPTH];
    for (int i = 0; i < DEPTH; i += STEP) {
        stack[i] = 0;
        (void)stack[i];
    }
}

/* Worker 0 is the caller, whose stack may be small, and has been used before. */
static void settle_worker(void *user, int worker)
{
    (void)user;
    if (worker > 0) {
        take_stack();
    }
}

bw_status bwi_pool_open(bw_context *ctx)
{
    if (ctx->pool && ctx->pool->forks != bwi_forks()) {
        abandon_pool(ctx);
    }
    if (ctx->pool || ctx->workers < 2) {
        return BW_OK;
    }
    bwi_pool *pool = make_pool(ctx);
    if (!pool) {
        return bwi_fail(ctx, BW_RESOURCE_EXHAUSTED, "cannot make a pool of %d workers", ctx->workers);
    }
    atomic_fetch_add(&all_workers, pool->workers);
    for (int i = 0; i < ctx->workers - 1; i++) {
        pool->helpers[i].pool = pool;
        pool->helpers[i].worker = i + 1;
        int result = start_helper(&pool->helpers[i]);
        if (result != 0) {
            end_pool(ctx, pool, i);
            return bwi_fail(ctx, BW_RESOURCE_EXHAUSTED, "cannot start worker %d of %d: %s", i + 1, ctx->workers,
                            result < 0 ? "no mutex" : bwi_errno_text(result));
        }
    }
    ctx->pool = pool;
    bwi_pool_run(ctx, pool->workers, settle_worker, NULL);
    return BW_OK;
}

void bwi_pool_close(bw_context *ctx)
{
    if (ctx->pool && ctx->pool->forks != bwi_forks()) {
        abandon_pool(ctx);
    } else if (ctx->pool) {
        end_pool(ctx, ctx->pool, ctx->pool->workers - 1);
    }
    ctx->pool = NULL;
}

static void run_alone(int workers, bwi_work work, void *user)
{
    for (int worker = 0; worker < workers; worker++) {
        if (bwi_pool_delay) {
            bwi_pool_delay(worker);
        }
        work(user, worker);
    }
}

void bwi_pool_run(bw_context *ctx, int workers, bwi_work work, void *user)
{
    bwi_pool *pool = ctx->pool;
    workers = workers < 1 ? 1 : workers > ctx->workers ? ctx->workers : workers;
    bwi_float_begin(ctx);
    if (workers == 1 || !pool || pool->forks != bwi_forks()) {
        run_alone(workers, work, user);
    } else {
        pool->work = work;
        pool->user = user;
        pool->runs++;
        for (int i = 0; i < workers - 1; i++) {
            ask(&pool->helpers[i]);
        }
        do_work(pool, 0);
        for (int i = 0; i < workers - 1; i++) {
            helper *one = &pool->helpers[i];
            wait_for(pool, &pool->caller, &one->done, atomic_load_explicit(&one->asked, memory_order_relaxed));
        }
    }
    bwi_float_end(ctx);
}
