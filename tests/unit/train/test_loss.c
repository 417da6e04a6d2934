/* Losses: values that Keras gives for the same predictions, NaN, weights, class weights, penalties, messages. */
#include "heads_test.h"

/* The loss without weights, and with them, by Keras. */
static const struct row {
    const char *loss;
    const float *x;
    const targets *y;
    double plain, weighted;
} rows[] = {
    {"mean_squared_error", numbers, &real, 2.66086817, 2.53999996},
    {"mean_absolute_error", numbers, &real, 1.21527779, 1.23611116},
    {"mean_absolute_percentage_error", numbers, &sign, 154.027786, 180},
    {"mean_squared_logarithmic_error", numbers, &real, 0.280914694, 0.209683612},
    {"huber", numbers, &real, 0.871666729, 0.900208414},
    {"huber(delta=0.25)", numbers, &real, 0.279583335, 0.286909729},
    {"log_cosh", numbers, &real, 0.785456002, 0.802557945},
    {"binary_crossentropy", shares_of_one, &zero_one, 5.00093269, 6.11503458},
    {"binary_crossentropy(label_smoothing=0.3)", shares_of_one, &zero_one, 4.46179724, 5.34334326},
    {"binary_crossentropy(from_logits=true)", numbers, &zero_one, 1.10561657, 1.31160557},
    {"binary_crossentropy(true,0.3)", numbers, &zero_one, 1.024575, 1.21035564},
    {"categorical_crossentropy", shares_of_one, &onehot, 6.14022684, 2.86062431},
    {"categorical_crossentropy(label_smoothing=0.3)", shares_of_one, &shares, 5.89441872, 3.75268006},
    {"categorical_crossentropy(from_logits=true)", numbers, &shares, 1.72226727, 1.57091892},
    {"categorical_crossentropy(true,0.3)", numbers, &onehot, 1.69789231, 1.267169},
    {"sparse_categorical_crossentropy", shares_of_one, &labels, 6.14022684, 2.86062431},
    {"sparse_categorical_crossentropy(from_logits=true)", numbers, &labels, 1.81080902, 1.18550217},
    {"hinge", numbers, &sign, 1.54027784, 1.80000007},
    {"hinge", numbers, &zero_one, 1.54027784, 1.80000007},
    {"squared_hinge", numbers, &sign, 3.44281268, 4.27194452},
    {"categorical_hinge", numbers, &onehot, 2.00833344, 1.13749993},
    {"kl_divergence", shares_of_one, &shares, 5.85068512, 2.42325926},
    {"poisson", shares_of_one, &shares, 2.53346539, 1.66206646},
    {"cosine_similarity", numbers, &real, -0.148880452, -0.516116858},
};

static const size_t row_count = sizeof rows / sizeof *rows;

static double evaluate(const char *loss, const float *x, const targets *y, const float *w)
{
    bw_context *ctx = bw_open(NULL);
    bw_model *model = identity(ctx);
    check_ok(ctx, bw_compile(model, "sgd", loss, ""));
    bw_history *result;
    check_ok(ctx, bw_evaluate(model, samples_of(ctx, x, y, w), &result));
    double value = bw_history_last(result, "loss");
    bw_close(ctx);
    return value;
}

static void check_near(const char *what, double got, double expected)
{
    if (!(fabs(got - expected) <= 2e-6 * (1 + fabs(expected)))) {
        fail_msg("%s: expected %.9g, got %.9g", what, expected, got);
    }
}

static void test_values(void **state)
{
    (void)state;
    for (size_t i = 0; i < row_count; i++) {
        check_near(rows[i].loss, evaluate(rows[i].loss, rows[i].x, rows[i].y, NULL), rows[i].plain);
        check_near(rows[i].loss, evaluate(rows[i].loss, rows[i].x, rows[i].y, weights), rows[i].weighted);
    }
}

/* A NaN is in the loss and in the gradient: the step fails, naming its sample, and changes nothing. */
static void test_nan(void **state)
{
    (void)state;
    for (size_t i = 0; i < row_count; i++) {
        float x[SAMPLES * WIDTH];
        memcpy(x, rows[i].x, sizeof x);
        x[4 * WIDTH + 1] = NAN;
        assert_true(isnan(evaluate(rows[i].loss, x, rows[i].y, NULL)));
        bw_context *ctx = bw_open(NULL);
        bw_model *model = identity(ctx);
        uint64_t before = bw_model_hash(model);
        check_ok(ctx, bw_compile(model, "sgd", rows[i].loss, ""));
        bw_status status = bw_fit(model, samples_of(ctx, x, rows[i].y, NULL), NULL, NULL);
        if (status != BW_INVALID_ARGUMENT || !strstr(bw_message(ctx), "sample 4")) {
            fail_msg("%s: %s: %s", rows[i].loss, bw_status_name(status), bw_message(ctx));
        }
        assert_true(bw_model_hash(model) == before);
        bw_close(ctx);
    }
}

/* Names and aliases are Keras's. */
static void test_aliases(void **state)
{
    (void)state;
    static const char *const pairs[][2] = {{"mse", "mean_squared_error"},
                                           {"MeanAbsoluteError", "mae"},
                                           {"MAPE", "mean_absolute_percentage_error"},
                                           {"msle", "MeanSquaredLogarithmicError"},
                                           {"Huber(1.0)", "huber"},
                                           {"logcosh", "LogCosh"},
                                           {"kld", "KLDivergence"},
                                           {"bce", "binary_crossentropy"}};
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        assert_true(evaluate(pairs[i][0], shares_of_one, &shares, NULL) == evaluate(pairs[i][1], shares_of_one, &shares, NULL));
    }
}

/* The loss of a softmax or sigmoid is that of its logits, also where the probabilities are saturated. */
static void test_logits_are_traced(void **state)
{
    (void)state;
    static const float x[SAMPLES * WIDTH] = {200, 0, -200, 200, 0, -200, 0, 0, 0, 30, 0, 0, 0, -90, 0, 1, 2, 3};
    static const struct {
        const char *model, *loss, *from_logits;
        const targets *y;
    } cases[] = {
        {"dense(3,softmax)", "categorical_crossentropy", "categorical_crossentropy(from_logits=true)", &shares},
        {"dense(3,softmax)", "sparse_categorical_crossentropy", "sparse_categorical_crossentropy(from_logits=true)", &labels},
        {"dense(3,sigmoid)", "binary_crossentropy", "binary_crossentropy(from_logits=true)", &zero_one}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bw_context *ctx = bw_open(NULL);
        bw_model *model = bw_model_parse(ctx, cases[i].model);
        const int64_t shape[] = {WIDTH};
        static const float unit[WIDTH * WIDTH] = {1, 0, 0, 0, 1, 0, 0, 0, 1};
        check_ok(ctx, bw_compile(model, "sgd", cases[i].loss, ""));
        check_ok(ctx, bw_build(model, 1, shape, 0));
        check_ok(ctx, bw_variable_set(model, 0, unit, WIDTH * WIDTH));
        bw_history *result;
        check_ok(ctx, bw_evaluate(model, samples_of(ctx, x, cases[i].y, NULL), &result));
        double expected = evaluate(cases[i].from_logits, x, cases[i].y, NULL);
        assert_true(expected > 17); /* more than clipped probabilities could give */
        check_near(cases[i].loss, bw_history_last(result, "loss"), expected);
        bw_close(ctx);
    }
}

/* Training sees class weights times sample weights; validation sees the samples' only. */
static void test_class_weight(void **state)
{
    (void)state;
    static const float by_class[] = {0.5F, 3};
    static const targets *const kinds[] = {&labels, &onehot};
    for (size_t k = 0; k < 2; k++) {
        const char *loss = kinds[k]->width ? "categorical_crossentropy" : "sparse_categorical_crossentropy";
        bw_context *ctx = bw_open(NULL);
        bw_model *model = identity(ctx);
        check_ok(ctx, bw_compile(model, "sgd(lr=0)", loss, "mse(weighted=true)"));
        bw_fit_options options = BW_FIT_OPTIONS_DEFAULT;
        options.class_weight = by_class;
        options.class_count = 2;
        options.validation = samples_of(ctx, shares_of_one, kinds[k], weights);
        check_ok(ctx, bw_compile(model, "sgd(lr=0)", loss, ""));
        bw_history *history;
        check_ok(ctx, bw_fit(model, samples_of(ctx, shares_of_one, kinds[k], weights), &options, &history));
        float both[SAMPLES];
        for (int s = 0; s < SAMPLES; s++) {
            int class = (int)labels.values[s];
            both[s] = weights[s] * (class < 2 ? by_class[class] : 1);
        }
        check_near("weighted by class", bw_history_last(history, "loss"), evaluate(loss, shares_of_one, kinds[k], both));
        check_near("validation", bw_history_last(history, "val_loss"), evaluate(loss, shares_of_one, kinds[k], weights));
        bw_close(ctx);
    }
}

static void test_class_weight_messages(void **state)
{
    (void)state;
    static const float bad[] = {1, -2};
    static const struct {
        const float *weights;
        int count;
        const char *part;
    } cases[] = {{bad, 2, "class_weight: expected numbers of at least 0, got -2 for class 1"},
                 {NULL, 2, "class_weight: expected weights and their count, got no weights and a count of 2"},
                 {bad, -1, "a count of -1"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bw_context *ctx = bw_open(NULL);
        bw_model *model = identity(ctx);
        check_ok(ctx, bw_compile(model, "sgd", "mse", NULL));
        bw_fit_options options = BW_FIT_OPTIONS_DEFAULT;
        options.class_weight = cases[i].weights;
        options.class_count = cases[i].count;
        check_fails(ctx, bw_fit(model, samples_of(ctx, numbers, &real, NULL), &options, NULL), BW_INVALID_ARGUMENT, cases[i].part);
        bw_close(ctx);
    }
}

/* What regularizers add is in the loss of training and of evaluation: l2 0.5 of the unit matrix is 1.5. */
static void test_penalty(void **state)
{
    (void)state;
    bw_context *ctx = bw_open(NULL);
    bw_model *model = bw_model_parse(ctx, "dense(3,kernel_regularizer=l2(0.5))");
    const int64_t shape[] = {WIDTH};
    static const float unit[WIDTH * WIDTH] = {1, 0, 0, 0, 1, 0, 0, 0, 1};
    check_ok(ctx, bw_compile(model, "sgd", "mse", "mse"));
    check_ok(ctx, bw_build(model, 1, shape, 0));
    check_ok(ctx, bw_variable_set(model, 0, unit, WIDTH * WIDTH));
    bw_history *result, *history;
    check_ok(ctx, bw_evaluate(model, samples_of(ctx, numbers, &real, NULL), &result));
    check_near("evaluated", bw_history_last(result, "loss"), rows[0].plain + 1.5);
    check_near("the metric", bw_history_last(result, "mse"), rows[0].plain);
    check_ok(ctx, bw_fit(model, samples_of(ctx, numbers, &real, NULL), NULL, &history));
    check_near("as before the update", bw_history_last(history, "loss"), rows[0].plain + 1.5);
    bw_close(ctx);
}

static void test_messages(void **state)
{
    (void)state;
    static const targets narrow = {2, {0}}, outside = {0, {0, 1, 3, 1, 0, 2}}, fraction = {0, {0, 1, 0.5F, 1, 0, 2}};
    static const struct {
        const char *loss;
        const targets *y;
        const char *part;
    } cases[] = {
        {"mse", &narrow, "mean_squared_error: expected targets of shape (3,), the output's, got (2,)"},
        {"mse", &labels, "mean_squared_error: expected targets of shape (3,), the output's, got ()"},
        {"categorical_crossentropy", &labels,
         "categorical_crossentropy: expected targets of shape (3,), the output's, got (); for class numbers use "
         "sparse_categorical_crossentropy"},
        {"sparse_categorical_crossentropy", &onehot,
         "expected targets of shape (), a class number for each row of the output, got (3,); for a number for each class use "
         "categorical_crossentropy"},
        {"sparse_categorical_crossentropy", &outside,
         "label 3 of sample 2 is outside 0..2: the output layer has 3 classes; are they numbered from 1? --categorical y"},
        {"sparse_categorical_crossentropy(from_logits=true)", &outside, "label 3 of sample 2 is outside 0..2"},
        {"sparse_categorical_crossentropy", &fraction,
         "sample 2: its target cannot be read as int32: it is 0.5, and class numbers are whole"},
        {"hubert", &real, "loss: there is no 'hubert'; did you mean 'huber'?"},
        {"sparse_categorical_crosentropy", &labels, "; did you mean 'sparse_categorical_crossentropy'?"},
        {"error_of_mine", &real, "loss: there is no 'error_of_mine'; there are mean_squared_error, mean_absolute_error"},
        {"huber(delta=-1)", &real, "delta: expected a number from 0"},
        {"binary_crossentropy(label_smoothing=2)", &real, "label_smoothing: expected a number from 0 to 1"},
        {"sparse_categorical_crossentropy(label_smoothing=0.1)", &labels, "there is no argument 'label_smoothing'"},
        {"mse mae", &real, "loss: expected one for each of the model's 1 outputs, got 2"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bw_context *ctx = bw_open(NULL);
        bw_model *model = identity(ctx);
        bw_status status = bw_compile(model, "sgd", cases[i].loss, NULL);
        if (status == BW_OK) {
            status = bw_fit(model, samples_of(ctx, numbers, cases[i].y, NULL), NULL, NULL);
        }
        assert_int_equal(status, BW_INVALID_ARGUMENT);
        if (!strstr(bw_message(ctx), cases[i].part)) {
            fail_msg("%s: expected '%s' in '%s'", cases[i].loss, cases[i].part, bw_message(ctx));
        }
        bw_close(ctx);
    }
}

/* One weight a sample, as (n) or (n, 1), or one for each position; nothing else. */
static void test_weights_of_positions(void **state)
{
    (void)state;
    static const struct {
        int ndim;
        int64_t shape[3];
        const char *part;
    } cases[] = {{1, {2}, NULL},
                 {2, {2, 1}, NULL},
                 {2, {2, 3}, NULL},
                 {3, {2, 3, 1}, NULL},
                 {2, {2, 2}, "expected one sample weight a sample, or one for each of the output's 3 positions, got (2,)"}};
    bw_array x = {.data = numbers, .dtype = BW_F32, .ndim = 3, .shape = {2, 3, 3}};
    bw_array y = {.data = real.values, .dtype = BW_F32, .ndim = 3, .shape = {2, 3, 3}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bw_context *ctx = bw_open(NULL);
        bw_array w = {.data = weights, .dtype = BW_F32, .ndim = cases[i].ndim};
        memcpy(w.shape, cases[i].shape, sizeof cases[i].shape);
        bw_model *model = bw_model_parse(ctx, "dense(3)");
        static const float unit[WIDTH * WIDTH] = {1, 0, 0, 0, 1, 0, 0, 0, 1};
        check_ok(ctx, bw_compile(model, "sgd", "mse", ""));
        check_ok(ctx, bw_build(model, 2, x.shape + 1, 0));
        check_ok(ctx, bw_variable_set(model, 0, unit, WIDTH * WIDTH));
        bw_history *result;
        bw_status status = bw_evaluate(model, bw_from_arrays(ctx, &x, &y, &w), &result);
        if (cases[i].part) {
            check_fails(ctx, status, BW_INVALID_ARGUMENT, cases[i].part);
        } else {
            check_ok(ctx, status);
            double expected = 0;
            bool each = cases[i].ndim > 1 && cases[i].shape[1] == 3;
            for (int e = 0; e < SAMPLES * WIDTH; e++) {
                double error = (double)numbers[e] - (double)real.values[e];
                expected += error * error * (double)weights[each ? e / 3 : e / 9] / (SAMPLES * WIDTH);
            }
            check_near("weighted positions", bw_history_last(result, "loss"), expected);
        }
        bw_close(ctx);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_values),
                                       cmocka_unit_test(test_nan),
                                       cmocka_unit_test(test_aliases),
                                       cmocka_unit_test(test_logits_are_traced),
                                       cmocka_unit_test(test_class_weight),
                                       cmocka_unit_test(test_class_weight_messages),
                                       cmocka_unit_test(test_penalty),
                                       cmocka_unit_test(test_messages),
                                       cmocka_unit_test(test_weights_of_positions)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
