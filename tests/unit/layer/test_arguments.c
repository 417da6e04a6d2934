/* Arguments against a table: by position, by name, defaults, bounds; and the tables of all layers themselves. */
#include "support/context.h"

#include "layer/internal.h"

enum { COUNT_A, RATE_A, FLAG_A, WORD_A, PAIR_A, CALL_A, ARGUMENTS };

static const bwi_argument table[ARGUMENTS] = {
    [COUNT_A] = {"count", "n", BWI_INT, NULL, 1, 100, NULL}, [RATE_A] = {"rate", NULL, BWI_FLOAT, "0.25", 0, 1, NULL},
    [FLAG_A] = {"flag", NULL, BWI_BOOL, "true", 0, 0, NULL}, [WORD_A] = {"word", NULL, BWI_TEXT, "some", 0, 0, "some other"},
    [PAIR_A] = {"pair", NULL, BWI_INTS, "", -5, 5, NULL},    [CALL_A] = {"call", NULL, BWI_CALL, "none", 0, 0, NULL},
};

static bwi_argument_value values[ARGUMENTS];

static bw_status read(const char *text)
{
    bwi_expression e;
    check_ok(ctx, bwi_term_parse(ctx, &e, "test", text));
    bw_status status = bwi_arguments_read(ctx, "test", &e.terms[0], table, ARGUMENTS, values);
    bwi_expression_free(&e);
    return status;
}

static void test_positions_names_defaults(void **state)
{
    (void)state;
    check_ok(ctx, read("f(7)"));
    assert_int_equal(values[COUNT_A].integer, 7);
    assert_true(values[COUNT_A].given);
    assert_float_equal(values[RATE_A].number, 0.25, 0);
    assert_false(values[RATE_A].given);
    assert_true(values[FLAG_A].flag);
    assert_string_equal(values[WORD_A].text, "some");
    assert_int_equal(values[PAIR_A].count, 0);
    assert_string_equal(values[CALL_A].text, "none");

    check_ok(ctx, read("f(100,1e-3,false,other,(-5,5),l2( 0.1 ))"));
    assert_int_equal(values[COUNT_A].integer, 100);
    assert_float_equal(values[RATE_A].number, 1e-3, 0);
    assert_false(values[FLAG_A].flag);
    assert_string_equal(values[WORD_A].text, "other");
    assert_int_equal(values[PAIR_A].count, 2);
    assert_int_equal(values[PAIR_A].integer, -5);
    assert_int_equal(values[PAIR_A].integers[1], 5);
    assert_string_equal(values[CALL_A].text, "l2( 0.1 )");

    check_ok(ctx, read("f(pair=3,n=1,flag=False)"));
    assert_int_equal(values[COUNT_A].integer, 1);
    assert_int_equal(values[PAIR_A].count, 1);
    assert_int_equal(values[PAIR_A].integers[0], 3);
    assert_false(values[FLAG_A].flag);
    check_ok(ctx, read("f(1,0)")); /* bounds are allowed themselves */
    check_ok(ctx, read("f(1,1)"));
    check_ok(ctx, read("f(1,pair=((1,2),(3,4)))"));
    assert_int_equal(values[PAIR_A].count, 4);
    assert_int_equal(values[PAIR_A].integers[3], 4);
}

static void test_refusals(void **state)
{
    (void)state;
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"f", "test: column 1: count must be given"},
        {"f()", "test: column 1: count must be given"},
        {"f(rate=0.1)", "test: column 1: count must be given"},
        {"f(0)", "test: column 3: count: expected a number from 1 to 100, found '0'"},
        {"f(101)", "test: column 3: count: expected a number from 1 to 100, found '101'"},
        {"f(1.5)", "test: column 3: count: expected a whole number, found '1.5'"},
        {"f(1e1)", "test: column 3: count: expected a whole number, found '1e1'"},
        {"f(9223372036854775808)", "test: column 3: count: expected a whole number"},
        {"f(99999999999999999999999999999999)", "test: column 3: count: expected a whole number"},
        {"f(-9223372036854775808)", "test: column 3: count: expected a number from 1 to 100"},
        {"f(x)", "test: column 3: count: expected a whole number, found 'x'"},
        {"f((1))", "test: column 3: count: expected one value, found '('"},
        {"f(())", "test: column 3: count: expected one value, found '('"},
        {"f(1())", "test: column 3: count: expected a value without arguments, found '1'"},
        {"f(1,2)", "test: column 5: rate: expected a number from 0 to 1, found '2'"},
        {"f(1,-0.1)", "test: column 5: rate: expected a number from 0 to 1"},
        {"f(1,nan)", "test: column 5: rate: expected a number, found 'nan'"},
        {"f(1,inf)", "test: column 5: rate: expected a number, found 'inf'"},
        {"f(1,0x1)", "test: column 5: rate: expected a number, found '0x1'"},
        {"f(1,1e999)", "test: column 5: rate: expected a number"},
        {"f(1,flag=maybe)", "test: column 10: flag: expected true or false, found 'maybe'"},
        {"f(1,flag=true(3))", "test: column 10: flag: expected a value without arguments"},
        {"f(1,word=none)", "test: column 10: word: expected one of: some other, found 'none'"},
        {"f(1,word=som)", "test: column 10: word: expected one of: some other, found 'som'"},
        {"f(1,word=some(1))", "test: column 10: word: expected a value without arguments"},
        {"f(1,word=(some))", "test: column 10: word: expected one value"},
        {"f(1,pair=(1,6))", "test: column 13: pair: expected a number from -5 to 5, found '6'"},
        {"f(1,pair=(1,x))", "test: column 13: pair: expected a whole number, found 'x'"},
        {"f(1,pair=(a=1))", "test: column 13: pair: expected a number without a name"},
        {"f(1,pair=(1,2,3,4,5,1,2,3,4))", "pair: expected fewer numbers"},
        {"f(1,there=3)", "test: column 5: there is no argument 'there'"},
        {"f(1,wrod=some)", "test: column 5: there is no argument 'wrod'; did you mean 'word'?"},
        {"f(1,count=3)", "test: column 11: count is given twice"},
        {"f(n=1,count=3)", "test: column 13: count is given twice"},
        {"f(count=1,0.5)", "test: column 11: an argument without a name follows a named one"},
        {"f(1,0.5,true,some,1,none,8)", "test: column 26: too many arguments"},
    };
    for (size_t i = 0; i < BWI_COUNT(cases); i++) {
        check_fails(ctx, read(cases[i].text), BW_INVALID_ARGUMENT, cases[i].message);
    }
}

static void test_long_words(void **state)
{
    (void)state;
    char text[2 * BWI_TEXT_BYTES];
    static const bwi_argument word = {"word", NULL, BWI_TEXT, NULL, 0, 0, NULL}, call = {"call", NULL, BWI_CALL, NULL, 0, 0, NULL};
    for (int length = BWI_TEXT_BYTES - 2; length < BWI_TEXT_BYTES + 2; length++) {
        memset(text, 'x', sizeof text);
        text[0] = 'f';
        text[1] = '(';
        text[2 + length] = ')';
        text[3 + length] = '\0';
        bwi_expression e;
        bwi_argument_value value;
        check_ok(ctx, bwi_term_parse(ctx, &e, "test", text));
        bw_status fits = length < BWI_TEXT_BYTES ? BW_OK : BW_INVALID_ARGUMENT;
        assert_int_equal(bwi_arguments_read(ctx, "test", &e.terms[0], &word, 1, &value), fits);
        assert_int_equal(bwi_arguments_read(ctx, "test", &e.terms[0], &call, 1, &value), fits);
        bwi_expression_free(&e);
    }
}

/* ---- The tables of the layers ---- */

/* Every default can be read, lies within the bounds and among the choices; names are used once. */
static void check_row(const char *name, const bwi_argument *arguments, int count)
{
    assert_true(count <= BWI_MAX_ARGUMENTS);
    bool optional = false;
    for (int i = 0; i < count; i++) {
        const bwi_argument *a = &arguments[i];
        char text[200];
        assert_non_null(a->name);
        for (int k = 0; k < i; k++) {
            assert_string_not_equal(a->name, arguments[k].name);
        }
        /* What must be given comes first: it is given by position. */
        assert_false(optional && !a->standard);
        optional = optional || a->standard;
        if (!a->standard || !*a->standard) {
            continue;
        }
        snprintf(text, sizeof text, "f(%s=%s)", a->name, a->standard);
        bwi_expression e;
        check_ok(ctx, bwi_term_parse(ctx, &e, name, text));
        bwi_argument_value given, standard;
        bwi_argument alone = *a;
        check_ok(ctx, bwi_arguments_read(ctx, name, &e.terms[0], &alone, 1, &given));
        e.terms[0].count = 0; /* as if it had not been given */
        check_ok(ctx, bwi_arguments_read(ctx, name, &e.terms[0], &alone, 1, &standard));
        e.terms[0].count = 1;
        given.given = standard.given = true; /* none is as if it had not been given */
        assert_memory_equal(&given, &standard, sizeof given);
        bwi_expression_free(&e);
    }
}

static const bwi_layer_row *find_row(const char *name, int length)
{
    bwi_term term = {.text = name, .length = length};
    return bwi_layer_row_find(&term);
}

static void test_tables_of_layers(void **state)
{
    (void)state;
    int rows = 0;
    for (; bwi_layer_rows[rows]; rows++) {
        const bwi_layer_row *row = bwi_layer_rows[rows];
        check_row(row->class_name, row->arguments, row->argument_count);
        assert_non_null(row->build);
        assert_true(strlen(row->base_name) < 48);
        for (const char *at = row->names; *at;) {
            size_t length = strcspn(at, " ");
            assert_ptr_equal(find_row(at, (int)length), row);
            at += length + strspn(at + length, " ");
        }
    }
    assert_true(rows >= 8);
    assert_null(find_row("dens", 4));
    assert_null(find_row("dense dense", 11));
    assert_null(find_row("", 0));
}

/* Keras's defaults, from its documentation, for the layers that networks are mostly made of. */
static void test_defaults_of_keras(void **state)
{
    (void)state;
    static const struct {
        const char *layer, *argument, *standard;
    } known[] = {
        {"conv2d", "strides", "1"},        {"conv2d", "padding", "valid"},     {"conv2d", "dilation_rate", "1"},
        {"conv2d", "groups", "1"},         {"conv2d", "activation", "linear"}, {"conv2d", "use_bias", "true"},
        {"dense", "activation", "linear"}, {"dense", "use_bias", "true"},      {"maxpool2d", "pool_size", "2"},
        {"maxpool2d", "strides", ""},      {"maxpool2d", "padding", "valid"},  {"batchnorm", "momentum", "0.99"},
        {"batchnorm", "epsilon", "0.001"}, {"batchnorm", "center", "true"},    {"batchnorm", "scale", "true"},
    };
    for (size_t i = 0; i < BWI_COUNT(known); i++) {
        const bwi_layer_row *row = find_row(known[i].layer, (int)strlen(known[i].layer));
        assert_non_null(row);
        bool found = false;
        for (int k = 0; k < row->argument_count; k++) {
            if (strcmp(row->arguments[k].name, known[i].argument) == 0) {
                assert_string_equal(row->arguments[k].standard, known[i].standard);
                found = true;
            }
        }
        assert_true(found);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_positions_names_defaults),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_long_words),
        cmocka_unit_test(test_tables_of_layers),
        cmocka_unit_test(test_defaults_of_keras),
    };
    return cmocka_run_group_tests(tests, open_context, close_empty_context);
}
