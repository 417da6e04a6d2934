/* What outputs mean: from the last layer, from the loss, and logits. */
#include "support/planned.h"

#include <string.h>

static bw_output_facts facts_of(bw_context *ctx, const char *model, const char *loss)
{
    const int64_t shape[] = {4};
    bw_output_facts facts;
    bw_model *made = bw_model_parse(ctx, model);
    assert_int_equal(bw_output_count(made), 0);
    check_fails(ctx, bw_output_describe(made, 0, &facts), BW_INVALID_ARGUMENT, "no output 0");
    check_ok(ctx, bw_compile(made, NULL, loss, NULL));
    check_ok(ctx, bw_build(made, 1, shape, 0));
    assert_int_equal(bw_output_count(made), 1);
    check_ok(ctx, bw_output_describe(made, 0, &facts));
    check_fails(ctx, bw_output_describe(made, 1, &facts), BW_INVALID_ARGUMENT, "no output 1");
    check_ok(ctx, bw_output_describe(made, 0, &facts));
    bw_model_free(made);
    return facts;
}

static void test_kinds(void **state)
{
    (void)state;
    static const struct {
        const char *model, *loss;
        bw_output_kind kind;
        bool logits;
        int64_t units;
    } cases[] = {
        {"dense(3,softmax)", NULL, BW_OUTPUT_CLASSES, false, 3},
        {"dense(3) softmax", NULL, BW_OUTPUT_CLASSES, false, 3},
        {"dense(1,sigmoid)", NULL, BW_OUTPUT_BINARY, false, 1},
        {"dense(2)", NULL, BW_OUTPUT_NUMBERS, false, 2},
        {"dense(2)", "mse", BW_OUTPUT_NUMBERS, false, 2},
        {"dense(3)", "sparse_categorical_crossentropy(from_logits=true)", BW_OUTPUT_CLASSES, true, 3},
        {"dense(3)", "categorical_crossentropy(from_logits=true)", BW_OUTPUT_CLASSES, true, 3},
        {"dense(3,softmax)", "sparse_categorical_crossentropy", BW_OUTPUT_CLASSES, false, 3},
        {"dense(1)", "binary_crossentropy(from_logits=true)", BW_OUTPUT_BINARY, true, 1},
    };
    bw_context *ctx = bw_open(NULL);
    for (size_t i = 0; i < BWI_COUNT(cases); i++) {
        bw_output_facts facts = facts_of(ctx, cases[i].model, cases[i].loss);
        assert_int_equal(facts.kind, cases[i].kind);
        assert_int_equal(facts.logits, cases[i].logits);
        assert_int_equal(facts.ndim, 1);
        assert_int_equal(facts.shape[0], cases[i].units);
    }
    bw_close(ctx);
}

static void test_several(void **state)
{
    (void)state;
    const int64_t shape[] = {4};
    bw_context *ctx = bw_open(NULL);
    bw_model *model = bw_model_new(ctx);
    bw_node *x = bw_input(model, "in", BW_F32, 1, shape);
    check_ok(ctx, bw_output(bw_layer(x, "dense(2)"), "logits"));
    check_ok(ctx, bw_output(bw_layer(x, "dense(1)"), "size"));
    check_ok(ctx, bw_compile(model, NULL, "logits=sparse_categorical_crossentropy(from_logits=true) size=mse", NULL));
    check_ok(ctx, bw_build(model, 0, NULL, 0));
    bw_output_facts facts;
    assert_int_equal(bw_output_count(model), 2);
    check_ok(ctx, bw_output_describe(model, 0, &facts));
    assert_string_equal(facts.name, "logits");
    assert_int_equal(facts.kind, BW_OUTPUT_CLASSES);
    assert_true(facts.logits);
    check_ok(ctx, bw_output_describe(model, 1, &facts));
    assert_string_equal(facts.name, "size");
    assert_int_equal(facts.kind, BW_OUTPUT_NUMBERS);
    assert_false(facts.logits);
    bw_close(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kinds),
        cmocka_unit_test(test_several),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
