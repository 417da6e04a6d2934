/* Spools in memory and in a file: what was there stays, new bytes are zero, every failing call is a status, nothing is left. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "faults.h"

static void fill(bwi_backing *backing, size_t from, size_t to)
{
    for (size_t i = from; i < to; i++) {
        ((unsigned char *)backing->memory)[i] = (unsigned char)(i * 7 + i / 251);
    }
}

static void check(const bwi_backing *backing, size_t used, size_t bytes)
{
    const unsigned char *memory = backing->memory;
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
    bwi_backing backing = {.bytes = 0};
    ctx->backing_limit = 10000;
    size_t used = 0;
    for (size_t bytes = 100; bytes < 1000000; bytes = bytes * 3 + 1) {
        assert_int_equal(bwi_backing_grow(ctx, &backing, used, bytes, "numbers"), BW_OK);
        assert_int_equal(backing.opened, bytes > 10000);
        assert_true(backing.bytes >= bytes);
        check(&backing, used, bytes);
        fill(&backing, used, bytes);
        used = bytes;
    }
    bwi_backing_free(ctx, &backing);
    assert_null(backing.memory);
    assert_int_equal(bwi_backing_grow(ctx, &backing, 0, SIZE_MAX, "numbers"), BW_RESOURCE_EXHAUSTED);
    assert_non_null(strstr(bw_message(ctx), "numbers"));
    bw_close(ctx);
}

/* Larger than any disk: a message that names the file's folder, and what was there stays. */
static void test_disk_is_too_small(void **state)
{
    (void)state;
    bw_context *ctx = bw_open(NULL);
    bwi_backing backing = {.bytes = 0};
    ctx->backing_limit = 100;
    assert_int_equal(bwi_backing_grow(ctx, &backing, 0, 5000, "numbers"), BW_OK);
    fill(&backing, 0, 5000);
    assert_int_not_equal(bwi_backing_grow(ctx, &backing, 5000, (size_t)1 << 60, "numbers"), BW_OK);
    assert_non_null(strstr(bw_message(ctx), " in a temporary file in "));
    check(&backing, 5000, 5000);
    bwi_backing_free(ctx, &backing);
    bw_close(ctx);
}

static void test_every_call_fails_once(void **state)
{
    (void)state;
    for (int nth = 1;; nth++) {
        faults files = {.error = EIO};
        bw_context *ctx = faults_context(NULL, &files, 1);
        bwi_backing backing = {.bytes = 0};
        ctx->backing_limit = 100;
        files.fail_at = files.calls + nth;
        bw_status status = bwi_backing_grow(ctx, &backing, 0, 50, "numbers");
        assert_int_equal(status, BW_OK);
        fill(&backing, 0, 50);
        status = bwi_backing_grow(ctx, &backing, 50, 5000, "numbers");
        check(&backing, 50, status == BW_OK ? 5000 : 50);
        if (status == BW_OK) {
            status = bwi_backing_grow(ctx, &backing, 50, 50000, "numbers");
        }
        check(&backing, 50, status == BW_OK ? 50000 : 50);
        bool failed = files.failed;
        assert_int_equal(status == BW_OK, !failed);
        bwi_backing_free(ctx, &backing);
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
