/* Several target columns of a table: by name they feed the outputs of a model, and together the only output of one. */
#include "support/check.h"
#include "support/folder.h"

#include <stdio.h>
#include <unistd.h>

static bw_context *ctx;

enum { ROWS = 40 };

static float x[ROWS][2], sum[ROWS], difference[ROWS];

static int open_all(void **state)
{
    ctx = bw_open(NULL);
    return ctx ? make_folder(state) : -1;
}

static int close_all(void **state)
{
    bw_close(ctx);
    return remove_folder(state);
}

/* The columns stand in another order than the outputs. */
static bw_dataset *table(const char *target)
{
    bw_read_options options = BW_READ_OPTIONS_DEFAULT;
    FILE *file = fopen(inside("t.csv"), "w");
    fprintf(file, "a,difference,b,sum\n");
    for (int i = 0; i < ROWS; i++) {
        x[i][0] = (float)(i % 7) - 3;
        x[i][1] = (float)(i % 5) / 4;
        sum[i] = x[i][0] + x[i][1];
        difference[i] = x[i][0] - x[i][1];
        fprintf(file, "%g,%g,%g,%g\n", (double)x[i][0], (double)difference[i], (double)x[i][1], (double)sum[i]);
    }
    fclose(file);
    options.target = target;
    return bw_read(ctx, inside("t.csv"), &options);
}

static bw_model *two_outputs(const char *first, const char *second)
{
    bw_model *model = bw_model_new(ctx);
    bw_node *in = bw_input(model, "", BW_F32, 1, (const int64_t[]){2});
    check_ok(ctx, bw_output(bw_layer(in, "dense(1)"), first));
    check_ok(ctx, bw_output(bw_layer(in, "dense(1)"), second));
    check_ok(ctx, bw_compile(model, "sgd(0.05)", "mse", NULL));
    return model;
}

static uint64_t train(bw_model *model, bw_dataset *dataset)
{
    bw_fit_options options = BW_FIT_OPTIONS_DEFAULT;
    options.epochs = 3;
    check_ok(ctx, bw_fit(model, dataset, &options, NULL));
    return bw_model_hash(model);
}

static void test_outputs(void **state)
{
    (void)state;
    bw_dataset *read = table("difference,sum");
    const bw_field fields[] = {{"x", {.data = x, .dtype = BW_F32, .ndim = 2, .shape = {ROWS, 2}}},
                               {"y_sum", {.data = sum, .dtype = BW_F32, .ndim = 1, .shape = {ROWS}}},
                               {"y_difference", {.data = difference, .dtype = BW_F32, .ndim = 1, .shape = {ROWS}}}};
    bw_dataset *arrays = bw_from_fields(ctx, fields, 3);
    bw_model *model = two_outputs("sum", "difference"), *same = two_outputs("sum", "difference");
    assert_true(train(model, read) == train(same, arrays));
    /* The model's file knows the columns: evaluation reads the table as training did. */
    bw_dataset *again = bw_read_for(model, inside("t.csv"), NULL);
    bw_history *result = NULL, *expected = NULL;
    check_ok(ctx, bw_evaluate(model, again, &result));
    check_ok(ctx, bw_evaluate(same, arrays, &expected));
    assert_true(bw_history_last(result, "sum_loss") == bw_history_last(expected, "sum_loss"));
    assert_true(bw_history_last(result, "difference_loss") > 0);
    bw_history_free(result);
    bw_history_free(expected);
    bw_dataset_free(again);
    bw_dataset_free(read);
    bw_dataset_free(arrays);
    bw_model_free(model);
    bw_model_free(same);
}

/* One output takes all targets as a row, in the order in which they were named. */
static void test_one_output(void **state)
{
    (void)state;
    static float rows[ROWS][2];
    bw_dataset *read = table("sum,difference");
    for (int i = 0; i < ROWS; i++) {
        rows[i][0] = sum[i];
        rows[i][1] = difference[i];
    }
    bw_array in = {.data = x, .dtype = BW_F32, .ndim = 2, .shape = {ROWS, 2}};
    bw_array out = {.data = rows, .dtype = BW_F32, .ndim = 2, .shape = {ROWS, 2}};
    bw_dataset *arrays = bw_from_arrays(ctx, &in, &out, NULL);
    bw_model *model = bw_model_parse(ctx, "dense(2)"), *same = bw_model_parse(ctx, "dense(2)");
    assert_true(train(model, read) == train(same, arrays));
    bw_dataset_free(read);
    bw_dataset_free(arrays);
    bw_model_free(model);
    bw_model_free(same);
}

static void test_other_names(void **state)
{
    (void)state;
    bw_dataset *read = table("sum,difference");
    bw_model *model = two_outputs("sum", "product");
    check_fails(ctx, bw_fit(model, read, NULL, NULL), BW_INVALID_ARGUMENT, "product");
    bw_dataset_free(read);
    bw_model_free(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_outputs), cmocka_unit_test(test_one_output),
                                       cmocka_unit_test(test_other_names)};
    return cmocka_run_group_tests(tests, open_all, close_all);
}
