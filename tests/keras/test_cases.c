/*
 * Training cases recorded from the real Keras (record.py): the same model, samples and optimizer must give the same
 * weights after training: the error of all variables together at most 1 percent of the norm of the update, of each
 * variable at most 2 percent of its own, the loss of each epoch within 0.1 percent, metrics within 1e-4 or half a row.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "case_file.h"

#include <dirent.h>
#include <math.h>

static const double UPDATE = 1e-2, VARIABLE = 2e-2, LOSS = 1e-3;

static bw_array view(const case_array *a, float *values)
{
    bw_array v = {.data = values, .dtype = BW_F32, .ndim = a->ndim};
    memcpy(v.shape, a->shape, sizeof v.shape);
    for (int64_t i = 0; i < a->count; i++) {
        values[i] = (float)a->values[i];
    }
    return v;
}

typedef struct comparison {
    double off, moved, worst;
    char worst_name[96];
} comparison;

static void compare_variable(const bw_model *model, const case_file *file, int v, double moved, comparison *c)
{
    char name[32];
    snprintf(name, sizeof name, "initial_%d", v);
    const case_array *before = case_find(file, name);
    snprintf(name, sizeof name, "final_%d", v);
    const case_array *after = case_find(file, name);
    float *values = malloc((size_t)after->count * sizeof *values);
    assert_int_equal(bw_variable_get(model, v, values, (size_t)after->count), BW_OK);
    double off = 0, own = 0;
    for (int64_t i = 0; i < after->count; i++) {
        off += pow((double)values[i] - after->values[i], 2);
        own += pow(after->values[i] - before->values[i], 2);
    }
    free(values);
    double alone = sqrt(off) / fmax(fmax(sqrt(own), 1e-4 * moved), 1e-6);
    if (!(alone <= c->worst)) {
        c->worst = alone;
        snprintf(c->worst_name, sizeof c->worst_name, "%s", bw_variable_name(model, v));
    }
    c->off += off;
}

static double update_norm(const case_file *file, int variables)
{
    double sum = 0;
    for (int v = 0; v < variables; v++) {
        char name[32];
        snprintf(name, sizeof name, "initial_%d", v);
        const case_array *before = case_find(file, name);
        snprintf(name, sizeof name, "final_%d", v);
        const case_array *after = case_find(file, name);
        assert_non_null(before);
        for (int64_t i = 0; i < after->count; i++) {
            sum += pow(after->values[i] - before->values[i], 2);
        }
    }
    return sqrt(sum);
}

static void load_initial(bw_model *model, const case_file *file)
{
    for (int v = 0; v < bw_variable_count(model); v++) {
        char name[32];
        snprintf(name, sizeof name, "initial_%d", v);
        const case_array *a = case_find(file, name);
        assert_non_null(a);
        float *values = malloc((size_t)a->count * sizeof *values);
        view(a, values);
        assert_int_equal(bw_variable_set(model, v, values, (size_t)a->count), BW_OK);
        free(values);
    }
}

/* NULL if the history agrees, else what does not. */
static const char *compare_history(const bw_history *history, const case_file *file, char *why, size_t size)
{
    for (int i = 0; i < file->count; i++) {
        const case_array *a = &file->arrays[i];
        bool loss = strcmp(a->name, "loss") == 0, metric = strncmp(a->name, "metric_", 7) == 0;
        int64_t width = a->ndim > 1 ? a->shape[1] : 1; /* a metric with several numbers has a column for each */
        for (int64_t k = 0; (loss || metric) && k < a->count; k++) {
            char column[96];
            int64_t e = k / width;
            snprintf(column, sizeof column, "%s", loss ? "loss" : a->name + 7);
            if (a->ndim > 1) {
                snprintf(column, sizeof column, "%s.%d", a->name + 7, (int)(k % width));
            }
            double got = bw_history_value(history, column, (int)e), expected = a->values[k];
            double bound = loss ? LOSS * fmax(fabs(expected), 1e-3) : fmax(1e-4, 1e-3 * fabs(expected));
            if (!(fabs(got - expected) <= bound)) {
                snprintf(why, size, "%s of epoch %d: expected %.6f, got %.6f", column, (int)e, expected, got);
                return why;
            }
        }
    }
    return NULL;
}

/* metrics, then weighted_metrics as name(options,weighted=true). */
static void read_metrics(const case_file *file, char *all, size_t size)
{
    char weighted[256];
    case_text(file, "metrics", all, size);
    case_text(file, "weighted_metrics", weighted, sizeof weighted);
    int depth = 0;
    size_t n = strlen(all);
    for (const char *at = weighted, *begin = at; *begin; at++) {
        depth += (*at == '(') - (*at == ')');
        if (*at != '\0' && (*at != ',' || depth > 0)) {
            continue;
        }
        bool options = at[-1] == ')';
        n += (size_t)snprintf(all + n, size - n, "%s%.*s%sweighted=true)", n ? "," : "", (int)(at - begin) - options, begin,
                              options ? "," : "(");
        assert_true(n < size);
        begin = *at ? at + 1 : at;
    }
}

enum { CLASSES = 16 };

/* 0:0.5,2:3: what is not listed weighs 1. */
static int read_class_weight(const case_file *file, float *weights)
{
    char text[256];
    int count = 0;
    case_text(file, "class_weight", text, sizeof text);
    for (char *at = text; *at;) {
        long class = strtol(at, &at, 10);
        assert_true(*at == ':' && class >= 0 && class < CLASSES);
        for (; count <= class; count++) {
            weights[count] = 1;
        }
        weights[class] = strtof(at + 1, &at);
        at += *at == ',';
    }
    return count;
}

static const char *train(bw_context *ctx, const case_file *file, char *why, size_t size)
{
    char a[1024], b[256], c[256], d[512], number[32];
    float class_weight[CLASSES];
    const case_array *x = case_find(file, "x"), *y = case_find(file, "y"), *w = case_find(file, "w");
    float *xs = malloc((size_t)x->count * 4), *ys = malloc((size_t)y->count * 4), *ws = w ? malloc((size_t)w->count * 4) : NULL;
    bw_array xv = view(x, xs), yv = view(y, ys), wv = w ? view(w, ws) : (bw_array){0};
    bw_dataset *data = bw_from_arrays(ctx, &xv, &yv, w ? &wv : NULL);
    bw_model *model = bw_model_parse(ctx, case_text(file, "expression", a, sizeof a));
    read_metrics(file, d, sizeof d);
    bw_status status = bw_compile(model, case_text(file, "optimizer", b, sizeof b), case_text(file, "loss", c, sizeof c), d);
    if (status == BW_OK) {
        status = bw_build(model, x->ndim - 1, x->shape + 1, 1);
    }
    bw_fit_options options = BW_FIT_OPTIONS_DEFAULT;
    options.batch = atoll(case_text(file, "batch", number, sizeof number));
    options.epochs = atoi(case_text(file, "epochs", number, sizeof number));
    options.class_weight = class_weight;
    options.class_count = read_class_weight(file, class_weight);
    bw_history *history = NULL;
    if (status == BW_OK) {
        load_initial(model, file);
        status = bw_fit(model, data, &options, &history);
    }
    const char *wrong = NULL;
    if (status != BW_OK) {
        snprintf(why, size, "%s: %s", bw_status_name(status), bw_message(ctx));
        wrong = why;
    } else {
        comparison cmp = {.moved = update_norm(file, bw_variable_count(model))};
        for (int v = 0; v < bw_variable_count(model); v++) {
            compare_variable(model, file, v, cmp.moved, &cmp);
        }
        double off = sqrt(cmp.off) / fmax(cmp.moved, 1e-12);
        wrong = compare_history(history, file, why, size);
        if (!(off < UPDATE) || !(cmp.worst < VARIABLE)) {
            snprintf(why, size, "update error %.2e, of %s %.2e", off, cmp.worst_name, cmp.worst);
            wrong = why;
        }
    }
    free(xs);
    free(ys);
    free(ws);
    return wrong;
}

/* BW_CASE=prefix in the environment: the cases whose names begin with it ("": all), each reported. */
static void test_all_cases(void **state)
{
    (void)state;
    const char *asked = getenv("BW_CASE"), *only = asked ? asked : "";
    int passed = 0, failed = 0;
    DIR *folder = opendir(BW_TEST_KERAS "/cases");
    assert_non_null(folder);
    for (struct dirent *entry; (entry = readdir(folder));) {
        char path[1024], why[512];
        if (entry->d_name[0] == '.' || strncmp(entry->d_name, only, strlen(only)) != 0) {
            continue;
        }
        snprintf(path, sizeof path, BW_TEST_KERAS "/cases/%s", entry->d_name);
        bw_context *ctx = bw_open(NULL);
        static case_file file;
        if (!case_read(ctx, &file, path)) {
            fail_msg("%s: %s", path, bw_message(ctx));
        }
        const char *wrong = train(ctx, &file, why, sizeof why);
        passed += !wrong;
        failed += !!wrong;
        if (wrong) {
            print_error("%s: %s\n", entry->d_name, wrong);
        } else if (asked) {
            print_message("%s: ok\n", entry->d_name);
        }
        case_free(&file);
        bw_close(ctx);
    }
    closedir(folder);
    print_message("%d cases agree with Keras, %d do not\n", passed, failed);
    assert_true(passed > 0);
    assert_int_equal(failed, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_all_cases)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
