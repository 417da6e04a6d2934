/*
 * Depthwise convolution, of every table against the reference: all blocks, kernels wider and narrower than the image, strides,
 * dilation, padding; and a case by hand.
 */
#include "support/kernel_check.h"

static void check_passes(const bwi_kernels *k, const bwi_image *x_image, const bwi_image *y_image, const bwi_depthwise *d,
                         bool more)
{
    const bwi_kernels *r = &bwi_kernels_reference;
    int64_t xs = bwi_image_floats(x_image), ys = bwi_image_floats(y_image), c = x_image->c, ws = d->window.h * d->window.w * c;
    float *x = random_image(x_image, false), *dy = random_image(y_image, false), *w = input_floats(ws), *bias = input_floats(c);
    float *y = output_floats(ys), *expected_y = output_floats(ys), *dx = output_floats(xs), *expected_dx = output_floats(xs);
    float *dw = output_copy(w, ws), *expected_dw = output_copy(w, ws), *db = output_copy(bias, c),
          *expected_db = output_copy(bias, c);
    k->depthwise_forward(x_image, y_image, d, x, w, more ? bias : NULL, y);
    r->depthwise_forward(x_image, y_image, d, x, w, more ? bias : NULL, expected_y);
    assert_close("y", y, expected_y, ys, 1e-5);
    k->depthwise_backward_data(x_image, y_image, d, dy, w, dx);
    r->depthwise_backward_data(x_image, y_image, d, dy, w, expected_dx);
    assert_close("dx", dx, expected_dx, xs, 1e-5);
    k->depthwise_backward_weights(x_image, y_image, d, x, dy, dw, more ? db : NULL, more);
    r->depthwise_backward_weights(x_image, y_image, d, x, dy, expected_dw, more ? expected_db : NULL, more);
    assert_close("dw", dw, expected_dw, ws, 5e-5);
    assert_close("db", db, expected_db, c, 5e-5);
    output_floats_free(y, ys);
    output_floats_free(expected_y, ys);
    output_floats_free(dx, xs);
    output_floats_free(expected_dx, xs);
    output_floats_free(dw, ws);
    output_floats_free(expected_dw, ws);
    output_floats_free(db, c);
    output_floats_free(expected_db, c);
    free(x);
    free(dy);
    free(w);
    free(bias);
}

static void check_blocks(const bwi_kernels *k, bwi_image x, bwi_image y, const bwi_depthwise *d)
{
    static const int64_t blocks[] = {0, 1, 4, 8, 16}; /* 0: channels-last */
    for (size_t b = 0; b < BWI_COUNT(blocks); b++) {
        x.block = y.block = blocks[b] ? blocks[b] : x.c;
        check_passes(k, &x, &y, d, false);
        check_passes(k, &x, &y, d, true);
    }
}

static void check_depthwise(const bwi_kernels *k)
{
    static const int64_t channels[] = {1, 3, 8, 17, 35};
    static const bwi_depthwise kernels[] = {
        {{3, 3, 1, 1, 1, 1}, 1, 1}, {{3, 3, 1, 1, 0, 0}, 1, 1},   {{5, 5, 1, 1, 2, 2}, 1, 1}, {{7, 9, 1, 1, 3, 4}, 1, 1},
        {{3, 3, 2, 2, 1, 0}, 1, 1}, {{2, 1, 2, 3, 0, 0}, 1, 1},   {{3, 2, 1, 1, 4, 0}, 2, 3}, {{5, 6, 3, 2, 2, 3}, 1, 1},
        {{3, 3, 2, 1, 1, 2}, 2, 2}, {{1, 13, 1, 1, 0, 12}, 1, 1},
    };
    for (size_t c = 0; c < BWI_COUNT(channels); c++) {
        for (size_t i = 0; i < BWI_COUNT(kernels); i++) {
            const bwi_depthwise *d = &kernels[i];
            bwi_image x = {.n = 2, .h = 9, .w = 13, .c = channels[c]};
            bwi_image y = {.n = 2,
                           .h = (8 + d->window.pad_top) / d->window.stride_h + 1,
                           .w = (12 + d->window.pad_left) / d->window.stride_w + 1,
                           .c = x.c};
            check_blocks(k, x, y, d);
            /* Only windows that end inside. */
            y.h = (x.h - (d->window.h - 1) * d->dilation_h - 1 + d->window.pad_top) / d->window.stride_h + 1;
            y.w = (x.w - (d->window.w - 1) * d->dilation_w - 1 + d->window.pad_left) / d->window.stride_w + 1;
            check_blocks(k, x, y, d);
        }
    }
}

static void test_depthwise(void **state)
{
    (void)state;
    each_table(check_depthwise);
}

/* Two channels, a row of three, kernel 1x2 with one zero before: y[i] = b + w0 x[i - 1] + w1 x[i]. */
static void check_by_hand(const bwi_kernels *k)
{
    bwi_image image = {.n = 1, .h = 1, .w = 3, .c = 2, .block = 2};
    bwi_depthwise d = {{.h = 1, .w = 2, .stride_h = 1, .stride_w = 1, .pad_top = 0, .pad_left = 1}, 1, 1};
    const float x[] = {1, 2, 3, 4, 5, 6}, w[] = {10, 100, 1, -1}, bias[] = {0.5F, -1}, dy[] = {1, 2, -1, 0, 3, 1};
    float y[6], dx[6], dw[4] = {1, 1, 1, 1}, db[2];
    k->depthwise_forward(&image, &image, &d, x, w, bias, y);
    assert_close("y", y, (const float[]){1.5F, -3, 13.5F, 195, 35.5F, 393}, 6, 0);
    k->depthwise_backward_data(&image, &image, &d, dy, w, dx);
    assert_close("dx", dx, (const float[]){-9, -2, 29, 100, 3, -1}, 6, 0);
    k->depthwise_backward_weights(&image, &image, &d, x, dy, dw, db, false);
    assert_close("dw", dw, (const float[]){8, 4, 13, 10}, 4, 0);
    assert_close("db", db, (const float[]){3, 3}, 2, 0);
    k->depthwise_backward_weights(&image, &image, &d, x, dy, dw, db, true);
    assert_close("dw", dw, (const float[]){16, 8, 26, 20}, 4, 0);
    assert_close("db", db, (const float[]){6, 6}, 2, 0);
}

static void test_by_hand(void **state)
{
    (void)state;
    each_table(check_by_hand);
    check_by_hand(&bwi_kernels_reference);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_depthwise), cmocka_unit_test(test_by_hand)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
