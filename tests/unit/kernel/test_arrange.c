/* arrange: each kernel against the place that every element must have, by its index along each axis, for odd extents and blocks. */
#include "support/spreads.h"

enum { SAMPLES = 3 };

/* ---- Repeated ---- */

static void check_broadcast_over(const bwi_kernels *k, const shapes *s)
{
    bwi_spread spread = bwi_spread_over(&s->large, &s->small);
    int64_t large = bwi_shape_count(&s->large), small = bwi_shape_count(&s->small);
    float *x = input_floats(SAMPLES * small), *dy = input_floats(SAMPLES * large), *expected = input_floats(SAMPLES * small);
    float *y = output_floats(SAMPLES * large), *dx = output_floats(SAMPLES * small);
    double *sums = output_bytes((size_t)small * sizeof *sums), *total = calloc((size_t)(SAMPLES * small), sizeof *total);
    k->arrange->broadcast(&spread, SAMPLES, x, y);
    for (int64_t i = 0; i < SAMPLES * large; i++) {
        int64_t at = i / large * small + small_at(s, i % large);
        assert_true(y[i] == x[at]);
        total[at] += (double)dy[i];
    }
    k->arrange->broadcast_backward(&spread, SAMPLES, dy, sums, dx);
    for (int64_t i = 0; i < SAMPLES * small; i++) {
        expected[i] = (float)total[i];
    }
    assert_close("sums", dx, expected, SAMPLES * small, 0);
    output_floats_free(y, SAMPLES * large);
    output_floats_free(dx, SAMPLES * small);
    output_free(sums, (size_t)small * sizeof *sums);
    free(total);
    free(x);
    free(dy);
    free(expected);
}

static void check_broadcast(const bwi_kernels *k)
{
    for (size_t i = 0; i < BWI_COUNT(spreads); i++) {
        check_broadcast_over(k, &spreads[i]);
    }
}

static void test_broadcast(void **state)
{
    (void)state;
    each_table(check_broadcast);
}

/* ---- Cut and joined ---- */

static void check_runs_of(const bwi_kernels *k, int64_t count, int64_t run, int64_t from_step, int64_t to_step)
{
    int64_t read = (count - 1) * from_step + run, written = (count - 1) * to_step + run;
    float *x = input_floats(read), *y = output_floats(written), *before = output_floats(written);
    k->arrange->runs(count, run, from_step, x, to_step, y);
    for (int64_t i = 0; i < written; i++) {
        int64_t r = i / to_step, e = i % to_step;
        if (e < run) {
            assert_true(y[i] == x[r * from_step + e]);
        } else {
            assert_memory_equal(&y[i], &before[i], sizeof *y); /* what lies between runs stays */
        }
    }
    output_floats_free(y, written);
    output_floats_free(before, written);
    free(x);
}

static void check_runs(const bwi_kernels *k)
{
    check_runs_of(k, 1, 1, 1, 1);
    check_runs_of(k, 7, 1, 3, 2);
    check_runs_of(k, 5, 17, 17, 23);
    check_runs_of(k, 5, 17, 40, 17);
}

static void test_runs(void **state)
{
    (void)state;
    each_table(check_runs);
}

/* ---- Permuted axes ---- */

typedef struct permuted {
    int ndim;
    int64_t extent[BW_MAX_NDIM]; /* of x */
    int axes[BW_MAX_NDIM];
} permuted;

static const permuted permutations[] = {
    {0, {0}, {0}},
    {1, {7}, {0}},
    {2, {3, 7}, {0, 1}},
    {2, {3, 7}, {1, 0}},
    {3, {2, 3, 17}, {2, 0, 1}},
    {3, {2, 3, 17}, {1, 0, 2}},
    {4, {2, 3, 1, 5}, {3, 1, 0, 2}},
    {4, {2, 3, 4, 5}, {1, 3, 2, 0}},
};

/* Where element `e` of y, [samples][y's axes], lies in x. */
static int64_t permuted_from(const permuted *p, int64_t e)
{
    int64_t index[BW_MAX_NDIM], at = 0;
    for (int i = p->ndim - 1; i >= 0; i--) {
        index[p->axes[i]] = e % p->extent[p->axes[i]];
        e /= p->extent[p->axes[i]];
    }
    for (int i = 0; i < p->ndim; i++) {
        at = at * p->extent[i] + index[i];
    }
    for (int i = 0; i < p->ndim; i++) {
        e *= p->extent[i];
    }
    return e + at;
}

static bwi_permutation permutation_of(const permuted *p, int64_t *count)
{
    bwi_permutation result = {.ndim = p->ndim};
    *count = 1;
    for (int i = 0; i < p->ndim; i++) {
        result.extent[i] = p->extent[p->axes[i]];
        result.stride[i] = 1;
        for (int j = p->axes[i] + 1; j < p->ndim; j++) {
            result.stride[i] *= p->extent[j];
        }
        *count *= p->extent[i];
    }
    return result;
}

static void check_permute(const bwi_kernels *k)
{
    for (size_t i = 0; i < BWI_COUNT(permutations); i++) {
        int64_t count;
        bwi_permutation p = permutation_of(&permutations[i], &count);
        count *= SAMPLES;
        float *x = input_floats(count), *y = output_floats(count), *back = output_floats(count);
        k->arrange->permute(&p, SAMPLES, false, x, y);
        for (int64_t e = 0; e < count; e++) {
            assert_true(y[e] == x[permuted_from(&permutations[i], e)]);
        }
        k->arrange->permute(&p, SAMPLES, true, y, back);
        assert_memory_equal(back, x, (size_t)count * sizeof *x);
        output_floats_free(y, count);
        output_floats_free(back, count);
        free(x);
    }
}

static void test_permute(void **state)
{
    (void)state;
    each_table(check_permute);
}

/* ---- Images ---- */

static int64_t pixel_at(const bwi_image *i, int64_t n, int64_t h, int64_t w, int64_t c)
{
    return ((((n * bwi_image_blocks(i) + c / i->block) * i->h + h) * i->w) + w) * i->block + c % i->block;
}

/* Channels up to the last block's end: those that only fill it are zero in x, and must be in y. */
static int64_t channels_of(const bwi_image *i)
{
    return bwi_image_blocks(i) * i->block;
}

static void check_pad_of(const bwi_kernels *k, const bwi_image *x_image, const bwi_image *y_image, int64_t top, int64_t left)
{
    float *x = random_image(x_image, false), *y = output_floats(bwi_image_floats(y_image));
    k->arrange->pad(x_image, y_image, top, left, x, y);
    for (int64_t n = 0; n < y_image->n; n++) {
        for (int64_t h = 0; h < y_image->h; h++) {
            for (int64_t w = 0; w < y_image->w; w++) {
                for (int64_t c = 0; c < channels_of(y_image); c++) {
                    int64_t from_h = h - top, from_w = w - left;
                    bool inside = from_h >= 0 && from_h < x_image->h && from_w >= 0 && from_w < x_image->w;
                    float expected = inside ? x[pixel_at(x_image, n, from_h, from_w, c)] : 0;
                    assert_true(y[pixel_at(y_image, n, h, w, c)] == expected);
                }
            }
        }
    }
    output_floats_free(y, bwi_image_floats(y_image));
    free(x);
}

static void check_pad(const bwi_kernels *k)
{
    static const int64_t blocks[][2] = {{5, 5}, {5, 4}, {19, 16}, {5, 1}}; /* channels, block */
    for (size_t i = 0; i < BWI_COUNT(blocks); i++) {
        bwi_image x = {2, 4, 3, blocks[i][0], blocks[i][1]};
        bwi_image larger = {2, 7, 8, x.c, x.block}, smaller = {2, 2, 1, x.c, x.block}, mixed = {2, 7, 2, x.c, x.block};
        check_pad_of(k, &x, &larger, 1, 2);
        check_pad_of(k, &x, &smaller, -1, -2);
        check_pad_of(k, &x, &mixed, 2, -1);
        check_pad_of(k, &x, &x, 0, 0);
        check_pad_of(k, &x, &smaller, 0, 5);  /* nothing of x */
        check_pad_of(k, &x, &smaller, 0, -4); /* nor here */
    }
}

static void test_pad(void **state)
{
    (void)state;
    each_table(check_pad);
}

static void check_clear_padding(const bwi_kernels *k)
{
    static const bwi_image images[] = {{2, 3, 2, 5, 5}, {2, 3, 2, 5, 4}, {2, 1, 1, 19, 16}, {1, 2, 2, 3, 1}};
    for (size_t i = 0; i < BWI_COUNT(images); i++) {
        const bwi_image *image = &images[i];
        float *x = input_floats(bwi_image_floats(image)), *y = output_copy(x, bwi_image_floats(image));
        k->arrange->clear_padding(image, y);
        for (int64_t n = 0; n < image->n; n++) {
            for (int64_t p = 0; p < image->h * image->w; p++) {
                for (int64_t c = 0; c < channels_of(image); c++) {
                    int64_t at = pixel_at(image, n, p / image->w, p % image->w, c);
                    assert_true(y[at] == (c < image->c ? x[at] : 0));
                }
            }
        }
        output_floats_free(y, bwi_image_floats(image));
        free(x);
    }
}

static void test_clear_padding(void **state)
{
    (void)state;
    each_table(check_clear_padding);
}

/* ---- Upsampling ---- */

/* The weight of x's pixel i in y's pixel o along an axis of `extent` pixels. Bilinear: a hat of width 1 around the place of o,
 * which the border holds within the image. */
static double weight_of(const bwi_upsampling *up, int axis, int64_t extent, int64_t o, int64_t i)
{
    if (!up->bilinear) {
        return o / up->size[axis] == i ? 1 : 0;
    }
    double place = ((double)o + 0.5) / (double)up->size[axis] - 0.5;
    place = fmin(fmax(place, 0), (double)(extent - 1));
    return fmax(0, 1 - fabs(place - (double)i));
}

static void check_upsample_of(const bwi_kernels *k, const bwi_image *x_image, const bwi_upsampling *up)
{
    bwi_image y_image = *x_image;
    y_image.h *= up->size[0];
    y_image.w *= up->size[1];
    int64_t small = bwi_image_floats(x_image), large = bwi_image_floats(&y_image);
    float *x = random_image(x_image, false), *dy = random_image(&y_image, false), *row = input_floats(x_image->w * x_image->block);
    float *y = output_floats(large), *dx = output_floats(small), *value = input_floats(large), *difference = input_floats(small);
    double *sums = calloc((size_t)small, sizeof *sums);
    for (int64_t e = 0; e < y_image.n * y_image.h * y_image.w * channels_of(&y_image); e++) {
        int64_t c = e % channels_of(&y_image), p = e / channels_of(&y_image), w = p % y_image.w, h = p / y_image.w % y_image.h;
        int64_t n = p / y_image.w / y_image.h, at = pixel_at(&y_image, n, h, w, c);
        double sum = 0;
        for (int64_t i = 0; i < x_image->h * x_image->w; i++) {
            double weight = weight_of(up, 0, x_image->h, h, i / x_image->w) * weight_of(up, 1, x_image->w, w, i % x_image->w);
            int64_t from = pixel_at(x_image, n, i / x_image->w, i % x_image->w, c);
            sum += weight * (double)x[from];
            sums[from] += weight * (double)dy[at];
        }
        value[at] = (float)sum;
    }
    for (int64_t i = 0; i < small; i++) {
        difference[i] = (float)sums[i];
    }
    k->arrange->upsample(x_image, up, x, row, y);
    k->arrange->upsample_backward(x_image, up, dy, row, dx);
    assert_close("values", y, value, large, 1e-6);
    assert_close("differences", dx, difference, small, 1e-5);
    output_floats_free(y, large);
    output_floats_free(dx, small);
    free(sums);
    float *inputs[] = {x, dy, row, value, difference};
    for (size_t i = 0; i < BWI_COUNT(inputs); i++) {
        free(inputs[i]);
    }
}

static void check_upsample(const bwi_kernels *k)
{
    static const bwi_image images[] = {{2, 3, 4, 3, 3}, {1, 2, 3, 5, 4}, {1, 3, 1, 17, 16}, {2, 1, 3, 2, 1}};
    static const bwi_upsampling ups[] = {{{2, 2}, false}, {{1, 3}, false}, {{2, 2}, true}, {{3, 1}, true}, {{5, 4}, true}};
    for (size_t i = 0; i < BWI_COUNT(images); i++) {
        for (size_t j = 0; j < BWI_COUNT(ups); j++) {
            check_upsample_of(k, &images[i], &ups[j]);
        }
    }
}

static void test_upsample(void **state)
{
    (void)state;
    each_table(check_upsample);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_broadcast), cmocka_unit_test(test_runs),          cmocka_unit_test(test_permute),
        cmocka_unit_test(test_pad),       cmocka_unit_test(test_clear_padding), cmocka_unit_test(test_upsample),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
