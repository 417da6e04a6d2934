/* Metrics: values that Keras gives for the same predictions, over tiles and uneven batches; names of columns; messages. */
#include "heads_test.h"

/* The value without weights, and of the weighted metric with them, by Keras. */
static const struct row {
    const char *metric;
    const float *x;
    const targets *y;
    double plain, weighted;
} rows[] = {
    {"binary_accuracy", shares_of_one, &zero_one, 0.333333343, 0.38271603},
    {"binary_accuracy(threshold=0.3)", shares_of_one, &zero_one, 0.333333343, 0.320987672},
    {"binary_accuracy", shares_of_one, &shares, 0.111111112, 0.0370370373},
    {"categorical_accuracy", shares_of_one, &shares, 0, 0},
    {"accuracy", shares_of_one, &onehot, 0.166666672, 0.444444448},
    {"sparse_categorical_accuracy", shares_of_one, &labels, 0.166666672, 0.444444448},
    {"accuracy", shares_of_one, &labels, 0.166666672, 0.444444448},
    {"top_k_categorical_accuracy(k=2)", numbers, &onehot, 0.5, 0.814814806},
    {"sparse_top_k_categorical_accuracy(2)", numbers, &labels, 0.5, 0.814814806},
    {"top_k_categorical_accuracy", numbers, &onehot, 1, 1},
    {"precision", shares_of_one, &zero_one, 0, 0},
    {"precision(thresholds=0.2)", shares_of_one, &shares, 0.636363626, 0.9375},
    {"recall", shares_of_one, &zero_one, 0, 0},
    {"recall(0.9)", shares_of_one, &zero_one, 0, 0},
    {"precision(thresholds=1)", shares_of_one, &zero_one, 0, 0},
    {"precision", shares_of_one, &onehot, 0.25, 0.800000012},
    {"recall", shares_of_one, &onehot, 0.166666672, 0.444444448},
    {"auc", shares_of_one, &zero_one, 0.256249994, 0.247826099},
    {"auc(curve=pr)", shares_of_one, &zero_one, 0.313644528, 0.300635159},
    {"auc(num_thresholds=3)", shares_of_one, &onehot, 0.458333343, 0.694444418},
    {"auc(num_thresholds=2)", shares_of_one, &onehot, 0.5, 0.5},
    {"auc(11,pr,minoring)", shares_of_one, &onehot, 0.200207204, 0.183772758},
    {"auc(11,roc,majoring)", shares_of_one, &onehot, 0.458333343, 0.772290766},
    {"auc(11,prgain)", shares_of_one, &onehot, -0.53125, 0.563541651},
    {"auc(from_logits=true)", numbers, &zero_one, 0.262500018, 0.18881987},
    {"auc", numbers, &zero_one, 0.300000012, 0.223602474},
    {"root_mean_squared_error", numbers, &real, 1.63121676, 1.5025903},
    {"r2_score", numbers, &real, -0.705949247, -1.57264686},
    {"r2_score(variance_weighted_average)", numbers, &real, 0.0154217938, 0.264064372},
    {"r2_score(num_regressors=4)", numbers, &real, -1.2308569, -2.36423063},
    {"r2_score(num_regressors=17)", numbers, &real, -0.705949247, -1.57264686},
    {"cosine_similarity", numbers, &real, 0.148880452, 0.458770543},
    {"log_cosh_error", numbers, &real, 0.785456002, 0.713384867},
    {"mae", numbers, &real, 1.21527779, 1.09876549},
    {"poisson", shares_of_one, &shares, 2.53346539, 1.47739244},
    {"kl_divergence", shares_of_one, &shares, 5.85068512, 2.15400815},
    {"huber(0.5)", numbers, &real, 0.514027774, 0.471481502},
};

/* Whatever the metric wants as targets, this loss takes. */
static const char *loss_for(const targets *y)
{
    return y->width ? "mse" : "sparse_categorical_crossentropy(from_logits=true)";
}

static void check_row(const struct row *r, bool weighted)
{
    bw_context *ctx = bw_open(NULL);
    bw_model *model = identity(ctx);
    char metric[96];
    size_t n = strlen(r->metric), options = r->metric[n - 1] == ')';
    snprintf(metric, sizeof metric, "%.*s%sweighted=%s,name=it)", (int)(n - options), r->metric, options ? "," : "(",
             weighted ? "true" : "false");
    check_ok(ctx, bw_compile(model, "sgd", loss_for(r->y), metric));
    bw_history *result;
    check_ok(ctx, bw_evaluate(model, samples_of(ctx, r->x, r->y, weights), &result));
    double got = bw_history_last(result, "it"), expected = weighted ? r->weighted : r->plain;
    if (!(fabs(got - expected) <= 2e-6 * (1 + fabs(expected)))) {
        fail_msg("%s: expected %.9g, got %.9g", metric, expected, got);
    }
    bw_close(ctx);
}

static void test_values(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        check_row(&rows[i], false);
        check_row(&rows[i], true);
    }
}

/* Nothing moves with a rate of 0: an epoch in batches of 4 and 2 and tiles of 1 gives what the whole gives. */
static void test_batches_and_tiles(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        bw_context *ctx = bw_open(NULL);
        bw_model *model = identity(ctx);
        char metrics[96];
        snprintf(metrics, sizeof metrics, "%s", rows[i].metric);
        check_ok(ctx, bw_compile(model, "sgd(lr=0)", loss_for(rows[i].y), metrics));
        bw_fit_options options = BW_FIT_OPTIONS_DEFAULT;
        options.batch = 4;
        options.tile = 1;
        bw_history *history;
        check_ok(ctx, bw_fit(model, samples_of(ctx, rows[i].x, rows[i].y, NULL), &options, &history));
        double got = bw_history_last(history, bw_history_column(history, 0));
        if (!(fabs(got - rows[i].plain) <= 2e-6 * (1 + fabs(rows[i].plain)))) {
            fail_msg("%s: expected %.9g, got %.9g", metrics, rows[i].plain, got);
        }
        bw_close(ctx);
    }
}

static void test_names(void **state)
{
    (void)state;
    bw_context *ctx = bw_open(NULL);
    bw_model *model = identity(ctx);
    check_ok(ctx, bw_compile(model, "sgd", "mse",
                             "mae(weighted=true), mse, mae, mae(weighted=true) MSE AUC(name=area), mae,mae(weighted=true)"));
    bw_history *result;
    check_ok(ctx, bw_evaluate(model, samples_of(ctx, numbers, &real, weights), &result));
    static const char *const expected[] = {"mse", "mae", "MSE", "area", "mae_1", "weighted_mae", "weighted_mae_1", "weighted_mae_2",
                                           "loss"};
    assert_int_equal(bw_history_columns(result), (int)(sizeof expected / sizeof *expected));
    for (int c = 0; c < bw_history_columns(result); c++) {
        assert_string_equal(bw_history_column(result, c), expected[c]);
    }
    assert_true(bw_history_last(result, "mae") == bw_history_last(result, "mae_1"));
    assert_true(bw_history_last(result, "mae") != bw_history_last(result, "weighted_mae"));
    bw_close(ctx);
}

/* Accuracy goes with losses of classes when no metric is named, and with no others. */
static void test_default(void **state)
{
    (void)state;
    static const struct {
        const char *loss;
        const targets *y;
        int columns;
    } cases[] = {{"mse", &real, 1},
                 {"categorical_crossentropy", &onehot, 2},
                 {"binary_crossentropy", &zero_one, 2},
                 {"sparse_categorical_crossentropy", &labels, 2}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bw_context *ctx = bw_open(NULL);
        bw_model *model = identity(ctx);
        check_ok(ctx, bw_compile(model, "sgd", cases[i].loss, NULL));
        bw_history *result;
        check_ok(ctx, bw_evaluate(model, samples_of(ctx, shares_of_one, cases[i].y, NULL), &result));
        assert_int_equal(bw_history_columns(result), cases[i].columns);
        bw_close(ctx);
    }
}

static void test_messages(void **state)
{
    (void)state;
    static const struct {
        const char *metric;
        const targets *y;
        const char *part;
    } cases[] = {
        {"auc", &labels, "auc: expected targets of shape (3,), the output's, got ()"},
        {"categorical_accuracy", &labels, "categorical_accuracy: expected targets of shape (3,)"},
        {"sparse_categorical_accuracy", &onehot, "a class number for each row of the output, got (3,)"},
        {"sparse_top_k_categorical_accuracy", &onehot, "a class number for each row of the output"},
        {"accurracy", &real, "metrics: there is no 'accurracy'; did you mean 'accuracy'?"},
        {"auc(curve=round)", &real, "curve: expected one of: roc pr prgain"},
        {"auc(num_thresholds=1)", &real, "num_thresholds: expected a number from 2"},
        {"precision(thresholds=2)", &real, "thresholds: expected a number from 0 to 1"},
        {"top_k_categorical_accuracy(k=0)", &real, "k: expected a number from 1"},
        {"precision(top_k=0)", &real, "top_k: expected a number from 1"},
        {"precision(class_id=7)", &real, "class_id: expected a class from 0 to 2, got 7"},
        {"f1_score(average=best)", &real, "average: expected one of: none micro macro weighted"},
        {"auc(num_labels=3)", &real, "num_labels belongs to multi_label=true"},
        {"auc(label_weights=(1,2))", &real, "label_weights: expected one for each of the output's 3 labels, got 2"},
        {"iou(num_classes=3,target_class_ids=(3,),sparse_y_pred=false)", &labels,
         "target_class_ids: expected classes below 3, got 3"},
        {"mean_iou(num_classes=2,sparse_y_pred=false)", &labels, "num_classes: the output has 3 classes, got 2"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bw_context *ctx = bw_open(NULL);
        bw_model *model = identity(ctx);
        bw_history *result;
        bw_status status = bw_compile(model, "sgd", loss_for(cases[i].y), cases[i].metric);
        if (status == BW_OK) {
            status = bw_evaluate(model, samples_of(ctx, numbers, cases[i].y, NULL), &result);
        }
        assert_int_equal(status, BW_INVALID_ARGUMENT);
        if (!strstr(bw_message(ctx), cases[i].part)) {
            fail_msg("%s: expected '%s' in '%s'", cases[i].metric, cases[i].part, bw_message(ctx));
        }
        bw_close(ctx);
    }
}

/* R2 is of outputs with one axis. */
static void test_r2_of_positions(void **state)
{
    (void)state;
    bw_context *ctx = bw_open(NULL);
    bw_array x = {.data = numbers, .dtype = BW_F32, .ndim = 3, .shape = {2, 3, 3}};
    bw_model *model = bw_model_parse(ctx, "dense(3)");
    check_ok(ctx, bw_compile(model, "sgd", "mse", "r2_score"));
    bw_history *result;
    check_fails(ctx, bw_evaluate(model, bw_from_arrays(ctx, &x, &x, NULL), &result), BW_INVALID_ARGUMENT,
                "r2_score: expected an output with one axis, got (3, 3)");
    bw_close(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_values),   cmocka_unit_test(test_batches_and_tiles),
                                       cmocka_unit_test(test_names),    cmocka_unit_test(test_default),
                                       cmocka_unit_test(test_messages), cmocka_unit_test(test_r2_of_positions)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
