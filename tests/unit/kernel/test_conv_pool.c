/*
 * Convolution with ReLU and pooling in one pass, of every table against the reference: all blocks of the output, kernels,
 * padding, more columns or pieces than are taken at a time, NaN. Also Winograd's: its errors have a bound.
 */
#include "support/kernel_check.h"

typedef struct conv_case {
    int64_t h, w, c, filters, kh, kw;
    int64_t pad[4]; /* top, left, bottom, right */
} conv_case;

static const conv_case cases[] = {
    {4, 4, 1, 1, 3, 3, {0}},          {5, 9, 1, 32, 3, 3, {0}},
    {8, 17, 3, 32, 3, 3, {0}},        {7, 30, 3, 16, 3, 3, {0}},
    {6, 11, 2, 48, 3, 3, {0}},        {6, 7, 4, 20, 3, 3, {0}},
    {4, 4, 3, 8, 3, 3, {1, 1, 1, 1}}, {5, 6, 1, 35, 1, 3, {0, 0, 0, 2}},
    {9, 8, 2, 7, 5, 5, {2, 2, 2, 2}}, {8, 12, 4, 33, 7, 5, {3, 2, 3, 2}},
    {4, 300, 1, 17, 3, 3, {0}},       {3, 263, 3, 4, 2, 5, {0, 1, 0, 0}},
    {7, 138, 3, 33, 3, 3, {0}},       {9, 40, 3, 16, 3, 3, {2, 1, 0, 5}},
};
static const int64_t blocks[] = {0, 1, 4, 8, 16}; /* 0: channels-last */

static bwi_conv_pool convolution_of(const conv_case *c, bwi_conv_then then, int64_t block)
{
    int64_t step = then == BWI_THEN_POOL ? 2 : 1;
    bwi_conv_pool k = {.x = {2, c->h, c->w, c->c, c->c},
                       .then = then,
                       .kh = c->kh,
                       .kw = c->kw,
                       .pad_top = c->pad[0],
                       .pad_left = c->pad[1],
                       .pad_bottom = c->pad[2],
                       .pad_right = c->pad[3]};
    k.y = (bwi_image){.n = 2,
                      .h = (c->h + c->pad[0] + c->pad[2] - c->kh + 1) / step,
                      .w = (c->w + c->pad[1] + c->pad[3] - c->kw + 1) / step,
                      .c = c->filters,
                      .block = block ? block : c->filters};
    return k;
}

static bwi_conv_pool conv_pool_of(const conv_case *c, int64_t block)
{
    return convolution_of(c, BWI_THEN_POOL, block);
}

typedef struct results {
    float *y, *inference, *gradient, *dx;
    void *masks;
} results;

static results compute(const bwi_kernels *k, const bwi_conv_pool *p, const float *x, const float *weights, const float *dy)
{
    int64_t floats = bwi_packing_host.conv_pool->floats(p), y_floats = bwi_image_floats(&p->y);
    size_t bytes = bwi_packing_host.conv_pool->scratch_bytes(p);
    void *scratch = output_bytes(bytes);
    results r = {output_floats(y_floats), output_floats(y_floats), output_floats(floats), output_floats(bwi_image_floats(&p->x)),
                 output_bytes(bwi_packing_host.relu_maxpool_mask_bytes(&p->y))};
    memset(r.gradient, 0, (size_t)floats * sizeof(float));
    k->conv_pool_forward(p, x, weights, r.y, r.masks, scratch);
    k->conv_pool_forward(p, x, weights, r.inference, NULL, scratch);
    k->conv_pool_backward_weights(p, x, dy, r.masks, r.gradient, scratch);
    k->conv_pool_backward_weights(p, x, dy, r.masks, r.gradient, scratch); /* it adds */
    k->conv_pool_backward_data(p, dy, r.masks, weights, r.dx);
    output_free(scratch, bytes);
    return r;
}

static void results_free(const bwi_conv_pool *p, results *r)
{
    output_floats_free(r->y, bwi_image_floats(&p->y));
    output_floats_free(r->inference, bwi_image_floats(&p->y));
    output_floats_free(r->gradient, bwi_packing_host.conv_pool->floats(p));
    output_floats_free(r->dx, bwi_image_floats(&p->x));
    output_free(r->masks, bwi_packing_host.relu_maxpool_mask_bytes(&p->y));
}

static float *arranged_weights(const bwi_conv_pool *p)
{
    float *weights = input_floats(p->kh * p->kw * p->x.c * p->y.c), *bias = input_floats(p->y.c);
    float *arranged = input_floats(bwi_packing_host.conv_pool->floats(p));
    bwi_packing_host.conv_pool_arrange(p, weights, bias, arranged);
    free(weights);
    free(bias);
    return arranged;
}

static float *random_difference(const bwi_image *i)
{
    bwi_image last = *i;
    last.block = last.c;
    float *plain = input_floats(bwi_image_floats(&last)), *dy = input_floats(bwi_image_floats(i));
    bwi_kernels_reference.reorder(&last, plain, i->block, dy);
    free(plain);
    return dy;
}

static void check_case(const bwi_kernels *k, const bwi_conv_pool *p)
{
    float *x = input_floats(bwi_image_floats(&p->x)), *weights = arranged_weights(p), *dy = random_difference(&p->y);
    assert_true(bwi_packing_host.conv_pool->fits(p));
    results a = compute(k, p, x, weights, dy), b = compute(&bwi_kernels_reference, p, x, weights, dy);
    double most = (double)(p->kh * p->kw * p->x.c);
    assert_close("y", a.y, b.y, bwi_image_floats(&p->y), 1e-6 * most);
    assert_close("y without masks", a.inference, a.y, bwi_image_floats(&p->y), 0);
    assert_close("gradient", a.gradient, b.gradient, bwi_packing_host.conv_pool->floats(p), 1e-5 * (double)(p->y.h * p->y.w));
    assert_close("dx", a.dx, b.dx, bwi_image_floats(&p->x), 2e-6 * most * (double)p->y.c);
    results_free(p, &a);
    results_free(p, &b);
    free(x);
    free(weights);
    free(dy);
}

static void check_all(const bwi_kernels *k)
{
    for (size_t i = 0; i < BWI_COUNT(cases); i++) {
        for (size_t b = 0; b < BWI_COUNT(blocks); b++) {
            bwi_conv_pool p = conv_pool_of(&cases[i], blocks[b]);
            check_case(k, &p);
        }
    }
}

static void test_against_reference(void **state)
{
    (void)state;
    each_table(check_all);
}

/* One 3x3 kernel of ones over a 4x4 image: four sums, the largest is kept; all weights get the winner's elements. */
static void check_by_hand(const bwi_kernels *k)
{
    conv_case c = {4, 4, 1, 1, 3, 3, {0}};
    bwi_conv_pool p = conv_pool_of(&c, 0);
    p.x.n = p.y.n = 1;
    const float x[16] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, -100};
    float ones[9], weights[10 * 16], expected[9] = {5, 6, 7, 9, 10, 11, 13, 14, 15}, found[9], bias = 0, dy = 2;
    for (int i = 0; i < 9; i++) {
        ones[i] = 1;
    }
    bwi_packing_host.conv_pool_arrange(&p, ones, &(float){0.5f}, weights);
    results r = compute(k, &p, x, weights, &dy);
    assert_true(r.y[0] == 90.5f); /* 5 + 6 + 7 + 9 + ... + 15 and the bias; the other windows have 54, 63 and -16 */
    bwi_packing_host.conv_pool_restore(&p, r.gradient, found, &bias);
    for (int i = 0; i < 9; i++) {
        assert_true(found[i] == 2 * dy * expected[i]); /* twice, since it adds */
    }
    assert_true(bias == 2 * dy);
    for (int i = 0; i < 16; i++) {
        assert_true(r.dx[i] == (i >= 4 && i % 4 < 3 ? dy : 0));
    }
    results_free(&p, &r);
}

static void test_by_hand(void **state)
{
    (void)state;
    each_table(check_by_hand);
}

static void check_nan(const bwi_kernels *k)
{
    conv_case c = {6, 8, 1, 3, 3, 3, {0}};
    bwi_conv_pool p = conv_pool_of(&c, 0);
    float *x = input_floats(2 * 48), *weights = arranged_weights(&p), *dy = random_difference(&p.y);
    x[0] = NAN; /* met by the first window only */
    results r = compute(k, &p, x, weights, dy);
    for (int64_t i = 0; i < bwi_image_floats(&p.y); i++) {
        assert_true(isnan(r.y[i]) == (i < 3));
    }
    results_free(&p, &r);
    free(x);
    free(weights);
    free(dy);
}

static void test_nan(void **state)
{
    (void)state;
    each_table(check_nan);
}

/* ---- Winograd ---- */

static const struct {
    conv_case shape;
    bwi_conv_then then;
} winograd_cases[] = {
    {{6, 6, 16, 16, 3, 3, {0}}, BWI_THEN_POOL},
    {{7, 11, 16, 32, 3, 3, {0}}, BWI_THEN_POOL},
    {{8, 8, 32, 16, 3, 3, {1, 1, 1, 1}}, BWI_THEN_POOL},
    {{9, 6, 48, 80, 3, 3, {1, 0, 0, 1}}, BWI_THEN_POOL},
    {{18, 33, 16, 16, 3, 3, {2, 2, 2, 2}}, BWI_THEN_POOL},
    {{6, 6, 16, 16, 3, 3, {0}}, BWI_THEN_NOTHING},
    {{11, 12, 28, 50, 3, 3, {1, 1, 1, 1}}, BWI_THEN_NOTHING}, /* channels that fill no block, pixels that fill no patch */
    {{7, 8, 40, 29, 3, 3, {1, 0, 1, 1}}, BWI_THEN_RELU},
    {{23, 34, 24, 28, 3, 3, {1, 1, 1, 1}}, BWI_THEN_RELU}, /* several sets of patches */
    {{20, 31, 16, 32, 3, 3, {1, 0, 0, 1}}, BWI_THEN_NOTHING},
};

/* ReLU's choice is that of `y`, unless it is NULL: close to 0 a rounding would change it. */
static results compute_winograd(const bwi_kernels *k, const bwi_conv_pool *p, const float *x, const float *w, const float *b,
                                const float *dy, const float *y)
{
    int64_t floats = p->kh * p->kw * p->x.c * p->y.c, y_floats = bwi_image_floats(&p->y);
    size_t bytes = bwi_packing_host.winograd->scratch_bytes(p), masks = bwi_packing_host.relu_maxpool_mask_bytes(&p->y);
    void *scratch = output_bytes(bytes);
    float *weights = output_floats(bwi_packing_host.winograd->floats(p));
    results r = {output_floats(y_floats), output_floats(y_floats), output_floats(floats + p->y.c),
                 output_floats(bwi_image_floats(&p->x)), output_bytes(masks)};
    k->winograd_weights(p, w, b, weights);
    k->winograd_forward(p, x, weights, r.y, r.masks, scratch);
    k->winograd_forward(p, x, weights, r.inference, NULL, scratch);
    const void *passed = p->then == BWI_THEN_RELU ? (const void *)(y ? y : r.y) : r.masks;
    k->winograd_backward_weights(p, x, dy, passed, r.gradient, r.gradient + floats, scratch);
    k->winograd_backward_data(p, dy, passed, weights, r.dx, scratch);
    output_free(scratch, bytes);
    output_floats_free(weights, bwi_packing_host.winograd->floats(p));
    return r;
}

static void winograd_free(const bwi_conv_pool *p, results *r)
{
    output_floats_free(r->y, bwi_image_floats(&p->y));
    output_floats_free(r->inference, bwi_image_floats(&p->y));
    output_floats_free(r->gradient, p->kh * p->kw * p->x.c * p->y.c + p->y.c);
    output_floats_free(r->dx, bwi_image_floats(&p->x));
    output_free(r->masks, bwi_packing_host.relu_maxpool_mask_bytes(&p->y));
}

/* The bound that the header states, of the largest value. */
static void assert_near(const char *what, const float *found, const float *expected, int64_t count)
{
    double most = 0;
    for (int64_t i = 0; i < count; i++) {
        most = fmax(most, fabs((double)expected[i]));
    }
    assert_true(most > 0);
    assert_close(what, found, expected, count, 1e-5 * most);
}

static void check_winograd(const bwi_kernels *k, const bwi_conv_pool *p)
{
    int64_t floats = 9 * p->x.c * p->y.c;
    float *x = random_difference(&p->x), *w = input_floats(floats), *b = input_floats(p->y.c), *dy = random_difference(&p->y);
    assert_true(bwi_packing_host.winograd->fits(p));
    results e = compute_winograd(&bwi_kernels_reference, p, x, w, b, dy, NULL), a = compute_winograd(k, p, x, w, b, dy, e.y);
    assert_near("y", a.y, e.y, bwi_image_floats(&p->y));
    assert_close("y without masks", a.inference, a.y, bwi_image_floats(&p->y), 0);
    assert_near("gradient", a.gradient, e.gradient, floats);
    assert_near("bias", a.gradient + floats, e.gradient + floats, p->y.c);
    assert_near("dx", a.dx, e.dx, bwi_image_floats(&p->x));
    winograd_free(p, &a);
    winograd_free(p, &e);
    free(x);
    free(w);
    free(b);
    free(dy);
}

static void check_thin(const bwi_kernels *k, const bwi_conv_pool *p)
{
    int64_t y_floats = bwi_image_floats(&p->y);
    size_t bytes = bwi_packing_host.thin->scratch_bytes(p), masks = bwi_packing_host.relu_maxpool_mask_bytes(&p->y);
    float *x = random_difference(&p->x), *arranged = arranged_weights(p), *dy = random_difference(&p->y);
    float *weights = output_floats(bwi_packing_host.thin->floats(p));
    results r = {.y = output_floats(y_floats), .inference = output_floats(y_floats), .masks = output_bytes(masks)};
    void *scratch = output_bytes(bytes);
    k->thin_weights(p, arranged, weights);
    k->thin_forward(p, x, weights, r.y, r.masks, scratch);
    k->thin_forward(p, x, weights, r.inference, NULL, scratch);
    results e = compute(k, p, x, arranged, dy);
    assert_near("y", r.y, e.y, y_floats);
    assert_close("y without masks", r.inference, r.y, y_floats, 0);
    assert_memory_equal(r.masks, e.masks, masks);
    output_free(scratch, bytes);
    output_floats_free(weights, bwi_packing_host.thin->floats(p));
    output_floats_free(r.y, y_floats);
    output_floats_free(r.inference, y_floats);
    output_free(r.masks, masks);
    results_free(p, &e);
    free(x);
    free(arranged);
    free(dy);
}

/* Of conv_pool's cases those that fit. */
static void check_all_thin(const bwi_kernels *k)
{
    int checked = 0;
    for (size_t i = 0; i < BWI_COUNT(cases); i++) {
        for (size_t b = 0; b < BWI_COUNT(blocks); b++) {
            bwi_conv_pool p = conv_pool_of(&cases[i], blocks[b]);
            if (bwi_packing_host.thin->fits(&p)) {
                check_thin(k, &p);
                checked++;
            }
        }
    }
    assert_true(checked >= 25);
}

static void test_thin(void **state)
{
    (void)state;
    each_table(check_all_thin);
}

static void check_all_winograd(const bwi_kernels *k)
{
    for (size_t i = 0; i < BWI_COUNT(winograd_cases); i++) {
        bool pools = winograd_cases[i].then == BWI_THEN_POOL;
        for (size_t b = i == 0 ? 0 : BWI_COUNT(blocks) - 1; b < BWI_COUNT(blocks); b++) { /* the reference takes its time */
            bwi_conv_pool p = convolution_of(&winograd_cases[i].shape, winograd_cases[i].then, pools ? blocks[b] : k->block);
            p.x.block = (b + i) % 2 ? 16 : k->block;
            check_winograd(k, &p);
        }
    }
}

static void test_winograd(void **state)
{
    (void)state;
    each_table(check_all_winograd);
}

static void test_what_fits(void **state)
{
    (void)state;
    conv_case c = {8, 8, 3, 4, 3, 3, {0}};
    bwi_conv_pool p = conv_pool_of(&c, 0);
    assert_true(bwi_packing_host.conv_pool->fits(&p));
    p.x.c = p.x.block = 5;
    assert_false(bwi_packing_host.conv_pool->fits(&p));
    c.kw = 4;
    p = conv_pool_of(&c, 0);
    assert_false(bwi_packing_host.conv_pool->fits(&p));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_against_reference),
        cmocka_unit_test(test_by_hand),
        cmocka_unit_test(test_nan),
        cmocka_unit_test(test_thin),
        cmocka_unit_test(test_winograd),
        cmocka_unit_test(test_what_fits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
