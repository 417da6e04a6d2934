/* Spools in memory and in a file: what was there stays, new bytes are zero, every failing call is a status, nothing is left. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "faults.h"

static void fill(bwi_spool *spool, size_t from, size_t to)
{
    for (size_t i = from; i < to; i++) {
        ((unsigned char *)spool->memory)[i] = (unsigned char)(i * 7 + i / 251);
    }
}

static void check(const bwi_spool *spool, size_t used, size_t bytes)
{
    const unsigned char *memory = spool->memory;
    for (size_t i = 0; i < used; i++) {
        assert_int_equal(memory[i], (unsigned char)(i * 7 + i / 251));
    }
    for (size_t i = used; i < bytes; i++) {
        assert_int_equal(memory[i], 0);
    }
}

static void test_grows_into_a_file(void **state)
{
    (void)state;
    bw_context *ctx = bw_open(NULL);
    bwi_spool spool = {.bytes = 0};
    ctx->spool_limit = 10000;
    size_t used = 0;
    for (size_t bytes = 100; bytes < 1000000; bytes = bytes * 3 + 1) {
        assert_int_equal(bwi_spool_grow(ctx, &spool, used, bytes, "numbers"), BW_OK);
        assert_int_equal(spool.opened, bytes > 10000);
        assert_true(spool.bytes >= bytes);
        check(&spool, used, bytes);
        fill(&spool, used, bytes);
        used = bytes;
    }
    bwi_spool_free(ctx, &spool);
    assert_null(spool.memory);
    assert_int_equal(bwi_spool_grow(ctx, &spool, 0, SIZE_MAX, "numbers"), BW_RESOURCE_EXHAUSTED);
    assert_non_null(strstr(bw_message(ctx), "numbers"));
    bw_close(ctx);
}

/* Larger than any disk: a message that names the file's folder, and what was there stays. */
static void test_disk_is_too_small(void **state)
{
    (void)state;
    bw_context *ctx = bw_open(NULL);
    bwi_spool spool = {.bytes = 0};
    ctx->spool_limit = 100;
    assert_int_equal(bwi_spool_grow(ctx, &spool, 0, 5000, "numbers"), BW_OK);
    fill(&spool, 0, 5000);
    assert_int_not_equal(bwi_spool_grow(ctx, &spool, 5000, (size_t)1 << 60, "numbers"), BW_OK);
    assert_non_null(strstr(bw_message(ctx), " in a temporary file in "));
    check(&spool, 5000, 5000);
    bwi_spool_free(ctx, &spool);
    bw_close(ctx);
}

static void test_every_call_fails_once(void **state)
{
    (void)state;
    for (int nth = 1;; nth++) {
        faults files = {.error = EIO};
        bw_context *ctx = faults_context(NULL, &files, 1);
        bwi_spool spool = {.bytes = 0};
        ctx->spool_limit = 100;
        files.fail_at = files.calls + nth;
        bw_status status = bwi_spool_grow(ctx, &spool, 0, 50, "numbers");
        assert_int_equal(status, BW_OK);
        fill(&spool, 0, 50);
        status = bwi_spool_grow(ctx, &spool, 50, 5000, "numbers");
        check(&spool, 50, status == BW_OK ? 5000 : 50);
        if (status == BW_OK) {
            status = bwi_spool_grow(ctx, &spool, 50, 50000, "numbers");
        }
        check(&spool, 50, status == BW_OK ? 50000 : 50);
        bool failed = files.failed;
        assert_int_equal(status == BW_OK, !failed);
        bwi_spool_free(ctx, &spool);
        bw_close(ctx);
        assert_int_equal(files.blocks, 0);
        if (!failed) {
            break;
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_grows_into_a_file),
        cmocka_unit_test(test_disk_is_too_small),
        cmocka_unit_test(test_every_call_fails_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
