/* bw_tune gives the model back as it was, bit for bit, whatever it is made of and however tuning ends; and it fails as others
 * do. */
#include "support/context.h"

#include "insight/tune/tune.h"

#include <math.h>
#include <pthread.h>

enum { SAMPLES = 96, INPUTS = 5 };

static float x[SAMPLES][INPUTS];
static int32_t y[SAMPLES];

static bw_dataset *make_data(void)
{
    for (int i = 0; i < SAMPLES; i++) {
        y[i] = i % 3;
        for (int k = 0; k < INPUTS; k++) {
            x[i][k] = (float)((i * 7 + k * 3) % 11) / 11 + (float)(k == y[i]);
        }
    }
    bw_array inputs = {.data = x, .dtype = BW_F32, .ndim = 2, .shape = {SAMPLES, INPUTS}};
    bw_array targets = {.data = y, .dtype = BW_I32, .ndim = 1, .shape = {SAMPLES}};
    return bw_shuffle(bw_from_arrays(ctx, &inputs, &targets, NULL), 1);
}

typedef struct scene {
    const char *model, *optimizer;
    int epochs_before;
    double split, confirm;
} scene;

/* Trains, tunes (or not), and trains on; the hash then depends on every bit of variables, slots and counters. */
static uint64_t run(const scene *s, bool tunes)
{
    bw_model *model = bw_model_parse(ctx, s->model);
    bw_dataset *data = make_data();
    bw_fit_options fit = BW_FIT_OPTIONS_DEFAULT;
    check_ok(ctx, bw_compile(model, s->optimizer, NULL, NULL));
    fit.seed = 3;
    fit.epochs = s->epochs_before;
    fit.validation_split = s->split;
    if (s->epochs_before > 0) {
        check_ok(ctx, bw_fit(model, data, &fit, NULL));
    }
    fit.epochs = 2;
    if (tunes) {
        bw_tune_options options = BW_TUNE_OPTIONS_DEFAULT;
        bw_tuning *tuning = NULL;
        double rate = bw_learning_rate(model);
        uint64_t hash = s->epochs_before > 0 ? bw_model_hash(model) : 0;
        options.seconds = 0.2;
        options.confirm = s->confirm;
        options.tiles = true;
        options.fit = &fit;
        check_ok(ctx, bw_tune(model, data, &options, &tuning));
        bw_tune_facts facts = bw_tuning_facts(tuning);
        assert_true(facts.rows > 0 && facts.knee > 0 && facts.tiles > 0 && facts.reference_rate > 0);
        assert_true(facts.decided == (facts.batch > 0) && facts.decided == !isnan(facts.rate) &&
                    facts.decided == !!facts.optimizer);
        assert_true(s->confirm == 0 || facts.branches > 0);
        assert_true(bw_learning_rate(model) == rate);
        assert_true(s->epochs_before == 0 || bw_model_hash(model) == hash);
        assert_int_equal(bw_tuning_row(tuning, 0).batch, 1);
        assert_int_equal(bw_tuning_row(tuning, facts.rows).batch, 0);
        bw_tuning_free(tuning);
    }
    check_ok(ctx, bw_fit(model, data, &fit, NULL));
    return bw_model_hash(model);
}

static void test_bits(void **state)
{
    (void)state;
    static const scene scenes[] = {
        {"dense(8,relu) dense(3,softmax)", "adam", 0, 0, 0},
        {"dense(8,relu) dropout(0.2) dense(3,softmax)", "nadam(lr=0.01)", 2, 0.25, 0.02},
        {"normalization dense(8,relu) dense(3,softmax)", "sgd(momentum=0.9)", 0, 0, 0},
        {"normalization dense(8,relu) dense(3,softmax)", "sgd(lr=exponential_decay(0.1,10,0.9),use_ema=true)", 1, 0, 0},
        {"dense(8) batchnorm relu dense(3,softmax)", "rmsprop", 1, 0, 0.02},
    };
    for (size_t i = 0; i < BWI_COUNT(scenes); i++) {
        uint64_t plain = run(&scenes[i], false), tuned = run(&scenes[i], true);
        if (plain != tuned) {
            fail_msg("scene %zu: the model has changed", i);
        }
    }
}

/* Where noise cannot be measured, and no time is left to train candidates, nothing is recommended, and the reason says so; with
 * time, what is recommended is a candidate that reached the target. */
static void test_refused_noise(void **state)
{
    (void)state;
    bw_model *model = bw_model_parse(ctx, "dense(8) batchnorm dense(3,softmax)");
    bw_tune_options options = BW_TUNE_OPTIONS_DEFAULT;
    bw_tuning *tuning = NULL;
    options.seconds = 1e-6;
    check_ok(ctx, bw_tune(model, make_data(), &options, &tuning));
    bw_tune_facts facts = bw_tuning_facts(tuning);
    assert_false(facts.decided);
    assert_null(facts.optimizer);
    assert_int_equal(facts.branches, 0);
    assert_non_null(strstr(facts.reason, "the data do not decide"));
    assert_non_null(strstr(facts.reason, "no candidate reached the target"));
    assert_non_null(strstr(facts.refusal, "BatchNormalization"));
    check_fails(ctx, bw_tuning_apply(tuning, model), BW_INVALID_ARGUMENT, "nothing is recommended");
    options.seconds = 1;
    check_ok(ctx, bw_tune(model, make_data(), &options, &tuning));
    facts = bw_tuning_facts(tuning);
    assert_int_equal(facts.decided, facts.confirmed);
    for (int k = 0; k < facts.branches; k++) {
        bw_tune_branch branch = bw_tuning_branch(tuning, k);
        assert_true(branch.batch != facts.batch || (isfinite(branch.seconds) && branch.rate == facts.rate));
    }
}

static void test_apply(void **state)
{
    (void)state;
    bw_model *model = bw_model_parse(ctx, "input(5) dense(3)");
    check_ok(ctx, bw_compile(model, "adam", "mse", NULL));
    bwi_training *training = model->training;
    bwi_optimizer wanted = training->optimizer;
    bwi_rescale_averages(&wanted, 32, 64);
    bw_tuning tuning = {.ctx = ctx, .facts = {.decided = true, .batch = 64, .rate = 0.5}, .row = wanted.row};
    memcpy(tuning.values, wanted.values, sizeof tuning.values);
    check_ok(ctx, bw_tuning_apply(&tuning, model));
    assert_true(bw_learning_rate(model) == 0.5);
    assert_true(training->optimizer.values[1].number == 0.9 && training->optimizer.values[2].number == 0.998001);
    check_ok(ctx, bw_compile(model, "sgd", "mse", NULL));
    check_fails(ctx, bw_tuning_apply(&tuning, model), BW_INVALID_ARGUMENT, "expected a model with the optimizer adam, found sgd");
}

static void test_mistakes(void **state)
{
    (void)state;
    bw_model *model = bw_model_parse(ctx, "dense(3,softmax)");
    bw_dataset *data = make_data();
    bw_tune_options options = BW_TUNE_OPTIONS_DEFAULT;
    bw_tuning *tuning = NULL;
    check_fails(ctx, bw_tune(NULL, data, NULL, &tuning), BW_INVALID_ARGUMENT, "tune: there is no model");
    check_fails(ctx, bw_tune(model, data, NULL, NULL), BW_INVALID_ARGUMENT, "no place for the result");
    options.seconds = 0;
    check_fails(ctx, bw_tune(model, data, &options, &tuning), BW_INVALID_ARGUMENT, "seconds: expected a time above 0");
    options.seconds = 1;
    options.reference = 0;
    check_fails(ctx, bw_tune(model, data, &options, &tuning), BW_INVALID_ARGUMENT, "reference: expected at least 1");
    /* A model that does not suit the data fails as in training, once. */
    bw_model *wrong = bw_model_parse(ctx, "dense(2,softmax)");
    check_fails(ctx, bw_tune(wrong, data, NULL, &tuning), BW_INVALID_ARGUMENT, "");
    assert_null(tuning);
}

/* ---- Ranks ---- */

typedef struct member {
    const char *model, *optimizer;
    bw_ranks *group;
    int rank;
    double seconds, confirm;
    /* What came of it. */
    bw_status status;
    char message[256], advice[256];
    uint64_t before, after;
    bw_tune_facts facts;
    bw_tune_row rows[8];
    bw_tune_rate rates[8];
    bw_tune_branch branch;
    bw_tune_point last;
} member;

static void keep(member *m, const bw_tuning *tuning)
{
    m->facts = bw_tuning_facts(tuning);
    snprintf(m->advice, sizeof m->advice, "%s; %s", m->facts.reason, m->facts.optimizer ? m->facts.optimizer : "none");
    for (int k = 0; k < 8; k++) {
        m->rows[k] = bw_tuning_row(tuning, k);
        m->rates[k] = bw_tuning_rate(tuning, k);
    }
    m->branch = bw_tuning_branch(tuning, 0);
    m->last = bw_tuning_branch_point(tuning, 0, m->branch.points - 1);
}

/* cmocka's assertions belong to the main thread, so a rank only leaves what it found. */
static void *tune_as_rank(void *user)
{
    member *m = user;
    bw_context_options options = BW_CONTEXT_OPTIONS_DEFAULT;
    options.workers = 1;
    options.ranks = m->group;
    options.rank = m->rank;
    bw_context *own = bw_open(&options);
    bw_model *model = bw_model_parse(own, m->model);
    bw_array inputs = {.data = x, .dtype = BW_F32, .ndim = 2, .shape = {SAMPLES, INPUTS}};
    bw_array targets = {.data = y, .dtype = BW_I32, .ndim = 1, .shape = {SAMPLES}};
    bw_dataset *data = bw_shuffle(bw_from_arrays(own, &inputs, &targets, NULL), 1);
    bw_fit_options fit = BW_FIT_OPTIONS_DEFAULT;
    bw_tune_options how = BW_TUNE_OPTIONS_DEFAULT;
    bw_tuning *tuning = NULL;
    how.seconds = m->seconds;
    how.confirm = m->confirm;
    how.fit = &fit;
    m->status = bw_compile(model, m->optimizer, NULL, NULL);
    if (m->status == BW_OK) {
        m->status = bw_fit(model, data, &fit, NULL);
    }
    m->before = bw_model_hash(model);
    if (m->status == BW_OK) {
        m->status = bw_tune(model, data, &how, &tuning);
    }
    snprintf(m->message, sizeof m->message, "%.255s", bw_message(own));
    m->after = bw_model_hash(model);
    if (m->status == BW_OK) {
        keep(m, tuning);
    }
    bw_close(own);
    return NULL;
}

enum { RANKS = 3 };

static void tune_together(member *members)
{
    pthread_t threads[RANKS];
    bw_ranks *group = bw_ranks_open(RANKS);
    assert_non_null(group);
    (void)make_data(); /* fills the samples */
    for (int k = 0; k < RANKS; k++) {
        members[k].group = group;
        members[k].rank = k;
        assert_int_equal(pthread_create(&threads[k], NULL, tune_as_rank, &members[k]), 0);
    }
    for (int k = 0; k < RANKS; k++) {
        pthread_join(threads[k], NULL);
    }
    bw_ranks_close(group);
}

/* All ranks get the first one's result, and their models back as they were; also where rates diverge, and where candidates are
 * trained. */
static void test_ranks(void **state)
{
    (void)state;
    static const member scenes[] = {
        {.model = "dense(8,relu) dense(3,softmax)", .optimizer = "adam", .seconds = 0.3, .confirm = 0.02},
        {.model = "dense(8) batchnorm relu dense(3,softmax)", .optimizer = "sgd(momentum=0.9)", .seconds = 0.3},
        {.model = "dense(3,softmax)", .optimizer = "sgd", .seconds = 0.2},
    };
    for (size_t i = 0; i < BWI_COUNT(scenes); i++) {
        member members[RANKS] = {scenes[i], scenes[i], scenes[i]};
        tune_together(members);
        for (int k = 0; k < RANKS; k++) {
            const member *m = &members[k];
            if (m->status != BW_OK) {
                fail_msg("scene %zu, rank %d: %s", i, k, m->message);
            }
            assert_true(m->before == m->after && m->facts.rows > 0 && m->facts.reference_rate > 0);
            assert_string_equal(m->advice, members[0].advice);
            assert_int_equal(m->facts.batch, members[0].facts.batch);
            assert_memory_equal(&m->facts.seconds, &members[0].facts.seconds, sizeof(double));
            assert_memory_equal(m->rates, members[0].rates, sizeof m->rates);
            for (int r = 0; r < 8; r++) {
                assert_memory_equal(&m->rows[r].seconds, &members[0].rows[r].seconds, sizeof m->rows[r].seconds);
            }
            assert_memory_equal(&m->last, &members[0].last, sizeof m->last);
            assert_int_equal(m->branch.points, members[0].branch.points);
        }
        assert_true(scenes[i].confirm == 0 || members[0].branch.points > 0);
    }
}

/* If one is refused, so are all. */
static void test_rank_refused(void **state)
{
    (void)state;
    member all = {.model = "dense(3,softmax)", .optimizer = "adam", .seconds = 0.2};
    member members[RANKS] = {all, all, all};
    members[1].seconds = -1;
    tune_together(members);
    for (int k = 0; k < RANKS; k++) {
        assert_int_equal(members[k].status, BW_INVALID_ARGUMENT);
        assert_non_null(strstr(members[k].message, "seconds: expected a time above 0"));
        assert_true(members[k].before == members[k].after);
    }
}

/* The doctor looks at a model alone, and says so at once. */
static void test_doctor_of_ranks(void **state)
{
    (void)state;
    bw_ranks *ranks = bw_ranks_open(2);
    bw_context_options options = BW_CONTEXT_OPTIONS_DEFAULT;
    options.ranks = ranks;
    bw_context *alone = ctx;
    ctx = bw_open(&options);
    assert_non_null(ctx);
    bw_findings *findings = NULL;
    bw_model *model = bw_model_parse(ctx, "dense(3,softmax)");
    check_fails(ctx, bw_doctor(model, make_data(), NULL, &findings), BW_UNIMPLEMENTED,
                "doctor: ranks are not supported; look with a context of its own");
    assert_null(findings);
    bw_close(ctx);
    bw_ranks_close(ranks);
    ctx = alone;
}

/* Ctrl-C: the model is given back, and the flag is cleared. */
static void test_cancelled(void **state)
{
    (void)state;
    bw_model *model = bw_model_parse(ctx, "dense(8,relu) dense(3,softmax)");
    bw_dataset *data = make_data();
    bw_tuning *tuning = NULL;
    check_ok(ctx, bw_fit(model, data, NULL, NULL));
    uint64_t hash = bw_model_hash(model);
    bw_cancel(ctx);
    assert_int_equal(bw_tune(model, data, NULL, &tuning), BW_CANCELLED);
    assert_null(tuning);
    assert_true(bw_model_hash(model) == hash);
    check_ok(ctx, bw_fit(model, data, NULL, NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_bits, open_context, close_context),
        cmocka_unit_test_setup_teardown(test_refused_noise, open_context, close_context),
        cmocka_unit_test_setup_teardown(test_apply, open_context, close_context),
        cmocka_unit_test_setup_teardown(test_mistakes, open_context, close_context),
        cmocka_unit_test_setup_teardown(test_ranks, open_context, close_context),
        cmocka_unit_test_setup_teardown(test_rank_refused, open_context, close_context),
        cmocka_unit_test_setup_teardown(test_doctor_of_ranks, open_context, close_context),
        cmocka_unit_test_setup_teardown(test_cancelled, open_context, close_context),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
