/*
 * Every allocation of whole runs fails once, in turn, and then every one from the nth on. Each time there is a status
 * RESOURCE_EXHAUSTED, nothing leaks, the model is as after the last step that was committed, and the program can go on.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "layer/layer.h"
#include "unit/base/faults.h"

#include <stdlib.h>
#include <string.h>

/* The second is trained on weighted samples in memory, the others on a file, the last on its pixels' values as indices. */
static const char *const models[] = {
    "conv2d(4,3,relu) maxpool2d(2) flatten dense(10,softmax)",
    "flatten dense(8) batchnorm relu dense(10,softmax)",
    "reshape(64) embedding(17,3,mask_zero=true) dense(4,relu) global_avgpool1d dense(10,softmax)",
};

enum { SAMPLES = 13, CLASSES = 10, MOST = 20000 };

static bw_fit_options fit_options(void)
{
    bw_fit_options options = BW_FIT_OPTIONS_DEFAULT;
    options.batch = 5;
    options.tile = 2;
    options.lanes = 2;
    options.validation_split = 0.3;
    return options;
}

static bw_dataset *weighted_samples(bw_context *ctx)
{
    static float pixels[SAMPLES * 64], weights[SAMPLES];
    static int32_t labels[SAMPLES];
    for (int i = 0; i < SAMPLES * 64; i++) {
        pixels[i] = (float)((i * 7919) % 1000) / 1000;
    }
    for (int i = 0; i < SAMPLES; i++) {
        labels[i] = i % CLASSES;
        weights[i] = (float)(i % 3);
    }
    bw_array x = {.data = pixels, .dtype = BW_F32, .ndim = 4, .shape = {SAMPLES, 8, 8, 1}};
    bw_array y = {.data = labels, .dtype = BW_I32, .ndim = 1, .shape = {SAMPLES}};
    bw_array w = {.data = weights, .dtype = BW_F32, .ndim = 1, .shape = {SAMPLES}};
    return bw_from_arrays(ctx, &x, &y, &w);
}

static bw_dataset *samples_for(bw_context *ctx, const char *text)
{
    if (text == models[1]) {
        return weighted_samples(ctx);
    }
    bw_read_options options = BW_READ_OPTIONS_DEFAULT;
    options.scale = text == models[2] ? 1 : 1.0 / 16;
    return bw_take(bw_shuffle(bw_read(ctx, BW_DATA "/digits.npz", &options), 1), SAMPLES);
}

/* Allocation and release may come from several threads. */
typedef struct guarded {
    faults faults;
    atomic_flag busy;
} guarded;

static void *allocate(void *user, size_t bytes, size_t alignment)
{
    guarded *g = user;
    while (atomic_flag_test_and_set(&g->busy)) {
    }
    void *memory = faults_allocate(&g->faults, bytes, alignment);
    atomic_flag_clear(&g->busy);
    return memory;
}

static void release(void *user, void *memory, size_t bytes)
{
    guarded *g = user;
    while (atomic_flag_test_and_set(&g->busy)) {
    }
    faults_release(&g->faults, memory, bytes);
    atomic_flag_clear(&g->busy);
}

static bw_context *open_context(guarded *g, int workers)
{
    bw_allocator allocator = {.user = g, .allocate = allocate, .release = release};
    bw_context_options options = BW_CONTEXT_OPTIONS_DEFAULT;
    options.allocator = &allocator;
    options.workers = workers;
    return bw_open(&options);
}

/* ---- From opening to closing ---- */

/* The first status that is not BW_OK; a user's program would stop there. */
static bw_status train_and_predict(bw_context *ctx, const char *text, uint64_t *hash)
{
    bw_dataset *data = samples_for(ctx, text);
    bw_model *model = bw_model_parse(ctx, text);
    bw_fit_options options = fit_options();
    bw_history *history = NULL;
    bw_status status = model ? bw_compile(model, "sgd(0.1,momentum=0.9)", NULL, "accuracy") : BW_OK;
    if (status == BW_OK && (model || data)) {
        status = bw_fit(model, data, &options, &history);
    } else if (status == BW_OK) {
        status = BW_INVALID_ARGUMENT; /* nothing is left that knows the context */
    }
    float predictions[SAMPLES * CLASSES];
    if (status == BW_OK) {
        status = bw_predict(model, data, predictions, SAMPLES * CLASSES);
    }
    bw_history *result = NULL;
    if (status == BW_OK) {
        status = bw_evaluate(model, data, &result);
    }
    if (status == BW_OK) {
        assert_int_equal(bw_history_epochs(history), 1);
        assert_int_equal(bw_history_epochs(result), 1);
        *hash = bw_model_hash(model);
    }
    bool both_missing = status == BW_INVALID_ARGUMENT && !model && !data;
    return both_missing && strstr(bw_message(ctx), "allocate") ? BW_RESOURCE_EXHAUSTED : status;
}

/* Runs with the nth allocation failing; false once n is beyond the last. */
static bool run_whole(const char *text, int n, bool onwards, int workers, uint64_t expected)
{
    guarded g = {.faults = {.fail_at = n, .onwards = onwards}, .busy = ATOMIC_FLAG_INIT};
    bw_context *ctx = open_context(&g, workers);
    uint64_t hash = 0;
    bw_status status = ctx ? train_and_predict(ctx, text, &hash) : BW_RESOURCE_EXHAUSTED;
    if (g.faults.failed && status != BW_RESOURCE_EXHAUSTED) {
        fail_msg("allocation %d%s of '%s': %s: %s", n, onwards ? " and all after it" : "", text, bw_status_name(status),
                 bw_message(ctx));
    }
    if (g.faults.failed && ctx && !bw_message(ctx)[0]) {
        fail_msg("allocation %d%s of '%s': no message", n, onwards ? " and all after it" : "", text);
    }
    bw_close(ctx);
    if (g.faults.blocks || g.faults.bytes) {
        fail_msg("allocation %d%s of '%s': %lld blocks, %zu bytes leak", n, onwards ? " and all after it" : "", text,
                 (long long)g.faults.blocks, g.faults.bytes);
    }
    if (!g.faults.failed) {
        assert_int_equal(status, BW_OK);
        assert_true(hash == expected);
    }
    return g.faults.failed;
}

static uint64_t undisturbed(const char *text, int workers)
{
    bw_context *ctx = open_context(&(guarded){.busy = ATOMIC_FLAG_INIT}, workers);
    uint64_t hash = 0;
    assert_int_equal(train_and_predict(ctx, text, &hash), BW_OK);
    bw_close(ctx);
    return hash;
}

static void test_whole_runs(void **state)
{
    (void)state;
    for (size_t m = 0; m < BWI_COUNT(models); m++) {
        for (int onwards = 0; onwards < 2; onwards++) {
            uint64_t expected = undisturbed(models[m], 1);
            int n = 1;
            while (run_whole(models[m], n, onwards, 1, expected)) {
                assert_true(++n < MOST);
            }
            print_message("%s: each of %d allocations failed%s\n", models[m], n - 1, onwards ? ", with all after it" : "");
            assert_true(n > 100);
        }
    }
}

static void test_whole_runs_with_workers(void **state)
{
    (void)state;
    uint64_t expected = undisturbed(models[0], 2);
    assert_true(expected == undisturbed(models[0], 1));
    for (int n = 1; run_whole(models[0], n, false, 2, expected); n += 7) {
        assert_true(n < MOST);
    }
}

/* ---- A failure in the middle of a program that goes on ---- */

typedef struct program {
    guarded memory;
    bw_context *ctx;
    bw_dataset *data;
    bw_model *model;
    uint64_t committed; /* the model after the last step */
    int steps;
} program;

static bool on_step(void *user, const bw_progress *progress)
{
    program *p = user;
    (void)progress;
    p->committed = bw_model_hash(p->model);
    p->steps++;
    return true;
}

static bw_status fit(program *p)
{
    bw_fit_options options = fit_options();
    options.on_step = on_step;
    options.user = p;
    bw_history *history = NULL;
    bw_status status = bw_fit(p->model, p->data, &options, &history);
    bw_history_free(history);
    return status;
}

static bw_status predict(program *p)
{
    float predictions[SAMPLES * CLASSES];
    return bw_predict(p->model, p->data, predictions, SAMPLES * CLASSES);
}

static bw_status evaluate(program *p)
{
    bw_history *history = NULL;
    bw_status status = bw_evaluate(p->model, p->data, &history);
    bw_history_free(history);
    return status;
}

/* A loop of one's own: one update from two batches. */
static bw_status step_by_hand(program *p)
{
    bw_iterator *iterator = bw_iterate(p->data, 0);
    bw_fit_options options = fit_options();
    bw_gradients *gradients = bw_gradients_new(p->model, &options);
    bw_batch *batch = NULL;
    double loss;
    bw_status status = iterator ? bw_next(iterator, &batch) : bw_compile(p->model, "sgd", NULL, NULL);
    for (int k = 0; k < 2 && status == BW_OK; k++) {
        status = gradients ? bw_gradients_add(gradients, batch, &loss) : bwi_pending(p->ctx);
    }
    if (status == BW_OK) {
        status = bw_apply(p->model, gradients);
    }
    if (status == BW_OK) {
        p->committed = bw_model_hash(p->model);
        p->steps++;
    }
    bw_gradients_free(gradients);
    bw_iterator_free(iterator);
    return status;
}

/* Looks at data and model, and makes updates on trial if there is time for them. */
static bw_status examine(program *p, double seconds)
{
    bw_fit_options fitting = fit_options();
    bw_doctor_options options = BW_DOCTOR_OPTIONS_DEFAULT;
    bw_findings *findings = NULL;
    options.training = &fitting;
    options.seconds = seconds;
    bw_status status = bw_doctor(p->model, p->data, &options, &findings);
    bw_findings_free(findings);
    return status;
}

static bw_status examine_data(program *p)
{
    return examine(p, 0);
}

static void open_program(program *p, const char *text)
{
    *p = (program){.memory = {.busy = ATOMIC_FLAG_INIT}};
    p->ctx = open_context(&p->memory, 1);
    p->data = samples_for(p->ctx, text);
    p->model = bw_model_parse(p->ctx, text);
    assert_int_equal(bw_compile(p->model, "adam", NULL, NULL), BW_OK);
    assert_int_equal(fit(p), BW_OK);
    assert_true(p->committed == bw_model_hash(p->model));
}

static void close_program(program *p)
{
    bw_close(p->ctx);
    assert_int_equal(p->memory.faults.blocks, 0);
    assert_int_equal(p->memory.faults.bytes, 0);
}

/* The call with each of its allocations failing, until it succeeds; then the model must be the one of a program that
 * never met a failure. */
static void fail_each(const char *text, const char *name, bw_status (*call)(program *p), bool onwards)
{
    program calm, p;
    open_program(&calm, text);
    assert_int_equal(call(&calm), BW_OK);
    open_program(&p, text);
    int n = 1;
    for (;; n++) {
        size_t held = bwi_allocated_bytes(p.ctx);
        uint64_t before = bw_model_hash(p.model);
        int steps = p.steps;
        p.memory.faults =
            (faults){.blocks = p.memory.faults.blocks, .bytes = p.memory.faults.bytes, .fail_at = n, .onwards = onwards};
        bw_status status = call(&p);
        bool failed = p.memory.faults.failed;
        p.memory.faults.fail_at = 0;
        if (!failed) {
            assert_int_equal(status, BW_OK);
            break;
        }
        (void)bw_message(p.ctx); /* the failure was meant */
        if (status != BW_RESOURCE_EXHAUSTED || bwi_allocated_bytes(p.ctx) != held) {
            fail_msg("%s of '%s', allocation %d: %s: %s; held %zu bytes before, %zu after", name, text, n, bw_status_name(status),
                     bw_message(p.ctx), held, bwi_allocated_bytes(p.ctx));
        }
        assert_true(bw_model_hash(p.model) == p.committed);
        /* The plan is made, and all memory taken, before the first step. */
        assert_int_equal(p.steps, steps);
        assert_true(p.committed == before);
        assert_true(n < MOST);
    }
    assert_true(n > 10);
    assert_true(bw_model_hash(p.model) == bw_model_hash(calm.model));
    assert_int_equal(predict(&p), BW_OK);
    close_program(&calm);
    close_program(&p);
}

static void test_programs_go_on(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        bw_status (*call)(program *p);
    } calls[] = {{"fit", fit}, {"predict", predict}, {"evaluate", evaluate}, {"gradients", step_by_hand}, {"doctor", examine_data}};
    for (size_t m = 0; m < BWI_COUNT(models); m++) {
        for (size_t c = 0; c < BWI_COUNT(calls); c++) {
            fail_each(models[m], calls[c].name, calls[c].call, false);
            fail_each(models[m], calls[c].name, calls[c].call, true);
        }
    }
}

/* Updates on trial take thousands of allocations, so only some of them fail here. The model stays as it was in any case. */
static void test_trials(void **state)
{
    (void)state;
    enum { STEP = 61 };
    program p;
    open_program(&p, models[1]);
    assert_int_equal(examine(&p, 60), BW_OK);
    assert_true(bw_model_hash(p.model) == p.committed);
    bool failed = true;
    for (int n = 1; failed; n += STEP) {
        size_t held = bwi_allocated_bytes(p.ctx);
        p.memory.faults = (faults){.blocks = p.memory.faults.blocks, .bytes = p.memory.faults.bytes, .fail_at = n};
        bw_status status = examine(&p, 60);
        failed = p.memory.faults.failed;
        p.memory.faults.fail_at = 0;
        (void)bw_message(p.ctx);
        if (status != (failed ? BW_RESOURCE_EXHAUSTED : BW_OK) || bwi_allocated_bytes(p.ctx) != held) {
            fail_msg("allocation %d: %s; held %zu bytes before, %zu after", n, bw_status_name(status), held,
                     bwi_allocated_bytes(p.ctx));
        }
        assert_true(bw_model_hash(p.model) == p.committed);
        assert_true(n < MOST);
    }
    close_program(&p);
}

static bw_status compile_and_build(bw_model *model)
{
    bw_status status = bw_compile(model, "adam(lr=0.01)", "sparse_categorical_crossentropy", "accuracy");
    return status == BW_OK ? bw_build(model, 3, (const int64_t[]){8, 8, 1}, 1) : status;
}

/* Compiling and building can be tried again; the values are those of a build that never failed. */
static void test_compile_and_build(void **state)
{
    (void)state;
    uint64_t expected = 0;
    for (int n = 0;; n++) {
        guarded g = {.busy = ATOMIC_FLAG_INIT};
        bw_context *ctx = open_context(&g, 1);
        bw_model *model = bw_model_parse(ctx, models[0]);
        g.faults.calls = 0;
        g.faults.fail_at = n; /* 0: none */
        bw_status status = compile_and_build(model);
        bool failed = g.faults.failed;
        g.faults.fail_at = 0;
        assert_int_equal(status, failed ? BW_RESOURCE_EXHAUSTED : BW_OK);
        if (failed) {
            float values[36];
            (void)bw_message(ctx); /* the failure was meant, and so is the next one */
            assert_int_equal(bw_variable_get(model, bw_variable_count(model) - 1, values, CLASSES), BW_INVALID_ARGUMENT);
            (void)bw_model_hash(model);
            (void)bw_message(ctx);
            assert_int_equal(compile_and_build(model), BW_OK);
        }
        assert_int_equal(bw_variable_count(model), 4);
        expected = n ? expected : bw_model_hash(model);
        assert_true(bw_model_hash(model) == expected);
        bw_close(ctx);
        assert_int_equal(g.faults.blocks, 0);
        if (n && !failed) {
            assert_true(n > 10);
            return;
        }
    }
}

/* A hash needs no memory, however large the model is. */
static void test_hash(void **state)
{
    (void)state;
    program p;
    open_program(&p, models[0]);
    uint64_t hash = bw_model_hash(p.model);
    assert_true(hash != 0);
    p.memory.faults.calls = 0;
    assert_true(bw_model_hash(p.model) == hash);
    assert_int_equal(p.memory.faults.calls, 0);
    close_program(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_whole_runs), cmocka_unit_test(test_whole_runs_with_workers), cmocka_unit_test(test_programs_go_on),
        cmocka_unit_test(test_trials),     cmocka_unit_test(test_compile_and_build),       cmocka_unit_test(test_hash),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
