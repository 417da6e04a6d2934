/* Masks: which layers pass them on, and what losses, metrics and averages make of them, against plain loops. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "train/internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SAMPLES = 6, LENGTH = 4, TOKENS = 5, CLASSES = 3 };

/* Sample 2 is masked as a whole. */
static const int32_t x[SAMPLES * LENGTH] = {1, 2, 0, 0, 4, 0, 3, 1, 0, 0, 0, 0, 2, 2, 2, 2, 0, 0, 0, 3, 1, 4, 3, 0};
static const int32_t y[SAMPLES * LENGTH] = {0, 1, 2, 0, 1, 1, 2, 2, 0, 1, 2, 0, 1, 0, 0, 2, 2, 1, 0, 1, 2, 0, 0, 1};
static float weight[SAMPLES * LENGTH];

static int warnings;

static void count_warnings(void *user, bw_log_level level, const char *message)
{
    (void)user;
    warnings += level == BW_LOG_WARNING && strstr(message, "mask");
}

static bw_context *open_context(void)
{
    bw_context_options options = BW_CONTEXT_OPTIONS_DEFAULT;
    options.log = count_warnings;
    warnings = 0;
    return bw_open(&options);
}

/* ---- Passing on ---- */

typedef struct passing {
    const char *layers; /* behind embedding(5,4,mask_zero=true) */
    bool masked;
    int warnings;
} passing;

static void test_passing(void **state)
{
    (void)state;
    static const passing rows[] = {{"", true, 0},
                                   {"dense(3,softmax)", true, 0},
                                   {"activation(relu) relu dense(2)", true, 0},
                                   {"activation(linear)", true, 0},
                                   {"dropout(0.5) layernorm prelu elu leaky_relu gaussian_noise(1) rescaling(2)", true, 0},
                                   {"flatten", false, 1},
                                   {"reshape(8,2)", false, 1},
                                   {"conv1d(3,2) dense(2)", false, 1},
                                   {"maxpool1d(2)", false, 1},
                                   {"global_maxpool1d", false, 1},
                                   {"dense(3) global_avgpool1d dense(2)", false, 0},
                                   {"global_avgpool1d(keepdims=true)", false, 0}};
    for (size_t i = 0; i < BWI_COUNT(rows); i++) {
        bw_context *ctx = open_context();
        char text[128];
        snprintf(text, sizeof text, "embedding(5,4,mask_zero=true) %s", rows[i].layers);
        bw_model *model = bw_model_parse(ctx, text);
        int64_t shape[] = {LENGTH};
        assert_int_equal(bw_build(model, 1, shape, 1), BW_OK);
        if (!!model->outputs[0]->mask != rows[i].masked || warnings != rows[i].warnings) {
            fail_msg("%s: %s, %d warnings", text, model->outputs[0]->mask ? "masked" : "not masked", warnings);
        }
        bw_close(ctx);
    }
}

static void test_without_mask(void **state)
{
    (void)state;
    bw_context *ctx = open_context();
    bw_model *model = bw_model_parse(ctx, "embedding(5,4) dense(3) batchnorm softmax");
    int64_t shape[] = {LENGTH};
    assert_int_equal(bw_build(model, 1, shape, 1), BW_OK);
    assert_true(!model->outputs[0]->mask && warnings == 0);
    bw_close(ctx);
}

static void test_refused(void **state)
{
    (void)state;
    static const char *const rows[] = {"batchnorm", "dense(3) softmax"};
    for (size_t i = 0; i < BWI_COUNT(rows); i++) {
        bw_context *ctx = open_context();
        char text[128];
        snprintf(text, sizeof text, "embedding(5,4,mask_zero=true) %s", rows[i]);
        int64_t shape[] = {LENGTH};
        bw_model *model = bw_model_parse(ctx, text);
        assert_int_equal(bw_build(model, 1, shape, 1), BW_UNIMPLEMENTED);
        assert_non_null(strstr(bw_message(ctx), "masked"));
        bw_close(ctx);
    }
}

/* ---- Losses and metrics ---- */

static int make_weights(void **state)
{
    (void)state;
    for (int i = 0; i < SAMPLES * LENGTH; i++) {
        weight[i] = 0.25F * (float)(1 + i % 5);
    }
    return 0;
}

static bw_dataset *samples_of(bw_context *ctx, int weights)
{
    bw_array xs = {.data = x, .dtype = BW_I32, .ndim = 2, .shape = {SAMPLES, LENGTH}};
    bw_array ys = {.data = y, .dtype = BW_I32, .ndim = 2, .shape = {SAMPLES, LENGTH}};
    bw_array ws = {.data = weight, .dtype = BW_F32, .ndim = 2, .shape = {SAMPLES, weights}};
    return bw_from_arrays(ctx, &xs, &ys, weights ? &ws : NULL);
}

typedef struct expected {
    double loss, accuracy, weighted;
} expected;

/* Of samples first..last-1, from the probabilities that bw_predict gives. */
static expected expect(const float *p, int weights, int first, int last)
{
    double loss = 0, count = 0, right = 0, weighted = 0, total = 0;
    for (int i = first * LENGTH; i < last * LENGTH; i++) {
        const float *row = p + i * CLASSES;
        double w = weights == 0 ? 1 : (double)weight[weights == 1 ? i / LENGTH : i];
        int best = row[1] > row[0] ? 1 : 0;
        best = row[2] > row[best] ? 2 : best;
        if (x[i] != 0) {
            loss -= w * log((double)row[y[i]]);
            right += best == y[i];
            weighted += w * (best == y[i]);
            total += w;
            count++;
        }
    }
    return (expected){count > 0 ? loss / count : 0, count > 0 ? right / count : 0, total > 0 ? weighted / total : 0};
}

static void test_evaluate(void **state)
{
    (void)state;
    static const int weights[] = {0, 1, LENGTH};
    for (size_t k = 0; k < BWI_COUNT(weights); k++) {
        bw_context *ctx = open_context();
        bw_dataset *data = samples_of(ctx, weights[k]);
        bw_model *model = bw_model_parse(ctx, "embedding(5,4,mask_zero=true) dense(6,relu) dense(3,softmax)");
        assert_int_equal(bw_compile(model, "sgd", "sparse_categorical_crossentropy", "accuracy,accuracy(weighted=true)"), BW_OK);
        int64_t shape[] = {LENGTH};
        assert_int_equal(bw_build(model, 1, shape, 3), BW_OK);
        float table[TOKENS * 4], p[SAMPLES * LENGTH * CLASSES];
        for (int i = 0; i < TOKENS * 4; i++) {
            table[i] = (float)(i * 7 % 11) / 4 - 1;
        }
        assert_int_equal(bw_variable_set(model, 0, table, TOKENS * 4), BW_OK);
        assert_int_equal(bw_predict(model, data, p, SAMPLES * LENGTH * CLASSES), BW_OK);
        bw_history *result = NULL;
        assert_int_equal(bw_evaluate(model, data, &result), BW_OK);
        expected e = expect(p, weights[k], 0, SAMPLES);
        assert_true(fabs(bw_history_last(result, "loss") - e.loss) < 1e-5);
        assert_true(fabs(bw_history_last(result, "accuracy") - e.accuracy) < 1e-6);
        assert_true(fabs(bw_history_last(result, "weighted_accuracy") - e.weighted) < 1e-6);
        assert_true(e.accuracy > 0 && e.accuracy < 1);
        bw_close(ctx);
    }
}

/* Each batch's loss is over its own unmasked entries; an epoch's is their mean by samples. The batch of sample 2 alone has none:
 * its loss is zero, and its update changes nothing. */
static void test_fit(void **state)
{
    (void)state;
    bw_context *ctx = open_context();
    bw_dataset *data = samples_of(ctx, LENGTH);
    bw_model *model = bw_model_parse(ctx, "embedding(5,4,mask_zero=true) dense(3,softmax)");
    assert_int_equal(bw_compile(model, "sgd(lr=0)", "sparse_categorical_crossentropy", "accuracy"), BW_OK);
    int64_t shape[] = {LENGTH};
    assert_int_equal(bw_build(model, 1, shape, 3), BW_OK);
    float p[SAMPLES * LENGTH * CLASSES];
    assert_int_equal(bw_predict(model, data, p, SAMPLES * LENGTH * CLASSES), BW_OK);
    for (int batch = 1; batch <= SAMPLES; batch++) {
        bw_fit_options options = BW_FIT_OPTIONS_DEFAULT;
        options.batch = batch;
        options.epochs = 1;
        bw_history *history = NULL;
        assert_int_equal(bw_fit(model, data, &options, &history), BW_OK);
        double loss = 0;
        for (int first = 0; first < SAMPLES; first += batch) {
            int last = first + batch < SAMPLES ? first + batch : SAMPLES;
            loss += expect(p, LENGTH, first, last).loss * (last - first) / SAMPLES;
        }
        assert_true(fabs(bw_history_last(history, "loss") - loss) < 1e-5);
        assert_true(fabs(bw_history_last(history, "accuracy") - expect(p, LENGTH, 0, SAMPLES).accuracy) < 1e-6);
    }
    bw_close(ctx);
}

/* The gradient of the mean over unmasked entries, by differences of the loss that bw_evaluate gives. */
static void test_gradient(void **state)
{
    (void)state;
    bw_context *ctx = open_context();
    bw_dataset *data = samples_of(ctx, LENGTH);
    bw_model *model = bw_model_parse(ctx, "embedding(5,4,mask_zero=true) dense(3,softmax)");
    assert_int_equal(bw_compile(model, "sgd(lr=1)", "sparse_categorical_crossentropy", ""), BW_OK);
    int64_t shape[] = {LENGTH};
    assert_int_equal(bw_build(model, 1, shape, 3), BW_OK);
    float table[TOKENS * 4], kernel[12], moved[TOKENS * 4], slope[TOKENS * 4];
    for (int i = 0; i < TOKENS * 4; i++) {
        table[i] = (float)(i * 7 % 11) / 4 - 1;
    }
    assert_int_equal(bw_variable_get(model, 1, kernel, 12), BW_OK);
    for (int i = 0; i < TOKENS * 4; i++) {
        double losses[2];
        for (int side = 0; side < 2; side++) {
            bw_history *result = NULL;
            memcpy(moved, table, sizeof moved);
            moved[i] += side ? -0.0625F : 0.0625F;
            assert_int_equal(bw_variable_set(model, 0, moved, TOKENS * 4), BW_OK);
            assert_int_equal(bw_evaluate(model, data, &result), BW_OK);
            losses[side] = bw_history_last(result, "loss");
        }
        slope[i] = (float)((losses[0] - losses[1]) / 0.125);
    }
    assert_int_equal(bw_variable_set(model, 0, table, TOKENS * 4), BW_OK);
    bw_fit_options options = BW_FIT_OPTIONS_DEFAULT;
    options.batch = SAMPLES;
    options.tile = 2;
    assert_int_equal(bw_fit(model, data, &options, NULL), BW_OK);
    assert_int_equal(bw_variable_get(model, 0, moved, TOKENS * 4), BW_OK);
    for (int i = 0; i < TOKENS * 4; i++) {
        assert_true(fabsf(table[i] - moved[i] - slope[i]) < 2e-4F);
        assert_true(i >= 4 || moved[i] == table[i]);
    }
    bw_close(ctx);
}

/* ---- Merging layers ---- */

typedef struct merging {
    const char *expression;
    bw_status status;
    bool masked;
} merging;

/* The inputs of b's and a's masks are the same positions, or not. */
static void test_merging(void **state)
{
    (void)state;
    static const merging rows[] = {
        {"embedding(5,4,mask_zero=true) a=dense(4) dense(4) add(a)", BW_OK, true},
        {"embedding(5,4,mask_zero=true) a=dense(4) dense(4) subtract(a)", BW_OK, true},
        {"embedding(5,4,mask_zero=true) a=dense(4) dense(3) concat(a)", BW_OK, true},
        {"embedding(5,4,mask_zero=true) a=dense(4) dense(4) concat(a,axis=1)", BW_UNIMPLEMENTED, false},
        {"embedding(5,4,mask_zero=true) a=dense(4) dense(4) multiply(a)", BW_UNIMPLEMENTED, false},
        {"embedding(5,4,mask_zero=true) a=dense(4) conv1d(4,1) add(a)", BW_OK, false},
    };
    for (size_t i = 0; i < BWI_COUNT(rows); i++) {
        bw_context *ctx = open_context();
        bw_model *model = bw_model_parse(ctx, rows[i].expression);
        int64_t shape[] = {LENGTH};
        bw_status status = bw_build(model, 1, shape, 1);
        if (status != rows[i].status || (status == BW_OK && !!model->outputs[0]->mask != rows[i].masked)) {
            fail_msg("%s: %s: %s", rows[i].expression, bw_status_name(status), bw_message(ctx));
        }
        bw_close(ctx);
    }
}

/* Two masks: a position counts if one of them lets it. */
static void test_two_masks(void **state)
{
    (void)state;
    bw_context *ctx = open_context();
    int64_t shape[] = {LENGTH};
    bw_model *model = bw_model_new(ctx);
    bw_node *a = bw_input(model, "a", BW_I32, 1, shape), *b = bw_input(model, "b", BW_I32, 1, shape);
    bw_node *both[2] = {bw_layer(a, "embedding(5,4,mask_zero=true)"), bw_layer(b, "embedding(5,4,mask_zero=true)")};
    bw_node *sum = bw_merge("add", both, 2);
    assert_non_null(sum);
    assert_true(sum->mask && sum->mask->op == &bwi_op_mask_any && sum->mask->inputs == 2);
    both[1] = bw_layer(b, "embedding(5,4)");
    sum = bw_merge("add", both, 2);
    assert_true(sum && !sum->mask);
    bw_close(ctx);
}

/* Indices max(x - 1, 0) and max(1 - x, 0): together all positions but those of 1 count. */
static void test_either_mask(void **state)
{
    (void)state;
    bw_context *ctx = open_context();
    int64_t shape[] = {LENGTH};
    bw_model *model = bw_model_new(ctx);
    bw_node *in = bw_input(model, "", BW_F32, 1, shape);
    bw_node *both[2] = {bw_layer(bw_layer(bw_layer(in, "rescaling(1,-1)"), "relu"), "embedding(5,4,mask_zero=true)"),
                        bw_layer(bw_layer(bw_layer(in, "rescaling(-1,1)"), "relu"), "embedding(5,4,mask_zero=true)")};
    assert_int_equal(bw_output(bw_layer(bw_merge("add", both, 2), "dense(3,softmax)"), ""), BW_OK);
    assert_int_equal(bw_compile(model, "sgd", "sparse_categorical_crossentropy", ""), BW_OK);
    assert_int_equal(bw_build(model, 0, NULL, 1), BW_OK);
    bw_dataset *data = samples_of(ctx, 0);
    float p[SAMPLES * LENGTH * CLASSES], table[20];
    for (int i = 0; i < 20; i++) {
        table[i] = (float)(i * 7 % 11) / 4 - 1;
    }
    assert_int_equal(bw_variable_set(model, 0, table, 20), BW_OK);
    assert_int_equal(bw_predict(model, data, p, SAMPLES * LENGTH * CLASSES), BW_OK);
    bw_history *result = NULL;
    assert_int_equal(bw_evaluate(model, data, &result), BW_OK);
    double loss = 0, count = 0;
    for (int i = 0; i < SAMPLES * LENGTH; i++) {
        loss -= x[i] != 1 ? log((double)p[i * CLASSES + y[i]]) : 0;
        count += x[i] != 1;
    }
    assert_true(fabs(bw_history_last(result, "loss") - loss / count) < 1e-5);
    bw_close(ctx);
}

/* ---- Averages ---- */

static void test_average(void **state)
{
    (void)state;
    bw_context *ctx = open_context();
    bw_dataset *data = samples_of(ctx, 0);
    for (int keep = 0; keep < 2; keep++) {
        bw_model *model = bw_model_parse(ctx, keep ? "embedding(5,4,mask_zero=true) global_avgpool1d(keepdims=true)"
                                                   : "embedding(5,4,mask_zero=true) global_avgpool1d");
        int64_t shape[] = {LENGTH};
        assert_int_equal(bw_build(model, 1, shape, 3), BW_OK);
        assert_int_equal(model->outputs[0]->shape.ndim, 1 + keep);
        float table[TOKENS * 4], p[SAMPLES * 4];
        assert_int_equal(bw_variable_get(model, 0, table, TOKENS * 4), BW_OK);
        assert_int_equal(bw_predict(model, data, p, SAMPLES * 4), BW_OK);
        for (int s = 0; s < SAMPLES; s++) {
            for (int c = 0; c < 4; c++) {
                double sum = 0, count = 0;
                for (int t = 0; t < LENGTH; t++) {
                    sum += x[s * LENGTH + t] ? (double)table[x[s * LENGTH + t] * 4 + c] : 0;
                    count += x[s * LENGTH + t] != 0;
                }
                assert_true(fabs((double)p[s * 4 + c] - (count > 0 ? sum / count : 0)) < 1e-6);
            }
        }
    }
    bw_close(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_passing),   cmocka_unit_test(test_without_mask),
                                       cmocka_unit_test(test_refused),   cmocka_unit_test(test_evaluate),
                                       cmocka_unit_test(test_fit),       cmocka_unit_test(test_gradient),
                                       cmocka_unit_test(test_average),   cmocka_unit_test(test_merging),
                                       cmocka_unit_test(test_two_masks), cmocka_unit_test(test_either_mask)};
    return cmocka_run_group_tests(tests, make_weights, NULL);
}
