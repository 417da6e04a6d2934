/*
 * Optimizers: every row against its formula in double; packed and plain variables move alike and padding stays zero; slots and
 * their order in Keras's files; texts that are refused.
 */
#include "support/check.h"

#include "kernel/internal.h"
#include "train/internal.h"

#include <math.h>
#include <stdlib.h>

#define assert_near(found, expected, most) assert_true(fabs((double)(found) - (double)(expected)) <= (most))

/* Few are enough for all branches; more than a vector, and no multiple of one. */
enum { IN = 7, OUT = 43, COUNT = IN * OUT, STEPS = 5 };

static const char *const texts[] = {
    "sgd(lr=0.1)",
    "sgd(lr=0.1,momentum=0.8,weight_decay=0.1)",
    "sgd(lr=0.1,momentum=0.8,nesterov=true)",
    "adam(lr=0.01)",
    "adam(lr=0.01,beta_1=0.8,beta_2=0.7,epsilon=0.01,amsgrad=true)",
    "adam(lr=0.01,epsilon=0)",
    "adamw(lr=0.02,weight_decay=0.3,use_ema=true,ema_momentum=0.6)",
    "rmsprop(lr=0.01)",
    "rmsprop(lr=0.01,rho=0.7,momentum=0.5)",
    "rmsprop(lr=0.01,centered=true,clipvalue=0.05)",
    "rmsprop(lr=0.01,momentum=0.5,centered=true,weight_decay=0.2,epsilon=0)",
    "adagrad(lr=0.1)",
    "adagrad(lr=0.1,initial_accumulator_value=0,epsilon=0,use_ema=true,ema_overwrite_frequency=2)",
    "adadelta(lr=1.5)",
    "adamax(lr=0.02,epsilon=0)",
    "nadam(lr=0.02)",
    "lion(lr=0.01,weight_decay=0.1)",
    "ftrl(lr=0.1)",
    "ftrl(lr=0.1,learning_rate_power=-0.7,l1_regularization_strength=0.01,l2_regularization_strength=0.02,beta=0.1)",
    "lamb(lr=0.01,weight_decay=0.1)",
};

/* What a step of an update sets (apply.c), with a scale of 1/4 and no clipping by norms. */
static void begin(bwi_optimizer *o, const bwi_kernels *kernels, float *clip)
{
    o->kernels = kernels;
    o->clips = o->trusts = clip;
    *clip = 1;
    bwi_optimizer_begin(o, 0.25F);
}

typedef struct moved {
    bwi_optimizer o;
    bwi_variable variable;
    bwi_slot slots[BWI_MAX_SLOTS];
    float clip;
} moved;

static void pack(const bwi_packing *packing, const float *keras_order, void *stored)
{
    (void)packing;
    bwi_packing_host.dense_pack(IN, OUT, keras_order, stored);
}

static void unpack(const bwi_packing *packing, const void *stored, int64_t first, int64_t count, float *keras_order)
{
    (void)packing;
    bwi_packing_host.dense_unpack(IN, OUT, stored, first, count, keras_order);
}

static void open_moved(bw_context *ctx, moved *m, const char *text, bool packed, const float *w)
{
    check_ok(ctx, bwi_optimizer_read(ctx, &m->o, text));
    m->variable = (bwi_variable){.name = "w", .shape = {.ndim = 2, .extent = {IN, OUT}}, .trainable = true, .count = COUNT};
    m->variable.kernels = bwi_kernels_of(ctx);
    if (packed) {
        m->variable.count = bwi_packing_host.dense_floats(IN, OUT);
        m->variable.packing = (bwi_packing){.count = m->variable.count, .pack = pack, .unpack = unpack};
        assert_true(m->variable.count > COUNT);
    }
    m->variable.data = malloc((size_t)m->variable.count * sizeof(float));
    bwi_variable_write(&m->variable, w);
    memset(m->slots, 0, sizeof m->slots);
    for (int s = 0; s < m->o.slot_count + m->o.averages; s++) {
        m->slots[s] = (bwi_slot){.variable = &m->variable, .data = calloc((size_t)m->variable.count, sizeof(float))};
        for (int64_t i = 0; m->o.row->start && s < m->o.slot_count && i < m->variable.count; i++) {
            ((float *)m->slots[s].data)[i] = m->o.row->start(&m->o, s);
        }
    }
    m->o.slots = m->slots;
}

static void step_moved(moved *m, const bwi_kernels *kernels, const float *gradient)
{
    float *stored = malloc((size_t)m->variable.count * sizeof(float));
    bwi_variable like = m->variable;
    like.data = stored;
    bwi_variable_write(&like, gradient);
    begin(&m->o, kernels, &m->clip);
    /* In two parts, as blocks would be. */
    bwi_optimizer_update(&m->o, &m->variable, 0, 64, stored);
    bwi_optimizer_update(&m->o, &m->variable, 64, m->variable.count - 64, stored + 64);
    m->o.iterations++;
    free(stored);
}

static void close_moved(moved *m)
{
    for (int s = 0; s < BWI_MAX_SLOTS; s++) {
        free(m->slots[s].data);
    }
    free(m->variable.data);
}

static float drawn(int64_t i, int step)
{
    bwi_random r = bwi_random_at(7, (uint64_t)step, (uint64_t)i);
    float x, y;
    bwi_random_normal(r.word[0], r.word[1], &x, &y);
    return x;
}

/* ---- Packed and plain ---- */

static double stored_size(const moved *m)
{
    double sum = 0;
    const float *stored = m->variable.data;
    for (int64_t i = 0; i < m->variable.count; i++) {
        sum += fabs((double)stored[i]);
    }
    return sum;
}

static void check_packed(bw_context *ctx, const char *text, const bwi_kernels *kernels)
{
    float w[COUNT], gradient[COUNT], plain[COUNT], packed[COUNT];
    for (int i = 0; i < COUNT; i++) {
        w[i] = drawn(i, 100);
    }
    moved a, b;
    open_moved(ctx, &a, text, false, w);
    open_moved(ctx, &b, text, true, w);
    a.variable.l1 = b.variable.l1 = 0.01F;
    a.variable.l2 = b.variable.l2 = 0.02F;
    for (int step = 0; step < STEPS; step++) {
        for (int i = 0; i < COUNT; i++) {
            gradient[i] = i % 5 ? drawn(i, step) : 0;
        }
        step_moved(&a, kernels, gradient);
        step_moved(&b, kernels, gradient);
    }
    bwi_variable_read(&a.variable, plain);
    bwi_variable_read(&b.variable, packed);
    double sum = 0;
    for (int i = 0; i < COUNT; i++) {
        /* Kernels may round the remainder after whole vectors otherwise, and it lies elsewhere. */
        assert_near(plain[i], packed[i], 1e-6);
        sum += fabs((double)packed[i]);
    }
    /* Nothing beside the values is stored: padding is zero. */
    assert_near(stored_size(&b), sum, 1e-9 * sum);
    close_moved(&a);
    close_moved(&b);
}

static void test_packed(void **state)
{
    (void)state;
    bw_context *ctx = bw_open(NULL);
    for (size_t i = 0; i < BWI_COUNT(texts); i++) {
        check_packed(ctx, texts[i], bwi_kernels_of(ctx));
    }
    bw_close(ctx);
}

/* ---- Formulas, for one number in double ---- */

typedef struct one {
    double w, average, m, v, u, product;
} one;

static double value(const bwi_optimizer *o, const char *name)
{
    for (int i = 1; i < o->row->argument_count; i++) {
        if (strcmp(o->row->arguments[i].name, name) == 0) {
            return o->row->arguments[i].kind == BWI_BOOL ? o->values[i].flag : o->values[i].number;
        }
    }
    fail_msg("%s has no %s", o->row->name, name);
    return 0;
}

static void step_sgd(const bwi_optimizer *o, one *x, double g, double rate, int t)
{
    (void)t;
    double mu = value(o, "momentum");
    x->m = mu * x->m - rate * g;
    x->w += value(o, "nesterov") > 0 ? mu * x->m - rate * g : x->m;
}

static void step_adam(const bwi_optimizer *o, one *x, double g, double rate, int t)
{
    double b1 = value(o, "beta_1"), b2 = value(o, "beta_2");
    x->m = b1 * x->m + (1 - b1) * g;
    x->v = b2 * x->v + (1 - b2) * g * g;
    x->u = fmax(x->u, x->v);
    double v = value(o, "amsgrad") > 0 ? x->u : x->v;
    x->w -= rate * sqrt(1 - pow(b2, t)) / (1 - pow(b1, t)) * x->m / (sqrt(v) + value(o, "epsilon"));
}

static void step_rmsprop(const bwi_optimizer *o, one *x, double g, double rate, int t)
{
    (void)t;
    double rho = value(o, "rho");
    x->v = rho * x->v + (1 - rho) * g * g;
    x->u = rho * x->u + (1 - rho) * g;
    double root = sqrt(x->v - (value(o, "centered") > 0 ? x->u * x->u : 0) + value(o, "epsilon"));
    x->m = value(o, "momentum") * x->m + rate * g / root;
    x->w -= x->m;
}

static void step_adagrad(const bwi_optimizer *o, one *x, double g, double rate, int t)
{
    x->v += (t == 1 ? value(o, "initial_accumulator_value") : 0) + g * g;
    x->w -= rate * g / sqrt(x->v + value(o, "epsilon"));
}

static void step_adadelta(const bwi_optimizer *o, one *x, double g, double rate, int t)
{
    (void)t;
    double rho = value(o, "rho"), epsilon = value(o, "epsilon");
    x->v = rho * x->v + (1 - rho) * g * g;
    double d = g * sqrt(x->u + epsilon) / sqrt(x->v + epsilon);
    x->u = rho * x->u + (1 - rho) * d * d;
    x->w -= rate * d;
}

static void step_adamax(const bwi_optimizer *o, one *x, double g, double rate, int t)
{
    double b1 = value(o, "beta_1");
    x->m = b1 * x->m + (1 - b1) * g;
    x->u = fmax(value(o, "beta_2") * x->u, fabs(g));
    x->w -= rate / (1 - pow(b1, t)) * x->m / (x->u + value(o, "epsilon"));
}

static void step_nadam(const bwi_optimizer *o, one *x, double g, double rate, int t)
{
    double b1 = value(o, "beta_1"), b2 = value(o, "beta_2");
    double now = b1 * (1 - 0.5 * pow(0.96, t)), next = b1 * (1 - 0.5 * pow(0.96, t + 1));
    x->product = (t == 1 ? 1 : x->product) * now;
    x->m = b1 * x->m + (1 - b1) * g;
    x->v = b2 * x->v + (1 - b2) * g * g;
    double mean = next * x->m / (1 - x->product * next) + (1 - now) * g / (1 - x->product);
    x->w -= rate * mean / (sqrt(x->v / (1 - pow(b2, t))) + value(o, "epsilon"));
}

static void step_lion(const bwi_optimizer *o, one *x, double g, double rate, int t)
{
    (void)t;
    double b1 = value(o, "beta_1"), b2 = value(o, "beta_2"), c = b1 * x->m + (1 - b1) * g;
    x->w -= rate * (c > 0 ? 1 : c < 0 ? -1 : 0);
    x->m = b2 * x->m + (1 - b2) * g;
}

static void step_ftrl(const bwi_optimizer *o, one *x, double g, double rate, int t)
{
    double power = -value(o, "learning_rate_power"), l1 = value(o, "l1_regularization_strength");
    double ridge = 2 * value(o, "l2_regularization_strength") + value(o, "beta") / rate;
    double before = t == 1 ? value(o, "initial_accumulator_value") : x->v;
    x->v = before + g * g;
    x->m += g - (pow(x->v, power) - pow(before, power)) / rate * x->w;
    x->w = (fmax(fmin(x->m, l1), -l1) - x->m) / (pow(x->v, power) / rate + ridge);
}

/* The ratio of norms is 1 here. */
static void step_lamb(const bwi_optimizer *o, one *x, double g, double rate, int t)
{
    double b1 = value(o, "beta_1"), b2 = value(o, "beta_2");
    x->m = b1 * x->m + (1 - b1) * g;
    x->v = b2 * x->v + (1 - b2) * g * g;
    x->w -= rate * (x->m / (1 - pow(b1, t))) / (sqrt(x->v / (1 - pow(b2, t))) + value(o, "epsilon"));
}

static const struct {
    const char *name;
    void (*step)(const bwi_optimizer *o, one *x, double g, double rate, int t);
} formulas[] = {
    {"sgd", step_sgd},         {"adam", step_adam},         {"adamw", step_adam},    {"rmsprop", step_rmsprop},
    {"adagrad", step_adagrad}, {"adadelta", step_adadelta}, {"adamax", step_adamax}, {"nadam", step_nadam},
    {"lion", step_lion},       {"ftrl", step_ftrl},         {"lamb", step_lamb},
};

static void check_formula(bw_context *ctx, const char *text, const bwi_kernels *kernels)
{
    float w[COUNT], gradient[COUNT], found[COUNT];
    one expected[COUNT] = {{0}};
    for (int i = 0; i < COUNT; i++) {
        w[i] = drawn(i, 100);
        expected[i].w = (double)w[i];
    }
    moved a;
    open_moved(ctx, &a, text, false, w);
    size_t f = 0;
    while (strcmp(formulas[f].name, a.o.row->name) != 0) {
        assert_true(++f < BWI_COUNT(formulas));
    }
    double rate = bwi_optimizer_rate(&a.o), keep = (double)a.o.average_momentum;
    for (int t = 1; t <= STEPS; t++) {
        for (int i = 0; i < COUNT; i++) {
            /* Away from zero, where signs and roots without an epsilon would be decided by rounding. */
            gradient[i] = drawn(i, t) + (drawn(i, t) > 0 ? 0.1F : -0.1F);
            one *x = &expected[i];
            double g = (double)gradient[i] / 4;
            g = a.o.clipvalue > 0 ? fmax(fmin(g, (double)a.o.clipvalue), -(double)a.o.clipvalue) : g;
            x->w -= x->w * rate * (double)a.o.weight_decay;
            formulas[f].step(&a.o, x, g, rate, t);
            x->average = t > 1 ? keep * x->average + (1 - keep) * x->w : x->w;
            x->w = a.o.averages && a.o.overwrite_every && t % a.o.overwrite_every == 0 ? x->average : x->w;
        }
        step_moved(&a, kernels, gradient);
    }
    bwi_variable_read(&a.variable, found);
    for (int i = 0; i < COUNT; i++) {
        if (!(fabs((double)found[i] - expected[i].w) <= 2e-5)) {
            fail_msg("%s: element %d: expected %.7f, got %.7f", text, i, expected[i].w, (double)found[i]);
        }
        if (a.o.averages) {
            assert_near((double)((const float *)a.slots[a.o.slot_count].data)[i], expected[i].average, 2e-5);
        }
    }
    close_moved(&a);
}

static void test_formulas(void **state)
{
    (void)state;
    bw_context *ctx = bw_open(NULL);
    for (size_t i = 0; i < BWI_COUNT(texts); i++) {
        check_formula(ctx, texts[i], bwi_kernels_of(ctx));
    }
    bw_close(ctx);
}

static void test_every_row_is_tested(void **state)
{
    (void)state;
    for (int r = 0; bwi_optimizer_rows[r]; r++) {
        bool found = bwi_optimizer_rows[r]->is_whole; /* tests/unit/kernel/test_whole.c, and cases recorded from Keras */
        for (size_t i = 0; i < BWI_COUNT(texts); i++) {
            found = found || strncmp(texts[i], bwi_optimizer_rows[r]->name, strcspn(texts[i], "(")) == 0;
        }
        assert_true(found);
    }
}

/* Rounding makes v - a a negative where the gradient hardly changes: the step must stay a number. */
static void test_centered_is_finite(void **state)
{
    (void)state;
    bw_context *ctx = bw_open(NULL);
    float w[COUNT] = {0}, gradient[COUNT], found[COUNT];
    moved a;
    open_moved(ctx, &a, "rmsprop(lr=0.01,rho=0.5,centered=true)", false, w);
    for (int step = 0; step < 60; step++) {
        for (int i = 0; i < COUNT; i++) {
            gradient[i] = 1000 + (float)i * 3.7F;
        }
        step_moved(&a, bwi_kernels_of(ctx), gradient);
    }
    bwi_variable_read(&a.variable, found);
    for (int i = 0; i < COUNT; i++) {
        assert_true(isfinite(found[i]) && found[i] < 0);
    }
    close_moved(&a);
    bw_close(ctx);
}

/* ---- Texts ---- */

static void test_defaults(void **state)
{
    (void)state;
    bw_context *ctx = bw_open(NULL);
    bwi_optimizer o;
    for (int r = 0; bwi_optimizer_rows[r]; r++) {
        check_ok(ctx, bwi_optimizer_read(ctx, &o, bwi_optimizer_rows[r]->name));
        bool sgd = strcmp(o.row->name, "sgd") == 0, decays = strcmp(o.row->name, "adamw") == 0 || strcmp(o.row->name, "muon") == 0;
        assert_near((double)o.learning_rate, sgd ? 0.01 : 0.001, 1e-9);
        assert_near((double)o.weight_decay, decays ? 0.004 : 0, 1e-9);
        assert_true(o.clipnorm == 0 && o.clipvalue == 0 && o.global_clipnorm == 0 && !o.averages && o.overwrite_every == 0);
        assert_near((double)o.average_momentum, 0.99, 1e-7);
    }
    check_ok(ctx, bwi_optimizer_read(ctx, &o, "adamw(0.5,0.25,0.8)")); /* AdamW's own order */
    assert_near((double)o.learning_rate, 0.5, 0);
    assert_near((double)o.weight_decay, 0.25, 0);
    check_ok(ctx, bwi_optimizer_read(ctx, &o, "sgd(clipnorm=none,clipvalue=0.5,ema_overwrite_frequency=None,weight_decay=none)"));
    assert_near((double)o.clipvalue, 0.5, 0);
    bw_close(ctx);
}

static void test_refused(void **state)
{
    (void)state;
    static const char *const refused[][2] = {
        {"madam", "optimizer: there is no 'madam'; did you mean 'adam'?"},
        {"gradients", "there is no 'gradients'; there are |sgd, adam, adamw, rmsprop, adagrad, adadelta, adamax, nadam, lion"},
        {"adam(momentum=0.9)", "adam|there is no argument 'momentum'"},
        {"sgd(momentum=1.5)", "momentum|from 0 to 1"},
        {"adam(beta_1=1)", "beta_1"},
        {"lion(beta_1=0)", "beta_1"},
        {"adamw(weight_decay=none)", "weight_decay: expected a number"},
        {"sgd(clipnorm=1,clipvalue=1)", "only one of clipnorm, clipvalue and global_clipnorm"},
        {"sgd(global_clipnorm=1,clipvalue=1)", "only one of"},
        {"sgd(clipnorm=-1)", "clipnorm"},
        {"sgd(use_ema=true,ema_momentum=2)", "ema_momentum"},
        {"sgd(use_ema=true,ema_overwrite_frequency=0)", "ema_overwrite_frequency"},
    };
    bw_context *ctx = bw_open(NULL);
    bwi_optimizer o;
    for (size_t i = 0; i < BWI_COUNT(refused); i++) {
        check_fails(ctx, bwi_optimizer_read(ctx, &o, refused[i][0]), BW_INVALID_ARGUMENT, refused[i][1]);
    }
    check_fails(ctx, bwi_optimizer_read(ctx, &o, "adam(loss_scale_factor=8)"), BW_UNIMPLEMENTED, "adam: loss_scale_factor");
    check_fails(ctx, bwi_optimizer_read(ctx, &o, "adam(gradient_accumulation_steps=4)"), BW_UNIMPLEMENTED, "accumulate");
    assert_int_equal(bwi_allocated_bytes(ctx), 0);
    bw_close(ctx);
}

/* ---- State ---- */

static bw_model *built_model(bw_context *ctx, const char *optimizer)
{
    bw_model *model = bw_model_parse(ctx, "dense(43) dense(2)");
    check_ok(ctx, bw_compile(model, optimizer, "mse", NULL));
    check_ok(ctx, bw_build(model, 1, (const int64_t[]){IN}, 1));
    check_ok(ctx, bwi_optimizer_open_slots(model->training));
    return model;
}

/* As Keras 3.15.1 lists an optimizer's variables. */
static void test_state_order(void **state)
{
    (void)state;
    static const char *const orders[][2] = {
        {"sgd(momentum=0.9)", "iterations learning_rate momentum/dense/kernel momentum/dense/bias momentum/dense_1/kernel "
                              "momentum/dense_1/bias "},
        {"sgd(lr=cosine_decay(0.1,3))", "iterations "},
        {"adam(amsgrad=true)", "iterations learning_rate momentum/dense/kernel velocity/dense/kernel momentum/dense/bias "
                               "velocity/dense/bias momentum/dense_1/kernel velocity/dense_1/kernel momentum/dense_1/bias "
                               "velocity/dense_1/bias velocity_hat/dense/kernel velocity_hat/dense/bias "
                               "velocity_hat/dense_1/kernel velocity_hat/dense_1/bias "},
        {"rmsprop(momentum=0.5,centered=true)",
         "iterations learning_rate velocity/dense/kernel velocity/dense/bias velocity/dense_1/kernel velocity/dense_1/bias "
         "momentum/dense/kernel momentum/dense/bias momentum/dense_1/kernel momentum/dense_1/bias average_gradient/dense/kernel "
         "average_gradient/dense/bias average_gradient/dense_1/kernel average_gradient/dense_1/bias "},
        {"nadam", "iterations learning_rate momentum/dense/kernel velocity/dense/kernel momentum/dense/bias velocity/dense/bias "
                  "momentum/dense_1/kernel velocity/dense_1/kernel momentum/dense_1/bias velocity/dense_1/bias momentum_product "},
        {"lion(use_ema=true)", "iterations learning_rate average/dense/kernel average/dense/bias average/dense_1/kernel "
                               "average/dense_1/bias momentum/dense/kernel momentum/dense/bias momentum/dense_1/kernel "
                               "momentum/dense_1/bias "},
    };
    for (size_t i = 0; i < BWI_COUNT(orders); i++) {
        bw_context *ctx = bw_open(NULL);
        bw_model *model = built_model(ctx, orders[i][0]);
        bwi_state list = {.ctx = ctx};
        bwi_text names = {.ctx = ctx};
        bwi_training_state(model, &list);
        assert_false(list.failed);
        for (int v = 0; v < list.count; v++) {
            if (strncmp(list.values[v].name, "optimizer/", 10) == 0) {
                bwi_text_add(&names, "%s ", list.values[v].name + 10);
            }
        }
        assert_string_equal(names.bytes, orders[i][1]);
        bwi_text_free(&names);
        bwi_state_free(&list);
        bw_close(ctx);
    }
}

/* A slot of a packed variable is read and written in Keras's order, and starts as its optimizer says. */
static void test_state_values(void **state)
{
    (void)state;
    bw_context *ctx = bw_open(NULL);
    bw_model *model = built_model(ctx, "adagrad");
    bwi_state list = {.ctx = ctx};
    bwi_training_state(model, &list);
    const bwi_state_value *slot = bwi_state_find(&list, "optimizer/accumulator/dense/kernel");
    assert_non_null(slot);
    assert_int_equal(slot->ndim, 2);
    assert_int_equal(slot->shape[0], IN);
    assert_int_equal(slot->shape[1], OUT);
    assert_true(model->graph.variables[0]->count > COUNT);
    float values[COUNT], again[COUNT];
    bwi_state_read(slot, values);
    for (int i = 0; i < COUNT; i++) {
        assert_near((double)values[i], 0.1, 1e-8);
        values[i] = (float)i;
    }
    bwi_state_write(slot, values);
    bwi_state_read(slot, again);
    assert_memory_equal(values, again, sizeof values);
    float stored[16 * COUNT];
    const bwi_training *t = model->training;
    bwi_packing_host.dense_pack(IN, OUT, values, stored);
    assert_memory_equal(t->optimizer.slots[0].data, stored, (size_t)model->graph.variables[0]->count * sizeof(float));
    bwi_state_free(&list);
    bw_close(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_packed),
        cmocka_unit_test(test_formulas),
        cmocka_unit_test(test_every_row_is_tested),
        cmocka_unit_test(test_centered_is_finite),
        cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_state_order),
        cmocka_unit_test(test_state_values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
