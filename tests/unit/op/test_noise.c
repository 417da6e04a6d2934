/*
 * Random ops: how much they drop and how they scale, that a draw depends on seed, stream, update, position and place alone and
 * not on how samples are grouped, that backward draws what forward drew, and that inference does nothing.
 */
#include "support/kernel_check.h"

#include "op/op.h"

static bw_context *ctx;
static bwi_graph graph;

static int open_graph(void **state)
{
    (void)state;
    ctx = bw_open(NULL);
    graph = (bwi_graph){.ctx = ctx};
    return ctx ? 0 : -1;
}

static int close_graph(void **state)
{
    (void)state;
    bwi_graph_free(&graph);
    bw_close(ctx);
    return 0;
}

static bw_node *make(const bwi_op *op, float amount, uint64_t stream, bwi_shape shape)
{
    bwi_input_attributes in = {.shape = shape, .dtype = BW_F32};
    bwi_noise_attributes a = {.amount = amount, .stream = stream, .shared = shape};
    bw_node *input = bwi_graph_add(&graph, &bwi_op_input, "input", &in, sizeof in, NULL, 0, NULL, 0);
    bw_node *node = bwi_graph_add(&graph, op, "noise", &a, sizeof a, &input, 1, NULL, 0);
    assert_non_null(node);
    return node;
}

typedef struct draw {
    uint64_t seed, update;
    int64_t position;
} draw;

static void run(bwi_pass_function pass, bw_node *node, const bwi_kernels *kernels, draw d, int64_t samples, const float *x,
                float *y)
{
    bwi_prepare p = {.ctx = ctx, .node = node, .samples = samples};
    assert_true(!node->op->prepare || node->op->prepare(&p) == BW_OK);
    float *from = malloc((size_t)(samples * bwi_shape_count(&node->shape)) * sizeof *from);
    memcpy(from, x, (size_t)(samples * bwi_shape_count(&node->shape)) * sizeof *from);
    void *src[1] = {from}, *diff_src[1] = {y};
    bwi_call call = {.node = node,
                     .kernels = kernels,
                     .samples = samples,
                     .floats = samples * bwi_shape_count(&node->shape),
                     .src = src,
                     .dst = y,
                     .diff_dst = from,
                     .diff_src = diff_src,
                     .scratch = malloc(p.scratch_bytes + 1)};
    bwi_tile tile = {.samples = samples, .seed = d.seed, .update = d.update, .position = d.position, .training = true};
    assert_int_equal(pass(&call, &tile), BW_OK);
    free(call.scratch);
    free(from);
}

static float *ones(int64_t count)
{
    float *x = malloc((size_t)count * sizeof *x);
    for (int64_t i = 0; i < count; i++) {
        x[i] = 1;
    }
    return x;
}

enum { SAMPLES = 64, WIDTH = 1000 };

/* Of a million draws, shares and means are within five standard deviations. */
static void check_statistics(const bwi_kernels *k)
{
    static const float rates[] = {0.1F, 0.25F, 0.5F, 0.9F};
    float *x = ones(SAMPLES * WIDTH), *y = ones(SAMPLES * WIDTH);
    for (size_t r = 0; r < BWI_COUNT(rates); r++) {
        bw_node *node = make(&bwi_op_dropout, rates[r], 7, (bwi_shape){1, {WIDTH}});
        double dropped = 0, kept = 0, pairs = 0, rate = (double)rates[r], count = SAMPLES * WIDTH;
        run(node->op->forward, node, k, (draw){1, 2, 3}, SAMPLES, x, y);
        for (int64_t i = 0; i < SAMPLES * WIDTH; i++) {
            assert_true(y[i] == 0 || fabs((double)y[i] * (1 - rate) - 1) < 1e-6);
            dropped += y[i] == 0;
            kept += (double)y[i];
            pairs += i > 0 && y[i] == 0 && y[i - 1] == 0;
        }
        double deviation = sqrt(rate * (1 - rate) / count);
        assert_true(fabs(dropped / count - rate) < 5 * deviation);
        assert_true(fabs(kept / count - 1) < 5 * deviation / (1 - rate));
        assert_true(fabs(pairs / count - rate * rate) < 10 * deviation); /* neighbours know nothing of each other */
    }
    free(x);
    free(y);
}

static void test_statistics(void **state)
{
    (void)state;
    each_table(check_statistics);
}

static void test_everything_is_dropped(void **state)
{
    (void)state;
    float *x = ones(WIDTH), y[WIDTH];
    bw_node *node = make(&bwi_op_dropout, 1, 7, (bwi_shape){1, {WIDTH}});
    run(node->op->forward, node, bwi_kernels_of(ctx), (draw){1, 2, 3}, 1, x, y);
    for (int i = 0; i < WIDTH; i++) {
        assert_true(y[i] == 0);
    }
    free(x);
}

static void test_gaussian(void **state)
{
    (void)state;
    float *x = ones(SAMPLES * WIDTH), *y = ones(SAMPLES * WIDTH);
    bw_node *node = make(&bwi_op_gaussian_noise, 0.3F, 7, (bwi_shape){1, {WIDTH}});
    run(node->op->forward, node, bwi_kernels_of(ctx), (draw){1, 2, 3}, SAMPLES, x, y);
    double sum = 0, squares = 0, count = SAMPLES * WIDTH, within = 0;
    for (int64_t i = 0; i < SAMPLES * WIDTH; i++) {
        double e = (double)y[i] - 1;
        sum += e;
        squares += e * e;
        within += fabs(e) < 0.3;
    }
    assert_true(fabs(sum / count) < 5 * 0.3 / sqrt(count));
    assert_true(fabs(squares / count - 0.09) < 5 * 0.09 * sqrt(2 / count));
    assert_true(fabs(within / count - 0.682689) < 0.01);
    free(x);
    free(y);
}

/* Whole channels, and the share of them. */
static void test_spatial(void **state)
{
    (void)state;
    enum { CHANNELS = 37, PIXELS = 12 };
    float *x = ones(SAMPLES * PIXELS * CHANNELS), *y = ones(SAMPLES * PIXELS * CHANNELS);
    bw_node *node = make(&bwi_op_spatial_dropout, 0.5F, 7, (bwi_shape){3, {3, 4, CHANNELS}});
    run(node->op->forward, node, bwi_kernels_of(ctx), (draw){1, 2, 3}, SAMPLES, x, y);
    int dropped = 0;
    for (int s = 0; s < SAMPLES; s++) {
        for (int c = 0; c < CHANNELS; c++) {
            const float *first = y + s * PIXELS * CHANNELS + c;
            dropped += *first == 0;
            for (int p = 0; p < PIXELS; p++) {
                assert_true(first[p * CHANNELS] == *first && (*first == 0 || *first == 2));
            }
        }
    }
    assert_true(abs(dropped - SAMPLES * CHANNELS / 2) < 5 * (int)sqrt(SAMPLES * CHANNELS / 4.0));
    free(x);
    free(y);
}

/* One draw for all pixels of a channel and, if `same`, for all samples. */
static void check_shared(bool same)
{
    enum { CHANNELS = 37, PIXELS = 12 };
    float *x = ones(SAMPLES * PIXELS * CHANNELS), *y = ones(SAMPLES * PIXELS * CHANNELS);
    bwi_input_attributes in = {.shape = {3, {3, 4, CHANNELS}}, .dtype = BW_F32};
    bwi_noise_attributes a = {.amount = 0.5F, .stream = 7, .shared = {3, {1, 1, CHANNELS}}, .same = same};
    bw_node *input = bwi_graph_add(&graph, &bwi_op_input, "input", &in, sizeof in, NULL, 0, NULL, 0);
    bw_node *node = bwi_graph_add(&graph, &bwi_op_shared_dropout, "noise", &a, sizeof a, &input, 1, NULL, 0);
    run(node->op->forward, node, bwi_kernels_of(ctx), (draw){1, 2, 3}, SAMPLES, x, y);
    int dropped = 0, alike = 0;
    for (int s = 0; s < SAMPLES; s++) {
        for (int c = 0; c < CHANNELS; c++) {
            const float *first = y + s * PIXELS * CHANNELS + c;
            dropped += *first == 0;
            alike += *first == y[c];
            for (int p = 0; p < PIXELS; p++) {
                assert_true(first[p * CHANNELS] == *first && (*first == 0 || *first == 2));
            }
        }
    }
    assert_int_equal(alike == SAMPLES * CHANNELS, same);
    assert_true(same || abs(dropped - SAMPLES * CHANNELS / 2) < 5 * (int)sqrt(SAMPLES * CHANNELS / 4.0));
    free(x);
    free(y);
}

static void test_shared(void **state)
{
    (void)state;
    check_shared(false);
    check_shared(true);
}

/* Mean and variance of standard normal numbers stay, and what is dropped has one value. */
static void test_alpha(void **state)
{
    (void)state;
    float *x = ones(SAMPLES * WIDTH), *y = ones(SAMPLES * WIDTH);
    bw_random random = {.seed = 3, .stream = 1};
    for (int64_t i = 0; i < SAMPLES * WIDTH; i++) {
        x[i] = bw_random_normal(&random);
    }
    bw_node *node = make(&bwi_op_alpha_dropout, 0.2F, 7, (bwi_shape){1, {WIDTH}});
    run(node->op->forward, node, bwi_kernels_of(ctx), (draw){1, 2, 3}, SAMPLES, x, y);
    double keep = 0.8, low = -1.7580993408473766, a = 1 / sqrt(keep * (1 + 0.2 * low * low)), b = -a * low * 0.2;
    double sum = 0, squares = 0, count = SAMPLES * WIDTH, dropped = 0;
    for (int64_t i = 0; i < SAMPLES * WIDTH; i++) {
        bool gone = fabs((double)y[i] - (a * low + b)) < 1e-6;
        assert_true(gone || fabs((double)y[i] - (a * (double)x[i] + b)) < 1e-5);
        dropped += gone;
        sum += (double)y[i];
        squares += (double)y[i] * (double)y[i];
    }
    assert_true(fabs(dropped / count - 0.2) < 5 * sqrt(0.16 / count));
    assert_true(fabs(sum / count) < 6 / sqrt(count) && fabs(squares / count - 1) < 0.03);
    free(x);
    free(y);
}

static void test_gaussian_dropout(void **state)
{
    (void)state;
    float *x = ones(SAMPLES * WIDTH), *y = ones(SAMPLES * WIDTH);
    bw_node *node = make(&bwi_op_gaussian_dropout, 0.5F, 7, (bwi_shape){1, {WIDTH}});
    for (int64_t i = 0; i < SAMPLES * WIDTH; i++) {
        x[i] = 3;
    }
    run(node->op->forward, node, bwi_kernels_of(ctx), (draw){1, 2, 3}, SAMPLES, x, y);
    double sum = 0, squares = 0, count = SAMPLES * WIDTH;
    for (int64_t i = 0; i < SAMPLES * WIDTH; i++) {
        double e = (double)y[i] / 3 - 1;
        sum += e;
        squares += e * e;
    }
    assert_true(fabs(sum / count) < 5 * 0.5 / sqrt(count));
    assert_true(fabs(squares / count - 0.25) < 5 * 0.25 * sqrt(2 / count));
    free(x);
    free(y);
}

static const bwi_op *const noises[] = {&bwi_op_dropout,        &bwi_op_spatial_dropout,  &bwi_op_gaussian_noise,
                                       &bwi_op_shared_dropout, &bwi_op_gaussian_dropout, &bwi_op_alpha_dropout};

/* Together, one by one, from the middle on: the same. */
static void test_groups(void **state)
{
    (void)state;
    enum { COUNT = 3 * 5 * 7 };
    float *x = ones(SAMPLES * COUNT), *y = ones(SAMPLES * COUNT), *z = ones(SAMPLES * COUNT);
    for (size_t i = 0; i < BWI_COUNT(noises); i++) {
        bw_node *node = make(noises[i], 0.4F, 9, (bwi_shape){3, {3, 5, 7}});
        run(node->op->forward, node, bwi_kernels_of(ctx), (draw){5, 6, 100}, SAMPLES, x, y);
        for (int64_t s = 0; s < SAMPLES; s += s % 3 + 1) {
            int64_t samples = s % 3 + 1 < SAMPLES - s ? s % 3 + 1 : SAMPLES - s;
            run(node->op->forward, node, bwi_kernels_of(ctx), (draw){5, 6, 100 + s}, samples, x, z + s * COUNT);
        }
        assert_memory_equal(y, z, SAMPLES * COUNT * sizeof *y);
    }
    free(x);
    free(y);
    free(z);
}

static int differences(const float *a, const float *b, int count)
{
    int n = 0;
    for (int i = 0; i < count; i++) {
        n += a[i] != b[i];
    }
    return n;
}

static void test_keys(void **state)
{
    (void)state;
    enum { COUNT = 4 * 70 };
    static const draw draws[] = {{1, 2, 3}, {2, 2, 3}, {1, 3, 3}, {1, 2, 4}};
    float *x = ones(COUNT), *first = ones(COUNT), *y = ones(COUNT);
    for (size_t i = 0; i < BWI_COUNT(noises); i++) {
        bw_node *node = make(noises[i], 0.5F, 9, (bwi_shape){2, {4, 70}}),
                *other = make(noises[i], 0.5F, 10, (bwi_shape){2, {4, 70}});
        run(node->op->forward, node, bwi_kernels_of(ctx), draws[0], 1, x, first);
        for (size_t d = 0; d < BWI_COUNT(draws); d++) {
            run(node->op->forward, node, bwi_kernels_of(ctx), draws[d], 1, x, y);
            assert_int_equal(differences(first, y, COUNT) > COUNT / 4, d > 0);
        }
        run(node->op->forward, other, bwi_kernels_of(ctx), draws[0], 1, x, y);
        assert_true(differences(first, y, COUNT) > COUNT / 4);
    }
    free(x);
    free(first);
    free(y);
}

static void test_backward_and_inference(void **state)
{
    (void)state;
    enum { COUNT = 4 * 70 };
    float *x = ones(3 * COUNT), *y = ones(3 * COUNT), *dx = ones(3 * COUNT);
    for (size_t i = 0; i < BWI_COUNT(noises); i++) {
        bw_node *node = make(noises[i], 0.5F, 9, (bwi_shape){2, {4, 70}});
        run(node->op->forward, node, bwi_kernels_of(ctx), (draw){1, 2, 3}, 3, x, y);
        run(node->op->backward, node, bwi_kernels_of(ctx), (draw){1, 2, 3}, 3, x, dx);
        bool dropping = node->op != &bwi_op_gaussian_noise;
        if (node->op != &bwi_op_alpha_dropout) { /* which is not linear: its gradient test compares differences */
            assert_memory_equal(dx, dropping ? y : x, 3 * COUNT * sizeof *dx);
        }
        run(node->op->inference, node, bwi_kernels_of(ctx), (draw){1, 2, 3}, 3, x, y);
        assert_memory_equal(y, x, 3 * COUNT * sizeof *y);
    }
    free(x);
    free(y);
    free(dx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_statistics),
        cmocka_unit_test(test_everything_is_dropped),
        cmocka_unit_test(test_gaussian),
        cmocka_unit_test(test_spatial),
        cmocka_unit_test(test_shared),
        cmocka_unit_test(test_alpha),
        cmocka_unit_test(test_gaussian_dropout),
        cmocka_unit_test(test_groups),
        cmocka_unit_test(test_keys),
        cmocka_unit_test(test_backward_and_inference),
    };
    return cmocka_run_group_tests(tests, open_graph, close_graph);
}
