/* Gradients for custom loops: batches of any size add up, and misuse is a status. */
#include "support/planned.h"

#include <math.h>

static const char *const text = "flatten dense(12,relu) dense(10,softmax)";

static void open_model(planned *p, const char *expression)
{
    planned_model(p, expression, 48, 4, 4, 2, 2);
    check_ok(p->ctx, bw_compile(p->model, "adam", NULL, NULL));
    check_ok(p->ctx, bw_build(p->model, 3, (const int64_t[]){4, 4, 2}, 7));
}

/* A loop over batches is what fit does. */
static void test_a_loop_is_a_fit(void **state)
{
    (void)state;
    planned a, b;
    open_model(&a, text);
    open_model(&b, text);
    bw_fit_options options = BW_FIT_OPTIONS_DEFAULT;
    options.batch = 13;
    options.epochs = 2;
    bw_history *history;
    check_ok(a.ctx, bw_fit(a.model, a.data, &options, &history));
    bw_gradients *gradients = bw_gradients_new(b.model, NULL);
    bw_dataset *batches = bw_batches(bw_take(b.data, 48), 13);
    for (int epoch = 0; epoch < 2; epoch++) {
        bw_iterator *iterator = bw_iterate(batches, epoch);
        bw_batch *batch;
        bw_status status;
        while ((status = bw_next(iterator, &batch)) == BW_OK) {
            double loss = 0;
            check_ok(b.ctx, bw_gradients_add(gradients, batch, &loss));
            assert_true(loss > 0 && loss < 10);
            assert_int_equal(bw_gradients_samples(gradients), bw_batch_count(batch));
            check_ok(b.ctx, bw_apply(b.model, gradients));
            assert_int_equal(bw_gradients_samples(gradients), 0);
        }
        assert_int_equal(status, BW_OUT_OF_RANGE);
        bw_iterator_free(iterator);
    }
    assert_true(bw_model_hash(a.model) == bw_model_hash(b.model));
    bw_gradients_free(gradients);
    planned_close(&a);
    planned_close(&b);
}

static void test_misuse(void **state)
{
    (void)state;
    planned p;
    open_model(&p, text);
    uint64_t before = bw_model_hash(p.model);
    bw_gradients *gradients = bw_gradients_new(p.model, NULL);
    check_fails(p.ctx, bw_apply(p.model, gradients), BW_INVALID_ARGUMENT, "nothing to apply");
    check_fails(p.ctx, bw_gradients_add(gradients, NULL, NULL), BW_INVALID_ARGUMENT, "there is no batch");
    assert_int_equal(bw_gradients_add(NULL, NULL, NULL), BW_INVALID_ARGUMENT);
    assert_int_equal(bw_apply(NULL, gradients), BW_INVALID_ARGUMENT);
    assert_int_equal(bw_apply(p.model, NULL), BW_INVALID_ARGUMENT);
    assert_null(bw_gradients_new(NULL, NULL));
    assert_int_equal(bw_gradients_samples(gradients), 0);
    bw_gradients_clear(gradients);
    bw_model *other = bw_model_parse(p.ctx, text);
    bw_iterator *iterator = bw_iterate(p.data, 0);
    bw_batch *batch;
    check_ok(p.ctx, bw_next(iterator, &batch));
    check_ok(p.ctx, bw_gradients_add(gradients, batch, NULL));
    check_fails(p.ctx, bw_apply(other, gradients), BW_INVALID_ARGUMENT, "the gradients are of another model");
    bw_gradients_clear(gradients);
    check_fails(p.ctx, bw_apply(p.model, gradients), BW_INVALID_ARGUMENT, "nothing to apply");
    assert_true(bw_model_hash(p.model) == before);
    bw_gradients_free(gradients);
    bw_gradients_free(NULL);
    planned_close(&p);
}

static bw_status add_one(bw_gradients *gradients, bw_dataset *dataset)
{
    bw_iterator *iterator = bw_iterate(dataset, 0);
    bw_batch *batch;
    bw_status status = bw_next(iterator, &batch);
    status = status == BW_OK ? bw_gradients_add(gradients, batch, NULL) : status;
    bw_iterator_free(iterator);
    return status;
}

/* Batches of other datasets are refused by what they lack or have otherwise, and what was added before stays. */
static void test_batches_are_alike(void **state)
{
    (void)state;
    static const float x[24] = {1, 2, 3}, y[24] = {1};
    bw_array two = {.data = x, .dtype = BW_F32, .ndim = 2, .shape = {4, 2}};
    bw_array three = {.data = x, .dtype = BW_F32, .ndim = 2, .shape = {4, 3}};
    bw_array one = {.data = y, .dtype = BW_F32, .ndim = 2, .shape = {4, 1}};
    bw_context *ctx = bw_open(NULL);
    bw_model *model = bw_model_parse(ctx, "input(2) dense(1)");
    check_ok(ctx, bw_compile(model, "sgd", "mse", NULL));
    check_ok(ctx, bw_build(model, 0, NULL, 1));
    bw_gradients *gradients = bw_gradients_new(model, NULL);
    bw_dataset *whole = bw_from_arrays(ctx, &two, &one, NULL), *weighted = bw_from_arrays(ctx, &two, &one, &one);
    bw_dataset *no_target = bw_from_arrays(ctx, &two, NULL, NULL);
    check_fails(ctx, add_one(gradients, no_target), BW_INVALID_ARGUMENT, "the data has no targets (y) for dense");
    check_ok(ctx, add_one(gradients, whole));
    check_fails(ctx, add_one(gradients, no_target), BW_INVALID_ARGUMENT,
                "gradients: expected the target that the first batch has, found none");
    check_fails(ctx, add_one(gradients, bw_from_arrays(ctx, &two, &three, NULL)), BW_INVALID_ARGUMENT,
                "gradients: target: expected shape (1,) as the first batch has, found (3,)");
    check_fails(ctx, add_one(gradients, bw_from_arrays(ctx, &three, &one, NULL)), BW_INVALID_ARGUMENT,
                "gradients: input: expected shape (2,) as the first batch has, found (3,)");
    check_fails(ctx, add_one(gradients, weighted), BW_INVALID_ARGUMENT,
                "gradients: found one sample weight more than the first batch has");
    assert_int_equal(bw_gradients_samples(gradients), 4);
    check_ok(ctx, add_one(gradients, bw_from_arrays(ctx, &two, &one, NULL)));
    assert_int_equal(bw_gradients_samples(gradients), 8);
    bw_gradients *others = bw_gradients_new(model, NULL);
    check_ok(ctx, add_one(others, weighted));
    check_fails(ctx, add_one(others, whole), BW_INVALID_ARGUMENT,
                "gradients: expected the sample weight that the first batch has, found none");
    bw_close(ctx);
}

/* A batch is lent until the next call, so what is wrong with it is said when it comes. */
static void test_not_finite(void **state)
{
    (void)state;
    planned p;
    open_model(&p, text);
    uint64_t before = bw_model_hash(p.model);
    float kept = p.x[37 * 32];
    p.x[37 * 32] = (float)NAN;
    bw_gradients *gradients = bw_gradients_new(p.model, NULL);
    bw_iterator *iterator = bw_iterate(bw_batches(bw_take(p.data, 48), 24), 0);
    bw_batch *batch;
    check_ok(p.ctx, bw_next(iterator, &batch));
    check_ok(p.ctx, bw_gradients_add(gradients, batch, NULL));
    check_ok(p.ctx, bw_next(iterator, &batch));
    check_fails(p.ctx, bw_gradients_add(gradients, batch, NULL), BW_INVALID_ARGUMENT, "sample 37: its input holds NaN");
    assert_int_equal(bw_gradients_samples(gradients), 0);
    p.x[37 * 32] = kept;
    check_ok(p.ctx, bw_gradients_add(gradients, batch, NULL));
    bw_iterator_free(iterator);
    check_ok(p.ctx, bw_gradients_scale(gradients, 1e38));
    check_ok(p.ctx, bw_gradients_scale(gradients, 1e38));
    check_fails(p.ctx, bw_apply(p.model, gradients), BW_INVALID_ARGUMENT, "is not finite");
    assert_true(bw_model_hash(p.model) == before);
    planned_close(&p);
}

static void test_options(void **state)
{
    (void)state;
    planned p;
    open_model(&p, text);
    bw_fit_options options = BW_FIT_OPTIONS_DEFAULT;
    options.size = 0;
    assert_null(bw_gradients_new(p.model, &options));
    check_fails(p.ctx, bw_compile(p.model, NULL, NULL, NULL), BW_INVALID_ARGUMENT, "bw_fit_options.size is 0");
    check_fails(p.ctx, bw_set_learning_rate(p.model, 1e300), BW_INVALID_ARGUMENT, "learning rate");
    assert_int_equal(bw_evaluate(p.model, p.data, NULL), BW_INVALID_ARGUMENT);
    planned_close(&p);
}

/* The model is compiled anew while gradients wait: they were made for another optimizer. */
static void test_compiled_in_between(void **state)
{
    (void)state;
    planned p;
    open_model(&p, text);
    bw_gradients *gradients = bw_gradients_new(p.model, NULL);
    bw_iterator *iterator = bw_iterate(p.data, 0);
    bw_batch *batch;
    check_ok(p.ctx, bw_next(iterator, &batch));
    check_ok(p.ctx, bw_gradients_add(gradients, batch, NULL));
    uint64_t before = bw_model_hash(p.model);
    check_ok(p.ctx, bw_compile(p.model, "adam(lr=0.1)", NULL, NULL));
    check_fails(p.ctx, bw_apply(p.model, gradients), BW_INVALID_ARGUMENT, "compiled");
    assert_true(bw_model_hash(p.model) == before);
    bw_gradients_free(gradients);
    gradients = bw_gradients_new(p.model, NULL);
    check_ok(p.ctx, bw_gradients_add(gradients, batch, NULL));
    check_ok(p.ctx, bw_apply(p.model, gradients));
    /* Another loss alone keeps the optimizer, but what was summed is the old one's. */
    check_ok(p.ctx, bw_gradients_add(gradients, batch, NULL));
    check_ok(p.ctx, bw_recompile(p.model, NULL, "sparse_categorical_crossentropy", NULL));
    check_fails(p.ctx, bw_gradients_add(gradients, batch, NULL), BW_INVALID_ARGUMENT, "bw_gradients_new");
    check_fails(p.ctx, bw_apply(p.model, gradients), BW_INVALID_ARGUMENT, "bw_gradients_new");
    planned_close(&p);
}

/* What kernels derive from the weights follows a program that sets them between two pieces. */
static void test_variables_set_between_pieces(void **state)
{
    (void)state;
    double norm[2];
    for (int k = 0; k < 2; k++) {
        planned p;
        open_model(&p, "conv2d(16,3,padding=same) conv2d(16,3,relu) flatten dense(10,softmax)");
        bw_gradients *gradients = bw_gradients_new(p.model, NULL);
        bw_iterator *iterator = bw_iterate(p.data, 0);
        bw_batch *batch;
        check_ok(p.ctx, bw_next(iterator, &batch));
        if (k) { /* a piece that is forgotten, before the weights change */
            check_ok(p.ctx, bw_gradients_add(gradients, batch, NULL));
            check_ok(p.ctx, bw_gradients_scale(gradients, 0));
        }
        for (int v = 0; v < bw_variable_count(p.model); v++) {
            float values[8192];
            int64_t shape[BW_MAX_NDIM];
            size_t count = 1;
            for (int i = 0, ndim = bw_variable_shape(p.model, v, shape); i < ndim; i++) {
                count *= (size_t)shape[i];
            }
            assert_true(count <= 8192);
            check_ok(p.ctx, bw_variable_get(p.model, v, values, count));
            for (size_t i = 0; i < count; i++) {
                values[i] = -2 * values[i];
            }
            check_ok(p.ctx, bw_variable_set(p.model, v, values, count));
        }
        check_ok(p.ctx, bw_gradients_add(gradients, batch, NULL));
        check_ok(p.ctx, bw_gradients_norm(gradients, &norm[k]));
        norm[k] *= (double)bw_gradients_samples(gradients);
        planned_close(&p);
    }
    assert_float_equal(norm[0], norm[1], (1e-5 * norm[0]));
}

/* Compiling in a callback ends the fit at its next update with a refusal. */
static bool compile_again(void *user, const bw_progress *progress)
{
    planned *p = user;
    (void)progress;
    return bw_compile(p->model, "sgd", NULL, NULL) == BW_OK;
}

static void test_compiled_by_a_callback(void **state)
{
    (void)state;
    planned p;
    open_model(&p, text);
    bw_fit_options options = BW_FIT_OPTIONS_DEFAULT;
    options.batch = 12;
    options.on_step = compile_again;
    options.user = &p;
    check_fails(p.ctx, bw_fit(p.model, p.data, &options, NULL), BW_INVALID_ARGUMENT, "compiled");
    options.on_step = NULL;
    check_ok(p.ctx, bw_fit(p.model, p.data, &options, NULL));
    planned_close(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_loop_is_a_fit),
        cmocka_unit_test(test_misuse),
        cmocka_unit_test(test_batches_are_alike),
        cmocka_unit_test(test_not_finite),
        cmocka_unit_test(test_options),
        cmocka_unit_test(test_compiled_in_between),
        cmocka_unit_test(test_variables_set_between_pieces),
        cmocka_unit_test(test_compiled_by_a_callback),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
