/* Opening with all kinds of options, what a context owns, cancelling, and every allocation failing once. */
#include "faults.h"

#include <setjmp.h>
#include <signal.h>
#include <string.h>
#include <cmocka.h>

static void test_defaults(void **state)
{
    (void)state;
    bw_context *ctx = bw_open(NULL);
    assert_non_null(ctx);
    assert_int_equal(ctx->workers, bwi_cpus());
    assert_null(ctx->instruction_set);
    assert_int_equal(bwi_pending(ctx), BW_OK);
    bw_close(ctx);
    bw_close(NULL);
}

static void test_given(void **state)
{
    (void)state;
    char set[] = "avx2";
    bw_context_options options = BW_CONTEXT_OPTIONS_DEFAULT;
    options.workers = 3;
    options.instruction_set = set;
    bw_context *ctx = bw_open(&options);
    set[0] = 'x';
    assert_int_equal(ctx->workers, 3);
    assert_string_equal(ctx->instruction_set, "avx2");
    assert_int_equal(bwi_pending(ctx), BW_OK);
    bw_close(ctx);
}

static void expect_refused(const bw_context_options *options, bw_status status, const char *words)
{
    bw_context *ctx = bw_open(options);
    assert_non_null(ctx);
    assert_int_equal(bwi_pending(ctx), status);
    assert_non_null(strstr(bw_message(ctx), words));
    assert_int_equal(bwi_pending(ctx), BW_OK);
    assert_true(ctx->workers >= 1);
    bw_close(ctx);
}

static void test_refused(void **state)
{
    (void)state;
    bw_context_options plain = BW_CONTEXT_OPTIONS_DEFAULT;
    bw_context_options options = plain;
    options.workers = -2;
    expect_refused(&options, BW_INVALID_ARGUMENT, "workers is -2");
    options.workers = BWI_MAX_WORKERS + 1;
    expect_refused(&options, BW_INVALID_ARGUMENT, "expected 0 to 1024");
    options = plain;
    options.rank = 1;
    expect_refused(&options, BW_INVALID_ARGUMENT, "rank is 1, expected 0 to 0");
    options = plain;
    bw_allocator half = {.allocate = bwi_system_allocator.allocate};
    options.allocator = &half;
    expect_refused(&options, BW_INVALID_ARGUMENT, "allocator lacks");
    options = plain;
    bw_io io = bwi_system_io;
    io.unmap = NULL;
    options.io = &io;
    expect_refused(&options, BW_INVALID_ARGUMENT, "io lacks");
    options = plain;
    options.size = 0;
    expect_refused(&options, BW_INVALID_ARGUMENT, "size is 0");
    options.size = (size_t)1 << 40;
    expect_refused(&options, BW_INVALID_ARGUMENT, "size is 1099511627776");
}

/* Programs made for other versions of the header. */
static void test_other_versions(void **state)
{
    (void)state;
    bw_context_options options = BW_CONTEXT_OPTIONS_DEFAULT;
    options.workers = 2;
    options.rank = 77; /* an older program does not have it */
    options.size = offsetof(bw_context_options, workers) + sizeof options.workers;
    bw_context *ctx = bw_open(&options);
    assert_int_equal(bwi_pending(ctx), BW_OK);
    assert_int_equal(ctx->workers, 2);
    bw_close(ctx);

    struct {
        bw_context_options known;
        int more[4];
    } newer = {.known = {.size = sizeof newer, .workers = 3}};
    ctx = bw_open(&newer.known);
    assert_int_equal(bwi_pending(ctx), BW_OK);
    assert_int_equal(ctx->workers, 3);
    bw_close(ctx);
    newer.more[2] = 1;
    expect_refused(&newer.known, BW_UNIMPLEMENTED, "sets an option at byte");
}

/* ---- Owning ---- */

typedef struct thing {
    bwi_owned owned;
    int number;
    struct thing *other;
} thing;

static int destroyed[8], destroyed_count;

static void destroy_thing(bwi_owned *object)
{
    thing *self = (thing *)object;
    destroyed[destroyed_count++] = self->number;
    bwi_disown(self->other);
}

static thing *make_thing(bw_context *ctx, int number)
{
    thing *made = bwi_own(ctx, sizeof *made, destroy_thing);
    if (made) {
        made->number = number;
    }
    return made;
}

static void test_owned(void **state)
{
    (void)state;
    faults memory = {0};
    bw_context *ctx = faults_context(&memory, NULL, 1);
    destroyed_count = 0;
    thing *made[6];
    for (int i = 0; i < 6; i++) {
        made[i] = make_thing(ctx, i);
    }
    bwi_disown(made[2]); /* from the middle */
    bwi_disown(made[5]); /* the newest */
    bwi_disown(made[0]); /* the oldest */
    bwi_disown(NULL);
    made[4]->other = made[1]; /* freed while 4 is destroyed, before 3 */
    bw_close(ctx);
    const int expected[] = {2, 5, 0, 4, 1, 3};
    assert_int_equal(destroyed_count, 6);
    assert_memory_equal(destroyed, expected, sizeof expected);
    assert_int_equal(memory.blocks, 0);
    assert_null(bwi_own(NULL, 100, NULL));
}

static void test_own_fails_as_builder(void **state)
{
    (void)state;
    faults memory = {0};
    bw_context *ctx = faults_context(&memory, NULL, 1);
    memory.fail_at = memory.calls + 1;
    assert_null(make_thing(ctx, 1));
    assert_int_equal(bwi_pending(ctx), BW_RESOURCE_EXHAUSTED);
    bw_close(ctx);
    assert_int_equal(memory.blocks, 0);
}

/* ---- Every allocation fails once ---- */

static bw_status use_everything(bw_context *ctx)
{
    bw_status status = BW_OK;
    bwi_text text = {.ctx = ctx};
    for (int i = 0; i < 100; i++) {
        bwi_text_add(&text, "%d,", i);
    }
    bwi_state values = {.ctx = ctx};
    for (int i = 0; i < 70; i++) {
        bwi_state_add(&values, BW_I32, 0, NULL, &status, "value%d", i);
    }
    bwi_ledger ledger;
    bw_status ledger_status = bwi_ledger_open(ctx, &ledger, 5, 2);
    bw_status pool_status = bwi_pool_open(ctx);
    thing *made = make_thing(ctx, 1);
    void *arena = bwi_arena_allocate(ctx, 10000);
    char *copy = bwi_copy_text(ctx, "text");
    if (text.failed || values.failed || ledger_status || pool_status || !made || !arena || !copy) {
        status = ctx->error.status;
    }
    bwi_arena_release(ctx, arena, 10000);
    bwi_release(ctx, copy);
    bwi_ledger_close(ctx, &ledger);
    bwi_state_free(&values);
    bwi_text_free(&text);
    return status;
}

static void test_every_allocation_fails(void **state)
{
    (void)state;
    int at = 1;
    for (bool failed = true; failed; at++) {
        destroyed_count = 0;
        faults memory = {.fail_at = at};
        bw_allocator allocator = faults_allocator(&memory);
        bw_context_options options = {.size = sizeof options, .allocator = &allocator, .workers = 3, .instruction_set = "portable"};
        bw_context *ctx = bw_open(&options);
        if (ctx) {
            bw_status status = bwi_pending(ctx);
            if (status == BW_OK) {
                status = use_everything(ctx);
            }
            assert_int_equal(status, memory.failed ? BW_RESOURCE_EXHAUSTED : BW_OK);
            bwi_pending(ctx);
        }
        bw_close(ctx);
        assert_int_equal(memory.blocks, 0);
        assert_int_equal(memory.bytes, 0);
        failed = memory.failed;
    }
    assert_true(at > 12);
}

/* ---- Cancelling ---- */

static bw_context *signalled;

static void on_signal(int number)
{
    (void)number;
    bw_cancel(signalled);
}

static void test_cancel(void **state)
{
    (void)state;
    bw_cancel(NULL);
    bw_context *ctx = bw_open(NULL);
    assert_false(bwi_cancelled(ctx));
    signalled = ctx;
    signal(SIGUSR1, on_signal);
    raise(SIGUSR1);
    signal(SIGUSR1, SIG_DFL);
    assert_true(bwi_cancelled(ctx));
    assert_int_equal(bwi_cancel_report(ctx), BW_CANCELLED);
    assert_string_equal(bw_message(ctx), "cancelled");
    assert_false(bwi_cancelled(ctx));
    bwi_fail(ctx, BW_CANCELLED, "rank 1 has left");
    assert_int_equal(bwi_cancel_report(ctx), BW_CANCELLED);
    assert_string_equal(bw_message(ctx), "rank 1 has left");
    bw_close(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_given),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_other_versions),
        cmocka_unit_test(test_owned),
        cmocka_unit_test(test_own_fails_as_builder),
        cmocka_unit_test(test_every_allocation_fails),
        cmocka_unit_test(test_cancel),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
