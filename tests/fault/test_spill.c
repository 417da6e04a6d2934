/*
 * The file of spilled values: it has no name once it is there, a full disk is RESOURCE_EXHAUSTED and leaves the model as it was,
 * and so do reads that fail; short transfers and interruptions do not matter; a folder in memory is refused.
 */
#include "support/check.h"

#include "base/internal.h"
#include "train/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

static const char model_text[] = "conv2d(8,3,padding=same) batchnorm relu conv2d(8,3,padding=same) batchnorm relu conv2d(8,3) "
                                 "batchnorm relu flatten dense(10,softmax)";

enum { SAMPLES = 64, SIDE = 12, PIXELS = SIDE * SIDE * 3 };

/* The system's table, with what is to go wrong with the spilled file. */
typedef struct disk {
    int file; /* -1: not made yet */
    char path[4096];
    int writes, reads, fail_write, fail_read; /* counted from 1; 0: never */
    bool piecewise;
} disk;

static int disk_open(void *user, const char *path, int flags, int mode)
{
    disk *d = user;
    int file = bwi_system_io.open(NULL, path, flags, mode);
    if (strstr(path, ".spill") && file >= 0) {
        d->file = file;
        snprintf(d->path, sizeof d->path, "%s", path);
    }
    return file;
}

static int64_t disk_write(void *user, int file, const void *bytes, size_t count, int64_t offset)
{
    disk *d = user;
    if (file == d->file) {
        d->writes++;
        if (d->writes == d->fail_write) {
            return -ENOSPC;
        }
        if (d->piecewise) {
            return d->writes % 3 == 0 ? -EINTR : bwi_system_io.write(NULL, file, bytes, count > 1000 ? 1000 : count, offset);
        }
    }
    return bwi_system_io.write(NULL, file, bytes, count, offset);
}

static int64_t disk_read(void *user, int file, void *bytes, size_t count, int64_t offset)
{
    disk *d = user;
    if (file == d->file) {
        d->reads++;
        if (d->reads == d->fail_read) {
            return -EIO;
        }
        if (d->piecewise) {
            return d->reads % 3 == 0 ? -EINTR : bwi_system_io.read(NULL, file, bytes, count > 1000 ? 1000 : count, offset);
        }
    }
    return bwi_system_io.read(NULL, file, bytes, count, offset);
}

static float pixels[SAMPLES * PIXELS];
static int32_t labels[SAMPLES];

typedef struct result {
    bw_status status;
    uint64_t before, after;
    bw_run_facts facts;
    char message[512];
} result;

static result train(disk *d, size_t memory, const char *folder)
{
    bw_io io = bwi_system_io;
    io.user = d;
    io.open = disk_open;
    io.read = disk_read;
    io.write = disk_write;
    d->file = -1;
    bw_context_options options = BW_CONTEXT_OPTIONS_DEFAULT;
    options.io = &io;
    options.workers = 1;
    bw_context *ctx = bw_open(&options);
    for (int i = 0; i < SAMPLES * PIXELS; i++) {
        pixels[i] = (float)((i * 7919 + i / 64 * 31) % 1000) / 1000;
    }
    for (int i = 0; i < SAMPLES; i++) {
        labels[i] = i % 10;
    }
    bw_array x = {.data = pixels, .dtype = BW_F32, .ndim = 4, .shape = {SAMPLES, SIDE, SIDE, 3}};
    bw_array y = {.data = labels, .dtype = BW_I32, .ndim = 1, .shape = {SAMPLES}};
    bw_dataset *data = bw_from_arrays(ctx, &x, &y, NULL);
    bw_model *model = bw_model_parse(ctx, model_text);
    check_ok(ctx, bw_build(model, 3, (const int64_t[]){SIDE, SIDE, 3}, 1));
    result r = {.before = bw_model_hash(model)};
    bw_fit_options fit = BW_FIT_OPTIONS_DEFAULT;
    fit.batch = SAMPLES;
    fit.tile = 4;
    fit.lanes = 2;
    fit.memory = memory;
    fit.spill = folder;
    bw_history *history = NULL;
    r.status = bw_fit(model, data, &fit, &history);
    snprintf(r.message, sizeof r.message, "%s", bw_message(ctx));
    r.facts = bw_history_facts(history);
    r.after = bw_model_hash(model);
    bw_close(ctx);
    return r;
}

/* A folder that is not in memory, and a budget for which values are spilled to it; 0: there is none. */
static size_t spilling_budget(const char *folder)
{
    disk d = {0};
    result roomy = train(&d, 0, folder);
    for (size_t budget = roomy.facts.planned_bytes; budget > roomy.facts.planned_bytes / 8; budget -= budget / 8) {
        result r = train(&d, budget, folder);
        if (r.status == BW_OK && r.facts.spilled_bytes > 0) {
            assert_true(r.after == roomy.after);
            return budget;
        }
    }
    return 0;
}

static const char *folder_on_disk(void)
{
    static const char *const folders[] = {"/var/tmp", "/tmp", "."};
    for (size_t k = 0; k < BWI_COUNT(folders); k++) {
        bwi_disk facts = bwi_disk_of(folders[k]);
        if (!facts.error && !facts.in_memory && access(folders[k], W_OK) == 0) {
            return folders[k];
        }
    }
    return NULL;
}

static void test_spilling(void **state)
{
    (void)state;
    const char *folder = folder_on_disk();
    if (!folder) {
        print_message("every folder here is in memory\n");
        skip();
    }
    size_t budget = spilling_budget(folder);
    assert_true(budget > 0);
    disk calm = {0}, piecewise = {.piecewise = true};
    result expected = train(&calm, budget, folder), pieces = train(&piecewise, budget, folder);
    assert_int_equal(expected.status, BW_OK);
    assert_true(calm.writes > 0 && calm.reads >= calm.writes);
    assert_int_equal(access(calm.path, F_OK), -1);
    assert_int_equal(pieces.status, BW_OK);
    assert_true(pieces.after == expected.after && piecewise.writes > calm.writes);
    for (int n = 1; n <= calm.writes; n += 1 + calm.writes / 5) {
        disk full = {.fail_write = n};
        result r = train(&full, budget, folder);
        /* One write fails, and looking for the sample at fault finds none: the disk's own words are left. */
        assert_int_equal(r.status, BW_RESOURCE_EXHAUSTED);
        assert_non_null(strstr(r.message, "spill: cannot write in "));
        assert_true(r.after == r.before);
        assert_int_equal(access(full.path, F_OK), -1);
    }
    for (int n = 1; n <= calm.reads; n += 1 + calm.reads / 5) {
        disk broken = {.fail_read = n};
        result r = train(&broken, budget, folder);
        assert_int_not_equal(r.status, BW_OK);
        assert_non_null(strstr(r.message, "spill: cannot read in "));
        assert_true(r.after == r.before);
    }
}

static void test_folders_that_do_not_do(void **state)
{
    (void)state;
    disk d = {0};
    result missing = train(&d, 0, "/does/not/exist");
    assert_int_not_equal(missing.status, BW_OK);
    assert_non_null(strstr(missing.message, "spill: /does/not/exist: "));
    bwi_disk shm = bwi_disk_of("/dev/shm");
    if (shm.error || !shm.in_memory) {
        print_message("/dev/shm is no file system in memory here\n");
        skip();
    }
    result memory = train(&d, 0, "/dev/shm");
    assert_int_equal(memory.status, BW_INVALID_ARGUMENT);
    assert_string_equal(memory.message, "spill: /dev/shm is a file system in memory");
    assert_true(memory.after == memory.before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_spilling), cmocka_unit_test(test_folders_that_do_not_do)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
