/*
 * Models made by calls, saved, loaded and trained on: the same bits as one that was never in a file. And weights that the real
 * safetensors package wrote (tests/data/keras/untrained_*.safetensors, by make_keras.py), in each of its types.
 */
#include "support/check.h"
#include "support/folder.h"

#include "file/internal.h"
#include "keras/case_file.h"

#include <math.h>
#include <unistd.h>

static bw_context *ctx;

static int open_all(void **state)
{
    ctx = bw_open(NULL);
    return ctx ? make_folder(state) : -1;
}

static int close_all(void **state)
{
    bw_close(ctx);
    return remove_empty_folder(state);
}

/* ---- By calls ---- */

enum { SAMPLES = 40 };

static float left[SAMPLES][6][6][2], right[SAMPLES][4], kind[SAMPLES], size[SAMPLES][2];

static bw_dataset *samples(void)
{
    bw_random random = {.seed = 5};
    for (float *v = &left[0][0][0][0]; v < &left[0][0][0][0] + sizeof left / sizeof *v; v++) {
        *v = bw_random_normal(&random);
    }
    for (int i = 0; i < SAMPLES; i++) {
        kind[i] = (float)bw_random_below(&random, 3);
        for (int k = 0; k < 4; k++) {
            right[i][k] = bw_random_normal(&random);
            size[i][k % 2] = bw_random_normal(&random);
        }
    }
    const bw_field fields[] = {{"x_left", {.data = left, .dtype = BW_F32, .ndim = 4, .shape = {SAMPLES, 6, 6, 2}}},
                               {"x_right", {.data = right, .dtype = BW_F32, .ndim = 2, .shape = {SAMPLES, 4}}},
                               {"y_kind", {.data = kind, .dtype = BW_F32, .ndim = 1, .shape = {SAMPLES}}},
                               {"y_size", {.data = size, .dtype = BW_F32, .ndim = 2, .shape = {SAMPLES, 2}}}};
    return bw_from_fields(ctx, fields, (int)BWI_COUNT(fields));
}

/* Two inputs, a layer used three times, merging, two outputs with losses of their own. */
static bw_model *make(const char *optimizer)
{
    bw_model *model = bw_model_new(ctx);
    bw_node *x = bw_input(model, "left", BW_F32, 3, (int64_t[]){6, 6, 2}), *z = bw_input(model, "right", BW_F32, 1, (int64_t[]){4});
    bw_node *a = bw_layer(bw_layer(x, "conv2d(4,3,relu)"), "batchnorm");
    bw_node *b = bw_layer(bw_layer(a, "global_avgpool2d"), "dense(4,tanh)");
    bw_node *twin = bw_layer(z, "dense(4,kernel_regularizer=l2(0.01))");
    bw_node *again = bw_layer_again(twin, b), *third = bw_layer_again(twin, again);
    bw_node *both = bw_merge("concat", (bw_node *[]){again, third, b}, 3), *sum = bw_merge("add", (bw_node *[]){twin, b}, 2);
    check_ok(ctx, bw_output(bw_layer(both, "dense(3,softmax)"), "kind"));
    check_ok(ctx, bw_output(bw_layer(sum, "dense(2)"), "size"));
    check_ok(ctx, bw_compile(model, optimizer, "size=mse,kind=sparse_categorical_crossentropy", "kind=accuracy"));
    check_ok(ctx, bw_build(model, 0, NULL, 9));
    return model;
}

static void train(bw_model *model, int epochs)
{
    bw_fit_options options = BW_FIT_OPTIONS_DEFAULT;
    options.batch = 16;
    options.epochs = epochs;
    bw_dataset *dataset = samples();
    check_ok(ctx, bw_fit(model, dataset, &options, NULL));
    bw_dataset_free(dataset);
}

static bw_model *load(const char *path)
{
    bw_model *model = bw_load(ctx, path);
    if (!model) {
        fail_msg("%s", bw_message(ctx));
    }
    return model;
}

static void test_by_calls(void **state)
{
    (void)state;
    static const char *const optimizers[] = {"adam(lr=0.01)", "sgd(lr=0.05,momentum=0.9)",
                                             "rmsprop(lr=exponential_decay(0.01,3,0.7))", "nadam(lr=0.01)"};
    for (size_t i = 0; i < BWI_COUNT(optimizers); i++) {
        bw_model *whole = make(optimizers[i]), *first = make(optimizers[i]);
        train(whole, 2);
        train(first, 1);
        check_ok(ctx, bw_save(first, inside("m.keras")));
        bw_model *second = load(inside("m.keras"));
        assert_true(bw_model_hash(second) == bw_model_hash(first));
        train(second, 1);
        train(first, 1);
        assert_true(bw_model_hash(first) == bw_model_hash(whole));
        if (bw_model_hash(second) != bw_model_hash(whole)) {
            fail_msg("%s: training did not go on as it would have", optimizers[i]);
        }
        bw_model_free(whole);
        bw_model_free(first);
        bw_model_free(second);
        assert_int_equal(unlink(inside("m.keras")), 0);
    }
}

/* What Keras has no layer for is refused before a file is there. */
static void test_operators(void **state)
{
    (void)state;
    bw_model *model = bw_model_new(ctx);
    bw_node *x = bw_input(model, "x", BW_F32, 1, (int64_t[]){4});
    check_ok(ctx, bw_output(bw_square(bw_layer(x, "dense(3)")), "y"));
    check_ok(ctx, bw_build(model, 0, NULL, 1));
    check_fails(ctx, bw_save(model, inside("m.keras")), BW_INVALID_ARGUMENT, "m.keras|output y is made by an operator");
    check_fails(ctx, bw_save(model, inside("m.json")), BW_INVALID_ARGUMENT, "m.json|output y is made by an operator");
    check_ok(ctx, bw_save(model, inside("m.safetensors")));
    assert_int_equal(unlink(inside("m.safetensors")), 0);
    bw_model_free(model);
}

/* ---- safetensors ---- */

static void compare(bw_model *model, const char *what, double tolerance)
{
    case_file file;
    if (!case_read(ctx, &file, BW_TEST_DATA "/keras/untrained.npz")) {
        fail_msg("%s", bw_message(ctx));
    }
    const case_array *expected = case_find(&file, "p0");
    bw_dataset *dataset = bw_read(ctx, BW_TEST_DATA "/keras/untrained.npz", NULL);
    float *values = malloc((size_t)expected->count * sizeof *values);
    check_ok(ctx, bw_predict(model, dataset, values, (size_t)expected->count));
    for (int64_t i = 0; i < expected->count; i++) {
        double off = fabs((double)values[i] - expected->values[i]);
        if (!(off <= tolerance * fmax(1, fabs(expected->values[i])))) {
            fail_msg("%s: value %d is %g, expected %g", what, (int)i, (double)values[i], expected->values[i]);
        }
    }
    free(values);
    bw_dataset_free(dataset);
    case_free(&file);
}

static void test_tensors(void **state)
{
    (void)state;
    static const struct {
        const char *type;
        double tolerance;
    } rows[] = {{"F32", 1e-6}, {"F64", 1e-6}, {"F16", 4e-3}, {"BF16", 4e-2}};
    for (size_t i = 0; i < BWI_COUNT(rows); i++) {
        bw_model *model = load(BW_TEST_DATA "/keras/untrained.keras");
        char path[1024];
        for (int v = 0; v < bw_variable_count(model); v++) {
            const float others[32] = {5, 4, 3, 2, 1};
            int64_t shape[BW_MAX_NDIM];
            int ndim = bw_variable_shape(model, v, shape);
            check_ok(ctx, bw_variable_set(model, v, others, (size_t)(ndim == 2 ? shape[0] * shape[1] : shape[0])));
        }
        snprintf(path, sizeof path, BW_TEST_DATA "/keras/untrained_%s.safetensors", rows[i].type);
        check_ok(ctx, bw_load_weights(model, path));
        compare(model, rows[i].type, rows[i].tolerance);
        bw_model_free(model);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_by_calls),
        cmocka_unit_test(test_operators),
        cmocka_unit_test(test_tensors),
    };
    return cmocka_run_group_tests(tests, open_all, close_all);
}
