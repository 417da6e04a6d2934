/* Checks of statuses and their messages, which most tests share. */
#ifndef BW_TEST_CHECK_H
#define BW_TEST_CHECK_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <batchwise.h>

#include <stdio.h>
#include <string.h>

/* Fails with the context's message unless the status is BW_OK. */
#define check_ok(ctx, status) check_ok_at(ctx, status, __FILE__, __LINE__)
/* The status is `expected`, and the message has each of the texts that `parts` separates by '|'. */
#define check_fails(ctx, status, expected, parts) check_fails_at(ctx, status, expected, parts, __FILE__, __LINE__)

static inline void check_ok_at(bw_context *ctx, bw_status status, const char *file, int line)
{
    if (status != BW_OK) {
        print_error("%s:%d: %s: %s\n", file, line, bw_status_name(status), bw_message(ctx));
        fail();
    }
}

static inline void check_fails_at(bw_context *ctx, bw_status status, bw_status expected, const char *parts, const char *file,
                                  int line)
{
    bool right = status == expected;
    const char *message = bw_message(ctx);
    for (const char *at = parts; *at && right;) {
        char part[256];
        size_t length = strcspn(at, "|");
        snprintf(part, sizeof part, "%.*s", (int)length, at);
        right = strstr(message, part);
        at += length + (at[length] == '|');
    }
    if (!right) {
        print_error("%s:%d: expected %s with '%s', got %s: %s\n", file, line, bw_status_name(expected), parts,
                    bw_status_name(status), message);
        fail();
    }
}

#endif
