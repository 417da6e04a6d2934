/*
 * Max pooling with and without ReLU, of every table against the reference: all pairs of blocks, odd sides, ties, NaN.
 */
#include "support/kernel_check.h"

static const int64_t channels[] = {1, 3, 4, 7, 8, 12, 16, 17, 20, 32, 35};
static const int64_t blocks[] = {0, 1, 4, 8, 16}; /* 0: channels-last */

static void check_relu_maxpool_of(const bwi_kernels *k, const bwi_image *x_image, const bwi_image *y_image, bool ties)
{
    int64_t x_count = bwi_image_floats(x_image), y_count = bwi_image_floats(y_image);
    size_t mask_bytes = bwi_packing_host.relu_maxpool_mask_bytes(y_image);
    float *x = random_image(x_image, ties), *dy = random_image(y_image, false);
    float *y = output_floats(y_count), *dx = output_floats(x_count), *plain = output_floats(y_count);
    float *expected_y = output_floats(y_count), *expected_dx = output_floats(x_count);
    void *masks = output_bytes(mask_bytes), *expected_masks = output_bytes(mask_bytes);
    k->relu_maxpool_forward(x_image, y_image, x, y, masks);
    k->relu_maxpool_forward(x_image, y_image, x, plain, NULL);
    k->relu_maxpool_backward(x_image, y_image, dy, masks, dx);
    bwi_kernels_reference.relu_maxpool_forward(x_image, y_image, x, expected_y, expected_masks);
    bwi_kernels_reference.relu_maxpool_backward(x_image, y_image, dy, expected_masks, expected_dx);
    assert_close("y", y, expected_y, y_count, 0);
    assert_close("y without masks", plain, expected_y, y_count, 0);
    assert_close("dx", dx, expected_dx, x_count, 0);
    output_floats_free(y, y_count);
    output_floats_free(plain, y_count);
    output_floats_free(expected_y, y_count);
    output_floats_free(dx, x_count);
    output_floats_free(expected_dx, x_count);
    output_free(masks, mask_bytes);
    output_free(expected_masks, mask_bytes);
    free(x);
    free(dy);
}

static void each_block(const bwi_kernels *k, bwi_image x, bwi_image y,
                       void (*check)(const bwi_kernels *k, const bwi_image *x, const bwi_image *y, bool ties))
{
    for (size_t a = 0; a < BWI_COUNT(blocks); a++) {
        for (size_t b = 0; b < BWI_COUNT(blocks); b++) {
            x.block = blocks[a] ? blocks[a] : x.c;
            y.block = blocks[b] ? blocks[b] : y.c;
            check(k, &x, &y, false);
            check(k, &x, &y, true);
        }
    }
}

static void check_relu_maxpool(const bwi_kernels *k)
{
    static const int64_t sides[][2] = {{2, 2}, {3, 3}, {4, 5}, {7, 6}, {1, 4}};
    for (size_t c = 0; c < BWI_COUNT(channels); c++) {
        for (size_t s = 0; s < BWI_COUNT(sides); s++) {
            int64_t h = sides[s][0], w = sides[s][1];
            bwi_image x = {.n = 2, .h = h, .w = w, .c = channels[c]}, y = {.n = 2, .h = h / 2, .w = w / 2, .c = channels[c]};
            each_block(k, x, y, check_relu_maxpool_of);
        }
    }
}

static void test_relu_maxpool(void **state)
{
    (void)state;
    each_table(check_relu_maxpool);
}

/* One channel: the larger -1 and 3 and a tie of 2 and 2, whose first wins; a window without a positive number gives nothing. */
static void check_by_hand(const bwi_kernels *k)
{
    bwi_image x_image = {.n = 1, .h = 2, .w = 6, .c = 1, .block = 1}, y_image = {.n = 1, .h = 1, .w = 3, .c = 1, .block = 1};
    const float x[] = {-1, 1, 0, 2, -1, -2, 3, 2, 2, 1, -3, -4}, dy[] = {5, 6, 7};
    bwi_pool_window window = {2, 2, 2, 2, 0, 0};
    float y[3], dx[12];
    unsigned char masks[24], which[3];
    k->relu_maxpool_forward(&x_image, &y_image, x, y, masks);
    assert_close("y", y, (const float[]){3, 2, 0}, 3, 0);
    k->relu_maxpool_backward(&x_image, &y_image, dy, masks, dx);
    assert_close("dx", dx, (const float[]){0, 0, 0, 6, 0, 0, 5, 0, 0, 0, 0, 0}, 12, 0);
    k->maxpool_forward(&x_image, &y_image, &window, x, y, which);
    assert_close("y", y, (const float[]){3, 2, -1}, 3, 0);
    assert_memory_equal(which, ((const unsigned char[]){2, 1, 0}), 3);
    k->maxpool_backward(&x_image, &y_image, &window, dy, which, dx);
    assert_close("dx", dx, (const float[]){0, 0, 0, 6, 7, 0, 5, 0, 0, 0, 0, 0}, 12, 0);
}

static void test_by_hand(void **state)
{
    (void)state;
    each_table(check_by_hand);
    check_by_hand(&bwi_kernels_reference);
}

static const bwi_pool_window windows[] = {
    {2, 2, 2, 2, 0, 0}, {3, 3, 2, 2, 1, 1}, {3, 2, 1, 1, 0, 1}, {1, 4, 3, 2, 0, 0}, {5, 5, 1, 2, 2, 2}, {15, 17, 8, 8, 7, 8},
};
static const bwi_pool_window *window; /* of check_maxpool_of */

static void check_maxpool_of(const bwi_kernels *k, const bwi_image *x_image, const bwi_image *y_image, bool ties)
{
    int64_t x_count = bwi_image_floats(x_image), y_count = bwi_image_floats(y_image);
    float *x = random_image(x_image, ties), *dy = random_image(y_image, false);
    float *y = output_floats(y_count), *dx = output_floats(x_count), *plain = output_floats(y_count);
    float *expected_y = output_floats(y_count), *expected_dx = output_floats(x_count);
    unsigned char *which = output_bytes((size_t)y_count), *expected_which = output_bytes((size_t)y_count);
    k->maxpool_forward(x_image, y_image, window, x, y, which);
    k->maxpool_forward(x_image, y_image, window, x, plain, NULL);
    k->maxpool_backward(x_image, y_image, window, dy, which, dx);
    bwi_kernels_reference.maxpool_forward(x_image, y_image, window, x, expected_y, expected_which);
    bwi_kernels_reference.maxpool_backward(x_image, y_image, window, dy, expected_which, expected_dx);
    assert_close("y", y, expected_y, y_count, 0);
    assert_close("y without which", plain, expected_y, y_count, 0);
    assert_close("dx", dx, expected_dx, x_count, 0);
    output_floats_free(y, y_count);
    output_floats_free(plain, y_count);
    output_floats_free(expected_y, y_count);
    output_floats_free(dx, x_count);
    output_floats_free(expected_dx, x_count);
    output_free(which, (size_t)y_count);
    output_free(expected_which, (size_t)y_count);
    free(x);
    free(dy);
}

static void check_maxpool(const bwi_kernels *k)
{
    for (size_t c = 0; c < BWI_COUNT(channels); c++) {
        for (size_t i = 0; i < BWI_COUNT(windows); i++) {
            window = &windows[i];
            bwi_image x = {.n = 2, .h = 6, .w = 7, .c = channels[c]};
            /* As many outputs as windows that begin inside the padded image and touch it. */
            bwi_image y = {.n = 2,
                           .h = (x.h + window->pad_top - 1) / window->stride_h + 1,
                           .w = (x.w + window->pad_left - 1) / window->stride_w + 1,
                           .c = channels[c]};
            each_block(k, x, y, check_maxpool_of);
        }
    }
}

static void test_maxpool(void **state)
{
    (void)state;
    each_table(check_maxpool);
}

/* NaN of either sign in any place of a window. */
static void check_nan(const bwi_kernels *k)
{
    bwi_image image = {.n = 1, .h = 2, .w = 2, .c = 16, .block = 16}, out = {.n = 1, .h = 1, .w = 1, .c = 16, .block = 16};
    for (int place = 0; place < 64; place++) {
        for (int sign = -1; sign <= 1; sign += 2) {
            float x[64], y[16];
            unsigned char which[16];
            for (int i = 0; i < 64; i++) {
                x[i] = random_float();
            }
            x[place] = copysignf(NAN, (float)sign);
            k->relu_maxpool_forward(&image, &out, x, y, NULL);
            for (int i = 0; i < 16; i++) {
                assert_true(isnan(y[i]) == (i == place % 16));
            }
            k->maxpool_forward(&image, &out, &windows[0], x, y, which);
            for (int i = 0; i < 16; i++) {
                assert_true(isnan(y[i]) == (i == place % 16));
            }
        }
    }
}

static void test_nan(void **state)
{
    (void)state;
    each_table(check_nan);
    check_nan(&bwi_kernels_reference);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_by_hand),
        cmocka_unit_test(test_relu_maxpool),
        cmocka_unit_test(test_maxpool),
        cmocka_unit_test(test_nan),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
