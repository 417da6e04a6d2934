/* Data that cannot be trained on: named by sample and by what is wrong, and the model is as after the last update. */
#include "support/planned.h"

#include <math.h>

static const char *const texts[] = {
    "flatten dense(10,softmax)",
    "conv2d(8,3,relu) maxpool2d(2) flatten dense(10,softmax)",
    "relu maxpool2d(2) flatten dense(10,softmax)",
    "flatten dense(8) batchnorm relu dense(10,softmax)",
    "batchnorm conv2d(4,3) batchnorm relu flatten dense(10,softmax)",
};

typedef struct steps {
    const planned *p;
    int count;
    uint64_t hash;
} steps;

static bool on_step(void *user, const bw_progress *progress)
{
    steps *s = user;
    (void)progress;
    s->count++;
    s->hash = bw_model_hash(s->p->model);
    return true;
}

/* Fits with batches of 8, expects a failure in step `good + 1`, and that training goes on when the data is mended. */
static void fails_after(planned *p, int good, const char *message)
{
    bw_fit_options options = BW_FIT_OPTIONS_DEFAULT;
    steps s = {.p = p};
    options.batch = 8;
    options.on_step = on_step;
    options.user = &s;
    s.hash = bw_model_hash(p->model);
    bw_history *history;
    check_fails(p->ctx, bw_fit(p->model, p->data, &options, &history), BW_INVALID_ARGUMENT, message);
    assert_int_equal(s.count, good);
    assert_true(bw_model_hash(p->model) == s.hash);
    assert_int_equal(bw_history_epochs(history), 0);
    assert_int_equal(bw_history_facts(history).updates, good);
}

static void open_model(planned *p, const char *text, int workers)
{
    planned_model(p, text, 24, 8, 8, 2, workers);
    check_ok(p->ctx, bw_build(p->model, 3, (const int64_t[]){8, 8, 2}, 7));
}

/* The model after a failing and then a good fit is that of an undisturbed program. */
static void goes_on(planned *p, const char *text)
{
    planned calm;
    open_model(&calm, text, 1);
    check_ok(p->ctx, bw_fit(p->model, p->data, NULL, NULL));
    check_ok(calm.ctx, bw_fit(calm.model, calm.data, NULL, NULL));
    assert_true(bw_model_hash(p->model) == bw_model_hash(calm.model));
    planned_close(&calm);
}

static void test_not_finite(void **state)
{
    (void)state;
    for (size_t m = 0; m < BWI_COUNT(texts); m++) {
        for (int kind = 0; kind < 2; kind++) {
            for (int sample = 5; sample < 24; sample += 12) {
                planned p;
                open_model(&p, texts[m], 2);
                float *bad = &p.x[sample * 128 + 37], good = *bad;
                char message[64];
                *bad = kind ? (float)INFINITY : (float)NAN;
                snprintf(message, sizeof message, "sample %d: its input holds %s", sample, kind ? "infinity" : "NaN");
                fails_after(&p, sample / 8, message);
                *bad = good;
                if (sample < 8) {
                    goes_on(&p, texts[m]);
                }
                planned_close(&p);
            }
        }
    }
}

/* The first of several samples at fault is named, whichever worker met it. */
static void test_the_first_is_named(void **state)
{
    (void)state;
    for (int workers = 1; workers <= 3; workers++) {
        planned p;
        planned_model(&p, "flatten dense(400,relu) dense(10,softmax)", 200, 8, 8, 2, workers);
        for (int i = 71; i < 200; i += 3) {
            p.x[i * 128] = (float)NAN;
        }
        bw_fit_options options = BW_FIT_OPTIONS_DEFAULT;
        options.batch = 200;
        options.tile = 4;
        check_fails(p.ctx, bw_fit(p.model, p.data, &options, NULL), BW_INVALID_ARGUMENT, "sample 71: its input holds NaN");
        assert_int_equal(bw_last_error(p.ctx)->kind, BW_ERROR_DATA);
        assert_int_equal(bw_last_error(p.ctx)->sample, 71);
        assert_null(bw_last_error(p.ctx)->layer);
        for (int i = 53; i < 200; i += 3) {
            p.y[i] = 11;
        }
        check_fails(p.ctx, bw_fit(p.model, p.data, &options, NULL), BW_INVALID_ARGUMENT, "label 11 of sample 53 is outside 0..9");
        /* In a shuffled order the first is the first in that order. */
        planned_close(&p);
    }
}

/* Numbers that are fine themselves and overflow in a layer: the layer is named. */
static void test_a_layer_overflows(void **state)
{
    (void)state;
    planned p;
    open_model(&p, "flatten dense(10) dense(10,softmax)", 1);
    float kernel[128 * 10];
    check_ok(p.ctx, bw_variable_get(p.model, 0, kernel, 1280));
    for (int i = 0; i < 1280; i++) {
        kernel[i] = 3e38F;
    }
    check_ok(p.ctx, bw_variable_set(p.model, 0, kernel, 1280));
    for (int i = 0; i < 24 * 128; i++) {
        p.x[i] = i / 128 == 3 ? 100 : 0;
    }
    fails_after(&p, 0, "layer dense gives infinity in its forward pass for sample 3");
    assert_int_equal(bw_last_error(p.ctx)->sample, 3);
    assert_string_equal(bw_last_error(p.ctx)->layer, "dense");
    planned_close(&p);
}

static void test_labels(void **state)
{
    (void)state;
    planned p;
    open_model(&p, texts[0], 2);
    static const struct {
        int sample;
        int32_t label;
        const char *message;
    } cases[] = {
        {0, 10, "label 10 of sample 0 is outside 0..9: the output layer has 10 classes"},
        {23, -1, "label -1 of sample 23 is outside 0..9: the output layer has 10 classes"},
        {9, INT32_MAX, "label 2147483647 of sample 9 is outside 0..9"},
        {9, INT32_MIN, "label -2147483648 of sample 9 is outside 0..9"},
    };
    for (size_t i = 0; i < BWI_COUNT(cases); i++) {
        int32_t good = p.y[cases[i].sample];
        p.y[cases[i].sample] = cases[i].label;
        fails_after(&p, cases[i].sample / 8, cases[i].message);
        bw_history *result;
        check_fails(p.ctx, bw_evaluate(p.model, p.data, &result), BW_INVALID_ARGUMENT, cases[i].message);
        assert_null(result);
        p.y[cases[i].sample] = good;
    }
    check_ok(p.ctx, bw_fit(p.model, p.data, NULL, NULL));
    planned_close(&p);
}

/* Targets and weights of other types and shapes than the loss wants. */
typedef struct targets {
    const char *text, *loss;
    bw_array y, w;
    const char *message; /* "": fine */
} targets;

static void test_targets(void **state)
{
    (void)state;
    enum { N = 8 };
    static float whole[N], fractional[N] = {1, 2, 2.5F}, nan[N] = {0, 0, 0, (float)NAN}, ones[N * 4], bad_weight[N];
    static float soft[N] = {0, 1, 0.25F, 0.5F}, three[N] = {0, 1, 0, 1, 2}, signs[N] = {1, 1, 1, -1},
                 negative[N] = {1, 0, 1, 1, 1, -0.5F};
    static double large[N] = {0, 0, 0, 0, 0, 3e9};
    static int64_t wide[N] = {0, 0, INT64_MAX};
    static uint8_t bytes[N] = {9, 8, 7, 6, 5, 4, 3, 2};
    for (int i = 0; i < N; i++) {
        bad_weight[i] = i == 6 ? (float)NAN : 1;
    }
#define ARRAY(type, values, ...)                                                                                          \
    {                                                                                                                     \
        .data = values, .dtype = type, .ndim = (int)BWI_COUNT(((int64_t[]){N, __VA_ARGS__})), .shape = { N, __VA_ARGS__ } \
    }
#define ROW(type, values)                                        \
    {                                                            \
        .data = values, .dtype = type, .ndim = 1, .shape = { N } \
    }
    const char *classes = "flatten dense(10,softmax)", *one = "flatten dense(1)", *two = "flatten dense(2)",
               *sigmoid = "flatten dense(1,sigmoid)";
    const targets cases[] = {
        {classes, NULL, ROW(BW_F32, whole), {0}, ""},
        {classes, NULL, ROW(BW_U8, bytes), {0}, ""},
        {classes, NULL, ARRAY(BW_U8, bytes, 1), {0}, ""},
        {classes,
         NULL,
         ROW(BW_F32, fractional),
         {0},
         "sample 2: its target cannot be read as int32: it is 2.5, and class numbers are whole"},
        {classes, NULL, ROW(BW_F32, nan), {0}, "sample 3: its target cannot be read as int32"},
        {classes, NULL, ROW(BW_F64, large), {0}, "sample 5: its target cannot be read as int32"},
        {classes, NULL, ROW(BW_I64, wide), {0}, "sample 2: its target cannot be read as int32"},
        {classes, NULL, {0}, {0}, "the data has no targets (y)"},
        {classes, "sparse_categorical_crossentropy", ARRAY(BW_F32, ones, 2), {0}, "sparse_categorical_crossentropy|(2,)"},
        {one, "mse", ROW(BW_F32, fractional), {0}, ""},
        {one, "mse", ARRAY(BW_F32, ones, 1), {0}, ""},
        {one, "mse", ROW(BW_F32, nan), {0}, "sample 3: its target holds NaN"},
        {"reshape(2,2) dense(10,softmax)", NULL, ROW(BW_U8, bytes), {0}, "flatten is missing before the last layers"},
        {"reshape(2,2) dense(1)", "mse", ROW(BW_F32, whole), {0}, "flatten is missing before the last layers"},
        {two, "mse", ROW(BW_F32, whole), {0}, "mean_squared_error|()"},
        {two, "mse", ARRAY(BW_F32, ones, 3), {0}, "mean_squared_error|(2,)|(3,)"},
        {classes, NULL, ROW(BW_U8, bytes), ROW(BW_F32, ones), ""},
        {classes, NULL, ROW(BW_U8, bytes), ARRAY(BW_F32, ones, 1), ""},
        {classes, NULL, ROW(BW_U8, bytes), ROW(BW_F32, bad_weight), "sample 6: its sample weight holds NaN"},
        {classes, NULL, ROW(BW_U8, bytes), ROW(BW_F32, negative), "sample 5: its sample weight is -0.5; expected 0 or more"},
        {one, "mse", ROW(BW_F32, whole), ROW(BW_F32, negative), "sample 5: its sample weight is -0.5; expected 0 or more"},
        {sigmoid, "binary_crossentropy", ROW(BW_F32, soft), {0}, ""},
        {one, "bce(from_logits=true)", ROW(BW_F32, soft), {0}, ""},
        {sigmoid,
         NULL,
         ROW(BW_F32, three),
         {0},
         "label 2 of sample 4 is outside 0..1, which binary_crossentropy expects|sparse_categorical_crossentropy"},
        {one, "bce(from_logits=true)", ROW(BW_F32, three), {0}, "label 2 of sample 4 is outside 0..1"},
        {one, "bce", ROW(BW_F32, three), {0}, "label 2 of sample 4 is outside 0..1"},
        {sigmoid, NULL, ROW(BW_F32, three), ROW(BW_F32, soft), ""}, /* it weighs nothing */
        {sigmoid, NULL, ROW(BW_F32, signs), {0}, "label -1 of sample 3 is outside 0..1|hinge"},
        {one, "hinge", ROW(BW_F32, signs), {0}, ""},
        {classes, NULL, ROW(BW_U8, bytes), ARRAY(BW_F32, ones, 2), "weight"},
        {one, "mse", ROW(BW_F32, whole), ARRAY(BW_F32, ones, 3), "weight"},
    };
    float pixels[N * 4] = {1, 2, 3};
    bw_array x = {.data = pixels, .dtype = BW_F32, .ndim = 2, .shape = {N, 4}};
    for (size_t i = 0; i < BWI_COUNT(cases); i++) {
        bw_context *ctx = bw_open(NULL);
        const targets *c = &cases[i];
        bw_dataset *data = bw_from_arrays(ctx, &x, c->y.data ? &c->y : NULL, c->w.data ? &c->w : NULL);
        bw_model *model = bw_model_parse(ctx, c->text);
        check_ok(ctx, bw_compile(model, "sgd", c->loss, NULL));
        check_ok(ctx, bw_build(model, 1, (const int64_t[]){4}, 1));
        uint64_t before = bw_model_hash(model);
        bw_status status = bw_fit(model, data, NULL, NULL);
        if (*c->message) {
            if (status == BW_OK) {
                print_error("case %d\n", (int)i);
            }
            check_fails(ctx, status, status == BW_UNIMPLEMENTED ? BW_UNIMPLEMENTED : BW_INVALID_ARGUMENT, c->message);
            assert_true(bw_model_hash(model) == before);
        } else {
            check_ok(ctx, status);
        }
        bw_close(ctx);
    }
}

static void test_inputs_of_another_shape(void **state)
{
    (void)state;
    planned p;
    open_model(&p, texts[0], 1);
    bw_array x = {.data = p.x, .dtype = BW_F32, .ndim = 4, .shape = {8, 8, 8, 1}},
             y = {.data = p.y, .dtype = BW_I32, .ndim = 1, .shape = {8}},
             flat = {.data = p.x, .dtype = BW_F32, .ndim = 2, .shape = {8, 128}};
    bw_dataset *other = bw_from_arrays(p.ctx, &x, &y, NULL), *same = bw_from_arrays(p.ctx, &flat, &y, NULL);
    float predictions[80];
    bw_history *result;
    const char *message = "the model's input is (8, 8, 2), the data's samples are (8, 8, 1)";
    check_fails(p.ctx, bw_fit(p.model, other, NULL, NULL), BW_INVALID_ARGUMENT, message);
    check_fails(p.ctx, bw_predict(p.model, other, predictions, 80), BW_INVALID_ARGUMENT, message);
    check_fails(p.ctx, bw_evaluate(p.model, other, &result), BW_INVALID_ARGUMENT, message);
    check_fails(p.ctx, bw_evaluate(p.model, same, NULL), BW_INVALID_ARGUMENT, "evaluate: there is no place for the result");
    check_ok(p.ctx, bw_fit(p.model, same, NULL, NULL)); /* as many numbers in the same order */
    planned_close(&p);
}

static void test_no_inputs(void **state)
{
    (void)state;
    static const float numbers[8];
    bw_context *ctx = bw_open(NULL);
    bw_field y = {"y", {.data = numbers, .dtype = BW_F32, .ndim = 1, .shape = {8}}};
    bw_dataset *data = bw_from_fields(ctx, &y, 1);
    check_fails(ctx, bw_fit(bw_model_parse(ctx, "dense(1)"), data, NULL, NULL), BW_INVALID_ARGUMENT, "the data has no input");
    bw_close(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_not_finite),        cmocka_unit_test(test_the_first_is_named),
        cmocka_unit_test(test_a_layer_overflows), cmocka_unit_test(test_labels),
        cmocka_unit_test(test_targets),           cmocka_unit_test(test_inputs_of_another_shape),
        cmocka_unit_test(test_no_inputs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
