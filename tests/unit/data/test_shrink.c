/*
 * A mapped file that becomes shorter: reading what is gone is a failure with the file's name, not the end of the process; a step
 * that read it is not committed. The host's own handler of SIGBUS stays, and any other SIGBUS does what it did before.
 */
#include "support/check.h"
#include "support/folder.h"

#include "base/base.h"

#include <signal.h>
#include <sys/wait.h>

enum { SAMPLES = 4096, VALUES = 64, BATCH = 64, CUT_AT = 5 };

static void write_array(const char *path, int64_t columns, float first)
{
    char header[128];
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    int length =
        snprintf(header, sizeof header, "{'descr': '<f4', 'fortran_order': False, 'shape': (%d, %d), }", SAMPLES, (int)columns);
    fwrite("\x93NUMPY\x01\x00\x76\x00", 1, 10, file);
    fprintf(file, "%s%*s\n", header, 0x76 - 1 - length, "");
    for (int64_t i = 0; i < SAMPLES * columns; i++) {
        float value = first + (float)(i % 7) * 0.1F;
        fwrite(&value, sizeof value, 1, file);
    }
    assert_int_equal(fclose(file), 0);
}

static bool is_default(void)
{
    struct sigaction now;
    return sigaction(SIGBUS, NULL, &now) == 0 && !(now.sa_flags & SA_SIGINFO) && now.sa_handler == SIG_DFL;
}

/* cmocka handles the signal while a test runs. */
static void let_go(void)
{
    signal(SIGBUS, SIG_DFL);
}

static bw_dataset *read_arrays(bw_context *ctx, char *path, size_t size)
{
    char x[1100];
    snprintf(x, sizeof x, "%s", inside("x.npy"));
    write_array(x, VALUES, 0.5F);
    write_array(inside("y.npy"), 1, 0);
    snprintf(path, size, "%s,%s", x, inside("y.npy"));
    bw_dataset *data = bw_read(ctx, path, NULL);
    assert_non_null(data);
    return data;
}

typedef struct cutting {
    int steps;
} cutting;

static bool cut(void *user, const bw_progress *progress)
{
    cutting *c = user;
    (void)progress;
    if (++c->steps == CUT_AT) {
        assert_int_equal(truncate(inside("x.npy"), 8192), 0);
    }
    return true;
}

/* The file is cut off after a few steps; the steps that were made are those of a run that ended there, whoever reads the
 * samples. */
static void test_fit(int workers)
{
    char path[2300];
    uint64_t hash[2];
    let_go();
    for (int cuts = 0; cuts < 2; cuts++) {
        bw_context_options options = BW_CONTEXT_OPTIONS_DEFAULT;
        options.workers = workers;
        bw_context *ctx = bw_open(&options);
        bw_dataset *data = read_arrays(ctx, path, sizeof path);
        assert_false(is_default());
        bw_model *model = bw_model_parse(ctx, "dense(8,relu) dense(1)");
        check_ok(ctx, bw_compile(model, "sgd", "mse", NULL));
        bw_fit_options fit = BW_FIT_OPTIONS_DEFAULT;
        cutting c = {0};
        fit.batch = BATCH;
        fit.on_step = cuts ? cut : NULL;
        fit.user = &c;

        if (cuts) {
            check_fails(ctx, bw_fit(model, data, &fit, NULL), BW_DATA_LOSS, "x.npy|shorter");
            assert_int_equal(c.steps, CUT_AT);
            check_fails(ctx, bw_fit(model, data, &fit, NULL), BW_DATA_LOSS, "shorter"); /* it stays so */
        } else {
            check_ok(ctx, bw_fit(model, bw_take(data, CUT_AT * BATCH), &fit, NULL));
        }
        check_ok(ctx, bw_save(model, inside("model.keras"))); /* the model can be used */
        hash[cuts] = bw_model_hash(model);
        bw_close(ctx);
        assert_true(is_default());
    }
    assert_true(hash[0] == hash[1]);
}

static void test_one_worker(void **state)
{
    (void)state;
    test_fit(1);
}

static void test_workers(void **state)
{
    (void)state;
    test_fit(3);
}

/* What is gone reads as zeros, and is told once; the file knows it for ever. */
static void test_report(void **state)
{
    (void)state;
    let_go();
    bw_context *ctx = bw_open(NULL);
    bwi_bytes file;
    write_array(inside("x.npy"), VALUES, 1);
    check_ok(ctx, bwi_file_map(ctx, &file, inside("x.npy")));
    assert_int_equal(truncate(inside("x.npy"), 100), 0);
    assert_false(bwi_file_has_shrunk(&file));
    assert_int_equal(((const volatile unsigned char *)file.data)[file.size - 1], 0);
    assert_true(bwi_file_has_shrunk(&file));
    check_fails(ctx, bwi_shrink_report(ctx, NULL, BW_OK), BW_DATA_LOSS, "x.npy|shorter");
    assert_int_equal(bwi_shrink_report(ctx, NULL, BW_OK), BW_OK);
    assert_true(bwi_file_has_shrunk(&file));
    bwi_file_unmap(ctx, &file);
    bw_close(ctx);
    assert_true(is_default());
}

static void ignore(int number)
{
    (void)number;
}

static void test_host_handler(void **state)
{
    (void)state;
    char path[2300];
    signal(SIGBUS, ignore);
    bw_context *ctx = bw_open(NULL);
    read_arrays(ctx, path, sizeof path);
    bw_close(ctx);
    assert_ptr_equal(signal(SIGBUS, SIG_DFL), ignore);
    ctx = bw_open(NULL);
    read_arrays(ctx, path, sizeof path);
    signal(SIGBUS, ignore); /* while a file is mapped */
    bw_close(ctx);
    assert_ptr_equal(signal(SIGBUS, SIG_DFL), ignore);
}

static void test_other_signals(void **state)
{
    (void)state;
    char path[2300];
    let_go();
    bw_context *ctx = bw_open(NULL);
    read_arrays(ctx, path, sizeof path);
    pid_t child = fork();
    if (child == 0) {
        raise(SIGBUS);
        _exit(0);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS);
    bw_close(ctx);
}

int main(void)
{
    if (!is_default()) { /* a sanitizer handles it */
        return 77;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_worker),   cmocka_unit_test(test_workers),       cmocka_unit_test(test_report),
        cmocka_unit_test(test_host_handler), cmocka_unit_test(test_other_signals),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
