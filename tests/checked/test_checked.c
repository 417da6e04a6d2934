/*
 * The table "checked" itself: what touches an arena from outside a kernel faults, what goes through kernels, or between open and
 * close, does not, and training with it gives the bits of the table that it wraps.
 */
#include "support/check.h"

#include "checked/checked.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { FLOATS = 5000 };

static bw_context *open_with(const char *instruction_set)
{
    bw_context_options options = BW_CONTEXT_OPTIONS_DEFAULT;
    options.workers = 1;
    options.instruction_set = instruction_set;
    bw_context *ctx = bw_open(&options);
    assert_non_null(ctx);
    return ctx;
}

static void look(const bwi_kernels *k, float *x)
{
    (void)k;
    (void)*(volatile float *)(x + FLOATS / 2);
}

static void store(const bwi_kernels *k, float *x)
{
    (void)k;
    *(volatile float *)x = 1;
}

static void look_after_a_kernel(const bwi_kernels *k, float *x)
{
    k->memory->fill(FLOATS, 2, x);
    look(k, x + FLOATS / 2 - 1);
}

static void look_after_close(const bwi_kernels *k, float *x)
{
    k->memory->close(k->memory->open(x, sizeof *x), sizeof *x);
    look(k, x);
}

static void look_in_between(const bwi_kernels *k, float *x)
{
    float *opened = k->memory->open(x, FLOATS * sizeof *x);
    k->memory->fill(FLOATS, 2, x); /* a kernel within: still open afterwards */
    look(k, opened);
    store(k, opened);
    k->memory->close(x, FLOATS * sizeof *x);
}

static void only_kernels(const bwi_kernels *k, float *x)
{
    k->memory->fill(FLOATS, 2, x);
    k->relu_forward(FLOATS, x, x);
}

/* Whether what `touch` does in a process of its own ends it by SIGSEGV. */
static bool faults(void (*touch)(const bwi_kernels *k, float *x))
{
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        close(STDERR_FILENO);
        signal(SIGSEGV, SIG_DFL);
        bw_context *ctx = open_with("checked");
        const bwi_kernels *k = bwi_kernels_of(ctx);
        touch(k, k->memory->allocate(ctx, FLOATS * sizeof(float)));
        _exit(0);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    if (WIFSIGNALED(status)) {
        assert_int_equal(WTERMSIG(status), SIGSEGV);
        return true;
    }
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    return false;
}

static void test_touching_from_outside_faults(void **state)
{
    (void)state;
    assert_true(faults(look));
    assert_true(faults(store));
    assert_true(faults(look_after_a_kernel));
    assert_true(faults(look_after_close));
    assert_false(faults(look_in_between));
    assert_false(faults(only_kernels));
}

static void test_it_is_chosen_by_name(void **state)
{
    (void)state;
    bw_context *ctx = open_with("checked");
    assert_ptr_equal(bwi_kernels_of(ctx), &checked_kernels);
    assert_ptr_equal(bwi_kernels_by_name("checked"), &checked_kernels);
    bw_close(ctx);
    assert_false(bwi_kernels_add(&checked_kernels));
    assert_false(bwi_kernels_add(bwi_kernels_by_name("portable")));
}

/* The kernels that it wraps compute: what goes in by `write` comes out by `read`. */
static void test_memory_goes_in_and_out(void **state)
{
    (void)state;
    bw_context *ctx = open_with("checked");
    const bwi_kernels *k = bwi_kernels_of(ctx);
    float *x = k->memory->allocate(ctx, 2 * FLOATS * sizeof *x), host[4] = {1, -2, 3, -4};
    k->memory->write(x, host, sizeof host);
    k->relu_forward(4, x, x + FLOATS);
    k->memory->read(host, x + FLOATS, sizeof host);
    assert_true(host[0] == 1);
    assert_true(host[1] == 0);
    assert_true(host[2] == 3);
    assert_true(k->sum_of_squares(4, x) == 30);
    k->memory->release(ctx, x, 2 * FLOATS * sizeof *x);
    bw_close(ctx);
}

enum { SAMPLES = 24, INPUTS = 6 * 6, VALUES = 4096 };

static void train(const char *instruction_set, float *values, size_t *count)
{
    static float x[SAMPLES * INPUTS];
    static int32_t y[SAMPLES];
    for (int i = 0; i < SAMPLES * INPUTS; i++) {
        x[i] = (float)(i * 7919 % 1000) / 1000;
    }
    for (int i = 0; i < SAMPLES; i++) {
        y[i] = i % 3;
    }
    bw_context *ctx = open_with(instruction_set);
    bw_array xs = {.data = x, .dtype = BW_F32, .ndim = 4, .shape = {SAMPLES, 6, 6, 1}};
    bw_array ys = {.data = y, .dtype = BW_I32, .ndim = 1, .shape = {SAMPLES}};
    bw_dataset *data = bw_from_arrays(ctx, &xs, &ys, NULL);
    bw_model *model = bw_model_parse(ctx, "conv2d(4,3,relu) batchnorm dropout(0.25) flatten dense(8,tanh) dense(3,softmax)");
    bw_fit_options options = BW_FIT_OPTIONS_DEFAULT;
    options.batch = 8;
    options.epochs = 2;
    check_ok(ctx, bw_compile(model, "adam", NULL, "accuracy"));
    check_ok(ctx, bw_fit(model, data, &options, NULL));
    *count = 0;
    for (int v = 0; v < bw_variable_count(model); v++) {
        int64_t shape[BW_MAX_NDIM];
        size_t size = 1;
        for (int axis = bw_variable_shape(model, v, shape) - 1; axis >= 0; axis--) {
            size *= (size_t)shape[axis];
        }
        assert_true(*count + size <= VALUES);
        check_ok(ctx, bw_variable_get(model, v, values + *count, size));
        *count += size;
    }
    bw_close(ctx);
}

static void test_training_has_the_same_bits(void **state)
{
    (void)state;
    static float expected[VALUES], found[VALUES];
    size_t expected_count, found_count;
    train(checked_base->name, expected, &expected_count);
    train("checked", found, &found_count);
    assert_int_equal(found_count, expected_count);
    assert_memory_equal(found, expected, found_count * sizeof *found);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_touching_from_outside_faults),
        cmocka_unit_test(test_it_is_chosen_by_name),
        cmocka_unit_test(test_memory_goes_in_and_out),
        cmocka_unit_test(test_training_has_the_same_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
