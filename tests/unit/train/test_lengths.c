/*
 * label: thread
 * Sequences of varying length. The reference is the same data without buckets, all padding computed, where masks make both mean the
 * same; and where there are no masks, models built at each length for the samples of that length alone.
 */
#include "support/check.h"

#include <math.h>
#include <stdlib.h>

enum { SAMPLES = 90, LONGEST = 24, WORDS = 30, CLASSES = 3, WEIGHTS = 2000 };

static const int64_t LENGTHS[] = {4, 9, 16};
static int32_t steps[SAMPLES * LONGEST], padded[SAMPLES * LONGEST], labels[SAMPLES];
static int64_t offsets[SAMPLES + 1];

static int fill(void **state)
{
    (void)state;
    unsigned random = 11;
    for (int i = 0; i < SAMPLES; i++) {
        random = random * 1664525u + 1013904223u;
        int length = i == 0 ? LONGEST : i == 1 ? 0 : (int)(random >> 24) % LONGEST + 1;
        offsets[i + 1] = offsets[i] + length;
        for (int k = 0; k < length; k++) {
            random = random * 1664525u + 1013904223u;
            steps[offsets[i] + k] = padded[i * LONGEST + k] = (int32_t)(random >> 20) % (WORDS - 1) + 1;
        }
        labels[i] = i % CLASSES;
    }
    return 0;
}

static bw_array targets(int64_t count)
{
    return (bw_array){.data = labels, .dtype = BW_I32, .ndim = 1, .shape = {count}};
}

static bw_dataset *sequences(bw_context *ctx)
{
    bw_array values = {.data = steps, .dtype = BW_I32, .ndim = 1, .shape = {offsets[SAMPLES]}}, y = targets(SAMPLES);
    return bw_from_sequences(ctx, &values, offsets, SAMPLES, &y, NULL);
}

static bw_dataset *arrays(bw_context *ctx)
{
    bw_array x = {.data = padded, .dtype = BW_I32, .ndim = 2, .shape = {SAMPLES, LONGEST}}, y = targets(SAMPLES);
    return bw_from_arrays(ctx, &x, &y, NULL);
}

static bw_dataset *bucketed(bw_dataset *dataset)
{
    return bw_bucket(dataset, LENGTHS, 3);
}

static const char MASKED[] = "embedding(30,6,mask_zero=true) dense(5,relu) global_avgpool1d dense(3,softmax)";
static const char RECURRENT[] = "embedding(30,6,mask_zero=true) lstm(5,return_sequences=true) gru(4) dense(3,softmax)";
static const char UNMASKED[] = "embedding(30,6) conv1d(5,3,relu,padding=same) global_maxpool1d dense(3,softmax)";

typedef struct result {
    float weights[WEIGHTS];
    double loss, accuracy, validation;
    uint64_t hash;
} result;

static size_t read_weights(bw_context *ctx, const bw_model *model, float *to)
{
    size_t total = 0;
    for (int v = 0; v < bw_variable_count(model); v++) {
        int64_t shape[BW_MAX_NDIM];
        size_t count = 1;
        for (int k = 0, ndim = bw_variable_shape(model, v, shape); k < ndim; k++) {
            count *= (size_t)shape[k];
        }
        assert_true(total + count <= WEIGHTS);
        check_ok(ctx, bw_variable_get(model, v, to + total, count));
        total += count;
    }
    return total;
}

typedef struct way {
    const char *model;
    bool sequences, buckets;
    int workers;
    int64_t tile;
} way;

static result train(const way *w)
{
    static result r; /* zero after what is used */
    bw_context_options co = BW_CONTEXT_OPTIONS_DEFAULT;
    co.workers = w->workers;
    bw_context *ctx = bw_open(&co);
    bw_dataset *data = w->sequences ? sequences(ctx) : arrays(ctx);
    data = bw_shuffle(w->buckets ? bucketed(data) : data, 5);
    bw_model *model = bw_model_parse(ctx, w->model);
    check_ok(ctx, bw_compile(model, "adam(lr=0.01)", "sparse_categorical_crossentropy", "accuracy"));
    bw_fit_options options = BW_FIT_OPTIONS_DEFAULT;
    options.epochs = 3;
    options.batch = 20;
    options.tile = w->tile;
    options.validation_split = 0.2;
    bw_history *history = NULL;
    check_ok(ctx, bw_fit(model, data, &options, &history));
    read_weights(ctx, model, r.weights);
    r.loss = bw_history_last(history, "loss");
    r.accuracy = bw_history_last(history, "accuracy");
    r.validation = bw_history_last(history, "val_loss");
    r.hash = bw_model_hash(model);
    bw_close(ctx);
    return r;
}

static void check_near(const result *a, const result *b)
{
    for (int i = 0; i < WEIGHTS; i++) {
        assert_float_equal(a->weights[i], b->weights[i], 2e-4);
    }
    assert_float_equal(a->loss, b->loss, 1e-5);
    assert_float_equal(a->accuracy, b->accuracy, 1e-9);
    assert_float_equal(a->validation, b->validation, 1e-5);
}

static void masked_models_train_as_with_all_padding(void **state)
{
    (void)state;
    result whole = train(&(way){MASKED, false, false, 2, 0});
    result cut = train(&(way){MASKED, true, true, 2, 0});
    check_near(&whole, &cut);
    cut = train(&(way){MASKED, false, true, 2, 0});
    check_near(&whole, &cut);
    whole = train(&(way){RECURRENT, false, false, 2, 0});
    cut = train(&(way){RECURRENT, true, true, 2, 0});
    check_near(&whole, &cut);
}

static void tiles_and_workers_change_nothing(void **state)
{
    (void)state;
    result one = train(&(way){UNMASKED, true, true, 1, 8});
    for (int workers = 2; workers <= 4; workers++) {
        assert_true(train(&(way){UNMASKED, true, true, workers, 8}).hash == one.hash);
    }
    for (int64_t tile = 1; tile <= 32; tile *= 4) {
        result other = train(&(way){UNMASKED, true, true, 2, tile});
        check_near(&one, &other);
    }
    one = train(&(way){RECURRENT, true, true, 1, 8});
    assert_true(train(&(way){RECURRENT, true, true, 3, 8}).hash == one.hash);
}

static int bucket_of(int sample)
{
    int at = 0;
    while (at < 3 && LENGTHS[at] < offsets[sample + 1] - offsets[sample]) {
        at++;
    }
    return at;
}

/* Without masks what a sample gives depends on its padding: it is that of its own length. */
static void a_sample_is_computed_at_its_own_length(void **state)
{
    (void)state;
    bw_context *ctx = bw_open(NULL);
    static float together[SAMPLES * CLASSES], alone[SAMPLES * CLASSES], weights[1000];
    bw_model *model = bw_model_parse(ctx, UNMASKED);
    int64_t shape = LONGEST;
    check_ok(ctx, bw_build(model, 1, &shape, 1));
    check_ok(ctx, bw_predict(model, bw_shuffle(bucketed(sequences(ctx)), 9), together, SAMPLES * CLASSES));
    check_ok(ctx, bw_predict(model, bucketed(sequences(ctx)), together, SAMPLES * CLASSES));
    for (int b = 0; b < 4; b++) {
        int64_t length = b < 3 ? LENGTHS[b] : LONGEST;
        bw_model *same = bw_model_parse(ctx, UNMASKED);
        check_ok(ctx, bw_build(same, 1, &length, 2));
        for (int v = 0; v < bw_variable_count(model); v++) {
            int64_t extents[BW_MAX_NDIM];
            size_t count = 1;
            for (int k = 0, ndim = bw_variable_shape(model, v, extents); k < ndim; k++) {
                count *= (size_t)extents[k];
            }
            check_ok(ctx, bw_variable_get(model, v, weights, count));
            check_ok(ctx, bw_variable_set(same, v, weights, count));
        }
        bw_array x = {.data = padded, .dtype = BW_I32, .ndim = 2, .shape = {SAMPLES, length}, .strides = {LONGEST * 4, 4}};
        check_ok(ctx, bw_predict(same, bw_from_arrays(ctx, &x, NULL, NULL), alone, SAMPLES * CLASSES));
        for (int i = 0; i < SAMPLES * CLASSES; i++) {
            if (bucket_of(i / CLASSES) == b) {
                assert_float_equal(together[i], alone[i], 1e-6);
            }
        }
    }
    bw_close(ctx);
}

static void a_loop_of_ones_own_sees_buckets(void **state)
{
    (void)state;
    double loss[2];
    float weights[2][WEIGHTS] = {{0}, {0}};
    for (int k = 0; k < 2; k++) {
        bw_context *ctx = bw_open(NULL);
        bw_dataset *data = bw_batches(k ? bucketed(arrays(ctx)) : arrays(ctx), SAMPLES);
        bw_model *model = bw_model_parse(ctx, MASKED);
        int64_t shape = LONGEST;
        check_ok(ctx, bw_compile(model, "sgd(lr=0.1)", "sparse_categorical_crossentropy", ""));
        check_ok(ctx, bw_build(model, 1, &shape, 1));
        bw_gradients *gradients = bw_gradients_new(model, NULL);
        bw_batch *batch = NULL;
        check_ok(ctx, bw_next(bw_iterate(data, 0), &batch));
        check_ok(ctx, bw_gradients_add(gradients, batch, &loss[k]));
        assert_int_equal(bw_gradients_samples(gradients), SAMPLES);
        check_ok(ctx, bw_apply(model, gradients));
        read_weights(ctx, model, weights[k]);
        bw_close(ctx);
    }
    assert_float_equal(loss[0], loss[1], 1e-6);
    for (int i = 0; i < WEIGHTS; i++) {
        assert_float_equal(weights[0][i], weights[1][i], 1e-6);
    }
}

/* More samples than are sorted at a time. */
static void large_batches_are_fed_in_blocks(void **state)
{
    (void)state;
    double loss[2];
    for (int k = 0; k < 2; k++) {
        bw_context *ctx = bw_open(NULL);
        bw_dataset *data = bw_repeat(arrays(ctx), 30);
        bw_model *model = bw_model_parse(ctx, MASKED);
        int64_t shape = LONGEST;
        bw_history *values = NULL;
        check_ok(ctx, bw_build(model, 1, &shape, 4));
        check_ok(ctx, bw_compile(model, NULL, "sparse_categorical_crossentropy", ""));
        check_ok(ctx, bw_evaluate(model, k ? bucketed(data) : data, &values));
        loss[k] = bw_history_last(values, "loss");
        bw_close(ctx);
    }
    assert_float_equal(loss[0], loss[1], 1e-6);
}

static bool double_it(void *user, bw_sample *sample, const void *const *from, void *const *to)
{
    (void)user, (void)sample;
    for (int k = 0; k < LONGEST; k++) {
        ((int32_t *)to[0])[k] = ((const int32_t *)from[0])[k] / 2;
    }
    return true;
}

static void what_does_not_fit_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *model, *parts;
        bw_status status;
    } models[] = {
        {"embedding(30,6) flatten dense(3,softmax)", "buckets: at length 4|dense|kernel", BW_INVALID_ARGUMENT},
        {"embedding(30,6) batchnorm global_avgpool1d dense(3,softmax)", "batch_normalization|whole batch", BW_UNIMPLEMENTED},
        {"embedding(30,6) dense(3)", "not of one shape at every length", BW_UNIMPLEMENTED},
    };
    for (size_t k = 0; k < sizeof models / sizeof models[0]; k++) {
        bw_context *ctx = bw_open(NULL);
        bw_model *model = bw_model_parse(ctx, models[k].model);
        int64_t shape = LONGEST;
        check_ok(ctx, bw_build(model, 1, &shape, 0));
        float out[SAMPLES * LONGEST * CLASSES];
        size_t count = k < 2 ? SAMPLES * CLASSES : SAMPLES * LONGEST * CLASSES;
        bw_dataset *data = bucketed(arrays(ctx));
        bw_status status = k == 1 ? bw_fit(model, data, NULL, NULL) : bw_predict(model, data, out, count);
        check_fails(ctx, status, models[k].status, models[k].parts);
        bw_close(ctx);
    }
    static const struct {
        int64_t lengths[2];
        const char *parts;
    } wrong[] = {{{9, 4}, "rising lengths|24|2th is 4"}, {{0, 4}, "1th is 0"}, {{4, 25}, "2th is 25"}};
    for (size_t k = 0; k < 3; k++) {
        bw_context *ctx = bw_open(NULL);
        bw_model *model = bw_model_parse(ctx, MASKED);
        check_fails(ctx, bw_fit(model, bw_bucket(arrays(ctx), wrong[k].lengths, 2), NULL, NULL), BW_INVALID_ARGUMENT,
                    wrong[k].parts);
        bw_close(ctx);
    }
    bw_context *ctx = bw_open(NULL);
    bw_model *model = bw_model_parse(ctx, MASKED);
    check_fails(ctx, bw_fit(model, bw_map(bucketed(arrays(ctx)), double_it, NULL, NULL), NULL, NULL), BW_INVALID_ARGUMENT,
                "buckets come last");
    bw_close(ctx);
    int64_t bad[] = {0, 3, 2};
    bw_array values = {.data = steps, .dtype = BW_I32, .ndim = 1, .shape = {10}};
    ctx = bw_open(NULL);
    check_fails(ctx, bw_fit(bw_model_parse(ctx, MASKED), bw_from_sequences(ctx, &values, bad, 2, NULL, NULL), NULL, NULL),
                BW_INVALID_ARGUMENT, "offset 2 is 2|3 to the 10 steps");
    bw_close(ctx);
}

/* Steps of several values, converted and cut. */
static void steps_have_any_shape(void **state)
{
    (void)state;
    static const float wide[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
    static const int64_t begins[] = {0, 1, 1, 5};
    float out[3 * 2];
    bw_context *ctx = bw_open(NULL);
    bw_array values = {.data = wide, .dtype = BW_F32, .ndim = 2, .shape = {5, 2}};
    int64_t length = 2;
    bw_dataset *data = bw_bucket(bw_from_sequences(ctx, &values, begins, 3, NULL, NULL), &length, 1);
    bw_model *model = bw_model_parse(ctx, "global_maxpool1d");
    check_ok(ctx, bw_predict(model, data, out, 6));
    static const float expected[] = {1, 2, 0, 0, 9, 10};
    for (int i = 0; i < 6; i++) {
        assert_float_equal(out[i], expected[i], 0);
    }
    bw_close(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(masked_models_train_as_with_all_padding),
        cmocka_unit_test(tiles_and_workers_change_nothing),
        cmocka_unit_test(a_sample_is_computed_at_its_own_length),
        cmocka_unit_test(a_loop_of_ones_own_sees_buckets),
        cmocka_unit_test(large_batches_are_fed_in_blocks),
        cmocka_unit_test(what_does_not_fit_is_refused),
        cmocka_unit_test(steps_have_any_shape),
    };
    return cmocka_run_group_tests(tests, fill, NULL);
}
