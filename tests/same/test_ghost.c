/*
 * batchnorm(ghost=4): statistics of groups of 4 samples. Against formulas in plain C, and the same for any tile and worker.
 */
#include "support/check.h"

#include "base/base.h"

#include <math.h>

enum { SAMPLES = 23, WIDTH = 5, GHOST = 4 };

static float inputs[SAMPLES * WIDTH], targets[SAMPLES * WIDTH];

static int make_samples(void **state)
{
    (void)state;
    for (int i = 0; i < SAMPLES * WIDTH; i++) {
        inputs[i] = (float)((i * 7919 + i / 7 * 31) % 1000) / 250 - 2;
        targets[i] = (float)((i * 104729) % 1000) / 500 - 1;
    }
    return 0;
}

static bw_dataset *samples(bw_context *ctx)
{
    bw_array x = {.data = inputs, .dtype = BW_F32, .ndim = 2, .shape = {SAMPLES, WIDTH}};
    bw_array y = {.data = targets, .dtype = BW_F32, .ndim = 2, .shape = {SAMPLES, WIDTH}};
    return bw_from_arrays(ctx, &x, &y, NULL);
}

/* Groups of a batch of 23: five of 4, then 2 and 1. */
static const int groups[] = {4, 4, 4, 4, 4, 2, 1};

typedef struct layer {
    double gamma[WIDTH], beta[WIDTH], mean[WIDTH], variance[WIDTH];
} layer;

/* One update by SGD with rate 1 from gamma 1, beta 0, for the mean of squares. */
static layer expected(void)
{
    layer l = {.gamma = {0}};
    for (int c = 0; c < WIDTH; c++) {
        double gradient_gamma = 0, gradient_beta = 0, mean_sum = 0, variance_sum = 0;
        int first = 0;
        for (size_t g = 0; g < BWI_COUNT(groups); first += groups[g++]) {
            double mean = 0, variance = 0;
            for (int s = first; s < first + groups[g]; s++) {
                mean += (double)inputs[s * WIDTH + c] / groups[g];
            }
            for (int s = first; s < first + groups[g]; s++) {
                variance += pow((double)inputs[s * WIDTH + c] - mean, 2) / groups[g];
            }
            for (int s = first; s < first + groups[g]; s++) {
                double normal = ((double)inputs[s * WIDTH + c] - mean) / sqrt(variance + 1e-3);
                double slope = 2 * (normal - (double)targets[s * WIDTH + c]) / (WIDTH * SAMPLES);
                gradient_gamma += slope * normal;
                gradient_beta += slope;
            }
            mean_sum += mean * groups[g];
            variance_sum += variance * groups[g];
        }
        l.gamma[c] = 1 - gradient_gamma;
        l.beta[c] = -gradient_beta;
        l.mean[c] = 0.1 * mean_sum / SAMPLES;
        l.variance[c] = 0.9 + 0.1 * variance_sum / SAMPLES;
    }
    return l;
}

static uint64_t train(const char *text, int64_t tile, int workers, float values[4][WIDTH], int64_t *used)
{
    bw_context_options options = BW_CONTEXT_OPTIONS_DEFAULT;
    options.workers = workers;
    bw_context *ctx = bw_open(&options);
    bw_model *model = bw_model_parse(ctx, text);
    check_ok(ctx, bw_compile(model, "sgd(1)", "mse", NULL));
    bw_fit_options fit = BW_FIT_OPTIONS_DEFAULT;
    fit.batch = SAMPLES;
    fit.tile = tile;
    bw_history *history = NULL;
    check_ok(ctx, bw_fit(model, samples(ctx), &fit, &history));
    *used = bw_history_facts(history).tile;
    for (int v = 0; v < 4 && values; v++) {
        check_ok(ctx, bw_variable_get(model, v, values[v], WIDTH));
    }
    uint64_t hash = bw_model_hash(model);
    bw_close(ctx);
    return hash;
}

static void test_formulas(void **state)
{
    (void)state;
    layer l = expected();
    const double *const wanted[] = {l.gamma, l.beta, l.mean, l.variance};
    for (int64_t tile = 4; tile <= 16; tile *= 2) {
        float values[4][WIDTH];
        int64_t used;
        train("batchnorm(ghost=4,momentum=0.9)", tile, 1, values, &used);
        assert_int_equal(used, tile);
        for (int v = 0; v < 4; v++) {
            for (int c = 0; c < WIDTH; c++) {
                if (fabs((double)values[v][c] - wanted[v][c]) > 2e-6) {
                    fail_msg("tile %d, variable %d, channel %d: expected %.9g, got %.9g", (int)tile, v, c, wanted[v][c],
                             (double)values[v][c]);
                }
            }
        }
    }
}

static void test_no_tile_is_smaller(void **state)
{
    (void)state;
    int64_t used;
    static const char text[] = "dense(8) batchnorm(ghost=4) relu dense(5)";
    uint64_t hash = train(text, 1, 1, NULL, &used);
    assert_int_equal(used, GHOST);
    assert_true(train(text, 4, 1, NULL, &used) == hash);
    assert_true(train(text, 2, 3, NULL, &used) == hash);
}

static void test_what_is_refused(void **state)
{
    (void)state;
    bw_context *ctx = bw_open(NULL);
    bw_model *model = bw_model_parse(ctx, "input(5) batchnorm(ghost=12)");
    check_fails(ctx, model ? bw_build(model, 1, (const int64_t[]){WIDTH}, 1) : bw_compile(NULL, NULL, NULL, NULL),
                BW_INVALID_ARGUMENT, "ghost: expected a power of two, got 12");
    bw_close(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_formulas), cmocka_unit_test(test_no_tile_is_smaller),
                                       cmocka_unit_test(test_what_is_refused)};
    return cmocka_run_group_tests(tests, make_samples, NULL);
}
