/*
 * Functional models recorded from the real Keras (functional.py): the file that Keras saved, trained here on the same data, must
 * give the same history and the same variables, moving statistics among them, with 1 worker and 3 and with several tiles.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "case_file.h"

#include <dirent.h>
#include <math.h>

enum { MOST = 128 };

/* The fields of the case whose names begin with `prefix`; `values` holds them as floats. */
static bw_dataset *fields_of(bw_context *ctx, const case_file *file, const char *prefix, float *values[MOST])
{
    bw_field fields[MOST];
    int count = 0;
    size_t length = strlen(prefix);
    for (int i = 0; i < file->count; i++) {
        const case_array *a = &file->arrays[i];
        const char *name = a->name + length;
        if (strncmp(a->name, prefix, length) != 0 || !strchr("xyw", name[0]) || (name[1] && name[1] != '_')) {
            continue;
        }
        values[count] = malloc((size_t)a->count * sizeof(float));
        bw_field *f = &fields[count];
        *f = (bw_field){.name = name, .array = {.data = values[count], .dtype = BW_F32, .ndim = a->ndim}};
        memcpy(f->array.shape, a->shape, sizeof f->array.shape);
        for (int64_t k = 0; k < a->count; k++) {
            values[count][k] = (float)a->values[k];
        }
        count++;
    }
    return count ? bw_from_fields(ctx, fields, count) : NULL;
}

static const char *compare_history(const bw_history *history, const case_file *file, char *why, size_t size)
{
    for (int i = 0; i < file->count; i++) {
        const case_array *a = &file->arrays[i];
        if (strncmp(a->name, "history_", 8) != 0) {
            continue;
        }
        if (bw_history_epochs(history) != (int)a->count) {
            snprintf(why, size, "expected %d epochs, got %d", (int)a->count, bw_history_epochs(history));
            return why;
        }
        for (int e = 0; e < (int)a->count; e++) {
            double got = bw_history_value(history, a->name + 8, e), expected = a->values[e];
            if (!(fabs(got - expected) <= 5e-4 * fmax(fabs(expected), 1e-2))) {
                snprintf(why, size, "%s of epoch %d: expected %.6f, got %.6f", a->name + 8, e, expected, got);
                return why;
            }
        }
    }
    return NULL;
}

/* Each within 1e-3 of its largest value. */
static const char *compare_variables(const bw_model *model, const case_file *file, char *why, size_t size)
{
    char name[128];
    for (int v = 0; v < bw_variable_count(model); v++) {
        char key[32];
        int k = 0;
        do {
            snprintf(key, sizeof key, "variable_%d", k++);
        } while (case_text(file, key, name, sizeof name)[0] && strcmp(name, bw_variable_name(model, v)) != 0);
        snprintf(key, sizeof key, "final_%d", k - 1);
        const case_array *a = case_find(file, key);
        assert_non_null(a);
        float *values = malloc((size_t)a->count * sizeof *values);
        assert_int_equal(bw_variable_get(model, v, values, (size_t)a->count), BW_OK);
        double off = 0, most = 1e-3;
        for (int64_t i = 0; i < a->count; i++) {
            off = fmax(off, fabs((double)values[i] - a->values[i]));
            most = fmax(most, fabs(a->values[i]));
        }
        free(values);
        if (!(off <= 1e-3 * most)) {
            snprintf(why, size, "%s differs by %.2e of %.2e", name, off, most);
            return why;
        }
    }
    return NULL;
}

static const char *train(const case_file *file, const char *path, int workers, int64_t tile, char *why, size_t size)
{
    char number[32], stopping[256], plateau[256];
    float *values[MOST] = {NULL}, *held[MOST] = {NULL};
    bw_context_options with = BW_CONTEXT_OPTIONS_DEFAULT;
    with.workers = workers;
    bw_context *ctx = bw_open(&with);
    bw_dataset *data = fields_of(ctx, file, "", values);
    bw_model *model = bw_load(ctx, path);
    bw_fit_options options = BW_FIT_OPTIONS_DEFAULT;
    options.tile = tile;
    options.validation = fields_of(ctx, file, "val_", held);
    options.batch = atoll(case_text(file, "batch", number, sizeof number));
    options.epochs = atoi(case_text(file, "epochs", number, sizeof number));
    options.early_stopping = case_text(file, "early_stopping", stopping, sizeof stopping)[0] ? stopping : NULL;
    options.reduce_lr_on_plateau = case_text(file, "reduce_lr_on_plateau", plateau, sizeof plateau)[0] ? plateau : NULL;
    bw_history *history = NULL;
    bw_status status = bw_fit(model, data, &options, &history);
    const char *wrong = status == BW_OK ? compare_history(history, file, why, size) : why;
    if (status != BW_OK) {
        snprintf(why, size, "%s: %s", bw_status_name(status), bw_message(ctx));
    }
    wrong = wrong ? wrong : compare_variables(model, file, why, size);
    bw_close(ctx);
    for (int i = 0; i < MOST; i++) {
        free(values[i]);
        free(held[i]);
    }
    return wrong;
}

/* BW_CASE=prefix in the environment: the cases whose names begin with it. */
static void test_all(void **state)
{
    (void)state;
    static const struct {
        int workers;
        int64_t tile;
    } runs[] = {{1, 0}, {3, 2}};
    const char *only = getenv("BW_CASE") ? getenv("BW_CASE") : "";
    int passed = 0, failed = 0;
    DIR *folder = opendir(BW_TEST_KERAS "/functional");
    assert_non_null(folder);
    for (struct dirent *entry; (entry = readdir(folder));) {
        char path[1024], why[512];
        size_t length = strlen(entry->d_name);
        if (length < 5 || strcmp(entry->d_name + length - 4, ".npz") != 0 || strncmp(entry->d_name, only, strlen(only)) != 0) {
            continue;
        }
        static case_file file;
        bw_context *ctx = bw_open(NULL);
        snprintf(path, sizeof path, BW_TEST_KERAS "/functional/%s", entry->d_name);
        assert_true(case_read(ctx, &file, path));
        bw_close(ctx);
        snprintf(path, sizeof path, BW_TEST_KERAS "/functional/%.*s.keras", (int)length - 4, entry->d_name);
        for (int k = 0; k < 2; k++) {
            const char *wrong = train(&file, path, runs[k].workers, runs[k].tile, why, sizeof why);
            passed += !wrong;
            failed += !!wrong;
            if (wrong) {
                print_error("%s, %d workers: %s\n", entry->d_name, runs[k].workers, wrong);
            }
        }
        case_free(&file);
    }
    closedir(folder);
    print_message("%d runs agree with Keras, %d do not\n", passed, failed);
    assert_true(passed > 0);
    assert_int_equal(failed, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_all)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
