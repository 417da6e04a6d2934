/*
 * Average pooling and the largest of a channel, of every table against the reference: all pairs of blocks, windows that
 * overlap, leave gaps or reach into the padding, ties, NaN.
 */
#include "support/kernel_check.h"

static const int64_t channels[] = {1, 3, 4, 8, 16, 17, 35};
static const int64_t blocks[] = {0, 1, 4, 8, 16}; /* 0: channels-last */

typedef void (*check_images)(const bwi_kernels *k, const bwi_image *x, const bwi_image *y, const bwi_pool_window *window);

static void each_block(const bwi_kernels *k, bwi_image x, bwi_image y, const bwi_pool_window *window, check_images check)
{
    for (size_t a = 0; a < BWI_COUNT(blocks); a++) {
        for (size_t b = 0; b < BWI_COUNT(blocks); b++) {
            x.block = blocks[a] ? blocks[a] : x.c;
            y.block = blocks[b] ? blocks[b] : y.c;
            check(k, &x, &y, window);
        }
    }
}

static void check_average_of(const bwi_kernels *k, const bwi_image *x_image, const bwi_image *y_image,
                             const bwi_pool_window *window)
{
    int64_t x_count = bwi_image_floats(x_image), y_count = bwi_image_floats(y_image);
    float *x = random_image(x_image, false), *dy = random_image(y_image, false);
    float *y = output_floats(y_count), *dx = output_floats(x_count);
    float *expected_y = output_floats(y_count), *expected_dx = output_floats(x_count);
    k->avgpool_forward(x_image, y_image, window, x, y);
    k->avgpool_backward(x_image, y_image, window, dy, dx);
    bwi_kernels_reference.avgpool_forward(x_image, y_image, window, x, expected_y);
    bwi_kernels_reference.avgpool_backward(x_image, y_image, window, dy, expected_dx);
    assert_close("y", y, expected_y, y_count, 1e-6);
    assert_close("dx", dx, expected_dx, x_count, 2e-6);
    output_floats_free(y, y_count);
    output_floats_free(expected_y, y_count);
    output_floats_free(dx, x_count);
    output_floats_free(expected_dx, x_count);
    free(x);
    free(dy);
}

/* Outputs that begin inside the image. */
static int64_t outputs(int64_t extent, int64_t stride, int64_t pad)
{
    return (extent + pad - 1) / stride + 1;
}

static void check_average(const bwi_kernels *k)
{
    static const bwi_pool_window windows[] = {
        {2, 2, 2, 2, 0, 0}, {3, 3, 2, 2, 1, 1}, {3, 2, 1, 1, 0, 1}, {1, 4, 3, 2, 0, 0},
        {2, 1, 3, 2, 1, 0}, {6, 7, 6, 7, 0, 0}, {3, 7, 3, 7, 0, 0},
    };
    for (size_t c = 0; c < BWI_COUNT(channels); c++) {
        for (size_t i = 0; i < BWI_COUNT(windows); i++) {
            const bwi_pool_window *w = &windows[i];
            bwi_image x = {.n = 2, .h = 6, .w = 7, .c = channels[c]};
            bwi_image y = {.n = 2, .h = outputs(6, w->stride_h, w->pad_top), .w = outputs(7, w->stride_w, w->pad_left), .c = x.c};
            each_block(k, x, y, w, check_average_of);
            /* Without the last windows, which reach beyond. */
            y.h = y.h > 1 ? y.h - 1 : 1;
            y.w = y.w > 1 ? y.w - 1 : 1;
            each_block(k, x, y, w, check_average_of);
        }
    }
}

static void test_average(void **state)
{
    (void)state;
    each_table(check_average);
}

/* One channel, windows of two with one of padding before: the means are of {4}, {6, 2}, {5, 1}; backward shares alike. */
static void check_average_by_hand(const bwi_kernels *k)
{
    bwi_image x_image = {.n = 1, .h = 1, .w = 5, .c = 1, .block = 1}, y_image = {.n = 1, .h = 1, .w = 3, .c = 1, .block = 1};
    bwi_pool_window window = {.h = 1, .w = 2, .stride_h = 1, .stride_w = 2, .pad_top = 0, .pad_left = 1};
    const float x[] = {4, 6, 2, 5, 1}, dy[] = {3, 8, -2};
    float y[3], dx[5];
    k->avgpool_forward(&x_image, &y_image, &window, x, y);
    assert_close("y", y, (const float[]){4, 4, 3}, 3, 0);
    k->avgpool_backward(&x_image, &y_image, &window, dy, dx);
    assert_close("dx", dx, (const float[]){3, 4, 4, -1, -1}, 5, 0);
}

static void test_average_by_hand(void **state)
{
    (void)state;
    each_table(check_average_by_hand);
    check_average_by_hand(&bwi_kernels_reference);
}

static bool ties; /* of check_largest_of */

static void check_largest_of(const bwi_kernels *k, const bwi_image *x_image, const bwi_image *y_image,
                             const bwi_pool_window *window)
{
    (void)window;
    int64_t x_count = bwi_image_floats(x_image), y_count = bwi_image_floats(y_image);
    float *x = random_image(x_image, ties), *dy = random_image(y_image, false);
    float *y = output_floats(y_count), *dx = output_floats(x_count);
    float *expected_y = output_floats(y_count), *expected_dx = output_floats(x_count);
    k->globalmax_forward(x_image, y_image, x, y);
    bwi_kernels_reference.globalmax_forward(x_image, y_image, x, expected_y);
    assert_close("y", y, expected_y, y_count, 0);
    k->globalmax_backward(x_image, y_image, x, y, dy, dx);
    bwi_kernels_reference.globalmax_backward(x_image, y_image, x, expected_y, dy, expected_dx);
    assert_close("dx", dx, expected_dx, x_count, 1e-7);
    output_floats_free(y, y_count);
    output_floats_free(expected_y, y_count);
    output_floats_free(dx, x_count);
    output_floats_free(expected_dx, x_count);
    free(x);
    free(dy);
}

static void check_largest(const bwi_kernels *k)
{
    static const int64_t sides[][2] = {{1, 1}, {1, 9}, {5, 4}, {20, 20}};
    for (size_t c = 0; c < BWI_COUNT(channels); c++) {
        for (size_t s = 0; s < BWI_COUNT(sides); s++) {
            bwi_image x = {.n = 2, .h = sides[s][0], .w = sides[s][1], .c = channels[c]};
            bwi_image y = {.n = 2, .h = 1, .w = 1, .c = channels[c]};
            for (int t = 0; t < 2; t++) {
                ties = t == 1;
                each_block(k, x, y, NULL, check_largest_of);
            }
        }
    }
}

static void test_largest(void **state)
{
    (void)state;
    each_table(check_largest);
}

/* Two channels side by side: a tie of three, and a NaN, which is the largest wherever it stands. */
static void check_largest_by_hand(const bwi_kernels *k)
{
    bwi_image x_image = {.n = 1, .h = 2, .w = 2, .c = 2, .block = 2}, y_image = {.n = 1, .h = 1, .w = 1, .c = 2, .block = 2};
    float nan = __builtin_nanf("");
    const float x[] = {7, -3, 7, -2, 1, -5, 7, -4}, dy[] = {6, 5}, bad[] = {1, 2, nan, 3, 5, nan, 2, 9};
    float y[2], dx[8];
    k->globalmax_forward(&x_image, &y_image, x, y);
    assert_close("y", y, (const float[]){7, -2}, 2, 0);
    k->globalmax_backward(&x_image, &y_image, x, y, dy, dx);
    assert_close("dx", dx, (const float[]){2, 0, 2, 5, 0, 0, 2, 0}, 8, 0);
    k->globalmax_forward(&x_image, &y_image, bad, y);
    assert_close("y", y, (const float[]){nan, nan}, 2, 0);
}

static void test_largest_by_hand(void **state)
{
    (void)state;
    each_table(check_largest_by_hand);
    check_largest_by_hand(&bwi_kernels_reference);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_average),
        cmocka_unit_test(test_average_by_hand),
        cmocka_unit_test(test_largest),
        cmocka_unit_test(test_largest_by_hand),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
