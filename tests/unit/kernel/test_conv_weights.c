/*
 * The gradients of a convolution's weights that lie in squares, and of its source, of every table against the reference: blocks of 4, 8 and 16,
 * channels that do not fill them, kernels larger than the image, strides, dilation, padding; the reference against a case by hand.
 */
#include "support/kernel_check.h"

static int64_t weights_of(const bwi_image *x, const bwi_image *y, const bwi_depthwise *k)
{
    return bwi_image_blocks(x) * bwi_image_blocks(y) * x->block * x->block * k->window.h * k->window.w;
}

static void check_case(const bwi_kernels *k, const bwi_image *x_image, const bwi_image *y_image, const bwi_depthwise *d, bool more)
{
    const bwi_kernels *r = &bwi_kernels_reference;
    int64_t count = weights_of(x_image, y_image, d), c = y_image->c;
    float *x = random_image(x_image, false), *dy = random_image(y_image, false), *w = input_floats(count), *bias = input_floats(c);
    float *dw = output_copy(w, count), *expected_dw = output_copy(w, count), *db = output_copy(bias, c),
          *expected_db = output_copy(bias, c);
    k->conv_weights(x_image, y_image, d, x, dy, dw, more);
    r->conv_weights(x_image, y_image, d, x, dy, expected_dw, more);
    assert_close("dw", dw, expected_dw, count, 5e-5);
    float *dx = output_floats(bwi_image_floats(x_image)), *expected_dx = output_floats(bwi_image_floats(x_image));
    k->conv_data(x_image, y_image, d, dy, w, dx);
    r->conv_data(x_image, y_image, d, dy, w, expected_dx);
    assert_close("dx", dx, expected_dx, bwi_image_floats(x_image), 5e-5);
    output_floats_free(dx, bwi_image_floats(x_image));
    output_floats_free(expected_dx, bwi_image_floats(x_image));
    k->conv_bias(y_image, dy, db, more);
    r->conv_bias(y_image, dy, expected_db, more);
    assert_close("db", db, expected_db, c, 5e-5);
    output_floats_free(dw, count);
    output_floats_free(expected_dw, count);
    output_floats_free(db, c);
    output_floats_free(expected_db, c);
    free(x);
    free(dy);
    free(w);
    free(bias);
}

static int64_t outputs(int64_t in, int64_t kernel, int64_t dilation, int64_t stride, int64_t pad)
{
    return (in + 2 * pad - (kernel - 1) * dilation - 1) / stride + 1;
}

static void check_conv_weights(const bwi_kernels *k)
{
    static const int64_t blocks[] = {4, 8, 16}, channels[][2] = {{16, 16}, {5, 40}, {24, 7}};
    static const bwi_depthwise kernels[] = {
        {{3, 3, 1, 1, 1, 1}, 1, 1}, {{1, 1, 1, 1, 0, 0}, 1, 1}, {{1, 7, 1, 1, 0, 3}, 1, 1},
        {{3, 3, 2, 2, 1, 1}, 1, 1}, {{5, 5, 1, 1, 2, 2}, 1, 1}, {{3, 2, 1, 2, 2, 2}, 2, 2},
    };
    for (size_t b = 0; b < BWI_COUNT(blocks); b++) {
        for (size_t c = 0; c < BWI_COUNT(channels); c++) {
            for (size_t i = 0; i < BWI_COUNT(kernels); i++) {
                const bwi_pool_window *s = &kernels[i].window;
                bwi_image x = {.n = 7, .h = 2, .w = 3, .c = channels[c][0], .block = blocks[b]};
                bwi_image y = {.n = 7,
                               .h = outputs(x.h, s->h, kernels[i].dilation_h, s->stride_h, s->pad_top),
                               .w = outputs(x.w, s->w, kernels[i].dilation_w, s->stride_w, s->pad_left),
                               .c = channels[c][1],
                               .block = blocks[b]};
                check_case(k, &x, &y, &kernels[i], false);
                check_case(k, &x, &y, &kernels[i], true);
            }
        }
    }
}

static void test_conv_weights(void **state)
{
    (void)state;
    each_table(check_conv_weights);
}

/* One channel in and out, a row of three, a kernel of two with one zero before: dw0 = x0 dy1 + x1 dy2, dw1 = x0 dy0 + x1 dy1 + x2
 * dy2, dx0 = w1 dy0 + w0 dy1. */
static void test_by_hand(void **state)
{
    (void)state;
    bwi_image image = {.n = 1, .h = 1, .w = 3, .c = 1, .block = 1};
    bwi_depthwise d = {{.h = 1, .w = 2, .stride_h = 1, .stride_w = 1, .pad_top = 0, .pad_left = 1}, 1, 1};
    const float x[] = {1, 2, 3}, dy[] = {10, 100, -1};
    float dw[2] = {1, 1}, db[1] = {1};
    bwi_kernels_reference.conv_weights(&image, &image, &d, x, dy, dw, false);
    assert_close("dw", dw, (const float[]){98, 207}, 2, 0);
    bwi_kernels_reference.conv_weights(&image, &image, &d, x, dy, dw, true);
    assert_close("dw", dw, (const float[]){196, 414}, 2, 0);
    const float w[] = {5, 7};
    float dx[3] = {1, 1, 1};
    bwi_kernels_reference.conv_data(&image, &image, &d, dy, w, dx);
    assert_close("dx", dx, (const float[]){570, 695, -7}, 3, 0);
    bwi_kernels_reference.conv_bias(&image, dy, db, true);
    assert_close("db", db, (const float[]){110}, 1, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_conv_weights), cmocka_unit_test(test_by_hand)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
