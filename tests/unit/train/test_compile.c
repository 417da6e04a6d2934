/* compile: texts that are no optimizer, loss or metric; and the state that a training leaves. */
#include "support/planned.h"

/* A model that was never compiled is not trained with defaults in place of what was refused. */
static void test_not_compiled(void **state)
{
    (void)state;
    planned p;
    planned_model(&p, "flatten dense(10,softmax)", 8, 2, 2, 1, 1);
    bw_model *model = bw_model_parse(p.ctx, "flatten dense(10,softmax)");
    bw_history *result;
    float values[80];
    const char *message = "the model is not compiled, since bw_compile failed: optimizer: there is no 'adm'";
    check_fails(p.ctx, bw_compile(model, "adm", NULL, NULL), BW_INVALID_ARGUMENT, "optimizer: there is no 'adm'");
    for (int i = 0; i < 2; i++) {
        check_fails(p.ctx, bw_fit(model, p.data, NULL, NULL), BW_INVALID_ARGUMENT, message);
        check_fails(p.ctx, bw_evaluate(model, p.data, &result), BW_INVALID_ARGUMENT, message);
    }
    check_ok(p.ctx, bw_compile(model, NULL, NULL, NULL));
    check_ok(p.ctx, bw_fit(model, p.data, NULL, NULL));
    check_fails(p.ctx, bw_compile(model, "adm", NULL, NULL), BW_INVALID_ARGUMENT, "adm");
    check_ok(p.ctx, bw_fit(model, p.data, NULL, NULL)); /* as it was compiled before */
    check_ok(p.ctx, bw_predict(model, p.data, values, 80));
    planned_close(&p);
}

static void test_refusals(void **state)
{
    (void)state;
    planned p;
    planned_model(&p, "flatten dense(10,softmax)", 8, 2, 2, 1, 1);
    static const struct {
        const char *optimizer, *loss, *metrics, *message;
    } cases[] = {
        {"", NULL, NULL, "optimizer: expected one name"},
        {"adam sgd", NULL, NULL, "optimizer: expected one name"},
        {"x=adam", NULL, NULL, "optimizer: expected one name"},
        {"gradient_descent", NULL, NULL, "optimizer: there is no 'gradient_descent'; there are sgd"},
        {"adam(", NULL, NULL, "optimizer: column 6: expected"},
        {"adam(lr=-1)", NULL, NULL, "adam|learning_rate|-1"},
        {"adam(lr=fast)", NULL, NULL, "adam|learning_rate|fast"},
        {"adam(momentum=0.9)", NULL, NULL, "adam: column 6: there is no argument 'momentum'"},
        {"sgd(momentum=1.5)", NULL, NULL, "sgd: column 14: momentum: expected a number from 0 to 1"},
        {NULL, "mean_absolute_nonsense", NULL, "loss: there is no 'mean_absolute_nonsense'; did you mean 'mean_absolute_error'?"},
        {NULL, "mse(3)", NULL, "loss|too many arguments"},
        {NULL, NULL, "accuracy nonsense", "metrics: there is no 'nonsense'; there are accuracy"},
        {NULL, NULL, "accuracy(", "metrics: column 10: expected"},
        {NULL, NULL, "accuracy(this=1)", "metrics|there is no argument 'this'"},
    };
    check_ok(p.ctx, bw_compile(p.model, "sgd(0.25)", NULL, NULL));
    for (size_t i = 0; i < BWI_COUNT(cases); i++) {
        check_fails(p.ctx, bw_compile(p.model, cases[i].optimizer, cases[i].loss, cases[i].metrics), BW_INVALID_ARGUMENT,
                    cases[i].message);
        /* As it was compiled before. */
        const bwi_optimizer *o = &bwi_training_of(p.model)->optimizer;
        assert_string_equal(o->row->name, "sgd");
        assert_true(bwi_optimizer_rate(o) == 0.25);
    }
    check_ok(p.ctx, bw_fit(p.model, p.data, NULL, NULL));
    assert_int_equal(bw_compile(NULL, NULL, NULL, NULL), BW_INVALID_ARGUMENT);
    planned_close(&p);
}

/* Losses and metrics for outputs that the model does not have, or too many of them. */
static void test_outputs_that_are_not_there(void **state)
{
    (void)state;
    static const struct {
        const char *loss, *metrics, *message;
    } cases[] = {
        {"nowhere=mse", NULL, "loss|'nowhere'"},
        {"sparse_categorical_crossentropy mse", NULL, "loss|1 output|2"},
        {NULL, "nowhere=accuracy", "metrics|'nowhere'"},
    };
    for (size_t i = 0; i < BWI_COUNT(cases); i++) {
        planned p;
        planned_model(&p, "flatten dense(10,softmax)", 8, 2, 2, 1, 1);
        bw_status status = bw_compile(p.model, NULL, cases[i].loss, cases[i].metrics);
        if (status == BW_OK) {
            status = bw_fit(p.model, p.data, NULL, NULL);
        }
        check_fails(p.ctx, status, BW_INVALID_ARGUMENT, cases[i].message);
        planned_close(&p);
    }
}

static void test_names_of_metrics(void **state)
{
    (void)state;
    static const char *const lists[] = {"accuracy", "accuracy,", " accuracy ", "accuracy , "};
    for (size_t i = 0; i < BWI_COUNT(lists); i++) {
        planned p;
        planned_model(&p, "flatten dense(10,softmax)", 8, 2, 2, 1, 1);
        check_ok(p.ctx, bw_compile(p.model, NULL, NULL, lists[i]));
        bw_history *history;
        check_ok(p.ctx, bw_fit(p.model, p.data, NULL, &history));
        assert_int_equal(bw_history_columns(history), 2);
        assert_string_equal(bw_history_column(history, 0), "accuracy");
        planned_close(&p);
    }
    planned p;
    planned_model(&p, "flatten dense(10,softmax)", 8, 2, 2, 1, 1);
    check_ok(p.ctx, bw_compile(p.model, NULL, NULL, "")); /* none */
    bw_history *history;
    check_ok(p.ctx, bw_fit(p.model, p.data, NULL, &history));
    assert_int_equal(bw_history_columns(history), 1);
    planned_close(&p);
}

/* ---- State ---- */

static void open_trained(planned *p, uint64_t seed)
{
    planned_model(p, "conv2d(3,2) batchnorm relu flatten dense(10,softmax)", 20, 4, 4, 2, 1);
    check_ok(p->ctx, bw_compile(p->model, "adam", NULL, NULL));
    check_ok(p->ctx, bw_build(p->model, 3, (const int64_t[]){4, 4, 2}, seed));
}

static void fit(planned *p, int epochs)
{
    bw_fit_options options = BW_FIT_OPTIONS_DEFAULT;
    options.epochs = epochs;
    options.batch = 6;
    check_ok(p->ctx, bw_fit(p->model, p->data, &options, NULL));
}

static void test_names_in_the_state(void **state)
{
    (void)state;
    planned p;
    open_trained(&p, 1);
    fit(&p, 1);
    bwi_state s = {.ctx = p.ctx};
    bwi_training_state(p.model, &s);
    assert_false(s.failed);
    static const char *const variables[] = {"conv2d/kernel",
                                            "conv2d/bias",
                                            "batch_normalization/gamma",
                                            "batch_normalization/beta",
                                            "batch_normalization/moving_mean",
                                            "batch_normalization/moving_variance",
                                            "dense/kernel",
                                            "dense/bias"};
    char name[128];
    for (size_t v = 0; v < BWI_COUNT(variables); v++) {
        snprintf(name, sizeof name, "variables/%s", variables[v]);
        const bwi_state_value *value = bwi_state_find(&s, name);
        assert_non_null(value);
        int64_t shape[BW_MAX_NDIM];
        assert_int_equal(bw_variable_shape(p.model, (int)v, shape), value->ndim);
        assert_memory_equal(shape, value->shape, (size_t)value->ndim * sizeof *shape);
        bool trained = !strstr(variables[v], "moving");
        snprintf(name, sizeof name, "optimizer/momentum/%s", variables[v]);
        assert_int_equal(!!bwi_state_find(&s, name), trained);
        snprintf(name, sizeof name, "optimizer/velocity/%s", variables[v]);
        assert_int_equal(!!bwi_state_find(&s, name), trained);
    }
    const bwi_state_value *iterations = bwi_state_find(&s, "optimizer/iterations");
    int64_t count;
    bwi_state_read(iterations, &count);
    assert_int_equal(count, 4); /* ceil(20 / 6) */
    bwi_state_free(&s);
    planned_close(&p);
}

/* Everything that training needs is in it: put into another program it goes on with the same bits. */
static void test_state_is_all(void **state)
{
    (void)state;
    planned a, b;
    open_trained(&a, 1);
    fit(&a, 2);
    open_trained(&b, 2);
    fit(&b, 1); /* so that its optimizer has slots */
    assert_true(bw_model_hash(a.model) != bw_model_hash(b.model));
    bwi_state from = {.ctx = a.ctx}, to = {.ctx = b.ctx};
    bwi_training_state(a.model, &from);
    bwi_training_state(b.model, &to);
    assert_int_equal(from.count, to.count);
    for (int i = 0; i < from.count; i++) {
        const bwi_state_value *there = bwi_state_find(&to, from.values[i].name);
        assert_non_null(there);
        assert_int_equal(bwi_state_bytes(there), bwi_state_bytes(&from.values[i]));
        void *bytes = malloc(bwi_state_bytes(there) + 1);
        bwi_state_read(&from.values[i], bytes);
        bwi_state_write(there, bytes);
        free(bytes);
    }
    bwi_state_free(&from);
    bwi_state_free(&to);
    assert_true(bw_model_hash(a.model) == bw_model_hash(b.model));
    fit(&a, 2);
    fit(&b, 2);
    assert_true(bw_model_hash(a.model) == bw_model_hash(b.model));
    planned_close(&a);
    planned_close(&b);
}

/* A model that was never trained has variables, and no more. */
static void test_state_before_training(void **state)
{
    (void)state;
    bw_context *ctx = bw_open(NULL);
    bw_model *model = bw_model_parse(ctx, "dense(2)");
    bwi_state s = {.ctx = ctx};
    bwi_training_state(model, &s);
    assert_int_equal(s.count, 0);
    check_ok(ctx, bw_build(model, 1, (const int64_t[]){3}, 1));
    bwi_training_state(model, &s);
    assert_int_equal(s.count, 2);
    bwi_state_free(&s);
    bw_close(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_not_compiled),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_outputs_that_are_not_there),
        cmocka_unit_test(test_names_of_metrics),
        cmocka_unit_test(test_names_in_the_state),
        cmocka_unit_test(test_state_is_all),
        cmocka_unit_test(test_state_before_training),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
