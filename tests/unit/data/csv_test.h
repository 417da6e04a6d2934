/* Tests of CSV share this: contexts that keep their log, fixtures, and text in memory. */
#ifndef CSV_TEST_H
#define CSV_TEST_H

#include "data_test.h"

static char logged[8192];

static inline void keep_log(void *user, bw_log_level level, const char *message)
{
    (void)user, (void)level;
    strncat(logged, message, sizeof logged - strlen(logged) - 2);
    strcat(logged, "\n");
}

static inline bw_context *open_context(int workers)
{
    bw_context_options options = BW_CONTEXT_OPTIONS_DEFAULT;
    options.workers = workers;
    options.log = keep_log;
    logged[0] = 0;
    return bw_open(&options);
}

static inline bw_dataset *read_fixture(bw_context *ctx, const char *name, const bw_read_options *options)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", BW_TEST_DATA, name);
    return bw_read(ctx, path, options);
}

static inline void same_values(const bw_dataset *a, const bw_dataset *b)
{
    assert_non_null(a);
    assert_non_null(b);
    assert_int_equal(bw_dataset_count(a), bw_dataset_count(b));
    for (int field = 0; field < 2; field++) {
        int64_t n, m;
        float *x = gather_all(a, field, &n), *y = gather_all(b, field, &m);
        assert_int_equal(n, m);
        assert_memory_equal(x, y, (size_t)n * sizeof *x);
        free(x);
        free(y);
    }
}

static inline bw_dataset *read_text(world *w, const char *text, const bw_read_options *options)
{
    assert_true(world_begin(w, (const unsigned char *)text, strlen(text)));
    w->ctx->log = keep_log;
    logged[0] = 0;
    return bw_read(w->ctx, "a.csv", options);
}

/* The values of x and y, row after row, as text. */
static inline void expect(const char *text, const bw_read_options *options, const char *expected)
{
    world w = {0};
    bw_dataset *dataset = read_text(&w, text, options);
    char found[512] = "";
    if (!dataset) {
        fail_msg("%s: %s", text, bw_message(w.ctx));
    }
    int64_t n, m = 0;
    int64_t rows = bw_dataset_count(dataset);
    float *x = gather_all(dataset, 0, &n), *y = bwi_dataset_fields(dataset) > 1 ? gather_all(dataset, 1, &m) : NULL;
    for (int64_t i = 0; i < rows; i++) {
        for (int64_t k = 0; k < n / rows; k++) {
            sprintf(found + strlen(found), "%g ", (double)x[i * (n / rows) + k]);
        }
        for (int64_t k = 0; k < m / rows; k++) {
            sprintf(found + strlen(found), "%s%g", k ? " " : "-> ", (double)y[i * (m / rows) + k]);
        }
        strcat(found, "; ");
    }
    assert_string_equal(found, expected);
    free(x);
    free(y);
    world_end(&w);
}

static inline void refuse(const char *text, const bw_read_options *options, bw_status status, const char *part)
{
    world w = {0};
    bw_dataset *dataset = read_text(&w, text, options);
    assert_failed(w.ctx, dataset, status, part);
    assert_int_equal(w.live, 1);
    world_end(&w);
}

#endif
