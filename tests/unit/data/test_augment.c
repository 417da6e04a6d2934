/*
 * Augmentation, against what the formulas say for the numbers drawn: places are found by the formula of each change, one after the
 * other, and values by a sum over all pixels with tent weights. label: thread
 */
#include "data_test.h"

#include <math.h>

enum { COUNT = 40, H = 9, W = 12, C = 2, SIZE = H * W * C };

static float pixels[COUNT * SIZE];
static int32_t labels[COUNT];

static bw_dataset *pictures(bw_context *ctx)
{
    for (int i = 0; i < COUNT * SIZE; i++) {
        pixels[i] = (float)((i * 7919) % 1009) / 100;
    }
    for (int i = 0; i < COUNT; i++) {
        labels[i] = i % 3;
    }
    bw_array x = {.data = pixels, .dtype = BW_F32, .ndim = 4, .shape = {COUNT, H, W, C}};
    bw_array y = {.data = labels, .dtype = BW_I32, .ndim = 1, .shape = {COUNT}};
    return bw_from_arrays(ctx, &x, &y, NULL);
}

static bw_random stream(uint64_t seed, int epoch, int64_t number)
{
    const uint64_t key[2] = {(uint64_t)epoch, (uint64_t)number};
    return (bw_random){.seed = seed, .stream = bwi_hash(seed, key, sizeof key)};
}

static void gather_one(const bw_dataset *dataset, int epoch, int64_t number, float *to)
{
    bwi_destination place = {
        .kernels = bwi_kernels_host()->gather, .data = to, .dtype = BW_F32, .h = H, .w = W, .c = C, .block = C};
    char error[BWI_GATHER_ERROR] = "";
    if (bwi_dataset_gather(dataset, 0, epoch, &number, 1, &place, error) != BW_OK) {
        fail_msg("%s", error);
    }
}

static double tent(double distance)
{
    return fabs(distance) < 1 ? 1 - fabs(distance) : 0;
}

/* The value at a place of a picture: the nearest of the edge outside. */
static double value_at(const float *picture, double x, double y, int c)
{
    double sum = 0;
    x = fmin(fmax(x, 0), W - 1);
    y = fmin(fmax(y, 0), H - 1);
    for (int i = 0; i < H; i++) {
        for (int k = 0; k < W; k++) {
            sum += tent(x - k) * tent(y - i) * (double)picture[(i * W + k) * C + c];
        }
    }
    return sum;
}

static double even(bw_random *r)
{
    return 2 * (double)bw_random_uniform(r) - 1;
}

/* What a change says about the place (x, y) of its result. */
typedef void (*mover)(bw_random *r, double *x, double *y);

static void move_flip(bw_random *r, double *x, double *y)
{
    (void)y;
    bool turned = bw_random_uniform(r) < 0.5F;
    bw_random_uniform(r);
    *x = turned ? W - 1 - *x : *x;
}

static void move_flip_vertical(bw_random *r, double *x, double *y)
{
    (void)x;
    bw_random_uniform(r);
    *y = bw_random_uniform(r) < 0.5F ? H - 1 - *y : *y;
}

static void move_shift(bw_random *r, double *x, double *y)
{
    *x += round(even(r) * 0.25 * W);
    *y += round(even(r) * 0.25 * H);
}

static void move_pixels(bw_random *r, double *x, double *y)
{
    *x += round(even(r) * 3);
    *y += round(even(r) * 3);
}

static void move_crop(bw_random *r, double *x, double *y)
{
    double share = 0.6 + 0.4 * (double)bw_random_uniform(r), left = (double)bw_random_uniform(r),
           top = (double)bw_random_uniform(r);
    /* The window's first and last pixel become the first and last of the whole. */
    double x0 = left * (1 - share) * (W - 1), x1 = x0 + share * (W - 1);
    double y0 = top * (1 - share) * (H - 1), y1 = y0 + share * (H - 1);
    *x = x0 + (x1 - x0) * *x / (W - 1);
    *y = y0 + (y1 - y0) * *y / (H - 1);
}

static void move_rotate(bw_random *r, double *x, double *y)
{
    double angle = even(r) * 30 * acos(-1) / 180, dx = *x - (W - 1) / 2.0, dy = *y - (H - 1) / 2.0;
    *x = (W - 1) / 2.0 + cos(angle) * dx - sin(angle) * dy;
    *y = (H - 1) / 2.0 + sin(angle) * dx + cos(angle) * dy;
}

static void move_zoom(bw_random *r, double *x, double *y)
{
    double factor = 1 + even(r) * 0.3;
    *x = (W - 1) / 2.0 + factor * (*x - (W - 1) / 2.0);
    *y = (H - 1) / 2.0 + factor * (*y - (H - 1) / 2.0);
}

/* Rows given as a text; `moves` from the last of them to the first, since places are found backwards. */
static void check_geometry(const char *text, const mover *moves, int count, double tolerance)
{
    bw_context *ctx = bw_open(NULL);
    bw_dataset *dataset = bw_augment(pictures(ctx), text, 77);
    assert_non_null(dataset);
    for (int64_t number = 0; number < 8; number++) {
        int epoch = (int)number % 3;
        float found[SIZE];
        bw_random at[4];
        gather_one(dataset, epoch, number, found);
        bw_random r = stream(77, epoch, number);
        for (int m = count; m-- > 0;) { /* draws are made in the order of the text */
            double x = 0, y = 0;
            at[m] = r;
            moves[m](&r, &x, &y);
        }
        for (int i = 0; i < SIZE; i++) {
            double x = i / C % W, y = i / C / W;
            for (int m = 0; m < count; m++) {
                bw_random again = at[m];
                moves[m](&again, &x, &y);
            }
            double expected = value_at(pixels + number * SIZE, x, y, i % C);
            if (!(fabs((double)found[i] - expected) <= tolerance)) {
                fail_msg("%s: sample %d, value %d: %.7g, expected %.7g", text, (int)number, i, (double)found[i], expected);
            }
        }
    }
    bw_close(ctx);
}

static void test_geometry(void **state)
{
    (void)state;
    check_geometry("flip", (const mover[]){move_flip}, 1, 0);
    check_geometry("flip=vertical", (const mover[]){move_flip_vertical}, 1, 0);
    check_geometry("shift=0.25", (const mover[]){move_shift}, 1, 0);
    check_geometry("shift=3", (const mover[]){move_pixels}, 1, 0);
    check_geometry("crop=0.6", (const mover[]){move_crop}, 1, 2e-5);
    check_geometry("rotate=30", (const mover[]){move_rotate}, 1, 2e-5);
    check_geometry("zoom=0.3", (const mover[]){move_zoom}, 1, 2e-5);
    check_geometry("rotate=30,shift=3,zoom=0.3,flip", (const mover[]){move_flip, move_zoom, move_pixels, move_rotate}, 4, 2e-5);
}

static void expect_near(const float *found, const double *expected)
{
    for (int i = 0; i < SIZE; i++) {
        if (!(fabs((double)found[i] - expected[i]) <= 1e-5 * (1 + fabs(expected[i])))) {
            fail_msg("value %d: %.8g, expected %.8g", i, (double)found[i], expected[i]);
        }
    }
}

static void test_values(void **state)
{
    (void)state;
    bw_context *ctx = bw_open(NULL);
    float found[SIZE];
    double expected[SIZE];
    const float *picture = pixels + 5 * SIZE;
    bw_dataset *dataset = bw_augment(pictures(ctx), "brightness=0.4", 3);
    bw_random r = stream(3, 2, 5);
    double factor = 1 + even(&r) * 0.4;
    for (int i = 0; i < SIZE; i++) {
        expected[i] = (double)picture[i] * factor;
    }
    gather_one(dataset, 2, 5, found);
    expect_near(found, expected);

    dataset = bw_augment(pictures(ctx), "contrast=0.4", 3);
    double mean[C] = {0};
    for (int i = 0; i < SIZE; i++) {
        mean[i % C] += (double)picture[i] / (H * W);
    }
    for (int i = 0; i < SIZE; i++) {
        expected[i] = mean[i % C] + factor * ((double)picture[i] - mean[i % C]);
    }
    gather_one(dataset, 2, 5, found);
    expect_near(found, expected);

    dataset = bw_augment(pictures(ctx), "noise=0.5", 3);
    r = stream(3, 2, 5);
    double sum = 0, squares = 0;
    gather_one(dataset, 2, 5, found);
    for (int i = 0; i < SIZE; i++) {
        double noise = (double)(found[i] - picture[i]);
        expected[i] = (double)picture[i] + 0.5 * (double)bw_random_normal(&r);
        sum += noise;
        squares += noise * noise;
    }
    expect_near(found, expected);
    assert_true(fabs(sum / SIZE) < 0.15 && fabs(sqrt(squares / SIZE) - 0.5) < 0.1);

    /* A square, cut off at the edges: counted over many samples; the rest is as before. */
    dataset = bw_augment(pictures(ctx), "cutout=4", 3);
    for (int64_t n = 0; n < COUNT; n++) {
        r = stream(3, 1, n);
        int x = (int)bw_random_below(&r, W) - 2, y = (int)bw_random_below(&r, H) - 2;
        gather_one(dataset, 1, n, found);
        for (int i = 0; i < SIZE; i++) {
            int px = i / C % W, py = i / C / W;
            bool inside = px >= x && px < x + 4 && py >= y && py < y + 4;
            assert_true(found[i] == (inside ? 0 : pixels[n * SIZE + i]));
        }
    }
    /* Values are changed where the text says so: brightness after zooming out of the edge is the same as before it. */
    float other[SIZE];
    gather_one(bw_augment(pictures(ctx), "zoom=0.5,brightness=0.4,flip", 3), 1, 7, found);
    gather_one(bw_augment(pictures(ctx), "zoom=0.5,brightness=0.4", 3), 1, 7, other);
    r = stream(3, 1, 7);
    bw_random_uniform(&r);
    bw_random_uniform(&r);
    bool turned = bw_random_uniform(&r) < 0.5F;
    for (int i = 0; i < SIZE; i++) {
        int x = i / C % W, from = i + (turned ? (W - 1 - 2 * x) * C : 0);
        assert_true(found[i] == other[from]);
    }
    bw_close(ctx);
}

/* ---- When ---- */

static void test_function_of_seed_epoch_number(void **state)
{
    (void)state;
    bw_context *ctx = bw_open(NULL);
    static const char *const text = "flip=both,shift=2,rotate=10,noise=0.1";
    bw_dataset *dataset = bw_augment(pictures(ctx), text, 9), *shuffled = bw_shuffle(bw_augment(pictures(ctx), text, 9), 4);
    bw_dataset *seeded = bw_augment(pictures(ctx), text, 10);
    float one[SIZE], two[SIZE];
    gather_one(dataset, 4, 17, one);
    gather_one(shuffled, 4, 17, two);
    assert_memory_equal(one, two, sizeof one);
    gather_one(dataset, 5, 17, two);
    assert_true(memcmp(one, two, sizeof one) != 0);
    gather_one(seeded, 4, 17, two);
    assert_true(memcmp(one, two, sizeof one) != 0);
    gather_one(dataset, BWI_EPOCH_NONE, 17, two);
    assert_memory_equal(two, pixels + 17 * SIZE, sizeof two);
    gather_one(bw_repeat(bw_augment(pictures(ctx), text, 9), 2), BWI_EPOCH_NONE, 17 + COUNT, two);
    assert_memory_equal(two, pixels + 17 * SIZE, sizeof two);
    /* A prefetcher with three threads gives the same, and plain values when told so. */
    bw_prefetch_options ahead = BW_PREFETCH_OPTIONS_DEFAULT;
    ahead.threads = 3;
    bw_dataset *ringed = bw_prefetch(bw_augment(pictures(ctx), text, 9), &ahead);
    for (int plain = 0; plain < 2; plain++) {
        bwi_gather_schedule schedule = {.epoch = 4, .unaugmented = plain, .count = COUNT, .tile = 4, .lanes = 4, .workers = 1};
        assert_int_equal(bwi_dataset_begin(ringed, &schedule), BW_OK);
        for (int64_t n = 0; n < COUNT; n++) {
            gather_one(ringed, plain ? BWI_EPOCH_NONE : 4, n, one);
            gather_one(dataset, plain ? BWI_EPOCH_NONE : 4, n, two);
            assert_memory_equal(one, two, sizeof one);
        }
    }
    /* Statistics are those of the samples as they are in use. */
    bw_dataset *standard = bw_standardise(bw_augment(pictures(ctx), "brightness=0.9", 9), NULL),
               *plain = bw_standardise(pictures(ctx), NULL);
    const float *offset[2], *factor[2];
    int64_t count;
    assert_int_equal(bwi_dataset_prepare(standard), BW_OK);
    assert_int_equal(bwi_dataset_prepare(plain), BW_OK);
    assert_true(bwi_dataset_statistics(standard, 0, &offset[0], &factor[0], &count));
    assert_true(bwi_dataset_statistics(plain, 0, &offset[1], &factor[1], &count));
    assert_memory_equal(offset[0], offset[1], C * sizeof(float));
    assert_memory_equal(factor[0], factor[1], C * sizeof(float));
    bw_close(ctx);
}

/* Images of whole numbers are images too. */
static void test_whole_numbers(void **state)
{
    (void)state;
    bw_context *ctx = bw_open(NULL);
    static const int64_t wide[4] = {1, 2, 3, 4};
    bw_array x = {.data = wide, .dtype = BW_I64, .ndim = 4, .shape = {1, 1, 4, 1}};
    bw_dataset *dataset = bw_augment(bw_from_arrays(ctx, &x, NULL, NULL), "brightness=0.5", 1);
    bw_random r = stream(1, 0, 0);
    float factor = (float)(1 + even(&r) * 0.5);
    float found[4];
    bwi_destination place = {
        .kernels = bwi_kernels_host()->gather, .data = found, .dtype = BW_F32, .h = 1, .w = 4, .c = 1, .block = 1};
    int64_t number = 0;
    assert_int_equal(bwi_dataset_gather(dataset, 0, 0, &number, 1, &place, NULL), BW_OK);
    for (int i = 0; i < 4; i++) {
        assert_true(found[i] == (float)(i + 1) * factor);
    }
    bw_close(ctx);
}

static void test_refused(void **state)
{
    (void)state;
    bw_context *ctx = bw_open(NULL);
    static const char *const bad[] = {
        "",       "flip,",  "flip=up",  "shift",    "shift=",   "shift=-1", "rotate=x",    "rotate=361",
        "zoom=1", "crop=0", "crop=1.5", "noise=-1", "cutout=0", "mixup=1",  "flip;shift=1"};
    for (size_t i = 0; i < BWI_COUNT(bad); i++) {
        assert_failed(ctx, bw_augment(pictures(ctx), bad[i], 0), BW_INVALID_ARGUMENT, "augment: '");
    }
    assert_failed(ctx, bw_augment(pictures(ctx), NULL, 0), BW_INVALID_ARGUMENT, "augment: there is no text");
    assert_failed(ctx, bw_cache(bw_shuffle(bw_augment(pictures(ctx), "flip", 0), 1)), BW_INVALID_ARGUMENT,
                  "cache first, then augment");
    static const float line[6];
    bw_array x = {.data = line, .dtype = BW_F32, .ndim = 2, .shape = {2, 3}};
    assert_failed(ctx, bw_augment(bw_from_arrays(ctx, &x, NULL, NULL), "flip", 0), BW_INVALID_ARGUMENT,
                  "expected images (height, width, channels), found inputs of shape (3,)");
    assert_null(bw_augment(NULL, "flip", 0));
    bw_close(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_geometry),      cmocka_unit_test(test_values),  cmocka_unit_test(test_function_of_seed_epoch_number),
        cmocka_unit_test(test_whole_numbers), cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
