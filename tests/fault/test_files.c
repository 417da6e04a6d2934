/*
 * Every call of the I/O table fails once, in turn, for each kind of data file and for the files that a training writes beside the
 * model: a status with a message or the same result as without the failure, no file left open, nothing half-written. (Models and
 * weights are in unit/file/damage, checkpoints in unit/train/checkpoint.)
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "data/internal.h"
#include "support/folder.h"
#include "unit/base/faults.h"

#include <dirent.h>
#include <stdatomic.h>

enum { SAMPLES = 8, VALUES = 1 << 16, MOST = 100000 };

static const int errors[] = {EIO, EINTR, EMFILE};

/* ---- Readers ---- */

static const char *const files[] = {"numbers.csv",      "numbers.csv.gz", "table.csv",     "float32_deflated.npz",
                                    "int16_stored.npz", "files/*.npy",    "files/*.idx",   "files/*ubyte.gz",
                                    "files/*.libsvm",   "samples/*.h5",   "tfrecord/*.gz", "tfrecord/*.tfrecord",
                                    "images/classes"};

/* The first samples of all fields as a hash; 0 after a failure, whose status comes back. */
static bw_status read_samples(bw_context *ctx, const char *path, uint64_t *hash)
{
    static float values[VALUES];
    bw_read_options options = BW_READ_OPTIONS_DEFAULT;
    options.missing = strstr(path, ".csv") ? BW_MISSING_SKIP : options.missing;
    bw_dataset *dataset = bw_read(ctx, path, &options);
    int64_t numbers[SAMPLES], samples = dataset ? bw_dataset_count(dataset) : 0;
    *hash = 0;
    if (!dataset) {
        return bw_message(ctx)[0] ? BW_DATA_LOSS : BW_OK; /* any status, if there is a message */
    }
    samples = samples < SAMPLES ? samples : SAMPLES;
    for (int64_t i = 0; i < samples; i++) {
        numbers[i] = bwi_dataset_number(dataset, 0, i);
    }
    uint64_t sum = 1;
    for (int f = 0; f < bwi_dataset_fields(dataset) && samples > 0; f++) {
        const bwi_field *field = bwi_dataset_field(dataset, f);
        int64_t each = 1;
        for (int i = 0; i < field->ndim; i++) {
            each *= field->shape[i];
        }
        if (each * samples > VALUES) {
            continue;
        }
        bwi_destination to = bwi_host_destination(values, BW_F32, each);
        char error[BWI_GATHER_ERROR] = "";
        bw_status status = bwi_dataset_gather(dataset, f, 0, numbers, samples, &to, error);
        if (status != BW_OK) {
            assert_true(error[0] || bw_message(ctx)[0]);
            return status;
        }
        sum = bwi_hash(sum, values, (size_t)(each * samples) * sizeof *values);
    }
    *hash = sum;
    return BW_OK;
}

static bool read_with(const char *path, int n, int error, size_t most, uint64_t expected)
{
    faults f = {.fail_at = n, .error = error, .most = most};
    bw_context *ctx = faults_context(NULL, &f, 1);
    uint64_t hash;
    bw_status status = read_samples(ctx, path, &hash);
    if (status == BW_OK && hash != expected) {
        fail_msg("%s: call %d fails with %s: other values, or no message", path, n, strerror(error));
    }
    if (status != BW_OK && !f.failed) {
        fail_msg("%s: call %d: %s: %s", path, n, bw_status_name(status), bw_message(ctx));
    }
    bw_close(ctx);
    if (f.blocks) {
        fail_msg("%s: call %d fails with %s: %lld files or maps stay open", path, n, strerror(error), (long long)f.blocks);
    }
    return f.failed;
}

/* Whether it could be read. */
static bool check_file(const char *path)
{
    faults none = {0};
    bw_context *ctx = faults_context(NULL, &none, 1);
    uint64_t expected;
    bw_status status = read_samples(ctx, path, &expected);
    bw_close(ctx);
    if (status != BW_OK || expected == 0) {
        return false;
    }
    assert_true(none.calls > 0);
    for (size_t e = 0; e < BWI_COUNT(errors); e++) {
        int n = 1;
        while (n < MOST && read_with(path, n, errors[e], 0, expected)) {
            n += 1 + n / 8;
        }
    }
    (void)read_with(path, 0, 0, 7, expected); /* short reads */
    return true;
}

static void check_matching(const char *pattern)
{
    char path[1024], folder_of[512];
    const char *star = strchr(pattern, '*');
    if (!star) {
        snprintf(path, sizeof path, BW_TEST_DATA "/%s", pattern);
        if (!check_file(path)) {
            fail_msg("%s cannot be read", path);
        }
        return;
    }
    snprintf(folder_of, sizeof folder_of, BW_TEST_DATA "/%.*s", (int)(star - pattern), pattern);
    DIR *entries = opendir(folder_of);
    assert_non_null(entries);
    int found = 0;
    for (struct dirent *entry = readdir(entries); entry; entry = readdir(entries)) {
        size_t length = strlen(entry->d_name), tail = strlen(star + 1);
        if (length > tail && strcmp(entry->d_name + length - tail, star + 1) == 0) {
            snprintf(path, sizeof path, "%s%s", folder_of, entry->d_name);
            found += check_file(path);
        }
    }
    closedir(entries);
    if (found == 0) { /* some are there to be refused */
        fail_msg("of %s no file can be read", pattern);
    }
}

static void test_readers(void **state)
{
    (void)state;
    for (size_t i = 0; i < BWI_COUNT(files); i++) {
        check_matching(files[i]);
    }
}

/* ---- Writers ---- */

static int entries_of(const char *path)
{
    DIR *entries = opendir(path);
    int count = 0;
    for (struct dirent *entry = entries ? readdir(entries) : NULL; entry; entry = readdir(entries)) {
        count += entry->d_name[0] != '.';
    }
    if (entries) {
        closedir(entries);
    }
    return count;
}

static bw_dataset *some_samples(bw_context *ctx)
{
    static float x[16 * 3], y[16];
    for (int i = 0; i < 16 * 3; i++) {
        x[i] = (float)(i % 7) - 3;
    }
    bw_array inputs = {.data = x, .dtype = BW_F32, .ndim = 2, .shape = {16, 3}};
    bw_array targets = {.data = y, .dtype = BW_F32, .ndim = 1, .shape = {16}};
    return bw_from_arrays(ctx, &inputs, &targets, NULL);
}

/* A trace is there as a whole, or not at all. */
static void test_trace(void **state)
{
    (void)state;
    bool failed = true;
    for (int n = 1; failed; n++) {
        faults f = {.error = ENOSPC};
        bw_context *ctx = faults_context(NULL, &f, 1);
        bw_fit_options fit = BW_FIT_OPTIONS_DEFAULT;
        bw_history *history = NULL;
        fit.epochs = 4;
        fit.batch = 4;
        fit.trace_steps = 3;
        assert_int_equal(bw_fit(bw_model_parse(ctx, "dense(1)"), some_samples(ctx), &fit, &history), BW_OK);
        f.fail_at = f.calls + n;
        bw_status status = bw_history_save_trace(history, inside("trace.json.gz"));
        failed = f.failed;
        f.fail_at = 0;
        bool there = access(inside("trace.json.gz"), F_OK) == 0;
        if (failed && status == BW_OK && !there) {
            fail_msg("call %d of a trace fails: no file, and no status", n);
        }
        assert_true(status == BW_OK || bw_message(ctx)[0]);
        bw_close(ctx);
        assert_int_equal(f.blocks, 0);
        assert_int_equal(entries_of(folder), there ? 1 : 0);
        (void)remove(inside("trace.json.gz"));
    }
}

/* Events that cannot be written do not change what is learnt: training goes on, or does not begin. */
static void test_events(void **state)
{
    (void)state;
    uint64_t expected = 0;
    bool failed = true;
    for (int n = 0; n == 0 || failed; n++) {
        faults f = {.error = ENOSPC};
        bw_context *ctx = faults_context(NULL, &f, 1);
        bw_model *model = bw_model_parse(ctx, "dense(1)");
        bw_fit_options fit = BW_FIT_OPTIONS_DEFAULT;
        fit.epochs = 2;
        fit.batch = 4;
        fit.tensorboard = bw_tensorboard_new(ctx, inside("board"), NULL);
        assert_non_null(fit.tensorboard);
        f.fail_at = n > 0 ? f.calls + n : 0;
        bw_status status = bw_fit(model, some_samples(ctx), &fit, NULL);
        failed = f.failed;
        f.fail_at = 0;
        if (n == 0) {
            expected = bw_model_hash(model);
        }
        if (status == BW_OK ? bw_model_hash(model) != expected : !failed || !bw_message(ctx)[0]) {
            fail_msg("call %d of writing events fails: %s: %s", n, bw_status_name(status), bw_message(ctx));
        }
        bw_close(ctx);
        assert_int_equal(f.blocks, 0);
        (void)remove_folder(NULL);
        (void)make_folder(NULL);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_readers),
                                       cmocka_unit_test_setup_teardown(test_trace, make_folder, remove_folder),
                                       cmocka_unit_test_setup_teardown(test_events, make_folder, remove_folder)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
