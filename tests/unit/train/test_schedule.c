/* Schedules: the rates that Keras 3.15.1 gives at some steps, and texts that are refused. */
#include "support/check.h"

#include "train/internal.h"

#include <math.h>

#define assert_near(found, expected, most) assert_true(fabs((double)(found) - (double)(expected)) <= (most))

static const int64_t steps[] = {0, 1, 3, 4, 7, 8, 9, 21, 45, 1000};

static const struct {
    const char *text;
    double rates[BWI_COUNT(steps)];
} recorded[] = {
    {"exponential_decay(0.1,5,0.6)",
     {0.1, 0.090288043, 0.073602192, 0.066453986, 0.04891159, 0.044161316, 0.039872393, 0.011701333, 0.0010077701, 0}},
    {"exponential_decay(0.1,4,0.5,staircase=true)",
     {0.1, 0.1, 0.1, 0.050000001, 0.050000001, 0.025, 0.025, 0.003125, 4.8828126e-05, 0}},
    {"inverse_time_decay(0.1,3,0.5)",
     {0.1, 0.085714288, 0.06666667, 0.059999999, 0.046153851, 0.04285714, 0.039999999, 0.022222223, 0.011764706, 0.00059642148}},
    {"inverse_time_decay(0.1,4,0.5,true)",
     {0.1, 0.1, 0.1, 0.06666667, 0.06666667, 0.050000001, 0.050000001, 0.028571429, 0.015384615, 0.0007936508}},
    {"piecewise_constant_decay((3,7),(0.1,0.02,0.05))",
     {0.1, 0.1, 0.1, 0.02, 0.02, 0.050000001, 0.050000001, 0.050000001, 0.050000001, 0.050000001}},
    {"polynomial_decay(0.1,8)",
     {0.1, 0.087512501, 0.062537499, 0.050050002, 0.0125875, 9.9999997e-05, 9.9999997e-05, 9.9999997e-05, 9.9999997e-05,
      9.9999997e-05}},
    {"polynomial_decay(0.1,20,0.01,power=2.0)",
     {0.1, 0.091224998, 0.075025, 0.067600004, 0.048024997, 0.042400002, 0.037225001, 0.0099999998, 0.0099999998, 0.0099999998}},
    {"polynomial_decay(0.1,4,0.01,power=1.5,cycle=true)",
     {0.1, 0.068456717, 0.02125, 0.0099999998, 0.013977475, 0.0099999998, 0.02125, 0.013977475, 0.01140625, 0.0099999998}},
    {"cosine_decay(0.1,9)", {0.1, 0.096984632, 0.075000003, 0.058682408, 0.011697769, 0.0030153662, 0, 0, 0, 0}},
    {"cosine_decay(0.1,20,alpha=0.2)",
     {0.1, 0.099507533, 0.095640264, 0.092360675, 0.078159623, 0.07236068, 0.06625738, 0.020000001, 0.020000001, 0.020000001}},
    {"cosine_decay(0.01,6,alpha=0.1,warmup_target=0.1,warmup_steps=4)",
     {0.0099999998, 0.032499999, 0.077500001, 0.1, 0.054999996, 0.032499995, 0.016028857, 0.010000001, 0.010000001, 0.010000001}},
    {"cosine_decay_restarts(0.1,3)", {0.1, 0.075000003, 0.1, 0.093301274, 0.025000006, 0.0066987248, 0.1, 0.1, 0.1, 0.078622945}},
    {"cosine_decay_restarts(0.1,3,t_mul=1.5,m_mul=0.7,alpha=0.1)",
     {0.1, 0.077500001, 0.073000006, 0.065630399, 0.011899683, 0.053505637, 0.048941277, 0.017717499, 0.023097819, 0.01045939}},
    {"cosine_decay_restarts(0.1,5,t_mul=1.0,m_mul=0.5)",
     {0.1, 0.090450846, 0.034549143, 0.0095491474, 0.032725427, 0.017274572, 0.0047745779, 0.0056531797, 0.0001953125, 0}},
};

static void test_rates(void **state)
{
    (void)state;
    bw_context *ctx = bw_open(NULL);
    for (size_t i = 0; i < BWI_COUNT(recorded); i++) {
        char text[128];
        bwi_optimizer o;
        snprintf(text, sizeof text, "sgd(lr=%s)", recorded[i].text);
        check_ok(ctx, bwi_optimizer_read(ctx, &o, text));
        for (size_t k = 0; k < BWI_COUNT(steps); k++) {
            o.iterations = steps[k];
            double rate = bwi_optimizer_rate(&o), expected = recorded[i].rates[k];
            if (!(fabs(rate - expected) <= 2e-7 + 2e-6 * expected)) {
                fail_msg("%s at step %d: expected %.8g, got %.8g", recorded[i].text, (int)steps[k], expected, rate);
            }
        }
    }
    bw_close(ctx);
}

/* The restarts of periods that double fall on 3, 9, 21, 45, ... also where logarithms are rounded. */
static void test_restarts(void **state)
{
    (void)state;
    bw_context *ctx = bw_open(NULL);
    bwi_optimizer o;
    check_ok(ctx, bwi_optimizer_read(ctx, &o, "sgd(cosine_decay_restarts(0.5,3))"));
    for (int64_t period = 3, step = 0; step < 100000; step += period, period *= 2) {
        o.iterations = step;
        assert_near(bwi_optimizer_rate(&o), 0.5, 1e-6);
        o.iterations = step + period - 1;
        assert_true(bwi_optimizer_rate(&o) < 0.14);
    }
    bw_close(ctx);
}

/* More pieces than a text argument of any other kind could hold. */
static void test_many_pieces(void **state)
{
    (void)state;
    bw_context *ctx = bw_open(NULL);
    bwi_text text = {.ctx = ctx};
    bwi_text_add(&text, "adam(beta_1=0.8,learning_rate=piecewise_constant_decay(values=(");
    for (int i = 0; i <= BWI_MAX_PIECES; i++) {
        bwi_text_add(&text, "%s%d", i ? "," : "", i + 1);
    }
    bwi_text_add(&text, "),boundaries=(");
    for (int i = 0; i < BWI_MAX_PIECES; i++) {
        bwi_text_add(&text, "%s%d", i ? "," : "", 10 * i + 5);
    }
    bwi_text_add(&text, ")))");
    bwi_optimizer o;
    check_ok(ctx, bwi_optimizer_read(ctx, &o, text.bytes));
    for (int i = 0; i <= BWI_MAX_PIECES; i++) {
        o.iterations = 10 * i;
        assert_near(bwi_optimizer_rate(&o), i + 1, 0);
    }
    o.iterations = 5; /* a boundary belongs to the piece before it */
    assert_near(bwi_optimizer_rate(&o), 1, 0);
    bwi_text_free(&text);
    bw_close(ctx);
}

static void test_refused(void **state)
{
    (void)state;
    static const char *const texts[][2] = {
        {"sgd(lr=cosine(0.1,3))", "there is no schedule 'cosine'|cosine_decay_restarts"},
        {"sgd(lr=exponential_decay(0.1,5))", "exponential_decay|decay_rate must be given"},
        {"sgd(lr=exponential_decay(0.1,0,0.5))", "decay_steps"},
        {"sgd(lr=exponential_decay(0.1,5,0.5,rate=2))", "there is no argument 'rate'"},
        {"sgd(lr=piecewise_constant_decay((3,7),(0.1,0.2)))", "one value more than boundaries, got 2 and 2"},
        {"sgd(lr=piecewise_constant_decay((7,3),(0.1,0.2,0.3)))", "boundaries must rise, got 3 after 7"},
        {"sgd(lr=piecewise_constant_decay((3,7)))", "values must be given"},
        {"sgd(lr=piecewise_constant_decay(3,(0.1,0.2)))", "boundaries: expected a list"},
        {"sgd(lr=piecewise_constant_decay((3),(0.1,x)))", "values: expected a number of 0 or more, found 'x'"},
        {"sgd(lr=piecewise_constant_decay((3),(0.1,0.2),(1)))", "boundaries and values, once each"},
        {"sgd(lr=fast)", "learning_rate: expected a number of 0 or more, or a schedule, found 'fast'"},
        {"sgd(lr=-1)", "learning_rate|found '-1'"},
        {"sgd(0.1,lr=0.2)", "learning_rate is given twice"},
    };
    bw_context *ctx = bw_open(NULL);
    for (size_t i = 0; i < BWI_COUNT(texts); i++) {
        bwi_optimizer o;
        check_fails(ctx, bwi_optimizer_read(ctx, &o, texts[i][0]), BW_INVALID_ARGUMENT, texts[i][1]);
    }
    assert_int_equal(bwi_allocated_bytes(ctx), 0);
    bw_close(ctx);
}

/* The rate of the next update, as a program sees it; one that is set stays. Values are Keras's, from the table above. */
static void test_a_model_s_rate(void **state)
{
    (void)state;
    static const float values[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    bw_array x = {.data = values, .dtype = BW_F32, .ndim = 2, .shape = {8, 1}};
    bw_context *ctx = bw_open(NULL);
    bw_dataset *data = bw_from_arrays(ctx, &x, &x, NULL);
    bw_model *model = bw_model_parse(ctx, "input(1) dense(1)");
    bw_fit_options options = BW_FIT_OPTIONS_DEFAULT;
    options.batch = 2;
    check_ok(ctx, bw_compile(model, "sgd(lr=0.25)", "mse", NULL));
    assert_true(bw_learning_rate(model) == 0.25);
    check_ok(ctx, bw_compile(model, "sgd(lr=exponential_decay(0.1,5,0.6))", "mse", NULL));
    assert_near(bw_learning_rate(model), 0.1, 1e-7);
    check_ok(ctx, bw_fit(model, data, &options, NULL)); /* four updates */
    assert_near(bw_learning_rate(model), 0.066453986, 1e-7);
    check_ok(ctx, bw_set_learning_rate(model, 0.001));
    check_ok(ctx, bw_fit(model, data, &options, NULL));
    assert_near(bw_learning_rate(model), 0.001, 1e-9);
    bw_close(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rates),   cmocka_unit_test(test_restarts),       cmocka_unit_test(test_many_pieces),
        cmocka_unit_test(test_refused), cmocka_unit_test(test_a_model_s_rate),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
