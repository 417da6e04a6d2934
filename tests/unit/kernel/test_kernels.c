/*
 * The choice of a table: by the context, by the environment, by the CPU; and what is said of a set that is not to be had.
 */
#include "support/kernel_check.h"

static void set_environment(const char *name)
{
    if (name) {
        assert_int_equal(setenv("BATCHWISE_ISA", name, 1), 0);
    } else {
        assert_int_equal(unsetenv("BATCHWISE_ISA"), 0);
    }
}

static void test_by_name(void **state)
{
    (void)state;
    assert_non_null(bwi_kernels_by_name("portable"));
    assert_null(bwi_kernels_by_name("sse9"));
    assert_null(bwi_kernels_by_name(""));
    assert_null(bwi_kernels_by_name("reference"));
}

static void check_complete(const bwi_kernels *k)
{
    static const size_t first = offsetof(bwi_kernels, dense_forward);
    assert_true(k->block == 16 || k->block == 8 || k->block == 4);
    for (size_t i = first; i < sizeof *k; i += sizeof(void (*)(void))) {
        void (*kernel)(void);
        memcpy(&kernel, (const char *)k + i, sizeof kernel);
        assert_non_null(kernel);
    }
}

static void test_complete(void **state)
{
    (void)state;
    each_table(check_complete);
}

static void test_context_first(void **state)
{
    (void)state;
    bw_context ctx = {.instruction_set = "portable"};
    set_environment("nonsense");
    assert_ptr_equal(bwi_kernels_of(&ctx), bwi_kernels_by_name("portable"));
    set_environment(NULL);
    assert_ptr_equal(bwi_kernels_of(&ctx), bwi_kernels_by_name("portable"));
}

static void test_environment_next(void **state)
{
    (void)state;
    bw_context ctx = {.instruction_set = NULL};
    set_environment("portable");
    assert_ptr_equal(bwi_kernels_of(&ctx), bwi_kernels_by_name("portable"));
    set_environment(NULL);
}

static void test_best_otherwise(void **state)
{
    (void)state;
    bw_context ctx = {.instruction_set = NULL};
    set_environment("");
    const bwi_kernels *best = bwi_kernels_by_name("avx512");
    best = best ? best : bwi_kernels_by_name("avx2");
    best = best ? best : bwi_kernels_by_name("neon");
    best = best ? best : bwi_kernels_by_name("portable");
    assert_ptr_equal(bwi_kernels_of(&ctx), best);
    set_environment(NULL);
}

static void test_unknown(void **state)
{
    (void)state;
    bw_context ctx = {.instruction_set = "mmx"};
    assert_null(bwi_kernels_of(&ctx));
    assert_int_equal(ctx.error.status, BW_INVALID_ARGUMENT);
    assert_non_null(strstr(ctx.message, "mmx"));
    assert_non_null(strstr(ctx.message, "or \"portable\""));
    bw_context other = {.instruction_set = NULL};
    const char *foreign = bwi_kernels_by_name("neon") ? "avx2" : "neon";
    set_environment(foreign);
    assert_null(bwi_kernels_of(&other));
    assert_non_null(strstr(other.message, "BATCHWISE_ISA"));
    assert_non_null(strstr(other.message, foreign));
    set_environment(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_by_name),          cmocka_unit_test(test_complete),       cmocka_unit_test(test_context_first),
        cmocka_unit_test(test_environment_next), cmocka_unit_test(test_best_otherwise), cmocka_unit_test(test_unknown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
