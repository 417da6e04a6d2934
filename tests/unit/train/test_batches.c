/*
 * Batches and gradients of custom loops, looked at and changed: values, predictions and losses against formulas worked out here,
 * gradients against those of a linear model, and what a program sets against the update that follows.
 */
#include "support/check.h"

#include <math.h>
#include <stdlib.h>

enum { SAMPLES = 20, WIDTH = 3, BATCH = 8 };

typedef struct loop {
    bw_context *ctx;
    bw_dataset *data;
    bw_model *model;
    bw_gradients *gradients;
    bw_iterator *iterator;
    bw_batch *batch;
    float x[SAMPLES * WIDTH], y[SAMPLES], w[SAMPLES];
} loop;

/* A linear model with the squared error and weighted samples, or any other with the same input. */
static void loop_open(loop *l, const char *model, const char *loss)
{
    *l = (loop){.ctx = bw_open(NULL)};
    for (int i = 0; i < SAMPLES; i++) {
        l->y[i] = (float)(i % 2);
        l->w[i] = 1 + (float)(i % 3);
        for (int k = 0; k < WIDTH; k++) {
            l->x[i * WIDTH + k] = (float)((7 * i + 5 * k) % 11) / 11 - 0.5F;
        }
    }
    bw_array x = {.data = l->x, .dtype = BW_F32, .ndim = 2, .shape = {SAMPLES, WIDTH}};
    bw_array y = {.data = l->y, .dtype = BW_F32, .ndim = 2, .shape = {SAMPLES, 1}};
    bw_array w = {.data = l->w, .dtype = BW_F32, .ndim = 1, .shape = {SAMPLES}};
    l->data = bw_batches(bw_shuffle(bw_from_arrays(l->ctx, &x, &y, &w), 1), BATCH);
    l->model = bw_model_parse(l->ctx, model);
    check_ok(l->ctx, bw_compile(l->model, "sgd(lr=0.5)", loss, NULL));
    check_ok(l->ctx, bw_build(l->model, 1, (int64_t[]){WIDTH}, 3));
    l->gradients = bw_gradients_new(l->model, NULL);
    l->iterator = bw_iterate(l->data, 0);
    check_ok(l->ctx, bw_next(l->iterator, &l->batch));
}

static void check_near(double found, double expected, double tolerance)
{
    if (!(fabs(found - expected) <= tolerance)) {
        fail_msg("expected %.9g, found %.9g", expected, found);
    }
}

/* Prediction and gradient (of the kernel, then of the bias) of the linear model for one sample of the data. */
static double linear(const loop *l, int64_t sample, double *gradient)
{
    float kernel[WIDTH], bias;
    check_ok(l->ctx, bw_variable_get(l->model, 0, kernel, WIDTH));
    check_ok(l->ctx, bw_variable_get(l->model, 1, &bias, 1));
    double sum = (double)bias;
    for (int k = 0; k < WIDTH; k++) {
        sum += (double)kernel[k] * (double)l->x[sample * WIDTH + k];
    }
    for (int k = 0; k <= WIDTH; k++) {
        double factor = k < WIDTH ? (double)l->x[sample * WIDTH + k] : 1;
        gradient[k] = 2 * (double)l->w[sample] * (sum - (double)l->y[sample]) * factor;
    }
    return sum;
}

static void test_values(void **state)
{
    (void)state;
    loop l;
    loop_open(&l, "dense(1)", "mse");
    float x[BATCH * WIDTH], y[BATCH], w[BATCH];
    check_ok(l.ctx, bw_batch_values(l.batch, "x", x, BATCH * WIDTH));
    check_ok(l.ctx, bw_batch_values(l.batch, "y", y, BATCH));
    check_ok(l.ctx, bw_batch_values(l.batch, "w", w, BATCH));
    const int64_t *numbers = bw_batch_numbers(l.batch);
    bool moved = false;
    for (int i = 0; i < BATCH; i++) {
        int64_t n = numbers[i];
        moved = moved || n != i;
        assert_true(memcmp(&x[i * WIDTH], &l.x[n * WIDTH], WIDTH * sizeof *x) == 0);
        assert_true(memcmp(&y[i], &l.y[n], sizeof *y) == 0 && memcmp(&w[i], &l.w[n], sizeof *w) == 0);
    }
    assert_true(moved); /* it is shuffled */
    bw_batch *two = bw_batch_select(l.batch, (int64_t[]){6, 2}, 2);
    assert_int_equal(bw_batch_count(two), 2);
    assert_int_equal(bw_batch_numbers(two)[0], numbers[6]);
    bw_batch *one = bw_batch_select(two, (int64_t[]){1}, 1);
    assert_int_equal(bw_batch_numbers(one)[0], numbers[2]);
    assert_int_equal(bw_batch_count(l.batch), BATCH);
    check_ok(l.ctx, bw_batch_values(two, "y", y, 2));
    assert_true(memcmp(&y[0], &l.y[numbers[6]], sizeof *y) == 0);
    check_fails(l.ctx, bw_batch_values(l.batch, "x", x, 5), BW_INVALID_ARGUMENT, "x: expected room for 24 numbers, got 5");
    check_fails(l.ctx, bw_batch_values(l.batch, "z", x, 5), BW_NOT_FOUND, "the data has no field z");
    assert_null(bw_batch_select(l.batch, (int64_t[]){8}, 1));
    assert_non_null(strstr(bw_message(l.ctx), "index 8 of a batch of 8 samples"));
    bw_close(l.ctx);
}

static void test_predictions_and_losses(void **state)
{
    (void)state;
    loop l;
    loop_open(&l, "dense(1)", "mse");
    float predictions[BATCH], losses[BATCH];
    double mean = 0, loss, ignored[WIDTH + 1];
    check_ok(l.ctx, bw_gradients_predict(l.gradients, l.batch, 0, predictions, BATCH));
    check_ok(l.ctx, bw_gradients_losses(l.gradients, l.batch, losses, BATCH));
    assert_int_equal(bw_gradients_samples(l.gradients), 0);
    for (int i = 0; i < BATCH; i++) {
        int64_t n = bw_batch_numbers(l.batch)[i];
        double output = linear(&l, n, ignored), error = output - (double)l.y[n];
        check_near((double)predictions[i], output, 1e-6);
        check_near((double)losses[i], (double)l.w[n] * error * error, 1e-6);
        mean += (double)losses[i] / BATCH;
    }
    check_ok(l.ctx, bw_gradients_add(l.gradients, l.batch, &loss));
    check_near(loss, mean, 1e-6);
    /* They follow the weights. */
    check_ok(l.ctx, bw_apply(l.model, l.gradients));
    check_ok(l.ctx, bw_gradients_predict(l.gradients, bw_batch_select(l.batch, (int64_t[]){5}, 1), 0, predictions, 1));
    check_near((double)predictions[0], linear(&l, bw_batch_numbers(l.batch)[5], ignored), 1e-6);
    check_fails(l.ctx, bw_gradients_losses(l.gradients, l.batch, losses, 3), BW_INVALID_ARGUMENT,
                "expected an array of 8 numbers, got 3");
    check_fails(l.ctx, bw_gradients_predict(l.gradients, l.batch, 1, predictions, 8), BW_INVALID_ARGUMENT, "there is no output 1");
    bw_close(l.ctx);
}

/* Dropout does nothing here, as in prediction; while training it does. */
static void test_dropout(void **state)
{
    (void)state;
    loop l;
    loop_open(&l, "dense(8) dropout(0.5) dense(1)", "mse");
    float once[BATCH], twice[BATCH];
    check_ok(l.ctx, bw_gradients_losses(l.gradients, l.batch, once, BATCH));
    check_ok(l.ctx, bw_gradients_losses(l.gradients, l.batch, twice, BATCH));
    assert_true(memcmp(once, twice, sizeof once) == 0);
    bw_close(l.ctx);
}

static void test_gradients(void **state)
{
    (void)state;
    loop l;
    loop_open(&l, "dense(1)", "mse");
    double expected[WIDTH + 1] = {0}, one[WIDTH + 1];
    float kernel[WIDTH], bias, before[WIDTH];
    for (int i = 0; i < BATCH; i++) {
        linear(&l, bw_batch_numbers(l.batch)[i], one);
        for (int k = 0; k <= WIDTH; k++) {
            expected[k] += one[k] / BATCH;
        }
    }
    check_ok(l.ctx, bw_gradients_add(l.gradients, l.batch, NULL));
    check_ok(l.ctx, bw_gradients_get(l.gradients, 0, kernel, WIDTH));
    check_ok(l.ctx, bw_gradients_get(l.gradients, 1, &bias, 1));
    for (int k = 0; k < WIDTH; k++) {
        check_near((double)kernel[k], expected[k], 1e-6);
    }
    check_near((double)bias, expected[WIDTH], 1e-6);
    /* What is set is what the update uses: w - 0.5 g. */
    check_ok(l.ctx, bw_variable_get(l.model, 0, before, WIDTH));
    check_ok(l.ctx, bw_gradients_set(l.gradients, 0, (float[]){1, -2, 0.25F}, WIDTH));
    check_ok(l.ctx, bw_gradients_get(l.gradients, 0, kernel, WIDTH));
    assert_true(memcmp(kernel, (float[]){1, -2, 0.25F}, sizeof kernel) == 0);
    check_ok(l.ctx, bw_apply(l.model, l.gradients));
    check_ok(l.ctx, bw_variable_get(l.model, 0, kernel, WIDTH));
    for (int k = 0; k < WIDTH; k++) {
        check_near((double)kernel[k], (double)before[k] - 0.5 * (double)(float[]){1, -2, 0.25F}[k], 1e-6);
    }
    bw_close(l.ctx);
}

/* Each sample's, one at a time in gradients of their own; their mean is the batch's. */
static void test_per_sample(void **state)
{
    (void)state;
    loop l;
    loop_open(&l, "dense(1)", "mse");
    bw_gradients *single = bw_gradients_new(l.model, NULL);
    double expected[WIDTH + 1], mean[WIDTH] = {0};
    float kernel[WIDTH];
    check_ok(l.ctx, bw_gradients_add(l.gradients, l.batch, NULL));
    for (int64_t i = 0; i < BATCH; i++) {
        bw_gradients_clear(single);
        check_ok(l.ctx, bw_gradients_add(single, bw_batch_select(l.batch, &i, 1), NULL));
        check_ok(l.ctx, bw_gradients_get(single, 0, kernel, WIDTH));
        linear(&l, bw_batch_numbers(l.batch)[i], expected);
        for (int k = 0; k < WIDTH; k++) {
            check_near((double)kernel[k], expected[k], 1e-6);
            mean[k] += (double)kernel[k] / BATCH;
        }
    }
    check_ok(l.ctx, bw_gradients_get(l.gradients, 0, kernel, WIDTH));
    for (int k = 0; k < WIDTH; k++) {
        check_near((double)kernel[k], mean[k], 1e-6);
    }
    bw_close(l.ctx);
}

static size_t values_of(const bw_model *model, int variable)
{
    int64_t shape[BW_MAX_NDIM];
    size_t count = 1;
    for (int i = 0, ndim = bw_variable_shape(model, variable, shape); i < ndim; i++) {
        count *= (size_t)shape[i];
    }
    return count;
}

/* Layers store their variables in orders of their own: reading and setting see Keras's, and the norm agrees with what is read. */
static void test_orders(void **state)
{
    (void)state;
    enum { MOST = 16384 };
    static float x[16 * 64], values[MOST], back[MOST];
    static int32_t y[16];
    for (int i = 0; i < 16 * 64; i++) {
        x[i] = (float)(i % 17) / 17;
    }
    for (int i = 0; i < 16; i++) {
        y[i] = i % 4;
    }
    bw_context *ctx = bw_open(NULL);
    bw_array inputs = {.data = x, .dtype = BW_F32, .ndim = 4, .shape = {16, 8, 8, 1}};
    bw_array targets = {.data = y, .dtype = BW_I32, .ndim = 1, .shape = {16}};
    bw_dataset *data = bw_batches(bw_from_arrays(ctx, &inputs, &targets, NULL), 16);
    bw_model *model = bw_model_parse(ctx, "conv2d(16,3,relu) conv2d(24,3) batchnorm relu flatten dense(33,relu) dense(4,softmax)");
    check_ok(ctx, bw_compile(model, "sgd", NULL, NULL));
    check_ok(ctx, bw_build(model, 3, (int64_t[]){8, 8, 1}, 1));
    bw_gradients *gradients = bw_gradients_new(model, NULL);
    bw_batch *batch;
    check_ok(ctx, bw_next(bw_iterate(data, 0), &batch));
    check_ok(ctx, bw_gradients_add(gradients, batch, NULL));
    double squared = 0, norm;
    int trained = 0;
    for (int v = 0; v < bw_variable_count(model); v++) {
        size_t count = values_of(model, v);
        assert_true(count <= MOST);
        if (!bw_variable_trainable(model, v)) {
            check_fails(ctx, bw_gradients_get(gradients, v, values, count), BW_INVALID_ARGUMENT,
                        "moving|has no gradient: it is not trained");
            continue;
        }
        trained++;
        check_ok(ctx, bw_gradients_get(gradients, v, values, count));
        for (size_t i = 0; i < count; i++) {
            squared += (double)values[i] * (double)values[i];
        }
    }
    assert_int_equal(trained, 10);
    check_ok(ctx, bw_gradients_norm(gradients, &norm));
    check_near(norm, sqrt(squared), 1e-5 * norm);
    for (int v = 0; v < bw_variable_count(model); v++) {
        size_t count = values_of(model, v);
        for (size_t i = 0; i < count; i++) {
            values[i] = (float)(i % 256) / 16;
        }
        if (bw_variable_trainable(model, v)) {
            check_ok(ctx, bw_gradients_set(gradients, v, values, count));
            check_ok(ctx, bw_gradients_get(gradients, v, back, count));
            assert_true(memcmp(values, back, count * sizeof *back) == 0);
        }
    }
    bw_close(ctx);
}

/* The rows that a batch looks up; a table's gradient cannot be set. */
static void test_table(void **state)
{
    (void)state;
    static int32_t x[4] = {2, 0, 2, 3};
    static float y[4] = {1, 2, 3, 4};
    bw_context *ctx = bw_open(NULL);
    bw_array inputs = {.data = x, .dtype = BW_I32, .ndim = 2, .shape = {4, 1}};
    bw_array targets = {.data = y, .dtype = BW_F32, .ndim = 2, .shape = {4, 1}};
    bw_dataset *data = bw_batches(bw_from_arrays(ctx, &inputs, &targets, NULL), 4);
    bw_model *model = bw_model_parse(ctx, "embedding(5,1) flatten");
    check_ok(ctx, bw_compile(model, "sgd(lr=1)", "mse", NULL));
    check_ok(ctx, bw_build(model, 1, (int64_t[]){1}, 1));
    float table[5], gradient[5];
    check_ok(ctx, bw_variable_get(model, 0, table, 5));
    bw_gradients *gradients = bw_gradients_new(model, NULL);
    bw_batch *batch;
    check_ok(ctx, bw_next(bw_iterate(data, 0), &batch));
    check_ok(ctx, bw_gradients_add(gradients, batch, NULL));
    double expected[5] = {0};
    for (int i = 0; i < 4; i++) {
        expected[x[i]] += 2 * ((double)table[x[i]] - (double)y[i]) / 4;
    }
    for (int again = 0; again < 2; again++) { /* reading changes nothing */
        check_ok(ctx, bw_gradients_get(gradients, 0, gradient, 5));
        for (int r = 0; r < 5; r++) {
            check_near((double)gradient[r], expected[r], 1e-6);
        }
    }
    check_fails(ctx, bw_gradients_set(gradients, 0, gradient, 5), BW_UNIMPLEMENTED, "a list of rows|bw_gradients_scale");
    check_ok(ctx, bw_apply(model, gradients));
    check_ok(ctx, bw_variable_get(model, 0, gradient, 5));
    for (int r = 0; r < 5; r++) {
        check_near((double)gradient[r], (double)table[r] - expected[r], 1e-6);
    }
    bw_close(ctx);
}

static void test_mistakes(void **state)
{
    (void)state;
    loop l;
    loop_open(&l, "dense(1)", "mse");
    float kernel[WIDTH] = {0};
    check_fails(l.ctx, bw_gradients_get(l.gradients, 0, kernel, WIDTH), BW_INVALID_ARGUMENT, "no sample's gradient was added");
    check_ok(l.ctx, bw_gradients_add(l.gradients, l.batch, NULL));
    check_fails(l.ctx, bw_gradients_get(l.gradients, 2, kernel, WIDTH), BW_INVALID_ARGUMENT,
                "there is no variable 2: the model has 2");
    check_fails(l.ctx, bw_gradients_get(l.gradients, 0, kernel, 1), BW_INVALID_ARGUMENT, "kernel: expected 3 values, got 1");
    check_fails(l.ctx, bw_gradients_set(l.gradients, 0, (float[]){0, NAN, 0}, WIDTH), BW_INVALID_ARGUMENT, "value 1 is not finite");
    check_fails(l.ctx, bw_gradients_set(l.gradients, 0, NULL, WIDTH), BW_INVALID_ARGUMENT, "expected 3 values, got 0");
    check_ok(l.ctx, bw_apply(l.model, l.gradients));
    bw_close(l.ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values),     cmocka_unit_test(test_predictions_and_losses),
        cmocka_unit_test(test_dropout),    cmocka_unit_test(test_gradients),
        cmocka_unit_test(test_per_sample), cmocka_unit_test(test_orders),
        cmocka_unit_test(test_table),      cmocka_unit_test(test_mistakes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
