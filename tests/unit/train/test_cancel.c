/*
 * Cancelling from a callback and from another thread: the call returns BW_CANCELLED, the model is as after the last update,
 * and the next call works. label: thread
 */
#include "support/planned.h"

#include <pthread.h>
#include <sched.h>

static const char *const text = "flatten dense(60,relu) dense(10,softmax)";

typedef struct run {
    planned p;
    int steps, cancel_at;
    bool at_epoch;
    uint64_t hash;
    pthread_t thread;
    atomic_bool started;
} run;

static bool on_step(void *user, const bw_progress *progress)
{
    run *r = user;
    (void)progress;
    r->hash = bw_model_hash(r->p.model);
    if (++r->steps == r->cancel_at) {
        bw_cancel(r->p.ctx);
    }
    atomic_store(&r->started, true);
    return true;
}

static bool on_epoch(void *user, const bw_progress *progress)
{
    run *r = user;
    if (r->at_epoch && progress->epoch + 1 == progress->epochs) {
        bw_cancel(r->p.ctx);
    }
    return true;
}

static void open_run(run *r)
{
    planned_model(&r->p, text, 60, 6, 6, 2, 2);
    check_ok(r->p.ctx, bw_build(r->p.model, 3, (const int64_t[]){6, 6, 2}, 7));
}

static bw_fit_options options_of(run *r, int epochs)
{
    bw_fit_options options = BW_FIT_OPTIONS_DEFAULT;
    options.batch = 20;
    options.epochs = epochs;
    options.on_step = on_step;
    options.on_epoch = on_epoch;
    options.user = r;
    return options;
}

static void goes_on(run *r)
{
    float y[600];
    bw_history *history;
    bw_fit_options options = options_of(r, 1);
    r->cancel_at = 0;
    r->at_epoch = false;
    check_ok(r->p.ctx, bw_predict(r->p.model, r->p.data, y, 600));
    check_ok(r->p.ctx, bw_fit(r->p.model, r->p.data, &options, &history));
    assert_int_equal(bw_history_facts(history).updates, 3);
    check_ok(r->p.ctx, bw_evaluate(r->p.model, r->p.data, &history));
}

static void test_from_a_callback(void **state)
{
    (void)state;
    for (int at = 1; at <= 5; at++) {
        run r = {.cancel_at = at};
        open_run(&r);
        bw_fit_options options = options_of(&r, 3);
        bw_history *history;
        check_fails(r.p.ctx, bw_fit(r.p.model, r.p.data, &options, &history), BW_CANCELLED, "cancelled");
        assert_int_equal(r.steps, at);
        assert_true(bw_model_hash(r.p.model) == r.hash);
        assert_int_equal(bw_history_facts(history).updates, at);
        assert_int_equal(bw_history_epochs(history), at / 3);
        goes_on(&r);
        planned_close(&r.p);
    }
}

/* In the very last callback there is no tile left to stop at: the call says so, and the next one is not stopped instead. */
static void test_from_the_last_callback(void **state)
{
    (void)state;
    for (int epoch = 0; epoch < 2; epoch++) {
        run r = {.cancel_at = epoch ? 0 : 6, .at_epoch = epoch};
        open_run(&r);
        bw_fit_options options = options_of(&r, 2);
        check_fails(r.p.ctx, bw_fit(r.p.model, r.p.data, &options, NULL), BW_CANCELLED, "cancelled");
        assert_int_equal(r.steps, 6);
        assert_true(bw_model_hash(r.p.model) == r.hash);
        goes_on(&r);
        planned_close(&r.p);
    }
}

static void test_before_a_call(void **state)
{
    (void)state;
    run r = {0};
    open_run(&r);
    uint64_t before = bw_model_hash(r.p.model);
    float y[600];
    bw_history *history;
    bw_fit_options options = options_of(&r, 1);
    bw_cancel(r.p.ctx);
    check_fails(r.p.ctx, bw_fit(r.p.model, r.p.data, &options, NULL), BW_CANCELLED, "cancelled");
    assert_int_equal(r.steps, 0);
    bw_cancel(r.p.ctx);
    check_fails(r.p.ctx, bw_predict(r.p.model, r.p.data, y, 600), BW_CANCELLED, "cancelled");
    bw_cancel(r.p.ctx);
    check_fails(r.p.ctx, bw_evaluate(r.p.model, r.p.data, &history), BW_CANCELLED, "cancelled");
    assert_true(bw_model_hash(r.p.model) == before);
    goes_on(&r);
    bw_cancel(NULL);
    planned_close(&r.p);
}

static void *cancel_soon(void *user)
{
    run *r = user;
    while (!atomic_load(&r->started)) {
    }
    bw_cancel(r->p.ctx);
    return NULL;
}

/* More epochs than anybody would wait for. */
static void test_from_another_thread(void **state)
{
    (void)state;
    for (int k = 0; k < 20; k++) {
        run r = {0};
        open_run(&r);
        bw_fit_options options = options_of(&r, 100000);
        assert_int_equal(pthread_create(&r.thread, NULL, cancel_soon, &r), 0);
        bw_status status = bw_fit(r.p.model, r.p.data, &options, NULL);
        pthread_join(r.thread, NULL);
        check_fails(r.p.ctx, status, BW_CANCELLED, "cancelled");
        assert_true(r.steps >= 1 && r.steps < 300000);
        assert_true(bw_model_hash(r.p.model) == r.hash);
        goes_on(&r);
        planned_close(&r.p);
    }
}

/* A sample that is never ready: its function learns that nobody waits for it any more. */
typedef struct endless {
    bw_context *ctx;
    atomic_int begun, told;
} endless;

static bool wait_for_ever(void *user, bw_sample *sample, void *const *values)
{
    endless *e = user;
    (void)values;
    atomic_fetch_add(&e->begun, 1);
    while (!bw_sample_cancelled(sample)) {
        sched_yield();
    }
    atomic_fetch_add(&e->told, 1);
    return false;
}

static void *cancel_endless(void *user)
{
    endless *e = user;
    while (atomic_load(&e->begun) == 0) {
        sched_yield();
    }
    bw_cancel(e->ctx);
    return NULL;
}

static void test_functions_are_told(void **state)
{
    (void)state;
    endless e = {.ctx = bw_open(NULL)};
    const bw_field fields[] = {{"x", {.dtype = BW_F32, .ndim = 2, .shape = {8, 3}}},
                               {"y", {.dtype = BW_F32, .ndim = 1, .shape = {8}}}};
    bw_dataset *data = bw_from_function(e.ctx, fields, 2, wait_for_ever, &e);
    bw_model *model = bw_model_parse(e.ctx, "dense(1)");
    check_ok(e.ctx, bw_compile(model, "sgd", "mse", NULL));
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, cancel_endless, &e), 0);
    check_fails(e.ctx, bw_fit(model, data, NULL, NULL), BW_CANCELLED, "cancelled");
    pthread_join(thread, NULL);
    bw_close(e.ctx);
    assert_true(atomic_load(&e.told) > 0);
    assert_int_equal(atomic_load(&e.told), atomic_load(&e.begun));
}

/* ---- Within a tile ---- */

typedef struct within {
    bw_context *ctx;
    size_t width;
    bool cancels;
    atomic_int passes; /* of the second operator */
} within;

static int same_shape(void *user, int inputs, const int *ndims, const int64_t *const *shapes, int64_t *shape)
{
    (void)user, (void)inputs;
    memcpy(shape, shapes[0], (size_t)ndims[0] * sizeof *shape);
    return ndims[0];
}

static bool cancel_forward(void *user, int64_t samples, const float *const *src, float *dst)
{
    const within *w = user;
    memcpy(dst, src[0], (size_t)samples * w->width * sizeof *dst);
    if (w->cancels) {
        bw_cancel(w->ctx);
    }
    return true;
}

static bool count_forward(void *user, int64_t samples, const float *const *src, float *dst)
{
    within *w = user;
    memcpy(dst, src[0], (size_t)samples * w->width * sizeof *dst);
    atomic_fetch_add(&w->passes, 1);
    return true;
}

static bool pass_back(void *user, int64_t samples, const float *const *src, const float *dst, const float *diff_dst,
                      float *const *diff_src)
{
    const within *w = user;
    (void)src, (void)dst;
    if (diff_src[0]) {
        memcpy(diff_src[0], diff_dst, (size_t)samples * w->width * sizeof *diff_dst);
    }
    return true;
}

/* A single tile may take seconds: what follows within it is not computed any more, and the model stays as it was. */
static void check_within(int workers, int64_t width, const char *first)
{
    enum { SAMPLES = 64, MOST = 1024 };
    static float x[SAMPLES * MOST] = {1, 2, 3, 4, 5, 6}, y[SAMPLES];
    bw_context_options opening = BW_CONTEXT_OPTIONS_DEFAULT;
    opening.workers = workers;
    within w = {.ctx = bw_open(&opening), .width = (size_t)width, .cancels = true};
    bw_operator cancels = {.size = sizeof cancels, .name = "cancels", .shape = same_shape, .forward = cancel_forward, .user = &w};
    bw_operator counts = {.size = sizeof counts, .name = "counts", .shape = same_shape, .forward = count_forward, .user = &w};
    cancels.backward = counts.backward = pass_back;
    bw_model *model = bw_model_new(w.ctx);
    bw_node *node = bw_layer(bw_input(model, "x", BW_F32, 1, &width), first);
    node = bw_custom(&counts, (bw_node *[]){bw_custom(&cancels, &node, 1)}, 1);
    check_ok(w.ctx, bw_output(bw_layer(node, "dense(1)"), NULL));
    check_ok(w.ctx, bw_compile(model, "sgd", "mse", NULL));
    bw_array inputs = {.data = x, .dtype = BW_F32, .ndim = 2, .shape = {SAMPLES, width}};
    bw_array targets = {.data = y, .dtype = BW_F32, .ndim = 1, .shape = {SAMPLES}};
    bw_dataset *data = bw_from_arrays(w.ctx, &inputs, &targets, NULL);
    bw_fit_options options = BW_FIT_OPTIONS_DEFAULT;
    options.batch = SAMPLES;
    check_ok(w.ctx, bw_build(model, 0, NULL, 1));
    uint64_t before = bw_model_hash(model);
    check_fails(w.ctx, bw_fit(model, data, &options, NULL), BW_CANCELLED, "cancelled");
    assert_int_equal(w.passes, 0);
    assert_true(bw_model_hash(model) == before);
    w.cancels = false;
    check_ok(w.ctx, bw_fit(model, data, &options, NULL));
    assert_true(w.passes > 0);
    assert_true(bw_model_hash(model) != before);
    bw_close(w.ctx);
}

static void test_within_a_tile(void **state)
{
    (void)state;
    check_within(1, 3, "dense(3)");
}

/* Workers share each of its layers, one instruction after the other. */
static void test_within_split_layers(void **state)
{
    (void)state;
    check_within(2, 1024, "dense(1024)");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_from_a_callback),     cmocka_unit_test(test_from_the_last_callback),
        cmocka_unit_test(test_before_a_call),       cmocka_unit_test(test_from_another_thread),
        cmocka_unit_test(test_functions_are_told),  cmocka_unit_test(test_within_a_tile),
        cmocka_unit_test(test_within_split_layers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
