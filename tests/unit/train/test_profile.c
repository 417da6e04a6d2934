/* Where the time of a step went: parts that sum up to it, on every worker; what is known to be slow is found; no bit changes. */
#include "support/planned.h"

#include <time.h>

static bw_history *fit(planned *p, int epochs, int64_t batch, bw_callback on_step)
{
    bw_history *history = NULL;
    bw_fit_options options = BW_FIT_OPTIONS_DEFAULT;
    options.epochs = epochs;
    options.batch = batch;
    options.on_step = on_step;
    check_ok(p->ctx, bw_fit(p->model, p->data, &options, &history));
    return history;
}

static double sum_of(const bw_history *history, int kind, int worker)
{
    double sum = 0;
    bw_profile_facts facts = bw_history_profile(history);
    for (int k = 0; k < facts.parts; k++) {
        bw_part part;
        assert_int_equal(bw_history_part(history, k, &part), BW_OK);
        assert_true(part.seconds >= 0 && part.calls >= 0);
        sum += kind < 0 || (int)part.kind == kind ? bw_history_part_seconds(history, k, worker) : 0;
    }
    return sum;
}

/* Whichever worker was there first took the tiles: the others may have had none. */
static double sum_of_all(const bw_history *history, int kind)
{
    double sum = 0;
    for (int worker = 0; worker < bw_history_profile(history).workers; worker++) {
        sum += sum_of(history, kind, worker);
    }
    return sum;
}

static void test_parts_sum_up(void **state)
{
    (void)state;
    for (int workers = 1; workers <= 3; workers++) {
        planned p;
        planned_model(&p, "conv2d(8,3,relu) maxpool2d(2) flatten dense(10,softmax)", 600, 12, 12, 1, workers);
        bw_history *history = fit(&p, 4, 200, NULL);
        bw_profile_facts facts = bw_history_profile(history);
        assert_int_equal(facts.steps, 11);
        assert_true(facts.timed_steps >= 1 && facts.timed_steps <= 11);
        assert_int_equal(facts.workers, workers);
        assert_true(facts.samples == 200);
        for (int worker = 0; worker < workers; worker++) {
            double sum = sum_of(history, -1, worker);
            assert_true(sum > 0.999 * facts.step_seconds && sum < 1.001 * facts.step_seconds);
        }
        assert_true(sum_of_all(history, BW_PART_FORWARD) > 0);
        assert_true(sum_of_all(history, BW_PART_BACKWARD) > 0);
        assert_true(sum_of_all(history, BW_PART_LOSS) > 0);
        assert_true(sum_of_all(history, BW_PART_UPDATE) > 0);
        bw_part part;
        assert_int_equal(bw_history_part(history, facts.parts - 1, &part), BW_OK);
        assert_int_equal(part.kind, BW_PART_OVERHEAD);
        assert_int_equal(bw_history_part(history, facts.parts, &part), BW_OUT_OF_RANGE);
        assert_int_equal(bw_history_part(history, -1, &part), BW_OUT_OF_RANGE);
        assert_true(bw_history_part_seconds(history, 0, workers) == 0);
        planned_close(&p);
    }
}

/* The convolution's products are counted as the definition counts them. */
static void test_work(void **state)
{
    (void)state;
    planned p;
    planned_model(&p, "conv2d(8,3,relu) maxpool2d(2) flatten dense(10,softmax)", 600, 12, 12, 1, 1);
    bw_history *history = fit(&p, 2, 100, NULL);
    bool found = false;
    for (int k = 0; k < bw_history_profile(history).parts; k++) {
        bw_part part;
        assert_int_equal(bw_history_part(history, k, &part), BW_OK);
        if (part.kind == BW_PART_FORWARD && strcmp(part.name, "conv2d") == 0) {
            found = true;
            assert_true(part.flops == 100.0 * 2 * 10 * 10 * 8 * 9);
            assert_true(part.calls >= 1);
            assert_string_equal(part.pass, "forward");
        }
    }
    assert_true(found);
    planned_close(&p);
}

static bool sleep_a_little(void *user, const bw_progress *progress)
{
    (void)user;
    (void)progress;
    nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    return true;
}

static void test_slow_callback(void **state)
{
    (void)state;
    planned p;
    planned_model(&p, "flatten dense(10,softmax)", 80, 4, 4, 1, 1);
    bw_history *history = fit(&p, 2, 8, sleep_a_little);
    double step = bw_history_profile(history).step_seconds;
    assert_true(step >= 0.005);
    assert_true(sum_of(history, BW_PART_CALLBACKS, 0) >= 0.0049);
    planned_close(&p);
}

typedef struct seen {
    int refreshed;
    double updates, workers, sum; /* sum: of the first worker's parts in the last profile, as a share of the step */
} seen;

static bool refresh(void *user, const bw_progress *progress)
{
    seen *s = user;
    assert_int_equal(bw_history_refresh(progress->history), BW_OK);
    bw_profile_facts facts = bw_history_profile(progress->history);
    s->refreshed++;
    s->updates = (double)bw_history_facts(progress->history).updates;
    assert_true(s->updates == s->refreshed);
    assert_true(bw_history_facts(progress->history).planned_bytes > 0);
    if (facts.parts > 0) {
        s->workers = facts.workers;
        s->sum = sum_of(progress->history, -1, 0) / facts.step_seconds;
    }
    return true;
}

/* A callback sees the run so far; looking at it changes neither the result nor the trace. */
static void test_refresh(void **state)
{
    (void)state;
    uint64_t hash[2];
    for (int k = 0; k < 2; k++) {
        planned p;
        seen s = {0};
        planned_model(&p, "conv2d(8,3,relu) flatten dense(10,softmax)", 600, 12, 12, 1, 2);
        bw_fit_options options = BW_FIT_OPTIONS_DEFAULT;
        options.epochs = 2;
        options.batch = 50;
        options.trace_steps = 3;
        options.on_step = k == 1 ? refresh : NULL;
        options.user = &s;
        bw_history *history = NULL;
        check_ok(p.ctx, bw_fit(p.model, p.data, &options, &history));
        assert_int_equal(s.refreshed, k == 1 ? 24 : 0);
        assert_true(k == 0 || (s.workers == 2 && s.sum > 0.999 && s.sum < 1.001));
        assert_true(bw_history_events(history) > 0);
        hash[k] = bw_model_hash(p.model);
        double seconds = bw_history_facts(history).seconds;
        check_ok(p.ctx, bw_history_refresh(history));
        assert_true(bw_history_facts(history).seconds == seconds);
        planned_close(&p);
    }
    assert_true(hash[0] == hash[1]);
    assert_int_equal(bw_history_refresh(NULL), BW_INVALID_ARGUMENT);
}

static void test_names(void **state)
{
    (void)state;
    planned p;
    char text[64];
    planned_model(&p, "flatten dense(10,softmax)", 8, 4, 4, 1, 1);
    check_ok(p.ctx, bw_compile(p.model, NULL, NULL, NULL));
    assert_true(!bw_loss_name(p.model, 0, text, sizeof text));
    (void)fit(&p, 1, 8, NULL);
    assert_string_equal(bw_optimizer_name(p.model), "adam");
    assert_true(bw_loss_name(p.model, 0, text, sizeof text));
    assert_string_equal(text, "sparse_categorical_crossentropy");
    assert_true(!bw_loss_name(p.model, 1, text, sizeof text) && text[0] == 0);
    assert_null(bw_optimizer_name(NULL));
    planned_close(&p);
}

/* A step of microseconds is timed now and then, and most steps pay nothing. */
static void test_small_steps_are_sampled(void **state)
{
    (void)state;
    planned p;
    planned_model(&p, "flatten dense(1)", 400, 1, 2, 1, 1);
    bw_profile_facts facts = bw_history_profile(fit(&p, 100, 4, NULL));
    assert_int_equal(facts.steps, 9999);
    assert_true(facts.timed_steps > 0);
    if (facts.step_seconds < 10e-6) { /* a table that checks every access takes longer */
        assert_true(facts.timed_steps < 2500);
    }
    planned_close(&p);
}

static void test_nothing_to_tell(void **state)
{
    (void)state;
    planned p;
    planned_model(&p, "flatten dense(10,softmax)", 8, 4, 4, 1, 1);
    bw_history *history = fit(&p, 1, 8, NULL);
    bw_profile_facts facts = bw_history_profile(history);
    assert_int_equal(facts.parts, 0);
    assert_int_equal(facts.steps, 0);
    check_ok(p.ctx, bw_evaluate(p.model, p.data, &history));
    assert_int_equal(bw_history_profile(history).parts, 0);
    assert_int_equal(bw_history_profile(NULL).parts, 0);
    assert_string_equal(bw_part_kind_name(BW_PART_DATA), "data wait");
    assert_string_equal(bw_part_kind_name((bw_part_kind)99), "unknown");
    planned_close(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parts_sum_up),    cmocka_unit_test(test_work),  cmocka_unit_test(test_slow_callback),
        cmocka_unit_test(test_refresh),         cmocka_unit_test(test_names), cmocka_unit_test(test_small_steps_are_sampled),
        cmocka_unit_test(test_nothing_to_tell),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
