/* Normalization layers are fitted to the training part; means and variances are those that Keras's adapt gives (JAX, float32). */
#include "base/base.h"
#include "support/check.h"

#include <batchwise.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 7, IMAGES = 5 };

static const float rows[ROWS][3] = {{1000.5F, -3, 7}, {1001.25F, -3.5F, 7}, {999, 2, 7},    {1004, 0.25F, 7},
                                    {998.5F, -1, 7},  {1000, 8, 7},         {1002, 1.5F, 7}};
static const int32_t classes[ROWS] = {0, 1, 0, 1, 0, 1, 0};

typedef struct told {
    int warnings;
    char last[512];
} told;

static void on_log(void *user, bw_log_level level, const char *message)
{
    told *t = user;
    t->warnings += level == BW_LOG_WARNING;
    snprintf(t->last, sizeof t->last, "%s", message);
}

static bw_context *open_told(told *t, int workers)
{
    bw_context_options options = BW_CONTEXT_OPTIONS_DEFAULT;
    *t = (told){0};
    options.log = on_log;
    options.log_user = t;
    options.workers = workers;
    return bw_open(&options);
}

static bw_dataset *table(bw_context *ctx)
{
    bw_array x = {.data = rows, .dtype = BW_F32, .ndim = 2, .shape = {ROWS, 3}};
    bw_array y = {.data = classes, .dtype = BW_I32, .ndim = 1, .shape = {ROWS}};
    return bw_from_arrays(ctx, &x, &y, NULL);
}

/* The variable with this name: in Keras a relative error of 1e-6 is rounding. */
static void assert_values(const bw_model *model, const char *name, const float *expected, size_t count)
{
    int index = 0;
    float found[16];
    while (index < bw_variable_count(model) && strcmp(bw_variable_name(model, index), name) != 0) {
        index++;
    }
    assert_int_equal(bw_variable_get(model, index, found, count), BW_OK);
    for (size_t i = 0; i < count; i++) {
        if (!(fabs((double)found[i] - (double)expected[i]) <= 2e-6 * fabs((double)expected[i]))) {
            fail_msg("%s[%zu] is %.9g, expected %.9g", name, i, (double)found[i], (double)expected[i]);
        }
    }
}

static void test_keras(void **state)
{
    (void)state;
    static const float mean[] = {1000.75F, 0.607142866F, 7}, variance[] = {3.017857F, 12.854592F, 0};
    static const float one_mean = 336.11905F, one_variance = 220879.27F;
    told t;
    bw_context *ctx = open_told(&t, 2);
    bw_model *each = bw_model_parse(ctx, "normalization dense(2,softmax)");
    bw_model *one = bw_model_parse(ctx, "normalization(axis=none) dense(2,softmax)");
    check_ok(ctx, bw_fit(each, table(ctx), NULL, NULL));
    assert_values(each, "normalization/mean", mean, 3);
    assert_values(each, "normalization/variance", variance, 3);
    check_ok(ctx, bw_adapt(one, table(ctx)));
    assert_values(one, "normalization/mean", &one_mean, 1);
    assert_values(one, "normalization/variance", &one_variance, 1);
    assert_int_equal(t.warnings, 0);
    bw_close(ctx);
}

/* Images as bytes, behind layers that only prepare; a layer behind another sees what that gives: mean 0 and variance 1. */
static void test_images(void **state)
{
    (void)state;
    static const float mean[] = {46.266666F, 49.6F, 52.8F, 49.4F}, variance[] = {846.3289F, 841.83997F, 847.2267F, 841.83997F};
    uint8_t pixels[IMAGES * 12];
    told t;
    bw_context *ctx = open_told(&t, 2);
    for (int i = 0; i < IMAGES * 12; i++) {
        pixels[i] = (uint8_t)(i * 37 % 101);
    }
    bw_array x = {.data = pixels, .dtype = BW_U8, .ndim = 4, .shape = {IMAGES, 2, 3, 2}};
    bw_array y = {.data = classes, .dtype = BW_I32, .ndim = 1, .shape = {IMAGES}};
    bw_model *model = bw_model_parse(
        ctx, "rescaling(2) rescaling(0.5) normalization(axis=(1,3)) normalization(axis=none) flatten dense(2,softmax)");
    check_ok(ctx, bw_adapt(model, bw_from_arrays(ctx, &x, &y, NULL)));
    assert_values(model, "normalization/mean", mean, 4);
    assert_values(model, "normalization/variance", variance, 4);
    float second[2];
    check_ok(ctx, bw_variable_get(model, 3, &second[0], 1));
    check_ok(ctx, bw_variable_get(model, 4, &second[1], 1));
    assert_true(fabs((double)second[0]) < 1e-6 && fabs((double)second[1] - 1) < 1e-6);
    bw_close(ctx);
}

/* Of a split only the training part counts: the first four rows. */
static void test_training_part(void **state)
{
    (void)state;
    static const float mean[] = {1001.1875F, -1.0625F, 7};
    told t;
    bw_context *ctx = open_told(&t, 1);
    bw_fit_options options = BW_FIT_OPTIONS_DEFAULT;
    bw_model *model = bw_model_parse(ctx, "normalization dense(2,softmax)");
    options.validation_split = 0.4;
    check_ok(ctx, bw_fit(model, table(ctx), &options, NULL));
    assert_values(model, "normalization/mean", mean, 3);
    check_ok(ctx, bw_fit(model, table(ctx), NULL, NULL)); /* fitted once: later data leaves it */
    assert_values(model, "normalization/mean", mean, 3);
    bw_close(ctx);
}

static void test_given(void **state)
{
    (void)state;
    static const float mean[] = {1, 2, 3};
    told t;
    bw_context *ctx = open_told(&t, 1);
    bw_model *model = bw_model_parse(ctx, "normalization dense(2,softmax)");
    check_ok(ctx, bw_build(model, 1, (const int64_t[]){3}, 0));
    check_ok(ctx, bw_variable_set(model, 0, mean, 3));
    check_ok(ctx, bw_fit(model, table(ctx), NULL, NULL));
    assert_values(model, "normalization/mean", mean, 3);
    bw_close(ctx);
}

/* Of a file of Keras whose layer was never adapted: what is loaded stays, and that is said. */
static void test_given_identity(void **state)
{
    (void)state;
    static const float zeros[] = {0, 0, 0}, ones[] = {1, 1, 1};
    told t;
    bw_context *ctx = open_told(&t, 1);
    bw_model *model = bw_model_parse(ctx, "normalization dense(2,softmax)");
    check_ok(ctx, bw_build(model, 1, (const int64_t[]){3}, 0));
    check_ok(ctx, bw_variable_set(model, 0, zeros, 3));
    check_ok(ctx, bw_variable_set(model, 1, ones, 3));
    check_ok(ctx, bw_fit(model, table(ctx), NULL, NULL));
    assert_values(model, "normalization/mean", zeros, 3);
    assert_int_equal(t.warnings, 1);
    bw_close(ctx);
}

/* What cannot be fitted is told of; what is not finite is refused with its sample, and leaves the layer as it was. */
static void test_others(void **state)
{
    (void)state;
    static const float none[] = {0, 0, 0};
    float bad[ROWS][3];
    told t;
    bw_context *ctx = open_told(&t, 1);
    bw_model *behind = bw_model_parse(ctx, "dense(3,relu) normalization dense(2,softmax)");
    check_ok(ctx, bw_fit(behind, table(ctx), NULL, NULL));
    assert_int_equal(t.warnings, 1);
    check_fails(ctx, bw_adapt(behind, table(ctx)), BW_INVALID_ARGUMENT, "no Normalization layer that can be fitted");
    memcpy(bad, rows, sizeof bad);
    bad[5][1] = NAN;
    bw_array x = {.data = bad, .dtype = BW_F32, .ndim = 2, .shape = {ROWS, 3}};
    bw_model *model = bw_model_parse(ctx, "normalization dense(2,softmax)");
    check_fails(ctx, bw_adapt(model, bw_from_arrays(ctx, &x, NULL, NULL)), BW_INVALID_ARGUMENT,
                "normalization|sample 5|not finite");
    assert_values(model, "normalization/mean", none, 3);
    bw_close(ctx);
}

/* A custom loop has no training part to fit to: it is told that bw_adapt is missing. */
static void test_loop(void **state)
{
    (void)state;
    told t;
    bw_context *ctx = open_told(&t, 1);
    bw_dataset *data = table(ctx);
    bw_model *model = bw_model_parse(ctx, "normalization dense(2,softmax)");
    bw_gradients *gradients = bw_gradients_new(model, NULL);
    bw_iterator *batches = bw_iterate(data, 0);
    bw_batch *batch = NULL;
    check_ok(ctx, bw_next(batches, &batch));
    check_ok(ctx, bw_gradients_add(gradients, batch, NULL));
    assert_int_equal(t.warnings, 1);
    assert_non_null(strstr(t.last, "bw_adapt"));
    bw_close(ctx);
}

/* Layers for categories take integers: another number has no bits that all machines agree on. */
static void test_no_integers(void **state)
{
    (void)state;
    static const char *const models[] = {"integer_lookup(output_mode=multi_hot,vocabulary=(1,2)) dense(2,softmax)",
                                         "integer_lookup(output_mode=multi_hot) dense(2,softmax)",
                                         "hashing(4,output_mode=multi_hot) dense(2,softmax)"};
    static const float beyond[] = {NAN, INFINITY, 0x1p63F, -0x1.000002p63F};
    for (int m = 0; m < 3; m++) {
        for (int i = 0; i < 4; i++) {
            told t;
            float numbers[ROWS] = {1, 2, 1, 2, 1, -0x1p63F, 0x1.fffffep62F}; /* the ends of the range are in it */
            bw_context *ctx = open_told(&t, 1);
            bw_array x = {.data = numbers, .dtype = BW_F32, .ndim = 2, .shape = {ROWS, 1}};
            bw_array y = {.data = classes, .dtype = BW_I32, .ndim = 1, .shape = {ROWS}};
            check_ok(ctx, bw_fit(bw_model_parse(ctx, models[m]), bw_from_arrays(ctx, &x, &y, NULL), NULL, NULL));
            numbers[3] = beyond[i];
            assert_int_equal(bw_fit(bw_model_parse(ctx, models[m]), bw_from_arrays(ctx, &x, &y, NULL), NULL, NULL),
                             BW_INVALID_ARGUMENT);
            const char *message = bw_message(ctx);
            assert_non_null(strstr(message, "sample 3"));
            assert_non_null(strstr(message, "expected an integer of 64 bits, found "));
            bw_close(ctx);
        }
    }
}

/* Where memory for tokens is short, those that occur least are forgotten, again and again, and never the frequent ones. */
static void test_rare_tokens(void **state)
{
    (void)state;
    enum { SAMPLES = 20000, FREQUENT = 4 };
    static int32_t x[SAMPLES];
    static float y[SAMPLES];
    for (int i = 0; i < SAMPLES; i++) {
        x[i] = i % 4 ? 1000 + i : 1 + i / 4 % FREQUENT;
    }
    told t;
    bw_context *ctx = open_told(&t, 1);
    ctx->backing_limit = 1 << 16;
    bw_array inputs = {.data = x, .dtype = BW_I32, .ndim = 2, .shape = {SAMPLES, 1}};
    bw_array targets = {.data = y, .dtype = BW_F32, .ndim = 1, .shape = {SAMPLES}};
    bw_model *model = bw_model_parse(ctx, "integer_lookup(max_tokens=5,output_mode=multi_hot) dense(1)");
    check_ok(ctx, bw_adapt(model, bw_from_arrays(ctx, &inputs, &targets, NULL)));
    const char *found = strstr(t.last, "too low by up to ");
    assert_non_null(found);
    long lost = strtol(found + strlen("too low by up to "), NULL, 10);
    assert_in_range(lost, 1, SAMPLES / 4 / FREQUENT - 1); /* fewer than a frequent token has, so none of these was lost */
    bw_close(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_keras), cmocka_unit_test(test_images),         cmocka_unit_test(test_training_part),
        cmocka_unit_test(test_given), cmocka_unit_test(test_given_identity), cmocka_unit_test(test_others),
        cmocka_unit_test(test_loop),  cmocka_unit_test(test_no_integers),    cmocka_unit_test(test_rare_tokens),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
