/*
 * Damaged files, and allocations and files that fail: a status and a message, nothing left behind, the model as before. BW_EVERY=1
 * in the environment: every length and every byte, which takes minutes, not a sample of them.
 */
#include "support/check.h"
#include "support/folder.h"

#include "file/internal.h"
#include "unit/base/faults.h"

#include <stdlib.h>
#include <unistd.h>

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
    bool loaded = model;
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

/* From one damaged byte or length to the next. */
static size_t step(size_t usual)
{
    return getenv("BW_EVERY") ? 1 : usual;
}

/* Without syncing: there are thousands. */
static void put(const char *path, const void *data, size_t size)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
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
        for (size_t length = 0; length < size; length += step(length < 400 ? 7 : 331)) {
            put(inside(name), data, length);
            if (try_load(ctx, inside(name))) {
                fail_msg("%s was loaded from its first %zu bytes", names[n], length);
            }
        }
        assert_int_equal(unlink(inside(name)), 0);
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
        for (size_t i = 0; i < size; i += step(n ? 97 : 53), tried++) {
            data[i] ^= (unsigned char)(1 << i % 8);
            put(inside(name), data, size);
            loaded += try_load(ctx, inside(name));
            data[i] ^= (unsigned char)(1 << i % 8);
        }
        assert_int_equal(unlink(inside(name)), 0);
        assert_int_equal(bwi_allocated_bytes(ctx), before);
        if (!n) {
            assert_true(loaded < tried / 20);
        }
        free(data);
        bw_close(ctx);
    }
}

/* ---- Weights into a model that is in use ---- */

static const char *const weight_files[] = {"m.weights.h5", "m.safetensors", "m.keras"};

/* Tries the damaged bytes; after a failure the weights are as before. */
static bw_status try_weights(bw_model *model, const char *name, const unsigned char *data, size_t size)
{
    bw_context *ctx = model->ctx;
    uint64_t before = bw_model_hash(model);
    put(inside(name), data, size);
    bw_status status = bw_load_weights(model, inside(name));
    if (status != BW_OK) {
        assert_int_not_equal(status, BW_INTERNAL);
        assert_non_null(strstr(bw_message(ctx), name));
        if (bw_model_hash(model) != before) {
            fail_msg("%s: the weights have changed: %s", name, bw_message(ctx));
        }
    }
    return status;
}

static void test_weights_cut_short(void **state)
{
    (void)state;
    bw_context *ctx = bw_open(NULL);
    bw_model *model = bw_load(ctx, fixture("untrained.keras"));
    for (size_t k = 0; k < BWI_COUNT(weight_files); k++) {
        unsigned char *data;
        size_t size, before;
        check_ok(ctx, bw_save(model, inside(weight_files[k])));
        read_all(ctx, inside(weight_files[k]), &data, &size);
        before = bwi_allocated_bytes(ctx);
        for (size_t length = 0; length < size; length += step(length < 400 ? 7 : 331)) {
            if (try_weights(model, weight_files[k], data, length) == BW_OK) {
                fail_msg("%s was loaded from its first %zu bytes", weight_files[k], length);
            }
        }
        assert_int_equal(bwi_allocated_bytes(ctx), before);
        free(data);
        assert_int_equal(unlink(inside(weight_files[k])), 0);
    }
    bw_close(ctx);
}

/* Numbers that were changed are numbers still; everything else is found. */
static void test_weights_changed(void **state)
{
    (void)state;
    bw_context *ctx = bw_open(NULL);
    bw_model *model = bw_load(ctx, fixture("untrained.keras"));
    for (size_t k = 0; k < BWI_COUNT(weight_files); k++) {
        unsigned char *data;
        size_t size;
        int refused = 0;
        check_ok(ctx, bw_save(model, inside(weight_files[k])));
        read_all(ctx, inside(weight_files[k]), &data, &size);
        for (size_t i = 0; i < size; i += step(k == 1 ? 1 : 41)) {
            data[i] ^= (unsigned char)(1 << i % 8);
            refused += try_weights(model, weight_files[k], data, size) != BW_OK;
            data[i] ^= (unsigned char)(1 << i % 8);
        }
        assert_true(refused > 0);
        free(data);
        assert_int_equal(unlink(inside(weight_files[k])), 0);
    }
    bw_close(ctx);
}

/* A model that was not built is not built after weights that failed to come; what it then begins with is its own. */
static void test_weights_of_unbuilt(void **state)
{
    (void)state;
    static const char expression[] = "input(4) dense(5,relu) dense(2)";
    bw_context *ctx = bw_open(NULL);
    bw_model *other = bw_model_parse(ctx, "input(4) dense(5,relu) dense(3)"), *built = bw_model_parse(ctx, expression);
    check_ok(ctx, bw_build(other, 1, (int64_t[]){4}, 7));
    check_ok(ctx, bw_build(built, 1, (int64_t[]){4}, 7));
    for (size_t k = 0; k < BWI_COUNT(weight_files); k++) {
        bw_model *model = bw_model_parse(ctx, expression), *same = bw_model_parse(ctx, expression);
        check_ok(ctx, bw_save(other, inside(weight_files[k])));
        check_fails(ctx, bw_load_weights(model, inside(weight_files[k])), BW_DATA_LOSS, weight_files[k]);
        assert_int_equal(bw_variable_count(model), 0);
        check_ok(ctx, bw_build(model, 1, (int64_t[]){4}, 7));
        assert_true(bw_model_hash(model) == bw_model_hash(built));
        check_ok(ctx, bw_save(built, inside(weight_files[k])));
        check_ok(ctx, bw_load_weights(same, inside(weight_files[k])));
        assert_true(bw_model_hash(same) == bw_model_hash(built));
        assert_int_equal(unlink(inside(weight_files[k])), 0);
        bw_model_free(model);
        bw_model_free(same);
    }
    bw_close(ctx);
}

/* ---- Failing allocations and files ---- */

/* The first three can give weights. */
static const char *const kinds[] = {"m.keras", "m.weights.h5", "m.safetensors", "m.json", "m.onnx", "m.c"};

/* Of the first variable, which is not packed: a hash would allocate. */
static float first_value(const bw_model *model)
{
    return model ? *bwi_variable_open(model->graph.variables[1]) : 0;
}

/* Loads, saves and takes weights; BW_OK or the first status that is not. */
static bw_status work(bw_context *ctx, const char *name)
{
    bw_model *model = bw_load(ctx, fixture(name));
    bw_status status = model ? BW_OK : bwi_pending(ctx);
    for (size_t k = 0; k < BWI_COUNT(kinds) && status == BW_OK; k++) {
        status = bw_save(model, inside(kinds[k]));
        if (status == BW_OK && k < 3) {
            /* Weights that are not the file's: they come back, or stay as they are. */
            float *value = bwi_variable_open(model->graph.variables[1]), right = *value;
            *value = 77;
            status = bw_load_weights(model, inside(kinds[k]));
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
    for (size_t k = 0; k < BWI_COUNT(kinds); k++) {
        unlink(inside(kinds[k]));
    }
    /* Nothing else: no temporary file stays. */
    assert_int_equal(remove_empty_folder(NULL), 0);
    assert_int_equal(make_folder(NULL), 0);
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

/* ---- A file that is replaced ---- */

static bool holds(const char *path, const unsigned char *data, size_t size)
{
    bw_context *ctx = bw_open(NULL);
    bwi_bytes bytes;
    check_ok(ctx, bwi_file_map(ctx, &bytes, path));
    bool same = bytes.size == size && memcmp(bytes.data, data, size) == 0;
    bwi_file_unmap(ctx, &bytes);
    bw_close(ctx);
    return same;
}

/* Every open, write, sync and rename fails once, as on a full disk: the old file, whole, until the new one is. */
static void test_old_file_stays(void **state)
{
    (void)state;
    static const char old[] = "what was there before";
    for (size_t k = 0; k < BWI_COUNT(kinds); k++) {
        for (int fail_at = 1;; fail_at++) {
            faults f = {0};
            bw_io io = faults_io(&f);
            bw_context_options options = BW_CONTEXT_OPTIONS_DEFAULT;
            options.io = &io;
            bw_context *ctx = bw_open(&options);
            bw_model *model = bw_load(ctx, fixture("untrained.keras"));
            put(inside(kinds[k]), old, sizeof old);
            f.calls = 0;
            f.fail_at = fail_at;
            f.error = ENOSPC;
            bw_status status = bw_save(model, inside(kinds[k]));
            bool failed = f.failed, kept = holds(inside(kinds[k]), (const unsigned char *)old, sizeof old);
            if (!failed) {
                assert_int_equal(status, BW_OK);
            }
            if (kept && status == BW_OK) {
                fail_msg("%s: call %d failed unnoticed", kinds[k], fail_at);
            }
            (void)bw_message(ctx); /* the failure was meant */
            if (!kept) {           /* the new one, then, and not a part of it */
                f.fail_at = 0;
                unsigned char *data;
                size_t size;
                read_all(ctx, inside(kinds[k]), &data, &size);
                check_ok(ctx, bw_save(model, inside(kinds[k])));
                assert_true(holds(inside(kinds[k]), data, size));
                free(data);
            }
            bw_close(ctx);
            remove_all();
            if (!failed) {
                break;
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cut_short),          cmocka_unit_test(test_changed),
        cmocka_unit_test(test_weights_cut_short),  cmocka_unit_test(test_weights_changed),
        cmocka_unit_test(test_weights_of_unbuilt), cmocka_unit_test(test_old_file_stays),
        cmocka_unit_test(test_allocations),        cmocka_unit_test(test_files),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_empty_folder);
}
