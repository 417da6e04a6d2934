/*
 * Measures what the machine can do at best: arithmetic in registers, memory, the nearest caches, and how long workers take to meet.
 * Each is measured in rounds of a tenth of a millisecond in which all workers begin and end together, and the best round counts,
 * since anything else that runs on the machine only adds time. What is a comparison is measured differently: repeatedly, and most
 * repeats count.
 */
#include "kernel/internal.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    ROUNDS = 1 << 15,      /* of multiply-adds */
    CHUNK = 1 << 17,       /* floats of each of two arrays that are streamed in a round */
    NEAR = 1 << 14,        /* floats of each of two arrays that stay in a core's own caches */
    NEAR_TIMES = 16,       /* how often these are read and written in a round */
    EXCHANGED = 1 << 15,   /* floats that a core takes over from another one in a round */
    MEETINGS = 100,        /* in a round */
    REPEATS = 9,           /* in which all numbers of cores are compared */
    SUMS_STRIDE = 16 * 32, /* floats, so that no two workers' sums share a cache line, or a pair of them */
    LEAST_TIMES = 8
};
static const double SECONDS = 0.08;         /* of one measurement */
static const double REPEAT_SECONDS = 0.008; /* of one number of cores in a repeat */
static const double LITTLE_DISTURBED = 0.7; /* with less, several cores were never there at the same time */
static const double STEADY = 0.75;          /* the first quartile of the repeats beside the third */
static const double UNDISTURBED = 0.9; /* the share of the cores that the process has while nothing else runs; it never sleeps */
static const size_t LEAST_STREAM = (size_t)64 << 20, MOST_STREAM = (size_t)512 << 20; /* bytes of both arrays */

typedef struct limits_run {
    bw_context *ctx;
    const bwi_kernels *kernels;
    int workers;
    int round;   /* the number of the round */
    float *sums; /* [worker][SUMS_STRIDE] */
    float *from, *to;
    int64_t chunks;    /* of each of these arrays */
    int64_t at;        /* the round's first chunk; each worker has the next */
    bool busy;         /* other programs took the cores, or other machines those below them */
    double could, did; /* seconds of CPU time of all repeats, at most and in fact */
} limits_run;

static void compute(void *user, int worker)
{
    limits_run *run = user;
    run->kernels->multiply_adds(ROUNDS, 0.5f, 1, run->sums + (size_t)worker * SUMS_STRIDE);
}

static void stream(void *user, int worker)
{
    limits_run *run = user;
    size_t at = (size_t)((run->at + worker) % run->chunks) * CHUNK;
    run->kernels->add(CHUNK, run->from + at, run->to + at);
}

static void stay_near(void *user, int worker)
{
    limits_run *run = user;
    size_t at = (size_t)(worker % run->chunks) * CHUNK;
    for (int k = 0; k < NEAR_TIMES; k++) {
        run->kernels->add(NEAR, run->from + at, run->to + at);
    }
}

/* Each worker adds to what it had in the last round, or to what the one before it had. */
static void add_own(void *user, int worker)
{
    limits_run *run = user;
    size_t at = (size_t)(worker % run->chunks) * CHUNK;
    run->kernels->add(EXCHANGED, run->from + at, run->to + at);
}

static void add_other(void *user, int worker)
{
    limits_run *run = user;
    size_t at = (size_t)(worker % run->chunks) * CHUNK, to = (size_t)((worker + run->round) % run->workers) * CHUNK;
    run->kernels->add(EXCHANGED, run->from + at, run->to + to);
}

/* What layers do: half of the time goes to arithmetic, half to the nearest caches. */
static void compute_near(void *user, int worker)
{
    compute(user, worker);
    stay_near(user, worker);
}

static void nothing(void *user, int worker)
{
    (void)user, (void)worker;
}

static double cpu_seconds(void)
{
    struct timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* The seconds of the best round of work on that many workers, which is made `times` times in a round. All of them together need
 * more time, since a round counts only if none of them is disturbed. */
static double best_round(limits_run *run, int workers, bwi_work work, int times)
{
    double best = HUGE_VAL, begin = bwi_now(), last = begin, used = cpu_seconds(), enough = workers > 1 ? 2 * SECONDS : SECONDS;
    for (int k = 0; k < LEAST_TIMES || last - begin < enough; k++) {
        for (int t = 0; t < times; t++) {
            bwi_pool_run(run->ctx, workers, work, run);
        }
        double now = bwi_now();
        best = now - last < best ? now - last : best;
        last = now;
        run->at = (run->at + workers) % run->chunks;
        run->round = (run->round + 1) % run->workers;
    }
    used = cpu_seconds() - used;
    run->busy = run->busy || used < UNDISTURBED * workers * (last - begin);
    return best > 0 ? best : 1e-9;
}

/* Linux knows the caches, "32768K"; elsewhere the C library may. */
static int64_t last_cache(bw_context *ctx)
{
    char text[32];
    int64_t size = bwi_file_read_small(ctx, "/sys/devices/system/cpu/cpu0/cache/index3/size", text, sizeof text), kilobytes;
    const char *unit = size > 0 ? memchr(text, 'K', (size_t)size) : NULL;
    if (unit && bwi_parse_int(text, unit, &kilobytes) && kilobytes > 0 && kilobytes < INT32_MAX) {
        return 1024 * kilobytes;
    }
    long third = sysconf(_SC_LEVEL3_CACHE_SIZE), second = sysconf(_SC_LEVEL2_CACHE_SIZE);
    return third > 0 ? third : second > 0 ? second : 0;
}

/* Streams need arrays that no cache holds: four times the last one, and a quarter of what memory there is at most. */
static size_t stream_bytes(bw_context *ctx)
{
    size_t bytes = 4 * (size_t)last_cache(ctx), most = bwi_memory_available(ctx) / 4;
    bytes = bytes < LEAST_STREAM ? LEAST_STREAM : bytes > MOST_STREAM ? MOST_STREAM : bytes;
    return bytes < most ? bytes : most;
}

static double at_least(double least, double value)
{
    return value > least ? value : least;
}

/* ---- Comparisons, repeated ---- */

static double mean_round(limits_run *run, int workers, bwi_work work)
{
    double begin = bwi_now(), last = begin, used = cpu_seconds();
    int rounds = 0;
    for (; rounds == 0 || last - begin < REPEAT_SECONDS; rounds++) {
        bwi_pool_run(run->ctx, workers, work, run);
        run->at = (run->at + workers) % run->chunks;
        run->round = (run->round + 1) % run->workers;
        last = bwi_now();
    }
    run->could += workers * (last - begin);
    run->did += cpu_seconds() - used;
    return at_least(1e-9, (last - begin) / rounds);
}

static int by_size(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return *x < *y ? -1 : *x > *y;
}

/* What exchanging adds to a round, in most repeats: now and then it adds next to nothing, which no step can count on. It is no
 * faster than a core's own caches. */
static double exchange_rate(limits_run *run, const bw_machine *machine, int cores)
{
    double added[REPEATS];
    for (int repeat = 0; repeat < REPEATS; repeat++) {
        double own = mean_round(run, cores, add_own);
        added[repeat] = mean_round(run, cores, add_other) - own;
    }
    qsort(added, REPEATS, sizeof added[0], by_size);
    double rate = EXCHANGED * sizeof(float) / at_least(1e-9, added[REPEATS / 2]);
    return rate < machine->cache_bandwidth ? rate : machine->cache_bandwidth;
}

/* Of several repeats the third quartile counts: a virtual machine's cores may be slower for a while without anybody here being able
 * to see it, and a repeat in which the single core was disturbed promises too much. Unless most repeats agree, they are called
 * unsteady. */
double bwi_growth_of_repeats(double *ratios, int repeats, int cores, bool *unsteady)
{
    qsort(ratios, (size_t)repeats, sizeof *ratios, by_size);
    double high = at_least(1, ratios[repeats * 3 / 4]);
    high = high < cores ? high : cores;
    *unsteady = ratios[repeats / 4] < STEADY * high;
    return high;
}

/* A step takes as long as its slowest worker, over and over, so here means count and not the best round. Whatever else the
 * machine does comes and goes: every number of cores is compared with one core in the same repeat. Memory is never steady; cores
 * should be. */
static void measure_growth(limits_run *run, bw_growth *growth, int count, bwi_work work, size_t place)
{
    double ratios[BW_MOST_GROWTHS][REPEATS];
    for (int repeat = 0; repeat < REPEATS; repeat++) {
        double alone = mean_round(run, 1, work);
        for (int k = 0; k < count; k++) {
            ratios[k][repeat] = growth[k].cores > 1 ? growth[k].cores * alone / mean_round(run, growth[k].cores, work) : 1;
        }
    }
    for (int k = 0; k < count; k++) {
        bool unsteady;
        double value = bwi_growth_of_repeats(ratios[k], REPEATS, growth[k].cores, &unsteady);
        run->busy = run->busy || (unsteady && work != stream);
        memcpy((char *)&growth[k] + place, &value, sizeof value);
    }
}

static void measure_growths(limits_run *run, bw_machine *machine)
{
    int cores = run->ctx->workers, count = 0;
    for (int many = 1; many < cores && count < BW_MOST_GROWTHS - 1; many *= 2) {
        machine->growth[count++].cores = many;
    }
    machine->growth[count++].cores = cores;
    measure_growth(run, machine->growth, count, compute_near, offsetof(bw_growth, compute));
    measure_growth(run, machine->growth, count, stream, offsetof(bw_growth, bandwidth));
    machine->growths = run->did < LITTLE_DISTURBED * run->could ? 0 : count;
    run->busy = run->busy || run->did < UNDISTURBED * run->could;
}

static void measure(limits_run *run, bw_machine *machine)
{
    int cores = run->ctx->workers;
    double flops = 2.0 * ROUNDS * BWI_LIMIT_SUMS * (double)run->kernels->block;
    double streamed = 3.0 * CHUNK * sizeof(float), near = 3.0 * NEAR * NEAR_TIMES * sizeof(float);
    machine->core_flops = flops / best_round(run, 1, compute, 1);
    machine->core_bandwidth = streamed / best_round(run, 1, stream, 1);
    machine->cache_bandwidth = near / best_round(run, 1, stay_near, 1);
    machine->flops = machine->core_flops;
    machine->bandwidth = machine->core_bandwidth;
    machine->exchange_bandwidth = machine->cache_bandwidth;
    if (cores > 1) {
        machine->flops = at_least(machine->core_flops, cores * flops / best_round(run, cores, compute, 1));
        machine->bandwidth = at_least(machine->core_bandwidth, cores * streamed / best_round(run, cores, stream, 1));
        machine->exchange_bandwidth = exchange_rate(run, machine, cores);
    }
    machine->meeting_seconds = best_round(run, cores, nothing, MEETINGS) / MEETINGS;
    measure_growths(run, machine);
    machine->busy = run->busy;
}

/* The arrays are an arena of the kernels' own, whose values never matter: they only must not be denormal. */
bw_status bwi_limits_measure(bw_context *ctx, bw_machine *machine)
{
    limits_run run = {.ctx = ctx, .kernels = bwi_kernels_of(ctx), .workers = ctx->workers};
    bw_status status = run.kernels ? bwi_pool_open(ctx) : BW_INVALID_ARGUMENT;
    if (status != BW_OK) {
        return status;
    }
    const bwi_memory_kernels *memory = run.kernels->memory;
    size_t sums = (size_t)ctx->workers * SUMS_STRIDE;
    run.chunks = (int64_t)(stream_bytes(ctx) / (2 * CHUNK * sizeof(float)));
    run.chunks = run.chunks < ctx->workers ? ctx->workers : run.chunks;
    size_t count = (size_t)run.chunks * CHUNK, bytes = (sums + 2 * count) * sizeof(float);
    run.sums = memory->allocate(ctx, bytes);
    if (!run.sums) {
        return BW_RESOURCE_EXHAUSTED;
    }
    run.from = run.sums + sums;
    run.to = run.from + count;
    for (size_t k = 0; k < sums; k++) {
        memory->fill(1, (float)(k % SUMS_STRIDE), run.sums + k);
    }
    machine->cores = ctx->workers;
    machine->cache_bytes = last_cache(ctx);
    bwi_print(machine->instruction_set, sizeof machine->instruction_set, "%s", run.kernels->name);
    measure(&run, machine);
    memory->release(ctx, run.sums, bytes);
    return BW_OK;
}
