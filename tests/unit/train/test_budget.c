/* The context's budget: evaluation and prediction keep to it, and so does training whose options give none of their own. */
#include "support/check.h"

#include <batchwise.h>
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>

enum { SAMPLES = 40, SIDE = 24, CHANNELS = 2, CLASSES = 10 };

/* An allocator that knows the most that was held at once. */
typedef struct meter {
    atomic_size_t held, most;
} meter;

static void *allocate(void *user, size_t bytes, size_t alignment)
{
    meter *m = user;
    size_t held = atomic_fetch_add(&m->held, bytes) + bytes, most = atomic_load(&m->most);
    while (held > most && !atomic_compare_exchange_weak(&m->most, &most, held)) {
    }
    return aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
}

static void release(void *user, void *memory, size_t bytes)
{
    meter *m = user;
    atomic_fetch_sub(&m->held, bytes);
    free(memory);
}

typedef struct setting {
    meter meter;
    bw_context *ctx;
    bw_dataset *data;
    bw_model *model;
} setting;

static void open_setting(setting *s, size_t memory)
{
    static float x[SAMPLES * SIDE * SIDE * CHANNELS];
    static int32_t y[SAMPLES];
    for (int i = 0; i < SAMPLES * SIDE * SIDE * CHANNELS; i++) {
        x[i] = (float)(i * 7919 % 1000) / 1000;
    }
    for (int i = 0; i < SAMPLES; i++) {
        y[i] = i % CLASSES;
    }
    bw_array inputs = {.data = x, .dtype = BW_F32, .ndim = 4, .shape = {SAMPLES, SIDE, SIDE, CHANNELS}};
    bw_array targets = {.data = y, .dtype = BW_I32, .ndim = 1, .shape = {SAMPLES}};
    bw_allocator allocator = {.user = &s->meter, .allocate = allocate, .release = release};
    bw_context_options options = BW_CONTEXT_OPTIONS_DEFAULT;
    options.allocator = &allocator;
    options.workers = 2;
    options.memory = memory;
    atomic_init(&s->meter.held, 0);
    atomic_init(&s->meter.most, 0);
    s->ctx = bw_open(&options);
    s->data = bw_from_arrays(s->ctx, &inputs, &targets, NULL);
    s->model = bw_model_parse(s->ctx, "input(24,24,2) conv2d(16,3,relu) conv2d(16,3,relu) flatten dense(10,softmax)");
    check_ok(s->ctx, bw_compile(s->model, "sgd", NULL, NULL));
    check_ok(s->ctx, bw_build(s->model, 0, NULL, 7));
}

/* Bytes that predicting and evaluating take at most, parameters included. */
static size_t infer(setting *s, float *predictions, double *loss)
{
    size_t parameters = 0;
    for (int v = 0; v < bw_variable_count(s->model); v++) {
        int64_t shape[BW_MAX_NDIM], count = 1;
        int ndim = bw_variable_shape(s->model, v, shape);
        for (int i = 0; i < ndim; i++) {
            count *= shape[i];
        }
        parameters += (size_t)count * sizeof(float);
    }
    size_t before = atomic_load(&s->meter.held);
    atomic_store(&s->meter.most, before);
    bw_history *history;
    check_ok(s->ctx, bw_predict(s->model, s->data, predictions, (size_t)SAMPLES * CLASSES));
    check_ok(s->ctx, bw_evaluate(s->model, s->data, &history));
    *loss = bw_history_last(history, "loss");
    return parameters + atomic_load(&s->meter.most) - before;
}

static void test_inference_keeps_to_it(void **state)
{
    (void)state;
    static float free_predictions[SAMPLES * CLASSES], predictions[SAMPLES * CLASSES];
    double free_loss, loss;
    setting s;
    open_setting(&s, 0);
    size_t wanted = infer(&s, free_predictions, &free_loss), budget = wanted / 2;
    bw_close(s.ctx);
    open_setting(&s, budget);
    size_t taken = infer(&s, predictions, &loss);
    assert_true(taken <= budget);
    for (int i = 0; i < SAMPLES * CLASSES; i++) {
        assert_true(fabsf(predictions[i] - free_predictions[i]) < 1e-5F);
    }
    assert_true(fabs(loss - free_loss) < 1e-5);
    bw_close(s.ctx);
}

static void test_too_small(void **state)
{
    (void)state;
    static float predictions[SAMPLES * CLASSES];
    static const char refusal[] = "memory: a budget of 4.0 KiB is too small";
    setting s;
    bw_history *history;
    open_setting(&s, 4096);
    check_fails(s.ctx, bw_predict(s.model, s.data, predictions, (size_t)SAMPLES * CLASSES), BW_RESOURCE_EXHAUSTED, refusal);
    check_fails(s.ctx, bw_evaluate(s.model, s.data, &history), BW_RESOURCE_EXHAUSTED, refusal);
    check_fails(s.ctx, bw_fit(s.model, s.data, NULL, NULL), BW_RESOURCE_EXHAUSTED, refusal);
    bw_fit_options own = BW_FIT_OPTIONS_DEFAULT;
    own.memory = (size_t)64 << 20;
    check_ok(s.ctx, bw_fit(s.model, s.data, &own, NULL));
    bw_close(s.ctx);
}

static void test_plans_know_it(void **state)
{
    (void)state;
    size_t budget = (size_t)64 << 20;
    setting s;
    open_setting(&s, budget);
    bw_plan *plan = bw_plan_make(s.model, s.data, 8, NULL);
    assert_non_null(plan);
    assert_true(bw_plan_facts(plan).budget == budget);
    bw_close(s.ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_inference_keeps_to_it),
        cmocka_unit_test(test_too_small),
        cmocka_unit_test(test_plans_know_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
