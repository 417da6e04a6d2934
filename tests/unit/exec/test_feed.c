/* Windows: pieces add up, a failure loses the window and nothing else, evaluation leaves it alone. */
#include "exec/internal.h"
#include "support/planned.h"

#include <math.h>

static const char *const plain = "flatten dense(12,relu) dense(10,softmax)";

static void open_model(planned *p, const char *text, int64_t batch)
{
    bwi_session_options options = {.train = true, .evaluate = true, .batch = batch, .tile = 4, .lanes = 4, .seed = 3};
    planned_model(p, text, 64, 9, 9, 3, 2);
    planned_open(p, &options);
}

static bw_status feed(planned *p, int program, int64_t first, int64_t count)
{
    bwi_piece piece = {.dataset = p->data, .first = first, .count = count};
    return bwi_session_feed(&p->session, program, &piece, NULL);
}

static void test_pieces_add_up(void **state)
{
    (void)state;
    uint64_t hash[2];
    for (int pieces = 0; pieces < 2; pieces++) {
        planned p;
        open_model(&p, plain, 48);
        /* Pieces of whole rounds of the lanes are cut as one feed is. */
        if (pieces) {
            check_ok(p.ctx, feed(&p, BWI_PROGRAM_TRAIN, 0, 16));
            check_ok(p.ctx, feed(&p, BWI_PROGRAM_TRAIN, 16, 32));
        } else {
            check_ok(p.ctx, feed(&p, BWI_PROGRAM_TRAIN, 0, 48));
        }
        assert_int_equal(bwi_exec_samples(p.session.exec), 48);
        check_ok(p.ctx, bwi_session_apply(&p.session));
        assert_int_equal(bwi_exec_samples(p.session.exec), 0);
        hash[pieces] = bw_model_hash(p.model);
        planned_close(&p);
    }
    assert_true(hash[0] == hash[1]);
}

static void test_evaluation_leaves_the_window(void **state)
{
    (void)state;
    uint64_t hash[2];
    for (int between = 0; between < 2; between++) {
        planned p;
        open_model(&p, "flatten dense(12) batchnorm relu dense(10,softmax)", 48);
        check_ok(p.ctx, feed(&p, BWI_PROGRAM_TRAIN, 0, 20));
        if (between) {
            check_ok(p.ctx, feed(&p, BWI_PROGRAM_EVALUATE, 0, 64));
            assert_int_equal(bwi_exec_samples(p.session.exec), 20);
        }
        check_ok(p.ctx, bwi_session_apply(&p.session));
        hash[between] = bw_model_hash(p.model);
        planned_close(&p);
    }
    assert_true(hash[0] == hash[1]);
}

static void test_failure_loses_the_window(void **state)
{
    (void)state;
    planned p;
    open_model(&p, plain, 48);
    uint64_t before = bw_model_hash(p.model);
    check_ok(p.ctx, feed(&p, BWI_PROGRAM_TRAIN, 0, 16));
    int32_t label = p.y[20];
    p.y[20] = 10;
    check_fails(p.ctx, feed(&p, BWI_PROGRAM_TRAIN, 16, 16), BW_INVALID_ARGUMENT,
                "label 10 of sample 20 is outside 0..9: the output layer has 10 classes");
    p.y[20] = label;
    assert_int_equal(bwi_exec_samples(p.session.exec), 0);
    assert_true(bw_model_hash(p.model) == before);
    check_fails(p.ctx, bwi_session_apply(&p.session), BW_INVALID_ARGUMENT, "nothing to apply");
    /* And then it goes on as if it had never happened. */
    check_ok(p.ctx, feed(&p, BWI_PROGRAM_TRAIN, 0, 48));
    check_ok(p.ctx, bwi_session_apply(&p.session));
    planned calm;
    open_model(&calm, plain, 48);
    check_ok(calm.ctx, feed(&calm, BWI_PROGRAM_TRAIN, 0, 48));
    check_ok(calm.ctx, bwi_session_apply(&calm.session));
    assert_true(bw_model_hash(p.model) == bw_model_hash(calm.model));
    planned_close(&p);
    planned_close(&calm);
}

static void test_clearing(void **state)
{
    (void)state;
    planned p;
    open_model(&p, plain, 48);
    uint64_t before = bw_model_hash(p.model);
    check_ok(p.ctx, feed(&p, BWI_PROGRAM_TRAIN, 0, 16));
    bwi_session_clear(&p.session);
    assert_int_equal(bwi_exec_samples(p.session.exec), 0);
    check_fails(p.ctx, bwi_session_apply(&p.session), BW_INVALID_ARGUMENT, "nothing to apply");
    assert_true(bw_model_hash(p.model) == before);
    planned_close(&p);
}

static void test_counts_that_cannot_be(void **state)
{
    (void)state;
    planned p;
    open_model(&p, "flatten dense(10) batchnorm softmax", 8);
    check_fails(p.ctx, feed(&p, BWI_PROGRAM_TRAIN, 0, 0), BW_INVALID_ARGUMENT, "batch: expected at least 1 sample, got 0");
    check_fails(p.ctx, feed(&p, BWI_PROGRAM_TRAIN, 0, -3), BW_INVALID_ARGUMENT, "batch: expected at least 1 sample, got -3");
    /* The store has room for batches of 8, and some tiles more. */
    planned large;
    planned_model(&large, "flatten dense(10) batchnorm softmax", 4096, 3, 3, 1, 1);
    bwi_session_options options = {.train = true, .evaluate = true, .batch = 8, .tile = 4};
    planned_open(&large, &options);
    check_fails(large.ctx, feed(&large, BWI_PROGRAM_TRAIN, 0, 4096), BW_INVALID_ARGUMENT, "at most 8 samples, got 4096");
    check_ok(large.ctx, feed(&large, BWI_PROGRAM_EVALUATE, 0, 4096));
    for (int64_t count = 1; count <= 8; count++) {
        check_ok(large.ctx, feed(&large, BWI_PROGRAM_TRAIN, 0, count));
    }
    planned_close(&large);
    planned_close(&p);
}

/* The sums of the loss: those of its definition, in double. */
static void test_sums(void **state)
{
    (void)state;
    planned p;
    open_model(&p, plain, 48);
    float y[64 * 10];
    check_ok(p.ctx, bw_predict(p.model, p.data, y, 64 * 10));
    for (int64_t count = 1; count <= 64; count += 9) {
        check_ok(p.ctx, feed(&p, BWI_PROGRAM_EVALUATE, 0, count));
        double expected = 0;
        for (int64_t i = 0; i < count; i++) {
            expected -= log((double)y[i * 10 + p.y[i]]);
        }
        const double *sums = bwi_exec_sums(p.session.exec, p.session.columns[0].node);
        assert_true(fabs(sums[0] - expected) < 1e-5 * (double)count);
        assert_true(sums[1] == (double)count);
    }
    planned_close(&p);
}

/* The hooks: each lane tells its gradients' norm and how many samples are behind them. */
typedef struct told {
    int64_t samples;
    double squared;
    int lanes;
    atomic_int gradients;
} told;

static void on_norm(void *user, int lane, double squared, int64_t samples)
{
    told *t = user;
    (void)lane;
    t->samples += samples;
    t->squared += squared;
    t->lanes++;
}

static void on_gradient(void *user, int lane, const bwi_variable *variable, const void *gradient)
{
    told *t = user;
    (void)lane;
    atomic_fetch_add(&t->gradients, variable->trainable && gradient);
}

static void test_hooks(void **state)
{
    (void)state;
    planned p;
    open_model(&p, plain, 48);
    told t = {0};
    bwi_exec_set_hooks(p.session.exec, &(bwi_hooks){.user = &t, .lane_norm = on_norm, .lane_gradient = on_gradient});
    check_ok(p.ctx, feed(&p, BWI_PROGRAM_TRAIN, 0, 47));
    double squared = 0;
    check_ok(p.ctx, bwi_exec_reduce(p.session.exec, &squared));
    assert_int_equal(t.samples, 47);
    assert_int_equal(t.lanes, 4);
    assert_int_equal(t.gradients, 4 * 4); /* of each of four variables, in each lane */
    assert_true(t.squared > 0 && squared > 0 && squared <= 4 * t.squared);
    planned_close(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pieces_add_up),
        cmocka_unit_test(test_evaluation_leaves_the_window),
        cmocka_unit_test(test_failure_loses_the_window),
        cmocka_unit_test(test_clearing),
        cmocka_unit_test(test_counts_that_cannot_be),
        cmocka_unit_test(test_sums),
        cmocka_unit_test(test_hooks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
