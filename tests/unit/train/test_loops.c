/*
 * label: thread
 * Custom loops: gradients gathered over batches of any sizes until the user's own rule says apply; the result is that of
 * the whole batch. And several models in several threads at once.
 */
#include "support/check.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <batchwise.h>

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { SAMPLES = 96, WIDTH = 10 };

static float xs[SAMPLES * WIDTH], ys[SAMPLES];

static int fill(void **state)
{
    (void)state;
    unsigned random = 7;
    for (int i = 0; i < SAMPLES * WIDTH; i++) {
        random = random * 1664525u + 1013904223u;
        xs[i] = (float)(random >> 8) / 8388608.0F - 1;
    }
    for (int i = 0; i < SAMPLES; i++) {
        ys[i] = (float)(i % 4);
    }
    return 0;
}

static bw_dataset *part(bw_context *ctx, int64_t first, int64_t count)
{
    bw_array x = {.data = xs + first * WIDTH, .dtype = BW_F32, .ndim = 2, .shape = {count, WIDTH}};
    bw_array y = {.data = ys + first, .dtype = BW_F32, .ndim = 1, .shape = {count}};
    return bw_from_arrays(ctx, &x, &y, NULL);
}

static bw_model *new_model(bw_context *ctx)
{
    static const int64_t shape[] = {WIDTH};
    bw_model *model = bw_model_parse(ctx, "dense(8,tanh) dense(4,softmax)");
    assert_int_equal(bw_compile(model, "adam(lr=0.05,weight_decay=0.01)", "sparse_categorical_crossentropy", ""), BW_OK);
    assert_int_equal(bw_build(model, 1, shape, 3), BW_OK);
    return model;
}

/* Adds the samples from `first` on as one batch. */
static void add(bw_context *ctx, bw_gradients *gradients, int64_t first, int64_t count)
{
    bw_dataset *data = bw_batches(part(ctx, first, count), count);
    bw_iterator *batches = bw_iterate(data, 0);
    bw_batch *batch;
    double loss;
    assert_int_equal(bw_next(batches, &batch), BW_OK);
    assert_int_equal(bw_gradients_add(gradients, batch, &loss), BW_OK);
    assert_true(isfinite(loss));
    bw_iterator_free(batches);
    bw_dataset_free(data);
}

/* One update over the whole data: what every loop below must give. */
static void whole(float *kernel)
{
    bw_context *ctx = bw_open(NULL);
    bw_model *model = new_model(ctx);
    bw_fit_options options = BW_FIT_OPTIONS_DEFAULT;
    options.batch = SAMPLES;
    assert_int_equal(bw_fit(model, part(ctx, 0, SAMPLES), &options, NULL), BW_OK);
    assert_int_equal(bw_variable_get(model, 0, kernel, WIDTH * 8), BW_OK);
    bw_close(ctx);
}

static void check_same(const bw_model *model)
{
    float got[WIDTH * 8], expected[WIDTH * 8];
    whole(expected);
    assert_int_equal(bw_variable_get(model, 0, got, WIDTH * 8), BW_OK);
    for (int i = 0; i < WIDTH * 8; i++) {
        assert_true(fabsf(got[i] - expected[i]) < 2e-5F);
    }
}

static void test_over_n_batches(void **state)
{
    (void)state;
    bw_context *ctx = bw_open(NULL);
    bw_model *model = new_model(ctx);
    bw_gradients *gradients = bw_gradients_new(model, NULL);
    bw_dataset *data = bw_batches(part(ctx, 0, SAMPLES), 12);
    bw_iterator *batches = bw_iterate(data, 0);
    bw_batch *batch;
    int updates = 0;
    for (int n = 1; bw_next(batches, &batch) == BW_OK; n++) {
        assert_int_equal(bw_gradients_add(gradients, batch, NULL), BW_OK);
        if (n % 8 == 0) {
            assert_int_equal(bw_apply(model, gradients), BW_OK);
            updates++;
        }
    }
    assert_int_equal(updates, 1);
    check_same(model);
    bw_close(ctx);
}

static void test_all_sizes_differ(void **state)
{
    (void)state;
    static const int64_t sizes[] = {1, 17, 5, 33, 2, 11, 3, 24}; /* 96 in all */
    bw_context *ctx = bw_open(NULL);
    bw_model *model = new_model(ctx);
    bw_gradients *gradients = bw_gradients_new(model, NULL);
    int64_t first = 0;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        add(ctx, gradients, first, sizes[i]);
        first += sizes[i];
        assert_int_equal(bw_gradients_samples(gradients), first);
    }
    assert_int_equal(bw_apply(model, gradients), BW_OK);
    assert_int_equal(bw_gradients_samples(gradients), 0);
    check_same(model);
    bw_close(ctx);
}

static void test_until_a_number_of_samples(void **state)
{
    (void)state;
    bw_context *ctx = bw_open(NULL);
    bw_model *model = new_model(ctx);
    bw_gradients *gradients = bw_gradients_new(model, NULL);
    int64_t first = 0;
    for (int64_t size = 7; bw_gradients_samples(gradients) < SAMPLES; size = size % 9 + 4) {
        int64_t count = SAMPLES - first < size ? SAMPLES - first : size;
        add(ctx, gradients, first, count);
        first += count;
    }
    assert_int_equal(bw_apply(model, gradients), BW_OK);
    check_same(model);
    bw_close(ctx);
}

static void test_until_a_memory_threshold(void **state)
{
    (void)state;
    size_t threshold = SAMPLES * WIDTH * sizeof(float); /* bytes of inputs per update */
    bw_context *ctx = bw_open(NULL);
    bw_model *model = new_model(ctx);
    bw_gradients *gradients = bw_gradients_new(model, NULL);
    int64_t first = 0;
    size_t bytes = 0;
    for (int64_t size = 10; bytes < threshold; size += 3) {
        int64_t count = SAMPLES - first < size ? SAMPLES - first : size;
        add(ctx, gradients, first, count);
        first += count;
        bytes += (size_t)count * WIDTH * sizeof(float);
    }
    assert_int_equal(bw_apply(model, gradients), BW_OK);
    check_same(model);
    bw_close(ctx);
}

/* Clipping by hand: the norm is read, the gradients are scaled, the update's direction stays. */
static void test_norm_and_scale(void **state)
{
    (void)state;
    bw_context *ctx = bw_open(NULL);
    bw_model *model = new_model(ctx);
    assert_int_equal(bw_compile(model, "sgd(lr=1)", "sparse_categorical_crossentropy", ""), BW_OK);
    bw_gradients *gradients = bw_gradients_new(model, NULL);
    double norm, halved, moved = 0;
    add(ctx, gradients, 0, SAMPLES);
    assert_int_equal(bw_gradients_norm(gradients, &norm), BW_OK);
    assert_int_equal(bw_gradients_scale(gradients, 0.5), BW_OK);
    assert_int_equal(bw_gradients_norm(gradients, &halved), BW_OK);
    assert_true(fabs(halved - norm / 2) < 1e-6 * norm);
    float before[4][WIDTH * 8], after[WIDTH * 8];
    static const size_t counts[] = {WIDTH * 8, 8, 32, 4};
    for (int v = 0; v < 4; v++) {
        assert_int_equal(bw_variable_get(model, v, before[v], counts[v]), BW_OK);
    }
    assert_int_equal(bw_apply(model, gradients), BW_OK);
    for (int v = 0; v < 4; v++) {
        assert_int_equal(bw_variable_get(model, v, after, counts[v]), BW_OK);
        for (size_t i = 0; i < counts[v]; i++) {
            moved += pow((double)after[i] - (double)before[v][i], 2);
        }
    }
    assert_true(fabs(sqrt(moved) - norm / 2) < 1e-4 * norm);
    bw_close(ctx);
}

static void test_nothing_to_apply(void **state)
{
    (void)state;
    bw_context *ctx = bw_open(NULL);
    bw_model *model = new_model(ctx);
    bw_gradients *gradients = bw_gradients_new(model, NULL);
    uint64_t hash = bw_model_hash(model);
    check_fails(ctx, bw_apply(model, gradients), BW_INVALID_ARGUMENT, "nothing to apply: no sample's gradient was added");
    add(ctx, gradients, 0, 10);
    bw_gradients_clear(gradients);
    check_fails(ctx, bw_apply(model, gradients), BW_INVALID_ARGUMENT, "nothing to apply: no sample's gradient was added");
    assert_int_equal(bw_model_hash(model), hash);
    bw_close(ctx);
}

/* ---- Several models in several threads ---- */

typedef struct job {
    const char *expression;
    int ndim;
    int64_t shape[3];
    uint64_t hash;
    bw_status status;
} job;

static void *run(void *user)
{
    job *j = user;
    bw_context_options options = BW_CONTEXT_OPTIONS_DEFAULT;
    options.workers = 2;
    bw_context *ctx = bw_open(&options);
    bw_array x = {.data = xs, .dtype = BW_F32, .ndim = j->ndim + 1, .shape = {SAMPLES, j->shape[0], j->shape[1], j->shape[2]}};
    bw_array y = {.data = ys, .dtype = BW_F32, .ndim = 1, .shape = {SAMPLES}};
    bw_model *model = bw_model_parse(ctx, j->expression);
    bw_fit_options fit = BW_FIT_OPTIONS_DEFAULT;
    fit.epochs = 2;
    fit.tile = 4;
    j->status = bw_fit(model, bw_shuffle(bw_from_arrays(ctx, &x, &y, NULL), 5), &fit, NULL);
    j->hash = bw_model_hash(model);
    bw_close(ctx);
    return NULL;
}

static void test_models_in_threads(void **state)
{
    (void)state;
    static const job kinds[] = {
        {"dense(9,relu) dense(4,softmax)", 1, {WIDTH}, 0, BW_OK},
        {"conv2d(5,2,relu) batchnorm flatten dense(4,softmax)", 3, {5, 2, 1}, 0, BW_OK},
        {"dense(6,tanh) dropout(0.3) dense(4,softmax)", 1, {WIDTH}, 0, BW_OK},
    };
    enum { KINDS = 3, THREADS = 6 };
    job alone[KINDS], together[THREADS];
    pthread_t threads[THREADS];
    for (int i = 0; i < KINDS; i++) {
        alone[i] = kinds[i];
        run(&alone[i]);
        assert_int_equal(alone[i].status, BW_OK);
    }
    for (int i = 0; i < THREADS; i++) {
        together[i] = kinds[i % KINDS];
        assert_int_equal(pthread_create(&threads[i], NULL, run, &together[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(together[i].status, BW_OK);
        assert_int_equal(together[i].hash, alone[i % KINDS].hash);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_over_n_batches),
        cmocka_unit_test(test_all_sizes_differ),
        cmocka_unit_test(test_until_a_number_of_samples),
        cmocka_unit_test(test_until_a_memory_threshold),
        cmocka_unit_test(test_norm_and_scale),
        cmocka_unit_test(test_nothing_to_apply),
        cmocka_unit_test(test_models_in_threads),
    };
    return cmocka_run_group_tests(tests, fill, NULL);
}
