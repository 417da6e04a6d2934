/*
 * The gradient noise scale: exact for a finite set, where all batches can be listed; right for linear regression with Gaussian
 * inputs, which has a closed form; an interval that covers the truth as often as it says; and "undetermined" where there is no
 * gradient.
 */
#include "support/check.h"

#include "train/internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- All batches of a finite set ---- */

enum { POINTS = 7, AXES = 3 };

/* Of the loss |w - x|^2 / 2 the gradient of a sample is w - x. */
static double gradient(int point, int axis)
{
    return 0.3 * axis - (double)((point * 5 + axis * 3) % 11) / 4;
}

typedef struct totals {
    double trace, signal, count;
} totals;

/* A batch in lanes of 2, 1 and 1 samples. */
static void add_batch(totals *t, const int points[4])
{
    static const int64_t samples[3] = {2, 1, 1};
    static const int lane_of[4] = {0, 0, 1, 2};
    double squares[4] = {0}, trace, signal;
    for (int axis = 0; axis < AXES; axis++) {
        double sums[3] = {0};
        for (int k = 0; k < 4; k++) {
            sums[lane_of[k]] += gradient(points[k], axis);
        }
        for (int lane = 0; lane < 3; lane++) {
            squares[lane] += sums[lane] * sums[lane];
        }
        squares[3] += (sums[0] + sums[1] + sums[2]) * (sums[0] + sums[1] + sums[2]);
    }
    bwi_noise_estimate(3, samples, squares, &trace, &signal);
    t->trace += trace;
    t->signal += signal;
    t->count++;
}

/* Over all ordered batches without replacement the mean of the trace is the sample covariance's, with N - 1, and the mean of the
 * signal is |G|^2 - S / N for the whole set. */
static void test_finite_set(void **state)
{
    (void)state;
    totals t = {0};
    for (int code = 0; code < POINTS * POINTS * POINTS * POINTS; code++) {
        int points[4] = {code % POINTS, code / POINTS % POINTS, code / POINTS / POINTS % POINTS, code / POINTS / POINTS / POINTS};
        bool distinct = true;
        for (int i = 0; i < 4; i++) {
            for (int j = 0; j < i; j++) {
                distinct = distinct && points[i] != points[j];
            }
        }
        if (distinct) {
            add_batch(&t, points);
        }
    }
    double trace = 0, whole = 0;
    for (int axis = 0; axis < AXES; axis++) {
        double mean = 0;
        for (int point = 0; point < POINTS; point++) {
            mean += gradient(point, axis) / POINTS;
        }
        for (int point = 0; point < POINTS; point++) {
            trace += (gradient(point, axis) - mean) * (gradient(point, axis) - mean) / (POINTS - 1);
        }
        whole += mean * mean;
    }
    assert_int_equal(t.count, 7 * 6 * 5 * 4);
    assert_true(fabs(t.trace / t.count - trace) < 1e-12 * trace);
    assert_true(fabs(t.signal / t.count - (whole - trace / POINTS)) < 1e-12);
}

/* ---- Linear regression ---- */

enum { INPUTS = 4, SAMPLES = 4096, RARE = 64 };

static double uniform(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return ((double)(*state >> 11) + 0.5) * 0x1p-53;
}

static double normal(uint64_t *state)
{
    double radius = sqrt(-2 * log(uniform(state)));
    return radius * cos(2 * 3.14159265358979 * uniform(state));
}

/* y is noise around 0, so the distance of the weights from the best ones is the weights themselves. */
static bw_noise_facts regress_with(int rare, uint64_t seed, int64_t samples, int64_t batch, float weight, double deviation,
                                   const char *optimizer, int epochs)
{
    int64_t inputs = INPUTS + rare;
    float *x = calloc((size_t)(samples * inputs), sizeof *x), *y = malloc((size_t)samples * sizeof *y);
    uint64_t random = seed * 7919 + 1;
    for (int64_t i = 0; i < samples; i++) {
        for (int k = 0; k < INPUTS; k++) {
            x[i * inputs + k] = (float)normal(&random);
        }
        if (rare > 0 && i % (samples / rare) == 0) {
            x[i * inputs + INPUTS + i / (samples / rare)] = 1;
        }
        y[i] = (float)(deviation * normal(&random));
    }
    bw_context_options alone = BW_CONTEXT_OPTIONS_DEFAULT;
    alone.workers = 1;
    bw_context *ctx = bw_open(&alone);
    bw_array features = {.data = x, .dtype = BW_F32, .ndim = 2, .shape = {samples, inputs}};
    bw_array targets = {.data = y, .dtype = BW_F32, .ndim = 2, .shape = {samples, 1}};
    bw_model *model = bw_model_parse(ctx, rare > 0 ? "input(68) dense(1,use_bias=false)" : "input(4) dense(1,use_bias=false)");
    check_ok(ctx, bw_compile(model, optimizer, "mse", NULL));
    check_ok(ctx, bw_build(model, 0, NULL, 0));
    float weights[INPUTS + RARE] = {weight, weight, weight, weight};
    check_ok(ctx, bw_variable_set(model, 0, weights, (size_t)inputs));
    bw_fit_options options = BW_FIT_OPTIONS_DEFAULT;
    bw_history *history = NULL;
    options.epochs = epochs;
    options.batch = batch;
    options.tile = 4;
    options.lanes = 16;
    options.noise_every = 1;
    check_ok(ctx, bw_fit(model, bw_from_arrays(ctx, &features, &targets, NULL), &options, &history));
    bw_noise_facts facts = bw_history_noise(history);
    if (facts.variables == 1 && facts.raw.determined) {
        assert_true(bw_history_noise_of(history, 0).scale == facts.raw.scale);
    }
    bw_close(ctx);
    free(x);
    free(y);
    return facts;
}

static bw_noise_facts regress(uint64_t seed, int64_t samples, int64_t batch, float weight, double deviation, const char *optimizer,
                              int epochs)
{
    return regress_with(0, seed, samples, batch, weight, deviation, optimizer, epochs);
}

/* g = 2 (x.w - e) x: |E g|^2 = 4 |w|^2, and the trace of its covariance is 4 ((d + 1) |w|^2 + d s^2). */
static double closed_form(float weight, double deviation)
{
    double norm = INPUTS * (double)weight * (double)weight;
    return ((INPUTS + 1) * norm + INPUTS * deviation * deviation) / norm;
}

static void test_linear_regression(void **state)
{
    (void)state;
    bw_noise_facts facts = regress(1, 1 << 16, 256, 0.5F, 2, "sgd(lr=1e-30)", 1);
    double expected = closed_form(0.5F, 2);
    assert_int_equal(facts.steps, 256);
    assert_null(facts.refusal);
    assert_true(facts.raw.determined);
    assert_true(facts.raw.scale > 0.9 * expected && facts.raw.scale < 1.1 * expected);
    assert_true(facts.raw.low < facts.raw.scale && facts.raw.scale < facts.raw.high);
    assert_false(facts.seen.determined); /* SGD scales nothing */
}

/* Of 500 repetitions the interval holds the truth in 90 to 99 percent. */
static void test_coverage(void **state)
{
    (void)state;
    const char *set = getenv("BATCHWISE_ISA");
    double expected = closed_form(0.7F, 1);
    int covered = 0, determined = 0;
    if (set && strcmp(set, "checked") == 0) {
        skip(); /* it would take minutes, and tells nothing that the others do not */
    }
    for (uint64_t seed = 0; seed < 500; seed++) {
        bw_noise_facts facts = regress(seed, SAMPLES / 2, 64, 0.7F, 1, "sgd(lr=1e-30)", 1);
        determined += facts.raw.determined;
        covered += facts.raw.determined && facts.raw.low <= expected && expected <= facts.raw.high;
    }
    assert_true(determined >= 495);
    assert_true(covered >= 450 && covered <= 495);
}

/* At the best weights there is no gradient, only noise. */
static void test_undetermined(void **state)
{
    (void)state;
    int determined = 0;
    for (uint64_t seed = 0; seed < 20; seed++) {
        bw_noise_facts facts = regress(seed, SAMPLES, 64, 0, 1, "sgd(lr=1e-30)", 1);
        determined += facts.raw.determined;
        assert_true(facts.raw.determined || isnan(facts.raw.scale));
    }
    assert_true(determined <= 3);
}

static void test_as_adam_sees_it(void **state)
{
    (void)state;
    bw_noise_facts facts = regress(3, SAMPLES, 256, 0.5F, 2, "adam(lr=1e-20)", 4);
    assert_int_equal(facts.steps, 64);
    assert_true(facts.seen.determined);
    /* All inputs are alike: each gradient has the square g = 1 and the variance s = 21, and the mean square of a batch's is
     * g + s / 256, by which both are divided. */
    double divisor = 1 + 21.0 / 256;
    assert_true(fabs(facts.seen.trace - 4 * 21 / divisor) < 0.2 * 4 * 21 / divisor);
    assert_true(fabs(facts.seen.signal - 4 / divisor) < 0.2 * 4 / divisor);
    assert_true(facts.seen.scale > 0.85 * closed_form(0.5F, 2) && facts.seen.scale < 1.15 * closed_form(0.5F, 2));
}

/* Each of 64 further inputs is 1 in one sample of 4,096, and 0 in all others: when that sample comes for the first time, the mean of
 * squares of its weight is still zero. Adam's step of an element that has its first gradient in update t is at most sqrt(t) times
 * that of one that always has the same, so one such element in each of 64 updates adds at most 32, their mean, to the variance of
 * the 4 others, 21 / (1 * 64 + 21) each, in units of a batch. */
static void test_rare_inputs(void **state)
{
    (void)state;
    static const char *const optimizers[] = {"adam(lr=1e-20)", "adamw(lr=1e-20,weight_decay=0)", "rmsprop(lr=1e-20)"};
    double expected = closed_form(0.5F, 2), most = 4 * 21.0 / (64 + 21);
    for (size_t k = 0; k < BWI_COUNT(optimizers); k++) {
        bw_noise_facts facts = regress_with(RARE, 3, SAMPLES, 64, 0.5F, 2, optimizers[k], 1);
        assert_int_equal(facts.steps, SAMPLES / 64);
        assert_true(facts.seen.determined);
        assert_true(facts.seen.scale > 0.7 * expected && facts.seen.scale < (1 + 32 / most) * expected);
    }
}

/* ---- Where it cannot be measured ---- */

static bw_noise_facts fit_images(const char *expression, int64_t batch, int every, uint64_t *hash)
{
    static float x[64][4][4][1];
    static int32_t y[64];
    for (int i = 0; i < 64; i++) {
        y[i] = i % 10;
        for (int k = 0; k < 16; k++) {
            x[i][k / 4][k % 4][0] = (float)((i * 13 + k * 7) % 10) / 10;
        }
    }
    bw_context *ctx = bw_open(NULL);
    bw_array inputs = {.data = x, .dtype = BW_F32, .ndim = 4, .shape = {64, 4, 4, 1}};
    bw_array targets = {.data = y, .dtype = BW_I32, .ndim = 1, .shape = {64}};
    bw_model *model = bw_model_parse(ctx, expression);
    bw_fit_options options = BW_FIT_OPTIONS_DEFAULT;
    bw_history *history = NULL;
    options.epochs = 3;
    options.batch = batch;
    options.tile = 8;
    options.noise_every = every;
    check_ok(ctx, bw_fit(model, bw_from_arrays(ctx, &inputs, &targets, NULL), &options, &history));
    bw_noise_facts facts = bw_history_noise(history);
    *hash = bw_model_hash(model);
    bw_close(ctx);
    return facts;
}

static void test_no_bit_changes(void **state)
{
    (void)state;
    uint64_t measured, plain, wide;
    bw_noise_facts facts = fit_images("flatten dense(10,softmax)", 32, 1, &measured);
    assert_int_equal(facts.steps, 6);
    assert_int_equal(facts.variables, 2);
    facts = fit_images("flatten dense(10,softmax)", 32, 0, &plain);
    assert_int_equal(facts.steps, 0);
    assert_string_equal(facts.refusal, "the noise scale was not asked for");
    assert_true(measured == plain);
    /* Layers that are split over workers, whose gradients are deferred. */
    (void)fit_images("flatten dense(1024,relu) dense(512,relu) dense(10,softmax)", 16, 2, &measured);
    (void)fit_images("flatten dense(1024,relu) dense(512,relu) dense(10,softmax)", 16, 0, &wide);
    assert_true(measured == wide);
}

/* A table with one row for each of two words is a dense layer without a bias over their one-hot codes: the same samples, weights
 * and gradients, hence the same noise, raw and as Adam sees it. */
static bw_noise_facts fit_words(const char *expression, bool codes, int every, uint64_t *hash)
{
    enum { WORDS = 5, COUNT = 128 };
    static float hot[COUNT][WORDS], y[COUNT][1];
    static int32_t words[COUNT][1];
    uint64_t random = 17;
    memset(hot, 0, sizeof hot);
    for (int i = 0; i < COUNT; i++) {
        words[i][0] = (int32_t)(uniform(&random) * WORDS);
        hot[i][words[i][0]] = 1;
        y[i][0] = (float)(0.3 * words[i][0] + normal(&random));
    }
    bw_context *ctx = bw_open(NULL);
    bw_array inputs = {.data = words, .dtype = BW_I32, .ndim = 2, .shape = {COUNT, 1}};
    bw_array coded = {.data = hot, .dtype = BW_F32, .ndim = 2, .shape = {COUNT, WORDS}};
    bw_array targets = {.data = y, .dtype = BW_F32, .ndim = 2, .shape = {COUNT, 1}};
    bw_model *model = bw_model_parse(ctx, expression);
    check_ok(ctx, bw_compile(model, "adam(lr=0.01)", "mse", NULL));
    int64_t shape = codes ? WORDS : 1;
    check_ok(ctx, bw_build(model, 1, &shape, 0));
    float table[WORDS * 2] = {1, -1, 0.5F, 0.25F, 0, 0.75F, -0.5F, 1, 2, 0};
    check_ok(ctx, bw_variable_set(model, 0, table, WORDS * 2));
    float head[2] = {0.5F, -0.25F};
    check_ok(ctx, bw_variable_set(model, 1, head, 2));
    bw_fit_options options = BW_FIT_OPTIONS_DEFAULT;
    bw_history *history = NULL;
    options.epochs = 4;
    options.tile = 4;
    options.lanes = 8;
    options.noise_every = every;
    check_ok(ctx, bw_fit(model, bw_from_arrays(ctx, codes ? &coded : &inputs, &targets, NULL), &options, &history));
    bw_noise_facts facts = bw_history_noise(history);
    assert_true(every == 0 || bw_history_noise_of(history, 0).trace > 0);
    *hash = bw_model_hash(model);
    bw_close(ctx);
    return facts;
}

static bool near(double a, double b)
{
    return fabs(a - b) <= 1e-3 * fabs(b) + 1e-9;
}

static void test_tables(void **state)
{
    (void)state;
    uint64_t measured, plain, other;
    bw_noise_facts table = fit_words("embedding(5,2) flatten dense(1,use_bias=false)", false, 1, &measured);
    bw_noise_facts dense = fit_words("dense(2,use_bias=false) dense(1,use_bias=false)", true, 1, &other);
    (void)fit_words("embedding(5,2) flatten dense(1,use_bias=false)", false, 0, &plain);
    assert_true(measured == plain);
    assert_null(table.refusal);
    assert_int_equal(table.steps, dense.steps);
    assert_true(near(table.raw.trace, dense.raw.trace) && near(table.raw.signal, dense.raw.signal));
    assert_true(near(table.seen.trace, dense.seen.trace) && near(table.seen.signal, dense.seen.signal));
}

static void test_refused(void **state)
{
    (void)state;
    uint64_t hash;
    assert_string_equal(fit_images("conv2d(2,3) batchnorm flatten dense(10,softmax)", 32, 1, &hash).refusal,
                        "with BatchNormalization the gradient of a sample depends on its batch");
    assert_int_equal(fit_images("flatten dense(10,softmax)", 8, 1, &hash).steps, 0); /* one tile is one lane */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_finite_set),     cmocka_unit_test(test_linear_regression), cmocka_unit_test(test_coverage),
        cmocka_unit_test(test_undetermined),   cmocka_unit_test(test_as_adam_sees_it),   cmocka_unit_test(test_rare_inputs),
        cmocka_unit_test(test_no_bit_changes), cmocka_unit_test(test_refused),           cmocka_unit_test(test_tables),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
