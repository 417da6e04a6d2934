/* Optimizers against their formulas in double, on a linear model whose gradient is known in closed form. */
#include "support/check.h"

#include "train/internal.h"

#include <math.h>

enum { N = 12, IN = 5, OUT = 3, BATCH = 4, EPOCHS = 4 };

static float x[N * IN], y[N * OUT];

static void make_samples(void)
{
    for (int i = 0; i < N * IN; i++) {
        x[i] = (float)((i * 37) % 23) / 11 - 1;
    }
    for (int i = 0; i < N * OUT; i++) {
        y[i] = (float)((i * 29) % 19) / 7 - 1;
    }
}

typedef struct reference {
    double w[IN * OUT], m[IN * OUT], v[IN * OUT];
    int64_t t;
} reference;

/* The mean over samples and outputs of (x w - y)^2. */
static void gradient(const reference *r, int first, int count, double *g)
{
    memset(g, 0, IN * OUT * sizeof *g);
    for (int s = first; s < first + count; s++) {
        for (int o = 0; o < OUT; o++) {
            double e = -(double)y[s * OUT + o];
            for (int i = 0; i < IN; i++) {
                e += (double)x[s * IN + i] * r->w[i * OUT + o];
            }
            for (int i = 0; i < IN; i++) {
                g[i * OUT + o] += 2 * e * (double)x[s * IN + i] / (OUT * count);
            }
        }
    }
}

typedef void (*rule)(reference *r, const double *g);

static void sgd(reference *r, const double *g)
{
    for (int i = 0; i < IN * OUT; i++) {
        r->w[i] -= 0.05 * g[i];
    }
}

static void momentum(reference *r, const double *g)
{
    for (int i = 0; i < IN * OUT; i++) {
        r->v[i] = 0.9 * r->v[i] - 0.05 * g[i];
        r->w[i] += r->v[i];
    }
}

static void nesterov(reference *r, const double *g)
{
    for (int i = 0; i < IN * OUT; i++) {
        r->v[i] = 0.8 * r->v[i] - 0.05 * g[i];
        r->w[i] += 0.8 * r->v[i] - 0.05 * g[i];
    }
}

static void adam_with(reference *r, const double *g, double rate, double b1, double b2, double epsilon)
{
    r->t++;
    double corrected = rate * sqrt(1 - pow(b2, (double)r->t)) / (1 - pow(b1, (double)r->t));
    for (int i = 0; i < IN * OUT; i++) {
        r->m[i] = b1 * r->m[i] + (1 - b1) * g[i];
        r->v[i] = b2 * r->v[i] + (1 - b2) * g[i] * g[i];
        r->w[i] -= corrected * r->m[i] / (sqrt(r->v[i]) + epsilon);
    }
}

static void adam(reference *r, const double *g)
{
    adam_with(r, g, 0.001, 0.9, 0.999, 1e-7);
}

static void other_adam(reference *r, const double *g)
{
    adam_with(r, g, 0.02, 0.7, 0.95, 0.1);
}

static const struct {
    const char *text;
    rule rule;
    int slots;
} cases[] = {
    {"sgd(0.05)", sgd, 0},
    {"sgd(learning_rate=0.05,nesterov=true)", sgd, 0}, /* without momentum there is none of Nesterov's either */
    {"sgd(0.05,momentum=0.9)", momentum, 1},
    {"sgd(0.05,0.8,true)", nesterov, 1},
    {"adam", adam, 2},
    {"adam(lr=0.02,beta_1=0.7,beta_2=0.95,epsilon=0.1)", other_adam, 2},
};

static void train_reference(reference *r, rule update)
{
    for (int first = 0; first < N; first += BATCH + 1) { /* batches of 5, 5 and 2 */
        double g[IN * OUT];
        gradient(r, first, first + BATCH + 1 > N ? N - first : BATCH + 1, g);
        update(r, g);
    }
}

static void compare(bw_context *ctx, const bw_model *model, const reference *r)
{
    float w[IN * OUT];
    check_ok(ctx, bw_variable_get(model, 0, w, IN * OUT));
    for (int i = 0; i < IN * OUT; i++) {
        assert_true(fabs((double)w[i] - r->w[i]) < 2e-6 * fmax(1, fabs(r->w[i])));
    }
}

static void test_formulas(void **state)
{
    (void)state;
    make_samples();
    for (size_t k = 0; k < BWI_COUNT(cases); k++) {
        bw_context *ctx = bw_open(NULL);
        bw_array xa = {.data = x, .dtype = BW_F32, .ndim = 2, .shape = {N, IN}},
                 ya = {.data = y, .dtype = BW_F32, .ndim = 2, .shape = {N, OUT}};
        bw_dataset *data = bw_from_arrays(ctx, &xa, &ya, NULL);
        bw_model *model = bw_model_parse(ctx, "dense(3,use_bias=false)");
        check_ok(ctx, bw_compile(model, cases[k].text, "mse", NULL));
        check_ok(ctx, bw_build(model, 1, (const int64_t[]){IN}, 1));
        reference r = {0};
        float w[IN * OUT];
        for (int i = 0; i < IN * OUT; i++) {
            w[i] = (float)i / 16 - 0.4F;
            r.w[i] = (double)w[i];
        }
        check_ok(ctx, bw_variable_set(model, 0, w, IN * OUT));
        bw_fit_options options = BW_FIT_OPTIONS_DEFAULT;
        options.batch = BATCH + 1;
        for (int epoch = 0; epoch < EPOCHS; epoch++) { /* a fit each: what optimizers remember goes on */
            check_ok(ctx, bw_fit(model, data, &options, NULL));
            train_reference(&r, cases[k].rule);
            compare(ctx, model, &r);
        }
        const bwi_optimizer *o = &bwi_training_of(model)->optimizer;
        assert_int_equal(o->iterations, EPOCHS * 3);
        assert_int_equal(o->slot_count, cases[k].slots);
        /* Compiling again forgets. */
        check_ok(ctx, bw_compile(model, cases[k].text, "mse", NULL));
        memset(r.m, 0, sizeof r.m);
        memset(r.v, 0, sizeof r.v);
        r.t = 0;
        check_ok(ctx, bw_fit(model, data, &options, NULL));
        train_reference(&r, cases[k].rule);
        compare(ctx, model, &r);
        assert_int_equal(bwi_training_of(model)->optimizer.iterations, 3);
        bw_close(ctx);
    }
}

/* The tables: names once, defaults readable, slots named. */
static void test_rows(void **state)
{
    (void)state;
    bw_context *ctx = bw_open(NULL);
    bw_model *model = bw_model_parse(ctx, "dense(1)");
    int rows = 0;
    for (; bwi_optimizer_rows[rows]; rows++) {
        const bwi_optimizer_row *row = bwi_optimizer_rows[rows];
        check_ok(ctx, bw_compile(model, row->name, NULL, NULL));
        const bwi_optimizer *o = &bwi_training_of(model)->optimizer;
        assert_ptr_equal(o->row, row);
        assert_string_equal(row->arguments[0].name, "learning_rate");
        assert_true(bwi_optimizer_rate(o) > 0);
        assert_true(o->slot_count >= 0 && o->slot_count <= BWI_MAX_SLOTS);
        for (int s = 0; s < o->slot_count; s++) {
            assert_non_null(o->slot_names[s]);
        }
    }
    assert_true(rows >= 2);
    bw_close(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_formulas), cmocka_unit_test(test_rows)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
