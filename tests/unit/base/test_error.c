/* Status, messages, locations, and the rule that the first unreported failure of a builder is kept. */
#include "base/base.h"

#include <setjmp.h>
#include <errno.h>
#include <string.h>
#include <cmocka.h>

static void test_names(void **state)
{
    (void)state;
    assert_string_equal(bw_version(), "0.1.0");
    assert_string_equal(bw_status_name(BW_OK), "OK");
    assert_string_equal(bw_status_name(BW_CANCELLED), "CANCELLED");
    assert_string_equal(bw_status_name(BW_INVALID_ARGUMENT), "INVALID_ARGUMENT");
    assert_string_equal(bw_status_name(BW_NOT_FOUND), "NOT_FOUND");
    assert_string_equal(bw_status_name(BW_RESOURCE_EXHAUSTED), "RESOURCE_EXHAUSTED");
    assert_string_equal(bw_status_name(BW_OUT_OF_RANGE), "OUT_OF_RANGE");
    assert_string_equal(bw_status_name(BW_UNIMPLEMENTED), "UNIMPLEMENTED");
    assert_string_equal(bw_status_name(BW_INTERNAL), "INTERNAL");
    assert_string_equal(bw_status_name(BW_UNAVAILABLE), "UNAVAILABLE");
    assert_string_equal(bw_status_name(BW_DATA_LOSS), "DATA_LOSS");
    assert_string_equal(bw_status_name((bw_status)77), "UNKNOWN");
}

static void test_last_failure(void **state)
{
    (void)state;
    bw_context *ctx = bw_open(NULL);
    assert_string_equal(bw_message(ctx), "");
    assert_int_equal(bwi_fail(ctx, BW_NOT_FOUND, "no %s", "x"), BW_NOT_FOUND);
    assert_int_equal(bwi_fail(ctx, BW_DATA_LOSS, "%d bytes", 3), BW_DATA_LOSS);
    assert_string_equal(bw_message(ctx), "3 bytes");
    assert_int_equal(bwi_pending(ctx), BW_OK);
    bw_close(ctx);
}

static void test_first_of_builders(void **state)
{
    (void)state;
    bw_context *ctx = bw_open(NULL);
    assert_null(bwi_fail_build(ctx, BW_NOT_FOUND, "first"));
    assert_null(bwi_fail_build(ctx, BW_INVALID_ARGUMENT, "second"));
    assert_int_equal(bwi_fail(ctx, BW_INTERNAL, "third"), BW_INTERNAL);
    assert_int_equal(bwi_pending(ctx), BW_NOT_FOUND);
    assert_string_equal(bw_message(ctx), "first");
    assert_int_equal(bwi_pending(ctx), BW_OK);
    bwi_fail(ctx, BW_INTERNAL, "third");
    assert_string_equal(bw_message(ctx), "third");
    bw_close(ctx);
}

static void test_pass_on(void **state)
{
    (void)state;
    bw_context *ctx = bw_open(NULL);
    bwi_pass_on(ctx);
    assert_int_equal(bwi_pending(ctx), BW_OK);
    bwi_fail(ctx, BW_DATA_LOSS, "inner");
    assert_null(bwi_pass_on(ctx));
    bwi_fail(ctx, BW_INTERNAL, "later");
    assert_int_equal(bwi_pending(ctx), BW_DATA_LOSS);
    assert_string_equal(bw_message(ctx), "inner");
    bw_close(ctx);
}

static void test_own_message_as_argument(void **state)
{
    (void)state;
    bw_context *ctx = bw_open(NULL);
    bwi_fail(ctx, BW_DATA_LOSS, "inner");
    bwi_fail(ctx, BW_DATA_LOSS, "outer: %s", bw_message(ctx));
    assert_string_equal(bw_message(ctx), "outer: inner");
    bw_close(ctx);
}

static void test_one_line(void **state)
{
    (void)state;
    bw_context *ctx = bw_open(NULL);
    bwi_fail(ctx, BW_DATA_LOSS, "a\nb\tc\x1b[0m\x7f.");
    assert_string_equal(bw_message(ctx), "a b c [0m .");
    bw_close(ctx);
}

/* 2-byte characters at both parities: the cut must not fall within one. */
static void test_long_text_is_cut(void **state)
{
    (void)state;
    bw_context *ctx = bw_open(NULL);
    char text[4001];
    for (int i = 0; i < 2000; i++) {
        memcpy(text + 2 * i, "\xc3\xa4", 2);
    }
    text[4000] = 0;
    for (int shift = 0; shift < 2; shift++) {
        bwi_fail(ctx, BW_DATA_LOSS, "%s%s", shift ? "x" : "", text);
        const char *message = bw_message(ctx);
        size_t length = strlen(message);
        assert_true(length > 1000 && length < sizeof ctx->message);
        assert_string_equal(message + length - 3, "...");
        assert_int_equal((unsigned char)message[length - 4], 0xa4);
    }
    bw_close(ctx);
}

static void test_without_context(void **state)
{
    (void)state;
    assert_int_equal(bwi_fail(NULL, BW_INTERNAL, "x"), BW_INTERNAL);
    assert_null(bwi_fail_build(NULL, BW_INTERNAL, "x"));
    assert_int_equal(bwi_pending(NULL), BW_OK);
    assert_string_equal(bw_message(NULL), "");
    bwi_log(NULL, BW_LOG_INFO, "x");
}

static void assert_nowhere(const bw_error *error)
{
    assert_null(error->path);
    assert_int_equal(error->line, -1);
    assert_int_equal(error->column, -1);
    assert_null(error->argument);
    assert_int_equal(error->offset, -1);
    assert_null(error->layer);
    assert_int_equal(error->sample, -1);
}

static void test_no_error(void **state)
{
    (void)state;
    bw_context *ctx = bw_open(NULL);
    const bw_error *errors[] = {bw_last_error(NULL), bw_last_error(ctx)};
    for (int i = 0; i < 2; i++) {
        assert_int_equal(errors[i]->status, BW_OK);
        assert_int_equal(errors[i]->kind, BW_ERROR_NONE);
        assert_string_equal(errors[i]->message, "");
        assert_nowhere(errors[i]);
    }
    bw_close(ctx);
}

static void test_kind_by_status(void **state)
{
    (void)state;
    static const struct {
        bw_status status;
        bw_error_kind kind;
    } cases[] = {
        {BW_CANCELLED, BW_ERROR_CANCELLED},   {BW_INVALID_ARGUMENT, BW_ERROR_USAGE},
        {BW_NOT_FOUND, BW_ERROR_USAGE},       {BW_RESOURCE_EXHAUSTED, BW_ERROR_RESOURCES},
        {BW_OUT_OF_RANGE, BW_ERROR_DATA},     {BW_UNIMPLEMENTED, BW_ERROR_USAGE},
        {BW_INTERNAL, BW_ERROR_INTERNAL},     {BW_DATA_LOSS, BW_ERROR_DATA},
        {BW_UNAVAILABLE, BW_ERROR_RESOURCES},
    };
    bw_context *ctx = bw_open(NULL);
    for (size_t i = 0; i < BWI_COUNT(cases); i++) {
        bwi_fail(ctx, cases[i].status, "x");
        assert_int_equal(bw_last_error(ctx)->status, cases[i].status);
        assert_int_equal(bw_last_error(ctx)->kind, cases[i].kind);
        assert_string_equal(bw_last_error(ctx)->message, "x");
        assert_nowhere(bw_last_error(ctx));
    }
    bw_close(ctx);
}

static void test_locations(void **state)
{
    (void)state;
    bw_context *ctx = bw_open(NULL);
    const bw_error *error;
    assert_int_equal(bwi_fail_file(ctx, BW_NOT_FOUND, "a.npz", "no %s", "x"), BW_NOT_FOUND);
    error = bw_last_error(ctx);
    assert_string_equal(error->message, "a.npz: no x");
    assert_string_equal(error->path, "a.npz");
    assert_int_equal(error->line, -1);
    assert_int_equal(error->kind, BW_ERROR_FILE);

    assert_int_equal(bwi_fail_line(ctx, BW_INVALID_ARGUMENT, "a.csv", 7, 2, "bad"), BW_INVALID_ARGUMENT);
    error = bw_last_error(ctx);
    assert_string_equal(error->message, "a.csv: line 7: bad");
    assert_string_equal(error->path, "a.csv");
    assert_int_equal(error->line, 7);
    assert_int_equal(error->column, 2);
    assert_int_equal(error->kind, BW_ERROR_DATA);

    assert_int_equal(bwi_fail_text(ctx, BW_INVALID_ARGUMENT, "adam", "optimizer", 6, "bad"), BW_INVALID_ARGUMENT);
    error = bw_last_error(ctx);
    assert_string_equal(error->message, "adam: column 6: bad");
    assert_string_equal(error->argument, "optimizer");
    assert_int_equal(error->offset, 5);
    assert_int_equal(error->kind, BW_ERROR_USAGE);
    assert_null(error->path);
    bwi_fail_text(ctx, BW_INVALID_ARGUMENT, "kernel", NULL, 6, "bad");
    assert_nowhere(bw_last_error(ctx));

    bwi_fail_at(ctx, BW_INVALID_ARGUMENT, bwi_in_layer("dense"), "NaN");
    assert_string_equal(bw_last_error(ctx)->layer, "dense");
    assert_int_equal(bw_last_error(ctx)->kind, BW_ERROR_MODEL);
    bwi_fail_at(ctx, BW_INVALID_ARGUMENT, bwi_at_sample(0), "NaN");
    assert_int_equal(bw_last_error(ctx)->sample, 0);
    assert_int_equal(bw_last_error(ctx)->kind, BW_ERROR_DATA);
    bwi_fail_at(ctx, BW_RESOURCE_EXHAUSTED, bwi_in_file("a"), "full");
    assert_int_equal(bw_last_error(ctx)->kind, BW_ERROR_RESOURCES);
    bwi_fail(ctx, BW_INVALID_ARGUMENT, "x");
    assert_nowhere(bw_last_error(ctx));
    bw_close(ctx);
}

/* What was known of an inner failure stays, and the outer one completes it. */
static void test_again(void **state)
{
    (void)state;
    bw_context *ctx = bw_open(NULL);
    bwi_fail_at(ctx, BW_INVALID_ARGUMENT, bwi_in_layer("dense"), "inner");
    bwi_fail_again(ctx, BW_INVALID_ARGUMENT, bwi_in_file("m.keras"), "m.keras: %s", bw_message(ctx));
    const bw_error *error = bw_last_error(ctx);
    assert_string_equal(error->message, "m.keras: inner");
    assert_string_equal(error->path, "m.keras");
    assert_string_equal(error->layer, "dense");
    bwi_fail_again(ctx, BW_INVALID_ARGUMENT, bwi_in_file("other"), "%s", bw_message(ctx));
    assert_string_equal(error->path, "m.keras");
    bwi_location line = bwi_in_file("b.csv");
    line.line = 3;
    bwi_fail_again(ctx, BW_INVALID_ARGUMENT, line, "%s", bw_message(ctx));
    assert_int_equal(error->line, -1);
    bw_close(ctx);
}

static void test_location_of_builders(void **state)
{
    (void)state;
    bw_context *ctx = bw_open(NULL);
    bwi_fail_file(ctx, BW_NOT_FOUND, "first", "x");
    bwi_pass_on(ctx);
    bwi_fail_file(ctx, BW_NOT_FOUND, "second", "x");
    assert_int_equal(bwi_pending(ctx), BW_NOT_FOUND);
    assert_string_equal(bw_last_error(ctx)->path, "first");
    bw_close(ctx);
}

/* A name that would have to be cut is none; the message has its beginning. */
static void test_long_path(void **state)
{
    (void)state;
    bw_context *ctx = bw_open(NULL);
    char path[5001];
    memset(path, 'a', 5000);
    path[5000] = 0;
    bwi_fail_file(ctx, BW_NOT_FOUND, path, "x");
    assert_null(bw_last_error(ctx)->path);
    assert_int_equal(strlen(bw_message(ctx)), sizeof ctx->message - 1);
    assert_string_equal(bw_message(ctx) + sizeof ctx->message - 4, "...");
    path[2000] = 0;
    bwi_fail_file(ctx, BW_NOT_FOUND, path, "x");
    assert_string_equal(bw_last_error(ctx)->path, path);
    bw_close(ctx);
}

/* The library's own failures, as a program sees them. */
static void test_from_the_library(void **state)
{
    (void)state;
    bw_context *ctx = bw_open(NULL);
    const bw_error *error;
    static const char text[] = "flatten dense(3,nonsense=1)";
    assert_null(bw_model_parse(ctx, text));
    error = bw_last_error(ctx);
    assert_int_equal(error->kind, BW_ERROR_USAGE);
    assert_string_equal(error->argument, "model");
    assert_int_equal(error->offset, strstr(text, "nonsense") - text);
    bwi_pending(ctx);
    assert_null(bw_read(ctx, "/nonexistent/x.npz", NULL));
    error = bw_last_error(ctx);
    assert_int_equal(error->status, BW_NOT_FOUND);
    assert_int_equal(error->kind, BW_ERROR_FILE);
    assert_string_equal(error->path, "/nonexistent/x.npz");
    bwi_pending(ctx);
    assert_int_equal(bw_build(bw_model_parse(ctx, "dense(2) conv2d(3,3)"), 1, (int64_t[]){4}, 0), BW_INVALID_ARGUMENT);
    error = bw_last_error(ctx);
    assert_int_equal(error->kind, BW_ERROR_MODEL);
    assert_string_equal(error->layer, "conv2d");
    bw_close(ctx);
}

static void test_errno(void **state)
{
    (void)state;
    assert_int_equal(bwi_errno_status(ENOENT), BW_NOT_FOUND);
    assert_int_equal(bwi_errno_status(ENOSPC), BW_RESOURCE_EXHAUSTED);
    assert_int_equal(bwi_errno_status(EACCES), BW_INVALID_ARGUMENT);
    assert_int_equal(bwi_errno_status(EIO), BW_DATA_LOSS);
    assert_string_equal(bwi_errno_text(ENOENT), "No such file or directory");
}

static void keep_log(void *user, bw_log_level level, const char *message)
{
    snprintf(user, 64, "%d %s", (int)level, message);
}

static void test_log(void **state)
{
    (void)state;
    char got[64] = "";
    bw_context_options options = BW_CONTEXT_OPTIONS_DEFAULT;
    options.log = keep_log;
    options.log_user = got;
    bw_context *ctx = bw_open(&options);
    bwi_log(ctx, BW_LOG_WARNING, "tile %d\n", 8);
    assert_string_equal(got, "1 tile 8 ");
    bw_close(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_last_failure),
        cmocka_unit_test(test_first_of_builders),
        cmocka_unit_test(test_pass_on),
        cmocka_unit_test(test_own_message_as_argument),
        cmocka_unit_test(test_one_line),
        cmocka_unit_test(test_long_text_is_cut),
        cmocka_unit_test(test_without_context),
        cmocka_unit_test(test_no_error),
        cmocka_unit_test(test_kind_by_status),
        cmocka_unit_test(test_locations),
        cmocka_unit_test(test_again),
        cmocka_unit_test(test_location_of_builders),
        cmocka_unit_test(test_long_path),
        cmocka_unit_test(test_from_the_library),
        cmocka_unit_test(test_errno),
        cmocka_unit_test(test_log),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
