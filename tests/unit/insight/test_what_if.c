/* The rule that predicts a step on other hardware, on given numbers whose answers are worked out by hand; and through a real
 * run. */
#include "support/context.h"

#include "insight/internal.h"

#include <math.h>

/* Two cores that do not disturb each other, and a memory that is enough for one and a half of them. */
static const bw_machine MACHINE = {.cores = 2,
                                   .core_flops = 100e9,
                                   .flops = 200e9,
                                   .core_bandwidth = 20e9,
                                   .bandwidth = 30e9,
                                   .cache_bandwidth = 100e9,
                                   .exchange_bandwidth = 10e9,
                                   .meeting_seconds = 1e-6,
                                   .cache_bytes = 1000};

enum { FORWARD, UPDATE, CALLBACKS, PARTS };

/* 64 samples in 8 tiles on 4 lanes: 600 us forward at 50 GFLOP/s, an update of 300 us that moves 20 GB/s, 100 us of callbacks. */
static bwi_measured_part parts[PARTS];
static bwi_measured_step step_of(void)
{
    parts[FORWARD] = (bwi_measured_part){.kind = BW_PART_FORWARD, .way = BWI_WAY_TILES, .seconds = 600e-6, .flops = 30e6};
    parts[UPDATE] = (bwi_measured_part){.kind = BW_PART_UPDATE, .way = BWI_WAY_BLOCKS, .seconds = 300e-6, .bytes = 6e6};
    parts[CALLBACKS] = (bwi_measured_part){.kind = BW_PART_CALLBACKS, .way = BWI_WAY_ALONE, .seconds = 100e-6};
    return (bwi_measured_step){
        .step_seconds = 1000e-6,
        .workers = 1,
        .sharing = {.samples = 64, .tile = 8, .lanes = 4, .phases = 1, .tiles = true, .update = true, .meetings = 3},
        .bytes = 2000000,
        .parts = PARTS,
        .list = parts};
}

static bw_hardware cores(int count)
{
    bw_hardware other = BW_HARDWARE_DEFAULT;
    other.cores = count;
    return other;
}

static void check_us(double seconds, double us)
{
    if (fabs(seconds * 1e6 - us) > 1e-6 * us + 1e-9) {
        fail_msg("expected %.9g us, found %.9g", us, seconds * 1e6);
    }
}

static void check_prediction(bw_prediction p, double compute, double bandwidth, double serial, double data)
{
    check_us(p.compute, compute);
    check_us(p.bandwidth, bandwidth);
    check_us(p.serial, serial);
    check_us(p.data, data);
    check_us(p.step_seconds, compute + bandwidth + serial + data);
}

/* The same hardware gives what was measured. */
static void test_same(void **state)
{
    (void)state;
    bwi_measured_step step = step_of();
    bw_hardware same = BW_HARDWARE_DEFAULT;
    check_prediction(bwi_predict(&step, &MACHINE, &same), 600, 300, 100, 0);
    step.step_seconds = 1100e-6; /* 100 us that nothing explains are serial */
    check_prediction(bwi_predict(&step, &MACHINE, &same), 600, 300, 200, 0);
}

/* Two workers halve the tiles; they have 15 GB/s each, so the update takes 300 * 20/15 / 2 us; and they meet three times. */
static void test_cores(void **state)
{
    (void)state;
    bwi_measured_step step = step_of();
    bw_hardware two = cores(2), eight = cores(8);
    check_prediction(bwi_predict(&step, &MACHINE, &two), 300, 200, 103, 0);
    /* Eight share four lanes, with a tile and 3.75 GB/s each; three have three of the eight tiles at most. */
    bw_hardware three = cores(3), many = cores(64);
    check_prediction(bwi_predict(&step, &MACHINE, &eight), 75, 200, 103, 0);
    step.sharing.lanes = 2;
    check_prediction(bwi_predict(&step, &MACHINE, &three), 200, 200, 103 + 600 * (3 / 8.0 - 1 / 3.0), 0);
    /* With eight lanes, these are the most workers that there can be. */
    step.sharing.lanes = 8;
    check_prediction(bwi_predict(&step, &MACHINE, &many), 75, 200, 103, 0);
    step.sharing.lanes = 4;
    /* 400,000 bytes of weights: each of two workers fetches all of them, and half of them for each of its two lanes, twice. */
    step.sharing.weights = 400000;
    check_prediction(bwi_predict(&step, &MACHINE, &two), 300, 200, 103 + (400000 + 200000.0 * 2 * 4 / 2) / 10e9 * 1e6, 0);
}

/* Of four cores each is half as fast as one alone, of two 0.8 times; memory gives 1.5 and 2 times as much. Three lie on the line
 * between, eight are like the four. Callbacks run alone, so they stay. */
static void test_growth(void **state)
{
    (void)state;
    bw_machine m = MACHINE;
    m.cores = 4;
    m.growths = 3;
    m.growth[0] = (bw_growth){.cores = 1, .compute = 1, .bandwidth = 1};
    m.growth[1] = (bw_growth){.cores = 2, .compute = 1.6, .bandwidth = 1.5};
    m.growth[2] = (bw_growth){.cores = 4, .compute = 2, .bandwidth = 2};
    bwi_measured_step step = step_of();
    step.sharing.samples = 96; /* in 12 tiles on 12 lanes: as many for each of 1, 2, 3 and 4 workers */
    step.sharing.lanes = 12;
    bw_hardware one = cores(1), two = cores(2), three = cores(3), four = cores(4), six = cores(6);
    check_prediction(bwi_predict(&step, &m, &one), 600, 300, 100, 0);
    check_prediction(bwi_predict(&step, &m, &two), 600 / 1.6, 300 / 1.5, 103, 0);
    check_prediction(bwi_predict(&step, &m, &three), 600 / 1.8, 300 / 1.75, 103, 0);
    check_prediction(bwi_predict(&step, &m, &four), 600 / 2.0, 300 / 2.0, 103, 0);
    check_prediction(bwi_predict(&step, &m, &six), 600 / 3.0, 300 / 2.0, 103, 0);
    bw_machine unknown = m; /* then only the limits count */
    unknown.growths = 0;
    unknown.cores = 2;
    check_prediction(bwi_predict(&step, &unknown, &two), 600 / 2.0, 300 / 1.5, 103, 0);
    step.workers = 4; /* and back: parts are the seconds of all workers, and each of them has 10 GB/s */
    parts[UPDATE].bytes = 3e6;
    step.step_seconds = (600 / 4.0 + 300 / 4.0 + 103) * 1e-6;
    check_prediction(bwi_predict(&step, &m, &one), 600 / 2.0, 300 / 2.0, 100, 0);
}

/* An update that moves 0.75 of what memory can is bound by computing on one core; two find memory for one and a half, so each has its
 * bytes after 0.75 * 20/15 * 300 / 2 us = 150 us, as it has done its computing; with a memory of half the speed after 300. What moves more
 * than memory can has it in the caches. */
static void test_fetched_meanwhile(void **state)
{
    (void)state;
    bwi_measured_step step = step_of();
    bw_hardware two = cores(2), same = BW_HARDWARE_DEFAULT, slower = cores(2), faster = BW_HARDWARE_DEFAULT;
    parts[UPDATE].bytes = 4.5e6 * 0.99;
    check_prediction(bwi_predict(&step, &MACHINE, &same), 900, 0, 100, 0);
    check_prediction(bwi_predict(&step, &MACHINE, &two), 450, 0, 103, 0);
    slower.bandwidth = 0.5;
    check_prediction(bwi_predict(&step, &MACHINE, &slower), 300, 300 * 0.99, 103, 0);
    faster.compute = 2; /* computing would take 150 us, memory takes 225 */
    check_prediction(bwi_predict(&step, &MACHINE, &faster), 300, 225 * 0.99, 50, 0);
    parts[UPDATE].bytes = 12e6;
    check_prediction(bwi_predict(&step, &MACHINE, &two), 450, 0, 103, 0);
}

/* Of twice as many bytes as the cache holds, the root of m = 1 - exp(-2 m) misses it, 0.7968; of a twentieth more than it holds, that of
 * m = 1 - exp(-1.05 m), 0.0937. With a memory of a tenth of the speed each is what decides. */
static void test_partly_cached(void **state)
{
    (void)state;
    bwi_measured_step step = step_of();
    bw_hardware slower = BW_HARDWARE_DEFAULT;
    static const size_t bytes[] = {2000, 1050};
    static const double missed[] = {0.7968121300, 0.0937018371};
    slower.bandwidth = 0.05;
    for (int k = 0; k < 2; k++) {
        step.bytes = bytes[k];
        check_prediction(bwi_predict(&step, &MACHINE, &slower), 600, 300 * missed[k] / 0.05, 100, 0);
    }
}

/* Three lanes for two workers: one has two of them. The last tile is half as large as the others. */
static void test_uneven(void **state)
{
    (void)state;
    bwi_measured_step step = step_of();
    bw_hardware two = cores(2);
    step.sharing.samples = 24;
    check_prediction(bwi_predict(&step, &MACHINE, &two), 300, 200, 103 + 600 * (2 / 3.0 - 0.5), 0);
    step.sharing.samples = 20; /* tiles of 8, 8 and 4: 12 of 20 on one worker */
    check_prediction(bwi_predict(&step, &MACHINE, &two), 300, 200, 103 + 600 * (12 / 20.0 - 0.5), 0);
    step.sharing.samples = 8; /* a single tile cannot be shared */
    step.sharing.tiles = false;
    check_prediction(bwi_predict(&step, &MACHINE, &two), 0, 200, 703, 0);
}

/* Factors act on what they are about: memory only where what a step touches does not fit the caches. */
static void test_factors(void **state)
{
    (void)state;
    bwi_measured_step step = step_of();
    bw_hardware other = BW_HARDWARE_DEFAULT;
    other.compute = 2;
    check_prediction(bwi_predict(&step, &MACHINE, &other), 300, 300, 50, 0);
    other.bandwidth = 3;
    check_prediction(bwi_predict(&step, &MACHINE, &other), 300, 100, 50, 0);
    step.bytes = 500;
    check_prediction(bwi_predict(&step, &MACHINE, &other), 450, 0, 50, 0);
}

/* A step that waits for data takes as long as its samples are made, unless that becomes quicker than the rest. */
static void test_data(void **state)
{
    (void)state;
    bwi_measured_step step = step_of();
    bwi_measured_part waiting[PARTS + 1];
    memcpy(waiting, parts, sizeof parts);
    waiting[PARTS] = (bwi_measured_part){.kind = BW_PART_DATA, .way = BWI_WAY_ALONE, .seconds = 500e-6};
    step.list = waiting;
    step.parts = PARTS + 1;
    step.step_seconds = 1500e-6;
    bw_hardware other = BW_HARDWARE_DEFAULT;
    check_prediction(bwi_predict(&step, &MACHINE, &other), 600, 300, 100, 500);
    other.compute = 2;
    check_prediction(bwi_predict(&step, &MACHINE, &other), 300, 300, 50, 850);
    other.data = 10;
    check_prediction(bwi_predict(&step, &MACHINE, &other), 300, 300, 50, 0);
}

/* A run with all lanes busy: the prediction of the same hardware is the measured step, and more of everything is no slower. */
static void test_run(void **state)
{
    (void)state;
    static float x[256 * 20], y[256];
    for (size_t i = 0; i < BWI_COUNT(x); i++) {
        x[i] = (float)(i % 7) - 3;
    }
    bw_array inputs = {.data = x, .dtype = BW_F32, .ndim = 2, .shape = {256, 20}};
    bw_array targets = {.data = y, .dtype = BW_F32, .ndim = 2, .shape = {256, 1}};
    bw_model *model = bw_model_parse(ctx, "dense(64,relu) dense(1)");
    bw_fit_options options = BW_FIT_OPTIONS_DEFAULT;
    options.epochs = 20;
    options.batch = 64;
    bw_history *history = NULL;
    check_ok(ctx, bw_fit(model, bw_from_arrays(ctx, &inputs, &targets, NULL), &options, &history));
    bw_prediction now, then;
    bw_hardware other = cores(1);
    check_ok(ctx, bw_history_predict(history, &MACHINE, NULL, &now));
    check_us(now.step_seconds, bw_history_profile(history).step_seconds * 1e6);
    other.compute = other.bandwidth = other.data = 2;
    check_ok(ctx, bw_history_predict(history, &MACHINE, &other, &then));
    assert_true(then.step_seconds > 0);
    other.compute = 0;
    check_fails(ctx, bw_history_predict(history, &MACHINE, &other, &then), BW_INVALID_ARGUMENT, "above 0");
    check_fails(ctx, bw_history_predict(history, NULL, NULL, &then), BW_INVALID_ARGUMENT, "machine");
    options.epochs = 1;
    options.batch = 256;
    check_ok(ctx, bw_fit(model, bw_from_arrays(ctx, &inputs, &targets, NULL), &options, &history));
    check_fails(ctx, bw_history_predict(history, &MACHINE, NULL, &then), BW_INVALID_ARGUMENT, "no step was timed");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same),
        cmocka_unit_test(test_cores),
        cmocka_unit_test(test_growth),
        cmocka_unit_test(test_fetched_meanwhile),
        cmocka_unit_test(test_partly_cached),
        cmocka_unit_test(test_uneven),
        cmocka_unit_test(test_factors),
        cmocka_unit_test(test_data),
        cmocka_unit_test_setup_teardown(test_run, open_context, close_context),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
