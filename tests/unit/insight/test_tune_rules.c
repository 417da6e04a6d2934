/* The rules of tune on given numbers: predictions, the knee, the choice, "the data do not decide", rates and averages. No clock. */
#include "support/context.h"

#include "insight/tune/tune.h"

#include <math.h>

enum { ROWS = 8 };

static const bw_noise_scale nothing_known = {.scale = (double)NAN, .low = 0, .high = (double)INFINITY};

static bw_noise_scale known(double scale, double low, double high)
{
    return (bw_noise_scale){.determined = true, .scale = scale, .low = low, .high = high, .trace = scale, .signal = 1};
}

/* Batches 1, 2, 4, ... 128, with a step that takes `fixed` seconds and `each` for every sample. */
static void make_rows(bw_tune_row rows[ROWS], double fixed, double each)
{
    for (int i = 0; i < ROWS; i++) {
        double batch = (double)(1 << i), seconds = fixed + each * batch;
        rows[i] = (bw_tune_row){
            .batch = 1 << i, .samples_per_s = batch / seconds, .step_seconds = {seconds, 0.9 * seconds, 1.1 * seconds}};
    }
}

static bool near(double a, double b)
{
    return fabs(a - b) <= 1e-9 * fabs(b);
}

static void test_steps(void **state)
{
    (void)state;
    assert_true(near(bwi_tune_steps(96, 32, 32), 1));
    assert_true(near(bwi_tune_steps(96, 96, 32), 0.5)); /* (1 + 1) / (1 + 3) */
    assert_true(near(bwi_tune_steps(96, 1, 32), 97.0 / 4));
    assert_true(near(bwi_tune_steps(0, 512, 32), 1)); /* without noise no batch saves a step */
    assert_true(near(bwi_tune_steps((double)INFINITY, 512, 32), 1.0 / 16));
}

/* Half of a step of batch 32 is signal where the scale is 32, and a quarter where it is 96. */
static void test_scale(void **state)
{
    (void)state;
    bw_noise_scale scale = {.trace = 1};
    bwi_tune_scale(&scale, 0.25, 0.05, 0.25, 32);
    assert_true(scale.determined && near(scale.scale, 96) && near(scale.low, 32) && near(scale.high, 128));
    bwi_tune_scale(&scale, 0.25, 0.3, 0.9, 32);
    assert_true(!scale.determined && isnan(scale.scale) && scale.low == 0 && isinf(scale.high));
}

static void test_predictions(void **state)
{
    (void)state;
    bw_tune_row rows[ROWS];
    bw_noise_scale noise = known(96, 32, 224);
    make_rows(rows, 1, 1);
    bwi_tune_predict(&rows[7], &noise, 32, 1000); /* batch 128: (1 + 96 / 128) / 4, and 1.25 / 2, (1 + 1.75) / 8 */
    assert_true(near(rows[7].steps.value, 437.5) && near(rows[7].steps.low, 343.75) && near(rows[7].steps.high, 625));
    assert_true(near(rows[7].samples.value, 437.5 * 128));
    assert_true(near(rows[7].seconds.value, 437.5 * 129) && near(rows[7].seconds.high, 625 * 129 * 1.1));
    bwi_tune_predict(&rows[0], &noise, 32, 1000); /* a small batch needs more steps the more noise there is */
    assert_true(near(rows[0].steps.low, 33.0 / 2 * 1000) && near(rows[0].steps.high, 225.0 / 8 * 1000));
    bwi_tune_predict(&rows[7], &nothing_known, 32, 1000);
    assert_true(isnan(rows[7].steps.value) && near(rows[7].steps.low, 250) && near(rows[7].steps.high, 1000));
}

static void test_knee(void **state)
{
    (void)state;
    bw_tune_row rows[ROWS];
    make_rows(rows, 7, 1); /* 128 / 135 of a sample a second at best; 64 / 71 is 95 percent of it, 32 / 39 is 87 */
    assert_int_equal(bwi_tune_knee(rows, ROWS), 64);
    make_rows(rows, 0, 1);
    assert_int_equal(bwi_tune_knee(rows, ROWS), 1);
    assert_int_equal(bwi_tune_knee(rows, 0), 0);
}

/* (1 + S / B) (f + B) has its minimum where B^2 = S f. */
static void test_choice(void **state)
{
    (void)state;
    static const struct {
        double fixed, scale;
        int64_t batch;
    } cases[] = {{16, 16, 16}, {64, 16, 32}, {4, 1024, 64}, {1, 1, 1}, {0.001, 1000, 1}, {1000, 1e6, 128}, {100, 0, 1}};
    for (size_t i = 0; i < BWI_COUNT(cases); i++) {
        bw_tune_row rows[ROWS];
        bw_noise_scale noise = known(cases[i].scale, 0.9 * cases[i].scale, 1.1 * cases[i].scale);
        make_rows(rows, cases[i].fixed, 1);
        bwi_tune_choice choice = bwi_tune_choose(rows, ROWS, &noise, 32);
        assert_true(choice.row >= 0);
        assert_int_equal(rows[choice.row].batch, cases[i].batch);
        assert_true(choice.regret >= 1 && choice.regret < 1.1);
    }
}

static void test_no_choice(void **state)
{
    (void)state;
    bw_tune_row rows[ROWS];
    bw_noise_scale wide = known(100, 0.01, 10000), large = nothing_known;
    make_rows(rows, 16, 1);
    assert_int_equal(bwi_tune_choose(rows, ROWS, &nothing_known, 32).row, -1);
    assert_int_equal(bwi_tune_choose(rows, ROWS, &wide, 32).row, -1);
    /* Known only to be large: the best throughput is right, however large it is. */
    large.low = 2000;
    assert_int_equal(bwi_tune_choose(rows, ROWS, &large, 32).row, ROWS - 1);
    /* A step that takes in proportion to its batch: one sample is best for all scales. */
    make_rows(rows, 0, 1);
    assert_int_equal(bwi_tune_choose(rows, ROWS, &nothing_known, 32).row, 0);
    assert_int_equal(bwi_tune_choose(rows, 0, &wide, 32).row, -1);
    /* An estimate whose own choice could be much too slow gives way to one that is bearable everywhere. */
    bw_noise_scale skewed = known(2, 1, 40);
    make_rows(rows, 16, 1);
    bwi_tune_choice choice = bwi_tune_choose(rows, ROWS, &skewed, 32);
    assert_true(choice.row < 0 || choice.regret <= 1.3);
}

/* ---- Rates and averages ---- */

static bwi_optimizer optimizer_of(const char *text)
{
    bw_model *model = bw_model_parse(ctx, "input(3) dense(2)");
    check_ok(ctx, bw_compile(model, text, "mse", NULL));
    return ((bwi_training *)model->training)->optimizer;
}

static void test_rates(void **state)
{
    (void)state;
    bwi_optimizer adam = optimizer_of("adam"), sgd = optimizer_of("sgd"), heavy = optimizer_of("sgd(lr=0.1,momentum=0.9)");
    assert_true(near(bwi_rescale_rate(&adam, 0.001, 32, 128, 50), 0.002));
    assert_true(near(bwi_rescale_rate(&adam, 0.001, 32, 8, (double)INFINITY), 0.0005));
    assert_true(near(bwi_rescale_rate(&sgd, 0.01, 32, 128, (double)INFINITY), 0.04)); /* linear */
    assert_true(near(bwi_rescale_rate(&sgd, 0.01, 32, 96, 96), 0.02));                /* (1 + 3) / (1 + 1) */
    assert_true(near(bwi_rescale_rate(&sgd, 0.01, 32, 128, 0), 0.01));                /* no noise: no reason to change it */
    assert_true(near(bwi_rescale_rate(&heavy, 0.1, 32, 64, (double)INFINITY), 0.2));  /* its momentum stays */
}

static void test_averages(void **state)
{
    (void)state;
    char text[BWI_TUNE_TEXT];
    bwi_optimizer adam = optimizer_of("adam(lr=0.001,epsilon=1e-5)"),
                  ema = optimizer_of("sgd(momentum=0.5,nesterov=true,use_ema=true)");
    bwi_rescale_averages(&adam, 32, 64);
    bwi_rescale_write(&adam, 0.0014, text);
    assert_string_equal(text, "adam(lr=0.0014,beta_2=0.998001,epsilon=1e-05)");
    bwi_optimizer again = optimizer_of(text);
    for (int k = 1; k < adam.row->argument_count; k++) {
        assert_true(again.values[k].number == adam.values[k].number);
    }
    bwi_rescale_averages(&ema, 32, 64);
    bwi_rescale_write(&ema, 0.01, text);
    assert_string_equal(text, "sgd(lr=0.01,momentum=0.5,nesterov=true,use_ema=true,ema_momentum=0.9801)");
    assert_true(ema.average_momentum == 0.9801F);
    bwi_optimizer plain = optimizer_of("rmsprop");
    bwi_rescale_averages(&plain, 32, 32);
    bwi_rescale_write(&plain, 0.01, text);
    assert_string_equal(text, "rmsprop(lr=0.01)");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_steps),
        cmocka_unit_test(test_scale),
        cmocka_unit_test(test_predictions),
        cmocka_unit_test(test_knee),
        cmocka_unit_test(test_choice),
        cmocka_unit_test(test_no_choice),
        cmocka_unit_test_setup_teardown(test_rates, open_context, close_context),
        cmocka_unit_test_setup_teardown(test_averages, open_context, close_context),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
