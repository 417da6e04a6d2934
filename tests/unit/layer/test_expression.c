/* The grammar of expressions: what is a term, and where it goes wrong. */
#include "support/context.h"

#include "layer/internal.h"

static void same_text(const char *text, int length, const char *expected)
{
    assert_int_equal(length, strlen(expected));
    assert_memory_equal(text, expected, (size_t)length);
}

static void test_terms(void **state)
{
    (void)state;
    bwi_expression e;
    check_ok(ctx, bwi_expression_parse(ctx, &e, "model", "  a \t b(1, -2.5e-3,c=(3,4),d=e(f))\n\n g=h() "));
    assert_int_equal(e.count, 3);
    assert_true(bwi_term_is(&e.terms[0], "a"));
    assert_false(bwi_term_is(&e.terms[0], "ab"));
    assert_int_equal(e.terms[0].column, 3);
    assert_false(e.terms[0].called);
    const bwi_term *b = &e.terms[1];
    assert_true(bwi_term_is(b, "b") && b->called);
    assert_int_equal(b->column, 7);
    assert_int_equal(b->count, 4);
    assert_true(bwi_term_is(&b->items[0], "1") && bwi_term_is(&b->items[1], "-2.5e-3"));
    assert_int_equal(b->items[1].column, 12);
    assert_null(b->items[0].label);
    same_text(b->items[2].label, b->items[2].label_length, "c");
    assert_int_equal(b->items[2].length, 0);
    assert_int_equal(b->items[2].count, 2);
    assert_true(bwi_term_is(&b->items[2].items[1], "4"));
    assert_true(bwi_term_is(&b->items[3], "e") && b->items[3].count == 1);
    same_text(b->items[3].text, (int)(b->items[3].end - b->items[3].text), "e(f)");
    same_text(e.terms[2].label, e.terms[2].label_length, "g");
    assert_true(bwi_term_is(&e.terms[2], "h") && e.terms[2].called && e.terms[2].count == 0);
    bwi_expression_free(&e);
    bwi_expression_free(&e); /* again is fine */
}

/* What Python's users write: quotes, brackets, comments, commas, spaces around '=', modules before a name. */
static void test_keras_spelling(void **state)
{
    (void)state;
    bwi_expression e;
    check_ok(ctx,
             bwi_expression_parse(ctx, &e, "model", "# net\nm = keras.Sequential([ # (\n A('x y', b = \"it's\"), ], ), 1./255,"));
    assert_int_equal(e.count, 2);
    same_text(e.terms[0].label, e.terms[0].label_length, "m");
    assert_int_equal(e.terms[0].label_column, 7);
    assert_int_equal(e.terms[0].column, 11);
    assert_true(bwi_term_is(&e.terms[0], "Sequential") && e.terms[0].count == 1);
    const bwi_term *list = &e.terms[0].items[0];
    assert_int_equal(list->length, 0);
    assert_int_equal(list->count, 1);
    const bwi_term *a = &list->items[0];
    assert_true(bwi_term_is(&a->items[0], "x y") && a->items[0].quoted && !a->items[0].called);
    same_text(a->items[0].text, (int)(a->items[0].end - a->items[0].text), "x y");
    assert_true(bwi_term_is(&a->items[1], "it's"));
    same_text(a->items[1].label, a->items[1].label_length, "b");
    assert_true(bwi_term_is(&e.terms[1], "1./255"));
    bwi_expression_free(&e);
}

static void test_resemblance(void **state)
{
    (void)state;
    bwi_term term = {.text = "HeNormal(", .length = 8};
    assert_true(bwi_term_resembles(&term, "he_normal"));
    assert_true(bwi_term_resembles_any(&term, "zeros he_normal ones"));
    assert_false(bwi_term_resembles(&term, "he_norma"));
    assert_false(bwi_term_resembles(&term, "he_normals"));
    assert_false(bwi_term_resembles_any(&term, "zeros ones"));
    term = (bwi_term){.text = "", .length = 0};
    assert_false(bwi_term_resembles(&term, ""));
}

static void test_nothing(void **state)
{
    (void)state;
    bwi_expression e;
    check_ok(ctx, bwi_expression_parse(ctx, &e, "model", " \n "));
    assert_int_equal(e.count, 0);
    bwi_expression_free(&e);
    check_ok(ctx, bwi_expression_parse(ctx, &e, "model", "a(b,)")); /* a comma may stand at the end */
    assert_int_equal(e.terms[0].count, 1);
    bwi_expression_free(&e);
}

static void test_what_is_wrong_and_where(void **state)
{
    (void)state;
    static const struct {
        const char *text, *message;
    } cases[] = {
        {")", "model: column 1: expected a name, a number or '(', found ')'"},
        {"a )", "model: column 3: expected a name, a number or '(', found ')'"},
        {"a(", "model: column 3: expected a name, a number or '(', found the end"},
        {"a(b", "model: column 4: expected ',' or ')', found the end"},
        {"a(b c)", "model: column 5: expected ',' or ')', found 'c)'"},
        {"a(,b)", "model: column 3: expected a name, a number or '(', found ',b)'"},
        {"a(b,,c)", "model: column 5: expected a name, a number or '(', found ',c)'"},
        {"a,,b", "model: column 3: expected a name, a number or '(', found ',b'"},
        {",a", "model: column 1: expected a name, a number or '(', found ',a'"},
        {"a(b)c", "model: column 5: expected a space or a comma between terms, found 'c'"},
        {"\"a\"b", "model: column 4: expected a space or a comma between terms, found 'b'"},
        {"a('b)", "model: column 6: expected the quote that ends the text, found the end"},
        {"a('b\n')", "model: column 5: expected the quote that ends the text, found '"},
        {"a([b)", "model: column 5: expected ',' or ']', found ')'"},
        {"a[3]", "model: column 2: expected a space or a comma between terms, found '[3]'"},
        {"# a\n)", "model: column 5: expected a name, a number or '(', found ')'"},
        {"=3", "model: column 1: expected a name, a number or '(', found '=3'"},
        {"a==3", "model: column 3: expected a name, a number or '(', found '=3'"},
        {"a=b=3", "model: column 4: expected a space or a comma between terms, found '=3'"},
        {"a=", "model: column 3: expected a name, a number or '(', found the end"},
        {"a;b", "model: column 2: expected a space or a comma between terms, found ';b'"},
    };
    for (size_t i = 0; i < BWI_COUNT(cases); i++) {
        bwi_expression e;
        check_fails(ctx, bwi_expression_parse(ctx, &e, "model", cases[i].text), BW_INVALID_ARGUMENT, cases[i].message);
        assert_null(e.terms);
    }
}

static void test_deep_and_long(void **state)
{
    (void)state;
    static char text[200000];
    bwi_expression e;
    for (int depth = 1; depth < 100; depth++) {
        memset(text, '(', (size_t)depth);
        memset(text + depth, ')', (size_t)depth);
        text[2 * depth] = '\0';
        if (depth <= 16) {
            check_ok(ctx, bwi_expression_parse(ctx, &e, "model", text));
            bwi_expression_free(&e);
        } else if (depth > 17) {
            check_fails(ctx, bwi_expression_parse(ctx, &e, "model", text), BW_INVALID_ARGUMENT, "fewer nested parentheses");
        }
    }
    memset(text, '(', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    check_fails(ctx, bwi_expression_parse(ctx, &e, "model", text), BW_INVALID_ARGUMENT, "fewer nested parentheses");
    memset(text, 'a', sizeof text - 1);
    check_ok(ctx, bwi_expression_parse(ctx, &e, "model", text));
    assert_int_equal(e.terms[0].length, sizeof text - 1);
    bwi_expression_free(&e);
    for (size_t i = 0; i < 4000; i++) {
        memcpy(text + 2 * i, "b ", 3);
    }
    check_ok(ctx, bwi_expression_parse(ctx, &e, "model", text));
    assert_int_equal(e.count, 4000);
    bwi_expression_free(&e);
}

static void *count_allocation(void *user, size_t bytes, size_t alignment)
{
    *(int64_t *)user += (int64_t)bytes;
    return bwi_system_allocator.allocate(bwi_system_allocator.user, bytes, alignment);
}

static void release_memory(void *user, void *memory, size_t bytes)
{
    (void)user;
    bwi_system_allocator.release(bwi_system_allocator.user, memory, bytes);
}

/* The work grows with the text, not with its square: all that is allocated on the way is a few times what is kept. */
static void test_many_terms(void **state)
{
    (void)state;
    enum { TERMS = 100000 };
    static char text[2 * TERMS + 8];
    int64_t bytes = 0;
    bw_allocator counting = {.user = &bytes, .allocate = count_allocation, .release = release_memory};
    bw_context_options options = BW_CONTEXT_OPTIONS_DEFAULT;
    options.allocator = &counting;
    bw_context *own = bw_open(&options);
    assert_non_null(own);
    for (int nested = 0; nested < 2; nested++) {
        bwi_expression e;
        size_t at = nested ? 2 : 0;
        memcpy(text, "a(", at);
        for (int i = 0; i < TERMS; i++, at += 2) {
            memcpy(text + at, "b,", 2);
        }
        text[at] = nested ? ')' : 0;
        text[at + 1] = 0;
        bytes = 0;
        check_ok(own, bwi_expression_parse(own, &e, "model", text));
        assert_int_equal(nested ? e.terms[0].count : e.count, TERMS);
        assert_true(bytes < 4 * (int64_t)(TERMS * sizeof *e.terms));
        bwi_expression_free(&e);
    }
    for (size_t i = 0; i < BWI_MOST_LAYERS + 1; i++) {
        memcpy(text + 5 * i, "relu ", 6);
    }
    assert_null(bw_model_parse(own, text));
    check_fails(own, BW_UNIMPLEMENTED, BW_UNIMPLEMENTED, "model: column 20481: at most 4096 layers are possible");
    text[5 * BWI_MOST_LAYERS] = '\0';
    bw_model *model = bw_model_parse(own, text);
    assert_non_null(model);
    bw_model_free(model);
    bw_close(own);
}

static void test_every_byte(void **state)
{
    (void)state;
    /* Whatever byte stands in the middle: a term, a refusal with its column, never anything else. */
    for (int c = 1; c < 256; c++) {
        char text[] = {'a', '(', 'b', (char)c, 'b', ')', 0};
        bwi_expression e;
        bw_status status = bwi_expression_parse(ctx, &e, "model", text);
        if (status == BW_OK) {
            assert_int_equal(e.count, 1);
            bwi_expression_free(&e);
        } else {
            check_fails(ctx, status, BW_INVALID_ARGUMENT, "model: column ");
        }
    }
}

static void test_one_term(void **state)
{
    (void)state;
    bwi_expression e;
    check_ok(ctx, bwi_term_parse(ctx, &e, "optimizer", " adam(lr=0.1) "));
    assert_true(bwi_term_is(&e.terms[0], "adam"));
    bwi_expression_free(&e);
    static const char *const wrong[] = {"", "a b", "(a)", "x=a"};
    for (size_t i = 0; i < BWI_COUNT(wrong); i++) {
        check_fails(ctx, bwi_term_parse(ctx, &e, "optimizer", wrong[i]), BW_INVALID_ARGUMENT,
                    "optimizer: expected one name, found '");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_terms),          cmocka_unit_test(test_nothing),     cmocka_unit_test(test_what_is_wrong_and_where),
        cmocka_unit_test(test_keras_spelling), cmocka_unit_test(test_resemblance), cmocka_unit_test(test_deep_and_long),
        cmocka_unit_test(test_every_byte),     cmocka_unit_test(test_one_term),    cmocka_unit_test(test_many_terms),
    };
    return cmocka_run_group_tests(tests, open_context, close_empty_context);
}
