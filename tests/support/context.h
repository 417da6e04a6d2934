/* Opens a context for each test of a file: cmocka_unit_test_setup_teardown(test, open_context, close_context). */
#ifndef BW_TEST_CONTEXT_H
#define BW_TEST_CONTEXT_H

#include "support/check.h"

#include "base/base.h"

static bw_context *ctx;

static inline int open_context(void **state)
{
    (void)state;
    ctx = bw_open(NULL);
    return ctx ? 0 : -1;
}

static inline int close_context(void **state)
{
    (void)state;
    bw_close(ctx);
    return 0;
}

/* For tests that free all they make. */
static inline int close_empty_context(void **state)
{
    size_t left = bwi_allocated_bytes(ctx);
    return close_context(state) == 0 && left == 0 ? 0 : -1;
}

#endif
