/*
 * The update of a window: clipping, penalties, averages and the gradients of a custom loop, against a linear model's gradient
 * computed here in double; the same bits on any number of workers and ranks. label: thread
 */
#include "support/check.h"

#include "train/internal.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>

#define assert_near(found, expected, most) assert_true(fabs((double)(found) - (double)(expected)) <= (most))

/* A kernel of several blocks of the update, packed with padding. */
enum { SAMPLES = 24, IN = 300, OUT = 43, KERNEL = IN * OUT, VALUES = KERNEL + OUT };

static float xs[SAMPLES * IN], ys[SAMPLES * OUT];

static void make_data(void)
{
    for (int i = 0; i < SAMPLES * IN; i++) {
        xs[i] = bwi_random_uniform(bwi_random_at(1, 0, (uint64_t)i).word[0]) - 0.5F;
    }
    for (int i = 0; i < SAMPLES * OUT; i++) {
        ys[i] = bwi_random_uniform(bwi_random_at(1, 1, (uint64_t)i).word[0]) - 0.5F;
    }
}

static bw_dataset *data(bw_context *ctx)
{
    bw_array x = {.data = xs, .dtype = BW_F32, .ndim = 2, .shape = {SAMPLES, IN}};
    bw_array y = {.data = ys, .dtype = BW_F32, .ndim = 2, .shape = {SAMPLES, OUT}};
    return bw_from_arrays(ctx, &x, &y, NULL);
}

static bw_model *model_of(bw_context *ctx, const char *regularizer, const char *optimizer)
{
    char text[128];
    snprintf(text, sizeof text, "dense(%d,kernel_regularizer=%s,bias_initializer=random_normal)", OUT, regularizer);
    bw_model *model = bw_model_parse(ctx, text);
    check_ok(ctx, bw_compile(model, optimizer, "mse", ""));
    check_ok(ctx, bw_build(model, 1, (const int64_t[]){IN}, 5));
    return model;
}

static void read_values(bw_context *ctx, const bw_model *model, float *values)
{
    check_ok(ctx, bw_variable_get(model, 0, values, KERNEL));
    check_ok(ctx, bw_variable_get(model, 1, values + KERNEL, OUT));
}

/* The gradient of the mean over `samples` of the mean over outputs of the squared error. */
static void expect_gradient(const float *w, int samples, double *g)
{
    memset(g, 0, VALUES * sizeof *g);
    for (int n = 0; n < samples; n++) {
        for (int o = 0; o < OUT; o++) {
            double off = (double)w[KERNEL + o] - (double)ys[n * OUT + o];
            for (int i = 0; i < IN; i++) {
                off += (double)xs[n * IN + i] * (double)w[i * OUT + o];
            }
            off *= 2.0 / OUT / samples;
            for (int i = 0; i < IN; i++) {
                g[i * OUT + o] += off * (double)xs[n * IN + i];
            }
            g[KERNEL + o] += off;
        }
    }
}

static double norm_of(const double *g, int count)
{
    double sum = 0;
    for (int i = 0; i < count; i++) {
        sum += g[i] * g[i];
    }
    return sqrt(sum);
}

static bw_gradients *add_batches(bw_context *ctx, bw_model *model, int batch, int count)
{
    bw_gradients *g = bw_gradients_new(model, NULL);
    bw_iterator *batches = bw_iterate(bw_batches(data(ctx), batch), 0);
    for (int k = 0; k < count; k++) {
        bw_batch *one;
        check_ok(ctx, bw_next(batches, &one));
        check_ok(ctx, bw_gradients_add(g, one, NULL));
    }
    return g;
}

/* ---- Clipping and penalties ---- */

typedef enum clip { CLIP_NONE, CLIP_VALUE, CLIP_NORM, CLIP_GLOBAL } clip;

static void check_step(const char *regularizer, double l1, double l2, clip kind)
{
    static const char *const names[] = {"weight_decay=none", "clipvalue=0.004", "clipnorm=0.05", "global_clipnorm=0.05"};
    static float before[VALUES], after[VALUES];
    static double g[VALUES];
    char text[64];
    snprintf(text, sizeof text, "sgd(lr=2,%s)", names[kind]);
    bw_context *ctx = bw_open(NULL);
    bw_model *model = model_of(ctx, regularizer, text);
    read_values(ctx, model, before);
    expect_gradient(before, SAMPLES, g);
    for (int i = 0; i < KERNEL; i++) {
        double w = (double)before[i];
        g[i] += l1 * (w > 0 ? 1 : -1) + 2 * l2 * w;
    }
    double kernel = norm_of(g, KERNEL), bias = norm_of(g + KERNEL, OUT), all = norm_of(g, VALUES);
    if (kind != CLIP_NONE) {
        assert_true(kernel > 0.06 && bias > 0.004); /* there is something to clip */
    }
    check_ok(ctx, bw_apply(model, add_batches(ctx, model, SAMPLES, 1)));
    read_values(ctx, model, after);
    for (int i = 0; i < VALUES; i++) {
        double norm = kind == CLIP_GLOBAL ? all : i < KERNEL ? kernel : bias;
        double step = kind == CLIP_NONE || kind == CLIP_VALUE ? g[i] : g[i] * fmin(1, 0.05 / norm);
        step = kind == CLIP_VALUE ? fmax(fmin(step, 0.004), -0.004) : step;
        if (!(fabs((double)before[i] - 2 * step - (double)after[i]) <= 2e-7)) {
            fail_msg("%s, %s: value %d: expected %.8f, got %.8f", regularizer, text, i, (double)before[i] - 2 * step,
                     (double)after[i]);
        }
    }
    bw_close(ctx);
}

static void test_clipping(void **state)
{
    (void)state;
    for (clip kind = CLIP_NONE; kind <= CLIP_GLOBAL; kind++) {
        check_step("none", 0, 0, kind);
        check_step("l1(0.001)", 0.001, 0, kind);
        check_step("l1_l2(0.0005,0.02)", 0.0005, 0.02, kind);
    }
}

/* ---- A custom loop ---- */

static void test_norm_and_scale(void **state)
{
    (void)state;
    static float before[VALUES], after[VALUES];
    static double g[VALUES];
    bw_context *ctx = bw_open(NULL);
    bw_model *model = model_of(ctx, "none", "sgd(lr=1)");
    read_values(ctx, model, before);
    bw_gradients *gradients = bw_gradients_new(model, NULL);
    double norm = -1;
    check_ok(ctx, bw_gradients_norm(gradients, &norm));
    assert_true(norm == 0);
    check_ok(ctx, bw_gradients_scale(gradients, 2));

    bw_iterator *batches = bw_iterate(bw_batches(data(ctx), 5), 0);
    bw_batch *batch;
    for (int samples = 5;; samples = samples + 5 < SAMPLES ? samples + 5 : SAMPLES) {
        bw_status status = bw_next(batches, &batch);
        if (status == BW_OUT_OF_RANGE) {
            break;
        }
        check_ok(ctx, status);
        check_ok(ctx, bw_gradients_add(gradients, batch, NULL));
        expect_gradient(before, samples, g);
        for (int again = 0; again < 2; again++) {
            check_ok(ctx, bw_gradients_norm(gradients, &norm));
            assert_near(norm, norm_of(g, VALUES), 1e-5 * norm);
        }
        assert_int_equal(bw_gradients_samples(gradients), samples);
    }
    check_ok(ctx, bw_gradients_scale(gradients, -0.25));
    check_ok(ctx, bw_gradients_norm(gradients, &norm));
    assert_near(norm, 0.25 * norm_of(g, VALUES), 1e-5 * norm);
    check_fails(ctx, bw_gradients_scale(gradients, (double)INFINITY), BW_INVALID_ARGUMENT, "finite factor");
    check_ok(ctx, bw_apply(model, gradients));
    read_values(ctx, model, after);
    for (int i = 0; i < VALUES; i++) {
        assert_near(after[i], (double)before[i] + 0.25 * g[i], 2e-7);
    }
    assert_int_equal(bw_gradients_samples(gradients), 0);
    bw_close(ctx);
}

/* What is scaled before more is added: only what was there. */
static void test_scale_then_add(void **state)
{
    (void)state;
    static float before[VALUES], after[VALUES];
    static double half[VALUES], all[VALUES];
    bw_context *ctx = bw_open(NULL);
    bw_model *model = model_of(ctx, "none", "sgd(lr=1)");
    read_values(ctx, model, before);
    expect_gradient(before, SAMPLES / 2, half);
    expect_gradient(before, SAMPLES, all);
    bw_gradients *gradients = bw_gradients_new(model, NULL);
    bw_iterator *batches = bw_iterate(bw_batches(data(ctx), SAMPLES / 2), 0);
    for (int k = 0; k < 2; k++) {
        bw_batch *batch;
        check_ok(ctx, bw_next(batches, &batch));
        check_ok(ctx, bw_gradients_add(gradients, batch, NULL));
        check_ok(ctx, bw_gradients_scale(gradients, k ? 1 : 3));
    }
    check_ok(ctx, bw_apply(model, gradients));
    read_values(ctx, model, after);
    for (int i = 0; i < VALUES; i++) {
        /* Sums of halves: all = (half + other) / 2, so 3 half + other = 2 half + 2 all. */
        assert_near(after[i], (double)before[i] - (half[i] + all[i]), 4e-7);
    }
    bw_close(ctx);
}

/* Tables of embeddings have gradients of another form: reading the norm in between changes nothing but rounding. */
static void train_embedding(bool reads, double *norms, float *table)
{
    static int32_t tokens[SAMPLES * 4];
    for (int i = 0; i < SAMPLES * 4; i++) {
        tokens[i] = (i * 7 + i / 5) % 11;
    }
    bw_context *ctx = bw_open(NULL);
    bw_array x = {.data = tokens, .dtype = BW_I32, .ndim = 2, .shape = {SAMPLES, 4}};
    bw_array y = {.data = ys, .dtype = BW_F32, .ndim = 2, .shape = {SAMPLES, 3}};
    bw_model *model = bw_model_parse(ctx, "embedding(12,5) flatten dense(3)");
    check_ok(ctx, bw_compile(model, "sgd(lr=10)", "mse", ""));
    check_ok(ctx, bw_build(model, 1, (const int64_t[]){4}, 5));
    bw_gradients *gradients = bw_gradients_new(model, NULL);
    bw_iterator *batches = bw_iterate(bw_batches(bw_from_arrays(ctx, &x, &y, NULL), 9), 0);
    bw_batch *batch;
    for (int k = 0; bw_next(batches, &batch) == BW_OK; k++) {
        check_ok(ctx, bw_gradients_add(gradients, batch, NULL));
        if (reads) {
            check_ok(ctx, bw_gradients_norm(gradients, &norms[k]));
            check_ok(ctx, bw_gradients_scale(gradients, -2));
            check_ok(ctx, bw_gradients_scale(gradients, -0.5));
        }
    }
    check_ok(ctx, bw_gradients_norm(gradients, &norms[3]));
    check_ok(ctx, bw_apply(model, gradients));
    check_ok(ctx, bw_variable_get(model, 0, table, 60));
    bw_close(ctx);
}

static void test_norm_of_embeddings(void **state)
{
    (void)state;
    float plain[60], read[60];
    double norms[2][4] = {{0}};
    train_embedding(false, norms[0], plain);
    train_embedding(true, norms[1], read);
    assert_true(norms[1][0] > 0 && norms[1][0] != norms[1][1]);
    assert_near(norms[1][2], norms[1][3], 0);
    assert_near(norms[1][3], norms[0][3], 1e-6 * norms[0][3]);
    for (int i = 0; i < 60; i++) {
        assert_near(plain[i], read[i], 1e-6);
    }
}

/* ---- Averages ---- */

typedef struct following {
    bw_context *ctx;
    bw_model *model;
    float weights[VALUES];
    double average[VALUES];
    int stop; /* after that many updates; 0: never */
} following;

static bool follow(void *user, const bw_progress *progress)
{
    following *f = user;
    read_values(f->ctx, f->model, f->weights);
    for (int i = 0; i < VALUES; i++) {
        f->average[i] = progress->update == 1 ? (double)f->weights[i] : 0.7 * f->average[i] + 0.3 * (double)f->weights[i];
    }
    return progress->update != f->stop;
}

static bw_status fit_following(following *f, bw_dataset *dataset)
{
    bw_fit_options options = BW_FIT_OPTIONS_DEFAULT;
    options.batch = 5;
    options.epochs = 2;
    options.on_step = follow;
    options.user = f;
    return bw_fit(f->model, dataset, &options, NULL);
}

static void check_average(const following *f)
{
    static float values[VALUES];
    read_values(f->ctx, f->model, values);
    double moved = 0;
    for (int i = 0; i < VALUES; i++) {
        assert_near(values[i], f->average[i], 1e-6);
        moved = fmax(moved, fabs((double)values[i] - (double)f->weights[i]));
    }
    assert_true(moved > 1e-3);
}

static void test_averages(void **state)
{
    (void)state;
    static following f;
    for (int stop = 0; stop < 4; stop += 3) {
        f.ctx = bw_open(NULL);
        f.model = model_of(f.ctx, "none", "adam(lr=0.01,use_ema=true,ema_momentum=0.7)");
        f.stop = stop;
        check_ok(f.ctx, fit_following(&f, data(f.ctx)));
        check_average(&f);
        bw_close(f.ctx);
    }
}

/* Training on goes on with the average that is there. */
static void test_averages_go_on(void **state)
{
    (void)state;
    static float once[VALUES], twice[VALUES];
    static following f;
    f.stop = 0;
    f.ctx = bw_open(NULL);
    f.model = model_of(f.ctx, "none", "sgd(lr=0.1,use_ema=true,ema_momentum=0.7)");
    check_ok(f.ctx, fit_following(&f, data(f.ctx)));
    read_values(f.ctx, f.model, once);
    check_ok(f.ctx, fit_following(&f, data(f.ctx)));
    check_average(&f);
    read_values(f.ctx, f.model, twice);
    assert_memory_not_equal(once, twice, sizeof once);
    bw_close(f.ctx);
}

/* A failure leaves the weights of the last update, not their average. */
static void test_failure_leaves_weights(void **state)
{
    (void)state;
    static following f;
    static float values[VALUES];
    f.stop = 0;
    f.ctx = bw_open(NULL);
    f.model = model_of(f.ctx, "none", "adam(lr=0.01,use_ema=true,ema_momentum=0.7)");
    float kept = xs[12 * IN];
    xs[12 * IN] = NAN;
    check_fails(f.ctx, fit_following(&f, data(f.ctx)), BW_INVALID_ARGUMENT, "12");
    xs[12 * IN] = kept;
    read_values(f.ctx, f.model, values);
    assert_memory_equal(values, f.weights, sizeof values);
    const bwi_training *t = f.model->training;
    assert_int_equal(t->optimizer.iterations, 2);
    check_ok(f.ctx, bw_apply_averages(f.model));
    check_average(&f);
    bw_close(f.ctx);
}

static void test_no_averages(void **state)
{
    (void)state;
    bw_context *ctx = bw_open(NULL);
    bw_model *model = model_of(ctx, "none", "adam");
    check_fails(ctx, bw_apply_averages(model), BW_INVALID_ARGUMENT, "use_ema");
    check_ok(ctx, bw_compile(model, "adam(use_ema=true)", "mse", ""));
    uint64_t hash = bw_model_hash(model);
    check_ok(ctx, bw_apply_averages(model)); /* before the first update there is nothing to take */
    assert_true(bw_model_hash(model) == hash);
    bw_close(ctx);
}

/* ---- The same bits ---- */

typedef struct member {
    bw_ranks *ranks;
    int rank, workers;
    const char *optimizer;
    bw_status status;
    uint64_t hash;
    double norm;
    char message[256];
} member;

/* Two batches, the norm, another batch, an update; then two epochs of fit. */
static bw_status train_member(bw_context *ctx, member *m)
{
    bw_model *model = bw_model_parse(ctx, "dense(43,relu,kernel_regularizer=l1_l2(0.0001,0.001)) dense(43)");
    bw_status status = bw_compile(model, m->optimizer, "mse", "");
    if (status == BW_OK) {
        status = bw_build(model, 1, (const int64_t[]){IN}, 5);
    }
    bw_fit_options options = BW_FIT_OPTIONS_DEFAULT;
    options.tile = 1;
    options.lanes = 4;
    options.batch = 7;
    options.epochs = 2;
    bw_gradients *gradients = bw_gradients_new(model, &options);
    bw_iterator *batches = bw_iterate(bw_batches(data(ctx), 7), 0);
    for (int k = 0; k < 3 && status == BW_OK; k++) {
        bw_batch *batch;
        status = bw_next(batches, &batch);
        if (status == BW_OK) {
            status = bw_gradients_add(gradients, batch, NULL);
        }
        if (status == BW_OK && k == 1) {
            status = bw_gradients_norm(gradients, &m->norm);
        }
    }
    if (status == BW_OK) {
        status = bw_apply(model, gradients);
    }
    if (status == BW_OK) {
        status = bw_fit(model, data(ctx), &options, NULL);
    }
    m->hash = bw_model_hash(model);
    return status;
}

static void *run_member(void *user)
{
    member *m = user;
    bw_context_options options = BW_CONTEXT_OPTIONS_DEFAULT;
    options.workers = m->workers;
    options.ranks = m->ranks;
    options.rank = m->rank;
    bw_context *ctx = bw_open(&options);
    m->status = ctx ? train_member(ctx, m) : BW_RESOURCE_EXHAUSTED;
    snprintf(m->message, sizeof m->message, "%s", ctx ? bw_message(ctx) : "");
    bw_close(ctx);
    return NULL;
}

static void check_member(const member *m, const member *expected)
{
    if (m->status != BW_OK || m->hash != expected->hash || m->norm != expected->norm) {
        fail_msg("%s: rank %d, %d workers: %s %s, norm %.9g and %.9g", m->optimizer, m->rank, m->workers, bw_status_name(m->status),
                 m->message, m->norm, expected->norm);
    }
}

static void test_same_bits(void **state)
{
    (void)state;
    static const char *const optimizers[] = {
        "sgd(lr=0.1,momentum=0.9,clipnorm=0.02)",
        "adamw(lr=0.01,global_clipnorm=0.02,use_ema=true,ema_overwrite_frequency=3)",
        "nadam(clipvalue=0.001,weight_decay=0.1)",
    };
    for (size_t i = 0; i < BWI_COUNT(optimizers); i++) {
        member one = {.optimizer = optimizers[i], .workers = 1};
        run_member(&one);
        check_member(&one, &one);
        member shared = one;
        shared.workers = 3;
        run_member(&shared);
        check_member(&shared, &one);
        bw_ranks *ranks = bw_ranks_open(2);
        member two[2] = {{.ranks = ranks, .workers = 1, .optimizer = optimizers[i]},
                         {.ranks = ranks, .rank = 1, .workers = 2, .optimizer = optimizers[i]}};
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, run_member, &two[1]), 0);
        run_member(&two[0]);
        pthread_join(thread, NULL);
        bw_ranks_close(ranks);
        check_member(&two[0], &one);
        check_member(&two[1], &one);
    }
}

int main(void)
{
    make_data();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_clipping),
        cmocka_unit_test(test_norm_of_embeddings),
        cmocka_unit_test(test_norm_and_scale),
        cmocka_unit_test(test_scale_then_add),
        cmocka_unit_test(test_averages),
        cmocka_unit_test(test_averages_go_on),
        cmocka_unit_test(test_failure_leaves_weights),
        cmocka_unit_test(test_no_averages),
        cmocka_unit_test(test_same_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
