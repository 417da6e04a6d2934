/*
 * Updates that would not be finite although their gradients are: refused as a whole, with the sample or the variable that is at
 * fault, and training goes on as if they had not been tried. What is large but fits is updated.
 */
#include "support/planned.h"

#include <math.h>
#include <string.h>

enum { SAMPLES = 12, INPUTS = 5, BAD = 7, MOST = 512 };

static float x[SAMPLES][INPUTS], y[SAMPLES];

static bw_dataset *data_of(bw_context *ctx, float bad)
{
    for (int s = 0; s < SAMPLES; s++) {
        for (int i = 0; i < INPUTS; i++) {
            x[s][i] = sinf((float)(s * INPUTS + i));
        }
        y[s] = (float)(s % 3);
    }
    x[BAD][2] = bad;
    bw_array inputs = {.data = x, .dtype = BW_F32, .ndim = 2, .shape = {SAMPLES, INPUTS}};
    bw_array targets = {.data = y, .dtype = BW_F32, .ndim = 1, .shape = {SAMPLES}};
    return bw_from_arrays(ctx, &inputs, &targets, NULL);
}

static int values_of(const bw_model *model, float *values)
{
    int count = 0;
    for (int v = 0; v < bw_variable_count(model); v++) {
        int64_t shape[BW_MAX_NDIM];
        size_t own = 1;
        for (int axes = bw_variable_shape(model, v, shape); axes > 0; axes--) {
            own *= (size_t)shape[axes - 1];
        }
        assert_true((size_t)count + own <= MOST);
        assert_int_equal(bw_variable_get(model, v, values + count, own), BW_OK);
        count += (int)own;
    }
    return count;
}

static bw_model *model_of(bw_context *ctx, const char *expression, const char *optimizer, const char *loss)
{
    bw_model *model = bw_model_parse(ctx, expression);
    assert_int_equal(bw_compile(model, optimizer, loss, NULL), BW_OK);
    assert_int_equal(bw_build(model, 1, (const int64_t[]){INPUTS}, 3), BW_OK);
    return model;
}

/* A step on good data, one that is refused, and another: the same bits as without the second. */
static void check_refused(const char *optimizer, float bad, const char *message)
{
    float found[MOST], expected[MOST];
    bw_fit_options options = BW_FIT_OPTIONS_DEFAULT;
    options.batch = SAMPLES;
    options.epochs = 2;
    for (int tried = 0; tried < 2; tried++) {
        bw_context *ctx = bw_open(NULL);
        bw_model *model = model_of(ctx, "dense(4,linear) dense(3)", optimizer, "sparse_categorical_crossentropy(from_logits=true)");
        assert_int_equal(bw_fit(model, data_of(ctx, 1), &options, NULL), BW_OK);
        if (tried) {
            float before[MOST];
            values_of(model, before);
            check_fails(ctx, bw_fit(model, data_of(ctx, bad), &options, NULL), BW_INVALID_ARGUMENT, message);
            int count = values_of(model, found);
            assert_memory_equal(found, before, (size_t)count * sizeof *found);
        }
        assert_int_equal(bw_fit(model, data_of(ctx, 1), &options, NULL), BW_OK);
        int count = values_of(model, tried ? found : expected);
        for (int i = 0; i < count; i++) {
            assert_true(isfinite(tried ? found[i] : expected[i]));
        }
        bw_close(ctx);
    }
    assert_memory_equal(found, expected, 39 * sizeof *expected); /* two dense layers' */
}

static void test_sample_is_named(void **state)
{
    (void)state;
    static const char *const optimizers[] = {"adam",    "adam(amsgrad=true)", "adamw", "rmsprop(momentum=0.5,centered=true)",
                                             "adagrad", "adadelta",           "nadam", "adam(use_ema=true)"};
    for (size_t k = 0; k < sizeof optimizers / sizeof *optimizers; k++) {
        check_refused(optimizers[k], 1e25F, "sample 7|numbers beyond 1e18");
    }
}

/* Where no sample is at fault the variable is named: here the program has scaled the gradients. */
static void test_variable_is_named(void **state)
{
    (void)state;
    float values[MOST], before[MOST];
    bw_context *ctx = bw_open(NULL);
    bw_model *model = model_of(ctx, "dense(4,linear) dense(1)", "adam", "mse");
    bw_gradients *gradients = bw_gradients_new(model, NULL);
    bw_iterator *iterator = bw_iterate(data_of(ctx, 1), 0);
    bw_batch *batch;
    values_of(model, before);
    for (int k = 0; k < 2; k++) {
        check_ok(ctx, bw_next(iterator, &batch));
        check_ok(ctx, bw_gradients_add(gradients, batch, NULL));
        bw_iterator_free(iterator);
        iterator = bw_iterate(data_of(ctx, 1), 0);
        if (k == 0) {
            check_ok(ctx, bw_gradients_scale(gradients, 1e30));
            check_fails(ctx, bw_apply(model, gradients), BW_INVALID_ARGUMENT,
                        "the update of dense/kernel would not be finite|nothing was changed|learning rate");
            int count = values_of(model, values);
            assert_memory_equal(values, before, (size_t)count * sizeof *values);
        } else {
            check_ok(ctx, bw_apply(model, gradients));
        }
    }
    bw_close(ctx);
}

/* Whatever stops a training that diverges, weights stay finite. */
static void test_divergence(void **state)
{
    (void)state;
    float values[MOST];
    bw_context *ctx = bw_open(NULL);
    bw_model *model = model_of(ctx, "dense(4,linear) dense(1)", "sgd(lr=3,momentum=0.9)", "mse");
    bw_fit_options options = BW_FIT_OPTIONS_DEFAULT;
    options.epochs = 100;
    check_fails(ctx, bw_fit(model, data_of(ctx, 1e3F), &options, NULL), BW_INVALID_ARGUMENT, "");
    int count = values_of(model, values);
    for (int i = 0; i < count; i++) {
        assert_true(isfinite(values[i]));
    }
    bw_close(ctx);
}

/* Large is not too large: SGD has no squares. */
static void test_large_fits(void **state)
{
    (void)state;
    float values[MOST];
    bw_context *ctx = bw_open(NULL);
    bw_model *model = model_of(ctx, "dense(1)", "sgd(lr=1e-30)", "mae");
    assert_int_equal(bw_fit(model, data_of(ctx, 1e30F), NULL, NULL), BW_OK);
    int count = values_of(model, values);
    for (int i = 0; i < count; i++) {
        assert_true(isfinite(values[i]));
    }
    bw_close(ctx);
}

static void test_statistics(void **state)
{
    (void)state;
    float values[MOST], before[MOST];
    bw_context *ctx = bw_open(NULL);
    bw_model *model = model_of(ctx, "batchnorm dense(1)", "sgd", "mse");
    values_of(model, before);
    check_fails(ctx, bw_fit(model, data_of(ctx, 1e25F), NULL, NULL), BW_INVALID_ARGUMENT, "sample 7");
    int count = values_of(model, values);
    assert_memory_equal(values, before, (size_t)count * sizeof *values);
    bw_close(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_sample_is_named), cmocka_unit_test(test_variable_is_named),
                                       cmocka_unit_test(test_divergence), cmocka_unit_test(test_large_fits),
                                       cmocka_unit_test(test_statistics)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
