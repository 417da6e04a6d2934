/*
 * Gradients of tables against plain loops over dense arrays, their norms, and indices and values that are refused. The model is a
 * table alone, `embedding flatten`, so that a sample's differences are 2 (row - y) / outputs.
 * label: thread
 */
#include "unit/exec/records_test.h"

/* ---- Plain loops ---- */

typedef struct plain {
    double w[FLOATS], first[FLOATS], second[FLOATS], gradient[FLOATS];
    bool touched[ROWS];
} plain;

static void plain_gradient(plain *p)
{
    memset(p->gradient, 0, sizeof p->gradient);
    for (int s = 0; s < SAMPLES; s++) {
        for (int i = 0; i < OUTPUTS; i++) {
            int row = x[s * LENGTH + i / WIDTH], at = row * WIDTH + i % WIDTH;
            p->touched[row] = true;
            p->gradient[at] += 2 * (p->w[at] - (double)y[s * OUTPUTS + i]) / OUTPUTS / SAMPLES;
        }
    }
}

static void plain_update(plain *p, bool with_adam, bool touched_only, int step)
{
    for (int i = 0; i < FLOATS; i++) {
        double g = p->gradient[i];
        if (touched_only && !p->touched[i / WIDTH]) {
            continue;
        }
        if (with_adam) {
            p->first[i] += (g - p->first[i]) * (1 - 0.9);
            p->second[i] += (g * g - p->second[i]) * (1 - 0.999);
            p->w[i] -= 0.05 * sqrt(1 - pow(0.999, step)) / (1 - pow(0.9, step)) * p->first[i] / (sqrt(p->second[i]) + 1e-7);
        } else {
            p->first[i] = 0.9 * p->first[i] - 0.5 * g;
            p->w[i] += p->first[i];
        }
    }
}

static void compare_with_plain(const char *expression, bool with_adam, bool touched_only)
{
    run r = run_of(expression, with_adam ? adam : momentum);
    plain p = {.touched = {false}};
    for (int i = 0; i < FLOATS; i++) {
        p.w[i] = (double)start[i];
    }
    r.updates = 4;
    execute(&r);
    for (int step = 1; step <= r.updates; step++) {
        plain_gradient(&p);
        plain_update(&p, with_adam, touched_only, step);
    }
    for (int i = 0; i < FLOATS; i++) {
        if (!(fabs((double)r.table[i] - p.w[i]) <= 1e-5)) {
            fail_msg("%s, %s: row %d: expected %.9g, got %.9g", expression, r.optimizer, i / WIDTH, p.w[i], (double)r.table[i]);
        }
    }
}

static void test_dense_reference(void **state)
{
    (void)state;
    compare_with_plain(dense, true, false);
    compare_with_plain(dense, false, false);
}

/* Plain sgd has nothing to do to rows that were not touched: it gives the same bits as a lazy one, and as one with decay so
 * small that it is lost, which goes through all rows. */
static void test_plain_sgd(void **state)
{
    (void)state;
    run a = run_of(dense, "sgd(lr=0.5)"), b = run_of(lazy, "sgd(lr=0.5)"), c = run_of(dense, "sgd(lr=0.5,weight_decay=1e-30)");
    execute(&a);
    execute(&b);
    execute(&c);
    assert_true(memcmp(a.table, start, sizeof start) != 0);
    for (int i = 0; i < FLOATS; i++) {
        assert_true(memcmp(&a.table[i], &b.table[i], sizeof(float)) == 0);
        assert_true(memcmp(&a.table[i], &c.table[i], sizeof(float)) == 0);
    }
}

static void test_lazy_reference(void **state)
{
    (void)state;
    compare_with_plain(lazy, true, true);
    compare_with_plain(lazy, false, true);
}

/* Windows that touch different rows: what Adam and momentum do to a row that was touched before and now is not. */
static void turn(const char *expression, bool with_adam, bool touched_only)
{
    bw_context *ctx = bw_open(NULL);
    static const int32_t index[2] = {1, 2};
    static const float target[4] = {0.5F, -0.25F, 1, 0.75F};
    float w[8], before[8] = {0.1F, 0.2F, 0.3F, 0.4F, 0.5F, 0.6F, 0.7F, 0.8F};
    double e[8], first[8] = {0}, second[8] = {0};
    bw_array xs = {.data = index, .dtype = BW_I32, .ndim = 2, .shape = {2, 1}};
    bw_array ys = {.data = target, .dtype = BW_F32, .ndim = 2, .shape = {2, 2}};
    bw_dataset *data = bw_from_arrays(ctx, &xs, &ys, NULL);
    bw_model *model = bw_model_parse(ctx, expression);
    int64_t shape[] = {1};
    assert_int_equal(bw_compile(model, with_adam ? adam : momentum, "mse", NULL), BW_OK);
    assert_int_equal(bw_build(model, 1, shape, 1), BW_OK);
    assert_int_equal(bw_variable_set(model, 0, before, 8), BW_OK);
    bw_fit_options options = BW_FIT_OPTIONS_DEFAULT;
    options.batch = 1;
    options.epochs = 3;
    assert_int_equal(bw_fit(model, data, &options, NULL), BW_OK);
    for (int i = 0; i < 8; i++) {
        e[i] = (double)before[i];
    }
    for (int step = 1; step <= 6; step++) {
        int row = index[(step - 1) % 2];
        for (int i = 0; i < 8; i++) {
            double g = i / 2 == row ? e[i] - (double)target[(step - 1) % 2 * 2 + i % 2] : 0;
            if (touched_only && i / 2 != row) {
                continue;
            }
            if (with_adam) {
                first[i] += (g - first[i]) * (1 - 0.9);
                second[i] += (g * g - second[i]) * (1 - 0.999);
                e[i] -= 0.05 * sqrt(1 - pow(0.999, step)) / (1 - pow(0.9, step)) * first[i] / (sqrt(second[i]) + 1e-7);
            } else {
                first[i] = 0.9 * first[i] - 0.5 * g;
                e[i] += first[i];
            }
        }
    }
    assert_int_equal(bw_variable_get(model, 0, w, 8), BW_OK);
    for (int i = 0; i < 8; i++) {
        if (!(fabs((double)w[i] - e[i]) <= 1e-5)) {
            fail_msg("%s: value %d: expected %.9g, got %.9g", expression, i, e[i], (double)w[i]);
        }
    }
    bw_close(ctx);
}

static void test_rows_in_turn(void **state)
{
    (void)state;
    for (int with_adam = 0; with_adam < 2; with_adam++) {
        turn("embedding(4,2) flatten", with_adam, false);
        turn("embedding(4,2,lazy=true) flatten", with_adam, true);
    }
}

/* A table used twice has the records of both: here the output is the sum of both, so 2 w. */
static void test_shared_table(void **state)
{
    (void)state;
    for (int k = 0; k < 2; k++) {
        bw_context *ctx = bw_open(NULL);
        bw_dataset *dataset = samples_of(ctx);
        bw_model *model = bw_model_new(ctx);
        int64_t shape[] = {LENGTH};
        bw_node *in = bw_input(model, "", BW_I32, 1, shape);
        bw_node *once = bw_layer(in, k ? "embedding(23,3,lazy=true)" : "embedding(23,3)");
        bw_node *both[2] = {once, bw_layer_again(once, in)};
        assert_int_equal(bw_output(bw_layer(bw_merge("add", both, 2), "flatten"), ""), BW_OK);
        assert_int_equal(bw_compile(model, "sgd(lr=1)", "mse", NULL), BW_OK);
        assert_int_equal(bw_build(model, 0, NULL, 1), BW_OK);
        assert_int_equal(bw_variable_count(model), 1);
        assert_int_equal(bw_variable_set(model, 0, start, FLOATS), BW_OK);
        bw_fit_options options = BW_FIT_OPTIONS_DEFAULT;
        options.batch = SAMPLES;
        options.tile = 2;
        options.epochs = 1;
        assert_int_equal(bw_fit(model, dataset, &options, NULL), BW_OK);
        double expected[FLOATS] = {0};
        float table[FLOATS];
        for (int i = 0; i < SAMPLES * OUTPUTS; i++) {
            int at = x[i / WIDTH] * WIDTH + i % WIDTH;
            expected[at] -= 4 * (2 * (double)start[at] - (double)y[i]) / OUTPUTS / SAMPLES;
        }
        assert_int_equal(bw_variable_get(model, 0, table, FLOATS), BW_OK);
        for (int i = 0; i < FLOATS; i++) {
            assert_true(fabs((double)table[i] - (double)start[i] - expected[i]) < 1e-5);
        }
        bw_close(ctx);
    }
}

/* Averages of rows that are never touched are the rows. */
static void test_lazy_averages(void **state)
{
    (void)state;
    bw_context *ctx = bw_open(NULL);
    bw_dataset *dataset = samples_of(ctx);
    bw_model *model = bw_model_parse(ctx, lazy);
    int64_t shape[] = {LENGTH};
    float table[FLOATS];
    assert_int_equal(bw_compile(model, "adam(lr=0.05,use_ema=true,weight_decay=0.1)", "mse", NULL), BW_OK);
    assert_int_equal(bw_build(model, 1, shape, 1), BW_OK);
    assert_int_equal(bw_variable_set(model, 0, start, FLOATS), BW_OK);
    assert_int_equal(bw_fit(model, dataset, NULL, NULL), BW_OK);
    assert_int_equal(bw_variable_get(model, 0, table, FLOATS), BW_OK);
    assert_memory_equal(table + (ROWS - 2) * WIDTH, start + (ROWS - 2) * WIDTH, 2 * WIDTH * sizeof(float));
    for (int i = 0; i < 4 * WIDTH; i++) {
        assert_true(table[i] != start[i] && isfinite(table[i]));
    }
    bw_close(ctx);
}

/* ---- Norms ---- */

typedef struct seen {
    double lanes[4];
    float gradient[FLOATS];
} seen;

static void keep_lane_norm(void *user, int lane, double squared, int64_t samples)
{
    seen *s = user;
    (void)samples;
    s->lanes[lane] = squared;
}

static void keep_gradient(void *user, const bwi_variable *variable, int64_t first, int64_t count, const void *gradient)
{
    seen *s = user;
    variable->kernels->memory->read(s->gradient + first, gradient, (size_t)count * sizeof(float));
}

static void test_norms(void **state)
{
    (void)state;
    enum { TILE = 4, LANES = 4, COUNT = 19 }; /* tiles of 4 4 4 4 2 1 */
    bw_context *ctx = bw_open(NULL);
    bw_dataset *dataset = samples_of(ctx);
    bw_model *model = bw_model_parse(ctx, dense);
    int64_t shape[] = {LENGTH};
    bwi_session session;
    bwi_session_options o = {.train = true, .batch = SAMPLES, .tile = TILE, .lanes = LANES};
    assert_int_equal(bw_compile(model, "sgd", "mse", NULL), BW_OK);
    assert_int_equal(bw_build(model, 1, shape, 1), BW_OK);
    assert_int_equal(bw_variable_set(model, 0, start, FLOATS), BW_OK);
    assert_int_equal(bwi_session_open(&session, model, dataset, &o), BW_OK);
    seen got = {{0}, {0}};
    bwi_hooks hooks = {.user = &got, .lane_norm = keep_lane_norm};
    bwi_exec_set_hooks(session.exec, &hooks);
    bwi_piece piece = {.dataset = dataset, .count = COUNT};
    assert_int_equal(bwi_session_feed(&session, BWI_PROGRAM_TRAIN, &piece, NULL), BW_OK);
    double squared = -1, expected = 0, sums[LANES][FLOATS] = {{0}}, total[FLOATS] = {0};
    assert_int_equal(bwi_exec_reduce(session.exec, &squared), BW_OK);
    bwi_exec_update(session.exec, &(bwi_sink){.take = keep_gradient, .user = &got});
    static const int first[] = {0, 4, 8, 12, 16, 18, COUNT};
    for (int tile = 0; tile < 6; tile++) {
        for (int i = first[tile] * OUTPUTS; i < first[tile + 1] * OUTPUTS; i++) {
            int at = x[i / WIDTH] * WIDTH + i % WIDTH;
            double d = 2 * ((double)start[at] - (double)y[i]) / OUTPUTS;
            sums[tile % LANES][at] += d;
            total[at] += d;
        }
    }
    for (int lane = 0; lane < LANES; lane++) {
        double norm = 0;
        for (int i = 0; i < FLOATS; i++) {
            norm += sums[lane][i] * sums[lane][i];
        }
        assert_true(fabs(norm - got.lanes[lane]) <= 1e-5 * norm);
    }
    for (int i = 0; i < FLOATS; i++) {
        expected += total[i] * total[i];
        assert_true(fabs(total[i] - (double)got.gradient[i]) <= 1e-5);
    }
    assert_true(fabs(squared - expected) <= 1e-5 * expected);
    bwi_session_close(&session);
    bw_close(ctx);
}

/* ---- Indices ---- */

static void expect_refused(bw_dtype dtype, const void *indices, const char *message)
{
    bw_context *ctx = bw_open(NULL);
    static const float target[4];
    bw_array xs = {.data = indices, .dtype = dtype, .ndim = 2, .shape = {4, 2}};
    bw_array ys = {.data = target, .dtype = BW_F32, .ndim = 2, .shape = {4, 1}};
    bw_dataset *data = bw_from_arrays(ctx, &xs, &ys, NULL);
    bw_model *model = bw_model_parse(ctx, "embedding(3,2) flatten dense(1)");
    assert_int_equal(bw_compile(model, "sgd", "mse", NULL), BW_OK);
    int64_t shape[] = {2};
    assert_int_equal(bw_build(model, 1, shape, 1), BW_OK);
    uint64_t before = bw_model_hash(model);
    assert_int_equal(bw_fit(model, data, NULL, NULL), BW_INVALID_ARGUMENT);
    if (!strstr(bw_message(ctx), message)) {
        fail_msg("expected '%s' in '%s'", message, bw_message(ctx));
    }
    assert_true(bw_model_hash(model) == before);
    bw_close(ctx);
}

static void test_refused_indices(void **state)
{
    (void)state;
    expect_refused(BW_I32, (const int32_t[]){0, 1, 2, 0, 1, 3, 1, 1}, "index 3 of sample 2 is not one of the table's rows 0..2");
    expect_refused(BW_I64, (const int64_t[]){0, 1, 2, -1, 1, 0, 1, 1}, "index -1 of sample 1");
    expect_refused(BW_F32, (const float[]){0, 1, 2, 0, 1, 0, 1, 1.5F}, "sample 3: its input cannot be read as int32");
    expect_refused(BW_I64, (const int64_t[]){0, 1, 2, 0, 1, 0, 1, (int64_t)1 << 40}, "sample 3");
}

/* A step that meets NaN names layer and sample, changes nothing, and leaves nothing behind. */
static void test_nan(void **state)
{
    (void)state;
    bw_context *ctx = bw_open(NULL);
    bw_dataset *dataset = samples_of(ctx);
    bw_model *model = bw_model_parse(ctx, dense);
    int64_t shape[] = {LENGTH};
    float table[FLOATS], after[FLOATS];
    char expected[80];
    int sample = SAMPLES - 1, row = x[sample * LENGTH];
    for (int i = SAMPLES * LENGTH - 1; i >= 0; i--) {
        sample = x[i] == row ? i / LENGTH : sample; /* the first that has the row */
    }
    memcpy(table, start, sizeof table);
    table[row * WIDTH] = NAN;
    assert_int_equal(bw_compile(model, adam, "mse", NULL), BW_OK);
    assert_int_equal(bw_build(model, 1, shape, 1), BW_OK);
    assert_int_equal(bw_variable_set(model, 0, table, FLOATS), BW_OK);
    bw_fit_options options = BW_FIT_OPTIONS_DEFAULT;
    options.batch = SAMPLES;
    options.tile = options.lanes = 1;
    assert_int_equal(bw_fit(model, dataset, &options, NULL), BW_INVALID_ARGUMENT);
    snprintf(expected, sizeof expected, "layer embedding gives NaN in its forward pass for sample %d", sample);
    if (!strstr(bw_message(ctx), expected)) {
        fail_msg("expected '%s' in '%s'", expected, bw_message(ctx));
    }
    assert_int_equal(bw_variable_get(model, 0, after, FLOATS), BW_OK);
    assert_memory_equal(after, table, sizeof table);
    bw_close(ctx);
}

/* An index behind another layer comes as a float. */
static void test_float_indices(void **state)
{
    (void)state;
    run direct = run_of(dense, adam), behind = run_of("flatten embedding(23,3) flatten", adam);
    execute(&direct);
    execute(&behind);
    assert_same(&direct, &behind, "indices behind a layer");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_dense_reference), cmocka_unit_test(test_plain_sgd),       cmocka_unit_test(test_lazy_reference),
        cmocka_unit_test(test_rows_in_turn),    cmocka_unit_test(test_shared_table),    cmocka_unit_test(test_lazy_averages),
        cmocka_unit_test(test_norms),           cmocka_unit_test(test_refused_indices), cmocka_unit_test(test_nan),
        cmocka_unit_test(test_float_indices),
    };
    return cmocka_run_group_tests(tests, make_samples, NULL);
}
