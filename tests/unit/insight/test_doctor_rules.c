/* The doctor's rules about updates and machine, on given facts: no rule depends on how quick the machine is that runs the test. */
#include "support/check.h"

#include "insight/doctor/doctor.h"

#include <math.h>

typedef struct rule {
    const char *id;
    void (*set)(bwi_doctor *d);
    const char *evidence; /* a part of it; NULL: nothing is found */
    bw_severity severity;
} rule;

static bwi_layer_gradient layers[3];

static void set_layers(bwi_doctor *d, double first, double last)
{
    layers[0] = (bwi_layer_gradient){.name = "dense", .size = first, .weights = 0.1, .bias = first, .units = 64, .silent = 3};
    layers[1] = (bwi_layer_gradient){.name = "dense_1", .size = last, .weights = 0.1, .bias = last, .units = 10, .output = true};
    d->steps.before = (bwi_gradient_facts){.layer = layers, .count = 2, .samples = 512};
}

static void set_trial(bwi_doctor *d, double last, double slower, double faster)
{
    d->steps.trial = (bwi_trial_facts){.updates = 200, .rate = 0.1, .first = 2.3, .last = last, .error = 0.01};
    d->steps.slower = (bwi_trial_facts){.updates = 200, .rate = 0.01, .first = 2.3, .last = slower, .error = 0.01};
    d->steps.faster = (bwi_trial_facts){.updates = 200, .rate = 1, .first = 2.3, .last = faster, .error = 0.01};
}

static void rate_high(bwi_doctor *d)
{
    set_trial(d, 2.6, 0.5, 9);
}

/* Units died in the first updates: the loss is that of a constant, below the first one by chance. */
static void rate_throws(bwi_doctor *d)
{
    set_trial(d, 1.1, 0.5, 9);
    d->steps.trial.early = 80;
    d->steps.slower.early = 2.4;
}

/* A smaller rate does not throw the model off, but it ends at a higher loss. */
static void rate_recovers(bwi_doctor *d)
{
    rate_throws(d);
    d->steps.trial.last = 0.4;
}

/* There was no time for the other rates. */
static void rates_hardly_tried(bwi_doctor *d)
{
    set_trial(d, 2.6, 0, 0);
    d->steps.slower.updates = d->steps.faster.updates = 3;
}

static void rate_fails(bwi_doctor *d)
{
    set_trial(d, 0, 0.5, 9);
    d->steps.trial.failed = true;
}

static void rate_right(bwi_doctor *d)
{
    set_trial(d, 0.7, 2, 0.2);
    d->steps.slower.updates = d->steps.faster.updates = 0; /* nothing else was tried */
}

/* The loss stays where it is whatever the rate: nothing to say about the rate. */
static void rate_means_nothing(bwi_doctor *d)
{
    set_trial(d, 2.3, 2.29, 2.31);
}

/* A difference that noise explains. */
static void rate_noisy(bwi_doctor *d)
{
    set_trial(d, 2.6, 1.9, 9);
    d->steps.trial.error = 0.5;
}

static void rate_low(bwi_doctor *d)
{
    set_trial(d, 2.29, 2.299, 0.4);
}

static void units_dead(bwi_doctor *d)
{
    set_layers(d, 0.01, 0.02);
    layers[0].silent = 40;
}

static void units_alive(bwi_doctor *d)
{
    set_layers(d, 0.01, 0.02);
    layers[0].silent = 30;
}

/* Where the loss itself has no gradient, no unit gets one. */
static void all_learnt(bwi_doctor *d)
{
    set_layers(d, 0, 0);
    layers[0].silent = 64;
}

static void output_constant(bwi_doctor *d)
{
    d->constant_output = true;
    d->looked_at = 32;
}

static void vanishing(bwi_doctor *d)
{
    set_layers(d, 1e-8, 0.02);
}

static void all_small(bwi_doctor *d)
{
    set_layers(d, 1e-8, 1e-7);
}

static void exploding(bwi_doctor *d)
{
    set_layers(d, 50, 3);
    layers[1].bias = 1;
}

/* Targets around a thousand make large residuals. */
static void large_targets(bwi_doctor *d)
{
    set_layers(d, 500, 800);
}

static void always_fails(bwi_doctor *d)
{
    rate_fails(d);
    d->steps.slower.failed = true;
}

static void gradients_fine(bwi_doctor *d)
{
    set_layers(d, 0.02, 0.03);
}

static void set_noise(bwi_doctor *d, int64_t batch, double scale)
{
    d->batch = batch;
    d->data.samples = 50000;
    d->steps.noise_steps = 100;
    d->steps.noise = (bw_noise_scale){.determined = true, .scale = scale, .low = 0.8 * scale, .high = 1.3 * scale};
}

static void in_order(bwi_doctor *d)
{
    d->batch = 32;
    d->data.samples = 50000;
    d->order = (bwi_order){.labels = 96, .window = 32, .classes = true, .p = 0.007, .same = 0.54, .by_luck = 0.49};
}

/* The same by luck. */
static void in_random_order(bwi_doctor *d)
{
    in_order(d);
    d->shuffled = true;
}

static void below_noise(bwi_doctor *d)
{
    set_noise(d, 32, 1500);
}

static void past_noise(bwi_doctor *d)
{
    set_noise(d, 4096, 60);
}

static void at_noise(bwi_doctor *d)
{
    set_noise(d, 128, 100);
}

static void noise_unknown(bwi_doctor *d)
{
    set_noise(d, 32, 1500);
    d->steps.noise.determined = false;
}

static void noise_seldom(bwi_doctor *d)
{
    set_noise(d, 4096, 60);
    d->steps.noise_steps = 5;
}

static bwi_speed_facts *set_speed(bwi_doctor *d, double seconds)
{
    d->steps.speed = (bwi_speed_facts){.known = true,
                                       .step_seconds = seconds,
                                       .samples = 32,
                                       .data = 0.01,
                                       .overhead = 0.04,
                                       .idle = 0.1,
                                       .compute = 0.85,
                                       .workers = 2};
    return &d->steps.speed;
}

static void overhead(bwi_doctor *d)
{
    bwi_speed_facts *speed = set_speed(d, 5e-6);
    speed->overhead = 0.6;
    speed->compute = 0.25;
}

static void overhead_of_one(bwi_doctor *d)
{
    overhead(d);
    d->steps.speed.samples = 1;
}

/* A step of a tenth of a millisecond has no half of it as overhead: others used the cores. */
static void preempted(bwi_doctor *d)
{
    bwi_speed_facts *speed = set_speed(d, 1e-4);
    speed->overhead = 0.6;
    speed->compute = 0.25;
}

static void waits_for_data(bwi_doctor *d)
{
    bwi_speed_facts *speed = set_speed(d, 1e-2);
    speed->data = 0.63;
    speed->compute = 0.3;
}

static void moves_bytes(bwi_doctor *d)
{
    bwi_speed_facts *speed = set_speed(d, 1e-2);
    speed->bytes = 0.17e9; /* in 8.5 ms: 20 GB/s */
    speed->flops = 0.1e9;
    speed->bytes_limit = 25e9;
    speed->flops_limit = 200e9;
}

static void computes(bwi_doctor *d)
{
    moves_bytes(d);
    d->steps.speed.bytes = 0.01e9;
    d->steps.speed.flops = 1.2e9;
}

static void neither(bwi_doctor *d)
{
    moves_bytes(d);
    d->steps.speed.bytes = 0.01e9;
}

static void set_run(bwi_doctor *d)
{
    d->steps.ran = true;
    d->steps.run = (bw_run_facts){.updates = 100, .tile = 16, .segments = 1, .planned_bytes = 10 << 20};
    d->steps.tile_wanted = 16;
    d->steps.wanted_bytes = 100 << 20;
}

static void computes_again(bwi_doctor *d)
{
    set_run(d);
    d->steps.run.segments = 4;
}

static void spills(bwi_doctor *d)
{
    set_run(d);
    d->steps.run.spilled_bytes = 3 << 20;
}

static void cuts_tiles(bwi_doctor *d)
{
    set_run(d);
    d->steps.tile_wanted = 64;
}

static void swaps(bwi_doctor *d)
{
    set_run(d);
    d->steps.run.swapped_bytes = 300 << 20;
    d->steps.run.major_faults = 20000;
}

/* Pages of mapped data are read from a disk, which is no swapping. */
static void reads_data(bwi_doctor *d)
{
    set_run(d);
    d->steps.run.major_faults = 20000;
}

static const rule rules[] = {
    {"learning-rate-too-high", rate_high, "from 2.3 to 2.6 at a rate of 0.1, and to 0.5 at a rate of 0.01", BW_SEVERITY_WARNING},
    {"learning-rate-too-high", rate_fails, "training fails within 200 updates", BW_SEVERITY_ERROR},
    {"learning-rate-too-high", rate_throws, "the first 20 updates take the loss from 2.3 to 80 at a rate of 0.1, and to 2.4",
     BW_SEVERITY_WARNING},
    {"learning-rate-too-high", rate_recovers, NULL, BW_SEVERITY_NOTE},
    {"learning-rate-too-high", rate_right, NULL, BW_SEVERITY_NOTE},
    {"learning-rate-too-high", rate_low, NULL, BW_SEVERITY_NOTE},
    {"learning-rate-too-high", rate_means_nothing, NULL, BW_SEVERITY_NOTE},
    {"learning-rate-too-high", rate_noisy, NULL, BW_SEVERITY_NOTE},
    {"learning-rate-too-high", rates_hardly_tried, NULL, BW_SEVERITY_NOTE},
    {"learning-rate-too-low", rates_hardly_tried, NULL, BW_SEVERITY_NOTE},
    {"learning-rate-too-low", rate_low, "to 0.4 at a rate of 1", BW_SEVERITY_WARNING},
    {"learning-rate-too-low", rate_right, NULL, BW_SEVERITY_NOTE},
    {"learning-rate-too-low", rate_high, NULL, BW_SEVERITY_NOTE},
    {"learning-rate-too-low", rate_means_nothing, NULL, BW_SEVERITY_NOTE},
    {"dead-units", units_dead, "40 of 64 units get no gradient from any of 512 samples, before the first update",
     BW_SEVERITY_WARNING},
    {"dead-units", output_constant, "the same for all of 32 samples", BW_SEVERITY_WARNING},
    {"dead-units", units_alive, NULL, BW_SEVERITY_NOTE},
    {"dead-units", all_learnt, NULL, BW_SEVERITY_NOTE},
    {"vanishing-gradient", vanishing, "2000000 times as large", BW_SEVERITY_WARNING},
    {"vanishing-gradient", all_small, NULL, BW_SEVERITY_NOTE},
    {"vanishing-gradient", gradients_fine, NULL, BW_SEVERITY_NOTE},
    {"exploding-gradient", exploding, "500 times that of its weights", BW_SEVERITY_WARNING},
    {"exploding-gradient", always_fails, "also at a tenth of the rate", BW_SEVERITY_ERROR},
    {"exploding-gradient", large_targets, NULL, BW_SEVERITY_NOTE},
    {"exploding-gradient", gradients_fine, NULL, BW_SEVERITY_NOTE},
    {"unshuffled-labels", in_order, "54% of all pairs have the same class, 49% in a random order", BW_SEVERITY_WARNING},
    {"unshuffled-labels", in_random_order, NULL, BW_SEVERITY_NOTE},
    {"batch-below-noise", below_noise, "47 times the batch of 32", BW_SEVERITY_NOTE},
    {"batch-below-noise", at_noise, NULL, BW_SEVERITY_NOTE},
    {"batch-below-noise", past_noise, NULL, BW_SEVERITY_NOTE},
    {"batch-below-noise", noise_unknown, NULL, BW_SEVERITY_NOTE},
    {"batch-past-noise", past_noise, "the batch is 4096", BW_SEVERITY_NOTE},
    {"batch-past-noise", at_noise, NULL, BW_SEVERITY_NOTE},
    {"batch-past-noise", noise_seldom, NULL, BW_SEVERITY_NOTE},
    {"overhead-bound", overhead, "67% of the time that workers are busy in a step of 5 us", BW_SEVERITY_NOTE},
    {"overhead-bound", overhead_of_one, "with 1 sample is overhead", BW_SEVERITY_NOTE},
    {"overhead-bound", preempted, NULL, BW_SEVERITY_NOTE},
    {"overhead-bound", computes, NULL, BW_SEVERITY_NOTE},
    {"data-bound", waits_for_data, "63% of a step of 10 ms", BW_SEVERITY_NOTE},
    {"data-bound", computes, NULL, BW_SEVERITY_NOTE},
    {"bandwidth-bound", moves_bytes, "80% of what the machine can", BW_SEVERITY_NOTE},
    {"bandwidth-bound", computes, NULL, BW_SEVERITY_NOTE},
    {"bandwidth-bound", neither, NULL, BW_SEVERITY_NOTE},
    {"compute-bound", computes, "71% of what the machine can", BW_SEVERITY_NOTE},
    {"compute-bound", moves_bytes, NULL, BW_SEVERITY_NOTE},
    {"compute-bound", neither, NULL, BW_SEVERITY_NOTE},
    {"capacity-bound", computes_again, "in 4 segments", BW_SEVERITY_NOTE},
    {"capacity-bound", spills, "3.0 MiB are kept on a disk", BW_SEVERITY_NOTE},
    {"capacity-bound", cuts_tiles, "16 samples in place of 64", BW_SEVERITY_NOTE},
    {"capacity-bound", set_run, NULL, BW_SEVERITY_NOTE},
    {"swapping", swaps, "300.0 MiB were moved to a disk during 100 updates", BW_SEVERITY_WARNING},
    {"swapping", reads_data, NULL, BW_SEVERITY_NOTE},
};

static const bwi_check *check_of(const char *id)
{
    const bwi_check *check = bwi_checks;
    while (check->id && strcmp(check->id, id) != 0) {
        check++;
    }
    return check->id ? check : NULL;
}

static void test_rules(void **state)
{
    (void)state;
    for (size_t i = 0; i < BWI_COUNT(rules); i++) {
        bwi_doctor d = {.steps = {.ran = true}};
        bwi_finding found = {.id = NULL};
        const bwi_check *check = check_of(rules[i].id);
        assert_non_null(check);
        rules[i].set(&d);
        bool is = check->check(&d, &found);
        bool right = is == !!rules[i].evidence;
        if (right && is) {
            right = strstr(found.evidence, rules[i].evidence) && found.severity == rules[i].severity && found.fix[0];
        }
        if (!right) {
            fail_msg("rule %zu, %s: '%s', fix '%s'", i, rules[i].id, is ? found.evidence : "nothing", found.fix);
        }
    }
}

/* The ids that users rely on, in any order. */
static void test_ids(void **state)
{
    (void)state;
    static const char *const ids[] = {"unshuffled-labels",
                                      "class-imbalance",
                                      "unscaled-inputs",
                                      "constant-feature",
                                      "duplicate-samples",
                                      "leak-into-validation",
                                      "label-out-of-range",
                                      "not-a-number",
                                      "wrong-loss-for-output",
                                      "tiny-last-batch",
                                      "batchnorm-small-batch",
                                      "batch-below-noise",
                                      "batch-past-noise",
                                      "learning-rate-too-high",
                                      "learning-rate-too-low",
                                      "dead-units",
                                      "vanishing-gradient",
                                      "exploding-gradient",
                                      "inconsistent-preprocessing",
                                      "overhead-bound",
                                      "data-bound",
                                      "bandwidth-bound",
                                      "compute-bound",
                                      "capacity-bound",
                                      "swapping"};
    int count = 0;
    while (bw_finding_id(count)) {
        count++;
    }
    assert_int_equal(count, BWI_COUNT(ids));
    for (size_t i = 0; i < BWI_COUNT(ids); i++) {
        assert_non_null(check_of(ids[i]));
    }
    assert_null(bw_finding_id(-1));
    assert_string_equal(bw_severity_name(BW_SEVERITY_WARNING), "warning");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_rules), cmocka_unit_test(test_ids)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
