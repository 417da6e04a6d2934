/* Workers: each does its part once in every run, with any number of them, delayed, and where threads are refused.
 * label: thread */
#include "faults.h"

#include <dlfcn.h>
#include <float.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>

/* The program's own definition is called before the system's. Where the sanitizer is linked statically, it would hide
 * the sanitizer's. */
#if !defined(__clang__) || !defined(__has_feature)
#define REFUSES_THREADS 1
#elif !__has_feature(address_sanitizer) && !__has_feature(thread_sanitizer)
#define REFUSES_THREADS 1
#endif

#ifdef REFUSES_THREADS
static int refuse_at, threads_started;

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*start)(void *), void *argument)
{
    static int (*next)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    if (refuse_at && ++threads_started == refuse_at) {
        return EAGAIN;
    }
    if (!next) {
        void *symbol = dlsym(RTLD_NEXT, "pthread_create");
        memcpy(&next, &symbol, sizeof next);
    }
    return next(thread, attributes, start, argument);
}
#endif

typedef struct sums {
    int64_t count;
    struct {
        _Alignas(BWI_CACHE_LINE) int64_t runs;
        int64_t sum;
    } of[16];
} sums;

/* Written without atomics: the pool itself must order it. */
static void add(void *user, int worker)
{
    sums *all = user;
    all->of[worker].runs++;
    all->of[worker].sum += all->count;
}

static void check_runs(int workers, int runs)
{
    faults memory = {0};
    bw_context *ctx = faults_context(&memory, NULL, workers);
    assert_int_equal(bwi_pool_open(ctx), BW_OK);
    assert_int_equal(bwi_pool_open(ctx), BW_OK);
    int calls = memory.calls;
    sums all = {0};
    int64_t expected_runs[16] = {0}, expected_sums[16] = {0};
    for (int i = 0; i < runs; i++) {
        int now = 1 + i % workers;
        all.count = i;
        bwi_pool_run(ctx, now, add, &all);
        for (int worker = 0; worker < now; worker++) {
            expected_runs[worker]++;
            expected_sums[worker] += i;
        }
    }
    for (int worker = 0; worker < 16; worker++) {
        assert_int_equal(all.of[worker].runs, expected_runs[worker]);
        assert_int_equal(all.of[worker].sum, expected_sums[worker]);
    }
    assert_int_equal(memory.calls, calls); /* a run allocates nothing */
    bw_close(ctx);
    assert_int_equal(memory.blocks, 0);
}

static void test_each_worker_once(void **state)
{
    (void)state;
    for (int workers = 1; workers <= 8; workers++) {
        check_runs(workers, 200);
    }
}

static void test_many_runs(void **state)
{
    (void)state;
    check_runs(2, 10000);
    check_runs(4, 10000);
}

typedef struct crowd {
    atomic_int caller_cpu, astray;
    cpu_set_t allowed;
} crowd;

/* The helper goes to the caller's CPU, so that it begins the next run there, after it has looked whether it may still use all of them. */
static void crowd_cpu(void *user, int worker)
{
    crowd *all = user;
    if (worker == 0) {
        atomic_store(&all->caller_cpu, sched_getcpu());
        return;
    }
    cpu_set_t now, one;
    assert_int_equal(sched_getaffinity(0, sizeof now, &now), 0);
    if (!CPU_EQUAL(&now, &all->allowed)) {
        atomic_fetch_add(&all->astray, 1);
    }
    CPU_ZERO(&one);
    CPU_SET((size_t)atomic_load(&all->caller_cpu), &one);
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    assert_int_equal(sched_setaffinity(0, sizeof now, &now), 0);
}

static void test_crowded_cpu(void **state)
{
    (void)state;
    bw_context *ctx = faults_context(NULL, NULL, 2);
    crowd all = {.caller_cpu = sched_getcpu()};
    assert_int_equal(sched_getaffinity(0, sizeof all.allowed, &all.allowed), 0);
    assert_int_equal(bwi_pool_open(ctx), BW_OK);
    for (int i = 0; i < 200; i++) {
        bwi_pool_run(ctx, 2, crowd_cpu, &all);
    }
    cpu_set_t after;
    assert_int_equal(sched_getaffinity(0, sizeof after, &after), 0);
    assert_true(CPU_EQUAL(&after, &all.allowed)); /* the caller never moves */
    assert_int_equal(atomic_load(&all.astray), 0);
    bw_close(ctx);
}

static void test_count_is_limited(void **state)
{
    (void)state;
    bw_context *ctx = faults_context(NULL, NULL, 3);
    assert_int_equal(bwi_pool_open(ctx), BW_OK);
    sums all = {.count = 1};
    bwi_pool_run(ctx, 100, add, &all);
    bwi_pool_run(ctx, 0, add, &all);
    assert_int_equal(all.of[0].runs, 2);
    assert_int_equal(all.of[2].runs, 1);
    assert_int_equal(all.of[3].runs, 0);
    bwi_pool_close(ctx);
    bwi_pool_close(ctx);
    bwi_pool_run(ctx, 3, add, &all); /* alone, for all */
    assert_int_equal(all.of[2].runs, 2);
    assert_int_equal(bwi_pool_open(ctx), BW_OK);
    bwi_pool_run(ctx, 3, add, &all);
    assert_int_equal(all.of[2].runs, 3);
    bw_close(ctx);
}

/* Long enough to let others fall asleep, at random. */
static void delay(int worker)
{
    static _Thread_local uint64_t counter;
    bwi_random random = bwi_random_at(99, (uint64_t)worker, counter++);
    if (random.word[0] % 8 == 0) {
        struct timespec time = {.tv_nsec = random.word[1] % 400000};
        nanosleep(&time, NULL);
    }
}

static void test_delayed(void **state)
{
    (void)state;
    bwi_pool_delay = delay;
    check_runs(2, 1000);
    check_runs(5, 500);
    bwi_pool_delay = NULL;
}

/* All workers are there at the same time: each waits for the others. */
static void gather(void *user, int worker)
{
    atomic_int *here = user;
    (void)worker;
    atomic_fetch_add(here, 1);
    while (atomic_load(here) < 4) {
        struct timespec time = {.tv_nsec = 10000};
        nanosleep(&time, NULL);
    }
}

static void test_at_the_same_time(void **state)
{
    (void)state;
    bw_context *ctx = faults_context(NULL, NULL, 4);
    assert_int_equal(bwi_pool_open(ctx), BW_OK);
    atomic_int here = 0;
    bwi_pool_run(ctx, 4, gather, &here);
    assert_int_equal(atomic_load(&here), 4);
    bw_close(ctx);
}

typedef struct facts {
    float product[4];
    bool blocked[4];
} facts;

static void look(void *user, int worker)
{
    facts *all = user;
    volatile float small = FLT_MIN;
    all->product[worker] = small * 0.5f;
    sigset_t set;
    pthread_sigmask(SIG_SETMASK, NULL, &set);
    all->blocked[worker] = sigismember(&set, SIGINT) && sigismember(&set, SIGTERM) && sigismember(&set, SIGUSR1);
}

static void test_thread_state(void **state)
{
    (void)state;
    volatile float small = FLT_MIN;
    for (int workers = 1; workers <= 4; workers += 3) {
        bw_context *ctx = faults_context(NULL, NULL, workers);
        assert_int_equal(bwi_pool_open(ctx), BW_OK);
        facts all = {.product = {1, 1, 1, 1}};
        bwi_pool_run(ctx, workers, look, &all);
        for (int worker = 0; worker < workers; worker++) {
#ifdef __SSE__
            assert_true(all.product[worker] == 0);
#endif
            assert_int_equal(all.blocked[worker], worker > 0);
        }
        assert_true(small * 0.5f > 0); /* the caller's state is back */
        bw_close(ctx);
    }
}

static void test_float_state(void **state)
{
    (void)state;
    volatile float small = FLT_MIN;
    bw_context *ctx = bw_open(NULL);
    assert_non_null(ctx);
    unsigned outer = bwi_float_set();
    unsigned inner = bwi_float_set();
#ifdef __SSE__
    assert_true(small * 0.5f == 0);
#endif
    bwi_float_restore(inner);
#ifdef __SSE__
    assert_true(small * 0.5f == 0);
#endif
    bwi_float_restore(outer);
    assert_true(small * 0.5f > 0);
    bwi_float_begin(ctx);
    bwi_float_begin(ctx);
    bwi_float_end(ctx);
#ifdef __SSE__
    assert_true(small * 0.5f == 0); /* only the outermost end gives the state back */
#endif
    bwi_float_end(ctx);
    assert_true(small * 0.5f > 0);
    bw_close(ctx);
}

static void test_refused_threads(void **state)
{
    (void)state;
#ifdef REFUSES_THREADS
    for (int at = 1; at <= 4; at++) {
        faults memory = {0};
        bw_context *ctx = faults_context(&memory, NULL, 5);
        threads_started = 0;
        refuse_at = at;
        assert_int_equal(bwi_pool_open(ctx), BW_RESOURCE_EXHAUSTED);
        refuse_at = 0;
        char words[80];
        snprintf(words, sizeof words, "cannot start worker %d of 5: Resource temporarily unavailable", at);
        assert_string_equal(bw_message(ctx), words);
        assert_int_equal(memory.blocks, 1); /* the context */
        assert_int_equal(bwi_pool_open(ctx), BW_OK);
        sums all = {.count = 1};
        bwi_pool_run(ctx, 5, add, &all);
        assert_int_equal(all.of[4].runs, 1);
        bw_close(ctx);
        assert_int_equal(memory.blocks, 0);
    }
#else
    skip();
#endif
}

static void test_now(void **state)
{
    (void)state;
    struct timespec time = {.tv_nsec = 2000000};
    double before = bwi_now();
    nanosleep(&time, NULL);
    assert_true(bwi_now() >= before + 0.002);
    assert_true(bwi_cpus() >= 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_crowded_cpu),     cmocka_unit_test(test_each_worker_once),
        cmocka_unit_test(test_many_runs),       cmocka_unit_test(test_count_is_limited),
        cmocka_unit_test(test_delayed),         cmocka_unit_test(test_at_the_same_time),
        cmocka_unit_test(test_thread_state),    cmocka_unit_test(test_float_state),
        cmocka_unit_test(test_refused_threads), cmocka_unit_test(test_now),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
