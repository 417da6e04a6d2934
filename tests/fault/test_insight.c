/*
 * Allocations of bw_tune and bw_doctor fail in turn. Each time there is a status RESOURCE_EXHAUSTED with a message, or the call did
 * without the memory; the model is as it was, it can be trained, and nothing leaks. How many allocations there are depends on the
 * clock, so beyond the first ones only some fail.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "unit/base/faults.h"

#include <string.h>

enum { SAMPLES = 64, INPUTS = 4, EVERY = 40, MOST = 1 << 20 };

static float x[SAMPLES][INPUTS];
static int32_t y[SAMPLES];

static bw_dataset *make_data(bw_context *ctx)
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

static bw_status tune(bw_model *model, bw_dataset *data)
{
    bw_tune_options options = BW_TUNE_OPTIONS_DEFAULT;
    bw_tuning *tuning = NULL;
    options.seconds = 0.005;
    options.confirm = 0.001;
    options.tiles = true;
    options.largest = 64;
    return bw_tune(model, data, &options, &tuning);
}

static bw_status look(bw_model *model, bw_dataset *data)
{
    bw_doctor_options options = BW_DOCTOR_OPTIONS_DEFAULT;
    bw_findings *findings = NULL;
    options.seconds = 0.005;
    return bw_doctor(model, data, &options, &findings);
}

/* Runs with the nth allocation of the call failing; false once n is beyond the last. */
static bool run(bw_status (*call)(bw_model *, bw_dataset *), const char *name, int n)
{
    faults f = {0};
    bw_context *ctx = faults_context(&f, NULL, 1);
    bw_model *model = bw_model_parse(ctx, "dense(4,relu) dense(3,softmax)");
    bw_dataset *data = make_data(ctx);
    bw_fit_options fit = BW_FIT_OPTIONS_DEFAULT;
    assert_int_equal(bw_compile(model, "adam", NULL, NULL), BW_OK);
    assert_int_equal(bw_fit(model, data, &fit, NULL), BW_OK);
    uint64_t before = bw_model_hash(model);
    f.fail_at = f.calls + n;
    bw_status status = call(model, data);
    bool failed = f.failed;
    f.fail_at = 0;
    if (status != BW_OK && (status != BW_RESOURCE_EXHAUSTED || !failed || !bw_message(ctx)[0])) {
        fail_msg("%s: allocation %d: %s: %s", name, n, bw_status_name(status), bw_message(ctx));
    }
    if (bw_model_hash(model) != before) {
        fail_msg("%s: allocation %d: the model has changed", name, n);
    }
    if (bw_fit(model, data, &fit, NULL) != BW_OK) {
        fail_msg("%s: allocation %d: training afterwards: %s", name, n, bw_message(ctx));
    }
    bw_close(ctx);
    if (f.blocks || f.bytes) {
        fail_msg("%s: allocation %d: %lld blocks, %zu bytes leak", name, n, (long long)f.blocks, f.bytes);
    }
    return failed;
}

static void run_all(bw_status (*call)(bw_model *, bw_dataset *), const char *name)
{
    int n = 1;
    while (n < MOST && run(call, name, n)) {
        n += 1 + (n > EVERY ? n / 12 : 0);
    }
    assert_true(n > EVERY);
}

static void test_tune(void **state)
{
    (void)state;
    run_all(tune, "bw_tune");
}

static void test_doctor(void **state)
{
    (void)state;
    run_all(look, "bw_doctor");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_tune), cmocka_unit_test(test_doctor)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
