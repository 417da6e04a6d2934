/* Facts about models and their layers. */
#include "support/context.h"
#include "support/folder.h"

#include "insight/internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The input's shape that was found is printed too, and layers keep their shapes and parameters. */
static void test_built(void **state)
{
    (void)state;
    const int64_t shape[] = {8, 8, 1};
    bw_model *model = bw_model_parse(ctx, "conv2d(4,3,relu) a=batchnorm conv2d(4,3,padding=same) add(a) flatten dense(2)");
    check_ok(ctx, bw_build(model, 3, shape, 1));
    const char *text = bw_model_expression(model);
    assert_string_equal(text, "input(8,8,1) conv2d(4,3,relu) a=batchnorm conv2d(4,3,padding=same) add(a) flatten dense(2)");
    bw_model *again = bw_model_parse(ctx, text);
    check_ok(ctx, bw_build(again, 0, NULL, 1));
    assert_true(bw_model_hash(model) == bw_model_hash(again));
    bw_model_facts facts, same;
    check_ok(ctx, bw_model_describe(model, &facts));
    check_ok(ctx, bw_model_describe(again, &same));
    assert_int_equal(facts.layers, 7);
    assert_false(facts.sequential);
    assert_int_equal(facts.trainable, (9 * 4 + 4) + 8 + (36 * 4 + 4) + (144 * 2 + 2));
    assert_int_equal(facts.non_trainable, 8);
    assert_int_equal(facts.optimizer, 0);
    static const struct {
        const char *name, *class_name;
        int ndim;
        int64_t last, parameters, trainable;
        int inputs, from[2];
    } layers[] = {
        {"input_layer", "InputLayer", 3, 1, 0, 0, 0, {0, 0}},
        {"conv2d", "Conv2D", 3, 4, 40, 40, 1, {0, 0}},
        {"batch_normalization", "BatchNormalization", 3, 4, 16, 8, 1, {1, 0}},
        {"conv2d_1", "Conv2D", 3, 4, 148, 148, 1, {2, 0}},
        {"add", "Add", 3, 4, 0, 0, 2, {3, 2}},
        {"flatten", "Flatten", 1, 144, 0, 0, 1, {4, 0}},
        {"dense", "Dense", 1, 2, 290, 290, 1, {5, 0}},
    };
    for (int i = 0; i < facts.layers; i++) {
        bw_layer_facts layer;
        check_ok(ctx, bw_layer_describe(again, i, &layer));
        assert_string_equal(layer.name, layers[i].name);
        assert_string_equal(layer.class_name, layers[i].class_name);
        assert_int_equal(layer.ndim, layers[i].ndim);
        assert_int_equal(layer.shape[layer.ndim - 1], layers[i].last);
        assert_int_equal(layer.parameters, layers[i].parameters);
        assert_int_equal(layer.trainable, layers[i].trainable);
        assert_int_equal(layer.inputs, layers[i].inputs);
        int from, use;
        for (int k = 0; k < layer.inputs; k++) {
            check_ok(ctx, bw_layer_input(again, i, k, &from, &use));
            assert_int_equal(from, layers[i].from[k]);
            assert_int_equal(use, 0);
        }
        check_fails(ctx, bw_layer_input(again, i, layer.inputs, &from, &use), BW_INVALID_ARGUMENT, layers[i].name);
        check_fails(ctx, bw_layer_input(again, i, -1, &from, &use), BW_INVALID_ARGUMENT, layers[i].name);
    }
    bw_layer_facts layer;
    check_fails(ctx, bw_layer_describe(model, 7, &layer), BW_INVALID_ARGUMENT, "no layer 7");
    check_fails(ctx, bw_layer_describe(model, -1, &layer), BW_INVALID_ARGUMENT, "no layer -1");
    assert_int_equal(bw_layer_describe(NULL, 0, &layer), BW_INVALID_ARGUMENT);
    assert_int_equal(bw_model_describe(NULL, &facts), BW_INVALID_ARGUMENT);
    assert_null(bw_model_expression(NULL));
}

/* A file names its model, for itself and the files that are written of it; else it is as Keras names the first one. */
static void test_name(void **state)
{
    (void)state;
    static const char text[] =
        "{\"module\": \"keras\", \"class_name\": \"Sequential\", \"config\": {\"name\": \"first try\", \"layers\": ["
        "{\"module\": \"keras.layers\", \"class_name\": \"InputLayer\", \"config\": {\"batch_shape\": [null, 2], \"name\": "
        "\"x\"}}, "
        "{\"module\": \"keras.layers\", \"class_name\": \"Dense\", \"config\": {\"name\": \"y\", \"units\": 1}}]}}";
    bw_model_facts facts;
    assert_int_equal(make_folder(NULL), 0);
    const char *path = inside("model.json");
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
    for (int saved = 0; saved < 2; saved++) {
        bw_model *model = bw_load(ctx, path);
        check_ok(ctx, bw_build(model, 0, NULL, 1));
        check_ok(ctx, bw_model_describe(model, &facts));
        assert_string_equal(facts.name, "first try");
        check_ok(ctx, bw_save(model, path));
    }
    assert_int_equal(remove_folder(NULL), 0);
    static const char *const cases[][2] = {{"input(2) dense(1)", "sequential"}, {"input(2) dense(2) add(input)", "functional"}};
    for (size_t i = 0; i < BWI_COUNT(cases); i++) {
        bw_model *model = bw_model_parse(ctx, cases[i][0]);
        check_ok(ctx, bw_build(model, 0, NULL, 1));
        check_ok(ctx, bw_model_describe(model, &facts));
        assert_string_equal(facts.name, cases[i][1]);
    }
}

/* A list has no row for its input; the optimizer counts once it was used: Adam keeps two slots, the iteration and the rate. */
static void test_list(void **state)
{
    (void)state;
    const float x[] = {0, 1, 2, 3}, y[] = {0, 1};
    bw_array inputs = {.data = x, .dtype = BW_F32, .ndim = 2, .shape = {2, 2}};
    bw_array targets = {.data = y, .dtype = BW_F32, .ndim = 2, .shape = {2, 1}};
    bw_model *model = bw_model_parse(ctx, "dense(3) dense(1)");
    bw_model_facts facts;
    check_fails(ctx, bw_model_describe(model, &facts), BW_INVALID_ARGUMENT, "input shape");
    check_ok(ctx, bw_fit(model, bw_from_arrays(ctx, &inputs, &targets, NULL), NULL, NULL));
    check_ok(ctx, bw_model_describe(model, &facts));
    assert_true(facts.sequential);
    assert_int_equal(facts.layers, 2);
    assert_int_equal(facts.trainable, 9 + 4);
    assert_int_equal(facts.optimizer, 2 * 13 + 2);
    int from, use;
    check_ok(ctx, bw_layer_input(model, 0, 0, &from, &use));
    assert_int_equal(from, -1);
    check_ok(ctx, bw_layer_input(model, 1, 0, &from, &use));
    assert_int_equal(from, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_built, open_context, close_context),
        cmocka_unit_test_setup_teardown(test_name, open_context, close_context),
        cmocka_unit_test_setup_teardown(test_list, open_context, close_context),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
