/* The doctor's updates on trial: what they find in real trainings, no false alarm on clean problems, and a model that stays as it
 * was. */
#include "support/context.h"
#include "support/folder.h"

#include "insight/doctor/doctor.h"

#include <math.h>
#include <stdlib.h>

enum { SAMPLES = 600, FEATURES = 8, SIDE = 12, WORDS = 50, LENGTH = 6 };

/* Trials end after a number of updates, long before this. */
static const double seconds = 30;

/* ---- Data ---- */

static float table_x[SAMPLES * FEATURES], numbers[SAMPLES], classes[SAMPLES], binary[SAMPLES], fives[SAMPLES];
static float pictures[SAMPLES * SIDE * SIDE], sentences[SAMPLES * LENGTH], votes[SAMPLES * FEATURES];

static int make_data(void **state)
{
    (void)state;
    bw_random random = {.seed = 11};
    for (int i = 0; i < SAMPLES; i++) {
        float *x = table_x + i * FEATURES;
        for (int k = 0; k < FEATURES; k++) {
            x[k] = bw_random_normal(&random);
            votes[i * FEATURES + k] = x[k] > 0 ? 1 : 0;
        }
        numbers[i] = 0.8F * x[0] - 0.5F * x[1] + 0.3F * x[2] * x[3] + 0.1F * bw_random_normal(&random);
        classes[i] = (float)((x[0] > 0) + (x[1] + x[2] > 0));
        binary[i] = x[0] + x[1] > 0.2F ? 1 : 0;
        fives[i] = x[0] > 0.9F ? 1 : 0; /* about one in five */
        for (int k = 0; k < LENGTH; k++) {
            sentences[i * LENGTH + k] = (float)bw_random_below(&random, WORDS);
        }
        for (int p = 0; p < SIDE * SIDE; p++) { /* a spot whose place is the class, and edges that are always dark */
            int row = p / SIDE, column = p % SIDE, left = classes[i] > 0 ? 5 : 2, top = classes[i] > 1 ? 6 : 3;
            bool edge = row == 0 || column == 0 || row == SIDE - 1 || column == SIDE - 1;
            bool spot = abs(row - top) < 3 && abs(column - left) < 3;
            pictures[i * SIDE * SIDE + p] = edge ? 0 : (spot ? 0.6F : 0.1F) + 0.3F * bw_random_uniform(&random);
        }
    }
    return open_context(NULL);
}

static bw_dataset *arrays(const float *x, int ndim, const int64_t *shape, const float *y)
{
    bw_array inputs = {.data = x, .dtype = BW_F32, .ndim = ndim + 1, .shape = {SAMPLES}};
    bw_array targets = {.data = y, .dtype = BW_F32, .ndim = 1, .shape = {SAMPLES}};
    memcpy(inputs.shape + 1, shape, (size_t)ndim * sizeof *shape);
    return bw_from_arrays(ctx, &inputs, &targets, NULL);
}

static bw_dataset *table(const float *x, const float *y)
{
    return arrays(x, 1, (int64_t[]){FEATURES}, y);
}

static bw_dataset *table_classes(void)
{
    return table(table_x, classes);
}

static bw_dataset *table_numbers(void)
{
    return table(table_x, numbers);
}

static bw_dataset *table_binary(void)
{
    return table(table_x, binary);
}

static bw_dataset *table_fives(void)
{
    return table(table_x, fives);
}

static bw_dataset *table_votes(void)
{
    return table(votes, classes);
}

static bw_dataset *table_one_hot(void)
{
    return bw_one_hot(table(table_x, classes), 3);
}

static bw_dataset *all_pictures(void)
{
    return arrays(pictures, 3, (int64_t[]){SIDE, SIDE, 1}, classes);
}

static bw_dataset *flat_pictures(void)
{
    return arrays(pictures, 1, (int64_t[]){SIDE * SIDE}, classes);
}

static bw_dataset *all_sentences(void)
{
    return arrays(sentences, 1, (int64_t[]){LENGTH}, binary);
}

static bw_dataset *digits(void)
{
    bw_read_options options = BW_READ_OPTIONS_DEFAULT;
    options.scale = 1.0 / 16;
    return bw_read(ctx, BW_DATA "/digits.npz", &options);
}

static bw_dataset *raw_digits(void)
{
    return bw_read(ctx, BW_DATA "/digits.npz", NULL);
}

static bw_dataset *shapes(void)
{
    return bw_read(ctx, "synth:shapes?n=300&shape=16x16x1", NULL);
}

static bw_dataset *line(void)
{
    return bw_read(ctx, "synth:line?n=500", NULL);
}

/* A linear law with weights of 0.02 for each of 64 inputs, under noise. At weights of 0 the mean gradient has the square 4 * 64 *
 * 0.02^2 = 0.1 and a sample's variance is 4 * 64 * (noise^2 + 64 * 0.02^2): the noise scale is 2,570 samples for a noise of 1, and
 * 70 for one of 0.05. */
enum { LAW_SAMPLES = 4096, LAW_FEATURES = 64 };

static float law_x[LAW_SAMPLES * LAW_FEATURES], law_y[LAW_SAMPLES];

static bw_dataset *law(float noise)
{
    bw_random random = {.seed = 5};
    for (int i = 0; i < LAW_SAMPLES; i++) {
        law_y[i] = noise * bw_random_normal(&random);
        for (int k = 0; k < LAW_FEATURES; k++) {
            law_x[i * LAW_FEATURES + k] = bw_random_normal(&random);
            law_y[i] += 0.02F * law_x[i * LAW_FEATURES + k];
        }
    }
    bw_array inputs = {.data = law_x, .dtype = BW_F32, .ndim = 2, .shape = {LAW_SAMPLES, LAW_FEATURES}};
    bw_array targets = {.data = law_y, .dtype = BW_F32, .ndim = 1, .shape = {LAW_SAMPLES}};
    return bw_from_arrays(ctx, &inputs, &targets, NULL);
}

static bw_dataset *law_under_noise(void)
{
    return law(1);
}

static bw_dataset *clear_law(void)
{
    return law(0.05F);
}

/* ---- Looking ---- */

typedef struct problem {
    bw_dataset *(*data)(void);
    const char *model, *optimizer;
    int64_t batch;
} problem;

static bw_findings *look(const problem *p, bw_model **kept)
{
    bw_findings *findings = NULL;
    bw_fit_options fitting = BW_FIT_OPTIONS_DEFAULT;
    bw_doctor_options options = BW_DOCTOR_OPTIONS_DEFAULT;
    bw_dataset *data = bw_shuffle(p->data(), 3);
    bw_model *model = bw_model_parse(ctx, p->model);
    check_ok(ctx, bw_compile(model, p->optimizer, NULL, NULL));
    fitting.batch = p->batch > 0 ? p->batch : 32;
    fitting.validation_split = 0.2;
    options.training = &fitting;
    options.seconds = seconds;
    check_ok(ctx, bw_doctor(model, data, &options, &findings));
    bw_dataset_free(data);
    if (kept) {
        *kept = model;
    } else {
        bw_model_free(model);
    }
    return findings;
}

static bool has(const bw_findings *findings, const char *id)
{
    bw_finding finding;
    for (int i = 0; bw_findings_at(findings, i, &finding); i++) {
        if (strcmp(finding.id, id) == 0) {
            return true;
        }
    }
    return false;
}

static void check_found(const problem *p, const char *id)
{
    bw_findings *findings = look(p, NULL);
    if (!has(findings, id)) {
        bw_finding finding = {.id = "nothing"};
        (void)bw_findings_at(findings, 0, &finding);
        fail_msg("%s with %s: not %s, but %s", p->model, p->optimizer, id, finding.id);
    }
    bw_findings_free(findings);
}

static void check_not_found(const problem *p, const char *id, const char *other)
{
    bw_findings *findings = look(p, NULL);
    assert_false(has(findings, id) || has(findings, other));
    bw_findings_free(findings);
}

/* ---- Tests ---- */

static void test_clean(void **state)
{
    (void)state;
    static const problem clean[] = {
        {digits, "flatten dense(32,relu) dense(10,softmax)", NULL, 32},
        {digits, "conv2d(8,3,relu) maxpool2d(2) flatten dense(10,softmax)", "sgd(0.1,momentum=0.9)", 64},
        {raw_digits, "flatten dense(32,relu) dense(10,softmax)", NULL, 64},
        {raw_digits, "rescaling(0.0625) flatten dense(64,relu) dense(10,softmax)", "rmsprop", 32},
        {table_classes, "dense(16,relu) dense(3,softmax)", NULL, 32},
        {table_numbers, "dense(16,relu) dense(1)", NULL, 16},
        {table_binary, "dense(16,tanh) dense(1,sigmoid)", NULL, 32},
        {table_fives, "dense(16,relu) dense(1,sigmoid)", NULL, 32},
        {table_votes, "dense(16,relu) dense(3,softmax)", NULL, 32},
        {table_one_hot, "dense(16,relu) dense(3,softmax)", NULL, 32},
        {all_pictures, "conv2d(8,3,relu) batchnorm maxpool2d(2) flatten dense(3,softmax)", NULL, 32},
        {flat_pictures, "dense(32,relu) dropout(0.2) dense(3,softmax)", NULL, 32},
        {all_sentences, "embedding(50,8) flatten dense(1,sigmoid)", NULL, 32},
        {shapes, "conv2d(8,3,relu) maxpool2d(2) flatten dense(4,softmax)", NULL, 32},
        {line, "dense(1)", "adam(0.01)", 32},
    };
    static const char *const about_speed[] = {"overhead-bound", "data-bound",        "bandwidth-bound", "compute-bound",
                                              "capacity-bound", "batch-below-noise", "batch-past-noise"};
    for (size_t i = 0; i < BWI_COUNT(clean); i++) {
        bw_findings *findings = look(&clean[i], NULL);
        bw_finding finding;
        for (int k = 0; bw_findings_at(findings, k, &finding); k++) {
            bool allowed = false;
            for (size_t s = 0; s < BWI_COUNT(about_speed); s++) {
                allowed = allowed || strcmp(finding.id, about_speed[s]) == 0;
            }
            if (!allowed || finding.severity > BW_SEVERITY_NOTE) {
                fail_msg("%s: %s: %s", clean[i].model, finding.id, finding.evidence);
            }
        }
        bw_findings_free(findings);
    }
}

static void test_rates(void **state)
{
    (void)state;
    static const char model[] = "dense(16,relu) dense(3,softmax)";
    check_found(&(problem){table_classes, model, "adam(5)", 32}, "learning-rate-too-high");
    check_found(&(problem){table_numbers, "dense(1)", "sgd(3)", 32}, "learning-rate-too-high");
    check_found(&(problem){table_classes, model, "adam(1e-6)", 32}, "learning-rate-too-low");
    check_found(&(problem){table_classes, model, "sgd(1e-5)", 32}, "learning-rate-too-low");
}

static void test_gradients(void **state)
{
    (void)state;
    check_found(&(problem){table_classes, "dense(32,relu,bias_initializer=constant(-30)) dense(3,softmax)", NULL, 32},
                "dead-units");
    check_found(&(problem){table_classes,
                           "dense(16,sigmoid) dense(16,sigmoid) dense(16,sigmoid) dense(16,sigmoid) dense(16,sigmoid) "
                           "dense(16,sigmoid) dense(16,sigmoid) dense(16,sigmoid) dense(16,sigmoid) dense(3,softmax)",
                           NULL, 32},
                "vanishing-gradient");
    check_found(&(problem){table_classes,
                           "dense(64,relu,kernel_initializer=random_normal(stddev=2)) "
                           "dense(64,relu,kernel_initializer=random_normal(stddev=2)) "
                           "dense(64,relu,kernel_initializer=random_normal(stddev=2)) dense(3,softmax)",
                           NULL, 32},
                "exploding-gradient");
}

/* Targets that are noise have a gradient of almost zero, so the scale is large beside any batch; a clear signal is the reverse. */
static void test_noise(void **state)
{
    (void)state;
    check_found(&(problem){line, "dense(1)", "sgd(1e-4)", 256}, "batch-past-noise");
    check_found(&(problem){law_under_noise, "dense(1,kernel_initializer=zeros)", "sgd(1e-5)", 128}, "batch-below-noise");
    check_not_found(&(problem){clear_law, "dense(1,kernel_initializer=zeros)", "sgd(1e-5)", 128}, "batch-below-noise",
                    "batch-past-noise");
    /* With BatchNormalization a sample's gradient depends on its batch: there is no such scale, and nothing is said of it. */
    check_not_found(&(problem){law_under_noise, "batchnorm dense(1,kernel_initializer=zeros)", "sgd(1e-5)", 128},
                    "batch-below-noise", "batch-past-noise");
}

/* Waiting for samples is measured by the ledger; a sleep of a millisecond for each is longer than any arithmetic here. */
static void test_data_bound(void **state)
{
    (void)state;
    bw_findings *findings = NULL;
    bw_dataset *data = bw_read(ctx, "synth:images?n=96&shape=4x4x1&classes=3&delay=1ms", NULL);
    bw_model *model = bw_model_parse(ctx, "flatten dense(3,softmax)");
    bw_doctor_options options = BW_DOCTOR_OPTIONS_DEFAULT;
    options.seconds = 0.4;
    check_ok(ctx, bw_doctor(model, data, &options, &findings));
    assert_true(has(findings, "data-bound"));
}

/* A budget that holds neither the activations of a sample nor what BatchNormalization keeps. */
static void test_capacity(void **state)
{
    (void)state;
    bw_findings *findings = NULL;
    bw_dataset *data = bw_read(ctx, "synth:images?n=64&shape=64x64x3&classes=3", NULL);
    bw_model *model = bw_model_parse(ctx, "conv2d(8,3,padding=same) batchnorm relu global_avgpool2d dense(3,softmax)");
    bw_doctor_options options = BW_DOCTOR_OPTIONS_DEFAULT;
    bw_fit_options fitting = BW_FIT_OPTIONS_DEFAULT;
    fitting.batch = 32;
    options.training = &fitting;
    options.seconds = 0.1;
    check_ok(ctx, bw_doctor(model, data, &options, &findings));
    assert_false(has(findings, "capacity-bound"));
    bw_plan *plan = bw_plan_make(model, data, 32, NULL);
    assert_non_null(plan);
    fitting.memory = bw_plan_facts(plan).peak_bytes / 4;
    check_ok(ctx, bw_doctor(model, data, &options, &findings));
    assert_true(has(findings, "capacity-bound"));
}

/* Training after the doctor gives the bits of training without it, also in the middle of a training. */
static void test_unchanged(void **state)
{
    (void)state;
    uint64_t hashes[2];
    bw_fit_options fitting = BW_FIT_OPTIONS_DEFAULT;
    fitting.epochs = 2;
    fitting.seed = 5;
    for (int looks = 0; looks < 2; looks++) {
        bw_dataset *data = bw_shuffle(bw_standardise(table_classes(), NULL), 3);
        bw_model *model = bw_model_parse(ctx, "normalization dense(16) batchnorm relu dropout(0.1) dense(3,softmax)");
        check_ok(ctx, bw_compile(model, "adam(exponential_decay(0.01,20,0.9))", NULL, NULL));
        bw_doctor_options options = BW_DOCTOR_OPTIONS_DEFAULT;
        bw_findings *findings;
        options.training = &fitting;
        options.seconds = seconds;
        for (int part = 0; part < 2; part++) {
            if (looks) {
                check_ok(ctx, bw_doctor(model, data, &options, &findings));
            }
            check_ok(ctx, bw_fit(model, data, &fitting, NULL));
        }
        assert_true(bw_model_data(model));
        hashes[looks] = bw_model_hash(model);
    }
    assert_true(hashes[0] == hashes[1]);
}

/* The options may be those of the training itself, which writes checkpoints: trials of doctor and tune write none and continue
 * none. */
static void test_no_files(void **state)
{
    (void)state;
    bw_fit_options fitting = BW_FIT_OPTIONS_DEFAULT;
    fitting.checkpoint_dir = inside("checkpoints");
    fitting.checkpoint_every = "1";
    fitting.resume = true;
    bw_doctor_options options = BW_DOCTOR_OPTIONS_DEFAULT;
    options.training = &fitting;
    options.seconds = seconds;
    bw_findings *findings;
    bw_model *model = bw_model_parse(ctx, "dense(3,softmax)");
    check_ok(ctx, bw_doctor(model, bw_shuffle(table_classes(), 3), &options, &findings));
    bw_tune_options tuning_options = BW_TUNE_OPTIONS_DEFAULT;
    tuning_options.fit = &fitting;
    tuning_options.seconds = 0.1;
    bw_tuning *tuning;
    check_ok(ctx, bw_tune(model, bw_shuffle(table_classes(), 3), &tuning_options, &tuning));
    assert_int_not_equal(access(fitting.checkpoint_dir, F_OK), 0);
}

/* ---- Reviews ---- */

static void review(const problem *p, int epochs, bool shuffled, const char *id)
{
    bw_findings *findings = NULL;
    bw_history *history = NULL;
    bw_finding finding;
    bw_fit_options fitting = BW_FIT_OPTIONS_DEFAULT;
    bw_dataset *data = shuffled ? bw_shuffle(p->data(), 3) : p->data();
    bw_model *model = bw_model_parse(ctx, p->model);
    fitting.epochs = epochs;
    fitting.batch = p->batch;
    check_ok(ctx, bw_compile(model, p->optimizer, NULL, NULL));
    check_ok(ctx, bw_fit(model, data, &fitting, &history));
    uint64_t hash = bw_model_hash(model);
    check_ok(ctx, bw_review(model, data, &fitting, history, &findings));
    assert_true(bw_model_hash(model) == hash);
    if (id && !has(findings, id)) {
        fail_msg("%s: not %s", p->model, id);
    }
    if (!id && bw_findings_at(findings, 0, &finding)) {
        fail_msg("%s: %s: %s", p->model, finding.id, finding.evidence);
    }
    bw_findings_free(findings);
    bw_history_free(history);
    bw_model_free(model);
    bw_dataset_free(data);
}

static bw_dataset *ordered(void)
{
    return bw_read(ctx, "synth:ordered?n=600&shape=4x4x1&classes=3", NULL);
}

static bw_dataset *large_numbers(void)
{
    static float large[SAMPLES * FEATURES];
    for (int i = 0; i < SAMPLES * FEATURES; i++) {
        large[i] = 400 + 100 * table_x[i];
    }
    return table(large, classes);
}

static void test_review(void **state)
{
    (void)state;
    static const char model[] = "dense(16,relu) dense(3,softmax)";
    review(&(problem){table_classes, model, NULL, 32}, 3, true, NULL);
    review(&(problem){digits, "flatten dense(32,relu) dense(10,softmax)", NULL, 32}, 3, false, NULL);
    review(&(problem){large_numbers, model, NULL, 32}, 1, true, "unscaled-inputs");
    review(&(problem){ordered, "flatten dense(3,softmax)", NULL, 32}, 1, false, "unshuffled-labels");
    review(&(problem){ordered, "flatten dense(3,softmax)", NULL, 32}, 1, true, NULL);
    review(&(problem){table_numbers, "dense(1)", "sgd(1.05)", 32}, 4, true, "learning-rate-too-high");
    review(&(problem){table_classes, "dense(8,relu,bias_initializer=constant(-30)) dense(3,softmax)", "sgd(1e-3)", 32}, 2, true,
           "dead-units");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_clean, make_data, close_context),
        cmocka_unit_test_setup_teardown(test_rates, make_data, close_context),
        cmocka_unit_test_setup_teardown(test_gradients, make_data, close_context),
        cmocka_unit_test_setup_teardown(test_noise, make_data, close_context),
        cmocka_unit_test_setup_teardown(test_data_bound, make_data, close_context),
        cmocka_unit_test_setup_teardown(test_capacity, make_data, close_context),
        cmocka_unit_test_setup_teardown(test_unchanged, make_data, close_context),
        cmocka_unit_test_setup_teardown(test_no_files, make_data, close_context),
        cmocka_unit_test_setup_teardown(test_review, make_data, close_context),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_empty_folder);
}
