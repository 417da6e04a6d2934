/* The doctor's findings about data, model and batch: each is found where it is, and not where it is not. */
#include "support/context.h"

#include "insight/doctor/doctor.h"

#include <math.h>
#include <stdlib.h>

enum { SAMPLES = 400, FEATURES = 6, CLASSES = 4, HELD = 100 };

/* A table of normal numbers whose classes follow from them, and what a case changes in it. */
typedef struct problem {
    float x[SAMPLES * FEATURES], y[SAMPLES], held_x[HELD * FEATURES], held_y[HELD];
    int64_t samples, held; /* held 0: no validation data */
    const char *model, *loss;
    bw_fit_options fitting;
    bool shuffled;
    double seconds;
} problem;

static void fill(bw_random *random, int64_t samples, float *x, float *y)
{
    for (int64_t i = 0; i < samples; i++) {
        for (int k = 0; k < FEATURES; k++) {
            x[i * FEATURES + k] = bw_random_normal(random);
        }
        y[i] = (float)((x[i * FEATURES] > 0) + 2 * (x[i * FEATURES + 1] > 0));
    }
}

static void make(problem *p)
{
    bw_random random = {.seed = 7};
    *p = (problem){.samples = SAMPLES,
                   .held = HELD,
                   .model = "dense(16,relu) dense(4,softmax)",
                   .fitting = BW_FIT_OPTIONS_DEFAULT,
                   .shuffled = true};
    fill(&random, SAMPLES, p->x, p->y);
    fill(&random, HELD, p->held_x, p->held_y);
}

static bw_dataset *read_part(const float *x, const float *y, int64_t samples)
{
    bw_array inputs = {.data = x, .dtype = BW_F32, .ndim = 2, .shape = {samples, FEATURES}};
    bw_array targets = {.data = y, .dtype = BW_F32, .ndim = 1, .shape = {samples}};
    return bw_from_arrays(ctx, &inputs, &targets, NULL);
}

static bw_findings *look(problem *p)
{
    bw_findings *findings = NULL;
    bw_model *model = bw_model_parse(ctx, p->model);
    bw_dataset *data = read_part(p->x, p->y, p->samples);
    bw_dataset *held = p->held > 0 ? read_part(p->held_x, p->held_y, p->held) : NULL;
    data = p->shuffled ? bw_shuffle(data, 1) : data;
    check_ok(ctx, bw_compile(model, NULL, p->loss, NULL));
    bw_doctor_options options = BW_DOCTOR_OPTIONS_DEFAULT;
    p->fitting.validation = held;
    options.training = &p->fitting;
    options.seconds = p->seconds;
    check_ok(ctx, bw_doctor(model, data, &options, &findings));
    bw_dataset_free(data);
    bw_dataset_free(held);
    bw_model_free(model);
    return findings;
}

/* Finds a finding by its id; returns its evidence, or NULL. */
static const char *evidence_of(const bw_findings *findings, const char *id, bw_finding *finding)
{
    for (int i = 0; bw_findings_at(findings, i, finding); i++) {
        if (strcmp(finding->id, id) == 0) {
            return finding->evidence;
        }
    }
    return NULL;
}

/* ---- Cases ---- */

static void sort_by_class(problem *p)
{
    int64_t next = 0;
    problem *copy = malloc(sizeof *copy);
    *copy = *p;
    for (int c = 0; c < CLASSES; c++) {
        for (int64_t i = 0; i < p->samples; i++) {
            if ((int)copy->y[i] == c) {
                p->y[next] = copy->y[i];
                for (int k = 0; k < FEATURES; k++) {
                    p->x[next * FEATURES + k] = copy->x[i * FEATURES + k];
                }
                next++;
            }
        }
    }
    free(copy);
    p->shuffled = false;
}

static void leave_order(problem *p)
{
    p->shuffled = false;
}

static void sort_and_shuffle(problem *p)
{
    sort_by_class(p);
    p->shuffled = true;
}

/* A target that drifts slowly, as in a series of measurements. */
static void drift(problem *p)
{
    for (int64_t i = 0; i < p->samples; i++) {
        p->y[i] = (float)i / 100 + 0.3F * p->x[i * FEATURES];
    }
    p->model = "dense(1)";
    p->held = 0;
    p->shuffled = false;
}

static void make_rare(problem *p)
{
    for (int64_t i = 0; i < p->samples; i++) {
        p->y[i] = p->y[i] > 2 && i % 10 != 0 ? 0 : p->y[i];
    }
}

static void leave_one_class(problem *p)
{
    for (int64_t i = 0; i < p->samples; i++) {
        p->y[i] = 1;
    }
}

static void weigh_rare(problem *p)
{
    static const float weights[CLASSES] = {1, 1, 1, 10};
    make_rare(p);
    p->fitting.class_weight = weights;
    p->fitting.class_count = CLASSES;
}

static void scale_column(problem *p, float factor)
{
    for (int64_t i = 0; i < p->samples; i++) {
        p->x[i * FEATURES + 3] *= factor;
    }
    for (int64_t i = 0; i < p->held; i++) {
        p->held_x[i * FEATURES + 3] *= factor;
    }
}

static void enlarge_column(problem *p)
{
    scale_column(p, 1000);
}

static void enlarge_and_normalise(problem *p)
{
    scale_column(p, 1000);
    p->model = "normalization dense(16,relu) dense(4,softmax)";
}

static void shrink(problem *p)
{
    for (int64_t i = 0; i < p->samples * FEATURES; i++) {
        p->x[i] *= 1e-4F;
    }
    p->held = 0;
}

static void freeze_column(problem *p)
{
    for (int64_t i = 0; i < p->samples; i++) {
        p->x[i * FEATURES + 2] = 5;
    }
}

static void repeat_samples(problem *p)
{
    for (int64_t i = 0; i < p->samples / 10; i++) {
        for (int k = 0; k < FEATURES; k++) {
            p->x[(i + 100) * FEATURES + k] = p->x[i * FEATURES + k];
        }
    }
}

/* Few values make copies by themselves. */
static void make_discrete(problem *p)
{
    for (int64_t i = 0; i < p->samples * FEATURES; i++) {
        p->x[i] = p->x[i] > 0 ? 1 : 0;
    }
    for (int64_t i = 0; i < p->held * FEATURES; i++) {
        p->held_x[i] = p->held_x[i] > 0 ? 1 : 0;
    }
}

static void leak(problem *p)
{
    for (int64_t i = 0; i < p->held / 4; i++) {
        for (int k = 0; k < FEATURES; k++) {
            p->held_x[i * FEATURES + k] = p->x[2 * i * FEATURES + k];
        }
    }
}

static void number_from_one(problem *p)
{
    for (int64_t i = 0; i < p->samples; i++) {
        p->y[i] += 1;
    }
    p->held = 0;
}

static void use_fewer_outputs(problem *p)
{
    p->model = "dense(16,relu) dense(3,softmax)";
}

static void spoil_input(problem *p)
{
    p->x[37 * FEATURES] = NAN;
}

static void spoil_target(problem *p)
{
    p->held_y[5] = INFINITY;
}

static void forget_softmax(problem *p)
{
    p->model = "dense(16,relu) dense(4)";
    p->loss = "sparse_categorical_crossentropy";
}

static void say_logits(problem *p)
{
    p->model = "dense(16,relu) dense(4)";
    p->loss = "sparse_categorical_crossentropy(from_logits=true)";
}

static void say_logits_of_softmax(problem *p)
{
    p->loss = "sparse_categorical_crossentropy(from_logits=true)";
}

static void use_single_softmax(problem *p)
{
    p->model = "dense(1,softmax)";
    p->loss = "mse";
}

static void use_square_loss(problem *p)
{
    p->loss = "mse";
}

static void predict_numbers(problem *p)
{
    p->model = "dense(16,relu) dense(1)";
    p->loss = "mse";
}

static void bound_output(problem *p)
{
    p->model = "dense(16,relu) dense(1,sigmoid)";
    p->loss = "mse";
}

static void leave_one(problem *p)
{
    p->fitting.batch = 57; /* 7 batches, and one sample */
}

static void drop_it(problem *p)
{
    leave_one(p);
    p->fitting.drop_remainder = true;
}

static void leave_half(problem *p)
{
    p->fitting.batch = 32; /* 12 batches, and 16 samples */
}

static void normalise_by_four(problem *p)
{
    p->model = "dense(16) batchnorm relu dense(4,softmax)";
    p->fitting.batch = 4;
}

static void normalise_by_window(problem *p)
{
    normalise_by_four(p);
    p->fitting.accumulate = 8;
}

static void scale_held(problem *p)
{
    for (int64_t i = 0; i < p->held * FEATURES; i++) {
        p->held_x[i] *= 255;
    }
}

static void scale_twice(problem *p)
{
    p->model = "rescaling(0.00392) dense(4,softmax)";
}

static void scale_once(problem *p)
{
    p->model = "rescaling(0.00392) dense(4,softmax)";
    for (int64_t i = 0; i < p->samples * FEATURES; i++) {
        p->x[i] = fabsf(p->x[i]) * 80;
    }
    for (int64_t i = 0; i < p->held * FEATURES; i++) {
        p->held_x[i] = fabsf(p->held_x[i]) * 80;
    }
}

static const struct {
    const char *id;
    void (*change)(problem *p);
    const char *evidence; /* a part of it; NULL: nothing must be found */
    const char *fix;
} cases[] = {
    {"unshuffled-labels", sort_by_class, "of all pairs have the same class, 25% in a random order", "--no-shuffle"},
    {"unshuffled-labels", drift, "tenth of the targets", "--no-shuffle"},
    {"unshuffled-labels", leave_order, NULL, NULL},
    {"unshuffled-labels", sort_and_shuffle, NULL, NULL},
    {"class-imbalance", make_rare, "times as many", "--class-weight auto"},
    {"class-imbalance", leave_one_class, "all 400 samples have class 1", "the other classes"},
    {"class-imbalance", weigh_rare, NULL, NULL},
    {"class-imbalance", leave_order, NULL, NULL},
    {"unscaled-inputs", enlarge_column, "1 of 6 columns of x", "--standardise"},
    {"unscaled-inputs", shrink, "below 0.01", "--scale"},
    {"unscaled-inputs", enlarge_and_normalise, NULL, NULL},
    {"unscaled-inputs", leave_order, NULL, NULL},
    {"constant-feature", freeze_column, "column 2 is always 5", "remove the column"},
    {"constant-feature", leave_order, NULL, NULL},
    {"duplicate-samples", repeat_samples, "10.0% of 400 samples", "copies"},
    {"duplicate-samples", make_discrete, NULL, NULL},
    {"duplicate-samples", leave_order, NULL, NULL},
    {"leak-into-validation", leak, "25.0% of the validation samples (25 of 100)", "split"},
    {"leak-into-validation", make_discrete, NULL, NULL},
    {"leak-into-validation", leave_order, NULL, NULL},
    {"label-out-of-range", number_from_one, "from 1 to 4", "count from 1"},
    {"label-out-of-range", use_fewer_outputs, "from 0 to 3", "dense(4,softmax)"},
    {"label-out-of-range", leave_order, NULL, NULL},
    {"not-a-number", spoil_input, "1 of 2400 values of the inputs (x) are NaN or infinite, the first in sample 37", "--missing"},
    {"not-a-number", spoil_target, "targets (y) for validation", "--missing"},
    {"not-a-number", leave_order, NULL, NULL},
    {"wrong-loss-for-output", forget_softmax, "expects probabilities", "from_logits=true"},
    {"wrong-loss-for-output", say_logits_of_softmax, "gone through softmax already", "without from_logits"},
    {"wrong-loss-for-output", use_single_softmax, "is 1 for every sample", "dense(1,sigmoid)"},
    {"wrong-loss-for-output", use_square_loss, "4 probabilities of softmax with 1 target", "sparse_categorical_crossentropy"},
    {"wrong-loss-for-output", bound_output, "go from 0 to 3", "without activation"},
    {"wrong-loss-for-output", say_logits, NULL, NULL},
    {"wrong-loss-for-output", predict_numbers, NULL, NULL},
    {"wrong-loss-for-output", leave_order, NULL, NULL},
    {"tiny-last-batch", leave_one, "the last of 8 batches of an epoch has 1 sample", "--drop-remainder"},
    {"tiny-last-batch", drop_it, NULL, NULL},
    {"tiny-last-batch", leave_half, NULL, NULL},
    {"batchnorm-small-batch", normalise_by_four, "4 samples", "--accumulate 8"},
    {"batchnorm-small-batch", normalise_by_window, NULL, NULL},
    {"batchnorm-small-batch", leave_order, NULL, NULL},
    {"inconsistent-preprocessing", scale_held, "standard deviations", "in the same way"},
    {"inconsistent-preprocessing", scale_twice, "the model multiplies x by 0.00392", "--scale"},
    {"inconsistent-preprocessing", scale_once, NULL, NULL},
    {"inconsistent-preprocessing", leave_order, NULL, NULL},
};

static void test_cases(void **state)
{
    (void)state;
    problem *p = malloc(sizeof *p);
    assert_non_null(p);
    for (size_t i = 0; i < BWI_COUNT(cases); i++) {
        bw_finding finding;
        make(p);
        cases[i].change(p);
        bw_findings *findings = look(p);
        const char *found = evidence_of(findings, cases[i].id, &finding);
        bool right = cases[i].evidence
                         ? found && strstr(found, cases[i].evidence) && strstr(finding.fix, cases[i].fix) && finding.reason[0]
                         : !found;
        if (!right) {
            fail_msg("case %zu, %s: found '%s', fix '%s'", i, cases[i].id, found ? found : "nothing", found ? finding.fix : "");
        }
        bw_findings_free(findings);
    }
    free(p);
}

/* Nothing else is found in a case than what it is about. */
static void test_clean(void **state)
{
    (void)state;
    problem *p = malloc(sizeof *p);
    assert_non_null(p);
    make(p);
    bw_findings *findings = look(p);
    bw_finding finding;
    if (bw_findings_at(findings, 0, &finding)) {
        fail_msg("%s: %s", finding.id, finding.evidence);
    }
    assert_int_equal(bw_findings_count(findings), 0);
    free(p);
}

/* Errors come first, and all that is known of a finding is said. */
static void test_order_of_findings(void **state)
{
    (void)state;
    problem *p = malloc(sizeof *p);
    assert_non_null(p);
    make(p);
    freeze_column(p);
    spoil_input(p);
    enlarge_column(p);
    bw_findings *findings = look(p);
    bw_severity before = BW_SEVERITY_ERROR;
    bw_finding finding;
    int count = 0;
    for (; bw_findings_at(findings, count, &finding); count++) {
        assert_true(finding.severity <= before);
        assert_true(finding.evidence[0] && finding.reason[0] && finding.fix[0]);
        before = finding.severity;
    }
    assert_true(count >= 3);
    assert_int_equal(count, bw_findings_count(findings));
    assert_false(bw_findings_at(findings, count, &finding));
    assert_false(bw_findings_at(NULL, 0, &finding));
    free(p);
}

static void test_refusals(void **state)
{
    (void)state;
    bw_findings *findings;
    bw_model *model = bw_model_parse(ctx, "dense(1)");
    assert_int_equal(bw_doctor(NULL, NULL, NULL, &findings), BW_INVALID_ARGUMENT);
    check_fails(ctx, bw_doctor(model, NULL, NULL, &findings), BW_INVALID_ARGUMENT, "there is no dataset");
}

/* The sketch keeps the share of copies although it keeps only a part of the samples. */
static void test_bounded_sketch(void **state)
{
    (void)state;
    enum { MANY = 200000, PLACES = 1 << 12 };
    bwi_seen seen = {.ctx = ctx, .most = PLACES};
    int64_t samples = 0, distinct = 0;
    for (int64_t i = 0; i < MANY; i++) {
        int64_t sample = i % (MANY / 4 * 3); /* a third of the distinct samples come twice */
        assert_true(bwi_seen_add(&seen, bwi_hash(0, &sample, sizeof sample), 0));
    }
    assert_true(seen.capacity <= PLACES);
    assert_true(seen.level > 0);
    for (int64_t i = 0; i < seen.capacity; i++) {
        samples += seen.entry[i].count;
        distinct += seen.entry[i].count > 0;
    }
    double share = (double)(samples - distinct) / (double)samples;
    assert_true(fabs(share - 0.25) < 0.03);
    int64_t there = 5, missing = MANY;
    int known = 0;
    for (; known == 0 && there < MANY / 2; there++) {
        known = bwi_seen_find(&seen, bwi_hash(0, &there, sizeof there));
        known = known < 0 ? 0 : known;
    }
    assert_int_equal(known, 1);
    for (; missing < MANY + 1000; missing++) {
        assert_true(bwi_seen_find(&seen, bwi_hash(0, &missing, sizeof missing)) < 1);
    }
    bwi_seen_free(&seen);
}

/* Under a random order p is uniform: in 200 trials about 2 are below 0.01, and hardly ever 10. */
static void test_order_by_chance(void **state)
{
    (void)state;
    enum { TRIALS = 200, LABELS = 256 };
    float labels[LABELS];
    bw_random random = {.seed = 3};
    int below = 0, below_half = 0;
    for (int t = 0; t < TRIALS; t++) {
        bwi_order order;
        for (int i = 0; i < LABELS; i++) {
            labels[i] = (float)bw_random_below(&random, 5);
        }
        check_ok(ctx, bwi_order_test(ctx, labels, LABELS, 16, &order));
        assert_true(order.classes);
        below += order.p < 0.01;
        below_half += order.p < 0.5;
    }
    assert_true(below < 10);
    assert_in_range(below_half, 70, 130);
}

static void test_order_found(void **state)
{
    (void)state;
    enum { LABELS = 256 };
    float labels[LABELS];
    bwi_order order;
    for (int i = 0; i < LABELS; i++) {
        labels[i] = (float)(i / 64);
    }
    check_ok(ctx, bwi_order_test(ctx, labels, LABELS, 16, &order));
    assert_true(order.p <= 0.001);
    assert_true(order.same > 0.999 && fabs(order.by_luck - 63.0 / 255) < 0.01);
    for (int i = 0; i < LABELS; i++) {
        labels[i] = (float)(i % 4); /* more even than chance: no harm */
    }
    check_ok(ctx, bwi_order_test(ctx, labels, LABELS, 16, &order));
    assert_true(order.p > 0.99);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_cases, open_context, close_context),
        cmocka_unit_test_setup_teardown(test_clean, open_context, close_context),
        cmocka_unit_test_setup_teardown(test_order_of_findings, open_context, close_context),
        cmocka_unit_test_setup_teardown(test_refusals, open_context, close_context),
        cmocka_unit_test_setup_teardown(test_bounded_sketch, open_context, close_empty_context),
        cmocka_unit_test_setup_teardown(test_order_by_chance, open_context, close_empty_context),
        cmocka_unit_test_setup_teardown(test_order_found, open_context, close_empty_context),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
