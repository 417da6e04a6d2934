/* Damaged files, and allocations and files that fail: a status and a message, nothing left behind, the model as before. */
#include "support/check.h"

#include "file/file.h"
#include "unit/base/faults.h"

#include <stdlib.h>
#include <unistd.h>

/* The library below loses memory of its own when it gives up on some damaged files. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
    return "leak:libhdf5";
}

static char folder[] = "/tmp/bw-damage-XXXXXX";

static int open_folder(void **state)
{
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

static int close_folder(void **state)
{
    (void)state;
    return rmdir(folder);
}

static const char *at(const char *name)
{
    static char path[2][128];
    static int turn;
    turn = !turn;
    snprintf(path[turn], sizeof path[turn], "%s/%s", folder, name);
    return path[turn];
}

static const char *fixture(const char *name)
{
    static char path[4096];
    snprintf(path, sizeof path, "%s/keras/%s", BW_TEST_DATA, name);
    return path;
}

/* Loads and uses what can be loaded; true if it could. */
static bool try_load(bw_context *ctx, const char *path)
{
    bw_model *model = bw_load(ctx, path);
    bool loaded = model != NULL;
    if (!loaded) {
        bw_status status = bwi_pending(ctx);
        assert_int_not_equal(status, BW_OK);
        assert_int_not_equal(status, BW_INTERNAL);
        assert_true(bw_message(ctx)[0] != 0);
    }
    bw_model_free(model);
    return loaded;
}

static void read_all(bw_context *ctx, const char *path, unsigned char **data, size_t *size)
{
    bwi_bytes bytes;
    check_ok(ctx, bwi_file_map(ctx, &bytes, path));
    *data = malloc(bytes.size);
    memcpy(*data, bytes.data, bytes.size);
    *size = bytes.size;
    bwi_file_unmap(ctx, &bytes);
}

/* A prefix of any length is refused. */
static void test_cut_short(void **state)
{
    (void)state;
    static const char *const names[] = {"untrained.keras", "text.h5"};
    for (size_t n = 0; n < BWI_COUNT(names); n++) {
        bw_context *ctx = bw_open(NULL);
        unsigned char *data;
        size_t size, before = bwi_allocated_bytes(ctx);
        const char *name = strstr(names[n], ".h5") ? "m.h5" : "m.keras";
        read_all(ctx, fixture(names[n]), &data, &size);
        for (size_t length = 0; length < size; length += length < 400 ? 7 : 331) {
            check_ok(ctx, bwi_file_write(ctx, at(name), data, length));
            if (try_load(ctx, at(name))) {
                fail_msg("%s was loaded from its first %zu bytes", names[n], length);
            }
        }
        assert_int_equal(unlink(at(name)), 0);
        assert_int_equal(bwi_allocated_bytes(ctx), before);
        free(data);
        bw_close(ctx);
    }
}

/* Any byte changed: refused, or loaded where nothing was said by it. The zip's checksums cover its members, those of an .h5
 * file nothing: there the library below must stand it. */
static void test_changed(void **state)
{
    (void)state;
    static const char *const names[] = {"untrained.keras", "text.h5"};
    for (size_t n = 0; n < BWI_COUNT(names); n++) {
        bw_context *ctx = bw_open(NULL);
        unsigned char *data;
        size_t size, before = bwi_allocated_bytes(ctx);
        const char *name = n ? "m.h5" : "m.keras";
        int loaded = 0, tried = 0;
        read_all(ctx, fixture(names[n]), &data, &size);
        for (size_t i = 0; i < size; i += n ? 97 : 53, tried++) {
            data[i] ^= (unsigned char)(1 << i % 8);
            check_ok(ctx, bwi_file_write(ctx, at(name), data, size));
            loaded += try_load(ctx, at(name));
            data[i] ^= (unsigned char)(1 << i % 8);
        }
        assert_int_equal(unlink(at(name)), 0);
        assert_int_equal(bwi_allocated_bytes(ctx), before);
        if (!n) {
            assert_true(loaded < tried / 20);
        }
        free(data);
        bw_close(ctx);
    }
}

/* ---- Failing allocations and files ---- */

/* Of the first variable, which is not packed: a hash would allocate. */
static float first_value(const bw_model *model)
{
    return model ? model->graph.variables[1]->data[0] : 0;
}

/* Loads, saves and takes weights; BW_OK or the first status that is not. */
static bw_status work(bw_context *ctx, const char *name)
{
    static const char *const kinds[] = {"m.keras", "m.weights.h5", "m.safetensors", "m.json"};
    bw_model *model = bw_load(ctx, fixture(name));
    bw_status status = model ? BW_OK : bwi_pending(ctx);
    for (size_t k = 0; k < BWI_COUNT(kinds) && status == BW_OK; k++) {
        status = bw_save(model, at(kinds[k]));
        if (status == BW_OK && k < 3) {
            /* Weights that are not the file's: they come back, or stay as they are. */
            float *value = &model->graph.variables[1]->data[0], right = *value;
            *value = 77;
            status = bw_load_weights(model, at(kinds[k]));
            if (first_value(model) != (status == BW_OK ? right : 77)) {
                fail_msg("%s: the weights have changed", kinds[k]);
            }
            *value = right;
        }
    }
    bw_model_free(model);
    return status;
}

static void remove_all(void)
{
    static const char *const kinds[] = {"m.keras", "m.weights.h5", "m.safetensors", "m.json"};
    for (size_t k = 0; k < BWI_COUNT(kinds); k++) {
        unlink(at(kinds[k]));
    }
    /* Nothing else: no temporary file stays. */
    assert_int_equal(rmdir(folder), 0);
    memcpy(folder + strlen(folder) - 6, "XXXXXX", 6);
    assert_non_null(mkdtemp(folder));
}

static void fail_each(const char *name, bool files, int step)
{
    int failures = 0;
    for (int fail_at = 1;; fail_at += step) {
        faults f = {0};
        bw_allocator allocator = faults_allocator(&f);
        bw_io io = faults_io(&f);
        bw_context_options options = BW_CONTEXT_OPTIONS_DEFAULT;
        if (files) {
            options.io = &io;
        } else {
            options.allocator = &allocator;
        }
        bw_context *ctx = bw_open(&options);
        size_t before = bwi_allocated_bytes(ctx);
        f.calls = 0;
        f.fail_at = fail_at;
        f.error = EIO;
        bw_status status = work(ctx, name);
        if (f.failed && status == BW_OK && !files) {
            fail_msg("%s: allocation %d failed unnoticed", name, fail_at);
        }
        assert_true(f.failed || status == BW_OK);
        assert_int_equal(bwi_allocated_bytes(ctx), before);
        bool failed = f.failed;
        bw_close(ctx);
        assert_int_equal(f.blocks, 0);
        remove_all();
        failures += failed;
        if (!failed) {
            break;
        }
    }
    assert_true(failures > 10);
}

static void test_allocations(void **state)
{
    (void)state;
    fail_each("untrained.keras", false, 1);
    fail_each("shared.keras", false, 7);
    fail_each("text.h5", false, 5);
}

static void test_files(void **state)
{
    (void)state;
    fail_each("untrained.keras", true, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cut_short),
        cmocka_unit_test(test_changed),
        cmocka_unit_test(test_allocations),
        cmocka_unit_test(test_files),
    };
    return cmocka_run_group_tests(tests, open_folder, close_folder);
}
