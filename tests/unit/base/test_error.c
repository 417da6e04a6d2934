/* Status, messages, and the rule that the first unreported failure of a builder is kept. */
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
    assert_string_equal(bw_message(ctx), "first");
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
        cmocka_unit_test(test_errno),
        cmocka_unit_test(test_log),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
