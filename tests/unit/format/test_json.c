/* JSON: what is read, what is refused before it takes memory, and texts written here. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <locale.h>
#include <math.h>

#include "format/format.h"

static bwi_json *parse(bw_context *ctx, const char *text)
{
    bwi_json *json;
    if (bwi_json_parse(ctx, &json, text, strlen(text), "f.json") != BW_OK) {
        fail_msg("%s", bw_message(ctx));
    }
    return json;
}

static void test_values(void **state)
{
    (void)state;
    bw_context *ctx = bw_open(NULL);
    bwi_json *json = parse(ctx, "{\"b\": [1, 2.5, true, false, null, \"text\", {}], \"a\": -7}");
    const bwi_json *list = bwi_json_get(json, "b");
    double number = 0;
    int64_t whole = 0;
    static const bwi_json_kind kinds[] = {BWI_JSON_WHOLE, BWI_JSON_REAL, BWI_JSON_BOOL,   BWI_JSON_BOOL,
                                          BWI_JSON_NULL,  BWI_JSON_TEXT, BWI_JSON_OBJECT, BWI_JSON_MISSING};
    assert_int_equal(bwi_json_count(list), 7);
    for (int i = 0; i < 8; i++) {
        assert_int_equal(bwi_json_kind_of(bwi_json_at(list, i)), kinds[i]);
    }
    assert_true(bwi_json_whole(bwi_json_get(json, "a"), &whole));
    assert_int_equal(whole, -7);
    assert_true(bwi_json_number(bwi_json_get(json, "a"), &number));
    assert_true(number == -7);
    assert_false(bwi_json_whole(bwi_json_at(list, 1), &whole));
    assert_true(bwi_json_number(bwi_json_at(list, 1), &number));
    assert_true(number == 2.5);
    assert_true(bwi_json_true(bwi_json_at(list, 2)));
    assert_false(bwi_json_true(bwi_json_at(list, 3)));
    assert_string_equal(bwi_json_text(bwi_json_at(list, 5)), "text");
    assert_null(bwi_json_text(list));
    assert_null(bwi_json_get(list, "b"));
    assert_null(bwi_json_at(json, 0));
    const char *key = NULL;
    assert_non_null(bwi_json_next(json, &key));
    assert_string_equal(key, "b"); /* the file's order */
    assert_non_null(bwi_json_next(json, &key));
    assert_string_equal(key, "a");
    assert_null(bwi_json_next(json, &key));
    /* What is not there is passed on. */
    assert_int_equal(bwi_json_kind_of(NULL), BWI_JSON_MISSING);
    assert_null(bwi_json_get(NULL, "a"));
    assert_int_equal(bwi_json_count(NULL), 0);
    assert_null(bwi_json_at(NULL, 0));
    assert_null(bwi_json_text(NULL));
    bwi_json_free(json);
    bwi_json_free(NULL);
    bw_close(ctx);
}

static void expect_refused(bw_context *ctx, const char *text, size_t size, const char *words)
{
    bwi_json *json;
    assert_int_equal(bwi_json_parse(ctx, &json, text, size, "f.json"), BW_DATA_LOSS);
    assert_null(json);
    if (!strstr(bw_message(ctx), words)) {
        fail_msg("expected '%s', found '%s'", words, bw_message(ctx));
    }
}

static void test_refused(void **state)
{
    (void)state;
    static const char *const wrong[] = {
        "", "{", "[1,]", "{\"a\":1,\"a\":2}", "nul", "[NaN]", "\"\\u0000\"", "\"\xff\"", "[1] trailing", "[1e999]", "{1:2}"};
    bw_context *ctx = bw_open(NULL);
    for (size_t i = 0; i < BWI_COUNT(wrong); i++) {
        expect_refused(ctx, wrong[i], strlen(wrong[i]), "f.json: not JSON: line 1");
    }
    enum { MANY = 1 << 20 };
    char *text = malloc(17 * MANY);
    memset(text, '[', 100000);
    expect_refused(ctx, text, 100000, "nested 100000 deep");
    for (int i = 0; i < MANY; i++) {
        memcpy(text + 1 + 2 * i, i % 2 ? "0," : "1,", 2);
    }
    text[0] = '[';
    expect_refused(ctx, text, 2 * MANY, "values");
    for (int i = 0; i < MANY; i++) {
        memcpy(text + 1 + 3 * i, "{},", 3);
    }
    expect_refused(ctx, text, 3 * MANY, "objects");
    for (int i = 0; i < MANY; i++) {
        memcpy(text + 1 + 3 * i, "[],", 3);
    }
    expect_refused(ctx, text, 3 * MANY, "lists");
    memset(text, ' ', 17 * MANY);
    expect_refused(ctx, text, 17 * MANY, "bytes of JSON");
    /* Brackets in strings do not count. */
    memset(text, '[', 1000);
    text[0] = text[999] = '"';
    memcpy(text + 500, "\\\"", 2);
    bwi_json *json;
    assert_int_equal(bwi_json_parse(ctx, &json, text, 1000, "f.json"), BW_OK);
    assert_int_equal(strlen(bwi_json_text(json)), 997);
    bwi_json_free(json);
    free(text);
    bw_close(ctx);
}

static void test_written(void **state)
{
    (void)state;
    bw_context *ctx = bw_open(NULL);
    bwi_json_writer w = {.text = {.ctx = ctx}};
    bwi_json_begin(&w, NULL, '{');
    bwi_json_put_text(&w, "a\"b", "line\n\\ \xc3\xa4");
    bwi_json_begin(&w, "list", '[');
    bwi_json_put_whole(&w, NULL, -9007199254740993);
    bwi_json_put_real(&w, NULL, 0.1);
    bwi_json_put_real(&w, NULL, (double)NAN);
    bwi_json_put_bool(&w, NULL, true);
    bwi_json_put_null(&w, NULL);
    bwi_json_begin(&w, NULL, '{');
    bwi_json_end(&w);
    bwi_json_end(&w);
    bwi_json_put_bool(&w, "z", false);
    bwi_json_end(&w);
    assert_false(w.text.failed);
    assert_string_equal(w.text.bytes,
                        "{\"a\\\"b\": \"line\\u000a\\\\ \xc3\xa4\", \"list\": [-9007199254740993, 0.1, null, true, null, {}], "
                        "\"z\": false}");
    bwi_json *json = parse(ctx, w.text.bytes);
    assert_string_equal(bwi_json_text(bwi_json_get(json, "a\"b")), "line\n\\ \xc3\xa4");
    bwi_json_free(json);
    bwi_text_free(&w.text);
    /* Too deep is a failure, not an overrun. */
    for (int i = 0; i <= BWI_JSON_DEPTH; i++) {
        bwi_json_begin(&w, NULL, '[');
    }
    assert_true(w.text.failed);
    bwi_text_free(&w.text);
    bw_close(ctx);
}

static void test_shortest(void **state)
{
    (void)state;
    static const struct {
        double value;
        const char *text;
    } rows[] = {{0, "0.0"},
                {1, "1.0"},
                {-2.5, "-2.5"},
                {0.1, "0.1"},
                {1e-7, "1e-07"},
                {1.0 / 3, "0.3333333333333333"},
                {1e300, "1e+300"},
                {123456789, "123456789.0"},
                {0.003000000026077032, "0.003000000026077032"}};
    char buffer[BWI_SHORTEST_SIZE];
    for (size_t i = 0; i < BWI_COUNT(rows); i++) {
        assert_string_equal(bwi_shortest(buffer, rows[i].value), rows[i].text);
    }
}

int main(void)
{
    setlocale(LC_ALL, "");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_written),
        cmocka_unit_test(test_shortest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
